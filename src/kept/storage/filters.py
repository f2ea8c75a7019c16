"""Which memories a filter means, for engines that hold them as objects. The others say the same in SQL.

Rule: an empty field of the filter matches everything.
"""

from collections.abc import Iterable, Mapping
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from kept.model import Memory
from kept.ports import Where
from kept.storage.shared import shelf_of

LOWERED = str.maketrans(ascii_uppercase, ascii_lowercase)


def matches(memory: Memory, where: Where) -> bool:
    """Whether the memory is one of those that `where` means."""
    return (
        _stands_there(memory, where)
        and _is_named(memory, where)
        and _is_about(memory, where)
        and _comes_from(memory, where)
        and (where.since is None or memory.created_at >= where.since)
        and (where.until is None or memory.created_at < where.until)
    )


def _stands_there(memory: Memory, where: Where) -> bool:
    return (
        where.shelf in ("any", shelf_of(memory))
        and where.scope in (None, memory.scope)
        and (not where.tiers or memory.tier in where.tiers)
        and (not where.kinds or memory.kind in where.kinds)
        and (not where.statuses or memory.status in where.statuses)
        and (not where.trusts or memory.trust in where.trusts)
    )


def _is_named(memory: Memory, where: Where) -> bool:
    return (
        where.uid in (None, memory.uid)
        and (not where.ids or memory.id in where.ids)
        and (not where.fingerprints or memory.fingerprint in where.fingerprints)
    )


def _is_about(memory: Memory, where: Where) -> bool:
    return (
        _is_tagged(memory, where)
        and all(_has(memory.data or {}, name, value) for name, value in where.data)
        and (not where.files or not set(where.files).isdisjoint(memory.files))
        and where.topic in (None, memory.topic)
        and where.key in (None, memory.key)
    )


def _is_tagged(memory: Memory, where: Where) -> bool:
    return (not where.tags or not set(where.tags).isdisjoint(memory.tags)) and (
        not where.tags_of_any_case or not _lowered(where.tags_of_any_case).isdisjoint(_lowered(memory.tags))
    )


def _lowered(tags: Iterable[str]) -> set[str]:
    """Return the tags with a-z for A-Z and nothing else changed, as every SQL can do it."""
    return {tag.translate(LOWERED) for tag in tags}


def _has(data: Mapping[str, Any], name: str, value: Any) -> bool:
    found = data.get(name)
    return name in data and found == value and isinstance(found, bool) == isinstance(value, bool)


def _comes_from(memory: Memory, where: Where) -> bool:
    source = memory.source
    return (
        where.agent in (None, source.agent)
        and where.session in (None, source.session)
        and where.task in (None, source.task)
        and where.narrative in (None, source.narrative)
        and (where.seen_by is None or not _is_unpromoted(memory) or source.session == where.seen_by)
    )


def _is_unpromoted(memory: Memory) -> bool:
    return memory.tier == "session" and memory.status == "candidate" and memory.kind != "summary"
