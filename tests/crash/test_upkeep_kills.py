"""Upkeep survives being killed: the short version of upkeep_kills.py, and the proof that it would notice."""

from pathlib import Path

import pytest

from kept.upkeep import decisions
from tests.crash import upkeep_kills
from tests.crash.scratch import scratch_folder


def test_upkeep_that_was_killed_and_run_again_ends_as_one_clean_run() -> None:
    """C19, C28, C29: whatever was done is done once, and what was not done is done by the next run."""
    with scratch_folder() as folder:
        killed, problems = upkeep_kills.kills(folder, stride=37)
    assert killed > 10
    assert problems == []


def test_that_store_has_something_of_everything_for_upkeep_to_do(tmp_path: Path) -> None:
    upkeep_kills.build(tmp_path)
    upkeep_kills.run(tmp_path)
    assert upkeep_kills.actions_of(tmp_path) == {"confirm", "penalise", "expire", "evict", "pack"}


def test_a_penalty_that_is_given_again_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "is_penalised", lambda memory: False)
    with scratch_folder() as folder:
        _, problems = upkeep_kills.kills(folder, stride=97)
    assert any("memories" in problem for problem in problems)
