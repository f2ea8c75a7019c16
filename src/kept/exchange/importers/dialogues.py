"""Dialogues in notes: lines that begin with `user:` and `assistant:` are a conversation, and no statement.

Rule: it takes at least one turn of each side. A single "User: prefers tabs" stays a note.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

Role = Literal["user", "assistant"]
_TURN = re.compile(r"(?:[-*] )?\**(user|human|assistant|agent|ai|bot)\**\s*:\**\s*(.*)", re.IGNORECASE)
_HEADING = re.compile(r"#{1,6}\s")
_USERS = ("user", "human")


class SpokenTurn(Struct, frozen=True, kw_only=True):
    """One side of a dialogue: who spoke, the words, and the line where they begin."""

    role: Role
    content: str
    line: int


class Dialogue(Struct, frozen=True, kw_only=True):
    """A conversation that stands in a note. `session` is the name that it had elsewhere."""

    session: str
    turns: tuple[SpokenTurn, ...]
    at: datetime | None = None


def without_dialogues(text: str, first_line: int = 1) -> tuple[str, list[SpokenTurn]]:
    """Return a text with blank lines in the place of its dialogues, and their turns."""
    lines = text.split("\n")
    turns: list[SpokenTurn] = []
    at = 0
    while at < len(lines):
        end = _end_of_dialogue(lines, at) if _TURN.match(lines[at]) else at
        found = _turns(lines[at:end], first_line + at)
        if {turn.role for turn in found} == {"user", "assistant"}:
            turns += found
            lines[at:end] = [""] * (end - at)
        at = max(end, at + 1)
    return "\n".join(lines), turns


def _end_of_dialogue(lines: Sequence[str], start: int) -> int:
    """Return where a dialogue ends: at a heading, or at a paragraph that no speaker begins."""
    for at in range(start + 1, len(lines)):
        begins = not lines[at - 1].strip() and lines[at].strip() and not lines[at].startswith(" ")
        if _HEADING.match(lines[at]) or (begins and not _TURN.match(lines[at])):
            return at
    return len(lines)


def _turns(lines: Sequence[str], first_line: int) -> list[SpokenTurn]:
    said: list[tuple[Role, list[str], int]] = []
    for number, line in enumerate(lines, first_line):
        if turn := _TURN.match(line):
            said.append(("user" if turn[1].lower() in _USERS else "assistant", [turn[2]], number))
        elif said:
            said[-1][1].append(line)
    return [SpokenTurn(role=role, content="\n".join(words).strip(), line=number) for role, words, number in said]
