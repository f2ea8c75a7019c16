"""Brain's layout (B20): `<agent>/MEMORY.md`, `items.json`, `tasks.json`. Its sessions are read as transcripts.

Rule: the folder of a MEMORY.md names the agent whose memory it is, and items stay items, cited and with their ids.
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
from kept.exchange.items import ITEM_TYPES
from kept.exchange.memory_md import content_of
from kept.model import ITEM, Draft, Source, TaskRecord, TaskState, replace

STATES = get_args(TaskState)
ENDS = ("done", "failed", "cancelled")
NO_AGENT = "agent"  # the folder of memories without an agent


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
    agent = path.parent.name if path.parent.name not in ("", ".", "memory", NO_AGENT) else None
    brought.statements = [_of_agent(statement, agent) for statement in brought.statements]
    return brought


def _of_agent(statement: BroughtStatement, agent: str | None) -> BroughtStatement:
    source = replace(statement.draft.source or Source(), agent=agent)
    return replace(
        statement, draft=replace(statement.draft, source=source, content=content_of(statement.draft.content))
    )


def _read_items(path: Path, items: list[Any]) -> Brought:
    brought = Brought(statements=[], unread=[])
    for number, item in enumerate(items, 1):
        if content := text_in(item, "content", "title"):
            brought.statements += _statements(path, item, content)
        else:
            brought.unread.append(f"{path.name}: item {number} has no content")
    return brought


def _statements(path: Path, item: dict[str, Any], content: str) -> Iterator[BroughtStatement]:
    id, type, line = text_in(item, "id"), text_in(item, "type"), item.get("lineNumber")
    source = Source(
        origin="import",
        file=text_in(item, "sourceFile")[:500] or path.name,
        line=line if isinstance(line, int) and line > 0 else None,
    )
    for part in pieces(content):
        draft = Draft(
            content=part,
            kind=type or "fact",
            scope="items",
            item_type=type if type in ITEM_TYPES else "note",
            title=text_in(item, "title")[:500] or None,
            files=names_in([text_in(item, "sourceFile")]),
            confidence=number_in(item.get("confidence"), 0, 1) or 1.0,
            trust="tool",
            source=source,
            data={ITEM: id[:200]} if id else None,
            created_at=moment_in(item.get("extractedAt")),
        )
        yield BroughtStatement(draft=draft, id=id)
        id = ""  # of the first part alone


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
            TaskRecord(
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
