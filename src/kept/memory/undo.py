"""History and undo: read the journal, and reverse what it records.

`journal.plan_undo` decides what an undo does; here it is found, checked and carried out. Rule: an undo is a new group
of events, so it can be undone as well; where it touches two spaces, it happens in both or in none.
"""

from collections.abc import Container, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from kept import ids, journal
from kept.errors import NotAllowed, NotFound
from kept.memory import guards, trust
from kept.memory.context import Context, Events, Ref, Storages, by_uid, global_first
from kept.memory.narratives import Turn, last_turn
from kept.memory.write import check_not_cited
from kept.model import GLOBAL, Allowance, CallGuard, Event, Memory, Record, Rejection, SessionRecord, Tier
from kept.ports import Reader, Stamp, Storage, Transaction
from kept.storage.shared import check_limit
from kept.writing.pipeline import distrusted

PAGE = 200
GONE = (None, "archived")
LOOK_BACK = 10_000  # events: an undo that finds nothing is over in a blink, however long the journal is


def history(context: Context, ref: Ref | None, *, limit: int, tier: Tier) -> Events:
    """The events of a memory, or the newest of a space; oldest first."""
    check_limit(limit)
    if ref is not None:
        storage, memory = context.find(ref)
        with storage.reading() as reader:
            return reader.events(subject=memory.uid)
    of_tier = context.readable_tier(tier)
    if of_tier is None:
        return []
    with of_tier.reading() as reader:
        return reader.events(newest_first=True, limit=limit)[::-1]


def undo(context: Context, event: Ref | None) -> Events:
    """Undo one call: the actor's newest that is not undone, or the one that `event` belongs to."""
    storages = context.readable()
    group = _newest_group(context, storages) if event is None else _group_of(context, storages, event)
    _check_whole(context, group)
    at = context.now()
    touched: Storages = []
    for storage in storages:
        with storage.reading() as reader:
            if events := reader.events(group=group):
                _check_trust(reader, events)
                touched.append(storage)
                plan = _plan(reader, group, at)  # where it touches two spaces: in both of them, or in none
                _check_agreed(context, reader, plan)
    stamp = context.stamp(undoes=group, shared=any(storage.space == GLOBAL for storage in touched))
    return [event for storage in global_first(touched) for event in _undo_in(context, storage, group, stamp)]


def next_undone(context: Context, event: Ref | None = None) -> Events:
    """Return the events that an undo would take back. Raises as `undo` does."""
    storages = context.readable()
    group = _newest_group(context, storages) if event is None else _group_of(context, storages, event)
    return [event for reader in context.readers() for event in reader.events(group=group)]


class _Change(NamedTuple):
    """A call in the journals. They compare by age: clocks play no part, each journal has its order, and a group of
    the global one says how far the project's had come."""

    position: int
    is_global: bool
    group: str
    events: Events

    @property
    def is_erasure(self) -> bool:
        return any(event.action == "erase" or event.changed is None for event in self.events)


def _newest_group(context: Context, storages: Storages) -> str:
    """The actor's newest group that stands. Raises NotAllowed when the last change is one that no undo takes back."""
    newest = _newest_change(context, storages)
    narrative = last_turn(context)
    if narrative is not None and narrative.actor == context.signature and not _is_since(newest, narrative):
        what, then = ("end", "begin {}` goes on with it.") if narrative.has_ended else ("begin", "end` ends it.")
        raise NotAllowed(
            f"The last change was the {what} of the narrative {narrative.id}, which undo leaves alone.",
            hint=f"`kept narrative {then.format(narrative.id)}{_change_before(newest)}",
        )
    if newest is None:
        raise NotFound("There is nothing to undo.", hint=_others_last(storages))
    if newest.is_erasure:
        before: _Change | None = newest
        erased: set[str] = set()
        while before is not None and before.is_erasure:
            erased.add(before.group)
            before = _newest_change(context, storages, erased)
        raise NotAllowed(
            "The last change erased something, and erasing is permanent.", hint=_change_before(before).strip()
        )
    return newest.group


