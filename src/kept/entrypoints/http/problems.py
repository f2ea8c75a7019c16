"""Errors as problem documents (RFC 9457): the library's own sentence and hint, and a status."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any

import msgspec

from kept.errors import Busy, InvalidInput, KeptError, NotAllowed, NotFound, SettingsError

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
MEDIA_TYPE = "application/problem+json"
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
    """The status for an error of the library; 500 when the store itself failed."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


async def answer_problem(
    send: Send, status: int, detail: str, *, hint: str = "", headers: Mapping[bytes, bytes] | None = None
) -> None:
    """Answer with a problem document, below any framework."""
    body = msgspec.json.encode(problem(status, detail, hint=hint))
    about = {b"content-type": MEDIA_TYPE.encode(), b"content-length": str(len(body)).encode(), **(headers or {})}
    await send({"type": "http.response.start", "status": status, "headers": list(about.items())})
    await send({"type": "http.response.body", "body": body})
