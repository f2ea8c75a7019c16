"""What time does to a store: quarantine, shelf life, size, each through the archive and in the journal."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import kept
from kept import worth
from kept.journal import UPKEEP
from kept.model import Draft, Source
from tests.builders import START, FakeClock
from tests.builders import memory as a_memory

STATEMENT = "The nightly import job reads from replica number {} because the primary is too busy."


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["inmemory", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[kept.Kept]:
    place = ":memory:" if request.param == "inmemory" else tmp_path / "m.db"
    with kept.open(place, clock=clock, settings=kept.Settings()) as opened:
        yield opened


def automatic(memory: kept.Kept, content: str, kind: str = "discovery", origin: str = "extraction") -> str:
    draft = Draft(content=content, kind=kind, source=Source(origin=origin))  # type: ignore[arg-type]
    (receipt,) = memory.remember_many([draft])
    assert receipt.ref is not None, receipt
    return receipt.ref


def open_with(tmp_path: Path, clock: FakeClock, **settings: object) -> kept.Kept:
    return kept.open(tmp_path / "m.db", clock=clock, settings=kept.Settings(**settings))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "weeks", "uses", "expected"),
    [
        ("confirmed", 0, 10, 0.8),
        ("confirmed", 0, 0, 0.4),
        ("confirmed", 1, 10, 0.76),
        ("confirmed", 10, 10, 0.8 * 0.95**10),
        ("candidate", 0, 10, 0.72),
        ("candidate", 2, 4, 0.8 * 0.95**2 * 0.9 * 0.7),
        ("confirmed", 0, 50, 0.8),
        ("pinned", 100, 0, 0.8),
    ],
)
def test_importance_decays_as_the_table_says(status: str, weeks: int, uses: int, expected: float) -> None:
    """C27: importance × 0.95^(days/7) × status × min(1, .5 + .05·uses); pinned is exempt."""
    m = a_memory("x", importance=0.8, status=status, use_count=uses)
    assert worth.decayed_importance(m, START + timedelta(weeks=weeks)) == pytest.approx(expected)


def test_decay_is_never_written_back(memory: kept.Kept, clock: FakeClock) -> None:
    """The seed's fault: three openings made .09 of 1.0."""
    memory.remember("Important", importance=1.0)
    for _ in range(3):
        clock.advance(days=30)
        memory.upkeep()
    assert memory.get(1).importance == 1.0


@pytest.mark.parametrize(
    ("kind", "days"),
    [
        ("progress", 14),
        ("discovery", 21),
        ("file_change", 21),
        ("warning", 30),
        ("decision", 90),
        ("error", 90),
        ("pattern", 180),
        ("architecture", 180),
        ("preference", 365),
        ("fact", 90),
    ],
)
def test_shelf_lives(memory: kept.Kept, clock: FakeClock, kind: str, days: int) -> None:
    """C28: an unused automatic memory is archived the day after its shelf life, and not before."""
    ref = automatic(memory, STATEMENT.format(1), kind)
    clock.advance(days=days)
    assert memory.upkeep().count("expire") == 0
    clock.advance(days=1)
    assert memory.upkeep().count("expire") == 1
    gone = memory.get(ref)
    assert (gone.status, gone.reason) == ("archived", "expired")
    assert [hit.ref for hit in memory.recall("nightly import replica", scope="archive")] == [ref]


def test_three_uses_or_a_pin_outlive_any_shelf_life(tmp_path: Path, clock: FakeClock) -> None:
    """C28."""
    with open_with(tmp_path, clock, retention="praxis") as memory:
        used, pinned = (memory.remember(f"note number {n} about {n * 7}").ref for n in (1, 2))
        assert used is not None
        assert pinned is not None
        for _ in range(3):
            memory.reinforce(used)
        memory.pin(pinned)
        clock.advance(days=4000)
        assert memory.upkeep().done == ()


def test_nothing_explicit_leaves_by_age(memory: kept.Kept, clock: FakeClock) -> None:
    """A14: a memory at −8 lives for ever while there is room."""
    memory.remember("Said on purpose", kind="progress")
    for _ in range(8):
        memory.demote(1)
    clock.advance(days=36_500)
    assert memory.upkeep().done == ()
    assert memory.get(1).status == "confirmed"


