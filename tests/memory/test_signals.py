"""Signals: exactly what subscribers hear, of real operations, and that no subscriber can break anything."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import kept
from kept.memory.signals import NAMES
from kept.model import Draft, Source
from tests.builders import FakeClock, context_of

SPACE = "project/this"  # stands for the space of the memory, which a file gives itself
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
PAYLOADS = {
    "memory:read": {"type", "path", "size"},
    "memory:write": {"type", "path", "delta"},
    "memory:flush": {"sessionId"},
    "memory:compact": {"sessionId", "before", "after"},
    "memory:search": {"query", "results"},
}
Heard = list[tuple[str, dict[str, Any]]]


@pytest.fixture(params=["inmemory", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[kept.Kept]:
    place = ":memory:" if request.param == "inmemory" else tmp_path / "m.db"
    with kept.open(place, clock=FakeClock(), settings=kept.Settings()) as opened:
        yield opened


def listen(memory: kept.Kept) -> Heard:
    """A list that grows with everything that is heard from now on."""
    heard: Heard = []
    _hear(memory, heard)
    return heard


def told(memory: kept.Kept, act: Callable[[], object]) -> Heard:
    """What is heard of one operation."""
    heard: Heard = []
    stop = _hear(memory, heard)
    act()
    stop()
    return heard


def _hear(memory: kept.Kept, heard: Heard) -> Callable[[], None]:
    space = context_of(memory).spaces.ensure_project().space

    def note(signal: kept.Signal) -> None:
        payload = dict(signal.payload)
        if "path" in payload:
            payload["path"] = payload["path"].replace(space, SPACE)
        heard.append((signal.name, payload))

    return memory.subscribe(note)


def wrote(delta: int) -> tuple[str, dict[str, Any]]:
    return "memory:write", {"type": "memory", "path": SPACE, "delta": delta}


def read(size: int) -> tuple[str, dict[str, Any]]:
    return "memory:read", {"type": "memory", "path": SPACE, "size": size}


def test_signals_have_exactly_the_five_documented_names() -> None:
    """B18."""
    assert set(NAMES) == set(PAYLOADS)


def test_every_write_sends_a_write_signal(memory: kept.Kept) -> None:
    """B18, B21: `memory:write` {type, path, delta}: where, and by how many memories it has grown."""
    assert told(memory, lambda: memory.remember("The harbor cluster")) == [wrote(1)]
    assert told(memory, lambda: memory.remember("the HARBOR cluster")) == [wrote(0)], "strengthened, not stored twice"
    two = [Draft(content="First of two things"), Draft(content="Second of both matters")]
    assert told(memory, lambda: memory.remember_many(two)) == [wrote(2)]
    for change in (memory.reinforce, memory.demote, memory.pin, memory.unpin):
        assert told(memory, lambda change=change: change(1)) == [wrote(0)]  # type: ignore[misc]
    assert told(memory, lambda: memory.revise(1, "The harbor cluster, revised")) == [wrote(0)]
    assert told(memory, lambda: memory.forget(1)) == [wrote(-1)]
    assert told(memory, lambda: memory.restore(1)) == [wrote(1)]
    assert told(memory, memory.undo) == [wrote(-1)]
    assert told(memory, memory.undo) == [wrote(1)]
    assert told(memory, lambda: memory.reviews.apply(["archive:2", "keep:3"])) == [wrote(-1)]
    assert told(memory, lambda: memory.erase(1)) == [wrote(-1)]
    assert told(memory, lambda: memory.erase(2)) == [wrote(0)], "it was archived"
    memory.remember("The release is in May", topic="release")
    assert told(memory, lambda: memory.remember("The release is in June", topic="release")) == [wrote(0)]
    context_of(memory).confirm = lambda question: True
    for switch in (
        lambda: memory.aliases.add("dock", "harbor"),
        lambda: memory.aliases.remove("dock"),
        memory.pauses.pause,
        memory.pauses.resume,
        lambda: memory.store.allow("not-a-secret"),
        lambda: memory.store.configure("preset", "manual"),
    ):
        assert told(memory, switch) == [wrote(0)]


def test_resolving_a_conflict_sends_a_write_signal(memory: kept.Kept) -> None:
    memory.remember("Always use Fastify for the public API server", kind="decision")
    memory.remember("Never use Fastify for the public API server", kind="decision")
    assert told(memory, lambda: memory.resolve("c1", keep=1)) == [wrote(-1)]


def test_every_read_sends_a_read_signal(memory: kept.Kept) -> None:
    """B18: `memory:read` {type, path, size}: from where, and how many characters."""
    memory.remember("12345")
    memory.remember("1234567890")
    assert told(memory, lambda: memory.get(1)) == [read(5)]
    assert told(memory, lambda: memory.list()) == [read(15)]
    assert told(memory, lambda: list(memory.store.export())) == [read(15)]
    assert told(memory, lambda: memory.list(kinds=["decision"])) == [], "nothing was loaded"
    memory.pin(1)
    assert told(memory, lambda: memory.briefing()) == [read(15)]


def test_a_search_sends_a_search_signal(memory: kept.Kept) -> None:
    """B18: `memory:search` {query, results}."""
    memory.remember("The harbor cluster")
    searched = ("memory:search", {"query": "harbor", "results": 1})
    assert told(memory, lambda: memory.recall("harbor")) == [searched, read(18)]
    assert told(memory, lambda: memory.recall("moon")) == [("memory:search", {"query": "moon", "results": 0})]
    in_talk = told(memory, lambda: memory.recall("moon", scope="sessions"))
    assert in_talk == [("memory:search", {"query": "moon", "results": 0})]
    assert told(memory, lambda: memory.briefing("harbor")) == [searched, read(18)]
    assert told(memory, lambda: memory.share(to="s", action="a", query="harbor")) == [searched, read(18)]


def test_a_conversation_sends_its_signals(memory: kept.Kept) -> None:
    """B18, B9: episodic memory is appended to and read under its own path; flush and compaction have their signals."""
    path = f"{SPACE}/sessions/s1"
    session = memory.session("s1")
    said = told(memory, lambda: session.append("user", "Hello there"))
    assert said == [("memory:write", {"type": "session", "path": path, "delta": 1})]
    assert told(memory, lambda: session.append("user", "Hello there", id="msg_001")) == [], "it was there already"
    assert told(memory, session.messages) == [("memory:read", {"type": "session", "path": path, "size": 11})]
    assert told(memory, session.window) == [("memory:read", {"type": "session", "path": path, "size": 11})]
    for number in range(14):
        session.append("user", f"We decided to use Postgres for billing in case number {number}, because it is best.")
    flushed = told(memory, session.flush)
    assert flushed[-1] == ("memory:flush", {"sessionId": "s1"})
    assert told(memory, session.flush) == [], "nothing was said since"
    before = session.window().tokens
    compacted = told(memory, lambda: session.compact(force=True))
    assert compacted[-1] == (
        "memory:compact",
        {"sessionId": "s1", "before": before, "after": session.window().tokens},
    )
    forked = told(memory, lambda: session.fork("s2"))
    count = len(session.messages())
    assert forked == [("memory:write", {"type": "session", "path": f"{SPACE}/sessions/s2", "delta": count})]


def test_every_verb_sends_its_own_signals_exactly_once(memory: kept.Kept) -> None:
    """B18: the signals of each verb by name and type, and a number that is one, not a truth value."""
    decision = "We decided to use Postgres for billing, because it is best."
    session, task = memory.session("s1"), memory.task("TASK-1", description="Move the data")

    def take_turn() -> None:
        with session.turn("Which database is it?") as turn:
            turn.persist("Postgres.")

    read_memory, read_session, read_task = "read memory", "read session", "read task"
    wrote_memory, wrote_session, wrote_task = "write memory", "write session", "write task"
    verbs: list[tuple[Callable[[], object], list[str]]] = [
        (lambda: memory.remember("The harbor cluster"), [wrote_memory]),
        (lambda: session.remember("The harbor has two gates"), [wrote_memory]),
        (lambda: memory.get(1), [read_memory]),
        (lambda: memory.list(), [read_memory]),
        (lambda: memory.recall("harbor"), ["search", read_memory]),
        (lambda: memory.recall("zeppelin"), ["search"]),
        (lambda: session.append("user", decision), [wrote_session]),
        (lambda: session.extend([kept.Message(id="m2", role="assistant", content="Noted.")]), [wrote_session]),
        (take_turn, [wrote_session, wrote_session]),
        (lambda: memory.recall("Postgres", scope="sessions"), ["search", read_session]),
        (lambda: memory.sessions(), [read_session]),
        (session.messages, [read_session]),
        (session.window, [read_session]),
        (session.checkpoint, [wrote_memory]),
        (session.findings, [read_memory]),
        (session.flush, [wrote_memory, "flush"]),
        (session.flush, []),
        (lambda: session.fork("s2"), [wrote_session]),
        (lambda: session.finish(), [wrote_memory, wrote_session]),
        (lambda: session.finish(), []),
        (lambda: memory.task("TASK-2", description="Move the files"), [wrote_task]),
        (lambda: memory.task("TASK-2"), []),
        (lambda: memory.task("TASK-2", description="Move the files"), []),
        (lambda: memory.task("TASK-2", priority=1), [wrote_task]),
        (lambda: memory.tasks(), [read_task]),
        (lambda: task.state, [read_task]),
        (lambda: task.set_state("active"), [wrote_task]),
        (lambda: task.add_reasoning("The files come first", "plan"), [wrote_memory]),
        (lambda: task.add_tool_output("ls", "a b c", "plan"), [wrote_memory]),
        (task.memories, [read_memory]),
        (lambda: task.stage_outputs("plan"), [read_memory]),
        (lambda: task.set_state("done"), [wrote_task, wrote_memory]),
        (lambda: memory.reinforce(1), [wrote_memory]),
        (lambda: memory.forget(1), [wrote_memory]),
        (memory.undo, [wrote_memory]),
    ]
    for number, (act, expected) in enumerate(verbs):
        heard = told(memory, act)
        names = [" ".join(filter(None, (name.removeprefix("memory:"), body.get("type")))) for name, body in heard]
        assert names == expected, f"verb {number}"
        numbers = [value for _, body in heard for field, value in body.items() if field in ("delta", "size", "results")]
        assert all(type(value) is int for value in numbers), f"verb {number}"


def test_every_payload_has_exactly_its_fields(memory: kept.Kept) -> None:
    """B18: a day's work; every signal of it has the fields that its name promises, and no others."""
    heard = listen(memory)
    memory.remember("The harbor cluster", source=Source(origin="user"))
    session = memory.session("s1")
    for number in range(12):
        session.append("user", f"We decided to use Postgres for billing in case number {number}, because it is best.")
    session.compact(force=True)
    session.finish()
    memory.recall("harbor", follow=True)
    memory.briefing("harbor", session="s1")
    memory.reviews.list()
    memory.undo()
    assert {name for name, _ in heard} == set(NAMES)
    assert [payload for name, payload in heard if set(payload) != PAYLOADS[name]] == []


