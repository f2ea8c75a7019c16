"""One space in a PostgreSQL database: turns, transactions, opening and closing.

Writers of a space queue at an advisory lock, which is fair, and then lock the head of the space, which is the truth.
Both happen before the first read, in READ COMMITTED, so a writer sees what the one before it has committed. Readers
hold one moment (REPEATABLE READ) and wait for nobody. Rule: a commit that returned is as durable as the server makes
it; if its outcome is unknown, the storage finds it out or says so, and a retry with the same key never doubles.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

import psycopg
from psycopg import errors
from psycopg.errors import Diagnostic

from kept.errors import Busy, InvalidInput, NotFound, StorageError
from kept.journal import FIRST_PREV, Salt
from kept.ports import Scrubbed, Stamp
from kept.storage.postgres import schema
from kept.storage.postgres.connection import (
    READ_LIMIT_MS,
    RECONNECT_S,
    RETRY_S,
    SCHEMA,
    WRITE_LIMIT_MS,
    Connection,
    Database,
    Known,
    SpaceView,
    begin,
    is_lost,
)
from kept.storage.postgres.reader import PostgresReader
from kept.storage.postgres.writer import (
    HEAD_COLUMNS,
    Head,
    PostgresBookkeeping,
    PostgresTransaction,
    TurnView,
    head_of,
)
from kept.storage.shared import WRITE_WAIT_S, random_hex
from kept.storage.weights import Chunks, Weights

VACUUM_LIMIT_MS = 300_000
COMMIT_WAIT_S = 60.0  # for a standby that does not answer
_READER = {"statement_timeout": str(READ_LIMIT_MS)}
_NOTES = {"statement_timeout": str(READ_LIMIT_MS), "synchronous_commit": "off"}
_WITH_WORDS = ("memories", "postings", "hot_words", "records", "messages", "event_payloads", "receipts", "vectors")
_UNCONFIRMED = "synchronous replication"  # in the warning that comes with a commit which no standby confirmed


def number_of(space: str) -> int:
    """The number of a space in every key: 63 bits of a hash of its name, so that nobody has to give numbers out."""
    return int.from_bytes(blake2b(space.encode(), digest_size=8).digest(), "big") >> 1


class PostgresStorage:
    """One space in a database. Safe for many threads and many processes."""

    def __init__(
        self,
        url: str,
        space: str,
        *,
        write_wait_s: float = WRITE_WAIT_S,
        salt: Salt = random_hex,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        must_exist: bool = False,
    ) -> None:
        """Open the space, creating it if need be. `must_exist`: raise NotFound instead."""
        self.space = space
        self._number = number_of(space)
        self._write_wait_s = write_wait_s
        self._salt = salt
        self._weights = Weights()
        self._database = Database(url)
        self._known: tuple[Any, Known] = (None, {})  # by the last reader, and in which turn that was
        self._left: tuple[Any, Chunks] = (None, {})  # by the last turn: its end, and the weights that it wrote
        try:
            self._open(now(), must_exist)
        except BaseException:
            self._database.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[PostgresReader]:
        also = f"select turns, last_hash, pg_is_in_recovery() from heads where space = {self._number:d}"
        with self._transaction(reads=True, limits=_READER, also=also) as (connection, row):
            if (known := self._known)[0] != row:
                known = self._known = (row, {})
            yield PostgresReader(SpaceView(self.space, self._number, connection, known[1]), self._weights)
            connection.execute("commit")

    @contextmanager
    def writing(
        self, stamp: Stamp, *, urgent: bool = False, wait_s: float | None = None
    ) -> Iterator[PostgresTransaction]:
        with self._turn(self._write_wait_s if wait_s is None else wait_s) as (connection, head):
            known = self._left[1] if self._left[0] == (head.turns, head.last_hash) else {}
            view = TurnView(self.space, self._number, connection, stamp, self._salt, head, known)
            with self._committing(connection, view):
                yield PostgresTransaction(view, self._weights)
                view.end()
            self._left = ((head.turns, head.last_hash), view.chunks)

    @contextmanager
    def bookkeeping(self) -> Iterator[PostgresBookkeeping | None]:
        if self._known[0] is not None and self._known[0][-1]:  # on a standby, as the last reader saw
            yield None
            return
        with self._transaction(reads=False, limits=_NOTES, also=self._lock(waits=False)) as (connection, row):
            if row is None:  # somebody else has it
                yield None
                connection.execute("rollback")
            else:
                with connection.pipeline():
                    yield PostgresBookkeeping(SpaceView(self.space, self._number, connection), self._head(row))
                    connection.execute("commit")

    @contextmanager
    def in_bulk(self) -> Iterator[None]:
        yield

    @contextmanager
    def making_room(self) -> Iterator[None]:
        yield

    @contextmanager
    def lease(self, name: str, *, wait_s: float = 0.0) -> Iterator[bool]:
        """Held by a connection of its own, in a transaction that reads nothing; it ends with that."""
        also = f"select pg_try_advisory_xact_lock({number_of(f'{self.space} lease {name}'):d})"
        end = time.monotonic() + wait_s
        while True:
            with self._transaction(reads=False, limits={}, also=also) as (connection, row):
                if row[0] or time.monotonic() >= end:
                    yield bool(row[0])
                    connection.execute("rollback")
                    return
                connection.execute("rollback")
            time.sleep(RETRY_S)

    def scrub(self) -> Scrubbed:
        """Reclaim the room of erased rows, where the role may (PostgreSQL 17); the rest is the operator's."""
        with self._database.alone() as connection:
            connection.execute(f"set statement_timeout = {VACUUM_LIMIT_MS:d}")
            try:
                connection.execute(f"vacuum {', '.join(f'{SCHEMA}.{table}' for table in _WITH_WORDS)}")  # of all spaces
            except psycopg.Error:
                return Scrubbed(is_done=False)
            return Scrubbed()

    def describe(self) -> dict[str, Any]:
        with self._transaction(reads=True, limits=_READER) as (connection, _):
            sql = """
                select sum(pg_column_size(m.*)), current_setting('server_version')
                from memories m
                where m.space = %(space)s"""
            n_bytes, server = SpaceView(self.space, self._number, connection).fetch(sql)[0]
            connection.execute("commit")
        return {
            "storage": "postgres",
            "place": self._database.place,
            "bytes": int(n_bytes or 0),
            "schema": schema.LATEST,
            "postgres": server,
        }

    def close(self) -> None:
        self._database.close()

    def _open(self, at: datetime, must_exist: bool) -> None:
        with self._database.alone() as connection:
            begin(connection, self._number, reads=True, limits=_READER)
            view = SpaceView(self.space, self._number, connection)
            schema.check_role(view, self._database.place)
            found = view.fetch("select name from heads where space = %(space)s")
            connection.execute("commit")
            if not found and must_exist:
                raise NotFound(f"There is no {self.space} in {self._database.place} yet.")
            if not found:
                begin(connection, self._number, reads=False, limits=_READER)
                sql = """
                    insert into heads (space, name, created_at, tombstone_key, last_ids, last_event, last_hash, turns)
                    values (%(space)s, %(name)s, %(at)s, %(key)s, '{}', 0, %(hash)s, 0)
                    on conflict (space) do nothing"""
                view.run(sql, name=self.space, at=at, key=bytes.fromhex(random_hex(32)), hash=FIRST_PREV)
                found = view.fetch("select name from heads where space = %(space)s")
                connection.execute("commit")
        if found[0][0] != self.space:
            why = f"The names {self.space} and {found[0][0]} have the same number."
            raise InvalidInput(why, hint="Choose another name.")

    def _transaction(
        self, *, reads: bool, limits: dict[str, str], also: str = "", wait_s: float | None = None
    ) -> AbstractContextManager[tuple[Connection, Any]]:
        wait_s = self._write_wait_s if wait_s is None else wait_s
        return self._database.transaction(self._number, reads=reads, limits=limits, also=also, wait_s=wait_s)

    @contextmanager
    def _turn(self, wait_s: float) -> Iterator[tuple[Connection, Head]]:
        """This connection's turn to write, with the head of the space locked."""
        limits = {
            "lock_timeout": f"{max(1, round(wait_s * 1_000)):d}",
            "statement_timeout": f"{WRITE_LIMIT_MS + round(wait_s * 1_000):d}",
        }
        why = f"Another connection has been writing to {self.space} for more than {wait_s:g} s."
        busy = Busy(why, hint="Try again.")
        also = self._lock(waits=wait_s > 0)
        try:
            with self._transaction(reads=False, limits=limits, also=also, wait_s=wait_s) as (connection, row):
                if row is None:
                    raise busy
                yield connection, self._head(row)
        except Busy as error:
            if isinstance(error.__cause__, errors.LockNotAvailable):
                raise busy from error
            raise

    def _lock(self, *, waits: bool) -> str:
        """The statements that take the turn: the second one locks the head of the space, and reads it."""
        queue, how = ("pg_advisory_xact_lock", "") if waits else ("pg_try_advisory_xact_lock", "skip locked")
        return f"""
            select {queue}({self._number:d});
            select {HEAD_COLUMNS}, (select max(version) from migrations where space = 0)
            from heads
            where space = {self._number:d}
            for update {how}"""

    def _head(self, row: Sequence[Any]) -> Head:
        *columns, version = row
        schema.check_version(version, self._database.place)
        return head_of(columns)

    @contextmanager
    def _committing(self, connection: Connection, view: TurnView) -> Iterator[None]:
        """Commit after the block; if nobody can tell whether that worked, find out, or raise an error that says so."""
        warnings: list[str] = []

        def note(notice: Diagnostic) -> None:
            warnings.append(notice.message_primary or "")

        is_ending = False
        # No time limit of PostgreSQL's holds while a commit waits for a standby. Cancelled, it comes with that warning.
        patience = threading.Timer(COMMIT_WAIT_S, connection.cancel_safe)
        patience.daemon = True
        connection.add_notice_handler(note)
        try:
            with connection.pipeline():
                yield
                is_ending = True
                patience.start()
                connection.execute("commit")
        except psycopg.Error as error:
            if not (is_ending and is_lost(error)):
                raise
            connection.close()
            if not self._has_committed(view):
                raise
        finally:
            patience.cancel()
            connection.remove_notice_handler(note)
        if any(_UNCONFIRMED in warning for warning in warnings):
            raise StorageError(
                f"{self.space} was changed on the server, but no standby has confirmed it, so it is unknown whether "
                f"the change survives a failover.",
                hint="Try again with the same key: nothing is stored twice.",
            )

    def _has_committed(self, view: TurnView) -> bool:
        """Whether a turn whose connection was lost at its end is there. Its turn has ended when the next one begins."""
        try:
            with self._turn(RECONNECT_S) as (connection, _):
                found = SpaceView(self.space, self._number, connection).fetch(
                    "select hash from events where space = %(space)s and seq = %(seq)s", seq=view.journal.last_seq
                )
                connection.execute("rollback")
        except StorageError as error:
            raise self._unknown() from error
        if not view.journal.last_seq:  # messages alone leave no event
            raise self._unknown()
        return bool(found) and (view.journal.last_seq, found[0][0]) == view.journal.end

    def _unknown(self) -> StorageError:
        return StorageError(
            f"The connection to {self._database.place} was lost at the end of a write. It is unknown whether it was "
            f"stored.",
            hint="Try again with the same key: nothing is stored twice.",
        )
