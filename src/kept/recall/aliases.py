"""Aliases: words that a query searches as well, because people say the same thing in different words.

Part of the first step of the read path. Kept brings the groups of `vocabulary.py`, stemmed in `stems.py`; a person adds
lines of their own or takes a word out (`kept alias`), and a line of their own stands in place of the default for its
word. Words that are said together (`sign in`) are found together. Rule: `expansions` searches for exactly the aliases
that `vocabulary.as_mapping` lists.
"""

from collections.abc import Sequence

from kept import text
from kept.model import Alias
from kept.recall.stems import ALIASES, COMMON


def is_default(word: str) -> bool:
    """Return True if Kept itself brings aliases of this word, in any of its forms."""
    return bool(default_expansions(text.phrase(word)))


def is_expanded(word: str, other: str, own: Sequence[Alias]) -> bool:
    """Return True if a query for the word also searches for the other one, or a person took the word out."""
    key = text.phrase(word)
    lines = [alias for alias in own if text.phrase(alias.word) == key]
    is_removed = any(not alias.expands_to for alias in lines)
    return is_removed or text.phrase(other) in expansions((key,), own).get(key, ())


def expansions(words: Sequence[str], own: Sequence[Alias]) -> dict[str, tuple[str, ...]]:
    """Map a word of the query, or two that follow each other, to the prepared words to look for as well."""
    own_table: dict[str, tuple[str, ...]] = {}
    for alias in own:
        key = text.phrase(alias.word)
        own_table[key] = (*own_table.get(key, ()), *map(text.phrase, alias.expands_to))
    found: dict[str, tuple[str, ...]] = {}
    for place, word in enumerate(words):
        for key in (word, *(f"{word} {after}" for after in words[place + 1 : place + 2])):
            others = own_table[key] if key in own_table else default_expansions(key)
            if others:
                found[key] = tuple(dict.fromkeys(others))
    return found


def searched(phrase: str) -> list[str]:
    """Return the prepared words that find a phrase, without common ones: "test" alone is no "test environment"."""
    words = phrase.split()
    return [word for word in words if word not in COMMON] or words


def default_expansions(key: str) -> tuple[str, ...]:
    """Return the prepared words that Kept itself brings in for a prepared word."""
    others = ALIASES.get(key)
    return tuple(others.split(", ")) if others else ()
