"""Proposals: what the rules took from a conversation and nobody has judged yet.

A finding says its sort in `data["sort"]`. The sorts of TOLD are told without a judge; every other finding has the tag
PROPOSAL until it is judged, used, or said in a second session.
"""

from datetime import datetime

from msgspec import Struct

from kept.model import PROPOSAL as PROPOSAL
from kept.model import Memory, replace

STANDING_ORDER = "standing order"
COMMAND = "command that works"
FIX = "error with its fix"
TWICE = "said in two sessions"
ABOUT_SELF = "chat: about themselves"
CHANGE = "change of something told"
EVIDENT = "finding with strong evidence"
STATEMENT = "statement"
FINDING = "finding"
TOLD = frozenset({STANDING_ORDER, COMMAND, FIX, TWICE, ABOUT_SELF, CHANGE, EVIDENT})
SETTLED = "judged"  # in `data` of a finding or a summary: what a judge decided
DROPPED = "dropped"
FADE_DAYS = 30  # a proposal that nobody judges in that time is archived


def told_as(memory: Memory, sort: str) -> Memory:
    """Return a finding as one that is told without a judge."""
    tags = tuple(tag for tag in memory.tags if tag != PROPOSAL)
    return replace(memory, tags=tags, data=(memory.data or {}) | {"sort": sort})


def is_rejected(memory: Memory) -> bool:
    """Return True for a statement that a judge has dropped."""
    return memory.is_forgotten and (memory.data or {}).get(SETTLED) == DROPPED


def corroborated(memory: Memory) -> Memory:
    """Return a proposal that two sessions have said as one that is told; any other memory as it is."""
    if PROPOSAL not in memory.tags or len(set((memory.data or {}).get("sessions", ()))) < 2:
        return memory
    return told_as(memory, TWICE)


class Proposal(Struct, frozen=True, kw_only=True):
    """A numbered proposal of a session, with what a judge needs to decide: who said it, when, and what it is about."""

    n: int
    text: str
    ref: str
    sort: str
    kind: str
    who: str  # user or agent
    said_at: datetime
    files: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    is_told: bool = False  # without a judge
    beside: int | None = None  # for a stored memory: the number of the proposal that may replace it


def proposals_in(memories: list[Memory]) -> list[Proposal]:
    """Number the findings of a session in the order in which they were said."""
    found = sorted(memories, key=lambda one: (one.created_at, one.id))
    return [
        Proposal(
            n=number,
            text=one.content,
            ref=one.ref,
            sort=str((one.data or {}).get("sort", FINDING)),
            kind=one.kind,
            who="user" if one.source.origin == "conversation" else "agent",
            said_at=one.created_at,
            files=one.files,
            names=tuple(tag for tag in one.tags if tag not in (PROPOSAL, "correction", "open", "command", "fix")),
            is_told=not one.is_proposal,
        )
        for number, one in enumerate(found, 1)
    ]
