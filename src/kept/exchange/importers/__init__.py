"""Memory files of other programs: which formats Kept reads, and how a file is recognised.

One module a format; each has a function that turns the bytes of one file into what was `Brought` (`foreign`).
`memory.bringing` stores it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from kept.exchange.importers.agent_engine import read_agent_engine
from kept.exchange.importers.brain import read_brain
from kept.exchange.importers.claude_mem import read_claude_mem
from kept.exchange.importers.foreign import Brought
from kept.exchange.importers.hosts import HOSTS, Host, reader_of
from kept.exchange.importers.mem0 import read_mem0
from kept.exchange.importers.notes import (
    read_agents_md,
    read_basic_memory,
    read_markdown,
    read_openclaw,
)
from kept.exchange.importers.praxis import read_praxis
from kept.exchange.importers.server_memory import read_server_memory

MOST_BYTES = 256 * 1024 * 1024
BEGINNING = 64 * 1024  # bytes that tell the format of a file

Read = Callable[[Path, bytes], Brought]


class Importer(Struct, frozen=True, kw_only=True):
    """A format: its name, the program it belongs to, the function that reads it, and its files in a folder."""

    name: str
    program: str
    read: Read
    patterns: tuple[str, ...] = ("*",)
    others: tuple[str, ...] = ()  # files of the program that are read elsewhere, such as transcripts
    owns_folder: bool = False  # everything in it is the program's, so that files left out are worth naming
    place: str = ""  # where the program keeps these files
    is_database: bool = False  # opened by its reader, of any size
    fits: Callable[[Path, bytes], bool] = lambda path, beginning: False
    fits_folder: Callable[[Path], bool] = lambda folder: False

    def files(self, path: Path) -> list[Path]:
        """The files of this format at a path: itself, or those below a folder, in order."""
        return self._matching(path, self.patterns) if path.is_dir() else [path]

    def left_out(self, path: Path) -> list[str]:
        """Return the names of the files in a folder of this program that are not read."""
        if not self.owns_folder or not path.is_dir():
            return []
        read = {*self.files(path), *self._matching(path, self.others)}
        return [file.relative_to(path).as_posix() for file in self._matching(path, ("**/*",)) if file not in read]

    @staticmethod
    def _matching(path: Path, patterns: Sequence[str]) -> list[Path]:
        found = set()
        for pattern in patterns:
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


def _of_host(host: Host) -> Importer:
    """Return the format of the notes that an agent keeps itself."""
    return Importer(
        name=host.format,
        program=host.title,
        read=reader_of(host),
        patterns=host.patterns,
        fits=lambda path, beginning: path.suffix == ".md" and host.fits(path),
        fits_folder=lambda folder: host.fits(folder / "NOTE.md"),
    )


def _is_openclaw(path: Path, _beginning: bytes) -> bool:
    return path.name == "MEMORY.md" or (path.suffix == ".md" and path.parent.name == "memory")


# Tried in this order.
IMPORTERS: tuple[Importer, ...] = (
    *map(_of_host, HOSTS),
    Importer(
        name="praxis",
        program="Praxis",
        read=read_praxis,
        owns_folder=True,
        patterns=tuple(
            f"{folder}{name}"
            for folder in ("", "memory/")
            for name in ("project.json", "project.json.bak", "sessions/*.memory.json")
        ),
        fits=lambda path, beginning: (
            _json_with(b"entries", b"version")(path, beginning)
            or _json_with(b"sessionId", b"findings")(path, beginning)
        ),
        fits_folder=lambda folder: any(
            (folder / name).is_file() for name in ("project.json", "memory/project.json", "memory/project.json.bak")
        ),
    ),
    Importer(
        name="agent-engine",
        program="agent_engine",
        read=read_agent_engine,
        patterns=("memory.json", "**/memory.json"),
        fits=_json_with(b"context_item_id"),
    ),
    Importer(
        name="brain",
        program="Brain",
        read=read_brain,
        owns_folder=True,
        patterns=(
            "MEMORY.md",
            "*/MEMORY.md",
            "items.json",
            "*/items.json",
            "**/tasks.json",
            "**/.agent/tasks/tasks.json",
        ),
        others=("*/sessions/*", "**/sessions/*.jsonl"),
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
        read=read_claude_mem,
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
        read=read_server_memory,
        patterns=("*.jsonl", "memory.json"),
        fits=lambda path, beginning: b'"entityType"' in beginning or b'"relationType"' in beginning,
    ),
    Importer(
        name="mem0",
        program="mem0",
        read=read_mem0,
        patterns=("*.json",),
        fits=lambda path, beginning: (
            _json_with(b"memory", b"user_id")(path, beginning) or _json_with(b"memory", b"created_at")(path, beginning)
        ),
    ),
    Importer(
        name="basic-memory",
        program="basic-memory",
        read=read_basic_memory,
        patterns=("**/*.md",),
        fits=lambda path, beginning: beginning.startswith(b"---") and b"\npermalink:" in beginning,
        fits_folder=lambda folder: (folder / ".basic-memory").exists(),
    ),
    Importer(
        name="agents-md",
        program="coding agents",
        read=read_agents_md,
        patterns=("CLAUDE.md", "AGENTS.md", "GEMINI.md", "AGENT.md", ".claude/CLAUDE.md"),
        fits=_named("CLAUDE.md", "AGENTS.md", "GEMINI.md", "AGENT.md", "CLAUDE.local.md"),
    ),
    Importer(
        name="openclaw",
        program="OpenClaw",
        read=read_openclaw,
        owns_folder=True,
        patterns=("MEMORY.md", "memory/*.md", "USER.md"),
        place="~/.openclaw/workspace",
        fits=_is_openclaw,
        fits_folder=lambda folder: (folder / "MEMORY.md").is_file() or (folder / "SOUL.md").is_file(),
    ),
    Importer(
        name="markdown",
        program="Markdown notes",
        read=read_markdown,
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
