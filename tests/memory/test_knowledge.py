"""What a project knows, what its owner prefers, and promotion from tier to tier."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import kept
from kept.errors import InvalidInput, NotAllowed, NotFound
from kept.memory.context import BATCH
from kept.model import Actor, Memory, Receipt, Source
from kept.ports import ANYWHERE
from tests.builders import FakeClock, context_of
from tests.contract.benches import BENCHES
from tests.two_spaces import open_two

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


class Person:
    """Somebody who can be asked, and who notes what they were asked."""

    def __init__(self) -> None:
        self.says_yes = True
        self.questions: list[str] = []

    def __call__(self, question: str) -> bool:
        self.questions.append(question)
        return self.says_yes


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=sorted(BENCHES))
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock, person: Person) -> Iterator[kept.Kept]:
    with open_two(request.param, tmp_path, clock=clock, confirm=person) as opened:
        yield opened


def stored(receipt: Receipt) -> Memory:
    assert receipt.memory is not None, receipt
    return receipt.memory


def contents(memories: list[Memory]) -> list[str]:
    return [memory.content for memory in memories]


# What a project knows


def test_decisions_conventions_and_failures_weigh_what_the_design_says(memory: kept.Kept) -> None:
    """D7: .9, .8, .85; each of the project, with its tags."""
    decision = stored(memory.knowledge.add_decision("Use Fastify for the API", ["api", "http"]))
    convention = stored(memory.knowledge.add_convention("Tests state promises", "tests"))
    failure = stored(memory.knowledge.add_failure("TypeError: x is undefined", "Check the payload before the loop"))
    assert [(one.kind, one.importance, one.tags) for one in (decision, convention, failure)] == [
        ("decision", 0.9, ("api", "http")),
        ("convention", 0.8, ("tests",)),
        ("error", 0.85, ()),
    ]
    assert {one.tier for one in (decision, convention, failure)} == {"project"}
    assert failure.content == "TypeError: x is undefined: Check the payload before the loop"


def test_decisions_are_found_by_any_of_their_tags(memory: kept.Kept) -> None:
    """D7: query_decisions."""
    memory.knowledge.add_decision("Use Fastify for the API", ["api"])
    memory.knowledge.add_decision("Use Postgres for billing", ["db", "billing"])
    memory.knowledge.add_decision("Deploy on Tuesdays")
    memory.remember("A fact about the API", tags=["api"])
    memory.task("t").add_reasoning("Not decided at all", "plan")
    assert contents(memory.knowledge.decisions()) == [
        "Deploy on Tuesdays",
        "Use Postgres for billing",
        "Use Fastify for the API",
    ]
    assert contents(memory.knowledge.decisions(["api", "billing"])) == [
        "Use Postgres for billing",
        "Use Fastify for the API",
    ]
    assert contents(memory.knowledge.decisions(["api", "billing"], limit=1)) == ["Use Postgres for billing"]
    assert memory.knowledge.decisions(["nothing"]) == []


def test_a_failure_is_known_again_by_its_signature(memory: kept.Kept) -> None:
    """D7: with signature; numbers, paths and times do not matter, and the rest of the output neither."""
    first = (
        'Traceback (most recent call last):\n  File "/srv/a/app.py", line 12, in run\n'
        "ConnectionError: no answer from 10.0.0.7 after 30 s\n"
    )
    memory.knowledge.add_failure(first, "The pool was too small", tags=["db"], files=["app.py"])
    memory.knowledge.add_failure("KeyError: 'user'", "The session had expired")
    [known] = memory.knowledge.failures("E   ConnectionError: no answer from 10.0.0.9 after 7 s")
    assert known.data is not None
    assert known.data["lesson"] == "The pool was too small"
    assert known.data["signature"] == "ConnectionError: no answer from <n> after <n> s"
    assert (known.tags, known.files) == (("db",), ("app.py",))
    assert len(memory.knowledge.failures()) == 2
    assert memory.knowledge.failures("ZeroDivisionError: division by zero") == []


def test_a_failure_needs_a_message_and_a_lesson(memory: kept.Kept) -> None:
    for failure, lesson in ((" \n ", "something"), ("KeyError: 'x'", "  ")):
        with pytest.raises(InvalidInput, match="empty"):
            memory.knowledge.add_failure(failure, lesson)


def test_no_secret_gets_in_by_a_failure(memory: kept.Kept) -> None:
    """C24: also where the message is cut before it would be recognised."""
    memory.knowledge.add_failure(f"HTTPError: {'x' * 150} {KEY}", f"Never log {KEY}")
    storage, *_ = context_of(memory).readable()
    with storage.reading() as reader:
        assert KEY[:20] not in repr((reader.select(ANYWHERE), reader.events()))


# What a person prefers


def test_a_preference_is_asked_about_and_holds_for_all_projects(memory: kept.Kept, person: Person) -> None:
    """D8: .9, by category; asked whoever adds it."""
    short = stored(memory.knowledge.add_preference("Short answers", "style"))
    memory.knowledge.add_preference("Uses ripgrep", "tools")
    assert (short.ref, short.tier, short.importance, short.tags) == ("g1", "global", 0.9, ("style",))
    assert len(person.questions) == 2
    assert contents(memory.knowledge.preferences()) == ["Uses ripgrep", "Short answers"]
    assert contents(memory.knowledge.preferences("style")) == ["Short answers"]
    assert memory.knowledge.preferences("nothing") == []
    person.says_yes = False
    with pytest.raises(NotAllowed):
        memory.knowledge.add_preference("Long answers", "style")
    with pytest.raises(NotAllowed):
        memory.revise("g1", "Long answers")
    assert contents(memory.knowledge.preferences("style")) == ["Short answers"]


def test_patterns_and_queries_need_no_confirmation(memory: kept.Kept, person: Person) -> None:
    """D8: patterns and queries need no confirmation; .7."""
    pattern = stored(memory.knowledge.add_pattern("Explain every change of a launch file", "ros"))
    memory.knowledge.preferences()
    memory.list()
    assert (pattern.tier, pattern.kind, pattern.importance, pattern.tags) == ("global", "pattern", 0.7, ("ros",))
    assert person.questions == []


def test_without_anybody_to_ask_global_preferences_stay_as_they_are(tmp_path: Path) -> None:
    """D8, B14: no callback, no leave."""
    with open_two("inmemory", tmp_path) as memory:
        for attempt in (
            lambda: memory.knowledge.add_preference("Short answers", "style"),
            memory.knowledge.clear_all,
            lambda: memory.promote(stored(memory.remember("A fact")).ref, to="global"),
        ):
            with pytest.raises(NotAllowed):
                attempt()
        assert memory.knowledge.add_pattern("Retry with a backoff", "http").outcome == "stored"


def test_clearing_global_memory_takes_a_yes_and_can_be_undone(
    memory: kept.Kept, person: Person, clock: FakeClock
) -> None:
    """D8: clear_all."""
    memory.knowledge.add_preference("Short answers", "style")
    memory.knowledge.add_pattern("Retry with a backoff", "http")
    memory.remember("Of the project")
    person.says_yes = False
    with pytest.raises(NotAllowed, match="all 2 global memories"):
        memory.knowledge.clear_all()
    assert len(memory.list()) == 3
    person.says_yes = True
    clock.advance(seconds=1)
    assert memory.knowledge.clear_all() == 2
    assert person.questions[-1].startswith("DANGER: Forget all 2 global memories")
    assert contents(memory.list()) == ["Of the project"]
    memory.undo()
    assert contents(memory.knowledge.preferences()) == ["Short answers"]
    assert memory.knowledge.clear_all() == 2
    assert memory.knowledge.clear_all() == 0


def test_clearing_is_one_call_however_much_there_is(tmp_path: Path) -> None:
    with open_two("inmemory", tmp_path, confirm=lambda question: True) as memory:
        memory.remember_many(
            kept.Draft(content=f"Pattern {n}", kind="pattern", tier="global") for n in range(BATCH + 5)
        )
        assert memory.knowledge.clear_all() == BATCH + 5
        memory.undo()
        assert len(memory.list(limit=1_000)) == BATCH + 5


# From tier to tier


def test_a_promoted_memory_keeps_its_past_and_the_old_ref_leads_to_it(memory: kept.Kept, clock: FakeClock) -> None:
    """D11: deliberate, journaled, with where it came from."""
    task = memory.task("TASK-001")
    note = stored(task.add_reasoning("The parser needs a lock per file", "plan", files=["parser.py"]))
    memory.reinforce(note.ref)
    clock.advance(days=1)
    promoted = stored(memory.promote(note.ref))
    assert (promoted.tier, promoted.status, promoted.files, promoted.tags) == (
        "project",
        "confirmed",
        ("parser.py",),
        (),
    )
    assert (promoted.feedback, promoted.use_count, promoted.last_hit_at) == (3, 1, memory.get(note.ref).last_hit_at)
    assert promoted.source == Source(agent="agent", task="TASK-001")
    assert promoted.data == {"stage": "plan", "promoted_from": note.uid}
    assert memory.get(promoted.ref) == promoted
    old = memory.get(note.ref)
    assert (old.status, old.reason, old.superseded_by) == ("archived", "superseded", promoted.uid)
    assert [event.action for event in memory.history(note.ref)] == ["remember", "reinforce", "promote"]
    assert [event.action for event in memory.history(promoted.ref)] == ["remember", "promote"]
    with pytest.raises(InvalidInput, match=f"It was replaced by {promoted.ref}"):
        memory.pin(note.ref)


def test_promoting_into_global_memory_asks_and_answers_with_the_new_ref(memory: kept.Kept, person: Person) -> None:
    """D8, D11, DESIGN: the target first, then the origin; even a pattern is asked about."""
    known = stored(memory.remember("Retry with a backoff", kind="pattern", tags=["http"]))
    person.says_yes = False
    with pytest.raises(NotAllowed):
        memory.promote(known.ref, to="global")
    assert memory.get(known.ref).status == "confirmed"
    person.says_yes = True
    promoted = stored(memory.promote(known.ref, to="global"))
    assert (promoted.ref, promoted.tier, promoted.kind, promoted.tags) == ("g1", "global", "pattern", ("http",))
    with pytest.raises(InvalidInput, match="It was replaced by g1"):
        memory.pin(known.ref)


def test_undoing_a_promotion_puts_everything_back_in_both_spaces(memory: kept.Kept) -> None:
    task = memory.task("TASK-001")
    note = stored(task.add_reasoning("The parser needs a lock per file", "plan"))
    for to in ("project", "global"):
        promoted = stored(memory.promote(note.ref, to=to))  # type: ignore[arg-type]
        memory.undo()
        assert memory.get(note.ref).status == "confirmed"
        assert contents(task.memories()) == ["The parser needs a lock per file"]
        with pytest.raises(NotFound, match="forgotten"):
            memory.get(promoted.ref)
    assert stored(memory.promote(note.ref)).tier == "project", "it can be promoted again"


def test_a_promotion_that_was_cut_short_is_made_whole_by_the_next(
    memory: kept.Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DESIGN: idempotent by uid. The first half is written, the second fails; nothing is lost and nothing doubled."""
    known = stored(memory.remember("Retry with a backoff", kind="pattern"))
    [project, shared] = context_of(memory).readable()
    with monkeypatch.context() as patch:
        patch.setattr(project, "writing", lambda *args, **more: (_ for _ in ()).throw(OSError("power cut")))
        with pytest.raises(OSError, match="power cut"):
            memory.promote(known.ref, to="global")
    assert memory.get(known.ref).status == "confirmed"
    promoted = stored(memory.promote(known.ref, to="global"))
    assert (promoted.ref, promoted.importance) == ("g1", known.importance)
    with shared.reading() as reader:
        assert reader.count() == 1
    assert memory.get(known.ref).superseded_by == promoted.uid


