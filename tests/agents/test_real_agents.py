"""Real agent programs remember: driven by a scripted model, with Kept put into them by `kept install`. C1, C26.

    make test-agents                     every agent (3 GB of programs, installed once)
    make test-agents AGENTS=claude       one of them; .ci/run does that where npm is at hand

`KEPT_AGENTS` names the agents. Without it these tests are skipped.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents import programs
from tests.agents.boxes import BIN, CALLS, NAMES, SHELLS, WRITERS, Agent, Box, Screen
from tests.agents.scripted_model import Json, ScriptedModel

ROOT = Path(__file__).parents[2]
WANTED = [name for name in os.environ.get("KEPT_AGENTS", "").split(",") if name]
WITH_HOOKS = ("claude", "codex", "gemini", "qwen", "copilot", "opencode")
DECISION = "We decided to use the zebrafish queue for outgoing mail, because the old one lost messages."
READY = "failed until ready.txt changed"
ASKED = "Kept asks about the session"
ASKED_NOW = f"{ASKED} so far, before you stop"
STATEMENT = "Amounts are integers in cents, the ledger refuses floats. File names take the customer number."
LEDGER = "make ledger writes it"
RULE = f"Never edit ledger.txt by hand, because {LEDGER}; change ledger.in instead."
QUESTION = "Which queue do we use for outgoing mail?"


def each(names: tuple[str, ...]) -> list[object]:
    reason = "set KEPT_AGENTS, or run make test-agents"
    return [pytest.param(name, marks=pytest.mark.skipif(name not in WANTED, reason=reason)) for name in names]


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    with ScriptedModel() as model:
        yield Box(tmp_path, model)


def query(name: str, words: str) -> list[Json]:
    """The steps by which this agent's model calls memory_query."""
    asked: Json = {"query": words}
    if name == "qwen":  # its tools are found first
        tool = "mcp__kept__memory_query"
        find = {"call": "^tool_search$", "input": {"query": f"select:{tool}"}}
        return [find, {"call": "^tool_call$", "input": {"name": tool, "arguments": asked}}]
    if name == "openhands":
        asked |= {"security_risk": "LOW", "summary": "look it up"}
    return [{"call": "memory_query$", "input": asked}]


def store(name: str, text: str) -> list[Json]:
    asked: Json = {"content": text, "tags": ["mail"]}
    if name == "qwen":
        tool = "mcp__kept__memory_store"
        find = {"call": "^tool_search$", "input": {"query": f"select:{tool}"}}
        return [find, {"call": "^tool_call$", "input": {"name": tool, "arguments": asked}}]
    if name == "openhands":
        asked |= {"security_risk": "LOW", "summary": "keep it"}
    return [{"call": "memory_store$", "input": asked}]


def remembers(box: Box, word: str) -> bool:
    return box.wait_for(lambda: word in box.listed())


@pytest.mark.parametrize("name", each(WITH_HOOKS))
def test_a_second_session_knows_what_the_first_decided(name: str, box: Box) -> None:
    agent = box.install(name)
    agent.turn(DECISION)
    assert remembers(box, "zebrafish"), box.kept("doctor")
    asked = agent.turn(QUESTION)
    assert "zebrafish" in json.dumps(asked[0]), "what was decided is in the first request of the next session"
    unrelated = agent.turn("What is the capital of France?")
    assert prompt_block(unrelated[0]).count("zebrafish") <= 1, "and an unrelated prompt adds nothing to it"


@pytest.mark.parametrize("name", each(("claude",)))
def test_the_plugin_of_the_repository_remembers_without_kept_install(name: str, box: Box) -> None:
    agent = box.prepare(name)
    for program in ("kept", "kept-hook"):  # the plugin finds them on the PATH
        (box.root / "bin" / program).symlink_to(BIN / program)
    copied = box.root / "repository"
    for folder in (".claude-plugin", "plugin"):
        shutil.copytree(ROOT / folder, copied / folder)
    claude = str(box.root / "bin" / name)
    agent.run([claude, "plugin", "validate", str(copied)], said="Validation passed")
    agent.run([claude, "plugin", "marketplace", "add", str(copied)], said="Successfully added")
    agent.run([claude, "plugin", "install", "kept@kept"], said="Successfully installed")
    agent.turn(DECISION)
    assert remembers(box, "zebrafish")
    assert "zebrafish" in json.dumps(agent.turn(QUESTION)[0])


def prompt_block(body: Json) -> str:
    """The request without the tools that are offered."""
    return json.dumps({key: value for key, value in body.items() if key != "tools"})


