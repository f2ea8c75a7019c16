"""Tasks: pieces of work, and the notes taken while one of them is worked on.

`memory.task("TASK-001")` gives a `Task`: note reasoning and tool outputs by stage, change its state, clear it.
Notes are memories of the tier `task`. Rule: a state changes only on request, and an end is final: the same transaction
sends the notes to the archive. Promote beforehand what should stay.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack, cast

import msgspec

from kept import bm25, text
from kept.errors import InvalidInput, NotFound
from kept.memory import counts, write
from kept.memory.context import BATCH, About, Context, Handle, Memories, Tasks, verb
from kept.memory.verbs.remember import remember_within
from kept.model import Draft, Receipt, Source, TaskRecord, TaskState, replace, several
from kept.ports import Reader, Storage, Transaction, Where
from kept.storage.shared import every
from kept.writing import pipeline
from kept.writing.check import MAX_NAME_CHARS, check_text
from kept.writing.redact import redact

# The next states of each. A task that never began cannot fail; a blocked one is unblocked before it is done.
CHANGES: Mapping[TaskState, tuple[TaskState, ...]] = {
    "pending": ("active", "blocked", "done", "cancelled"),
    "active": ("pending", "blocked", "done", "failed", "cancelled"),
    "blocked": ("pending", "active", "failed", "cancelled"),
    "done": (),
    "failed": (),
    "cancelled": (),
}
ENDS: tuple[TaskState, ...] = tuple(state for state, following in CHANGES.items() if not following)
NEEDS_ITS_BLOCKERS: tuple[TaskState, ...] = ("active", "done")
MAX_DESCRIPTION_BYTES = 4_000
MAX_CRITERIA = 100  # and tasks to wait for
_ID = r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}"


def open_task(context: Context, id: str | None, wanted: Mapping[str, Any]) -> "Task":
    """The task of that id, begun if it is new, with the fields of `wanted` that are not None set."""
    name = None if id is None else check_task_id(id)
    given = {field: clean_field(context, field, value) for field, value in wanted.items() if value is not None}
    storage = context.owned()
    with storage.reading() as reader:
        is_known = name is not None and _in(reader, name) is not None
    if name is None or given or not is_known:
        with storage.writing(context.stamp()) as tx:
            task, is_changed = plan(tx, name, given)
        opened = Task(context, storage, task.name)
        if is_changed:
            opened._signal_write()
        return opened
    return Task(context, storage, name)


def list_tasks(context: Context, *, milestone: str | None, archived: bool, query: str | None = None) -> Tasks:
    """The tasks of the project, highest priority first; with a query, those that match, best first.

    When all tasks of a milestone have ended, they are archived.
    """
    tasks = context.of_project(TaskRecord)
    shown = tasks if archived else open_milestones(tasks)
    wanted = [task for task in shown if milestone in (None, task.milestone)]
    found = by_priority(wanted) if query is None else matching(wanted, query)
    storage = context.spaces.project()
    if found and storage is not None:
        size = sum(map(_size, found))
        context.signals.emit("memory:read", type="task", path=f"{storage.space}/tasks", size=size)
    return found


def matching(tasks: Tasks, query: str) -> Tasks:
    """The tasks that hold words of the query, best first."""
    said = [set(text.words(" ".join(_texts(task)))) for task in tasks]
    scores = []
    for task, words in zip(tasks, said, strict=True):
        found = [word for word in set(text.words(query)) if word in words]
        score = sum(bm25.small_idf(len(said), sum(word in other for other in said)) for word in found)
        scores.append((score, task))
    return [task for score, task in sorted(scores, key=lambda one: (-one[0], one[1].id)) if score]


def by_priority(tasks: Iterable[TaskRecord]) -> Tasks:
    """The tasks, the most urgent first."""
    return sorted(tasks, key=lambda task: (task.priority is None, task.priority or 0, task.id))


def open_milestones(tasks: Iterable[TaskRecord]) -> Tasks:
    """The tasks that are not archived: of milestones in which something is open, and open ones without a milestone."""
    tasks = list(tasks)
    unfinished = {task.milestone or task.name for task in tasks if not task.has_ended}
    return by_priority(task for task in tasks if (task.milestone or task.name) in unfinished)


def clean_field(context: Context, field: str, value: Any) -> Any:
    """The value of a field without its secrets. Raises InvalidInput."""
    if field == "priority":
        if type(value) is not int or not 0 <= value < 2**31:
            raise InvalidInput(f"priority must be a whole number, got {value!r}.", hint="1 comes first.")
        return value
    if field == "blocked_by":
        return _at_most(dict.fromkeys(check_task_id(id) for id in several(value)), "wait for", "others")
    if field == "acceptance_criteria":
        criteria = _at_most(several(value), "have", "criteria")
        return tuple(_safe(context, one, "A criterion", MAX_DESCRIPTION_BYTES) for one in criteria)
    if field == "milestone":
        return _safe(context, value, "The milestone", MAX_NAME_CHARS) or None
    return _safe(context, value, f"The {field}", MAX_DESCRIPTION_BYTES)


def _at_most(values: Iterable[str], verb: str, noun: str) -> tuple[str, ...]:
    given = tuple(values)
    if len(given) > MAX_CRITERIA:
        raise InvalidInput(f"A task can {verb} at most {MAX_CRITERIA} {noun}, got {len(given)}.")
    return given


def _safe(context: Context, text: str, what: str, limit: int) -> str:
    check_text(text, what, limit)
    rules = context.rules()
    return redact(text.strip(), email=rules.redact_email, allow=rules.allow).text


class Task(Handle):
    """One task and its notes. Several processes may work on the same one; each change takes its turn."""

    def __init__(self, context: Context, storage: Storage, id: str) -> None:
        self.id = id
        self._context = context
        self._storage = storage
        self._path = f"{storage.space}/tasks/{id}"

    @property
    @verb("task.show")
    def info(self) -> TaskRecord:
        """Return the record of the task as it is now."""
        with self._storage.reading() as reader:
            task = self._current(reader)
        self._context.signals.emit("memory:read", type="task", path=self._path, size=_size(task))
        return task

    @property
    def state(self) -> TaskState:
        """pending, active, blocked, done, failed or cancelled."""
        return self.info.state

    # What is noted down

    @verb("task.add_reasoning")
    def add_reasoning(self, text: str, stage: str, *, files: Sequence[str] = ()) -> Receipt:
        """Note a thought at a stage of the work."""
        source = replace(self._context.source(), task=self.id)
        return self._note(Draft(content=text, kind="reasoning", files=several(files), source=source), stage)

    @verb("task.add_tool_output")
    def add_tool_output(self, tool: str, output: Any, stage: str, *, files: Sequence[str] = ()) -> Receipt:
        """Note the output of a tool at a stage of the work: text, or anything that JSON can hold.

        Nobody vouches for it: it is a candidate, and stays one when it is promoted by an agent.
        """
        tool = _safe(self._context, tool, "The tool", MAX_NAME_CHARS)
        source = Source(origin="tool", agent=self._context.actor.name, task=self.id)
        content = f"{tool}: {_as_text(output)}"
        draft = Draft(content=content, kind="tool_output", files=several(files), source=source, data={"tool": tool})
        return self._note(draft, stage)

    @verb("task.memories")
    def memories(self, *, stage: str | None = None) -> Memories:
        """Return the notes of this task, oldest first; of one stage, or of all."""
        wanted = None if stage is None else self._stage(stage)
        with self._storage.reading() as reader:
            notes = every(reader, self._notes)
            found = [note for note in notes if wanted in (None, (note.data or {}).get("stage"))]
        self._context.tell_read(found)
        return found

    def remember(self, content: str, *, session: str | None = None, **about: Unpack[About]) -> Receipt:
        """Store a statement as `memory.remember` does, with this task as its source. It outlives the task."""
        return remember_within(self._context, content, {**about, "session": session}, task=self.id)

    @verb("task.memories")
    def remembered(self) -> Memories:
        """What was remembered for this task beyond its notes, oldest first; archived ones included."""
        with self._storage.reading() as reader:
            found = [
                memory
                for shelf in write.SHELVES
                for memory in every(reader, Where(shelf=shelf, task=self.id))
                if memory.tier != "task"
            ]
        self._context.tell_read(found)
        return sorted(found, key=lambda memory: (memory.created_at, memory.id))

    def stage_outputs(self, stage: str) -> Memories:
        """Return the notes of one stage, oldest first."""
        return self.memories(stage=stage)

    # What becomes of it

    @verb("task.set_state")
    def set_state(self, state: TaskState) -> TaskRecord:
        """Change the state, on purpose. With an end (done, failed, cancelled) the notes go to the archive.

        Raises InvalidInput for a change that is not possible, and names those that are. `undo` reopens a task with its
        notes.
        """
        return self._change(check_state(state), is_clearing=state in ENDS)[0]

    @verb("task.clear")
    def clear(self) -> int:
        """Archive the notes before the task has ended. Returns how many. Can be undone."""
        return self._change(None, is_clearing=True)[1]

    def _change(self, state: TaskState | None, *, is_clearing: bool) -> tuple[TaskRecord, int]:
        """Archive notes batch by batch; the last transaction also changes the state, so no task ends uncleared."""
        stamp, cleared = self._context.stamp(), 0
        while True:
            with self._storage.writing(stamp) as tx:
                task = self._current(tx)
                if state is not None:
                    check_change(tx, task, state)
                batch = _clear_some(tx, self._notes) if is_clearing else 0
                cleared += batch
                if batch == BATCH:
                    continue
                if state is not None:
                    task = tx.put(replace(task, state=state, completed_at=stamp.at if state in ENDS else None), "task")
                break
        if state is not None:
            self._signal_write()
        if cleared:
            self._context.tell_write(self._storage, -cleared)
        return task, cleared

    def _signal_write(self) -> None:
        """Signal that the task was begun or changed. Its notes are memories, and have signals of their own."""
        self._context.signals.emit("memory:write", type="task", path=self._path, delta=0)

    # How it is done

    @property
    def _notes(self) -> Where:
        return notes_of(self.id)

    def _stage(self, stage: str) -> str:
        safe = _safe(self._context, stage, "The stage", MAX_NAME_CHARS)
        if not safe:
            raise InvalidInput("A note needs a stage.", hint='Name the part of the work: "plan", "build", "test".')
        return safe

    def _note(self, draft: Draft, stage: str) -> Receipt:
        """Store a note. The same transaction reads the task, or a note could follow its end."""
        safe = self._stage(stage)
        draft = replace(draft, tier="task", tags=("task", safe), data={**(draft.data or {}), "stage": safe})
        ready = pipeline.prepare(draft, self._context.rules())
        if isinstance(ready, Receipt):
            counts.count_reasons(self._context, [ready])
            return ready
        with self._storage.writing(self._context.stamp()) as tx:
            task = self._current(tx)
            if task.has_ended:
                raise InvalidInput(
                    f"Task {self.id} is {task.state}: it takes no more notes.",
                    hint="`kept remember` keeps a note for the project; `kept undo` reopens the task.",
                )
            [receipt] = pipeline.store(tx, [ready], write.place(self._storage, tx.stamp.at))
        self._context.tell_write(self._storage, write.grown_by(receipt))
        return receipt

    def _current(self, reader: Reader) -> TaskRecord:
        task = _in(reader, self.id)
        if task is None:
            raise NotFound(f"Task {self.id} no longer exists.", hint="`kept task list` shows all tasks.")
        return task


def check_state(state: str) -> TaskState:
    """The state, if there is such a one. Raises InvalidInput."""
    if state not in CHANGES:
        raise InvalidInput(f"Unknown task state {state!r}.", hint=f"Choose one of {', '.join(CHANGES)}.")
    return cast(TaskState, state)


def change_state(tx: Transaction, task: TaskRecord, state: TaskState) -> TaskRecord:
    """Change the state of a task in a transaction; with an end, its notes go to the archive. Raises InvalidInput."""
    check_change(tx, task, state)
    while state in ENDS and _clear_some(tx, notes_of(task.name)) == BATCH:
        pass
    return tx.put(replace(task, state=state, completed_at=tx.stamp.at if state in ENDS else None), "task")


def notes_of(id: str) -> Where:
    """The notes of a task."""
    return Where(task=id, tiers=("task",), scope=None)


def check_task_id(id: str) -> str:
    """The id, if it is valid. Raises InvalidInput."""
    safe = redact(id).text
    if not re.fullmatch(_ID, safe):
        raise InvalidInput(
            f"{safe[:40]!r} cannot be the id of a task.",
            hint="Use letters, digits and . _ : / -, at most 128, beginning with a letter or digit.",
        )
    return safe


def as_document(task: TaskRecord) -> dict[str, Any]:
    """The task in Brain's form, as it stands in a tasks.json."""
    return {
        "id": task.name,
        "milestone": task.milestone,
        "priority": task.priority,
        "status": task.state,
        "description": task.description,
        "acceptance_criteria": list(task.acceptance_criteria),
        "created": task.created_at.isoformat().replace("+00:00", "Z"),
        "completed": None if task.completed_at is None else task.completed_at.isoformat().replace("+00:00", "Z"),
        "blocked_by": list(task.blocked_by),
    }


