"""How many tokens a briefing may take, and which part of it how many.

Sixth step of the read path, for a host that injects. Order of importance: what is pinned, what other agents of the
session found, what fits the prompt, what earlier sessions came to. Rule: never more than the total; what one part
does not use flows on to the next.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

MOST_TOKENS = 5_000
MOST_PERCENT = 8.0  # of the context that is left


class Allocation(NamedTuple):
    """What each section may take before anything has flowed on, in the order in which they are filled."""

    always: int
    bridge: int
    retrieval: int
    summary: int


def total_tokens(
    budget_tokens: int | None,
    remaining_tokens: int | None,
    *,
    most_tokens: int = MOST_TOKENS,
    most_percent: float = MOST_PERCENT,
) -> int:
    """What a briefing may take: as given, or a share of what remains; of both the smaller, of neither the most."""
    offers = [] if budget_tokens is None else [budget_tokens]
    if remaining_tokens is not None:
        offers.append(min(most_tokens, int(remaining_tokens * most_percent / 100)))
    return max(0, min(offers, default=most_tokens))


def allocate(total: int) -> Allocation:
    """Share out a total. A section's least is given only while there is that much."""
    left = total
    left -= (always := min(left, _clamp(total * 8 // 100, 200, 400)))
    left -= (bridge := min(left, max(500, left // 2)))
    left -= (retrieval := min(left, _clamp(left * 65 // 100, 300, 1500)))
    summary = min(left, _clamp(left, 200, 600))
    return Allocation(always, bridge, retrieval, summary)


def fitting(costs: Sequence[int], room: int) -> list[int]:
    """Which of the things fit, in their order; one that is too big is passed over."""
    chosen = []
    for place, cost in enumerate(costs):
        if cost <= room:
            chosen.append(place)
            room -= cost
    return chosen


def fitting_shared(costs: Sequence[int], tiers: Sequence[str], room: int, shares: Mapping[str, int]) -> list[int]:
    """The same, where each tier first has a share of the room to itself; what it leaves is for all.

    A tier whose share is 0, or that is not named, gets nothing.
    """
    whole = sum(shares.values())
    chosen: set[int] = set()
    for tier, share in shares.items():
        places = [place for place, own in enumerate(tiers) if own == tier and share]
        own_room = room * share // whole if whole else 0
        chosen.update(places[index] for index in fitting([costs[place] for place in places], own_room))
    rest = [place for place, tier in enumerate(tiers) if place not in chosen and shares.get(tier)]
    left = room - sum(costs[place] for place in chosen)
    chosen.update(rest[index] for index in fitting([costs[place] for place in rest], left))
    return sorted(chosen)


def _clamp(number: int, least: int, most: int) -> int:
    return max(least, min(number, most))
