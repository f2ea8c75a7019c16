"""What a reader of foreign files gives back, and what the readers share.

Rule: a reader changes nothing and stores nothing; what it cannot read is an InvalidInput for a file, and a sentence in
`unread` for a part of one. Parts that it leaves out on purpose are named in `left_out`.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kept.errors import InvalidInput
from kept.exchange.importers.dialogues import Dialogue
from kept.model import ConflictType, Draft, Status, TaskRecord

CONTENT_CHARS = 500  # of a memory; a longer text is split at sentences


class BroughtStatement(Struct, frozen=True, kw_only=True):
    """A draft, the id that it had elsewhere, and what the other program knew of it besides."""

    draft: Draft
    id: str = ""
    uid: str | None = None  # a UUID that it had elsewhere, and keeps
    status: Status | None = None
    project: str = ""  # where the other program keeps several in one place
    belongs: str = ""  # the directory of its project, or the name that the other program makes of that
    use_count: int = 0
    last_used_at: datetime | None = None


class ForeignConflict(Struct, frozen=True, kw_only=True):
    """Two statements, by the ids that they had elsewhere, which contradict each other."""

    left: str
    right: str
    type: ConflictType = "contradictory"
    detected_at: datetime | None = None
    resolved_at: datetime | None = None


class Brought(Struct, kw_only=True):
    """Everything that one file brings."""

    statements: list[BroughtStatement] = []
    tasks: list[TaskRecord] = []
    aliases: dict[str, tuple[str, ...]] = {}
    disagreements: list[ForeignConflict] = []
    dialogues: list[Dialogue] = []
    settings: dict[str, str] = {}
    unread: list[str] = []
    left_out: list[str] = []  # on purpose, a sentence each

    def __bool__(self) -> bool:
        return bool(self.statements or self.tasks or self.aliases or self.dialogues)

    def add(self, other: "Brought") -> None:
        """Add everything that another file brings."""
        self.statements += other.statements
        self.tasks += other.tasks
        self.aliases |= other.aliases
        self.disagreements += other.disagreements
        self.dialogues += other.dialogues
        self.settings |= other.settings
        self.unread += other.unread
        self.left_out += other.left_out


def decoded(path: Path, data: bytes) -> str:
    """The text of a file. Raises InvalidInput if it is not text."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path.name} is not UTF-8 text: byte {error.start + 1:,} is 0x{data[error.start]:02x}.",
            hint="Check that it is the right file; iconv converts other encodings.",
        ) from None
    if "\0" in text:
        raise InvalidInput(f"{path.name} is not a text file.", hint="Check that it is the right file.")
    return text


def document(path: Path, data: bytes) -> Any:
    """The JSON document in a file. Raises InvalidInput; a file that is still being written ends too early."""
    try:
        return msgspec.json.decode(decoded(path, data))
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInput(
            f"{path.name} is not complete JSON: {str(error)[:120]}.",
            hint="If it is still being written, import it again when that is done.",
        ) from None


def records(path: Path, data: bytes, unread: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSONL file, by line. What is none is noted; a last line without an end is left for next time."""
    lines = decoded(path, data).split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError):
            is_torn = number == len(lines)
            unread.append(f"{path.name}:{number} {'is still being written' if is_torn else 'is not JSON'}")
            continue
        if isinstance(record, dict):
            yield number, record
        else:
            unread.append(f"{path.name}:{number} is not an object")


def text_in(record: Any, *names: str) -> str:
    """The first of these fields that is a text; "" if none is."""
    found = (record.get(name) for name in names) if isinstance(record, dict) else ()
    return next((value.strip() for value in found if isinstance(value, str) and value.strip()), "")


def names_in(value: Any) -> tuple[str, ...]:
    """A list of texts, or texts with commas between them."""
    listed = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else ()
    return tuple(dict.fromkeys(one.strip()[:100] for one in listed if isinstance(one, str) and one.strip()))[:50]


def number_in(value: Any, low: float, high: float) -> float | None:
    """A number within these limits; None for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value == value
    return float(min(high, max(low, value))) if is_number else None


def moment_in(value: Any) -> datetime | None:
    """A time: ISO 8601, a day, or seconds or milliseconds since 1970. None for anything else."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            at = datetime.fromtimestamp(value / 1000 if value > 100_000_000_000 else value, UTC)
        elif isinstance(value, str):
            at = datetime.fromisoformat(value.strip())
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return at if at.year >= 1971 else None


def pieces(content: str, limit: int = CONTENT_CHARS) -> list[str]:
    """The text in parts of at most that many characters, split at sentences, else at words."""
    parts: list[str] = []
    rest = content.strip()
    while len(rest) > limit:
        head = rest[:limit]
        cut = max(head.rfind(mark) + 1 for mark in (". ", "! ", "? ", ".\n", "\n", "; "))
        cut = cut if cut > limit // 4 else head.rfind(" ") + 1 or limit
        parts.append(rest[:cut].strip())
        rest = rest[cut:].strip()
    return [part for part in (*parts, rest) if part]
