"""`kept files`, `kept extract`, `kept items`: files that people edit, and what the project's own files say."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from kept.distribution import install_line
from kept.entrypoints.cli.derived import options_of, request_of
from kept.entrypoints.cli.frame import command, group, limit_option, yes_option
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import counted, memories, name_of, nothing_yet, progress
from kept.errors import InvalidInput, NotAllowed
from kept.memory import Kept, views
from kept.memory.files import ViewStatus, item_document, merge_texts
from kept.memory.verbs.exchange import WRITE_BRAIN
from kept.memory.verbs.views import AGENTS, EXTRACT, ITEMS
from kept.memory.views import SyncReport

MOST_ITEMS = 100_000  # that are counted, to say how many more there are


@group
def files_command() -> None:
    """Kept takes your edits in at its next command, and writes the files when something changed."""


@files_command.command("sync")
@yes_option
def sync_files(invocation: Invocation, *, yes: bool) -> None:
    """Take your edits in, and write the files.

    A changed line is a revision, a new one a memory in your own words, a deleted one is forgotten; `kept undo` undoes
    it. You are asked when many lines are gone at once, and about every edit of a file in a repository.
    """
    with invocation.open(auto_upkeep=False) as memory:  # which would take edits in without asking
        done = memory.files.sync(ask=_asking(invocation, yes=yes)) if memory.files.status() else []
    if not done:
        invocation.answer({"files": done}, [nothing_yet(invocation)])
        return
    lines = [line for one in done for line in _synced_lines(one)]
    invocation.answer({"files": done}, lines)


@files_command.command("agents")
@options_of(AGENTS)
@yes_option
def write_agents(invocation: Invocation, *, remove: bool, yes: bool) -> None:
    """Write confirmed memories of the project into a block of AGENTS.md, for agents without hooks.

    The file is committed: global memory, candidates and statements of low trust are never in it. Outside of the block
    no byte is changed. You are asked about every edit that was made inside it.
    """
    with invocation.open(auto_upkeep=False) as memory:
        done = memory.files.agents(remove=remove, ask=_asking(invocation, yes=yes))
    lines = _synced_lines(done)
    if remove and done.is_written:
        is_left = Path(done.path).exists()
        what = " stays, without the block of Kept" if is_left else " is deleted: it held nothing but the block of Kept"
        lines[0] = (Strong(done.name), what, Dim(f"  {done.path}"))
    invocation.answer(done, lines)


def _asking(invocation: Invocation, *, yes: bool) -> views.Ask:
    def ask(question: str, lines: Sequence[str]) -> bool:
        invocation.tell(*(("    ", line) for line in lines))
        try:
            return invocation.agree(question, yes=yes)
        except NotAllowed:
            return False

    return ask


def _synced_lines(done: SyncReport) -> list[Line]:
    counts = ((done.added, "added"), (done.changed, "changed"), (done.removed, "removed"))
    said = [
        f"{len(refs)} {what} ({', '.join(refs[:5])}{', …' if len(refs) > 5 else ''})" for refs, what in counts if refs
    ]
    what = "not touched" if done.waiting else "written" if done.is_written else "up to date"
    lines: list[Line] = [(Strong(done.name), f" {what}{': ' if said else ''}{', '.join(said)}", Dim(f"  {done.path}"))]
    lines += [f"    {note}" for note in (*done.notes, *((done.waiting,) if done.waiting else ()))]
    return lines


@files_command.command("status")
def show_status(invocation: Invocation) -> None:
    """Show where the files are, and whether they have edits that were not taken in."""
    with invocation.open() as memory:
        found = memory.files.status()
    lines: list[Line] = [(Strong(one.name), f" {_state(one)}", Dim(f"  {one.path}")) for one in found]
    if not found:
        lines.append('Nothing is kept here yet. `kept remember "…"` stores the first memory.')
    invocation.answer({"files": found}, lines)


def _state(one: ViewStatus) -> str:
    if one.problem:
        return one.problem
    if not one.exists:
        return "not written yet"
    if one.is_outdated:
        return "out of date; `kept files agents` writes it"
    return "has edits; `kept files sync` takes them in" if one.is_edited else "up to date"


@files_command.command("watch")
@click.option("--seconds", type=click.IntRange(0, 31_536_000), metavar="NUMBER", help="Stop after this many seconds.")
def watch_files(invocation: Invocation, *, seconds: int | None) -> None:
    """Take your edits in as soon as you save, until you press Ctrl-C."""
    try:
        from watchfiles import watch  # an optional package
    except ImportError:
        raise InvalidInput(
            "`kept files watch` needs the package watchfiles.", hint=f"Install it with: {install_line('files')}"
        ) from None
    with invocation.open() as memory:
        memory.files.sync()
        folders = {str(Path(one.path).parent) for one in memory.files.status() if not one.problem}
        invocation.tell(Dim(f"Watching {counted(len(folders), 'folder')}. Ctrl-C ends it."))
        ends = None if seconds is None else time.monotonic() + seconds
        for _ in watch(
            *sorted(folders), recursive=False, step=100, rust_timeout=500, yield_on_timeout=True, raise_interrupt=False
        ):
            _take_in(invocation, memory)
            if ends is not None and time.monotonic() >= ends:
                break


def _take_in(invocation: Invocation, memory: Kept) -> None:
    for done in memory.files.take_edits():
        if done.has_edits or done.notes or done.waiting:
            invocation.answer(done, _synced_lines(done))
            invocation.flush()


@files_command.command("brain")
@options_of(WRITE_BRAIN)
def write_brain(invocation: Invocation, **given: Any) -> None:
    """Write what is kept here to a new folder, in Brain's layout: a MEMORY.md and sessions for each agent, items.json,
    tasks.json. `kept import brain FOLDER` reads it.
    """
    asked = request_of(WRITE_BRAIN, given)
    with invocation.open() as memory:
        done = memory.perform(WRITE_BRAIN, asked)
    told = f"{memories(done.memories)}, {counted(done.sessions, 'session')}, {counted(done.items, 'item')}"
    line = f"Wrote {told} and {counted(done.tasks, 'task')} of {counted(len(done.agents), 'agent')} to {done.folder}."
    invocation.answer(done, [line])


@files_command.command("merge-driver")
@click.argument("base", type=click.Path(path_type=Path))
@click.argument("ours", type=click.Path(path_type=Path))
@click.argument("theirs", type=click.Path(path_type=Path))
def merge_driver(invocation: Invocation, *, base: Path, ours: Path, theirs: Path) -> None:
    """Merge two versions of a MEMORY.md for git, line by line; the result replaces OURS.

    Where both sides changed a line, both stay. A line `MEMORY.md merge=kept` in .gitattributes and this command set it
    up.

    \b
    git config merge.kept.driver "PYTHONPATH= $(command -v kept) files merge-driver %O %A %B"
    """
    try:
        texts = [path.read_bytes().decode() for path in (base, ours, theirs)]
    except UnicodeDecodeError as error:
        raise InvalidInput("One of the versions is not UTF-8.", hint="Merge them by hand.") from error
    merged, clashes = merge_texts(*texts)
    ours.write_bytes(merged.encode())
    if clashes or invocation.as_json:
        invocation.answer({"clashes": clashes}, [f"Both texts are kept: {clash}." for clash in clashes])


@command
@options_of(EXTRACT)
def extract_command(invocation: Invocation, **given: Any) -> None:
    """From Markdown, reStructuredText, decision records, docstrings, doc comments, and comments such as TODO, NOTE or
    DECISION, by rules; each item names its file and line. Files that git ignores and vendored folders (vendor,
    third_party, dist …) are left out, unless you name them. Doing it again reads only files that have changed, and
    removes items of deleted files. `kept recall --scope items` and `--scope sources` search them.
    """
    asked = request_of(EXTRACT, given)
    with invocation.open() as memory, progress(invocation, "Extracting") as step:
        done = memory.perform(EXTRACT, replace(asked, progress=step))
    told = f"{counted(done.added, 'piece')} new, {done.changed:,} changed, {done.expired:,} expired"
    lines: list[Line] = [f"Read {done.read:,} of {counted(done.files, 'file')}: {told}."]
    lines.append(f"There are {counted(done.items, 'item')} and {counted(done.chunks, 'piece')} of files now.")
    if done.vendored:
        lines.append(Dim(f"Left out {counted(done.vendored, 'vendored, built or minified file')}."))
    if done.copies:
        lines.append(Dim(f"{counted(done.copies, 'file is a copy', 'files are copies')} of another one."))
    lines += [Dim(f"Left out {one.file}: {one.reason}.") for one in done.skipped[:10]]
    if len(done.skipped) > 10:
        lines.append(Dim(f"Left out {len(done.skipped) - 10:,} more files."))
    if done.items:
        lines.append("`kept items` lists the items, `kept recall WORDS --scope items` finds some.")
    invocation.answer(done, lines)


@command
@options_of(ITEMS, without=("limit",))
@limit_option(50, "items at most")  # a page for a person; programs get more at once
def items_command(invocation: Invocation, *, limit: int, **given: Any) -> None:
    """`kept extract` finds them. With --json they come in the form of Brain's items.json."""
    asked = request_of(ITEMS, {**given, "limit": MOST_ITEMS})
    with invocation.open() as memory:
        found = memory.perform(ITEMS, asked)
    more, found = len(found) - limit, found[:limit]
    lines: list[Line] = []
    for item in found:
        lines.append((name_of(item), f" {item.item_type}: ", Strong(item.title or "")))
        if item.content != item.title:
            lines.append(("    ", item.content))
        lines.append(Dim(f"    {item.source.file}:{item.source.line} · confidence {item.confidence:g}"))
    if more > 0:
        lines.append(f"… and {more:,} more. `kept items --limit {limit + more}` lists all, --type and --source fewer.")
    if not found:
        lines.append("There are no such items. `kept extract` takes them out of the files of this project.")
    invocation.answer([item_document(item) for item in found], lines)
