"""`kept session`: conversations; and the import of transcripts, for `kept import`."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import Struct

from kept.entrypoints.cli.derived import empty_answer, options_of, request_of
from kept.entrypoints.cli.frame import group, session_named
from kept.entrypoints.cli.invocation import FAILED, CommandLine, Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import (
    ago,
    as_document,
    beginning,
    counted,
    counted_kinds,
    found_lines,
    memory_lines,
    message_lines,
    progress,
)
from kept.errors import InvalidInput
from kept.journal import noun_of
from kept.memory import Kept
from kept.memory.imports import ImportedTranscript, TranscriptHead, find_transcripts
from kept.memory.layout import to_line
from kept.memory.verbs.declare import A, Q, Verb
from kept.memory.verbs.exchange import ImportTranscripts
from kept.memory.verbs.recall import RECALL, Recall
from kept.memory.verbs.sessions import COMPACT, FINDINGS, FINISH, FORK, LIST_SESSIONS, RECORD
from kept.model import Memory, Message, SessionRecord
from kept.text import query_words

SHORT_ID, LONG_ID = 8, 12  # characters that are shown of an id, and up to which it is shown whole
MOST_COLUMNS = 120  # of a line of `session list` that a program reads
FEWEST = 10  # columns for the words of the user
MOST_SESSIONS = 50  # on one page for a person
SEARCHED_BY = {"query", "limit", "since", "until", "by", "packed"}


@group
def session_command() -> None:
    pass


@session_command.command("list")
@options_of(LIST_SESSIONS)
def list_sessions(invocation: Invocation, **given: Any) -> None:
    """List the sessions of this project, the newest 50 first; with --json all, the oldest first."""
    asked = request_of(LIST_SESSIONS, given)
    most = MOST_SESSIONS if asked.limit is None else asked.limit
    if not invocation.as_json:
        asked = msgspec.structs.replace(asked, newest_first=True, limit=most + 1)
    with invocation.open() as memory:
        sessions = memory.perform(LIST_SESSIONS, asked)
        page = sessions if invocation.as_json else sessions[:most]
        found = [(session, memory.session(session.name).messages()) for session in page]
        names = short_names([session.name for session in memory.sessions()])
    lines: list[Line] = _session_lines(found, names, invocation)
    if len(sessions) > len(page):
        lines.append(("More: ", CommandLine(f"kept session list --after {page[-1].name}")))
    if not found:
        nothing = "There are no sessions here yet. `kept import claude-code` imports some."
        lines.append(empty_answer(LIST_SESSIONS, asked, "session", nothing, besides=("limit",)))
    documents = [{**msgspec.to_builtins(session), "messages": len(said)} for session, said in found]
    invocation.answer({"sessions": documents}, lines)


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Return a beginning for each id that is enough to name it: all of a short one, else as few letters as may be."""
    short: dict[str, str] = {}
    ordered = sorted(names)
    for before, name, after in zip(["", *ordered], ordered, [*ordered[1:], ""], strict=False):
        shared = max(_in_common(name, other) for other in (before, after))
        length = max(SHORT_ID, shared + 1)
        short[name] = name[:length] if len(name) > max(length, LONG_ID) else name
    return short


