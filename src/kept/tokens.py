"""Estimate how many tokens a language model makes of a text, without a tokenizer's megabytes of vocabulary.

Used wherever a budget is kept (briefings, sessions). A real tokenizer can be plugged in instead: a TokenCounter is any
`Callable[[str], int]`.
Rule: better a little too high, because a budget is a promise. The weights follow OpenAI's cl100k_base, which of the
common vocabularies takes the most tokens for German and Chinese; o200k_base takes a fifth and a third less there.
"""

import re
from functools import lru_cache
from math import ceil

# What a byte-pair vocabulary usually takes as one token: a word of up to ten letters (or a hump of camel case, or four
# capitals), three digits and the blank before them, four punctuation marks, a line break with its indentation.
_PIECE = re.compile(r"[A-Z]{2,4}(?![a-z])|[A-Za-z][a-z]{0,9}| (?=[0-9])|[0-9]{1,3}|[!-/:-@\[-`{-~]{1,4}|\s{2,}|\n")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")

# Vocabularies are made of English: a German word takes two tokens on average. Its commonest words, a third of all,
# each pay for the longer words around them.
_GERMAN = frozenset(
    "der die das und nicht ist ein eine einen einem einer mit auf von wird werden wurde wir ich sie zu zur zum im dem "
    "den des sich auch als aus bei nach wenn oder kann keine nur noch aber wie sind hat haben dass durch vor ihre "
    "Der Die Das Und Nicht Ist Ein Eine Mit Auf Von Wird Wir Ich Sie Zu Zur Zum Im Bei Nach Wenn Aber Wie".split()
)
_GERMAN_EXTRA = 1.2

_WEIGHTS = (  # first code point after the block, tokens a character
    (0xC0, 1.0),  # signs of Latin-1
    (0x250, 2.0),  # Latin letters with accents: they cut their word in two
    (0x370, 1.0),
    (0x400, 1.1),  # Greek
    (0x530, 0.5),  # Cyrillic
    (0x600, 1.2),  # Hebrew, Armenian
    (0x780, 0.9),  # Arabic
    (0x980, 1.3),  # Devanagari
    (0xE00, 1.9),  # other scripts of India
    (0xE80, 1.0),  # Thai
    (0x1E00, 2.1),
    (0x2600, 1.1),  # Vietnamese, punctuation, arrows, frames
    (0x3000, 2.0),  # symbols
    (0x3040, 1.0),  # Chinese punctuation
    (0x3100, 0.95),  # kana
    (0xA000, 1.1),  # Chinese
    (0xAC00, 2.5),
    (0xD7B0, 1.15),  # Korean
    (0xF900, 3.0),  # surrogates and private use
    (0xFF00, 2.0),
    (0x10000, 1.0),  # full width
    (0x110000, 3.0),  # emoji and rare characters
)


def estimate(text: str) -> int:
    """About how many tokens the text takes; 0 only for the empty text.

    Within 15 % of cl100k_base on English, code, German and Chinese, and not more than 10 % below it or o200k_base.
    """
    if not text:
        return 0
    pieces = _PIECE.findall(text)
    tokens = len(pieces) + _GERMAN_EXTRA * sum(map(_GERMAN.__contains__, pieces))
    if not text.isascii():
        tokens += sum(map(_weight, _NOT_ASCII.findall(text)))
    return max(1, ceil(tokens))


@lru_cache(maxsize=4096)
def _weight(character: str) -> float:
    return next(weight for end, weight in _WEIGHTS if ord(character) < end)
