"""Briefings: what to tell an agent, within a budget, in its style."""
