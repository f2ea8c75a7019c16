"""One thing brings another to mind: memories that were recalled together are linked.

Rule: a link is an old habit. It grows with each time, fades by half a month, and what it brings in never ranks
above what was asked for.
"""

from collections.abc import Sequence
from datetime import datetime

from kept import worth
from kept.model import Hit, Memory
from kept.ports import Reader

HALF_LIFE_DAYS = 30.0
_FULL_TRUST = 4.0  # recalled together so often (and lately), a link passes on 2/3 of a score
_STEPS = 2  # a thought, and the thought it brings
_FAINTEST = 0.1


def strength_now(strength: float, last_at: datetime, now: datetime) -> float:
    """What is left of a link today."""
    return float(strength * 0.5 ** (worth.days_between(last_at, now) / HALF_LIFE_DAYS))


def follow(hits: Sequence[Hit], readers: Sequence[Reader], now: datetime, *, limit: int) -> list[Hit]:
    """At most `limit` more hits: live memories linked to the given ones, and to those in turn."""
    known = {hit.memory.uid for hit in hits}
    spaces = {reader.space: reader for reader in readers}
    brought: list[Hit] = []
    edge = list(hits)
    for _ in range(_STEPS):
        next_edge: list[Hit] = []
        for hit in edge:
            for linked, strength in _linked(hit.memory, spaces, now):
                if linked.uid in known or linked.is_archived or strength < _FAINTEST:
                    continue
                known.add(linked.uid)
                share = strength / (strength + _FULL_TRUST / 2)
                next_edge.append(
                    Hit(
                        memory=linked,
                        score=hit.score * share,
                        why={"linked hit": hit.score, "link": share},
                        matched={hit.ref: "recalled together"},
                    )
                )
        brought += next_edge
        edge = next_edge
    brought.sort(key=lambda hit: (-hit.score, hit.memory.uid))
    return brought[:limit]


def _linked(memory: Memory, spaces: dict[str, Reader], now: datetime) -> list[tuple[Memory, float]]:
    reader = spaces.get(memory.space)
    if reader is None:
        return []
    found = []
    for related, strength, last_at in reader.links(memory.id):
        other = reader.get(Memory, related)
        if other is not None:
            found.append((other, strength_now(strength, last_at, now)))
    return found
