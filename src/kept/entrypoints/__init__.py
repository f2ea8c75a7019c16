"""Doors to the facade for people and programs. They translate words and errors and hold no rules."""
