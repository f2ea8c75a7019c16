"""An agent is asked which findings of an earlier session hold: once for each list, and never where nobody is there."""

import json
from pathlib import Path

import pytest

from kept import tokens
from kept.entrypoints.hook import _in_time, stop
from kept.entrypoints.hook.agents import SILENT_VARIABLE
from kept.memory import asking
from kept.memory.effort import is_work
from kept.model import Message
from kept.text import without_delivered
from tests.hook.test_events import Desk, desk

__all__ = ["desk"]

ATTENDED = "CLAUDE_CODE_SESSION_ATTENDED"
ASKED = "Kept asks about the session"
TALK = [
    ("user", "Let's write the export of invoices. Amounts are integers in cents, the ledger refuses floats."),
    ("assistant", "Done: src/export.py writes them."),
    ("user", "For the file names we should take the customer number, not the name."),
    ("user", "Retries are limited to 3 attempts, the carrier bans us otherwise."),
]


def talk(desk: Desk, name: str = "earlier", *, is_over: bool = True) -> None:
    with desk.open() as memory:
        session = memory.session(name, agent="claude-code")
        for role, content in TALK:
            session.append(role, content)
        session.checkpoint()
        if is_over:
            session.finish()


@pytest.fixture
def attended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ATTENDED, "1")


@pytest.fixture
def at_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT_JUDGE", "stop")
    monkeypatch.setattr(asking, "WAIT_S", 0.0)


def work(desk: Desk, calls: int = 15) -> None:
    """Write the transcript of a session with tool calls."""
    lines = [{"type": "user", "uuid": "u1", "sessionId": "s-1", "message": {"role": "user", "content": "Go on."}}]
    for number in range(calls):
        part = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": f"make part{number}"}}
        message = {"role": "assistant", "content": [part]}
        lines.append({"type": "assistant", "uuid": f"a{number}", "sessionId": "s-1", "message": message})
    (desk.folder / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


# With the next session


@pytest.mark.usefixtures("attended")
def test_the_list_of_an_earlier_session_comes_with_the_start_of_the_next_one(desk: Desk) -> None:
    talk(desk)
    said = desk.fire("claude-code", "SessionStart")
    block = json.loads(said)["hookSpecificOutput"]["additionalContext"]
    assert block.count(ASKED) == 1
    assert "customer number" in block
    assert "Never push to main" in block, "beside the briefing"
    assert without_delivered(block).strip() == "", "so that it is not captured when it comes back"
    with desk.open() as memory:
        [given] = [one for one in memory.session("s-1").given() if one.moment == "judge"]
        assert given.block.count(ASKED) == 1
        assert ASKED not in next(one for one in memory.session("s-1").given() if one.moment == "start").block
        assert tokens.estimate(given.block) <= 800


@pytest.mark.usefixtures("attended")
def test_a_session_is_given_a_list_once(desk: Desk) -> None:
    talk(desk)
    assert ASKED in desk.fire("claude-code", "SessionStart")
    assert ASKED not in desk.fire("claude-code", "SessionStart")
    assert ASKED not in desk.fire("claude-code", "UserPromptSubmit")
    assert ASKED in desk.fire("claude-code", "SessionStart", session_id="another"), "nobody has answered"


@pytest.mark.usefixtures("attended")
def test_an_answer_ends_it_and_undo_brings_it_back(desk: Desk) -> None:
    talk(desk)
    desk.fire("claude-code", "SessionStart")
    with desk.open() as memory:
        asked = memory.proposals()
        memory.judge(asked.code, keep=[1], drop=[2])
    assert ASKED not in desk.fire("claude-code", "SessionStart", session_id="s-2")
    with desk.open() as memory:
        memory.undo()
    assert ASKED in desk.fire("claude-code", "SessionStart", session_id="s-3")


@pytest.mark.usefixtures("attended")
@pytest.mark.parametrize("source", ["resume", "compact"])
def test_a_start_that_goes_on_with_a_session_asks_nothing(desk: Desk, source: str) -> None:
    talk(desk)
    assert ASKED not in desk.fire("claude-code", "SessionStart", source=source)


def test_a_run_without_a_person_is_asked_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ATTENDED, "0")
    talk(desk)
    said = desk.fire("claude-code", "SessionStart") + "".join(
        desk.fire("claude-code", "UserPromptSubmit") for _ in "ab"
    )
    assert ASKED not in said


@pytest.mark.parametrize(
    ("agent", "event"), [("codex", "UserPromptSubmit"), ("gemini", "BeforeAgent"), ("copilot", "userPromptSubmitted")]
)
def test_where_nothing_tells_whether_a_person_is_there_the_list_comes_with_the_second_prompt(
    desk: Desk, agent: str, event: str
) -> None:
    talk(desk)
    assert ASKED not in desk.fire(agent, "sessionStart" if agent == "copilot" else "SessionStart")
    assert ASKED not in desk.fire(agent, event)
    assert ASKED in desk.fire(agent, event, prompt="and which port does it use?")
    assert ASKED not in desk.fire(agent, event, prompt="and which host?")


