"""Writing to a SQLite space: each change and its event in the same transaction.

Triggers keep index and statistics in step with the rows (0001_start.sql). New memories and events are written together
at the next read or at the end: the full-text index takes many rows in one statement three times as fast as one by one.
Rule: nothing here begins or ends a transaction; storage.py does, in this process's turn.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw

from kept import journal
from kept.errors import NotFound, StorageError
from kept.model import NOUNS, Event, Memory, Message, Record, replace
from kept.ports import Foundation, R, Stamp
from kept.storage import weights
from kept.storage.messages import MessageWriter
from kept.storage.shared import prepare, tombstone
from kept.storage.sqlite import erase, index, rows, schema, vectors
from kept.storage.sqlite.acknowledged import Position
from kept.storage.sqlite.connection import View
from kept.storage.sqlite.encoding import hex_text, uid_blob
from kept.storage.sqlite.reader import SqliteReader

_INSERT_EVENT = f"insert into events ({', '.join(rows.EVENT_COLUMNS)}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class Tip(NamedTuple):
    """The end of one transaction, from which the next one continues, if it has been looked up. Used once."""

    event: tuple[int, str] | None  # the last one, with its hash
    ids: dict[str, int]  # the last one given, by table
    chunks: weights.Chunks  # the one written last


class PendingView(View):
    """The view of a write transaction. New memories and events wait here until the next read or the end."""

    is_changing = True

    def __init__(self, space: str, connection: apsw.Connection, stamp: Stamp, salt: journal.Salt, tip: Tip) -> None:
        super().__init__(space, connection)
        self.memories: list[Memory] = []
        self.n_stored = 0  # new memories that were written
        self.journal = journal.Chain(stamp, salt, tip.event or self._last_event)
        self.chunks = tip.chunks
        self._has_failed = False

    @property
    def connection(self) -> apsw.Connection:
        self.flush()
        return self.bare

    def flush(self) -> None:
        """Write the pending rows. If that fails, the transaction cannot be committed."""
        if self._has_failed or not self.bare.in_transaction:  # a full disk makes SQLite end the transaction itself
            raise StorageError(
                "An earlier change in this transaction failed, so none of it was stored.", hint="Begin a new one."
            )
        try:
            if self.memories:
                memories, self.memories = self.memories, []
                self.n_stored += len(memories)
                values = [*map(rows.to_values, memories, map(prepare, memories))]
                index.note(self.bare, memories, self.chunks)
                rows.insert(self.bare, rows.insert_sql(Memory), values)
            if events := self.journal.take():
                insert_events(self.bare, events)
        except BaseException:
            self._has_failed = True
            raise

    def _last_event(self) -> tuple[int, str]:
        last: Any = self.bare.execute("select seq, hash from events order by seq desc limit 1").fetchone()
        return (last[0], hex_text(last[1])) if last else (0, journal.FIRST_PREV)


class SqliteTransaction(SqliteReader, MessageWriter):
    """A turn to write."""

    view: PendingView

    def __init__(
        self,
        space: str,
        connection: apsw.Connection,
        stamp: Stamp,
        salt: journal.Salt,
        known: weights.Weights,
        tip: Tip,
    ) -> None:
        super().__init__(PendingView(space, connection, stamp, salt, tip), known)
        self.stamp = stamp
        self._last_ids = tip.ids
        self.erased: list[str] = []  # uids, of which storage.py sees to it that no byte is left

    def restamp(self, stamp: Stamp) -> None:
        self.stamp = self.view.journal.stamp = stamp

    def add(self, record: R, action: str) -> R:
        if not record.id:
            record = replace(record, id=self._next_id(rows.table_of(type(record))))
        elif self.get(type(record), record.id) is not None:
            raise StorageError(f"There is already a {record.noun} {record.id}.")
        else:
            self._last_ids.pop(rows.table_of(type(record)), None)  # SQLite counts on from the largest
        if isinstance(record, Memory):
            self.view.memories.append(record)
        else:
            self.view.connection.execute(rows.insert_sql(type(record)), rows.to_values(record))
        self.view.journal.append(action, record.subject, journal.payload_of_new(record))
        return record

    def carry(
        self, *, records: Sequence[Record] = (), events: Sequence[Event] = (), messages: Sequence[Message] = ()
    ) -> None:
        self._last_ids.clear()  # SQLite counts on from the largest
        for record in records:
            if isinstance(record, Memory):
                self.view.memories.append(replace(record, space=self.space))
            else:
                self.view.connection.execute(rows.insert_sql(type(record)), rows.to_values(record))
        if events:
            payloads = [None if event.changed is None else journal.payload(event.changed) for event in events]
            insert_events(self.view.connection, [*zip(events, payloads, strict=True)])
            self.view.journal.continue_after(events[-1])
        for message in messages:
            self.message_rows.insert(message)

    def lay(self, foundation: Foundation) -> None:
        connection = self.view.connection
        schema.change_facts(connection, {"tombstone_key": foundation.key.hex()})
        marks = [(mark,) for mark in foundation.tombstones]
        connection.executemany("insert into tombstones (mark) values (?) on conflict do nothing", marks)
        tables = {noun.noun: rows.table_of(noun) for noun in NOUNS} | {"receipt": "receipts"}
        for noun, last in foundation.last_ids.items():
            if noun in tables:
                connection.execute("delete from sqlite_sequence where name = ?", (tables[noun],))
                connection.execute("insert into sqlite_sequence (name, seq) values (?, ?)", (tables[noun], last))
        self._last_ids.clear()
        for session in foundation.packed:
            self.pack(session)

    def put(self, record: R, action: str) -> R:
        before = self.get(type(record), record.id)
        if before is None:
            raise NotFound(f"There is no {record.noun} {record.id} to change.")
        old, new = rows.to_row(before), rows.to_row(record)
        changes = {column: value for column, value in new.items() if value != old[column]}
        if changes:
            assignments = ", ".join(f"{column} = ?" for column in changes)
            self.view.connection.execute(
                f"update {rows.table_of(type(record))} set {assignments} where id = ?", (*changes.values(), record.id)
            )
        if isinstance(before, Memory) and isinstance(record, Memory):
            index.move(self.view.connection, [(before, record)], self.view.chunks)
        self.view.journal.append(action, record.subject, journal.payload(journal.diff(before, record)))
        return record

    def note_file(self, name: str, note: str | None) -> None:
        if note is None:
            self.view.connection.execute("delete from file_notes where name = ?", (name,))
            return
        self.view.connection.execute(
            """
            insert into file_notes (name, note, checksum) values (?, ?, ?)
            on conflict do update set note = excluded.note, checksum = excluded.checksum""",
            (name, note, rows.checksum((name, note))),
        )

    def put_many(self, memories: Sequence[Memory], action: str) -> None:
        pairs = []
        changed: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
        for memory in memories:
            before = self.get(Memory, memory.id)
            if before is None:
                raise NotFound(f"There is no memory {memory.id} to change.")
            pairs.append((before, memory))
            old, new = rows.to_row(before), rows.to_row(memory)
            if changes := {column: value for column, value in new.items() if value != old[column]}:
                changed.setdefault(tuple(changes), []).append((memory.id, *changes.values()))
        for columns, values in changed.items():
            _update_rows(self.view.connection, columns, values)
        index.move(self.view.connection, pairs, self.view.chunks)
        for before, memory in pairs:
            self.view.journal.append(action, memory.subject, journal.payload(journal.diff(before, memory)))

    def remove(self, record: Record, action: str) -> None:
        before = self.get(type(record), record.id)
        if before is None:
            raise NotFound(f"There is no {record.noun} {record.id} to remove.")
        self.view.connection.execute(f"delete from {rows.table_of(type(record))} where id = ?", (record.id,))
        self.view.journal.append(action, before.subject, journal.payload(journal.diff(before, None)))

    def erase(self, record: Record, action: str = "erase") -> None:
        current = self.get(type(record), record.id)
        if current is None:
            raise NotFound(f"There is no {record.noun} {record.id} to erase.")
        if isinstance(current, Memory):
            self.bury([*journal.fingerprints(self.events(subject=current.uid)), current.fingerprint])
            erase_rows(self.view.connection, current.uid)
            self.view.chunks.clear()
        else:
            erase_payloads(self.view.connection, current.subject)
            self.view.connection.execute(f"delete from {rows.table_of(type(record))} where id = ?", (record.id,))
        self.erased.append(current.subject)
        self.view.journal.append(action, current.subject, journal.payload({}))

    def erase_receipts(self) -> None:
        self.view.connection.execute("delete from receipts")
        self.erased.append(erase.RECEIPTS)

    def bury(self, names: Sequence[str]) -> None:
        key = bytes.fromhex(self.view.meta("tombstone_key") or "")
        self.view.connection.executemany(
            "insert into tombstones (mark) values (?) on conflict do nothing",
            [(tombstone(key, name),) for name in names],
        )

    def has_come_past(self, step: int) -> bool:
        """Whether this transaction added an event whose number is a multiple of `step`."""
        return self.view.journal.has_passed(step)

    @property
    def position(self) -> Position:
        """The last event and the last message of this turn; 0 where there is none."""
        return Position(self.view.journal.last_seq, self.message_rows.last_id)

    @property
    def tip(self) -> Tip:
        """Where this turn has come to."""
        return Tip(self.view.journal.end, self._last_ids, self.view.chunks)

    def flush(self) -> None:
        """Write the pending rows."""
        self.view.flush()

    def note_erased(self, session: str) -> None:
        self.view.connection.execute("delete from receipts where instr(uids, ?)", (f'"{session}#',))
        self.erased.append(f"{erase.SESSION}{session}")

    def _next_id(self, table: str) -> int:
        """The id that SQLite would give next, known before the row is written, because the row's checksum covers it."""
        if table not in self._last_ids:
            last: Any = self.view.connection.execute("select seq from sqlite_sequence where name = ?", (table,)).get
            self._last_ids[table] = last or 0
        self._last_ids[table] += 1
        return self._last_ids[table]


