"""The connections of this process to one file: each lent to one user at a time, and never across a fork.

Rule: a connection comes back into the pool only if nothing went wrong with it. One that failed is
closed, and with it goes whatever the failure left behind: an open transaction, a changed pragma.
"""

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import apsw

from kept.errors import Corrupt, StorageError
from kept.storage import forks
from kept.storage.sqlite.connection import is_damage


class Pool:
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
        self.inode: int | None = None  # of the file that the connections belong to
        self.has_met_damage = False  # then the WAL stays as it is: it may hold what can be saved
        forks.watch(self)

    def borrow(self) -> AbstractContextManager[apsw.Connection]:
        """A connection that nobody else uses meanwhile."""
        return _Loan(self)

    def check_open(self) -> None:
        """Raise StorageError when nothing can be borrowed any more, or not in this process."""
        if self._is_closed:
            raise StorageError(f"The storage of {self._path} is closed.", hint="Open it again with kept.open().")
        forks.check(self._path)

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
            forks.inherit(self._path, (self._idle, self._lent))
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
                f"{self._path} has disappeared while it was open.", hint="Put it back, or restore a backup."
            ) from error
        if inode != self.inode:  # another file has the name now: those who have the old one open shall not come back
            self.inode = inode
            self._outdated.update(self._lent)
            self._close_idle()

    def take_back(self, loan: "_Loan", connection: apsw.Connection, is_sound: bool) -> None:
        with self._guard:
            del self._lent[loan]
            if loan in self._outdated:
                self._outdated.remove(loan)
            elif is_sound and not self._is_closed:
                self._idle.append(connection)
                return
        self._close(connection)

    def _close_idle(self) -> None:
        while self._idle:
            self._close(self._idle.pop())

    def _close(self, connection: apsw.Connection) -> None:
        # Nothing acknowledged depends on closing well: what is not in the database yet stays in the WAL.
        with suppress(apsw.Error):
            if self.has_met_damage:
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            connection.close()


class _Loan:
    """A connection until the end of a block."""

    def __init__(self, pool: Pool) -> None:
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
