"""What time does to a store: quarantine, shelf life, size, each through the archive and in the journal."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kept
from kept import worth
from kept.journal import UPKEEP
from kept.memory import context, read, upkeep
from kept.model import Actor, Draft, Memory, Source
from kept.ports import ANYWHERE, Where
from kept.storage.sqlite import SqliteStorage, erase
from kept.upkeep import decisions
from tests.builders import START, FakeClock, context_of, stamp
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


def test_in_profile_praxis_an_access_on_the_day_of_writing_confirms(tmp_path: Path, clock: FakeClock) -> None:
    """C19: being returned is an access there, also in the hours in which a statement is quarantined."""
    with open_with(tmp_path, clock, profile="praxis") as memory:
        asked_for = automatic(memory, "Caches are warmed before the first request.")
        automatic(memory, "Invoices are numbered without gaps for the tax office.")
        clock.advance(hours=2)
        assert [hit.ref for hit in memory.recall("caches warmed")] == [asked_for]
        memory.recall("caches warmed")
        assert memory.get(asked_for).use_count == 1, "once a day"
        clock.advance(hours=23)
        assert {one.ref: one.action for one in memory.upkeep().done} == {asked_for: "confirm", "2": "penalise"}


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


# The life of a memory, under each retention


@pytest.mark.parametrize("retention", ["kept", "praxis", "koshi"])
@pytest.mark.parametrize("origin", ["extraction", "agent"])
def test_from_candidate_to_archive_restored_forgotten_and_erased(
    tmp_path: Path, clock: FakeClock, retention: str, origin: str
) -> None:
    """A14, A15, C19, C28, C29: what was used or said on purpose, and all that koshi keeps, leaves by size alone."""
    with open_with(tmp_path, clock, retention=retention, max_memories=5, auto_upkeep=False) as memory:
        ref = automatic(memory, STATEMENT.format(1), origin=origin)
        assert memory.get(ref).status == ("candidate" if origin == "extraction" else "confirmed")
        clock.advance(days=2)
        memory.reinforce(ref)
        memory.upkeep()
        assert memory.get(ref).status == "confirmed"
        clock.advance(days=22)
        leaves_by_age = retention == "praxis"  # what was confirmed does not fade
        assert memory.upkeep().count("expire") == leaves_by_age
        if not leaves_by_age:
            for number in range(8):
                newer = memory.remember(f"newer statement {number} about {number * 31}", importance=1.0).ref
                for _ in range(2):
                    memory.reinforce(newer or "")
            clock.advance(days=3)
            assert ref in {one.ref for one in memory.upkeep().done if one.action == "evict"}
        gone = memory.get(ref)
        assert (gone.status, gone.reason) == ("archived", "expired" if leaves_by_age else "evicted")
        assert ref not in {one.ref for one in memory.list()}
        assert ref in {hit.ref for hit in memory.recall("nightly import replica", scope="archive")}
        assert memory.restore(ref).status == "confirmed"
        memory.forget(ref)
        for scope in ("memory", "archive"):
            assert memory.recall("nightly import replica", scope=scope).hits == ()
        clock.advance(days=4000)
        assert ref not in {one.ref for one in memory.upkeep().done}, "what was forgotten stays until somebody erases it"
        memory.erase(ref)
        with pytest.raises(kept.NotFound):
            memory.get(ref, forgotten=True)


def test_room_is_made_in_whole_steps(tmp_path: Path, clock: FakeClock) -> None:
    """A14: `prune_percent`, of all memories, at a time."""
    with open_with(tmp_path, clock, retention="koshi", max_size_bytes=65_536, prune_percent=10) as memory:
        memory.remember_many(Draft(content=f"{n} " + "x" * 400) for n in range(50))
        clock.advance(days=2)
        assert memory.upkeep().count("evict") == 5, "4 would have been enough"


# What is planned is what is done

KINDS = st.sampled_from(["progress", "discovery", "warning", "decision", "preference", "fact"])
STORED = st.builds(
    dict,
    kind=KINDS,
    origin=st.sampled_from(["user", "agent", "extraction", "tool", "import", "narrative"]),
    status=st.sampled_from(["candidate", "confirmed", "pinned"]),
    importance=st.floats(0, 1),
    feedback=st.integers(-20, 20),
    use_count=st.integers(0, 4),
    age_days=st.integers(0, 500),
    used_days_ago=st.none() | st.integers(0, 500),
)


def stored(space: str, number: int, fields: dict[str, Any]) -> Memory:
    fields = dict(fields)
    at = START - timedelta(days=fields.pop("age_days"))
    used = fields.pop("used_days_ago")
    source = Source(origin=fields.pop("origin"))
    last_used_at = None if used is None else max(at, START - timedelta(days=used))
    return a_memory(f"{number} said", at=at, space=space, source=source, last_used_at=last_used_at, **fields)


@given(
    memories=st.lists(STORED, max_size=25),
    retention=st.sampled_from(["kept", "praxis", "koshi"]),
    most=st.none() | st.integers(1, 20),
    size=st.sampled_from([65_536, 100_000_000]),
    days=st.integers(0, 60),
)
def test_a_dry_run_and_a_run_agree_whatever_is_stored(
    memories: list[dict[str, Any]], retention: str, most: int | None, size: int, days: int
) -> None:
    """C19, C28, C29: the same things, in the same order, and nothing is left for a second run."""
    clock = FakeClock()
    settings = kept.Settings(retention=retention, max_memories=most, max_size_bytes=size)
    with kept.open(":memory:", clock=clock, settings=settings) as memory:
        storage = context_of(memory).spaces.ensure_project()
        with storage.writing(stamp()) as tx:
            for number, fields in enumerate(memories):
                tx.add(stored(storage.space, number, fields), "remember")
        clock.advance(days=days)
        with storage.reading() as reader:
            before = reader.select(ANYWHERE, limit=100)
        planned = memory.upkeep(dry_run=True)
        with storage.reading() as reader:
            assert reader.select(ANYWHERE, limit=100) == before
            assert len(reader.events()) == len(memories)
        assert memory.upkeep().done == planned.done
        assert memory.upkeep().done == ()


@given(memories=st.lists(STORED, max_size=25), days=st.integers(0, 40_000))
def test_nothing_said_on_purpose_ever_leaves_by_age(memories: list[dict[str, Any]], days: int) -> None:
    """A14: under the default retention, whatever kind, status, feedback and age it has."""
    clock = FakeClock()
    with kept.open(":memory:", clock=clock, settings=kept.Settings()) as memory:
        storage = context_of(memory).spaces.ensure_project()
        with storage.writing(stamp()) as tx:
            for number, fields in enumerate(memories):
                tx.add(stored(storage.space, number, fields), "remember")
        clock.advance(days=days)
        memory.upkeep()
        with storage.reading() as reader:
            gone = reader.select(Where(shelf="archive"), limit=100)
        assert all(one.source.origin in worth.AUTOMATIC for one in gone)


WEIGHED = st.lists(st.tuples(st.floats(0, 1), st.integers(1, 50)), max_size=60)


@given(weighed=WEIGHED, memories=st.integers(0, 70), n_bytes=st.integers(0, 2_000), step=st.integers(1, 12))
def test_those_chosen_to_go_are_the_least_worth_and_no_more_than_needed(
    weighed: list[tuple[float, int]], memories: int, n_bytes: int, step: int
) -> None:
    """A14, C29: as if all were sorted; only that they never are all in memory."""
    load = [decisions.Weighed(worth=value, id=id, bytes=size) for id, (value, size) in enumerate(weighed, 1)]
    ranked = sorted(load, key=lambda one: (one.worth, one.id))
    needed = next(
        n
        for n in range(len(ranked) + 1)
        if n == len(ranked) or (n >= memories and sum(o.bytes for o in ranked[:n]) >= n_bytes)
    )
    if n_bytes:
        needed = -(-needed // step) * step
    chosen = decisions.least_worth(iter(load), decisions.Surplus(memories=memories, bytes=n_bytes, step=step))
    assert chosen == [one.id for one in ranked[:needed]]


# By itself


def due(path: Path, clock: FakeClock) -> str:
    """A store with one memory whose shelf life is over; its ref."""
    with kept.open(path, clock=clock, settings=kept.Settings()) as memory:
        ref = automatic(memory, STATEMENT.format(1), "progress")
    clock.advance(days=15)
    return ref


def test_upkeep_happens_at_an_opening_and_status_says_so(tmp_path: Path, clock: FakeClock) -> None:
    """C2, C11: on load."""
    ref = due(tmp_path / "m.db", clock)
    with kept.open(tmp_path / "m.db", clock=clock, settings=kept.Settings()) as memory:
        assert memory.get(ref).reason == "expired"
        upkeep = memory.status()["spaces"][0]["upkeep"]
        assert upkeep == {
            "finished_at": clock.at,
            "is_under_way": False,
            "is_crowded": False,
            "errors": {},
            "failed_at": None,
        }


def test_upkeep_happens_at_every_fiftieth_recall(tmp_path: Path, clock: FakeClock) -> None:
    """C2: store compaction every 50 accesses, by whichever process."""
    with kept.open(tmp_path / "m.db", clock=clock, settings=kept.Settings()) as memory:
        ref = automatic(memory, STATEMENT.format(1), "progress")
        clock.advance(days=15)
        with kept.open(tmp_path / "m.db", clock=clock, settings=kept.Settings(auto_upkeep=False)) as other:
            for number in range(read.UPKEEP_EVERY - 1):
                (memory, other)[number % 2].recall("zeppelin")
        assert not memory.get(ref).is_archived
        memory.recall("zeppelin")
        assert memory.get(ref).reason == "expired"
        assert memory.history(ref)[-1].actor == UPKEEP


def test_no_automatic_upkeep_when_it_is_switched_off(tmp_path: Path, clock: FakeClock) -> None:
    ref = due(tmp_path / "m.db", clock)
    with open_with(tmp_path, clock, auto_upkeep=False) as memory:
        for _ in range(read.UPKEEP_EVERY):
            memory.recall("zeppelin")
        assert not memory.get(ref).is_archived
        assert memory.status()["spaces"][0]["upkeep"]["finished_at"] == START


def test_automatic_upkeep_does_a_little_at_a_time_until_all_is_done(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (context, upkeep):
        monkeypatch.setattr(module, "BATCH", 10)
    monkeypatch.setattr(upkeep, "FEW", 3)
    with open_with(tmp_path, clock, auto_upkeep=False) as memory:
        storage = context_of(memory).spaces.ensure_project()
        with storage.writing(stamp()) as tx:
            for number in range(25):
                source = Source(origin="tool")
                one = a_memory(
                    f"{number} done", space=storage.space, kind="progress", status="candidate", source=source
                )
                tx.add(one, "x")
    clock.advance(days=15)
    left, openings = 25, 0
    while left:
        with open_with(tmp_path, clock) as memory:
            now = memory.status()["spaces"][0]
            assert left - 3 <= now["memories"]["live"] < left
            left, openings = now["memories"]["live"], openings + 1
            assert now["upkeep"]["is_under_way"] == (now["upkeep"]["finished_at"] is None)
    assert 9 <= openings <= 12
    with open_with(tmp_path, clock) as memory:
        assert memory.status()["spaces"][0]["upkeep"]["finished_at"] == clock.at


def test_automatic_upkeep_makes_room_over_several_openings(tmp_path: Path, clock: FakeClock) -> None:
    """C29: 3,000 → 2,700 in small, down to where one run would have gone."""
    with open_with(tmp_path, clock, retention="praxis", max_memories=200) as memory:
        memory.remember_many(Draft(content=f"statement {n} about {n * 31}, {n * 17}") for n in range(400))
        clock.advance(days=2)
        planned = {one.ref for one in memory.upkeep(dry_run=True).done}
        assert len(planned) == 220
    for _ in range(4):
        with open_with(tmp_path, clock, retention="praxis", max_memories=200) as memory:
            pass
        clock.advance(hours=2)
    with open_with(tmp_path, clock, retention="praxis", max_memories=200) as memory:
        assert {one.ref for one in memory.list(status="archived", limit=1_000)} == planned


def test_a_large_store_without_room_says_so_and_waits_for_a_run(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "MOST_WEIGHED", 10)
    with open_with(tmp_path, clock, max_memories=5) as memory:
        memory.remember_many(Draft(content=f"statement {n} about {n * 31}") for n in range(12))
    clock.advance(days=2)
    with open_with(tmp_path, clock, max_memories=5) as memory:
        assert memory.status()["spaces"][0]["upkeep"]["is_crowded"]
        assert memory.upkeep().count("evict") == 7
        assert not memory.status()["spaces"][0]["upkeep"]["is_crowded"]


def test_a_failure_of_upkeep_never_reaches_a_recall_and_is_seen_in_status(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C2: whoever recalls gets the answer."""
    with kept.open(tmp_path / "m.db", clock=clock, settings=kept.Settings()) as memory:
        memory.remember("The zeppelin lands at noon")

        def fail(*_: object) -> None:
            raise RuntimeError("zeppelin")

        with monkeypatch.context() as patch:
            patch.setattr(decisions, "decide", fail)
            for _ in range(read.UPKEEP_EVERY):
                assert len(memory.recall("zeppelin")) == 1
        told = memory.status()["spaces"][0]["upkeep"]
        assert (told["errors"], told["failed_at"]) == ({"RuntimeError": 1}, clock.at)
        memory.upkeep()
        assert memory.status()["spaces"][0]["upkeep"]["errors"] == {}


