"""Save what a damaged file holds: collect whatever proves to be what was written, and build a new file of it.

Records are taken wherever they are found (pages.py), and believed because of the checksum, hash or digest that they
carry. A record that its row proves and one that its history tells are equally good; where both are there, the newer
one stands. Rules: what cannot be proved is not saved, but counted. What was erased does not come back from an older
page. What is not in the new file is reported, and recorded in an event of the new journal.
"""

import secrets
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
import msgspec
from msgspec import Struct, field

from kept import journal
from kept.errors import Corrupt
from kept.model import NOUNS, Conflict, Event, Memory, Record, Session, replace
from kept.ports import Stamp
from kept.storage.messages import from_pack
from kept.storage.shared import is_tombstone, tombstone
from kept.storage.sqlite import encoding, index, messages, rows, schema
from kept.storage.sqlite.acknowledged import Position
from kept.storage.sqlite.connection import connect
from kept.storage.sqlite.health import NAMED, Finding, named
from kept.storage.sqlite.health.history import JOURNAL, REPAIR, missing_payloads
from kept.storage.sqlite.pages import Image
from kept.storage.sqlite.schema import AllOrNothing
from kept.storage.sqlite.writer import insert_events

# A table that holds a noun is saved. So are these; and those are rebuilt from what was saved.
OTHER_TABLES = frozenset(
    {"events", "event_payloads", "messages", "packed_sessions", "memory_links", "receipts", "tombstones", "meta"}
)
DERIVED_TABLES = frozenset(
    {"corpus", "file_notes", "handles", "hot_words", "migrations", "vector_signs", "vectorless", "vectors", "weights"}
)

_FACTS = ("space", "tombstone_key", "created_at", "seal")
_REALS = ("importance", "confidence")  # SQLite stores a whole one as an integer


class Saved(Struct):
    """What was found. Of several versions of a row the first one found stays: the newest, see `salvage`."""

    rows: dict[type[Record], dict[int, tuple[Any, ...]]] = field(default_factory=lambda: {noun: {} for noun in NOUNS})
    outdated: set[int] = field(default_factory=set)  # memories that only an older image still has
    damaged_memories: set[int] = field(default_factory=set)
    events: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    payloads: dict[int, list[tuple[Any, Any]]] = field(default_factory=dict)
    messages: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    damaged_messages: set[int] = field(default_factory=set)
    places: set[tuple[str, int, int]] = field(default_factory=set)  # (session, number, id) of messages, by their index
    packed: dict[str, bytes] = field(default_factory=dict)
    damaged_packs: set[str] = field(default_factory=set)
    links: dict[tuple[int, int], tuple[float, str]] = field(default_factory=dict)
    receipts: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    tombstones: set[str] = field(default_factory=set)
    meta: dict[str, str] = field(default_factory=dict)
    sequences: dict[str, int] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not self.events and not any(self.rows.values()) and self.facts is None

    @property
    def facts(self) -> dict[str, str] | None:
        """What was settled when the file was made, unless it is damaged."""
        facts = {name: self.meta[name] for name in _FACTS if name in self.meta}
        return facts if facts.pop("seal", "") == schema.seal_of(facts) and "space" in facts else None

    @property
    def lost_messages(self) -> set[int]:
        """Messages that were there, as far as their index or their remains tell."""
        return (self.damaged_messages | self.places_of_messages.keys()) - self.messages.keys()

    @property
    def places_of_messages(self) -> dict[int, tuple[str, int]]:
        """Where a message stood. Entries of other indexes look alike, but do not begin with the name of a session."""
        sessions = {values[0] for values in self.messages.values()} | {row[1] for row in self.rows[Session].values()}
        return {id: (session, n) for session, n, id in self.places if session in sessions}

    def journal(self) -> list[Event]:
        """The events that were found, in order, each with its payload if that was found, and not erased since."""
        events = [self._with_payload(event) for _, event in sorted(self.events.items())]
        erased = journal.erasures(events)
        for event in events:
            if journal.noun_of(event) is Conflict:  # it went with either of its memories
                by = max(erased.get(uid, 0) for uid in ("", *_names(event, "left", "right")))
                if event.seq < by:
                    erased[event.subject] = by
        return [
            replace(event, salt=None, changed=None) if event.seq < erased.get(event.subject, 0) else event
            for event in events
        ]

    def _with_payload(self, event: tuple[Any, ...]) -> Event:
        for candidate in self.payloads.get(event[0], ()):
            with suppress(Corrupt):
                return rows.to_event((*event, *candidate))
        return rows.to_event((*event, None, None))


