"""The rows of a space in PostgreSQL in a turn to write, and the notes of recall.

storage/transaction.py decides which rows change. There are no triggers: index, statistics and the head of the space are
kept in step here. New rows are written together, at the next read or at the end.
Rule: nothing here begins or ends a transaction; storage.py does, while the head of the space is locked.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import combinations
from typing import Any

from msgspec import Struct

from kept import journal, vectors
from kept.model import Conflict, Event, Memory, Record
from kept.ports import Deadline, Stamp
from kept.storage.postgres import rows
from kept.storage.postgres.connection import AT_ONCE, Array, Connection, Known, Rows, SpaceView, insert
from kept.storage.postgres.index import IndexChanges, PostgresIndex, refresh_hot_words
from kept.storage.postgres.messages import PostgresMessages
from kept.storage.postgres.reader import PostgresReader, pgvector
from kept.storage.ranking import LOOK_EVERY
from kept.storage.shared import DELIVERIES_KEPT_DAYS, RECEIPTS_KEPT, block, prepare
from kept.storage.transaction import RecordWriter
from kept.storage.weights import Chunks, Weights

HEAD_COLUMNS = "name, tombstone_key, last_ids, last_event, last_hash, vector_model, turns, packed"
_DROP_LINKS_TO_NOTHING = """
    delete from memory_links l
    where l.space = %(space)s and (l.memory_id = any(%(ids)s) or l.related_id = any(%(ids)s))
      and not (
        exists (select from memories m where m.space = %(space)s and m.id = l.memory_id)
        and exists (select from memories m where m.space = %(space)s and m.id = l.related_id))"""
LAST_IDS, LAST_HASH, VECTOR_MODEL, TURNS = 2, 4, 5, 6  # their places in HEAD_COLUMNS
_READ = re.compile(r"\b(?:from|join) (\w+)")
_WRITTEN = re.compile(r"\b(?:insert into|update|delete from) (\w+)")
RECORDS = "records"  # the table of the small nouns: aliases, rejections, pauses
_PAYLOADS = ("seq", "salt", "changed")
_RECORDS = ("noun", "id", "name", "body")


class Head(Struct):
    """Where a space has come to: its row of heads, locked for this turn."""

    name: str
    tombstone_key: bytes
    last_ids: dict[str, int]
    last_event: int
    last_hash: str
    vector_model: str | None
    turns: int
    packed: int = 0  # memories below this id have postings
    fence: str | None = None  # the note that says that the space was moved away, or is not whole yet

    def next_id(self, noun: str) -> int:
        """An id that was never given before."""
        self.last_ids[noun] = self.last_ids.get(noun, 0) + 1
        return self.last_ids[noun]


def head_of(columns: Sequence[Any]) -> Head:
    """The head from HEAD_COLUMNS."""
    name, key, ids, *rest = columns
    return Head(name, bytes(key), rows.decode_json(ids), *rest)


@lru_cache(maxsize=512)
def tables_read(sql: str) -> frozenset[str]:
    """Return the tables that a statement reads."""
    return frozenset(_READ.findall(sql))


@lru_cache(maxsize=512)
def tables_written(statement: str | bytes) -> frozenset[str]:
    """Return the tables that a statement writes to. The values of an insertion can be long, and name none."""
    return frozenset(_WRITTEN.findall(statement if isinstance(statement, str) else statement[:200].decode()))


class TurnView(SpaceView):
    """The view of a turn to write, and its rows, all in one pipeline: only what reads waits for the server.

    New rows are gathered, and written before anything is read. It is the `Rows` of transaction.py.
    """

    is_still = False

    def __init__(
        self,
        space: str,
        number: int,
        connection: Connection,
        stamp: Stamp,
        salt: journal.Salt,
        head: Head,
        chunks: Chunks,
        known: Known,
    ) -> None:
        # The index is changed by every turn, so only rows of records are taken over.
        records = {asked: found for asked, found in [*known.items()] if tables_read(asked[0]) == {RECORDS}}
        super().__init__(space, number, connection, records)
        self.head = head
        self.written: set[str] = set()  # the tables that this turn has written to
        self.chunks = chunks  # the weights that the last turn wrote, if nobody has written since
        self._memories: list[Memory] = []
        self.changes = IndexChanges(head.packed)
        self.journal = journal.Chain(stamp, salt, (head.last_event, head.last_hash))
        self.messages = PostgresMessages(self, self.changes, head.next_id)

    def fetch(self, sql: str, *, guess: Rows = (), **values: Any) -> list[tuple[Any, ...]]:
        self.flush()
        return super().fetch(sql, **values)

    def once(self, sql: str, *, guess: Rows = (), **values: Any) -> list[tuple[Any, ...]]:
        """Rows of before count as long as this turn has not written to their tables."""
        self.flush()
        return super().once(sql, **values) if self._is_as_before(sql) else self.fetch(sql, **values)

    def run(self, sql: str, **values: Any) -> None:
        self.written |= tables_written(sql)
        super().run(sql, **values)

    def add(self, statement: bytes, values: Sequence[Any]) -> None:
        self.written |= tables_written(statement)
        super().add(statement, values)

    def still_known(self) -> Known:
        """Return the rows known of before that this turn has not changed."""
        return {asked: found for asked, found in self.known.items() if self._is_as_before(asked[0])}

    def _is_as_before(self, sql: str) -> bool:
        """Return True for rows of records that this turn has not written."""
        return tables_read(sql) == {RECORDS} and RECORDS not in self.written

    @block
    def until(self, deadline: Deadline | None) -> Iterator[None]:
        """A turn has its own limit: a statement that is cancelled would end the whole turn."""
        yield

    def flush(self) -> None:
        """Write what waits."""
        self._send()
        self.changes.write_lists(self)
        self.changes.write_sums(self, self.chunks)
        self.changes.pack(self)

    def _send(self) -> None:
        memories, self._memories = self._memories, []
        prepared = [prepare(memory) for memory in memories]
        insert(self, "memories", rows.MEMORY_COLUMNS, [*map(rows.memory_values, memories, prepared)])
        for memory, tokens in zip(memories, prepared, strict=True):
            self.changes.add(memory, tokens)
        self.want_vectors([memory.id for memory in memories])
        self.messages.write()
        self.write_events(self.journal.take())

    def write_events(self, events: Sequence[tuple[Event, bytes | None]]) -> None:
        """Write sealed events, and their payloads, unless these were erased."""
        insert(self, "events", rows.EVENT_COLUMNS, [rows.event_values(event) for event, _ in events])
        payloads = [(event.seq, event.salt, payload) for event, payload in events if payload is not None]
        insert(self, "event_payloads", _PAYLOADS, payloads)

    def want_vectors(self, ids: Sequence[int]) -> None:
        """Let these memories wait for a vector, if a model is chosen."""
        if self.head.vector_model is not None:
            insert(self, "vectorless", ("id",), [(id,) for id in ids], rest="on conflict do nothing")

    @property
    def tombstone_key(self) -> bytes:
        return self.head.tombstone_key

    def memories(self, ids: Sequence[int]) -> list[Memory]:
        return [memory for memory, _ in PostgresIndex(self).memories(ids)]

    def next_id(self, noun: str) -> int:
        return self.head.next_id(noun)

    def reserve_ids(self, last_ids: Mapping[str, int]) -> None:
        for noun, last in last_ids.items():
            self.head.last_ids[noun] = max(last, self.head.last_ids.get(noun, 0))

    def insert(self, records: Sequence[Record]) -> None:
        small = []
        for record in records:
            if isinstance(record, Memory):
                self._memories.append(record)
                if len(self._memories) == AT_ONCE:  # the server works on these while the next ones are judged
                    self._send()
            else:
                small.append(rows.record_values(record))
        if small:
            insert(self, "records", _RECORDS, small)

    def replace(self, changes: Sequence[tuple[Record, Record]]) -> None:
        for before, record in changes:
            if isinstance(before, Memory) and isinstance(record, Memory):
                self._replace_memory(before, record)
            else:
                noun, id, name, body = rows.record_values(record)
                sql = """
                    update records
                    set name = %(name)s, body = %(body)s
                    where space = %(space)s and noun = %(noun)s and id = %(id)s"""
                self.run(sql, noun=noun, id=id, name=name, body=body)

    def _replace_memory(self, before: Memory, memory: Memory) -> None:
        was, now = prepare(before), prepare(memory)
        old, new = rows.memory_values(before, was), rows.memory_values(memory, now)
        changed = {
            column: value for column, value, other in zip(rows.MEMORY_COLUMNS, new, old, strict=True) if value != other
        }
        if changed:
            assignments = ", ".join(f"{column} = %({column})s" for column in changed)
            sql = f"update memories set {assignments} where space = %(space)s and id = %(memory)s"
            self.run(sql, memory=memory.id, **changed)
        self.changes.move(self, before, was, memory, now)
        if before.fingerprint != memory.fingerprint:
            self.want_vectors([memory.id])

    def delete(self, record: Record) -> None:
        sql = "delete from records where space = %(space)s and noun = %(noun)s and id = %(id)s"
        self.run(sql, noun=record.noun, id=record.id)

    def erase(self, record: Record) -> None:
        self._erase_payloads(record.subject)
        if not isinstance(record, Memory):
            self.delete(record)
            return
        for conflict in self._conflicts_of(record):
            self.erase(conflict)
        self.drop_receipts(record.uid)
        sql = "delete from memory_links where space = %(space)s and (memory_id = %(id)s or related_id = %(id)s)"
        self.run(sql, id=record.id)
        for table in ("vectors", "vectorless", "memories"):
            self.run(f"delete from {table} where space = %(space)s and id = %(id)s", id=record.id)
        prepared = prepare(record)
        self.changes.drop(self, record, prepared)
        self.chunks.clear()
        sql = "delete from hot_words where space = %(space)s and shelf = %(on)s and word = any(%(words)s)"
        self.run(sql, on=rows.shelf_of(record), words=prepared.words.split())  # rare ones are not there anyway

    def _conflicts_of(self, memory: Memory) -> list[Conflict]:
        sql = "select body from records where space = %(space)s and noun = %(noun)s order by id"
        conflicts = [rows.to_record(Conflict, body) for (body,) in self.fetch(sql, noun=Conflict.noun)]
        return [one for one in conflicts if memory.uid in (one.left, one.right)]

    def _erase_payloads(self, subject: str) -> None:
        self.flush()
        sql = """
            delete from event_payloads
            where space = %(space)s
              and seq in (select seq from events where space = %(space)s and subject = %(subject)s)"""
        self.run(sql, subject=subject)

    def drop_receipts(self, beginning: str | None = None) -> None:
        sql = "delete from receipts where space = %(space)s"
        if beginning is None:
            self.run(sql)
        else:
            self.run(f"{sql} and position(%(named)s in uids) > 0", named=f'"{beginning}')

    def drop_receipts_of(self, numbers: Collection[int]) -> None:
        self.run("delete from receipts where space = %(space)s and id = any(%(ids)s)", ids=[*numbers])

    def set_tombstone_key(self, key: bytes) -> None:
        self.head.tombstone_key = key
        self.run("update heads set tombstone_key = %(key)s where space = %(space)s", key=key)

    def add_tombstones(self, marks: Sequence[str]) -> None:
        insert(self, "tombstones", ("mark",), [(mark,) for mark in marks], rest="on conflict do nothing")

    def note_file(self, name: str, note: str | None) -> None:
        if note is None:
            self.run("delete from file_notes where space = %(space)s and name = %(name)s", name=name)
            return
        rest = "on conflict (space, name) do update set note = excluded.note"
        insert(self, "file_notes", ("name", "note"), [(name, note)], rest=rest)

    def end(self) -> None:
        """Write everything, and where the space has come to now."""
        self.flush()
        if self.journal.has_passed(LOOK_EVERY):
            refresh_hot_words(self)
        head = self.head
        head.last_event, head.last_hash = self.journal.end or (head.last_event, head.last_hash)
        head.turns += 1
        sql = """
            update heads
            set last_ids = %(ids)s, last_event = %(event)s, last_hash = %(hash)s, turns = %(turns)s
            where space = %(space)s"""
        ids = rows.json_text(head.last_ids)
        self.run(sql, ids=ids, event=head.last_event, hash=head.last_hash, turns=head.turns)


class PostgresTransaction(PostgresReader, RecordWriter):
    """A turn to write."""

    view: TurnView

    def __init__(self, view: TurnView, weights: Weights) -> None:
        PostgresReader.__init__(self, view, weights)
        RecordWriter.__init__(self, view)
        self.message_rows = view.messages


class PostgresBookkeeping:
    """A turn to take notes."""

    def __init__(self, view: SpaceView, head: Head) -> None:
        self._view = view
        self._head = head

    def count_uses(self, ids: Sequence[int], at: datetime) -> None:
        sql = """
            update memories
            set use_count = use_count + %(uses)s, last_used_at = %(at)s
            where space = %(space)s and id = %(id)s"""
        for id, uses in Counter(ids).items():
            self._view.run(sql, id=id, uses=uses, at=at)

    def link(self, ids: Sequence[int], at: datetime) -> None:
        insert(
            self._view,
            "memory_links",
            ("memory_id", "related_id", "strength", "at"),
            [(a, b, 1.0, at) for a, b in combinations(sorted(set(ids)), 2)],
            rest="""on conflict (space, memory_id, related_id)
              do update set strength = memory_links.strength + 1.0, at = excluded.at""",
            at_once=10,  # pairs of the five hits that are usual
        )
        if ids:  # one of them may have been erased in the meantime; to look first would cost a round trip
            self._view.run(_DROP_LINKS_TO_NOTHING, ids=sorted(set(ids)))

    def count(self, counters: Mapping[str, int]) -> None:
        insert(
            self._view,
            "counters",
            ("name", "number"),
            [*counters.items()],
            rest="on conflict (space, name) do update set number = counters.number + excluded.number",
        )

    def choose_model(self, model: str | None) -> None:
        self._view.run("delete from vectorless where space = %(space)s")
        if model is None:
            self._view.run("delete from vectors where space = %(space)s")
        else:
            ids = self._view.fetch("select id from memories where space = %(space)s")
            insert(self._view, "vectorless", ("id",), ids)
        self._view.run("update heads set vector_model = %(model)s where space = %(space)s", model=model)
        self._head.vector_model = model

    def save_vectors(self, model: str, vectors_made: Sequence[tuple[Memory, bytes]]) -> None:
        if model != self._head.vector_model:
            return
        sql = "select id, fingerprint from memories where space = %(space)s and id = any(%(ids)s)"
        now = dict(self._view.fetch(sql, ids=[memory.id for memory, _ in vectors_made]))
        made = [(memory, vector) for memory, vector in vectors_made if now.get(memory.id) == memory.fingerprint]
        columns = {
            "id": [memory.id for memory, _ in made],
            "model": [model] * len(made),
            "fingerprint": [memory.fingerprint for memory, _ in made],
            "vector": [vector for _, vector in made],
        }
        if pgvector(self._view) is not None:
            columns["near"] = [Array(vectors.numbers(vector)) for _, vector in made]
        changed = ", ".join(f"{column} = excluded.{column}" for column in columns)
        rest = f"on conflict (space, id) do update set {changed}"
        insert(self._view, "vectors", [*columns], [*zip(*columns.values(), strict=True)], rest=rest)
        sql = "delete from vectorless where space = %(space)s and id = any(%(ids)s)"
        self._view.run(sql, ids=columns["id"])

    def save_receipt(
        self, body: dict[str, Any], uids: Sequence[str], at: datetime, *, session: str | None = None
    ) -> int:
        number = self._head.next_id("receipt")
        named = rows.json_text(list(dict.fromkeys(uids)))
        values = (number, at, rows.json_text(body), named, session)
        insert(self._view, "receipts", ("id", "at", "body", "uids", "session"), [values])
        sql = "update heads set last_ids = %(ids)s where space = %(space)s"
        self._view.run(sql, ids=rows.json_text(self._head.last_ids))
        sql = "delete from receipts where space = %(space)s and id <= %(old)s and (session is null or at < %(oldest)s)"
        self._view.run(sql, old=number - RECEIPTS_KEPT, oldest=at - timedelta(days=DELIVERIES_KEPT_DAYS))
        return number

    def drop_receipts(self, uids: Sequence[str]) -> int:
        sql = "delete from receipts where space = %(space)s and position(%(uid)s in uids) > 0 returning id"
        return sum(len(self._view.fetch(sql, uid=uid)) for uid in uids)
