"""What upkeep would do with each memory: pure, from the memory, the clock and the rules.

Rule: a decision depends on nothing but what is stored and the time. So a dry run says exactly what a real one does, and
a run that was interrupted is finished by the next.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from kept import worth
from kept.model import Memory
from kept.settings import Retention, by_kind

Action = Literal["confirm", "penalise", "expire", "evict"]
QUARANTINED = "quarantined"  # in the data of a candidate whose day is over: the penalty is given once


class Rules(Struct, frozen=True, kw_only=True):
    """What a person has set."""

    retention: Retention
    shelf_life_days: Mapping[str, int]
    quarantine_hours: int
    max_size_bytes: int
    max_memories: int | None


class Decision(Struct, frozen=True, kw_only=True):
    """One memory, what to do with it, and why."""

    memory: Memory
    action: Action
    reason: str


def decide(memory: Memory, now: datetime, rules: Rules) -> Decision | None:
    """What time has brought for one live memory: the end of its quarantine, or of its shelf life."""
    shelf_life = by_kind(rules.shelf_life_days, memory.kind)
    has_shelf_life = rules.retention.shelf_life == "all" or (
        rules.retention.shelf_life == "automatic" and worth.is_automatic(memory)
    )
    if has_shelf_life and worth.is_over(memory, now, shelf_life):
        return Decision(memory=memory, action="expire", reason=f"not used for {shelf_life} days")
    if memory.status != "candidate" or (memory.data or {}).get(QUARANTINED):
        return _late_confirmation(memory)
    if worth.days_between(memory.created_at, now) * 24 < rules.quarantine_hours:
        return None
    return _late_confirmation(memory) or Decision(
        memory=memory, action="penalise", reason=f"not used within {rules.quarantine_hours} hours"
    )


def _late_confirmation(memory: Memory) -> Decision | None:
    """A candidate that was used is confirmed, also after its day; one that a tool brought never is, by itself."""
    if memory.status == "candidate" and memory.use_count and memory.source.origin != "tool":
        return Decision(memory=memory, action="confirm", reason="used by another session")
    return None


def carried_out(decision: Decision, now: datetime) -> Memory:
    """The memory as it is afterwards."""
    memory = decision.memory
    if decision.action == "confirm":
        return replace(memory, status="confirmed", updated_at=now)
    if decision.action == "penalise":
        data: dict[str, Any] = {**(memory.data or {}), QUARANTINED: True}
        return replace(memory, importance=round(memory.importance * worth.QUARANTINE_PENALTY, 9), data=data)
    reason = "expired" if decision.action == "expire" else "evicted"
    return replace(memory, status="archived", reason=reason, archived_at=now, updated_at=now)


class Weighed(Struct, frozen=True, order=True):
    """What eviction needs to know of a memory: least worth first, of equals the older one."""

    worth: float
    created_at: datetime
    id: int
    bytes: int


def weigh(memory: Memory, now: datetime, retention: Retention) -> Weighed:
    """One memory on the scales. Its index takes about as much again as its text."""
    size = 600 + 2 * len(memory.content.encode()) + sum(len(tag) for tag in memory.tags)
    return Weighed(worth.worth(memory, now, retention.worth), memory.created_at, memory.id, size)


def to_evict(weighed: Iterable[Weighed], exempt: Iterable[Weighed], rules: Rules) -> list[int]:
    """The ids that have to go, least worth first, until number and size are within their limits."""
    candidates = sorted(weighed)
    staying = list(exempt)
    total_bytes = sum(one.bytes for one in candidates) + sum(one.bytes for one in staying)
    count = len(candidates) + len(staying)
    limit = rules.max_memories if rules.max_memories is not None else rules.retention.max_memories
    target = count
    if limit is not None and count > limit:
        target = int(limit * rules.retention.shrink_to_share)
    gone: list[int] = []
    for one in candidates:
        if total_bytes <= rules.max_size_bytes and count <= target:
            break
        gone.append(one.id)
        total_bytes -= one.bytes
        count -= 1
    return gone