def _names(event: Event, *fields: str) -> set[str]:
    changed = event.changed or {}
    return {str(value) for name in fields for value in changed.get(name, ())}


def salvage(newest: Image, older: Iterable[Image]) -> Saved:
    """Everything that can be proved to be Kept's.

    From older images come the journal and what it tells of; messages and notes, which may have been erased without
    an event, come from the newest one only.
    """
    orders = _column_orders()
    saved = _read(newest, orders)
    for image in older:
        other = _read(image, orders)
        saved.outdated |= other.rows[Memory].keys() - saved.rows[Memory].keys()
        for noun in NOUNS:
            saved.rows[noun] = other.rows[noun] | saved.rows[noun]
        saved.events = other.events | saved.events
        for seq, candidates in other.payloads.items():
            saved.payloads.setdefault(seq, []).extend(candidates)
        saved.tombstones |= other.tombstones
        saved.meta = other.meta | saved.meta
        for table, number in other.sequences.items():
            saved.sequences[table] = max(number, saved.sequences.get(table, 0))
    saved.damaged_memories -= saved.rows[Memory].keys()
    return saved


def _read(image: Image, orders: dict[type[Record], list[str]]) -> Saved:
    saved = Saved()
    for rowid, values in image.rows():
        _take_row(saved, orders, rowid, values)
    for values, is_sound in image.entries():
        _take_entry(saved, values, is_sound=is_sound)
    return saved


def _take_row(saved: Saved, orders: dict[type[Record], list[str]], rowid: int, values: list[Any]) -> None:
    match values:
        case [str(table), int(number)]:  # sqlite_sequence
            saved.sequences[table] = max(number, saved.sequences.get(table, 0))
        case [None, *columns]:  # the id, which is the rowid
            _take_columns(saved, rowid, columns)
            for noun, order in orders.items():
                if len(values) == len(order):
                    _take_record(saved, noun, dict(zip(order, [rowid, *columns], strict=True)))


def _take_columns(saved: Saved, rowid: int, columns: list[Any]) -> None:
    """A row of a table that holds no noun, told by how many columns it has and what they prove."""
    if len(columns) == len(rows.EVENT_COLUMNS) - 1:
        with suppress(Corrupt):
            rows.to_event((rowid, *columns, None, None))
            saved.events.setdefault(rowid, (rowid, *columns))
    elif len(columns) == len(messages.COLUMNS) + 1:
        if messages.is_as_written(columns):
            saved.messages.setdefault(rowid, tuple(columns))
        else:
            saved.damaged_messages.add(rowid)
    elif len(columns) == 5 and rows.checksum(columns[:-1]) == columns[-1]:
        saved.receipts.setdefault(rowid, tuple(columns))
    elif len(columns) == 2:
        salt, changed = columns
        saved.payloads.setdefault(rowid, []).append((salt, changed))


def _take_record(saved: Saved, noun: type[Record], fields: dict[str, Any]) -> None:
    fields |= {name: float(fields[name]) for name in _REALS if isinstance(fields.get(name), int)}
    row = tuple(fields[column] for column in rows.columns_of(noun))
    if rows.is_as_written(noun, row):
        saved.rows[noun].setdefault(row[0], row)
    elif noun is Memory:  # no other table has as many columns: it must have been one
        saved.damaged_memories.add(row[0])


def _take_entry(saved: Saved, values: list[Any], *, is_sound: bool) -> None:
    """A row of a table without rowid; other indexes also have such entries, but none that looks like these."""
    match values:
        case [str(mark)] if is_tombstone(mark):
            saved.tombstones.add(mark)
        case [str(name), str(value)]:
            saved.meta.setdefault(name, value)
        case [str(session), bytes(body)] if session not in saved.packed:
            try:
                if any(message.session != session for message in from_pack(session, body)):
                    raise rows.damaged(session)
                saved.packed[session] = body
            except Corrupt:
                saved.damaged_packs.add(session)
        case [str(session), int(n), int(id)]:
            saved.places.add((session, n, id))
        case [int(a), int(b), float() | int() as strength, str(at)] if is_sound:  # a link has no checksum of its own
            saved.links.setdefault((a, b), (float(strength), at))


