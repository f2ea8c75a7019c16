"""Conversations: begin, add messages, read, fork, compact, finish."""

from typing import Annotated, Any

from msgspec import Struct

from kept.errors import NotFound
from kept.memory import sessions
from kept.memory.context import Context, Memories, Sessions
from kept.memory.receipts import RecallReceipt, explain_session
from kept.memory.sessions import FlushResult, Session
from kept.memory.verbs import checked
from kept.memory.verbs.declare import NotHere, Returns, Tool, Verb
from kept.memory.verbs.fields import Limit, Moment, SessionName, about
from kept.memory.window import Window
from kept.model import Memory, Message, MessageRole, SessionRecord

Begun = (
    Annotated[str, about("The id of the session; by default a new one.", metavar="SESSION", is_positional=True)] | None
)


class ListSessions(Struct, frozen=True, kw_only=True):
    """Which sessions to list."""

    limit: Limit | None = None
    after: Annotated[str, about("The last session of the page before.", metavar="SESSION")] | None = None
    newest_first: Annotated[bool, about("The newest first.")] = False


class BeginSession(Struct, frozen=True, kw_only=True):
    """A session to open."""

    id: Begun = None
    agent: Annotated[str, about("The agent that speaks in it.", metavar="NAME")] | None = None
    parent: Annotated[str, about("The session it came from.", metavar="SESSION")] | None = None


class OneSession(Struct, frozen=True, kw_only=True):
    """One session."""

    session: SessionName


class Append(Struct, frozen=True, kw_only=True):
    """A message."""

    session: SessionName
    role: Annotated[MessageRole, about("Who speaks.", metavar="ROLE")]
    content: Annotated[str, about("The text.", metavar="TEXT", is_text=True)] = ""
    id: Annotated[str, about("Its id: a message with a known id is not added again.", metavar="ID")] | None = None
    name: Annotated[str, about("The name of the tool.", metavar="TOOL")] | None = None
    input: Annotated[dict[str, Any], about("The input of the tool.", metavar="JSON")] | None = None
    timestamp: Annotated[Moment, about("When it was said; by default now.", metavar="DATE")] | None = None
    speaker: Annotated[str, about("The name of the speaker.", metavar="NAME")] | None = None
    is_error: Annotated[bool, about("The tool failed.")] = False


class ReadMessages(Struct, frozen=True, kw_only=True):
    """A page of messages."""

    session: SessionName
    after: Annotated[int, about("The number of the last message of the page before.", metavar="NUMBER", least=0)] = 0
    limit: Limit = 100


class Compact(Struct, frozen=True, kw_only=True):
    """A session to compact."""

    session: SessionName
    force: Annotated[bool, about("Compact it although it is short enough.")] = False


class Finish(Struct, frozen=True, kw_only=True):
    """A session to end."""

    session: SessionName
    fast: Annotated[bool, about("Only mark it; findings are taken later.")] = False


class Fork(Struct, frozen=True, kw_only=True):
    """A session to fork."""

    session: SessionName
    id: Annotated[str, about("The id of the new session.", metavar="NEW_ID", is_positional=True)] | None = None
    agent: Annotated[str, about("The agent that speaks in it.", metavar="NAME")] | None = None
    upto: Annotated[int, about("Share messages up to this number.", metavar="NUMBER", least=0)] | None = None


class Given(Struct, frozen=True, kw_only=True):
    """A session that was given briefings."""

    session: SessionName
    limit: Limit = 20


def list_sessions(context: Context, asked: ListSessions) -> Sessions:
    """List the sessions of the project."""
    found = sessions.list_sessions(context)
    if asked.newest_first:
        found.reverse()
    if asked.after is not None:
        names = [one.name for one in found]
        found = found[names.index(asked.after) + 1 :] if asked.after in names else []
    return found[: asked.limit]


def begin(context: Context, asked: BeginSession) -> SessionRecord:
    """Open a session, or begin it."""
    opened = sessions.open_session(context, asked.id, agent=asked.agent, parent=asked.parent)
    return opened.info