def _newest_change(context: Context, storages: Storages, passed: Container[str] = ()) -> _Change | None:
    """The actor's newest change that stands, but for the groups that are passed over."""
    newest = filter(None, (_newest_in(context, storage, passed) for storage in storages))
    return max(newest, default=None, key=lambda change: change[:3])


def _newest_in(context: Context, storage: Storage, passed: Container[str]) -> _Change | None:
    actor, project = context.actor_here(), context.spaces.project()
    is_global = storage.space == GLOBAL
    here = project.space if is_global and project is not None else None
    with storage.reading() as reader:
        events: Iterator[Event] = (event for event in _newest_first(reader) if event.group not in passed)
        if here is not None and actor.role == "project":
            events = filter(partial(_is_from, project=here), events)
        group = journal.newest_undoable(events, context.signature)
        if group is None:
            return None
        own = reader.events(group=group)
    position = None if here is None else ids.position_of(group, here)
    return _Change(own[0].seq if position is None else position, is_global, group, own)


def _is_since(change: _Change | None, narrative: Turn) -> bool:
    """Whether a change was made after a narrative began or ended."""
    if change is None:
        return False
    return change.events[0].seq > (narrative.last_global if change.is_global else narrative.last)


def _change_before(change: _Change | None) -> str:
    """The hint about the change that an undo would take back instead; "" if there is none."""
    if change is None or change.is_erasure:
        return ""
    first = change.events[0]
    return f" `kept undo {'g' if change.is_global else ''}{first.seq}` undoes the change before it ({first.action})."


def _is_from(event: Event, project: str) -> bool:
    """Whether a change of global memory was made from this project: other agents' are theirs to undo."""
    return any(group and ids.position_of(group, project) is not None for group in (event.group, event.undoes))


def _group_of(context: Context, storages: Storages, event: Ref) -> str:
    wanted = ids.parse_event_ref(event)
    for storage in storages:
        if (storage.space == GLOBAL) == wanted.is_global:
            with storage.reading() as reader:
                found = reader.events(after=wanted.id - 1, limit=1)
            if found and found[0].seq == wanted.id:
                return found[0].group
    raise NotFound(f"There is no event {wanted}.", hint="`kept history` shows them.")


def _undo_in(context: Context, storage: Storage, group: str, stamp: Stamp) -> Events:
    def work(tx: Transaction) -> Events:
        for step in _plan(tx, group, stamp.at):
            if step.is_new and step.record is not None:
                tx.add(step.record, "undo")
            elif step.record is not None:
                tx.put(_as_trusted(context, tx, step.record), "undo")
            elif (record := tx.get(step.noun, step.id)) is not None:
                _check_removal(tx, record)
                tx.remove(record, "undo")
        return tx.events(group=stamp.group)

    done = context.write(storage, work, stamp=stamp)
    context.tell_write(storage, sum(map(_grown_by, done)))
    return done


def _check_whole(context: Context, group: str) -> None:
    """Raise NotAllowed for a change that has a part in global memory which this actor may not see."""
    hidden = context.spaces.hidden()
    if hidden is not None:
        with hidden.reading() as reader:
            if reader.events(group=group, limit=1):
                raise NotAllowed(
                    "This change also changed global memory, which you may not change, so it cannot be undone here.",
                    hint="Ask the person who runs the server to undo it.",
                )


def _check_lifted(context: Context, rejection: Rejection | None) -> None:
    """Raise NotAllowed if an agent would lift a rejection that is not its own."""
    if rejection is not None and not context.is_person and rejection.who != context.signature:
        raise NotAllowed(
            f"This was rejected by {rejection.who}, so an agent may not bring it back.",
            hint="A person can, with `kept undo`.",
        )


