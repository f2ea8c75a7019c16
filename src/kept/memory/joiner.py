"""Join a stream of pieces from elsewhere with one space: add what is new, join what both have.

Every way into a store that knows its records by name comes here: an export and another store (`transfer`), another
project (`merge`), and the tasks, aliases and conflicts in files of other programs (`bringing`). `exchange.joining` says
what two versions of one record become; `JoinOptions` says what the ways differ in. Rule: a batch is one transaction,
and every change of the other journal is written under the group, time and actor that it had there.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from kept import text
from kept.errors import InvalidInput, KeptError
from kept.exchange import joining
from kept.exchange.joining import MERGE
from kept.exchange.portable import Piece
from kept.journal import IMPORT
from kept.memory.change import put_away, rejected_since
from kept.memory.cleaner import Cleaner, check_uid, memory_without_erased, messages_without_erased
from kept.memory.context import by_uid
from kept.memory.signals import warn
from kept.model import (
    LOW_TRUST,
    TRUSTS,
    Alias,
    Allowance,
    CallGuard,
    Conflict,
    Event,
    Memory,
    Message,
    Record,
    Rejection,
    SessionRecord,
    Trust,
    least,
    replace,
)
from kept.ports import ANYWHERE, LIVE, Stamp, Storage, Transaction, Where
from kept.projects.files import check_session_name, mirror_session, write_session_index
from kept.writing.conflicts import find_rivals
from kept.writing.duplicates import Known, is_guarded
from kept.writing.pipeline import WriteRules
from kept.writing.rejections import Rejections

MOST_TWINS = 100
BATCH = 200  # records per transaction
_MARKS = ("checked", "flushed", "ended", "finished_at", "summary")  # of a session: how far it was worked on


class JoinOptions(Struct, frozen=True, kw_only=True):
    """How pieces are joined with a space."""

    stamp: Stamp
    session_stamp: Stamp  # an undo takes back memories; a transcript is only added to
    rules: WriteRules | None  # for checks and redaction; None: the pieces come from a store of the same home
    most_trust: Trust = "user"  # nothing that comes is trusted more
    action: str = IMPORT  # in the journal, for a record that is new here
    known: Literal["join", "keep", "extend"] = (
        "join"  # a record that is here: joined, left, or an alias gets more words
    )
    skips_twins: bool = False  # leave out a memory whose text or key another one has here
    compares: bool = True  # find the conflicts and doubles of new memories
    session_names: Mapping[str, str] = {}  # their name → the name here, where that was decided before
    may_allow: bool = True
    may_guard: bool = True  # bring guards, and change the memories of those that are here
    dry_run: bool = False


class MergeReport(Struct, kw_only=True):
    """The result of an import or a merge, counted in records."""

    stored: int = 0  # memories that are new here
    changed: int = 0  # memories of which the other side knew something newer
    known: int = 0
    duplicates: int = 0  # another memory says the same, so one of the two is archived, or was not stored
    conflicts: int = 0  # disagreements that a person should settle
    messages: int = 0
    others: dict[str, int] = {}  # sessions, tasks, aliases … that are new or changed, by noun
    refused: dict[str, int] = {}  # by reason
    dry_run: bool = False


class _Undone(Exception):
    """Ends the transaction of a dry run."""


class Joiner:
    """Joins pieces with one space, and counts them in `done`."""

    def __init__(self, storage: Storage, options: JoinOptions, done: MergeReport | None = None) -> None:
        self.done = MergeReport(others={}, refused={}, dry_run=options.dry_run) if done is None else done
        self.grown = 0  # by how many live memories
        self.storage = storage
        self._options = options
        self._stamp = options.stamp
        self._cleaner = Cleaner(options.rules)
        self._heirs: dict[str, str | None] = {}
        self._seen: set[str] = set()  # uids that these pieces have brought so far
        self._live_there: dict[str, Memory] = {}
        self._touched: dict[str, Memory | None] = {}  # uid → the memory as it was here before
        self._added: list[str] = []
        self._sessions: dict[str, str] = {}  # their name → the name here
        self._met: set[str] = set()  # names of sessions that were here before
        self._packed: dict[str, datetime] = {}
        self._arrived: list[Memory] = []
        with storage.reading() as reader:
            newest = reader.select(ANYWHERE, limit=1)
            self._last_id = newest[0].id if newest else 0
            self._is_new = not reader.events(limit=1)
            self._keeps_refs: bool | None = None if newest else True

    def take(self, batch: Iterable[Piece]) -> Mapping[str, str | None]:
        """Join one batch, in one transaction.

        Returns, for each memory of it, the uid of the memory that stands for it here; None if its text was erased here.
        """
        self._heirs = {}
        with suppress(_Undone), self.storage.writing(self._stamp) as tx:
            self._added, self._arrived = [], []
            for piece in batch:
                tx.restamp(self._stamp)
                self._take(tx, piece)
            tx.restamp(self._stamp)
            tx.put_many(self._arrived, IMPORT)
            if self._options.compares and not self._is_new:
                self._compare(tx)
            self._pack(tx)
            if self._options.dry_run:
                raise _Undone
        return self._heirs

    def mirror_sessions(self, folder: Path) -> None:
        """Write the files of the sessions that came. They are copies: if that fails, the next message mends them."""
        if not self._sessions:
            return
        try:
            with self.storage.reading() as reader:
                for name in self._sessions.values():
                    session = reader.session(name)
                    if session is not None and session.packed_at is None:
                        mirror_session(folder, reader, name)
            write_session_index(folder, self.storage.reading)
        except KeptError as error:
            warn("the files of the sessions could not be written: %s", error.message)

    def _take(self, tx: Transaction, piece: Piece) -> None:
        takers: Mapping[type[Record] | None, Callable[[Transaction, Piece], None]] = {
            None: self._take_messages,
            Memory: self._take_memory,
            Conflict: self._take_conflict,
            SessionRecord: self._take_session,
        }
        try:
            takers.get(piece.noun, self._take_small)(tx, piece)
        except (InvalidInput, msgspec.ValidationError):  # a record that no store can hold
            self._refuse("invalid")

    def _refuse(self, reason: str) -> None:
        self.done.refused[reason] = self.done.refused.get(reason, 0) + 1

    def _count(self, noun: str) -> None:
        self.done.others[noun] = self.done.others.get(noun, 0) + 1

    # Memories

    def _take_memory(self, tx: Transaction, piece: Piece) -> None:
        if not isinstance(piece.record, Memory):
            return
        uid = check_uid(piece.record.uid)
        if not piece.record.is_archived:
            self._live_there[uid] = piece.record
        is_unknown = self._is_new and uid not in self._seen  # need not be looked up, one by one
        mine = None if is_unknown else by_uid(tx, uid)
        my_events = [] if is_unknown else tx.events(subject=uid)
        if mine is not None and self._is_known(mine, my_events, piece.record, piece.history):
            self.done.known += 1
            self._heirs[uid] = uid
            self._seen.add(uid)
            return
        theirs, history = self._cleaner.clean(piece.record, piece.history)
        theirs = self._as_ours(theirs)
        if mine is None and (reason := self._refusal(tx, theirs, my_events)) is not None:
            self._refuse(reason)
            self._heirs[uid] = None
            return
        if not self._is_new:
            theirs, history = memory_without_erased(tx, theirs, history)
        if mine is not None:
            self._join_memory(tx, mine, my_events, theirs, history)
        elif not self._has_twin(tx, theirs):
            self._add_memory(tx, theirs, history)

    def _refusal(self, tx: Transaction, theirs: Memory, my_events: list[Event]) -> str | None:
        """Return why a memory that is not here may not come: it was erased or rejected here."""
        if not self._is_new and _was_erased(tx, theirs, my_events):
            return "erased"
        return "rejected" if self._is_rejected(tx, theirs) else None

    def _is_rejected(self, tx: Transaction, theirs: Memory) -> bool:
        """Return True for a live memory that was rejected here, unless a person or a memory here has said it since."""
        rejected = [] if theirs.is_archived else Rejections(tx).of(theirs)
        if not rejected or any(one.status != "candidate" for one in tx.select(_same_text(theirs), limit=MOST_TWINS)):
            return False
        return theirs.source.origin != "user" or theirs.created_at < max(one.at for one in rejected)

    def _follow_rejection(self, tx: Transaction, rejection: Rejection) -> None:
        """Forget the memory that was rejected elsewhere, unless it was changed here since."""
        memory = rejected_since(tx, rejection)
        if memory is not None and (self._options.may_guard or not is_guarded(tx, memory)):
            put_away(tx, memory, None, MERGE)
            self.grown -= 1
            self.done.changed += 1

    def _has_twin(self, tx: Transaction, theirs: Memory) -> bool:
        """Find another memory here with the same text or key, if the options say that one of the two is enough."""
        if not self._options.skips_twins:
            return False
        twins = [] if theirs.is_archived else tx.select(_same_text(theirs), limit=MOST_TWINS, oldest_first=True)
        # A text of a user or agent is not left out because a tool said the same.
        twins = [twin for twin in twins if theirs.is_low_trust or not twin.is_low_trust]
        if theirs.key is not None and not twins:
            twins = tx.select(replace(ANYWHERE, key=theirs.key), limit=1)
        if twins:
            self.done.duplicates += 1
            self._heirs[theirs.uid] = twins[0].uid
        return bool(twins)

    def _is_known(self, mine: Memory, my_events: list[Event], theirs: Memory, history: Iterable[Event]) -> bool:
        if self._keeps_refs is None:
            self._keeps_refs = mine.id == theirs.id
        if self._options.known != "join":
            return True
        told = joining.carried(history)
        return not joining.news(my_events, told) and (bool(told) or theirs.updated_at <= mine.updated_at)

    def _add_memory(self, tx: Transaction, theirs: Memory, history: list[Event]) -> None:
        theirs = self._with_free_key(tx, theirs)
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
            current = tx.add(replace(theirs, id=id), self._options.action)
        else:  # also where nothing differs: it says with which import the memory came
            current = replace(theirs, id=current.id)
            self._arrived.append(current)
        self._last_id = max(self._last_id, current.id)
        self.done.stored += 1
        self.grown += not current.is_archived
        self._added.append(current.uid)
        self._note_seen(current.uid)
        if not self._is_new:
            self._touched[current.uid] = None

    def _note_seen(self, uid: str) -> None:
        self._seen.add(uid)
        self._heirs[uid] = uid

    def _with_free_key(self, tx: Transaction, theirs: Memory) -> Memory:
        """A key names one memory: of two that have it, the one that was said first keeps it."""
        for other in tx.select(replace(ANYWHERE, key=theirs.key), limit=1) if theirs.key is not None else ():
            if _first_said(theirs) < _first_said(other):
                tx.put(replace(other, key=None), MERGE)
            else:
                theirs = replace(theirs, key=None)
        return theirs

    def _own_ref(self, tx: Transaction, theirs: Memory) -> int:
        """The id that it has there, where that is free and was never given; else 0, the next one."""
        if self._keeps_refs is None:  # an import that was cut short goes on with the refs it began with
            self._keeps_refs = (first := tx.get(Memory, theirs.id)) is not None and first.uid in self._seen
        is_next = self._is_new and theirs.id == self._last_id + 1
        return theirs.id if self._keeps_refs and theirs.id > self._last_id and not is_next else 0

    def _join_memory(
        self, tx: Transaction, mine: Memory, my_events: list[Event], theirs: Memory, history: list[Event]
    ) -> None:
        if not self._options.may_guard and is_guarded(tx, mine):
            self.done.known += 1
            self._note_seen(mine.uid)
            return
        target = joining.joined(mine, my_events, theirs, history)
        assert isinstance(target, Memory)
        lost = joining.older_text(mine, my_events, theirs, history, target)
        current = mine
        for event in joining.news(my_events, history):
            after = joining.applied(current, event, Memory)
            if isinstance(after, Memory):
                tx.restamp(_stamp_of(event))
                current = tx.put(replace(self._as_ours(after), id=mine.id, uid=mine.uid, key=mine.key), event.action)
        tx.restamp(self._stamp)
        target = self._not_raised(mine, replace(target, key=mine.key))
        if target != current:
            current = tx.put(target, MERGE)
        self.grown += mine.is_archived - current.is_archived
        self.done.changed += 1
        self._note_seen(mine.uid)
        self._touched[mine.uid] = mine
        if lost is not None and by_uid(tx, lost.uid) is None:
            self._last_id = max(self._last_id, tx.add(lost, MERGE).id)
            self._touched[lost.uid] = None
            self._note_conflict(tx, target, lost, "contradictory", "revised in two places")

    def _not_raised(self, mine: Memory, target: Memory) -> Memory:
        """The target; a file that an agent brings neither raises nor lowers a live memory that says the same."""
        is_same = target.content == mine.content and not target.is_archived and not mine.is_archived
        if self._options.most_trust == "user" or not is_same:
            return target
        return replace(target, status=mine.status, trust=mine.trust)

    def settle_doubles(self) -> None:
        """Of two memories that only now stand beside each other and say the same, archive one."""
        touched = list(self._touched)
        for start in range(0, len(touched), BATCH):
            with suppress(_Undone), self.storage.writing(self._stamp) as tx:
                for uid in touched[start : start + BATCH]:
                    if (memory := by_uid(tx, uid)) is not None:
                        self._settle_doubles(tx, memory)
                if self._options.dry_run:
                    raise _Undone

    def _settle_doubles(self, tx: Transaction, memory: Memory) -> None:
        """Archive one of two that say the same, or that are the latest word on one topic."""
        if memory.is_archived or memory.tier == "task":
            return
        for field, other in _doubles_of(tx, memory):
            if self._were_together(memory, other, field):
                continue
            order = _first_said if field == "fingerprint" else _last_said
            stays, goes = sorted((memory, other), key=order)
            tx.put(goes.archived("superseded", self._stamp.at, superseded_by=stays.uid), MERGE)
            self.done.duplicates += 1
            self.grown -= 1
            if goes.uid == memory.uid:
                return

    def _were_together(self, one: Memory, other: Memory, field: str) -> bool:
        """Whether both were live with the same text or topic before, here or there: then it was meant so."""
        here = [self._touched.get(memory.uid, memory) for memory in (one, other)]
        there = [self._live_there.get(memory.uid) for memory in (one, other)]
        return any(_are_live_and_alike(pair, field) for pair in (here, there))

    def _compare(self, tx: Transaction) -> None:
        """Find what the new memories of this batch say against those that were here before."""
        added = (by_uid(tx, uid) for uid in self._added)
        new = [memory for memory in added if memory is not None and _can_disagree(memory)]
        known = Known(tx, new)
        for memory in new:
            alike = [other for other in known.alike(memory) if other.uid not in self._seen]
            for rival in find_rivals(tx, memory, alike):
                kind = "contradictory" if rival.type == "superseded" else rival.type
                self._note_conflict(tx, memory, rival.memory, kind, rival.rule)

    def _note_conflict(self, tx: Transaction, one: Memory, other: Memory, type: Any, rule: str) -> None:
        older, newer = sorted((one, other), key=lambda memory: (memory.created_at, memory.updated_at, memory.uid))
        if _conflict_between(tx, older.uid, newer.uid) is None:
            at = self._stamp.at
            tx.add(Conflict(left=newer.uid, right=older.uid, type=type, rule=rule, detected_at=at), MERGE)
            self.done.conflicts += 1

    def _as_ours(self, memory: Memory) -> Memory:
        most, session = self._options.most_trust, memory.source.session
        source = replace(memory.source, session=self._sessions.get(session, session)) if session else memory.source
        trust = memory.trust if memory.is_low_trust else least(memory.trust, most)
        # A file can claim that it was confirmed or pinned: without a person to say so, it is a candidate.
        status = memory.status if most == "user" or memory.is_archived else "candidate"
        return replace(memory, space=self.storage.space, source=source, trust=trust, status=status)

    # Everything else

    def _take_conflict(self, tx: Transaction, piece: Piece) -> None:
        theirs = piece.record
        if not isinstance(theirs, Conflict) or by_uid(tx, theirs.left) is None or by_uid(tx, theirs.right) is None:
            return
        mine = _conflict_between(tx, theirs.left, theirs.right)
        if mine is None:
            tx.add(replace(theirs, id=0), self._options.action)
            self.done.conflicts += theirs.resolved_at is None
        elif self._options.known == "join":
            settled = [one.resolved_at for one in (mine, theirs) if one.resolved_at is not None]
            if settled and mine.resolved_at != min(settled):
                tx.put(replace(mine, resolved_at=min(settled)), MERGE)

    def _take_small(self, tx: Transaction, piece: Piece) -> None:
        """A task, an alias, a pause, an allowance, a guard or a rejection: known by its name."""
        assert piece.noun is not None
        if not self._may_take(piece.noun):
            self._refuse("not_allowed")
            return
        theirs, history = self._cleaner.clean(piece.record, piece.history)
        if isinstance(theirs, Allowance):
            self._cleaner.allow(theirs.digest)
        mine = next((record for record in tx.all(piece.noun) if record.subject == piece.subject), None)
        my_events = tx.events(subject=piece.subject)
        if mine is None and _has_erasure(my_events):
            self._refuse("erased")
            return
        if self._options.known == "join":
            now = self._join_small(tx, piece.noun, (mine, my_events), (theirs, history))
        else:
            now = self._add_small(tx, mine, theirs)
        if not _is_same(mine, now):
            self._count(piece.noun.noun)
            if isinstance(now, Rejection):
                self._follow_rejection(tx, now)

    def _may_take(self, noun: type[Record]) -> bool:
        """Return False for an allowance or a guard, unless a person brings it."""
        if noun is Allowance:
            return self._options.may_allow
        return noun is not CallGuard or self._options.may_guard

    def _add_small(self, tx: Transaction, mine: Record | None, theirs: Record | None) -> Record | None:
        """Add a record that is not here. One that is here stays; an alias may get more words."""
        if mine is None and theirs is not None:
            return tx.add(replace(theirs, id=0), self._options.action)
        if self._options.known == "extend" and isinstance(mine, Alias) and isinstance(theirs, Alias):
            words = tuple(dict.fromkeys((*mine.expands_to, *theirs.expands_to)))
            return mine if words == mine.expands_to else tx.put(replace(mine, expands_to=words), self._options.action)
        return mine

    def _join_small(
        self,
        tx: Transaction,
        noun: type[Record],
        ours: tuple[Record | None, list[Event]],
        theirs: tuple[Record | None, list[Event]],
    ) -> Record | None:
        """Join two versions of a record, each given with its history."""
        mine, my_events = ours
        fresh = joining.news(my_events, theirs[1])
        if not fresh and (mine is not None or theirs[0] is None or my_events):
            return mine
        now = mine
        for event in fresh:
            after = joining.applied(now, event, noun)
            tx.restamp(_stamp_of(event))
            now = _moved(tx, now, after, event.action)
        tx.restamp(self._stamp)
        target = joining.outcome(*ours, *theirs)
        return now if _is_same(target, now) else _moved(tx, now, target, MERGE)

    def _take_session(self, tx: Transaction, piece: Piece) -> None:
        if not isinstance(piece.record, SessionRecord):
            return
        checked, history = self._cleaner.clean(piece.record, piece.history)
        check_session_name(checked.name)
        name = self._sessions[checked.name] = self._name_here(tx, checked)
        parent = self._sessions.get(checked.parent or "", checked.parent)
        theirs = replace(checked, name=name, parent=parent, id=0)
        if theirs.packed_at is not None:
            self._packed[name] = theirs.packed_at
        mine = tx.session(name)
        tx.restamp(self._options.session_stamp)
        if mine is None:
            tx.add(replace(theirs, packed_at=None), self._options.action)
            self._count("session")
            return
        self._met.add(name)
        if self._options.known == "join":
            self._join_session(tx, mine, theirs, history)

    def _join_session(self, tx: Transaction, mine: SessionRecord, theirs: SessionRecord, history: list[Event]) -> None:
        """Take over how far the other side worked on a session, if it got further there."""
        if theirs.ended < mine.ended or not joining.news(tx.events(subject=mine.subject), history):
            return
        marks = {one: getattr(theirs, one) for one in _MARKS}
        if replace(mine, **marks) != mine:
            tx.put(replace(mine, **marks, findings=theirs.findings, promoted=theirs.promoted), MERGE)

    def _name_here(self, tx: Transaction, theirs: SessionRecord) -> str:
        """Its name; another one if a different conversation has that name here."""
        if theirs.name in self._options.session_names:
            return self._options.session_names[theirs.name]
        mine = tx.session(theirs.name)
        if mine is None or mine.started_at == theirs.started_at:
            return theirs.name
        return f"{theirs.name[:100]}-{text.fingerprint(f'{theirs.name} {theirs.started_at.isoformat()}')[:8]}"

    def _take_messages(self, tx: Transaction, piece: Piece) -> None:
        name = self._sessions.get(piece.session)
        if name is None:
            self._refuse("invalid")
            return
        said = [self._cleaner.message(message) for message in piece.messages]
        said = [replace(self._capped(message), session=name) for message in messages_without_erased(tx, name, said)]
        session = tx.session(name)
        added = tx.append(_unlike(said, tx.messages(name) if name in self._met else ()))
        self.done.messages += len(added)
        if added and session is not None and session.packed_at is not None:
            tx.restamp(self._options.session_stamp)
            tx.put(replace(session, packed_at=None), MERGE)

    def _pack(self, tx: Transaction) -> None:
        """Pack the sessions of this batch that were packed there, unless they were longer here."""
        tx.restamp(self._options.session_stamp)
        for name, at in self._packed.items():
            session = tx.session(name)
            if session is not None and session.packed_at is None:
                tx.pack(name)
                tx.put(replace(session, packed_at=at), MERGE)
        self._packed = {}

    def _capped(self, message: Message) -> Message:
        is_low = message.trust in LOW_TRUST
        return message if is_low else replace(message, trust=least(message.trust, self._options.most_trust))


def _was_erased(tx: Transaction, memory: Memory, events: Iterable[Event]) -> bool:
    return tx.is_erased(memory.fingerprint) or _has_erasure(events)


def _has_erasure(events: Iterable[Event]) -> bool:
    return any(event.action == "erase" for event in events)


def _same_text(memory: Memory) -> Where:
    """Live memories with the same text that live as long; a task's notes are archived when it ends."""
    fingerprints, scope = (memory.fingerprint,), memory.scope
    if memory.tier == "task":
        return replace(LIVE, fingerprints=fingerprints, scope=scope, tiers=("task",), task=memory.source.task)
    return replace(LIVE, fingerprints=fingerprints, scope=scope, tiers=("session", "project", "global"))


