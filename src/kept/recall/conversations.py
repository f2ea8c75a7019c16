"""Recall over conversations: question → candidates → features → score → hits, by message or by session.

The read path of the scope `sessions`. A message is short, leans on those around it, and answers in other words than
the question: so it is judged by its own words, by its neighbours and its session, by who says it, and by whether it
looks like an answer. Rule: the score of a message is a weighted SUM of named features (`Weights`, which are data);
`why` holds each summand, and they add up to `score`. Only what holds a word of the question, or stands beside it, is
looked at.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from math import log
from typing import Literal

from msgspec import Struct
from msgspec.structs import asdict

from kept import bm25, text
from kept.model import Message
from kept.ports import FoundMessage, Prepared, Reader, Statistics, TooLate
from kept.recall import english
from kept.recall.candidates import affordable
from kept.recall.question import Question, understand

CANDIDATES = 300
LED_ON = 60  # of these, the best, whose neighbours are looked at although they hold no word of the question
SHORT_WORDS = 80  # a longer message stands for itself: its neighbours say nothing about it
FULL_WORDS = 40  # from here on a message is not too short to say something
LONG_WORDS = 60  # from here on it holds many words of any question by chance
REST_SHARE = 0.3  # of a session's score: what its second message adds to the best, and the third to the second
_GIVING = (-2, -1, 1)  # which neighbours' match counts for a message
_TAKING = (2, 1, -1)  # hence, for which neighbours a message counts

_FIRST_PERSON = frozenset({"i", "my", "me", "we", "our"})
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+")
_YEAR = re.compile(r"(?:19|20)\d\d")


class Weights(Struct, frozen=True, kw_only=True):
    """What each feature of a message counts, when its match counts 1. A feature is 0 or more, mostly at most 1."""

    match: float = 1.0  # BM25 of its own words, as a share of the best candidate's
    before: float = 0.2  # the match of the message before it, and so on
    after: float = 0.15
    two_before: float = 0.25
    reply: float = 0.45  # the match of the question before it
    fillers: float = 0.2  # words that hold the question together
    session: float = 0.35  # the best match in its session
    session_words: float = 0.3  # how much of the question is found somewhere in its session
    speaker: float = 0.65  # said by somebody whom the question names
    role: float = 0.6  # said by the user; by the assistant, when it is asked what the assistant said
    date: float = 1.2  # said at the time that the question names
    when: float = 0.5  # says when, and that is the question
    number: float = 0.2  # says how many, and that is the question
    statement: float = 0.18  # is no question
    names: float = 0.2  # names somebody or something
    first_person: float = 0.1  # tells of the speaker
    length: float = 0.2  # is not too short to say something
    long: float = -0.4  # goes on and on: the logarithm of how many times too long it is


class MessageRequest(Struct, frozen=True, kw_only=True):
    """What is asked of the conversations. By session, each session comes once, with its best message."""

    query: str
    limit: int
    by: Literal["message", "session"] = "message"
    session: str | None = None  # within this one only
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
    request: MessageRequest, reader: Reader, *, now: datetime, is_late: Callable[[], bool]
) -> RecalledMessages:
    """The messages that answer a question best. Never raises for anything a question could say."""
    question = understand(request.query, now)
    statistics = reader.message_statistics(question.asked.words)
    found, note = _search(question, reader, statistics, request.session, is_late)
    speakers = {found.message.speaker for found in found if found.message.speaker}
    asked_about = _named(speakers, request.query)
    question = question.without({word for speaker in speakers for word in text.words(speaker)})
    matches = _matches(found, question, statistics)
    if not is_late():
        found += _led_on(found, matches, reader)
    elif found and note is None:
        note = "time was over, so the messages beside the best ones were not looked at"
    features = describe(found, matches, question, statistics, asked_about if asked_about != speakers else set())
    hits = [_hit(one, values, request.weights, question) for one, values in zip(found, features, strict=True)]
    return RecalledMessages(
        hits=tuple(_in_order(hits, request.by)[: request.limit]), words=question.asked.words, degraded=note
    )


def _search(
    question: Question, reader: Reader, statistics: Statistics, session: str | None, is_late: Callable[[], bool]
) -> tuple[list[FoundMessage], str | None]:
    """The best messages by the words that fit the budget of postings, and a note if time ran out."""
    weights = question.asked.weights
    rare, common = affordable({word: weights[word] for word in question.asked.literal}, statistics)
    words = rare or common[:1]
    # With a budget of its own: what was not asked for itself must not crowd out what was.
    words += [word for word in affordable(weights, statistics)[0] if word not in words]
    try:
        return reader.search_messages(words, limit=CANDIDATES, session=session, is_late=is_late), None
    except TooLate:
        rarest = reader.search_messages(words[:1], limit=CANDIDATES, session=session)
        return rarest, "time was over, so messages with the rarest word stand in for the best"


def _named(speakers: set[str], query: str) -> set[str]:
    asked = set(text.words(query))
    return {speaker for speaker in speakers if asked.intersection(text.words(speaker))}


Place = tuple[str, int]


class _Match(Struct, frozen=True):
    """What a message has in common with the question: its BM25, and the words themselves."""

    score: float
    words: frozenset[str]


def _matches(found: Sequence[FoundMessage], question: Question, statistics: Statistics) -> dict[Place, _Match]:
    weights = question.asked.weights
    matches = {}
    for one in found:
        held = weights.keys() & set(one.words.split())
        asked = {word: weights[word] for word in held}
        score = bm25.score(_prepared(one), asked, statistics) if held else 0.0
        matches[_place(one)] = _Match(score, frozenset(held))
    return matches


def _led_on(found: Sequence[FoundMessage], matches: Mapping[Place, _Match], reader: Reader) -> list[FoundMessage]:
    """The short messages beside the best short ones: an answer need not repeat the words of the question."""
    short = [place for one in found if one.n_words <= SHORT_WORDS and matches[place := _place(one)].score > 0]
    best = sorted(short, key=lambda place: -matches[place].score)[:LED_ON]
    beside = {(session, n + step) for session, n in best for step in _TAKING if n + step > 0}
    return [one for one in reader.messages_at(sorted(beside - matches.keys())) if one.n_words <= SHORT_WORDS]


def describe(
    found: Sequence[FoundMessage],
    matches: Mapping[Place, _Match],
    question: Question,
    statistics: Statistics,
    asked_about: set[str],
) -> list[dict[str, float]]:
    """The features of each message, named as their weights are."""
    short = {_place(one) for one in found if one.n_words <= SHORT_WORDS}
    questions = {_place(one) for one in found if is_question(one.message.content)}
    best = max((match.score for match in matches.values()), default=0.0) or 1.0
    shares = {place: match.score / best for place, match in matches.items()}
    best_in, words_in = _sessions(matches, question, statistics)
    most = max(best_in.values(), default=0.0) or 1.0
    fillers = _filler_weights(found, question)
    top_fillers = sum(fillers.values()) or 1.0
    described = []
    for one in found:
        message, place = one.message, _place(one)
        session, n = place
        beside = {step: shares.get((session, n + step), 0.0) if place in short else 0.0 for step in _GIVING}
        held = set(one.words.split())
        described.append(
            {
                "match": shares.get(place, 0.0),
                "before": beside[-1],
                "after": beside[1],
                "two_before": beside[-2],
                "reply": beside[-1] if (session, n - 1) in questions else 0.0,
                "fillers": sum(weight for word, weight in fillers.items() if word in held) / top_fillers,
                "session": best_in.get(session, 0.0) / most,
                "session_words": words_in.get(session, 0.0),
                "speaker": float(message.speaker in asked_about),
                "role": float(
                    (message.role == "user") != question.asks_reply and message.role in ("user", "assistant")
                ),
                "date": question.moments.fit(message.at),
                "when": float(question.asks_when and says_when(held)),
                "number": float(question.asks_how_many and says_how_many(held)),
                "statement": float(place not in questions),
                "names": min(len(set(_NAME.findall(message.content))), 3) / 3,
                "first_person": float(not held.isdisjoint(_FIRST_PERSON)),
                "length": min(one.n_words, FULL_WORDS) / FULL_WORDS,
                "long": log(max(one.n_words / LONG_WORDS, 1.0)),
            }
        )
    return described


def _sessions(
    matches: Mapping[Place, _Match], question: Question, statistics: Statistics
) -> tuple[dict[str, float], dict[str, float]]:
    """Of each session: its best match, and which share of the question's own words, by rarity, it holds."""
    best: dict[str, float] = {}
    words: dict[str, set[str]] = {}
    for (session, _), match in matches.items():
        best[session] = max(best.get(session, 0.0), match.score)
        words.setdefault(session, set()).update(match.words)
    rarity = {
        word: question.asked.weights[word] * bm25.idf(statistics.rows, statistics.rows_with.get(word, 0))
        for word in question.asked.literal
    }
    whole = sum(rarity.values()) or 1.0
    return best, {session: sum(rarity.get(word, 0.0) for word in held) / whole for session, held in words.items()}


