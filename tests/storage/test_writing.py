"""What an acknowledged write leaves behind is the same, however cheaply it was made."""

import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept import journal
from kept.model import Alias, Allowance, Conflict, Pause, Record, Session, Source, Task
from kept.storage.turns import Turns
from tests.builders import memory

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
