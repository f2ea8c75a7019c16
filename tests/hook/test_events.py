"""What each agent is answered at each event: its own form, the right text, and nothing where nothing is wanted.

C16, B9, C26: what holds is there when a session starts, what fits is there at a prompt, a known fix after an error.
"""

import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kept
from kept.entrypoints.hook import events
from kept.entrypoints.hook.agents import AGENTS
from kept.entrypoints.hook.events import Occasion
from kept.memory import deliver
from kept.memory.opening import open_projects
from tests.hook.inputs import FAILURE, INPUTS, PROMPT

DEPLOY = "Deploy the billing service with make ship, because CI has no key"
FIX = "start it with docker compose up db"
ALL = [(agent, event) for agent, inputs in INPUTS.items() for event in inputs]
AT_CALLS = ("action", "result", "subagent")  # test_actions.py has these
EARLY = [(agent, event) for agent, event in ALL if AGENTS[agent].events[event] not in AT_CALLS]


class Desk:
    """A project with a memory, and the hooks of an agent that works there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.project.mkdir()
        self.pointers: list[dict[str, Any]] = []

    def open(self) -> kept.Kept:
        return kept.open(project=self.project, home=self.folder / "home", settings=kept.Settings())

    def fire(self, agent: str, event: str, **changes: Any) -> str:
        """Run the hook in this process; what it printed."""
        given = json.dumps({**INPUTS[agent][event], **changes})
        given = given.replace("PROJECT", str(self.project)).replace("TRANSCRIPT", str(self.folder / "t.jsonl"))
        occasion = Occasion(agent, event)
        occasion.run(io.BytesIO(given.encode()))
        return occasion.said


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KEPT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KEPT_CONFIG", str(tmp_path / "config.toml"))
    for name in ("KEPT_PROJECT", "CLAUDE_PROJECT_DIR", "KEPT_SESSION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(events, "start_later", lambda pointer: desk.pointers.append(dict(pointer)))
    with desk.open() as memory:
        memory.remember(DEPLOY, kind="decision")
        memory.remember("Office plants are watered on Mondays")
        memory.pin(memory.remember("Never push to main", kind="warning").ref or "")
        memory.knowledge.add_failure(FAILURE, FIX)
    return desk


def block_of(agent: str, event: str, said: str) -> str:
    """The text for the model, where this agent looks for it."""
    answer = json.loads(said)
    if agent in ("claude-code", "codex", "gemini", "qwen"):
        assert answer.keys() == {"hookSpecificOutput"}
        inner = answer["hookSpecificOutput"]
        assert inner.keys() == {"hookEventName", "additionalContext"}  # Codex refuses any other key
        assert inner["hookEventName"] == event  # Claude Code drops everything if it is another one
        return str(inner["additionalContext"])
    name = "additional_context" if agent == "cursor" else "additionalContext"
    assert answer.keys() == {name}
    return str(answer[name])


def test_there_is_an_input_of_every_event_of_every_agent() -> None:
    for agent, known in AGENTS.items():
        missing = set(known.events) - set(INPUTS[agent])
        seen_in_no_program = {
            "copilot": {
                *("postToolUseFailure", "PostToolUseFailure", "PreCompact", "PostCompact", "SessionEnd"),
                *("PreToolUse", "PostToolUse"),
            },
            "cursor": {"sessionEnd"},
            "opencode": {"session.deleted"},
        }
        assert missing <= seen_in_no_program.get(agent, set()), agent
        assert set(known.takes) <= set(known.events)


@pytest.mark.parametrize(("agent", "event"), EARLY)
def test_every_agent_is_answered_in_its_own_form_or_not_at_all(desk: Desk, agent: str, event: str) -> None:
    said = desk.fire(agent, event)
    kind = AGENTS[agent].events[event]
    if event not in AGENTS[agent].takes:
        assert said == ""
        return
    block = block_of(agent, event, said)
    assert block.startswith("<kept-memory>\n")
    assert block.endswith("\n</kept-memory>")
    expected = {"start": "Never push to main", "prompt": DEPLOY, "failure": FIX}[kind]
    assert expected in block
    assert "Office plants" not in block
    assert len(block) <= deliver.MAX_CHARS
    if kind == "prompt":
        assert desk.fire(agent, event) == "", "a session is told a line once"
    elif kind == "start":
        assert desk.fire(agent, event) == said, "a context that begins is told what always holds, byte for byte"


@pytest.mark.parametrize(("agent", "event"), ALL)
def test_a_transcript_is_pointed_at_when_a_turn_or_a_session_ends(desk: Desk, agent: str, event: str) -> None:
    desk.fire(agent, event)
    kind = AGENTS[agent].events[event]
    if kind in ("prompt", "failure", *AT_CALLS):
        assert desk.pointers == [], "an agent waits for these, so nothing else is started"
        return
    [pointer] = desk.pointers
    assert pointer["agent"] == agent
    assert pointer["session"] == "s-1"
    assert pointer["cwd"] == str(desk.project)
    assert "failure" not in pointer
    assert PROMPT not in json.dumps(pointer)


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "   \n",
        "<task-notification>\n<summary>Agent deploy billing finished</summary>",
        f"<kept-memory>\n{DEPLOY}\n</kept-memory>",
    ],
)
def test_what_no_person_typed_gets_no_briefing(desk: Desk, prompt: str) -> None:
    assert desk.fire("claude-code", "UserPromptSubmit", prompt=prompt) == ""


def test_geminis_own_wrapper_around_what_we_said_is_not_part_of_the_prompt(desk: Desk) -> None:
    wrapped = f"<hook_context><kept-memory>\n{DEPLOY}\n</kept-memory></hook_context>\n\nwhat is the weather like"
    plain = desk.fire("gemini", "BeforeAgent", prompt="what is the weather like")
    assert desk.fire("gemini", "BeforeAgent", prompt=wrapped) == plain


def test_an_interrupted_tool_and_a_new_error_are_answered_with_nothing(desk: Desk) -> None:
    assert desk.fire("claude-code", "PostToolUseFailure", is_interrupt=True) == ""
    assert desk.fire("claude-code", "PostToolUseFailure", error="KeyError: 'colour' in palette.py") == ""


def test_a_command_that_failed_in_gemini_is_an_error_although_the_tool_worked(desk: Desk) -> None:
    report = f"<untrusted_context>\nOutput: {FAILURE}\nExit Code: EXIT\nProcess Group PGID: 1\n</untrusted_context>"
    for code, expected in (("3", True), ("0", False)):
        response = {"llmContent": report.replace("EXIT", code), "returnDisplay": ""}
        assert (FIX in desk.fire("gemini", "AfterTool", tool_response=response)) is expected


def test_a_paused_project_is_given_nothing(desk: Desk) -> None:
    with desk.open() as memory:
        memory.pauses.pause()
    for event in ("SessionStart", "UserPromptSubmit", "PostToolUseFailure"):
        assert desk.fire("claude-code", event) == ""


def test_what_fails_is_reported_without_a_word_of_the_prompt(desk: Desk) -> None:
    assert desk.fire("claude-code", "UserPromptSubmit", cwd="/there/is/no/such/folder") == ""
    [pointer] = desk.pointers
    assert pointer["failure"].startswith("NotFound: ")
    assert PROMPT not in json.dumps(pointer)
    occasion = Occasion("claude-code", "UserPromptSubmit")
    occasion.run(io.BytesIO(b'{"prompt": "secret words"'))
    assert occasion.said == ""
    assert desk.pointers[-1]["failure"] == "JSONDecodeError"


@pytest.mark.parametrize("form", ["project/{id}", "{id}", "{name}", "project\\{id}", "~/project", "~"])
@pytest.mark.parametrize("agent", ["claude-code", "codex", "qwen"])
def test_the_cwd_of_an_event_is_a_directory_and_never_names_a_project(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, agent: str, form: str
) -> None:
    [known] = open_projects(desk.folder / "home").list_projects()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    given = form.format(id=known.id, name=known.name)
    assert DEPLOY not in desk.fire(agent, "UserPromptSubmit", cwd=given)
    desk.fire(agent, "Stop", cwd=given)
    for pointer in desk.pointers:
        found = None
        with contextlib.suppress(kept.errors.KeptError):
            found = open_projects(desk.folder / "home").find(pointer["cwd"] or str(tmp_path / "elsewhere"))
        assert found is None
    if "/" in given and "~" not in given:  # a directory of that name is one like any other
        (tmp_path / "elsewhere" / given).mkdir(parents=True)
        with kept.open(project=tmp_path / "elsewhere" / given, home=desk.folder / "home") as memory:
            memory.remember("Deploy the billing service from the folder itself", kind="decision")
        assert "from the folder itself" in desk.fire(agent, "UserPromptSubmit", cwd=given)


def test_the_project_is_that_of_the_variables_or_of_the_input(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert DEPLOY in desk.fire("claude-code", "UserPromptSubmit")
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(desk.project))
    assert DEPLOY in desk.fire("claude-code", "UserPromptSubmit", cwd="/", session_id="s-2")
    other = {"cwd": "/", "session_id": "s-3"}
    assert desk.fire("codex", "UserPromptSubmit", **other) == "", "the variable of another agent says nothing"
    monkeypatch.setenv("KEPT_PROJECT", str(desk.project))
    assert DEPLOY in desk.fire("codex", "UserPromptSubmit", **other)


def test_a_pinned_memory_is_no_reason_to_speak_but_comes_along_when_it_fits(desk: Desk) -> None:
    assert "Never push to main" in desk.fire("claude-code", "UserPromptSubmit", prompt="may I push to main")


def test_after_a_compaction_an_agent_is_told_what_it_said_before(desk: Desk) -> None:
    """It is no longer in its context: at once when the session starts again, or at a prompt that it fits."""
    prompt = "which queue do we use for outgoing mail?"
    with desk.open() as memory:
        session = memory.session("s-1", agent="claude-code")
        session.append("user", "We decided to use the zebrafish queue for outgoing mail, because the old one lost it.")
        session.checkpoint()
    assert "zebrafish" not in desk.fire("claude-code", "SessionStart", source="resume")
    assert "zebrafish" not in desk.fire("claude-code", "UserPromptSubmit", prompt=prompt)
    assert "zebrafish" in desk.fire("claude-code", "SessionStart", source="compact")
    assert "zebrafish" in desk.fire("opencode", "experimental.session.compacting")
    with desk.open() as memory:
        memory.session("s-1").flush()
    assert "zebrafish" not in desk.fire("claude-code", "UserPromptSubmit", prompt=prompt), "the start has said it"
    with desk.open() as memory:
        memory.deliveries.on_compaction(deliver.Listener(session="s-1", event="PostCompact"))
    assert "zebrafish" in desk.fire("claude-code", "UserPromptSubmit", prompt=prompt)
