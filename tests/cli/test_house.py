"""`kept store backup`, `kept store restore FILE` and `kept doctor`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import kept
from tests.cli.shell import Shell


def contents(shell: Shell) -> list[str]:
    return [memory["content"] for memory in shell.json("list")["memories"]]


def test_a_backup_brings_everything_back(shell: Shell) -> None:
    shell("remember", "one")
    shell("remember", "two", "--pin")
    assert "Backed up to b.db: 2 memories, 2 events" in shell("store", "backup", "b.db")
    for path in shell.home.rglob("kept.db*"):
        if path.is_file():
            path.unlink()
    assert "Restored 2 memories and 2 events from b.db." in shell("store", "restore", "b.db")
    assert contents(shell) == ["two", "one"]
    shell("undo")
    shell("remember", "three")
    assert contents(shell) == ["three", "one"]


def test_a_store_with_newer_changes_is_replaced_only_after_a_yes_and_is_kept(shell: Shell) -> None:
    shell("remember", "one")
    shell("store", "backup", "b.db")
    shell("remember", "two")
    assert "has changes that are not in b.db" in shell.fails("store", "restore", "b.db")
    assert contents(shell) == ["two", "one"]
    restored = shell.json("store", "restore", "b.db", "--yes")
    assert contents(shell) == ["one"]
    shell.clock.advance(seconds=1)
    shell("store", "restore", restored["replaced"], "--yes")
    assert contents(shell) == ["two", "one"]


def test_a_store_without_newer_changes_is_not_asked_about(shell: Shell) -> None:
    shell("remember", "one")
    shell("store", "backup", "b.db")
    assert "Restored 1 memory" in shell("store", "restore", "b.db")


def test_what_was_erased_does_not_come_back_from_a_backup(shell: Shell) -> None:
    shell("remember", "one")
    shell("remember", "the canary sings")
    shell("store", "backup", "b.db")
    shell("erase", "2", "--yes")
    assert shell.json("store", "restore", "b.db", "--yes")["left_out"] == 1
    assert shell.json("doctor", "--deep")["healthy"], "the journal says why it is missing"
    assert contents(shell) == ["one"]
    assert not [path for path in shell.home.rglob("*") if path.is_file() and b"canary" in path.read_bytes()]
    shell.clock.advance(seconds=1)
    shell("store", "restore", "b.db", "--yes")
    assert contents(shell) == ["one"], "a second time neither"


def test_erasing_also_erases_from_the_backups_in_the_home(shell: Shell) -> None:
    shell("remember", "the canary sings")
    shell("store", "backup", "b.db")
    shell("remember", "one")
    shell("store", "restore", "b.db", "--yes")
    shell("erase", "1", "--yes")
    assert not [path for path in shell.home.rglob("*") if path.is_file() and b"canary" in path.read_bytes()]


def test_a_backup_of_another_project_needs_a_yes(shell: Shell) -> None:
    shell("remember", "one", "--project", "a")
    shell("store", "backup", "a.db", "--project", "a")
    shell("remember", "zero", "--project", "b")
    assert "a.db holds the memory of another project" in shell.fails("store", "restore", "a.db", "--project", "b")
    shell("store", "restore", "a.db", "--project", "b", "--yes")
    assert [memory["content"] for memory in shell.json("list", "--project", "b")["memories"]] == ["one"]
    shell("remember", "two", "--project", "b")


def test_global_memory_has_backups_of_its_own(shell: Shell) -> None:
    shell("remember", "for all", "--global", "--yes")
    shell("store", "backup", "g.db", "--global")
    shell("erase", "g1", "--yes")
    shell("remember", "another", "--global", "--yes")
    assert "This needs confirmation: Replace all of global memory with the backup" in shell.fails(
        "store", "restore", "g.db"
    )
    shell("store", "restore", "g.db", "--yes")
    assert contents(shell) == []


def test_a_backup_overwrites_nothing(shell: Shell) -> None:
    shell("remember", "one")
    Path("b.db").write_text("mine")
    assert "b.db already exists." in shell.fails("store", "backup", "b.db")
    assert Path("b.db").read_text() == "mine"


def test_a_file_called_like_a_ref_is_named_with_its_folder(shell: Shell) -> None:
    shell("remember", "one")
    shell("store", "backup", "42")
    assert "There is no memory 42." in shell.fails("restore", "42")
    assert "Restored 1 memory" in shell("store", "restore", "./42")


def damage(whole: Path, other: Path) -> None:
    data = bytearray(whole.read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    other.write_bytes(data)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda whole, other: None, "There is no backup x.db."),
        (lambda whole, other: other.mkdir(), "There is no backup x.db."),
        (lambda whole, other: other.touch(), "x.db is not a backup"),
        (damage, "x.db"),
    ],
)
def test_what_is_no_backup_is_not_restored(shell: Shell, make: Callable[[Path, Path], None], sentence: str) -> None:
    shell("remember", "one")
    shell("store", "backup", "whole.db")
    make(Path("whole.db"), Path("x.db"))
    assert sentence in shell.fails("store", "restore", "x.db", "--yes")
    assert contents(shell) == ["one"]


def test_a_backup_needs_a_store_and_a_directory(shell: Shell) -> None:
    assert "nothing is kept here yet" in shell.fails("store", "backup", "b.db")
    shell("remember", "one")
    assert "Cannot write no/b.db" in shell.fails("store", "backup", "no/b.db")


def test_a_program_that_has_the_store_open_goes_on_after_a_restore(shell: Shell) -> None:
    shell("remember", "one")
    shell("store", "backup", "b.db")
    with kept.open(home=shell.home, clock=shell.clock) as other:
        other.remember("two")
        shell("store", "restore", "b.db", "--yes")
        assert [memory.content for memory in other.list()] == ["one"]
        other.remember("three")
    assert contents(shell) == ["three", "one"]


def test_the_doctor_counts_a_backup_that_somebody_wrote(shell: Shell, tmp_path: Path) -> None:
    shell("remember", "Harbor is staging")
    assert "There is no backup yet." in shell("doctor")
    assert "with --global of global memory" in shell("doctor")
    shell("store", "backup", str(tmp_path / "copy.db"))
    assert "There is no backup yet." not in shell("doctor")
    (tmp_path / "copy.db").unlink()
    assert "There is no backup yet." in shell("doctor")


def test_the_doctor_finds_a_healthy_store_well(shell: Shell) -> None:
    assert "nothing to check" in shell("doctor")
    shell("remember", "one")
    shell("remember", "for all", "--global", "--yes")
    assert shell("doctor", "--deep").splitlines()[-1] == "No problems found."
    document = shell.json("doctor")
    assert document["healthy"]
    assert len(document["stores"]) == 2
    assert {finding["level"] for store in document["stores"] for finding in store["findings"]} <= {"ok", "note"}


def test_the_doctor_checks_the_stores_although_a_settings_file_is_broken(shell: Shell) -> None:
    shell("remember", "one")
    [database] = shell.home.glob("projects/*/kept.db")
    database.with_name("settings.toml").write_text("x = = [")
    result = shell.type("doctor")
    assert result.exit_code == 1
    assert "problem: " in result.stdout.splitlines()[0]
    assert "settings.toml" in result.stdout.splitlines()[0].replace("\n", "")
    assert "ok: " in result.stdout
    document = json.loads(shell.type("doctor", "--json").stdout)
    assert (document["healthy"], len(document["stores"])) == (False, 1)


def test_the_doctor_finds_damage_and_names_the_backup_to_go_back_to(shell: Shell) -> None:
    for number in range(30):
        shell("remember", f"The statement with number {number}")
    copy = shell.folder / "copy.db"
    shell("store", "backup", str(copy))
    [database] = shell.home.glob("projects/*/kept.db")
    whole = database.read_bytes()
    spot = whole.index(b"The statement with number 7")
    database.write_bytes(whole[:spot] + b"X" + whole[spot + 1 :])
    result = shell.type("doctor")
    assert result.exit_code == 1
    assert "problem" in result.stdout
    assert not json.loads(shell.type("doctor", "--json").stdout)["healthy"]
    assert "restore a backup" in shell.type("doctor", "--fix").stdout
    shell("store", "restore", str(copy), "--yes")
    assert shell.json("doctor", "--deep")["healthy"]
    assert "remember [id:1]" in shell("history")
    assert len(contents(shell)) == 30


def test_a_skill_may_not_see_a_doctor(shell: Shell) -> None:
    shell("remember", "one")
    assert "may not read" in shell.fails("doctor", "--as", "skill")
