"""The files beside the store, and items taken out of the project's files."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Struct

from kept.memory import files, host_notes, library
from kept.memory.context import Context, Memories
from kept.memory.files import ViewStatus
from kept.memory.host_notes import HostState
from kept.memory.library import Extraction
from kept.memory.note_writer import NoteReading
from kept.memory.verbs.declare import NO_SERVER, NotHere, Returns, Tool, Verb
from kept.memory.verbs.fields import PYTHON_ONLY, Limit, about
from kept.memory.views import SyncReport
from kept.model import Memory

MOST_ITEMS = 1_000


class Sync(Struct, frozen=True, kw_only=True):
    """The files to sync. `ask(question, lines)` decides about edits that need a person."""

    ask: Annotated[Any, PYTHON_ONLY] = None


class WriteAgents(Struct, frozen=True, kw_only=True):
    """Block in AGENTS.md. `ask(question, lines)` decides about edits inside it."""

    remove: Annotated[bool, about("Take the block out; the rest of the file stays as it is.")] = False
    ask: Annotated[Any, PYTHON_ONLY] = None


class ListViews(Struct, frozen=True, kw_only=True):
    """All files beside the store."""


class Extract(Struct, frozen=True, kw_only=True):
    """The files to read."""

    paths: Annotated[
        tuple[str, ...],
        about("Files and folders of the project; by default all.", one="path", metavar="PATH", is_positional=True),
    ] = ()
    sources: Annotated[bool, about("Make the files searchable as a whole as well, in scope sources.")] = True
    progress: Annotated[Any, PYTHON_ONLY] = None


class ListItems(Struct, frozen=True, kw_only=True):
    """Which items to list."""

    type: (
        Annotated[Literal["entity", "claim", "task", "decision", "note"], about("Only of this type.", noun="item type")]
        | None
    ) = None
    source: Annotated[str, about("Only of this file or folder.", metavar="PATH")] | None = None
    limit: Limit = MOST_ITEMS


def read_notes(
    context: Context,
    environ: Mapping[str, str],
    *,
    agent: str = "",
    session: str | None = None,
    only: Sequence[str] = (),
) -> list[NoteReading]:
    """Read the notes that agents keep of this project in their own memories."""
    return host_notes.read_notes(context, environ, agent=agent, session=session, only=only)


def note_readers(context: Context, environ: Mapping[str, str]) -> list[HostState]:
    """Return the state of the readers of agents' own memories."""
    return host_notes.host_states(context, environ)


def sync(context: Context, asked: Sync) -> list[SyncReport]:
    """Take in edits of people, and write every file as it should be."""
    return files.sync(context, asked.ask)


def write_agents(context: Context, asked: WriteAgents) -> SyncReport:
    """Write the block of confirmed memories in AGENTS.md, or take it out."""
    return files.agents(context, remove=asked.remove, ask=asked.ask)


def list_views(context: Context, _asked: ListViews) -> list[ViewStatus]:
    """Return where each file is, and whether it has edits."""
    return files.list_views(context)


def extract(context: Context, asked: Extract) -> Extraction:
    """Take items out of files."""
    return library.extract(context, asked.paths, sources=asked.sources, progress=asked.progress)


def list_items(context: Context, asked: ListItems) -> Memories:
    """List items by file and line."""
    return library.list_items(context, type=asked.type, source=asked.source, limit=asked.limit)


SYNC = Verb(
    name="files.sync",
    help="Take edits of MEMORY.md and tasks.json in, and write both as they should be.",
    request=Sync,
    run=sync,
    effect="writes",
    returns=Returns(SyncReport, "What was done with each file.", many="files"),
    python="files.sync",
    cli="files sync",
    mcp=Tool("memory_files_sync"),
    http="POST /files/sync",
    slash="/memory files sync",
    is_repeatable=True,
)
AGENTS = Verb(
    name="files.agents",
    help="Write confirmed memories of the project into a block of AGENTS.md, for agents without hooks.",
    request=WriteAgents,
    run=write_agents,
    effect="writes",
    returns=Returns(SyncReport, "What was done with the file."),
    python="files.agents",
    cli="files agents",
    mcp=Tool("memory_files_agents"),
    http=NO_SERVER,
    slash="/memory files agents",
    is_repeatable=True,
)
VIEWS = Verb(
    name="files.status",
    help="Show where each file is, and whether it has edits.",
    request=ListViews,
    run=list_views,
    effect="reads",
    returns=Returns(ViewStatus, "Files beside the store.", many="files"),
    python="files.status",
    cli="files status",
    mcp=Tool("memory_files"),
    http="GET /files",
    slash="/memory files status",
)
EXTRACT = Verb(
    name="files.extract",
    help="Take decisions, tasks, notes and definitions out of the files of this project.",
    request=Extract,
    run=extract,
    effect="writes",
    returns=Returns(Extraction, "What was read, added, changed and expired."),
    python="files.extract",
    cli="extract",
    mcp=Tool("memory_extract"),
    http=NotHere("A server does not read files of a project for its clients; run `kept extract` there."),
    slash="/memory extract",
    is_repeatable=True,
)
ITEMS = Verb(
    name="files.items",
    help="List items of files, by file and line.",
    request=ListItems,
    run=list_items,
    effect="reads",
    returns=Returns(Memory, "Items with file and line.", many="items"),
    python="files.items",
    cli="items",
    mcp=Tool("memory_items"),
    http="GET /knowledge",
    slash="/memory items",
)
VERBS = (SYNC, AGENTS, VIEWS, EXTRACT, ITEMS)
