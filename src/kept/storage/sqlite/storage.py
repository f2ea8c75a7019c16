"""One space in one SQLite file: connections, turns, transactions, opening and closing.

Readers each take a connection from a small pool and see one moment of the WAL. A writer first takes
its turn (lock.py), then BEGIN IMMEDIATE: a transaction that reads first and writes later would fail
immediately with BUSY_SNAPSHOT. Rule: a commit that returned is on disk; a failed one left nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from threading import Event, Thread
from types import ModuleType
from typing import TYPE_CHECKING, Any

import apsw

from kept.errors import Busy, Corrupt, InvalidInput, KeptError, NotFound, StorageError
from kept.ports import BackupReport, RestoreReport, Scrubbed, Stamp
from kept.storage.files import is_read_only
from kept.storage.lock import Turns, held
from kept.storage.ranking import LOOK_EVERY
from kept.storage.shared import MOVING, WRITE_WAIT_S, block, check_open, random_hex
from kept.storage.sqlite import acknowledged, encoding, pages, reserve, schema
from kept.storage.sqlite.acknowledged import backups_folder, daily_backups_of
from kept.storage.sqlite.bookkeeping import SqliteBookkeeping
from kept.storage.sqlite.connection import (
    ReaderPool,
    Unchanged,
    View,
    connect,
    connect_to_read,
    is_damage,
    is_no_room,
    leaving_the_wal,
    translate,
    translated,
)
from kept.storage.sqlite.index import merge, refresh_hot_words
from kept.storage.sqlite.reader import SqliteReader
from kept.storage.sqlite.schema import AllOrNothing
from kept.storage.weights import Weights

if TYPE_CHECKING:
    from kept.journal import Salt
    from kept.storage.sqlite.writer import SqliteTransaction, Tip

_CLOSE_WAIT_S = 1.0
SMALL_BYTES = 64 * 1024 * 1024  # a backup of this much takes about a second: closing waits for that
MANY = 64  # new memories in one transaction: it leaves a tidy index behind; bookkeeping.py does after single ones


def rare_verbs() -> ModuleType:
    """Backup, restore, erasing, doctor: modules that hardly any process needs."""
    from kept.storage.sqlite import rare  # as large as all that a recall loads

    return rare


_MOVING = "select 1 from file_notes where name = ?"


def _tidy(connection: apsw.Connection, transaction: "SqliteTransaction") -> None:
    """Do the work on the index that a transaction has made due, inside it."""
    if transaction.view.journal.has_passed(LOOK_EVERY):
        refresh_hot_words(connection)
    if transaction.view.n_stored >= MANY:
        merge(connection, transaction.view.n_stored)
    if transaction.erased:
        rare_verbs().erase.begin(connection, transaction.erased)


class SqliteStorage:
    """One space in one file. Safe for many threads and many processes."""

    def __init__(
        self,
        path: Path,
        space: str | None = None,
        *,
        write_wait_s: float = WRITE_WAIT_S,
        vfs: str | None = None,
        synchronous: str = "full",
        salt: "Salt" = random_hex,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        daily_backups: int = 0,
        must_exist: bool = False,
        home: Path | None = None,
        page_bytes: int | None = None,
    ) -> None:
        """Open the file, creating or upgrading it if need be. `space` None: whichever it holds (a new one, if new).

        `daily_backups`: how many to keep of those that the first write of a day makes; 0 for none. `must_exist`: raise
        NotFound instead of creating it, also where no more than the beginning of a store is there. `home`: the folder
        in which an erasure also cleans the backups that a person asked for. `page_bytes`: of a file that is made here.
        A file that cannot be written is read; every write is an error then, and notes of recall are dropped.
        """
        self.path = path
        self._must_exist = must_exist
        self._home = home
        self._page_bytes = page_bytes
        self._is_read_only = is_read_only(path)
        self._write_wait_s = write_wait_s
        self._vfs = vfs
        self._synchronous = synchronous
        self._now = now
        self._salt = salt
        self._turns = Turns(path.with_name(path.name + ".lock"))
        self._pool = ReaderPool(path, self._connect)
        self._weights = Weights()
        self._unchanged = Unchanged()
        n_daily = 0 if self._is_read_only else daily_backups
        self._daily = _DailyBackups(path, n_daily, self._make_backup) if n_daily else None
        self._is_closed = False
        self._is_in_bulk = False
        self._left: tuple[apsw.Connection, int, Tip] | None = None  # by the last turn
        self.space = ""
        if path.is_dir():
            raise InvalidInput(f"{path} is a directory, not a memory file.", hint="Give a file name inside it.")
        try:
            with translated(path):
                self.space = self._prepare_file(space)
        except BaseException:
            self._pool.close()
            self._turns.close()
            raise

    @block
    def reading(self) -> Iterator[SqliteReader]:
        with translated(self.path), self._pool.borrow() as connection, AllOrNothing(connection, "begin"):
            schema.check_version(connection, self.path)  # the first read: from here on, one moment
            yield SqliteReader(View(self.space, connection, self._unchanged.through(connection)), self._weights)

    @block
    def writing(
        self, stamp: Stamp, *, urgent: bool = False, wait_s: float | None = None
    ) -> "Iterator[SqliteTransaction]":
        with self._turn(self._write_wait_s if wait_s is None else wait_s), self._pool.borrow() as connection:
            if urgent:
                with self._making_room(connection):
                    yield from self._in_transaction(connection, stamp)
            else:
                yield from self._in_transaction(connection, stamp)
        if self._daily is not None:
            with self._pool.alone():  # a backup that began after closing would find nothing open
                if not self._is_closed:
                    self._daily.after_write(stamp.at, self._created_at)

    def _in_transaction(self, connection: apsw.Connection, stamp: Stamp) -> "Iterator[SqliteTransaction]":
        from kept.storage.sqlite.writer import SqliteTransaction, Tip  # a program that only asks needs none of it

        with AllOrNothing(connection):
            left = self._tip_of(connection)
            tip = Tip(None, {}, {}) if left is None else left
            transaction = SqliteTransaction(self.space, connection, stamp, self._salt, self._weights, tip)
            if left is None:  # else the last turn has checked the fence, and no other connection has written since
                check_open(transaction, stamp)
            if self._is_in_bulk:
                with rare_verbs().erase.marking_only(connection):
                    yield transaction
                    transaction.flush()
            else:
                yield transaction
                transaction.flush()
            _tidy(connection, transaction)
        if transaction.view.n_stored >= MANY or transaction.view.journal.has_passed(LOOK_EVERY):
            reserve.refill(self.path)  # in proportion to the store, which grows
        if not stamp.passes_fence:  # such a turn may put up a fence, which the next one has to see
            self._left = (connection, connection.data_version(), transaction.view.tip)
        if self._synchronous == "full":
            acknowledged.note_in_turn(self._turns, self._pool.inode or 0, transaction.position)

    def _tip_of(self, connection: apsw.Connection) -> "Tip | None":
        """Where the file ends, if the last turn left it and nobody else has written since; None if it must be read.

        SQLite counts what each connection sees change, its own commits included; its page cache relies on the same.
        """
        left, self._left = self._left, None
        if left is not None:
            last_used, data_version, tip = left
            if connection is last_used and connection.data_version() == data_version:
                return tip
        schema.check_version(connection, self.path)
        return None

    @contextmanager
    def _making_room(self, connection: apsw.Connection) -> Iterator[None]:
        """For changes that must succeed on a full disk."""
        with reserve.spent(self.path) as is_full:
            if is_full:
                with suppress(apsw.FullError):
                    rare_verbs().erase.empty_the_wal(connection)  # which gives its room back
            yield

    @block
    def bookkeeping(self, *, passes_fence: bool = False) -> Iterator[SqliteBookkeeping | None]:
        self._pool.check_open()
        if self._is_read_only:
            yield None
            return
        turn = _Turn(self._turns, 0, self.path, self._vfs)
        try:
            turn.begin()
        except Busy:
            yield None
            return
        try:
            with translated(self.path), self._pool.borrow() as connection:
                if connection.readonly("main"):  # for want of room
                    yield None
                    return
                # Usage counts may be lost with the power; they are not worth a sync at every recall.
                connection.execute("pragma synchronous = normal")
                notes, version = SqliteBookkeeping(connection), None
                try:
                    # Nor are they worth an error, when the disk is full.
                    with suppress(apsw.FullError), AllOrNothing(connection):
                        schema.check_version(connection, self.path)
                        version = connection.data_version()
                        is_fenced = not passes_fence and connection.execute(_MOVING, (MOVING,)).fetchone() is not None
                        yield None if is_fenced else notes
                    if version is not None and not notes.has_changed_memories:
                        self._unchanged.outlives(connection, version)
                finally:  # if this fails, the pool does not take the connection back
                    connection.execute(f"pragma synchronous = {self._synchronous}")
        finally:
            self._turns.end()

    @contextmanager
    def in_bulk(self) -> Iterator[None]:
        self._is_in_bulk = True
        try:
            yield
        finally:
            self._is_in_bulk = False
        # On a full disk the words stay behind for now; an erasure sees to them.
        with (
            self._turn(self._write_wait_s),
            self._pool.borrow() as connection,
            suppress(apsw.FullError),
            AllOrNothing(connection),
        ):
            schema.check_version(connection, self.path)
            rare_verbs().erase.settle(connection)

    @contextmanager
    def making_room(self) -> Iterator[None]:
        with reserve.spent(self.path):
            yield

    def scrub(self) -> Scrubbed:
        """Finish what erasing began. Not done: another process still reads the old pages; the next open goes on."""
        with self._turn(self._write_wait_s):
            return self._scrub()

    def back_up(self, target: Path) -> BackupReport:
        rare = rare_verbs()
        with translated(self.path), self._pool.borrow() as connection:
            schema.check_version(connection, self.path)
            turn = rare.backup.no_turn if self._is_read_only else lambda: self._turn(self._write_wait_s)
            made: BackupReport = rare.backup.back_up(connection, target, turn)
            if not self._is_read_only and target.resolve().parent != backups_folder(self.path).resolve():
                with self._turn(self._write_wait_s), AllOrNothing(connection):
                    rare.erase.remember_backup(connection, target.resolve())
            return made

    def restore_from(self, source: Path, *, overwrite_newer: bool = False) -> RestoreReport:
        restore, now = rare_verbs().restore, self._now()
        restored: RestoreReport
        try:
            with self._turn(self._write_wait_s), self._pool.borrow() as connection:
                schema.check_version(connection, self.path)
                restored = restore.restore(connection, self.path, source, overwrite_newer=overwrite_newer, now=now)
        except restore.DamagedStore:
            wait_s = self._write_wait_s
            restored = restore.replace_damaged(self.path, source, space=self.space, wait_s=wait_s, now=now)
        return restored

    @contextmanager
    def lease(self, name: str, *, wait_s: float = 0.0) -> Iterator[bool]:
        if self._is_read_only:
            yield False
            return
        path = self.path.with_name(f"{self.path.name}.{name}")
        with held(path, wait_s) as is_ours:
            try:
                yield is_ours
            finally:
                if is_ours:  # whoever waits for this file finds it gone, and makes a new one
                    with suppress(OSError):
                        path.unlink()

    def describe(self) -> dict[str, Any]:
        with translated(self.path), self._pool.borrow() as connection:
            facts = {
                "storage": "sqlite",
                "place": str(self.path),
                "bytes": sum(part.stat().st_size for part in self._files() if part.exists()),
                "schema": schema.version_of(connection),
                "sqlite": apsw.sqlite_lib_version(),
            }
            if self._daily is not None:
                facts["daily_backup"] = self._daily.newest
            if self._is_read_only:
                facts["read_only"] = True
            return facts | ({"erase": "pending"} if schema.pending_scrub(connection) else {})

    def close(self) -> None:
        with self._pool.alone():
            if self._is_closed:
                return
            self._is_closed = True
        if self._daily is not None:
            self._daily.close()
        if self._is_read_only:
            self._pool.close()
            self._turns.close()
            return
        # The last connection to close checkpoints the WAL: in our turn, unless somebody holds it for long.
        has_turn = is_copied = False
        with suppress(StorageError):
            self._turns.take(_CLOSE_WAIT_S)
            has_turn = True
        try:
            # If all of it is in the database, then whoever closes the file last has nothing to copy.
            is_copied = has_turn and self._copy_the_wal()
            self._pool.close()
        finally:
            if has_turn:
                if is_copied and not self._files()[1].exists():
                    acknowledged.clear(self.path)
                self._turns.end()
            self._turns.close()

    def _copy_the_wal(self) -> bool:
        """Whether all that was in it is in the database now. Damage is not added to: then it stays as it is."""
        if self._pool.has_met_damage:
            return False
        try:
            with self._pool.borrow() as connection:
                in_wal, copied = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except (apsw.Error, KeptError):
            return False  # it stays in the WAL
        return in_wal == copied

    def _prepare_file(self, space: str | None) -> str:
        """Create or upgrade the schema, and finish an erasure that was left pending."""
        if self._must_exist:
            if self.path.exists():
                acknowledged.check_not_emptied(self.path)
            if not self.path.exists() or not acknowledged.is_begun(self.path):
                raise NotFound(f"There is no store at {self.path} yet.")
        if self._is_read_only:
            with self._pool.borrow() as connection:
                return self._read_facts(connection, space)["space"]
        if pages.is_being_swept(self.path):
            with self._turn(self._write_wait_s):
                pass  # which begins with finishing it
        try:
            found, is_pending = self._open_file(space)
        except apsw.Error as error:
            if not is_damage(error) or not self._seal_if_whole():
                raise
            found, is_pending = self._open_file(space)
        if acknowledged.is_left_to_others(self.path):
            self._seal_if_whole()
        acknowledged.note_use(self.path)
        if is_pending:
            # Neither somebody else's turn nor a full disk is a reason not to open: it stays pending.
            with suppress(Busy), self._turn(0):
                self._scrub()
        return found

    def _seal_if_whole(self) -> bool:
        """Pages may not fit their checksum because of another program: then they get one. Whether all do now."""
        is_whole: bool = rare_verbs().recovery.seal_if_whole(self.path, now=self._now())
        return is_whole

    def _open_file(self, space: str | None) -> tuple[str, bool]:
        """The space that the file holds, and whether an erasure is pending."""
        # On a full disk even opening needs room, for the index of the WAL.
        with reserve.spent(self.path), self._pool.borrow() as connection:
            with leaving_the_wal(connection):
                schema.check_ownership(connection, self.path)
                version = schema.check_version(connection, self.path)
                if version:
                    schema.check_steps(connection, self.path)
                elif self._must_exist:
                    raise NotFound(f"There is no store at {self.path} yet.")
                if 0 < version < schema.LATEST and space is not None:  # another one's file is not upgraded
                    self._check_space(schema.facts_of(connection, self.path), space)
                if version < schema.LATEST:
                    self._migrate(connection)
                self._check_nothing_is_lost(connection)
            facts = self._settle_facts(connection, space)
            found, self._created_at = facts["space"], datetime.fromisoformat(facts["created_at"])
            self._check_space(facts, space)
            return found, bool(schema.pending_scrub(connection))

    def _read_facts(self, connection: apsw.Connection, space: str | None) -> dict[str, str]:
        """As `_open_file`, of a file that cannot be written."""
        schema.check_ownership(connection, self.path)
        version = schema.check_version(connection, self.path)
        if version < schema.LATEST:
            raise StorageError(
                f"{self.path} is read-only, and its schema ({version}) is older than this program's ({schema.LATEST}).",
                hint="Open it once where it can be written.",
            )
        schema.check_steps(connection, self.path)
        self._check_nothing_is_lost(connection)
        facts = schema.facts_of(connection, self.path)
        self._check_space(facts, space)
        return facts

    def _check_space(self, facts: dict[str, str], space: str | None) -> None:
        """Raise InvalidInput if the file is of another space than the one asked for. A new file is of none yet."""
        found = facts.get("space", space)
        if space is not None and space != found:
            raise InvalidInput(
                f"{self.path} holds the space {found}, not {space}. It was not changed.",
                hint="Move the file back to the folder of its own project; `kept store merge FILE` then brings its "
                "memories into another project.",
            )

    def _scrub(self) -> Scrubbed:
        """Clean this file and its backups of what was erased. Call it in this process's turn to write."""
        try:
            with self._pool.borrow() as connection, reserve.spent(self.path):
                schema.check_version(connection, self.path)
                if not schema.pending_scrub(connection):
                    return Scrubbed()
                scrubbed: Scrubbed = rare_verbs().scrub(connection, self.path, self._home, self._vfs, self._now())
                return scrubbed
        except (apsw.FullError, apsw.ReadOnlyError):
            return Scrubbed(is_done=False)

    def _make_backup(self, target: Path, is_stopped: Callable[[], bool]) -> None:
        turn = partial(self._turn, self._write_wait_s)
        with translated(self.path), self._pool.borrow() as connection:
            rare_verbs().backup.back_up(connection, target, turn, is_stopped)

    def _check_nothing_is_lost(self, connection: apsw.Connection) -> None:
        noted = acknowledged.noted(self.path)  # read first: the file can only have come further since
        found = acknowledged.position_of(connection)
        if found.is_behind(noted):
            raise Corrupt(
                f"{self.path} ends with event {found.event} and message {found.message}, but event {noted.event} and "
                f"message {noted.message} were acknowledged. Its WAL is damaged or was removed, or an older "
                f"file was put in its place.",
                hint="Nothing was changed. `kept doctor` says what is missing; `kept doctor --fix` goes on without it.",
            )

    def _settle_facts(self, connection: apsw.Connection, space: str | None) -> dict[str, str]:
        if facts := schema.facts_of(connection, self.path):
            return facts
        with self._turn(self._write_wait_s):
            if facts := schema.facts_of(connection, self.path):  # a second process was first: what it wrote stays
                return facts
            facts = {
                "space": space or f"project/{random_hex(4)}",
                "tombstone_key": random_hex(32),
                "created_at": str(encoding.clock(self._now())),
            }
            schema.settle_facts(connection, facts)
            return facts

    def _migrate(self, connection: apsw.Connection) -> None:
        with self._turn(self._write_wait_s):
            version = schema.check_version(connection, self.path)
            if version == schema.LATEST:
                return  # another process was first
            steps = schema.migrations()
            if version:
                rare_verbs().backup.back_up_before_migration(connection, self.path, version)
            schema.migrate(connection, self.path, steps, self._now())
            if not version:
                for part in self._files():
                    if part.exists():
                        part.chmod(0o600)

    def _connect(self) -> apsw.Connection:
        connection = connect_to_read(self.path, vfs=self._vfs) if self._is_read_only else self._connect_to_write()
        if self.space:  # the file is known; if it was replaced since, then by one of this space
            found = schema.facts_of(connection, self.path).get("space")
            if found != self.space:
                connection.close()
                raise InvalidInput(f"{self.path} was replaced: it held the space {self.space} and now holds {found}.")
        return connection

    def _connect_to_write(self) -> apsw.Connection:
        """A connection that can write; on a disk without room for the index of a WAL, one that can only read."""
        try:
            return connect(self.path, vfs=self._vfs, synchronous=self._synchronous, page_bytes=self._page_bytes)
        except apsw.Error as error:
            if not is_no_room(error):
                raise
            try:
                connection = connect_to_read(self.path, vfs=self._vfs)
            except (apsw.Error, KeptError):
                raise error from None
            self._pool.lend_once(connection)
            return connection

    def _turn(self, wait_s: float) -> AbstractContextManager[None]:
        self._pool.check_open()
        if self._is_read_only:
            raise StorageError(
                f"{self.path} cannot be changed: it, or its folder, is read-only.",
                hint="Check the permissions of the file and of its folder, or choose another home with KEPT_HOME.",
            )
        return _Turn(self._turns, wait_s, self.path, self._vfs)

    def _files(self) -> tuple[Path, ...]:
        return tuple(self.path.with_name(self.path.name + suffix) for suffix in ("", "-wal", "-shm"))


