"""Compare statements by their names and words, and find those that repeat earlier ones.

Used by extraction. A conversation repeats itself: in the plan, during the work, in the report, and in the next report.
Rule: a statement is kept only if enough of its words are in no statement kept so far.
"""

from functools import lru_cache

from msgspec import Struct

from kept import text
from kept.writing.extraction.evidence import names_in
from kept.writing.things import things_in

SAME_SHARE = 0.6  # of the words of the shorter one: it says the same


class Gist(Struct, frozen=True):
    """The names from code in a statement, and the stems of its meaningful words."""

    names: frozenset[str]
    words: frozenset[str]

    @staticmethod
    @lru_cache(maxsize=512)  # a statement is looked at when it is found, chosen and compared
    def of(content: str) -> "Gist":
        names = frozenset(name.lower().split(":")[0].strip("()") for name in names_in(content))
        return Gist(names, things_in(content))

    def says(self, other: "Gist") -> bool:
        """Return True if one of two statements has most of the words of the other."""
        return len(self.words & other.words) >= SAME_SHARE * max(1, min(len(self.words), len(other.words)))

    def corrects(self, earlier: "Gist") -> bool:
        """Match a correction of an earlier statement, or a report on it: most of its names, or two of them."""
        shared = len(self.names & earlier.names)
        return shared > 1 or (shared == 1 and len(earlier.names) <= 2)

    def touches(self, other: "Gist") -> bool:
        """Match statements that share a name, a part of one, or two words."""
        parts = {part for name in self.names for part in text.words(name)}
        others = {part for name in other.names for part in text.words(name)}
        shared = (self.words | parts) & (other.words | others)
        return bool(self.names & other.names) or bool(shared & (parts | others)) or len(shared) >= 2
