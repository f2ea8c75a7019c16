"""Writing to a SQLite space: each change and its event in the same transaction.

Triggers keep index and statistics in step with the rows (0001_start.sql). Rule: nothing here
begins or ends a transaction; storage.py does, in this process's turn.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import apsw

from kept import journal
from kept.errors import NotFound, StorageError
from kept.model import Event, Memory, Record, replace
from kept.ports import R, Stamp
from kept.storage.shared import RECEIPTS_KEPT, tombstone
from kept.storage.sqlite import rows, weights
from kept.storage.sqlite.acknowledged import Position
from kept.storage.sqlite.messages import MessageWriter
from kept.storage.sqlite.reader import COUNTER, SqliteReader

Salt = Callable[[int], str]


class SqliteTransaction(SqliteReader, MessageWriter):
    """A turn to write."""

    def __init__(self, space: str, connection: apsw.Connection, stamp: Stamp, salt: Salt) -> None:
        super().__init__(space, connection)
        self.stamp = stamp
        self._salt = salt
        self._last: tuple[int, str] | None = None
        self.erased: list[str] = []  # uids, of which storage.py sees to it that no byte is left

    def add(self, record: R, action: str) -> R:
        if not record.id:
            record = replace(record, id=self._next_id(rows.table_of(type(record))))
        elif self.get(type(record), record.id) is not None:
            raise StorageError(f"There is already a {record.noun} with id {record.id}.")
        self._connection.execute(rows.insert_sql(type(record)), rows.to_values(record))
        if isinstance(record, Memory):
            weights.note(self._connection, record)
        self._append(action, record.subject, journal.diff(None, record))
        return record

    def put(self, record: R, action: str) -> R:
        before = self.get(type(record), record.id)
        if before is None:
            raise NotFound(f"There is no {record.noun} with id {record.id} to change.")
        old, new = rows.to_row(before), rows.to_row(record)
        changes = {column: value for column, value in new.items() if value != old[column]}
        if changes:
            assignments = ", ".join(f"{column} = ?" for column in changes)
            self._connection.execute(
                f"update {rows.table_of(type(record))} set {assignments} where id = ?", (*changes.values(), record.id)
            )
        if isinstance(record, Memory):
            weights.note(self._connection, record)
        self._append(action, record.subject, journal.diff(before, record))
        return record

    def remove(self, record: Record, action: str) -> None:
        before = self.get(type(record), record.id)
        if before is None:
            raise NotFound(f"There is no {record.noun} with id {record.id} to remove.")
        self._connection.execute(f"delete from {rows.table_of(type(record))} where id = ?", (record.id,))
        self._append(action, before.subject, journal.diff(before, None))

    def erase(self, memory: Memory, action: str = "erase") -> None:
        current = self.get(Memory, memory.id)
        if current is None:
            raise NotFound(f"There is no memory with id {memory.id} to erase.")
        key = bytes.fromhex(self.meta("tombstone_key") or "")
        fingerprints = journal.fingerprints(self.events(subject=current.uid)) | {current.fingerprint}
        erase_rows(self._connection, current.uid)
        self._connection.executemany(
            "insert into tombstones (mark) values (?) on conflict do nothing",
            [(tombstone(key, fingerprint),) for fingerprint in fingerprints],
        )
        self.erased.append(current.uid)
        self._append(action, current.uid, {})

    @property
    def position(self) -> Position:
        """The last event and the last message of this turn; 0 where there is none."""
        return Position(self._last[0] if self._last else 0, self.last_message)

    def _next_id(self, table: str) -> int:
        """The id that SQLite would give next, known before the row is written, because the row's checksum covers it."""
        row = self._connection.execute("select seq from sqlite_sequence where name = ?", (table,)).fetchone()
        return 1 if row is None else int(row[0]) + 1

    def _append(self, action: str, subject: str, changed: journal.Changed) -> None:
        if self._last is None:
            row = self._connection.execute("select seq, hash from events order by seq desc limit 1").fetchone()
            self._last = row or (0, journal.FIRST_PREV)
        seq, prev = self._last
        payload = journal.payload(changed)
        event = journal.seal(
            self.stamp,
            seq=seq + 1,
            action=action,
            subject=subject,
            changed=changed,
            prev=prev,
            salt=self._salt(journal.SALT_BYTES),
            payload=payload,
        )
        insert_event(self._connection, event, payload)
        self._last = (event.seq, event.hash)


