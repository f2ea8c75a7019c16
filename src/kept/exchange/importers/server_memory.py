"""The knowledge graph of the MCP server memory: lines of entities with observations, and of relations.

Rule: an observation is a statement about its entity, which it names; a relation is a statement of its own.
"""

from pathlib import Path

from kept.exchange.importers import Brought, BroughtStatement, pieces, records, text_in
from kept.model import Draft, Source


def read_server_memory(path: Path, data: bytes) -> Brought:
    """The statements of a graph."""
    brought = Brought(statements=[], unread=[])
    for number, record in records(path, data, brought.unread):
        source = Source(origin="import", file=path.name, line=number)
        name, kind = text_in(record, "name"), text_in(record, "entityType")
        if record.get("type") == "relation" or text_in(record, "relationType"):
            said = " ".join((text_in(record, "from"), text_in(record, "relationType"), text_in(record, "to")))
            if said.strip():
                brought.statements.append(
                    BroughtStatement(draft=Draft(content=said[:500], tags=("relation",), source=source))
                )
            continue
        observed = record.get("observations")
        told = [one for one in observed if isinstance(one, str) and one.strip()] if isinstance(observed, list) else []
        if not name or not told:
            brought.unread.append(f"{path.name}:{number} has no name or no observations")
            continue
        for observation in told:
            said = observation if name.lower() in observation.lower() else f"{name}: {observation}"
            for part in pieces(said):
                tags = tuple(dict.fromkeys(tag[:100] for tag in (name, kind) if tag))
                brought.statements.append(BroughtStatement(draft=Draft(content=part, tags=tags, source=source)))
    return brought
