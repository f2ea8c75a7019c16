"""`kept find`: the search for people. And the marks, colours and pages of a terminal."""

import io
import json
from typing import Any

import pytest

import kept
from kept.entrypoints.cli import invocation as terminal
from kept.entrypoints.cli.invocation import Bad, Invocation, Marked
from kept.entrypoints.cli.wording import marked_parts, matched_parts
from tests.cli.shell import Shell


@pytest.fixture
def three(shell: Shell) -> Shell:
    shell("remember", "The session timeout is 30 minutes", "--kind", "decision", "--file", "src/db/pool.py")
    shell.clock.advance(days=3)
    shell("remember", "Timeouts of the pool are retried twice", "--tag", "net")
    shell.clock.advance(days=3)
    shell("remember", "Log every timeout of a session", "--kind", "convention")
    return shell


def refs(shell: Shell, *arguments: str) -> list[str]:
    return [one["ref"] for one in shell.json("find", *arguments)["memories"]]


def test_every_memory_that_contains_the_words_is_found_newest_first(three: Shell) -> None:
    assert refs(three, "timeout") == ["3", "2", "1"], "also inside other words"
    assert refs(three, "TIMEOUT", "session") == ["3", "1"], "all of the words"
    assert refs(three, "session timeout") == ["1"], "a phrase, whose quotes the shell has taken away"
    assert refs(three, '"session timeout" minutes') == ["1"]
    assert refs(three, "pool") == ["2", "1"], "also in files"
    assert refs(three, "imeou") == ["3", "2", "1"]


def test_filters_narrow_a_search(three: Shell) -> None:
    assert refs(three, "timeout", "--kind", "decision") == ["1"]
    assert refs(three, "timeout", "--tag", "NET") == ["2"]
    assert refs(three, "timeout", "--since", "2026-03-03") == ["3", "2"]
    assert refs(three, "timeout", "--until", "2026-03-03") == ["1"]
    for file in ("src/db/pool.py", "pool.py", "src/db", "src/"):
        assert refs(three, "timeout", "--file", file) == ["1"], file
    assert refs(three, "timeout", "--file", "ool.py") == []


def test_a_search_says_where_it_stopped_and_why_it_found_nothing(three: Shell) -> None:
    assert three("find", "timeout", "--limit", "2").splitlines()[-1] == (
        "The newest 2 memories. Without --limit all are shown."
    )
    assert three.json("find", "timeout", "--limit", "2")["has_more"] is True
    assert "`kept recall pelican` also finds other forms of the words." in three("find", "pelican")
    assert three("find", "timeout", "--kind", "decison").endswith("Did you mean --kind decision?\n")
    assert "Give at least one word to find." in three.fails("find", code=2)
    three("review", "--apply", "archive:2", "--yes")
    assert "1 archived memory contains the words. `kept find twice --status archived` shows it." in three(
        "find", "twice"
    )
    assert refs(three, "twice", "--status", "archived") == ["2"]


def test_a_forgotten_memory_is_not_found(three: Shell) -> None:
    three("forget", "1")
    assert refs(three, "minutes") == []
    told = three("find", "minutes")
    assert "30 minutes" not in told
    assert "1 forgotten memory contains the words. `kept find minutes --status forgotten` shows it." in told
    three("forget", "2", "3")
    told = three("find", "timeout", "--since", "2020-01-01")
    assert "3 forgotten memories contain the words. `kept find timeout --status forgotten` shows them." in told


def test_the_same_search_is_a_verb_at_the_other_doors() -> None:
    with kept.open(":memory:") as memory:
        memory.remember("The session timeout is 30 minutes")
        memory.remember("Use Fastify")
        assert [one.ref for one in memory.find("TIME")] == ["1"]
        with pytest.raises(kept.InvalidInput, match="no words"):
            memory.find("  ")


def test_hits_stand_apart(three: Shell) -> None:
    assert three("find", "timeout").count("\n\n") == 2
    assert "\n\n[id:" in three("recall", "timeout", "session")


# Terminals


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def shown(*lines: Any, **environment: str) -> str:
    screen = Terminal()
    Invocation(err=screen).tell(*lines)
    return screen.getvalue()


def test_the_words_that_were_searched_for_are_marked() -> None:
    parts = marked_parts("The Session timeout", ["session", "time"])
    assert parts == ("The ", "Session", " ", "time", "out")
    assert [part for part in parts if isinstance(part, Marked)] == ["Session", "time"]
    found = matched_parts("Deploys run when a deploy is due", {"deploy"})
    assert [part for part in found if isinstance(part, Marked)] == ["Deploys", "deploy"]


def test_errors_and_notes_have_colours_in_a_terminal_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert shown((Bad("No."), " Why.")) == "\x1b[31mNo.\x1b[0m Why.\n"
    assert shown("Note: it is late.") == "\x1b[33mNote: \x1b[0mit is late.\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert shown((Bad("No."), " Why.")) == "No. Why.\n"
    monkeypatch.delenv("NO_COLOR")
    plain = io.StringIO()
    Invocation(err=plain).tell((Bad("No."), " Why."))
    assert plain.getvalue() == "No. Why.\n"


def test_a_text_that_people_copy_is_neither_broken_nor_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    screen = Terminal()
    line = "a long line that is wider than the terminal"
    Invocation(out=screen).answer({}, [line], as_is=True)
    assert screen.getvalue() == f"{line}\n"
    screen = Terminal()
    Invocation(out=screen).answer({}, [line])
    assert screen.getvalue().count("\n") > 1


def test_long_output_is_paged_only_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    paged: list[str] = []
    monkeypatch.setattr("click.echo_via_pager", paged.append)
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setattr(terminal, "can_page", lambda: True)
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    Invocation().answer({}, ["short"])
    Invocation().answer({}, [str(number) for number in range(30)])
    Invocation(as_json=True).answer({"numbers": list(range(30))}, ())
    assert [page.count("\n") for page in paged] == [30]
    assert json.loads(screen.getvalue().removeprefix("short\n"))["numbers"][-1] == 29
