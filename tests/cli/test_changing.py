"""Changing a memory, and taking it back."""

from pathlib import Path
from typing import Any

import pytest

import kept
from kept.memory import opening
from tests.builders import context_of
from tests.cli.shell import Shell


@pytest.fixture
def kept_one(shell: Shell) -> Shell:
    shell("remember", "Use Fastify", "--kind", "decision", "--tag", "api")
    return shell


def test_feedback_goes_up_by_3_and_down_by_1(kept_one: Shell) -> None:
    assert kept_one("rate", "1", "+") == "[id:1] has feedback +3 now.\n"
    assert kept_one("rate", "1", "-") == "[id:1] has feedback +2 now.\n"
    assert kept_one.json("show", "1")["feedback"] == 2


def test_a_revised_memory_keeps_its_ref_and_unless_told_otherwise_its_tags(kept_one: Shell) -> None:
    assert kept_one("edit", "1", "Use", "Fastify 5") == "[id:1] is changed: text.\n"
    assert kept_one.json("show", "1")["content"] == "Use Fastify 5"
    assert kept_one.json("show", "1")["tags"] == ["api"]
    kept_one("edit", "1", "-", "--tag", "web", input="Use Fastify 6\n")
    assert kept_one.json("show", "1")["content"] == "Use Fastify 6"
    assert kept_one.json("show", "1")["tags"] == ["web"]
    assert "the text is empty" in kept_one.fails("edit", "1", " ")


def test_pinned_and_no_longer(kept_one: Shell) -> None:
    assert kept_one("pin", "1") == "[id:1] is pinned.\n"
    assert kept_one("unpin", "1") == "[id:1] is no longer pinned.\n"
    assert "Memory 1 is not pinned." in kept_one.fails("unpin", "1")


def test_forgotten_is_hidden_until_it_is_restored(kept_one: Shell) -> None:
    assert kept_one("forget", "1") == "[id:1] is forgotten. `kept restore 1` brings it back.\n"
    assert kept_one.json("list")["memories"] == []
    assert kept_one("restore", "1") == "[id:1] is back (confirmed).\n"
    assert len(kept_one.json("list")["memories"]) == 1


def test_undo_takes_back_the_last_change_and_names_the_one_that_makes_it_again(kept_one: Shell) -> None:
    kept_one("forget", "1")
    assert kept_one("undo") == (
        "Undone: forget (event 2).\n"
        "[id:1] decision: Use Fastify\n"
        "    #api · just now\n"
        "`kept undo 5` makes the change again.\n"
    )
    assert "forgotten" in kept_one("undo", "5")
    assert kept_one.json("list")["memories"] == []


def test_undo_refuses_what_later_changes_build_on(kept_one: Shell) -> None:
    kept_one("edit", "1", "Use Fastify 5")
    kept_one("edit", "1", "Use Fastify 6")
    assert "because of memory 1: its text was changed again by event 3" in kept_one.fails("undo", "2")


def test_undo_without_anything_to_undo_says_so(shell: Shell) -> None:
    assert shell.fails("undo").startswith("There is nothing to undo.")
    shell("remember", "x")
    assert "There is no event 99." in shell.fails("undo", "99")
    assert "'soon' is not an event." in shell.fails("undo", "soon")


def test_undo_takes_the_newest_change_wherever_it_was_made(kept_one: Shell) -> None:
    kept_one.clock.advance(minutes=1)
    kept_one("remember", "for all", "--global", "--yes")
    assert "[id:g1] fact: for all" in kept_one("undo", "--yes")
    assert [memory["ref"] for memory in kept_one.json("list")["memories"]] == ["1"]


def test_events_of_the_project_and_of_global_memory_are_not_mixed_up(kept_one: Shell) -> None:
    kept_one("remember", "for all", "--global", "--yes")
    assert "There is no event g2." in kept_one.fails("undo", "g2", "--yes")
    assert kept_one.json("undo", "g1", "--yes")["events"][0]["ref"] == "g1"
    assert kept_one.json("undo", "1")["events"][0]["ref"] == "1"


