"""Google ADK: what one run of an agent heard, the next one finds, and no other user does."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="needs Google ADK: `make test-adapters ADAPTERS=google_adk`")
from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai.types import Content, Part

import kept
from kept.adapters.google_adk import KeptMemoryService
from tests.adapters.asynchronous import at_once, cancel_when, slow_down, ticks_during
from tests.adapters.model_requests import request_for
from tests.adapters.page import run_page

WHO: dict[str, Any] = {"app_name": "app", "user_id": "ada"}


def content(words: str) -> Content:
    return Content(role="user", parts=[Part(text=words)])


def event(id: str, words: str) -> Event:
    return Event(id=id, author="user", content=content(words), timestamp=1_700_000_000)


def session(*events: Event, user: str = "ada") -> Session:
    return Session(id="one", app_name="app", user_id=user, events=list(events))


def found(service: KeptMemoryService, query: str, **who: str) -> list[MemoryEntry]:
    return asyncio.run(service.search_memory(**(WHO | who), query=query)).memories


def test_a_session_is_found_once_however_often_it_is_added() -> None:
    service = KeptMemoryService(kept.open(":memory:"))
    first, second = event("e1", "Deploys go out on Tuesdays"), event("e2", "Deploys need a signed tag")
    empty = Event(id="e3", author="user")
    asyncio.run(service.add_session_to_memory(session(first, empty)))
    asyncio.run(service.add_session_to_memory(session(first, second, empty)))
    asyncio.run(service.add_events_to_memory(**WHO, events=[second], custom_metadata={"from": "test"}))
    entries = found(service, "deploys")
    assert sorted(one.id or "" for one in entries) == ["e1", "e2"]
    assert entries[0].author == "user"
    assert (entries[0].timestamp or "").startswith("2023-11-14T22:13:20")


@pytest.mark.parametrize("other", [{"user_id": "grace"}, {"app_name": "another"}, {"user_id": "ad"}])
def test_nobody_else_finds_it(other: dict[str, str]) -> None:
    service = KeptMemoryService(kept.open(":memory:"))
    asyncio.run(service.add_session_to_memory(session(event("e1", "My salary is 70,000 euros"))))
    assert found(service, "salary")
    assert found(service, "salary", **other) == []


def test_users_with_ids_that_are_redacted_find_their_own() -> None:
    service = KeptMemoryService(kept.open(":memory:"))
    anna, ben = ("auth0|5f7c8ec7c33c6c004bbafe82", "ben@example.org")
    for user, word in ((anna, "heron"), (ben, "stork")):
        asyncio.run(service.add_session_to_memory(session(event("e1", f"The code word is {word}"), user=user)))
    assert [one.content.parts[0].text for one in found(service, "code word", user_id=anna)] == [
        "The code word is heron"
    ]
    assert [one.content.parts[0].text for one in found(service, "code word", user_id=ben)] == ["The code word is stork"]


def test_names_with_slashes_are_not_mixed_up() -> None:
    service = KeptMemoryService(kept.open(":memory:"))
    entry = MemoryEntry(id="x", content=content("The code word is heron"))
    asyncio.run(service.add_memory(app_name="a/b", user_id="c", memories=[entry]))
    assert found(service, "heron", app_name="a", user_id="b/c") == []
    assert found(service, "heron", app_name="a/b", user_id="c") == [entry]


def test_what_was_deleted_does_not_come_back_with_its_session() -> None:
    service = KeptMemoryService(kept.open(":memory:"))
    said = session(event("e1", "Deploys go out on Tuesdays"))
    asyncio.run(service.add_session_to_memory(said))
    asyncio.run(service.delete_memory(**WHO, memory_id="e1"))
    asyncio.run(service.add_session_to_memory(said))
    assert found(service, "deploys") == []
    with pytest.raises(ValueError, match="which memory"):
        asyncio.run(service.delete_memory(**WHO))


def test_an_entry_comes_back_as_it_was_and_other_agents_recall_it() -> None:
    memory = kept.open(":memory:")
    service = KeptMemoryService(memory)
    entry = MemoryEntry(content=content("Staging runs on port 8443"), author="ops", custom_metadata={"a": 1})
    asyncio.run(service.add_memory(**WHO, memories=[entry], custom_metadata={"b": 2}))
    (one,) = found(service, "staging port")
    assert (one.content, one.author, one.custom_metadata) == (entry.content, "ops", {"a": 1, "b": 2})
    assert "8443" in memory.recall("staging port").hits[0].memory.content


def add(service: KeptMemoryService, n: int) -> Any:
    return lambda: service.add_events_to_memory(**WHO, events=[event(f"e{n}", f"Number {n} is heron{n}")])


def test_the_loop_goes_on_while_a_slow_storage_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    service = KeptMemoryService(kept.open(":memory:"))
    slow_down(monkeypatch)
    assert ticks_during(add(service, 1)) > 10


def test_a_cancelled_write_is_finished(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    service = KeptMemoryService(location=tmp_path / "memory.db")
    cancel_when(slow_down(monkeypatch), add(service, 1))
    assert len(found(service, "heron1")) == 1


def test_fifty_at_once_are_all_there(tmp_path: Path) -> None:
    service = KeptMemoryService(location=tmp_path / "memory.db")
    at_once([add(service, n) for n in range(50)])
    assert all(any(one.id == f"e{n}" for one in found(service, f"heron{n}")) for n in range(50))


AGENT = """
import asyncio, sys, uuid
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import load_memory
from google.genai.types import Content, FunctionCall, Part
from kept.adapters.google_adk import KeptMemoryService

