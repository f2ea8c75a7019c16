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

_PID_DIGITS = 20


class Turns:
    """The turn of one process at one store. Threads of the process take turns, too."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._threads = threading.Lock()
        self._fd: int | None = None
        self._pid = os.getpid()

    def take(self, wait_s: float) -> None:
        """Wait for the turn, at most `wait_s` seconds (0: not at all). Raises Busy, naming the holder."""
        if os.getpid() != self._pid:
            self._start_anew_after_fork()
        deadline = time.monotonic() + wait_s
        if not self._threads.acquire(timeout=wait_s):
            raise self._busy(wait_s)
        try:
            self._lock(deadline, wait_s)
        except BaseException:
            self._threads.release()
            raise

    def end(self) -> None:
        """Let the next one have its turn."""
        try:
            if self._fd is not None:
                _unlock(self._fd)
        finally:
            self._threads.release()

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
        """Close the lock file. Closing twice is allowed."""
        if os.getpid() == self._pid and self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _lock(self, deadline: float, wait_s: float) -> None:
        while True:
            fd = self._open()
            if not _try_lock(fd) and not self._wait(fd, deadline):
                raise self._busy(wait_s)
            if self._is_current(fd):
                break
            # Somebody deleted the lock file while we waited for it: what we hold guards nothing.
            os.close(fd)
            self._fd = None
        os.pwrite(fd, f"{self._pid:<{_PID_DIGITS}}".encode(), 0)

    def _wait(self, fd: int, deadline: float) -> bool:
        """Block in a thread of its own, so that the caller can stop waiting although flock cannot."""
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return False
        waiter = _Waiter(fd)
        waiter.start()
        if waiter.wait(remaining):
            return True
        self._fd = None  # belongs to the waiter now, which closes it when its turn comes at last
        return False

    def _open(self) -> int:
        if self._fd is None:
            try:
                self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise StorageError(
                    f"The lock file {self.path} cannot be opened: {error.strerror}.",
                    hint="Check that its folder exists and that you may write there.",
                ) from error
        return self._fd

    def _is_current(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), self.path.stat())
        except FileNotFoundError:
            return False

    def _start_anew_after_fork(self) -> None:
        # The child shares the parent's open file, and with it the parent's lock. Only a new one is its own.
        self._fd = None
        self._threads = threading.Lock()
        self._pid = os.getpid()

    def _busy(self, wait_s: float) -> Busy:
        holder = self.holder()
        name = f"process {holder}" if holder else "another process"
        return Busy(
            f"{self.path.stem} is being written by {name}, and its turn did not end within {wait_s:g} s.",
            hint="Try again. If that process hangs, end it; nothing it had not finished will be there.",
        )


class _Waiter(threading.Thread):
    """Waits in a blocking flock. When nobody wants the lock any more by the time it is ours, lets it go again."""

    def __init__(self, fd: int) -> None:
        super().__init__(daemon=True, name="kept-turn")
        self._fd = fd
        self._state = threading.Lock()
        self._is_ours = threading.Event()
        self._is_abandoned = False

    def run(self) -> None:
        _lock_blocking(self._fd)
        with self._state:
            if self._is_abandoned:
                os.close(self._fd)
            else:
                self._is_ours.set()

    def wait(self, timeout_s: float) -> bool:
        if self._is_ours.wait(timeout_s):
            return True
        with self._state:
            if self._is_ours.is_set():
                return True
            self._is_abandoned = True
            return False


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
