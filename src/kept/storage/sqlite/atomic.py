"""One transaction for what is not a turn of the storage: making, copying, repairing a file."""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw


@contextmanager
def all_or_nothing(connection: apsw.Connection) -> Iterator[None]:
    """What is inside becomes true together, or not at all; inside another such block, with that one.

    Not `with connection`: when SQLite has ended the transaction by itself, as it does when a page cannot be read, that
    raises another error, which hides the first.
    """
    if connection.in_transaction:
        yield
        return
    connection.execute("begin immediate")
    try:
        yield
        connection.execute("commit")
    finally:
        if connection.in_transaction:
            connection.execute("rollback")
