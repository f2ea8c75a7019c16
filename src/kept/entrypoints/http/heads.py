"""Connections on which no request begins: without a limit, a thousand of them would lock everybody out.

uvicorn waits for the head of a request, and for a client to read its answer, as long as it takes, and refuses all
requests while too many connections are open. Rules: between two requests, and before the first one, a connection has
HEAD_WAIT_S for a whole head; then it is answered 408 and closed. An answer that is not read ends after READ_WAIT_S. Of
connections that wait for their client, each client may have MOST_OF_A_CLIENT, and all together MOST_WAITING. One more
closes one that had an answer before, or else the one that has waited longest, so that a client that connects and sends
its request at once is answered.
"""

import asyncio
from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from kept.entrypoints.http.problems import MEDIA_TYPE, problem

HEAD_WAIT_S = 20.0  # more than `timeout_keep_alive`, after which a silent connection is closed anyway
READ_WAIT_S = 60.0  # for the next 48 KB of a long answer
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
MOST_OF_A_CLIENT = 256  # more than the connections that one busy program keeps open
MOST_WAITING = 512  # a quarter of the connections that uvicorn serves


class _Queue:
    """Connections in the order in which they are closed: first those that had an answer, each the oldest first."""

    def __init__(self) -> None:
        self._answered: dict[TimedProtocol, None] = {}
        self._new: dict[TimedProtocol, None] = {}

    def __len__(self) -> int:
        return len(self._answered) + len(self._new)

    def add(self, connection: "TimedProtocol") -> None:
        self.remove(connection)
        (self._new if connection.is_new else self._answered)[connection] = None

    def remove(self, connection: "TimedProtocol") -> None:
        self._answered.pop(connection, None)
        self._new.pop(connection, None)

    def first(self) -> "TimedProtocol":
        return next(iter(self._answered or self._new))


class WaitingRoom:
    """The connections that wait for their client. Connections of a proxy count only among all."""

    def __init__(self, proxies: Sequence[str] = ()) -> None:
        self._proxies = [ip_network(proxy) for proxy in proxies]
        self._clients: dict[TimedProtocol, str] = {}
        self._all = _Queue()
        self._by_client: dict[str, _Queue] = {}

    def enter(self, connection: "TimedProtocol", address: str) -> None:
        """Let a connection wait, and close one if there are too many."""
        client = self._client(address)
        self._clients[connection] = client
        mine = self._by_client.setdefault(client, _Queue())
        mine.add(connection)
        self._all.add(connection)
        if client and len(mine) > MOST_OF_A_CLIENT:
            mine.first().close_waiting()
        if len(self._all) > MOST_WAITING:
            self._all.first().close_waiting()

    def leave(self, connection: "TimedProtocol") -> None:
        """Forget a connection that waits no longer."""
        client = self._clients.pop(connection, None)
        if client is not None:
            self._all.remove(connection)
            self._by_client[client].remove(connection)
            if not self._by_client[client]:
                del self._by_client[client]

    def _client(self, address: str) -> str:
        """The name under which connections of one client are counted; "" for a proxy. A person has a /64 of IPv6."""
        try:
            parsed = ip_address(address.partition("%")[0])
        except ValueError:
            return address
        if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
            parsed = parsed.ipv4_mapped
        if any(parsed in network for network in self._proxies):
            return ""
        return str(ip_network(f"{parsed}/64", strict=False)) if isinstance(parsed, IPv6Address) else str(parsed)


def protocol_for(room: WaitingRoom) -> type["TimedProtocol"]:
    """The protocol of one server, whose connections wait in this room."""
    return type("TimedProtocol", (TimedProtocol,), {"room": room})


class TimedProtocol(H11Protocol):
    """HTTP/1.1, where the head of a request has to arrive, and its answer to be read, in time."""

    room: WaitingRoom
    _waiting: asyncio.TimerHandle | None = None  # for a head
    _unread: asyncio.TimerHandle | None = None  # an answer

    @property
    def is_new(self) -> bool:
        """Whether it never had a request."""
        return self.cycle is None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take the bytes that arrived. A request that can be answered ends the wait for its head."""
        super().data_received(data)
        if self._is_between_requests():
            self._wait()
        else:
            self._stop()

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are no request, such as an address without end, with a problem document like any other."""
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

    def pause_writing(self) -> None:
        """Begin to wait for the client to read."""
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(READ_WAIT_S, self.close_waiting)
            self._enter()

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        self._leave()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._forget()
        super().connection_lost(exc)

    def close_waiting(self) -> None:
        """Close at once: time is up, or another connection needs the room."""
        self._forget()
        self.transport.abort()

    def _is_between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(HEAD_WAIT_S, self._give_up)
            self._enter()

    def _stop(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        self._leave()

    def _give_up(self) -> None:
        self._waiting = None
        self._leave()
        if self.transport.is_closing():  # and has been for seconds: the client does not read the end of its answer
            self.transport.abort()
        elif self._is_between_requests():
            self.transport.write(TOO_SLOW)
            self.transport.close()

    def _enter(self) -> None:
        self.room.enter(self, self.client[0] if self.client else "")

    def _leave(self) -> None:
        if self._waiting is None and self._unread is None:
            self.room.leave(self)

    def _forget(self) -> None:
        for timer in (self._waiting, self._unread):
            if timer is not None:
                timer.cancel()
        self._waiting = self._unread = None
        self._leave()
