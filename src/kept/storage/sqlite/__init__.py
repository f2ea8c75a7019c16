"""The default storage: one SQLite file, accessed through apsw."""

from kept.storage.sqlite.storage import SqliteStorage, rare_verbs

__all__ = ["SqliteStorage", "rare_verbs"]
