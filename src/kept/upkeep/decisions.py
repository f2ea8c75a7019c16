"""What upkeep would do with each memory, and each session: pure, from what is stored, the clock and the rules.

Rule: a decision depends on nothing but what is stored and the time. So a dry run says exactly what a real one does, and
a run that was interrupted is finished by the next.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from kept import worth
from kept.model import Memory, Message, Session
from kept.tables import Retention, by_kind

Action = Literal["confirm", "penalise", "expire", "evict"]
QUARANTINED = "quarantined"  # in the data of a candidate whose day is over: the penalty is given once
NO_ROOM = "least worth of all, and there is no room"


class Rules(Struct, frozen=True, kw_only=True):
    """What a person has set."""

    retention: Retention
    shelf_life_days: Mapping[str, int]
    quarantine_hours: int
    session_retention_days: int


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
    if memory.status != "candidate":
        return None
    if not is_penalised(memory) and worth.days_between(memory.created_at, now) * 24 < rules.quarantine_hours:
        return None
    # One that was used is confirmed, also after its day; one that a tool brought never is, by itself.
    if memory.use_count and memory.source.origin != "tool":
        return Decision(memory=memory, action="confirm", reason="used by another session")
    if is_penalised(memory):
        return None
    return Decision(memory=memory, action="penalise", reason=f"not used within {rules.quarantine_hours} hours")


def is_penalised(memory: Memory) -> bool:
    return bool((memory.data or {}).get(QUARANTINED))


def eviction(memory: Memory, now: datetime) -> Decision | None:
    """That a memory which was chosen to make room leaves, unless something has happened to it since."""
    if memory.is_archived or worth.is_exempt(memory, now):
        return None
    return Decision(memory=memory, action="evict", reason=NO_ROOM)


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


def is_to_pack(session: Session, last: Message | None, now: datetime, rules: Rules) -> bool:
    """Whether a session has been silent for so long that it is compressed.

    An old conversation that was imported yesterday is kept here since yesterday.
    """
    moments = (session.started_at, session.finished_at, None if last is None else last.at)
    silent_since = max(moment for moment in moments if moment is not None)
    return session.packed_at is None and worth.days_between(silent_since, now) >= rules.session_retention_days
