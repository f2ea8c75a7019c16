"""`kept judge`: a person decides with single keys or options, or lets a program decide after seeing the price."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

import kept
from kept.entrypoints.cli.frame import root
from kept.entrypoints.cli.invocation import Invocation, keys_of
from tests.cli.shell import Shell

SAID = [
    "Let's write the export of invoices. Amounts are integers in cents, the ledger refuses floats.",
    "For the file names we should take the customer number, not the name.",
    "Retries are limited to 3 attempts, the carrier bans us otherwise.",
]


@pytest.fixture
def talked(shell: Shell) -> Shell:
    """A project with a finished session whose findings wait."""
    with kept.open(home=shell.home, clock=shell.clock, settings=kept.Settings()) as memory:
        session = memory.session("s1", agent="claude-code")
        for said in SAID:
            session.append("user", said)
        session.finish()
    return shell


def numbers(shell: Shell) -> dict[str, int]:
    return {one["text"]: one["n"] for one in shell.json("judge", "--list")["statements"]}


def number_of(shell: Shell, part: str) -> int:
    return next(n for said, n in numbers(shell).items() if part in said)


def statuses(shell: Shell) -> dict[str, str]:
    found = shell.json("list", "--limit", "50")["memories"]
    return {one["content"]: one["status"] for one in found if one["kind"] != "summary"}


def test_the_list_has_numbers_and_changes_nothing(talked: Shell) -> None:
    said = talked("judge", "--list")
    assert said.startswith("Findings of session s1, list ")
    assert "3 attempts" in said
    assert talked("judge", "--list") == said


def test_without_a_list_it_says_so(shell: Shell) -> None:
    shell("remember", "Deploys go out on Tuesdays")
    assert shell("judge") == "No session waits for a judge.\n"


def test_options_settle_a_list_and_undo_takes_it_back(talked: Shell) -> None:
    keep, drop = number_of(talked, "3 attempts"), number_of(talked, "customer number")
    said = talked("judge", "--keep", str(keep), "--drop", str(drop))
    assert said.startswith("1 kept, 1 dropped")
    after = statuses(talked)
    assert next(status for text, status in after.items() if "3 attempts" in text) == "confirmed"
    assert not any("customer number" in text for text in after)
    assert "judged 1 session, " in talked("status")
    talked("undo")
    assert any("customer number" in text for text in statuses(talked))


def test_a_statement_is_rewritten(talked: Shell) -> None:
    number = number_of(talked, "customer number")
    talked("judge", "--rewrite", f"{number}=Exported files are named by the customer number.")
    assert statuses(talked)["Exported files are named by the customer number."] == "confirmed"


def walk(shell: Shell, pick: Callable[[str, Sequence[str]], str], typed: str = "") -> str:
    invocation = Invocation(clock=shell.clock, picks=pick)
    result = CliRunner(env=shell.environment).invoke(root, ["judge"], obj=invocation, input=typed)
    assert result.exit_code == 0, result.output
    return result.output


def test_every_key_is_the_promised_one(talked: Shell) -> None:
    shown: list[Sequence[str]] = []

    def pick(question: str, options: Sequence[str]) -> str:
        shown.append(options)
        return "quit"

    assert "Nothing was changed." in walk(talked, pick)
    assert [*keys_of(shown[0])] == ["k", "d", "w", "e", "l", "u", "q", "?"]  # and space for l


def test_the_keys_are_explained_and_a_wrong_statement_is_refused_later(talked: Shell) -> None:
    first = talked.json("judge", "--list")["statements"][0]["text"]
    picks = ["help", "wrong", "quit"]
    said = walk(talked, lambda question, options: picks.pop(0))
    assert "it is false: dropped, and refused if it comes back" in said
    assert "1 dropped" in said
    assert first not in statuses(talked)
    assert "reject" in {event["action"] for event in talked.json("history", "--limit", "20")["events"]}


def test_a_person_decides_goes_back_and_edits(talked: Shell) -> None:
    last = len(numbers(talked))
    picks = ["drop", "undo", "keep", "edit", *["later"] * (last - 2)]
    said = walk(talked, lambda question, options: picks.pop(0), typed="Amounts are whole cents.\n")
    assert "1 kept, 1 rewritten" in said
    assert statuses(talked)["Amounts are whole cents."] == "confirmed"


# A program


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Path]:
    """Put a program named claude on the PATH that prints this, and notes what it was given."""

    def install(prints: str) -> Path:
        folder, heard = tmp_path / "programs", tmp_path / "heard.txt"
        folder.mkdir()
        file = folder / "claude"
        file.write_text(
            f"#!/bin/sh\n{{ echo \"$KEPT_HOOKS_SILENT $PWD $*\"; cat; }} > '{heard}'\ncat <<'END'\n{prints}\nEND\n"
        )
        file.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        return heard

    return install


def test_a_program_answers_once_with_silent_hooks(talked: Shell, program: Callable[[str], Path]) -> None:
    keep = number_of(talked, "3 attempts")
    heard = program(f"Here it is:\n{json.dumps({'keep': [keep]})}")
    assert "1 kept" in talked("judge", "--with", "claude", "--yes")
    first, _, prompt = heard.read_text().partition("\n")
    assert first.startswith("1 /"), "the hooks of Kept are silent"
    assert first.split()[1] != str(Path.cwd()), "it sees nothing of the project"
    assert "3 attempts" in prompt


def test_a_program_is_run_only_after_a_yes(talked: Shell, program: Callable[[str], Path]) -> None:
    heard = program('{"keep": [1]}')
    said = talked.fails("judge", "--with", "claude")
    assert "token" in said
    assert not heard.exists()


@pytest.mark.parametrize("prints", ["I cannot do that.", '{"keep": [99]}', "[1, 2]"])
def test_an_answer_that_makes_no_sense_changes_nothing(
    talked: Shell, program: Callable[[str], Path], prints: str
) -> None:
    program(prints)
    before = statuses(talked)
    talked.fails("judge", "--with", "claude", "--yes")
    assert statuses(talked) == before


def test_a_decision_about_nothing_is_an_error(shell: Shell) -> None:
    shell("remember", "Anything")
    assert "No session waits for a judge." in shell.fails("judge", "--keep", "1")
    assert shell("judge") == "No session waits for a judge.\n"
