"""session, import, upkeep: at the command line."""

import json
from pathlib import Path
from typing import get_args

import pytest

from kept.entrypoints.cli.invocation import Invocation
from kept.entrypoints.cli.manage import UPKEEP_DONE
from kept.memory.upkeep import StepAction
from tests.cli.shell import Shell

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def claude_file(folder: Path, lines: int = 3, *, torn: bool = False) -> Path:
    path = folder / "0a1b2c3d-session.jsonl"
    records = [
        {
            "type": "user" if number % 2 == 0 else "assistant",
            "uuid": f"u{number}",
            "sessionId": "0a1b2c3d",
            "cwd": "/src/app",
            "timestamp": f"2026-02-10T21:11:{number:02d}.000Z",
            "message": {
                "role": "user",
                "content": f"We decided to use Postgres for billing, with {KEY}, take {number}.",
            },
        }
        for number in range(lines)
    ]
    text = "".join(json.dumps(record) + "\n" for record in records)
    path.write_text(text + ('{"type": "user", "uui' if torn else ""), "utf-8")
    return path


def test_transcripts_are_brought_in_once_and_without_secrets(shell: Shell, tmp_path: Path) -> None:
    path = claude_file(tmp_path, torn=True)
    assert "3 new messages" in shell("import", "claude-code", str(path))
    assert "0 messages from 1 file" in shell("import", "claude-code", str(path))
    claude_file(tmp_path, 5)
    assert "2 new messages" in shell("import", "claude-code", str(path))
    shown = shell("session", "show", "0a1b2c3d")
    assert KEY not in shown
    assert "take 4" in shown
    assert shell.json("session", "list")["sessions"][0]["messages"] == 5
    assert "PATH" in shell.fails("import", "openclaw", code=2)
    assert "does not exist" in shell.fails("import", "codex", str(tmp_path / "nowhere"))


def test_a_session_is_finished_forked_and_exported(shell: Shell, tmp_path: Path) -> None:
    assert "There are no sessions" in shell("session", "list")
    shell("import", "claude-code", str(claude_file(tmp_path)))
    assert "summary" in shell("session", "finish", "0a1b2c3d")
    assert "continues" in shell("session", "fork", "0a1b2c3d", "second")
    lines = shell("session", "export", "second").splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["u0", "u1", "u2"]
    assert "nothing to compact" in shell("session", "compact", "second")
    assert "finished" in shell("session", "list")
    assert "0a1b2c3d#1" in shell("session", "search", "postgres", "billing")
    hits = shell.json("session", "search", "billing", "--by", "session")["hits"]
    assert {hit["message"]["session"] for hit in hits} == {"0a1b2c3d"}, "what a fork shares is stored once"
    assert "No message matches" in shell("session", "search", "zeppelin")
    assert "kept session list" in shell.fails("session", "show", "nowhere")


def test_a_found_message_has_the_short_name_of_its_session(shell: Shell) -> None:
    long = "3f2b8c1e-1111-4222-8333-944455556666"
    shell("session", "append", long, "user", "Harbor is staging")
    assert shell("session", "search", "harbor").startswith("3f2b8c1e#1 user")
    assert "Harbor is staging" in shell("show", "3f2b8c1e#1")


def test_old_sessions_are_searched_on_request(shell: Shell, tmp_path: Path) -> None:
    """B17, B23: `kept session search` says how, and finds them."""
    shell("import", "claude-code", str(claude_file(tmp_path)))
    found = shell("session", "search", "Postgres", "billing")
    assert found.startswith("0a1b2c3d")
    shell.clock.advance(days=400)
    shell("upkeep")
    assert "`--packed` also searches old sessions." in shell("session", "search", "Postgres", "billing")
    assert shell("session", "search", "Postgres", "billing", "--packed") == found
    assert "3 messages" in shell("session", "list"), "B3: packing loses no message"


def test_upkeep_says_what_it_would_do(shell: Shell, tmp_path: Path) -> None:
    assert "nothing to do" in shell("upkeep")
    shell("import", "claude-code", str(claude_file(tmp_path)))
    shell("session", "finish", "0a1b2c3d")
    shell.clock.advance(days=400)
    planned = shell("upkeep", "--dry-run")
    assert "would be archived" in planned
    assert "0a1b2c3d would be packed" in planned
    done = shell("upkeep")
    assert done == planned.replace("would be", "is").replace("would count", "counts")
    assert "nothing to do" in shell("upkeep")


def test_the_input_of_a_tool_call_is_pairs_or_json(shell: Shell) -> None:
    shell("session", "append", "s1", "tool_call", "--name", "ls", "--input", '{"path": "."}')
    shell("session", "append", "s1", "tool_call", "--name", "ls", "--input", "path=src")
    said = shell.json("session", "messages", "s1")["messages"]
    assert [message["input"] for message in said] == [{"path": "."}, {"path": "src"}]
    wrong = shell.fails("session", "append", "s1", "tool_call", "--name", "ls", "--input", "{path}", code=2)
    assert "is not an object of JSON" in wrong
    assert "--input NAME=VALUE" in shell("session", "append", "--help")


