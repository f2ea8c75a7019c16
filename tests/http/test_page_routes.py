"""The attack list on every route of the page. The routes come from the router, so a new one is tested as well."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.routing import APIRoute

import kept
from kept.entrypoints.http.keys import Keys
from kept.entrypoints.web.pages import router
from tests.http.conftest import Answer, Server, serving
from tests.http.test_guard import BEARER, raw
from tests.http.test_stored_text import Seen

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
SAID = "Your memory was erased by an attacker"
# One valid value for each field of each form: a request that is refused for a missing field would prove nothing.
FIELDS = "verb=remember&content=Planted&ref=1&code=x&decision-1=keep&text=Planted"


def routes_of(routes: Any) -> Iterator[APIRoute]:
    """Yield the routes of a router, also of those that it includes."""
    for one in routes:
        if isinstance(one, APIRoute):
            yield one
        else:
            yield from routes_of(one.original_router.routes)


ROUTES = {(route.path, method) for route in routes_of(router.routes) for method in route.methods}
READS = sorted(path for path, method in ROUTES if method == "GET")
CHANGES = sorted(path for path, method in ROUTES if method == "POST")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("routes")) as server:
        yield server


def address(path: str, project: str = "web-app") -> str:
    """Return an address of the route that it accepts from the owner; the preview of an erasure needs a ref."""
    return path.replace("{project}", project) + ("?ref=1" if path.endswith("/erase") else "")


def everything(server: Server) -> list[tuple[str, str]]:
    with kept.open(project=server.project, home=server.home) as memory:
        return [(one.ref, one.content) for one in memory.list(limit=1_000)]


def test_the_list_of_routes_has_every_view_and_every_change() -> None:
    named = {path.rpartition("/")[2] for path in READS}
    assert named >= {"saw", "memories", "inbox", "timeline", "sessions", "knowledge", "health", "erase"}
    assert [path.rpartition("/")[2] for path in CHANGES] == ["do", "judge"]


@pytest.mark.parametrize("path", READS)
def test_a_view_is_shown_to_the_owner_alone_and_under_its_own_name(guarded: Server, path: str) -> None:
    assert raw(guarded, "GET", address(path), BEARER).status in (200, 303), "the address is valid"
    assert raw(guarded, "GET", address(path), {}).status == 401
    assert raw(guarded, "GET", address(path), {"Authorization": "Bearer wrong"}).status == 401
    assert raw(guarded, "GET", address(path), {"Cookie": f"kept_{guarded.port}=forged"}).status == 401
    for host in ("evil.example", f"evil.example:{guarded.port}", "127.0.0.1"):
        assert raw(guarded, "GET", address(path), {"Host": host, **BEARER}).status == 421
    assert raw(guarded, "GET", address(path), {"Origin": "https://evil.example", **BEARER}).status == 403


@pytest.fixture(scope="module")
def token(guarded: Server) -> dict[str, str]:
    """The header of a token that opens another project of the home."""
    other = guarded.project.parent / "other"
    (other / ".git").mkdir(parents=True)
    with kept.open(project=other, home=guarded.home) as memory:
        memory.remember("Something else.")
    return {"Authorization": f"Bearer {Keys(guarded.home).create('anna', role='project', projects=['other'])}"}


@pytest.mark.parametrize("path", [path for path in READS if "{project}" in path])
def test_a_view_of_a_project_that_the_token_does_not_open_does_not_exist(
    guarded: Server, token: dict[str, str], path: str
) -> None:
    assert raw(guarded, "GET", address(path, "other"), token).status == 200
    hidden = raw(guarded, "GET", address(path), token)
    assert (hidden.status, b"Node 22" in hidden.body) == (404, False)


@pytest.mark.parametrize("path", [path for path in READS if "{project}" in path])
@pytest.mark.parametrize("project", ["..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "%00", "a%0d%0aX:%20y", "%3Cscript%3E"])
def test_no_name_of_a_project_leads_out_of_the_home(guarded: Server, path: str, project: str) -> None:
    answer = raw(guarded, "GET", address(path, project), {**BEARER, "Accept": "text/html"})
    assert answer.status in (400, 404, 422)
    assert b"root:" not in answer.body
    assert b"<script>" not in answer.body
    assert "X" not in answer.headers


@pytest.mark.parametrize("path", READS)
def test_no_text_of_an_address_is_a_message_of_the_page(guarded: Server, path: str) -> None:
    evil = quote(f"<img src=x onerror=alert(1)>{SAID}")
    given = "&".join(f"{name}={evil}" for name in ("said", "notice", "message", "error", "undo", "title"))
    answer = raw(guarded, "GET", address(path) + ("&" if "?" in address(path) else "?") + given, BEARER)
    assert answer.status in (200, 303)
    assert SAID.encode() not in answer.body
    assert "onerror" not in Seen(answer.body.decode()).attributes


@pytest.mark.parametrize("path", CHANGES)
def test_no_foreign_form_changes_anything(guarded: Server, path: str) -> None:
    before = everything(guarded)
    own = {"Origin": guarded.address}
    cookie = {"Cookie": guarded.sign_in()}

    def post(headers: dict[str, str], fields: str) -> Answer:
        return raw(guarded, "POST", address(path), {**FORM, **headers}, fields.encode())

    assert post(own, f"{FIELDS}&csrf=x").status == 401, "without a key"
    assert post({**cookie}, f"{FIELDS}&csrf=x").status == 403, "a form without an origin"
    for origin in ("https://evil.example", "null", f"http://127.0.0.1:{guarded.port + 1}"):
        assert post({**cookie, "Origin": origin}, f"{FIELDS}&csrf=x").status == 403
    assert post({**cookie, **own, "Host": "evil.example"}, f"{FIELDS}&csrf=x").status == 421
    for mark in ("", "x", "0" * 64):
        answer = post({**cookie, **own, "Accept": "application/json"}, f"{FIELDS}&csrf={mark}")
        assert answer.status in (403, 422), mark
    assert raw(guarded, "GET", address(path) + f"?{FIELDS}", cookie).status in (404, 405), "a link is not a form"
    assert everything(guarded) == before


@pytest.mark.parametrize("path", CHANGES)
def test_a_change_leads_back_to_a_view_of_this_server_alone(guarded: Server, path: str) -> None:
    cookie = {"Cookie": guarded.sign_in(), "Origin": guarded.address}
    for back in ("https://evil.example", "//evil.example", "javascript:alert(1)", "/p/web-app/saw\r\nX: y"):
        fields = f"{FIELDS}&csrf=x&back={quote(back)}"
        answer = raw(guarded, "POST", address(path), {**FORM, **cookie}, fields.encode())
        assert answer.status in (303, 403, 422)
        assert answer.headers.get("location", "/p/web-app/").startswith("/p/web-app/")
        assert "X" not in answer.headers
