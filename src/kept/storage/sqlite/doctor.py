"""Examine a SQLite space and say what is wrong with it, without changing anything.

`kept doctor` prints what `examine` returns; `kept doctor --fix` calls `repair` (repair.py). Rule: every byte that an
answer could come from is looked at: rows and events against their checksums, indexes against rows, rows against the
journal. What is not looked at is said, too.
"""

import sys
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import apsw
import msgspec
from msgspec import Struct

from kept import journal
from kept.errors import Busy, Corrupt, KeptError
from kept.model import Alias, Conflict, Event, Memory, Record
from kept.storage.prepare import prepare
from kept.storage.shared import is_tombstone
from kept.storage.sqlite import acknowledged, reserve, rows, schema
from kept.storage.sqlite.backup import backups_of
from kept.storage.sqlite.connection import READ_WAIT_MS, check_library, translated
from kept.storage.sqlite.pages import wal_frames
from kept.storage.turns import Turns

Level = Literal["ok", "note", "problem"]

FIX = "`kept doctor --fix` saves what can be saved; the damaged file is kept."
REBUILD = "`kept doctor --fix` builds it anew from the memories; nothing is lost."
SHELVES = ("live", "library", "archive")
REPAIR = "repair"  # the action of the event that says what a repair could not save
JOURNAL = "journal"  # and its subject

_NAMED = 10  # ids that a finding names; it counts the others
_SAMPLE = 200  # rows whose words are prepared anew unless all are asked for
_TURN_WAIT_S = 10.0  # the index is compared in a turn of our own, so that no writer fails because of it
_OLD_BACKUP = timedelta(days=3)
_LARGE_WAL_BYTES = 128 * 1024 * 1024  # twice what is kept of it: some reader stands in the way


class Finding(Struct, frozen=True):
    """One thing that was looked at, and how it is."""

    level: Level
    check: str
    message: str
    hint: str = ""


class Patient(Struct, frozen=True):
    """What every check gets: the file, a connection that reads it, and how much to look at."""

    path: Path
    connection: apsw.Connection
    now: datetime
    is_deep: bool


Check = Callable[[Patient], Iterator[Finding]]


def examine(path: Path, *, now: datetime, deep: bool = False) -> list[Finding]:
    """Everything that is wrong with the file, and what is in order. `deep`: also prepare the words of every row anew
    and compare every record with its journal. Changes nothing."""
    findings = [*_library(), *_surroundings(path, now)]
    if not path.is_file():
        return [*findings, Finding("problem", "file", f"There is no file {path}.", "`kept projects list` shows where.")]
    try:
        with translated(path):
            connection = look(path)
    except KeptError as error:
        return [*findings, Finding("problem", "file", error.message, FIX)]
    patient = Patient(path, connection, now, deep)
    try:
        for name, check in _CHECKS.items():
            found = list(_guarded(name, check, patient))
            findings += found
            if name == "schema" and any(finding.level == "problem" for finding in found):
                break  # nothing further down can be asked of a file with other tables
    finally:
        connection.close()
    return findings


