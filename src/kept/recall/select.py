"""Which of the best memories are the answer, and why the others are not.

Fifth step of the read path. Rule: of those that were considered and not returned, the best few say why; what ranked
behind them was scored, and no more is known of it.

Room for somebody else's opinion: a reranker adds one factor to each hit.

Fourth step of the read path; by default there is none. Rule: it may be wrong, it may fail, it may be slow. Our own
order stands whenever it does not deliver in time, and the answer says so.
"""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from math import isfinite

from kept.model import Hit, Memory, Miss, replace
from kept.recall.score import Scored
from kept.tables import Profile

AT_LEAST_CONSIDERED = 15
MOST_MISSES = 10  # that say why


def best_first(scored: Sequence[Scored]) -> list[Scored]:
    """Candidates in order; of equals, the newer one first."""
    return sorted(scored, key=lambda one: _place(one.score, one.found.memory))


def in_order(hits: Sequence[Hit]) -> list[Hit]:
    """Hits in the same order."""
    return sorted(hits, key=lambda hit: _place(hit.score, hit.memory))


def considered(limit: int) -> int:
    """How many of the best are considered for an answer of at most `limit`."""
    return max(AT_LEAST_CONSIDERED, 3 * limit)


def select(hits: Sequence[Hit], profile: Profile, limit: int, *, top: int) -> tuple[list[Hit], list[Miss]]:
    """The answer, and what just missed it. `hits` are those considered, in order; only the first `top` may be in it."""
    chosen: list[Hit] = []
    misses: list[Miss] = []
    from_session: Counter[str] = Counter()
    floor = profile.threshold_share * hits[0].score if hits else 0.0
    for rank, hit in enumerate(hits):
        session = hit.memory.source.session
        if rank >= top:
            reason = f"ranked {rank + 1}, beyond the first {top}"
        elif hit.score < floor:
            reason = f"scored below {profile.threshold_share:.0%} of the best"
        elif profile.max_per_session and session and from_session[session] >= profile.max_per_session:
            reason = f"already {profile.max_per_session} from session {session}"
        elif len(chosen) >= limit:
            reason = f"beyond the limit of {limit}"
        else:
            chosen.append(hit)
            if session:
                from_session[session] += 1
            continue
        if len(misses) < MOST_MISSES:
            misses.append(Miss(hit=hit, reason=reason))
    return chosen, misses


def _place(score: float, memory: Memory) -> tuple[float, float, str, int]:
    return -score, -memory.created_at.timestamp(), memory.space, -memory.id


# query, hits in order → one factor (0 or more) for each
Reranker = Callable[[str, Sequence[Hit]], Sequence[float]]


def rerank(query: str, hits: Sequence[Hit], reranker: Reranker, timeout_s: float) -> tuple[list[Hit], str | None]:
    """The hits with the factor `rerank`, and None; or the hits as they were, and a sentence why."""
    answers: list[Sequence[float]] = []
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            answers.append(reranker(query, hits))
        except BaseException as error:  # somebody else's code, in a thread of its own: reported, never raised
            errors.append(error)

    thread = threading.Thread(target=ask, daemon=True, name="kept-reranker")
    thread.start()
    thread.join(timeout_s)
    if errors:
        return list(hits), f"the reranker failed ({type(errors[0]).__name__}), so our own order stands"
    if not answers:
        return list(hits), f"the reranker took longer than {timeout_s * 1000:.0f} ms, so our own order stands"
    factors = [float(factor) for factor in answers[0]]
    if len(factors) != len(hits) or not all(isfinite(factor) and factor >= 0 for factor in factors):
        return list(hits), "the reranker did not give one number for each hit, so our own order stands"
    return [
        replace(hit, score=hit.score * factor, why=hit.why | {"rerank": factor})
        for hit, factor in zip(hits, factors, strict=True)
    ], None
