"""Pydantic AI: an agent recalls and remembers with tools, and what was said is kept."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="needs Pydantic AI: `make test-adapters ADAPTERS=pydantic_ai`")
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import kept
from kept.adapters.pydantic_ai import INSTRUCTIONS, NOTHING, KeptMemory
from tests.adapters.asynchronous import at_once, cancel_when, slow_down, ticks_during
from tests.adapters.page import run_page

DECIDED = "We decided to use Postgres 17 for the billing service, because MySQL lacks row level security."


def scripted(tool: str, **given: str) -> FunctionModel:
    """A model that calls that tool and says what it returned."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        last = messages[-1].parts[-1]
        assert info.instructions == INSTRUCTIONS
        if last.part_kind == "tool-return":
            return ModelResponse(parts=[TextPart(f"It says: {last.content}")])
        return ModelResponse(parts=[ToolCallPart(tool, given)])

    return FunctionModel(answer)


def test_the_model_recalls_with_a_tool() -> None:
    memory = kept.open(":memory:")
    memory.remember("Staging runs on port 8443")
    agent = Agent(scripted("recall", query="staging port"), capabilities=[KeptMemory(memory)])
    assert "8443" in asyncio.run(agent.run("Where is staging?")).output


def test_the_model_remembers_with_a_tool_and_is_told_what_is_refused() -> None:
    memory = kept.open(":memory:")
    agent = Agent(scripted("remember", fact="Staging runs on port 8443"), capabilities=[KeptMemory(memory)])
    asyncio.run(agent.run("Staging runs on port 8443, remember that"))
    assert "8443" in memory.recall("staging").hits[0].memory.content
    capability = KeptMemory(memory)
    assert "Not stored." in asyncio.run(capability.remember("  "))
    assert asyncio.run(capability.recall("zebra")) == NOTHING


def test_what_was_decided_is_kept_when_the_session_ends() -> None:
    memory = kept.open(":memory:")
    agent = Agent(scripted("recall", query="database"), capabilities=[KeptMemory(memory)])
    asyncio.run(agent.run([DECIDED, "Noted?"], conversation_id="one"))
    session = memory.session("one")
    assert [message.role for message in session.messages()] == ["user", "tool_call", "tool_result", "assistant"]
    session.finish()
    assert any("Postgres 17" in hit.memory.content for hit in memory.recall("billing database").hits)


def run(memory: KeptMemory, words: str) -> Any:
    agent = Agent(scripted("recall", query="hello"), capabilities=[memory])
    return lambda: agent.run(words, conversation_id="one")


def said(memory: KeptMemory) -> set[str]:
    return {message.content for message in memory.memory.session("one").messages() if message.role == "user"}


def test_the_loop_goes_on_while_a_slow_storage_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    capability = KeptMemory(kept.open(":memory:"))
    slow_down(monkeypatch)
    assert ticks_during(run(capability, "hello")) > 10


def test_a_cancelled_run_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    capability = KeptMemory(location=tmp_path / "memory.db")
    cancel_when(slow_down(monkeypatch), run(capability, "hello"))
    assert said(capability) == {"hello"}


def test_fifty_at_once_are_all_there(tmp_path: Path) -> None:
    capability = KeptMemory(location=tmp_path / "memory.db")
    at_once([run(capability, f"message {n}") for n in range(50)])
    assert said(capability) == {f"message {n}" for n in range(50)}


AGENT = """
import sys
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from kept.adapters.pydantic_ai import KeptMemory

where, tool, words = sys.argv[1:]

def answer(messages, info):
    last = messages[-1].parts[-1]
    if last.part_kind == "tool-return":
        return ModelResponse(parts=[TextPart(f"It says: {last.content}")])
    return ModelResponse(parts=[ToolCallPart(tool, {"fact" if tool == "remember" else "query": words})])

print(Agent(FunctionModel(answer), capabilities=[KeptMemory(location=where)]).run_sync(words).output)
"""


def test_an_agent_remembers_what_was_said_in_another_process(tmp_path: Path) -> None:
    def say(tool: str, words: str) -> str:
        command = [sys.executable, "-W", "ignore", "-c", AGENT, str(tmp_path / "memory.db"), tool, words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "[id:" in say("remember", "The deploy day of the app is Tuesday")
    assert "Tuesday" in say("recall", "deploy day")


def test_its_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page("pydantic_ai", tmp_path, monkeypatch)
