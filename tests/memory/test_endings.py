"""Archived statements say when they stopped being true and what replaced them."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

import kept
from tests.builders import FakeClock

TUESDAYS = "Deploys of the shop happen on Tuesdays"
THURSDAYS = "Deploys of the shop now happen on Thursdays"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 10, 1, 9, tzinfo=UTC))


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[kept.Kept]:
    with kept.open(":memory:", clock=clock, settings=kept.Settings(), origin="user") as opened:
        yield opened


def until(memory: kept.Kept, ref: str = "1") -> str:
    return memory.look().standing(memory.get(ref)).until


def test_a_replaced_statement_says_until_when_it_held_and_what_replaced_it(memory: kept.Kept, clock: FakeClock) -> None:
    memory.remember(TUESDAYS)
    assert until(memory) == ""
    clock.at = datetime(2026, 11, 3, 9, tzinfo=UTC)
    memory.remember(THURSDAYS)
    clock.advance(days=10)
    assert until(memory) == "until 3 Nov (replaced by 2)"
    [hit] = memory.recall("deploys shop", scope="archive").hits
    assert (hit.ref, hit.until) == ("1", "until 3 Nov (replaced by 2)")
    clock.advance(days=100)
    assert until(memory) == "until 3 Nov 2026 (replaced by 2)", "in another year"
    memory.restore("1")
    assert until(memory) == ""


def test_an_answer_about_the_past_says_what_has_ended_since(memory: kept.Kept, clock: FakeClock) -> None:
    memory.remember(TUESDAYS)
    memory.remember("The shop is closed on the first of January")
    clock.at = datetime(2026, 11, 3, 9, tzinfo=UTC)
    memory.remember(THURSDAYS)
    then = datetime(2026, 10, 20, tzinfo=UTC)
    found = {hit.ref: hit.until for hit in memory.recall("shop deploys", as_of=then).hits}
    assert found["1"] == "until 3 Nov (replaced by 3)"
    assert found.get("2", "") == ""
    assert "until" not in str(memory.briefing("When are deploys of the shop?", as_of=then)), "as it was told then"


def test_the_end_is_the_day_on_which_the_later_statement_was_made(memory: kept.Kept, clock: FakeClock) -> None:
    """It may have been imported long after it was said."""
    memory.remember(TUESDAYS)
    clock.at = datetime(2026, 11, 20, 9, tzinfo=UTC)
    said = datetime(2026, 11, 3, 9, tzinfo=UTC)
    memory.remember_many([kept.Draft(content=THURSDAYS, created_at=said)])
    assert until(memory) == "until 3 Nov (replaced by 2)"


def test_what_was_found_wrong_says_so_and_what_was_only_put_away_has_not_ended(
    memory: kept.Kept, clock: FakeClock
) -> None:
    for said in ("The importer retries three times", "The pier opens at six", "The pier opens at 6."):
        memory.remember(said)
    clock.at = datetime(2026, 11, 3, 9, tzinfo=UTC)
    memory.reviews.apply(["wrong:1", "supersede:3=2"])
    assert until(memory, "1") == "until 3 Nov (found wrong)"
    assert until(memory, "3") == "", "the other one says the same"
    memory.reviews.apply(["archive:2"])
    assert until(memory, "2") == ""


def test_what_was_promoted_still_holds(memory: kept.Kept) -> None:
    stored = memory.remember(TUESDAYS, tier="session")
    memory.promote(stored.ref or "", "project")
    assert memory.get(stored.ref or "").is_archived
    assert until(memory, stored.ref or "") == ""
