"""`kept slash`: the commands of a chat, in a shell."""

import json
from dataclasses import dataclass, field

import pytest
from click.testing import CliRunner

from kept.entrypoints.cli.frame import root
from kept.entrypoints.cli.invocation import Invocation
from tests.cli.shell import Shell


@dataclass
class Person:
    """Somebody at a terminal who picks what is next in the list; what they were asked."""

    shell: Shell
    picks: list[str]
    asked: list[tuple[str, list[str]]] = field(default_factory=list)

    def type(self, *arguments: str) -> str:
        def pick(question: str, options: object) -> str:
            self.asked.append((question, list(options)))  # type: ignore[call-overload]
            return self.picks.pop(0)

        invocation = Invocation(clock=self.shell.clock, picks=pick)
        result = CliRunner(env=self.shell.environment).invoke(root, arguments, obj=invocation)
        assert result.exit_code == 0, result.output
        return result.output


def test_a_line_may_be_one_argument_or_many_words(shell: Shell) -> None:
    """C21: `kept slash "…"`."""
    assert shell("slash", "/remember Harbor is staging") == "Kept: [id:1] (fact).\n"
    assert shell("slash", "/remember", "Anchor", "is", "production") == "Kept: [id:2] (fact).\n"
    assert shell("slash", "/memory list").splitlines() == [
        "[id:2] fact: Anchor is production",
        "[id:1] fact: Harbor is staging",
    ]
    assert shell("slash", "/pin", "harbor") == ("Pinned: [id:1] fact: Harbor is staging\n`kept undo` undoes it.\n")
    assert shell.json("slash", "/memory status")["data"]["pinned"] == 1


def test_without_a_line_all_commands_are_listed(shell: Shell) -> None:
    assert shell("slash").splitlines()[0].split() == ["/remember", "TEXT", "Store", "one", "statement."]
    assert shell("slash") == shell("slash", "/memory", "help")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("/rember x", "Unknown command /rember. Did you mean /remember? /memory help lists them all."),
        ("remember x", "'remember' is not a command: commands begin with a slash. /memory help lists them."),
        ("/forget 7", "There is no memory 7."),
    ],
)
def test_a_wrong_line_gets_a_clear_answer_and_an_exit_code(shell: Shell, line: str, says: str) -> None:
    """C21."""
    assert shell.fails("slash", line).startswith(says)


def test_in_a_terminal_you_are_asked_which_one(shell: Shell) -> None:
    """C21: by keyword, several match: somebody is asked; elsewhere they are listed."""
    shell("slash", "/remember The staging cluster is called Harbor")
    shell("slash", "/remember The production cluster is called Anchor")
    person = Person(shell, ["none", "id:1"])
    assert "Nothing was changed." in person.type("slash", "/forget cluster")
    assert "Forgotten: [id:1]" in person.type("slash", "/forget cluster")
    assert person.asked[0] == ("2 memories match. Which one do you mean?", ["none", "id:2", "id:1"])
    shell("undo")
    result = shell.type("slash", "--json", "/forget cluster")
    assert result.exit_code == 1, "nothing was forgotten"
    listed = json.loads(result.stdout)
    assert not listed["done"]
    assert [match["ref"] for match in listed["data"]["matches"]] == ["2", "1"]


def test_global_memory_is_only_changed_with_a_yes(shell: Shell) -> None:
    shell("remember", "Prefers short answers", "--kind", "preference", "--global", "--yes")
    assert "needs confirmation" in shell.fails("slash", "/forget short answers")
    assert "Forgotten: [g1]" in shell("slash", "/forget short answers", "--yes").replace("id:", "")


def test_the_budget_holds_for_this_project(shell: Shell) -> None:
    """C21, C17."""
    shell("slash", "/memory budget 900")
    assert shell.json("config", "show")["settings"]["briefing_max_tokens"] == 900
    assert shell.json("briefing")["budget"] == 900


def test_a_slash_command_that_found_no_single_memory_has_failed(shell: Shell) -> None:
    shell("remember", "Harbor is staging")
    shell("remember", "Harbor is green")
    result = shell.type("slash", "/pin", "harbor")
    assert result.exit_code == 1
    assert "2 memories match." in result.stdout
    assert shell.type("slash", "/pin", "zeppelin").exit_code == 1
    assert "Harbor" not in shell.type("slash", "/pin", "zeppelin").output
