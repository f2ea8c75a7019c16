"""`kept backup`, `doctor`, `export` and `upkeep`: keeping the store in good order."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from kept.entrypoints.cli.frame import command
from kept.entrypoints.cli.invocation import FAILED, Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import counted, memories, size
from kept.entrypoints.cli.write import given_file
from kept.memory.store import to_document
from kept.model import GLOBAL

if TYPE_CHECKING:
    from kept.memory.store import Finding


@command
@click.argument("file")
@click.option("--global", "is_global", is_flag=True, help="Global memory, instead of the project's.")
def backup_command(invocation: Invocation, *, file: str, is_global: bool) -> None:
    """Other programs may read and write during the backup. FILE must not exist: a backup never overwrites anything.
    `kept restore FILE` restores it.
    """
    with invocation.open() as memory:
        made = memory.store.backup(given_file(file), tier="global" if is_global else "project")
    counts = f"{memories(made.memories)}, {counted(made.events, 'event')}, {size(made.bytes)}"
    invocation.answer(made, [f"Backed up to {file}: {counts}. `kept restore {file}` restores it."])


@command
@click.option("--deep", is_flag=True, help="Compare every memory with its journal and its index; takes longer.")
@click.option("--fix", is_flag=True, help="Repair damage; a damaged file is kept beside the new one.")
def doctor_command(invocation: Invocation, *, deep: bool, fix: bool) -> None:
    """It reads every byte that an answer could come from, and changes nothing. The exit code is 1 if there is a
    problem. With --fix it recovers as much as possible and says what is lost.
    """
    with invocation.open(auto_upkeep=False) as memory:
        stores = memory.store.doctor(deep=deep, fix=fix)
    lines: list[Line] = []
    for store in stores:
        lines.append((Strong("Global memory" if store.space == GLOBAL else "This project"), Dim(f"  {store.path}")))
        lines += _finding_lines([*store.repaired, *store.findings])
    is_healthy = all(one.level != "problem" for store in stores for one in store.findings)
    if not stores:
        lines.append("Nothing is kept here yet, so there is nothing to check.")
    elif is_healthy:
        is_lost = any(one.level == "problem" for store in stores for one in store.repaired)
        lines.append("Repaired. The items above could not be recovered." if is_lost else "No problems found.")
    invocation.answer(msgspec.to_builtins({"healthy": is_healthy, "stores": stores}), lines)
    if not is_healthy:
        click.get_current_context().exit(FAILED)


def _finding_lines(findings: "Sequence[Finding]") -> list[Line]:
    """One line for each problem or note; all checks that passed in one line."""
    in_order = ", ".join(dict.fromkeys(finding.check for finding in findings if finding.level == "ok"))
    lines: list[Line] = [Dim(f"    ok: {in_order}")] if in_order else []
    for finding in findings:
        if finding.level != "ok":
            mark = Strong("    problem: ") if finding.level == "problem" else "    note: "
            lines.append((mark, f"{finding.message} {finding.hint}"))
    return lines


@command
@click.option("--archived", is_flag=True, help="Include archived memories.")
def export_command(invocation: Invocation, *, archived: bool) -> None:
    """Lossless: with all fields. Forgotten memories are left out."""
    with invocation.open() as memory:
        documents = [to_document(one) for one in memory.store.export(archived=archived)]
    lines: list[Line] = [msgspec.json.encode(document).decode() for document in documents]
    invocation.answer({"memories": documents}, lines)


_WORDS = {
    "confirm": ("is confirmed", "would be confirmed"),
    "penalise": ("counts for less", "would count for less"),
    "expire": ("is archived", "would be archived"),
    "evict": ("is archived", "would be archived"),
    "pack": ("is packed", "would be packed"),
}


@command
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
def upkeep_command(invocation: Invocation, *, dry_run: bool) -> None:
    """Memories are archived, not removed: `kept restore` brings them back. Sessions without new messages for a long
    time are packed.
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
        lines.append("Another process is already running upkeep.")
    elif not lines:
        lines.append("There was nothing to do.")
    packed = [one.ref for one in done.done if one.action == "pack"]
    invocation.answer({"done": done.done, "dry_run": dry_run, "skipped": done.skipped, "packed": packed}, lines)
