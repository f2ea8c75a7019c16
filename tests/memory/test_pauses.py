"""Pauses: while a session or a project is paused, nothing of it is written (C15, C-D15)."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import kept
from kept.model import Message
from tests.builders import FakeClock

OPEN = "We decided to use Postgres for billing, because SQLite locks the whole file."
CANARY = "zq7canary"
SECRETLY = f"We decided to call the new product {CANARY}, because the name is free in all countries."


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def memory(tmp_path: Path, clock: FakeClock) -> Iterator[kept.Kept]:
    with kept.open(home=tmp_path / "home", project="p", clock=clock, settings=kept.Settings()) as opened:
        yield opened


def is_anywhere(tmp_path: Path, memory: kept.Kept) -> bool:
    """Whether anything of what was said in the pause can be found: in the files, or by any question."""
    files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    hits = [hit for scope in ("memory", "sessions") for hit in memory.recall(CANARY, scope=scope)]  # type: ignore[arg-type]
    return bool(hits) or any(CANARY.encode() in path.read_bytes() for path in files if path.suffix == ".jsonl")


@pytest.mark.parametrize("paused", [None, "s1"])
def test_what_is_said_in_a_pause_is_written_nowhere(
    paused: str | None, memory: kept.Kept, tmp_path: Path, clock: FakeClock
) -> None:
    """Not in the transcript, not in its file, and a later finish() finds nothing of it."""
    session = memory.session("s1")
    session.append("user", OPEN)
    memory.pauses.pause(paused)
    events = memory.history()
    assert session.append("user", SECRETLY) is None
    assert session.extend([Message(id="m9", role="assistant", content=SECRETLY)]) == []
    with session.turn(SECRETLY) as exchange:
        exchange.persist(SECRETLY)
    assert (session.checkpoint(), session.flush().findings, session.finish().summary) == (0, 0, None)
    assert memory.history() == events
    clock.advance(minutes=5)
    memory.pauses.resume(paused)
    clock.advance(minutes=5)
    session.append("user", "Please write the migration next.")
    finished = session.finish()
    assert [message.content for message in session.messages()] == [OPEN, "Please write the migration next."]
    assert finished.summary is not None
    assert not is_anywhere(tmp_path, memory)
    assert memory.recall("postgres billing", scope="sessions").hits


def test_a_session_that_begins_in_a_pause_leaves_no_trace_until_it_is_over(memory: kept.Kept, tmp_path: Path) -> None:
    memory.pauses.pause()
    session = memory.session("s1", agent="builder")
    session.append("user", SECRETLY)
    session.finish()
    assert memory.sessions() == []
    assert not list((tmp_path / "home").rglob("s1.jsonl"))
    memory.pauses.resume()
    session.append("user", OPEN)
    (begun,) = memory.sessions()
    assert (begun.name, begun.agent) == ("s1", "builder")
    assert [message.content for message in memory.session("s1").messages()] == [OPEN]


def test_a_pause_of_one_session_stops_no_other(memory: kept.Kept) -> None:
    memory.pauses.pause("s1")
    assert memory.session("s2").append("user", OPEN) is not None
    refused = memory.remember_many(
        [kept.Draft(content=OPEN, source=kept.Source(origin="extraction", session=one)) for one in ("s1", "s2")]
    )
    assert [receipt.outcome for receipt in refused] == ["refused", "candidate"]
    assert memory.remember("An explicit command still works").outcome == "stored"


@pytest.mark.parametrize("paused", [None, "a1"])
def test_a_transcript_that_is_imported_later_leaves_the_pause_out(
    paused: str | None, memory: kept.Kept, tmp_path: Path, clock: FakeClock
) -> None:
    """The host's own file has it; the time of each message tells. Also while the pause lasts."""
    start = clock()
    clock.advance(hours=1)
    memory.pauses.pause(paused)
    clock.advance(hours=1)
    said = [(0.5, OPEN), (1.5, SECRETLY), (2.5, "Please write the migration next.")]
    lines = [
        {
            "type": "user",
            "uuid": f"u{place}",
            "sessionId": "a1",
            "timestamp": (start + timedelta(hours=hours)).isoformat(),
            "message": {"role": "user", "content": content},
        }
        for place, (hours, content) in enumerate(said)
    ]
    file = tmp_path / "a1.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines[:2]))
    (first,) = memory.import_transcripts("claude-code", file)
    assert (first.added, first.paused) == (1, 1)
    memory.pauses.resume(paused)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    clock.advance(hours=1)
    (second,) = memory.import_transcripts("claude-code", file)
    assert (second.added, second.paused) == (1, 0)
    assert [message.content for message in memory.session("a1").messages()] == [OPEN, said[2][1]]
    assert not is_anywhere(tmp_path, memory)


def test_the_status_names_every_pause(memory: kept.Kept, clock: FakeClock) -> None:
    assert memory.status()["paused"] == []
    since = clock()
    memory.pauses.pause()
    clock.advance(hours=1)
    memory.pauses.pause("s1")
    assert memory.status()["paused"] == [
        {"session": None, "since": since},
        {"session": "s1", "since": since + timedelta(hours=1)},
    ]
