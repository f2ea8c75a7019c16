"""Errors as problem documents (RFC 9457): the library's own sentence and hint, and a status.

A person who looks at a page gets the same sentence and hint as a page.
"""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any

import msgspec

from kept.errors import Busy, InvalidInput, KeptError, NotAllowed, NotFound, SettingsError, StorageError

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Draw = Callable[[Mapping[str, Any], str], str]  # a problem document, and the address if it was to be read, as a page
MEDIA_TYPE = "application/problem+json"
NEEDS_KEY, WRONG_KEY = "This needs a key.", "That key opens nothing here."
FOR_PROGRAMS = ("/api", "/mcp", "/metrics")
_STATUS: tuple[tuple[type[KeptError], int], ...] = (
    (NotFound, 404),
    (NotAllowed, 403),
    (InvalidInput, 422),
    (SettingsError, 422),
    (Busy, 503),
)


def problem(status: int, detail: str, *, hint: str = "", **more: Any) -> dict[str, Any]:
    """What happened, as a document."""
    document = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return document | ({"hint": hint} if hint else {}) | more


def status_of(error: KeptError) -> int:
    """The status for an error of the library; 500 when the store itself failed, 503 when its server is away."""
    if isinstance(error, StorageError) and error.is_away:
        return 503
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


async def answer_problem(
    send: Send, status: int, detail: str, *, hint: str = "", headers: Mapping[bytes, bytes] | None = None
) -> None:
    """Answer with a problem document, below any framework."""
    body = msgspec.json.encode(problem(status, detail, hint=hint))
    about = {b"content-type": MEDIA_TYPE.encode(), b"content-length": str(len(body)).encode(), **(headers or {})}
    await send({"type": "http.response.start", "status": status, "headers": list(about.items())})
    await send({"type": "http.response.body", "body": body})


def is_for_people(path: str, accept: str) -> bool:
    """Whether a person will look at the answer: a browser asks, and not for an address that only programs use."""
    is_program = any(path == prefix or path.startswith(prefix + "/") for prefix in FOR_PROGRAMS)
    return "text/html" in accept and not is_program


def problems_as_pages(send: Send, draw: Draw, address: str) -> Send:
    """A `send` that turns a problem document into a page, and lets every other answer pass."""
    head: MutableMapping[str, Any] | None = None
    body = b""

    async def drawn(message: MutableMapping[str, Any]) -> None:
        nonlocal head, body
        if message["type"] == "http.response.start" and (b"content-type", MEDIA_TYPE.encode()) in message["headers"]:
            head = message
        elif head is None:
            await send(message)
        else:
            body += message.get("body", b"")
            if not message.get("more_body", False):
                page = draw(msgspec.json.decode(body), address).encode()
                kept = [(k, v) for k, v in head["headers"] if k not in (b"content-type", b"content-length")]
                about = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", str(len(page)).encode())]
                await send({**head, "headers": [*kept, *about]})
                await send({"type": "http.response.body", "body": page})

    return drawn