def test_no_signal_says_what_a_memory_says_or_repeats_a_secret(memory: kept.Kept) -> None:
    heard = listen(memory)
    memory.remember("The zeppelin cluster")
    memory.recall(f"cluster {SECRET}")
    memory.briefing(f"cluster {SECRET}")
    memory.share(to="s", action="a", query=f"cluster {SECRET}")
    memory.get(1)
    assert len(heard) >= 4
    assert "zeppelin" not in repr(heard)
    assert SECRET not in repr(heard)


def test_a_failing_subscriber_breaks_nothing_and_is_seen(memory: kept.Kept, caplog: pytest.LogCaptureFixture) -> None:
    """B18: what is on disk stays there, the others hear it, and the failure is in the log."""

    def fail(signal: kept.Signal) -> None:
        raise RuntimeError("a bad guest")

    memory.subscribe(fail)
    heard = listen(memory)
    with caplog.at_level(logging.WARNING, logger="kept"):
        assert memory.remember("Kept all the same").ref == "1"
        session = memory.session("s1")
        session.append("user", "Said all the same")
        session.flush()
        session.compact(force=True)
    assert memory.get(1).content == "Kept all the same"
    assert session.messages()[0].content == "Said all the same"
    assert heard[0] == wrote(1)
    failures = [record for record in caplog.records if record.name == "kept"]
    assert failures[0].getMessage() == "a subscriber failed on memory:write"
    assert failures[0].exc_info is not None
    assert "a bad guest" in str(failures[0].exc_info[1])


