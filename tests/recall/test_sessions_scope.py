"""The scope `sessions`: what was said is found again, apart from memories."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import kept
from kept.model import Message
from tests.builders import START, FakeClock


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
        assert [hit.ref for hit in memory.store.replay(recalled.receipt)] == [hit.ref for hit in recalled]


def test_no_sessions_no_answer(tmp_path: Path) -> None:
    with kept.open(tmp_path / "m.db", settings=kept.Settings()) as memory:
        for query in ("", "anything", "' OR 1=1 --", "\x00", "x" * 10_000):
            assert len(memory.recall(query, scope="sessions")) == 0


@pytest.mark.parametrize("kind", ["inmemory", "sqlite"])
def test_days_narrow_what_was_said(kind: str, tmp_path: Path) -> None:
    """B17: `since` and `until` hold for messages, for their neighbours, and for old sessions."""
    place = ":memory:" if kind == "inmemory" else tmp_path / "m.db"
    clock = FakeClock()
    with kept.open(place, clock=clock, settings=kept.Settings(auto_memory=False, recall_deadline_ms=60_000)) as memory:
        old, new = memory.session("old"), memory.session("new")
        for day in range(3):
            old.append("user", f"Which harbor is it on day {day}?", timestamp=START + timedelta(days=day))
        new.append("assistant", "The answer stands beside the question", timestamp=START)
        new.append("user", "Which harbor is it?", timestamp=START + timedelta(days=2))

        def refs(**filters: Any) -> set[str]:
            return {hit.ref for hit in memory.recall("harbor", scope="sessions", limit=20, **filters)}

        assert refs() == {"old#1", "old#2", "old#3", "new#1", "new#2"}
        narrow: dict[str, Any] = {"since": START + timedelta(days=1)}
        assert refs(**narrow) == {"old#2", "old#3", "new#2"}
        assert refs(until=START + timedelta(days=2)) == {"old#1", "old#2"}, "new#1 was led on to by what is later"
        assert refs(**narrow, until=START + timedelta(days=2)) == {"old#2"}
        memory.recall("harbor", scope="sessions", limit=20, **narrow)
        assert {hit.ref for hit in memory.store.replay()} == refs(**narrow)
        clock.advance(days=40)
        assert set(memory.store.pack_sessions()) == {"old", "new"}
        assert refs(**narrow) == set()
        assert refs(**narrow, packed=True) == {"old#2", "old#3", "new#2"}


def test_a_period_without_the_words_is_an_empty_answer_however_many_lie_outside(tmp_path: Path) -> None:
    """The best of all time do not crowd out what was said in the period."""
    with kept.open(tmp_path / "m.db", clock=FakeClock(), settings=kept.Settings(auto_memory=False)) as memory:
        session = memory.session("s1")
        session.extend([Message(id=str(n), role="user", content="harbor", at=START) for n in range(300)])
        session.append("user", "a harbor, among many other words", timestamp=START + timedelta(days=1))
        (hit,) = memory.recall("harbor", scope="sessions", since=START + timedelta(days=1))
        assert hit.ref == "s1#301"
        assert len(memory.recall("harbor", scope="sessions", since=START + timedelta(days=2))) == 0


@pytest.mark.parametrize("filters", [{"tags": ["a"]}, {"kinds": ["fact"]}, {"files": ["a.py"]}])
def test_what_messages_do_not_have_cannot_narrow_them(filters: dict[str, list[str]], tmp_path: Path) -> None:
    (name,) = filters
    with (
        kept.open(tmp_path / "m.db", settings=kept.Settings()) as memory,
        pytest.raises(kept.InvalidInput, match=f"Messages have no {name}") as raised,
    ):
        memory.recall("harbor", scope="sessions", **filters)  # type: ignore[arg-type]
    assert "`since` and `until`" in str(raised.value)
