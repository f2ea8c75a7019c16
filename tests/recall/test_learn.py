"""The weights of recall over conversations can be learned again, from the features that recall computes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench import learn
from bench.quality import made_up

from kept.recall.messages.weights import PEOPLE
from tests.recall.test_hybrid import Concepts


def rows(values: list[list[float]], gold: list[bool], of: list[int], names: list[str]) -> learn.Rows:
    return learn.Rows(names, np.array(values), np.array(of), np.array(gold), max(of) + 1)


def test_a_feature_that_only_the_gold_has_gets_weight_and_no_reason_turns_against() -> None:
    told = rows([[1, 0, 1], [0, 1, 1], [1, 0, 0], [0, 1, 0]], [True, False, True, False], [0, 0, 1, 1], ["a", "b", "c"])
    a, b, c = learn.learned(told, np.array([0.5, 0.5, 0.5]), np.array([True, True, True]))
    assert a > 0.5
    assert b == 0.0
    assert c < a


def test_what_has_no_data_keeps_its_weight() -> None:
    told = rows([[1, 0, 0], [0, 0, 0]], [True, False], [0, 0], ["match", "speaker", "meaning"])
    assert learn.of_words(told, np.array([1.0, 0.7, 0.3])).tolist() == [1.0, 0.7, 0.0]


def test_learning_runs_and_says_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert learn.main(["--tiny", "--json"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert set(told["weights"]) == {"message", "session"}
    assert told["weights"]["message"]["match"] == 1.0
    assert told["words"]["turn"]["n"] == 2


def test_every_question_is_held_out_once(tmp_path: Path) -> None:
    asked = list(learn.examples(made_up(tmp_path), 2, Concepts()))
    assert [example.part for example in asked] == [0, 1]
    assert len(learn.figures(asked, PEOPLE)) == 2
