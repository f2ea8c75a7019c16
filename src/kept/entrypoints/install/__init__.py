"""Add Kept to the agents of this machine, and remove it again without a trace.

    plan(agent, scope, where)  →  changes, each a file with its text before and after  →  write

The ledger, one JSON file in the home of Kept, has for each file the text it had before us and a digest of the text that
we wrote. If a file is still as we left it, uninstalling restores the text before us; if it was changed since, only our
own entries are cut out of it. Nothing is written before every file of an agent could be read and changed. Uninstalling
goes file by file: a file that cannot be changed is named, and the others are cleaned all the same.

Files of a project may come from a stranger. In scope project nothing outside of the project is written, by no link.

An entry that has our name and runs another program stays as it is; our entries in that agent then have our other name.
Rule: `agents` lists the files, `edits` their entries, `ours` tells whose an entry is, `files` reads and writes; only
this module decides.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kept.entrypoints.install import disk, toml
from kept.entrypoints.install.agents import AGENTS, NAMES, MachineFacts, Scope
from kept.entrypoints.install.edits import ConfigEdit, IsOurs, Table, Trace, says_the_same
from kept.entrypoints.install.ours import is_ours
from kept.errors import InvalidInput, KeptError, NotFound
from kept.projects.files import locked

LEDGER = "installed.json"
LOCK = "installed.lock"
LOCK_TIMEOUT_S = 120.0  # another `kept install` may ask Codex, or wait for the answer of a person


class LedgerEntry(Struct, frozen=True, kw_only=True):
    """A file that we changed: its text before us (None: there was no file), and a digest of the text that we wrote."""

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
    base: str | None = None  # the text that uninstalling restores
    called: str = NAMES[0]
    inside: Path | None = None  # the folder that it must not lead out of

    @property
    def is_nothing(self) -> bool:
        return self.before == self.after


class Removal(Struct, frozen=True, kw_only=True):
    """The changes that removed Kept from files, and the errors of the files that could not be changed."""

    done: list[Change]
    refused: list[KeptError]


class Ledger:
    """The files that were changed, in the home. Written before and after each file."""

    def __init__(self, home: Path) -> None:
        self._file = home / LEDGER
        self.entries: dict[str, LedgerEntry] = {}
        text = disk.read(self._file)
        if text is not None:
            try:
                self.entries = msgspec.json.decode(text, type=dict[str, LedgerEntry])
            except msgspec.MsgspecError as error:
                raise InvalidInput(
                    f"{self._file} cannot be read: {error}.", hint="It says what `kept install` changed. Restore it."
                ) from None

    def of(self, agents: Iterable[str]) -> dict[str, LedgerEntry]:
        """Return the entries of these agents, by path."""
        wanted = set(agents)
        return {path: entry for path, entry in self.entries.items() if entry.agent in wanted}

    def uses(self, name: str, agent: str, scope: Scope) -> bool:
        """Return True if our entries in an agent have this name."""
        return any(entry.called == name and entry.scope == scope for entry in self.of([agent]).values())

    def save(self) -> None:
        """Write the file; without entries, remove it."""
        if self.entries:
            disk.write(self._file, msgspec.json.format(msgspec.json.encode(self.entries), indent=1).decode() + "\n")
        else:
            self._file.unlink(missing_ok=True)


@contextmanager
def one_at_a_time(home: Path) -> Iterator[None]:
    """Hold the lock of installing and uninstalling. Read the ledger inside: another process may have written it.

    Raises Busy if another process holds it for long. Without a home nothing was installed, and no home is made.
    """
    if not home.is_dir():
        yield
        return
    with locked(home / LOCK, timeout_s=LOCK_TIMEOUT_S):
        yield


def found(where: MachineFacts, programs: Mapping[str, str | None]) -> list[str]:
    """Return the agents that are on this machine: their program is on the PATH, or their folder is there."""
    return [
        name
        for name, agent in AGENTS.items()
        if any(programs.get(program) for program in agent.programs) or agent.folder(where).is_dir()
    ]


def known(name: str) -> str:
    """Return the name of an agent as it is. Raises NotFound, with the known names, for any other."""
    if name in AGENTS:
        return name
    raise NotFound(f"Unknown agent '{name}'.", hint=f"Choose one of: {', '.join(AGENTS)}.")


# ---- installing ----


def plan(name: str, scope: Scope, where: MachineFacts, ledger: Ledger) -> list[Change]:
    """Return the changes that add Kept to an agent. Raises InvalidInput if a file of it cannot be changed."""
    agent = AGENTS[known(name)]
    if scope not in agent.scopes:
        raise InvalidInput(f"{agent.title} has no settings by project.", hint="Leave out --scope project.")
    for path in agent.files(where, scope):
        disk.check_inside(path, _project_of(path, scope, where))
    where = replace(where, name=name_for(name, scope, where, ledger))
    return [
        _change_of(path, edits, name, scope, where, ledger)
        for path, edits in agent.files(where, scope).items()
        if edits
    ]


def _change_of(
    path: Path, edits: Sequence[ConfigEdit], name: str, scope: Scope, where: MachineFacts, ledger: Ledger
) -> Change:
    """Return the change that these edits make to a file of an agent."""
    title, entry = AGENTS[name].title, ledger.entries.get(str(path))
    disk.check_link(path, title)
    before = disk.text_of(path, title)
    base = _base(before, entry, _owned(name, scope, path, where, ledger), path, title)
    if all(isinstance(edit, Trace) for edit in edits):  # the agent writes it; we only clean up after us
        after = before
    else:
        after, added = base, _added_later(before, entry)
        with _named(path, title):
            for edit in (*edits, *added):
                after = edit.apply(after or "")
        if before is not None and says_the_same(before, after or "", path):  # an agent that rewrote it, say
            after = before
        after = after or None
    inside = _project_of(path, scope, where)
    return Change(path=path, before=before, after=after, base=base, called=where.name, inside=inside)


def apply(name: str, scope: Scope, changes: Iterable[Change], ledger: Ledger) -> list[Change]:
    """Write the changes and note the texts before them. Return the changes that were needed.

    Raises InvalidInput if a file has changed since it was planned, while the user was asked, say.
    """
    changes = list(changes)
    for change in changes:
        _check_unchanged(change)
        if not change.is_nothing:
            disk.check_writable(change.path)
    done = []
    for change in changes:
        entry = ledger.entries.get(str(change.path))
        if entry is not None and _is_noted(change, entry):
            continue
        ledger.entries[str(change.path)] = _entry_of(change, name, scope, entry)
        ledger.save()
        if not change.is_nothing:
            _put(change)
            done.append(change)
    return done


def _is_noted(change: Change, entry: LedgerEntry) -> bool:
    """Return True if the file stays as it is and the ledger has it already."""
    is_same = entry.written == disk.digest(change.after) or entry.base == change.base
    return change.is_nothing and entry.called == change.called and is_same


def _entry_of(change: Change, name: str, scope: Scope, entry: LedgerEntry | None) -> LedgerEntry:
    """Return the new entry of the ledger for a change. Folders and tables of the entry before it are kept."""
    return LedgerEntry(
        agent=name,
        scope=scope,
        base=change.base,
        written=disk.digest(change.after),
        folders=tuple(map(str, disk.missing_folders(change.path))) or (entry.folders if entry else ()),
        tables=entry.tables if entry else (),
        called=change.called,
        inside=str(change.inside) if change.inside else None,
    )


def add_tables(name: str, scope: Scope, path: Path, tables: Sequence[Table], ledger: Ledger) -> None:
    """Add more tables to a TOML file of an agent that has been installed."""
    before = disk.read(path)
    entry = ledger.entries.get(str(path)) or LedgerEntry(agent=name, scope=scope, base=before, written="")
    text = before or ""
    for table in tables:
        text = table.apply(text)
    known = dict.fromkeys((*entry.tables, *(table.path for table in tables)))
    ledger.entries[str(path)] = replace(entry, written=disk.digest(text), tables=tuple(known))
    ledger.save()
    disk.write(path, text)


def _added_later(text: str | None, entry: LedgerEntry | None) -> list[Table]:
    """Return the tables that were added after the installation, as they are now: installing again keeps them."""
    if text is None or entry is None:
        return []
    now = {path: toml.value_at(text, path) for path in entry.tables}
    return [Table(path, value) for path, value in now.items() if isinstance(value, dict)]


# ---- names ----


def name_for(agent: str, scope: Scope, where: MachineFacts, ledger: Ledger) -> str:
    """Return the name of our entries in an agent: their present name, else the first that no other program has."""
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
    places: dict[_Owner, list[Path]] = {"other": [], "ours": [], "unclear": []}
    for path, owner in _owners(name, agent, scope, where):
        places[owner].append(path)
    has_ours = bool(places["ours"]) or ledger.uses(name, agent, scope)
    return places["other"] or ([] if has_ours else places["unclear"])


_Owner = Literal["ours", "other", "unclear"]


def _owners(name: str, agent: str, scope: Scope, where: MachineFacts) -> Iterator[tuple[Path, _Owner]]:
    """Yield each file with an entry of this name, and whose entry it is."""
    title = AGENTS[agent].title
    for path, edits in AGENTS[agent].files(replace(where, name=name), scope).items():
        text = None if path.is_relative_to(where.plugin) else disk.text_of(path, title)
        for edit in edits if text else ():
            with _named(path, title):
                value = edit.holder(text or "")
            if value is not None:
                yield path, _owner(edit, value, where)


def _owner(edit: ConfigEdit, value: object, where: MachineFacts) -> _Owner:
    """Tell whose the value in the place of an edit is."""
    if not _has_command(edit):
        return "unclear"
    return "ours" if is_ours(value, where) else "other"


def _has_command(edit: ConfigEdit) -> bool:
    """Return True if a value in the place of the edit shows whose it is."""
    return getattr(edit, "has_command", True)


OwnedEdit = tuple[ConfigEdit, IsOurs]


def _owned(agent: str, scope: Scope, path: Path, where: MachineFacts, ledger: Ledger) -> list[OwnedEdit]:
    """Return our edits of a file under each of our names, with the test whether the value in their place is ours."""
    found: list[OwnedEdit] = []
    for name in NAMES:
        edits = AGENTS[agent].files(replace(where, name=name), scope).get(path, [])
        is_in_our_folder = path.is_relative_to(where.plugin)
        for edit in edits:
            if not is_in_our_folder and _has_command(edit):
                found.append((edit, lambda value: is_ours(value, where)))
            elif is_in_our_folder or _is_free(name, agent, scope, where, ledger):
                found.append((edit, lambda value: True))
    return found


def _is_free(name: str, agent: str, scope: Scope, where: MachineFacts, ledger: Ledger) -> bool:
    """Return True if no other program has this name in an agent. If a file of it is broken, the ledger decides."""
    try:
        return not taken_in(name, agent, scope, where, ledger)
    except InvalidInput:
        return ledger.uses(name, agent, scope)


# ---- uninstalling ----


def plan_removal(path: str, entry: LedgerEntry, where: MachineFacts, ledger: Ledger) -> Change:
    """Return the change that removes Kept from a file."""
    file = Path(path)
    agent = AGENTS.get(entry.agent)
    title = agent.title if agent else entry.agent
    inside = Path(entry.inside) if entry.inside else None
    disk.check_inside(file, inside)
    edits = _owned(entry.agent, entry.scope, file, where, ledger) if agent else []
    before = disk.text_of(file, title)
    after = _base(before, entry, edits, file, title)
    return Change(path=file, before=before, after=after, inside=inside)


def plan_removals(
    entries: Mapping[str, LedgerEntry], where: MachineFacts, ledger: Ledger
) -> tuple[list[tuple[str, Change]], list[KeptError]]:
    """Return the changes that remove Kept from these files, by path, and the errors of those that cannot be changed."""
    planned, refused = list[tuple[str, Change]](), list[KeptError]()
    for path, entry in entries.items():
        try:
            planned.append((path, plan_removal(path, entry, where, ledger)))
        except KeptError as error:
            refused.append(error)
    return planned, refused


def remove(entries: Mapping[str, LedgerEntry], where: MachineFacts, ledger: Ledger) -> Removal:
    """Remove Kept from these disk. The ledger drops each file once it is done; a refused file stays in it."""
    planned, refused = plan_removals(entries, where, ledger)  # all before the first: several files tell whose a name is
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
    _remove_folders(entry for path, entry in entries.items() if path not in ledger.entries)
    return Removal(done=done, refused=refused)


def _remove_folders(entries: Iterable[LedgerEntry]) -> None:
    """Remove the folders that we made for files, if they are empty."""
    folders = {Path(folder) for entry in entries for folder in entry.folders}
    for folder in sorted(folders, key=lambda folder: -len(folder.parts)):
        disk.remove_if_empty(folder)


def _base(
    before: str | None, entry: LedgerEntry | None, edits: Iterable[OwnedEdit], path: Path, title: str
) -> str | None:
    """Return the text without us: the text before us if nothing changed it since, else the rest without our entries."""
    if before is None:
        return None
    if entry and disk.digest(before) == entry.written:
        return entry.base
    text, base = before, (entry.base or "") if entry else before
    added: list[OwnedEdit] = [(Table(table, {}), lambda value: True) for table in (entry.tables if entry else ())]
    with _named(path, title):
        for edit, test in (*added, *edits):
            text = edit.strip(text, base, test)
    return None if _was_ours_alone(text, before, entry) else text


def _was_ours_alone(text: str, before: str, entry: LedgerEntry | None) -> bool:
    """Return True if nothing is left of a file without our entries, and it was not there, empty, before us."""
    if text.strip():
        return False
    return entry.base is None if entry else bool(before.strip())


# ---- changing a file ----


@contextmanager
def _named(path: Path, title: str) -> Iterator[None]:
    """Name the file, if an edit cannot change it."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(
            f"{path} of {title} was not changed. {error.message}", hint="Correct the file, then run the command again."
        ) from None


def _put(change: Change) -> None:
    """Write a change, if the file is still as it was planned."""
    disk.check_inside(change.path, change.inside)
    _check_unchanged(change)
    if change.after is None:
        change.path.resolve().unlink(missing_ok=True)  # a link that led to nothing before us does so again
    else:
        disk.write(change.path, change.after)


def _check_unchanged(change: Change) -> None:
    if not change.is_nothing and disk.read(change.path) != change.before:
        raise InvalidInput(
            f"{change.path} was changed by another program in the meantime. It was left as it is.",
            hint="Run the command again.",
        )


def _project_of(path: Path, scope: Scope, where: MachineFacts) -> Path | None:
    """Return the project that a file belongs to; None for a file of the user or of Kept."""
    is_of_project = scope == "project" and path.is_relative_to(where.project)
    return where.project if is_of_project and not path.is_relative_to(where.plugin) else None
