"""Sessions end by themselves, go on again, and leave one summary and the same findings whatever happened."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import kept
from kept.model import Message
from tests.builders import START, FakeClock

DECISION = "We decided to use PostgreSQL 16 for the billing service because of its exclusion constraints."
PREFERENCE = "From now on always run the linter before you commit anything to this repository."
OTHER = "We decided to write the parser of the import format in Rust, since the old one was too slow."


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def memory(tmp_path: Path, clock: FakeClock) -> Iterator[kept.Kept]:
    with opened(tmp_path, clock) as memory:
        yield memory


def opened(tmp_path: Path, clock: FakeClock, **settings: object) -> kept.Kept:
    chosen = kept.Settings(backup_daily=False, auto_upkeep=False, **settings)  # type: ignore[arg-type]
    return kept.open(home=tmp_path / "home", project="p", clock=clock, settings=chosen)


def talk(memory: kept.Kept, name: str, *said: str) -> None:
    session = memory.session(name)
    for sentence in said:
        session.append("user", sentence)


def decided(memory: kept.Kept) -> dict[str, str]:
    return {found.ref: found.content for found in memory.list(kinds=["decision"])}


def ended(memory: kept.Kept) -> dict[str, bool]:
    return {session.name: session.finished_at is not None for session in memory.sessions()}


def index(tmp_path: Path) -> dict[str, bool]:
    (path,) = (tmp_path / "home").rglob("sessions/sessions.json")
    return {entry["id"]: entry["finishedAt"] is not None for entry in json.loads(path.read_text())["sessions"]}


def test_a_silent_session_is_finished_when_the_next_one_begins(memory: kept.Kept, clock: FakeClock) -> None:
    """C20, A21: nobody has to finish it; it ended with its last message."""
    talk(memory, "s1", DECISION)
    said_at = clock.at
    clock.advance(minutes=29)
    memory.session("s2")
    assert ended(memory) == {"s1": False, "s2": False}
    clock.advance(minutes=1)
    memory.session("s3")
    assert ended(memory) == {"s1": True, "s2": False, "s3": False}
    first = memory.sessions()[0]
    assert first.finished_at == said_at
    (found,) = memory.list(kinds=["decision"])
    assert (found.tier, found.created_at, first.promoted) == ("project", said_at, (found.uid,))
    assert len(memory.list(kinds=["summary"])) == 1


def test_how_long_is_a_setting(tmp_path: Path, clock: FakeClock) -> None:
    with opened(tmp_path, clock, session_idle_minutes=5) as memory:
        talk(memory, "s1", DECISION)
        clock.advance(minutes=5)
        memory.session("s2")
        assert ended(memory)["s1"]


def test_the_briefing_of_a_new_session_knows_the_one_before(memory: kept.Kept, clock: FakeClock) -> None:
    """C20: a host that only asks for briefings finishes the last session as well."""
    talk(memory, "s1", DECISION)
    clock.advance(minutes=31)
    memory.briefing("billing", session="s2")
    assert ended(memory) == {"s1": True}


def test_upkeep_finishes_silent_sessions_and_says_so(memory: kept.Kept, clock: FakeClock) -> None:
    talk(memory, "s1", DECISION)
    clock.advance(minutes=31)
    planned = memory.upkeep(dry_run=True)
    assert [(one.ref, one.action) for one in planned.done] == [("s1", "finish")]
    assert ended(memory) == {"s1": False}
    assert memory.upkeep().done == planned.done
    assert ended(memory) == {"s1": True}
    assert memory.upkeep().count("finish") == 0
    assert memory.store.finish_sessions() == []


def test_a_session_is_finished_before_it_is_packed(memory: kept.Kept, clock: FakeClock) -> None:
    """B23, C20: a transcript does not go to the archive with its findings in it."""
    talk(memory, "s1", DECISION)
    clock.advance(days=31)
    assert memory.store.pack_sessions() == ["s1"]
    session = memory.sessions()[0]
    assert (session.packed_at, session.finished_at) == (clock.at, START)
    assert list(decided(memory).values()) == [DECISION]


def test_a_session_in_a_turn_is_left_alone(memory: kept.Kept, clock: FakeClock, tmp_path: Path) -> None:
    """B22: an agent may work for an hour without a word; another terminal does not end its session."""
    with memory.session("s1").turn(DECISION) as turn:
        clock.advance(minutes=61)
        with opened(tmp_path, clock) as elsewhere:
            elsewhere.session("s2")
            assert not ended(elsewhere)["s1"]
            assert elsewhere.upkeep().count("finish") == 0
        turn.persist("Done.")
    clock.advance(minutes=31)
    memory.session("s3")
    assert ended(memory)["s1"]


def test_a_message_reopens_a_finished_session_and_nothing_is_doubled(memory: kept.Kept, clock: FakeClock) -> None:
    """C9, C20: findings keep their ids, the summary is replaced."""
    session = memory.session("s1")
    session.append("user", DECISION)
    session.finish()
    before = decided(memory)
    (summary,) = memory.list(kinds=["summary"])
    clock.advance(minutes=5)
    session.append("user", OTHER)
    assert not ended(memory)["s1"]
    session.finish()
    after = decided(memory)
    assert list(after.values()) == [OTHER, DECISION]
    assert before.items() <= after.items()
    (again,) = memory.list(kinds=["summary"])
    assert again.ref == summary.ref
    assert again.content != summary.content
    assert ended(memory)["s1"]


def test_what_somebody_forgot_or_revised_stays_so(memory: kept.Kept) -> None:
    session = memory.session("s1")
    session.append("user", DECISION)
    session.append("user", OTHER)
    session.finish()
    refs = {content: ref for ref, content in decided(memory).items()}
    memory.forget(refs[DECISION])
    memory.revise(refs[OTHER], "The parser is written in Rust")
    session.append("user", PREFERENCE)
    session.finish()
    assert decided(memory) == {refs[OTHER]: "The parser is written in Rust"}


def test_finishing_twice_changes_nothing(memory: kept.Kept) -> None:
    session = memory.session("s1")
    session.append("user", DECISION)
    first = session.finish()
    assert first.findings == 1
    events = len(memory.history(limit=1_000))
    done = session.finish()
    assert (done.findings, done.promoted, done.summary) == (0, 0, first.summary)
    assert len(memory.history(limit=1_000)) == events


def test_a_fast_finish_is_completed_by_whoever_comes_next(memory: kept.Kept, clock: FakeClock) -> None:
    """C20: the fast path before a host exits; no silence has to pass."""
    session = memory.session("s1")
    session.append("user", DECISION)
    session.finish(fast=True)
    assert ended(memory) == {"s1": True}
    assert memory.list() == []
    finished_at = clock.at
    clock.advance(seconds=5)
    memory.session("s2")
    assert list(decided(memory).values()) == [DECISION]
    assert memory.sessions()[0].finished_at == finished_at


@pytest.mark.parametrize("how", ["opening", "upkeep"])
def test_a_fast_finish_is_completed_at_the_next_opening_or_by_upkeep(memory: kept.Kept, how: str) -> None:
    session = memory.session("s1")
    session.append("user", DECISION)
    session.finish(fast=True)
    if how == "opening":
        memory.session("s1")
    else:
        memory.upkeep()
    assert list(decided(memory).values()) == [DECISION]
    assert memory.sessions()[0].summary


def test_the_index_of_sessions_is_always_true(memory: kept.Kept, clock: FakeClock, tmp_path: Path) -> None:
    """B4: after every step, and after a crash has kept it from being written."""
    session = memory.session("s1")
    assert index(tmp_path) == ended(memory) == {"s1": False}
    session.append("user", DECISION)
    session.finish(fast=True)
    assert index(tmp_path) == ended(memory) == {"s1": True}
    session.append("user", OTHER)
    assert index(tmp_path) == ended(memory) == {"s1": False}
    session.fork("s2")
    assert index(tmp_path) == ended(memory)
    session.finish()
    assert index(tmp_path) == ended(memory) == {"s1": True, "s2": False}
    (path,) = (tmp_path / "home").rglob("sessions/sessions.json")
    path.write_text("{")
    memory.session("s1")
    assert index(tmp_path) == ended(memory)


def test_the_record_of_a_finished_session(memory: kept.Kept) -> None:
    """C9: summary, findings, and what was promoted to which memory."""
    session = memory.session("s1", agent="codex")
    session.append("user", DECISION)
    session.finish()
    record = session.record()
    assert (record["version"], record["sessionId"], record["agentId"]) == (1, "s1", "codex")
    assert "PostgreSQL" in record["summary"]
    assert record["createdAt"] == record["finalizedAt"] == START
    (finding,) = record["findings"]
    assert (finding["content"], finding["promotedToProjectMemory"]) == (DECISION, True)
    assert memory.get(finding["promotedEntryId"]).content == DECISION


def test_a_session_remembers_with_its_name(memory: kept.Kept) -> None:
    session = memory.session("s1")
    stored = session.remember("The pier opens at six", kind="fact", tags=["harbor"]).memory
    assert stored is not None
    assert (stored.source.session, stored.source.origin, stored.tags) == ("s1", "agent", ("harbor",))
    assert session.findings() == [], "it was stored on purpose"


def test_a_full_window_is_compacted_without_being_asked(tmp_path: Path, clock: FakeClock) -> None:
    """B11, B12: flushed at one threshold, compacted at the other; the transcript stays whole."""
    limits = {"flush_threshold_tokens": 400, "compaction_threshold_tokens": 600, "compaction_keep_recent": 3}
    heard: list[str] = []
    with opened(tmp_path, clock, **limits) as memory:
        memory.subscribe(lambda signal: heard.append(signal.name))
        session = memory.session("s1")
        for number in range(120):
            session.append("user", f"Part {number} of the story is that the harbor was quiet and nothing happened.")
            assert session.window().tokens < 650
        assert heard.count("memory:flush") > 1
        assert heard.count("memory:compact") > 1
        said = [message for message in session.messages() if message.role == "user"]
        assert len(said) == 120
        for number in range(20):  # another handle, as a hook has one for each message
            memory.session("s1").append("user", f"Later part {number}: the harbor was quiet and nothing happened.")
        assert session.window().tokens < 900


def test_our_own_summaries_are_no_source_of_findings(memory: kept.Kept) -> None:
    session = memory.session("s1")
    session.extend([Message(id=f"m{n}", role="user", content=f"Story {n}. {DECISION}") for n in range(15)])
    session.compact(force=True)
    session.finish()
    found = [memory_.key for memory_ in session.findings()]
    assert not [key for key in found if key is not None and "summary" in key]


def test_a_fork_repeats_no_finding_of_its_parent(memory: kept.Kept) -> None:
    """C25, C8: the same words, said once: no further evidence."""
    parent = memory.session("s1")
    parent.append("user", DECISION)
    child = parent.fork("s2", agent="another")
    child.append("user", OTHER)
    child.finish()
    parent.finish()
    by_content = {found.content: found for found in memory.list(kinds=["decision"])}
    assert by_content[DECISION].source.session == "s1"
    assert by_content[OTHER].source.session == "s2"
    assert (by_content[DECISION].data or {})["sessions"] == ["s1"]
    assert by_content[DECISION].use_count == 0
    assert {found.content for found in child.findings()} == {DECISION, OTHER}


def test_what_is_said_again_in_a_session_is_no_more_evidence(memory: kept.Kept) -> None:
    """C8: a use is a duplicate said by somebody else."""
    session = memory.session("s1")
    for _ in range(3):
        session.append("user", DECISION)
        session.checkpoint()
    session.finish()
    session.append("user", DECISION)
    session.finish()
    other = memory.session("s2")
    other.append("user", DECISION)
    for _ in range(2):
        other.finish()
        other.append("user", "Thanks, that is all for today.")
    (found,) = memory.list(kinds=["decision"])
    assert found.use_count == 1, "by the other session, once"


def test_a_failing_session_does_not_keep_another_from_starting(
    memory: kept.Kept, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    talk(memory, "s1", DECISION)
    clock.advance(minutes=31)

    def fail(*_: object, **__: object) -> None:
        raise ValueError("a bug in a rule")

    monkeypatch.setattr("kept.memory.findings.extract", fail)
    memory.session("s2")
    assert "s1 could not be finished: ValueError" in caplog.text
    monkeypatch.undo()
    memory.session("s3")
    assert ended(memory)["s1"]


def test_old_words_are_not_silence(memory: kept.Kept, clock: FakeClock) -> None:
    """A session ended with its last message, and never in the future."""
    memory.session("s1").append("user", DECISION, timestamp=clock.at + timedelta(hours=5))
    clock.advance(minutes=31)
    memory.session("s2")
    assert not ended(memory)["s1"]


def test_a_session_of_which_nothing_came_leaves_no_summary(memory: kept.Kept) -> None:
    """Its messages stay. Where files were changed, the request says what for."""
    talk(memory, "s1", "Which queue do we use for outgoing mail?")
    memory.session("s1").finish()
    assert memory.list(kinds=["summary"]) == []
    assert [message.content for message in memory.session("s1").messages()] == [
        "Which queue do we use for outgoing mail?"
    ]
    session = memory.session("s2")
    session.append("user", "Add a queue for outgoing mail.")
    session.append("tool_call", name="Edit", input={"file_path": "mail.py", "old_string": "a", "new_string": "b"})
    session.finish()
    assert [one.content for one in memory.list(kinds=["summary"])] == ["- Asked: Add a queue for outgoing mail."]
