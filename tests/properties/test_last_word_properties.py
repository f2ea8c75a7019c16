"""A statement ends no other one that shares no word with it, however strongly it speaks of a change."""

from hypothesis import given
from hypothesis import strategies as st

from kept.writing.last_word import YES, overrules

SIGNALS = ("change", "objects")
FORMS = (
    "The {0} runs on {1}.",
    "We use {0} for the {1}.",
    "{0} is gone, we use {1} now.",
    "Use {0} instead of {1}.",
    "{0} first, then {1}.",
    "The {0} is off by default, says {1}.",
    "The {0} wasn't it, the {1} was.",
    "No longer {0}, but {1}.",
    "Der {0} ist aus, {1} nicht mehr.",
    "Ya no {0}, ahora {1}.",
)


def words(letters: str) -> st.SearchStrategy[str]:
    """Words of these letters, which are no word of any language."""
    return st.text(st.sampled_from(letters), min_size=3, max_size=8).map(lambda word: f"zq{word}x")


def statements(letters: str) -> st.SearchStrategy[str]:
    things = st.lists(words(letters), min_size=2, max_size=2, unique=True)
    return st.builds(lambda form, named: form.format(*named), st.sampled_from(FORMS), things)


@given(statements("abcde"), statements("mnopr"), st.sets(st.sampled_from(SIGNALS)))
def test_a_statement_ends_none_about_other_things(later: str, earlier: str, marks: set[str]) -> None:
    assert overrules(later, earlier, marks=marks) != YES


@given(statements("abcde"))
def test_a_statement_that_is_said_again_is_not_ended(said: str) -> None:
    assert overrules(said, said) != YES
