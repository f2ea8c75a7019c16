"""The scope `sessions`: what was said is found again, apart from memories."""

from pathlib import Path

import pytest

import kept
from tests.builders import FakeClock


@pytest.mark.parametrize("kind", ["inmemory", "sqlite"])
def test_what_was_said_is_found_by_message_and_by_session(kind: str, tmp_path: Path) -> None:
    """B17: sessions are searched when asked for, and only then."""
    place = ":memory:" if kind == "inmemory" else tmp_path / "m.db"
    with kept.open(place, clock=FakeClock(), settings=kept.Settings(auto_memory=False)) as memory:
        memory.remember("The harbor is a memory")
        one, two = memory.session("s1"), memory.session("s2")
        one.append("user", "I went to the harbor with Ann on Sunday", speaker="Bob")
        one.append("assistant", "That sounds nice, how was it?")
        two.append("user", "My sister bought a sailing boat")
        recalled = memory.recall("who went to the harbor", scope="sessions")
        assert recalled.hits[0].ref == "s1#1"
        assert recalled.hits[0].message is not None
        assert recalled.hits[0].memory.source.session == "s1"
        assert recalled.hits[0].score == pytest.approx(sum(recalled.hits[0].why.values()))
        by_session = memory.recall("sailing boat", scope="sessions", by="session")
        assert by_session.hits[0].memory.source.session == "s2"
        assert [hit.memory.content for hit in memory.recall("harbor")] == ["The harbor is a memory"]
        assert memory.why(recalled.receipt).hits[0]["ref"] == "s1#1"
        assert [hit.ref for hit in memory.replay(recalled.receipt)] == [hit.ref for hit in recalled]


def test_no_sessions_no_answer(tmp_path: Path) -> None:
    with kept.open(tmp_path / "m.db", settings=kept.Settings()) as memory:
        for query in ("", "anything", "' OR 1=1 --", "\x00", "x" * 10_000):
            assert len(memory.recall(query, scope="sessions")) == 0
