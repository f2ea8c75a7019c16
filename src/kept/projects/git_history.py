"""Questions to git about the history of a repository: ancestors, merges, renames, definitions.

For the background and for reviews: each question starts git once (`sources.run_git`). Rule: an answer that git does not
give is None or empty, and says nothing.
"""

import os
from _blake2 import blake2b  # as hashlib does, which also loads OpenSSL
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from kept.projects.sources import run_git

AT_ONCE = 200  # commits in one command
MOST_COMPARED = 200  # commits of the main branch that may be a squashed branch
MOST_HOPS = 10  # renames of one file
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color")


class GitHistory:
    """The history of one work tree."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def _lines(self, *arguments: str) -> list[str] | None:
        said = run_git(self._root, *arguments)
        return None if said is None else os.fsdecode(said).splitlines()

    def branches(self) -> dict[str, str] | None:
        """Return the branches with their last commits; one that only a remote has is named without the remote."""
        names = "--format=%(refname)%09%(objectname)"
        listed = self._lines("for-each-ref", names, "refs/remotes", "refs/heads")  # of both, the own one stays
        if listed is None:
            return None
        found = {}
        for ref, _, commit in (line.partition("\t") for line in listed):
            _, kind, rest = ref.split("/", 2)
            found[rest if kind == "heads" else rest.partition("/")[2]] = commit
        return found

    def existing(self, commits: Iterable[str]) -> set[str]:
        """Return those of the commits that this clone has."""
        return {one for part in _parts(commits) for one in self._rev_list("--no-walk", "--ignore-missing", *part)}

    def ancestors(self, commits: Iterable[str], of: str) -> set[str]:
        """Return those of the commits, which must exist, that are part of the history of `of`."""
        wanted = set(commits)
        for part in _parts(wanted):
            beyond = self._lines("rev-list", *part, f"^{of}", "--")
            wanted -= set(part) if beyond is None else set(beyond)
        return wanted

    def _rev_list(self, *arguments: str) -> list[str]:
        return self._lines("rev-list", *arguments, "--") or []

    def containing(self, commit: str) -> list[str]:
        """Return the branches that a commit is part of."""
        return self._lines("for-each-ref", "--format=%(refname:lstrip=2)", f"--contains={commit}", "refs/heads") or []

    def was_tip(self, branch: str, commit: str) -> bool:
        """Return True if the log of a branch has the commit: it was rebased or amended since."""
        return commit in self._rev_list("--walk-reflogs", f"refs/heads/{branch}")

    def made_since(self, branch: str, commit: str) -> list[str]:
        """Return the commits that were made on a branch after it stood at this one, oldest first, by its log."""
        made = []
        for one, said in self._log_of(f"refs/heads/{branch}"):
            if one == commit:
                break
            if said.startswith("commit"):
                made.append(one)
        return made[::-1]

    def left_at(self, branch: str) -> str:
        """Return the commit at which this work tree last left a branch; "" if its log does not say."""
        moves = self._log_of("HEAD")
        left = f"checkout: moving from {branch} to "
        return next((older for (_, said), (older, _) in pairwise(moves) if said.startswith(left)), "")

    def _log_of(self, ref: str) -> list[tuple[str, str]]:
        """Return the commits that a ref has stood at and the act that moved it there, newest first."""
        lines = self._lines("log", "--walk-reflogs", "--format=%H%x09%gs", ref, "--") or []
        return [(commit, said) for commit, _, said in (line.partition("\t") for line in lines)]

    def is_merged_otherwise(self, tip: str, commit: str, main: str) -> bool:
        """Return True if a rebase has brought a commit, or a squash a whole branch, into the main branch."""
        picked = self._lines("cherry", main, commit) or []
        if picked and all(line.startswith("-") for line in picked):
            return True
        base = (self._lines("merge-base", main, tip) or [""])[0]
        whole = run_git(self._root, "diff", *_PLAIN, base, tip) if base else None
        if not whole:
            return False
        most = f"--max-count={MOST_COMPARED}"
        shown = run_git(self._root, "log", "-p", "--format=%x00", *_PLAIN, "--no-merges", most, f"{base}..{main}")
        return _mark(whole) in {_mark(one) for one in (shown or b"").split(b"\0")[1:]}

    def renamed_to(self, path: str) -> str | None:
        """Return the present name of a file that was renamed, by a commit or in the index."""
        seen, name = {path}, path
        for _ in range(MOST_HOPS):
            following = self._staged_rename(name) or self._committed_rename(name)
            if following is None or following in seen:
                break
            seen.add(following)
            name = following
        return name if name != path else None

    def _staged_rename(self, path: str) -> str | None:
        said = self._names("diff", "--cached", "-M", "--diff-filter=R", "--name-status", "-z", *_PLAIN, "HEAD")
        return _renames(said).get(path)

    def _committed_rename(self, path: str) -> str | None:
        """Return the name that the commit which removed a file gave it."""
        ended = self._lines("log", "-1", "--format=%H", "--diff-filter=D", "--no-renames", "HEAD", "--", path)
        if not ended:
            return None
        return _renames(
            self._names("diff-tree", "-r", "-m", "-M", "--no-commit-id", "--name-status", "-z", "--root", ended[0])
        ).get(path)

    def _names(self, *arguments: str) -> list[str]:
        return [os.fsdecode(name) for name in (run_git(self._root, *arguments) or b"").split(b"\0")]

    def untracked(self) -> list[str]:
        """Return the files that git neither tracks nor ignores."""
        return [name for name in self._names("ls-files", "-z", "--others", "--exclude-standard") if name]

    def naming(self, word: str, suffix: str = "") -> list[str]:
        """Return the files that have a word, tracked or not."""
        where = f"*.{suffix}" if suffix else "*"
        said = self._names("grep", "-z", "-l", "-w", "-F", "--untracked", "-I", "-e", word, "--", where)
        return [name for name in said if name]

    def named(self, name: str) -> list[str]:
        """Return the tracked files with that name, in any folder."""
        return [one for one in self._names("ls-files", "-z", "--", f":(glob)**/{name}") if one]

    def text_at(self, commit: str, path: str) -> str | None:
        """Return the text of a file in a commit."""
        said = run_git(self._root, "cat-file", "blob", f"{commit}:{path}") if commit.isalnum() else None
        return None if said is None else said.decode("utf-8", "replace")


def _parts(commits: Iterable[str]) -> Iterable[Sequence[str]]:
    every = sorted(one for one in commits if one.isalnum())
    return [every[start : start + AT_ONCE] for start in range(0, len(every), AT_ONCE)]


def _renames(said: Sequence[str]) -> dict[str, str]:
    """Return old name → new name from `--name-status -z`."""
    words, found = iter(said), {}
    for status in words:
        if status[:1] in ("R", "C"):
            old, new = next(words, ""), next(words, "")
            if status[:1] == "R":
                found[old] = new
        elif status:
            next(words, "")
    return found


def _mark(patch: bytes) -> bytes:
    """Return a hash of the lines that a patch adds and removes, and of the names of the files."""
    lines = [line for line in patch.split(b"\n") if line[:1] in (b"+", b"-")]
    return blake2b(b"\n".join(b"".join(line.split()) for line in lines), digest_size=16).digest() if lines else b""
