"""A note of the last acknowledged write, kept outside the database to detect lost transactions.

SQLite treats a WAL frame with a wrong checksum as a write that never finished. One changed byte, or a deleted WAL, and
the newest transactions are gone without an error. So each commit notes in the lock file, after the sync, the last event
and message; each open compares. The note also says whether the file is, or was last, open in a process of ours, and
whether it was ever a whole store: SQLite takes an empty file for a new database, whatever it held before.
Rule: the note is never ahead of the disk, so an alarm is never false. Without a note, nothing is claimed.
"""

import contextlib
import os
from pathlib import Path

import apsw
from msgspec import Struct

from kept.errors import Corrupt
from kept.storage.lock import Turns, read_at, write_at
from kept.storage.shared import damaged
from kept.storage.sqlite.pages import size_of, wal_of

_EVENT_AT, _MESSAGE_AT, _IN_USE_AT, _MADE_AT = (
    64,
    128,
    192,
    256,
)  # after the process id that lock.py keeps in the same file
_LENGTH = 64
_MADE = b"made".ljust(_LENGTH)


class Position(Struct, frozen=True):
    """The numbers of a file's last event and last message."""

    event: int = 0
    message: int = 0

    def is_behind(self, other: "Position") -> bool:
        return self.event < other.event or self.message < other.message


def position_of(connection: apsw.Connection) -> Position:
    """Read the last event and message as this connection sees them."""
    sql = "select max(seq), (select seq from sqlite_sequence where name = 'messages') from events"
    row = connection.execute(sql).fetchall()[0]
    return Position(int(row[0] or 0), int(row[1] or 0))


def note_in_turn(turns: Turns, inode: int, position: Position) -> None:
    """Note a position that is on disk; zeros are ignored. Call it before the write is acknowledged to the caller."""
    if position.event:
        turns.leave(_line(position.event, inode), _EVENT_AT)
    if position.message:
        turns.leave(_line(position.message, inode), _MESSAGE_AT)


def note(path: Path, inode: int, event: int, message: int = 0) -> None:
    """Do the same from a caller that holds the turn but not the open lock file."""
    _write(path, _line(event, inode) + _line(message, inode), _EVENT_AT)


def note_use(path: Path) -> None:
    """Note that a process has the file open, that it has a WAL, and that it is a whole store."""
    _write(path, _line(1, path.stat().st_ino) + _MADE, _IN_USE_AT)


def note_new(path: Path) -> None:
    """Note that a new file is about to be made, in the place of one that somebody has removed."""
    if Path(f"{path}.lock").exists():
        _write(path, b" " * _LENGTH, _MADE_AT)


def was_made(path: Path) -> bool:
    """Whether a whole store was there once. For another inode as well: an empty file may have been put in its place."""
    try:
        fd = os.open(f"{path}.lock", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return read_at(fd, _LENGTH, _MADE_AT) == _MADE
        finally:
            os.close(fd)
    except OSError:
        return False


def is_left_to_others(path: Path) -> bool:
    """Whether somebody of ours had the file open, and another program closed it: nobody took that note back, and there
    is nothing in the WAL. That program may have copied it into the database, and does not know of our checksums.

    Ask while a connection is open, or another program may close the file just after the answer.
    """
    position, is_in_use = _read(path)
    return (is_in_use or position != Position()) and not size_of(wal_of(path))


def backups_folder(path: Path) -> Path:
    """The folder of the backups that Kept makes automatically."""
    return path.with_name(path.name + ".backups")


def backups_of(path: Path) -> list[Path]:
    """The backups that Kept makes automatically: daily, before an upgrade, before a restore."""
    return sorted(backups_folder(path).glob("*.db"))


def daily_backups_of(path: Path) -> list[Path]:
    """The daily ones of them, the newest first."""
    return sorted(backups_folder(path).glob("????-??-??.db"), reverse=True)


def is_empty(path: Path) -> bool:
    """Whether SQLite takes the file for a new database. (To it, a file of one byte is an empty one.)"""
    return path.is_file() and path.stat().st_size <= 1


def check_not_emptied(path: Path) -> None:
    """Raise Corrupt for an empty file that was a store: what lies beside it knows."""
    if not is_empty(path):
        return
    copies = sorted(backups_of(path), key=lambda copy: copy.stat().st_mtime)
    has_wal, has_been = size_of(wal_of(path)) > 0, bool(copies) or was_made(path)
    if not is_empty(path):
        return  # another process has just made it, and what it left beside it is newer than our first look
    if has_wal:
        raise damaged(f"{path} (empty, although it has a WAL)")
    if has_been:
        newest = (
            f"`kept store restore {copies[-1]}` brings the newest backup back."
            if copies
            else "There is no backup of it."
        )
        raise Corrupt(
            f"{path} is empty, although memories were stored in it. Another program or a failing disk has emptied it.",
            hint=f"Nothing was changed. {newest} To start over, delete the file.",
        )


def is_begun(path: Path) -> bool:
    """Whether the file is more than the beginning of a store that a full disk or a crash has left."""
    if is_empty(path):
        return False
    with path.open("rb") as file:
        header = file.read(105)  # of the file, which has the version, and of its first page, which has the tables
    has_tables = any(header[60:64]) or any(header[103:105])
    return header[:16] != b"SQLite format 3\0" or has_tables or bool(size_of(wal_of(path)))


def clear(path: Path, *, durably: bool = False) -> None:
    """Clear the note: every acknowledged write is in the database itself, and there is no WAL.

    `durably`: before something older takes its place, or a power cut could leave us with the note of the newer one.
    """
    _write(path, b" " * 3 * _LENGTH, _EVENT_AT, durably=durably)


def noted(path: Path) -> Position:
    """Read the position of the last acknowledged write; zeros if it is not known."""
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
