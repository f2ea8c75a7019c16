"""Microsoft Agent Framework: the model is told what fits, and what was said is kept."""

import asyncio
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("agent_framework", reason="needs Agent Framework: `make test-adapters ADAPTERS=agent_framework`")
from agent_framework import AgentSession, Content, Message, SessionContext

import kept
from kept.adapters.agent_framework import KeptProvider
from tests.adapters.asynchronous import at_once, cancel_when, slow_down, ticks_during
from tests.adapters.page import run_page

DECIDED = "We decided to use Postgres 17 for the billing service, because MySQL lacks row level security."


def run(provider: KeptProvider, name: str, words: str, *answers: Message) -> Any:
    """What the framework calls after a run with these messages."""
    context = SessionContext(input_messages=[Message(role="user", contents=[words])])
    context._response = SimpleNamespace(messages=list(answers))  # type: ignore[assignment]
    session = AgentSession(session_id=name)
    return lambda: provider.after_run(agent=None, session=session, context=context, state={})


def test_what_fits_is_told_as_a_message_and_not_as_an_instruction() -> None:
    memory = kept.open(":memory:")
    memory.remember("Staging runs on port 8443")
    context = SessionContext(input_messages=[Message(role="user", contents=["Which port has staging?"])])
    provider = KeptProvider(memory)
    asyncio.run(provider.before_run(agent=None, session=AgentSession(), context=context, state={}))
    assert "8443" in context.get_messages()[0].text
    assert context.instructions == []


def test_nothing_is_told_where_nothing_fits() -> None:
    context = SessionContext(input_messages=[Message(role="user", contents=["Which port has staging?"])])
    provider = KeptProvider(kept.open(":memory:"))
    asyncio.run(provider.before_run(agent=None, session=AgentSession(), context=context, state={}))
    assert context.get_messages() == []


def test_what_was_decided_is_kept_when_the_session_ends() -> None:
    memory = kept.open(":memory:")
    call = Message(role="assistant", contents=[Content.from_function_call("c1", "run", arguments='{"command": "ls"}')])
    result = Message(role="tool", contents=[Content.from_function_result("c1", result="README.md")])
    answer = Message(role="assistant", contents=["Noted."])
    asyncio.run(run(KeptProvider(memory), "one", DECIDED, call, result, answer)())
    session = memory.session("one")
    assert [message.role for message in session.messages()] == ["user", "tool_call", "tool_result", "assistant"]
    assert session.messages()[1].input == {"command": "ls"}
    session.finish()
    assert any("Postgres 17" in hit.memory.content for hit in memory.recall("billing database").hits)


def test_the_loop_goes_on_while_a_slow_storage_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_down(monkeypatch)
    assert ticks_during(run(KeptProvider(kept.open(":memory:")), "one", "hello")) > 10


def test_a_cancelled_run_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    provider = KeptProvider(location=tmp_path / "memory.db")
    cancel_when(slow_down(monkeypatch), run(provider, "one", "hello"))
    assert [message.content for message in provider.memory.session("one").messages()] == ["hello"]


def test_fifty_at_once_are_all_there(tmp_path: Path) -> None:
    provider = KeptProvider(location=tmp_path / "memory.db")
    at_once([run(provider, "one", f"message {n}") for n in range(50)])
    said = {message.content for message in provider.memory.session("one").messages()}
    assert said == {f"message {n}" for n in range(50)}


AGENT = """
import asyncio, sys
from agent_framework import Agent, BaseChatClient, ChatResponse, Message
from kept.adapters.agent_framework import KeptProvider

class Scripted(BaseChatClient):
    def _inner_get_response(self, *, messages, stream, options, **kwargs):
        async def answer():
            seen = [message.text for message in messages]
            return ChatResponse(messages=[Message(role="assistant", contents=[f"I was told: {seen}"])])
        return answer()

async def main(where, words):
    provider = KeptProvider(location=where)
    agent = Agent(Scripted(), context_providers=[provider])
    session = agent.create_session()
    print((await agent.run(words, session=session)).text)
    provider.memory.session(session.session_id).finish()

asyncio.run(main(*sys.argv[1:]))
"""


def test_an_agent_remembers_what_was_said_in_another_process(tmp_path: Path) -> None:
    def say(words: str) -> str:
        command = [sys.executable, "-W", "ignore", "-c", AGENT, str(tmp_path / "memory.db"), words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    say(DECIDED)
    assert "Postgres 17" in say("Which database has the billing service?")


def test_its_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page("agent_framework", tmp_path, monkeypatch)
