"""A change of mind is kept: the newer statement is stored, and the older one conflicts with it or is superseded."""

from collections.abc import Iterator
from itertools import chain

import pytest

import kept
from kept.model import Draft, Memory, Receipt, Source, Trust
from kept.writing.conflicts import RULES
from kept.writing.values import VALUE_RULES
from tests.builders import FakeClock
from tests.golden.project_memories import PROJECT_MEMORIES
from tests.writing.reversal_pairs import REVERSALS


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[kept.Kept]:
    with kept.open(":memory:", clock=clock, settings=kept.Settings()) as opened:
        yield opened


def said(memory: kept.Kept, content: str, *, trust: Trust = "user", session: str = "s1", **fields: object) -> Receipt:
    """A statement that a rule took from a conversation, in the words of whoever is trusted that much."""
    source = Source(origin="conversation", session=session)
    draft = Draft(content=content, trust=trust, tier="session", source=source, **fields)  # type: ignore[arg-type]
    return memory.remember_many([draft])[0]


def refs_shown(memory: kept.Kept, query: str) -> list[str]:
    return [hit.ref for hit in memory.recall(query, limit=10)]


def is_settled(memory: kept.Kept, older: Memory, receipt: Receipt) -> bool:
    """Whether the newer memory is there, and the older one is superseded by it or in conflict with it."""
    newer = receipt.memory
    if newer is None or newer.is_archived:
        return False
    if memory.get(older.ref).superseded_by == newer.uid:
        return True
    return any({c.left, c.right} == {older.uid, newer.uid} and c.type != "ambiguous" for c in receipt.conflicts)


def test_a_change_of_mind_in_conversation_supersedes_or_conflicts_and_never_vanishes() -> None:
    """Ten shapes of reversal and short corrections, in a project of three hundred memories: 90 %, none dropped."""
    clock = FakeClock()
    with kept.open(":memory:", clock=clock, settings=kept.Settings(recall_deadline_ms=60_000)) as memory:
        memory.remember_many(Draft(**fields) for fields in PROJECT_MEMORIES)
        missed, dropped, hidden = [], [], []
        pairs = list(chain(*REVERSALS.values()))
        for number, (before, after) in enumerate(pairs):
            clock.advance(hours=1)
            older = said(memory, before.content, session=f"before {number}").memory
            clock.advance(days=1)
            receipt = said(memory, after.content, session=f"after {number}")
            if older is None or receipt.outcome == "refused":
                dropped.append(after.content)
            elif not is_settled(memory, older, receipt):
                missed.append(after.content)
            elif receipt.ref not in refs_shown(memory, after.content):
                hidden.append(after.content)
    assert dropped == []
    assert hidden == []
    assert len(missed) <= 0.1 * len(pairs), missed


def test_what_the_newer_one_says_is_over_is_in_the_archive_with_the_reason_and_a_link(
    memory: kept.Kept, clock: FakeClock
) -> None:
    said(memory, "The avatars are stored in S3.", session="monday")
    clock.advance(days=1)
    receipt = said(memory, "We moved the avatars from S3 to R2.", session="tuesday")
    older = memory.get(1)
    assert receipt.memory is not None
    assert (receipt.superseded, receipt.conflicts) == (("1",), ())
    assert (older.status, older.reason, older.superseded_by) == ("archived", "superseded", receipt.memory.uid)
    assert [hit.ref for hit in memory.recall("avatars S3", scope="archive")] == ["1"]
    (settled,) = memory.conflicts(resolved=True)
    assert (settled.left, settled.right, settled.rule) == (receipt.memory.uid, older.uid, "names what it replaces")
    memory.undo()
    assert [one.ref for one in memory.list()] == ["1"]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Staging is deployed from the branch develop to Heroku", "We moved from Heroku to Fly.io for staging"),
        ("Staging is deployed from the branch develop to Heroku", "Staging is not on Heroku any more, it is on Fly.io"),
        ("Thumbnails are served by Imgix with a signed address", "We moved from Imgix to Bunny for thumbnails"),
        ("The order search runs on Solr with three replicas", "The order search is no longer on Solr"),
    ],
)
def test_a_value_that_is_over_takes_a_longer_statement_with_it(memory: kept.Kept, older: str, newer: str) -> None:
    first, second = memory.remember(older), memory.remember(newer)
    assert memory.get(first.ref).superseded_by == memory.get(second.ref).uid


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Production is deployed from the branch main to Heroku", "We moved from Heroku to Fly.io for staging"),
        ("Production is deployed from the branch main to Heroku", "Staging is not on Heroku any more, it is on Fly.io"),
        ("The Heroku command for staging is in the setup script", "We moved from Heroku to Fly.io for staging"),
        ("Backups are stored in S3 with a lock of a year", "We moved from S3 to R2 for thumbnails"),
        ("We use Redis for the cache", "Jobs run with Celery, not Redis"),
    ],
)
def test_but_not_one_about_something_else(memory: kept.Kept, older: str, newer: str) -> None:
    first = memory.remember(older)
    memory.remember(newer)
    assert not memory.get(first.ref).is_archived
    assert memory.conflicts() == []


