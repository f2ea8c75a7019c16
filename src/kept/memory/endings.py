"""When archived statements stopped being true, and what replaced them: "until 3 Nov (replaced by 42)".

For recall in the archive, questions about the past, and one memory in full. Rule: a statement has ended if a later one
replaced it, or if it was rejected. A repetition that was archived, a promotion and an expiry end nothing.
"""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

from kept import text
from kept.errors import NotFound
from kept.freshness import UNKNOWN, Look, Standing
from kept.memory.context import Context
from kept.model import Hit, Memory, replace

MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()  # in any locale


class DatedView:
    """How the memories of one call stand to the work tree, by `look`, and until when they held.

    `is_past`: they are read as they were, and may have ended since.
    """

    def __init__(self, context: Context, look: Look = lambda _: UNKNOWN, *, is_past: bool = False) -> None:
        self._context, self._look, self._is_past = context, look, is_past

    def __call__(self, memory: Memory) -> Standing:
        standing = self._look(memory)
        if not memory.is_archived and not self._is_past:
            return standing
        return standing._replace(until=_until(self._context, memory))

    def dated(self, hits: Iterable[Hit]) -> tuple[Hit, ...]:
        """Return hits with the end of those that no longer hold."""
        return tuple(replace(hit, until=self(hit.memory).until) if hit.message is None else hit for hit in hits)


def _until(context: Context, memory: Memory) -> str:
    """Return the end of a statement in words; "" if it holds, or if it was only put away."""
    now = _find(context, memory.uid)
    if now is None or now.is_forgotten or now.reason not in ("superseded", "rejected") or now.archived_at is None:
        return ""
    heir = _find(context, now.superseded_by) if now.superseded_by else None
    if now.reason == "rejected":
        return f"until {_day(now.archived_at, context.now())} (found wrong)"
    if heir is None:
        return f"until {_day(now.archived_at, context.now())} (replaced)" if now.superseded_by else ""
    if text.statement(heir.content) == text.statement(memory.content):
        return ""
    is_dated = now.created_at <= heir.created_at <= now.archived_at  # else it was imported later, or is older
    ended_at = heir.created_at if is_dated else now.archived_at
    return f"until {_day(ended_at, context.now())} (replaced by {heir.ref})"


def _find(context: Context, uid: str) -> Memory | None:
    with suppress(NotFound):
        return context.find(uid)[1]
    return None


def _day(at: datetime, now: datetime) -> str:
    """Return "3 Nov", or "3 Nov 2025" in another year."""
    at = at.astimezone(now.tzinfo)
    year = "" if at.year == now.year else f" {at.year}"
    return f"{at.day} {MONTHS[at.month - 1]}{year}"
