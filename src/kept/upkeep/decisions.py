"""Upkeep of each memory and session: quarantine, shelf life, room. Decisions only; the facade carries them out.

Three parts: decide about one memory, note how far a round has come, and choose the memories to evict when a limit is
exceeded. Rule: a decision depends only on stored data, the settings and the time. So a dry run says exactly what a real
run does, and the next run finishes one that was interrupted.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from math import ceil
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from kept import worth
from kept.model import Memory, Message, SessionRecord
from kept.tables import Retention, by_kind

UpkeepAction = Literal["confirm", "penalise", "expire", "evict"]
QUARANTINED = "quarantined"  # in the data of a candidate that was penalised: that happens once
NO_ROOM = "least valuable, and a limit is exceeded"


class UpkeepRules(Struct, frozen=True, kw_only=True):
    """The settings that upkeep decides by."""

    retention: Retention
    shelf_life_days: Mapping[str, int]
    quarantine_hours: int
    confirms: bool  # whether a candidate that was used is confirmed
    proposal_days: int | None  # how long a finding waits for a judge; None: there is no judge
    session_retention_days: int
    session_idle_minutes: int


class UpkeepDecision(Struct, frozen=True, kw_only=True):
    """One memory, the action for it, and the reason."""

    memory: Memory
    action: UpkeepAction
    reason: str


def decide(memory: Memory, now: datetime, rules: UpkeepRules) -> UpkeepDecision | None:
    """Decide about a live memory whose quarantine or shelf life has ended; None: nothing is to be done."""
    shelf_life = by_kind(rules.shelf_life_days, memory.kind)
    if _has_shelf_life(memory, rules.retention) and worth.is_over(memory, now, shelf_life):
        return UpkeepDecision(memory=memory, action="expire", reason=f"not used for {shelf_life} days")
    if memory.status != "candidate":
        return None
    if _has_waited(memory, now, rules.proposal_days):
        return UpkeepDecision(memory=memory, action="expire", reason=f"not judged within {rules.proposal_days} days")
    if not is_penalised(memory) and worth.days_between(memory.created_at, now) * 24 < rules.quarantine_hours:
        return None
    if _is_to_confirm(memory, rules):
        return UpkeepDecision(memory=memory, action="confirm", reason="used by another session")
    if is_penalised(memory) or worth.days_between(_here_since(memory, rules), now) * 24 < rules.quarantine_hours:
        return None
    return UpkeepDecision(memory=memory, action="penalise", reason=f"not used within {rules.quarantine_hours} hours")


def _is_to_confirm(memory: Memory, rules: UpkeepRules) -> bool:
    """Return True for a used candidate, also after its quarantine; one of low trust, or rejected, needs a person."""
    return rules.confirms and memory.use_count > 0 and not memory.is_low_trust and not memory.is_rejected


def _has_waited(memory: Memory, now: datetime, most_days: int | None) -> bool:
    """Return True for a finding that was never used and has waited for a judge for that long."""
    is_unused = memory.is_proposal and memory.use_count == 0
    return most_days is not None and is_unused and worth.is_over(memory, now, most_days)


def _has_shelf_life(memory: Memory, retention: Retention) -> bool:
    """Return True if the retention lets a memory like this expire."""
    if retention.shelf_life == "automatic":
        return worth.is_automatic(memory) and not worth.is_lasting(memory)
    return retention.shelf_life == "all"


def _here_since(memory: Memory, rules: UpkeepRules) -> datetime:
    """When it could first be used. An imported memory is as old as what was said, and was stored long after."""
    hours = worth.days_between(memory.created_at, memory.updated_at) * 24
    is_untouched = not memory.use_count and not memory.feedback  # so it was updated by being stored
    return memory.updated_at if is_untouched and hours > rules.quarantine_hours else memory.created_at


def is_penalised(memory: Memory) -> bool:
    return bool((memory.data or {}).get(QUARANTINED))


def eviction(memory: Memory, now: datetime) -> UpkeepDecision | None:
    """Evict a memory that was chosen to make room, unless it was archived, pinned or used since."""
    if memory.is_archived or worth.is_exempt(memory, now):
        return None
    return UpkeepDecision(memory=memory, action="evict", reason=NO_ROOM)


def carried_out(decision: UpkeepDecision, now: datetime) -> Memory:
    """The memory after the decision."""
    memory = decision.memory
    if decision.action == "confirm":
        return replace(memory, status="confirmed", updated_at=now)
    if decision.action == "penalise":
        data: dict[str, Any] = {**(memory.data or {}), QUARANTINED: True}
        return replace(memory, importance=round(memory.importance * worth.QUARANTINE_PENALTY, 9), data=data)
    return memory.archived("expired" if decision.action == "expire" else "evicted", now)


FAST = -1  # the mark `ended` of a session that was finished fast: findings and summary are still to be stored


def is_unfinished(session: SessionRecord) -> bool:
    """Whether a session was never finished, went on since, or was finished fast. A packed one is finished."""
    return session.packed_at is None and (session.finished_at is None or session.ended == FAST)


def is_to_finish(session: SessionRecord, last: Message | None, now: datetime, idle_minutes: int) -> bool:
    """Whether an unfinished session is over: finished fast, or silent for that long."""
    if not is_unfinished(session):
        return False
    return session.finished_at is not None or now - silent_since(session, last) >= timedelta(minutes=idle_minutes)


def silent_since(session: SessionRecord, last: Message | None) -> datetime:
    """When something was last said, or when the session began."""
    return session.started_at if last is None or last.at is None else last.at


def is_to_pack(session: SessionRecord, last: Message | None, now: datetime, rules: UpkeepRules) -> bool:
    """Whether a session has been silent long enough to be compressed.

    An old conversation that was imported yesterday counts from yesterday.
    """
    moments = (session.started_at, session.finished_at, None if last is None else last.at)
    silent_since = max(moment for moment in moments if moment is not None)
    return session.packed_at is None and worth.days_between(silent_since, now) >= rules.session_retention_days


# ---- progress: numbers among a storage's counters, which may be lost ----

_PREFIX = "upkeep:"
_ERROR = "upkeep:error:"


class UpkeepProgress(Struct, frozen=True, kw_only=True):
    """How far the running round is, when the last one ended, and the errors since.

    A round visits every live memory, a few at a time. Its results are in the memories themselves: if these numbers are
    lost, the next round finds nothing left to do.
    """

    cursor: int = 0  # the last memory that was visited; 0: no round is running
    memories: int = 0  # live ones that this round has met so far, and their size
    bytes: int = 0
    finished: int = 0  # seconds since 1970
    evict_to: int = 0  # making room, down to this many memories; 0: not making room
    is_crowded: int = 0  # 1: a limit is exceeded, with too many memories to make room in passing
    failed: int = 0  # seconds since 1970
    errors: Mapping[str, int] = {}

    @property
    def finished_at(self) -> datetime | None:
        """When the last round ended."""
        return _moment(self.finished)

    @property
    def failed_at(self) -> datetime | None:
        """When upkeep last failed, if it did since the last round."""
        return _moment(self.failed)

    def done(self, now: datetime) -> "UpkeepProgress":
        """After a whole round."""
        return UpkeepProgress(finished=int(now.timestamp()), is_crowded=self.is_crowded, evict_to=self.evict_to)

    def failing(self, error: Exception, now: datetime) -> "UpkeepProgress":
        """After a failure. Only the name of the error is kept: its message may quote a memory."""
        name = type(error).__name__
        errors = {**self.errors, name: self.errors.get(name, 0) + 1}
        return replace(self, failed=int(now.timestamp()), errors=errors)


def read(counters: Mapping[str, int]) -> UpkeepProgress:
    """The progress that a storage has noted."""
    fields = {name: counters.get(_PREFIX + name, 0) for name in UpkeepProgress.__struct_fields__ if name != "errors"}
    errors = {name.removeprefix(_ERROR): n for name, n in counters.items() if name.startswith(_ERROR) and n}
    return UpkeepProgress(**fields, errors=errors)


def steps(before: UpkeepProgress, after: UpkeepProgress) -> dict[str, int]:
    """The numbers to add to the counters to get from `before` to `after`."""
    old, new = _flat(before), _flat(after)
    moved = {name: new.get(name, 0) - old.get(name, 0) for name in old | new}
    return {name: step for name, step in moved.items() if step}


def _flat(progress: UpkeepProgress) -> dict[str, int]:
    fields = asdict(progress)
    errors = fields.pop("errors")
    return {_PREFIX + name: n for name, n in fields.items()} | {_ERROR + name: n for name, n in errors.items()}


def _moment(seconds: int) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


# ---- room: the memories pass by one at a time, and only those that have to go are held ----

_ROW_BYTES = 600  # of a memory without its text: the other columns, and its share of the indexes


class Limits(Struct, frozen=True, kw_only=True):
    """How much may be live, to which share of the number room is made, and in which steps of the size."""

    max_bytes: int
    max_memories: int | None
    shrink_to_share: float
    step_percent: float


class Load(Struct):
    """How much is live."""

    memories: int = 0
    bytes: int = 0

    def add(self, memory: Memory) -> None:
        self.memories += 1
        self.bytes += size_of(memory)


class Weighed(Struct, frozen=True):
    """The part of a memory that eviction needs."""

    worth: float
    id: int
    bytes: int


class Surplus(Struct, frozen=True, kw_only=True):
    """How many memories and bytes have to go; bytes go in whole steps of `step` memories."""

    memories: int = 0
    bytes: int = 0
    step: int = 1

    def __bool__(self) -> bool:
        return self.memories > 0 or self.bytes > 0


def size_of(memory: Memory) -> int:
    """About how many bytes a live memory takes. Its index takes as much again as its text."""
    return _ROW_BYTES + 2 * len(memory.content.encode()) + sum(len(tag) for tag in memory.tags)


def surplus(load: Load, limits: Limits) -> Surplus:
    """By how much the limits are exceeded, and how far down to go."""
    too_many = limits.max_memories is not None and load.memories > limits.max_memories
    return Surplus(
        memories=load.memories - int((limits.max_memories or 0) * limits.shrink_to_share) if too_many else 0,
        bytes=max(0, load.bytes - limits.max_bytes),
        step=max(1, ceil(load.memories * limits.step_percent / 100)),
    )


def least_worth(weighed: Iterable[Weighed], surplus: Surplus) -> list[int]:
    """The ids that have to go, worth least first and older first among equals; all of them if they are too few."""
    chosen: list[tuple[float, int, int]] = []  # a heap, backwards: the worthiest is on top, and the first to be let off
    spare: list[tuple[float, int, int]] = []  # the least worth of those let off: they fill up the last step
    held_bytes = 0
    for one in weighed:
        heappush(chosen, (-one.worth, -one.id, one.bytes))
        held_bytes += one.bytes
        while len(chosen) > surplus.memories and held_bytes - chosen[0][2] >= surplus.bytes:
            let_off = heappop(chosen)
            held_bytes -= let_off[2]
            heappush(spare, let_off)
            if len(spare) >= surplus.step:
                heappop(spare)
    if surplus.bytes:
        chosen += sorted(spare, reverse=True)[: -len(chosen) % surplus.step]
    return [-id for _, id, _ in sorted(chosen, reverse=True)]
