"""Storages: rows in, rows out. Each passes tests/contract; none holds a policy."""