def test_tasks_and_aliases_are_erased_by_name(shell: Shell) -> None:
    shell("task", "add", "Move the Zanzibar invoices")
    shell("alias", "add", "island", "zanzibar")
    assert "Erase task TASK-001 with its notes for good?" in shell.fails("erase", "--task", "TASK-001")
    assert shell("erase", "--task", "TASK-001", "--yes").startswith("Task TASK-001 is erased.")
    assert shell("erase", "--alias", "Island", "--yes").startswith("Alias island is erased.")
    assert "no task 'TASK-001'" in shell.fails("erase", "--task", "TASK-001", "--yes")
    assert "Zanzibar" not in shell("history", "--json")


def test_an_erased_memory_is_gone_for_good(kept_one: Shell) -> None:
    assert kept_one("erase", "1", "--yes") == "Memory 1 is erased.\n"
    assert "There is no memory 1." in kept_one.fails("show", "1")
    assert "cannot be undone" in kept_one.fails("undo", "1")
    assert not [path for path in kept_one.home.rglob("*") if path.is_file() and b"Fastify" in path.read_bytes()]


def test_erasing_asks_first_shows_what_and_takes_no_for_an_answer(kept_one: Shell) -> None:
    assert "This cannot be undone. Add --yes to confirm" in kept_one.fails("erase", "1")
    kept_one.answers = [False, True]
    result = kept_one.type("erase", "1")
    assert result.exit_code == 1
    assert result.stderr.startswith("[id:1] decision: Use Fastify\n")
    assert kept_one.json("show", "1")["ref"] == "1"
    assert kept_one("erase", "1") == "Memory 1 is erased.\n"
    assert kept_one.questions == ["Erase memory 1 for good? This cannot be undone."] * 2


def test_erasing_opens_the_store_once(kept_one: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str | None] = []
    usual = opening.open

    def count(*args: Any, **options: Any) -> kept.Kept:
        opened.append(options["project"])
        return usual(*args, **options)

    monkeypatch.setattr(opening, "open", count)
    kept_one("erase", "1", "--yes")
    assert len(opened) == 1


@pytest.mark.parametrize(
    "command", [["rate", "g1", "+"], ["edit", "g1", "y"], ["pin", "g1"], ["forget", "g1"], ["erase", "g1"]]
)
def test_global_memory_changes_only_with_a_yes_and_is_asked_for_once(shell: Shell, command: list[str]) -> None:
    shell("remember", "x", "--global", "--yes")
    assert "This needs confirmation" in shell.fails(*command)
    shell.answers = [True]
    shell(*command)
    assert len(shell.questions) == 1
    if command[0] != "erase":
        shell.answers = None
        asking = shell.fails("undo")
        assert "This needs confirmation: " in asking
        assert " global fact g1: 'x'?" in asking or "'y' → 'x'?" in asking
        shell("undo", "--yes")
        assert shell.json("show", "g1")["content"] == "x"


def test_a_change_to_an_alias_can_be_undone(shell: Shell) -> None:
    shell("alias", "add", "play-ground", "harbor")
    assert "user alias play-ground\n" in shell("history")
    assert shell("undo") == "Undone: alias play-ground (event 1).\n`kept undo 2` makes the change again.\n"
    shell("undo", "2")
    assert shell.json("alias", "list")["aliases"]["play-ground"] == ["harbor"]


