"""The score of a memory: a product of named factors, each a pure function.

Third step of the read path. Which factors count is said by the profile (tables.PROFILES). Rule: what is not in
`why` is not in the score.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from math import prod
from pathlib import PurePosixPath

from msgspec import Struct

from kept import bm25, worth
from kept.model import Hit, Memory
from kept.ports import Found, Ranking, Statistics
from kept.recall.query import ASKED_FOR, Asked
from kept.tables import Profile, by_kind

MATCH = "match"  # the first factor of every profile: how well the words fit
SHARED_FILE = 1.5
SHARED_FOLDER = 1.2

_COLUMNS = ("content", "tags", "files", "source", "kind")  # as profiles call the columns of `Prepared`


class Circumstances(Struct, frozen=True, kw_only=True):
    """What scoring needs to know beside the memory itself."""

    asked: Asked
    statistics: Statistics
    profile: Profile
    kind_weights: Mapping[str, float]
    files: tuple[str, ...]
    now: datetime


class Scored(Struct, frozen=True):
    """A candidate with its score, which is the product of what `why` says."""

    found: Found
    score: float
    why: dict[str, float]
    parts: dict[str, float] = {}  # what the match is the sum of, where it is one


def scorer(at: Circumstances) -> Callable[[Found], Scored]:
    """What scores one candidate after the other under the same circumstances."""
    now, relevance = at.now, _relevance(at)
    others = [(name, _factor(name, at)) for name in at.profile.factors if name != MATCH]

    def score(found: Found) -> Scored:
        why = {MATCH: relevance(found.prepared)}
        for name, factor in others:
            why[name] = factor(found.memory, now)
        return Scored(found, prod(why.values()), why)

    return score


def ranking(at: Circumstances) -> Ranking:
    """The same order, as far as a storage can tell it: all factors but the files at hand."""
    return Ranking(
        relevance=_relevance(at),
        factors=tuple(name for name in at.profile.factors if name not in (MATCH, "files")),
        kind_weights=at.kind_weights,
        now=at.now,
    )


def hit(scored: Scored, asked: Asked) -> Hit:
    """The hit that a candidate makes, with the words that were found in it."""
    found = scored.found
    words = matched(found, asked)
    return Hit(memory=found.memory, score=scored.score, why=scored.why, matched=words, parts=scored.parts)


def matched(found: Found, asked: Asked) -> dict[str, str]:
    """Which words were found, and how each came to be looked for."""
    prepared = found.prepared
    held = (
        f" {prepared.words} {prepared.tag_words} {prepared.file_words} {prepared.source_words} {prepared.kind_words} "
    )
    return {word: asked.reasons.get(word, ASKED_FOR) for word in asked.words if f" {word} " in held}


def file_affinity(memory: Memory, files: Sequence[str]) -> float:
    """1.5 for a memory about a file at hand, 1.2 for one about its folder, else 1."""
    if not files or not memory.files:
        return 1.0
    if not set(files).isdisjoint(memory.files):
        return SHARED_FILE
    folders = {str(PurePosixPath(file).parent) for file in files} - {"."}
    return SHARED_FOLDER if any(str(PurePosixPath(file).parent) in folders for file in memory.files) else 1.0


def _relevance(at: Circumstances) -> bm25.Scorer:
    return bm25.scorer(at.asked.weights, at.statistics, _columns(at.profile), by_tokens=at.profile.by_tokens)


def _factor(name: str, at: Circumstances) -> Callable[[Memory, datetime], float]:
    if name == "kind":
        return lambda memory, now: by_kind(at.kind_weights, memory.kind)
    if name == "files":
        return lambda memory, now: file_affinity(memory, at.files)
    return worth.FACTORS[name]


def _columns(profile: Profile) -> tuple[float, float, float, float, float]:
    content, tags, files, source, kind = (profile.columns.get(name, 0.0) for name in _COLUMNS)
    return content, tags, files, source, kind