def test_a_tool_that_is_named_as_the_wrong_one_may_deny_that_it_is_used(memory: kept.Kept) -> None:
    memory.remember("We use pytest with the xdist plugin")
    memory.remember("Tests run with unittest, not pytest")
    [conflict] = memory.conflicts()
    assert (conflict.type, conflict.rule) == ("ambiguous", "may deny it")


@pytest.mark.parametrize("sentence", ["Sessions expire after {}0 minutes", "The gateway listens on port {}443"])
def test_the_reason_for_another_number_is_that_the_number_differs(memory: kept.Kept, sentence: str) -> None:
    memory.remember(sentence.format(8))
    memory.remember(sentence.format(9))
    [conflict] = memory.conflicts()
    assert conflict.rule == "other number"


def test_without_such_words_both_stay_with_the_newer_first(memory: kept.Kept, clock: FakeClock) -> None:
    older = said(memory, "We decided to use Postgres for the order database.", session="monday").memory
    clock.advance(days=1)
    receipt = said(memory, "We decided to use MySQL for the order database.", session="tuesday")
    (conflict,) = receipt.conflicts
    assert older is not None
    assert receipt.memory is not None
    assert (conflict.left, conflict.right) == (receipt.memory.uid, older.uid)
    assert (conflict.type, conflict.rule) == ("contradictory", "other choice")
    assert conflict in memory.recall("order database").conflicts


@pytest.mark.parametrize("trust", ["agent", "tool", "unknown"])
def test_nobody_supersedes_what_somebody_more_trusted_said(memory: kept.Kept, clock: FakeClock, trust: Trust) -> None:
    said(memory, "The avatars are stored in S3.", session="monday")
    clock.advance(days=1)
    receipt = said(memory, "We moved the avatars from S3 to R2.", trust=trust, session="tuesday")
    assert receipt.superseded == ()
    assert [conflict.type for conflict in receipt.conflicts] == ["superseded"]
    assert not memory.get(1).is_archived


def test_nobody_supersedes_what_is_pinned(memory: kept.Kept, clock: FakeClock) -> None:
    memory.remember("The avatars are stored in S3.", pin=True)
    clock.advance(days=1)
    receipt = said(memory, "We moved the avatars from S3 to R2.")
    assert (receipt.superseded, len(receipt.conflicts)) == ((), 1)


def test_an_older_statement_that_comes_later_does_not_win(memory: kept.Kept, clock: FakeClock) -> None:
    """Sessions may be imported in any order: newer means said later."""
    newer = said(memory, "We moved the avatars from S3 to R2.", session="tuesday").memory
    receipt = said(memory, "The avatars are stored in S3.", session="monday", created_at=clock.at.replace(month=2))
    assert newer is not None
    assert receipt.memory is not None
    assert (receipt.memory.reason, receipt.memory.superseded_by) == ("superseded", newer.uid)
    assert not memory.get(newer.ref).is_archived


def test_an_unasked_repetition_is_dropped_only_if_it_adds_nothing(memory: kept.Kept) -> None:
    def outcome(content: str) -> str:
        return said(memory, content, trust="agent", session="s2").outcome

    said(memory, "The import job runs every night at two o'clock on the replica", trust="agent")
    assert outcome("The import job now runs every night at 2 o'clock on the replica.") == "refused"
    assert outcome("The import job runs every nigth at two o'clock on the replica") == "candidate"  # too short to guess
    assert outcome("The import job runs every night at two o'clock on the primary") == "candidate"
    assert outcome("The import job never runs every night at two o'clock on the replica") == "candidate"
    assert outcome("The export job runs every night at two o'clock on the replica") == "candidate"


def test_every_rule_has_a_name_of_its_own() -> None:
    names = [rule.name for rule in (*RULES, *VALUE_RULES)]
    assert len(set(names)) == len(names)
