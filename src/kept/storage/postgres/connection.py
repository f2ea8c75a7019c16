"""Connections to PostgreSQL: pooled, each transaction bound to one space, with errors turned into ours.

What a transaction needs is said in one round trip when it begins: isolation, the space that row-level security lets it
see, the schema, time limits. All of it is SET LOCAL, so it ends with the transaction, also behind a pooler such as
pgbouncer. In a cluster of Citus a transaction that writes begins with a change, so that its shard does not move before
it ends. Rule: a connection goes back into the pool with nothing left on it, or not at all; and the first thing that
every statement says is its space, `%(space)s`.
"""

import logging
import os
import re
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from math import inf
from typing import Any

import psycopg
from psycopg import errors
from psycopg.adapt import AdaptersMap
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8BinaryDumper, Int8BinaryLoader
from psycopg.types.string import StrDumper, StrDumperUnknown
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from kept.errors import Busy, Corrupt, InvalidInput, KeptError, NotAllowed, StorageError
from kept.ports import Deadline, TooLate
from kept.storage.ranking import EXACT_UP_TO_ROWS
from kept.storage.shared import block

log = logging.getLogger("kept")
SCHEMA = "kept"
OLDEST_SERVER = 140_000
SEARCH_PATH = f"{SCHEMA}, pg_temp"  # unless it is named, pg_temp is searched first, before PostgreSQL's own names
# Of every transaction. In a cluster of Citus the first passes the others, and the space, on to the worker.
SETTINGS = {"citus.propagate_set_commands": "local", "search_path": SEARCH_PATH}
READS = "repeatable read read only"  # one moment
HOLDS = "read committed read only"  # a lock, for a while: without a snapshot, which would keep dead rows
WRITES = "read committed"
# Changes no row. Citus finishes moving a shard when no transaction is changing that; a worker lets one that has only
# read go on with the tables it has read on the old node, and with the others on the new one. So a change comes first.
STAYS = "update heads set turns = turns where space = {:d} and turns < 0"
NODE_PASSWORDS = (
    "Nodes of a Citus cluster log in at each other as the role of the client. Where they ask for passwords, a "
    "superuser puts that of each role into pg_dist_authinfo on every node, or into ~/.pgpass of the user that runs "
    "PostgreSQL there."
)
READ_LIMIT_MS = 30_000  # for one statement of a reader; recall has a deadline of its own
WRITE_LIMIT_MS = 60_000  # for one statement of a writer, waiting for a standby included
CONNECT_WAIT_S = 10  # for one attempt to connect
IDLE_S = 300  # after which a connection that nobody needs is closed
MOST_CONNECTIONS = 16
RECONNECT_S = 10.0  # how long a server may be gone before a caller is told
FIRST_S = 2.0  # the same for one that this process has not seen yet: hooks and commands end soon
RETRY_S = 0.5
FEWEST_S = 1.0
FEW = 1_000  # rows that are remembered
AT_ONCE = 32  # rows of a statement, unless they are small

# pgvector's type halfvec, if it is there: numbers of two bytes, as in our vectors. No other type of that name will do.
# Every role may make one in pg_temp, and code of that role would then run as the owner.
HALFVEC = f"""
    select t.oid, t.typnamespace::regnamespace::text as place
    from pg_type t
    join pg_roles o on o.oid = t.typowner
    join pg_depend d on d.classid = 'pg_type'::regclass and d.objid = t.oid and d.deptype = 'e'
    join pg_extension e on d.refclassid = 'pg_extension'::regclass and d.refobjid = e.oid
    where t.typname = 'halfvec' and e.extname = 'vector'
      and (o.rolsuper or o.oid = (select nspowner from pg_namespace where nspname = '{SCHEMA}'))"""
