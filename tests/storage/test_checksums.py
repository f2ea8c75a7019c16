"""Every row carries a checksum: a changed value is always noticed, and an unchanged one never suspected."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kept.errors import Corrupt
from kept.model import NOUNS, Alias, Conflict, Memory, Source, replace
from kept.storage.sqlite import SqliteStorage, health, rows
from tests.behind import behind
from tests.builders import START, memory, stamp

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
maybe = st.none() | texts
shares = st.floats(0, 1) | st.sampled_from([0, 1, -0.0, 1e-300, 5e-324])
data = st.none() | st.dictionaries(texts, st.none() | st.booleans() | st.integers(-(2**60), 2**60) | texts, max_size=3)
fields = st.fixed_dictionaries(
    {},
    optional={
        "kind": texts,
        "status": st.sampled_from(["candidate", "confirmed", "pinned"]),
        "importance": shares,
        "confidence": shares,
        "feedback": st.integers(-100, 100),
        "use_count": st.integers(0, 2**62),
        "tags": st.lists(texts, max_size=3).map(tuple),
        "files": st.lists(texts, max_size=3).map(tuple),
        "topic": maybe,
        "title": maybe,
        "data": data,
        "source": st.builds(Source, agent=maybe, session=maybe, file=maybe, line=st.none() | st.integers(0, 2**60)),
        "last_hit_at": st.none() | st.datetimes().map(lambda at: at.replace(tzinfo=START.tzinfo)),
    },
)


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Any:
    opened = SqliteStorage(tmp_path_factory.mktemp("space") / "kept.db", "project/p1", synchronous="normal")
    yield opened
    opened.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(content=texts, fields=fields, changed=fields)
def test_whatever_is_stored_fits_its_checksum(
    storage: SqliteStorage, content: str, fields: dict[str, Any], changed: dict[str, Any]
) -> None:
    with storage.writing(stamp()) as tx:
        added = tx.add(memory(content, space=storage.space, **fields), "remember")
    with storage.writing(stamp()) as tx:
        put = tx.put(replace(added, **changed), "revise")
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.count_uses([added.id], START)
    with storage.reading() as reader:
        found = reader.get(Memory, added.id)
    assert found == replace(put, use_count=put.use_count + 1, last_used_at=START)


@pytest.mark.parametrize("column", [column for column in rows.columns_of(Memory) if column not in ("id", "shelf")])
def test_a_changed_value_in_any_column_is_noticed(tmp_path: Path, column: str) -> None:
    storage = SqliteStorage(tmp_path / "kept.db", "project/p1")
    with storage.writing(stamp()) as tx:
        added = tx.add(memory("Use Fastify", space=storage.space), "remember")
    storage.close()
    connection = behind(storage.path)
    is_number = column in ("feedback", "use_count", "source_line", "n_words", "n_tokens", "checksum")
    value = 7 if is_number else 0.125 if column in ("importance", "confidence") else "[]x"
    connection.execute(f"update memories set {column} = ?", (value,))
    connection.close()
    storage = SqliteStorage(storage.path)
    with storage.reading() as reader, pytest.raises(Corrupt, match=f"memory {added.id} is damaged"):
        reader.get(Memory, added.id)
    with storage.bookkeeping() as notes:
        assert notes is not None
        with pytest.raises(Corrupt):
            notes.count_uses([added.id], START)  # what is damaged is not sealed anew
    storage.close()


def test_a_row_under_another_id_is_noticed(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "kept.db", "project/p1")
    with storage.writing(stamp()) as tx:
        tx.add(memory("Use Fastify", space=storage.space), "remember")
    storage.close()
    connection = behind(storage.path)
    connection.execute("update memories set id = 5")
    connection.close()
    storage = SqliteStorage(storage.path)
    with storage.reading() as reader, pytest.raises(Corrupt):
        reader.get(Memory, 5)
    storage.close()


def test_a_checksum_tells_kinds_of_rows_apart() -> None:
    """A row of one table must not pass for one of another that has as many columns."""
    alias = rows.to_values(Alias(id=1, word="db", expands_to=("database",)))
    others = [noun for noun in NOUNS if len(rows.columns_of(noun)) == len(alias) and noun is not Alias]
    assert others
    assert not any(rows.is_as_written(noun, alias) for noun in others)
    assert rows.is_as_written(Alias, alias)


def test_damaged_small_records_are_named(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "kept.db", "project/p1")
    with storage.writing(stamp()) as tx:
        tx.add(Conflict(left="a", right="b", type="ambiguous", detected_at=START), "conflict")
    storage.close()
    connection = behind(storage.path)
    connection.execute("update conflicts set type = 'superseded'")
    connection.close()
    storage = SqliteStorage(storage.path)
    with storage.reading() as reader, pytest.raises(Corrupt, match="conflict 1 is damaged"):
        reader.all(Conflict)
    storage.close()


@pytest.mark.parametrize("change", ["value = replace(value, '3', '1')", "name = 'c0unt:' || substr(name, 7)"])
def test_a_changed_counter_is_noticed(tmp_path: Path, change: str) -> None:
    storage = SqliteStorage(tmp_path / "kept.db", "project/p1")
    for number in (1, 2):
        with storage.bookkeeping() as notes:
            assert notes is not None
            notes.count({"refused:chatter": number})
    with storage.reading() as reader:
        assert reader.counters() == {"refused:chatter": 3}
    storage.close()
    connection = behind(storage.path)
    connection.execute(f"update meta set {change} where name like 'count:%'")
    connection.close()
    assert [finding for finding in health.examine(storage.path, now=START) if finding.level == "problem"]
    if change.startswith("value"):
        storage = SqliteStorage(storage.path)
        with storage.reading() as reader, pytest.raises(Corrupt, match="A counter"):
            reader.counters()
        storage.close()
