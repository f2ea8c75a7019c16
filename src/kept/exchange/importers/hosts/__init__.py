"""Memories that agents keep themselves: where each host has its notes, and how they are read. Nothing is written.

One module a host. `memory.host_notes` finds the files of a project and stores their notes as they change; `kept import`
takes the files that a person names.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from kept.exchange.importers.foreign import Brought, BroughtStatement, decoded
from kept.exchange.importers.hosts.claude_notes import CLAUDE
from kept.exchange.importers.hosts.codex_notes import CODEX
from kept.exchange.importers.hosts.gemini_notes import GEMINI
from kept.exchange.importers.hosts.notes_text import Host as Host
from kept.exchange.importers.hosts.notes_text import HostFacts as HostFacts
from kept.exchange.importers.hosts.notes_text import HostFolder as HostFolder
from kept.exchange.importers.hosts.notes_text import HostNote as HostNote
from kept.exchange.importers.hosts.notes_text import slug_of as slug_of
from kept.exchange.importers.hosts.qwen_notes import QWEN
from kept.model import ALSO, Draft, Source

HOSTS = (CLAUDE, CODEX, QWEN, GEMINI)


def reader_of(host: Host) -> Callable[[Path, bytes], Brought]:
    """Return the function that reads one file of a host for an import."""

    def read(path: Path, data: bytes) -> Brought:
        notes, changed = host.read(path.name, decoded(path, data)), None
        with suppress(OSError):
            changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return Brought(statements=[_statement(host, path, one, part, changed) for one in notes for part in one.parts])

    return read


def _statement(host: Host, path: Path, note: HostNote, part: str, changed: datetime | None) -> BroughtStatement:
    source = Source(origin="import", agent=host.name, session=note.session, file=str(path)[-500:])
    draft = Draft(
        content=part, kind=note.kind, source=source, data={ALSO: list(note.also)}, created_at=note.at or changed
    )
    return BroughtStatement(draft=draft, belongs=note.cwd or host.belongs_to(path))
