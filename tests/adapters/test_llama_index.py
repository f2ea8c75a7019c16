"""LlamaIndex: what leaves the short-term memory is kept, and told again when it fits."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llama_index.core", reason="needs LlamaIndex: `make test-adapters ADAPTERS=llama_index`")
from llama_index.core.base.llms.types import ChatMessage, MessageRole

import kept
from kept.adapters.llama_index import KeptBlock
from tests.adapters.asynchronous import at_once, cancel_when, slow_down, ticks_during
from tests.adapters.page import run_page

DECIDED = "We decided to use Postgres 17 for the billing service, because MySQL lacks row level security."


def user(words: str) -> ChatMessage:
    return ChatMessage(role="user", content=words)


def test_what_fits_the_newest_question_is_told() -> None:
    memory = kept.open(":memory:")
    memory.remember("Staging runs on port 8443")
    memory.remember("Deploys go out on Tuesdays")
    block = KeptBlock(memory)
    told = asyncio.run(block.aget([user("When do deploys go out?"), user("Which port has staging?")]))
    assert "8443" in told
    assert "Tuesdays" not in told
    assert asyncio.run(block.aget([])) == ""


def test_messages_become_those_of_their_session() -> None:
    memory = kept.open(":memory:")
    call = ChatMessage(role=MessageRole.ASSISTANT, content=None)
    said = [
        user(DECIDED),
        ChatMessage(role="system", content="Be brief."),
        call,
        ChatMessage(role="tool", content="ok"),
    ]
    asyncio.run(KeptBlock(memory).aput(said, session_id="one"))
    roles = [message.role for message in memory.session("one").messages()]
    assert roles == ["user", "tool_call", "tool_call", "tool_result"]
    memory.session("one").finish()
    assert any("Postgres 17" in hit.memory.content for hit in memory.recall("billing database").hits)


def test_a_truncated_block_loses_the_worst_first() -> None:
    block = KeptBlock(kept.open(":memory:"))
    assert asyncio.run(block.atruncate("Memory:\nthe best one\nthe worst one", 2)) == "Memory:\nthe best one"
    assert asyncio.run(block.atruncate("Memory:\nthe best one\nthe worst one", 200)) is None


def put(block: KeptBlock, n: int = 0) -> Any:
    return lambda: block.aput([user(f"message {n}")], session_id="one")


def test_the_loop_goes_on_while_a_slow_storage_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_down(monkeypatch)
    assert ticks_during(put(KeptBlock(kept.open(":memory:")))) > 10


def test_a_cancelled_put_is_finished(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    block = KeptBlock(location=tmp_path / "memory.db")
    cancel_when(slow_down(monkeypatch), put(block))
    assert [message.content for message in block.memory.session("one").messages()] == ["message 0"]


def test_fifty_at_once_are_all_there(tmp_path: Path) -> None:
    block = KeptBlock(location=tmp_path / "memory.db")
    at_once([put(block, n) for n in range(50)])
    assert {one.content for one in block.memory.session("one").messages()} == {f"message {n}" for n in range(50)}


AGENT = """
import asyncio, sys
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms import CustomLLM, CompletionResponse, LLMMetadata
from llama_index.core.memory import Memory
from kept.adapters.llama_index import KeptBlock
from kept.adapters.shared import session_name

class Scripted(CustomLLM):
    @property
    def metadata(self):
        return LLMMetadata()
    def complete(self, prompt, formatted=False, **kwargs):
        return CompletionResponse(text=f"I was told: {prompt}")
    def stream_complete(self, prompt, formatted=False, **kwargs):
        raise NotImplementedError

async def main(where, words):
    block = KeptBlock(location=where)
    # a short-term memory of a few tokens: everything leaves it at once
    short = {"token_limit": 60, "chat_history_token_ratio": 0.2, "token_flush_size": 10}
    memory = Memory.from_defaults(session_id=words, memory_blocks=[block], **short, tokenizer_fn=str.split)
    engine = SimpleChatEngine.from_defaults(llm=Scripted(), memory=memory)
    print((await engine.achat(words)).response)
    await memory.aput(ChatMessage(role="user", content="That is all for now, thank you very much and good bye"))
    block.memory.session(session_name(words)).finish()

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
    run_page("llama_index", tmp_path, monkeypatch)
