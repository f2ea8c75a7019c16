"""task and promote: at the command line."""

import json

from tests.cli.shell import Shell


def test_a_task_from_its_plan_to_its_end(shell: Shell) -> None:
    """B7, D6: added, begun, noted for, done; what was noted is cleared, and one undo takes all of that back."""
    assert "There are no open tasks here" in shell("task", "list")
    said = shell("task", "add", "Implement session locking", "--milestone", "M1", "--priority", "1")
    assert said == "TASK-001 is pending. `kept task state TASK-001 active` starts it.\n"
    assert shell("task", "state", "TASK-001", "active") == "TASK-001 is active.\n"
    assert shell("task", "note", "TASK-001", "Locks", "are", "per", "file", "--stage", "plan") == (
        "Noted: [id:1] (TASK-001, plan).\n"
    )
    shell("task", "note", "TASK-001", "-", "--tool", "pytest", "--stage", "test", input="2 failed\n")
    shown = shell("task", "show", "TASK-001")
    assert "TASK-001 active: Implement session locking" in shown
    assert shown.index("plan:") < shown.index("Locks are per file") < shown.index("test:") < shown.index("pytest: 2")
    assert "Archived 2 notes" in shell("task", "state", "TASK-001", "done")
    assert "There are no open tasks here" in shell("task", "list")
    assert "TASK-001 done: Implement session locking  M1 · priority 1" in shell("task", "list", "--all")
    assert "Undone" in shell("undo")
    assert [note["content"] for note in shell.json("task", "show", "TASK-001")["notes"]] == [
        "Locks are per file",
        "pytest: 2 failed",
    ]


def test_tasks_in_json_have_the_form_of_a_tasks_file(shell: Shell) -> None:
    """B7."""
    shell("task", "add", "Choose a lock", "--id", "T-1")
    added = shell.json(
        "task", "add", "Lock sessions", "--criterion", "Acquired", "--criterion", "Released", "--blocked-by", "T-1"
    )
    assert added == {
        "id": "TASK-001",
        "milestone": None,
        "priority": None,
        "status": "pending",
        "description": "Lock sessions",
        "acceptance_criteria": ["Acquired", "Released"],
        "created": "2026-03-01T12:00:00Z",
        "completed": None,
        "blocked_by": ["T-1"],
    }
    assert [task["id"] for task in shell.json("task", "list")["tasks"]] == ["T-1", "TASK-001"]
    assert "waits for T-1" in shell("task", "list")


def test_a_task_is_edited_and_what_is_not_given_stays(shell: Shell) -> None:
    shell("task", "add", "Choose a lock", "--priority", "2")
    shell("task", "add", "Lock sessions", "--blocked-by", "TASK-001")
    assert "priority    1" in shell("task", "edit", "TASK-001", "--priority", "1")
    assert shell.json("task", "show", "TASK-001")["description"] == "Choose a lock"
    assert "waits for TASK-001" in shell.fails("task", "state", "TASK-002", "active")
    shell("task", "edit", "TASK-002", "--unblocked", "--description", "Lock sessions, at last")
    assert "TASK-002 is active." in shell("task", "state", "TASK-002", "active")


def test_invalid_task_commands_are_refused_with_a_reason(shell: Shell) -> None:
    shell("task", "add", "Choose a lock")
    assert "cannot become failed" in shell.fails("task", "state", "TASK-001", "failed")
    assert "kept task list" in shell.fails("task", "show", "nowhere")
    assert shell.json("task", "list")["tasks"][0]["id"] == "TASK-001"
    assert len(shell.json("task", "list", "--all")["tasks"]) == 1, "looking for one has not begun it"
    assert "kept task edit TASK-001" in shell.fails("task", "add", "Again", "--id", "TASK-001", code=2)
    shell.fails("task", "state", "TASK-001", "sleeping", code=2)


def test_notes_can_be_cleared_early(shell: Shell) -> None:
    """D6."""
    shell("task", "add", "Choose a lock")
    shell("task", "note", "TASK-001", "A dead end")
    assert shell("task", "clear", "TASK-001") == "Archived 1 note.\n"
    assert shell.json("task", "clear", "TASK-001") == {"id": "TASK-001", "cleared": 0}


def test_a_note_is_promoted_and_the_old_ref_leads_to_the_new_one(shell: Shell) -> None:
    """D11: by hand only; into global memory only with a yes."""
    shell("task", "add", "Choose a lock")
    shell("task", "note", "TASK-001", "The parser needs a lock per file")
    assert shell("promote", "1") == "1 is [id:2] now, in tier project. `kept undo` undoes it.\n"
    assert "replaced by [id:2]" in shell("show", "1")
    assert "It was replaced by 2" in shell.fails("pin", "1")
    assert "This needs confirmation" in shell.fails("promote", "2", "--to", "global")
    promoted = shell.json("promote", "2", "--to", "global", "--yes")
    assert (promoted["ref"], promoted["memory"]["source"]["task"]) == ("g1", "TASK-001")
    assert "replaced by [id:g1]" in shell("show", "2")
    shell("undo", "--yes")
    assert [memory["ref"] for memory in shell.json("list")["memories"]] == ["2"]


def test_a_promotion_that_is_refused_says_why_and_fails(shell: Shell) -> None:
    shell("task", "add", "Choose a lock")
    shell("task", "note", "TASK-001", "word " * 200)
    result = shell.type("promote", "1")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "too long" in result.stderr
    assert json.loads(shell.type("promote", "1", "--json").stdout)["reason"] == "too_long"


def test_a_briefing_for_a_task_has_its_notes(shell: Shell) -> None:
    """D9, D10: kept briefing --task."""
    shell("task", "add", "Choose a lock")
    shell("task", "note", "TASK-001", "The parser needs a lock per file")
    assert "The parser needs a lock per file" in shell("briefing", "unrelated words", "--task", "TASK-001")
    assert "The parser needs a lock per file" not in shell("briefing", "parser lock", "--task", "TASK-002")


def test_a_memory_with_a_task_is_found_from_its_task(shell: Shell) -> None:
    """A5: and it outlives the task, unlike a note."""
    shell("task", "add", "Rewrite the checkout")
    shell("remember", "Orders keep their numbers", "--task", "TASK-001")
    assert "There is no task 'TASK-9'" in shell.fails("remember", "x y z", "--task", "TASK-9")
    shell("task", "state", "TASK-001", "done")
    assert "Orders keep their numbers" in shell("task", "show", "TASK-001")
    assert shell.json("show", "1")["source"]["task"] == "TASK-001"


def test_tasks_are_searchable(shell: Shell) -> None:
    """B7, B21."""
    shell("task", "add", "Rewrite the checkout", "--criterion", "Orders keep their numbers")
    shell("task", "add", "Paint the lighthouse")
    told = shell("task", "list", "order", "number")
    assert "TASK-001" in told
    assert "TASK-002" not in told
    assert shell("task", "list", "zebra") == "No open task matches.\n"


def test_the_undo_of_a_task_says_what_it_changed(shell: Shell) -> None:
    shell("task", "add", "Coupons in the cart")
    shell("task", "state", "TASK-001", "active")
    assert "TASK-001 (event 2: state pending → active)" in shell("undo")


def test_an_edit_of_a_task_without_a_change_is_refused(shell: Shell) -> None:
    shell("task", "add", "Lock sessions")
    assert shell.fails("task", "edit", "TASK-001", code=2).startswith("Say what to change: kept task edit TASK-001")
    shell("task", "edit", "TASK-001", "--priority", "2")
