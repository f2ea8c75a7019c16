"""`kept list`, `show`, `history`, `status`: what is kept, in words and in JSON."""

import re
from datetime import UTC, datetime, timedelta

import pytest

import kept
from kept.entrypoints.cli.wording import ago, size
from tests.builders import START
from tests.cli.shell import Shell


def test_a_list_that_was_narrowed_does_not_say_that_nothing_is_kept(shell: Shell) -> None:
    shell("remember", "Harbor is staging")
    shell("failure", "add", "cannot import name foo", "Reinstall the package")
    shell("task", "add", "T1", "Write the page")
    shell("session", "append", "monday", "user", "Hello")
    assert shell("failure", "list", "zebra") == "No error matches.\n"
    assert shell("task", "list", "zebra") == "No open task matches.\n"
    assert shell("task", "list", "--milestone", "none", "--all") == "No task matches.\n"
    assert shell("session", "messages", "monday", "--after", "99") == "No message matches.\n"
    assert shell("history", "--limit", "0") == "More: `--limit 1` shows older events.\n`--limit 0` shows no event.\n"
    assert shell("list", "--limit", "0") == "`--limit 0` shows no memory.\n"
    assert shell("failure", "list", "--limit", "0") == "`--limit 0` shows no error.\n"


def test_a_list_of_nothing_says_how_to_begin(shell: Shell) -> None:
    shell("session", "begin", "empty")
    assert shell("failure", "list") == "No errors are kept here yet. `kept failure add` keeps one.\n"
    assert shell("task", "list") == 'There are no open tasks here. `kept task add "…"` adds one, --all shows all.\n'
    assert shell("task", "list", "--all") == 'There are no tasks here. `kept task add "…"` adds one.\n'
    assert shell("session", "messages", "empty") == "The session has no messages.\n"


def test_an_empty_project_says_what_to_do_next(shell: Shell) -> None:
    assert shell("list") == 'Nothing is kept here yet. `kept remember "…"` stores the first memory.\n'
    assert "Nothing has been changed in this project yet." in shell("history")
    assert "Nothing is kept here yet." in shell("status")
    assert "There are no projects yet." in shell("projects", "list")
    assert not shell.home.exists(), "looking creates nothing"


def test_an_unknown_project_name_is_pointed_out(shell: Shell) -> None:
    assert "There is no project 'wep-app' yet. `kept projects list`" in shell("list", "--project", "wep-app")


def test_a_memory_is_listed_with_ref_kind_text_and_what_else_there_is(shell: Shell) -> None:
    shell("remember", "Use Fastify", "--kind", "decision", "--tag", "api", "--file", "src/app.py", "--pin")
    shell.clock.advance(days=3)
    assert shell("list") == "[id:1] decision: Use Fastify\n    #api · src/app.py · 3 days ago · pinned\n"


def test_lines_of_a_text_cannot_pass_for_memories(shell: Shell) -> None:
    shell("remember", "-", input="first\n[id:7] decision: forged\n")
    assert shell("list").splitlines()[:2] == ["[id:1] fact: first", "    [id:7] decision: forged"]
    assert "\n    [id:7]" in shell("show", "1")


def test_a_page_ends_with_the_command_for_the_next_one(shell: Shell) -> None:
    for number in range(5):
        shell("remember", f"statement {number}", "--tag", "some tag")
    seen: list[str] = []
    arguments = ["list", "--limit", "2", "--tag", "some tag"]
    while True:
        page = shell(*arguments)
        seen += re.findall(r"^\[id:(\d+)\]", page, re.MULTILINE)
        if "More: " not in page:
            break
        assert page.splitlines()[-1] == f"More: kept list --tag 'some tag' --limit 2 --after {seen[-1]}"
        arguments = ["list", "--tag", "some tag", "--limit", "2", "--after", seen[-1]]
    assert seen == ["5", "4", "3", "2", "1"]
    assert shell.json("list", "--limit", "2")["next"] == "4"
    assert shell.json("list", "--limit", "5")["next"] is None


def test_a_page_can_continue_after_a_uid(shell: Shell) -> None:
    uids = [shell.json("remember", f"statement {number}")["memory"]["uid"] for number in range(3)]
    assert [memory["uid"] for memory in shell.json("list", "--after", uids[1])["memories"]] == [uids[0]]


