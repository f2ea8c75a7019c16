"""Connections to a SQLite file: opened the way Kept needs it, lent from a pool, with errors turned into ours.

Each pragma is a statement of its own (apsw stops a multi-statement string at the first row), has a reason, and is read
back, because SQLite ignores a pragma it cannot honour. A connection is lent to one user at a time, never across a fork.
Rule: it comes back into the pool only if nothing went wrong with it. One that failed is closed, and with it goes
whatever the failure left behind: an open transaction, a changed pragma.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import apsw

from kept.errors import Busy, Corrupt, InvalidInput, KeptError, StorageError
from kept.ports import Deadline, TooLate
from kept.storage import lock
from kept.storage.files import no_handles_left
from kept.storage.shared import block
from kept.storage.sqlite import acknowledged, pages, reserve, schema
from kept.storage.sqlite.rows import MEMORY_SELECT, damaged, json_text

T = TypeVar("T")

# Before 3.51.3 a WAL file can be corrupted when two connections write and checkpoint at the same moment,
# which is what a hook, an MCP server and the CLI do. Two older branches also got the fix.
_FIXED_IN = (3, 51, 3)
_ALSO_FIXED = ((3, 50, 7), (3, 44, 6))

READ_WAIT_MS = 5_000  # a reader meets a lock only while a WAL is being recovered or a file is closed for good
# How SQLite fails where there is no room for the index of a WAL.
_NO_ROOM = (apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMOPEN, apsw.SQLITE_IOERR_SHMMAP)
_WAL_LIMIT_BYTES = 64 * 1024 * 1024
_CACHE_KB = 8 * 1024
_MOST_SEEN = 4_000  # answers: counts of words and lists of up to 256 rows, mostly of a dozen
PROGRESS_STEPS = 2_000  # virtual machine steps between two looks at the clock: some tens of microseconds


def check_library(version: str) -> None:
    """Raise StorageError when apsw is linked to a SQLite that can damage files in WAL mode."""
    number = tuple(int(part) for part in version.split(".")[:3])
    if number >= _FIXED_IN or any(number[:2] == fixed[:2] and number >= fixed for fixed in _ALSO_FIXED):
        return
    raise StorageError(
        f"This apsw contains SQLite {version}, which can corrupt a database that several processes write.",
        hint="Run `pip install --upgrade apsw` to get SQLite 3.51.3 or newer.",
    )


def connect(
    path: Path,
    *,
    vfs: str | None = None,
    synchronous: str = "full",
    is_verified: bool = True,
    page_bytes: int | None = None,
) -> apsw.Connection:
    """A connection with every pragma in force. Creates the file, readable by its owner only, if it is not there.

    `page_bytes`: of a file that is made here; a file that exists keeps its own.
    `vfs`: use this one instead of pages.vfs(). `is_verified`: False to read pages that do not match their checksum.
    """
    check_library(apsw.sqlite_lib_version())
    vfs = vfs or pages.vfs()
    acknowledged.check_not_emptied(path)
    if not path.exists():
        acknowledged.note_new(path)
    with suppress(OSError):  # SQLite would give it the mode of the umask; if it can't be made, SQLite says why
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    while True:
        connection = _open(path, vfs)
        try:
            with leaving_the_wal(connection):
                if page_bytes is not None and not pages.size_of(path):
                    connection.pragma("page_size", page_bytes)  # before the first page, which is written with the WAL
                if not is_verified:
                    pages.read_unverified(connection)
                _use_wal(connection, path)
                if not is_verified or _has_seen_the_header(connection, path, vfs):
                    _set_up(connection, synchronous)
                    return connection
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # pages would go without theirs
        except BaseException:
            connection.close()
            raise
        connection.close()


def connect_to_read(path: Path, *, vfs: str | None = None) -> apsw.Connection:
    """A connection to a file that cannot be written, nor its WAL, nor a lock. Raises StorageError.

    Without a WAL the file is complete, and nobody can be writing it who has to do it here.
    """
    has_wal = bool(pages.size_of(pages.wal_of(path)))
    uri = f"{path.resolve().as_uri()}?mode=ro{'' if has_wal else '&immutable=1'}"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(uri, flags=flags, vfs=vfs or pages.vfs())
    try:
        connection.set_busy_timeout(READ_WAIT_MS)
        connection.execute("select count(*) from sqlite_schema").fetchall()
        _distrust_the_schema(connection)
        _read_without_mmap(connection)
        _look_at_pages_closely(connection)
    except apsw.CantOpenError as error:
        connection.close()
        raise StorageError(
            f"{path} cannot be read: its newest changes are in a WAL, and SQLite may not write the index of that.",
            hint="Open it once where it can be written, then try again.",
        ) from error
    except BaseException:
        connection.close()
        raise
    return connection


def is_no_room(error: BaseException) -> bool:
    """Return True if SQLite failed because the disk is full. Opening a file needs 32 kB for the index of the WAL."""
    return isinstance(error, apsw.FullError) or getattr(error, "extendedresult", None) in _NO_ROOM


@contextmanager
def leaving_the_wal(connection: apsw.Connection) -> Iterator[None]:
    """If damage is found inside, the WAL stays as it is when the connection is closed."""
    try:
        yield
    except (apsw.Error, Corrupt) as error:
        if isinstance(error, Corrupt) or is_damage(error):
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        raise


def _open(path: Path, vfs: str) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    connection = apsw.Connection(str(path), flags=flags, vfs=vfs)
    connection.set_busy_timeout(READ_WAIT_MS)
    if vfs != pages.PLAIN:
        connection.reserve_bytes(reserve=pages.BYTES)  # says something if the file is yet to be made
    return connection


def _has_seen_the_header(connection: apsw.Connection, path: Path, vfs: str) -> bool:
    """Whether the connection knows if pages have checksums. One that was there before the header may not."""
    if pages.is_verified(connection):
        return True
    first_pages = pages.first_pages(path)
    if pages.header_denies_checksums(first_pages):
        raise damaged(f"The header of {path}")
    has_checksums = pages.reserved_bytes(first_pages) == pages.BYTES
    if has_checksums and vfs == pages.PLAIN:
        raise StorageError(
            f"{path} has page checksums, which this apsw cannot write.",
            hint="Install apsw from PyPI, which supports them: pip install --force-reinstall apsw",
        )
    return not has_checksums


def _set_up(connection: apsw.Connection, synchronous: str) -> None:
    _sync_fully(connection, synchronous)
    _enforce_foreign_keys(connection)
    _overwrite_what_is_deleted(connection)
    _bound_the_wal(connection)
    _distrust_the_schema(connection)
    _read_without_mmap(connection)
    _look_at_pages_closely(connection)
    _cache_more_pages(connection)


def _use_wal(connection: apsw.Connection, path: Path) -> None:
    """Readers never wait for a writer, and a commit is one sequential write."""
    deadline = time.monotonic() + READ_WAIT_MS / 1000
    while connection.pragma("journal_mode") != "wal":
        schema.check_ownership(connection, path)  # a stranger's file keeps its mode
        try:
            _set(connection, "journal_mode", "wal", "wal")
        except apsw.BusyError:
            # Several processes make the file at once; for this step SQLite does not ask its busy handler.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.001)


def _sync_fully(connection: apsw.Connection, level: str) -> None:
    """Acknowledged means on disk: NORMAL syncs at checkpoints only and loses rows when the power fails."""
    _set(connection, "synchronous", level, {"normal": 1, "full": 2}[level])
    if sys.platform == "darwin":  # a plain fsync there stops at the drive's cache
        _set(connection, "fullfsync", "on", 1)


def _enforce_foreign_keys(connection: apsw.Connection) -> None:
    """Links and payloads go with what they belong to."""
    _configure(connection, "foreign_keys", apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 1)


def _overwrite_what_is_deleted(connection: apsw.Connection) -> None:
    """Erased text must not stay readable in free pages."""
    _set(connection, "secure_delete", "on", 1)


def _bound_the_wal(connection: apsw.Connection) -> None:
    """One large import must not leave a large WAL behind for ever."""
    _set(connection, "journal_size_limit", _WAL_LIMIT_BYTES, _WAL_LIMIT_BYTES)


def _distrust_the_schema(connection: apsw.Connection) -> None:
    """A file from a stranger must not run functions through its views and triggers."""
    _configure(connection, "trusted_schema", apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)


def _read_without_mmap(connection: apsw.Connection) -> None:
    """With mmap an I/O error is a crash of the whole process instead of an error."""
    _set(connection, "mmap_size", 0, 0)


def _look_at_pages_closely(connection: apsw.Connection) -> None:
    """A damaged page is noticed when it is read, and not first when a row is missing."""
    _set(connection, "cell_size_check", "on", 1)


def _cache_more_pages(connection: apsw.Connection) -> None:
    """Two megabytes, SQLite's own choice, are less than the index of 20,000 memories."""
    _set(connection, "cache_size", -_CACHE_KB, -_CACHE_KB)


