"""Upkeep: what time does to a store, journaled, in small transactions, by one process at a time.

The decisions are in the package `kept.upkeep`; a `Round` carries them out in one store. `run` goes through everything;
a little is done automatically at each opening and at every fiftieth recall. Rule: everything leaves through the
archive; each change is decided again inside the transaction that makes it, and a dry run takes the same path.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kept import journal, worth
from kept.errors import Busy, KeptError
from kept.memory.context import BATCH, Context, Memories, pages_of
from kept.model import Memory, Message, Session
from kept.ports import Reader, Stamp, Storage, Where
from kept.projects import mirrors
from kept.storage.shared import random_hex
from kept.tables import RETENTIONS
from kept.upkeep import decisions
from kept.upkeep.decisions import UpkeepDecision, UpkeepProgress, UpkeepRules

MANY = 500  # memories that leave in one round: from here on it pays to rebuild the index at the end
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
        rules: UpkeepRules,
        *,
        is_dry_run: bool = False,
        most: int | None = None,
        bulk: ExitStack | None = None,
    ) -> None:
        self.done: list[Done] = []
        self.archived = 0
        self.load = decisions.Load()
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
        if self._most is not None or len(self._due) >= BATCH:
            self.settle()
        for memory in memories[:visited]:
            if not (aged := self._aged(memory)).is_archived:
                self.load.add(aged)
        return visited

    def settle(self) -> None:
        """Do what is due, and has been put off so that there are fewer transactions."""
        for start in range(0, len(self._due), BATCH):
            self._carry_out(self._due[start : start + BATCH], self._decide)
        self._due = []

    def chosen_to_go(self, limits: decisions.Limits, evict_to: int) -> list[int]:
        """The memories for which there is no room, least worth first. `evict_to`: leave at most that many.

        Call it when all have been visited.
        """
        surplus = decisions.surplus(self.load, limits)
        if evict_to:
            surplus = replace(surplus, memories=max(surplus.memories, self.load.memories - evict_to))
        return decisions.least_worth(self._weighed(), surplus) if surplus else []

    def evict(self, chosen: Sequence[int]) -> None:
        """Archive the memories that were chosen, but for those that something has happened to since."""
        for start in range(0, len(chosen), BATCH):
            self._carry_out(chosen[start : start + BATCH], lambda memory: decisions.eviction(memory, self._now))

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
                mirrors.remove(folder, session.name)
            if silent:
                mirrors.write_index(folder, reader)

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

    def _decide(self, memory: Memory) -> UpkeepDecision | None:
        return None if memory.is_archived else decisions.decide(memory, self._now, self._rules)

    def _aged(self, memory: Memory) -> Memory:
        """The memory as it is, or (a dry run) would be, when its time has done its work."""
        found = self._decide(memory)
        return memory if found is None else decisions.carried_out(found, self._now)

    def _weighed(self) -> Iterator[decisions.Weighed]:
        for page in pages_of(self._storage, EVERYTHING_LIVE):
            for memory in map(self._aged, page):
                if not memory.is_archived and not worth.is_exempt(memory, self._now):
                    value = worth.worth(memory, self._now, self._rules.retention.worth)
                    yield decisions.Weighed(value, memory.id, decisions.size_of(memory))

    def _carry_out(self, ids: Sequence[int], decide: Callable[[Memory], UpkeepDecision | None]) -> None:
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

    def _tell(self, found: Sequence[UpkeepDecision]) -> None:
        for decision in found:
            self.archived += decision.action in ("expire", "evict")
            self.done.append(Done(ref=decision.memory.ref, action=decision.action, reason=decision.reason))

    def _stamp(self) -> Stamp:
        return Stamp(group=random_hex(8), at=self._now, actor=journal.UPKEEP)


def _first_page(storage: Storage, after: int) -> Memories:
    """The live memories that follow an id, as many as are read at once."""
    return next(pages_of(storage, EVERYTHING_LIVE, after), [])


def _decided(
    reader: Reader, ids: Sequence[int], decide: Callable[[Memory], UpkeepDecision | None]
) -> list[UpkeepDecision]:
    memories = (reader.get(Memory, id) for id in ids)
    return [found for memory in memories if memory is not None and (found := decide(memory)) is not None]


def _last_message(reader: Reader, session: Session) -> Message | None:
    if session.packed_at is not None:
        return None
    last = reader.last_number(session.name)
    return next(iter(reader.messages(session.name, after=last - 1)), None)


EVERY_HOURS = 1  # at an opening, a new round is begun
FEW = 20  # changes at one occasion, so that nobody waits for them
MOST_WEIGHED = 5_000  # memories that are weighed against each other at one occasion, when there is no room
LEASE = "upkeep"

log = logging.getLogger("kept")


class Upkept(Struct, frozen=True, kw_only=True):
    """What a run of upkeep did. `skipped`: another process was at it."""

    done: tuple[Done, ...] = ()
    is_dry_run: bool = False
    skipped: bool = False

    def count(self, action: str) -> int:
        return sum(one.action == action for one in self.done)


def run(context: Context, *, dry_run: bool) -> Upkept:
    """End quarantines and shelf lives, make room where a limit is exceeded, pack old sessions. Safe at any moment.

    `dry_run` changes nothing and says exactly what would be done now.
    """
    done: list[Done] = []
    now = context.now()
    for storage in _tended(context):
        if dry_run:
            done += _whole_round(context, storage, now, is_dry_run=True)
            continue
        with storage.lease(LEASE) as is_ours:
            if not is_ours:
                return Upkept(done=tuple(done), skipped=True)
            done += _whole_round(context, storage, now)
    return Upkept(done=tuple(done), is_dry_run=dry_run)


def pack_sessions(context: Context) -> list[str]:
    """Compress the sessions in which nothing was said for the days of `session_retention_days`."""
    storage = context.spaces.project()
    if storage is None or storage not in _tended(context):
        return []
    rounds = Round(storage, context.now(), _upkeep_rules(context))
    rounds.pack(context.spaces.sessions_folder())
    return [one.ref for one in rounds.done]


def _tended(context: Context) -> list[Storage]:
    """The storages this actor keeps in order: its own; an admin's also the global one."""
    readable = context.readable()
    actor = context.actor_here()
    return [storage for storage in readable if actor.role == "admin" or storage.space == actor.project]


