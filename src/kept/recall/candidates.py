"""The few memories worth scoring, out of all.

FTS5 scores every row that holds any of the words, so a search costs what its commonest word costs. Here only
the rarest words are searched, as many as fit a budget of postings, and what they find is ordered by all that the
score will be made of; the exact score over all words is computed afterwards, on the best. A space smaller than the
budget is searched with every word, hence exactly.
Rule: late is better than never, and said: what was found until the deadline is the answer.

How long recall takes lately, and when to do with less.

A ring of the last 100 retrievals. Above 300 ms at the 95th percentile, recall looks at fewer candidates until it
is back below 200 ms. Rule: five samples at least, or there is no judgement.
"""

import math
from collections import deque
from heapq import nlargest
from itertools import accumulate

from msgspec import Struct

from kept.ports import Deadline, Found, Ranking, Reader, Statistics, TooLate, Where

SMALLEST_BUDGET = 2_000  # postings
BUDGET_GROWTH = 20  # times the square root of the rows: 2,000 of 10,000, 20,000 of a million
BESIDE = 6  # times the budget: so many more postings are walked, but not looked at, for words that are too common
ENOUGH = 0.025  # of the budget: where rare words reach fewer rows, a common one is let in
MOST_CANDIDATES = 500
DEGRADED_CANDIDATES = 100


class Gathered(Struct, frozen=True):
    """What was found in one space, whether something was cut off, and whether time ran out."""

    found: list[Found]
    is_cut: bool = False
    is_late: bool = False


def gather(
    reader: Reader,
    weights: dict[str, float],
    statistics: Statistics,
    where: Where,
    ranking: Ranking,
    *,
    limit: int,
    deadline: Deadline,
) -> Gathered:
    """The best `limit` memories of one space by the words that fit the budget; `statistics` are the space's own."""
    rare, common = affordable(weights, statistics)
    if not rare and not common:
        return Gathered([])
    also = _cheap(common, statistics)
    found: dict[int, Found] = {}

    def look(words: list[str], among: int | None = None) -> None:
        others = [word for word in also if word not in words]
        more = reader.search(words, where, limit=limit, ranking=ranking, also=others, among=among, deadline=deadline)
        found.update((hit.memory.id, hit) for hit in more)

    try:
        if rare:
            look(rare)
        reached = sum(statistics.rows_with[word] for word in rare)
        for word in common:  # the rare words found too little: let the next one in, as far back as the budget goes
            if len(found) >= limit and reached >= ENOUGH * budget(statistics.rows):
                break
            look([word], among=int(budget(statistics.rows)))
            reached += statistics.rows_with[word]
        return Gathered(nlargest(limit, found.values(), key=lambda hit: hit.rank), is_cut=len(found) >= limit)
    except TooLate:
        # Ranking the commonest words takes too long here. Their newest memories are had at once.
        best = list(found.values()) or reader.search([*rare, *common][:1], where, limit=limit, newest=True)
    return Gathered(best, is_cut=True, is_late=True)


def _cheap(common: list[str], statistics: Statistics) -> list[str]:
    """Of the words that are too common to be searched, those that may still be asked for in what was found."""
    spent = accumulate(statistics.rows_with[word] for word in common)
    most = BESIDE * budget(statistics.rows)
    return [word for word, postings in zip(common, spent, strict=True) if postings <= most]


def budget(rows: int) -> float:
    """How many postings a search of so many rows may look at."""
    return max(SMALLEST_BUDGET, BUDGET_GROWTH * math.sqrt(rows))


def sizes(wanted: int, *, is_degraded: bool) -> tuple[int, ...]:
    """How many candidates to take: first, and again if that could miss one that is wanted."""
    if is_degraded:
        return (DEGRADED_CANDIDATES,)
    return wanted, max(MOST_CANDIDATES, 4 * wanted)


def affordable(weights: dict[str, float], statistics: Statistics) -> tuple[list[str], list[str]]:
    """The words that some row holds, rarest first: those within the budget, and the rest."""
    held = sorted((rows, word) for word in weights if (rows := statistics.rows_with.get(word, 0)))
    if statistics.rows <= budget(statistics.rows):
        return [word for _, word in held], []
    spent = accumulate(rows for rows, _ in held)
    n_rare = sum(rows <= budget(statistics.rows) for rows in spent)
    return [word for _, word in held[:n_rare]], [word for _, word in held[n_rare:]]


RING = 100
FEWEST = 5
HEALTHY_MS = 200.0
TOO_SLOW_MS = 300.0


class Latencies:
    """The ring of one opened memory. The first retrieval of a process warms caches up and does not count."""

    def __init__(self) -> None:
        self._ring: deque[float] = deque(maxlen=RING)
        self._is_warm = False
        self.is_degraded = False

    def note(self, took_ms: float) -> None:
        """One more retrieval."""
        if not self._is_warm:
            self._is_warm = True
            return
        self._ring.append(took_ms)
        p95 = self.p95_ms()
        if p95 is None:
            return
        if p95 > TOO_SLOW_MS:
            self.is_degraded = True
        elif p95 < HEALTHY_MS:
            self.is_degraded = False

    def p95_ms(self) -> float | None:
        """The 95th percentile, or None while there are fewer than five."""
        return percentile(list(self._ring), 0.95) if len(self._ring) >= FEWEST else None


def percentile(values: list[float], share: float) -> float:
    """The smallest value that at least that share of all is not above."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]
