"""The knowledge graph of the MCP server memory: lines of entities with observations, and of relations.

Rule: they become the memories that `exchange.graph` describes, so `kept mcp --graph` shows the same graph.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from kept.exchange import graph
from kept.exchange.importers.foreign import CONTENT_CHARS, Brought, BroughtStatement, pieces, records, text_in
from kept.model import Draft, Source, replace

LEAST_CHARS = 100  # of a piece, however long the name is that stands before it


def read_server_memory(path: Path, data: bytes) -> Brought:
    """The statements of a graph."""
    brought = Brought(statements=[], unread=[])
    said: set[str] = set()
    for number, record in records(path, data, brought.unread):
        source = Source(origin="import", file=path.name, line=number)
        drafts = list(_drafts(record, said))
        brought.statements += [BroughtStatement(draft=replace(draft, source=source)) for draft in drafts]
        if not drafts:
            brought.unread.append(f"{path.name}:{number} is neither an entity nor a relation")
    return brought


def _drafts(record: dict[str, Any], said: set[str]) -> Iterator[Draft]:
    """What a line becomes. `said`: the statements so far; one sentence about two entities must not become one."""
    if record.get("type") == "relation" or text_in(record, "relationType"):
        yield from _relation(record)
        return
    name, kind = text_in(record, "name"), text_in(record, "entityType")
    observed = record.get("observations")
    if not name or not isinstance(observed, list):
        return
    told = [one for one in observed if isinstance(one, str) and one.strip()]
    if not told:
        yield graph.entity(name, kind)
    for part in chain.from_iterable(pieces(one, max(LEAST_CHARS, CONTENT_CHARS - len(name) - 2)) for one in told):
        draft = graph.observation(name, kind, part)
        yield draft if draft.content.lower() not in said else replace(draft, content=f"{name}: {part}")
        said.add(draft.content.lower())


def _relation(record: dict[str, Any]) -> Iterator[Draft]:
    start, relation, to = (text_in(record, field) for field in ("from", "relationType", "to"))
    if start or to:
        draft = graph.relation(start, relation, to)
        yield replace(draft, content=draft.content[:CONTENT_CHARS])
