"""The storages of an opened memory: the project's space and the global one.

`kept.open` makes one of these; the facade asks it for a storage whenever it reads or writes.
Rule: reading creates nothing. A space is made, on disk and in the registry, by the first write to it.
"""

import os
from _blake2 import blake2b  # as hashlib does, which also loads OpenSSL: 4 ms
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from datetime import datetime
from functools import partial
from os import PathLike
from pathlib import Path
from threading import RLock
from typing import ClassVar, NamedTuple, Protocol

from kept.errors import InvalidInput, KeptError, NotAllowed, NotFound
from kept.model import GLOBAL
from kept.ports import RestoreReport, Storage
from kept.projects import ExactName, Projects
from kept.projects.files import explained
from kept.projects.home import Home
from kept.projects.registry import Place, Project, Team, older_team_space, team_space, text_path
from kept.projects.worktree import WorkTree, work_tree_around
from kept.settings import Settings
from kept.storage import is_database, open_database, open_existing, open_space, replace_damaged

USER_PAGE_BYTES = (
    2048  # most users have few memories, and each table and index takes a page; half of that writes slowly
)
TEAM_FOLDER = "team-"  # how the folder of a project's files begins that is in a database; one for each URL


class Spaces(Protocol):
    """The storages that one opened memory works with. `kind` names it where it has no name."""

    kind: ClassVar[str] = "a project"

    def project(self) -> Storage | None:
        """The opened project's storage, or None before the first write to it."""

    def ensure_project(self) -> Storage:
        """The opened project's storage, made if missing. Raises NotAllowed where no project can be."""

    def shared(self) -> Storage | None:
        """The global storage, or None before the first write to it."""

    def ensure_shared(self) -> Storage:
        """The global storage, made if missing. Raises NotAllowed for a portable file, which has none."""

    def hidden(self) -> Storage | None:
        """The global storage, if the actor may not see it: undo takes back no half of a change."""
        return None

    def replace_damaged(self, source: Path, *, shared: bool) -> RestoreReport:
        """Replace a store that can't be opened by a backup, and keep the damaged file beside it."""

    def files(self) -> list[tuple[str, Path]]:
        """The files that exist, each with the name of its space. Opens none: a damaged one could not be opened."""

    def folder(self) -> Path | None:
        """The project's own directory, if it has one; its README need not be remembered again."""
        return None

    def work_tree(self) -> WorkTree | None:
        """Return the git work tree that was opened; one of several, if the repository has worktrees."""
        return None

    def holds(self, cwd: str) -> bool:
        """Whether a program that worked in this directory worked in the opened project. Raises NotAllowed."""
        raise NotAllowed(
            "A single memory file is of no project, so no session took place in it.",
            hint="Name the transcripts to import, or open a project: kept.open(project=…).",
        )

    def files_folder(self, *, shared: bool = False) -> Path | None:
        """Where the readable files of the project, or of global memory, are; None for a portable file."""
        return None

    def project_name(self) -> str | None:
        """The name of the opened project, or the one it will get; None for a portable file."""
        return None

    def sessions_folder(self) -> Path | None:
        """Where the project's transcripts are mirrored; None for a portable file, which has no mirrors."""
        return None

    def files_mark(self) -> str:
        """What tells the files of this home from those of another home that shares the project; "" where none can."""
        return ""

    def projects(self) -> Iterator[Storage]:
        """The storage of every project, one after the other; each is closed when the next is asked for."""
        if (own := self.project()) is not None:
            yield own

    def drop_merged(self, remove: Callable[[Path], None]) -> list[str]:
        """Have the folders of projects that were merged into this one removed, and return their names.

        Everything in them was moved. No command reaches their files any more, so nothing could be erased there.
        """
        return []

    def home(self) -> Path | None:
        """Return the home that the spaces are in; None for a portable file."""
        return None

    def settings_file(self) -> Path | None:
        """The project's settings file; None before the project exists, and for a portable file."""
        return None

    def everywhere(self) -> "list[SpaceOfHome]":
        """Every space that exists beside this one, and this one."""

    def is_in_database(self) -> bool:
        """Whether the project is in a database, and not in a file."""
        return False

    def database_project(self) -> str:
        """Return the URL of the database and the name of the project there; "" for a project in a file."""
        return ""

    def is_where_the_home_points(self) -> bool:
        """Return True if the home keeps the project here; False if the place was named otherwise."""
        return False

    def destination(self, place: str) -> Storage:
        """Where the project can be carried over to: a postgresql:// URL, `home` or a new file. The caller closes it."""

    def close(self) -> None:
        """Close what was opened."""


