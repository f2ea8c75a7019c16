"""`kept session`: conversations; and the import of transcripts, for `kept import`."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Literal

import click
import msgspec

from kept.entrypoints.cli.completion import complete_session
from kept.entrypoints.cli.frame import group, limit_option, session_named
from kept.entrypoints.cli.invocation import FAILED, Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import ago, counted, counted_kinds, local
from kept.errors import InvalidInput
from kept.journal import noun_of
from kept.memory import Kept
from kept.memory.imports import ImportedTranscript, TranscriptHead, find_transcripts
from kept.memory.sessions import OpenSession
from kept.model import Memory, Message, Session
from kept.projects.files import to_line


@group
def session_command() -> None:
    pass


@session_command.command("list")
def list_sessions(invocation: Invocation) -> None:
    """Show the sessions of this project, oldest first."""
    with invocation.open() as memory:
        found = [
            (session, 0 if session.packed_at else len(memory.session(session.name).messages()))
            for session in memory.sessions()
        ]
    lines: list[Line] = [
        (
            Strong(session.name),
            f"  {counted(count, 'message')}",
            Dim(f"  {session.agent or ''}  {ago(session.started_at, invocation.clock())}{_state(session)}"),
        )
        for session, count in found
    ]
    if not found:
        lines.append("There are no sessions here yet. `kept import claude-code` imports some.")
    documents = [{**msgspec.to_builtins(session), "messages": count} for session, count in found]
    invocation.answer({"sessions": documents}, lines, is_long=True)


def _state(session: Session) -> str:
    if session.packed_at is not None:
        return "  packed"
    return "  finished" if session.finished_at is not None else ""


def _open(invocation: Invocation, memory: Kept, id: str) -> OpenSession:
    """The session with this id, which must exist: reading must not start one."""
    return memory.session(session_named(invocation, memory, id))


@session_command.command("show")
@click.argument("id", shell_complete=complete_session)
@click.option("--window", is_flag=True, help="Only the messages that belong in the context now.")
@click.option("--limit", type=click.IntRange(1), metavar="NUMBER", help="Only this many, the newest ones.")
def show_session(invocation: Invocation, *, id: str, window: bool, limit: int | None) -> None:
    """Show the messages of a session; at a terminal, page by page."""
    with invocation.open() as memory:
        session = _open(invocation, memory, id)
        messages = list(session.window().messages) if window else session.messages()
    messages = messages[-limit:] if limit is not None else messages
    lines = [line for message in messages for line in message_lines(message, invocation)]
    invocation.answer({"id": session.id, "messages": messages}, lines or ["The session has no messages."], is_long=True)


def message_lines(message: Message, invocation: Invocation, *, name: str = "") -> list[Line]:
    """A message: its name, by default its number, who said it and when, and the text."""
    who = message.speaker or message.role
    at = f"  {local(message.at, invocation.zone)}" if message.at else ""
    said = message.content if message.input is None else f"{message.name} {msgspec.json.encode(message.input).decode()}"
    first, *rest = said.split("\n")
    return [
        (Strong(f"{name or f'#{message.n}':>4} {who}"), Dim(at)),
        ("     ", first),
        *(("     ", line) for line in rest),
    ]


@session_command.command("search")
@click.argument("words", nargs=-1, required=True)
@limit_option(5, "hits at most")
@click.option("--by-session", is_flag=True, help="Each session once, with its best message.")
@click.option("--packed", is_flag=True, help="Also search old sessions, which are packed; takes longer.")
def search_sessions(
    invocation: Invocation, *, words: tuple[str, ...], limit: int, by_session: bool, packed: bool
) -> None:
    """Search the messages of all sessions."""
    by: Literal["message", "session"] = "session" if by_session else "message"
    with invocation.open() as memory:
        recalled = memory.recall(" ".join(words), scope="sessions", limit=limit, by=by, packed=packed)
        has_packed = not packed and any(session.packed_at is not None for session in memory.sessions())
    lines: list[Line] = []
    for hit in recalled:
        if hit.message is not None:
            lines += message_lines(hit.message, invocation, name=hit.ref)
    hits = [{"ref": hit.ref, "score": hit.score, "why": hit.why, "message": hit.message} for hit in recalled]
    if not lines:
        lines.append("No message matches." + (" `--packed` also searches old sessions." * has_packed))
    invocation.answer({"hits": hits, "degraded": recalled.degraded}, lines)


@session_command.command("fork")
@click.argument("id", shell_complete=complete_session)
@click.argument("new_id", required=False)
def fork_session(invocation: Invocation, *, id: str, new_id: str | None) -> None:
    """Start a new session with all messages of this one."""
    with invocation.open() as memory:
        parent = _open(invocation, memory, id)
        child = parent.fork(new_id)
    invocation.answer({"id": child.id, "parent": parent.id}, [(Strong(child.id), f" continues {parent.id}.")])


@session_command.command("finish")
@click.argument("id", shell_complete=complete_session)
def finish_session(invocation: Invocation, *, id: str) -> None:
    """End a session: store its findings and a summary, and promote memories that proved useful."""
    with invocation.open() as memory:
        done = _open(invocation, memory, id).finish()
    summary = f", summary [id:{done.summary}]" if done.summary else ""
    invocation.answer(done, [f"{counted(done.findings, 'new finding')}, {done.promoted} promoted{summary}."])


@session_command.command("compact")
@click.argument("id", shell_complete=complete_session)
@click.option("--force", is_flag=True, help="Compact even if the window is not full yet.")
def compact_session(invocation: Invocation, *, id: str, force: bool) -> None:
    """Replace all but the newest messages by a summary."""
    with invocation.open() as memory:
        session = _open(invocation, memory, id)
        before = session.window()
        after = session.compact(force=force)
    sentence = f"The window has {counted(len(after.messages), 'message')} now, {after.tokens:,} tokens."
    if after == before:
        sentence = f"The window has {before.tokens:,} tokens. There is nothing to compact yet."
    invocation.answer({"id": session.id, "before": before.tokens, "after": after.tokens}, [sentence])


@session_command.command("export")
@click.argument("id", shell_complete=complete_session)
def export_session(invocation: Invocation, *, id: str) -> None:
    """Print a transcript: one line of JSON for each message."""
    with invocation.open() as memory:
        session = _open(invocation, memory, id)
        messages = session.messages()
    lines: list[Line] = [msgspec.json.encode(to_line(message)).decode() for message in messages]
    invocation.answer({"id": session.id, "messages": [to_line(message) for message in messages]}, lines)


PROGRAMS = ("claude-code", "codex", "gemini", "qwen", "copilot", "opencode", "openclaw", "brain", "specstory")
# Where each program keeps its transcripts: the variable that names its folder, that folder, and the place in it.
_PLACES = {
    "claude-code": ("CLAUDE_CONFIG_DIR", "~/.claude", "projects"),
    "codex": ("CODEX_HOME", "~/.codex", "sessions"),
    "gemini": ("", "~/.gemini", "tmp"),
    "qwen": ("", "~/.qwen", "projects"),
    "copilot": ("COPILOT_HOME", "~/.copilot", "session-state"),
    "opencode": ("XDG_DATA_HOME", "~/.local/share", "opencode/opencode.db"),
}


def import_transcripts(
    invocation: Invocation,
    program: str,
    path: str | None,
    *,
    all_projects: bool,
    since: datetime | None,
    dry_run: bool,
) -> None:
    """Take in the conversations that another program keeps: those of this project, of all, or of a file or folder."""
    place = Path(path).expanduser() if path is not None else _place(program)
    if place.is_file() and not place.stat().st_size:
        raise InvalidInput(f"{place} is empty.", hint="There is nothing to import in it yet.")
    moment = since.replace(tzinfo=invocation.zone or UTC) if since is not None else None
    progress = _progress(invocation)
    lines: list[Line] = []
    if all_projects:
        heads = find_transcripts(program, place, since=moment)
        done, left_out, kept = _import_all(invocation, program, heads, progress, dry_run=dry_run)
        if left_out:
            lines.append(f"{counted(left_out, 'session')} took place in no project, or in a folder that is gone.")
    else:
        with invocation.open() as memory, counting_kinds(memory) as kept:
            done = memory.import_transcripts(
                program, place, here=path is None, since=moment, dry_run=dry_run, progress=progress
            )
    found = [line for one in done if one.failed is None for line in _imported_lines(one)]
    added = sum(one.added for one in done)
    would = " would be imported" if dry_run else ""
    files = counted(len({one.path for one in done}), "file")
    lines = [*found, f"{counted(added, 'message')}{would} from {files}.", *lines]
    if added:
        lines.append(
            "These are messages. What is worth keeping of them is decided when they are imported."
            if dry_run
            else f"Kept of them: {counted_kinds(kept) or 'nothing'}."
        )
    if not done:
        lines = [f"No transcript of {program} is of this project.", *lines[1:]]
        lines.append(f"`kept import {program} PATH` imports a file or folder, --all-projects those of all projects.")
    if place.is_file() and not any(one.added or one.known or one.skipped or one.session for one in done):
        lines.append("Nothing new is complete yet; what is still being written is left for the next import.")
    if skipped := sum(one.skipped for one in done):
        lines.append(f"{counted(skipped, 'record')} could not be read or stored.")
    invocation.answer({"files": done, "dry_run": dry_run, "kept": dict(kept)}, lines)
    failed = [one for one in done if one.failed is not None]
    invocation.tell(*(f"{one.path}: {one.failed}" for one in failed))
    if failed:
        raise click.exceptions.Exit(FAILED)


def past_sessions(invocation: Invocation, programs: Sequence[str]) -> dict[str, int]:
    """How many sessions of this project each of these programs has on this machine."""
    found: dict[str, int] = {}
    with invocation.open() as memory:
        holds = cache(memory.look().holds)
        for program in programs:
            if (place := _place(program)).exists():
                heads = find_transcripts(program, place)
                found[program] = sum(head.cwd is not None and holds(head.cwd) for head in heads)
    return {program: number for program, number in found.items() if number}


def import_past(invocation: Invocation, programs: Sequence[str]) -> dict[str, int]:
    """Import the sessions of this project from where these programs keep them. Returns the messages of each."""
    with invocation.open() as memory:
        done = {
            program: memory.import_transcripts(program, _place(program), here=True, progress=_progress(invocation))
            for program in programs
        }
    return {program: sum(one.added for one in imported) for program, imported in done.items()}


def _place(program: str) -> Path:
    if program not in _PLACES:
        raise click.UsageError(f"The folder of {program}'s transcripts is unknown. Name it: kept import {program} PATH")
    variable, folder, place = _PLACES[program]
    return Path(os.environ.get(variable) or folder).expanduser() / place


def _progress(invocation: Invocation) -> Callable[[int, int], None]:
    """Say how far an import has come: ten times, to a person at a terminal."""
    stream = invocation.err or sys.stderr

    def tell(done: int, total: int) -> None:
        if stream is not None and stream.isatty() and total > 1 and done * 10 // total > (done - 1) * 10 // total:
            invocation.tell(Dim(f"{done} of {total} files"))

    return tell


def _import_all(
    invocation: Invocation,
    program: str,
    heads: Sequence[TranscriptHead],
    progress: Callable[[int, int], None],
    *,
    dry_run: bool,
) -> tuple[Sequence[ImportedTranscript], int, Counter[str]]:
    """Import each session into its project; also, how many took place in none, and the kinds of what was kept."""
    projects, left_out, kept = invocation.projects(), 0, Counter[str]()
    files: dict[str, list[Path]] = {}  # by a directory of the project
    directories: dict[str, str] = {}  # by what tells the project
    done = [ImportedTranscript(path=str(head.path), failed=head.failed) for head in heads if head.failed is not None]
    for head in (head for head in heads if head.failed is None):
        there = projects.around(head.cwd) if head.cwd is not None else None
        if there is None or head.cwd is None:
            left_out += 1
            continue
        key = there.project.space if there.project is not None else there.place.key if there.place is not None else ""
        target = there.project.space if there.project is not None else head.cwd
        files.setdefault(directories.setdefault(key, target), []).append(head.path)
    for target, own in files.items():
        with msgspec.structs.replace(invocation, project=target).open() as memory, counting_kinds(memory) as kinds:
            done += memory.import_transcripts(
                program, list(dict.fromkeys(own)), here=True, dry_run=dry_run, progress=progress
            )
        kept += kinds
    return done, left_out, kept


@contextmanager
def counting_kinds(memory: Kept) -> Iterator[Counter[str]]:
    """At the end of the block: the kinds of the memories that were added to the project in it."""
    last = memory.look().last_event()
    kinds = Counter[str]()
    yield kinds
    for event in memory.look().events(after=last):
        if event.changed and noun_of(event) is Memory and event.changed.get("id", (0,))[0] is None:
            kinds[event.changed["kind"][1]] += 1


def _imported_lines(one: ImportedTranscript) -> list[Line]:
    if not (one.added or one.skipped or one.paused):
        return []
    numbers = {"known": one.known, "skipped": one.skipped, "said in a pause and left out": one.paused}
    rest = [f"{number} {what}" for what, number in numbers.items() if number]
    return [(Strong(one.session or "?"), f"  {counted(one.added, 'new message')}", Dim(f"  {', '.join(rest)}"))]
