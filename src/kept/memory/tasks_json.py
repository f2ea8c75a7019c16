"""tasks.json as a view: take people's edits in, and show the open tasks and milestones.

`exchange.tasks_json` reads and writes the text. Rule: the rules of tasks hold for edits as well: a state changes only
to one that may follow, blockers must exist and must not wait for each other. What is against them is left in the file
as it is, and the answer says why. A task that is taken out of the file is cancelled.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from kept.errors import InvalidInput, KeptError
from kept.exchange import tasks_json as page
from kept.exchange.memory_md import FEW_LINES, FEW_SHARE
from kept.memory import tasks
from kept.memory.context import Context
from kept.memory.view import Outcome, Seen, SyncOptions, SyncReport, ViewPlace, Waiting
from kept.model import TaskRecord, TaskState, replace
from kept.ports import Transaction

# Words of other programs for our states.
STATES: Mapping[str, str] = {
    "todo": "pending",
    "open": "pending",
    "in_progress": "active",
    "in-progress": "active",
    "doing": "active",
    "completed": "done",
    "complete": "done",
    "canceled": "cancelled",
}


class TasksFile:
    """The tasks.json of a project."""

    def __init__(self, context: Context, place: ViewPlace, terms: SyncOptions) -> None:
        self.place = place
        self._context = context
        self._terms = terms

    def merge(self, tx: Transaction, seen: Seen, note: Mapping[str, Any], done: SyncReport) -> Outcome:
        found = _parsed(seen.text)
        snapshots = note.get("written") if seen.text is not None else None
        noted = page.ancestor(snapshots[0], snapshots[-1], found) if snapshots else None
        edits, written = page.find_edits(noted, found), noted or {}
        self._check(edits, written)
        places = {number: id for id, number in found.ids().items()}
        leave: set[int] = set()
        for number in self._in_order(found, edits):
            self._take(tx, found, number, edits, places, leave, done, written)
        for id in edits.deleted:
            self._cancel(tx, id, done)
        before = {id: page.digests(found.tasks[n]) for n, id in places.items() if n not in leave}
        documents = {task.name: tasks.as_document(task) for task in tasks.open_milestones(tx.all(TaskRecord))}
        page.woven(found, documents, places, sorted(leave))
        after = {id: page.digests(documents[id]) for id in documents}
        for id in [str(places.get(n)) for n in leave]:
            _keep_as_edit(id, after, before, written)
        text = _rendered(found, seen.text)
        return Outcome(text=text, note={"written": [after]}, note_before={"written": [after, before]})

    def note_as_written(self, text: str) -> Mapping[str, Any]:
        """Return the note about a file as if Kept had written it as it is."""
        try:
            found = page.parse(text)
        except ValueError:
            return {}
        return {"written": [{id: page.digests(found.tasks[n]) for id, n in found.ids().items()}]}

    def _check(self, edits: page.TaskEdits, written: page.Written) -> None:
        gone = len(edits.deleted)
        if gone <= max(FEW_LINES, FEW_SHARE * len(written)) and (gone < 2 or gone < len(written)):
            return
        question = f"{gone} of {len(written)} tasks are gone from {self.place.name}."
        if self._terms.ask is None:
            raise Waiting(f"{question} `kept files sync` asks whether to cancel them.")
        if not self._terms.ask(f"{question} Cancel them?", edits.deleted):
            raise Waiting("The answer was no. Nothing was changed; put the tasks back, or delete the file.")

    def _in_order(self, found: page.TaskList, edits: page.TaskEdits) -> list[int]:
        """Edited tasks, those that others wait for first, so that new ones may name each other."""
        ids = found.ids()
        wanted = [*edits.added, *(ids[id] for id in edits.changed)]
        blockers = {n: found.tasks[n].get("blocked_by") for n in wanted}

        def depth(number: int, ahead: int = 0) -> int:
            named = blockers.get(number)
            names = [one for one in named if isinstance(one, str)] if isinstance(named, list) else []
            below = [ids[name] for name in names if name in ids and ids[name] in blockers]
            return 0 if ahead > len(wanted) else max((1 + depth(one, ahead + 1) for one in below), default=0)

        return sorted(wanted, key=depth) if len(wanted) < 200 else wanted

    def _take(
        self,
        tx: Transaction,
        found: page.TaskList,
        number: int,
        edits: page.TaskEdits,
        places: dict[int, str],
        leave: set[int],
        done: SyncReport,
        written: page.Written,
    ) -> None:
        """Take one edited or new task in, or leave it as it is and say why."""
        task = found.tasks[number]
        id = places.get(number)
        known = {one.name: one for one in tx.all(TaskRecord)}.get(id or "")
        try:
            if known is None:
                made = self._add(tx, id, task)
                places[number] = made.name
                done.added.append(made.name)
            else:
                fields = edits.changed.get(known.name) or {name: task[name] for name in page.FIELDS if name in task}
                if self._change(tx, known, fields, written.get(known.name), done):
                    done.changed.append(known.name)
        except (KeptError, TypeError, ValueError) as error:
            leave.add(number)
            why = getattr(error, "message", "a field has a wrong type.")
            done.notes.append(f"{(id or 'A task')[:60]} was not taken in: {why}")

    def _add(self, tx: Transaction, id: str | None, task: Mapping[str, Any]) -> TaskRecord:
        given = self._cleaned({name: value for name, value in _given_fields(task).items() if name not in page.DATES})
        state = given.pop("status", "pending")
        name = None if id is None else tasks.check_task_id(id)
        if state not in (*tasks.ENDS, "pending"):
            tasks.check_change(tx, TaskRecord(name=name or "new", created_at=tx.stamp.at, **given), state)
        made, _ = tasks.plan(tx, name, given)
        created = page.moment_in(task.get("created")) or tx.stamp.at
        if created < tx.stamp.at:
            made = tx.put(replace(made, created_at=created), "task")
        return made if state == made.state else _put_state(tx, made, state, task.get("completed"))

    def _change(
        self,
        tx: Transaction,
        known: TaskRecord,
        fields: Mapping[str, Any],
        written: Mapping[str, str] | None,
        done: SyncReport,
    ) -> bool:
        """Change the fields of a known task. Returns False if they say the same."""
        given = self._joined_fields(known, fields, written or {}, done)
        state = given.pop("status", known.state)
        dates = {f"{name}_at": given.pop(name) for name in page.DATES if name in given}
        different = {name: value for name, value in given.items() if value != getattr(known, name)}
        before = known
        if state != known.state:
            tasks.check_change(tx, msgspec.structs.replace(known, **different), state)
        if different:
            known, _ = tasks.plan(tx, known.name, different)
        if state != known.state:
            known = tasks.change_state(tx, known, state)
        return _put_dates(tx, known, dates) != before

    def _joined_fields(
        self, known: TaskRecord, fields: Mapping[str, Any], written: Mapping[str, str], done: SyncReport
    ) -> dict[str, Any]:
        """Return the changed fields, cleaned; one that was changed in the store as well is joined, with a note."""
        stored = tasks.as_document(known)
        given = self._cleaned(
            {name: [] if value is None and isinstance(stored[name], list) else value for name, value in fields.items()}
        )
        for name in _clashing(given, stored, written):
            given[name] = _joined(name, given[name], stored[name])
            done.notes.append(f"{known.name}: {name} was changed in the store and in the file; {_kept(name)}.")
        return given

    def _cleaned(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields without secrets, in the form that a task has them. Raises InvalidInput."""
        clean: dict[str, Any] = {}
        for name, value in fields.items():
            if name == "status":
                word = str(value).strip().lower()
                clean[name] = tasks.check_state(STATES.get(word, word))
            elif name in page.DATES:
                clean[name] = _checked_date(name, value)
            elif value is None:
                clean[name] = "" if name == "description" else None
            else:
                clean[name] = tasks.clean_field(self._context, name, value)
        return clean

    def _cancel(self, tx: Transaction, id: str, done: SyncReport) -> None:
        task = {one.name: one for one in tx.all(TaskRecord)}.get(id)
        if task is None or task.has_ended:
            return
        tasks.change_state(tx, task, "cancelled")
        done.removed.append(id)


