"""Verbs for `async` programs: `await memory.arecall(…)` is `memory.recall(…)` in a worker thread.

The core is synchronous; `awaited(method)` makes the twin of a method, with the same arguments, answer and errors.
Rule: work that has begun is finished, also when its caller is cancelled; work that still waits for a thread is dropped.
"""

import sys
from _contextvars import copy_context  # as contextvars does, which is one module more
from collections.abc import Callable, Coroutine
from functools import partial, update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

S = TypeVar("S")
P = ParamSpec("P")
T = TypeVar("T")


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


class Awaited(Generic[S, P, T]):
    """The twin of a method: called on an object, it returns a coroutine."""

    def __init__(self, method: Callable[Concatenate[S, P], T]) -> None:
        self._method = method
        update_wrapper(self, method)  # type: ignore[arg-type]  # for help() and editors
        self.__doc__ = f"As `{method.__name__}`, in a worker thread: `await` it."

    def __get__(self, holder: S, owner: type[S] | None = None) -> Callable[P, Coroutine[Any, Any, T]]:
        return self if holder is None else partial(in_thread, self._method, holder)  # type: ignore[return-value]


def awaited(method: Callable[Concatenate[S, P], T]) -> Awaited[S, P, T]:
    """Return the twin of a method for `async` programs."""
    return Awaited(method)
