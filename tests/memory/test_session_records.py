"""The record of a session (C9): what it found, and what became of that, as the memories are now."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import kept
from kept.memory.sessions import FlushResult, Session
from kept.model import Tier
from tests.builders import FakeClock

DECISION = "We decided to use PostgreSQL 16 for the billing service because of its exclusion constraints."
OTHER = "We decided to write the parser of the import format in Rust, since the old one was too slow."


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def memory(tmp_path: Path, clock: FakeClock) -> Iterator[kept.Kept]:
    with opened(tmp_path, clock) as memory:
        yield memory


def opened(tmp_path: Path, clock: FakeClock, **settings: object) -> kept.Kept:
    chosen = kept.Settings(backup_daily=False, auto_upkeep=False, **settings)  # type: ignore[arg-type]
    return kept.open(
        home=tmp_path / "home", project="p", clock=clock, settings=chosen, origin="user", confirm=lambda _: True
    )


def talk(memory: kept.Kept, name: str, *said: str) -> Session:
    session = memory.session(name)
    for sentence in said:
        session.append("user", sentence)
    return session


def found(memory: kept.Kept, session: str) -> list[tuple[str, bool, str | None]]:
    """The findings of a record: content, whether it is promoted, and to which memory."""
    lines = memory.session(session).record()["findings"]
    return [(one["content"], one["promotedToProjectMemory"], one.get("promotedEntryId")) for one in lines]


AGENTS_FINDING = "The retry queue drains only after the nightly reconciliation has finished in src/pay/worker.py."


def agents_finding(memory: kept.Kept, name: str) -> FlushResult:
    session = memory.session(name, agent=f"agent {name}")
    session.append("assistant", f"I found the cause: {AGENTS_FINDING}")
    return session.finish()


def test_a_finding_that_three_sessions_say_is_in_all_three_records(memory: kept.Kept) -> None:
    """C9: it is one memory, and each of the sessions has found it."""
    for name in ("s1", "s2", "s3"):
        agents_finding(memory, name)
    records = [found(memory, name) for name in ("s1", "s2", "s3")]
    assert len(records[0]) == 1
    assert records[0] == records[1] == records[2]
    assert [len(memory.session(name).findings()) for name in ("s1", "s2", "s3")] == [1, 1, 1]
    assert all("reconciliation" in memory.session(name).record()["summary"] for name in ("s1", "s2", "s3"))


def test_a_session_that_says_nearly_the_same_has_found_it_as_well(memory: kept.Kept) -> None:
    talk(memory, "s1", DECISION).finish()
    talk(memory, "s2", DECISION.replace("We decided", "We  decided").rstrip(".") + "!").finish()
    assert found(memory, "s1") == found(memory, "s2") != []


def test_finishing_counts_what_it_promoted_by_repetition(memory: kept.Kept) -> None:
    """C8, C9: the second session gives the finding the points that it lacked; the third promotes nothing."""
    done = [agents_finding(memory, name) for name in ("s1", "s2", "s3")]
    assert [one.promoted for one in done] == [0, 1, 0]
    assert [one.findings for one in done] == [1, 0, 0], "there is one memory of it"
    assert [promoted for _, promoted, _ in found(memory, "s1")] == [True]


def test_a_checkpoints_promotion_by_repetition_is_counted_at_the_end(memory: kept.Kept) -> None:
    agents_finding(memory, "s1")
    session = memory.session("s2", agent="another")
    session.append("assistant", f"I found the cause: {AGENTS_FINDING}")
    session.checkpoint()
    assert session.finish().promoted == 1


@pytest.mark.parametrize("to", ["project", "global"])
def test_a_record_knows_a_promotion_that_came_later(tmp_path: Path, clock: FakeClock, to: Tier) -> None:
    """C9: `promotedToProjectMemory` and `promotedEntryId` follow the memory."""
    with opened(tmp_path, clock, preset="manual") as memory:
        talk(memory, "s1", DECISION).finish()
        assert found(memory, "s1") == [(DECISION, False, None)]
        entry = memory.promote(memory.session("s1").findings()[0].ref, to)
        assert found(memory, "s1") == [(DECISION, True, entry.ref)]
        memory.forget(entry.ref or "")
        assert found(memory, "s1") == [(DECISION, False, None)]
        memory.restore(entry.ref or "")
        assert found(memory, "s1") == [(DECISION, True, entry.ref)]


def test_a_record_shows_nothing_that_was_forgotten_and_what_was_replaced_as_archived(memory: kept.Kept) -> None:
    session = talk(memory, "s1", DECISION, OTHER)
    session.finish()
    decision, other = sorted(session.findings(), key=lambda one: one.content != DECISION)
    memory.forget(decision.ref)
    memory.reviews.apply([f"archive:{other.ref}"])
    [left] = session.record()["findings"]
    assert (left["content"], left["status"], left["promotedToProjectMemory"]) == (OTHER, "archived", False)


def test_a_finding_in_a_record_has_the_fields_of_praxis(memory: kept.Kept) -> None:
    agents_finding(memory, "s1")
    [line] = memory.session("s1").record()["findings"]
    [one] = memory.session("s1").findings()
    assert (line["id"], line["fingerprint"], line["confidence"]) == (one.ref, one.fingerprint, one.confidence)
    assert (line["filePaths"], line["tags"]) == (("src/pay/worker.py",), one.tags)


def test_a_fork_sees_the_findings_of_its_parent_only_up_to_the_fork(memory: kept.Kept) -> None:
    """C25: what the parent found later belongs to another conversation."""
    parent = talk(memory, "s1", DECISION)
    parent.checkpoint()
    child = parent.fork("s2")
    grandchild = child.fork("s3")
    parent.append("user", OTHER)
    parent.checkpoint()
    assert {one.content for one in parent.findings()} == {DECISION, OTHER}
    assert {one.content for one in child.findings()} == {DECISION}
    child.append("user", OTHER)
    child.checkpoint()
    assert {one.content for one in grandchild.findings()} == {DECISION}
