"""Memory files of other programs: which formats Kept reads, and how a file is recognised.

One module a format; each has a function that turns the bytes of one file into what was `Brought`. `memory.bringing`
stores it. Rule: a reader changes nothing and stores nothing; what it cannot read is an InvalidInput for a file, and a
sentence in `unread` for a part of one.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kept.errors import InvalidInput
from kept.model import ConflictType, Draft, Status, Task

MOST_BYTES = 256 * 1024 * 1024
BEGINNING = 64 * 1024  # bytes that tell the format of a file
CONTENT_CHARS = 500  # of a memory; a longer text is split at sentences


class BroughtStatement(Struct, frozen=True, kw_only=True):
    """A draft, the id that it had elsewhere, and what the other program knew of it besides."""

    draft: Draft
    id: str = ""
    status: Status | None = None
    project: str = ""  # where the other program keeps several in one place
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
    tasks: list[Task] = []
    aliases: dict[str, tuple[str, ...]] = {}
    disagreements: list[ForeignConflict] = []
    unread: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.statements or self.tasks or self.aliases)


Read = Callable[[Path, bytes], Brought]


class Importer(Struct, frozen=True, kw_only=True):
    """A format: its name, the program it belongs to, the module that reads it, and which files of a folder are its."""

    name: str
    program: str
    module: str
    patterns: tuple[str, ...] = ("*",)
    place: str = ""  # where the program keeps these files
    is_database: bool = False  # opened by its reader, of any size
    fits: Callable[[Path, bytes], bool] = lambda path, beginning: False
    fits_folder: Callable[[Path], bool] = lambda folder: False

    @property
    def read(self) -> Read:
        """The reader; its module is imported now."""
        module = import_module(f"{__name__}.{self.module}")
        reader: Read = getattr(module, f"read_{self.name.replace('-', '_')}")
        return reader

    def files(self, path: Path) -> list[Path]:
        """The files of this format at a path: itself, or those below a folder, in order."""
        if not path.is_dir():
            return [path]
        found = set()
        for pattern in self.patterns:
            for file in path.glob(pattern):
                is_hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
                if file.is_file() and (not is_hidden or "/." in f"/{pattern}"):  # a hidden one has to be named
                    found.add(file)
        return sorted(found)


def _json_with(*names: bytes) -> Callable[[Path, bytes], bool]:
    return lambda path, beginning: (
        beginning.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] in (b"{", b"[") and all(b'"%s"' % n in beginning for n in names)
    )


def _named(*names: str) -> Callable[[Path, bytes], bool]:
    return lambda path, beginning: path.name in names


def _is_claude_memory(path: Path, _beginning: bytes) -> bool:
    return (
        path.suffix == ".md" and path.parent.name == "memory" and "projects" in path.parts and ".claude" in path.parts
    )


def _is_openclaw(path: Path, _beginning: bytes) -> bool:
    return path.name == "MEMORY.md" or (path.suffix == ".md" and path.parent.name == "memory")


# In the order in which they are tried.
IMPORTERS: tuple[Importer, ...] = (
    Importer(
        name="praxis",
        program="Praxis",
        module="praxis",
        patterns=("project.json", "memory/project.json", "sessions/*.memory.json", "memory/sessions/*.memory.json"),
        fits=lambda path, beginning: (
            _json_with(b"entries", b"version")(path, beginning)
            or _json_with(b"sessionId", b"findings")(path, beginning)
        ),
        fits_folder=lambda folder: any((folder / name).is_file() for name in ("project.json", "memory/project.json")),
    ),
    Importer(
        name="agent-engine",
        program="agent_engine",
        module="agent_engine",
        patterns=("memory.json", "**/memory.json"),
        fits=_json_with(b"context_item_id"),
    ),
    Importer(
        name="brain",
        program="Brain",
        module="brain",
        patterns=(
            "MEMORY.md",
            "*/MEMORY.md",
            "items.json",
            "*/items.json",
            "**/tasks.json",
            "**/.agent/tasks/tasks.json",
        ),
        fits=lambda path, beginning: (
            _json_with(b"sourceFile", b"confidence")(path, beginning)
            or _json_with(b"tasks", b"status")(path, beginning)
        ),
        fits_folder=lambda folder: (
            any(True for name in ("*/MEMORY.md", "*/items.json") for _ in folder.glob(name))
            or (folder / "40_Brain").is_dir()
        ),
    ),
    Importer(
        name="claude-mem",
        program="claude-mem",
        module="claude_mem",
        patterns=("claude-mem.db", "*.db"),
        place="~/.claude-mem/claude-mem.db",
        is_database=True,
        fits=lambda path, beginning: (
            beginning.startswith(b"SQLite format 3\0")
            and (path.name == "claude-mem.db" or b"TABLE sdk_sessions" in beginning)
        ),
        fits_folder=lambda folder: (folder / "claude-mem.db").is_file(),
    ),
    Importer(
        name="server-memory",
        program="the MCP server memory",
        module="server_memory",
        patterns=("*.jsonl", "memory.json"),
        fits=lambda path, beginning: b'"entityType"' in beginning or b'"relationType"' in beginning,
    ),
    Importer(
        name="mem0",
        program="mem0",
        module="mem0",
        patterns=("*.json",),
        fits=lambda path, beginning: (
            _json_with(b"memory", b"user_id")(path, beginning) or _json_with(b"memory", b"created_at")(path, beginning)
        ),
    ),
    Importer(
        name="basic-memory",
        program="basic-memory",
        module="notes",
        patterns=("**/*.md",),
        fits=lambda path, beginning: beginning.startswith(b"---") and b"\npermalink:" in beginning,
        fits_folder=lambda folder: (folder / ".basic-memory").exists(),
    ),
    Importer(
        name="claude-memory",
        program="Claude Code",
        module="notes",
        patterns=("*.md",),
        place="~/.claude/projects/{slug}/memory",
        fits=_is_claude_memory,
        fits_folder=lambda folder: folder.name == "memory" and ".claude" in folder.parts,
    ),
    Importer(
        name="agents-md",
        program="coding agents",
        module="notes",
        patterns=("CLAUDE.md", "AGENTS.md", "GEMINI.md", "AGENT.md", ".claude/CLAUDE.md"),
        fits=_named("CLAUDE.md", "AGENTS.md", "GEMINI.md", "AGENT.md", "CLAUDE.local.md"),
    ),
    Importer(
        name="openclaw",
        program="OpenClaw",
        module="notes",
        patterns=("MEMORY.md", "memory/*.md", "USER.md"),
        place="~/.openclaw/workspace",
        fits=_is_openclaw,
        fits_folder=lambda folder: (folder / "MEMORY.md").is_file() or (folder / "SOUL.md").is_file(),
    ),
    Importer(
        name="markdown",
        program="Markdown notes",
        module="notes",
        patterns=("**/*.md", "**/*.markdown"),
        fits=lambda path, beginning: path.suffix.lower() in (".md", ".markdown", ".txt"),
        fits_folder=lambda folder: any(True for _ in folder.glob("**/*.md")),
    ),
)
BY_NAME = {importer.name: importer for importer in IMPORTERS}


def recognised(path: Path, beginning: bytes) -> Importer | None:
    """The format of a file or a folder, if it is one of these."""
    if path.is_dir():
        return next((importer for importer in IMPORTERS if importer.fits_folder(path)), None)
    return next((importer for importer in IMPORTERS if importer.fits(path, beginning)), None)


# ---- what the readers share ----


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
