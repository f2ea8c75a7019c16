"""Repair requests that contain half of a surrogate pair, before the SDK sees them.

JSON can spell such a half (`"\\ud800"`), and a program sends it when it cuts a text in the middle of an emoji. The SDK
does not parse such a line, so the client would wait for an answer for ever. Rule: every request gets an answer.
"""

import json
from types import TracebackType
from typing import Any, Self

from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError


class MendedStream:
    """The stream of incoming messages, in which a lone surrogate is replaced by `?`."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    @property
    def last_context(self) -> Any:
        """The context in which the last message was sent, for the SDK."""
        return self._inner.last_context

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message. Raises EndOfStream."""
        return mended(await self._inner.receive())

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return mended(await self._inner.__anext__())

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        result: bool | None = await self._inner.__aexit__(kind, error, trace)
        return result


def mended(item: SessionMessage | Exception) -> SessionMessage | Exception:
    """Return the message of a line that the SDK could not parse, if replacing lone surrogates makes it one."""
    line = item.errors()[0].get("input") if isinstance(item, ValidationError) else None
    if not isinstance(line, str):
        return item
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(_whole_json(line), by_name=False))
    except (ValueError, RecursionError):  # no JSON, or no message: the SDK says so
        return item


def _whole_json(document: str) -> str:
    """Return the JSON document with `?` for each half of a surrogate pair. Raises ValueError if it is not JSON."""
    return json.dumps(json.loads(document), ensure_ascii=False).encode("utf-8", "replace").decode()
