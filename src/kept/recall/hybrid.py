"""Match by meaning as well as by words, for profiles with vectors.

Between score and rerank. Memories whose vectors are nearest to the query's join the candidates of the words, and
`match` becomes a weighted sum of two shares from 0 to 1: of the best BM25, and of the cosine. Rule: the two summands
are in `hit.parts` and add up to `match`; a memory without a vector is still found by its words.

`WordLlama` is the model that Kept brings along: one vector for each piece of a word, and a text is their mean. Its
files come with the package wordllama (extra `vector`), so nothing is ever downloaded. They are read directly, because
importing that package sets up logging for the whole program and loads code that talks to a network. Nothing is loaded
before the first text; after that a text takes some hundredths of a millisecond.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

from kept import vectors
from kept.errors import SettingsError
from kept.ports import Embedder, Found
from kept.recall import Circumstances, Request, embedder_failed, where_of
from kept.recall.score import MATCH, Scored
from kept.settings import Settings
from kept.vectors import INSTALL

CANDIDATES = 50  # of each space, that vectors alone may bring in
UNRELATED = 0.25  # a cosine up to here says nothing: 49 of 50 texts about something else come as near as that

Key = tuple[str, int]


def join(
    scored: Sequence[Scored],
    score_of: Callable[[Found], Scored],
    request: Request,
    circumstances: Circumstances,
    embedder: Embedder,
) -> tuple[list[Scored], str | None]:
    """The candidates of words and vectors with their joint match, and None; or those of words, and a sentence why."""
    try:
        [vector] = vectors.pack(embedder.embed([request.query]))
    except Exception as error:  # somebody else's code, perhaps: reported, never raised into an answer
        return list(scored), embedder_failed(error)
    where = where_of(request)
    candidates = {_key(one.found): one for one in scored}
    cosines: dict[Key, float] = {}
    for reader in circumstances.readers:
        if reader.vector_state().model != embedder.model:
            continue
        for found in reader.nearest(vector, where, limit=CANDIDATES):
            if found.rank > UNRELATED and _key(found) not in candidates:
                candidates[_key(found)] = score_of(found)
        own = reader.vectors([id for space, id in candidates if space == reader.space])
        values = vectors.cosines(vector, list(own.values()))
        cosines |= {(reader.space, id): cosine for id, cosine in zip(own, values, strict=True)}
    best = max((one.why[MATCH] for one in candidates.values()), default=0.0) or 1.0
    joined = []
    for key, one in candidates.items():
        parts = joint_match(one.why[MATCH] / best, cosines.get(key, 0.0), circumstances.settings)
        why = one.why | {MATCH: sum(parts.values())}
        joined.append(Scored(one.found, prod(why.values()), why, parts))
    return [one for one in joined if one.score > 0], None


def joint_match(words: float, cosine: float, settings: Settings) -> dict[str, float]:
    """The two summands of `match`; `words` is the BM25 as a share of the best candidate's."""
    whole = settings.text_weight + settings.vector_weight
    return {
        "words": settings.text_weight / whole * words,
        "vectors": settings.vector_weight / whole * likeness(cosine),
    }


def likeness(cosine: float) -> float:
    """A cosine as a share: 0 for texts that have nothing to do with each other, 1 for the same."""
    return max(0.0, (cosine - UNRELATED) / (1 - UNRELATED))


def _key(found: Found) -> Key:
    return found.memory.space, found.memory.id


MODEL = "wordllama"
MOST_CHARS = 2_000  # of a text; the rest changes little

_WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
_TOKENIZER = Path("tokenizers", "l2_supercat_tokenizer_config.json")


class WordLlama:
    """An Embedder that runs in this process, without a network. Raises SettingsError if the extra is not installed."""

    model = MODEL

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
