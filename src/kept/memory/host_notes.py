"""Read the notes that agents keep in their own memories, and never write there.

The background process of the hooks calls `read_notes` when a session starts and after a turn. Of each host it looks at
the files of this project that are newer than the last time; `exchange.importers.hosts` knows their places and formats,
`note_writer` stores the statements. Rule: a note is taken in where its host would show it, and nowhere else. Links are
not followed, a file that is too large is named, and secrets are redacted before anything is compared.
"""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from kept import text
from kept.errors import InvalidInput
from kept.exchange.importers.hosts import HOSTS, Host, HostFacts, HostFolder, HostNote, slug_of
from kept.memory.context import Context
from kept.memory.note_writer import (
    FILE,
    FoundStatement,
    NoteFile,
    NoteReading,
    ReadFile,
    files_noted,
    last_reading,
    live_among,
    write_notes,
)
from kept.memory.session_log import paused_periods
from kept.model import ALSO, ASKED, NOTE_OF, PROPOSAL, PROPOSED, Draft, Source, replace
from kept.ports import Reader, Storage
from kept.projects.files import NO_FOLLOW, check_session_name, make_private_directory
from kept.projects.home import entries_of, user_home
from kept.writing import pipeline
from kept.writing.pipeline import WriteRules
from kept.writing.redact import redact

READ_BY = {host.name: host.setting for host in HOSTS}  # the setting that lets us read the notes of an agent
MOST_BYTES = 64 * 1024  # of a note
MOST_SETTINGS_BYTES = 1024 * 1024
MOST_FILES = 1_000  # of a folder
MARK_CHARS = 12  # of a fingerprint: enough to know a statement of the same file again
MOST_NAME = 200  # characters of a topic
CLAIMS = "hook/notes"  # in the home: which project asks about a note that belongs to none


class HostState(Struct, frozen=True, kw_only=True):
    """A reader of one host's notes: if it is on, its folders here, and the result so far."""

    host: str
    title: str
    setting: str
    is_on: bool
    folders: tuple[str, ...] = ()  # that exist
    files: int = 0  # that were read
    memories: int = 0  # that are live
    read_at: datetime | None = None
    left_out: tuple[str, ...] = ()


class FoundFile(NamedTuple):
    """A file of a host as it was found."""

    path: Path
    name: str  # in its folder
    belongs: str
    mtime: int
    size: int

    @property
    def at(self) -> datetime:
        return datetime.fromtimestamp(self.mtime / 1e9, UTC)


def read_notes(
    context: Context,
    environ: Mapping[str, str],
    *,
    agent: str = "",
    session: str | None = None,
    only: Sequence[str] = (),
) -> list[NoteReading]:
    """Take in new, changed and deleted notes of every host whose setting is on, or of those hosts only.

    `agent` and `session` have just worked: a note of that agent without a session was written in this one.
    """
    facts = _facts(context, environ)
    if facts is None or context.is_paused():
        return []
    hosts = [host for host in HOSTS if host.name in only or (not only and _is_on(context, host))]
    here = [host for host in hosts if _folders(host, facts)]
    return [_Reading(context, host, facts, session if host.name == agent else None).run() for host in here]


def _is_on(context: Context, host: Host) -> bool:
    return bool(getattr(context.settings, host.setting))


def _folders(host: Host, facts: HostFacts) -> list[HostFolder]:
    """Return the folders of a host that are there. A missing one may be on a disk that is not mounted."""
    return [folder for folder in host.folders(facts) if folder.path.is_dir()]


def host_states(context: Context, environ: Mapping[str, str]) -> list[HostState]:
    """Return the state of each reader here. Reads no note."""
    facts, storage = _facts(context, environ), context.spaces.project()
    return [] if facts is None else [_state(context, storage, host, facts) for host in HOSTS]


def _state(context: Context, storage: Storage | None, host: Host, facts: HostFacts) -> HostState:
    state = HostState(
        host=host.name,
        title=host.title,
        setting=host.setting,
        is_on=_is_on(context, host),
        folders=tuple(str(folder.path) for folder in _folders(host, facts)),
    )
    if storage is None:
        return state
    with storage.reading() as reader:
        known, last = files_noted(reader, host.name), last_reading(reader, host.name)
        live = live_among(reader, known.values())
    state = replace(state, files=len(known), memories=live)
    return state if last is None else replace(state, read_at=last.at, left_out=tuple(last.left_out))


