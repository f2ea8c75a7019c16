"""Connections on which no request begins lock nobody out, measured with real sockets."""

import contextlib
import resource
import socket
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kept.entrypoints.http import heads
from kept.entrypoints.http.heads import WaitingRoom
from tests.http.conftest import KEY, Server, serving
from tests.http.test_renames import follow

SILENT = 1_100  # more than the connections that the server holds at once
HERE = "/api/v1/projects/here"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server as `kept serve --shared` runs it, except that it listens on loopback only."""
    with serving(tmp_path_factory.mktemp("shared"), names=["kept.example.com"]) as started:
        yield started


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process open enough connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * SILENT:
        pytest.skip("the system lets a process open too few files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * SILENT), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


BEGUN = {
    "nothing": b"",
    "half a head": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
    "a form without its end": b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nOrigin: http://127.0.0.1:%d\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\nkey=",
}


@pytest.mark.parametrize("source", ["127.0.0.1", "127.0.0.2"])
@pytest.mark.parametrize("begun", BEGUN)
@pytest.mark.usefixtures("many_files")
def test_silent_connections_lock_nobody_out(shared: Server, begun: str, source: str) -> None:
    """1,100 connections that never send a whole request, from the address of the owner or from another."""
    sent = BEGUN[begun].replace(b"%d", str(shared.port).encode())
    lines: list[socket.socket] = []
    try:
        for _ in range(SILENT):
            line = socket.socket()
            line.settimeout(10)
            line.bind((source, 0))
            line.connect(("127.0.0.1", shared.port))
            with contextlib.suppress(ConnectionError):  # an older one may be closed already
                line.sendall(sent)
            lines.append(line)
        taken = []
        for _ in range(10):
            began = time.monotonic()
            assert shared.ask("GET", f"{HERE}/status").status == 200
            taken.append(time.monotonic() - began)
        assert statistics.median(taken) < 5
        follower = socket.create_connection(("127.0.0.1", shared.port), timeout=10)
        head = f"GET {HERE}/events HTTP/1.1\r\nHost: 127.0.0.1:{shared.port}\r\nAuthorization: Bearer {KEY}\r\n\r\n"
        follower.sendall(head.encode())
        assert follower.recv(100).startswith(b"HTTP/1.1 200 "), "a new browser can follow"
        follower.close()
    finally:
        for line in lines:
            line.close()


def test_answers_that_are_not_read_lock_nobody_out(tmp_path: Path) -> None:
    before = "from kept.entrypoints.http import heads\nheads.MOST_OF_A_CLIENT = 5\n"
    with serving(tmp_path, before) as server, contextlib.ExitStack() as stack:
        lines = []
        for _ in range(12):
            line = stack.enter_context(socket.socket())
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            line.settimeout(10)
            line.connect(("127.0.0.1", server.port))
            line.sendall(f"GET /static/kept.css HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode() * 100)
            lines.append(line)
        assert server.ask("GET", f"{HERE}/status").status == 200
        assert sum(map(is_cut, lines)) >= 7, "the oldest of them are closed"


def is_cut(line: socket.socket) -> bool:
    """Whether the server closed the connection before all answers were sent; reads for a second at most."""
    until, line_end = time.monotonic() + 1, False
    line.settimeout(0.5)
    with contextlib.suppress(TimeoutError):
        try:
            while not line_end and time.monotonic() < until:
                line_end = not line.recv(4_096)
        except ConnectionError:
            line_end = True
    return line_end


def test_one_key_follows_only_so_many_streams(tmp_path: Path) -> None:
    with serving(tmp_path, "from kept.entrypoints.http import live\nlive.MOST_STREAMS = 2\n") as server:
        about = f"Authorization: Bearer {KEY}"
        followed = [follow(server, "here", about) for _ in range(2)]
        assert server.ask("GET", f"{HERE}/events").status == 429
        assert server.ask("GET", f"{HERE}/status").status == 200
        followed[0].close()
        until = time.monotonic() + 10
        while time.monotonic() < until:
            with contextlib.suppress(AssertionError):
                followed.append(follow(server, "here", about))
                break
            time.sleep(0.1)
        assert len(followed) == 3
        for line in followed:
            line.close()


class Line:
    """A connection that waits."""

    def __init__(self, room: WaitingRoom, *, is_new: bool = True) -> None:
        self.room, self.is_new, self.is_closed = room, is_new, False

    def close_waiting(self) -> None:
        self.room.leave(self)  # type: ignore[arg-type]
        self.is_closed = True


def test_one_client_takes_no_room_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "MOST_OF_A_CLIENT", 3)
    monkeypatch.setattr(heads, "MOST_WAITING", 10)
    room = WaitingRoom(("10.0.0.0/24",))

    def come(address: str, number: int = 1) -> list[Line]:
        lines = [Line(room) for _ in range(number)]
        for line in lines:
            room.enter(line, address)  # type: ignore[arg-type]
        return lines

    person = come("198.51.100.1")
    crowd = come("203.0.113.9", 5)
    assert [line.is_closed for line in crowd] == [True, True, False, False, False]
    by_prefix = [*come("2001:db8::1", 2), *come("2001:db8::ffff", 2)]
    assert [line.is_closed for line in by_prefix] == [True, False, False, False], "a /64 is one client"
    proxy = come("10.0.0.7", 3)
    assert not any(line.is_closed for line in (*proxy, *person)), "a proxy speaks for many"
    come("192.0.2.1")
    assert person[0].is_closed, "among all, the one that waited longest goes"
    assert not any(line.is_closed for line in proxy)
    answered = Line(room, is_new=False)
    room.enter(answered, "198.51.100.2")  # type: ignore[arg-type]
    assert answered.is_closed, "but first one that had its answer"