class SqliteBookkeeping:
    """Recall's own notes, in a transaction that is not synced and not in the journal."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def count_uses(self, ids: Sequence[int], at: datetime) -> None:
        for id in ids:
            row = self._connection.execute(
                f"select {rows.MEMORY_SELECT} from memories m where id = ?", (id,)
            ).fetchone()
            if row is not None:
                changes = rows.after_use(row, at)
                assignments = ", ".join(f"{column} = ?" for column in changes)
                self._connection.execute(f"update memories set {assignments} where id = ?", (*changes.values(), id))

    def link(self, ids: Sequence[int], at: datetime) -> None:
        self._connection.execute(
            """
            insert into memory_links (memory_id, related_id, strength, at)
            select a.value, b.value, 1.0, ?2
            from json_each(?1) a
            join json_each(?1) b on a.value < b.value
            where a.value in (select id from memories) and b.value in (select id from memories)
            on conflict do update set strength = strength + 1.0, at = excluded.at""",
            (rows.json_text(sorted(set(ids))), rows.clock(at)),
        )

    def count(self, counters: Mapping[str, int]) -> None:
        self._connection.executemany(
            """
            insert into meta (name, value) values (?, ?)
            on conflict do update set value = cast(value as integer) + cast(excluded.value as integer)""",
            [(COUNTER + name, str(number)) for name, number in counters.items()],
        )

    def save_receipt(self, body: dict[str, Any], uids: Sequence[str], at: datetime) -> int:
        values = (rows.clock(at), rows.json_text(body), rows.json_text(list(dict.fromkeys(uids))))
        self._connection.execute(
            "insert into receipts (at, body, uids, checksum) values (?, ?, ?, ?)", (*values, rows.checksum(values))
        )
        number = self._connection.last_insert_rowid()
        self._connection.execute("delete from receipts where id <= ?", (number - RECEIPTS_KEPT,))
        return number


def insert_event(connection: apsw.Connection, event: Event, payload: bytes | None = None) -> None:
    """Write a sealed event, and its payload (the bytes, if they are at hand) unless that was erased."""
    values = (event.seq, event.group, rows.clock(event.at), event.actor, event.action, event.subject, event.undoes)
    connection.execute(
        f"insert into events ({', '.join(rows.EVENT_COLUMNS)}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*values, event.digest, event.prev, event.hash),
    )
    if event.changed is not None:
        connection.execute(
            "insert into event_payloads (seq, salt, changed) values (?, ?, ?)",
            (event.seq, event.salt, (payload or journal.payload(event.changed)).decode()),
        )


def erase_rows(connection: apsw.Connection, uid: str) -> None:
    """Delete everything that holds a word of the memory: its row, its conflicts, the payloads of their events."""
    subjects = [uid]
    for (number,) in connection.execute("select id from conflicts where left = ?1 or right = ?1", (uid,)).fetchall():
        subjects.append(f"c{number}")
    for subject in subjects:
        connection.execute(
            "delete from event_payloads where seq in (select seq from events where subject = ?)", (subject,)
        )
    connection.execute("delete from receipts where instr(uids, ?)", (uid,))
    connection.execute("delete from conflicts where left = ?1 or right = ?1", (uid,))
    for (memory_id,) in connection.execute("select id from memories where uid = ?", (uid,)).fetchall():
        weights.drop(connection, int(str(memory_id)))
    connection.execute("delete from memories where uid = ?", (uid,))
