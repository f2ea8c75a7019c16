"""Which event was acknowledged last: a note outside the database, so that a lost tail does not go unnoticed.

SQLite guards its WAL with checksums, and what no longer fits them it takes for a write that never finished: one changed
byte, or a WAL that somebody deleted, and the newest transactions are gone without an error. So whoever commits
notes the number of its last event in the lock file, after the sync; whoever opens the file compares. Rule: the note
is never ahead of what is safely on the disk, so an alarm is never false. When it is missing, nothing is claimed.
"""

import contextlib
import os
from pathlib import Path

_OFFSET = 64  # behind the process id that turns.py keeps in the same file
_LENGTH = 48


def note(path: Path, inode: int, seq: int) -> None:
    """Event `seq` of the file is on disk. Call it in this process's turn, before the caller hears of it."""
    _write(path, f"{seq} {inode}")


def clear(path: Path) -> None:
    """Nothing is outstanding: all that was acknowledged is in the database itself, and there is no WAL any more."""
    _write(path, "")


def noted(path: Path) -> int:
    """The last event that was acknowledged and may still be in the WAL only; 0 when that is not known."""
    with contextlib.suppress(OSError, ValueError):
        fd = os.open(_lock_file(path), os.O_RDONLY | os.O_CLOEXEC)
        try:
            seq, inode = os.pread(fd, _LENGTH, _OFFSET).split()
        finally:
            os.close(fd)
        if int(inode) == path.stat().st_ino:  # otherwise another file was put in its place on purpose
            return int(seq)
    return 0


def _write(path: Path, line: str) -> None:
    # On a full disk the note stays behind, which is allowed.
    with contextlib.suppress(OSError):
        fd = os.open(_lock_file(path), os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.pwrite(fd, line.ljust(_LENGTH).encode(), _OFFSET)
        finally:
            os.close(fd)


def _lock_file(path: Path) -> Path:
    return path.with_name(path.name + ".lock")
