"""Imports that meet others: compressed rollouts, a session in use, a fork that came before its original, old dates."""

import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

import kept
from kept.errors import Busy
from kept.exchange import compressed
from kept.memory.sessions import lease_of
from kept.upkeep.decisions import is_penalised
from tests.builders import FakeClock, context_of
from tests.exchange.test_transcripts import claude, codex_file, lines

ZSTD = pytest.mark.skipif(shutil.which("zstd") is None, reason="needs the program zstd")


def opened(folder: Path, clock: FakeClock | None = None) -> kept.Kept:
    return kept.open(folder / "m.db", clock=clock or FakeClock(), settings=kept.Settings())


def pack(file: Path) -> Path:
    subprocess.run(["zstd", "--quiet", "--rm", str(file)], check=True)
    return file.with_name(file.name + ".zst")


@ZSTD
def test_a_compressed_rollout_is_read_and_one_that_was_compressed_later_adds_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    codex_file(folder / "a.jsonl", "one", ["We decided to use Postgres", "Never edit migrations"])
    codex_file(folder / "b.jsonl", "two", ["The port is 1100"])
    pack(folder / "a.jsonl")
    with opened(tmp_path) as memory:
        assert sum(done.added for done in memory.import_transcripts("codex", folder)) == 3
        pack(folder / "b.jsonl")
        again = memory.import_transcripts("codex", folder)
        assert [(done.added, done.failed) for done in again if done.added or done.failed] == []
        assert {session.name for session in memory.sessions()} == {"one", "two"}


def test_what_cannot_be_unpacked_is_reported_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(packed: bytes) -> bytes:
        raise ImportError

    for name in ("_by_python", "_by_package", "_by_program"):
        monkeypatch.setattr(compressed, name, missing)
    folder = tmp_path / "sessions"
    folder.mkdir()
    codex_file(folder / "b.jsonl", "two", ["The port is 1100"])
    (folder / "a.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    with opened(tmp_path) as memory:
        done = memory.import_transcripts("codex", folder)
        assert sum(one.added for one in done) == 1
        [failed] = [one.failed for one in done if one.failed]
        assert "compressed with zstd" in failed
        assert "pip install zstandard" in failed


@ZSTD
def test_a_broken_archive_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.zst").write_bytes(b"not packed at all")
    with pytest.raises(kept.InvalidInput, match="cannot be unpacked"):
        compressed.decompressed(tmp_path / "a.jsonl.zst")


def test_a_session_that_another_process_works_on_is_left_alone_and_imported_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kept.memory.imports.LEASE_WAIT_S", 0.0)
    folder = tmp_path / "sessions"
    folder.mkdir()
    codex_file(folder / "a.jsonl", "one", ["We decided to use Postgres"])
    codex_file(folder / "b.jsonl", "two", ["The port is 1100"])
    with opened(tmp_path) as memory, opened(tmp_path) as other:
        memory.remember("The store is there")
        with context_of(other).owned().lease(lease_of("one")) as is_ours:
            assert is_ours
            done = {one.session: one for one in memory.import_transcripts("codex", folder)}
            assert "Another process" in (done["one"].failed or "")
            assert done["two"].added == 1
            with pytest.raises(Busy):  # so that a hook keeps its pointer
                memory.import_transcripts("codex", folder / "a.jsonl")
        assert sum(one.added for one in memory.import_transcripts("codex", folder)) == 1


def test_an_original_that_comes_after_its_fork_is_linked_to_it_and_said_once(tmp_path: Path) -> None:
    """C25: a fork of a session from before Kept is captured first; the original is imported later."""
    before = ["Fix the login", "Then the logout", "Then the sign-up"]
    codex_file(tmp_path / "fork.jsonl", "child", [*before, "Went on there"], forked_from="parent")
    codex_file(tmp_path / "original.jsonl", "parent", before)
    with opened(tmp_path) as memory:
        memory.import_transcripts("codex", tmp_path / "fork.jsonl")
        memory.import_transcripts("codex", tmp_path / "original.jsonl")
        linked = {session.name: (session.parent, session.shared) for session in memory.sessions()}
        assert linked == {"child": (None, 0), "parent": ("child", 3)}
        assert [message.content for message in memory.session("parent").messages()] == before
        found = [hit.message.content for hit in memory.recall("login", scope="sessions", limit=9) if hit.message]
        assert found.count("Fix the login") == 1


def test_a_fork_of_claude_code_that_came_first_is_linked_as_well(tmp_path: Path) -> None:
    shared = [claude("user", "u1", "Fix the login"), claude("assistant", "a1", "Fixed.", parentUuid="u1")]
    own = claude("user", "u2", "Now the logout", parentUuid="a1")
    for name, records in (("fork", (*shared, own)), ("original", shared)):
        told = lines(*(record | {"sessionId": name} for record in records))
        (tmp_path / f"{name}.jsonl").write_bytes(b"".join(line + b"\n" for line in told))
    with opened(tmp_path) as memory:
        memory.import_transcripts("claude-code", tmp_path / "fork.jsonl")
        memory.import_transcripts("claude-code", tmp_path / "original.jsonl")
        assert {s.name: s.parent for s in memory.sessions()} == {"fork": None, "original": "fork"}


def test_an_imported_memory_stays_in_quarantine_for_its_hours_however_old_it_is(tmp_path: Path) -> None:
    clock = FakeClock()
    at = f"{clock() - timedelta(days=40):%Y-%m-%dT%H:%M:%SZ}"
    record = claude("assistant", "a1", "The importer reads `rows.csv` twice, because the first pass counts the rows.")
    call = {"type": "tool_use", "id": "t", "name": "Read", "input": {"path": "rows.csv"}}
    first = claude("user", "u1", "Look at the importer")
    tool = {**record, "uuid": "a0", "message": {"role": "assistant", "content": [call]}}
    told = lines(*({**one, "timestamp": at} for one in (first, tool, record)))
    (tmp_path / "old.jsonl").write_bytes(b"".join(line + b"\n" for line in told))
    with opened(tmp_path, clock) as memory:
        memory.import_transcripts("claude-code", tmp_path / "old.jsonl")
        [one] = [memory_ for memory_ in memory.list() if memory_.kind != "summary"]
        assert (one.status, one.created_at < clock() - timedelta(days=30)) == ("candidate", True)
        for hours, is_over in ((1, False), (24, True)):
            clock.advance(hours=hours)
            memory.upkeep()
            assert is_penalised(memory.get(one.ref)) is is_over
