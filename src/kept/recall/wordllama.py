"""The model that Kept brings along for vectors: WordLlama, a vector for each piece of a word, and a text is their mean.

Its files come with the package of that name (extra `vector`), so nothing is ever downloaded. They are read here as the
files they are: importing the package would set up logging for the whole program and load code that talks to a network.
Rule: nothing is loaded before the first text; after that a text takes some hundredths of a millisecond.
"""

from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kept.errors import SettingsError
from kept.vectors import INSTALL

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
