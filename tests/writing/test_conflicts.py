"""What counts as a contradiction, and what must not."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kept
from kept.model import ConflictType, Memory
from kept.ports import Transaction
from kept.storage.inmemory import InMemoryStorage
from kept.storage.sqlite import SqliteStorage
from kept.writing.clauses import clauses_of
from kept.writing.conflicts import Rival, find_rivals
from kept.writing.duplicates import Known
from tests.builders import memory, stamp
from tests.golden.project_memories import PROJECT_MEMORIES
from tests.writing import fresh_pairs
from tests.writing.conflict_pairs import (
    CONTRADICTIONS,
    NEAR_MISSES,
    UNSEEN_CONTRADICTIONS,
    UNSEEN_NEAR_MISSES,
    Pair,
    Statement,
)
from tests.writing.contradiction_pairs import CONTRADICTIONS as OTHER_VALUES
from tests.writing.contradiction_pairs import NEIGHBOURS


def remembered(statement: Statement) -> Memory:
    return memory(statement.content, kind=statement.kind, files=statement.files)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Transaction]:
    """A space with the memories of a whole project."""
    storage = SqliteStorage(tmp_path / "kept.db", "project/p1")
    with storage.writing(stamp()) as tx:
        for fields in PROJECT_MEMORIES:
            tx.add(memory(**fields), "remember")
        yield tx
    storage.close()


def rivals_of(space: Transaction, new: Memory) -> list[Rival]:
    return find_rivals(space, new, Known(space, [new]).alike(new))


def flagged(space: Transaction, pairs: Sequence[Pair]) -> list[bool]:
    """Whether the second of each pair is seen to contradict the first, which is stored; and the other way round."""
    seen = []
    for stored, new in [*pairs, *((right, left) for left, right in pairs)]:
        uid = space.add(remembered(stored), "remember").uid
        seen.append(uid in {rival.memory.uid for rival in rivals_of(space, remembered(new))})
    return seen


def types(*contents: str, kinds: tuple[str, str] = ("decision", "decision"), **fields: object) -> list[ConflictType]:
    """How the last content contradicts the first one, alone in a space."""
    stored, new = contents
    storage = InMemoryStorage("project/p1")
    with storage.writing(stamp()) as tx:
        tx.add(memory(stored, kind=kinds[0], **fields), "remember")
        return [rival.type for rival in rivals_of(tx, memory(new, kind=kinds[1], **fields))]


@pytest.mark.parametrize(
    ("contradictions", "near_misses"),
    [(CONTRADICTIONS, NEAR_MISSES), (UNSEEN_CONTRADICTIONS, UNSEEN_NEAR_MISSES)],
    ids=["first lot", "second lot"],
)
def test_contradictions_are_seen_and_near_misses_are_not(
    project: Transaction, contradictions: list[Pair], near_misses: list[Pair]
) -> None:
    """C22: precision and recall of at least 0.9 in the midst of a project's memories, in either order."""
    found = sum(flagged(project, contradictions))
    false_alarms = sum(flagged(project, near_misses))
    assert found / (2 * len(contradictions)) >= 0.9
    assert found / (found + false_alarms) >= 0.9


def test_three_hundred_unrelated_memories_raise_at_most_one_flag(project: Transaction) -> None:
    stored = project.select(limit=1_000)
    flags = [(each.content, rival.memory.content) for each in stored for rival in rivals_of(project, each)]
    assert len(stored) >= 300
    assert len(flags) <= 1, flags


def test_another_value_for_the_same_thing_is_seen_and_neighbours_are_not(project: Transaction) -> None:
    """C22: in ten shapes, in either order: 85 % of the contradictions, 1 % of the neighbours."""
    contradictions = list(chain(*OTHER_VALUES.values()))
    found, alarms = flagged(project, contradictions), flagged(project, NEIGHBOURS)
    assert (len(contradictions), len(NEIGHBOURS)) == (100, 300)
    assert sum(found) >= 0.85 * len(found)
    assert sum(alarms) <= 0.01 * len(alarms)


