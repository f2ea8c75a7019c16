"""`kept import` and `kept export`: memories that come from elsewhere, and that are taken along."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from kept.entrypoints.cli.completion import COMPLETIONS, one_of
from kept.entrypoints.cli.derived import STANDARD_INPUT, options_of, request_of
from kept.entrypoints.cli.frame import command, yes_option
from kept.entrypoints.cli.invocation import FAILED, LIKE, Dim, Invocation, Line, nearest
from kept.entrypoints.cli.sessions import PROGRAMS, counting_kinds, import_transcripts
from kept.entrypoints.cli.wording import checkout_note, counted, counted_kinds, memories, progress
from kept.errors import InvalidInput
from kept.memory.bringing import BY_NAME, HOST_OF_FORMAT, ImportReport, is_export, program_of
from kept.memory.joiner import MergeReport
from kept.memory.note_writer import NoteReading
from kept.memory.transfer import ExportReport
from kept.memory.verbs.exchange import (
    EXPORT_FORMATS,
    EXPORT_TO,
    IMPORT,
    IMPORT_FORMATS,
    IMPORT_TRANSCRIPTS,
    MERGE,
    ImportFrom,
    Merge,
    export_format,
)

EXPORT_FILE, MEMORY_FILES = "export", "memories"  # how a path is read; else as transcripts of a program
FORMATS = ("kept", *BY_NAME, *PROGRAMS)  # of imports
MOST_SHOWN = 10
_REFUSED = {
    "too_long": "too long for one statement",
    "erased": "erased here before",
    "rejected": "forgotten or rejected here before",
    "invalid": "not storable",
    "not_allowed": "not allowed",
}


@command
@click.argument("what", nargs=-1, metavar="[FORMAT] [PATH]...", shell_complete=one_of(IMPORT_FORMATS, or_path=True))
@options_of(IMPORT, without=("path",), completing=COMPLETIONS | {"format": one_of(IMPORT_FORMATS)})
@options_of(IMPORT_TRANSCRIPTS, without=("program", "path", "dry_run"))
@click.option("--all-projects", is_flag=True, help="Transcripts: the sessions of all projects, each into its own.")
@yes_option
def import_command(
    invocation: Invocation,
    *,
    what: tuple[str, ...],
    format: str | None,
    here: bool,
    since: datetime | None,
    all_projects: bool,
    yes: bool,
    **given: Any,
) -> None:
    """Without a FORMAT, it is recognised. Secrets are redacted, dates are kept, and importing again adds only what is
    new. Memories of other programs are candidates until a person confirms them.

    Memories: kept (a file of `kept export`), openclaw, claude-memory, codex-memory, qwen-memory, gemini-memory,
    agents-md (CLAUDE.md, AGENTS.md), praxis, brain, agent-engine, server-memory, mem0, basic-memory, claude-mem,
    markdown. Without a PATH, the four notebooks of agents are read as their hooks read them: this project's notes.

    Transcripts: claude-code, codex, gemini, qwen, copilot, opencode, openclaw, specstory, brain (one JSON object per
    line: id, role, content). Without a PATH, the sessions that took place in this project, its worktrees included, are
    taken from where the program keeps them.
    """
    named, paths = _named(format, what)
    if invocation.as_json and len(paths) > 1:
        raise click.UsageError("With --json, import one PATH at a time: the answer is one document.")
    invocation.tell(*checkout_note(invocation))
    for path in paths:
        if path == STANDARD_INPUT:
            _join_standard_input(invocation, named, dry_run=given["dry_run"], yes=yes)
            continue
        reader = _reader(named, path)
        if reader == EXPORT_FILE:
            join(invocation, Merge(other=path, dry_run=given["dry_run"]), yes=yes)
        elif not path and named in HOST_OF_FORMAT:
            _read_notes(invocation, named, dry_run=given["dry_run"])
        elif reader == MEMORY_FILES:
            _bring(invocation, request_of(IMPORT, {**given, "path": path, "format": named}))
        else:
            asked = {"program": reader, "path": path, "here": here, "since": since, "dry_run": given["dry_run"]}
            import_transcripts(invocation, request_of(IMPORT_TRANSCRIPTS, asked), all_projects=all_projects)


def _join_standard_input(invocation: Invocation, format: str | None, *, dry_run: bool, yes: bool) -> None:
    """Join an export that comes on standard input. It is read twice, and so it is written to a file first."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "standard-input.jsonl"
        with place.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        if format not in (None, "kept") or not is_export(place):
            raise InvalidInput(
                "Only an export of Kept can be imported from standard input.", hint="Name the file: kept import FILE."
            )
        join(invocation, Merge(other=str(place), dry_run=dry_run), yes=yes)


