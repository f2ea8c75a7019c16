"""Praxis (C3, C4): `project.json` with entries, aliases and conflicts, and the findings of `sessions/*.memory.json`.

All fields are taken: those that Kept has no place for are kept in `data`; an id that is a UUID stays the uid. Rule: the
fingerprints of Praxis, two djb2 hashes, tell entries apart as they did there. As in Praxis itself, a project.json that
cannot be read is replaced by its project.json.bak.
"""

import re
from pathlib import Path
from typing import Any

from kept.errors import InvalidInput
from kept.exchange.importers.foreign import (
    Brought,
    BroughtStatement,
    ForeignConflict,
    document,
    moment_in,
    names_in,
    number_in,
    pieces,
    text_in,
)
from kept.model import Draft, Source, Status
from kept.text import djb2_fingerprint

STATUSES: tuple[Status, ...] = ("candidate", "confirmed", "pinned")
TYPES = ("contradictory", "superseded", "ambiguous")
VERSION = 1
COPY = ".bak"
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_KEPT_AS_THEY_ARE = ("fingerprint", "confidence", "promotedToProjectMemory", "promotedEntryId", "updatedAt", "source")


def read_praxis(path: Path, data: bytes) -> Brought:
    """A store, its copy, or the memory of one session. Raises InvalidInput for what is none of them."""
    if path.suffix == COPY:
        return Brought() if _is_readable(path.with_suffix("")) else _read(path, data)
    try:
        return _read(path, data)
    except InvalidInput as error:
        if not _is_readable(path.with_name(path.name + COPY)):
            raise
        said = f"{path.name} cannot be read ({error.message.rstrip('.')}); {path.name}{COPY} was read instead"
        return Brought(unread=[said])


def _is_readable(path: Path) -> bool:
    try:
        return bool(_read(path, path.read_bytes()))
    except (OSError, InvalidInput):
        return False


def _read(path: Path, data: bytes) -> Brought:
    store = document(path, data)
    if not isinstance(store, dict) or not (isinstance(store.get("entries"), list) or "findings" in store):
        raise InvalidInput(f"{path.name} is neither a project.json nor a session memory of Praxis.")
    if store.get("version", VERSION) != VERSION:
        raise InvalidInput(
            f"{path.name} has version {str(store.get('version'))[:20]} of Praxis; Kept reads version {VERSION}.",
            hint="Open it with Praxis once, which brings it up to date.",
        )
    brought = Brought(statements=[], disagreements=[], unread=[], aliases={}, left_out=[], settings={})
    if "findings" in store:
        _read_session(path, store, brought)
        return brought
    for number, entry in enumerate(store["entries"], 1):
        _read_entry(path, number, entry, Source(origin="import", file=path.name), brought)
    brought.aliases |= _aliases(store.get("aliases"))
    brought.settings |= _settings(store.get("metadata"))
    conflicts = store.get("conflicts")
    brought.disagreements += filter(None, map(_conflict, conflicts if isinstance(conflicts, list) else ()))
    return brought


def _settings(metadata: Any) -> dict[str, str]:
    """Return the settings of Kept that stand for those of a store, where they differ from the defaults."""
    if not isinstance(metadata, dict):
        return {}
    found = {"auto_memory": "false"} if metadata.get("autoMemoryEnabled") is False else {}
    preset = metadata.get("configPreset")
    return found | ({"preset": preset} if preset in ("conservative", "aggressive") else {})


def _aliases(given: Any) -> dict[str, tuple[str, ...]]:
    named = {str(word)[:100]: names_in(others) for word, others in given.items()} if isinstance(given, dict) else {}
    return {word: others for word, others in named.items() if others}


def _conflict(pair: Any) -> ForeignConflict | None:
    left, right, type = (text_in(pair, name) for name in ("entryA", "entryB", "conflictType"))
    if not left or not right:
        return None
    return ForeignConflict(
        left=left,
        right=right,
        type=type if type in TYPES else "ambiguous",  # type: ignore[arg-type]
        detected_at=moment_in(pair.get("detectedAt")),
        resolved_at=moment_in(pair.get("resolvedAt")),
    )


def _read_session(path: Path, record: dict[str, Any], brought: Brought) -> None:
    session = text_in(record, "sessionId")[:128]
    source = Source(origin="import", agent=text_in(record, "agentId") or None, session=session or None, file=path.name)
    findings = record.get("findings")
    for number, finding in enumerate(findings if isinstance(findings, list) else (), 1):
        if isinstance(finding, dict) and finding.get("promotedToProjectMemory") and finding.get("promotedEntryId"):
            brought.left_out.append(f"{path.name}: finding {number} is an entry of project.json")
            continue
        at = {"createdAt": record.get("createdAt")} | finding if isinstance(finding, dict) else finding
        _read_entry(path, number, at, source, brought)
    for part in pieces(text_in(record, "summary"), 4_000):
        draft = Draft(content=part, kind="summary", source=source, created_at=moment_in(record.get("finalizedAt")))
        brought.statements.append(BroughtStatement(draft=draft, id=f"{session}:summary"))


def _read_entry(path: Path, number: int, entry: Any, source: Source, brought: Brought) -> None:
    content = text_in(entry, "content")
    if not content:
        brought.unread.append(f"{path.name}: entry {number} has no content")
        return
    status = text_in(entry, "status")
    draft = Draft(
        content=content,
        kind=text_in(entry, "category") or "fact",
        tags=names_in(entry.get("tags")),
        files=names_in(entry.get("filePaths")),
        importance=number_in(entry.get("importance"), 0, 1),
        confidence=number_in(entry.get("confidence"), 0, 1) or 1.0,
        source=_source_of(entry, source),
        created_at=moment_in(entry.get("createdAt")),
        data={"praxis": {name: entry[name] for name in _KEPT_AS_THEY_ARE if entry.get(name) is not None}},
    )
    brought.statements.append(
        BroughtStatement(
            draft=draft,
            id=text_in(entry, "id") or text_in(entry, "fingerprint") or djb2_fingerprint(content),
            uid=_uuid(text_in(entry, "id")),
            status=status if status in STATUSES else None,
            use_count=int(number_in(entry.get("accessCount"), 0, 1_000_000) or 0),
            last_used_at=moment_in(entry.get("lastAccessedAt")),
        )
    )


def _uuid(id: str) -> str | None:
    return id.lower() if _UUID.fullmatch(id) else None


def _source_of(entry: dict[str, Any], source: Source) -> Source:
    """Where an entry came from: as its session says, else as it says itself."""
    own = entry.get("source")
    session, agent = text_in(own, "sessionId")[:128] or None, text_in(own, "agentId") or None
    return Source(origin="import", agent=source.agent or agent, session=source.session or session, file=source.file)
