"""`kept import`, `kept export` and `kept merge`: memories that come from elsewhere, and that are taken along."""

from datetime import datetime
from pathlib import Path

import click
import msgspec

from kept.entrypoints.cli.frame import command, yes_option
from kept.entrypoints.cli.invocation import Dim, Invocation, Line
from kept.entrypoints.cli.sessions import PROGRAMS, import_transcripts
from kept.entrypoints.cli.wording import counted, memories, progress
from kept.memory.joiner import Joined

EXPORTS = ("kept",)
_REFUSED = {
    "erased": "erased here before",
    "invalid": "not storable",
    "not_allowed": "not allowed",
}


@command
@click.argument("what", nargs=-1, metavar="[FORMAT] [PATH]...")
@click.option("--all-projects", is_flag=True, help="Transcripts: the sessions of all projects, each into its own.")
@click.option("--since", metavar="DATE", type=click.DateTime(), help="Transcripts: only those that changed since then.")
@click.option("--dry-run", is_flag=True, help="Only say what would be stored.")
@yes_option
def import_command(
    invocation: Invocation,
    *,
    what: tuple[str, ...],
    all_projects: bool,
    since: datetime | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """FORMAT is kept (a file of `kept export`), or a program whose transcripts are to be taken in: claude-code, codex,
    gemini, qwen, copilot, opencode, openclaw or brain. Without a FORMAT it is recognised. Secrets are redacted, dates
    are kept, and importing again adds only what is new.

    Of a program without a PATH, the sessions that took place in this project, its worktrees included, are taken from
    where the program keeps its transcripts.
    """
    if not what:
        raise click.UsageError("There is nothing to import. Name a FORMAT, a PATH, or both.")
    format, paths = (what[0], what[1:]) if what[0] in (*PROGRAMS, *EXPORTS) else ("kept", what)
    if format in PROGRAMS:
        for path in paths or (None,):
            import_transcripts(invocation, format, path, all_projects=all_projects, since=since)
        return
    for path in paths:
        _join(invocation, path, dry_run=dry_run, yes=yes)


@command
@click.argument("file", required=False)
@click.option("--format", "format", type=click.Choice(EXPORTS), default="kept", help="kept: everything, without loss.")
@click.option("--with-forgotten", is_flag=True, help="Include forgotten memories.")
def export_command(invocation: Invocation, *, file: str | None, format: str, with_forgotten: bool) -> None:
    """Without a FILE, the export is printed. The format `kept` has everything: memories with their history, the
    archive, sessions, tasks, aliases, pauses. `kept import FILE` brings it in again, on any machine.
    """
    with invocation.open() as memory:
        if file is None:
            lines = memory.store.export_lines(with_forgotten=with_forgotten)
            documents = [line.decode() for line in lines]
            invocation.answer({"lines": [msgspec.json.decode(line) for line in documents]}, documents)
            return
        done = memory.store.export_to(Path(file).expanduser(), with_forgotten=with_forgotten)
    line = f"Wrote {memories(done.memories)}, {counted(done.records, 'record')} in all, to {file}."
    invocation.answer(done, [line, Dim(f"`kept import {file}` brings them in, here or on another machine.")])


@command
@click.argument("other")
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@yes_option
def merge_command(invocation: Invocation, *, other: str, dry_run: bool, yes: bool) -> None:
    """OTHER is a file of `kept export`, a memory file, or another home (of which this project and global memory are
    taken). What only one side has is added, the newer revision counts, and feedback adds up. Texts that were revised on
    both sides both stay, as a conflict. Merging again changes nothing.
    """
    _join(invocation, other, dry_run=dry_run, yes=yes)


def _join(invocation: Invocation, other: str, *, dry_run: bool, yes: bool) -> None:
    with invocation.open(yes=yes) as memory, progress(invocation, "Joining") as tell:
        done = memory.store.merge(Path(other).expanduser(), dry_run=dry_run, progress=tell)
    invocation.answer(done, _joined_lines(done))


def _joined_lines(done: Joined) -> list[Line]:
    would = "would be " if done.dry_run else ""
    others = [counted(number, noun, {"alias": "aliases"}.get(noun, "")) for noun, number in done.others.items()]
    others += [counted(done.messages, "message")] if done.messages else []
    lines: list[Line] = [
        f"{memories(done.stored)} {would}stored, {done.changed:,} {would}changed, {done.known:,} known already."
    ]
    if others:
        lines.append(f"Also {would}stored or changed: {', '.join(others)}.")
    if done.duplicates:
        lines.append(
            f"{counted(done.duplicates, 'memory', 'memories')} said on both sides: one of the two is archived."
        )
    if done.conflicts:
        lines.append(f"{counted(done.conflicts, 'contradiction')}: `kept conflicts` shows both sides.")
    for reason, number in done.refused.items():
        lines.append(f"Left out because {_REFUSED[reason]}: {counted(number, 'record')}.")
    return lines
