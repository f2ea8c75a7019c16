"""Memory files of other programs: every importer on real files, on none, on garbage, on many, on half a file."""

import json
import os
import random
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest

import kept
from kept.exchange.importers import BY_NAME, IMPORTERS
from kept.memory import Kept, opening
from kept.memory.bringing import importer_of
from kept.model import Memory
from tests.builders import FakeClock
from tests.exchange.foreign_files import (
    CLAUDE_MEM,
    FILES,
    MEMORY_MD,
    PRAXIS_SESSION,
    ForeignFile,
    claude_mem_database,
    claude_mem_rows,
    insert_rows,
    praxis_entry,
    praxis_store,
)

ONE_OF_EACH_MODULE = {importer.read.__module__: importer.name for importer in IMPORTERS}.values()
JSON_FORMATS = ("praxis", "brain", "agent-engine", "mem0")
ONE_NOTE = ("claude-memory", "qwen-memory")  # a file is one statement
WHOLE_FORMATS = (*JSON_FORMATS, "claude-mem")  # of which half a file is nothing


@pytest.fixture
def memory(tmp_path: Path) -> Kept:
    clock = FakeClock(datetime(2026, 11, 1, tzinfo=UTC))
    return opening.open(tmp_path / "kept.db", clock=clock, origin="user", settings={"auto_upkeep": False})


def written(one: ForeignFile, folder: Path, content: str | bytes | None = None) -> Path:
    file = folder / one.path
    file.parent.mkdir(parents=True, exist_ok=True)
    data = one.content if content is None else content
    file.write_bytes(data if isinstance(data, bytes) else one.as_bytes(data))
    return file


def everything(memory: Kept) -> list[Memory]:
    """All memories, and the items of files."""
    return [*memory.list(limit=1000), *memory.files.items()]


each_format = pytest.mark.parametrize("one", FILES.values(), ids=FILES)


def test_every_importer_has_a_file() -> None:
    assert set(FILES) == {importer.name for importer in IMPORTERS}


@each_format
def test_a_file_is_recognised_and_becomes_memories(one: ForeignFile, memory: Kept, tmp_path: Path) -> None:
    """A13, A16: discrete memories with kind, date and source; candidates that are trusted like an agent, or less."""
    file = written(one, tmp_path)
    assert importer_of(file).name == one.format
    expected = memory.store.import_(file, dry_run=True)
    assert everything(memory) == []
    done = memory.store.import_(file)
    assert (done.stored, done.duplicates, done.unread, done.failed) == (len(one.found), 0, [], [])
    assert expected.stored == done.stored
    stored = everything(memory)
    assert {found.content: found.kind for found in stored} == one.found
    assert {found.source.origin for found in stored} <= {"import", "migration"}
    assert {found.status for found in stored} == {"candidate"}
    assert {found.trust for found in stored} <= {"agent", "tool", "unknown"}


@each_format
def test_importing_again_stores_nothing_and_forgets_nothing(one: ForeignFile, memory: Kept, tmp_path: Path) -> None:
    file = written(one, tmp_path)
    memory.store.import_(file)
    before = everything(memory)
    memory.forget(before[0].ref)
    again = memory.store.import_(file, one.format)
    assert (again.stored, again.duplicates) == (0, len(one.found))
    assert everything(memory) == before[1:]


@each_format
def test_an_import_is_taken_back_by_one_undo(one: ForeignFile, memory: Kept, tmp_path: Path) -> None:
    memory.store.import_(written(one, tmp_path))
    memory.undo()
    assert everything(memory) == []


@each_format
def test_an_empty_file_is_an_error(one: ForeignFile, memory: Kept, tmp_path: Path) -> None:
    with pytest.raises(kept.InvalidInput):
        memory.store.import_(written(one, tmp_path, ""), one.format)


@each_format
def test_garbage_is_an_error_and_stores_nothing(one: ForeignFile, memory: Kept, tmp_path: Path) -> None:
    dice = random.Random(7)
    for garbage in (bytes(dice.randrange(256) for _ in range(5_000)), b"\0" * 100, b"\xff\xfe\x00"):
        with pytest.raises(kept.InvalidInput):
            memory.store.import_(written(one, tmp_path, garbage), one.format)
    assert memory.list() == []


@pytest.mark.parametrize("format", JSON_FORMATS)
@pytest.mark.parametrize("content", ["[]", "{}", "42", "null", '"text"', "[1, null, {}]", '{"entries": 3}'])
def test_other_json_is_an_error_or_unread(format: str, content: str, memory: Kept, tmp_path: Path) -> None:
    file = written(FILES[format], tmp_path, content)
    try:
        done = memory.store.import_(file, format)
    except kept.InvalidInput:
        return
    assert done.stored == 0
    assert done.unread


