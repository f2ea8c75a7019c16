"""The page in a real Chromium: every view by keyboard, a change and its undo, a live update, nothing that axe finds."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import kept
from kept.entrypoints.hook.folder import HookFolder
from kept.memory import deliver
from kept.model import Actor
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
        session.append("user", f"We decided to release from https://example.com/{'release' * 12}.")
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


@cache
def visit(server: Server) -> dict[str, str]:
    """The cookie of a visit that is shared by the tests of a server."""
    name, _, value = server.sign_in().partition("=")
    return {"name": name, "value": value, "url": server.address}


def signed_in(browser: Any, server: Server, **more: Any) -> Any:
    """A tab with a context of its own, in a visit that has begun already. A fault in it fails the test."""
    context = browser.new_context(**more)
    context.set_default_timeout(15_000)
    context.add_cookies([visit(server)])
    opened = context.new_page()
    opened.on("pageerror", lambda error: COMPLAINTS.append(str(error)))
    return opened


COMPLAINTS: list[str] = []


@pytest.fixture(autouse=True)
def _without_a_complaint() -> Iterator[None]:
    COMPLAINTS.clear()
    yield
    assert COMPLAINTS == []


@pytest.fixture(scope="module")
def tab(browser: Any, filled: Server) -> Iterator[Any]:
    opened = signed_in(browser, filled, viewport={"width": 1440, "height": 900})
    opened.on("console", lambda said: COMPLAINTS.append(said.text) if said.type == "error" else None)
    yield opened
    opened.context.close()


@pytest.fixture
def page(tab: Any, filled: Server) -> Any:
    """The tab of this module at its first view, as if nothing had been done in it."""
    open_view(tab, filled, "saw")
    tab.evaluate("sessionStorage.clear()")
    return tab


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
    page.locator(".live:not([hidden])").wait_for(state="attached")


def open_view(page: Any, server: Server, path: str) -> None:
    page.goto(f"{server.address}/p/web-app/{path}")
    listening(page)


def state(server: Server) -> dict[str, tuple[Any, ...]]:
    """Everything that a key can change, by ref."""
    with server.memory() as memory:
        every = [*memory.list(limit=1_000), *memory.list(limit=1_000, status="archived")]
        every += memory.list(limit=1_000, status="forgotten")
    return {one.ref: (one.content, one.kind, one.status, one.reason, one.feedback, one.importance) for one in every}


def changed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    return {ref for ref in before.keys() | after.keys() if before.get(ref) != after.get(ref)}


def ring(page: Any) -> str:
    """The ref of the row with the ring, which has to be on the screen."""
    row = page.locator('[data-row][aria-current="true"]')
    assert row.count() == 1
    assert row.evaluate("row => row === document.activeElement"), "focus is selection"
    assert row.evaluate(
        "row => { const at = row.getBoundingClientRect(); return at.top >= 0 && at.bottom <= innerHeight + 1 }"
    ), "the record that a key acts on is on the screen"
    return str(row.get_attribute("data-ref"))


def done(page: Any, text: str = "") -> None:
    """Wait for the line about a change, and for the list that is drawn after it."""
    page.locator("body:not([aria-busy])").wait_for()
    page.locator(".toast:not(.error) p", has_text=text).wait_for()


def at_width(browser: Any, server: Server, width: int, **more: Any) -> Any:
    return signed_in(browser, server, viewport={"width": width, "height": 844 if width < 500 else 800}, **more)


WIDTHS = (1440, 1024, 390)


@pytest.fixture
def many(filled: Server) -> Server:
    """Twelve memories that nothing else in this module changes, the newest ones."""
    with filled.memory() as memory:
        number = len(memory.list(limit=1_000))
        for one in range(12):
            memory.remember(f"The queue number{number + one} keeps its messages for {one + 2} days in region eu-{one}.")
    return filled


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


@pytest.mark.parametrize("width", WIDTHS)
def test_every_key_of_a_memory_acts_on_the_row_with_the_ring(browser: Any, many: Server, width: int) -> None:
    page = at_width(browser, many, width)
    open_view(page, many, "memories")
    field = {"p": 2, "+": 4, "-": 4, "x": 2}
    for key, place in field.items():
        before = state(many)
        page.keyboard.press("j")
        page.keyboard.press("j")
        ref = ring(page)
        page.keyboard.press(key)
        done(page, ref)
        after = state(many)
        assert changed(before, after) == {ref}, key
        assert before[ref][place] != after[ref][place], key
        page.keyboard.press("u")
        done(page, "Undone")
        assert state(many) == before, f"u takes back what {key} did, and nothing else"
    page.keyboard.press("k")
    ref = ring(page)
    page.keyboard.press("e")
    page.locator("textarea[name=content]").fill("The queue was edited by its key.")
    page.get_by_role("button", name="Save").click()
    done(page, "revised")
    assert state(many)[ref][0] == "The queue was edited by its key."
    page.context.close()


def test_confirming_and_several_at_once_change_the_marked_rows_and_one_undo_takes_it_back(
    page: Any, many: Server
) -> None:
    open_view(page, many, "memories")
    chosen = set()
    for _ in range(3):
        page.keyboard.press("j")
        chosen.add(ring(page))
        page.keyboard.press("Space")
    page.keyboard.press("j")
    before = state(many)
    assert page.get_by_text("3 selected").is_visible()
    for key in "ep":
        page.keyboard.press(key)
        page.get_by_text("works on one memory. Esc ends the selection.").wait_for()
        page.keyboard.press("Escape")  # closes the line
        assert state(many) == before
    page.keyboard.press("Escape")
    page.get_by_text("3 selected").wait_for(state="hidden")
    for row in page.locator(".row").all()[1:4]:
        row.locator("[data-mark]").click(force=True)
    page.get_by_text("3 selected").wait_for()
    rows = page.locator(".row.marked")
    assert all("selected" in row.inner_text() for row in rows.all()), "not by colour alone"
    rows.first.locator("[data-mark]").click()
    assert page.get_by_text("2 selected").is_visible()
    page.locator("[data-mark]").nth(1).click()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("x")
    done(page, "3 memories are forgotten")
    assert changed(before, state(many)) == chosen
    page.keyboard.press("u")
    done(page, "Undone: 3 archived memories are back")
    assert state(many) == before
    ref = ring(page)
    verified = many.get(f"/memories/{ref}")["verified_at"]
    page.keyboard.press("c")
    done(page, f"Memory {ref} is confirmed")
    assert many.get(f"/memories/{ref}")["verified_at"] != verified


def test_u_takes_back_one_change_after_the_other_and_the_ring_goes_there(page: Any, many: Server) -> None:
    open_view(page, many, "memories")
    states, refs = [state(many)], []
    for _ in range(3):
        page.keyboard.press("j")
        refs.append(ring(page))
        page.keyboard.press("x")
        done(page, f"Memory {refs[-1]} is forgotten")
        states.append(state(many))
    for ref, before in zip(reversed(refs), reversed(states[:-1]), strict=True):
        page.keyboard.press("u")
        done(page, f"Undone: memory {ref} is back.")
        assert state(many) == before
        assert ring(page) == ref
    assert page.locator(".news").is_hidden(), "nothing new: it was this tab"
    page.get_by_role("button", name="Redo").click()
    done(page, "Done again")
    assert state(many) == states[1]
    page.keyboard.press("u")
    done(page, "Undone")
    assert state(many) == states[0]


def test_an_unsaved_text_refuses_search_and_changes(page: Any, many: Server) -> None:
    open_view(page, many, "memories")
    page.keyboard.press("j")
    ref = ring(page)
    page.keyboard.press("e")
    text = page.locator("textarea[name=content]")
    text.fill("A text that is not saved yet.")
    before = state(many)
    page.keyboard.press("Escape")
    for key in ("x", "+", "j"):
        page.keyboard.press(key)
        page.locator(".toast.error", has_text="Save or cancel your text first").wait_for()
        page.evaluate("document.querySelector('.toasts').replaceChildren()")
        assert ring(page) == ref
    page.keyboard.press("/")
    page.keyboard.type("tokens")
    page.locator(".toast.error", has_text="Save or cancel your text first").wait_for()
    assert state(many) == before
    assert page.locator('[data-row][aria-current="true"]').get_attribute("data-ref") == ref
    page.get_by_role("button", name="Cancel").click()
    page.wait_for_url("**q=tokens*")
    shown = page.locator('[data-row][aria-current="true"]').get_attribute("data-ref")
    page.locator(f'#detail [data-ref="{shown}"]').wait_for()
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    page.locator(f'[data-row][data-ref="{ref}"]').wait_for()
    assert page.locator("[type=search]").first.input_value() == ""
    assert "q=" not in page.url


def test_after_erasing_the_place_is_kept_and_u_reverts_nothing_older(page: Any, many: Server) -> None:
    open_view(page, many, "memories?q=queue")
    page.keyboard.press("j")
    page.keyboard.press("+")
    done(page, "helped")
    page.keyboard.press("j")
    ref = ring(page)
    page.locator("#detail details.more summary").click()
    page.locator("#detail [name=sure]").check()
    page.get_by_role("button", name="Erase for good").click()
    done(page, "is erased")
    assert "q=queue" in page.url
    assert page.locator(f'[data-row][data-ref="{ref}"]').count() == 0
    before = state(many)
    page.keyboard.press("u")
    page.locator(".toast", has_text="nothing to undo here").wait_for()
    assert state(many) == before


def test_a_past_day_is_read_only(browser: Any, deciding: Server) -> None:
    page = at_width(browser, deciding, 1440)
    day = (datetime.now(UTC) - timedelta(days=2)).date()
    open_view(page, deciding, f"memories?as_of={day}")
    page.get_by_text("to be read only").wait_for()
    page.locator("[data-row]").first.focus()
    before = state(deciding)
    for key in ("x", "+", "p", "e"):
        page.keyboard.press(key)
        page.locator(".toast", has_text="Choose today to change something").wait_for()
        page.evaluate("document.querySelector('.toasts').replaceChildren()")
    assert state(deciding) == before
    assert page.locator("#detail button").count() == 0
    page.context.close()


def test_a_refused_save_offers_the_stored_text(browser: Any, many: Server) -> None:
    page = at_width(browser, many, 1440)
    open_view(page, many, "memories")
    page.keyboard.press("j")
    ref = ring(page)
    page.keyboard.press("e")
    page.locator("textarea[name=content]").fill("My words about the queue.")
    with many.memory() as memory:
        memory.revise(ref, "Their words about the queue.")
    page.keyboard.press("Control+Enter")
    page.locator(".toast.error", has_text="changed in the meantime").wait_for()
    page.get_by_role("button", name="Show the stored text").click()
    page.locator("[data-stored]", has_text="Their words about the queue.").wait_for()
    page.get_by_role("button", name="Save mine anyway").click()
    done(page, "revised")
    assert state(many)[ref][0] == "My words about the queue."
    page.context.close()


def test_a_new_memory_waits_in_a_button_and_never_moves_the_selection(page: Any, many: Server) -> None:
    open_view(page, many, "memories")
    page.keyboard.press("j")
    page.keyboard.press("j")
    ref = ring(page)
    with many.memory() as memory:
        fresh = memory.remember("The canary release goes out on Mondays.").ref
    page.get_by_role("button", name="1 new").wait_for(timeout=15_000)
    assert ring(page) == ref
    assert page.get_by_text("The canary release").count() == 0
    before = state(many)
    page.keyboard.press("x")
    done(page, "forgotten")
    assert changed(before, state(many)) == {ref}, "not the one that has just arrived"
    page.keyboard.press("u")
    done(page, "Undone")
    with many.memory() as memory:
        memory.remember("The beta release goes out on Tuesdays.")
    page.get_by_role("button", name="1 new").wait_for(timeout=15_000)
    at = ring(page)
    page.keyboard.press(".")
    page.get_by_text("The beta release goes out on Tuesdays.").first.wait_for()
    assert ring(page) == at
    assert page.locator(f'[data-row][data-ref="{fresh}"]').count() == 1
    with many.memory() as memory:
        memory.reviews.apply([f"keep:{fresh}"])
    page.get_by_role("button", name="1 changed").wait_for(timeout=15_000)


def test_choosing_a_row_replaces_the_detail_alone_and_the_place_survives(page: Any, many: Server) -> None:
    open_view(page, many, "memories?kind=fact")
    page.locator(".rows").first.evaluate("list => { list.dataset.same = 'yes' }")
    asked: list[bool] = []
    page.on("request", lambda one: "/memories" in one.url and asked.append(one.headers.get("x-kept-part") == "detail"))
    for _ in range(9):
        page.keyboard.press("j")
    ref = ring(page)
    page.locator(f'#detail [data-ref="{ref}"]').wait_for()
    assert page.locator(".rows").first.get_attribute("data-same") == "yes", "the list is the same"
    assert all(asked)
    assert asked
    assert f"ref={ref}" in page.url
    assert "kind=fact" in page.url
    scrolled = page.evaluate("scrollY")
    page.reload()
    listening(page)
    assert ring(page) == ref
    assert abs(page.evaluate("scrollY") - scrolled) < 200
    other = page.context.new_page()
    other.goto(page.url)
    other.locator(f'#detail [data-ref="{ref}"]').wait_for()
    assert ring(other) == ref
    other.close()
    page.get_by_role("link", name="Health").first.click()
    page.wait_for_url("**/health")
    page.go_back()
    listening(page)
    assert ring(page) == ref
    assert page.get_by_label("Kind").first.input_value() == "fact"


def test_on_a_phone_a_row_opens_its_detail_and_back_returns_to_the_same_row(browser: Any, many: Server) -> None:
    page = at_width(browser, many, 390)
    open_view(page, many, "memories")
    row = page.locator("[data-row]").nth(7)
    ref = row.get_attribute("data-ref")
    row.click()
    page.locator(f'#detail [data-ref="{ref}"]').wait_for()
    assert not page.locator("[data-row]").first.is_visible()
    before = state(many)
    page.keyboard.press("+")
    done(page)
    assert changed(before, state(many)) == {ref}
    page.go_back()
    page.locator("[data-row]").nth(7).wait_for()
    assert page.locator('[data-row][aria-current="true"]').get_attribute("data-ref") == ref
    assert page.evaluate("scrollY") > 0
    page.context.close()


def test_a_refused_save_keeps_the_text_with_and_without_scripts(browser: Any, many: Server) -> None:
    for is_scripted in (True, False):
        page = signed_in(browser, many, java_script_enabled=is_scripted)
        page.goto(f"{many.address}/p/web-app/memories")
        if is_scripted:
            listening(page)
        page.locator("summary", has_text="Edit").click()
        ref = page.locator("#detail [data-ref]").first.get_attribute("data-ref")
        page.locator("textarea[name=content]").fill("Typed for a long time.")
        with many.memory() as memory:
            memory.reinforce(str(ref))
        page.get_by_role("button", name="Save").click()
        page.locator(".toast.error", has_text="changed in the meantime").wait_for()
        assert page.locator("textarea[name=content]").input_value() == "Typed for a long time."
        assert page.locator("textarea[name=content]").is_visible()
        page.context.close()


def test_a_line_about_a_failure_can_be_closed_and_says_what_is_lost(browser: Any, many: Server) -> None:
    page = at_width(browser, many, 390)
    open_view(page, many, "memories")
    page.context.route("**/do", lambda route: route.abort())
    page.keyboard.press("j")
    ring(page)
    page.keyboard.press("p")
    failed = page.locator(".toast.error")
    assert failed.locator("p").inner_text() == "The server does not answer. Nothing was changed."
    assert page.get_by_text("Offline", exact=True).is_visible()
    page.keyboard.press("Escape")
    failed.wait_for(state="detached")
    page.keyboard.press("p")
    failed.get_by_role("button", name="Close").click()
    failed.wait_for(state="detached")
    page.context.close()


def test_a_restart_of_the_server_keeps_tabs_text_and_the_visit(browser: Any, tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        sign_in(page, server)
        open_view(page, server, "memories")
        page.keyboard.press("e")
        page.locator("textarea[name=content]").fill("The build runs on Node 24.")
    page.locator(".offline:not([hidden])").wait_for(timeout=15_000)
    page.get_by_role("button", name="Save").click()
    page.locator(".toast.error", has_text="your text is still here").wait_for()
    with serving(tmp_path, port=server.port) as again:
        listening(page)
        assert page.locator(".offline").is_hidden()
        assert page.locator("textarea[name=content]").input_value() == "The build runs on Node 24."
        page.get_by_role("button", name="Save").click()
        done(page, "revised")
        assert "Node 24" in again.get("/memories/1")["content"]
        assert (again.home / "visits.json").stat().st_mode & 0o777 == 0o600
        command = [sys.executable, "-m", "kept", "--home", str(again.home), "token"]
        listed = subprocess.run([*command, "list"], capture_output=True, text=True, check=True).stdout
        assert "1 browser signed in as you" in listed
        subprocess.run([*command, "revoke", "user"], capture_output=True, check=True)
        page.reload()
        page.get_by_label("Key or token").fill(KEY)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/p/web-app/memories")  # the view that was asked for
    page.context.close()


def test_search_finds_parts_of_words_and_exact_phrases_and_marks_what_an_agent_gets(page: Any, filled: Server) -> None:
    open_view(page, filled, "memories")
    page.keyboard.press("/")
    page.keyboard.type("otate")
    page.locator("mark", has_text="rotated").first.wait_for()
    assert page.locator("[data-row]").count() == 1, "inside of a word, which no recall finds"
    assert page.get_by_text("an agent gets this").count() == 0
    page.locator("[type=search][name=q]").fill('"30 days and"')
    page.locator("mark", has_text="30 days and").first.wait_for()
    page.locator("[type=search][name=q]").fill('"and 30 days"')
    page.get_by_text("0 memories contain these words").wait_for()
    page.locator("[type=search][name=q]").fill("refresh tokens")
    page.get_by_text("an agent gets this").first.wait_for()
    page.wait_for_url("**q=refresh*")


def test_filters_apply_when_chosen_show_counts_and_sort(page: Any, filled: Server) -> None:
    with filled.memory() as memory:
        best = memory.remember("The best rated thing is a lamp.").ref
        for _ in range(5):  # more than any other here
            memory.reinforce(str(best))
    open_view(page, filled, "memories")
    kinds = page.get_by_label("Kind").first
    number = kinds.locator("option", has_text="decision").inner_text()
    kinds.select_option("decision")
    page.locator(".chip", has_text="kind: decision").wait_for()
    assert page.locator("[data-row]").count() == int(number.rpartition("(")[2].rstrip(")"))
    kinds = page.get_by_label("Kind").first
    kinds.select_option("")
    page.get_by_label("Order").select_option("rated")
    page.wait_for_url("**order=rated*")
    page.locator(f'.rows li:first-child [data-ref="{best}"]').first.wait_for()


OLD = timedelta(days=5)
PROMPTS = ("which cache service do we use: mongo?", "zzyzx quux", "do we use kafka for the kafka cache service?")


@pytest.fixture(scope="module")
def deciding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with contradictions, findings of a conversation, and a session that was given several texts.

    Every test of it takes back what it did.
    """
    folder = tmp_path_factory.mktemp("deciding")
    (folder / "web-app" / ".git").mkdir(parents=True)
    with kept.open(project=folder / "web-app", home=folder / "home", clock=lambda: datetime.now(UTC) - OLD) as memory:
        memory.remember("The first build ran on Node 18.")
    HookFolder(folder / "home").prepare()
    HookFolder(folder / "home").note_failure({"agent": "claude-code", "event": "UserPromptSubmit"}, "the disk is full")
    # Before the server runs: what an agent was given is not noted while another process writes.
    quiet = {"actor": Actor(name="claude"), "settings": {"auto_upkeep": False}}
    with kept.open(project=folder / "web-app", home=folder / "home", **quiet) as memory:
        memory.session("noon")
        for one in ("Mongo", "Redis", "Kafka"):
            for said in ("use", "do not use"):
                text = f"We {said} {one} for the {one.lower()} cache service."
                memory.remember(text, kind="decision", session="noon")
        session = memory.session("monday", agent="claude")
        session.append("user", "Amounts are integers in cents, the ledger refuses floats.")
        session.append("user", "For the file names we should take the customer number, not the name.")
        session.append("user", "Retries are limited to 3 attempts, the carrier bans us otherwise.")
        session.finish()
        listener = deliver.Listener(session="tuesday", event="UserPromptSubmit")
        for prompt in PROMPTS:
            memory.deliveries.for_prompt(prompt, listener)
        (folder / "web-app" / "notes.md").write_text("TODO: rotate the keys\n\nTODO: drop the old table\n")
        memory.files.extract([folder / "web-app" / "notes.md"])
        memory.task("KEYS", description="Rotate the keys")
        memory.task("TABLE", description="Drop the old table")
    with serving(folder) as server:
        yield server


