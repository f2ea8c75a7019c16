"""Sessions: conversations as they were said, the findings taken from them, and the window sent to a model.

`memory.session("…")` gives an `OpenSession`: append messages, look at the window, flush before a compaction, finish,
fork. Rule: a transcript is only ever added to. Compaction adds a summary, and the window is computed from the
transcript; findings are stored together with the mark up to which they were taken, so a crash loses and repeats none.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple, get_args

import msgspec
from msgspec import Struct

from kept import tokens
from kept.errors import InvalidInput, KeptError
from kept.memory import write
from kept.memory.context import Context, Memories, Receipts, Sessions
from kept.memory.signals import log
from kept.memory.write import grown_by
from kept.model import TRUSTS, Draft, Memory, Message, MessageRole, Pause, Receipt, Session, Source, Trust, replace
from kept.ports import Period, Reader, Storage, Transaction, Where
from kept.projects.files import Mirrored, check_session_name, mirror_session, write_session_index
from kept.storage.shared import random_hex
from kept.tables import PRESETS
from kept.text import fingerprint
from kept.writing import admit, pipeline
from kept.writing.check import MAX_NAME_CHARS, MAX_TEXT_BYTES, check_json, check_moment, check_text
from kept.writing.extraction import Extracted, Summarizer, extract, summarize
from kept.writing.quotes import Quotes
from kept.writing.redact import redact, redact_message

PRUNED = "[tool result left out of the window; the transcript has it]"


class Window(Struct, frozen=True, kw_only=True):
    """The messages to send to a model, and their size in tokens."""

    messages: tuple[Message, ...]
    tokens: int


def window(messages: Sequence[Message], keep_tool_results: int) -> Window:
    """The newest summary and the messages after those it replaces; only the newest tool results in full."""
    summary = next((message for message in reversed(messages) if message.role == "summary"), None)
    upto = stands_for(summary) if summary is not None else 0
    said = [message for message in messages if message.n > upto and message.role != "summary"]
    results = [message.n for message in said if message.role == "tool_result"]
    full = set(results[-keep_tool_results:]) if keep_tool_results else set()
    shown = [
        replace(message, content=PRUNED) if message.role == "tool_result" and message.n not in full else message
        for message in said
    ]
    shown = [summary, *shown] if summary is not None else shown
    return Window(messages=tuple(shown), tokens=sum(map(message_tokens, shown)))


def stands_for(summary: Message) -> int:
    """The number of the last message that a summary replaces."""
    return int((summary.input or {}).get("upto", 0))


def message_tokens(message: Message) -> int:
    """The tokens of a message."""
    spoken = tokens.estimate(message.content)
    return spoken if message.input is None else spoken + tokens.estimate(msgspec.json.encode(message.input).decode())


ROLES: tuple[str, ...] = get_args(MessageRole)
OVERLAP = 6  # messages before the mark that are read again, so that an error and its fix are seen together


class Unflushed(NamedTuple):
    """How many tokens were said after message `since`, the last flush, up to message `upto`."""

    since: int
    upto: int
    tokens: int


class Flushed(Struct, frozen=True, kw_only=True):
    """The result of a flush or a finish."""

    findings: int = 0
    promoted: int = 0
    summary: str | None = None  # the ref of the stored summary


def open_session(context: Context, id: str | None, *, agent: str | None, parent: str | None) -> "OpenSession":
    """The session of that id, begun if it is new; without an id, a new one."""
    at = context.now()
    name = check_session_name(id if id is not None else f"{at:%Y%m%d-%H%M%S}-{random_hex(4)}")
    for value in (agent, parent):
        if value is not None:
            check_text(value, "The name", MAX_NAME_CHARS)
    if redact(name).found:
        raise InvalidInput("A session id must not contain a secret.", hint="Give another id, or none.")
    agent = None if agent is None else redact(agent).text
    parent = None if parent is None else redact(parent).text
    storage = context.owned()
    with storage.reading() as reader:
        known = reader.session(name)
    new = known or Session(name=name, agent=agent or context.actor.name, parent=parent, started_at=at)
    opened = OpenSession(context, storage, new)
    if known is None and not context.is_paused(name):
        with storage.writing(context.stamp()) as tx:
            opened.begin(tx)
        _write_index(context, storage)
    opened.recover()
    return opened


def list_sessions(context: Context) -> Sessions:
    """All sessions of the project, oldest first."""
    return context.of_project(Session)


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


def _write_index(context: Context, storage: Storage) -> None:
    """Write the list of sessions beside their files; like them, it is a copy, and its failure no reason to raise."""
    try:
        folder = context.spaces.sessions_folder()
        if folder is not None:
            with storage.reading() as reader:
                write_session_index(folder, reader)
    except KeptError as error:
        log.warning("the list of sessions could not be written: %s", error.message)


class OpenSession:
    """One session, open for more. Several processes may have the same one open; each append takes its turn."""

    def __init__(self, context: Context, storage: Storage, session: Session) -> None:
        self.id = session.name
        self._as_begun = session
        self._context = context
        self._storage = storage
        self._path = f"{storage.space}/sessions/{self.id}"
        self._unflushed = Unflushed(since=-1, upto=0, tokens=0)
        self._mirrored: Mirrored | None = None
        self._quotes = Quotes()

    # What was said

    def append(
        self,
        role: MessageRole,
        content: str = "",
        *,
        id: str | None = None,
        name: str | None = None,
        input: dict[str, Any] | None = None,
        timestamp: datetime | None = None,
        speaker: str | None = None,
    ) -> Message | None:
        """Add one message; secrets are redacted first. None: it is already there, with that id and role, or the
        session or the project is paused."""
        message = Message(
            id=id or "", role=role, content=content, name=name, input=input, at=timestamp, speaker=speaker
        )
        return next(iter(self.extend([message])), None)

    def extend(self, messages: Sequence[Message]) -> list[Message]:
        """Add many messages in one transaction, and return those that were new. In a pause, none is added."""
        return [] if self._context.is_paused(self.id) else self.take_in(messages)

    def take_in(self, messages: Sequence[Message]) -> list[Message]:
        """As `extend`, for messages of an earlier time: those that were said in a pause are left out."""
        rules = self._context.rules()
        clean = [_checked(message) for message in messages]
        clean = [redact_message(message, email=rules.redact_email, allow=rules.allow) for message in clean]
        with self._storage.writing(self._context.stamp()) as tx:
            before = tx.last_number(self.id)
            timed = [replace(message, session=self.id, at=message.at or tx.stamp.at) for message in clean]
            pauses = paused_periods(tx, self.id)
            kept = [message for message in timed if not any(pause.holds(message.at) for pause in pauses)]
            if not kept:
                return []
            session: Session | None = self.begin(tx)
            added = tx.append(kept)
            if added and session is not None and session.packed_at is not None:  # it goes on: unpacked
                session = tx.put(replace(session, packed_at=None), "unpack")
        if session is None or session.packed_at is None:
            self.mirror()
        if added:
            self._tell_write(len(added))
        settings = self._context.settings
        every = settings.checkpoint_every_messages
        if added and before // every != (before + len(added)) // every:
            self.checkpoint()
        if session is not None and settings.flush_enabled:
            self._count_unflushed(session.flushed, before, added)
            if self._unflushed.tokens >= settings.flush_threshold_tokens:
                self.flush()
        return added

    def begin(self, tx: Transaction) -> Session:
        """The session as it is stored; stored now, if it is not yet: one that is opened in a pause begins after it."""
        return tx.session(self.id) or tx.add(replace(self._as_begun, id=0), "session")

    def messages(self) -> list[Message]:
        """The whole transcript, summaries included."""
        said = self._said()
        self._tell_read(said)
        return said

    def window(self) -> Window:
        """The messages to send to a model: the newest summary and what follows, without old tool results."""
        shown = self._window()
        self._tell_read(shown.messages)
        return shown

    # What is kept of it

    def findings(self) -> Memories:
        """The findings of this session (and, in a fork, of those it came from), newest first."""
        with self._storage.reading() as reader:
            names = [self.id, *_ancestors(reader, self.id)]
            return [memory for name in names for memory in _findings_of(name, reader)]

    def checkpoint(self) -> int:
        """Extract findings from the messages since the last checkpoint. Returns how many.

        Findings and mark are one transaction: after a crash the next checkpoint continues there.
        """
        return len(self._take_findings())

    def recover(self) -> None:
        """Catch up with what a crash interrupted: the transcript's file, and findings that were due."""
        with self._storage.reading() as reader:
            last, session = reader.last_number(self.id), reader.session(self.id)
        if last and session is not None and session.packed_at is None:
            self.mirror()
        if session is not None and last - session.checked >= self._context.settings.checkpoint_every_messages:
            self.checkpoint()

    def mirror(self) -> None:
        """Bring the transcript's file up to date with the store, if that is possible now; else the next call does.

        The store is the truth: what is in it was acknowledged, whatever happens to its copy.
        """
        try:
            folder = self._context.spaces.sessions_folder()
            if folder is not None:
                with self._storage.reading() as reader:
                    self._mirrored = mirror_session(folder, reader, self.id, self._mirrored)
        except KeptError as error:
            log.warning("the transcript's file of session %s is behind: %s", self.id, error.message)

    def flush(self, summarizer: Summarizer | None = None) -> Flushed:
        """Store the findings and a summary of the session so far, before a host compacts. Safe to repeat.

        Nothing is stored in a pause.
        """
        if self._context.is_paused(self.id):
            return Flushed()
        findings = len(self._take_findings())
        with self._storage.reading() as reader:
            session, messages = reader.session(self.id), reader.messages(self.id)
        if session is None or not messages or session.flushed >= messages[-1].n:
            return Flushed(findings=findings)
        receipt = self._store_summary(messages, summarizer)
        self._set_mark(flushed=messages[-1].n)
        self._context.signals.emit("memory:flush", sessionId=self.id)
        return Flushed(findings=findings, summary=receipt.ref if receipt else None)

    def compact(self, *, force: bool = False, summarizer: Summarizer | None = None) -> Window:
        """Replace all but the newest messages of the window by a summary, when it has outgrown its limit.

        The transcript stays: the summary is one more message in it. Flushes first.
        """
        settings = self._context.settings
        before = self._window()
        if not force and before.tokens < settings.compaction_threshold_tokens:
            return before
        self.flush(summarizer)
        whole = self._said()
        said = [message for message in whole if message.role != "summary"]
        old = said[: -settings.compaction_keep_recent] if settings.compaction_keep_recent else said
        upto = old[-1].n if old else 0
        if not old or any(stands_for(message) >= upto for message in whole if message.role == "summary"):
            return before
        text, trust = self._summary_of(old, summarizer)
        summary = text or "Nothing of note was said."
        id = f"summary_{upto:03d}"
        self.extend([Message(id=id, role="summary", content=summary, input={"upto": upto}, trust=trust)])
        after = self._window()
        self._context.signals.emit("memory:compact", sessionId=self.id, before=before.tokens, after=after.tokens)
        return after

    def finish(self, *, fast: bool = False, summarizer: Summarizer | None = None) -> Flushed:
        """End the session: store findings and summary, and promote the findings that qualify.

        `fast` is for a host about to exit: the messages are safe, and the rest is done when it is opened again.
        """
        if self._context.is_paused(self.id):
            return Flushed()
        if fast:
            self._set_mark(finished_at=self._context.now())
            return Flushed()
        flushed = replace(self.flush(summarizer), promoted=self._promote())
        self._set_mark(finished_at=self._context.now())
        _write_index(self._context, self._storage)
        return flushed

    def fork(self, id: str | None = None, *, agent: str | None = None) -> "OpenSession":
        """A new session that begins with everything said here, and knows where it came from."""
        child = open_session(self._context, id, agent=agent, parent=self.id)
        with self._storage.writing(self._context.stamp()) as tx:
            if tx.last_number(child.id):
                raise InvalidInput(f"Session {child.id} already has messages.", hint="Give a new id.")
            child.begin(tx)
            parent = tx.session(self.id)
            tx.append([replace(message, session=child.id) for message in tx.messages(self.id)])
            session = tx.session(child.id)
            if session is not None and parent is not None:
                tx.put(replace(session, checked=parent.checked, flushed=parent.flushed), "fork")
            copied = tx.last_number(child.id)
        child.mirror()
        child._tell_write(copied)
        return child

    @contextmanager
    def turn(self, user_text: str, *, speaker: str | None = None) -> Iterator["Exchange"]:
        """One round of an agent's loop: the question is kept at once, the answer when `persist` is called."""
        self.append("user", user_text, speaker=speaker)
        yield Exchange(self, user_text)

    # How it is done

    def _tell_read(self, messages: Sequence[Message]) -> None:
        size = sum(len(message.content) for message in messages)
        self._context.signals.emit("memory:read", type="session", path=self._path, size=size)

    def _tell_write(self, delta: int) -> None:
        self._context.signals.emit("memory:write", type="session", path=self._path, delta=delta)

    def _said(self) -> list[Message]:
        with self._storage.reading() as reader:
            return reader.messages(self.id)

    def _window(self) -> Window:
        return window(self._said(), self._context.settings.tool_result_retention)

    def _count_unflushed(self, flushed: int, before: int, added: Sequence[Message]) -> None:
        """Add up what was said since the last flush, reading only messages that are not counted yet.

        Another process may have appended or flushed in between: then its messages are read once, or all since its
        flush.
        """
        known = self._unflushed
        if known.since != flushed or known.upto > before:  # another flush, or an older state was restored
            known = Unflushed(flushed, flushed, 0)
        if known.upto != before:
            with self._storage.reading() as reader:
                added = reader.messages(self.id, after=known.upto)
        upto = added[-1].n if added else known.upto
        self._unflushed = Unflushed(flushed, upto, known.tokens + sum(map(message_tokens, added)))

    def _take_findings(self) -> Receipts:
        if self._context.is_off(self.id):
            return []
        with self._storage.reading() as reader:
            session = reader.session(self.id)
            if session is None:  # it was opened in a pause, and nothing was said since
                return []
            recent = reader.messages(self.id, after=max(0, session.checked - OVERLAP))
        if not recent or recent[-1].n <= session.checked:
            return []
        rules = replace(self._context.rules(), echoes=write.echoes(self._context))
        ready = [pipeline.prepare(_as_draft(found, session), rules) for found in self._trusted(extract(recent), recent)]
        with self._storage.writing(self._context.stamp()) as tx:
            receipts = pipeline.store(tx, ready, write.place(self._storage, tx.stamp.at))
            current = tx.session(self.id)
            if current is not None:
                tx.put(replace(current, checked=max(current.checked, recent[-1].n)), "checkpoint")
        write.count_reasons(self._context, receipts)
        if ready:
            self._context.tell_write(self._storage, sum(map(grown_by, receipts)))
        return [receipt for receipt in receipts if receipt.outcome != "refused" and receipt.reason != "already_stored"]

    def _trusted(self, found: Sequence[Extracted], recent: Sequence[Message]) -> list[Extracted]:
        """The findings, each with the trust of those whose words it repeats."""
        said = {message.id: message for message in recent if message.role in ("user", "assistant", "summary")}
        quotes = self._heard() if any(each.message_id in said for each in found) else Quotes()
        return [
            replace(each, draft=replace(each.draft, trust=quotes.trust_of(each.draft.content, by.trust, by=by)))
            if (by := said.get(each.message_id)) is not None
            else each
            for each in found
        ]

    def _heard(self) -> Quotes:
        """What tools and pasted texts have said in this session so far."""
        with self._storage.reading() as reader:
            if reader.last_number(self.id) < self._quotes.upto:  # an older state was restored
                self._quotes = Quotes()
            self._quotes.add(reader.messages(self.id, after=self._quotes.upto))
        return self._quotes

    def _summary_of(self, messages: Sequence[Message], summarizer: Summarizer | None) -> tuple[str, Trust]:
        """A summary and its trust. Ours leaves out what is only quoted; a plugged-in one may quote, and is labelled."""
        said = [message for message in messages if message.role != "summary"]
        text, quotes = (summarizer or summarize)(said), self._heard()
        if summarizer is not None:
            return text, quotes.trust_of(text, "agent")
        lines = [line for line in text.splitlines() if quotes.trust_of(line, "agent") == "agent"]
        return "\n".join(lines), "agent"

    def _store_summary(self, messages: Sequence[Message], summarizer: Summarizer | None) -> Receipt | None:
        text, trust = self._summary_of(messages, summarizer)
        if not text.strip() or self._context.is_off(self.id):
            return None
        draft = Draft(
            content=text[: admit.MAX_SUMMARY_CHARS],
            trust=trust,
            kind="summary",
            tier="session",
            key=f"{self.id}:summary:{messages[-1].n}",
            source=Source(origin="narrative", agent=self._context.actor.name, session=self.id),
        )
        return write.remember(self._context, draft)

    def _promote(self) -> int:
        """Make the findings that qualify candidates of the project. Returns how many."""
        preset = PRESETS[self._context.settings.preset]
        promoted = 0
        with self._storage.writing(self._context.stamp()) as tx:
            for memory in _findings_of(self.id, tx):
                if admit.is_promotable(signals_of(memory), memory.importance, len(memory.content), preset):
                    tx.put(replace(memory, tier="project", status="candidate", updated_at=tx.stamp.at), "promote")
                    promoted += 1
        if promoted:
            self._context.tell_write(self._storage, 0)
        return promoted

    def _set_mark(self, **marks: Any) -> None:
        with self._storage.writing(self._context.stamp()) as tx:
            session = tx.session(self.id)
            if session is not None:
                tx.put(msgspec.structs.replace(session, **marks), "session")


