"""A read-only view of an opened memory: `memory.look()`, for programs that show it.

Doors (pages, routes, commands, hooks) read through it whatever no verb returns: the state of the journal, receipts,
links, parts of conversations, and searches that leave no trace. Answers are nouns of `kept.model`, or small frozen
structs; no storage and no reader leaves this module. Rule: nothing is noted, and no signal is sent. Every read of a
space asks `access` first, as the verbs do.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime

from msgspec import Struct

from kept.errors import InvalidInput, NotFound
from kept.freshness import Standing
from kept.memory import brief, read
from kept.memory.context import Context, Events, Memories, Ref
from kept.memory.endings import DatedView
from kept.memory.findings import find_message, message_id_of
from kept.memory.receipts import Explained, explain_session
from kept.memory.session_records import said_in
from kept.memory.session_summary import summary_of
from kept.memory.standing import CodeView
from kept.model import KINDS, Actor, Briefing, Hit, Memory, Message, Recalled, Session
from kept.ports import Reader, Where
from kept.recall import RecallScope, Request, profile_of
from kept.storage.shared import by_day
from kept.writing.rejections import Rejections

MOST_RECEIPTS = 1_000  # that are searched for a session, or for the last briefing
SHOWN_BEGINNING = 3  # messages of a session among which its user has spoken first
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

    session: Session
    messages: int
    first_said: Message | None
    ended_at: datetime


class SessionPage(Struct, frozen=True, kw_only=True):
    """Some messages of a session; the first of its user, the number of the last one, its findings and its summary."""

    session: Session
    messages: list[Message]
    first_said: Message | None
    last_number: int
    findings: Memories
    summary: Memory | None


class SearchedFiles(Struct, frozen=True, kw_only=True):
    """The files that are searched as a whole: the number of their pieces, and files with the most of the newest."""

    pieces: int = 0
    files: Sequence[tuple[str, int]] = ()


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

    # The opened memory itself

    @property
    def actor(self) -> Actor:
        """Return the actor on whose behalf the memory is opened."""
        return self._context.actor

    @property
    def person(self) -> str | None:
        """Return the name of the person who acts, or for whom an agent acts; None where no team shares the project."""
        return self._context.person

    @property
    def narrative(self) -> str | None:
        """Return the id of the narrative under way, or None."""
        return self._context.narrative

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

    def briefing_now(self, given: Explained) -> Briefing:
        """Write the text that the same agent would be given now for the prompt of a receipt."""
        return brief.replay(self._context, given)

    def threshold_share(self, question: Request) -> float:
        """Return the share of the best score below which a hit of this question is held back."""
        return profile_of(question, self._context.settings).threshold_share

    # Receipts

    def receipts(self, session: str | None = None, *, limit: int = 20) -> list[Explained]:
        """Return what a session was given without asking, newest first; without a session, all that was noted."""
        return explain_session(session, self._context.readable(), limit=limit)

    def sessions_given(self, *, beginning: str) -> list[str]:
        """Return the ids of sessions that were given a text and that begin like this, the last one first."""
        named = dict.fromkeys(one.session for one in self.receipts(limit=MOST_RECEIPTS) if one.session)
        return [session for session in named if beginning and session.startswith(beginning)]

    def last_briefing(self) -> Explained | None:
        """Return the receipt of the last briefing, or None."""
        return next((one for one in self.receipts(limit=MOST_RECEIPTS) if one.kind == "briefing"), None)

    def latencies(self, *, limit: int) -> list[tuple[datetime, float]]:
        """Return when the last recalls were made and how many milliseconds each took, the oldest first."""
        with self._reading() as reader:
            noted = [] if reader is None else reader.receipts_of(None, limit=limit)
        return [(at, body["took_ms"]) for _, at, body in reversed(noted) if body.get("took_ms")]

    # The journal and the counters of the project

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

    def last_event(self) -> int:
        """Return the number of the newest event of the project's journal; 0 if there is none."""
        with self._reading() as reader:
            return 0 if reader is None else _last_event(reader)

    def events_of_group(self, group: str | None) -> Events:
        """Return the events of one call, in the journals of all readable spaces."""
        return [event for reader in self._context.readers() for event in reader.events(group=group)]

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

    def overviews(self, sessions: Sequence[Session]) -> list[SessionOverview]:
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


def _last_event(reader: Reader) -> int:
    return next((event.seq for event in reader.events(newest_first=True, limit=1)), 0)


def _first_said(reader: Reader, session: str) -> Message | None:
    beginning = reader.messages(session, limit=SHOWN_BEGINNING)
    return next((message for message in beginning if message.role == "user"), None)


def _overview(reader: Reader, session: Session) -> SessionOverview:
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
