"""Undo: one call is taken back whole, or not at all."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kept
from kept import journal
from kept.memory import undo
from kept.model import Actor, Draft, Event, Memory, replace
from kept.ports import ANYWHERE
from kept.storage.sqlite import SqliteStorage
from kept.storage.sqlite.reader import SqliteReader
from tests.builders import FakeClock, stamp
from tests.two_spaces import open_two


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def memory_(tmp_path: Path, clock: FakeClock) -> Iterator[kept.Kept]:
    with kept.open(tmp_path / "memory.db", clock=clock) as opened:
        yield opened


def remembered(memory_: kept.Kept, content: str, **fields: object) -> Memory:
    stored = memory_.remember(content, **fields).memory  # type: ignore[arg-type]
    assert stored is not None
    return stored


def last_event(memory_: kept.Kept) -> int:
    return memory_.history(limit=1)[0].seq


def test_one_call_is_one_group_and_is_undone_whole(memory_: kept.Kept) -> None:
    receipts = memory_.remember_many([Draft(content=f"Statement number {n} of the batch") for n in ("one", "two")])
    assert len({event.group for event in memory_.history()}) == 1
    done = memory_.undo()
    assert [event.action for event in done] == ["undo", "undo"]
    assert memory_.list() == []
    assert {m.ref for m in memory_.list(status="forgotten")} == {receipt.ref for receipt in receipts}


def test_the_undo_of_adding_is_an_archive_that_can_be_restored(memory_: kept.Kept, clock: FakeClock) -> None:
    stored = remembered(memory_, "Deploys run on Fridays")
    clock.advance(hours=1)
    memory_.undo()
    gone = memory_.get(stored.ref, forgotten=True)
    assert (gone.status, gone.reason, gone.archived_at) == ("archived", "forgotten", clock())
    assert memory_.recall("deploys fridays").hits == ()
    assert memory_.restore(stored.ref).status == "confirmed"


@pytest.mark.parametrize("importance", [0.0, 0, 0.4])
def test_what_was_said_again_and_again_is_taken_back_once(memory_: kept.Kept, importance: float) -> None:
    """The importance that a later call added stays, also where it began with nothing."""
    stored = remembered(memory_, "We use Express", importance=importance)
    memory_.remember("we use express")
    first = last_event(memory_)
    memory_.remember("We  USE Express")
    assert memory_.get(stored.ref).importance == pytest.approx(importance + 0.2)
    memory_.undo(first)
    assert memory_.get(stored.ref).importance == pytest.approx(importance + 0.1)


def test_what_somebody_else_did_last_is_named_and_not_undone(tmp_path: Path) -> None:
    with kept.open(tmp_path / "m.db", actor=Actor(name="codex")) as other:
        other.remember("We use Express")
    with kept.open(tmp_path / "m.db", actor=Actor(name="me")) as mine:
        with pytest.raises(kept.NotFound, match=r"\(remember\) is by codex: `kept undo 1` undoes it"):
            mine.undo()
        assert len(mine.list()) == 1


def test_undoing_an_undo_redoes(memory_: kept.Kept, clock: FakeClock) -> None:
    stored = remembered(memory_, "We use Express")
    clock.advance(hours=1)
    revised = memory_.revise(stored.ref, "We use Fastify", ["web"])
    clock.advance(hours=1)
    undone = memory_.undo()
    assert memory_.get(stored.ref, forgotten=True) == stored
    memory_.undo(undone[0].seq)
    assert memory_.get(stored.ref, forgotten=True) == revised
    memory_.undo()  # the revision stands again, so it is the newest
    assert memory_.get(stored.ref, forgotten=True) == stored
    assert [hit.memory.content for hit in memory_.recall("express")] == ["We use Express"]
    assert memory_.recall("fastify").hits == ()


def test_without_an_event_the_newest_standing_call_is_undone_then_the_one_before(memory_: kept.Kept) -> None:
    stored = remembered(memory_, "The cache is cold on Mondays")
    memory_.pin(stored.ref)
    memory_.reinforce(stored.ref)
    memory_.undo()
    assert (memory_.get(stored.ref, forgotten=True).feedback, memory_.get(stored.ref, forgotten=True).status) == (
        0,
        "pinned",
    )
    memory_.undo()
    assert memory_.get(stored.ref, forgotten=True).status == "confirmed"
    memory_.undo()
    assert memory_.get(stored.ref, forgotten=True).is_forgotten
    with pytest.raises(kept.NotFound, match="nothing to undo"):
        memory_.undo()


def test_counters_are_undone_by_difference(memory_: kept.Kept) -> None:
    stored = remembered(memory_, "Tests need the database running")
    memory_.reinforce(stored.ref)
    first = last_event(memory_)
    memory_.demote(stored.ref)
    memory_.recall("tests database")  # counts a use, outside the journal
    before = memory_.get(stored.ref, forgotten=True)
    memory_.undo(first)
    after = memory_.get(stored.ref, forgotten=True)
    assert (after.feedback, after.use_count) == (-1, before.use_count - 1)


def test_a_field_that_was_changed_again_is_not_taken_back_and_the_error_names_the_event(memory_: kept.Kept) -> None:
    stored = remembered(memory_, "We deploy on Fridays")
    memory_.revise(stored.ref, "We deploy on Mondays")
    first = last_event(memory_)
    revised = memory_.revise(stored.ref, "We deploy on Tuesdays")
    later = last_event(memory_)
    with pytest.raises(kept.NotAllowed, match=rf"Event {first} .*text .*event {later}") as refusal:
        memory_.undo(first)
    assert "Tuesdays" not in str(refusal.value)
    assert memory_.get(stored.ref, forgotten=True) == revised
    memory_.undo(later)
    memory_.undo(first)
    assert memory_.get(stored.ref, forgotten=True).content == "We deploy on Fridays"


def test_a_group_is_not_undone_in_part(tmp_path: Path, memory_: kept.Kept) -> None:
    memory_.remember_many([Draft(content="First of the two statements"), Draft(content="Second of two statements")])
    group = memory_.history()[0].group
    storage = SqliteStorage(tmp_path / "memory.db")
    with storage.writing(stamp("both")) as tx:
        for m in tx.select(ANYWHERE):
            tx.put(replace(m, title="the same"), "entitle")
    with storage.writing(stamp("later")) as tx:
        tx.put(replace(tx.select(ANYWHERE, oldest_first=True)[0], title="another"), "entitle")
    storage.close()
    entitled = next(event.seq for event in memory_.history() if event.group == "both")
    with pytest.raises(kept.NotAllowed, match="title"):
        memory_.undo(entitled)
    assert {m.title for m in memory_.list()} == {"another", "the same"}
    assert {event.group for event in memory_.history()} == {group, "both", "later"}


def test_it_is_the_actors_own_call_that_is_undone(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with kept.open(path, actor=Actor(name="codex")) as codex, kept.open(path, actor=Actor(name="claude")) as claude:
        ours = remembered(claude, "Claude says that the parser is slow")
        theirs = remembered(codex, "Codex says that the printer is slow")
        storage = SqliteStorage(path)
        with storage.writing(stamp(actor=journal.UPKEEP)) as tx:
            tx.put(replace(theirs, status="archived", reason="expired"), "expire")
        storage.close()
        claude.undo()
        assert claude.get(ours.ref, forgotten=True).is_forgotten
        assert codex.get(theirs.ref, forgotten=True).reason == "expired"
        with pytest.raises(kept.NotFound):
            claude.undo()
        claude.undo(3)  # named, anything can be taken back
        assert codex.get(theirs.ref, forgotten=True).status == "confirmed"


def test_an_erasure_cannot_be_undone_and_nothing_else_is_undone_in_its_place(memory_: kept.Kept) -> None:
    kept_one = remembered(memory_, "Something that stays for good")
    doomed = remembered(memory_, "Something that is to be erased")
    memory_.erase(doomed.ref)
    with pytest.raises(kept.NotAllowed, match=r"erased something, and erasing is permanent") as refusal:
        memory_.undo()
    assert refusal.value.hint == "`kept undo 1` undoes the change before it (remember)."
    with pytest.raises(kept.NotAllowed, match="Event 3 cannot be undone: it erased a memory, and erasing is permanent"):
        memory_.undo(3)
    with pytest.raises(kept.NotAllowed, match=r"Event 2 .*erased"):
        memory_.undo(2)
    assert memory_.get(kept_one.ref, forgotten=True) == kept_one
    memory_.undo(1)
    assert memory_.get(kept_one.ref, forgotten=True).is_forgotten


def test_what_is_not_there_cannot_be_undone(memory_: kept.Kept) -> None:
    remembered(memory_, "One lonely memory in the store")
    with pytest.raises(kept.NotFound, match="event 99"):
        memory_.undo(99)


def test_the_newest_call_may_have_been_in_global_memory(tmp_path: Path, clock: FakeClock) -> None:
    with kept.open(project="p", home=tmp_path, clock=clock, confirm=lambda question: True) as opened:
        ours = remembered(opened, "The project uses tabs everywhere")
        clock.advance(minutes=1)
        shared = remembered(opened, "The user prefers dark themes", kind="preference", tier="global")
        clock.advance(minutes=1)
        opened.undo()
        assert opened.get(shared.ref, forgotten=True).is_forgotten
        assert not opened.get(ours.ref, forgotten=True).is_forgotten
        opened.undo()
        assert opened.get(ours.ref, forgotten=True).is_forgotten


def test_an_undo_reads_no_more_of_the_journal_than_it_needs(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    with kept.open(path, clock=clock) as opened:
        stored = remembered(opened, "A statement before all the others")
    storage = SqliteStorage(path)
    with storage.writing(stamp(actor=journal.UPKEEP)) as tx:
        for number in range(3 * undo.PAGE):
            tx.put(replace(stored, feedback=number % 50), "revalue")
    storage.close()
    with kept.open(path, clock=clock) as opened:
        pinned = opened.pin(stored.ref)
        read = 0
        events = SqliteReader.events

        def counted(self: SqliteReader, **which: Any) -> list[Event]:
            nonlocal read
            found = events(self, **which)
            read += len(found)
            return found

        monkeypatch.setattr(SqliteReader, "events", counted)
        opened.undo()
        assert opened.get(stored.ref, forgotten=True).status == "confirmed"
        assert pinned.status == "pinned"
        assert read < 2 * undo.PAGE
        opened.undo()  # past all of upkeep's
        assert opened.get(stored.ref, forgotten=True).is_forgotten
        monkeypatch.setattr(undo, "LOOK_BACK", undo.PAGE)
        with pytest.raises(kept.NotFound):
            opened.undo()


# One call is one group; the newest is told by the journals, not by clocks


@pytest.mark.parametrize("storage", ["inmemory", "jsonfile", "sqlite"])
def test_one_call_with_many_drafts_is_undone_whole(storage: str, tmp_path: Path) -> None:
    """Also over the batches of a long one, and over two spaces."""
    with open_two(storage, tmp_path, confirm=lambda question: True) as opened:
        opened.remember("Known before")
        drafts = [kept.Draft(content=f"Statement number {number}") for number in range(1_199)]
        opened.remember_many([*drafts, kept.Draft(content="For all projects", kind="pattern", tier="global")])
        assert len(opened.list(limit=2_000)) == 1_201
        assert len({event.group for event in opened.history(limit=2_000)}) == 2
        opened.undo()
        assert [one.content for one in opened.list()] == ["Known before"]


@pytest.mark.parametrize("storage", ["inmemory", "sqlite"])
def test_with_the_clock_set_back_the_newest_change_is_still_undone_first(
    storage: str, tmp_path: Path, clock: FakeClock
) -> None:
    with open_two(storage, tmp_path, clock=clock, confirm=lambda question: True) as opened:
        contents = []
        for number, tier in enumerate(["project", "global", "project", "global", "global", "project"]):
            contents.append(f"Statement number {number}")
            opened.remember(contents[-1], tier=tier, kind="pattern")  # type: ignore[arg-type]
            clock.advance(days=-10)
        while contents:
            assert {one.content for one in opened.list()} == set(contents)
            opened.undo()
            contents.pop()
        assert opened.list() == []
        with pytest.raises(kept.NotFound):
            opened.undo()


def test_a_change_of_global_memory_is_undone_where_it_was_made(tmp_path: Path) -> None:
    """Two agents of one name in two projects: each undoes its own. By its event, it can be undone from anywhere."""
    with (
        kept.open(project="a", home=tmp_path, confirm=lambda question: True) as one,
        kept.open(project="b", home=tmp_path, confirm=lambda question: True) as other,
    ):
        remembered(one, "Of project a")
        remembered(other, "Of project b")
        theirs = remembered(other, "Retry with a backoff", kind="pattern", tier="global")
        one.undo()
        assert [memory.content for memory in one.list()] == ["Retry with a backoff"]
        with pytest.raises(kept.NotFound):
            one.undo()
        one.undo("g1")
        assert one.get(theirs.ref, forgotten=True).is_forgotten


@pytest.mark.parametrize("storage", ["inmemory", "jsonfile", "sqlite"])
def test_no_undo_leaves_messages_without_their_session(storage: str, tmp_path: Path) -> None:
    """B2: a transcript is only added to; an undo passes over it, and by its event it is refused."""
    with open_two(storage, tmp_path) as opened:
        before = remembered(opened, "Known before")
        session = opened.session("s1")
        session.append("user", "The first word of this session")
        begun = next(event.seq for event in opened.history() if event.subject == "session:s1")
        with pytest.raises(kept.NotAllowed, match="has messages"):
            opened.undo(begun)
        opened.undo()
        assert opened.get(before.ref, forgotten=True).is_forgotten
        assert [one.name for one in opened.sessions()] == ["s1"]
        assert [message.content for message in session.messages()] == ["The first word of this session"]
        session.append("user", "And another")
        assert len(opened.session("s1").messages()) == 2
