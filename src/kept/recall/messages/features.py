"""The features of each candidate: how well it matches, its neighbours, its session, who says it, what it looks like.

Between search and score. Rule: a feature is 0 or more, mostly at most 1, and has the name of its weight. A new one
needs a weight in `weights.py`; `bench/learn.py` says what it is worth.
"""

import re
from collections.abc import Mapping, Sequence, Set
from math import log

from msgspec import Struct
from msgspec.structs import replace

from kept import bm25
from kept.ports import FoundMessage, Prepared, Statistics
from kept.recall.messages.question import Question
from kept.recall.messages.stems import NUMBER_WORDS, TIME_WORDS

SHORT_WORDS = 80  # the neighbours of a longer message say nothing about it
FULL_WORDS = 40  # a message of that length is not too short to say something
LONG_WORDS = 60  # a longer one holds many words of any question by chance
NEIGHBOURS = (-1, 1, -2)  # whose match counts for a message: before, after, two_before
_NO_NEIGHBOURS = (0.0, 0.0, 0.0)

_FIRST_PERSON = frozenset({"i", "my", "me", "we", "our"})
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_DIGITS = re.compile(r"\b\d+\b")

MessagePlace = tuple[str, int]  # session, number


class Candidate(Struct, frozen=True):
    """A message that may answer, with what its features are computed from; `match` is the BM25 of its own words."""

    found: FoundMessage
    place: MessagePlace
    words: frozenset[str]
    match: float
    is_short: bool
    is_question: bool


def candidate(found: FoundMessage, match: float) -> Candidate:
    """A message with what its features are computed from."""
    message = found.message
    return Candidate(
        found,
        (message.session, message.n),
        frozenset(found.words.split()),
        match,
        found.n_words <= SHORT_WORDS,
        message.content.rstrip(" \n\t)]\"'").endswith("?"),
    )


def describe(
    candidates: Sequence[Candidate], question: Question, statistics: Statistics, asked_about: set[str]
) -> list[dict[str, float]]:
    """The features of each message, by the names of their weights."""
    best = max((candidate.match for candidate in candidates), default=0.0) or 1.0
    match_share = {candidate.place: candidate.match / best for candidate in candidates}
    asking = {candidate.place for candidate in candidates if candidate.is_question}
    session_match, session_words = _sessions(candidates, match_share, question, statistics)
    fillers = _rarity_of_fillers(candidates, question)
    context = _Context(question, match_share, asking, session_match, session_words, fillers, asked_about)
    return [_features(candidate, context) for candidate in candidates]


class _Context(Struct, frozen=True):
    """Everything about the question and the other candidates that the features of one depend on."""

    question: Question
    match_share: Mapping[MessagePlace, float]
    asking: Set[MessagePlace]
    session_match: Mapping[str, float]
    session_words: Mapping[str, float]
    fillers: Sequence[tuple[str, float]]
    asked_about: Set[str | None]


def _features(candidate: Candidate, context: _Context) -> dict[str, float]:
    message, words, question = candidate.found.message, candidate.words, context.question
    session, n = candidate.place
    share = context.match_share
    before, after, two_before = (
        [share.get((session, n + step), 0.0) for step in NEIGHBOURS] if candidate.is_short else _NO_NEIGHBOURS
    )
    return {
        "match": share[candidate.place],
        "before": before,
        "after": after,
        "two_before": two_before,
        "reply": before if before and (session, n - 1) in context.asking else 0.0,
        "fillers": sum([rarity for filler, rarity in context.fillers if filler in words]),
        "session": context.session_match[session],
        "session_words": context.session_words[session],
        "speaker": float(message.speaker in context.asked_about),
        "role": float(message.role == question.role_asked),
        "date": question.moments.fit(message.at),
        "when": float(question.asks_when and _says(candidate, TIME_WORDS, _YEAR)),
        "number": float(question.asks_how_many and _says(candidate, NUMBER_WORDS, _DIGITS)),
        "statement": float(not candidate.is_question),
        "names": min(len(set(_NAME.findall(message.content))), 3) / 3,
        "first_person": float(not _FIRST_PERSON.isdisjoint(words)),
        "length": min(candidate.found.n_words, FULL_WORDS) / FULL_WORDS,
        "long": log(max(candidate.found.n_words / LONG_WORDS, 1.0)),
    }


def _sessions(
    candidates: Sequence[Candidate], match: Mapping[MessagePlace, float], question: Question, statistics: Statistics
) -> tuple[dict[str, float], dict[str, float]]:
    """For each session: its best match, and the share of the question's own words, by rarity, that it holds."""
    rarity = {
        word: question.words.weights[word] * bm25.idf(statistics.rows, statistics.rows_with.get(word, 0))
        for word in question.words.literal
    }
    whole = sum(rarity.values()) or 1.0
    best: dict[str, float] = {}
    words: dict[str, set[str]] = {}
    for candidate in candidates:
        session = candidate.place[0]
        best[session] = max(best.get(session, 0.0), match[candidate.place])
        words.setdefault(session, set()).update(candidate.words & rarity.keys())
    return best, {session: sum(rarity[word] for word in held) / whole for session, held in words.items()}


def _rarity_of_fillers(candidates: Sequence[Candidate], question: Question) -> list[tuple[str, float]]:
    """Fillers with their share of all rarity among the candidates; counting them in the whole index costs too much."""
    counts = {word: sum([word in candidate.words for candidate in candidates]) for word in question.fillers}
    rarity = {word: bm25.idf(2 * len(candidates), count) for word, count in counts.items() if count}
    whole = sum(rarity.values())
    return [(word, value / whole) for word, value in rarity.items()]


def _says(candidate: Candidate, words: frozenset[str], digits: re.Pattern[str]) -> bool:
    return not candidate.words.isdisjoint(words) or digits.search(candidate.found.words) is not None


def session_matches(candidates: Sequence[Candidate], question: Question, statistics: Statistics) -> dict[str, float]:
    """BM25 of what the user says in each session, as a share of the best session's, as far as it is a candidate."""
    said: dict[str, list[FoundMessage]] = {candidate.place[0]: [] for candidate in candidates}
    for candidate in candidates:
        if candidate.found.message.role == "user":
            said[candidate.place[0]].append(candidate.found)
    whole = {session: _as_one(found) for session, found in said.items()}
    mean = sum([one.n_words for one in whole.values()]) / (len(whole) or 1)
    # Words are as rare as they are in messages; the usual length is that of these sessions.
    of_sessions = replace(statistics, words=round(mean * statistics.rows))
    match = bm25.match_of(question.words.weights, of_sessions)
    matches = {session: match(one) for session, one in whole.items()}
    best = max(matches.values(), default=0.0) or 1.0
    return {session: value / best for session, value in matches.items()}


def _as_one(found: Sequence[FoundMessage]) -> Prepared:
    """Join messages as BM25 takes one text."""
    length = sum([one.n_words for one in found])
    return Prepared(" ".join([one.words for one in found]), "", "", "", "", length, length)
