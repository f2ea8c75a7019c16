"""Put Kept into the agents of this machine, and take it out again without a trace.

    plan(agent, scope, where)  →  changes, each a file with its text before and after  →  write

The ledger, one JSON file in the home of Kept, remembers for each file the bytes it had before us and a digest of what
we wrote. If a file is still as we left it, uninstalling puts back those bytes; if somebody changed it since, only our
own entries are cut out of it. Nothing is written before every file of an agent could be read and changed. Uninstalling
goes file by file: one that cannot be changed is named, and the others are cleaned all the same.

Files of a project may come from a stranger. In scope project nothing outside of the project is written, by no link.

An entry that has our name and runs another program stays as it is; our entries in that agent then have our other name.
Rule: `edits` say what belongs into a file, `agents` which file, `ours` whose an entry is; only this module writes.
"""

import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kept.entrypoints.install.agents import AGENTS, NAMES, MachineFacts, Scope
from kept.entrypoints.install.edits import ConfigEdit, IsOurs, Table, Trace, says_the_same, table_at
from kept.entrypoints.install.ours import is_ours
from kept.errors import InvalidInput, KeptError, NotFound
from kept.projects.files import locked, replace_file

LEDGER = "installed.json"
LOCK = "installed.lock"
LOCK_TIMEOUT_S = 120.0  # another `kept install` may ask Codex, or wait for the answer of a person
MOST_BYTES = 8_000_000  # of a configuration file


class LedgerEntry(Struct, frozen=True, kw_only=True):
    """A file that we changed: what it held before (None: there was none), and a digest of what we wrote."""

    agent: str
    scope: Scope
    base: str | None
    written: str
    folders: tuple[str, ...] = ()  # that we made for it
    tables: tuple[tuple[str, ...], ...] = ()  # of a TOML file, added later
    called: str = NAMES[0]  # the name of our entries in it
    inside: str | None = None  # the project that a file of scope project must stay in


class Change(Struct, frozen=True, kw_only=True):
    """A file before and after. None: it does not exist."""

    path: Path
    before: str | None
    after: str | None
    base: str | None = None  # what uninstalling gives back
    called: str = NAMES[0]
    inside: Path | None = None  # the folder that it must not lead out of

    @property
    def is_nothing(self) -> bool:
        return self.before == self.after


class Removal(Struct, frozen=True, kw_only=True):
    """The changes that took Kept out of files, and the errors of those files that could not be changed."""

    done: list[Change]
    refused: list[KeptError]


class Ledger:
    """What was installed where. Kept in the home, written before and after each file."""

    def __init__(self, home: Path) -> None:
        self._file = home / LEDGER
        self.entries: dict[str, LedgerEntry] = {}
        text = _read(self._file)
        if text is not None:
            try:
                self.entries = msgspec.json.decode(text, type=dict[str, LedgerEntry])
            except msgspec.MsgspecError as error:
                raise InvalidInput(
                    f"{self._file} cannot be read: {error}.", hint="It says what `kept install` changed. Restore it."
                ) from None

    def of(self, agents: Iterable[str]) -> dict[str, LedgerEntry]:
        wanted = set(agents)
        return {path: entry for path, entry in self.entries.items() if entry.agent in wanted}

    def save(self) -> None:
        if self.entries:
            _write(self._file, msgspec.json.format(msgspec.json.encode(self.entries), indent=1).decode() + "\n")
        else:
            self._file.unlink(missing_ok=True)


@contextmanager
def one_at_a_time(home: Path) -> Iterator[None]:
    """Hold the lock of installing and uninstalling. Read the ledger inside: another process may have written it.

    Raises Busy if another one holds it for long. Where there is no home, nothing was installed, and none is made.
    """
    if not home.is_dir():
        yield
        return
    with locked(home / LOCK, timeout_s=LOCK_TIMEOUT_S):
        yield


def found(where: MachineFacts, programs: Mapping[str, str | None]) -> list[str]:
    """The agents that are on this machine: their program is on the PATH, or their folder is there."""
    return [
        name
        for name, agent in AGENTS.items()
        if any(programs.get(program) for program in agent.programs) or agent.folder(where).is_dir()
    ]


def known(name: str) -> str:
    """The name, if it is an agent's. Raises NotFound, which lists the known ones."""
    if name in AGENTS:
        return name
    raise NotFound(f"Unknown agent '{name}'.", hint=f"Choose one of: {', '.join(AGENTS)}.")


