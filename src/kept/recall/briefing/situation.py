"""Collect the material of a briefing: the memories that could be told in a situation, each with why it is there.

Between recall, which answers the prompt, and `compose`, which decides what fits. Rule: best first in every section,
because the last ones are dropped first when room is short.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from math import prod

from msgspec import Struct

from kept import text, worth
from kept.model import GLOBAL, Entry, LeftOut, Memory, Recalled
from kept.ports import Reader, Where
from kept.recall import Request
from kept.recall.briefing.render import Pair
from kept.recall.pipeline import open_conflicts, pinned
from kept.recall.score import file_affinity
from kept.settings import Settings
from kept.tables import PROFILES, by_kind

MOST_RECALLED = 40
EXACT_TOP = 5  # of those; the others may be nearly the best
MOST_OF_A_TIER = 20  # of those: the budget lets fewer through, and no tier may push another out before that
MOST_FROM_OTHERS = 50
MOST_OF_TASK = 20
MOST_ABOUT_FILES = 5
MOST_SUMMARIES = 3
NEWEST = 100  # without a prompt, the worthiest of these are told


class Situation(Struct, frozen=True, kw_only=True):
    """The agent to be briefed, its prompt, and the session and task it works in."""

    agent: str
    prompt: str = ""
    files: tuple[str, ...] = ()
    session: str | None = None
    seen_by: str | None = None  # as in a `Request`
    task: str | None = None
    head_tail: int = 0


def question_of(situation: Situation) -> Request:
    """The question whose answer goes into the section `retrieval`."""
    return Request(
        query=situation.prompt,
        limit=MOST_RECALLED,
        exact_top=EXACT_TOP,
        files=situation.files,
        seen_by=situation.seen_by,
    )


class Material(Struct, frozen=True, kw_only=True):
    """The memories that could be told, best first in each section, and pairs of them that contradict each other."""

    always: Sequence[Entry] = ()
    bridge: Sequence[Entry] = ()
    retrieval: Sequence[Entry] = ()
    summary: Sequence[Entry] = ()
    conflicts: Sequence[Pair] = ()
    left_out: Sequence[LeftOut] = ()


def collect(
    situation: Situation, recalled: Recalled, readers: Sequence[Reader], settings: Settings, now: datetime
) -> Material:
    """Everything that could be told; `recalled` is the answer to the prompt."""
    left_out: list[LeftOut] = []
    if situation.prompt.strip():
        retrieval = list(_fitting_the_prompt(recalled, situation, left_out))
    else:
        retrieval = _worthiest(readers, situation, settings, now)
    retrieval += _about_files(situation, readers)
    retrieval += _of_task(situation.task, readers)
    sections = {
        "always": [Entry(memory=memory, why="pinned") for memory in pinned(readers)],
        "bridge": _from_other_agents(situation, readers),
        "retrieval": ends_first(retrieval, situation.head_tail),
        "summary": _summaries(readers),
    }
    conflicts = _with_rivals(sections, readers)
    return Material(**sections, conflicts=conflicts, left_out=left_out)


def tier_of(memory: Memory) -> str:
    """Whose share a memory takes: a finding of a session belongs to its project."""
    if memory.space == GLOBAL:
        return GLOBAL
    return "project" if memory.tier == "session" else memory.tier


def ends_first(entries: Sequence[Entry], n: int) -> list[Entry]:
    """The n newest and the n oldest before all others; otherwise in the order given."""
    by_age = sorted(entries, key=lambda entry: (entry.memory.created_at, entry.memory.id))
    ends = {entry.ref for entry in (*by_age[:n], *by_age[max(n, len(by_age) - n) :])} if n > 0 else set()
    return sorted(entries, key=lambda entry: entry.ref not in ends)


def _fitting_the_prompt(recalled: Recalled, situation: Situation, left_out: list[LeftOut]) -> Iterator[Entry]:
    of_tier: Counter[str] = Counter()
    for hit in recalled.hits:
        tier = tier_of(hit.memory)
        of_tier[tier] += 1
        if of_tier[tier] > MOST_OF_A_TIER:
            continue
        if reason := _out_of_place(hit.memory, situation):
            left_out.append(LeftOut(ref=hit.ref, reason=reason))
        else:
            words = ", ".join(hit.matched)
            yield Entry(memory=hit.memory, why=f"matches {words}" if words else "fits the prompt")


def _out_of_place(memory: Memory, situation: Situation) -> str | None:
    """Why a memory does not belong in this situation, or None."""
    if memory.tier == "task" and memory.source.task != situation.task:
        return "it belongs to another task"
    if memory.tier == "session" and situation.session is not None and memory.source.session == situation.session:
        return "it was said in this session"
    return None


def _worthiest(readers: Sequence[Reader], situation: Situation, settings: Settings, now: datetime) -> list[Entry]:
    """Without a prompt: of the newest memories, those that recall would weigh most."""
    factors = [
        worth.MEMORY_FACTORS[name] for name in PROFILES[settings.profile].factors if name in worth.MEMORY_FACTORS
    ]

    def weight(memory: Memory) -> float:
        own = by_kind(settings.kind_weights, memory.kind) * file_affinity(memory, situation.files)
        return own * prod(factor(memory, now) for factor in factors)

    newest = [memory for reader in readers for memory in reader.select(Where(seen_by=situation.seen_by), limit=NEWEST)]
    usual = [memory for memory in newest if memory.kind != "summary" and not _out_of_place(memory, situation)]
    ranked = sorted(usual, key=lambda memory: (-weight(memory), memory.uid))
    return [Entry(memory=memory, why="important and recent") for memory in ranked[:MOST_OF_A_TIER]]


def _about_files(situation: Situation, readers: Sequence[Reader]) -> list[Entry]:
    """Memories about the files at hand, whatever the prompt is."""
    found: dict[str, Entry] = {}
    for reader in readers:
        for file in situation.files:
            # Paths are indexed by their words; the longest one leads to few memories.
            longest = max(text.words(file), key=len, default="")
            where = Where(files=(file,), tiers=("session", "project", "global"), seen_by=situation.seen_by)
            for hit in reader.search([longest], where, limit=MOST_ABOUT_FILES, newest=True) if longest else ():
                if hit.memory.kind != "summary":
                    found.setdefault(hit.memory.uid, Entry(memory=hit.memory, why=f"about {file}"))
    return list(found.values())


def _of_task(task: str | None, readers: Sequence[Reader]) -> list[Entry]:
    if task is None:
        return []
    where = Where(task=task, tiers=("task",))
    found = [memory for reader in readers for memory in reader.select(where, limit=MOST_OF_TASK)]
    return [Entry(memory=memory, why=f"of task {task}") for memory in found]


def _from_other_agents(situation: Situation, readers: Sequence[Reader]) -> list[Entry]:
    """Findings of other agents in the same session, newest first."""
    if situation.session is None:
        return []
    where = Where(session=situation.session, tiers=("session",))
    found = [memory for reader in readers for memory in reader.select(where, limit=MOST_FROM_OTHERS)]
    return [
        Entry(memory=memory, why=f"found by {memory.source.agent} in this session")
        for memory in found
        if memory.kind != "summary" and memory.source.agent not in (None, situation.agent)
    ]


def _summaries(readers: Sequence[Reader]) -> list[Entry]:
    """The newest summary of each of the last sessions."""
    where = Where(kinds=("summary",))
    words = text.words("summary")  # kinds are indexed as words
    newest: dict[str, Memory] = {}
    for reader in readers:
        for hit in reader.search(words, where, limit=4 * MOST_SUMMARIES, newest=True):
            newest.setdefault(hit.memory.source.session or hit.memory.uid, hit.memory)
    return [
        Entry(memory=memory, why=f"summary of session {memory.source.session or 'unknown'}")
        for memory in list(newest.values())[:MOST_SUMMARIES]
    ]


def _with_rivals(sections: dict[str, list[Entry]], readers: Sequence[Reader]) -> list[Pair]:
    """Put beside each memory the one that contradicts it, and return the pairs."""
    known = {entry.memory.uid: entry.memory for entries in sections.values() for entry in entries}
    pairs: list[Pair] = []
    for reader in readers:
        for conflict in open_conflicts(reader, known.keys()):
            sides = (conflict.left, conflict.right)
            left, right = (known.get(uid) or next(iter(reader.select(Where(uid=uid), limit=1)), None) for uid in sides)
            if left is None or right is None:  # one was archived or erased: no longer a contradiction
                continue
            pairs.append((left, right))
            for memory, rival in ((left, right), (right, left)):
                if rival.uid not in known:
                    _put_beside(sections, memory, Entry(memory=rival, why=f"contradicts {memory.ref}"))
    return pairs


def _put_beside(sections: dict[str, list[Entry]], memory: Memory, rival: Entry) -> None:
    for entries in sections.values():
        for place, entry in enumerate(entries):
            if entry.memory.uid == memory.uid:
                entries.insert(place + 1, rival)
                return
