"""Safe for terminals: what was stored is shown, never obeyed."""

import json
import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kept.entrypoints.cli.invocation import json_text
from kept.text import visible
from tests.cli.shell import Shell

HOSTILE = (
    "red \x1b[31m bell \x07 c1 \x9b2J bidi \u202e\u2066 zero\u200b\u200dwidth tag\U000e0041 del \x7f sep \u2028 \r over"
)


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
        *[
            ["list"],
            ["list", "--limit", "1", "--tag", HOSTILE],
            ["show", "1"],
            ["history"],
            ["history", "1"],
            ["status"],
        ],
        *[["recall", "red", "bell"], ["recall", HOSTILE], ["why"], ["rate", "1", "+"], ["undo"], ["forget", "1"]],
        *[
            ["edit", "1", HOSTILE + "2"],
            ["remember", HOSTILE],
            ["remember", "x", "--kind", HOSTILE],
            ["show", HOSTILE],
        ],
        *[
            ["erase", "1"],
            ["erase", "1", "--yes"],
            ["restore", HOSTILE],
            ["store", "backup", f"no/{HOSTILE}"],
            ["undo", HOSTILE],
        ],
        *[["list", "--project", HOSTILE], ["list", "--home", HOSTILE], ["projects", "rename", "app", HOSTILE]],
        *[["config", "set", HOSTILE, HOSTILE], ["config", "set", "profile", HOSTILE], ["config", "import", HOSTILE]],
        *[
            [HOSTILE],
            ["list", f"--{HOSTILE}"],
            ["list", "--as", HOSTILE],
            ["list", "--limit", HOSTILE],
            ["why", HOSTILE],
        ],
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


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(min_size=1, max_size=60))
def test_any_text_is_escaped_on_the_terminal(shell: Shell, text: str) -> None:
    shell.type("remember", "--key", text[:5], "--", text)
    assert_tame(shell("list", "--limit", "1"))


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_json_round_trips_and_has_no_control_characters(document: object) -> None:
    for ascii_only in (False, True):
        written = json_text(document, ascii_only=ascii_only)
        assert json.loads(written) == document
        assert_tame(written)
        if ascii_only:
            assert written.isascii()


def test_readable_letters_stay_readable_in_json() -> None:
    assert "Grüße 你好 🎉" in json_text({"text": "Grüße 你好 🎉"})


NASTY = ["\udcff", "a\0b", "", " ", "-", "9" * 5000, "g0", "[id:", "%s%n", "\\", "~", "x" * 70_000]
COMMANDS = [
    *[
        ["show", "X"],
        ["list", "--after", "X"],
        ["list", "--tag", "X"],
        ["list", "--kind", "X"],
        ["list", "--limit", "X"],
    ],
    *[["history", "X"], ["recall", "X"], ["recall", "a", "--tag", "X"], ["recall", "a", "--file", "X"], ["why", "X"]],
    *[
        ["recall", "a", "--kind", "X"],
        ["rate", "X", "+"],
        ["rate", "X", "-"],
        ["pin", "X"],
        ["unpin", "X"],
        ["forget", "X"],
    ],
    *[
        ["remember", "X"],
        ["remember", "a", "--tag", "X"],
        ["remember", "a", "--file", "X"],
        ["remember", "a", "--key", "X"],
    ],
    *[["remember", "a", "--topic", "X"], ["remember", "a", "--kind", "X"], ["remember", "a", "--importance", "X"]],
    *[["edit", "1", "X"], ["edit", "X", "a"], ["edit", "1", "a", "--tag", "X"], ["restore", "X"], ["erase", "X"]],
    *[
        ["undo", "X"],
        ["store", "backup", "X"],
        ["list", "--home", "X"],
        ["list", "--project", "X"],
        ["remember", "a", "--home", "X"],
    ],
    *[["remember", "a", "--project", "X"], ["config", "set", "X", "1"], ["config", "set", "profile", "X"], ["X"]],
    *[["config", "unset", "X"], ["config", "import", "X"], ["projects", "link", "app", "X"], ["projects", "link", "X"]],
    *[["projects", "rename", "app", "X"], ["projects", "rename", "X", "b"], ["projects", "merge", "X", "app"]],
    *[["status", "--project", "X"], ["doctor", "--project", "X"], ["doctor", "--home", "X"], ["projects", "X"]],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_line_ends_in_an_internal_error(shell: Shell, command: list[str]) -> None:
    shell("remember", "first")
    for nasty in NASTY:
        arguments = [nasty if word == "X" else word for word in command]
        result = shell.type(*arguments, "--json", input="")
        assert result.exit_code in (0, 1, 2)
        document = json.loads(result.stdout)
        assert "fault" not in str(document.get("error")), (arguments[:5], result.stderr)
        assert_tame(result.output)
    assert shell.json("show", "1", "--home", str(shell.home))["uid"]
