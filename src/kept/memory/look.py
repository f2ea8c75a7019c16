"""A read-only view of an opened memory: `memory.look()`, for programs that show it.

Doors (pages, routes, commands, hooks) read through it whatever no verb returns: the state of the journal, receipts,
links, parts of conversations, and searches that leave no trace. Answers are nouns of `kept.model`, or small frozen
structs; no storage and no reader leaves this module. Rule: nothing is noted, and no signal is sent. Every read of a
space asks `access` first, as the verbs do.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from typing import Any

from msgspec import Struct

from kept import ids, text
from kept.errors import InvalidInput, NotFound
from kept.freshness import Standing
from kept.memory import brief, erase, judging, read, undo
from kept.memory.context import Context, Events, Memories, Ref, by_ref
from kept.memory.endings import DatedView
from kept.memory.findings import find_message, message_id_of
from kept.memory.past import records_as_of
from kept.memory.receipts import RecallReceipt, explain_session
from kept.memory.session_records import said_in
from kept.memory.session_summary import summary_of
from kept.memory.standing import CodeView
from kept.model import GLOBAL, KINDS, Actor, Briefing, Conflict, Hit, Memory, Message, Recalled, SessionRecord
from kept.ports import EventHead, Reader, Where
from kept.recall import RecallScope, Request, profile_of
from kept.recall.pipeline import live_side
from kept.storage.shared import by_day
from kept.writing.duplicates import is_guarded
from kept.writing.rejections import Rejections

MOST_RECEIPTS = 1_000  # that are searched for a session, or for the last briefing
SHOWN_BEGINNING = 8  # messages of a session among which its user has spoken first
MOST_CHANGES = 500  # events after which reading everything is quicker than following them
ALL = 2**31 - 1
QUOTED_CHARS = 60  # of a memory, by which its message is found


class ProjectState(Struct, frozen=True, kw_only=True):
    """The space of the project, its last event and its number of live memories: changes with every write."""

    space: str = ""
    last_event: int = 0
    live: int = 0


class EventCounts(Struct, frozen=True, kw_only=True):
    """Events of the project's journal, counted: hour, actor, action, how many. `last_event` is the last one counted."""

    space: str = ""
    last_event: int = 0
    by_hour: Sequence[tuple[datetime, str, str, int]] = ()


class MemoryCounts(Struct, frozen=True, kw_only=True):
    """Live memories of all readable spaces, and how many of them are in the index, pinned, or candidates."""

    live: int = 0
    indexed: int = 0
    pinned: int = 0
    candidates: int = 0
    by_kind: dict[str, int] = {}


class SessionOverview(Struct, frozen=True, kw_only=True):
    """A session in a list: the number of its messages, the first of its user, and when the last was said."""

    session: SessionRecord
    messages: int
    first_said: Message | None
    ended_at: datetime


class SessionPage(Struct, frozen=True, kw_only=True):
    """Some messages of a session; the first of its user, the number of the last one, its findings and its summary."""

    session: SessionRecord
    messages: list[Message]
    first_said: Message | None
    last_number: int
    findings: Memories
    summary: Memory | None


class SearchedFiles(Struct, frozen=True, kw_only=True):
    """The files that are searched as a whole: the number of their pieces, and files with the most of the newest."""

    pieces: int = 0
    files: Sequence[tuple[str, int]] = ()


class SpaceMemories(Struct, frozen=True, kw_only=True):
    """Memories of a space up to an event: all of them (`is_whole`), or those changed since; `gone` are uids."""

    space: str
    last_event: int
    is_whole: bool
    memories: Memories = []
    gone: tuple[str, ...] = ()


class ReceiptGlance(Struct, frozen=True, kw_only=True):
    """A receipt in a list: what was asked, by whom, and the refs of the memories that came."""

    receipt: str
    kind: str
    at: datetime
    query: str
    refs: tuple[str, ...]
    session: str | None
    agent: str | None
    event: str | None


