"""Sessions: conversations as they were said, and how they begin, fork and end.

`memory.session("…")` gives an `OpenSession`: append messages, look at the window, flush before a compaction, finish,
fork. `findings` takes memories out of it, `window` shows it to a model. Most sessions are never finished by a host:
`finish_silent` ends those that were silent for `session_idle_minutes`, when the next one begins and in upkeep.
Rule: a transcript is only ever added to. A message to a finished session reopens it, and its next finish replaces what
the last one left.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, get_args

import msgspec
from msgspec import Struct

from kept import journal
from kept.errors import Busy, InvalidInput, KeptError, NotFound
from kept.memory import counts, trust, views, write
from kept.memory.awaited import awaited
from kept.memory.compaction import stand_in, with_fallback
from kept.memory.context import Context, Handle, Memories, Sessions, verb
from kept.memory.findings import FindingsUpdate, promote, promoted_in, take
from kept.memory.judging import Judgement, answer_from, list_of, settle
from kept.memory.model_messages import Provider, messages_for
from kept.memory.receipts import Explained, explain_session
from kept.memory.session_records import inherited_by, record_of, said_in
from kept.memory.session_summary import ancestors, summary_of, tellable
from kept.memory.signals import warn
from kept.memory.turns import Exchange, TurnContext, turn_context
from kept.memory.uses import note_cited
from kept.memory.window import UPTO, Window, message_tokens, replaceable, window
from kept.model import LOW_TRUST, TRUSTS, Draft, Message, MessageRole, Pause, Receipt, Session, replace
from kept.ports import ALWAYS, Period, Reader, Stamp, Storage, Transaction
from kept.projects.files import Mirrored, mirror_session, write_session_index
from kept.projects.files import check_session_name as check_session_name
from kept.proposals import Proposal
from kept.storage.shared import random_hex
from kept.text import without_delivered
from kept.upkeep import decisions
from kept.upkeep.decisions import FAST
from kept.writing.check import MAX_NAME_CHARS, MAX_TEXT_BYTES, check_json, check_moment, check_text
from kept.writing.extraction import Summarizer
from kept.writing.pipeline import WriteRules
from kept.writing.quotes import Quotes
from kept.writing.redact import check_name, marks, redact, redact_message

ROLES: tuple[str, ...] = get_args(MessageRole)


class Unflushed(NamedTuple):
    """How many tokens were said after message `since`, the last flush, up to message `upto`."""

    since: int
    upto: int
    tokens: int


class FlushResult(Struct, frozen=True, kw_only=True):
    """The result of a flush or a finish."""

    findings: int = 0
    promoted: int = 0
    summary: str | None = None  # the ref of the stored summary


def open_session(
    context: Context,
    id: str | None,
    *,
    agent: str | None,
    parent: str | None,
    cwd: str | None = None,
    started_at: datetime | None = None,
    shared: int = 0,
) -> "OpenSession":
    """The session of that id, begun if it is new; without an id, a new one.

    `cwd` and `started_at` say where and when a new one began, if that was not here and now; `shared` is the number of
    messages that it shares with its parent.
    """
    at = context.now()
    name = check_session_name(id if id is not None else f"{at:%Y%m%d-%H%M%S}-{random_hex(4)}")
    agent, parent, cwd = map(_safe_name, (agent, parent, cwd))
    check_name(name, "A session id")
    storage = context.owned()
    with storage.reading() as reader:
        known = reader.session(name)
    new = known or Session(
        name=name,
        agent=agent or context.actor.name,
        parent=parent,
        shared=shared,
        checked=shared,
        cwd=cwd,
        started_at=at if started_at is None else min(started_at, at),
    )
    opened = OpenSession(context, storage, new)
    if known is None and not context.is_paused(name):
        with storage.writing(context.stamp()) as tx:
            opened.begin(tx)
        opened.tell_write(shared)
    opened.recover()
    return opened


def _safe_name(given: str | None) -> str | None:
    """Return a name without its secrets. Raises InvalidInput if it cannot be one."""
    if given is None:
        return None
    check_text(given, "The name", MAX_NAME_CHARS)
    return redact(given).text


def run_session(context: Context, id: str | None, *, agent: str | None, parent: str | None) -> "OpenSession":
    """As `open_session`; memories that repeat its tool results have their trust from now on, unless it has ended.

    People's edits of MEMORY.md and tasks.json are taken in first.
    """
    views.take_edits(context)
    opened = open_session(context, id, agent=agent, parent=parent)
    if not opened.has_ended:
        context.note_speaking(opened)
    return opened


def list_sessions(context: Context) -> Sessions:
    """All sessions of the project, oldest first."""
    found = context.of_project(Session)
    storage = context.spaces.project()
    if found and storage is not None:
        size = sum(len(session.name) for session in found)
        context.signals.emit("memory:read", type="session", path=f"{storage.space}/sessions", size=size)
    return found


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
            write_session_index(folder, storage.reading)
    except KeptError as error:
        warn("the list of sessions could not be written: %s", error.message)


def lease_of(name: str) -> str:
    """The lease that a turn, an import and a finish of a session hold: whoever has it, has the session to itself."""
    return f"session-{name}"


def silent_sessions(context: Context, reader: Reader, now: datetime, *, besides: str | None = None) -> Sessions:
    """The sessions to be finished, newest first: silent for long enough, or finished fast and not yet completed."""
    idle = context.settings.session_idle_minutes
    unfinished = [session for session in reader.all(Session) if decisions.is_unfinished(session)]
    return [
        session
        for session in reversed(unfinished)
        if session.name != besides and decisions.is_to_finish(session, last_said(reader, session), now, idle)
    ]


def last_said(reader: Reader, session: Session) -> Message | None:
    """The newest message of a session."""
    return next(iter(reader.messages(session.name, after=reader.last_number(session.name) - 1)), None)


def finish_silent(context: Context, *, besides: str | None = None, most: int | None = None) -> list[str]:
    """Finish the sessions that were left open, except `besides`; returns their names.

    A session with a turn or an import under way is left alone. A failure is logged: the start of a
    session must not fail because of another session.
    """
    storage = context.spaces.project()
    if storage is None or context.actor.role == "skill":
        return []
    now = context.now()
    with storage.reading() as reader:
        silent = silent_sessions(context, reader, now, besides=besides)[:most]
    finished = []
    for session in silent:
        try:
            with storage.lease(lease_of(session.name)) as is_ours:
                if is_ours and OpenSession(context, storage, session, actor=journal.UPKEEP).finish_if_silent():
                    finished.append(session.name)
        except Busy:  # another process writes for long: next time
            break
        except Exception as error:  # the caller asked for something else, which must not fail because of this
            warn("session %s could not be finished: %s", session.name, type(error).__name__)
    return finished


class OpenSession(Handle):
    """One session, open for more. Several processes may have the same one open; each append takes its turn."""

    def __init__(self, context: Context, storage: Storage, session: Session, *, actor: str | None = None) -> None:
        self.id = session.name
        self._as_begun = session
        self._context = context
        self._storage = storage
        self._actor = actor
        self._path = f"{storage.space}/sessions/{self.id}"
        self._unflushed = Unflushed(since=-1, upto=0, tokens=0)
        self._room: int | None = None  # tokens until the window has to be measured again
        self._mirrored: Mirrored | None = None
        self._quotes = Quotes()
        self._overheard = trust.Overheard()
        self._undated: set[int] = set()  # numbers of messages that came without a time
        self._is_live = True  # messages come as they are said, and not from a transcript that another program keeps

    def __repr__(self) -> str:
        return f"<OpenSession {self.id!r}>"

    @property
    def has_ended(self) -> bool:
        """Whether it is finished; a message reopens it."""
        with self._storage.reading() as reader:
            session = reader.session(self.id)
        return session is not None and session.finished_at is not None

    @property
    def session(self) -> Session:
        """The session as it is now; as it begins, while the project is paused."""
        with self._storage.reading() as reader:
            return reader.session(self.id) or self._as_begun

    @verb("session.given")
    def given(self, *, limit: int = 20) -> list[Explained]:
        """Return what an agent was given in this session without asking, newest first, with the reasons."""
        return explain_session(self.id, self._context.readable(), limit=limit)

    # What was said

    @verb("session.append")
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
        is_error: bool = False,
    ) -> Message | None:
        """Add one message; secrets are redacted first. None: it is already there, with that id and role, or the
        session or the project is paused."""
        message = Message(
            id=id or "",
            role=role,
            content=content,
            name=name,
            input=input,
            at=timestamp,
            speaker=speaker,
            is_error=bool(is_error),
        )
        return next(iter(self.extend([message])), None)

    @verb("session.append")
    def extend(self, messages: Sequence[Message | Mapping[str, Any]]) -> list[Message]:
        """Add many messages in one transaction, and return those that were new. In a pause, none is added.

        A message may be given as a dictionary with `role` and `content`, as models take them.
        Findings are saved every few messages, and at their thresholds the session is flushed and compacted.
        """
        rules = self._context.rules()
        if None in rules.paused_sessions or self.id in rules.paused_sessions:
            return []
        before, session, added = self._add(messages, rules)
        if not added or session is None:
            return added
        self._context.note_speaking(self)
        settings = self._context.settings
        every = settings.checkpoint_every_messages
        if before // every != (before + len(added)) // every:
            self.checkpoint()
        new_tokens = sum(map(message_tokens, added))
        self._count_unflushed(session.flushed, before, added, new_tokens)
        if settings.flush_enabled and self._unflushed.tokens >= settings.flush_threshold_tokens:
            self.flush()
        self._make_room(session, new_tokens)
        return added

    def take_in(self, messages: Sequence[Message]) -> list[Message]:
        """Add messages of a transcript that another program keeps, and return those that were new.

        That program has a window of its own, so nothing is flushed or compacted; call `checkpoint` or `finish`. What
        was said in a pause is left out.
        """
        self._is_live = False
        return self._add(messages, self._context.rules())[2]

    def begin(self, tx: Transaction) -> Session:
        """The session as it is stored; stored now, if it is not yet: one that is opened in a pause begins after it."""
        return tx.session(self.id) or tx.add(replace(self._as_begun, id=0), "session")

    @verb("session.messages")
    def messages(self, *, after: int = 0, limit: int | None = None) -> list[Message]:
        """Return the transcript, summaries included: all of it, or a page that follows message `after`."""
        said = [message for message in self._said() if message.n > after][:limit]
        self._tell_read(said)
        return said

    @verb("session.window")
    def window(self) -> Window:
        """Return the messages to send to a model: the newest summary and those after it, without old tool results."""
        shown = self._window()
        self._tell_read(shown.messages)
        return shown

    def messages_for(self, provider: Provider, *, system: str = "") -> dict[str, Any]:
        """Return the window as the arguments of a provider's SDK: openai, anthropic or gemini, ready to send.

        `client.chat.completions.create(model=…, **session.messages_for("openai"))`. Each tool call stands with its
        result; `turn.context(…)` has the same with memories in its system text.
        """
        return messages_for(provider, self.window().messages, system)

    # What is kept of it

    @verb("remember")
    def remember(self, /, content: str, **about: Any) -> Receipt:
        """As `memory.remember`, with this session as its source."""
        given = about.pop("source", None) or self._context.source()
        more = {name: about.pop(name) for name in ("also", "replaces", "check") if name in about}
        draft = Draft(content=content, source=replace(given, session=self.id), **about)
        return write.remember(self._context, draft, **more)

    @verb("session.findings")
    def findings(self) -> Memories:
        """Return the findings of this session, newest first; in a fork also those of its first messages."""
        with self._storage.reading() as reader:
            session = reader.session(self.id)
            found = [] if session is None else [*said_in(reader, session), *inherited_by(reader, session)]
        self._context.tell_read(found)
        return found

    def propose(self) -> list[Proposal]:
        """Return the findings of this session that wait for a judge, numbered in the order in which they were said."""
        return list_of(self._context, self._storage, self.id).proposals

    def judge(self, answer: Mapping[str, Any]) -> Judgement:
        """Settle the proposals of this session: `keep`, `drop`, `rewrite` and `add`, as `memory_judge` takes them."""
        asked = list_of(self._context, self._storage, self.id)
        return settle(self._context, self._storage, asked, answer_from(answer, asked))

    @verb("session.record")
    def record(self) -> dict[str, Any]:
        """C9: the session as its last finish left it, and its findings as they are now, the oldest first."""
        with self._storage.reading() as reader:
            return record_of(self._context, reader, self._session(reader))

    @verb("session.flush")
    def checkpoint(self) -> int:
        """Extract findings from the messages since the last checkpoint. Returns how many.

        Findings and mark are one transaction: after a crash the next checkpoint continues there.
        """
        taken = take(self._context, self._storage, self.id, self._stamp(), self.heard, is_whole=False)
        self._tell_taken(taken)
        return taken.new

    def recover(self) -> None:
        """Catch up with what a crash or a fast finish left: files, findings that were due, silent sessions."""
        with self._storage.reading() as reader:
            last, session = reader.last_number(self.id), reader.session(self.id)
        if session is None:
            return
        if last and session.packed_at is None:
            self.mirror()
        if session.finished_at is not None and session.ended == FAST:
            self.finish()
        elif last - session.checked >= self._context.settings.checkpoint_every_messages:
            self.checkpoint()
        if last == session.shared:  # it begins
            finish_silent(self._context, besides=self.id)
        _write_index(self._context, self._storage)

    def mirror(self) -> None:
        """Bring the transcript's file up to date with the store, if that is possible now; else the next call does.

        The store is the truth: its messages are safe even if the copy cannot be written.
        """
        try:
            folder = self._context.spaces.sessions_folder()
            if folder is not None:
                with self._storage.reading() as reader:
                    self._mirrored = mirror_session(folder, reader, self.id, self._mirrored)
        except KeptError as error:
            warn("the transcript's file of session %s is behind: %s", self.id, error.message)

    @verb("session.flush")
    def flush(self, summarizer: Summarizer | None = None) -> FlushResult:
        """Store the findings and a summary of the session so far, before a host compacts. Safe to repeat.

        Nothing is stored in a pause.
        """
        if self._context.is_paused(self.id):
            return FlushResult()
        with self._storage.reading() as reader:
            last, session = reader.last_number(self.id), reader.session(self.id)
        if session is None or not last or session.flushed >= last:
            return FlushResult()
        taken = self._take_all(summarizer)
        self._set_mark(flushed=taken.upto)
        self._tell_taken(taken)
        self._context.signals.emit("memory:flush", sessionId=self.id)
        views.write(self._context)
        return FlushResult(findings=taken.new, summary=taken.summary.ref if taken.summary else None)

    @verb("session.compact")
    def compact(self, *, force: bool = False, summarizer: Summarizer | None = None) -> Window:
        """Replace all but the newest messages of the window by a summary, when it has outgrown its limit.

        The transcript stays: the summary is one more message in it. Flushes first, unless `flush_enabled` is off.
        """
        settings = self._context.settings
        before = self._window()
        if not force and before.tokens < settings.compaction_threshold_tokens:
            return before
        if settings.flush_enabled:
            self.flush(summarizer)
        old = replaceable(self._said(), settings.compaction_keep_recent)
        if not old:
            return before
        upto = old[-1].n
        most = settings.compaction_threshold_tokens // 4
        text, how_far = stand_in(old, self._summarizer(summarizer), self.heard(), self._as_begun.cwd, most)
        [text] = tellable(self._storage, self.id, [text])
        summary = text or "Nothing of note was said."
        id = f"summary_{upto:03d}"
        said_last = Message(id=id, role="summary", content=summary, input={UPTO: upto}, trust=how_far)
        self._add([said_last], self._context.rules())
        after = self._window()
        self._context.signals.emit("memory:compact", sessionId=self.id, before=before.tokens, after=after.tokens)
        return after

    @verb("session.finish")
    def finish(self, *, fast: bool = False, summarizer: Summarizer | None = None) -> FlushResult:
        """End the session: store findings and summary, and promote the findings that qualify.

        `fast` is for a host about to exit: the messages are safe, and the rest is done when the next session begins,
        or in upkeep. A message that comes later reopens the session. In a pause, nothing happens.
        """
        if self._context.is_paused(self.id) or not self._is_stored():
            return FlushResult()
        self._context.speaking.pop(self.id, None)
        if fast:
            self._set_mark(finished_at=self._context.now(), ended=FAST)
            self._after_marks()
            return FlushResult()
        return self._finish(None, summarizer)

    def finish_if_silent(self) -> bool:
        """Finish the session as of its last message, unless a message came since. Returns True if it is finished."""
        if self._context.is_paused(self.id):
            return False
        now, idle = self._context.now(), self._context.settings.session_idle_minutes
        with self._storage.reading() as reader:
            session = self._session(reader)
            last = last_said(reader, session)
        if not decisions.is_to_finish(session, last, now, idle):
            return False
        end = session.finished_at or decisions.silent_since(session, last)
        self._finish(min(end, now))
        return True

    @verb("session.fork")
    def fork(self, id: str | None = None, *, agent: str | None = None, upto: int | None = None) -> "OpenSession":
        """A new session that begins with what was said here, all of it or `upto` that message, and knows its parent.

        The messages that both share are stored once.
        """
        with self._storage.reading() as reader:
            if id is not None and reader.session(check_session_name(id)) is not None:
                raise InvalidInput(f"Session {id} already exists.", hint="Give a new id.")
            parent, last = self._session(reader), reader.last_number(self.id)
        shared = last if upto is None else max(0, min(upto, last))
        return open_session(self._context, id, agent=agent, parent=self.id, cwd=parent.cwd, shared=shared)

    @contextmanager
    def turn(self, user_text: str, *, speaker: str | None = None, wait_s: float | None = None) -> Iterator[Exchange]:
        """One turn of an agent's loop: the question is kept at once, the answer when `persist` is called.

        A session has one turn at a time: another waits, at most `wait_s` seconds (by default as long as a write), and
        then raises Busy. While a turn lasts, the session is not finished.
        """
        wait_s = self._context.settings.write_wait_s if wait_s is None else wait_s
        with self._storage.lease(lease_of(self.id), wait_s=wait_s) as is_ours:
            if not is_ours:
                raise Busy(
                    f"Session {self.id} is in another turn, which did not end within {wait_s:g} s.",
                    hint="Try again when that turn has ended, or fork the session.",
                )
            self.append("user", user_text, speaker=speaker)
            yield Exchange(user_text, look=partial(self._look, user_text), keep=self.extend)

    @verb("session.turn")
    def _look(self, user_text: str, system: str, briefing: Mapping[str, Any]) -> TurnContext:
        views.take_edits(self._context)
        shown = self.window()
        return turn_context(self._context, self._as_begun, user_text, shown, system=system, briefing=briefing)

    # The same for `async` programs

    aappend = awaited(append)
    aextend = awaited(extend)
    amessages = awaited(messages)
    awindow = awaited(window)
    amessages_for = awaited(messages_for)
    aremember = awaited(remember)
    afindings = awaited(findings)
    arecord = awaited(record)
    aflush = awaited(flush)
    acompact = awaited(compact)
    afinish = awaited(finish)
    afork = awaited(fork)
    agiven = awaited(given)

    def tell_write(self, delta: int) -> None:
        """Signal that the session has changed, and how many messages it gained."""
        self._context.signals.emit("memory:write", type="session", path=self._path, delta=delta)

    # How it is done

    def _add(
        self, messages: Sequence[Message | Mapping[str, Any]], rules: WriteRules
    ) -> tuple[int, Session | None, list[Message]]:
        """Store messages; the number of the last one before, the session, and those that were new."""
        clean = [redact_message(one, email=rules.redact_email, allow=rules.allow) for one in _clean(messages)]
        with self._storage.writing(self._stamp()) as tx:
            before = tx.last_number(self.id)
            kept = self._without_paused(tx, clean)
            if not kept:
                return before, None, []
            begun = self.begin(tx)
            added = tx.append(kept)
            session = _reopened(tx, begun) if added else begun
        if session.packed_at is None:
            self.mirror()
        if added:
            self._after_adding(added, tx.stamp.at)
        if session is not begun:
            _write_index(self._context, self._storage)
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
        self.tell_write(len(added))
        counts.count(self._context, Counter(f"redacted:{kind}" for one in added for kind in marks(one.content)))

    def _finish(self, at: datetime | None, summarizer: Summarizer | None = None) -> FlushResult:
        """Take findings and summary from the whole transcript, promote, and mark the end, `at` or now."""
        with self._storage.reading() as reader:
            session, last = self._session(reader), reader.last_number(self.id)
            known = summary_of(reader, self.id)
        if session.finished_at is not None and session.ended == last:  # nothing was said since
            return FlushResult(summary=known.ref if known else None)
        self.distrust_quoted()  # once more: the process that stored the last messages may have been killed
        taken = self._take_all(summarizer)
        promote(self._context, self._storage, self.id, self._stamp())
        with self._storage.writing(self._stamp()) as tx:
            promoted = promoted_in(tx, self.id, (*taken.uids, *taken.repeated))
            if tx.last_number(self.id) == taken.upto:  # else it goes on, and is finished another time
                self._mark_finished(tx, taken, promoted, at or tx.stamp.at)
        note_cited(self._context, self.id)
        n_promoted = len(set(promoted) - set(session.promoted))
        self._tell_taken(taken, n_promoted)
        if session.flushed < taken.upto:
            self._context.signals.emit("memory:flush", sessionId=self.id)
        self._after_marks()
        views.write(self._context)
        self._ask_judge()
        return FlushResult(
            findings=len(set(taken.uids) - set(session.findings)),  # also those of checkpoints
            promoted=n_promoted,
            summary=taken.summary.ref if taken.summary else None,
        )

    def _mark_finished(self, tx: Transaction, taken: FindingsUpdate, promoted: Sequence[str], at: datetime) -> None:
        finished = replace(
            self._session(tx),
            summary=taken.summary.uid if taken.summary else "",
            findings=tuple(dict.fromkeys((*taken.uids, *taken.repeated))),
            promoted=tuple(promoted),
            flushed=taken.upto,
            ended=taken.upto,
            finished_at=at,
        )
        tx.put(finished, "finish")

    def _ask_judge(self) -> None:
        """Let the program's own judge settle the findings. If it fails, they wait for another one."""
        judge = self._context.judge
        if judge is not None and (asked := list_of(self._context, self._storage, self.id)).statements:
            answer = judge(asked)
            if answer is not None:
                settle(self._context, self._storage, asked, answer_from(answer, asked))

    def _take_all(self, summarizer: Summarizer | None) -> FindingsUpdate:
        of = (self._context, self._storage, self.id, self._stamp(), self.heard)
        return take(*of, is_whole=True, summarizer=self._summarizer(summarizer))

    def _summarizer(self, given: Summarizer | None) -> Summarizer | None:
        """Return the given summarizer, else that of the opened memory; None: Kept writes summaries itself."""
        of_memory = self._context.summarizer
        return given if given is not None or of_memory is None else with_fallback(of_memory)

    def heard(self, reader: Reader | None = None) -> Quotes:
        """What tools and pasted texts have said in this session so far. `reader`: of its storage, if one is at hand."""
        if reader is None:
            with self._storage.reading() as reader:
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
        """As `distrust_quoted`; in a live session only for what was written since the last time."""
        with self._storage.reading() as reader:
            session = reader.session(self.id)
            last = None if session is None else last_said(reader, session)
            if session is None or last is None or last.at is None:
                return 0
            lines = [session, *(one for name in ancestors(reader, self.id) if (one := reader.session(name)))]
        since = min(one.started_at for one in lines)
        if self._undated and not self._is_live:
            since = min(since, last.at - trust.UNDATED)
        heard = trust.Heard(self.heard, self._said, since, last.at, self._undated, self._is_live)
        lowered = self._overheard.lower(self._context, heard)
        if lowered:
            views.write(self._context)
        return lowered

    def _make_room(self, session: Session, new_tokens: int) -> None:
        """Compact the window when it has reached its threshold. It is measured only when it may have."""
        threshold = self._context.settings.compaction_threshold_tokens
        if self._room is None:
            whole = self._window().tokens if session.flushed else self._unflushed.tokens
            self._room = threshold - whole
        else:
            self._room -= new_tokens
        if self._room <= 0:
            self._room = max(threshold - self.compact().tokens, threshold // 10)

    def _tell_taken(self, taken: FindingsUpdate, n_promoted: int = 0) -> None:
        """Signal, once, that findings came, went or were promoted."""
        if taken.grown is not None or n_promoted:
            self._context.tell_write(self._storage, taken.grown or 0)

    def _tell_read(self, messages: Sequence[Message]) -> None:
        size = sum(len(message.content) for message in messages)
        self._context.signals.emit("memory:read", type="session", path=self._path, size=size)

    def _after_marks(self) -> None:
        self.tell_write(0)
        _write_index(self._context, self._storage)

    def _stamp(self) -> Stamp:
        stamp = self._context.stamp()
        return stamp if self._actor is None else replace(stamp, actor=self._actor)

    def _is_stored(self) -> bool:
        with self._storage.reading() as reader:
            return reader.session(self.id) is not None

    def _session(self, reader: Reader) -> Session:
        session = reader.session(self.id)
        if session is None:
            raise NotFound(f"There is no session {self.id}.", hint="`kept session list` shows them.")
        return session

    def _said(self) -> list[Message]:
        with self._storage.reading() as reader:
            return reader.messages(self.id)

    def _window(self) -> Window:
        return window(self._said(), self._context.settings.tool_result_retention)

    def _count_unflushed(self, flushed: int, before: int, added: Sequence[Message], new_tokens: int) -> None:
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
            new_tokens = sum(map(message_tokens, added))
        upto = added[-1].n if added else known.upto
        self._unflushed = Unflushed(flushed, upto, known.tokens + new_tokens)

    def _set_mark(self, **marks: Any) -> None:
        with self._storage.writing(self._stamp()) as tx:
            tx.put(msgspec.structs.replace(self._session(tx), **marks), "session")


def _clean(messages: Sequence[Message | Mapping[str, Any]]) -> list[Message]:
    """Check the messages, and leave out the texts that Kept gave to the agent."""
    cleaned = (_without_delivered(_checked(message)) for message in messages)
    return [message for message in cleaned if message is not None]


def _reopened(tx: Transaction, session: Session) -> Session:
    """Open a finished or packed session again; any other stays as it is."""
    if session.packed_at is None and session.finished_at is None:
        return session
    return tx.put(replace(session, packed_at=None, finished_at=None), "reopen")


def _without_delivered(message: Message) -> Message | None:
    """The message without what Kept gave to the agent; None when that was all of it.

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
