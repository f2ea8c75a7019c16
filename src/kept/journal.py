"""The journal: events sealed in a chain, and how to undo them.

Noun layer: pure functions over events. Storages call `seal` for every change they make, the
facade calls `plan_undo`, `doctor` calls `broken_links`. Rule: the chain runs over digests, not
over payloads, so that erasing a payload (and its salt) leaves a chain that still verifies.
"""

import operator
from _blake2 import blake2b  # as hashlib does, which also loads OpenSSL: 4 ms
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from kept.errors import NotAllowed
from kept.model import IMPORT as IMPORT
from kept.model import (
    REDACT,
    Alias,
    Allowance,
    CallGuard,
    Conflict,
    Event,
    Memory,
    Pause,
    Record,
    Rejection,
    SessionRecord,
    TaskRecord,
    replace,
)
from kept.ports import Stamp

FIRST_PREV = "0" * 32  # what the first event of a journal points back to
Salt = Callable[[int], str]  # that many random bytes in hex
SALT_BYTES = 16
UPKEEP = "upkeep"  # the actor of what time does; `undo()` without an event leaves it alone

# Undone by difference, so that what others have added since stays.
COUNTERS: Mapping[str, tuple[float, float]] = {
    "feedback": (-100, 100),
    "use_count": (0, 2**63 - 1),
    "importance": (0.0, 1.0),
}
# Put back when they still hold what the event wrote, left alone when a later event moved them on.
_CLOCKS = frozenset({"updated_at", "last_hit_at", "last_used_at", "verified_at"})

# The end of the name of a group that changes global memory, in hexadecimal digits.

# Fields whose names people do not know, in the sentence of an undo that comes too late.
_AGAIN = {
    "content": "its text was changed",
    "archived_at": "it was archived or restored",
    "resolved_at": "it was settled",
}

Changed = dict[str, tuple[Any, Any]]
_astuple = msgspec.structs.astuple
_sealed_of = operator.attrgetter("prev", "seq", "group", "at", "actor", "action", "subject", "undoes", "digest")
_encode = msgspec.json.Encoder(order="deterministic").encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode  # also the fields of nouns, as if they were dicts


def diff(before: Record | None, after: Record | None) -> Changed:
    """Field → (before, after) in wire form, for the fields that differ. A side that is not there counts as None."""
    if before is None:
        return {name: (None, value) for name, value in wire(after).items() if value is not None}
    old, new = wire(before), wire(after)
    names = new if new else old
    return {name: (old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)}


def seal(stamp: Stamp, *, seq: int, action: str, subject: str, changed: Changed, prev: str, salt: str) -> Event:
    """Build the next event of a chain whose last hash is `prev`."""
    sealed = seal_payload(
        stamp, seq=seq, action=action, subject=subject, payload=payload(changed), prev=prev, salt=salt
    )
    return replace(sealed, changed=changed)


def seal_payload(stamp: Stamp, *, seq: int, action: str, subject: str, payload: bytes, prev: str, salt: str) -> Event:
    """Build the same event without `changed`, for callers that already have its encoded bytes."""
    at = stamp.at.astimezone(UTC)
    digest = _digest(salt, payload)
    return Event(
        seq=seq,
        group=stamp.group,
        at=at,
        actor=stamp.actor,
        action=action,
        subject=subject,
        undoes=stamp.undoes,
        digest=digest,
        prev=prev,
        hash=_hash((prev, seq, stamp.group, at, stamp.actor, action, subject, stamp.undoes, digest)),
        salt=salt,
    )


