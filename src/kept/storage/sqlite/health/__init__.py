"""Examine a SQLite space and repair it: the door for `kept doctor` and `kept doctor --fix`.

`examine` (check.py, history.py) looks and changes nothing. `repair` (recovery.py, salvage.py) corrects what it can and
keeps the damaged file. Both answer with findings. Rule: the modules behind this door are large and rarely needed, so
they are imported when they are called.
"""

from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Literal

from msgspec import Struct

__all__ = ["Finding", "examine", "repair"]

Level = Literal["ok", "note", "problem"]

FIX = "Run `kept doctor --fix`. It saves what can be saved and keeps the damaged file."
REBUILD = "Run `kept doctor --fix`. It rebuilds this from the memories; nothing is lost."
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


def examine(path: Path, *, now: datetime, deep: bool = False) -> list[Finding]:
    """What is wrong with the file, and what is in order. Changes nothing.

    `deep`: check the words of every memory, not of a sample, and compare each record with its whole history.
    """
    from kept.storage.sqlite.health import check

    return check.examine(path, now=now, deep=deep)


def repair(path: Path, *, now: datetime) -> list[Finding]:
    """Correct what `examine` finds, and say what was done and what is lost.

    Raises Busy when the file is in use, SchemaTooNew when a newer Kept wrote it, and Corrupt when nothing could be
    saved; then the file is as it was.
    """
    from kept.storage.sqlite.health import recovery

    return recovery.repair(path, now=now)
