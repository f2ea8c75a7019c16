"""Places and projects: what a directory is, and which project it belongs to.

`Projects` asks `identify` for the place that a directory is part of, then the `Registry` for the project at that place.
`.git` is read directly, because starting git costs more than a whole recall.

One repository is one place: its worktrees share it, a submodule or a nested repository is a place of its own, and a
symbolic link to it is the same place.
Rule: a project is its random id, not its path. An id noted in a repository outweighs the path, unless the repository is
a copy: it is one while the project is still found at every place that it is known to have. Names are compared by code
points, so that a program that names projects after its users never opens the memory of another one.
"""

import os
import re
import stat
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec.structs import replace

from kept.errors import InvalidInput, KeptError, NotFound
from kept.projects.files import explained, read_regular, shown, write_private_file
from kept.projects.home import SLUG_CHARS, user_home

ID_PATTERN = r"\A[0-9a-f]{8}\Z"
ID_FILE = "kept-id"  # in the git common directory; git leaves unknown files there alone, and does not clone them
POINTER_BYTES = 8192  # a `.git` or `commondir` file is one path
CONFIG_BYTES = 64 * 1024  # of a repository's configuration; [core] stands first
NAME_CHARS = 200
UNPRINTABLE = ("Cc", "Cs", "Zl", "Zp")  # control characters, lone surrogates, line and paragraph separators

Id = Annotated[str, msgspec.Meta(pattern=ID_PATTERN)]
Slug = Annotated[str, msgspec.Meta(pattern=r"\A[a-z0-9]+(-[a-z0-9]+)*\Z", max_length=SLUG_CHARS)]


class Place(msgspec.Struct, frozen=True):
    """Where a project may live."""

    directory: Path  # the top of the main work tree, or the directory itself
    git_common_dir: Path | None = None
    no_project: str = ""  # why memory can't belong to this place, or ""

    @property
    def key(self) -> str:
        """The path by which the registry knows this place."""
        return path_text(self.git_common_dir or self.directory)

    @property
    def name(self) -> str:
        """The name of a project here, until it is renamed."""
        name = self.directory.name
        if self.directory == self.git_common_dir:
            name = name.removesuffix(".git")
        printable = os.fsencode(name).decode("utf-8", "replace")
        printable = "".join(" " if unicodedata.category(char) in UNPRINTABLE else char for char in printable)
        return unicodedata.normalize("NFC", " ".join(printable.split()))[:NAME_CHARS] or "project"


def identify(path: Path, no_projects: Mapping[Path, str]) -> Place:
    """The place that `path` is in; `no_projects` as `no_project_directories` gives them.

    Raises NotFound if the directory is missing, InvalidInput for a file.
    """
    with explained("read", path, hint="Change to a directory that you may read, or name a project: --project NAME."):
        here = _real_directory(path)
        if found := _repository_around(here, no_projects):
            too_wide = found.directory in no_projects or found.directory == found.directory.parent
            return Place(found.git_common_dir, found.git_common_dir) if too_wide and found.git_common_dir else found
    root = "the root of the file system" if here == here.parent else ""
    return Place(here, no_project=no_projects.get(here, root))


def _repository_around(here: Path, no_projects: Mapping[Path, str]) -> Place | None:
    """Return the repository that a directory is in."""
    bare = None
    for folder in (here, *here.parents):
        if folder in no_projects:  # also ends the search: a repository of dot-files does not own all of $HOME
            break
        if found := _repository_at(folder):
            return found
        # A clone can hold a folder that looks like a bare repository. It is part of the clone.
        bare = bare or _bare_at(folder)
    return bare


def no_project_directories(environ: Mapping[str, str]) -> dict[Path, str]:
    """Directories that are no project, because unrelated files meet there; each with a description."""
    temporary = ["/tmp", "/var/tmp", "/dev/shm", *(environ.get(name, "") for name in ("TMPDIR", "TEMP", "TMP"))]
    found = {Path(text).resolve(): "a directory for temporary files" for text in temporary if text and "\0" not in text}
    return found | {user_home(environ).resolve(): "your home directory"}


def _real_directory(path: Path) -> Path:
    real = path.resolve()
    try:
        is_directory = stat.S_ISDIR(real.stat().st_mode)
    except FileNotFoundError as error:
        raise NotFound(
            f"There is no directory {shown(real)}.", hint="Check the path, or name a project: --project NAME."
        ) from error
    if not is_directory:
        raise InvalidInput(f"{shown(path)} is a file, not a directory.", hint="Give the directory of the project.")
    return real


