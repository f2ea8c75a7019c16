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

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from functools import partial
from heapq import nlargest
from math import inf
from operator import mul

from msgspec import Struct
from msgspec.structs import asdict, replace

from kept import bm25, text
from kept.model import Hit, Memory, Message, Recalled, Source
from kept.ports import ALWAYS, Deadline, Embedder, FoundMessage, Period, Reader, Statistics, TooLate
from kept.recall import Circumstances, Request
from kept.recall.candidates import affordable
from kept.recall.messages.features import (
    NEIGHBOURS,
    SHORT_WORDS,
    Candidate,
    MessagePlace,
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
    """Compute everything before weights come in, except which candidates are compared by meaning."""
    reader, deadline = _reader_and_deadline(request, circumstances, started)
    period = Period(since=request.since, until=request.until)
    question = read_question(request.query, circumstances.now)
    statistics = reader.message_statistics(question.words.all)
    search = partial(reader.search_messages, session=session, period=period, statistics=statistics, deadline=deadline)
    named = question.moments.period(circumstances.now) if period == ALWAYS else None
    found, note = _matches(search, _searched(question, statistics), named, deadline)
    speakers = {one.message.speaker for one in found if one.message.speaker}
    question = question.without(set(text.words(" ".join(speakers))))
    candidates = _candidates(found, question, statistics)
    if not deadline.is_over():
        candidates += [candidate(one, 0.0) for one in _beside(candidates, reader) if period.holds(one.message.at)]
    elif candidates and note is None:
        note = "Time ran out, so the messages next to the best ones were not searched."
    features = describe(candidates, question, statistics, _asked_about(request.query, speakers))
    chosen = table or table_for([one.message.role for one in found], circumstances.embedder)
    described = Described(question, statistics, candidates, features, chosen, note)
    if circumstances.embedder is None or not candidates:
        return described
    late_note = _compare(described, request.query, circumstances.embedder, reader, deadline)
    return replace(described, note=late_note or note)


def _reader_and_deadline(
    request: Request, circumstances: Circumstances, started: float
) -> tuple[Reader | WithPacked, Deadline]:
    """Return the reader of the first space and the usual deadline; for packed sessions, theirs, and all the time."""
    reader, timer = circumstances.readers[0], circumstances.timer
    if request.packed:
        return WithPacked(reader), Deadline(timer, inf)
    return reader, Deadline(timer, started + circumstances.settings.recall_deadline_ms / 1000)


def _compare(
    described: Described, query: str, embedder: Embedder, reader: Reader | WithPacked, deadline: Deadline
) -> str | None:
    """Add the features of meaning, if they have a weight; return a note if that failed, or took too long."""
    weights = described.table.message
    if not weights.meaning and not weights.window:
        return None
    candidates, features = described.candidates, described.features
    scores = _scores(features, asdict(weights))
    return compare_meanings(
        query, candidates, features, scores, weights=weights, embedder=embedder, reader=reader, deadline=deadline
    )


def _candidates(found: Sequence[FoundMessage], question: Question, statistics: Statistics) -> list[Candidate]:
    match = bm25.match_of(question.words.weights, statistics)
    return [candidate(one, match(prepared(one))) for one in found]


Search = Callable[..., list[FoundMessage]]  # words → messages


def _matches(
    search: Search, words: Sequence[str], named: Period | None, deadline: Deadline
) -> tuple[list[FoundMessage], str | None]:
    """Return the messages that match best, more of the time that the question names, and a note if time ran out."""
    found, note = _best_matches(search, words)
    if named is None or len(found) < CANDIDATES or deadline.is_over():
        return found, note
    dated, late = _dated_matches(partial(search, period=named), words, found)
    return found + dated, late or note


def _best_matches(search: Search, words: Sequence[str]) -> tuple[list[FoundMessage], str | None]:
    """Return the messages that match best; with a note, if time ran out, the newest ones with the rarest word."""
    try:
        return search(words, limit=CANDIDATES), None
    except TooLate:
        note = "Time ran out, so messages with the rarest word replace the best ones."
        return search(words[:1], limit=CANDIDATES, deadline=None), note


def _dated_matches(
    search: Search, words: Sequence[str], found: Sequence[FoundMessage]
) -> tuple[list[FoundMessage], str | None]:
    """Return more messages, of the time that the question names, and a note if time ran out."""
    known = {(one.message.session, one.message.n) for one in found}
    try:
        dated = search(words, limit=DATED)
    except TooLate:
        return [], "Time ran out, so messages of the time that was named may be missing."
    return [one for one in dated if (one.message.session, one.message.n) not in known], None


def _asked_about(query: str, speakers: Set[str]) -> set[str]:
    """Return the speakers whom the question names. A question that names everybody names nobody."""
    asked = set(text.words(query))
    named = {speaker for speaker in speakers if asked.intersection(text.words(speaker))}
    return set() if named == speakers else named


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


def _beside(candidates: Sequence[Candidate], reader: Reader | WithPacked) -> list[FoundMessage]:
    """The short messages next to the best short ones: an answer need not repeat the words of the question."""
    short = [candidate for candidate in candidates if candidate.is_short and candidate.match > 0]
    best = [candidate.place for candidate in nlargest(LED_ON, short, key=lambda candidate: candidate.match)]
    unknown = sorted(_next_to(best) - {candidate.place for candidate in candidates})
    return [one for one in reader.messages_at(unknown) if one.n_words <= SHORT_WORDS]


def _next_to(places: Sequence[MessagePlace]) -> set[MessagePlace]:
    """Return the places of the messages whose neighbours these are."""
    return {(session, n - step) for session, n in places for step in NEIGHBOURS if n - step > 0}


def _hits(described: Described, request: Request, space: str) -> Iterator[Hit]:
    """Yield the answer, best first; of equals the later message. By session, `parts` has the summands of its score."""
    candidates, words = described.candidates, described.question.words
    weight_of = asdict(described.table.message)
    scores = _scores(described.features, weight_of)
    places = [candidate.place for candidate in candidates]
    order = sorted(range(len(places)), key=lambda at: (-scores[at], places[at][0], -places[at][1]))
    parts_of: dict[str, dict[str, float]] = {}
    if request.by == "session":
        parts_of = _session_parts(described, scores, order)
        order = _best_of_sessions(places, order, {name: sum(parts.values()) for name, parts in parts_of.items()})
    for at in order[: request.limit]:
        candidate = candidates[at]
        parts = {name: weight_of[name] * value for name, value in described.features[at].items()}
        why = {name: part for name, part in parts.items() if part}
        yield Hit(
            memory=_as_memory(candidate.found.message, space),
            message=candidate.found.message,
            score=sum(why.values()),
            why=why,
            matched={word: words.reason(word) for word in words.all if word in candidate.words},
            parts=parts_of.get(places[at][0], {}),
        )


def _session_parts(described: Described, scores: Sequence[float], order: Sequence[int]) -> dict[str, dict[str, float]]:
    """Return the summands of the score of each session."""
    weight_of = asdict(described.table.session)
    return {
        session: {name: weight_of[name] * value for name, value in values.items()}
        for session, values in session_features(described, scores, order).items()
    }


def _best_of_sessions(places: Sequence[MessagePlace], order: Sequence[int], scores: Mapping[str, float]) -> list[int]:
    """Return the best message of each session, in the order of the sessions' scores."""
    best_of: dict[str, int] = {}
    for at in order:
        best_of.setdefault(places[at][0], at)
    return [best_of[session] for session in sorted(best_of, key=lambda name: -scores[name])]


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
