"""Carry a space over to another storage: from a file into a database, or back.

Everything goes along as it is: records with their ids, the journal with its seals, messages, tombstones, links and
counters. So a move needs an empty target, and nothing is joined; `joiner` brings records into a store that has others.
Notes of past recalls stay behind, and vectors are made again. The source cannot be written while it is read. Each batch
is one transaction and says how far it got, so a move that was cut off goes on where it stopped; in the end both sides
are compared, record by record and seal by seal.
Rule: at every moment one place at most can be written. The new place refuses writers until the old one has the note
that it was moved away, which from then on refuses them there; an erasure passes both.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import datetime
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

from kept.errors import InvalidInput, NotAllowed, StorageError
from kept.memory.context import Context
from kept.model import SMALL_NOUNS, replace
from kept.ports import ANYWHERE, Reader, Stamp, Storage, Transaction
from kept.projects.teams import without_password
from kept.storage import is_database
from kept.storage.shared import MOVED, MOVING, check_fence, every, random_hex

BATCH = 200
Tell = Callable[[str, int], None]


class MoveReport(Struct, frozen=True, kw_only=True):
    """What was carried over, as counted on both sides, and a digest of all of it."""

    memories: int = 0
    events: int = 0
    messages: int = 0
    digest: str = ""


class _Progress(Struct, kw_only=True):
    """How far a move got: of which journal, and the last of each kind."""

    of: str
    memories: int = 0
    events: int = 0
    sessions: int = 0
    has_records: bool = False


def move_to(context: Context, to: str, *, tell: Tell | None = None) -> MoveReport:
    """Carry the project over to another place: a postgresql:// URL, `home`, or a new file."""
    source = context.owned()
    with closing(context.spaces.destination(to)) as target:
        if (source.space, source.describe()["place"]) == (target.space, target.describe()["place"]):
            raise InvalidInput(
                "The project is there already.",
                hint="To bring what was in your home before the link: `kept projects unlink`, then "
                "`kept store move --to URL`, then `kept projects link NAME --database URL`.",
            )
        place = without_password(to) if is_database(to) else target.describe()["place"]
        return move(source, target, to=place, at=context.now(), tell=tell or _tell_nothing)


def _tell_nothing(_part: str, _number: int) -> None:
    """Report no progress."""


def move(source: Storage, target: Storage, *, to: str, at: datetime, tell: Tell = _tell_nothing) -> MoveReport:
    """Carry everything over, and let the source refuse writers: they are told that it is in `to`.

    Raises NotAllowed if the target holds anything else, MovedAway if the source was moved before, and StorageError if
    it did not work.
    """
    stamp = Stamp(group=random_hex(8), at=at, actor="move", passes_fence=True)
    with source.writing(stamp) as reader:  # so that no process writes to it in the meantime
        with target.writing(stamp) as tx:
            if MOVING not in tx.file_notes(MOVING):  # else this is the end of a move that was cut off
                check_fence(source.space, reader.file_notes(MOVED))
            progress = _begin(reader, tx, target.describe()["place"])
        for carry in (_carry_events, _carry_memories, _carry_rest, _carry_messages):
            carry(reader, target, stamp, progress, tell)
        with target.writing(stamp) as tx:
            tx.lay(reader.foundation())
        _carry_notes(reader, target)
        ours = digest_of(reader)
        with target.reading() as there:
            theirs = digest_of(there)
        if ours != theirs:
            raise StorageError(
                f"The copy in {target.describe()['place']} differs from the original: {theirs} instead of {ours}.",
                hint="The original is as it was. Remove the copy, and try again.",
            )
        reader.note_file(MOVED, f"{at:%Y-%m-%d} {to}")
    with target.writing(stamp) as tx:
        tx.note_file(MOVING, None)
    return ours


def digest_of(reader: Reader) -> MoveReport:
    """Everything that a move promises to carry, counted, and as one digest."""
    digest = blake2b(digest_size=16)
    memories = events = messages = 0
    for memory in every(reader, ANYWHERE):
        memories += 1
        digest.update(msgspec.json.encode(replace(memory, space="")))
        digest.update(msgspec.json.encode(sorted(reader.links(memory.id))))
    for noun in SMALL_NOUNS:
        digest.update(msgspec.json.encode(reader.all(noun)))
    for page in _events(reader, 0):
        events += len(page)
        digest.update(msgspec.json.encode(page))
    foundation = reader.foundation()
    for session in foundation.sessions:
        said = reader.messages(session)
        messages += len(said)
        digest.update(msgspec.json.encode(said))
    counters = sorted((name, number) for name, number in reader.counters().items() if number)
    digest.update(msgspec.json.encode((foundation.tombstones, foundation.packed, counters)))
    return MoveReport(memories=memories, events=events, messages=messages, digest=digest.hexdigest())