def test_another_value_is_seen_in_a_sentence_of_another_build(project: Transaction) -> None:
    """The same shapes in a second lot, half of it said freely: 54 % were found before the rules knew it."""
    contradictions = list(chain(*fresh_pairs.CONTRADICTIONS.values()))
    found, alarms = flagged(project, contradictions), flagged(project, fresh_pairs.NEIGHBOURS)
    assert (len(contradictions), len(fresh_pairs.NEIGHBOURS)) == (40, 100)
    assert sum(found) >= 0.83 * len(found)
    assert sum(alarms) <= 0.01 * len(alarms)


@pytest.mark.parametrize(
    ("stored", "new"),
    [
        ("Use Fastify for the gateway", "Don't use Fastify for the gateway"),
        ("Always lint before a release", "Never lint before a release"),
        ("Enable query caching", "Disable query caching"),
        ("Add the audit trigger", "Remove the audit trigger"),
        ("Workers should retry uploads", "Workers shouldn't retry uploads"),
        ("Use Fastify, not Express", "Use Express, not Fastify"),
    ],
)
def test_the_opposites_of_the_checklist_contradict(stored: str, new: str) -> None:
    """C22: use/don't use, always/never, enable/disable, add/remove, should/shouldn't, and reversals."""
    assert types(stored, new) == ["contradictory"]


def test_only_memories_of_one_kind_or_about_one_file_contradict_each_other() -> None:
    """C22: must share file paths or category."""
    pair = ("Enable query caching", "Disable query caching")
    assert types(*pair, kinds=("decision", "runbook")) == []
    assert types(*pair, kinds=("decision", "warning")) == ["contradictory"]
    assert types(*pair, kinds=("decision", "warning"), files=("src/db.py",)) == ["contradictory"]


@pytest.mark.parametrize(
    ("stored", "new", "expected", "reverse"),
    [
        ("Deploy on Fridays", "Never deploy on Fridays", "contradictory", "contradictory"),
        ("The default branch is main", "The default branch is develop", "contradictory", "contradictory"),
        ("We use Jest for unit tests", "We switched from Jest to Vitest for unit tests", "superseded", "contradictory"),
        ("The gateway listens on port 8080", "The gateway now listens on port 9090", "superseded", "contradictory"),
        (
            "The cookie expires after 3 hours",
            "Correction: the cookie expires after 2 hours",
            "superseded",
            "contradictory",
        ),
        ("Never edit generated files", "Edit generated files when the schema changes", "ambiguous", "ambiguous"),
    ],
)
def test_a_conflict_says_how_grave_it_is(stored: str, new: str, expected: ConflictType, reverse: ConflictType) -> None:
    """C10: contradictory, superseded, ambiguous. Only the newer one can say that the older is over."""
    assert types(stored, new) == [expected]
    assert types(new, stored) == [reverse]


def test_a_memory_does_not_contradict_itself() -> None:
    assert types("Use Fastify, not Express", "use  fastify, NOT express") == []


def test_what_happened_is_not_contradicted_by_what_happened_later() -> None:
    pair = ("Removed the audit trigger from bookings", "Added the audit trigger to bookings")
    assert types(*pair, kinds=("progress", "progress")) == []
    assert types(*pair, kinds=("decision", "progress"), files=("db.sql",)) == []


def test_what_is_numbered_is_not_contradicted_by_the_next_number() -> None:
    assert types("Fact number 1 is about the limit of the pool", "Fact number 2 is about the limit of the pool") == []
    assert types("Step 3 has a timeout of its own", "Step 4 has a timeout of its own") == []
    assert types("The pool has a limit of 10 connections", "The pool has a limit of 20 connections") != []


def test_only_live_memories_of_the_same_scope_are_rivals() -> None:
    storage = InMemoryStorage("project/p1")
    with storage.writing(stamp()) as tx:
        tx.add(memory("Enable query caching", status="archived", reason="superseded"), "remember")
        tx.add(memory("Enable query caching", scope="items"), "remember")
        assert rivals_of(tx, memory("Disable query caching")) == []


def test_words_that_stand_in_every_memory_do_not_make_a_conflict() -> None:
    storage = InMemoryStorage("project/p1")
    with storage.writing(stamp()) as tx:
        for number in range(40):
            tx.add(memory(f"The server of customer {number} writes a log"), "remember")
        tx.add(memory("The log of the server is written to disk"), "remember")
        assert rivals_of(tx, memory("The log of the server is not kept")) == []


