"""The worth of a memory now: pure functions of what was recorded, and the clock.

Noun layer, and the only place that computes these numbers; recall ranks with some of them, upkeep decides with others.
Rule: nothing computed here is written back, so opening a store a hundred times ages nothing.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from kept.model import Memory

Factor = Callable[[Memory, datetime], float]

FEEDBACK_STEEPNESS = 0.2
MOST_FAVOUR = 1.6  # its square times the cut of a profile is below 1: no feedback drops a memory that fits as well
HALF_FAVOUR = 4.0  # points of feedback that bring half of it
RECENCY_PER_DAY = 0.01
LEAST_FRESHNESS = 0.8  # of a memory as old as time: age decides between like fits, and a rule of last year still holds
LEAST_IMPORTANCE = 0.8  # a kind alone must not lift a memory over one that fits better
USE_STEEPNESS = 0.1
MOST_USE = 1.5
STATUS_FACTOR = {"candidate": 0.9, "confirmed": 1.0, "pinned": 1.1, "archived": 1.0}


def feedback_factor(feedback: int) -> float:
    """1.82 at +3, 1 at 0, 0.82 at −1, 0.37 at −5: proven memories rise, wrong ones sink."""
    return math.exp(FEEDBACK_STEEPNESS * feedback)


def favour_factor(feedback: int) -> float:
    """1.22 at +3, 1 at 0, 0.91 at −1, 0.77 at −5, never beyond 1.6 and 1/1.6: feedback decides between like fits."""
    return float(MOST_FAVOUR ** (feedback / (abs(feedback) + HALF_FAVOUR)))


def feedback_of_favour(factor: float) -> float:
    """Return the feedback that has this favour."""
    share = min(0.99, max(-0.99, math.log(factor) / math.log(MOST_FAVOUR)))
    return HALF_FAVOUR * share / (1 - abs(share))


def recency_factor(memory: Memory, now: datetime) -> float:
    """1 today, a half after a hundred days; counted from the last time it helped, else from its creation."""
    return 1 / (1 + RECENCY_PER_DAY * days_between(memory.last_hit_at or memory.created_at, now))


def freshness_of(recency: float) -> float:
    """Between 0.8 and 1: the same, but age alone never puts a memory behind one that fits worse."""
    return LEAST_FRESHNESS + (1 - LEAST_FRESHNESS) * recency


def recency_of_freshness(factor: float) -> float:
    """Return the recency that has this freshness."""
    return max(0.0, (factor - LEAST_FRESHNESS) / (1 - LEAST_FRESHNESS))


def use_factor(use_count: int) -> float:
    """1 for a memory nobody used yet, slowly up to 1.5."""
    return min(MOST_USE, 1 + USE_STEEPNESS * math.log1p(use_count))


def importance_factor(importance: float) -> float:
    """Between 0.8 and 1: importance decides between equals, the match between others."""
    return LEAST_IMPORTANCE + (1 - LEAST_IMPORTANCE) * importance


def importance_of_factor(factor: float) -> float:
    """Return the importance that has this factor."""
    return max(0.0, (factor - LEAST_IMPORTANCE) / (1 - LEAST_IMPORTANCE))


def days_between(earlier: datetime, now: datetime) -> float:
    """Days since then; 0 when the clock has been set back."""
    return max(0.0, (now - earlier).total_seconds() / 86_400)


# The factors of a score that no query changes, by the names that profiles use (recall/score.py has the others).
MEMORY_FACTORS: Mapping[str, Factor] = {
    "feedback": lambda memory, now: feedback_factor(memory.feedback),
    "favour": lambda memory, now: favour_factor(memory.feedback),
    "recency": recency_factor,
    "freshness": lambda memory, now: freshness_of(recency_factor(memory, now)),
    "use": lambda memory, now: use_factor(memory.use_count),
    "status": lambda memory, now: STATUS_FACTOR[memory.status],
    "importance": lambda memory, now: importance_factor(memory.importance),
}


# ---- uses ----


def is_use(memory: Memory, now: datetime, *, session: str | None = None, since: datetime | None = None) -> bool:
    """Return True if being delivered now counts as a use: once a day (C19: also on the day it was written).

    Delivered to a session that began at `since`: once in it, and never to the one that wrote it.
    """
    if session is not None and session in (memory.source.session, *(memory.data or {}).get("sessions", ())):
        return False
    if since is not None:
        # No storage records who was told what: any use since then counts as a use by this session.
        is_older = memory.source.session is not None or memory.created_at < since
        return is_older and (memory.last_used_at is None or memory.last_used_at < since)
    return memory.last_used_at is None or memory.last_used_at.date() != now.date()


# ---- upkeep ----

DECAY_PER_WEEK = 0.95
CANDIDATE_SHARE = 0.9
USES_THAT_SAVE = 3
FRESH_HOURS = 24  # used or created within: never evicted
QUARANTINE_PENALTY = 0.8
AUTOMATIC = ("conversation", "extraction", "tool", "narrative")  # origins of memories that were not stored on purpose


def decayed_importance(memory: Memory, now: datetime) -> float:
    """Importance less 5 % a week without use, a tenth less for a candidate, and up to half less while little used.

    A pinned memory does not decay.
    """
    if memory.status == "pinned":
        return memory.importance
    weeks = days_between(memory.last_used_at or memory.created_at, now) / 7
    candidate_share = CANDIDATE_SHARE if memory.status == "candidate" else 1.0
    return float(memory.importance * DECAY_PER_WEEK**weeks * candidate_share * min(1.0, 0.5 + 0.05 * memory.use_count))


# The factors by which a retention (tables.RETENTIONS) says which memories make room.
RETENTION_FACTORS: Mapping[str, Factor] = {**MEMORY_FACTORS, "decayed_importance": decayed_importance}


def worth(memory: Memory, now: datetime, factors: Sequence[str]) -> float:
    """The worth of a memory when room is needed: the product of the named factors."""
    return math.prod(RETENTION_FACTORS[name](memory, now) for name in factors)


def is_automatic(memory: Memory) -> bool:
    """Whether a rule, a tool or a narrative stored it, so that it may fade without a question."""
    return memory.source.origin in AUTOMATIC


def is_lasting(memory: Memory) -> bool:
    """Whether it has no shelf life: the user said it, somebody confirmed or used it, or it is a fix that worked."""
    is_fix = "error-resolution" in (memory.data or {}).get("signals", ())
    return memory.trust == "user" or memory.status != "candidate" or memory.use_count > 0 or is_fix


def is_vouched_for(memory: Memory) -> bool:
    """Whether somebody stands behind it: it was confirmed, or it is a directive in the user's own words.

    The same signal promotes it (`admit.POINTS`), so a person need not confirm what they said themselves.
    """
    is_directive = memory.trust == "user" and "user-intent" in (memory.data or {}).get("signals", ())
    return memory.status != "candidate" or is_directive


def is_over(memory: Memory, now: datetime, shelf_life_days: float) -> bool:
    """Whether its shelf life has ended: unused that long, used less than three times, and not pinned."""
    if memory.status == "pinned" or memory.use_count >= USES_THAT_SAVE:
        return False
    touched = (memory.created_at, memory.updated_at, memory.last_hit_at, memory.last_used_at)
    return days_between(max(at for at in touched if at is not None), now) > shelf_life_days


def is_exempt(memory: Memory, now: datetime) -> bool:
    """Whether it is never evicted: pinned, or used or created within a day."""
    fresh = max(at for at in (memory.created_at, memory.last_used_at) if at is not None)
    return memory.status == "pinned" or days_between(fresh, now) * 24 < FRESH_HOURS
