"""The rows of a SQLite space in a turn to write. storage/transaction.py decides which change.

Triggers keep index and statistics in step with the rows (0001_start.sql). New memories and events are written together
at the next read or at the end: the full-text index takes many rows in one statement three times as fast as one by one.
Rule: nothing here begins or ends a transaction; storage.py does, in this process's turn.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import apsw

from kept import journal
from kept.errors import StorageError
from kept.model import NOUNS, Event, Memory, Record
from kept.ports import Stamp
from kept.storage import weights
from kept.storage.shared import prepare
from kept.storage.sqlite import index, rows, schema, vectors
from kept.storage.sqlite.acknowledged import Position
from kept.storage.sqlite.connection import View
from kept.storage.sqlite.encoding import hex_text, uid_blob
from kept.storage.sqlite.reader import SqliteReader
from kept.storage.transaction import RecordWriter

_INSERT_EVENT = f"insert into events ({', '.join(rows.EVENT_COLUMNS)}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_NUMBERED = {noun.noun: rows.table_of(noun) for noun in NOUNS} | {"receipt": "receipts"}


class Tip(NamedTuple):
    """The end of one transaction, from which the next one continues, if it has been looked up. Used once."""

    event: tuple[int, str] | None  # the last one, with its hash
    ids: dict[str, int]  # the last one given, by noun
    chunks: weights.Chunks  # the one written last


class PendingView(View):
    """The view of a write transaction, and its rows. New memories and events wait here until the next read or the end.

    It is the `Rows` of transaction.py.
    """

    is_changing = True

    def __init__(self, space: str, connection: apsw.Connection, stamp: Stamp, salt: journal.Salt, tip: Tip) -> None:
        super().__init__(space, connection)
        self.n_stored = 0  # new memories that were written
        self.journal = journal.Chain(stamp, salt, tip.event or self._last_event)
        self.chunks = tip.chunks
        self._last_ids = tip.ids
        self._memories: list[Memory] = []
        self._has_failed = False

    @property
    def connection(self) -> apsw.Connection:
        self.flush()
        return self.bare

    @property
    def tip(self) -> Tip:
        """Where this turn has come to."""
        return Tip(self.journal.end, self._last_ids, self.chunks)

    @property
    def tombstone_key(self) -> bytes:
        return bytes.fromhex(self.meta("tombstone_key") or "")

    def flush(self) -> None:
        """Write the pending rows. If that fails, the transaction cannot be committed."""
        if self._has_failed or not self.bare.in_transaction:  # a full disk makes SQLite end the transaction itself
            raise StorageError(
                "An earlier change in this transaction failed, so none of it was stored.", hint="Begin a new one."
            )
        try:
            if self._memories:
                memories, self._memories = self._memories, []
                self.n_stored += len(memories)
                values = [*map(rows.to_values, memories, map(prepare, memories))]
                index.note(self.bare, memories, self.chunks)
                rows.insert(self.bare, rows.insert_sql(Memory), values)
            if events := self.journal.take():
                insert_events(self.bare, events)
        except BaseException:
            self._has_failed = True
            raise

    def memories(self, ids: Sequence[int]) -> list[Memory]:
        return [rows.to_memory(row, self.space) for row in self.memory_rows(ids)]

    def next_id(self, noun: str) -> int:
        """The id that SQLite would give next, known before the row is written, because the row's checksum covers it."""
        self._last_ids[noun] = self._last_id(noun) + 1
        return self._last_ids[noun]

    def reserve_ids(self, last_ids: Mapping[str, int]) -> None:
        for noun in last_ids.keys() & _NUMBERED.keys():
            self._last_ids[noun] = max(last_ids[noun], self._last_id(noun))
            known = (_NUMBERED[noun], self._last_ids[noun])
            self.connection.execute("delete from sqlite_sequence where name = ?", known[:1])
            self.connection.execute("insert into sqlite_sequence (name, seq) values (?, ?)", known)

    def _last_id(self, noun: str) -> int:
        if noun not in self._last_ids:
            sql = "select seq from sqlite_sequence where name = ?"
            last: Any = self.connection.execute(sql, (_NUMBERED[noun],)).get
            self._last_ids[noun] = last or 0
        return self._last_ids[noun]

    def insert(self, records: Sequence[Record]) -> None:
        for record in records:
            if isinstance(record, Memory):
                self._memories.append(record)
            else:
                self.connection.execute(rows.insert_sql(type(record)), rows.to_values(record))

    def replace(self, changes: Sequence[tuple[Record, Record]]) -> None:
        changed: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
        for before, record in changes:
            old, new = rows.to_row(before), rows.to_row(record)
            if values := {column: value for column, value in new.items() if value != old[column]}:
                changed.setdefault((rows.table_of(type(record)), *values), []).append((record.id, *values.values()))
        for (table, *columns), together in changed.items():
            _update_rows(self.connection, table, columns, together)
        moved = [(old, new) for old, new in changes if isinstance(old, Memory) and isinstance(new, Memory)]
        if moved:
            index.move(self.connection, moved, self.chunks)

    def delete(self, record: Record) -> None:
        self.connection.execute(f"delete from {rows.table_of(type(record))} where id = ?", (record.id,))

    def erase(self, record: Record) -> None:
        if isinstance(record, Memory):
            erase_rows(self.connection, record.uid)
            self.chunks.clear()
        else:
            erase_payloads(self.connection, record.subject)
            self.delete(record)

    def drop_receipts(self, beginning: str | None = None) -> None:
        self.connection.execute("delete from receipts where ?1 is null or instr(uids, '\"' || ?1)", (beginning,))

    def drop_receipts_of(self, numbers: Collection[int]) -> None:
        self.connection.executemany("delete from receipts where id = ?", [(number,) for number in numbers])

    def write_events(self, events: Sequence[tuple[Event, bytes | None]]) -> None:
        insert_events(self.connection, events)

    def set_tombstone_key(self, key: bytes) -> None:
        schema.change_facts(self.connection, {"tombstone_key": key.hex()})

    def add_tombstones(self, marks: Sequence[str]) -> None:
        sql = "insert into tombstones (mark) values (?) on conflict do nothing"
        self.connection.executemany(sql, [(mark,) for mark in marks])

    def note_file(self, name: str, note: str | None) -> None:
        if note is None:
            self.connection.execute("delete from file_notes where name = ?", (name,))
            return
        self.connection.execute(
            """
            insert into file_notes (name, note, checksum) values (?, ?, ?)
            on conflict do update set note = excluded.note, checksum = excluded.checksum""",
            (name, note, rows.checksum((name, note))),
        )

    def _last_event(self) -> tuple[int, str]:
        last: Any = self.bare.execute("select seq, hash from events order by seq desc limit 1").fetchone()
        return (last[0], hex_text(last[1])) if last else (0, journal.FIRST_PREV)