def plan(name: str, scope: Scope, where: MachineFacts, ledger: Ledger) -> list[Change]:
    """The changes that put Kept into an agent. Raises InvalidInput if a file of it cannot be changed."""
    agent = AGENTS[known(name)]
    if scope not in agent.scopes:
        raise InvalidInput(f"{agent.title} has no settings by project.", hint="Leave out --scope project.")
    for path in agent.files(where, scope):
        _check_inside(path, _project_of(path, scope, where))
    where = replace(where, name=name_for(name, scope, where, ledger))
    changes = []
    for path, edits in agent.files(where, scope).items():
        if not edits:
            continue
        project = _project_of(path, scope, where)
        _check_link(path, agent.title)
        entry = ledger.entries.get(str(path))
        before = _text_of(path, agent.title)
        base = _base(before, entry, _owned(name, scope, path, where, ledger), path, agent.title)
        if all(isinstance(edit, Trace) for edit in edits):  # the agent writes it; we only clean up after us
            changes.append(Change(path=path, before=before, after=before, base=base, called=where.name, inside=project))
            continue
        after = base
        for edit in (*edits, *_added_later(before, entry)):
            after = _applied(edit, after, path, agent.title)
        if before is not None and says_the_same(before, after or "", path):  # an agent that rewrote it, say
            after = before
        changes.append(
            Change(path=path, before=before, after=after or None, base=base, called=where.name, inside=project)
        )
    return changes


def name_for(agent: str, scope: Scope, where: MachineFacts, ledger: Ledger) -> str:
    """Return the name of our entries in an agent: the one they have, else the first that no other program has."""
    installed = [entry.called for entry in ledger.of([agent]).values() if entry.scope == scope]
    for name in dict.fromkeys((*installed, *NAMES)):
        if not taken_in(name, agent, scope, where, ledger):
            return name
    [place, *_] = taken_in(NAMES[0], agent, scope, where, ledger)
    raise InvalidInput(
        f"{place} of {AGENTS[agent].title} was not changed. The names {' and '.join(NAMES)} belong to other programs.",
        hint="Rename one of these entries, then run the command again.",
    )


def taken_in(name: str, agent: str, scope: Scope, where: MachineFacts, ledger: Ledger) -> list[Path]:
    """Return the files of an agent where another program has this name."""
    other, ours, unclear = list[Path](), list[Path](), list[Path]()
    for path, edits in AGENTS[agent].files(replace(where, name=name), scope).items():
        if path.is_relative_to(where.plugin):
            continue
        text = _text_of(path, AGENTS[agent].title)
        for edit in edits if text else ():
            value = _holder(edit, text or "", path, AGENTS[agent].title)
            if value is not None:
                has_command = getattr(edit, "has_command", True)
                (unclear if not has_command else ours if is_ours(value, where) else other).append(path)
    is_installed = any(entry.called == name and entry.scope == scope for entry in ledger.of([agent]).values())
    return other or ([] if ours or is_installed else unclear)


OwnedEdit = tuple[ConfigEdit, IsOurs]


def _owned(agent: str, scope: Scope, path: Path, where: MachineFacts, ledger: Ledger) -> list[OwnedEdit]:
    """Our edits of a file under each of our names, with the test whether the value in their place is ours."""
    found: list[OwnedEdit] = []
    for name in NAMES:
        edits = AGENTS[agent].files(replace(where, name=name), scope).get(path, [])
        is_in_our_folder = path.is_relative_to(where.plugin)
        for edit in edits:
            if not is_in_our_folder and getattr(edit, "has_command", True):
                found.append((edit, lambda value: is_ours(value, where)))
            elif is_in_our_folder or _is_free(name, agent, scope, where, ledger):
                found.append((edit, lambda value: True))
    return found


def _is_free(name: str, agent: str, scope: Scope, where: MachineFacts, ledger: Ledger) -> bool:
    """Return True if no other program has this name in an agent. If a file of it is broken, the ledger decides."""
    try:
        return not taken_in(name, agent, scope, where, ledger)
    except InvalidInput:
        return any(entry.called == name and entry.scope == scope for entry in ledger.of([agent]).values())