class Chain:
    """The end of a journal during a transaction: numbers and seals events, and keeps them until they are written.

    `before`: number and hash of the last event, or a function that looks them up when they are first needed.
    """

    def __init__(self, stamp: Stamp, salt: Salt, before: Callable[[], tuple[int, str]] | tuple[int, str]) -> None:
        self.stamp = stamp
        self._salt = salt
        self._before = before
        self._last: tuple[int, str] | None = None
        self._waiting: list[tuple[Event, bytes]] = []

    def append(self, action: str, subject: str, payload: bytes) -> Event:
        """Seal the next event and queue it, with its payload, until `take` is called."""
        if callable(self._before):
            self._before = self._before()
        seq, prev = self._last or self._before
        salt = self._salt(SALT_BYTES)
        event = seal_payload(
            self.stamp, seq=seq + 1, action=action, subject=subject, payload=payload, prev=prev, salt=salt
        )
        self._waiting.append((event, payload))
        self._last = (event.seq, event.hash)
        return event

    def continue_after(self, event: Event) -> None:
        """Let the next event follow this one, which came from another journal together with all before it."""
        self._before, self._last = (event.seq, event.hash), None

    def take(self) -> list[tuple[Event, bytes]]:
        """Return the queued events with their payloads, and empty the queue."""
        taken, self._waiting = self._waiting, []
        return taken

    @property
    def last_seq(self) -> int:
        """The number of the last event of this transaction; 0 if there is none."""
        return self._last[0] if self._last else 0

    @property
    def end(self) -> tuple[int, str] | None:
        """Number and hash of the last event of the journal, if they have been looked up."""
        return self._last or (None if callable(self._before) else self._before)

    def has_passed(self, step: int) -> bool:
        """Whether this transaction added an event whose number is a multiple of `step`."""
        if self._last is None or callable(self._before):
            return False
        return self._last[0] // step > self._before[0] // step


def payload(changed: Changed) -> bytes:
    """Encode an event's changes to the bytes that its digest covers. A storage keeps exactly these bytes."""
    return _encode(changed)


def payload_of_new(record: Record) -> bytes:
    """The same bytes as `payload(diff(None, record))`, at a third of the cost: a new record differs in every field."""
    fields = zip(record.__struct_fields__, _astuple(record), strict=True)
    return _encode_sorted({name: (None, value) for name, value in fields if value is not None})


def is_as_sealed(event: Event, payload: bytes | None) -> bool:
    """Whether an event and the stored bytes of its payload (None: erased) are what was written."""
    is_whole = payload is None or _digest(event.salt or "", payload) == event.digest
    return is_whole and _hash_of(event) == event.hash


def broken_links(events: Iterable[Event], lost: Container[int] = ()) -> list[str]:
    """List the problems of a chain read from its start, one sentence each. An erased payload is not a problem.

    `lost` are the events that are known to be gone. A missing link at one of them is not a problem, either.
    """
    wrong = []
    expected = 1
    prev: str | None = FIRST_PREV
    for event in events:
        if event.seq != expected:
            prev = None
            if missing := next((seq for seq in range(expected, event.seq) if seq not in lost), 0):
                wrong.append(f"event {missing} is missing (the next one found is {event.seq})")
        expected = event.seq + 1
        if prev is not None and event.prev != prev:
            wrong.append(f"event {event.seq} does not follow from the one before it")
        if _hash_of(event) != event.hash:
            wrong.append(f"event {event.seq} was changed after it was written")
        if event.changed is not None and event.digest != _digest(event.salt or "", payload(event.changed)):
            wrong.append(f"the payload of event {event.seq} was changed after it was written")
        prev = event.hash
    return wrong


def erasures(events: Iterable[Event]) -> dict[str, int]:
    """Subject → the number of the last event that erased it. What it was before is gone; a later event begins again."""
    return {event.subject: event.seq for event in events if event.action == "erase"}


def since_erasure(history: Sequence[Event]) -> Sequence[Event]:
    """Of the events of one record, oldest first, those after the last that erased it: none, unless it was redacted."""
    begin = max((place for place, event in enumerate(history, 1) if event.action == "erase"), default=0)
    return history[begin:]


def fingerprints(events: Iterable[Event]) -> set[str]:
    """The fingerprints of every text that a memory ever had, from its events."""
    found = {side for event in events for side in (event.changed or {}).get("fingerprint", ())}
    return found - {None}


def replay(events: Iterable[Event]) -> dict[str, Any]:
    """The fields of one record as its events leave them, in wire form; empty when there is no such record now.

    An event without a payload changes nothing here.
    """
    fields: dict[str, Any] = {}
    for event in events:
        fields |= {name: after for name, (_, after) in (event.changed or {}).items()}
        if fields.get("id") is None:
            fields = {}
    return fields


