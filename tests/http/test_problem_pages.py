"""A person sees a page where something went wrong; a program gets a problem document."""

from collections.abc import Iterator
from functools import cache

import pytest

from kept.entrypoints.http.guard import MOST_FAILURES
from kept.entrypoints.http.problems import MEDIA_TYPE, is_for_people
from tests.http.conftest import Answer, Server, serving

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
HOME = '<a class="btn primary" href="/">'
BROKEN = """
from kept.entrypoints.web import health
health._verdict = lambda *about: 1 / 0
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("problems"), BROKEN) as started:
        yield started


def look(server: Server, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Answer:
    return server.ask(method, path, body, key=None, headers=BROWSER | {"Cookie": cookie(server)} | headers)


@cache
def cookie(server: Server) -> str:
    return server.sign_in()


def media_type(answer: Answer) -> str:
    return {name.lower(): value for name, value in answer.headers.items()}["content-type"]


def shown(answer: Answer) -> str:
    """The page of an answer, which is in the look of the site and has the headers of every page."""
    assert media_type(answer) == "text/html; charset=utf-8"
    names = {name.lower(): value for name, value in answer.headers.items()}
    assert int(names["content-length"]) == len(answer.body)
    assert "script-src 'self'" in names["content-security-policy"]
    html = answer.body.decode()
    assert '<link rel="stylesheet" href="/static/kept.css">' in html
    return html


@pytest.mark.parametrize("path", ["/nowhere", "/p/web-app/nowhere", "/p/no-such-project/saw", "/static/nothing.js"])
def test_an_unknown_address_is_a_page_with_a_way_back(server: Server, path: str) -> None:
    answer = look(server, path)
    assert answer.status == 404
    html = shown(answer)
    assert "Nothing is here" in html
    assert HOME in html
    name = "no-such-project" if "project" in path else path
    assert name in html


def test_what_stands_in_an_unknown_address_is_shown_as_text(server: Server) -> None:
    html = shown(look(server, "/%3Cscript%3Ealert(1)%3C/script%3E%E2%80%AE"))
    assert "&lt;script&gt;" in html
    assert "<script" not in html
    assert "\u202e" not in html


def test_a_failure_is_a_page_that_offers_another_try_and_quotes_nothing(server: Server) -> None:
    answer = look(server, "/p/web-app/health?doctor=1")
    assert answer.status == 500
    html = shown(answer)
    assert '<a class="btn primary" href="/p/web-app/health?doctor=1">Try again</a>' in html
    assert 'href="/">Go to the start page' in html
    assert "ZeroDivisionError" not in html
    away = shown(look(server, "//evil.example/p"))
    assert "//evil.example" not in away.replace("at //evil.example", "")


def test_a_value_that_does_not_fit_leads_to_the_view_without_it(server: Server) -> None:
    answer = look(server, "/p/web-app/memories?trust=nobody")
    assert answer.status == 422
    html = shown(answer)
    assert '<a class="btn primary" href="/p/web-app/memories">Show the view without filters</a>' in html
    assert "query.trust" in html
    assert "openapi" not in html


def test_a_refused_request_is_a_page_that_says_why(server: Server) -> None:
    foreign = look(server, "/p/web-app/do", "POST", b"verb=undo", Origin="https://evil.example")
    assert foreign.status == 403
    assert "A page of another site may not use this server." in shown(foreign)
    assert HOME in shown(foreign)
    without = look(server, "/p/web-app/saw", Cookie="")
    assert without.status == 401
    html = shown(without)
    assert "printed the key in the terminal" in html
    assert "401" not in html
    assert "aria-invalid" not in html
    assert 'action="/sign-in"' in html
    assert "Go to the start page" not in html  # every page of this server would say the same


@pytest.mark.parametrize("path", ["/api/v1/nowhere", "/api/v1/projects/nobody/memories", "/metrics/no"])
def test_an_address_for_programs_answers_a_problem_document_also_in_a_browser(server: Server, path: str) -> None:
    answer = look(server, path)
    assert 400 <= answer.status < 500
    assert media_type(answer) == MEDIA_TYPE


def test_tools_are_for_programs() -> None:
    assert not is_for_people("/mcp", "text/html")
    assert not is_for_people("/mcp/x", "text/html")
    assert is_for_people("/mcpx", "text/html")


def test_a_program_gets_problem_documents_everywhere(server: Server) -> None:
    for path, status in {"/nowhere": 404, "/p/web-app/health": 500, "/p/web-app/memories?trust=nobody": 422}.items():
        for accept in ("*/*", "application/json"):
            answer = server.ask("GET", path, headers={"Accept": accept})
            assert (answer.status, media_type(answer)) == (status, MEDIA_TYPE)
            assert answer.json["status"] == status


def test_somebody_who_guesses_keys_sees_a_page_that_says_wait(server: Server) -> None:
    for _ in range(MOST_FAILURES):
        look(server, "/", Authorization="Bearer wrong")
    answer = look(server, "/", Authorization="Bearer wrong")
    assert answer.status == 429
    assert "Wait a minute." in shown(answer)
