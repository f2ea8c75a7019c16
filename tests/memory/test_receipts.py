"""Receipts: an answer can be explained later exactly as it was given, and a receipt stays short."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kept
from kept.model import Hit
from kept.recall import Request
from tests.builders import START, FakeClock, context_of


@pytest.fixture(params=["inmemory", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[kept.Kept]:
    place = ":memory:" if request.param == "inmemory" else tmp_path / "m.db"
    with kept.open(place, clock=FakeClock(), settings=kept.Settings(auto_upkeep=False)) as opened:
        yield opened


def line(hit: Hit, **more: Any) -> dict[str, Any]:
    noted = {"ref": hit.ref, "uid": hit.memory.uid, "score": hit.score, "why": hit.why, "matched": hit.matched}
    return noted | ({"parts": hit.parts} if hit.parts else {}) | more


def assert_explained(memory: kept.Kept, recalled: kept.Recalled) -> None:
    explained = memory.why(recalled.receipt)
    assert list(explained.hits) == [line(hit) for hit in recalled.hits]
    assert list(explained.misses) == [line(miss.hit, reason=miss.reason) for miss in recalled.misses]
    assert explained.words == recalled.words
    assert explained.confidence == recalled.confidence


def test_a_receipt_has_every_number_of_the_answer(memory: kept.Kept) -> None:
    for number in range(12):
        memory.remember(f"The authentication service number {number} answers on port {8000 + number}")
    memory.remember("Sign in with a password manager", kind="preference", pin=True)
    asked_for = memory.recall("authentication service port")
    assert asked_for.hits
    assert asked_for.misses
    assert_explained(memory, asked_for)
    by_alias = memory.recall("auth service", limit=2)
    assert any("alias of" in how for hit in by_alias for how in hit.matched.values())
    assert_explained(memory, by_alias)
    assert_explained(memory, memory.recall("authentication", follow=True))
    assert_explained(memory, memory.recall("no such words anywhere"))


def test_messages_whose_factors_add_up_are_explained_as_well(memory: kept.Kept) -> None:
    session = memory.session("s1")
    session.append("user", "The importer runs on Fridays at noon")
    session.append("assistant", "Noted: the importer runs on Fridays")
    recalled = memory.recall("importer Fridays", scope="sessions")
    assert recalled.hits
    assert_explained(memory, recalled)


def test_the_question_is_asked_again_as_it_was(memory: kept.Kept) -> None:
    memory.remember("Deploys happen on Tuesdays", kind="decision", tags=["ops"])
    memory.recall("deploys", limit=3, kinds=["decision"], tags=["ops"], since=START, files=["a.py"])
    question = Request(query="deploys", limit=3, kinds=("decision",), tags=("ops",), since=START, files=("a.py",))
    assert memory.why().question == question


def test_a_receipt_of_version_0_2_is_still_explained(memory: kept.Kept) -> None:
    hit = {"ref": "1", "uid": "u", "score": 6.0, "why": {"match": 3.0, "use": 2.0}, "matched": {"x": "asked for"}}
    body = {"question": {"query": "x"}, "words": ["x"], "hits": [hit], "misses": [hit | {"reason": "late"}]}
    with context_of(memory).readable()[0].bookkeeping() as notes:
        assert notes is not None
        notes.save_receipt(body, ["u"], START)
    explained = memory.why()
    assert explained.hits == (hit,)
    assert explained.misses == (hit | {"reason": "late"},)


def test_a_receipt_takes_a_few_hundred_bytes_beside_its_numbers(tmp_path: Path) -> None:
    with kept.open(tmp_path / "m.db", clock=FakeClock(), settings=kept.Settings(auto_upkeep=False)) as memory:
        for number in range(20):
            memory.remember(f"The importer of team {number} writes to table {number} every night")
        recalled = memory.recall("importer table night")
        assert len(recalled.hits) + len(recalled.misses) == 15
        with context_of(memory).readable()[0].reading() as reader:
            found = reader.view.fetch("select length(body) from receipts")  # type: ignore[attr-defined]
    assert found[0][0] < 2_500  # 5,900 before