def as_before(
    present: Mapping[str, Record], later: Sequence[Event], existed: Callable[[str], bool]
) -> dict[str, Record]:
    """Return the records, by subject, as they were before these events, which are given newest first.

    Erased text does not come back. A record that was redacted among these events is returned as it was left by that,
    if `existed` says that it had been there before.
    """
    erased = erasures(reversed(later))
    telling = [event for event in later if event.changed is not None and not _is_erased_by(erased, event)]
    unborn = _begun_by(telling)
    fields, nouns = _fields_before(present, [event for event in telling if event.subject not in unborn])
    found = {subject: one for subject, one in present.items() if subject not in fields and subject not in unborn}
    found |= {
        subject: msgspec.convert(_given(then), nouns[subject])
        for subject, then in fields.items()
        if then.get("id") is not None
    }
    return {subject: record for subject, record in found.items() if subject not in erased or existed(subject)}


def _fields_before(
    present: Mapping[str, Record], events: Sequence[Event]
) -> tuple[dict[str, dict[str, Any]], dict[str, type[Record]]]:
    """Return the fields and the noun of each subject of these events, which are given newest first, before them."""
    fields: dict[str, dict[str, Any]] = {}
    nouns: dict[str, type[Record]] = {}
    for event in events:
        subject = event.subject
        if subject not in fields:
            fields[subject], nouns[subject] = wire(present.get(subject)), noun_of(event)
        fields[subject] |= {name: before for name, (before, _) in (event.changed or {}).items()}
    return fields, nouns


def _begun_by(events: Sequence[Event]) -> set[str]:
    """Return the subjects that did not exist before these events, which are given newest first."""
    ids = {event.subject: event.changed["id"][0] for event in events if event.changed and "id" in event.changed}
    return {subject for subject, before in ids.items() if before is None}


def _is_erased_by(erased: Mapping[str, int], event: Event) -> bool:
    """Return True if the text before an event is gone: the record was erased or redacted by it, or later."""
    if event.subject not in erased:
        return False
    return event.action == REDACT or event.seq <= erased[event.subject]


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    """Leave out fields without a value: some have a default that is not None."""
    return {name: value for name, value in fields.items() if value is not None}


def newest_undoable(events: Iterable[Event], actor: str) -> str | None:
    """The newest group of this actor that stands: not an undo, and not undone (or undone and redone).

    `events` is the journal, newest first; no more of it is read than needed. An erasure counts, although it
    can't be undone: a caller who wants to undo it must not have an older event undone instead. The marks of a session
    alone do not count: a transcript is only added to.
    """
    undone: set[str] = set()
    for event in events:
        if event.undoes and event.group not in undone:
            undone.add(event.undoes)
        elif event.actor == actor and not event.undoes and event.group not in undone and _is_more_than_a_mark(event):
            return event.group
    return None


def _is_more_than_a_mark(event: Event) -> bool:
    is_empty = event.changed is not None and event.changed.keys() <= {"updated_at"} and event.action != IMPORT
    return not (is_empty or noun_of(event) is SessionRecord) or event.action == "erase"


class Revert(msgspec.Struct, frozen=True):
    """One step of an undo: the record as it should be, or (None) that it should go; for a record of this class."""

    noun: type[Record]
    id: int
    record: Record | None
    is_new: bool = False


def plan_undo(
    group: Sequence[Event],
    *,
    current: Callable[[Event], Record | None],
    later: Callable[[Event], Sequence[Event]],
    at: datetime,
) -> list[Revert]:
    """Plan the writes that undo one group of events, newest first.

    `current` gives the record of an event as it is now, `later` the events after it on the same
    subject. Raises NotAllowed, and nothing is planned, when a payload was erased or when a later
    event changed a field that this group wrote.
    """
    found: dict[str, Record | None] = {}
    drafts: dict[str, Record | None] = {}
    own, call = {event.seq for event in group}, _name_of(group)
    for event in sorted(group, key=lambda event: event.seq, reverse=True):
        _check_not_erased(event, call)
        if event.subject not in found:
            found[event.subject] = drafts[event.subject] = current(event)
        later_ones = [one for one in later(event) if one.seq not in own]
        drafts[event.subject] = _before(event, drafts[event.subject], later_ones, at, call)
    return [step for subject, record in drafts.items() for step in _reverts(found[subject], record)]


def _check_not_erased(event: Event, call: str) -> None:
    if event.changed is not None and event.action != "erase":
        return
    what = "it erased a memory" if event.action == "erase" else "the content it changed was erased"
    raise NotAllowed(
        f"{call} cannot be undone: {what}, and erasing is permanent.",
        hint="`kept history` lists other events; `kept undo EVENT` undoes one.",
    )


