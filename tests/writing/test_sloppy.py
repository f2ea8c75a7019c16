"""Statements that people type in a hurry are kept in their own words, and chatter is not."""

import pytest

from kept.model import Message
from kept.proposals import TOLD
from kept.writing.extraction import extract
from tests.writing.sloppy import PASSING, PASSING_LAST, PASSING_UNSEEN, STATED, STATED_LAST, STATED_UNSEEN


def told_of(*said: str) -> list[str]:
    return [content for content, sort in _found_in(*said) if sort in TOLD]


def kept_of(*said: str) -> list[str]:
    return [content for content, _ in _found_in(*said)]


def _found_in(*said: str) -> list[tuple[str, str]]:
    answer = Message(id="a", role="assistant", content="I changed the loader and wrote the config.")
    told = [Message(id=f"u{number}", role="user", content=each) for number, each in enumerate(said)]
    return [(each.draft.content, each.sort) for each in extract([answer, *told], style="coding")]


@pytest.mark.parametrize(("said", "part"), STATED, ids=[said[:40] for said, _ in STATED])
def test_a_statement_that_holds_beyond_the_day_is_kept(said: str, part: str) -> None:
    assert [content for content in kept_of(said) if part in content.lower()] != []


@pytest.mark.parametrize("said", PASSING)
def test_chatter_orders_questions_and_states_of_the_moment_are_not_told(said: str) -> None:
    assert told_of(said) == []


@pytest.mark.parametrize(
    ("stated", "passing", "least"),
    [(STATED_UNSEEN, PASSING_UNSEEN, 15), (STATED_LAST, PASSING_LAST, 11)],
    ids=["unseen in the first round", "unseen in the last round"],
)
def test_most_of_what_the_rules_were_not_made_with_is_kept_and_hardly_any_chatter(
    stated: list[tuple[str, str]], passing: list[str], least: int
) -> None:
    """`sloppy` says how many it were when each was measured for the first time."""
    found = [said for said, part in stated if any(part in content.lower() for content in kept_of(said))]
    assert len(found) >= least
    assert len([said for said in passing if told_of(said)]) <= 1


def test_two_of_three_passing_remarks_are_not_even_proposed() -> None:
    """A state of the moment looks like any statement; thanks, orders and questions do not."""
    passing = [*PASSING, *PASSING_UNSEEN, *PASSING_LAST]
    assert len([said for said in passing if kept_of(said)]) <= len(passing) / 3


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("and I told you already: no emojis in log messages", "No emojis in log messages."),
        ("like I said before, never edit the snapshots by hand", "Never edit the snapshots by hand."),
        ("We always use uv here, never pip. Remember that.", "We always use uv here, never pip."),
        ("we always use uv here, never pip, please remember that", "We always use uv here, never pip."),
        ("The dump of the crm ends at three. Don't forget that!", "The dump of the crm ends at three."),
        ("one pr per driver please", "One pr per driver please."),
    ],
)
def test_a_statement_has_neither_its_preface_nor_what_only_stresses_it(said: str, content: str) -> None:
    assert kept_of(said) == [content]


def test_a_choice_is_told_with_the_question_it_answers_and_how_to_do_it() -> None:
    asked = Message(id="a", role="assistant", content="Should the load run by cron or by a systemd timer?")
    said = Message(id="u", role="user", content="ok systemd timer then. run it at 3:15, the dump ends at 3")
    (found,) = extract([asked, said], style="coding")
    assert found.draft.content == (
        "Should the load run by cron or by a systemd timer? By a systemd timer. Run it at 3:15, the dump ends at 3."
    )
    assert found.draft.kind == "decision"


def test_what_the_user_replaces_in_the_same_session_is_not_kept() -> None:
    assert kept_of("let's use Redis for the queue", "No, use NATS instead of Redis") == ["Use NATS instead of Redis."]
    elsewhere = kept_of("let's use Redis for the cache", "use NATS instead of Redis for the queue")
    assert elsewhere == ["Let's use Redis for the cache.", "Use NATS instead of Redis for the queue."]
