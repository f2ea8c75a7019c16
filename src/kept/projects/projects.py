"""Projects: which memory belongs to which directory, and the commands that change it.

Facade layer. Every door asks here first: `find` to read, which creates nothing, or `ensure` to write, which registers.
Rule: the registry is changed under its lock, and replaced as a whole; a damaged one is kept aside, never overwritten,
and rebuilt from the cards (`project.json`) in the folders of the projects.

A plain directory is a project with all directories below it; a repository inside it is another one. To name a
directory that has the name of a project, write `./name`.
"""

import os
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import msgspec

from kept.errors import InvalidInput, NotAllowed, NotFound, SchemaTooNew
from kept.projects.files import explained, locked, shown, sync_directory, write_private_file
from kept.projects.home import FOLDER_PATTERN, Home, SpaceFiles, expanded, slug
from kept.projects.places import (
    ID_PATTERN,
    NAME_CHARS,
    UNPRINTABLE,
    Place,
    identify,
    no_project_directories,
    path_text,
    read_id,
    write_id,
)
from kept.projects.registry import Project, Registry, folded, tidy, with_place, without

REGISTRY_VERSION = 1
HOW_TO_NAME_ONE = "cd into a project, or name one: --project NAME."
HOW_TO_LIST = "`kept projects list` shows names and ids."


class Located(msgspec.Struct, frozen=True):
    """What a target means, as far as that can be said without changing anything."""

    project: Project | None  # as it would be stored: a moved repository already has its new place here
    place: Place | None = None  # None where a project was named
    kept_id: str | None = None  # what the repository itself says
    name: str = ""  # the new name that `ensure` would register
    refusal: str = ""  # why nothing can be written here, or ""


class _File(msgspec.Struct, frozen=True):
    version: int
    projects: tuple[Project, ...]


class _Version(msgspec.Struct, frozen=True):
    version: int