def _set(connection: apsw.Connection, name: str, value: object, expected: object) -> None:
    answered = connection.execute(f"pragma {name} = {value}").fetchall()  # some answer with the value in force
    actual = answered[0][0] if answered else connection.pragma(name)
    if actual is not None and actual != expected:  # mmap_size answers nothing where mmap is compiled out
        raise _refused(name, value, actual)


def _configure(connection: apsw.Connection, name: str, option: int, value: int) -> None:
    """Set what SQLite also takes without a statement; the call returns the value in force."""
    actual = connection.config(option, value)
    if actual != value:
        raise _refused(name, value, actual)


def _refused(name: str, value: object, actual: object) -> StorageError:
    return StorageError(
        f"SQLite refused the setting {name} = {value} and kept {actual}.",
        hint="If the file is on a network drive, move it to a local disk.",
    )


class _Translated:
    """A class: every read and write opens one, and a generator takes four times as long."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Exception):
            translate(error, self._path)


def translated(path: Path) -> _Translated:
    """Turn errors that apsw raises in the block into errors of Kept."""
    return _Translated(path)


def translate(error: BaseException, path: Path) -> None:
    """Raise the error of Kept that corresponds to an error of apsw. Other errors are left to the caller."""
    if isinstance(error, apsw.Error):
        raise _ours(error, path) from error
    if isinstance(error, UnicodeDecodeError) and _raised_in(error).startswith("kept.storage.sqlite"):
        raise damaged(f"Text in {path}") from error  # the stored bytes are not UTF-8


def _raised_in(error: BaseException) -> str:
    """The module whose code was running."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return "" if traceback is None else str(traceback.tb_frame.f_globals.get("__name__", ""))


