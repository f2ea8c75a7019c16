"""Join the statements of a team's ref with the project, by the same `Joiner` as an import.

Rule: a teammate changes only memories that are shared here. Authors whom no person has accepted add statements of
unknown trust and change those; their changes to all other statements wait. A change that is here already stays as it
came: no later commit makes it say something else, or lowers its trust.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from kept import text
from kept.exchange import joining, team_files
from kept.exchange.joining import MERGE
from kept.exchange.portable import Piece
from kept.exchange.team_files import TeamChange
from kept.journal import wire
from kept.memory.change import put_away
from kept.memory.context import SHARED, Context, by_uid
from kept.memory.joiner import BATCH, Joiner, JoinOptions, MergeReport
from kept.memory.team_state import (
    CLAIMED,
    ORIGINS,
    SHARE,
    Claimed,
    RefState,
    TeamExchange,
    accepted_authors,
    archiving_event,
    has_secret,
    is_shared,
    mark_shared,
    notes_of,
    own_ends,
    told_fields,
    words_of,
)
from kept.model import PROPOSAL, PROPOSED, REJECTED, Event, Memory, Source, Trust, replace
from kept.ports import Stamp, Storage, Transaction
from kept.projects.team_ref import Author
from kept.storage.shared import random_hex
from kept.writing.redact import redact

ACCEPT = "accept author"
MOST_AHEAD = timedelta(days=1)  # of a clock elsewhere; a later date would win over every other change
OUR_TAGS = {PROPOSED, PROPOSAL, REJECTED}  # they mean a decision that was made here
BACK: dict[str, Any] = {"status": "confirmed", "reason": None, "archived_at": None, "superseded_by": None}


def join_statements(context: Context, state: RefState, done: TeamExchange) -> None:
    """Join the statements of the ref with the project."""
    storage = context.owned()
    done.refused, done.removed = dict(state.refused), []
    accepted = accepted_authors(storage)
    stamp = context.stamp()
    sorting = _Sorting(context, storage.space, accepted)
    with storage.reading() as reader:
        notes = notes_of(reader)
        for uid, claims in state.statements.items():
            sorting.add(_Here(uid, by_uid(reader, uid), reader.events(subject=uid), notes.get(uid, "")), claims)
    pieces = sorting.pieces
    done.waiting, done.unaccepted = len(sorting.waiting), sorted({str(one.author) for one in sorting.waiting})
    options = JoinOptions(
        stamp=stamp, session_stamp=stamp, rules=context.rules(), action=SHARE, may_allow=False, may_guard=False
    )
    _end(storage, stamp, sorting.ends, done)  # first, or a statement that comes would be the double of one that goes
    joiner = Joiner(storage, options)
    for start in range(0, len(pieces), BATCH):
        batch = pieces[start : start + BATCH]
        _note_arrivals(storage, stamp, batch)
        joiner.take(batch)
    joiner.settle_doubles()
    _set_trust(storage, replace(stamp, group=random_hex(8)), state, accepted)
    _share_lost_texts(storage, stamp)
    _count(joiner.done, sorting.refused, done)
    context.tell_write(storage, joiner.grown - len(done.removed))


def _count(joined: MergeReport, refused: Counter[str], done: TeamExchange) -> None:
    done.added, done.changed, done.known = joined.stored, joined.changed, joined.known
    done.conflicts = joined.conflicts
    done.refused = dict(+(Counter(done.refused) + refused + Counter(joined.refused)))


class _Here(NamedTuple):
    """A statement of the ref beside the memory of this project."""

    uid: str
    mine: Memory | None
    events: list[Event]
    note: str

    @property
    def groups(self) -> set[str]:
        return {event.group for event in self.events}

    @property
    def is_private(self) -> bool:
        """Return True for a memory that is not shared here, or that is to be taken back with the next push."""
        return self.note.startswith("-") or (self.mine is not None and not self.note)

    @property
    def is_forgotten(self) -> bool:
        return self.mine is not None and self.mine.is_forgotten

    @property
    def is_of_a_stranger(self) -> bool:
        """Return True if nothing here depends on it: it is new, or only authors who are not accepted have said it."""
        return self.mine is None or self.mine.is_low_trust

    def fields_of(self, group: str) -> dict[str, Any]:
        """Return the fields that a change of a teammate has set here."""
        came = [one for one in self.events if one.group == group and one.actor.endswith(CLAIMED)]
        fields = {name: now for one in came for name, now in told_fields(one).items()}
        return {name: tuple(now) if isinstance(now, list) else now for name, now in fields.items()}

    def made(self, change: TeamChange) -> bool:
        """Return True for a change of this store: its values are here, and the ref has no say in them."""
        return any(one.group == change.group and not one.actor.endswith(CLAIMED) for one in self.events)

    def before_sharing(self) -> list[Event]:
        """Return the events that the shared statement was made from: no revision that the others do not know."""
        shared = [event.seq for event in self.events if event.group == self.note]
        return [event for event in self.events if shared and event.seq < shared[0]]


class _Sorting:
    """Decides about the statements of the ref, one by one.

    `pieces` are joined, `ends` are taken back, and `waiting` changes need a person first.
    """

    def __init__(self, context: Context, space: str, accepted: Collection[str]) -> None:
        self.pieces: list[Piece] = []
        self.ends: dict[str, TeamChange] = {}
        self.waiting: list[Claimed] = []
        self.refused: Counter[str] = Counter()
        self._space, self._accepted = space, accepted
        self._latest, self._rules = context.now() + MOST_AHEAD, context.rules()

    def add(self, here: _Here, claims: Sequence[Claimed]) -> None:
        """Sort one statement."""
        if here.is_private:
            is_foreign = not here.note and team_files.standing(one.change for one in claims)
            self.refused["not_shared_here"] += bool(is_foreign)
            return
        sound = [one for one in claims if self._is_sound(here, one.change)]
        usable = self._counting(here, [self._as_it_came(here, one) for one in sound])
        end = team_files.withdrawal(one.change for one in usable)
        if end is not None:
            self.ends[here.uid] = end
        elif any(one.change.action == SHARE for one in usable) and not here.is_forgotten:
            self.pieces.append(_piece(self._space, here, usable, self._accepted))

    def _is_sound(self, here: _Here, change: TeamChange) -> bool:
        """Return False for a change of the future, which would win over all others, and for one with a secret."""
        if change.at > self._latest:
            self.refused["dated_ahead"] += 1
            return False
        is_safe = change.group in here.groups or not any(has_secret(word, self._rules) for word in words_of(change))
        self.refused["secret"] += not is_safe
        return is_safe

    def _as_it_came(self, here: _Here, claim: Claimed) -> Claimed:
        """Return a change that is here with the values that it has here; other ones are left out and counted."""
        change = claim.change
        if here.mine is None or change.takes_back or change.group not in here.groups:
            return claim
        fields = here.fields_of(change.group)
        said = fields.get("content")
        is_same = not (said and change.content) or text.fingerprint(said) == text.fingerprint(change.content)
        self.refused["rewritten"] += not is_same
        if is_same:
            return claim
        as_it_is: dict[str, Any] = dict.fromkeys(team_files.FIELDS) | fields
        return claim._replace(change=replace(change, **as_it_is))

    def _counting(self, here: _Here, claims: Sequence[Claimed]) -> Sequence[Claimed]:
        """Return the changes that count here; the others wait.

        Authors who are not accepted add statements of unknown trust and change those; they change no other statement.
        """
        ends = own_ends(here.events)
        here_before = {group for group in here.groups if group not in ends}
        known = [
            one
            for one in claims
            if self._is_accepted(one) or one.change.group in (ends if one.change.takes_back else here_before)
        ]
        self.waiting += [one for one in claims if one not in known]
        is_begun = any(one.change.action == SHARE and self._is_accepted(one) for one in claims)
        return claims if here.is_of_a_stranger and not is_begun else known

    def _is_accepted(self, claim: Claimed) -> bool:
        return claim.author.key in self._accepted


def _piece(space: str, here: _Here, claims: Sequence[Claimed], accepted: Collection[str]) -> Piece:
    """Return the statement with its history, as an import would bring it."""
    authors = {one.change.group: one.author for one in claims}
    first, *later = team_files.standing(one.change for one in claims)
    level = _level(authors[first.group].key, accepted)
    if here.mine is None:
        record = _born(space, here.uid, first, authors[first.group], level)
        events = [_event(record, first, authors[first.group], record.__struct_fields__)]
    else:
        record, events, later = here.mine, [], [first, *later]
    for change in later:
        author = authors[change.group]
        fields = {} if here.made(change) else _changed_fields(here, change, record, _level(author.key, accepted))
        record = replace(record, **fields)
        events.append(_event(record, change, author, (*fields, *(("id",) if change.action == SHARE else ()))))
    return Piece(space=space, noun=Memory, subject=here.uid, record=record, history=(*here.before_sharing(), *events))


def _level(key: str, accepted: Collection[str]) -> Trust:
    return "teammate" if key in accepted else "unknown"


def _changed_fields(here: _Here, change: TeamChange, record: Memory, level: Trust) -> dict[str, Any]:
    """Return the fields that a change sets in a memory. With its text comes the trust of its author."""
    fields = _fields(change) | {"updated_at": max(record.updated_at, change.at)}
    if "content" not in fields:
        return fields
    if here.mine is not None and change.group in here.groups:
        return fields | {"trust": here.mine.trust}
    # It was archived because another memory said the same, and now it says something else.
    return fields | {"trust": level} | (BACK if _was_ended_by_merge(here.events) else {})


def _fields(change: TeamChange) -> dict[str, Any]:
    fields = change.fields()
    if "content" in fields:
        fields["fingerprint"] = text.fingerprint(fields["content"])
    if "tags" in fields:
        fields["tags"] = tuple(tag for tag in fields["tags"] if tag not in OUR_TAGS)
    return fields


def _born(space: str, uid: str, change: TeamChange, author: Author, level: Trust) -> Memory:
    said_at = min(change.created_at or change.at, change.at)
    return Memory(
        uid=uid,
        space=space,
        trust=level,
        importance=0.5 if change.importance is None else change.importance,
        source=Source(origin="import", agent=_label(author)),
        created_at=said_at,
        updated_at=change.at,
        **_fields(change),
    )


def _label(author: Author) -> str:
    """Return the name of an author as a memory and the journal have it: in ASCII, without an address or a secret."""
    said = author.name.encode("ascii", "backslashreplace").decode()
    return text.visible(redact(" ".join(said.split()), email=True).text)[:100] or "teammate"


def _event(record: Memory, change: TeamChange, author: Author, names: Iterable[str]) -> Event:
    """Return the event of the journal that made the record, with the fields of these names."""
    now = wire(record) | {"id": 0}
    return Event(
        seq=0,
        group=change.group,
        at=change.at,
        actor=f"{_label(author)}{CLAIMED}",
        action=change.action,
        subject=record.uid,
        digest="",
        prev="",
        hash="",
        changed={name: (None, now[name]) for name in names},
    )


def _was_ended_by_merge(events: Sequence[Event]) -> bool:
    """Return True if a join archived the memory, because another one said the same."""
    ended = archiving_event(events)
    return ended is not None and ended.action == MERGE


def _note_arrivals(storage: Storage, stamp: Stamp, pieces: Sequence[Piece]) -> None:
    """Note the new statements as shared before they come: one that came without its note would count as private."""
    with storage.writing(stamp) as tx:
        known = notes_of(tx)
        for piece in pieces:
            was_erased = any(event.action == "erase" for event in tx.events(subject=piece.subject))
            if piece.subject not in known and not was_erased:
                tx.note_file(f"{SHARED}{piece.subject}", piece.history[0].group)


def _set_trust(storage: Storage, stamp: Stamp, state: RefState, accepted: Collection[str]) -> None:
    """Raise the statements of an author whom a person accepts, and lower those of one who is no longer accepted."""
    with storage.writing(stamp) as tx:
        notes, origins = notes_of(tx), tx.file_notes(ORIGINS)
        for name in origins.keys() - {f"{ORIGINS}{uid}" for uid in notes}:
            tx.note_file(name, None)
        for uid in notes:
            memory = by_uid(tx, uid)
            if memory is None or memory.trust not in ("unknown", "teammate"):
                continue
            noted = origins.get(f"{ORIGINS}{uid}", "")
            origin = _origin_of_text(memory, tx.events(subject=uid), noted, state.statements.get(uid, ()))
            if origin is not None:
                _set_level(tx, memory, origin, accepted)


class _Origin(NamedTuple):
    """The change that brought a text, and the author whom it counts as the words of."""

    group: str
    key: str

    def __str__(self) -> str:
        return f"{self.group} {self.key}"


def _set_level(tx: Transaction, memory: Memory, origin: _Origin, accepted: Collection[str]) -> None:
    """Give a memory the trust of its author, and note an accepted one: later commits may claim another."""
    now = replace(memory, trust=_level(origin.key, accepted))
    if now.trust == "teammate":
        tx.note_file(f"{ORIGINS}{memory.uid}", str(origin))
        now = replace(now, status="confirmed") if memory.status == "candidate" else now
    if now != memory:
        tx.put(now, ACCEPT)


def _origin_of_text(memory: Memory, events: Sequence[Event], noted: str, claims: Sequence[Claimed]) -> _Origin | None:
    """Return whose text a memory has here, by its note, else by the ref; None if it was written here."""
    texts = [one for one in events if one.actor.endswith(CLAIMED) and told_fields(one).get("content") == memory.content]
    if not texts:
        return None
    group, _, key = noted.partition(" ")
    if group == texts[-1].group:
        return _Origin(group, key)
    found = (one for one in claims if one.change.group == texts[-1].group)
    said = next((one for one in found if one.change.content == memory.content), None)
    return None if said is None else _Origin(said.change.group, said.author.key)


def _end(storage: Storage, stamp: Stamp, ends: Mapping[str, TeamChange], done: TeamExchange) -> None:
    """Forget the memories that teammates took back; one with a change of this store that they did not know stays."""
    with storage.writing(stamp) as tx:
        notes = notes_of(tx)
        for uid, end in ends.items():
            memory = by_uid(tx, uid)
            if not is_shared(tx, uid):
                continue
            if memory is None or memory.is_forgotten:
                tx.note_file(f"{SHARED}{uid}", None)
            elif _is_changed_here(tx.events(subject=uid), notes[uid], end):
                tx.note_file(f"{SHARED}{uid}", None)
                done.notes.append(
                    f"A teammate took {memory.ref} back, but it was changed here meanwhile: it stays, no longer shared."
                )
            else:
                put_away(tx, memory, None, MERGE)
                tx.note_file(f"{SHARED}{uid}", None)
                _bring_back_doubles(tx, uid)
                done.removed.append(memory.ref)


def _bring_back_doubles(tx: Transaction, uid: str) -> None:
    """Bring shared memories back that were archived because the memory that went said the same."""
    others = filter(None, (by_uid(tx, one) for one in notes_of(tx)))
    for other in (one for one in others if one.superseded_by == uid and one.reason == "superseded"):
        if _was_ended_by_merge(tx.events(subject=other.uid)):
            tx.put(replace(other, **BACK), MERGE)


def _is_changed_here(events: Sequence[Event], shared: str, end: TeamChange) -> bool:
    """Return True if the end does not name a change that was made here; without names, if one is later than it."""
    changes = [event for event in joining.carried(events) if told_fields(event)]
    if end.seen is None:
        return any((event.at, event.group) > (end.at, end.group) for event in changes)
    begun = next((event.seq for event in events if event.group == shared), 0)
    own = [event for event in changes if event.seq > begun and not event.actor.endswith(CLAIMED)]
    return any(event.group not in end.seen for event in own)


def _share_lost_texts(storage: Storage, stamp: Stamp) -> None:
    """Share the older text of a statement that two people revised at once: its author may be the other one."""
    with storage.reading() as reader:
        born = [event.subject for event in reader.events(group=stamp.group) if event.action == MERGE and _adds(event)]
        found = [by_uid(reader, uid) for uid in born]
    lost = [memory for memory in found if memory is not None and not memory.is_low_trust]
    if lost:
        with storage.writing(replace(stamp, group=random_hex(8))) as tx:
            for memory in lost:
                mark_shared(tx, memory)


def _adds(event: Event) -> bool:
    return (event.changed or {}).get("id", (0, 0))[0] is None