def _repository_at(folder: Path) -> Place | None:
    """The repository whose work tree is exactly `folder`, or None. A folder that names one not its own is plain."""
    dot_git = folder / ".git"
    mode = _mode(dot_git)
    if stat.S_ISDIR(mode) and is_git_directory(dot_git):
        git_dir = dot_git.resolve()
        if not _belongs_to(git_dir, folder):
            return Place(folder)
    elif stat.S_ISREG(mode):
        target = _pointer(dot_git, "gitdir: ")
        if target is None:
            return None
        git_dir = (folder / target).resolve()
        # A repository that can't be reached, perhaps not mounted, can't say either that the folder is its own.
        if not is_git_directory(git_dir) or not _belongs_to(git_dir, folder):
            return Place(folder)
    else:
        return None
    return _linked_worktree(git_dir) or Place(folder, git_dir)


def _bare_at(folder: Path) -> Place | None:
    """The repository whose git directory is exactly `folder`, or None: a bare one, or the inside of a `.git`."""
    if not is_git_directory(folder):
        return None
    return _linked_worktree(folder) or Place(folder.parent if folder.name == ".git" else folder, folder)


def _belongs_to(git_dir: Path, folder: Path) -> bool:
    """Whether a git directory that `folder` names is its own: it lies in the folder, or git's own link leads back.

    Anybody can put a `.git` that names another repository into an archive; only git writes the link back.
    """
    if git_dir.is_relative_to(folder):
        return True
    back = _pointer(git_dir / "gitdir")  # of a worktree: the path of its `.git` file
    if back is None:  # of a submodule: `worktree` in the section [core]
        tree = _work_tree_of(git_dir)
        back = tree / ".git" if tree is not None else None
    return back is not None and is_same(path_text(git_dir / back.parent), path_text(folder))


def _work_tree_of(git_dir: Path) -> Path | None:
    """The work tree that the configuration of a repository names. Scanned by line: a stranger may have written it."""
    for line in os.fsdecode(read_regular(git_dir / "config", CONFIG_BYTES)).split("\n"):
        name, _, value = line.partition("=")
        if name.strip(" \t").casefold() == "worktree" and (value := value.strip(' \t\r"')):
            return Path(value)
    return None


def _linked_worktree(git_dir: Path) -> Place | None:
    """The place of a worktree that `git worktree add` made: the repository it was added to. None if it is not one."""
    named = _pointer(git_dir / "commondir")
    common = (git_dir / named).resolve() if named is not None else git_dir
    # git keeps the directory of a worktree inside the repository; a `commondir` anywhere else proves nothing.
    if git_dir.parent != common / "worktrees" or not is_git_directory(common):
        return None
    return Place(common.parent if common.name in (".git", ".bare") else common, common)


def is_git_directory(path: Path) -> bool:
    """Whether it looks like a git directory: of a repository, or of a linked worktree."""
    if _mode(path / "HEAD") == 0:
        return False
    return _mode(path / "commondir") != 0 or (stat.S_ISDIR(_mode(path / "objects")) and _mode(path / "refs") != 0)


def _mode(path: Path) -> int:
    """The file's mode, or 0 if it is missing or hidden from us."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def _pointer(path: Path, prefix: str = "") -> Path | None:
    """The path that a file of git contains, after `prefix`; None if it is no such file."""
    text = os.fsdecode(read_regular(path, POINTER_BYTES).rstrip(b"\r\n"))
    return Path(text.removeprefix(prefix)) if text.startswith(prefix) and text != prefix and "\0" not in text else None


def read_id(git_common_dir: Path | None) -> str | None:
    """The id of the project that this repository belongs to, as noted in the repository itself."""
    if git_common_dir is None:
        return None
    text = read_regular(git_common_dir / ID_FILE, 64).strip().decode("ascii", "replace")
    return text if re.match(ID_PATTERN, text) else None


def write_id(place: Place, project_id: str) -> bool:
    """Note the project's id in the repository. False if it can't be written: then only the registry knows it."""
    if place.git_common_dir is None:
        return False
    try:
        write_private_file(place.git_common_dir / ID_FILE, f"{project_id}\n".encode(), mode=0o644)
    except KeptError:
        return False
    return True


def remove_id(git_common_dir: Path) -> bool:
    """Remove the note of the project's id from a repository. False if it can't be removed."""
    try:
        (git_common_dir / ID_FILE).unlink(missing_ok=True)
    except OSError:
        return False
    return True


def is_same(text: str, other: str) -> bool:
    """Whether two stored paths lead to one directory (by other upper and lower case, by another mount)."""
    try:
        return text == other or text_path(text).samefile(text_path(other))
    except (OSError, ValueError):
        return False


def is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def path_text(path: Path) -> str:
    """The path as text that JSON can hold: itself, or a file: URI where its name is not Unicode."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return path.as_uri()
    return str(path)


