"""One space in a PostgreSQL database: turns, transactions, opening and closing.

Writers of a space queue at an advisory lock, which is fair, and then lock the head of the space, which is the truth.
Both happen before the first read, in READ COMMITTED, so a writer sees what the one before it has committed. Readers
hold one moment (REPEATABLE READ) and wait for nobody. Rule: a commit that returned is as durable as the server makes
it; if its outcome is unknown, the storage finds it out or says so, and a retry with the same key never doubles.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.errors import Diagnostic
from psycopg.pq import TransactionStatus

from kept.errors import Busy, InvalidInput, NotAllowed, NotFound, StorageError
from kept.journal import FIRST_PREV, Salt
from kept.ports import Scrubbed, Stamp
from kept.storage.postgres import schema
from kept.storage.postgres.connection import (
    HOLDS,
    READ_LIMIT_MS,
    READS,
    RECONNECT_S,
    RETRY_S,
    SCHEMA,
    WRITE_LIMIT_MS,
    WRITES,
    Asked,
    Connection,
    Database,
    Known,
    Rows,
    SpaceView,
    is_lost,
    leave,
    plain,
    start,
    translated,
)
from kept.storage.postgres.reader import PostgresReader
from kept.storage.postgres.rounds import FirstRound, HastyTurnView, Rounds, gave_up
from kept.storage.postgres.writer import (
    HEAD_COLUMNS,
    LAST_HASH,
    LAST_IDS,
    TURNS,
    VECTOR_MODEL,
    Head,
    PostgresBookkeeping,
    PostgresTransaction,
    TurnView,
    head_of,
)
from kept.storage.shared import MOVED, MOVING, WRITE_WAIT_S, check_fence, random_hex
from kept.storage.weights import Chunks, Weights

T = TypeVar("T")
# An error, a division by zero, ends the transaction unless the head is as it was read and no other writer has it.
_IS_SAME = """
    select 1 / count(*)
    from (
      select 1
      from heads
      where space = %(space)s and last_ids = %(ids)s and turns = %(turns)s
        and vector_model is not distinct from %(model)s
      for update skip locked
    ) head"""
_CLOCK: Asked = ("select clock_timestamp()", None)
_ROLE: Asked = (schema.ROLE_ASKED, None)
FAR_S = 0.002  # a round trip from which on fewer of them are worth the work of rounds
PATIENT_TURNS = 16  # that wait for the head first, after one that others were faster than
VACUUM_LIMIT_S = 300.0
COMMIT_WAIT_S = 60.0  # for a standby that does not answer
_READER = {"statement_timeout": str(READ_LIMIT_MS)}
_NOTES = {"statement_timeout": str(READ_LIMIT_MS), "synchronous_commit": "off"}
_WITH_WORDS = ("memories", "postings", "hot_words", "records", "messages", "event_payloads", "receipts", "vectors")
_UNCONFIRMED = "synchronous replication"  # in the warning that comes with a commit which no standby confirmed


def _same(row: Sequence[Any]) -> dict[str, Any]:
    return {"ids": row[LAST_IDS], "turns": row[TURNS], "model": row[VECTOR_MODEL]}


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
        is_known: bool = False,
        is_far: bool | None = None,
    ) -> None:
        """Open the space, creating it if need be. `must_exist`: raise NotFound instead.

        `is_known`: it was there before, so its name and the role are checked together with the first question.
        `is_far`: whether to work in few round trips; None: as it is measured, and at first as if it were far.
        """
        self.space = space
        self._number = number_of(space)
        self._write_wait_s = write_wait_s
        self._salt = salt
        self._weights = Weights()
        self._database = Database(url)
        self._is_far = is_far
        self._patience = 0
        self._is_standby = False  # as the last reader saw
        self._local = threading.local()  # the rounds of each thread
        self._known: tuple[Any, Known] = (None, {})  # by the last reader, and in which turn that was
        self._left: tuple[Any, Chunks] = (None, {})  # by the last turn: its end, and the weights that it wrote
        self._now = now
        self._is_checked = False  # the role may be here, and the space is there
        if is_known:
            return
        try:
            self._open(must_exist)
        except BaseException:
            self._database.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[PostgresReader]:
        if (rounds := self._rounds()) is not None and not rounds.is_settled:
            yield PostgresReader(rounds.view, self._weights)
            return
        with self._look() as (connection, _, known, _):
            yield PostgresReader(SpaceView(self.space, self._number, connection, known), self._weights)
            connection.execute("commit")

    @property
    def is_far(self) -> bool:
        return self._database.trip_s >= FAR_S if self._is_far is None else self._is_far

    def in_rounds(self, work: Callable[[], T]) -> T:
        """Run a function that reads this space, in few round trips (see rounds.py)."""
        if self._rounds() is not None:
            return work()
        rounds = Rounds(self.space, self._number, self._first_round, self._known[1])
        try:
            return self._run(rounds, work)
        except (StorageError, Busy) as error:
            if rounds.is_settled or not gave_up(error):
                raise
        if not self._is_checked:
            self._open(must_exist=True)  # which also measures the distance
        if not self.is_far:
            return work()  # in a large space: each statement for itself, with the time that is left
        return self._run(Rounds(self.space, self._number, self._first_round, self._known[1], is_late=True), work)

    def _run(self, rounds: Rounds, work: Callable[[], T]) -> T:
        if self._patience:
            self._patience, rounds.is_hasty = self._patience - 1, False
        self._local.rounds = rounds
        try:
            return rounds.run(work)
        finally:
            self._local.rounds = None

    def settle(self) -> None:
        """Inside `in_rounds`: from here on something may change."""
        if (rounds := self._rounds()) is not None:
            rounds.settle()

    def _rounds(self) -> Rounds | None:
        return getattr(self._local, "rounds", None)

    @contextmanager
    def _first_round(self, asked: Sequence[Asked], limit_ms: int) -> Iterator[FirstRound]:
        with self._look(asked, limit_ms) as begun:
            yield begun
            connection = begun.connection
            if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
                connection.execute("commit")

    @contextmanager
    def _look(self, asked: Sequence[Asked] = (), limit_ms: int = READ_LIMIT_MS) -> Iterator[FirstRound]:
        """Yield a transaction that reads; the rows known of before are those of the same state of the space."""
        head = f"select {self._head_columns()}, pg_is_in_recovery() from heads where space = {self._number:d}"
        limits = {"statement_timeout": str(limit_ms)}
        is_checked = self._is_checked  # another thread may check meanwhile
        asked = [(head, None), *asked] if is_checked else [_CLOCK, _ROLE, (head, None), *asked, _CLOCK]
        try:
            with self._transaction(level=READS, limits=limits, asked=asked) as (connection, found):
                if not is_checked:
                    found = self._without_check(connection, found)
                    self._note_name(found[0])
                *row, self._is_standby = found[0][0] if found[0] else (None, False)
                state = (row[TURNS], row[LAST_HASH]) if found[0] else None  # notes of a recall change neither
                read, known = self._known  # at once: another thread may read a newer state in between
                if read != state:
                    known = {}
                    self._known = (state, known)
                yield FirstRound(connection, found[1:], known, tuple(row) if found[0] else None)
        except (NotAllowed, StorageError) as error:
            if not self._is_checked and not is_lost(error.__cause__):
                self._open(must_exist=True)  # raises an error that says more
            raise

    @contextmanager
    def writing(
        self, stamp: Stamp, *, urgent: bool = False, wait_s: float | None = None
    ) -> Iterator[PostgresTransaction]:
        wait_s = self._write_wait_s if wait_s is None else wait_s
        rounds = self._rounds()
        if rounds is not None and not rounds.is_settled and rounds.is_hasty and wait_s > 0:
            with self._hasty_turn(rounds, stamp, wait_s) as transaction:
                yield transaction
            return
        with self._turn(wait_s) as (connection, head):
            self._check_fence(head, stamp)
            state = (head.turns, head.last_hash)
            (left, chunks), self._left = self._left, (None, {})  # a turn that fails has changed them
            chunks = chunks if left == state else {}
            read, known = self._known
            known = known if read == state else {}
            view = TurnView(self.space, self._number, connection, stamp, self._salt, head, chunks, known)
            with self._committing(connection, view):
                yield PostgresTransaction(view, self._weights)
                view.end()
            self._note_end(view)

    def _note_end(self, view: TurnView) -> None:
        """Remember the head of the space for the next turn and the next reader, unless others write before them."""
        state = (view.head.turns, view.head.last_hash)
        self._left, self._known = (state, view.chunks), (state, view.still_known())

    @contextmanager
    def _hasty_turn(self, rounds: Rounds, stamp: Stamp, wait_s: float) -> Iterator[PostgresTransaction]:
        """Judge before the turn; then lock the head, compare it, write and commit, all in one round trip."""
        head = self._head(rounds.head) if rounds.head is not None else Head(self.space, b"", {}, 0, FIRST_PREV, None, 0)
        left, chunks = self._left
        copied = {chunk: [*map(bytearray, blobs)] for chunk, blobs in chunks.items()}  # this run may not count
        self._check_fence(head, stamp)
        state = (head.turns, head.last_hash)
        view = HastyTurnView(rounds, stamp, self._salt, head, copied if left == state else {})
        before = rounds.head
        yield PostgresTransaction(view, self._weights)
        view.end()
        rounds.settle()
        connection = rounds.connection
        if before is None or connection is None:  # the space has no head yet, or the connection is in use
            rounds.refuse()
        rounds.connection = rounds.head = None
        try:
            with translated(self._database.place), self._committing(connection, view, wait_s) as pipeline:
                self._start(connection, pipeline, self._turn_limits(wait_s))
                connection.execute(self._lock(waits=True)[0][0])
                SpaceView(self.space, self._number, connection).run(_IS_SAME, **_same(before))
                view.send(connection)
        except StorageError as error:
            leave(connection)
            if isinstance(error.__cause__, errors.LockNotAvailable):
                raise self._busy(wait_s) from error
            if isinstance(error.__cause__, errors.DivisionByZero | errors.PipelineAborted):
                self._patience = PATIENT_TURNS
                rounds.refuse()
            raise
        rounds.connection = connection
        self._note_end(view)

    def _start(self, connection: Connection, pipeline: psycopg.Pipeline, limits: dict[str, str]) -> None:
        """End a transaction that has read, and begin one that writes."""
        start(connection, pipeline, self._database.opening(self._number, WRITES, limits), is_open=True)

    @contextmanager
    def bookkeeping(self, *, passes_fence: bool = False) -> Iterator[PostgresBookkeeping | None]:
        if self._is_standby:
            yield None
            return
        self.settle()
        self._ensure()
        rounds = self._rounds()
        if rounds is not None and rounds.head is not None and rounds.connection is not None:
            with self._in_haste(rounds, rounds.head, passes_fence) as notes:
                yield notes
            return
        asked = self._lock(waits=False)
        with self._transaction(level=WRITES, limits=_NOTES, asked=asked) as (connection, found):
            head = self._head_for_notes(next(iter(found[-1]), None), passes_fence)
            if head is None:
                yield None
                connection.execute("rollback")
            else:
                with connection.pipeline():
                    yield PostgresBookkeeping(SpaceView(self.space, self._number, connection), head)
                    connection.execute("commit")

    @contextmanager
    def _in_haste(
        self, rounds: Rounds, row: tuple[Any, ...], passes_fence: bool
    ) -> Iterator[PostgresBookkeeping | None]:
        """Take notes in one round trip, with the head of the space as it was read; if that has changed, read again."""
        connection, head = rounds.connection, self._head_for_notes(row, passes_fence)
        assert connection is not None
        if head is None:
            yield None
            return
        rounds.connection = rounds.head = None
        view = SpaceView(self.space, self._number, connection)
        try:
            with translated(self._database.place), connection.pipeline() as pipeline:
                self._start(connection, pipeline, _NOTES)
                view.run(_IS_SAME, **_same(row))
                yield PostgresBookkeeping(view, head)
                connection.execute("commit")
        except StorageError as error:
            leave(connection)
            if isinstance(error.__cause__, errors.DivisionByZero | errors.PipelineAborted):
                rounds.refuse()
            raise
        rounds.connection = connection

    @contextmanager
    def in_bulk(self) -> Iterator[None]:
        yield

    @contextmanager
    def making_room(self) -> Iterator[None]:
        yield

    @contextmanager
    def lease(self, name: str, *, wait_s: float = 0.0) -> Iterator[bool]:
        """Held by a connection of its own, in a transaction that reads one row; it ends with that.

        Asked of the head, so that in a cluster the one node that holds the space gives it, for clients of all nodes.
        """
        self.settle()
        number = number_of(f"{self.space} lease {name}")
        lock = f"select pg_try_advisory_xact_lock({number:d}) from heads where space = {self._number:d}"
        end = time.monotonic() + wait_s
        while True:
            with self._transaction(level=HOLDS, limits={}, asked=[(lock, None)]) as (connection, [found]):
                is_ours = found == [(True,)]
                if is_ours or time.monotonic() >= end:
                    yield is_ours
                    connection.execute("rollback")
                    return
                connection.execute("rollback")
            time.sleep(RETRY_S)

    def scrub(self) -> Scrubbed:
        """Reclaim the room of erased rows, where the role may (PostgreSQL 17); the rest is the operator's."""
        with self._database.alone() as connection:
            # Not a setting of the session: behind a pooler it would stay on the backend, for other clients.
            limit = threading.Timer(VACUUM_LIMIT_S, connection.cancel_safe)
            limit.daemon = True
            limit.start()
            try:
                connection.execute(f"vacuum {', '.join(f'{SCHEMA}.{table}' for table in _WITH_WORDS)}")  # of all spaces
            except psycopg.Error:
                return Scrubbed(is_done=False)
            finally:
                limit.cancel()
            return Scrubbed()

    def describe(self) -> dict[str, Any]:
        with self._transaction(level=READS, limits=_READER) as (connection, _):
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

    def _ensure(self) -> None:
        """Make sure that the space is there."""
        if not self._is_checked:
            self._open(must_exist=False)

    def _open(self, must_exist: bool) -> None:
        found = self._name(None)
        if not found and must_exist:
            raise NotFound(f"There is no {self.space} in {self._database.place} yet.")
        if not found:
            sql = """
                insert into heads (space, name, created_at, tombstone_key, last_ids, last_event, last_hash, turns)
                values (%(space)s, %(name)s, %(at)s, %(key)s, '{}', 0, %(hash)s, 0)
                on conflict (space) do nothing"""
            key = bytes.fromhex(random_hex(32))
            values = {"space": self._number, "name": self.space, "at": self._now(), "key": key, "hash": FIRST_PREV}
            found = self._name((sql, values))
        self._note_name(found)

    def _note_name(self, heads: Rows) -> None:
        """Note whether the space is there. Raises InvalidInput if its number is that of another one."""
        if heads and heads[0][0] != self.space:
            why = f"The names {self.space} and {heads[0][0]} have the same number."
            raise InvalidInput(why, hint="Choose another name.")
        self._is_checked = bool(heads)

    def _without_check(self, connection: Connection, found: list[list[tuple[Any, ...]]]) -> list[list[tuple[Any, ...]]]:
        """Check the role, and measure the distance by the rows around; return those of the other statements."""
        [[(begun,)], [role], *rest, [(ended,)]] = found
        self._database.know_work((ended - begun) / 1_000_000)
        self._database.look_for_pooler(connection, role[-1])
        schema.check_role(role, self._database.place)
        self._database.is_sharded = role[schema.IS_SHARDED]
        return rest

    def _name(self, first: Asked | None) -> list[tuple[Any, ...]]:
        """Check the role and return the name in the head of the space, if it has one, after a first statement."""
        asked: list[Asked] = [
            _CLOCK,
            _ROLE,
            *([] if first is None else [first]),
            ("select name from heads where space = %(space)s", {"space": self._number}),
            _CLOCK,
            ("commit", None),
        ]
        level = READS if first is None else WRITES
        try:
            with self._transaction(level=level, limits=_READER, asked=asked) as (connection, found):
                return self._without_check(connection, found[:-1])[-1]
        except (NotAllowed, StorageError) as error:
            if isinstance(error.__cause__, errors.InsufficientPrivilege | errors.UndefinedTable):
                with self._transaction(level=READS, limits=_READER, asked=[asked[1], asked[-1]]) as (_, found):
                    schema.check_role(found[0][0], self._database.place)
            raise

    @contextmanager
    def _transaction(
        self, *, level: str, limits: dict[str, str], asked: Sequence[Asked] = (), wait_s: float | None = None
    ) -> Iterator[tuple[Connection, list[list[tuple[Any, ...]]]]]:
        """Yield a transaction of this space; after rounds on their connection, unless that one is in use."""
        wait_s = self._write_wait_s if wait_s is None else wait_s
        rounds = self._rounds()
        on = None if rounds is None else rounds.connection
        if rounds is not None:
            rounds.connection = None
        try:
            begun = self._database.transaction(
                self._number, level=level, limits=limits, asked=asked, wait_s=wait_s, on=on
            )
            with begun as found:
                yield found
        finally:
            if rounds is not None:
                rounds.connection = on

    @contextmanager
    def _turn(self, wait_s: float) -> Iterator[tuple[Connection, Head]]:
        """This connection's turn to write, with the head of the space locked."""
        limits = self._turn_limits(wait_s)
        self.settle()
        self._ensure()
        asked = self._lock(waits=wait_s > 0)
        try:
            with self._transaction(level=WRITES, limits=limits, asked=asked, wait_s=wait_s) as (connection, found):
                row = next(iter(found[-1]), None)
                if row is None:
                    raise self._busy(wait_s)
                yield connection, self._head(row)
        except Busy as error:
            if isinstance(error.__cause__, errors.LockNotAvailable):
                raise self._busy(wait_s) from error
            raise

    def _turn_limits(self, wait_s: float) -> dict[str, str]:
        return {
            "lock_timeout": f"{max(1, round(wait_s * 1_000)):d}",
            "statement_timeout": f"{WRITE_LIMIT_MS + round(wait_s * 1_000):d}",
        }

    def _busy(self, wait_s: float) -> Busy:
        why = f"Another connection has been writing to {self.space} for more than {wait_s:g} s."
        return Busy(why, hint="Try again.")

    def _lock(self, *, waits: bool) -> list[Asked]:
        """Return the statements that take the turn: the second one locks the head of the space, and reads it."""
        queue = "select pg_advisory_xact_lock" if waits else "select pg_try_advisory_xact_lock"
        head = f"""
            select {self._head_columns()}
            from heads
            where space = {self._number:d}
            for update {"" if waits else "skip locked"}"""
        return [(f"{queue}({self._number:d})", None), (head, None)]

    def _head_columns(self) -> str:
        return f"""{HEAD_COLUMNS},
            (select max(name || ' ' || note) from file_notes
             where space = {self._number:d} and name in ('{MOVING}', '{MOVED}')),
            (select max(version) from migrations where space = 0)"""

    def _head(self, row: Sequence[Any]) -> Head:
        *columns, fence, version = row
        schema.check_version(version, self._database.place)
        head = head_of(columns)
        head.fence = fence
        return head

    def _head_for_notes(self, row: Sequence[Any] | None, passes_fence: bool) -> Head | None:
        """Return the head; None if another process writes the space, or a move has not ended."""
        head = None if row is None else self._head(row)
        if head is None or passes_fence or head.fence is None:
            return head
        return None if plain(head.fence).startswith(f"{MOVING} ") else head

    def _check_fence(self, head: Head, stamp: Stamp) -> None:
        if head.fence is not None and not stamp.passes_fence:
            name, _, note = plain(head.fence).partition(" ")
            check_fence(self.space, {name: note})

    @contextmanager
    def _committing(
        self, connection: Connection, view: TurnView, turn_wait_s: float = 0.0
    ) -> Iterator[psycopg.Pipeline]:
        """Commit after the block; if nobody can tell whether that worked, find out, or raise an error that says so.

        `turn_wait_s`: how long the statements before the commit may wait, if they are sent together with it.
        """
        warnings: list[str] = []

        def note(notice: Diagnostic) -> None:
            warnings.append(notice.message_primary or "")

        is_ending = False
        # No time limit of PostgreSQL's holds while a commit waits for a standby. Cancelled, it comes with that warning.
        patience = threading.Timer(COMMIT_WAIT_S + turn_wait_s, connection.cancel_safe)
        patience.daemon = True
        connection.add_notice_handler(note)
        try:
            with connection.pipeline() as pipeline:
                yield pipeline
                is_ending = True
                patience.start()
                connection.execute("commit")
        except psycopg.Error as error:
            if not (is_ending and is_lost(error)) or isinstance(error, errors.ReadOnlySqlTransaction):
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
