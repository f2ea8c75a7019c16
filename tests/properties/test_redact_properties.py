"""Redaction, whatever the text: it never fails, never touches what it does not name, and needs no second look."""

from string import ascii_letters, digits

from hypothesis import example, given
from hypothesis import strategies as st

from kept.writing.redact import Redacted, redact

# What the rules look at, put together at random.
FRAGMENTS = st.sampled_from(
    [
        *(
            "password",
            "PW",
            "token",
            "api key",
            "secret",
            "is",
            "the",
            "for",
            "=",
            ": ",
            " ",
            "\n",
            '"',
            "'",
            "`",
            "\\n",
        ),
        *(
            "hunter2!",
            "a1B2c3D4e5F6g7H8",
            "swordfish",
            "${X}",
            "sk-",
            "ghp_",
            "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6",
            "eyJ",
        ),
        *("<private>", "</private>", "-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBgkqhk", "-----END PRIVATE KEY-----"),
        *("https://", "bob:", "@", "corp.test", "/", "?key=", "&", "4242 4242 4242 4242", "Cookie: ", "a=", ";", '\\"'),
        *("Authorization", "Bearer ", "curl -u ", "mysql -p", "--password ", "[redacted:x]", "\x1b[0m", "\u200b", "é"),
        *("密码", "是", "\0", "(", ")", ",", ".", "|", "{", "}", "<", ">", "%20", "&quot;", "seed phrase: ", "value"),
        *("name", "user,password\n", "eyJ", "\\n"),
    ]
)
ANY_TEXT = st.text(max_size=300) | st.lists(FRAGMENTS, max_size=30).map("".join)
QUIET = st.text(alphabet="abcdefghij ÄÖé,.!?\n\t(){}<>'\"0123", max_size=80)
TOKENS = st.permutations(ascii_letters + digits).map(lambda shuffled: "ghp_" + "".join(shuffled[:36]))


@given(ANY_TEXT)
@example("pw=\0")
@example("\ud800password: \udfffa1b2c3d4")
def test_any_text_is_redacted_without_an_error(text: str) -> None:
    assert "error" not in [found.kind for found in redact(text).found]


@given(ANY_TEXT)
@example("password is [redacted:x] password: hunter2!")
@example("zip -P zip -P zip -P a1b2c3")
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact(text).text
    assert redact(once) == Redacted(once, ())


@given(ANY_TEXT)
def test_everything_outside_of_what_was_found_is_left_as_it_was(text: str) -> None:
    redacted = redact(text)
    rebuilt, position = "", 0
    for found in redacted.found:
        assert position <= found.start < found.end <= len(text)
        rebuilt += text[position : found.start] + f"[redacted:{found.kind}]"
        position = found.end
    assert rebuilt + text[position:] == redacted.text


@given(QUIET, TOKENS, QUIET)
def test_a_vendor_token_is_found_wherever_it_stands(before: str, token: str, after: str) -> None:
    assert token not in redact(f"{before} {token} {after}").text


@given(QUIET, TOKENS, st.lists(st.integers(0, 36), min_size=1, max_size=4))
def test_invisible_characters_inside_a_token_do_not_hide_it(before: str, token: str, places: list[int]) -> None:
    hidden = token
    for place in places:
        hidden = hidden[:place] + "\u200b" + hidden[place:]
    left = redact(f"{before} {hidden}").text.replace("\u200b", "")
    assert token not in left


@given(QUIET, TOKENS)
def test_an_allowed_value_is_never_taken_out(before: str, token: str) -> None:
    assert token in redact(f"{before} {token}", allow=[token]).text
