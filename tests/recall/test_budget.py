"""C17: how a briefing's tokens are shared out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.recall.briefing import allocate, fitting, fitting_shared, total_tokens


@pytest.mark.parametrize(
    ("remaining", "row"),
    [
        (100_000, (400, 2300, 1495, 600)),
        (50_000, (320, 1840, 1196, 600)),
        (20_000, (200, 700, 455, 245)),
        (8_000, (200, 440, 0, 0)),
    ],
)
def test_the_golden_rows(remaining: int, row: tuple[int, ...]) -> None:
    """C17: always, bridge, retrieval and summary for what remains of the context."""
    assert allocate(total_tokens(None, remaining)) == row


@pytest.mark.parametrize(
    ("budget", "remaining", "total"),
    [
        (None, None, 5_000),
        (None, 1_000_000, 5_000),
        (None, 20_000, 1_600),
        (1_500, None, 1_500),
        (9_000, None, 9_000),
        (1_500, 8_000, 640),
        (100, 100_000, 100),
        (0, 100_000, 0),
        (None, 0, 0),
        (-5, None, 0),
        (None, -1_000, 0),
    ],
)
def test_the_total_is_as_given_or_a_share_of_what_remains(
    budget: int | None, remaining: int | None, total: int
) -> None:
    assert total_tokens(budget, remaining) == total


def test_settings_move_the_ceiling_and_the_share() -> None:
    assert total_tokens(None, None, most_tokens=800) == 800
    assert total_tokens(None, 10_000, most_percent=50.0) == 5_000
    assert total_tokens(None, 10_000, most_tokens=800, most_percent=50.0) == 800


@given(st.integers(0, 200_000))
def test_no_total_is_ever_exceeded_and_no_section_gets_less_than_nothing(total: int) -> None:
    shares = allocate(total)
    assert sum(shares) <= total
    assert min(shares) >= 0
    assert shares.always <= 400
    assert shares.retrieval <= 1_500
    assert shares.summary <= 600


def test_what_is_too_big_is_passed_over_and_the_next_one_tried() -> None:
    """D12: greedy, in order of rank."""
    assert fitting([50, 80, 40, 10], 100) == [0, 2, 3]
    assert fitting([1], 0) == []


TIERS = ["project", "project", "project", "task", "global"]


def test_each_tier_has_a_share_to_itself() -> None:
    """D10: 40 / 40 / 20. The third project memory would fit, were it not for the others' shares."""
    shares = {"task": 40, "project": 40, "global": 20}
    assert fitting_shared([20, 20, 20, 40, 20], TIERS, 100, shares) == [0, 1, 3, 4]


def test_what_a_tier_leaves_is_for_all() -> None:
    shares = {"task": 40, "project": 40, "global": 20}
    assert fitting_shared([30, 30, 30], ["project"] * 3, 100, shares) == [0, 1, 2]


def test_a_tier_without_a_share_gets_nothing() -> None:
    assert fitting_shared([10, 10, 10, 10, 10], TIERS, 100, {"task": 1, "project": 0, "global": 0}) == [3]
    assert fitting_shared([10, 10], ["task", "global"], 100, {"task": 0, "project": 0, "global": 0}) == []


@given(
    st.lists(st.tuples(st.integers(0, 200), st.sampled_from(["task", "project", "global"])), max_size=20),
    st.integers(-50, 1_000),
    st.fixed_dictionaries({tier: st.integers(0, 100) for tier in ("task", "project", "global")}),
)
def test_shared_or_not_the_room_is_never_exceeded(
    things: list[tuple[int, str]], room: int, shares: dict[str, int]
) -> None:
    costs, tiers = [cost for cost, _ in things], [tier for _, tier in things]
    chosen = fitting_shared(costs, tiers, room, shares)
    assert sum(costs[place] for place in chosen) <= max(0, room)
    assert chosen == sorted(set(chosen))
