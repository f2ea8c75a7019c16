"""The page: every view can be read without JavaScript, changes by forms, and shows stored text as text."""

import re
import urllib.parse

import pytest

from kept.entrypoints.http.guard import COOKIE
from kept.entrypoints.web import draw
from kept.memory import deliver
from tests.http.conftest import KEY, Answer, Server

VIEWS = ("saw", "memories", "inbox", "timeline", "sessions", "knowledge", "health")
HOSTILE = "<script>alert(1)</script> <img src=x onerror=alert(2)> {{ 7 * 7 }}"


@pytest.fixture(scope="module")
def filled(server: Server) -> Server:
    with server.memory() as memory:
        memory.remember("Refresh tokens live for 30 days and are rotated on use.", kind="decision", tags=["auth"])
        memory.remember(HOSTILE, kind="fact", tags=["evil"])
        memory.remember("We use Express for the gateway service.", kind="decision")
        memory.remember("We use Fastify for the gateway service.", kind="decision")
        session = memory.session("talk-1", agent="claude")
        session.append("user", "We decided to keep refresh tokens for 30 days, because the app cannot log in again.")
        session.append("assistant", HOSTILE)
        listener = deliver.Listener(session="talk-1", event="UserPromptSubmit")
        assert deliver.for_prompt(memory, "why do refresh tokens expire?", listener)
        session.finish()
        memory.task(description="Rotate the tokens")
    return server


def page(server: Server, path: str) -> str:
    answer = server.ask("GET", path)
    assert answer.status == 200, answer
    return answer.body.decode()


def post(server: Server, fields: dict[str, str], *, origin: bool = True) -> Answer:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": f"{COOKIE}={KEY}"}
    headers |= {"Origin": server.address} if origin else {}
    return server.ask("POST", "/p/web-app/do", urllib.parse.urlencode(fields).encode(), key=None, headers=headers)


def form(html: str, verb: str) -> dict[str, str]:
    """The hidden fields of the first form with that verb."""
    for found in re.findall(r"<form.*?</form>", html, re.DOTALL):
        fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', found))
        if fields.get("verb") == verb:
            return {name: value.replace("&amp;", "&") for name, value in fields.items()}
    raise AssertionError(f"no form for {verb}")


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_drawn_without_scripts_or_styles_of_its_own(filled: Server, view: str) -> None:
    html = page(filled, f"/p/web-app/{view}")
    assert "<script>alert" not in html
    assert "onerror=alert(2)>" not in html or "&lt;img" in html
    assert " style=" not in html
    assert re.findall(r"<script(?! type=\"module\" src=\"/static/kept.js\")", html) == []
    assert "http://" not in html.replace("http://www.w3.org", "")


def test_the_first_address_leads_to_the_project(filled: Server) -> None:
    answer = filled.ask("GET", "/")
    assert answer.status == 303
    assert {k.lower(): v for k, v in answer.headers.items()}["location"] == "/p/web-app/saw"


def test_a_search_shows_hits_with_marked_words_and_their_factors(filled: Server) -> None:
    html = page(filled, "/p/web-app/memories?q=refresh+token")
    assert "<mark>" in html
    assert "Refresh" in html
    assert "Factors of the score" in html
    assert "× " in html


def test_what_an_agent_was_given_is_shown_byte_for_byte_with_reasons(filled: Server) -> None:
    html = page(filled, "/p/web-app/saw")
    assert "why do refresh tokens expire?" in html
    assert "&lt;kept-memory&gt;" in html
    assert "Relevant now" in html
    now = page(filled, "/p/web-app/saw?session=talk-1&replay=1")
    assert "What it would see now" in now


def test_a_conversation_has_its_findings_where_they_were_said(filled: Server) -> None:
    html = page(filled, "/p/web-app/sessions?session=talk-1")
    assert html.index("We decided to keep refresh tokens") < html.index('class="note"')
    assert "talk-1" in page(filled, "/p/web-app/sessions?q=refresh")


def test_a_form_changes_a_memory_says_so_and_offers_the_undo(filled: Server) -> None:
    html = page(filled, "/p/web-app/memories?q=Express+gateway")
    fields = form(html, "reinforce")
    done = post(filled, fields)
    assert done.status == 303
    where = {k.lower(): v for k, v in done.headers.items()}["location"]
    shown = page(filled, where)
    assert f"Reinforce: memory {fields['ref']}." in shown
    assert filled.get(f"/memories/{fields['ref']}")["feedback"] == 3
    assert post(filled, form(shown, "undo")).status == 303
    assert filled.get(f"/memories/{fields['ref']}")["feedback"] == 0


def test_an_edit_of_a_version_that_somebody_changed_is_not_saved(filled: Server) -> None:
    html = page(filled, "/p/web-app/memories?q=refresh+token")
    fields = form(html, "revise") | {"content": "Refresh tokens live for 20 days.", "tags": "auth"}
    with filled.memory() as memory:
        memory.reinforce(fields["ref"])
    late = post(filled, fields)
    assert "failed=1" in {k.lower(): v for k, v in late.headers.items()}["location"]
    assert "30 days" in filled.get(f"/memories/{fields['ref']}")["content"]


def test_a_stolen_or_forged_form_changes_nothing(filled: Server) -> None:
    fields = form(page(filled, "/p/web-app/memories?q=refresh+token"), "forget")
    assert post(filled, fields, origin=False).status == 403
    forged = post(filled, fields | {"csrf": "0" * 64})
    assert "failed=1" in {k.lower(): v for k, v in forged.headers.items()}["location"]
    away = post(filled, fields | {"verb": "reinforce", "back": "https://evil.example/"})
    assert {k.lower(): v for k, v in away.headers.items()}["location"].startswith("/p/web-app/")
    assert filled.get(f"/memories/{fields['ref']}")["status"] != "archived"


def test_a_decision_of_the_inbox_is_carried_out(filled: Server) -> None:
    html = page(filled, "/p/web-app/inbox")
    assert "Keep left" in html
    assert "failed" not in str(post(filled, form(html, "decide")).headers)


def test_a_waterfall_ends_at_the_score_and_stays_on_its_axis() -> None:
    why = {"match": 8.0, "feedback": 3.0, "recency": 0.5, "kind": 1.0}
    axis = draw.axis_of([why, {"match": 1.0}])
    bars, end = draw.waterfall(why, axis)
    assert [bar.kind for bar in bars] == ["match", "up", "down"]
    assert end == axis.x(12.0)
    assert all(0 <= bar.x <= bar.x + bar.width <= 100.01 for bar in bars)
    running = [step.running for step in draw.steps(why, axis)]
    assert running == [8.0, 24.0, 12.0, 12.0]
