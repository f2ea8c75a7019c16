"""The default storage: one SQLite file, accessed through apsw."""

from kept.storage.sqlite.storage import SqliteStorage

__all__ = ["SqliteStorage"]
