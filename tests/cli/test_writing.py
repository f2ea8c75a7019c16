"""`kept remember`: what is typed is what is kept, or the reason why not."""

import json

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kept.writing.check import MAX_TEXT_BYTES
from tests.cli.shell import Shell

LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")


def test_a_statement_is_kept_with_all_that_was_said_about_it(shell: Shell) -> None:
    said = shell(
        *["remember", "Never", "edit", "the auth middleware", "--kind", "warning", "--tag", "auth", "--tag", "api"],
        *["--file", "src/auth.py", "--importance", "0.7", "--pin", "--topic", "auth", "--key", "k1"],
    )
    assert said == "Kept: [id:1] (warning, pinned).\n"
    found = shell.json("show", "1")
    assert found["content"] == "Never edit the auth middleware"
    assert found["kind"] == "warning"
    assert found["tags"] == ["auth", "api"]
    assert found["files"] == ["src/auth.py"]
    assert found["importance"] == 0.7
    assert found["status"] == "pinned"
    assert (found["topic"], found["key"], found["ref"]) == ("auth", "k1", "1")
    assert found["source"]["origin"] == "user"


def test_the_receipt_is_the_document(shell: Shell) -> None:
    receipt = shell.json("remember", "Use Fastify", "--kind", "decision")
    assert {"outcome", "ref", "memory", "reason", "redactions", "conflicts"} <= set(receipt)
    assert receipt["outcome"] == "stored"
    assert receipt["ref"] == receipt["memory"]["ref"] == "1"


def test_the_same_again_is_strengthened_and_says_so(shell: Shell) -> None:
    shell("remember", "Use Fastify")
    assert shell("remember", "use  FASTIFY") == "Already kept: [id:1] is more important now (0.6).\n"


def test_the_same_key_stores_nothing(shell: Shell) -> None:
    shell("remember", "one", "--key", "k")
    assert shell("remember", "one", "--key", "k") == "Already kept under that key: [id:1].\n"
    refused = shell.type("remember", "two", "--key", "k")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "its key is that of memory 1, which has another text" in refused.stderr


def test_what_is_too_long_is_refused_with_advice_and_exit_code_1(shell: Shell) -> None:
    result = shell.type("remember", "a" * 501)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "501 characters are too long" in result.stderr
    result = shell.type("remember", "a" * 501, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["outcome"] == "refused"
    assert shell.json("list")["memories"] == []


def test_a_dash_reads_standard_input_without_its_last_newline(shell: Shell) -> None:
    shell("remember", "-", input="two\nlines\n")
    assert shell.json("show", "1")["content"] == "two\nlines"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(LETTERS | st.sampled_from(" \n\r\t\x1b\u3000"), min_size=1, max_size=120))
def test_any_text_round_trips_through_standard_input_and_show(shell: Shell, text: str) -> None:
    assume(text.strip())
    project = f"p{len(list(shell.home.glob('projects/*')))}"  # a new one each time, so that nothing is said twice
    receipt = shell.json("remember", "-", "--tier", "task", "--project", project, input=f"{text}\n".encode())
    assume(not receipt["redactions"])
    assert receipt["outcome"] == "stored"
    assert shell.json("show", "1", "--project", project)["content"] == text


def test_global_is_asked_for_and_a_no_changes_nothing(shell: Shell) -> None:
    shell.answers = [False, True]
    result = shell.type("remember", "I like tabs", "--kind", "preference", "--global")
    assert (result.exit_code, result.stderr) == (1, "The answer was no. Nothing was changed.\n")
    assert shell.json("list")["memories"] == []
    assert (
        shell("remember", "I like tabs", "--kind", "preference", "--tier", "global") == "Kept: [id:g1] (preference).\n"
    )
    assert shell.questions == ["Add global preference: 'I like tabs'?"] * 2


def test_yes_and_admin_need_no_question(shell: Shell) -> None:
    assert shell("remember", "one", "--global", "--yes") == "Kept: [id:g1] (fact).\n"
    assert shell("remember", "two", "--global", "--as", "admin") == "Kept: [id:g2] (fact).\n"


@pytest.mark.parametrize(
    ("arguments", "input", "sentence"),
    [
        (["remember", " "], None, "There is nothing to remember: the text is empty."),
        (["remember", "-"], b"", "There is nothing to remember: the text is empty."),
        (["remember", "a\0b"], None, "The text contains a NUL character."),
        (["remember", "-"], b"a\0b", "The text contains a NUL character."),
        (["remember", "caf\udce9"], None, "The text is not UTF-8: character 4 is the byte 0xe9."),
        (["remember", "-"], b"caf\xe9", "The text on standard input is not UTF-8: byte 4 is 0xe9."),
        (["remember", "-"], b"x" * 10_000_000, f"The text on standard input is longer than {MAX_TEXT_BYTES:,} bytes."),
        (["remember", "x" * 2_000_000], None, "content has 2,000,000 characters; the limit is 1,000,000."),
        (["remember", "x", "--tag", "a\udcff"], None, "half of a surrogate pair"),
        (["remember", "x", "--kind", "two words!"], None, "'two words!' is not a valid kind."),
        (["remember", "x", "--importance", "7"], None, "importance must be between 0 and 1, got 7.0."),
        (["remember", "x", "--importance", "nan"], None, "importance must be between 0 and 1, got nan."),
        (["remember", "x", "--project", "/no/such/place"], None, "There is no directory /no/such/place."),
        (["remember", "x", "--project", "a\0b"], None, "has characters that cannot be printed"),
        (["remember", "x", "--home", ""], None, "home must not be an empty path."),
        (["remember", "x", "--home", "a\0b"], None, "this is not a valid file name"),
    ],
)
def test_bad_input_is_refused_with_a_clear_error_and_nothing_is_lost(
    shell: Shell, arguments: list[str], input: bytes | None, sentence: str
) -> None:
    shell("remember", "first")
    assert sentence in shell.fails(*arguments, input=input)
    assert [memory["content"] for memory in shell.json("list")["memories"]] == ["first"]


def test_a_file_in_place_of_the_home_is_refused(shell: Shell) -> None:
    shell.home.write_text("mine")
    assert "is a file, not a directory" in shell.fails("remember", "x")
    assert shell.home.read_text() == "mine"


def test_a_directory_in_place_of_the_database_is_refused(shell: Shell) -> None:
    shell("remember", "x")
    [database] = shell.home.glob("projects/*/kept.db")
    database.rename(database.with_name("aside.db"))
    database.mkdir()
    assert "is a directory, not a memory file" in shell.fails("remember", "y")


def test_the_home_directory_of_the_user_is_no_project(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(shell.folder))
    monkeypatch.chdir(shell.folder)
    assert "is your home directory, not a project. cd into a project" in shell.fails("remember", "x")
    assert "your home directory, not a project" in shell("list")
