"""Backups, and daily backups.

A backup is made online, from one moment of the database, while others read and write. It is written under a temporary
name, swept, verified and synced; only then is it called a backup, and never over another file. What is erased while it
is being made, or later, is also erased in it, as long as it lies beside the database. The first write of a day makes
one in the background; only closing a small store waits for it. Rule: a backup is never what fills the disk.
"""

import logging
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from kept import journal
from kept.errors import Busy, Corrupt, KeptError, NotFound, StorageError
from kept.model import SMALL_NOUNS
from kept.ports import BackupReport, Stamp
from kept.storage.files import already_there, give_name, sync
from kept.storage.lock import Turns
from kept.storage.shared import random_hex, tombstone
from kept.storage.sqlite import acknowledged, erase, pages, schema
from kept.storage.sqlite.acknowledged import backups_folder, daily_backups_of
from kept.storage.sqlite.acknowledged import backups_of as backups_of
from kept.storage.sqlite.connection import is_damage, translate, translated
from kept.storage.sqlite.encoding import hex_text, uid_blob, uid_text
from kept.storage.sqlite.erase import SESSION
from kept.storage.sqlite.reserve import free_bytes
from kept.storage.sqlite.rows import table_of
from kept.storage.sqlite.schema import AllOrNothing
from kept.storage.sqlite.writer import erase_payloads, erase_rows, insert_events

_PAGES_A_STEP = 2_000  # 8 MB: between two steps a backup in the background looks whether it should stop

Turn = Callable[[], AbstractContextManager[None]]
MakeBackup = Callable[[Path, Callable[[], bool]], None]

log = logging.getLogger("kept")


class Stopped(Exception):
    """A backup in the background was asked to stop. Never leaves the storage."""


def never() -> bool:
    return False


def no_turn() -> AbstractContextManager[None]:
    """For a caller that has the turn already."""
    return nullcontext()


def back_up(
    connection: apsw.Connection, target: Path, turn: Turn, is_stopped: Callable[[], bool] = never
) -> BackupReport:
    """Copy the whole database into `target`. Raises NotAllowed when there is already a file of that name."""
    if target.exists():
        raise already_there(target)
    while True:
        with under_another_name(target) as part:
            try:
                erasures = copy_database(connection, part, is_stopped)
                erase.sweep(part)
                memories, events = verify(part)
                sync(part)
            except (KeptError, OSError, apsw.Error):
                if part.exists():
                    raise
                continue  # an erasure took it away, because it held what is gone now
            with turn():
                # What was erased since we looked must not survive in this backup. Nobody erases during our turn.
                if part.exists() and erase.erasures(connection) == erasures:
                    give_name(part, target)
                    return BackupReport(path=str(target), memories=memories, events=events, bytes=target.stat().st_size)


def back_up_before_migration(connection: apsw.Connection, path: Path, version: int) -> None:
    """Keep the file as it was before its schema changes. Call it in this process's turn to write."""
    target = make_folder(path) / f"schema-{version}.db"
    target.unlink(missing_ok=True)  # of an upgrade that was interrupted: this one is newer
    with under_another_name(target) as part:
        copy_database(connection, part)
        verify(part)
        sync(part)
        give_name(part, target)


def verify(path: Path) -> tuple[int, int]:
    """Memories and events of a backup. Raises Corrupt unless SQLite finds it whole and it is one of ours."""
    if not path.is_file():
        raise NotFound(f"There is no backup {path}.", hint="`kept store backup FILE` writes one.")
    with translated(path), opened(path, apsw.SQLITE_OPEN_READONLY) as copy:
        if copy.pragma("application_id") != schema.APPLICATION_ID:
            raise Corrupt(f"{path} is not a backup made by kept.", hint="Give the file that `kept store backup` wrote.")
        if (verdict := copy.pragma("integrity_check")) != "ok":
            raise Corrupt(f"{path} is damaged ({str(verdict)[:80]}).", hint="Use another backup.")
        return (
            int(copy.execute("select count(*) from memories").get),
            int(copy.execute("select count(*) from events").get),
        )


def make_folder(path: Path) -> Path:
    folder = backups_folder(path)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def erase_from_backups(connection: apsw.Connection, path: Path, subjects: Collection[str], now: datetime) -> int:
    """Take what was erased out of every copy that Kept keeps automatically; how many files had to change.

    One that cannot be changed (it is damaged, or of an older schema) is deleted: no byte may be left.
    """
    for part in backups_folder(path).glob("*.part*"):
        part.unlink(missing_ok=True)  # of a backup that is being made, which then fails, or that never got its name
    damaged = list(path.parent.glob(f"{path.name}.damaged-*"))
    for copy in damaged:
        copy.unlink(missing_ok=True)
    return len(damaged) + sum(_erase_or_delete(backup, subjects, connection, now) for backup in backups_of(path))


