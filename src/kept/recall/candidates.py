"""The few memories worth scoring.

Second step of the read path. An index scores every row that holds any of the words, so the commonest word decides what
a search costs. Here only the rarest words are searched, as many as fit a budget of postings; the storage orders what
they find by nearly our score, and the exact score over all words is computed for the best. A space smaller than the
budget is searched with every word. There the answer is exact, but for what the storage's order does not know: it
rounds factors to 4 %, and knows neither the latest uses nor the factor `files`. `Latencies` watches how long recall
takes and asks for fewer candidates while it is slow. Rule: what was found by the deadline is the answer, and the
answer says so.
"""

import math
from collections import deque
from collections.abc import Callable, Collection, Sequence
from heapq import nlargest
from itertools import accumulate

from msgspec import Struct

from kept.ports import Deadline, Found, Ranking, Reader, Statistics, TooLate, Where

SMALLEST_BUDGET = 2_000  # postings
BUDGET_GROWTH = 20  # times the square root of the rows: 2,000 of 10,000, 20,000 of a million
BESIDE = 6  # times the budget: postings of common words that are walked to rank what the rare words found
ENOUGH = 0.025  # of the budget: where rare words reach fewer rows, a common one is searched as well
MOST_CANDIDATES = 500
DEGRADED_CANDIDATES = 100


class Candidates(Struct, frozen=True):
    """The candidates of one space, whether there were more of them, and whether time ran out."""

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
) -> Candidates:
    """The best `limit` memories of one space by the words that fit the budget; `statistics` are the space's own."""
    rare, common = affordable(weights, statistics)
    if not rare and not common:
        return Candidates([])
    also = _cheap(common, statistics)
    found: dict[int, Found] = {}

    def look(words: list[str], among: int | None = None) -> None:
        others = [word for word in also if word not in words]
        more = reader.search(words, where, limit=limit, ranking=ranking, also=others, among=among, deadline=deadline)
        found.update((hit.traits.id, hit) for hit in more)

    try:
        if rare:
            look(rare)
        reached = sum(statistics.rows_with[word] for word in rare)
        for word in common:  # the rare words found too little: search the newest matches of the next one
            if len(found) >= limit and reached >= ENOUGH * budget(statistics.rows):
                break
            look([word], among=int(budget(statistics.rows)))
            reached += statistics.rows_with[word]
        return Candidates(nlargest(limit, found.values(), key=lambda hit: hit.rank), is_cut=len(found) >= limit)
    except TooLate:
        # Ranking takes too long. The newest matches of the rarest word are found at once.
        best = list(found.values()) or reader.search([*rare, *common][:1], where, limit=limit, newest=True)
    return Candidates(best, is_cut=True, is_late=True)


def _cheap(common: list[str], statistics: Statistics) -> list[str]:
    """Of the words too common to search for, those that may still help to rank what the others find."""
    spent = accumulate(statistics.rows_with[word] for word in common)
    most = BESIDE * budget(statistics.rows)
    return [word for word, postings in zip(common, spent, strict=True) if postings <= most]


def budget(rows: int) -> float:
    """How many postings a search of that many rows may read."""
    return max(SMALLEST_BUDGET, BUDGET_GROWTH * math.sqrt(rows))


def sizes(wanted: int, *, is_degraded: bool) -> tuple[int, ...]:
    """How many candidates to take at first, and again if that could miss one that belongs in the answer."""
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
    """How long the last recalls of a space took, and whether to make do with less because of that.

    Above 300 ms at the 95th percentile recall is degraded, until it is below 200 ms again. Fewer than five recalls say
    nothing. Receipts keep the figures across processes: most commands and all hooks recall once and end, so a process
    starts as the last one ended, and goes on with its figures.
    """

    def __init__(self, *, is_degraded: bool = False) -> None:
        self._ring: deque[float] = deque(maxlen=RING)
        self._is_whole = False  # with the recalls of earlier processes
        self._n_noted = 0
        self.is_degraded = is_degraded

    def copy(self) -> "Latencies":
        """Return the same figures, to go on with apart from these."""
        other = Latencies(is_degraded=self.is_degraded)
        other._ring, other._is_whole, other._n_noted = self._ring.copy(), self._is_whole, self._n_noted
        return other

    def note(self, took_ms: float, before: Callable[[], Sequence[float]] = lambda: ()) -> None:
        """One more recall; `before` gives those that receipts have kept so far, the newest last.

        A quick recall alone changes nothing, so that the only one of a process need not read the others.
        """
        if self._n_noted or self.is_degraded or took_ms >= HEALTHY_MS:
            self._complete(before)
        self._ring.append(took_ms)
        self._n_noted += 1
        if self._is_whole:
            self._judge()

    def _complete(self, before: Callable[[], Sequence[float]]) -> None:
        if not self._is_whole:
            self._ring = deque(before(), maxlen=RING) or self._ring
            self._is_whole = True

    def _judge(self) -> None:
        # Mostly all are quick, and then the slowest tells as much, in a tenth of the time.
        p95 = self.p95_ms() if max(self._ring) >= HEALTHY_MS else 0.0
        if p95 is not None and (p95 > TOO_SLOW_MS or p95 < HEALTHY_MS):
            self.is_degraded = p95 > TOO_SLOW_MS

    def p95_ms(self) -> float | None:
        """The 95th percentile, or None while there are fewer than five."""
        return percentile(self._ring, 0.95) if len(self._ring) >= FEWEST else None


def percentile(values: Collection[float], share: float) -> float:
    """The value that this share of all values does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]