def _column_orders() -> dict[type[Record], list[str]]:
    """The columns of each noun's table as they stand in the file."""
    connection = apsw.Connection(":memory:")
    try:
        for step in schema.migrations():
            connection.execute(step.sql)
        return {
            noun: [str(name) for _, name, *_ in connection.execute(f"pragma table_xinfo({rows.table_of(noun)})")]
            for noun in NOUNS
        }
    finally:
        connection.close()


_KEPT_META = ("scrub", "backups_elsewhere")  # lists that must be readable, or they are as good as lost
_BACKUP = "A backup may still have it: `kept restore FILE`."


class Decided(Struct, frozen=True):
    """Every record in its best version, which of them come from the journal alone, and which are lost."""

    records: list[Record]
    from_journal: list[int]
    lost: list[str]


def build(target: Path, saved: Saved, noted: Position, now: datetime) -> list[Finding]:
    """Write a new file of what was saved. What became of the rest."""
    events = saved.journal()
    facts, findings = _facts(saved, events, now)
    lost_events = _lost_events(saved, events, facts["space"], noted)
    last = max([0, *saved.events, *lost_events])
    decided = _decide(saved, events, facts["space"], has_gaps=bool(lost_events))
    _leave_out_old_messages(saved, decided.records)
    conflicts = [record.id for record in decided.records if isinstance(record, Conflict)]
    lost_payloads = missing_payloads(events, conflicts, journal.erasures(events))
    lost: dict[str, list[Any]] = {"events": lost_events, "payloads": lost_payloads, "records": decided.lost}
    told = journal.seal(
        Stamp(group=f"repair-{secrets.token_hex(8)}", at=now, actor="doctor"),
        seq=last + 1,
        action=REPAIR,
        subject=JOURNAL,
        changed={what: (None, gone) for what, gone in lost.items() if gone},
        prev=events[-1].hash if events else journal.FIRST_PREV,
        salt=secrets.token_hex(journal.SALT_BYTES),
    )
    connection = connect(target)
    try:
        schema.migrate(connection, target, schema.migrations(), now)
        with AllOrNothing(connection):
            schema.settle_facts(connection, facts)
            _write(connection, saved, decided.records, [*events, told])
            _give_no_id_again(connection, saved, decided.records, noted)
            index.rebuild(connection)
    finally:
        connection.close()
    return [*findings, *_what_is_lost(saved, decided, events, lost_events, lost_payloads, noted)]


def _facts(saved: Saved, events: list[Event], now: datetime) -> tuple[dict[str, str], list[Finding]]:
    if saved.facts is not None:
        return saved.facts, []
    spaces = (event.changed["space"][1] for event in events if event.changed and "space" in event.changed)
    facts = {
        "space": str(next(spaces, None) or f"project/{secrets.token_hex(4)}"),
        "tombstone_key": secrets.token_hex(32),
        "created_at": str(encoding.clock(events[0].at if events else now)),
    }
    if not saved.tombstones:
        return facts, []
    saved.tombstones.clear()  # they can be read with the lost key only
    message = "The marks of erased memories are lost: an import could bring them back."
    return facts, [Finding("problem", "erase", message)]


def _lost_events(saved: Saved, events: list[Event], space: str, noted: Position) -> list[int]:
    last = max([noted.event, *saved.events])
    missing = [seq for seq in range(1, last + 1) if seq not in saved.events]
    if missing:
        return missing
    histories = _histories(events)
    proved = _proved(saved, space)
    is_cut_off = any(_is_unrecorded(record, histories.get(subject)) for subject, record in proved.items())
    return [last + 1] if is_cut_off else []  # nothing is left of it but what it did


def _is_unrecorded(record: Record, history: list[Event] | None) -> bool:
    """Whether a record was made, or changed last, by an event that is not there."""
    if history is None:
        return True
    told = _replayed(history, "")
    return isinstance(record, Memory) and isinstance(told, Memory) and record.updated_at > told.updated_at


