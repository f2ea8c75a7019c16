"""The read path in order: query → candidates → score → rerank → select.

An agent asks with a few key words; the answer is the few memories that fit best, each with its reasons. Rule: a query
never fails. Whatever could not be done in time is missing from the answer, and `degraded` says so.
"""

from collections.abc import Callable, Sequence, Set
from heapq import nlargest

from msgspec import Struct

from kept.model import Conflict, Memory, Recalled
from kept.ports import Deadline, Found, Reader, Statistics, Where
from kept.recall import Circumstances, Request, candidates, profile_of, where_of
from kept.recall.query import SearchWords, guess, search_words
from kept.recall.score import Scored, hit, ranking, relevance, scorer
from kept.recall.select import best_first, considered, follow, rerank, select

MOST_PINNED = 5
DEGRADED_TOP = 5


def recall(request: Request, given: Circumstances) -> Recalled:
    """The answer to one question about memories. Never raises for anything a query could say."""
    started = given.timer()
    deadline = Deadline(given.timer, started + given.settings.recall_deadline_ms / 1000)
    found = _search(request, given, search_words(request, given), deadline)
    if len(found.scored) < _exact_top(request) and found.unknown and not deadline.is_over():
        # Too little: search again, also for words that the unknown ones could have meant.
        guessed = guess(found.words, found.unknown, request, given, deadline)
        if guessed.weights != found.words.weights:
            found = _search(request, given, guessed, deadline)
    scored, notes = found.scored, found.notes
    if given.embedder is not None:
        from kept.recall import hybrid

        joined, note = hybrid.join(scored, found.score, request, given, given.embedder)
        scored, notes = best_first(joined), [*notes, note]
    hits = [hit(one, found.words) for one in scored[: considered(request.limit)]]
    if given.reranker is not None and hits:
        hits, note = rerank(request.query, hits, given.reranker, max(0.01, deadline.left_s))
        notes = [*notes, note]
    top = DEGRADED_TOP if given.is_degraded else len(hits)
    chosen, misses = select(hits, profile_of(request, given.settings), request.limit, top=top)
    if request.follow:
        chosen += follow(chosen, given.readers, given.now, limit=request.limit)
    returned = {hit.memory.uid for hit in chosen}
    return Recalled(
        hits=tuple(chosen),
        pinned=pinned(given.readers) if request.scope != "archive" else (),
        conflicts=tuple(conflict for reader in given.readers for conflict in open_conflicts(reader, returned)),
        misses=tuple(misses),
        words=found.words.all,
        degraded=" ".join(filter(None, notes)) or None,
        took_ms=(given.timer() - started) * 1000,
    )


class _Search(Struct, frozen=True, kw_only=True):
    """Scored candidates, best first; by which words and which score; and what was cut short."""

    words: SearchWords
    unknown: list[str]  # words of the query that no memory holds
    score: Callable[[Found], Scored]
    scored: list[Scored]
    notes: list[str | None]


def _search(request: Request, given: Circumstances, words: SearchWords, deadline: Deadline) -> _Search:
    """The best candidates of every space, scored as if all spaces were one."""
    settings, where = given.settings, where_of(request)
    statistics = [reader.statistics(words.all, where) for reader in given.readers]
    # Of all spaces together, so that a space of ten rows cannot make its words look rare.
    together = sum(statistics, Statistics())
    match = relevance(words, together, profile_of(request, settings))
    score = scorer(match, request, settings, given.now)
    order = ranking(match, request, settings, given.now)
    best: list[Scored] = []
    notes: list[str | None] = []
    if given.is_degraded:
        notes.append("Recall has been slow lately, so fewer candidates were scored.")
    for reader, own in zip(given.readers, statistics, strict=True):
        for limit in candidates.sizes(considered(request.limit), is_degraded=given.is_degraded):
            gathered = candidates.gather(reader, words.weights, own, where, order, limit=limit, deadline=deadline)
            scored = [score(found) for found in gathered.found]
            if gathered.is_late or not gathered.is_cut or not _could_miss(scored, _exact_top(request)):
                break
        if gathered.is_late:
            notes.append(
                f"Time ran out after {settings.recall_deadline_ms} ms, so the newest matches replace the best ones."
            )
        best += scored
    return _Search(
        words=words,
        unknown=[word for word in words.literal if not together.rows_with.get(word)],
        score=score,
        scored=best_first([one for one in best if one.score > 0]),
        notes=notes,
    )


def _exact_top(request: Request) -> int:
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


def open_conflicts(reader: Reader, uids: Set[str]) -> list[Conflict]:
    """The open conflicts that one of these memories is part of; ambiguous ones are not shown."""
    return [
        conflict
        for conflict in reader.all(Conflict)
        if conflict.resolved_at is None and conflict.type != "ambiguous" and uids & {conflict.left, conflict.right}
    ]