@pytest.mark.parametrize(
    ("first", "again", "says"),
    [
        (["pin", "1"], ["pin", "1"], "[id:1] is pinned already.\nNothing was changed.\n"),
        (["forget", "1"], ["forget", "1"], "[id:1] is forgotten already.\nNothing was changed.\n"),
        (["pin", "1"], ["restore", "1"], "[id:1] was not archived or forgotten.\nNothing was changed.\n"),
        (["pin", "1"], ["edit", "1", "--tag", "api"], "[id:1] stays as it was. Nothing was changed.\n"),
        (["alias", "add", "a1", "b1"], ["alias", "add", "a1", "b1"], "a1 also finds b1. Nothing was changed.\n"),
        (["pin", "1"], ["alias", "add", "db", "database"], " Nothing was changed.\n"),
        (
            ["pause"],
            ["pause"],
            "Kept was paused in this project already. Nothing was changed. `kept resume` ends it.\n",
        ),
        (["pin", "1"], ["resume"], "Kept was not paused here. Nothing was changed.\n"),
    ],
)
def test_a_command_that_changes_nothing_says_so_and_undo_takes_back_the_last_real_change(
    kept_one: Shell, first: list[str], again: list[str], says: str
) -> None:
    kept_one(*first)
    events = kept_one.json("history")["events"]
    assert kept_one(*again).endswith(says)
    assert kept_one.json("history")["events"] == events, "no event without a change"
    assert f"Undone: {first[0]}" in kept_one("undo")


def test_undo_says_how_old_the_change_is_that_it_took_back(kept_one: Shell) -> None:
    kept_one("pin", "1")
    kept_one.clock.advance(days=3)
    assert kept_one("undo").startswith("Undone: pin (event 2), 3 days ago.\n")


def test_undo_passes_over_a_change_that_changed_nothing(kept_one: Shell) -> None:
    """Journals of 0.2.0 have an event for each pin of what was pinned already."""
    kept_one("pin", "1")
    with opening.open(home=kept_one.home, clock=kept_one.clock, origin="user") as memory:
        storage, found = context_of(memory).find(1)
        context_of(memory).change(storage, found, "pin", lambda m, at: m)
    assert kept_one("undo").startswith("Undone: pin (event 2).\n")
    assert kept_one.json("show", "1")["status"] == "confirmed"


def test_a_correction_that_is_restored_replaces_what_it_corrects_again(shell: Shell) -> None:
    shell("remember", "Product images are stored in Cloudinary", "--kind", "decision")
    shell.clock.advance(hours=1)
    assert "It replaces [id:1]." in shell(
        "remember", "We moved from Cloudinary to Bunny for product images", "--kind", "decision"
    )
    shell.clock.advance(hours=1)
    shell("undo")
    shell.clock.advance(hours=1)
    assert "[id:2] replaces [id:1]." in shell("restore", "2")
    assert "[id:1]" not in shell("list")
    shell("undo")
    assert "[id:1]" in shell("list")
    assert "[id:2]" not in shell("list")


def test_a_memory_that_is_restored_beside_its_rival_stays_and_the_contradiction_is_shown(shell: Shell) -> None:
    shell("remember", "Product images are stored in Cloudinary", "--kind", "decision")
    shell.clock.advance(hours=1)
    shell("remember", "We moved from Cloudinary to Bunny for product images", "--kind", "decision")
    shell.clock.advance(hours=1)
    assert "[id:1] contradicts [id:2] (conflict c1)." in shell("restore", "1")
    assert shell.json("review", "conflicts")["conflicts"][0]["sides"] == ["2", "1"]
    assert {one["ref"] for one in shell.json("list")["memories"]} == {"1", "2"}


def test_a_revision_that_contradicts_another_memory_says_so(shell: Shell) -> None:
    shell("remember", "The session timeout is 30 minutes")
    shell("remember", "Invoices are sent by the billing worker")
    shell.clock.advance(hours=1)
    assert "contradicts" not in shell("edit", "2", "Invoices are sent by the mail worker")
    shell.clock.advance(hours=1)
    said = shell("edit", "2", "The session timeout is 60 minutes")
    assert "[id:2] contradicts [id:1] (conflict c1). `kept review conflicts` shows both sides." in said
    shell.clock.advance(hours=1)
    assert "contradicts" not in shell("edit", "2", "--tag", "auth")