def look(path: Path) -> apsw.Connection:
    """A connection that leaves the WAL as it is, so that nothing which could still be saved goes when it closes."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        if has_wal(path):
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.set_busy_timeout(READ_WAIT_MS)
        connection.execute("pragma query_only = on").fetchall()
        connection.execute("select count(*) from sqlite_schema").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def wal_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def has_wal(path: Path) -> bool:
    return wal_of(path).exists() and wal_of(path).stat().st_size > 0


def lost_by_repair(event: Event, what: str) -> list[Any]:
    """What an event of an earlier repair says is gone for good: its events, payloads or memories."""
    if event.action != REPAIR or event.subject != JOURNAL or event.changed is None:
        return []
    return list(event.changed.get(what, (None, []))[1])


def _guarded(name: str, check: Check, patient: Patient) -> Iterator[Finding]:
    try:
        with translated(patient.path):
            yield from check(patient)
    except KeptError as error:
        yield Finding("problem", name, error.message, FIX)
    except (UnicodeDecodeError, ValueError, TypeError, msgspec.MsgspecError):
        yield Finding("problem", name, f"What the file holds of its {name} makes no sense.", FIX)


def _library() -> Iterator[Finding]:
    version = apsw.sqlite_lib_version()
    try:
        check_library(version)
    except KeptError as error:
        yield Finding("problem", "sqlite", error.message, error.hint)
    else:
        yield Finding("ok", "sqlite", f"SQLite {version}.")


def _surroundings(path: Path, now: datetime) -> Iterator[Finding]:
    """What can be said without opening the database."""
    yield from _permissions(path)
    lock = path.with_name(path.name + ".lock")
    if lock.exists():
        turns = Turns(lock)
        if turns.is_taken():
            yield Finding("note", "lock", f"Process {turns.holder() or '?'} is writing right now.")
        turns.close()
    if path.parent.is_dir():
        free = reserve.free_bytes(path)
        level: Level = "ok" if free >= reserve.RESERVE_BYTES * 16 else "problem"
        hint = "" if level == "ok" else "Free some space: what is stored stays, but nothing new can be."
        yield Finding(level, "disk", f"{_size(free)} free.", hint)
    yield from _backups(path, now)
    for copy in sorted(path.parent.glob(f"{path.name}.damaged-*[0-9]")):
        yield Finding("note", "file", f"{copy.name} is the copy that a repair kept.", "Delete it when you are content.")


def _permissions(path: Path) -> Iterator[Finding]:
    if sys.platform == "win32":
        return
    beside = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm", ".lock", ".reserve")]
    open_files = [file.name for file in beside if file.exists() and file.stat().st_mode & 0o077]
    folder = path.parent
    if open_files:
        message = f"Others on this machine may read {', '.join(open_files)}."
        yield Finding("problem", "permissions", message, f"chmod 600 {' '.join(open_files)}")
    if folder.is_dir() and folder.stat().st_mode & 0o022:
        message = f"Others on this machine may put another file in the place of {path.name}."
        yield Finding("problem", "permissions", message, f"chmod go-w {folder}")
    elif path.name == "kept.db" and folder.is_dir() and folder.stat().st_mode & 0o077:
        yield Finding("note", "permissions", f"Others on this machine may look into {folder}.", f"chmod 700 {folder}")
    elif not open_files:
        yield Finding("ok", "permissions", "Only you can read the file.")


def _backups(path: Path, now: datetime) -> Iterator[Finding]:
    made = [datetime.fromtimestamp(backup.stat().st_mtime, UTC) for backup in backups_of(path)]
    if not made:
        yield Finding("note", "backups", "There is no backup yet.", "`kept backup FILE` writes one.")
        return
    age = now - max(made)
    level: Level = "note" if age > _OLD_BACKUP else "ok"
    yield Finding(level, "backups", f"{len(made)} backups; the newest is {max(0, age.days)} days old.")


def _check_schema(patient: Patient) -> Iterator[Finding]:
    """Whose file it is, of which version, and whether tables and triggers are the ones that we made."""
    application = patient.connection.pragma("application_id")
    if application != schema.APPLICATION_ID:
        yield Finding("problem", "schema", f"{patient.path.name} does not say that it is a file of Kept.", FIX)
        return
    version = schema.check_version(patient.connection, patient.path)
    steps = [step for step in schema.migrations() if step.version <= version]
    schema.check_checksums(patient.connection, patient.path, steps)
    expected = apsw.Connection(":memory:")
    try:
        for step in steps:
            expected.execute(step.sql)
        wrong = sorted(_objects(expected) ^ _objects(patient.connection))
    finally:
        expected.close()
    if wrong or version == 0:
        names = ", ".join(dict.fromkeys(str(name) for name, _ in wrong)) or "everything"
        yield Finding("problem", "schema", f"Not as it was made: {names}.", FIX)
    else:
        yield Finding("ok", "schema", f"Version {version}.")


def _objects(connection: apsw.Connection) -> set[tuple[str, str]]:
    sql = "select name, coalesce(sql, '') from sqlite_schema where name not like 'sqlite_stat%'"
    return {(str(name), str(text)) for name, text in connection.execute(sql)}


def _check_pages(patient: Patient) -> Iterator[Finding]:
    """SQLite's own look at its structures: pages, the order of rows, every index against its table."""
    verdicts = [str(verdict) for (verdict,) in patient.connection.execute(f"pragma integrity_check({_NAMED})")]
    if verdicts == ["ok"]:
        yield Finding("ok", "pages", "SQLite finds its structures whole.")
    else:
        first = verdicts[0].splitlines()[-1][:100]
        yield Finding("problem", "pages", f"SQLite finds {len(verdicts)} faults or more; the first: {first}.", FIX)


