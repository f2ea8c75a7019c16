"""Room for somebody else's opinion: a reranker adds one factor to each hit.

Fourth step of the read path; by default there is none. Rule: it may be wrong, it may fail, it may be slow. Our own
order stands whenever it does not deliver in time, and the answer says so.
"""

import threading
from collections.abc import Callable, Sequence
from math import isfinite

from kept.model import Hit, replace

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
