"""Memories in the formats of other programs: Markdown, an Obsidian vault, Praxis, the MCP server memory, CSV.

Each function takes the content of a store and gives files: the name of each, and its text. Rule: stored text is
hostile. It is escaped for the place where it goes: no cell of a table is a formula, no line of a note begins another
heading, and no name of a file leads out of the folder.
"""

import csv
import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from kept.exchange import graph
from kept.model import Alias, Conflict, Memory, SessionRecord
from kept.text import djb2_fingerprint

Files = Iterator[tuple[str, str]]
NAME_CHARS = 60
_PRAXIS_KINDS = "decision architecture pattern warning discovery error preference file_change task_progress".split()
_PRAXIS_PRESETS = ("conservative", "balanced", "aggressive")
_PRAXIS_NAMES = {"progress": "task_progress", "convention": "pattern"}
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_COLUMNS = ("ref", "kind", "status", "trust", "content", "tags", "files", "importance", "feedback", "created", "source")


class SessionFindings(Struct, frozen=True, kw_only=True):
    """A session, and the memories that it left: its findings, and its summary."""

    session: SessionRecord
    findings: Sequence[Memory]
    summary: str


class StoreContent(Struct, frozen=True, kw_only=True):
    """The live memories of a store, and everything else that some format has a place for.

    `counts`: events of the journal by their action. `settings`: those of the project.
    """

    memories: Sequence[Memory]
    conflicts: Sequence[Conflict] = ()
    aliases: Sequence[Alias] = ()
    sessions: Sequence[SessionFindings] = ()
    counts: Mapping[str, int] = {}
    compacted_at: datetime | None = None
    auto_memory: bool = True
    preset: str = "balanced"


def markdown(content: StoreContent) -> Files:
    """One page: a heading for each kind, an item for each memory."""
    memories = content.memories
    lines = ["# Memories", ""]
    for kind in dict.fromkeys(memory.kind for memory in memories):
        lines += [f"## {kind.replace('_', ' ').capitalize()}", ""]
        for memory in (one for one in memories if one.kind == kind):
            tags = "".join(f" #{_tag(tag)}" for tag in memory.tags)
            lines.append(f"- {memory.created_at:%Y-%m-%d}: {_one_line(memory.content)}{tags}")
        lines.append("")
    yield "memories.md", "\n".join(lines)


def obsidian(content: StoreContent) -> Files:
    """A vault: a note for each memory, with properties; kinds, files and contradictions are links."""
    memories, conflicts = content.memories, content.conflicts
    names = {memory.uid: f"{_file_name(memory.content)} ({memory.ref})" for memory in memories}
    against = _contradictions(conflicts, names)
    for memory in memories:
        yield f"{names[memory.uid]}.md", _note(memory, against.get(memory.uid, ()))
    for kind in dict.fromkeys(memory.kind for memory in memories):
        listed = "\n".join(f"- [[{names[memory.uid]}]]" for memory in memories if memory.kind == kind)
        yield f"{kind}.md", f"# {kind}\n\n{listed}\n"


def _contradictions(conflicts: Sequence[Conflict], names: Mapping[str, str]) -> dict[str, list[str]]:
    """The names of the notes that contradict each memory."""
    against: dict[str, list[str]] = {}
    for conflict in conflicts:
        if conflict.resolved_at is None and {conflict.left, conflict.right} <= names.keys():
            against.setdefault(conflict.left, []).append(names[conflict.right])
            against.setdefault(conflict.right, []).append(names[conflict.left])
    return against


