"""Repair a SQLite space: build anew what can be derived, and rescue the rest into a new file.

Called by `kept doctor --fix`. Rule: a damaged file is never changed, deleted or replaced before a copy of it lies
beside it; what could not be saved is named, and the journal says so for good.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
import msgspec

from kept import journal
from kept.errors import Busy, Corrupt
from kept.model import Event, Memory, Record, replace
from kept.ports import Stamp
from kept.storage.shared import WRITE_WAIT_S
from kept.storage.sqlite import acknowledged, hotwords, rows, schema
from kept.storage.sqlite.connection import connect, translated
from kept.storage.sqlite.examination import SHELVES, examine, look
from kept.storage.sqlite.findings import Finding, named
from kept.storage.sqlite.histories import JOURNAL, REPAIR, ids_of, missing_payloads, sound_row
from kept.storage.sqlite.pages import Image, open_file, wal_of
from kept.storage.sqlite.salvage import NOUNS, Saved, salvage
from kept.storage.sqlite.surroundings import BESIDE
from kept.storage.sqlite.transaction import insert_event
from kept.storage.turns import Turns

_COPY_BYTES = 1024 * 1024
_DERIVED = frozenset({"index", "statistics", "words"})  # can be built anew inside the file
_NOT_OURS = frozenset({"sqlite", "disk", "permissions"})  # nothing that another file would cure


def repair(path: Path, *, now: datetime) -> list[Finding]:
    """Put right what `examine` finds, and say what was done and what is lost. Raises Busy when the file is in use."""
    done = list(_close_to_others(path))
    problems = _problems(path, now)
    if problems and problems <= _DERIVED:
        with _turn(path):
            done += _build_indexes_anew(path)
        problems = _problems(path, now)
    if problems:
        with _turn(path), translated(path):
            done += _rebuild(path, now)
    return done or [Finding("ok", "repair", "There is nothing to repair.")]


def _problems(path: Path, now: datetime) -> set[str]:
    found = examine(path, now=now, deep=True)
    return {finding.check for finding in found if finding.level == "problem"} - _NOT_OURS


def _close_to_others(path: Path) -> Iterator[Finding]:
    for suffix in BESIDE:
        file = path.with_name(path.name + suffix)
        if file.exists() and file.stat().st_mode & 0o077:
            with suppress(PermissionError):  # somebody else's file; the finding stays
                file.chmod(0o600)
                yield Finding("ok", "permissions", f"Only you can read {file.name} now.")


def _build_indexes_anew(path: Path) -> Iterator[Finding]:
    """Words, indexes and counts from the rows. When that fails, the file needs more than this."""
    connection = connect(path)
    try:
        with connection:
            for id in ids_of(connection, Memory):
                row = sound_row(connection, Memory, id)
                if row is not None:
                    fresh = rows.to_row(rows.to_memory(row, ""))
                    assignments = ", ".join(f"{column} = ?" for column in fresh)
                    connection.execute(f"update memories set {assignments} where id = ?", (*fresh.values(), id))
            for shelf in SHELVES:
                connection.execute(f"insert into {shelf}_fts ({shelf}_fts) values ('rebuild')")
            connection.execute("delete from corpus")
            connection.executemany(
                """
                insert into corpus (shelf, rows, words, tokens)
                select ?1, count(*), coalesce(sum(n_words), 0), coalesce(sum(n_tokens), 0)
                from memories
                where shelf = ?1""",
                [(shelf,) for shelf in (*SHELVES, "forgotten")],
            )
            connection.execute("delete from hot_words")
            connection.execute("delete from meta where name like 'hot_words_at_%'")
            hotwords.refresh_if_grown(connection)
        yield Finding("ok", "index", "The indexes were built anew from the memories; nothing is lost.")
    except apsw.Error:
        return
    finally:
        connection.close()


def _rebuild(path: Path, now: datetime) -> list[Finding]:
    """Save what can be saved into a new file, and let that take the name."""
    accepted = _frames_that_sqlite_reads(path)
    with _alone_with(path) as file:
        wal = wal_of(path)
        saved = salvage([Image(file, wal), Image(file, wal, frames=accepted), Image(file, wal, frames=0)])
        if saved.is_empty:
            raise Corrupt(
                f"Nothing in {path} can be recognised as Kept's.",
                hint="It was left as it is. `kept restore FILE` brings back a backup.",
            )
        rebuilt = path.with_name(path.name + ".rebuilt")
        try:
            findings = _build(rebuilt, saved, acknowledged.noted(path).event, now)
            if problems := _problems(rebuilt, now):
                raise Corrupt(f"{path} could not be repaired: the new file has problems, too ({', '.join(problems)}).")
            copy = _copy_aside(path, file)
            wal.unlink(missing_ok=True)
            path.with_name(path.name + "-shm").unlink(missing_ok=True)
            rebuilt.replace(path)
            _sync(path.parent)
            # Whoever opened the old file meanwhile, and waits for us, must not take it for the new one.
            file.xWrite(bytes(16), 0)
        finally:
            for suffix in ("", "-wal", "-shm", ".lock"):
                rebuilt.with_name(rebuilt.name + suffix).unlink(missing_ok=True)
    return [Finding("note", "file", f"The damaged file is kept as {copy.name}."), *findings]


def _frames_that_sqlite_reads(path: Path) -> int:
    with suppress(apsw.Error):
        connection = look(path)
        try:
            return connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0]
        finally:
            connection.close()
    return 0


@contextmanager
def _alone_with(path: Path) -> Iterator[apsw.VFSFile]:
    """The file, while nobody has it open. Raises Busy otherwise."""
    file = open_file(path)
    try:
        try:
            file.xLock(apsw.SQLITE_LOCK_SHARED)
            file.xLock(apsw.SQLITE_LOCK_EXCLUSIVE)
        except apsw.BusyError:
            raise Busy(
                f"{path} is open in another program, so it cannot be replaced.",
                hint="End what uses it (an MCP server, an agent, `kept serve`), and try again.",
            ) from None
        yield file
    finally:
        file.xUnlock(apsw.SQLITE_LOCK_NONE)
        file.xClose()


def _build(target: Path, saved: Saved, noted: int, now: datetime) -> list[Finding]:
    """A new file of what was saved, and what became of the rest."""
    events = saved.journal()
    last = max([noted, *saved.events])
    lost_events = [seq for seq in range(1, last + 1) if seq not in saved.events]
    facts, findings = _facts(saved, events, now)
    records, from_journal, lost_memories = _decide(saved, events, facts["space"], has_gaps=bool(lost_events))
    conflicts = [record.id for record in records if record.noun == "conflict"]
    lost_payloads = missing_payloads(events, conflicts)
    stamp = Stamp(group=f"repair-{secrets.token_hex(8)}", at=now, actor="doctor")
    lost: dict[str, list[Any]] = {"events": lost_events, "payloads": lost_payloads, "memories": lost_memories}
    told = journal.seal(
        stamp,
        seq=last + 1,
        action=REPAIR,
        subject=JOURNAL,
        changed={what: (None, gone) for what, gone in lost.items() if gone},
        prev=events[-1].hash if events else journal.FIRST_PREV,
        salt=secrets.token_hex(journal.SALT_BYTES),
    )
    _write(target, saved, facts, records, [*events, told], now)
    memories = [record for record in records if isinstance(record, Memory)]
    findings.append(Finding("ok", "memory", f"{len(memories)} memories and {len(events)} events were saved."))
    if from_journal:
        message = f"Put together from the journal: {named('memory', from_journal)}."
        findings.append(Finding("note", "memory", message, "Usage counted since their last change is gone."))
    damaged = saved.damaged[Memory] - {memory.id for memory in memories}
    if lost_memories or damaged:
        ids = f" ({named('memory', damaged)})" if damaged else ""
        uids = f": {', '.join(lost_memories)}" if lost_memories else ""
        message = f"{max(len(lost_memories), len(damaged))} memories are lost{ids}{uids}."
        findings.append(Finding("problem", "memory", message, "A backup may hold them: `kept restore FILE`."))
    if lost_events:
        message = f"Lost: {named('event', lost_events)}. What they did cannot be shown or undone."
        findings.append(Finding("problem", "journal", message))
    if lost_payloads:
        message = f"Lost is what they changed: {named('event', lost_payloads)}. They cannot be undone."
        findings.append(Finding("problem", "journal", message))
    return findings


def _facts(saved: Saved, events: list[Event], now: datetime) -> tuple[dict[str, str], list[Finding]]:
    if saved.facts is not None:
        return saved.facts, []
    spaces = (event.changed["space"][1] for event in events if event.changed and "space" in event.changed)
    facts = {
        "space": str(next(spaces, None) or f"project/{secrets.token_hex(4)}"),
        "tombstone_key": secrets.token_hex(32),
        "created_at": str(rows.clock(events[0].at if events else now)),
    }
    saved.tombstones.clear()  # readable with the lost key only
    message = "The marks of erased memories are lost: an import could bring those back."
    return facts, [Finding("problem", "erase", message)]


def _decide(
    saved: Saved, events: list[Event], space: str, *, has_gaps: bool
) -> tuple[list[Record], list[int], list[str]]:
    """Each record in its best version; the ids of those that come from the journal; the uids of those that are lost."""
    histories: dict[str, list[Event]] = {}
    for event in events:
        if event.subject != JOURNAL:
            histories.setdefault(event.subject, []).append(event)
    erased = {event.subject for event in events if event.action == "erase"}
    found = {
        record.subject: record
        for noun in NOUNS
        for row in saved.rows[noun].values()
        for record in [rows.to_record(noun, row, space)]
    }
    chosen: list[Record] = []
    from_journal: list[int] = []
    lost: list[str] = []
    for subject in sorted((found.keys() | histories.keys()) - erased):
        history = histories.get(subject, [])
        row = found.get(subject)
        told = _told(history, space)
        is_complete = not has_gaps and bool(history) and all(event.changed is not None for event in history)
        if is_complete and not journal.replay(history):
            continue  # it had been removed
        best = _better(row, told, is_complete=is_complete)
        if best is None:
            if journal.noun_of(history[0]) is Memory:
                lost.append(subject)
            continue
        chosen.append(best)
        if row is None and isinstance(best, Memory):
            from_journal.append(best.id)
    return sorted(chosen, key=lambda record: record.id), from_journal, lost


def _told(history: list[Event], space: str) -> Record | None:
    """The record as its history tells it; None when that does not begin with its beginning."""
    if not history or history[0].changed is None:
        return None
    noun = journal.noun_of(history[0])
    try:
        record = msgspec.convert(journal.replay(history), noun)
    except msgspec.ValidationError:
        return None
    return replace(record, space=space) if isinstance(record, Memory) else record


def _better(row: Record | None, told: Record | None, *, is_complete: bool) -> Record | None:
    """The newer one of what the row and what the journal says; usage is in the row only."""
    if row is None or told is None:
        return row or told
    if not isinstance(row, Memory) or not isinstance(told, Memory):
        return told if is_complete else row
    if is_complete or told.updated_at > row.updated_at:
        return replace(told, use_count=row.use_count, last_used_at=row.last_used_at)
    return row


def _write(
    target: Path, saved: Saved, facts: dict[str, str], records: list[Record], events: list[Event], now: datetime
) -> None:
    for suffix in ("", "-wal", "-shm"):
        target.with_name(target.name + suffix).unlink(missing_ok=True)
    connection = connect(target)
    try:
        schema.migrate(connection, target, schema.migrations(), now)
        with connection:
            schema.settle_facts(connection, facts)
            for record in records:
                connection.execute(rows.insert_sql(type(record)), rows.to_values(record))
            for event in events:
                insert_event(connection, event)
            connection.executemany("insert into tombstones (mark) values (?)", [(mark,) for mark in saved.tombstones])
            connection.executemany(
                """
                insert into memory_links (memory_id, related_id, strength, at)
                select ?1, ?2, ?3, ?4
                where (select count(*) from memories where id in (?1, ?2)) = 2""",
                [(*ids, *link) for ids, link in saved.links.items()],
            )
            if "scrub" in saved.meta:
                connection.execute("insert into meta (name, value) values ('scrub', ?)", (saved.meta["scrub"],))
            for noun in NOUNS:
                table = rows.table_of(noun)
                connection.execute("delete from sqlite_sequence where name = ?", (table,))
                given = [*saved.rows[noun], *saved.damaged[noun], saved.sequences.get(table, 0)]
                given += [record.id for record in records if isinstance(record, noun)]
                connection.execute("insert into sqlite_sequence (name, seq) values (?, ?)", (table, max(given)))
            hotwords.refresh_if_grown(connection)
    finally:
        connection.close()


def _copy_aside(path: Path, file: apsw.VFSFile) -> Path:
    """A synced copy of the file and its WAL, under a name that is not taken."""
    number = 1
    while (copy := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    size = file.xFileSize()
    chunks = (file.xRead(min(_COPY_BYTES, size - start), start) for start in range(0, size, _COPY_BYTES))
    _write_file(copy, chunks)
    if wal_of(path).exists():
        _write_file(wal_of(copy), iter([wal_of(path).read_bytes()]))
    _sync(path.parent)
    return copy


def _write_file(target: Path, chunks: Iterator[bytes]) -> None:
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        os.fsync(fd)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def _turn(path: Path) -> Iterator[None]:
    turns = Turns(path.with_name(path.name + ".lock"))
    try:
        turns.take(WRITE_WAIT_S)
        try:
            yield
        finally:
            turns.end()
    finally:
        turns.close()
