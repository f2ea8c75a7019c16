"""What an acknowledged write leaves behind is the same, however cheaply it was made."""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kept import journal
from kept.errors import StorageError
from kept.model import Alias, Allowance, Conflict, Memory, Pause, Record, SessionRecord, Source, TaskRecord, replace
from kept.ports import ANYWHERE
from kept.storage.lock import Turns
from kept.storage.shared import prepare
from kept.storage.sqlite import SqliteStorage, index, rows
from kept.storage.sqlite.encoding import microseconds
from kept.storage.sqlite.writer import SqliteTransaction
from kept.storage.weights import Weights
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
        SessionRecord(id=1, name="s", started_at=NOW),
        TaskRecord(id=1, name="t", description="d", blocked_by=("u",), created_at=NOW),
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

    with pytest.raises(StorageError, match="none of it was stored"):
        go_on_after_an_error()
    with storage.reading() as reader:
        assert [m.content for m in reader.select(ANYWHERE)] == ["Kept before"]
        assert [event.subject for event in reader.events()] == ["one"]


def test_a_full_disk_that_ends_the_transaction_ends_the_turn(storage: SqliteStorage) -> None:
    """SQLite then rolls back by itself, and what came after would be written outside of any transaction."""
    with storage.writing(stamp()) as tx:
        for n in range(1_005):  # so that a change of the first thousand has other pages to write than an addition
            tx.add(memory(f"Number {n}"), "remember")

    def fill(tx: SqliteTransaction) -> None:
        for n in range(40):
            tx.put(memory(f"Number {n}" + " so" * 400 * n, id=1, uid="one"), "revise")

    def go_on_although_it_is_full() -> None:
        with storage.writing(stamp()) as tx:
            connection = tx.view.connection
            connection.execute(f"pragma max_page_count = {connection.execute('pragma page_count').get}")
            with pytest.raises(apsw.FullError):
                fill(tx)
            tx.view.bare.execute("pragma max_page_count = 1000000")
            assert not connection.in_transaction
            tx.add(memory("As if nothing had happened"), "remember")

    with pytest.raises(StorageError, match="none of it was stored"):
        go_on_although_it_is_full()
    assert_whole(storage)


def test_a_connection_that_failed_is_not_lent_again(storage: SqliteStorage) -> None:
    with pytest.raises(StorageError), storage._pool.borrow() as connection, storage._turn(0):
        connection.execute("select * from nowhere")
    with storage._pool.borrow() as other:
        assert other is not connection


def remember(storage: SqliteStorage, **fields: Any) -> Memory:
    with storage.writing(stamp()) as tx:
        return tx.add(memory("It is so", **fields), "remember")


def fail_to_change(storage: SqliteStorage) -> None:
    """A turn that has written everything, and is taken back."""

    def change_and_fail() -> None:
        with storage.writing(stamp()) as tx:
            found = tx.get(Memory, 1)
            assert found is not None
            tx.put(replace(found, feedback=50), "reinforce")
            tx.add(memory("Never there"), "remember")
            tx.flush()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change_and_fail()


def erase(storage: SqliteStorage) -> None:
    with storage.writing(stamp()) as tx:
        found = tx.get(Memory, 1)
        assert found is not None
        tx.erase(found)
    storage.scrub()


def restore(storage: SqliteStorage) -> None:
    copy = storage.path.with_name("copy.db")
    storage.back_up(copy)
    remember(storage)
    storage.restore_from(copy, overwrite_newer=True)


def take_notes(storage: SqliteStorage) -> None:
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.count_uses([1], NOW)


def assert_whole(storage: SqliteStorage) -> None:
    """The chain has no gap, and what memories are weighed by is theirs."""
    with storage.reading() as reader:
        assert journal.broken_links(reader.events()) == []
        assert index.wrongly_weighed(reader.view.connection) == []


def test_a_turn_goes_on_where_the_last_one_ended_without_asking_the_file(storage: SqliteStorage) -> None:
    remember(storage)
    (connection,) = storage._pool._idle
    asked: list[str] = []
    connection.exec_trace = lambda cursor, sql, bindings: asked.append(sql) or True
    assert remember(storage).id == 2
    assert asked
    assert [sql for sql in asked if "select" in sql or "pragma" in sql] == []
    assert_whole(storage)


