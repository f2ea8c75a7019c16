"""Lines of the journal for people: one for each action, with its object, and filters by agent, change and day.

The journal is read backwards in pages, from a day that is found by the counted activity. Rule: at most READ events are
read for one page of lines; then a link goes on.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from itertools import groupby
from pathlib import PurePath
from typing import Any

from msgspec import Struct

from kept.entrypoints.web import words
from kept.entrypoints.web.activity import Activity
from kept.entrypoints.web.rows import find
from kept.entrypoints.web.shelf import Shelf
from kept.memory import Kept
from kept.model import Memory
from kept.ports import EventHead

LINES, STEP, READ = 50, 80, 400
NAMED = 4  # memories that a line names
CHANGES = {
    "written": ("remember", "revise", "strengthen", "extract", "promote", "task", "checkpoint"),
    "helped": ("reinforce", "pin", "confirm", "verify"),
    "removed": ("forget", "archive", "supersede", "expire", "evict", "demote", "erase", "unpin", "penalise"),
    "decided": ("resolve", "judge", "restore", "undo", "guard", "reject"),
    "sessions": ("session", "finish", "reopen"),
}
RAISED = frozenset(("remember", "reinforce", "pin", "confirm", "restore"))
GONE = frozenset(CHANGES["removed"])
TOLD = frozenset(("revise", "reinforce", "demote", "undo", "strengthen"))  # lines that say how a field has changed

Change = tuple[Any, Any]  # before, after


class JournalFilter(Struct, frozen=True, kw_only=True):
    """The lines that a person wants to see; an empty field takes all."""

    who: str = ""
    what: str = ""
    day: date | None = None

    def takes(self, actor: str, action: str) -> bool:
        """Return True for a change by this actor and of this kind."""
        return (not self.who or actor == self.who) and (not self.what or action in CHANGES.get(self.what, ()))


class Journal(Struct, frozen=True, kw_only=True):
    """A page of lines, newest first; `older` is the event before which the next page ends, or 0."""

    lines: Sequence[dict[str, Any]] = ()
    older: int = 0


def read(memory: Kept, shelf: Shelf, activity: Activity, wanted: JournalFilter, before: int) -> Journal:
    """Return the lines before an event, or the newest ones."""
    first, end = _span(memory, activity, wanted, before)
    lines: list[dict[str, Any]] = []
    last, before_that = end + 1, ""
    for group in _groups(memory, first, end):
        if group[0].group != before_that and (len(lines) >= LINES or end - last > READ):
            break
        chosen = [event for event in group if wanted.takes(event.actor, event.action)]
        if chosen and group[0].group == before_that and lines:
            lines[-1]["more"] += len(chosen)
        elif chosen:
            lines.append(_line(memory, shelf, chosen))
        last, before_that = group[-1].seq, group[0].group
    return Journal(lines=lines, older=last if last > first else 0)


def _span(memory: Kept, activity: Activity, wanted: JournalFilter, before: int) -> tuple[int, int]:
    """Return the first and the last event that may be wanted."""
    last, first = memory.look().last_event(), 1
    end = min(before - 1, last) if before else last
    if wanted.day is not None:
        start = _moment(wanted.day, memory)
        first = activity.events_before(memory, start) + 1
        if wanted.day < date.max:
            end = min(end, activity.events_before(memory, start + timedelta(days=1)))
    if wanted.who or wanted.what:
        end = activity.newest_of(memory, wanted.takes, end)
    return first, end


def _moment(day: date, memory: Kept) -> datetime:
    """Return the beginning of a day by the clock on the wall here."""
    return datetime.combine(day, time(), memory.look().now().astimezone().tzinfo)


def _groups(memory: Kept, first: int, end: int) -> Iterator[list[EventHead]]:
    """Yield the events of each action, newest first; a long one, or one at the edge of a step, in several parts."""
    while end >= first:
        start = max(first, end - STEP + 1)
        events = memory.look().event_heads(after=start - 1, limit=end - start + 1)[::-1]
        for _, group in groupby(events, key=lambda event: (event.group, event.actor)):
            yield list(group)
        end = start - 1


def _line(memory: Kept, shelf: Shelf, events: list[EventHead]) -> dict[str, Any]:
    """Show one action: its actor, its records, and how a text has changed."""
    event, replaced = events[-1], _replaced(shelf, events)
    touched = [one for each in reversed(events) if (one := shelf.get(_memory_of(each.subject))) is not None]
    objects = list({one.uid: one for one in touched}.values())
    noun, _, name = event.subject.partition(":")
    line = {
        "who": words.who(event.actor),
        "action": words.done("unguard" if _ends_a_guard(memory, event) else event.action),
        "at": event.at,
        "objects": objects[:NAMED],
        "by": None,
        "more": max(0, len(objects) - NAMED),
        "session": name if noun == "session" else "",
        "about": _about(
            _change_of(memory, event), objects, replaced, name if noun in ("task", "conflict", "alias") else ""
        ),
        "mood": _mood(event.action),
    }
    if not objects and (said := _unnamed(memory, events)) is not None:
        line |= {"action": said, "about": ""}
    if replaced:
        line |= {"action": "replaced", "objects": [replaced[0]], "by": replaced[1], "more": 0}
    return line


def _memory_of(subject: str) -> str:
    """Return the uid of the memory that an event is about; that of a guard names it."""
    return subject.removeprefix("guard:")


def _ends_a_guard(memory: Kept, head: EventHead) -> bool:
    """Return True for the event of a guard that only tells its memory from then on."""
    if head.action != "guard":
        return False
    changed = next((event.changed or {} for event in memory.look().events(after=head.seq - 1, limit=1)), {})
    return bool(changed.get("mode", (None, None))[1] == "tell")


def _unnamed(memory: Kept, events: Sequence[EventHead]) -> str | None:
    """Describe a change of records that a line cannot link to: items of a file, a task, erased memories."""
    event = events[-1]
    if event.action == "extract":
        return _extraction_line(memory, events)
    if event.action == "task":
        return _task_line(memory, event)
    if event.action == "erase" and (erased := {each.subject for each in events if _is_memory(each.subject)}):
        return "erased a memory" if len(erased) == 1 else f"erased {words.counted(len(erased), 'memory', 'memories')}"
    return None


def _is_memory(subject: str) -> bool:
    """Return True for the uid of a memory; other records have a noun before their name."""
    return ":" not in subject


def _extraction_line(memory: Kept, events: Sequence[EventHead]) -> str:
    items = [one for each in events if (one := find(memory, each.subject)) is not None]
    file = next((one.source.file for one in items if one.source.file), None)
    n_items = sum(one.scope == "items" for one in items)
    return f"took {words.counted(n_items, 'item')}{f' from {PurePath(file).name}' if file else ''}"


def _task_line(memory: Kept, event: EventHead) -> str:
    name = event.subject.partition(":")[2]
    known = (one for archived in (False, True) for one in memory.tasks(archived=archived))
    task = next((one for one in known if one.name == name), None)
    said = name if task is None else f"“{words.cut(task.description or name, 80)}”"
    return f"{'added' if _is_new(memory, event) else 'changed'} the task {said}"


def _is_new(memory: Kept, event: EventHead) -> bool:
    """Return True if the record of an event did not exist before it."""
    changed = next((one.changed or {} for one in memory.look().events(after=event.seq - 1, limit=1)), {})
    return bool(changed) and all(before is None for before, _ in changed.values())


def _mood(action: str) -> str:
    return "up" if action in RAISED else "bad" if action in GONE else ""


def _replaced(shelf: Shelf, events: Sequence[EventHead]) -> tuple[Memory, Memory] | None:
    """Return the memory that an action has ended, and the one that took its place."""
    for event in events:
        old = shelf.get(event.subject) if event.action in ("supersede", "resolve") else None
        new = shelf.get(str(old.superseded_by)) if old is not None and old.superseded_by else None
        if old is not None and new is not None:
            return old, new
    return None


def _change_of(memory: Kept, head: EventHead) -> dict[str, Change]:
    """Return the fields that an event has changed, where a line says how: with the payload, which is large."""
    if head.action not in TOLD:
        return {}
    return next((event.changed or {} for event in memory.look().events(after=head.seq - 1, limit=1)), {})


def _about(
    changed: Mapping[str, Change], objects: Sequence[Memory], replaced: tuple[Memory, Memory] | None, name: str
) -> str:
    """Return the words after the objects: how a text or the feedback has changed, or the text."""
    if replaced:
        return f"“{words.cut(replaced[0].content, 80)}” → “{words.cut(replaced[1].content, 80)}”"
    before, after = changed.get("content", (None, None))
    if before and after:
        return f"“{words.cut(str(before), 80)}” → “{words.cut(str(after), 80)}”"
    content = words.cut(objects[0].content, 140) if len(objects) == 1 else name
    before, after = changed.get("feedback", (None, None))
    return content if before is None or len(objects) != 1 else f"feedback {before} → {after}, {content}"
