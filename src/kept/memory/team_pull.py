"""Join the statements of a team's ref with the project, by the same `Joiner` as an import.

Rule: a teammate changes only memories that are shared here. Authors whom no person has accepted add statements of
unknown trust and change those; their changes to all other statements wait.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from kept import text
from kept.exchange import joining, team_files
from kept.exchange.joining import MERGE
from kept.exchange.portable import Piece
from kept.exchange.team_files import TeamChange
from kept.journal import wire
from kept.memory.change import put_away
from kept.memory.context import SHARED, Context, by_uid
from kept.memory.joiner import BATCH, Joined, Joiner, JoinOptions
from kept.memory.team_state import (
    CLAIMED,
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
    own_groups,
    told_fields,
    words_of,
)
from kept.model import LOW_TRUST, PROPOSAL, PROPOSED, REJECTED, Event, Memory, Source, Trust, replace
from kept.ports import Stamp, Storage, Transaction
from kept.projects.team_ref import Author
from kept.storage.shared import random_hex
from kept.writing.pipeline import WriteRules
from kept.writing.redact import redact

ACCEPT = "accept author"
MOST_AHEAD = timedelta(days=1)  # of a clock elsewhere; a later date would win over every other change
OUR_TAGS = {PROPOSED, PROPOSAL, REJECTED}  # they mean a decision that was made here
BACK: Mapping[str, Any] = {"status": "confirmed", "reason": None, "archived_at": None, "superseded_by": None}


def join_statements(context: Context, state: RefState, done: TeamExchange) -> None:
    """Join the statements of the ref with the project."""
    storage = context.owned()
    done.refused, done.removed = dict(state.refused), []
    accepted = accepted_authors(storage)
    stamp = context.stamp()
    pieces, ends, waiting = _sorted_out(context, storage, state, accepted, done)
    done.waiting, done.unaccepted = len(waiting), sorted({str(one.author) for one in waiting})
    options = JoinOptions(
        stamp=stamp, session_stamp=stamp, rules=context.rules(), action=SHARE, may_allow=False, may_guard=False
    )
    _end(storage, stamp, ends, done)  # first, or a statement that comes would be the double of one that goes
    joiner = Joiner(storage, options)
    for start in range(0, len(pieces), BATCH):
        batch = pieces[start : start + BATCH]
        _note_arrivals(storage, stamp, batch)
        joiner.take(batch)
    joiner.settle_doubles()
    _set_trust(storage, replace(stamp, group=random_hex(8)), state, accepted)
    _share_lost_texts(storage, stamp)
    _count(joiner.done, done)
    context.tell_write(storage, joiner.grown - len(done.removed))


def _count(joined: Joined, done: TeamExchange) -> None:
    done.added, done.changed, done.known = joined.stored, joined.changed, joined.known
    done.conflicts = joined.conflicts
    for reason, number in joined.refused.items():
        done.refused[reason] = done.refused.get(reason, 0) + number


class _Here(NamedTuple):
    """A statement of the ref beside the memory of this project."""

    uid: str
    mine: Memory | None
    events: list[Event]
    note: str

    @property
    def groups(self) -> set[str]:
        return {event.group for event in self.events}

    def before_sharing(self) -> list[Event]:
        """Return the events that the shared statement was made from: no revision that the others do not know."""
        shared = [event.seq for event in self.events if event.group == self.note]
        return [event for event in self.events if shared and event.seq < shared[0]]


def _sorted_out(
    context: Context, storage: Storage, state: RefState, accepted: Collection[str], done: TeamExchange
) -> tuple[list[Piece], dict[str, TeamChange], list[Claimed]]:
    """Decide about each statement: the pieces to join, the memories that others took back, and what has to wait."""
    pieces: list[Piece] = []
    ends: dict[str, TeamChange] = {}
    waiting: list[Claimed] = []
    latest, rules = context.now() + MOST_AHEAD, context.rules()
    with storage.reading() as reader:
        notes = notes_of(reader)
        for uid, claims in state.statements.items():
            here = _Here(uid, by_uid(reader, uid), reader.events(subject=uid), notes.get(uid, ""))
            if not here.note and not team_files.standing(one.change for one in claims):
                continue
            if (reason := _refusal(here, claims, latest, rules)) is not None:
                done.refused[reason] = done.refused.get(reason, 0) + 1
                continue
            usable, late = _usable(here, claims, accepted)
            waiting += late
            end = team_files.withdrawal(one.change for one in usable)
            if not team_files.standing(one.change for one in usable):
                ends |= {} if end is None else {uid: end}
            elif here.mine is None or not here.mine.is_forgotten:
                pieces.append(_piece(storage.space, here, usable, accepted))
    return pieces, ends, waiting


def _refusal(here: _Here, claims: Sequence[Claimed], latest: datetime, rules: WriteRules) -> str | None:
    """Return why a file of the ref is left alone."""
    if here.note.startswith("-") or (here.mine is not None and not here.note):
        return "not_shared_here"
    if any(one.change.at > latest for one in claims):
        return "dated_ahead"
    said = {word for one in claims for word in words_of(one.change) if one.change.group not in here.groups}
    return "secret" if any(has_secret(word, rules) for word in said) else None


def _usable(
    here: _Here, claims: Sequence[Claimed], accepted: Collection[str]
) -> tuple[Sequence[Claimed], list[Claimed]]:
    """Return the changes that count here, and those that wait for a person.

    Authors who are not accepted add statements of unknown trust and change their own; they change no other statement.
    """
    is_theirs = here.mine is None or here.mine.trust in LOW_TRUST
    known = [one for one in claims if one.author.key in accepted or one.change.group in here.groups]
    others = [one for one in claims if one not in known]
    is_begun = any(one.change.action == SHARE and one.author.key in accepted for one in claims)
    if is_theirs and not is_begun:
        return claims, others
    return known, others


def _piece(space: str, here: _Here, claims: Sequence[Claimed], accepted: Collection[str]) -> Piece:
    """Return the statement with its history, as an import would bring it."""
    authors = {one.change.group: one.author for one in claims}
    changes = team_files.standing(one.change for one in claims)
    is_back = here.mine is not None and _was_ended_by_merge(here.events)
    record, events = here.mine, []
    for change in changes:
        author = authors[change.group]
        level: Trust = "teammate" if author.key in accepted else "unknown"
        if record is None:
            record = _born(space, here.uid, change, author, level)
            changed = {name: (None, value) for name, value in wire(record).items()}
        else:
            fields = _fields(change) | {"updated_at": max(record.updated_at, change.at)}
            if "content" in fields:
                is_known = here.mine is not None and change.group in here.groups
                fields["trust"] = here.mine.trust if here.mine is not None and is_known else level
                fields |= BACK if is_back and not is_known else {}
            record = replace(record, **fields)
            now = wire(record)
            changed = {name: (None, now[name]) for name in fields} | (
                {"id": (None, 0)} if change.action == SHARE else {}
            )
        events.append(_event(here.uid, change, author, changed))
    assert record is not None
    return Piece(space=space, noun=Memory, subject=here.uid, record=record, history=(*here.before_sharing(), *events))


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


def _event(uid: str, change: TeamChange, author: Author, changed: dict[str, tuple[Any, Any]]) -> Event:
    return Event(
        seq=0,
        group=change.group,
        at=change.at,
        actor=f"{_label(author)}{CLAIMED}",
        action=change.action,
        subject=uid,
        digest="",
        prev="",
        hash="",
        changed=changed,
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
        for uid in state.statements.keys() & notes_of(tx).keys():
            memory = by_uid(tx, uid)
            if memory is None or memory.trust not in ("unknown", "teammate"):
                continue
            groups = {event.group for event in tx.events(subject=uid)}
            own = [one for one in state.statements[uid] if one.change.group in groups and one.change.content]
            level: Trust = "teammate" if own and own[-1].author.key in accepted else "unknown"
            is_mine = bool(own) and own[-1].change.group in own_groups(tx, uid)
            if own and not is_mine and level != memory.trust:
                raised = replace(memory, trust=level)
                is_told = level == "teammate" and not memory.is_archived
                tx.put(replace(raised, status="confirmed") if is_told else raised, ACCEPT)


def _end(storage: Storage, stamp: Stamp, ends: Mapping[str, TeamChange], done: TeamExchange) -> None:
    """Forget the memories that teammates took back, unless they were changed here since: then they stay, unshared."""
    with storage.writing(stamp) as tx:
        for uid, end in ends.items():
            memory, events = by_uid(tx, uid), tx.events(subject=uid)
            if not is_shared(tx, uid):
                continue
            if memory is None or memory.is_forgotten:
                tx.note_file(f"{SHARED}{uid}", None)
            elif _changed_since(events, end):
                tx.note_file(f"{SHARED}{uid}", None)
                done.notes.append(
                    f"A teammate took {memory.ref} back, but it was changed here since: it stays, no longer shared."
                )
            else:
                put_away(tx, memory, None, MERGE)
                tx.note_file(f"{SHARED}{uid}", None)
                _bring_back_doubles(tx, uid)
                done.removed.append(memory.ref)


def _bring_back_doubles(tx: Transaction, uid: str) -> None:
    """Bring shared memories back that were archived because the memory that went said the same."""
    for other in filter(None, (by_uid(tx, one) for one in notes_of(tx))):
        if (
            other.superseded_by == uid
            and other.reason == "superseded"
            and _was_ended_by_merge(tx.events(subject=other.uid))
        ):
            tx.put(replace(other, **BACK), MERGE)


def _changed_since(events: Sequence[Event], end: TeamChange) -> bool:
    own = joining.carried(events)
    return any((event.at, event.group) > (end.at, end.group) and told_fields(event) for event in own)


def _share_lost_texts(storage: Storage, stamp: Stamp) -> None:
    """Share the older text of a statement that two people revised at once: its author may be the other one."""
    with storage.reading() as reader:
        merged = [event for event in reader.events(group=stamp.group) if event.action == MERGE]
        born = [event.subject for event in merged if (event.changed or {}).get("id", (0, 0))[0] is None]
        lost = [memory for uid in born if (memory := by_uid(reader, uid)) is not None and not memory.is_low_trust]
    if lost:
        with storage.writing(replace(stamp, group=random_hex(8))) as tx:
            for memory in lost:
                mark_shared(tx, memory)
