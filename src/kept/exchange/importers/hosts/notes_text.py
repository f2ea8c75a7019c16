"""Notes of a host's memory as values, and how the text of a note becomes statements.

A note is one fact with its reason: a name, a type, a text, often "Why" and "How to apply". Rule: one note is one
statement, with its reason. A longer one is split at sentences, and each part begins with the subject.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal

from msgspec import Struct

from kept.exchange.importers.foreign import CONTENT_CHARS, moment_in, pieces

# Which notes of a folder are taken in. project: all of them. session: those that a session of this project wrote. cwd:
# those of a directory of this project, or of such a session; a person is asked about one that names neither. person:
# they hold in every project, so a person is asked.
Belonging = Literal["project", "session", "cwd", "person"]

KINDS = {"user": "preference", "feedback": "preference"}  # by the type of a note; other types are facts
SUBJECT_CHARS = 100
MOST_PARTS = 20  # of one note
INDEX = "MEMORY.md"
_LINK = re.compile(r"\[\[([^\]|#]{1,200})(?:[#|][^\]]*)?\]\]")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+")
_HEADER = re.compile(r"(?sm)---[ \t]*\n(.{0,20000}?)^---[ \t]*(?:\n(.*)|\Z)")
_FOLDED = (">", "|", ">-", "|-", ">+", "|+")


class HostNote(Struct, frozen=True, kw_only=True):
    """A note of an agent's own memory, in parts that fit a memory.

    `is_line`: one of several notes in one file, which has no name that stays when its words change.
    """

    name: str
    parts: tuple[str, ...]
    kind: str = "fact"
    also: tuple[str, ...] = ()  # other words to find it by
    at: datetime | None = None
    session: str | None = None
    cwd: str | None = None
    is_line: bool = False


class HostFacts(Struct, frozen=True, kw_only=True):
    """Where a host may keep its notes: the variables of the environment, the user's home and the project's root.

    `read` returns the content of a file, `holds` says if a directory belongs to the project.
    """

    variables: Mapping[str, str]
    user_home: Path
    root: Path
    read: Callable[[Path], bytes]
    holds: Callable[[str], bool]

    def home_of(self, variable: str, folder: str) -> Path:
        """Return the home of a host: where a variable says, or a folder in the user's home."""
        return self.path_of(self.variables.get(variable, "") or f"~/{folder}")

    def path_of(self, written: str) -> Path:
        """Return a path as a person has written it, with ~ for the user's home."""
        return self.user_home / written[2:] if written.startswith("~/") else Path(written)


class HostFolder(Struct, frozen=True, kw_only=True):
    """A folder of notes. `depth`: how many folders deep they lie."""

    path: Path
    belongs: Belonging = "project"
    depth: int = 0


class Host(Struct, frozen=True, kw_only=True):
    """An agent that keeps notes: how it is called here, the setting that lets us read them, and how they are read.

    `read` is given the name of a file in its folder, and its text. `fits` says if a file of that path has such notes;
    `patterns` finds them below a folder that a person names. `belongs_to` returns the project of a path: its directory,
    or the slug of it.
    """

    name: str
    title: str
    setting: str
    format: str  # of `kept import`
    folders: Callable[[HostFacts], list[HostFolder]]
    read: Callable[[str, str], list[HostNote]]
    fits: Callable[[Path], bool]
    patterns: tuple[str, ...] = ("*.md",)
    belongs_to: Callable[[Path], str] = lambda path: ""


def slug_of(directory: Path) -> str:
    """Return the name that Claude Code and Qwen Code give to the folder of a directory."""
    units = str(directory).encode("utf-16-le", "surrogatepass")
    characters = (units[at] | units[at + 1] << 8 for at in range(0, len(units), 2))
    return "".join(chr(one) if one < 128 and chr(one).isalnum() else "-" for one in characters)


def front_matter(text: str) -> tuple[dict[str, str], str]:
    """Return the values of a YAML header by their names, also of nested ones, and the text below it."""
    found = _HEADER.match(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    if found is None:
        return {}, text
    about: dict[str, str] = {}
    name = ""
    for line in found[1].split("\n"):
        key, colon, value = line.partition(":")
        if colon and key.strip().replace("_", "").isalnum():
            name = key.strip()
            value = value.strip()
            about[name] = "" if value in _FOLDED else value.strip("\"'")
        elif name and line.strip():
            about[name] = f"{about[name]} {line.strip()}".strip()
    return about, found[2] or ""


def plain(body: str) -> str:
    """Return a note as one paragraph: without emphasis, headings and links to other notes. Code stays as it is."""
    body = _LINK.sub(lambda link: link[1], body).replace("**", "")
    if "```" in body:
        return body.strip()
    said = ""
    for line in body.splitlines():
        words = line.strip()
        if not words or words.startswith("#"):
            continue
        item = _ITEM.match(line)
        words = line[item.end() :].strip() if item else words
        between = "; " if item and said and said[-1] not in ".:;!?" else " "
        said = f"{said}{between}{words}" if said else words
    return said


def note_of(name: str, body: str, *, subject: str = "", **more: object) -> HostNote | None:
    """Return a note with this text; None if it says nothing. `subject` begins each part of one that is split."""
    said = plain(body)
    if not any(map(str.isalnum, said)):
        return None
    return HostNote(name=name, parts=_parts(said, subject or name), **more)  # type: ignore[arg-type]


def _parts(said: str, subject: str) -> tuple[str, ...]:
    if len(said) <= CONTENT_CHARS:
        return (said,)
    head = f"{subject[:SUBJECT_CHARS].rstrip(' .:')}: "
    first, *rest = pieces(said, CONTENT_CHARS - len(head))[:MOST_PARTS]
    return (first if first.startswith(head) else head + first, *(head + part for part in rest))


def typed_note(name: str, text: str) -> list[HostNote]:
    """Return the note of a file with a header: name, description, type, and sometimes when and where it was written."""
    about, body = front_matter(text)
    topic, described = about.get("name") or name, about.get("description", "")
    note = note_of(
        topic,
        body if plain(body) else described,
        subject=described or topic.replace("-", " "),
        kind=KINDS.get(about.get("type", ""), "fact"),
        also=tuple(filter(None, (topic.replace("-", " "), described))),
        at=moment_in(about.get("modified")),
        session=about.get("originSessionId") or None,
    )
    return [] if note is None else [note]
