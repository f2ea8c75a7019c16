"""Find the words that announce a secret: `password`, `API_KEY`, `Kennwort`, `--token`.

A cue may stand alone or inside an identifier, but it counts only if the identifier still names the secret
(`DB_PASSWORD`, not `password_policy`). What a cue announces is looked for by `secret_ties`.

Rule: of two cues in one identifier or side by side, the last one counts (`auth.token`, `secret key`), so that a value
belongs to the nearest cue.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import chain, pairwise
from typing import NamedTuple

from kept.writing.secret_values import compiled, is_opaque
from kept.writing.secret_view import fold
from kept.writing.secrets_rules import (
    BARE_KEYS,
    BENIGN_SUFFIXES,
    CUES,
    KEY_QUALIFIERS,
    NEUTRAL_SUFFIXES,
    OTHER_KEYS,
    OTHER_TOKENS,
)

IDENTIFIER = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"


class Cue(NamedTuple):
    """A word that announces a secret, with the identifier it stands in."""

    family: str
    start: int  # of the identifier
    end: int
    name: str  # the identifier
    is_weak: bool  # the identifier may name something else
    next_start: int  # of the next cue


class _Word(NamedTuple):
    family: str
    is_bound: bool  # counts only at the start of a word or hump


def find_cues(text: str, small: str) -> Iterator[Cue]:
    """The cues of the folded text, in order."""
    matches = _cue_words(small.isascii()).finditer(small)
    for match, follower in pairwise(chain(matches, [None])):
        if match is None:
            return
        if follower and _are_adjacent(small, match.end(), follower):
            continue
        cue = _cue(text, match, follower.start() if follower else len(text))
        if cue and cue.next_start >= cue.end:
            yield cue


def _are_adjacent(small: str, end: int, follower: re.Match[str]) -> bool:
    """`secret key`, but not `password password1`: there the second is the value of the first."""
    return (
        follower.start() - end < 2
        and small[end : follower.start()] in ("", " ", "\n")
        and not small[follower.end() : follower.end() + 1].isalnum()
    )


def _cue(text: str, match: re.Match[str], next_start: int) -> Cue | None:
    """The cue with its identifier, or None if the identifier names something else."""
    start, end = match.span()
    family, is_bound = _words()[match.group()]
    before = text[max(0, start - 48) : start]
    left = before[len(before.rstrip(IDENTIFIER)) :]
    if is_bound and left and left[-1].isalnum() and not (text[start].isupper() and left[-1].islower()):
        return None
    if is_bound and len(left) >= 8 and is_opaque(left):
        return None  # two letters of an id
    suffix, is_weak = _suffix(text, end, is_bound)
    if suffix is None:
        return None
    if family == "token" and any(hump.lower() in OTHER_TOKENS for hump in _humps(left)[-1:]):
        return None
    if match.group() in BARE_KEYS:
        near = [word.lower() for word in _humps(text[max(0, start - 32) : start])[-3:]]
        if near and near[-1] in OTHER_KEYS:
            return None
        is_weak = is_weak or not any(word in KEY_QUALIFIERS for word in near)
    return Cue(family, start - len(left), end + len(suffix), left + text[start:end] + suffix, is_weak, next_start)


def _suffix(text: str, end: int, is_bound: bool) -> tuple[str | None, bool]:
    """What follows the cue in its identifier, and whether that may change its meaning; None if it does."""
    if not text[end : end + 1].isalnum() and text[end : end + 1] not in ("_", ".", "-"):
        return "", False
    suffix = compiled(r"(?:[_.\-]?[A-Za-z0-9]{1,30}+){0,5}+").match(text, end).group()  # type: ignore[union-attr]
    if not suffix:
        return "", False
    if suffix[0].isalpha() and text[end - 1].isalpha() and suffix[0].islower() == text[end - 1].islower():
        is_plural = suffix[0] in "sS" and not suffix[1:2].isalpha()
        if not is_plural:
            return None, False
    parts = [part.lower() for part in _humps(suffix)]
    if any(part in BENIGN_SUFFIXES for part in parts):
        return None, False
    if all(part in NEUTRAL_SUFFIXES or part.isdigit() for part in parts):
        return suffix, False
    if "." in suffix:
        return suffix[: suffix.index(".")], False
    return (None, False) if "-" in suffix or is_bound else (suffix, True)


def _humps(identifier: str) -> list[str]:
    return compiled(r"[A-Z]++(?![a-z])|[A-Z]?[a-z]++|[0-9]++").findall(identifier)


@cache
def _words() -> dict[str, _Word]:
    """Every cue as it appears in a view."""
    words = {}
    for family, listed in CUES.items():
        for entry in fold(listed).split():
            for blank in " -._" if "~" in entry else "~":
                words[entry.strip("^$").replace("~", blank)] = _Word(family, entry[0] == "^")
    return words


@cache
def _cue_words(is_ascii: bool) -> re.Pattern[str]:
    """All cues as one pattern, shaped as a tree so that most positions fail at their first or second letter."""
    closed = {entry.strip("^$") for listed in CUES.values() for entry in fold(listed).split() if entry[-1] == "$"}
    words = [word for word in _words() if word.isascii() or not is_ascii]
    return re.compile(_tree({word: word in closed or re.sub("[ ._-]", "~", word) in closed for word in words}))


def _tree(words: dict[str, bool]) -> str:
    """A pattern for these words, longest first; a word that is marked must not be followed by a letter."""
    branches: dict[str, dict[str, bool]] = {}
    for word, is_closed in words.items():
        if word:
            branches.setdefault(word[0], {})[word[1:]] = is_closed
    sources = [re.escape(first) + _tree(rest) for first, rest in branches.items()]
    if "" in words:
        sources.append("(?![a-z])" if words[""] else "")
    return sources[0] if len(sources) == 1 else f"(?:{'|'.join(sources)})"