def test_automatic_upkeep_never_waits_for_a_writer(tmp_path: Path, clock: FakeClock) -> None:
    """A writer that holds its turn, however long, delays no opening and no recall."""
    ref = due(tmp_path / "m.db", clock)
    holder = SqliteStorage(tmp_path / "m.db")
    with holder.writing(stamp()), open_with(tmp_path, clock, write_wait_s=600) as memory:
        assert not memory.get(ref).is_archived
        assert memory.status()["spaces"][0]["upkeep"]["errors"] == {}
    holder.close()

    def catches_up() -> bool:
        with open_with(tmp_path, clock) as memory:
            return memory.get(ref).is_archived

    # The next opening that finds the turn free: one that waited when it was closed may have it for a moment.
    assert any(catches_up() for _ in range(100))


def test_one_process_at_a_time_does_upkeep(tmp_path: Path, clock: FakeClock) -> None:
    ref = due(tmp_path / "m.db", clock)
    holder = SqliteStorage(tmp_path / "m.db")
    with holder.lease(upkeep.LEASE) as is_ours, open_with(tmp_path, clock) as memory:
        assert is_ours
        assert memory.upkeep().skipped
        assert not memory.get(ref).is_archived
    holder.close()


def test_a_skill_neither_does_upkeep_nor_fails_at_opening(tmp_path: Path, clock: FakeClock) -> None:
    ref = due(tmp_path / "m.db", clock)
    kept.open(tmp_path / "m.db", clock=clock, actor=Actor(role="skill"), settings=kept.Settings()).close()
    with open_with(tmp_path, clock, auto_upkeep=False) as memory:
        assert not memory.get(ref).is_archived


