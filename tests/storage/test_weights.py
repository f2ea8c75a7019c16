"""The numbers by which a search chooses candidates are held in memory, and never older than the transaction."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kept.model import Memory, replace
from kept.ports import Ranking
from kept.storage.sqlite import SqliteStorage, index
from kept.storage.weights import Weights
from tests.behind import behind
from tests.builders import START, memory, stamp

BY_FEEDBACK = Ranking(factors=("feedback",), now=START)
ROWS = 1_500  # more than one chunk


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[SqliteStorage]:
    opened = SqliteStorage(tmp_path / "m.db", "project/p1", synchronous="normal")
    with opened.writing(stamp()) as tx:
        for number in range(ROWS):
            tx.add(memory(f"alpha {number}"), "remember")
    yield opened
    opened.close()


def best(storage: SqliteStorage) -> int:
    with storage.reading() as reader:
        return reader.search(["alpha"], limit=1, ranking=BY_FEEDBACK)[0].memory.id


def praise(storage: SqliteStorage, id: int, feedback: int) -> None:
    with storage.writing(stamp()) as tx:
        found = tx.get(Memory, id)
        assert found is not None
        tx.put(replace(found, feedback=feedback), "reinforce")


def test_what_another_process_changes_counts_at_once(storage: SqliteStorage) -> None:
    other = SqliteStorage(storage.path, synchronous="normal")
    for id, feedback in ((7, 3), (1_200, 6), (ROWS, 9)):
        assert best(storage) != id
        praise(other, id, feedback)
        assert best(storage) == best(other) == id
    other.close()


def test_what_is_taken_back_is_not_remembered(storage: SqliteStorage) -> None:
    first = best(storage)

    def praise_and_fail() -> None:
        with storage.writing(stamp()) as tx:
            found = tx.get(Memory, 7)
            assert found is not None
            tx.put(replace(found, feedback=50), "reinforce")
            assert tx.search(["alpha"], limit=1, ranking=BY_FEEDBACK)[0].memory.id == 7
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        praise_and_fail()
    assert best(storage) == first


def test_only_chunks_that_changed_are_read_again(storage: SqliteStorage) -> None:
    held = Weights()
    with storage.reading() as reader:
        before = held.read(reader.index, up_to=ROWS)
        assert held.read(reader.index, up_to=ROWS) is before
    kept_chunk = held._chunks[0]
    praise(storage, 1_200, 3)
    with storage.reading() as reader:
        after = held.read(reader.index, up_to=ROWS)
    assert held._chunks[0] is kept_chunk
    assert [id for id in range(ROWS) if before.feedbacks[id] != after.feedbacks[id]] == [1_200]


def test_nothing_is_wanted_and_nothing_is_found(storage: SqliteStorage) -> None:
    with storage.reading() as reader:
        assert reader.search(["alpha"], limit=0) == []


@pytest.mark.parametrize("column", ["lengths", "feedbacks", "others", "days"])
def test_doctor_notices_a_changed_byte(storage: SqliteStorage, column: str) -> None:
    connection = behind(storage.path)
    assert index.wrongly_weighed(connection) == []
    blob: Any = connection.execute(f"select {column} from weights where chunk = 1").get
    connection.execute(f"update weights set {column} = ? where chunk = 1", (bytes([blob[0] ^ 1]) + blob[1:],))
    damaged = index.wrongly_weighed(connection)
    connection.close()
    assert damaged == list(range(1_000, ROWS + 1))


def test_a_short_text_is_worth_more_than_a_long_one(storage: SqliteStorage) -> None:
    with storage.writing(stamp()) as tx:
        short = tx.add(memory("alpha"), "remember")
        tx.add(memory("alpha " + "beta " * 60), "remember")
    assert best(storage) == short.id
