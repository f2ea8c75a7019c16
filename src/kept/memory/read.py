"""Asking: recall and its reasons, one memory by its ref, and lists of them.

Asking, from the facade's side: which spaces, which profile, and what is noted afterwards.

Facade layer, below `memory.py`. The answer itself comes from `recall.pipeline`. Rule: noting (receipt, links, uses)
comes after the answer, never waits, and never changes it.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from math import inf
from typing import Any, Literal

import msgspec
from msgspec import Struct

from kept import ids, worth
from kept.errors import InvalidInput, NotFound, SettingsError
from kept.memory.context import Memories, Opened, Ref, Storages
from kept.memory.vectors import catch_up
from kept.model import GLOBAL, Hit, Memory, Recalled, Source, canonical_kind, replace, several
from kept.ports import Deadline, Embedder, Period, Shelf, Storage, Where
from kept.recall import pipeline
from kept.recall.candidates import Latencies
from kept.recall.messages import MessageHit, MessageRequest, WithPacked, recall_messages
from kept.recall.select import Reranker
from kept.settings import Settings
from kept.storage.shared import check_limit
from kept.tables import PROFILES, Profile
from kept.writing.redact import redact

RecallScope = Literal["memory", "items", "sessions", "sources", "archive"]
SCOPES: tuple[RecallScope, ...] = ("memory", "items", "sessions", "sources", "archive")
MOST_HITS = 1_000
MOST_LINKED = 10  # of one answer, the best; that a hundred came together says nothing, and makes 5,000 pairs


class Question(Struct, frozen=True, kw_only=True):
    """What was asked, in the caller's words: enough to ask it again."""

    query: str
    limit: int = 5
    sure: int | None = None  # see pipeline.Request; None: all of them
    profile: str | None = None
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    scope: RecallScope = "memory"
    follow: bool = False
    by: Literal["message", "session"] = "message"
    packed: bool = False


class Explained(Struct, frozen=True, kw_only=True):
    """What a recall noted about itself: the question, when, and what was returned and missed, with the numbers.

    Of a briefing also its sections, with what stands in each and why, and what was left out of them; of what was
    shared, with whom.
    """

    receipt: str
    kind: Literal["recall", "briefing", "share"] = "recall"
    at: datetime
    question: Question
    words: tuple[str, ...] = ()
    hits: tuple[dict[str, Any], ...] = ()
    misses: tuple[dict[str, Any], ...] = ()
    pinned: tuple[str, ...] = ()
    sections: tuple[dict[str, Any], ...] = ()
    left_out: tuple[dict[str, Any], ...] = ()
    to: str | None = None
    degraded: str | None = None
    took_ms: float = 0.0


def answer(
    question: Question,
    storages: Sequence[Storage],
    *,
    settings: Settings,
    now: datetime,
    timer: Callable[[], float],
    latencies: Latencies,
    reranker: Reranker | None = None,
    find_embedder: Callable[[], Embedder],
) -> Recalled:
    """Ask all the spaces at once, each at one moment."""
    request = _request(question, settings, is_degraded=latencies.is_degraded)
    embedder, note = _embedder(question, request.profile, storages, find_embedder)
    if question.scope == "sessions":
        ask = partial(_answer_from_sessions, question, settings=settings, now=now, timer=timer, embedder=embedder)
        return _with_note(ask(storages[0]) if storages else Recalled(), note)
    with ExitStack() as stack:
        readers = [stack.enter_context(storage.reading()) for storage in storages]
        around = pipeline.Surroundings(
            readers=readers, settings=settings, now=now, timer=timer, reranker=reranker, embedder=embedder
        )
        recalled = pipeline.recall(request, around)
    latencies.note(recalled.took_ms)
    return _with_note(recalled, note)


