"""Writers take turns: one exclusive lock on a file beside the store, for all processes and threads.

Every write of a file-based storage takes this lock first. SQLite's own busy handler polls, and a polling writer can
starve for seconds. A blocking flock is better but is no queue: the process that just released the lock is awake and
would win again every time. So writers queue: only the first in line waits for the turn itself.

Forks are handled here too, because SQLite records per process which locks it holds. A child inherits those records but
not the locks, and the parent could remove the WAL under it. So stores close everything before a fork.

Rules: no writer waits longer than its time limit, and the error names the process that holds the store. A child
process inherits no connection, or is told that it cannot use the file.
"""

import contextlib
import errno
import functools
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from kept.errors import Busy, StorageError
from kept.storage.files import no_handles_left


class Forkable(Protocol):
    """Something that holds what a child process must not share."""

    def before_fork(self) -> None:
        """Release everything that can be released. Nothing may change until `after_fork`."""

    def after_fork(self, *, in_child: bool) -> None:
        """Go on; in the child, start again from nothing."""


_watched: weakref.WeakSet[Forkable] = weakref.WeakSet()
_prepared: list[Forkable] = []
_inherited: list[tuple[Path, object]] = []  # for good: to close such a connection would harm the parent


def watch(store: Forkable) -> None:
    """Tell `store` about every fork of this process, as long as it lives."""
    _watched.add(store)
    _register()


def inherit(path: Path, held: object) -> None:
    """Note that this child process inherited something open on `path`, and keep it untouched."""
    _inherited.append((path, held))


def check(path: Path) -> None:
    """Raise StorageError when this process inherited an open connection to the file."""
    for other, _ in _inherited:
        if other == path or (other.exists() and path.exists() and other.samefile(path)):
            raise StorageError(
                f"This process was forked while its parent was using {path}, so it cannot write there safely.",
                hint="Start it with spawn or forkserver instead of fork, or fork while nothing reads or writes.",
            )


@functools.cache
def _register() -> None:
    if hasattr(os, "register_at_fork"):  # Windows has no fork
        os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)


def _all_watched() -> list[Forkable]:
    while True:
        try:
            return list(_watched)
        except RuntimeError:  # another thread has just added one
            continue


def _before() -> None:
    for store in _all_watched():
        store.before_fork()
        _prepared.append(store)


def _after_in_parent() -> None:
    _after(in_child=False)


def _after_in_child() -> None:
    _after(in_child=True)


def _after(*, in_child: bool) -> None:
    while _prepared:
        _prepared.pop().after_fork(in_child=in_child)


_PID_DIGITS = 20
_IDLE_S = 10.0  # after which a thread that waits for turns ends
_PATIENCE_S = 2.0  # for standing in line, which takes less as long as everybody moves


if sys.platform == "win32":

    def read_at(fd: int, length: int, offset: int) -> bytes:
        os.lseek(fd, offset, os.SEEK_SET)
        return os.read(fd, length)

    def write_at(fd: int, content: bytes, offset: int) -> int:
        os.lseek(fd, offset, os.SEEK_SET)
        return os.write(fd, content)

else:
    read_at, write_at = os.pread, os.pwrite


