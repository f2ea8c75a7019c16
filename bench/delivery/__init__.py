"""Delivery: is the fact that governs an action in the text that the agent gets before it acts?"""