@pytest.mark.parametrize("width", WIDTHS)
def test_every_key_of_the_inbox_decides_about_the_row_with_the_ring(browser: Any, deciding: Server, width: int) -> None:
    page = at_width(browser, deciding, width)
    open_view(page, deciding, "inbox?tab=conflict")
    number = page.locator("[data-row]").count()
    assert number >= 3
    page.keyboard.press("j")
    page.keyboard.press("j")
    for key in ("a", "1", "2", "3"):
        before = state(deciding)
        ref = ring(page)
        decision = page.locator(f'[data-row][data-ref="{ref}"]').get_attribute("data-decision")
        page.keyboard.press(key)
        done(page)
        assert page.locator("[data-row]").count() == number - 1
        after = state(deciding)
        pair = set(re.findall(r"\d+", str(decision)))
        gone = {one for one in changed(before, after) if after[one][2] == "archived"}
        assert changed(before, after) <= pair, (key, decision)
        assert len(gone) == (0 if key == "3" else 1), key
        for one in gone:
            done(page, f"Memory {one} is replaced by {(pair - gone).pop()}.")
        page.keyboard.press("u")
        done(page, "Undone")
        assert state(deciding) == before
        assert ring(page) == ref, "the ring goes to what came back"
    before = state(deciding)
    for key in ("c", "x"):
        page.keyboard.press(key)
        page.locator(".toast", has_text="keep one (1, 2) or both (3)").wait_for()
        assert state(deciding) == before, "of two that contradict each other nothing else makes sense"
    page.keyboard.press("s")
    assert state(deciding) == before, "later changes nothing"
    if width > 800:
        boxes = [page.locator(one).bounding_box() for one in (".queue", "#detail")]
        assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"], "two columns"
    page.context.close()


