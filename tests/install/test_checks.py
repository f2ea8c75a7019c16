"""`kept doctor` follows the chain of every agent, finds each broken link, and names the fix."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from kept.distribution import install_line
from kept.entrypoints import install
from kept.entrypoints.hook import START_LIMIT_MS
from kept.entrypoints.hook.events import note_misnamed
from kept.entrypoints.hook.folder import HookFolder
from kept.entrypoints.install.agents import MachineFacts
from kept.entrypoints.install.checks import LinkCheck, check_agents
from kept.entrypoints.install.edits import Item, WholeFile

NOW = datetime.now(UTC)
AGENTS = ("claude-code", "codex", "gemini")


def program(path: Path, body: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{body}")
    path.chmod(0o755)
    return str(path)


SERVER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        tools = [{"name": f"t{number}"} for number in range(6)]
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"tools": tools}}), flush=True)
"""
CODEX = """
import json, sys
for line in sys.stdin:
    if json.loads(line).get("id") == 2:
        break
hooks = [{"key": %r, "currentHash": "h", "command": %r, "trustStatus": %r}]
print(json.dumps({"id": 2, "result": {"data": [{"hooks": hooks}]}}), flush=True)
"""


class Machine:
    """A machine with Kept in three agents, all of it sound."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.where = MachineFacts(
            user_home=root / "home",
            project=root,
            plugin=root / "kept" / "agents" / "claude-code",
            environ={"PATH": "/usr/bin:/bin"},
            platform="linux",
            kept=program(root / "bin" / "kept", SERVER),
            hook=program(root / "bin" / "kept-hook", "import sys; sys.stdin.read()"),
        )
        self.codex: str | None = self.codex_that("trusted")
        self.hooks = HookFolder(root / "kept")
        self.hooks.prepare()
        for name in AGENTS:
            book = install.Ledger(root / "kept")
            install.apply(name, "user", install.plan(name, "user", self.where, book), book)
            self.hooks.note_event(name, "SessionStart")

    def codex_that(self, trust: str) -> str:
        """A Codex that lists our hook and says this about it."""
        key = f"{self.where.user_home / '.codex' / 'hooks.json'}:stop:0:0"
        return program(self.root / "bin" / "codex", CODEX % (key, self.where.command("codex", "Stop"), trust))

    def check(self) -> list[LinkCheck]:
        return check_agents(self.where, install.Ledger(self.root / "kept"), self.hooks, NOW, self.codex)

    def edit(self, path: str, change: Callable[[str], str]) -> None:
        file = self.where.user_home / path
        file.write_text(change(file.read_text()))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "home").mkdir()
    return Machine(tmp_path)


def test_a_sound_machine_has_no_fault(machine: Machine) -> None:
    assert [link for link in machine.check() if link.level != "ok"] == []


def without_hook(text: str) -> str:
    document = json.loads(text)
    del document["hooks"]["BeforeAgent"]
    return json.dumps(document)


def stuck(machine: Machine) -> None:
    old = int((NOW - timedelta(hours=3)).timestamp() * 1e9)
    (machine.hooks.spool / f"{old:020d}-1.json").write_text('{"agent": "codex"}')


def other_hook(machine: Machine, body: str) -> None:
    machine.where = replace(machine.where, hook=program(Path(machine.where.hook), body))


def other_server(machine: Machine, body: str) -> None:
    machine.where = replace(machine.where, kept=program(Path(machine.where.kept), body))


def untrusted(machine: Machine) -> None:
    machine.codex = machine.codex_that("untrusted")


FAULTS: dict[str, tuple[Callable[[Machine], object], str, str]] = {
    "the settings of an agent were reset": (
        lambda m: m.edit(".claude/settings.json", lambda text: "{}"), "settings.json does not", "kept install claude"),
    "one hook was deleted": (
        lambda m: m.edit(".gemini/settings.json", without_hook), "settings.json does not hold", "kept install gemini"),
    "the settings are broken": (
        lambda m: m.edit(".gemini/settings.json", lambda text: text + "}"), "not valid JSON: line", "Correct the file"),
    "a file of the plugin is gone": (
        lambda m: (m.where.plugin / "hooks" / "hooks.json").unlink(), "hooks.json is gone", "kept install claude-code"),
    "the plugin is disabled": (
        lambda m: m.edit(".claude/settings.json", lambda text: text.replace("true", "false")),
        "does not hold", "kept install"),
    "all hooks are disabled": (
        lambda m: m.edit(".claude/settings.json", lambda text: text.replace("{", '{"disableAllHooks": true,', 1)),
        "disableAllHooks is true", "Set it to false"),
    "Codex does not trust the hooks": (untrusted, "does not trust 1 of the 1 hooks", "kept install codex --yes"),
    "the hook is gone": (lambda m: Path(m.where.hook).unlink(), "no such file", "Install Kept again"),
    "the hook crashes": (lambda m: other_hook(m, "import nonsense"), "No module named", "Install Kept again"),
    "the hook hangs": (lambda m: other_hook(m, "import time; time.sleep(30)"), "took more than", "Install Kept again"),
    "the server is gone": (lambda m: Path(m.where.kept).unlink(), "server does not answer", "pip install"),
    "the server crashes": (lambda m: other_server(m, "raise SystemExit('no mcp')"), "no mcp", "kept mcp"),
    "the server lacks a package": (
        lambda m: other_server(m, "import no_such_package"), "ModuleNotFoundError", "pip install"),
    "the server has no tools": (
        lambda m: other_server(m, SERVER.replace("range(6)", "range(2)")), "2 tools instead of 6", "kept mcp"),
    "transcripts wait": (stuck, "for more than an hour: 1.", "kept doctor --fix"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_found_and_its_fix_is_named(fault: str, machine: Machine) -> None:
    plant, message, hint = FAULTS[fault]
    plant(machine)
    started = time.monotonic()
    found = [link for link in machine.check() if link.level == "problem"]
    assert time.monotonic() - started < 30
    assert any(message in link.message and hint in link.hint for link in found), found


def test_failures_of_hooks_and_missing_tools_are_noted(machine: Machine) -> None:
    machine.hooks.note_failure({"agent": "codex", "event": "Stop"}, "Busy: the transcript waits")
    machine.where = replace(machine.where, with_tools=False)
    notes = [link for link in machine.check() if link.level == "note"]
    assert any("codex Stop" in note.message and "the transcript waits" in note.message for note in notes)
    assert any(install_line("agents") in note.hint for note in notes)


def test_hooks_that_often_run_out_of_time_are_a_problem_with_a_way_out(machine: Machine) -> None:
    for _ in range(4):
        machine.hooks.note_failure({"agent": "codex", "event": "UserPromptSubmit"}, "Not done within 300 ms")
    assert not [link for link in machine.check() if link.level == "problem" and link.check == "failures"]
    machine.hooks.note_failure({"agent": "codex", "event": "UserPromptSubmit"}, "Not done within 300 ms")
    told = [link for link in machine.check() if link.check == "failures"]
    assert [link.level for link in told] == ["problem"]
    assert "5 hooks ran out of time" in told[0].message
    assert "5 at a prompt (last 20" in told[0].message
    assert "KEPT_HOOK_LIMIT_MS" in told[0].hint


def test_a_hook_with_a_wrong_name_is_a_problem_that_names_the_right_one(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPT_HOME", str(machine.root / "kept"))
    note_misnamed("claude", "Stop")
    note_misnamed("codex", "UserPromptSubmitted")
    wrong = [link for link in machine.check() if link.check == "hooks" and link.level == "problem"]
    assert sorted(link.message.partition(".")[0] for link in wrong) == [
        "`kept-hook claude Stop` does nothing: unknown agent 'claude'",
        "`kept-hook codex UserPromptSubmitted` does nothing: unknown event 'UserPromptSubmitted'",
    ]
    hints = " ".join(link.hint for link in wrong)
    assert "'claude-code'" in hints
    assert "'UserPromptSubmit'" in hints


def test_what_hooks_left_behind_is_reported_without_an_installed_agent(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries that people wrote by hand are in no ledger."""
    monkeypatch.setenv("KEPT_HOME", str(machine.root / "kept"))
    note_misnamed("claude", "Stop")
    for _ in range(5):
        machine.hooks.note_failure({"agent": "codex", "event": "UserPromptSubmit"}, "Not done within 300 ms")
    found = check_agents(machine.where, install.Ledger(machine.root / "empty"), machine.hooks, NOW, None)
    assert [link.check for link in found if link.level == "problem"] == ["hooks", "failures"]