def test_upkeep_has_words_for_everything_that_it_does() -> None:
    steps = {action for part in get_args(StepAction) for action in get_args(part)}
    assert steps == set(UPKEEP_DONE)


def test_upkeep_says_which_silent_sessions_it_finished(shell: Shell) -> None:
    shell("session", "append", "friday", "user", "From now on use pnpm.")
    shell.clock.advance(days=2)
    assert "Session friday would be finished: nothing was said for" in shell("upkeep", "--dry-run")
    assert "Session friday is finished: nothing was said for" in shell("upkeep")
    assert "friday" not in shell("upkeep")


def test_a_message_and_a_session_can_be_erased(shell: Shell, tmp_path: Path) -> None:
    shell("import", "claude-code", str(claude_file(tmp_path)))
    shell("session", "finish", "0a1b2c3d")
    assert "Give REFs or filters" in shell.fails("erase", code=2)
    assert "Give REFs or filters" in shell.fails("erase", "1", "--session", "0a1b2c3d", code=2)
    assert "This cannot be undone" in shell.fails("erase", "--message", "0a1b2c3d#1")
    for missing in ("0a1b2c3d#9", "nobody#1"):  # nobody is asked about what is not there
        assert "There is no message" in shell.fails("erase", "--message", missing)
    assert "'no ref at all' is not a memory ref" in shell.fails("erase", "--message", "no ref at all")
    said = shell("erase", "--message", "0a1b2c3d#1", "--yes")
    assert "Message 0a1b2c3d#1 is erased." in said
    assert "messages 1" in said
    assert "[erased]" in shell("session", "show", "0a1b2c3d")
    assert "There is no message" in shell.fails("erase", "--message", "0a1b2c3d#9", "--yes")
    assert shell.json("erase", "--session", "0a1b2c3d", "--yes")["erased"][0]["found"]["sessions"] == 1
    assert "There are no sessions" in shell("session", "list")
    assert "There is no session" in shell.fails("erase", "--session", "0a1b2c3d", "--yes")
    assert "0 messages" in shell("import", "claude-code", str(claude_file(tmp_path)))


@pytest.fixture
def two(shell: Shell, tmp_path: Path) -> Shell:
    """Two sessions whose ids begin alike, and a memory with the number of a message."""
    shell("remember", "Use Fastify for the public API")
    for name, said in (
        ("3f2a9c10-77", "The gateway owns the auth middleware"),
        ("3fbb0044-12", "Deploys run on Friday"),
    ):
        file = tmp_path / f"{name}.jsonl"
        file.write_text(
            json.dumps({"id": name, "role": "user", "content": said, "timestamp": "2026-01-05T10:00:00Z"}) + "\n"
        )
        shell("import", "brain", str(file))
    return shell


@pytest.mark.parametrize(
    "command",
    [["session", "show"], ["session", "export"], ["session", "finish"], ["session", "compact"], ["why", "--session"]],
)
def test_the_beginning_of_an_id_is_enough_if_only_one_session_has_it(two: Shell, command: list[str]) -> None:
    assert two(*command, "3f2a") == two(*command, "3f2a9c10-77")
    said = two.fails(*command, "3f")
    assert said.startswith("2 sessions begin with '3f': 3fbb0044-12 (brain, ")
    assert "3f2a9c10-77 (brain, " in said
    assert said.endswith(" Type more of the id.")


def test_filters_and_pauses_take_the_beginning_of_an_id_as_well(two: Shell) -> None:
    assert "Paused in session 3f2a9c10-77." in two("pause", "--session", "3f2a")
    assert "is on again" in two("resume", "--session", "3f2a9c")
    assert "Paused in session not-there-yet." in two("pause", "--session", "not-there-yet")
    assert "session 3fbb0044-12" in two.fails("erase", "--session", "3fb")
    assert "begin with '3f'" in two.fails("forget", "--session", "3f", "--yes")


def test_a_message_is_never_named_like_a_memory(two: Shell) -> None:
    """The number of a message alone is that of a memory: `kept erase 1` after looking at message 1 would be fatal."""
    assert two("session", "show", "3f2a").startswith("  #1 user")
    for shown in (two("recall", "auth middleware", "--scope", "sessions"), two("session", "search", "auth middleware")):
        assert shown.startswith("3f2a9c10-77#1 user")
        assert "[id:1]" not in shown
    why = two("why")
    assert why.count("3f2a9c10-77#1 ") == 1
    told = next(line for line in why.splitlines() if line.startswith("3f2a9c10-77#1 "))
    total, summands = told.split(" ", 1)[1].split(" = ")
    assert sum(float(one.split()[-1]) for one in summands.split(" + ")) == pytest.approx(float(total), abs=0.02)
    hit = two.json("recall", "auth middleware", "--scope", "sessions")["hits"][0]
    assert hit["ref"] == hit["memory"]["ref"] == "3f2a9c10-77#1"


