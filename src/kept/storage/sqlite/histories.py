"""The journal of a file against itself and against the rows: the part of an examination that reads every event.

An earlier repair may have found events, payloads or memories gone; its own event says which, and from then on
that is a note and no longer a problem. Rule: whatever is missing must be accounted for by an event that is there.
"""

from collections.abc import Collection, Iterator
from typing import Any

import apsw

from kept import journal
from kept.errors import Corrupt
from kept.model import Alias, Conflict, Event, Memory, Record
from kept.storage.sqlite import rows
from kept.storage.sqlite.findings import FIX, NAMED, Finding, named

REPAIR = "repair"  # the action of the event that says what could not be saved
JOURNAL = "journal"  # and its subject

_USAGE = frozenset({"use_count", "last_used_at"})  # counted outside of the journal


def check_journal(connection: apsw.Connection, *, is_deep: bool) -> Iterator[Finding]:
    """Every event against its hash and the one before it, every payload, and every memory against both."""
    damaged: list[int] = []
    events = list(_read(connection, damaged))
    lost = {seq for event in events for seq in lost_by_repair(event, "events")}
    wrong = journal.broken_links(events, lost | set(damaged))
    if damaged:
        yield Finding("problem", "journal", f"Not what was written: {named('event', damaged)}.", FIX)
    if wrong:
        yield Finding("problem", "journal", f"The chain is broken: {'; '.join(wrong[:NAMED])}.", FIX)
    if not damaged and not wrong:
        yield Finding("ok", "journal", f"All {len(events)} events follow from each other.")
    if lost:
        yield Finding("note", "journal", f"A repair could not save {named('event', lost)}.")
    yield from _check_payloads(events, ids_of(connection, Conflict))
    yield from _check_subjects(connection, events, has_gaps=bool(lost or damaged))
    if is_deep and not lost and not damaged:
        yield from _check_states(connection, events)


def lost_by_repair(event: Event, what: str) -> list[Any]:
    """What the event of a repair says is gone for good: events, payloads or memories."""
    if event.action != REPAIR or event.subject != JOURNAL or event.changed is None:
        return []
    return list(event.changed.get(what, (None, []))[1])


def missing_payloads(events: Collection[Event], conflicts: Collection[int]) -> list[int]:
    """The events whose payload is gone although nothing erased it. A conflict goes with a memory that it names."""
    erased = {event.subject for event in events if event.action == "erase"}

    def is_erased(event: Event) -> bool:
        is_conflict = journal.noun_of(event) is Conflict
        return event.subject in erased or (is_conflict and bool(erased) and int(event.subject[1:]) not in conflicts)

    return [event.seq for event in events if event.changed is None and not is_erased(event)]


def ids_of(connection: apsw.Connection, noun: type[Record]) -> list[int]:
    return [int(id) for (id,) in connection.execute(f"select id from {rows.table_of(noun)} order by id")]


def sound_row(connection: apsw.Connection, noun: type[Record], id: int) -> tuple[Any, ...] | None:
    """The stored row, or None when it cannot be read or is not what was written."""
    sql = f"select {', '.join(rows.columns_of(noun))} from {rows.table_of(noun)} where id = ?"
    try:
        row = connection.execute(sql, (id,)).fetchone()
        if row is not None:
            rows.verify(noun, row)
    except (UnicodeDecodeError, apsw.CorruptError, Corrupt):
        return None
    return row


def _read(connection: apsw.Connection, damaged: list[int]) -> Iterator[Event]:
    """Every event that is what was sealed; the numbers of the others are put into `damaged`."""
    sql = f"""
        select {", ".join(f"e.{column}" for column in rows.EVENT_COLUMNS)}, p.salt, p.changed
        from events e
        left join event_payloads p on p.seq = e.seq
        where e.seq = ?"""
    for seq in [int(row[0]) for row in connection.execute("select seq from events order by seq")]:
        try:
            yield rows.to_event(connection.execute(sql, (seq,)).fetchall()[0])
        except (UnicodeDecodeError, IndexError, apsw.CorruptError, Corrupt):
            damaged.append(seq)


def _check_payloads(events: list[Event], conflicts: Collection[int]) -> Iterator[Finding]:
    erased_by = {event.subject: event.seq for event in events if event.action == "erase"}
    erased: dict[int, list[int]] = {}
    for event in events:
        if event.changed is None and event.subject in erased_by:
            erased.setdefault(erased_by[event.subject], []).append(event.seq)
    for by, seqs in list(erased.items())[:NAMED]:
        yield Finding("note", "journal", f"The payload of {named('event', seqs)} was erased by event {by}.")
    if len(erased) > NAMED:
        yield Finding("note", "journal", f"… and so were those of {len(erased) - NAMED} more memories.")
    known = {seq for event in events for seq in lost_by_repair(event, "payloads")}
    if missing := set(missing_payloads(events, conflicts)) - known:
        yield Finding("problem", "journal", f"What they changed is missing: {named('event', missing)}.", FIX)


def _check_subjects(connection: apsw.Connection, events: list[Event], *, has_gaps: bool) -> Iterator[Finding]:
    """Histories without a memory, and memories without a history."""
    erased = {event.subject for event in events if event.action == "erase"}
    known = {uid for event in events for uid in lost_by_repair(event, "memories")}
    told = {event.subject for event in events if event.subject != JOURNAL and journal.noun_of(event) is Memory}
    there = {str(uid): int(id) for uid, id in connection.execute("select uid, id from memories")}
    if gone := sorted(told - erased - known - there.keys()):
        message = f"The journal knows {len(gone)} memories that are not there: {', '.join(gone[:NAMED])}."
        yield Finding("problem", "journal", message, FIX)
    if back := [there[uid] for uid in erased & there.keys()]:
        yield Finding("problem", "journal", f"Erased, and there all the same: {named('memory', back)}.", FIX)
    if untold := [id for uid, id in there.items() if uid not in told]:
        message = f"Without a history: {named('memory', untold)}."
        yield Finding("note" if has_gaps else "problem", "journal", message, "" if has_gaps else FIX)


def _check_states(connection: apsw.Connection, events: list[Event]) -> Iterator[Finding]:
    """Whether each record is what its events made of it."""
    histories: dict[str, list[Event]] = {}
    for event in events:
        histories.setdefault(event.subject, []).append(event)
    for noun in (Memory, Conflict, Alias):
        differing = []
        for id in ids_of(connection, noun):
            row = sound_row(connection, noun, id)
            if row is None:
                continue
            record = rows.to_record(noun, row, "")
            history = histories.get(record.subject, [])
            is_told = all(event.changed is not None for event in history)
            if is_told and _comparable(journal.wire(record)) != _comparable(journal.replay(history)):
                differing.append(id)
        if differing:
            yield Finding("problem", noun.noun, f"Not what the journal says: {named(noun.noun, differing)}.", FIX)


def _comparable(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None and name not in _USAGE | {"space"}}
