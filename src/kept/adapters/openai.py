"""OpenAI Agents: `KeptSession` is a `Session`, the history of one conversation.

    from kept.adapters.openai import KeptSession
    await Runner.run(agent, "…", session=KeptSession("conversation-1", project="web-app"))

The items are the messages of a session of the project, so that what the conversation leaves behind is kept like any
other's, and can be recalled by any agent. Rule: a transcript is only ever added to. An item that was popped, or a
session that was cleared, is gone for the model; the record of what was said stays until a person erases it.
"""

import json
from pathlib import Path
from typing import Any

from kept.adapters.shared import Conversation, framework, in_thread, message_of, opened
from kept.memory import Kept
from kept.model import Message, MessageRole

with framework("openai"):
    from agents.memory import SessionSettings

AGENT = "openai-agents"
_SPEAKERS: dict[str, MessageRole] = {"user": "user", "assistant": "assistant"}


class KeptSession:
    """A session of the OpenAI Agents SDK, in the given memory, or the one that `location` and `project` name."""

    def __init__(
        self,
        session_id: str,
        memory: Kept | None = None,
        *,
        location: Path | str | None = None,
        project: Path | str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self.memory = opened(memory, location, project)
        self._conversation = Conversation(self.memory, session_id, AGENT)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items in order; with a limit, the newest of them."""
        return await in_thread(self._items, self.session_settings.limit if limit is None else limit)

    async def add_items(self, items: list[Any]) -> None:
        """Add items at the end."""
        await in_thread(self._conversation.add, [_message(item) for item in items])

    async def pop_item(self) -> Any | None:
        """Take the newest item out and return it; None when there is none."""
        return await in_thread(self._conversation.pop)

    async def clear_session(self) -> None:
        """Take all items out."""
        await in_thread(self._conversation.clear)

    def _items(self, limit: int | None) -> list[Any]:
        items = self._conversation.items()
        return items if limit is None else items[max(0, len(items) - limit) :] if limit > 0 else []


def _message(item: Any) -> Message:
    """The item as a message: who said what, with the item itself beside it."""
    plain = json.loads(json.dumps(item, default=_plain))
    kind = plain.get("type", "message")
    if kind == "function_call":
        return message_of("tool_call", item=plain, name=plain.get("name"), input=_arguments(plain))
    if kind.endswith("_output"):
        return message_of("tool_result", plain.get("output"), item=plain)
    role = plain.get("role", kind)
    if kind == "message" and role in _SPEAKERS:
        return message_of(_SPEAKERS[role], plain["content"], item=plain)
    return message_of("tool_call", item=plain, name=role)  # instructions, reasoning, a search: nobody's statements


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(exclude_unset=True)
    raise TypeError(f"An item cannot hold {type(value).__name__}.")


def _arguments(item: dict[str, Any]) -> dict[str, Any]:
    try:
        given = json.loads(item.get("arguments") or "{}")
    except ValueError:
        return {}
    return given if isinstance(given, dict) else {}
