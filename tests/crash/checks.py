"""Is a store whole? What has to be true of a SQLite file after any accident.

SQLite's and FTS5's own checks, the chain, and one rule of ours: the journal, replayed from its first event, gives
exactly the rows that are there. So a row without its event, an event without its row and half a group all show.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from kept import journal
from kept.errors import KeptError
from kept.model import Event, Memory, Record
from kept.ports import ANYWHERE
from kept.storage.sqlite import SqliteStorage
from kept.storage.sqlite.connection import connect

SPACE = "project/p1"
INDEXES = ("live", "library", "archive", "messages")
_ALL = 10**9
# Bookkeeping changes these without an event.
_UNJOURNALED = {"use_count", "last_used_at"}


def faults_of(path: Path) -> list[str]:
    """Open the file as the program does, and say what is wrong with it, a sentence each. Empty: it is whole."""
    try:
        with opened(path) as (storage, connection):
            return [*faults_of_file(connection), *faults_of_records(storage)]
    except (KeptError, apsw.Error) as error:
        return [f"it cannot be opened or read: {error}"]


@contextmanager
def opened(path: Path) -> Iterator[tuple[SqliteStorage, apsw.Connection]]:
    """The storage, as the program opens it, and one of its own connections: opening another would double the time."""
    storage = SqliteStorage(path, SPACE, write_wait_s=5)
    try:
        with storage._pool.borrow() as connection:
            yield storage, connection
    finally:
        storage.close()


@contextmanager
def looking_at(path: Path) -> Iterator[apsw.Connection]:
    """A connection of our own. If the storage is open meanwhile, this is not the last one to close the file."""
    connection = connect(path)
    try:
        yield connection
    finally:
        connection.close()


def snapshot(connection: apsw.Connection) -> str:
    """A digest of everything the file means: all rows of all tables but the index, which has a check of its own."""
    digest = hashlib.blake2b(digest_size=16)
    tables = connection.execute(
        "select name from sqlite_schema where type = 'table' and sql not like '%virtual%'"
        " and name not glob '*_fts_*' and name not in ('meta', 'migrations') order by name"
    ).fetchall()
    for (table,) in tables:
        digest.update(repr((table, sorted(map(repr, connection.execute(f'select * from "{table}"'))))).encode())
    return digest.hexdigest()


def faults_of_file(connection: apsw.Connection) -> Iterator[str]:
    """What SQLite and FTS5 find wrong, and whether each index and each count is that of its rows."""
    verdict = connection.execute("pragma integrity_check").get
    if verdict != "ok":
        yield f"SQLite finds: {verdict}"
    if broken := connection.execute("pragma foreign_key_check").fetchall():
        yield f"rows point to nothing: {broken[:3]}"
    for index in INDEXES:
        try:
            connection.execute(f"insert into {index}_fts ({index}_fts, rank) values ('integrity-check', 1)")
        except apsw.Error as error:
            yield f"the index of {index} is not that of its rows: {error}"
    counted = connection.execute(
        """
        with indexed as (select shelf, n_words from memories union all select 'messages', n_words from messages)
        select c.shelf, c.rows, c.words, count(i.shelf), coalesce(sum(i.n_words), 0)
        from corpus c
        left join indexed i on i.shelf = c.shelf
        group by c.shelf"""
    )
    for name, rows, words, actual_rows, actual_words in counted.fetchall():
        if (rows, words) != (actual_rows, actual_words):
            yield f"{name} counts {rows} rows and {words} words, and has {actual_rows} and {actual_words}"


def faults_of_records(storage: SqliteStorage) -> Iterator[str]:
    """Whether the chain holds, and whether the journal tells of exactly the records that are there."""
    with storage.reading() as reader:
        events = reader.events()
        records: list[Record] = [*reader.select(ANYWHERE, limit=_ALL)]
        records += [record for noun in Record.__subclasses__() if noun is not Memory for record in reader.all(noun)]
    yield from journal.broken_links(events)
    told = _replayed(events)
    found = {record.subject: _fields(record) for record in records}
    if len(found) != len(records):
        yield "two rows have one name"
    for subject in told.keys() | found.keys():
        if subject not in found:
            yield f"the journal tells of {subject}, which is not there"
        elif subject not in told:
            yield f"{subject} is there, but the journal does not know it"
        elif told[subject] != found[subject]:
            yield f"{subject} is not as the journal left it"


def _replayed(events: list[Event]) -> dict[str, dict[str, Any]]:
    """What should be there: subject → its fields, as the last event left them."""
    state: dict[str, dict[str, Any]] = {}
    for event in events:
        if event.action == "erase" or event.changed is None:
            state.pop(event.subject, None)
            continue
        fields = state.setdefault(event.subject, {})
        for name, (_, new) in event.changed.items():
            fields[name] = new
        if fields.get("id") is None:
            del state[event.subject]
    return {subject: _without_empty(fields) for subject, fields in state.items()}


def _fields(record: Record) -> dict[str, Any]:
    return _without_empty({name: new for name, (_, new) in journal.diff(None, record).items()})


def _without_empty(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None and name not in _UNJOURNALED}