def test_what_the_target_says_already_is_strengthened(memory: kept.Kept) -> None:
    known = stored(memory.remember("The parser needs a lock per file"))
    note = stored(memory.task("t").add_reasoning("The parser needs a lock per file", "plan"))
    receipt = memory.promote(note.ref)
    assert (receipt.outcome, receipt.ref) == ("strengthened", known.ref)
    assert memory.get(note.ref).superseded_by == known.uid
    assert memory.get(known.ref).importance > known.importance


def test_a_promotion_goes_the_write_path(memory: kept.Kept) -> None:
    """Contradictions are noticed, a topic supersedes."""
    memory.remember("Always use Fastify for the public API server", kind="decision")
    old = stored(memory.remember("The API listens on port 8080", topic="port"))
    source = Source(task="t")
    rival = memory.remember(
        "Never use Fastify for the public API server", kind="decision", tier="task", source=source
    ).ref
    newer = memory.remember("The API listens on port 3000", topic="port", tier="task", source=source).ref
    assert memory.conflicts() == []
    assert len(memory.promote(rival or "").conflicts) == 1
    assert memory.promote(newer or "").superseded == (old.ref,)


def test_a_memory_too_long_for_the_tier_is_not_promoted(memory: kept.Kept) -> None:
    note = stored(memory.task("t").add_tool_output("pytest", "x " * 400, "test"))
    receipt = memory.promote(note.ref)
    assert (receipt.outcome, receipt.reason) == ("refused", "too_long")
    assert memory.get(note.ref).status == "candidate"
    memory.revise(note.ref, "Two tests fail without the lock")
    assert stored(memory.promote(note.ref)).content == "Two tests fail without the lock"