_REFUSAL = re.compile(
    "authentication failed|no password supplied|pg_hba.conf|is not permitted to log in|permission denied for database"
    '|role ".*" does not exist'
)
_NOT_THERE = re.compile("Connection refused|No such file or directory")  # nothing listens: it is known at once
_NODE = re.compile(r"connection to the remote node (.*)@(\S+) failed with the following error: ([^\n]*)")
# Citus copies these to every node; the number is that of the copies.
_COPY = re.compile(rf'"{SCHEMA}\.(?:migrations|ties)_\d+"')
NUL, ESCAPE = "\0", "\ue000"  # PostgreSQL's text cannot hold the first, so the second, of private use, stands in for it
Connection = psycopg.Connection[tuple[Any, ...]]
Rows = Sequence[tuple[Any, ...]]
Asked = tuple[str, dict[str, Any] | None]  # a statement and its values
_FILLED = tuple(
    (shelf, 1_000, 10_000, 10_000, None) for shelf in range(5)
)  # the guess: there is something on every shelf
CORPUS = "select shelf, rows, words, tokens, counted_at from corpus where space = %(space)s"
Known = dict[tuple[Any, ...], list[tuple[Any, ...]]]  # statement and values → rows, as of one state of a space


class Array(str):
    """An array as PostgreSQL writes it."""


def adapted(value: Any) -> Any:
    """A value as PostgreSQL can hold it: texts are escaped (see `plain`), lists and tuples become arrays."""
    if isinstance(value, str):
        return value if NUL not in value and ESCAPE not in value else _escaped(value)
    return _array_of(value) if isinstance(value, list | tuple) else value


def plain(text: Any) -> Any:
    """The text that was adapted."""
    if text is None or ESCAPE not in text:
        return text
    return str(text).replace(ESCAPE + "0", NUL).replace(ESCAPE + "1", ESCAPE)


def _escaped(text: str) -> str:
    return text.replace(ESCAPE, ESCAPE + "1").replace(NUL, ESCAPE + "0")


def _array_of(items: Sequence[Any]) -> Array:
    if items and isinstance(items[0], str):
        items = [_escaped(item).replace("\\", r"\\").replace('"', r"\"") for item in items]
        items = [f'"{item}"' for item in items]
    return Array(f"{{{','.join(map(str, items))}}}")


@lru_cache(maxsize=1)
def _adapters() -> AdaptersMap:
    # Those of psycopg's own types are written in C.
    adapters = AdaptersMap(psycopg.adapters)
    adapters.register_dumper(str, StrDumper)
    adapters.register_dumper(Array, StrDumperUnknown)
    adapters.register_dumper(int, Int8BinaryDumper)  # one type for all: a statement is prepared once, not once a size
    adapters.register_loader("timestamptz", Int8BinaryLoader)  # as the number it is sent as: rows.moment
    return adapters


