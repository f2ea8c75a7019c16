"""The score of a memory: a product of named factors, each a pure function.

Third step of the read path. A profile (`tables.PROFILES`) says which factors count. Every number in `hit.why`:

    match                                    `bm25.match_of`; with vectors `hybrid.joint_match`
    favour feedback freshness recency use status importance
                                             `worth.MEMORY_FACTORS`: from the memory and the clock alone
    kind files                               `QUESTION_FACTORS` below: also from the question and the settings
    coverage                                 `coverage_factor` below, by `floor.py`: orders those that are considered
    rerank                                   `select.rerank`
    linked hit, link                         `select.follow`

To add a factor: write a pure function, name it in one of the two tables, name it in the profiles that use it, and let
storages choose candidates by it (`OTHERS` in storage/weights.py; without that it only orders those that were chosen).
tests/recall/test_score.py tells what is missing. Rule: a number that is not in `why` is not in the score.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import datetime
from math import prod
from pathlib import PurePosixPath

from msgspec import Struct

from kept import bm25, worth
from kept.model import Hit, Memory
from kept.ports import Found, Prepared, Ranking, Statistics
from kept.recall import Request, profile_of
from kept.recall.floor import Floor, tokens_of
from kept.recall.query import SearchWords
from kept.recall.stems import WORTHLESS
from kept.settings import Settings
from kept.tables import Profile, by_kind

MATCH = "match"  # the first factor of every profile: how well the words fit
FILES = "files"
COVERAGE = "coverage"  # how much of what the query is worth the memory covers
LEAST_COVERAGE = 0.15
SHARED_FILE = 1.5
SHARED_FOLDER = 1.2


def file_affinity(memory: Memory, files: Sequence[str]) -> float:
    """1.5 for a memory about a file at hand, 1.2 for one about its folder, else 1."""
    if not files or not memory.files:
        return 1.0
    if not set(files).isdisjoint(memory.files):
        return SHARED_FILE
    folders = {str(PurePosixPath(file).parent) for file in files} - {"."}
    return SHARED_FOLDER if any(str(PurePosixPath(file).parent) in folders for file in memory.files) else 1.0


def named_files(query: str) -> frozenset[str]:
    """Return the runs of a query as paths and names of files could stand in it, without quotes and numbers of lines."""
    runs = (run.strip("`'\"()[]{}<>,;!?").split(":")[0].rstrip(".") for run in query.split())
    return frozenset(part for run in runs for part in (run, PurePosixPath(run).name))


def _is_named(file: str, names: Set[str]) -> bool:
    """Return True if the path is among the names, or its last part, unless that could be any word."""
    name = PurePosixPath(file).name
    return file in names or (name in names and ("." in name or name != name.lower()))


def _of_files(request: Request, settings: Settings) -> worth.Factor:
    """Make the factor `files`: a file that the query names counts as one at hand, if the profile says so."""
    names = named_files(request.query) if profile_of(request, settings).reads_file_names else frozenset()

    def factor(memory: Memory, now: datetime) -> float:
        if memory.files and any(_is_named(file, names) for file in memory.files):
            return SHARED_FILE
        return file_affinity(memory, request.files)

    return factor


QUESTION_FACTORS: Mapping[str, Callable[[Request, Settings], worth.Factor]] = {
    "kind": lambda request, settings: lambda memory, now: by_kind(settings.kind_weights, memory.kind),
    FILES: _of_files,
}


class Scored(Struct, frozen=True, gc=False):
    """A candidate with its score, which is the product of `why`."""

    found: Found
    score: float
    why: dict[str, float]
    parts: dict[str, float] = {}  # the summands of the match, where it is a sum
    likeness: float = 0.0  # of its vector to the query's, from 0 to 1


def word_match(words: SearchWords, statistics: Statistics, profile: Profile) -> bm25.Match:
    """How well the words fit a memory: the factor `match`."""
    columns = [profile.columns.get(name, 0.0) for name in ("content", "tags", "files", "source", "kind")]
    return bm25.match_of(words.weights, statistics, columns, by_tokens=profile.by_tokens)


def score_of(match: bm25.Match, request: Request, settings: Settings, now: datetime) -> Callable[[Found], Scored]:
    """A function that scores one candidate after the other for the same question."""
    names = [name for name in profile_of(request, settings).factors if name not in (MATCH, COVERAGE)]
    own = {name: factor(request, settings) for name, factor in QUESTION_FACTORS.items()}
    factors = [(name, own.get(name) or worth.MEMORY_FACTORS[name]) for name in names]

    def scored(found: Found) -> Scored:
        # The storage ranked with the same `match` (`storage_ranking`); other finds come without one.
        why = {MATCH: match(found.prepared) if found.match is None else found.match}
        for name, factor in factors:
            why[name] = factor(found.traits, now)
        return Scored(found, prod(why.values()), why)

    return scored


def storage_ranking(match: bm25.Match, request: Request, settings: Settings, now: datetime) -> Ranking:
    """The same order, as far as a storage can compute it: without factors that depend on the question."""
    known = (*worth.MEMORY_FACTORS, "kind")
    factors = tuple(name for name in profile_of(request, settings).factors if name in known)
    return Ranking(match=match, factors=factors, kind_weights=settings.kind_weights, now=now)


def held_by(prepared: Prepared, words: Iterable[str]) -> list[str]:
    """Which of these words a memory holds: in what it says, or in its kind and the agent that it comes from."""
    said = f"{tokens_of(prepared)} {bm25.agent_words(prepared)} {prepared.kind_words} "
    return [word for word in words if word in said and f" {word} " in said]


def hit_of(words: SearchWords, floor: Floor, profile: Profile) -> Callable[[Scored], Hit]:
    """A function that makes a hit of a candidate, with the words that were found in it and how each came in.

    Its score counts how much of the query it covers, if the profile says so.
    """
    reasons = {word: words.reason(word) for word in words.weights if word not in WORTHLESS}

    def hit(scored: Scored) -> Hit:
        prepared, why = scored.found.prepared, scored.why
        matched = {word: reasons[word] for word in held_by(prepared, reasons)}
        is_at_hand = scored.why.get(FILES, 1.0) >= SHARED_FILE
        evidence = floor.evidence(matched, prepared, scored.likeness, is_at_hand=is_at_hand)
        if COVERAGE in profile.factors:
            why = why | {COVERAGE: coverage_factor(evidence.coverage)}
        return Hit(
            memory=scored.found.memory,
            score=prod(why.values()),
            why=why,
            matched=matched,
            parts=scored.parts,
            confidence=evidence.confidence,
        )

    return hit


def coverage_factor(coverage: float) -> float:
    """1 for a memory that covers all of what the query is worth, 0.5 for one that covers none of it."""
    return LEAST_COVERAGE + (1 - LEAST_COVERAGE) * coverage
