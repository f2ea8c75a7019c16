"""An agent is asked once in a session to store what rules could not phrase, if a person wants that."""

import json
from typing import Any

import pytest

from kept.entrypoints.hook.agents import MAY_BE_NUDGED
from kept.memory.unsaid import HUNT, OBJECTION, last_turn, worth_asking
from kept.model import Message
from tests.hook.test_events import Desk, desk

__all__ = ["desk"]


def user(content: str) -> Message:
    return Message(id="u1", role="user", content=content)


def ran(command: str, output: str, *, failed: bool) -> list[Message]:
    return [
        Message(id="c", role="tool_call", name="Bash", input={"command": command}),
        Message(id="c", role="tool_result", content=output, is_error=failed),
    ]


@pytest.fixture
def nudging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT_NUDGE", "once")


def say(desk: Desk, content: str) -> None:
    record = {"type": "user", "uuid": "u1", "sessionId": "s-1", "message": {"role": "user", "content": content}}
    (desk.folder / "t.jsonl").write_text(json.dumps(record) + "\n")


@pytest.mark.parametrize("said", ["No, not like that.", "That's still wrong.", "Nein, so war das nicht gemeint."])
def test_an_objection_that_says_nothing_by_itself_is_worth_asking(said: str) -> None:
    assert worth_asking([user(said), *ran("make", "ok", failed=False)]) == OBJECTION


@pytest.mark.parametrize(
    "said",
    [
        "No problem, go ahead.",
        "Add a test for the parser.",
        "No, use tabs instead of spaces in the Makefile.",  # which is kept as it is said
        "",
    ],
)
def test_nothing_to_ask(said: str) -> None:
    assert worth_asking([user(said), *ran("make", "ok", failed=False)]) == ""


def test_a_long_hunt_that_ended_well_is_worth_asking_unless_the_agent_stored_it() -> None:
    tried = [one for name in "abc" for one in ran(f"./{name}.sh", "it does not work", failed=True)]
    turn = [user("Make it work"), *tried, *ran("./d.sh", "fine", failed=False)]
    assert worth_asking(turn) == HUNT
    assert worth_asking(turn[:-2]) == "", "it did not end well"
    stored = Message(id="m", role="tool_call", name="mcp__kept__memory_store", input={"content": "x"})
    assert worth_asking([*turn, stored]) == ""


def test_only_the_last_turn_counts() -> None:
    assert last_turn([user("No, wrong."), *ran("ls", "", failed=False), user("Thanks")]) == [user("Thanks")]


@pytest.mark.usefixtures("nudging")
@pytest.mark.parametrize("agent", ["claude-code"])
def test_it_is_asked_once_and_never_while_a_hook_keeps_the_agent_going(desk: Desk, agent: str) -> None:
    say(desk, "No, not like that.")
    assert desk.fire(agent, "Stop", stop_hook_active=True) == ""
    answer = json.loads(desk.fire(agent, "Stop"))
    assert answer.keys() == {"decision", "reason"}
    assert answer["reason"].startswith("<kept-memory>\n"), "so it is not captured when it comes back"
    assert "memory_store" in answer["reason"]
    assert desk.fire(agent, "Stop") == ""
    assert desk.fire(agent, "Stop", session_id="another") != ""
    assert len(desk.pointers) == 4, "the turn is taken in all the same"


def test_it_is_off_unless_somebody_wants_it(desk: Desk) -> None:
    say(desk, "No, not like that.")
    assert desk.fire("claude-code", "Stop") == ""


@pytest.mark.usefixtures("nudging")
@pytest.mark.parametrize("agent", ["cursor", "opencode", "openhands"])
def test_an_agent_that_could_loop_is_never_asked(desk: Desk, agent: str) -> None:
    say(desk, "No, not like that.")
    event = {"cursor": "stop", "opencode": "session.idle", "openhands": "Stop"}[agent]
    assert agent not in MAY_BE_NUDGED
    assert desk.fire(agent, event, transcript_path=str(desk.folder / "t.jsonl")) == ""


@pytest.mark.usefixtures("nudging")
@pytest.mark.parametrize("changes", [{"transcript_path": "/there/is/none"}, {"stop_hook_active": None}])
def test_what_fails_or_is_missing_asks_nothing(desk: Desk, changes: dict[str, Any]) -> None:
    say(desk, "No, not like that.")
    assert desk.fire("claude-code", "Stop", **changes) == ""


@pytest.mark.usefixtures("nudging")
def test_a_paused_project_asks_nothing(desk: Desk) -> None:
    say(desk, "No, not like that.")
    with desk.open() as memory:
        memory.pauses.pause()
    assert desk.fire("claude-code", "Stop") == ""
