"""Memories and conversations in the formats of files: what other programs read, and what they wrote."""
