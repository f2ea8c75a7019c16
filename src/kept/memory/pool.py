"""`kept.Pool`: the memories of many users in one process; only so many are open at a time.

    pool = kept.Pool(max_open=100)
    with pool.user("Ab3") as memory:
        memory.recall("…")

Each open memory holds four file handles, and one more pair for each further thread that reads in it at the same time.
Rule: a memory that is lent is never closed; the one that was returned longest ago makes room for the next.
"""

import os
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from types import TracebackType
from typing import Any, Self

from kept.errors import Busy, InvalidInput, StorageError
from kept.memory import Kept
from kept.memory.awaited import in_thread
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
        if max_open < 1:
            raise InvalidInput(f"max_open must be 1 or more, got {max_open}.", hint="100 takes some 400 file handles.")
        self._location = location
        self._options = {"home": home, "settings": settings, **options}
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
        """As `user`, for `async` programs: a worker thread opens the memory."""
        loan = _Loan(self, name)
        try:
            yield await in_thread(loan.take)
        finally:
            loan.end()

    def close(self) -> None:
        """Close all memories that are not lent now, and each lent one when it is returned."""
        with self._guard:
            self._is_closed = True
            idle = self._take_idle(len(self._open))
        for memory in idle:
            memory.close()

    def _begin(self) -> None:
        self._open: dict[str, _Lent] = {}  # by the name of the user, the one returned last at the end
        self._guard = threading.Condition()
        self._pid = os.getpid()
        self._is_closed = False

    def take(self, name: str) -> _Lent:
        """Return the memory of a user, opened and counted as in use."""
        digest_of(name)  # raises InvalidInput before room is made
        if os.getpid() != self._pid:  # a forked process begins with none: those above are its parent's
            self._begin()
        lent, evicted = self._room_for(name)
        for memory in evicted:
            memory.close()
        try:
            with lent.opening:
                if lent.memory is None:
                    lent.memory = open_memory(self._location, user=name, **self._options)
        except BaseException:
            self.give_back(name, lent)
            raise
        return lent

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
        if is_over and lent.memory is not None:
            lent.memory.close()

    def _room_for(self, name: str) -> tuple[_Lent, list[Kept]]:
        """Return the place of a user among those that are open, and the memories to close for it."""
        deadline = time.monotonic() + WAIT_S
        with self._guard:
            while True:
                if self._is_closed:
                    raise StorageError("This kept.Pool is closed.", hint="Make a new one.")
                if (lent := self._open.get(name)) is not None:
                    lent.users += 1
                    return lent, []
                evicted = self._take_idle(len(self._open) - self._max_open + 1)
                if len(self._open) < self._max_open:
                    lent = self._open[name] = _Lent()
                    lent.users = 1
                    return lent, evicted
                if not self._guard.wait(deadline - time.monotonic()):
                    raise Busy(
                        f"All {self._max_open} memories of this kept.Pool are in use, and none was returned within "
                        f"{WAIT_S:g} s.",
                        hint="Leave the `with` block of a user sooner, or raise max_open.",
                    )

    def _take_idle(self, many: int) -> list[Kept]:
        """Take out that many memories that are not in use, those returned longest ago first."""
        idle = [name for name, lent in self._open.items() if not lent.users][: max(0, many)]
        taken = [self._open.pop(name).memory for name in idle]
        return [memory for memory in taken if memory is not None]


class _Loan:
    """The memory of a user until `end`, which may come from another thread while `take` still opens it."""

    def __init__(self, pool: Pool, name: str) -> None:
        self._pool, self._name = pool, name
        self._guard = threading.Lock()
        self._lent: _Lent | None = None
        self._is_over = False

    def take(self) -> Kept:
        lent = self._pool.take(self._name)
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
