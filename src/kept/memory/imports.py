"""Transcripts of other programs, taken in as sessions.

`import_transcripts` takes a folder, one file or a list of files; with `here`, only the sessions that took place in the
opened project. They come in the order in which they began, and those that are over are finished. An import reads on
from where the last one of a file stopped; messages have ids of their own, so one that is read twice is added once.
Rule: a torn last line is left for next time; a record that no store can hold is skipped and counted; a file that cannot
be taken in is reported, and the others go on.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kept.errors import Busy, InvalidInput, KeptError
from kept.exchange.compressed import decompressed
from kept.exchange.importers.dialogues import Dialogue
from kept.exchange.records import Transcript
from kept.exchange.transcripts import PARSERS, database_lines
from kept.memory.cleaner import messages_without_erased
from kept.memory.context import Context
from kept.memory.session_log import paused_periods
from kept.memory.sessions import Session, lease_of, log_of, open_session
from kept.model import Message, SessionRecord, replace
from kept.ports import Reader, Storage
from kept.projects.files import check_session_name, explained, read_regular, shown
from kept.writing.check import FIRST_YEAR
from kept.writing.redact import redact_message

MESSAGE_BATCH = 200
HEAD_BYTES = 256 * 1024  # of a transcript: says where and when the session began
INDEX_BYTES = 16 * 1024 * 1024  # of a sessions.json
DATABASE = ".db"
COMPRESSED = ".zst"
LEASE_WAIT_S = 2.0  # for a process that is at work on the session
IN_USE = "Another process is at work on this session. Run the import again later."
LAST = datetime.max.replace(tzinfo=UTC)
HINT = "Give a transcript file, or a folder of them."
Progress = Callable[[int, int], None]  # files done, files in all
Holds = Callable[[str], bool]  # whether a directory belongs to the opened project


class ImportedTranscript(Struct, frozen=True, kw_only=True):
    """The result for one session of a transcript file; or for a file in which there is none that is new."""

    path: str
    session: str | None = None
    added: int = 0
    known: int = 0
    skipped: int = 0  # lines that were torn or unknown, and messages that cannot be stored
    paused: int = 0  # messages that were said while the session or the project was paused
    failed: str | None = None  # why this file could not be taken in


class HowToImport(Struct, frozen=True, kw_only=True):
    """Which transcripts are wanted; and whether what is new is only counted."""

    here: bool = False
    since: datetime | None = None
    dry_run: bool = False


class TranscriptHead(Struct, frozen=True, kw_only=True):
    """Where and when a session of a file began, as far as its beginning says so."""

    path: Path
    session: str | None = None  # the name that it has here; None: nothing was said in it yet
    cwd: str | None = None
    began: datetime
    is_fork: bool = False
    failed: str | None = None  # why it could not be read

    @property
    def order(self) -> tuple[datetime, bool, str]:
        """By time; a fork after what it came from."""
        return self.began, self.is_fork, str(self.path)


def import_transcripts(
    context: Context,
    program: str,
    path: Path | str | Sequence[Path],
    how: HowToImport,
    *,
    progress: Progress | None,
) -> list[ImportedTranscript]:
    """Take in the transcripts below a folder, or in these files, in the order in which their sessions began."""
    holds = cache(context.spaces.holds)
    found = find_transcripts(program, path, since=how.since)
    heads = [head for head in found if not how.here or _is_wanted(head, holds)]
    files = list(dict.fromkeys(head.path for head in heads))
    is_only = isinstance(path, Path | str) and files == [Path(path)]
    done: list[ImportedTranscript] = []
    for number, file in enumerate(files, 1):
        wanted = holds if how.here else None
        done += _import_or_report(context, program, file, wanted, is_only=is_only, dry_run=how.dry_run)
        if progress is not None:
            progress(number, len(files))
    return done


def _import_or_report(
    context: Context, program: str, file: Path, holds: Holds | None, *, is_only: bool, dry_run: bool
) -> list[ImportedTranscript]:
    """Import a file; one of several that cannot be taken in is reported, so that the others go on."""
    try:
        done = _import_file(context, program, file, holds, is_only=is_only, dry_run=dry_run)
        if is_only and any(one.failed == IN_USE for one in done):
            raise Busy(IN_USE)
        return done
    except KeptError as error:
        is_of_file = isinstance(error, InvalidInput) or isinstance(error.__cause__, OSError)
        if is_only or not is_of_file:  # nothing else would fare better: the store is busy, or not ours to change
            raise
        return [ImportedTranscript(path=str(file), failed=str(error))]
    except Exception as error:  # a transcript that we do not understand must not stop the others
        return [ImportedTranscript(path=str(file), failed=f"It could not be read ({type(error).__name__}).")]


def find_transcripts(
    program: str, path: Path | str | Sequence[Path], *, since: datetime | None = None
) -> list[TranscriptHead]:
    """The sessions in these transcripts, in the order in which they began. Raises InvalidInput."""
    if program not in PARSERS:
        raise InvalidInput(f"Unknown program {program!r}.", hint=f"Choose one of {', '.join(PARSERS)}.")
    files = list(_files(program, Path(path), since) if isinstance(path, Path | str) else path)
    return sorted((head for file in files for head in _heads(program, file)), key=lambda head: head.order)


def _is_wanted(head: TranscriptHead, holds: Holds) -> bool:
    """Whether it took place in the project. One that cannot be read may have: it is tried, and reported."""
    return head.failed is not None or (head.cwd is not None and holds(head.cwd))


def _files(program: str, path: Path, since: datetime | None) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    if not path.is_dir():
        raise InvalidInput(f"{path} does not exist.", hint=HINT)
    found = (*path.rglob("*.jsonl"), *path.rglob(f"*.jsonl{COMPRESSED}"), *path.glob(f"*{DATABASE}"))
    for file in sorted(path.rglob("*.md") if program == "specstory" else found):
        if file.is_file() and (since is None or file.stat().st_mtime >= since.timestamp()):
            yield file


def _heads(program: str, file: Path) -> Iterator[TranscriptHead]:
    """What the beginning of a file says, for each session in it."""
    try:
        with explained("read the transcript", file, hint="Check its permissions."):
            changed = datetime.fromtimestamp(file.stat().st_mtime, UTC)
            parsed = _parse_head(program, file)
    except KeptError as error:
        yield TranscriptHead(path=file, began=LAST, failed=str(error))
        return
    for one in [parsed, *(parsed.others if file.suffix == DATABASE else ())]:
        cwd = one.cwd or _gemini_folder(file) if program == "gemini" else one.cwd
        yield TranscriptHead(
            path=file,
            session=_names(file, one)[0] if one.messages else None,
            cwd=cwd,
            began=_began(one) or changed,
            is_fork=one.parent is not None,
        )


def _parse_head(program: str, file: Path) -> Transcript:
    if file.suffix == DATABASE:
        return PARSERS[program](_lines(file), 0)
    if file.suffix == COMPRESSED:
        return PARSERS[program](_whole(_content(file)).splitlines(), 0)
    with file.open("rb") as source:
        data = source.read(HEAD_BYTES)
        parsed = PARSERS[program](_whole(data).splitlines(), 0)
        if parsed.cwd is None or not parsed.messages:  # a long first line, or pages of records that say nothing
            parsed = PARSERS[program](_whole(data + source.read()).splitlines(), 0)
    return parsed


def _gemini_folder(file: Path) -> str | None:
    """Where Gemini worked: its list of projects names the folder of this file."""
    with_list = file.parents[3] / "projects.json" if len(file.parents) > 3 else None  # …/tmp/NAME/chats/FILE
    try:
        listed: Any = msgspec.json.decode(with_list.read_bytes()) if with_list is not None else None
    except (OSError, msgspec.MsgspecError):
        return None
    projects = listed.get("projects") if isinstance(listed, dict) else None
    names = projects.items() if isinstance(projects, dict) else ()
    return next((folder for folder, name in names if name == file.parent.parent.name), None)


def _whole(data: bytes) -> bytes:
    """The lines that are complete: with an end, or a last one that is a record all the same."""
    end = data.rfind(b"\n") + 1
    try:
        is_record = isinstance(msgspec.json.decode(data[end:]), dict)  # half a record is none
    except (msgspec.DecodeError, RecursionError):
        is_record = False
    return data if is_record else data[:end]


def _content(file: Path) -> bytes:
    """The bytes of a transcript. Codex compresses old ones."""
    return file.read_bytes() if file.suffix != COMPRESSED else decompressed(file)


def _lines(file: Path) -> list[bytes]:
    with explained("read the transcripts", file):
        return list(database_lines(file))


def _began(parsed: Transcript) -> datetime | None:
    moments = (one.at for one in parsed.messages if one.at is not None and one.at.year >= FIRST_YEAR)
    return min(moments, default=None)


class _Part(Struct, frozen=True, kw_only=True):
    """What is new in a file: its sessions, how many lines it has, and up to where it was read."""

    sessions: list[Transcript]
    n_lines: int
    n_bytes: int
    is_first: bool  # nothing of the file was read before


def _import_file(
    context: Context, program: str, file: Path, holds: Holds | None, *, is_only: bool, dry_run: bool
) -> list[ImportedTranscript]:
    """Import what is new in one file: a result for each session in it that is wanted."""
    storage = context.spaces.project() if dry_run else context.spaces.ensure_project()
    mark = f"offset:{hashlib.blake2b(str(file.resolve()).encode('utf-8', 'replace'), digest_size=8).hexdigest()}"
    offset = _counted(storage, mark)
    part = _read_part(program, file, offset)
    if part is None:
        return [ImportedTranscript(path=str(file))]
    _check_understood(program, file, part, is_only=is_only)
    wanted = [one for one in part.sessions if one.messages and _is_of_project(one, file, holds)]
    if dry_run or storage is None:
        return [_count_only(storage, file, one) for one in wanted]
    done = [_import_session(context, program, file, one) for one in wanted]
    if part.n_bytes and not any(one.failed for one in done):
        _count(storage, mark, part.n_bytes - offset)
    first = part.sessions[0]
    return done or [ImportedTranscript(path=str(file), session=first.session, skipped=first.skipped)]


def _check_understood(program: str, file: Path, part: _Part, *, is_only: bool) -> None:
    """Raise InvalidInput for a file that is no transcript. Beside others, one may have lines that say nothing."""
    is_told = any(one.messages or one.session for one in part.sessions)
    if not part.is_first or not part.n_lines or is_told:
        return
    if is_only or part.sessions[0].skipped == part.n_lines:
        raise InvalidInput(
            f"{shown(file)} is not a transcript of {program}: nothing in it was understood.",
            hint="Check the file and the name of the program.",
        )


def _counted(storage: Storage | None, name: str) -> int:
    if storage is None:
        return 0
    with storage.reading() as reader:
        return reader.counters().get(name, 0)


def _count(storage: Storage, name: str, number: int) -> None:
    """Note how far a file was read. If that is not possible now, the next import reads it again, and adds nothing."""
    with storage.bookkeeping() as notes:
        if notes is not None:
            notes.count({name: number})


def _is_of_project(parsed: Transcript, file: Path, holds: Holds | None) -> bool:
    """Whether a session is wanted. Only a database has sessions of several projects."""
    return holds is None or file.suffix != DATABASE or (parsed.cwd is not None and holds(parsed.cwd))


def _read_part(program: str, file: Path, offset: int) -> _Part | None:
    """Read a file from where the last import stopped; None if nothing was said since."""
    is_database = file.suffix == DATABASE
    with explained("read the transcript", file, hint="Check its permissions."):
        if offset and file.stat().st_size == offset:
            return None
        data = b"" if is_database else _content(file)
    whole = _whole(data)
    # A shorter file is another one: it is read from the start.
    known = _count_lines(whole[:offset].splitlines()) if offset <= len(data) else 0
    lines = _lines(file) if is_database else whole.splitlines()
    parsed = PARSERS[program](lines, known)
    return _Part(sessions=[parsed, *parsed.others], n_lines=_count_lines(lines), n_bytes=len(whole), is_first=not known)


def _count_lines(lines: list[bytes]) -> int:
    return sum(1 for line in lines if line.strip())


def _count_only(storage: Storage | None, file: Path, parsed: Transcript) -> ImportedTranscript:
    """What an import would add to a session."""
    name, messages, known = _names(file, parsed)[0], parsed.messages, set[tuple[str, str]]()
    if storage is not None:
        with storage.reading() as reader:
            messages = messages_without_erased(reader, name, messages)
            known = {(one.id, one.role) for one in reader.messages(name)}
    added = sum((one.id, one.role) not in known for one in messages)
    return ImportedTranscript(
        path=str(file), session=name, added=added, known=len(parsed.messages) - added, skipped=parsed.skipped
    )


def _import_session(context: Context, program: str, file: Path, parsed: Transcript) -> ImportedTranscript:
    name, parent = _names(file, parsed)
    began = _began(parsed)
    with context.owned().reading() as reader:
        n_read, parsed.messages = len(parsed.messages), messages_without_erased(reader, name, parsed.messages)
        pauses = paused_periods(reader, name)
    if not parsed.messages:
        return ImportedTranscript(path=str(file), known=n_read, skipped=parsed.skipped)
    parent, shared = _shared(context, name, parent, parsed, began)
    if parent is not None and shared:
        _turn_around(context, name, parent)
    agent = _agent_of(program, file, name)
    session = open_session(context, name, agent=agent, parent=parent, cwd=parsed.cwd, started_at=began, shared=shared)
    with context.owned().lease(lease_of(name), wait_s=LEASE_WAIT_S) as is_ours:
        if not is_ours:
            return ImportedTranscript(path=str(file), session=name, failed=IN_USE)
        added, unfit = _take_in(session, parsed.messages[0 if parsed.after else shared :])
        log_of(session).distrust_quoted()  # also where none was new: the import before may have been cut short
        _end(context, session, parsed.messages)
    now = context.now()
    paused = sum(any(pause.holds(message.at or now) for pause in pauses) for message in parsed.messages)
    return ImportedTranscript(
        path=str(file),
        session=name,
        added=added,
        known=len(parsed.messages) - added - unfit - paused,
        skipped=parsed.skipped + unfit,
        paused=paused,
    )


def import_dialogue(context: Context, program: str, dialogue: Dialogue) -> ImportedTranscript:
    """Take in a conversation that stands in a note. Its words are those of a file, and have its trust: unknown."""
    parsed = Transcript(session=dialogue.session)
    for number, turn in enumerate(dialogue.turns, 1):
        parsed.messages.append(
            Message(id=f"turn_{number}", role=turn.role, content=turn.content, at=dialogue.at, trust="unknown")
        )
    return _import_session(context, program, Path(f"{dialogue.session}.md"), parsed)


def _agent_of(program: str, file: Path, session: str) -> str:
    """Return the agent of a session. In Brain's layout its index names it, or else the folder."""
    if program != "brain" or file.parent.name != "sessions":
        return program
    try:
        index = msgspec.json.decode(read_regular(file.parent / "sessions.json", INDEX_BYTES), type=_Index)
        named = [one.agent for one in index.sessions if one.id == session and one.agent]
    except msgspec.MsgspecError:
        named = []
    return named[0] if named else file.parent.parent.name or program


