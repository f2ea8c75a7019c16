"""What is refused before any verb runs, each clearly, and nothing about the content in any answer or log."""

import contextlib
import http.client
import json
import socket
import time
from collections.abc import Iterator

import pytest

from kept.entrypoints.http.guard import MOST_FAILURES
from kept.entrypoints.http.server import LOCAL_HEAD_BYTES
from tests.http.conftest import KEY, Answer, Server, serving

HERE = "/api/v1/projects/here"
NEW = json.dumps({"content": "Planted by a foreign page."}).encode()


def raw(server: Server, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.putrequest(method, path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    response = connection.getresponse()
    answer = Answer(response.status, dict(response.getheaders()), response.read())
    connection.close()
    return answer


BEARER = {"Authorization": f"Bearer {KEY}"}
JSON = {"Content-Type": "application/json"}


def test_a_name_that_points_here_is_not_enough(server: Server) -> None:
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1", "", f"localhost.evil:{server.port}"):
        assert raw(server, "GET", f"{HERE}/memories", {"Host": host, **BEARER}).status == 421
    assert raw(server, "GET", f"{HERE}/memories", {"Host": f"localhost:{server.port}", **BEARER}).status == 200


def test_a_page_of_another_site_gets_nothing_even_with_the_key(server: Server) -> None:
    for origin in ("https://evil.example", "null", f"http://127.0.0.1:{server.port + 1}", "http://127.0.0.1"):
        for method, body in (("GET", b""), ("POST", NEW)):
            answer = raw(server, method, f"{HERE}/memories", {"Origin": origin, **BEARER, **JSON}, body)
            assert answer.status == 403
    own = {"Origin": f"http://127.0.0.1:{server.port}"}
    assert raw(server, "GET", f"{HERE}/memories", {**own, **BEARER}).status == 200


def test_a_form_that_rides_on_the_cookie_changes_nothing(server: Server) -> None:
    cookie = {"Cookie": server.sign_in()}
    assert raw(server, "GET", f"{HERE}/memories", cookie).status == 200
    assert raw(server, "POST", f"{HERE}/memories", {**cookie, **JSON}, NEW).status == 403
    foreign = {**cookie, **JSON, "Origin": "https://evil.example"}
    assert raw(server, "POST", f"{HERE}/memories", foreign, NEW).status == 403
    assert "Planted" not in json.dumps(server.get("/memories"))


def test_without_a_key_nothing_is_said(server: Server) -> None:
    for path in ("/", f"{HERE}/memories", "/api/v1/openapi.json", "/api/v1/projects", "/metrics", "/nowhere"):
        answer = server.ask("GET", path, key=None)
        assert answer.status == 401
        assert answer.json["detail"] == "This needs a key."
    assert server.ask("GET", f"{HERE}/memories", key="wrong").status == 401


def test_every_answer_forbids_what_the_page_does_not_need(server: Server) -> None:
    for answer in (server.ask("GET", f"{HERE}/memories"), server.ask("GET", "/nowhere", key=None)):
        headers = {name.lower(): value for name, value in answer.headers.items()}
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers


def test_too_much_is_refused_before_it_is_read(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.putrequest("POST", f"{HERE}/memories")
    for name, value in {**BEARER, **JSON, "Content-Length": str(10_000_000)}.items():
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()
    big = json.dumps({"content": "x" * 1_500_000}).encode()
    assert raw(server, "POST", f"{HERE}/memories", {**BEARER, **JSON}, big).status == 422


def test_a_body_without_a_length_is_cut_off(server: Server) -> None:
    with opened(server, "Transfer-Encoding: chunked") as line:
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        with contextlib.suppress(ConnectionError):
            for _ in range(60):
                line.sendall(chunk)
        assert line.recv(100).startswith(b"HTTP/1.1 413 ")
    assert server.ask("GET", f"{HERE}/status").status == 200


def opened(server: Server, *headers: str) -> socket.socket:
    """A connection on which a POST has begun."""
    line = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    head = (f"POST {HERE}/memories HTTP/1.1", f"Host: 127.0.0.1:{server.port}", f"Authorization: Bearer {KEY}")
    line.sendall("\r\n".join((*head, "Content-Type: application/json", *headers, "", "")).encode())
    return line


def rest_of(line: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    return b"".join(iter(lambda: line.recv(100_000), b""))


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that waits for a quarter of a second where others wait longer."""
    before = "from kept.entrypoints.http import guard, heads\nguard.BODY_WAIT_S = heads.HEAD_WAIT_S = 0.25\n"
    with serving(tmp_path_factory.mktemp("slow"), before) as started:
        yield started


def test_a_body_that_does_not_arrive_is_not_waited_for(impatient: Server) -> None:
    with opened(impatient, "Content-Length: 100") as line:
        line.sendall(b"{")
        answer = rest_of(line)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"did not arrive within" in answer


def test_an_address_without_end_is_refused_in_the_same_form_as_all(impatient: Server) -> None:
    with socket.create_connection(("127.0.0.1", impatient.port), timeout=30) as line:
        line.sendall(b"GET /?q=" + b"x" * LOCAL_HEAD_BYTES)
        answer = rest_of(line)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in answer
    assert json.loads(answer.rpartition(b"\r\n\r\n")[2])["status"] == 400


def test_a_head_that_does_not_end_is_not_waited_for(impatient: Server) -> None:
    for began in (b"", b"GET / HT", f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{impatient.port}\r\nX: y".encode()):
        with socket.create_connection(("127.0.0.1", impatient.port), timeout=30) as line:
            line.sendall(began)
            assert line.recv(100).startswith(b"HTTP/1.1 408 ")
            assert line.recv(100) == b""


def test_nor_is_the_second_head_of_a_connection(impatient: Server) -> None:
    with socket.create_connection(("127.0.0.1", impatient.port), timeout=30) as line:
        line.sendall(f"GET /static/kept.svg HTTP/1.1\r\nHost: 127.0.0.1:{impatient.port}\r\n\r\n".encode())
        assert line.recv(100_000).startswith(b"HTTP/1.1 200 ")
        line.sendall(b"GET / HT")
        assert b"HTTP/1.1 408 " in rest_of(line)


def test_a_slow_client_stops_nobody(server: Server) -> None:
    lines = [socket.create_connection(("127.0.0.1", server.port), timeout=30) for _ in range(20)]
    head = f"POST {HERE}/memories HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {KEY}\r\n"
    for line in lines:
        line.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
    began = time.monotonic()
    assert server.ask("GET", f"{HERE}/status").status == 200
    assert time.monotonic() - began < 5
    for line in lines:
        line.close()


@pytest.mark.parametrize(
    "path",
    [
        "/static/../../etc/passwd",
        "/static/..%2f..%2fetc/passwd",
        "/static/%2e%2e/server.py",
        "/api/v1/projects/..%2f..%2fother/memories",
        "/api/v1/projects/%00/memories",
        "/api/v1/projects/here/sessions/..%2f..%2fx/messages",
        "/api/v1/projects/here/memories/%0d%0aX:%20y",
    ],
)
def test_tricks_with_paths_lead_nowhere(server: Server, path: str) -> None:
    answer = raw(server, "GET", path, BEARER)
    assert answer.status in (400, 404, 422)
    assert b"root:" not in answer.body


def test_guessing_keys_ends_after_twenty(server: Server) -> None:
    for _ in range(MOST_FAILURES):
        server.ask("GET", "/api/v1/projects", key="guess")
    assert server.ask("GET", "/api/v1/projects", key="guess").status == 429
    assert server.ask("GET", "/api/v1/projects").status == 200, "who has the key is not locked out by who has not"
