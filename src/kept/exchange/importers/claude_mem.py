"""claude-mem: its SQLite database, `~/.claude-mem/claude-mem.db`, which holds all projects of a machine.

An observation becomes a statement from its title, and one from each of its facts; the newest summary of a session is a
summary. Its prompts are left out: they are in the transcripts of the agent, which `kept import` reads as conversations.
Rule: opened to read only and in one transaction, since claude-mem's worker may be writing; columns that an older
version does not have are empty.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from kept.errors import InvalidInput
from kept.exchange.importers.foreign import Brought, BroughtStatement, moment_in, names_in, pieces, text_in
from kept.exchange.tables import open_read_only, rows_of
from kept.model import Draft, Source

_KINDS = {"bugfix": "error", "feature": "file_change", "refactor": "file_change", "change": "file_change"}
_SUMMARY = {"request": "Asked", "learned": "Learned", "completed": "Done", "next_steps": "Next"}
SUMMARY_CHARS = 4_000


def read_claude_mem(path: Path, _data: bytes) -> Brought:
    """Observations and summaries of all projects, each with its project. Raises InvalidInput."""
    brought = Brought(statements=[], unread=[])
    with open_read_only(path, "claude-mem") as connection:
        if not {"observations", "session_summaries"} <= {row["name"] for row in rows_of(connection, "sqlite_schema")}:
            raise InvalidInput(f"{path.name} is not a database of claude-mem: it has no observations.")
        summaries = {
            str(_session(row)): row for row in rows_of(connection, "session_summaries", "created_at_epoch, id")
        }
        for row in rows_of(connection, "observations", "created_at_epoch, id"):
            _add(brought, path, row, _kind(row), _said(row), f"observation:{row.get('id')}")
    for session, row in summaries.items():
        lines = (f"{word}: {' '.join(said.split())}" for name, word in _SUMMARY.items() if (said := text_in(row, name)))
        _add(brought, path, row, "summary", pieces("\n".join(lines), SUMMARY_CHARS), f"summary:{session}")
    return brought


def _add(brought: Brought, path: Path, row: dict[str, Any], kind: str, said: list[str], id: str) -> None:
    """Add what one row says, under its project, or note that it says nothing."""
    if not said:
        brought.unread.append(f"{path.name}: {id} has no text")
    files = (*_listed(row, "files_modified"), *_listed(row, "files_edited"), *_listed(row, "files_read"))
    source = Source(origin="import", agent=text_in(row, "agent_type") or None, session=_session(row), file=path.name)
    for content in said:
        draft = Draft(
            content=content,
            kind=kind,
            tags=_listed(row, "concepts"),
            files=tuple(dict.fromkeys(files)),
            source=source,
            created_at=moment_in(row.get("created_at_epoch")) or moment_in(row.get("created_at")),
        )
        project = text_in(row, "merged_into_project", "project")
        brought.statements.append(BroughtStatement(draft=draft, id=id, project=project))


def _said(row: dict[str, Any]) -> list[str]:
    """The statements of an observation: what it is called, and its facts; if it has neither, its text."""
    title, subtitle = text_in(row, "title"), text_in(row, "subtitle")
    head = f"{title.rstrip('.')}. {subtitle}" if title and subtitle else title or subtitle
    found = [part for said in (head, *_facts(row)) for part in pieces(said)]
    return list(dict.fromkeys(found or pieces(text_in(row, "narrative", "text"))))


def _facts(row: dict[str, Any]) -> Iterator[str]:
    try:
        listed = msgspec.json.decode(text_in(row, "facts") or "[]")
    except msgspec.DecodeError:
        listed = text_in(row, "facts").split("\n")
    for fact in listed if isinstance(listed, list) else ():
        if isinstance(fact, str) and fact.strip():
            yield fact.strip()


def _listed(row: dict[str, Any], name: str) -> tuple[str, ...]:
    """A list in JSON, or with commas."""
    said = text_in(row, name)
    try:
        return names_in(msgspec.json.decode(said)) if said.startswith("[") else names_in(said)
    except msgspec.DecodeError:
        return ()


def _kind(row: dict[str, Any]) -> str:
    kind = text_in(row, "type").lower()
    return _KINDS.get(kind, kind or "fact")


def _session(row: dict[str, Any]) -> str | None:
    return text_in(row, "memory_session_id", "sdk_session_id")[:128] or None
