"""Read a message as passages: paragraphs and list items of one thought each.

Used by extraction. Only a speaker's own words are read (`writing.quotes`); code, tables and logs are dropped. Linear
in the text. Rule: Markdown is removed, except the marks around code, because they show where a command begins and ends.
"""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from kept.text import compiled, sentences
from kept.writing.quotes import split

MAX_CHARS = 40_000  # a longer message is a file
MIN_SENTENCE_CHARS = 3
MAX_SENTENCE_CHARS = 600
SHORT_CHARS = 40  # up to which digits are no sign of a log: "no, port 1100"
MAX_LABEL_CHARS = 70  # of a line that introduces a list, such as "Decisions:"
WRAPPED_CHARS = 60  # a line that is shorter than this was ended, not broken

INTERRUPTED = "[request interrupted"
_FENCE = r"\s{0,3}(?:```|~~~)"
_HEADING = r"(#{1,6}) +([^#\n]{1,200})"
_BOLD_LINE = r"\s*\*\*([^*\n]{2,80})\*\*:?\s*$"
_MARKER = r"^\s*(?:[-*+•✅✓✗]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?"
_NOT_PROSE = (
    r"\s*(?:>|\||#{1,6}\s|[-=*_]{3,}\s*$|\$ |@@|[+-]{3} |\{|\}|//|/\*|<|\[[\w:. -]{1,30}\] |Traceback |File \")"
)
_LINK = r"!?\[([^\[\]\n]{1,200})\]\([^()\s]{1,500}\)"
# In pairs: the underscore of `_test.py` belongs to the name.
_EMPHASIS = r"\*\*|(?<![\w/.])(__|[*_])(?=[^\W_])([^*_\n]{1,80})(?<=[^\W_])\1(?![\w/.(])"
_NOT_LETTERS = r"[\W\d_](?<! )"
_CODE_SPAN = r"`[^`\n]{1,200}`"
_ODD_CHARS = frozenset("{}[]<>=;|\\$~^")


class Passage(Struct, frozen=True):
    """One paragraph or list item: its sentences, and the nearest item, label or heading above it (`subject`)."""

    sentences: tuple[str, ...]
    subject: str = ""
    is_item: bool = False

    @property
    def text(self) -> str:
        return " ".join(self.sentences)


def passages(text: str, *, is_long_pasted: bool = False) -> list[Passage]:
    """Return the passages of a speaker's own words. `is_long_pasted`: of a very long text, only both ends are those."""
    return _read(split(text[:MAX_CHARS], is_long_pasted=is_long_pasted).own)


def noted_passages(text: str) -> list[Passage]:
    """Return the passages of a host's summary, where the form of a document is no sign of pasted text."""
    return _read(text[:MAX_CHARS])


def _read(text: str) -> list[Passage]:
    return [passage for passage in _passages(text) if passage.sentences]


class _Reader:
    """The state of reading lines: headings by level, the label of a list, the items that enclose a nested one."""

    def __init__(self) -> None:
        self.titles = [""] * 6
        self.label = ""
        self.parents: list[tuple[int, str]] = []  # (indentation, text) of the items around the current one
        self.paragraph = self.previous = ""
        self.indent = -1  # of the current item, -1 outside lists

    def passage(self) -> Passage:
        """Return the paragraph that has just ended, and keep its text as a label for the items below it."""
        is_item = self.indent >= 0
        text, self.paragraph = self.paragraph, ""
        around = [parent for indent, parent in self.parents if indent < self.indent]
        above = [*self.titles, *((self.label, *around) if is_item else ())]
        self._keep_as_label(text)
        found = tuple(filter(_is_prose, sentences(text, is_prose=True)))
        return Passage(found, next(filter(None, reversed(above)), ""), is_item)

    def _keep_as_label(self, text: str) -> None:
        is_label = len(text) <= MAX_LABEL_CHARS and text[-1:] not in ".!?"
        label = text.rstrip(":") if is_label else ""
        if self.indent < 0:
            self.label, self.parents = label, []
        else:
            self.parents = [each for each in self.parents if each[0] < self.indent]
            self.parents.append((self.indent, label))

    def open_heading(self, level: int, title: str) -> None:
        self.titles = [*self.titles[: level - 1], title, *[""] * (6 - level)]
        self.open_list("")

    def open_list(self, label: str) -> None:
        self.label, self.indent, self.parents = label, -1, []

    def add(self, line: str, *, is_item: bool) -> None:
        """Add a line to the paragraph. A long line without a full stop runs on; any other is a separate thought."""
        if is_item:
            self.indent = len(line) - len(line.lstrip())
        elif not self.paragraph and line[:1] not in " \t":
            self.indent = -1
        if self.paragraph:
            runs_on = len(self.previous) >= WRAPPED_CHARS and self.previous[-1] not in ".!?:;"
            self.paragraph += " " if runs_on else "\n"
        self.paragraph += _plain(line)
        self.previous = line.rstrip()


