"""Recall over conversations: question → candidates → features → score → hits, by message or by session.

The read path of the scope `sessions`. A message is short, leans on those around it, and answers in other words than
the question: so it is judged by its own words, by its neighbours and its session, by who says it, and by whether it
looks like an answer. Rule: the score of a message is a weighted SUM of named features (`Weights`, which are data);
`why` holds each summand, and they add up to `score`. Only what holds a word of the question, or stands beside it, is
looked at.

Old conversations, searched on request: a look at the messages that also sees those which are packed.

Packed sessions are compressed and in no index, so each is unpacked, read and let go again: about a second for 20,000
messages. Rule: whoever asks through this gets one answer over all messages, as if none had been packed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from heapq import nlargest
from math import log
from operator import mul
from typing import Literal

from msgspec import Struct
from msgspec.structs import asdict

from kept import bm25, text, vectors
from kept.model import Message, Session
from kept.ports import ALWAYS, Deadline, Embedder, FoundMessage, Messages, Period, Prepared, Reader, Statistics, TooLate
from kept.recall.candidates import affordable
from kept.recall.messages import english
from kept.recall.messages.question import Question, understand
from kept.recall.query import ASKED_FOR

CANDIDATES = 150
COMPARED = 40  # of the candidates, the best, whose meaning is compared where vectors are on
COMPARED_CHARS = 1_000  # of each of them, and of the message before it
LED_ON = 40  # of these, the best, whose neighbours are looked at although they hold no word of the question
SHORT_WORDS = 80  # a longer message stands for itself: its neighbours say nothing about it
FULL_WORDS = 40  # from here on a message is not too short to say something
LONG_WORDS = 60  # from here on it holds many words of any question by chance
REST_SHARE = 0.2  # of the score of a session: what its second message adds to the best
SESSION_DEPTH = 2  # more would reward those who talk long
_GIVING = (-1, 1, -2)  # which neighbours' match counts for a message: before, after, two_before
_TAKING = (1, -1, 2)  # hence, for which neighbours a message counts
_NO_NEIGHBOURS = (0.0, 0.0, 0.0)

_FIRST_PERSON = frozenset({"i", "my", "me", "we", "our"})
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_DIGITS = re.compile(r"\b\d+\b")


class Weights(Struct, frozen=True, kw_only=True):
    """What each feature of a message counts, when its match counts 1. A feature is 0 or more, mostly at most 1."""

    match: float = 1.0  # BM25 of its own words, as a share of the best candidate's
    before: float = 0.1  # the match of the message before it, and so on
    after: float = 0.15
    two_before: float = 0.2
    reply: float = 0.5  # the match of the question before it
    fillers: float = 0.2  # words that hold the question together
    session: float = 0.5  # the best match in its session
    session_words: float = 0.5  # how much of the question is found somewhere in its session
    speaker: float = 0.7  # said by somebody whom the question names
    role: float = 0.7  # said by the user; by the assistant, when it is asked what the assistant said
    date: float = 1.0  # said at the time that the question names
    when: float = 0.5  # says when, and that is the question
    number: float = 0.25  # says how many, and that is the question
    statement: float = 0.2  # is no question
    names: float = 0.25  # names somebody or something
    first_person: float = 0.1  # tells of the speaker
    length: float = 0.25  # is not too short to say something
    meaning: float = 0.2  # means what the question means, with the message before it; where vectors are on
    long: float = -0.35  # goes on and on: the logarithm of how many times too long it is


class MessageRequest(Struct, frozen=True, kw_only=True):
    """What is asked of the conversations. By session, each session comes once, with its best message."""

    query: str
    limit: int
    by: Literal["message", "session"] = "message"
    session: str | None = None  # within this one only
    period: Period = ALWAYS
    weights: Weights = Weights()


class MessageHit(Struct, frozen=True, kw_only=True):
    """A message that answers a question. The parts in `why` add up to `score`; `matched` is as in `Hit`."""

    message: Message
    score: float
    why: dict[str, float]
    session_score: float
    matched: dict[str, str] = {}


class RecalledMessages(Struct, frozen=True, kw_only=True):
    """The answer: hits, best first, the words that were looked for, and None or a sentence on what was cut short."""

    hits: tuple[MessageHit, ...] = ()
    words: tuple[str, ...] = ()
    degraded: str | None = None


def recall_messages(
    request: MessageRequest,
    reader: Messages,
    *,
    now: datetime,
    deadline: Deadline,
    embedder: Embedder | None = None,
) -> RecalledMessages:
    """The messages that answer a question best. Never raises for anything a question could say."""
    question = understand(request.query, now)
    statistics = reader.message_statistics(question.asked.words)
    found, note = _search(question, reader, statistics, request, deadline)
    speakers = {one.message.speaker for one in found if one.message.speaker}
    asked_about = _named(speakers, request.query)
    question = question.without({word for speaker in speakers for word in text.words(speaker)})
    relevance = bm25.scorer(question.asked.weights, statistics)
    candidates = [_candidate(one, relevance(_prepared(one))) for one in found]
    if not deadline.is_over():
        beside = _led_on(candidates, reader)
        candidates += [_candidate(one, 0.0) for one in beside if request.period.holds(one.message.at)]
    elif candidates and note is None:
        note = "time was over, so the messages beside the best ones were not looked at"
    about = asked_about if asked_about != speakers else set()  # who names everybody, names nobody
    features = describe(candidates, question, statistics, about)
    if embedder is not None and candidates and not deadline.is_over():
        note = _compare_meanings(candidates, features, request, reader, embedder) or note
    return RecalledMessages(
        hits=tuple(_hits(candidates, features, question, request)), words=question.asked.words, degraded=note
    )


def _search(
    question: Question, reader: Messages, statistics: Statistics, request: MessageRequest, deadline: Deadline
) -> tuple[list[FoundMessage], str | None]:
    """The best messages by the words that fit the budget of postings, and a note if time ran out."""
    words = _searched(question, statistics)
    search = partial(reader.search_messages, limit=CANDIDATES, session=request.session, period=request.period)
    try:
        return search(words, deadline=deadline), None
    except TooLate:
        return search(words[:1]), "time was over, so messages with the rarest word stand in for the best"


def _searched(question: Question, statistics: Statistics) -> list[str]:
    """What is searched for: the rarest words of the question, and as much of what they brought in as fits as well."""
    asked, rows_with = question.asked, statistics.rows_with
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


def _named(speakers: set[str], query: str) -> set[str]:
    asked = set(text.words(query))
    return {speaker for speaker in speakers if asked.intersection(text.words(speaker))}


Place = tuple[str, int]


class Candidate(Struct, frozen=True):
    """A message that may answer, with what all its features are made of; `relevance` is the BM25 of its own words."""

    found: FoundMessage
    place: Place
    words: frozenset[str]
    relevance: float
    is_short: bool
    is_question: bool


def _candidate(found: FoundMessage, relevance: float) -> Candidate:
    message = found.message
    return Candidate(
        found,
        (message.session, message.n),
        frozenset(found.words.split()),
        relevance,
        found.n_words <= SHORT_WORDS,
        message.content.rstrip(" \n\t)]\"'").endswith("?"),
    )


def _led_on(candidates: Sequence[Candidate], reader: Messages) -> list[FoundMessage]:
    """The short messages beside the best short ones: an answer need not repeat the words of the question."""
    short = [candidate for candidate in candidates if candidate.is_short and candidate.relevance > 0]
    best = [candidate.place for candidate in nlargest(LED_ON, short, key=lambda candidate: candidate.relevance)]
    beside = {(session, n + step) for session, n in best for step in _TAKING if n + step > 0}
    unknown = sorted(beside - {candidate.place for candidate in candidates})
    return [one for one in reader.messages_at(unknown) if one.n_words <= SHORT_WORDS]


def describe(
    candidates: Sequence[Candidate], question: Question, statistics: Statistics, asked_about: set[str]
) -> list[dict[str, float]]:
    """The features of each message, named as their weights are."""
    best = max((candidate.relevance for candidate in candidates), default=0.0) or 1.0
    match = {candidate.place: candidate.relevance / best for candidate in candidates}
    asking = {candidate.place for candidate in candidates if candidate.is_question}
    session_match, session_words = _sessions(candidates, match, question, statistics)
    fillers = _rarity_of_fillers(candidates, question)
    described = []
    for candidate in candidates:
        message, words = candidate.found.message, candidate.words
        session, n = candidate.place
        before, after, two_before = (
            [match.get((session, n + step), 0.0) for step in _GIVING] if candidate.is_short else _NO_NEIGHBOURS
        )
        described.append(
            {
                "match": match[candidate.place],
                "before": before,
                "after": after,
                "two_before": two_before,
                "reply": before if before and (session, n - 1) in asking else 0.0,
                "fillers": sum([rarity for filler, rarity in fillers if filler in words]),
                "session": session_match[session],
                "session_words": session_words[session],
                "speaker": float(message.speaker in asked_about),
                "role": float(message.role == ("assistant" if question.asks_reply else "user")),
                "date": question.moments.fit(message.at),
                "when": float(question.asks_when and _says_when(candidate)),
                "number": float(question.asks_how_many and _says_how_many(candidate)),
                "statement": float(not candidate.is_question),
                "names": min(len(set(_NAME.findall(message.content))), 3) / 3,
                "first_person": float(not _FIRST_PERSON.isdisjoint(words)),
                "length": min(candidate.found.n_words, FULL_WORDS) / FULL_WORDS,
                "long": log(max(candidate.found.n_words / LONG_WORDS, 1.0)),
            }
        )
    return described


def _compare_meanings(
    candidates: Sequence[Candidate],
    features: Sequence[dict[str, float]],
    request: MessageRequest,
    reader: Messages,
    embedder: Embedder,
) -> str | None:
    """Add to the best candidates how near they are to the question by their vectors; a note if that failed.

    Messages keep no vectors: those of a few dozen are made while somebody waits.
    """
    scores = _scores(features, asdict(request.weights))
    best = nlargest(COMPARED, range(len(candidates)), key=lambda at: scores[at])
    places = [candidates[at].place for at in best]
    before = [(session, n - 1) for session, n in places]
    said = {candidate.place: candidate.found.message.content for candidate in candidates}
    unknown = sorted(set(before) - said.keys())
    said |= {(one.message.session, one.message.n): one.message.content for one in reader.messages_at(unknown)}
    pairs = [(said.get(earlier, ""), said[place]) for earlier, place in zip(before, places, strict=True)]
    texts = [f"{earlier[:COMPARED_CHARS]} {own[:COMPARED_CHARS]}" for earlier, own in pairs]
    try:
        [asked, *meant] = vectors.pack(embedder.embed([request.query, *texts]))
    except Exception as error:  # somebody else's code, perhaps: reported, never raised into an answer
        return f"the embedder failed ({type(error).__name__}), so only words were compared"
    for at, cosine in zip(best, vectors.cosines(asked, meant), strict=True):
        features[at]["meaning"] = max(0.0, cosine)
    return None


def _sessions(
    candidates: Sequence[Candidate], match: Mapping[Place, float], question: Question, statistics: Statistics
) -> tuple[dict[str, float], dict[str, float]]:
    """Of each session: its best match, and which share of the question's own words, by rarity, it holds."""
    rarity = {
        word: question.asked.weights[word] * bm25.idf(statistics.rows, statistics.rows_with.get(word, 0))
        for word in question.asked.literal
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
    """Fillers with their share of all rarity, among the candidates: to count them in the whole index costs too much."""
    counts = {word: sum([word in candidate.words for candidate in candidates]) for word in question.fillers}
    rarity = {word: bm25.idf(2 * len(candidates), count) for word, count in counts.items() if count}
    whole = sum(rarity.values())
    return [(word, value / whole) for word, value in rarity.items()]


def _says_when(candidate: Candidate) -> bool:
    return not candidate.words.isdisjoint(english.time_words()) or _YEAR.search(candidate.found.words) is not None


def _says_how_many(candidate: Candidate) -> bool:
    return not candidate.words.isdisjoint(english.number_words()) or _DIGITS.search(candidate.found.words) is not None


def _hits(
    candidates: Sequence[Candidate],
    features: Sequence[Mapping[str, float]],
    question: Question,
    request: MessageRequest,
) -> list[MessageHit]:
    """The answer, best first; of equals the later message. Each hit knows the score of its session."""
    weights = asdict(request.weights)
    scores = _scores(features, weights)
    places = [candidate.place for candidate in candidates]
    order = sorted(range(len(places)), key=lambda at: (-scores[at], places[at][0], -places[at][1]))
    of_session: dict[str, list[int]] = {}
    for at in order:
        of_session.setdefault(places[at][0], []).append(at)
    session_scores = {
        session: sum(scores[at] * REST_SHARE**rank for rank, at in enumerate(those[:SESSION_DEPTH]))
        for session, those in of_session.items()
    }
    if request.by == "session":
        order = [of_session[session][0] for session in sorted(of_session, key=lambda name: -session_scores[name])]
    return [
        _hit(candidates[at], features[at], weights, question, session_scores[places[at][0]])
        for at in order[: request.limit]
    ]


def _scores(features: Sequence[Mapping[str, float]], weights: Mapping[str, float]) -> list[float]:
    return [sum(map(mul, values.values(), map(weights.__getitem__, values))) for values in features]


def _hit(
    candidate: Candidate,
    values: Mapping[str, float],
    weights: Mapping[str, float],
    question: Question,
    session_score: float,
) -> MessageHit:
    why = {name: weights[name] * value for name, value in values.items() if weights[name] * value}
    asked = question.asked
    return MessageHit(
        message=candidate.found.message,
        score=sum(why.values()),
        why=why,
        session_score=session_score,
        matched={word: asked.reasons.get(word, ASKED_FOR) for word in asked.words if word in candidate.words},
    )


def _prepared(found: FoundMessage) -> Prepared:
    return Prepared(found.words, "", "", "", "", found.n_words, found.n_words)


class WithPacked(Messages):
    """The messages of a space, packed or not."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._packed = [session.name for session in reader.all(Session) if session.packed_at is not None]
        self._counted: dict[tuple[str, ...], Statistics] = {}

    def session(self, name: str) -> Session | None:
        return self._reader.session(name)

    def messages(self, session: str, *, after: int = 0, limit: int | None = None) -> list[Message]:
        return self._reader.messages(session, after=after, limit=limit)

    def last_number(self, session: str) -> int:
        return self._reader.last_number(session)

    def messages_at(self, places: Sequence[tuple[str, int]]) -> list[FoundMessage]:
        unpacked = [place for place in places if place[0] not in self._packed]
        numbers = {(session, n) for session, n in places if session in self._packed}
        found = self._reader.messages_at(unpacked)
        for name in {session for session, _ in numbers}:
            said = self._reader.messages(name)
            found += [_found(message) for message in said if (name, message.n) in numbers]
        return found

    def search_messages(
        self,
        words: Sequence[str],
        *,
        limit: int,
        session: str | None = None,
        period: Period = ALWAYS,
        deadline: Deadline | None = None,
    ) -> list[FoundMessage]:
        """As of any storage, but that time is no limit: somebody has asked for more than the quick answer."""
        score = bm25.scorer(words, self.message_statistics(words))
        found = self._reader.search_messages(words, limit=limit, session=session, period=period)
        old = (one for one in self._old(session) if period.holds(one.message.at))
        scored = [(score(_prepared_packed(one)), one) for one in (*found, *old)]
        best = nlargest(limit, (entry for entry in scored if entry[0]), key=lambda entry: entry[0])
        return [one for _, one in best]

    def message_statistics(self, words: Sequence[str]) -> Statistics:
        asked = tuple(words)
        if asked not in self._counted:
            rows = n_words = 0
            rows_with = dict.fromkeys(words, 0)
            for one in self._old():
                rows, n_words = rows + 1, n_words + one.n_words
                for word in rows_with.keys() & set(one.words.split()):
                    rows_with[word] += 1
            old = Statistics(rows, n_words, n_words, rows_with)
            self._counted[asked] = self._reader.message_statistics(words) + old
        return self._counted[asked]

    def _old(self, session: str | None = None) -> Iterator[FoundMessage]:
        for name in self._packed:
            if session in (None, name):
                yield from map(_found, self._reader.messages(name))


def _found(message: Message) -> FoundMessage:
    words, n_words = text.words_and_length(message.content)
    return FoundMessage(message, " ".join(words), n_words)


def _prepared_packed(found: FoundMessage) -> Prepared:
    return Prepared(found.words, "", "", "", "", found.n_words, found.n_words)
