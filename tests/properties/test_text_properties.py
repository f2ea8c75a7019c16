"""What holds for any text at all, hostile or not."""

import unicodedata
from collections.abc import Iterator

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kept import text

# Beside plain `st.text()`: all code points with lone surrogates, and runs of what the tokenizer looks at.
ANY_TEXT = st.one_of(
    st.text(),
    st.text(st.characters()),
    st.text(st.sampled_from("aB1_-./\\:@'+#~ \t\n\x00äßéİΣ数がガﾞ한हि🚀\u200d\u0300\u0316\u034f\ue000\ud800T:Z")),
    st.from_regex(r"([a-z]{1,5}|[A-Z][a-z]{1,5}|[0-9]{1,3})([-._/\\:@']{1,2}([a-zA-Z]{1,6}|[0-9]{1,4})){1,5}"),
    st.lists(st.sampled_from(["don't", "C++", "C#", ".NET", "https://x.y/z", "3.11.7", "数据库", "Größe", "AND"])).map(
        " ".join
    ),
)


@pytest.fixture(scope="module")
def fts() -> Iterator[apsw.Connection]:
    with apsw.Connection(":memory:") as db:
        db.execute(f'create virtual table live using fts5(words, tokenize="{text.FTS_TOKENIZE}")')
        db.execute("create virtual table vocabulary using fts5vocab(live, 'instance')")
        yield db


@given(any_text=ANY_TEXT)
def test_the_index_holds_exactly_the_words_of_any_text(fts: apsw.Connection, any_text: str) -> None:
    tokens = text.words(any_text)
    fts.execute("delete from live")
    fts.execute("insert into live(words) values (?)", (" ".join(tokens),))
    assert [term for (term,) in fts.execute("select term from vocabulary order by offset")] == tokens


@given(any_text=ANY_TEXT)
def test_any_text_finds_itself(fts: apsw.Connection, any_text: str) -> None:
    fts.execute("delete from live")
    fts.execute("insert into live(words) values (?)", (" ".join(text.words(any_text)),))
    for word in text.query_words(any_text):
        assert fts.execute("select count(*) from live where live match ?", (f'"{word}"',)).fetchall() == [(1,)]


@given(ANY_TEXT)
def test_a_query_asks_only_for_words_that_the_same_text_would_be_indexed_by(any_text: str) -> None:
    asked = text.query_words(any_text)
    assert len(asked) == len(set(asked)) <= text.MAX_QUERY_WORDS
    assert set(asked) <= set(text.words(any_text))


@given(ANY_TEXT)
@example("https://x.y")
@example("x")
@example("NOT")
def test_a_query_with_a_letter_or_digit_is_never_empty(any_text: str) -> None:
    """§6: never an error, never an empty query from one that says something."""
    has_something = any(unicodedata.category(c) in ("Lu", "Ll", "Lo", "Nd") for c in any_text)
    is_blank = all(unicodedata.category(c) == "Lo" and text.visible(c) != c for c in any_text)  # fillers: blank letters
    assert text.query_words(any_text) or not has_something or is_blank


@given(ANY_TEXT, ANY_TEXT)
def test_words_of_two_texts_are_the_words_of_each(one: str, other: str) -> None:
    assert text.words(f"{one} {other}") == text.words(one) + text.words(other)
    assert text.count_words(f"{one}\n{other}") == text.count_words(one) + text.count_words(other)


@given(ANY_TEXT)
def test_every_word_is_short_and_every_counted_word_is_indexed(any_text: str) -> None:
    tokens = text.words(any_text)
    assert all(0 < len(token) <= text.MAX_TOKEN_CHARS for token in tokens)
    assert 0 <= text.count_words(any_text) <= len(tokens)


@given(ANY_TEXT)
def test_composed_and_decomposed_text_have_the_same_words(any_text: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, any_text) for form in ("NFC", "NFD"))
    assert text.words(composed) == text.words(decomposed)
    assert text.fingerprint(composed) == text.fingerprint(decomposed)


@given(ANY_TEXT)
def test_the_normal_form_of_a_normal_form_is_itself(any_text: str) -> None:
    normal = text.normalise(any_text)
    assert text.normalise(normal) == normal
    assert text.normalise(f" \n{any_text}\t") == normal
    assert normal == normal.strip()


@given(ANY_TEXT)
def test_any_text_has_two_fingerprints(any_text: str) -> None:
    assert len(text.fingerprint(any_text)) == 32
    assert len(text.djb2_fingerprint(any_text)) == 16


@given(ANY_TEXT, st.booleans())
def test_nothing_unsafe_is_ever_shown(any_text: str, keep_newlines: bool) -> None:
    shown = text.visible(any_text, keep_newlines=keep_newlines)
    assert text.visible(shown, keep_newlines=keep_newlines) == shown
    allowed = "\n\t" if keep_newlines else ""
    for character in shown:
        assert character in allowed or unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp")
        assert unicodedata.bidirectional(character) not in (
            "RLO",
            "LRO",
            "RLE",
            "LRE",
            "PDF",
            "RLI",
            "LRI",
            "FSI",
            "PDI",
        )
    shown.encode("utf-8")
