"""A real server on a free port of loopback, with a home of its own."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

import kept
from kept.model import Actor

KEY = "test-key-of-the-person"
SERVE = """
import sys
from kept.entrypoints.http.server import ServeOptions, run
import json
home, project, port, key, more = sys.argv[1:]
more = {name: tuple(value) if isinstance(value, list) else value for name, value in json.loads(more).items()}
run(ServeOptions(home=home, project=project, port=int(port), key=key, **more), say=print, open_browser=None)
"""


class Answer(NamedTuple):
    """The answer to a request."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server(NamedTuple):
    """A running server, and how to ask it."""

    port: int
    home: Path
    project: Path
    printed: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = KEY,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        sent = {"Content-Type": "application/json"} if data is not None else {}
        sent |= {"Authorization": f"Bearer {key}"} if key else {}
        request = urllib.request.Request(self.address + path, data, sent | (headers or {}), method=method)
        opener = urllib.request.build_opener(_NoRedirect)
        try:
            with opener.open(request, timeout=30) as response:
                return Answer(response.status, dict(response.headers), response.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, dict(error.headers), error.read())

    def sign_in(self, key: str = KEY) -> str:
        """The cookie of a browser that signs in with that key."""
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": self.address}
        answer = self.ask("POST", "/sign-in", urlencode({"key": key}).encode(), key=None, headers=headers)
        assert answer.status == 303, answer
        return answer.headers["set-cookie"].partition(";")[0]

    def get(self, path: str, **about: Any) -> Any:
        """The JSON of a GET below the project that is served."""
        answer = self.ask("GET", f"/api/v1/projects/here{path}", **about)
        assert answer.status == 200, answer
        return answer.json

    def memory(self) -> kept.Kept:
        """The project, opened beside the server."""
        return kept.open(project=self.project, home=self.home, actor=Actor(name="claude"))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with nearly nothing in its project, for all tests of a module."""
    with serving(tmp_path_factory.mktemp("http")) as started:
        yield started


def free_port() -> int:
    """A port of loopback on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(folder: Path, before: str = "", port: int | None = None, **more: Any) -> Iterator[Server]:
    """A server of the project `web-app` in that folder, in a separate process.

    `before` is run in it first; `port` is that of an earlier one; `more` are further ServeOptions.
    """
    home, project = folder / "home", folder / "web-app"
    if not project.exists():
        (project / ".git").mkdir(parents=True)
        with kept.open(project=project, home=home) as memory:
            memory.remember("The build runs on Node 22.")
    port = port or free_port()
    command = [sys.executable, "-c", before + SERVE, str(home), str(project), str(port), KEY, json.dumps(more)]
    environ = os.environ | {"KEPT_HOME": str(home), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        printed = []
        while not printed or not printed[-1].startswith("Stop it"):
            printed.append(process.stdout.readline())
            assert printed[-1], "The server has ended."
        started = Server(port, home, project, tuple(printed))
        _wait(started, process)
        yield started
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


def _wait(server: Server, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        assert process.poll() is None, "The server has ended."
        try:
            if server.ask("GET", "/api/v1/projects").status == 200:
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("The server did not start.")
