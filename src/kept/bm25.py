"""BM25, exactly as SQLite's FTS5 computes it, over prepared tokens.

Noun layer, pure. Storages order their candidates by it and recall scores them by it, so that
every storage ranks alike. Rule: this is the only BM25 in the house.
"""

import math
from collections.abc import Mapping, Sequence

from kept.ports import Prepared, Statistics

K1 = 1.2
B = 0.75
SMALLEST_IDF = 1e-6  # FTS5's floor: a word that stands in most rows weighs next to nothing, but never less

COLUMNS = ("words", "tag_words", "file_words", "source_words", "kind_words")
EVEN_WEIGHTS: Mapping[str, float] = dict.fromkeys(COLUMNS, 1.0)


def idf(rows: int, rows_with: int) -> float:
    """How much a word tells, from how many rows hold it."""
    value = math.log((rows - rows_with + 0.5) / (rows_with + 0.5))
    return value if value > 0 else SMALLEST_IDF


def score(
    prepared: Prepared,
    words: Mapping[str, float] | Sequence[str],
    statistics: Statistics,
    weights: Mapping[str, float] = EVEN_WEIGHTS,
    *,
    by_tokens: bool = False,
) -> float:
    """The relevance of one memory to the words; 0.0 when it holds none of them.

    `words` may carry a weight each. `by_tokens` measures length as FTS5 does, by all tokens of all columns;
    otherwise by the words of the text, so that an identifier's parts do not make a text long.
    """
    if not statistics.rows:
        return 0.0
    length, total = (prepared.n_tokens, statistics.tokens) if by_tokens else (prepared.n_words, statistics.words)
    norm = K1 * (1 - B + B * length * statistics.rows / (total or 1))
    columns = [(weight, tokens) for name, weight in weights.items() if weight and (tokens := getattr(prepared, name))]
    asked = words.items() if isinstance(words, Mapping) else dict.fromkeys(words, 1.0).items()
    relevance = 0.0
    for word, importance in asked:
        tf = sum(weight * count for weight, tokens in columns if (count := _count(word, tokens)))
        if tf:
            rarity = idf(statistics.rows, statistics.rows_with.get(word, 0))
            relevance += importance * rarity * tf * (K1 + 1) / (tf + norm)
    return relevance


def _count(word: str, tokens: str) -> int:
    """How often the word stands among tokens joined by blanks."""
    if word not in tokens:  # most are not, and a look at the string is far cheaper than splitting it
        return 0
    return tokens.split(" ").count(word)