class Database:
    """The pool of one database and one role. Opened by the first use, and again in a child after a fork."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.place = place_of(url)
        self.is_closed = False
        self._pooler = threading.Event()  # set: there is one between us and the server
        self._pool: ConnectionPool[Connection] | None = None
        self._pid = 0
        self._opening = threading.Lock()
        self._refusals: list[psycopg.OperationalError] = []  # of logins, by the worker of the pool
        self._absences: list[psycopg.OperationalError] = []  # of a server at its address, likewise
        self._is_away = False  # the last caller waited for the server in vain
        self.is_sharded = False  # as the check of the role finds out
        self.trip_s = self._last_s = inf  # the shortest round trip so far, with the server's work on it; the last one

    @contextmanager
    def transaction(
        self,
        number: int,
        *,
        level: str,
        limits: Mapping[str, str],
        asked: Sequence[Asked] = (),
        wait_s: float,
        on: "Connection | None" = None,
    ) -> Iterator[tuple[Connection, list[list[tuple[Any, ...]]]]]:
        """Yield a connection inside a transaction of a space, and the rows of each statement asked; the caller commits.

        `level` is READS, HOLDS or WRITES. A connection whose server is gone is replaced, for a while, as long as
        nothing has happened on it. `on`: one that the caller has, perhaps in a transaction that only read; that one
        ends in the same round trip.
        """
        with translated(self.place):
            opening = self.opening(number, level, limits)
            connection, rows = self._begun(opening, asked, wait_s=wait_s, on=on)
            try:
                yield connection, rows
            except BaseException:
                leave(connection)
                raise
            finally:
                if connection is not on:
                    self._opened().putconn(connection)

    def opening(self, number: int, level: str, limits: Mapping[str, str]) -> list[str]:
        """Return the statements that begin a transaction in a space."""
        settings = SETTINGS | {"kept.space": f"'{number:d}'", **limits}
        opening = [
            f"begin isolation level {level}",
            *(f"set local {name} = {value}" for name, value in settings.items()),
        ]
        return [*opening, STAYS.format(number)] if self.is_sharded and level == WRITES else opening

    def _begun(
        self, opening: Sequence[str], asked: Sequence[Asked], *, wait_s: float, on: "Connection | None"
    ) -> tuple[Connection, list[list[tuple[Any, ...]]]]:
        end = time.monotonic() + min(max(wait_s, FEWEST_S), self._patience_s)
        while True:
            connection = self._take(wait_s, end) if on is None or on.closed else on
            _configure(self._pooler, connection)  # it may be older than the news of a pooler
            started = time.perf_counter()
            try:
                rows = begin(connection, opening, asked)
                self._note_trip(time.perf_counter() - started)
                self._is_away = False
                return connection, rows
            except BaseException as error:
                leave(connection)
                if is_lost(error):
                    connection.close()
                if connection is not on:
                    self._opened().putconn(connection)
                if not is_lost(error) or time.monotonic() > end:
                    raise
                if lost_node(error):  # this server answers at once, so nothing else waits for the other one
                    time.sleep(RETRY_S)

    @property
    def _patience_s(self) -> float:
        if self.trip_s == inf:
            return FIRST_S
        return RETRY_S if self._is_away else RECONNECT_S

    def _note_trip(self, seconds: float) -> None:
        self._last_s, self.trip_s = seconds, min(self.trip_s, seconds)

    def know_work(self, seconds: float) -> None:
        """Take off the time of the last round trip that the server itself has worked."""
        self._note_trip(max(0.0, self._last_s - seconds))

    def _take(self, wait_s: float, end: float) -> Connection:
        """A connection from the pool. While all are in use, wait; while the server does not answer, until `end`."""
        give_up = time.monotonic() + wait_s
        is_told = False
        while True:
            try:
                return self._opened().getconn(timeout=RETRY_S)
            except PoolClosed as error:
                raise closed(self.place) from error
            except PoolTimeout as error:
                if reason := self._reason_not_to_wait():
                    raise _unconnected(reason, self.url) from error
                is_full = self._opened().get_stats().get("pool_size", 0) >= MOST_CONNECTIONS
                if time.monotonic() < (give_up if is_full else end):
                    if not is_full and not is_told:
                        _tell_waiting(self.place)
                    is_told = True
                    continue
                if is_full:
                    why = f"All {MOST_CONNECTIONS} connections to {self.place} were in use for {wait_s:g} s."
                    raise Busy(why, hint="Try again.") from error
                self._is_away = True  # the next ones do not wait for as long
                with self.alone():
                    pass
                raise Busy(f"{self.place} gave no connection in time.", hint="Try again.") from error

    def _reason_not_to_wait(self) -> psycopg.OperationalError | None:
        """Return why there is no connection, if waiting does not help, or a hook or a command has no time for it."""
        found = self._refusals or (self._absences if self.trip_s == inf else [])
        return found.pop() if found else None

    @contextmanager
    def alone(self) -> Iterator[Connection]:
        """A connection of its own, outside of any transaction. Raises StorageError that says why there is none."""
        with translated(self.place), connected(self.url, **_HOW) as connection:
            yield connection

    def look_for_pooler(self, connection: Connection, backend: int) -> None:
        """Prepare no statements behind a pooler, such as pgbouncer: the next transaction may be on another backend."""
        if backend != connection.info.backend_pid:
            self._pooler.set()
            _configure(self._pooler, connection)

    def close(self) -> None:
        self.is_closed = True
        if self._pool is not None and self._pid == os.getpid():
            self._pool.close()

    def _opened(self) -> "ConnectionPool[Connection]":
        if self.is_closed:
            raise closed(self.place)
        if self._pool is not None and self._pid == os.getpid():
            return self._pool
        if self._pid not in (0, os.getpid()):  # in a child: its parent's connections and locks are not for us
            self._pool, self._opening = None, threading.Lock()
        with self._opening:
            if self._pool is None:
                self._pool = self._new_pool()
                weakref.finalize(self, _end, self._pool, os.getpid())
            self._pid = os.getpid()
            return self._pool

    def _new_pool(self) -> "ConnectionPool[Connection]":
        logging.getLogger("psycopg").addHandler(logging.NullHandler())  # what fails is raised, not printed
        return ConnectionPool(
            self.url,
            connection_class=_noting(self._refusals, self._absences),
            kwargs=_HOW,
            min_size=0,
            max_size=MOST_CONNECTIONS,
            max_idle=IDLE_S,
            reconnect_timeout=RETRY_S,
            num_workers=1,
            configure=partial(_configure, self._pooler),  # not a method, which would keep this object alive
            reset=_reset,
            open=True,
            name="kept",
        )


def _noting(refusals: list[psycopg.OperationalError], absences: list[psycopg.OperationalError]) -> type[Connection]:
    """Return a connection that notes why there is none: the pool tries again and tells no reason."""

    class NotingConnection(psycopg.Connection[tuple[Any, ...]]):
        @classmethod
        def connect(cls, *where: Any, **how: Any) -> Any:
            try:
                return super().connect(*where, **how)
            except psycopg.OperationalError as error:
                refusals[:] = [error] if _is_refusal(error) else []
                absences[:] = [error] if _is_not_there(error) else []
                raise

    return NotingConnection


def _end(pool: "ConnectionPool[Connection]", pid: int) -> None:
    """Close the pool of a storage that nobody closed. Its own worker may be the thread that finds out."""
    if pid == os.getpid() and not pool.closed:
        with suppress(RuntimeError):
            pool.close(timeout=1.0)


def _tell_waiting(place: str) -> None:
    """Log that a caller waits for a server, where a program listens: Python would print it among a hook's output."""
    if log.hasHandlers():
        log.warning("%s does not answer yet. Waiting for it.", place)


