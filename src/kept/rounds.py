"""A round of upkeep through one store: each due change in a small transaction of its own group.

Facade layer, below `upkeeping.py`, which says when and how far. Rule: what a dry run says and what a run does come from
the same lines here; they differ in whether anything is written.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kept import journal, transcripts, worth
from kept.model import Memory, Message, Session
from kept.ports import Reader, Stamp, Storage, Where
from kept.upkeep import decisions, room
from kept.upkeep.decisions import Decision, Rules

PAGE = 500  # memories that are read at once, and changed in one transaction: others get their turn in between
MANY = 500  # memories that leave in one round: from here on it pays to build the index anew at the end
EVERYTHING_LIVE = Where(scope=None)


class Done(Struct, frozen=True, kw_only=True):
    """One thing that upkeep did, or would do: to a memory, or (`pack`) to a session."""

    ref: str
    action: str
    reason: str


class Round:
    """One visit to a store, at one moment: what is due is done, or (a dry run) only said.

    `most` limits how many memories are changed by age; then nobody is waited for, either. `bulk` is closed at the end
    of the round, if there is an end: what many departures leave behind is then tidied up.
    """

    def __init__(
        self,
        storage: Storage,
        now: datetime,
        rules: Rules,
        *,
        is_dry_run: bool = False,
        most: int | None = None,
        bulk: ExitStack | None = None,
    ) -> None:
        self.done: list[Done] = []
        self.archived = 0
        self.load = room.Load()
        self._due: list[int] = []
        self._storage = storage
        self._now = now
        self._rules = rules
        self._is_dry_run = is_dry_run
        self._most = most
        self._bulk = bulk

    def age(self, memories: Sequence[Memory]) -> int:
        """End the quarantines and shelf lives that are over; how many of the memories have been visited."""
        due = [number for number, memory in enumerate(memories) if self._decide(memory)]
        visited = len(memories) if self._most is None or len(due) <= self._most else due[self._most]
        self._due += [memories[number].id for number in due if number < visited]
        if self._most is not None or len(self._due) >= PAGE:
            self.settle()
        for memory in memories[:visited]:
            if not (aged := self._aged(memory)).is_archived:
                self.load.add(aged)
        return visited

    def settle(self) -> None:
        """Do what is due, and has been put off so that there are fewer transactions."""
        for start in range(0, len(self._due), PAGE):
            self._carry_out(self._due[start : start + PAGE], self._decide)
        self._due = []

    def chosen_to_go(self, limits: room.Limits, evict_to: int) -> list[int]:
        """The memories for which there is no room, least worth first. `evict_to`: down to so many, at least.

        Call it when all have been visited.
        """
        surplus = room.surplus(self.load, limits)
        if evict_to:
            surplus = replace(surplus, memories=max(surplus.memories, self.load.memories - evict_to))
        return room.least_worth(self._weighed(), surplus) if surplus else []

    def evict(self, chosen: Sequence[int]) -> None:
        """Archive the memories that were chosen, but for those that something has happened to since."""
        for start in range(0, len(chosen), PAGE):
            self._carry_out(chosen[start : start + PAGE], lambda memory: decisions.eviction(memory, self._now))

    def pack(self, folder: Path | None) -> None:
        """Compress the sessions that have been silent for long, and take their files out of `folder`."""
        with self._storage.reading() as reader:
            sessions = reader.all(Session)
            silent = [one for one in sessions if self._is_to_pack(one, _last_message(reader, one))]
        for session in silent:
            if self._is_dry_run or self._pack(session):
                reason = f"nothing was said for {self._rules.session_retention_days} days"
                self.done.append(Done(ref=session.name, action="pack", reason=reason))
        if folder is None or self._is_dry_run:
            return
        with self._storage.reading() as reader:
            packed = [session for session in reader.all(Session) if session.packed_at is not None]
            for session in packed:  # also of those whose file an interrupted run has left
                transcripts.remove(folder, session.name)
            if silent:
                transcripts.write_index_of(folder, reader)

    def _pack(self, session: Session) -> bool:
        with self._storage.writing(self._stamp()) as tx:
            current = tx.session(session.name)
            if current is None or not self._is_to_pack(current, _last_message(tx, current)):
                return False
            tx.pack(current.name)
            tx.put(replace(current, packed_at=self._now), "pack")
        return True

    def _is_to_pack(self, session: Session, last: Message | None) -> bool:
        return decisions.is_to_pack(session, last, self._now, self._rules)

    def _decide(self, memory: Memory) -> Decision | None:
        return None if memory.is_archived else decisions.decide(memory, self._now, self._rules)

    def _aged(self, memory: Memory) -> Memory:
        """The memory as it is, or (a dry run) would be, when its time has done its work."""
        found = self._decide(memory)
        return memory if found is None else decisions.carried_out(found, self._now)

    def _weighed(self) -> Iterator[room.Weighed]:
        for page in pages_of(self._storage):
            for memory in map(self._aged, page):
                if not memory.is_archived and not worth.is_exempt(memory, self._now):
                    value = worth.worth(memory, self._now, self._rules.retention.worth)
                    yield room.Weighed(value, memory.id, room.size_of(memory))

    def _carry_out(self, ids: Sequence[int], decide: Callable[[Memory], Decision | None]) -> None:
        if not ids:
            return
        if self._is_dry_run:
            with self._storage.reading() as reader:
                self._tell(_decided(reader, ids, decide))
            return
        if self._bulk is not None and self.archived + len(ids) >= MANY:
            self._bulk.enter_context(self._storage.in_bulk())
            self._bulk = None
        with self._storage.writing(self._stamp(), wait_s=None if self._most is None else 0) as tx:
            found = _decided(tx, ids, decide)
            for action in dict.fromkeys(decision.action for decision in found):
                same = [decision for decision in found if decision.action == action]
                tx.put_many([decisions.carried_out(decision, self._now) for decision in same], action)
        self._tell(found)

    def _tell(self, found: Sequence[Decision]) -> None:
        for decision in found:
            self.archived += decision.action in ("expire", "evict")
            self.done.append(Done(ref=decision.memory.ref, action=decision.action, reason=decision.reason))

    def _stamp(self) -> Stamp:
        return Stamp(group=secrets.token_hex(8), at=self._now, actor=journal.UPKEEP)


def pages_of(storage: Storage) -> Iterator[list[Memory]]:
    """Every live memory, page by page, each page of one moment: nobody waits for us meanwhile."""
    after = 0
    while page := page_of(storage, after):
        yield page
        after = page[-1].id


def page_of(storage: Storage, after: int) -> list[Memory]:
    """The live memories that follow an id."""
    with storage.reading() as reader:
        return reader.select(EVERYTHING_LIVE, limit=PAGE, after=after, oldest_first=True)


def _decided(reader: Reader, ids: Sequence[int], decide: Callable[[Memory], Decision | None]) -> list[Decision]:
    memories = (reader.get(Memory, id) for id in ids)
    return [found for memory in memories if memory is not None and (found := decide(memory)) is not None]


def _last_message(reader: Reader, session: Session) -> Message | None:
    if session.packed_at is not None:
        return None
    last = reader.last_number(session.name)
    return next(iter(reader.messages(session.name, after=last - 1)), None)
