"""Narratives: the story that a memory was written in.

`memory.narrative("…")` opens one, to add to it and to read it. Rule: a narrative is only a name on memories; it begins
with the first that carries it.
"""

from typing import Any

from kept.errors import InvalidInput, NotFound
from kept.memory.context import Context, Memories, Ref
from kept.memory.write import SHELVES, remember
from kept.model import Draft, Receipt, replace
from kept.ports import Where
from kept.projects.files import check_session_name

MOST_TOLD = 10_000  # memories of one narrative


class Narrative:
    """One story. Every memory written through it belongs to it."""

    def __init__(self, context: Context, id: str) -> None:
        self.id = id
        self._context = context

    def remember(self, content: str, **about: Any) -> Receipt:
        """As `memory.remember`, as part of this story."""
        given = about.pop("source", None) or self._context.source()
        source = replace(given, narrative=self.id)
        return remember(self._context, Draft(content=content, source=source, **about))

    def memories(self) -> Memories:
        """The memories of this story in the order they were written, including those archived since."""
        found: Memories = []
        for reader in self._context.readers():
            for shelf in SHELVES:
                found += reader.select(Where(shelf=shelf, scope=None, narrative=self.id), limit=MOST_TOLD)
        self._context.tell_read(found)
        return sorted(found, key=lambda memory: (memory.created_at, memory.id))


def narrative(context: Context, id: str | None, of: Ref | None) -> Narrative:
    """The story of that id, or the one that a memory was written in. Raises NotFound when it was in none."""
    if (id is None) == (of is None):
        raise InvalidInput("A narrative needs its id, or a memory of it.", hint="Give one of `id` and `of`.")
    if of is not None:
        _, memory = context.find(of)
        if memory.source.narrative is None:
            raise NotFound(f"Memory {memory.ref} is not part of a narrative.")
        return Narrative(context, memory.source.narrative)
    return Narrative(context, check_session_name(id or ""))