def insert_events(connection: apsw.Connection, told: Sequence[tuple[Event, bytes | None]]) -> None:
    """Write sealed events, and the bytes of their payloads, unless these were erased."""
    rows.insert(
        connection,
        _INSERT_EVENT,
        [rows.event_values(event) for event, _ in told],
    )
    rows.insert(
        connection,
        "insert into event_payloads (seq, salt, changed) values (?, ?, ?)",
        [rows.payload_values(event, payload) for event, payload in told if payload is not None],
    )


def _update_rows(connection: apsw.Connection, columns: Sequence[str], values: Sequence[Sequence[Any]]) -> None:
    """Set these columns of many memories, in few statements; `values` begin with the id."""
    marks = f"({', '.join('?' * (len(columns) + 1))})"
    assignments = ", ".join(f"{column} = new.{column}" for column in columns)
    for start in range(0, len(values), rows.AT_ONCE):
        some = values[start : start + rows.AT_ONCE]
        sql = f"""
            with new (id, {", ".join(columns)}) as (values {", ".join([marks] * len(some))})
            update memories set {assignments} from new where memories.id = new.id"""
        connection.execute(sql, [value for row in some for value in row])


def erase_rows(connection: apsw.Connection, uid: str) -> None:
    """Delete everything that holds a word of the memory: its row, its conflicts, the payloads of their events."""
    subjects = [uid]
    for (number,) in connection.execute("select id from conflicts where left = ?1 or right = ?1", (uid,)).fetchall():
        subjects.append(f"c{number}")
    for subject in subjects:
        erase_payloads(connection, subject)
    connection.execute("delete from receipts where instr(uids, ?)", (uid,))
    connection.execute("delete from conflicts where left = ?1 or right = ?1", (uid,))
    sql = "select id, words, scope from memories where uid = ?"
    found: Any = connection.execute(sql, (uid_blob(uid),)).fetchall()
    for memory_id, words, scope in found:
        index.drop(connection, memory_id, words.split(), scope)
        vectors.drop(connection, memory_id)
    connection.execute("delete from memories where uid = ?", (uid_blob(uid),))


def erase_payloads(connection: apsw.Connection, subject: str) -> None:
    """Delete what the events of a record say about it; the chain verifies without."""
    connection.execute(
        "delete from event_payloads where seq in (select seq from events where subject = ?)", (uid_blob(subject),)
    )
