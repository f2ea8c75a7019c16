"""A change of mind between two conversations: the newer statement is kept, and settles what it changes."""

from itertools import chain

import pytest

import kept
from kept.model import Conflict, Draft, Memory
from tests.builders import FakeClock
from tests.golden.project_memories import PROJECT_MEMORIES
from tests.writing.conflict_pairs import Pair
from tests.writing.reversal_pairs import REVERSALS, SPOKEN, SPOKEN_LATER

SETTINGS = kept.Settings(
    auto_upkeep=False, extraction="coding", recall_deadline_ms=60_000
)  # a busy machine hides nothing
SETTLED_SHARE = 0.9
KNOWN_SHARE = 0.8  # the others are requests
SPOKEN_SETTLED = 12  # of 20, as people write them between other things


class Talk:
    """Conversations in one project of three hundred memories, each on a day of its own."""

    def __init__(self, memory: kept.Kept, clock: FakeClock, *, fast: bool = False) -> None:
        self.memory, self.clock, self.fast = memory, clock, fast
        memory.remember_many(Draft(**fields) for fields in PROJECT_MEMORIES)

    def say(self, session: str, *messages: str) -> None:
        self.clock.advance(days=1)
        opened = self.memory.session(session)
        for message in messages:
            opened.append("user", message)
            opened.append("assistant", "Understood.")
        opened.finish(fast=self.fast)

    def found(self, session: str) -> dict[str, Memory]:
        live, gone = (self.memory.list(limit=10_000, status=status) for status in (None, "archived"))
        of_session = [one for one in (*live, *gone) if one.source.session == session and one.kind != "summary"]
        return {one.uid: one for one in of_session}

    def settled(self, older: dict[str, Memory], newer: dict[str, Memory]) -> bool:
        """Whether something of the older session is superseded by the newer one, or in conflict with it."""
        conflicts: list[Conflict] = [*self.memory.conflicts(), *self.memory.conflicts(resolved=True)]
        pairs = [{one.left, one.right} for one in conflicts if one.type != "ambiguous"]
        return any(one.superseded_by in newer for one in older.values()) or any(
            pair & older.keys() and pair & newer.keys() for pair in pairs
        )


def results(pairs: list[Pair], *, fast: bool = False) -> tuple[int, int, list[str], list[str]]:
    """How many pairs are settled and have an older memory, and the newer sentences that were dropped or are hidden.

    An older sentence that only asks for something to be done is no memory, so there is nothing to settle.
    """
    clock = FakeClock()
    settled, known, dropped, hidden = 0, 0, [], []
    with kept.open(":memory:", clock=clock, settings=SETTINGS) as memory:
        talk = Talk(memory, clock, fast=fast)
        for number, (before, after) in enumerate(pairs):
            talk.say(f"before-{number}", before.content)
            talk.say(f"after-{number}", after.content)
            if fast:  # what a fast finish leaves is done when the next session begins
                memory.session(f"next-{number}")
            older, newer = talk.found(f"before-{number}"), talk.found(f"after-{number}")
            if not newer:
                dropped.append(after.content)
            elif newer.keys().isdisjoint(hit.memory.uid for hit in memory.recall(after.content, limit=10)):
                hidden.append(after.content)
            known += bool(older)
            settled += talk.settled(older, newer)
    return settled, known, dropped, hidden


@pytest.mark.parametrize("fast", [False, True], ids=["finished", "finished fast, by a hook"])
def test_nine_of_ten_reversals_end_as_supersession_or_conflict_and_none_is_dropped(fast: bool) -> None:
    pairs = list(chain(*REVERSALS.values()))
    settled, known, dropped, hidden = results(pairs, fast=fast)
    assert (dropped, hidden) == ([], [])
    assert known >= KNOWN_SHARE * len(pairs)
    assert settled >= SETTLED_SHARE * known


@pytest.mark.parametrize("pairs", [SPOKEN, SPOKEN_LATER], ids=["between other things", "later ones"])
def test_no_reversal_is_dropped_however_it_is_said(pairs: list[Pair]) -> None:
    settled, _, dropped, hidden = results(pairs)
    assert (dropped, hidden) == ([], [])
    assert settled >= SPOKEN_SETTLED


@pytest.fixture
def talk() -> Talk:
    clock = FakeClock()
    return Talk(kept.open(":memory:", clock=clock, settings=SETTINGS), clock)


def test_a_sentence_without_a_cue_is_at_most_a_proposal(talk: Talk) -> None:
    talk.say("alone", "A payment is retried four times, the bank wanted it.")
    assert [one.is_proposal for one in talk.found("alone").values()] == [True]


