"""Match by meaning as well as by words, for profiles with vectors.

Between score and floor. Memories whose vectors are nearest to the query's join the candidates of the words, and `match`
becomes a weighted sum of two shares from 0 to 1. That of the words is half the share of the query that a memory covers,
half BM25, where the best counts as much as it covers; that of the vectors is the cosine, above what two texts about
different things have on average in this model. Rule: the two summands are in `hit.parts` and add up to `match`; a
memory without a vector is still found by its words.

`WordLlama` is the model that Kept brings along: one vector for each piece of a word, and a text is their mean. Its
files come with the package wordllama (extra `vector`), so nothing is ever downloaded. They are read directly, because
importing that package sets up logging for the whole program and loads code that talks to a network. Nothing is loaded
before the first text; after that a text takes some hundredths of a millisecond.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from importlib.util import find_spec
from math import prod
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from kept import vectors
from kept.errors import SettingsError
from kept.ports import Embedder, Found
from kept.recall import Circumstances, Request, embedder_failed, where_of
from kept.recall.floor import Floor
from kept.recall.score import MATCH, Scored, held_by, tokens_of
from kept.settings import Settings
from kept.vectors import INSTALL

CANDIDATES = 50  # of each space, that vectors alone may bring in
MOST_UNRELATED = 0.95
_TYPICAL_SHARE = 1 / 3  # of the cosine that is no evidence, where an embedder tells only that
_DIFFERENT = (
    "The invoice must be paid within thirty days",
    "Rain is expected in the north tomorrow",
    "The compiler reports an unused variable",
    "Our cat prefers the blue cushion",
    "Bake the bread for forty minutes",
    "The train to Lyon leaves at noon",
    "She plays the violin in an orchestra",
    "Restart the server after changing the port",
    "Tomatoes need a lot of sun",
    "The reset link expires after an hour",
    "The bridge was built in 1904",
    "Chess is a game for two players",
)

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
    except Exception as error:  # somebody else's code, perhaps: reported, never raised into an answer
        return list(scored), embedder_failed(error)
    where = where_of(request)
    candidates = {_key(one.found): one for one in scored}
    cosines: dict[Key, float] = {}
    for reader in circumstances.readers:
        if reader.vector_state().model != embedder.model:
            continue
        for found in reader.nearest(vector, where, limit=CANDIDATES):
            if found.rank > typical and _key(found) not in candidates:
                candidates[_key(found)] = score_of(found)
        own = reader.vectors([id for space, id in candidates if space == reader.space])
        values = vectors.cosines(vector, list(own.values()))
        cosines |= {(reader.space, id): cosine for id, cosine in zip(own, values, strict=True)}
    covered = {key: _coverage(floor, one.found) for key, one in candidates.items()}
    best = max(candidates, key=lambda key: candidates[key].why[MATCH], default=None)
    # Where the best match covers a third of the query, the words have found only a third of what was asked for.
    top = candidates[best].why[MATCH] if best is not None else 0.0
    share = covered[best] / top if best is not None and top else 0.0
    joined = []
    for key, one in candidates.items():
        cosine = cosines.get(key, 0.0)
        words = covered[key] * (1 + share * one.why[MATCH]) / 2
        parts = joint_match(words, likeness(cosine, typical), circumstances.settings)
        why = one.why | {MATCH: sum(parts.values())}
        joined.append(Scored(one.found, prod(why.values()), why, parts, likeness(cosine, unrelated)))
    return [one for one in joined if one.score > 0], None


def _coverage(floor: Floor, found: Found) -> float:
    return floor.evidence(held_by(found.prepared, floor.asked), tokens_of(found.prepared)).coverage


def joint_match(words: float, likeness: float, settings: Settings) -> dict[str, float]:
    """The two summands of `match`, both from 0 to 1 before they are weighed."""
    whole = settings.text_weight + settings.vector_weight
    return {"words": settings.text_weight / whole * words, "vectors": settings.vector_weight / whole * likeness}


def likeness(cosine: float, unrelated: float) -> float:
    """A cosine as a share: 0 for texts that have nothing to do with each other, 1 for the same."""
    return max(0.0, (cosine - unrelated) / (1 - unrelated))


_OF_EMBEDDER = "unrelated"  # an attribute of an embedder that knows its own


def unrelated_cosine(embedder: Embedder) -> float:
    """A cosine up to here is no evidence: hardly any two texts about different things come as near in this model."""
    known = getattr(embedder, _OF_EMBEDDER, None)
    return float(known) if known is not None else _measured(embedder.embed)[1]


def typical_cosine(embedder: Embedder) -> float:
    """The mean cosine of two texts about different things. What is above it tells which of two memories is nearer."""
    known = getattr(embedder, _OF_EMBEDDER, None)
    return _TYPICAL_SHARE * float(known) if known is not None else _measured(embedder.embed)[0]


@lru_cache(maxsize=8)
def _measured(embed: Callable[[Sequence[str]], Any]) -> tuple[float, float]:
    """The same by a dozen sentences that have nothing to do with each other: the mean, and three deviations more."""
    packed = vectors.pack(embed(_DIFFERENT))
    found = [cosine for at, own in enumerate(packed) for cosine in vectors.cosines(own, packed[at + 1 :])]
    mean = max(0.0, fmean(found))
    return min(MOST_UNRELATED, mean), min(MOST_UNRELATED, mean + 3 * pstdev(found))


def _key(found: Found) -> Key:
    return found.memory.space, found.memory.id


MODEL = "wordllama"
MOST_CHARS = 2_000  # of a text; the rest changes little

_WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
_TOKENIZER = Path("tokenizers", "l2_supercat_tokenizer_config.json")


class WordLlama:
    """An Embedder that runs in this process, without a network. Raises SettingsError if the extra is not installed."""

    model = MODEL
    unrelated = 0.3  # hardly a text about something else comes as near as that

    def __init__(self) -> None:
        package = find_spec("wordllama")
        folders = [Path(place) for place in (package.submodule_search_locations or ())] if package else []
        whole = [folder for folder in folders if (folder / _WEIGHTS).is_file() and (folder / _TOKENIZER).is_file()]
        if not whole:
            raise SettingsError("Vectors need the package wordllama 0.4 with its weights.", hint=INSTALL)
        self._folder = whole[0]

    def embed(self, texts: Sequence[str]) -> Any:
        """One row of 256 numbers for each text; zeros for a text without words."""
        import numpy as np

        weights, tokenizer = self._model
        # One by one: a batch starts threads, after which a program cannot safely fork.
        ids = [tokenizer.encode(text[:MOST_CHARS], add_special_tokens=False).ids for text in texts]
        means = [
            weights[pieces].mean(axis=0, dtype=np.float32) if pieces else np.zeros(weights.shape[1]) for pieces in ids
        ]
        return np.array(means)

    @cached_property
    def _model(self) -> tuple[Any, Any]:
        try:
            from safetensors.numpy import load_file
            from tokenizers import Tokenizer
        except ImportError as error:
            raise SettingsError(f"Vectors need the package {error.name}.", hint=INSTALL) from None
        (weights,) = load_file(self._folder / _WEIGHTS).values()
        return weights, Tokenizer.from_file(str(self._folder / _TOKENIZER))
