"""The contract notices: storages with one planted fault each, and each breaks at least one promise."""

import contextlib
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from kept import bm25, journal
from kept.model import Memory, Scope, replace
from kept.ports import BY_MATCH, LIVE, Found, FoundMessage, Stamp, Statistics, Where
from kept.storage import inmemory
from kept.storage.filters import matches
from kept.storage.inmemory import InMemoryBookkeeping, InMemoryReader, InMemoryStorage, InMemoryTransaction, State
from tests.contract.benches import InMemoryBench
from tests.contract.promises import PROMISES


class Faulty(InMemoryStorage):
    """A storage whose transactions and readers can be replaced by faulty ones."""

    reader_class: type[InMemoryReader] = InMemoryReader
    transaction_class: type[InMemoryTransaction] = InMemoryTransaction

    @contextlib.contextmanager
    def reading(self) -> Iterator[InMemoryReader]:
        self._check_open()
        yield self.reader_class(self.space, self._refreshed(), self._prepared)

    @contextlib.contextmanager
    def writing(
        self, stamp: Stamp, *, urgent: bool = False, wait_s: float | None = None
    ) -> Iterator[InMemoryTransaction]:
        self._check_open()
        self._take_turn(self._write_wait_s if wait_s is None else wait_s)
        try:
            state = self._refreshed().copy()
            yield self.transaction_class(self.space, state, self._prepared, stamp, self._salt)
            self._commit(state)
        finally:
            self._end_turn()


def faulty_transaction(**methods: Any) -> type[Faulty]:
    transaction = type("FaultyTransaction", (InMemoryTransaction,), methods)
    return type("FaultyStorage", (Faulty,), {"transaction_class": transaction})


def faulty_reader(**methods: Any) -> type[Faulty]:
    reader = type("FaultyReader", (InMemoryReader,), methods)
    transaction = type("FaultyTransaction", (InMemoryTransaction,), methods)
    return type("FaultyStorage", (Faulty,), {"reader_class": reader, "transaction_class": transaction})


class NoRollback(Faulty):
    @contextlib.contextmanager
    def writing(
        self, stamp: Stamp, *, urgent: bool = False, wait_s: float | None = None
    ) -> Iterator[InMemoryTransaction]:
        self._check_open()
        self._take_turn(self._write_wait_s if wait_s is None else wait_s)
        try:
            yield InMemoryTransaction(self.space, self.state, self._prepared, stamp, self._salt)
        finally:
            self._end_turn()


class TurnNeverEndsAfterAnError(Faulty):
    @contextlib.contextmanager
    def writing(
        self, stamp: Stamp, *, urgent: bool = False, wait_s: float | None = None
    ) -> Iterator[InMemoryTransaction]:
        self._check_open()
        self._write_wait_s = 0.2
        self._take_turn(0.2)
        state = self.state.copy()
        yield InMemoryTransaction(self.space, state, self._prepared, stamp, self._salt)
        self._commit(state)
        self._end_turn()


class SharedBetweenSpaces(Faulty):
    one_state = State()

    def __init__(self, space: str, **options: Any) -> None:
        super().__init__(space, **options)
        self.state = type(self).one_state

    def _refreshed(self) -> State:
        return type(self).one_state

    def _commit(self, state: State, *, has_erased: bool = False) -> None:
        type(self).one_state = state


class LosesTheArchive(Faulty):
    def _commit(self, state: State, *, has_erased: bool = False) -> None:
        state.memories = {id: m for id, m in state.memories.items() if not m.is_archived or m.is_forgotten}
        super()._commit(state)


class NoTurns(Faulty):
    def _take_turn(self, wait_s: float) -> None:
        pass

    def _end_turn(self) -> None:
        pass


class ReadersFollowTheWriter(Faulty):
    @contextlib.contextmanager
    def reading(self) -> Iterator[InMemoryReader]:
        storage = self

        class Live(InMemoryReader):
            def __getattribute__(self, name: str) -> Any:
                return storage.state if name == "_state" else super().__getattribute__(name)

        self._check_open()
        yield Live(self.space, self.state, self._prepared)


class ForgetsMicroseconds(Faulty):
    def _commit(self, state: State, *, has_erased: bool = False) -> None:
        def cut(m: Memory) -> Memory:
            return replace(m, last_hit_at=m.last_hit_at and m.last_hit_at.replace(microsecond=0))

        state.memories = {id: cut(m) for id, m in state.memories.items()}
        super()._commit(state)


class StillOpenAfterClose(Faulty):
    def close(self) -> None:
        pass


class UsageInTheJournal(Faulty):
    @contextlib.contextmanager
    def bookkeeping(self) -> Iterator[Any]:
        class Loud(InMemoryBookkeeping):
            def count_uses(notes, ids: Any, at: datetime) -> None:  # noqa: N805
                with self.writing(Stamp(group="usage", at=at, actor="recall")) as tx:
                    for id in ids:
                        if m := tx.get(Memory, id):
                            tx.put(replace(m, use_count=m.use_count + 1, last_used_at=at), "use")

            def link(notes, ids: Any, at: datetime) -> None:  # noqa: N805
                InMemoryBookkeeping(self.state).link(ids, at)

        yield Loud(self.state)


