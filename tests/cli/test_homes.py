"""Homes that cannot be used: a clear error each, and nothing lost."""

from pathlib import Path

import pytest

from tests.builders import FakeClock
from tests.cli.shell import Shell
from tests.folders import common_user, posix_only

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
