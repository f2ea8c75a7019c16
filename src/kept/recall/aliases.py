"""Aliases: words that a query searches as well, because people say the same thing in different words.

Part of the first step of the read path. Kept brings the groups of `vocabulary.py`; a person adds lines of their own or
takes a word out (`kept alias`), and a line of their own stands in place of the default for its word. Words that are
said together (`sign in`) are found together. Rule: what `as_mapping` lists is what `expansions` searches for.
"""

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

from kept import text
from kept.model import Alias
from kept.recall.common_words import common
from kept.recall.vocabulary import GROUPS, KINDS

BEGINNING = 2  # letters


def as_mapping(own: Iterable[Alias]) -> dict[str, tuple[str, ...]]:
    """The aliases in force, as people write them: the defaults, and a person's own lines in place of theirs.

    A line that expands to nothing takes its word out, in all forms that are searched alike.
    """
    lines = {alias.word: alias.expands_to for alias in own}
    replaced = {_key(word) for word in lines}
    joined = {word: _others(word) for word in _groups() if _key(word) not in replaced} | lines
    shown = {word: tuple(other.replace("_", " ") for other in others) for word, others in joined.items() if others}
    return {word.replace("_", " "): others for word, others in shown.items()}


def is_default(word: str) -> bool:
    """Whether Kept itself brings aliases of this word, in any of its forms."""
    return bool(default_expansions(_key(word)))


def is_expanded(word: str, other: str, own: Sequence[Alias]) -> bool:
    """Whether a query for the word is settled: it searches for the other one as well, or a person took it out."""
    key = _key(word)
    lines = [alias for alias in own if _key(alias.word) == key]
    is_removed = any(not alias.expands_to for alias in lines)
    return is_removed or _key(other) in expansions((key,), own).get(key, ())


def expansions(words: Sequence[str], own: Sequence[Alias]) -> dict[str, tuple[str, ...]]:
    """Word of the query, or two that follow each other → the prepared words to look for as well."""
    own_table: dict[str, tuple[str, ...]] = {}
    for alias in own:
        key = _key(alias.word)
        own_table[key] = (*own_table.get(key, ()), *map(_key, alias.expands_to))
    found: dict[str, tuple[str, ...]] = {}
    for place, word in enumerate(words):
        for key in (word, *(f"{word} {after}" for after in words[place + 1 : place + 2])):
            others = own_table[key] if key in own_table else default_expansions(key)
            if others:
                found[key] = tuple(dict.fromkeys(others))
    return found


def searched(phrase: str) -> list[str]:
    """The prepared words by which a phrase is found: "test" alone is no "test environment", so common ones are not."""
    words = phrase.split()
    return [word for word in words if word not in common()] or words


def default_expansions(key: str) -> tuple[str, ...]:
    """The prepared words that Kept itself brings in for a prepared word."""
    forms = _forms(key[:BEGINNING]).get(key, ())
    others = dict.fromkeys(_key(other) for word in forms for other in _others(word))
    return tuple(other for other in others if other != key)


def _others(word: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(other for group in _groups()[word] for other in group if other != word))


@cache
def _groups() -> dict[str, list[tuple[str, ...]]]:
    """Word → the groups that it brings in, as people write them."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for group in "|".join(GROUPS).replace("\n", "|").split("|"):
        words = tuple(group.split())
        for word in words:
            found.setdefault(word, []).append(words)
    for line in filter(str.strip, KINDS.replace("\n", "|").split("|")):
        word, _, things = line.partition(":")
        found.setdefault(word.strip(), []).append(tuple(things.split()))
    return found


@cache
def _by_beginning() -> dict[str, list[str]]:
    """Stemming changes only the end of a word, and takes long for a whole table in a process that asks once."""
    found: dict[str, list[str]] = {}
    for word in _groups():
        found.setdefault(word.replace("_", " ")[:BEGINNING], []).append(word)
    return found


@lru_cache(maxsize=1024)
def _forms(beginning: str) -> dict[str, list[str]]:
    """Prepared word → its forms in the groups, for words that begin so."""
    found: dict[str, list[str]] = {}
    for word in _by_beginning().get(beginning, ()):
        found.setdefault(_key(word), []).append(word)
    return found


@lru_cache(maxsize=8192)
def _key(word: str) -> str:
    """The word as an index holds it; of words said together all, as they follow each other there."""
    return " ".join(token for part in word.replace("_", " ").split() for token in text.words(part)[:1])
