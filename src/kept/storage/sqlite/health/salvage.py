"""Collect from a damaged file whatever proves to be what was written.

First half of a repair. Records are taken wherever they are found (pages.py), and believed because of the checksum, hash
or digest that they carry. Rule: what cannot be proved is not saved, but counted; and what was erased does not come back
from an older page.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import apsw
from msgspec import Struct, field

from kept import journal
from kept.errors import Corrupt
from kept.model import NOUNS, Conflict, Event, Memory, Record, Session, replace
from kept.storage.messages import from_pack
from kept.storage.shared import is_tombstone
from kept.storage.sqlite import messages, rows, schema
from kept.storage.sqlite.pages import Image

# A table that holds a noun is saved. So are these; and those are made anew from what was saved.
OTHER_TABLES = frozenset(
    {"events", "event_payloads", "messages", "packed_sessions", "memory_links", "receipts", "tombstones", "meta"}
)
DERIVED_TABLES = frozenset(
    {"corpus", "handles", "hot_words", "migrations", "vector_signs", "vectorless", "vectors", "weights"}
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
    elif len(columns) == 4 and rows.checksum(columns[:-1]) == columns[-1]:
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
    """A row of a table without rowid; other indexes have such entries, too, but none that looks like these."""
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
