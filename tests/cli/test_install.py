"""`kept install` and `kept uninstall` at the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import kept
from kept.entrypoints.cli.frame import root
from kept.entrypoints.cli.invocation import Invocation
from tests.cli.shell import Shell
from tests.cli.test_imports import claude, sessions


@pytest.fixture
def person(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's home with Gemini CLI in it, and no program on the PATH."""
    home = tmp_path / "person"
    (home / ".gemini").mkdir(parents=True)
    (home / ".gemini" / "settings.json").write_text('{\n  "theme": "dark"\n}\n')
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


def test_what_would_change_is_shown_and_nothing_changes(shell: Shell, person: Path) -> None:
    before = (person / ".gemini" / "settings.json").read_text()
    shown = shell("install", "--dry-run")
    assert "Gemini CLI: this would change" in shown
    assert '+  "mcpServers": {' in shown
    assert "Claude Code" not in shown
    assert (person / ".gemini" / "settings.json").read_text() == before


def test_without_a_name_a_person_is_asked(shell: Shell, person: Path) -> None:
    assert "needs confirmation: Put Kept into Gemini CLI?" in shell.fails("install")
    shell.answers = [True]
    assert "Gemini CLI" in shell("install")
    assert shell.questions == ["Put Kept into Gemini CLI?"]
    assert "installed already" in shell("install", "gemini")
    assert "installed already" in shell("install")  # and nobody is asked about nothing


def test_a_person_sees_every_change_before_the_question(shell: Shell, person: Path) -> None:
    """A no to what was shown leaves each file as it was."""
    file = person / ".gemini" / "settings.json"
    before, told = file.read_text(), list[str]()

    def ask(question: str) -> bool:
        told.append(question)
        return False

    result = CliRunner(env=shell.environment).invoke(root, ["install"], obj=Invocation(clock=shell.clock, ask=ask))
    assert told == ["Put Kept into Gemini CLI?"]
    shown, _, no = result.stderr.partition("The answer was no.")
    assert "change ~/.gemini/settings.json" in shown
    assert '+  "mcpServers": {' in shown
    assert no
    assert file.read_text() == before
    shell.answers = [True]
    assert '+  "mcpServers": {' not in shell("install")  # once is enough


def test_install_and_uninstall_leave_the_file_as_it_was(shell: Shell, person: Path) -> None:
    before = (person / ".gemini" / "settings.json").read_bytes()
    document = shell.json("install", "gemini", "claude-code")
    assert [agent["agent"] for agent in document["agents"]] == ["gemini", "claude-code"]
    assert (shell.home / "agents" / "claude-code" / "hooks" / "hooks.json").exists()
    told = shell("uninstall")
    assert f"Memories stay in {shell.home}" in told
    assert (person / ".gemini" / "settings.json").read_bytes() == before
    assert not (person / ".claude").exists()
    assert not (shell.home / "agents").exists()
    assert "not installed in any agent" in shell("uninstall")


def test_the_data_goes_only_after_a_yes(shell: Shell, person: Path) -> None:
    shell("remember", "The gate opens at nine")
    with kept.open(user="ada", home=shell.home) as memory:
        memory.remember("The gate opens at ten")
    assert "needs confirmation: Delete all memories" in shell.fails("uninstall", "--data")
    assert shell.home.exists()
    assert f"Deleted {shell.home}" in shell("uninstall", "--data", "--yes")
    assert not shell.home.exists()


def test_an_unknown_agent_is_named_with_the_known_ones(shell: Shell, person: Path) -> None:
    assert "Unknown agent 'emacs'. Choose one of: claude-code" in shell.fails("install", "emacs")


def test_a_machine_without_agents_is_told_so(shell: Shell, person: Path) -> None:
    (person / ".gemini" / "settings.json").unlink()
    (person / ".gemini").rmdir()
    assert "No agent was found" in shell.fails("install")


