"""The read path in order: query → candidates → score (→ guess, and again) (→ vectors) → floor → rerank → select.

An agent asks with a few key words; the answer is the few memories that fit best, each with its reasons. Where words of
the query are unknown and little is found, words that they could have meant are guessed and searched as well. Vectors
join if an embedder is there. Rule: a query never fails. What could not be done in time is missing from the answer,
and `degraded` says so.
"""

from collections.abc import Callable, Sequence, Set
from functools import partial
from heapq import nlargest

from msgspec import Struct

from kept.model import GLOBAL, OVERRIDES, Conflict, Hit, Memory, Miss, Recalled
from kept.ports import Deadline, Found, Reader, Statistics, Where
from kept.recall import Circumstances, Request, candidates, profile_of, where_of
from kept.recall.floor import Floor, floor_of
from kept.recall.forms import reduce_to
from kept.recall.query import SearchWords, guess, search_words
from kept.recall.score import Scored, hit_of, score_of, storage_ranking, word_match
from kept.recall.select import MOST_MISSES, SUMMARY, best_first, follow, n_considered, rerank, select

MOST_PINNED = 5
MOST_HITS_WHEN_SLOW = 5


def recall(request: Request, circumstances: Circumstances) -> Recalled:
    """Answer one question about memories. Never raises for anything a query could say."""
    started, settings = circumstances.timer(), circumstances.settings
    deadline = Deadline(circumstances.timer, started + settings.recall_deadline_ms / 1000)
    search = _search_with_guesses(request, circumstances, deadline)
    best, notes = search.best, search.notes
    if circumstances.join is not None:
        joined, note = circumstances.join(best, search.score_of, search.floor, request, circumstances)
        best, notes = best_first(joined), [*notes, note]
    profile = profile_of(request, settings)
    considered = best[: n_considered(request.limit, request.exact_top)]
    hits = _tellable(best_first([*map(hit_of(search.words, search.floor, profile), considered)]))
    if circumstances.reranker is not None and hits:
        hits, note = rerank(request.query, hits, circumstances.reranker, max(0.01, deadline.left_s))
        notes = [*notes, note]
    hits, held_back = _as_decided_here(hits, circumstances.readers)
    top = MOST_HITS_WHEN_SLOW if circumstances.is_degraded else len(hits)
    # As the older designs did it, profiles without a floor return whatever matches.
    takes_summaries = not profile.floor or SUMMARY in request.kinds
    chosen, misses = select(hits, profile, request.limit, top=top, takes_summaries=takes_summaries)
    if request.follow:
        chosen += follow(chosen, circumstances.readers, circumstances.now, limit=request.limit)
    return Recalled(
        hits=tuple(chosen),
        pinned=_pinned_here(circumstances.readers) if request.scope != "archive" else (),
        conflicts=_conflicts_of(chosen, circumstances.readers),
        misses=tuple([*held_back, *misses][: MOST_MISSES if request.exact_top is None else request.limit]),
        words=search.words.all,
        confidence=_best_confidence(hits, takes_summaries=takes_summaries),
        degraded=" ".join(filter(None, notes)) or None,
        took_ms=(circumstances.timer() - started) * 1000,
    )


def _tellable(hits: Sequence[Hit]) -> list[Hit]:
    """Leave out candidates that repeat a forgotten or rejected statement."""
    return [hit for hit in hits if not hit.memory.is_rejected]


def _best_confidence(hits: Sequence[Hit], *, takes_summaries: bool) -> float:
    """Return how likely the best of the hits answers, from 0 to 1."""
    eligible = (hit for hit in hits if takes_summaries or hit.memory.kind != SUMMARY)
    return max((hit.confidence or 0.0 for hit in eligible), default=0.0)


def _conflicts_of(chosen: Sequence[Hit], readers: Sequence[Reader]) -> tuple[Conflict, ...]:
    """Return the open conflicts of the hits of an answer, if both sides are live."""
    uids = {hit.memory.uid for hit in chosen}
    found = [conflict for reader in readers for conflict in open_conflicts(reader, uids)]
    return tuple(one for one in found if all(uid in uids or live_side(uid, readers) for uid in (one.left, one.right)))


def live_side(uid: str, readers: Sequence[Reader]) -> Memory | None:
    """Return a side of a conflict if it is live: a project holds its conflicts with global memory."""
    found = (memory for reader in readers for memory in reader.select(Where(uid=uid), limit=1))
    return next(found, None)


def _as_decided_here(hits: Sequence[Hit], readers: Sequence[Reader]) -> tuple[list[Hit], list[Miss]]:
    """Separate the global memories for which a person decided that they do not hold in this project."""
    decided = overridden({hit.memory.uid for hit in hits if hit.memory.space == GLOBAL}, readers)
    here = [hit for hit in hits if hit.memory.uid not in decided]
    held_back = [hit for hit in hits if hit.memory.uid in decided]
    return here, [Miss(hit=hit, reason=overruled_by(decided[hit.memory.uid])) for hit in held_back]


def overridden(uids: Set[str], readers: Sequence[Reader]) -> dict[str, Memory]:
    """Map the global memories that do not hold in this project to its live memories that hold instead."""
    instead = {uid: live_side(other, readers) for uid, other in _settled_sides(readers) if uid in uids} if uids else {}
    return {uid: memory for uid, memory in instead.items() if memory is not None and _overrides(memory, uid)}


def _settled_sides(readers: Sequence[Reader]) -> list[tuple[str, str]]:
    """Return the sides of settled conflicts, each with the other one."""
    settled = [one for reader in readers for one in reader.all(Conflict) if one.resolved_at is not None]
    return [side for one in settled for side in ((one.left, one.right), (one.right, one.left))]


