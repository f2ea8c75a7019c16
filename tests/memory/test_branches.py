"""Memories know the branch that they were written on, in a real repository with branches of every fate."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from kept import Kept
from kept.memory.deliver import Listener
from tests.memory.test_freshness import Repository

MERGED = ("merge", "squash", "rebase")
FATES = (*MERGED, "delete", "open", "tree")


def said_on(fate: str) -> str:
    return f"The ferry {fate} timetable is stored in the {fate} ledger."


def told(memory: Kept, fate: str) -> str:
    """Return the line that a prompt about the branch is given."""
    prompt = f"Where is the {fate} ledger?"
    block = memory.deliveries.for_prompt(prompt, Listener(session=os.urandom(4).hex(), event="prompt"))
    lines = [line for line in block.split("\n") if f"{fate} ledger" in line]
    assert len(lines) == 1, block
    return lines[0]


def repository_of(root: Path, home: Path, fates: Sequence[str] = FATES, *, is_early: bool = False) -> Repository:
    """Make a repository with a branch for each fate, each with two commits and a memory between or before them."""
    made = Repository(root, home)
    made.git("init", "-q", "-b", "main")
    made.commit(start_py="x = 1\n")
    with made.open() as memory:
        memory.remember(said_on("main"))
    for fate in fates:
        made.git("switch", "-q", "-c", fate, "main")
        files = [{f"{fate}_py": f"name = '{fate}'\n"}, {f"{fate}2_py": f"more = '{fate}'\n"}]
        if not is_early:
            made.commit(**files.pop(0))
        with made.open() as memory:
            memory.remember(said_on(fate))
            assert "on branch" not in told(memory, fate)
        for changes in files:
            made.commit(**changes)
    made.git("switch", "-q", "main")
    return made


def labels(repository: Repository) -> dict[str, bool]:
    """Return for each branch whether its memory is told with a label."""
    with repository.open() as memory:
        found = {}
        for fate in FATES:
            block = told(memory, fate)
            assert said_on(fate) in block
            found[fate] = f"on branch {fate}" in block
        return found


@pytest.mark.parametrize("is_early", [False, True])
@pytest.mark.parametrize("is_asked_early", [False, True])
def test_a_memory_of_an_unmerged_branch_is_labelled_until_it_is_merged(
    tmp_path: Path, is_early: bool, is_asked_early: bool
) -> None:
    """Whether it was said before or after the first commit of the branch, and git was asked before the merge or not."""
    repository = repository_of(tmp_path / "ferry", tmp_path / "home", is_early=is_early)
    assert labels(repository) == dict.fromkeys(FATES, True)
    with repository.open() as memory:
        assert "on branch" not in told(memory, "main")
        if is_asked_early:
            memory.store.follow_code()
    assert labels(repository) == dict.fromkeys(FATES, True)  # nothing is merged yet
    linked = tmp_path / "linked"
    repository.git("worktree", "add", "-q", str(linked), "tree")

    repository.commit(start_py="x = 2\n")
    repository.git("merge", "-q", "--no-ff", "-m", "merge", "merge")
    repository.git("merge", "-q", "--squash", "squash")
    repository.git("commit", "-q", "-m", "squashed")
    repository.git("branch", "-q", "-D", "squash")
    repository.git("switch", "-q", "rebase")
    repository.git("rebase", "-q", "main")
    repository.git("switch", "-q", "main")
    repository.git("merge", "-q", "--ff-only", "rebase")
    repository.git("branch", "-q", "-D", "rebase", "delete")
    with repository.open() as memory:
        memory.upkeep()
    assert labels(repository) == {fate: fate not in MERGED for fate in FATES}
    repository.git("switch", "-q", "--detach", "main")
    with repository.open() as memory:
        memory.store.follow_code()
    assert labels(repository) == {fate: fate not in MERGED for fate in FATES}
    repository.git("switch", "-q", "main")
    with repository.open(linked) as memory:
        assert "on branch" not in told(memory, "tree")
        assert "on branch open" in told(memory, "open")

    with repository.open() as memory:
        stale = {finding.memory.content: finding for finding in memory.reviews.list(reasons=("stale",))}
        assert [*stale] == [said_on("delete")]
        assert stale[said_on("delete")].detail == "branch delete was deleted without a merge"
        memory.reviews.apply([f"keep:{stale[said_on('delete')].ref}"])  # a person says that it holds all the same
        assert "on branch" not in told(memory, "delete")


def test_a_decision_of_a_branch_without_a_commit_is_not_told_as_the_projects(tmp_path: Path) -> None:
    """The branch and main stand at the same commit: only its name tells them apart."""
    repository = repository_of(tmp_path / "ferry", tmp_path / "home", ())
    repository.git("switch", "-q", "-c", "exp")
    with repository.open() as memory:
        memory.remember(said_on("exp"))
        assert "on branch" not in told(memory, "exp")
    repository.git("switch", "-q", "main")
    for _ in range(2):
        with repository.open() as memory:
            assert "on branch exp" in told(memory, "exp")
            memory.store.follow_code()
    repository.commit(start_py="x = 2\n")
    repository.git("switch", "-q", "-c", "late", "HEAD~1")  # main is ahead of where this one begins
    with repository.open() as memory:
        memory.remember(said_on("late"))
    repository.git("switch", "-q", "main")
    with repository.open() as memory:
        memory.store.follow_code()
        assert "on branch late" in told(memory, "late")
    repository.git("branch", "-q", "-D", "exp")
    with repository.open() as memory:
        [finding] = memory.reviews.list(reasons=("stale",)).findings
        assert (finding.memory.content, finding.detail) == (
            said_on("exp"),
            "branch exp was deleted without a merge",
        )


def test_a_linked_worktree_has_its_own_branch(tmp_path: Path) -> None:
    repository = repository_of(tmp_path / "ferry", tmp_path / "home", ("delete", "open", "tree"))
    linked = tmp_path / "linked"
    repository.git("worktree", "add", "-q", str(linked), "tree")
    with repository.open(linked) as memory:
        assert "on branch" not in told(memory, "tree")
        assert "on branch open" in told(memory, "open")
        memory.remember("The linked ferry timetable is stored in the linked ledger.")
    with repository.open() as memory:
        assert "on branch tree" in told(memory, "linked")


def test_a_branch_upon_another_has_the_memories_of_both(tmp_path: Path) -> None:
    repository = repository_of(tmp_path / "ferry", tmp_path / "home", ("delete", "open", "tree"))
    repository.git("switch", "-q", "-c", "upon", "open")
    with repository.open() as memory:
        memory.store.follow_code()
        assert "on branch" not in told(memory, "open")
        assert "on branch tree" in told(memory, "tree")
    repository.git("switch", "-q", "main")
    with repository.open() as memory:
        assert "on branch open" in told(memory, "open")


def test_a_renamed_and_an_amended_branch_keep_their_memories(tmp_path: Path) -> None:
    repository = repository_of(tmp_path / "ferry", tmp_path / "home", ("delete", "open", "tree"))
    repository.git("branch", "-m", "delete", "renamed")
    repository.git("switch", "-q", "open")
    repository.git("reset", "-q", "--hard", "main")
    repository.commit(open_py="name = 'quite another'\n")
    with repository.open() as memory:
        memory.store.follow_code()
        assert "on branch renamed" in told(memory, "delete")
        assert "on branch" not in told(memory, "open")
    repository.git("switch", "-q", "main")
    repository.git("merge", "-q", "--no-ff", "-m", "merge", "open")
    with repository.open() as memory:
        memory.store.follow_code()
        assert "on branch" not in told(memory, "open")


def test_a_detached_commit_is_named_until_a_branch_has_it(tmp_path: Path) -> None:
    repository = repository_of(tmp_path / "ferry", tmp_path / "home", ("delete", "open", "tree"))
    repository.git("switch", "-q", "--detach", "main")
    commit = repository.commit(alone_py="x = 3\n")
    with repository.open() as memory:
        memory.remember("The detached ferry timetable is stored in the detached ledger.")
        assert "at commit" not in told(memory, "detached")
    repository.git("switch", "-q", "main")
    with repository.open() as memory:
        assert f"at commit {commit[:7]}" in told(memory, "detached")
    repository.git("merge", "-q", "--ff-only", commit)
    with repository.open() as memory:
        memory.store.follow_code()
        assert "at commit" not in told(memory, "detached")


def test_memories_of_unmerged_branches_come_last(tmp_path: Path) -> None:
    repository = repository_of(tmp_path / "ferry", tmp_path / "home", ("delete", "open", "tree"))
    with repository.open() as memory:
        hits = memory.recall("ferry timetable ledger", limit=10).hits
        assert [hit.branch for hit in hits if not hit.branch] == [hit.branch for hit in hits][:1]
        assert hits[0].content == said_on("main")
