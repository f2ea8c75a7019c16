"""Arguments of the wrong type or out of range raise an error that says so, whichever method is called."""

from collections.abc import Callable, Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

import kept


@pytest.fixture(params=["sqlite", "memory"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[kept.Kept]:
    with kept.open(":memory:" if request.param == "memory" else tmp_path / "m.db") as opened:
        opened.remember("The importer retries three times", tags=["importer"])
        yield opened


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda m: m.recall(None), "query must be a string, not NoneType"),
        (lambda m: m.recall(b"importer"), "query must be a string, not bytes"),
        (lambda m: m.recall("x", tags=[3]), "must be a string, not int"),
        (lambda m: m.recall("x", limit=1.5), "limit must be a whole number from 0 to 1,000, got 1.5"),
        (lambda m: m.recall("x", since="2026-01-01"), "since must be a datetime with a time zone"),
        (lambda m: m.recall("x", until=date(2026, 1, 1)), "until must be a datetime with a time zone"),
        (lambda m: m.recall("x", since=datetime(2026, 1, 1)), "since must be a datetime with a time zone"),
        (lambda m: m.list(limit=1.5), "limit must be a whole number from 0 to 2,147,483,647, got 1.5"),
        (lambda m: m.list(limit=True), "got True"),
        (lambda m: m.list(limit=10**30), "limit must be a whole number"),
        (lambda m: m.history(limit=-1), "limit must be a whole number from 0 to 2,147,483,647, got -1"),
        (lambda m: m.history(limit=10**30), "limit must be a whole number"),
        (lambda m: m.erase(b"1"), "is not a memory ref"),
        (lambda m: m.erase(None), "is not a memory ref"),
        (lambda m: m.erase(1.5), "is not a memory ref"),
        (lambda m: m.erase({}), "is not a memory ref"),
    ],
)
def test_a_wrong_argument_is_an_error_and_changes_nothing(
    memory: kept.Kept, call: Callable[[Any], object], sentence: str
) -> None:
    with pytest.raises(kept.InvalidInput, match=sentence):
        call(memory)
    assert [m.content for m in memory.list()] == ["The importer retries three times"]


def test_a_path_may_be_a_string(memory: kept.Kept, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"id":"m1","role":"user","content":"hello"}\n')
    (done,) = memory.import_transcripts("brain", str(tmp_path / "t.jsonl"))
    assert done.added == 1


def test_a_backup_may_be_named_by_a_string(tmp_path: Path) -> None:
    with kept.open(tmp_path / "m.db") as memory:
        memory.remember("The importer retries three times")
        memory.store.backup(str(tmp_path / "backup.db"))
        memory.remember("It gives up after that")
        memory.store.restore(str(tmp_path / "backup.db"), overwrite_newer=True)
        assert len(memory.list()) == 1


def test_hits_can_be_counted_and_taken_by_their_place(memory: kept.Kept) -> None:
    recalled = memory.recall("importer")
    assert recalled[0] is recalled.hits[0]
    assert len(recalled) == 1
