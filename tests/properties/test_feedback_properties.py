"""Feedback orders memories that fit alike; it cannot silence one that fits."""

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.builders import FakeClock

import kept
from kept import worth
from kept.tables import PROFILES

TELLING = "harbour ferry gangway lantern winch anchor beacon mooring".split()
AROUND = "we keep it painted and Lena counts them before the season opens in spring".split()
KINDS = ("fact", "decision", "warning", "progress")
SLOW_MACHINES = [HealthCheck.too_slow]

words = st.lists(st.sampled_from(TELLING), min_size=2, max_size=4, unique=True)


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, str]]]:
    """Draw a query, and memories that lack at least one of its words, each with a kind."""
    query = draw(words)
    wrong = []
    for number in range(draw(st.integers(1, 6))):
        held = draw(st.lists(st.sampled_from(query), min_size=1, max_size=len(query) - 1, unique=True))
        around = draw(st.lists(st.sampled_from(AROUND), min_size=2, max_size=8))
        wrong.append((f"Note {number} {' '.join([*held, *around])}", draw(st.sampled_from(KINDS))))
    return query, wrong


def first_three(memory: kept.Kept, query: Sequence[str]) -> list[str]:
    return [hit.memory.content for hit in memory.recall(" ".join(query), limit=10)][:3]


@given(situation=situations(), times=st.integers(1, 10))
@settings(max_examples=60, deadline=None, suppress_health_check=SLOW_MACHINES)
def test_reinforcing_wrong_memories_never_removes_the_right_one_from_the_first_three(
    situation: tuple[list[str], list[tuple[str, str]]], times: int
) -> None:
    query, wrong = situation
    right = f"The {' '.join(query)} belong to the old pier"
    with kept.open(":memory:", clock=FakeClock(), settings=kept.Settings()) as memory:
        memory.remember(right)
        refs = [memory.remember(content, kind=kind).ref for content, kind in wrong]
        for ref in refs[:2]:
            for _ in range(times):
                memory.reinforce(ref or "")
            assert right in first_three(memory, query)


@given(situation=situations(), times=st.integers(1, 10))
@settings(max_examples=60, deadline=None, suppress_health_check=SLOW_MACHINES)
def test_demoting_the_right_memory_never_removes_it_from_the_first_three(
    situation: tuple[list[str], list[tuple[str, str]]], times: int
) -> None:
    """An agent that misread it may demote it again and again; nothing else answers the question."""
    query, wrong = situation
    right = f"The {' '.join(query)} belong to the old pier"
    with kept.open(":memory:", clock=FakeClock(), settings=kept.Settings()) as memory:
        ref = memory.remember(right).ref
        for content, kind in wrong[:2]:
            memory.remember(content, kind=kind)
        for _ in range(times):
            memory.demote(ref or "")
        assert right in first_three(memory, query)


@given(query=words, times=st.integers(1, 10))
@settings(max_examples=30, deadline=None, suppress_health_check=SLOW_MACHINES)
def test_one_of_two_memories_that_fit_alike_falls_behind_when_it_is_demoted(query: list[str], times: int) -> None:
    said = " ".join(query)
    with kept.open(":memory:", clock=FakeClock(), settings=kept.Settings()) as memory:
        older = memory.remember(f"Jonas lends {said} to visitors").ref
        newer = memory.remember(f"Marta rents {said} from cousins").ref
        for _ in range(times):
            memory.demote(newer or "")
        assert [hit.ref for hit in memory.recall(said)] == [older, newer]


@given(feedback=st.integers(-100, 99))
def test_every_point_of_feedback_counts_and_all_together_stay_within_the_cut(feedback: int) -> None:
    assert worth.favour_factor(feedback) < worth.favour_factor(feedback + 1)
    assert worth.favour_factor(feedback) * worth.favour_factor(-feedback) == pytest.approx(1)
    assert worth.favour_factor(100) / worth.favour_factor(-100) * PROFILES["kept"].threshold_share < 1
    assert round(worth.feedback_of_favour(worth.favour_factor(feedback))) == feedback
