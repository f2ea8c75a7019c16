"""Projects: which memory belongs to which directory, and the commands that change that.

Everything that opens a memory in the home starts here: `find` to read, which creates nothing, or `ensure` to write,
which registers. A plain directory is a project with all directories below it; a repository inside it is another one.
A string with a separator is a path, and so are `.` and `~`; any other string is a name, and names are exact: `Web`,
`web` and `web ` are three projects. `project/<id>` is an id. What people type is read by `typed`, which also takes `..`
and a bare id.
Rule: the registry is changed under its lock and replaced as a whole. A damaged one is kept, never overwritten, and
rebuilt from the cards (`project.json`) in the folders of the projects.
"""

import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import msgspec
from msgspec.structs import replace

from kept.errors import InvalidInput, KeptError, NotAllowed, NotFound, SchemaTooNew, StorageError
from kept.projects.files import explained, locked, shown, warn, write_private_file
from kept.projects.home import FOLDER_PATTERN, Home, SpaceFiles, entries_of, expanded, slug
from kept.projects.registry import (
    ID_FILE,
    ID_PATTERN,
    NAME_CHARS,
    UNPRINTABLE,
    Place,
    Project,
    Registry,
    Team,
    folded,
    identify,
    is_like,
    no_project_directories,
    path_text,
    read_id,
    remove_id,
    text_path,
    with_place,
    without,
    write_id,
)
from kept.storage.files import sync

REGISTRY_VERSION = 1
SEPARATOR = r"[/\\]"  # of paths, on any platform: a name contains none
NAMES_OF_USERS = {"email", "credentials"}  # kinds of secrets that ids of users are taken for: auth0|5f7c…
HOW_TO_NAME_ONE = "cd into a project, or name one: --project NAME."
HOW_TO_LIST = "`kept projects list` shows names and ids."


class ExactName(str):
    """A name that a program gives for a project: compared as it is, and never a path or an id."""

    __slots__ = ()


class Located(msgspec.Struct, frozen=True):
    """What a path, name or id means, found without changing anything."""

    project: Project | None  # as it would be stored: a moved repository already has its new place
    place: Place | None = None  # None if a project was named
    kept_id: str | None = None  # the id that the repository itself names
    name: str = ""  # the new name that `ensure` would register
    refusal: str = ""  # why nothing can be written here, or ""


class _File(msgspec.Struct, frozen=True):
    version: int
    projects: tuple[Project, ...]


class _Version(msgspec.Struct, frozen=True):
    version: int