def _checked_date(name: str, value: Any) -> datetime | None:
    """Return the moment of a written date. Raises InvalidInput if it is none."""
    if value is not None and page.moment_in(value) is None:
        raise InvalidInput(f"{name} must be a date, got {str(value)[:40]!r}.", hint="Write it as 2026-01-31.")
    return page.moment_in(value)


def _put_state(tx: Transaction, task: TaskRecord, state: TaskState, completed: Any) -> TaskRecord:
    """Give a new task the state that the file gives it, and the date of its end if it has one."""
    ended = (page.moment_in(completed) or tx.stamp.at) if state in tasks.ENDS else None
    return tx.put(replace(task, state=state, completed_at=ended), "task")


def _put_dates(tx: Transaction, task: TaskRecord, dates: Mapping[str, datetime | None]) -> TaskRecord:
    """Store the dates of an edit. An open task has no end, and no date lies ahead."""
    given = {name: min(at, tx.stamp.at) for name, at in dates.items() if at is not None}
    if not task.has_ended:
        given.pop("completed_at", None)
    dated = msgspec.structs.replace(task, **given)
    return task if dated == task else tx.put(dated, "task")


def _given_fields(task: Mapping[str, Any]) -> dict[str, Any]:
    return {name: task[name] for name in page.FIELDS if task.get(name) is not None}


def _parsed(text: str | None) -> page.TaskList:
    """Read the file. Raises Waiting if it is not a list of tasks."""
    try:
        return page.TaskList(tasks=[], outer={}) if text is None else page.parse(text)
    except (ValueError, RecursionError) as error:
        raise Waiting(f"It cannot be read: {error}. Nothing was changed.") from None


def _rendered(found: page.TaskList, text: str | None) -> str:
    """Write the list of tasks; a text that says the same stays as it is."""
    return page.render(found) if text is None or found != page.parse(text) else text


def _keep_as_edit(
    id: str, after: dict[str, dict[str, str]], before: dict[str, dict[str, str]], written: page.Written
) -> None:
    """Note a task as it was written last: an edit that could not be taken in is still one."""
    for snapshot in (after, before):
        snapshot.pop(id, None)
        if id in written:
            snapshot[id] = dict(written[id])


def _clashing(given: Mapping[str, Any], stored: Mapping[str, Any], written: Mapping[str, str]) -> list[str]:
    """Return the fields that were changed in the file and, otherwise, in the store since the file was written."""
    if not written:
        return []
    now = page.digests(stored)
    texts = given.keys() - set(page.DATES)  # of two dates, the person's holds
    return sorted(name for name in texts if now[name] != written.get(name) and _plain(given[name]) != stored[name])


def _joined(name: str, edited: Any, stored: Any) -> Any:
    """Join two versions of a field, if that is possible; else the edit holds."""
    if name == "description":
        return f"{edited}\n{stored}"
    return (*edited, *(one for one in stored if one not in edited)) if isinstance(stored, list) else edited


def _kept(name: str) -> str:
    return "both are kept" if name in ("description", "acceptance_criteria", "blocked_by") else "yours holds"


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
