"""The source files of a project: which there are, without those that git ignores.

git itself is asked where it is at hand; elsewhere the .gitignore files are read here, which covers their usual lines.
Rule: a folder may be a stranger's archive, with its own `.git`. No program that it names is started, no symbolic link
in any part of a path is followed, so nothing outside of the folder is read, and no pattern takes long.
"""

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from fnmatch import translate
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from kept.projects.files import read_regular

GIT_TIMEOUT_S = 60
REMOTE_TIMEOUT_S = 120
NEVER = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache"})
# Folders and files of others, or made from the project's own, that are often committed.
VENDORED = frozenset(
    "vendor vendors vendored _vendor _vendored third_party third-party thirdparty 3rdparty node_modules"
    " bower_components jspm_packages site-packages godeps pods carthage dist".split()
)
_MINIFIED = re.compile(r"[.-](?:min|bundle)\.(?:js|mjs|cjs|css)$|\.map$", re.IGNORECASE)
IGNORE_BYTES = 256 * 1024  # of a .gitignore; the largest of public repositories have a tenth of it
IGNORE_RULES = 2000  # for one file: it is compared with each
IGNORE_CHARS = 1000  # of a line; a longer one is not a path

# A repository's configuration can name programs for git to start. These settings come later than the configuration,
# and the environment comes before both. An empty GIT_ALLOW_PROTOCOL would count as unset, and no protocol is "none".
GIT_OPTIONS = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "core.sshCommand": "false",
    "core.gitProxy": "false",
    "credential.helper": "",
    "diff.external": "",
    "protocol.allow": "never",
}
GIT_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "GIT_SSH_COMMAND": "false",
    "GIT_PAGER": "cat",
}

ELSEWHERE = frozenset(
    f"GIT_{name}"
    for name in "DIR WORK_TREE INDEX_FILE OBJECT_DIRECTORY ALTERNATE_OBJECT_DIRECTORIES COMMON_DIR NAMESPACE".split()
)


def files_below(folder: Path) -> list[str]:
    """The regular files of a folder that are not ignored: paths relative to it, in order."""
    named = _asked_of_git(folder)
    return sorted(set(_walked(folder) if named is None else named))


def is_vendored(name: str) -> bool:
    """Return True for a path below a folder for code of others or for built files, and for a minified file."""
    *folders, file = PurePosixPath(name).parts
    return any(folder.lower() in VENDORED for folder in folders) or _MINIFIED.search(file) is not None


def run_git(folder: Path, *arguments: str) -> bytes | None:
    """Run git in a folder, without any program that its configuration names. None if there is no git, or it fails.

    Every git that Kept starts is started here. `arguments` must be a command that compares and writes no file: the
    filters of a repository have names of their own, and cannot be switched off.
    """
    git = shutil.which("git")
    if git is None:
        return None
    options = [part for name, value in GIT_OPTIONS.items() for part in ("-c", f"{name}={value}")]
    command = [git, "--no-pager", *options, "-C", str(folder), *arguments]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_TIMEOUT_S,
            check=False,
            env={**os.environ, **GIT_ENVIRONMENT},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


class GitAnswer(NamedTuple):
    """Result of a git command: its exit code, its output, and its last complaint in one line."""

    code: int
    output: bytes
    complaint: str

    @property
    def is_done(self) -> bool:
        return self.code == 0


