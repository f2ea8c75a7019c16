"""What the registry knows: projects, their places, and whose a place is.

Facade layer; `projects` reads and writes the file, this module answers questions about it and changes nothing.
Rule: a project is its random id, not its path. An id noted in a repository outweighs the path, unless the
repository is a copy, which is so while the project is still found at every place it is known to have.
"""

import unicodedata
from collections.abc import Iterable
from datetime import datetime
from functools import cached_property
from typing import Annotated

import msgspec

from kept.errors import InvalidInput
from kept.projects.files import shown
from kept.projects.home import SLUG_CHARS
from kept.projects.places import (
    ID_PATTERN,
    Place,
    is_git_directory,
    is_same,
    is_writable,
    path_text,
    read_id_file,
    text_path,
)

Id = Annotated[str, msgspec.Meta(pattern=ID_PATTERN)]
Slug = Annotated[str, msgspec.Meta(pattern=r"\A[a-z0-9]+(-[a-z0-9]+)*\Z", max_length=SLUG_CHARS)]


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """One project. The slug is part of a folder's name and stays when the project is renamed."""

    id: Id
    name: str
    slug: Slug
    created_at: datetime
    root: str | None = None
    git_common_dir: str | None = None
    links: tuple[str, ...] = ()  # further places that belong to it
    into: Id | None = None  # merged: that project answers for this one

    @property
    def space(self) -> str:
        return f"project/{self.id}"

    @property
    def folder(self) -> str:
        """The name of its directory in the home."""
        return f"{self.slug}-{self.id}"

    @property
    def places(self) -> tuple[str, ...]:
        """The keys of all places that belong to it, its own first."""
        own = self.git_common_dir or self.root
        return (own, *self.links) if own else self.links


class Registry:
    """All projects at one moment, and the questions one can ask about them."""

    def __init__(self, projects: Iterable[Project], damage: str = "") -> None:
        self.projects = {project.id: project for project in projects}
        self.damage = damage  # what is wrong with the file, if these projects had to be read from their folders
        self._owners = {key: p for p in self.projects.values() for key in (*p.places, p.root) if key}

    def get(self, project_id: str | None) -> Project | None:
        """The project of that id; of a merged one, the project that answers for it."""
        for _ in self.projects:  # no chain of merges is longer, unless somebody tampered with the file
            project = self.projects.get(project_id or "")
            if project is None or project.into is None:
                return project
            project_id = project.into
        return None

    def named(self, name: str) -> Project | None:
        """The project of that name, in this case of letters or else in any; merged ones come last.

        Raises InvalidInput if several fit.
        """
        name = tidy(name)
        for is_living in (True, False):
            for spelt in (str, folded):
                fitting = [
                    p for p in self.projects.values() if (p.into is None) == is_living and spelt(p.name) == spelt(name)
                ]
                answers = {answer.id: answer for p in fitting if (answer := self.get(p.id))}
                if len(answers) > 1:
                    listed = ", ".join(f"{p.id} ({p.root or 'no directory'})" for p in answers.values())
                    raise InvalidInput(
                        f"{len(answers)} projects are called {shown(name)!r}: {listed}.",
                        hint="Give the id instead, or rename one: kept projects rename ID NAME.",
                    )
                if answers:
                    return next(iter(answers.values()))
        return None

    def at_path(self, key: str) -> Project | None:
        """The project that has exactly this place."""
        if key in self._owners:
            return self._owners[key]
        text = self._keys_by_folded.get(folded(key))
        return self._owners[text] if text and is_same(text, key) else None

    @cached_property
    def _keys_by_folded(self) -> dict[str, str]:
        return {folded(key): key for key in self._owners}

    def at(self, place: Place) -> Project | None:
        """The project that this place belongs to by its path alone; a plain directory, also by one above it."""
        if place.git_common_dir is not None:
            return self.at_path(place.key) or self._before_git(place)
        above = (self.at_path(path_text(folder)) for folder in (place.directory, *place.directory.parents))
        return next((owner for owner in above if owner), None)

    def _before_git(self, place: Place) -> Project | None:
        """The project that this repository was while it was a plain directory."""
        owner = self.at_path(path_text(place.directory))
        return owner if owner and owner.git_common_dir is None else None

    def claimed_by(self, place: Place, kept_id: str | None) -> Project | None:
        """The project whose memory belongs here, as it has to be stored from now on; None if a new one must be made."""
        owner, holder = self.at(place), self.get(kept_id)
        if holder is not None and holder is not owner:
            if any(is_same(text, place.key) for text in holder.places):
                return holder
            gone = next((text for text in holder.places if not self._is_still_at(text, holder)), None)
            has_moved = gone is not None or not holder.places
            # A registered place we would have marked as ours; only if we could, a foreign id there came later.
            if has_moved and (owner is None or (gone and is_writable(text_path(place.key)))):
                return moved(holder, gone, place)
        if owner and place.git_common_dir and owner.git_common_dir is None and owner.root == path_text(place.directory):
            return msgspec.structs.replace(owner, git_common_dir=place.key)
        return owner

    def _is_still_at(self, text: str, project: Project) -> bool:
        path = text_path(text)
        try:
            if not path.is_dir():
                return False
        except OSError:  # not for us to see, so not known to be gone
            return True
        if not is_git_directory(path) or not is_writable(path):  # can hold no id
            return True
        return self.get(read_id_file(path)) is project


def with_place(project: Project, place: Place) -> Project:
    """The place becomes the project's own, or a further one if it has one."""
    if project.root or project.git_common_dir:
        return msgspec.structs.replace(project, links=(*project.links, place.key))
    return moved(project, None, place)


def moved(project: Project, gone: str | None, place: Place) -> Project:
    """The project with `place` instead of its place `gone`, or as its own where none is gone."""
    if gone in project.links:
        links = tuple(place.key if text == gone else text for text in project.links)
        return msgspec.structs.replace(project, links=links)
    git = place.key if place.git_common_dir else None
    return msgspec.structs.replace(project, root=path_text(place.directory), git_common_dir=git)


def without(project: Project, keys: set[str]) -> Project:
    """The project without these places. It keeps its memory, its name and its id."""
    links = tuple(text for text in project.links if text not in keys)
    if keys & {project.root, project.git_common_dir}:
        return msgspec.structs.replace(project, links=links, root=None, git_common_dir=None)
    return project if links == project.links else msgspec.structs.replace(project, links=links)


def tidy(name: str) -> str:
    """The form in which names are stored and looked for."""
    return unicodedata.normalize("NFC", name.strip())


def folded(text: str) -> str:
    """The text for comparing names and paths without regard to case and to how accents are composed."""
    return unicodedata.normalize("NFC", text).casefold()