class _IndexEntry(Struct):
    """A session in Brain's sessions.json."""

    id: str
    agent: str | None = None


class _Index(Struct):
    """Brain's sessions.json."""

    sessions: list[_IndexEntry] = []


def _take_in(session: Session, messages: Sequence[Message]) -> tuple[int, int]:
    """Add messages. Returns how many were new, and how many no store can hold."""
    added = unfit = 0
    for batch in _batches(messages):
        try:
            added += len(log_of(session).take_in(batch))
        except InvalidInput:  # of one of them; the others are fine
            for message in batch:
                try:
                    added += len(log_of(session).take_in([message]))
                except InvalidInput:
                    unfit += 1
    return added, unfit


def _end(context: Context, session: Session, messages: Sequence[Message]) -> None:
    """Finish a session that is over; one that may still be running only gets a checkpoint."""
    last = max((one.at for one in messages if one.at is not None), default=None)
    idle = timedelta(minutes=context.settings.session_idle_minutes)
    if last is not None and context.now() - last >= idle:
        session.finish()
    else:
        session.checkpoint()


def _shared(
    context: Context, name: str, parent: str | None, parsed: Transcript, began: datetime | None
) -> tuple[str | None, int]:
    """What a session came from, and how many messages it begins with that are stored there already.

    A branch says after which message it begins. The file of a fork repeats them; where it does not name the session
    that it came from, that is one that began at the same moment with the same messages.
    """
    storage = context.spaces.project()
    if storage is None:
        return parent, 0
    with storage.reading() as reader:
        if parsed.after is not None:
            said = reader.messages(parent) if parent is not None else []
            return parent, next((one.n for one in said if (one.id, one.role) == parsed.after), 0)
        stored = reader.session(name)
        if parsed.known or (stored is not None and stored.parent is None):
            return parent, 0
        if stored is not None and stored.parent is not None:  # read again from the start
            return parent, min(stored.shared, _repeated(context, reader, stored.parent, parsed.messages))
        if parent is not None:
            return parent, _repeated(context, reader, parent, parsed.messages)
        return _found_parent(context, reader, name, parsed, began)


