"""`kept.Pool`: the memories of many users in one process; only so many are open at a time.

    pool = kept.Pool(max_open=100)
    with pool.user("Ab3") as memory:
        memory.recall("…")

Each open memory holds four file handles, and one more pair for each further thread that reads in it at the same time.
Rule: a memory that is lent is never closed; the one that was returned longest ago makes room for the next. A task that
waits for room holds no worker thread: those who have a memory need the threads for their verbs, to give it back.
"""

import os
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from types import TracebackType
from typing import Any, Self

from kept.errors import Busy, InvalidInput, StorageError
from kept.memory import Kept
from kept.memory.awaited import in_thread
from kept.memory.opening import check_shared
from kept.memory.opening import open as open_memory
from kept.projects.spaces import digest_of
from kept.settings import Settings

WAIT_S = 30.0  # for a memory to be returned: longer than any call takes


class _Lent:
    """One open memory, and how many are using it."""

    def __init__(self) -> None:
        self.memory: Kept | None = None  # None while it is being opened
        self.users = 0
        self.opening = threading.Lock()


class _Waiting:
    """A task that waits for room in its event loop. Others wake it from any thread."""

    def __init__(self, asyncio: Any) -> None:
        self._loop, self._woken = asyncio.get_running_loop(), asyncio.Event()
        self._wait_for = asyncio.wait_for

    def wake(self) -> None:
        with suppress(RuntimeError):  # its loop has ended
            self._loop.call_soon_threadsafe(self._woken.set)

    async def wait(self, seconds: float) -> bool:
        """Return False if it was not woken in that time."""
        try:
            await self._wait_for(self._woken.wait(), max(0.0, seconds))
        except TimeoutError:
            return False
        self._woken.clear()
        return True