class BookkeepingInsistsOnItsTurn(Faulty):
    @contextlib.contextmanager
    def bookkeeping(self) -> Iterator[Any]:
        self._take_turn(0.5) if not self._turn.locked() else None
        yield InMemoryBookkeeping(self.state)
        with contextlib.suppress(RuntimeError):
            self._turn.release()


def put_without_a_journal_line(self: InMemoryTransaction, record: Any, action: str) -> Any:
    self._state.table(type(record))[record.id] = record
    return record


def put_of_the_unknown(self: InMemoryTransaction, record: Any, action: str) -> Any:
    before = self.get(type(record), record.id)
    self._state.table(type(record))[record.id] = record
    self._log(action, before, record)
    return record


def add_with_a_used_id(self: InMemoryTransaction, record: Any, action: str) -> Any:
    table = self._state.table(type(record))
    added = replace(record, id=max(table, default=0) + 1)
    table[added.id] = added
    self._log(action, None, added)
    return added


def add_that_cuts_tags(self: InMemoryTransaction, record: Any, action: str) -> Any:
    if isinstance(record, Memory):
        record = replace(record, tags=tuple(",".join(record.tags).split(",")))
    return InMemoryTransaction.add(self, record, action)


def erase_that_keeps_the_payload(self: InMemoryTransaction, memory: Memory, action: str = "erase") -> None:
    events = list(self._state.events)
    InMemoryTransaction.erase(self, memory, action)
    self._state.events[: len(events)] = events


def erase_without_a_tombstone(self: InMemoryTransaction, memory: Memory, action: str = "erase") -> None:
    InMemoryTransaction.erase(self, memory, action)
    self._state.tombstones.clear()


def erase_that_only_hides(self: InMemoryTransaction, memory: Memory, action: str = "erase") -> None:
    InMemoryTransaction.erase(self, memory, action)
    self._state.memories[memory.id] = replace(memory, status="archived", reason="forgotten")


def append_outside_the_chain(self: InMemoryTransaction, action: str, subject: str, changed: Any) -> None:
    events = self._state.events
    events.append(
        journal.seal(
            self.stamp,
            seq=len(events) + 1,
            action=action,
            subject=subject,
            changed=changed,
            prev=journal.FIRST_PREV,
            salt="0",
        )
    )


def append_without_what_it_was(self: InMemoryTransaction, action: str, subject: str, changed: Any) -> None:
    InMemoryTransaction._append(self, action, subject, {name: (None, new) for name, (_, new) in changed.items()})


def prepare_once(self: InMemoryReader, memory: Memory) -> Any:
    if memory.id not in self._prepared:
        self._prepared[memory.id] = (memory, inmemory.prepare(memory))
    return self._prepared[memory.id][1]


def search_also_the_forgotten(self: InMemoryReader, words: Any, where: Where = LIVE, **how: Any) -> list[Found]:
    found = InMemoryReader.search(self, words, where, **how)
    gone = [m for m in self._state.memories.values() if m.is_forgotten]
    return found + [
        Found(m, self._prepare(m)) for m in gone if bm25.match_of(words, Statistics(1, 1, 1, {}))(self._prepare(m))
    ]


def search_with_the_limit_first(self: InMemoryReader, words: Any, where: Where = LIVE, **how: Any) -> list[Found]:
    found = InMemoryReader.search(self, words, Where(shelf=where.shelf), **how)
    return [hit for hit in found if matches(hit.memory, where)]


def search_by_match_alone(self: InMemoryReader, words: Any, where: Where = LIVE, **how: Any) -> list[Found]:
    return InMemoryReader.search(self, words, where, **(how | {"ranking": BY_MATCH}))


def search_as_far_back_as_there_is(self: InMemoryReader, words: Any, where: Where = LIVE, **how: Any) -> list[Found]:
    return InMemoryReader.search(self, words, where, **(how | {"among": None}))


def search_oldest_first(self: InMemoryReader, words: Any, where: Where = LIVE, **how: Any) -> list[Found]:
    return sorted(InMemoryReader.search(self, words, where, **how), key=lambda hit: hit.memory.id)


def search_messages_in_their_order(self: InMemoryReader, words: Any, **how: Any) -> list[FoundMessage]:
    found = InMemoryReader.search_messages(self, words, **how)
    return sorted(found, key=lambda hit: (hit.message.session, hit.message.n))


def statistics_of_everything(self: InMemoryReader, words: Any, where: Where = LIVE) -> Statistics:
    return InMemoryReader.statistics(self, words, Where(shelf="any", scope=None))