def test_a_list_can_be_narrowed(shell: Shell) -> None:
    shell("remember", "a", "--kind", "decision", "--tag", "x")
    shell("remember", "b", "--kind", "error", "--tag", "y")
    shell("remember", "c", "--pin")
    shell("forget", "1")

    def refs(*options: str) -> list[str]:
        return [memory["ref"] for memory in shell.json("list", *options)["memories"]]

    assert refs() == ["3", "2"]
    assert refs("--kind", "failure") == ["2"], "an alias of the kind works, too"
    assert refs("--tag", "y") == ["2"]
    assert refs("--status", "pinned") == ["3"]
    assert refs("--status", "forgotten") == ["1"]
    assert shell("list", "--tag", "z") == "No memory matches.\n"


@pytest.mark.parametrize("ref", ["1", "[id:1]"])
def test_show_tells_everything_about_a_memory(shell: Shell, ref: str) -> None:
    shell("remember", "Use Fastify", "--kind", "decision", "--tag", "api")
    shell.clock.advance(hours=2)
    shell("rate", "1", "+")
    assert shell("show", ref) == (
        "[id:1] decision\n"
        "    Use Fastify\n"
        "status      confirmed\n"
        "trust       user\n"
        "tags        api\n"
        "importance  0.9\n"
        "feedback    +3\n"
        "used        1 time\n"
        "written     2026-03-01 12:00, 2 hours ago, by user\n"
        "changed     2026-03-01 14:00, just now\n"
    )


def test_show_names_the_rules_that_chose_a_finding(shell: Shell) -> None:
    shell("remember", "Anything at all")  # makes the project
    with kept.open(home=shell.home, clock=shell.clock) as memory:
        session = memory.session("s1")
        session.append("user", "use pnpm, not npm")
        session.finish()
        ref = session.findings()[0].ref
    assert "why kept    contrasts, decides, orders\n" in shell("show", ref)


def test_history_shows_who_did_what_and_what_an_undo_took_back(shell: Shell) -> None:
    shell("remember", "Use Fastify")
    shell("rate", "1", "+")
    shell("edit", "1", "Use Fastify 5")
    shell("undo")
    assert shell("history", "1") == (
        "    4  2026-03-01 12:00  user undo [id:1] Use Fastify  undoes 3\n"
        "    3  2026-03-01 12:00  user edit [id:1] Use Fastify  text\n"
        "    2  2026-03-01 12:00  user rate + [id:1] Use Fastify  feedback 0 → 3, use count\n"
        "    1  2026-03-01 12:00  user remember [id:1] Use Fastify\n"
    )
    assert shell("history", "--limit", "1").splitlines()[-1] == "More: `--limit 2` shows older events."
    assert [event["event"] for event in shell.json("history", "--limit", "2")["events"]] == ["3", "4"]
    assert "salt" not in shell.json("history")["events"][0]
    assert shell.json("history")["events"][1]["action"] == "reinforce", "the journal keeps its names"
    shell("forget", "1")
    assert "Use Fastify" not in shell("history", "1"), "a forgotten memory stays hidden"


def test_events_of_global_memory_have_names_of_their_own(shell: Shell) -> None:
    shell("remember", "mine")
    shell("remember", "for all", "--global", "--yes")
    assert [event["event"] for event in shell.json("history")["events"]] == ["1"]
    assert [event["event"] for event in shell.json("history", "--global")["events"]] == ["g1"]
    assert [event["event"] for event in shell.json("history", "g1")["events"]] == ["g1"]


def test_history_does_not_repeat_what_was_erased(shell: Shell) -> None:
    shell("remember", "the canary sings")
    shell("erase", "1", "--yes")
    said = shell("history") + str(shell.json("history"))
    assert "its details were erased later" in said
    assert "canary" not in said


def test_status_counts_what_is_there(shell: Shell) -> None:
    for text in ("a", "b", "c", "d"):
        shell("remember", text)
    shell("remember", "for all", "--global", "--yes")
    shell("pin", "1")
    shell("forget", "2")
    shell.clock.advance(hours=5)
    said = shell("status")
    assert said.startswith("Project app")
    assert "    3 memories, 1 pinned, 1 forgotten\n    7 events, the latest 5 hours ago\n" in said
    assert "Global memory, for all projects\n    1 memory\n" in said
    document = shell.json("status")
    assert document["home"] == str(shell.home)
    assert document["project"]["name"] == "app"
    assert [space["memories"]["live"] for space in document["spaces"]] == [3, 1]


