"""`kept install` and `kept uninstall` at the command line."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import kept
from kept.entrypoints.cli.frame import root
from kept.entrypoints.cli.invocation import Invocation, question_rows
from tests.cli.shell import Shell
from tests.cli.test_imports import claude, sessions
from tests.http.conftest import serving


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


def at_terminal(shell: Shell, *arguments: str, answer: str | list[str], code: int = 0) -> tuple[str, list[str]]:
    """Run a command as somebody at a terminal who gives this answer; what they saw, and what they were asked."""
    asked: list[str] = []

    def pick(question: str, options: object) -> str:
        asked.append(question)
        return answer if isinstance(answer, str) else answer.pop(0)

    invocation = Invocation(clock=shell.clock, picks=pick)
    result = CliRunner(env=shell.environment).invoke(root, arguments, obj=invocation)
    assert result.exit_code == code, result.output
    return result.output, asked


def test_a_person_is_asked_once_after_a_summary_of_everything_that_a_yes_does(shell: Shell, person: Path) -> None:
    claude(person, "s1", Path.cwd(), "We decided to use Postgres for the orders, because of its constraints.")
    claude(person, "s2", "/elsewhere", "We decided to use Redis there.")
    seen, asked = at_terminal(shell, "install", "claude-code", "codex", answer="yes")
    assert asked == ["Put Kept into Claude Code and Codex?"]
    summary = seen.split("never written.")[0]
    assert "write ~/.claude/settings.json" in summary
    assert "@@" not in summary, "the difference is shown when it is asked for"
    past = "Past sessions of this project that were not read yet are imported: 1 of Claude Code."
    assert f"{past} --no-import leaves them." in " ".join(seen.split())
    assert "Claude Code: 1 message imported." in seen
    assert sessions(shell) == {"s1": 1}
    assert "1 decision kept." in shell("status")
    settings = shell.json("config", "show")["settings"]
    assert settings["read_claude_notes"] is settings["read_codex_notes"] is True
    assert "kept config set read_claude_notes false" in seen
    _, again = at_terminal(shell, "install", "claude-code", "--no-import", answer="no")
    assert again == []


def test_an_installation_that_has_nothing_left_to_do_asks_nothing(shell: Shell, person: Path) -> None:
    claude(person, "s1", Path.cwd(), "We decided to use Postgres for the orders, because of its constraints.")
    at_terminal(shell, "install", "claude-code", answer="yes")
    seen, asked = at_terminal(shell, "install", "claude-code", answer="no")
    assert asked == []
    assert "installed already, nothing to change." in seen
    claude(person, "s2", Path.cwd(), "We decided to use Redis for the carts.")
    seen, asked = at_terminal(shell, "install", "claude-code", answer="yes")
    assert asked == ["Import them?"]
    assert "1 of Claude Code." in seen
    assert sessions(shell) == {"s1": 1, "s2": 1}


def test_uninstall_shows_at_a_terminal_what_changes_and_asks(shell: Shell, person: Path) -> None:
    shell("install", "gemini", "--yes", "--no-import")
    before = files_of(person)
    planned = shell("uninstall", "--dry-run")
    assert "would delete ~/.gemini/settings.json" in planned or "would restore ~/.gemini/settings.json" in planned
    assert files_of(person) == before
    shell.answers = [False]
    refused = shell.type("uninstall")
    assert refused.exit_code == 1
    assert shell.questions == ["Take Kept out of Gemini CLI?"]
    assert "would" in refused.stderr
    assert files_of(person) == before
    shell.answers = []
    assert "would" not in shell("uninstall", "--yes")
    assert files_of(person) != before


def test_a_no_changes_nothing(shell: Shell, person: Path) -> None:
    claude(person, "s1", Path.cwd(), "We decided to use Postgres for the orders, because of its constraints.")
    before = files_of(person)
    seen, _ = at_terminal(shell, "install", "claude-code", answer="no", code=1)
    assert seen.endswith("The answer was no. Nothing was changed.\n")
    assert files_of(person) == before
    assert sessions(shell) == {}
    assert "1 session of Claude Code in this project was not read yet. `kept import claude-code`" in shell("status")
    shell("import", "claude-code", str(claude(person.parent / "elsewhere", "s2", "/src/other", "The port is 4000.")))
    assert "1 session of Claude Code in this project was not read yet." in shell("status"), "another one was imported"
    shell("import", "claude-code")
    assert "not read yet" not in shell("status")


def test_the_lines_that_would_change_are_shown_when_a_person_asks(shell: Shell, person: Path) -> None:
    answers = ["show the changes", "no"]
    seen, asked = at_terminal(shell, "install", "gemini", answer=answers, code=1)
    assert len(asked) == 2
    assert "\n    +" in seen
    assert seen.count("Gemini CLI: this would change") == 2


def test_nobody_is_asked_where_nobody_is_and_options_decide(shell: Shell, person: Path) -> None:
    claude(person, "s1", Path.cwd(), "We decided to use Postgres for the orders.")
    shell("install", "claude-code", "--yes")
    assert sessions(shell) == {}
    at_terminal(shell, "install", "claude-code", "--no-import", answer="yes")
    _, asked = at_terminal(shell, "install", "claude-code", "--no-import", answer="yes")
    assert asked == []
    assert shell.json("install", "claude-code", "--import")["imported"] == {"claude-code": 1}
    assert sessions(shell) == {"s1": 1}


def test_without_a_person_the_installation_says_that_notes_are_read(shell: Shell, person: Path) -> None:
    told = shell("install", "claude-code", "--yes")
    assert "Kept also reads the notes that Claude Code may keep of a project." in told
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


def repository(folder: Path) -> Path:
    """Make the least that is a git repository. Return its git directory."""
    for name in ("objects", "refs"):
        (folder / ".git" / name).mkdir(parents=True, exist_ok=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return folder / ".git"


def test_deleting_all_data_removes_the_ids_of_the_projects(shell: Shell, person: Path, tmp_path: Path) -> None:
    """The next command begins a new memory; the id of another home's project stays."""
    mark, other = (repository(tmp_path / name) / "kept-id" for name in ("app", "other"))
    shell("remember", "The gate opens at nine")
    shell("--project", str(tmp_path / "other"), "remember", "The gate closes at ten")
    other.write_text("0badcafe\n")
    assert mark.is_file()
    shell("uninstall", "--data", "--yes")
    assert not shell.home.exists()
    assert not mark.exists()
    assert other.read_text() == "0badcafe\n"
    for command in (["list"], ["doctor"], ["remember", "The gate opens at eight"]):
        shell(*command)


