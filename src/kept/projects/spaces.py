"""Which storage holds what: the opened project's space, and the global one.

Facade layer, below `memory.py`. Rule: looking creates nothing. A space comes into being, on disk and
in the registry, with the first write to it.
"""

from collections.abc import Callable
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Protocol

from kept.errors import NotAllowed
from kept.model import GLOBAL
from kept.ports import Restored, Storage
from kept.projects.home import Home
from kept.projects.places import text_path
from kept.projects.projects import Projects
from kept.settings import Settings
from kept.storage import open_space, replace_damaged, space_of


class Spaces(Protocol):
    """The storages that one opened memory works with."""

    def project(self) -> Storage | None:
        """The opened project's storage, or None while nothing was ever written to it."""

    def ensure_project(self) -> Storage:
        """The opened project's storage, made if need be. Raises NotAllowed where no project can be."""

    def shared(self) -> Storage | None:
        """The global storage, or None while nothing was ever written to it."""

    def ensure_shared(self) -> Storage:
        """The global storage, made if need be. Raises NotAllowed for a portable file, which has none."""

    def replace_damaged(self, source: Path, *, shared: bool) -> Restored:
        """Put a backup in the place of a store that can no longer be opened, which is kept beside it."""

    def folder(self) -> Path | None:
        """The project's own directory, if it has one: what its README says need not be remembered again."""

    def sessions_folder(self) -> Path | None:
        """Where the transcripts of the project are mirrored; None for a portable file, which has no mirrors."""

    def settings_file(self) -> Path | None:
        """Where the settings of the project are; None while there is none, and for a portable file."""

    def close(self) -> None:
        """Close what was opened."""


class OneSpace:
    """A portable file, or a store in memory: one space, no global."""

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

    def replace_damaged(self, source: Path, *, shared: bool) -> Restored:
        raise NotAllowed("A single memory file that is damaged cannot be opened.", hint="Copy the backup to its place.")

    def folder(self) -> Path | None:
        return None

    def sessions_folder(self) -> Path | None:
        return None

    def settings_file(self) -> Path | None:
        return None

    def close(self) -> None:
        self._storage.close()


class HomeSpaces:
    """A project of the home, and the home's global space."""

    def __init__(
        self,
        home: Home,
        projects: Projects,
        target: str | PathLike[str] | None,
        settings: Settings,
        now: Callable[[], datetime],
    ) -> None:
        self._home = home
        self._projects = projects
        self._target = target
        self._settings = settings
        self._now = now
        self._open: dict[str, Storage] = {}
        self._located = projects.locate(target)

    @property
    def refusal(self) -> str:
        """Why nothing can be written to a project from here, or ''."""
        return self._located.refusal

    def project(self) -> Storage | None:
        found = self._located.project
        if found is None:
            return None
        # Once it is open, its folder need not be looked through again: this is asked several times a call.
        opened = self._open.get(found.space)
        return opened or self._opened(found.space, self._home.files(found.folder).database, create=False)

    def ensure_project(self) -> Storage:
        if self._located.project is None or self._located.project.space not in self._open:
            project = self._projects.ensure(self._target)
            self._located = self._projects.locate(self._target)
            return self._created(project.space, self._home.prepare(project.folder).database)
        return self._open[self._located.project.space]

    def shared(self) -> Storage | None:
        return self._open.get(GLOBAL) or self._opened(GLOBAL, self._home.files().database, create=False)

    def ensure_shared(self) -> Storage:
        return self._created(GLOBAL, self._home.prepare().database)

    def replace_damaged(self, source: Path, *, shared: bool) -> Restored:
        project = None if shared else self._projects.ensure(self._target)
        return replace_damaged(
            self._home.files(None if project is None else project.folder).database,
            source,
            space=GLOBAL if project is None else project.space,
            wait_s=self._settings.write_wait_s,
            now=self._now(),
        )

    def folder(self) -> Path | None:
        if self._located.place is not None:
            return self._located.place.directory
        project = self._located.project
        return text_path(project.root) if project is not None and project.root else None

    def sessions_folder(self) -> Path | None:
        project = self._located.project
        return None if project is None else self._home.files(project.folder).sessions

    def settings_file(self) -> Path | None:
        project = self._located.project
        return None if project is None else self._home.files(project.folder).settings

    def close(self) -> None:
        for storage in self._open.values():
            storage.close()

    def _created(self, space: str, path: Path) -> Storage:
        storage = self._opened(space, path, create=True)
        assert storage is not None
        return storage

    def _opened(self, space: str, path: Path, *, create: bool) -> Storage | None:
        if space not in self._open:
            if not create and not path.exists():
                return None
            daily = self._settings.backups_kept if self._settings.backup_daily else 0
            self._open[space] = open_space(
                path, space, write_wait_s=self._settings.write_wait_s, now=self._now, daily_backups=daily
            )
        return self._open[space]


def is_of_global(backup: Path) -> bool:
    """Whether a backup is of the global space. Raises NotFound, Corrupt or SchemaTooNew when it is none."""
    return space_of(backup) == GLOBAL
