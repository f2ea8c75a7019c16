"""Read a git work tree without git: its files, the branch and the commit that are checked out.

Rule: nothing outside of the work tree is read but the git directory that belongs to it, no link is followed, and no
process is started. A hook has no time for one.
"""

import os
import stat
from pathlib import Path
from typing import NamedTuple

from kept.freshness import FileText
from kept.projects.files import read_regular
from kept.projects.registry import is_git_directory

MOST_BYTES = 2 * 1024 * 1024  # of a file: a larger one is hardly written by hand
REF_BYTES = 4096
PACKED_BYTES = 8 * 1024 * 1024
MOST_LINKS = 5  # of symbolic refs
MAIN_BRANCHES = ("main", "master", "trunk", "develop")


class WorkTree(NamedTuple):
    """A work tree of a repository; a linked one shares `common` with the others, and has a HEAD in `git_dir`."""

    root: Path
    git_dir: Path
    common: Path

    def inside(self, path: str) -> str | None:
        """Return a path relative to the top; None if it leads out of the tree, or into the git directory."""
        beginning = f"{self.root}{os.sep}"
        parts = path.removeprefix(beginning).replace("\\", "/").removeprefix("./").split("/")
        is_outside = parts[0] in ("", "~") or ".." in parts or ".git" in map(str.casefold, parts) or "\0" in path
        return None if is_outside or ":" in parts[0] else "/".join(part for part in parts if part not in ("", "."))

    def stat(self, path: str) -> tuple[int, int] | None:
        """Return the size of a regular file and when it was changed; None if a link leads to it."""
        if not (inside := self.inside(path)):
            return None
        names = inside.split("/")
        try:
            seen = [os.lstat("/".join((str(self.root), *names[:end]))) for end in range(1, len(names) + 1)]
        except (OSError, ValueError):
            return None
        is_own = stat.S_ISREG(seen[-1].st_mode) and not any(stat.S_ISLNK(one.st_mode) for one in seen)
        return (seen[-1].st_size, seen[-1].st_mtime_ns) if is_own else None

    def read(self, path: str) -> FileText | None:
        """Return the text of a regular file; None if it is too large."""
        seen = self.stat(path)
        if seen is None or seen[0] > MOST_BYTES:
            return None
        data = read_regular(Path(f"{self.root}/{self.inside(path)}"), MOST_BYTES)
        return FileText(data.decode("utf-8", "replace"), *seen)

    def head(self) -> tuple[str, str]:
        """Return the branch and the commit that are checked out; "" for a branch that is not, or a commit to come.

        While a branch is being rebased, HEAD is detached and the branch is still meant.
        """
        said = _line(self.git_dir / "HEAD")
        if said.startswith("ref: "):
            name = said.removeprefix("ref: ").strip()
            return name.removeprefix("refs/heads/"), self.commit_of(name)
        for folder in ("rebase-merge", "rebase-apply"):
            if name := _line(self.git_dir / folder / "head-name"):
                return name.removeprefix("refs/heads/"), said
        return "", said

    def main_branch(self) -> str:
        """Return the branch that all others are merged into: the remote's, or the first with a usual name."""
        told = _line(self.common / "refs/remotes/origin/HEAD").partition("refs/remotes/origin/")[2]
        return told or next((name for name in MAIN_BRANCHES if self.commit_of(f"refs/heads/{name}")), "")

    def has_begun_at(self, branch: str, commit: str) -> bool:
        """Return True if a branch has no commit after the one it began at."""
        main = self.main_branch()
        if not branch or branch == main or ".." in branch.split("/"):
            return False
        log = read_regular(self.common / "logs/refs/heads" / branch, REF_BYTES).partition(b"\n")[0]
        began = b"\tbranch: Created" in log and log[41:81] == commit.encode()
        return began or commit == self.commit_of(f"refs/heads/{main}")

    def commit_of(self, ref: str) -> str:
        """Return the commit of a ref; "" if there is none."""
        for _ in range(MOST_LINKS):
            if ".." in ref.split("/"):
                return ""
            said = _line(self.git_dir / ref) or _line(self.common / ref)
            if not said.startswith("ref: "):
                return said or self._packed(ref)
            ref = said.removeprefix("ref: ").strip()
        return ""

    def _packed(self, ref: str) -> str:
        data = read_regular(self.common / "packed-refs", PACKED_BYTES)
        end = data.find(b" " + os.fsencode(ref) + b"\n")
        return data[data.rfind(b"\n", 0, end) + 1 : end].decode("ascii", "replace") if end > 0 else ""


def work_tree_around(folder: Path) -> WorkTree | None:
    """Return the work tree that a folder is in."""
    for root in (folder, *folder.parents):
        dot_git = root / ".git"
        if dot_git.is_dir():
            return WorkTree(root, dot_git, dot_git) if is_git_directory(dot_git) else None
        if dot_git.is_file():
            return _linked(root, dot_git)
    return None


def _linked(root: Path, dot_git: Path) -> WorkTree | None:
    """Return the work tree of a linked worktree or a submodule, if its git directory lies there or leads back."""
    named = _line(dot_git).removeprefix("gitdir: ")
    git_dir = Path(os.path.realpath(root / named))
    if not named or not is_git_directory(git_dir):
        return None
    back = _line(git_dir / "gitdir")
    leads_back = bool(back) and os.path.realpath(git_dir / back) == os.path.realpath(dot_git)
    if not leads_back and not any(git_dir.is_relative_to(parent / ".git") for parent in root.parents):
        return None
    common = _line(git_dir / "commondir")
    return WorkTree(root, git_dir, Path(os.path.realpath(git_dir / common)) if common else git_dir)


def _line(path: Path) -> str:
    return os.fsdecode(read_regular(path, REF_BYTES).rstrip(b"\r\n"))