def _note(memory: Memory, contradictions: Iterable[str]) -> str:
    links = [f"- kind [[{memory.kind}]]", *(f"- file [[{_file_name(path)}]]" for path in memory.files)]
    links += [f"- contradicts [[{name}]]" for name in contradictions]
    about = {
        "ref": memory.ref,
        "uid": memory.uid,
        "kind": memory.kind,
        "status": memory.status,
        "trust": memory.trust,
        "tags": [_tag(tag) for tag in memory.tags],
        "created": f"{memory.created_at:%Y-%m-%d}",
    }
    # JSON is YAML, so every value is quoted where it has to be.
    properties = "".join(f"{name}: {msgspec.json.encode(value).decode()}\n" for name, value in about.items())
    body = "\n".join(_quiet(line) for line in memory.content.split("\n"))
    return f"---\n{properties}---\n\n{body}\n\n" + "\n".join(links) + "\n"


def praxis(content: StoreContent) -> Files:
    """C3, C4: a project.json, with the fingerprints of Praxis; and the memory of each session that is asked for."""
    memories = content.memories
    known = {memory.uid for memory in memories}
    document = {
        "version": 1,
        "entries": [_praxis_entry(memory) for memory in memories],
        "aliases": {alias.word: alias.expands_to for alias in content.aliases if alias.expands_to},
        "conflicts": [_praxis_conflict(one) for one in content.conflicts if {one.left, one.right} <= known],
        "metadata": _praxis_metadata(content),
    }
    yield "project.json", _json(document)
    for one in content.sessions:
        yield f"sessions/{one.session.name}.memory.json", _json(_praxis_session(one, known))


def _praxis_metadata(content: StoreContent) -> dict[str, Any]:
    """Return the counters, which are those of the journal, and the settings."""
    return {
        "createdAt": _milliseconds(min((memory.created_at for memory in content.memories), default=None)),
        "lastCompactedAt": _milliseconds(content.compacted_at),
        "totalPromotions": content.counts.get("promote", 0),
        "totalEvictions": content.counts.get("evict", 0) + content.counts.get("expire", 0),
        "totalAccesses": sum(memory.use_count for memory in content.memories),
        "autoMemoryEnabled": content.auto_memory,
        "configPreset": content.preset if content.preset in _PRAXIS_PRESETS else "conservative",
    }