def _embedder(
    question: Question, profile: Profile, storages: Sequence[Storage], find_embedder: Callable[[], Embedder]
) -> tuple[Embedder | None, str | None]:
    """What compares by meaning, if the profile wants that; and what is to be said about it.

    Memories that are new get their vector here. Raises SettingsError when the question itself asks for vectors and
    there can be none; when only the settings do, words have to do.
    """
    if not profile.vectors:
        return None, None
    try:
        embedder = find_embedder()
        waiting = 0 if question.scope == "sessions" else sum(catch_up(storage, embedder) for storage in storages)
    except SettingsError as error:
        if question.profile is not None:
            raise
        return None, f"only words were compared: {error.message} {error.hint}"
    except Exception as error:  # somebody else's embedder: an answer by words is better than none
        return None, f"the embedder failed ({type(error).__name__}), so only words were compared"
    if not waiting:
        return embedder, None
    return embedder, f"{waiting} memories wait for their vector and were found by words; `kept vectors on` goes on"


def _with_note(recalled: Recalled, note: str | None) -> Recalled:
    return recalled if note is None else replace(recalled, degraded="; ".join(filter(None, (recalled.degraded, note))))


def _answer_from_sessions(
    question: Question,
    storage: Storage,
    *,
    settings: Settings,
    now: datetime,
    timer: Callable[[], float],
    embedder: Embedder | None,
) -> Recalled:
    """Ask the conversations of the project. The parts of `why` add up to the score here."""
    started = timer()
    deadline = Deadline(timer, inf if question.packed else started + settings.recall_deadline_ms / 1000)
    period = Period(since=question.since, until=question.until)
    request = MessageRequest(query=question.query, limit=question.limit, by=question.by, period=period)
    with storage.reading() as reader:
        messages = WithPacked(reader) if question.packed else reader
        found = recall_messages(request, messages, now=now, deadline=deadline, embedder=embedder)
    return Recalled(
        hits=tuple(_message_as_hit(hit, storage.space) for hit in found.hits),
        words=found.words,
        degraded=found.degraded,
        took_ms=(timer() - started) * 1000,
    )


def _message_as_hit(hit: MessageHit, space: str) -> Hit:
    """A message in the form of a memory, so that whoever reads hits can read these, too."""
    message = hit.message
    at = message.at or datetime.fromtimestamp(0, UTC)
    memory = Memory(
        id=message.n,
        uid=f"{message.session}#{message.n}",
        space=space,
        content=message.content,
        fingerprint="",
        kind=message.role,
        tier="session",
        source=Source(origin="conversation", agent=message.speaker, session=message.session),
        created_at=at,
        updated_at=at,
    )
    parts = {"session": hit.session_score}
    return Hit(memory=memory, message=message, score=hit.score, why=hit.why, matched=hit.matched, parts=parts)


def note(question: Question, recalled: Recalled, storages: Sequence[Storage], now: datetime) -> Recalled:
    """Write down what was asked and answered, link what came together, count uses. Skipped while others write."""
    receipt = None
    for storage in storages:
        returned = [hit.memory for hit in recalled.hits if hit.memory.space == storage.space and hit.message is None]
        if not returned and not holds_receipts(storage):
            continue
        with storage.bookkeeping() as notes:
            if notes is None:
                continue
            notes.link([memory.id for memory in returned[:MOST_LINKED]], now)
            notes.count_uses([memory.id for memory in returned if worth.is_use(memory, now)], now)
            if holds_receipts(storage):
                spoken_of = [hit.memory.uid for hit in (*recalled.hits, *(miss.hit for miss in recalled.misses))]
                spoken_of += [memory.uid for memory in recalled.pinned]
                receipt = f"r{notes.save_receipt(body(question, recalled), spoken_of, now)}"
    return replace(recalled, receipt=receipt)


def holds_receipts(storage: Storage) -> bool:
    """Whether receipts are kept there: never in global, or one project would read what another has asked."""
    return storage.space != GLOBAL


def explain(receipt: str | int | None, storages: Sequence[Storage]) -> Explained:
    """What a recall noted about itself; the newest one when none is named. Raises NotFound."""
    number = None if receipt is None else _receipt_number(receipt)
    for storage in filter(holds_receipts, storages):
        with storage.reading() as reader:
            if found := reader.receipt(number):
                number, at, body = found
                return msgspec.convert(body | {"receipt": f"r{number}", "at": at}, Explained)
    if receipt is None:
        hint = "`kept recall WORDS` asks. Before a project has its first memory, nothing is noted."
        raise NotFound("No recall was noted here yet.", hint=hint)
    raise NotFound(
        f"There is no receipt r{number}.", hint="Only the newest are kept. `kept why` shows the last recall."
    )


