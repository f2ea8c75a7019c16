"""`kept task` and `kept promote`: pieces of work, their notes, and what of them is to stay."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from kept.entrypoints.cli.frame import Command, Group, pass_invocation, yes_option
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import ago, as_document, counted, local, memory_lines, name_of
from kept.entrypoints.cli.write import answer_receipt, given_text
from kept.errors import NotFound
from kept.memory import Kept
from kept.memory.knowledge import PROMOTED_TO
from kept.memory.tasks import CHANGES, ENDS, OpenTask
from kept.memory.tasks import as_document as task_document
from kept.model import Memory, Task, TaskState, Tier

F = TypeVar("F", bound=Callable[..., Any])
Given = dict[str, Any]


@click.command("task", cls=Group)
def task_command() -> None:
    """Keep track of work: list, show, add, edit, state, note, clear.

    What is noted for a task stays until the task has ended. `kept promote` keeps a note for longer.
    """


@task_command.command("list")
@click.option("--milestone", metavar="NAME", help="Only of this milestone.")
@click.option("--all", "archived", is_flag=True, help="Also of milestones all of whose tasks have ended.")
@pass_invocation
def list_tasks(invocation: Invocation, *, milestone: str | None, archived: bool) -> None:
    """Show the tasks of this project, first priority first."""
    with invocation.open() as memory:
        tasks = memory.tasks(milestone=milestone, archived=archived)
    lines: list[Line] = [
        (Strong(task.name), f" {task.state}: ", _first_line(task), Dim(f"  {_about(task)}")) for task in tasks
    ]
    if not tasks:
        is_filtered = milestone is not None or not archived
        lines.append(f'No task is open here. `kept task add "…"` adds one{", --all shows all" if is_filtered else ""}.')
    invocation.answer({"tasks": [task_document(task) for task in tasks]}, lines)


def _first_line(task: Task) -> str:
    return task.description.split("\n")[0] or "(not described)"


def _about(task: Task) -> str:
    parts = [
        task.milestone or "",
        "" if task.priority is None else f"priority {task.priority}",
        f"waits for {', '.join(task.blocked_by)}" if task.blocked_by else "",
    ]
    return " · ".join(part for part in parts if part)


@task_command.command("show")
@click.argument("id")
@pass_invocation
def show_task(invocation: Invocation, *, id: str) -> None:
    """Show a task, and what is noted for it."""
    with invocation.open() as memory:
        opened = _open(memory, id)
        task, notes = opened.task, opened.memories()
    document = {**task_document(task), "notes": [as_document(note) for note in notes]}
    invocation.answer(document, [*_in_full(task, invocation), *_note_lines(notes, invocation)])


def _open(memory: Kept, id: str) -> OpenTask:
    """The task of that id, which must be there: looking at one must not begin one."""
    if id not in {task.name for task in memory.tasks(archived=True)}:
        raise NotFound(f"There is no task {id[:60]!r}.", hint="`kept task list` shows them.")
    return memory.task(id)


def _in_full(task: Task, invocation: Invocation) -> list[Line]:
    first, *rest = task.description.split("\n")
    rows = {
        "milestone": task.milestone or "",
        "priority": "" if task.priority is None else str(task.priority),
        "waits for": ", ".join(task.blocked_by),
        "added": f"{local(task.created_at, invocation.zone)}, {ago(task.created_at, invocation.clock())}",
        "ended": "" if task.completed_at is None else local(task.completed_at, invocation.zone),
    }
    return [
        (Strong(task.name), f" {task.state}: ", first or "(not described)"),
        *(("    ", line) for line in rest),
        *(("    - ", criterion.replace("\n", " ")) for criterion in task.acceptance_criteria),
        *((Dim(f"{label:<12}"), value) for label, value in rows.items() if value),
    ]


def _note_lines(notes: list[Memory], invocation: Invocation) -> list[Line]:
    lines: list[Line] = []
    stage = None
    for note in notes:
        if (own := (note.data or {}).get("stage")) != stage or not lines:
            stage = own
            lines.append(("", Strong(f"{stage or 'noted'}:")))
        lines += memory_lines(note, invocation.clock())
    return lines


def _planning(function: F) -> F:
    """The options that say what a task is."""
    for option in (
        click.option(
            "--blocked-by", multiple=True, metavar="ID", help="A task that has to end first. May be repeated."
        ),
        click.option(
            "--criterion",
            "acceptance_criteria",
            multiple=True,
            metavar="TEXT",
            help="When it is done. May be repeated.",
        ),
        click.option("--priority", type=click.IntRange(0, 1_000_000), metavar="NUMBER", help="1 comes first."),
        click.option("--milestone", metavar="NAME", help="What it is a part of."),
    ):
        function = option(function)
    return function


def _given(about: Given) -> Given:
    """What was said about a task; what was not said stays as it is."""
    return {name: value for name, value in about.items() if value not in (None, ())}


@task_command.command("add")
@click.argument("description", nargs=-1, required=True)
@click.option("--id", metavar="ID", help="By default the next one: TASK-001 and so on.")
@_planning
@pass_invocation
def add_task(invocation: Invocation, *, description: tuple[str, ...], id: str | None, **about: Any) -> None:
    """Add a task. A single dash reads the description from standard input."""
    text = given_text(description)
    with invocation.open() as memory:
        if id is not None and id in {task.name for task in memory.tasks(archived=True)}:
            raise click.UsageError(f"There is a task {id} already. `kept task edit {id}` changes it.")
        task = memory.task(id, description=text, **_given(about)).task
    line = (Strong(task.name), f" is {task.state}. `kept task state {task.name} active` begins it.")
    invocation.answer(task_document(task), [line])


@task_command.command("edit")
@click.argument("id")
@click.option("--description", metavar="TEXT", help="What is to be done.")
@click.option("--unblocked", is_flag=True, help="It waits for no other task any more.")
@_planning
@pass_invocation
def edit_task(invocation: Invocation, *, id: str, unblocked: bool, **about: Any) -> None:
    """Change what is said of a task. What is given takes the place of what was there."""
    given = _given(about) | ({"blocked_by": ()} if unblocked else {})
    with invocation.open() as memory:
        _open(memory, id)
        task = memory.task(id, **given).task
    invocation.answer(task_document(task), _in_full(task, invocation))


@task_command.command("state")
@click.argument("id")
@click.argument("state", type=click.Choice(tuple(CHANGES)), metavar="STATE")
@pass_invocation
def change_state(invocation: Invocation, *, id: str, state: TaskState) -> None:
    """Change the state of a task: pending, active, blocked; done, failed or cancelled.

    The last three are ends: what was noted for the task goes to the archive. `kept undo` takes that back, too.
    """
    with invocation.open() as memory:
        opened = _open(memory, id)
        cleared = len(opened.memories()) if state in ENDS else 0
        task = opened.set_state(state)
    more = f" {counted(cleared, 'note')} cleared into the archive; `kept undo` brings all back." if cleared else ""
    invocation.answer({**task_document(task), "cleared": cleared}, [(Strong(task.name), f" is {task.state}.{more}")])


@task_command.command("note")
@click.argument("id")
@click.argument("text", nargs=-1, required=True)
@click.option("--stage", default="work", show_default=True, metavar="NAME", help="The part of the work it belongs to.")
@click.option("--tool", metavar="NAME", help="It is what this tool gave back.")
@pass_invocation
def note_in_task(invocation: Invocation, *, id: str, text: tuple[str, ...], stage: str, tool: str | None) -> None:
    """Note something for as long as the task lasts. A single dash reads it from standard input."""
    content = given_text(text)
    with invocation.open() as memory:
        opened = _open(memory, id)
        receipt = opened.add_tool_output(tool, content, stage) if tool else opened.add_reasoning(content, stage)
    noted = ("Noted: ", name_of(receipt.memory), f" ({id}, {stage}).") if receipt.memory is not None else None
    answer_receipt(invocation, receipt, noted if receipt.outcome != "strengthened" else None)


@task_command.command("clear")
@click.argument("id")
@pass_invocation
def clear_task(invocation: Invocation, *, id: str) -> None:
    """Send the notes of a task to the archive before it has ended."""
    with invocation.open() as memory:
        cleared = _open(memory, id).clear()
    invocation.answer({"id": id, "cleared": cleared}, [f"{counted(cleared, 'note')} cleared into the archive."])


@click.command("promote", cls=Command)
@click.argument("ref")
@click.option(
    "--to", type=click.Choice(PROMOTED_TO), default="project", show_default=True, help="The tier it moves to."
)
@yes_option
@pass_invocation
def promote_command(invocation: Invocation, *, ref: str, to: Tier, yes: bool) -> None:
    """Move a memory to a tier that lives longer.

    Out of its task or session into the project, or into global memory, for all projects, which asks first. The old ref
    leads to the new one. What is too long for the tier has to be revised before.
    """
    with invocation.open(yes=yes) as memory:
        receipt = memory.promote(ref, to)
    moved = None
    if receipt.memory is not None and receipt.outcome != "strengthened":
        moved = (f"{ref} is ", name_of(receipt.memory), f" now, of tier {to}. `kept undo` takes it back.")
    answer_receipt(invocation, receipt, moved)