class Look:
    """What a program can see of an opened memory without changing anything."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def standing(self, memory: Memory) -> Standing:
        """Return whether a memory holds: its code, its branch if that is not merged, and when it ended if it did."""
        return DatedView(self._context, CodeView(self._context))(memory)

    def tellable(self, said: Iterable[Hit]) -> list[Hit]:
        """Leave out the messages that make a forgotten or rejected statement. They stay in their sessions."""
        storage, hits = self._context.spaces.project(), list(said)
        if storage is None or not hits:
            return hits
        with storage.reading() as reader:
            rejections = Rejections(reader)
            return [hit for hit in hits if not rejections.are_in(hit.content)]

    def is_guarded(self, memory: Memory) -> bool:
        """Return True if tool calls that concern a memory are refused once."""
        return any(is_guarded(reader, memory) for reader in self._context.readers() if reader.space == memory.space)

    # The opened memory itself

    @property
    def actor(self) -> Actor:
        """Return the actor on whose behalf the memory is opened."""
        return self._context.actor

    @property
    def signature(self) -> str:
        """Return the name with which changes of this actor are signed in the journal."""
        return self._context.signature

    @property
    def person(self) -> str | None:
        """Return the name of the person who acts, or for whom an agent acts; None where no team shares the project."""
        return self._context.person

    @property
    def narrative(self) -> str | None:
        """Return the id of the narrative under way, or None."""
        return self._context.narrative

    @property
    def space(self) -> str:
        """Return the name of the project's space; "" before the first write."""
        storage = self._context.spaces.project()
        return "" if storage is None else storage.space

    def now(self) -> datetime:
        """Return the time by the clock of the memory."""
        return self._context.now()

    def holds(self, cwd: str) -> bool:
        """Return True if a program that worked in this directory worked in the opened project."""
        return self._context.spaces.holds(cwd)

    # Memories

    def find(self, ref: Ref, *, forgotten: bool = False) -> Memory | None:
        """Return the memory as it is now, or None; a forgotten one only with `forgotten`."""
        self._context.readable()
        try:
            _, found = self._context.find(ref)
        except (NotFound, InvalidInput):
            return None
        return found if forgotten or not found.is_forgotten else None

    def found(self, refs: Iterable[Ref]) -> dict[str, Memory]:
        """Return the memories that these refs name, by ref, with one look at each space."""
        wanted = [(str(ref), parsed) for ref in dict.fromkeys(refs) if (parsed := _parsed(ref)) is not None]
        found: dict[str, Memory] = {}
        for reader in self._context.readers():
            for ref, one in wanted:
                is_here = not one.id or one.is_global == (reader.space == GLOBAL)
                memory = by_ref(reader, one) if is_here and ref not in found else None
                if memory is not None and not memory.is_forgotten:
                    found[ref] = memory
        return found

    def history(self, ref: Ref, *, limit: int) -> Events:
        """Return the last events of a memory, newest first."""
        self._context.readable()
        storage, one = self._context.find(ref)
        with storage.reading() as reader:
            return reader.events(subject=one.uid, newest_first=True, limit=limit)

    def rivals(self, memory: Memory) -> list[tuple[Conflict, Memory]]:
        """Return the open contradictions of a memory, each with the other side, as far as both are live."""
        with read.looking(self._context.readable()) as readers:
            pairs = _unsettled(readers, memory.uid)
            if not pairs or live_side(memory.uid, readers) is None:
                return []
            sides = [(one, live_side(other, readers)) for one, other in pairs]
        return [(one, rival) for one, rival in sides if rival is not None]

    def links(self, ref: Ref, *, limit: int) -> list[tuple[Memory, float]]:
        """Return memories that were recalled together with this one, each with its strength, the strongest first."""
        self._context.readable()
        storage, one = self._context.find(ref)
        with storage.reading() as reader:
            found = [(reader.get(Memory, id), strength) for id, strength, _ in reader.links(one.id)[:limit]]
        return [(other, strength) for other, strength in found if other is not None]

    def live(self) -> int:
        """Count the live memories of all readable spaces."""
        return sum(reader.statistics(()).rows for reader in self._context.readers())

    def counts(self) -> MemoryCounts:
        """Count the live memories of all readable spaces by status and kind."""
        found: Counter[str] = Counter()
        kinds: Counter[str] = Counter()
        for reader in self._context.readers():
            found["live"] += reader.count()
            found["indexed"] += reader.statistics(()).rows
            found["pinned"] += reader.count(Where(statuses=("pinned",)))
            found["candidates"] += reader.count(Where(statuses=("candidate",)))
            kinds.update({kind: reader.count(Where(kinds=(kind,))) for kind in KINDS})
        kinds["other"] = found["live"] - kinds.total()
        return MemoryCounts(**found, by_kind={kind: number for kind, number in kinds.items() if number})

    def memories_since(self, seen: Mapping[str, int]) -> list[SpaceMemories]:
        """Return the memories of every shelf that changed after the events `seen`, a number for each space.

        A space that was not seen, or that has changed a lot, comes whole; an unchanged one is left out.
        """
        return [found for reader in self._context.readers() if (found := _changed(reader, seen.get(reader.space)))]

    def items(self, *, limit: int, after: int = 0) -> Memories:
        """Return items of the project's files, newest first; `after` is the last id of the page before."""
        with self._reading() as reader:
            return [] if reader is None else reader.select(Where(scope="items"), limit=limit, after=after or None)

    def searched_files(self, *, limit: int, among: int = 500) -> SearchedFiles:
        """Count the pieces that are searched as a whole, and their files `among` the newest pieces."""
        where = Where(scope="sources")
        with self._reading() as reader:
            pieces = 0 if reader is None else reader.count(where)
            newest = reader.select(where, limit=among) if reader is not None and pieces else []
        files = Counter(one.source.file or "" for one in newest)
        return SearchedFiles(pieces=pieces, files=files.most_common(limit))

    def waiting(self) -> list[tuple[SessionRecord, int]]:
        """Return the sessions that wait for a judge, each with the number of its open findings, the oldest first."""
        return judging.waiting(self._context)

    def erase_preview(self, ref: Ref) -> dict[str, int]:
        """Count the records that erasing a memory would remove or change, by place."""
        return erase.preview(self._context, [ref])

    def erase_quoting(self, ref: Ref) -> list[str]:
        """Return the refs of the memories that quote a memory and would be changed if it were erased."""
        return erase.quoting(self._context, [ref])

    def moved_from_here(self) -> list[str]:
        """Return a sentence if this is the old copy of a moved project. Raises MovedAway if the home points here."""
        return erase.moved_from_here(self._context)

    # Questions that are not noted

    def search(
        self,
        query: str,
        *,
        limit: int = 5,
        scope: RecallScope = "memory",
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        agent: str | None = None,
        profile: str | None = None,
        of_every_session: bool = False,
    ) -> Recalled:
        """Answer a question as `recall` does, and note nothing.

        `of_every_session` includes findings that were not promoted, also where only their own session recalls them.
        """
        request = Request(
            query=read.well_formed(query),
            limit=limit,
            scope=scope,
            kinds=tuple(map(read.well_formed, kinds)),
            tags=tuple(map(read.well_formed, tags)),
            agent=agent,
            profile=profile,
            seen_by=None if of_every_session else self._context.seen_by(None),
        )
        return read.answer(self._context, request, self._context.readable(), self._context.now())

    def briefing_now(self, given: RecallReceipt) -> Briefing:
        """Write the text that the same agent would be given now for the prompt of a receipt."""
        return brief.replay(self._context, given)

    def next_start(self) -> Briefing:
        """Write the text that a session which begins now would be given."""
        asked = Request(query="")
        begins = RecallReceipt(
            receipt="", kind="briefing", at=self.now(), question=asked, event="start", moment="start"
        )
        return brief.replay(self._context, begins)

    def known_at(self, at: datetime, now: Iterable[Memory]) -> Memories:
        """Return the memories as they were at a moment, of those that are known `now`; erased ones stay erased."""
        by_space: dict[str, Memories] = {}
        for one in now:
            by_space.setdefault(one.space, []).append(one)
        readers = self._context.readers()
        found = (one for reader in readers for one in records_as_of(reader, at, by_space.get(reader.space, ()), ()))
        return [record for record in found if isinstance(record, Memory) and record.scope == "memory"]

    def threshold_share(self, question: Request) -> float:
        """Return the share of the best score below which a hit of this question is held back."""
        return profile_of(question, self._context.settings).threshold_share

    # Receipts

    def glances(self, *, limit: int) -> list[ReceiptGlance]:
        """Return the newest receipts in short."""
        with self._reading() as reader:
            noted = [] if reader is None else reader.receipts_of(None, limit=limit)
        return [_glance(*one) for one in noted]

    def receipts(self, session: str | None = None, *, limit: int = 20) -> list[RecallReceipt]:
        """Return what a session was given without asking, newest first; without a session, all that was noted."""
        return explain_session(session, self._context.readable(), limit=limit)

    def sessions_told(self, *, limit: int = MOST_RECEIPTS) -> list[str]:
        """Return the ids of sessions that were given a text, the last one first."""
        with self._reading() as reader:
            return [] if reader is None else reader.sessions_told(limit=limit)

    def last_told(self, sessions: Sequence[str]) -> list[ReceiptGlance]:
        """Return the newest receipt of each of these sessions."""
        with self._reading() as reader:
            found = [] if reader is None else [one for name in sessions for one in reader.receipts_of(name, limit=1)]
        return [_glance(*one) for one in found]

    def sessions_given(self, *, beginning: str) -> list[str]:
        """Return the ids of sessions that were given a text and that begin like this, the last one first."""
        return [session for session in self.sessions_told() if beginning and session.startswith(beginning)]

    def last_receipt(self) -> int:
        """Return the number of the newest receipt; 0 if there is none."""
        with self._reading() as reader:
            newest = None if reader is None else reader.receipt()
        return 0 if newest is None else newest[0]

    def last_briefing(self) -> RecallReceipt | None:
        """Return the receipt of the last briefing, or None."""
        return next((one for one in self.receipts(limit=MOST_RECEIPTS) if one.kind == "briefing"), None)

    def latencies(self, *, limit: int) -> list[tuple[datetime, float]]:
        """Return when the last recalls were made and how many milliseconds each took, the oldest first."""
        with self._reading() as reader:
            noted = [] if reader is None else reader.receipts_of(None, limit=limit)
        return [(at, body["took_ms"]) for _, at, body in reversed(noted) if body.get("took_ms")]

    # The journal and the counters of the project

    def next_undone(self, event: Ref | None = None) -> Events:
        """Return the events that `undo(event)` would take back. Raises NotFound or NotAllowed if there are none."""
        return undo.next_undone(self._context, event)

    def project(self) -> ProjectState:
        """Return the state of the project, by which a program can tell whether anything has changed."""
        with self._reading() as reader:
            if reader is None:
                return ProjectState()
            return ProjectState(space=reader.space, last_event=_last_event(reader), live=reader.statistics(()).rows)

    def events(self, *, after: int = 0, limit: int | None = None, newest_first: bool = False) -> Events:
        """Return events of the project's journal, those with a number above `after`."""
        with self._reading() as reader:
            return [] if reader is None else reader.events(after=after, limit=limit, newest_first=newest_first)

    def event_heads(self, *, after: int, limit: int) -> list[EventHead]:
        """Return events of the project's journal without their payloads, those with a number above `after`."""
        with self._reading() as reader:
            return [] if reader is None else reader.event_heads(after=after, limit=limit)

    def last_event(self) -> int:
        """Return the number of the newest event of the project's journal; 0 if there is none."""
        with self._reading() as reader:
            return 0 if reader is None else _last_event(reader)

    def events_of_group(self, group: str | None) -> Events:
        """Return the events of one call, in the journals of all readable spaces."""
        return [event for reader in self._context.readers() for event in reader.events(group=group)]

    def last_of_group(self, group: str) -> str:
        """Return the last event of a group as `undo` takes it; "" if nothing was changed."""
        for reader in self._context.readers():
            if events := reader.events(group=group):
                return f"{'g' if reader.space == GLOBAL else ''}{events[-1].seq}"
        return ""

    def event_counts(self, *, after: int = 0) -> EventCounts:
        """Count the events of the project's journal with a number above `after`."""
        with self._reading() as reader:
            if reader is None:
                return EventCounts()
            last = _last_event(reader)
            counted = reader.activity(after=after) if last > after else ()
            return EventCounts(space=reader.space, last_event=last, by_hour=counted)

    def days(self) -> dict[date, dict[str, int]]:
        """Return the counters of the project beside its journal, by day: recalled, refused and redacted."""
        with self._reading() as reader:
            counted = {} if reader is None else by_day(reader.counters())
        return {date.fromisoformat(day): numbers for day, numbers in counted.items()}

    # Conversations

    def sessions_named(self, names: Sequence[str]) -> list[SessionRecord]:
        """Return the sessions with these names, as far as they exist."""
        with self._reading() as reader:
            found = [] if reader is None else [reader.session(name) for name in dict.fromkeys(names)]
        return [one for one in found if one is not None]

    def overviews(self, sessions: Sequence[SessionRecord]) -> list[SessionOverview]:
        """Return an overview of each of these sessions."""
        with self._reading() as reader:
            return [] if reader is None else [_overview(reader, one) for one in sessions]

    def session(self, name: str, *, after: int = 0, limit: int | None = None) -> SessionPage | None:
        """Return messages of a session from number `after` + 1 on, with its findings; None if there is no such one."""
        with self._reading() as reader:
            found = None if reader is None else reader.session(name)
            if reader is None or found is None:
                return None
            return SessionPage(
                session=found,
                messages=reader.messages(name, after=after, limit=limit),
                first_said=_first_said(reader, name),
                last_number=reader.last_number(name),
                findings=said_in(reader, found),
                summary=summary_of(reader, name),
            )

    def message(self, ref: str) -> Message:
        """Return the message that `SESSION#12` names. Raises NotFound."""
        return find_message(self._context.readable_tier("project"), ref)

    def message_of(self, one: Memory) -> Message | None:
        """Return the message in which a memory was said, if it is still there."""
        if one.source.session is None:
            return None
        wanted, quoted = message_id_of(one), one.content[:QUOTED_CHARS]
        with self._reading() as reader:
            if reader is None or reader.session(one.source.session) is None:
                return None
            said = reader.messages(one.source.session)
        return next((message for message in said if message.id == wanted or quoted in message.content), None)

    @contextmanager
    def _reading(self) -> Iterator[Reader | None]:
        """Open a reader of the project if the actor may read it; None before the first write."""
        storage = self._context.readable_tier("project")
        if storage is None:
            yield None
        else:
            with storage.reading() as reader:
                yield reader


