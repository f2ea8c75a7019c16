"""Rerank, select, follow: choose the answer from the best memories, and say why the others are not in it.

Last steps of the read path over memories. A host's reranker may add one factor to each hit; it may be wrong, fail or be
slow, and then our own order stands and the answer says so. Links bring in what was recalled together with the hits
before; these never rank above the hits. Rule: of the hits that were considered and not returned, the best few say why.
"""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from math import isfinite
from typing import TypeVar

from msgspec import Struct, field

from kept import worth
from kept.model import Hit, Memory, Miss, replace
from kept.ports import Reader
from kept.recall import Reranker
from kept.recall.score import Scored
from kept.tables import Profile

AT_LEAST_CONSIDERED = 15
SUMMARY = "summary"
FEW = 15  # hits
REST_SHARE = 0.3  # of the floor: what a hit needs where another one fits
MOST_MISSES = 10  # that say why
LINK_HALF_LIFE_DAYS = 30.0
_HALF_STRENGTH = 2.0  # a link of this strength passes on half of a score
_LINK_STEPS = 2  # memories linked to a hit, and those linked to them
_FAINTEST_LINK = 0.1
LINK = "link"  # the factor of a hit that `follow` added

Ranked = TypeVar("Ranked", Scored, Hit)


def best_first(ranked: Sequence[Ranked]) -> list[Ranked]:
    """In order of their scores; of equals, the newer one first."""

    def place(one: Ranked) -> tuple[float, float, str, int]:
        memory = one.found.traits if isinstance(one, Scored) else one.memory
        return -one.score, -memory.created_at.timestamp(), memory.space, -memory.id

    return sorted(ranked, key=place)


def n_considered(limit: int, exact_top: int | None = None) -> int:
    """How many of the best are considered for an answer of at most `limit`; fewer if only the first must be exact."""
    return max(AT_LEAST_CONSIDERED, 3 * limit if exact_top is None else limit + 4 * exact_top)


def rerank(query: str, hits: Sequence[Hit], reranker: Reranker, timeout_s: float) -> tuple[list[Hit], str | None]:
    """The hits in the order that the factor `rerank` gives them, and None; or as they were, and a sentence why."""
    answers: list[Sequence[float]] = []
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            answers.append(reranker(query, hits))
        except BaseException as error:  # perhaps a program's own code, in another thread: reported, never raised
            errors.append(error)

    thread = threading.Thread(target=ask, daemon=True, name="kept-reranker")
    thread.start()
    thread.join(timeout_s)
    if errors:
        return list(hits), f"The reranker failed ({type(errors[0]).__name__}), so hits keep Kept's own order."
    if not answers:
        return list(hits), f"The reranker took longer than {timeout_s * 1000:.0f} ms, so hits keep Kept's own order."
    factors = [float(factor) for factor in answers[0]]
    if len(factors) != len(hits) or not all(isfinite(factor) and factor >= 0 for factor in factors):
        return list(hits), "The reranker did not return one number per hit, so hits keep Kept's own order."
    reranked = [
        replace(hit, score=hit.score * factor, why=hit.why | {"rerank": factor})
        for hit, factor in zip(hits, factors, strict=True)
    ]
    return best_first(reranked), None


class _Bar(Struct, frozen=True, kw_only=True):
    """What a hit needs to be in an answer, also beside better ones."""

    profile: Profile
    top: int  # only so many of the first may be in it
    takes_summaries: bool
    best: Hit | None  # of those that are likely enough; None: no hit is
    nearest: Hit | None  # the likeliest of all

    def misfit(self, rank: int, hit: Hit) -> str | None:
        """Return why a hit cannot be in the answer, or None."""
        confidence = hit.confidence or 0.0
        if hit.memory.kind == SUMMARY and not self.takes_summaries:
            return "a summary of a session; ask for kind summary"
        if self.best is None:
            return f"fits too little: {self._lack(confidence)}{self._nearer(hit)}"
        if confidence < REST_SHARE * self.profile.floor:
            needed = REST_SHARE * self.profile.floor
            return f"too weak next to [id:{self.best.ref}] (confidence {confidence:.2f}, needs {needed:.2g})"
        if rank >= self.top:
            return f"ranked {rank + 1}, beyond the first {self.top}"
        if hit.score < self.profile.threshold_share * self.best.score:
            return f"scored below {self.profile.threshold_share:.0%} of the best, [id:{self.best.ref}]"
        return None

    def _lack(self, confidence: float) -> str:
        return f"confidence {confidence:.2f}, and {self.profile.floor:.2g} is needed"

    def _nearer(self, hit: Hit) -> str:
        """Name the likeliest hit of all, if it is another one."""
        if self.nearest is None or self.nearest is hit:
            return ""
        return f"; {self.nearest.ref} comes nearest, with {self.nearest.confidence or 0.0:.2f}"

    def is_above_floor(self, hit: Hit) -> bool:
        """Return True if the profile has a floor and the hit alone would reach it."""
        return bool(self.profile.floor) and (hit.confidence or 0.0) >= self.profile.floor


