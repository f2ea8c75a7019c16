"""LangChain: a chat history that means what LangChain's means, and a retriever over the memories of the project."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("langchain_core", reason="needs LangChain: `make test-adapters ADAPTERS=langchain`")
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

import kept
from kept.adapters.langchain import KeptHistory, KeptRetriever
from tests.adapters.asynchronous import at_once, cancel_when, slow_down, ticks_during
from tests.adapters.page import run_page

MESSAGES: list[BaseMessage] = [
    HumanMessage("We use Postgres 17.", id="h1", name="ada"),
    HumanMessage([{"type": "text", "text": "And this?"}, {"type": "image_url", "image_url": {"url": "https://x.y/z"}}]),
    SystemMessage("Be brief."),
    AIMessage("Noted.", response_metadata={"model": "scripted"}),
    AIMessage("", tool_calls=[{"name": "run", "args": {"command": "ls"}, "id": "c1", "type": "tool_call"}]),
    ToolMessage("README.md", tool_call_id="c1", name="run", status="error"),
]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(st.sampled_from(MESSAGES), max_size=3)),
        st.tuples(st.just("clear")),
    ),
    max_size=8,
)


@pytest.mark.filterwarnings("ignore:The class `InMemoryChatMessageHistory` was deprecated")
@settings(deadline=None, max_examples=25)
@given(STEPS)
def test_it_means_what_the_history_of_langchain_means(steps: list[tuple[Any, ...]]) -> None:
    with kept.open(":memory:") as memory:
        ours, theirs = KeptHistory("one", memory), InMemoryChatMessageHistory()
        for step in steps:
            for history in (ours, theirs):
                history.add_messages(step[1]) if step[0] == "add" else history.clear()
            assert ours.messages == theirs.messages


def test_two_histories_do_not_see_each_other() -> None:
    memory = kept.open(":memory:")
    KeptHistory("one", memory).add_user_message("hello")
    assert KeptHistory("two", memory).messages == []


def test_what_was_decided_is_kept_when_the_session_ends() -> None:
    with kept.open(":memory:") as memory:
        decided = "We decided to use Postgres 17 for the billing service, because MySQL lacks row level security."
        KeptHistory("one", memory).add_user_message(decided)
        memory.session("one").finish()
        assert any("Postgres 17" in one.page_content for one in KeptRetriever(memory).invoke("billing database"))


def test_a_retriever_gives_the_best_with_what_is_known_of_them() -> None:
    with kept.open(":memory:") as memory:
        stored = memory.remember("Deploys go out on Tuesdays", tags=["ops"])
        memory.remember("Deploys of the app are signed with a key", tags=["app"])
        found = KeptRetriever(memory, having=("ops",)).invoke("deploys")
        assert [one.metadata["ref"] for one in found] == [stored.ref]
        assert found[0].metadata["tags"] == ["ops"]
        assert len(KeptRetriever(memory, k=1).invoke("deploys")) == 1
        again = asyncio.run(KeptRetriever(memory, having=("ops",)).ainvoke("deploys"))
        assert [one.id for one in again] == [one.id for one in found]


def test_the_loop_goes_on_while_a_slow_storage_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    history = KeptHistory("one", kept.open(":memory:"))
    history.add_messages(MESSAGES)
    slow_down(monkeypatch)
    assert ticks_during(history.aclear) > 10


def test_a_cancelled_clear_is_finished(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    history = KeptHistory("one", location=tmp_path / "memory.db")
    history.add_messages(MESSAGES)
    cancel_when(slow_down(monkeypatch), history.aclear)
    assert asyncio.run(history.aget_messages()) == []


def test_fifty_at_once_are_all_there(tmp_path: Path) -> None:
    history = KeptHistory("one", location=tmp_path / "memory.db")
    at_once([lambda n=n: history.aadd_messages([HumanMessage(f"message {n}")]) for n in range(50)])  # type: ignore[misc]
    assert {message.content for message in history.messages} == {f"message {n}" for n in range(50)}


AGENT = """
import sys
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from kept.adapters.langchain import KeptHistory, KeptRetriever

where, words = sys.argv[1:]
retriever = KeptRetriever(location=where)

def answer(messages):
    seen = [message.content for message in messages] + [one.page_content for one in retriever.invoke(words)]
    return GenericFakeChatModel(messages=iter([AIMessage(f"I know: {seen}")])).invoke(messages)

chain = RunnableWithMessageHistory(RunnableLambda(answer), lambda id: KeptHistory(id, location=where))
print(chain.invoke(words, config={"configurable": {"session_id": "one"}}).content)
retriever.memory.remember("The release manager is Grace")
"""


def test_an_agent_remembers_what_was_said_in_another_process(tmp_path: Path) -> None:
    def say(words: str) -> str:
        command = [sys.executable, "-W", "ignore", "-c", AGENT, str(tmp_path / "memory.db"), words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "deploy day is Tuesday" in say("The deploy day is Tuesday")
    second = say("Who is the release manager?")
    assert "deploy day is Tuesday" in second
    assert "Grace" in second


def test_its_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page("langchain", tmp_path, monkeypatch)
