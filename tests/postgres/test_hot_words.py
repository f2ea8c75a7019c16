"""Common words of large spaces are counted in advance, also where PostgreSQL has no statistics of its tables yet."""

import time

import pytest

from kept.model import Message
from kept.storage import ranking
from kept.storage.postgres import PostgresStorage
from tests.builders import memory, stamp
from tests.postgres.server import emptied, shared_database


def test_common_words_are_counted_when_a_space_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "EXACT_UP_TO_ROWS", 1_000)
    storage = PostgresStorage(emptied(shared_database()), "project/large")
    started = time.monotonic()
    for start in range(0, 3_000, 500):
        with storage.writing(stamp(f"g{start}")) as tx:
            for n in range(start, start + 500):
                tx.add(memory(f"alpha number{n} {'gamma' if n % 2 else ''}", space=storage.space), "remember")
            tx.append([Message(id=f"m{start + n}", role="user", session="s", content="beta") for n in range(500)])
    with storage.reading() as reader:
        counted_at, hot = reader.index.hot_words("live", ["alpha", "gamma", "number7"])
        assert counted_at >= 1_000
        assert hot["alpha"] == counted_at
        assert hot["gamma"] == pytest.approx(counted_at / 2, rel=0.1)
        assert "number7" not in hot
        assert reader.statistics(["alpha", "number7"]).rows_with == {"alpha": 3_000, "number7": 1}
        assert reader.message_statistics(["beta"]).rows_with["beta"] == pytest.approx(3_000, rel=0.1)
    assert time.monotonic() - started < 60
    storage.close()
