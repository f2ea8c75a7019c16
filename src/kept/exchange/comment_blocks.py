"""Find comments in code, by how they begin: single lines that follow each other, and blocks.

Rule: one pass over the lines, so that no file takes long; a line that is too long is data. A comment inside a string
is none, as far as the string ends on its line.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

MAX_LINE_CHARS = 2_000  # the rest of a longer line is data

_STRINGS = r'"(?:\\.|[^"\\])*+"?|`(?:\\.|[^`\\])*+`?'
_WORDS = r"'(?:\\.|[^'\\])*+'?"  # a string in single quotes
_LETTER = r"'(?:\\.|[^'\\])'"  # a character; in Rust, 'a alone is a lifetime
_OPENING = {
    "//": r"(?<![:\\/])//|(?<![\\/\[\w])/\*",
    "#": r"(?:(?<=\s)|^)#",
    "--": r"(?:(?<=\s)|^)--",
}
_LINE_MARK = {"//": re.compile(r"//+[!]?[ \t]?"), "#": re.compile(r"#+:?[ \t]?"), "--": re.compile(r"--+[ \t]?")}
_DOC_LINE = re.compile(r"///(?!/)|//!")
_DOC_BLOCK = re.compile(r"/\*[*!](?![*/])")


class CommentBlock(NamedTuple):
    """Lines of a comment without their marks; `last` is the line where it ends, `mark` how it begins."""

    line: int
    last: int
    column: int
    mark: str
    lines: list[str]
    is_alone: bool  # no code stands before it

    @property
    def is_doc(self) -> bool:
        """Return True for a doc comment by its mark: `/**`, `///` or `//!`."""
        return bool(_DOC_BLOCK.match(self.mark) or _DOC_LINE.match(self.mark))


def comment_blocks(text: str, mark: str, *, has_lifetimes: bool = False) -> list[CommentBlock]:
    """Return the comments of a text in order; `mark` begins a comment of one line."""
    quotes = _LETTER if has_lifetimes else _WORDS
    opening = re.compile(f"{_STRINGS}|{quotes}|({_OPENING[mark]})")
    return joined_lines(_Scan(mark, opening).read(text))


class _Scan:
    """One pass over the lines of a file."""

    def __init__(self, mark: str, opening: re.Pattern[str]) -> None:
        self._mark, self._opening = mark, opening
        self._open: CommentBlock | None = None

    def read(self, text: str) -> Iterator[CommentBlock]:
        for number, line in enumerate(text.split("\n"), 1):
            yield from self._take(number, line[:MAX_LINE_CHARS].rstrip())
        if self._open is not None:
            yield self._open

    def _take(self, number: int, line: str) -> Iterator[CommentBlock]:
        at = 0
        if self._open is not None:
            head, end, _ = line.partition("*/")
            self._open.lines.append(_without_star(head))
            if not end:
                return
            yield self._open._replace(last=number)
            self._open, at = None, len(head) + 2
        while (found := self._next(line, at)) is not None:
            if line.startswith("/*", found):
                head, end, _ = line[found + 2 :].partition("*/")
                first = head.lstrip("*!").strip()
                column = len(line[:found].expandtabs(4))
                block = CommentBlock(number, number, column, line[found : found + 4], [first], not line[:found].strip())
                if not end:
                    self._open = block
                    return
                yield block
                at = found + 2 + len(head) + 2
            else:
                yield self._line(number, line, found)
                return

    def _next(self, line: str, at: int) -> int | None:
        return next((one.start() for one in self._opening.finditer(line, at) if one[1]), None)

    def _line(self, number: int, line: str, at: int) -> CommentBlock:
        mark = _LINE_MARK[self._mark].match(line, at)
        said = line[mark.end() if mark else at :]
        column = len(line[:at].expandtabs(4))
        return CommentBlock(number, number, column, line[at : at + 4], [said.rstrip()], not line[:at].strip())


def _without_star(line: str) -> str:
    said = line.strip()
    return said[1:].removeprefix(" ") if said.startswith("*") else line.rstrip()


def joined_lines(found: Iterable[CommentBlock]) -> list[CommentBlock]:
    """Join comments of one line that stand below each other."""
    joined: list[CommentBlock] = []
    for block in found:
        before = joined[-1] if joined else None
        goes_on = (
            before is not None
            and not block.mark.startswith("/*")
            and not before.mark.startswith("/*")
            and (block.line, block.column, block.is_doc) == (before.last + 1, before.column, before.is_doc)
            and block.is_alone
        )
        if before is not None and goes_on:
            before.lines.extend(block.lines)
            joined[-1] = before._replace(last=block.last)
        else:
            joined.append(block)
    return joined