class Projects:
    """The registry in a home. `notices` tells what had to be repaired, for the user to read."""

    def __init__(
        self,
        home: Home,
        *,
        environ: Mapping[str, str],
        new_id: Callable[[], str] = lambda: os.urandom(4).hex(),
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.home = home
        self.notices: list[str] = []
        self._environ = environ
        self._new_id = new_id
        self._now = now

    def find(self, target: str | os.PathLike[str] | None = None) -> Project | None:
        """The project that a path, name or id means, or None while there is none. Changes nothing on disk."""
        return self.locate(target).project

    def locate(self, target: str | os.PathLike[str] | None = None) -> Located:
        """As `find`, with the reasons. No target is the current directory.

        Raises NotFound for a missing directory or an unknown id, InvalidInput for what can be neither path nor name.
        """
        return self._locate(self._read(), target)

    def ensure(self, target: str | os.PathLike[str] | None = None) -> Project:
        """The project to write to; a new directory or name is registered. Its folder in the home is there afterwards.

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
                        hint=f"kept projects rename {owner.id} NAME gives it another name.",
                    )
                located = msgspec.structs.replace(there, name=located.name)
            project = self._draft(registry, located)
            self._save(registry, project)
            self._note_id(registry, located, project)
            return project

    def link(self, name_or_id: str, path: str | os.PathLike[str]) -> Project:
        """From now on this directory, or the repository it is in, belongs to that project."""
        with self._changing() as registry:
            project = self._get(registry, name_or_id)
            place = _allowed(self._locate_path(registry, self._path(path))).place
            if place is not None and place.key not in project.places:
                project = with_place(project, place)
                self._save(registry, project)
                write_id(place, project.id)
            return project

    def rename(self, name_or_id: str, new_name: str) -> Project:
        """Change the name. The folder in the home stays as it is: programs that have it open lose nothing."""
        with self._changing() as registry:
            project = self._get(registry, name_or_id)
            project = msgspec.structs.replace(project, name=self._free_name(registry, new_name, besides=project))
            self._save(registry, project)
            return project

    def retire(self, source: str, into: str) -> Project:
        """Let `into` answer for the project `source` from now on: its id, its name and its places. Returns `into`.

        The memories stay where they are; whoever merges them moves them first.
        """
        with self._changing() as registry:
            old, heir = self._get(registry, source), self._get(registry, into)
            if old.id == heir.id:
                raise InvalidInput(
                    f"{shown(source)!r} and {shown(into)!r} are one project: {heir.id}.", hint=HOW_TO_LIST
                )
            if not heir.places:
                heir = msgspec.structs.replace(heir, root=old.root, git_common_dir=old.git_common_dir, links=old.links)
            else:
                heir = msgspec.structs.replace(heir, links=(*heir.links, *old.places))
            old = msgspec.structs.replace(old, root=None, git_common_dir=None, links=(), into=heir.id)
            self._save(registry, heir, old)
            return heir

    @cached_property
    def _no_projects(self) -> dict[Path, str]:
        return no_project_directories(self._environ)

    def _path(self, target: str | os.PathLike[str]) -> Path:
        text = os.fspath(target)
        if not isinstance(text, str):
            raise InvalidInput(f"A path is text, not {type(text).__name__}.", hint="Decode it with os.fsdecode.")
        return expanded(text, self._environ) if isinstance(target, str) else Path(text)

    def _locate(self, registry: Registry, target: str | os.PathLike[str] | None) -> Located:
        if target is None or not isinstance(target, str) or _is_path(target):
            return self._locate_path(registry, self._path("." if target is None else target))
        if re.match(ID_PATTERN, target.removeprefix("project/")):
            return Located(self._get(registry, target))
        known = registry.named(target)
        return Located(known) if known else Located(None, name=_checked_name(target))

    def _locate_path(self, registry: Registry, path: Path) -> Located:
        try:
            place = identify(path, self._no_projects)
        except NotFound:
            if known := registry.at_path(path_text(path.resolve())):  # deleted, yet its memory is still wanted
                return Located(known)
            raise
        if place.no_project:
            return Located(None, place, refusal=f"{shown(place.directory)} is {place.no_project}, not a project.")
        kept_id = read_id(place)
        return Located(registry.claimed_by(place, kept_id), place, kept_id)

    def _get(self, registry: Registry, name_or_id: str) -> Project:
        project = registry.get(name_or_id.removeprefix("project/")) or registry.named(name_or_id)
        if project is None:
            raise NotFound(f"No project has the name or id {shown(name_or_id)!r}.", hint=HOW_TO_LIST)
        return project

    def _free_name(self, registry: Registry, name: str, besides: Project | None = None) -> str:
        name = _checked_name(name)
        others = [p for p in registry.projects.values() if p.into is None and (besides is None or p.id != besides.id)]
        for other in others:
            if folded(other.name) == folded(name):
                raise InvalidInput(f"There is already a project called {other.name!r} ({other.id}).", hint=HOW_TO_LIST)
        return name

    def _draft(self, registry: Registry, located: Located) -> Project:
        """A new project for what was located. A repository that another home has named keeps that id."""
        place = located.place
        name = located.name or (place.name if place else "")
        taken = {folder[-8:] for folder in self._folders()} | set(registry.projects)
        project_id = located.kept_id or self._new_id()
        while project_id in taken:
            project_id = self._new_id()
        project = Project(id=project_id, name=name, slug=slug(name), created_at=self._now().astimezone(UTC))
        return with_place(project, place) if place else project

    def _note_id(self, registry: Registry, located: Located, project: Project) -> None:
        """Leave the id in the repository. An id that this registry does not know is another home's, and stays."""
        is_ours = located.kept_id is None or registry.get(located.kept_id) is not None
        if located.place and located.kept_id != project.id and is_ours:
            write_id(located.place, project.id)

    def _read(self) -> Registry:
        registry = self._load()
        if registry.damage:
            self._notice(
                f"{registry.damage} Kept asks the projects' folders instead, until a project that is made or renamed "
                "repairs it."
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
        # Folders first: who registers writes the registry, then the folder, so a folder seen here is known there.
        folders, path = self._folders(), self.home.registry
        self.home.refuse_links(path)
        with explained("read the registry of projects", path):
            raw = path.read_bytes() if path.exists() else None
        if raw is None and not folders:
            return Registry(())
        known: tuple[Project, ...] = ()
        damage = "is missing"
        if raw is not None:
            try:
                known, damage = self._decoded(raw), ""
            except (msgspec.DecodeError, UnicodeDecodeError):
                damage = "is damaged"
        ids = {project.id for project in known}
        lost = [folder for folder in folders if folder[-8:] not in ids]
        if lost and not damage:
            damage = f"does not know {len(lost)} of the folders beside it"
        taken = {key for project in known for key in (*project.places, project.root) if key}
        found = (without(_from_card(self.home.projects_dir / folder), taken) for folder in lost)
        return Registry((*known, *found), damage and f"The registry of projects {shown(path)} {damage}.")

    def _decoded(self, raw: bytes) -> tuple[Project, ...]:
        version = msgspec.json.decode(raw, type=_Version).version
        if version > REGISTRY_VERSION:
            raise SchemaTooNew(
                f"{shown(self.home.registry)} was written by a newer Kept: version {version}, this one knows "
                f"{REGISTRY_VERSION}.",
                hint="Upgrade Kept, or use another home.",
            )
        return msgspec.json.decode(raw, type=_File).projects

    def _folders(self) -> list[str]:
        """The names of the folders of all projects, registered or not."""
        root = self.home.projects_dir
        self.home.refuse_links(root)
        with explained("read", root):
            try:
                with os.scandir(root) as entries:
                    names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
            except FileNotFoundError:
                return []
        return [name for name in sorted(names) if re.match(FOLDER_PATTERN, name)]

    def _repaired(self, registry: Registry) -> Registry:
        """Write the registry anew from what could be read; the file as it was is kept beside it."""
        path, kept = self.home.registry, ""
        with explained("set aside", path):
            if path.exists():
                older = len(list(path.parent.glob(f"{path.name}.damaged-*")))
                names = (path.with_name(f"{path.name}.damaged-{n}") for n in range(1, older + 2))
                aside = next(name for name in names if not name.exists())
                path.rename(aside)
                kept = f" The file as it was is kept as {shown(aside)}."
            sync_directory(path.parent)
        repaired = Registry(registry.projects.values())
        self._write(repaired)
        self._notice(f"{registry.damage} It was rebuilt, with the help of the projects' folders.{kept}")
        return repaired

    def _save(self, registry: Registry, *changed: Project) -> None:
        """Store the changed projects; a place that they have now is taken from all others."""
        projects = registry.projects | {project.id: project for project in changed}
        keys = {key for project in changed for key in (*project.places, project.root) if key}
        for other in registry.projects.values():
            if all(other.id != project.id for project in changed):
                projects[other.id] = without(other, keys)
        self._write(Registry(projects.values()))
        for project in projects.values():
            if project != registry.projects.get(project.id):
                self._write_card(project)

    def _write(self, registry: Registry) -> None:
        data = msgspec.json.encode(_File(REGISTRY_VERSION, tuple(registry.projects.values())))
        write_private_file(self.home.registry, msgspec.json.format(data, indent=1))

    def _write_card(self, project: Project) -> None:
        card = self.home.prepare(project.folder).project_card
        write_private_file(card, msgspec.json.format(msgspec.json.encode(project), indent=1))

    def _notice(self, text: str) -> None:
        import logging  # costs more than all of this module, and is rarely needed

        if text not in self.notices:
            self.notices.append(text)
            logging.getLogger("kept").warning("%s", text)


def _from_card(folder: Path) -> Project:
    """The project as its folder tells of it; if the card is lost, id and slug are still in the folder's name."""
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
    return Project(id=project_id, name=name, slug=name, created_at=made)


def _is_path(text: str) -> bool:
    """Is it meant as a path? A name has no separator, and `.` and `~` are no names."""
    if re.match(ID_PATTERN, text.removeprefix("project/")):
        return False
    return text.startswith("~") or text in (".", "..") or bool(re.search(r"[/\\]", text)) or bool(Path(text).drive)


def _checked_name(name: str) -> str:
    """The name in the form that is stored; raises InvalidInput if a project can't be called so."""
    clean = tidy(name)
    quoted = repr(shown(clean[:60]))
    if not clean:
        raise InvalidInput("The name of a project can't be empty.", hint=HOW_TO_NAME_ONE)
    if len(clean) > NAME_CHARS:
        raise InvalidInput(
            f"The name {quoted}… has {len(clean)} characters.", hint=f"At most {NAME_CHARS} are allowed."
        )
    if any(unicodedata.category(char) in UNPRINTABLE for char in clean):
        raise InvalidInput(f"{quoted} has characters that can't be printed.", hint="Give a name without them.")
    if _is_path(clean):
        raise InvalidInput(
            f"{quoted} is a path, not a name.", hint="A name has no / and no \\, and does not begin with ~."
        )
    if clean.casefold() == "global":
        raise InvalidInput("'global' is the space that all projects share, not a project.", hint=HOW_TO_NAME_ONE)
    if re.match(ID_PATTERN, clean):
        raise InvalidInput(
            f"{quoted} looks like the id of a project.", hint="Give it a name that can't be taken for one."
        )
    return clean


def _allowed(located: Located) -> Located:
    if located.refusal:
        raise NotAllowed(located.refusal, hint=HOW_TO_NAME_ONE)
    return located