class Projects:
    """The projects of a home. `notices` lists repairs, for the user to read."""

    def __init__(
        self,
        home: Home,
        *,
        environ: Mapping[str, str],
        new_id: Callable[[], str] = lambda: os.urandom(4).hex(),
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        may_begin: bool = True,
    ) -> None:
        """`may_begin`: make a new home also where a repository was in one before, which is not there now."""
        self.home = home
        self.notices: list[str] = []
        self._environ = environ
        self._new_id = new_id
        self._now = now
        self._may_begin = may_begin

    def find(self, target: str | os.PathLike[str] | None = None) -> Project | None:
        """The project that a path, name or id means, or None while there is none. Changes nothing on disk."""
        return self.locate(target).project

    def locate(self, target: str | os.PathLike[str] | None = None) -> Located:
        """As `find`, with the reasons. No target is the current directory.

        Raises NotFound for a missing directory or an unknown id, InvalidInput if it can be neither path nor name.
        """
        return self._locate(self._read(), target)

    def is_home_away(self, target: str | os.PathLike[str] | None = None) -> bool:
        """Return True if the repository there was in a home before, and the home is missing now."""
        try:
            place = identify(self._path("." if target is None else target), self._no_projects)
        except (KeptError, OSError, ValueError):
            return False
        return read_id(place.git_common_dir) is not None and self._is_without_projects()

    def around(self, cwd: str, within: Path | None = None) -> Located | None:
        """Where a program worked that ran in this directory; None if no project can be told, or be there.

        A directory that is gone belongs to the project above it, if there is one, or if what is above is `within` that.
        """
        registry, folder = self._read(), Path(cwd)
        if not folder.is_absolute():
            return None
        try:
            with suppress(NotFound):
                found = self._locate_path(registry, folder)
                return None if found.refusal else found
            above = next(parent for parent in folder.parents if parent.is_dir())
            found = self._locate_path(registry, above)
        except (KeptError, OSError, ValueError):  # a path that nobody can have, or may look at
            return None
        is_project = found.project is not None or (found.place is not None and found.place.git_common_dir is not None)
        is_within = within is not None and above.resolve().is_relative_to(within)
        return found if (is_project or is_within) and not found.refusal else None

    def ensure(self, target: str | os.PathLike[str] | None = None) -> Project:
        """The project to write to; a new directory or name is registered, and its folder in the home made.

        Raises NotAllowed in $HOME, / and the like, and as `locate` does.
        """
        registry = self._load()
        located = _allowed(self._locate(registry, target))
        project = located.project
        if project is None or registry.damage or project != registry.projects[project.id]:
            with self._changing() as registry:
                located = _allowed(self._locate(registry, target))  # another process may have been here first
                project = located.project or self._draft(registry, located)
                if project != registry.projects.get(project.id):
                    self._save(registry, project)
        if not self.home.prepare(project.folder).project_card.exists():
            self._write_card(project)
        self._note_id(registry, located, project)
        return project

    def list_projects(self) -> list[Project]:
        """All projects that were not merged into another, by name."""
        living = (project for project in self._read().projects.values() if project.into is None)
        return sorted(living, key=lambda project: (folded(project.name), project.id))

    def merged_into(self, project_id: str) -> list[Project]:
        """The projects that were merged into this one, directly or by way of another."""
        registry = self._read()
        gone = [project for project in registry.projects.values() if project.into is not None]
        return [project for project in gone if (heir := registry.get(project.id)) and heir.id == project_id]

    def get(self, name_or_id: str) -> Project:
        """The registered project of that name or id; raises NotFound."""
        return self._get(self._read(), name_or_id)

    def add(self, name: str, root: str | os.PathLike[str] | None = None) -> Project:
        """Register a project under a name of its own, for a directory or for none."""
        with self._changing() as registry:
            located = Located(None, name=self._free_name(registry, name))
            if root is not None:
                there = _allowed(self._locate_path(registry, self._path(root)))
                owner = there.project
                if owner and (there.place is None or there.place.git_common_dir or registry.at_path(there.place.key)):
                    raise InvalidInput(
                        f"{shown(root)} already belongs to project {owner.name!r} ({owner.id}).",
                        hint=f"Rename that project: kept projects rename {owner.id} NAME.",
                    )
                located = replace(there, name=located.name)
            project = self._draft(registry, located)
            self._save(registry, project)
            self._note_id(registry, located, project)
            return project

    def link(self, name_or_id: str, path: str | os.PathLike[str]) -> Project:
        """Let this directory, or the repository it is in, belong to that project."""
        with self._changing() as registry:
            project = self._get(registry, name_or_id)
            place = _allowed(self._locate_path(registry, self._path(path))).place
            if place is not None and place.key not in project.places:
                project = with_place(project, place)
                self._save(registry, project)
                write_id(place, project.id)
            return project

    def join(self, name: str, path: str | os.PathLike[str], database: str) -> Project:
        """Let this directory belong to the project of that name in a team's database. Raises InvalidInput.

        A project that is here already is called so from then on; its memories in the home stay there, out of use.
        """
        with self._changing() as registry:
            project, place = self._joined(registry, name, path, database)
            self._save(registry, project)
            if place is not None:
                write_id(place, project.id)
            return project

    def check_join(self, name: str, path: str | os.PathLike[str], database: str) -> None:
        """Raise the error with which `join` would refuse this. Changes nothing."""
        self._joined(self._read(), name, path, database)

    def _joined(
        self, registry: Registry, name: str, path: str | os.PathLike[str], database: str
    ) -> tuple[Project, Place | None]:
        located = _allowed(self._locate_path(registry, self._path(path)))
        project, here, place = registry.named(name), located.project, located.place
        if project is not None and project.team is None and _is_elsewhere(project, here):
            raise InvalidInput(
                f"This home has a project {project.name!r} ({project.id}) in another directory: "
                f"{', '.join(map(shown, project.places))}.",
                hint=f"Link that directory first, or rename its project: kept projects rename {project.id} NAME.",
            )
        if project is None and here is not None:
            project = replace(here, name=self._free_name(registry, name, besides=here), is_named=True)
        project = project or self._draft(registry, replace(located, name=self._free_name(registry, name)))
        if place is not None and place.key not in project.places:
            if here is not None and here.id != project.id:
                others = (one for one in project.before if one[0] != place.key)
                project = replace(project, before=(*others, (place.key, here.id)))
            project = with_place(project, place)
        return replace(project, team=Team(_checked_name(name), database)), place

    def leave(self, name_or_id: str) -> Project:
        """Keep the memories of this project in the home again. Those in the team's database stay there.

        A directory that belonged to another project before it was linked belongs to that one again.
        """
        with self._changing() as registry:
            project = self._get(registry, name_or_id)
            if project.team is None:
                raise InvalidInput(f"Project {project.name!r} is in no team's database.", hint=HOW_TO_LIST)
            places = self._places_before(registry, project)
            project = replace(without(project, {place.key for place, _ in places}), team=None, before=())
            owners: dict[str, Project] = {}
            for place, owner in places:
                owners[owner.id] = with_place(owners.get(owner.id, owner), place)
            self._save(registry, project, *owners.values())
            for place, owner in places:
                write_id(place, owner.id)
            return project

    def _places_before(self, registry: Registry, project: Project) -> list[tuple[Place, Project]]:
        """Return the places that a link took from other projects of this home, each with that project."""
        found = []
        for key, id in project.before:
            owner = registry.get(id)
            if owner is not None and owner.id != project.id and key in project.places:
                with suppress(KeptError):  # the directory is gone
                    if (place := identify(text_path(key), self._no_projects)).key == key:
                        found.append((place, owner))
        return found

    def remove_ids(self) -> list[str]:
        """Remove the note of its id from the repository of each project. Return the files that could not be removed.

        A repository that has the id of a project of another home keeps it.
        """
        registry = self._read()
        keys = dict.fromkeys(key for project in registry.projects.values() for key in project.places)
        noted = [folder for folder in map(text_path, keys) if registry.get(read_id(folder)) is not None]
        return [shown(folder / ID_FILE) for folder in noted if not remove_id(folder)]

    def rename(self, name_or_id: str, new_name: str) -> Project:
        """Change the name. The folder in the home keeps its name, so that programs that have it open keep working."""
        with self._changing() as registry:
            project = self._get(registry, name_or_id)
            project = replace(project, name=self._free_name(registry, new_name, besides=project), is_named=True)
            self._save(registry, project)
            return project

    def retire(self, source: str, into: str) -> Project:
        """Let the id, the name and the places of `source` lead to `into`, which is returned.

        The memories stay where they are: `merge` moves them first.
        """
        with self._changing() as registry:
            old, heir = self._get(registry, source), self._get(registry, into)
            refuse_same(old, heir, source, into)
            if not heir.places:
                heir = replace(heir, root=old.root, git_common_dir=old.git_common_dir, links=old.links)
            else:
                heir = replace(heir, links=(*heir.links, *old.places))
            old = replace(old, root=None, git_common_dir=None, links=(), into=heir.id)
            self._save(registry, heir, old)
            return heir

    @cached_property
    def _no_projects(self) -> dict[Path, str]:
        return no_project_directories(self._environ)

    def _path(self, target: str | os.PathLike[str]) -> Path:
        text = os.fspath(target)
        if not isinstance(text, str):
            raise InvalidInput(f"A path must be a string, not {type(text).__name__}.", hint="Use os.fsdecode.")
        return expanded(text, self._environ) if isinstance(target, str) else Path(text)

    def directory(self, target: str | os.PathLike[str] | None) -> Path | None:
        """Return the directory that a target names; None if it names a project by its name, or its space."""
        if isinstance(target, ExactName):
            return None
        is_path = not isinstance(target, str) or target in (".", "~") or re.search(SEPARATOR, target)
        if not is_path or (isinstance(target, str) and _is_space(target)):
            return None
        return self._path("." if target is None else target)

    def _locate(self, registry: Registry, target: str | os.PathLike[str] | None) -> Located:
        if isinstance(target, ExactName):
            known = registry.named(target, is_exact=True)
            return Located(known) if known else Located(None, name=_checked_exact_name(target))
        if isinstance(target, str) and _is_space(target):
            return Located(self._get(registry, target))
        if (directory := self.directory(target)) is not None:
            return self._locate_path(registry, directory)
        assert isinstance(target, str)
        if known := registry.named(target):
            return Located(known)
        if like := registry.like(target):
            self._notice(
                f"There is no project {shown(target[:60])!r} yet. {like.name!r} ({like.id}) is another project: names "
                f"are exact."
            )
        return Located(None, name=_checked_name(target))

    def _locate_path(self, registry: Registry, path: Path) -> Located:
        try:
            place = identify(path, self._no_projects)
        except NotFound:
            if known := registry.at_path(path_text(path.resolve())):  # the directory is deleted, its memory is not
                return Located(known)
            raise
        if place.no_project:
            return Located(None, place, refusal=f"{shown(place.directory)} is {place.no_project}, not a project.")
        kept_id = read_id(place.git_common_dir)
        if kept_id is not None and not self._may_begin and self._is_without_projects():
            raise self._home_is_away(place, kept_id)
        return Located(registry.claimed_by(place, kept_id), place, kept_id)

    def _is_without_projects(self) -> bool:
        """Return True if the home is missing, or nothing was ever registered in it."""
        return not self.home.registry.exists() and not self._folders()

    def _home_is_away(self, place: Place, kept_id: str) -> StorageError:
        state = "has no projects" if self.home.root.exists() else "is missing"
        return StorageError(
            f"Kept's home {shown(self.home.root)} {state}, but {shown(place.directory)} is project {kept_id} of a home "
            f"({shown(place.key)}/{ID_FILE} says so).",
            hint="Mount the disk with the home, or set KEPT_HOME to its path. If you deleted the home, delete that "
            f"file as well, or begin a new one: kept projects link --new {slug(place.name)} {shown(place.directory)}",
        )

    def _get(self, registry: Registry, name_or_id: str) -> Project:
        project = registry.get(name_or_id.removeprefix("project/")) or registry.named(name_or_id)
        if project is None:
            like = registry.like(name_or_id)
            meant = f" Did you mean {like.name!r} ({like.id})?" if like else ""
            raise NotFound(f"There is no project {shown(name_or_id)!r}.{meant}", hint=HOW_TO_LIST)
        return project

    def _free_name(self, registry: Registry, name: str, besides: Project | None = None) -> str:
        name = _checked_name(name)
        others = [p for p in registry.projects.values() if p.into is None and (besides is None or p.id != besides.id)]
        for other in others:
            if is_like(other.name, name):
                raise InvalidInput(f"A project named {other.name!r} already exists ({other.id}).", hint=HOW_TO_LIST)
        return name

    def _draft(self, registry: Registry, located: Located) -> Project:
        """A new project for what was located. A repository that another home has named keeps that id."""
        place = located.place
        name = located.name or (place.name if place else "")
        taken = {folder[-8:] for folder in self._folders()} | set(registry.projects)
        project_id = located.kept_id or self._new_id()
        while project_id in taken:
            project_id = self._new_id()
        at, is_named = self._now().astimezone(UTC), bool(located.name)
        project = Project(id=project_id, name=name, slug=slug(name), created_at=at, is_named=is_named)
        return with_place(project, place) if place else project

    def _note_id(self, registry: Registry, located: Located, project: Project) -> None:
        """Note the id in the repository. An id that this registry does not know belongs to another home and stays."""
        is_ours = located.kept_id is None or registry.get(located.kept_id) is not None
        if located.place and located.kept_id != project.id and is_ours:
            write_id(located.place, project.id)

    def _read(self) -> Registry:
        registry = self._load()
        if registry.damage:
            self._notice(
                f"{registry.damage} Kept reads the projects' folders instead. The next change to a project repairs it."
            )
        return registry

    @contextmanager
    def _changing(self) -> Iterator[Registry]:
        """The registry for one change, repaired if need be, while nobody else can change it."""
        self.home.prepare_root()
        with locked(self.home.registry_lock):
            registry = self._load()
            if registry.damage:
                registry = self._repaired(registry)
            yield registry

    def _load(self) -> Registry:
        """The registry as it is, and the projects that it should know but does not, from their folders."""
        # Folders first: the registry is written before a new folder, so it knows every folder seen here.
        folders, path = self._folders(), self.home.registry
        self.home.refuse_links(path)
        with explained("read the registry of projects", path):
            raw = path.read_bytes() if path.exists() else None
        if raw is None and not folders:
            return Registry(())
        known, damage = self._readable(raw)
        ids = {project.id for project in known}
        lost = [folder for folder in folders if folder[-8:] not in ids]
        if lost and not damage:
            damage = f"lacks {len(lost)} of the projects' folders"
        taken = {key for project in known for key in project.keys}
        found = (without(_from_card(self.home.projects_dir / folder), taken) for folder in lost)
        return Registry((*known, *found), damage and f"The registry of projects {shown(path)} {damage}.")

    def _readable(self, raw: bytes | None) -> tuple[tuple[Project, ...], str]:
        """The projects in the file, and what is wrong with it."""
        if raw is None:
            return (), "is missing"
        try:
            return self._decoded(raw), ""
        except (msgspec.DecodeError, UnicodeDecodeError):
            return (), "is damaged"

    def _decoded(self, raw: bytes) -> tuple[Project, ...]:
        version = msgspec.json.decode(raw, type=_Version).version
        if version > REGISTRY_VERSION:
            raise SchemaTooNew(
                f"{shown(self.home.registry)} was written by a newer Kept (version {version}, this program knows "
                f"{REGISTRY_VERSION}).",
                hint="Upgrade Kept, or use another home.",
            )
        return msgspec.json.decode(raw, type=_File).projects

    def _folders(self) -> list[str]:
        """The names of the folders of all projects, registered or not."""
        root = self.home.projects_dir
        self.home.refuse_links(root)
        names = sorted(entry.name for entry in entries_of(root) if entry.is_dir(follow_symlinks=False))
        return [name for name in names if re.match(FOLDER_PATTERN, name)]

    def _repaired(self, registry: Registry) -> Registry:
        """Rebuild the registry from what could be read, and keep the damaged file beside it."""
        path, kept = self.home.registry, ""
        with explained("set aside", path):
            if path.exists():
                older = len(list(path.parent.glob(f"{path.name}.damaged-*")))
                names = (path.with_name(f"{path.name}.damaged-{n}") for n in range(1, older + 2))
                aside = next(name for name in names if not name.exists())
                path.rename(aside)
                kept = f" The damaged file was kept as {shown(aside)}."
            sync(path.parent)
        self._write(registry.projects.values())
        self._notice(f"{registry.damage} It was rebuilt from the projects' folders.{kept}")
        return Registry(registry.projects.values())

    def _save(self, registry: Registry, *changed: Project) -> None:
        """Store the changed projects, and take their places from all others."""
        projects = registry.projects | {project.id: project for project in changed}
        keys = {key for project in changed for key in project.keys}
        for other in registry.projects.values():
            if all(other.id != project.id for project in changed):
                projects[other.id] = without(other, keys)
        self._write(projects.values())
        for project in projects.values():
            if project != registry.projects.get(project.id):
                self._write_card(project)

    def _write(self, projects: Iterable[Project]) -> None:
        _write_json(self.home.registry, _File(REGISTRY_VERSION, tuple(projects)))

    def _write_card(self, project: Project) -> None:
        _write_json(self.home.prepare(project.folder).project_card, project)

    def _notice(self, text: str) -> None:
        if text not in self.notices:
            self.notices.append(text)
            warn(text)