def _histories(events: list[Event]) -> dict[str, list[Event]]:
    """What the journal tells of each subject since it was erased last."""
    histories: dict[str, list[Event]] = {}
    for event in events:
        if event.subject != JOURNAL:
            histories.setdefault(event.subject, []).append(event)
    return {subject: [*journal.since_erasure(history)] for subject, history in histories.items()}


def _proved(saved: Saved, space: str) -> dict[str, Record]:
    """The records that a row shows to be what was written, by their subject."""
    records = (rows.to_record(noun, row, space) for noun in NOUNS for row in saved.rows[noun].values())
    return {
        record.subject: record
        for record in records
        if not (isinstance(record, Memory) and _may_be_erased(saved, record))
    }


def _leave_out_old_messages(saved: Saved, records: list[Record]) -> None:
    """A session is packed or it is not; what an older page has of it in the other form is not taken."""
    packed = {record.name for record in records if isinstance(record, Session) and record.packed_at}
    spoken = {str(values[0]) for values in saved.messages.values()}
    saved.messages = {
        id: values for id, values in saved.messages.items() if values[0] not in packed & saved.packed.keys()
    }
    saved.packed = {name: body for name, body in saved.packed.items() if name in packed or name not in spoken}


def _decide(saved: Saved, events: list[Event], space: str, *, has_gaps: bool) -> Decided:
    histories = _histories(events)
    erased = journal.erasures(events)
    gone = {subject for subject, history in histories.items() if not history}
    proved = _proved(saved, space)
    decided = Decided([], [], [])
    for subject in sorted((proved.keys() | histories.keys()) - gone):
        history, found = histories.get(subject, []), proved.get(subject)
        is_complete = not has_gaps and bool(history) and all(event.changed is not None for event in history)
        if is_complete and not journal.replay(history):
            continue  # it had been removed
        best = _newer(found, _replayed(history, space), is_complete=is_complete)
        if best is not None:
            decided.records.append(best)
            if found is None and isinstance(best, Memory):
                decided.from_journal.append(best.id)
        elif not (journal.noun_of(history[0]) is Conflict and erased):  # it may have gone with an erased memory
            decided.lost.append(subject)
    decided.records.sort(key=lambda record: record.id)
    return decided


def _may_be_erased(saved: Saved, memory: Memory) -> bool:
    """Whether an older page has a memory whose text was erased, by an event that may be lost."""
    if memory.id not in saved.outdated or saved.facts is None:
        return False
    return tombstone(bytes.fromhex(saved.facts["tombstone_key"]), memory.fingerprint) in saved.tombstones


def _replayed(history: list[Event], space: str) -> Record | None:
    """The record as its history tells it; None when that does not begin with its beginning."""
    if not history or history[0].changed is None:
        return None
    try:
        record = msgspec.convert(journal.replay(history), journal.noun_of(history[0]))
    except msgspec.ValidationError:
        return None
    return replace(record, space=space) if isinstance(record, Memory) else record


def _newer(row: Record | None, told: Record | None, *, is_complete: bool) -> Record | None:
    """The newer one of what the row and what the history says; usage is in the row only."""
    if row is None or told is None:
        return row or told
    if not isinstance(row, Memory) or not isinstance(told, Memory):
        return told if is_complete else row
    if is_complete or told.updated_at > row.updated_at:
        return replace(told, use_count=row.use_count, last_used_at=row.last_used_at)
    return row


