"""Chunks: the text of a file in pieces that can be found and cited, each with its first and last line.

Rule: a piece ends where the text has a natural break (a heading, a definition, a blank line), if one is near enough.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

MAX_CHARS = 1_500
MAX_LINES = 60
MIN_LINES = 8  # before this many lines a break is not taken
MAX_LINE_CHARS = 2_000  # the rest of a longer line is data

_BREAK = re.compile(
    r"#{1,6} |(?:export |public |async |pub |static )*(?:def|class|function|func|fn|interface|struct|impl)\b"
)


class Chunk(NamedTuple):
    """A piece of a file: its text, and the lines it stands in."""

    text: str
    first: int
    last: int


def chunks_of(text: str) -> Iterator[Chunk]:
    """The pieces of a text, without blank ones."""
    lines = text.split("\n")
    piece: list[str] = []
    size, first = 0, 1
    for number, line in enumerate(lines, 1):
        line = line.rstrip()[:MAX_LINE_CHARS]
        is_break = len(piece) >= MIN_LINES and (_BREAK.match(line) or (not line and size > MAX_CHARS // 2))
        if piece and (is_break or size + len(line) > MAX_CHARS or len(piece) >= MAX_LINES):
            yield from _piece(piece, first)
            piece, size, first = [], 0, number
        piece.append(line)
        size += len(line) + 1
    yield from _piece(piece, first)


def _piece(lines: list[str], first: int) -> Iterator[Chunk]:
    while lines and not lines[-1]:
        lines.pop()
    blank = next((n for n, line in enumerate(lines) if line), len(lines))
    if lines[blank:]:
        yield Chunk("\n".join(lines[blank:]), first + blank, first + len(lines) - 1)
