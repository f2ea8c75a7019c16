"""Backups: a second file that was checked before it got its name.

Made online, from one moment of the database, while others read and write. Rule: a backup is written
under a temporary name, verified and synced; only then is it called a backup. Restoring goes the same
way and keeps the file that it replaces.
"""

import os
from datetime import datetime, timedelta
from pathlib import Path

import apsw
from msgspec import Struct

from kept.errors import Corrupt, NotAllowed, NotFound
from kept.storage.sqlite import schema
from kept.storage.sqlite.connection import translated
from kept.storage.sqlite.transaction import erase_rows

DAILY = timedelta(hours=24)


class BackedUp(Struct, frozen=True, kw_only=True):
    """What a backup holds, counted in the backup itself."""

    path: str
    memories: int
    events: int
    bytes: int


def back_up(connection: apsw.Connection, target: Path) -> BackedUp:
    """Copy the whole database into `target`. Raises NotAllowed when there is already a file of that name."""
    if target.exists():
        raise NotAllowed(f"{target} is already there.", hint="Backups never overwrite a file. Give another name.")
    part = target.with_name(target.name + ".part")
    part.unlink(missing_ok=True)
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with translated(part):
            _copy(connection, part)
            counts = verify(part)
        _sync(part)
        part.rename(target)
        _sync(target.parent)
    finally:
        part.unlink(missing_ok=True)
    return BackedUp(path=str(target), memories=counts[0], events=counts[1], bytes=target.stat().st_size)


def verify(path: Path) -> tuple[int, int]:
    """Memories and events of a backup. Raises Corrupt unless SQLite finds it whole and it is one of ours."""
    with translated(path):
        copy = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            if copy.execute("pragma application_id").get != schema.APPLICATION_ID:
                raise Corrupt(f"{path} is not a backup made by kept.", hint="Give the file that `kept backup` wrote.")
            if (verdict := copy.execute("pragma integrity_check").get) != "ok":
                raise Corrupt(f"{path} is damaged ({str(verdict)[:80]}).", hint="Use another backup.")
            return (
                int(copy.execute("select count(*) from memories").get),
                int(copy.execute("select count(*) from events").get),
            )
        finally:
            copy.close()


def backups_of(path: Path) -> list[Path]:
    """The backups that Kept keeps of a database by itself, newest first."""
    return sorted(_folder(path).glob("*.db"), reverse=True)


def daily_backup(connection: apsw.Connection, path: Path, now: datetime, keep: int) -> BackedUp | None:
    """Make today's backup unless the newest is younger than a day; drop the oldest beyond `keep`."""
    existing = [backup for backup in backups_of(path) if backup.name[:1].isdigit()]
    if existing and now - _made_at(existing[0], now) < DAILY:
        return None
    folder = _folder(path)
    folder.mkdir(mode=0o700, exist_ok=True)
    made = back_up(connection, folder / f"{now:%Y%m%d-%H%M%S}.db")
    for old in existing[max(0, keep - 1) :]:
        old.unlink(missing_ok=True)
    return made


def back_up_before_migration(connection: apsw.Connection, path: Path, version: int) -> None:
    """Keep the file as it was before its schema changes."""
    folder = _folder(path)
    folder.mkdir(mode=0o700, exist_ok=True)
    target = folder / f"schema-{version}.db"
    target.unlink(missing_ok=True)  # of an upgrade that was interrupted: this one is newer
    back_up(connection, target)


def erase_from_backups(path: Path, uid: str) -> int:
    """Take one memory out of every backup that Kept keeps by itself; how many files were rewritten."""
    rewritten = 0
    for backup in backups_of(path):
        with translated(backup):
            copy = apsw.Connection(str(backup))
            try:
                copy.execute("pragma secure_delete = on").fetchall()
                if copy.execute("select 1 from memories where uid = ?", (uid,)).fetchone() is None:
                    continue
                copy.execute("begin immediate")
                erase_rows(copy, uid)
                copy.execute("commit")
                for shelf in ("live", "library", "archive"):
                    copy.execute(f"insert into {shelf}_fts ({shelf}_fts) values ('rebuild')")
                copy.execute("vacuum")
                rewritten += 1
            finally:
                copy.close()
    return rewritten


def restore(source: Path, target: Path, aside: Path) -> BackedUp:
    """Put a verified backup in the place of `target`, which is kept as `aside`. Nobody may have `target` open."""
    if not source.is_file():
        raise NotFound(f"There is no backup {source}.", hint="`kept backup FILE` writes one.")
    memories, events = verify(source)
    part = target.with_name(target.name + ".part")
    part.unlink(missing_ok=True)
    with translated(source):
        original = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            _copy(original, part)
        finally:
            original.close()
    verify(part)
    _sync(part)
    if target.exists():
        os.link(target, aside)
    part.replace(target)
    _sync(target.parent)
    return BackedUp(path=str(target), memories=memories, events=events, bytes=target.stat().st_size)


def _copy(source: apsw.Connection, target: Path) -> None:
    copy = apsw.Connection(str(target))
    try:
        with copy.backup("main", source, "main") as job:
            job.step(-1)
        copy.execute("pragma journal_mode = delete").fetchall()  # one file, complete by itself
    finally:
        copy.close()


def _folder(path: Path) -> Path:
    return path.with_name(path.name + ".backups")


def _made_at(backup: Path, now: datetime) -> datetime:
    return datetime.strptime(backup.stem[:15], "%Y%m%d-%H%M%S").replace(tzinfo=now.tzinfo)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