class Turns:
    """The turn of one process at one store. Threads of the process also take turns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._threads = threading.Lock()
        self._in_line = _Lock(path, _IN_LINE)
        self._past_the_line = _Lock(path, _PAST_THE_LINE)
        self._held = self._in_line  # or the other one; matters during a turn
        self._pid = os.getpid()
        self._taken_by: int | None = None
        self._is_closed = False
        watch(self)

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
            raise no_handles_left(self.path) or StorageError(
                f"The lock file {self.path} cannot be used: {error.strerror}.",
                hint="Check that its folder exists and that you may write there.",
            ) from error
        except BaseException:
            self._threads.release()
            raise

    def end(self) -> None:
        """Release the turn to the next in line."""
        if self._taken_by != os.getpid():
            return  # a child that was forked inside the turn: it is the parent's to end
        self._taken_by = None
        try:
            self._held.unlock()
            if self._is_closed:
                self._drop()
        finally:
            self._threads.release()

    def leave(self, line: bytes, offset: int) -> None:
        """Write a line into the lock file for the next reader. Call it only while holding the turn."""
        if self._held.fd is not None:
            try:  # noqa: SIM105 - at every write, to suppress it by a block costs more than the line
                write_at(self._held.fd, line, offset)
            except OSError:  # a full disk; then the line that stood there stays
                pass

    def holder(self) -> int | None:
        """The id of the process that took the last turn, if the lock file names one."""
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
            self._in_line.forget()
            self._past_the_line.forget()
            self._threads = threading.Lock()
            self._pid = os.getpid()

    def _lock(self, deadline: float) -> bool:
        now = time.monotonic()
        if self._in_line.lock(min(deadline, now + _PATIENCE_S)):
            self._held = self._in_line
        # The line is for fairness alone. Somebody who stands there and does not move, because its process was stopped,
        # must not keep the others from writing: after a while they go past it.
        elif deadline > now and self._past_the_line.lock(deadline):
            self._held = self._past_the_line
        else:
            return False
        try:
            self._sign()
        except BaseException:  # somebody interrupts: the lock must not stay behind
            self._held.unlock()
            raise
        return True

    def _sign(self) -> None:
        """Say in the lock file who holds it, unless it says so already: a write costs more than a look."""
        name = b"%-*d" % (_PID_DIGITS, self._pid)
        try:
            if self._held.fd is not None and read_at(self._held.fd, _PID_DIGITS, 0) != name:
                self.leave(name, 0)
        except OSError:  # then nobody can be named, which is no reason not to write
            pass

    def _drop(self) -> None:
        self._in_line.drop()
        self._past_the_line.drop()

    def _busy(self, wait_s: float) -> Busy:
        holder = self.holder()
        name = f"process {holder}" if holder else "another process"
        return Busy(
            f"{self.path.stem} is being written by {name}, which did not finish within {wait_s:g} s.",
            hint="Try again. If that process hangs, end it; its unfinished write is discarded.",
        )


class _Kind(NamedTuple):
    """A way of locking a file: try it, wait for it, let it go."""

    attempt: Callable[[int], bool]
    block: Callable[[int], None]
    release: Callable[[int], None]


class _Lock:
    """One lock on a file that may not exist yet or may be deleted under us. For one user at a time."""

    def __init__(self, path: Path, kind: _Kind) -> None:
        self.fd: int | None = None  # ours, unless a waiter has it
        self._path = path
        self._kind = kind
        self._waiter: _Waiter | None = None

    def lock(self, deadline: float) -> bool:
        """Hold the lock on the file that has the name now, or give up at the deadline."""
        while True:
            fd = self._lock_some_file(deadline)
            if fd is None:
                return False
            if os.fstat(fd).st_nlink > 0:
                return True
            # Somebody deleted the file while we waited for it: what we hold guards nothing.
            self.unlock()
            self.drop()

    def unlock(self) -> None:
        if self.fd is not None:
            self._kind.release(self.fd)

    def drop(self) -> None:
        """Close the file."""
        if self.fd is not None:
            os.close(self.fd)
        if self._waiter is not None:
            self._waiter.leave()
        self.fd = self._waiter = None

    def forget(self) -> None:
        """In a forked child: the lock is the parent's.

        Kept open, the child's copy would outlive a parent that is killed in its turn. It is only closed, not
        unlocked, which the parent's own copy survives. The thread of a waiter is not in the child.
        """
        for fd in (self.fd, None if self._waiter is None else self._waiter.fd):
            if fd is not None:
                with contextlib.suppress(OSError):
                    os.close(fd)
        self.fd = self._waiter = None

    def _lock_some_file(self, deadline: float) -> int | None:
        while True:
            if self._waiter is None or self._waiter.fd is None:
                if self.fd is None:
                    self.fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                if self._kind.attempt(self.fd):
                    return self.fd
                if time.monotonic() >= deadline or not self._ask_waiter(self.fd):
                    return None
                self.fd = None
            assert self._waiter is not None
            # An earlier caller may have given up on the waiter; it has kept its place in the queue.
            answer = self._waiter.wait(deadline)
            if answer is None:
                return None
            self.fd, is_locked = answer
            if is_locked:
                return self.fd

    def _ask_waiter(self, fd: int) -> bool:
        """Let a thread wait. False: no thread can be started, at the end of the interpreter or of memory."""
        if self._waiter is None or not self._waiter.ask(fd):
            self._waiter = _Waiter(self._kind)
            self._waiter.ask(fd)
            try:
                self._waiter.start()
            except RuntimeError:
                self._waiter = None
                return False
        return True


class _Waiter(threading.Thread):
    """Waits in a blocking call, which nothing can call off.

    Whoever asked may give up and ask again later: one waiter is enough for all of them, so that a store that stays
    locked costs one thread and not one a try. A lock that comes when nobody wants it is let go. The thread
    stays for a while, because where one had to wait, the next will have to; to start another one each time costs more
    than the wait.
    """

    def __init__(self, kind: _Kind) -> None:
        super().__init__(daemon=True, name="kept-turn")
        self.fd: int | None = None  # the file it waits for, or has waited for and not given back
        self._kind = kind
        self._state = threading.Condition()
        self._is_asked = False
        self._is_wanted = False
        self._is_locked = False
        self._is_over = False
        self._is_gone = False

    def ask(self, fd: int) -> bool:
        """Begin to wait for the lock on this file. False: the thread has ended, and another one has to."""
        with self._state:
            if self._is_gone:
                return False
            self.fd, self._is_asked, self._is_over, self._is_locked = (
                fd,
                True,
                False,
                False,
            )
            self._state.notify_all()
            return True

    def wait(self, deadline: float) -> tuple[int, bool] | None:
        """The file, and whether it is locked; None when that takes longer than we wait.

        Whoever gives up, or is interrupted, holds no lock.
        """
        with self._state:
            self._is_wanted = True
            try:
                self._state.wait_for(lambda: self._is_over, max(0.0, deadline - time.monotonic()))
            except BaseException:
                if self._is_locked and self.fd is not None:
                    self._kind.release(self.fd)
                    self._is_locked = False
                raise
            finally:
                self._is_wanted = False
            if not self._is_over or self.fd is None:
                return None
            fd, self.fd = self.fd, None
            return fd, self._is_locked

    def leave(self) -> None:
        """Nobody will come back: close the file and end the thread, as soon as that is possible."""
        with self._state:
            self._is_gone = True
            if self._is_over and self.fd is not None:
                os.close(self.fd)
                self.fd = None
            self._state.notify_all()

    def run(self) -> None:
        while (fd := self._next()) is not None:
            try:
                self._kind.block(fd)
                is_locked = True
            except OSError:
                is_locked = False
            with self._state:
                self._is_locked = is_locked and self._is_wanted
                if is_locked and not self._is_locked:
                    self._kind.release(fd)  # closing is not enough: a forked child may have a copy
                if self._is_gone:
                    os.close(fd)
                    self.fd = None
                self._is_over = True
                self._state.notify_all()

    def _next(self) -> int | None:
        """The next file to wait for; None when nobody has asked for long, or nobody will."""
        with self._state:
            self._state.wait_for(lambda: self._is_asked or self._is_gone, _IDLE_S)
            if self._is_asked and not self._is_gone:
                self._is_asked = False
                return self.fd
            self._is_gone = True
            if self._is_asked and self.fd is not None:
                os.close(self.fd)
            return None


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


_PAST_THE_LINE = _Kind(_try_lock, _lock_blocking, _unlock)

if sys.platform == "linux":
    # The first in line holds one byte of the same file, far behind what is written there. Such locks know nothing of
    # flock, but only here; on other systems they would exclude each other. A process loses them when it closes any
    # copy of the file: then it loses its place in line, and nothing else.
    _FIRST = 1 << 20

    def _try_in_line(fd: int) -> bool:
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _FIRST)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        try:
            return _try_lock(fd)
        finally:
            fcntl.lockf(fd, fcntl.LOCK_UN, 1, _FIRST)

    def _lock_in_line(fd: int) -> None:
        fcntl.lockf(fd, fcntl.LOCK_EX, 1, _FIRST)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
        finally:
            fcntl.lockf(fd, fcntl.LOCK_UN, 1, _FIRST)

    _IN_LINE = _Kind(_try_in_line, _lock_in_line, _unlock)
else:  # pragma: no cover
    _IN_LINE = _PAST_THE_LINE


@contextlib.contextmanager
def held(path: Path, wait_s: float) -> Iterator[bool]:
    """Hold the lock file in the block. Yields False, and holds nothing, if another process keeps it that long."""
    turns = Turns(path)
    try:
        try:
            turns.take(wait_s)
        except Busy:
            is_ours = False
        else:
            is_ours = True
        try:
            yield is_ours
        finally:
            if is_ours:
                turns.end()
    finally:
        turns.close()
