"""Brain's layout (B20): `<agent>/MEMORY.md`, `items.json`, `tasks.json`. Its sessions are read as transcripts.

Rule: the folder of a MEMORY.md names the agent whose memory it is.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from kept.errors import InvalidInput
from kept.exchange.importers.foreign import (
    Brought,
    BroughtStatement,
    document,
    moment_in,
    names_in,
    number_in,
    pieces,
    text_in,
)
from kept.exchange.importers.notes import read_markdown
from kept.model import Draft, Source, Task, TaskState, replace

STATES = get_args(TaskState)
ENDS = ("done", "failed", "cancelled")
ITEM_TYPES = ("entity", "claim", "task", "decision", "note")


def read_brain(path: Path, data: bytes) -> Brought:
    """One file of the layout. Raises InvalidInput for what is none of them."""
    if path.suffix == ".md":
        return _read_memory(path, data)
    found = document(path, data)
    if isinstance(found, dict) and isinstance(found.get("tasks"), list):
        return _read_tasks(path, found["tasks"])
    if isinstance(found, list):
        return _read_items(path, found)
    raise InvalidInput(f"{path.name} is neither an items.json nor a tasks.json of Brain.")


def _read_memory(path: Path, data: bytes) -> Brought:
    brought = read_markdown(path, data)
    agent = path.parent.name if path.parent.name not in ("", ".", "memory") else None
    statements = []
    for statement in brought.statements:
        source = replace(statement.draft.source or Source(), agent=agent)
        statements.append(replace(statement, draft=replace(statement.draft, source=source)))
    brought.statements = statements
    return brought


def _read_items(path: Path, items: list[Any]) -> Brought:
    brought = Brought(statements=[], unread=[])
    for number, item in enumerate(items, 1):
        if content := text_in(item, "content", "title"):
            brought.statements += _statements(path, item, content)
        else:
            brought.unread.append(f"{path.name}: item {number} has no content")
    return brought


def _statements(path: Path, item: dict[str, Any], content: str) -> Iterator[BroughtStatement]:
    title, type, line = text_in(item, "title"), text_in(item, "type"), item.get("lineNumber")
    source = Source(
        origin="import",
        file=text_in(item, "sourceFile")[:500] or path.name,
        line=line if isinstance(line, int) and line > 0 else None,
    )
    for part in pieces(f"{title}: {content}" if title and title not in content else content):
        draft = Draft(
            content=part,
            kind=type or "fact",
            files=names_in([text_in(item, "sourceFile")]),
            confidence=number_in(item.get("confidence"), 0, 1) or 1.0,
            source=source,
            tags=(type,) if type in ITEM_TYPES else (),
            created_at=moment_in(item.get("extractedAt")),
        )
        yield BroughtStatement(draft=draft, id=text_in(item, "id"))


def _read_tasks(path: Path, tasks: list[Any]) -> Brought:
    brought = Brought(tasks=[], unread=[])
    for number, task in enumerate(tasks, 1):
        name = text_in(task, "id")
        if not name:
            brought.unread.append(f"{path.name}: task {number} has no id")
            continue
        state = text_in(task, "status").lower().replace("in_progress", "active").replace("completed", "done")
        state = state if state in STATES else "pending"
        ended = moment_in(task.get("completed"))
        created = moment_in(task.get("created")) or datetime(1971, 1, 1, tzinfo=UTC)
        priority = number_in(task.get("priority"), 0, 1_000_000)
        brought.tasks.append(
            Task(
                name=name,
                description=text_in(task, "description"),
                state=state,  # type: ignore[arg-type]
                milestone=text_in(task, "milestone") or None,
                priority=None if priority is None else int(priority),
                acceptance_criteria=names_in(task.get("acceptance_criteria")),
                blocked_by=names_in(task.get("blocked_by")),
                created_at=created,
                completed_at=(ended or created) if state in ENDS else None,
            )
        )
    return brought