def _reverts(now: Record | None, then: Record | None) -> list[Revert]:
    """The steps from a record as it is to what it was: nothing, the same one, or another with an id of its own."""
    if now is not None and then is not None and now.id == then.id:
        return [Revert(type(then), then.id, then)]
    goes = [] if now is None else [Revert(type(now), now.id, None)]
    comes = [] if then is None else [Revert(type(then), then.id, then, is_new=True)]
    return goes + comes


def _before(event: Event, record: Record | None, later: Sequence[Event], at: datetime, call: str) -> Record | None:
    """Return the record before the event. Raises NotAllowed if it is unknown, or something came in between."""
    changed = cast(Changed, event.changed)
    born, gone = changed["id"] if "id" in changed else (getattr(record, "id", 0), getattr(record, "id", 0))
    is_removal = "id" in changed and gone is None
    if record is not None and (is_removal or record.id != (born or gone)):  # another one has come into its place
        raise NotAllowed(
            f"{call} cannot be undone: {event.subject} was added again by {_names(later, 'id')}.",
            hint="Undo the later ones first.",
        )
    if is_removal:  # bring it back under its old id
        return msgspec.convert({name: old for name, (old, _) in changed.items()}, noun_of(event))
    if record is None:
        ended = "the pause has already ended" if noun_of(event) is Pause else f"{event.subject} no longer exists"
        raise NotAllowed(f"{call} cannot be undone: {ended}.")
    if "id" in changed or event.action == IMPORT:
        return _unborn(record, at)
    return _put_back(event, record, later, call)


def _put_back(event: Event, record: Record, later: Sequence[Event], call: str) -> Record:
    """Return the record with the fields that the event changed as they were before."""
    now = wire(record)
    for name, (old, new) in cast(Changed, event.changed).items():
        if name in COUNTERS:
            low, high = COUNTERS[name]
            now[name] = min(high, max(low, round(now[name] + (old or 0) - (new or 0), 9)))
        elif now.get(name) == new:
            now[name] = old
        elif name not in _CLOCKS:
            about = f"memory {record.ref}" if isinstance(record, Memory) else event.subject
            again = _AGAIN.get(name, f"its {name.replace('_', ' ')} was changed")
            raise NotAllowed(
                f"{call} cannot be undone, because of {about}: {again} again by {_names(later, name)}.",
                hint="Undo the later ones first, or revise the memory instead.",
            )
    return msgspec.convert(now, noun_of(event))


def _name_of(group: Sequence[Event]) -> str:
    """One call in a sentence: a person may have named any of its events."""
    numbers = sorted(event.seq for event in group)
    return f"Event {numbers[0]}" if len(numbers) == 1 else f"The change of events {numbers[0]} to {numbers[-1]}"


def _unborn(record: Record, at: datetime) -> Record | None:
    """The undo of adding: a memory goes to the archive as forgotten, a conflict is settled, an alias goes."""
    if isinstance(record, Memory):
        return record.archived("forgotten", at)
    if isinstance(record, Conflict):
        return msgspec.structs.replace(record, resolved_at=at)
    return None


def noun_of(event: Event) -> type[Record]:
    """What the event is about, told by its subject."""
    for noun in (Alias, SessionRecord, TaskRecord, Pause, Allowance, CallGuard, Rejection):
        if event.subject.startswith(f"{noun.noun}:"):
            return noun
    return Conflict if event.subject.startswith("c") and event.subject[1:].isdigit() else Memory


def _names(events: Sequence[Event], name: str) -> str:
    seqs = [str(event.seq) for event in events if event.changed and name in event.changed]
    return f"event {', '.join(seqs)}" if seqs else "a later event"


def wire(record: Record | None) -> dict[str, Any]:
    """The fields as they stand in a payload, which is JSON: lists for tuples, text for moments."""
    return {} if record is None else cast("dict[str, Any]", msgspec.json.decode(_encode(record)))


def _digest(salt: str, payload: bytes) -> str:
    return blake2b(salt.encode() + payload, digest_size=16).hexdigest()


def _hash_of(event: Event) -> str:
    return _hash(_sealed_of(event))


def _hash(sealed: tuple[Any, ...]) -> str:
    return blake2b(_encode(sealed), digest_size=16).hexdigest()
