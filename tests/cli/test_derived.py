"""Options that commands take from the requests of the verbs: each argument can be typed, by its name."""

import pytest

from tests.cli.shell import Shell


def test_a_list_can_be_narrowed_to_a_session_by_the_beginning_of_its_id(shell: Shell) -> None:
    shell("session", "begin", "0a1b2c3d")
    shell("remember", "first", "--session", "0a1b2c3d")
    shell("remember", "second", "--session", "9f8e7d6c")
    listed = shell.json("list", "--session", "0a1b")["memories"]
    assert [one["content"] for one in listed] == ["first"]


def test_the_next_page_keeps_every_option(shell: Shell) -> None:
    for number in range(3):
        shell("remember", f"statement {number}", "--session", "s1", "--file", "a b.py", "--kind", "decision")
    page = shell("list", "--limit", "2", "--file", "a b.py", "--session", "s1", "--trust", "user", "--kind", "decision")
    options = "--kind decision --file 'a b.py' --trust user --session s1 --limit 2 --after 2"
    assert page.splitlines()[-1] == f"More: kept list {options}"


def test_a_forgotten_memory_is_shown_on_request(shell: Shell) -> None:
    shell("remember", "x")
    shell("forget", "1")
    assert "Memory 1 was forgotten." in shell.fails("show", "1")
    assert shell.json("show", "1", "--forgotten")["content"] == "x"


@pytest.mark.parametrize("options", [["--global"], ["--tier", "global"], ["--global", "--tier", "global"]])
def test_global_is_short_for_the_tier(shell: Shell, options: list[str]) -> None:
    shell("remember", "for all projects", *options, "--yes")
    assert [one["event"] for one in shell.json("history", *options)["events"]] == ["g1"]
    assert "contradict each other" in shell.fails("history", "--global", "--tier", "project", code=2)


def test_revise_changes_other_fields_as_well(shell: Shell) -> None:
    shell("remember", "Use Fastify", "--tag", "web")
    revised = shell.json("revise", "1", "--kind", "decision", "--file", "app.py")
    assert (revised["content"], revised["kind"], revised["tags"], revised["files"]) == (
        "Use Fastify",
        "decision",
        ["web"],
        ["app.py"],
    )


def test_both_spellings_of_an_option_mean_the_same(shell: Shell) -> None:
    shell("remember", "Use Fastify for the web server", "--pin")
    short, full = ("briefing", "--budget", "300"), ("briefing", "--budget-tokens", "300")
    assert shell.json(*short)["budget"] == shell.json(*full)["budget"] == 300


def test_pairs_make_a_table_and_a_pair_without_a_value_is_refused(shell: Shell) -> None:
    shell("remember", "Use Fastify for the web server")
    assert "Fastify" in shell("briefing", "fastify", "--shares", "project=3", "--shares", "global=1")
    assert "'project' is not NAME=VALUE." in shell.fails("briefing", "--shares", "project", code=2)


def test_messages_of_a_session_are_found_once(shell: Shell) -> None:
    shell("session", "begin", "s1")
    for number in range(3):
        shell("session", "append", "s1", "user", f"the deploy of week {number} failed")
    each = shell.json("recall", "deploy", "--scope", "sessions")["hits"]
    once = shell.json("recall", "deploy", "--scope", "sessions", "--by", "session", "--packed")["hits"]
    assert (len(each), len(once)) == (3, 1)


def test_several_tasks_are_erased_at_once(shell: Shell) -> None:
    for name in ("A", "B", "C"):
        shell("task", "add", f"Do {name}", "--id", name)
    assert len(shell.json("erase", "--task", "A", "--task", "B", "--yes")["erased"]) == 2
    assert [one["id"] for one in shell.json("task", "list")["tasks"]] == ["C"]
    assert "Erase task C with its notes for good?" in shell.fails("erase", "--task", "C")


def test_a_message_is_answered_as_a_line_with_its_ref(shell: Shell) -> None:
    said = shell("session", "append", "s1", "user", "We use", "pnpm")
    assert said == "s1#1 user: We use pnpm\n"
    assert "s1#1 user: We use pnpm" in shell("session", "messages", "s1")
