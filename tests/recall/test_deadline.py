"""Recall is quick by looking at little, and ends in time whatever is asked; `python -m bench.recall` has figures."""

import gc
import random
import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kept
from kept.ports import Statistics
from kept.recall import candidates
from kept.storage.sqlite import SqliteStorage
from tests.builders import FakeClock, context_of, memory, stamp

ROWS = 4_000
WORDS = [f"{a}{b}o" for a in "bdfgklmnprtvz" for b in ("an", "el", "ir", "un")]
DEADLINE_MS, GRACE_MS = 20, 100
ANY_TEXT = st.text(max_size=200) | st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kept.Kept]:
    """Thousands of memories in a language of few words, each of which stands nearly everywhere."""
    path, chance = tmp_path_factory.mktemp("crowded") / "m.db", random.Random(1)
    storage = SqliteStorage(path, "project/p1", synchronous="normal")
    with storage.writing(stamp()) as tx:
        for _ in range(ROWS):
            tx.add(memory(" ".join(chance.choices(WORDS, k=25)), tags=(chance.choice(WORDS),)), "remember")
    storage.close()
    with kept.open(path, clock=FakeClock(), settings=kept.Settings(recall_deadline_ms=DEADLINE_MS)) as opened:
        context_of(opened).timer = time.thread_time  # of this thread alone: the machine may be busy with something else
        opened.recall("warm up")
        gc.freeze()  # what all the tests before have left in memory is not looked through in the middle of a recall
        yield opened


@given(query=ANY_TEXT, profile=st.sampled_from(["kept", "koshi", "praxis"]), tag=st.sampled_from(["", *WORDS[:3]]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_makes_recall_miss_its_deadline(crowded: kept.Kept, query: str, profile: str, tag: str) -> None:
    """A17: the same on 100,000 rows: `python -m bench.recall --only deadline`."""
    started = time.thread_time()
    crowded.recall(query, profile=profile, tags=[tag] if tag else [])
    assert (time.thread_time() - started) * 1000 <= DEADLINE_MS + GRACE_MS


def test_what_was_found_until_the_deadline_is_the_answer(crowded: kept.Kept) -> None:
    class Stopwatch:
        """Every look at it takes a quarter of the deadline."""

        looks = 0

        def __call__(self) -> float:
            self.looks += 1
            return self.looks * DEADLINE_MS / 4_000

    usual, context_of(crowded).timer = context_of(crowded).timer, Stopwatch()
    try:
        recalled = crowded.recall(" ".join(WORDS[:8]))
    finally:
        context_of(crowded).timer = usual
    assert "Time ran out after 20 ms, so the newest matches replace the best ones." in (recalled.degraded or "")
    assert len(recalled.hits) > 0


def test_the_work_of_a_search_grows_far_slower_than_the_space() -> None:
    """A17: a hundred times as many rows, ten times as many postings; and words beyond the budget are left out."""
    assert [round(candidates.budget(rows)) for rows in (10_000, 1_000_000, 100_000_000)] == [2_000, 20_000, 200_000]
    rows_with = {"the": 600_000, "cache": 30_000, "replica": 12_000, "failover": 7_000, "mitosis": 3}
    statistics = Statistics(1_000_000, 35_000_000, 40_000_000, rows_with)
    rare, common = candidates.affordable(dict.fromkeys(rows_with, 1.0), statistics)
    assert (rare, common) == (["mitosis", "failover", "replica"], ["cache", "the"])


def test_a_small_space_is_searched_with_every_word() -> None:
    rows_with = {"the": 1_999, "cache": 1_000}
    statistics = Statistics(2_000, 70_000, 80_000, rows_with)
    assert candidates.affordable(dict.fromkeys(rows_with, 1.0), statistics) == (["cache", "the"], [])
