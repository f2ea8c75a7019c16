"""The source files of a project: which there are, without those that git ignores.

git itself is asked where it is at hand; elsewhere the .gitignore files are read here, which covers their usual lines.
Rule: no symbolic link is followed, so nothing outside of the folder is read.
"""

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

GIT_TIMEOUT_S = 60
NEVER = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache"})


def files_below(folder: Path) -> list[str]:
    """The regular files of a folder that are not ignored: paths relative to it, in order."""
    named = _asked_of_git(folder)
    return sorted(set(_walked(folder, folder, []) if named is None else named))


def _asked_of_git(folder: Path) -> list[str] | None:
    """What git tracks, or would track; None where there is no git, or no repository."""
    git = shutil.which("git")
    if git is None:
        return None
    # A repository's own settings could name a program to run here; that one is switched off.
    command = [git, "-c", "core.fsmonitor=", "-C", str(folder), "ls-files", "-z", "--cached", "--others"]
    try:
        done = subprocess.run(
            [*command, "--exclude-standard"],
            capture_output=True,
            timeout=GIT_TIMEOUT_S,
            check=False,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    named = [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]
    # A folder that is ignored as a whole, such as an installed package, was still asked for.
    return [name for name in named if _is_regular(folder / name)] or None


def _walked(folder: Path, root: Path, rules: list["IgnoreRule"]) -> Iterator[str]:
    own = [*rules, *_rules_in(folder)]
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = Path(entry.path)
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name in NEVER or _is_ignored(path, own, is_folder=is_folder):
            continue
        if is_folder:
            yield from _walked(path, root, own)
        elif entry.is_file(follow_symlinks=False):
            yield path.relative_to(root).as_posix()


class IgnoreRule:
    """One line of a .gitignore."""

    def __init__(self, folder: Path, line: str) -> None:
        self.folder = folder
        self.is_exception = line.startswith("!")
        line = line.removeprefix("!").removeprefix("\\")
        self.is_for_folders = line.endswith("/")
        pattern = line.strip("/")
        is_anchored = "/" in line.rstrip("/")
        self._regex = re.compile(("" if is_anchored else "(?:.*/)?") + _as_regex(pattern))

    def fits(self, path: Path, *, is_folder: bool) -> bool:
        if self.is_for_folders and not is_folder:
            return False
        return self._regex.fullmatch(path.relative_to(self.folder).as_posix()) is not None


def _as_regex(pattern: str) -> str:
    parts = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|/\*\*|\*\*|\*|\?|\[[^\]]+\])", pattern)
    return "".join(
        parts.get(piece) or (piece.replace("[!", "[^") if piece.startswith("[") else re.escape(piece))
        for piece in pieces
    )


def _rules_in(folder: Path) -> list[IgnoreRule]:
    try:
        lines = (folder / ".gitignore").read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    rules = []
    for line in lines:
        line = line.rstrip()
        if line and not line.startswith("#"):
            try:
                rules.append(IgnoreRule(folder, line))
            except re.error:
                continue
    return rules


def _is_ignored(path: Path, rules: list[IgnoreRule], *, is_folder: bool) -> bool:
    """Whether the last rule that fits says so."""
    return next((not rule.is_exception for rule in reversed(rules) if rule.fits(path, is_folder=is_folder)), False)


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False