def at_terminal(shell: Shell, *arguments: str, answer: str) -> tuple[str, list[str]]:
    """Run a command as somebody at a terminal who gives this answer; what they saw, and what they were asked."""
    asked: list[str] = []

    def pick(question: str, options: object) -> str:
        asked.append(question)
        return answer

    invocation = Invocation(clock=shell.clock, picks=pick)
    result = CliRunner(env=shell.environment).invoke(root, arguments, obj=invocation)
    assert result.exit_code == 0, result.output
    return result.output, asked


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_the_past_sessions_of_this_project_are_offered(shell: Shell, person: Path, answer: str) -> None:
    claude(person, "s1", Path.cwd(), "We decided to use Postgres for the orders, because of its constraints.")
    claude(person, "s2", "/elsewhere", "We decided to use Redis there.")
    seen, asked = at_terminal(shell, "install", "claude-code", answer=answer)
    assert asked[1:] == ["Import the past sessions of this project (Claude Code 1)?"]
    if answer == "yes":
        assert "Claude Code: 1 message imported." in seen
        assert sessions(shell) == {"s1": 1}
        assert "Last session of claude-code" in shell("status")
        assert "1 decision kept." in shell("status")
    else:
        assert "Later: kept import claude-code" in seen
        assert sessions(shell) == {}


def test_nobody_is_asked_where_nobody_is_and_options_decide(shell: Shell, person: Path) -> None:
    claude(person, "s1", Path.cwd(), "We decided to use Postgres for the orders.")
    shell("install", "claude-code", "--yes")
    assert sessions(shell) == {}
    at_terminal(shell, "install", "claude-code", "--no-import", answer="yes")
    _, asked = at_terminal(shell, "install", "claude-code", "--no-import", answer="yes")
    assert asked == []
    assert shell.json("install", "claude-code", "--import")["imported"] == {"claude-code": 1}
    assert sessions(shell) == {"s1": 1}


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_a_person_is_asked_once_whether_notes_of_agents_are_read(shell: Shell, person: Path, answer: str) -> None:
    seen, asked = at_terminal(shell, "install", "claude-code", "codex", "--no-import", answer=answer)
    assert [one for one in asked if "notes" in one] == [
        "Claude Code and Codex may keep notes of a project. Read them into Kept as they change? "
        "Nothing is written there."
    ]
    assert ("are read as they change" in seen) == (answer == "yes")
    settings = shell.json("config", "show")["settings"]
    assert settings["read_claude_notes"] is settings["read_codex_notes"] is (answer == "yes")
    assert settings["read_qwen_notes"] is True
    _, again = at_terminal(shell, "install", "claude-code", "--no-import", answer=answer)
    assert again == []


def test_without_a_person_the_installation_says_that_notes_are_read(shell: Shell, person: Path) -> None:
    told = shell("install", "claude-code", "--yes")
    assert "Notes that Claude Code may keep of a project are read as they change." in told
    assert "kept config set read_claude_notes false" in told
    shell("config", "set", "read_claude_notes", "false")
    assert "Notes that" not in shell("install", "claude-code", "--yes")


def test_the_tour_ends_with_the_agents_of_this_machine(shell: Shell, person: Path) -> None:
    assert shell.json("tour")["agents"] == ["gemini"]
    said = shell("tour").splitlines()
    assert "On this machine: Gemini CLI." in said
    assert any(line.strip().startswith("kept install") for line in said[-3:])


def test_an_agent_that_is_not_on_this_machine_is_set_up_and_said_to_be_missing(shell: Shell, person: Path) -> None:
    for said in (shell("install", "claude-code", "--dry-run"), shell("install", "claude-code")):
        assert "Claude Code was not found on this machine (no program claude, no folder ~/.claude)." in said
        assert "The settings take effect once it is installed." in said
        assert "hooks" in said.split("file", 1)[1].splitlines()[0], "what the files of our own are for"
    assert "not found" not in shell("install", "gemini")


