"""mem0: an export of memories, as a list or under `memories` or `results`.

Rule: `memory` is the text; its categories are tags, and the agent that it belongs to is its source.
"""

from pathlib import Path
from typing import Any

from kept.errors import InvalidInput
from kept.exchange.importers.foreign import Brought, BroughtStatement, document, moment_in, names_in, pieces, text_in
from kept.model import Draft, Source


def read_mem0(path: Path, data: bytes) -> Brought:
    """The memories of an export. Raises InvalidInput when there is no list of them."""
    brought = Brought(statements=[], unread=[])
    for number, one in enumerate(_listed(path, data), 1):
        content = text_in(one, "memory", "text", "content", "data")
        if not content:
            brought.unread.append(f"{path.name}: memory {number} has no text")
            continue
        tags = (*names_in(one.get("categories")), *names_in((one.get("metadata") or {}).get("tags")))
        session = text_in(one, "run_id")[:128] or None
        source = Source(origin="import", agent=text_in(one, "agent_id") or None, session=session, file=path.name)
        for part in pieces(content):
            draft = Draft(content=part, tags=tags, source=source, created_at=moment_in(one.get("created_at")))
            brought.statements.append(BroughtStatement(draft=draft, id=text_in(one, "id")))
    return brought


def _listed(path: Path, data: bytes) -> list[Any]:
    found = document(path, data)
    if isinstance(found, dict):
        lists = (found.get(name) for name in ("memories", "results", "data"))
        found = next((one for one in lists if isinstance(one, list)), None)
    if not isinstance(found, list):
        raise InvalidInput(f"{path.name} is not an export of mem0: it has no list of memories.")
    return found