def _overrides(memory: Memory, uid: str) -> bool:
    return uid in (memory.data or {}).get(OVERRIDES, ())


def overruled_by(memory: Memory) -> str:
    """Say why a global memory is left out."""
    return f"in this project {memory.ref} holds instead"


def _search_with_guesses(request: Request, circumstances: Circumstances, deadline: Deadline) -> "_Search":
    """Search for the words of the query; if too little is found, also for words that the unknown ones could mean."""
    search = _search(request, circumstances, search_words(request, circumstances), deadline)
    if len(search.best) >= _n_exact(request) or not search.unknown or deadline.is_over():
        return search
    guessed = guess(search.words, search.unknown, request, circumstances, deadline)
    if guessed.weights == search.words.weights:
        return search
    return _search(request, circumstances, guessed, deadline)


class _Search(Struct, frozen=True, kw_only=True):
    """The best candidates of all spaces, in order; by which words and which score; and what was cut short."""

    words: SearchWords
    unknown: list[str]  # words of the query that no memory holds
    score_of: Callable[[Found], Scored]
    floor: Floor
    best: list[Scored]
    notes: list[str | None]


def _search(request: Request, circumstances: Circumstances, words: SearchWords, deadline: Deadline) -> _Search:
    """The best candidates of every space, scored as if all spaces were one."""
    settings, now, where = circumstances.settings, circumstances.now, where_of(request)
    statistics = [reader.statistics(words.all, where) for reader in circumstances.readers]
    # Of all spaces together, so that a space of ten rows cannot make its words look rare.
    together = sum(statistics, Statistics())
    match = word_match(words, together, profile_of(request, settings))
    score = score_of(match, request, settings, now)
    ranking = storage_ranking(match, request, settings, now)
    sizes = candidates.sizes(n_considered(request.limit, request.exact_top), is_degraded=circumstances.is_degraded)
    notes: list[str | None] = []
    if circumstances.is_degraded:
        notes.append("Recall has been slow lately, so fewer candidates were scored.")
    reduced = reduce_to(words.forms)
    judge = partial(_judged, reduced=reduced, score=score, enough=sizes[0])
    best: list[Scored] = []
    for reader, own in zip(circumstances.readers, statistics, strict=True):
        gather = partial(candidates.gather, reader, words.weights, own, where, ranking, deadline=deadline)
        scored, is_late = _search_space(gather, score, judge, sizes, _n_exact(request))
        if is_late:
            notes.append(
                f"Time ran out after {settings.recall_deadline_ms} ms, so the newest matches replace the best ones."
            )
        best += scored
    return _Search(
        words=words,
        unknown=[word for word in words.literal if not together.rows_with.get(word)],
        score_of=lambda found: score(reduced(found)),
        floor=floor_of(request.query, words, together),
        best=best_first([one for one in best if one.score > 0]),
        notes=notes,
    )


def _search_space(
    gather: Callable[..., candidates.Candidates],
    score: Callable[[Found], Scored],
    judge: Callable[[list[Scored]], list[Scored]],
    sizes: Sequence[int],
    n_exact: int,
) -> tuple[list[Scored], bool]:
    """The candidates of one space with their scores, and whether time ran out.

    More are gathered if a memory below the cut could belong to the first `n_exact`.
    """
    for limit in sizes:
        gathered = gather(limit=limit)
        scored = [score(found) for found in gathered.found]
        is_whole = gathered.is_late or not gathered.is_cut
        if limit != sizes[-1] and not is_whole and _could_miss(scored, n_exact):
            continue
        scored = judge(scored)
        if is_whole or not _could_miss(scored, n_exact):
            break
    return scored, gathered.is_late


def _judged(
    scored: list[Scored], *, reduced: Callable[[Found], Found], score: Callable[[Found], Scored], enough: int
) -> list[Scored]:
    """Score again, from the best down, those that hold a word in another form only, until `enough` fit as they are."""
    judged: list[Scored] = []
    n_fitting = 0
    in_order = sorted(scored, key=lambda one: -one.score)
    for one in in_order:
        if n_fitting >= enough:
            break
        found = reduced(one.found)
        n_fitting += found is one.found
        judged.append(one if found is one.found else score(found))
    return judged + in_order[len(judged) :]


def _n_exact(request: Request) -> int:
    """How many of the first hits must be exactly the best."""
    return request.limit if request.exact_top is None else request.exact_top


def _could_miss(scored: Sequence[Scored], limit: int) -> bool:
    """Whether a memory below the cut could belong in the answer.

    The storage orders candidates by nearly our score. The candidate that our score lifts the most above the storage's
    rank shows how much it could lift one below the cut.
    """
    cut = min((one.found.rank for one in scored), default=0.0)
    if not cut or not 0 < limit <= len(scored):
        return False
    last = nlargest(limit, (one.score for one in scored))[-1]
    return cut * max(one.score / one.found.rank for one in scored) >= last


def pinned(readers: Sequence[Reader]) -> tuple[Memory, ...]:
    """The pinned memories that come with every answer, except from the archive."""
    where = Where(statuses=("pinned",))
    return tuple(memory for reader in readers for memory in reader.select(where, limit=MOST_PINNED))[:MOST_PINNED]


def _pinned_here(readers: Sequence[Reader]) -> tuple[Memory, ...]:
    found = pinned(readers)
    decided = overridden({memory.uid for memory in found if memory.space == GLOBAL}, readers)
    return tuple(memory for memory in found if memory.uid not in decided)


def open_conflicts(reader: Reader, uids: Set[str]) -> list[Conflict]:
    """The open conflicts that one of these memories is part of; ambiguous ones are not shown."""
    return [
        conflict
        for conflict in reader.all(Conflict)
        if conflict.resolved_at is None and conflict.type != "ambiguous" and uids & {conflict.left, conflict.right}
    ]
