"""Verbs for `async` programs: `await memory.arecall(…)` is `memory.recall(…)` in a worker thread.

The core is synchronous; `awaited(method)` makes the twin of a method, with the same arguments, answer and errors.
Rule: work that has begun is finished, also when its caller is cancelled; work that still waits for a thread is dropped.
"""

import sys
import threading
import time
from _contextvars import copy_context  # as contextvars does, which is one module more
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial, update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar

S = TypeVar("S")
P = ParamSpec("P")
T = TypeVar("T")
LEASE_RETRY_S = 0.02  # a model answers in seconds, one try takes a fraction of a millisecond


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of `work`, which runs in a thread and to its end, also when the caller is cancelled."""
    asyncio = sys.modules["asyncio"]  # a loop is running, so it is loaded; importing it above would slow every hook
    call = partial(copy_context().run, work, *args, **kwargs)
    future = asyncio.get_running_loop().run_in_executor(None, call)
    try:
        result: T = await asyncio.shield(future)
    except asyncio.CancelledError:
        future.cancel()  # stops only work that no thread has begun
        raise
    return result


def awaited(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Return the twin of a method for `async` programs, with the signature of the method for help() and editors."""

    async def twin(holder: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await in_thread(method, holder, *args, **kwargs)

    update_wrapper(twin, method)
    twin.__name__ = f"a{method.__name__}"
    twin.__qualname__ = ".".join((*method.__qualname__.split(".")[:-1], twin.__name__))
    twin.__doc__ = f"As `{method.__name__}`, in a worker thread: `await` it."
    return twin


async def to_its_end(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `in_thread`, but a caller that is cancelled waits for the end of the work.

    For a write under a lease: if that were given back earlier, its next holder could write before it.
    """
    asyncio = sys.modules["asyncio"]
    running = asyncio.ensure_future(in_thread(work, *args, **kwargs))
    try:
        result: T = await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
    return result


@asynccontextmanager
async def leased(lease: Callable[[], AbstractContextManager[bool]], wait_s: float) -> AsyncIterator[bool]:
    """Hold a lease in the block. Yields False, and holds nothing, if another keeps it that long.

    A worker thread makes each try, and none is taken in between: the holder needs the threads to end its work.
    """
    asyncio = sys.modules["asyncio"]
    deadline = time.monotonic() + wait_s
    while True:
        attempt = _Attempt(lease())
        try:
            is_ours = await in_thread(attempt.enter)
            if is_ours or time.monotonic() >= deadline:
                yield is_ours
                return
        finally:
            attempt.leave()
        await asyncio.sleep(LEASE_RETRY_S)


class _Attempt:
    """One try to take a lease, which a thread may still make when its caller was cancelled. Then it gives it back."""

    def __init__(self, lease: AbstractContextManager[bool]) -> None:
        self._lease = lease
        self._guard = threading.Lock()
        self._is_in = self._is_over = False

    def enter(self) -> bool:
        is_ours = self._lease.__enter__()
        with self._guard:
            self._is_in = not self._is_over
            is_in = self._is_in
        if not is_in:
            self._lease.__exit__(None, None, None)
        return is_ours and is_in

    def leave(self) -> None:
        """Give the lease back, in the thread that calls: a task that is cancelled again could not wait for another."""
        with self._guard:
            is_in, self._is_in, self._is_over = self._is_in, False, True
        if is_in:
            self._lease.__exit__(None, None, None)