def _found_parent(
    context: Context, reader: Reader, name: str, parsed: Transcript, began: datetime | None
) -> tuple[str | None, int]:
    """The session that a fork without a parent's name came from: one that began then, with the same messages.

    A fork may have been imported before this session: then it has the messages, and this one shares them.
    """
    sessions = reader.all(SessionRecord)
    same = [one.name for one in sessions if one.parent == name or (began is not None and one.started_at == began)]
    found = [(_repeated(context, reader, other, parsed.messages), other) for other in same]
    best, other = max(found, default=(0, None))
    is_fork = other is not None and 1 < best < max(len(parsed.messages), reader.last_number(other))
    return (other, best) if is_fork else (None, 0)


def _turn_around(context: Context, name: str, parent: str) -> None:
    """Of two sessions, each a fork of the other, the one that was stored first has the messages."""
    with context.owned().reading() as reader:
        first = reader.session(parent)
    if first is None or first.parent != name:
        return
    with context.owned().writing(context.stamp()) as tx:
        if (first := tx.session(parent)) is not None and first.parent == name:
            tx.put(replace(first, parent=None), "session")


def _repeated(context: Context, reader: Reader, parent: str, messages: Sequence[Message]) -> int:
    """With how many of the parent's messages a transcript begins: by what was said, as ids may count lines."""
    rules = context.rules()
    clean = (redact_message(message, email=rules.redact_email, allow=rules.allow) for message in messages)
    pairs = zip(reader.messages(parent), clean, strict=False)
    return sum(1 for _ in takewhile(lambda pair: _spoken(pair[0]) == _spoken(pair[1]), pairs))


