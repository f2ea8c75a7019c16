"""import: the sessions of this project, from where other programs keep their transcripts."""

import io
import json
import os
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

import kept
from kept.entrypoints.cli.frame import root
from kept.entrypoints.cli.invocation import Invocation
from tests.builders import FakeClock
from tests.cli.shell import Shell
from tests.folders import make_repository, make_worktree

START = datetime(2026, 1, 12, 9, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home directory of their own, without the folders that variables name."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)


def write(path: Path, records: Sequence[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return path


def claude(folder: Path, name: str, cwd: Path | str, *said: str, days: int = 0) -> Path:
    records = [
        {
            "type": "user",
            "uuid": f"{name}-{number}",
            "parentUuid": f"{name}-{number - 1}" if number else None,
            "sessionId": name,
            "cwd": str(cwd),
            "timestamp": f"{START + timedelta(days=days, minutes=number):%Y-%m-%dT%H:%M:%S.000Z}",
            "message": {"role": "user", "content": text},
        }
        for number, text in enumerate(said)
    ]
    return write(folder / ".claude" / "projects" / "any-name" / f"{name}.jsonl", records)


def sessions(shell: Shell, *options: str) -> dict[str, int]:
    return {one["name"]: one["messages"] for one in shell.json("session", "list", *options)["sessions"]}


def test_a_mistyped_format_is_answered_with_the_one_that_was_meant(shell: Shell) -> None:
    said = shell.fails("import", "claud-code", code=2)
    assert "There is no file and no format 'claud-code'. Did you mean claude-code?" in said


def test_without_a_path_the_sessions_of_this_project_are_taken_in_order_of_time(shell: Shell, tmp_path: Path) -> None:
    """DESIGN 17: by `cwd`, folders below it included; with their own dates, and finished."""
    app = tmp_path / "app"
    (app / "src").mkdir()
    (tmp_path / "other").mkdir()
    claude(tmp_path, "a-later", app, "We decided to use MySQL for the billing database.", days=1)
    claude(tmp_path, "b-first", app / "src", "We decided to use Postgres for the billing database.")
    claude(tmp_path, "c-gone", app / "old" / "folder", "The port of the billing service is 1100, not 4000.")
    claude(tmp_path, "d-other", tmp_path / "other", "We decided to use Redis for the cache.")
    printed = shell("import", "claude-code")
    assert "3 messages from 3 files." in printed
    listed = shell.json("session", "list")["sessions"]
    assert [one["name"] for one in listed] == ["b-first", "c-gone", "a-later"]
    assert all(one["finished_at"] for one in listed)
    assert [one["started_at"][:10] for one in listed] == ["2026-01-12", "2026-01-12", "2026-01-13"]
    with kept.open(home=shell.home, clock=shell.clock) as memory:
        said = {one.content: one.created_at for one in memory.list() if one.kind == "decision"}
    assert [at.date().isoformat() for text, at in said.items() if "MySQL" in text] == ["2026-01-13"]
    again = shell.json("import", "claude-code")["files"]
    assert [one["added"] for one in again] == [0, 0, 0]
    assert sessions(shell) == {"b-first": 1, "c-gone": 1, "a-later": 1}


def test_worktrees_of_the_repository_are_this_project(shell: Shell, tmp_path: Path) -> None:
    app, tree, nested = tmp_path / "app", tmp_path / "app-fix", tmp_path / "app" / "vendor"
    make_worktree(make_repository(app) / ".git", tree)
    make_repository(nested)
    claude(tmp_path, "main", app, "Hello there")
    claude(tmp_path, "tree", tree, "Hello from the worktree")
    claude(tmp_path, "nested", nested, "A repository of its own")
    shell("import", "claude-code")
    assert sessions(shell) == {"main": 1, "tree": 1}


def test_a_path_is_imported_as_it_is(shell: Shell, tmp_path: Path) -> None:
    file = claude(tmp_path, "d-other", "/somewhere/else", "We decided to use Redis for the cache.")
    assert "1 new message" in shell("import", "claude-code", str(file.parent))
    assert sessions(shell) == {"d-other": 1}


def test_all_projects_puts_each_session_where_it_belongs(shell: Shell, tmp_path: Path) -> None:
    for name in ("other", "third"):
        (tmp_path / name).mkdir()
    claude(tmp_path, "s1", tmp_path / "app", "Hello app")
    claude(tmp_path, "s2", tmp_path / "other", "Hello other")
    claude(tmp_path, "s3", tmp_path / "third", "Hello third", "and again")
    claude(tmp_path, "s4", "/gone/for/good", "Hello nobody")
    printed = shell("import", "claude-code", "--all-projects")
    assert "4 messages from 3 files." in printed
    assert "1 session took place in no project" in printed
    assert sessions(shell) == {"s1": 1}
    assert sessions(shell, "--project", str(tmp_path / "other")) == {"s2": 1}
    assert sessions(shell, "--project", str(tmp_path / "third")) == {"s3": 2}
    assert "0 messages" in shell("import", "claude-code", "--all-projects")


def test_nothing_of_this_project_says_what_to_do(shell: Shell, tmp_path: Path) -> None:
    claude(tmp_path, "s4", "/gone/for/good", "Hello nobody")
    printed = shell("import", "claude-code")
    assert "No transcript of claude-code is of this project." in printed
    assert "--all-projects" in printed
    assert not (shell.home / "projects").exists(), "nothing was written"
    assert "does not exist" in shell.fails("import", "codex")


def test_one_bad_transcript_is_reported_and_the_others_are_taken_in(shell: Shell, tmp_path: Path) -> None:
    folder = claude(tmp_path, "good", tmp_path / "app", "Hello app").parent
    (folder / "bad.jsonl").write_bytes(b"\x00\xff not a transcript\n" * 5)
    (folder / "folder.jsonl").symlink_to(folder / "nowhere")
    result = shell.type("import", "claude-code", str(folder))
    assert result.exit_code == 1
    assert "1 message from 2 files." in result.stdout
    assert f"{folder / 'bad.jsonl'}: " in result.stderr
    assert "nothing in it was understood" in result.stderr
    assert sessions(shell) == {"good": 1}
    documents = json.loads(shell.type("import", "claude-code", str(folder), "--json").stdout)["files"]
    assert [bool(one["failed"]) for one in documents] == [False, True]


@pytest.mark.parametrize("content", [b"\x00\xff\n", b'{"some": "json"}\n', b"# A README\n\nwith text\n"])
def test_a_file_that_is_no_transcript_is_an_error(shell: Shell, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "notes.jsonl"
    file.write_bytes(content)
    assert "is not a transcript of codex" in shell.fails("import", "codex", str(file))


@pytest.mark.parametrize("program", ["claude-code", "codex", "brain", "specstory", "opencode"])
def test_an_empty_transcript_is_an_error_and_half_a_line_is_waited_for(
    shell: Shell, tmp_path: Path, program: str
) -> None:
    """Never just "0 messages"."""
    file = tmp_path / ("t.md" if program == "specstory" else "t.jsonl")
    file.write_bytes(b"")
    assert f"{file} is empty." in shell.fails("import", program, str(file))
    file.write_bytes(b'{"type": "us')
    assert "still being written is left for the next import" in shell("import", program, str(file))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_an_error(shell: Shell, tmp_path: Path) -> None:
    file = claude(tmp_path, "s1", tmp_path / "app", "Hello app")
    file.chmod(0)
    assert "could not read the transcript" in shell.fails("import", "claude-code", str(file))


def test_a_rule_that_fails_on_one_transcript_does_not_stop_the_others(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kept.memory import imports

    for name in ("a", "b", "c"):
        claude(tmp_path, name, tmp_path / "app", f"Hello {name}")
    whole = imports.PARSERS["claude-code"]

    def breaks(lines: list[bytes], known: int = 0) -> Any:
        parsed = whole(lines, known)
        if parsed.session == "b" and "_import_file" in {frame.function for frame in __import__("inspect").stack()}:
            raise ValueError("not foreseen")
        return parsed

    monkeypatch.setattr(imports, "PARSERS", {"claude-code": breaks})
    result = shell.type("import", "claude-code")
    assert result.exit_code == 1
    assert "b.jsonl: It could not be read (ValueError)." in result.stderr
    assert sessions(shell) == {"a": 1, "c": 1}


def codex(tmp_path: Path) -> None:
    path = tmp_path / ".codex" / "sessions" / "2026" / "01" / "12" / "rollout-1.jsonl"
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}
    at = "2026-01-12T09:00:00.000Z"
    meta = {"timestamp": at, "type": "session_meta", "payload": {"id": "s1", "cwd": str(tmp_path / "app")}}
    write(path, [meta, {"timestamp": at, "type": "response_item", "payload": said}])


def gemini(tmp_path: Path) -> None:
    write(tmp_path / ".gemini" / "projects.json", [{"projects": {str(tmp_path / "app"): "app-1"}}])
    said = {"id": "m1", "timestamp": "2026-01-12T09:00:00.000Z", "type": "user", "content": [{"text": "Hello"}]}
    chats = tmp_path / ".gemini" / "tmp" / "app-1" / "chats"
    write(chats / "session-1.jsonl", [{"sessionId": "s1", "projectHash": "9e0c", "kind": "main"}, said])


def qwen(tmp_path: Path) -> None:
    said = {
        "uuid": "m1",
        "parentUuid": None,
        "sessionId": "s1",
        "timestamp": "2026-01-12T09:00:00.000Z",
        "type": "user",
        "cwd": str(tmp_path / "app"),
        "message": {"role": "user", "parts": [{"text": "Hello"}]},
    }
    write(tmp_path / ".qwen" / "projects" / "app" / "chats" / "s1.jsonl", [said])


def copilot(tmp_path: Path) -> None:
    at = "2026-01-12T09:00:00.000Z"
    context = {"cwd": str(tmp_path / "app")}
    begin = {"type": "session.start", "data": {"sessionId": "s1", "context": context}, "id": "e1", "timestamp": at}
    said = {"type": "user.message", "data": {"content": "Hello"}, "id": "e2", "timestamp": at}
    write(tmp_path / ".copilot" / "session-state" / "s1" / "events.jsonl", [begin, said])


def opencode(tmp_path: Path) -> None:
    folder = tmp_path / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    database = apsw.Connection(str(folder / "opencode.db"))
    columns = "id text, parent_id text, directory text, session_id text, message_id text, time_created int, data text"
    for table in ("session", "message", "part"):
        database.execute(f"create table {table} ({columns})")
    at = int(START.timestamp() * 1000)
    for name, directory in (("s1", tmp_path / "app"), ("s2", "/gone/for/good")):
        add = "insert into {} values (?, null, ?, ?, ?, ?, ?)"
        database.execute(add.format("session"), (name, str(directory), None, None, at, None))
        database.execute(add.format("message"), (f"m-{name}", None, name, None, at, '{"role": "user"}'))
        part = '{"type": "text", "text": "Hello"}'
        database.execute(add.format("part"), (f"p-{name}", None, name, f"m-{name}", at, part))
    database.close()


@pytest.mark.parametrize("program", [codex, gemini, qwen, copilot, opencode], ids=lambda program: program.__name__)
def test_every_program_s_own_place_is_known(shell: Shell, tmp_path: Path, program: Any) -> None:
    program(tmp_path)
    assert "1 message from 1 file." in shell("import", program.__name__)
    assert sessions(shell) == {"s1": 1}
    assert "0 messages" in shell("import", program.__name__)


def test_a_session_that_is_still_running_is_not_finished(shell: Shell, tmp_path: Path) -> None:
    days = (shell.clock() - START).days
    claude(tmp_path, "now", tmp_path / "app", *("Hello there" for _ in range(3)), days=days)
    with kept.open(home=shell.home, clock=lambda: START + timedelta(days=days, minutes=5)) as memory:
        memory.import_transcripts("claude-code", tmp_path / ".claude" / "projects", here=True)
        (session,) = memory.sessions()
        assert session.finished_at is None


def test_an_import_shows_how_far_it_has_come_as_every_long_command_does(shell: Shell, tmp_path: Path) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for number in range(12):
        claude(tmp_path, f"s{number}", tmp_path / "app", "Hello", days=number)
    for stream, is_told in ((Terminal(), True), (io.StringIO(), False)):
        invocation = Invocation(
            home=str(tmp_path / f"home-{is_told}"), clock=FakeClock(), out=io.StringIO(), err=stream
        )
        root.main(["import", "claude-code"], obj=invocation, standalone_mode=False)
        told = stream.getvalue()
        assert ("12/12" in told) == is_told, "a bar"
        assert told.count("Importing: ") == (0 if is_told else 10), "elsewhere a line for each tenth"


def test_paths_are_told_as_seen_from_where_the_session_took_place(shell: Shell, tmp_path: Path) -> None:
    """What is remembered in a worktree holds for the project: no path of that folder stays in it."""
    app = tmp_path / "app"
    claude(tmp_path, "s1", app, f"Never call resetStore() in {app}/src/db/pool.ts, use /opt/lib{app}/x.py instead.")
    shell("import", "claude-code")
    with kept.open(home=shell.home, clock=shell.clock) as memory:
        (found,) = [one for one in memory.list() if one.kind != "summary"]
    assert "in src/db/pool.ts" in found.content
    assert f"/opt/lib{app}/x.py" in found.content, "another folder, in which the same name stands"
    assert "src/db/pool.ts" in found.files


def test_a_dry_run_counts_what_is_new_and_stores_nothing(shell: Shell, tmp_path: Path) -> None:
    app = tmp_path / "app"
    claude(tmp_path, "one", app, "We decided to use MySQL for the billing database.", "And Redis for sessions.")
    planned = shell("import", "claude-code", "--dry-run")
    assert planned.splitlines() == [
        "one  2 new messages",
        "2 messages would be imported from 1 file.",
        "These are messages. What is worth keeping of them is decided when they are imported.",
    ]
    assert not shell.home.exists() or sessions(shell) == {}
    shell("import", "claude-code")
    claude(tmp_path, "one", app, "We decided to use MySQL for the billing database.", "And Redis for sessions.", "Ok.")
    document = shell.json("import", "claude-code", "--dry-run")
    assert (document["dry_run"], [one["added"] for one in document["files"]]) == (True, [1])
    assert shell.json("import", "claude-code", "--dry-run", "--all-projects")["files"][0]["added"] == 1
    assert sessions(shell) == {"one": 2}
    assert shell.json("import", "claude-code")["files"][0]["added"] == 1


def test_an_import_of_transcripts_says_what_was_kept_of_them_by_kind(shell: Shell, tmp_path: Path) -> None:
    app = tmp_path / "app"
    claude(tmp_path, "one", app, "We decided to use MySQL for the billing database.", "Never deploy on a Friday.")
    said = shell("import", "claude-code").splitlines()[-1]
    kept_kinds = Counter(one["kind"] for one in shell.json("list")["memories"])
    assert kept_kinds["decision"] == 1
    assert said.startswith("Stored from them: ")
    assert "1 decision" in said
    claude(tmp_path, "two", app, "Hello there.")
    document = shell.json("import", "claude-code", "--all-projects")
    assert sum(document["kept"].values()) == len(shell.json("list")["memories"]) - kept_kinds.total()


def test_a_last_line_without_an_end_is_read_if_it_is_complete(shell: Shell, tmp_path: Path) -> None:
    records = [{"id": str(n), "role": "user", "content": f"Message {n}", "timestamp": "2026-01-12"} for n in range(3)]
    whole = "\n".join(map(json.dumps, records))
    file = tmp_path / "s1.jsonl"
    for n_chars, messages in ((len(whole) - 5, 2), (len(whole), 3), (len(whole), 3)):
        file.write_text(whole[:n_chars], "utf-8")
        shell("import", "brain", str(file))
        assert sessions(shell) == {"s1": messages}
    file.write_text(f"{whole}\n{json.dumps(records[0] | {'id': 'x'})}\n", "utf-8")
    shell("import", "brain", str(file))
    assert sessions(shell) == {"s1": 4}


def test_the_format_is_a_word_or_an_option_and_here_leaves_out_other_projects(shell: Shell, tmp_path: Path) -> None:
    folder = claude(tmp_path, "own", tmp_path / "app", "Hello app").parent
    claude(tmp_path, "other", "/somewhere/else", "Hello there")
    assert "1 message from 1 file." in shell("import", "--format", "claude-code", str(folder.parent), "--here")
    assert sessions(shell) == {"own": 1}
    assert "1 message from 2 files." in shell("import", "claude-code", str(folder.parent))


def test_several_paths_are_refused_where_one_document_is_the_answer(shell: Shell) -> None:
    refused = shell.type("import", "markdown", "a.md", "b.md", "--json")
    assert refused.exit_code == 2
    assert "import one PATH at a time" in json.loads(refused.stdout)["error"]["message"]


def test_a_folder_of_transcripts_is_recognised(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "rollouts"
    said = {"id": "1", "timestamp": "2026-02-10T21:11:00.000Z", "type": "user", "content": "Where is the port?"}
    write(folder / "session-1.jsonl", [{"sessionId": "g1", "projectHash": "9e0c", "kind": "main"}, said])
    assert "1 new message" in shell("import", str(folder))
