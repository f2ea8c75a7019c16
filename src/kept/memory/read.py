"""Recall, one memory by its ref, and lists of memories.

`recall.pipeline` answers the question; this module chooses its spaces and embedder, and has receipts.py note the
answer. Rule: notes are saved after the answer; saving never waits and never changes the answer.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from kept import ids, worth
from kept.errors import InvalidInput, NotFound
from kept.memory.context import Comparer, Context, Memories, Ref, Storages, settle
from kept.memory.receipts import body, cold_mark, explain, latencies_of, past_latencies, save_notes
from kept.memory.standing import CodeView
from kept.model import GLOBAL, Memory, Recalled, Status, replace, several
from kept.ports import Reader, Where
from kept.ports import Shelf as Shelf
from kept.recall import SCOPES as SCOPES
from kept.recall import WORDS_ONLY, Circumstances, Request, pipeline, profile_of
from kept.recall import RecallScope as RecallScope
from kept.recall.select import is_followed
from kept.storage.shared import block, check_limit

ListStatus = Literal["candidate", "confirmed", "pinned", "archived", "forgotten"]
UPKEEP_EVERY = 50  # receipts


_SHELVES: dict[str | None, Shelf] = {"archived": "archive", "forgotten": "forgotten"}


# Answers


def recall(context: Context, request: Request, *, as_of: datetime | None = None) -> Recalled:
    """Answer a question of the caller, and note it; with `as_of` answer from that moment, and note nothing."""
    request = replace(
        request,
        query=well_formed(request.query),
        kinds=tuple(map(well_formed, request.kinds)),
        tags=tuple(map(well_formed, request.tags)),
        files=tuple(map(well_formed, request.files)),
    )
    storages, now = context.readable(), context.now()
    if as_of is not None:
        recalled = answer_as_of(context, request, storages, as_of)
        context.signals.tell_recalled(request.query, recalled.hits, scope=request.scope)
        return recalled
    is_cheap = context.reranker is None and not profile_of(request, context.settings).vectors
    ask = partial(_answer_and_note, context, request, storages, now)
    recalled = context.in_rounds(storages, ask) if is_cheap else ask()
    if request.scope != "sessions":
        note_latency(context, recalled, storages)
    if recalled.receipt is None and _is_any_read_only(storages):
        recalled = _noting(recalled, "The store is read-only, so this recall was not noted.")
    context.signals.tell_recalled(request.query, recalled.hits, scope=request.scope)
    after_recall(context, recalled.receipt)
    return recalled


def _answer_and_note(context: Context, request: Request, storages: Storages, now: datetime) -> Recalled:
    """Answer a question, and save its receipt."""
    recalled = answer(context, request, storages, now)
    recalled = replace(recalled, hits=CodeView(context).labelled(recalled.hits))
    settle(storages)
    hits = [hit for hit in recalled.hits if hit.message is None]
    missed = [miss.hit.memory for miss in recalled.misses]
    receipt = save_notes(
        storages,
        now,
        body=body(request, recalled) | cold_mark(context),
        named=[*(hit.memory for hit in recalled.hits), *missed, *recalled.pinned],
        # A link that brings in a memory must not make itself stronger by that.
        linked=[hit.memory for hit in hits if not is_followed(hit)],
        used=used_by(context, request, [hit.memory for hit in hits], now),
    )
    return replace(recalled, receipt=receipt)


def _is_any_read_only(storages: Storages) -> bool:
    return any(storage.describe().get("read_only") for storage in storages)


def used_by(
    context: Context,
    request: Request,
    returned: Sequence[Memory],
    now: datetime,
    *,
    session: str | None = None,
    since: datetime | None = None,
) -> Memories:
    """A9: those for which being returned is a use: none, unless the profile follows a design that counts returns."""
    if not profile_of(request, context.settings).counts_returns:
        return []
    return [memory for memory in returned if worth.is_use(memory, now, session=session, since=since)]


def answer(context: Context, request: Request, storages: Storages, now: datetime) -> Recalled:
    """Ask all spaces, each at one moment. Notes nothing."""
    embedder = embedder_for(context, request, storages)
    with looking(storages) as readers:
        return answer_from(readers, context, request, now, embedder)


def answer_as_of(context: Context, request: Request, storages: Storages, as_of: datetime) -> Recalled:
    """Ask all spaces as they were at a moment. Notes nothing."""
    past, then, at = back_at(context, storages, as_of, with_messages=request.scope == "sessions")
    return answer(past, request, then, at)


def back_at(
    context: Context, storages: Storages, as_of: datetime, *, with_messages: bool = False
) -> tuple[Context, Storages, datetime]:
    """Return a context, the spaces and the moment for a question about the past."""
    from kept.memory import past  # only questions about the past rebuild it

    at = past.moment_of(context, as_of)
    return past.patient(context), past.storages_as_of(storages, at, with_messages=with_messages), at


@block
def looking(storages: Storages) -> Iterator[list[Reader]]:
    """A look at each space, all until the end of the block."""
    with ExitStack() as stack:
        yield [stack.enter_context(storage.reading()) for storage in storages]


def answer_from(
    readers: Sequence[Reader],
    context: Context,
    request: Request,
    now: datetime,
    embedder: Comparer,
) -> Recalled:
    """The same through readers at hand; `embedder` as `embedder_for` gave it before they began to look."""
    if embedder.embedder is None and profile_of(request, context.settings).vectors:
        request = replace(request, profile=WORDS_ONLY)
    circumstances = Circumstances(
        readers=readers,
        settings=context.settings,
        now=now,
        timer=context.timer,
        reranker=context.reranker,
        embedder=embedder.embedder,
        join=embedder.join,
        is_degraded=latencies_of(context).is_degraded,
    )
    if request.scope == "sessions":
        from kept.recall.messages import recall_messages  # only conversations are searched by it

        recalled = recall_messages(request, circumstances)
    else:
        recalled = pipeline.recall(request, circumstances)
    return recalled if embedder.note is None else _noting(recalled, embedder.note)


def note_latency(context: Context, recalled: Recalled, storages: Storages) -> None:
    """Note how long a recall of memories took; the second of a process also reads the times of earlier processes."""

    def before() -> list[float]:
        with looking(storages[:1]) as readers:
            return [took for reader in readers for took in past_latencies(reader)]

    latencies_of(context).note(recalled.took_ms, before)


def _noting(recalled: Recalled, note: str) -> Recalled:
    """Add a note on what the answer lacks."""
    return replace(recalled, degraded=" ".join(filter(None, (recalled.degraded, note))))


def embedder_for(context: Context, request: Request, storages: Storages, *, is_hook: bool = False) -> Comparer:
    """The embedder, if the profile compares vectors, and a note on what it could not do. Raises SettingsError."""
    if not profile_of(request, context.settings).vectors:
        return Comparer()
    if is_hook and Path(context.settings.vector_model or "").is_absolute():
        return Comparer(note="A hook has no time to load a sentence model, so only words were compared.")
    from kept.memory.embedder import ready_embedder  # loads numpy, for profiles with vectors alone

    return ready_embedder(context, request, storages, is_hook=is_hook)


def after_recall(context: Context, receipt: str | None) -> None:
    """Do a little upkeep with every fiftieth receipt."""
    is_due = receipt is not None and int(receipt[1:]) % UPKEEP_EVERY == 0
    if is_due and context.settings.auto_upkeep and context.tend is not None:
        context.tend(context)


def replay(context: Context, receipt: Ref | None = None) -> Recalled:
    """Ask a receipt's question again as of its moment, and note nothing. The same store gives the same answer."""
    storages = context.readable()
    explained = explain(receipt, storages)
    return answer(context, explained.question, storages, explained.at)


