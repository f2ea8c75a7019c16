"""Recall with its receipts, one memory by its ref, and lists of memories.

Decides which spaces and which profile answer a question, and notes it afterwards; the answer itself comes from
`recall.pipeline`. Rule: noting (receipt, links, uses) comes after the answer, never waits, and never changes it.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from kept import ids, worth
from kept.errors import InvalidInput, NotFound, SettingsError
from kept.memory.context import Context, Memories, Ref, Storages
from kept.model import GLOBAL, Hit, Memory, Recalled, Source, canonical_kind, replace, several
from kept.ports import Deadline, Embedder, Period, Shelf, Storage, Where
from kept.recall import pipeline
from kept.settings import Settings
from kept.storage.shared import check_limit
from kept.tables import PROFILES, Profile
from kept.writing.redact import redact

if TYPE_CHECKING:
    from kept.recall.messages import MessageHit

RecallScope = Literal["memory", "items", "sessions", "sources", "archive"]
SCOPES: tuple[RecallScope, ...] = ("memory", "items", "sessions", "sources", "archive")
ListStatus = Literal["candidate", "confirmed", "pinned", "archived", "forgotten"]
MOST_HITS = 1_000
UPKEEP_EVERY = 50  # receipts
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


def answer(context: Context, question: Question, storages: Storages, now: datetime) -> Recalled:
    """Ask all the spaces at once, each at one moment. Notes nothing."""
    request = _request(question, context.settings, is_degraded=context.latencies.is_degraded)
    embedder, note = _embedder(context, question, request.profile, storages)
    if question.scope == "sessions":
        found = _answer_from_sessions(context, question, storages[0], now, embedder) if storages else Recalled()
        return _with_note(found, note)
    with ExitStack() as stack:
        readers = [stack.enter_context(storage.reading()) for storage in storages]
        around = pipeline.Surroundings(
            readers=readers,
            settings=context.settings,
            now=now,
            timer=context.timer,
            reranker=context.reranker,
            embedder=embedder,
        )
        recalled = pipeline.recall(request, around)
    context.latencies.note(recalled.took_ms)
    return _with_note(recalled, note)


def _embedder(
    context: Context, question: Question, profile: Profile, storages: Storages
) -> tuple[Embedder | None, str | None]:
    """The embedder, if the profile compares vectors, and a note on what it could not do.

    New memories get their vectors here. Raises SettingsError when the question itself asks for vectors and none can
    be made; when only the settings ask for them, words have to do.
    """
    if not profile.vectors:
        return None, None
    from kept.memory.manage import catch_up

    try:
        embedder = context.find_embedder()
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
    context: Context, question: Question, storage: Storage, now: datetime, embedder: Embedder | None
) -> Recalled:
    """Ask the conversations of the project. The parts of `why` add up to the score here."""
    from kept.recall.messages import MessageRequest, WithPacked, recall_messages

    timer = context.timer
    started = timer()
    deadline = Deadline(timer, inf if question.packed else started + context.settings.recall_deadline_ms / 1000)
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


def _message_as_hit(hit: "MessageHit", space: str) -> Hit:
    """A message in the form of a memory, so that code that reads hits can read these as well."""
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


def recall(context: Context, question: Question) -> Recalled:
    """Answer a question of the caller, and note it."""
    question = _checked(question)
    storages, now = context.readable(), context.now()
    recalled = note(question, answer(context, question, storages, now), storages, now)
    context.tell_search(question.query, len(recalled.hits))
    after_recall(context, recalled.receipt)
    return recalled


def after_recall(context: Context, receipt: str | None) -> None:
    """Every so many receipts it is time for a little upkeep."""
    if context.settings.auto_upkeep and receipt is not None and int(receipt[1:]) % UPKEEP_EVERY == 0:
        from kept.memory import upkeep

        upkeep.after_recall(context)


def replay(context: Context, receipt: Ref | None = None) -> Recalled:
    """Ask a receipt's question again as of its moment, and note nothing. The same store gives the same answer."""
    storages = context.readable()
    explained = explain(receipt, storages)
    return answer(context, explained.question, storages, explained.at)


def get(context: Context, ref: Ref, *, forgotten: bool = False) -> Memory:
    """The memory that answers to the ref, archived or not; one that was forgotten only when asked for so.

    Raises NotFound.
    """
    _, memory = context.find(ref)
    if memory.is_forgotten and not forgotten:
        raise NotFound(f"Memory {memory.ref} was forgotten.", hint=f"`kept restore {memory.ref}` brings it back.")
    context.tell_read([memory])
    return memory


def list_memories(
    context: Context,
    *,
    kinds: Sequence[str],
    tags: Sequence[str],
    status: ListStatus | None,
    limit: int,
    after: Ref | None,
) -> Memories:
    """Memories, newest first: the project's, then global ones."""
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
    position = None if after is None else _position(context, after)
    found: Memories = []
    for storage in context.readable():
        is_global = storage.space == GLOBAL
        if position is not None and position.is_global and not is_global:
            continue
        page_after = position.id if position is not None and position.is_global == is_global else None
        with storage.reading() as reader:
            found += reader.select(where, limit=limit - len(found), after=page_after)
    context.tell_read(found)
    return found


def _position(context: Context, after: Ref) -> ids.Ref:
    """The id where a page ended, also of a memory that is no longer there."""
    position = ids.parse_ref(after)
    return position if position.uid is None else ids.parse_ref(context.find(after)[1].ref)


def _checked(question: Question) -> Question:
    """The question as a storage can be asked it. Raises InvalidInput for a query or names of another type."""
    if not isinstance(question.query, str):
        raise InvalidInput(f"query must be a string, not {type(question.query).__name__}.")
    [query] = _well_formed([question.query])
    return replace(
        question,
        query=query,
        kinds=_well_formed(question.kinds),
        tags=_well_formed(question.tags),
        files=_well_formed(question.files),
    )


def _well_formed(words: Sequence[str]) -> tuple[str, ...]:
    """The words as a storage can be asked for them: half of a surrogate pair, which nothing can hold, becomes `?`."""
    return tuple(word.encode("utf-8", "replace").decode() for word in several(words))