class SpaceOfHome(NamedTuple):
    """A space of the home, and how to open it. Raises StorageError when that fails."""

    name: str
    open: Callable[[], Storage]


class OneSpace(Spaces):
    """A portable file, or a store in memory: one space, no global."""

    kind = "a single store"

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def project(self) -> Storage | None:
        return self._storage

    def ensure_project(self) -> Storage:
        return self._storage

    def shared(self) -> Storage | None:
        return None

    def ensure_shared(self) -> Storage:
        raise NotAllowed(
            "A single memory file has no global space.",
            hint="Store it with tier='project', or open a project: kept.open(project=…).",
        )

    def replace_damaged(self, source: Path, *, shared: bool) -> RestoreReport:
        raise NotAllowed("A damaged memory file cannot be replaced while it is open.", hint="Copy the backup over it.")

    def files(self) -> list[tuple[str, Path]]:
        facts = self._storage.describe()
        is_file = facts["storage"] in ("sqlite", "json") and facts["bytes"]
        return [(self._storage.space, Path(facts["place"]))] if is_file else []

    def destination(self, place: str) -> Storage:
        return open_space(place, self._storage.space)

    def everywhere(self) -> list[SpaceOfHome]:
        return [SpaceOfHome(self._storage.space, lambda: self._storage)]

    def close(self) -> None:
        self._storage.close()


