"""Pieces of work: add and change them, note what happens, end them; and narratives, which keep memories together."""

from typing import Annotated

from msgspec import Struct

from kept.errors import NotFound
from kept.memory import narratives, tasks
from kept.memory.context import Context, Memories, Ref, Tasks
from kept.memory.narratives import ListedNarrative, Narrative
from kept.memory.tasks import Task
from kept.memory.verbs import checked
from kept.memory.verbs.declare import Returns, Tool, Verb
from kept.memory.verbs.fields import TaskName, about
from kept.model import Memory, Receipt, TaskRecord, TaskState

NOTES = Returns(Memory, "Notes, oldest first.", many="memories")
Stage = Annotated[str, about("The part of the work: plan, build, test …", metavar="STAGE")]
NoteFiles = Annotated[tuple[str, ...], about("Files it is about.", one="file", metavar="PATH")]
StoryName = Annotated[str, about("The id of the narrative.", metavar="NARRATIVE")]


class ListTasks(Struct, frozen=True, kw_only=True):
    """Which tasks to list."""

    milestone: Annotated[str, about("Only of this milestone.", metavar="NAME")] | None = None
    archived: Annotated[bool, about("Archived tasks as well.")] = False
    query: (
        Annotated[str, about("Only those that match these words, best first.", metavar="WORDS", is_text=True)] | None
    ) = None


class SetTask(Struct, frozen=True, kw_only=True):
    """A task, and the fields that are set."""

    id: Annotated[str, about("The id of the task; by default a new one, such as TASK-001.", metavar="TASK")] | None = (
        None
    )
    description: Annotated[str, about("What is to be done.", metavar="TEXT", is_text=True)] | None = None
    milestone: Annotated[str, about("The milestone it belongs to.", metavar="NAME")] | None = None
    priority: Annotated[int, about("1 comes first.", metavar="NUMBER", least=1, most=1000)] | None = None
    acceptance_criteria: (
        Annotated[tuple[str, ...], about("When it is done.", one="criterion", metavar="TEXT")] | None
    ) = None
    blocked_by: (
        Annotated[tuple[str, ...], about("Tasks that have to end first.", one="blocked-by", metavar="TASK")] | None
    ) = None


class OneTask(Struct, frozen=True, kw_only=True):
    """One task."""

    task: TaskName


class SetState(Struct, frozen=True, kw_only=True):
    """A task and its new state."""

    task: TaskName
    state: Annotated[TaskState, about("The new state of the task with that id.", metavar="STATE")]


class AddReasoning(Struct, frozen=True, kw_only=True):
    """A thought at a stage of the work."""

    task: TaskName
    text: Annotated[str, about("The thought.", metavar="TEXT", is_text=True)]
    stage: Stage = "work"
    files: NoteFiles = ()


class AddToolOutput(Struct, frozen=True, kw_only=True):
    """The output of a tool at a stage of the work."""

    task: TaskName
    tool: Annotated[str, about("The name of the tool.", metavar="TOOL")]
    output: Annotated[str, about("Its output.", metavar="TEXT", is_text=True)]
    stage: Stage = "work"
    files: NoteFiles = ()


class ListNotes(Struct, frozen=True, kw_only=True):
    """Notes of a task."""

    task: TaskName
    stage: Annotated[str, about("Only of this stage.", metavar="STAGE")] | None = None


class ListNarratives(Struct, frozen=True, kw_only=True):
    """All narratives."""


class BeginNarrative(Struct, frozen=True, kw_only=True):
    """A narrative."""

    id: StoryName


class EndNarrative(Struct, frozen=True, kw_only=True):
    """The narrative under way."""


class ShowNarrative(Struct, frozen=True, kw_only=True):
    """A narrative, by its id or by one of its memories."""

    id: Annotated[str, about("The id of the narrative.", metavar="NARRATIVE", is_positional=True)] | None = None
    of: Annotated[int | str, about("A memory that belongs to it.", metavar="ID")] | None = None


def list_tasks(context: Context, asked: ListTasks) -> Tasks:
    """List tasks, highest priority first."""
    return tasks.list_tasks(context, milestone=asked.milestone, archived=asked.archived, query=asked.query)