def _in(reader: Reader, name: str) -> TaskRecord | None:
    return next((task for task in reader.all(TaskRecord) if task.name == name), None)


def plan(tx: Transaction, name: str | None, given: Mapping[str, Any]) -> tuple[TaskRecord, bool]:
    """Begin a task, or set the given fields of a known one; also, whether that changed anything."""
    tasks = {task.name: task for task in tx.all(TaskRecord)}
    known = None if name is None else tasks.get(name)
    if known is not None and known.has_ended:
        raise InvalidInput(f"Task {name} is {known.state} and cannot be changed.", hint="Start a new task.")
    name = name or next(free for n in range(1, len(tasks) + 2) if (free := f"TASK-{n:03d}") not in tasks)
    _check_blockers(tasks, name, given.get("blocked_by", ()))
    if known is None:
        return tx.add(TaskRecord(name=name, created_at=tx.stamp.at, **given), "task"), True
    planned = msgspec.structs.replace(known, **given)
    return (known, False) if planned == known else (tx.put(planned, "task"), True)


def _check_blockers(tasks: Mapping[str, TaskRecord], name: str, blockers: Sequence[str]) -> None:
    """Raise unless every blocker is a task, and none of them waits for this one."""
    ahead, seen = list(blockers), set[str]()
    while ahead:
        blocker = ahead.pop()
        if blocker == name:
            raise InvalidInput(f"Task {name} would wait for itself.", hint="Remove that task from blocked_by.")
        if blocker not in tasks:
            raise NotFound(f"There is no task {blocker}.", hint="Add it first; `kept task list` shows all tasks.")
        if blocker not in seen:
            seen.add(blocker)
            ahead += tasks[blocker].blocked_by


