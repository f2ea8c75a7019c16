"""Find the memories that a new one contradicts.

After duplicates, before a memory is stored. A text is read as *claims*: what a clause speaks of, as a set of stems, and
whether it affirms or denies it. "Use Fastify, not Express" affirms {use, fastify} and denies {use, express}. Two
claims contradict each other when one affirms what the other denies, or gives another value to the same thing.
Rule: precision before recall. What one claim speaks of must be wholly contained in the other; a false alarm costs
trust, while a miss leaves two memories that a reader can still compare.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from msgspec import Struct

from kept import text
from kept.model import ConflictType, Memory
from kept.ports import Reader, Where

MAX_CHARS = 1_000  # a statement is short; what is longer is a document, and its beginning says what it is about
MAX_STEMS = 16
SEARCHED_STEMS = 6  # the rarest ones; more of them make the search slow without finding more
CANDIDATES = 20
RARE_SHARE = 0.05  # a word in more than one of twenty memories says little about what they are about
ALWAYS_RARE_ROWS = 5  # ... but in a small space every word is common

# What was done or seen at some time is not contradicted by what was done later.
HISTORY = frozenset({"progress", "file_change", "summary", "reasoning", "tool_output"})


class Rival(Struct, frozen=True):
    """A live memory that contradicts the new one, and how.

    `contradictory`: both cannot hold. `superseded`: one of them says itself that the other is over.
    `ambiguous`: perhaps only an exception, or two names for one thing.
    """

    memory: Memory
    type: ConflictType


class Claim(Struct, frozen=True):
    """What one clause says: it affirms or denies something about its stems.

    A stem with a `+` is a pair of opposite verbs (`+toggle`: enable, disable), whose sign is in `affirms`. `scope`
    are those stems that say where or when the claim holds. `value` is the one number or name that it sets.
    """

    affirms: bool
    stems: frozenset[str]
    scope: frozenset[str] = frozenset()
    is_change: bool = False
    value: str | None = None
    is_number: bool = False


def find_rivals(reader: Reader, memory: Memory) -> list[Rival]:
    """C22: the live memories of the space that contradict this one, which share its kind or one of its files."""
    claims = claims_of(memory.content) if memory.kind not in HISTORY else []
    stems = [stem for stem in dict.fromkeys(s for claim in claims for s in claim.stems) if "+" not in stem][:MAX_STEMS]
    if not stems:
        return []
    where = Where(scope=memory.scope)
    statistics = reader.statistics(stems, where)
    common_above = max(ALWAYS_RARE_ROWS, statistics.rows * RARE_SHARE)
    rare = frozenset(stem for stem in stems if statistics.rows_with[stem] <= common_above)
    known = sorted((stem for stem in stems if statistics.rows_with[stem]), key=statistics.rows_with.__getitem__)
    rivals = []
    for found in reader.search(known[:SEARCHED_STEMS], where, limit=CANDIDATES):
        other = found.memory
        if other.uid != memory.uid and _may_disagree(memory, other):
            allow_numbers = "error" not in (memory.kind, other.kind)
            if type := contradiction(claims, claims_of(other.content), rare.__contains__, allow_numbers=allow_numbers):
                rivals.append(Rival(other, type))
    return rivals


def _may_disagree(memory: Memory, other: Memory) -> bool:
    if other.kind in HISTORY:
        return False
    return memory.kind == other.kind or not set(memory.files).isdisjoint(other.files)
