"""`kept task` and `kept promote`: pieces of work, their notes, and keeping a note for longer."""

from typing import Any

import click
from msgspec.structs import replace

from kept.entrypoints.cli.derived import empty_answer, options_of, request_of
from kept.entrypoints.cli.frame import command, group, yes_option
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.receipts import answer_receipt
from kept.entrypoints.cli.wording import ago, as_document, counted, field_lines, local, memory_lines, name_of
from kept.errors import NotFound
from kept.memory import Kept
from kept.memory.tasks import ENDS, Task
from kept.memory.tasks import as_document as task_document
from kept.memory.verbs.change import PROMOTE
from kept.memory.verbs.tasks import (
    ADD_REASONING,
    ADD_TOOL_OUTPUT,
    CLEAR,
    LIST_TASKS,
    SET_STATE,
    SET_TASK,
    SHOW_TASK,
    AddToolOutput,
)
from kept.model import Memory, TaskRecord


@group
def task_command() -> None:
    """The notes of a task are archived when it ends. `kept promote` keeps a note for longer."""


@task_command.command("list")
@options_of(LIST_TASKS, also={"archived": "--all"})
def list_tasks(invocation: Invocation, **given: Any) -> None:
    """List the tasks of this project, by priority; with WORDS, those that match them, best first."""
    asked = request_of(LIST_TASKS, given)
    with invocation.open() as memory:
        tasks = memory.perform(LIST_TASKS, asked)
    lines: list[Line] = [(*_title(task), Dim(f"  {_about(task)}".rstrip())) for task in tasks]
    if not tasks:
        nothing = 'There are no {}tasks here. `kept task add "…"` adds one{}.'
        nothing = nothing.format("", "") if asked.archived else nothing.format("open ", ", --all shows all")
        said = empty_answer(LIST_TASKS, asked, "task" if asked.archived else "open task", nothing)
        lines.append(said)
    invocation.answer({"tasks": [task_document(task) for task in tasks]}, lines)


def _title(task: TaskRecord) -> tuple[str, ...]:
    return Strong(task.name), f" {task.state}: ", task.description.split("\n")[0] or "(no description)"


def _about(task: TaskRecord) -> str:
    parts = [
        task.milestone or "",
        "" if task.priority is None else f"priority {task.priority}",
        f"waits for {', '.join(task.blocked_by)}" if task.blocked_by else "",
    ]
    return " · ".join(part for part in parts if part)


@task_command.command("show")
@options_of(SHOW_TASK)
def show_task(invocation: Invocation, **given: Any) -> None:
    """Show a task and its notes."""
    asked = request_of(SHOW_TASK, given)
    with invocation.open() as memory:
        opened = open_existing(memory, asked.task)
        task, notes, remembered = opened.info, opened.memories(), opened.remembered()
    document = {
        **task_document(task),
        "notes": [as_document(note) for note in notes],
        "remembered": [as_document(one) for one in remembered],
    }
    lines = [*_in_full(task, invocation), *_note_lines(notes, invocation)]
    if remembered:
        lines += [
            "",
            Strong("remembered:"),
            *(line for one in remembered for line in memory_lines(one, invocation.clock())),
        ]
    invocation.answer(document, lines)


def open_existing(memory: Kept, id: str) -> Task:
    """The task with this id, which must exist: reading must not start one."""
    if not _exists(memory, id):
        raise NotFound(f"There is no task {id[:60]!r}.", hint="`kept task list` shows them.")
    return memory.task(id)


def _exists(memory: Kept, id: str) -> bool:
    return id in {task.name for task in memory.tasks(archived=True)}


def _in_full(task: TaskRecord, invocation: Invocation) -> list[Line]:
    rows = {
        "milestone": task.milestone or "",
        "priority": "" if task.priority is None else str(task.priority),
        "waits for": ", ".join(task.blocked_by),
        "added": f"{local(task.created_at, invocation.zone)}, {ago(task.created_at, invocation.clock())}",
        "ended": "" if task.completed_at is None else local(task.completed_at, invocation.zone),
    }
    return [
        _title(task),
        *(("    ", line) for line in task.description.split("\n")[1:]),
        *(("    - ", criterion.replace("\n", " ")) for criterion in task.acceptance_criteria),
        *field_lines(rows),
    ]


def _note_lines(notes: list[Memory], invocation: Invocation) -> list[Line]:
    lines: list[Line] = []
    stage = None
    for note in notes:
        if (own := (note.data or {}).get("stage")) != stage or not lines:
            stage = own
            lines.append(("", Strong(f"{stage or 'notes'}:")))
        lines += memory_lines(note, invocation.clock())
    return lines


