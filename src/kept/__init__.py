"""Kept: a memory for AI agents that lasts."""
