"""A little room set aside for a full disk, so that forgetting and erasing still work.

A file of zeros beside the database. When the disk is full and something has to go, the file goes
first; it comes back when there is room again.
"""

import contextlib
import os
from pathlib import Path

RESERVE_BYTES = 1024 * 1024  # the WAL of some hundred erasures, or the rebuilt index of a small store
_ROOM_FOR_COMFORT = 16


def reserve_of(path: Path) -> Path:
    return path.with_name(path.name + ".reserve")


def free_if_disk_is_full(path: Path) -> None:
    """Give the reserve back to the disk when there is less room left than it takes. Never fails, like `refill`."""
    with contextlib.suppress(OSError):
        if free_bytes(path) < RESERVE_BYTES:
            reserve_of(path).unlink(missing_ok=True)


def refill(path: Path) -> None:
    """Set the room aside (again) when there is plenty. Never fails: it is only a precaution."""
    reserve = reserve_of(path)
    with contextlib.suppress(OSError):
        if reserve.exists() or free_bytes(path) < RESERVE_BYTES * _ROOM_FOR_COMFORT:
            return
        fd = os.open(reserve, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(fd, bytes(RESERVE_BYTES))  # written, not seeked: a sparse file would reserve nothing
        except OSError:
            reserve.unlink(missing_ok=True)
        finally:
            os.close(fd)


def free_bytes(path: Path) -> int:
    """How much room the disk has for us."""
    stat = os.statvfs(path.parent)
    return stat.f_bavail * stat.f_frsize
