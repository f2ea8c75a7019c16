"""agent_engine (D4, D13): `memory.json`, the ContextItems of a project, of a task or of global memory.

Rule: the text of an item is the word of its kind in the payload, such as `payload.decision`; of a failure, the message
of the error and the lesson.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

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
from kept.model import Draft, Source

_MARKS = ("project", "task", "global", "tool")  # tags that only repeat where an item was
_TEXTS = ("text", "decision", "convention", "lesson", "preference", "pattern", "content", "output", "summary")


def read_agent_engine(path: Path, data: bytes) -> Brought:
    """The items of one file. Raises InvalidInput when there are none."""
    brought = Brought(statements=[], unread=[])
    for number, item in enumerate(_items(path, data), 1):
        content = _content(item.get("payload")) if isinstance(item, dict) else ""
        if content:
            brought.statements += _statements(path, item, content)
        else:
            brought.unread.append(f"{path.name}: item {number} has no text")
    return brought


def _items(path: Path, data: bytes) -> list[Any]:
    found = document(path, data)
    items: Any = found.get("items", found) if isinstance(found, dict) else found
    items = list(items.values()) if isinstance(items, dict) else items
    if not isinstance(items, list):
        raise InvalidInput(f"{path.name} is not a memory.json of agent_engine.")
    return items


def _content(payload: Any) -> str:
    """The text of a payload; if no field has one, the payload itself."""
    if isinstance(payload, str):
        return payload
    said = text_in(payload, *_TEXTS)
    message = text_in(payload.get("failure"), "message") if isinstance(payload, dict) else ""
    said = f"{message}: {said}" if message and said else said or message
    return said or (msgspec.json.encode(payload).decode() if isinstance(payload, dict) and payload else "")


def _statements(path: Path, item: dict[str, Any], content: str) -> Iterator[BroughtStatement]:
    payload = item["payload"] if isinstance(item.get("payload"), dict) else {}
    where = text_in(item, "source").split("/")
    is_task = where[0] == "task" and len(where) > 1
    kind = text_in(item, "kind") or "fact"
    scope = names_in([text_in(payload, "scope", "category", "domain")])
    tags = tuple(tag for tag in names_in(item.get("tags")) if tag not in (*_MARKS, kind))
    for part in pieces(content):
        draft = Draft(
            content=part,
            kind=kind,
            tags=tuple(dict.fromkeys((*tags, *scope))),
            importance=number_in(item.get("importance"), 0, 1),
            source=Source(origin="import", task=where[1] if is_task else None, file=path.name),
            created_at=moment_in(item.get("timestamp")),
            data=_failure(payload),
        )
        yield BroughtStatement(draft=draft, id=text_in(item, "context_item_id"))


def _failure(payload: dict[str, Any]) -> dict[str, Any] | None:
    """Return the signature of a failure as it was, and its lesson."""
    if "failure" not in payload:
        return None
    return {"failure": payload["failure"], "lesson": text_in(payload, "lesson")}