class _Context:
    """How values are adapted."""

    connection = None

    @property
    def adapters(self) -> AdaptersMap:
        return _adapters()


_HOW: dict[str, Any] = {"autocommit": True, "context": _Context(), "connect_timeout": CONNECT_WAIT_S}


class SpaceView:
    """One transaction in one space: what every reader reads with."""

    is_guessing = False  # in rounds.py
    is_still = True  # it shows one moment; a turn to write sees its own changes
    asked_with: dict[tuple[int, str], tuple[str, ...]]  # there: shelf and word → the words that were asked with it

    def __init__(self, space: str, number: int, connection: Connection, known: Known | None = None) -> None:
        self.space = space
        self.number = number
        self.bare = connection
        self.known = {} if known is None else known
        self._deadline: Deadline | None = None

    def fetch(self, sql: str, *, guess: Rows = (), **values: Any) -> list[tuple[Any, ...]]:
        """Return all rows of a query; its `%(space)s` is this space. `guess`: rows for rounds.py to go on with."""
        found = self._execute(sql, values).fetchall()
        if self._deadline is not None and self._deadline.left_s <= 0:
            raise TooLate
        return found

    def run(self, sql: str, **values: Any) -> None:
        """Run a statement that changes rows."""
        self._execute(sql, values)

    def _execute(self, sql: str, values: dict[str, Any]) -> "psycopg.Cursor[tuple[Any, ...]]":
        return self.bare.execute(sql, self.bound(values), binary=True)

    def add(self, statement: bytes, values: Sequence[Any]) -> None:
        """Run an insertion whose values are numbered; no placeholders are looked for in thousands of characters."""
        psycopg.RawCursor(self.bare).execute(statement, values, prepare=True)

    def bound(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of a statement as PostgreSQL takes them."""
        return {"space": self.number} | {name: adapted(value) for name, value in values.items()}

    def once(self, sql: str, *, guess: Rows = (), **values: Any) -> list[tuple[Any, ...]]:
        """Fetch rows and remember them until the space has changed: for few rows that every recall needs."""
        asked = (sql, *values.items())
        found = self.known.get(asked)
        if found is None:
            found = self.fetch(sql, guess=guess, **values)
            if len(found) <= FEW:
                self.known[asked] = found
        return found

    def corpus(self) -> dict[int, tuple[Any, ...]]:
        """Shelf → its rows, words and tokens, and how many rows it had when its hot words were counted."""
        return {row[0]: row[1:] for row in self.once(CORPUS, guess=_FILLED)}

    @property
    def is_large(self) -> bool:
        """Return True if a search may take long here."""
        return any(n_rows > EXACT_UP_TO_ROWS for n_rows, *_ in self.corpus().values())

    def counts(self, shelf: int) -> tuple[int, int, int]:
        """Rows, words and tokens of a shelf."""
        n_rows, n_words, n_tokens, _ = self.corpus().get(shelf, (0, 0, 0, None))
        return n_rows, n_words, n_tokens

    @block
    def until(self, deadline: Deadline | None) -> Iterator[None]:
        """Raise TooLate inside the block, soon after the deadline is over. The transaction goes on.

        In a small space no statement takes long: there it is looked at after each, which costs no statement more.
        """
        if deadline is None or deadline.left_s >= READ_LIMIT_MS / 1_000:
            yield
            return
        if deadline.left_s <= 0:
            raise TooLate
        is_large = self.is_large
        if is_large:
            left_ms = max(1, round(deadline.left_s * 1_000))
            with self.bare.pipeline():
                self.bare.execute("savepoint search")
                self.bare.execute(f"set local statement_timeout = {left_ms:d}")
        self._deadline = deadline
        try:
            yield
        except errors.QueryCanceled as error:
            raise TooLate from error
        finally:
            self._deadline = None
            if is_large:
                with suppress(psycopg.Error):  # which also takes the time limit back; a search writes nothing
                    self.bare.execute("rollback to savepoint search")


def begin(connection: Connection, opening: Sequence[str], asked: Sequence[Asked] = ()) -> list[list[tuple[Any, ...]]]:
    """Begin a transaction and return the rows of the statements asked, all in one round trip.

    Each statement goes on its own: a sharded database would pass a text of several on whole, for each of them.
    """
    is_open = connection.info.transaction_status != TransactionStatus.IDLE
    with connection.pipeline() as pipeline:
        start(connection, pipeline, opening, is_open=is_open)
        cursors = [connection.execute(sql, values, binary=True) for sql, values in asked]
    return rows_of(cursors)


def start(connection: Connection, pipeline: psycopg.Pipeline, opening: Sequence[str], *, is_open: bool) -> None:
    """Send the statements that begin a transaction; the one that is open ends first."""
    texts = ["commit", *opening] if is_open else opening

    def send() -> None:
        for text in texts:
            connection.pgconn.send_query_params(text.encode(), None)

    # One command of the driver for all of them, which return no rows: for each on its own it would wake the server up.
    pipeline.command_queue.append(send)
    pipeline.result_queue.extend([None] * len(texts))


def rows_of(cursors: "Sequence[psycopg.Cursor[tuple[Any, ...]]]") -> list[list[tuple[Any, ...]]]:
    """Return the rows of statements that have ended; none for one that returns none."""
    return [cursor.fetchall() if cursor.description else [] for cursor in cursors]


def insert(
    view: SpaceView,
    table: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    same: Sequence[Any] = (),
    rest: str = "",
    at_once: int = AT_ONCE,
) -> None:
    """Insert rows in few statements of few sizes, so that each is prepared once.

    Rows are given without their space, and without the values of the first columns if these are the `same` in all.
    """
    start, shared = 0, [view.number, *same]
    while start < len(rows):
        size = at_once
        while size > len(rows) - start:
            size = max(1, size // 4)
        values = shared.copy()
        for row in rows[start : start + size]:
            values += row
        for place, value in enumerate(values):
            if type(value) is str and (NUL in value or ESCAPE in value):
                values[place] = _escaped(value)
        view.add(_insertion(table, tuple(columns), len(same), size, rest), values)
        start += size


@lru_cache(maxsize=256)
def _insertion(table: str, columns: tuple[str, ...], n_same: int, n_rows: int, rest: str) -> bytes:
    shared = ", ".join(f"${place + 1}" for place in range(n_same + 1))
    width = len(columns) - n_same
    own = [[f"${n_same + 2 + row * width + place}" for place in range(width)] for row in range(n_rows)]
    marks = ", ".join(f"({shared}, {', '.join(row)})" for row in own)
    return f"insert into {table} (space, {', '.join(columns)}) values {marks} {rest}".encode()


def place_of(url: str) -> str:
    """Where the database is, without user and password, for people to read. Raises InvalidInput."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise InvalidInput(
            "This is not the URL of a PostgreSQL database.", hint="Give one such as postgresql://user@host/database."
        ) from error
    host = parts.get("host") or parts.get("hostaddr") or "localhost"
    ports = {port for port in str(parts.get("port") or "").split(",") if port} - {"5432"}
    return f"postgresql://{host}{':' if ports else ''}{','.join(sorted(ports))}/{parts.get('dbname') or ''}"