def test_a_failing_subscriber_is_told_to_the_person_at_the_terminal(tmp_path: Path) -> None:
    """What the library logs as a warning, the command line shows; see entrypoints/cli/invocation.py."""
    import io

    from kept.entrypoints.cli.invocation import Invocation, warnings_told

    err = io.StringIO()
    with warnings_told(Invocation(err=err)), kept.open(tmp_path / "m.db", settings=kept.Settings()) as memory:
        memory.subscribe(lambda signal: 1 / 0)
        memory.remember("Kept all the same")
    assert "Note: a subscriber failed on memory:write" in err.getvalue()


def test_a_subscriber_may_read_and_write_what_it_hears_of(memory: kept.Kept) -> None:
    """It is called after the fact, outside of any transaction."""
    seen: list[int] = []

    def look(signal: kept.Signal) -> None:
        if signal.name == "memory:write" and len(seen) < 2:
            seen.append(len(memory.list()))
            memory.remember(f"I heard of number {len(seen)}")

    memory.subscribe(look)
    memory.remember("The harbor cluster")
    assert seen == [1, 2]
    assert len(memory.list()) == 3


def test_a_refused_write_is_not_heard(memory: kept.Kept) -> None:
    assert told(memory, lambda: memory.remember("x" * 5000)) == []
    memory.remember("The harbor cluster")

    def wrong() -> None:
        with pytest.raises(kept.KeptError):
            memory.revise(1, "")
        with pytest.raises(kept.NotFound):
            memory.get(99)

    assert told(memory, wrong) == []


def test_each_opened_memory_gets_only_its_own_signals(tmp_path: Path) -> None:
    """A subscriber hears what is done through the memory that it subscribed to."""
    with (
        kept.open(tmp_path / "m.db", settings=kept.Settings()) as first,
        kept.open(tmp_path / "m.db", settings=kept.Settings()) as second,
    ):
        heard = listen(first)
        second.remember("Done through the other one")
        assert heard == []
