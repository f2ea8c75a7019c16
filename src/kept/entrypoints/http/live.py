"""What happens while somebody looks: the journal and the signals of a project as server-sent events.

Agents write from processes of their own, so the journal is asked for news every second; signals (B18) come from the
verbs of this server. Rule: an event names what changed and never quotes it; whoever may read the memory asks for it.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from kept.entrypoints.http.doors import Opened
from kept.memory import Kept
from kept.model import Event, Signal

router = APIRouter(prefix="/projects/{project}")
EVERY_S = 1.0
KEEP_ALIVE_S = 15.0
MOST_WAITING = 1_000
MOST_AT_ONCE = 200


@router.get("/events", responses={200: {"description": "Server-sent events.", "content": {"text/event-stream": {}}}})
async def events(request: Request, memory: Opened) -> StreamingResponse:
    """Follow what changes: each event of the journal, and each signal. `Last-Event-ID` goes on where one was."""
    last = request.headers.get("last-event-id", "")
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 16 else None
    return StreamingResponse(_stream(request, memory, after), media_type="text/event-stream")


async def _stream(request: Request, memory: Kept, after: int | None) -> AsyncIterator[str]:
    loop, waiting = asyncio.get_running_loop(), asyncio.Queue[Signal](MOST_WAITING)

    def hear(signal: Signal) -> None:
        if not waiting.full():
            waiting.put_nowait(signal)

    def tell(signal: Signal) -> None:
        loop.call_soon_threadsafe(hear, signal)

    end = memory.subscribe(tell)
    try:
        last = await asyncio.to_thread(_newest, memory) if after is None else after
        yield ": following\n\n"
        silent = 0.0
        while not await request.is_disconnected():
            news = await asyncio.to_thread(_news, memory, last)
            for event in news:
                last = event.seq
                yield _written(event.action, _about(event), number=event.seq)
            while not waiting.empty():
                signal = waiting.get_nowait()
                yield _written(signal.name, signal.payload)
            silent = 0.0 if news else silent + EVERY_S
            if silent >= KEEP_ALIVE_S:
                silent = 0.0
                yield ": still here\n\n"
            await asyncio.sleep(EVERY_S)
    finally:
        end()


def _newest(memory: Kept) -> int:
    storage = memory.context.spaces.project()
    if storage is None:
        return 0
    with storage.reading() as reader:
        events = reader.events(newest_first=True, limit=1)
    return events[0].seq if events else 0


def _news(memory: Kept, after: int) -> list[Event]:
    storage = memory.context.spaces.project()
    if storage is None:
        return []
    with storage.reading() as reader:
        return reader.events(after=after, limit=MOST_AT_ONCE)


def _about(event: Event) -> dict[str, Any]:
    return {"seq": event.seq, "at": event.at.isoformat(), "actor": event.actor, "action": event.action} | {
        "subject": event.subject
    }


def _written(name: str, payload: dict[str, Any], number: int | None = None) -> str:
    identity = "" if number is None else f"id: {number}\n"
    return f"{identity}event: {name.replace(chr(10), ' ')}\ndata: {json.dumps(payload)}\n\n"
