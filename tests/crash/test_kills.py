"""kill -9 at any moment: the short version of tests/crash/kills.py, and proof that its oracle notices."""

import sys

import pytest

from tests.crash.kills import Oracle
from tests.crash.processes import run_program
from tests.crash.writers import Said

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kill -9 and fork are not of this platform")


def test_what_was_acknowledged_survives_kill_9() -> None:
    """B21, C30: writers and makers are killed at random and at chosen moments; a planted loss is noticed, too."""
    said = run_program("tests.crash.kills", "--kills", "20", "--writers", "4", "--making-stride", "30", "--seed", "7")
    assert "0 problems" in said


def oracle_that_heard(*told: tuple[int, Said]) -> Oracle:
    oracle = Oracle()
    for writer, said in told:
        oracle.hear(writer, said)
    return oracle


def added(uid: str, content: str) -> list[tuple[int, Said]]:
    return [(1, Said(False, "add", {uid: content})), (1, Said(True, "add", {uid: content}))]


def test_the_oracle_is_content_when_all_is_there() -> None:
    assert oracle_that_heard(*added("m1", "text")).verdict({"m1": "text"}) == []


def test_the_oracle_names_a_lost_write() -> None:
    assert oracle_that_heard(*added("m1", "text")).verdict({}) == ["m1 was acknowledged, and is not there"]


def test_the_oracle_names_a_write_that_was_taken_back() -> None:
    oracle = oracle_that_heard(*added("m1", "old"), *added("m1", "new"))
    assert oracle.verdict({"m1": "old"}) == ["m1 was acknowledged, and is another"]


def test_the_oracle_names_an_erased_memory_that_came_back() -> None:
    oracle = oracle_that_heard(*added("m1", "text"), (1, Said(False, "erase", {"m1": None})))
    oracle.hear(1, Said(True, "erase", {"m1": None}))
    assert oracle.verdict({"m1": "text"}) == ["m1 was acknowledged, and is another"]


@pytest.mark.parametrize("found", [{}, {"m1": "a", "m2": "b"}])
def test_what_was_under_way_may_be_there_or_not(found: dict[str, str]) -> None:
    oracle = oracle_that_heard((1, Said(False, "add", {"m1": "a", "m2": "b"})))
    oracle.bury(1)
    assert oracle.verdict(found) == []


def test_the_oracle_names_half_a_group() -> None:
    oracle = oracle_that_heard((1, Said(False, "add", {"m1": "a", "m2": "b"})))
    oracle.bury(1)
    assert oracle.verdict({"m1": "a"}) == ["a group is there in part: m1, m2"]


def test_the_oracle_names_what_nobody_wrote() -> None:
    assert Oracle().verdict({"m1": "a"}) == ["m1 was written by nobody"]