class SqliteTransaction(SqliteReader, RecordWriter):
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
        view = PendingView(space, connection, stamp, salt, tip)
        SqliteReader.__init__(self, view, known)
        RecordWriter.__init__(self, view)

    @property
    def position(self) -> Position:
        """The last event and the last message of this turn; 0 where there is none."""
        return Position(self.view.journal.last_seq, self.message_rows.last_id)

    def flush(self) -> None:
        """Write the pending rows."""
        self.view.flush()


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


def _update_rows(
    connection: apsw.Connection, table: str, columns: Sequence[str], values: Sequence[Sequence[Any]]
) -> None:
    """Set these columns of rows of one table, in few statements; `values` begin with the id."""
    if len(values) == 1:
        id, *new = values[0]
        assignments = ", ".join(f"{column} = ?" for column in columns)
        connection.execute(f"update {table} set {assignments} where id = ?", (*new, id))
        return
    marks = f"({', '.join('?' * (len(columns) + 1))})"
    assignments = ", ".join(f"{column} = new.{column}" for column in columns)
    for start in range(0, len(values), rows.AT_ONCE):
        some = values[start : start + rows.AT_ONCE]
        sql = f"""
            with new (id, {", ".join(columns)}) as (values {", ".join([marks] * len(some))})
            update {table} set {assignments} from new where {table}.id = new.id"""
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
