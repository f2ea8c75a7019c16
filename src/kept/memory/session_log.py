"""The log of a session: its messages, in the store and as a file, and the quotations in them.

The verbs of `sessions.Session` write and read through it. `take_in` adds messages of a transcript that another program
keeps. Rule: a log is only ever added to.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, get_args

import msgspec

from kept.errors import InvalidInput, KeptError, NotFound
from kept.memory import counts, trust, views
from kept.memory.context import Context
from kept.memory.session_summary import ancestors
from kept.memory.signals import warn
from kept.model import CONTEXT, LOW_TRUST, TRUSTS, Message, MessageRole, Pause, SessionRecord, replace
from kept.ports import ALWAYS, Period, Reader, Stamp, Storage, Transaction
from kept.projects.files import Mirrored, mirror_session, write_session_index
from kept.text import without_delivered
from kept.writing.check import MAX_NAME_CHARS, MAX_TEXT_BYTES, check_json, check_moment, check_text
from kept.writing.pipeline import WriteRules
from kept.writing.quotes import Quotes
from kept.writing.redact import marks, redact_message

ROLES: tuple[str, ...] = get_args(MessageRole)
PAIRED_WITHIN = 200  # messages before a result among which its call is looked for


def paused_periods(reader: Reader, session: str) -> list[Period]:
    """When the session, or its project, was or is paused, by the journal."""
    periods = []
    for name in ("", session):
        since: datetime | None = None
        for event in reader.events(subject=f"{Pause.noun}:{name}"):
            before, after = (event.changed or {}).get("id", (None, None))
            if after is not None:
                since = event.at
            elif before is not None and since is not None:
                periods.append(Period(since=since, until=event.at))
                since = None
        if since is not None:
            periods.append(Period(since=since))
    return periods


def write_index(context: Context, storage: Storage) -> None:
    """Write the list of sessions beside their files; like them, it is a copy, and its failure no reason to raise."""
    try:
        folder = context.spaces.sessions_folder()
        if folder is not None:
            write_session_index(folder, storage.reading)
    except KeptError as error:
        warn("the list of sessions could not be written: %s", error.message)


def last_said(reader: Reader, session: SessionRecord) -> Message | None:
    """Return the newest message of a session."""
    return next(iter(reader.messages(session.name, after=reader.last_number(session.name) - 1)), None)


class SessionLog:
    """The messages of one session. Several processes may add to the same one; each takes its turn."""

    def __init__(self, context: Context, storage: Storage, record: SessionRecord, *, actor: str | None = None) -> None:
        self.id = record.name
        self.as_begun = record
        self.storage = storage
        self._context = context
        self._actor = actor
        self._path = f"{storage.space}/sessions/{self.id}"
        self._mirrored: Mirrored | None = None
        self._quotes = Quotes()
        self._overheard = trust.Overheard()
        self._undated: set[int] = set()  # numbers of messages that came without a time
        self._is_live = True  # messages come as they are said, and not from a transcript that another program keeps

    def take_in(self, messages: Sequence[Message]) -> list[Message]:
        """Add messages of a transcript that another program keeps, and return those that were new.

        That program has a window of its own, so nothing is flushed or compacted; call `checkpoint` or `finish`. What
        was said in a pause is left out.
        """
        self._is_live = False
        return self.add(messages, self._context.rules())[2]

    def begin(self, tx: Transaction) -> SessionRecord:
        """Return the stored session, and store it first if a pause kept it from being stored."""
        return tx.session(self.id) or tx.add(replace(self.as_begun, id=0), "session")

    def add(
        self, messages: Sequence[Message | Mapping[str, Any]], rules: WriteRules
    ) -> tuple[int, SessionRecord | None, list[Message]]:
        """Store messages; the number of the last one before, the session, and those that were new."""
        clean = [redact_message(one, email=rules.redact_email, allow=rules.allow) for one in _clean(messages)]
        with self.storage.writing(self.stamp()) as tx:
            before = tx.last_number(self.id)
            kept = self._without_paused(tx, clean)
            if not kept:
                return before, None, []
            begun = self.begin(tx)
            added = _append(tx, self.id, kept)
            session = _reopened(tx, begun) if added else begun
        if session.packed_at is None:
            self.mirror()
        if added:
            self._after_adding(added, tx.stamp.at)
        if session is not begun:
            write_index(self._context, self.storage)
        return before, session, added

    def _without_paused(self, tx: Transaction, messages: Sequence[Message]) -> list[Message]:
        """Return the messages with their times, without those that were said in a pause."""
        if all(message.at is None for message in messages):  # said now: the journal of pauses need not be read
            pauses = [ALWAYS for pause in tx.all(Pause) if pause.session in (None, self.id)]
        else:
            pauses = paused_periods(tx, self.id)
        timed = [replace(message, session=self.id, at=message.at or tx.stamp.at) for message in messages]
        return [message for message in timed if not any(pause.holds(message.at) for pause in pauses)]

    def _after_adding(self, added: Sequence[Message], at: datetime) -> None:
        """Compare memories with tool results, send the signal, and count redactions."""
        self._undated |= {message.n for message in added if message.at == at}
        if not self._is_live or Quotes(added):
            self._distrust_quoted()
        self.signal_write(len(added))
        counts.count(self._context, Counter(f"redacted:{kind}" for one in added for kind in marks(one.content)))

    def mirror(self) -> None:
        """Bring the transcript's file up to date with the store, if that is possible now; else the next call does.

        The store is the truth: its messages are safe even if the copy cannot be written.
        """
        try:
            folder = self._context.spaces.sessions_folder()
            if folder is not None:
                with self.storage.reading() as reader:
                    self._mirrored = mirror_session(folder, reader, self.id, self._mirrored)
        except KeptError as error:
            warn("the transcript's file of session %s is behind: %s", self.id, error.message)

    def heard(self, reader: Reader | None = None) -> Quotes:
        """Return the texts of tools and pastes in this session so far. `reader`: of its storage, if one is at hand."""
        if reader is None:
            with self.storage.reading() as reader:
                return self.heard(reader)
        last = reader.last_number(self.id)
        if last < self._quotes.upto:  # an older state was restored
            self._quotes = Quotes()
        if last > self._quotes.upto:
            self._quotes.add(reader.messages(self.id, after=self._quotes.upto))
        return self._quotes

    def distrust_quoted(self) -> int:
        """Lower the trust of memories that were written while the session went on, and repeat what a tool said in it.

        An agent that stores a web page does so before the end of its turn, when its messages come in.
        """
        self._overheard = trust.Overheard()
        return self._distrust_quoted()

    def _distrust_quoted(self) -> int:
        """As `distrust_quoted`; in a live session only for the messages since the last time."""
        with self.storage.reading() as reader:
            session = reader.session(self.id)
            last = None if session is None else last_said(reader, session)
            if session is None or last is None or last.at is None:
                return 0
            lines = [session, *(one for name in ancestors(reader, self.id) if (one := reader.session(name)))]
        since = min(one.started_at for one in lines)
        if self._undated and not self._is_live:
            since = min(since, last.at - trust.UNDATED)
        heard = trust.Heard(self.heard, self.said, since, last.at, self._undated, self._is_live)
        lowered = self._overheard.lower(self._context, heard)
        if lowered:
            views.write(self._context)
        return lowered

    def signal_write(self, delta: int) -> None:
        """Signal that the session has changed, and how many messages it gained."""
        self._context.signals.emit("memory:write", type="session", path=self._path, delta=delta)

    def signal_read(self, messages: Sequence[Message]) -> None:
        size = sum(len(message.content) for message in messages)
        self._context.signals.emit("memory:read", type="session", path=self._path, size=size)

    def stamp(self) -> Stamp:
        stamp = self._context.stamp()
        return stamp if self._actor is None else replace(stamp, actor=self._actor)

    def is_stored(self) -> bool:
        with self.storage.reading() as reader:
            return reader.session(self.id) is not None

    def record(self, reader: Reader) -> SessionRecord:
        session = reader.session(self.id)
        if session is None:
            raise NotFound(f"There is no session {self.id}.", hint="`kept session list` shows them.")
        return session

    def said(self) -> list[Message]:
        with self.storage.reading() as reader:
            return reader.messages(self.id)

    def set_mark(self, **marks: Any) -> None:
        with self.storage.writing(self.stamp()) as tx:
            tx.put(msgspec.structs.replace(self.record(tx), **marks), "session")


def _clean(messages: Sequence[Message | Mapping[str, Any]]) -> list[Message]:
    """Check the messages, and leave out the texts that Kept gave to the agent."""
    cleaned = (_without_delivered(_checked(message)) for message in messages)
    return [message for message in cleaned if message is not None]


def _reopened(tx: Transaction, session: SessionRecord) -> SessionRecord:
    """Open a finished or packed session again; any other stays as it is."""
    if session.packed_at is None and session.finished_at is None:
        return session
    return tx.put(replace(session, packed_at=None, finished_at=None), "reopen")


def _append(tx: Transaction, session: str, messages: Sequence[Message]) -> list[Message]:
    """Store messages; a result of a tool that names no call gets the id of the call that it answers."""
    if not any(map(_is_unpaired, messages)):
        return tx.append(messages)
    recent = tx.messages(session, after=max(0, tx.last_number(session) - PAIRED_WITHIN))
    added: list[Message] = []
    waiting: list[Message] = []
    for message in messages:
        if _is_unpaired(message):  # the calls before it need their ids first
            new = tx.append(waiting)
            recent, added, waiting = [*recent, *new], [*added, *new], []
            if (call := call_of(message, recent)) is not None:
                message = replace(message, id=call.id, name=message.name or call.name)
        waiting.append(message)
    return [*added, *tx.append(waiting)]


def _is_unpaired(message: Message) -> bool:
    return message.role == "tool_result" and not message.id and message.name != CONTEXT


def call_of(result: Message, before: Sequence[Message]) -> Message | None:
    """Return the call that a result without an id answers: of its name, in the newest round of calls, the first one
    without a result. A result without a name answers the only call that has none.
    """
    calls = _open_calls(before, result.name)
    if not calls or (result.name is None and sum(map(len, calls)) > 1):
        return None
    return calls[-1][0]


def _open_calls(said: Sequence[Message], name: str | None) -> list[list[Message]]:
    """Return the calls of that name, or of any, that have no result, by the rounds in which they were made."""
    answered = {message.id for message in said if message.role == "tool_result"}
    rounds: list[list[Message]] = [[]]
    for message in said:
        if message.role not in ("tool_call", "tool_result"):
            rounds.append([])
        elif message.role == "tool_call" and message.id not in answered and name in (None, message.name):
            rounds[-1].append(message)
    return [each for each in rounds if each]


def _without_delivered(message: Message) -> Message | None:
    """Return the message without the texts that Kept gave to the agent, or None if nothing else is in it.

    Hosts put that into messages. A tool result, or another text of low trust, may imitate it to go unheard.
    """
    if message.role == "tool_result" or message.trust in LOW_TRUST:
        return message
    said = without_delivered(message.content)
    if said == message.content:
        return message
    return replace(message, content=said) if said or message.role == "tool_call" else None


def _checked(message: Message | Mapping[str, Any]) -> Message:
    if isinstance(message, Mapping):
        message = _from_mapping(message)
    if not isinstance(message, Message):
        raise InvalidInput(
            f"Expected a kept.Message, got {type(message).__name__}.",
            hint='Give kept.Message(id=…, role=…), or {"role": "user", "content": "…"}.',
        )
    if message.role not in ROLES:
        raise InvalidInput(f"Unknown role {message.role!r}.", hint=f"Choose one of {', '.join(ROLES)}.")
    if message.trust not in TRUSTS:
        raise InvalidInput(f"Unknown trust {message.trust!r}.", hint=f"Choose one of {', '.join(TRUSTS)}.")
    check_text(message.content, "The message", 10 * MAX_TEXT_BYTES)
    for name, value in (("id", message.id), ("name", message.name), ("speaker", message.speaker)):
        if value is not None:
            check_text(value, f"The {name} of the message", MAX_NAME_CHARS)
    if message.at is not None:
        check_moment(message.at, "The time of the message")
    if message.input is not None:
        check_json(message.input, "The input of the tool call", MAX_TEXT_BYTES)
    return message


def _from_mapping(given: Mapping[str, Any]) -> Message:
    """A message from a dictionary. Raises InvalidInput for names that a message does not have."""
    names = set(Message.__struct_fields__) - {"session", "n", "trust"}
    if unknown := [str(name)[:40] for name in given if name not in names]:
        raise InvalidInput(f"A message has no {unknown[0]!r}.", hint=f"Use {', '.join(sorted(names))}.")
    if not isinstance(given.get("content", ""), str):
        raise InvalidInput(
            f"content must be a string, not {type(given['content']).__name__}.", hint="Join the parts of the message."
        )
    return Message(**{"id": "", "role": "", **given})
