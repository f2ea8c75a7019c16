"""Read a message as passages: the paragraphs and list items in which somebody wrote down one thought each.

Used by extraction. Only a speaker's own words are read (`writing.quotes`); code, tables and logs are dropped. Linear
in the text. Rule: Markdown goes, except the marks around code, because
they say where a command begins and ends.
"""

from collections.abc import Iterator

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
    """One paragraph or list item: its sentences, the headings above it, and the nearest label (`topic`)."""

    sentences: tuple[str, ...]
    headings: tuple[str, ...] = ()
    topic: str = ""
    is_item: bool = False

    @property
    def text(self) -> str:
        return " ".join(self.sentences)

    @property
    def subject(self) -> str:
        """What an item that names no subject of its own is about: the nearest item, label or heading above it."""
        return self.topic or next((each for each in reversed(self.headings) if each), "")


def passages(text: str, *, is_long_pasted: bool = False) -> list[Passage]:
    """The passages of a speaker's own words. `is_long_pasted`: of a very long text, only both ends are those."""
    return _read(split(text[:MAX_CHARS], is_long_pasted=is_long_pasted).own)


def noted_passages(text: str) -> list[Passage]:
    """The passages of a host's summary, which programs hand over in a form that is nobody's own words."""
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
        """The paragraph that has just ended."""
        is_item = self.indent >= 0
        text, self.paragraph = self.paragraph, ""
        above = [title for title in self.titles if title]
        parents = [parent for indent, parent in self.parents if indent < self.indent] if is_item else []
        label = self.label if is_item else ""
        topic = parents[-1] if parents else above[-1] if len(above) > 1 else label if above else ""
        headings = (*above, *([label] if label else ()), *filter(None, parents))
        is_label = len(text) <= MAX_LABEL_CHARS and text[-1:] not in ".!?"
        if is_item:
            self.parents = [each for each in self.parents if each[0] < self.indent]
            self.parents.append((self.indent, text.rstrip(":") if is_label else ""))
        else:
            self.label, self.parents = (text.rstrip(":") if is_label else ""), []
        return Passage(tuple(filter(_is_prose, sentences(text, is_prose=True))), headings, topic, is_item)


def _passages(text: str) -> Iterator[Passage]:
    """Lines that belong together, without Markdown.

    A long line without a full stop runs on; any other line is a separate thought, marked by a newline.
    """
    reader = _Reader()
    is_code = False
    for line in [*text.splitlines(), ""]:
        is_fence, marker = bool(compiled(_FENCE).match(line)), compiled(_MARKER).match(line)
        is_code ^= is_fence
        is_indented = line.startswith("    ") and reader.indent < 0
        is_quiet = is_code or is_fence or not line.strip() or (is_indented and not marker)
        is_prose = not is_quiet and (bool(marker) or not compiled(_NOT_PROSE).match(line))
        heading = None if is_quiet else compiled(_HEADING).match(line)
        bold = compiled(_BOLD_LINE).match(line) if is_prose and not marker else None
        if reader.paragraph and (marker or not is_prose or bold):
            yield reader.passage()
        if heading:
            level = len(heading[1])
            title = _plain(heading[2]).rstrip(":")
            reader.titles = [*reader.titles[: level - 1], title, *[""] * (6 - level)]
            reader.label, reader.indent, reader.parents = "", -1, []
        elif bold:
            reader.label, reader.indent, reader.parents = _plain(bold[1]).rstrip(":"), -1, []
        elif is_prose:
            if marker:
                reader.indent = len(line) - len(line.lstrip())
            elif not reader.paragraph and line[:1] not in " \t":
                reader.indent = -1
            runs_on = len(reader.previous) >= WRAPPED_CHARS and reader.previous[-1] not in ".!?:;"
            joint = "" if not reader.paragraph else " " if runs_on else "\n"
            reader.paragraph += joint + _plain(line)
            reader.previous = line.rstrip()


def _plain(line: str) -> str:
    line = compiled(_LINK).sub(r"\1", compiled(_MARKER).sub("", line, count=1))
    if "*" in line or "_" in line:  # the names in code spans keep their underscores
        parts = compiled(f"({_CODE_SPAN})").split(line)
        plain = compiled(_EMPHASIS).sub
        line = "".join(part if number % 2 else plain(r"\2", part) for number, part in enumerate(parts))
    return " ".join(line.split())


def _is_prose(sentence: str) -> bool:
    """Whether it is of sensible length, made of words, and not a line of a program, a log or a table."""
    if not MIN_SENTENCE_CHARS <= len(sentence) <= MAX_SENTENCE_CHARS:
        return False
    words = compiled(_CODE_SPAN).sub("x", sentence)  # what is marked as code may look like code
    odd = compiled(_NOT_LETTERS if len(words) > SHORT_CHARS else r"[\W_](?<! )").findall(words)
    return len(odd) <= 0.4 * (len(words) - words.count(" ")) and sum(map(_ODD_CHARS.__contains__, odd)) <= 4