def test_enter_on_an_untouched_list_changes_nothing_and_what_is_left_open_stays(browser: Any, deciding: Server) -> None:
    page = at_width(browser, deciding, 1440)
    open_view(page, deciding, "inbox?tab=conflict")
    page.keyboard.press("j")
    page.keyboard.press("3")
    done(page, "Both are kept.")
    open_view(page, deciding, "inbox?tab=judge")
    before = state(deciding)
    count = page.locator(".tabs [aria-current] .count")
    number = int(count.inner_text())
    page.locator("[data-row]").first.focus()
    page.keyboard.press("Enter")
    page.locator(".toast.error", has_text="Nothing is decided yet").wait_for()
    assert state(deciding) == before
    assert int(count.inner_text()) == number
    page.keyboard.press("d")
    page.keyboard.press("Enter")
    done(page, "still open")
    assert int(count.inner_text()) == number - 1
    assert page.locator('[data-row][aria-current="true"]').get_attribute("data-n") == "1", "the first of the next list"
    page.keyboard.press("u")
    done(page, "Undone")
    assert state(deciding) == before, "the settling, and nothing before it"
    page.keyboard.press("u")
    page.locator(".toast p", has_text="Undone").wait_for()
    page.keyboard.press("u")
    page.locator(".toast", has_text="nothing to undo here").wait_for()
    page.context.close()


