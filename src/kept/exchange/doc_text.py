"""Read reStructuredText, docstrings and doc comments as blocks of plain text.

These texts mix markups: directives and roles of Sphinx, headings and fences of Markdown, tags of JSDoc and Javadoc,
sections of Google and NumPy style. One reader knows all of them, line by line. Rule: code, tables, and lists of
parameters, results and examples are left out, with everything that is indented below them.
"""

import html
import re
from collections.abc import Sequence
from typing import NamedTuple

from kept.exchange.items import CitedItem, distinct, make
from kept.exchange.prose_rules import TextBlock, is_about_others, item_of

_FENCE = re.compile(r"(```|~~~)")
_TAG = re.compile(r"@(\w+)\b\s*(.*)")
_DIRECTIVE = re.compile(r"\.\. +([\w:.+-]{1,40})::(?: +(.*))?$")
_LEFT_OUT = re.compile(r"\.\.(?: |$)|:[^:`\s][^:`]{0,60}:(?:\s|$)")  # a comment or a field of reStructuredText
_UNDERLINE = re.compile(r"([=\-~^\"'#*+`:.<>_])\1{2,}$")
_HEADING = re.compile(r"#{1,6} +(.*)")
_BULLET = re.compile(r"(?:[-*+•]|\d{1,3}[.)]|\(\d{1,2}\)|<li>)\s+")
_NOT_TEXT = re.compile(rf"[|+](?:[-=+ |]|$)|[-=]{{2,}}(?: +[-=]{{2,}})+$|{_UNDERLINE.pattern}")  # tables, rules
_PROMPT = re.compile(r">>>|\.\.\. |\$ |%|import \w|from \w+ import")
_BREAK = re.compile(r"</?(?:p|ul|ol|dl|dd|dt|br|div|table|tr|blockquote)\b[^>]{0,80}>", re.IGNORECASE)
_PRE = re.compile(r"<(?:pre|table|code block)\b", re.IGNORECASE)
_PRE_END = re.compile(r"</(?:pre|table)>", re.IGNORECASE)
_SECTION = re.compile(
    r"(?:args|arguments|parameters|params|attributes|returns?|yields?|raises|throws|examples?|usage|example usage|see"
    r" also|references|other parameters|methods|keyword args|fields|todo|errors|links?|authors?|versions?)\s*:?$",
    re.IGNORECASE,
)

# Directives and sections whose text is a note.
_LEADS = {
    name: name.capitalize()
    for name in "note warning caution important danger attention tip hint deprecated panics safety".split()
}
_LEADS["admonition"] = "Note"
# Directives that describe a thing: its name, and below it the meaning.
_OBJECTS = frozenset(
    "data function class method attribute exception decorator module option envvar confval setting variable config"
    " describe object property classmethod staticmethod".split()
)
_NAME = re.compile(r"(?:[a-z]+ )*([\w.:/-]{2,80})")

_ROLE = re.compile(r"(?::[\w:.+-]{1,40}:)?`([^`\n]{1,200})`(?:__?)?")
_TARGET = re.compile(r"\s*<[^<>]{0,200}>$")
_INLINE_TAG = re.compile(r"\{@\w+\s+([^{}\n]{0,200})\}")
_MARKDOWN_LINK = re.compile(r"!?\[([^\[\]\n]{1,200})\](?:\([^()\n]{1,300}\)|\[[^\[\]\n]{0,200}\])")
_HTML = re.compile(
    r"</?(?:p|br|code|tt|a|b|i|em|strong|ul|ol|li|dl|dt|dd|h\d|span|div|sub|sup|blockquote|pre)\b[^<>]{0,200}>",
    re.IGNORECASE,
)
_EMPHASIS = re.compile(r"(?<![\w*])\*{1,2}(?=\S)([^*\n]{1,200})(?<=\S)\*{1,2}(?![\w*])")
CODE_INDENT = 4


class Part(NamedTuple):
    """An indented part of a text: everything deeper than `indent` belongs to it."""

    indent: int
    lead: str = ""
    subject: str = ""
    is_left_out: bool = False
    is_tag: bool = False


def items_of(path: str, text: str) -> list[CitedItem]:
    """Return the items of a reStructuredText file."""
    if is_about_others(path):
        return []
    return distinct(_item(block) for block in blocks_of(text.split("\n")))


def _item(block: TextBlock) -> CitedItem | None:
    if block.term:  # a directive that describes a thing
        return make("entity", f"{block.term}: {block.text}", block.line, 0.7)
    return item_of(block)


def blocks_of(lines: Sequence[str], first_line: int = 1, subject: str = "") -> list[TextBlock]:
    """Return the paragraphs and list entries of a text, without code, tables and lists of parameters."""
    reading = _Reading(subject)
    for number, line in enumerate(lines, first_line):
        reading.take(number, line.expandtabs(4).rstrip())
    reading.flush()
    return reading.blocks


def plain(text: str) -> str:
    """Return a text without inline markup."""
    text = _INLINE_TAG.sub(lambda tag: tag[1].split("#")[-1], text)
    text = text.replace("``", "`")
    text = _ROLE.sub(_role_text, text)
    text = _MARKDOWN_LINK.sub(lambda link: link[1], text)
    text = _EMPHASIS.sub(lambda stressed: stressed[1], text)
    return " ".join(html.unescape(_HTML.sub(" ", text)).split())


def _role_text(role: re.Match[str]) -> str:
    said = _TARGET.sub("", role[1]) or role[1]
    return said.rsplit(".", 1)[-1] if said.startswith("~") else said.lstrip("!.")


