"""What a memory is worth now: pure functions of what was recorded, and the clock.

Noun layer; recall ranks with some of these, upkeep decides with others. The only place that computes
them. Rule: nothing computed here is ever written back, so opening a store a hundred times ages nothing.
"""

import math
from collections.abc import Callable, Mapping
from datetime import datetime

from kept.model import Memory

FEEDBACK_STEEPNESS = 0.2
RECENCY_PER_DAY = 0.01
USE_STEEPNESS = 0.1
MOST_USE = 1.5
STATUS_FACTOR = {"candidate": 0.9, "confirmed": 1.0, "pinned": 1.1, "archived": 1.0}


def feedback_factor(feedback: int) -> float:
    """1.82 at +3, 1 at 0, 0.82 at −1, 0.37 at −5: proven memories rise, wrong ones sink."""
    return math.exp(FEEDBACK_STEEPNESS * feedback)


def recency_factor(memory: Memory, now: datetime) -> float:
    """1 today, a half after a hundred days; counted from the last confirmation that it helped, else from its birth."""
    return 1 / (1 + RECENCY_PER_DAY * days_between(memory.last_hit_at or memory.created_at, now))


def use_factor(use_count: int) -> float:
    """1 for a memory nobody used yet, slowly up to 1.5."""
    return min(MOST_USE, 1 + USE_STEEPNESS * math.log1p(use_count))


def importance_factor(importance: float) -> float:
    """Between 0.5 and 1: importance decides between equals, relevance between others."""
    return 0.5 + 0.5 * importance


def days_between(earlier: datetime, now: datetime) -> float:
    """Days since then; 0 when the clock has been set back."""
    return max(0.0, (now - earlier).total_seconds() / 86_400)


# What a memory brings along to every query, by the names that profiles use.
FACTORS: Mapping[str, Callable[[Memory, datetime], float]] = {
    "feedback": lambda memory, now: feedback_factor(memory.feedback),
    "recency": recency_factor,
    "use": lambda memory, now: use_factor(memory.use_count),
    "status": lambda memory, now: STATUS_FACTOR[memory.status],
    "importance": lambda memory, now: importance_factor(memory.importance),
}
