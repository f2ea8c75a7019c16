"""Backups: a second file that was checked before it got its name.

Made online, from one moment of the database, while others read and write. Rule: a backup is written under a
temporary name, swept, verified and synced; only then is it called a backup, and never over another file. What is
erased while it is being made, or later, is erased in it, too, as long as it lies beside the database.
"""

import os
import secrets
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

import apsw

from kept.errors import Corrupt, KeptError, NotAllowed, NotFound, StorageError
from kept.ports import BackedUp
from kept.storage.sqlite import schema, scrub
from kept.storage.sqlite.connection import translated
from kept.storage.sqlite.sweep import sweep
from kept.storage.sqlite.transaction import erase_rows

_PAGES_A_STEP = 2_000  # 8 MB: between two steps a backup in the background looks whether it should stop

Turn = Callable[[], AbstractContextManager[None]]


class Stopped(Exception):
    """A backup in the background was asked to stop. Never leaves the storage."""


def never() -> bool:
    return False


def no_turn() -> AbstractContextManager[None]:
    """For a caller that has the turn already."""
    return nullcontext()


def back_up(connection: apsw.Connection, target: Path, turn: Turn, is_stopped: Callable[[], bool] = never) -> BackedUp:
    """Copy the whole database into `target`. Raises NotAllowed when there is already a file of that name."""
    if target.exists():
        raise NotAllowed(f"{target} is already there.", hint="Backups never overwrite a file. Give another name.")
    with under_another_name(target) as part:
        last_event = copy_database(connection, part, is_stopped)
        sweep(part)
        memories, events = verify(part)
        with turn():
            # What was erased since we looked must not come back by this backup. Nobody erases during our turn.
            if gone := _gone_since(connection, last_event):
                erase_from(part, gone)
                memories, events = verify(part)
            sync(part)
            _give_name(part, target)
    return BackedUp(path=str(target), memories=memories, events=events, bytes=target.stat().st_size)


def back_up_before_migration(connection: apsw.Connection, path: Path, version: int) -> None:
    """Keep the file as it was before its schema changes. Call it in this process's turn to write."""
    target = make_folder(path) / f"schema-{version}.db"
    target.unlink(missing_ok=True)  # of an upgrade that was interrupted: this one is newer
    with under_another_name(target) as part:
        copy_database(connection, part)
        verify(part)
        sync(part)
        _give_name(part, target)


def verify(path: Path) -> tuple[int, int]:
    """Memories and events of a backup. Raises Corrupt unless SQLite finds it whole and it is one of ours."""
    if not path.is_file():
        raise NotFound(f"There is no backup {path}.", hint="`kept backup FILE` writes one.")
    with translated(path):
        copy = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            if copy.pragma("application_id") != schema.APPLICATION_ID:
                raise Corrupt(f"{path} is not a backup made by kept.", hint="Give the file that `kept backup` wrote.")
            if (verdict := copy.pragma("integrity_check")) != "ok":
                raise Corrupt(f"{path} is damaged ({str(verdict)[:80]}).", hint="Use another backup.")
            return (
                int(copy.execute("select count(*) from memories").get),
                int(copy.execute("select count(*) from events").get),
            )
        finally:
            copy.close()


def backups_folder(path: Path) -> Path:
    """Where the backups that Kept keeps of a database by itself are."""
    return path.with_name(path.name + ".backups")


def make_folder(path: Path) -> Path:
    folder = backups_folder(path)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def backups_of(path: Path) -> list[Path]:
    """The backups that Kept keeps of a database by itself: daily ones, before an upgrade, before a restore."""
    return sorted(backups_folder(path).glob("*.db"))


def erase_from_backups(path: Path, uids: Collection[str]) -> int:
    """Take memories out of every backup that Kept keeps by itself; how many files had to change.

    One that cannot be changed (it is damaged, or of an older schema) is deleted: no byte may be left.
    """
    for part in backups_folder(path).glob("*.part*"):
        part.unlink(missing_ok=True)  # of a backup that is being made, which then fails, or that never got its name
    changed = 0
    for backup in backups_of(path):
        try:
            changed += erase_from(backup, uids)
        except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError):
            _delete(backup)
            changed += 1
    return changed


def erase_from(copy: Path, uids: Collection[str]) -> bool:
    """Take memories out of one file that nobody has open. Whether it held any of them."""
    connection = apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.pragma("secure_delete", True)
        connection.pragma("foreign_keys", True)  # links and receipts go with the memory
        if connection.pragma("user_version") != schema.LATEST:
            raise apsw.SQLError("its schema is older than the statements below")
        held = [uid for uid in uids if connection.execute("select 1 from memories where uid = ?", (uid,)).fetchone()]
        if not held:
            return False
        connection.execute("begin immediate")
        for uid in held:
            erase_rows(connection, uid)
        scrub.cover_tracks(connection)
        connection.execute("commit")
    finally:
        connection.close()
    sweep(copy)
    return True


def copy_database(source: apsw.Connection, target: Path, is_stopped: Callable[[], bool] = never) -> int:
    """Copy one moment of a database into an empty file; the number of its last event."""
    source.execute("begin")  # or a writer in between would make SQLite copy everything anew
    try:
        last_event = int(source.execute("select max(seq) from events").get or 0)
        copy = apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            copy.pragma("journal_mode", "off")  # a copy that fails is thrown away as a whole, and
            copy.pragma("synchronous", "off")  # one that succeeds is synced before it gets its name
            with copy.backup("main", source, "main") as job:
                while not job.done:
                    job.step(_PAGES_A_STEP)
                    if is_stopped():
                        raise Stopped
            copy.pragma("journal_mode", "delete")  # not WAL: one file, complete by itself
        finally:
            copy.close()
        return last_event
    finally:
        source.execute("rollback")


def _gone_since(connection: apsw.Connection, seq: int) -> list[str]:
    """The subjects of later events that are no memories (any more)."""
    sql = """
        select distinct subject
        from events e
        where seq > ? and not exists (select 1 from memories m where m.uid = e.subject)"""
    return [str(subject) for (subject,) in connection.execute(sql, (seq,)).fetchall()]


@contextmanager
def under_another_name(target: Path) -> Iterator[Path]:
    """A new, empty file beside `target` that only its owner may read, and that is gone in the end."""
    part = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with translated(target):
            yield part
    except OSError as error:
        raise _cannot_write(target, error) from error
    finally:
        for left in (part, *(part.with_name(part.name + suffix) for suffix in ("-journal", "-wal", "-shm"))):
            left.unlink(missing_ok=True)


def _give_name(part: Path, target: Path) -> None:
    try:
        os.link(part, target)  # unlike a rename, this fails when somebody else was faster
    except FileExistsError as error:
        raise NotAllowed(f"{target} is already there.", hint="Backups never overwrite a file.") from error
    except OSError:  # a file system without hard links
        part.rename(target)
    sync(target.parent)


def _cannot_write(target: Path, error: OSError) -> KeptError:
    return StorageError(
        f"{target} cannot be written: {error.strerror}.",
        hint="No backup was made. Check that its folder exists, that you may write there, and that there is room.",
    )


def _delete(backup: Path) -> None:
    for name in (backup, backup.with_name(backup.name + "-journal")):
        with suppress(FileNotFoundError):
            name.unlink()


def sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
