"""The score of a memory: a product of named factors, each a pure function.

Third step of the read path. Which factors count is said by the profile (settings.PROFILES). Rule: what is not in
`why` is not in the score.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from math import prod
from pathlib import PurePosixPath

from msgspec import Struct

from kept import bm25, worth
from kept.model import Hit, Memory
from kept.ports import Found, Statistics
from kept.recall.query import Asked
from kept.settings import Profile, by_kind

SHARED_FILE = 1.5
SHARED_FOLDER = 1.2

_COLUMNS = {
    "content": "words",
    "tags": "tag_words",
    "files": "file_words",
    "source": "source_words",
    "kind": "kind_words",
}


class Circumstances(Struct, frozen=True, kw_only=True):
    """What scoring needs to know beside the memory itself."""

    asked: Asked
    statistics: Statistics
    profile: Profile
    kind_weights: Mapping[str, float]
    files: tuple[str, ...]
    now: datetime


def score(found: Found, circumstances: Circumstances) -> Hit:
    """The hit that a candidate makes."""
    why = {name: FACTORS[name](found, circumstances) for name in circumstances.profile.factors}
    return Hit(memory=found.memory, score=prod(why.values()), why=why, matched=matched(found, circumstances.asked))


def matched(found: Found, asked: Asked) -> dict[str, str]:
    """Which words were found, and how each came to be looked for."""
    prepared = found.prepared
    held = (
        f" {prepared.words} {prepared.tag_words} {prepared.file_words} {prepared.source_words} {prepared.kind_words} "
    )
    return {word: asked.reasons.get(word, "asked for") for word in asked.words if f" {word} " in held}


def largest_factor(hits: Sequence[Hit], top_feedback: int, profile: Profile) -> float:
    """The most that everything but the match could multiply a score by, in this space."""
    most = worth.feedback_factor(top_feedback) if "feedback" in profile.factors else 1.0
    others = [prod(value for name, value in hit.why.items() if name not in ("match", "feedback")) for hit in hits]
    return most * max(others, default=1.0)


def _match(found: Found, at: Circumstances) -> float:
    weights = {_COLUMNS[name]: weight for name, weight in at.profile.columns.items()}
    return bm25.score(found.prepared, at.asked.weights, at.statistics, weights, by_tokens=at.profile.by_tokens)


def _kind(found: Found, at: Circumstances) -> float:
    return by_kind(at.kind_weights, found.memory.kind)


def _files(found: Found, at: Circumstances) -> float:
    return file_affinity(found.memory, at.files)


def file_affinity(memory: Memory, files: Sequence[str]) -> float:
    """1.5 for a memory about a file at hand, 1.2 for one about its folder, else 1."""
    if not files or not memory.files:
        return 1.0
    if not set(files).isdisjoint(memory.files):
        return SHARED_FILE
    folders = {str(PurePosixPath(file).parent) for file in files} - {"."}
    return SHARED_FOLDER if any(str(PurePosixPath(file).parent) in folders for file in memory.files) else 1.0


FACTORS: Mapping[str, Callable[[Found, Circumstances], float]] = {
    "match": _match,
    "feedback": lambda found, at: worth.feedback_factor(found.memory.feedback),
    "recency": lambda found, at: worth.recency_factor(found.memory, at.now),
    "kind": _kind,
    "use": lambda found, at: worth.use_factor(found.memory.use_count),
    "files": _files,
    "status": lambda found, at: worth.STATUS_FACTOR[found.memory.status],
    "importance": lambda found, at: worth.importance_factor(found.memory.importance),
}
