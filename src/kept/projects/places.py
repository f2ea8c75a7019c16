"""What a directory is: part of a git repository, a plain directory, or no place for a project.

Facade layer; `projects` asks here before it looks into its registry. Reads `.git` itself, because starting git costs
more than a whole recall.
Rule: one repository is one place, wherever one stands in it. Its worktrees share it, a submodule or a nested
repository is a place of its own, and a symbolic link to it is the same place.
"""

import os
import re
import stat
import sys
import unicodedata
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kept.errors import InvalidInput, KeptError, NotFound
from kept.projects.files import explained, shown, write_private_file
from kept.projects.home import user_home

ID_PATTERN = r"\A[0-9a-f]{8}\Z"
ID_FILE = "kept-id"  # in the git common directory; git leaves unknown files there alone, and does not clone them
POINTER_BYTES = 8192  # a `.git` or `commondir` file is one path
NAME_CHARS = 200


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
        """What a project here is called until somebody renames it."""
        name = self.directory.name
        if self.directory == self.git_common_dir:
            name = name.removesuffix(".git")
        printable = os.fsencode(name).decode("utf-8", "replace")
        printable = "".join(" " if unicodedata.category(char) in UNPRINTABLE else char for char in printable)
        return unicodedata.normalize("NFC", " ".join(printable.split()))[:NAME_CHARS] or "project"


UNPRINTABLE = ("Cc", "Cs", "Zl", "Zp")  # control characters, lone surrogates, line and paragraph separators


def identify(path: Path, no_projects: Mapping[Path, str]) -> Place:
    """The place that `path` is in. `no_projects` are directories that are none, as `no_project_directories` gives them.

    Raises NotFound where nothing is, InvalidInput for a file.
    """
    with explained("look into", path, hint="Go where you may read, or name a project: --project NAME."):
        here = _real_directory(path)
        for folder in (here, *here.parents):
            if folder in no_projects:  # also ends the search: a repository of dot-files does not own all of $HOME
                break
            if found := _repository_at(folder):
                too_wide = found.directory in no_projects or found.directory == found.directory.parent
                return Place(found.git_common_dir, found.git_common_dir) if too_wide and found.git_common_dir else found
    root = "the root of the file system" if here == here.parent else ""
    return Place(here, no_project=no_projects.get(here, root))


def no_project_directories(environ: Mapping[str, str]) -> dict[Path, str]:
    """Directories where everything and nothing belongs together, each with what it is."""
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
    """The repository whose work tree, or whose own directory, `folder` is; None if there is none just here."""
    dot_git = folder / ".git"
    mode = _mode(dot_git)
    if stat.S_ISDIR(mode) and is_git_directory(dot_git):
        git_dir = dot_git.resolve()
    elif stat.S_ISREG(mode):
        target = _pointer(dot_git, "gitdir: ")
        if target is None:
            return None
        git_dir = (folder / target).resolve()
        if not is_git_directory(git_dir):
            # Its repository can't be reached: perhaps unmounted. A worktree still tells where it belongs.
            in_worktrees = git_dir.parent.name == "worktrees"
            return _linked_worktree(git_dir.parent.parent) if in_worktrees else Place(folder)
    elif is_git_directory(folder):
        git_dir = folder
        if _mode(folder / "commondir") == 0:  # a bare repository, or we stand inside a `.git`
            return Place(folder.parent if folder.name == ".git" else folder, folder)
    else:
        return None
    common = _pointer(git_dir / "commondir")
    return Place(folder, git_dir) if common is None else _linked_worktree((git_dir / common).resolve())


def _linked_worktree(common: Path) -> Place:
    """The place of a worktree that `git worktree add` made: the repository it was added to."""
    return Place(common.parent if common.name in (".git", ".bare") else common, common)


def is_git_directory(path: Path) -> bool:
    """Does it look like the directory that git keeps a repository in, or a part of one for a linked worktree?"""
    if _mode(path / "HEAD") == 0:
        return False
    return _mode(path / "commondir") != 0 or (stat.S_ISDIR(_mode(path / "objects")) and _mode(path / "refs") != 0)


def _mode(path: Path) -> int:
    """The file's mode, or 0 where there is nothing that we may see."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def _pointer(path: Path, prefix: str = "") -> Path | None:
    """The path that a file of git holds, after `prefix`; None if it is not such a file."""
    text = os.fsdecode(_first_bytes(path, POINTER_BYTES).rstrip(b"\r\n"))
    return Path(text.removeprefix(prefix)) if text.startswith(prefix) and text != prefix and "\0" not in text else None


def _first_bytes(path: Path, limit: int) -> bytes:
    """The beginning of a regular file; nothing if it is missing, unreadable, or something that would make us wait."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            return file.read(limit) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    except OSError:
        return b""


def read_id(place: Place) -> str | None:
    """The id of the project that this repository's memory is kept under, as noted in the repository itself."""
    return None if place.git_common_dir is None else read_id_file(place.git_common_dir)


def read_id_file(common: Path) -> str | None:
    text = _first_bytes(common / ID_FILE, 64).strip().decode("ascii", "replace")
    return text if re.match(ID_PATTERN, text) else None


def write_id(place: Place, project_id: str) -> bool:
    """Note the project's id in the repository. False if it can't be written: then the registry alone serves."""
    if place.git_common_dir is None:
        return False
    try:
        write_private_file(place.git_common_dir / ID_FILE, f"{project_id}\n".encode(), mode=0o644)
    except KeptError:
        return False
    return True


def is_same(text: str, other: str) -> bool:
    """Do two stored paths lead to one directory (by another case of letters, another mount)?"""
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
    from urllib.parse import unquote_to_bytes

    path = os.fsdecode(unquote_to_bytes(text.removeprefix("file://")))
    return Path(path.lstrip("/") if sys.platform == "win32" else path)