def is_damage(error: BaseException | None) -> bool:
    """Whether SQLite has read something that it, or Kept, never wrote."""
    is_misfit = getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_DATA  # a page and its checksum
    return is_misfit or isinstance(error, apsw.CorruptError | apsw.NotADBError)


def _is_over(path: Path) -> bool:
    """Whether a page that did not match its checksum was only being swept when it was read."""
    return path.is_file() and (pages.is_being_swept(path) or not pages.bad_pages(path, sys.maxsize))


def _ours(error: apsw.Error, path: Path) -> KeptError:
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return Busy(
                f"{path} is locked by another program.", hint="Close other tools that have it open, then try again."
            )
        case apsw.IOError() if is_damage(error) and _is_over(path):
            return Busy(f"A page of {path} was read while erased text was being removed from it.", hint="Try again.")
        case apsw.CorruptError() | apsw.IOError() if is_damage(error):
            return Corrupt(
                f"{path} is damaged: the stored bytes have changed since they were written.",
                hint="Nothing was changed. `kept doctor` says what is damaged, and how to get it back.",
            )
        case apsw.NotADBError():
            return Corrupt(
                f"{path} is not a SQLite database.",
                hint="Nothing was changed. Give another file, or run `kept doctor`.",
            )
        case apsw.FullError() | apsw.IOError() if is_no_room(error):
            return _full(path)
        case apsw.ReadOnlyError() if reserve.is_too_full_to_open(path):
            return _full(path)  # it was opened to be read only, for want of room
        case apsw.IOError() | apsw.CantOpenError() if (none_left := no_handles_left(path)) is not None:
            return none_left
        case apsw.IOError():
            return StorageError(
                f"The disk failed while {path} was being read or written ({error}).",
                hint="If this was a write, check whether it was stored before you try again. Then run `kept doctor`.",
            )
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError():
            if path.is_dir():
                return InvalidInput(f"{path} is a directory, not a memory file.", hint="Give a file name inside it.")
            return StorageError(
                f"{path} cannot be opened for writing.",
                hint="Check that its folder exists and that you may write there.",
            )
        case _:
            return StorageError(
                f"SQLite failed on {path}: {error}.",
                hint="Nothing was stored. Try again. If it fails again, run `kept doctor`.",
            )


