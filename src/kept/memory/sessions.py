"""Sessions: conversations as they were said, and how they begin, fork and end.

`memory.session("…")` gives a `Session`: append messages, look at the window, flush before a compaction, finish,
fork. `findings` takes memories out of it, `window` shows it to a model. Most sessions are never finished by a host:
`finish_silent` ends those that were silent for `session_idle_minutes`, when the next one begins and in upkeep.
Rule: a transcript is only ever added to. A message to a finished session reopens it, and its next finish replaces what
the last one left.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, Unpack

from msgspec import Struct

from kept import journal
from kept.errors import Busy, InvalidInput, expect
from kept.memory import views
from kept.memory.awaited import awaited, leased, to_its_end
from kept.memory.compaction import stand_in, with_fallback
from kept.memory.context import About, Context, Handle, Memories, Sessions, verb
from kept.memory.findings import FindingsUpdate, promote, promoted_in, take
from kept.memory.judging import Judgement, answer_from, list_of, settle
from kept.memory.model_messages import Provider, messages_for
from kept.memory.receipts import RecallReceipt, explain_session
from kept.memory.session_log import SessionLog, last_said, write_index
from kept.memory.session_records import inherited_by, record_of, said_in
from kept.memory.session_summary import summary_of, tellable
from kept.memory.signals import warn
from kept.memory.turns import Exchange, TurnContext, turn_context
from kept.memory.uses import note_cited
from kept.memory.verbs.remember import remember_within
from kept.memory.window import UPTO, Window, message_tokens, replaceable, window
from kept.model import Message, MessageRole, Receipt, SessionRecord, replace
from kept.ports import Reader, Storage, Transaction
from kept.projects.files import check_session_name as check_session_name
from kept.proposals import Proposal
from kept.storage.shared import random_hex
from kept.upkeep import decisions
from kept.upkeep.decisions import FAST
from kept.writing.check import MAX_NAME_CHARS, check_text
from kept.writing.extraction import Summarizer
from kept.writing.redact import check_name, redact


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
) -> "Session":
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
    new = known or SessionRecord(
        name=name,
        agent=agent or context.actor.name,
        parent=parent,
        shared=shared,
        checked=shared,
        cwd=cwd,
        started_at=at if started_at is None else min(started_at, at),
    )
    log = SessionLog(context, storage, new)
    opened = Session(context, log)
    if known is None and not context.is_paused(name):
        with storage.writing(context.stamp()) as tx:
            log.begin(tx)
        log.signal_write(shared)
    opened._recover()
    return opened


def _safe_name(given: str | None) -> str | None:
    """Return a name without its secrets. Raises InvalidInput if it cannot be one."""
    if given is None:
        return None
    check_text(given, "The name", MAX_NAME_CHARS)
    return redact(given).text


def run_session(context: Context, id: str | None, *, agent: str | None, parent: str | None) -> "Session":
    """As `open_session`; memories that repeat its tool results have their trust from now on, unless it has ended.

    People's edits of MEMORY.md and tasks.json are taken in first.
    """
    views.take_edits(context)
    opened = open_session(context, id, agent=agent, parent=parent)
    if not opened.has_ended:
        context.note_speaking(opened._log)
    return opened


def list_sessions(context: Context) -> Sessions:
    """All sessions of the project, oldest first."""
    found = context.of_project(SessionRecord)
    storage = context.spaces.project()
    if found and storage is not None:
        size = sum(len(session.name) for session in found)
        context.signals.emit("memory:read", type="session", path=f"{storage.space}/sessions", size=size)
    return found


def lease_of(name: str) -> str:
    """The lease that a turn, an import and a finish of a session hold: whoever has it, has the session to itself."""
    return f"session-{name}"


def silent_sessions(context: Context, reader: Reader, now: datetime, *, besides: str | None = None) -> Sessions:
    """The sessions to be finished, newest first: silent for long enough, or finished fast and not yet completed."""
    idle = context.settings.session_idle_minutes
    unfinished = [session for session in reader.all(SessionRecord) if decisions.is_unfinished(session)]
    return [
        session
        for session in reversed(unfinished)
        if session.name != besides and decisions.is_to_finish(session, last_said(reader, session), now, idle)
    ]


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
                if is_ours and _finished_if_silent(context, storage, session):
                    finished.append(session.name)
        except Busy:  # another process writes for long: next time
            break
        except Exception as error:  # the caller asked for something else, which must not fail because of this
            warn("session %s could not be finished: %s", session.name, type(error).__name__)
    return finished


def _finished_if_silent(context: Context, storage: Storage, record: SessionRecord) -> bool:
    return Session(context, SessionLog(context, storage, record, actor=journal.UPKEEP))._finish_if_silent()


def log_of(session: "Session") -> SessionLog:
    """Return the log of a session, for messages of a transcript that another program keeps."""
    return session._log


class Session(Handle):
    """One session, open for more. Several processes may have the same one open; each append takes its turn."""

    def __init__(self, context: Context, log: SessionLog) -> None:
        self.id = log.id
        self._context = context
        self._log = log
        self._storage = log.storage
        self._unflushed = Unflushed(since=-1, upto=0, tokens=0)
        self._room: int | None = None  # tokens until the window has to be measured again

    def __repr__(self) -> str:
        return f"<Session {self.id!r}>"

    @property
    def has_ended(self) -> bool:
        """Whether it is finished; a message reopens it."""
        with self._storage.reading() as reader:
            session = reader.session(self.id)
        return session is not None and session.finished_at is not None

    @property
    def info(self) -> SessionRecord:
        """Return the record of the session as it is now, or as it begins while the project is paused."""
        with self._storage.reading() as reader:
            return reader.session(self.id) or self._log.as_begun

    @verb("session.given")
    def given(self, *, limit: int = 20) -> list[RecallReceipt]:
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
        session or the project is paused.

        A result of a tool has the `id` of its call. Without one it belongs to the call of its `name` that has no result
        yet: in the newest round of calls, the first. Without a name, to the only call that has none.
        """
        hint = "`session.extend([…])` takes messages as dictionaries."
        expect(isinstance(role, str), "role", "a string, such as 'user'", role, hint=hint)
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
        before, session, added = self._log.add(messages, rules)
        if not added or session is None:
            return added
        self._context.note_speaking(self._log)
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

    @verb("session.messages")
    def messages(self, *, after: int = 0, limit: int | None = None) -> list[Message]:
        """Return the transcript, summaries included: all of it, or a page that follows message `after`."""
        said = [message for message in self._log.said() if message.n > after][:limit]
        self._log.signal_read(said)
        return said

    @verb("session.window")
    def window(self) -> Window:
        """Return the messages to send to a model: the newest summary and those after it, without old tool results."""
        shown = self._window()
        self._log.signal_read(shown.messages)
        return shown

    def messages_for(self, provider: Provider, *, system: str = "") -> dict[str, Any]:
        """Return the window as the arguments of a provider's SDK: openai, anthropic or gemini, ready to send.

        `client.chat.completions.create(model=…, **session.messages_for("openai"))`. Each tool call stands with its
        result; `turn.context(…)` has the same with memories in its system text.
        """
        return messages_for(provider, self.window().messages, system)

    # What is kept of it

    def remember(self, content: str, **about: Unpack[About]) -> Receipt:
        """As `memory.remember`, with this session as its source."""
        return remember_within(self._context, content, about, session=self.id)

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
            return record_of(self._context, reader, self._log.record(reader))

    @verb("session.flush")
    def checkpoint(self) -> int:
        """Extract findings from the messages since the last checkpoint. Returns how many.

        Findings and mark are one transaction: after a crash the next checkpoint continues there.
        """
        taken = take(self._context, self._storage, self.id, self._log.stamp(), self._log.heard, is_whole=False)
        self._tell_taken(taken)
        return taken.new

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
        self._log.set_mark(flushed=taken.upto)
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
        old = replaceable(self._log.said(), settings.compaction_keep_recent)
        if not old:
            return before
        upto = old[-1].n
        most = settings.compaction_threshold_tokens // 4
        text, how_far = stand_in(old, self._summarizer(summarizer), self._log.heard(), self._log.as_begun.cwd, most)
        [text] = tellable(self._storage, self.id, [text])
        summary = text or "Nothing of note was said."
        id = f"summary_{upto:03d}"
        said_last = Message(id=id, role="summary", content=summary, input={UPTO: upto}, trust=how_far)
        self._log.add([said_last], self._context.rules())
        after = self._window()
        self._context.signals.emit("memory:compact", sessionId=self.id, before=before.tokens, after=after.tokens)
        return after

    @verb("session.finish")
    def finish(self, *, fast: bool = False, summarizer: Summarizer | None = None) -> FlushResult:
        """End the session: store findings and summary, and promote the findings that qualify.

        `fast` is for a host about to exit: the messages are safe, and the rest is done when the next session begins,
        or in upkeep. A message that comes later reopens the session. In a pause, nothing happens.
        """
        if self._context.is_paused(self.id) or not self._log.is_stored():
            return FlushResult()
        self._context.speaking.pop(self.id, None)
        if fast:
            self._log.set_mark(finished_at=self._context.now(), ended=FAST)
            self._after_marks()
            return FlushResult()
        return self._finish(None, summarizer)

    @verb("session.fork")
    def fork(self, id: str | None = None, *, agent: str | None = None, upto: int | None = None) -> "Session":
        """A new session that begins with what was said here, all of it or `upto` that message, and knows its parent.

        The messages that both share are stored once.
        """
        with self._storage.reading() as reader:
            if id is not None and reader.session(check_session_name(id)) is not None:
                raise InvalidInput(f"Session {id} already exists.", hint="Give a new id.")
            parent, last = self._log.record(reader), reader.last_number(self.id)
        shared = last if upto is None else max(0, min(upto, last))
        return open_session(self._context, id, agent=agent, parent=self.id, cwd=parent.cwd, shared=shared)

    @contextmanager
    def turn(self, user_text: str, *, speaker: str | None = None, wait_s: float | None = None) -> Iterator[Exchange]:
        """One turn of an agent's loop: the question is kept at once, the answer when `persist` is called.

        A session has one turn at a time: another waits, at most `wait_s` seconds (by default as long as a write), and
        then raises Busy. While a turn lasts, the session is not finished. In an event loop use `aturn`: this would wait
        in its thread, so that the turn that it waits for could not end.
        """
        wait_s = self._context.settings.write_wait_s if wait_s is None else wait_s
        with self._storage.lease(lease_of(self.id), wait_s=wait_s) as is_ours:
            yield self._begin_turn(user_text, speaker, is_ours, wait_s)

    @asynccontextmanager
    async def aturn(
        self, user_text: str, *, speaker: str | None = None, wait_s: float | None = None
    ) -> AsyncIterator[Exchange]:
        """As `turn`, for `async` programs: waiting for another turn to end stops no loop and takes no thread."""
        wait_s = self._context.settings.write_wait_s if wait_s is None else wait_s
        async with leased(partial(self._storage.lease, lease_of(self.id)), wait_s) as is_ours:
            yield await to_its_end(self._begin_turn, user_text, speaker, is_ours, wait_s)

    def _begin_turn(self, user_text: str, speaker: str | None, is_ours: bool, wait_s: float) -> Exchange:
        if not is_ours:
            raise Busy(
                f"Session {self.id} is in another turn, which did not end within {wait_s:g} s.",
                hint="Try again when that turn has ended, or fork the session; in an event loop use `aturn`.",
            )
        self.append("user", user_text, speaker=speaker)
        return Exchange(user_text, look=partial(self._look, user_text), keep=self.extend)

    @verb("session.turn")
    def _look(self, user_text: str, system: str, briefing: Mapping[str, Any]) -> TurnContext:
        views.take_edits(self._context)
        shown = self.window()
        return turn_context(self._context, self._log.as_begun, user_text, shown, system=system, briefing=briefing)

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

    # How it is done

    def _recover(self) -> None:
        """Do the work that a crash or a fast finish left: files, findings that were due, silent sessions."""
        with self._storage.reading() as reader:
            last, session = reader.last_number(self.id), reader.session(self.id)
        if session is None:
            return
        if last and session.packed_at is None:
            self._log.mirror()
        if session.finished_at is not None and session.ended == FAST:
            self.finish()
        elif last - session.checked >= self._context.settings.checkpoint_every_messages:
            self.checkpoint()
        if last == session.shared:  # it begins
            finish_silent(self._context, besides=self.id)
        write_index(self._context, self._storage)

    def _finish_if_silent(self) -> bool:
        """Finish the session as of its last message, unless a message came since. Returns True if it is finished."""
        if self._context.is_paused(self.id):
            return False
        now, idle = self._context.now(), self._context.settings.session_idle_minutes
        with self._storage.reading() as reader:
            session = self._log.record(reader)
            last = last_said(reader, session)
        if not decisions.is_to_finish(session, last, now, idle):
            return False
        end = session.finished_at or decisions.silent_since(session, last)
        self._finish(min(end, now))
        return True

    def _finish(self, at: datetime | None, summarizer: Summarizer | None = None) -> FlushResult:
        """Take findings and summary from the whole transcript, promote, and mark the end, `at` or now."""
        with self._storage.reading() as reader:
            session, last = self._log.record(reader), reader.last_number(self.id)
            known = summary_of(reader, self.id)
        if session.finished_at is not None and session.ended == last:  # nothing was said since
            return FlushResult(summary=known.ref if known else None)
        self._log.distrust_quoted()  # once more: the process that stored the last messages may have been killed
        taken = self._take_all(summarizer)
        promote(self._context, self._storage, self.id, self._log.stamp())
        with self._storage.writing(self._log.stamp()) as tx:
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
            self._log.record(tx),
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
        of = (self._context, self._storage, self.id, self._log.stamp(), self._log.heard)
        return take(*of, is_whole=True, summarizer=self._summarizer(summarizer))

    def _summarizer(self, given: Summarizer | None) -> Summarizer | None:
        """Return the given summarizer, else that of the opened memory; None: Kept writes summaries itself."""
        of_memory = self._context.summarizer
        return given if given is not None or of_memory is None else with_fallback(of_memory)

    def _make_room(self, session: SessionRecord, new_tokens: int) -> None:
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

    def _after_marks(self) -> None:
        self._log.signal_write(0)
        write_index(self._context, self._storage)

    def _window(self) -> Window:
        return window(self._log.said(), self._context.settings.tool_result_retention)

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