def _doubles_of(tx: Transaction, memory: Memory) -> list[tuple[str, Memory]]:
    """Other live memories with the same topic or text, each with the name of the field that they share."""
    doubles: dict[str, tuple[str, Memory]] = {}
    if memory.topic is not None:
        of_topic = Where(topic=memory.topic, scope=memory.scope)
        doubles |= {other.uid: ("topic", other) for other in tx.select(of_topic, limit=MOST_TWINS)}
    same = Where(fingerprints=(memory.fingerprint,), scope=memory.scope)
    doubles |= {other.uid: ("fingerprint", other) for other in tx.select(same, limit=MOST_TWINS)}
    return [double for uid, double in sorted(doubles.items()) if uid != memory.uid and double[1].tier != "task"]


def _are_live_and_alike(pair: Iterable[Memory | None], field: str) -> bool:
    live = [memory for memory in pair if memory is not None and not memory.is_archived]
    return len(live) == 2 and getattr(live[0], field) == getattr(live[1], field)


def _can_disagree(memory: Memory) -> bool:
    return not memory.is_archived and memory.scope == "memory" and memory.tier != "task"


def _conflict_between(tx: Transaction, one: str, other: str) -> Conflict | None:
    return next((found for found in tx.all(Conflict) if {found.left, found.right} == {one, other}), None)


def _is_same(one: Record | None, other: Record | None) -> bool:
    """Whether two versions say the same, whatever their ids are."""
    return (one and replace(one, id=0)) == (other and replace(other, id=0))


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
