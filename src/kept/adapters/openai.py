"""OpenAI Agents: `KeptSession` is a `Session`, the history of one conversation.

    from kept.adapters.openai import KeptSession
    await Runner.run(agent, "…", session=KeptSession("conversation-1", project="web-app"))

The items are the messages of a session of the project, so that what the conversation leaves behind is kept like any
other's, and can be recalled by any agent. Rule: a transcript is only ever added to. An item that was popped, or a
session that was cleared, is gone for the model; the record of what was said stays until a person erases it.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents.memory import SessionSettings

from kept.adapters.shared import in_thread, opened, text_of
from kept.memory import Kept
from kept.memory.documents import Document, Documents, Get
from kept.memory.sessions import OpenSession
from kept.model import Message, MessageRole
from kept.storage.shared import random_hex

COLLECTION = "openai-session"
ITEM = "item"  # in the input of a message: the item as it was given
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
        self._documents = Documents(self.memory.context, COLLECTION)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items in order; with a limit, the newest of them."""
        return await in_thread(self._items, self.session_settings.limit if limit is None else limit)

    async def add_items(self, items: list[Any]) -> None:
        """Add items at the end."""
        if items:
            await in_thread(self._add, items)

    async def pop_item(self) -> Any | None:
        """Take the newest item out and return it; None when there is none."""
        return await in_thread(self._pop)

    async def clear_session(self) -> None:
        """Take all items out."""
        await in_thread(self._clear)

    def _items(self, limit: int | None) -> list[Any]:
        items = [_item(message) for message in self._shown()]
        return items if limit is None else items[max(0, len(items) - limit) :] if limit > 0 else []

    def _add(self, items: Sequence[Any]) -> None:
        session = self.memory.session(self.session_id, agent="openai-agents")
        session.take_in([_message(item) for item in items])
        session.checkpoint()

    def _pop(self) -> Any | None:
        popped: list[Any] = []
        session = self.memory.session(self.session_id)

        def change(get: Get) -> Sequence[Document | str]:
            gone = _gone(get(self.session_id))
            left = [message for message in _with_items(session) if message.id not in gone]
            popped[:] = left[-1:]
            return [self._without(gone | {message.id for message in popped})] if popped else []

        self._documents.edit(change)
        return _item(popped[0]) if popped else None

    def _clear(self) -> None:
        session = self.memory.session(self.session_id)
        self._documents.edit(lambda get: [self._without({message.id for message in _with_items(session)})])

    def _shown(self) -> list[Message]:
        gone = _gone(self._documents.get(self.session_id))
        return [message for message in _with_items(self.memory.session(self.session_id)) if message.id not in gone]

    def _without(self, gone: set[str]) -> Document:
        """The note of what was taken out of this session."""
        return Document(key=self.session_id, value={"gone": sorted(gone)}, scope="sources")


def _with_items(session: OpenSession) -> list[Message]:
    return [message for message in session.messages() if ITEM in (message.input or {})]


def _gone(note: Document | None) -> set[str]:
    return set() if note is None else set(note.value["gone"])


def _message(item: Any) -> Message:
    """The item as a message: who said what, with the item itself beside it."""
    plain = json.loads(json.dumps(item, default=_plain))
    kind = plain.get("type", "message")
    about: dict[str, Any] = {"id": f"openai-{random_hex(8)}", "input": {ITEM: plain}}
    if kind == "function_call":
        return Message(
            role="tool_call", name=plain.get("name"), **about | {"input": _arguments(plain) | about["input"]}
        )
    if kind.endswith("_output"):
        return Message(role="tool_result", content=text_of(plain.get("output")), **about)
    role = plain.get("role", kind)
    if kind == "message" and role in _SPEAKERS:
        return Message(role=_SPEAKERS[role], content=text_of(plain["content"]), **about)
    return Message(role="tool_call", name=role, **about)  # instructions, reasoning, a search: nobody's statements


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


def _item(message: Message) -> Any:
    return (message.input or {})[ITEM]