def test_many_at_once_leave_nothing_behind(shell: Shell, person: Path) -> None:
    """Each process puts Kept in or takes it out as a whole; after the last uninstall every file is as it was."""
    for name in (".claude", ".codex", ".qwen", ".cursor"):
        (person / name).mkdir()
    before = files_of(person)
    program = [sys.executable, "-c", "from kept.entrypoints.cli import main; main()", "--home", str(shell.home)]
    environ = {**os.environ, "HOME": str(person)}

    def together(*lines: str) -> None:
        running = [
            subprocess.Popen([*program, *line.split()], env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for line in lines
        ]
        for process in running:
            _, complaint = process.communicate(timeout=120)
            assert process.returncode == 0, complaint

    together(*["install --yes --no-import"] * 6)
    installed = files_of(person)
    assert installed != before
    assert sum("kept-hook" in text for text in installed.values()) >= 3
    together(*["install --yes --no-import", "uninstall", "uninstall gemini", "install gemini --yes --no-import"])
    together(*["uninstall"] * 2)
    assert files_of(person) == before
    assert not (shell.home / "installed.json").exists()


def files_of(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_another_programs_entry_is_said_and_left_alone(shell: Shell, person: Path) -> None:
    file = person / ".gemini" / "settings.json"
    file.write_text('{"mcpServers": {"kept": {"command": "npx", "args": ["kept"]}}}')
    before = file.read_text()
    sentence = "the entry kept in ~/.gemini/settings.json belongs to another program and stays."
    for _ in range(2):
        told = shell("install", "gemini")
        assert sentence in told
        assert "Kept is called kept-memory there" in told
    [agent] = shell.json("install", "gemini")["agents"]
    assert agent["called"] == "kept-memory"
    servers = json.loads(file.read_text())["mcpServers"]
    assert servers["kept"] == {"command": "npx", "args": ["kept"]}
    assert servers["kept-memory"]["args"] == ["mcp", "--agent", "gemini"]
    shell("uninstall")
    assert file.read_text() == before


def test_data_is_deleted_from_a_home_of_kept_only(shell: Shell, person: Path, tmp_path: Path) -> None:
    """A folder that a typo names keeps everything, also one whose names look like ours."""
    work = tmp_path / "work"
    for name in ("thesis/thesis.tex", "projects/thesis-20261117/thesis.tex", "config.toml", "agents/me.md"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("ten years of work")
    (work / "projects.json").write_text('["mine"]')
    before = files_of(work)
    for home in (work, work / "projects", work / "thesis"):
        told = shell.fails(f"--home={home}", "uninstall", "--data", "--yes")
        assert "is not a home of Kept" in told
        assert "Nothing was deleted" in told
        assert files_of(work) == before


def test_files_of_others_in_the_home_stay(shell: Shell, person: Path) -> None:
    shell("remember", "The gate opens at nine")
    shell("install", "gemini", "claude-code", "--yes", "--no-import")
    for name in ("notes.txt", "projects/mine.txt", "projects/thesis-20261117/thesis.tex", "agents/me.md"):
        (shell.home / name).parent.mkdir(parents=True, exist_ok=True)
        (shell.home / name).write_text("mine")
    told = shell("uninstall", "--data", "--yes")
    assert f"Deleted the memories in {shell.home}. Not Kept's: agents, notes.txt, projects." in told
    left = {str(path.relative_to(shell.home)) for path in shell.home.rglob("*") if path.is_file()}
    assert left == {"notes.txt", "projects/mine.txt", "projects/thesis-20261117/thesis.tex", "agents/me.md"}


def test_a_home_without_any_memory_can_be_deleted(shell: Shell, person: Path) -> None:
    shell("install", "gemini", "--yes", "--no-import")
    shell("uninstall")
    assert f"Deleted {shell.home}" in shell("uninstall", "--data", "--yes")
    assert not shell.home.exists()


def test_what_an_agent_writes_while_the_question_waits_is_not_lost(shell: Shell, person: Path) -> None:
    file = person / ".gemini" / "settings.json"

    def ask(question: str) -> bool:
        file.write_text('{"theme": "light", "allowed": ["written in between"]}\n')
        return True

    result = CliRunner(env=shell.environment).invoke(root, ["install"], obj=Invocation(clock=shell.clock, ask=ask))
    assert result.exit_code == 1
    assert "was changed by another program in the meantime" in result.stderr
    assert "Run the command again" in result.stderr
    assert file.read_text() == '{"theme": "light", "allowed": ["written in between"]}\n'


def test_uninstall_names_a_broken_file_and_cleans_the_others(shell: Shell, person: Path) -> None:
    (person / ".qwen").mkdir()
    before = (person / ".gemini" / "settings.json").read_text()
    shell("install", "gemini", "qwen", "--yes", "--no-import")
    (person / ".qwen" / "settings.json").write_text("{ broken")
    shell("remember", "The gate opens at nine")
    told = shell.fails("uninstall", "--data", "--yes")
    assert str(person / ".qwen" / "settings.json") in told
    assert "Kept was taken out of all other files. The memories stay" in told
    assert (person / ".gemini" / "settings.json").read_text() == before
    assert "nine" in shell("recall", "gate")
    (person / ".qwen" / "settings.json").unlink()
    assert f"Deleted {shell.home}" in shell("uninstall", "--data", "--yes")
