"""By meaning as well as by words: vectors find what was said in other words, and both make one match.

Between score and rerank, for profiles with vectors. What the words have found is joined by the memories whose vectors
point most the way of the query's; the match of each becomes a weighted sum of two shares, both from 0 to 1: of the best
BM25, and of the cosine. Rule: the two summands stand in `parts` and add up to `match`; whatever has no vector yet is
still found by its words.

The model that Kept brings along for vectors: WordLlama, a vector for each piece of a word, and a text is their mean.

Its files come with the package of that name (extra `vector`), so nothing is ever downloaded. They are read here as the
files they are: importing the package would set up logging for the whole program and load code that talks to a network.
Rule: nothing is loaded before the first text; after that a text takes some hundredths of a millisecond.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

from msgspec import Struct

from kept import vectors
from kept.errors import SettingsError
from kept.ports import Embedder, Found, Reader, Where
from kept.recall.score import MATCH, Scored
from kept.vectors import INSTALL

CANDIDATES = 50  # that vectors alone may bring in, of each space
UNRELATED = 0.25  # a cosine up to here says nothing: 49 of 50 texts about something else come as near as that

Key = tuple[str, int]


class Blend(Struct, frozen=True):
    """What words and what vectors count, each as a share of 1."""

    words: float
    vectors: float


def blend(text_weight: float, vector_weight: float) -> Blend:
    """The two weights of the settings as shares."""
    whole = text_weight + vector_weight
    return Blend(text_weight / whole, vector_weight / whole)


def join(
    scored: Sequence[Scored],
    query: str,
    embedder: Embedder,
    readers: Sequence[Reader],
    where: Where,
    score: Callable[[Found], Scored],
    shares: Blend,
) -> tuple[list[Scored], str | None]:
    """The candidates of words and of vectors with their joint match, and None; or those of words, and why only they."""
    try:
        [vector] = vectors.pack(embedder.embed([query]))
    except Exception as error:  # somebody else's code, perhaps: reported, never raised into an answer
        return list(scored), f"the embedder failed ({type(error).__name__}), so only words were compared"
    candidates = {_key(one.found): one for one in scored}
    cosines: dict[Key, float] = {}
    for reader in readers:
        if reader.vector_state().model != embedder.model:
            continue
        for found in reader.nearest(vector, where, limit=CANDIDATES):
            if found.rank > UNRELATED and _key(found) not in candidates:
                candidates[_key(found)] = score(found)
        own = reader.vectors([id for space, id in candidates if space == reader.space])
        values = vectors.cosines(vector, list(own.values()))
        cosines |= {(reader.space, id): cosine for id, cosine in zip(own, values, strict=True)}
    best = max((one.why[MATCH] for one in candidates.values()), default=0.0) or 1.0
    joined = [_joined(one, one.why[MATCH] / best, cosines.get(key, 0.0), shares) for key, one in candidates.items()]
    return [one for one in joined if one.score > 0], None


def likeness(cosine: float) -> float:
    """A cosine as a share: 0 for texts that have nothing to do with each other, 1 for the same."""
    return max(0.0, (cosine - UNRELATED) / (1 - UNRELATED))


def _joined(one: Scored, words: float, cosine: float, shares: Blend) -> Scored:
    parts = {"words": shares.words * words, "vectors": shares.vectors * likeness(cosine)}
    why = one.why | {MATCH: sum(parts.values())}
    return Scored(one.found, prod(why.values()), why, parts)


def _key(found: Found) -> Key:
    return found.memory.space, found.memory.id


MODEL = "wordllama"
MOST_CHARS = 2_000  # of a text: what it is about is said by then

_WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
_TOKENIZER = Path("tokenizers", "l2_supercat_tokenizer_config.json")


class WordLlama:
    """An Embedder without a network, in this process. Raises SettingsError when the extra is not installed."""

    model = MODEL

    def __init__(self) -> None:
        package = find_spec("wordllama")
        folders = [Path(place) for place in (package.submodule_search_locations or ())] if package else []
        whole = [folder for folder in folders if (folder / _WEIGHTS).is_file() and (folder / _TOKENIZER).is_file()]
        if not whole:
            raise SettingsError("Vectors need the package wordllama 0.4, with its weights.", hint=INSTALL)
        self._folder = whole[0]

    def embed(self, texts: Sequence[str]) -> Any:
        """One row of 256 numbers for each text; zeros for one without a word."""
        import numpy as np

        weights, tokenizer = self._model
        # One by one: a batch would start threads, which a program that forks could not do.
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
