"""The home: where Kept's files are, and who may read them.

`Projects` and `kept.open` ask here for every path; what the files contain is not its concern.
Rule: directories are 0700 and files 0600; a name is checked before it becomes a path; nothing inside the home may be a
symbolic link, which could lead out of it or from one space into another. (The home itself may be one.)
"""

import os
import re
import stat
import sys
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from kept.errors import InvalidInput, NotAllowed, SettingsError
from kept.projects.files import ANOTHER_HOME, explained, make_private_directory, shown, tighten

if sys.platform != "win32":
    import pwd

SLUG_CHARS = 40
FOLDER_PATTERN = rf"\A(?=.{{1,{SLUG_CHARS}}}-[0-9a-f]{{8}}\Z)[a-z0-9]+(-[a-z0-9]+)*-[0-9a-f]{{8}}\Z"
WINDOWS_DEVICES = {"con", "prn", "aux", "nul"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(10)}


class SpaceFiles:
    """The files of one space. Naming them touches nothing."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.database = directory / "kept.db"
        self.memory_md = directory / "MEMORY.md"
        self.items = directory / "items.json"
        self.tasks = directory / "tasks.json"
        self.sessions = directory / "sessions"
        self.settings = directory / "settings.toml"
        self.project_card = directory / "project.json"  # the project's entry again, to rebuild a lost registry from


class Home:
    """One home directory. Creating the object changes nothing on disk."""

    def __init__(self, root: Path) -> None:
        with explained("find the home", root):
            self.root = root.resolve()
            if shown(self.root) != str(self.root):
                raise InvalidInput(
                    f"The path of Kept's home, {shown(self.root)}, is not UTF-8, so SQLite cannot open files there.",
                    hint=ANOTHER_HOME,
                )
            if self.root.exists() and not self.root.is_dir():
                raise InvalidInput(f"Kept's home {shown(self.root)} is a file, not a directory.", hint=ANOTHER_HOME)
        self.global_dir = self.root / "global"
        self.projects_dir = self.root / "projects"
        self.users_dir = self.root / "users"
        self.registry = self.root / "projects.json"
        self.registry_lock = self.root / "projects.lock"

    def project_dir(self, folder: str) -> Path:
        """The directory of a project, by its folder name. Raises InvalidInput for any other name."""
        if not re.match(FOLDER_PATTERN, folder):
            raise InvalidInput(
                f"Invalid project folder {shown(folder)!r}.", hint="Its name must be <slug>-<8 hex digits>."
            )
        return self.projects_dir / folder

    def user_dir(self, digest: str) -> Path:
        """Return the directory of a user, by the digest of the name; 256 folders share them, for slow file systems."""
        return self.users_dir / digest[:2] / digest

    def files(self, folder: str | None = None) -> SpaceFiles:
        """The files of a project's space, or of the global one. Creates nothing; a symbolic link raises NotAllowed."""
        return self.files_in(self.global_dir if folder is None else self.project_dir(folder))

    def files_in(self, directory: Path) -> SpaceFiles:
        """As `files`, of the space in this directory of the home."""
        files = SpaceFiles(directory)
        self.refuse_links(files.directory)
        for entry in entries_of(files.directory):
            if entry.is_symlink():
                raise _is_link(Path(entry.path))
        return files

    def prepare(self, folder: str | None = None) -> SpaceFiles:
        """As `files`, but make the directory, and close it and its files to other users."""
        return self.prepare_in(self.global_dir if folder is None else self.project_dir(folder))

    def prepare_in(self, directory: Path) -> SpaceFiles:
        """As `prepare`, for the space in this directory of the home."""
        files = self.files_in(directory)
        self.prepare_root()
        for directory in self._below_root(files.directory):
            make_private_directory(directory)
        for entry in entries_of(files.directory):
            tighten(Path(entry.path))
        return files

    def _below_root(self, directory: Path) -> list[Path]:
        """Return the directories between the home and this one, which comes last."""
        parents = directory.relative_to(self.root).parents
        return [*(self.root / parent for parent in reversed(parents) if parent.parts), directory]

    def prepare_root(self) -> None:
        """Make the home, as a private directory."""
        if self.root == Path(self.root.anchor) or _is_shared(self.root):
            raise InvalidInput(
                f"{shown(self.root)} cannot be Kept's home: it is shared with other programs or users.",
                hint=f"Give Kept a directory of its own, such as {shown(self.root / 'kept')}.",
            )
        make_private_directory(self.root)
        for path in (self.registry, self.registry_lock):
            self.refuse_links(path)
            if path.exists():
                tighten(path)

    def refuse_links(self, path: Path) -> None:
        """Raise NotAllowed if `path`, or a directory between it and the home, is a symbolic link."""
        below = path.relative_to(self.root).parts
        for depth in range(1, len(below) + 1):
            step = self.root.joinpath(*below[:depth])
            with explained("look at", step):
                if step.is_symlink():
                    raise _is_link(step)