class Scripted(BaseLlm):
    async def generate_content_async(self, request, stream=False):
        last = request.contents[-1].parts[-1]
        if last.function_response is not None:
            part = Part(text=f"I know: {last.function_response.response}")
        else:
            part = Part(function_call=FunctionCall(name="load_memory", args={"query": last.text}))
        yield LlmResponse(content=Content(role="model", parts=[part]))

async def main(where, words):
    sessions, service = InMemorySessionService(), KeptMemoryService(location=where)
    agent = LlmAgent(name="scripted", model=Scripted(model="scripted"), tools=[load_memory])
    runner = Runner(agent=agent, app_name="app", session_service=sessions, memory_service=service)
    session = await sessions.create_session(app_name="app", user_id="ada")
    said = Content(role="user", parts=[Part(text=words)])
    async for event in runner.run_async(user_id="ada", session_id=session.id, new_message=said):
        for part in event.content.parts if event.content else ():
            if part.text:
                print(part.text)
    whole = await sessions.get_session(app_name="app", user_id="ada", session_id=session.id)
    await service.add_session_to_memory(whole)

asyncio.run(main(*sys.argv[1:]))
"""


def test_an_agent_remembers_what_was_said_in_another_process(tmp_path: Path) -> None:
    def say(words: str) -> str:
        command = [sys.executable, "-W", "ignore", "-c", AGENT, str(tmp_path / "memory.db"), words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "Tuesday" not in say("The deploy day of the app is Tuesday")
    assert "Tuesday" in say("When is the deploy day?")


def test_its_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page("google_adk", tmp_path, monkeypatch)


def test_a_request_for_gemini_has_the_types_of_the_sdk() -> None:
    types = pytest.importorskip("google.genai.types")
    request = request_for("gemini")
    contents = [types.Content.model_validate(one) for one in request["contents"]]
    config = types.GenerateContentConfig.model_validate(request["config"])
    assert "The tests need the database" in str(config.system_instruction)
    calls = [part.function_call.name for one in contents for part in one.parts or () if part.function_call]
    answers = [part.function_response.name for one in contents for part in one.parts or () if part.function_response]
    assert calls == answers == ["run_tests", "read", "never_answered"]