class HomeSpaces(Spaces):
    """A project of the home, and the home's global space."""

    def __init__(
        self,
        home: Home,
        projects: Projects,
        target: str | PathLike[str] | None,
        settings: Settings,
        now: Callable[[], datetime],
        database: str | None = None,
    ) -> None:
        """`database`: the URL of the database that holds the project; its files, and the global space, stay here."""
        self._home = home
        self._database = database
        self._projects = projects
        self._target = target
        self._settings = settings
        self._now = now
        self._open: dict[str, Storage] = {}
        self._guard = RLock()  # two threads open a space once
        self._team_spaces: dict[tuple[str, str], str] = {}  # by database and name
        self._located = projects.locate(target)

    def project(self) -> Storage | None:
        found = self._located.project
        if self._database is not None:
            with suppress(NotFound):
                return self._in_database(must_exist=True)
            return None
        if found is None:
            return None
        # This is asked several times a call; once the storage is open, its folder need not be checked again.
        return self._open.get(found.space) or self._existing(found.space, found.folder)

    def ensure_project(self) -> Storage:
        found = self._located.project
        if found is None or (self._team_space() if self._database else found.space) not in self._open:
            if self._database is not None:
                self._team_space()  # before the name is registered, and is no longer a new one
            found = self._projects.ensure(self._target)
            self._located = self._projects.locate(self._target)
            if self._database is not None:
                return self._in_database()
            return self._opened(found.space, self._home.prepare(found.folder).database)
        return self._open[self._team_space() if self._database else found.space]

    def shared(self) -> Storage | None:
        return self._open.get(GLOBAL) or self._existing(GLOBAL)

    def ensure_shared(self) -> Storage:
        return self._opened(GLOBAL, self._home.prepare().database)

    def replace_damaged(self, source: Path, *, shared: bool) -> RestoreReport:
        if self._database is not None and not shared:
            raise NotAllowed("This project is in a database.", hint="Its operator restores it from a backup.")
        project = None if shared else self._projects.ensure(self._target)
        return replace_damaged(
            self._home.files(None if project is None else project.folder).database,
            source,
            space=GLOBAL if project is None else project.space,
            wait_s=self._settings.write_wait_s,
            now=self._now(),
        )

    def files(self) -> list[tuple[str, Path]]:
        project = None if self._database else self._located.project
        found = [] if project is None else [(project.space, self._home.files(project.folder).database)]
        return [(space, path) for space, path in (*found, (GLOBAL, self._home.files().database)) if path.exists()]

    def everywhere(self) -> list[SpaceOfHome]:
        projects = self._projects.list_projects()
        found = self._in_files(projects)
        teams = {project.team.space: project.team for project in projects if project.team}
        if self._database is not None and (own := self.project()) is not None:
            teams = {
                space: team for space, team in teams.items() if own.space not in (space, older_team_space(team.name))
            }
            found.insert(0, SpaceOfHome(own.space, lambda: own))
        return [*found, *(SpaceOfHome(space, partial(self._of_team, team)) for space, team in teams.items())]

    def _in_files(self, projects: Iterable[Project]) -> list[SpaceOfHome]:
        """The spaces that have a file in the home, global memory last."""
        folders = [(project.space, project.folder) for project in projects if not project.team]
        databases = [(space, self._home.files(folder).database) for space, folder in (*folders, (GLOBAL, None))]
        return [SpaceOfHome(space, partial(self._opened, space, file)) for space, file in databases if file.exists()]

    def home(self) -> Path | None:
        return self._home.root

    def folder(self) -> Path | None:
        place, project = self._located.place, self._located.project
        if place is not None:
            return place.directory
        return text_path(project.root) if project is not None and project.root else None

    def work_tree(self) -> WorkTree | None:
        if self._located.place is not None and self._located.place.git_common_dir is None:
            return None
        directory = self._projects.directory(self._target) or self.folder()
        return None if directory is None else work_tree_around(Path(os.path.realpath(directory)))

    def holds(self, cwd: str) -> bool:
        here = self._located
        there = self._projects.around(cwd, here.place.directory if here.place is not None else None)
        if there is None:
            return False
        if here.project is not None or there.project is not None:
            return (here.project and here.project.id) == (there.project and there.project.id)
        return here.place is not None and there.place is not None and _is_within(there.place, here.place)

    def files_folder(self, *, shared: bool = False) -> Path | None:
        project = self._located.project
        if project is None and not shared:
            return None
        folder = self._home.files(None if shared or project is None else project.folder).directory
        if shared or self._database is None:
            return folder
        return folder / f"{TEAM_FOLDER}{_digest(f'{self._database} {self._team_space()}')}"  # whose refs are others

    def project_name(self) -> str | None:
        here = self._located
        if here.project is not None:
            return here.project.name
        return here.name or (here.place.directory.name if here.place is not None else None)

    def sessions_folder(self) -> Path | None:
        project = self._located.project
        return None if project is None else self._home.files(project.folder).directory / self._settings.sessions_path

    def files_mark(self) -> str:
        project = self._located.project
        if self._database is None or project is None:
            return ""
        return f"{_digest(f'{project.id} {self._home.root}')}/"  # two homes may share one clone, and so the id

    def settings_file(self) -> Path | None:
        project = self._located.project
        return None if project is None else self._home.files(project.folder).settings

    def drop_merged(self, remove: Callable[[Path], None]) -> list[str]:
        own, dropped = self._located.project, []
        for old in [] if own is None or self._database else self._projects.merged_into(own.id):
            directory = self._home.files(old.folder).directory
            if directory.is_dir() and not directory.is_symlink():
                with explained("delete", directory):
                    remove(directory)
                dropped.append(old.name)
        return dropped

    def projects(self) -> Iterator[Storage]:
        yield from super().projects()
        own = self.project()
        for project in self._projects.list_projects():
            if project.team or (own is not None and project.space == own.space):
                continue  # a team's database keeps no text of anybody's global memory
            with suppress(KeptError):  # a store that cannot be opened: `kept doctor` says why
                database = self._home.files(project.folder).database
                storage = open_existing(
                    database,
                    project.space,
                    write_wait_s=self._settings.write_wait_s,
                    now=self._now,
                    daily_backups=0,
                    home=self._home.root,
                )
                if storage is not None:
                    with closing(storage):
                        yield storage

    def close(self) -> None:
        for storage in self._open.values():
            storage.close()

    def is_in_database(self) -> bool:
        return self._database is not None

    def database_project(self) -> str:
        return f"{self._database} {self._name()}" if self._database is not None else ""

    def is_where_the_home_points(self) -> bool:
        project = self._located.project
        if project is None or project.team is None:
            return project is not None and self._database is None
        return project.team.database == self._database

    def destination(self, place: str) -> Storage:
        wait_s = self._settings.write_wait_s
        if is_database(place):
            return open_database(place, self._team_space(place), write_wait_s=wait_s, now=self._now)
        project = self._projects.ensure(self._target)
        path = self._home.prepare(project.folder).database if place == "home" else Path(place)
        return open_space(path, project.space, write_wait_s=wait_s, now=self._now)

    def _team_space(self, database: str | None = None) -> str:
        """The space of the project in the database."""
        located, database = self._located, database or self._database
        team = located.project.team if located.project is not None else None
        name = team.name if team is not None else self._name()
        if database is None or team_space(name) == older_team_space(name):
            return team_space(name)
        if (database, name) not in self._team_spaces:
            # A name that is new here is never the project of another name, also once it is registered.
            is_new = isinstance(self._target, ExactName) or (located.project is None and located.place is None)
            space = team_space(name) if is_new else self._space_of_any_version(database, name)
            self._team_spaces[database, name] = space
        return self._team_spaces[database, name]

    def _name(self) -> str:
        """The name of the project, or the one that it will be registered by."""
        located = self._located
        if located.project is not None:
            return located.project.name
        return located.name or (located.place.name if located.place else "")

    def _space_of_any_version(self, database: str, name: str) -> str:
        """Return the space of exactly this name; if there is none, the one in which Kept 0.2 put the project."""
        for space in (team_space(name), older_team_space(name)):
            with suppress(NotFound, NotAllowed):
                open_database(
                    database, space, write_wait_s=self._settings.write_wait_s, now=self._now, must_exist=True
                ).close()
                return space
        return team_space(name)

    def _of_team(self, team: Team) -> Storage:
        space = self._space_of_any_version(team.database, team.name)
        if space not in self._open:
            wait_s = self._settings.write_wait_s
            self._open[space] = open_database(team.database, space, write_wait_s=wait_s, now=self._now)
        return self._open[space]

    def _in_database(self, *, must_exist: bool = False) -> Storage:
        assert self._database is not None
        space = self._team_space()
        if space not in self._open:
            found = self._located.project
            self._open[space] = open_database(
                self._database,
                space,
                write_wait_s=self._settings.write_wait_s,
                now=self._now,
                must_exist=must_exist,
                is_known=bool(found is not None and found.team and found.team.database == self._database),
            )
        return self._open[space]

    def _existing(self, space: str, folder: str | None = None) -> Storage | None:
        with self._guard:
            if space in self._open:
                return self._open[space]
            if folder is None and not os.path.lexists(self._home.global_dir):
                return None  # asked at every look, and most homes have none
            found = open_existing(
                self._home.files(folder).database,
                space,
                write_wait_s=self._settings.write_wait_s,
                now=self._now,
                daily_backups=self._daily_backups,
                home=self._home.root,
            )
            if found is not None:
                self._open[space] = found
            return found

    def _opened(self, space: str, path: Path) -> Storage:
        with self._guard:
            if space not in self._open:
                self._open[space] = open_space(
                    path,
                    space,
                    write_wait_s=self._settings.write_wait_s,
                    now=self._now,
                    daily_backups=self._daily_backups,
                    home=self._home.root,
                )
            return self._open[space]

    @property
    def _daily_backups(self) -> int:
        return self._settings.backups_kept if self._settings.backup_daily else 0


