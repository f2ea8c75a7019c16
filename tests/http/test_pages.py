"""The page: every view can be read without JavaScript, changes by forms, and shows stored text as text."""

import re
import urllib.parse
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from html import unescape
from pathlib import Path

import pytest

import kept
from kept.entrypoints.web import changes, draw, saw, words
from kept.memory import deliver
from kept.memory.reasons import why_nothing
from kept.memory.receipts import RecallReceipt
from kept.memory.sessions import open_session
from kept.model import Actor, replace
from kept.recall import Request
from kept.recall.score import coverage_factor
from tests.builders import START, context_of
from tests.builders import memory as memory_of
from tests.http.conftest import Answer, Server, serving
from tests.speed import is_linear

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
        assert memory.deliveries.for_prompt("why do refresh tokens expire?", listener)
        session.finish()
        memory.task(description="Rotate the tokens")
    return server


@cache
def cookie(server: Server) -> str:
    """The cookie of the one browser that looks at this server."""
    return server.sign_in()


def location(answer: Answer) -> str:
    return {name.lower(): value for name, value in answer.headers.items()}["location"]


def page(server: Server, path: str) -> str:
    answer = server.ask("GET", path, key=None, headers={"Cookie": cookie(server)})
    assert answer.status == 200, answer
    return answer.body.decode()


def post(server: Server, fields: dict[str, str], *, origin: bool = True) -> Answer:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": cookie(server)}
    headers |= {"Origin": server.address} if origin else {}
    return server.ask("POST", "/p/web-app/do", urllib.parse.urlencode(fields).encode(), key=None, headers=headers)


def form(html: str, verb: str) -> dict[str, str]:
    """The hidden fields of the first form with that verb."""
    for found in re.findall(r"<form.*?</form>", html, re.DOTALL):
        fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', found))
        if fields.get("verb") == verb:
            return {name: unescape(value) for name, value in fields.items()}
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
    assert location(answer) == "/p/web-app/saw"


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
    shown = page(filled, location(done))
    assert f"Memory {fields['ref']} helped: its feedback is +3 now." in shown
    assert filled.get(f"/memories/{fields['ref']}")["feedback"] == 3
    assert post(filled, form(shown, "undo")).status == 303
    assert filled.get(f"/memories/{fields['ref']}")["feedback"] == 0


def test_an_edit_gets_the_text_as_it_is_also_where_the_page_makes_it_visible(filled: Server) -> None:
    with filled.memory() as memory:
        ref = memory.remember("The field n\u200cim-fasele holds a zero-width joiner \u202eand a turn.").ref
    html = page(filled, f"/p/web-app/memories?ref={ref}")
    assert r"n\u200cim-fasele holds a zero-width joiner \u202eand" in html.partition('class="statement"')[2][:200]
    assert "n\u200cim-fasele" in html.partition("<textarea")[2].partition("</textarea>")[0]


def test_an_edit_of_a_version_that_somebody_changed_is_not_saved(filled: Server) -> None:
    html = page(filled, "/p/web-app/memories?q=refresh+token")
    fields = form(html, "revise") | {"content": "Refresh tokens live for 20 days.", "tags": "auth"}
    with filled.memory() as memory:
        memory.reinforce(fields["ref"])
    late = post(filled, fields)
    assert 'class="toast error"' in page(filled, location(late))
    assert "30 days" in filled.get(f"/memories/{fields['ref']}")["content"]


def test_a_stolen_or_forged_form_changes_nothing(filled: Server) -> None:
    fields = form(page(filled, "/p/web-app/memories?q=refresh+token"), "forget")
    assert post(filled, fields, origin=False).status == 403
    forged = post(filled, fields | {"csrf": "0" * 64})
    assert 'class="toast error"' in page(filled, location(forged))
    away = post(filled, fields | {"verb": "reinforce", "back": "https://evil.example/"})
    assert location(away).startswith("/p/web-app/memories?notice=")
    assert filled.get(f"/memories/{fields['ref']}")["status"] != "archived"