def _checked(message: Message) -> Message:
    if not isinstance(message, Message):
        raise InvalidInput(
            f"Expected a kept.Message, got {type(message).__name__}.", hint="Give kept.Message(id=…, role=…)."
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


class Exchange:
    """One round of an agent's loop: INTAKE is done; CONTEXT, EXECUTE (yours) and PERSIST are here."""

    def __init__(self, session: OpenSession, user_text: str) -> None:
        self._session = session
        self.user_text = user_text

    def context(self) -> Window:
        """The window to send to the model."""
        return self._session.window()

    def persist(self, reply: str, tool_calls: Sequence[tuple[str, dict[str, Any], str]] = ()) -> list[Message]:
        """Keep the answer, after the tool calls (name, input, result) that led to it."""
        messages = []
        for call in tool_calls:
            if not isinstance(call, tuple | list) or len(call) != 3:
                raise InvalidInput("A tool call is (name, input, result).", hint='("ls", {"path": "."}, "a.py b.py")')
            name, input, result = call
            id = f"tool_{random_hex(8)}"  # not by number: others may persist at the same time
            messages.append(Message(id=id, role="tool_call", name=name, input=input))
            messages.append(Message(id=id, role="tool_result", name=name, content=result))
        messages.append(Message(id="", role="assistant", content=reply))
        return self._session.extend(messages)


def signals_of(memory: Memory) -> tuple[str, ...]:
    """The signals that speak for a finding: those of extraction, and repetition by sessions and agents."""
    data = memory.data or {}
    signals = list(data.get("signals", ()))
    if len(set(data.get("sessions", ()))) >= 2:
        signals.append("multi-session")
    if len(set(data.get("agents", ()))) >= 2:
        signals.append("multi-agent")
    return tuple(signals)


def _as_draft(found: Extracted, session: Session) -> Draft:
    source = found.draft.source or Source(origin="extraction")
    evidence = {"signals": list(found.signals), "sessions": [session.name], "agents": [session.agent or ""]}
    return msgspec.structs.replace(
        found.draft,
        tier="session",
        source=replace(source, session=session.name, agent=source.agent or session.agent),
        data=(found.draft.data or {}) | evidence,
        key=f"{session.name}:{found.message_id}:{fingerprint(found.draft.content)}",
    )


def _findings_of(name: str, reader: Reader) -> Memories:
    found = reader.select(Where(session=name, tiers=("session",)), limit=10_000)
    return [memory for memory in found if memory.kind != "summary"]


def _ancestors(reader: Reader, name: str) -> list[str]:
    found: list[str] = []
    session = reader.session(name)
    while session is not None and session.parent and session.parent not in found and session.parent != name:
        found.append(session.parent)
        session = reader.session(session.parent)
    return found