def test_a_clause_is_read_as_what_it_affirms_and_what_it_denies() -> None:
    (tabs,) = clauses_of("Use tabs in Makefiles and not spaces because make insists.")
    assert (tabs.keys, tabs.replaced, tabs.denies) == ({"tab", "makefil"}, {"space"}, False)
    allowed, forbidden = clauses_of("Allow force pushes. Forbid force pushes.")
    assert (allowed.keys, allowed.denies, forbidden.denies) == (forbidden.keys, False, True)
    assert [each.denies for each in clauses_of("Don't forget the backup. Never skip the tests.")] == [False, False]
    assert clauses_of("Should we drop Redis? It is not only slow.") == ()


def test_a_no_to_somebody_else_does_not_deny_the_statement() -> None:
    assert types("Use pnpm, not npm", "No, use pnpm, not npm") == []
    assert types("The default branch is main", "No, the default branch is main") == []
    assert types("The default branch is main", "No, the default branch is develop") == ["superseded"]


@given(st.text(max_size=300))
def test_any_text_can_be_read(content: str) -> None:
    for clause in clauses_of(content):
        assert clause.keys
        assert not clause.has_ended or clause.ends


@pytest.mark.parametrize("piece", ["a.", "..", "not ", "from ", ", not ", "a'", "1.", "in ", "prefer over ", "用 不 "])
def test_only_the_beginning_of_a_long_text_is_read(piece: str) -> None:
    """A document is no statement: a megabyte is read as its first thousand characters are."""
    assert clauses_of(piece * 500_000) == clauses_of((piece * 1_000)[:1_000])


def test_a_revision_that_ends_a_contradiction_settles_it(tmp_path: Path) -> None:
    """C22: what nobody says any more is no conflict. A smaller change does not end it, and an undo brings it back."""
    with kept.open(tmp_path / "m.db") as opened:
        opened.remember("We use Fastify for the public API", kind="decision")
        opened.remember("Never use Fastify for the public API", kind="decision")
        assert len(opened.conflicts()) == 1
        opened.revise(1, "We use Fastify for our public API")
        assert len(opened.conflicts()) == 1
        opened.revise(1, "We use Hono for the public API")
        assert opened.conflicts() == []
        opened.undo()
        assert len(opened.conflicts()) == 1


@pytest.mark.parametrize(
    ("older", "newer", "is_over"),
    [
        ("We use polars in the loaders", "We no longer use polars", True),
        ("Use Redis for the job queue", "We no longer use Redis", True),
        ("We use polars in the loaders", "We moved from polars to duckdb", True),
        ("Use Redis for the job queue", "We no longer use Redis for sessions", False),
        ("Use Heroku for production", "We moved from Heroku to Fly.io for staging", False),
        ("We use polars in the loaders", "The dashboards no longer use polars", False),
    ],
)
def test_what_is_not_used_any_more_is_over_everywhere_unless_that_is_narrowed(
    older: str, newer: str, is_over: bool
) -> None:
    with kept.open(":memory:", settings=kept.Settings()) as memory:
        memory.remember("Tests run in CI on every push")
        old = memory.remember(older, kind="decision")
        assert (memory.remember(newer, kind="decision").superseded == (old.ref,)) is is_over


@pytest.mark.parametrize(
    ("stored", "new"),
    [
        ("We use npm to install packages", "We use pnpm to install packages"),
        ("Install dependencies with npm", "Use pnpm for installing dependencies"),
        ("Use Yup for validating forms", "Forms are validated with Zod"),
        ("Telemetry is on by default", "Telemetry is off by default"),
        ("Timestamps are stored in local time", "Timestamps are stored in UTC"),
        ("Run the linter before the tests", "Run the tests before the linter"),
        ("Deploy the worker after the gateway", "Deploy the worker before the gateway"),
    ],
)
def test_another_value_contradicts_also_in_another_form_of_the_sentence(stored: str, new: str) -> None:
    assert types(stored, new) == ["contradictory"]


@pytest.mark.parametrize(
    ("stored", "new"),
    [
        ("Install dependencies with npm", "Use pnpm for publishing packages"),
        ("Deploy the worker with helm", "Use terraform for the database"),
        ("Run the linter before the tests", "Run the linter before the release"),
        ("Telemetry is on by default", "Telemetry is off in tests"),
    ],
)
def test_another_activity_or_place_contradicts_nothing(stored: str, new: str) -> None:
    assert types(stored, new) == []