def test_a_turn_asks_the_file_again_when_somebody_else_has_written(storage: SqliteStorage) -> None:
    other = SqliteStorage(storage.path)
    for n in range(1, 7):
        assert remember(storage if n % 3 else other, feedback=n).id == n
    other.close()
    assert_whole(storage)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(["alone", "beside a reader", "somebody else"]), max_size=30))
def test_turns_go_on_rightly_through_whichever_connection(ways: list[str]) -> None:
    with TemporaryDirectory() as folder:
        other = SqliteStorage(Path(folder, "kept.db"), "project/p1", synchronous="normal")
        storage = SqliteStorage(other.path, synchronous="normal")
        for n, way in enumerate(ways, 1):
            if way == "beside a reader":  # who has the connection of the last turn
                with storage.reading():
                    assert remember(storage).id == n
            else:
                assert remember(other if way == "somebody else" else storage).id == n
        assert_whole(storage)
        other.close()
        storage.close()


@pytest.mark.parametrize(
    "between",
    [
        fail_to_change,
        erase,
        restore,
        take_notes,
    ],
    ids=["a failure", "an erasure", "a restored backup", "the notes of a recall"],
)
def test_a_turn_goes_on_rightly_after(storage: SqliteStorage, between: Callable[[SqliteStorage], None]) -> None:
    remember(storage, feedback=3)
    second = remember(storage)
    between(storage)
    with storage.writing(stamp()) as tx:
        found = tx.get(Memory, second.id)
        assert found is not None
        tx.put(replace(found, feedback=7), "reinforce")
    assert remember(storage).id == (4 if between is restore else 3)  # the id of one that a backup lacks is not reused
    assert_whole(storage)


def test_nothing_of_an_erased_memory_comes_back_with_the_next(storage: SqliteStorage) -> None:
    first = remember(storage, feedback=3)
    with storage.writing(stamp()) as tx:
        tx.erase(first)
        tx.add(memory("Another"), "remember")
    with storage.reading() as reader:
        numbers = Weights().read(reader.index, up_to=2)
    assert (numbers.lengths[1], numbers.feedbacks[1], numbers.others[1], numbers.days[1]) == (0, 0, 0, 0)
    assert numbers.lengths[2] > 0


def test_ids_go_on_behind_one_that_was_given(storage: SqliteStorage) -> None:
    remember(storage)
    with storage.writing(stamp()) as tx:
        tx.add(memory("It has an id of its own", id=40), "undo")
        assert tx.add(memory("In the same turn"), "remember").id == 41
    assert remember(storage).id == 42


def test_every_field_of_a_memory_stands_in_its_own_column() -> None:
    """No value may stand in the place of another."""
    texts = (
        "uid content fingerprint kind tier scope trust status reason topic key item_type title superseded_by".split()
    )
    numbers = {"id": 2, "importance": 0.25, "confidence": 0.75, "feedback": 3, "use_count": 4}
    moments = "created_at updated_at last_hit_at last_used_at verified_at archived_at".split()
    at = {name: NOW + timedelta(days=day) for day, name in enumerate(moments)}
    source = Source(origin="import", agent="a", session="s", task="t", narrative="n", file="f", line=5)
    lists = {"tags": ("tag",), "files": ("file",)}
    named = {name: f"its {name}" for name in texts}
    new = Memory(space="project/p1", source=source, data={"a": 1}, **named, **numbers, **at, **lists)  # type: ignore[arg-type]
    row = rows.to_row(new)
    assert {name: row[name] for name in (*named, *numbers)} == named | numbers
    assert {name: row[name] for name in moments} == {name: microseconds(moment) for name, moment in at.items()}
    assert (row["tags"], row["files"], row["data"]) == ('["tag"]', '["file"]', '{"a":1}')
    of_source = ("source", "agent", "session_id", "task_id", "narrative_id", "source_file", "source_line")
    assert tuple(row[name] for name in of_source) == msgspec.structs.astuple(source)
    of_text = ("words", "tag_words", "file_words", "source_words", "kind_words", "n_words", "n_tokens")
    assert tuple(row[name] for name in of_text) == msgspec.structs.astuple(prepare(new))
