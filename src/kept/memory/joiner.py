"""Bring the records of another store into one space: what is new is added, what both have is joined.

Called by `transfer` with batches of pieces. `exchange.joining` says what two versions of one record become; here they
are checked, redacted, written with their history, and compared with what was here before. Rule: a batch is one
transaction, and every change of the other journal is written under the group, time and actor that it had there.
"""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from kept import access, text
from kept.errors import InvalidInput, KeptError
from kept.exchange import joining
from kept.exchange.joining import MERGE
from kept.exchange.portable import Piece
from kept.journal import IMPORT
from kept.memory.context import Context, by_uid
from kept.memory.signals import warn
from kept.model import (
    GLOBAL,
    LOW_TRUST,
    TRUSTS,
    Alias,
    Allowance,
    Conflict,
    Event,
    Memory,
    Message,
    Record,
    Session,
    Task,
    Trust,
    least,
    replace,
)
from kept.ports import ANYTHING, ANYWHERE, Stamp, Storage, Transaction, Where
from kept.projects.files import check_session_name, mirror_session, write_session_index
from kept.writing.check import check, check_moment, check_text
from kept.writing.conflicts import find_rivals
from kept.writing.duplicates import Known
from kept.writing.redact import redact, redact_draft, redact_message

MOST_TWINS = 100
BATCH = 200  # records per transaction


class Joined(Struct, kw_only=True):
    """The result of an import or a merge, counted in records."""

    stored: int = 0  # memories that are new here
    changed: int = 0  # memories of which the other side knew something newer
    known: int = 0
    duplicates: int = 0  # of the stored ones: another memory says the same, so one of the two is archived
    conflicts: int = 0  # disagreements that a person should settle
    messages: int = 0
    others: dict[str, int] = {}  # sessions, tasks, aliases … that are new or changed, by noun
    refused: dict[str, int] = {}  # by reason
    dry_run: bool = False


class _Undone(Exception):
    """Ends the transaction of a dry run."""