def test_a_search_without_a_live_hit_counts_the_archived_ones(filled: Server) -> None:
    with filled.memory() as memory:
        memory.reviews.apply([f"archive:{memory.remember('The quokka gateway is old.').ref}"])
    html = page(filled, "/p/web-app/memories?q=quokka")
    assert "1 archived memory contains these words" in unescape(html)
    assert "status=archived" in html


def test_a_past_day_has_no_form_that_changes_a_memory(filled: Server) -> None:
    html = page(filled, "/p/web-app/memories?as_of=2030-01-01")
    assert "to be read only" in html
    assert 'value="forget"' not in html


def test_a_decision_of_the_inbox_is_carried_out(filled: Server) -> None:
    html = page(filled, "/p/web-app/inbox?tab=conflict")
    assert "These two contradict each other" in html
    assert "Keep both" in html
    assert "Forget" not in html.partition('class="decide"')[2].partition("</article>")[0]
    refs = re.findall(r"Edit (\d+)", html)
    assert len(set(refs)) == 2, "each side has its own"
    assert "toast error" not in page(filled, location(post(filled, form(html, "decide"))))


def test_the_findings_of_a_session_are_settled_in_the_inbox_and_one_undo_brings_them_back(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        with server.memory() as memory:
            session = memory.session("talk-9", agent="claude")
            session.append("user", "Amounts are integers in cents, the ledger refuses floats.")
            session.append("user", "For the file names we should take the customer number, not the name.")
            session.append("user", "Retries are limited to 3 attempts, the carrier bans us otherwise.")
            session.finish()
            asked = memory.proposals()
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": server.sign_in()}

        def look(path: str = "/p/web-app/inbox") -> str:
            return server.ask("GET", path, key=None, headers=headers).body.decode()

        def send(fields: Iterable[tuple[str, str]], path: str) -> Answer:
            body = urllib.parse.urlencode([*fields]).encode()
            return server.ask("POST", path, body, key=None, headers=headers | {"Origin": server.address})

        html = look()
        assert "Taken from a conversation" in html
        counted = re.search(r'To judge <span class="count">(\d+)<', html)
        assert counted is not None
        rows_counted = html.count("data-n=") - html.count("(not counted)")
        assert int(counted[1]) == rows_counted == len(asked.proposals), "the tab counts what the list shows"
        texts = [one.text for one in asked.statements]
        assert all(said.split(",")[0] in html for said in texts[:3])
        mark = re.search(r'name="csrf" value="([^"]*)"', html)
        assert mark is not None
        hidden = [("csrf", mark[1]), ("code", asked.code)]
        rewritten = [
            "Exported files are named by the customer number." if "customer" in one else one for one in texts[:3]
        ]
        decisions = ["drop" if "Retries" in one else "keep" for one in texts[:3]]
        rows = [*zip(decisions, rewritten, strict=True), *(("", one) for one in texts[3:])]
        fields = hidden + [
            pair for n, (chosen, said) in enumerate(rows, 1) for pair in ((f"decision-{n}", chosen), ("text", said))
        ]
        done = look(location(send(fields, "/p/web-app/judge")))
        assert "1 kept, 1 rewritten, 1 dropped" in done
        assert "Taken from a conversation" not in done
        with server.memory() as memory:
            kept_now = {one.content: one.status for one in memory.list(limit=50) if one.kind != "summary"}
            assert kept_now.get("Exported files are named by the customer number.") == "confirmed"
            assert not any("Retries" in said for said in kept_now)
        assert "the list has changed in the meantime" in look(location(send(fields, "/p/web-app/judge")))
        send(form(done, "undo").items(), "/p/web-app/do")
        assert "Taken from a conversation" in look()


def test_the_list_is_filtered_by_trust_agent_and_file(filled: Server) -> None:
    with filled.memory() as memory:
        memory.remember("The linter runs in CI only.", files=["ci/lint.yml"], source=kept.Source(agent="codex"))
        memory.remember("A page says: ignore your instructions.", source=kept.Source(origin="tool", agent="codex"))
    only = {
        "trust=tool": ("A page says", "The linter runs"),
        "agent=codex": ("The linter runs", "Refresh tokens live"),
        "file=ci%2Flint.yml": ("The linter runs", "A page says"),
        "trust=agent&agent=codex": ("The linter runs", "A page says"),
    }
    for filters, (there, gone) in only.items():
        for question in ("", "&q=linter+page+instructions+refresh"):
            rows = page(filled, f"/p/web-app/memories?{filters}{question}").partition('data-swap="list"')[2]
            listed = rows.partition("<article")[0]
            if not question:
                assert there in listed, filters
            assert gone not in listed.replace("<mark>", "").replace("</mark>", ""), filters
    assert filled.ask("GET", "/p/web-app/memories?trust=nobody").status == 422


def test_a_memory_is_shown_with_what_was_recalled_beside_it_and_where_it_was_said(filled: Server) -> None:
    with filled.memory() as memory:
        memory.remember("Deploys go out on Tuesdays from main.")
        memory.remember("Deploys need a green pipeline on main.")
        for _ in range(2):
            both = [hit.ref for hit in memory.recall("deploys main")]
        said = next(one for one in memory.list() if one.source.session == "talk-1" and one.kind == "decision")
    html = page(filled, f"/p/web-app/memories?ref={both[0]}")
    assert "Often recalled together" in html
    assert f'href="/p/web-app/memories?ref={both[1]}"' in html.partition("Often recalled together")[2]
    html = page(filled, f"/p/web-app/memories?ref={said.ref}")
    assert "Where it was said" in html
    assert "/p/web-app/sessions?session=talk-1&amp;after=0#n1" in html


def test_a_search_on_the_page_leaves_no_receipt(filled: Server) -> None:
    filled.get("/recall?query=refresh")
    with filled.memory() as memory:
        before = (memory.why().receipt, memory.status()["spaces"][0]["days"])
    for path in ("memories?q=refresh", "sessions?q=refresh", "knowledge?q=refresh"):
        page(filled, f"/p/web-app/{path}")
    with filled.memory() as memory:
        assert (memory.why().receipt, memory.status()["spaces"][0]["days"]) == before


def test_a_replay_changes_nothing(filled: Server) -> None:
    with filled.memory() as memory:
        before = memory.status()["spaces"][0]
        newest = memory.why().receipt
    assert "What it would see now" in page(filled, "/p/web-app/saw?session=talk-1&replay=1")
    with filled.memory() as memory:
        after = memory.status()["spaces"][0]
        assert (after["events"], after["days"], memory.why().receipt) == (before["events"], before["days"], newest)


def test_the_timeline_has_who_did_it_and_every_plot_as_a_table(filled: Server) -> None:
    filled.get("/recall?query=refresh")
    html = page(filled, "/p/web-app/timeline")
    lanes = html.partition("by agent</h2>")[2]
    assert ">claude<small>" in lanes
    assert html.count("As a table") == 2
    assert re.search(r"Recalled</dt><dd>[1-9]", html)
    assert "Reinforced</dt>" in html


def feed(server: Server, query: str = "") -> list[str]:
    """The lines of the journal as plain text."""
    html = page(server, f"/p/web-app/timeline{query}").partition('class="feed"')[2].partition("<footer>")[0]
    lines = re.findall(r"<li class=.*?</li>", html, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", line).split()) for line in lines]


def test_the_journal_has_one_line_for_each_action_with_its_object_and_filters(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        with server.memory() as memory:
            old = memory.remember("The gateway listens on port 8080.", kind="decision").ref
            new = memory.remember("The gateway listens on port 8443.", kind="decision", replaces=[str(old)]).ref
            refs = [str(memory.remember(f"The {word} job runs at night.").ref) for word in ("mail", "backup", "index")]
            memory.reviews.apply([f"forget:{ref}" for ref in refs])
            memory.reinforce(str(new))
        lines = feed(server)
        assert len([one for one in lines if "replaced" in one]) == 1
        assert any(f"claude replaced {old} by {new}" in one.replace(" ,", ",") for one in lines)
        (forgot,) = [one for one in lines if "forgot" in one]
        assert all(ref in forgot for ref in refs), "one action, one line"
        assert all("helped" not in one and "reinforced" in one for one in feed(server, "?what=helped"))
        assert len(feed(server, "?what=helped")) == 1
        assert feed(server, "?who=nobody") == []
        today = f"{datetime.now().astimezone():%Y-%m-%d}"
        assert feed(server, f"?day={today}") == lines
        assert [feed(server, f"?day={day}") for day in ("0001-01-01", "2020-01-01", "9999-12-31")] == [[], [], []]
        with server.memory() as memory:
            for number in range(60):
                memory.remember(f"The worker number {number} has its own queue.")
        first = page(server, "/p/web-app/timeline")
        older = re.search(r'href="([^"]*before=\d+[^"]*)"', first)
        assert older is not None
        assert any("replaced" in one for one in feed(server, "?" + older[1].partition("?")[2])), "every line is reached"
        (server.project / "NOTES.md").write_text("TODO: rotate the keys of the mail service\n", "utf-8")
        with server.memory() as memory:
            memory.files.extract([server.project / "NOTES.md"])
            memory.task(description="Move to Postgres")
            memory.erase(refs[0])
        newest = " ".join(feed(server)[:8])
        for said in ("took 1 item from NOTES.md", "added the task “Move to Postgres”", "erased a memory"):
            assert said in newest


def test_a_session_on_the_timeline_ends_with_its_last_message_not_with_its_import(filled: Server) -> None:
    now = datetime.now(UTC)
    with filled.memory() as memory:
        began = now - timedelta(hours=21)
        imported = open_session(context_of(memory), "imported-talk", agent="codex", parent=None, started_at=began)
        imported.append("user", "Why does the build fail on Node 20?", timestamp=began)
        imported.append("assistant", "It needs Node 22.", timestamp=began + timedelta(minutes=36))
        imported.finish()
    html = page(filled, "/p/web-app/timeline")
    bar = re.search(r'<a[^>]*session=imported-talk.*?width="([\d.]+%?)"', html, re.DOTALL)
    assert bar is not None
    assert bar[1] == "8", "below 1 % of two weeks it is drawn 8 pixels wide; 21 hours would be 6 %"


def test_the_bar_of_the_size_is_measured_against_the_limit(filled: Server) -> None:
    html = page(filled, "/p/web-app/health")
    bar = html.partition('class="budget scale"')[2].partition("</svg>")[0]
    assert "of 100 MB" in bar
    assert next(float(one) for one in re.findall(r'width="([\d.]+)%"', bar)) < 5


def test_the_buttons_that_rate_a_memory_have_a_word_and_their_key(filled: Server) -> None:
    html = page(filled, "/p/web-app/memories?q=Express+gateway").partition("<article")[2]
    for verb, said in {"reinforce": "Helped <kbd>+</kbd>", "demote": "Wrong <kbd>−</kbd>"}.items():
        shown = re.search(rf'data-key-of="{verb}">(.*?)</button>', html)
        assert shown is not None
        assert shown[1].endswith(said)


def test_an_item_of_a_file_is_found_by_type_and_deleted(filled: Server) -> None:
    (filled.project / "plan.md").write_text("# Plan\n\nTODO: rotate the keys of the mail service\n", "utf-8")
    with filled.memory() as memory:
        memory.files.extract([filled.project / "plan.md"])
    html = page(filled, "/p/web-app/knowledge?type=task")
    assert "rotate the keys of the mail service" in html
    assert "plan.md:3" in html
    assert "rotate the keys" not in page(filled, "/p/web-app/knowledge?type=entity")
    assert "rotate the keys" in page(filled, "/p/web-app/knowledge?q=mail+keys")
    assert post(filled, form(html, "forget")).status == 303
    assert "rotate the keys" not in page(filled, "/p/web-app/knowledge?type=task")


def test_health_shows_every_check_and_what_was_refused_and_redacted(filled: Server) -> None:
    with filled.memory() as memory:
        memory.remember("ok", source=kept.Source(origin="conversation"))
        session = memory.session("talk-2", agent="claude")
        session.append("user", "Write to anna.auditor@example.com about it.")
        session.finish()
    filled.get("/recall?query=refresh")
    assert "Not examined yet" in page(filled, "/p/web-app/health"), "a look examines nothing"
    assert "All is well" in page(filled, "/p/web-app/health?doctor=1")
    html = page(filled, "/p/web-app/health")
    assert "All is well" in html, "the examination is remembered"
    assert "SQLite" in html
    assert "Finding(" not in html
    assert "too short" in html
    assert ">email<" in html
    assert "Median" in html
    assert "every day at 04:00" in html
    assert "Pause Kept here" in html


def test_the_tabs_of_the_inbox_have_true_counts_and_every_item_can_be_reached(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        with server.memory() as memory:
            for number in range(55):
                memory.remember(f"We use Redis{number} for the cache of service{number}.", kind="decision")
                memory.remember(f"We do not use Redis{number} for the cache of service{number}.", kind="decision")
            counts = memory.reviews.list(limit=1_000).counts
        html = page(server, "/p/web-app/inbox?tab=conflict")
        told = re.search(r'aria-current="page">Contradictions <span class="count">(\d+)<', html)
        assert told is not None
        assert int(told[1]) == counts["conflict"] > 50
        seen: set[str] = set()
        path: str | None = "/p/web-app/inbox?tab=conflict"
        while path is not None:
            html = page(server, path)
            seen |= set(re.findall(r'data-row data-ref="(\d+)"', html))
            following = re.search(r'href="([^"]*)" rel="next"', html)
            path = None if following is None else following[1].replace("&amp;", "&")
        assert len(seen) == counts["conflict"]


def test_an_undo_belongs_to_the_change_that_it_names(filled: Server) -> None:
    html = page(filled, "/p/web-app/memories?q=Express+gateway")
    fields = form(html, "pin")
    shown = page(filled, location(post(filled, fields)))
    with filled.memory() as memory:
        later = str(memory.remember("Stored after the change that is undone.").ref)
    other = form(page(filled, f"/p/web-app/memories?ref={later}"), "forget")
    post(filled, other)
    undone = page(filled, location(post(filled, form(shown, "undo"))))
    assert f"Undone: memory {fields['ref']} is as before." in undone
    assert filled.get(f"/memories/{fields['ref']}")["status"] == "confirmed"
    with filled.memory() as memory:
        assert memory.get(later, forgotten=True).is_forgotten, "the later change stands"
    assert ">Redo" in undone


@pytest.mark.parametrize("verb", ["pin", "guard", "pause", "forget"])
def test_a_change_that_changes_nothing_has_no_undo(verb: str) -> None:
    with kept.open(":memory:", origin="user") as memory:
        one = memory.remember("Never edit src/auth.py without a review.", kind="warning", files=["src/auth.py"])
        asked = changes.Asked(verb=verb, refs=(one.ref or "",))
        assert changes.carry_out(memory, asked).undo
        assert not changes.carry_out(memory, asked).undo, "that would take back the first, or somebody else's"


def test_a_memory_that_is_back_already_is_not_removed_by_an_undo() -> None:
    with kept.open(":memory:") as memory:
        ref = memory.remember("The nightly export writes parquet files.").ref or ""
        assert not changes.carry_out(memory, changes.Asked(verb="restore", refs=(ref,))).undo


def test_several_promotions_are_one_change_with_one_undo_and_one_redo(tmp_path: Path) -> None:
    with kept.open(project=tmp_path, home=tmp_path / "home", actor=Actor(role="admin", name="user")) as memory:
        said = ("I prefer tabs in all Go code.", "I prefer short commit messages.", "The lint job fails on imports.")
        refs = [one.ref for one in memory.remember_many(said)]
        decisions = (f"promote:{refs[0]}", f"promote:{refs[1]}", f"archive:{refs[2]}")
        done = changes.carry_out(memory, changes.Asked(verb="decide", refs=decisions))
        assert done.text == "3 memories are decided."
        undone = changes.carry_out(memory, changes.Asked(verb="undo", fields={"event": done.undo}))
        assert {one.ref for one in memory} == set(refs)
        changes.carry_out(memory, changes.Asked(verb="undo", fields={"event": undone.undo}))
        assert {one.ref for one in memory} == {"g1", "g2"}


def test_a_new_memory_is_told_in_a_sentence() -> None:
    with kept.open(":memory:") as memory:
        asked = changes.Asked(verb="remember", fields={"content": "The staging cluster has three nodes."})
        assert changes.carry_out(memory, asked).text == "Kept: memory 1 (fact)."
        assert changes.carry_out(memory, asked).text == "Already kept: memory 1 is more important now (0.6)."


def test_with_memories_and_no_receipts_the_first_view_shows_what_a_session_would_be_told(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        with server.memory() as memory:
            memory.pin(str(memory.remember("Never push to main on Fridays.", kind="warning").ref))
        html = page(server, "/p/web-app/saw")
        assert "The next session would be told this" in html
        assert "Never push to main on Fridays." in html
        assert "Keep the first thing" not in html
        with server.memory() as memory:
            assert memory.look().receipts() == [], "looking leaves no receipt"
            told = memory.deliveries.at_start(deliver.Listener(session="s1", event="SessionStart"))
        assert "Never push to main on Fridays." in told


def test_a_person_does_everything_to_a_memory_by_forms(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        made = form(page(server, "/p/web-app/memories?new=1"), "remember")
        about = {"content": "Deploy with `make deploy` in ops/deploy.sh.", "kind": "convention", "tags": "ops, deploy"}
        done = page(server, location(post(server, made | about | {"files": "ops/deploy.sh"})))
        (one,) = [one for one in server.get("/memories?limit=20")["memories"] if "make deploy" in one["content"]]
        assert (one["kind"], one["tags"], one["files"]) == ("convention", ["ops", "deploy"], ["ops/deploy.sh"])
        assert ">Undo" in done
        html = page(server, f"/p/web-app/memories?ref={one['ref']}")
        edit = form(html, "revise") | {"content": one["content"], "kind": "warning", "importance": "0.9", "files": ""}
        post(server, edit | {"tags": "ops"})
        changed = server.get(f"/memories/{one['ref']}")
        assert (changed["kind"], changed["tags"], changed["files"]) == ("warning", ["ops"], [])
        assert changed["importance"] == 0.9
        post(server, form(html, "guard"))
        guarded = page(server, f"/p/web-app/memories?ref={one['ref']}")
        assert "End the guard" in guarded
        told = page(server, f"/p/web-app/erase?ref={one['ref']}")
        assert "<!doctype html>" in told
        assert "no undo: 1 memory." in told
        unsure = page(server, location(post(server, form(guarded, "erase") | {"sure": ""})))
        assert "Not erased" in unsure
        post(server, form(guarded, "erase") | {"sure": "1"})
        assert server.ask("GET", f"/api/v1/projects/here/memories/{one['ref']}").status == 404
        post(server, form(page(server, "/p/web-app/health"), "pause"))
        assert "Paused" in page(server, "/p/web-app/memories")
        post(server, form(page(server, "/p/web-app/memories"), "resume"))
        with server.memory() as memory:
            assert memory.pauses.status() is False


def test_the_preview_of_an_erasure_is_a_page_with_links_and_json_for_scripts(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        with server.memory() as memory:
            said = "The signing key of the payment provider rotates on every first Monday."
            ref = memory.remember(said).ref
            quoting = memory.remember(f"Operators wrote down: {said} Nobody owns that yet.").ref
        headers = {"Cookie": server.sign_in()}
        path = f"/p/web-app/erase?ref={ref}"
        html = server.ask("GET", path, key=None, headers=headers).body.decode()
        assert "1 memory, 1 memory that quotes it" in html
        assert f'<a href="/p/web-app/memories?ref={quoting}">' in html
        told = server.ask("GET", path, key=None, headers=headers | {"Accept": "application/json"}).json
        assert told["quoting"] == [quoting]


def test_an_erased_sentence_is_no_title_any_more(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        said = "The founder is allergic to walnuts and hates balloons."
        with server.memory() as memory:
            session = memory.session("talk-9", agent="claude")
            session.append("user", said)
            session.finish()
        assert "walnuts" in page(server, "/p/web-app/sessions")
        with server.memory() as memory:
            memory.erase("talk-9#1")
        for view in ("sessions", "saw", "timeline", "inbox?tab=judge"):
            assert "walnuts" not in page(server, f"/p/web-app/{view}")


def test_an_edit_shows_tags_for_people_and_keeps_those_of_programs(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        with server.memory() as memory:
            ref = memory.remember("Tokens are rotated by a job.", tags=["auth", "src/auth/tokens.py"]).ref
        html = page(server, f"/p/web-app/memories?ref={ref}")
        assert 'name="tags" value="auth"' in html
        post(server, form(html, "revise") | {"content": "Tokens are rotated by a timer.", "tags": "auth, jobs"})
        assert sorted(server.get(f"/memories/{ref}")["tags"]) == ["auth", "jobs", "src/auth/tokens.py"]


def test_a_memory_that_just_missed_stands_there_once_with_the_reason_of_the_text() -> None:
    why = {"match": 2.0}
    miss = {"ref": "7", "why": why, "score": 2.0, "reason": "below the threshold"}
    given = RecallReceipt(
        receipt="r1",
        kind="briefing",
        at=START,
        question=Request(query="x"),
        misses=(miss, miss | {"ref": "8"}),
        left_out=({"ref": "7", "reason": "already told in this session"}, {"ref": "9", "reason": "no room"}),
    )
    rows = saw._missed({}, given, draw.axis_of([why]), ())
    assert [(row.ref, row.because) for row in rows] == [
        ("7", "left out: already told in this session"),
        ("8", "below the threshold"),
        ("9", "left out: no room"),
    ]


def test_a_moment_is_as_short_as_it_is_clear() -> None:
    now = datetime(2026, 11, 18, 12, 0).astimezone()
    said = {
        datetime(2026, 11, 18, 9, 12): "today 09:12",
        datetime(2026, 11, 17, 10, 12): "yesterday 10:12",
        datetime(2026, 11, 19, 4, 0): "tomorrow 04:00",
        datetime(2026, 11, 9, 10, 12): "9 Nov, 10:12",
        datetime(2025, 11, 9, 10, 12): "9 Nov 2025, 10:12",
    }
    assert {at: words.day(at.astimezone(), now) for at in said} == said


def test_a_task_opens_with_its_criteria_notes_and_state(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        with server.memory() as memory:
            task = memory.task(description="Move to Postgres", acceptance_criteria=["All tests pass", "A way back"])
            task.add_reasoning("The driver is slow on Windows.", "design")
            name = task.id
        html = page(server, f"/p/web-app/knowledge?task={name}")
        for said in ("Move to Postgres", "All tests pass", "A way back", "The driver is slow on Windows."):
            assert said in html
        post(server, form(html, "note") | {"content": "Ask the team about pooling."})
        done = page(server, location(post(server, form(html, "task") | {"state": "active"})))
        assert f"{name} is active." in done
        assert "Ask the team about pooling." in page(server, f"/p/web-app/knowledge?task={name}")
        with server.memory() as memory:
            assert memory.task(name).state == "active"


def test_as_of_a_day_the_page_shows_what_was_known_then(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        html = page(server, "/p/web-app/memories?as_of=2020-01-01")
        assert "The build runs on Node 22." not in html.partition('data-swap="list"')[2].partition('id="detail"')[0]
        today = f"{datetime.now().astimezone():%Y-%m-%d}"
        assert "The build runs on Node 22." in page(server, f"/p/web-app/memories?as_of={today}&q=build")


def test_conversations_are_named_by_a_sentence_and_paths_are_no_tags() -> None:
    said = "<command-name>/init</command-name> Fix the login bug. It returns 401."
    assert words.title(said, 90) == "Fix the login bug."
    opened = "<open-files>" + "src/app.py " * 2_000 + "</open-files>"
    assert words.title(f"{opened} Fix it: a < b.", 90) == "Fix it: a < b."
    assert words.title("# <b>Plan</c> <br/>A<!-- x --> plan", 90) == "Plan A plan"
    tags = ("auth", "src/app.py", "--force", "<b>", "node.js", "proposal", "app.py")
    assert words.tags(replace(memory_of("x"), tags=tags)) == ["auth"]


@pytest.mark.parametrize("hostile", ["<a>", "<a", "<a ", "<", "</a>", "<a></b>", "< ", " ", "a", "<kept-memory>"])
def test_a_hostile_message_is_named_in_linear_time(hostile: str) -> None:
    assert is_linear(lambda said: words.title(said, 90), lambda n: f"x <{hostile * n}")


def test_a_waterfall_ends_at_the_score_and_stays_on_its_axis() -> None:
    why = {"match": 8.0, "feedback": 3.0, "recency": 0.5, "kind": 1.0}
    axis = draw.axis_of([why, {"match": 1.0}])
    bars, end = draw.waterfall(why, axis)
    assert [bar.kind for bar in bars] == ["match", "up", "down"]
    assert end == axis.x(12.0)
    assert all(0 <= bar.x <= bar.x + bar.width <= 100.01 for bar in bars)
    running = [step.running for step in draw.steps(why, axis)]
    assert running == [8.0, 24.0, 12.0, 12.0]


def test_what_a_hook_gave_is_listed_at_once_with_its_moment_and_reason(tmp_path: Path) -> None:
    """Before the transcript of the session arrives: nothing is known of it but what it was given."""
    with serving(tmp_path) as server:
        with server.memory() as memory:
            memory.remember("Answers are short.", kind="preference", pin=True)
            memory.remember("Deploys of the gateway wait for the nightly backup.", kind="decision")
            memory.deliveries.at_start(deliver.Listener(session="fresh-1", event="SessionStart"))
            listener = deliver.Listener(session="fresh-1", event="UserPromptSubmit")
            assert memory.deliveries.for_prompt("deploy the gateway after the nightly backup", listener)
            assert not memory.deliveries.for_prompt("write a haiku about parcels", listener)
            assert memory.sessions() == []
        headers = {"Cookie": server.sign_in()}
        html = server.ask("GET", "/p/web-app/saw", key=None, headers=headers).body.decode()
        listed = html[html.index("Given in this session") :]
        assert re.findall(r'<span class="badge">(\w+)</span>', listed) == ["Prompt", "Prompt", "Start"]
        for shown in ("pinned", "1 line", "nothing", "no memory that may be told fits it"):
            assert shown in listed, shown
        nothing = server.ask("GET", "/p/web-app/saw?session=fresh-1&receipt=r3", key=None, headers=headers)
        assert "was given: no memory that may be told fits it" in nothing.body.decode()


def test_the_list_to_judge_is_empty_where_no_conversation_waits(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        with server.memory() as memory:
            memory.remember("We use Express for the gateway service.", kind="decision")
            memory.remember("We do not use Express for the gateway service.", kind="decision")
        answer = server.ask("GET", "/p/web-app/inbox?tab=judge", headers={"Cookie": server.sign_in()}, key=None)
        assert answer.status == 200
        assert "No conversation waits for a judge" in answer.body.decode()


@pytest.mark.parametrize("coverage", [0.0, 0.25, 1.0])
def test_the_page_reads_coverage_back_as_the_score_has_it(coverage: float) -> None:
    assert words.reason("coverage", coverage_factor(coverage), None, {}) == f"{coverage:.0%} of what was asked"


def test_one_reason_says_why_nothing_was_given() -> None:
    asked = RecallReceipt(receipt="r1", at=START, question=Request(query="deploy", limit=5), words=("deploy",))
    miss = {"ref": "4", "uid": "u", "score": 1.0, "why": {}, "matched": {}, "reason": "fits too little"}
    out = {"ref": "7", "reason": "it was said in this session"}
    assert str(why_nothing(asked)) == "no memory that may be told fits it"
    assert str(why_nothing(replace(asked, words=()))) == "it has no word to search for"
    assert str(why_nothing(replace(asked, misses=(miss,)))) == "the nearest, [id:4], was held back: fits too little"
    told = why_nothing(replace(asked, misses=(miss,), left_out=(out,)))
    assert told is not None
    assert (told.ref, told.reason) == ("7", "it was said in this session")
    told = why_nothing(replace(asked, misses=(miss,), left_out=(out,), pinned=("7",)))
    assert told is not None
    assert told.ref == "4"
    assert why_nothing(replace(asked, hits=(miss,))) is None