def _check_wal(patient: Patient) -> Iterator[Finding]:
    """Whether all that was acknowledged is there, and whether the WAL holds what SQLite does not read."""
    wal = wal_of(patient.path)
    noted = acknowledged.noted(patient.path)
    ends = [number for number, frame in enumerate(wal_frames(wal), 1) if frame.ends_transaction]
    last = int(patient.connection.execute("select max(seq) from events").get or 0)
    accepted, _ = patient.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
    unread = sum(number > accepted for number in ends)
    if noted > last:
        message = f"Events {last + 1} to {noted} were acknowledged and are missing."
        where = f"The WAL holds {unread} transactions behind a damaged place." if unread else "The WAL is no help."
        yield Finding("problem", "wal", f"{message} {where}", FIX)
    elif unread:
        message = f"The WAL holds {unread} transactions that SQLite does not read."
        yield Finding("note", "wal", f"{message} A power cut in the middle of a write leaves that; or it is damaged.")
    size = wal.stat().st_size if wal.exists() else 0
    if size > _LARGE_WAL_BYTES:
        hint = "Some program has been reading the same page for long; end it."
        yield Finding("problem", "wal", f"The WAL has grown to {_size(size)}.", hint)
    elif noted <= last:
        yield Finding("ok", "wal", f"All that was acknowledged is there; the WAL has {_size(size)}.")


def _check_facts(patient: Patient) -> Iterator[Finding]:
    facts = schema.facts_of(patient.connection, patient.path)
    yield Finding("ok", "space", f"The space {facts.get('space', '(new)')}.")
    if patient.connection.execute("select 1 from meta where name = 'scrub'").fetchone():
        yield Finding("note", "erase", "An erasure still has bytes to remove.", "The next open goes on with it.")
    marks = [str(mark) for (mark,) in patient.connection.execute("select mark from tombstones")]
    damaged = sum(not is_tombstone(mark) for mark in marks)
    if damaged:
        message = f"{damaged} of {len(marks)} marks of erased memories are damaged: an import could bring those back."
        yield Finding("problem", "erase", message, FIX)


def _check_records(patient: Patient) -> Iterator[Finding]:
    """Every row against its checksum."""
    for noun in (Memory, Conflict, Alias):
        ids = ids_of(patient.connection, noun)
        damaged = [id for id in ids if raw_row(patient.connection, noun, id) is None]
        if damaged:
            yield Finding("problem", noun.noun, f"Not what was written: {named(noun.noun, damaged)}.", FIX)
        elif noun is Memory:
            yield Finding("ok", noun.noun, f"All {len(ids)} memories are what was written.")
    connection = patient.connection
    n_links = int(connection.execute(f"select count(*) from memory_links where not ({rows.LINK_IS_SEALED})").get)
    sql = "select id, at, body, checksum from receipts"
    receipts = [id for id, *values, checksum in connection.execute(sql) if rows.checksum(values) != checksum]
    if n_links or receipts:
        message = f"{n_links} links and {len(receipts)} receipts of past recalls are not what was written."
        yield Finding("problem", "notes", message, FIX)


