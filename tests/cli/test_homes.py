"""Homes that cannot be used: a clear error each, and nothing lost."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import FakeClock
from tests.cli.shell import Shell
from tests.folders import common_user, make_repository, posix_only

pytestmark = posix_only


def test_a_home_that_may_not_be_written_is_read_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with common_user() as own:
        (own / "app").mkdir()
        monkeypatch.chdir(own / "app")
        shell = Shell(own, FakeClock())
        shell("remember", "one")
        folders = [path for path in shell.home.rglob("*") if path.is_dir()]
        for path in shell.home.rglob("*"):
            path.chmod(0o500 if path.is_dir() else 0o400)
        shell.home.chmod(0o500)
        sentence = shell.fails("remember", "two")
        assert "cannot be" in sentence or "could not" in sentence
        for path in folders:
            path.chmod(0o700)
        for path in shell.home.rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)
        assert [memory["content"] for memory in shell.json("list")["memories"]] == ["one"]
        monkeypatch.chdir("/")


def test_a_home_that_cannot_be_made_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with common_user() as own:
        (own / "app").mkdir()
        monkeypatch.chdir(own / "app")
        shell = Shell(own, FakeClock())
        own.chmod(0o500)
        sentence = shell.fails("remember", "one")
        assert "permission denied" in sentence
        assert "--home" in sentence
        own.chmod(0o700)
        monkeypatch.chdir("/")


@pytest.mark.parametrize("command", [["list"], ["remember", "x"], ["status"], ["projects", "list"]])
def test_a_file_in_place_of_the_home_is_left_alone(shell: Shell, command: list[str]) -> None:
    shell.home.write_text("mine")
    assert "is a file, not a directory" in shell.fails(*command)
    assert shell.home.read_text() == "mine"


def test_a_link_inside_the_home_is_not_followed(shell: Shell, tmp_path: Path) -> None:
    shell("remember", "x")
    [folder] = shell.home.glob("projects/*")
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert "symbolic link" in shell.fails("remember", "y", "--project", str(tmp_path / "app"))


def test_a_home_that_sqlite_could_not_open_is_refused_at_once(shell: Shell) -> None:
    assert "is not UTF-8, so SQLite cannot open files there" in shell.fails("list", "--home", "caf\udce9")


def put_away(shell: Shell) -> Path:
    """A repository with a memory, whose home is then not there, as on a disk that is not mounted. Where it is now."""
    make_repository(shell.folder / "app")
    shell("remember", "The canary sings")
    return shell.home.rename(shell.folder / "elsewhere")


@pytest.mark.parametrize(
    "command",
    [
        ["list"],
        ["recall", "canary"],
        ["remember", "y"],
        ["remember", "y", "--tier", "global", "--yes"],
        ["status"],
        ["doctor"],
        ["upkeep"],
        ["projects", "list"],
        ["serve", "--no-open"],
    ],
)
@pytest.mark.parametrize("is_mount_point", [False, True], ids=["missing", "empty"])
def test_a_home_that_is_away_is_not_taken_for_an_empty_one(
    shell: Shell, command: list[str], is_mount_point: bool
) -> None:
    elsewhere = put_away(shell)
    if is_mount_point:
        shell.home.mkdir()
    said = shell.fails(*command)
    assert ("has no projects" if is_mount_point else "is missing") in said
    for part in (str(shell.home), str(shell.folder / "app/.git/kept-id"), "KEPT_HOME", "kept projects link --new"):
        assert part in said
    assert shell.home.exists() == is_mount_point
    assert not is_mount_point or not any(shell.home.iterdir())
    if is_mount_point:
        shell.home.rmdir()
    elsewhere.rename(shell.home)
    assert "canary" in shell("list")


def test_a_home_that_is_gone_for_good_is_begun_again_by_a_command(shell: Shell, tmp_path: Path) -> None:
    put_away(shell)
    (tmp_path / "app/below").mkdir()
    advice = shell.fails("list").rpartition("begin a new one: kept ")[2]
    assert shell(*advice.split()).startswith(f"{tmp_path / 'app'} belongs to project app (")
    assert shell.json("list")["memories"] == []
    shell("remember", "A new beginning")
    assert "A new beginning" in shell("list")
    other = make_repository(tmp_path / "other")
    (other / ".git/kept-id").write_text("0123abcd\n")
    shell("remember", "x", "--project", str(other))  # the home is there again: another repository asks for nothing


def test_a_repository_without_an_id_begins_a_home(shell: Shell) -> None:
    make_repository(shell.folder / "app")
    assert shell.json("list")["memories"] == []
    shell("remember", "first")
    assert "first" in shell("list")


def test_a_new_project_is_made_for_a_directory_and_no_name_is_given_twice(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    assert shell("projects", "link", "--new", "Handbook", str(tmp_path / "docs")).endswith(")." + "\n")
    assert "already exists" in shell.fails("projects", "link", "--new", "handbook", ".")


def test_hooks_are_silent_and_make_no_home_while_it_is_away(shell: Shell) -> None:
    put_away(shell)
    given = {"session_id": "s", "cwd": str(shell.folder / "app"), "prompt": "what about the canary?"}
    for event in ("SessionStart", "UserPromptSubmit", "SessionEnd"):
        program = (
            f"import sys; sys.argv[1:] = ['claude-code', {event!r}]; from kept.entrypoints.hook import main; main()"
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            input=json.dumps(given).encode(),
            capture_output=True,
            env=shell.process_environment(KEPT_HOOK_LIMIT_MS="20000"),
            timeout=60,
            check=True,
        )
        assert (done.stdout, done.stderr) == (b"", b"")
    pointer = {"agent": "claude-code", "event": "SessionEnd", "session": "s", "cwd": given["cwd"], "transcript": "/x"}
    command = [sys.executable, "-m", "kept.entrypoints.hook.background", json.dumps(pointer)]
    subprocess.run(command, env=shell.process_environment(), timeout=60, check=True)
    assert not shell.home.exists()
