"""Properties of the whole: any text can be remembered, asked for and read back, and all storages give one answer."""

from collections.abc import Iterator
from contextlib import ExitStack
from math import prod
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.builders import FakeClock

import kept
from kept.model import Draft, Source
from kept.writing.redact import redact

ANY_TEXT = st.text(max_size=200) | st.text(
    alphabet="aAzZ019 _-./:'\"`{}[]<>#*&|\\\n\t\0é名前🧠\u202e\u200b", max_size=120
)
WORDS = st.lists(st.sampled_from("auth login cache token deploy friday tests slow fast replica".split()), max_size=8)
SLOW_MACHINES = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[kept.Kept]]:
    folder = tmp_path_factory.mktemp("stores")
    clock = FakeClock()
    with ExitStack() as stack:
        yield [
            stack.enter_context(kept.open(place, clock=clock, settings=kept.Settings()))
            for place in (":memory:", folder / "m.json", folder / "m.db")
        ]


@given(content=ANY_TEXT, tag=ANY_TEXT)
@settings(max_examples=80, deadline=None, suppress_health_check=SLOW_MACHINES)
def test_any_text_is_stored_as_it_is_or_refused_and_never_half(stores: list[kept.Kept], content: str, tag: str) -> None:
    """What comes back is what went in, less its secrets; the receipt and the journal agree; every storage the same."""
    outcomes = set()
    for memory in stores:
        before = len(memory.history(limit=100_000))
        try:
            receipt = memory.remember(content, tags=[tag])
        except kept.InvalidInput:
            assert len(memory.history(limit=100_000)) == before
            outcomes.add("invalid")
            continue
        outcomes.add(receipt.outcome)
        events = memory.history(limit=100_000)[before:]
        if receipt.outcome == "refused":
            assert events == []
            continue
        assert events, "a change without an event"
        found = memory.get(receipt.ref or "")
        assert found == receipt.memory
        if receipt.outcome == "stored" and receipt.reason is None:
            assert found.content == redact(content).text
            assert events[0].subject == found.uid
    assert len(outcomes) == 1, outcomes


@given(query=ANY_TEXT)
@settings(max_examples=60, deadline=None, suppress_health_check=SLOW_MACHINES)
def test_no_question_raises_and_every_score_multiplies_out(stores: list[kept.Kept], query: str) -> None:
    for memory in stores:
        for profile in ("kept", "koshi", "praxis"):
            recalled = memory.recall(query, profile=profile)
            for hit in recalled:
                assert hit.score == pytest.approx(prod(hit.why.values()))


@given(texts=st.lists(WORDS.map(" ".join).filter(bool), min_size=1, max_size=12), query=WORDS.map(" ".join))
@settings(max_examples=25, deadline=None, suppress_health_check=SLOW_MACHINES)
def test_every_storage_gives_the_same_answer(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], query: str
) -> None:
    """The same clock and the same memories: the same hits in the same order, with the same scores."""
    folder = tmp_path_factory.mktemp("same")
    answers = []
    for place in (":memory:", folder / "m.json", folder / "m.db"):
        with kept.open(place, clock=FakeClock(), settings=kept.Settings()) as memory:
            memory.remember_many(Draft(content=content, kind="fact") for content in texts)
            recalled = memory.recall(query, limit=50)
            answers.append([(hit.ref, round(hit.score, 9)) for hit in recalled])
    assert answers[0] == answers[1] == answers[2]


@given(content=st.text(max_size=300), origin=st.sampled_from(["tool", "extraction", "conversation", "import"]))
@settings(max_examples=60, deadline=None, suppress_health_check=SLOW_MACHINES)
def test_nothing_automatic_is_ever_confirmed_by_itself(tmp_path: Path, content: str, origin: str) -> None:
    with kept.open(":memory:", clock=FakeClock(), settings=kept.Settings()) as memory:
        try:
            memory.remember_many([Draft(content=content, pin=True, source=Source(origin=origin))])  # type: ignore[arg-type]
        except kept.InvalidInput:
            return
        assert all(found.status == "candidate" for found in memory.list())
