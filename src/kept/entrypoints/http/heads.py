"""Connections on which a request never begins in earnest: without a limit, a thousand of them would lock everybody out.

uvicorn waits for the head of a request as long as it takes. Rule: between two requests, and before the first one, a
connection has HEAD_WAIT_S for a whole head; then it is answered 408 and closed.
"""

import asyncio
from typing import Any

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from kept.entrypoints.http.problems import MEDIA_TYPE, problem

HEAD_WAIT_S = 20.0  # more than `timeout_keep_alive`, after which a silent connection is closed anyway
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class TimedProtocol(H11Protocol):
    """HTTP/1.1, where the head of a request has to arrive in time."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take what arrived. As soon as a request is whole enough to be answered, nobody waits for a head."""
        super().data_received(data)
        if self._is_between_requests():
            self._wait()
        else:
            self._stop()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, such as an address of more than 64 KB, with a problem document like any other."""
        body = msgspec.json.encode(problem(400, msg))
        headers = [("content-type", MEDIA_TYPE), ("content-length", str(len(body))), ("connection", "close")]
        for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def on_response_complete(self) -> None:
        """Begin to wait for the next head; a part of it may be here already."""
        super().on_response_complete()
        if self._is_between_requests():
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there any more."""
        self._stop()
        super().connection_lost(exc)

    def _is_between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(HEAD_WAIT_S, self._give_up)

    def _stop(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if self._is_between_requests() and not self.transport.is_closing():
            self.transport.write(TOO_SLOW)
            self.transport.close()
