"""Markdown as statements: notes of OpenClaw, of Claude Code and its kind, of basic-memory, and of people.

Every list item and every paragraph is one statement; the headings above it say of what kind it is, a date in a
heading, in front of the item or in the name of the file says when it was written. Rule: words are kept as they are.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from kept.exchange.agents_md import without_block
from kept.exchange.importers.foreign import Brought, BroughtStatement, decoded, moment_in, names_in, pieces
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

# A word in a heading, or a category of a note → the kind of what stands below it; the first that fits.
_KINDS = (
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


class Note(NamedTuple):
    """One statement of a text: where it begins, the headings above it, and its words."""

    line: int
    headings: tuple[str, ...]
    content: str


def read_openclaw(path: Path, data: bytes) -> Brought:
    """A16: MEMORY.md and memory/*.md as discrete memories of origin migration."""
    return _read(path, data, origin="migration", kind="fact")


def read_claude_memory(path: Path, data: bytes) -> Brought:
    """A file of Claude Code's own memory; its front matter says what it is about."""
    return _read(path, data, origin="import", kind="fact")


def read_agents_md(path: Path, data: bytes) -> Brought:
    """CLAUDE.md, AGENTS.md and their like: a file of a repository, which anybody may have written."""
    return _read(path, data, origin="import", kind="convention", trust="unknown")


def read_basic_memory(path: Path, data: bytes) -> Brought:
    """A note with observations (`- [category] text #tag`); relations to other notes become tags."""
    return _read(path, data, origin="import", kind="fact")


def read_markdown(path: Path, data: bytes) -> Brought:
    """Any note."""
    return _read(path, data, origin="import", kind="fact")


def _read(path: Path, data: bytes, *, origin: Origin, kind: str, trust: Trust | None = None) -> Brought:
    text = without_block(decoded(path, data))
    about, body, first_line = front_matter(text)
    of_file = moment_in(about.get("created") or about.get("date")) or _date_in(path.stem)
    title = about.get("title") or about.get("name") or ""
    tags = tuple(tag.lstrip("#") for tag in names_in(about.get("tags", "").strip("[]").replace('"', "").split(",")))
    brought = Brought(statements=[], unread=[])
    if description := about.get("description"):
        note = Note(1, (title,), description)
        brought.statements += _statements(note, path, kind, origin, trust, of_file, tags, title)
    # A note that `kept export --format obsidian` wrote has links below its text.
    is_exported = {"uid", "ref", "kind"} <= about.keys()
    for note in notes(body, first_line):
        if is_exported and _RELATION.fullmatch(note.content):
            continue
        brought.statements += _statements(note, path, kind, origin, trust, of_file, tags, title)
    return brought


def _statements(
    note: Note,
    path: Path,
    kind: str,
    origin: Origin,
    trust: Trust | None,
    of_file: datetime | None,
    tags: tuple[str, ...],
    title: str,
) -> Iterator[BroughtStatement]:
    content, at = _dated(note, of_file)
    category = _CATEGORY.match(content)
    if category:
        content = content[category.end() :]
    if _ONLY_LINK.fullmatch(content.strip()):
        return  # an index, or a table of contents: it says nothing by itself
    content = _LINK.sub(lambda link: link[1], _BLOCK_ID.sub("", content)).strip()
    found = (*tags, *_HASHTAG.findall(content))
    labels = (category[1],) if category else (*reversed(note.headings), title)
    source = Source(origin=origin, file=str(path)[-500:], line=note.line)
    for part in filter(_says_something, pieces(content)):
        draft = Draft(
            content=part,
            kind=_kind(labels, kind),
            tags=tuple(dict.fromkeys(found))[:50],
            source=source,
            trust=trust,
            created_at=at,
        )
        yield BroughtStatement(draft=draft)


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
        elif _is_break(line):
            yield from self.flush()
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
            line = " | ".join(cell.strip() for cell in line.strip().strip("|").split("|"))
        if not self._block and not line.startswith((" ", "\t")):
            self._parents.clear()
        self._append(number, line)

    def _append(self, number: int, line: str) -> None:
        self._began = self._began if self._block else number
        self._block.append(line)

    def flush(self) -> Iterator[Note]:
        """The note of the lines so far. A list item that only leads to those below it is none by itself."""
        has_code = any("```" in line for line in self._block)
        content = ("\n".join(self._block) if has_code else " ".join(map(str.strip, self._block))).strip()
        self._block.clear()
        leads = [parent for _, parent in self._parents if parent.endswith(":")]
        is_lead = bool(leads) and leads[-1] == content == self._parents[-1][1]
        if content and not is_lead:
            said = " ".join([*(one for one in leads if one != content), content])
            yield Note(self._began, tuple(title for _, title in self._headings), said)


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