def plan_removal(path: str, entry: LedgerEntry, where: MachineFacts, ledger: Ledger) -> Change:
    """The change that takes Kept out of a file again."""
    file = Path(path)
    agent = AGENTS.get(entry.agent)
    title = agent.title if agent else entry.agent
    inside = Path(entry.inside) if entry.inside else None
    _check_inside(file, inside)
    edits = _owned(entry.agent, entry.scope, file, where, ledger) if agent else []
    before = _text_of(file, title)
    after = _base(before, entry, edits, file, title)
    return Change(path=file, before=before, after=after, inside=inside)


def apply(name: str, scope: Scope, changes: Iterable[Change], ledger: Ledger) -> list[Change]:
    """Write the changes and remember what was there. Returns those that were needed.

    Raises InvalidInput if a file has changed since it was planned, while a person was asked, say.
    """
    changes = list(changes)
    for change in changes:
        _check_unchanged(change)
        _check_writable(change)
    done = []
    for change in changes:
        path, entry = str(change.path), ledger.entries.get(str(change.path))
        written = _digest(change.after)
        is_known = entry is not None and entry.called == change.called
        if change.is_nothing and entry and is_known and (entry.written == written or entry.base == change.base):
            continue
        folders = tuple(map(str, _missing_folders(change.path))) or (entry.folders if entry else ())
        tables = entry.tables if entry else ()
        ledger.entries[path] = LedgerEntry(
            agent=name,
            scope=scope,
            base=change.base,
            written=written,
            folders=folders,
            tables=tables,
            called=change.called,
            inside=str(change.inside) if change.inside else None,
        )
        ledger.save()
        if not change.is_nothing:
            _put(change)
            done.append(change)
    return done


def add_tables(name: str, scope: Scope, path: Path, tables: Sequence[Table], ledger: Ledger) -> None:
    """Put more tables into a TOML file of an agent that has been installed."""
    before = _read(path)
    entry = ledger.entries.get(str(path)) or LedgerEntry(agent=name, scope=scope, base=before, written="")
    text = before or ""
    for table in tables:
        text = table.apply(text)
    known = dict.fromkeys((*entry.tables, *(table.path for table in tables)))
    ledger.entries[str(path)] = replace(entry, written=_digest(text), tables=tuple(known))
    ledger.save()
    _write(path, text)


def _added_later(text: str | None, entry: LedgerEntry | None) -> list[Table]:
    """The tables that were added after the installation, as they are now: installing again keeps them."""
    if text is None or entry is None:
        return []
    now = {path: table_at(text, path) for path in entry.tables}
    return [Table(path, value) for path, value in now.items() if value is not None]


def remove(entries: Mapping[str, LedgerEntry], where: MachineFacts, ledger: Ledger) -> Removal:
    """Take Kept out of these files. The ledger forgets each file once it is done; one that is refused stays in it."""
    planned, refused = list[tuple[str, Change]](), list[KeptError]()
    for path, entry in entries.items():  # all before the first is written: whose a name is, several files say
        try:
            planned.append((path, plan_removal(path, entry, where, ledger)))
        except KeptError as error:
            refused.append(error)
    done = []
    for path, change in planned:
        try:
            if not change.is_nothing:
                _put(change)
                done.append(change)
        except KeptError as error:
            refused.append(error)
            continue
        del ledger.entries[path]
        ledger.save()
    folders = {
        Path(folder) for path, entry in entries.items() if path not in ledger.entries for folder in entry.folders
    }
    for folder in sorted(folders, key=lambda folder: -len(folder.parts)):
        _remove_if_empty(folder)
    return Removal(done=done, refused=refused)


def _base(
    before: str | None, entry: LedgerEntry | None, edits: Iterable[OwnedEdit], path: Path, title: str
) -> str | None:
    """The text without us: as it was, if nobody changed it since; else what is left after cutting out our entries."""
    if before is None or (entry and _digest(before) == entry.written):
        return entry.base if entry and before is not None else None
    text = before
    added: list[OwnedEdit] = [(Table(table, {}), lambda value: True) for table in (entry.tables if entry else ())]
    base = (entry.base or "") if entry else before
    for edit, test in (*added, *edits):
        text = _stripped(edit, text, base, test, path, title)
    is_ours_alone = not text.strip() and (entry.base is None if entry else bool(before.strip()))
    return None if is_ours_alone else text


def _applied(edit: ConfigEdit, text: str | None, path: Path, title: str) -> str:
    try:
        return edit.apply(text or "")
    except InvalidInput as error:
        raise _cannot_change(path, title, error) from None


