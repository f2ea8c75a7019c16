"""What an acknowledged write leaves behind is the same, however cheaply it was made."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept import journal
from kept.errors import StorageError
from kept.model import Alias, Allowance, Conflict, Memory, Pause, Record, Session, Source, Task
from kept.ports import ANYWHERE
from kept.storage.prepare import prepare
from kept.storage.sqlite import SqliteStorage, rows
from kept.storage.turns import Turns
from tests.builders import memory, stamp

NOW = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@pytest.mark.parametrize(
    "record",
    [
        Alias(id=1, word="js", expands_to=("javascript", "node")),
        Allowance(id=1, digest="d", note=""),
        Conflict(id=1, left="a", right="b", type="ambiguous", detected_at=NOW),
        Pause(id=1, session=None, since=NOW),
        Session(id=1, name="s", started_at=NOW),
        Task(id=1, name="t", description="d", blocked_by=("u",), created_at=NOW),
    ],
    ids=lambda record: record.noun,
)
def test_a_new_record_is_told_as_its_difference_to_nothing(record: Record) -> None:
    assert journal.payload_of_new(record) == journal.payload(journal.diff(None, record))


@given(st.none() | st.dictionaries(st.text(), JSON))
def test_a_new_memory_is_told_as_its_difference_to_nothing_whatever_it_carries(data: dict[str, object] | None) -> None:
    new = memory("It needs Node 22", id=3, tags=("build",), source=Source(session="s", line=3), data=data)
    told = journal.payload_of_new(new)
    assert told == journal.payload(journal.diff(None, new))
    assert told == journal.payload(msgspec.json.decode(told))


def test_whoever_takes_the_turn_signs_even_where_somebody_else_had_it_last(tmp_path: Path) -> None:
    turns = Turns(tmp_path / "kept.db.lock")
    for _ in range(2):
        turns.take(0)
        assert turns.holder() == os.getpid()
        turns.leave(b"4242".ljust(20), 0)
        turns.end()
    turns.close()


def test_an_interrupted_signature_leaves_no_lock_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(turns: Turns) -> None:
        raise KeyboardInterrupt

    turns, others = Turns(tmp_path / "kept.db.lock"), Turns(tmp_path / "kept.db.lock")
    monkeypatch.setattr(Turns, "_sign", interrupt)
    with pytest.raises(KeyboardInterrupt):
        turns.take(0)
    monkeypatch.undo()
    others.take(0)
    others.end()
    for one in (turns, others):
        one.close()


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[SqliteStorage]:
    opened = SqliteStorage(tmp_path / "kept.db", "project/p1")
    yield opened
    opened.close()


def test_a_turn_in_which_a_change_failed_leaves_nothing_whoever_catches_the_error(storage: SqliteStorage) -> None:
    first = memory("Kept before", uid="one")
    with storage.writing(stamp()) as tx:
        tx.add(first, "remember")

    def go_on_after_an_error() -> None:
        with storage.writing(stamp()) as tx:
            tx.add(memory("Another with its uid", uid="one"), "remember")
            with pytest.raises(Exception, match="UNIQUE"):
                tx.count(ANYWHERE)
            tx.add(memory("As if nothing had happened", uid="two"), "remember")

    with pytest.raises(StorageError, match="nothing of it is kept"):
        go_on_after_an_error()
    with storage.reading() as reader:
        assert [m.content for m in reader.select(ANYWHERE)] == ["Kept before"]
        assert [event.subject for event in reader.events()] == ["one"]


def test_a_connection_that_failed_is_not_lent_again(storage: SqliteStorage) -> None:
    with pytest.raises(StorageError), storage._pool.borrow() as connection, storage._turn(0):
        connection.execute("select * from nowhere")
    with storage._pool.borrow() as other:
        assert other is not connection


def test_every_field_of_a_memory_stands_in_its_own_column() -> None:
    """The values of a row are written down by hand: none may stand in the place of another."""
    texts = "uid content fingerprint kind tier scope status reason topic key item_type title superseded_by".split()
    numbers = {"id": 2, "importance": 0.25, "confidence": 0.75, "feedback": 3, "use_count": 4}
    moments = "created_at updated_at last_hit_at last_used_at verified_at archived_at".split()
    at = {name: NOW + timedelta(days=day) for day, name in enumerate(moments)}
    source = Source(origin="import", agent="a", session="s", task="t", narrative="n", file="f", line=5)
    lists = {"tags": ("tag",), "files": ("file",)}
    named = {name: f"its {name}" for name in texts}
    new = Memory(space="project/p1", source=source, data={"a": 1}, **named, **numbers, **at, **lists)  # type: ignore[arg-type]
    row = rows.to_row(new)
    assert {name: row[name] for name in (*named, *numbers)} == named | numbers
    assert {name: row[name] for name in moments} == {name: rows.clock(moment) for name, moment in at.items()}
    assert (row["tags"], row["files"], row["data"]) == ('["tag"]', '["file"]', '{"a":1}')
    of_source = ("source", "agent", "session_id", "task_id", "narrative_id", "source_file", "source_line")
    assert tuple(row[name] for name in of_source) == msgspec.structs.astuple(source)
    of_text = ("words", "tag_words", "file_words", "source_words", "kind_words", "n_words", "n_tokens")
    assert tuple(row[name] for name in of_text) == msgspec.structs.astuple(prepare(new))
