"""`kept tour`: what `make run` shows."""

import tempfile
from pathlib import Path

import pytest

from kept.entrypoints.cli.tour import WALK
from tests.cli.shell import Shell


def test_every_step_of_the_tour_really_runs(shell: Shell) -> None:
    steps = shell.json("tour", "--all")["steps"]
    assert len(steps) == len(WALK)
    assert [step for step in steps if step["exit_code"] != 0] == []
    assert [step for step in steps if not step["output"]] == []


def test_the_tour_shows_commands_and_their_output_and_ends(shell: Shell) -> None:
    said = shell("tour", "--all")
    assert '$ kept remember "Never edit the auth middleware directly"' in said
    assert "Kept: [id:1] (warning).\n" in said
    assert "Already kept: [id:2]" in said
    assert "It contradicts [id:2] (conflict c1)." in said
    [secret] = [step for step in shell.json("tour", "--all")["steps"] if "password" in step["command"]]
    assert secret["command"].split()[-1] not in secret["output"]
    assert "Undone: forget" in said
    assert "Nothing is kept here yet." in said, "another project is empty"
    assert "Traceback" not in said


def test_the_tour_is_five_short_steps_and_ends_by_itself_where_nobody_can_be_asked(shell: Shell) -> None:
    said = shell("tour")
    assert said.count("$ kept ") == 5
    assert "Your last change, just now: forget [id:1] Never edit the auth middleware directly." in said
    assert f"`kept tour --all` shows {len(WALK) - 5} further steps." in said


def test_the_tour_leaves_nothing_behind_and_touches_nothing(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = shell.folder / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    before = sorted(Path.cwd().rglob("*"))
    shell("tour", "--all")
    assert list(scratch.iterdir()) == []
    assert sorted(Path.cwd().rglob("*")) == before
    assert not shell.home.exists()


def test_the_tour_does_not_depend_on_the_settings_of_the_person(shell: Shell) -> None:
    (shell.folder / "config.toml").write_text("reinforce_weight = 9\n")
    assert "[id:1] has feedback +3 now." in shell("tour", "--all")