class _Reading:
    """The blocks so far, the lines of the next one, and the parts around it."""

    def __init__(self, subject: str) -> None:
        self.blocks: list[TextBlock] = []
        self._subject = subject
        self._headings: list[tuple[str, str]] = []  # the kind of underline, and the title
        self._parts: list[Part] = []
        self._lines: list[str] = []
        self._began = self._indent = 0
        self._is_entry = False
        self._entry_indent = 0
        self._is_code = False
        self._term = ""
        self._last = ""  # line, if it may be a title

    def take(self, number: int, line: str) -> None:
        said, last = line.strip(), self._last
        self._last = said if not self._is_code and not line.startswith(" ") else ""
        if self._is_code:
            self._is_code = not (_FENCE.match(said) or _PRE_END.search(said))
        elif not said:
            self.flush()
        elif not self._is_heading(last, said):
            self._take_text(number, len(line) - len(line.lstrip()), said)

    def _is_heading(self, last: str, said: str) -> bool:
        """Return True for an underline below a title, and for a heading of Markdown; a section begins there."""
        if last and _UNDERLINE.match(said) and len(said) >= len(last) - 1 and any(map(str.isalnum, last)):
            self._lines = []
            self._begin_section(last, said[0])
            return True
        if (heading := _HEADING.match(said)) and not any(part.is_tag for part in self._parts):
            self.flush()
            self._begin_section(heading[1], "#")
            return True
        return False

    def _take_text(self, number: int, indent: int, said: str) -> None:
        if self._parts and indent <= self._parts[-1].indent:
            self.flush()
            while self._parts and indent <= self._parts[-1].indent:
                self._parts.pop()
        if _FENCE.match(said) or _PRE.match(said):
            self.flush()
            self._is_code = not _PRE_END.search(said)
        elif self._is_left_out and not _TAG.match(said):
            return
        elif not self._is_markup(number, indent, said):
            self._append(number, indent, said)

    @property
    def _is_left_out(self) -> bool:
        return any(part.is_left_out for part in self._parts)

    def _is_markup(self, number: int, indent: int, said: str) -> bool:
        """Return True if a line begins a part, or is nothing to read."""
        if tag := _TAG.match(said):
            self._take_tag(number, indent, tag)
        elif directive := _DIRECTIVE.match(said):
            self._take_directive(number, indent, directive)
        elif _LEFT_OUT.match(said) or (not self._lines and _SECTION.match(said)):
            self._leave_out(indent)
        elif _NOT_TEXT.match(said) or (not self._lines and _PROMPT.match(said)):
            self.flush()
        else:
            return False
        return True

    def _take_tag(self, number: int, indent: int, tag: re.Match[str]) -> None:
        """A tag of JSDoc ends the part of the tag before it."""
        self.flush()
        self._parts = [part for part in self._parts if part.indent >= 0]
        is_deprecated = tag[1] == "deprecated"
        lead = "Deprecated" if is_deprecated else ""
        self._parts.insert(0, Part(-1, lead, is_left_out=not is_deprecated, is_tag=True))
        if is_deprecated and tag[2]:
            self._append(number, indent, tag[2])

    def _take_directive(self, number: int, indent: int, directive: re.Match[str]) -> None:
        self.flush()
        name, given = directive[1].lower(), (directive[2] or "").strip()
        if lead := _LEADS.get(name):
            self._parts.append(Part(indent, lead))
            if given and name not in ("admonition", "deprecated"):
                self._append(number, indent, given)
        elif name.rsplit(":", 1)[-1] in _OBJECTS and (named := _NAME.match(given)):
            self._parts.append(Part(indent, subject=named[1]))
            self._term = named[1]
        else:
            self._parts.append(Part(indent, is_left_out=True))

    def _leave_out(self, indent: int) -> None:
        self.flush()
        self._parts.append(Part(indent, is_left_out=True))

    def _append(self, number: int, indent: int, said: str) -> None:
        bullet = _BULLET.match(said)
        if bullet or (said.startswith("<") and _BREAK.match(said)):
            self.flush()
        if bullet:
            self._is_entry, self._entry_indent = True, indent + len(bullet[0])
            said = said[bullet.end() :]
        elif not self._lines and self._is_indented_code(indent):
            return
        if not self._lines:
            self._began, self._indent = number, indent
            self._entry_indent = self._entry_indent if indent or bullet else 0
        self._lines.append(said)

    def _is_indented_code(self, indent: int) -> bool:
        around = self._parts[-1].indent + CODE_INDENT if self._parts else 0
        return indent >= max(around, 0) + CODE_INDENT and indent > self._entry_indent + 1

    def _begin_section(self, title: str, underline: str) -> None:
        """Begin a section: titles with the same underline are of one level."""
        title = plain(title)
        self._parts = [part for part in self._parts if part.indent >= 0]
        kinds = [kind for kind, _ in self._headings]
        self._headings = self._headings[: kinds.index(underline)] if underline in kinds else self._headings
        self._headings.append((underline, title))
        if _SECTION.match(title):
            self._parts.insert(0, Part(-1, is_left_out=True))
        elif lead := _LEADS.get(title.lower()):
            self._parts.insert(0, Part(-1, lead))

    def flush(self) -> None:
        """End the block."""
        said = " ".join(self._lines)
        self._lines = []
        is_entry, self._is_entry = self._is_entry, False
        is_literal = said.endswith("::")
        if text := plain(said[:-1] if is_literal else said):
            part = self._parts[-1] if self._parts else Part(0)
            subject = next((one.subject for one in reversed(self._parts) if one.subject), self._subject)
            headings = tuple(title for _, title in self._headings)
            block = TextBlock(text, self._began, headings, self._term, is_entry, False, part.lead, subject)
            self.blocks.append(block)
            self._term = ""
        if is_literal:
            self._parts.append(Part(self._indent, is_left_out=True))