# What leaves in great numbers


def test_of_many_that_left_at_once_no_word_outlives_its_erasure(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index is not swept for each of them; still nothing is left of one that is erased, not even if interrupted."""
    for module in (context, upkeep):
        monkeypatch.setattr(module, "BATCH", 10)
    monkeypatch.setattr(upkeep, "MANY", 10)
    path = tmp_path / "m.db"
    with open_with(tmp_path, clock, auto_upkeep=False) as memory:
        storage = context_of(memory).spaces.ensure_project()
        with storage.writing(stamp()) as tx:
            for number in range(60):
                content = f"canary{number}bird sings in cage number {number} zulu{number}word"
                source = Source(origin="tool")
                one = a_memory(content, space=storage.space, kind="progress", status="candidate", source=source)
                tx.add(one, "remember")
        clock.advance(days=15)
        with monkeypatch.context() as patch:  # killed before the index was built anew
            patch.setattr(erase, "settle", lambda connection: None)
            assert memory.upkeep().count("expire") == 60
        assert b"canary42bird" in path.read_bytes() + (tmp_path / "m.db-wal").read_bytes()
        with storage.reading() as reader:
            assert reader.search(["canary42bird"], limit=5) == []
        memory.erase(43)
        assert memory.status()["spaces"][0].get("erase") is None
        assert memory.recall("canary41bird", scope="archive").hits != ()
    for file in tmp_path.iterdir():
        for word in (b"canary42bird", b"zulu42word", b"canary42", b"zulu42"):
            assert word not in file.read_bytes(), file.name
