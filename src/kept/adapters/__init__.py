"""Drop-in replacements for the memory of agent frameworks: one module and one extra for each.

    from kept.adapters.langgraph import KeptStore

Rule: importing an adapter imports its framework and no other; importing this package imports none.
"""