def run_git_as_user(folder: Path, *arguments: str, given: bytes = b"") -> GitAnswer:
    """Run a git command that a person asked for, which may reach a remote: with their keys and password helpers.

    Hooks are not run. Variables that lead git to another repository, as hooks of git set them, are left out.
    """
    git = shutil.which("git")
    if git is None:
        return GitAnswer(127, b"", "git is not installed.")
    options = [part for name in ("core.hooksPath", "core.fsmonitor") for part in ("-c", f"{name}={GIT_OPTIONS[name]}")]
    environment = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
    try:
        done = subprocess.run(
            [git, "--no-pager", *options, "-C", str(folder), *arguments],
            input=given,
            capture_output=True,
            timeout=REMOTE_TIMEOUT_S,
            check=False,
            env={**environment, "GIT_NO_REPLACE_OBJECTS": "1", "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return GitAnswer(124, b"", f"git did not finish: {type(error).__name__}.")
    return GitAnswer(done.returncode, done.stdout, complaint_of(done.stderr.decode("utf-8", "replace")))


def complaint_of(said: str) -> str:
    """Return the error in the words of git: its first paragraph and the lines that say `fatal`, without its advice."""
    paragraph, _, rest = said.strip().partition("\n\n")
    lines = [*paragraph.splitlines(), *(line for line in rest.splitlines() if line.startswith(("fatal:", "error:")))]
    sentence = "; ".join(line.strip() for line in lines if line.strip() and not line.startswith("hint:"))
    return without_password(f"{sentence.rstrip('.')}." if sentence else "")


def without_password(line: str) -> str:
    """Hide the password of a URL that git repeats."""
    return re.sub(r"(?<=://)[^/@\s]{1,500}@", "…@", line[:2_000])


def _asked_of_git(folder: Path) -> list[str] | None:
    """What git tracks, or would track; None where there is no git, or no repository."""
    listed = run_git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed is None:
        return None
    folders: dict[PurePosixPath, bool] = {}
    named = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    # A folder that is ignored as a whole, such as an installed package, was still asked for.
    return [name for name in named if _is_regular(folder, PurePosixPath(name), folders)] or None


def _walked(root: Path) -> Iterator[str]:
    waiting: list[tuple[Path, list[IgnoreRule]]] = [(root, [])]
    while waiting:
        folder, rules = waiting.pop()
        own = [*rules, *_rules_in(folder)][:IGNORE_RULES]
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            path = Path(entry.path)
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name in NEVER or _is_ignored(path, own, is_folder=is_folder):
                continue
            if is_folder:
                waiting.append((path, own))
            elif entry.is_file(follow_symlinks=False):
                yield path.relative_to(root).as_posix()


class IgnoreRule:
    """One line of a .gitignore: patterns for the parts of a path, where None stands for any number of parts."""

    def __init__(self, folder: Path, line: str) -> None:
        self.folder = folder
        self.is_exception = line.startswith("!")
        line = line.removeprefix("!").removeprefix("\\")
        self.is_for_folders = line.endswith("/")
        parts = line.strip("/").split("/")
        if parts[-1] == "**":  # at least one part
            parts.append("*")
        if "/" not in line.rstrip("/"):
            parts.insert(0, "**")
        # The patterns of fnmatch do not backtrack from one star into another.
        self._parts = [None if part == "**" else re.compile(translate(part)) for part in parts]

    def fits(self, path: Path, *, is_folder: bool) -> bool:
        if self.is_for_folders and not is_folder:
            return False
        return self._fits(path.relative_to(self.folder).parts)

    def _fits(self, names: tuple[str, ...]) -> bool:
        """Compare part by part. After a mismatch, the last `**` takes one more name: earlier ones need not change."""
        at = number = 0
        retry: tuple[int, int] | None = None
        while number < len(names):
            if at < len(self._parts) and (pattern := self._parts[at]) is None:
                at, retry = at + 1, (at + 1, number + 1)
            elif at < len(self._parts) and pattern is not None and pattern.match(names[number]):
                at, number = at + 1, number + 1
            elif retry is not None:
                at, number = retry
                retry = (at, number + 1)
            else:
                return False
        return all(pattern is None for pattern in self._parts[at:])


def _rules_in(folder: Path) -> list[IgnoreRule]:
    lines = read_regular(folder / ".gitignore", IGNORE_BYTES).decode("utf-8", "replace").splitlines()
    rules: list[IgnoreRule] = []
    for line in lines:
        line = line.rstrip()
        if line and not line.startswith("#") and len(line) <= IGNORE_CHARS and len(rules) < IGNORE_RULES:
            try:
                rules.append(IgnoreRule(folder, line))
            except re.error:
                continue
    return rules


def _is_ignored(path: Path, rules: list[IgnoreRule], *, is_folder: bool) -> bool:
    """Whether the last rule that fits says so."""
    return next((not rule.is_exception for rule in reversed(rules) if rule.fits(path, is_folder=is_folder)), False)


def _is_regular(top: Path, name: PurePosixPath, folders: dict[PurePosixPath, bool]) -> bool:
    """Return True for a regular file below `top` that no link leads to. An index can name any path.

    `folders` remembers the answer for each folder.
    """
    if name.is_absolute() or ".." in name.parts or ".git" in map(str.casefold, name.parts):
        return False
    for folder in reversed(name.parents[:-1]):
        if folder not in folders:
            folders[folder] = stat.S_ISDIR(_mode(top / folder))
        if not folders[folder]:
            return False
    return stat.S_ISREG(_mode(top / name))


def _mode(path: Path) -> int:
    try:
        return os.lstat(path).st_mode
    except (OSError, ValueError):
        return 0