def _check_agreed(context: Context, reader: Reader, plan: Sequence[journal.Revert]) -> None:
    """Ask a person before an allowance comes back. Raises NotAllowed, also if an agent would change a guard."""
    if any(step.noun is Allowance and step.record is not None for step in plan):
        context.agree_to_allow("Store a value that looks like a secret as it is from now on, once again?")
    if any(step.noun is CallGuard for step in plan):
        guards.check_person(context)
    for step in plan:
        if step.noun is Rejection and step.record is None:
            _check_lifted(context, reader.get(Rejection, step.id))
        if step.noun is Memory and (memory := reader.get(Memory, step.id)) is not None:
            guards.check_unguarded(context, reader, memory)


def _check_trust(reader: Reader, events: Events) -> None:
    """Raise NotAllowed for a change that lowered the trust of a memory: only a person who accepts it raises that."""
    for event in events:
        if event.action == trust.DISTRUST and (memory := by_uid(reader, event.subject)) is not None:
            raise NotAllowed(
                f"Event {event.seq} cannot be undone: it found that memory {memory.ref} repeats what a tool said.",
                hint=f"If the memory is right, accept it: `kept review --apply keep:{memory.ref}`, as a person.",
            )


def _as_trusted(context: Context, tx: Transaction, record: Record) -> Record:
    """The record to put back. An agent raises no trust by it, and a text that comes back is compared as a new one."""
    current = tx.get(Memory, record.id) if isinstance(record, Memory) else None
    if not isinstance(record, Memory) or current is None:
        return record
    is_same = record.content == current.content
    if not is_same:
        check_not_cited(current, "given an older text")
    if context.is_person:
        return record
    return distrusted(record, current.trust if is_same else trust.of_revised(context, record, None), tx.stamp.at)


def _check_removal(reader: Reader, record: Record) -> None:
    """Raise NotAllowed for a session that has messages: they would be left without it."""
    if isinstance(record, SessionRecord) and reader.last_number(record.name):
        raise NotAllowed(
            f"Session {record.name} has messages, and a transcript is only added to.",
            hint=f"`kept erase {record.name}` removes the session with all its messages, for good.",
        )


def _others_last(storages: Storages) -> str:
    """The hint when the actor has nothing to undo: another actor may have made the last change."""
    for storage in storages:
        with storage.reading() as reader:
            for event in reader.events(newest_first=True, limit=1):
                number = f"g{event.seq}" if storage.space == GLOBAL else f"{event.seq}"
                return f"The last change ({event.action}) is by {event.actor}: `kept undo {number}` undoes it."
    return f"Undo considers only your own changes among the newest {LOOK_BACK:,} events."


def _newest_first(reader: Reader) -> Iterator[Event]:
    """The journal from its end, a page at a time, up to `LOOK_BACK` events."""
    last = next((event.seq for event in reader.events(newest_first=True, limit=1)), 0)
    for end in range(last, max(0, last - LOOK_BACK), -PAGE):
        page = reader.events(after=max(0, end - PAGE), limit=PAGE)
        yield from (event for event in reversed(page) if event.seq <= end)


def _grown_by(event: Event) -> int:
    """By how many live memories an event made a space grow: 1, 0 or −1."""
    before, after = (event.changed or {}).get("status", (None, None)) if journal.noun_of(event) is Memory else (0, 0)
    return (after not in GONE) - (before not in GONE)


def _plan(reader: Reader, group: str, at: datetime) -> Sequence[journal.Revert]:
    return journal.plan_undo(
        reader.events(group=group),
        current=lambda event: _current(reader, event),
        later=lambda event: reader.events(subject=event.subject, after=event.seq),
        at=at,
    )


def _current(reader: Reader, event: Event) -> Record | None:
    """The record that an event is about, as it is now."""
    noun = journal.noun_of(event)
    if noun is not Memory:
        return next((record for record in reader.all(noun) if record.subject == event.subject), None)
    return by_uid(reader, event.subject)
