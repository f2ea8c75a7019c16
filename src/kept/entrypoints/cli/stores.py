"""`kept store`: the store as a whole: backups, other stores that are joined with it, and its place."""

import shlex
from contextlib import suppress
from typing import Any

from kept.entrypoints.cli.database import database_group
from kept.entrypoints.cli.derived import chosen_tier, given_file, global_option, options_of, request_of
from kept.entrypoints.cli.exchange import join
from kept.entrypoints.cli.frame import group, yes_option
from kept.entrypoints.cli.invocation import Dim, Invocation, Line
from kept.entrypoints.cli.wording import counted, memories, size
from kept.errors import NotAllowed
from kept.memory import database
from kept.memory.opening import settings_in_force
from kept.memory.verbs.exchange import MERGE, MOVE
from kept.memory.verbs.upkeep import BACKUP, RESTORE_BACKUP


@group
def store_command() -> None:
    """A backup is one file; `kept export` writes a text that other programs read."""


store_command.add_command(database_group)


@store_command.command("backup")
@options_of(BACKUP)
@global_option("The same as --tier global.")
def back_up(invocation: Invocation, *, target: str, is_global: bool, **given: Any) -> None:
    """Write a verified copy of the store to a file.

    Other programs may read and write during the backup. FILE must not exist: a backup never overwrites anything.
    `kept store restore FILE` restores it. `kept erase` also cleans backups in Kept's home, and names those elsewhere.
    """
    asked = request_of(BACKUP, chosen_tier({**given, "target": str(given_file(target))}, is_global=is_global))
    with invocation.open() as memory:
        made = memory.perform(BACKUP, asked)
    counts = f"{memories(made.memories)}, {counted(made.events, 'event')}, {size(made.bytes)}"
    invocation.answer(made, [f"Backed up to {target}: {counts}. `kept store restore {target}` restores it."])


@store_command.command("restore")
@options_of(RESTORE_BACKUP)
@yes_option
def restore_backup(invocation: Invocation, *, source: str, overwrite_newer: bool, yes: bool) -> None:
    """Restore the whole store from a backup file.

    A store that has changed since the backup is replaced only after a yes, and is kept beside it as a backup of its
    own. Memories that were erased since then do not come back.
    """
    with invocation.open(yes=yes) as memory:
        restored = memory.store.restore(given_file(source), overwrite_newer=overwrite_newer)
    lines: list[Line] = [
        f"Restored {memories(restored.memories)} and {counted(restored.events, 'event')} from {source}."
    ]
    if restored.left_out:
        lines.append(f"Left out, because erased since then: {memories(restored.left_out)}.")
    if restored.replaced:
        lines.append(f"The previous store was kept as {restored.replaced}.")
    invocation.answer(restored, lines)


@store_command.command("merge")
@options_of(MERGE)
@yes_option
def merge_store(invocation: Invocation, *, yes: bool, **given: Any) -> None:
    """Join an export, or another home, with this memory.

    PATH is a file of `kept export`, a memory file, or another home (this project and global memory of it are
    taken). What only one side has is added, the newer revision counts, and feedback adds up. Texts that were revised on
    both sides both stay, as a conflict. Merging again changes nothing.
    """
    join(invocation, request_of(MERGE, given), yes=yes)


@store_command.command("move")
@options_of(MOVE)
def move_project(invocation: Invocation, **given: Any) -> None:
    """Carry the project over to a database, or back.

    Carries everything of the project over, with its history, and compares both sides. The old place can be read from
    then on, and not written. A move that was cut off goes on where it stopped. Global memory stays in your home.
    """
    asked = request_of(MOVE, given)
    if database.is_database(asked.to):
        database.refuse_password(asked.to)
    with invocation.open(auto_upkeep=False) as memory:
        moved = memory.perform(MOVE, asked)
    counts = (memories(moved.memories), counted(moved.events, "event"), counted(moved.messages, "message"))
    lines: list[Line] = [f"{', '.join(counts)}: all there, the same as here (digest {moved.digest[:8]})."]
    projects = invocation.projects()
    project = projects.find(invocation.project)
    if database.is_database(asked.to) and project is not None:
        name, url = shlex.quote(database.name_of(project)), shlex.quote(database.without_password(asked.to))
        lines.append(Dim(f"Use it from now on, in each clone: `kept projects link {name} --database {url}`"))
    invocation.answer(moved, lines)
    if project is not None and database.is_database(asked.to) and invocation.can_ask() and not invocation.as_json:
        with suppress(NotAllowed):
            invocation.agree("Use it there from now on, in this clone?")
            settings = settings_in_force(invocation.settings)
            database.follow(projects, project, database.without_password(asked.to), settings=settings)
            invocation.tell(f"Project {project.name} is used there from now on.")
