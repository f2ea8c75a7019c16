"""Narratives: the running story that a memory was written in, to be walked both ways.

Facade layer. A memory knows its narrative (`memory.source.narrative`), a narrative its memories. Rule: a narrative is
a name on memories and nothing else; it begins with the first memory that carries it.
"""

from typing import Any

from kept.model import Receipt, Source
from kept.opened import Memories, Ref
from kept.ports import Shelf, Where
from kept.remembering import Remembering
from kept.transcripts import check_session_name

MOST = 10_000
SHELVES: tuple[Shelf, ...] = ("live", "archive")


class Narrative:
    """One story. What is remembered through it belongs to it."""

    def __init__(self, memory: "Narratives", id: str) -> None:
        self.id = id
        self._memory = memory

    def remember(self, content: str, **about: Any) -> Receipt:
        """As `memory.remember`, as part of this story."""
        given = about.pop("source", None) or Source(origin=self._memory._origin, agent=self._memory._actor.name)
        source = Source(
            origin=given.origin, agent=given.agent, session=given.session, task=given.task, narrative=self.id
        )
        return self._memory.remember(content, source=source, **about)

    def memories(self) -> Memories:
        """What was written in this story, in its order; what was archived since then, too."""
        found: Memories = []
        for storage in self._memory._readable():
            with storage.reading() as reader:
                for shelf in SHELVES:
                    found += reader.select(Where(shelf=shelf, scope=None, narrative=self.id), limit=MOST)
        return sorted(found, key=lambda memory: (memory.created_at, memory.id))


class Narratives(Remembering):
    """What tells stories apart."""

    def narrative(self, id: str) -> Narrative:
        """The story of that id, to add to and to walk."""
        return Narrative(self, check_session_name(id))

    def narrative_of(self, ref: Ref) -> Narrative | None:
        """The story that a memory was written in, if it was in one."""
        _, memory = self._find(ref)
        return None if memory.source.narrative is None else Narrative(self, memory.source.narrative)
