"""The frame: options that stand anywhere, errors that say what to do, one JSON document for everything."""

import json

import pytest

from kept.entrypoints.cli import catalog, derived
from tests.cli.shell import Shell

REFS = ["show", "reinforce", "demote", "pin", "unpin", "forget", "erase", "history"]


@pytest.mark.parametrize("arguments", [["--project", "a", "remember", "x"], ["remember", "x", "--project", "a"]])
def test_global_options_work_before_and_after_the_command(shell: Shell, arguments: list[str]) -> None:
    shell(*arguments)
    assert [project["name"] for project in shell.json("projects", "list")["projects"]] == ["a"]


def test_the_option_nearest_to_the_command_counts(shell: Shell) -> None:
    shell("--project", "a", "remember", "x", "--project", "b")
    assert [project["name"] for project in shell.json("projects", "list")["projects"]] == ["b"]


def test_another_home_can_be_named(shell: Shell) -> None:
    shell("remember", "x", "--home", str(shell.folder / "elsewhere"))
    assert shell.json("list")["memories"] == []
    assert len(shell.json("list", "--home", str(shell.folder / "elsewhere"))["memories"]) == 1


@pytest.mark.parametrize("position", range(3))
def test_errors_are_one_json_document_wherever_json_stands(shell: Shell, position: int) -> None:
    arguments = ["show", "41"]
    arguments.insert(position, "--json")
    result = shell.type(*arguments)
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "error": {
            "type": "NotFound",
            "message": "There is no memory 41.",
            "hint": "`kept list` shows what there is.",
        }
    }


def test_text_after_a_double_dash_is_text(shell: Shell) -> None:
    assert shell("remember", "--", "--json") == "Kept: [id:1] (fact).\n"
    assert shell.json("list")["memories"][0]["content"] == "--json"


@pytest.mark.parametrize("name", REFS)
def test_every_command_refuses_what_is_no_ref_and_what_is_not_there(shell: Shell, name: str) -> None:
    assert "'forty-two' is not a memory ref." in shell.fails(name, "forty-two")
    assert shell.fails(name, "42") == "There is no memory 42. `kept list` shows what there is."


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["lst"], "There is no command 'lst'. Did you mean list? `kept --help` shows the usage."),
        (["serch", "x"], "There is no command 'serch'. Did you mean recall?"),
        (["delete", "1"], "There is no command 'delete'. Did you mean forget, or erase for good?"),
        (["version"], "There is no command 'version'. Did you mean kept --version?"),
        (["show"], "Missing argument 'REF'. `kept show --help` shows the usage."),
        (["projects", "marge"], "There is no command 'marge'. Did you mean merge?"),
        (["list", "--limit", "-1"], "limit must be a whole number from 0 to 2,147,483,647, got -1."),
        (
            ["list", "--limit", "9" * 40],
            "limit must be a whole number from 0 to 2,147,483,647, got 999999999999999999.",
        ),
        (["list", "--as", "boss"], "'boss' is not one of 'admin', 'project', 'skill'."),
        (["list", "--status", "gone"], "'gone' is not one of"),
        (["remember"], "There is no text to remember."),
        (["remember", "x", "--global", "--tier", "task"], "--global and --tier task contradict each other."),
        (
            ["remember", "x", "--importance", "much"],
            "Invalid value for '--importance': importance must be a number, got 'much'.",
        ),
        (["remember", "-5 degrees"], 'put the text after a double dash: kept remember -- "…".'),
        (["list", "--knid", "x"], "--kind"),
        (["list", "extra"], "Got unexpected extra argument (extra)."),
    ],
)
def test_wrong_usage_ends_with_2_and_says_how_it_is_meant(shell: Shell, arguments: list[str], sentence: str) -> None:
    assert sentence in shell.fails(*arguments, code=2)


def test_an_unexpected_fault_is_a_polite_sentence_without_content(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(words: tuple[str, ...]) -> str:
        raise ZeroDivisionError(f"secret {words}")

    monkeypatch.setattr(derived, "given_text", fail)
    sentence = shell.fails("remember", "the content")
    assert "ZeroDivisionError" in sentence
    assert "KEPT_DEBUG=1" in sentence
    assert "content" not in sentence
    assert "secret" not in sentence


def test_an_interrupt_is_quiet(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(words: tuple[str, ...]) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(derived, "given_text", interrupt)
    result = shell.type("remember", "x")
    assert (result.exit_code, result.stdout, result.stderr.strip()) == (130, "", "")


def test_a_skill_can_reach_nothing(shell: Shell) -> None:
    shell("remember", "x")
    for arguments in (["list"], ["show", "1"], ["history"], ["remember", "y"], ["status"], ["forget", "1"]):
        assert "may not" in shell.fails(*arguments, "--as", "skill")


def test_help_groups_all_commands_by_topic(shell: Shell) -> None:
    page = shell("--help")
    for topic in ("Writing", "Reading", "Changing", "Maintenance", "Set-up"):
        assert f"\n{topic}:\n" in page
    for name, entry in catalog.COMMANDS.items():
        assert f"\n  {name} " in page
        assert entry.line.split()[0] in page
    assert page == shell("-h") == shell()


def test_help_and_version_are_also_one_json_document(shell: Shell) -> None:
    assert "Usage: kept list" in shell.json("list", "--help")["help"]
    assert "Usage: kept projects" in shell.json("projects")["help"]
    assert set(shell.json("--version")) == {"version"}


def test_what_the_library_warns_of_is_told_on_standard_error(shell: Shell) -> None:
    shell("remember", "x")
    (shell.home / "projects.json").write_text("{")
    result = shell.type("list", "--json")
    assert len(json.loads(result.stdout)["memories"]) == 1
    assert result.stderr.startswith("Note: The registry of projects")


def test_no_command_asks_when_nobody_is_there_to_answer(shell: Shell) -> None:
    sentence = shell.fails("remember", "x", "--global")
    assert sentence == (
        "This needs confirmation: Add global fact: 'x'? Add --yes to confirm, or run the command in a terminal."
    )