class ProjectOnly(HomeSpaces):
    """A project of the home without the home's global space, for actors that may not see it."""

    def shared(self) -> Storage | None:
        return None

    def hidden(self) -> Storage | None:
        return super().shared()

    def ensure_shared(self) -> Storage:
        raise NotAllowed(
            "Global memory belongs to the person who runs this server.",
            hint="Store it in the project, or ask for a token of an admin.",
        )

    def files(self) -> list[tuple[str, Path]]:
        return [(space, path) for space, path in super().files() if space != GLOBAL]


class UserSpaces(Spaces):
    """Space of one user of a program, in the home or in a database. Made by `kept.open(user=…)`.

    A name is compared code point by code point and stands nowhere on the disk, so nothing can be folded, stripped or
    taken for a path, an id or a secret. A user has no global memory, no directory and no files to edit: all of these
    belong to the person who runs the program.
    """

    kind = "one user"

    def __init__(
        self, home: Home, user: str, settings: Settings, now: Callable[[], datetime], database: str | None = None
    ) -> None:
        digest = digest_of(user)
        self._space = f"user/{digest}"
        self._home = home
        self._folder = home.user_dir(digest)
        self._settings = settings
        self._now = now
        self._database = database
        self._storage: Storage | None = None
        self._guard = RLock()

    def project(self) -> Storage | None:
        with self._guard:  # two threads open it once
            if self._storage is None:
                self._storage = self._found()
            return self._storage

    def ensure_project(self) -> Storage:
        with self._guard:
            self._storage = self.project() or self._made()
            return self._storage

    def shared(self) -> Storage | None:
        return None

    def ensure_shared(self) -> Storage:
        raise NotAllowed("A user's memory has no global space.", hint="Store it with tier='project'.")

    def replace_damaged(self, source: Path, *, shared: bool) -> RestoreReport:
        if self._database is not None:
            raise NotAllowed("This user is in a database.", hint="Its operator restores it from a backup.")
        file = self._home.files_in(self._folder).database
        wait_s = self._settings.write_wait_s
        return replace_damaged(file, source, space=self._space, wait_s=wait_s, now=self._now())

    def files(self) -> list[tuple[str, Path]]:
        file = self._home.files_in(self._folder).database
        return [(self._space, file)] if self._database is None and file.exists() else []

    def settings_file(self) -> Path | None:
        return None if self._database is not None else self._home.files_in(self._folder).settings

    def everywhere(self) -> list[SpaceOfHome]:
        own = self.project()
        return [] if own is None else [SpaceOfHome(own.space, lambda: own)]

    def is_in_database(self) -> bool:
        return self._database is not None

    def destination(self, place: str) -> Storage:
        if is_database(place):
            return open_database(place, self._space, write_wait_s=self._settings.write_wait_s, now=self._now)
        path = self._home.prepare_in(self._folder).database if place == "home" else Path(place)
        return open_space(path, self._space, write_wait_s=self._settings.write_wait_s, now=self._now)

    def close(self) -> None:
        if self._storage is not None:
            self._storage.close()

    def _found(self) -> Storage | None:
        if self._database is not None:
            try:
                return self._in_database(self._database, must_exist=True)
            except NotFound:
                return None
        return open_existing(
            self._home.files_in(self._folder).database,
            self._space,
            write_wait_s=self._settings.write_wait_s,
            now=self._now,
            daily_backups=self._daily_backups,
            home=self._home.root,
        )

    def _made(self) -> Storage:
        if self._database is not None:
            return self._in_database(self._database)
        return open_space(
            self._home.prepare_in(self._folder).database,
            self._space,
            write_wait_s=self._settings.write_wait_s,
            now=self._now,
            daily_backups=self._daily_backups,
            home=self._home.root,
            page_bytes=USER_PAGE_BYTES,
        )

    def _in_database(self, url: str, *, must_exist: bool = False) -> Storage:
        wait_s = self._settings.write_wait_s
        return open_database(url, self._space, write_wait_s=wait_s, now=self._now, must_exist=must_exist)

    @property
    def _daily_backups(self) -> int:
        return self._settings.backups_kept if self._settings.backup_daily else 0


def digest_of(user: str) -> str:
    """Return the name of a user's folder. Raises InvalidInput unless the name is a string with something in it."""
    if not isinstance(user, str):
        raise InvalidInput(f"user must be a string, not {type(user).__name__}.", hint="Give user=str(id).")
    if not user:
        raise InvalidInput("user must not be empty.", hint="Give the id by which your program knows the user.")
    return blake2b(user.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


def _is_within(there: Place, here: Place) -> bool:
    """Whether two places are one, or one is a plain directory below the other."""
    is_plain = here.git_common_dir is None and there.git_common_dir is None
    return here.key == there.key or (is_plain and there.directory.is_relative_to(here.directory))


def _digest(text: str) -> str:

    return blake2b(text.encode(), digest_size=8).hexdigest()