def set_task(context: Context, asked: SetTask) -> TaskRecord:
    """Add a task, or set fields of one."""
    return _opened(context, asked).info


def open_with(context: Context, asked: SetTask) -> Task:
    """Open a task to work on it, with the fields that are given."""
    wanted = checked(asked)
    with context.signals.gathered(SET_TASK.name):
        return _opened(context, wanted)


def _opened(context: Context, asked: SetTask) -> Task:
    names = ("description", "milestone", "priority", "acceptance_criteria", "blocked_by")
    return tasks.open_task(context, asked.id, {name: getattr(asked, name) for name in names})


def show_task(context: Context, asked: OneTask) -> TaskRecord:
    """Return one task."""
    return existing(context, asked.task).info


def set_state(context: Context, asked: SetState) -> TaskRecord:
    """Change the state of a task."""
    return existing(context, asked.task).set_state(asked.state)


def add_reasoning(context: Context, asked: AddReasoning) -> Receipt:
    """Note a thought."""
    return existing(context, asked.task).add_reasoning(asked.text, asked.stage, files=asked.files)


def add_tool_output(context: Context, asked: AddToolOutput) -> Receipt:
    """Note the output of a tool."""
    return existing(context, asked.task).add_tool_output(asked.tool, asked.output, asked.stage, files=asked.files)


def list_notes(context: Context, asked: ListNotes) -> Memories:
    """Return the notes of a task, oldest first."""
    return existing(context, asked.task).memories(stage=asked.stage)


def clear(context: Context, asked: OneTask) -> int:
    """Archive the notes of a task; returns how many."""
    return existing(context, asked.task).clear()


def existing(context: Context, name: str) -> Task:
    """Open a task that exists. Raises NotFound."""
    if name not in {one.name for one in context.of_project(TaskRecord)}:
        raise NotFound(f"There is no task {name[:60]!r}.", hint="`kept task list` shows them.")
    return tasks.open_task(context, name, {})


def list_narratives(context: Context, _asked: ListNarratives) -> list[ListedNarrative]:
    """List narratives."""
    return narratives.list_narratives(context)


def begin_narrative(context: Context, asked: BeginNarrative) -> str:
    """Let everything that is remembered from now on belong to a narrative."""
    narratives.narrative(context, asked.id, None).begin()
    return asked.id


def end_narrative(context: Context, _asked: EndNarrative) -> str | None:
    """End the narrative under way; returns its id."""
    context.owned()
    under_way = context.narrative
    if under_way is not None:
        narratives.narrative(context, under_way, None).end()
    return under_way


def open_narrative(context: Context, id: str | None, of: Ref | None) -> Narrative:
    """Open a narrative, to add to it and read it."""
    return narratives.narrative(context, id, of)


def show_narrative(context: Context, asked: ShowNarrative) -> Memories:
    """Return the memories of a narrative in the order they were written."""
    return narratives.narrative(context, asked.id, asked.of).memories()


