"""The page in a real Chromium: every view by keyboard, a change and its undo, a live update, nothing that axe finds."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kept.memory import deliver
from tests.http.conftest import KEY, Server, serving

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (apt-get install chromium)")
playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright (pip install playwright)")
AXE = pytest.importorskip("axe_playwright_python", reason="needs axe (pip install axe-playwright-python)")

VIEWS = {"s": "saw", "m": "memories", "i": "inbox", "t": "timeline", "e": "sessions", "k": "knowledge", "h": "health"}
HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script> \u202e bidi \x1b[31m red"
)


@pytest.fixture(scope="module")
def filled(server: Server) -> Server:
    with server.memory() as memory:
        memory.remember("Refresh tokens live for 30 days and are rotated on use.", kind="decision", tags=["auth"])
        memory.remember(HOSTILE)
        memory.remember("We use Express for the gateway service.", kind="decision")
        memory.remember("We use Fastify for the gateway service.", kind="decision")
        session = memory.session("talk-1", agent="claude")
        session.append("user", "We decided to keep refresh tokens for 30 days, because the app cannot log in again.")
        listener = deliver.Listener(session="talk-1", event="UserPromptSubmit")
        assert memory.deliveries.for_prompt("why do refresh tokens expire?", listener)
        session.finish()
        memory.task(description="Rotate the tokens")
    return server


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        opened = started.chromium.launch(executable_path=CHROMIUM, args=sandbox)
        yield opened
        opened.close()


def sign_in(page: Any, server: Server) -> None:
    """Sign in by the form of the page that asks for a key."""
    page.goto(f"{server.address}/sign-in")
    page.get_by_label("Key or token").fill(KEY)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/p/web-app/saw")


@pytest.fixture
def page(browser: Any, filled: Server) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    opened = context.new_page()
    sign_in(opened, filled)
    complaints: list[str] = []
    opened.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    yield opened
    context.close()
    assert complaints == []


def test_the_address_with_a_code_signs_in_and_leaves_no_trace(browser: Any, tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        address = next(line.split()[-1] for line in server.printed if "http://" in line)
        context = browser.new_context()
        context.add_cookies([{"name": "a[b]", "value": "1", "url": server.address}])
        page = context.new_page()
        page.goto(address)
        page.wait_for_url("**/p/web-app/saw")
        (cookie,) = [one for one in context.cookies() if one["name"] == f"kept_{server.port}"]
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
        assert KEY not in str(context.cookies())
        page.reload()
        assert page.url.endswith("/p/web-app/saw")
        assert page.go_back() is None or "code" not in page.url, "the address is in no history"
        stranger = browser.new_context().new_page()
        stranger.goto(address)
        stranger.get_by_text("This address was used already, or is too old.").wait_for()
        script = (Path(AXE.__file__).parent / "axe.min.js").read_text("utf-8")
        stranger.evaluate(f"() => {{ {script} }}")
        found = stranger.evaluate("() => axe.run()")["violations"]
        assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []
        context.close()


def listening(page: Any) -> None:
    """Wait until the module of the page runs: a key that is pressed before is heard by nobody."""
    page.locator(".live:not([hidden])").wait_for()


def test_the_keys_lead_through_every_view(page: Any) -> None:
    for key, view in VIEWS.items():
        listening(page)
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(f"**/p/web-app/{view}")
        page.locator(f"nav [aria-current=page][href$={view}]").wait_for()
    page.keyboard.press("?")
    assert page.locator("dialog#help").is_visible()
    page.keyboard.press("Escape")


def test_a_search_as_you_type_an_edit_and_its_undo(page: Any, filled: Server) -> None:
    page.goto(f"{filled.address}/p/web-app/memories")
    listening(page)
    page.keyboard.press("/")
    page.keyboard.type("refresh tokens rotated")
    page.locator("#browse mark").first.wait_for()
    assert "Refresh tokens live for 30 days" in page.locator(".statement").inner_text()
    page.keyboard.press("Escape")
    page.keyboard.press("e")
    page.locator("textarea[name=content]").fill("Refresh tokens live for 20 days and are rotated on use.")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("is revised.").wait_for()
    listening(page)
    assert "20 days" in page.locator(".statement").inner_text()
    page.keyboard.press("u")
    page.get_by_text("Taken back: ").wait_for()
    assert "30 days" in page.locator(".statement").inner_text()


def test_a_conflict_is_settled_with_one_key(page: Any, filled: Server) -> None:
    page.goto(f"{filled.address}/p/web-app/inbox")
    listening(page)
    page.keyboard.press("j")
    page.keyboard.press("a")
    page.get_by_text("Done: ").wait_for()
    listening(page)
    assert filled.get("/conflicts")["conflicts"] == []
    page.keyboard.press("u")
    page.get_by_text("Taken back: ").wait_for()


def test_what_another_process_stores_appears_by_itself(page: Any, filled: Server) -> None:
    page.goto(f"{filled.address}/p/web-app/memories")
    page.get_by_text("Live", exact=True).first.wait_for()
    with filled.memory() as memory:
        memory.remember("The canary release goes out on Mondays.")
    page.get_by_text("The canary release goes out on Mondays.").first.wait_for(timeout=15_000)


def test_stored_text_is_text(page: Any, filled: Server) -> None:
    for view in VIEWS.values():
        page.goto(f"{filled.address}/p/web-app/{view}")
        assert page.title() != "owned"
        assert page.locator("main script, main [onerror]").count() == 0
    page.goto(f"{filled.address}/p/web-app/memories?q=bidi")
    shown = page.locator(".statement").inner_text()
    assert "<script>document.title='owned'</script>" in shown
    assert "<img src=x" in shown
    # What would turn the text around, or colour a terminal that it is copied to, is kept out or made visible.
    assert "\u202e" not in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("width", "theme"),
    [
        (1440, "dark"),
        (360, "light"),
        pytest.param(1440, "light", marks=pytest.mark.slow),
        pytest.param(360, "dark", marks=pytest.mark.slow),
    ],
)
def test_axe_finds_no_serious_fault_and_nothing_runs_over_the_edge(
    browser: Any, filled: Server, width: int, theme: str, tmp_path: Path
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=theme)
    page = context.new_page()
    sign_in(page, filled)
    script = (Path(AXE.__file__).parent / "axe.min.js").read_text("utf-8")
    for view in VIEWS.values():
        page.goto(f"{filled.address}/p/web-app/{view}{'?q=refresh+token' if view == 'memories' else ''}")
        page.evaluate(f"() => {{ {script} }}")
        found = page.evaluate("() => axe.run()")["violations"]
        grave = [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
        assert grave == [], view
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{view} is wider than the screen"
    context.close()


def test_a_phone_shows_the_project_and_its_switcher_and_no_keys(browser: Any, filled: Server) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 800}, has_touch=True)
    page = context.new_page()
    sign_in(page, filled)
    for view in VIEWS.values():
        page.goto(f"{filled.address}/p/web-app/{view}")
        assert page.locator("kbd:visible").count() == 0, view
        page.locator(".topbar summary").click()
        page.locator(".topbar").get_by_role("link", name="web-app").wait_for()
    context.close()
