"""Many memories leave an index at once.

FTS5 overwrites the words of a row that leaves (`secure-delete`), which takes two milliseconds in an index of 100,000
memories; to mark the row as gone takes a twentieth. So while many go to the archive they are only marked, and at the
end the index is built anew from the rows, once. Rule: that words are left behind is noted in the same transaction, and
nothing counts as erased (storage.py) before the index was built anew.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

SHELVES = ("live", "library")  # those that memories leave for the archive
_LEFT = "words_left_behind"  # a fact about the file


@contextmanager
def marking_only(connection: apsw.Connection) -> Iterator[None]:
    """Let rows that leave an index be marked in the block. Call it inside a transaction."""
    connection.execute("insert into meta (name, value) values (?, '1') on conflict do nothing", (_LEFT,))
    try:
        for shelf in SHELVES:
            _overwrite(connection, shelf, is_on=False)
        yield
    finally:  # if this fails, the pool does not take the connection back
        for shelf in SHELVES:
            _overwrite(connection, shelf, is_on=True)


def settle(connection: apsw.Connection) -> None:
    """Build anew the indexes in which words were left behind, if there are any. Call it in a transaction."""
    if connection.execute("select 1 from meta where name = ?", (_LEFT,)).fetchone() is not None:
        for shelf in SHELVES:
            connection.execute(f"insert into {shelf}_fts ({shelf}_fts) values ('rebuild')")
        connection.execute("delete from meta where name = ?", (_LEFT,))


def _overwrite(connection: apsw.Connection, shelf: str, *, is_on: bool) -> None:
    connection.execute(f"insert into {shelf}_fts ({shelf}_fts, rank) values ('secure-delete', ?)", (int(is_on),))