def _erase_or_delete(backup: Path, subjects: Collection[str], store: apsw.Connection, now: datetime) -> bool:
    had_any = erase_in_file(backup, subjects, store, now)
    if had_any is None:
        for name in (backup, backup.with_name(backup.name + "-journal")):
            name.unlink(missing_ok=True)
    return had_any is not False


# A backup that another program reads or that cannot be written.
_NOT_OURS = (apsw.BusyError, apsw.LockedError, apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError)


def erase_from_written(
    backups: Sequence[Path], subjects: Collection[str], store: apsw.Connection, now: datetime
) -> dict[Path, bool]:
    """Do the same in backups that a person asked for. Those that cannot be changed are left out of the answer."""
    done: dict[Path, bool] = {}
    for path in backups:
        with suppress(*_NOT_OURS):  # the receipt then names it
            if (had_any := erase_in_file(path, subjects, store, now)) is not None:
                done[path] = had_any
    return done


def erase_in_file(backup: Path, subjects: Collection[str], store: apsw.Connection, now: datetime) -> bool | None:
    """Remove from a backup what the store erased. True if it had any; None if it is damaged or of an older schema."""
    try:
        with opened(backup) as copy:
            if copy.pragma("user_version") != schema.LATEST:
                return None
            if not erase_in(copy, subjects, store, now):
                return False
            copy.close()
            erase.sweep(backup)
            return True
    except apsw.Error as error:
        if not is_damage(error):
            raise
        return None


def erase_in(copy: apsw.Connection, subjects: Collection[str], store: apsw.Connection, now: datetime) -> bool:
    """Remove from a copy what the store erased: memories by uid, messages by "session:…", others by their subject.

    True if it had any.
    """
    has_erased = False
    with AllOrNothing(copy):
        for subject in dict.fromkeys((*subjects, *same_text(copy, store))):
            if subject == erase.RECEIPTS:
                copy.execute("delete from receipts")
                has_erased |= copy.changes() > 0
            elif subject.startswith(SESSION):
                has_erased |= _erase_messages(copy, subject.removeprefix(SESSION), store)
                sql = "select 1 from events where subject = ? and action = 'erase'"
                if store.execute(sql, (subject,)).fetchone() is not None:  # and what is noted of it besides
                    has_erased |= _erase_record(copy, subject, now)
            elif ":" in subject:
                has_erased |= _erase_record(copy, subject, now)
            else:
                has_erased |= _erase_memory(copy, subject, now)
        if has_erased:
            erase.settle(copy)
            erase.cover_tracks(copy)
    return has_erased


def same_text(copy: apsw.Connection, store: apsw.Connection) -> list[str]:
    """The uids under which a copy holds a text that was erased from the store, and not said there again."""
    key = bytes.fromhex(str(store.execute("select value from meta where name = 'tombstone_key'").get))
    marks = {mark for (mark,) in store.execute("select mark from tombstones")}
    said_again = {fingerprint for (fingerprint,) in store.execute("select fingerprint from memories")}
    return [
        uid_text(uid)
        for uid, fingerprint in copy.execute("select uid, fingerprint from memories").fetchall()
        if fingerprint not in said_again and tombstone(key, hex_text(fingerprint)) in marks
    ]


def _erase_memory(copy: apsw.Connection, uid: str, now: datetime) -> bool:
    """Take out a memory, and let the journal of the copy say so, unless it does already."""
    is_there = copy.execute("select 1 from memories where uid = ?", (uid_blob(uid),)).fetchone() is not None
    is_untold = _is_untold(copy, uid)
    if is_there:
        erase_rows(copy, uid)
    if is_untold:
        _tell_erased(copy, uid, now)
    return is_there or is_untold


def _erase_record(copy: apsw.Connection, subject: str, now: datetime) -> bool:
    """The same for a record that is not a memory."""
    name, noun = subject.partition(":")[2], next(one for one in SMALL_NOUNS if subject.startswith(f"{one.noun}:"))
    is_untold = _is_untold(copy, subject)
    erase_payloads(copy, subject)
    copy.execute(f"delete from {table_of(noun)} where {noun.named_by} = ?", (name,))
    is_there = copy.changes() > 0
    if is_untold:
        _tell_erased(copy, subject, now)
    return is_there or is_untold


def _is_untold(copy: apsw.Connection, subject: str) -> bool:
    sql = "select action from events where subject = ? order by seq desc limit 1"
    told: Any = copy.execute(sql, (uid_blob(subject),)).get
    return told not in (None, "erase")