def test_what_a_tool_said_stays_a_candidate_unless_a_person_promotes_it(tmp_path: Path) -> None:
    """DESIGN: trust is the least of its lineage."""
    for origin, status in (("agent", "candidate"), ("user", "confirmed")):
        with open_two("inmemory", tmp_path, origin=origin) as memory:
            note = stored(memory.task("t").add_tool_output("curl", "The service moved to port 81", "look"))
            promoted = stored(memory.promote(note.ref))
            assert (promoted.status, promoted.source.origin) == (status, "tool")


def test_promotion_leads_upwards_only(memory: kept.Kept) -> None:
    """D11: task → project → global."""
    fact = stored(memory.remember("A fact"))
    pattern = stored(memory.knowledge.add_pattern("Retry with a backoff", "http"))
    for ref, to in ((fact.ref, "project"), (pattern.ref, "global"), (pattern.ref, "project")):
        with pytest.raises(InvalidInput, match="already"):
            memory.promote(ref, to=to)  # type: ignore[arg-type]
    for to, why in (
        ("task", "cannot be promoted"),
        ("session", "cannot be promoted"),
        ("cloud", "Unknown tier 'cloud'"),
    ):
        with pytest.raises(InvalidInput, match=why):
            memory.promote(fact.ref, to=to)  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        memory.promote("99")
    memory.forget(fact.ref)
    with pytest.raises(InvalidInput, match="archived"):
        memory.promote(fact.ref, to="global")


