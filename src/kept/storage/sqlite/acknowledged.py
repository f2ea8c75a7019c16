"""What was acknowledged last: a note outside the database, so that a lost tail does not go unnoticed.

SQLite guards its WAL with checksums, and what no longer fits them it takes for a write that never finished: one changed
byte, or a WAL that somebody deleted, and the newest transactions are gone without an error. So whoever commits
notes, after the sync, how far journal and transcripts had come, in the lock file; whoever opens the file compares.
Rule: the note is never ahead of what is safely on the disk, so an alarm is never false; where there is no note, nothing
is claimed.
"""

import contextlib
import os
from pathlib import Path

import apsw
from msgspec import Struct

from kept.storage.turns import Turns

_OFFSET = 64  # behind the process id that turns.py keeps in the same file
_LENGTH = 80


class Position(Struct, frozen=True):
    """How far a file has come: the number of its last event, and of the last message it was given."""

    event: int = 0
    message: int = 0

    def is_behind(self, other: "Position") -> bool:
        return self.event < other.event or self.message < other.message


def position_of(connection: apsw.Connection) -> Position:
    """How far the file has come, as this connection sees it."""
    sql = "select max(seq), (select seq from sqlite_sequence where name = 'messages') from events"
    row = connection.execute(sql).fetchall()[0]
    return Position(int(row[0] or 0), int(row[1] or 0))


def note(path: Path, inode: int, event: int, message: int = 0) -> None:
    """The file has come so far, and that is on disk. Call it in this process's turn, before the caller hears of it."""
    _write(path, _line(inode, event, message))


def note_in_turn(turns: Turns, inode: int, position: Position) -> None:
    """The same, by whoever has the lock file open."""
    turns.leave(_line(inode, position.event, position.message), _OFFSET)


def clear(path: Path) -> None:
    """Nothing is outstanding: all that was acknowledged is in the database itself, and there is no WAL any more."""
    _write(path, b" " * _LENGTH)


def noted(path: Path) -> Position:
    """How far the file had come when something was acknowledged last; the beginning, when that is not known."""
    with contextlib.suppress(OSError, ValueError):
        fd = os.open(f"{path}.lock", os.O_RDONLY | os.O_CLOEXEC)
        try:
            event, message, inode = os.pread(fd, _LENGTH, _OFFSET).split()
        finally:
            os.close(fd)
        if int(inode) == path.stat().st_ino:  # otherwise another file was put in its place on purpose
            return Position(int(event), int(message))
    return Position()


def _line(inode: int, event: int, message: int) -> bytes:
    return f"{event} {message} {inode}".ljust(_LENGTH).encode()


def _write(path: Path, line: bytes) -> None:
    # On a full disk the note stays behind, which is allowed.
    with contextlib.suppress(OSError):
        fd = os.open(f"{path}.lock", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.pwrite(fd, line, _OFFSET)
        finally:
            os.close(fd)
