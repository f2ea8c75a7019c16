"""Summarize a session: its request, its memories, and an open end.

Used by extraction. At most five lines, for "what happened last time". Rule: a summary is made of drafts that passed
the filters of extraction, so it holds nothing that could not be a memory.
"""

from collections.abc import Iterable, Sequence
from itertools import filterfalse

from kept.model import PROPOSAL, Draft

MAX_LINES = 5
MAX_LINE_CHARS = 240
ASKED = "- Asked: "  # how the line of the request begins
_FIRST = ("decision", "preference", "warning", "architecture", "discovery", "convention", "fact", "error")


def summary_of(asked: str, drafts: Sequence[Draft]) -> str:
    """Return the request, the most important drafts, and an open end, as a list; empty if there is nothing."""
    is_kept = any(_bare(draft.content) == _bare(asked) for draft in drafts)
    lines = [f"Asked: {cut(asked)}"] if asked and not is_kept else []
    open_ends = list(filter(is_open, drafts))[:1]
    others = list(filterfalse(is_open, drafts))[::-1]
    others.sort(key=rank)  # of two alike the later one comes first
    lines += [cut(draft.content) for draft in others[: MAX_LINES - len(lines) - len(open_ends)]]
    lines += [f"Open: {cut(draft.content)}" for draft in open_ends]
    return "\n".join(f"- {line}" for line in _once(lines))


def is_open(draft: Draft) -> bool:
    return "open" in draft.tags


def rank(draft: Draft) -> tuple[bool, float, int]:
    """Order drafts: first those that are told without a judge, then by importance."""
    is_users = draft.source is not None and draft.source.origin == "conversation"
    worth = (draft.importance or 0.0) + is_users
    return (PROPOSAL in draft.tags, -worth, _FIRST.index(draft.kind) if draft.kind in _FIRST else len(_FIRST))


def _once(lines: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(lines))


def _bare(line: str) -> str:
    return line.strip(" .!").casefold()


def cut(line: str) -> str:
    """Cut the line after a word if it is too long."""
    line = " ".join(line.split())
    if len(line) <= MAX_LINE_CHARS:
        return line
    return f"{line[:MAX_LINE_CHARS].rsplit(' ', 1)[0].rstrip(',;:')} …"
