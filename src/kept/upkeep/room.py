"""Which memories have to go when there is no room: the least worth, as few as the limits ask for.

Rule: no more is held in memory than what has to go. The memories pass by one at a time, however many there are.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from math import ceil

from msgspec import Struct

from kept.model import Memory

_ROW_BYTES = 600  # of a memory without its text: the other columns, and its share of the indexes


class Limits(Struct, frozen=True, kw_only=True):
    """How much may be live; down to which share of the number, and in which steps of the size, room is made."""

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
    """What eviction needs to know of a memory."""

    worth: float
    id: int
    bytes: int


class Surplus(Struct, frozen=True, kw_only=True):
    """What has to go: so many memories, and as many bytes, the latter in whole steps of so many memories."""

    memories: int = 0
    bytes: int = 0
    step: int = 1

    def __bool__(self) -> bool:
        return self.memories > 0 or self.bytes > 0


def size_of(memory: Memory) -> int:
    """Bytes that a live memory takes, about. Its index takes as much again as its text."""
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
    """The ids that have to go, least worth first, of equals the older one; all of them if they are too few."""
    chosen: list[tuple[float, int, int]] = []  # a heap, backwards: on top is the worthiest, the first to be let off
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
