"""Tasks and their tier: notes by stage, deliberate changes of state, clearing, promotion before it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kept
from kept.errors import InvalidInput, NotAllowed, NotFound
from kept.memory.context import BATCH
from kept.memory.tasks import CHANGES, ENDS, as_document
from kept.model import Actor, TaskRecord
from tests.builders import FakeClock, context_of
from tests.contract.benches import BENCHES
from tests.two_spaces import open_two

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=sorted(BENCHES))
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[kept.Kept]:
    with open_two(request.param, tmp_path, clock=clock) as opened:
        yield opened


def contents(memories: list[kept.Memory]) -> list[str]:
    return [memory.content for memory in memories]


# Notes


def test_a_note_is_a_memory_of_the_task_with_its_stage(memory: kept.Kept) -> None:
    """D6: reasoning .5, tool output .7, tagged with task and stage; here the stage is on tool outputs, too."""
    task = memory.task("TASK-001")
    thought = task.add_reasoning("Locks are per file", "plan", files=["src/lock.py"]).memory
    output = task.add_tool_output("pytest", {"failed": 2}, "test").memory
    assert thought is not None
    assert output is not None
    assert (thought.kind, thought.tier, thought.importance, thought.status) == ("reasoning", "task", 0.5, "confirmed")
    assert (output.kind, output.tier, output.importance, output.status) == ("tool_output", "task", 0.7, "candidate")
    assert (thought.tags, output.tags) == (("task", "plan"), ("task", "test"))
    assert output.content == 'pytest: {"failed":2}'
    assert {note.source.task for note in (thought, output)} == {"TASK-001"}
    assert (thought.source.origin, output.source.origin) == ("agent", "tool")
    assert thought.files == ("src/lock.py",)


def test_a_stage_has_its_reasoning_and_its_tool_outputs_and_nothing_else(memory: kept.Kept) -> None:
    """D6."""
    task = memory.task("TASK-001")
    task.add_reasoning("First look at the callers", "plan")
    task.add_tool_output("plan", "a tool that is called like a stage", "build")
    task.add_tool_output("grep", "three callers", "plan")
    memory.task("TASK-002").add_reasoning("Another task's plan", "plan")
    assert contents(task.stage_outputs("plan")) == ["First look at the callers", "grep: three callers"]
    assert contents(task.stage_outputs("plan, then build")) == []
    assert len(task.memories()) == 3


def test_the_same_note_in_two_stages_or_tasks_is_two_notes(memory: kept.Kept) -> None:
    first, second = memory.task("TASK-001"), memory.task("TASK-002")
    first.add_tool_output("make", "ok", "build")
    first.add_tool_output("make", "ok", "test")
    second.add_tool_output("make", "ok", "build")
    assert [len(task.memories()) for task in (first, second)] == [2, 1]
    assert first.add_tool_output("make", "ok", "test").outcome == "strengthened"


def test_what_a_task_notes_never_takes_the_place_of_what_the_project_remembers(memory: kept.Kept) -> None:
    """D1: a note goes when the task ends, and must not take along what somebody wanted kept."""
    task = memory.task("TASK-001")
    task.add_reasoning("Always use Fastify for the public API server", "plan")
    remembered = memory.remember("Always use Fastify for the public API server")
    assert (remembered.outcome, remembered.near, remembered.conflicts) == ("stored", (), ())
    receipt = task.add_reasoning("Never use Fastify for the public API server", "plan")
    assert receipt.conflicts == ()
    task.set_state("done")
    assert contents(memory.list()) == ["Always use Fastify for the public API server"]


def test_short_or_empty_tool_output_is_stored_also_during_a_pause(memory: kept.Kept) -> None:
    task = memory.task("TASK-001")
    memory.pauses.pause()
    for output in ("", "ok", "yes", None, [1]):
        assert task.add_tool_output("make", output, "build").outcome == "candidate"
    assert len(task.stage_outputs("build")) == 5
    with pytest.raises(InvalidInput, match="JSON"):
        task.add_tool_output("make", object(), "build")


def test_a_note_that_is_too_long_is_refused_with_a_reason(memory: kept.Kept) -> None:
    task = memory.task("TASK-001")
    assert task.add_tool_output("cat", "x" * 60_000, "read").outcome == "candidate"
    receipt = task.add_tool_output("cat", "y" * 70_000, "read")
    assert (receipt.outcome, receipt.reason) == ("refused", "too_long")


def test_a_note_needs_a_stage(memory: kept.Kept) -> None:
    with pytest.raises(InvalidInput, match="stage"):
        memory.task("TASK-001").add_reasoning("Something", "  ")


# Tasks


def test_a_task_has_what_a_plan_needs(memory: kept.Kept, clock: FakeClock) -> None:
    """B7: id, milestone, priority, status, description, acceptance criteria, created, completed, blocked_by."""
    memory.task("TASK-000")
    task = memory.task(
        "TASK-001",
        milestone="M1",
        priority=1,
        description="Implement session locking",
        acceptance_criteria=["Lock acquired before execution", "Lock released after"],
        blocked_by=["TASK-000"],
    )
    assert as_document(task.info) == {
        "id": "TASK-001",
        "milestone": "M1",
        "priority": 1,
        "status": "pending",
        "description": "Implement session locking",
        "acceptance_criteria": ["Lock acquired before execution", "Lock released after"],
        "created": "2026-03-01T12:00:00Z",
        "completed": None,
        "blocked_by": ["TASK-000"],
    }
    clock.advance(hours=1)
    memory.task("TASK-000").set_state("done")
    task.set_state("done")
    assert as_document(task.info)["completed"] == "2026-03-01T13:00:00Z"


@pytest.mark.parametrize("priority", [1.0, 1.5, True, "1", -1, 2**31])
def test_a_priority_is_a_whole_number(memory: kept.Kept, priority: Any) -> None:
    with pytest.raises(kept.InvalidInput, match="priority must be a whole number"):
        memory.task("TASK-001", description="Locking", priority=priority)
    assert memory.tasks() == []


def test_a_string_by_itself_is_one_criterion_and_one_blocker(memory: kept.Kept) -> None:
    memory.task("TASK-001", description="Locking")
    task = memory.task("TASK-002", acceptance_criteria="it locks", blocked_by="TASK-001").info
    assert (task.acceptance_criteria, task.blocked_by) == (("it locks",), ("TASK-001",))


def test_opening_a_task_again_changes_nothing_but_what_is_given(memory: kept.Kept) -> None:
    memory.task("TASK-001", description="Locking", priority=2)
    before = memory.history()
    assert memory.task("TASK-001").info.description == "Locking"
    memory.task("TASK-001", priority=2)
    assert memory.history() == before
    assert memory.task("TASK-001", priority=1).info.priority == 1
    assert memory.task("TASK-001").info.description == "Locking"


def test_a_task_without_an_id_gets_the_next_free_one(memory: kept.Kept) -> None:
    memory.task("TASK-002")
    assert [memory.task().id for _ in range(3)] == ["TASK-001", "TASK-003", "TASK-004"]


def test_tasks_are_read_at_the_start_first_priority_first(memory: kept.Kept) -> None:
    """B7, B9 (tasks): read whole when a loop starts, ordered by priority; reading changes nothing."""
    for name, priority in (("a", None), ("b", 3), ("c", 1), ("d", 3)):
        memory.task(name, priority=priority)
    before = memory.history()
    assert [task.name for task in memory.tasks()] == ["c", "b", "d", "a"]
    assert memory.history() == before


def test_tasks_are_archived_when_their_milestone_is_reached(memory: kept.Kept) -> None:
    """B7."""
    for name in ("a", "b"):
        memory.task(name, milestone="M1")
    memory.task("c", milestone="M2")
    memory.task("a").set_state("done")
    assert [task.name for task in memory.tasks()] == ["a", "b", "c"]
    memory.task("b").set_state("cancelled")
    assert [task.name for task in memory.tasks()] == ["c"]
    assert [task.name for task in memory.tasks(archived=True)] == ["a", "b", "c"]
    assert [task.name for task in memory.tasks(milestone="M1", archived=True)] == ["a", "b"]


@pytest.mark.parametrize("id", ["", " ", "a b", "-x", "x" * 129, "näh", KEY, "a\0b"])
def test_what_cannot_be_an_id_is_refused_and_not_repeated_if_it_is_a_secret(id: str) -> None:
    with kept.open(":memory:") as memory:
        with pytest.raises(InvalidInput) as raised:
            memory.task(id)
        assert KEY not in str(raised.value)


def test_no_secret_gets_in_by_a_task(memory: kept.Kept) -> None:
    """C24, under this writer, too."""
    task = memory.task("t", description=f"Use {KEY}", milestone=KEY, acceptance_criteria=[f"{KEY} works"])
    task.add_reasoning(f"The token is {KEY}", KEY, files=[KEY])
    task.add_tool_output(KEY, {"token": KEY}, "build")
    assert len(task.stage_outputs(KEY)) == 1
    for storage in context_of(memory).readable():
        with storage.reading() as reader:
            everything = repr((reader.all(TaskRecord), reader.select(limit=100), reader.events()))
            assert KEY not in everything


# States


def test_a_state_changes_on_purpose_only(memory: kept.Kept) -> None:
    """B7, B9 (tasks): no note, no blocker and no time changes a state; an agent or a person does."""
    task = memory.task("TASK-001")
    memory.task("TASK-002", blocked_by=["TASK-001"])
    task.add_reasoning("Working on it", "build")
    assert task.state == "pending"
    assert task.set_state("active").state == "active"
    task.set_state("done")
    assert memory.task("TASK-002").state == "pending"
    assert [event.actor for event in memory.history() if event.subject == "task:TASK-001"] == ["agent"] * 3


def test_a_change_that_makes_no_sense_is_refused_with_those_that_would(memory: kept.Kept) -> None:
    """B7."""
    task = memory.task("TASK-001")
    with pytest.raises(InvalidInput, match=r"pending and cannot become failed.*active, blocked, done, cancelled"):
        task.set_state("failed")
    with pytest.raises(InvalidInput, match="Unknown task state"):
        task.set_state("sleeping")  # type: ignore[arg-type]
    task.set_state("cancelled")
    with pytest.raises(InvalidInput, match=r"cannot become active.*kept undo"):
        task.set_state("active")
    with pytest.raises(InvalidInput, match="cancelled and cannot be changed"):
        memory.task("TASK-001", priority=3)
    assert task.state == "cancelled"


@given(st.lists(st.sampled_from(sorted(CHANGES)), max_size=8))
def test_whatever_is_tried_only_the_table_is_followed(wishes: list[str]) -> None:
    """B7: a task ends once, with a moment, and never leaves its end."""
    with kept.open(":memory:", settings=kept.Settings()) as memory:
        task = memory.task("t")
        for wish in wishes:
            before = task.info
            if wish in CHANGES[before.state]:
                assert task.set_state(wish).state == wish  # type: ignore[arg-type]
            else:
                with pytest.raises(InvalidInput):
                    task.set_state(wish)  # type: ignore[arg-type]
                assert task.info == before
            assert task.info.has_ended == (task.state in ENDS)


def test_a_task_waits_for_those_that_block_it(memory: kept.Kept) -> None:
    """B7: blocked_by."""
    memory.task("a")
    task = memory.task("b", blocked_by=["a"])
    for state in ("active", "done"):
        with pytest.raises(InvalidInput, match="waits for a"):
            task.set_state(state)  # type: ignore[arg-type]
    task.set_state("blocked")
    memory.task("a").set_state("cancelled")
    assert task.set_state("active").state == "active"


def test_tasks_do_not_wait_for_what_is_not_there_or_for_themselves(memory: kept.Kept) -> None:
    memory.task("a")
    memory.task("b", blocked_by=["a"])
    with pytest.raises(NotFound, match="nowhere"):
        memory.task("c", blocked_by=["nowhere"])
    for blockers in (["a"], ["b"]):
        with pytest.raises(InvalidInput, match="wait for itself"):
            memory.task("a", blocked_by=blockers)
    assert memory.task("b", blocked_by=()).info.blocked_by == ()


# The end


@pytest.mark.parametrize("end", ENDS)
def test_an_end_clears_the_notes_into_the_archive(memory: kept.Kept, end: str) -> None:
    """D6, D11: cleared when the task has ended, and only its own; nothing is deleted."""
    task, other = memory.task("TASK-001"), memory.task("TASK-002")
    memory.remember("The project remembers this")
    pinned = task.add_reasoning("Locks are per file", "plan").ref
    memory.pin(pinned or "")
    other.add_reasoning("Something else altogether", "plan")
    task.set_state("active")
    task.set_state(end)  # type: ignore[arg-type]
    assert task.memories() == []
    assert contents(other.memories()) == ["Something else altogether"]
    assert "The project remembers this" in contents(memory.list())
    assert [(note.content, note.reason) for note in memory.list(status="archived")] == [
        ("Locks are per file", "expired")
    ]
    assert contents([hit.memory for hit in memory.recall("locks", scope="archive")]) == ["Locks are per file"]
    with pytest.raises(InvalidInput, match=f"is {end}"):
        task.add_reasoning("Too late", "plan")


def test_undoing_an_end_brings_the_notes_back(memory: kept.Kept) -> None:
    task = memory.task("TASK-001")
    task.add_reasoning("Locks are per file", "plan")
    task.add_tool_output("pytest", "2 failed", "test")
    task.set_state("done")
    memory.undo()
    assert task.state == "pending"
    assert contents(task.memories()) == ["Locks are per file", "pytest: 2 failed"]
    redone = memory.undo(memory.history()[-1].seq)
    assert redone
    assert task.state == "done"
    assert task.memories() == []


def test_a_task_can_be_cleared_before_it_ends(memory: kept.Kept) -> None:
    """D6: manual early."""
    task = memory.task("TASK-001")
    task.add_reasoning("A dead end", "plan")
    assert task.clear() == 1
    assert task.clear() == 0
    assert (task.state, task.memories()) == ("pending", [])
    task.add_reasoning("A better idea", "plan")
    assert len(task.memories()) == 1


def test_promoting_before_the_end_is_what_saves_a_note(memory: kept.Kept) -> None:
    """D6, D11: promotion before clearing; by hand, and nothing goes along by itself."""
    task = memory.task("TASK-001")
    saved = task.add_reasoning("The parser needs a lock per file", "plan").ref
    task.add_reasoning("This was only a detour", "plan")
    receipt = memory.promote(saved or "")
    task.set_state("done")
    assert contents(memory.list()) == ["The parser needs a lock per file"]
    assert receipt.memory is not None
    assert receipt.memory.source.task == "TASK-001"


@pytest.mark.parametrize("storage", ["inmemory", "sqlite"])  # the JSON file is for small stores
def test_a_task_with_very_many_notes_is_cleared_whole(storage: str, tmp_path: Path) -> None:
    with open_two(storage, tmp_path) as memory:
        task = memory.task("TASK-001")
        source = kept.Source(task="TASK-001")
        drafts = [kept.Draft(content=f"Note {n}", tier="task", source=source) for n in range(BATCH + 20)]
        memory.remember_many(drafts)
        task.set_state("done")
        assert task.memories() == []
        assert len({event.group for event in memory.history(limit=BATCH + 21)}) == 1
        memory.undo()
        assert len(task.memories()) == BATCH + 20


# Who may


def test_a_skill_has_no_tasks(tmp_path: Path) -> None:
    """B14."""
    with open_two("inmemory", tmp_path, actor=Actor(role="skill")) as memory:
        for attempt in (lambda: memory.task("TASK-001"), memory.tasks):
            with pytest.raises(NotAllowed):
                attempt()


def test_a_task_that_was_undone_is_gone_and_says_so(memory: kept.Kept) -> None:
    task = memory.task("TASK-001")
    memory.undo()
    assert memory.tasks(archived=True) == []
    for attempt in (lambda: task.state, lambda: task.set_state("done"), lambda: task.add_reasoning("x", "plan")):
        with pytest.raises(NotFound, match="TASK-001"):
            attempt()


# In a briefing


def test_a_briefing_for_a_task_has_its_notes_in_their_share(memory: kept.Kept) -> None:
    """D9, D10: of the task always, within its share; and of no other task."""
    task = memory.task("TASK-001")
    for number in range(40):
        task.add_reasoning(f"Thought number {number} about the parser and its locks", "plan")
        memory.remember(f"Decision number {number} about the parser and its tables", kind="decision")
    memory.task("TASK-002").add_reasoning("Secret plans about the parser", "plan")
    briefing = memory.briefing("parser", task="TASK-001", budget_tokens=2_000)
    [section] = [section for section in briefing.sections if section.name == "retrieval"]
    tiers = [entry.memory.tier for entry in section.entries]
    assert tiers.count("task") >= 5
    assert tiers.count("project") >= 5
    assert "Secret plans" not in str(briefing)
    none = memory.briefing("parser", task="TASK-001", budget_tokens=2_000, shares={"task": 0})
    assert "Thought number" not in str(none)
    task.set_state("done")
    assert "Thought number" not in str(memory.briefing("parser", task="TASK-001"))


def test_an_empty_description_or_milestone_is_none_at_all(tmp_path: Path) -> None:
    with kept.open(tmp_path / "memory.db") as memory:
        task = memory.task(description="", milestone="").info
        assert (task.description, task.milestone) == ("", None)


def test_what_is_remembered_for_a_task_or_in_a_session_takes_every_argument(memory: kept.Kept) -> None:
    old = memory.remember("Parcels leave the warehouse at noon").memory
    assert old is not None
    about = {"also": ["dispatch"], "replaces": [old.ref], "check": "src/plan.py"}
    for_task = memory.task("TASK-001").remember("Parcels leave the warehouse at four", **about).memory
    assert for_task is not None
    assert (for_task.source.task, for_task.data) == ("TASK-001", {"also": ["dispatch"], "check": "src/plan.py"})
    assert memory.get(old.ref, forgotten=True).superseded_by == for_task.uid
    in_session = memory.session("s1").remember("Letters leave at six", also="mail").memory
    assert in_session is not None
    assert (in_session.source.session, in_session.data) == ("s1", {"also": ["mail"]})
