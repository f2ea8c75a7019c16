"""Upkeep, backups, checks of the files, scans for secrets, and vectors."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct

from kept.memory import following, store, upkeep, vectors
from kept.memory.context import Context, Memories
from kept.memory.store import FileCheck, Leak
from kept.memory.upkeep import UpkeepReport
from kept.memory.verbs.declare import NO_AGENT, NO_SERVER, NotHere, Returns, Tool, Verb
from kept.memory.verbs.fields import PYTHON_ONLY, about
from kept.model import Tier
from kept.ports import BackupReport, RestoreReport, Shelf


class Upkeep(Struct, frozen=True, kw_only=True):
    """Upkeep now."""

    dry_run: Annotated[bool, about("Change nothing; show what would be done.")] = False


class Nothing(Struct, frozen=True, kw_only=True):
    """No arguments."""


class Backup(Struct, frozen=True, kw_only=True):
    """A new file for a backup."""

    target: Annotated[str, about("A new file.", metavar="FILE")]
    tier: Annotated[Tier, about("The store of the project, or global memory.")] = "project"


class RestoreBackup(Struct, frozen=True, kw_only=True):
    """A backup to restore."""

    source: Annotated[str, about("The backup.", metavar="FILE")]
    overwrite_newer: Annotated[bool, about("Restore even if changes made since would be lost.")] = False


class Scan(Struct, frozen=True, kw_only=True):
    """A scan for secrets."""

    fix: Annotated[bool, about("Remove the secrets, also from the history.")] = False


class Doctor(Struct, frozen=True, kw_only=True):
    """A check of the files."""

    deep: Annotated[bool, about("Compare every memory with its journal and its index; takes longer.")] = False
    fix: Annotated[bool, about("Repair damage; a damaged file is kept beside the new one.")] = False


class VectorsOn(Struct, frozen=True, kw_only=True):
    """Vectors for all memories."""

    model: (
        Annotated[str, about("all-MiniLM-L6-v2, or a folder with model.onnx and tokenizer.json.", metavar="MODEL")]
        | None
    ) = None
    progress: Annotated[Any, PYTHON_ONLY] = None


def run(context: Context, asked: Upkeep) -> UpkeepReport:
    """Confirm or archive memories that are due, and make room."""
    return upkeep.run(context, dry_run=asked.dry_run)


def finish_sessions(context: Context, _asked: Nothing) -> list[str]:
    """Finish silent sessions; returns their ids."""
    return upkeep.finish_sessions(context)


def pack_sessions(context: Context, _asked: Nothing) -> list[str]:
    """Compress old sessions; returns their ids."""
    return upkeep.pack_sessions(context)


def backup(context: Context, asked: Backup) -> BackupReport:
    """Write a verified copy of a store."""
    return store.backup(context, asked.target, tier=asked.tier)


def restore_backup(context: Context, asked: RestoreBackup) -> RestoreReport:
    """Replace the store with a backup."""
    return store.restore_backup(context, asked.source, overwrite_newer=asked.overwrite_newer)


def scan(context: Context, asked: Scan) -> list[Leak]:
    """Look for secrets in everything that is stored."""
    return store.scan(context, fix=asked.fix)


def doctor(context: Context, asked: Doctor) -> list[FileCheck]:
    """Examine the files."""
    return store.doctor(context, deep=asked.deep, fix=asked.fix)


def vectors_on(context: Context, asked: VectorsOn) -> None:
    """Make a vector for every memory that has none."""
    if asked.progress is None:
        vectors.turn_on(context, model=asked.model)
    else:
        vectors.turn_on(context, model=asked.model, progress=asked.progress)


def vectors_off(context: Context, _asked: Nothing) -> None:
    """Remove the vectors of the project."""
    vectors.turn_off(context)


def vector_states(context: Context, _asked: Nothing) -> dict[str, dict[str, Any]]:
    """Return the model and the numbers of each space."""
    return vectors.vector_states(context)


def keep_vectors(context: Context) -> None:
    """Make vectors for new memories, where vectors are on."""
    vectors.keep_up(context)


def follow_code(context: Context) -> None:
    """Find the code of memories where it stands now, after the turn of an agent."""
    following.keep_up(context)


def check_model(context: Context, model: Path | str | None) -> str | None:
    """Raise SettingsError unless vectors can be made here."""
    return vectors.check_model(context, model)


def vector_limits(context: Context, *, measured: bool) -> list[str]:
    """Return sentences on what the model cannot do in time."""
    return vectors.limits(context, measured=measured)


def matching(
    context: Context,
    *,
    kinds: Sequence[str],
    tags: Sequence[str],
    session: str | None,
    before: datetime | None,
    shelf: Shelf,
) -> Memories:
    """Return all memories of the project that pass the filters."""
    return store.matching(context, kinds=kinds, tags=tags, session=session, before=before, shelf=shelf)


UPKEEP = Verb(
    name="upkeep",
    help="Confirm or archive memories that are due, and make room where a limit is exceeded.",
    request=Upkeep,
    run=run,
    effect="writes",
    returns=Returns(UpkeepReport, "What was done, or would be."),
    python="upkeep",
    cli="upkeep",
    mcp=Tool("memory_upkeep"),
    http="POST /upkeep",
    slash="/memory upkeep",
)
FINISH_SESSIONS = Verb(
    name="store.finish_sessions",
    help="Finish conversations in which nothing was said for a while.",
    request=Nothing,
    run=finish_sessions,
    effect="writes",
    returns=Returns(None, "Ids of sessions."),
    python="store.finish_sessions",
    cli="session finish-silent",
    mcp=NotHere("Upkeep and the host's hooks do it."),
    http="POST /sessions/finish",
    slash="/memory session finish-silent",
)
PACK_SESSIONS = Verb(
    name="store.pack_sessions",
    help="Compress conversations in which nothing was said for a long time.",
    request=Nothing,
    run=pack_sessions,
    effect="writes",
    returns=Returns(None, "Ids of sessions."),
    python="store.pack_sessions",
    cli="session pack",
    mcp=NotHere("Upkeep compresses them when they are old enough."),
    http="POST /sessions/pack",
    slash="/memory session pack",
)
BACKUP = Verb(
    name="store.backup",
    help="Write a verified copy of the store to a file.",
    request=Backup,
    run=backup,
    effect="reads",
    returns=Returns(BackupReport, "The file, counted."),
    python="store.backup",
    cli="store backup",
    mcp=NO_AGENT,
    http=NO_SERVER,
    slash="/memory backup",
)
RESTORE_BACKUP = Verb(
    name="store.restore",
    help="Replace the store with a backup.",
    request=RestoreBackup,
    run=restore_backup,
    effect="destroys",
    returns=Returns(RestoreReport, "What was restored, and where the state before is kept."),
    python="store.restore",
    cli="store restore",
    mcp=NO_AGENT,
    http=NO_SERVER,
    slash="/memory restore-backup",
)
SCAN = Verb(
    name="store.scan",
    help="Search memories, messages, tasks and aliases for secrets.",
    request=Scan,
    run=scan,
    effect="destroys",
    returns=Returns(Leak, "What holds a secret, by its ref.", many="leaks"),
    python="store.scan",
    cli="secrets scan",
    mcp=Tool("memory_scan"),
    http="POST /scan",
    slash="/memory scan",
)
DOCTOR = Verb(
    name="store.doctor",
    help="Check the stores, and every agent that Kept is installed in.",
    request=Doctor,
    run=doctor,
    effect="writes",
    returns=Returns(None, "Findings for each file.", many="files"),
    python="store.doctor",
    cli="doctor",
    mcp=Tool("memory_doctor"),
    http="POST /doctor",
    slash="/memory doctor",
)
VECTORS_ON = Verb(
    name="vectors.on",
    help='Find memories by meaning as well: "car" finds the automobile.',
    request=VectorsOn,
    run=vectors_on,
    effect="writes",
    returns=Returns(None, "Nothing."),
    python="vectors.on",
    cli="vectors on",
    mcp=NotHere("It can take minutes and needs a model; a person switches it on."),
    http=NotHere("It can take minutes and needs a model on the server; run `kept vectors on` there."),
    slash="/memory vectors on",
)
VECTORS_OFF = Verb(
    name="vectors.off",
    help="Remove the vectors of the project.",
    request=Nothing,
    run=vectors_off,
    effect="destroys",
    returns=Returns(None, "Nothing."),
    python="vectors.off",
    cli="vectors off",
    mcp=NotHere("A person switches vectors on and off."),
    http="DELETE /vectors",
    slash="/memory vectors off",
)
VECTOR_STATES = Verb(
    name="vectors.status",
    help="Show the model of the vectors, and how many there are.",
    request=Nothing,
    run=vector_states,
    effect="reads",
    returns=Returns(None, "The state of each readable space."),
    python="vectors.status",
    cli="vectors status",
    mcp=Tool("memory_vectors"),
    http="GET /vectors",
    slash="/memory vectors status",
)
VERBS = (
    UPKEEP,
    FINISH_SESSIONS,
    PACK_SESSIONS,
    BACKUP,
    RESTORE_BACKUP,
    SCAN,
    DOCTOR,
    VECTORS_ON,
    VECTORS_OFF,
    VECTOR_STATES,
)