def _spoken(message: Message) -> tuple[Any, ...]:
    return message.role, message.content, message.name, message.input


def _names(file: Path, parsed: Transcript) -> tuple[str, str | None]:
    """The session a file belongs to. A sub-agent's file has its parent's session id inside, and a name of its own.

    An id that cannot be a name of a session is not used: the file's name stands for it.
    """
    own = "".join(character if _is_plain(character) else "-" for character in file.stem).strip(".-_")
    own = re.sub(r"\.{2,}", ".", own)[:100].rstrip(".") or "session"
    session, parent = _valid(parsed.session), _valid(parsed.parent)
    if session is None:
        return own, parent
    if "subagents" in file.parts[-4:-1]:  # some stand in a folder for their workflow
        return f"{session[: 127 - len(own)].rstrip('.')}.{own}", session
    return session, parent


def _is_plain(character: str) -> bool:
    return (character.isascii() and character.isalnum()) or character in "._-"


def _valid(name: str | None) -> str | None:
    try:
        return None if name is None else check_session_name(name)
    except InvalidInput:
        return None


def _batches(messages: Sequence[Message]) -> Iterator[list[Message]]:
    for start in range(0, len(messages), MESSAGE_BATCH):
        yield list(messages[start : start + MESSAGE_BATCH])
