"""The laundering sequence: a forgotten statement is brought back by every way in, and told by none.

The ways are real: files that are imported, a transcript, the MCP server as a process, an export from another store.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

import kept
from kept.memory.deliver import Listener
from kept.model import Origin
from tests.mcp.conversation import SOURCE, connected, said, server

SAID = "Deploys of the shop go out on Fridays at noon."
PARAPHRASE = "On Fridays at noon, deploys of the shop always go out"
NEIGHBOUR = "Deploys of the warehouse go out on Mondays."
OTHER_VALUE = "Deploys of the shop go out on Thursdays at noon."
ASKED = "When do deploys of the shop go out?"
SETTINGS = kept.Settings(auto_upkeep=False, recall_deadline_ms=60_000)


class Shop:
    """A project, its person, and the doors by which text comes in and is told."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.project = folder, folder / "project"
        self.project.mkdir()

    def open(self, origin: Origin = "user", name: str = "Ana") -> kept.Kept:
        return kept.open(
            project=self.project,
            home=self.folder / "home",
            actor=kept.Actor(name=name),
            origin=origin,
            settings=SETTINGS,
        )

    def kept(self, *arguments: str) -> str:
        """Run the command line as a person does."""
        environment = {"KEPT_HOME": str(self.folder / "home"), "HOME": str(self.folder), "PYTHONPATH": str(SOURCE)}
        environment["PATH"] = os.environ["PATH"]
        command = [sys.executable, "-m", "kept", *arguments]
        done = subprocess.run(command, cwd=self.project, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def told(self) -> str:
        """All that an agent is told: at a start, at a prompt, by recall and by the MCP tools."""
        with self.open("agent", "codex") as agent:
            prompt = agent.deliveries.for_prompt(ASKED, Listener(session=os.urandom(4).hex(), event="prompt"))
            start = agent.deliveries.at_start(Listener(session=os.urandom(4).hex(), event="start"))
            recalled = [hit.content for hit in agent.recall("deploys shop Fridays noon", limit=50)]
            briefing = str(agent.briefing()) + str(agent.briefing(ASKED))
        query = ("memory_query", {"query": "deploys shop Fridays noon", "limit": 20})
        tools = self.ask_tools(query, ("memory_briefing", {"prompt": ASKED}))
        return "\n".join([prompt, str(start), briefing, *recalled, *tools])

    def ask_tools(self, *calls: tuple[str, dict[str, Any]]) -> list[str]:
        """Start `kept mcp`, call tools, and return their answers."""
        answers = []

        async def run() -> None:
            async with connected(server(self.folder)) as client:
                for name, arguments in calls:
                    answers.append(said(await client.call_tool(name, arguments)))

        anyio.run(run)
        return answers

    def store(self, content: str, *, times: int = 1) -> str:
        """Let an agent store it with memory_store; return the last answer."""
        return self.ask_tools(*[("memory_store", {"content": content})] * times)[-1]

    def live(self) -> list[str]:
        """Return the statements that count as true here."""
        with self.open() as memory:
            return [one.content for one in memory.list(limit=500) if one.status != "candidate"]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path)
    with made.open() as memory:
        memory.remember(NEIGHBOUR)
        ref = memory.remember(SAID).ref
        assert ref is not None
        session = memory.session("first", agent="claude")
        session.append("user", f"Remember: {SAID}")
        session.append("assistant", "Noted.")
        session.finish()
        memory.store.export_to(tmp_path / "before.jsonl")
        memory.files.sync()
    assert "Fridays" in made.told()
    made.kept("forget", ref)
    return made


def from_another_file(shop: Shop) -> None:
    rules = shop.project / "AGENTS.md"
    rules.write_text(f"# Rules\n\n- {SAID}\n- Tags of the warehouse are signed.\n")
    assert "forgotten or rejected here before" in shop.kept("import", "agents-md", str(rules), "--yes")


def from_a_transcript(shop: Shop) -> None:
    with shop.open("agent", "codex") as memory:
        for name in ("second", "third"):  # what two sessions say is confirmed
            session = memory.session(name, agent="codex")
            session.append("user", "When do we deploy?")
            session.append("assistant", f"The root cause is the calendar: {SAID}")
            session.append("user", f"Right. {SAID}")
            session.finish()


def from_memory_store(shop: Shop) -> None:
    assert "forgotten on" in shop.store(SAID, times=2)


def from_a_merge(shop: Shop) -> None:
    with shop.open() as memory:
        memory.store.merge(shop.folder / "before.jsonl")


def from_a_paraphrase(shop: Shop) -> None:
    assert "forgotten on" in shop.store(PARAPHRASE)


WAYS = (from_another_file, from_a_transcript, from_memory_store, from_a_merge, from_a_paraphrase)


def test_a_forgotten_statement_is_neither_live_nor_told_after_the_laundering_sequence(shop: Shop) -> None:
    assert "Fridays" not in shop.told()
    for way in WAYS:
        way(shop)
        assert not [one for one in shop.live() if "Fridays" in one], way.__name__
    with shop.open() as memory:
        memory.files.sync()
        memory.upkeep()
    told = shop.told()
    assert "Fridays" not in told
    assert NEIGHBOUR in told
    assert not [one for one in shop.live() if "Fridays" in one]
    views = [path for path in (shop.folder / "home").rglob("*.md") if path.is_file()]
    assert views
    assert not [path for path in views if "Fridays" in path.read_text()]
    with shop.open() as memory:
        assert [one.summary for one in memory.sessions() if "Fridays" in one.summary] == []
    # Another value is no paraphrase: it is stored as ever.
    stored = shop.store(OTHER_VALUE)
    assert "forgotten" not in stored
    assert "contradicts" not in stored  # nor is a rejected candidate named
    assert OTHER_VALUE in shop.told()

    assert "forgotten" not in shop.kept("remember", SAID)  # the words of the person
    assert SAID in shop.live()
    assert SAID in shop.told()
    shop.kept("undo", "--yes")
    assert SAID not in shop.told()
    assert "forgotten on" in shop.store(SAID)
