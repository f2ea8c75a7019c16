"""The memory as it was at a moment: `as_of` of recall and briefings.

The journal has every record before each change, so the records of a space are taken back from the present to
the moment and put into a storage in this process's memory, which the ordinary recall and briefing then read. Rules:
nothing is noted of such a question; erased text stays erased; who may read, and whether the project is paused, is
decided by the present.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from msgspec import structs

from kept import journal
from kept.memory import read
from kept.memory.context import Context, Storages
from kept.model import SMALL_NOUNS, Event, Memory, Message, Recalled, Record, SessionRecord, TaskRecord, replace
from kept.ports import ANYWHERE, Reader, Storage
from kept.recall import Request
from kept.recall.candidates import Latencies
from kept.storage import open_contents
from kept.storage.shared import Contents, has_tokens_of

ALL = 2**31 - 1
DEADLINE_MS = 10_000  # a storage in memory scans: an answer about the past may take longer than one for an agent


def moment_of(context: Context, as_of: datetime) -> datetime:
    """Return the moment to answer for: a day that is not over yet ends now."""
    return min(as_of.astimezone(context.now().tzinfo), context.now())


def patient(context: Context) -> Context:
    """Return the context for a question about the past: with more time, and apart from the latencies of others."""
    settings = replace(context.settings, recall_deadline_ms=max(DEADLINE_MS, context.settings.recall_deadline_ms))
    return structs.replace(context, settings=settings, latencies=Latencies())


def recall(context: Context, request: Request, as_of: datetime) -> Recalled:
    """Answer a question of the caller from the memory of a moment. Nothing is noted."""
    request = read.as_asked(request)
    recalled = answer_as_of(context, request, context.readable(), as_of)
    context.signals.tell_recalled(request.query, recalled.hits, scope=request.scope)
    return recalled


def answer_as_of(context: Context, request: Request, storages: Storages, as_of: datetime) -> Recalled:
    """Ask all spaces as they were at a moment."""
    past, then, at = back_at(context, storages, as_of, with_messages=request.scope == "sessions")
    return read.answer(past, request, then, at)


class Back(NamedTuple):
    """The context, the spaces and the moment of a question about the past."""

    context: Context
    storages: Storages
    at: datetime


def back_at(context: Context, storages: Storages, as_of: datetime, *, with_messages: bool = False) -> Back:
    """Take the spaces back to a moment.

    `with_messages`: conversations are searched as well.
    """
    at = moment_of(context, as_of)
    return Back(patient(context), [_storage_as_of(one, at, with_messages=with_messages) for one in storages], at)


def _storage_as_of(storage: Storage, at: datetime, *, with_messages: bool) -> Storage:
    with storage.reading() as reader:
        contents = _contents_as_of(reader, at)
        if with_messages:
            _add_messages(contents, reader, at)
    return open_contents(storage.space, contents)


def _contents_as_of(reader: Reader, at: datetime) -> Contents:
    foundation = reader.foundation()
    present = reader.select(ANYWHERE, limit=ALL)
    records = records_as_of(reader, at, present)
    contents = Contents(key=foundation.key, tombstones=set(foundation.tombstones), records=records)
    _add_known(contents, reader, {one.id: one for one in present})
    for task in (
        one for one in contents.records if isinstance(one, TaskRecord)
    ):  # a briefing says where a task came from
        contents.events += [event for event in reader.events(subject=task.subject) if event.at <= at]
    return contents


def records_as_of(
    reader: Reader, at: datetime, memories: Iterable[Memory], others: Sequence[type[Record]] = SMALL_NOUNS
) -> list[Record]:
    """Return records of a space as they were at that moment: memories, given as they are now, and these other nouns."""
    small = chain.from_iterable(reader.all(noun) for noun in others)
    now = {record.subject: record for record in chain(memories, small)}
    unborn = {subject for subject, one in now.items() if isinstance(one, Memory) and one.created_at > at}
    later = _later_events(reader, at, unborn, with_others=bool(others))
    present = {subject: record for subject, record in now.items() if subject not in unborn}
    then = journal.as_before(present, later, lambda subject: _existed(reader, subject, at))
    return [_known_then(record, reader.space, at) for record in then.values()]


def _later_events(reader: Reader, at: datetime, unborn: set[str], *, with_others: bool) -> list[Event]:
    """Return the events after a moment, newest first, about records that may have been there.

    Most later events are about memories that are later themselves: their payloads need not be read.
    """
    heads = reader.event_heads(later_than=at)
    changed = {head.subject for head in heads if with_others or ":" not in head.subject} - unborn
    later = [event for subject in changed for event in reader.events(subject=subject, later_than=at)]
    return sorted(later, key=lambda event: -event.seq)


def _existed(reader: Reader, subject: str, at: datetime) -> bool:
    return any(event.at <= at for event in reader.events(subject=subject, limit=1))


def _known_then(record: Record, space: str, at: datetime) -> Record:
    """Return a record of this space, without a use that came later: uses are not in the journal."""
    if not isinstance(record, Memory):
        return record
    is_later = record.last_used_at is not None and record.last_used_at > at
    return replace(record, space=space, last_used_at=None if is_later else record.last_used_at)


def _add_known(contents: Contents, reader: Reader, now: Mapping[int, Memory]) -> None:
    """Add the tokens and vectors that the present has of texts that have not changed since."""
    then = [(one, now[one.id]) for one in contents.records if isinstance(one, Memory) and one.id in now]
    contents.prepared = reader.prepared([one.id for one, today in then if has_tokens_of(one, today)])
    contents.vector_model = reader.vector_state().model
    if contents.vector_model is not None:
        same = {one.id: one.fingerprint for one, today in then if one.fingerprint == today.fingerprint}
        contents.vectors = {id: (same[id], vector) for id, vector in reader.vectors([*same]).items()}


def _add_messages(contents: Contents, reader: Reader, at: datetime) -> None:
    """Add the messages until then: a transcript is its own journal."""
    for session in (one for one in contents.records if isinstance(one, SessionRecord)):
        contents.messages[session.name] = tuple(_said_until(reader, session, at))
        if session.packed_at is not None:
            contents.packed.add(session.name)


def _said_until(reader: Reader, session: SessionRecord, at: datetime) -> list[Message]:
    own = reader.messages(session.name, after=session.shared)
    return [message for message in own if message.at is None or message.at <= at]