def _is_elsewhere(project: Project, here: Project | None) -> bool:
    """Return True if the project has directories, and this is none of them."""
    return bool(project.places) and (here is None or here.id != project.id)


def _write_json(path: Path, document: msgspec.Struct) -> None:
    write_private_file(path, msgspec.json.format(msgspec.json.encode(document), indent=1))


def _from_card(folder: Path) -> Project:
    """The project by the card in its folder; without the card, by the folder's name, which has id and slug."""
    card = SpaceFiles(folder).project_card
    try:
        if not card.is_symlink():
            project = msgspec.json.decode(card.read_bytes(), type=Project)
            if project.folder == folder.name:
                return project
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        pass
    name, project_id = folder.name[:-9], folder.name[-8:]
    with explained("read", folder):
        made = datetime.fromtimestamp(folder.stat().st_mtime, UTC)
    return Project(id=project_id, name=name, slug=name, created_at=made, is_lost=True)


def typed(text: str) -> str:
    """Read a project as a person types it: 8 hex digits are an id, `..` and `~ada` are directories.

    A program's string is not read so, because it may come from a stranger: it would open another project than it names.
    """
    if re.match(ID_PATTERN, text):
        return f"project/{text}"
    return f"{text}/" if _is_path(text) and not re.search(SEPARATOR, text) else text


