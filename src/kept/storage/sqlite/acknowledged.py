"""What was acknowledged last: a note outside the database, so that a lost tail does not go unnoticed.

SQLite guards its WAL with checksums, and what no longer fits them it takes for a write that never finished: one changed
byte, or a WAL that somebody deleted, and the newest transactions are gone without an error. So whoever commits
notes, after the sync, how far journal and transcripts had come, in the lock file; whoever opens the file compares.
Rule: the note is never ahead of what is safely on the disk, so an alarm is never false; where there is no note, nothing
is claimed. Beside it stands whether anybody has the file open, or had when it was last heard of.
"""

import contextlib
import os
from pathlib import Path

import apsw
from msgspec import Struct

from kept.storage.lock import Turns, read_at, write_at
from kept.storage.sqlite.pages import size_of, wal_of

_EVENT_AT, _MESSAGE_AT, _IN_USE_AT = 64, 128, 192  # behind the process id that turns.py keeps in the same file
_LENGTH = 64


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


def note_in_turn(turns: Turns, inode: int, position: Position) -> None:
    """The file has come so far, and that is on disk; a zero says nothing. Call it before the caller hears of it."""
    if position.event:
        turns.leave(_line(position.event, inode), _EVENT_AT)
    if position.message:
        turns.leave(_line(position.message, inode), _MESSAGE_AT)


def note(path: Path, inode: int, event: int, message: int = 0) -> None:
    """The same, by somebody who has the turn, but not its lock file."""
    _write(path, _line(event, inode) + _line(message, inode), _EVENT_AT)


def note_use(path: Path) -> None:
    """Somebody has the file open, and it has a WAL."""
    _write(path, _line(1, path.stat().st_ino), _IN_USE_AT)


def is_left_to_others(path: Path) -> bool:
    """Whether somebody of ours had the file open, and another program closed it: nobody took that note back, and there
    is nothing in the WAL. That program may have copied it into the database, and does not know of our checksums.

    Ask while a connection is open, or another program may close the file just after the answer.
    """
    position, is_in_use = _read(path)
    return (is_in_use or position != Position()) and not size_of(wal_of(path))


def clear(path: Path, *, durably: bool = False) -> None:
    """Nothing is outstanding: all that was acknowledged is in the database itself, and there is no WAL any more.

    `durably`: before something older takes its place, or a power cut could leave us with the note of the newer one.
    """
    _write(path, b" " * 3 * _LENGTH, _EVENT_AT, durably=durably)


def noted(path: Path) -> Position:
    """How far the file had come when something was acknowledged last; the beginning, when that is not known."""
    return _read(path)[0]


def _read(path: Path) -> tuple[Position, bool]:
    try:
        fd = os.open(f"{path}.lock", os.O_RDONLY | os.O_CLOEXEC)
        try:
            lines = read_at(fd, 3 * _LENGTH, _EVENT_AT)
        finally:
            os.close(fd)
        inode = path.stat().st_ino
    except OSError:
        return Position(), False
    event, message, use = (_number(lines[at : at + _LENGTH], inode) for at in range(0, 3 * _LENGTH, _LENGTH))
    return Position(event, message), bool(use)


def _line(number: int, inode: int) -> bytes:
    return f"{number} {inode}".ljust(_LENGTH).encode()


def _number(line: bytes, inode: int) -> int:
    parts = line.split()
    # Of another inode: another file was put in its place on purpose.
    is_ours = len(parts) == 2 and parts[0].isdigit() and parts[1] == str(inode).encode()
    return int(parts[0]) if is_ours else 0


def _write(path: Path, lines: bytes, offset: int, *, durably: bool = False) -> None:
    # On a full disk the note stays behind, which is allowed.
    with contextlib.suppress(OSError):
        fd = os.open(f"{path}.lock", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            write_at(fd, lines, offset)
            if durably:
                os.fsync(fd)
        finally:
            os.close(fd)