def _upkeep_rules(context: Context) -> decisions.UpkeepRules:
    settings = context.settings
    return decisions.UpkeepRules(
        retention=RETENTIONS[settings.retention],
        shelf_life_days=settings.shelf_life_days,
        quarantine_hours=settings.quarantine_hours,
        session_retention_days=settings.session_retention_days,
    )


def _limits(context: Context) -> decisions.Limits:
    retention, settings = RETENTIONS[context.settings.retention], context.settings
    return decisions.Limits(
        max_bytes=settings.max_size_bytes,
        max_memories=retention.max_memories if settings.max_memories is None else settings.max_memories,
        shrink_to_share=retention.shrink_to_share,
        step_percent=settings.prune_percent,
    )


def _whole_round(context: Context, storage: Storage, now: datetime, *, is_dry_run: bool = False) -> list[Done]:
    came = _progress_of(storage)
    with ExitStack() as bulk:
        rounds = Round(storage, now, _upkeep_rules(context), is_dry_run=is_dry_run, bulk=bulk)
        for page in pages_of(storage, EVERYTHING_LIVE):
            rounds.age(page)
        rounds.settle()
        chosen = rounds.chosen_to_go(_limits(context), came.evict_to)
        if chosen and not is_dry_run:
            # Should we be interrupted: the next run goes as far down, although it finds fewer memories.
            came = _note(storage, came, replace(came, evict_to=rounds.load.memories - len(chosen)))
        rounds.evict(chosen)
    if storage is context.spaces.project():
        rounds.pack(context.spaces.sessions_folder())
    if not is_dry_run:
        _note(storage, came, UpkeepProgress().done(now))
        _tell_upkept(context, storage, rounds)
    return rounds.done


def _tell_upkept(context: Context, storage: Storage, rounds: Round) -> None:
    if rounds.done:
        context.tell_write(storage, -rounds.archived)


# Automatically, a little at a time


def after_opening(context: Context) -> None:
    """A little upkeep when a memory is opened."""
    if context.settings.auto_upkeep and context.actor.role != "skill":
        with suppress(KeptError):  # the next command that needs the store reports what is wrong
            _tend(context, _tended(context), context.now(), is_recall=False)


def after_recall(context: Context) -> None:
    """A little upkeep after every `read.UPKEEP_EVERY` recalls."""
    with suppress(KeptError):
        _tend(context, _tended(context), context.now(), is_recall=True)


def _tend(context: Context, storages: Sequence[Storage], now: datetime, *, is_recall: bool) -> None:
    """Go on with the round under way, or begin one. Waits for nobody; a failure is noted, for `status`."""
    for storage in storages:
        came = _progress_of(storage)
        is_fresh = came.finished_at is not None and worth.days_between(came.finished_at, now) * 24 < EVERY_HOURS
        if is_fresh and not came.cursor and not is_recall:
            continue
        try:
            with storage.lease(LEASE) as is_ours:
                if is_ours:
                    _go_on(context, storage, came, now)
        except Busy:
            continue  # somebody writes: next time, then
        except Exception as error:  # somebody wanted something else of us, and got it: this is not their affair
            log.warning("upkeep of %s failed: %s", storage.space, type(error).__name__)
            _note(storage, came, came.failing(error, now))


def _go_on(context: Context, storage: Storage, came: UpkeepProgress, now: datetime) -> None:
    rounds = Round(storage, now, _upkeep_rules(context), most=FEW)
    rounds.load = decisions.Load(came.memories, came.bytes)
    page = _first_page(storage, came.cursor)
    visited = rounds.age(page)
    if visited < len(page) or len(page) == BATCH:
        load = rounds.load
        after = replace(came, cursor=page[visited - 1].id, memories=load.memories, bytes=load.bytes)
    else:
        after = _end_round(context, storage, rounds, came, now)
    _note(storage, came, after)
    _tell_upkept(context, storage, rounds)


def _end_round(
    context: Context, storage: Storage, rounds: Round, came: UpkeepProgress, now: datetime
) -> UpkeepProgress:
    """Every memory was visited: make room, and pack a few sessions. Of a large store, say that it is full."""
    after = UpkeepProgress().done(now)
    if rounds.load.memories > MOST_WEIGHED:
        return replace(
            after, is_crowded=int(bool(decisions.surplus(rounds.load, _limits(context)))), evict_to=came.evict_to
        )
    chosen = rounds.chosen_to_go(_limits(context), came.evict_to)
    rounds.evict(chosen[: 5 * FEW])
    if len(chosen) > 5 * FEW:
        after = replace(after, evict_to=rounds.load.memories - len(chosen))
    if storage is context.spaces.project():
        rounds.pack(context.spaces.sessions_folder())
    return after


def _progress_of(storage: Storage) -> UpkeepProgress:
    with storage.reading() as reader:
        return decisions.read(reader.counters())


def _note(storage: Storage, before: UpkeepProgress, after: UpkeepProgress) -> UpkeepProgress:
    """Write down how far we have come. Where it cannot be written, the next one begins a little earlier."""
    with suppress(KeptError), storage.bookkeeping() as notes:
        if notes is not None:
            notes.count(decisions.steps(before, after))
            return after
    return before