def text_path(text: str) -> Path:
    """The path that `path_text` wrote down."""
    if not text.startswith("file://"):
        return Path(text)
    from urllib.parse import unquote_to_bytes  # 3 ms at every start, and only a link to a database gets here

    path = os.fsdecode(unquote_to_bytes(text.removeprefix("file://")))
    return Path(path.lstrip("/") if sys.platform == "win32" else path)


class Team(msgspec.Struct, frozen=True):
    """Where a team keeps a project: the database, by a URL without a password, and what the project is called there."""

    name: str
    database: str

    @property
    def space(self) -> str:
        return team_space(self.name)


def team_space(name: str) -> str:
    """The space of a project in a database. Its name is all that the homes of a team have in common."""
    return f"project/{name}"


def older_team_space(name: str) -> str:
    """The space that Kept 0.2 gave a project of this name: all names that differ only in case had the same."""
    return f"project/{folded(name.strip())}"


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """One project. The slug is part of its folder's name and stays when the project is renamed."""

    id: Id
    name: str
    slug: Slug
    created_at: datetime
    root: str | None = None
    git_common_dir: str | None = None
    links: tuple[str, ...] = ()  # further places that belong to it
    into: Id | None = None  # the project that this one was merged into
    team: Team | None = None  # None: its memories are in the home
    is_named: bool = False  # a person or a program chose its name; else its directory gave it, or an older Kept did
    before: tuple[tuple[str, str], ...] = ()  # key of a place, id of the project that had it before a link to a team
    is_lost: bool = False  # it had a directory that is not known any more, so a repository may claim it by its id

    @property
    def space(self) -> str:
        return f"project/{self.id}"

    @property
    def folder(self) -> str:
        """The name of its directory in the home."""
        return f"{self.slug}-{self.id}"

    @property
    def has_chosen_name(self) -> bool:
        """Return True if its name was chosen, also by an older Kept if it never had a directory."""
        return self.is_named or not (self.places or self.is_lost)

    @property
    def places(self) -> tuple[str, ...]:
        """The keys of all places that belong to it, its own first."""
        own = self.git_common_dir or self.root
        return (own, *self.links) if own else self.links

    @property
    def keys(self) -> set[str]:
        """Every key under which it is found: its places, and the top of its own repository."""
        return {*self.places, *((self.root,) if self.root else ())}


