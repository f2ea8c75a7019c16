"""`kept team`, `kept files agents` and `kept uninstall` as people type them; and the commands of docs/teams.md."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kept.exchange import agents_md
from kept.projects.sources import complaint_of
from tests.builders import FakeClock
from tests.cli.shell import Shell
from tests.folders import git, needs_git

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```console (\w+)\n(.*?)^```$(?:\s*^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)


@needs_git
def test_the_commands_of_the_page_about_teams_run(tmp_path: Path) -> None:
    git("init", "-q", "--bare", "-b", "main", tmp_path / "web-app.git", cwd=tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "kept").write_text(f'#!/bin/sh\nexec {sys.executable} -m kept "$@"\n')
    (programs / "kept").chmod(0o755)
    blocks = BLOCK.findall((ROOT / "docs" / "teams.md").read_text("utf-8"))
    assert [name for name, _, _ in blocks] == ["ann", "bob", "bob"]
    for name in ("ann", "bob"):
        git("clone", "-q", tmp_path / "web-app.git", tmp_path / name / "web-app", cwd=tmp_path)
        git("config", "user.name", name.capitalize(), cwd=tmp_path / name / "web-app")
        git("config", "user.email", f"{name}@example.org", cwd=tmp_path / name / "web-app")
    for name, commands, expected in blocks:
        environment = os.environ | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "KEPT_HOME": str(tmp_path / name / "home"),
            "KEPT_CONFIG": str(tmp_path / name / "config.toml"),
        }
        done = subprocess.run(
            ["bash", "-ec", commands],
            cwd=tmp_path / name / "web-app",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        for words in expected.splitlines():
            assert words in " ".join(done.stdout.split()), done.stdout


@needs_git
def test_the_address_to_accept_is_shown_also_where_nobody_can_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("init", "-q", "--bare", "-b", "main", tmp_path / "shop.git", cwd=tmp_path)
    for name in ("ann", "bob"):
        person, clone = Shell(tmp_path / name, FakeClock()), tmp_path / name / "shop"
        git("clone", "-q", tmp_path / "shop.git", clone, cwd=tmp_path)
        git("config", "user.name", name.capitalize(), cwd=clone)
        git("config", "user.email", f"{name}@example.org", cwd=clone)
        monkeypatch.chdir(clone)
        if name == "ann":
            person("remember", "Use Fastify for the public API", "--kind", "decision")
            person("team", "share", "1")
            person("team", "push")
    person("team", "pull")
    told = person.type("team", "trust", "ann@example.org")
    assert told.exit_code == 1
    assert "The author is Ann <ann@example.org>." in told.stderr
    assert "Add --yes" in told.stderr


def test_the_complaint_of_git_is_its_error_and_not_its_advice() -> None:
    advice = "Please make sure you have the correct access rights\nand the repository exists.\n"
    refused = "ssh: connect to host x port 22: Connection refused\r\nfatal: Could not read from remote repository.\n\n"
    assert complaint_of(refused + advice) == (
        "ssh: connect to host x port 22: Connection refused; fatal: Could not read from remote repository."
    )
    unknown = "Author identity unknown\n\n*** Please tell me who you are.\n\nfatal: unable to detect the address\n"
    assert complaint_of(unknown) == "Author identity unknown; fatal: unable to detect the address."
    assert complaint_of("fatal: no access to https://ann:secret@host/x\nhint: look\n") == (
        "fatal: no access to https://…@host/x."
    )
    assert complaint_of("") == ""


@needs_git
@pytest.mark.parametrize("verb", ["push", "pull"])
def test_a_remote_that_is_not_there_is_named_with_the_error_of_git(shell: Shell, verb: str) -> None:
    git("init", "-q", cwd=Path.cwd())
    git("remote", "add", "origin", shell.folder / "nowhere.git", cwd=Path.cwd())
    shell("remember", "Harbor is staging")
    shell("team", "share", "1")
    said = shell.fails("team", verb)
    assert f"The remote origin ({shell.folder / 'nowhere.git'}) cannot be read: fatal: " in said
    assert "does not appear to be a git repository" in said
    assert "git remote -v" in said


@pytest.fixture
def shell(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    (shell.folder / "shop").mkdir()
    monkeypatch.chdir(shell.folder / "shop")
    return shell


def test_taking_the_block_out_says_whether_the_file_stays(shell: Shell) -> None:
    assert "Nothing is kept here yet." in shell("files", "sync")
    shell("remember", "Harbor is staging", "--kind", "convention")
    shell("files", "agents")
    assert "AGENTS.md is deleted: it held nothing but the block" in shell("files", "agents", "--remove")
    Path("AGENTS.md").write_text("# Shop\n\nRules of the shop.\n")
    shell("files", "agents")
    assert "AGENTS.md stays, without the block" in shell("files", "agents", "--remove")


@pytest.mark.parametrize("verb", ["share", "unshare"])
def test_sharing_needs_to_know_which_memories(shell: Shell, verb: str) -> None:
    shell("remember", "Harbor is staging")
    assert f"Name the memories: kept team {verb} REF..." in shell.fails("team", verb, code=2)


def test_the_block_is_written_reported_and_gone_after_uninstall(shell: Shell) -> None:
    file = shell.folder / "shop" / "AGENTS.md"
    before = b"# Shop\r\n\r\nRules of the shop."
    file.write_bytes(before)
    shell("remember", "Releases are cut from main only")
    assert "out of date" not in shell("status")
    assert "AGENTS.md written" in shell("files", "agents")
    assert b"Releases are cut from main only" in file.read_bytes()
    assert "out of date" not in shell("status") + shell("doctor") + shell("files", "status")
    shell("remember", "Tags are signed with the release key of the team")
    for command in (["status"], ["doctor"], ["files", "status"]):
        assert "out of date" in shell(*command), command
    shell("files", "agents")
    file.write_bytes(file.read_bytes() + b"\nMine.")
    assert "removed the block" in shell("uninstall")
    assert file.read_bytes() == before + b"\nMine."
    assert "removed the block" not in shell("uninstall")


def test_an_edit_is_asked_about_and_yes_accepts_it(shell: Shell) -> None:
    file = shell.folder / "shop" / "AGENTS.md"
    shell("remember", "Releases are cut from main only")
    shell("files", "agents")
    file.write_text(file.read_text().replace("main only", "stable only"))
    assert "not touched" in shell("files", "agents")  # nobody can be asked
    shell.answers = [False]
    assert "not touched" in shell("files", "agents")
    assert "Accept these changes" in shell.questions[-1]
    assert "1 changed" in shell("files", "agents", "--yes")
    assert "stable only" in shell("list")
    shell("files", "agents", "--remove")
    assert not file.exists()
    assert agents_md.BEGIN not in shell("list")