def test_what_a_session_found_can_be_promoted_by_hand(memory: kept.Kept) -> None:
    """D11 with C8: the points decide what goes by itself, a person what goes now."""
    source = Source(origin="extraction", session="s1")
    content = "The queue is drained by two workers, and both hold the same lock"
    found = stored(memory.remember(content, tier="session", source=source))
    assert found.tier == "session"
    promoted = stored(memory.promote(found.ref))
    assert (promoted.tier, promoted.content, promoted.source.session) == ("project", content, "s1")


def test_no_task_note_is_promoted_automatically(memory: kept.Kept, clock: FakeClock) -> None:
    """D11: no automatic promotion: not by use, importance, time, upkeep or the end of the task."""
    task = memory.task("TASK-001")
    note = stored(task.add_reasoning("The parser needs a lock per file", "plan"))
    memory.pin(note.ref)
    for _ in range(5):
        memory.reinforce(note.ref)
        clock.advance(days=2)
        memory.recall("parser lock")
        memory.upkeep()
    task.set_state("done")
    memory.upkeep()
    assert memory.get(note.ref).tier == "task"
    assert memory.list() == []


def test_a_skill_knows_nothing_and_promotes_nothing(tmp_path: Path) -> None:
    """B14."""
    with open_two("inmemory", tmp_path, actor=Actor(role="skill"), confirm=lambda question: True) as memory:
        for attempt in (
            memory.knowledge.decisions,
            memory.knowledge.failures,
            memory.knowledge.preferences,
            memory.knowledge.clear_all,
            lambda: memory.promote("1"),
            lambda: memory.knowledge.add_decision("x"),
            lambda: memory.knowledge.add_pattern("x", "y"),
        ):
            with pytest.raises(NotAllowed):
                attempt()
