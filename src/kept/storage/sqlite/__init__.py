"""The default storage: one SQLite file, through apsw, that loses nothing."""

from kept.storage.sqlite.storage import SqliteStorage

__all__ = ["SqliteStorage"]
