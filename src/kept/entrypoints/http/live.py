"""What happens while somebody looks: the journal and the signals of a project as server-sent events.

Agents write from processes of their own, so the journal is asked for news every second; signals (B18) come from the
verbs of this server. Rules: an event names what changed and never quotes it, so a client that may read the memory asks
for it; and a stream ends when its key does, and when the server does.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from kept.entrypoints.http.doors import Asking, Opened
from kept.entrypoints.http.keys import Key
from kept.entrypoints.http.problems import MEDIA_TYPE, problem
from kept.memory import Kept
from kept.model import Event, Signal

router = APIRouter(prefix="/projects/{project}")
EVERY_S = 1.0
KEEP_ALIVE_S = 15.0
RETRY_MS = 1_000  # browsers wait three seconds by themselves
MOST_WAITING = 1_000
MOST_AT_ONCE = 200
MOST_STREAMS = 100  # of one key: each holds a connection, and there are a thousand of these


@router.get("/events", responses={200: {"description": "Server-sent events.", "content": {"text/event-stream": {}}}})
async def events(request: Request, memory: Opened, key: Asking) -> Response:
    """Follow what changes: each event of the journal, and each signal. `Last-Event-ID` goes on where one was."""
    following: Counter[str] = request.app.state.following
    if following[key.name] >= MOST_STREAMS:
        detail = f"This key follows {MOST_STREAMS} streams already."
        return JSONResponse(problem(429, detail, hint="Close some of them."), status_code=429, media_type=MEDIA_TYPE)
    last = request.headers.get("last-event-id", "")
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 16 else None
    return StreamingResponse(_stream(request, memory, key, after), media_type="text/event-stream")


async def _stream(request: Request, memory: Kept, key: Key, after: int | None) -> AsyncIterator[str]:
    is_current: Callable[[], bool] = request.state.is_current
    is_ending: Callable[[], bool] = request.app.state.is_ending
    following: Counter[str] = request.app.state.following
    loop, waiting = asyncio.get_running_loop(), asyncio.Queue[Signal](MOST_WAITING)

    def hear(signal: Signal) -> None:
        if not waiting.full():
            waiting.put_nowait(signal)

    def tell(signal: Signal) -> None:
        loop.call_soon_threadsafe(hear, signal)

    end, look = memory.subscribe(tell), memory.look()
    following[key.name] += 1
    try:
        last = await asyncio.to_thread(look.last_event) if after is None else after
        receipt = await asyncio.to_thread(look.last_receipt)
        yield f": following\nretry: {RETRY_MS}\n\n"
        silent = 0.0
        while is_current() and not is_ending() and not await request.is_disconnected():
            news = await asyncio.to_thread(look.events, after=last, limit=MOST_AT_ONCE)
            for event in news:
                last = event.seq
                yield _written(event.action, _about(event), number=event.seq)
            if (newest := await asyncio.to_thread(look.last_receipt)) != receipt:
                receipt = newest
                yield _written("given", {"number": receipt})
            while not waiting.empty():
                signal = waiting.get_nowait()
                yield _written(signal.name, signal.payload)
            silent = 0.0 if news else silent + EVERY_S
            if silent >= KEEP_ALIVE_S:
                silent = 0.0
                yield ": still here\n\n"
            await asyncio.sleep(EVERY_S)
    finally:
        following[key.name] -= 1
        end()


def _about(event: Event) -> dict[str, Any]:
    return {"seq": event.seq, "at": event.at.isoformat(), "actor": event.actor, "action": event.action} | {
        "subject": event.subject
    }


def _written(name: str, payload: dict[str, Any], number: int | None = None) -> str:
    identity = "" if number is None else f"id: {number}\n"
    return f"{identity}event: {name.replace(chr(10), ' ')}\ndata: {json.dumps(payload)}\n\n"
