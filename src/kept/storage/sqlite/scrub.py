"""After erasing: no byte is left.

SQLite overwrites deleted rows (`secure_delete`) and FTS5 deleted words, but three places remain: the
WAL, which holds the pages as they were; the shared-memory index of the WAL; and `<index>_idx`, where
FTS5 keeps whole words as separators between its pages. Rule: nothing is called gone that a look at
the file could still find; when a reader of another process holds the old pages, the answer is
"pending", and the next one who opens the file goes on.
"""

import apsw

from kept.storage.sqlite.connection import READ_WAIT_MS

SHELVES = ("live", "library", "archive")
# A separator shorter than this is a few letters that half the vocabulary begins with.
_TELLING_LENGTH = 4


def scrub(connection: apsw.Connection) -> bool:
    """Finish pending erasures. Call it in this process's turn to write. False: a reader is in the way."""
    for shelf in SHELVES:
        if has_stray_words(connection, shelf):
            connection.execute(f"insert into {shelf}_fts ({shelf}_fts) values ('rebuild')")
    if not _empty_the_wal(connection):
        return False
    connection.execute("delete from meta where name = 'scrub'")
    return True


def is_pending(connection: apsw.Connection) -> bool:
    """Whether an erasure still has bytes to remove."""
    return connection.execute("select 1 from meta where name = 'scrub'").fetchone() is not None


def has_stray_words(connection: apsw.Connection, shelf: str) -> bool:
    """Whether the index keeps, as a separator, (the beginning of) a word that no memory holds any more."""
    for (term,) in connection.execute(f"select term from {shelf}_fts_idx"):
        word = bytes(term)[1:].decode("utf-8", "ignore")  # the first byte says which index: '0' is the words
        if len(word) < _TELLING_LENGTH:
            continue
        sql = f"select 1 from {shelf}_vocabulary where term >= ? and term < ? limit 1"
        if connection.execute(sql, (word, word + "\U0010ffff")).fetchone() is None:
            return True
    return False


def _empty_the_wal(connection: apsw.Connection) -> bool:
    connection.set_busy_timeout(0)  # a paused reader would make us wait for nothing
    try:
        (busy, _, _), *_ = connection.execute("pragma wal_checkpoint(truncate)").fetchall()
    finally:
        connection.set_busy_timeout(READ_WAIT_MS)
    return not busy
