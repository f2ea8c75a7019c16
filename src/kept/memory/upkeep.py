"""Upkeep: apply quarantine, shelf life and limits to a store, in small transactions, by one process at a time.

The decisions are in the package `kept.upkeep`; a `Round` carries them out in one store. `run` goes through everything;
a little is done automatically at each opening and at every fiftieth recall. Rule: everything leaves through the
archive; each change is decided again inside the transaction that makes it, and a dry run takes the same path.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from kept import journal, worth
from kept.errors import Busy, KeptError
from kept.memory import following
from kept.memory.context import BATCH, ERASING, Context
from kept.model import Memory, SessionRecord
from kept.ports import Reader, Stamp, Storage, Where
from kept.projects.files import write_session_index
from kept.proposals import FADE_DAYS
from kept.storage.shared import pages_of, random_hex
from kept.tables import PRESETS, RETENTIONS
from kept.upkeep import decisions
from kept.upkeep.decisions import UpkeepAction, UpkeepDecision, UpkeepProgress, UpkeepRules

MANY = 500  # memories that leave in one round: from here on it pays to rebuild the index at the end
EVERYTHING_LIVE = Where()  # items and sources live as long as their files


StepAction = UpkeepAction | Literal["finish", "pack"]  # to a memory, or to a session


class UpkeepStep(Struct, frozen=True, kw_only=True):
    """One thing that upkeep did, or would do: to a memory, or (`finish`, `pack`) to a session."""

    ref: str
    action: StepAction
    reason: str


class Round(Struct, eq=False):
    """One pass over a store at one moment: due changes are made, or (in a dry run) only reported.

    `most` limits how many memories are changed by age, and then the round waits for no other writer. `bulk` is closed
    at the end of a complete round: the index is then rebuilt once for many departures.
    """

    storage: Storage
    now: datetime
    rules: UpkeepRules
    is_dry_run: bool = False
    most: int | None = None
    bulk: ExitStack | None = None
    done: list[UpkeepStep] = field(default_factory=list)
    archived: int = 0
    load: decisions.Load = field(default_factory=decisions.Load)
    due: list[int] = field(default_factory=list)

    def age(self, memories: Sequence[Memory]) -> int:
        """End the quarantines and shelf lives that are over. Returns how many of the memories were visited."""
        due = [number for number, memory in enumerate(memories) if self._decide(memory)]
        visited = due[self.most] if self.most is not None and len(due) > self.most else len(memories)
        self.due += [memories[number].id for number in due if number < visited]
        if self.most is not None or len(self.due) >= BATCH:
            self.settle()
        self._weigh(memories[:visited])
        return visited

    def _weigh(self, memories: Sequence[Memory]) -> None:
        """Add the memories that stay to the load of the store."""
        for aged in map(self._aged, memories):
            if not aged.is_archived:
                self.load.add(aged)

    def settle(self) -> None:
        """Make the changes that were put off to save transactions."""
        for start in range(0, len(self.due), BATCH):
            self._carry_out(self.due[start : start + BATCH], self._decide)
        self.due = []

    def chosen_to_go(self, limits: decisions.Limits, evict_to: int) -> list[int]:
        """The memories for which there is no room, least worth first. `evict_to`: leave at most that many.

        Call it when all have been visited.
        """
        surplus = decisions.surplus(self.load, limits)
        if evict_to:
            surplus = replace(surplus, memories=max(surplus.memories, self.load.memories - evict_to))
        return decisions.least_worth(self._weighed(), surplus) if surplus else []

    def evict(self, chosen: Sequence[int]) -> None:
        """Archive the chosen memories, except those that have changed since."""
        for start in range(0, len(chosen), BATCH):
            self._carry_out(chosen[start : start + BATCH], lambda memory: decisions.eviction(memory, self.now))

    def pack(self, folder: Path | None) -> None:
        """Compress the sessions that have been silent for long. Their files in `folder` stay."""
        with self.storage.reading() as reader:
            silent = [session for session in reader.all(SessionRecord) if self._is_to_pack(reader, session)]
        for session in silent:
            if self.is_dry_run or self._pack(session):
                reason = f"nothing was said for {self.rules.session_retention_days} days"
                self.done.append(UpkeepStep(ref=session.name, action="pack", reason=reason))
        if silent and folder is not None and not self.is_dry_run:
            write_session_index(folder, self.storage.reading)

    def _pack(self, session: SessionRecord) -> bool:
        with self.storage.writing(self._stamp()) as tx:
            current = tx.session(session.name)
            if current is None or decisions.is_unfinished(current) or not self._is_to_pack(tx, current):
                return False
            tx.pack(current.name)
            tx.put(replace(current, packed_at=self.now), "pack")
        return True

    def _is_to_pack(self, reader: Reader, session: SessionRecord) -> bool:
        if session.packed_at is not None:
            return False
        end = reader.last_number(session.name)
        last = next(iter(reader.messages(session.name, after=end - 1)), None)
        return decisions.is_to_pack(session, last, self.now, self.rules)

    def note_finished(self, names: Sequence[str]) -> None:
        """Report the sessions that were finished, or would be."""
        reason = f"nothing was said for {self.rules.session_idle_minutes} minutes"
        self.done += [UpkeepStep(ref=name, action="finish", reason=reason) for name in names]

    def _decide(self, memory: Memory) -> UpkeepDecision | None:
        return None if memory.is_archived else decisions.decide(memory, self.now, self.rules)

    def _aged(self, memory: Memory) -> Memory:
        """The memory as it is, or (a dry run) would be, after its due change."""
        found = self._decide(memory)
        return memory if found is None else decisions.carried_out(found, self.now)

    def _weighed(self) -> Iterator[decisions.Weighed]:
        for page in pages_of(self.storage, EVERYTHING_LIVE, size=BATCH):
            for memory in map(self._aged, page):
                if not memory.is_archived and not worth.is_exempt(memory, self.now):
                    value = worth.worth(memory, self.now, self.rules.retention.worth)
                    yield decisions.Weighed(value, memory.id, decisions.size_of(memory))

    def _carry_out(self, ids: Sequence[int], decide: Callable[[Memory], UpkeepDecision | None]) -> None:
        if not ids:
            return
        if self.is_dry_run:
            with self.storage.reading() as reader:
                self._tell(_decided(reader, ids, decide))
            return
        if self.bulk is not None and self.archived + len(ids) >= MANY:
            self.bulk.enter_context(self.storage.in_bulk())
            self.bulk = None
        with self.storage.writing(self._stamp(), wait_s=None if self.most is None else 0) as tx:
            found = _decided(tx, ids, decide)
            by_action: dict[str, list[Memory]] = {}
            for decision in found:
                by_action.setdefault(decision.action, []).append(decisions.carried_out(decision, self.now))
            for action, changed in by_action.items():
                tx.put_many(changed, action)
        self._tell(found)

    def _tell(self, found: Sequence[UpkeepDecision]) -> None:
        for decision in found:
            self.archived += decision.action in ("expire", "evict")
            self.done.append(UpkeepStep(ref=decision.memory.ref, action=decision.action, reason=decision.reason))

    def _stamp(self) -> Stamp:
        return Stamp(group=random_hex(8), at=self.now, actor=journal.UPKEEP)


def _decided(
    reader: Reader, ids: Sequence[int], decide: Callable[[Memory], UpkeepDecision | None]
) -> list[UpkeepDecision]:
    memories = (reader.get(Memory, id) for id in ids)
    return [found for memory in memories if memory is not None and (found := decide(memory)) is not None]


EVERY_HOURS = 1  # at an opening, a new round is begun
FEW_SESSIONS = 3  # that are finished at one occasion
FEW = 20  # changes at one occasion: the caller waits for them
MOST_WEIGHED = 5_000  # memories that are weighed against each other at one occasion, when there is no room
LEASE = "upkeep"

log = logging.getLogger("kept")


class UpkeepReport(Struct, frozen=True, kw_only=True):
    """The result of an upkeep run. `skipped`: another process was already running it."""

    done: tuple[UpkeepStep, ...] = ()
    is_dry_run: bool = False
    skipped: bool = False

    def count(self, action: str) -> int:
        return sum(one.action == action for one in self.done)


def run(context: Context, *, dry_run: bool) -> UpkeepReport:
    """A whole round through every store that this actor keeps in order."""
    done: list[UpkeepStep] = []
    now = context.now()
    for storage in _tended(context):
        if dry_run:
            done += _whole_round(context, storage, now, is_dry_run=True)
            continue
        with storage.lease(LEASE) as is_ours:
            if not is_ours:
                return UpkeepReport(done=tuple(done), skipped=True)
            done += _whole_round(context, storage, now)
    if not dry_run:
        following.follow_code(context)
    return UpkeepReport(done=tuple(done), is_dry_run=dry_run)


def pack_sessions(context: Context) -> list[str]:
    """Compress the sessions in which nothing was said for the days of `session_retention_days`."""
    storage = context.spaces.project()
    if storage is None or storage not in _tended(context):
        return []
    rounds = Round(storage, context.now(), _upkeep_rules(context))
    _end_sessions(context, rounds)
    return [one.ref for one in rounds.done if one.action == "pack"]


def finish_sessions(context: Context) -> list[str]:
    """Finish the sessions in which nothing was said for the minutes of `session_idle_minutes`."""
    storage = context.spaces.project()
    return [] if storage is None or storage not in _tended(context) else _finish_silent(context, storage)


def _end_sessions(context: Context, rounds: Round, most: int | None = None) -> None:
    """Finish the silent sessions, at most that many, and pack those that have been silent for long."""
    with rounds.storage.reading() as reader:
        has_unfinished = any(map(decisions.is_unfinished, reader.all(SessionRecord)))
    if has_unfinished:
        rounds.note_finished(_finish_silent(context, rounds.storage, most=most, is_dry_run=rounds.is_dry_run))
    rounds.pack(context.spaces.sessions_folder())


def _finish_silent(
    context: Context, storage: Storage, *, most: int | None = None, is_dry_run: bool = False
) -> list[str]:
    """Finish the sessions that were left open, or in a dry run only name them."""
    from kept.memory import sessions  # extracts findings, which most commands do without

    if not is_dry_run:
        return sessions.finish_silent(context, most=most)
    with storage.reading() as reader:
        return [session.name for session in sessions.silent_sessions(context, reader, context.now())]


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
        confirms=PRESETS[settings.preset].min_points is not None,
        proposal_days=FADE_DAYS if context.has_judge else None,
        session_retention_days=settings.session_retention_days,
        session_idle_minutes=settings.session_idle_minutes,
    )


def _limits(context: Context) -> decisions.Limits:
    retention, settings = RETENTIONS[context.settings.retention], context.settings
    return decisions.Limits(
        max_bytes=settings.max_size_bytes,
        max_memories=retention.max_memories if settings.max_memories is None else settings.max_memories,
        shrink_to_share=retention.shrink_to_share,
        step_percent=settings.prune_percent,
    )


def _whole_round(context: Context, storage: Storage, now: datetime, *, is_dry_run: bool = False) -> list[UpkeepStep]:
    came = _progress_of(storage)
    with ExitStack() as bulk:
        rounds = Round(storage, now, _upkeep_rules(context), is_dry_run=is_dry_run, bulk=bulk)
        for page in pages_of(storage, EVERYTHING_LIVE, size=BATCH):
            rounds.age(page)
        rounds.settle()
        chosen = rounds.chosen_to_go(_limits(context), came.evict_to)
        if chosen and not is_dry_run:
            # Should we be interrupted: the next run goes as far down, although it finds fewer memories.
            came = _note(storage, came, replace(came, evict_to=rounds.load.memories - len(chosen)))
        rounds.evict(chosen)
    if storage is context.spaces.project():
        _end_sessions(context, rounds)
    if not is_dry_run:
        _note(storage, came, UpkeepProgress().done(now))
        if rounds.done:
            context.tell_write(storage, -rounds.archived)
    return rounds.done


# Automatically, a little at a time


def after_opening(context: Context) -> None:
    """A little upkeep when a memory is opened."""
    if context.settings.auto_upkeep and context.actor.role != "skill":
        with suppress(KeptError):  # the next command that needs the store reports what is wrong
            storages, came = _tended(context), []
            has_pending = False
            for storage in storages:
                with storage.reading() as reader:
                    has_pending = has_pending or bool(reader.file_notes(ERASING))
                    came.append(decisions.read(reader.counters()))
            if has_pending:
                _finish_erasures(context)
            _tend(context, storages, came, context.now(), is_recall=False)


def _finish_erasures(context: Context) -> None:
    """Clean the files that an erasure left when it was killed, or could not write."""
    from kept.memory.erase import finish_files  # only after an erasure that was interrupted

    finish_files(context)


def after_recall(context: Context) -> None:
    """A little upkeep after every `read.UPKEEP_EVERY` recalls."""
    with suppress(KeptError):
        storages = _tended(context)
        _tend(context, storages, map(_progress_of, storages), context.now(), is_recall=True)


def _tend(
    context: Context, storages: Sequence[Storage], progress: Iterable[UpkeepProgress], now: datetime, *, is_recall: bool
) -> None:
    """Continue the round under way, or begin one. Waits for nobody; `status` shows a failure."""
    for storage, came in zip(storages, progress, strict=True):
        is_fresh = came.finished_at is not None and worth.days_between(came.finished_at, now) * 24 < EVERY_HOURS
        if is_fresh and not came.cursor and not is_recall:
            continue
        try:
            with storage.lease(LEASE) as is_ours:
                if is_ours:
                    _go_on(context, storage, came, now)
        except Busy:
            continue  # another process writes: next time
        except Exception as error:  # the caller asked for something else, which must not fail because of this
            log.warning("upkeep of %s failed: %s", storage.space, type(error).__name__)
            _note(storage, came, came.failing(error, now))


def _go_on(context: Context, storage: Storage, came: UpkeepProgress, now: datetime) -> None:
    rounds = Round(storage, now, _upkeep_rules(context), most=FEW)
    rounds.load = decisions.Load(came.memories, came.bytes)
    page = next(pages_of(storage, EVERYTHING_LIVE, after=came.cursor, size=BATCH), [])
    visited = rounds.age(page)
    if visited < len(page) or len(page) == BATCH:
        load = rounds.load
        after = replace(came, cursor=page[visited - 1].id, memories=load.memories, bytes=load.bytes)
    else:
        after = _end_round(context, storage, rounds, came, now)
    _note(storage, came, after)
    if rounds.done:
        context.tell_write(storage, -rounds.archived)


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
        _end_sessions(context, rounds, most=FEW_SESSIONS)
    return after


def _progress_of(storage: Storage) -> UpkeepProgress:
    with storage.reading() as reader:
        return decisions.read(reader.counters())


def _note(storage: Storage, before: UpkeepProgress, after: UpkeepProgress) -> UpkeepProgress:
    """Save how far the round has come. If that fails, the next one begins a little earlier."""
    with suppress(KeptError), storage.bookkeeping() as notes:
        if notes is not None:
            notes.count(decisions.steps(before, after))
            return after
    return before
