"""Narratives: the story that a memory was written in.

`memory.narrative("…")` opens one, to add to it and to read it. Between its `begin` and its `end` everything that is
remembered in the project belongs to it, whichever process writes. Rule: a narrative is only a name on memories.
"""

from datetime import datetime
from typing import Self, Unpack

from msgspec import Struct, json

from kept.errors import InvalidInput, NotFound
from kept.memory.context import NARRATIVE, About, Context, Handle, Memories, Ref, verb
from kept.memory.verbs.remember import remember_within
from kept.memory.write import SHELVES
from kept.model import Receipt
from kept.ports import Reader, Where
from kept.projects.files import check_session_name
from kept.storage.shared import every
from kept.writing.redact import check_name

TURN = f"{NARRATIVE}:turn"  # the note of the last begin or end, which `kept undo` must not pass over
MOST_TOLD = 10_000  # memories of one narrative


class ListedNarrative(Struct, kw_only=True):
    """A narrative in a list: how many memories it has, and when the last one was written."""

    id: str
    last: datetime
    memories: int = 0
    is_under_way: bool = False


class Narrative(Handle):
    """One story. Every memory written through it belongs to it."""

    def __init__(self, context: Context, id: str) -> None:
        self.id = id
        self._context = context

    def remember(self, content: str, **about: Unpack[About]) -> Receipt:
        """As `memory.remember`, as part of this story."""
        return remember_within(self._context, content, about, narrative=self.id)

    @verb("narrative.begin")
    def begin(self) -> None:
        """Let everything that is remembered in this project from now on belong to this story, until `end`."""
        _set_narrative(self._context, self.id)

    @verb("narrative.end")
    def end(self) -> None:
        """End the story under way. What belongs to it stays."""
        _set_narrative(self._context, None)

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, *failure: object) -> None:
        self.end()

    @verb("narrative.memories")
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
    return Narrative(context, check_name(check_session_name(id or ""), "The name of a narrative"))


def list_narratives(context: Context) -> list[ListedNarrative]:
    """The stories of the project, the last one first."""
    found: dict[str, ListedNarrative] = {}
    storage = context.readable_tier("project")
    if storage is None:
        return []
    with storage.reading() as reader:
        for shelf in SHELVES:
            for memory in every(reader, Where(shelf=shelf, scope=None)):
                if (name := memory.source.narrative) is not None:
                    told = found.setdefault(name, ListedNarrative(id=name, last=memory.created_at))
                    told.memories += 1
                    told.last = max(told.last, memory.created_at)
    if context.narrative is not None:
        found.setdefault(
            context.narrative, ListedNarrative(id=context.narrative, last=context.now())
        ).is_under_way = True
    return sorted(found.values(), key=lambda told: told.last, reverse=True)


class Turn(Struct, kw_only=True, frozen=True):
    """The last begin or end of a narrative. It is a note and no event; the numbers of the events before it say when."""

    id: str
    has_ended: bool
    actor: str
    last: int
    last_global: int


def last_turn(context: Context) -> Turn | None:
    """The last begin or end of a narrative in this project."""
    storage = context.spaces.project()
    if storage is None:
        return None
    with storage.reading() as reader:
        note = reader.file_notes(TURN).get(TURN)
    return None if note is None else json.decode(note, type=Turn)


def _set_narrative(context: Context, id: str | None) -> None:
    last_global = 0
    if (shared := context.spaces.shared()) is not None:
        with shared.reading() as reader:
            last_global = _last_event(reader)
    with context.switching() as tx:
        before = tx.file_notes(NARRATIVE).get(NARRATIVE)
        if before != id:
            turn = Turn(
                id=id or before or "",
                has_ended=id is None,
                actor=context.signature,
                last=_last_event(tx),
                last_global=last_global,
            )
            tx.note_file(NARRATIVE, id)
            tx.note_file(TURN, json.encode(turn).decode())
    context.narrative = id


def _last_event(reader: Reader) -> int:
    return next((event.seq for event in reader.events(newest_first=True, limit=1)), 0)
