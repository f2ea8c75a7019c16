"""A prompt's hook where vectors are on: it compares by the model of the extra, and leaves making vectors to others."""

import json
from pathlib import Path

import pytest

from tests.hook.test_program import GENEROUS, Box

HYBRID = {**GENEROUS, "KEPT_SEARCH_PROVIDER": "hybrid"}
CAR = "The automobile of the manager is in the garage"


@pytest.fixture
def box(tmp_path: Path) -> Box:
    box = Box(tmp_path)
    with box.open() as memory:
        memory.remember(CAR)
    return box


def asked(box: Box) -> bytes:
    given = json.loads(box.given("claude-code", "UserPromptSubmit"))
    return json.dumps({**given, "prompt": "Where is the car?"}).encode()


def done(box: Box) -> int:
    with box.open() as memory:
        return sum(int(state["done"]) for state in memory.vectors.status().values())


def test_a_prompt_in_other_words_gets_its_memory(box: Box) -> None:
    assert CAR.encode() not in box.fire("claude-code", "UserPromptSubmit", given=asked(box), **GENEROUS).out
    with box.open() as memory:
        memory.vectors.on()
    assert CAR.encode() in box.fire("claude-code", "UserPromptSubmit", given=asked(box), **HYBRID).out


def test_a_prompt_makes_no_vectors_and_the_background_process_does(box: Box) -> None:
    box.fire("claude-code", "UserPromptSubmit", given=asked(box), **HYBRID)
    assert done(box) == 0
    ended = {"session_id": "s-2", "cwd": str(box.project), "transcript_path": str(box.transcript)}
    box.fire("claude-code", "Stop", given=json.dumps(ended).encode(), **HYBRID)
    box.wait_until(lambda: done(box) == 1)
