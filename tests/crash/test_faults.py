"""All or nothing, whatever fails: the short version of tests/crash/faults.py, and some faults of their own."""

import os
from pathlib import Path

import apsw
import pytest

from kept.errors import InvalidInput, StorageError
from kept.storage.sqlite import SqliteStorage
from tests.builders import memory, stamp
from tests.crash import faults
from tests.crash.checks import SPACE
from tests.crash.operations import OPERATIONS, make_templates
from tests.crash.scratch import scratch_folder
from tests.crash.simulated_disk import on_connect


def test_whatever_fails_it_is_all_or_nothing() -> None:
    """B21, C30: every operation, every sync, and a sample of all statements and writes."""
    with scratch_folder() as folder:
        report = faults.run(folder, stride=53)
    assert {name for name, _, _ in report.outcomes} == set(OPERATIONS)
    assert report.problems == []


def test_a_failed_sync_of_a_commit_is_never_an_acknowledgement(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    make_templates(tmp_path / "templates")
    for k in (1, 2):  # the header of the WAL, and the commit
        trial = faults.Trial(tmp_path / "trial", tmp_path / "templates", OPERATIONS["add"], "sync")
        assert str(trial.run(k, "")).startswith("raised")


def test_notes_at_lower_durability_never_lower_that_of_a_write(tmp_path: Path) -> None:
    """When the way back to full durability fails, the connection is not used again."""
    opened: list[apsw.Connection] = []
    is_failing = False

    def trace(cursor: apsw.Cursor, sql: str, bindings: object) -> bool:
        if is_failing and sql == "pragma synchronous = full":
            raise apsw.SQLError("injected")
        return True

    def watch(connection: apsw.Connection) -> None:
        connection.exec_trace = trace
        opened.append(connection)

    with on_connect(watch):
        storage = SqliteStorage(tmp_path / "kept.db", SPACE)
        is_failing = True
        with pytest.raises(StorageError), storage.bookkeeping():
            pass
        is_failing = False
        with storage.writing(stamp()) as tx:
            tx.add(memory("durable"), "remember")
        assert len(opened) == 2
        assert opened[1].pragma("synchronous") == 2
        storage.close()


def test_a_precaution_that_fails_does_not_fail_the_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was committed is not reported as failed because the room for bad days could not be set aside."""
    storage = SqliteStorage(tmp_path / "kept.db", SPACE)
    (tmp_path / "kept.db.reserve").unlink()

    def fail(path: object) -> None:
        raise OSError("no answer")

    monkeypatch.setattr(os, "statvfs", fail)
    for urgent in (False, True):
        with storage.writing(stamp(), urgent=urgent) as tx:
            tx.add(memory(f"urgent {urgent}"), "remember")
    storage.close()


def test_a_database_of_another_program_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    theirs = apsw.Connection(str(path))
    theirs.execute("create table contacts (name text)")
    theirs.close()
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match="another program"):
        SqliteStorage(path, SPACE)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["theirs.db"]
