"""LangChain: `KeptHistory` is a chat history, `KeptRetriever` a retriever.

    from kept.adapters.langchain import KeptHistory, KeptRetriever
    RunnableWithMessageHistory(chain, lambda id: KeptHistory(id, project="web-app"))

The messages are those of a session of the project, so that what the conversation leaves behind is kept like any
other's. The retriever finds what any agent or person stored there. Rule: as for every conversation, a cleared history
is gone for the model, and stays in the record until a person erases it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kept.adapters.shared import Conversation, framework, in_thread, message_of, opened
from kept.memory import Kept
from kept.model import Hit, Message, MessageRole

with framework("langchain"):
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import Document
    from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, message_to_dict, messages_from_dict
    from langchain_core.retrievers import BaseRetriever

AGENT = "langchain"
_SPEAKERS: dict[str, MessageRole] = {"human": "user", "ai": "assistant"}


class KeptHistory(BaseChatMessageHistory):
    """The history of one conversation, in the given memory, or the one that `location` and `project` name."""

    def __init__(
        self,
        session_id: str,
        memory: Kept | None = None,
        *,
        location: Path | str | None = None,
        project: Path | str | None = None,
    ) -> None:
        self.session_id = session_id
        self.memory = opened(memory, location, project)
        self._conversation = Conversation(self.memory, session_id, AGENT)

    @property
    def messages(self) -> list[BaseMessage]:
        """The messages in order."""
        return messages_from_dict(self._conversation.items())  # type: ignore[no-any-return]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages at the end, all or none."""
        self._conversation.add([_message(message) for message in messages])

    def clear(self) -> None:
        """Take all messages out."""
        self._conversation.clear()

    async def aget_messages(self) -> list[BaseMessage]:
        """As `messages`, in a thread."""
        return await in_thread(lambda: self.messages)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """As `add_messages`, in a thread."""
        await in_thread(self.add_messages, messages)

    async def aclear(self) -> None:
        """As `clear`, in a thread."""
        await in_thread(self.clear)


class KeptRetriever(BaseRetriever):
    """The memories that fit a question, best first, at most `k`; with `having`, only those with all of these tags."""

    memory: Any
    k: int = 5
    having: tuple[str, ...] = ()

    def __init__(
        self,
        memory: Kept | None = None,
        *,
        location: Path | str | None = None,
        project: Path | str | None = None,
        **fields: Any,
    ) -> None:
        super().__init__(memory=opened(memory, location, project), **fields)

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [_document(hit) for hit in self.memory.recall(query, limit=self.k, tags=self.having).hits]

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return await in_thread(self._get_relevant_documents, query, run_manager=run_manager)


def _document(hit: Hit) -> Document:
    memory = hit.memory
    about = {"ref": memory.ref, "kind": memory.kind, "tags": list(memory.tags), "trust": memory.trust}
    times = {"created_at": memory.created_at.isoformat(), "score": hit.score}
    return Document(id=memory.uid, page_content=memory.content, metadata=about | times)


def _message(message: BaseMessage) -> Message:
    """The message as it is kept: who said what, with the message itself beside it."""
    item = message_to_dict(message)
    if isinstance(message, ToolMessage):
        return message_of("tool_result", message.content, item=item, name=message.name)
    if isinstance(message, AIMessage) and message.tool_calls and not message.text:
        first = message.tool_calls[0]
        return message_of("tool_call", item=item, name=first["name"], input=first["args"])
    if message.type in _SPEAKERS:
        return message_of(_SPEAKERS[message.type], message.content, item=item)
    return message_of("tool_call", item=item, name=message.type)  # instructions: nobody's statements
