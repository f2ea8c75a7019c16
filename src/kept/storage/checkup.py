"""The findings of an examination: what was looked at, how it is, and what to do about it.

Every engine answers `kept doctor` with these. Rule: the hint of a problem says how it goes away: FIX and REBUILD are
done by `kept doctor --fix`; for RESTORE it takes a backup.
"""

from collections.abc import Collection
from typing import Literal

from msgspec import Struct

Level = Literal["ok", "note", "problem"]

FIX = "Run `kept doctor --fix`."
REBUILD = "Run `kept doctor --fix`. It rebuilds this from the memories; nothing is lost."
RESTORE = "It cannot be repaired in place; restore a backup."
NAMED = 10  # ids that a finding names; it counts the others

_PLURALS = {
    "memory": "memories",
    "new memory": "new memories",
    "note about a file": "notes about files",
    "alias": "aliases",
}


class Finding(Struct, frozen=True):
    """One thing that was looked at, and how it is."""

    level: Level
    check: str
    message: str
    hint: str = ""


def named(noun: str, ids: Collection[int]) -> str:
    """`memory 4`, `events 4, 5 and 9`, `events 1, 2, … (25 in all)`."""
    first = [str(id) for id in sorted(ids)[:NAMED]]
    if len(ids) == 1:
        return f"{noun} {first[0]}"
    plural = _PLURALS.get(noun, f"{noun}s")
    if len(ids) > NAMED:
        return f"{plural} {', '.join(first)}, … ({len(ids)} in all)"
    return f"{plural} {', '.join(first[:-1])} and {first[-1]}"


def counted(number: int, noun: str) -> str:
    """`1 memory`, `12 events`."""
    return f"{number} {noun if number == 1 else _PLURALS.get(noun, f'{noun}s')}"


def size(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:,.1f} MB" if n_bytes < 2**30 else f"{n_bytes / 2**30:,.1f} GB"
