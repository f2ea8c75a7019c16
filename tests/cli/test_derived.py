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
    revised = shell.json("edit", "1", "--kind", "decision", "--file", "app.py")
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


def test_derived_commands_answer_people_in_words(shell: Shell) -> None:
    shell("remember", "Prefers short answers", "--global", "--yes")
    assert shell("session", "begin", "s1") == "s1 is open.\n"
    assert (
        shell("session", "append", "s1", "user", "Where is the port?", "--id", "m1")
        == "s1#1 user: Where is the port?\n"
    )
    assert "is there already" in shell("session", "append", "s1", "user", "Where is the port?", "--id", "m1")
    assert "Where is the port?" in shell("session", "window", "s1")
    assert shell("session", "flush", "s1").startswith("0 new findings")
    assert shell("session", "given", "s1") == "Nothing was given in this session.\n"
    assert shell("session", "findings", "s1") == "The session has no findings.\n"
    assert "No session" in shell("session", "pack")
    shell("recall", "short answers")
    receipt = shell.json("why")["receipt"]
    assert "[id:g1] fact: Prefers short answers" in shell("replay", receipt)
    shell("remember", "The port is 4000", "--file", "src/a.py")
    assert shell("guard", "1", "stop", "--yes").startswith("Guard set on 1: a matching tool call is refused once, then")
    assert shell("guard", "1", "tell", "--yes").startswith("Guard off for 1: a matching tool call only gets")
    assert "DANGER: Forget all 1 global memory, for every project?" in shell.fails("clear-global")
    assert shell("clear-global", "--yes").startswith("1 memory forgotten, for every project.")


def test_kept_errors_are_listed_line_by_line(shell: Shell) -> None:
    assert shell("failure", "list").startswith("No errors are kept here yet.")
    shell("failure", "add", "ModuleNotFoundError: No module named 'app'", "Install the package first")
    listed = shell("failure", "list")
    assert "\\n" not in listed
    assert shell.json("failure", "list")["memories"][0]["ref"] == "1"


def test_a_derived_command_that_only_reads_has_no_yes(shell: Shell) -> None:
    assert "--yes" not in shell("session", "given", "--help")
    assert "--yes" in shell("session", "append", "--help")


def test_a_message_without_a_text_is_refused(shell: Shell) -> None:
    shell("session", "begin", "s1")
    assert shell.fails("session", "append", "s1", "user", code=2).startswith("There is no text.")
