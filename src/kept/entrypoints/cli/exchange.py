"""`kept import`, `kept export` and `kept merge`: memories that come from elsewhere, and that are taken along."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from kept.entrypoints.cli.frame import command, yes_option
from kept.entrypoints.cli.invocation import FAILED, Dim, Invocation, Line
from kept.entrypoints.cli.sessions import PROGRAMS, counting_kinds, import_transcripts
from kept.entrypoints.cli.wording import counted, counted_kinds, memories, progress
from kept.errors import InvalidInput
from kept.memory.bringing import BY_NAME, BroughtIn, is_export, program_of
from kept.memory.joiner import Joined

EXPORTS = ("kept", "markdown", "obsidian", "praxis", "server-memory", "csv")
FORMATS = ("kept", *BY_NAME, *PROGRAMS)  # of imports
MOST_SHOWN = 10
_REFUSED = {
    "too_long": "too long for one statement",
    "erased": "erased here before",
    "invalid": "not storable",
    "not_allowed": "not allowed",
}


@command
@click.argument("what", nargs=-1, metavar="[FORMAT] [PATH]...")
@click.option("--dry-run", is_flag=True, help="Only say what would be stored.")
@click.option("--confirm", is_flag=True, help="You vouch for all of it: confirmed memories, not candidates.")
@click.option("--from-project", metavar="NAME", help="claude-mem: its name for this project. [default: the folder's]")
@click.option("--all-projects", is_flag=True, help="Transcripts: the sessions of all projects, each into its own.")
@click.option("--since", metavar="DATE", type=click.DateTime(), help="Transcripts: only those that changed since then.")
@yes_option
def import_command(
    invocation: Invocation,
    *,
    what: tuple[str, ...],
    dry_run: bool,
    confirm: bool,
    from_project: str | None,
    all_projects: bool,
    since: datetime | None,
    yes: bool,
) -> None:
    """Without a FORMAT, it is recognised. Secrets are redacted, dates are kept, and importing again adds only what is
    new. Memories of other programs are candidates until a person confirms them.

    Memories: kept (a file of `kept export`), openclaw, claude-memory, agents-md (CLAUDE.md, AGENTS.md), praxis, brain,
    agent-engine, server-memory, mem0, basic-memory, claude-mem, markdown.

    Transcripts: claude-code, codex, gemini, qwen, copilot, opencode, openclaw, specstory, brain (one JSON object per
    line: id, role, content). Without a PATH, the sessions that took place in this project, its worktrees included, are
    taken from where the program keeps them.
    """
    format, paths = (what[0], what[1:]) if what[:1] and what[0] in FORMATS else (None, what)
    if format is None and not paths:
        raise click.UsageError("There is nothing to import. Name a FORMAT, a PATH, or both.")
    if format is not None and not paths:
        place = _place_of_memories(format)
        paths = (str(place),) if place is not None else ()
    if format in PROGRAMS and not any(_is_memory(format, Path(path).expanduser()) for path in paths):
        for path in paths or (None,):
            import_transcripts(invocation, format, path, all_projects=all_projects, since=since, dry_run=dry_run)
        return
    if not paths:
        raise click.UsageError(f"Name the file or folder: kept import {format} PATH")
    for path in paths:
        place = Path(path).expanduser()
        if format == "kept" or (format is None and is_export(place)):
            _join(invocation, path, dry_run=dry_run, yes=yes)
        elif format is None and (program := program_of(place)) is not None:
            import_transcripts(invocation, program, path, all_projects=all_projects, since=since, dry_run=dry_run)
        else:
            _bring(invocation, place, format, dry_run=dry_run, confirm=confirm, from_project=from_project)


def _is_memory(format: str, path: Path) -> bool:
    """Whether a program's file, or folder, has memories and not only transcripts."""
    if format not in BY_NAME:
        return False
    return bool(BY_NAME[format].files(path)) if path.is_dir() else path.suffix != ".jsonl"


def _place_of_memories(format: str) -> Path | None:
    """Where a program keeps its memory of this project, if it is there."""
    place = BY_NAME[format].place if format in BY_NAME else ""
    slug = "".join(character if character.isalnum() else "-" for character in str(Path.cwd()))
    found = Path(place.format(slug=slug)).expanduser()
    return found if place and found.exists() else None


