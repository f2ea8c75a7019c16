"""The SQLite databases of other programs, opened to read only while those programs may be writing.

Rule: through apsw alone; a file that two SQLite libraries of one process have open loses its locks.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from kept.errors import InvalidInput

BUSY_MS = 5_000  # for a program that is just committing


@contextmanager
def open_read_only(database: Path, program: str) -> Iterator[apsw.Connection]:
    """The database as it is now: one transaction, which sees nothing that is written later. Raises InvalidInput."""
    try:
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(f"{database.absolute().as_uri()}?mode=ro", flags=flags)
        try:
            connection.set_busy_timeout(BUSY_MS)
            connection.execute("begin")
            yield connection
        finally:
            connection.close()
    except apsw.Error as error:
        raise InvalidInput(
            f"{database} cannot be read as a database of {program} ({type(error).__name__}).",
            hint="Check the file. If it is still being written or copied, try again when that is done.",
        ) from error


def rows_of(connection: "apsw.Connection", table: str, order: str = "1") -> Iterator[dict[str, Any]]:
    """The rows of a table, each by the names of its columns."""
    found = connection.execute(f"select * from {table} order by {order}")
    for row in found:
        names = [column[0] for column in found.get_description()]  # an empty table has none to tell
        yield dict(zip(names, row, strict=True))
