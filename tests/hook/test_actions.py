"""Tool calls and sub-agents at every agent: what is read from the input, and where the answer goes."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

import kept
from kept.entrypoints.hook import work
from kept.entrypoints.hook.agents import AGENTS, refusal_of
from kept.entrypoints.hook.folder import HookFolder
from kept.entrypoints.hook.places import is_agents_own
from kept.entrypoints.hook.tool_calls import call_of, failure_of, task_of
from kept.entrypoints.hook.wire import decoded, encoded
from kept.memory.told import told_in
from tests.hook.inputs import COMMAND, FAILURE, FILE, INPUTS, NEW_TEXT, PATCH, PROMPT, TASK
from tests.hook.test_events import DEPLOY, FIX, Desk, block_of
from tests.hook.test_events import desk as desk

RULE = "Never raise RETRIES above 3 in src/billing/ship.py, because the gateway bans us"
BEFORE = [(agent, event) for agent in INPUTS for event in INPUTS[agent] if AGENTS[agent].events[event] == "action"]
AFTER = [(agent, event) for agent in INPUTS for event in INPUTS[agent] if AGENTS[agent].events[event] == "result"]
TOLD_AFTER = {"gemini": "AfterTool", "qwen": "PostToolUse", "opencode": "tool.execute.after"}


@pytest.fixture
def ruled(desk: Desk) -> Desk:
    with desk.open() as memory:
        memory.remember(RULE, kind="warning")
    return desk


# The call in an input


@pytest.mark.parametrize(("agent", "event"), BEFORE)
def test_an_edit_is_read_from_the_fields_of_each_agent(agent: str, event: str) -> None:
    call = call_of(INPUTS[agent][event])
    assert call is not None
    assert call.files in ((FILE,), ("src/billing/ship.py",))
    assert call.commands == ()
    assert call.text.strip() == NEW_TEXT.strip()


@pytest.mark.parametrize(
    ("tool", "arguments", "files", "commands", "text"),
    [
        ("Write", {"file_path": "/p/a.py", "content": "x = 1"}, ("/p/a.py",), (), "x = 1"),
        ("NotebookEdit", {"notebook_path": "/p/n.ipynb", "new_source": "y"}, ("/p/n.ipynb",), (), "y"),
        (
            "MultiEdit",
            {"file_path": "/p/a.py", "edits": [{"new_string": "one"}, {"new_string": "two"}]},
            ("/p/a.py",),
            (),
            "one\ntwo",
        ),
        ("Bash", {"command": "git push --force"}, (), ("git push --force",), ""),
        ("shell", {"command": ["bash", "-lc", "npm test"]}, (), ("npm test",), ""),
        ("Bash", {"command": f"apply_patch <<'EOF'\n{PATCH}EOF\n"}, ("src/billing/ship.py",), (), NEW_TEXT.strip()),
        (
            "Bash",
            {"command": f"cd x && apply_patch <<'E'\n{PATCH}E"},
            ("src/billing/ship.py",),
            ("cd x &&",),
            "RETRIES = 3",
        ),
    ],
)
def test_edits_writes_patches_and_commands_are_calls(
    tool: str, arguments: dict[str, Any], files: tuple[str, ...], commands: tuple[str, ...], text: str
) -> None:
    for given in ({"tool_name": tool, "tool_input": arguments}, {"toolName": tool, "toolArgs": json.dumps(arguments)}):
        call = call_of(given)
        assert call is not None
        assert (call.files, call.commands, call.text) == (files, commands, text)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"tool_name": "Read", "tool_input": {"file_path": "/p/a.py"}},
        {"tool_name": "mcp__kept__memory_query", "tool_input": {"query": "x"}},
        {"tool_name": "Bash"},
        {"tool_name": "Bash", "tool_input": {"command": 7}},
        {"tool_name": "Edit", "tool_input": "not JSON"},
        {"tool_name": ["Edit"], "tool_input": {"file_path": "/p/a.py"}},
    ],
)
def test_reading_and_odd_inputs_are_no_calls(given: dict[str, Any]) -> None:
    assert call_of(given) is None


def test_a_patch_names_all_its_files() -> None:
    patch = (
        "*** Begin Patch\n*** Add File: a b.py\n+x\n*** Delete File: c.py\n*** Update File: d.py\n*** Move to: e.py\n"
    )
    call = call_of({"tool_name": "apply_patch", "tool_input": {"command": patch + "@@\n-old\n+new\n*** End Patch"}})
    assert call is not None
    assert (call.files, call.text) == (("a b.py", "c.py", "d.py", "e.py"), "x\nnew")


@pytest.mark.parametrize(("code", "failed"), [("0", False), ("1", True), ("127", True), ("-1", True)])
def test_a_failure_is_read_from_a_result_that_has_an_exit_code(code: str, failed: bool) -> None:
    shown = f"{FAILURE}\n<shellId: 3 completed with exit code {code}>"
    given = {"toolName": "bash", "toolResult": {"resultType": "success", "textResultForLlm": shown}}
    assert (FAILURE in failure_of("copilot", "result", given)) is failed
    report = f"Output: {FAILURE}\nExit Code: {code}\nSignal: (none)"
    assert (FAILURE in failure_of("gemini", "result", {"tool_response": {"llmContent": report}})) is failed


def test_codex_tells_no_exit_code_so_its_output_has_to_read_like_an_error() -> None:
    given = {"tool_name": "Bash", "tool_input": {"command": "x"}, "tool_response": FAILURE}
    assert failure_of("codex", "result", given) == FAILURE
    assert failure_of("codex", "result", given | {"tool_response": "12 passed"}) == ""
    assert failure_of("codex", "result", given | {"tool_name": "apply_patch"}) == ""


# The answer


@pytest.mark.parametrize(("agent", "event"), BEFORE)
def test_a_rule_comes_with_the_edit_it_concerns_once_and_by_the_hook_that_the_agent_listens_to(
    ruled: Desk, agent: str, event: str
) -> None:
    said = ruled.fire(agent, event)
    if agent in TOLD_AFTER:
        assert said == "", "it drops a text that is given before the call"
        changes = {
            key: INPUTS[agent][event][key]
            for key in ("tool_name", "tool_input", "tool", "args")
            if key in INPUTS[agent][event]
        }
        about = {**changes, "tool_response": {}, "error": ""}
        event = TOLD_AFTER[agent]
        said = ruled.fire(agent, event, **about)
        again = ruled.fire(agent, event, **about)
    else:
        again = ruled.fire(agent, event)
    assert RULE in block_of(agent, event, said)
    assert again == ""


def test_lines_at_tool_calls_can_be_switched_off(ruled: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT_ACTION_LINES", "0")
    assert ruled.fire("claude-code", "PreToolUse") == ""
    monkeypatch.delenv("KEPT_ACTION_LINES")
    assert RULE in ruled.fire("claude-code", "PreToolUse")


@pytest.mark.parametrize(("agent", "event"), AFTER)
def test_a_call_that_no_memory_concerns_is_answered_with_nothing(ruled: Desk, agent: str, event: str) -> None:
    about = {
        "tool_name": "Edit",
        "tool": "edit",
        "toolName": "edit",
        "error": "",
        "tool_response": "",
        "toolResult": {},
    }
    place = {"file_path": "/elsewhere/other.txt", "new_string": "x"}
    assert ruled.fire(agent, event, **about, tool_input=place, toolArgs=place, args=place) == ""


@pytest.mark.parametrize(("agent", "event"), [pair for pair in AFTER if pair[0] != "qwen"])
def test_a_failing_command_is_answered_with_its_known_fix(ruled: Desk, agent: str, event: str) -> None:
    assert FIX in block_of(agent, event, ruled.fire(agent, event))


@pytest.mark.parametrize(
    ("agent", "event", "expected"),
    [
        ("claude-code", "PreToolUse", {"permissionDecision": "deny", "permissionDecisionReason": "R"}),
        ("codex", "PreToolUse", {"permissionDecision": "deny", "permissionDecisionReason": "R"}),
        ("qwen", "PreToolUse", {"permissionDecision": "deny", "permissionDecisionReason": "R"}),
        ("copilot", "preToolUse", {"permissionDecision": "deny", "permissionDecisionReason": "R"}),
        ("gemini", "BeforeTool", {"decision": "deny", "reason": "R"}),
        ("opencode", "tool.execute.before", {"refusal": "R"}),
    ],
)
def test_a_call_is_refused_in_the_form_of_each_agent_and_never_with_a_question(
    agent: str, event: str, expected: dict[str, str]
) -> None:
    answer = json.loads(refusal_of(agent, event, "R"))
    if agent in ("claude-code", "codex", "qwen"):
        assert answer["hookSpecificOutput"].pop("hookEventName") == event
        answer = answer["hookSpecificOutput"]
    assert answer == expected
    assert refusal_of(agent, event, "") == ""


@pytest.mark.parametrize(("agent", "event"), BEFORE)
def test_a_guarded_call_is_refused_once_before_it_and_passes_the_second_time(
    desk: Desk, agent: str, event: str
) -> None:
    with desk.open() as memory:
        ref = memory.remember(RULE, kind="warning").ref or ""
    with kept.open(project=desk.project, home=desk.folder / "home", origin="user") as memory:
        memory.guard(ref, "stop")
    answer = json.loads(desk.fire(agent, event))
    answer = answer.get("hookSpecificOutput", answer)
    reason = answer.get("permissionDecisionReason") or answer.get("reason") or answer.get("refusal")
    assert RULE in reason
    assert "additionalContext" not in answer
    again = desk.fire(agent, event)
    assert "deny" not in again
    assert "refusal" not in again


# Sub-agents


@pytest.mark.parametrize("tool", ["Agent", "Task"])
def test_a_sub_agent_is_told_about_the_task_that_it_was_given(desk: Desk, tool: str) -> None:
    assert desk.fire("claude-code", "PreToolUse", tool_name=tool, tool_input={"prompt": TASK}) == ""
    said = desk.fire("claude-code", "SubagentStart")
    assert DEPLOY in block_of("claude-code", "SubagentStart", said)
    assert desk.fire("claude-code", "SubagentStart", agent_id="a2") == "", "the next one has another task"


@pytest.mark.parametrize(
    ("agent", "event", "changes"),
    [
        ("codex", "UserPromptSubmit", {"prompt": TASK, "agent_id": "a1", "agent_type": "default"}),
        ("copilot", "userPromptSubmitted", {"prompt": TASK, "agentId": "a1", "parentAgentId": "p"}),
        ("opencode", "session.child", {}),
    ],
)
def test_a_task_that_comes_as_a_prompt_is_answered_as_one_of_a_sub_agent(
    desk: Desk, agent: str, event: str, changes: dict[str, str]
) -> None:
    assert DEPLOY in block_of(agent, event, desk.fire(agent, event, **changes))
    with desk.open() as memory:
        told = told_in(memory._context, "s-1" if agent == "opencode" else "s-1.agent-a1")
    assert told.at("subagent")


def test_a_sub_agent_is_told_a_rule_that_its_parent_was_told_before(ruled: Desk) -> None:
    """It has a context of its own, in which nothing has been said."""
    assert RULE in ruled.fire("claude-code", "PreToolUse")
    assert RULE in ruled.fire("claude-code", "PreToolUse", agent_id="a1")
    assert ruled.fire("claude-code", "PreToolUse", agent_id="a1") == ""


def test_a_sub_agent_of_a_paused_session_is_told_nothing(ruled: Desk) -> None:
    with ruled.open() as memory:
        memory.pauses.pause("s-1")
    assert ruled.fire("claude-code", "PreToolUse", agent_id="a1") == ""


def test_tasks_are_taken_in_the_order_in_which_they_were_given(tmp_path: Path) -> None:
    (tmp_path / "hook").mkdir()
    for task in ("first\nline two", "second"):
        work.note_task(str(tmp_path), "s", task)
    assert [work.take_task(str(tmp_path), "s") for _ in range(3)] == ["first\nline two", "second", ""]
    assert task_of({"tool_name": "spawn_agent", "tool_input": {"message": "x"}}) == "x"
    assert task_of({"tool_name": "Bash", "tool_input": {"prompt": "x"}}) == ""


def test_a_task_leaves_no_trace_once_it_is_taken_and_is_cut(tmp_path: Path) -> None:
    (tmp_path / "hook").mkdir()
    work.note_task(str(tmp_path), "s", "x" * 5_000)
    [file] = (tmp_path / work.FOLDER).iterdir()
    assert file.stat().st_mode & 0o077 == 0
    assert work.take_task(str(tmp_path), "s") == "x" * 2_000
    assert list((tmp_path / work.FOLDER).iterdir()) == []


@pytest.mark.parametrize(
    "cue", ["PASSWORD", "passwd", "Secret", "token", "API key", "API_KEY", "ApiKey", "credentials"]
)
def test_a_task_that_may_hold_a_secret_is_not_noted(tmp_path: Path, cue: str) -> None:
    (tmp_path / "hook").mkdir()
    work.note_task(str(tmp_path), "s", f"{'x' * 3_000} log in with the {cue} hunter2")
    work.note_task(str(tmp_path), "s", "the next one")
    [file] = (tmp_path / work.FOLDER).iterdir()
    assert "xxx" not in file.read_text()
    assert "hunter2" not in file.read_text()
    assert [work.take_task(str(tmp_path), "s") for _ in range(2)] == ["", "the next one"]


def test_tasks_that_nobody_took_are_deleted_after_two_days(tmp_path: Path) -> None:
    (tmp_path / "hook").mkdir()
    for session, days in (("old", 2.1), ("new", 1.9)):
        work.note_task(str(tmp_path), session, f"the {session} task")
        [file] = [one for one in (tmp_path / work.FOLDER).iterdir() if session in one.read_text()]
        at = time.time() - days * 86_400
        os.utime(file, (at, at))
    HookFolder(tmp_path).forget_old()
    [left] = (tmp_path / work.FOLDER).iterdir()
    assert "new" in left.read_text()


# The work of a session


def test_the_files_of_the_last_calls_are_known_and_old_ones_are_forgotten(tmp_path: Path) -> None:
    home = str(tmp_path)
    for number in range(2_000):
        work.note_files(home, "s", (f"/p/{number}.py",))
    assert work.files_of(home, "s")[:2] == ("/p/1999.py", "/p/1998.py")
    assert len(work.files_of(home, "s")) == work.MOST_FILES
    assert work.files_of(home, "other") == ()
    [file] = (tmp_path / "hook" / "recent").iterdir()
    assert file.stat().st_size <= work.MOST_BYTES + 100
    assert file.stat().st_mode & 0o077 == 0
    old = time.time() - work.KEPT_SECONDS - 60
    os.utime(file, (old, old))
    assert work.files_of(home, "s") == ()


def test_a_home_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    work.note_files(str(tmp_path / "away"), "s", ("/p/a.py",))
    assert not (tmp_path / "away").exists()


def test_a_call_is_noted_also_if_no_memory_concerns_it(desk: Desk) -> None:
    desk.fire("claude-code", "PreToolUse")
    assert work.files_of(str(desk.folder / "home"), "s-1") == (FILE.replace("PROJECT", str(desk.project)),)


# Jobs that an agent runs for itself


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"])
def test_an_agents_own_jobs_are_given_nothing_and_leave_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    own = desk.folder / "codex-home" / "memories_v2"
    own.mkdir(parents=True)
    monkeypatch.setenv("CODEX_HOME", str(own.parent))
    before = sorted((desk.folder / "home" / "projects").iterdir())
    assert desk.fire("codex", event, cwd=str(own)) == ""
    assert desk.pointers == []
    assert sorted((desk.folder / "home" / "projects").iterdir()) == before


def test_the_users_work_in_a_folder_of_an_agent_is_not_the_agents_own(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    assert is_agents_own("codex", f"{tmp_path}/.codex", environ)
    assert is_agents_own("codex", f"{tmp_path}/.codex/memories/x", environ)
    assert not is_agents_own("codex", f"{tmp_path}/.codex/worktrees/1/shop", environ)
    assert not is_agents_own("codex", f"{tmp_path}/.codexes", environ)
    assert not is_agents_own("claude-code", f"{tmp_path}/.codex", environ)
    assert not is_agents_own("opencode", str(tmp_path), environ)


# JSON


@pytest.mark.parametrize("text", ['{"a": [1, -2.5e3, true, null, "\\u00e9\\n"]}', " {} ", '"x"', "[]", "\n7\t"])
def test_json_is_read_and_written_as_by_the_library(text: str) -> None:
    assert decoded(text) == json.loads(text)
    value = {"a": ['é\n"', {"b": "\ud800"}], PROMPT: COMMAND}
    assert encoded(value) == json.dumps(value)


@pytest.mark.parametrize("text", ["", "{", "{} x", "nul", '{"a": \x01"}', "[1,]"])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        decoded(text)


def test_a_file_behind_a_link_is_named_by_its_real_path(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    given = {"tool_name": "Edit", "tool_input": {"file_path": str(tmp_path / "link" / "a.py"), "new_string": "x"}}
    call = call_of(given)
    assert call is not None
    assert call.files == (str((tmp_path / "real").resolve() / "a.py"),)
