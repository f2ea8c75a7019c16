"""The few memories worth scoring, out of all.

FTS5 scores every row that holds any of the words, so a search costs what its commonest word costs. Here only
the rarest words are searched, as many as fit a budget of postings, and what they find is ordered by all that the
score will be made of; the exact score over all words is computed afterwards, on the best. A space smaller than the
budget is searched with every word, hence exactly.
Rule: late is better than never, and said: what was found until the deadline is the answer.
"""

import math
from collections.abc import Callable
from itertools import accumulate

from msgspec import Struct

from kept.ports import Found, Ranking, Reader, Statistics, TooLate, Where

SMALLEST_BUDGET = 2_000  # postings
BUDGET_GROWTH = 20  # times the square root of the rows: 2,000 of 10,000, 20,000 of a million
FEWEST_CANDIDATES = 50
CANDIDATE_SHARE = 0.01  # of the budget, when words were left out, so that the order does not say all
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
    is_late: Callable[[], bool],
) -> Gathered:
    """The best `limit` memories of one space by the words that fit the budget; `statistics` are the space's own."""
    rare, common = affordable(weights, statistics)
    if not rare and not common:
        return Gathered([])
    found: list[Found] = []
    try:
        if rare:
            # If all of them are wanted, none need be ranked.
            is_all = sum(statistics.rows_with[word] for word in rare) < limit
            found = reader.search(rare, where, limit=limit, ranking=ranking, newest=is_all, is_late=is_late)
        known = {hit.memory.id for hit in found}
        for word in common:  # the rare words found too little: let the next one in, as far back as the budget goes
            if len(found) >= limit:
                break
            among = int(budget(statistics.rows))
            more = reader.search([word], where, limit=limit, ranking=ranking, among=among, is_late=is_late)
            found += [hit for hit in more if hit.memory.id not in known]
            known.update(hit.memory.id for hit in more)
        return Gathered(found[:limit], is_cut=len(found) >= limit)
    except TooLate:
        # Ranking the commonest words takes too long here. Their newest memories are had at once.
        found = found or reader.search([*rare, *common][:1], where, limit=limit, newest=True)
    return Gathered(found, is_cut=True, is_late=True)


def budget(rows: int) -> float:
    """How many postings a search of so many rows may look at."""
    return max(SMALLEST_BUDGET, BUDGET_GROWTH * math.sqrt(rows))


def sizes(weights: dict[str, float], statistics: Statistics, *, wanted: int, is_degraded: bool) -> tuple[int, ...]:
    """How many candidates to take: first, and again if that could miss one that is wanted."""
    if is_degraded:
        return (DEGRADED_CANDIDATES,)
    first = max(FEWEST_CANDIDATES, wanted)
    if affordable(weights, statistics)[1]:
        first = max(first, int(CANDIDATE_SHARE * budget(statistics.rows)))
    return first, max(MOST_CANDIDATES, 4 * wanted)


def affordable(weights: dict[str, float], statistics: Statistics) -> tuple[list[str], list[str]]:
    """The words that some row holds, rarest first: those within the budget, and the rest."""
    held = sorted((rows, word) for word in weights if (rows := statistics.rows_with.get(word, 0)))
    if statistics.rows <= budget(statistics.rows):
        return [word for _, word in held], []
    spent = accumulate(rows for rows, _ in held)
    n_rare = sum(rows <= budget(statistics.rows) for rows in spent)
    return [word for _, word in held[:n_rare]], [word for _, word in held[n_rare:]]