@pytest.mark.parametrize("one", [one for one in FILES.values() if one.format not in ONE_NOTE])
def test_a_file_that_is_still_being_written(one: ForeignFile, memory: Kept, tmp_path: Path) -> None:
    """Half a document is an error; of lines and paragraphs, those that are complete are taken in, and once."""
    whole = one.as_bytes(one.many(40))
    file = written(one, tmp_path, whole[: len(whole) * 2 // 3])
    if one.format in WHOLE_FORMATS:
        with pytest.raises(kept.InvalidInput, match="still being written"):
            memory.store.import_(file, one.format)
        first = 0
    else:
        first = memory.store.import_(file, one.format).stored
        assert 0 < first < 40
    file.write_bytes(whole)
    memory.store.import_(file, one.format)
    assert 40 <= len(everything(memory)) <= 40 * max(1, len(one.found) - 1) + 2


@pytest.mark.parametrize("one", [FILES[name] for name in ONE_OF_EACH_MODULE], ids=ONE_OF_EACH_MODULE)
@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_very_many_statements_are_read(one: ForeignFile, count: int, tmp_path: Path) -> None:
    content = one.as_bytes(one.many(count))
    brought = BY_NAME[one.format].read(written(one, tmp_path, content), content)
    assert len(brought.statements) >= count
    assert brought.unread == []


@each_format
def test_secrets_are_redacted(one: ForeignFile, memory: Kept, tmp_path: Path) -> None:
    token = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3gH6"
    words = next(iter(one.found)).split()[-1].strip(".")
    content = one.content.replace(words, f"{words} {token}", 1)
    assert token in content
    memory.store.import_(written(one, tmp_path, content), one.format)
    memory.close()
    assert all(token.encode() not in file.read_bytes() for file in tmp_path.glob("kept.db*"))


def test_openclaw_notes_keep_their_dates_and_order(memory: Kept, tmp_path: Path) -> None:
    """A16: source `migration`; a date of the entry, of the heading or of the file."""
    folder = tmp_path / "workspace"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text(MEMORY_MD)
    (folder / "memory" / "2026-03-04-standup.md").write_text("The deploy takes ten minutes.\n")
    (folder / "AGENTS.md").write_text("Not a memory file of OpenClaw.\n")
    done = memory.store.import_(folder, "openclaw")
    assert (done.format, done.files) == ("openclaw", 2)
    dated = [(one.content, f"{one.created_at:%Y-%m-%d}") for one in reversed(memory.list())][:4]
    assert dated == [
        ("Chose SQLite over PostgreSQL for local-first architecture", "2026-02-01"),
        ("API uses Fastify, not Express", "2026-02-03"),
        ("Discussed agent loop implementation", "2026-02-05"),
        ("The deploy takes ten minutes.", "2026-03-04"),
    ]
    assert {one.source.origin for one in memory.list()} == {"migration"}


def test_praxis_keeps_all_fields(memory: Kept, tmp_path: Path) -> None:
    """C3, C4, C6, C10, C11: entries with every field, aliases, conflicts, djb2 fingerprints, session findings."""
    file = written(FILES["praxis"], tmp_path)
    (file.parent / "sessions").mkdir()
    (file.parent / "sessions" / "sess-7.memory.json").write_text(PRAXIS_SESSION)
    done = memory.store.import_(tmp_path, "praxis")
    assert (done.files, done.stored, done.aliases) == (2, 5, 1)
    one = next(found for found in memory.list() if "package 1" in found.content)
    assert (one.kind, one.importance, one.confidence, one.use_count) == ("warning", 0.6, 0.8, 4)
    assert (one.tags, one.files) == (("build",), ("package.json",))
    assert (one.source.session, one.source.agent) == ("sess-1", "claude-code")
    assert one.created_at == datetime.fromtimestamp(1_769_000_000, UTC)
    assert one.last_used_at == datetime.fromtimestamp(1_770_000_000, UTC)
    assert one.data is not None
    assert one.data["praxis"]["fingerprint"] == f"{1:016x}"
    assert len(memory.conflicts()) == 1
    assert "signin" in memory.aliases.list()["auth"]
    finding = next(found for found in memory.list() if "Redis" in found.content)
    assert (finding.source.session, finding.source.agent) == ("sess-7", "codex")
    assert any(found.kind == "summary" for found in memory.list())


def test_praxis_tells_entries_apart_by_their_fingerprints(memory: Kept, tmp_path: Path) -> None:
    entries = [praxis_entry(1, id=None), praxis_entry(1, id=None), praxis_entry(2, id=None)]
    done = memory.store.import_(written(FILES["praxis"], tmp_path, praxis_store(*entries)))
    assert (done.stored, done.duplicates) == (2, 1)


def test_a_newer_praxis_is_refused(memory: Kept, tmp_path: Path) -> None:
    """C11: versions are checked."""
    file = written(FILES["praxis"], tmp_path, praxis_store(praxis_entry(), version=2))
    with pytest.raises(kept.InvalidInput, match="version 2"):
        memory.store.import_(file)


def test_a_person_can_vouch_for_an_import(memory: Kept, tmp_path: Path) -> None:
    """Confirmed as they were, or as confirmed; an agent cannot."""
    file = written(FILES["praxis"], tmp_path, praxis_store(praxis_entry(1, status="pinned"), praxis_entry(2)))
    memory.store.import_(file, confirm=True)
    assert {one.status for one in memory.list()} == {"pinned", "confirmed"}
    agent = opening.open(tmp_path / "agent.db")
    agent.store.import_(file, confirm=True)
    assert {one.status for one in agent.list()} == {"candidate"}
    notes = written(FILES["agents-md"], tmp_path)
    memory.store.import_(notes, confirm=True)
    assert {one.trust for one in memory.list() if "Go files" in one.content} == {"user"}


def test_the_items_of_agent_engine_keep_what_they_are(memory: Kept, tmp_path: Path) -> None:
    """D4, D13: projects/{id}/memory.json, with kind, importance, tags, moment and task, and a failure whole."""
    folder = tmp_path / ".agent_engine" / "projects" / "web"
    folder.mkdir(parents=True)
    at = {"timestamp": "2026-01-05T10:00:00", "token_cost": 4}
    lesson = {"failure": {"error_type": "Timeout", "stage": "build"}, "lesson": "Raise the timeout of the build"}
    items = [
        {"context_item_id": "f1", "kind": "failure", "source": "project/web", "tags": ["project", "ci"], **at}
        | {"importance": 0.85, "payload": lesson},
        {"context_item_id": "t1", "kind": "tool_output", "source": "task/T-7", "tags": ["task", "tests"], **at}
        | {"importance": 0.7, "payload": {"output": "42 tests passed"}},
    ]
    (folder / "memory.json").write_text(json.dumps(items))
    assert memory.store.import_(tmp_path / ".agent_engine", "agent-engine").stored == 2
    failure, output = sorted(memory.list(), key=lambda one: one.kind)
    assert (failure.content, failure.kind, failure.importance) == ("Raise the timeout of the build", "error", 0.85)
    assert failure.tags == ("ci",)
    assert failure.data == lesson
    assert failure.created_at == datetime(2026, 1, 5, 10, tzinfo=UTC)
    assert (output.source.task, output.kind, output.tags) == ("T-7", "tool_output", ("tests",))


def test_brains_layout_brings_memory_items_and_tasks(memory: Kept, tmp_path: Path) -> None:
    """B7, B20: by agent; tasks with state, milestone, criteria and what blocks them."""
    vault = tmp_path / "vault"
    for folder in ("writer", "web", "40_Brain/.agent/tasks"):
        (vault / folder).mkdir(parents=True)
    (vault / "writer" / "MEMORY.md").write_text(MEMORY_MD)
    (vault / "web" / "items.json").write_text(FILES["brain"].content)
    (vault / "40_Brain" / ".agent" / "tasks" / "tasks.json").write_text(
        '{"tasks": [{"id": "TASK-001", "milestone": "M1", "priority": 1, "status": "done", "description": "Lock",'
        ' "acceptance_criteria": ["Lock acquired", "Lock released"], "created": "2026-02-05",'
        ' "completed": "2026-02-07", "blocked_by": []}]}'
    )
    done = memory.store.import_(vault)
    assert (done.format, done.stored, done.tasks) == ("brain", 8, 1)
    assert {one.source.agent for one in memory.list() if "concise" in one.content} == {"writer"}
    [item] = memory.files.items(type="decision")
    assert (item.source.file, item.source.line, item.confidence) == ("docs/Architecture.md", 45, 0.9)
    again = memory.store.import_(vault / "40_Brain" / ".agent" / "tasks" / "tasks.json")
    assert again.tasks == 0
    (task,) = memory.tasks(archived=True)
    assert (task.name, task.state, task.milestone, task.priority) == ("TASK-001", "done", "M1", 1)
    assert task.acceptance_criteria == ("Lock acquired", "Lock released")


def test_a_long_paragraph_is_split_at_sentences(memory: Kept, tmp_path: Path) -> None:
    sentences = [
        f"The service number {n} keeps its state in the table called table_{n} of the main store." for n in range(12)
    ]
    (tmp_path / "long.md").write_text(" ".join(sentences))
    memory.store.import_(tmp_path / "long.md")
    stored = [one.content for one in reversed(memory.list())]
    assert " ".join(stored) == " ".join(sentences)
    assert all(len(one) <= 500 and one.endswith(".") for one in stored)


def test_an_index_of_links_says_nothing(memory: Kept, tmp_path: Path) -> None:
    """Tables of contents and the indexes of a vault are not statements; a sentence with a link is one."""
    (tmp_path / "index.md").write_text(
        "# Index\n- [[Deploys run on Fridays (12)]]\n- [Set-up](setup.md)\n- https://example.org/x\n"
        "- Read [the guide](guide.md) before a release\n"
    )
    memory.store.import_(tmp_path / "index.md", "markdown")
    assert [one.content for one in memory.list()] == ["Read [the guide](guide.md) before a release"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(memory: Kept, tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_text("A note.\n")
    file.chmod(0)
    with pytest.raises(kept.KeptError, match=r"notes\.md"):
        memory.store.import_(file)


def test_claude_mem_is_read_while_its_worker_is_writing(memory: Kept, tmp_path: Path) -> None:
    """In WAL mode, beside a writer in the middle of a transaction: what is committed comes, the rest next time."""
    file = tmp_path / "claude-mem.db"
    worker = apsw.Connection(str(file))
    worker.pragma("journal_mode", "wal")
    worker.pragma("wal_autocheckpoint", 0)
    worker.execute(CLAUDE_MEM)
    insert_rows(worker, claude_mem_rows(3))
    worker.execute("begin immediate")
    late = claude_mem_rows(4).split("\n")[4]
    insert_rows(worker, late)
    first = memory.store.import_(file)
    assert (first.format, first.stored) == ("claude-mem", 3 * 3 + 1)
    worker.execute("commit")
    again = memory.store.import_(file)
    assert (again.stored, again.duplicates) == (3, 3 * 3 + 1)
    insert_rows(worker, late.replace(" 3 ", " 4 "))  # nobody holds it up
    assert worker.execute("pragma integrity_check").fetchone() == ("ok",)
    worker.close()


def test_claude_mem_keeps_dates_files_concepts_and_sessions(memory: Kept, tmp_path: Path) -> None:
    """A13: an observation is a decision, an error, a change or a discovery, with what it is about."""
    file = tmp_path / "claude-mem.db"
    file.write_bytes(claude_mem_database(claude_mem_rows(1).replace('"decision"', '"bugfix"')))
    memory.store.import_(file)
    found = next(one for one in memory.list() if one.content == "Session 0 lives for 30 minutes")
    assert (found.kind, found.files, found.source.session) == ("error", ("src/session.ts",), "m1")
    assert found.tags == ("how-it-works", "trade-off")
    assert found.created_at == datetime(2026, 2, 10, 21, 11, tzinfo=UTC)


def test_of_claude_mem_only_this_project_is_taken(tmp_path: Path) -> None:
    """Its database holds all projects of a machine, each by the name of its folder."""
    rows = "\n".join((claude_mem_rows(1, "web-app"), claude_mem_rows(2, "Notes").replace("m1", "m2")))
    file = tmp_path / "claude-mem.db"
    file.write_bytes(claude_mem_database(rows))
    (tmp_path / "web-app").mkdir()
    (tmp_path / "other").mkdir()
    with opening.open(project=tmp_path / "web-app", home=tmp_path / "home") as memory:
        done = memory.store.import_(file)
        assert (done.stored, done.elsewhere) == (4, 7)
    with opening.open(project=tmp_path / "other", home=tmp_path / "home") as memory:
        with pytest.raises(
            kept.InvalidInput, match=r"'other'. Name one with --from-project: Notes \(7\), web-app \(4\)"
        ):
            memory.store.import_(file)
        assert memory.store.import_(file, from_project="notes").stored == 7


def test_an_old_database_of_claude_mem_is_read(memory: Kept, tmp_path: Path) -> None:
    """Before its version 8 an observation had only a text, and sessions had other names."""
    file = tmp_path / "claude-mem.db"
    connection = apsw.Connection(str(file))
    connection.execute(
        "create table sdk_sessions (id integer primary key, claude_session_id text, sdk_session_id text);"
        "create table observations (id integer primary key, sdk_session_id text, project text, text text, type text,"
        " created_at text, created_at_epoch integer);"
        "create table session_summaries (id integer primary key, sdk_session_id text, project text, request text,"
        " learned text, created_at text, created_at_epoch integer);"
        "insert into observations values (1, 's1', 'app', 'The gate opens at nine', 'discovery', '2025', 1756684800);"
    )
    connection.close()
    memory.store.import_(file)
    assert [(one.content, one.kind, one.source.session) for one in memory.list()] == [
        ("The gate opens at nine", "discovery", "s1")
    ]


def test_another_database_is_not_taken_for_claude_mems(memory: Kept, tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    apsw.Connection(str(file)).execute("create table t (x)")
    with pytest.raises(kept.InvalidInput, match="does not know what"):
        memory.store.import_(file)
    with pytest.raises(kept.InvalidInput, match="it has no observations"):
        memory.store.import_(file, "claude-mem")