def _check_words(patient: Patient) -> Iterator[Finding]:
    """Whether the index holds what this version of Kept would look for."""
    ids = ids_of(patient.connection, Memory)
    chosen = ids if patient.is_deep else ids[:: max(1, len(ids) // _SAMPLE)]
    stale = []
    for id in chosen:
        row = raw_row(patient.connection, Memory, id)
        if row is not None and prepare(rows.to_memory(row, "")) != rows.to_prepared(row):
            stale.append(id)
    looked_at = f"{len(chosen)} of {len(ids)}"
    if stale:
        yield Finding("problem", "words", f"Prepared by another version: {named('memory', stale)}.", REBUILD)
    else:
        yield Finding("ok", "words", f"{looked_at} memories are indexed under the words that are asked for.")


def _check_index(patient: Patient) -> Iterator[Finding]:
    """Each full-text index against the rows of its shelf, posting by posting. FTS5 asks for a write lock to do so."""
    turns = Turns(patient.path.with_name(patient.path.name + ".lock"))
    try:
        turns.take(_TURN_WAIT_S)
    except Busy:
        yield Finding("note", "index", "Not looked at, because somebody is writing.", "Try again later.")
        return
    try:
        damaged = [shelf for shelf in SHELVES if not _is_index_whole(patient.connection, shelf)]
    finally:
        turns.end()
        turns.close()
    if damaged:
        message = f"The index of the shelf {' and '.join(damaged)} is not that of its rows: searches miss some."
        yield Finding("problem", "index", message, REBUILD)
    else:
        yield Finding("ok", "index", "Every index holds the words of its rows and no others.")


def _is_index_whole(connection: apsw.Connection, shelf: str) -> bool:
    connection.execute("pragma query_only = off").fetchall()
    connection.execute("begin immediate")
    try:
        connection.execute(f"insert into {shelf}_fts ({shelf}_fts, rank) values ('integrity-check', 1)")
    except apsw.CorruptError:
        return False
    finally:
        connection.execute("rollback")
        connection.execute("pragma query_only = on").fetchall()
    return True


def _check_statistics(patient: Patient) -> Iterator[Finding]:
    counted = {
        shelf: numbers
        for shelf, *numbers in patient.connection.execute(
            "select shelf, count(*), sum(n_words), sum(n_tokens) from memories group by shelf"
        )
    }
    wrong = []
    for shelf in (*SHELVES, "forgotten"):
        sql = f"select rows, words, tokens from corpus where shelf = ? and {rows.CORPUS_IS_SEALED}"
        row = patient.connection.execute(sql, (shelf,)).fetchone()
        if row is None or list(row) != counted.get(shelf, [0, 0, 0]):
            wrong.append(shelf)
    sql = "select count(*) from hot_words h join corpus c on c.shelf = h.shelf where h.rows_with not between 1 and c.rows"
    if wrong or patient.connection.execute(sql).get:
        message = f"The counted words of the shelf {' and '.join(wrong or ['(hot words)'])} are wrong."
        yield Finding("problem", "statistics", message, REBUILD)
    else:
        yield Finding("ok", "statistics", "Rows and words are counted right.")


def _check_journal(patient: Patient) -> Iterator[Finding]:
    """Every event against its hash and the one before; every payload; every memory against the journal."""
    connection = patient.connection
    damaged: list[int] = []
    events = [event for event in read_events(connection, damaged) if event is not None]
    lost = {seq for event in events for seq in lost_by_repair(event, "events")}
    if damaged:
        yield Finding("problem", "journal", f"Not what was written: {named('event', damaged)}.", FIX)
    if wrong := journal.broken_links(events, lost | set(damaged)):
        yield Finding("problem", "journal", f"The chain is broken: {'; '.join(wrong[:_NAMED])}.", FIX)
    if not damaged and not wrong:
        yield Finding("ok", "journal", f"All {len(events)} events follow from each other.")
    if lost:
        yield Finding("note", "journal", f"A repair could not save {named('event', lost)}.")
    yield from _check_payloads(events, ids_of(connection, Conflict))
    yield from _check_subjects(patient, events, has_gaps=bool(lost or damaged))


def _check_payloads(events: list[Event], conflicts: Collection[int]) -> Iterator[Finding]:
    erased_by = {event.subject: event.seq for event in events if event.action == "erase"}
    known = {seq for event in events for seq in lost_by_repair(event, "payloads")}
    erased: dict[int, list[int]] = {}
    missing = []
    for event in events:
        if event.changed is not None or event.seq in known:
            continue
        if event.subject in erased_by:
            erased.setdefault(erased_by[event.subject], []).append(event.seq)
        elif not (journal.noun_of(event) is Conflict and int(event.subject[1:]) not in conflicts and erased_by):
            missing.append(event.seq)  # a conflict goes with the memory that it names
    for by, seqs in list(erased.items())[:_NAMED]:
        yield Finding("note", "journal", f"The payload of {named('event', seqs)} was erased by event {by}.")
    if len(erased) > _NAMED:
        yield Finding("note", "journal", f"… and those of {len(erased) - _NAMED} more erased memories.")
    if missing:
        yield Finding("problem", "journal", f"What they changed is missing: {named('event', missing)}.", FIX)


def _check_subjects(patient: Patient, events: list[Event], *, has_gaps: bool) -> Iterator[Finding]:
    """Rows without a history, and histories without a row."""
    erased = {event.subject for event in events if event.action == "erase"}
    known = {uid for event in events for uid in lost_by_repair(event, "memories")}
    told = {event.subject for event in events if event.subject != JOURNAL and journal.noun_of(event) is Memory}
    there = {str(uid): id for uid, id in patient.connection.execute("select uid, id from memories")}
    if gone := sorted(told - erased - known - there.keys()):
        message = f"The journal knows {len(gone)} memories that are not there, among them {', '.join(gone[:3])}."
        yield Finding("problem", "journal", message, FIX)
    if back := sorted(there[uid] for uid in erased & there.keys()):
        yield Finding("problem", "journal", f"Erased, and there all the same: {named('memory', back)}.", FIX)
    if untold := sorted(id for uid, id in there.items() if uid not in told):
        level: Level = "note" if has_gaps else "problem"
        yield Finding(level, "journal", f"Without a history: {named('memory', untold)}.", "" if has_gaps else FIX)
    if patient.is_deep and not has_gaps:
        yield from _compare_with_journal(patient, events)


def _compare_with_journal(patient: Patient, events: list[Event]) -> Iterator[Finding]:
    """Whether each record is what its events made of it; usage is counted outside of the journal."""
    histories: dict[str, list[Event]] = {}
    for event in events:
        histories.setdefault(event.subject, []).append(event)
    for noun in (Memory, Conflict, Alias):
        differing = []
        for id in ids_of(patient.connection, noun):
            row = raw_row(patient.connection, noun, id)
            record = rows.to_record(noun, row, "") if row is not None else None
            if record is None or not all(event.changed is not None for event in histories.get(record.subject, [])):
                continue
            if without_usage(journal.wire(record)) != without_usage(journal.replay(histories.get(record.subject, []))):
                differing.append(id)
        if differing:
            yield Finding("problem", noun.noun, f"Not what the journal says: {named(noun.noun, differing)}.", FIX)


def without_usage(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that change with an event only."""
    outside = ("use_count", "last_used_at", "space")
    return {name: value for name, value in fields.items() if name not in outside and value is not None}


def _check_orphans(patient: Patient) -> Iterator[Finding]:
    broken = patient.connection.execute("pragma foreign_key_check").fetchall()
    if broken:
        tables = sorted({str(table) for table, *_ in broken})
        message = f"{len(broken)} rows of {', '.join(tables)} belong to something that is not there."
        yield Finding("problem", "orphans", message, FIX)
    sql = """
        select id from conflicts
        where not exists (select 1 from memories where uid = conflicts.left)
           or not exists (select 1 from memories where uid = conflicts.right)"""
    if ids := [int(id) for (id,) in patient.connection.execute(sql)]:
        yield Finding("note", "orphans", f"About a memory that is not here: {named('conflict', ids)}.")
    if not broken and not ids:
        yield Finding("ok", "orphans", "Nothing points to something that is not there.")


def ids_of(connection: apsw.Connection, noun: type[Record]) -> list[int]:
    return [int(id) for (id,) in connection.execute(f"select id from {rows.table_of(noun)} order by id")]


def raw_row(connection: apsw.Connection, noun: type[Record], id: int) -> tuple[Any, ...] | None:
    """The stored row, or None when it cannot be read or is not what was written."""
    sql = f"select {', '.join(rows.columns_of(noun))} from {rows.table_of(noun)} where id = ?"
    try:
        row = connection.execute(sql, (id,)).fetchone()
        if row is None:
            return None
        rows.verify(noun, row)
    except (UnicodeDecodeError, apsw.CorruptError, Corrupt):
        return None
    return row


def read_events(connection: apsw.Connection, damaged: list[int]) -> Iterator[Event | None]:
    """Every event in order; None, and its number in `damaged`, for one that is not what was sealed."""
    columns = ", ".join(f"e.{column}" for column in rows.EVENT_COLUMNS)
    sql = f"select {columns}, p.salt, p.changed from events e left join event_payloads p on p.seq = e.seq where e.seq = ?"
    for (seq,) in connection.execute("select seq from events order by seq").fetchall():
        try:
            row: Any = connection.execute(sql, (seq,)).fetchone()
            yield rows.to_event(row)
        except (UnicodeDecodeError, TypeError, apsw.CorruptError, Corrupt):
            damaged.append(int(seq))
            yield None


def named(noun: str, ids: Collection[int]) -> str:
    """`memory 4`, `events 4, 5 and 9`, `events 1, 2, … (25 in all)`."""
    plural = {"memory": "memories", "alias": "aliases"}.get(noun, f"{noun}s")
    first = [str(id) for id in sorted(ids)[:_NAMED]]
    if len(ids) == 1:
        return f"{noun} {first[0]}"
    if len(ids) > _NAMED:
        return f"{plural} {', '.join(first)}, … ({len(ids)} in all)"
    return f"{plural} {', '.join(first[:-1])} and {first[-1]}"


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:,.1f} MB" if n_bytes < 2**30 else f"{n_bytes / 2**30:,.1f} GB"


_CHECKS: dict[str, Check] = {
    "schema": _check_schema,
    "pages": _check_pages,
    "space": _check_facts,
    "wal": _check_wal,
    "memory": _check_records,
    "words": _check_words,
    "index": _check_index,
    "statistics": _check_statistics,
    "journal": _check_journal,
    "orphans": _check_orphans,
}
