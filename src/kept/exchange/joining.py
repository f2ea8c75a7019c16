"""Join two versions of a record that was changed in two places, by what both journals say.

`kept store merge` and the import of an export use it. A change is known by its group, so one that reaches a store twice
counts once. Counters (feedback, uses, importance) add up over all groups; of every other field the version counts that
was changed last. Rule: the outcome does not depend on which side is asked to join which, and joining again changes
nothing. A text that was revised on both sides is not lost: the older one becomes a memory of its own, in conflict with
the newer.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

import msgspec

from kept import journal
from kept.journal import COUNTERS, IMPORT
from kept.model import Event, Memory, Record, replace

MERGE = "merge"
# What a join itself writes follows from the other changes: it is not handed on.
_DERIVED = (MERGE, IMPORT)
# Fields that change together, and are taken from one side together.
_UNITS: tuple[tuple[str, ...], ...] = (
    ("content", "fingerprint", "title"),
    ("status", "reason", "archived_at", "superseded_by"),
    ("state", "completed_at"),
    ("summary", "findings", "promoted", "checked", "flushed", "ended", "finished_at", "packed_at"),
)
_OWN = ("id", "uid", "space")

_DROPPED_ON_RETURN = {"reason": None, "archived_at": None}  # of a memory that is live again
_LONG_AGO = datetime.min.replace(tzinfo=UTC)

Touch = tuple[datetime, str]


def carried(events: Iterable[Event]) -> list[Event]:
    """The events that another store needs: all since the last erasure that have a payload, but those of a join."""
    since = journal.since_erasure(list(events))
    return [event for event in since if event.changed is not None and (_adds(event) or event.action not in _DERIVED)]


def news(mine: Iterable[Event], theirs: Iterable[Event]) -> list[Event]:
    """Those of their events that happened only there, in order."""
    known = {event.group for event in mine}
    return [event for event in carried(theirs) if event.group not in known]


def applied(record: Record | None, event: Event, noun: type[Record]) -> Record | None:
    """The record after one event of the other journal; None when that removed it, or has nothing to add to."""
    changed = event.changed or {}
    if _removes(event):
        return None
    if record is None:
        return born({name: after for name, (_, after) in changed.items()}, noun) if _adds(event) else None
    now = journal.wire(record)
    now |= {name: _stepped(name, now, step) for name, step in changed.items() if name not in _OWN}
    if "status" in changed and now["status"] != "archived":
        now |= _DROPPED_ON_RETURN
    return msgspec.convert(now, noun)


def _stepped(name: str, now: dict[str, Any], step: tuple[Any, Any]) -> Any:
    """A field after a change: a counter moves by the difference, any other field takes the new value."""
    before, after = step
    return _counted(name, [now[name] or 0, (after or 0) - (before or 0)]) if name in COUNTERS else after


def born(fields: dict[str, Any], noun: type[Record]) -> Record:
    """A record from its fields in wire form, without an id. Raises msgspec.ValidationError for what is none."""
    return msgspec.convert({**fields, "id": 0}, noun)


def joined(mine: Record, my_events: Sequence[Event], theirs: Record, their_events: Sequence[Event]) -> Record:
    """The record of which both are versions; it keeps my id and space."""
    my_touches, their_touches = _touches(mine, my_events), _touches(theirs, their_events)
    fields: dict[str, Any] = {}
    for unit in _units(mine):
        values = [tuple(getattr(side, name) for name in unit) for side in (mine, theirs)]
        if values[0] != values[1]:
            ranks = [
                (max(touches[name] for name in unit), "archived" in value, any(value), msgspec.json.encode(value))
                for touches, value in zip((my_touches, their_touches), values, strict=True)
            ]
            values = values if ranks[0] >= ranks[1] else values[::-1]
        fields |= dict(zip(unit, values[0], strict=True))
    for name in COUNTERS.keys() & fields.keys():
        fields[name] = _total(name, (mine, my_events), (theirs, their_events))
    return replace(mine, **fields)


def outcome(
    mine: Record | None, my_events: Sequence[Event], theirs: Record | None, their_events: Sequence[Event]
) -> Record | None:
    """The record after both histories; None if the last change on either side removed it."""
    if removed_last(my_events, their_events):
        return None
    if mine is None or theirs is None:
        return theirs if mine is None else mine
    return joined(mine, my_events, theirs, their_events)


def older_text(
    mine: Memory, my_events: Sequence[Event], theirs: Memory, their_events: Sequence[Event], now: Memory
) -> Memory | None:
    """The text that lost against another, if both sides had revised it: as a memory of its own, always the same."""
    if mine.fingerprint == theirs.fingerprint:
        return None
    if not (_revised(my_events, their_events) and _revised(their_events, my_events)):
        return None
    lost = theirs if now.fingerprint == mine.fingerprint else mine
    digest = blake2b(f"{lost.uid} {lost.fingerprint}".encode(), digest_size=16).hexdigest()
    uid = "-".join((digest[:8], digest[8:12], "8" + digest[13:16], "8" + digest[17:20], digest[20:]))  # UUID version 8
    return replace(lost, id=0, uid=uid, space=mine.space, key=None, topic=None, feedback=0, use_count=0)


def removed_last(my_events: Sequence[Event], their_events: Sequence[Event]) -> bool:
    """Whether, of all changes on both sides, the last one removed the record."""
    last = max([*carried(my_events), *carried(their_events)], key=_touch, default=None)
    return last is not None and _removes(last)


def _units(record: Record) -> list[tuple[str, ...]]:
    """The fields of a record in the groups that are taken from one side together."""
    names = [name for name in record.__struct_fields__ if name not in _OWN]
    unit_of = {name: unit for unit in _UNITS for name in unit}
    units: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        units.setdefault(unit_of.get(name, (name,)), []).append(name)
    return [tuple(unit) for unit in units.values()]


def _touches(record: Record, events: Sequence[Event]) -> dict[str, Touch]:
    """When each field was last changed."""
    at = getattr(record, "created_at", None) or getattr(record, "started_at", None) or _LONG_AGO
    touches: dict[str, Touch] = dict.fromkeys(record.__struct_fields__, (at, ""))
    if not carried(events):  # no history: as of its last change
        touches = dict.fromkeys(touches, (getattr(record, "updated_at", at), ""))
    for event in carried(events):
        for name in event.changed or {}:
            if name in touches:
                touches[name] = max(touches[name], _touch(event))
    return touches


def _touch(event: Event) -> Touch:
    return event.at, event.group


def _removes(event: Event) -> bool:
    return (event.changed or {}).get("id", (None, 0))[1] is None


def _adds(event: Event) -> bool:
    before, after = (event.changed or {}).get("id", (0, 0))
    return before is None and after is not None


def _revised(events: Sequence[Event], others: Sequence[Event]) -> bool:
    """Whether the text was changed here in a group that the other side does not know."""
    known = {event.group for event in others}
    return any("content" in (event.changed or {}) for event in carried(events) if event.group not in known)


def _total(name: str, *sides: tuple[Record, Sequence[Event]]) -> Any:
    """A counter over the union of the groups of both sides. What was counted outside the journal counts once."""
    births: dict[str, float] = {}
    steps: dict[str, float] = {}
    besides: list[float] = []
    for record, events in sides:
        own_births, own_steps = _steps(name, events)
        births |= own_births
        steps |= own_steps
        counted = sum(own_births.values()) + sum(own_steps.values())
        besides.append(getattr(record, name) - counted if own_births else 0)
        if not own_births:
            births["?"] = 0
    if len(births) != 1:  # a side whose history was lost or begins elsewhere: the groups cannot be compared
        return max((getattr(record, name) for record, _ in sides), key=lambda number: (abs(number), number))
    return _counted(name, [*births.values(), *steps.values(), max(besides) if name == "use_count" else 0])


def _steps(name: str, events: Sequence[Event]) -> tuple[dict[str, float], dict[str, float]]:
    """By group: the value that a record began with, and by how much it was changed."""
    births: dict[str, float] = {}
    steps: dict[str, float] = {}
    for event in carried(events):
        before, after = (event.changed or {}).get(name, (0, 0))
        if _adds(event):
            births[event.group] = after or 0
        else:
            steps[event.group] = steps.get(event.group, 0) + (after or 0) - (before or 0)
    return births, steps


def _counted(name: str, numbers: Iterable[float]) -> Any:
    low, high = COUNTERS[name]
    return type(low)(min(high, max(low, round(sum(numbers), 9))))