def _tell_erased(copy: apsw.Connection, subject: str, now: datetime) -> None:
    last = acknowledged.position_of(copy).event
    prev = hex_text(copy.execute("select hash from events where seq = ?", (last,)).get)
    stamp = Stamp(group=random_hex(8), at=now, actor="erase")
    salt = random_hex(journal.SALT_BYTES)
    erase = journal.seal(stamp, seq=last + 1, action="erase", subject=subject, changed={}, prev=prev, salt=salt)
    insert_events(copy, [(erase, journal.payload({}))])


def _erase_messages(copy: apsw.Connection, session: str, store: apsw.Connection) -> bool:
    """Leave those messages of a session in the copy that are still in the store, unchanged."""
    sql = "select n, checksum from messages where session = ?"
    gone = set(copy.execute(sql, (session,)).fetchall()) - set(store.execute(sql, (session,)).fetchall())
    copy.executemany("delete from messages where session = ? and n = ?", [(session, n) for n, _ in gone])
    sql = "select body from packed_sessions where session = ?"
    packed, still = copy.execute(sql, (session,)).get, store.execute(sql, (session,)).get
    if packed is not None and packed != still:
        copy.execute("delete from packed_sessions where session = ?", (session,))
        if still is not None:
            copy.execute("insert into packed_sessions (session, body) values (?, ?)", (session, still))
        return True
    return bool(gone)


def copy_database(source: apsw.Connection, target: Path, is_stopped: Callable[[], bool] = never) -> int:
    """Copy one moment of a database into an empty file; how many erasures there had been by then."""
    source.execute("begin")  # or a writer in between would make SQLite copy everything again
    try:
        erasures = erase.erasures(source)
        if pages.is_verified(source):
            pages.make(target)
        copy = apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READWRITE, vfs=pages.vfs())
        try:
            copy.pragma("journal_mode", "off")  # a copy that fails is thrown away as a whole, and
            copy.pragma("synchronous", "off")  # one that succeeds is synced before it gets its name
            with copy.backup("main", source, "main") as job:
                while not job.done:
                    _step(job, source)
                    if is_stopped():
                        raise Stopped
            copy.pragma("journal_mode", "delete")  # not WAL: one file, complete without others
        finally:
            copy.close()
        return erasures
    finally:
        source.execute("rollback")


def _step(job: apsw.Backup, source: apsw.Connection) -> None:
    try:
        job.step(_PAGES_A_STEP)
    except apsw.Error as error:
        if is_damage(error):  # of the source: of the copy nothing is read yet
            translate(error, Path(source.filename))
        raise


@contextmanager
def opened(copy: Path, flags: int = apsw.SQLITE_OPEN_READWRITE) -> Iterator[apsw.Connection]:
    """A connection to a file that is not in use as a store."""
    erase.finish_sweep(copy)
    connection = apsw.Connection(str(copy), flags=flags, vfs=pages.vfs())
    try:
        connection.pragma("secure_delete", True)
        connection.pragma("foreign_keys", True)  # links and receipts go with the memory
        yield connection
    finally:
        connection.close()


@contextmanager
def under_another_name(target: Path) -> Iterator[Path]:
    """A new, empty file beside `target` that only its owner may read, and that is gone in the end."""
    part = target.with_name(f"{target.name}.{random_hex(4)}.part")
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with translated(target):
            yield part
    except OSError as error:
        raise _cannot_write(target, error) from error
    finally:
        for left in (part, *(part.with_name(part.name + suffix) for suffix in ("-journal", "-wal", "-shm"))):
            left.unlink(missing_ok=True)


def _cannot_write(target: Path, error: OSError) -> KeptError:
    return StorageError(
        f"Cannot write {target}: {error.strerror}.",
        hint="No backup was made. Check that its folder exists, that you may write there, and that there is room.",
    )


_ROOM = 3  # how many times its size must be free, so that a backup is not what fills the disk


def make_daily(path: Path, target: Path, keep: int, make: MakeBackup, is_stopped: Callable[[], bool]) -> None:
    """Make the backup of the day, and drop the oldest daily ones beyond `keep`. Failures are only logged."""
    try:
        if free_bytes(path) < _ROOM * path.stat().st_size:
            log.warning("There is not enough disk space for a daily backup of %s.", path)
            return
        _make_alone(path, target, make, is_stopped)
        for old in daily_backups_of(path)[keep:]:
            old.unlink(missing_ok=True)
    except Stopped:
        pass
    except (KeptError, OSError, apsw.Error) as error:
        log.warning("The daily backup of %s failed: %s", path, error)


def _make_alone(path: Path, target: Path, make: MakeBackup, is_stopped: Callable[[], bool]) -> None:
    """Whoever comes second, in another process, leaves it to the first."""
    alone = Turns(make_folder(path) / "daily.lock")
    try:
        alone.take(0)
    except Busy:
        return
    try:
        if not target.exists():
            make(target, is_stopped)
    finally:
        alone.end()
        alone.close()