def _write(connection: apsw.Connection, saved: Saved, records: list[Record], events: list[Event]) -> None:
    for record in records:
        connection.execute(rows.insert_sql(type(record)), rows.to_values(record))
    insert_events(
        connection,
        [(event, None if event.changed is None else journal.payload(event.changed)) for event in events],
    )
    columns = ("id", *messages.COLUMNS, "checksum")
    sql = f"insert into messages ({', '.join(columns)}) values ({', '.join('?' * len(columns))})"
    connection.executemany(sql, [(id, *values) for id, values in sorted(saved.messages.items())])
    sql = "insert into packed_sessions (session, body) values (?, ?)"
    connection.executemany(sql, saved.packed.items())
    sql = "insert into receipts (id, at, body, uids, session, checksum) values (?, ?, ?, ?, ?, ?)"
    erased = journal.erasures(events).keys()
    receipts = [(id, *values) for id, values in saved.receipts.items() if erased.isdisjoint(rows.from_json(values[2]))]
    connection.executemany(sql, sorted(receipts))
    sql = """
        insert into memory_links (memory_id, related_id, strength, at)
        select ?1, ?2, ?3, ?4
        where (select count(*) from memories where id in (?1, ?2)) = 2"""
    connection.executemany(sql, [(*ids, *link) for ids, link in saved.links.items()])
    connection.executemany("insert into tombstones (mark) values (?)", [(mark,) for mark in saved.tombstones])
    for name in _KEPT_META:
        if _is_list(saved.meta.get(name, "")):
            connection.execute("insert into meta (name, value) values (?, ?)", (name, saved.meta[name]))


def _is_list(text: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), list)
    except msgspec.DecodeError:
        return False


def _give_no_id_again(connection: apsw.Connection, saved: Saved, records: list[Record], noted: Position) -> None:
    """An id that was given to something that is lost must not be given to something else."""
    given = {table: [number] for table, number in saved.sequences.items()}
    for noun in NOUNS:
        given.setdefault(rows.table_of(noun), []).extend(saved.rows[noun])
    for record in records:
        given[rows.table_of(type(record))].append(record.id)
    given["memories"] += saved.damaged_memories
    given.setdefault("messages", []).extend([noted.message, *saved.messages, *saved.lost_messages])
    known = {str(name) for (name,) in connection.execute("select name from sqlite_schema where type = 'table'")}
    for table, numbers in given.items():
        if table in known and numbers:
            connection.execute("delete from sqlite_sequence where name = ?", (table,))
            connection.execute("insert into sqlite_sequence (name, seq) values (?, ?)", (table, max(numbers)))


def _what_is_lost(
    saved: Saved,
    decided: Decided,
    events: list[Event],
    lost_events: list[int],
    lost_payloads: list[int],
    noted: Position,
) -> list[Finding]:
    ids = {record.id for record in decided.records if isinstance(record, Memory)}
    message = f"Recovered: {len(ids)} memories, {len(events)} events, {len(saved.messages)} messages."
    findings = [Finding("ok", "memory", message)]
    if decided.from_journal:
        message = f"Rebuilt from the journal: {named('memory', decided.from_journal)}."
        findings.append(Finding("note", "memory", message, "Usage counted since their last change is lost."))
    if lost_memories := saved.damaged_memories - ids:
        findings.append(Finding("problem", "memory", f"Lost: {named('memory', lost_memories)}.", _BACKUP))
    if decided.lost:
        message = f"Lost, but named in the journal: {', '.join(decided.lost)}."
        findings.append(Finding("problem", "memory", message, _BACKUP))
    cut_off = range(max([0, *saved.messages, *saved.lost_messages]) + 1, noted.message + 1)
    if lost_messages := [*saved.lost_messages, *cut_off]:
        places = saved.places_of_messages
        known = [places[id] for id in sorted(lost_messages) if id in places]
        where = "; ".join(f"number {n} of session {session}" for session, n in known[:NAMED])
        message = f"Lost: {named('message', lost_messages)}" + (f" ({where})." if where else ".")
        findings.append(Finding("problem", "messages", message, _BACKUP))
    packed = {record.name for record in decided.records if isinstance(record, Session) and record.packed_at}
    spoken = {str(values[0]) for values in saved.messages.values()}
    if lost_packs := sorted((saved.damaged_packs | packed) - saved.packed.keys() - spoken):
        findings.append(Finding("problem", "messages", f"Lost: the messages of {', '.join(lost_packs)}.", _BACKUP))
    if lost_events:
        message = f"Lost: {named('event', lost_events)}. Lost events can be neither shown nor undone."
        findings.append(Finding("problem", "journal", message))
    if lost_payloads:
        message = f"Lost: the payload of {named('event', lost_payloads)}. Events without a payload cannot be undone."
        findings.append(Finding("problem", "journal", message))
    return findings