@pytest.mark.parametrize("name", each(tuple(CALLS)))
def test_an_agent_stores_and_queries_with_its_tools(name: str, box: Box) -> None:
    agent = box.install(name)
    if name == "codex":  # the first turn of a session does not wait for servers, unless told to
        config = box.home / ".codex" / "config.toml"
        config.write_text(config.read_text().replace("[mcp_servers.kept]", "[mcp_servers.kept]\nrequired = true"))
    agent.turn("Remember the port.", *store(name, "The mail gateway listens on port 2525, behind the zebrafish queue."))
    assert remembers(box, "2525"), box.kept("doctor")
    told = agent.turn("Look up the mail gateway.", *query(name, "mail gateway port"))
    assert "2525" in json.dumps(told[-1])
    assert "[id:" in json.dumps(told[-1])


@pytest.mark.parametrize("name", each(WITH_HOOKS))
def test_a_resumed_session_keeps_it(name: str, box: Box) -> None:
    agent = box.install(name)
    agent.turn(DECISION)
    assert remembers(box, "zebrafish")
    asked = agent.turn(QUESTION, resume=True)
    assert "zebrafish" in json.dumps(asked[0])
    stored = [one for one in json.loads(box.listed())["memories"] if "zebrafish" in one["content"]]
    assert len([one for one in stored if one["kind"] != "summary"]) == 1, "and captures nothing twice"


# Gemini CLI compresses without a hook of its own and without a mark in its transcript, and not by a command here.
@pytest.mark.parametrize("name", each(("claude", "codex", "qwen", "copilot", "opencode")))
def test_a_compaction_keeps_it(name: str, box: Box) -> None:
    agent = box.install(name)
    agent.turn(DECISION)
    assert remembers(box, "zebrafish")
    agent.compact()
    asked = agent.turn(QUESTION, resume=True)
    assert "zebrafish" in prompt_block(asked[0])
    assert box.wait_for(lambda: "summary" in agent.stored_roles()), "the host's own summary is kept as raw material"


@pytest.mark.parametrize("name", each(WITH_HOOKS))
def test_an_error_that_was_fixed_comes_back_with_its_fix(name: str, box: Box) -> None:
    agent = box.install(name)
    check = box.project / "check.sh"
    check.write_text(
        "#!/bin/sh\ntest -f ready.txt || { echo 'error: ready.txt is missing, run prepare first' >&2; exit 3; }\n"
    )
    check.chmod(0o755)
    shell, command = SHELLS[name]

    def run(line: str) -> Json:
        return {"call": shell, "input": {command: line, "description": "check"} if name != "codex" else {command: line}}

    tool, path, content = WRITERS.get(name, ("", "", ""))
    fix = {"call": tool, "input": {path: str(box.project / "ready.txt"), content: "prepared = true\n"}}
    if not tool:  # Codex patches files by a command
        patch = "*** Begin Patch\n*** Add File: ready.txt\n+prepared = true\n*** End Patch"
        fix = run(f"apply_patch <<'EOF'\n{patch}\nEOF\n")
    agent.turn("Make the check pass.", run("./check.sh"), fix, run("./check.sh"))
    assert remembers(box, READY), box.kept("doctor")
    asked = agent.turn("Why does check.sh say that ready.txt is missing?")
    assert READY in prompt_block(asked[0])


def writing(name: str, box: Box, file: str) -> Json:
    """The step by which this agent's model writes a new file."""
    if name == "codex":  # it patches files by a command
        shell, command = SHELLS[name]
        patch = f"*** Begin Patch\n*** Add File: {file}\n+one\n*** End Patch"
        return {"call": shell, "input": {command: f"apply_patch <<'EOF'\n{patch}\nEOF\n"}}
    tool, path, content = WRITERS[name]
    return {"call": tool, "input": {path: str(box.project / file), content: "one\n"}}


def running(name: str, line: str) -> Json:
    shell, command = SHELLS[name]
    return {"call": shell, "input": {command: line, "description": "run"} if name != "codex" else {command: line}}


def told(requests: list[Json], words: str) -> list[int]:
    """How often each request has these words."""
    return [prompt_block(body).count(words) for body in requests]


@pytest.mark.parametrize("name", each(WITH_HOOKS))
def test_a_rule_comes_with_the_edit_it_concerns_and_not_with_the_next(name: str, box: Box) -> None:
    agent = box.install(name)
    box.kept("remember", RULE, "--kind", "warning")
    steps = [writing(name, box, file) for file in ("notes.txt", "ledger.txt", "more.txt")]
    before, unrelated, first, *rest = told(agent.turn("Hello.", *steps, writing(name, box, "sub/ledger.txt")), LEDGER)
    assert (unrelated, first) == (before, before + 1), "with the result of the call that it concerns"
    assert rest == [before + 1] * 2, "and never again in this session"


