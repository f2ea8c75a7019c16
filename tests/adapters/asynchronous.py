"""What every adapter's asynchronous methods promise, as three checks with any call of theirs."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kept.memory.context import Context
from kept.memory.session_log import SessionLog

Call = Callable[[], Awaitable[Any]]


def slow_down(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Every write takes 0.3 s longer from now on. The event is set when one begins."""
    begun = threading.Event()

    def slowed(write: Callable[..., Any]) -> Callable[..., Any]:
        def slow(*args: Any, **kwargs: Any) -> Any:
            begun.set()
            time.sleep(0.3)
            return write(*args, **kwargs)

        return slow

    monkeypatch.setattr(Context, "write", slowed(Context.write))
    monkeypatch.setattr(SessionLog, "take_in", slowed(SessionLog.take_in))
    return begun


def ticks_during(call: Call) -> int:
    """How often the loop got a turn, at 10 ms each, while the call was under way."""

    async def run() -> int:
        ticks, task = 0, asyncio.ensure_future(call())
        while not task.done():
            await asyncio.sleep(0.01)
            ticks += 1
        await task
        return ticks

    return asyncio.run(run())


def cancel_when(begun: threading.Event, call: Call) -> None:
    """Cancel the call when its write has begun; `asyncio.run` waits for the thread."""

    async def run() -> None:
        task = asyncio.ensure_future(call())
        await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def at_once(calls: list[Call]) -> list[Any]:
    """The results of all calls, made at the same time."""

    async def run() -> list[Any]:
        return await asyncio.gather(*(call() for call in calls))

    return asyncio.run(run())
