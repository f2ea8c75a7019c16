"""One memory, lists of memories, their history, and the state of the store."""

from typing import Annotated, Any

from msgspec import Struct

from kept.memory import read, status, undo
from kept.memory.context import Context, Events
from kept.memory.read import ListStatus, Page
from kept.memory.read import count as count
from kept.memory.read import every as every
from kept.memory.read import is_there as is_there
from kept.memory.verbs.declare import Returns, Tool, Verb
from kept.memory.verbs.fields import PYTHON_ONLY, AboutFiles, Agent, Kinds, Limit, Ref, Tags, about, data_filter
from kept.model import Event, Memory, Tier, Trust
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
    data: Annotated[Any, PYTHON_ONLY] = None  # a dictionary: only memories with these values
    limit: Limit = 50
    after: Annotated[int | str, about("The last id of the page before.", metavar="REF")] | None = None


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
        "kinds": asked.kinds,
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
        data=data_filter(asked.data),
        limit=asked.limit,
        after=asked.after,
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
VERBS = (GET, LIST, HISTORY, STATUS)
