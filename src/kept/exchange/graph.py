"""A knowledge graph as memories: what an entity, an observation and a relation of the MCP server memory become.

The importer, the exporter and `kept mcp --graph` share this. An observation is a statement that names its entity, a
relation is a statement of its own; an entity is a record that recall does not show. Rule: an observation is what its
memory says, so one that a person revises or forgets is revised or gone in the graph.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from kept.model import Draft, Scope, replace

COLLECTION = "graph"  # topic, and the beginning of the keys, of every memory of the graph
VALUE = "value"  # in the data of such a memory
TAG_CHARS = 100


def entity(name: str, type: str) -> Draft:
    """The record of an entity."""
    return _draft(f"{name} ({type})", {"name": name, "type": type}, (name, type), scope="sources")


def observation(name: str, type: str, text: str) -> Draft:
    """A statement about an entity, with its name in front unless the text names it."""
    is_named = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) and not text.startswith(f"{name}: ")
    return _draft(text if is_named else f"{name}: {text}", {"entity": name, "type": type}, (name, type))


def relation(start: str, type: str, to: str) -> Draft:
    """A statement that one entity stands in a relation to another."""
    return _draft(f"{start} {type} {to}", {"from": start, "to": to, "relation": type}, ("relation", start, to))


def keyed(draft: Draft) -> Draft:
    """The draft, redacted by now, with its key; without its place in the graph if a name was a secret."""
    value = (draft.data or {}).get(VALUE)
    if draft.topic != COLLECTION or value is None:
        return draft
    if not _has_its_names(value, draft.content):
        return replace(draft, topic=None, data=None, tags=())
    parts = ["entity", value.get("name", "")]
    if "from" in value:
        parts = ["relation", value["from"], value["relation"], value["to"]]
    elif "entity" in value:
        parts = ["observation", value["entity"], text_of(value, draft.content)]
    digest = hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=16).hexdigest()
    return replace(draft, key=f"{COLLECTION}:{parts[0]}:{digest}")


def _has_its_names(value: Mapping[str, Any], content: str) -> bool:
    """Whether a text still says what its value says, and no name was taken out whole: two would become one."""
    if any(value.get(name, "").startswith("[redacted:") for name in ("name", "entity", "from", "to")):
        return False
    if "from" in value:
        return content == f"{value['from']} {value['relation']} {value['to']}"
    if "entity" in value:
        return value["entity"].lower() in content.lower()
    return content == f"{value.get('name')} ({value.get('type')})"


def text_of(value: Mapping[str, Any], content: str) -> str:
    """The text of an observation whose memory says `content`."""
    return content.removeprefix(f"{value['entity']}: ")


def tag_of(name: str) -> str:
    """The tag by which the memories about an entity are found, among those of a few others."""
    return " ".join(name.replace(",", " ").split())[:TAG_CHARS].strip()


def graph_of(statements: Iterable[tuple[Mapping[str, Any], str]]) -> dict[str, list[dict[str, Any]]]:
    """The graph, as the server memory has it, of values and contents in the order in which they were stored."""
    entities: dict[str, dict[str, Any]] = {}
    relations = []
    for value, content in statements:
        if "from" in value:
            if _has_its_names(value, content):  # else a person corrected it
                relations.append({"from": value["from"], "to": value["to"], "relationType": value["relation"]})
            continue
        name = value.get("entity", value.get("name"))
        if name is not None:
            one = entities.setdefault(name, {"name": name, "entityType": value["type"], "observations": []})
            if "entity" in value:
                one["observations"].append(text_of(value, content))
    return {"entities": list(entities.values()), "relations": relations}


def _draft(content: str, value: dict[str, Any], tags: Iterable[str], scope: Scope = "memory") -> Draft:
    marked = tuple(dict.fromkeys(filter(None, map(tag_of, tags))))
    return Draft(content=content, tags=marked, topic=COLLECTION, data={VALUE: value}, scope=scope)
