"""The page in a real Chromium: every view by keyboard, a change and its undo, a live update, nothing that axe finds."""

import os
import re
import shutil
import subprocess
import sys
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
    context.set_default_timeout(15_000)
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
    context = browser.new_context(viewport={"width": width, "height": 844 if width < 500 else 800}, **more)
    context.set_default_timeout(15_000)
    page = context.new_page()
    sign_in(page, server)
    return page


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
    page.keyboard.press("x")
    done(page, "3 memories are forgotten")
    assert changed(before, state(many)) == chosen
    page.keyboard.press("u")
    done(page, "Undone: 3 memories")
    assert state(many) == before
    ref = ring(page)
    verified = many.get(f"/memories/{ref}")["verified_at"]
    page.keyboard.press("c")
    done(page, f"Memory {ref} is confirmed")
    assert many.get(f"/memories/{ref}")["verified_at"] != verified


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
        page = browser.new_context(java_script_enabled=is_scripted).new_page()
        sign_in(page, many)
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


def test_a_restart_of_the_server_keeps_tabs_text_and_the_visit(browser: Any, tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        page = at_width(browser, server, 1440)
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


def inbox_memory(server: Server) -> None:
    """Contradictions, duplicates and unconfirmed memories of one session."""
    with server.memory() as memory:
        for one in ("Mongo", "Redis", "Kafka"):
            memory.remember(f"We use {one} for the {one.lower()} cache service.", kind="decision")
            memory.remember(f"We do not use {one} for the {one.lower()} cache service.", kind="decision")


@pytest.mark.parametrize("width", WIDTHS)
def test_every_key_of_the_inbox_decides_about_the_row_with_the_ring(browser: Any, tmp_path: Path, width: int) -> None:
    with serving(tmp_path) as server:
        inbox_memory(server)
        page = at_width(browser, server, width)
        open_view(page, server, "inbox?tab=conflict")
        number = page.locator("[data-row]").count()
        assert number >= 3
        page.keyboard.press("j")
        page.keyboard.press("j")
        for key in ("a", "1", "2", "3", "x"):
            before = state(server)
            ref = ring(page)
            decision = page.locator(f'[data-row][data-ref="{ref}"]').get_attribute("data-decision")
            page.keyboard.press(key)
            done(page)
            assert page.locator("[data-row]").count() == number - 1
            after = state(server)
            pair = set(re.findall(r"\d+", str(decision)))
            gone = {one for one in changed(before, after) if after[one][2] == "archived"}
            assert changed(before, after) <= pair, (key, decision)
            assert len(gone) == (0 if key == "3" else 1), key
            if key == "x":
                assert gone == {ref}
            page.keyboard.press("u")
            done(page, "Undone")
            assert state(server) == before
            page.locator(f'[data-row][data-ref="{ref}"]').focus()
        before = state(server)
        page.keyboard.press("s")
        assert state(server) == before, "later changes nothing"
        if width > 800:
            boxes = [page.locator(one).bounding_box() for one in (".queue", "#detail")]
            assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"], "two columns"
        page.context.close()


def test_several_decisions_are_one_change_with_one_undo(browser: Any, tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        inbox_memory(server)
        page = at_width(browser, server, 1024)
        open_view(page, server, "inbox?tab=conflict")
        number = int(page.locator(".tabs [aria-current] .count").inner_text())
        assert number == page.locator("[data-row]").count()
        page.keyboard.press("Space")
        page.keyboard.press("j")
        page.keyboard.press("Space")
        before = state(server)
        page.keyboard.press("a")
        done(page, "2 memories are")
        assert int(page.locator(".tabs [aria-current] .count").inner_text()) == number - 2
        page.keyboard.press("u")
        done(page, "Undone")
        assert state(server) == before
        page.context.close()


def test_the_findings_of_a_session_are_judged_with_one_key_each(browser: Any, tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        with server.memory() as memory:
            session = memory.session("monday", agent="claude")
            session.append("user", "Amounts are integers in cents, the ledger refuses floats.")
            session.append("user", "For the file names we should take the customer number, not the name.")
            session.append("user", "Retries are limited to 3 attempts, the carrier bans us otherwise.")
            session.finish()
            listed = memory.proposals().statements
        assert len(listed) >= 3
        page = at_width(browser, server, 1440)
        open_view(page, server, "inbox?tab=judge")
        before = state(server)
        page.keyboard.press("a")
        page.keyboard.press("d")
        page.keyboard.press("e")
        page.keyboard.press("End")
        page.keyboard.type(" This was added.")
        page.keyboard.press("Escape")
        page.keyboard.press("a")
        assert state(server) == before, "nothing changes before the list is settled"
        page.locator("[data-row]").first.focus()
        page.keyboard.press("Enter")
        done(page)
        after = state(server)
        kept_ref, dropped, edited = (one.ref for one in listed[:3])
        assert (after[kept_ref][2], after[dropped][2]) == ("confirmed", "archived")
        assert after[edited][0].endswith("This was added.")
        page.keyboard.press("u")
        done(page, "Undone")
        assert state(server) == before
        page.context.close()


def test_stored_text_is_text(page: Any, filled: Server) -> None:
    with filled.memory() as memory:
        ref = str(memory.remember(HOSTILE + " again", tags=["<b>x</b>"], files=["<i>y</i>.py"]).ref)
        memory.task("EVIL", description=HOSTILE, acceptance_criteria=[HOSTILE]).add_reasoning(HOSTILE, "note")
        talk = memory.session("evil", agent="<u>claude</u>")
        talk.append("user", f"{HOSTILE} bidi")
        memory.reinforce(ref)
    paths = [*VIEWS.values(), f"memories?ref={ref}", "memories?new=1&tag=%3Cb%3E", "memories?as_of=2030-01-01"]
    paths += ["sessions?q=bidi", "sessions?session=evil", "knowledge?task=EVIL", "timeline?who=%3Cscript%3E"]
    paths += ["inbox?tab=judge", "inbox?tab=candidate", "saw?session=%3Cscript%3E"]
    for path in paths:
        page.goto(f"{filled.address}/p/web-app/{path}")
        assert page.title() != "owned", path
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
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=theme)
    page = context.new_page()
    sign_in(page, filled)
    script = (Path(AXE.__file__).parent / "axe.min.js").read_text("utf-8")
    more = ("memories?new=1", "inbox?tab=judge", "timeline?what=written")
    for view in (*VIEWS.values(), *more):
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