def check_change(reader: Reader, task: TaskRecord, state: TaskState) -> None:
    """Raise InvalidInput unless the task can change to that state now."""
    following = CHANGES[task.state]
    if state not in following:
        hint = (
            f"It can become {', '.join(following)}."
            if following
            else "That state is final; `kept undo` reopens the task."
        )
        raise InvalidInput(f"Task {task.name} is {task.state} and cannot become {state}.", hint=hint)
    if state in NEEDS_ITS_BLOCKERS:
        waiting = {one.name for one in reader.all(TaskRecord) if not one.has_ended} & set(task.blocked_by)
        if waiting:
            raise InvalidInput(
                f"Task {task.name} cannot become {state}: it waits for {', '.join(sorted(waiting))}.",
                hint=f"Finish those first, or `kept task edit {task.name} --unblocked`.",
            )


def _clear_some(tx: Transaction, notes: Where) -> int:
    """Archive a batch of notes, pinned ones included: they were pinned for the task. Returns how many."""
    batch = tx.select(notes, limit=BATCH)
    for memory in batch:
        tx.put(memory.archived("expired", tx.stamp.at), "clear")
    return len(batch)


def _size(task: TaskRecord) -> int:
    """How many characters say what the task is."""
    return sum(map(len, _texts(task)))


def _texts(task: TaskRecord) -> tuple[str, ...]:
    return task.name, task.description or "", task.milestone or "", *task.acceptance_criteria


def _as_text(output: Any) -> str:
    if isinstance(output, str):
        return output
    try:
        return msgspec.json.encode(output).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"The output cannot be stored as JSON ({type(error).__name__}).", hint="Give text, or plain values."
        ) from error