@pytest.mark.parametrize("name", each(("claude", "codex", "copilot", "opencode")))
def test_a_sub_agent_is_told_what_its_task_needs(name: str, box: Box) -> None:
    agent = box.install(name)
    box.kept("remember", DECISION, "--kind", "decision")
    tool, field = {
        "claude": ("^(Agent|Task)$", "prompt"),
        "codex": ("spawn_agent$", "message"),
        "copilot": ("^task$", "prompt"),
        "opencode": ("^task$", "prompt"),
    }[name]
    task = f'{QUESTION} SUB-TASK <<[{{"say": "SUB-SAID"}}]>>'
    more = {
        "claude": {"description": "x", "subagent_type": "general-purpose"},
        "codex": {},
        "copilot": {"name": "x", "description": "x", "agent_type": "general-purpose", "mode": "sync"},
        "opencode": {"description": "x", "subagent_type": "general"},
    }[name]
    steps = [{"call": tool, "input": {field: task, **more}}]
    if name == "codex":  # it does not wait by itself, and would end before the sub-agent has begun
        steps.append(running(name, "sleep 6"))
    requests = agent.turn("Hello.", *steps)
    own = [body for body in requests if "SUB-TASK" in prompt_block(body) and "SAID-so" not in prompt_block(body)]
    assert own, "the sub-agent has asked the model"
    assert any("zebrafish" in prompt_block(body) for body in own)


@pytest.mark.parametrize("name", each(WITH_HOOKS))
def test_a_guarded_call_is_refused_once_and_then_passes(name: str, box: Box) -> None:
    agent = box.install(name)
    box.kept("remember", "Never run make-ledger without asking, because it overwrites the books", "--kind", "warning")
    [ref] = [one["ref"] for one in json.loads(box.listed())["memories"]]
    box.kept("guard", ref, "stop")
    call = running(name, "make-ledger() { touch ran.txt; }; make-ledger")
    requests = agent.turn("Hello.", call, running(name, "test -f ran.txt && echo RAN || echo STILL-MISSING"), call)
    assert told(requests, "overwrites the books")[1] > 0
    assert "STILL-MISSING" in prompt_block(requests[2]).replace(json.dumps(call)[1:-1], ""), "it was refused"
    assert (box.project / "ran.txt").exists(), "and passed the second time"


def judged(name: str, code: str) -> list[Json]:
    """The steps by which this agent's model keeps the first statement of a list."""
    asked: Json = {"list": code, "keep": [1]}
    if name == "qwen":
        tool = "mcp__kept__memory_judge"
        find = {"call": "^tool_search$", "input": {"query": f"select:{tool}"}}
        return [find, {"call": "^tool_call$", "input": {"name": tool, "arguments": asked}}]
    return [{"call": "memory_judge$", "input": asked}]


def left_by_a_session(agent: Agent) -> str:
    """Have a session say something and end; the code of its list."""
    box = agent.box
    agent.turn(STATEMENT)
    assert box.wait_for(lambda: "in cents" in box.listed())
    box.kept("session", "finish", json.loads(box.kept("--json", "session", "list"))["sessions"][0]["name"])
    return str(json.loads(box.kept("--json", "judge", "--list"))["code"])


def is_undone(box: Box, code: str) -> bool:
    """Take the judgement back; whether its list waits again."""
    events = json.loads(box.kept("--json", "history", "--limit", "200"))["events"]
    box.kept("undo", str(next(one["seq"] for one in events if one["action"] == "judge")), "--yes")
    return code in box.kept("judge", "--list")


@pytest.mark.parametrize("name", each(("claude", "codex", "gemini", "opencode")))
def test_findings_are_judged_once_with_the_next_session_and_undo_brings_them_back(name: str, box: Box) -> None:
    """Claude Code says that a person is there; with the others the list comes with the second prompt."""
    agent = box.install(name)
    code = left_by_a_session(agent)
    for prompt in ("Hello.", "Hello again."):
        headless = agent.turn(prompt, resume=prompt != "Hello.")
        assert all(ASKED not in prompt_block(body) for body in headless), "nobody is there"
    with Screen(agent) as screen:
        first = screen.say("Hello.")
        assert prompt_block(first[-1]).count(ASKED) == (name == "claude")
        second = screen.say("Hello again.")
        assert prompt_block(second[-1]).count(ASKED) == 1, "it came once"
        assert f'list=\\"{code}' in prompt_block(second[-1]).replace("\\\\", "\\")
        screen.say("Go on.", *judged(name, code), until=lambda turns: len(turns) > 1)
        assert code not in box.kept("judge", "--list")
        assert "judged 1 session, " in box.kept("status")
        assert prompt_block(screen.say("What is new?")[-1]).count(ASKED) == 1, "and not again"
    assert is_undone(box, code)


