"""Microsoft Agent Framework: `KeptProvider` is a `ContextProvider`, for `Agent(context_providers=[…])`.

    from kept.adapters.agent_framework import KeptProvider
    Agent(client, context_providers=[KeptProvider(project="web-app")])

Before a run, the model is told what fits the question, as a message and not as an instruction: what is stored was said
by somebody. After it, what was said becomes the messages of a session of the project.
"""

from pathlib import Path
from typing import Any

from kept.adapters.shared import Conversation, framework, in_thread, message_of, opened, told
from kept.memory import Kept
from kept.model import Message

with framework("agent_framework"):
    from agent_framework import ContextProvider
    from agent_framework import Message as FrameworkMessage

AGENT = "agent-framework"


class KeptProvider(ContextProvider):
    """A provider in the given memory, or the one that `location` and `project` name."""

    def __init__(
        self,
        memory: Kept | None = None,
        *,
        location: Path | str | None = None,
        project: Path | str | None = None,
        source_id: str = "kept",
        limit: int = 5,
    ) -> None:
        super().__init__(source_id)
        self.memory = opened(memory, location, project)
        self.limit = limit

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Tell the model what fits the question."""
        asked = "\n".join(message.text for message in context.input_messages if message.role == "user")
        found = await in_thread(told, self.memory, asked, limit=self.limit)
        if found:
            context.extend_messages(self, [FrameworkMessage(role="user", contents=[found])])

    async def after_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Keep what was said."""
        answered = context.response.messages if context.response is not None else []
        said = [kept for message in (*context.input_messages, *answered) for kept in _messages(message)]
        await in_thread(Conversation(self.memory, session.session_id, AGENT).add, said)


def _messages(message: FrameworkMessage) -> list[Message]:
    """The message as it is kept: who said what, which tool was called, and what it returned."""
    if message.role in ("user", "assistant"):
        said = [message_of(message.role, message.text)] if message.text else []
    else:
        said = []  # instructions: nobody's statements
    for content in message.contents:
        if content.type == "function_call":
            said.append(message_of("tool_call", name=content.name, input=content.parse_arguments()))
        elif content.type == "function_result":
            said.append(message_of("tool_result", str(content.result)))
    return said
