"""Small makers of directories: repositories as git leaves them, and a place where permissions count."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

posix_only = pytest.mark.skipif(os.name != "posix", reason="needs the permissions, names and links of POSIX")
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

NOBODY = 65534


def directory(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def make_repository(path: Path) -> Path:
    """What `git init` leaves, as far as anyone needs it to recognise a repository."""
    for name in ("objects", "refs"):
        (path / ".git" / name).mkdir(parents=True)
    (path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    return path


def make_worktree(common: Path, path: Path) -> Path:
    """What `git worktree add` leaves; `common` is the repository's own directory."""
    inside = directory(common / "worktrees" / path.name)
    (inside / "HEAD").write_text("ref: refs/heads/other\n")
    (inside / "commondir").write_text("../..\n")
    (directory(path) / ".git").write_text(f"gitdir: {inside}\n")
    (inside / "gitdir").write_text(f"{path / '.git'}\n")
    return path


def git(*arguments: str | Path, cwd: Path) -> None:
    """Run git as if nobody had configured it."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *who, *map(str, arguments)], cwd=cwd, env=environ, check=True, capture_output=True)


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def common_user() -> Iterator[Path]:
    """A directory of a user for whom permissions count, and we act as that user, even if root runs the tests."""
    own = Path(tempfile.mkdtemp()).resolve()
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(own, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield own
    finally:
        if is_root:
            os.seteuid(0)
        _open_up(own)
        shutil.rmtree(own)


def _open_up(folder: Path) -> None:
    folder.chmod(0o700)
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            _open_up(path)
