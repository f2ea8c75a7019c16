"""The example of docs/http.md runs against a real server."""

from tests.http.conftest import KEY, Server
from tests.test_docs import blocks


def test_the_client_of_the_docs_runs(server: Server) -> None:
    (code,) = blocks("docs/http.md", "py")
    exec(compile(code, "docs/http.md", "exec"), {"ADDRESS": server.address, "TOKEN": KEY})
