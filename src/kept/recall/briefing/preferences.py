"""Choose the user's preferences about answers, for a turn of the library's loop.

Told beside the pins. A turn has no start at which a hook tells them, and its context is all that a model is sent, so
they come with every turn. Rule: nothing of low trust, and nothing that a person would still have to confirm.
"""

from collections.abc import Sequence

from kept import text, worth
from kept.model import Entry, Memory
from kept.ports import Reader, Where
from kept.recall.briefing.situation import Situation, out_of_place
from kept.recall.stems import ANSWERS

PREFERENCE = "preference"
KINDS = (PREFERENCE, "convention")
TAGS = ("correction",)
NEWEST = 50
MOST = 8


def for_every_answer(readers: Sequence[Reader], situation: Situation) -> list[Entry]:
    """Return preferences, and rules about answers, those about answers first."""
    found = [memory for memory in _newest(readers, situation.seen_by) if _holds(memory, situation)]
    return [Entry(memory=memory, why="the user's preference") for memory in sorted(found, key=_rank)[:MOST]]


def _newest(readers: Sequence[Reader], seen_by: str | None) -> list[Memory]:
    found: dict[str, Memory] = {}
    for where in (Where(kinds=KINDS, seen_by=seen_by), Where(tags=TAGS, seen_by=seen_by)):
        words = [word for name in (*where.kinds, *where.tags) for word in text.words(name)]  # indexed as words
        for reader in readers:
            found |= {hit.memory.uid: hit.memory for hit in reader.search(words, where, limit=NEWEST, newest=True)}
    return list(found.values())


def _holds(memory: Memory, situation: Situation) -> bool:
    """Return True if a memory is a preference or about answers, and may be told here."""
    is_wanted = memory.kind == PREFERENCE or _is_about_answers(memory)
    is_certain = worth.is_lasting(memory) and not memory.is_low_trust
    return is_wanted and is_certain and not out_of_place(memory, situation)


def _rank(memory: Memory) -> tuple[bool, bool, float, int]:
    known = memory.importance * worth.feedback_factor(memory.feedback)
    return not _is_about_answers(memory), "correction" not in memory.tags, -known, -memory.id


def _is_about_answers(memory: Memory) -> bool:
    return not ANSWERS.isdisjoint(text.words(memory.content))