class _DailyBackups:
    """Begins the backup of the day for one file, in a thread, after the first write of the day."""

    def __init__(self, path: Path, keep: int, make: Callable[[Path, Callable[[], bool]], None]) -> None:
        self._path = path
        self._keep = keep
        self._make = make
        self._day: date | None = None
        self._thread: Thread | None = None
        self._is_stopped = Event()

    @property
    def newest(self) -> str | None:
        """The day of the newest backup, such as 2026-03-01."""
        return next((path.stem for path in daily_backups_of(self._path)), None)

    def after_write(self, at: datetime, created_at: datetime) -> None:
        """Begin today's backup unless it is there. A store that was made today holds nothing of yesterday yet."""
        if at.date() == self._day or (self._thread is not None and self._thread.is_alive()):
            return
        self._day = at.date()
        target = backups_folder(self._path) / f"{at:%Y-%m-%d}.db"
        if target.exists() or created_at.date() >= at.date():
            return
        # Imported here and not in the thread: a process that is forked meanwhile would wait for that import for ever.
        make_daily = rare_verbs().backup.make_daily
        options = (self._path, target, self._keep, self._make, self._is_stopped.is_set)
        self._thread = Thread(target=make_daily, args=options, daemon=True, name="kept-backup")
        with suppress(RuntimeError):  # no more threads, or the interpreter is shutting down: tomorrow, then
            self._thread.start()

    def close(self) -> None:
        """Wait for a backup of a small store, stop that of a large one."""
        if self._thread is None or not self._thread.is_alive():
            return
        if pages.size_of(self._path) > SMALL_BYTES:
            self._is_stopped.set()
        self._thread.join()


# Classes, as the loans of the pool: generators would take four times as long, and every write goes through them.


class _Turn:
    """This process's turn to write. What apsw raises in it becomes an error of Kept."""

    def __init__(self, turns: Turns, wait_s: float, path: Path, vfs: str | None) -> None:
        self._turns = turns
        self._wait_s = wait_s
        self._path = path
        self._vfs = vfs

    def __enter__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Wait for the turn, then finish a sweep that was cut off. For callers that end the turn explicitly."""
        self._turns.take(self._wait_s)
        try:
            if pages.is_being_swept(self._path):
                with translated(self._path):
                    rare_verbs().erase.recover_sweep(self._path, self._vfs)
        except BaseException:
            self._turns.end()
            raise

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._turns.end()
        if error is not None:
            translate(error, self._path)
