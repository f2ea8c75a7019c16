"""Safe for terminals: what was stored is shown, never obeyed."""

import json
import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kept.entrypoints.cli.invocation import json_text
from kept.text import visible
from tests.cli.shell import Shell

HOSTILE = "red \x1b[31m bell \x07 c1 \x9b2J bidi \u202e\u2066 zero\u200b\u200dwidth tag\U000e0041 del \x7f sep \u2028 \r over"


def assert_tame(output: str) -> None:
    """Nothing but text and newlines. (The joiners inside an emoji are text.)"""
    assert visible(output) == output
    assert not [char for char in output if unicodedata.category(char) == "Cc" and char != "\n"]


@pytest.fixture
def hostile(shell: Shell) -> Shell:
    shell("remember", "-", "--tag", HOSTILE, "--file", HOSTILE, "--topic", HOSTILE, "--key", HOSTILE, input=HOSTILE)
    shell("remember", f"all {HOSTILE}", "--global", "--yes")
    return shell


@pytest.mark.parametrize(
    "command",
    [
        *[["list"], ["list", "--limit", "1", "--tag", HOSTILE], ["show", "1"], ["history"], ["history", "1"], ["status"]],
        *[["recall", "red", "bell"], ["recall", HOSTILE], ["why"], ["reinforce", "1"], ["undo"], ["forget", "1"]],
        *[["revise", "1", HOSTILE + "2"], ["remember", HOSTILE], ["remember", "x", "--kind", HOSTILE], ["show", HOSTILE]],
        *[["erase", "1"], ["erase", "1", "--yes"], ["restore", HOSTILE], ["backup", f"no/{HOSTILE}"], ["undo", HOSTILE]],
        *[["list", "--project", HOSTILE], ["list", "--home", HOSTILE], ["projects", "rename", "app", HOSTILE]],
        *[["config", "set", HOSTILE, HOSTILE], ["config", "set", "profile", HOSTILE], ["config", "import", HOSTILE]],
        *[[HOSTILE], ["list", f"--{HOSTILE}"], ["list", "--as", HOSTILE], ["list", "--limit", HOSTILE], ["why", HOSTILE]],
        *[["projects", "link", HOSTILE], ["projects", "merge", HOSTILE, "app"], ["doctor"], ["projects", "list"]],
    ],
)
def test_no_command_sends_stored_or_typed_text_raw(hostile: Shell, command: list[str]) -> None:
    result = hostile.type(*command)
    assert_tame(result.stdout)
    assert_tame(result.stderr)
    in_json = hostile.type(*command, "--json").stdout
    assert_tame(in_json)
    json.loads(in_json)


def test_a_hostile_directory_is_no_danger(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    place = shell.folder / HOSTILE.replace("/", "")
    place.mkdir()
    monkeypatch.chdir(place)
    shell("remember", "x")
    for command in (["list"], ["status"], ["projects", "list"], ["doctor"], ["show", "9"]):
        result = shell.type(*command)
        assert_tame(result.stdout + result.stderr)
        assert_tame(shell.type(*command, "--json").stdout)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(min_size=1, max_size=60))
def test_any_text_is_tame_on_the_terminal(shell: Shell, text: str) -> None:
    shell.type("remember", "--key", text[:5], "--", text)
    assert_tame(shell("list", "--limit", "1"))


@given(st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_says_exactly_what_it_was_given_and_is_tame(document: object) -> None:
    for ascii_only in (False, True):
        written = json_text(document, ascii_only=ascii_only)
        assert json.loads(written) == document
        assert_tame(written)
        if ascii_only:
            assert written.isascii()


def test_readable_letters_stay_readable_in_json() -> None:
    assert "Grüße 你好 🎉" in json_text({"text": "Grüße 你好 🎉"})
