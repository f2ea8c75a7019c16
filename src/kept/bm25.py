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
    words: Sequence[str],
    statistics: Statistics,
    weights: Mapping[str, float] = EVEN_WEIGHTS,
) -> float:
    """The relevance of one memory to the words; 0.0 when it holds none of them."""
    if not statistics.rows:
        return 0.0
    average = statistics.words / statistics.rows or 1.0
    norm = K1 * (1 - B + B * prepared.n_words / average)
    columns = [(weights.get(name, 0.0), getattr(prepared, name).split(" ")) for name in COLUMNS]
    total = 0.0
    for word in dict.fromkeys(words):
        tf = sum(weight * tokens.count(word) for weight, tokens in columns if weight)
        if tf:
            total += idf(statistics.rows, statistics.rows_with.get(word, 0)) * tf * (K1 + 1) / (tf + norm)
    return total