class Joiner:
    """Brings pieces into one space."""

    def __init__(self, context: Context, storage: Storage, done: Joined, *, may_allow: bool) -> None:
        self._context = context
        self._storage = storage
        self._done = done
        self._may_allow = may_allow
        self._rules = context.rules()
        self._most: Trust = "user" if context.is_person or context.actor.role == "admin" else "agent"
        self._stamp = context.stamp(shared=storage.space == GLOBAL)
        self._of_sessions = context.stamp()  # an undo takes back memories; a transcript is only added to
        self._seen: set[str] = set()  # uids that these pieces have brought so far
        self._live_there: dict[str, Memory] = {}
        self._touched: dict[str, Memory | None] = {}  # uid → the memory as it was here before
        self._added: list[str] = []
        self._sessions: dict[str, str] = {}  # their name → the name here
        self._met: set[str] = set()  # names of sessions that were here before
        self._packed: dict[str, datetime] = {}
        self._grown = 0
        self._arrived: list[Memory] = []
        with storage.reading() as reader:
            newest = reader.select(ANYWHERE, limit=1)
            self._last_id = newest[0].id if newest else 0
            self._is_new = not reader.events(limit=1)
            self._keeps_refs: bool | None = None if newest else True

    def take(self, batch: list[Piece], *, dry_run: bool) -> None:
        """Bring one batch, in one transaction."""
        if not dry_run:
            access.check_write(self._context.actor_here(), self._storage.space)
        with suppress(_Undone), self._storage.writing(self._stamp) as tx:
            self._added, self._arrived = [], []
            for piece in batch:
                tx.restamp(self._stamp)
                self._take(tx, piece)
            tx.restamp(self._stamp)
            tx.put_many(self._arrived, IMPORT)
            if not self._is_new:
                self._compare(tx)
            self._pack(tx)
            if dry_run:
                raise _Undone

    def finish(self) -> None:
        """Write the files of the sessions, and tell subscribers."""
        folder = self._context.spaces.sessions_folder() if self._storage.space != GLOBAL else None
        if folder is not None and self._sessions:
            try:
                with self._storage.reading() as reader:
                    for name in self._sessions.values():
                        session = reader.session(name)
                        if session is not None and session.packed_at is None:
                            mirror_session(folder, reader, name)
                write_session_index(folder, self._storage.reading)
            except KeptError as error:  # they are copies; the next message brings them up to date
                warn("the files of the sessions could not be written: %s", error.message)
        self._context.tell_write(self._storage, self._grown)

    def _take(self, tx: Transaction, piece: Piece) -> None:
        try:
            if piece.noun is None:
                self._take_messages(tx, piece)
            elif piece.noun is Memory:
                self._take_memory(tx, piece)
            elif piece.noun is Conflict:
                self._take_conflict(tx, piece)
            elif piece.noun is Session:
                self._take_session(tx, piece)
            elif piece.noun is Allowance and not self._may_allow:
                self._refuse("not_allowed")
            else:
                self._take_small(tx, piece)
        except (InvalidInput, msgspec.ValidationError):  # what no store can hold
            self._refuse("invalid")

    def _refuse(self, reason: str) -> None:
        self._done.refused[reason] = self._done.refused.get(reason, 0) + 1

    # Memories

    def _take_memory(self, tx: Transaction, piece: Piece) -> None:
        if not isinstance(piece.record, Memory):
            return
        uid = check_uid(piece.record.uid)
        if not piece.record.is_archived:
            self._live_there[uid] = piece.record
        is_unknown = self._is_new and uid not in self._seen  # which need not be looked up, one by one
        mine = None if is_unknown else by_uid(tx, uid)
        my_events = [] if is_unknown else tx.events(subject=uid)
        if mine is not None and self._is_known(mine, my_events, piece.record, piece.history):
            self._done.known += 1
            self._seen.add(uid)
            return
        theirs, history = self._checked(piece.record, piece.history)
        assert isinstance(theirs, Memory)
        if mine is None and not self._is_new and _was_erased(tx, theirs, my_events):
            self._refuse("erased")
            return
        if not self._is_new and tx.is_erased(ANYTHING):
            theirs, history = self._without_erased(tx, theirs, history)
        if mine is None:
            self._add_memory(tx, theirs, history)
        else:
            self._join_memory(tx, mine, my_events, theirs, history)
        self._seen.add(theirs.uid)

    def _without_erased(self, tx: Transaction, theirs: Memory, history: list[Event]) -> tuple[Memory, list[Event]]:
        """The memory without passages that were erased here; a history that has one is left out."""
        from kept.memory.erase import memory_without_erased, tells_erased

        clean = memory_without_erased(tx, theirs)
        if clean != theirs:
            return replace(clean, fingerprint=text.fingerprint(clean.content)), []
        return theirs, [] if tells_erased(tx, self._texts(history)) else history

    def _is_known(self, mine: Memory, my_events: list[Event], theirs: Memory, history: Iterable[Event]) -> bool:
        if self._keeps_refs is None:
            self._keeps_refs = mine.id == theirs.id
        told = joining.carried(history)
        return not joining.news(my_events, told) and (bool(told) or theirs.updated_at <= mine.updated_at)

    def _add_memory(self, tx: Transaction, theirs: Memory, history: list[Event]) -> None:
        for other in tx.select(replace(ANYWHERE, key=theirs.key), limit=1) if theirs.key is not None else ():
            if _first_said(theirs) < _first_said(other):  # a key names one memory
                tx.put(replace(other, key=None), MERGE)
            else:
                theirs = replace(theirs, key=None)
        id = self._own_ref(tx, theirs)
        current: Memory | None = None
        for event in history:
            after = joining.applied(current, event, Memory)
            if isinstance(after, Memory):
                after = replace(self._as_ours(after), uid=theirs.uid, key=theirs.key)
                tx.restamp(_stamp_of(event))
                if current is None:
                    current = tx.add(replace(after, id=id), event.action)
                else:
                    current = tx.put(replace(after, id=current.id), event.action)
        tx.restamp(self._stamp)
        if current is None:
            current = tx.add(replace(theirs, id=id), IMPORT)
        else:  # also where nothing differs: it says with which import the memory came
            current = replace(theirs, id=current.id)
            self._arrived.append(current)
        self._last_id = max(self._last_id, current.id)
        self._done.stored += 1
        self._grown += not current.is_archived
        self._added.append(current.uid)
        if not self._is_new:
            self._touched[current.uid] = None

    def _own_ref(self, tx: Transaction, theirs: Memory) -> int:
        """The id that it has there, where that is free and was never given; else 0, the next one."""
        if self._keeps_refs is None:  # an import that was cut short goes on with the refs it began with
            self._keeps_refs = (first := tx.get(Memory, theirs.id)) is not None and first.uid in self._seen
        is_next = self._is_new and theirs.id == self._last_id + 1
        return theirs.id if self._keeps_refs and theirs.id > self._last_id and not is_next else 0

    def _join_memory(
        self, tx: Transaction, mine: Memory, my_events: list[Event], theirs: Memory, history: list[Event]
    ) -> None:
        fresh = joining.news(my_events, history)
        target = joining.joined(mine, my_events, theirs, history)
        assert isinstance(target, Memory)
        lost = joining.older_text(mine, my_events, theirs, history, target)
        current = mine
        for event in fresh:
            after = joining.applied(current, event, Memory)
            if isinstance(after, Memory):
                tx.restamp(_stamp_of(event))
                current = tx.put(replace(self._as_ours(after), id=mine.id, uid=mine.uid, key=mine.key), event.action)
        tx.restamp(self._stamp)
        target = replace(target, key=mine.key)
        if self._most != "user" and not target.is_archived and target.content == mine.content and not mine.is_archived:
            target = replace(target, status=mine.status, trust=mine.trust)  # neither raised nor lowered by a file
        if target != current:
            current = tx.put(target, MERGE)
        self._grown += mine.is_archived - current.is_archived
        self._done.changed += 1
        self._touched[mine.uid] = mine
        if lost is not None and by_uid(tx, lost.uid) is None:
            self._last_id = max(self._last_id, tx.add(lost, MERGE).id)
            self._touched[lost.uid] = None
            self._note_conflict(tx, target, lost, "contradictory", "revised in two places")

    def settle_doubles(self, *, dry_run: bool) -> None:
        """Of two memories that only now stand beside each other and say the same, archive one."""
        touched = list(self._touched)
        for start in range(0, len(touched), BATCH):
            with suppress(_Undone), self._storage.writing(self._stamp) as tx:
                for uid in touched[start : start + BATCH]:
                    if (memory := by_uid(tx, uid)) is not None:
                        self._settle_doubles(tx, memory)
                if dry_run:
                    raise _Undone

    def _settle_doubles(self, tx: Transaction, memory: Memory) -> None:
        """Archive one of two that say the same, or that are the latest word on one topic."""
        if memory.is_archived or memory.tier == "task":
            return
        doubles: dict[str, tuple[str, Memory]] = {}
        if memory.topic is not None:
            of_topic = Where(topic=memory.topic, scope=memory.scope)
            doubles |= {other.uid: ("topic", other) for other in tx.select(of_topic, limit=MOST_TWINS)}
        same = Where(fingerprints=(memory.fingerprint,), scope=memory.scope)
        doubles |= {other.uid: ("fingerprint", other) for other in tx.select(same, limit=MOST_TWINS)}
        for _, (field, other) in sorted(doubles.items()):
            if other.uid == memory.uid or other.tier == "task" or self._were_together(memory, other, field):
                continue
            order = _first_said if field == "fingerprint" else _last_said
            stays, goes = sorted((memory, other), key=order)
            tx.put(goes.archived("superseded", self._stamp.at, superseded_by=stays.uid), MERGE)
            self._done.duplicates += 1
            self._grown -= 1
            if goes.uid == memory.uid:
                return

    def _were_together(self, one: Memory, other: Memory, field: str) -> bool:
        """Whether both were live with the same text or topic before, here or there: then it was meant so."""
        here = [self._touched.get(memory.uid, memory) for memory in (one, other)]
        there = [self._live_there.get(memory.uid) for memory in (one, other)]
        return any(
            None not in pair
            and all(memory is not None and not memory.is_archived for memory in pair)
            and len({getattr(memory, field) for memory in pair}) == 1
            for pair in (here, there)
        )

    def _compare(self, tx: Transaction) -> None:
        """Find what the new memories of this batch say against those that were here before."""
        new = [found for uid in self._added if (found := by_uid(tx, uid)) is not None and not found.is_archived]
        new = [memory for memory in new if memory.scope == "memory" and memory.tier != "task"]
        known = Known(tx, new)
        for memory in new:
            alike = [other for other in known.alike(memory) if other.uid not in self._seen]
            for rival in find_rivals(tx, memory, alike):
                kind = "contradictory" if rival.type == "superseded" else rival.type
                self._note_conflict(tx, memory, rival.memory, kind, rival.rule)

    def _note_conflict(self, tx: Transaction, one: Memory, other: Memory, type: Any, rule: str) -> None:
        older, newer = sorted((one, other), key=lambda memory: (memory.created_at, memory.updated_at, memory.uid))
        pairs = {frozenset((conflict.left, conflict.right)) for conflict in tx.all(Conflict)}
        if frozenset((older.uid, newer.uid)) not in pairs:
            at = self._stamp.at
            tx.add(Conflict(left=newer.uid, right=older.uid, type=type, rule=rule, detected_at=at), MERGE)
            self._done.conflicts += 1

    def _as_ours(self, memory: Memory) -> Memory:
        session = memory.source.session
        source = replace(memory.source, session=self._sessions.get(session, session)) if session else memory.source
        trust = memory.trust if memory.is_low_trust else least(memory.trust, self._most)
        # A file can claim that it was confirmed or pinned: without a person to say so, it is a candidate.
        status = memory.status if self._most == "user" or memory.is_archived else "candidate"
        return replace(memory, space=self._storage.space, source=source, trust=trust, status=status)

    # Everything else

    def _take_conflict(self, tx: Transaction, piece: Piece) -> None:
        theirs = piece.record
        if not isinstance(theirs, Conflict) or by_uid(tx, theirs.left) is None or by_uid(tx, theirs.right) is None:
            return
        pair = {theirs.left, theirs.right}
        mine = next((one for one in tx.all(Conflict) if {one.left, one.right} == pair), None)
        if mine is None:
            tx.add(replace(theirs, id=0), IMPORT)
            self._done.conflicts += theirs.resolved_at is None
            return
        settled = [one.resolved_at for one in (mine, theirs) if one.resolved_at is not None]
        if settled and mine.resolved_at != min(settled):
            tx.put(replace(mine, resolved_at=min(settled)), MERGE)

    def _take_small(self, tx: Transaction, piece: Piece) -> None:
        assert piece.noun is not None
        theirs, history = self._checked(piece.record, piece.history)
        if isinstance(theirs, Allowance):
            self._rules = replace(self._rules, allow=[*self._rules.allow, theirs.digest])
        mine = _named(tx, piece.noun, piece.subject)
        my_events = tx.events(subject=piece.subject)
        if mine is None and any(event.action == "erase" for event in my_events):
            self._refuse("erased")
            return
        fresh = joining.news(my_events, history)
        if not fresh and (mine is not None or theirs is None or my_events):
            return
        before = mine
        for event in fresh:
            after = joining.applied(mine, event, piece.noun)
            tx.restamp(_stamp_of(event))
            mine = _moved(tx, mine, after, event.action)
        tx.restamp(self._stamp)
        target = theirs if before is None or theirs is None else joining.joined(before, my_events, theirs, history)
        if before is not None and theirs is None:
            target = before
        if joining.removed_last(my_events, history):
            target = None
        if (target and replace(target, id=0)) != (mine and replace(mine, id=0)):
            mine = _moved(tx, mine, target, MERGE)
        if (mine and replace(mine, id=0)) != (before and replace(before, id=0)):
            self._count(piece.noun.noun)

    def _take_session(self, tx: Transaction, piece: Piece) -> None:
        if not isinstance(piece.record, Session):
            return
        checked, history = self._checked(piece.record, piece.history)
        assert isinstance(checked, Session)
        check_session_name(checked.name)
        name = self._sessions[checked.name] = self._name_here(tx, checked)
        parent = self._sessions.get(checked.parent or "", checked.parent)
        theirs = replace(checked, name=name, parent=parent, id=0)
        if theirs.packed_at is not None:
            self._packed[name] = theirs.packed_at
        mine = tx.session(name)
        if mine is not None:
            self._met.add(name)
        tx.restamp(self._of_sessions)
        if mine is None:
            tx.add(replace(theirs, packed_at=None), IMPORT)
            self._count("session")
        elif joining.news(tx.events(subject=mine.subject), history) and theirs.ended >= mine.ended:
            marks = {one: getattr(theirs, one) for one in ("checked", "flushed", "ended", "finished_at", "summary")}
            if replace(mine, **marks) != mine:
                tx.put(replace(mine, **marks, findings=theirs.findings, promoted=theirs.promoted), MERGE)

    def _name_here(self, tx: Transaction, theirs: Session) -> str:
        """Its name; another one if a different conversation has that name here."""
        mine = tx.session(theirs.name)
        if mine is None or mine.started_at == theirs.started_at:
            return theirs.name
        return f"{theirs.name[:100]}-{text.fingerprint(f'{theirs.name} {theirs.started_at.isoformat()}')[:8]}"

    def _take_messages(self, tx: Transaction, piece: Piece) -> None:
        from kept.memory.erase import without_erased

        name = self._sessions.get(piece.session)
        if name is None:
            self._refuse("invalid")
            return
        email, allow = self._rules.redact_email, self._rules.allow
        said = [redact_message(_sound(message), email=email, allow=allow) for message in piece.messages]
        said = [self._capped(message) for message in without_erased(tx, name, said)]
        session = tx.session(name)
        said = [replace(message, session=name) for message in said]
        added = tx.append(_unlike(said, tx.messages(name) if name in self._met else ()))
        self._done.messages += len(added)
        if added and session is not None and session.packed_at is not None:
            tx.restamp(self._of_sessions)
            tx.put(replace(session, packed_at=None), MERGE)

    def _pack(self, tx: Transaction) -> None:
        """Pack the sessions of this batch that were packed there, unless they were longer here."""
        tx.restamp(self._of_sessions)
        for name, at in self._packed.items():
            session = tx.session(name)
            if session is not None and session.packed_at is None:
                tx.pack(name)
                tx.put(replace(session, packed_at=at), MERGE)
        self._packed = {}

    def _capped(self, message: Message) -> Message:
        is_low = message.trust in LOW_TRUST
        return message if is_low else replace(message, trust=least(message.trust, self._most))

    def _count(self, noun: str) -> None:
        self._done.others[noun] = self._done.others.get(noun, 0) + 1

    def _checked(self, record: Record | None, history: Iterable[Event]) -> tuple[Any, list[Event]]:
        """The record without secrets, and the events that another store can use. Raises InvalidInput.

        A history that tells a secret, or that no store could hold, is left out.
        """
        clean = self._clean(record)
        events = [replace(event, actor=self._redacted(event.actor)[:200]) for event in joining.carried(history)]
        read = {value for value in msgspec.structs.astuple(record) if isinstance(value, str)} if record else set()
        is_usable = all(_is_sound(event) for event in events) and not self._tells_secrets(events, read)
        is_as_it_was = clean == (self._as_ours(record) if isinstance(record, Memory) else record)
        return clean, events if is_usable and is_as_it_was else []

    def _clean(self, record: Record | None) -> Record | None:
        if isinstance(record, Memory):
            draft = check(record.as_draft())
            email, allow = self._rules.redact_email, self._rules.allow
            safe = redact_draft(draft, email=email, allow=allow)
            same = {name: getattr(safe.draft, name) for name in ("content", "kind", "tags", "files", "topic", "title")}
            same |= {"key": safe.draft.key, "data": safe.draft.data, "source": safe.draft.source}
            for name in ("updated_at", "last_hit_at", "last_used_at", "verified_at", "archived_at"):
                if (at := getattr(record, name)) is not None:
                    check_moment(at, name)
            fingerprint = text.fingerprint(safe.draft.content)
            record = replace(record, **same, fingerprint=fingerprint)
            return self._as_ours(record)
        if record is None or isinstance(record, Allowance):
            return record
        for value in msgspec.structs.astuple(record):
            if isinstance(value, datetime):
                check_moment(value, "A time")
        cleaned = msgspec.convert(self._walked(msgspec.to_builtins(record)), type(record))
        if isinstance(record, Task | Alias | Session) and cleaned.subject != record.subject:
            raise InvalidInput("The name of a record must not contain a secret.")
        return cleaned

    def _walked(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._redacted(value)
        if isinstance(value, list):
            return [self._walked(one) for one in value]
        if isinstance(value, dict):
            return {name: self._walked(one) for name, one in value.items()}
        return value

    def _redacted(self, said: str) -> str:
        return redact(said, email=self._rules.redact_email, allow=self._rules.allow).text if len(said) > 7 else said

    def _tells_secrets(self, events: list[Event], read: set[str]) -> bool:
        return any(self._redacted(said) != said for said in self._texts(events) - read)

    @staticmethod
    def _texts(events: Iterable[Event]) -> set[str]:
        """The texts that these events brought."""
        return {
            after
            for event in events
            for name, (_, after) in (event.changed or {}).items()
            if isinstance(after, str) and name in ("content", "title", "topic", "description")
        }


def _was_erased(tx: Transaction, memory: Memory, events: Iterable[Event]) -> bool:
    return tx.is_erased(memory.fingerprint) or any(event.action == "erase" for event in events)


def check_uid(uid: str) -> str:
    """The uid, if it is a name that a journal can hold. Raises InvalidInput."""
    check_text(uid, "The uid", 100)
    if not uid or ":" in uid or (uid[0] == "c" and uid[1:].isdigit()):
        raise InvalidInput(f"{uid[:40]!r} cannot be the uid of a memory.")
    return uid


def _named(tx: Transaction, noun: type[Record], subject: str) -> Record | None:
    return next((record for record in tx.all(noun) if record.subject == subject), None)


def _moved(tx: Transaction, mine: Record | None, after: Record | None, action: str) -> Record | None:
    """Change a small record into what it was next: added, changed or removed."""
    if mine is None:
        return None if after is None else tx.add(replace(after, id=0), action)
    if after is None:
        tx.remove(mine, action)
        return None
    return tx.put(replace(after, id=mine.id), action)


def _stamp_of(event: Event) -> Stamp:
    return Stamp(group=event.group, at=event.at, actor=event.actor, undoes=event.undoes)


def _is_sound(event: Event) -> bool:
    """Whether a journal can hold the event."""
    try:
        check_moment(event.at, "at")
        for name in (event.group, event.action, event.undoes or ""):
            check_text(name, "The name", 200)
    except InvalidInput:
        return False
    return bool(event.group and event.action)


def _sound(message: Message) -> Message:
    check_text(message.content, "The message", 10_000_000)
    if message.at is not None:
        check_moment(message.at, "The time of the message")
    return message


def _unlike(said: list[Message], here: Iterable[Message]) -> list[Message]:
    """The messages that were not said here; one whose id another message has here, with an id of its own."""
    known = {_spoken(message) for message in here}
    taken = {(message.id, message.role) for message in here}
    new = [message for message in said if _spoken(message) not in known]
    return [
        replace(message, id=f"{message.id[:80]}-{text.fingerprint(f'{message.at} {message.content}')[:8]}")
        if (message.id, message.role) in taken
        else message
        for message in new
    ]


def _spoken(message: Message) -> tuple[Any, ...]:
    return message.role, message.at, message.content, message.name, msgspec.json.encode(message.input)


def _first_said(memory: Memory) -> tuple[Any, ...]:
    """Of two that say the same, the more trusted one stays, then the pinned one, then the older one."""
    return -TRUSTS.index(memory.trust), memory.status != "pinned", memory.created_at, memory.uid


def _last_said(memory: Memory) -> tuple[Any, ...]:
    return -TRUSTS.index(memory.trust), -memory.created_at.timestamp(), memory.uid
