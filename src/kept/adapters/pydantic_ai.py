"""Pydantic AI: `KeptMemory` is a capability, for `Agent(capabilities=[…])`.

    from kept.adapters.pydantic_ai import KeptMemory
    agent = Agent("…", capabilities=[KeptMemory(project="web-app")])

It gives the model two tools, `recall` and `remember`, says when to use them, and keeps every run as the messages of a
session of the project. Rule: what is stored reaches the model as the result of a tool and never as an instruction,
because somebody said it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kept.adapters.shared import Conversation, framework, in_thread, message_of, opened, told
from kept.errors import KeptError
from kept.memory import Kept
from kept.model import Message

with framework("pydantic_ai"):
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelMessage, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
    from pydantic_ai.toolsets import FunctionToolset

AGENT = "pydantic-ai"
INSTRUCTIONS = (
    "You have a long-term memory. Call recall with 2 to 6 key words before you start a task or decide something. Call "
    "remember for what the next conversation will need: a decision and its reason, a preference, a correction, a "
    "command that works; one fact each, which makes sense on its own."
)
NOTHING = "Nothing fits."


@dataclass(init=False)
class KeptMemory(AbstractCapability[Any]):
    """Tools and a record of what was said, in the given memory, or the one that `location` and `project` name."""

    def __init__(
        self,
        memory: Kept | None = None,
        *,
        location: Path | str | None = None,
        project: Path | str | None = None,
        limit: int = 5,
    ) -> None:
        super().__init__()
        self.memory = opened(memory, location, project)
        self.limit = limit

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: an opened memory cannot stand in a specification."""
        return None

    def get_instructions(self) -> str:
        """When to use the tools."""
        return INSTRUCTIONS

    def get_toolset(self) -> FunctionToolset[Any]:
        """The tools `recall` and `remember`."""
        return FunctionToolset([self.recall, self.remember])

    async def recall(self, query: str) -> str:
        """Search long-term memory.

        Args:
            query: 2 to 6 key words with synonyms, not a sentence.
        """
        return await in_thread(told, self.memory, query, limit=self.limit) or NOTHING

    async def remember(self, fact: str) -> str:
        """Store one fact for later conversations.

        Args:
            fact: One or two sentences that make sense without this conversation.
        """
        try:
            stored = await in_thread(self.memory.remember, fact)
        except KeptError as error:  # for the model, which can send something else
            return f"Not stored. {error}"
        return f"{stored.outcome} {f'[id:{stored.ref}]' if stored.ref else stored.message}"

    async def after_run(self, ctx: Any, *, result: Any) -> Any:
        """Keep what was said."""
        said = [one for message in result.new_messages() for one in _messages(message)]
        session = ctx.conversation_id or ctx.run_id
        await in_thread(Conversation(self.memory, session, AGENT).add, said)
        return result


def _messages(message: ModelMessage) -> Iterator[Message]:
    """The parts of a message as they are kept: who said what, which tool was called, and what it returned."""
    for part in message.parts:
        if isinstance(part, UserPromptPart):
            yield message_of("user", part.content if isinstance(part.content, str) else list(part.content))
        elif isinstance(part, TextPart) and part.content:
            yield message_of("assistant", part.content)
        elif isinstance(part, ToolCallPart):
            yield message_of("tool_call", name=part.tool_name, input=part.args_as_dict())
        elif isinstance(part, ToolReturnPart):
            yield message_of("tool_result", part.model_response_str(), name=part.tool_name)
