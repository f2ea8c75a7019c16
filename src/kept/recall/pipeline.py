"""The read path: query → candidates → score → rerank → select.

An agent asks with a few key words; the answer is the few memories that fit best, each with its reasons. Rule:
a query never fails. What could not be done in time is missing from the answer, and `degraded` says so.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from heapq import nlargest

from msgspec import Struct

from kept.model import Alias, Conflict, Memory, Recalled
from kept.ports import Deadline, Embedder, Found, Reader, Statistics, Where
from kept.recall import candidates, hybrid, links, query
from kept.recall.score import Circumstances, Scored, hit, ranking, scorer
from kept.recall.select import Reranker, best_first, considered, in_order, rerank, select
from kept.settings import Settings
from kept.tables import Profile

MOST_PINNED = 5
DEGRADED_TOP = 5


class Request(Struct, frozen=True, kw_only=True):
    """What is asked, of what, and how the answer is to be chosen."""

    query: str
    limit: int
    sure: int  # how many hits must be the best there are, whatever it costs; those behind may be nearly so
    profile: Profile
    where: Where
    files: tuple[str, ...] = ()
    follow: bool = False
    is_degraded: bool = False  # recall has been slow lately: do with less


class Surroundings(Struct, frozen=True, kw_only=True):
    """What recall needs of the world: one reader for each space, the settings, the time, and a stopwatch in seconds."""

    readers: Sequence[Reader]
    settings: Settings
    now: datetime
    timer: Callable[[], float]
    reranker: Reranker | None = None
    embedder: Embedder | None = None  # for profiles with vectors


class _Looked(Struct, frozen=True, kw_only=True):
    """Scored candidates in order, by which score, which words nobody has written, and what was cut short."""

    scored: list[Scored]
    score: Callable[[Found], Scored]
    unknown: list[str]
    notes: tuple[str, ...]


def recall(request: Request, around: Surroundings) -> Recalled:
    """The answer to one query. Never raises for anything a query could say."""
    started = around.timer()
    deadline = Deadline(around.timer, started + around.settings.recall_deadline_ms / 1000)
    own_aliases = [alias for reader in around.readers for alias in reader.all(Alias)]
    asked = query.understand(request.query, request.profile, own_aliases)
    looked, asked = _look_twice(request, around, asked, deadline)
    scored = looked.scored
    notes: list[str | None] = [*looked.notes]
    if around.embedder is not None:
        scored, note = _by_meaning(request, around, around.embedder, looked)
        notes.append(note)
    hits = [hit(one, asked) for one in scored[: considered(request.limit)]]
    if around.reranker is not None and hits:
        hits, note = rerank(request.query, hits, around.reranker, max(0.01, deadline.left_s))
        hits = in_order(hits)
        notes.append(note)
    top = DEGRADED_TOP if request.is_degraded else len(hits)
    chosen, misses = select(hits, request.profile, request.limit, top=top)
    if request.follow:
        chosen += links.follow(chosen, around.readers, around.now, limit=request.limit)
    return Recalled(
        hits=tuple(chosen),
        pinned=_pinned(around.readers, request.where),
        conflicts=_conflicts(around.readers, [hit.memory for hit in chosen]),
        misses=tuple(misses),
        words=asked.words,
        degraded="; ".join(filter(None, notes)) or None,
        took_ms=(around.timer() - started) * 1000,
    )


def _look_twice(
    request: Request, around: Surroundings, asked: query.Asked, deadline: Deadline
) -> tuple[_Looked, query.Asked]:
    """Look for what was asked; if that finds too little, also for what unknown words could have meant."""
    looked = _look(request, around, asked, deadline)
    if len(looked.scored) >= request.sure or not looked.unknown or deadline.is_over():
        return looked, asked
    guessed = query.guess(asked, looked.unknown, around.readers, request.where, request.profile, deadline)
    if guessed.words == asked.words:
        return looked, asked
    return _look(request, around, guessed, deadline), guessed


def _look(request: Request, around: Surroundings, asked: query.Asked, deadline: Deadline) -> _Looked:
    """The best candidates of every space, scored as if all spaces were one."""
    statistics = [reader.statistics(asked.words, request.where) for reader in around.readers]
    circumstances = Circumstances(
        asked=asked,
        # Of all spaces together: so a space of ten rows cannot make its words look rare.
        statistics=sum(statistics, Statistics()),
        profile=request.profile,
        kind_weights=around.settings.kind_weights,
        files=request.files,
        now=around.now,
    )
    score, order = scorer(circumstances), ranking(circumstances)
    best: list[Scored] = []
    notes = ["recall has been slow lately, so fewer candidates were looked at"] if request.is_degraded else []
    for reader, own in zip(around.readers, statistics, strict=True):
        for limit in candidates.sizes(considered(request.limit), is_degraded=request.is_degraded):
            gathered = candidates.gather(
                reader, asked.weights, own, request.where, order, limit=limit, deadline=deadline
            )
            scored = [score(found) for found in gathered.found]
            if gathered.is_late or not gathered.is_cut or not _could_miss(scored, request.sure):
                break
        if gathered.is_late:
            notes.append(
                f"{around.settings.recall_deadline_ms} ms were over, so the newest matches stand in for the best"
            )
        best += scored
    unknown = [word for word in asked.literal if not circumstances.statistics.rows_with.get(word)]
    scored = best_first([one for one in best if one.score > 0])
    return _Looked(scored=scored, score=score, unknown=unknown, notes=tuple(notes))


def _by_meaning(
    request: Request, around: Surroundings, embedder: Embedder, looked: _Looked
) -> tuple[list[Scored], str | None]:
    """What the words have found, joined by what means the same in other words."""
    shares = hybrid.blend(around.settings.text_weight, around.settings.vector_weight)
    joined, note = hybrid.join(
        looked.scored, request.query, embedder, around.readers, request.where, looked.score, shares
    )
    return best_first(joined), note


def _could_miss(scored: Sequence[Scored], limit: int) -> bool:
    """Whether a memory below the cut could belong into the answer: if ours were to lift it like no other.

    The storage ordered candidates by nearly the same score; by how much ours differs from it, those above the cut tell.
    """
    cut = min((one.found.rank for one in scored), default=0.0)
    if not cut or not 0 < limit <= len(scored):
        return False
    last = nlargest(limit, (one.score for one in scored))[-1]
    return cut * max(one.score / one.found.rank for one in scored) >= last


def _pinned(readers: Sequence[Reader], where: Where) -> tuple[Memory, ...]:
    """What is always brought along; the archive has nothing pinned."""
    if where.shelf != "live":
        return ()
    pinned = Where(statuses=("pinned",))
    return tuple(memory for reader in readers for memory in reader.select(pinned, limit=MOST_PINNED))[:MOST_PINNED]


def _conflicts(readers: Sequence[Reader], returned: Sequence[Memory]) -> tuple[Conflict, ...]:
    """The open contradictions that the returned memories are part of; vague ones are not shown."""
    uids = {memory.uid for memory in returned}
    return tuple(
        conflict
        for reader in readers
        for conflict in reader.all(Conflict)
        if conflict.resolved_at is None and conflict.type != "ambiguous" and uids & {conflict.left, conflict.right}
    )
