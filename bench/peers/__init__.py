"""Kept beside other memories, each in an environment of its own, asked the same things in turns."""