class Registry:
    """All projects at one moment. Answers questions and changes nothing; `Projects` reads and writes the file."""

    def __init__(self, projects: Iterable[Project], damage: str = "") -> None:
        self.projects = {project.id: project for project in projects}
        self.damage = damage  # what is wrong with the file, if projects had to be read from their folders
        self._owners = {key: project for project in self.projects.values() for key in project.keys}

    def get(self, project_id: str | None) -> Project | None:
        """The project of that id; for a merged one, the project it was merged into."""
        for _ in self.projects:  # no chain of merges is longer, unless somebody edited the file
            project = self.projects.get(project_id or "")
            if project is None or project.into is None:
                return project
            project_id = project.into
        return None

    def named(self, name: str, *, is_exact: bool = False) -> Project | None:
        """Return the project with exactly this name, a living one before a merged one.

        A name that was chosen comes before one taken from a directory: a clone called like the project of a program
        does not keep the program out. `is_exact`: only one that was chosen. Raises InvalidInput if several are left.
        """
        same = [project for project in self.projects.values() if project.name == name]
        if is_exact:
            same = [project for project in same if project.has_chosen_name]
        living = [project for project in same if project.into is None]
        found = self._meant(living) or self._meant(same)
        if len(found) > 1:
            raise _several(name, found)
        return found[0] if found else None

    def _meant(self, same: Sequence[Project]) -> list[Project]:
        """The projects that a name of these leads to; a name that was chosen comes first."""
        chosen = [project for project in same if project.has_chosen_name] or same
        return list({project.id: project for p in chosen if (project := self.get(p.id))}.values())

    def like(self, name: str) -> Project | None:
        """Return a living project whose name a person could take for this one, but which has another name."""
        living = (project for project in self.projects.values() if project.into is None)
        return next((p for p in living if p.name != name and is_like(p.name, name)), None)

    def at_path(self, key: str) -> Project | None:
        """The project at exactly this place."""
        if key in self._owners:
            return self._owners[key]
        text = self._keys_by_folded.get(folded(key))
        return self._owners[text] if text and is_same(text, key) else None

    @cached_property
    def _keys_by_folded(self) -> dict[str, str]:
        return {folded(key): key for key in self._owners}

    def at(self, place: Place) -> Project | None:
        """The project at this place by its path alone; for a plain directory, also by one above it."""
        if place.git_common_dir is not None:
            if found := self.at_path(place.key):
                return found
            before_git = self.at_path(path_text(place.directory))  # it may have been a plain directory first
            return before_git if before_git and before_git.git_common_dir is None else None
        above = (self.at_path(path_text(folder)) for folder in (place.directory, *place.directory.parents))
        return next((owner for owner in above if owner), None)

    def claimed_by(self, place: Place, kept_id: str | None) -> Project | None:
        """The project that this place belongs to, with its places brought up to date; None if a new one is needed.

        `kept_id` is the id that the repository itself names. It claims no project that never had a directory: anybody
        can put an id into an archive.
        """
        owner, holder = self.at(place), self.get(kept_id)
        if holder is not None and holder is not owner:
            if any(is_same(text, place.key) for text in holder.places):
                return holder
            gone = next((text for text in holder.places if not self._is_still_at(text, holder)), None)
            if self._has_moved(holder, gone, owner, place):
                return moved(holder, gone, place)
        if owner and _became_repository(owner, place):
            return replace(owner, git_common_dir=place.key)
        return owner

    def _has_moved(self, holder: Project, gone: str | None, owner: Project | None, place: Place) -> bool:
        """Whether a project that lost its place is now at this one, which may belong to another project."""
        if gone is None:
            return holder.is_lost and not holder.places and owner is None
        # A registered place that we can write to has our id; so a foreign id there is newer.
        return owner is None or is_writable(text_path(place.key))

    def _is_still_at(self, text: str, project: Project) -> bool:
        path = text_path(text)
        try:
            if not path.is_dir():
                return False
        except OSError:  # we may not look, so we don't know that it is gone
            return True
        if not is_git_directory(path) or not is_writable(path):  # can hold no id
            return True
        return self.get(read_id(path)) is project


def _became_repository(project: Project, place: Place) -> bool:
    """Whether the place is the plain directory of the project, and a repository since."""
    is_new = bool(place.git_common_dir) and project.git_common_dir is None
    return is_new and project.root == path_text(place.directory)


def with_place(project: Project, place: Place) -> Project:
    """The project with one more place: as its own, or as a link if it has one."""
    if project.root or project.git_common_dir:
        return replace(project, links=(*project.links, place.key))
    return moved(project, None, place)


def moved(project: Project, gone: str | None, place: Place) -> Project:
    """The project with `place` in place of `gone`, or as its own if none is gone."""
    if gone in project.links:
        links = tuple(place.key if text == gone else text for text in project.links)
        return replace(project, links=links)
    git = place.key if place.git_common_dir else None
    return replace(project, root=path_text(place.directory), git_common_dir=git, is_lost=False)


def without(project: Project, keys: set[str]) -> Project:
    """The project without these places. It keeps its memory, its name and its id."""
    links = tuple(text for text in project.links if text not in keys)
    if keys & {project.root, project.git_common_dir}:
        return replace(project, links=links, root=None, git_common_dir=None, is_lost=not links)
    return project if links == project.links else replace(project, links=links)


def is_like(name: str, other: str) -> bool:
    """Return True if two names read alike: they differ only in case, spaces, width or the encoding of accents."""
    one, two = (unicodedata.normalize("NFKC", text).casefold() for text in (name, other))
    return one.split() == two.split()


def folded(text: str) -> str:
    """The text for sorting names and finding paths, without regard to case and to how accents are encoded."""
    return unicodedata.normalize("NFC", text).casefold()


def _several(name: str, found: Sequence[Project]) -> InvalidInput:
    listed = ", ".join(f"{p.id} ({p.root or 'no directory'})" for p in found)
    return InvalidInput(
        f"{len(found)} projects have the name {shown(name)!r}: {listed}.",
        hint="Give the id instead, or rename one: kept projects rename ID NAME.",
    )
