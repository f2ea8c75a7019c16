"""Markdown as statements: notes of OpenClaw, of Claude Code and its kind, of basic-memory, and of people.

Every list item and every paragraph is one statement; the headings above it say of what kind it is, a date in a
heading, in front of the item or in the name of the file says when it was written. Rule: words are kept as they are.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from kept.exchange.importers import Brought, BroughtStatement, decoded, moment_in, names_in, pieces
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
    text = decoded(path, data)
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
    content, at = note.content, of_file
    for heading in note.headings:
        at = _date_in(heading) or at
    if leading := _LEADING_DATE.match(content):
        at = moment_in(leading[1]) or at
        content = content[leading.end() :]
    category = _CATEGORY.match(content)
    if category:
        content = content[category.end() :]
    if _ONLY_LINK.fullmatch(content.strip()):
        return  # an index, or a table of contents: it says nothing by itself
    content = _LINK.sub(lambda link: link[1], _BLOCK_ID.sub("", content)).strip()
    found = (*tags, *_HASHTAG.findall(content))
    labels = (category[1],) if category else (*reversed(note.headings), title)
    source = Source(origin=origin, file=str(path)[-500:], line=note.line)
    for part in pieces(content):
        if len(part) > 2 and any(character.isalnum() for character in part):
            draft = Draft(
                content=part,
                kind=_kind(labels, kind),
                tags=tuple(dict.fromkeys(found))[:50],
                source=source,
                trust=trust,
                created_at=at,
            )
            yield BroughtStatement(draft=draft)


def notes(text: str, first_line: int = 1) -> Iterator[Note]:
    """The statements of a Markdown text, in order. A list item that ends in a colon is said before each item below."""
    headings: list[tuple[int, str]] = []
    parents: list[tuple[int, str]] = []
    block: list[str] = []
    began, fence = 0, ""
    # A comment may span lines; its newlines stay, so that lines keep their numbers.
    text = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)

    def flush() -> Iterator[Note]:
        content = "\n".join(block) if any("```" in line for line in block) else " ".join(map(str.strip, block))
        block.clear()
        if content.strip():
            lead = " ".join(parent for _, parent in parents if parent.endswith(":") and parent != content.strip())
            if parents and parents[-1][1].endswith(":") and parents[-1][1] == content.strip():
                return
            yield Note(began, tuple(title for _, title in headings), f"{lead} {content.strip()}".strip())

    for number, line in enumerate(text.split("\n"), first_line):
        line = line.rstrip("\r")
        if fence:
            block.append(line)
            if line.strip().startswith(fence):
                fence = ""
            continue
        if opening := _FENCE.match(line):
            fence = opening[1][:3]
            began = began if block else number
            block.append(line)
        elif heading := _HEADING.match(line):
            yield from flush()
            parents.clear()
            headings = [one for one in headings if one[0] < len(heading[1])] + [(len(heading[1]), heading[2])]
        elif not line.strip() or _RULE.match(line) or ("|" in line and _TABLE_RULE.match(line)):
            yield from flush()
        elif item := _ITEM.match(line):
            yield from flush()
            indent = len(item[1].expandtabs(4))
            parents = [parent for parent in parents if parent[0] < indent]
            began = number
            block.append(item[2])
            parents.append((indent, item[2].strip()))
        else:
            if line.lstrip().startswith("|"):
                yield from flush()
                line = " | ".join(cell.strip() for cell in line.strip().strip("|").split("|"))
            if not block:
                began = number
                if not line.startswith((" ", "\t")):
                    parents.clear()
            block.append(line)
    yield from flush()


def front_matter(text: str) -> tuple[dict[str, str], str, int]:
    """The plain `name: value` lines of a YAML header; the text below it, and the number of its first line."""
    lines = text.split("\n")
    if lines[0].strip() != "---" or "---" not in (line.strip() for line in lines[1:200]):
        return {}, text, 1
    end = next(number for number, line in enumerate(lines[1:], 1) if line.strip() == "---")
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
