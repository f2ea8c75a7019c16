"""The frame: options that stand anywhere, errors that say what to do, one JSON document for everything."""

import json

import pytest

from kept.entrypoints.cli import catalog, derived
from tests.cli.shell import Shell

REFS = ["show", "pin", "unpin", "forget", "erase", "history"]


@pytest.mark.parametrize("arguments", [["--project", "a", "remember", "x"], ["remember", "x", "--project", "a"]])
def test_global_options_work_before_and_after_the_command(shell: Shell, arguments: list[str]) -> None:
    shell(*arguments)
    assert [project["name"] for project in shell.json("projects", "list")["projects"]] == ["a"]


@pytest.mark.parametrize("width", ["60", "80"])
def test_help_breaks_no_line_within_a_command(shell: Shell, monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    monkeypatch.setenv("COLUMNS", width)
    assert "`kept task show TASK`" in shell("remember", "--help")
    driver = 'git config merge.kept.driver "PYTHONPATH= $(command -v kept) files merge-driver %O %A %B"'
    assert f"  {driver}\n" in shell("files", "merge-driver", "--help")


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


def test_a_narrow_terminal_keeps_most_of_its_columns_for_the_help_of_options(shell: Shell) -> None:
    narrow, wide = (
        shell.run("list", "--help", COLUMNS=columns).stdout.decode().splitlines() for columns in ("60", "100")
    )
    assert "  --kind KIND         Only these kinds. May be repeated." in narrow
    assert f"  {'--kind KIND':30}  Only these kinds. May be repeated." in wide


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
        (["serch", "x"], "There is no command 'serch'. Did you mean find?"),
        (["delete", "1"], "There is no command 'delete'. Did you mean forget, or erase for good?"),
        (["rate", "1"], "Say + (helpful) or - (wrong) at the end: kept rate 1 +"),
        (["rate", "1", "+-"], "Say + (helpful) or - (wrong) at the end: kept rate 1 +. "),
        (["rate", "1", "up"], "Say + (helpful) or - (wrong) at the end: kept rate 1 +. "),
        (["show", "1", "--jsn"], "There is no option --jsn. Did you mean --json? `kept show --help`"),
        (["show", "1", "--xyzzy"], "There is no option --xyzzy. `kept show --help`"),
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


def test_the_first_page_has_few_commands_and_ten_of_them_for_every_day(shell: Shell) -> None:
    page = shell("--help")
    shown = [name for names in catalog.FIRST_PAGE.values() for name in names]
    assert len(set(shown)) == len(shown) <= 23
    assert len(catalog.FIRST_PAGE["Everyday"]) == 10
    for heading, names in catalog.FIRST_PAGE.items():
        assert f"\n{heading}:\n" in page
        assert all(f"\n  {name} " in page for name in names)
    assert "\n  narrative " not in page
    assert f"`kept help --all` lists all {len(catalog.COMMANDS)} commands" in page
    assert page == shell("-h") == shell() == shell("help")


def test_the_help_of_a_command_is_found_by_its_words(shell: Shell) -> None:
    assert shell("help", "store", "backup") == shell("store", "backup", "--help")
    assert shell("help", "review") == shell("review", "--help")
    assert "There is no command 'bakup'. Did you mean backup?" in shell.fails("help", "store", "bakup", code=2)
    assert "`kept list` has no command 'x'." in shell.fails("help", "list", "x", code=2)


def test_all_commands_are_listed_by_topic_when_asked(shell: Shell) -> None:
    page = "\n" + shell("help", "--all")
    for topic in ("Writing", "Reading", "Changing", "Maintenance", "Set-up"):
        assert f"\n{topic}:\n" in page
    for name, entry in catalog.COMMANDS.items():
        assert f"\n  {name} " in page
        assert entry.line.split()[0] in page


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


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("conflicts", "review conflicts"),
        ("resolve", "review resolve"),
        ("paused", "status"),
        ("backup", "store backup"),
    ],
)
def test_an_old_name_names_the_command_of_today(shell: Shell, old: str, new: str) -> None:
    assert f"Did you mean {new}?" in shell.fails(old, code=2)


def test_help_suggests_only_names_that_are_near(shell: Shell) -> None:
    assert "Did you mean" not in shell.fails("help", "nope", code=2)
    assert "Did you mean status?" in shell.fails("help", "statsu", code=2)
