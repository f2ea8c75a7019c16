"""The same statement again: strengthen what is there instead of storing it twice.

Rule: only what is the same but for case and spacing is the same. What is nearly the same is reported, and never merged
silently. A topic is the writer's own word that a new statement takes the place of the old one.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from kept.model import Memory
from kept.ports import Reader, Transaction, Where

STRENGTHEN_BY = 0.1
NEAR_RATIO = 85.0  # per cent of the letters, in order, that two texts share
EVIDENCE = frozenset({"sessions", "agents", "signals"})  # lists in the data of a finding that grow with each time


def strengthen(tx: Transaction, twin: Memory, again: Memory, at: datetime) -> Memory:
    """Raise importance by 0.1 (at most 1.0) and count one more use.

    Said on purpose, it confirms a candidate; said with a pin, it pins; new tags and files are added.
    """
    status = twin.status
    if again.status == "pinned" or (again.status == "confirmed" and status == "candidate"):
        status = again.status
    return tx.put(
        replace(
            twin,
            importance=min(1.0, round(twin.importance + STRENGTHEN_BY, 9)),
            use_count=twin.use_count + 1,
            status=status,
            tags=tuple(dict.fromkeys((*twin.tags, *again.tags))),
            files=tuple(dict.fromkeys((*twin.files, *again.files))),
            data=_evidence(twin, again),
            last_used_at=at,
            updated_at=at,
        ),
        "strengthen",
    )


def _evidence(twin: Memory, again: Memory) -> dict[str, Any] | None:
    """The data of the twin, with the sessions, agents and signals that speak for the memory added up."""
    if not again.data or not EVIDENCE & again.data.keys():
        return twin.data
    merged = dict(twin.data or {})
    for name in EVIDENCE & again.data.keys():
        merged[name] = list(dict.fromkeys((*merged.get(name, ()), *again.data[name])))
    return merged


def find_near(draft: Memory, alike: Sequence[Memory]) -> list[Memory]:
    """Those of the memories about the same thing that say nearly the same, nearest first."""
    if not alike:
        return []
    from rapidfuzz import fuzz

    near = [(fuzz.ratio(draft.content.lower(), other.content.lower()), other) for other in alike]
    return [memory for ratio, memory in sorted(near, key=lambda pair: -pair[0]) if ratio >= NEAR_RATIO]


def find_superseded(reader: Reader, draft: Memory) -> list[Memory]:
    """The live memories of the same topic, whose place the draft takes; a note of a task, only of its own notes."""
    if draft.topic is None:
        return []
    is_note = draft.tier == "task"
    where = Where(topic=draft.topic, scope=draft.scope, task=draft.source.task if is_note else None)
    return [old for old in reader.select(where, limit=100) if (old.tier == "task") == is_note]


def supersede(tx: Transaction, old: Memory, new: Memory, at: datetime) -> Memory:
    """Archive the old one; its ref answers with the new one from now on."""
    return tx.put(
        replace(old, status="archived", reason="superseded", superseded_by=new.uid, archived_at=at, updated_at=at),
        "supersede",
    )
