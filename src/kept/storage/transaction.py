"""The write transaction of every engine: each change and its event together, ids, erasure, and moving a space.

An engine supplies rows (`Rows`), beside its reader and its rows of messages. This module decides which changes are
allowed, which event each of them leaves, which ids are given, and which traces of an erased record stay.
Rule: no row changes without its event, except by `carry`, which brings the events along.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from kept import journal
from kept.errors import NotFound, StorageError
from kept.model import Event, Memory, Message, Record, SessionRecord, replace
from kept.ports import Foundation, R, Stamp
from kept.storage.messages import MessageWriter
from kept.storage.shared import RECEIPTS, tombstone


class Rows(Protocol):
    """The rows of one space in a turn to write, as an engine keeps them.

    Index, weights and counts follow the rows of memories. Everything may wait until the next read or the end.
    """

    @property
    def journal(self) -> journal.Chain:
        """The end of the journal. The engine writes the events that are queued there."""

    @property
    def tombstone_key(self) -> bytes:
        """The key of the marks of erased things."""

    def memories(self, ids: Sequence[int]) -> Iterable[Memory]:
        """The memories with these ids, as far as they exist."""

    def next_id(self, noun: str) -> int:
        """An id that was never given to a record of this noun."""

    def reserve_ids(self, last_ids: Mapping[str, int]) -> None:
        """Give no id up to these, by noun, any more."""

    def insert(self, records: Sequence[Record]) -> None:
        """Add new rows."""

    def replace(self, changes: Sequence[tuple[Record, Record]]) -> None:
        """Change rows that exist, given as they are and as they should be."""

    def delete(self, record: Record) -> None:
        """Remove the row of a small record."""

    def erase(self, record: Record) -> None:
        """Remove a row, and the payloads of all events about it.

        Of a memory also its links, its vector, the receipts that name it, and its conflicts with their payloads.
        """

    def drop_receipts(self, beginning: str | None = None) -> None:
        """Remove the receipts that name something whose name begins so; None: all receipts."""

    def drop_receipts_of(self, numbers: Collection[int]) -> None:
        """Remove the receipts with these numbers."""

    def write_events(self, events: Sequence[tuple[Event, bytes | None]]) -> None:
        """Add sealed events with their payloads; None: the payload was erased."""

    def set_tombstone_key(self, key: bytes) -> None:
        """Make the marks of erased things with this key from now on."""

    def add_tombstones(self, marks: Sequence[str]) -> None:
        """Keep these marks. A mark may be there already."""

    def note_file(self, name: str, note: str | None) -> None:
        """Set or remove the note about a file."""


class RecordWriter(MessageWriter):
    """Changes records and their journal, for the transaction of any engine."""

    if TYPE_CHECKING:  # of the engine's reader
        space: str

        def get(self, noun: type[R], id: int) -> R | None: ...
        def events(self, *, subject: str | None = None) -> list[Event]: ...

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.stamp = rows.journal.stamp
        self.erased: list[str] = []  # subjects, of which the storage sees to it that no byte is left

    def restamp(self, stamp: Stamp) -> None:
        self.stamp = self.rows.journal.stamp = stamp

    def add(self, record: R, action: str) -> R:
        if not record.id:
            record = replace(record, id=self.rows.next_id(record.noun))
        elif self.get(type(record), record.id) is not None:
            raise StorageError(f"There is already a {record.noun} {record.id}.")
        else:
            self.rows.reserve_ids({record.noun: record.id})
        self.rows.insert([record])
        self._log(action, None, record)
        return record

    def put(self, record: R, action: str) -> R:
        before = _existing(self.get(type(record), record.id), record, "change")
        self.rows.replace([(before, record)])
        self._log(action, before, record)
        return record

    def put_many(self, memories: Sequence[Memory], action: str) -> None:
        stored = {memory.id: memory for memory in self.rows.memories([memory.id for memory in memories])}
        changes = [(_existing(stored.get(memory.id), memory, "change"), memory) for memory in memories]
        self.rows.replace(changes)
        for before, memory in changes:
            self._log(action, before, memory)

    def remove(self, record: Record, action: str) -> None:
        before = _existing(self.get(type(record), record.id), record, "remove")
        self.rows.delete(before)
        self._log(action, before, None)

    def erase(self, record: Record, action: str = "erase") -> None:
        current = _existing(self.get(type(record), record.id), record, "erase")
        if isinstance(current, Memory):
            self.bury([*journal.fingerprints(self.events(subject=current.uid)), current.fingerprint])
        elif isinstance(current, SessionRecord):
            self.bury([current.subject])
        self.rows.erase(current)
        self.erased.append(current.subject)
        self._append(action, current.subject, {})

    def erase_receipts(self, numbers: Collection[int] | None = None) -> None:
        if numbers is None:
            self.rows.drop_receipts()
        else:
            self.rows.drop_receipts_of(numbers)
        self.erased.append(RECEIPTS)

    def note_erased(self, session: str) -> None:
        subject = f"{SessionRecord.noun}:{session}"
        self.rows.drop_receipts(f"{session}#")
        self.bury([subject])
        self.erased.append(subject)

    def bury(self, names: Sequence[str]) -> None:
        key = self.rows.tombstone_key
        self.rows.add_tombstones([tombstone(key, name) for name in dict.fromkeys(names)])

    def note_file(self, name: str, note: str | None) -> None:
        self.rows.note_file(name, note)

    def carry(
        self, *, records: Sequence[Record] = (), events: Sequence[Event] = (), messages: Sequence[Message] = ()
    ) -> None:
        last_ids: dict[str, int] = {}
        for record in records:
            last_ids[record.noun] = max(record.id, last_ids.get(record.noun, 0))
        self.rows.reserve_ids(last_ids)
        self.rows.insert([replace(one, space=self.space) if isinstance(one, Memory) else one for one in records])
        if events:
            payloads = [None if event.changed is None else journal.payload(event.changed) for event in events]
            self.rows.write_events([*zip(events, payloads, strict=True)])
            self.rows.journal.continue_after(events[-1])
        for message in messages:
            self.message_rows.insert(message)

    def lay(self, foundation: Foundation) -> None:
        self.rows.set_tombstone_key(foundation.key)
        self.rows.add_tombstones(foundation.tombstones)
        self.rows.reserve_ids(foundation.last_ids)
        for session in foundation.packed:
            self.pack(session)

    def _log(self, action: str, before: Record | None, after: Record | None) -> None:
        """Journal a change of one record from `before` to `after`; None: it is not there."""
        if before is not None:
            self._append(action, (after or before).subject, journal.diff(before, after))
        elif after is not None:
            self.rows.journal.append(action, after.subject, journal.payload_of_new(after))

    def _append(self, action: str, subject: str, changed: journal.Changed) -> None:
        self.rows.journal.append(action, subject, journal.payload(changed))


def _existing(found: R | None, wanted: R, verb: str) -> R:
    """The record that was found. Raises NotFound if it is None."""
    if found is None:
        raise NotFound(f"There is no {wanted.noun} {wanted.id} to {verb}.")
    return found
