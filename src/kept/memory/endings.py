"""Ends of archived statements: the day on which each stopped being true, and its heir: "until 3 Nov (replaced by 42)".

For recall in the archive, questions about the past, and one memory in full. Rule: a statement has ended if a later one
replaced it, or if it was rejected. A repetition that was archived, a promotion and an expiry end nothing.
"""

from contextlib import suppress
from datetime import datetime

from kept import text
from kept.errors import NotFound
from kept.freshness import UNKNOWN, Look, Standing
from kept.memory.context import Context
from kept.model import Memory, Recalled, replace

MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()  # in any locale


class DatedView:
    """Standing of the memories of one call: to the work tree, by `look`, and until when they held.

    `is_past`: they are read as they were, and may have ended since.
    """

    def __init__(self, context: Context, look: Look = lambda _: UNKNOWN, *, is_past: bool = False) -> None:
        self._context, self._look, self._is_past = context, look, is_past

    def __call__(self, memory: Memory) -> Standing:
        standing = self._look(memory)
        if not memory.is_archived and not self._is_past:
            return standing
        return standing._replace(until=_until(self._context, memory))


def dated(context: Context, recalled: Recalled, *, is_past: bool) -> Recalled:
    """Return an answer with the end of each statement that no longer holds. `is_past`: they are read as they were."""
    view = DatedView(context, lambda _: UNKNOWN, is_past=is_past)
    hits = (replace(hit, until=view(hit.memory).until) if hit.message is None else hit for hit in recalled.hits)
    return replace(recalled, hits=tuple(hits))


def _until(context: Context, memory: Memory) -> str:
    """Return the end of a statement in words; "" if it holds, or if it was only put away."""
    now = _find(context, memory.uid)
    if now is None or now.archived_at is None:
        return ""
    if now.reason == "rejected":
        return f"until {_day(now.archived_at, context.now())} (found wrong)"
    heir = _find(context, now.superseded_by) if now.reason == "superseded" else None
    if heir is None or text.statement(heir.content) == text.statement(memory.content):
        return ""
    is_dated = now.created_at <= heir.created_at <= now.archived_at  # else it was imported later, or is older
    ended_at = heir.created_at if is_dated else now.archived_at
    return f"until {_day(ended_at, context.now())} (replaced by {heir.ref})"


def _find(context: Context, uid: str | None) -> Memory | None:
    with suppress(NotFound):
        return None if uid is None else context.find(uid)[1]
    return None


def _day(at: datetime, now: datetime) -> str:
    """Return "3 Nov", or "3 Nov 2025" in another year."""
    at = at.astimezone(now.tzinfo)
    year = "" if at.year == now.year else f" {at.year}"
    return f"{at.day} {MONTHS[at.month - 1]}{year}"
