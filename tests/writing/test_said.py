"""Short corrections and statements in other languages are kept with the right kind."""

import pytest

from kept.model import Message
from kept.proposals import TOLD
from kept.writing.extraction import ExtractedDraft, extract
from tests.writing.said import CORRECTIONS, FOREIGN, PASSING

SHARE = 0.8


def after_an_answer(said: str) -> list[ExtractedDraft]:
    answer = Message(id="a", role="assistant", content="I started the server on port 4000 and wrote the config.")
    return extract([answer, Message(id="u", role="user", content=said)], style="coding")


def kinds_of(said: str) -> set[str]:
    return {each.draft.kind for each in after_an_answer(said)}


@pytest.mark.parametrize("statements", [CORRECTIONS, FOREIGN], ids=["corrections", "German, French, Spanish"])
def test_four_of_five_statements_are_kept_with_the_right_kind(statements: list[tuple[str, str]]) -> None:
    assert len(statements) == 20
    wrong = [(said, kind, kinds_of(said)) for said, kind in statements if kinds_of(said) != {kind}]
    assert len(wrong) <= (1 - SHARE) * len(statements), wrong


def test_a_correction_carries_its_tag() -> None:
    tagged = [
        said for said, _ in CORRECTIONS if "correction" in {t for e in after_an_answer(said) for t in e.draft.tags}
    ]
    assert len(tagged) >= SHARE * len(CORRECTIONS), set(dict(CORRECTIONS)) - set(tagged)


@pytest.mark.parametrize("said", PASSING)
def test_chatter_and_requests_in_other_languages_are_not_told(said: str) -> None:
    assert [each for each in after_an_answer(said) if each.sort in TOLD] == []


def test_hardly_any_chatter_in_other_languages_is_even_proposed() -> None:
    assert len([said for said in PASSING if after_an_answer(said)]) <= 2
