"""A later statement ends an earlier one about the same thing, however it is said; what still holds stays."""

import pytest

from kept.writing.grammar import without_openers
from kept.writing.last_word import NO, YES, overrules
from kept.writing.over import disproves
from tests.writing.last_words import ENDED, HELD

WRONGLY_ENDED = 5  # of HELD; ten were when they were written


def answer(later: str, earlier: str) -> int:
    """Compare two statements as a later session does, which knows what the opener of a statement said."""
    said, marks = without_openers(later)
    return overrules(said, earlier, marks=marks)


@pytest.mark.parametrize(("earlier", "later"), ENDED)
def test_the_opposite_ends_a_statement_whatever_its_form(earlier: str, later: str) -> None:
    assert answer(later, earlier) == YES


def test_hardly_any_statement_about_something_else_ends_one() -> None:
    ended = [(earlier, later) for earlier, later in HELD if answer(later, earlier) == YES]
    assert len(ended) <= WRONGLY_ENDED, ended


@pytest.mark.parametrize(
    ("later", "earlier", "is_disproved"),
    [
        ("The cache wasn't it.", "The leak is caused by the cache of the renderer.", True),
        ("Die Datenbank war es nicht.", "Die Ursache ist die Datenbank, sie sperrt zu lange.", True),
        ("La caché no era la causa.", "La causa es la caché de plantillas.", True),
        ("The cache wasn't it.", "The cache lives in src/render/cache.ts.", False),
        ("The index wasn't it.", "The leak is caused by the cache of the renderer.", False),
    ],
)
def test_a_cause_is_disproved_by_its_name(later: str, earlier: str, *, is_disproved: bool) -> None:
    assert disproves(later, earlier) == is_disproved


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        ("Fix the login bug: 401 after token refresh.", "The login page returns 500 after the refresh token rotated."),
        ("Debug the import: row 17 after the header is lost.", "The import reads 500 rows after the header."),
    ],
)
def test_an_order_to_mend_something_sets_no_value(later: str, earlier: str) -> None:
    assert answer(later, earlier) == NO