def test_a_message_is_shown_and_erased_by_its_ref(two: Shell) -> None:
    assert two("show", "3f2a#1") == two("show", "3f2a9c10-77#1")
    assert "The gateway owns the auth middleware" in two("show", "3f2a#1")
    assert "Use Fastify" in two("show", "1")
    assert "There is no message 3f2a9c10-77#7." in two.fails("show", "3f2a#7")
    assert "It names a message: `kept show` shows it" in two.fails("forget", "3f2a#1")
    assert "Erase memory 1 and message 3f2a9c10-77#1 for good?" in two.fails("erase", "1", "3f2a#1")
    two("erase", "1", "3f2a#1", "--yes")
    assert "[erased]" in two("show", "3f2a#1")
    assert "There is no memory 1." in two.fails("show", "1")


def test_a_session_is_shown_with_its_summary_and_findings(shell: Shell, tmp_path: Path) -> None:
    shell("import", "claude-code", str(claude_file(tmp_path)))
    shell("session", "finish", "0a1b2c3d")
    shown = shell("session", "show", "0a1b2c3d", "--limit", "1")
    assert shown.index("take 2") < shown.index("Summary") < shown.index("Findings")
    assert "decision: We decided to use Postgres for billing" in shown.partition("Findings")[2]
    document = shell.json("session", "show", "0a1b")
    assert document["id"] == "0a1b2c3d"
    assert document["summary"]
    assert {finding["kind"] for finding in document["findings"]} == {"decision"}


def test_sessions_are_listed_by_page_and_forked_at_a_message(two: Shell) -> None:
    assert two("session", "list").index("3fbb0044-12") < two("session", "list").index("3f2a9c10-77"), "newest first"
    said = two("session", "list", "--limit", "1")
    assert "3fbb0044-12" in said
    assert said.splitlines()[-1] == "More: kept session list --after 3fbb0044-12"
    assert "3f2a9c10-77" in two("session", "list", "--after", "3fbb0044-12")
    assert [one["name"] for one in two.json("session", "list", "--limit", "1")["sessions"]] == ["3f2a9c10-77"]
    after = two.json("session", "list", "--after", "3f2a9c10-77")["sessions"]
    assert [one["name"] for one in after] == ["3fbb0044-12"]
    assert two.json("session", "list", "--newest-first")["sessions"][0]["name"] == "3fbb0044-12"
    assert two("session", "fork", "3fb", "empty", "--upto", "0") == "empty continues 3fbb0044-12.\n"
    assert "no messages" in two("session", "show", "empty")
    assert "findings are stored later" in two("session", "finish", "3fb", "--fast")


def test_a_list_of_sessions_says_who_spoke_when_and_about_what(shell: Shell) -> None:
    ids = ["1f0c9a52-77aa-4c1e-9d11-0000000000a1", "1f0c9a52-88bb-4c1e-9d11-0000000000b2"]
    for number, name in enumerate(ids):
        shell("session", "begin", name, "--agent", "codex")
        shell("session", "append", name, "user", f"Please look at port {number}\nand more", "--timestamp", "2026-02-10")
    shell("session", "append", ids[0], "assistant", "Done", "--timestamp", "2026-02-12")
    lines = shell("session", "list").splitlines()
    assert [line.split()[0] for line in lines] == ["1f0c9a52-7", "1f0c9a52-8"], "newest by its last message"
    assert "codex  2 messages  " in lines[0]
    assert lines[0].endswith("  Please look at port 0 and more")
    assert "Please look" in shell("session", "show", "1f0c9a52-7")


def test_a_search_shows_the_lines_around_the_match(shell: Shell) -> None:
    said = "\n".join(f"line {number}" if number != 20 else "the zeppelin lands" for number in range(40))
    shell("session", "append", "s1", "user", said)
    found = shell("session", "search", "zeppelin").splitlines()
    assert [line.strip() for line in found[1:]] == ["line 19", "the zeppelin lands", "line 21"]
    shell("session", "append", "s1", "user", f"{'word ' * 200}airship {'word ' * 200}")
    assert len(max(shell("session", "search", "airship").splitlines(), key=len)) < 220


@pytest.mark.parametrize("columns", [40, 60, 120])
def test_the_words_of_the_user_are_listed_in_a_terminal_of_any_width(
    two: Shell, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setattr(Invocation, "width", lambda self: columns)
    told = two("session", "list")
    assert "Deploys run on Friday" in told
    assert "The gateway owns the auth" in told
    assert all(len(line) <= columns for line in told.splitlines() if line.startswith("    "))