@pytest.mark.parametrize("settings", [{"KEPT_JUDGE": "off"}, {"KEPT_PROFILE": "praxis"}, {"KEPT_PROFILE": "koshi"}])
@pytest.mark.usefixtures("attended")
def test_where_nobody_judges_nothing_is_asked(
    desk: Desk, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    talk(desk)
    assert ASKED not in desk.fire("claude-code", "SessionStart")


@pytest.mark.usefixtures("attended")
def test_a_paused_project_asks_nothing(desk: Desk) -> None:
    talk(desk)
    with desk.open() as memory:
        memory.pauses.pause()
    assert ASKED not in desk.fire("claude-code", "SessionStart")


# At the stop


@pytest.mark.usefixtures("attended", "at_stop")
def test_a_working_session_is_asked_once_when_it_stops(desk: Desk) -> None:
    talk(desk, "s-1", is_over=False)
    work(desk)
    answer = json.loads(desk.fire("claude-code", "Stop"))
    block = answer["hookSpecificOutput"]["additionalContext"]
    assert answer["hookSpecificOutput"]["hookEventName"] == "Stop"
    assert ASKED in block
    assert "memory_judge" in block
    assert "tool search" in block
    assert without_delivered(block) == ""
    assert desk.fire("claude-code", "UserPromptSubmit", prompt=block) == "", "our own prompt hook knows it"
    assert desk.fire("claude-code", "Stop") == "", "never twice"
    assert desk.fire("claude-code", "Stop", stop_hook_active=True) == ""


@pytest.mark.usefixtures("attended", "at_stop")
def test_the_session_may_go_on_before_its_agent_answers(desk: Desk) -> None:
    talk(desk, "s-1", is_over=False)
    work(desk)
    desk.fire("claude-code", "Stop")
    with desk.open() as memory:
        [given] = [one for one in memory.session("s-1").given() if one.moment == "judge"]
        code = given.block.partition('list="')[2].partition('"')[0]
        session = memory.session("s-1")
        session.append("user", "The warehouse API rejects names that are longer than 40 characters.")
        session.checkpoint()
        done = memory.judge(code, keep=[1])
        assert memory.get(done.kept[0]).status == "confirmed"
        with pytest.raises(Exception, match="judged already"):
            memory.judge(code, keep=[1])


@pytest.mark.usefixtures("at_stop")
@pytest.mark.parametrize("agent", ["codex", "qwen"])
def test_other_agents_are_kept_from_stopping_if_somebody_has_spoken_twice(desk: Desk, agent: str) -> None:
    talk(desk, "s-1", is_over=False)
    records = [{"type": "response_item", "payload": {"type": "function_call", "name": "shell", "arguments": "{}"}}] * 15
    (desk.folder / "t.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    monkey = pytest.MonkeyPatch()
    monkey.setattr(stop, "has_worked", lambda *_: True)
    try:
        desk.fire(agent, "UserPromptSubmit")
        assert desk.fire(agent, "Stop") == "", "it may be a program that runs it"
        desk.fire(agent, "UserPromptSubmit", prompt="and which port?")
        answer = json.loads(desk.fire(agent, "Stop"))
        assert answer["decision"] == "block"
        assert ASKED in answer["reason"]
        assert desk.fire(agent, "Stop") == ""
    finally:
        monkey.undo()


@pytest.mark.usefixtures("at_stop")
@pytest.mark.parametrize(
    ("environment", "calls", "changes"),
    [
        ("0", 15, {}),
        ("1", 14, {}),
        ("1", 15, {"agent_id": "a1"}),
        ("1", 15, {"transcript_path": ""}),
        ("1", 15, {"stop_hook_active": True}),
    ],
)
def test_it_is_not_asked_without_a_person_without_work_or_in_a_sub_agent(
    desk: Desk, environment: str, calls: int, changes: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ATTENDED, environment)
    talk(desk, "s-1", is_over=False)
    work(desk, calls)
    assert desk.fire("claude-code", "Stop", **changes) == ""


@pytest.mark.usefixtures("attended")
def test_without_the_setting_nothing_is_asked_at_the_stop(desk: Desk) -> None:
    talk(desk, "s-1", is_over=False)
    work(desk)
    assert desk.fire("claude-code", "Stop") == ""


def ran(command: str, *, failed: bool) -> list[Message]:
    return [
        Message(id="c", role="tool_call", name="Bash", input={"command": command}),
        Message(id="c", role="tool_result", content="ok", is_error=failed),
    ]


def test_work_is_many_calls_an_objection_or_failures_that_ended_well() -> None:
    assert not is_work([Message(id="u", role="user", content="Add a test.", trust="user"), *ran("make", failed=False)])
    assert is_work([one for _ in range(15) for one in ran("make", failed=False)])
    assert is_work([Message(id="u", role="user", content="No, not like that.", trust="user")])
    failures = [one for _ in range(3) for one in ran("make", failed=True)]
    assert not is_work(failures)
    assert is_work([*failures, *ran("make", failed=False)])


# Silence


def test_an_agent_that_kept_runs_itself_hears_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SILENT_VARIABLE, "1")
    assert _in_time("claude-code", "SessionStart", 0.0) == ""
    assert not desk.pointers


def test_no_state_is_left_of_what_was_not_asked(desk: Desk) -> None:
    assert not list(Path(desk.folder / "home" / "hook").glob("asked/*"))