def test_a_sentence_without_a_cue_is_in_conflict_with_what_is_known(talk: Talk) -> None:
    said = "A payment is retried four times, the bank wanted it."
    talk.memory.remember("A payment is retried three times")
    talk.say("again", said)
    (found,) = talk.found("again").values()
    (conflict,) = [one for one in talk.memory.conflicts() if one.left == found.uid]
    assert conflict.rule == "other number"


def test_of_a_change_within_one_session_the_last_word_is_kept(talk: Talk) -> None:
    talk.say("one", "The importer is deployed to the blue cluster.", "hm, scratch the blue cluster for the importer")
    (found,) = talk.found("one").values()
    assert "blue cluster for the importer" in found.content


def test_a_cause_that_an_agent_named_ends_when_the_user_says_it_was_not_it(talk: Talk) -> None:
    talk.clock.advance(days=1)
    session = talk.memory.session("one")
    session.append("user", "Find out why the worker needs so much memory.")
    session.append(
        "assistant", "The cause is the LRU cache in `render/cache.ts`: it has no limit, so it keeps every template."
    )
    session.finish()
    (blamed,) = [one for one in talk.found("one").values() if "LRU cache" in one.content]
    talk.say("two", "It died again at night. So the cache wasn't it.")
    assert blamed.uid not in {one.uid for one in talk.memory.list(limit=10_000)}


def test_a_statement_before_a_request_is_read(talk: Talk) -> None:
    talk.say("one", "we deploy on Thursdays, can you change the template?")
    assert [one.content for one in talk.found("one").values()] == ["We deploy on Thursdays."]


def test_the_opening_that_says_so_makes_it_a_correction(talk: Talk) -> None:
    talk.say("one", "Use British spelling in the UI texts.")
    talk.say("two", "Actually the UI texts should be in American spelling.")
    (newer,) = talk.found("two").values()
    (older,) = talk.found("one").values()
    assert newer.content == "The UI texts should be in American spelling."
    assert "correction" in newer.tags
    assert older.superseded_by == newer.uid


def test_another_value_for_what_the_user_said_is_kept_and_a_request_about_it_is_not(talk: Talk) -> None:
    talk.say("one", "Please write the commit messages in English.")
    talk.say("two", "Show me the last commit messages.", "Commit messages in German please, the customer reads them.")
    assert [one.content for one in talk.found("two").values()] == [
        "Commit messages in German please, the customer reads them."
    ]


PASSING = """
The tests are failing again.
The page is blank.
The build works now.
I pushed the changes manually.
The button is still in the wrong place.
It exited immediately.
The output looks good.
The dialog opens twice.
The first test passes, the second doesn't.
This is from my configuration.
The error is on line 40.
The header doesn't show up anymore.
The server returns 500 when I log in.
The colours are fine, but the title is missing.
We met Mary at the church last Sunday.
Saint Mary church last Sunday, and then brunch.
"""


@pytest.mark.parametrize("said", PASSING.strip().splitlines())
def test_reports_of_the_moment_are_at_most_proposed(talk: Talk, said: str) -> None:
    talk.say("one", said)
    assert [one.content for one in talk.found("one").values() if not one.is_proposal] == []


REQUESTS = """
Add a matrix to the docs.
Write a checker for hooks.
Run the tests again.
Fix the login bug.
Update the changelog with the changes since the last release.
Look at how the other tests handle mocking.
Make the button use the new colour.
Review the work that has been done so far.
Check the server uses the cache.
Continue with the next task.
"""


@pytest.mark.parametrize("said", REQUESTS.strip().splitlines())
def test_a_request_that_is_carried_out_is_not_kept(talk: Talk, said: str) -> None:
    talk.say("one", said)
    assert [one.content for one in talk.found("one").values()] == []


def test_a_plain_order_ends_what_another_session_was_told(talk: Talk) -> None:
    talk.say("one", "Failed uploads should ping #uploads in Slack, the webhook is in the vault.")
    talk.say("two", "The parser chokes on empty lines, handle that.", "oh and drop the slack pings completely pls")
    older, newer = talk.found("one"), talk.found("two")
    assert [one.status for one in older.values()] == ["archived"]
    assert "Drop the slack pings completely pls." in {one.content for one in newer.values()}


def test_a_request_that_is_repeated_in_another_session_becomes_a_proposal(talk: Talk) -> None:
    request = "Update the changelog with the changes since the last release."
    talk.say("one", request)
    assert talk.found("one") == {}
    talk.say("two", "The login page is slow.", request)
    assert [one.content for one in talk.found("two").values() if one.is_proposal] == [request]