def _holder(edit: ConfigEdit, text: str, path: Path, title: str) -> object:
    try:
        return edit.holder(text)
    except InvalidInput as error:
        raise _cannot_change(path, title, error) from None


def _stripped(edit: ConfigEdit, text: str, base: str, is_ours: IsOurs, path: Path, title: str) -> str:
    try:
        return edit.strip(text, base, is_ours)
    except InvalidInput as error:
        raise _cannot_change(path, title, error) from None


def _cannot_change(path: Path, title: str, error: KeptError) -> InvalidInput:
    return InvalidInput(
        f"{path} of {title} was not changed. {error.message}", hint="Correct the file, then run the command again."
    )


# ---- files ----


def _text_of(path: Path, title: str) -> str | None:
    text = _read(path)
    if text is not None and "\x00" in text:
        raise InvalidInput(f"{path} of {title} is not a text file. Nothing was changed.")
    return text


def _read(path: Path) -> str | None:
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise InvalidInput(f"{path} is not a regular file. Nothing was changed.")
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}. Nothing was changed.") from None
    if len(raw) > MOST_BYTES:
        raise InvalidInput(f"{path} has more than {MOST_BYTES:,} bytes. Nothing was changed.")
    return raw.decode("utf-8", "surrogateescape")


def _put(change: Change) -> None:
    _check_inside(change.path, change.inside)
    _check_unchanged(change)
    if change.after is None:
        change.path.resolve().unlink(missing_ok=True)  # a link that led to nothing before us does so again
    else:
        _write(change.path, change.after)


def _write(path: Path, text: str) -> None:
    """Replace a file at once; a link stays a link, and the permissions stay as they are."""
    target = path.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        replace_file(target, text.encode("utf-8", "surrogateescape"))
        target.chmod(mode)
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        cure = "Free some space" if is_full else "Change its permissions"
        raise InvalidInput(
            f"{path} cannot be written: {error.strerror}.", hint=f"{cure}, then run the command again."
        ) from None


def _project_of(path: Path, scope: Scope, where: MachineFacts) -> Path | None:
    """The project that a file belongs to; None for a file of the user or of Kept."""
    is_of_project = scope == "project" and path.is_relative_to(where.project)
    return where.project if is_of_project and not path.is_relative_to(where.plugin) else None


def _check_inside(path: Path, project: Path | None) -> None:
    """Raise InvalidInput for a file of a project that a link leads out of it."""
    if project is None:
        return
    target = os.path.realpath(path)
    if not Path(target).is_relative_to(os.path.realpath(project)):
        raise InvalidInput(
            f"{path} leads out of the project, to {target}. It was not changed.",
            hint="Replace the link by a file or a folder of the project, then run the command again.",
        )


def _check_unchanged(change: Change) -> None:
    if not change.is_nothing and _read(change.path) != change.before:
        raise InvalidInput(
            f"{change.path} was changed by another program in the meantime. It was left as it is.",
            hint="Run the command again.",
        )


def _check_link(path: Path, title: str) -> None:
    """Raise InvalidInput for a link that leads to nothing. If only the file is missing there, it can be written."""
    for link in (path, *path.parents):
        if link.is_symlink() and not link.exists():
            target = Path(os.path.realpath(link))
            if link == path and target.parent.is_dir():
                continue
            raise InvalidInput(
                f"{link} of {title} is a link to {target}, which does not exist. Nothing was changed.",
                hint="Restore what it leads to, or delete the link; then run the command again.",
            )


def _check_writable(change: Change) -> None:
    if change.is_nothing:
        return
    target = change.path.resolve()
    folder = next(parent for parent in target.parents if parent.exists())
    if target.exists() and not target.is_file():
        raise InvalidInput(f"{change.path} is not a regular file. Nothing was changed.")
    for place in (target, folder) if target.exists() else (folder,):
        if not place.stat().st_mode & 0o222 or not os.access(place, os.W_OK):
            raise InvalidInput(
                f"{place} is read-only. Nothing was changed.",
                hint="Change its permissions, then run the command again.",
            )


def _missing_folders(path: Path) -> list[Path]:
    """The folders that will be made for a file, innermost first."""
    return [folder for folder in path.parents if not folder.exists()]


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return  # somebody else uses it now


def _digest(text: str | None) -> str:
    return "" if text is None else sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
