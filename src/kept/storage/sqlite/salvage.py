"""Collect from a damaged file whatever proves to be what was written.

First half of a repair. Records are taken wherever they are found (pages.py), and believed because of the checksum, hash
or digest that they carry. Rule: what cannot be proved is not saved, but counted.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import apsw
from msgspec import Struct, field

from kept.errors import Corrupt
from kept.model import Alias, Conflict, Event, Memory, Record
from kept.storage.shared import is_tombstone
from kept.storage.sqlite import rows, schema
from kept.storage.sqlite.pages import Image

NOUNS: tuple[type[Record], ...] = (Memory, Conflict, Alias)
SAVED_TABLES = frozenset(
    {"memories", "conflicts", "aliases", "events", "event_payloads", "memory_links", "tombstones", "meta", "migrations"}
)
# Made anew from what is saved, or notes that can be done without.
DERIVED_TABLES = frozenset({"corpus", "hot_words", "receipts"})

_FACTS = ("space", "tombstone_key", "created_at", "seal")
_REALS = ("importance", "confidence")  # SQLite stores a whole one as an integer


class Saved(Struct):
    """What was found. Of several versions of a record the first one found stays; callers give newer images first."""

    rows: dict[type[Record], dict[int, tuple[Any, ...]]] = field(default_factory=lambda: {noun: {} for noun in NOUNS})
    damaged: dict[type[Record], set[int]] = field(default_factory=lambda: {noun: set() for noun in NOUNS})
    events: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    payloads: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    links: dict[tuple[int, int], tuple[float, str]] = field(default_factory=dict)
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

    def journal(self) -> list[Event]:
        """The events that were found, in order, each with its payload if that was found, too."""
        found = []
        for seq, event in sorted(self.events.items()):
            try:
                found.append(rows.to_event((*event, *self.payloads.get(seq, (None, None)))))
            except Corrupt:  # the payload is not what was written
                found.append(rows.to_event((*event, None, None)))
        return found


def salvage(images: Iterable[Image]) -> Saved:
    """Everything that can be proved to be of Kept, from the newest image to the oldest."""
    saved = Saved()
    orders = _column_orders()
    for image in images:
        for rowid, values in image.rows():
            _take_row(saved, orders, rowid, values)
        for values in image.entries():
            _take_entry(saved, values)
    for noun in NOUNS:
        saved.damaged[noun] -= saved.rows[noun].keys()
    return saved


def _take_row(saved: Saved, orders: dict[type[Record], list[str]], rowid: int, values: list[Any]) -> None:
    for noun, order in orders.items():
        if len(values) == len(order) and values[0] is None:
            fields = dict(zip(order, values, strict=True)) | {"id": rowid}
            fields |= {name: float(fields[name]) for name in _REALS if isinstance(fields.get(name), int)}
            row = tuple(fields[column] for column in rows.columns_of(noun))
            if rows.is_as_written(noun, row):
                saved.rows[noun].setdefault(rowid, row)
            elif noun is Memory:  # no other table has as many columns
                saved.damaged[noun].add(rowid)
    if len(values) == len(rows.EVENT_COLUMNS) and values[0] is None and rowid not in saved.events:
        event = (rowid, *values[1:])
        try:
            rows.to_event((*event, None, None))
        except Corrupt:
            return
        saved.events[rowid] = event
    elif len(values) == 3 and values[0] is None:
        saved.payloads.setdefault(rowid, (values[1], values[2]))
    elif len(values) == 2 and isinstance(values[0], str) and isinstance(values[1], int):
        saved.sequences[values[0]] = max(values[1], saved.sequences.get(values[0], 0))


def _take_entry(saved: Saved, values: list[Any]) -> None:
    match values:
        case [str(mark)] if is_tombstone(mark):
            saved.tombstones.add(mark)
        case [str(name), str(value)]:
            saved.meta.setdefault(name, value)
        case [int(a), int(b), float() | int() as strength, str(at), int(seal)]:
            try:
                expected = a * 1000003 + b * 1009 + int(strength * 1000)
                expected += int(datetime.fromisoformat(at).timestamp()) + int(at[20:26])
            except ValueError:
                return
            if seal == expected:
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
