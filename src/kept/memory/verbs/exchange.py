"""Import, export, merge and move."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct

from kept.errors import InvalidInput
from kept.memory import bringing, imports, layout, move, pieces, store, transfer
from kept.memory.bringing import ImportReport
from kept.memory.context import Context
from kept.memory.imports import ImportedTranscript
from kept.memory.joiner import MergeReport
from kept.memory.layout import Layout
from kept.memory.move import MoveReport
from kept.memory.transfer import ExportReport
from kept.memory.verbs.declare import NO_AGENT, NO_SERVER, NotHere, Returns, Verb
from kept.memory.verbs.fields import PYTHON_ONLY, Moment, about
from kept.model import Memory

EXPORT_FORMATS = ("kept", *transfer.EXPORTERS)
IMPORT_FORMATS = ("kept", *bringing.FORMATS)
DryRun = Annotated[bool, about("Only count; change nothing.")]
Progress = Annotated[Any, PYTHON_ONLY]


class Export(Struct, frozen=True, kw_only=True):
    """Which memories to export."""

    archived: Annotated[bool, about("Archived memories as well.")] = False


class ExportTo(Struct, frozen=True, kw_only=True):
    """A file to write."""

    target: Annotated[str, about("The file.", metavar="FILE")]
    format: (
        Annotated[
            str,
            about(
                "kept, markdown, obsidian, praxis, server-memory or csv; by default by its ending, else kept.",
                metavar="FORMAT",
            ),
        ]
        | None
    ) = None
    with_forgotten: Annotated[bool, about("Forgotten memories as well.")] = False
    sessions: Annotated[bool, about("praxis: FILE is a new folder, with the findings of each session as well.")] = False


class ImportFrom(Struct, frozen=True, kw_only=True):
    """Memory files of another program."""

    path: Annotated[str, about("The file or folder.", metavar="PATH")]
    format: Annotated[str, about("The program; by default recognised.", metavar="FORMAT")] | None = None
    dry_run: DryRun = False
    confirm: Annotated[bool, about("Vouch for all of them: they are confirmed at once.")] = False
    from_project: (
        Annotated[str, about("claude-mem: its name for this project; by default the folder's.", metavar="NAME")] | None
    ) = None
    progress: Progress = None


class ImportTranscripts(Struct, frozen=True, kw_only=True):
    """Transcripts of another program."""

    program: Annotated[str, about("The program.", metavar="PROGRAM")]
    path: Annotated[str, about("The file or folder.", metavar="PATH")] = ""
    here: Annotated[bool, about("Of transcripts, only sessions of this project.")] = False
    since: Annotated[Moment, about("Only transcripts that changed since then.", metavar="DATE")] | None = None
    dry_run: DryRun = False
    paths: Annotated[Any, PYTHON_ONLY] = None
    progress: Progress = None


class Merge(Struct, frozen=True, kw_only=True):
    """Another store."""

    other: Annotated[str, about("An export, a store or a home.", metavar="PATH")]
    dry_run: DryRun = False
    progress: Progress = None


class Move(Struct, frozen=True, kw_only=True):
    """Where the project goes."""

    to: Annotated[str, about("A postgresql:// URL, `home`, or a new file.", metavar="PLACE", is_named=True)]
    tell: Annotated[Any, PYTHON_ONLY] = None


class WriteBrain(Struct, frozen=True, kw_only=True):
    """A new folder."""

    folder: Annotated[str, about("A new folder.", metavar="FOLDER")]


def export(context: Context, asked: Export) -> Iterator[Memory]:
    """Return every live memory, oldest first."""
    return store.export(context, archived=asked.archived)


def export_to(context: Context, asked: ExportTo) -> ExportReport:
    """Write everything to a file, without loss or for another program."""
    target = Path(asked.target)
    format = export_format(asked.target, asked.format)
    if format in transfer.EXPORTERS:
        return transfer.export_as(context, target, format, sessions=asked.sessions)
    return transfer.export_to(context, target, with_forgotten=asked.with_forgotten)


def export_format(target: str, format: str | None = None) -> str:
    """Return the format of an export: the one that is named, else the one that the ending of the file stands for.

    Raises InvalidInput for an unknown format, and for an ending that stands for several.
    """
    if format is not None:
        if format not in EXPORT_FORMATS:
            raise InvalidInput(f"Unknown format {format!r}.", hint=f"Choose one of {', '.join(EXPORT_FORMATS)}.")
        return format
    ending = Path(target).suffix.lower()
    if ending == ".json":
        raise InvalidInput(
            "A .json file may be of several formats.",
            hint="Choose with --format praxis, --format server-memory or --format kept.",
        )
    return {".md": "markdown", ".markdown": "markdown", ".csv": "csv"}.get(ending, "kept")


def export_lines(context: Context, *, with_forgotten: bool) -> Iterator[bytes]:
    """Return the lines of a lossless export."""
    return transfer.export_lines(context, with_forgotten=with_forgotten)


def import_from(context: Context, asked: ImportFrom) -> ImportReport:
    """Import the memory files of another program."""
    place = Path(asked.path)
    return bringing.bring_in(
        context,
        bringing.importer_of(place, asked.format),
        place,
        dry_run=asked.dry_run,
        confirm=asked.confirm,
        from_project=asked.from_project,
        progress=asked.progress,
    )


def import_transcripts(context: Context, asked: ImportTranscripts) -> Sequence[ImportedTranscript]:
    """Import transcripts in the order in which their sessions began."""
    how = imports.HowToImport(here=asked.here, since=asked.since, dry_run=asked.dry_run)
    path = asked.path if asked.paths is None else asked.paths
    return imports.import_transcripts(context, asked.program, path, how, progress=asked.progress)


def merge(context: Context, asked: Merge) -> MergeReport:
    """Join another store with this memory."""
    with pieces.from_anywhere(context, Path(asked.other)) as source:
        return transfer.join(context, source, dry_run=asked.dry_run, progress=asked.progress)


def move_project(context: Context, asked: Move) -> MoveReport:
    """Carry the project over to another place."""
    return move.move_to(context, asked.to, tell=asked.tell)


def write_brain(context: Context, asked: WriteBrain) -> Layout:
    """Write the project in Brain's layout."""
    return layout.write_layout(context, Path(asked.folder))