def _json(document: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _praxis_session(one: SessionFindings, known: Collection[str]) -> dict[str, Any]:
    session = one.session
    parent = {} if session.parent is None else {"parentSessionId": session.parent}
    return {
        "version": 1,
        "sessionId": session.name,
        **parent,
        "agentId": session.agent or "",
        "findings": [_praxis_finding(memory, known) for memory in one.findings],
        "summary": one.summary,
        "createdAt": _milliseconds(session.started_at),
        "finalizedAt": _milliseconds(session.finished_at),
    }


def _praxis_finding(memory: Memory, known: Collection[str]) -> dict[str, Any]:
    entry = _praxis_entry(memory)
    fields = ("id", "fingerprint", "content", "category", "importance", "confidence", "filePaths", "tags")
    is_promoted = memory.uid in known
    promoted = {"promotedToProjectMemory": is_promoted} | ({"promotedEntryId": memory.uid} if is_promoted else {})
    return {name: entry[name] for name in fields} | promoted


def _praxis_entry(memory: Memory) -> dict[str, Any]:
    kind = _PRAXIS_NAMES.get(memory.kind, memory.kind)
    return {
        "id": memory.uid,
        "fingerprint": djb2_fingerprint(memory.content),
        "content": memory.content[:500],
        "category": kind if kind in _PRAXIS_KINDS else "discovery",
        "importance": memory.importance,
        "status": memory.status,
        "confidence": memory.confidence,
        "source": {"sessionId": memory.source.session or "", "agentId": memory.source.agent or ""},
        "filePaths": memory.files,
        "tags": memory.tags,
        "accessCount": memory.use_count,
        "lastAccessedAt": _milliseconds(memory.last_used_at or memory.created_at),
        "createdAt": _milliseconds(memory.created_at),
        "updatedAt": _milliseconds(memory.updated_at),
    }


def _praxis_conflict(conflict: Conflict) -> dict[str, Any]:
    resolved = {} if conflict.resolved_at is None else {"resolvedAt": _milliseconds(conflict.resolved_at)}
    detected = _milliseconds(conflict.detected_at)
    pair = {"entryA": conflict.left, "entryB": conflict.right, "conflictType": conflict.type}
    return {**pair, "detectedAt": detected, **resolved}


def server_memory(content: StoreContent) -> Files:
    """The graph of the MCP server memory: its own memories as they were, the others as observations of their kind.

    Each file that another memory is about is an entity as well.
    """
    memories = content.memories
    own = [memory for memory in memories if _is_of_graph(memory)]
    found = graph.graph_of(((memory.data or {}).get(graph.VALUE, {}), memory.content) for memory in own)
    others = _as_entities(memory for memory in memories if not _is_of_graph(memory))
    lines = [{"type": "entity", **one} for one in (*found["entities"], *others)]
    lines += [{"type": "relation", **one} for one in found["relations"]]
    yield "memory.jsonl", "".join(msgspec.json.encode(line).decode() + "\n" for line in lines)


def _as_entities(memories: Iterable[Memory]) -> list[dict[str, Any]]:
    """Kinds and files as entities, with the memories as their observations."""
    observed: dict[tuple[str, str], list[str]] = {}
    for memory in memories:
        for entity in ((memory.kind, "kind"), *((path, "file") for path in memory.files)):
            observed.setdefault(entity, []).append(memory.content)
    return [{"name": name, "entityType": type, "observations": said} for (name, type), said in observed.items()]


def _is_of_graph(memory: Memory) -> bool:
    return memory.topic == graph.COLLECTION and bool(memory.data)


def spreadsheet(content: StoreContent) -> Files:
    """A CSV table; a cell that a spreadsheet would take for a formula begins with an apostrophe."""
    page = io.StringIO()
    writer = csv.writer(page)
    writer.writerow(_COLUMNS)
    for memory in content.memories:
        values = (
            memory.ref,
            memory.kind,
            memory.status,
            memory.trust,
            memory.content,
            ", ".join(memory.tags),
            ", ".join(memory.files),
            memory.importance,
            memory.feedback,
            f"{memory.created_at:%Y-%m-%d %H:%M:%S}",
            memory.source.origin,
        )
        writer.writerow([_cell(value) if isinstance(value, str) else value for value in values])
    yield "memories.csv", page.getvalue()


Exporter = Callable[[StoreContent], Files]
EXPORTERS: Mapping[str, Exporter] = {
    "markdown": markdown,
    "obsidian": obsidian,
    "praxis": praxis,
    "server-memory": server_memory,
    "csv": spreadsheet,
}
FOLDERS = ("obsidian",)  # formats of many files


def _cell(value: str) -> str:
    return f"'{value}" if value.lstrip(" ").startswith(_FORMULA) else value


def _one_line(content: str) -> str:
    return " ".join(content.split())


def _quiet(line: str) -> str:
    """A line of a note that is only text: no heading, rule, fence, embed, link or comment of its own."""
    line = line.replace("[[", "\\[\\[").replace("%%", "\\%\\%").replace("<", "\\<")
    return f"\\{line}" if line.lstrip().startswith(("#", "---", "```", "~~~", "|", ">", "![")) else line


def _tag(tag: str) -> str:
    """A tag as Obsidian takes it: letters, digits, hyphens, underscores and slashes, and not only digits."""
    word = re.sub(r"[^\w/-]+", "-", tag).strip("-") or "tag"
    return f"t{word}" if word.isdigit() else word


def _file_name(title: str) -> str:
    """A name for a note: none of the characters that a link or a file system takes for something else."""
    words = re.sub(r'[\[\]#^|\\/:*?"<>\x00-\x1f\x7f]+', " ", title)
    return " ".join(words.split())[:NAME_CHARS].strip(" .") or "note"


def _milliseconds(at: datetime | None) -> int:
    return 0 if at is None else int(at.timestamp() * 1000)
