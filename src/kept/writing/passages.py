"""Passages: find a text inside other texts, and put a mark in its place.

Used to erase. Word by word: case, spacing, punctuation and Markdown may differ, as they do between a message and the
memory that was made of it. Rule: a text of a word or two is only found where it stands alone, as a line or a sentence.
"""

import re
from collections.abc import Iterable
from typing import Any

from kept.model import ERASED

SHORT_WORDS, SHORT_CHARS = 3, 16  # a text below both is a short one
MANY = 500  # texts: from here on it is cheaper to look up each word than to look for each text

_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+(?!\s)[^.!?\n]+)*[.!?]*")


class Passages:
    """Texts to look for, word by word: case, spacing, punctuation and Markdown may differ."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._by_first: dict[str, set[tuple[str, ...]]] = {}
        self._alone: set[tuple[str, ...]] = set()
        for said in texts:
            words = tuple(word.casefold() for word in _WORD.findall(said))
            if words:
                self._by_first.setdefault(words[0], set()).add(words)
                if len(words) < SHORT_WORDS and len(said.strip()) < SHORT_CHARS:
                    self._alone.add(words)

    def __bool__(self) -> bool:
        return bool(self._by_first)

    def spans(self, said: str) -> list[tuple[int, int]]:
        """Where the texts stand, without overlaps, the longest first of those that begin at one word."""
        lowered = said.casefold()
        if len(self._by_first) < MANY and not any(first in lowered for first in self._by_first):
            return []
        places = [(found[0].casefold(), found.start(), found.end()) for found in _WORD.finditer(said)]
        words = [word for word, _, _ in places]
        spans: list[tuple[int, int]] = []
        at = 0
        while at < len(words):
            for wanted in sorted(self._by_first.get(words[at], ()), key=len, reverse=True):
                end = at + len(wanted)
                span = (places[at][1], places[end - 1][2]) if end <= len(words) else (0, 0)
                if tuple(words[at:end]) == wanted and (wanted not in self._alone or _stands_alone(said, span)):
                    spans.append(span)
                    at = end - 1
                    break
            at += 1
        return spans

    def erase(self, said: str) -> str:
        """The text with `[erased]` in the place of each passage."""
        for start, end in reversed(self.spans(said)):
            said = said[:start] + ERASED + said[end:]
        return said

    def erase_in(self, value: Any) -> Any:
        """The same for every string in the input of a tool call."""
        if isinstance(value, str):
            return self.erase(value)
        if isinstance(value, dict):
            return {name: self.erase_in(inner) for name, inner in value.items()}
        return [self.erase_in(inner) for inner in value] if isinstance(value, list) else value


def _stands_alone(said: str, span: tuple[int, int]) -> bool:
    """Whether a span is a line or a sentence of its own."""
    before, after = said[: span[0]].rstrip(" \t*_`\"'([-"), said[span[1] :].lstrip(" \t*_`\"')]")
    return (not before or before[-1] in ".!?;:\n") and (not after or after[0] in ".!?;\n")


def sentences(said: str) -> list[str]:
    """The sentences and lines of a text."""
    return [sentence for found in _SENTENCE.findall(said) if (sentence := found.strip())]


def count_words(said: str) -> int:
    """How many words a text has, by the same rules."""
    return len(_WORD.findall(said))
