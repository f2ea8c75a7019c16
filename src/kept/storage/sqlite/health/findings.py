"""What a look at a store finds: one thing each, how it is, and what to do about it."""

from collections.abc import Collection
from typing import Literal

from msgspec import Struct

Level = Literal["ok", "note", "problem"]

FIX = "`kept doctor --fix` saves what can be saved; the damaged file is kept."
REBUILD = "`kept doctor --fix` builds it anew from the memories; nothing is lost."
NAMED = 10  # ids that a finding names; it counts the others

_PLURALS = {"memory": "memories", "alias": "aliases"}


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


def size(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:,.1f} MB" if n_bytes < 2**30 else f"{n_bytes / 2**30:,.1f} GB"
