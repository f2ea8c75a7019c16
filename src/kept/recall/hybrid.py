"""Match by meaning as well as by words, for profiles with vectors.

Between score and floor. Memories whose vectors are nearest to the query's join the candidates of the words, and `match`
becomes a weighted sum of two shares from 0 to 1. That of the words is half the share of the query that a memory covers,
half BM25, where the best counts as much as it covers; that of the vectors is the cosine, above what two texts about
different things have on average in this model. Rule: the two summands are in `hit.parts` and add up to `match`; a
memory without a vector is still found by its words.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod

from kept import vectors
from kept.ports import Found, Reader
from kept.recall import Circumstances, Request, embedder_failed, where_of
from kept.recall.floor import Floor, tokens_of
from kept.recall.models import likeness, typical_cosine, unrelated_cosine
from kept.recall.score import MATCH, Scored, held_by
from kept.settings import Settings

CANDIDATES = 50  # of each space, that vectors alone may bring in

Key = tuple[str, int]


def join(
    scored: Sequence[Scored],
    score_of: Callable[[Found], Scored],
    floor: Floor,
    request: Request,
    circumstances: Circumstances,
) -> tuple[list[Scored], str | None]:
    """The candidates of words and vectors with their joint match, and None; or those of words, and a sentence why."""
    embedder = circumstances.embedder
    assert embedder is not None
    try:
        [vector] = vectors.pack(embedder.embed([request.query]))
        typical, unrelated = typical_cosine(embedder), unrelated_cosine(embedder)
    except Exception as error:  # perhaps a program's own code: reported, never raised into an answer
        return list(scored), embedder_failed(error)
    candidates = {_key(one.found): one for one in scored}
    cosines: dict[Key, float] = {}
    for reader in circumstances.readers:
        if reader.vector_state().model == embedder.model:
            near = reader.nearest(vector, where_of(request), limit=CANDIDATES)
            new = [found for found in near if found.rank > typical and _key(found) not in candidates]
            candidates |= {_key(found): score_of(found) for found in new}
            cosines |= _cosines(vector, reader, candidates)
    shares = _word_shares(candidates, floor)
    joined = []
    for key, one in candidates.items():
        cosine = cosines.get(key, 0.0)
        parts = joint_match(shares[key], likeness(cosine, typical), circumstances.settings)
        why = one.why | {MATCH: sum(parts.values())}
        joined.append(Scored(one.found, prod(why.values()), why, parts, likeness(cosine, unrelated)))
    return [one for one in joined if one.score > 0], None


def _cosines(vector: vectors.Vector, reader: Reader, candidates: Iterable[Key]) -> dict[Key, float]:
    """Compare the query's vector with those of the candidates in this space."""
    own = reader.vectors([id for space, id in candidates if space == reader.space])
    values = vectors.cosines(vector, list(own.values()))
    return {(reader.space, id): cosine for id, cosine in zip(own, values, strict=True)}


def _word_shares(candidates: Mapping[Key, Scored], floor: Floor) -> dict[Key, float]:
    """Return the share of the words in the match of each candidate, from 0 to 1."""
    covered = {key: _coverage(floor, one.found) for key, one in candidates.items()}
    best = max(candidates, key=lambda key: candidates[key].why[MATCH], default=None)
    # Where the best match covers a third of the query, the words have found only a third of what was asked for.
    top = candidates[best].why[MATCH] if best is not None else 0.0
    share = covered[best] / top if best is not None and top else 0.0
    return {key: covered[key] * (1 + share * one.why[MATCH]) / 2 for key, one in candidates.items()}


def _coverage(floor: Floor, found: Found) -> float:
    return floor.covered(held_by(found.prepared, floor.asked), tokens_of(found.prepared)).coverage


def joint_match(words: float, likeness: float, settings: Settings) -> dict[str, float]:
    """The two summands of `match`, both from 0 to 1 before they are weighed."""
    whole = settings.text_weight + settings.vector_weight
    return {"words": settings.text_weight / whole * words, "vectors": settings.vector_weight / whole * likeness}


def _key(found: Found) -> Key:
    return found.traits.space, found.traits.id
