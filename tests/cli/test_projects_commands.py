"""`kept projects`, and that no command run in one project shows a memory of another."""

from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.folders import make_repository, make_worktree

CANARY = "the canary sings"


def names(shell: Shell) -> list[str]:
    return [project["name"] for project in shell.json("projects", "list")["projects"]]


def test_projects_are_listed_and_the_current_one_is_marked(shell: Shell) -> None:
    shell("remember", "x")
    shell("remember", "y", "--project", "web")
    lines = shell("projects", "list").splitlines()
    assert lines[0].startswith("* app  ")
    assert lines[0].endswith(str(shell.folder / "app"))
    assert lines[1].startswith("  web  ")
    assert lines[1].endswith("no directory")
    document = shell.json("projects", "list")
    assert document["current"] == document["projects"][0]["id"]


def test_a_project_is_renamed(shell: Shell) -> None:
    shell("remember", "x")
    assert shell("projects", "rename", "app", "api").endswith(" is called api now.\n")
    assert names(shell) == ["api"]
    assert "`kept projects list` shows names and ids." in shell.fails("projects", "rename", "app", "b")
    assert "must not be empty" in shell.fails("projects", "rename", "api", " ")


def test_a_directory_is_linked_to_a_project(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell("remember", "x")
    other = shell.folder / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    assert shell.json("list")["memories"] == []
    assert shell("projects", "link", "app").startswith(". belongs to project app (")
    assert len(shell.json("list")["memories"]) == 1
    assert "There is no directory" in shell.fails("projects", "link", "app", "/no/such/place")


def test_merging_moves_everything_and_the_old_name_still_works(shell: Shell) -> None:
    for text in ("one", "two", "three"):
        shell("remember", text, "--project", "old")
    shell("forget", "3", "--project", "old")
    shell("remember", "ONE", "--project", "new")
    said = shell("projects", "merge", "old", "new", "--as", "admin")
    assert said == "Moved 2 memories from old into new; 1 was already there.\n"
    assert names(shell) == ["new"]
    for project in ("new", "old"):
        found = shell.json("list", "--project", project)["memories"]
        assert sorted(memory["content"] for memory in found) == ["ONE", "two"]
    assert [m["content"] for m in shell.json("list", "--project", "new", "--status", "forgotten")["memories"]] == [
        "three"
    ]
    assert "the same project" in shell.fails("projects", "merge", "old", "new", "--as", "admin")


def test_a_name_that_reads_like_another_is_asked_about(shell: Shell) -> None:
    shell("remember", "The canary sings", "--project", "Ab3")
    for name in ("aB3", "Ab3 ", "\uff21b3", "AB3"):
        said = shell.fails("list", "--project", name)
        assert f"There is no project {name!r}. Did you mean Ab3?" in said
        assert "canary" not in said
    shell("remember", "Another one", "--project", "aB3", "--yes")
    assert "canary" not in shell("list", "--project", "aB3")
    assert names(shell) == ["Ab3", "aB3"] or names(shell) == ["aB3", "Ab3"]


def test_a_person_may_name_a_project_by_its_id_or_the_directory_above(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("remember", "The canary sings")
    own = shell.json("projects", "list")["current"]
    (shell.folder / "app/below").mkdir()
    monkeypatch.chdir(shell.folder / "app/below")
    make_repository(shell.folder / "app/below")
    assert "canary" not in shell("list")
    assert "canary" in shell("list", "--project", own)
    assert "canary" in shell("list", "--project", "..")


def test_merging_two_projects_is_for_an_admin(shell: Shell) -> None:
    shell("remember", "one", "--project", "old")
    shell("remember", "two", "--project", "new")
    assert "`--as admin`" in shell.fails("projects", "merge", "old", "new")
    assert names(shell) == ["new", "old"]


def test_no_command_run_in_one_project_shows_a_memory_of_another(shell: Shell) -> None:
    """Done-when 4 of the house: the same folder name twice, a link, a worktree, a hostile name."""
    first = make_repository(shell.folder / "one" / "app")
    second = make_repository(shell.folder / "two" / "app")
    link = shell.folder / "link"
    link.symlink_to(first)
    worktree = make_worktree(first / ".git", shell.folder / "worktree")
    uid = shell.json("remember", CANARY, "--project", str(first))["memory"]["uid"]
    shell("remember", "other", "--project", str(second))
    for place in (link, worktree):
        assert shell.json("list", "--project", str(place))["memories"][0]["content"] == CANARY
    commands = [
        *[["list"], ["list", "--status", "archived"], ["history"], ["status"], ["recall", "canary", "sings"], ["why"]],
        *[["show", uid], ["history", uid], ["forget", uid], ["undo"], ["erase", uid, "--yes"], ["projects", "list"]],
        *[["show", "1"], ["doctor"], ["restore", uid], ["edit", uid, "mine"], ["pin", uid], ["rate", uid, "+"]],
    ]
    for project in (str(second), "../app", "a'; drop table memories; --"):
        for command in commands:
            output = shell.type(*command, "--project", project).output
            assert CANARY not in output, (command, project)
    assert shell.json("show", "1", "--project", str(first))["content"] == CANARY


@pytest.mark.parametrize("name", ["../../etc", "a\nb", "global", "x" * 300, "~nobody-at-all/x"])
def test_hostile_names_of_projects_are_refused(shell: Shell, name: str, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    result = shell.type("remember", "x", "--project", name)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert sorted(tmp_path.rglob("*")) == before
