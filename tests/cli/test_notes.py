"""The notes of agents at the command line: how they are read, and how a person sees that."""

from pathlib import Path

import pytest

from kept.exchange.importers.hosts import slug_of
from tests.cli.shell import Shell

NOTE = "---\nname: tabs\ndescription: Tabs\nmetadata:\n  type: feedback\n---\n\nIndent with tabs.\n"


@pytest.fixture
def notes(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of Claude Code's notes of this project, with one in it."""
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "CLAUDE_CODE_DISABLE_AUTO_MEMORY"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "person" / ".claude" / "projects" / slug_of(Path.cwd().resolve()) / "memory"
    folder.mkdir(parents=True)
    (folder / "tabs.md").write_text(NOTE)
    (folder / "MEMORY.md").write_text("- [Tabs](tabs.md) — tabs\n")
    return folder


def test_an_import_without_a_path_reads_the_notes_of_this_project(shell: Shell, notes: Path) -> None:
    told = shell("import", "claude-memory")
    assert "2 new or changed files read: 1 memory stored, 0 revised, 0 archived." in told
    (notes / "tabs.md").write_text(NOTE.replace("tabs.", "tabs, also in Makefiles."))
    assert "1 new or changed file read: 0 memories stored, 1 revised, 0 archived." in shell("import", "claude-memory")
    (notes / "tabs.md").unlink()
    assert shell.json("import", "claude-memory")["notes"][0]["removed"] == 1
    assert "There are no notes here (codex-memory)." in shell("import", "codex-memory")
    assert "Name the folder" in shell.fails("import", "claude-memory", "--dry-run", code=2)


def test_status_and_doctor_say_which_notes_were_read_and_when(shell: Shell, notes: Path) -> None:
    shell("remember", "The gate opens at nine")
    assert "Notes of Claude Code: none read yet." in shell("status")
    (notes / "huge.md").write_text("x" * 100_000)
    shell("import", "claude-memory")
    for command in ("status", "doctor"):
        told = shell(command)
        assert "Notes of Claude Code: 2 files read, 1 memory; last change" in told
        assert "left out: huge.md: larger than 64 KB" in told
        assert "Codex" not in told
        [claude] = [one for one in shell.json(command)["notes"] if one["host"] == "claude-code"]
        assert (claude["files"], claude["memories"], claude["is_on"]) == (2, 1, True)
    shell("config", "set", "read_claude_notes", "false")
    assert "Notes of Claude Code are not read: read_claude_notes is false." in shell("status")
