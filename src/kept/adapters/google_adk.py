"""Google ADK: `KeptMemoryService` is a `BaseMemoryService`, for `Runner(memory_service=…)`.

    from kept.adapters.google_adk import KeptMemoryService
    Runner(agent=agent, memory_service=KeptMemoryService(project="web-app"), …)

Each event with a text, and each entry that is added, is a document of the project. Rule: a search sees only what its
own application stored for its own user; what was deleted does not come back when its session is added again.
"""

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kept.adapters.shared import as_tag, framework, in_thread, opened
from kept.memory import Kept
from kept.memory.documents import Document, Get, storable_id
from kept.memory.stated import trust_of

with framework("google_adk"):
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions.session import Session

COLLECTION = "google-adk"
MOST = 10  # memories of a search
_ENTRY, _GONE = "entry", "gone"  # in the value of a document


class KeptMemoryService(BaseMemoryService):
    """A memory service in the given memory, or the one that `location` and `project` name."""

    def __init__(
        self,
        memory: Kept | None = None,
        *,
        location: Path | str | None = None,
        project: Path | str | None = None,
    ) -> None:
        self.memory = opened(memory, location, project)
        self._documents = self.memory.documents(COLLECTION)

    async def add_session_to_memory(self, session: Session) -> None:
        """Keep what was said in a session; adding it again adds what is new."""
        await in_thread(self._add, session.app_name, session.user_id, _entries(session.events))

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Keep what was said in these events."""
        await in_thread(self._add, app_name, user_id, _entries(events, custom_metadata))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Keep these entries; one with the id of another takes its place."""
        more = dict(custom_metadata or {})
        changes = [
            {"id": entry.id or str(uuid.uuid4()), "custom_metadata": {**entry.custom_metadata, **more}}
            for entry in memories
        ]
        entries = [entry.model_copy(update=change) for entry, change in zip(memories, changes, strict=True)]
        await in_thread(self._add, app_name, user_id, entries, replace=True)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """What this user said or was told that shares words with the query, best first, at most ten."""
        found = await in_thread(self._documents.search, query, tag=_tag(app_name, user_id), limit=MOST)
        return SearchMemoryResponse(memories=[MemoryEntry(**one.value[_ENTRY]) for one in found])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Forget one memory; `kept undo` brings it back, `kept erase` removes it for good."""
        if not memory_id:
            raise ValueError("memory_id is missing: which memory is to be deleted?")
        await in_thread(self._delete, _key(app_name, user_id, memory_id))

    def _add(self, app: str, user: str, entries: Sequence[MemoryEntry], *, replace: bool = False) -> None:
        def change(get: Get) -> Sequence[Document]:
            keyed = {_key(app, user, entry.id or ""): entry for entry in entries}
            new = {
                key: entry for key, entry in keyed.items() if replace or (get(key) is None and not _is_gone(get, key))
            }
            return [_document(key, _tag(app, user), entry) for key, entry in new.items()]

        if entries:
            self._documents.edit(change)

    def _delete(self, key: str) -> None:
        note = Document(key=_GONE + key, value={}, scope="sources")
        self._documents.edit(lambda get: [] if get(key) is None else [key, note])


def _entries(events: Sequence[Event], about: Mapping[str, object] | None = None) -> list[MemoryEntry]:
    """The events in which somebody said something."""
    return [
        MemoryEntry(
            id=event.id,
            content=event.content,
            author=event.author,
            timestamp=datetime.fromtimestamp(event.timestamp, UTC).isoformat(),
            custom_metadata=dict(about or {}),
        )
        for event in events
        if event.content is not None and _words(event.content).strip()
    ]


def _document(key: str, tag: str, entry: MemoryEntry) -> Document:
    value = {_ENTRY: entry.model_dump(mode="json", exclude_none=True)}
    words = _words(entry.content)
    trust = trust_of("user", words) if "user" in (entry.author, entry.content.role) else None
    return Document(key=key, value=value, content=words, tags=(tag,), trust=trust)


def _words(content: Any) -> str:
    return "\n".join(part.text for part in content.parts or () if part.text and not part.thought)


def _is_gone(get: Get, key: str) -> bool:
    return get(_GONE + key) is not None


def _tag(app: str, user: str) -> str:
    return as_tag(f"{len(app)}:{app}/{storable_id(user)}")  # the length keeps apart what a slash in a name would mix


def _key(app: str, user: str, id: str) -> str:
    return f"{_tag(app, user)}/{len(user)}:{id}"