def connected(url: str, **how: Any) -> Connection:
    """Connect to a database. Raises StorageError that names the reason and the next step, NotAllowed if it says no."""
    place = place_of(url)
    try:
        connection: Connection = psycopg.connect(url, **how)
    except psycopg.OperationalError as error:
        raise _unconnected(error, url) from error
    if connection.info.server_version < OLDEST_SERVER:
        found = connection.info.parameter_status("server_version")
        connection.close()
        raise StorageError(
            f"{place} is PostgreSQL {found}. Kept needs {OLDEST_SERVER // 10_000} or newer.",
            hint="Upgrade the server, or name another one.",
        )
    return connection


def _unconnected(error: psycopg.OperationalError, url: str) -> KeptError:
    """Say why there is no connection: the server refused the role, or cannot be reached."""
    why = next(iter(str(error).splitlines()), "").rpartition("failed: ")[2][:200]
    if _is_refusal(error):
        return NotAllowed(f"{place_of(url)} refuses this role: {why.rstrip('.')}.", hint=_help_with(why, url))
    return _away(f"{place_of(url)} cannot be reached: {why.rstrip('.')}.", hint=_help_with(why, url))


def _away(message: str, *, hint: str) -> StorageError:
    error = StorageError(message, hint=hint)
    error.is_away = True
    return error


