"""Reviews: conflicting, duplicate, stale, unused and irrelevant memories that need a decision.

Pure, from the memories, the clock, and recent conversations. Upkeep acts when time decides; here a person or an agent
decides. Rule: a review gives reasons and proposes; it never acts.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal, get_args

from msgspec import Struct

from kept import text, worth
from kept.freshness import UNKNOWN, Look
from kept.model import PROPOSED, TRUSTS, Conflict, Memory, replace
from kept.tables import by_kind

ReviewReason = Literal["global", "conflict", "duplicate", "stale", "unused", "irrelevant", "candidate"]
ReviewAction = Literal["keep", "archive", "wrong", "forget", "supersede", "promote"]
REASONS: tuple[ReviewReason, ...] = get_args(ReviewReason)
ACTIONS: tuple[ReviewAction, ...] = get_args(ReviewAction)

UNUSED_DAYS = 30  # a month of work without a use
TALK_DAYS = 30
LEAST_MESSAGES = 20  # with fewer, nothing can be called irrelevant
COMMON_SHARE = 0.1  # a word in more memories than that says nothing about any of them
LEAST_GIST = 4  # words: of fewer, one that seldom matters may be the point
_LIGHT = frozenset(("is", "are", "be", "been", "being", "gets", "get", "getting", "on", "every", "each"))
_BESIDE = "kept_beside"  # in `data`: the uids of memories that make the same statement, where both are to stay


class Decision(Struct, frozen=True, kw_only=True):
    """What to do with one memory: keep, archive, forget or promote it, or let it be superseded `by` another.

    `wrong` archives it as wrong or outdated: its statement is not stored again unasked.
    """

    action: ReviewAction
    ref: str
    by: str | None = None

    def __str__(self) -> str:
        return f"{self.action}:{self.ref}" + (f"={self.by}" if self.by else "")


class ReviewFinding(Struct, frozen=True, kw_only=True):
    """A memory to decide about, why, and a proposal; `beside` is the memory that it repeats or contradicts."""

    memory: Memory
    beside: Memory | None = None
    conflict: str | None = None
    reasons: tuple[ReviewReason, ...]
    detail: str
    proposed: Decision

    @property
    def ref(self) -> str:
        return self.memory.ref


class Talk(Struct, frozen=True):
    """Recent conversation: its words, and the number of its messages."""

    words: frozenset[str] = frozenset()
    messages: int = 0

    def leaves_out(self, words: frozenset[str]) -> bool:
        """Return True if there was enough talk, and none of these words came up in it."""
        return self.messages >= LEAST_MESSAGES and bool(words) and words.isdisjoint(self.words)


class Telling(Struct, frozen=True):
    """How often agents were told a memory without asking, as far as receipts are kept, and when last."""

    times: int
    last: datetime


class ReviewRules(Struct, frozen=True, kw_only=True):
    """The settings that a review judges by, the memories that are guards, and how often each was told, by uid."""

    shelf_life_days: Mapping[str, int]
    guards: Collection[str] = ()
    told: Mapping[str, Telling] = {}


def review(
    memories: Sequence[Memory],
    conflicts: Sequence[Conflict],
    talk: Talk,
    now: datetime,
    rules: ReviewRules,
    look: Look = lambda _: UNKNOWN,
    *,
    rivals: Sequence[Memory] = (),
) -> list[ReviewFinding]:
    """Find everything to decide about: proposals, contradictions, repetitions, then the rest, worth least first.

    Memories whose code is gone come before the rest, and those whose code has changed last. `rivals` are memories of
    another space that these contradict.
    """
    proposals = [_proposal(memory) for memory in memories if PROPOSED in memory.tags]
    asked = _uids_of(proposals)
    found = list(_one_at_a_time([*_contradictions([*memories, *rivals], conflicts), *_repetitions(memories)]))
    in_pairs = _uids_of(found)
    outdated, altered = _of_code(_besides(memories, asked | in_pairs), look)
    judged = asked | in_pairs | _uids_of(outdated)
    alone = _alone(_besides(memories, judged), _telling_words(memories), talk, now, rules)
    judged |= _uids_of(alone)
    unconfirmed = [_candidate(memory) for memory in _besides(memories, judged) if _is_unconfirmed(memory)]
    judged |= _uids_of(unconfirmed)
    altered = [finding for finding in altered if finding.memory.uid not in judged]
    pairs = [finding for finding in found if finding.memory.uid not in asked]
    return [*proposals, *pairs, *outdated, *alone, *unconfirmed, *altered]


def _besides(memories: Sequence[Memory], judged: Collection[str]) -> list[Memory]:
    return [memory for memory in memories if memory.uid not in judged]


def _alone(
    memories: Sequence[Memory], telling: Mapping[str, frozenset[str]], talk: Talk, now: datetime, rules: ReviewRules
) -> list[ReviewFinding]:
    """Return the stale, unused and irrelevant memories, worth least first. No pin and no guard is one of these."""
    rest = [memory for memory in memories if memory.status != "pinned" and memory.uid not in rules.guards]
    found = [finding for memory in rest if (finding := _examine(memory, telling[memory.uid], talk, now, rules))]
    return sorted(found, key=lambda finding: (worth.decayed_importance(finding.memory, now), finding.memory.id))


def _of_code(memories: Sequence[Memory], look: Look) -> tuple[list[ReviewFinding], list[ReviewFinding]]:
    """Return the memories whose code or branch is gone, and those whose code has changed since they were written."""
    gone: list[ReviewFinding] = []
    changed: list[ReviewFinding] = []
    for memory in memories:
        found = look(memory)
        if found.notes and found.state != "moved":
            is_over = found.state != "changed"
            action: ReviewAction = "archive" if is_over and memory.status != "pinned" else "keep"
            decision = Decision(action=action, ref=memory.ref)
            one = ReviewFinding(memory=memory, reasons=("stale",), detail=found.note, proposed=decision)
            (gone if is_over else changed).append(one)
    return gone, changed


def _uids_of(findings: Sequence[ReviewFinding]) -> set[str]:
    """Return the uids of all memories that the findings speak of."""
    return {one.uid for finding in findings for one in (finding.memory, finding.beside) if one is not None}


def _telling_words(memories: Sequence[Memory]) -> dict[str, frozenset[str]]:
    """Map each memory to its words, without those that many of the memories have."""
    words = {memory.uid: frozenset(text.words(memory.content)) for memory in memories}
    held_by = Counter(word for own in words.values() for word in own)
    common = {word for word, number in held_by.items() if number > max(5.0, COMMON_SHARE * len(words))}
    return {uid: own - common for uid, own in words.items()}


def _is_unconfirmed(memory: Memory) -> bool:
    """Return True if a statement waits for a yes. A tool's or a stranger's is quoted, and needs none unless a person
    has imported it.
    """
    is_stated = memory.tier != "task" and memory.kind != "summary"
    return memory.status == "candidate" and is_stated and (not memory.is_low_trust or _is_imported(memory))


def _is_imported(memory: Memory) -> bool:
    return memory.source.origin in ("import", "migration")


def _candidate(memory: Memory) -> ReviewFinding:
    said = "an agent said so, and nobody has confirmed it yet"
    if _is_imported(memory):
        said = "it was imported, and nobody has confirmed it yet"
    elif memory.trust == "user":
        said = "it was taken from what you said, and may have been meant for that moment only"
    return ReviewFinding(
        memory=memory,
        reasons=("candidate",),
        detail=said,
        proposed=Decision(action="keep", ref=memory.ref),
    )


def _proposal(memory: Memory) -> ReviewFinding:
    return ReviewFinding(
        memory=memory,
        reasons=("global",),
        detail="an agent proposes it for all projects; promote:… moves it into global memory, keep:… leaves it here",
        proposed=Decision(action="promote", ref=memory.ref),
    )


def _one_at_a_time(pairs: Sequence[ReviewFinding]) -> Iterator[ReviewFinding]:
    """The findings that can all be decided as proposed: no memory goes twice, or in favour of one that goes."""
    going: set[str] = set()
    staying: set[str] = set()
    for finding in pairs:
        if finding.beside is None or finding.memory.uid in staying or {finding.memory.uid, finding.beside.uid} & going:
            continue
        going.add(finding.memory.uid)
        staying.add(finding.beside.uid)
        yield finding


def _contradictions(memories: Sequence[Memory], conflicts: Sequence[Conflict]) -> Iterator[ReviewFinding]:
    known = {memory.uid: memory for memory in memories}
    for conflict in conflicts:
        sides = [known[uid] for uid in (conflict.left, conflict.right) if uid in known]
        if conflict.resolved_at is None and len(sides) == 2:
            loser, winner = sorted(sides, key=_authority)
            yield ReviewFinding(
                memory=loser,
                beside=winner,
                conflict=conflict.ref,
                reasons=("conflict",),
                detail=f"{'contradicts' if conflict.type != 'ambiguous' else 'may contradict'} [id:{winner.ref}]",
                proposed=Decision(action="supersede", ref=loser.ref, by=winner.ref),
            )


def _person_rank(memory: Memory) -> int:
    """Rank the words of the user before those of a teammate, and both before all others."""
    return max(TRUSTS.index(memory.trust), TRUSTS.index("agent"))


def _authority(memory: Memory) -> tuple[bool, int, datetime, int]:
    """Which of two is believed: a pinned one, then a person before an agent, then the later word."""
    said_at = max(memory.created_at, memory.verified_at or memory.created_at)
    return memory.status == "pinned", _person_rank(memory), said_at, memory.id


def _repetitions(memories: Sequence[Memory]) -> Iterator[ReviewFinding]:
    """Find memories that make the same statement as a better one. Pairs that a person kept are left out."""
    same: defaultdict[tuple[str, ...], list[Memory]] = defaultdict(list)
    for memory in memories:
        same[_gist(memory.content)].append(memory)
    for alike in same.values():
        best_first = sorted(alike, key=_standing, reverse=True)
        for place, worse in enumerate(best_first):
            better = next((one for one in best_first[:place] if not _are_settled(one, worse)), None)
            if better is not None:
                yield ReviewFinding(
                    memory=worse,
                    beside=better,
                    reasons=("duplicate",),
                    detail=f"says the same as [id:{better.ref}], in nearly the same words",
                    proposed=Decision(action="supersede", ref=worse.ref, by=better.ref),
                )


def _gist(content: str) -> tuple[str, ...]:
    """Return the words of a statement, in order, without those that seldom change its meaning.

    Looser than the write path: a person decides about a pair. Names, numbers, verbs, a "not", a "was", "only",
    "to" and "from" all count, and so does the order.
    """
    said = text.statement(content)
    gist = tuple(word for word in said if word not in _LIGHT)
    return gist if len(gist) >= LEAST_GIST else said


def kept_beside(memory: Memory, memories: Sequence[Memory]) -> Memory:
    """The memory with a mark that it is to stay beside all those that say the same now: no review asks again."""
    said = _gist(memory.content)
    alike = [one.uid for one in memories if one.uid != memory.uid and _gist(one.content) == said]
    known = (memory.data or {}).get(_BESIDE, [])
    if not set(alike) - set(known):
        return memory
    return replace(memory, data={**(memory.data or {}), _BESIDE: [*dict.fromkeys((*known, *alike))]})


def _are_settled(left: Memory, right: Memory) -> bool:
    return right.uid in (left.data or {}).get(_BESIDE, ()) or left.uid in (right.data or {}).get(_BESIDE, ())


def _standing(memory: Memory) -> tuple[bool, int, int, int, datetime, int]:
    """Which of two that say the same is the one to keep."""
    return (
        memory.status == "pinned",
        _person_rank(memory),
        memory.feedback,
        memory.use_count,
        memory.created_at,
        memory.id,
    )


def _examine(
    memory: Memory, words: frozenset[str], talk: Talk, now: datetime, rules: ReviewRules
) -> ReviewFinding | None:
    """Judge whether one memory is stale, unused or irrelevant."""
    looked_at = max(memory.created_at, memory.updated_at, memory.verified_at or memory.created_at)
    told = rules.told.get(memory.uid)
    last_told = told.last if told else None
    needed = [at for at in (looked_at, memory.last_hit_at, memory.last_used_at, last_told) if at is not None]
    idle_days, unseen_days = int(worth.days_between(max(needed), now)), int(worth.days_between(looked_at, now))
    shelf_life = by_kind(rules.shelf_life_days, memory.kind)
    found: dict[ReviewReason, str] = {}
    if idle_days > shelf_life:
        found["stale"] = f"not used or confirmed for {idle_days} days; the shelf life of its kind is {shelf_life} days"
    if memory.use_count == 0 and memory.feedback <= 0 and unseen_days > UNUSED_DAYS:
        found["unused"] = _unused(told, unseen_days, now)
    if min(unseen_days, idle_days) > TALK_DAYS and talk.leaves_out(words):
        found["irrelevant"] = f"none of its words came up in the last {TALK_DAYS} days"
    if not found:
        return None
    return ReviewFinding(
        memory=memory,
        reasons=tuple(found),
        detail="; ".join(found.values()),
        proposed=Decision(action="archive" if _is_to_go(memory, found) else "keep", ref=memory.ref),
    )


def _unused(told: Telling | None, unseen_days: int, now: datetime) -> str:
    """Say that a memory was not used; of one that agents were told, that it was never called helpful."""
    if told is None:
        return f"never used in {unseen_days} days"
    times = "once" if told.times == 1 else f"{told.times} times"
    days = int(worth.days_between(told.last, now))
    last = "" if told.times == 1 else ", last"
    when = "today" if days == 0 else "yesterday" if days == 1 else f"{days} days ago"
    return f"told {times}{last} {when}; never marked as helpful"


def _is_to_go(memory: Memory, found: Collection[ReviewReason]) -> bool:
    """Return True if the reasons are enough to archive the memory.

    One that was stored on purpose may be unused, or unspoken of, by chance: archiving it takes both.
    """
    if "stale" in found or len(found) > 1:
        return True
    return "unused" in found and worth.is_automatic(memory) and memory.trust != "user"