@pytest.mark.parametrize("name", each(("claude", "codex")))
def test_a_working_session_is_judged_once_at_its_stop_and_undo_brings_it_back(name: str, box: Box) -> None:
    agent = box.install(name)
    box.kept("config", "set", "judge", "stop")
    box.kept("remember", "Deploys go out on Tuesdays")  # before a project is stored, its prompts are not counted
    codes: list[str] = []

    def reply(text: str) -> list[Json] | None:
        if ASKED_NOW not in text:
            return box.model.script_of(text)
        codes.append(re.findall(r"list=\W{0,8}(\w{6})", text)[-1])
        return [*judged(name, codes[-1]), {"say": "JUDGED"}]

    def is_judged(turns: list[Json]) -> bool:
        """Return True if the call has been answered: a request came after each of its steps."""
        return bool(codes) and len(codes) > len(judged(name, codes[-1]))

    box.model.reply = reply
    with Screen(agent) as screen:
        assert all(ASKED not in prompt_block(body) for body in screen.say(STATEMENT)), "there was no work"
        assert box.wait_for(lambda: "in cents" in box.listed())
        work = [running(name, "true")] * 15
        turns = screen.say("Go on.", *work, until=is_judged)
        assert prompt_block(turns[-1]).count(ASKED_NOW) == 1
        assert len(turns) <= len(work) + 3, "the answer, the call and its end: no loop"
        assert "judged 1 session, " in box.kept("status")
        again = screen.say("And again.", *work, until=lambda turns: len(turns) > len(work))
        assert prompt_block(again[-1]).count(ASKED_NOW) == 1, "never twice"
    assert len(set(codes)) == 1
    assert ASKED_NOW not in box.listed(), "nothing of the request is taken for the user's words"
    name_of = json.loads(box.kept("--json", "session", "list"))["sessions"][0]["name"]
    events = json.loads(box.kept("--json", "history", "--limit", "200"))["events"]
    box.kept("undo", str(next(one["seq"] for one in events if one["action"] == "judge")), "--yes")
    assert "in cents" in box.kept("judge", "--session", name_of, "--list")


@pytest.mark.parametrize("name", each(("claude", "codex")))
def test_a_run_without_a_person_is_asked_nothing(name: str, box: Box) -> None:
    agent = box.install(name)
    box.kept("config", "set", "judge", "stop")
    steps = [running(name, "true")] * 16
    for prompt in (STATEMENT, "No, not like that."):
        assert all(ASKED not in prompt_block(body) for body in agent.turn(prompt, *steps, resume=prompt != STATEMENT))
    box.kept("config", "set", "judge", "next")
    assert all(ASKED not in prompt_block(body) for body in agent.turn("Hello."))


def pairs() -> list[object]:
    pairs = [("claude", other) for other in ("codex", "gemini", "opencode")]
    reason = "set KEPT_AGENTS to both"
    return [
        pytest.param(*pair, marks=pytest.mark.skipif(not set(pair) <= set(WANTED), reason=reason))
        for pair in [*pairs, *((other, one) for one, other in pairs)]
    ]


@pytest.mark.parametrize(("first", "second"), pairs())
def test_what_one_agent_decided_another_knows(first: str, second: str, box: Box) -> None:
    """C1: one memory for every agent that works on the project."""
    one, other = box.install(first), box.install(second)
    one.turn(DECISION)
    assert remembers(box, "zebrafish"), box.kept("doctor")
    assert "zebrafish" in json.dumps(other.turn(QUESTION)[0])


@pytest.mark.parametrize("name", each(tuple(CALLS)))
def test_uninstalling_leaves_no_trace_in_the_settings(name: str, box: Box) -> None:
    agent = box.prepare(name)
    if name == "codex":  # it notes in its settings at the first turn that the project is trusted, also without Kept
        agent.turn("Hello.")
    files = [box.home / ".codex" / "config.toml"] if name == "codex" else [*box.home.rglob("*")]
    files = [path for path in files if path.is_file() and "node_modules" not in path.parts]
    before = {path: path.read_bytes() for path in files}
    box.kept("install", NAMES[name], "--yes")
    agent.turn("Hello.")
    box.kept("uninstall", "--yes")
    for path, content in before.items():
        if name in ("qwen", "opencode"):  # they rewrite their settings themselves, with more keys
            assert json.loads(path.read_bytes()) | json.loads(content) == json.loads(path.read_bytes()), path
        else:
            assert path.read_bytes() == content, path
    left = [path for path in box.home.rglob("*") if path.is_file() and "kept-hook" in path.read_text("utf-8", "ignore")]
    settings = [path for path in left if "conversations" not in path.parts]  # where OpenHands logs the hooks it ran
    assert [path for path in settings if path.suffix in (".json", ".toml", ".yaml", ".js")] == []


def test_the_versions_are_pinned() -> None:
    assert all("@" in package[1:] for packages in programs.PACKAGES.values() for package in packages)