def _named(format: str | None, what: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """Return the format and the paths that were typed. Where a program keeps its own things, the path is "".

    Raises UsageError where the place of a program is unknown.
    """
    if format is None and what and what[0] in FORMATS:
        format, what = what[0], what[1:]
    if what:
        _check_format(what[0])
        return format, what
    if format is None:
        raise click.UsageError("There is nothing to import. Name a FORMAT, a PATH, or both.")
    place = _place_of_memories(format)
    if place is None and format not in PROGRAMS and format not in HOST_OF_FORMAT:
        raise click.UsageError(f"Name the file or folder: kept import {format} PATH")
    return format, ("" if place is None else str(place),)


def _check_format(typed: str) -> None:
    """Raise UsageError for a word that is the name of no file, and nearly that of a format."""
    meant = nearest(typed, FORMATS, cutoff=LIKE)
    if meant is not None and typed != STANDARD_INPUT and not Path(typed).expanduser().exists():
        raise click.UsageError(f"There is no file and no format {typed[:60]!r}. Did you mean {meant}?")


def _reader(format: str | None, path: str) -> str:
    """Return how a path is read: as an export, as memories, or as transcripts of the program that is returned."""
    place = Path(path).expanduser()
    if format == "kept" or (format is None and is_export(place)):
        return EXPORT_FILE
    if format in PROGRAMS and not (path and _is_memory(format, place)):
        return format
    program = program_of(place) if format is None else None
    return MEMORY_FILES if program is None else program


def _is_memory(format: str, path: Path) -> bool:
    """Whether a program's file, or folder, has memories and not only transcripts."""
    if format not in BY_NAME:
        return False
    return bool(BY_NAME[format].files(path)) if path.is_dir() else path.suffix != ".jsonl"


def _place_of_memories(format: str) -> Path | None:
    """Where a program keeps its memory of this project, if it is there."""
    place = BY_NAME[format].place if format in BY_NAME else ""
    found = Path(place).expanduser()
    return found if place and found.exists() else None


def _read_notes(invocation: Invocation, format: str, *, dry_run: bool) -> None:
    """Read the notes that an agent keeps of this project, as its hooks do."""
    if dry_run:
        raise click.UsageError(f"Name the folder of the notes: kept import {format} PATH --dry-run")
    with invocation.open() as memory:
        done = memory.files.read_notes(os.environ, only=(HOST_OF_FORMAT[format],))
    invocation.answer({"notes": done}, [*map(_notes_line, done)] or [f"There are no notes here ({format})."])
    invocation.tell(*(Dim(f"Left out: {line}.") for one in done for line in one.left_out))


def _notes_line(done: NoteReading) -> str:
    asked = f" `kept review` asks about {done.asked:,} of them." if done.asked else ""
    elsewhere = f", {counted(done.elsewhere, 'note')} of other projects left out" if done.elsewhere else ""
    return (
        f"{counted(done.read, 'new or changed file')} read: {memories(done.added)} stored, {done.changed:,} revised, "
        f"{done.removed:,} archived{elsewhere}.{asked}"
    )


def _bring(invocation: Invocation, asked: ImportFrom) -> None:
    path = Path(asked.path).expanduser()
    with invocation.open() as memory, counting_kinds(memory) as kept, progress(invocation, "Importing") as tell:
        done = memory.perform(IMPORT, msgspec.structs.replace(asked, path=str(path), progress=tell))
    document = {**msgspec.to_builtins(done), "kept": dict(kept)}
    invocation.answer(document, [*_counted_lines(done, kept), *_refused_lines(done)])
    invocation.tell(*done.failed)
    if done.failed:
        raise click.exceptions.Exit(FAILED)


def _counted_lines(done: ImportReport, kept: Mapping[str, int]) -> Iterator[Line]:
    would = "would be " if done.dry_run else ""
    yield (
        f"{memories(done.stored)} {would}stored from {counted(done.files, 'file')} ({done.format}), "
        f"{counted(done.duplicates, 'duplicate')}."
    )
    if kept:
        yield f"Kept: {counted_kinds(kept)}."
    others = [(done.tasks, "task", ""), (done.aliases, "alias", "aliases"), (done.conflicts, "conflict", "")]
    others += [(done.sessions, "session", ""), (done.messages, "message", "")]
    if also := [counted(number, noun, plural) for number, noun, plural in others if number]:
        yield f"Also: {', '.join(also)}."
    if done.redacted:
        yield f"Secrets were taken out of {memories(done.redacted)}."


def _refused_lines(done: ImportReport) -> Iterator[Line]:
    for reason, number in done.refused.items():
        yield f"Refused because {_REFUSED.get(reason, reason.replace('_', ' '))}: {number:,}."
    if done.elsewhere:
        yield f"Left out, because of other projects: {counted(done.elsewhere, 'statement')}."
    if done.unread:
        yield f"Could not be read: {counted(len(done.unread), 'part')}."
        yield from (Dim(f"    {one}") for one in done.unread[:MOST_SHOWN])
    if done.left_out:
        yield f"Left out: {counted(len(done.left_out), 'part')}."
        yield from (Dim(f"    {one}") for one in done.left_out[:MOST_SHOWN])
    if done.stored and not done.dry_run:
        yield Dim("`kept review` goes through candidates; `kept undo` takes the import back.")


@command
@click.argument("file", required=False)
@options_of(EXPORT_TO, without=("target",), completing=COMPLETIONS | {"format": one_of(EXPORT_FORMATS)})
@yes_option
def export_command(invocation: Invocation, *, file: str | None, format: str | None, yes: bool, **given: Any) -> None:
    """The format `kept` has everything: memories with their history, the archive, sessions, tasks, aliases, pauses.
    `kept import FILE` brings it in again, on any machine; without a FILE, or with a dash, it is printed. The other
    formats have the live memories: a page of Markdown, an Obsidian vault (FILE is a new folder), the project.json of
    Praxis, the graph of the MCP server memory, and a table for spreadsheets.
    """
    known = export_format(file or "", format)
    if file is None or file == STANDARD_INPUT:
        _print_export(invocation, format, **given)
        return
    target = Path(file).expanduser()
    if target.is_file():
        invocation.agree(f"{file} exists already. Overwrite it?", yes=yes)
    asked = request_of(EXPORT_TO, {**given, "format": known, "target": str(target)})
    with invocation.open() as memory:
        done = memory.perform(EXPORT_TO, asked)
    if done.format != "kept":
        invocation.answer(done, [f"Wrote {memories(done.memories)} to {file}.", *_unexported_lines(done)])
        return
    line = f"Wrote {memories(done.memories)}, {counted(done.records, 'record')} in all, to {file}."
    invocation.answer(
        done, [line, *_unexported_lines(done), Dim(f"`kept import {file}` brings them in, here or on another machine.")]
    )


def _unexported_lines(done: ExportReport) -> Iterator[Line]:
    """Say which memories are not in an export, and how they get there."""
    nouns = {"note of a task": "notes of tasks", "archived": "archived", "forgotten": "forgotten"}
    if parts := ", ".join(counted(number, name, nouns.get(name, "")) for name, number in done.left_out.items()):
        way = "`--with-forgotten` adds them" if done.format == "kept" else "`kept export FILE.jsonl` has more"
        yield f"Left out: {parts}. {way}."


def _print_export(invocation: Invocation, format: str | None, *, with_forgotten: bool, sessions: bool) -> None:
    if format not in (None, "kept") or sessions:
        raise click.UsageError(f"Name the file to write: kept export --format {format or 'praxis'} FILE")
    with invocation.open() as memory:
        lines = [line.decode() for line in memory.store.export_lines(with_forgotten=with_forgotten)]
    invocation.answer({"lines": [msgspec.json.decode(line) for line in lines]}, lines, as_is=True)


def join(invocation: Invocation, asked: Merge, *, yes: bool) -> None:
    """Join an export, a memory file or another home with the memory of this project."""
    place = str(Path(asked.other).expanduser())
    with invocation.open(yes=yes) as memory, progress(invocation, "Joining") as tell:
        done = memory.perform(MERGE, msgspec.structs.replace(asked, other=place, progress=tell))
    invocation.answer(done, _joined_lines(done))


def _joined_lines(done: MergeReport) -> list[Line]:
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
        lines.append(f"{counted(done.conflicts, 'contradiction')}: `kept review conflicts` shows both sides.")
    for reason, number in done.refused.items():
        lines.append(f"Left out because {_REFUSED[reason]}: {counted(number, 'record')}.")
    return lines
