"""B7: tasks.json shows the tasks in Brain's form, and what people change in it is taken in."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kept
from kept.memory.views import SyncReport
from tests.builders import FakeClock


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[kept.Kept]:
    (tmp_path / "app").mkdir()
    with kept.open(project=tmp_path / "app", home=tmp_path / "home", settings={}, clock=FakeClock()) as opened:
        yield opened


def path_of(memory: kept.Kept) -> Path:
    return next(Path(one.path) for one in memory.files.status() if one.name == "tasks.json")


def sync(memory: kept.Kept) -> SyncReport:
    return next(done for done in memory.files.sync() if done.name == "tasks.json")


def read(memory: kept.Kept) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path_of(memory).read_text("utf-8"))["tasks"]
    return found


def write(memory: kept.Kept, tasks: object, **outer: object) -> None:
    path_of(memory).write_text(json.dumps({**outer, "tasks": tasks}), "utf-8")


def test_the_file_has_brains_schema(memory: kept.Kept) -> None:
    memory.task(
        "TASK-001",
        description="Implement session locking",
        milestone="M1",
        priority=1,
        acceptance_criteria=["Lock acquired before execution", "Lock released after"],
    )
    sync(memory)
    assert read(memory) == [
        {
            "id": "TASK-001",
            "milestone": "M1",
            "priority": 1,
            "status": "pending",
            "description": "Implement session locking",
            "acceptance_criteria": ["Lock acquired before execution", "Lock released after"],
            "created": "2026-03-01T12:00:00Z",
            "completed": None,
            "blocked_by": [],
        }
    ]


def test_people_add_change_and_take_out_tasks(memory: kept.Kept) -> None:
    for number in (1, 2, 3):
        memory.task(f"TASK-00{number}", description=f"Part {number}")
    sync(memory)
    one, two, _ = read(memory)
    one |= {"status": "in_progress", "priority": 2, "mine": {"a": 1}}
    new = {"description": "Write the docs", "blocked_by": ["TASK-001"], "created": "2026-02-05"}
    write(memory, [two, one, new], version=7)
    done = sync(memory)
    assert (done.added, done.changed, done.removed) == (["TASK-004"], ["TASK-001"], ["TASK-003"])
    states = {task.name: task.state for task in memory.tasks(archived=True)}
    assert states == {"TASK-001": "active", "TASK-002": "pending", "TASK-003": "cancelled", "TASK-004": "pending"}
    assert memory.task("TASK-004").info.created_at.day == 5
    document = json.loads(path_of(memory).read_text("utf-8"))
    assert document["version"] == 7
    assert [task["id"] for task in document["tasks"]] == ["TASK-002", "TASK-001", "TASK-004"]
    assert document["tasks"][1]["mine"] == {"a": 1}
    assert document["tasks"][1]["status"] == "active"
    assert not sync(memory).is_written


def test_what_is_against_the_rules_is_left_in_the_file_and_named(memory: kept.Kept) -> None:
    """blocked_by is checked for unknown ids and cycles, states for what may follow."""
    memory.task("TASK-001", description="one")
    memory.task("TASK-002", description="two", blocked_by=["TASK-001"])
    sync(memory)
    one, two = read(memory)
    for wrong, reason in (
        ({**one, "blocked_by": ["TASK-002"]}, "would wait for itself"),
        ({**one, "blocked_by": ["TASK-9"]}, "There is no task TASK-9"),
        ({**one, "status": "someday"}, "Unknown task state 'someday'"),
        ({**one, "priority": "high"}, "priority must be a whole number"),
        ({**one, "status": "failed", "priority": 5}, "cannot become failed"),
    ):
        write(memory, [wrong, two])
        done = sync(memory)
        assert reason in done.notes[0]
        assert not done.changed
        assert wrong in read(memory), "an edit is never overwritten"
        assert memory.task("TASK-001").info == memory.task("TASK-001").info
        assert memory.task("TASK-001").info.priority is None
    write(memory, [one, {**two, "status": "done"}])
    assert "waits for TASK-001" in sync(memory).notes[0]
    write(memory, [{**one, "status": "done"}, two])
    sync(memory)
    assert memory.task("TASK-001").state == "done"


def test_both_sides_of_a_task_are_merged_field_by_field(memory: kept.Kept) -> None:
    memory.task("TASK-001", description="one", milestone="M1")
    sync(memory)
    memory.task("TASK-001").set_state("active")
    memory.task("TASK-001", description="one, said by an agent")
    [task] = read(memory)
    write(memory, [{**task, "priority": 3, "description": "one, said by me"}])
    done = sync(memory)
    merged = memory.task("TASK-001").info
    assert (merged.state, merged.priority) == ("active", 3)
    assert merged.description == "one, said by me\none, said by an agent"
    assert "both are kept" in done.notes[0]


def test_the_tasks_of_a_finished_milestone_leave_the_file(memory: kept.Kept) -> None:
    for name, milestone in (("TASK-001", "M1"), ("TASK-002", "M1"), ("TASK-003", "M2")):
        memory.task(name, description=name, milestone=milestone)
    memory.task("TASK-001").set_state("done")
    sync(memory)
    assert len(read(memory)) == 3
    memory.task("TASK-002").set_state("done")
    sync(memory)
    assert [task["id"] for task in read(memory)] == ["TASK-003"]
    assert not sync(memory).has_edits
    assert {task.state for task in memory.tasks(archived=True)} == {"done", "pending"}


@pytest.mark.parametrize("text", ["", "{", '{"tasks": 7}', '"x"', '{"tasks": [{"id": "TASK-001"'])
def test_a_file_that_is_no_json_is_left_alone(memory: kept.Kept, text: str) -> None:
    memory.task("TASK-001", description="one")
    sync(memory)
    path_of(memory).write_text(text, "utf-8")
    memory.files.take_edits()
    assert "cannot be read" in sync(memory).waiting
    assert path_of(memory).read_text("utf-8") == text
    assert memory.task("TASK-001").state == "pending"


def test_many_tasks_gone_at_once_are_asked_about(memory: kept.Kept) -> None:
    for number in range(7):
        memory.task(f"T{number}", description="x")
    sync(memory)
    write(memory, [])
    assert "7 of 7 tasks are gone" in sync(memory).waiting
    memory.files.sync(ask=lambda question, lines: True)
    assert {task.state for task in memory.tasks(archived=True)} == {"cancelled"}


def test_secrets_in_a_task_do_not_reach_the_store(memory: kept.Kept, tmp_path: Path) -> None:
    memory.task("TASK-001", description="one")
    sync(memory)
    token = "ghp_" + "a8Kd93jfLq02mZx7Vb5Nc1Rt6Yw4Ue0Pi2So"
    [task] = read(memory)
    write(memory, [{**task, "description": f"push with {token}"}])
    sync(memory)
    assert "[redacted:" in read(memory)[0]["description"]
    memory.close()
    assert all(token.encode() not in path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())


def test_a_project_without_tasks_has_no_file(memory: kept.Kept) -> None:
    memory.remember("API uses Fastify")
    assert [done.name for done in memory.files.sync()] == ["MEMORY.md"]


def test_the_dates_of_a_person_stay_as_they_were_written(memory: kept.Kept) -> None:
    """B7: a day is a day in the file, whatever Kept changes beside it."""
    memory.task("TASK-001", description="Paint the pier", milestone="M1")
    sync(memory)
    planned = {"id": "TASK-002", "status": "pending", "milestone": "M1", "description": "Paint the mole"}
    write(memory, [*read(memory), {**planned, "created": "2026-02-05"}])
    sync(memory)
    memory.task("TASK-002", priority=1)
    sync(memory)
    shown = {one["id"]: one for one in read(memory)}
    assert (shown["TASK-002"]["created"], shown["TASK-002"]["priority"]) == ("2026-02-05", 1)
    assert shown["TASK-001"]["created"] == "2026-03-01T12:00:00Z"
    assert sync(memory).has_edits is False


def test_a_person_sets_when_a_known_task_began_and_ended(memory: kept.Kept) -> None:
    memory.task("TASK-001", description="Paint the pier", milestone="M1")
    memory.task("TASK-002", description="Paint the mole", milestone="M1")
    sync(memory)
    first, second = read(memory)
    write(memory, [{**first, "status": "done", "created": "2026-02-01", "completed": "2026-02-07"}, second])
    assert sync(memory).changed == ["TASK-001"]
    task = memory.task("TASK-001").info
    assert (f"{task.created_at:%Y-%m-%d}", f"{task.completed_at:%Y-%m-%d}") == ("2026-02-01", "2026-02-07")
    shown = read(memory)[0]
    assert (shown["created"], shown["completed"]) == ("2026-02-01", "2026-02-07")


def test_a_date_that_is_none_is_left_as_it_is_and_named(memory: kept.Kept) -> None:
    memory.task("TASK-001", description="Paint the pier")
    sync(memory)
    write(memory, [{**read(memory)[0], "created": "last spring"}])
    done = sync(memory)
    assert done.changed == []
    assert "created must be a date, got 'last spring'" in done.notes[0]
    assert read(memory)[0]["created"] == "last spring"
