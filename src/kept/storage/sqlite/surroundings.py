"""Look around a database without opening it: who may read it, who writes, is there room, are there backups?

First part of an examination.
"""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw

from kept.errors import KeptError
from kept.storage.sqlite import reserve
from kept.storage.sqlite.backup import backups_of
from kept.storage.sqlite.connection import check_library
from kept.storage.sqlite.findings import Finding, size
from kept.storage.turns import Turns

BESIDE = ("", "-wal", "-shm", ".lock", ".reserve")  # what stands beside a database, and the database itself

_OLD_BACKUP = timedelta(days=3)
_COMFORT = 16  # times the reserve: less room than this is next to none


def look_around(path: Path, now: datetime) -> Iterator[Finding]:
    """Everything that can be said from outside."""
    yield from _library()
    yield from _permissions(path)
    yield from _lock(path)
    yield from _disk(path)
    yield from _backups(path, now)
    for copy in sorted(path.parent.glob(f"{path.name}.damaged-*[0-9]")):
        yield Finding("note", "file", f"{copy.name} is the copy that a repair kept.", "Delete it when all is well.")


def _library() -> Iterator[Finding]:
    version = apsw.sqlite_lib_version()
    try:
        check_library(version)
    except KeptError as error:
        yield Finding("problem", "sqlite", error.message, error.hint)
    else:
        yield Finding("ok", "sqlite", f"SQLite {version}.")


def _permissions(path: Path) -> Iterator[Finding]:
    if sys.platform == "win32":
        return
    files = [path.with_name(path.name + suffix) for suffix in BESIDE]
    readable = [file.name for file in files if file.exists() and file.stat().st_mode & 0o077]
    folder = path.parent
    mode = folder.stat().st_mode if folder.is_dir() else 0
    if readable:
        message = f"Others on this machine may read {', '.join(readable)}."
        yield Finding("problem", "permissions", message, f"chmod 600 {' '.join(readable)}")
    if mode & 0o022 and not mode & 0o1000:  # in a folder with the sticky bit only the owner can replace a file
        message = f"Others on this machine may put another file in the place of {path.name}."
        yield Finding("problem", "permissions", message, f"chmod go-w {folder}")
    elif mode & 0o077 and path.name == "kept.db":  # a home is private; a file that somebody carries about may lie open
        yield Finding("note", "permissions", f"Others on this machine may look into {folder}.", f"chmod 700 {folder}")
    elif not readable:
        yield Finding("ok", "permissions", "Only you can read the file.")


def _lock(path: Path) -> Iterator[Finding]:
    lock = path.with_name(path.name + ".lock")
    if not lock.exists():
        return
    turns = Turns(lock)
    try:
        if turns.is_taken():
            yield Finding("note", "lock", f"Process {turns.holder() or '(unknown)'} is writing right now.")
        else:
            yield Finding("ok", "lock", "Nobody is writing.")
    finally:
        turns.close()


def _disk(path: Path) -> Iterator[Finding]:
    if not path.parent.is_dir():
        return
    free = reserve.free_bytes(path)
    if free < reserve.RESERVE_BYTES * _COMFORT:
        hint = "Free some space: what is stored stays, but soon nothing new can be."
        yield Finding("problem", "disk", f"Only {size(free)} are free.", hint)
    else:
        yield Finding("ok", "disk", f"{size(free)} are free.")


def _backups(path: Path, now: datetime) -> Iterator[Finding]:
    made = [datetime.fromtimestamp(backup.stat().st_mtime, UTC) for backup in backups_of(path)]
    if not made:
        yield Finding("note", "backups", "There is no backup yet.", "`kept backup FILE` writes one.")
        return
    age = now - max(made)
    message = f"Backups: {len(made)}; days since the newest: {max(0, age.days)}."
    yield Finding("note" if age > _OLD_BACKUP else "ok", "backups", message)
