"""Recall over conversations: question → candidates → features → score → hits, by message or by session.

The read path of scope `sessions`. A message is short, leans on the messages around it, and answers in other words than
the question. So it is judged by its own words, its neighbours and its session, by who says it, and by whether it looks
like an answer. Only messages that hold a word of the question, or are next to one that does, are candidates.

`recall_messages` is the door. `question.py` reads the question (words, times, kind of answer) with the tables of
`english.py`; `features.py` describes the candidates, and `meaning.py` compares the best by vectors; `weights.py` has
the weights, for talk between people and with an assistant. Rule: the score of a message, and that of a session, is a
weighted SUM of named features; `hit.why` and `hit.parts` show the summands. Packed sessions are searched on request
(`packed.py`).
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from heapq import nlargest
from math import inf
from operator import mul

from msgspec import Struct
from msgspec.structs import asdict

from kept import bm25, text
from kept.model import Hit, Memory, Message, Recalled, Source
from kept.ports import ALWAYS, Deadline, FoundMessage, Period, Reader, Statistics, TooLate
from kept.recall import Circumstances, Request
from kept.recall.candidates import affordable
from kept.recall.messages.features import (
    NEIGHBOURS,
    SHORT_WORDS,
    Candidate,
    candidate,
    describe,
    session_matches,
)
from kept.recall.messages.meaning import compare_meanings
from kept.recall.messages.packed import WithPacked, prepared
from kept.recall.messages.question import Question, read_question
from kept.recall.messages.weights import WeightTable, table_for

CANDIDATES = 150
DATED = 50  # more of them, of the time that the question names
LED_ON = 40  # of the candidates: the best, whose neighbours become candidates without holding a word of the question


def recall_messages(
    request: Request, circumstances: Circumstances, *, session: str | None = None, table: WeightTable | None = None
) -> Recalled:
    """The messages of the first space, or of one session in it, that answer a question best.

    A hit has the form of a memory, so that code that reads hits can read these as well. Never raises for anything a
    question could say. `table`: these weights, whoever talks.
    """
    started = circumstances.timer()
    if not circumstances.readers:
        return Recalled()
    described = described_candidates(request, circumstances, started, session=session, table=table)
    return Recalled(
        hits=tuple(_hits(described, request, circumstances.readers[0].space)),
        words=described.question.words.all,
        degraded=described.note,
        took_ms=(circumstances.timer() - started) * 1000,
    )


class Described(Struct, frozen=True):
    """The candidates of a question with their features, before they are ranked; `note` says what could not be done."""

    question: Question
    statistics: Statistics
    candidates: list[Candidate]
    features: list[dict[str, float]]
    table: WeightTable
    note: str | None


def described_candidates(
    request: Request,
    circumstances: Circumstances,
    started: float,
    *,
    session: str | None = None,
    table: WeightTable | None = None,
) -> Described:
    """Everything that is computed before weights come in, except which candidates are compared by meaning."""
    reader = WithPacked(circumstances.readers[0]) if request.packed else circumstances.readers[0]
    seconds = inf if request.packed else circumstances.settings.recall_deadline_ms / 1000
    deadline = Deadline(circumstances.timer, started + seconds)
    period = Period(since=request.since, until=request.until)
    question = read_question(request.query, circumstances.now)
    statistics = reader.message_statistics(question.words.all)
    words = _searched(question, statistics)
    search = partial(reader.search_messages, limit=CANDIDATES, session=session, period=period, statistics=statistics)
    note = None
    try:
        found = search(words, deadline=deadline)
    except TooLate:
        found, note = search(words[:1]), "Time ran out, so messages with the rarest word replace the best ones."
    named = question.moments.period(circumstances.now) if period == ALWAYS else None
    if named is not None and len(found) == CANDIDATES and not deadline.is_over():
        known = {(one.message.session, one.message.n) for one in found}
        try:
            dated = search(words, period=named, limit=DATED, deadline=deadline)
            found += [one for one in dated if (one.message.session, one.message.n) not in known]
        except TooLate:
            note = "Time ran out, so messages of the time that was named may be missing."
    speakers = {one.message.speaker for one in found if one.message.speaker}
    asked = set(text.words(request.query))
    asked_about = {speaker for speaker in speakers if asked.intersection(text.words(speaker))}
    question = question.without({word for speaker in speakers for word in text.words(speaker)})
    match = bm25.match_of(question.words.weights, statistics)
    candidates = [candidate(one, match(prepared(one))) for one in found]
    if not deadline.is_over():
        candidates += [candidate(one, 0.0) for one in _beside(candidates, reader) if period.holds(one.message.at)]
    elif candidates and note is None:
        note = "Time ran out, so the messages next to the best ones were not searched."
    if asked_about == speakers:  # a question that names everybody names nobody
        asked_about = set()
    features = describe(candidates, question, statistics, asked_about)
    embedder = circumstances.embedder
    chosen = table or table_for([one.message.role for one in found], embedder)
    if embedder is not None and candidates and (chosen.message.meaning or chosen.message.window):
        scores = _scores(features, asdict(chosen.message))
        compare = partial(compare_meanings, request.query, weights=chosen.message, embedder=embedder)
        note = compare(candidates, features, scores, reader=reader, deadline=deadline) or note
    return Described(question, statistics, candidates, features, chosen, note)


def _searched(question: Question, statistics: Statistics) -> list[str]:
    """The words to search for: the rarest of the question, and as many of those they brought in as fit the budget."""
    asked, rows_with = question.words, statistics.rows_with
    rare, common = affordable({word: asked.weights[word] for word in asked.literal}, statistics)
    words = rare or common[:1]
    budget = sum(rows_with[word] for word in affordable(asked.weights, statistics)[0])
    spent = sum(rows_with[word] for word in words)
    for rows, word in sorted((rows_with[word], word) for word in asked.reasons if rows_with.get(word)):
        spent += rows
        if spent > budget:
            break
        words.append(word)
    return words


def _beside(candidates: Sequence[Candidate], reader: "Reader | WithPacked") -> list[FoundMessage]:
    """The short messages next to the best short ones: an answer need not repeat the words of the question."""
    short = [candidate for candidate in candidates if candidate.is_short and candidate.match > 0]
    best = [candidate.place for candidate in nlargest(LED_ON, short, key=lambda candidate: candidate.match)]
    beside = {(session, n - step) for session, n in best for step in NEIGHBOURS if n - step > 0}
    unknown = sorted(beside - {candidate.place for candidate in candidates})
    return [one for one in reader.messages_at(unknown) if one.n_words <= SHORT_WORDS]


def _hits(described: Described, request: Request, space: str) -> Iterator[Hit]:
    """The answer, best first; of equals the later message. By session, `parts` has the summands of its score."""
    candidates, features, words = described.candidates, described.features, described.question.words
    weight_of = asdict(described.table.message)
    scores = _scores(features, weight_of)
    places = [candidate.place for candidate in candidates]
    order = sorted(range(len(places)), key=lambda at: (-scores[at], places[at][0], -places[at][1]))
    parts_of: dict[str, dict[str, float]] = {}
    if request.by == "session":
        best_of: dict[str, int] = {}
        for at in order:
            best_of.setdefault(places[at][0], at)
        weight_of_session = asdict(described.table.session)
        parts_of = {
            session: {name: weight_of_session[name] * value for name, value in values.items()}
            for session, values in session_features(described, scores, order).items()
        }
        session_scores = {session: sum(parts.values()) for session, parts in parts_of.items()}
        order = [best_of[session] for session in sorted(best_of, key=lambda name: -session_scores[name])]
    for at in order[: request.limit]:
        candidate = candidates[at]
        parts = {name: weight_of[name] * value for name, value in features[at].items()}
        why = {name: part for name, part in parts.items() if part}
        yield Hit(
            memory=_as_memory(candidate.found.message, space),
            message=candidate.found.message,
            score=sum(why.values()),
            why=why,
            matched={word: words.reason(word) for word in words.all if word in candidate.words},
            parts=parts_of.get(places[at][0], {}),
        )


def session_features(
    described: Described, scores: Sequence[float], order: Sequence[int]
) -> dict[str, dict[str, float]]:
    """Of each session: the scores of its two best messages, the match of what the user says in it, and its meaning.

    `order`: the candidates, best first. More than two messages would reward those who talk long.
    """
    candidates, features = described.candidates, described.features
    matches = session_matches(candidates, described.question, described.statistics)
    found: dict[str, dict[str, float]] = {}
    for at in order:
        session = candidates[at].place[0]
        values = found.get(session)
        if values is None:
            values = found[session] = {"best": scores[at], "second": 0.0, "words": matches[session], "meaning": 0.0}
        elif not values["second"]:
            values["second"] = max(0.0, scores[at])
        if candidates[at].found.message.role == "user":
            values["meaning"] = max(values["meaning"], features[at].get("meaning", 0.0))
    return found


def _scores(features: Sequence[Mapping[str, float]], weight_of: Mapping[str, float]) -> list[float]:
    return [sum(map(mul, values.values(), map(weight_of.__getitem__, values))) for values in features]


def _as_memory(message: Message, space: str) -> Memory:
    at = message.at or datetime.fromtimestamp(0, UTC)
    return Memory(
        id=message.n,
        uid=f"{message.session}#{message.n}",
        space=space,
        content=message.content,
        fingerprint="",
        kind=message.role,
        tier="session",
        trust=message.trust,
        source=Source(origin="conversation", agent=message.speaker, session=message.session),
        created_at=at,
        updated_at=at,
    )