def test_the_last_decision_leaves_an_empty_inbox_and_u_brings_it_back(browser: Any, tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        with server.memory() as memory:
            memory.remember("We use Mongo for the cache service.", kind="decision")
            memory.remember("We do not use Mongo for the cache service.", kind="decision")
        page = signed_in(browser, server, viewport={"width": 1440, "height": 900})
        open_view(page, server, "inbox")
        page.locator("[data-row]").first.focus()
        page.keyboard.press("3")
        done(page, "Both are kept.")
        page.get_by_text("Nothing to decide").wait_for()
        page.keyboard.press("u")
        done(page, "Undone")
        page.locator("[data-row]").first.wait_for()
        page.context.close()


def test_marks_and_texts_of_a_list_to_judge_survive_a_refresh_and_leaving_warns(browser: Any, deciding: Server) -> None:
    page = at_width(browser, deciding, 1440)
    open_view(page, deciding, "inbox?tab=judge")
    page.keyboard.press("d")
    page.keyboard.press("e")
    page.keyboard.type(" This was added.")
    page.keyboard.press("Escape")
    with deciding.memory() as memory:
        other = memory.remember("The parcel service is told at noon.").ref
    page.get_by_role("button", name="1 new").wait_for(timeout=30_000)
    page.keyboard.press(".")
    page.locator(".news").wait_for(state="hidden")
    typed = page.locator("textarea[name=text]").nth(1)
    assert typed.input_value().endswith("This was added."), "with the cursor at the end"
    sent = page.evaluate(
        "[...new FormData(document.querySelector('.judging'))].filter(([name]) => /^decision/.test(name))"
    )
    assert next(value for _, value in sent) == "drop"
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    with page.expect_event("dialog"):
        page.locator(".nav a").first.click()
    assert asked == ["beforeunload"]
    assert typed.input_value().endswith("This was added.")
    with deciding.memory() as memory:
        memory.erase(str(other))
    page.context.close()


def test_several_decisions_are_one_change_with_one_undo(browser: Any, deciding: Server) -> None:
    page = at_width(browser, deciding, 1024)
    open_view(page, deciding, "inbox?tab=conflict")
    number = int(page.locator(".tabs [aria-current] .count").inner_text())
    assert number == page.locator("[data-row]").count()
    second = page.locator("[data-row]").nth(1)
    was = second.bounding_box()
    page.keyboard.press("Space")
    page.locator("[data-batch]").wait_for()
    assert second.bounding_box() == was, "the buttons for several move no row away from the pointer"
    page.keyboard.press("j")
    page.keyboard.press("Space")
    before = state(deciding)
    page.keyboard.down("a")
    done(page, "2 memories are")
    page.keyboard.down("a")
    page.keyboard.up("a")
    assert int(page.locator(".tabs [aria-current] .count").inner_text()) == number - 2
    page.keyboard.press("u")
    done(page, "Undone")
    assert state(deciding) == before
    page.context.close()


def test_a_star_selects_all_rows_and_a_number_decides_about_them_and_a_bracket_leads_to_the_next_tab(
    browser: Any, deciding: Server
) -> None:
    page = at_width(browser, deciding, 1440)
    open_view(page, deciding, "inbox?tab=conflict")
    listed = {row.get_attribute("data-ref") for row in page.locator("[data-row]").all()}
    assert len(listed) == 3
    before = state(deciding)
    page.keyboard.press("*")
    page.get_by_text("3 selected").wait_for()
    page.keyboard.press("2")
    done(page, "3 memories are")
    after = state(deciding)
    assert {ref for ref in changed(before, after) if after[ref][2] == "archived"} == listed
    page.get_by_role("link", name="Go on with To judge").wait_for()
    page.keyboard.press("]")
    page.wait_for_url("**tab=judge*")
    listening(page)
    page.keyboard.press("u")
    done(page, "Undone")
    assert state(deciding) == before
    page.context.close()


def test_on_a_phone_the_last_decision_of_a_tab_leads_on_to_the_next(browser: Any, deciding: Server) -> None:
    page = at_width(browser, deciding, 390)
    open_view(page, deciding, "inbox?tab=conflict")
    before = state(deciding)
    number = page.locator("[data-row]").count()
    page.locator("[data-row]").first.click()
    for _ in range(number):
        assert page.locator(".tabs").is_hidden(), "one decision fills the screen"
        page.locator("#detail [data-ref]").first.wait_for()
        both = page.get_by_role("button", name="Keep both")
        both.click()
        done(page, "Both are kept.")
        page.locator(".toast").evaluate("toast => toast.remove()")
        if both.is_visible():  # the second half of a double click decides about nothing more
            both.hover()
            page.mouse.down(click_count=2)
            page.mouse.up(click_count=2)
    for _ in range(2):
        page.get_by_role("link", name="Go on with To judge").wait_for()
        page.reload()
    listening(page)
    for _ in range(number):
        page.keyboard.press("u")
        done(page, "Undone")
        page.locator(".toast").evaluate("toast => toast.remove()")
    assert state(deciding) == before
    page.context.close()


def test_a_finding_that_waits_for_a_judge_is_counted_once(browser: Any, deciding: Server) -> None:
    with deciding.memory() as memory:
        asked = {one.ref for one in memory.proposals().proposals}
    page = at_width(browser, deciding, 1440)
    open_view(page, deciding, "inbox?tab=candidate")
    assert asked
    assert asked.isdisjoint(row.get_attribute("data-ref") for row in page.locator("[data-row]").all())
    due, counts = page.locator(".nav .count.due").first, page.locator(".tabs .count")
    assert int(due.inner_text().split()[0]) == sum(map(int, counts.all_inner_texts()))
    page.context.close()


def test_the_findings_of_a_session_are_judged_with_one_key_each(browser: Any, deciding: Server) -> None:
    with deciding.memory() as memory:
        listed = memory.proposals().statements
    assert len(listed) >= 3
    page = at_width(browser, deciding, 1440)
    open_view(page, deciding, "inbox?tab=judge")
    before = state(deciding)
    page.keyboard.press("a")
    page.keyboard.press("d")
    page.keyboard.press("e")
    page.keyboard.press("End")
    page.keyboard.type(" This was added.")
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    assert state(deciding) == before, "nothing changes before the list is settled"
    page.locator("[data-row]").first.focus()
    page.keyboard.press("Enter")
    done(page)
    after = state(deciding)
    kept_ref, dropped, edited = (one.ref for one in listed[:3])
    assert (after[kept_ref][2], after[dropped][2]) == ("confirmed", "archived")
    assert after[edited][0].endswith("This was added.")
    page.keyboard.press("u")
    done(page, "Undone")
    assert state(deciding) == before
    page.context.close()


def test_w_marks_a_finding_as_wrong_and_shift_a_keeps_all_that_are_open(browser: Any, deciding: Server) -> None:
    with deciding.memory() as memory:
        asked = memory.proposals()
        listed = asked.proposals
    page = at_width(browser, deciding, 1440)
    open_view(page, deciding, "inbox?tab=judge")
    before = state(deciding)
    page.keyboard.press("s")
    page.keyboard.press("w")
    page.keyboard.press("A")
    assert state(deciding) == before, "nothing changes before the list is settled"
    page.locator("[data-row]").first.focus()
    page.keyboard.press("Enter")
    done(page)
    after = state(deciding)
    assert after[listed[1].ref][2] == "archived"
    assert {after[one.ref][2] for one in (listed[0], *listed[2:])} == {"confirmed"}
    assert changed(before, after) == {one.ref for one in asked.statements}, "also the summary of their session"
    page.keyboard.press("u")
    done(page, "Undone")
    assert state(deciding) == before
    page.context.close()


def test_what_was_stored_before_stays_unless_it_is_decided_by_itself(browser: Any, tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        with server.memory() as memory:
            stored = memory.remember("Amounts are floats in euros, the ledger refuses integers.", kind="decision").ref
            session = memory.session("monday", agent="claude")
            session.append("user", "Amounts are integers in cents, the ledger refuses floats.")
            session.append("user", "Retries are limited to 3 attempts, the carrier bans us otherwise.")
            session.finish()
            asked = memory.proposals()
        beside = [one.ref for one in asked.statements if one.who == "stored before"]
        assert beside == [str(stored)]
        page = at_width(browser, server, 1440)
        open_view(page, server, "inbox?tab=judge")
        before = state(server)
        page.get_by_role("button", name="Drop all that are open").click()
        page.get_by_role("button", name="Settle this list").click()
        done(page, "dropped")
        assert before[beside[0]] == state(server)[beside[0]]
        page.keyboard.press("u")
        done(page, "Undone")
        assert state(server) == before
        page.locator("[data-row]").first.focus()
        for _ in asked.proposals:
            assert page.evaluate("document.activeElement.dataset.statement") != beside[0], "it is passed over"
            page.keyboard.press("a")
        page.keyboard.press("Enter")
        done(page, f"{len(asked.proposals)} kept.")
        assert "still open" not in page.locator(".toast p").inner_text(), "the summary waits for nobody"
        assert before[beside[0]] == state(server)[beside[0]]
        page.context.close()


def test_shift_a_decides_the_same_for_all_of_a_session_and_for_nothing_else(browser: Any, deciding: Server) -> None:
    page = at_width(browser, deciding, 1440)
    open_view(page, deciding, "inbox?tab=conflict")
    button = page.get_by_role("button", name="Do the same for all 3 of this session")
    button.wait_for()
    decided = str(button.get_attribute("data-decisions"))
    page.locator("[data-row]").first.focus()
    before = state(deciding)
    page.keyboard.press("A")
    done(page, "3 memories are")
    after = state(deciding)
    gone = {ref for ref in changed(before, after) if after[ref][2] == "archived"}
    assert len(gone) == 3
    assert changed(before, after) <= set(re.findall(r"\d+", decided))
    assert page.locator("[data-row]").count() == 0
    page.keyboard.press("u")
    done(page, "Undone")
    assert state(deciding) == before
    page.context.close()


def test_the_brackets_walk_through_what_a_session_was_given_and_r_asks_again(browser: Any, deciding: Server) -> None:
    page = at_width(browser, deciding, 1440)
    open_view(page, deciding, "saw?session=tuesday")
    heading = page.locator(".prompt h2")
    assert heading.inner_text() == PROMPTS[2]
    for key, prompt in (("[", PROMPTS[1]), ("[", PROMPTS[0]), ("]", PROMPTS[1])):
        page.keyboard.press(key)
        page.locator(".prompt h2", has_text=prompt).wait_for()
        listening(page)
    assert "was given: no memory that may be told fits it" in page.locator(".figure").inner_text()
    page.locator("[data-swap=listed] [data-row]").last.click()
    page.locator(".prompt h2", has_text=PROMPTS[0]).wait_for()
    listening(page)
    assert page.evaluate("scrollY") == 0, "the answer stands at the top"
    page.keyboard.press("r")
    page.locator("#now").wait_for()
    assert page.locator(".prompt h2").inner_text() == PROMPTS[0], "the same prompt again"
    assert "receipt=r1&" in page.url
    page.context.close()


def test_a_failed_hook_is_told_in_the_first_view(browser: Any, deciding: Server) -> None:
    page = at_width(browser, deciding, 1024)
    open_view(page, deciding, "saw")
    page.get_by_text("1 hook call has failed in these days").click()
    assert page.get_by_text("claude-code, a prompt: ").is_visible()
    assert page.get_by_text("the disk is full").is_visible()
    page.context.close()


def test_a_phone_has_the_search_five_views_and_the_others_behind_more(browser: Any, filled: Server) -> None:
    page = at_width(browser, filled, 390)
    open_view(page, filled, "inbox")
    assert page.locator(".nav > a:visible").count() == 5
    page.locator(".more-views summary").click()
    page.locator(".more-views").get_by_text("Health").click()
    page.wait_for_url("**/health")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.locator(".to-search").click()
    page.wait_for_url("**/memories")
    page.context.close()


def test_in_the_first_view_j_begins_at_the_answer_and_ends_with_its_card(browser: Any, deciding: Server) -> None:
    page = at_width(browser, deciding, 1440)
    open_view(page, deciding, "saw?session=tuesday")
    shown = page.locator(".moment-list [aria-current=page]")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement === document.querySelector('.trace [data-row]')")
    for _ in range(30):
        page.keyboard.press("j")
    assert page.evaluate("document.activeElement.closest('.trace') !== null")
    assert shown.count() == 1, "the moment that is shown keeps its mark"
    deciding.get("/recall?query=parcel")
    with deciding.memory() as memory:
        asked = memory.why().receipt
    open_view(page, deciding, f"saw?receipt={asked}")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement === document.querySelector('.trace [data-row], [data-row]')")
    page.context.close()


def test_the_keys_act_on_the_row_with_the_ring_in_the_first_view(browser: Any, deciding: Server) -> None:
    page = at_width(browser, deciding, 1440)
    open_view(page, deciding, "saw?session=tuesday")
    row = page.locator("summary[data-row]").nth(1)
    row.focus()
    ref = ring(page)
    for key, place in {"p": 2, "+": 4, "-": 4, "x": 2}.items():
        before = state(deciding)
        page.keyboard.press(key)
        done(page, ref)
        after = state(deciding)
        assert changed(before, after) == {ref}, key
        assert before[ref][place] != after[ref][place], key
        page.keyboard.press("u")
        done(page, "Undone")
        assert state(deciding) == before
        page.locator(f'summary[data-row][data-ref="{ref}"]').focus()
    page.keyboard.press("e")
    page.wait_for_url(f"**/memories?ref={ref}*")
    page.locator("textarea[name=content]").wait_for()
    assert page.locator("textarea[name=content]").input_value() == state(deciding)[ref][0]
    page.context.close()


def _told_apart(about: dict[str, Any]) -> tuple[Any, ...]:
    """Return the fields of a record that a key can change."""
    return tuple(about[name] for name in ("content", "kind", "status", "feedback", "importance"))


def test_the_keys_of_knowledge_open_a_task_and_act_on_the_statement_with_the_ring(
    browser: Any, deciding: Server
) -> None:
    page = at_width(browser, deciding, 1440)
    open_view(page, deciding, "knowledge")
    page.locator("[data-row]").first.focus()
    for key in ("j", "k"):
        page.keyboard.press(key)
        name = page.locator('[data-row][aria-current="true"]').get_attribute("data-name")
        page.locator("#detail .ref, #detail .mono", has_text=str(name)).first.wait_for()
        assert f"task={name}" in page.url
    page.locator(".items [data-row]").nth(1).focus()
    ref = ring(page)

    def items() -> dict[str, Any]:
        """All memories and items, by ref: an item is a memory that a file states."""
        with deciding.memory() as memory:
            found = [one.ref for one in memory.look().items(limit=100)]
        return {one: deciding.get(f"/memories/{one}?forgotten=true") for one in {*found, ref, *map(str, range(1, 12))}}

    for key, field in {"p": "status", "+": "feedback", "-": "feedback", "x": "status"}.items():
        before = items()
        page.keyboard.press(key)
        done(page, ref)
        after = items()
        assert {one for one in before if _told_apart(before[one]) != _told_apart(after[one])} == {ref}, key
        assert before[ref][field] != after[ref][field], key
        page.keyboard.press("u")
        done(page, "Undone")
        assert {one: _told_apart(about) for one, about in items().items()} == {
            one: _told_apart(about) for one, about in before.items()
        }, key
        page.locator(f'.items [data-ref="{ref}"]').focus()
    page.keyboard.press("e")
    page.wait_for_url(f"**/memories?ref={ref}*")
    page.locator("textarea[name=content]").wait_for()
    assert page.locator("textarea[name=content]").input_value() == before[ref]["content"]
    page.context.close()


def test_n_opens_the_form_for_a_new_memory_which_is_then_shown(page: Any, filled: Server) -> None:
    open_view(page, filled, "memories")
    before = state(filled)
    page.keyboard.press("n")
    page.wait_for_url("**new=1*")
    listening(page)
    assert page.evaluate("document.activeElement.name") == "content"
    assert page.locator("[data-row][aria-current]").count() == 0
    page.keyboard.press("Escape")
    page.keyboard.press("x")  # of no row: none is chosen while the form is open
    assert page.locator(".toast").count() == 0
    assert state(filled) == before
    page.locator("textarea[name=content]").fill("The mirror of the registry is asked first.")
    page.get_by_role("button", name="Keep this").click()
    page.locator("#detail .statement", has_text="The mirror of the registry").wait_for()
    (ref,) = changed(before, state(filled))
    assert f"ref={ref}" in page.url


def test_the_slider_shows_the_memories_of_an_earlier_day(browser: Any, deciding: Server) -> None:
    page = at_width(browser, deciding, 1440)
    open_view(page, deciding, "memories")
    number = page.locator("[data-row]").count()
    slider = page.get_by_label("Drag to an earlier day")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**as_of=*")
    page.get_by_role("heading", name="1 memory", exact=True).wait_for()
    assert page.locator("[data-row] p").all_inner_texts() == ["The first build ran on Node 18."]
    page.get_by_label("Drag to an earlier day").focus()
    page.keyboard.press("End")
    page.locator("[data-row]").nth(number - 1).wait_for()
    assert "as_of" not in page.url
    page.context.close()


def test_a_day_of_the_year_opens_its_journal(browser: Any, deciding: Server) -> None:
    page = at_width(browser, deciding, 1440)
    open_view(page, deciding, "timeline")
    day = (datetime.now(UTC) - OLD).astimezone().date()
    page.locator(f'.of-writes a[href*="day={day}"]').click()
    page.wait_for_url(f"**day={day}*")
    listening(page)
    lines = page.locator(".events li").all_inner_texts()
    assert len(lines) == 1
    assert "The first build ran on Node 18." in lines[0]
    page.context.close()


def test_stored_text_is_text(browser: Any, filled: Server) -> None:
    page = at_width(browser, filled, 1440)
    with filled.memory() as memory:
        ref = str(memory.remember(HOSTILE + " again", tags=["<b>x</b>"], files=["<i>y</i>.py"]).ref)
        memory.remember("javascript:document.title='owned'", files=["javascript:document.title='owned'"])
        memory.task("EVIL", description=HOSTILE, acceptance_criteria=[HOSTILE]).add_reasoning(HOSTILE, "note")
        talk = memory.session("evil", agent="<u>claude</u>")
        talk.append("user", f"{HOSTILE} bidi")
        memory.reinforce(ref)
    paths = [*VIEWS.values(), f"memories?ref={ref}", "memories?new=1&tag=%3Cb%3E", "memories?as_of=2030-01-01"]
    paths += ["sessions?q=bidi", "sessions?session=evil", "knowledge?task=EVIL", "timeline?who=%3Cscript%3E"]
    paths += ["inbox?tab=judge", "inbox?tab=candidate", "saw?session=%3Cscript%3E"]
    evil = quote('"><img src=x onerror="document.title=\'owned\'">')
    paths += [f"memories?said={evil}&notice={evil}", f"memories?q={evil}", f"memories?status={evil}", f"nowhere/{evil}"]
    paths += [f"saw?receipt={evil}", f"memories?ref={evil}", f"../{evil}/saw"]
    for path in paths:
        page.goto(f"{filled.address}/p/web-app/{path}")
        assert page.title() != "owned", path
        assert page.locator("[href^='javascript:' i], [src^='javascript:' i]").count() == 0, path
        assert page.locator("main script, main [onerror], main b b, main td i").count() == 0, path
    open_view(page, filled, "memories?q=bidi")
    page.keyboard.press("j")  # the detail that a script puts in
    page.keyboard.press("k")
    page.locator("#detail .statement").wait_for()
    shown = page.locator("#detail .statement").inner_text()
    assert "<script>document.title='owned'</script>" in shown
    assert "<img src=x" in shown
    # Text that would turn the line around, or colour a terminal that it is copied to, is kept out or made visible.
    assert "\u202e" not in shown
    assert "\x1b" not in shown
    page.keyboard.press("+")  # a toast about it
    done(page, "helped")
    assert page.title() != "owned"
    page.evaluate(
        """async ([csrf, text]) => {
            const form = document.createElement("form");
            form.method = "post";
            form.action = document.body.dataset.root + "/do";
            for (const [name, value] of Object.entries({ csrf, verb: "pin", ref: text })) {
                const field = Object.assign(document.createElement("input"), { name, value });
                form.append(field);
            }
            document.body.append(form);
            form.requestSubmit();
        }""",
        [page.locator("[name=csrf]").first.input_value(), HOSTILE],
    )
    page.locator(".toast.error").wait_for()  # its text quotes the ref that was refused
    assert page.locator(".toast img, .toast script").count() == 0
    assert page.title() != "owned"
    page.context.close()


def test_a_foreign_page_and_a_forged_mark_change_nothing(page: Any, filled: Server) -> None:
    before = state(filled)
    open_view(page, filled, "memories")
    for path, fields in (
        ("do", {"verb": "remember", "content": "Forged."}),
        ("do", {"verb": "undo", "event": "1"}),
        ("do", {"verb": "decide", "ref": "forget:1"}),
        ("judge", {"code": "x", "decision": "keep", "text": "Forged."}),
    ):
        answer = page.request.post(
            f"{filled.address}/p/web-app/{path}",
            form=fields | {"csrf": "0" * 64},
            headers={"Origin": filled.address, "Accept": "application/json"},
        )
        assert answer.status == 403, path
        foreign = page.request.post(
            f"{filled.address}/p/web-app/{path}", form=fields, headers={"Origin": "http://127.0.0.1:1"}
        )
        assert foreign.status == 403, path
    stranger = page.context.browser.new_context()
    for path in ("erase?ref=1", "memories?ref=1", "inbox?tab=judge", "timeline?day=2026-01-01"):
        assert stranger.request.get(f"{filled.address}/p/web-app/{path}").status == 401, path
    stranger.close()
    assert state(filled) == before


@pytest.mark.parametrize(
    ("width", "theme"),
    [
        (1440, "dark"),
        (390, "light"),
        pytest.param(1440, "light", marks=pytest.mark.slow),
        pytest.param(1024, "light", marks=pytest.mark.slow),
        pytest.param(1024, "dark", marks=pytest.mark.slow),
        pytest.param(390, "dark", marks=pytest.mark.slow),
    ],
)
def test_axe_finds_no_serious_fault_and_nothing_runs_over_the_edge(
    browser: Any, filled: Server, width: int, theme: str, tmp_path: Path
) -> None:
    page = signed_in(browser, filled, viewport={"width": width, "height": 800}, color_scheme=theme)
    script = (Path(AXE.__file__).parent / "axe.min.js").read_text("utf-8")
    more = ("memories?new=1", "inbox?tab=judge", "timeline?what=written")
    for view in (*VIEWS.values(), *more):
        page.goto(f"{filled.address}/p/web-app/{view}{'?q=refresh+token' if view == 'memories' else ''}")
        page.evaluate(f"() => {{ {script} }}")
        found = page.evaluate("() => axe.run({ resultTypes: ['violations'] })")["violations"]
        grave = [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
        assert grave == [], view
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{view} is wider than the screen"
    page.context.close()


def test_a_phone_shows_the_project_and_its_switcher_and_no_keys(browser: Any, filled: Server) -> None:
    page = signed_in(browser, filled, viewport={"width": 360, "height": 800}, has_touch=True)
    for view in VIEWS.values():
        page.goto(f"{filled.address}/p/web-app/{view}")
        assert page.locator("kbd:visible").count() == 0, view
        assert page.get_by_text("lists them all").is_hidden(), "a sentence about keys without its keys"
        page.locator(".topbar summary").click()
        page.locator(".topbar").get_by_role("link", name="web-app").wait_for()
    page.context.close()
