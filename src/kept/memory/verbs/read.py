"""One memory, lists of memories, their history, and the state of the store."""

from typing import Annotated, Any

from msgspec import Struct

from kept.memory import read, status, undo, word_search
from kept.memory.context import Context, Events
from kept.memory.read import ListStatus, Page
from kept.memory.read import count as count
from kept.memory.read import every as every
from kept.memory.read import is_there as is_there
from kept.memory.verbs.declare import Returns, Tool, Verb
from kept.memory.verbs.fields import (
    AboutFiles,
    Agent,
    Kinds,
    Limit,
    Ref,
    Since,
    Tags,
    Until,
    WithData,
    about,
    data_filter,
)
from kept.model import Event, Memory, Tier, Trust, canonical_kind
from kept.recall import in_any_case


class Get(Struct, frozen=True, kw_only=True):
    """One memory."""

    ref: Ref
    forgotten: Annotated[bool, about("Show it although it was forgotten.")] = False


class ListMemories(Struct, frozen=True, kw_only=True):
    """A page of memories."""

    kinds: Kinds = ()
    tags: Tags = ()
    files: AboutFiles = ()
    trusts: Annotated[tuple[Trust, ...], about("Only with this trust.", one="trust")] = ()
    agent: Agent = None
    session: Annotated[str, about("Only from this session.", metavar="SESSION")] | None = None
    status: Annotated[ListStatus, about("Only with this status.")] | None = None
    data: WithData = None
    limit: Limit = 50
    after: Annotated[int | str, about("The last id of the page before.", metavar="REF")] | None = None


class Find(Struct, frozen=True, kw_only=True):
    """Words to find, and filters."""

    words: Annotated[
        str,
        about(
            'Words, parts of words, or a "phrase in quotes"; all of them must be there.',
            noun="word to find",
            metavar="WORDS",
            is_text=True,
        ),
    ]
    kinds: Kinds = ()
    tags: Tags = ()
    files: Annotated[
        tuple[str, ...],
        about("Only memories about this file: its path, its name, or a folder.", one="file", metavar="PATH"),
    ] = ()
    since: Since = None
    until: Until = None
    status: Annotated[ListStatus, about("Only with this status.")] | None = None
    limit: Annotated[Limit, about("How many at most; by default all.", metavar="NUMBER")] | None = None


class History(Struct, frozen=True, kw_only=True):
    """Events of a memory, or of the project."""

    ref: (
        Annotated[
            int | str, about("The id of a memory; by default the whole project.", metavar="REF", is_positional=True)
        ]
        | None
    ) = None
    limit: Limit = 50
    tier: Annotated[Tier, about("The journal of the project, or of global memory.")] = "project"


class Status(Struct, frozen=True, kw_only=True):
    """The state of the store."""


def get(context: Context, asked: Get) -> Memory:
    """Return one memory. Raises NotFound."""
    return read.get(context, asked.ref, forgotten=asked.forgotten)


def list_memories(context: Context, asked: ListMemories) -> Page:
    """Return a page of memories, newest first."""
    named = {
        "kinds": tuple(map(canonical_kind, asked.kinds)),
        "tags_of_any_case": in_any_case(asked.tags),
        "files": asked.files,
        "trusts": asked.trusts,
    }
    return read.list_memories(
        context,
        named,
        status=asked.status,
        agent=asked.agent,
        session=asked.session,
        data=data_filter(context, asked.data),
        limit=asked.limit,
        after=asked.after,
    )


def find(context: Context, asked: Find) -> Page:
    """Return all memories that contain the words, newest first."""
    return word_search.find(
        context,
        asked.words,
        kinds=asked.kinds,
        tags=asked.tags,
        files=asked.files,
        since=asked.since,
        until=asked.until,
        status=asked.status,
        limit=asked.limit,
    )


def history(context: Context, asked: History) -> Events:
    """Return events, oldest first."""
    return undo.history(context, asked.ref, limit=asked.limit, tier=asked.tier)


def show_status(context: Context, _asked: Status) -> dict[str, Any]:
    """Return counts and sizes for each readable space."""
    return status.status(context)


GET = Verb(
    name="get",
    help="Show one memory in full.",
    request=Get,
    run=get,
    effect="reads",
    returns=Returns(Memory, "The memory; its ETag names this version."),
    python="get",
    cli="show",
    mcp=Tool("memory_get"),
    http="GET /memories/{ref}",
    slash="/memory show",
)
LIST = Verb(
    name="list",
    help="List memories, newest first.",
    request=ListMemories,
    run=list_memories,
    effect="reads",
    returns=Returns(Memory, "Memories, newest first.", many="memories"),
    python="list",
    cli="list",
    mcp=Tool("memory_list"),
    http="GET /memories",
    slash="/memory list",
)
FIND = Verb(
    name="find",
    help="Find all memories that contain words, as people search.",
    request=Find,
    run=find,
    effect="reads",
    returns=Returns(Memory, "Memories, newest first.", many="memories"),
    python="find",
    cli="find",
    mcp=Tool("memory_find"),
    http="GET /find",
    slash="/memory find",
    details="Plain text, also inside other words, in content, title, tags and files; no stems, aliases or threshold.",
)
HISTORY = Verb(
    name="history",
    help="Show the changes of one memory, or of the project.",
    request=History,
    run=history,
    effect="reads",
    returns=Returns(Event, "Events, oldest first.", many="events"),
    python="history",
    cli="history",
    mcp=Tool("memory_history"),
    http="GET /history",
    slash="/memory history",
)
STATUS = Verb(
    name="status",
    help="Show which project this is, and how much is stored.",
    request=Status,
    run=show_status,
    effect="reads",
    returns=Returns(None, "Counts and sizes of each readable space."),
    python="status",
    cli="status",
    mcp=Tool("memory_status"),
    http="GET /status",
    slash="/memory status",
)
VERBS = (GET, LIST, FIND, HISTORY, STATUS)