def test_an_id_that_cannot_be_removed_is_named(
    shell: Shell, person: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = repository(tmp_path / "app") / "kept-id"
    shell("remember", "The gate opens at nine")
    monkeypatch.setattr("kept.projects.remove_id", lambda folder: False)
    told = shell("uninstall", "--data", "--yes")
    assert f"Not removed: {mark}." in told
    told = shell.fails("list")
    assert "If you deleted the home" in told
    assert "delete that file" in told
    mark.unlink()
    shell("list")


def test_everything_that_a_real_use_leaves_in_the_home_is_known_as_ours(
    shell: Shell, person: Path, tmp_path: Path
) -> None:
    """Memories, tokens, a page with a visitor, agents, hooks and settings."""
    with serving(tmp_path) as server:
        server.sign_in()
    shell("remember", "The gate opens at nine")
    shell("remember", "The gate is green", "--global", "--yes")
    with kept.open(user="ada@example.com", home=shell.home) as memory:
        memory.remember("Prefers window seats")
    shell("token", "create", "ann")
    shell("install", "gemini", "claude-code", "--yes", "--no-import")
    for event in ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "NoSuchEvent"):
        given = {"session_id": "s1", "cwd": str(tmp_path / "app"), "hook_event_name": event, "prompt": "open the gate"}
        environ = os.environ | {"KEPT_HOME": str(shell.home)}
        command = [str(Path(sys.executable).parent / "kept-hook"), "claude-code", event]
        subprocess.run(command, input=json.dumps(given), env=environ, text=True, check=True, capture_output=True)
    until = time.monotonic() + 120
    while any((shell.home / "hook" / "started").iterdir()) and time.monotonic() < until:
        time.sleep(0.1)  # the background process of a hook still writes
    (shell.home / "config.toml").write_text("judge = 'off'\n")
    assert (shell.home / "visits.json").is_file()
    assert f"Deleted {shell.home}." in shell("uninstall", "--data", "--yes")
    assert not shell.home.exists()


