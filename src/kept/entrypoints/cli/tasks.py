"""`kept task` and `kept promote`: pieces of work, their notes, and keeping a note for longer."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from kept.entrypoints.cli.derived import given_text, options_of, request_of
from kept.entrypoints.cli.frame import command, group, yes_option
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.receipts import answer_receipt
from kept.entrypoints.cli.wording import ago, as_document, counted, field_lines, local, memory_lines, name_of
from kept.errors import NotFound
from kept.memory import Kept
from kept.memory.tasks import CHANGES, ENDS, OpenTask
from kept.memory.tasks import as_document as task_document
from kept.memory.verbs.change import PROMOTE
from kept.model import Memory, Task, TaskState

F = TypeVar("F", bound=Callable[..., Any])
Given = dict[str, Any]


@group
def task_command() -> None:
    """The notes of a task are archived when it ends. `kept promote` keeps a note for longer."""


@task_command.command("list")
@click.argument("words", nargs=-1)
@click.option("--milestone", metavar="NAME", help="Only tasks of this milestone.")
@click.option("--all", "archived", is_flag=True, help="Include finished milestones.")
def list_tasks(invocation: Invocation, *, words: tuple[str, ...], milestone: str | None, archived: bool) -> None:
    """List the tasks of this project, by priority; with WORDS, those that match them, best first."""
    with invocation.open() as memory:
        tasks = memory.tasks(milestone=milestone, archived=archived, query=" ".join(words) or None)
    lines: list[Line] = [(*_title(task), Dim(f"  {_about(task)}")) for task in tasks]
    if not tasks:
        is_filtered = milestone is not None or bool(words) or not archived
        lines.append(
            f'There are no open tasks here. `kept task add "…"` adds one{", --all shows all" if is_filtered else ""}.'
        )
    invocation.answer({"tasks": [task_document(task) for task in tasks]}, lines)


def _title(task: Task) -> tuple[str, ...]:
    return Strong(task.name), f" {task.state}: ", task.description.split("\n")[0] or "(no description)"


def _about(task: Task) -> str:
    parts = [
        task.milestone or "",
        "" if task.priority is None else f"priority {task.priority}",
        f"waits for {', '.join(task.blocked_by)}" if task.blocked_by else "",
    ]
    return " · ".join(part for part in parts if part)


@task_command.command("show")
@click.argument("id")
def show_task(invocation: Invocation, *, id: str) -> None:
    """Show a task and its notes."""
    with invocation.open() as memory:
        opened = open_existing(memory, id)
        task, notes, remembered = opened.task, opened.memories(), opened.remembered()
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


def open_existing(memory: Kept, id: str) -> OpenTask:
    """The task with this id, which must exist: reading must not start one."""
    if id not in {task.name for task in memory.tasks(archived=True)}:
        raise NotFound(f"There is no task {id[:60]!r}.", hint="`kept task list` shows them.")
    return memory.task(id)


def _in_full(task: Task, invocation: Invocation) -> list[Line]:
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


def _planning(function: F) -> F:
    """The options that describe a task."""
    for option in (
        click.option("--blocked-by", multiple=True, metavar="ID", help="A task that must end first. May be repeated."),
        click.option(
            "--criterion",
            "acceptance_criteria",
            multiple=True,
            metavar="TEXT",
            help="A criterion for being done. May be repeated.",
        ),
        click.option("--priority", type=click.IntRange(0, 1_000_000), metavar="NUMBER", help="1 comes first."),
        click.option("--milestone", metavar="NAME", help="The milestone it belongs to."),
    ):
        function = option(function)
    return function


def _given(about: Given) -> Given:
    """The options that were given; the others leave the task as it is."""
    return {name: value for name, value in about.items() if value not in (None, ())}


@task_command.command("add")
@click.argument("description", nargs=-1, required=True)
@click.option("--id", metavar="ID", help="The id of the task; by default the next free one, such as TASK-001.")
@_planning
def add_task(invocation: Invocation, *, description: tuple[str, ...], id: str | None, **about: Any) -> None:
    """Add a task. A single dash reads the description from standard input."""
    text = given_text(description)
    with invocation.open() as memory:
        if id is not None and id in {task.name for task in memory.tasks(archived=True)}:
            raise click.UsageError(f"Task {id} already exists. `kept task edit {id}` changes it.")
        task = memory.task(id, description=text, **_given(about)).task
    line = (Strong(task.name), f" is {task.state}. `kept task state {task.name} active` starts it.")
    invocation.answer(task_document(task), [line])


@task_command.command("edit")
@click.argument("id")
@click.option("--description", metavar="TEXT", help="What to do.")
@click.option("--unblocked", is_flag=True, help="Stop waiting for other tasks.")
@_planning
def edit_task(invocation: Invocation, *, id: str, unblocked: bool, **about: Any) -> None:
    """Change the description of a task. The options replace the current values."""
    given = _given(about) | ({"blocked_by": ()} if unblocked else {})
    with invocation.open() as memory:
        open_existing(memory, id)
        task = memory.task(id, **given).task
    invocation.answer(task_document(task), _in_full(task, invocation))


@task_command.command("state")
@click.argument("id")
@click.argument("state", type=click.Choice(tuple(CHANGES)), metavar="STATE")
def change_state(invocation: Invocation, *, id: str, state: TaskState) -> None:
    """Change the state of a task.

    STATE is pending, active, blocked, done, failed or cancelled. The last three end the task and archive its notes.
    `kept undo` brings the notes back as well.
    """
    with invocation.open() as memory:
        opened = open_existing(memory, id)
        cleared = len(opened.memories()) if state in ENDS else 0
        task = opened.set_state(state)
    more = f" Archived {counted(cleared, 'note')}; `kept undo` brings all back." if cleared else ""
    invocation.answer({**task_document(task), "cleared": cleared}, [(Strong(task.name), f" is {task.state}.{more}")])


@task_command.command("note")
@click.argument("id")
@click.argument("text", nargs=-1, required=True)
@click.option("--stage", default="work", show_default=True, metavar="NAME", help="The stage of the work.")
@click.option("--tool", metavar="NAME", help="The text is the output of this tool.")
def note_in_task(invocation: Invocation, *, id: str, text: tuple[str, ...], stage: str, tool: str | None) -> None:
    """Add a note to a task. A single dash reads it from standard input."""
    content = given_text(text)
    with invocation.open() as memory:
        opened = open_existing(memory, id)
        receipt = opened.add_tool_output(tool, content, stage) if tool else opened.add_reasoning(content, stage)
    noted = ("Noted: ", name_of(receipt.memory), f" ({id}, {stage}).") if receipt.memory is not None else None
    answer_receipt(invocation, receipt, noted if receipt.outcome != "strengthened" else None)


@task_command.command("clear")
@click.argument("id")
def clear_task(invocation: Invocation, *, id: str) -> None:
    """Archive the notes of a task before it ends."""
    with invocation.open() as memory:
        cleared = open_existing(memory, id).clear()
    invocation.answer({"id": id, "cleared": cleared}, [f"Archived {counted(cleared, 'note')}."])


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
