"""The view "What the agent saw": every moment in words, and reasons that are true."""

import json
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape
from starlette.testclient import TestClient

import kept
from kept.anchors import ToolCall
from kept.entrypoints.http.keys import Keys
from kept.entrypoints.http.server import ServeOptions, make_app
from kept.entrypoints.web import draw, rows, saw, words
from kept.memory import deliver
from kept.memory.receipts import RecallReceipt
from kept.model import Actor, Memory, replace
from kept.recall import Request
from tests.builders import START
from tests.builders import memory as memory_of

PERSON = Actor(role="admin", name="user")
SESSION = "7b1f0c2e"


class Pages:
    """A project, and its pages without a server process."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project = folder / "home", folder / "web-app"
        (self.project / ".git").mkdir(parents=True)
        options = ServeOptions(home=str(self.home), project=str(self.project), port=7398, key="k")
        app = make_app(options, Keys(self.home, "k", role="admin"))
        self._client = TestClient(app, base_url="http://127.0.0.1:7398", headers={"Authorization": "Bearer k"})

    def memory(self, name: str = "claude-code", **more: Any) -> kept.Kept:
        if name == "user":
            more |= {"actor": PERSON, "origin": "user"}
        about = {"actor": Actor(name=name), "settings": {"auto_upkeep": False}} | more
        return kept.open(project=self.project, home=self.home, **about)

    def source(self, path: str, **headers: str) -> str:
        answer = self._client.get(f"/p/here/{path}", headers=headers)
        assert answer.status_code == 200
        return answer.text

    def shown(self, path: str, **headers: str) -> str:
        return unescape(self.source(path, **headers))

    def note_failure(self, at: datetime, failure: str) -> None:
        (self.home / "hook").mkdir(exist_ok=True)
        line = {"at": f"{at:%Y-%m-%dT%H:%M:%SZ}", "agent": "claude-code", "event": "UserPromptSubmit"}
        with (self.home / "hook" / "failures.jsonl").open("a") as log:
            log.write(json.dumps(line | {"failure": failure}) + "\n")


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    made = Pages(tmp_path)
    with made.memory() as memory:
        memory.remember("The build runs on Node 22.", kind="fact")
    return made


def listener(event: str, session: str = SESSION, *files: str) -> deliver.Listener:
    return deliver.Listener(session=session, event=event, files=files)


def given(**fields: object) -> RecallReceipt:
    asked = {"receipt": "r1", "at": START, "question": Request(query="")}
    return RecallReceipt(**(asked | fields))  # type: ignore[arg-type]


def test_a_redaction_is_set_apart_and_not_written_as_markup() -> None:
    shown = rows.redacted(escape("key <[redacted:password]> gone"))
    assert str(shown) == 'key &lt;<span class="redacted">[redacted:password]</span>&gt; gone'


def test_a_refused_call_says_so_in_the_title_and_in_the_list_and_offers_to_end_the_guard(pages: Pages) -> None:
    with pages.memory("user") as memory:
        said = "Never run deploy/release.sh on a Friday."
        ref = memory.remember(said, kind="warning", files=["deploy/release.sh"]).ref or ""
        memory.guard(ref, "stop")
    call = ToolCall((), ("bash deploy/release.sh",))
    with pages.memory() as memory:
        assert memory.deliveries.for_action(call, listener("PreToolUse")).refusal
    html = pages.shown("saw")
    assert html.count('<span class="badge refused">Refused</span>') == 2
    assert "The call was refused" in html
    assert "Bash deploy/release.sh" in html.partition("<h2>")[2].partition("</h2>")[0]
    assert 'name="verb" value="unguard"' in html
    assert words.GUARD in html
    assert "What would it see now" not in html
    with pages.memory() as memory:
        assert not memory.deliveries.for_action(call, listener("PreToolUse")).refusal
        again = memory.look().receipts(SESSION)[0].receipt
    html = pages.shown(f"saw?session={SESSION}&receipt={again}")
    assert "The call passed" in html
    assert "made again after a refusal" in html
    assert "nothing is stored" not in html


def test_the_command_of_a_call_and_the_words_of_a_failure_are_text(pages: Pages) -> None:
    evil = "<x-evil onevil=1> \u202e"
    with pages.memory("user") as memory:
        said = "Never run deploy/release.sh on a Friday."
        memory.guard(memory.remember(said, kind="warning", files=["deploy/release.sh"]).ref or "", "stop")
    with pages.memory() as memory:
        call = ToolCall((), (f"bash deploy/release.sh {evil}",))
        assert memory.deliveries.for_action(call, listener("PreToolUse")).refusal
    pages.note_failure(datetime.now(UTC), f"Failed {evil}")
    for view in ("saw", "health"):
        html = pages.source(view)
        assert "<x-evil" not in html
        assert "\u202e" not in html
        assert "&lt;x-evil onevil=1&gt; \\u202e" in html


@pytest.mark.parametrize(
    ("event", "moment", "said"),
    [
        ("PreToolUse", "action", "before a tool call"),
        ("BeforeTool", "action", "before a tool call"),
        ("tool.execute.before", "action", "at a tool call"),
        ("SubagentStart", "subagent", "to a sub-agent"),
        ("session.created", "start", "at the start of the session"),
        ("SessionStart", "judge", "at the start of the session"),
        ("Stop", "judge", "at the end of a turn"),
    ],
)
def test_no_moment_is_named_by_the_event_of_a_program(event: str, moment: str, said: str) -> None:
    assert words.when(given(event=event, moment=moment)) == said


def test_a_moment_without_a_question_is_named_by_its_call_its_file_or_its_list() -> None:
    sections = ({"name": "concerns", "entries": [{"ref": "1", "reason": "concerns src/vat.py; prompt: cent"}]},)
    assert words.occasion(given(moment="action", call="edit of src/vat.py")) == "Edit of src/vat.py"
    assert (
        words.occasion(given(kind="action", moment="action", sections=sections))
        == "A tool call that concerns src/vat.py"
    )
    assert words.occasion(given(moment="action")) == "A tool call"
    assert words.occasion(given(moment="judge", kind="judge", statements=4)) == "4 statements to judge"
    assert words.occasion(given(moment="start")) == "Start of the session"


def test_a_list_to_judge_is_no_empty_answer(pages: Pages) -> None:
    with pages.memory(hosted=True) as memory:
        session = memory.session("earlier", agent="claude-code")
        session.append("user", "Amounts are integers in cents, the ledger refuses floats.")
        session.append("user", "Retries are limited to 3 attempts, the carrier bans us otherwise.")
        session.finish()
        heard = replace(listener("SessionStart"), is_attended=True)
        assert "which of these statements" in memory.deliveries.at_start(heard)
        listed = next(one for one in memory.look().receipts(SESSION) if one.kind == "judge")
    html = pages.shown(f"saw?session={SESSION}&receipt={listed.receipt}")
    number = words.counted(listed.statements, "statement")
    assert listed.statements >= 2
    assert f"tokens, a list of {number} to judge" in " ".join(html.split())
    assert f"{number} to judge, of “Amounts are integers in cents" in html
    assert "inbox?tab=judge&session=earlier" in html
    assert "What would it see now" not in html
    assert 'class="trace"' not in html
    assert f'<b class="muted">a list of {listed.statements}</b>' in html


def test_the_texts_of_a_sub_agent_stand_in_the_list_of_the_session_that_started_it(pages: Pages) -> None:
    with pages.memory() as memory:
        memory.remember("The gateway waits for the nightly backup before a deploy.", kind="decision")
        said = "deploy the gateway after the nightly backup"
        assert memory.deliveries.for_prompt(said, listener("UserPromptSubmit"))
        assert memory.deliveries.for_subagent(said, listener("SubagentStart", f"{SESSION}.agent-a1"))
        assert memory.deliveries.for_prompt(said, listener("UserPromptSubmit", "other"))
    html = pages.shown(f"saw?session={SESSION}")
    listed = html.partition('data-swap="listed"')[2].partition("</section>")[0]
    assert [name for name in ("Sub-agent", "Prompt") if f">{name}</span>" in listed] == ["Sub-agent", "Prompt"]
    options = html.partition("<select")[2].partition("</select>")[0]
    assert options.count("<option") == 2
    assert "agent-a1" not in options
    assert pages.shown(f"saw?session={SESSION}.agent-a1") == html


def test_a_failed_hook_call_is_told_in_words_for_a_week(pages: Pages) -> None:
    now = datetime.now(UTC)
    pages.note_failure(now - timedelta(days=8), "Not done within 5 ms")
    for view in ("saw", "health"):
        assert "claude-code, a prompt" not in pages.shown(view)
    assert "Nothing is known to be wrong" in pages.shown("health")
    pages.note_failure(now, "Not done within 1 ms")
    said = "claude-code, a prompt: not done within 1 ms, so nothing was told"
    html = pages.shown("saw")
    assert html.count(said) == 1
    assert "UserPromptSubmit" not in html
    assert said in pages.shown("health")
    assert "1 thing to know" in pages.shown("health")
    assert "All is well" not in pages.shown("health?doctor=1")


def test_a_replay_does_not_call_a_memory_new_that_the_session_was_told_before(pages: Pages) -> None:
    with pages.memory("user") as memory:
        memory.remember("Answers are short.", kind="preference", pin=True)
        memory.remember("The gateway waits for the nightly backup before a deploy.", kind="decision")
    with pages.memory() as memory:
        assert memory.deliveries.at_start(listener("SessionStart"))
        assert memory.deliveries.for_prompt("deploy the gateway after the backup?", listener("UserPromptSubmit"))
    html = pages.shown(f"saw?session={SESSION}&replay=1")
    shown = html.partition("What it would see now</h2>")[2].partition("</section>")[0]
    assert "told earlier in this session" in shown
    assert 'class="add"' not in shown


def test_a_reason_has_the_words_of_the_memory_or_the_question_and_no_form_of_a_search() -> None:
    memory = memory_of("The table is empty after psycopg.errors.DeadlockDetected.")
    stems = ("empti", "psycopgerrorsdeadlockdetect", "deadlockdetect", "advisori", "vatpi")
    matched = dict.fromkeys(stems, "asked for")
    said = words.reason("match", 8.0, memory, matched, "Which advisory lock?")
    assert said == "empty, psycopg.errors.DeadlockDetected, advisory"


def test_a_match_by_no_telling_word_says_so() -> None:
    assert words.reason("match", 0.7, memory_of("x"), {}, "What is the weather?") == "only everyday words"


def test_the_numbers_of_an_axis_do_not_touch_that_of_the_floor() -> None:
    why = {"match": 60.0}
    for floor in (10.7, 2.7, 15.0, 30.0):
        axis = draw.axis_of([why], floor=floor)
        assert axis.floor_x is not None
        assert all(abs(x - axis.floor_x) >= draw.LABEL_WIDTH for _, x in axis.labels)
    assert draw.axis_of([why]).labels == draw.axis_of([why]).ticks


def test_of_a_summary_the_lines_are_shown_that_were_given() -> None:
    summary = replace(memory_of("- Asked: x?\n- We export one line per position.\n- Open: y"), kind="summary")
    block = "<a>\n<memory>[id:80] - We export one line per position.</memory>\n</a>"
    lines, said = saw._lines(block, {"80": "earlier"})
    row = saw._as_given(row_of(summary), said)
    assert len(lines) == 3
    assert (row.text, row.because) == ("We export one line per position.", "summary of c1; 1 of 3 lines given")
    whole = {"80": summary.content.split("\n")}
    assert saw._as_given(row_of(summary), whole) == row_of(summary)


def row_of(memory: Memory) -> rows.ShownRow:
    return replace(rows.plain(memory, "80"), because="summary of c1")