def _full(path: Path) -> KeptError:
    return StorageError(f"The disk with {path} is full.", hint="Nothing was changed. Free some space and try again.")


class View:
    """One consistent look at a file, through a connection that is inside a transaction: what all readers read with."""

    is_changing = False  # what was read may be read differently a moment later, in a turn to write

    def __init__(self, space: str, connection: apsw.Connection, seen: dict[Any, Any] | None = None) -> None:
        self.space = space
        self.bare = connection
        self.seen = {} if seen is None else seen  # what was read at this moment, or before and is the same

    def once(self, key: Hashable, read: Callable[[], T]) -> T:
        """What `read` reads, which need not be read again while the file is as it is. It is shared: never change it."""
        if self.is_changing:
            return read()
        if key not in self.seen:
            self.seen[key] = read()
        return cast("T", self.seen[key])

    @property
    def connection(self) -> apsw.Connection:
        """The connection to read with. A write transaction first writes its pending rows."""
        return self.bare

    def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a query."""
        try:
            return self.connection.execute(sql, values).fetchall()
        except UnicodeDecodeError as error:
            raise damaged("Text in this file") from error

    def meta(self, name: str) -> str | None:
        """A fact about the file itself."""
        found = self.fetch("select value from meta where name = ?", (name,))
        return str(found[0][0]) if found else None

    def memory_rows(self, ids: Sequence[int]) -> list[Any]:
        """The rows, as rows.to_memory takes them, of the memories with these ids, in that order."""
        sql = f"select {MEMORY_SELECT} from json_each(?) wanted cross join memories m on m.id = wanted.value"
        return self.fetch(sql, (json_text(ids),))

    @block
    def until(self, deadline: Deadline | None) -> Iterator[None]:
        """Raise TooLate inside the block, soon after the deadline is over."""
        if deadline is None:
            yield
            return
        self.bare.set_progress_handler(deadline.is_over, PROGRESS_STEPS)
        try:
            yield
        except apsw.InterruptError as error:
            raise TooLate from error
        finally:
            self.bare.set_progress_handler(None)


class Unchanged:
    """What was read from a file, for as long as nobody changes that.

    SQLite counts what each connection sees change, its own commits included; its page cache relies on the same.
    """

    def __init__(self) -> None:
        self._known: tuple[apsw.Connection, int, dict[Any, Any]] | None = None  # replaced as a whole: threads share it

    def through(self, connection: apsw.Connection) -> dict[Any, Any]:
        """What is known at the moment of a transaction that has begun to read."""
        known, version = self._known, connection.data_version()
        if known is None or known[0] is not connection or known[1] != version or len(known[2]) > _MOST_SEEN:
            known = self._known = (connection, version, {})
        return known[2]

    def outlives(self, connection: apsw.Connection, version: int) -> None:
        """Since it saw that version, the connection has written only what is never kept here."""
        known = self._known
        if known is not None and known[0] is connection and known[1] == version:
            self._known = (connection, connection.data_version(), known[2])


class ReaderPool:
    """Idle connections to one file, and those that are lent."""

    def __init__(self, path: Path, connect: Callable[[], apsw.Connection]) -> None:
        self._path = path
        self._connect = connect
        self._idle: list[apsw.Connection] = []
        self._lent: dict[_Loan, apsw.Connection | None] = {}  # None while it is being opened
        self._guard = threading.RLock()
        self._pid = os.getpid()
        self._is_closed = False
        self._outdated: set[_Loan] = set()
        self._makeshift: set[apsw.Connection] = set()
        self.inode: int | None = None  # of the file that the connections belong to
        self.has_met_damage = False  # then the WAL stays as it is
        lock.watch(self)

    def borrow(self) -> AbstractContextManager[apsw.Connection]:
        """A connection that nobody else uses until the block ends."""
        return _Loan(self)

    def check_open(self) -> None:
        """Raise StorageError when the pool is closed, or cannot be used in this process."""
        if self._is_closed:
            raise StorageError(f"The storage of {self._path} is closed.", hint="Open it again with kept.open().")
        lock.check(self._path)

    def lend_once(self, connection: apsw.Connection) -> None:
        """Close this connection, which is just being made, at the end of its loan. The next one may be better."""
        self._makeshift.add(connection)

    def alone(self) -> AbstractContextManager[bool]:
        """Keep the other threads of this process out until the block ends. For a moment only: they wait."""
        if os.getpid() != self._pid:
            self.after_fork(in_child=True)
        return self._guard

    def close(self) -> None:
        """Close every idle connection now, and each lent one when it comes back."""
        if os.getpid() != self._pid:
            self.after_fork(in_child=True)
        with self._guard:
            self._is_closed = True
            self._close_idle()

    def before_fork(self) -> None:
        self._guard.acquire()
        self._close_idle()

    def after_fork(self, *, in_child: bool) -> None:
        if not in_child:
            self._guard.release()
            return
        if self._idle or self._lent:
            lock.inherit(self._path, (self._idle, self._lent))
            self._idle, self._lent = [], {}
        self._guard = threading.RLock()
        self._pid = os.getpid()

    def lend(self, loan: "_Loan") -> apsw.Connection:
        if os.getpid() != self._pid:  # forked by something that tells nobody
            self.after_fork(in_child=True)
        with self._guard:
            self.check_open()
            self._check_file()
            connection = self._lent[loan] = self._idle.pop() if self._idle else None
        if connection is not None:
            return connection
        try:
            connection = self._lent[loan] = self._connect()
            self.inode = self._path.stat().st_ino
        except BaseException:
            del self._lent[loan]
            raise
        return connection

    def _check_file(self) -> None:
        """What was opened must still have the name: a write to a file without one would be acknowledged, and lost."""
        try:
            inode = os.stat(self._path).st_ino  # noqa: PTH116 - every read and every write asks, and a Path takes longer
        except FileNotFoundError as error:
            if self.inode is None:
                return  # it is just being made
            raise StorageError(
                f"{self._path} disappeared while it was open.", hint="Put it back, or restore a backup."
            ) from error
        if inode != self.inode:  # another file has the name now: those who have the old one open shall not come back
            self._outdated.update(self._lent)
            while self._idle:
                self._close(self._idle.pop(), is_outdated=self.inode is not None)
            self.inode = inode
            self.has_met_damage = False

    def take_back(self, loan: "_Loan", connection: apsw.Connection, is_sound: bool) -> None:
        with self._guard:
            del self._lent[loan]
            is_makeshift = connection in self._makeshift
            self._makeshift.discard(connection)
            is_outdated = loan in self._outdated
            self._outdated.discard(loan)
            if is_sound and not (is_outdated or is_makeshift or self._is_closed):
                self._idle.append(connection)
                return
        self._close(connection, is_outdated=is_outdated)

    def _close_idle(self) -> None:
        while self._idle:
            self._close(self._idle.pop())

    def _close(self, connection: apsw.Connection, *, is_outdated: bool = False) -> None:
        # Nothing acknowledged depends on closing well: what is not in the database yet stays in the WAL.
        with suppress(apsw.Error):
            if self.has_met_damage or is_outdated:  # the WAL that SQLite would delete belongs to the new file
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            connection.close()


class _Loan:
    """A connection until the end of a block."""

    def __init__(self, pool: ReaderPool) -> None:
        self._pool = pool

    def __enter__(self) -> apsw.Connection:
        self._process = os.getpid()
        self._connection = self._pool.lend(self)
        return self._connection

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if os.getpid() == self._process:
            is_sound = (error is None or _is_harmless(error)) and not self._connection.in_transaction
            if error is not None:
                self._pool.has_met_damage |= isinstance(error, Corrupt) or is_damage(error)
            self._pool.take_back(self, self._connection, is_sound)


def _is_harmless(error: BaseException) -> bool:
    """Whether it tells nothing of the connection; one of apsw may have been made into one of Kept on the way."""
    causes = (error, error.__cause__)
    return isinstance(error, Exception) and not any(isinstance(cause, apsw.Error | MemoryError) for cause in causes)