EXPORT = Verb(
    name="store.export",
    help="Give out all memories, oldest first.",
    request=Export,
    run=export,
    effect="reads",
    returns=Returns(Memory, "One memory on each line."),
    python="store.export",
    cli="export",
    mcp=NotHere("A whole store does not fit into a context; memory_list gives pages."),
    http="GET /export",
    slash=NotHere("A whole store does not fit into a chat; `/memory export FILE` writes it to a file."),
)
EXPORT_TO = Verb(
    name="store.export_to",
    help="Write all memories to a file, for Kept elsewhere or for other programs.",
    request=ExportTo,
    run=export_to,
    effect="reads",
    returns=Returns(ExportReport, "The file, and how much is in it."),
    python="store.export_to",
    cli="export",
    mcp=NO_AGENT,
    http=NotHere("GET /export gives the memories to the client."),
    slash="/memory export",
)
IMPORT = Verb(
    name="store.import_",
    help="Bring in the memory files of another program.",
    request=ImportFrom,
    run=import_from,
    effect="writes",
    returns=Returns(ImportReport, "What was imported, counted."),
    python="store.import_",
    cli="import",
    mcp=NO_AGENT,
    http=NO_SERVER,
    slash="/memory import",
)
IMPORT_TRANSCRIPTS = Verb(
    name="import_transcripts",
    help="Import transcripts of another program.",
    request=ImportTranscripts,
    run=import_transcripts,
    effect="writes",
    returns=Returns(ImportedTranscript, "What each transcript brought.", many="transcripts"),
    python="import_transcripts",
    cli="import",
    mcp=NO_AGENT,
    http=NO_SERVER,
    slash="/memory transcripts",
)
MERGE = Verb(
    name="store.merge",
    help="Join an export, or another home, with this memory.",
    request=Merge,
    run=merge,
    effect="writes",
    returns=Returns(MergeReport, "What was stored and changed, counted."),
    python="store.merge",
    cli="store merge",
    mcp=NO_AGENT,
    http=NO_SERVER,
    slash="/memory merge",
)
MOVE = Verb(
    name="store.move",
    help="Carry the project over to a database, or back.",
    request=Move,
    run=move_project,
    effect="writes",
    returns=Returns(MoveReport, "What was carried over, as counted on both sides."),
    python="store.move",
    cli="store move",
    mcp=NO_AGENT,
    http=NO_SERVER,
    slash="/memory move",
)
WRITE_BRAIN = Verb(
    name="files.write_brain",
    help="Write the project in the layout of Brain, by agent, into a new folder.",
    request=WriteBrain,
    run=write_brain,
    effect="reads",
    returns=Returns(Layout, "What was written."),
    python="files.write_brain",
    cli="files brain",
    mcp=NO_AGENT,
    http=NO_SERVER,
    slash="/memory brain",
)
VERBS = (EXPORT, EXPORT_TO, IMPORT, IMPORT_TRANSCRIPTS, MERGE, MOVE, WRITE_BRAIN)
