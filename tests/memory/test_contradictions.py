"""Contradictions where people meet them: between a project and global memory, and in every list that shows one."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import kept
from tests.builders import FakeClock

TABS, SPACES = "Indent Python with tabs", "Indent Python with spaces"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def memory(tmp_path: Path, clock: FakeClock) -> Iterator[kept.Kept]:
    with project(tmp_path, clock, "p") as opened:
        yield opened


def project(tmp_path: Path, clock: FakeClock, name: str) -> kept.Kept:
    settings = kept.Settings(backup_daily=False, auto_upkeep=False)
    return kept.open(home=tmp_path, project=name, clock=clock, settings=settings, origin="user", confirm=lambda _: True)


def in_conflict(memory: kept.Kept, clock: FakeClock) -> kept.Receipt:
    """Keep a global preference, and a day later a rule of the project that contradicts it."""
    memory.remember(TABS, kind="preference", tier="global")
    clock.advance(days=1)
    return memory.remember(SPACES, kind="preference")


def told(memory: kept.Kept, prompt: str = "How do I indent Python?") -> str:
    return str(memory.briefing(prompt))


def test_a_global_preference_and_a_project_rule_are_shown_as_a_contradiction(
    memory: kept.Kept, clock: FakeClock
) -> None:
    receipt = in_conflict(memory, clock)
    [conflict] = memory.conflicts()
    assert [one.ref for one in receipt.conflicts] == [conflict.ref]
    assert (conflict.left, conflict.right) == (memory.get("1").uid, memory.get("g1").uid)
    assert f'Entry #1 says "{SPACES}" but Entry #g1 says "{TABS}"' in told(memory)
    assert [one.ref for one in memory.recall("indent python").conflicts] == [conflict.ref]
    memory.undo()
    assert memory.conflicts() == []
    assert [one.ref for one in memory.list()] == ["g1"], "the write and its conflict are one group"


def test_a_global_memory_that_comes_later_is_compared_with_the_project(memory: kept.Kept, clock: FakeClock) -> None:
    memory.remember(SPACES, kind="preference")
    clock.advance(days=1)
    memory.remember(TABS, kind="preference", tier="global")
    [conflict] = memory.conflicts()
    assert conflict.left == memory.get("g1").uid, "the later word"
    memory.undo()
    assert [one.ref for one in memory.list()] == ["1"]
    assert memory.conflicts() == []


def test_a_briefing_with_one_side_brings_the_other_from_the_other_space(memory: kept.Kept, clock: FakeClock) -> None:
    memory.remember(TABS, kind="decision", tier="global")
    clock.advance(days=1)
    memory.remember(SPACES, kind="decision", files=["src/style.py"])
    briefed = str(memory.briefing("Please look at src/style.py", files=["src/style.py"]))
    assert f'Entry #1 says "{SPACES}" but Entry #g1 says "{TABS}"' in briefed


def test_what_is_kept_for_the_project_stands_in_place_of_the_global_memory_there(
    tmp_path: Path, memory: kept.Kept, clock: FakeClock
) -> None:
    in_conflict(memory, clock)
    memory.resolve("c1", keep="1")
    assert memory.conflicts() == []
    assert TABS not in told(memory)
    recalled = memory.recall("indent python")
    assert [hit.ref for hit in recalled] == ["1"]
    assert [(miss.hit.ref, miss.reason) for miss in recalled.misses] == [("g1", "in this project 1 holds instead")]
    with project(tmp_path, clock, "another") as other:
        assert TABS in told(other)
    memory.forget("1")
    assert TABS in told(memory), "what stood in its place is gone"
    memory.undo()
    assert TABS not in told(memory)
    memory.undo()
    assert "[⚠ CONFLICT]" in told(memory)


def test_a_pinned_global_memory_gives_way_as_well(memory: kept.Kept, clock: FakeClock) -> None:
    in_conflict(memory, clock)
    memory.pin("g1")
    memory.resolve("c1", keep="1")
    assert TABS not in told(memory, "")
    assert memory.recall("indent python").pinned == ()


def test_keeping_the_global_memory_archives_the_rule_of_the_project(memory: kept.Kept, clock: FakeClock) -> None:
    in_conflict(memory, clock)
    assert memory.resolve("c1", keep="g1").ref == "g1"
    assert [one.ref for one in memory.list()] == ["g1"]
    assert memory.look().standing(memory.get("1")).until.endswith("(replaced by g1)")


def test_a_review_asks_about_it_and_each_answer_settles_it(memory: kept.Kept, clock: FakeClock) -> None:
    in_conflict(memory, clock)
    [finding] = memory.reviews.list()
    assert (finding.ref, finding.beside and finding.beside.ref) == ("g1", "1")
    assert (finding.reasons, finding.conflict, str(finding.proposed)) == (("conflict",), "c1", "supersede:g1=1")
    [given_way] = memory.reviews.apply([finding.proposed])
    assert (given_way.ref, given_way.status) == ("g1", "confirmed"), "other projects have it"
    assert TABS not in told(memory)
    memory.undo()
    [gone] = memory.reviews.apply(["supersede:1=g1"])
    assert (gone.ref, gone.reason) == ("1", "superseded")
    memory.undo()
    memory.reviews.apply(["keep:1"])
    assert memory.conflicts() == []
    assert TABS in told(memory), "both stay"
    assert SPACES in told(memory)


def test_decisions_across_spaces_are_undone_together_with_the_others(memory: kept.Kept, clock: FakeClock) -> None:
    in_conflict(memory, clock)
    memory.remember("The pier opens at six")
    memory.reviews.apply(["supersede:g1=1", "archive:2"])
    memory.undo()
    assert [one.ref for one in memory.conflicts()] == ["c1"]
    assert memory.get("2").status == "confirmed"


def test_memories_of_two_spaces_that_do_not_contradict_each_other_replace_nothing(memory: kept.Kept) -> None:
    memory.remember("The pier opens at six")
    memory.remember(TABS, tier="global")
    with pytest.raises(kept.InvalidInput, match="different spaces, and do not contradict each other"):
        memory.reviews.apply(["supersede:g1=1"])


def test_a_contradiction_is_over_when_one_side_is_gone(memory: kept.Kept) -> None:
    memory.remember("Deploys of the shop happen on Tuesdays")
    memory.remember("Deploys of the shop happen on Thursdays")
    assert len(memory.conflicts()) == 1
    memory.forget(1)
    assert memory.conflicts() == []
    assert memory.recall("deploys shop").conflicts == ()
    memory.restore(1)
    assert len(memory.conflicts()) == len(memory.recall("deploys shop").conflicts) == 1


def test_the_later_word_is_the_later_date_and_not_the_higher_number(memory: kept.Kept, clock: FakeClock) -> None:
    """What was said last week may be imported after what was said today."""
    memory.remember("Deploys of the shop happen on Thursdays")
    older = kept.Draft(
        content="Deploys of the shop happen on Tuesdays", created_at=clock() - timedelta(days=7), trust="user"
    )
    [receipt] = memory.remember_many([older])
    assert receipt.superseded == ()
    [conflict] = memory.conflicts()
    assert (conflict.left, conflict.right) == (memory.get(1).uid, memory.get(2).uid)
    [finding] = memory.reviews.list()
    assert str(finding.proposed) == "supersede:2=1"
    said_so = kept.Draft(
        content="Deploys of the shop now happen on Mondays", created_at=clock() - timedelta(days=30), trust="user"
    )
    memory.remember_many([said_so])
    assert memory.get(1).status == memory.get(2).status == "confirmed", "an older change ends nothing later"


@pytest.mark.parametrize("kind", ["decision", "fact", "convention", "preference", "architecture"])
def test_a_warning_contradicts_other_kinds(memory: kept.Kept, kind: str) -> None:
    memory.remember("Read feature flags from the database", kind=kind)
    receipt = memory.remember("Never read feature flags from the database", kind="warning")
    assert [one.type for one in receipt.conflicts] == ["contradictory"]


# Captured contradictions

STORED = "Tests run before the linter in this repository"
SAID = "Always run the linter before the tests in this repository."


@pytest.fixture
def hosted(tmp_path: Path, clock: FakeClock) -> Iterator[kept.Kept]:
    """A memory whose agents judge findings, with a rule that a session has contradicted."""
    settings = kept.Settings(backup_daily=False, auto_upkeep=False)
    with kept.open(home=tmp_path, project="p", clock=clock, settings=settings, origin="user", hosted=True) as memory:
        memory.remember(STORED, kind="decision")
        clock.advance(days=1)
        session = memory.session("s1")
        session.append("user", SAID)
        session.append("assistant", "Understood.")
        session.finish()
        clock.advance(days=1)
        yield memory


def statements(memory: kept.Kept) -> list[tuple[int, str, int | None]]:
    return [(one.n, one.text, one.beside) for one in memory.proposals().statements if one.who != "summary"]


def test_a_captured_contradiction_is_a_question_for_the_judge_and_not_two_facts(hosted: kept.Kept) -> None:
    assert [one.type for one in hosted.conflicts()] == ["contradictory"]
    assert statements(hosted) == [(1, SAID, None), (2, STORED, 1)]
    told_of = [section for section in hosted.briefing().sections if section.name != "summary"]
    begun = [entry.ref for section in told_of for entry in section.entries]
    assert begun == ["1"]
    asked_for = str(hosted.briefing("Run the linter and the tests in this repository"))
    assert f'status="unconfirmed candidate" date="2026-03-02">[id:2] {SAID}' in asked_for
    assert "[⚠ CONFLICT]" in asked_for


def test_a_judge_who_drops_the_older_statement_settles_it(hosted: kept.Kept) -> None:
    asked = hosted.proposals()
    hosted.judge(asked.code, keep=[1], drop=[2])
    assert hosted.conflicts() == []
    briefed = str(hosted.briefing("Run the linter and the tests in this repository"))
    assert SAID in briefed
    assert STORED not in briefed
    hosted.undo()
    assert statements(hosted) == [(1, SAID, None), (2, STORED, 1)]


def test_a_judge_who_keeps_both_says_that_both_hold(hosted: kept.Kept) -> None:
    asked = hosted.proposals()
    hosted.judge(asked.code, keep=[1, 2])
    assert hosted.conflicts() == []
    briefed = str(hosted.briefing("Run the linter and the tests in this repository"))
    assert SAID in briefed
    assert STORED in briefed