def _begin(reader: Reader, tx: Transaction, place: str) -> _Progress:
    """How far an earlier attempt got, or the beginning."""
    newest = reader.events(newest_first=True, limit=1)
    of = newest[0].hash if newest else ""
    noted = tx.file_notes(MOVING).get(MOVING)
    if noted is not None:
        progress = msgspec.json.decode(noted, type=_Progress)
        if progress.of == of:
            return progress
    elif not tx.events(limit=1) and not tx.count(ANYWHERE) and not tx.foundation().sessions:
        progress = _Progress(of=of)
        _note(tx, progress)
        return progress
    if MOVED in tx.file_notes(MOVED):
        raise NotAllowed(
            f"{place} holds the copy of {tx.space} that was moved away from there.",
            hint="Delete it first, or choose a new file.",
        )
    raise NotAllowed(
        f"{tx.space} is not empty there, and is not what an earlier attempt to move this left.",
        hint="A move needs an empty place: choose another project name or file. `kept store merge` joins two stores.",
    )


def _note(tx: Transaction, progress: _Progress) -> None:
    tx.note_file(MOVING, msgspec.json.encode(progress).decode())


def _carry_events(reader: Reader, target: Storage, stamp: Stamp, progress: _Progress, tell: Tell) -> None:
    for page in _events(reader, progress.events):
        progress.events = page[-1].seq
        with target.writing(stamp) as tx:
            tx.carry(events=page)
            _note(tx, progress)
        tell("events", progress.events)


def _carry_memories(reader: Reader, target: Storage, stamp: Stamp, progress: _Progress, tell: Tell) -> None:
    while page := reader.select(ANYWHERE, limit=BATCH, after=progress.memories, oldest_first=True):
        progress.memories = page[-1].id
        with target.writing(stamp) as tx:
            tx.carry(records=page)
            _note(tx, progress)
        tell("memories", progress.memories)


def _carry_rest(reader: Reader, target: Storage, stamp: Stamp, progress: _Progress, tell: Tell) -> None:
    if not progress.has_records:
        progress.has_records = True
        with target.writing(stamp) as tx:
            tx.carry(records=[record for noun in SMALL_NOUNS for record in reader.all(noun)])
            for name, note in reader.file_notes().items():
                if name not in (MOVED, MOVING):
                    tx.note_file(name, note)
            _note(tx, progress)


def _carry_messages(reader: Reader, target: Storage, stamp: Stamp, progress: _Progress, tell: Tell) -> None:
    sessions = reader.foundation().sessions
    for session in sessions[progress.sessions :]:
        progress.sessions += 1
        known = reader.session(session)
        shared = known.shared if known is not None else 0  # what a fork shares with its parent is stored there
        with target.writing(stamp) as tx:
            own = [message for message in reader.messages(session) if message.n > shared]
            tx.carry(messages=own)
            _note(tx, progress)
        tell("sessions", progress.sessions)


def _carry_notes(reader: Reader, target: Storage) -> None:
    """Links and counters, which no transaction writes; each link is strengthened as often as it was."""
    with target.reading() as there:
        known, counted = {memory.id for memory in every(there, ANYWHERE) if there.links(memory.id)}, there.counters()
    with target.bookkeeping(passes_fence=True) as notes:
        if notes is None:
            raise StorageError("Somebody else writes to the new place.", hint="Try again.")
        notes.count(_difference(reader.counters(), counted))
        for memory in every(reader, ANYWHERE):
            for other, strength, at in reader.links(memory.id) if memory.id not in known else ():
                for _ in range(round(strength) if other > memory.id else 0):
                    notes.link([memory.id, other], at)


def _difference(ours: Mapping[str, int], theirs: Mapping[str, int]) -> dict[str, int]:
    """Return how much to add to each of their counters; the new place has some if it was opened before."""
    differing = {name: ours.get(name, 0) - theirs.get(name, 0) for name in {*ours, *theirs}}
    return {name: number for name, number in differing.items() if number}


def _events(reader: Reader, after: int) -> Iterator[list[Any]]:
    while page := reader.events(after=after, limit=BATCH):
        yield page
        after = page[-1].seq