def append(context: Context, asked: Append) -> Message | None:
    """Add one message; None if it is there already or the project is paused."""
    return sessions.open_session(context, asked.session, agent=None, parent=None).append(
        asked.role,
        asked.content,
        id=asked.id,
        name=asked.name,
        input=asked.input,
        timestamp=asked.timestamp,
        speaker=asked.speaker,
        is_error=asked.is_error,
    )


def messages(context: Context, asked: ReadMessages) -> list[Message]:
    """Return a page of the transcript."""
    return existing(context, asked.session).messages(after=asked.after, limit=asked.limit)


def window(context: Context, asked: OneSession) -> Window:
    """Return the messages to send to a model."""
    return existing(context, asked.session).window()


def findings(context: Context, asked: OneSession) -> Memories:
    """Return the findings of a session."""
    return existing(context, asked.session).findings()


def record(context: Context, asked: OneSession) -> dict[str, Any]:
    """Return the summary and the findings of a session."""
    return existing(context, asked.session).record()


def flush(context: Context, asked: OneSession) -> FlushResult:
    """Store findings and a summary of the session so far."""
    return existing(context, asked.session).flush()


def compact(context: Context, asked: Compact) -> Window:
    """Replace old messages of the window by a summary."""
    return existing(context, asked.session).compact(force=asked.force)


def finish(context: Context, asked: Finish) -> FlushResult:
    """End a session."""
    return existing(context, asked.session).finish(fast=asked.fast)


def fork(context: Context, asked: Fork) -> SessionRecord:
    """Begin a session with the messages of another one."""
    return existing(context, asked.session).fork(asked.id, agent=asked.agent, upto=asked.upto).info


def given(context: Context, asked: Given) -> list[RecallReceipt]:
    """Return the texts that an agent was given in a session without asking, newest first."""
    return explain_session(asked.session, context.readable(), limit=asked.limit)


def open_for_more(context: Context, id: str | None, *, agent: str | None, parent: str | None) -> Session:
    """Open a session to add to it."""
    asked = checked(BeginSession(id=id, agent=agent, parent=parent))
    with context.signals.gathered(BEGIN.name):
        return sessions.run_session(context, asked.id, agent=asked.agent, parent=asked.parent)


def check_known(context: Context, name: str) -> None:
    """Raise NotFound unless the project has that session."""
    storage = context.spaces.project()
    if storage is not None:
        with storage.reading() as reader:
            if reader.session(name) is not None or reader.last_number(name):
                return
    raise NotFound(f"There is no session {name[:60]!r}.", hint="`memory.session(id)` begins one.")


def existing(context: Context, name: str) -> Session:
    """Open a session that exists: a look at it must not begin one. Raises NotFound."""
    if name not in {one.name for one in context.of_project(SessionRecord)}:
        raise NotFound(f"There is no session {name[:60]!r}.", hint="`kept session list` shows them.")
    return sessions.open_session(context, name, agent=None, parent=None)