# Memories by ref, and lists


def get(context: Context, ref: Ref, *, forgotten: bool = False) -> Memory:
    """The memory with that ref, archived or not; a forgotten one only with `forgotten`. Raises NotFound."""
    _, memory = context.find(ref)
    if memory.is_forgotten and not forgotten:
        raise NotFound(f"Memory {memory.ref} was forgotten.", hint=f"`kept restore {memory.ref}` brings it back.")
    context.tell_read([memory])
    return memory


def list_memories(
    context: Context,
    named: Mapping[str, Sequence[str]],
    *,
    status: ListStatus | None,
    agent: str | None = None,
    session: str | None = None,
    limit: int,
    after: Ref | None,
) -> Memories:
    """Memories, newest first: the project's, then global ones. `named` are fields of a filter (ports.Where)."""
    check_limit(limit)
    shelf, statuses = _shelf_of(status)
    where = Where(
        shelf=shelf,
        statuses=statuses,
        agent=None if agent is None else well_formed(agent),
        session=None if session is None else well_formed(session),
        **{name: tuple(map(well_formed, several(values))) for name, values in named.items()},  # type: ignore[arg-type]
    )
    position = None if after is None else _position(context, after)
    found: Memories = []
    for storage in context.readable():
        is_global = storage.space == GLOBAL
        if position is not None and position.is_global > is_global:  # the page before ended in global memory
            continue
        page_after = position.id if position is not None and position.is_global == is_global else None
        with storage.reading() as reader:
            found += reader.select(where, limit=limit - len(found), after=page_after)
    context.tell_read(found)
    return found


def _shelf_of(status: ListStatus | None) -> tuple[Shelf, tuple[Status, ...]]:
    """Return the shelf of a status, and the status if it is one of live memories. Raises InvalidInput."""
    if status is not None and status not in get_args(ListStatus):
        raise InvalidInput(f"Unknown status {status!r}.", hint=f"Choose one of {', '.join(get_args(ListStatus))}.")
    statuses: tuple[Status, ...] = (status,) if status in ("candidate", "confirmed", "pinned") else ()
    return _SHELVES.get(status, "live"), statuses


def _position(context: Context, after: Ref) -> ids.Ref:
    """The id where a page ended, also of a memory that is no longer there."""
    position = ids.parse_ref(after)
    return position if position.uid is None else ids.parse_ref(context.find(after)[1].ref)


def well_formed(word: str) -> str:
    """The word as a storage can hold it: half of a surrogate pair becomes `?`."""
    return word.encode("utf-8", "replace").decode()
