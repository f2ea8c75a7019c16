"""Listing the files of a folder that a stranger made: nothing of it runs, nothing outside is read, and it ends."""

import os
import random
import re
import shutil
import time
from pathlib import Path

import pytest

from kept.projects import sources
from tests.folders import directory, git, needs_git, posix_only

MISSING = "1234567890123456789012345678901234567890"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tmp_path.resolve()


# Programs named in a repository's configuration

FETCHED = {
    "ssh": {"remote.origin.url": "ssh://x/y", "core.sshCommand": "{run}"},
    "ssh, allowed by the repository": {
        "remote.origin.url": "ssh://x/y",
        "core.sshCommand": "{run}",
        "protocol.allow": "always",
        "protocol.ssh.allow": "always",
    },
    "scp": {"remote.origin.url": "x:y", "core.sshCommand": "{run}"},
    "path": {"remote.origin.url": "{top}", "remote.origin.uploadpack": "{run}"},
    "file": {
        "remote.origin.url": "file://{top}",
        "remote.origin.uploadpack": "{run}",
        "protocol.file.allow": "always",
    },
    "ext": {"remote.origin.url": "ext::{program} %S", "protocol.ext.allow": "always"},
    "proxy": {"remote.origin.url": "git://127.0.0.1:9/y", "core.gitProxy": "{program}"},
    "credentials": {"remote.origin.url": "http://127.0.0.1:9/y", "credential.helper": "!{run}"},
}
ASKED = {
    "fsmonitor": {"core.fsmonitor": "{program}"},
    "hooks": {"core.hooksPath": "{top}/hooks"},
    "filter": {"filter.x.clean": "{run}", "filter.x.smudge": "{run}", "filter.x.process": "{run}"},
    "diff": {"diff.external": "{run}", "diff.x.textconv": "{run}", "core.pager": "{run}", "pager.ls-files": "{run}"},
    "alias": {"alias.ls-files": "!{run}"},
}


@needs_git
@posix_only
@pytest.mark.parametrize("name", [*FETCHED, *ASKED])
def test_listing_files_runs_no_program_that_the_repository_names(here: Path, name: str) -> None:
    top, ran = directory(here / "archive"), here / "ran"
    program = top / "program.sh"
    program.write_text(f"#!/bin/sh\ntouch {ran}\nexit 1\n")
    program.chmod(0o755)
    git("init", "-q", ".", cwd=top)
    (top / "a.md").write_text("# A\n")
    (top / ".gitattributes").write_text("* filter=x diff=x\n")
    git("add", "program.sh", cwd=top)
    git("update-index", "--add", "--cacheinfo", f"100644,{MISSING},.gitignore", cwd=top)
    git("update-index", "--skip-worktree", ".gitignore", cwd=top)
    shutil.copytree(top / ".git/hooks", top / "hooks")
    for hook in ("post-index-change", "reference-transaction", "fsmonitor-watchman"):
        shutil.copy(program, top / "hooks" / hook)
    settings = FETCHED.get(name) or ASKED[name]
    if name in FETCHED:
        settings |= {"core.repositoryformatversion": "1", "extensions.partialClone": "origin"}
        settings |= {"remote.origin.promisor": "true"}
    for key, value in settings.items():
        git("config", key, value.format(run=f"touch {ran}; false", top=top, program=program), cwd=top)
    assert "a.md" in sources.files_below(top)
    assert not ran.exists()


def test_git_is_started_in_one_place_only() -> None:
    texts = {path.name: path.read_text("utf-8") for path in Path(sources.__file__).parents[1].rglob("*.py")}
    starts = re.compile(r"\b(subprocess|posix_spawn|execv\w*|popen)\b")
    names_git = re.compile(r"""["']git(\.exe)?["']""")
    assert [name for name, text in texts.items() if starts.search(text) and names_git.search(text)] == ["sources.py"]


# Names that lead outside