def test_a_candidate_that_was_used_is_confirmed_after_a_day(memory: kept.Kept, clock: FakeClock) -> None:
    """C19: accessed → confirmed; not → importance × 0.8, once; a tool's memory is never confirmed by itself."""
    used, unused = (
        automatic(memory, STATEMENT.format(1)),
        automatic(memory, "Caches are warmed before the first request."),
    )
    tool = automatic(memory, "The compiler prints a warning about unused variables.", origin="tool")
    before = memory.get(unused).importance
    clock.advance(hours=23)
    assert memory.upkeep().done == ()
    clock.advance(hours=2)
    for ref in (used, tool):
        memory.reinforce(ref)
    done = memory.upkeep()
    assert {one.ref: one.action for one in done.done} == {used: "confirm", unused: "penalise", tool: "penalise"}
    assert memory.get(used).status == "confirmed"
    assert memory.get(unused).status == "candidate"
    assert memory.get(unused).importance == pytest.approx(before * 0.8)
    assert memory.upkeep().done == ()
    memory.reinforce(unused)
    assert memory.upkeep().count("confirm") == 1


def test_the_least_worth_leave_when_there_is_no_room(tmp_path: Path, clock: FakeClock) -> None:
    """A14, C29: by worth, into the archive; pinned and fresh ones stay."""
    with open_with(tmp_path, clock, max_memories=10) as memory:
        for number in range(14):
            memory.remember(f"statement number {number} about the number {number * 31}")
        memory.pin(1)
        memory.reinforce(2)
        assert memory.upkeep().done == (), "everything is fresh"
        clock.advance(days=2)
        memory.reinforce(3)
        done = memory.upkeep()
        assert done.count("evict") == 4
        left = {m.ref for m in memory.list(limit=100)}
        assert len(left) == 10
        assert {"1", "2", "3"} <= left
        assert {m.reason for m in memory.list(status="archived", limit=100)} == {"evicted"}


def test_praxis_keeps_three_thousand_down_to_2700(tmp_path: Path, clock: FakeClock) -> None:
    """C29: the numbers of the retention `praxis`."""
    with open_with(tmp_path, clock, retention="praxis") as memory:
        memory.remember_many(Draft(content=f"statement {n} about {n * 31}, {n * 17}") for n in range(3001))
        clock.advance(days=2)
        assert memory.upkeep().count("evict") == 301
        assert memory.status()["spaces"][0]["memories"]["live"] == 2700


def test_size_alone_makes_room(tmp_path: Path, clock: FakeClock) -> None:
    """A14: `max_size_bytes`; retention koshi goes by feedback and recency only."""
    with open_with(tmp_path, clock, retention="koshi", max_size_bytes=65_536) as memory:
        memory.remember_many(Draft(content=f"{n} " + "x" * 400, importance=(n % 10) / 10) for n in range(60))
        memory.reinforce(1)
        clock.advance(days=2)
        evicted = {one.ref for one in memory.upkeep().done}
        assert evicted
        assert "1" not in evicted
        assert memory.upkeep().done == ()


def test_a_dry_run_says_exactly_what_a_run_does(tmp_path: Path, clock: FakeClock) -> None:
    with open_with(tmp_path, clock, max_memories=6) as memory:
        for number in range(8):
            memory.remember(f"statement number {number} about the number {number * 31}")
        automatic(memory, STATEMENT.format(1), "progress")
        automatic(memory, "Caches are warmed before the first request.", "decision")
        clock.advance(days=20)
        planned = memory.upkeep(dry_run=True)
        assert planned.is_dry_run
        assert len(memory.list(limit=100)) == 10
        assert memory.upkeep().done == planned.done
        assert {one.action for one in planned.done} == {"expire", "penalise", "evict"}


def test_upkeep_is_in_the_journal_and_not_undone_by_accident(memory: kept.Kept, clock: FakeClock) -> None:
    ref = automatic(memory, STATEMENT.format(1), "progress")
    memory.remember("Something of mine")
    clock.advance(days=30)
    memory.upkeep()
    event = memory.history(ref)[-1]
    assert (event.actor, event.action) == (UPKEEP, "expire")
    assert [undone.action for undone in memory.undo()] == ["undo"]
    assert memory.list() == []
    assert memory.get(ref).reason == "expired"
    memory.undo(event.seq)
    assert not memory.get(ref).is_archived


def test_the_life_of_a_memory(memory: kept.Kept, clock: FakeClock) -> None:
    """C19, C28, A15: from candidate to archive, restored, forgotten, erased."""
    ref = automatic(memory, STATEMENT.format(1))
    clock.advance(days=2)
    memory.reinforce(ref)
    memory.upkeep()
    assert memory.get(ref).status == "confirmed"
    clock.advance(days=60)
    memory.upkeep()
    assert memory.get(ref).reason == "expired"
    assert memory.restore(ref).status == "confirmed"
    memory.forget(ref)
    assert memory.list() == []
    memory.erase(ref)
    with pytest.raises(kept.NotFound):
        memory.get(ref)