def test_a_home_of_a_server_alone_can_be_deleted(shell: Shell, person: Path) -> None:
    shell.home.mkdir()
    for name in ("visits.json", "visits.lock", "tokens.lock"):
        (shell.home / name).write_text("")
    assert f"Deleted {shell.home}" in shell("uninstall", "--data", "--yes")


def test_the_question_names_the_settings_that_go_and_the_answer_those_that_stay(
    shell: Shell, person: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("remember", "The gate opens at nine")
    shell("config", "set", "judge", "off")
    shell.answers = [True]
    assert f"Your settings stay in {shell.folder / 'config.toml'}." in shell("uninstall", "--data")
    monkeypatch.setattr(Shell, "environment", Shell.environment.fget(shell) | {"KEPT_CONFIG": None})  # type: ignore[attr-defined]
    shell("remember", "The gate opens at nine")
    shell("config", "set", "judge", "off")
    assert (shell.home / "config.toml").is_file()
    shell.answers = [True]
    assert "stay" not in shell("uninstall", "--data")
    assert "and the settings in its config.toml?" in shell.questions[-1]
    assert not shell.home.exists()


def test_a_file_that_others_wrote_in_since_is_not_called_restored(shell: Shell, person: Path) -> None:
    (person / ".qwen").mkdir()
    file = person / ".qwen" / "settings.json"
    shell("install", "gemini", "qwen", "--yes", "--no-import")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"theme": "dark"}))
    told = shell("uninstall")
    assert told.splitlines()[:2] == [
        "restored ~/.gemini/settings.json",
        "removed Kept's entries from ~/.qwen/settings.json",
    ]
    assert json.loads(file.read_text()) == {"theme": "dark"}


def test_a_dry_run_says_what_would_be_and_shows_names_and_tabs_as_they_are(shell: Shell, person: Path) -> None:
    (person / ".gemini" / "settings.json").write_text('{\n\t"theme": "dark"\n}\n')
    shown = shell("install", "gemini", "claude-code", "--dry-run")
    assert "\\t" not in shown
    assert '-    "theme": "dark"' in shown
    assert ".claude-plugin, .mcp.json" in shown
    assert "are set up" not in shown


def test_a_path_in_a_question_is_not_broken_at_its_hyphens() -> None:
    home = "/home/ann/.local/share/kept-of-a-person-with-a-long-name"
    rows = question_rows(f"Delete all memories of all projects in {home}? This cannot be undone.", 60)
    assert any(home in row for row in rows)


def test_uninstall_counts_the_files_of_a_folder_of_our_own(shell: Shell, person: Path) -> None:
    shell("install", "claude-code", "--yes", "--no-import")
    told = shell("uninstall").splitlines()
    [deleted] = [line for line in told if line.startswith("deleted") and "agents/claude-code" in line]
    assert deleted.endswith("agents/claude-code (9 files)")


def test_uninstall_says_what_it_did_also_where_the_memory_cannot_be_opened(shell: Shell, person: Path) -> None:
    """A store that does not open stops neither the report nor `--data`."""
    shell("remember", "Use Fastify")
    shell("install", "gemini", "--yes", "--no-import")
    [store] = shell.home.glob("projects/*/kept.db")
    store.write_bytes(b"no database" * 1000)
    told = shell("uninstall")
    assert "restored ~/.gemini/settings.json" in told
    assert "AGENTS.md was not searched for a block of Kept: " in told
    shell("uninstall", "--data", "--yes")
    assert not store.exists()