def _request(question: Question, settings: Settings, *, is_degraded: bool) -> pipeline.Request:
    name = question.profile or ("hybrid" if settings.search_provider == "hybrid" else settings.profile)
    if name not in PROFILES:
        raise InvalidInput(f"{name!r} is not a profile.", hint=f"Choose one of {', '.join(PROFILES)}.")
    if type(question.limit) is not int or not 0 <= question.limit <= MOST_HITS:
        raise InvalidInput(f"A limit of {question.limit} makes no sense.", hint=f"Give 0 to {MOST_HITS:,}.")
    if question.scope not in SCOPES:
        raise InvalidInput(f"{question.scope!r} is not a scope.", hint=f"Choose one of {', '.join(SCOPES)}.")
    for side, at in (("since", question.since), ("until", question.until)):
        if at is not None and (not isinstance(at, datetime) or at.tzinfo is None):
            raise InvalidInput(f"`{side}` is no moment with a time zone.", hint="Use datetime(…, tzinfo=UTC).")
    if question.scope == "sessions":
        _check_asked_of_messages(question)
    return pipeline.Request(
        query=question.query,
        limit=question.limit,
        sure=question.limit if question.sure is None else question.sure,
        profile=PROFILES[name],
        where=Where(
            shelf="archive" if question.scope == "archive" else "live",
            scope=question.scope if question.scope in ("memory", "items", "sources") else None,
            kinds=tuple(canonical_kind(kind) for kind in question.kinds),
            tags=question.tags,
            since=question.since,
            until=question.until,
        ),
        files=question.files,
        follow=question.follow,
        is_degraded=is_degraded,
    )


def _check_asked_of_messages(question: Question) -> None:
    """Refuse what would narrow or lift memories, and could do nothing to messages."""
    asked = {"kinds": question.kinds, "tags": question.tags, "files": question.files}
    without = " and ".join(f"no {name}" for name, given in asked.items() if given)
    if without:
        hint = "Leave them out, or ask another scope; `since` and `until` work here, too."
        raise InvalidInput(f"Messages have {without}, so the scope `sessions` cannot be asked for them.", hint=hint)


def body(question: Question, recalled: Recalled) -> dict[str, Any]:
    """What a receipt holds: numbers and refs, never the text of a memory, and no secret of the query."""
    asked = replace(
        question,
        query=redact(question.query).text,
        kinds=tuple(redact(kind).text for kind in question.kinds),
        tags=tuple(redact(tag).text for tag in question.tags),
        files=tuple(redact(file).text for file in question.files),
    )
    return {
        "question": msgspec.to_builtins(asked),
        "words": [] if asked.query != question.query else list(recalled.words),
        "hits": [_line(hit) for hit in recalled.hits],
        "misses": [_line(miss.hit) | {"reason": miss.reason} for miss in recalled.misses],
        "pinned": [memory.ref for memory in recalled.pinned],
        "degraded": recalled.degraded,
        "took_ms": round(recalled.took_ms, 3),
    }


def _line(hit: Hit) -> dict[str, Any]:
    line = {"ref": hit.ref, "uid": hit.memory.uid, "score": hit.score, "why": hit.why, "matched": hit.matched}
    return line | ({"parts": hit.parts} if hit.parts else {})


def _receipt_number(receipt: str | int) -> int:
    text = str(receipt).strip().lower().removeprefix("r")
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise InvalidInput(
            f"{str(receipt)[:40]!r} is not a receipt.", hint="It looks like r17; every recall gives one."
        )
    return int(text)


ListStatus = Literal["candidate", "confirmed", "pinned", "archived", "forgotten"]


