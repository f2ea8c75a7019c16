"""The summary of a session: what was kept of it, and what is open.

Used by extraction. At most five lines, for "what happened last time". Rule: a summary has no source of its own. It is
made of what the same filters let through, so nothing gets into it that could not be a memory.
"""

from collections.abc import Iterable, Sequence

from kept.model import Draft

MAX_LINES = 5
MAX_LINE_CHARS = 240
_FIRST = ("decision", "preference", "warning", "architecture", "discovery", "convention", "fact", "error")


def summary_of(asked: str, drafts: Sequence[Draft]) -> str:
    """What was asked for, the most important of what was kept, and what is open; empty if nothing was."""
    is_kept = any(_bare(draft.content) == _bare(asked) for draft in drafts)
    lines = [f"Asked: {_cut(asked)}"] if asked and not is_kept else []
    is_open = [draft for draft in drafts if "open" in draft.tags]
    told = sorted((draft for draft in drafts if "open" not in draft.tags), key=_rank)
    room = MAX_LINES - len(lines) - min(len(is_open), 1)
    lines += [_cut(draft.content) for draft in told[:room]]
    lines += [f"Open: {_cut(draft.content)}" for draft in is_open[:1]]
    return "\n".join(f"- {line}" for line in _once(lines))


def _rank(draft: Draft) -> tuple[float, int]:
    is_users = draft.source is not None and draft.source.origin == "conversation"
    return (-(draft.importance or 0.0) - is_users, _FIRST.index(draft.kind) if draft.kind in _FIRST else len(_FIRST))


def _once(lines: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(lines))


def _bare(line: str) -> str:
    return line.strip(" .!").casefold()


def _cut(line: str) -> str:
    """The line, or its beginning up to a word's end."""
    line = " ".join(line.split())
    if len(line) <= MAX_LINE_CHARS:
        return line
    return f"{line[:MAX_LINE_CHARS].rsplit(' ', 1)[0].rstrip(',;:')} …"
