"""One space in one SQLite file: connections, turns, transactions, opening and closing.

Readers each take a connection from a small pool and see one moment of the WAL. A writer first takes
its turn (turns.py), then BEGIN IMMEDIATE: a transaction that reads first and writes later would fail
with BUSY_SNAPSHOT at once. Rule: a commit that returned is on disk; a failed one left nothing.
"""

import os
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw

from kept.errors import Busy, InvalidInput, StorageError
from kept.ports import Stamp
from kept.storage.shared import WRITE_WAIT_S
from kept.storage.sqlite import hotwords, reserve, rows, schema, scrub
from kept.storage.sqlite.backup import back_up_before_migration
from kept.storage.sqlite.connection import connect, translated
from kept.storage.sqlite.reader import SqliteReader
from kept.storage.sqlite.transaction import Salt, SqliteBookkeeping, SqliteTransaction
from kept.storage.turns import Turns

_CLOSE_WAIT_S = 1.0


class SqliteStorage:
    """One space in one file. Safe for many threads and many processes."""

    def __init__(
        self,
        path: Path,
        space: str | None = None,
        *,
        write_wait_s: float = WRITE_WAIT_S,
        vfs: str | None = None,
        synchronous: str = "full",
        salt: Salt = secrets.token_hex,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Open the file, creating or upgrading it if need be. `space` None: whichever it holds (a new one, if new)."""
        self.path = path
        self._write_wait_s = write_wait_s
        self._vfs = vfs
        self._synchronous = synchronous
        self._salt = salt
        self._turns = Turns(path.with_name(path.name + ".lock"))
        self._idle: list[apsw.Connection] = []
        self._guard = threading.Lock()
        self._pid = os.getpid()
        self._inherited: list[apsw.Connection] = []
        self._is_closed = False
        if path.is_dir():
            raise InvalidInput(f"{path} is a directory, not a memory file.", hint="Give a file name inside it.")
        with translated(path):
            self.space = self._prepare_file(space, now)

    @contextmanager
    def reading(self) -> Iterator[SqliteReader]:
        with translated(self.path), self._connection() as connection:
            connection.execute("begin")
            try:
                schema.check_version(connection, self.path)  # the first read: from here on, one moment
                yield SqliteReader(self.space, connection)
            finally:
                _end(connection)

    @contextmanager
    def writing(self, stamp: Stamp, *, urgent: bool = False) -> Iterator[SqliteTransaction]:
        with translated(self.path), self._turn(self._write_wait_s), self._connection() as connection:
            if urgent:
                reserve.free_if_disk_is_full(self.path)
            connection.execute("begin immediate")
            try:
                schema.check_version(connection, self.path)
                transaction = SqliteTransaction(self.space, connection, stamp, self._salt)
                yield transaction
                hotwords.refresh_if_grown(connection)
                connection.execute("commit")
            finally:
                _end(connection)
            reserve.refill(self.path)

    @contextmanager
    def bookkeeping(self) -> Iterator[SqliteBookkeeping | None]:
        try:
            self._turns.take(0)
        except Busy:
            yield None
            return
        try:
            with translated(self.path), self._connection() as connection:
                # Usage counts may be lost with the power; they are not worth a sync at every recall.
                connection.execute("pragma synchronous = normal")
                try:
                    connection.execute("begin immediate")
                    schema.check_version(connection, self.path)
                    yield SqliteBookkeeping(connection)
                    connection.execute("commit")
                finally:
                    _end(connection)
                    connection.execute(f"pragma synchronous = {self._synchronous}")
        finally:
            self._turns.end()

    def scrub(self) -> bool:
        """Finish what erasing began. False: another process still reads the old pages; the next open goes on."""
        with translated(self.path), self._turn(self._write_wait_s), self._connection() as connection:
            reserve.free_if_disk_is_full(self.path)
            done = not scrub.is_pending(connection) or scrub.scrub(connection)
            reserve.refill(self.path)
            return done

    def describe(self) -> dict[str, Any]:
        with translated(self.path), self._connection() as connection:
            facts = {
                "storage": "sqlite",
                "place": str(self.path),
                "bytes": sum(part.stat().st_size for part in self._files() if part.exists()),
                "schema": schema.version_of(connection),
                "sqlite": apsw.sqlite_lib_version(),
            }
            return facts | ({"erase": "pending"} if scrub.is_pending(connection) else {})

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        # The last connection to close checkpoints the WAL: in our turn, unless somebody holds it for long.
        has_turn = False
        with suppress(StorageError):
            self._turns.take(_CLOSE_WAIT_S)
            has_turn = True
        try:
            for connection in self._idle if os.getpid() == self._pid else ():
                connection.close()
            self._idle.clear()
        finally:
            if has_turn:
                self._turns.end()
            self._turns.close()

    def _prepare_file(self, space: str | None, now: Callable[[], datetime]) -> str:
        """Create or upgrade the schema, and finish an erasure that was left pending."""
        with self._connection() as connection:
            schema.check_ownership(connection, self.path)
            if schema.check_version(connection, self.path) < schema.LATEST:
                self._migrate(connection, space, now)
            found = str(connection.execute("select value from meta where name = 'space'").get)
            if space is not None and space != found:
                raise InvalidInput(f"{self.path} holds the space {found}, not {space}.")
            if scrub.is_pending(connection):
                with suppress(Busy), self._turn(0):
                    scrub.scrub(connection)
            return found

    def _migrate(self, connection: apsw.Connection, space: str | None, now: Callable[[], datetime]) -> None:
        with self._turn(self._write_wait_s):
            version = schema.version_of(connection)
            steps = schema.migrations()
            if version:
                schema.check_checksums(connection, self.path, steps)
                back_up_before_migration(connection, self.path, version)
            schema.migrate(connection, self.path, steps, now())
            if not version:
                # A second process may have been first: what it wrote stays.
                for name, value in (
                    ("space", space or f"project/{secrets.token_hex(4)}"),
                    ("tombstone_key", secrets.token_hex(32)),
                    ("created_at", rows.clock(now())),
                ):
                    connection.execute(
                        "insert into meta (name, value) values (?, ?) on conflict do nothing", (name, value)
                    )
                for part in self._files():
                    if part.exists():
                        part.chmod(0o600)
            reserve.refill(self.path)

    @contextmanager
    def _turn(self, wait_s: float) -> Iterator[None]:
        self._check_open()
        self._turns.take(wait_s)
        try:
            yield
        finally:
            self._turns.end()

    @contextmanager
    def _connection(self) -> Iterator[apsw.Connection]:
        """A connection that nobody else uses meanwhile."""
        self._check_open()
        with self._guard:
            if os.getpid() != self._pid:
                # Inherited through fork: using or even closing them here would harm the parent's. Keep, untouched.
                self._inherited += self._idle
                self._idle = []
                self._pid = os.getpid()
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = connect(self.path, vfs=self._vfs, synchronous=self._synchronous)
        try:
            yield connection
        finally:
            if self._is_closed:
                connection.close()
            else:
                self._idle.append(connection)

    def _files(self) -> tuple[Path, ...]:
        return tuple(self.path.with_name(self.path.name + suffix) for suffix in ("", "-wal", "-shm"))

    def _check_open(self) -> None:
        if self._is_closed:
            raise StorageError(f"The storage of {self.path} is closed.", hint="Open it again with kept.open().")


def _end(connection: apsw.Connection) -> None:
    """Leave no transaction behind, whatever happened inside it."""
    if connection.in_transaction:
        connection.execute("rollback")
