"""Disk space held in reserve: a file of zeros beside the database.

On a full disk it is deleted, so that opening, forgetting and erasing still work, and it is refilled afterwards.
Rule: the reserve is a precaution and never the reason for a failure.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

RESERVE_BYTES = 4 * 1024 * 1024  # what a full WAL (1,000 pages) may add to the database, which frees the WAL in turn
LEAST_BYTES = 96 * 1024  # opening and erasing in a store with next to nothing in it; more takes half of the store
OPENING_BYTES = 64 * 1024  # with less, SQLite may find no room for the index of a WAL, and a file is only read
_ROOM_FOR_COMFORT = 2


def reserve_of(path: Path) -> Path:
    return path.with_name(path.name + ".reserve")


@contextmanager
def spent(path: Path) -> Iterator[bool]:
    """Inside, the room may be used, if there is less than that left on the disk. Yields whether that is so."""
    is_full = False
    with suppress(OSError):
        if free_bytes(path) < RESERVE_BYTES:
            is_full = True
            reserve_of(path).unlink(missing_ok=True)
    try:
        yield is_full
    except BaseException:
        if is_full:
            refill(path, is_full=True)
        raise  # and make none where there was none: the file may not even be ours
    refill(path, is_full=is_full)


def refill(path: Path, *, is_full: bool = False) -> None:
    """Set the room aside (again) when there is plenty; `is_full`: as much of it as there is."""
    with suppress(OSError):
        reserve = reserve_of(path)
        missing = wanted_bytes(path) - (reserve.stat().st_size if reserve.exists() else 0)
        if missing <= 0:
            return
        free = free_bytes(path)
        if is_full or free >= RESERVE_BYTES * _ROOM_FOR_COMFORT:
            fd = os.open(reserve, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(fd, bytes(min(missing, free)))  # written, not seeked: a sparse file would reserve nothing
            finally:
                os.close(fd)


def wanted_bytes(path: Path) -> int:
    """Return how much is set aside for a store: in proportion to its size, because a change touches a part of it."""
    parts = (path, path.with_name(path.name + "-wal"))
    stored = sum(part.stat().st_size for part in parts if part.exists())
    return min(RESERVE_BYTES, max(LEAST_BYTES, stored // 2))


def is_too_full_to_open(path: Path) -> bool:
    """Return True if SQLite may find no room for the index of a WAL."""
    with suppress(OSError):
        return free_bytes(path) < OPENING_BYTES
    return False


def free_bytes(path: Path) -> int:
    """How much room the disk has for us."""
    stat = os.statvfs(path.parent)
    return stat.f_bavail * stat.f_frsize
