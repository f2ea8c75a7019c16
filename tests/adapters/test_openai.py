"""A session of the OpenAI Agents SDK: its items come back as they were, and the conversation leaves memories behind."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("agents", reason="needs the OpenAI Agents SDK: `make test-adapters ADAPTERS=openai`")
from agents.memory import Session

import kept
from agents import SQLiteSession
from kept.adapters.openai import KeptSession
from tests.adapters.asynchronous import at_once, cancel_when, slow_down, ticks_during
from tests.adapters.model_requests import request_for
from tests.adapters.page import run_page

ITEMS: list[Any] = [
    {"role": "user", "content": "We use Postgres 17."},
    {"role": "user", "content": [{"type": "input_text", "text": "And this?"}]},
    {"role": "system", "content": "Be brief."},
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Noted.", "annotations": []}],
    },
    {"type": "function_call", "call_id": "c1", "name": "run", "arguments": '{"command": "ls"}'},
    {"type": "function_call", "call_id": "c2", "name": "run", "arguments": "not json"},
    {"type": "function_call_output", "call_id": "c1", "output": "README.md"},
    {"type": "reasoning", "id": "r1", "summary": []},
]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(st.sampled_from(ITEMS), max_size=3)),
        st.tuples(st.just("get"), st.none() | st.integers(0, 4)),
        st.tuples(st.just("pop")),
        st.tuples(st.just("clear")),
    ),
    max_size=12,
)


@settings(deadline=None, max_examples=40)
@given(STEPS)
def test_it_means_what_the_session_of_the_sdk_means(steps: list[tuple[Any, ...]]) -> None:
    with kept.open(":memory:") as memory:
        asyncio.run(_compare(KeptSession("one", memory), SQLiteSession("one"), steps))


async def _compare(ours: Any, theirs: Any, steps: list[tuple[Any, ...]]) -> None:
    for step in steps:
        assert await _done(ours, step) == await _done(theirs, step)


async def _done(session: Any, step: tuple[Any, ...]) -> Any:
    match step:
        case ("add", items):
            return await session.add_items(items)
        case ("get", limit):
            return await session.get_items(limit)
        case ("pop",):
            return await session.pop_item()
        case _:
            return await session.clear_session()


def test_it_is_a_session_and_two_of_them_do_not_see_each_other() -> None:
    memory = kept.open(":memory:")
    one, two = KeptSession("one", memory), KeptSession("two", memory)
    assert isinstance(one, Session)
    asyncio.run(one.add_items(ITEMS[:1]))
    assert asyncio.run(two.get_items()) == []


def test_what_was_decided_is_kept_when_the_session_ends() -> None:
    with kept.open(":memory:") as memory:
        session = KeptSession("one", memory)
        decided = "We decided to use Postgres 17 for the billing service, because MySQL lacks row level security."
        asyncio.run(session.add_items([{"role": "user", "content": decided}]))
        memory.session("one").finish()
        assert any("Postgres 17" in hit.memory.content for hit in memory.recall("billing database").hits)


def add(session: KeptSession, words: str = "hello") -> Any:
    return lambda: session.add_items([{"role": "user", "content": words}])


def test_the_loop_goes_on_while_a_slow_storage_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    session = KeptSession("one", kept.open(":memory:"))
    asyncio.run(session.add_items(ITEMS[:1]))
    slow_down(monkeypatch)
    assert ticks_during(session.pop_item) > 10


def test_a_cancelled_clear_is_finished(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    session = KeptSession("one", location=tmp_path / "memory.db")
    asyncio.run(session.add_items(ITEMS[:3]))
    cancel_when(slow_down(monkeypatch), session.clear_session)
    assert asyncio.run(session.get_items()) == []


def test_fifty_at_once_are_all_there(tmp_path: Path) -> None:
    session = KeptSession("one", location=tmp_path / "memory.db")
    at_once([add(session, f"message {n}") for n in range(50)])
    found = {item["content"] for item in asyncio.run(session.get_items())}
    assert found == {f"message {n}" for n in range(50)}


AGENT = """
import asyncio, sys
from agents import Agent, ModelResponse, Runner, RunConfig, Usage
from agents.models.interface import Model
from openai.types.responses import ResponseOutputMessage, ResponseOutputText
from kept.adapters.openai import KeptSession

class Scripted(Model):
    async def get_response(self, system_instructions, input, *args, **kwargs):
        seen = [item.get("content") for item in input if item.get("role") == "user"]
        text = ResponseOutputText(text=f"You said: {seen}", type="output_text", annotations=[])
        message = ResponseOutputMessage(
            id="m", content=[text], role="assistant", status="completed", type="message"
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError

agent = Agent(name="scripted", model=Scripted())
session = KeptSession("one", location=sys.argv[1])
run = Runner.run(agent, sys.argv[2], session=session, run_config=RunConfig(tracing_disabled=True))
print(asyncio.run(run).final_output)
"""


def test_an_agent_remembers_what_was_said_in_another_process(tmp_path: Path) -> None:
    def say(words: str) -> str:
        command = [sys.executable, "-c", AGENT, str(tmp_path / "memory.db"), words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "deploy day is Tuesday" in say("The deploy day is Tuesday")
    assert "deploy day is Tuesday" in say("When do we deploy?")


def test_its_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page("openai", tmp_path, monkeypatch)


def test_a_request_for_chat_completions_has_the_types_of_the_sdk() -> None:
    chat = pytest.importorskip("openai.types.chat")
    pydantic = pytest.importorskip("pydantic")
    request = request_for("openai")
    assert list(request) == ["messages"]
    checked = pydantic.TypeAdapter(list[chat.ChatCompletionMessageParam]).validate_python(request["messages"])
    assert len(checked) == len(request["messages"])
    for message in checked:
        for call in message.get("tool_calls", ()):  # the iterables of the SDK's types are checked as they are read
            assert call["function"]["name"]