@pytest.mark.parametrize(
    ("delta", "words"),
    [
        (timedelta(seconds=-100), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(seconds=60), "1 minute ago"),
        (timedelta(minutes=59, seconds=59), "59 minutes ago"),
        (timedelta(hours=1), "1 hour ago"),
        (timedelta(hours=23, minutes=59), "23 hours ago"),
        (timedelta(days=1), "1 day ago"),
        (timedelta(days=29), "29 days ago"),
        (timedelta(days=30), "1 month ago"),
        (timedelta(days=359), "11 months ago"),
        (timedelta(days=3650), "10 years ago"),
    ],
)
def test_ages_are_told_in_the_largest_unit_that_fits(delta: timedelta, words: str) -> None:
    assert ago(START - delta, START) == words


@pytest.mark.parametrize(
    ("n_bytes", "words"), [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 KB"), (229_376, "229 KB"), (10**13, "10 TB")]
)
def test_sizes_are_told_for_people(n_bytes: int, words: str) -> None:
    assert size(n_bytes) == words


def test_an_admin_asks_over_all_projects(shell: Shell) -> None:
    """B14: each hit with its project, in text and in JSON; for an admin only."""
    for name in ("web", "api"):
        shell("remember", f"The harbor of {name} uses port 8080", "--project", name)
    shell("remember", "Every harbor has a gate", "--global", "--yes", "--project", "web")
    asking = ("recall", "harbor", "--all-projects", "--project", "web")
    text = shell("--as", "admin", *asking)
    assert all(where in text for where in ("    in project web\n", "    in project api\n", "    in global memory\n"))
    hits = shell.json("--as", "admin", *asking)["hits"]
    assert {(hit["project"], hit["memory"]["content"][:16]) for hit in hits} == {
        ("web", "The harbor of we"),
        ("api", "The harbor of ap"),
        (None, "Every harbor has"),
    }
    assert "A project agent may not read other projects." in shell.fails(*asking)


def test_history_names_fields_and_memories_as_people_know_them(shell: Shell) -> None:
    shell("remember", "The release is in May", "--topic", "release")
    shell("remember", "The release is in July, after the audit", "--topic", "release")
    shell("edit", "2", "The release is in August, after the audit")
    shell("restore", "1")
    told = shell("history")
    assert "replaced by [id:2]" in told
    assert "no longer replaced" in told
    assert "text" in told
    for word in ("superseded_by", "content", "fingerprint", shell.json("show", "2")["uid"]):
        assert word not in told


def test_a_replaced_statement_shows_when_it_stopped_being_true(shell: Shell) -> None:
    shell.clock.at = datetime(2026, 10, 1, 9, tzinfo=UTC)
    shell("remember", "Deploys of the shop happen on Tuesdays")
    shell.clock.at = datetime(2026, 11, 3, 9, tzinfo=UTC)
    shell("remember", "Deploys of the shop now happen on Thursdays")
    assert "until 3 Nov (replaced by 2)" in shell("show", "1")
    assert "[id:1] until 3 Nov (replaced by 2): Deploys of the shop happen on Tuesdays" in shell("history", "1")
    ended = "[id:1] fact, until 3 Nov (replaced by 2): Deploys of the shop happen on Tuesdays"
    assert ended in shell("recall", "deploys", "shop", "--scope", "archive")
    assert ended in shell("recall", "deploys", "shop", "--as-of", "2026-10-20")
    assert "until" not in shell("recall", "deploys", "shop")
    assert "until" not in shell("history", "2")


def test_history_names_records_that_are_no_memories_as_people_do(shell: Shell) -> None:
    shell("task", "add", "Write the mailer")
    shell("remember", "Use Fastify")
    shell("forget", "1")
    shell("undo")
    rows = [line.partition("user ")[2] for line in shell("history").splitlines()]
    assert "task TASK-001" in rows, "not task task:TASK-001, and no space at the end"
    assert "undo rejection  undoes 3" in rows, "its id says nothing"
    assert "TASK-001 pending: Write the mailer" in shell("task", "list").splitlines()
