"""Writers take turns: one exclusive lock on a file beside the store, for all processes and threads.

SQLite's own busy handler polls, and a polling writer can starve for seconds while others are
served again and again. A blocking flock is a queue. Rule: nobody waits for longer than it said
it would, and whoever gives up can name the process that holds the store.
"""

import contextlib
import os
import sys
import threading
import time
from pathlib import Path

from kept.errors import Busy, StorageError
from kept.storage import forks

_PID_DIGITS = 20


class Turns:
    """The turn of one process at one store. Threads of the process take turns, too."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._threads = threading.Lock()
        self._fd: int | None = None  # ours, unless a waiter has it
        self._waiter: _Waiter | None = None
        self._pid = os.getpid()
        self._taken_by: int | None = None
        self._is_closed = False
        forks.watch(self)

    def take(self, wait_s: float) -> None:
        """Wait for the turn, at most `wait_s` seconds (0: not at all). Raises Busy, naming the holder."""
        if os.getpid() != self._pid:  # forked by something that tells nobody
            self.after_fork(in_child=True)
        deadline = time.monotonic() + wait_s
        if not self._threads.acquire(timeout=wait_s):
            raise self._busy(wait_s)
        try:
            if not self._lock(deadline):
                raise self._busy(wait_s)
            self._taken_by = self._pid
        except OSError as error:
            self._threads.release()
            raise StorageError(
                f"The lock file {self.path} cannot be used: {error.strerror}.",
                hint="Check that its folder exists and that you may write there.",
            ) from error
        except BaseException:
            self._threads.release()
            raise

    def end(self) -> None:
        """Let the next one have its turn."""
        if self._taken_by != os.getpid():
            return  # a child that was forked inside the turn: it is the parent's to end
        self._taken_by = None
        try:
            if self._fd is not None:
                _unlock(self._fd)
            if self._is_closed:
                self._drop()
        finally:
            self._threads.release()

    def leave(self, line: bytes, offset: int) -> None:
        """Write a line into the lock file, for whoever looks there next. Call it in one's turn."""
        if self._fd is not None:
            with contextlib.suppress(OSError):  # a full disk; then the line that stood there stays
                os.pwrite(self._fd, line, offset)

    def holder(self) -> int | None:
        """The process id that took the last turn, as far as the lock file tells."""
        try:
            text = self.path.read_bytes()[:_PID_DIGITS].strip()
        except OSError:
            return None
        return int(text) if text.isdigit() else None

    def is_taken(self) -> bool:
        """Whether anybody, this process included, holds the turn right now."""
        try:
            self.take(0)
        except Busy:
            return True
        self.end()
        return False

    def close(self) -> None:
        """Close the lock file, at the end of the turn if a thread is in one. Closing twice is allowed."""
        self._is_closed = True
        if self._threads.acquire(blocking=False):
            try:
                self._drop()
            finally:
                self._threads.release()

    def before_fork(self) -> None:
        """Nothing to do: a child may inherit the lock file, because it closes its copy."""

    def after_fork(self, *, in_child: bool) -> None:
        if in_child:
            # The child's copy is the parent's lock: kept open, it would outlive a parent that is killed in its turn.
            # Not unlocked, only closed, which the parent's own copy survives. A waiter's thread is not in the child.
            with contextlib.suppress(OSError):
                if self._fd is not None:
                    os.close(self._fd)
                if self._waiter is not None:
                    os.close(self._waiter.fd)
            self._fd = self._waiter = None
            self._threads = threading.Lock()
            self._pid = os.getpid()

    def _lock(self, deadline: float) -> bool:
        """Hold the lock on the file that has the name now, or give up at the deadline."""
        while True:
            fd = self._lock_some_file(deadline)
            if fd is None:
                return False
            if self._is_current(fd):
                _note_pid(fd, self._pid)
                return True
            # Somebody deleted the lock file while we waited for it: what we hold guards nothing.
            _unlock(fd)
            self._drop()

    def _lock_some_file(self, deadline: float) -> int | None:
        while True:
            if self._waiter is None:
                if self._fd is None:
                    self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                if _try_lock(self._fd):
                    return self._fd
                if time.monotonic() >= deadline:
                    return None
                waiter = _Waiter(self._fd)
                try:
                    waiter.start()
                except RuntimeError:  # no more threads, or the interpreter is shutting down: nobody can wait
                    return None
                self._fd, self._waiter = None, waiter
            # An earlier caller may have given up on this waiter; it has kept its place in the queue.
            if not self._waiter.wait(deadline):
                return None
            waiter, self._waiter = self._waiter, None
            self._fd = waiter.fd
            if waiter.is_ours:
                return self._fd

    def _drop(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
        if self._waiter is not None:
            self._waiter.leave()
        self._fd = self._waiter = None

    def _is_current(self, fd: int) -> bool:
        return os.fstat(fd).st_nlink > 0  # deleted, or another file renamed over it: then ours has no name any more

    def _busy(self, wait_s: float) -> Busy:
        holder = self.holder()
        name = f"process {holder}" if holder else "another process"
        return Busy(
            f"{self.path.stem} is being written by {name}, and its turn did not end within {wait_s:g} s.",
            hint="Try again. If that process hangs, end it; nothing it had not finished will be there.",
        )


class _Waiter(threading.Thread):
    """Waits in a blocking flock, which nothing can call off.

    Whoever asked may give up and ask again later: one waiter is enough for all of them, so that a store
    that stays locked costs one thread and not one a try. A lock that comes when nobody wants it is let go.
    """

    def __init__(self, fd: int) -> None:
        super().__init__(daemon=True, name="kept-turn")
        self.fd = fd
        self.is_ours = False
        self._state = threading.Condition()
        self._is_wanted = False
        self._is_over = False
        self._is_left = False

    def run(self) -> None:
        try:
            _lock_blocking(self.fd)
            is_locked = True
        except OSError:
            is_locked = False
        with self._state:
            self.is_ours = is_locked and self._is_wanted
            if is_locked and not self.is_ours:
                _unlock(self.fd)  # closing is not enough: a forked child may have a copy
            if self._is_left:
                os.close(self.fd)
            self._is_over = True
            self._state.notify_all()

    def wait(self, deadline: float) -> bool:
        """Whether flock has returned before the deadline. Whoever gives up, or is interrupted, holds no lock."""
        with self._state:
            self._is_wanted = True
            try:
                return self._state.wait_for(lambda: self._is_over, max(0.0, deadline - time.monotonic()))
            except BaseException:
                if self.is_ours:
                    _unlock(self.fd)
                    self.is_ours = False
                raise
            finally:
                self._is_wanted = False

    def leave(self) -> None:
        """Nobody will come back for the lock file: close it as soon as that is possible."""
        with self._state:
            if self._is_over:
                os.close(self.fd)
            self._is_left = True


def _note_pid(fd: int, pid: int) -> None:
    with contextlib.suppress(OSError):  # on a full disk a Busy error names somebody else; no reason to fail
        os.pwrite(fd, f"{pid:<{_PID_DIGITS}}".encode(), 0)


if sys.platform == "win32":  # pragma: no cover
    import msvcrt

    def _try_lock(fd: int) -> bool:
        os.lseek(fd, _PID_DIGITS, os.SEEK_SET)
        with contextlib.suppress(OSError):
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
            return True
        return False

    def _lock_blocking(fd: int) -> None:
        while not _try_lock(fd):
            time.sleep(0.01)  # Windows has no blocking lock of this kind; there, turns are polled

    def _unlock(fd: int) -> None:
        os.lseek(fd, _PID_DIGITS, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _lock_blocking(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX)

    def _unlock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)
