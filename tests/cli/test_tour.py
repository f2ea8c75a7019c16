"""`kept tour`: what `make run` shows."""

import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from kept.entrypoints.cli.frame import root
from kept.entrypoints.cli.invocation import Invocation
from kept.entrypoints.cli.tour import WALK
from tests.cli.shell import Shell


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What somebody types at a terminal, one key after the other."""
    typed: list[str] = []
    monkeypatch.setattr("click.getchar", lambda: typed.pop(0))
    monkeypatch.setattr(Invocation, "can_pick", lambda self: not self.as_json)
    return typed


def walked(shell: Shell, *arguments: str, answer: str = "no") -> str:
    invocation = Invocation(clock=shell.clock, picks=lambda question, options: answer)
    result = CliRunner(env=shell.environment).invoke(root, ["tour", *arguments], obj=invocation)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_tour_stops_at_q(shell: Shell, keys: list[str]) -> None:
    keys += ["x", "q"]
    said = walked(shell, answer="yes")
    assert "Press a key to continue, q to stop" in said
    assert said.count("$ kept") == 2
    assert "That was the tour." in said


def test_a_whole_tour_waits_for_no_key(shell: Shell, keys: list[str]) -> None:
    assert walked(shell, "--all").count("$ kept") == len(WALK)


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
