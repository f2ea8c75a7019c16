"""Answers about the past: the memory of a day, at every door."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

import kept
from kept.entrypoints.mcp.server import ServerOptions, build
from kept.errors import InvalidInput
from tests.builders import START, FakeClock
from tests.cli.shell import Shell
from tests.mcp.conversation import said
from tests.memory.test_freshness import Repository

THEN = "Deploys of the shop run on Tuesdays."
NOW = "Deploys of the shop run on Thursdays, no longer on Tuesdays."


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def shell(tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A project in which one statement has replaced another a week later."""
    (tmp_path / "app").mkdir()
    monkeypatch.chdir(tmp_path / "app")
    made = Shell(tmp_path, clock)
    made("remember", THEN)
    clock.advance(days=7)
    made("remember", NOW)
    clock.advance(days=7)
    return made


def test_a_statement_of_then_is_told_with_its_end_and_the_one_that_replaced_it(shell: Shell) -> None:
    asked = ("recall", "deploys", "shop")
    assert shell(*asked).startswith(f"[id:2] fact: {NOW}")
    then = shell(*asked, "--as-of", "2026-03-03")
    assert then.startswith(f"[id:1] fact, until 8 Mar (replaced by 2): {THEN}")
    assert "until 8 Mar (replaced by 2)" in shell(*asked, "--scope", "archive")
    assert THEN not in shell(*asked, "--as-of", "2026-02-27")  # nothing was known yet
    assert THEN in shell("briefing", "When do deploys of the shop run?", "--as-of", "2026-03-03")
    assert NOW in shell("briefing", "When do deploys of the shop run?", "--as-of", "2026-03-08")


def test_erased_text_stays_erased_in_the_past(shell: Shell) -> None:
    shell("erase", "1", "--yes")
    assert "Tuesdays." not in shell("recall", "deploys", "shop", "--as-of", "2026-03-03")
    assert "Tuesdays." not in shell("briefing", "deploys of the shop", "--as-of", "2026-03-03")


def test_a_question_about_the_past_is_not_noted(shell: Shell) -> None:
    before = shell("history")
    shell("recall", "deploys", "--as-of", "2026-03-03")
    assert shell("history") == before


def test_agents_ask_about_the_past_as_well(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "project").mkdir()
    with kept.open(project=tmp_path / "project", home=tmp_path / "home", clock=clock) as memory:
        memory.remember(THEN)
        clock.advance(days=7)
        memory.remember(NOW)
    answers = []

    async def ask(client: Client) -> None:
        about = {"query": "deploys shop", "as_of": "2026-03-03T00:00:00Z"}
        answers.append(said(await client.call_tool("memory_query", about)))
        about = {"prompt": "When do deploys of the shop run?", "as_of": "2026-03-03T00:00:00Z"}
        answers.append(said(await client.call_tool("memory_briefing", about)))

    _chat(tmp_path, ask)
    assert f"until 8 Mar (replaced by 2), 2026-03-01: {THEN}" in answers[0]
    assert THEN in answers[1]
    assert not [answer for answer in answers if NOW in answer]


def _chat(folder: Path, script: Callable[[Client], Awaitable[None]]) -> None:
    options = ServerOptions(home=str(folder / "home"), all_tools=True)

    async def run() -> None:
        async with Client(build(options, {"KEPT_PROJECT": str(folder / "project")})) as client:
            await script(client)

    anyio.run(run)


def test_the_code_of_today_says_nothing_about_an_answer_of_then(tmp_path: Path, clock: FakeClock) -> None:
    """A file that was deleted since was there when the memory was told."""
    repository = Repository(tmp_path / "shop", tmp_path / "home")
    repository.git("init", "-q", "-b", "main")
    repository.commit(src__hello_py="x = 1\n")
    with kept.open(project=repository.root, home=repository.home, clock=clock) as memory:
        memory.remember("The greeting in src/hello.py is translated before it is shown.")
        at = clock.advance(days=1)
        repository.commit(src__hello_py=None)
        clock.advance(days=1)
        asked: dict[str, Any] = {"prompt": "Where is the greeting translated and shown?"}
        assert "translated" not in str(memory.briefing(**asked))
        then = str(memory.briefing(**asked, as_of=at))
        assert "translated" in then
        assert "gone" not in then


def test_a_moment_to_come_is_now_and_the_past_has_no_links(clock: FakeClock, tmp_path: Path) -> None:
    with kept.open(tmp_path / "a.db", clock=clock) as memory:
        memory.remember(THEN)
        later = START.replace(year=2030)
        assert [hit.content for hit in memory.recall("deploys shop", as_of=later)] == [THEN]
        with pytest.raises(InvalidInput, match="as_of and follow"):
            memory.recall("deploys shop", as_of=later, follow=True)