def _bring(invocation: Invocation, path: Path, format: str | None, *, dry_run: bool, **wanted: Any) -> None:
    said = 0
    with invocation.open() as memory, counting_kinds(memory) as kept, progress(invocation, "Importing") as tell:
        done = memory.store.import_(path, format, dry_run=dry_run, progress=tell, **wanted)
        if done.format == "brain" and path.is_dir() and not dry_run:
            transcripts = sorted(path.glob("**/sessions/*.jsonl"))
            said = sum(one.added for one in memory.import_transcripts("brain", transcripts)) if transcripts else 0
    document = {**msgspec.to_builtins(done), "messages": said, "kept": dict(kept)}
    invocation.answer(document, _brought_lines(done, said, kept))
    invocation.tell(*done.failed)
    if done.failed:
        raise click.exceptions.Exit(FAILED)


def _brought_lines(done: BroughtIn, said: int, kept: Mapping[str, int]) -> list[Line]:
    would = "would be " if done.dry_run else ""
    lines: list[Line] = [
        f"{memories(done.stored)} {would}stored from {counted(done.files, 'file')} ({done.format}), "
        f"{counted(done.duplicates, 'duplicate')}."
    ]
    if kept:
        lines.append(f"Kept: {counted_kinds(kept)}.")
    others = [(done.tasks, "task", ""), (done.aliases, "alias", "aliases"), (done.conflicts, "conflict", "")]
    others.append((said, "message", ""))
    if also := [counted(number, noun, plural) for number, noun, plural in others if number]:
        lines.append(f"Also: {', '.join(also)}.")
    if done.redacted:
        lines.append(f"Secrets were taken out of {memories(done.redacted)}.")
    for reason, number in done.refused.items():
        lines.append(f"Refused because {_REFUSED.get(reason, reason.replace('_', ' '))}: {number:,}.")
    if done.elsewhere:
        lines.append(f"Left out, because of other projects: {counted(done.elsewhere, 'statement')}.")
    if done.unread:
        lines.append(f"Could not be read: {counted(len(done.unread), 'part')}.")
        lines += [Dim(f"    {one}") for one in done.unread[:MOST_SHOWN]]
    if done.stored and not done.dry_run:
        lines.append(Dim("`kept review` goes through candidates; `kept undo` takes the import back."))
    return lines


@command
@click.argument("file", required=False)
@click.option(
    "--format", "format", type=click.Choice(EXPORTS), help="The format. [default: by the ending of FILE, else kept]"
)
@click.option("--with-forgotten", is_flag=True, help="Include forgotten memories.")
def export_command(invocation: Invocation, *, file: str | None, format: str | None, with_forgotten: bool) -> None:
    """The format `kept` has everything: memories with their history, the archive, sessions, tasks, aliases, pauses.
    `kept import FILE` brings it in again, on any machine; without a FILE, it is printed. The other formats have the
    live memories: a page of Markdown, an Obsidian vault (FILE is a new folder), the project.json of Praxis, the graph
    of the MCP server memory, and a table for spreadsheets.
    """
    format = format or _format_of(file or "")
    if format != "kept" and file is None:
        raise click.UsageError(f"Name the file to write: kept export --format {format} FILE")
    with invocation.open() as memory:
        if file is None:
            lines = memory.store.export_lines(with_forgotten=with_forgotten)
            documents = [line.decode() for line in lines]
            invocation.answer({"lines": [msgspec.json.decode(line) for line in documents]}, documents)
            return
        done = memory.store.export_to(Path(file).expanduser(), format=format, with_forgotten=with_forgotten)
    if format != "kept":
        invocation.answer(done, [f"Wrote {memories(done.memories)} to {file}."])
        return
    line = f"Wrote {memories(done.memories)}, {counted(done.records, 'record')} in all, to {file}."
    invocation.answer(done, [line, Dim(f"`kept import {file}` brings them in, here or on another machine.")])


def _format_of(file: str) -> str:
    """The format that the ending of a file stands for. Raises InvalidInput for one that stands for several."""
    ending = Path(file).suffix.lower()
    if ending == ".json":
        raise InvalidInput(
            "A .json file may be of several formats.",
            hint="Choose with --format praxis, --format server-memory or --format kept.",
        )
    return {".md": "markdown", ".markdown": "markdown", ".csv": "csv"}.get(ending, "kept")


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