def _is_not_there(error: psycopg.OperationalError) -> bool:
    """Return True if nothing listens at any of the addresses. A server that does not answer may be slow."""
    attempts = [line for line in str(error).splitlines() if "failed: " in line]
    return bool(attempts) and all(_NOT_THERE.search(line) for line in attempts)


def _is_refusal(error: psycopg.OperationalError) -> bool:
    """Return True if waiting does not help: libpq gives no code for the errors of a login."""
    return _REFUSAL.search(str(error)) is not None


def _help_with(why: str, url: str) -> str:
    """Return the advice for a connection that failed."""
    parts = conninfo_to_dict(url)
    if "password" not in why and "SASL authentication failed" not in why:
        return "Check that the server runs, and the host, port, database and role in the URL."
    host, port = parts.get("host") or "localhost", parts.get("port") or 5432
    line = f"{host}:{port}:{parts.get('dbname') or '*'}:{parts.get('user') or 'ROLE'}:PASSWORD"
    return (
        f"Put the line {line} into ~/.pgpass (chmod 600), with \\ before : and \\ in the password, or set PGPASSWORD."
    )


def closed(place: str) -> StorageError:
    return StorageError(f"The storage of {place} is closed.", hint="Open it again with kept.open().")


def is_lost(error: BaseException | None) -> bool:
    """Whether the error is one of the connection or of the server, and not of what was asked."""
    kinds = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.ReadOnlySqlTransaction)
    is_plain = isinstance(error, psycopg.OperationalError) and error.sqlstate is None
    if (node := lost_node(error)) and "password" in node[2]:  # which waiting does not help
        return False
    return is_plain or isinstance(error, kinds) or _is_of_connection(error)


def _is_of_connection(error: BaseException | None) -> bool:
    return isinstance(error, psycopg.Error) and (error.sqlstate or "").startswith("08")


def lost_node(error: BaseException | None) -> tuple[str, str, str] | None:
    """Return the role, the node and the reason if a node of a Citus cluster could not reach another one."""
    found = _NODE.search(str(error)) if _is_of_connection(error) else None
    return (found[1], found[2], found[3]) if found else None


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Turn psycopg's errors into ours."""
    try:
        yield
    except psycopg.Error as error:
        raise translation(error, place) from error


