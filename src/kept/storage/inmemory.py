"""A storage in plain dictionaries: for tests, for one process, and as the heart of the JSON file.

Each transaction works on its own copy of the state, which becomes the truth in one assignment,
so a reader always holds one consistent moment. Rule: clarity over speed. It scans; a space of
more than about ten thousand memories belongs in SQLite.
"""

import secrets
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import datetime, timedelta
from itertools import combinations
from typing import Any, cast

import msgspec
from msgspec import Struct, field

from kept import journal, text, vectors
from kept.errors import Busy, StorageError
from kept.model import (
    Alias,
    Allowance,
    CallGuard,
    Conflict,
    Event,
    Memory,
    Message,
    Pause,
    Record,
    Rejection,
    SessionRecord,
    TaskRecord,
    replace,
)
from kept.ports import (
    ANYWHERE,
    LIVE,
    Deadline,
    EventHead,
    Found,
    Foundation,
    FoundMessage,
    Period,
    Prepared,
    R,
    SavedNote,
    Stamp,
    TooLate,
    VectorState,
    Where,
)
from kept.storage.filters import matches
from kept.storage.messages import MessageReader
from kept.storage.ranking import IndexReader, Postings, handles_of
from kept.storage.shared import (
    DELIVERIES_KEPT_DAYS,
    MOVING,
    RECEIPTS_KEPT,
    WRITE_WAIT_S,
    Contents,
    check_limit,
    check_open,
    index_of,
    prepare,
    tombstone,
)
from kept.storage.transaction import RecordWriter


class SavedReceipt(Struct, frozen=True):
    """What a recall noted about itself."""

    at: datetime
    body: dict[str, Any]
    uids: tuple[str, ...]
    session: str | None = None


class SavedVector(Struct, frozen=True):
    """A vector, and the model and the text that it was made of."""

    model: str
    fingerprint: str
    vector: bytes


class State(Struct):
    """Everything a space holds. The values inside are frozen, so a copy need not go deeper than the containers."""

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))  # of the tombstones
    last_ids: dict[str, int] = {}
    memories: dict[int, Memory] = {}
    conflicts: dict[int, Conflict] = {}
    aliases: dict[int, Alias] = {}
    pauses: dict[int, Pause] = {}
    allowances: dict[int, Allowance] = {}
    guards: dict[int, CallGuard] = {}
    rejections: dict[int, Rejection] = {}
    sessions: dict[int, SessionRecord] = {}
    tasks: dict[int, TaskRecord] = {}
    messages: dict[str, tuple[Message, ...]] = {}
    packed: set[str] = set()
    events: list[Event] = []
    tombstones: set[str] = set()
    links: dict[str, tuple[float, datetime]] = {}  # "3-7" → strength, last recalled together
    receipts: dict[int, SavedReceipt] = {}
    counters: dict[str, int] = {}
    file_notes: dict[str, str] = {}
    vector_model: str | None = None
    vectors: dict[int, SavedVector] = {}

    def copy(self) -> "State":
        return State(**{name: copy(getattr(self, name)) for name in self.__struct_fields__})

    def table(self, noun: type[Record]) -> dict[int, Any]:
        return cast("dict[int, Any]", getattr(self, _TABLES[noun]))

    def next_id(self, noun: str) -> int:
        """An id that was never given before."""
        self.last_ids[noun] = self.last_ids.get(noun, 0) + 1
        return self.last_ids[noun]


_TABLES: Mapping[type[Record], str] = {
    Memory: "memories",
    Conflict: "conflicts",
    Alias: "aliases",
    Pause: "pauses",
    Allowance: "allowances",
    CallGuard: "guards",
    Rejection: "rejections",
    SessionRecord: "sessions",
    TaskRecord: "tasks",
}
_decode_changed = msgspec.json.Decoder(dict[str, tuple[Any, Any]]).decode


