"""The read path: query → candidates → score → rerank → select.

An agent asks with a few key words; the answer is the few memories that fit best, each with its reasons. Rule:
a query never fails. What could not be done in time is missing from the answer, and `degraded` says so.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec import Struct

from kept.model import Alias, Conflict, Hit, Memory, Recalled
from kept.ports import Found, Reader, Statistics, Where
from kept.recall import candidates, links, query
from kept.recall.candidates import CANDIDATES, DEGRADED_CANDIDATES, WIDENED
from kept.recall.rerank import Reranker, rerank
from kept.recall.score import Circumstances, largest_factor, score
from kept.recall.select import in_order, select
from kept.settings import Profile, Settings

MOST_PINNED = 5
DEGRADED_TOP = 5


class Request(Struct, frozen=True, kw_only=True):
    """What is asked, of what, and how the answer is to be chosen."""

    query: str
    limit: int
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


def recall(request: Request, around: Surroundings) -> Recalled:
    """The answer to one query. Never raises for anything a query could say."""
    started = around.timer()
    deadline = started + around.settings.recall_deadline_ms / 1000

    def is_late() -> bool:
        return around.timer() >= deadline

    own_aliases = [alias for reader in around.readers for alias in reader.all(Alias)]
    asked = query.understand(request.query, request.profile, own_aliases)
    hits, asked, notes = _find(request, around, asked, is_late)
    if around.reranker is not None and hits:
        hits, note = rerank(request.query, hits, around.reranker, max(0.01, deadline - around.timer()))
        hits = in_order(hits)
        notes += [note] if note else []
    chosen, misses = select(hits, request.profile, request.limit, top=DEGRADED_TOP if request.is_degraded else None)
    if request.follow:
        chosen += links.follow(chosen, around.readers, around.now, limit=request.limit)
    return Recalled(
        hits=tuple(chosen),
        pinned=_pinned(around.readers, request.where),
        conflicts=_conflicts(around.readers, [hit.memory for hit in chosen]),
        misses=tuple(misses),
        words=asked.words,
        degraded="; ".join(notes) or None,
        took_ms=(around.timer() - started) * 1000,
    )


def _find(
    request: Request, around: Surroundings, asked: query.Asked, is_late: Callable[[], bool]
) -> tuple[list[Hit], query.Asked, list[str]]:
    """Scored candidates in order, the words that were looked for in the end, and what was cut short."""
    hits, notes = _candidates(request, around, asked, is_late)
    if len(hits) >= request.limit or is_late():
        return hits, asked, notes
    statistics = _statistics(around.readers, asked, request.where)
    unknown = [word for word in asked.literal if not sum(part.rows_with.get(word, 0) for part in statistics)]
    guessed = query.guess(asked, unknown, around.readers, request.where, request.profile)
    if len(guessed.weights) == len(asked.weights):
        return hits, asked, notes
    hits, more = _candidates(request, around, guessed, is_late)
    return hits, guessed, notes + more


def _candidates(
    request: Request, around: Surroundings, asked: query.Asked, is_late: Callable[[], bool]
) -> tuple[list[Hit], list[str]]:
    statistics = _statistics(around.readers, asked, request.where)
    circumstances = Circumstances(
        asked=asked,
        # Of all spaces together: so a space of ten rows cannot make its words look rare.
        statistics=sum(statistics, Statistics()),
        profile=request.profile,
        kind_weights=around.settings.kind_weights,
        files=request.files,
        now=around.now,
    )
    hits: list[Hit] = []
    notes: list[str] = (
        ["recall has been slow lately, so fewer candidates were looked at"] if request.is_degraded else []
    )
    for reader, own in zip(around.readers, statistics, strict=True):
        limit = DEGRADED_CANDIDATES if request.is_degraded else CANDIDATES
        gathered = candidates.gather(reader, asked.weights, own, request.where, limit=limit, is_late=is_late)
        scored = _scored(gathered.found, circumstances)
        if gathered.is_cut and not gathered.is_late and not request.is_degraded and _could_miss(scored, own, request):
            gathered = candidates.gather(reader, asked.weights, own, request.where, limit=WIDENED, is_late=is_late)
            scored = _scored(gathered.found, circumstances)
        if gathered.is_late:
            notes.append(
                f"{around.settings.recall_deadline_ms} ms were over, so the newest matches stand in for the best"
            )
        hits += scored
    return in_order(hits), notes


def _scored(found: Sequence[Found], circumstances: Circumstances) -> list[Hit]:
    hits = (score(candidate, circumstances) for candidate in found)
    return in_order([hit for hit in hits if hit.score > 0])


def _could_miss(hits: Sequence[Hit], statistics: Statistics, request: Request) -> bool:
    """Whether a memory below the cut could, with all the feedback there is, belong into the answer."""
    if len(hits) < request.limit:
        return False
    cut = min(hit.why.get("match", 0.0) for hit in hits)
    return cut * largest_factor(hits, statistics.top_feedback, request.profile) >= hits[request.limit - 1].score


def _statistics(readers: Sequence[Reader], asked: query.Asked, where: Where) -> list[Statistics]:
    return [reader.statistics(asked.words, where) for reader in readers]


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