def _in_common(one: str, other: str) -> int:
    """Return how many letters two words have in common at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def _facts_of(
    session: SessionRecord, said: Sequence[Message], names: Mapping[str, str], now: datetime
) -> tuple[datetime, tuple[str, str, str, str], str, str]:
    """Return when something was said last, the columns, the state, and how the user began."""
    last = max((one.at for one in said if one.at is not None), default=session.started_at)
    first = next((one.content for one in said if one.role == "user"), "")
    facts = (names[session.name], session.agent or "", counted(len(said), "message"), ago(last, now))
    return last, facts, _state(session), first


def _session_lines(
    found: Sequence[tuple[SessionRecord, Sequence[Message]]], names: Mapping[str, str], invocation: Invocation
) -> list[Line]:
    """Return a line for each session: id, agent, messages, when something was said last, and how the user began.

    In a narrow terminal the words of the user get a line of their own: without them all sessions look alike.
    """
    now = invocation.clock()
    rows = sorted((_facts_of(*one, names, now) for one in found), key=lambda row: row[0], reverse=True)
    widths = [max((len(row[1][n]) for row in rows), default=0) for n in range(4)]
    columns = invocation.width() or MOST_COLUMNS
    left = columns - (sum(widths) + 8)
    is_narrow = any(first and left - len(state) < FEWEST for _, _, state, first in rows)
    below = max(FEWEST, columns - 4) if is_narrow else 0
    return [
        line
        for _, facts, state, first in rows
        for line in _row_lines(facts, state, first, widths=widths, left=left, below=below)
    ]


def _row_lines(
    facts: Sequence[str], state: str, first: str, *, widths: Sequence[int], left: int, below: int
) -> Iterator[Line]:
    """Yield the line of a session, and a second one with the words of the user where `below` has columns for them."""
    id_, agent, count, when = (f"{fact:<{width}}" for fact, width in zip(facts, widths, strict=True))
    told = f"  {beginning(first, left - len(state))}" if first and not below else ""
    yield (Strong(id_), f"  {agent}  {count.strip():>{len(count)}}", Dim(f"  {when}"), told, Dim(state))
    if first and below:
        yield f"    {beginning(first, below)}"


def _state(session: SessionRecord) -> str:
    if session.packed_at is not None:
        return "  packed"
    return "  finished" if session.finished_at is not None else ""


def _asked(verb: Verb[Q, A], given: Mapping[str, Any], invocation: Invocation, memory: Kept) -> Q:
    """Make a request about a session, which must exist; a beginning of its id is enough."""
    return request_of(verb, {**given, "session": session_named(invocation, memory, given["session"])})


@session_command.command("show")
@options_of(RECORD)
@click.option("--window", is_flag=True, help="Only the messages that belong in the context now.")
@click.option("--limit", type=click.IntRange(1), metavar="NUMBER", help="Only this many messages, the newest ones.")
@click.option("--findings", "only_findings", is_flag=True, help="Only its findings, and what became of each.")
def show_session(invocation: Invocation, *, window: bool, limit: int | None, only_findings: bool, **given: Any) -> None:
    """Show the messages, the summary and the findings of a session; at a terminal, page by page."""
    with invocation.open() as memory:
        asked = _asked(RECORD, given, invocation, memory)
        record = memory.perform(RECORD, asked)
        session = memory.session(asked.session)
        messages = list(session.window().messages) if window else session.messages()
        summary, findings = record["summary"], memory.perform(FINDINGS, asked)
    if only_findings:
        invocation.answer(record, [*_record_lines(record)])
        return
    messages = messages[-(limit or len(messages)) :]
    document = {
        "id": asked.session,
        "messages": messages,
        "summary": summary,
        "findings": [as_document(finding) for finding in findings],
    }
    invocation.answer(document, [*_conversation_lines(messages, summary, findings, invocation)])


def _conversation_lines(
    messages: Sequence[Message], summary: str, findings: Sequence[Memory], invocation: Invocation
) -> Iterator[Line]:
    if not messages:
        yield "The session has no messages."
    for message in messages:
        yield from message_lines(message, invocation)
    if summary:
        yield from ["", Strong("Summary")]
        yield from (("    ", line) for line in summary.split("\n"))
    if findings:
        yield from ["", Strong("Findings")]
        yield from _finding_lines(findings, invocation)


def _record_lines(record: Mapping[str, Any]) -> Iterator[Line]:
    if not record["findings"]:
        yield f"Session {record['sessionId']} has no findings."
    for one in record["findings"]:
        yield (Strong(f"[id:{one['id']}]"), f" {one['category']}: {one['content']}")
        entry = one.get("promotedEntryId")
        state = f"in the project's memory as [id:{entry}]" if entry else "not in the project's memory"
        facts = [state, one["status"], f"confidence {one['confidence']:.2g}", *one["filePaths"]]
        yield Dim(f"    {' · '.join(facts)}")


def _finding_lines(findings: Sequence[Memory], invocation: Invocation) -> Iterator[Line]:
    for finding in findings:
        yield from memory_lines(finding, invocation.clock())


@session_command.command("search")
@options_of(RECALL, without=set(Recall.__struct_fields__) - SEARCHED_BY)
def search_sessions(invocation: Invocation, **given: Any) -> None:
    """Search the messages of all sessions. `kept show ID#N` shows a message in full."""
    asked = request_of(RECALL, {**given, "scope": "sessions"})
    with invocation.open() as memory:
        recalled = memory.perform(RECALL, asked)
        sessions = memory.sessions()
    has_packed = not asked.packed and any(session.packed_at is not None for session in sessions)
    names = short_names([session.name for session in sessions])
    stems = set(query_words(asked.query))
    lines: list[Line] = []
    for hit in recalled:
        if hit.message is not None:
            name = names.get(hit.message.session, hit.message.session)
            lines += found_lines(hit.message, invocation, f"{name}#{hit.message.n}", stems)
    hits = [{"ref": hit.ref, "score": hit.score, "why": hit.why, "message": hit.message} for hit in recalled]
    if not lines:
        lines.append("No message matches." + (" `--packed` also searches old sessions." * has_packed))
    invocation.answer({"hits": hits, "degraded": recalled.degraded}, lines)


@session_command.command("fork")
@options_of(FORK)
def fork_session(invocation: Invocation, **given: Any) -> None:
    """Start a new session with the messages of this one."""
    with invocation.open() as memory:
        asked = _asked(FORK, given, invocation, memory)
        child = memory.perform(FORK, asked).name
    invocation.answer({"id": child, "parent": asked.session}, [(Strong(child), f" continues {asked.session}.")])


@session_command.command("finish")
@options_of(FINISH)
def finish_session(invocation: Invocation, **given: Any) -> None:
    """End a session: store its findings and a summary, and promote memories that proved useful."""
    with invocation.open() as memory:
        asked = _asked(FINISH, given, invocation, memory)
        done = memory.perform(FINISH, asked)
    summary = f", summary [id:{done.summary}]" if done.summary else ""
    sentence = f"{counted(done.findings, 'new finding')}, {done.promoted} promoted{summary}."
    invocation.answer(done, ["It has ended. Its findings are stored later." if asked.fast else sentence])


@session_command.command("compact")
@options_of(COMPACT)
def compact_session(invocation: Invocation, **given: Any) -> None:
    """Replace all but the newest messages by a summary."""
    with invocation.open() as memory:
        asked = _asked(COMPACT, given, invocation, memory)
        before = memory.session(asked.session).window()
        after = memory.perform(COMPACT, asked)
    sentence = f"The window has {counted(len(after.messages), 'message')} now, {after.tokens:,} tokens."
    if after == before:
        sentence = f"The window has {before.tokens:,} tokens. There is nothing to compact yet."
    invocation.answer({"id": asked.session, "before": before.tokens, "after": after.tokens}, [sentence])


@session_command.command("export")
@options_of(RECORD)
def export_session(invocation: Invocation, **given: Any) -> None:
    """Print a transcript: one line of JSON for each message."""
    with invocation.open() as memory:
        asked = _asked(RECORD, given, invocation, memory)
        messages = [to_line(message) for message in memory.session(asked.session).messages()]
    lines: list[Line] = [msgspec.json.encode(message).decode() for message in messages]
    invocation.answer({"id": asked.session, "messages": messages}, lines)


PROGRAMS = ("claude-code", "codex", "gemini", "qwen", "copilot", "opencode", "openclaw", "brain", "specstory")
# Where each program keeps its transcripts: the variable that names its folder, that folder, and the place in it.
PLACES = {
    "claude-code": ("CLAUDE_CONFIG_DIR", "~/.claude", "projects"),
    "codex": ("CODEX_HOME", "~/.codex", "sessions"),
    "gemini": ("", "~/.gemini", "tmp"),
    "qwen": ("", "~/.qwen", "projects"),
    "copilot": ("COPILOT_HOME", "~/.copilot", "session-state"),
    "opencode": ("XDG_DATA_HOME", "~/.local/share", "opencode/opencode.db"),
}


class TranscriptImport(Struct, frozen=True):
    """The result of an import: each transcript, the kinds of the memories that were kept of them, and how many sessions
    took place in no project.
    """

    done: Sequence[ImportedTranscript]
    kept: Counter[str]
    left_out: int = 0

    @property
    def added(self) -> int:
        return sum(one.added for one in self.done)

    @property
    def skipped(self) -> int:
        return sum(one.skipped for one in self.done)

    @property
    def has_anything(self) -> bool:
        """Return True if any transcript had a session, a message or a record."""
        return any(one.added or one.known or one.skipped or one.session for one in self.done)


def import_transcripts(invocation: Invocation, asked: ImportTranscripts, *, all_projects: bool) -> None:
    """Import the conversations that another program keeps: those of this project, of all, or of a file or folder."""
    place = Path(asked.path).expanduser() if asked.path else _place(asked.program)
    if place.is_file() and not place.stat().st_size:
        raise InvalidInput(f"{place} is empty.", hint="There is nothing to import in it yet.")
    imported = _import_all(invocation, asked, place) if all_projects else _import_here(invocation, asked, place)
    lines = [*_import_lines(imported, asked), *_left_lines(imported, is_file=place.is_file())]
    invocation.answer({"files": imported.done, "dry_run": asked.dry_run, "kept": dict(imported.kept)}, lines)
    failed = [one for one in imported.done if one.failed is not None]
    invocation.tell(*(f"{one.path}: {one.failed}" for one in failed))
    if failed:
        raise click.exceptions.Exit(FAILED)


def _import_lines(imported: TranscriptImport, asked: ImportTranscripts) -> Iterator[Line]:
    for one in imported.done:
        if one.failed is None:
            yield from _imported_lines(one)
    would = " would be imported" if asked.dry_run else ""
    files = counted(len({one.path for one in imported.done}), "file")
    if imported.done:
        yield f"{counted(imported.added, 'message')}{would} from {files}."
    else:
        yield f"No transcript of {asked.program} is of this project."
    if imported.left_out:
        yield f"{counted(imported.left_out, 'session')} took place in no project, or in a folder that is gone."
    if imported.added:
        yield _kept_line(imported.kept, dry_run=asked.dry_run)
    if not imported.done:
        yield f"`kept import {asked.program} PATH` imports a file or folder, --all-projects those of all projects."


def _kept_line(kept: Mapping[str, int], *, dry_run: bool) -> str:
    if dry_run:
        return "These are messages. What is worth keeping of them is decided when they are imported."
    return f"Stored from them: {counted_kinds(kept) or 'nothing'}."


def _left_lines(imported: TranscriptImport, *, is_file: bool) -> Iterator[Line]:
    """Say which parts of transcripts were not imported."""
    if is_file and not imported.has_anything:
        yield "Nothing new is complete yet; what is still being written is left for the next import."
    if imported.skipped:
        yield f"{counted(imported.skipped, 'record')} could not be read or stored."


def unread_sessions(memory: Kept, programs: Sequence[str]) -> dict[str, int]:
    """Count the sessions of this project that programs have on this machine and that were not imported yet.

    A session is the same one if an import would give it the name of one that is here.
    """
    known = {session.name for session in memory.sessions()}
    holds = cache(memory.look().holds)
    unread = {program: len(_sessions_here(program, holds) - known) for program in programs}
    return {program: number for program, number in unread.items() if number}


def _sessions_here(program: str, holds: Callable[[str], bool]) -> set[str]:
    """Return the names of the sessions of this project that a program keeps."""
    place = _place(program)
    heads = find_transcripts(program, place) if place.exists() else []
    return {head.session for head in heads if head.session and head.cwd is not None and holds(head.cwd)}


def past_sessions(invocation: Invocation, programs: Sequence[str]) -> dict[str, int]:
    """How many sessions of this project each of these programs has on this machine."""
    with invocation.open() as memory:
        holds = cache(memory.look().holds)
        found = {program: len(_sessions_here(program, holds)) for program in programs}
    return {program: number for program, number in found.items() if number}


def import_past(invocation: Invocation, programs: Sequence[str]) -> dict[str, int]:
    """Import the sessions of this project from where these programs keep them. Returns the messages of each."""
    done: dict[str, Sequence[ImportedTranscript]] = {}
    with invocation.open() as memory:
        for program in programs:
            with progress(invocation, f"Reading {program}") as tell:
                done[program] = memory.import_transcripts(program, _place(program), here=True, progress=tell)
    return {program: sum(one.added for one in imported) for program, imported in done.items()}


def _place(program: str) -> Path:
    if program not in PLACES:
        raise click.UsageError(f"The folder of {program}'s transcripts is unknown. Name it: kept import {program} PATH")
    variable, folder, place = PLACES[program]
    return Path(os.environ.get(variable) or folder).expanduser() / place


def _import_here(invocation: Invocation, asked: ImportTranscripts, place: Path) -> TranscriptImport:
    """Import into this project: a file or folder that was named, else only sessions that took place here."""
    with invocation.open() as memory, counting_kinds(memory) as kept, progress(invocation, "Importing") as tell:
        done = memory.import_transcripts(
            asked.program,
            place,
            here=asked.here or not asked.path,
            since=asked.since,
            dry_run=asked.dry_run,
            progress=tell,
        )
    return TranscriptImport(done, kept)


def _import_all(invocation: Invocation, asked: ImportTranscripts, place: Path) -> TranscriptImport:
    """Import each session into its project."""
    heads = find_transcripts(asked.program, place, since=asked.since)
    done = [ImportedTranscript(path=str(head.path), failed=head.failed) for head in heads if head.failed is not None]
    files, left_out = _by_project([head for head in heads if head.failed is None], invocation)
    kept = Counter[str]()
    for target, own in files.items():
        there = msgspec.structs.replace(invocation, project=target)
        with (
            there.open() as memory,
            counting_kinds(memory) as kinds,
            progress(invocation, f"Importing into {Path(target).name}") as tell,
        ):
            done += memory.import_transcripts(asked.program, own, here=True, dry_run=asked.dry_run, progress=tell)
        kept += kinds
    return TranscriptImport(done, kept, left_out)


def _by_project(heads: Sequence[TranscriptHead], invocation: Invocation) -> tuple[dict[str, list[Path]], int]:
    """Return the files of each project, by one of its directories; and how many sessions took place in none."""
    projects, left_out = invocation.projects(), 0
    files: dict[str, dict[Path, None]] = {}
    directories: dict[str, str] = {}  # by what tells the project
    for head in heads:
        there = projects.around(head.cwd) if head.cwd is not None else None
        if there is None or head.cwd is None:
            left_out += 1
            continue
        if there.project is not None:
            key = target = there.project.space
        else:
            key, target = there.place.key if there.place is not None else "", head.cwd
        files.setdefault(directories.setdefault(key, target), {})[head.path] = None
    return {target: list(own) for target, own in files.items()}, left_out


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
