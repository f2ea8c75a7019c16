"""Describe the situation that a briefing is for, and tell which memories belong in it.

First step of `collect`. Rule: nothing is told that only reports finished work.
"""

from collections.abc import Set
from datetime import datetime

from msgspec import Struct

from kept import text
from kept.freshness import UNKNOWN, Look
from kept.model import GLOBAL, NOTE_OF, Memory

MOST_FITTING = 6  # memories that fit the prompt
MOST_OF_A_TIER = 20  # of those: the budget lets fewer through, and no tier may push another out before that
# Work that was done once. The repository knows it better.
_REPORTS = frozenset({"file_change", "tool_output", "reasoning"})
UNJUDGED = "nobody has judged it yet"
GONE = "the code that it is about is gone"
OWN_INDEX = "the agent has it in the index of its own memory"
SHOW_AN_INDEX = ("claude-code", "qwen", "gemini")  # agents that show their own notes at a start
_COMMITTED = text.pattern(r"Committed: ")


class Situation(Struct, frozen=True, kw_only=True):
    """The agent to be briefed, its prompt, and the session and task it works in."""

    agent: str
    prompt: str = ""
    files: tuple[str, ...] = ()
    session: str | None = None
    seen_by: str | None = None  # as in a `Request`
    since: datetime | None = None  # when the session began, if it is known here
    is_compacted: bool = False  # the agent may no longer have before it what was said in the session
    is_turn: bool = False  # nothing was told before: preferences come along, and the open tasks stand beside it
    task: str | None = None
    head_tail: int = 0
    is_judged: bool = False  # a judge settles findings, so other sessions are not told them before
    floor: str | None = None  # as in a `Request`
    most_fitting: int = MOST_FITTING
    # For a text that the agent did not ask for: the moment, and the state of its context.
    moment: str = ""
    told: Set[str] = frozenset()  # marks of memories and lines
    is_started: bool = False
    is_brief: bool = False  # a few lines: standing rules at a start, the best that fit at a prompt
    look: Look = lambda _: UNKNOWN  # how the code of a memory stands to the work tree

    @property
    def has_prompt(self) -> bool:
        return bool(self.prompt.strip())


def tier_of(memory: Memory) -> str:
    """Whose share a memory takes: a finding of a session belongs to its project."""
    if memory.space == GLOBAL:
        return GLOBAL
    return "project" if memory.tier == "session" else memory.tier


def is_worth_telling(memory: Memory) -> bool:
    """Return True if a memory says more than that something was done; summaries have a section of their own."""
    if memory.is_rejected:
        return False
    return memory.kind not in _REPORTS and memory.kind != "summary" and not _COMMITTED.match(memory.content)


def out_of_place(memory: Memory, situation: Situation) -> str | None:
    """Why a memory does not belong in this situation, or None."""
    if memory.tier == "task" and memory.source.task != situation.task:
        return "it belongs to another task"
    is_own = situation.session is not None and memory.source.session == situation.session
    if memory.tier == "session" and is_own and not situation.is_compacted:
        return "it was said in this session"
    if situation.is_judged and memory.is_proposal and not is_own:
        return UNJUDGED
    return _not_told(memory, situation)


def _not_told(memory: Memory, situation: Situation) -> str | None:
    """Return why a memory that belongs here is still not told, or None."""
    if memory.is_rejected:
        return "a person decides about it first"
    if is_in_own_index(memory, situation):
        return OWN_INDEX
    return GONE if is_gone(memory, situation) else None


def is_in_own_index(memory: Memory, situation: Situation) -> bool:
    """Return True at a start for a note of this very agent: its host begins each session with an index of them."""
    host = (memory.data or {}).get(NOTE_OF)
    is_shown = host in SHOW_AN_INDEX and host == situation.agent and memory.status != "pinned"
    return is_shown and situation.moment == "start"


def is_gone(memory: Memory, situation: Situation) -> bool:
    """Return True if a memory is not told at a prompt, because the code that it is about is no longer there."""
    return situation.has_prompt and memory.status != "pinned" and situation.look(memory).state == "gone"