class Asking(Opened):
    """What reads, and changes nothing but its own notes."""

    def recall(
        self,
        query: str,
        *,
        limit: int = 5,
        profile: str | None = None,
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        files: Sequence[str] = (),
        since: datetime | None = None,
        until: datetime | None = None,
        scope: RecallScope = "memory",
        follow: bool = False,
        by: Literal["message", "session"] = "message",
        packed: bool = False,
    ) -> Recalled:
        """The memories that fit a few key words best, with scores and reasons. No query raises for what it says.

        `files` are the files at hand: memories about them rank higher. `follow` also brings what was recalled
        together with the hits before. `scope` "archive" searches what has left, "sessions" what was said: by message,
        or `by` session, where each comes once. `packed`: also in old sessions, which are compressed; it takes longer.
        Messages have no kinds, tags or files: asked for them, "sessions" raises InvalidInput.
        """
        if not isinstance(query, str):
            raise InvalidInput(f"The query is of type {type(query).__name__}, and not a text.")
        [query] = _well_formed([query])
        question = Question(
            query=query,
            limit=limit,
            profile=profile,
            kinds=_well_formed(kinds),
            tags=_well_formed(tags),
            files=_well_formed(files),
            since=since,
            until=until,
            scope=scope,
            follow=follow,
            by=by,
            packed=packed,
        )
        storages, now = self._readable(), self._now()
        recalled = note(question, self._answer(question, storages, now), storages, now)
        self._tell_search(query, len(recalled.hits))
        self._after_recall(recalled.receipt)
        return recalled

    def why(self, receipt: Ref | None = None) -> Explained:
        """What a recall returned, what just missed, and the numbers behind it: the last one, or the receipt's."""
        return explain(receipt, self._readable())

    def replay(self, receipt: Ref | None = None) -> Recalled:
        """Ask a receipt's question again, as of its moment, noting nothing. The same store gives the same answer."""
        explained = self.why(receipt)
        return self._answer(explained.question, self._readable(), explained.at)

    def get(self, ref: Ref, *, forgotten: bool = False) -> Memory:
        """The memory that answers to the ref, archived or not; one that was forgotten only when asked for so.

        Raises NotFound.
        """
        _, memory = self._find(ref)
        if memory.is_forgotten and not forgotten:
            raise NotFound(f"Memory {memory.ref} was forgotten.", hint=f"`kept restore {memory.ref}` brings it back.")
        self._tell_read([memory])
        return memory

    def list(
        self,
        *,
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        status: ListStatus | None = None,
        limit: int = 50,
        after: Ref | None = None,
    ) -> Memories:
        """Memories, newest first: the project's, then global ones. `after` is the last ref of the page before.

        `status` None means live; "archived" and "forgotten" show what has left.
        """
        check_limit(limit)
        shelf: Shelf = "live"
        if status in ("archived", "forgotten"):
            shelf = "archive" if status == "archived" else "forgotten"
        elif status is not None and status not in ("candidate", "confirmed", "pinned"):
            raise InvalidInput(
                f"{status!r} is not a status.", hint="Choose candidate, confirmed, pinned, archived or forgotten."
            )
        where = Where(
            shelf=shelf,
            kinds=_well_formed(kinds),
            tags=_well_formed(tags),
            statuses=(status,) if status in ("candidate", "confirmed", "pinned") else (),
        )
        position = None if after is None else self._position(after)
        found: Memories = []
        for storage in self._readable():
            is_global = storage.space == GLOBAL
            if position is not None and position.is_global and not is_global:
                continue
            page_after = position.id if position is not None and position.is_global == is_global else None
            with storage.reading() as reader:
                found += reader.select(where, limit=limit - len(found), after=page_after)
        self._tell_read(found)
        return found

    def _answer(self, question: Question, storages: Storages, now: datetime) -> Recalled:
        return answer(
            question,
            storages,
            settings=self._settings,
            now=now,
            timer=self._timer,
            latencies=self._latencies,
            reranker=self._reranker,
            find_embedder=self._find_embedder,
        )

    def _position(self, after: Ref) -> ids.Ref:
        """The id where a page ended, also of a memory that is no longer there."""
        position = ids.parse_ref(after)
        return position if position.uid is None else ids.parse_ref(self._find(after)[1].ref)


def _well_formed(words: Sequence[str]) -> tuple[str, ...]:
    """The words as a storage can be asked for them: half of a surrogate pair, which nothing can hold, becomes `?`."""
    return tuple(word.encode("utf-8", "replace").decode() for word in several(words))