def select_any_limit(self: InMemoryReader, where: Where = LIVE, *, limit: int = 50, **page: Any) -> list[Memory]:
    return InMemoryReader.select(self, where, limit=max(0, limit), **page)


def select_with_overlap(
    self: InMemoryReader, where: Where = LIVE, *, after: int | None = None, oldest_first: bool = False, limit: int = 50
) -> list[Memory]:
    nudged = None if after is None else after + (-1 if oldest_first else 1)
    page = InMemoryReader.select(self, where, after=nudged, oldest_first=oldest_first, limit=limit)
    return [] if len(page) == 1 and page[0].id == after else page


def vectors_of_any_text(self: InMemoryReader, ids: Any) -> dict[int, bytes]:
    return {id: self._state.vectors[id].vector for id in ids if id in self._state.vectors}


def nearest_on_any_shelf(self: InMemoryReader, vector: bytes, where: Where = LIVE, *, limit: int) -> list[Found]:
    return InMemoryReader.nearest(self, vector, replace(where, shelf="any"), limit=limit)


class MixesModels(Faulty):
    @contextlib.contextmanager
    def bookkeeping(self) -> Iterator[Any]:
        class Mixing(InMemoryBookkeeping):
            def save_vectors(notes, model: str, vectors_made: Any) -> None:  # noqa: N805
                InMemoryBookkeeping(self.state).save_vectors(self.state.vector_model or model, vectors_made)

            def choose_model(notes, model: str | None) -> None:  # noqa: N805
                InMemoryBookkeeping(self.state).choose_model(model)

        yield Mixing(self.state)


def alike_by_a_single_word(
    self: InMemoryReader, texts: Sequence[Sequence[str]], scope: Scope, *, limit: int
) -> list[list[Memory]]:
    return [
        [hit.memory for hit in InMemoryReader.search(self, list(words), Where(scope=scope), limit=limit)]
        for words in texts
    ]


FAULTS: dict[str, type[InMemoryStorage]] = {
    "no rollback": NoRollback,
    "an error keeps the turn": TurnNeverEndsAfterAnError,
    "all spaces in one": SharedBetweenSpaces,
    "loses the archive": LosesTheArchive,
    "writers do not take turns": NoTurns,
    "a reader sees what came later": ReadersFollowTheWriter,
    "forgets microseconds": ForgetsMicroseconds,
    "still open after close": StillOpenAfterClose,
    "usage in the journal": UsageInTheJournal,
    "bookkeeping ignores the writer": BookkeepingInsistsOnItsTurn,
    "one stamp for all": faulty_transaction(restamp=lambda self, stamp: None),
    "a missing journal line": faulty_transaction(put=put_without_a_journal_line),
    "changes what is not there": faulty_transaction(put=put_of_the_unknown),
    "a reused id": faulty_transaction(add=add_with_a_used_id),
    "tags cut at commas": faulty_transaction(add=add_that_cuts_tags),
    "erase keeps payloads": faulty_transaction(erase=erase_that_keeps_the_payload),
    "erase leaves no tombstone": faulty_transaction(erase=erase_without_a_tombstone),
    "erase only hides": faulty_transaction(erase=erase_that_only_hides),
    "a broken chain": faulty_transaction(_append=append_outside_the_chain),
    "a journal without the past": faulty_transaction(_append=append_without_what_it_was),
    "a stale index": faulty_reader(_prepare=prepare_once),
    "finds the forgotten": faulty_reader(search=search_also_the_forgotten),
    "limit before filter": faulty_reader(search=search_with_the_limit_first),
    "no order": faulty_reader(search=search_oldest_first),
    "messages in no order": faulty_reader(search_messages=search_messages_in_their_order),
    "no weight": faulty_reader(search=search_by_match_alone),
    "no end of ranking": faulty_reader(search=search_as_far_back_as_there_is),
    "statistics of all shelves": faulty_reader(statistics=statistics_of_everything),
    "negative limits": faulty_reader(select=select_any_limit),
    "alike by a single word": faulty_reader(alike=alike_by_a_single_word),
    "vectors of older texts": faulty_reader(vectors=vectors_of_any_text),
    "near whatever the shelf": faulty_reader(nearest=nearest_on_any_shelf),
    "models mixed": MixesModels,
    "overlapping pages": faulty_reader(select=select_with_overlap),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_contract_catches(fault: str, tmp_path: Path) -> None:
    broken = []
    for promise in PROMISES:
        bench_class = type("FaultyBench", (InMemoryBench,), {"storage_class": FAULTS[fault]})
        if fault == "all spaces in one":
            SharedBetweenSpaces.one_state = State()
        try:
            promise(bench_class(tmp_path))
        except (Exception, pytest.fail.Exception) as failure:  # any failure is the contract speaking
            broken.append((promise.__name__, failure))
    assert broken, f"a storage with the fault {fault!r} passed as a storage"
    assert len(broken) < len(PROMISES) // 2, f"{fault!r} breaks so much that it proves little: {broken}"