def default_home(environ: Mapping[str, str]) -> Path:
    """`$KEPT_HOME`, else `kept` in the platform's directory for user data.

    A relative KEPT_HOME raises SettingsError: it would be a different home in every directory.
    """
    if chosen := environ.get("KEPT_HOME"):
        path = expanded(chosen, environ)
        if not path.is_absolute():
            raise SettingsError(
                f"KEPT_HOME must be an absolute path, not {shown(chosen)!r}.", hint="Start it with / or ~."
            )
        if path == user_home(environ):
            raise SettingsError(
                f"KEPT_HOME must not be your home directory, {shown(chosen)!r}.",
                hint=f"Give Kept a directory of its own, such as {shown(path / 'kept')}.",
            )
        return path
    return platform_folder("data", environ)


def platform_folder(purpose: Literal["data", "config"], environ: Mapping[str, str]) -> Path:
    """The folder of Kept where this platform keeps the data, or the configuration, of a user's programs."""
    user = environ.get("HOME", "")
    if sys.platform == "linux" and user.startswith("/") and "ANDROID_DATA" not in environ:
        # The usual case is written out, because hooks start often.
        usual, variable = {"data": (".local/share", "XDG_DATA_HOME"), "config": (".config", "XDG_CONFIG_HOME")}[purpose]
        named = environ.get(variable, "")
        return Path(named if named.startswith("/") else f"{user}/{usual}") / "kept"
    from platformdirs import user_config_path, user_data_path  # takes 6 ms, and the usual case needs none of it

    return (user_data_path if purpose == "data" else user_config_path)("kept", appauthor=False)


def user_home(environ: Mapping[str, str]) -> Path:
    """The home directory of the user: by the environment, else by the system's list of users."""
    if named := environ.get("HOME") or environ.get("USERPROFILE"):
        return Path(named)
    if sys.platform != "win32":
        with suppress(KeyError):
            return Path(pwd.getpwuid(os.getuid()).pw_dir)
    return Path(os.sep)


def account_name(environ: Mapping[str, str]) -> str:
    """The name of the user's account: by the environment, else by the system's list of users."""
    for variable in ("LOGNAME", "USER", "USERNAME"):
        if named := environ.get(variable):
            return named
    if sys.platform != "win32":
        with suppress(KeyError):
            return pwd.getpwuid(os.getuid()).pw_name
    return "user"


def expanded(text: str, environ: Mapping[str, str]) -> Path:
    """The path with a leading `~` or `~user` replaced."""
    if text == "~" or text.startswith(("~/", "~\\")):
        return user_home(environ) / text[2:]
    path = Path(text)
    if text.startswith("~"):
        try:
            return path.expanduser()
        except (RuntimeError, ValueError) as error:
            raise InvalidInput(f"Unknown user in {shown(text)!r}.", hint="Give the whole path.") from error
    return path


def slug(name: str) -> str:
    """A safe file name that still reads like `name`: `[a-z0-9-]`, 1 to 40 characters, no device name of Windows."""
    letters = "".join(
        _plain(char) for char in unicodedata.normalize("NFC", name[:500]).replace("\ufffd", "-").casefold()
    )
    short = re.sub(r"[^a-z0-9]+", "-", letters).strip("-")[:SLUG_CHARS].rstrip("-")
    if not short:
        return "project"
    return f"project-{short}" if short in WINDOWS_DEVICES else short


def _plain(char: str) -> str:
    """The ASCII letters that `char` is read as: é e, ø o, さ sa, 김 gim, 🚀 rocket; a dash where we know none."""
    if char.isascii():
        return char
    if unicodedata.combining(char):
        return ""
    folded = unicodedata.normalize("NFKD", char).encode("ascii", "ignore").decode()
    if folded:
        return folded
    words = unicodedata.name(char, "").lower().split()
    if words[:1] == ["latin"]:  # "latin small letter dotless i", "... o with stroke", "... thorn"
        return next((word for word in words[3:] if len(word) <= 2), words[-1])
    if words[:1] in (["hiragana"], ["katakana"], ["hangul"]):
        return words[-1]
    return f"-{'-'.join(words)}-" if unicodedata.category(char) == "So" else "-"


def _is_link(path: Path) -> NotAllowed:
    return NotAllowed(
        f"{shown(path)} is a symbolic link. Kept follows none inside its home, because they could lead out of it.",
        hint="Put the file or directory itself there. To use another disk, move the whole home and set KEPT_HOME.",
    )


def entries_of(directory: Path) -> list[os.DirEntry[str]]:
    """What is in the directory; nothing if it does not exist."""
    with explained("read", directory):
        try:
            with os.scandir(directory) as entries:
                return list(entries)
        except FileNotFoundError:
            return []


def _is_shared(path: Path) -> bool:
    """Whether it is a directory of many users, such as /tmp, which has the sticky bit."""
    try:
        return bool(path.stat().st_mode & stat.S_ISVTX)
    except OSError:
        return False