LIST_TASKS = Verb(
    name="tasks",
    help="List tasks, highest priority first.",
    request=ListTasks,
    run=list_tasks,
    effect="reads",
    returns=Returns(TaskRecord, "Tasks, highest priority first.", many="tasks"),
    python="tasks",
    cli="task list",
    mcp=Tool("memory_tasks"),
    http="GET /tasks",
    slash="/memory task list",
)
SET_TASK = Verb(
    name="task",
    help="Add a task, or change the fields of one.",
    request=SetTask,
    run=set_task,
    effect="writes",
    returns=Returns(TaskRecord, "The task."),
    python="task",
    cli="task add",
    mcp=Tool("memory_task"),
    http="POST /tasks",
    slash="/memory task add",
)
SHOW_TASK = Verb(
    name="task.show",
    help="Show one task.",
    request=OneTask,
    run=show_task,
    effect="reads",
    returns=Returns(TaskRecord, "The task."),
    python="task().info",
    cli="task show",
    mcp=Tool("memory_task_get"),
    http="GET /tasks/{task}",
    slash="/memory task show",
)
SET_STATE = Verb(
    name="task.set_state",
    help="Change the state of a task.",
    request=SetState,
    run=set_state,
    effect="writes",
    returns=Returns(TaskRecord, "The task."),
    python="task().set_state",
    cli="task state",
    mcp=Tool(
        "memory_update", usual=("task", "state"), renamed={"task": "id", "state": "task_state"}, when="task_state"
    ),
    http="POST /tasks/{task}/state",
    slash="/memory task state",
    is_repeatable=True,
)
ADD_REASONING = Verb(
    name="task.add_reasoning",
    help="Note a thought at a stage of a task.",
    request=AddReasoning,
    run=add_reasoning,
    effect="writes",
    returns=Returns(Receipt, "What became of it."),
    python="task().add_reasoning",
    cli="task note",
    mcp=Tool("memory_task_note"),
    http="POST /tasks/{task}/notes",
    slash="/memory task note",
)
ADD_TOOL_OUTPUT = Verb(
    name="task.add_tool_output",
    help="Note the output of a tool at a stage of a task.",
    request=AddToolOutput,
    run=add_tool_output,
    effect="writes",
    returns=Returns(Receipt, "What became of it."),
    python="task().add_tool_output",
    cli="task output",
    mcp=Tool("memory_task_output"),
    http="POST /tasks/{task}/outputs",
    slash="/memory task output",
)
LIST_NOTES = Verb(
    name="task.memories",
    help="List the notes of a task, oldest first.",
    request=ListNotes,
    run=list_notes,
    effect="reads",
    returns=NOTES,
    python="task().memories",
    cli="task notes",
    mcp=Tool("memory_task_notes"),
    http="GET /tasks/{task}/notes",
    slash="/memory task notes",
)
CLEAR = Verb(
    name="task.clear",
    help="Archive the notes of a task before it has ended.",
    request=OneTask,
    run=clear,
    effect="destroys",
    returns=Returns(None, "How many notes were archived."),
    python="task().clear",
    cli="task clear",
    mcp=Tool("memory_task_clear"),
    http="DELETE /tasks/{task}/notes",
    slash="/memory task clear",
)
LIST_NARRATIVES = Verb(
    name="narratives",
    help="List narratives: running stories that memories belong to.",
    request=ListNarratives,
    run=list_narratives,
    effect="reads",
    returns=Returns(ListedNarrative, "Narratives, with the number of their memories.", many="narratives"),
    python="narratives",
    cli="narrative list",
    mcp=Tool("memory_narratives"),
    http="GET /narratives",
    slash="/memory narrative list",
)
BEGIN_NARRATIVE = Verb(
    name="narrative.begin",
    help="Let everything that is remembered from now on belong to a narrative.",
    request=BeginNarrative,
    run=begin_narrative,
    effect="writes",
    returns=Returns(None, "The id of the narrative."),
    python="narrative().begin",
    cli="narrative begin",
    mcp=Tool("memory_narrative_begin"),
    http="POST /narratives/{id}/begin",
    slash="/memory narrative begin",
    is_repeatable=True,
)
END_NARRATIVE = Verb(
    name="narrative.end",
    help="End the narrative under way; its memories stay.",
    request=EndNarrative,
    run=end_narrative,
    effect="writes",
    returns=Returns(None, "The id of the narrative, or null if none was under way."),
    python="narrative().end",
    cli="narrative end",
    mcp=Tool("memory_narrative_end"),
    http="POST /narratives/end",
    slash="/memory narrative end",
    is_repeatable=True,
)
SHOW_NARRATIVE = Verb(
    name="narrative.memories",
    help="Show the memories of a narrative in the order they were written.",
    request=ShowNarrative,
    run=show_narrative,
    effect="reads",
    returns=Returns(Memory, "Memories, oldest first.", many="memories"),
    python="narrative().memories",
    cli="narrative show",
    mcp=Tool("memory_narrative"),
    http="GET /narrative",
    slash="/memory narrative show",
)
VERBS = (
    LIST_TASKS,
    SET_TASK,
    SHOW_TASK,
    SET_STATE,
    ADD_REASONING,
    ADD_TOOL_OUTPUT,
    LIST_NOTES,
    CLEAR,
    LIST_NARRATIVES,
    BEGIN_NARRATIVE,
    END_NARRATIVE,
    SHOW_NARRATIVE,
)
