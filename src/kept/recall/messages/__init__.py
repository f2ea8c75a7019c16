"""Recall over conversations: question → candidates → features → score → hits, by message or by session.

The read path of scope `sessions`. A message is short, leans on the messages around it, and answers in other words than
the question. So it is judged by its own words, its neighbours and its session, by who says it, and by whether it looks
like an answer. Only messages that hold a word of the question, or are next to one that does, are candidates.

`recall_messages` is the door. `question.py` reads the question (words, times, kind of answer) with the tables of
`english.py`. Rule: the score of a message is a weighted SUM of named features. `describe` computes each feature,
`MessageWeights` holds the weights, `hit.why` shows the summands.

Packed sessions are compressed and in no index. On request `WithPacked` unpacks and reads them all, about a second for
20,000 messages; the answer is the same as if none had been packed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from heapq import nlargest
from math import inf, log
from operator import mul

from msgspec import Struct
from msgspec.structs import asdict

from kept import bm25, text, vectors
from kept.model import Hit, Memory, Message, Recalled, Session, Source
from kept.ports import ALWAYS, Deadline, Embedder, FoundMessage, Period, Prepared, Reader, Statistics, TooLate
from kept.recall import Circumstances, Request, embedder_failed
from kept.recall.candidates import affordable
from kept.recall.messages import english
from kept.recall.messages.question import Question, read_question

CANDIDATES = 150
COMPARED = 40  # of the candidates: the best, which are compared by meaning where vectors are on
COMPARED_CHARS = 1_000  # of each of them, and of the message before it
LED_ON = 40  # of the candidates: the best, whose neighbours become candidates without holding a word of the question
SHORT_WORDS = 80  # the neighbours of a longer message say nothing about it
FULL_WORDS = 40  # a message of that length is not too short to say something
LONG_WORDS = 60  # a longer one holds many words of any question by chance
REST_SHARE = 0.2  # of the score of a session: the part of its second message
SESSION_DEPTH = 2  # more would reward those who talk long
_GIVING = (-1, 1, -2)  # the neighbours whose match counts for a message: before, after, two_before
_TAKING = (1, -1, 2)  # hence the neighbours for which a message counts
_NO_NEIGHBOURS = (0.0, 0.0, 0.0)

_FIRST_PERSON = frozenset({"i", "my", "me", "we", "our"})
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_DIGITS = re.compile(r"\b\d+\b")


class MessageWeights(Struct, frozen=True, kw_only=True):
    """The weight of each feature of a message. A feature is 0 or more, mostly at most 1."""

    match: float = 1.0  # BM25 of its own words, as a share of the best candidate's
    before: float = 0.1  # the match of the message before it, and so on
    after: float = 0.15
    two_before: float = 0.2
    reply: float = 0.5  # the match of the question before it
    fillers: float = 0.2  # words that hold the question together
    session: float = 0.5  # the best match in its session
    session_words: float = 0.5  # the share of the question that its session holds
    speaker: float = 0.7  # said by somebody whom the question names
    role: float = 0.7  # said by the user, or by the assistant if the question is about its words
    date: float = 1.0  # said at the time that the question names
    when: float = 0.5  # says when, if that is the question
    number: float = 0.25  # says how many, if that is the question
    statement: float = 0.2  # is not a question itself
    names: float = 0.25  # names somebody or something
    first_person: float = 0.1  # speaks of the speaker
    length: float = 0.25  # is not too short to say something
    meaning: float = 0.2  # cosine with the question, together with the message before it; where vectors are on
    long: float = -0.35  # the logarithm of how many times too long it is


WEIGHTS = MessageWeights()


def recall_messages(
    request: Request, circumstances: Circumstances, *, session: str | None = None, weights: MessageWeights = WEIGHTS
) -> Recalled:
    """The messages of the first space, or of one session in it, that answer a question best.

    A hit has the form of a memory, so that code that reads hits can read these as well. Never raises for anything a
    question could say.
    """
    started = circumstances.timer()
    if not circumstances.readers:
        return Recalled()
    reader = WithPacked(circumstances.readers[0]) if request.packed else circumstances.readers[0]
    seconds = inf if request.packed else circumstances.settings.recall_deadline_ms / 1000
    deadline = Deadline(circumstances.timer, started + seconds)
    period = Period(since=request.since, until=request.until)
    question = read_question(request.query, circumstances.now)
    statistics = reader.message_statistics(question.words.all)
    words = _searched(question, statistics)
    search = partial(reader.search_messages, limit=CANDIDATES, session=session, period=period, statistics=statistics)
    try:
        found, note = search(words, deadline=deadline), None
    except TooLate:
        found, note = search(words[:1]), "Time ran out, so messages with the rarest word replace the best ones."
    speakers = {one.message.speaker for one in found if one.message.speaker}
    asked = set(text.words(request.query))
    asked_about = {speaker for speaker in speakers if asked.intersection(text.words(speaker))}
    question = question.without({word for speaker in speakers for word in text.words(speaker)})
    match = bm25.match_of(question.words.weights, statistics)
    candidates = [candidate(one, match(_prepared(one))) for one in found]
    if not deadline.is_over():
        candidates += [candidate(one, 0.0) for one in _beside(candidates, reader) if period.holds(one.message.at)]
    elif candidates and note is None:
        note = "Time ran out, so the messages next to the best ones were not searched."
    if asked_about == speakers:  # a question that names everybody names nobody
        asked_about = set()
    features = describe(candidates, question, statistics, asked_about)
    if circumstances.embedder is not None and candidates and not deadline.is_over():
        note = _compare_meanings(candidates, features, weights, request.query, reader, circumstances.embedder) or note
    return Recalled(
        hits=tuple(_hits(candidates, features, weights, question, request, circumstances.readers[0].space)),
        words=question.words.all,
        degraded=note,
        took_ms=(circumstances.timer() - started) * 1000,
    )


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


def _beside(candidates: Sequence[Candidate], reader: "Reader | WithPacked") -> list[FoundMessage]:
    """The short messages next to the best short ones: an answer need not repeat the words of the question."""
    short = [candidate for candidate in candidates if candidate.is_short and candidate.match > 0]
    best = [candidate.place for candidate in nlargest(LED_ON, short, key=lambda candidate: candidate.match)]
    beside = {(session, n + step) for session, n in best for step in _TAKING if n + step > 0}
    unknown = sorted(beside - {candidate.place for candidate in candidates})
    return [one for one in reader.messages_at(unknown) if one.n_words <= SHORT_WORDS]


def describe(
    candidates: Sequence[Candidate], question: Question, statistics: Statistics, asked_about: set[str]
) -> list[dict[str, float]]:
    """The features of each message, by the names of their weights."""
    best = max((candidate.match for candidate in candidates), default=0.0) or 1.0
    match_share = {candidate.place: candidate.match / best for candidate in candidates}
    asking = {candidate.place for candidate in candidates if candidate.is_question}
    session_match, session_words = _sessions(candidates, match_share, question, statistics)
    fillers = _rarity_of_fillers(candidates, question)
    described = []
    for candidate in candidates:
        message, words = candidate.found.message, candidate.words
        session, n = candidate.place
        before, after, two_before = (
            [match_share.get((session, n + step), 0.0) for step in _GIVING] if candidate.is_short else _NO_NEIGHBOURS
        )
        described.append(
            {
                "match": match_share[candidate.place],
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
                "when": float(question.asks_when and _says(candidate, english.time_words(), _YEAR)),
                "number": float(question.asks_how_many and _says(candidate, english.number_words(), _DIGITS)),
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
    weights: MessageWeights,
    query: str,
    reader: "Reader | WithPacked",
    embedder: Embedder,
) -> str | None:
    """Add the feature `meaning` to the best candidates; a note if that failed.

    Messages keep no vectors: those of a few dozen are made for each question.
    """
    scores = _scores(features, asdict(weights))
    best = nlargest(COMPARED, range(len(candidates)), key=lambda at: scores[at])
    places = [candidates[at].place for at in best]
    before = [(session, n - 1) for session, n in places]
    said = {candidate.place: candidate.found.message.content for candidate in candidates}
    unknown = sorted(set(before) - said.keys())
    said |= {(one.message.session, one.message.n): one.message.content for one in reader.messages_at(unknown)}
    pairs = [(said.get(earlier, ""), said[place]) for earlier, place in zip(before, places, strict=True)]
    texts = [f"{earlier[:COMPARED_CHARS]} {own[:COMPARED_CHARS]}" for earlier, own in pairs]
    try:
        [asked, *meant] = vectors.pack(embedder.embed([query, *texts]))
    except Exception as error:  # somebody else's code, perhaps: reported, never raised into an answer
        return embedder_failed(error)
    for at, cosine in zip(best, vectors.cosines(asked, meant), strict=True):
        features[at]["meaning"] = max(0.0, cosine)
    return None


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


def _hits(
    candidates: Sequence[Candidate],
    features: Sequence[Mapping[str, float]],
    weights: MessageWeights,
    question: Question,
    request: Request,
    space: str,
) -> Iterator[Hit]:
    """The answer, best first; of equals the later message. Each hit has the score of its session in `parts`."""
    weight_of = asdict(weights)
    scores = _scores(features, weight_of)
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
    for at in order[: request.limit]:
        candidate = candidates[at]
        parts = {name: weight_of[name] * value for name, value in features[at].items()}
        why = {name: part for name, part in parts.items() if part}
        yield Hit(
            memory=_as_memory(candidate.found.message, space),
            message=candidate.found.message,
            score=sum(why.values()),
            why=why,
            matched={word: question.words.reason(word) for word in question.words.all if word in candidate.words},
            parts={"session": session_scores[places[at][0]]},
        )


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


def _prepared(found: FoundMessage) -> Prepared:
    return Prepared(found.words, "", "", "", "", found.n_words, found.n_words)


class WithPacked:
    """The messages of a space, packed or not, searched as a `Reader` searches those that are not packed."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._packed = [session.name for session in reader.all(Session) if session.packed_at is not None]
        self._counted: dict[tuple[str, ...], Statistics] = {}

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
        statistics: Statistics | None = None,
        deadline: Deadline | None = None,
    ) -> list[FoundMessage]:
        """As in any storage, but without a time limit: the caller asked for more than the quick answer."""
        match = bm25.match_of(words, statistics or self.message_statistics(words))
        found = self._reader.search_messages(words, limit=limit, session=session, period=period)
        old = (one for one in self._old(session) if period.holds(one.message.at))
        scored = [(match(_prepared(one)), one) for one in (*found, *old)]
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
