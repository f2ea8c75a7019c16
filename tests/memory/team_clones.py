"""Clones of one repository with a bare remote, each with its own person, home and store."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import kept
from tests.builders import FakeClock
from tests.folders import git

SETTINGS = kept.Settings(auto_upkeep=False, recall_deadline_ms=60_000)
REF = "refs/kept/shop"


class Clone:
    """One person's clone."""

    def __init__(self, root: Path, name: str, clock: FakeClock) -> None:
        self.name, self.folder, self.clock = name, root / name / "shop", clock
        git("clone", "-q", root / "shop.git", self.folder, cwd=root)
        git("config", "user.name", name.capitalize(), cwd=self.folder)
        git("config", "user.email", self.email, cwd=self.folder)
        self.memory = kept.open(
            project=self.folder,
            home=root / name / "home",
            clock=clock,
            settings=SETTINGS,
            actor=kept.Actor(name=name),
            origin="user",
            confirm=lambda _question: True,
        )

    @property
    def email(self) -> str:
        return f"{self.name}@example.org"

    def says(self, text: str, *, shares: bool = True) -> str:
        """Store a statement, and share it; returns its ref."""
        ref = self.memory.remember(text).ref
        assert ref is not None
        if shares:
            self.memory.team.share(ref)
        return ref

    def texts(self) -> list[str]:
        """The live statements, in order of their text."""
        return sorted(one.content for one in self.memory.list(limit=1_000))

    def find(self, text: str) -> kept.Memory:
        return next(one for one in self.memory.list(limit=1_000) if one.content == text)


class Team:
    """Some people with clones of one repository."""

    def __init__(self, root: Path, names: Sequence[str], *, are_accepted: bool = True) -> None:
        self.root, self.clock = root, FakeClock()
        self.remote = root / "shop.git"
        git("init", "-q", "--bare", "-b", "main", self.remote, cwd=root)
        seed = root / "seed"
        git("init", "-q", "-b", "main", seed, cwd=root)
        (seed / "README.md").write_text("# Shop\n")
        git("add", ".", cwd=seed)
        git("commit", "-q", "-m", "start", cwd=seed)
        git("push", "-q", self.remote, "main", cwd=seed)
        self.clones = [Clone(root, name, self.clock) for name in names]
        if are_accepted:
            self.accept_each_other()

    def accept_each_other(self) -> None:
        """Let everybody push one statement, accept all others, and pull."""
        for clone in self.clones:
            clone.says(f"{clone.name} has a desk by the window in the office")
            self.clock.advance(seconds=1)
            clone.memory.team.push()
        for clone in self.clones:
            clone.memory.team.pull()
            for other in self.clones:
                if other is not clone:
                    clone.memory.team.trust(other.email)

    def blobs(self) -> str:
        """Every object of the remote, as text: all that ever left a clone."""
        return self._git("cat-file", "--batch-all-objects", "--batch").decode("utf-8", "replace")

    def refs(self) -> list[str]:
        return [
            line.split()[1]
            for line in self._git("for-each-ref", "--format=%(objectname) %(refname)").decode().splitlines()
        ]

    def _git(self, *arguments: str) -> bytes:
        return subprocess.run(["git", *arguments], cwd=self.remote, check=True, capture_output=True).stdout

    def forge(
        self, files: dict[str, bytes], *, author: str = "Mallory <mallory@example.org>", keeps: bool = True
    ) -> None:
        """Push a commit with these files to the ref, under any name, as everybody can who may push."""
        folder = self.root / "forge"
        if not folder.exists():
            git("clone", "-q", self.remote, folder, cwd=self.root)
        git("fetch", "-q", "origin", "+refs/kept/*:refs/kept/*", cwd=folder)
        name, _, email = author.partition(" <")
        environ = {**os.environ, "GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": email.rstrip(">")}
        environ |= {"GIT_COMMITTER_NAME": "x", "GIT_COMMITTER_EMAIL": "x@example.org"}

        def run(*arguments: str, given: bytes = b"") -> str:
            done = subprocess.run(
                ["git", *arguments], cwd=folder, env=environ, input=given, check=True, capture_output=True
            )
            return done.stdout.decode().strip()

        has_ref = REF in run("for-each-ref", "--format=%(refname)", "refs/kept").split()
        old = run("ls-tree", REF).splitlines() if has_ref and keeps else []
        lines = [line for line in old if line.partition("\t")[2] not in files]
        lines += [
            f"100644 blob {run('hash-object', '-w', '--stdin', given=data)}\t{path}" for path, data in files.items()
        ]
        tree = run("mktree", given="".join(f"{line}\n" for line in lines).encode())
        parents = ["-p", REF] if has_ref else []
        commit = run("commit-tree", tree, *parents, "-m", "x")
        run("push", "-q", "-f", "origin", f"{commit}:{REF}")

    def files(self) -> dict[str, bytes]:
        """The files at the tip of the remote's ref."""
        names = self._git("ls-tree", "--name-only", REF).decode().split()
        return {name: self._git("cat-file", "blob", f"{REF}:{name}") for name in names}

    def close(self) -> None:
        for clone in self.clones:
            clone.memory.close()