def _parsed(ref: Ref) -> ids.Ref | None:
    try:
        return ids.parse_ref(ref)
    except InvalidInput:
        return None


def _unsettled(readers: Sequence[Reader], uid: str) -> list[tuple[Conflict, str]]:
    """Return the conflicts of a memory that are not resolved, each with the uid of the other side."""
    every = [one for reader in readers for one in reader.all(Conflict) if one.resolved_at is None]
    return [(one, other) for one in every if (other := _other_side(one, uid))]


def _other_side(conflict: Conflict, uid: str) -> str:
    """Return the uid of the other side of a conflict; "" if this memory is not part of it."""
    return {conflict.left: conflict.right, conflict.right: conflict.left}.get(uid, "")


def _glance(number: int, at: datetime, body: Mapping[str, Any]) -> ReceiptGlance:
    hits = body.get("hits", ())
    return ReceiptGlance(
        receipt=f"r{number}",
        kind=body.get("kind", "recall"),
        at=at,
        query=body["question"].get("query", ""),
        refs=tuple(str(line["ref"] if isinstance(line, dict) else line[0]) for line in hits),
        session=body.get("session"),
        agent=body.get("agent"),
        event=body.get("event"),
    )


def _last_event(reader: Reader) -> int:
    return next((event.seq for event in reader.events(newest_first=True, limit=1)), 0)


