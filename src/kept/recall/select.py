"""Which of the best memories are the answer, and why the others are not.

Fifth step of the read path. Rule: of those that were considered and not returned, the best few say why; what ranked
behind them was scored, and no more is known of it.
"""

from collections import Counter
from collections.abc import Sequence

from kept.model import Hit, Memory, Miss
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