def _passages(text: str) -> Iterator[Passage]:
    """Join lines that belong together, without Markdown; a newline parts separate thoughts."""
    reader = _Reader()
    starts_fence = compiled(_FENCE).match
    is_code = False
    for text_line in [*text.splitlines(), ""]:
        is_fence = starts_fence(text_line) is not None
        is_code ^= is_fence
        line = _SILENT if is_code or is_fence else _line_of(text_line, in_list=reader.indent >= 0)
        if reader.paragraph and line.sort != PROSE:
            yield reader.passage()
        if line.sort == HEADING:
            reader.open_heading(line.level, line.text)
        elif line.sort == LABEL:
            reader.open_list(line.text)
        elif line.sort != SILENCE:
            reader.add(text_line, is_item=line.sort == ITEM)


SILENCE, HEADING, LABEL, ITEM, PROSE = range(5)  # sorts of lines


class _Line(NamedTuple):
    sort: int
    text: str = ""  # of a heading or a label
    level: int = 0  # of a heading


_SILENT, _ITEM_LINE, _PROSE_LINE = _Line(SILENCE), _Line(ITEM), _Line(PROSE)


def _line_of(line: str, *, in_list: bool) -> _Line:
    """Return the sort of a line outside code blocks. Blank, indented, quoted and logged lines are silent."""
    if not line.strip():
        return _SILENT
    if compiled(_MARKER).match(line):
        return _ITEM_LINE
    if line.startswith("    ") and not in_list:
        return _SILENT
    if heading := compiled(_HEADING).match(line):
        return _Line(HEADING, _plain(heading[2]).rstrip(":"), len(heading[1]))
    if compiled(_NOT_PROSE).match(line):
        return _SILENT
    bold = compiled(_BOLD_LINE).match(line) if "**" in line else None
    return _Line(LABEL, _plain(bold[1]).rstrip(":")) if bold else _PROSE_LINE


def _plain(line: str) -> str:
    line = compiled(_MARKER).sub("", line, count=1)
    if "](" in line:
        line = compiled(_LINK).sub(r"\1", line)
    if "*" in line or "_" in line:  # the names in code spans keep their underscores
        parts = compiled(f"({_CODE_SPAN})").split(line)
        plain = compiled(_EMPHASIS).sub
        line = "".join(part if number % 2 else plain(r"\2", part) for number, part in enumerate(parts))
    return " ".join(line.split())


def _is_prose(sentence: str) -> bool:
    """Match a sentence of sensible length, made of words, and not a line of a program, a log or a table."""
    if not MIN_SENTENCE_CHARS <= len(sentence) <= MAX_SENTENCE_CHARS:
        return False
    words = compiled(_CODE_SPAN).sub("x", sentence) if "`" in sentence else sentence  # marked code may look like code
    odd = compiled(_NOT_LETTERS if len(words) > SHORT_CHARS else r"[\W_](?<! )").findall(words)
    return len(odd) <= 0.4 * (len(words) - words.count(" ")) and sum(map(_ODD_CHARS.__contains__, odd)) <= 4
