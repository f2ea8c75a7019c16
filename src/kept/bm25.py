"""BM25 over prepared tokens: exactly as SQLite's FTS5 computes it, or in a form that suits small spaces better.

Noun layer, pure. Storages order candidates by it and recall scores them by it (the factor `match`), so every storage
ranks alike. Rule: this is the only BM25 in the package.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from kept.ports import BY_MATCH, Prepared, Statistics

K1 = 1.2
B = 0.75
SMALLEST_IDF = 1e-6  # FTS5's floor, for a word that most rows hold

PERSON = "user"  # in place of the name of an agent
COLUMNS = ("words", "tag_words", "file_words", "source_words", "kind_words")

Match = Callable[[Prepared], float]


def idf(rows: int, rows_with: int) -> float:
    """How much a word tells, by the number of rows that hold it."""
    value = math.log((rows - rows_with + 0.5) / (rows_with + 0.5))
    return value if value > 0 else SMALLEST_IDF


def small_idf(rows: int, rows_with: int) -> float:
    """The same, but never nothing: among five memories, a word that three of them hold still tells something."""
    return math.log1p((rows - rows_with + 0.5) / (rows_with + 0.5))


def match_of(
    words: Mapping[str, float] | Sequence[str],
    statistics: Statistics,
    columns: Sequence[float] = BY_MATCH.columns,
    *,
    by_tokens: bool = False,
) -> Match:
    """A function that says how well a memory matches the words: 0.0 if it holds none of them.

    `words` may have weights; `columns` are the weights of COLUMNS. With `by_tokens`, as in FTS5, length is counted in
    all tokens of all columns, and a word that half of the rows hold counts for nothing. Without it, length is counted
    in the words of the text, so that the parts of an identifier do not make it long, and every word counts.
    """
    asked = words if isinstance(words, Mapping) else dict.fromkeys(words, 1.0)
    rows, total = statistics.rows, statistics.tokens if by_tokens else statistics.words
    rarity = idf if by_tokens else small_idf
    gains = [
        (word, f" {word} ", f" {word} {word} ", weight * rarity(rows, statistics.rows_with.get(word, 0)) * (K1 + 1))
        for word, weight in asked.items()
    ]
    shortest, a_word = K1 * (1 - B), K1 * B * rows / (total or 1)
    in_text, *in_others = columns

    def match(prepared: Prepared) -> float:
        text = f" {prepared.words} "
        others = (prepared.tag_words, prepared.file_words, agent_words(prepared), prepared.kind_words)
        beside_text = " ".join(others)
        norm = shortest + a_word * (prepared.n_tokens if by_tokens else prepared.n_words)
        total_gain = 0.0
        for word, alone, twice, gain in gains:
            # Most words are in neither, and `in` tells that faster than counting. Few stand twice in a row.
            tf = 0.0
            if word in text:
                tf = in_text * (_spaced(text) if twice in text else text).count(alone)
            if word in beside_text:
                tf += sum(weight * _spaced(other).count(alone) for weight, other in zip(in_others, others, strict=True))
            if tf:
                total_gain += gain * tf / (tf + norm)
        return total_gain

    return match


def agent_words(prepared: Prepared) -> str:
    """Return the name of the agent in a memory's source, without the origin before it, and "" for a person's.

    Neither is visible: "import" would match everything that was imported, "user" everything that a person wrote.
    """
    name = prepared.source_words.partition(" ")[2]
    return "" if name == PERSON else name


def _spaced(tokens: str) -> str:
    """The tokens with two spaces between them, so that each can be counted with a space on both sides.

    Three times as fast as splitting them into a list.
    """
    return f" {tokens.replace(' ', '  ')} "