def _is_space(text: str) -> bool:
    """Return True for the space of a project, `project/<id>`."""
    return text.startswith("project/") and re.match(ID_PATTERN, text.removeprefix("project/")) is not None


def _is_path(text: str) -> bool:
    """Return True if a shell or the file system would read the text as a path."""
    return text.startswith("~") or text in (".", "..") or bool(re.search(SEPARATOR, text)) or bool(Path(text).drive)


def _check_length(name: str) -> None:
    """Raise InvalidInput for a name that is empty, too long, or has characters that no file can hold as text."""
    quoted = repr(shown(name[:60]))
    if not name.strip():
        raise InvalidInput("A project's name must not be empty.", hint=HOW_TO_NAME_ONE)
    if len(name) > NAME_CHARS:
        raise InvalidInput(
            f"A project's name can have at most {NAME_CHARS} characters, {quoted}… has {len(name)}.",
            hint="Give a shorter name.",
        )
    if any(unicodedata.category(char) in UNPRINTABLE for char in name):
        raise InvalidInput(f"The name {quoted} has characters that cannot be printed.", hint="Remove them.")


def _checked_name(name: str) -> str:
    """Return the name as it is; raises InvalidInput if it can't be a project's name."""
    _refuse_secret(name)
    _check_length(name)
    quoted = repr(shown(name[:60]))
    if _is_path(name.strip()):
        raise InvalidInput(
            f"{quoted} is a path, not a name.",
            hint="A name contains no / or \\ and does not start with ~. Give a directory as a pathlib.Path.",
        )
    if is_like(name, "global"):
        raise InvalidInput(
            "'global' is the space that all projects share, so no project can have this name.", hint=HOW_TO_NAME_ONE
        )
    if re.match(ID_PATTERN, name.strip()):
        raise InvalidInput(
            f"{quoted} looks like the id of a project.",
            hint=f"Choose a name that is not 8 hex digits, or give the id as project/{name.strip()}.",
        )
    return name


def _checked_exact_name(name: str) -> str:
    """Return the name as it is. Raises InvalidInput for one that cannot be stored, or that is a key of some service."""
    _refuse_secret(name, besides=NAMES_OF_USERS)
    _check_length(name)
    return str(name)


def _refuse_secret(name: str, *, besides: Iterable[str] = ()) -> None:
    """Raise InvalidInput for a name that holds a secret; `besides`: of another kind than these."""
    from kept.writing.redact import redact  # loads the rules for secrets, and most people name no project

    if {found.kind for found in redact(name).found}.difference(besides):
        raise InvalidInput("A project's name must not contain a secret.", hint="Choose another name.")


def refuse_same(one: Project, other: Project, *names: str) -> None:
    """Raise InvalidInput if a project would be merged into itself."""
    if one.id == other.id:
        both = " and ".join(repr(shown(name)) for name in names)
        raise InvalidInput(f"{both} are the same project: {one.id}.", hint=HOW_TO_LIST)


def _allowed(located: Located) -> Located:
    if located.refusal:
        raise NotAllowed(located.refusal, hint=HOW_TO_NAME_ONE)
    return located
