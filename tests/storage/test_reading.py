"""A recall reads little: what nobody has changed since is not read again, and what is not returned is not decoded."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kept.model import Alias, Memory, replace
from kept.ports import Where
from kept.storage.sqlite import SqliteStorage, encoding
from kept.storage.sqlite.bookkeeping import TIDY_EVERY
from tests.builders import START, memory, stamp

PINNED = Where(statuses=("pinned",))


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[SqliteStorage]:
    opened = SqliteStorage(tmp_path / "m.db", "project/p1", synchronous="normal")
    yield opened
    opened.close()


@pytest.fixture
def other(storage: SqliteStorage) -> Iterator[SqliteStorage]:
    opened = SqliteStorage(storage.path, synchronous="normal")
    yield opened
    opened.close()


def add(storage: SqliteStorage, content: str, **fields: object) -> Memory:
    with storage.writing(stamp()) as tx:
        return tx.add(memory(content, **fields), "remember")


def words(storage: SqliteStorage) -> list[str]:
    with storage.reading() as reader:
        return [alias.word for alias in reader.all(Alias)]


def pinned(storage: SqliteStorage) -> list[Memory]:
    with storage.reading() as reader:
        return reader.select(PINNED, limit=5)


def note(storage: SqliteStorage, times: int = 1, uses: tuple[int, ...] = ()) -> None:
    for _ in range(times):
        with storage.bookkeeping() as notes:
            assert notes is not None
            notes.count_uses(uses, START)
            notes.save_receipt({"query": "x"}, [], START)


def pieces(storage: SqliteStorage) -> int:
    """Of the index of live memories."""
    with storage.reading() as reader:
        return int(reader.view.fetch("select count(distinct segid) from live_fts_idx")[0][0])


def test_what_either_process_changes_is_seen_by_both_at_once(storage: SqliteStorage, other: SqliteStorage) -> None:
    for number, writer in enumerate((storage, other, storage, other)):
        assert len(words(storage)) == len(words(other)) == number
        with writer.writing(stamp()) as tx:
            tx.add(Alias(word=f"w{number}", expands_to=("x",)), "alias")
        note(storage)
        note(other)
    add(other, "keep this", status="pinned")
    assert [one.content for one in pinned(storage)] == ["keep this"]
    with storage.reading() as reader:
        assert reader.statistics(["keep"]).rows_with == {"keep": 1}
    add(other, "keep that")
    with storage.reading() as reader:
        assert reader.statistics(["keep"]).rows_with == {"keep": 2}
        assert len(reader.search(["keep"], limit=5)) == 2


def test_a_reader_at_an_earlier_moment_does_not_pass_on_what_it_sees(
    storage: SqliteStorage, other: SqliteStorage
) -> None:
    with storage.reading() as early:
        assert early.all(Alias) == []
        with other.writing(stamp()) as tx:
            tx.add(Alias(word="w", expands_to=("x",)), "alias")
        note(storage)
        assert words(storage) == ["w"]
        assert early.all(Alias) == []
    assert words(storage) == ["w"]


def test_a_use_that_is_noted_is_seen_in_what_was_read_before(storage: SqliteStorage) -> None:
    one = add(storage, "keep this", status="pinned")
    assert pinned(storage)[0].use_count == 0
    note(storage)
    note(storage, uses=(one.id,))
    assert pinned(storage)[0].use_count == 1


def test_of_what_is_found_only_what_is_asked_for_is_decoded(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        add(storage, f"alpha {number} {'long ' * 30}")
    decoded: list[bytes | str] = []
    decode = encoding.content_text

    def counted(stored: bytes | str, words: str) -> str:
        decoded.append(stored)
        return decode(stored, words)

    monkeypatch.setattr(encoding, "content_text", counted)
    with storage.reading() as reader:
        for limit in (5, 50):
            found = reader.search(["alpha"], limit=limit)
            assert len(found) == min(20, limit)
            assert not decoded
        assert found[0].memory is found[0].memory
        assert found[0].memory.content.startswith("alpha")
    assert len(decoded) == 1


def test_an_answer_is_the_callers_to_change(storage: SqliteStorage) -> None:
    add(storage, "keep this", status="pinned")
    pinned(storage).clear()
    assert len(pinned(storage)) == 1


def test_recalls_join_the_pieces_that_single_writes_leave_of_the_index(storage: SqliteStorage) -> None:
    for number in range(40):
        add(storage, f"alpha {number}")
    before = pieces(storage)
    assert before > 4
    note(storage, times=TIDY_EVERY)
    assert pieces(storage) < before / 2
    with storage.reading() as reader:
        assert reader.statistics(["alpha"]).rows_with == {"alpha": 40}
        found = reader.search(["alpha"], limit=50)
        assert {hit.memory.content for hit in found} == {f"alpha {number}" for number in range(40)}


def test_a_batch_leaves_one_piece(storage: SqliteStorage) -> None:
    for start in range(0, 600, 100):
        with storage.writing(stamp()) as tx:
            for number in range(start, start + 100):
                tx.add(memory(f"beta {number}"), "remember")
        with storage.writing(stamp()) as tx:
            changed = replace(memory("again"), uid=f"again-{start}", content=f"again {start}", fingerprint=str(start))
            tx.add(changed, "remember")
    assert pieces(storage) <= 4