class InMemoryReader(IndexReader, MessageReader):
    """Reads one state of one space. It is its own index: every search looks at every memory."""

    narrowing = None

    def __init__(self, space: str, state: State, prepared: dict[int, tuple[Memory, Prepared]]) -> None:
        self.space = space
        self._state = state
        self._prepared = prepared
        self._deadline: Deadline | None = None

    @property
    def index(self) -> "InMemoryReader":
        return self

    @property
    def message_rows(self) -> "InMemoryMessages":
        return InMemoryMessages(self._state)

    def get(self, noun: type[R], id: int) -> R | None:
        return cast("R | None", self._state.table(noun).get(id))

    def all(self, noun: type[R]) -> list[R]:
        table = self._state.table(noun)
        return [table[id] for id in sorted(table)]

    def select(
        self, where: Where = LIVE, *, limit: int = 50, after: int | None = None, oldest_first: bool = False
    ) -> list[Memory]:
        check_limit(limit)
        found: list[Memory] = []
        for id in sorted(self._state.memories, reverse=not oldest_first):
            if len(found) == limit:
                break
            if after is not None and (id <= after if oldest_first else id >= after):
                continue
            if matches(self._state.memories[id], where):
                found.append(self._state.memories[id])
        return found

    def count(self, where: Where = LIVE) -> int:
        return sum(matches(memory, where) for memory in self._state.memories.values())

    def events(
        self,
        *,
        subject: str | None = None,
        group: str | None = None,
        after: int = 0,
        later_than: datetime | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> list[Event]:
        found = [
            event
            for event in self._state.events
            if event.seq > after
            and (later_than is None or event.at > later_than)
            and (subject is None or event.subject == subject)
            and (group is None or event.group == group)
        ]
        if newest_first:
            found.reverse()
        return found[:limit]

    def event_heads(
        self, *, after: int = 0, later_than: datetime | None = None, limit: int | None = None
    ) -> list[EventHead]:
        found = self.events(after=after, later_than=later_than, limit=limit)
        return [EventHead(one.seq, one.group, one.at, one.actor, one.action, one.subject) for one in found]

    def activity(self, *, after: int = 0) -> list[tuple[datetime, str, str, int]]:
        found = Counter(
            (event.at.replace(minute=0, second=0, microsecond=0), event.actor, event.action)
            for event in self._state.events
            if event.seq > after
        )
        return [(*what, number) for what, number in sorted(found.items())]

    def vector_state(self) -> VectorState:
        if self._state.vector_model is None:
            return VectorState()
        done = len(self.vectors(list(self._state.memories)))
        return VectorState(self._state.vector_model, done, len(self._state.memories) - done)

    def vectorless(self, *, limit: int) -> list[Memory]:
        check_limit(limit)
        if self._state.vector_model is None:
            return []
        has_one = self.vectors(list(self._state.memories))
        return [memory for id, memory in sorted(self._state.memories.items()) if id not in has_one][:limit]

    def vectors(self, ids: Sequence[int]) -> dict[int, bytes]:
        found = {}
        for id in ids:
            memory, saved = self._state.memories.get(id), self._state.vectors.get(id)
            if memory and saved and (saved.model, saved.fingerprint) == (self._state.vector_model, memory.fingerprint):
                found[id] = saved.vector
        return found

    def nearest(self, vector: bytes, where: Where = LIVE, *, limit: int) -> list[Found]:
        check_limit(limit)
        memories = {id: m for id, m in self._state.memories.items() if not m.is_forgotten and matches(m, where)}
        saved = self.vectors(list(memories))
        cosines = dict(zip(saved, vectors.cosines(vector, list(saved.values())), strict=True))
        best = sorted(cosines, key=lambda id: (-cosines[id], -id))[:limit]
        return [Found(memories[id], self._prepare(memories[id]), cosines[id]) for id in best]

    def counters(self) -> dict[str, int]:
        return dict(self._state.counters)

    def file_notes(self, beginning: str = "") -> dict[str, str]:
        return {name: note for name, note in sorted(self._state.file_notes.items()) if name.startswith(beginning)}

    def links(self, id: int) -> list[tuple[int, float, datetime]]:
        found = []
        for pair, (strength, at) in self._state.links.items():
            ends = [int(end) for end in pair.split("-")]
            if id in ends:
                found.append((ends[1] if ends[0] == id else ends[0], strength, at))
        return sorted(found, key=lambda link: (-link[1], link[0]))

    def receipt(self, id: int | None = None) -> SavedNote | None:
        number = max(self._state.receipts, default=0) if id is None else id
        receipt = self._state.receipts.get(number)
        return None if receipt is None else (number, receipt.at, receipt.body)

    def receipts_of(self, session: str | None, *, limit: int) -> list[SavedNote]:
        receipts = self._state.receipts.items()
        found = [(id, one.at, one.body) for id, one in receipts if session is None or one.session == session]
        return found[::-1][:limit]

    def sessions_told(self, *, limit: int) -> list[str]:
        newest_first = reversed(self._state.receipts.values())
        return [*dict.fromkeys(one.session for one in newest_first if one.session is not None)][:limit]

    def foundation(self) -> Foundation:
        state = self._state
        return Foundation(
            key=state.key,
            tombstones=tuple(sorted(state.tombstones)),
            last_ids=dict(state.last_ids),
            sessions=tuple(sorted(state.messages)),
            packed=tuple(sorted(state.packed)),
        )

    def is_erased(self, fingerprint: str) -> bool:
        return tombstone(self._state.key, fingerprint) in self._state.tombstones

    def erased_among(self, names: Collection[str]) -> set[str]:
        return {name for name in names if self.is_erased(name)}

    @contextmanager
    def until(self, deadline: Deadline | None) -> Iterator[None]:
        self._deadline = deadline
        try:
            yield
        finally:
            self._deadline = None

    def postings(
        self, words: Sequence[str], where: Where, *, newest: int | None = None, beside: Sequence[str] = ()
    ) -> Postings:
        held: Postings = {word: [] for word in words}
        asked = [(word, f" {word} ") for word in words]
        n_found = 0
        for id in sorted(self._state.memories, reverse=True):
            if self._deadline is not None and self._deadline.is_over():
                raise TooLate
            memory = self._state.memories[id]
            if n_found == newest:
                break
            if memory.is_forgotten or not matches(memory, where):
                continue
            held_here = _line(self._prepare(memory))
            found = [word for word, wanted in asked if wanted in held_here]
            n_found += bool(found)
            for word in found:
                held[word].append(id)
        return held

    def counts(self, shelf: str) -> tuple[int, int, int]:
        prepared = self._prepared_on(shelf)
        return len(prepared), sum(one.n_words for one in prepared), sum(one.n_tokens for one in prepared)

    def rows_with(self, shelf: str, words: Sequence[str]) -> dict[str, int]:
        held = [_line(prepared) for prepared in self._prepared_on(shelf)] if words else []
        return {word: sum(f" {word} " in line for line in held) for word in words}

    def memories(
        self, ids: Sequence[int], words: Sequence[str] = (), where: Where = ANYWHERE
    ) -> list[tuple[Memory, Prepared]]:
        found = [self._state.memories[id] for id in ids if id in self._state.memories]
        return [(memory, self._prepare(memory)) for memory in found]

    def terms(self, shelf: str, beginning: str, limit: int) -> list[str]:
        tokens = {token for prepared in self._prepared_on(shelf) for token in _line(prepared).split()}
        return sorted(token for token in tokens if token.startswith(beginning))[:limit]

    def listed(self, handles: Sequence[int], newest: int) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {handle: [] for handle in handles}
        for id in sorted(self._state.memories, reverse=True):
            for handle in found.keys() & handles_of(self._state.memories[id]):
                found[handle].append(id)
        return {handle: ids[:newest] for handle, ids in found.items()}

    def _prepared_on(self, shelf: str) -> list[Prepared]:
        return [self._prepare(memory) for memory in self._state.memories.values() if index_of(memory) == shelf]

    def _prepare(self, memory: Memory) -> Prepared:
        known = self._prepared.get(memory.id)
        if known is None or known[0] is not memory:
            known = self._prepared[memory.id] = (memory, prepare(memory))
        return known[1]


class InMemoryMessages:
    """The messages of one state. A packed session stays as it is, and is only left out of searches."""

    def __init__(self, state: State) -> None:
        self._state = state

    def session(self, name: str) -> SessionRecord | None:
        return next((session for session in self._state.sessions.values() if session.name == name), None)

    def stored(self, session: str, *, after: int = 0, limit: int | None = None) -> list[Message]:
        if session in self._state.packed:
            return []
        return [message for message in self._state.messages.get(session, ()) if message.n > after][:limit]

    def packed(self, session: str) -> list[Message]:
        return [*self._state.messages.get(session, ())] if session in self._state.packed else []

    def last_number(self, session: str) -> int:
        return max((message.n for message in self.stored(session)), default=0)

    def at(self, places: Sequence[tuple[str, int]]) -> list[FoundMessage]:
        wanted = set(places)
        return [found for found in self._searchable() if (found.message.session, found.message.n) in wanted]

    @contextmanager
    def until(self, deadline: Deadline | None) -> Iterator[None]:
        if deadline is not None and deadline.is_over():
            raise TooLate
        yield

    def matching(self, words: Sequence[str], session: str | None, period: Period, most: int) -> list[FoundMessage]:
        asked = set(words)
        return [
            found
            for found in self._searchable()
            if session in (None, found.message.session)
            and period.holds(found.message.at)
            and not asked.isdisjoint(found.words.split())
        ]

    def check_match(self, found: FoundMessage, words: Sequence[str]) -> None:
        """What matches was read from the messages themselves."""

    def counts(self) -> tuple[int, int, int]:
        found = self._searchable()
        n_words = sum(one.n_words for one in found)
        return len(found), n_words, n_words

    def rows_with(self, words: Sequence[str]) -> dict[str, int]:
        held = [set(found.words.split()) for found in self._searchable()]
        return {word: sum(word in one for one in held) for word in words}

    def has(self, session: str, id: str, role: str | None = None, *, upto: int | None = None) -> bool:
        return any(
            message.id == id and role in (None, message.role) and (upto is None or message.n <= upto)
            for message in self.stored(session)
        )

    def insert(self, message: Message) -> None:
        said = (*self._state.messages.get(message.session, ()), message)
        self._state.messages[message.session] = tuple(sorted(said, key=lambda one: one.n))

    def delete(self, session: str, n: int) -> None:
        left = tuple(message for message in self._state.messages[session] if message.n != n)
        self._state.messages[session] = left
        if not left:
            del self._state.messages[session]

    def pack(self, session: str, messages: Sequence[Message]) -> None:
        self._state.messages[session] = tuple(messages)
        self._state.packed.add(session)

    def unpack(self, session: str) -> None:
        if session in self._state.packed:
            self._state.packed.remove(session)
            del self._state.messages[session]

    def _searchable(self) -> list[FoundMessage]:
        return [
            FoundMessage(message, " ".join(text.words(message.content)), text.count_words(message.content))
            for session, messages in self._state.messages.items()
            if session not in self._state.packed
            for message in messages
        ]


class StateJournal(journal.Chain):
    """The end of a state's journal. Its events are not queued: the state holds them at once, with what they changed."""

    def __init__(self, state: State, stamp: Stamp, salt: journal.Salt) -> None:
        last = state.events[-1] if state.events else None
        super().__init__(stamp, salt, (last.seq, last.hash) if last else (0, journal.FIRST_PREV))
        self._state = state

    def append(self, action: str, subject: str, payload: bytes) -> Event:
        super().append(action, subject, payload)
        [(event, _)] = self.take()
        self._state.events.append(replace(event, changed=_decode_changed(payload)))
        return event


class InMemoryRows:
    """The rows of a state, to change them."""

    def __init__(
        self, state: State, prepared: dict[int, tuple[Memory, Prepared]], stamp: Stamp, salt: journal.Salt
    ) -> None:
        self.journal = StateJournal(state, stamp, salt)
        self._state = state
        self._prepared = prepared

    @property
    def tombstone_key(self) -> bytes:
        return self._state.key

    def memories(self, ids: Sequence[int]) -> list[Memory]:
        return [self._state.memories[id] for id in ids if id in self._state.memories]

    def next_id(self, noun: str) -> int:
        return self._state.next_id(noun)

    def reserve_ids(self, last_ids: Mapping[str, int]) -> None:
        for noun, last in last_ids.items():
            self._state.last_ids[noun] = max(last, self._state.last_ids.get(noun, 0))

    def insert(self, records: Sequence[Record]) -> None:
        for record in records:
            self._state.table(type(record))[record.id] = record

    def replace(self, changes: Sequence[tuple[Record, Record]]) -> None:
        self.insert([record for _, record in changes])

    def delete(self, record: Record) -> None:
        del self._state.table(type(record))[record.id]

    def erase(self, record: Record) -> None:
        gone = [record]
        if isinstance(record, Memory):
            gone += [one for one in self._state.conflicts.values() if record.uid in (one.left, one.right)]
            self._forget_traces(record)
        for one in gone:
            self.delete(one)
        subjects = {one.subject for one in gone}
        self._state.events = [
            replace(event, salt=None, changed=None) if event.subject in subjects else event
            for event in self._state.events
        ]

    def _forget_traces(self, memory: Memory) -> None:
        state = self._state
        self._prepared.pop(memory.id, None)
        state.vectors.pop(memory.id, None)
        state.links = {pair: link for pair, link in state.links.items() if str(memory.id) not in pair.split("-")}
        self.drop_receipts(memory.uid)

    def drop_receipts(self, beginning: str | None = None) -> None:
        self._state.receipts = {
            id: receipt
            for id, receipt in self._state.receipts.items()
            if beginning is not None and not any(uid.startswith(beginning) for uid in receipt.uids)
        }

    def drop_receipts_of(self, numbers: Collection[int]) -> None:
        gone = set(numbers)
        self._state.receipts = {id: one for id, one in self._state.receipts.items() if id not in gone}

    def write_events(self, events: Sequence[tuple[Event, bytes | None]]) -> None:
        self._state.events += [event for event, _ in events]

    def set_tombstone_key(self, key: bytes) -> None:
        self._state.key = key

    def add_tombstones(self, marks: Sequence[str]) -> None:
        self._state.tombstones.update(marks)

    def note_file(self, name: str, note: str | None) -> None:
        self._state.file_notes.pop(name, None)
        if note is not None:
            self._state.file_notes[name] = note


class InMemoryTransaction(InMemoryReader, RecordWriter):
    """Writes to a state that nobody else has seen yet."""

    def __init__(
        self, space: str, state: State, prepared: dict[int, tuple[Memory, Prepared]], stamp: Stamp, salt: journal.Salt
    ) -> None:
        InMemoryReader.__init__(self, space, state, prepared)
        RecordWriter.__init__(self, InMemoryRows(state, prepared, stamp, salt))


class InMemoryBookkeeping:
    """Notes usage on a state of its own, outside the journal."""

    def __init__(self, state: State) -> None:
        self._state = state

    def count_uses(self, ids: Sequence[int], at: datetime) -> None:
        for id in ids:
            if memory := self._state.memories.get(id):
                self._state.memories[id] = replace(memory, use_count=memory.use_count + 1, last_used_at=at)

    def link(self, ids: Sequence[int], at: datetime) -> None:
        for a, b in combinations(sorted(self._state.memories.keys() & set(ids)), 2):
            strength, _ = self._state.links.get(f"{a}-{b}", (0.0, at))
            self._state.links[f"{a}-{b}"] = (strength + 1.0, at)

    def count(self, counters: Mapping[str, int]) -> None:
        for name, number in counters.items():
            self._state.counters[name] = self._state.counters.get(name, 0) + number

    def choose_model(self, model: str | None) -> None:
        self._state.vector_model = model
        self._state.vectors = {}

    def save_vectors(self, model: str, vectors_made: Sequence[tuple[Memory, bytes]]) -> None:
        for memory, vector in vectors_made:
            current = self._state.memories.get(memory.id)
            if model == self._state.vector_model and current and current.fingerprint == memory.fingerprint:
                self._state.vectors[memory.id] = SavedVector(model, memory.fingerprint, vector)

    def save_receipt(
        self, body: dict[str, Any], uids: Sequence[str], at: datetime, *, session: str | None = None
    ) -> int:
        number = self._state.next_id("receipt")
        self._state.receipts[number] = SavedReceipt(at, body, tuple(uids), session)
        oldest = at - timedelta(days=DELIVERIES_KEPT_DAYS)
        for id, receipt in tuple(self._state.receipts.items()):
            if id > number - RECEIPTS_KEPT:
                break
            if receipt.session is None or receipt.at < oldest:
                del self._state.receipts[id]
        return number

    def drop_receipts(self, uids: Sequence[str]) -> int:
        before = len(self._state.receipts)
        gone = set(uids)
        kept = {id: one for id, one in self._state.receipts.items() if gone.isdisjoint(one.uids)}
        self._state.receipts = kept
        return before - len(kept)


class InMemoryStorage:
    """One space in this process's memory. `state` is the truth; whoever holds an older one still reads it whole."""

    def __init__(
        self, space: str, *, write_wait_s: float = WRITE_WAIT_S, salt: journal.Salt = secrets.token_hex
    ) -> None:
        self.space = space
        self.state = State()
        self._prepared: dict[int, tuple[Memory, Prepared]] = {}
        self._turn = threading.Lock()
        self._leases: dict[str, threading.Lock] = {}
        self._write_wait_s = write_wait_s
        self._salt = salt
        self._is_closed = False

    def hold(self, state: State, prepared: Mapping[int, Prepared]) -> None:
        """Hold this state from now on, with the tokens of some of its memories."""
        self.state = state
        self._prepared.update((id, (state.memories[id], tokens)) for id, tokens in prepared.items())

    @contextmanager
    def reading(self) -> Iterator[InMemoryReader]:
        self._check_open()
        yield InMemoryReader(self.space, self._refreshed(), self._prepared)

    @contextmanager
    def writing(
        self, stamp: Stamp, *, urgent: bool = False, wait_s: float | None = None
    ) -> Iterator[InMemoryTransaction]:
        self._check_open()
        self._take_turn(self._write_wait_s if wait_s is None else wait_s)
        try:
            state = self._refreshed().copy()
            transaction = InMemoryTransaction(self.space, state, self._prepared, stamp, self._salt)
            check_open(transaction, stamp)
            yield transaction
            self._commit(state, has_erased=bool(transaction.erased))
        finally:
            self._end_turn()

    @contextmanager
    def bookkeeping(self, *, passes_fence: bool = False) -> Iterator[InMemoryBookkeeping | None]:
        self._check_open()
        try:
            self._take_turn(0)
        except Busy:
            yield None
            return
        try:
            state = self._refreshed().copy()
            if MOVING in state.file_notes and not passes_fence:
                yield None
                return
            yield InMemoryBookkeeping(state)
            self._commit(state)
        finally:
            self._end_turn()

    @contextmanager
    def in_bulk(self) -> Iterator[None]:
        yield

    @contextmanager
    def making_room(self) -> Iterator[None]:
        yield

    @contextmanager
    def lease(self, name: str, *, wait_s: float = 0.0) -> Iterator[bool]:
        lock = self._leases.setdefault(name, threading.Lock())
        is_ours = lock.acquire(timeout=wait_s)
        try:
            yield is_ours
        finally:
            if is_ours:
                lock.release()

    def describe(self) -> dict[str, Any]:
        return {"storage": "in-memory", "place": ":memory:", "bytes": 0, "schema": 1}

    def close(self) -> None:
        self._is_closed = True

    def _refreshed(self) -> State:
        return self.state

    def _commit(self, state: State, *, has_erased: bool = False) -> None:
        self.state = state

    def _take_turn(self, wait_s: float) -> None:
        if not self._turn.acquire(timeout=wait_s):
            raise Busy(f"Another thread has been writing to {self.space} for more than {wait_s:g} s.")

    def _end_turn(self) -> None:
        self._turn.release()

    def _check_open(self) -> None:
        if self._is_closed:
            raise StorageError(f"The storage of {self.space} is closed.", hint="Open it again with kept.open().")


def _line(prepared: Prepared) -> str:
    """Return all tokens with a space on each side, so that one is found without cutting the others apart."""
    one = prepared
    return f" {one.words} {one.tag_words} {one.file_words} {one.source_words} {one.kind_words} "


def holding(space: str, contents: Contents) -> InMemoryStorage:
    """Return a storage that holds this. Every other text is prepared, so that a deadline is for the search alone."""
    model = contents.vector_model
    state = State(
        key=contents.key,
        tombstones=contents.tombstones,
        events=contents.events,
        messages=contents.messages,
        packed=contents.packed,
        vector_model=model,
        vectors={id: SavedVector(model or "", *saved) for id, saved in contents.vectors.items()},
    )
    for record in contents.records:
        state.table(type(record))[record.id] = record
    storage = InMemoryStorage(space)
    storage.hold(state, contents.prepared)
    with storage.reading() as reader:
        reader.statistics(())
    return storage