def mark(machine: Machine, number: int, age: timedelta = timedelta()) -> None:
    token = f"{int((datetime.now(UTC) - age).timestamp() * 1e9)}-{number}"
    (machine.hooks.started / str(number % 500)).write_text(f"{token}\ncodex\nStop\n{number}\n")


def ended() -> int:
    """The id of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", "pass"]) as process:
        process.wait()
    return process.pid


def test_a_background_process_that_died_is_a_problem_and_one_that_runs_is_not(machine: Machine) -> None:
    mark(machine, os.getpid())
    assert [link for link in machine.check() if link.level != "ok"] == []
    mark(machine, ended())
    [found] = [link for link in machine.check() if link.level != "ok"]
    assert found.level == "problem"
    assert "ended before it was done, 1 times" in found.message
    assert "Stop of codex" in found.message
    assert "kept doctor --fix" in found.hint


def test_a_number_that_another_process_has_by_now_does_not_hide_a_dead_one(machine: Machine) -> None:
    mark(machine, os.getpid(), timedelta(days=2))
    assert [link.check for link in machine.check() if link.level == "problem"] == ["background"]


def test_one_that_others_followed_is_noted_and_many_of_them_are_a_problem(machine: Machine) -> None:
    for count, level in ((1, "note"), (2, "note"), (3, "problem")):
        mark(machine, ended())
        machine.hooks.log_died()
        assert [link.level for link in machine.check() if link.level != "ok"] == [level] * (count if count < 3 else 1)


def test_agents_give_every_hook_more_time_than_it_takes(tmp_path: Path, machine: Machine) -> None:
    """A hook that its agent ends has logged nothing, and its transcript would wait for the next event."""
    texts = [
        content if isinstance(edit, WholeFile) else json.dumps(edit.value)
        for agent in install.AGENTS.values()
        for edits in agent.files(machine.where, "user").values()
        for edit in edits
        if isinstance(edit, WholeFile | Item)
        for content in [getattr(edit, "content", "")]
    ]
    found = [int(number) for text in texts for number in re.findall(r'"timeout(?:Sec)?": (\d+)', text)]
    found += [int(number) for text in texts for number in re.findall(r"LIMIT_MS = (\d+)", text)]
    assert len(found) > 30
    for number in found:
        milliseconds = number if number >= 1_000 else number * 1_000
        assert milliseconds >= START_LIMIT_MS + 1_000


def test_a_server_that_takes_too_long_is_no_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have written a warning before it was ended."""
    machine = Machine(tmp_path)
    monkeypatch.setattr("kept.entrypoints.install.checks.SERVER_SECONDS", 1.0)
    other_server(machine, "import sys, time\nprint('a warning', file=sys.stderr, flush=True)\ntime.sleep(60)")
    [found] = [one for one in machine.check() if one.check == "server"]
    assert "no answer within" in found.message
    assert "may be busy: run `kept doctor` again" in found.hint
    assert "pip install" not in found.hint
