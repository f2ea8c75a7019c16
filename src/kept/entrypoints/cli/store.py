"""`kept backup` and `kept doctor`: keeping the store in good order.

`kept export`: everything out, one JSON line a memory.

`kept upkeep`: what time does, now.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from kept import access
from kept.entrypoints.cli.boundary import FAILED
from kept.entrypoints.cli.frame import Command, pass_invocation
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import counted, size
from kept.errors import InvalidInput
from kept.exchange.jsonl import to_document, to_lines
from kept.model import GLOBAL, replace
from kept.storage import examine, repair

if TYPE_CHECKING:
    from kept.storage import Finding


def given_file(name: str) -> Path:
    """The database file that a person named. Raises InvalidInput for a name that SQLite could not open."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidInput("That file name is not UTF-8; SQLite cannot open it.", hint="Give another name.") from None
    if not name or "\0" in name:
        raise InvalidInput("That is no file name.", hint="Give a path such as backups/web-app.db.")
    return Path(name)


@click.command("backup", cls=Command)
@click.argument("file")
@click.option("--global", "is_global", is_flag=True, help="Of global memory, instead of the project's.")
@pass_invocation
def backup_command(invocation: Invocation, *, file: str, is_global: bool) -> None:
    """Write a verified copy of the store to a file.

    Others may go on reading and writing meanwhile. FILE must not exist: a backup never overwrites anything.
    `kept restore FILE` puts it back.
    """
    with invocation.open() as memory:
        made = memory.store.backup(given_file(file), tier="global" if is_global else "project")
    counts = f"{counted(made.memories, 'memory', 'memories')}, {counted(made.events, 'event')}, {size(made.bytes)}"
    invocation.answer(made, [f"Backed up to {file}: {counts}. `kept restore {file}` puts it back."])


@click.command("doctor", cls=Command)
@click.option("--deep", is_flag=True, help="Compare every memory with its journal and its index; takes longer.")
@click.option("--fix", is_flag=True, help="Repair what can be repaired; a damaged file is kept beside the new one.")
@pass_invocation
def doctor_command(invocation: Invocation, *, deep: bool, fix: bool) -> None:
    """Examine the stores of this project and of global memory.

    It looks at every byte that an answer could come from, and changes nothing. It ends with exit code 1 if there is a
    problem. With --fix it saves what can be saved and says what is lost.
    """
    now = invocation.clock()
    stores: list[dict[str, Any]] = []
    lines: list[Line] = []
    for space, path in _stores(invocation):
        repaired = repair(path, now=now) if fix else []
        findings = examine(path, now=now, deep=deep)
        name = "Global memory" if space == GLOBAL else "This project"
        lines.append((Strong(name), Dim(f"  {path}")))
        lines += _finding_lines([*repaired, *findings])
        stores.append({"space": space, "path": str(path), "repaired": repaired, "findings": findings})
    is_healthy = all(one.level != "problem" for store in stores for one in store["findings"])
    if not stores:
        lines.append("Nothing is kept here yet, so there is nothing to examine.")
    elif is_healthy:
        is_lost = any(one.level == "problem" for store in stores for one in store["repaired"])
        lines.append("It is whole again, without what is named above." if is_lost else "All is well.")
    invocation.answer(msgspec.to_builtins({"healthy": is_healthy, "stores": stores}), lines)
    if not is_healthy:
        click.get_current_context().exit(FAILED)


def _stores(invocation: Invocation) -> Iterator[tuple[str, Path]]:
    """The stores there are; none is opened, since one that is damaged could not be."""
    projects = invocation.projects()
    project = projects.find(invocation.project)
    spaces = [] if project is None else [(project.space, projects.home.files(project.folder).database)]
    actor = replace(invocation.actor, project=project.space if project else None)
    for space, path in (*spaces, (GLOBAL, projects.home.files().database)):
        access.check_read(actor, space)
        if path.exists():
            yield space, path


def _finding_lines(findings: "Sequence[Finding]") -> list[Line]:
    """What a person should know or do, one line each; what is in order, all in one."""
    in_order = ", ".join(dict.fromkeys(finding.check for finding in findings if finding.level == "ok"))
    lines: list[Line] = [Dim(f"    in order: {in_order}")] if in_order else []
    for finding in findings:
        if finding.level != "ok":
            mark = Strong("    problem: ") if finding.level == "problem" else "    note: "
            lines.append((mark, f"{finding.message} {finding.hint}"))
    return lines


@click.command("export", cls=Command)
@click.option("--archived", is_flag=True, help="Also what has left for the archive.")
@pass_invocation
def export_command(invocation: Invocation, *, archived: bool) -> None:
    """Print every memory as a line of JSON.

    Lossless: all that is known of each. What was forgotten is not among them.
    """
    with invocation.open() as memory:
        found = list(memory.store.export(archived=archived))
    lines: list[Line] = [line.decode() for line in to_lines(found)]
    invocation.answer({"memories": [to_document(one) for one in found]}, lines)


_WORDS = {
    "confirm": ("is confirmed", "would be confirmed"),
    "penalise": ("counts for less", "would count for less"),
    "expire": ("is archived", "would be archived"),
    "evict": ("is archived", "would be archived"),
    "pack": ("is packed", "would be packed"),
}


@click.command("upkeep", cls=Command)
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@pass_invocation
def upkeep_command(invocation: Invocation, *, dry_run: bool) -> None:
    """End quarantines and shelf lives, and make room where a limit is exceeded.

    Everything leaves through the archive: `kept restore` brings it back. Sessions in which nothing was said for long
    are packed.
    """
    with invocation.open(auto_upkeep=False) as memory:
        done = memory.upkeep(dry_run=dry_run)
    lines: list[Line] = [
        (
            Strong(one.ref if one.action == "pack" else f"[id:{one.ref}]"),
            f" {_WORDS[one.action][dry_run]}: {one.reason}.",
        )
        for one in done.done
    ]
    if done.skipped:
        lines.append("Another process is at it already.")
    elif not lines:
        lines.append("There was nothing to do.")
    packed = [one.ref for one in done.done if one.action == "pack"]
    invocation.answer({"done": done.done, "dry_run": dry_run, "skipped": done.skipped, "packed": packed}, lines)
