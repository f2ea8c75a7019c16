"""Recall, one memory by its ref, and lists of memories.

`recall.pipeline` answers the question; this module chooses its spaces and embedder, and has receipts.py note the
answer. Rule: notes are saved after the answer; saving never waits and never changes the answer.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from kept import ids, worth
from kept.errors import InvalidInput, NotFound
from kept.memory.context import BATCH, Comparer, Context, Memories, Ref, Storages, settle
from kept.memory.receipts import body, explain, latencies_of, past_latencies, save_notes, slow_mark
from kept.memory.standing import CodeView
from kept.model import GLOBAL, Memory, Recalled, Status, replace, several
from kept.ports import LIVE, Reader, Where
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


def recall(context: Context, request: Request) -> Recalled:
    """Answer a question of the caller, and note it."""
    request = as_asked(request)
    storages, now = context.readable(), context.now()
    is_cheap = context.reranker is None and not profile_of(request, context.settings).vectors
    ask = partial(_answer_and_note, context, request, storages, now)
    recalled = context.in_rounds(storages, ask) if is_cheap else ask()
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
        body=body(request, recalled) | slow_mark(context),
        named=[*(hit.memory for hit in recalled.hits), *missed, *recalled.pinned],
        # A link that brings in a memory must not make itself stronger by that.
        linked=[hit.memory for hit in hits if not is_followed(hit)],
        used=used_by(context, request, [hit.memory for hit in hits], now),
    )
    return replace(recalled, receipt=receipt)


def as_asked(request: Request) -> Request:
    """Return the question with texts that a storage can hold."""
    return replace(
        request,
        query=well_formed(request.query),
        kinds=tuple(map(well_formed, request.kinds)),
        tags=tuple(map(well_formed, request.tags)),
        files=tuple(map(well_formed, request.files)),
    )


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
    latencies = latencies_of(context, readers)
    circumstances = Circumstances(
        readers=readers,
        settings=context.settings,
        now=now,
        timer=context.timer,
        reranker=context.reranker,
        embedder=embedder.embedder,
        join=embedder.join,
        is_degraded=latencies.is_degraded,
    )
    if request.scope == "sessions":
        from kept.recall.messages import recall_messages  # only conversations are searched by it

        recalled = recall_messages(request, circumstances)
    else:
        recalled = pipeline.recall(request, circumstances)
        latencies.note(recalled.took_ms, lambda: past_latencies(readers[0]) if readers else ())
    return recalled if embedder.note is None else _noting(recalled, embedder.note)


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


class Page(list[Memory]):
    """Memories, newest first. `has_more`: the limit was reached, and `after=page[-1].ref` continues."""

    has_more = False


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
    data: Mapping[str, Any] | None = None,
    limit: int,
    after: Ref | None,
) -> Page:
    """Return memories, newest first: the project's, then global ones. `named` are fields of a filter (ports.Where)."""
    check_limit(limit)
    shelf, statuses = shelf_of(status)
    where = Where(
        shelf=shelf,
        statuses=statuses,
        agent=None if agent is None else well_formed(agent),
        session=None if session is None else well_formed(session),
        data=tuple((data or {}).items()),
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
            found += reader.select(where, limit=limit + 1 - len(found), after=page_after)
    page = Page(found[:limit])
    page.has_more = len(found) > limit
    context.tell_read(page)
    return page


def count(context: Context) -> int:
    """Return how many live memories can be read."""
    return sum(reader.count(LIVE) for reader in context.readers())


def every(context: Context) -> Iterator[Memory]:
    """Yield all live memories, newest first: the project's, then global ones."""
    after: Ref | None = None
    while True:
        page = list_memories(context, {}, status=None, limit=BATCH, after=after)
        yield from page
        if not page.has_more:
            return
        after = page[-1].ref


def is_there(context: Context, ref: object) -> bool:
    """Return True if a ref, a memory or a uid names a memory that can be read and was not forgotten."""
    if isinstance(ref, Memory):
        ref = ref.uid
    if not isinstance(ref, int | str):
        return False
    try:
        return not context.find(ref)[1].is_forgotten
    except (NotFound, InvalidInput):
        return False


def shelf_of(status: ListStatus | None) -> tuple[Shelf, tuple[Status, ...]]:
    """Return the shelf of a status, and the status if it is one of live memories. Raises InvalidInput."""
    if status is not None and status not in get_args(ListStatus):
        raise InvalidInput(f"Unknown status {status!r}.", hint=f"Choose one of {', '.join(get_args(ListStatus))}.")
    statuses: tuple[Status, ...] = (status,) if status in ("candidate", "confirmed", "pinned") else ()
    return _SHELVES.get(status, "live"), statuses


def _position(context: Context, after: Ref) -> ids.Ref:
    """The id where a page ended, also of a memory that is no longer there."""
    position = ids.parse_ref(after)
    return position if position.id else ids.parse_ref(context.find(after)[1].ref)


def well_formed(word: str) -> str:
    """The word as a storage can hold it: half of a surrogate pair becomes `?`."""
    return word.encode("utf-8", "replace").decode()
