"""LlamaIndex: `KeptBlock` is a memory block, for `Memory.from_defaults(memory_blocks=[…])`.

    from kept.adapters.llama_index import KeptBlock
    Memory.from_defaults(session_id="conversation-1", memory_blocks=[KeptBlock(project="web-app")])

What leaves the short-term memory is kept as the messages of a session of the project; what fits the newest question is
told to the model, from this conversation and from all others. Rule: the block never takes a message apart; what is
worth keeping of it is decided as for any conversation.
"""

from pathlib import Path
from typing import Any

from kept.adapters.shared import Conversation, framework, in_thread, message_of, opened, told
from kept.memory import Kept
from kept.model import Message, MessageRole
from kept.tokens import estimate

with framework("llama_index"):
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory.memory import BaseMemoryBlock

AGENT = "llama-index"
SESSION = "session_id"  # in what LlamaIndex adds to a message
_SPEAKERS: dict[str, MessageRole] = {"user": "user", "assistant": "assistant", "tool": "tool_result"}


class KeptBlock(BaseMemoryBlock[str]):
    """A block in the given memory, or the one that `location` and `project` name."""

    name: str = "kept"
    memory: Any
    limit: int = 5

    def __init__(
        self,
        memory: Kept | None = None,
        *,
        location: Path | str | None = None,
        project: Path | str | None = None,
        **fields: Any,
    ) -> None:
        super().__init__(memory=opened(memory, location, project), **fields)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        asked = [message.content or "" for message in messages or () if message.role.value == "user"]
        return await in_thread(told, self.memory, asked[-1] if asked else "", limit=self.limit)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await in_thread(self._keep, messages)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """The content without its last memories, which fit least."""
        (head, *lines), gone = content.split("\n"), 0
        while lines and gone < tokens_to_truncate:
            gone += estimate(lines.pop())
        return "\n".join((head, *lines)) if lines else None

    def _keep(self, messages: list[ChatMessage]) -> None:
        by_session: dict[str, list[Message]] = {}
        for message in messages:
            by_session.setdefault(message.additional_kwargs.get(SESSION) or AGENT, []).append(_message(message))
        for session, said in by_session.items():
            Conversation(self.memory, session, AGENT).add(said)


def _message(message: ChatMessage) -> Message:
    role = _SPEAKERS.get(message.role.value)
    if role is None or not message.content:  # instructions, or a call without words: nobody's statements
        return message_of("tool_call", name=message.role.value, input={"content": message.content or ""})
    return message_of(role, message.content)
