"""The journal of a file against itself and against the rows: the part of an examination that reads every event.

A repair by Kept 0.2 may have found events, payloads or records gone; its own event says which, and from then on that
is a note and no longer a problem. Rule: whatever is missing must be accounted for by an event that is there.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import apsw
import msgspec
from msgspec import Struct

from kept import journal
from kept.errors import Corrupt
from kept.model import NOUNS, SMALL_NOUNS, Conflict, Event, Memory, Record
from kept.storage.checkup import NAMED, RESTORE, Finding, named
from kept.storage.sqlite import rows
from kept.storage.sqlite.encoding import uid_blob, uid_text

REPAIR = "repair"  # the action of the event in which Kept 0.2 said what it could not save
JOURNAL = "journal"  # and its subject

_OUTSIDE = frozenset({"use_count", "last_used_at", "space"})  # fields of a memory that no event records
_MOMENTS = frozenset(
    field.name for noun in NOUNS for field in msgspec.structs.fields(noun) if field.type in (datetime, datetime | None)
)
_SELECT = f"""
    select {", ".join(f"e.{column}" for column in rows.EVENT_COLUMNS)}, p.salt, p.changed
    from events e
    left join event_payloads p on p.seq = e.seq"""


class JournalScan(Struct):
    """What is remembered of a journal while it is read once: everything but the payloads."""

    damaged: list[int]
    without_payload: list[Event]
    subjects: dict[str, type[Record]]
    last: dict[str, int]  # event, by its subject
    erased_by: dict[str, int]
    lost: dict[str, set[Any]]

    @property
    def gone(self) -> set[str]:
        """The subjects that were erased and have not begun again."""
        return {subject for subject, by in self.erased_by.items() if self.last[subject] == by}


def check_journal(connection: apsw.Connection, *, is_deep: bool) -> Iterator[Finding]:
    """Every event against its hash and the one before it, every payload, and every record against its history."""
    # What a repair could not save is said by an event behind the gap, so it has to be known before the walk.
    scan = JournalScan([], [], {}, {}, {}, _lost_by_repairs(connection))
    n_events = int(connection.execute("select count(*) from events").get)
    wrong = journal.broken_links(_read(connection, scan), _Gaps(scan))
    if scan.damaged:
        yield Finding("problem", "journal", f"Damaged: {named('event', scan.damaged)}.", RESTORE)
    if wrong:
        yield Finding("problem", "journal", f"The journal's chain is broken: {'; '.join(wrong[:NAMED])}.", RESTORE)
    if not scan.damaged and not wrong:
        yield Finding("ok", "journal", f"All {n_events} events form an unbroken chain.")
    if scan.lost["events"]:
        yield Finding("note", "journal", f"A repair could not recover {named('event', scan.lost['events'])}.")
    yield from _check_payloads(connection, scan)
    yield from _check_subjects(connection, scan)
    if not scan.lost["events"] and not scan.damaged:
        for noun in NOUNS if is_deep else SMALL_NOUNS:
            yield from _check_states(connection, scan, noun)


def _lost_by_repairs(connection: apsw.Connection) -> dict[str, set[Any]]:
    """The events, payloads and records that earlier repairs reported as lost."""
    lost: dict[str, set[Any]] = {"events": set(), "payloads": set(), "records": set()}
    repairs = connection.execute(f"{_SELECT} where e.action = ? and e.subject = ?", (REPAIR, JOURNAL)).fetchall()
    for row in repairs:
        with suppress(Corrupt):
            for what, (_, gone) in (rows.to_event(row).changed or {}).items():
                lost[what].update(gone)
    return lost


def _matches_history(record: Record | None, fields: dict[str, Any]) -> bool:
    """Whether a record is what its history leads to: `fields`, in wire form; None if that leads to nothing."""
    return _comparable(journal.wire(record)) == _comparable(fields)


def _missing_payloads(events: Collection[Event], conflicts: Collection[int], erased: Mapping[str, int]) -> list[int]:
    """The events whose payload is gone although nothing erased it. A conflict goes with a memory that it names."""

    def is_erased(event: Event) -> bool:
        is_conflict = journal.noun_of(event) is Conflict
        went_with_a_memory = is_conflict and bool(erased) and int(event.subject[1:]) not in conflicts
        return event.seq < erased.get(event.subject, 0) or went_with_a_memory

    return [event.seq for event in events if event.changed is None and not is_erased(event)]


def ids_of(connection: apsw.Connection, noun: type[Record]) -> list[int]:
    return [int(row[0]) for row in connection.execute(f"select id from {rows.table_of(noun)} order by id")]


def sound_row(connection: apsw.Connection, noun: type[Record], id: int) -> tuple[Any, ...] | None:
    """The stored row, or None when it cannot be read or is not what was written."""
    sql = f"{rows.select_sql(noun)} where id = ?"
    try:
        row = connection.execute(sql, (id,)).fetchone()
        if row is not None:
            rows.verify(noun, row)
    except (UnicodeDecodeError, apsw.CorruptError, Corrupt):
        return None
    return row


class _Gaps:
    """The numbers of the events that are known to be gone or damaged; grows while the journal is read."""

    def __init__(self, scan: JournalScan) -> None:
        self._scan = scan

    def __contains__(self, seq: object) -> bool:
        return seq in self._scan.lost["events"] or seq in self._scan.damaged


def _read(connection: apsw.Connection, scan: JournalScan) -> Iterator[Event]:
    """Every event that is what was sealed, one by one."""
    for seq in [int(row[0]) for row in connection.execute("select seq from events order by seq")]:
        try:
            event = rows.to_event(connection.execute(f"{_SELECT} where e.seq = ?", (seq,)).fetchall()[0])
        except (UnicodeDecodeError, IndexError, apsw.CorruptError, Corrupt):
            scan.damaged.append(seq)
            continue
        if event.changed is None:
            scan.without_payload.append(event)
        scan.last[event.subject] = event.seq
        if event.action == "erase":
            scan.erased_by[event.subject] = event.seq
        if event.subject != JOURNAL:
            scan.subjects[event.subject] = journal.noun_of(event)
        yield event


def _check_payloads(connection: apsw.Connection, scan: JournalScan) -> Iterator[Finding]:
    erased: dict[int, list[int]] = {}
    for event in scan.without_payload:
        if event.seq < scan.erased_by.get(event.subject, 0):
            erased.setdefault(scan.erased_by[event.subject], []).append(event.seq)
    for by, seqs in list(erased.items())[:NAMED]:
        yield Finding("note", "journal", f"The payload of {named('event', seqs)} was erased by event {by}.")
    if len(erased) > NAMED:
        yield Finding("note", "journal", f"The payloads of {len(erased) - NAMED} more memories were erased.")
    missing = _missing_payloads(scan.without_payload, ids_of(connection, Conflict), scan.erased_by)
    if missing := sorted(set(missing) - scan.lost["payloads"]):
        yield Finding("problem", "journal", f"Payload missing: {named('event', missing)}.", RESTORE)


def _check_subjects(connection: apsw.Connection, scan: JournalScan) -> Iterator[Finding]:
    """Histories without a memory, and memories without a history."""
    has_gaps = bool(scan.lost["events"] or scan.damaged)
    memories = {subject for subject, noun in scan.subjects.items() if noun is Memory}
    there = {uid_text(uid): int(id) for uid, id in connection.execute("select uid, id from memories")}
    if gone := sorted(memories - scan.gone - scan.lost["records"] - there.keys()):
        some = ", ".join(gone[:NAMED]) + (f", … ({len(gone)} in all)" if len(gone) > NAMED else "")
        yield Finding("problem", "journal", f"In the journal, but missing: {some}.", RESTORE)
    if back := [there[uid] for uid in scan.gone & there.keys()]:
        yield Finding("problem", "journal", f"Erased, but still there: {named('memory', back)}.", RESTORE)
    if untold := [id for uid, id in there.items() if uid not in memories]:
        message = f"Not in the journal: {named('memory', untold)}."
        yield Finding("note" if has_gaps else "problem", "journal", message, "" if has_gaps else RESTORE)


def _check_states(connection: apsw.Connection, scan: JournalScan, noun: type[Record]) -> Iterator[Finding]:
    """Whether each record is what its events made of it."""
    subjects = [subject for subject, its_noun in scan.subjects.items() if its_noun is noun]
    ids = {}
    for id in ids_of(connection, noun):
        row = sound_row(connection, noun, id)
        if row is not None:
            ids[rows.to_record(noun, row, "").subject] = id
    differing = []
    unknown = scan.gone | scan.lost["records"]
    for subject in subjects:
        if subject in unknown:
            continue
        found = connection.execute(f"{_SELECT} where e.subject = ? order by e.seq", (uid_blob(subject),)).fetchall()
        history = journal.since_erasure([rows.to_event(event) for event in found])
        if any(event.changed is None for event in history):
            continue
        row = sound_row(connection, noun, ids[subject]) if subject in ids else None
        record = None if row is None else rows.to_record(noun, row, "")
        if not _matches_history(record, journal.replay(history)):
            differing.append(subject)
    if differing:
        message = f"{len(differing)} differ from the journal: {', '.join(differing[:NAMED])}."
        yield Finding("problem", noun.noun, message, RESTORE)


def _comparable(fields: dict[str, Any]) -> dict[str, Any]:
    """What the fields mean: a moment is the same in every time zone."""
    scan = {name: value for name, value in fields.items() if value is not None and name not in _OUTSIDE}
    return scan | {name: datetime.fromisoformat(value) for name, value in scan.items() if name in _MOMENTS}