@needs_git
@posix_only
@pytest.mark.parametrize(("depth", "linked"), [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)])
def test_no_file_below_a_link_is_listed_whatever_the_index_says(here: Path, depth: int, linked: int) -> None:
    parts = [f"d{number}" for number in range(depth)]
    top = directory(here / "archive")
    git("init", "-q", ".", cwd=top)
    (top / "own.md").write_text("# Own\n")
    secret = directory(here / "secret" / "/".join(parts[linked + 1 :])) if parts[linked + 1 :] else here / "secret"
    secret.mkdir(exist_ok=True)
    (secret / "plan.md").write_text("# Plan\n")
    name = "/".join([*parts, "plan.md"])
    git("update-index", "--add", "--cacheinfo", f"100644,{MISSING},{name}", cwd=top)
    (top / "/".join(parts[:linked])).mkdir(parents=True, exist_ok=True)
    (top / "/".join(parts[: linked + 1])).symlink_to(here / "secret")
    assert (top / name).is_file()
    assert sources.files_below(top) == ["own.md"]


@posix_only
@pytest.mark.parametrize("name", ["../secret.md", "a/../../secret.md", "/secret.md", "{here}/secret.md", ".git/config"])
def test_no_name_that_git_gives_leads_out_of_the_folder(here: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """An index is a file of the archive, and may name any path."""
    top = directory(here / "archive")
    directory(top / "a")
    directory(top / ".git")
    for path in (here / "secret.md", top / "own.md", top / ".git/config"):
        path.write_text("# Text\n")
    listed = b"\0".join([b"own.md", os.fsencode(name.format(here=here)), b""])
    monkeypatch.setattr(sources, "run_git", lambda folder, *arguments: listed)
    assert sources.files_below(top) == ["own.md"]


# .gitignore without git


def _without_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kept.projects.sources.shutil.which", lambda name: None)


@pytest.mark.parametrize(
    "line",
    [
        "*a" * 30 + "b",
        "**a" * 30 + "b",
        "**/a*" * 30 + "/b",
        "a**/" * 30 + "b",
        "?*" * 100 + "b",
        "[a]*" * 60 + "b",
        "*" * 900 + "b",
        "**/" * 200 + "b",
        "*a" * 400_000,
        "[" * 100_000,
        "*/" * 300 + "b",
    ],
    ids=range(11),
)
def test_an_ignore_rule_never_takes_long(here: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    _without_git(monkeypatch)
    deep = directory(here / "/".join(["a" * 30] * 20))
    (deep / ("a" * 200)).write_text("x")
    (here / ("a" * 200)).write_text("x")
    (here / ".gitignore").write_text(f"{line}\n")
    start = time.perf_counter()
    sources.files_below(here)
    assert time.perf_counter() - start < 5


def test_many_ignore_rules_never_take_long(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _without_git(monkeypatch)
    for number in range(200):
        (here / f"{number}.md").write_text("x")
    (here / ".gitignore").write_text("".join(f"*a*b*{number}c\n" for number in range(300_000)))
    start = time.process_time()  # not the clock: others may use this machine
    assert len(sources.files_below(here)) == 201
    assert time.process_time() - start < 6


@posix_only
def test_an_ignore_file_that_is_a_pipe_makes_nobody_wait(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _without_git(monkeypatch)
    os.mkfifo(here / ".gitignore")
    (here / "a.md").write_text("x")
    assert sources.files_below(here) == ["a.md"]


@needs_git
@posix_only
@pytest.mark.parametrize("seed", range(6))
def test_our_reading_of_ignore_files_agrees_with_git(here: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    draw = random.Random(seed)
    names = ["a", "ab", "b.md", "abc.log", "x"]
    for _ in range(25):
        path = here / "/".join(draw.choice(names) + str(level) for level in range(draw.randint(1, 4)))
        path.mkdir(parents=True, exist_ok=True)
        (path / draw.choice(["a.md", "b.md", "abc.log", "x"])).write_text("x")
    pieces = ["a", "b", "*", "?", "[ab]", "[!a]", "0", "1", ".md"]
    lines = []
    for _ in range(4):
        parts = ["".join(draw.choices(pieces, k=draw.randint(1, 3))) for _ in range(draw.randint(1, 3))]
        parts = [part.replace("**", "*") for part in parts]
        parts.insert(draw.randint(0, len(parts)), "**") if draw.random() < 0.4 else None
        lines.append(draw.choice(["", "", "/"]) + "/".join(parts) + draw.choice(["", "/"]))
    (here / ".gitignore").write_text("\n".join(lines) + "\n")
    git("init", "-q", ".", cwd=here)
    by_git = sources.files_below(here)
    _without_git(monkeypatch)
    assert sources.files_below(here) == by_git, lines