def translation(error: psycopg.Error, place: str) -> KeptError:
    """What an error of the driver or the server means to the caller."""
    if isinstance(error, errors.UndefinedTable) and _COPY.search(str(error)):
        return StorageError(
            f"A node of {place} has no copy yet of the tables that Citus copies to every node.",
            hint="A superuser runs `select replicate_reference_tables()` in this database, on the coordinator.",
        )
    for kinds, ours, message, hint in _MEANINGS:
        if isinstance(error, kinds):
            return ours(message.format(place), hint=hint)
    if (node := lost_node(error)) is not None:
        return _of_node(*node, place)
    if is_lost(error):
        return _away(f"The connection to {place} was lost. Nothing was changed.", hint="Try again.")
    # The text of other errors may quote a value, so only its class is named.
    return StorageError(
        f"PostgreSQL refused a statement in {place}: {type(error).__name__} ({error.sqlstate}).",
        hint="`kept store database status URL` shows the server and whether the tables fit this program. "
        "The log of the server has the statement.",
    )


def _of_node(role: str, where: str, why: str, place: str) -> StorageError:
    """Say which node of a cluster another one could not reach."""
    if "password" in why:
        return StorageError(f"The node {where} of {place} refused {role}: {why}", hint=NODE_PASSWORDS)
    return StorageError(
        f"The node {where} of {place}, which holds this project, cannot be reached: {why}. Nothing was changed.",
        hint="Try again. Check that PostgreSQL runs there.",
    )


_Kinds = tuple[type[psycopg.Error], ...]
_MEANINGS: tuple[tuple[_Kinds, type[KeptError], str, str], ...] = (
    (
        (errors.LockNotAvailable, errors.DeadlockDetected, errors.TooManyConnections),
        Busy,
        "{} is busy: another writer holds this space.",
        "Try again.",
    ),
    (
        (errors.QueryCanceled,),
        Busy,
        "{} did not answer in time.",
        "Try again. `kept store database status` shows how it is.",
    ),
    (
        (errors.UndefinedTable, errors.InvalidSchemaName),
        StorageError,
        "{} has no tables of Kept yet.",
        "Run `kept store database init URL` as its owner.",
    ),
    (
        (errors.UndefinedObject, errors.UndefinedFunction, errors.UndefinedColumn),
        StorageError,
        "{} was made by another version of Kept, or was copied from another server without its roles.",
        "Its owner runs `kept store database migrate`.",
    ),
    (
        (errors.UniqueViolation,),
        StorageError,
        "{} has a row of this project already that a write has to add. Nothing was changed.",
        "`kept doctor` checks the journal and the counts of the project.",
    ),
    (
        (errors.InsufficientPrivilege,),
        NotAllowed,
        "The role of this connection may not do that in {}.",
        "Its owner can run `kept store database grant ROLE --for PROJECT`.",
    ),
    (
        (errors.ReadOnlySqlTransaction,),
        StorageError,
        "{} is a standby, which cannot be written.",
        "Name all hosts in the URL and add target_session_attrs=read-write.",
    ),
    ((errors.DiskFull,), StorageError, "{} has no room left. Nothing was changed.", "Free some space on the server."),
    (
        (errors.DataCorrupted, errors.IndexCorrupted),
        Corrupt,
        "PostgreSQL reports damaged data in {}.",
        "Restore a backup, or promote a standby.",
    ),
)


def leave(connection: Connection) -> None:
    """End whatever transaction an error has left."""
    with suppress(psycopg.Error):
        # Not the statement `rollback`: after an error in a pipeline the driver takes later statements for prepared, and
        # only this makes it forget them every time.
        connection.rollback()


def _configure(pooler: threading.Event, connection: Connection) -> None:
    if pooler.is_set():
        connection.prepare_threshold = None


def _reset(connection: Connection) -> None:
    """Before a connection is lent again: no transaction is open. Settings were local to transactions."""
    if connection.info.transaction_status != TransactionStatus.IDLE:
        connection.rollback()
