"""tasks.json in Brain's format: `{"tasks": [{"id": "TASK-001", "status": "pending", …}]}`, which people may edit.

As in MEMORY.md, a snapshot says how the file was written: for each task the digest of each of its fields. Rule: what is
no task, fields that Kept does not know, and the form of a date stay as they are.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import Any

from msgspec import Struct

from kept.exchange.memory_md import digest

DATES = ("created", "completed")
FIELDS = ("milestone", "priority", "status", "description", "acceptance_criteria", "blocked_by", *DATES)

Written = Mapping[str, Mapping[str, str]]  # id → field → digest


class TaskEdits(Struct, frozen=True, kw_only=True):
    """What somebody did to the file: fields of known tasks, new tasks (by their place), and tasks taken out."""

    changed: dict[str, dict[str, Any]]
    added: list[int]
    deleted: list[str]

    def __bool__(self) -> bool:
        return bool(self.changed or self.added or self.deleted)


class TaskList(Struct, kw_only=True):
    """The file as it was read. `outer` is what the list stands in, None if it stands alone."""

    tasks: list[Any]
    outer: dict[str, Any] | None = None

    def ids(self) -> dict[str, int]:
        """The place of each task that has an id; of two with the same one, the first."""
        found: dict[str, int] = {}
        for number, task in enumerate(self.tasks):
            if isinstance(task, dict) and isinstance(task.get("id"), str):
                found.setdefault(task["id"], number)
        return found


def parse(text: str) -> TaskList:
    """The tasks of a file. Raises ValueError for what is no such file."""
    document = json.loads(text)
    if isinstance(document, list):
        return TaskList(tasks=document)
    if not isinstance(document, dict) or not isinstance(document.get("tasks", []), list):
        raise ValueError('it must be {"tasks": […]}')
    return TaskList(tasks=document.get("tasks", []), outer=document)


def render(found: TaskList) -> str:
    """The file."""
    document = found.tasks if found.outer is None else {**found.outer, "tasks": found.tasks}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def digests(task: Mapping[str, Any]) -> dict[str, str]:
    """What a snapshot keeps of a task."""
    return {name: digest(json.dumps(_comparable(name, task.get(name)), ensure_ascii=False)) for name in FIELDS}


def moment_in(value: Any) -> datetime | None:
    """Return the moment of a written date or time; a date is its first moment in UTC. None if it is neither."""
    try:
        if len(value) == len("2026-01-31"):
            return datetime.combine(date.fromisoformat(value), time(), UTC)
        at = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _comparable(name: str, value: Any) -> Any:
    """Return the value of a field, a date in a form that can be compared."""
    at = moment_in(value) if name in DATES else None
    return value if at is None else at.astimezone(UTC).isoformat()


def _is_same(name: str, task: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return bool(_comparable(name, task.get(name)) == _comparable(name, other.get(name)))


def find_edits(written: Written | None, found: TaskList) -> TaskEdits:
    """What changed since the file was written like this; None: it is not known how, so nothing counts as deleted."""
    before, ids = written or {}, found.ids()
    changed = {}
    for id in before.keys() & ids.keys():
        task = found.tasks[ids[id]]
        now = digests(task)
        if fields := {name: task.get(name) for name in FIELDS if now[name] != before[id].get(name)}:
            changed[id] = fields
    known = {ids[id] for id in before.keys() & ids.keys()}
    return TaskEdits(
        changed=dict(sorted(changed.items())),
        added=[n for n, task in enumerate(found.tasks) if isinstance(task, dict) and n not in known],
        deleted=sorted(before.keys() - ids.keys()),
    )


def ancestor(after: Written, before: Written, found: TaskList) -> Written:
    """What the file was made from, where it is not known whether it was replaced; as in `memory_md.ancestor`."""
    here = {id: digests(found.tasks[n]) for id, n in found.ids().items()}

    def only(one: Written, other: Written) -> list[str]:
        return [id for id in one if other.get(id) != one[id]]

    new = sum(here.get(id) == after[id] for id in only(after, before))
    old = sum(here.get(id) == before[id] for id in only(before, after))
    return after if new > old or new == old == len(only(after, before)) else before


def woven(
    found: TaskList, documents: Mapping[str, Mapping[str, Any]], places: Mapping[int, str], leave: Sequence[int]
) -> None:
    """Update the tasks of the file, remove those that have no document, and add the missing ones.

    `places` are the ids of tasks by their number in the file. Tasks in `leave` stay as they are written.
    """
    tasks: list[Any] = []
    shown: set[str] = set()
    for number, task in enumerate(found.tasks):
        id = places.get(number)
        if number in leave or not isinstance(task, dict):
            tasks.append(task)
            shown.add(str(task.get("id")) if isinstance(task, dict) else "")
        elif id is not None and id in documents and id not in shown:
            tasks.append(_rewritten(task, documents[id]))
            shown.add(id)
    tasks += [dict(document) for id, document in documents.items() if id not in shown]
    found.tasks = tasks


def _rewritten(task: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a task as it should be in the file. A date that says the same keeps its spelling."""
    same = {name: task[name] for name in DATES if name in task and _is_same(name, task, document)}
    return {**task, **document, **same}
