"""Hints name what works, and a reason is given once."""

from pathlib import Path

import pytest

from kept import distribution
from kept.entrypoints.cli.doctor import _check_lines
from kept.entrypoints.install.checks import LinkCheck
from tests.cli.shell import Shell

CHECKOUT = Path(distribution.__file__).parents[2]


def test_an_import_in_the_checkout_of_kept_says_that_it_is_not_your_project(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CHECKOUT / "docs")
    said = shell.type("import", "markdown", "nowhere.md").stderr
    assert "Note: this is Kept's own checkout, not your project." in said
    assert "Note:" in shell.type("install", "--dry-run", "gemini").stderr
    monkeypatch.chdir(shell.folder)
    assert "checkout" not in shell.type("import", "markdown", "nowhere.md").stderr


def check(agent: str, message: str, hint: str) -> LinkCheck:
    return LinkCheck(agent=agent, level="problem", check="settings", message=message, hint=hint)


def test_doctor_gives_the_same_reason_of_several_agents_and_files_once() -> None:
    agents = {"claude-code": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI"}
    quiet = [check(name, f"{title}: no event has arrived yet.", "Start it.") for name, title in agents.items()]
    gone = [check("codex", f"Codex: /x/{number} is gone.", "Run: kept install codex") for number in range(8)]
    lines = ["".join(line) for line in _check_lines([*quiet, *gone])]
    assert lines == [
        "    problem: Claude Code, Codex, Gemini CLI: no event has arrived yet. Start it.",
        "    problem: Codex: /x/0 is gone. Codex: /x/1 is gone. Codex: /x/2 is gone. "
        "And 5 more like these. Run: kept install codex",
    ]


def test_an_empty_store_writes_no_block_for_agents(shell: Shell) -> None:
    said = shell("files", "agents")
    assert "AGENTS.md not touched" in said
    assert "There is nothing to write" in said
    assert not Path("AGENTS.md").exists()
    shell("remember", "Deploys run on Tuesdays")
    assert "AGENTS.md written" in shell("files", "agents")
