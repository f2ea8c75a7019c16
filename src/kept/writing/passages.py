"""Passages: find a text inside other texts, and put a mark in its place.

Used to erase. Word by word: case, spacing, punctuation and Markdown may differ, as they do between a message and the
memory that was made of it. Rule: a text of a word or two is only found where it stands alone, as a line or a sentence.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any
from unicodedata import normalize

from kept.model import ERASED
from kept.text import fingerprint, sentences
from kept.writing.secrets.rules import FUNCTION_WORDS

SHORT_WORDS, SHORT_CHARS = 3, 16  # a text below both is a short one
MANY = 500  # texts: from here on it is cheaper to look up each word than to look for each text
HEAD_WORDS = 4  # the beginning by which a buried passage is looked for
LEAST_BEGINNING = 4  # letters of a word that show it in another form
MAX_BURIED_WORDS = 400  # of a longer passage only the sentences are recognised again
SAID = "said"  # the family of sentences of erased messages: a person may say them again, a summary may not

_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
# Soft hyphens, zero-width characters and combining accents are part of the word that they stand in.
_JOINED = "\u00ad\u0300-\u036f\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff"
_HIDDEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]")
_WORD = re.compile(
    # Markup between words: a tag, an entity, an escaped line break, an encoded blank.
    r"</?[A-Za-z][^<>\n]{0,200}>|&(?:[A-Za-z]{2,8}|#\d{1,6});|\\[nrt]|%20"
    rf"|(?P<word>[{_CJK}]|[^\W_{_CJK}]+(?:[{_JOINED}]+[^\W_{_CJK}]*)*)"
)

Words = tuple[str, ...]
Place = tuple[str, int, int]  # a folded word, and where it begins and ends


def _places(said: str) -> list[Place]:
    return [(_folded(found["word"]), *found.span()) for found in _WORD.finditer(said) if found["word"]]


def _folded(said: str) -> str:
    """One form for all spellings of a word: composed, plain width, small letters, nothing invisible."""
    return (said if said.isascii() else normalize("NFKC", _HIDDEN.sub("", said))).casefold()


def _words(said: str) -> Words:
    return tuple(word for word, _, _ in _places(said))


class Traces:
    """Collect the signs that show an erased text in a question: more than its quotation word for word.

    Its words that nothing else has, the beginnings of those words, and any few of its words in a row. Small words, as
    "the" and "at", tell nothing.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        told = [_words(one) for one in texts]
        words = {word for one in told for word in one} - FUNCTION_WORDS
        self._whole = {word for word in words if len(word) >= LEAST_BEGINNING}
        self._names = words | {word[:end] for word in words for end in range(LEAST_BEGINNING, len(word))}
        self._runs = {run for one in told for run in _runs(one)}

    def __bool__(self) -> bool:
        return bool(self._names)

    def forgive(self, said: str) -> None:
        """Leave out the words of a text that stays, and their beginnings: they tell nothing of the erased one."""
        known = set(_words(said))
        self._names -= known
        self._names -= {word[:end] for word in known for end in range(LEAST_BEGINNING, len(word))}
        self._whole -= known

    def are_in(self, said: str) -> bool:
        """Return True if a text could have been taken from the erased ones. In doubt it could."""
        words = _words(said)
        if not self._names.isdisjoint(words) or not self._runs.isdisjoint(_runs(words)):
            return True
        folded = _folded(said)
        return any(word in folded for word in self._whole)


def _runs(words: Words) -> Iterator[Words]:
    return (words[at : at + HEAD_WORDS] for at in range(len(words) - HEAD_WORDS + 1))