def test_an_editor_that_fails_changes_nothing_and_another_way_is_named(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("remember", "The session timeout is 30 minutes")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "false")
    shell.answers = []
    said = shell.fails("edit", "1")
    assert "The editor did not save the text (false: Editing failed)." in said
    assert "Nothing was changed. Set $EDITOR to another program, or use `kept edit REF TEXT`." in said


def test_an_undo_that_comes_too_late_names_the_whole_call_and_says_what_happened_since(shell: Shell) -> None:
    shell("remember", "The release is in May", "--topic", "release")
    shell("remember", "The release is in July, after the audit", "--topic", "release")
    shell("restore", "1")
    said = shell.fails("undo", "2")
    assert "The change of events 2 to 3 cannot be undone, because of memory 1: " in said
    assert "_at" not in said
    assert "again by event 4" in said


def test_every_change_answers_with_the_same_shape_for_one_and_for_several(kept_one: Shell) -> None:
    kept_one("remember", "Use Postgres")
    for refs in (["1"], ["1", "2"]):
        for command in (["pin", *refs], ["unpin", *refs], ["rate", *refs, "+"], ["forget", *refs], ["restore", *refs]):
            assert [one["ref"] for one in kept_one.json(*command)["memories"]] == refs
    assert len(kept_one.json("erase", "1", "--yes")["erased"]) == 1


def test_undo_names_the_last_change_of_this_person_first(kept_one: Shell) -> None:
    kept_one("rate", "1", "+")
    kept_one.run("remember", "Said by an agent", KEPT_AGENT="helper")
    undone = kept_one.type("undo")
    assert undone.stderr == "Your last change, just now: rate + [id:1] Use Fastify.\n"
    assert "Undone: rate + (event 2)." in undone.stdout
    assert "Said by an agent" in kept_one("list"), "the change of an agent stays"


def test_undo_ends_its_sentence_with_one_full_stop(shell: Shell) -> None:
    shell("remember", "Send the invoices by mail.")
    assert shell.type("undo").stderr.endswith("remember [id:1] Send the invoices by mail.\n")


def test_an_edited_memory_that_is_archived_stays_so_and_says_it(kept_one: Shell) -> None:
    kept_one("review", "--apply", "archive:1", "--yes")
    said = kept_one("edit", "1", "Use Fastify 5")
    assert "It stays archived, " in said
    assert "`kept restore 1` brings it back." in said
    kept_one("restore", "1")
    kept_one("forget", "1")
    assert "`kept restore 1` brings it back." in kept_one.fails("edit", "1", "Use Fastify 6")


def test_a_file_that_is_given_to_restore_names_the_command_for_backups(kept_one: Shell) -> None:
    kept_one("store", "backup", "b.db")
    for file in ("b.db", "gone.db", "backups/daily"):
        assert f"`kept store restore {file}` restores a backup." in kept_one.fails("restore", file)


def test_an_undo_of_many_memories_asks_once_and_answers_in_one_line(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("".join(f"- The port of service {n} is {4000 + n}\n" for n in range(5)))
    shell("import", "openclaw", str(tmp_path / "MEMORY.md"))
    shell.answers = [False]
    assert "The answer was no" in shell.type("undo").stderr
    shell.answers = [True]
    undone = shell.type("undo")
    assert undone.stdout.splitlines()[0] == "Undone: the import of 5 memories from MEMORY.md."
    assert undone.stdout.count("[id:") == 0
    assert undone.stderr == "", "the question said it"
    assert shell.questions == ["Undo the import of 5 memories from MEMORY.md?"] * 2
    shell.answers = []
    shell("undo", undone.stdout.split("`kept undo ")[1].split("`")[0], "--yes")
    shell("pin", "1")
    assert "The port of service 0" in shell.type("undo").stderr, "no question about one memory"