@task_command.command("add")
@options_of(SET_TASK)
def add_task(invocation: Invocation, **given: Any) -> None:
    """Add a task. A single dash reads its TEXT from standard input."""
    asked = request_of(SET_TASK, given)
    if asked.description is None:
        raise click.UsageError('Say what is to be done: kept task add "…"')
    with invocation.open() as memory:
        if asked.id is not None and _exists(memory, asked.id):
            raise click.UsageError(f"Task {asked.id} already exists. `kept task edit {asked.id}` changes it.")
        task = memory.perform(SET_TASK, asked)
    line = (Strong(task.name), f" is {task.state}. `kept task state {task.name} active` starts it.")
    invocation.answer(task_document(task), [line])


@task_command.command("edit")
@options_of(SHOW_TASK)
@options_of(SET_TASK, without=("id", "description"))
@click.option("--description", metavar="TEXT", help="What is to be done.")  # an option here: the rest may stay
@click.option("--unblocked", is_flag=True, help="Stop waiting for other tasks.")
def edit_task(invocation: Invocation, *, task: str, unblocked: bool, **given: Any) -> None:
    """Change a task. The options replace the current values."""
    asked = request_of(SET_TASK, {"id": task, **given})
    if asked == request_of(SET_TASK, {"id": task}) and not unblocked:
        raise click.UsageError(f'Say what to change: kept task edit {task} --description "…"')
    if unblocked:
        asked = replace(asked, blocked_by=())
    with invocation.open() as memory:
        open_existing(memory, task)
        changed = memory.perform(SET_TASK, asked)
    invocation.answer(task_document(changed), _in_full(changed, invocation))


@task_command.command("state")
@options_of(SET_STATE)
def change_state(invocation: Invocation, **given: Any) -> None:
    """Change the state of a task.

    STATE is pending, active, blocked, done, failed or cancelled. The last three end the task and archive its notes.
    `kept undo` brings the notes back as well.
    """
    asked = request_of(SET_STATE, given)
    with invocation.open() as memory:
        cleared = len(open_existing(memory, asked.task).memories()) if asked.state in ENDS else 0
        task = memory.perform(SET_STATE, asked)
    more = f" Archived {counted(cleared, 'note')}; `kept undo` brings all back." if cleared else ""
    invocation.answer({**task_document(task), "cleared": cleared}, [(Strong(task.name), f" is {task.state}.{more}")])


@task_command.command("note")
@options_of(ADD_REASONING)
@click.option("--tool", metavar="TOOL", help="The text is the output of this tool.")
def note_in_task(invocation: Invocation, *, tool: str | None, **given: Any) -> None:
    """Add a note to a task. A single dash reads it from standard input."""
    asked = request_of(ADD_REASONING, given)
    with invocation.open() as memory:
        if tool is None:
            receipt = memory.perform(ADD_REASONING, asked)
        else:
            output = AddToolOutput(task=asked.task, tool=tool, output=asked.text, stage=asked.stage, files=asked.files)
            receipt = memory.perform(ADD_TOOL_OUTPUT, output)
    noted = None
    if receipt.memory is not None:
        noted = ("Noted: ", name_of(receipt.memory), f" ({asked.task}, {asked.stage}).")
    answer_receipt(invocation, receipt, noted if receipt.outcome != "strengthened" else None)


@task_command.command("clear")
@options_of(CLEAR)
def clear_task(invocation: Invocation, **given: Any) -> None:
    """Archive the notes of a task before it ends."""
    asked = request_of(CLEAR, given)
    with invocation.open() as memory:
        cleared = memory.perform(CLEAR, asked)
    invocation.answer({"id": asked.task, "cleared": cleared}, [f"Archived {counted(cleared, 'note')}."])


@command
@options_of(PROMOTE)
@yes_option
def promote_command(invocation: Invocation, *, yes: bool, **given: Any) -> None:
    """Out of its task or session into the project, or into global memory, for all projects, which asks first. The old
    ref leads to the new one. A text that is too long for the tier must be revised first.
    """
    asked = request_of(PROMOTE, given)
    with invocation.open(yes=yes) as memory:
        receipt = memory.perform(PROMOTE, asked)
    moved = None
    if receipt.memory is not None and receipt.outcome != "strengthened":
        moved = (f"{asked.ref} is ", name_of(receipt.memory), f" now, in tier {asked.to}. `kept undo` undoes it.")
    answer_receipt(invocation, receipt, moved)