LIST_SESSIONS = Verb(
    name="sessions",
    help="List conversations, oldest first.",
    request=ListSessions,
    run=list_sessions,
    effect="reads",
    returns=Returns(SessionRecord, "Sessions, oldest first.", many="sessions"),
    python="sessions",
    cli="session list",
    mcp=Tool("memory_sessions"),
    http="GET /sessions",
    slash="/memory session list",
)
BEGIN = Verb(
    name="session",
    help="Begin a conversation, or open the one with that id.",
    request=BeginSession,
    run=begin,
    effect="writes",
    returns=Returns(SessionRecord, "The session."),
    python="session",
    cli="session begin",
    mcp=NotHere("The host's hooks begin and end the session of an agent."),
    http="POST /sessions",
    slash="/memory session begin",
    is_repeatable=True,
)
APPEND = Verb(
    name="session.append",
    help="Add a message to a conversation; secrets are redacted first.",
    request=Append,
    run=append,
    effect="writes",
    returns=Returns(Message, "The message, or null if it was there already."),
    python="session().append",
    cli="session append",
    mcp=NotHere("The host's hooks record what is said; an agent would say it twice."),
    http="POST /sessions/{session}/messages",
    slash="/memory session append",
)
MESSAGES = Verb(
    name="session.messages",
    help="Read a conversation.",
    request=ReadMessages,
    run=messages,
    effect="reads",
    returns=Returns(Message, "Messages in order.", many="messages"),
    python="session().messages",
    cli="session messages",
    mcp=Tool("memory_session_messages"),
    http="GET /sessions/{session}/messages",
    slash="/memory session messages",
)
WINDOW = Verb(
    name="session.window",
    help="Show the messages to send to a model: the newest summary and what follows.",
    request=OneSession,
    run=window,
    effect="reads",
    returns=Returns(Window, "Messages and their size in tokens."),
    python="session().window",
    cli="session window",
    mcp=NotHere("The host keeps the window of its own conversation."),
    http="GET /sessions/{session}/window",
    slash="/memory session window",
)
FINDINGS = Verb(
    name="session.findings",
    help="List the findings of a conversation, newest first.",
    request=OneSession,
    run=findings,
    effect="reads",
    returns=Returns(Memory, "Findings, newest first.", many="memories"),
    python="session().findings",
    cli="session findings",
    mcp=Tool("memory_session_findings"),
    http="GET /sessions/{session}/findings",
    slash="/memory session findings",
)
RECORD = Verb(
    name="session.record",
    help="Show what a conversation left behind: summary, findings, and which were promoted.",
    request=OneSession,
    run=record,
    effect="reads",
    returns=Returns(None, "The session, its findings and what was promoted."),
    python="session().record",
    cli="session show",
    mcp=Tool("memory_session"),
    http="GET /sessions/{session}",
    slash="/memory session show",
)
FLUSH = Verb(
    name="session.flush",
    help="Store the findings and a summary of a conversation so far.",
    request=OneSession,
    run=flush,
    effect="writes",
    returns=Returns(FlushResult, "How many findings, and the ref of the summary."),
    python="session().flush",
    cli="session flush",
    mcp=NotHere("The host's hooks flush before it compacts."),
    http="POST /sessions/{session}/flush",
    slash="/memory session flush",
    is_repeatable=True,
)
COMPACT = Verb(
    name="session.compact",
    help="Replace old messages of a conversation's window by a summary; the transcript stays.",
    request=Compact,
    run=compact,
    effect="writes",
    returns=Returns(Window, "The window after it."),
    python="session().compact",
    cli="session compact",
    mcp=NotHere("The host compacts its own conversation."),
    http="POST /sessions/{session}/compact",
    slash="/memory session compact",
)
FINISH = Verb(
    name="session.finish",
    help="End a conversation: store findings and summary, promote what qualifies.",
    request=Finish,
    run=finish,
    effect="writes",
    returns=Returns(FlushResult, "How many findings were stored and promoted."),
    python="session().finish",
    cli="session finish",
    mcp=NotHere("The host's hooks begin and end the session of an agent."),
    http="POST /sessions/{session}/finish",
    slash="/memory session finish",
)
FORK = Verb(
    name="session.fork",
    help="Begin a conversation with what was said in another one.",
    request=Fork,
    run=fork,
    effect="writes",
    returns=Returns(SessionRecord, "The new session."),
    python="session().fork",
    cli="session fork",
    mcp=NotHere("The host forks its own conversation."),
    http="POST /sessions/{session}/fork",
    slash="/memory session fork",
)
GIVEN = Verb(
    name="session.given",
    help="Show what an agent was given in a conversation without asking, with the reasons.",
    request=Given,
    run=given,
    effect="reads",
    returns=Returns(RecallReceipt, "What was given, newest first.", many="given"),
    python="session().given",
    cli="session given",
    mcp=NotHere("An agent has seen what it was given."),
    http="GET /sessions/{session}/saw",
    slash="/memory session given",
)
VERBS = (
    LIST_SESSIONS,
    BEGIN,
    APPEND,
    MESSAGES,
    WINDOW,
    FINDINGS,
    RECORD,
    FLUSH,
    COMPACT,
    FINISH,
    FORK,
    GIVEN,
)