def _changed(reader: Reader, seen: int | None) -> SpaceMemories | None:
    """Return the memories of a space that changed after an event; None if none has."""
    last = _last_event(reader)
    if seen is not None and last == seen:
        return None
    if seen is None or last < seen or last - seen > MOST_CHANGES:
        every = reader.select(Where(shelf="any"), limit=ALL)
        return SpaceMemories(space=reader.space, last_event=last, is_whole=True, memories=every)
    return _followed(reader, seen, last)


def _followed(reader: Reader, seen: int, last: int) -> SpaceMemories:
    """Return the memories that the events after `seen` are about, as they are now."""
    uids = dict.fromkeys(event.subject for event in reader.events(after=seen) if ":" not in event.subject)
    found = [one for uid in uids for one in reader.select(Where(shelf="any", uid=uid), limit=1)]
    gone = tuple(uids.keys() - {one.uid for one in found})
    return SpaceMemories(space=reader.space, last_event=last, is_whole=False, memories=found, gone=gone)


def _first_said(reader: Reader, session: str) -> Message | None:
    beginning = [one for one in reader.messages(session, limit=SHOWN_BEGINNING) if one.role == "user"]
    return next((one for one in beginning if _is_said(one.content)), next(iter(beginning), None))


def _is_said(content: str) -> bool:
    """Return True if a person has said this: no command, and not the text of a program."""
    return not text.without_delivered(content).lstrip().startswith(("<", "/", "[", "Caveat:"))


def _overview(reader: Reader, session: SessionRecord) -> SessionOverview:
    number = reader.last_number(session.name)
    last = reader.messages(session.name, after=max(0, number - 1), limit=1)
    # An import finishes a session long after it.
    ended_at = last[0].at if last and last[0].at else session.finished_at or session.started_at
    return SessionOverview(
        session=session,
        messages=number,
        first_said=_first_said(reader, session.name),
        ended_at=max(session.started_at, ended_at),
    )