def _bar(hits: Sequence[Hit], profile: Profile, *, top: int, takes_summaries: bool) -> _Bar:
    eligible = [hit for hit in hits if takes_summaries or hit.memory.kind != SUMMARY]
    return _Bar(
        profile=profile,
        top=top,
        takes_summaries=takes_summaries,
        best=next((hit for hit in eligible if (hit.confidence or 0.0) >= profile.floor), None),
        nearest=max(eligible, key=lambda hit: hit.confidence or 0.0, default=None),
    )


def _most_of_one_session(profile: Profile, limit: int) -> int | None:
    """Two of five; of forty, a project with one long session may fill half. None: any number."""
    return profile.max_per_session and max(profile.max_per_session, limit // 2 if limit > FEW else 0)


class _Places(Struct):
    """The places of an answer while they are taken."""

    limit: int
    most_of_one: int | None  # of one session; None: any number
    hits: list[Hit] = []
    from_session: Counter[str] = field(default_factory=Counter)

    def take(self, hit: Hit) -> str | None:
        """Give the hit a place, or return why there is none for it."""
        session = hit.memory.source.session or ""
        if len(self.hits) >= self.limit:
            return self.beyond
        if self.is_crowded(session):
            return f"already {self.most_of_one} from session {session}"
        self.hits.append(hit)
        self.from_session[session] += 1
        return None

    @property
    def beyond(self) -> str:
        return f"beyond the limit of {self.limit}"

    def is_crowded(self, session: str) -> bool:
        """Return True if the session has all the places that one session may take."""
        return bool(self.most_of_one and session and self.from_session[session] >= self.most_of_one)


def select(
    hits: Sequence[Hit], profile: Profile, limit: int, *, top: int, takes_summaries: bool = True
) -> tuple[list[Hit], list[Miss]]:
    """Choose the answer, and say what just missed it. `hits` are those considered, in order.

    Only the first `top` may be in the answer. A summary touches on everything that its session did, so it stands among
    facts only if it is asked for.
    """
    bar = _bar(hits, profile, top=top, takes_summaries=takes_summaries)
    places = _Places(limit, _most_of_one_session(profile, limit))
    crowded: list[Hit] = []  # a place that no other session takes is theirs, if they fit well
    misses: list[Miss] = []
    for rank, hit in enumerate(hits):
        reason = bar.misfit(rank, hit)
        if reason is None and (reason := places.take(hit)) and len(places.hits) < limit and bar.is_above_floor(hit):
            crowded.append(hit)
        if reason is not None:
            misses.append(Miss(hit=hit, reason=reason))
    crowded = crowded[: limit - len(places.hits)]
    misses = _give_way(places, misses, bar)
    return best_first([*places.hits, *crowded]), [miss for miss in misses if miss.hit not in crowded]


def _give_way(places: _Places, misses: Sequence[Miss], bar: _Bar) -> list[Miss]:
    """Let the last hits that are not likely by themselves give their places to likely ones beyond the limit."""
    spare = [hit for hit in places.hits if not bar.is_above_floor(hit)]
    left: list[Miss] = []
    for miss in misses:
        if spare and miss.reason == places.beyond and bar.is_above_floor(miss.hit):
            last = spare.pop()
            places.hits[places.hits.index(last)] = miss.hit
            miss = Miss(hit=last, reason=places.beyond)
        left.append(miss)
    return left


def follow(hits: Sequence[Hit], readers: Sequence[Reader], now: datetime, *, limit: int) -> list[Hit]:
    """At most `limit` more hits: live memories that were recalled together with the given ones, and with those."""
    known = {hit.memory.uid for hit in hits}
    spaces = {reader.space: reader for reader in readers}
    brought: list[Hit] = []
    edge = list(hits)
    for _ in range(_LINK_STEPS):
        next_edge: list[Hit] = []
        for hit in edge:
            for linked, strength in _linked(hit.memory, spaces, now):
                if linked.uid in known or linked.is_archived or linked.is_rejected or strength < _FAINTEST_LINK:
                    continue
                known.add(linked.uid)
                share = strength / (strength + _HALF_STRENGTH)
                why = {"linked hit": hit.score, LINK: share}
                matched = {hit.ref: "recalled together"}
                next_edge.append(Hit(memory=linked, score=hit.score * share, why=why, matched=matched))
        brought += next_edge
        edge = next_edge
    brought.sort(key=lambda hit: (-hit.score, hit.memory.space, -hit.memory.id))
    return brought[:limit]


def is_followed(hit: Hit) -> bool:
    """Return True if a link added the hit, and not the query."""
    return LINK in hit.why


def _linked(memory: Memory, spaces: dict[str, Reader], now: datetime) -> Iterator[tuple[Memory, float]]:
    """The memories linked to this one, with what is left of each link: half of it after a month."""
    reader = spaces.get(memory.space)
    if reader is None:
        return
    for related, strength, last_at in reader.links(memory.id):
        if (other := reader.get(Memory, related)) is not None:
            yield other, strength * 0.5 ** (worth.days_between(last_at, now) / LINK_HALF_LIFE_DAYS)