def _facts(context: Context, environ: Mapping[str, str]) -> HostFacts | None:
    """Return where hosts may have notes of this project; None if it has no directory."""
    root = _root(context)
    if root is None:
        return None
    holds = context.spaces.holds
    return HostFacts(variables=environ, user_home=user_home(environ), root=root, read=_settings_of, holds=holds)


def _root(context: Context) -> Path | None:
    """Return the root of the project's main repository, after which hosts name their folders; else its directory."""
    tree, folder = context.spaces.work_tree(), context.spaces.folder()
    if folder is None or context.spaces.home() is None:
        return None
    if tree is not None:
        folder = tree.common.parent if tree.common.name == ".git" else tree.root
    return Path(os.path.realpath(folder))


def belongs_here(context: Context, project: str) -> bool:
    """Return True if a directory, or the name that a host makes of it, is that of this project."""
    root = _root(context)
    if root is None:
        return False
    return context.spaces.holds(project) if Path(project).is_absolute() else project == slug_of(root)


def _settings_of(path: Path) -> bytes:
    return _bytes_of(path, MOST_SETTINGS_BYTES)


def _bytes_of(path: Path, limit: int) -> bytes:
    """Return the content of a regular file that is not too large; b"" for a link, a pipe or a missing one."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | NO_FOLLOW | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            found = os.fstat(file.fileno())
            return file.read(limit) if stat.S_ISREG(found.st_mode) and found.st_size <= limit else b""
    except (OSError, ValueError):
        return b""


# ---- files ----


def _files_in(folder: HostFolder, left_out: list[str]) -> Iterator[FoundFile]:
    """Yield the Markdown files of a folder that are not too large, at most MOST_FILES."""
    for number, path in enumerate(_paths_in(folder)):
        found = path.lstat()
        if number >= MOST_FILES or found.st_size > MOST_BYTES:
            why = "too many files" if number >= MOST_FILES else f"larger than {MOST_BYTES // 1024} KB"
            left_out.append(f"{_printable(path.name)}: {why}")
        else:
            name = path.relative_to(folder.path).as_posix()
            yield FoundFile(path, name, folder.belongs, found.st_mtime_ns, found.st_size)


def _paths_in(folder: HostFolder) -> Iterator[Path]:
    """Yield the regular Markdown files of a folder, in order. Links are not followed."""
    here = [] if folder.path.is_symlink() else [folder.path]
    for _ in range(folder.depth + 1):
        entries = [entry for one in here for entry in entries_of(one)]
        for entry in sorted(entries, key=lambda entry: entry.path):
            if entry.name.endswith(".md") and entry.is_file(follow_symlinks=False):
                yield Path(entry.path)
        here = [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]


def _printable(name: str) -> str:
    shown = text.visible(name.encode("utf-8", "replace").decode(), keep_newlines=False)[:100]
    return redact(shown).text


def _digest(path: Path | str) -> str:
    """Return a name for a path that may hold anything, also a secret."""
    return blake2b(os.fsencode(path), digest_size=12).hexdigest()


class _Reading:
    """One reading of the notes of one host."""

    def __init__(self, context: Context, host: Host, facts: HostFacts, session: str | None) -> None:
        self._done = NoteReading(host=host.name, left_out=[])
        self._context, self._storage, self._host, self._facts = context, context.owned(), host, facts
        self._session = session

    def run(self) -> NoteReading:
        """Read the files that have changed, and store their statements."""
        folders = {self._name_of(folder): folder for folder in _folders(self._host, self._facts)}
        found = {
            f"{beginning}{_digest(one.name)}": one
            for beginning, folder in folders.items()
            for one in _files_in(folder, self._done.left_out)
        }
        with self._storage.reading() as reader:
            known = files_noted(reader, self._host.name)
            source = Source(origin="agent", agent=self._host.name)  # also if a person asks for it
            rules = replace(self._context.rules(reader), source=source)
            newer = {name: one for name, one in found.items() if _is_newer(one, known.get(name))}
            files = self._read_all(reader, newer, rules)
        gone = [name for name in known.keys() - found.keys() if name.startswith(tuple(folders))]
        if gone or files:
            write_notes(self._context, self._storage, rules, self._done, gone=gone, files=files)
        return self._done

    def _read_all(self, reader: Reader, newer: Mapping[str, FoundFile], rules: WriteRules) -> dict[str, ReadFile]:
        found = {name: self._read(reader, file, rules) for name, file in newer.items()}
        return {name: file for name, file in found.items() if file is not None}

    def _name_of(self, folder: HostFolder) -> str:
        return f"{FILE}{self._host.name}/{_digest(folder.path)}/"

    def _read(self, reader: Reader, file: FoundFile, rules: WriteRules) -> ReadFile | None:
        """Return the statements of a file that belong to this project; None if it cannot be read now."""
        data = _bytes_of(file.path, MOST_BYTES)
        if (not data and file.size) or b"\0" in data:
            self._done.left_out.append(f"{_printable(file.name)}: not readable as text")
            return None
        self._done.read += 1
        statements: list[FoundStatement] = []
        name = file.name.encode("utf-8", "replace").decode()
        for note in self._host.read(name, data.decode("utf-8", "replace")):
            is_asked = self._is_asked(reader, note, file)
            if is_asked is None:
                self._done.elsewhere += 1
            elif not self._is_in_pause(reader, note, file):
                statements += self._statements(note, file, rules, is_asked=is_asked)
        return ReadFile(file.mtime, file.size, statements)

    def _is_asked(self, reader: Reader, note: HostNote, file: FoundFile) -> bool | None:
        """Return whether a person is asked about a note; None if it belongs to another project."""
        if file.belongs == "project":
            return False
        session = _valid(note.session)
        is_here = session is not None and reader.session(session) is not None
        if file.belongs == "session":
            return False if is_here else None
        if note.cwd is not None:
            return False if belongs_here(self._context, note.cwd) else None
        return False if is_here else True if self._is_claimed(file) else None

    def _is_claimed(self, file: FoundFile) -> bool:
        """Return True if this project asks about a note that belongs to none: the first one that has seen it."""
        home = self._context.spaces.home()
        if home is None:
            return False
        folder, space = home / CLAIMS, self._storage.space.encode()
        make_private_directory(folder.parent)
        make_private_directory(folder)
        claim = folder / _digest(file.path)
        with suppress(FileExistsError):
            own = os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            os.write(own, space)
            os.close(own)
        return _bytes_of(claim, 1_000) == space

    def _is_in_pause(self, reader: Reader, note: HostNote, file: FoundFile) -> bool:
        """Return True if a note was written while its session, or the project, was paused."""
        periods = paused_periods(reader, note.session or self._session or "")
        return any(pause.holds(note.at or file.at) for pause in periods)

    def _statements(
        self, note: HostNote, file: FoundFile, rules: WriteRules, *, is_asked: bool
    ) -> Iterator[FoundStatement]:
        """Yield the parts of a note as drafts, checked and redacted."""
        session = _valid(note.session) or self._session
        source = Source(origin="agent", agent=self._host.name, session=session, file=self._shown(file.path))
        for number, part in enumerate(note.parts, 1):
            topic = f"{note.name[:MOST_NAME]}-{number}" if number > 1 else note.name[:MOST_NAME]
            draft = Draft(
                content=part,
                kind=note.kind,
                topic=topic or None,
                tags=(PROPOSED, PROPOSAL, ASKED) if is_asked else (),
                source=source,
                data={NOTE_OF: self._host.name, ALSO: list(note.also)},
                created_at=min(note.at or file.at, self._context.now()),
            )
            try:
                draft = pipeline.take(draft, rules).draft
            except InvalidInput:
                self._done.left_out.append(f"{_printable(file.name)}: not storable")
                continue
            mark = text.fingerprint(draft.content)[:MARK_CHARS]
            # A key that begins with the topic: a note of this name replaces no memory that has it as a topic.
            draft = replace(draft, key=f"{draft.topic or 'note'}:{self._host.name}:{mark}")
            yield FoundStatement(draft, mark, note.is_line, is_asked)

    def _shown(self, path: Path) -> str:
        """Return the path as a person would write it."""
        home = self._facts.user_home
        shown = f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else str(path)
        return shown.encode("utf-8", "replace").decode()[-500:]


def _is_newer(found: FoundFile, known: NoteFile | None) -> bool:
    return known is None or (known.mtime, known.size) != (found.mtime, found.size)


def _valid(session: str | None) -> str | None:
    try:
        return None if session is None else check_session_name(session)
    except InvalidInput:
        return None