class Pool:
    """Memories of users: opened when they are asked for, kept open, and closed when others need the room."""

    def __init__(
        self,
        location: str | os.PathLike[str] | None = None,
        *,
        home: str | os.PathLike[str] | None = None,
        max_open: int = 100,
        settings: Settings | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        """`location` is None or the URL of a database; `home`, `settings` and `options` are those of `kept.open`."""
        if not isinstance(max_open, int) or max_open < 1:
            raise InvalidInput(
                f"max_open must be a whole number of 1 or more, got {max_open!r}.",
                hint="100 takes some 400 file handles.",
            )
        self._location = location
        self._options = {"home": home, "settings": settings, **options}
        check_shared(location, self._options)  # when a service starts, and not with its first request
        self._max_open = max_open
        self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<kept.Pool: {len(self._open)} of at most {self._max_open} open>"

    @contextmanager
    def user(self, name: str) -> Iterator[Kept]:
        """Lend the memory of a user until the block ends. Several threads may have the same one.

        Raises Busy when as many memories as may be open are lent, and none comes back within 30 s.
        """
        loan = _Loan(self, name)
        try:
            yield loan.take()
        finally:
            loan.end()

    @asynccontextmanager
    async def auser(self, name: str) -> AsyncIterator[Kept]:
        """As `user`, for `async` programs: a worker thread opens the memory, and waiting for room takes none."""
        loan = _Loan(self, name)
        try:
            yield await loan.atake()
        finally:
            loan.end()

    def close(self) -> None:
        """Close all memories that are not lent now, and each lent one when it is returned."""
        with self._guard:
            self._is_closed = True
            self._evict(len(self._open))
            self._guard.notify_all()
            for waiting in self._waiting:
                waiting.wake()
        self._close_evicted()

    def _begin(self) -> None:
        self._open: dict[str, _Lent] = {}  # by the name of the user, the one returned last at the end
        self._evicted: deque[Kept] = deque()  # to be closed, in no loop and under no lock
        self._waiting: dict[_Waiting, None] = {}  # the first comes first
        self._guard = threading.Condition()
        self._pid = os.getpid()
        self._is_closed = False

    def room_for(self, name: str) -> _Lent:
        """Return the place of a user among those that are open, counted as in use; wait for it in this thread."""
        self._check(name)
        deadline = time.monotonic() + WAIT_S
        with self._guard:
            while (lent := self._place_of(name)) is None:
                if not self._guard.wait(deadline - time.monotonic()):
                    raise self._no_room()
            return lent

    async def aroom_for(self, name: str) -> _Lent:
        """As `room_for`, in an event loop: nothing is counted if the task is cancelled."""
        self._check(name)
        with self._guard:
            if (not self._waiting or name in self._open) and (lent := self._place_of(name)) is not None:
                return lent
            waiting = _Waiting(sys.modules["asyncio"])  # a loop is running, so it is loaded
            self._waiting[waiting] = None
        deadline = time.monotonic() + WAIT_S
        try:
            while await waiting.wait(deadline - time.monotonic()):
                with self._guard:
                    if (lent := self._place_of(name)) is not None:
                        return lent
            raise self._no_room()
        finally:
            with self._guard:
                del self._waiting[waiting]
                self._wake_one()  # there may be room for two, or this task was cancelled when it was its turn

    def open(self, name: str, lent: _Lent) -> None:
        """Open the memory of a place, unless it is; give the place back if that fails."""
        try:
            self._close_evicted()
            with lent.opening:
                if lent.memory is None:
                    lent.memory = open_memory(self._location, user=name, **self._options)
        except BaseException:
            self.give_back(name, lent)
            raise

    def give_back(self, name: str, lent: _Lent) -> None:
        """Count one user of a memory less."""
        with self._guard:
            lent.users -= 1
            is_over = not lent.users and (self._is_closed or lent.memory is None)
            if self._open.get(name) is lent:
                del self._open[name]
                if not is_over:
                    self._open[name] = lent  # at the end: the last to be closed
            self._guard.notify()
            self._wake_one()
        if is_over and lent.memory is not None:
            lent.memory.close()

    def _check(self, name: str) -> None:
        digest_of(name)  # raises InvalidInput before room is made
        if os.getpid() != self._pid:  # a forked process begins with none: those above are its parent's
            self._begin()

    def _place_of(self, name: str) -> _Lent | None:
        """Return the place of a user, counted once more as in use; None if there is no room. Needs the guard."""
        if self._is_closed:
            raise StorageError("This kept.Pool is closed.", hint="Make a new one.")
        lent = self._open.get(name)
        if lent is None:
            self._evict(len(self._open) - self._max_open + 1)
            if len(self._open) >= self._max_open:
                return None
            lent = self._open[name] = _Lent()
        lent.users += 1
        return lent

    def _no_room(self) -> Busy:
        return Busy(
            f"All {self._max_open} memories of this kept.Pool are in use, and none was returned within {WAIT_S:g} s.",
            hint="Leave the `with` block of a user sooner, or raise max_open.",
        )

    def _wake_one(self) -> None:
        if (first := next(iter(self._waiting), None)) is not None:
            first.wake()

    def _evict(self, many: int) -> None:
        """Take out that many memories that are not in use, those returned longest ago first, to be closed."""
        idle = [name for name, lent in self._open.items() if not lent.users][: max(0, many)]
        taken = [self._open.pop(name).memory for name in idle]
        self._evicted += [memory for memory in taken if memory is not None]

    def _close_evicted(self) -> None:
        with suppress(IndexError):  # several threads may do so
            while True:
                self._evicted.popleft().close()


class _Loan:
    """The memory of a user until `end`, which may come while a thread still opens it.

    A place that is counted belongs to the loan, except while the thread that opens it has it.
    """

    def __init__(self, pool: Pool, name: str) -> None:
        self._pool, self._name = pool, name
        self._guard = threading.Lock()
        self._lent: _Lent | None = None
        self._is_over = False

    def take(self) -> Kept:
        self._lent = self._pool.room_for(self._name)
        return self._open()

    async def atake(self) -> Kept:
        self._lent = await self._pool.aroom_for(self._name)
        return await in_thread(self._open)

    def _open(self) -> Kept:
        with self._guard:
            lent, self._lent = self._lent, None
        if lent is None:  # the caller was cancelled before, so this is never seen
            raise Busy("The task that asked for this memory was cancelled.")
        self._pool.open(self._name, lent)
        with self._guard:
            is_over = self._is_over
            self._lent = None if is_over else lent
        if is_over:  # the caller was cancelled in the meantime
            self._pool.give_back(self._name, lent)
        assert lent.memory is not None
        return lent.memory

    def end(self) -> None:
        with self._guard:
            self._is_over = True
            lent, self._lent = self._lent, None
        if lent is not None:
            self._pool.give_back(self._name, lent)