def _filler_weights(found: Sequence[FoundMessage], question: Question) -> dict[str, float]:
    """Filler → its rarity among the candidates: to count such words in the whole index costs more than they tell."""
    texts = [set(one.words.split()) for one in found] if question.fillers else []
    counts = {word: sum(word in held for held in texts) for word in question.fillers}
    return {word: bm25.idf(2 * len(texts), count) for word, count in counts.items() if count}


def is_question(content: str) -> bool:
    """Whether a message ends by asking."""
    return content.rstrip(" \n\t)]\"'").endswith("?")


def says_when(words: set[str]) -> bool:
    return not words.isdisjoint(english.time_words()) or any(_YEAR.fullmatch(word) for word in words)


def says_how_many(words: set[str]) -> bool:
    return not words.isdisjoint(english.number_words()) or any(word.isdigit() for word in words)


def _hit(found: FoundMessage, values: Mapping[str, float], weights: Weights, question: Question) -> MessageHit:
    by_name = asdict(weights)
    why = {name: by_name[name] * value for name, value in values.items() if value and by_name[name]}
    held = set(found.words.split())
    matched = {word: question.asked.reasons.get(word, "asked for") for word in question.asked.words if word in held}
    return MessageHit(message=found.message, score=sum(why.values()), why=why, session_score=0.0, matched=matched)


def _in_order(hits: list[MessageHit], by: str) -> list[MessageHit]:
    """Best first; of equals the later one. Every hit learns the score of its session."""
    hits.sort(key=lambda hit: (-hit.score, hit.message.session, -hit.message.n))
    of_session: dict[str, list[MessageHit]] = {}
    for hit in hits:
        of_session.setdefault(hit.message.session, []).append(hit)
    scores = {
        session: sum(hit.score * REST_SHARE**rank for rank, hit in enumerate(those[:3]))
        for session, those in of_session.items()
    }
    chosen = [those[0] for those in of_session.values()] if by == "session" else hits
    ranked = [_with_session_score(hit, scores[hit.message.session]) for hit in chosen]
    return sorted(ranked, key=lambda hit: -hit.session_score) if by == "session" else ranked


def _with_session_score(hit: MessageHit, score: float) -> MessageHit:
    return MessageHit(message=hit.message, score=hit.score, why=hit.why, session_score=score, matched=hit.matched)


def _place(found: FoundMessage) -> Place:
    return found.message.session, found.message.n


def _prepared(found: FoundMessage) -> Prepared:
    return Prepared(found.words, "", "", "", "", found.n_words, found.n_words)
