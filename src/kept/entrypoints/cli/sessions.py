"""`kept session` and `kept import`: conversations, kept and brought in."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from kept.entrypoints.cli.frame import Command, Group, limit_option, pass_invocation
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import ago, counted, local
from kept.errors import NotFound
from kept.exchange.transcripts import PARSERS
from kept.memory import Kept
from kept.memory.sessions import Flushed, OpenSession
from kept.memory.store import ImportedTranscript
from kept.model import Message, Session
from kept.projects.mirrors import to_line


@click.command("session", cls=Group)
def session_command() -> None:
    """Look at conversations: list, show, search, fork, finish, compact, export."""


@session_command.command("list")
@pass_invocation
def list_sessions(invocation: Invocation) -> None:
    """Show the sessions of this project, oldest first."""
    with invocation.open() as memory:
        found = [(session, _count(memory, session)) for session in memory.sessions()]
    lines: list[Line] = [
        (
            Strong(session.name),
            f"  {counted(count, 'message')}",
            Dim(f"  {session.agent or ''}  {ago(session.started_at, invocation.clock())}{_state(session)}"),
        )
        for session, count in found
    ]
    if not found:
        lines.append("No session is kept here yet. `kept import claude-code` brings some in.")
    documents = [{**msgspec.to_builtins(session), "messages": count} for session, count in found]
    invocation.answer({"sessions": documents}, lines)


def _count(memory: Kept, session: Session) -> int:
    return len(memory.session(session.name).messages()) if session.packed_at is None else 0


def _state(session: Session) -> str:
    if session.packed_at is not None:
        return "  packed"
    return "  finished" if session.finished_at is not None else ""


def _open(memory: Kept, id: str) -> OpenSession:
    """The session of that id, which must be there: looking at one must not begin one."""
    if id not in {session.name for session in memory.sessions()}:
        raise NotFound(f"There is no session {id[:60]!r}.", hint="`kept session list` shows them.")
    return memory.session(id)


@session_command.command("show")
@click.argument("id")
@click.option("--window", is_flag=True, help="Only what belongs into the context now.")
@pass_invocation
def show_session(invocation: Invocation, *, id: str, window: bool) -> None:
    """Show what was said in a session."""
    with invocation.open() as memory:
        session = _open(memory, id)
        messages = list(session.window().messages) if window else session.messages()
    lines = [line for message in messages for line in _message_lines(message, invocation)]
    invocation.answer({"id": id, "messages": messages}, lines or ["Nothing was said in it."])


def _message_lines(message: Message, invocation: Invocation) -> list[Line]:
    who = message.speaker or message.role
    at = f"  {local(message.at, invocation.zone)}" if message.at else ""
    said = message.content if message.input is None else f"{message.name} {msgspec.json.encode(message.input).decode()}"
    first, *rest = said.split("\n")
    return [(Strong(f"{message.n:>4} {who}"), Dim(at)), ("     ", first), *(("     ", line) for line in rest)]


@session_command.command("search")
@click.argument("words", nargs=-1, required=True)
@limit_option(5, "hits at most")
@click.option("--by-session", is_flag=True, help="Each session once, with its best message.")
@click.option("--packed", is_flag=True, help="Also in old sessions, which are packed; takes longer.")
@pass_invocation
def search_sessions(
    invocation: Invocation, *, words: tuple[str, ...], limit: int, by_session: bool, packed: bool
) -> None:
    """Find what was said."""
    by: Literal["message", "session"] = "session" if by_session else "message"
    with invocation.open() as memory:
        recalled = memory.recall(" ".join(words), scope="sessions", limit=limit, by=by, packed=packed)
        has_packed = not packed and any(session.packed_at is not None for session in memory.sessions())
    lines: list[Line] = []
    for hit in recalled:
        if hit.message is not None:
            lines.append((Strong(hit.ref), Dim(f"  {hit.score:.2f}")))
            lines += _message_lines(hit.message, invocation)[1:]
    hits = [{"ref": hit.ref, "score": hit.score, "why": hit.why, "message": hit.message} for hit in recalled]
    if not lines:
        lines.append("Nothing like that was said here." + (" `--packed` also looks into old sessions." * has_packed))
    invocation.answer({"hits": hits, "degraded": recalled.degraded}, lines)


@session_command.command("fork")
@click.argument("id")
@click.argument("new_id", required=False)
@pass_invocation
def fork_session(invocation: Invocation, *, id: str, new_id: str | None) -> None:
    """Begin a new session with everything that was said in this one."""
    with invocation.open() as memory:
        child = _open(memory, id).fork(new_id)
    invocation.answer({"id": child.id, "parent": id}, [(Strong(child.id), f" goes on from {id}.")])


@session_command.command("finish")
@click.argument("id")
@pass_invocation
def finish_session(invocation: Invocation, *, id: str) -> None:
    """End a session: keep its findings and a summary, promote what has shown its worth."""
    with invocation.open() as memory:
        done = _open(memory, id).finish()
    invocation.answer(done, [_flushed(done)])


def _flushed(done: Flushed) -> str:
    parts = [counted(done.findings, "new finding"), f"{done.promoted} promoted"]
    return f"{', '.join(parts)}{f', summary [id:{done.summary}]' if done.summary else ''}."


@session_command.command("compact")
@click.argument("id")
@click.option("--force", is_flag=True, help="Also when the window is not full yet.")
@pass_invocation
def compact_session(invocation: Invocation, *, id: str, force: bool) -> None:
    """Let a summary stand in for all but the newest messages."""
    with invocation.open() as memory:
        session = _open(memory, id)
        before = session.window()
        after = session.compact(force=force)
    sentence = f"The window has {counted(len(after.messages), 'message')} now, {after.tokens:,} tokens."
    if after == before:
        sentence = f"The window has {before.tokens:,} tokens: there is nothing to compact yet."
    invocation.answer({"id": id, "before": before.tokens, "after": after.tokens}, [sentence])


@session_command.command("export")
@click.argument("id")
@pass_invocation
def export_session(invocation: Invocation, *, id: str) -> None:
    """Print a transcript, one JSON line a message."""
    with invocation.open() as memory:
        messages = _open(memory, id).messages()
    lines: list[Line] = [msgspec.json.encode(to_line(message)).decode() for message in messages]
    invocation.answer({"id": id, "messages": [to_line(message) for message in messages]}, lines)


_PLACES = {"claude-code": "~/.claude/projects", "codex": "~/.codex/sessions", "gemini": "~/.gemini/tmp"}


@click.command("import", cls=Command)
@click.argument("program", type=click.Choice(tuple(PARSERS)), metavar="PROGRAM")
@click.argument("path", required=False)
@click.option("--since", metavar="DATE", type=click.DateTime(), help="Only transcripts changed since then.")
@pass_invocation
def import_command(invocation: Invocation, *, program: str, path: str | None, since: datetime | None) -> None:
    """Bring in the transcripts of another program.

    PROGRAM is claude-code, codex, gemini, openclaw or brain (one JSON object a line: id, role, content). PATH is a file
    or a folder of them; without it, where the program keeps them. Only what is new is added, and secrets are redacted
    on the way.
    """
    if path is None and program not in _PLACES:
        raise click.UsageError(f"Say where the transcripts of {program} are: kept import {program} PATH")
    place = Path(path or _PLACES[program]).expanduser()

    def tell(done: int, total: int) -> None:
        if total > 20 and done % 10 == 0:
            invocation.tell(Dim(f"{done} of {total} files"))

    with invocation.open() as memory:
        moment = since.replace(tzinfo=invocation.zone or UTC) if since is not None else None
        done = memory.import_transcripts(program, place, since=moment, progress=tell)
    invocation.answer({"files": done}, _import_lines(done))


def _import_lines(done: list[ImportedTranscript]) -> list[Line]:
    lines: list[Line] = [
        (Strong(one.session or "?"), f"  {counted(one.added, 'new message')}", Dim(f"  {_rest(one)}"))
        for one in done
        if one.added
    ]
    added = sum(one.added for one in done)
    lines.append(f"{counted(added, 'message')} from {counted(len(done), 'file')}. `kept session list` shows them.")
    return lines


def _rest(one: ImportedTranscript) -> str:
    parts: list[Any] = [f"{one.known} known" if one.known else "", f"{one.skipped} unreadable" if one.skipped else ""]
    return ", ".join(part for part in parts if part)
