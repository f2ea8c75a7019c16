"""Short corrections and statements in other languages are kept with the right kind."""

from datetime import UTC, datetime

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


def test_a_task_is_kept_apart_from_the_statement_beside_it() -> None:
    said = "The billing tests only run against Postgres. Rename the export button to Download."
    found = [each.draft.content for each in after_an_answer(said)]
    assert "The billing tests only run against Postgres." in found


def test_a_sentence_that_explains_a_task_is_not_told_without_a_judge() -> None:
    said = "The gateway eats all the memory until it gets killed every night. Find out why."
    assert [each.draft.content for each in after_an_answer(said) if each.sort in TOLD] == []


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("Der Termin für heute fällt aus, die Messe dauert immer drei Tage.", "für 2026-03-18 fällt"),
        ("Desde hoy todos los precios llevan IVA.", "Desde 2026-03-18 todos"),
        ("今日から請求書は必ずPDFで送る。", "2026-03-18から"),
        ("From today all prices include VAT.", "From 2026-03-18 all"),
    ],
)
def test_a_word_for_a_day_becomes_a_date_in_its_language(said: str, day: str) -> None:
    message = Message(id="u", role="user", content=said, at=datetime(2026, 3, 18, 9, tzinfo=UTC))
    assert day in " ".join(each.draft.content for each in extract([message], style="coding"))