class Passages:
    """Texts to look for, word by word: case, spacing, punctuation and Markdown may differ."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._by_first: dict[str, set[Words]] = {}
        self._alone: set[Words] = set()
        for said in texts:
            words = _words(said)
            if words:
                self._by_first.setdefault(words[0], set()).add(words)
                if len(words) < SHORT_WORDS and len(said.strip()) < SHORT_CHARS:
                    self._alone.add(words)

    def __bool__(self) -> bool:
        return bool(self._by_first)

    def __or__(self, other: "Passages") -> "Passages":
        """The texts of both."""
        if not other or not self:
            return self or other
        both = Passages(())
        for one in (self, other):
            both._alone |= one._alone
            for first, texts in one._by_first.items():
                both._by_first[first] = both._by_first.get(first, set()) | texts
        return both

    def spans(self, said: str) -> list[tuple[int, int]]:
        """Find where the texts stand, without overlaps, the longest first of those that begin at one word."""
        folded = _folded(said)
        if len(self._by_first) < MANY and not any(first in folded for first in self._by_first):
            return []
        places = _places(said)
        spans: list[tuple[int, int]] = []
        at = 0
        while at < len(places):
            end = self._end_at(said, places, at)
            if end:
                spans.append((places[at][1], places[end - 1][2]))
            at = end or at + 1
        return spans

    def _end_at(self, said: str, places: Sequence[Place], at: int) -> int:
        """Return where the longest text that begins at this word ends; 0 if none does."""
        for wanted in sorted(self._by_first.get(places[at][0], ()), key=len, reverse=True):
            end = at + len(wanted)
            if tuple(word for word, _, _ in places[at:end]) != wanted:
                continue
            if wanted not in self._alone or _stands_alone(said, (places[at][1], places[end - 1][2])):
                return end
        return 0

    def erase(self, said: str) -> str:
        """The text with `[erased]` in the place of each passage."""
        return _with_marks(said, self.spans(said))

    def erase_in(self, value: Any) -> Any:
        """The same for every string in the input of a tool call."""
        return in_strings(value, self.erase)


def in_strings(value: Any, change: Callable[[str], str]) -> Any:
    """Change every string in a JSON value, the keys of objects included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(name): in_strings(inner, change) for name, inner in value.items()}
    return [in_strings(inner, change) for inner in value] if isinstance(value, list) else value


def _with_marks(said: str, spans: Iterable[tuple[int, int]]) -> str:
    for start, end in sorted(spans, reverse=True):
        said = said[:start] + ERASED + said[end:]
    return said


# Passages that are gone: only hashes of their words are left


def buried_names(texts: Iterable[str], family: str = "") -> list[str]:
    """The names under which `Buried` recognises these texts again. Each `family` is looked up separately."""
    names = []
    for words in map(_words, texts):
        if HEAD_WORDS <= len(words) <= MAX_BURIED_WORDS:
            names += [_name(family, "head", words[:HEAD_WORDS]), _name(family, "all", words)]
        elif words:
            names.append(_name(family, "alone", words[:MAX_BURIED_WORDS]))
    return list(dict.fromkeys(names))


def _name(family: str, part: str, words: Iterable[str]) -> str:
    return fingerprint(f"{family}/{part}/{' '.join(words)}")


class Buried:
    """Passages that were erased, by the names that are left of them. `lookup` returns the names that are buried."""

    def __init__(self, lookup: Callable[[Collection[str]], set[str]], families: Iterable[str] = ("",)) -> None:
        self._lookup, self._families = lookup, tuple(families)

    def spans(self, said: str) -> list[tuple[int, int]]:
        """Find erased passages in a text, without overlaps; of fewer than four words, only whole sentences."""
        places = _places(said)
        found: list[tuple[int, int]] = []
        for family in self._families:
            found += self._long_spans(places, family)
            found += self._short_spans(said, family)
        return _apart(found)

    def _long_spans(self, places: Sequence[Place], family: str) -> Iterator[tuple[int, int]]:
        words = [word for word, _, _ in places]
        heads: dict[str, list[int]] = {}
        for at in range(len(words) - HEAD_WORDS + 1):
            heads.setdefault(_name(family, "head", words[at : at + HEAD_WORDS]), []).append(at)
        for at in sorted(at for name in self._lookup(heads) for at in heads[name]):
            longest = min(len(words) - at, MAX_BURIED_WORDS)
            ends = {_name(family, "all", words[at : at + n]): at + n for n in range(HEAD_WORDS, longest + 1)}
            yield from ((places[at][1], places[ends[name] - 1][2]) for name in self._lookup(ends))

    def _short_spans(self, said: str, family: str) -> Iterator[tuple[int, int]]:
        short = {_name(family, "alone", _words(one)): one for one in sentences(said) if _is_short(one)}
        for name in self._lookup(short):
            yield from (one.span() for one in re.finditer(re.escape(short[name]), said))

    def erase(self, said: str) -> str:
        """The text with `[erased]` in the place of each passage."""
        return _with_marks(said, self.spans(said))

    def erase_in(self, value: Any) -> Any:
        """The same for every string in a JSON value."""
        return in_strings(value, self.erase)


def _is_short(sentence: str) -> bool:
    return 0 < count_words(sentence) < HEAD_WORDS


def _apart(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join spans that overlap."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _stands_alone(said: str, span: tuple[int, int]) -> bool:
    """Whether a span is a line or a sentence of its own."""
    before, after = said[: span[0]].rstrip(" \t*_`\"'([-"), said[span[1] :].lstrip(" \t*_`\"')]")
    return (not before or before[-1] in ".!?;:\n") and (not after or after[0] in ".!?;\n")


def count_words(said: str) -> int:
    """How many words a text has, by the same rules."""
    return len(_places(said))
