"""Git ref of a team: `refs/kept/<project>` of the repository's own remote, with one file for each shared memory.

Reads and writes objects and that ref alone, by git's plumbing: no branch, no index and no work tree is touched. Rule:
anyone who can push may have written anything there. Sizes are asked for before anything is read, and the author of
a commit is a claim that `memory.team` asks a person about.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kept.errors import InvalidInput, NotFound, StorageError
from kept.projects.files import shown
from kept.projects.sources import GitAnswer, run_git_as_user, without_password

NAMESPACE = "refs/kept/"
NO_COMMIT = "0" * 40
MOST_FILES = 20_000
MOST_COMMITS = 50_000
MAX_TOTAL_BYTES = 100_000_000  # of all versions of all files together
_UNSAFE = re.compile(r"[^0-9A-Za-z._-]+")
_TREE_LINE = re.compile(rb"(\d{6}) (\w+) ([0-9a-f]{40,64}) +(\d+|-)\t(.*)", re.DOTALL)


class Author(NamedTuple):
    """Author that a commit names. Anyone who can push can write any name there."""

    email: str
    name: str

    @property
    def key(self) -> str:
        """Return the name that a person accepts them under: the address, else the name."""
        return (self.email or self.name).strip().casefold()

    def __str__(self) -> str:
        """Return the author for a person to read. Letters that only look like others are spelled out."""
        said = f"{self.name} <{self.email}>" if self.email else self.name
        return said.encode("ascii", "backslashreplace").decode()[:150]


class FileVersion(NamedTuple):
    """One version of a file that a commit wrote."""

    author: Author
    name: str
    blob: str


class TreeFile(NamedTuple):
    """A line of the tree at the tip, as git lists it."""

    mode: str
    type: str
    blob: str
    size: int
    name: bytes


class TeamRef:
    """Ref of one repository at one remote."""

    def __init__(self, folder: Path, remote: str | None) -> None:
        self._folder = folder
        remotes = self._text("remote").split()
        self.remote = remote or next((one for one in ("origin", *remotes) if one in remotes), "")
        if self.remote not in remotes:
            raise NotFound(
                f"This repository has no remote {shown(self.remote)!r}."
                if remote
                else "This repository has no remote.",
                hint="Team memory is kept at the repository's own remote: `git remote add origin URL`.",
            )
        self.url = self._text("remote", "get-url", self.remote)
        self.name = f"{NAMESPACE}{_project_in(self.url)}"

    def _git(self, *arguments: str, given: bytes = b"") -> GitAnswer:
        return run_git_as_user(self._folder, *arguments, given=given)

    def _text(self, *arguments: str, given: bytes = b"") -> str:
        """Return the output of a command. Raises StorageError with git's own words."""
        return os.fsdecode(self._bytes(*arguments, given=given)).strip()

    def _bytes(self, *arguments: str, given: bytes = b"") -> bytes:
        answer = self._git(*arguments, given=given)
        if not answer.is_done:
            raise StorageError(f"git {arguments[0]} failed: {answer.complaint}", hint="Nothing was lost; try again.")
        return answer.output

    def _from_remote(self, *arguments: str) -> str:
        """Return the output of a command that asks the remote. Raises StorageError with git's own words."""
        answer = self._git(*arguments)
        if not answer.is_done:
            raise StorageError(
                f"The remote {self.remote} ({without_password(self.url)}) cannot be read: {answer.complaint}",
                hint="Nothing was changed. `git remote -v` shows the address; check it, and that you may read it.",
            )
        return os.fsdecode(answer.output).strip()

    # ---- the ref ----

    def tip(self) -> str | None:
        """Return the commit that this clone knows as the last one; None before the first."""
        answer = self._git("rev-parse", "--verify", "--quiet", f"{self.name}^{{commit}}")
        return os.fsdecode(answer.output).strip() if answer.is_done else None

    def fetch(self) -> str | None:
        """Bring the ref of the remote here, and return its commit; None if the remote has none yet."""
        listed = self._from_remote("ls-remote", self.remote, self.name).split()
        if self.name not in listed:
            return None
        quiet = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-gc")
        self._from_remote("fetch", *quiet, "--refmap=", self.remote, f"+{self.name}:{self.name}")
        return self.tip()

    def commit(self, tip: str | None, files: Mapping[str, bytes], message: str) -> str:
        """Make a commit that sets these files, and leaves all others as they are. No ref is changed."""
        lines = [f"100644 blob {self._blob(data)}\t{name}".encode() for name, data in sorted(files.items())]
        old = [] if tip is None else self.tree(tip)
        lines += [
            f"{one.mode} {one.type} {one.blob}\t".encode() + one.name
            for one in old
            if os.fsdecode(one.name) not in files
        ]
        tree = self._text("mktree", "-z", "--missing", given=b"\0".join(lines) + b"\0")
        parents = () if tip is None else ("-p", tip)
        answer = self._git("commit-tree", tree, *parents, "-m", message)
        if not answer.is_done:
            raise InvalidInput(
                f"git does not know who you are: {answer.complaint}",
                hint='Set `git config user.name "Your Name"` and `git config user.email you@example.com`.',
            )
        return os.fsdecode(answer.output).strip()

    def push(self, commit: str, tip: str | None) -> bool:
        """Make a commit the tip of the ref at the remote. Returns False if another push came first."""
        lease = f"--force-with-lease={self.name}:{tip or ''}"
        answer = self._git("push", "--quiet", "--no-verify", lease, self.remote, f"{commit}:{self.name}")
        if answer.is_done:
            self._bytes("update-ref", self.name, commit)
            return True
        listed = self._from_remote("ls-remote", self.remote, self.name).split()
        if (listed[0] if listed else None) == tip:
            raise StorageError(
                f"{self.remote} does not take {self.name}: {answer.complaint}",
                hint="Check that you may push to the repository.",
            )
        return False

    def _blob(self, data: bytes) -> str:
        return self._text("hash-object", "-w", "--stdin", given=data)

    # ---- reading ----

    def tree(self, tip: str) -> list[TreeFile]:
        """Return the files at a commit. Raises InvalidInput if there are too many."""
        parts = self._bytes("ls-tree", "-l", "-z", tip).split(b"\0")
        lines = [found.groups() for part in parts if (found := _TREE_LINE.fullmatch(part))]
        if len(lines) > MOST_FILES:
            raise InvalidInput(f"{self.name} has {len(lines):,} files.", hint=f"At most {MOST_FILES:,} are read.")
        return [
            TreeFile(mode.decode(), type.decode(), blob.decode(), int(size) if size.isdigit() else 0, name)
            for mode, type, blob, size, name in lines
        ]

    def versions(self, tip: str) -> Iterator[FileVersion]:
        """Return each version of each file with the author of its commit, the oldest first."""
        most = f"--max-count={MOST_COMMITS}"
        told = self._bytes("rev-list", "--first-parent", "--reverse", most, "--format=%ae%x09%an", tip)
        lines = told.decode("utf-8", "replace").split("\n")
        authors = {
            head.removeprefix("commit "): Author(*said.partition("\t")[::2])
            for head, said in zip(lines[::2], lines[1::2], strict=False)
        }
        asked = ("diff-tree", "--stdin", "-r", "--root", "--no-renames", "--raw", "--no-abbrev", "--no-ext-diff")
        raw = self._bytes(*asked, given=_listed(authors)).decode("utf-8", "replace")
        author = Author("", "")
        for line in raw.split("\n"):
            if not line.startswith(":"):
                author = authors.get(line, Author("", ""))
                continue
            about, _, name = line.partition("\t")
            mode, blob = about.split(" ")[1], about.split(" ")[3]
            if mode == "100644":
                yield FileVersion(author, name, blob)

    def contents(self, blobs: Sequence[str], max_bytes: int) -> dict[str, bytes]:
        """Return the contents of these blobs, without those above `max_bytes`. Raises InvalidInput for too much."""
        sizes = self._sizes(list(dict.fromkeys(blobs)))
        small = {blob: size for blob, size in sizes.items() if size <= max_bytes}
        if (total := sum(small.values())) > MAX_TOTAL_BYTES:
            raise InvalidInput(
                f"{self.name} has {total // 1_000_000:,} MB of statements.", hint="Start a new ref with fewer of them."
            )
        return dict(_blobs_in(self._bytes("cat-file", "--batch", given=_listed(small)))) if small else {}

    def _sizes(self, blobs: Sequence[str]) -> dict[str, int]:
        """Return the size of each of these objects that is a blob."""
        told = self._bytes("cat-file", "--batch-check", given=_listed(blobs)).decode() if blobs else ""
        lines = [line.split() for line in told.splitlines()]
        return {line[0]: int(line[2]) for line in lines if len(line) == 3 and line[1] == "blob"}


def _listed(names: Iterable[str]) -> bytes:
    return "".join(f"{name}\n" for name in names).encode()


def _blobs_in(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Return the objects in the output of `cat-file --batch`."""
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        name, _, size = data[at:end].decode().split(" ")
        yield name, data[end + 1 : end + 1 + int(size)]
        at = end + 1 + int(size) + 1


def _project_in(url: str) -> str:
    """Return the name of the project in the URL of its remote: all clones of it have the same."""
    last = re.split(r"[/\\:]", url.rstrip("/\\"))[-1].removesuffix(".git")
    name = _UNSAFE.sub("-", last).strip(".-")[:80].removesuffix(".lock").replace("..", "-")
    return name or "project"
