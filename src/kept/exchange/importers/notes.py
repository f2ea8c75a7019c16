"""Markdown as statements: notes of OpenClaw, of basic-memory, and of people; CLAUDE.md and its like.

Every list item, every paragraph and every row of a table is one statement; the headings above it say of what kind it
is, a date in a heading, in front of the item or in the name of the file says when it was written. A dialogue of user
and assistant is a transcript, and no statement. Rule: words are kept as they are; marks such as `>` go.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from kept.exchange.agents_md import without_block
from kept.exchange.importers.dialogues import Dialogue, SpokenTurn, without_dialogues
from kept.exchange.importers.foreign import (
    CONTENT_CHARS,
    Brought,
    BroughtStatement,
    decoded,
    moment_in,
    names_in,
    pieces,
)
from kept.model import Draft, Origin, Source, Trust

_FENCE = re.compile(r"\s*(```+|~~~+)")
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
_ITEM = re.compile(r"(\s*)(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(.*)$")
_DATE = re.compile(r"\b(\d{4}-\d{2}-\d{2})\b")
_LEADING_DATE = re.compile(r"^\**(\d{4}-\d{2}-\d{2})\**\s*[:–—-]\s*")
_BLOCK_ID = re.compile(r"\s\^[\w-]+$")
_COMMENT = re.compile(r"(?s)<!--.*?-->")
_RULE = re.compile(r"\s*(?:[-*_]\s*){3,}$")
_TABLE_RULE = re.compile(r"\s*\|?[\s:|-]+\|?\s*$")
_ONLY_LINK = re.compile(r"!?\[[^\]]*\]\([^)]*\)|\[\[[^\]]*\]\]|<?https?://\S*")
_RELATION = re.compile(r"\w+ \[\[[^\]]*\]\]")
_HASHTAG = re.compile(r"(?:^|\s)#([A-Za-z][\w/-]{1,60})")
_CATEGORY = re.compile(r"^\[([A-Za-z][\w -]{0,30})\]\s+")
_LINK = re.compile(r"\[\[([^\]|#]{1,200})(?:#[^\]|]*)?(?:\|[^\]]*)?\]\]")

_BOLD = re.compile(r"(?<![\w*])\*\*(?=\S)([^*\n]{1,500})(?<=\S)\*\*(?!\w)")
_QUOTE = re.compile(r"^\s*>+ ?")
_SESSION_HEADER = re.compile(r"(?:session(?: key| id)?|source|channel)\s*:\s*\S", re.IGNORECASE)
# Headings that name a page or a day, and no subject.
_NO_SUBJECT = re.compile(
    r"(?:agent |long[- ]term |daily |my )?(?:memory|memories|notes?|log|journal|misc\w*|general|index|context)\b"
    r"|(?:session|conversation)\b|project context\b|.*\d{4}-\d{2}-\d{2}|memory\.md$",
    re.IGNORECASE,
)

# A word in a heading, or a category of a note → the kind of what stands below it; the first that fits.
_KINDS = (
    (("session summar",), "summary"),
    (("decision", "decided", "chose"), "decision"),
    (("preference", "likes", "about the user", "user profile", "feedback"), "preference"),
    (("convention", "rule", "style", "guideline", "instruction", "standard", "workflow", "command"), "convention"),
    (("warning", "avoid", "pitfall", "gotcha", "caution", "never", "don't"), "warning"),
    (("error", "bug", "failure", "fix", "troubleshoot"), "error"),
    (("architecture", "structure", "layout", "overview", "design"), "architecture"),
    (("pattern", "technique", "idiom"), "pattern"),
    (("summar", "session", "log"), "fact"),
    (("todo", "open", "next", "progress"), "progress"),
)


class NoteStyle(Struct, frozen=True, kw_only=True):
    """How the notes of a program are read: where they come from, and which kind they are without a heading.

    `has_subjects`: a heading that names no kind is the subject of the notes below it, and their tag.
    """

    origin: Origin = "import"
    kind: str = "fact"
    trust: Trust | None = None
    is_plain: bool = False  # marks for bold text are dropped
    has_subjects: bool = False


class Note(NamedTuple):
    """One statement of a text: where it begins, the headings above it, and its words."""

    line: int
    headings: tuple[str, ...]
    content: str


def read_openclaw(path: Path, data: bytes) -> Brought:
    """A16: MEMORY.md and memory/*.md as discrete memories of origin migration."""
    return _read(path, data, NoteStyle(origin="migration", is_plain=True, has_subjects=True))


def read_agents_md(path: Path, data: bytes) -> Brought:
    """CLAUDE.md, AGENTS.md and their like: a file of a repository, which anybody may have written."""
    return _read(path, data, NoteStyle(kind="convention", trust="unknown"))


def read_basic_memory(path: Path, data: bytes) -> Brought:
    """A note with observations (`- [category] text #tag`); relations to other notes become tags."""
    return _read(path, data, NoteStyle())


def read_markdown(path: Path, data: bytes) -> Brought:
    """Any note."""
    return _read(path, data, NoteStyle(is_plain=True))


class _Page(Struct, frozen=True, kw_only=True):
    """What holds for all notes of a file."""

    path: Path
    style: NoteStyle
    at: datetime | None = None
    tags: tuple[str, ...] = ()
    title: str = ""


def _read(path: Path, data: bytes, style: NoteStyle) -> Brought:
    about, body, first_line = front_matter(without_block(decoded(path, data)))
    page = _page(path, about, style)
    body, turns = without_dialogues(body, first_line)
    header: list[Note] = []
    brought = Brought(statements=[], left_out=[], dialogues=[])
    for note in _notes_of(about, body, first_line):
        if style.has_subjects and _is_session_header(note):
            header.append(note)
        else:
            _add(brought, page, note)
    if header:
        brought.left_out.append(f"{path.name}: the header of a session")
    if turns:
        brought.dialogues.append(_dialogue(path, turns, header, page.at or _date_in(body[:200])))
    return brought


def _notes_of(about: Mapping[str, str], body: str, first_line: int) -> Iterator[Note]:
    """Yield the notes of a page. One that `kept export --format obsidian` wrote has links below its text."""
    is_exported = {"uid", "ref", "kind"} <= about.keys()
    if description := about.get("description"):
        yield Note(1, (about.get("title") or about.get("name") or "",), description)
    for note in notes(body, first_line):
        if not (is_exported and _RELATION.fullmatch(note.content)):
            yield note


def _page(path: Path, about: Mapping[str, str], style: NoteStyle) -> _Page:
    tags = tuple(tag.lstrip("#") for tag in names_in(about.get("tags", "").strip("[]").replace('"', "").split(",")))
    at = moment_in(about.get("created") or about.get("date")) or _date_in(path.stem)
    return _Page(path=path, style=style, at=at, tags=tags, title=about.get("title") or about.get("name") or "")


def _add(brought: Brought, page: _Page, note: Note) -> None:
    found = list(_statements(note, page))
    brought.statements += found
    brought.left_out += [] if found else [f"{page.path.name}:{note.line} says nothing by itself"]


def _is_session_header(note: Note) -> bool:
    """Return True for a line that OpenClaw writes above the notes of a session: its key, its id, its source."""
    of_session = note.headings[-1:] and note.headings[-1].lower().startswith("session")
    return bool(of_session) and _SESSION_HEADER.match(plain(note.content)) is not None


def _dialogue(path: Path, turns: Sequence[SpokenTurn], header: Sequence[Note], at: datetime | None) -> Dialogue:
    lines = [plain(note.content) for note in header]
    ids = (line.partition(":")[2].strip() for line in lines if line.lower().startswith("session id"))
    return Dialogue(session=next(ids, "") or path.stem, turns=tuple(turns), at=at)


def plain(content: str) -> str:
    """Return a note without marks for bold text."""
    return _BOLD.sub(lambda bold: bold[1], content)


def _statements(note: Note, page: _Page) -> Iterator[BroughtStatement]:
    content, at = _dated(note, page.at)
    category = _CATEGORY.match(content)
    if category:
        content = content[category.end() :]
    if _ONLY_LINK.fullmatch(content.strip()):
        return  # an index, or a table of contents: it says nothing by itself
    content = _LINK.sub(lambda link: link[1], _BLOCK_ID.sub("", content)).strip()
    content = plain(content) if page.style.is_plain else content
    labels = (category[1],) if category else (*reversed(note.headings), page.title)
    subject = _subject(note.headings) if page.style.has_subjects else ""
    lead = f"{subject}: " if subject and subject.lower() not in content.lower() else ""
    found = (*page.tags, *_HASHTAG.findall(content), *names_in([subject]))
    source = Source(origin=page.style.origin, file=str(page.path)[-500:], line=note.line)
    for part in filter(_says_something, pieces(content, CONTENT_CHARS - len(lead))):
        draft = Draft(
            content=lead + part,
            kind=_kind(labels, page.style.kind),
            tags=tuple(dict.fromkeys(found))[:50],
            source=source,
            trust=page.style.trust,
            created_at=at,
        )
        yield BroughtStatement(draft=draft)


def _subject(headings: Sequence[str]) -> str:
    """Return the nearest heading that names neither a kind nor a page nor a day; "" if none does."""
    named = (plain(one).strip(" :") for one in reversed(headings))
    return next((one[:100] for one in named if one and not _NO_SUBJECT.match(one) and not _kind((one,), "")), "")


def _dated(note: Note, of_file: datetime | None) -> tuple[str, datetime | None]:
    """The text without a date in front, and the date that is nearest to it: there, in a heading, or of the file."""
    dates = [of_file, *map(_date_in, note.headings)]
    content = note.content
    if leading := _LEADING_DATE.match(content):
        dates.append(moment_in(leading[1]))
        content = content[leading.end() :]
    return content, next((at for at in reversed(dates) if at is not None), None)


def _says_something(part: str) -> bool:
    return len(part) > 2 and any(character.isalnum() for character in part)


def notes(text: str, first_line: int = 1) -> Iterator[Note]:
    """The statements of a Markdown text, in order. A list item that ends in a colon is said before each item below."""
    # A comment may span lines; its newlines stay, so that lines keep their numbers.
    text = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)
    reading = _Reading()
    for number, line in enumerate(text.split("\n"), first_line):
        yield from reading.take(number, line.rstrip("\r"))
    yield from reading.flush()


class _Reading:
    """The lines of the next note so far, and the headings and list items above it."""

    def __init__(self) -> None:
        self._headings: list[tuple[int, str]] = []
        self._parents: list[tuple[int, str]] = []
        self._block: list[str] = []
        self._began = 0
        self._fence = ""
        self._columns: list[str] = []  # the names of the columns of a table

    def take(self, number: int, line: str) -> Iterator[Note]:
        if self._fence:
            self._block.append(line)
            if line.strip().startswith(self._fence):
                self._fence = ""
        elif opening := _FENCE.match(line):
            self._fence = opening[1][:3]
            self._append(number, line)
        elif heading := _HEADING.match(line):
            yield from self.flush()
            self._parents.clear()
            self._headings = [*_above(self._headings, len(heading[1])), (len(heading[1]), heading[2])]
        elif self._is_below_head(line):
            self._columns = _cells(self._block.pop())
        elif _is_break(line):
            yield from self.flush()
            self._columns = []
        elif item := _ITEM.match(line):
            yield from self.flush()
            indent = len(item[1].expandtabs(4))
            self._parents = [*_above(self._parents, indent), (indent, item[2].strip())]
            self._append(number, item[2])
        else:
            yield from self._take_text(number, line)

    def _take_text(self, number: int, line: str) -> Iterator[Note]:
        if line.lstrip().startswith("|"):
            yield from self.flush()
            line = _row(_cells(line), self._columns)
        if self._block and _is_quoted(line) != _is_quoted(self._block[-1]):
            yield from self.flush()
        if not self._block and not line.startswith((" ", "\t")):
            self._parents.clear()
        self._append(number, line)

    def _is_below_head(self, line: str) -> bool:
        """Return True for the rule below the first row of a table."""
        return len(self._block) == 1 and " | " in self._block[0] and "|" in line and bool(_TABLE_RULE.match(line))

    def _append(self, number: int, line: str) -> None:
        self._began = self._began if self._block else number
        self._block.append(line)

    def flush(self) -> Iterator[Note]:
        """The note of the lines so far. A list item that only leads to those below it is none by itself."""
        content = _joined(self._block)
        self._block.clear()
        leads = [parent for _, parent in self._parents if parent.endswith(":")]
        is_lead = bool(leads) and leads[-1] == content == self._parents[-1][1]
        if content and not is_lead:
            said = " ".join([*(one for one in leads if one != content), content])
            yield Note(self._began, tuple(title for _, title in self._headings), said)


def _joined(block: list[str]) -> str:
    """Return the lines of a note as one text, without quotation marks; code keeps its lines."""
    has_code = any("```" in line for line in block)
    lines = [_QUOTE.sub("", line) for line in block] if all(map(_is_quoted, block)) else block
    return ("\n".join(lines) if has_code else " ".join(map(str.strip, lines))).strip()


def _is_quoted(line: str) -> bool:
    return line.lstrip().startswith(">")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _row(cells: list[str], columns: list[str]) -> str:
    """Return a row of a table as text: each value behind the name of its column."""
    if len(cells) != len(columns):
        return " | ".join(cells)
    named = (f"{column}: {cell}" if column else cell for column, cell in zip(columns, cells, strict=True) if cell)
    return "; ".join(named)


def _above(levels: list[tuple[int, str]], level: int) -> list[tuple[int, str]]:
    return [one for one in levels if one[0] < level]


def _is_break(line: str) -> bool:
    """Whether a line ends a note: a blank one, a rule, or the line below the head of a table."""
    return not line.strip() or bool(_RULE.match(line)) or ("|" in line and bool(_TABLE_RULE.match(line)))


def front_matter(text: str) -> tuple[dict[str, str], str, int]:
    """The plain `name: value` lines of a YAML header; the text below it, and the number of its first line."""
    lines = text.split("\n")
    ends = (number for number, line in enumerate(lines[1:200], 1) if line.strip() == "---")
    end = next(ends, None) if lines[0].strip() == "---" else None
    if end is None:
        return {}, text, 1
    about: dict[str, str] = {}
    name = ""
    for line in lines[1:end]:
        key, colon, value = line.partition(":")
        if colon and not line.startswith((" ", "-")):
            name = key.strip()
            about[name] = value.strip().strip("\"'")
        elif line.strip().startswith("- ") and name:
            about[name] = f"{about[name]},{line.strip()[2:].strip()}".strip(",")
    return about, "\n".join(lines[end + 1 :]), end + 2


def _date_in(words: str) -> datetime | None:
    found = _DATE.search(words)
    return moment_in(found[1]) if found else None


def _kind(labels: tuple[str, ...], otherwise: str) -> str:
    for label in labels:
        folded = label.lower()
        for words, kind in _KINDS:
            if any(word in folded for word in words):
                return kind
    return otherwise
