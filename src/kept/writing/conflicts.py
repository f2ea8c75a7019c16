"""Find the memories that a new one contradicts.

After duplicates, before a memory is stored. A text is read as *claims*: what a clause speaks of, as a set of stems, and
whether it affirms or denies that. "Use Fastify, not Express" affirms {use, fastify} and denies {use, express}. Two
claims contradict each other when one affirms what the other denies, or gives another value to the same thing.
Rule: precision before recall. All that one claim speaks of must be in the other, too; a false alarm costs trust, while
a miss leaves two memories that a reader can still compare.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct

from kept.model import ConflictType, Memory
from kept.ports import Reader, Where
from kept.writing.claims import Claim, claims_of

RARE_SHARE = 0.05  # a word in more than one of twenty memories says little about what they are about
ALWAYS_RARE_ROWS = 5  # ... except in a small space, where every word is common

_GRAVEST_FIRST: tuple[ConflictType, ...] = ("superseded", "contradictory", "ambiguous")
# What was done or seen at some time is not contradicted by what was done later.
HISTORY = frozenset({"progress", "file_change", "summary", "reasoning", "tool_output"})


class Rival(Struct, frozen=True):
    """A live memory that contradicts the new one, and how.

    `contradictory`: both cannot hold. `superseded`: one of them says itself that the other is over.
    `ambiguous`: perhaps an exception to a rule, or two names for one thing.
    """

    memory: Memory
    type: ConflictType


def find_rivals(reader: Reader, memory: Memory, alike: Sequence[Memory]) -> list[Rival]:
    """C22: of the memories about the same thing those that contradict this one and share its kind or a file."""
    others = [other for other in alike if _may_disagree(memory, other)]
    if not others or memory.kind in HISTORY:
        return []
    claims = claims_of(memory.content)
    rarity = _Rarity(reader, Where(scope=memory.scope))
    rivals = []
    for other in others:
        if type := contradiction(claims, claims_of(other.content), rarity.rare):
            rivals.append(Rival(other, type))
    return rivals


class _Rarity:
    """In how many memories a stem stands; each is asked for once, and only when it matters."""

    def __init__(self, reader: Reader, where: Where) -> None:
        self._reader = reader
        self._where = where
        self._rows = 0
        self._rows_with: dict[str, int] = {}

    def rows_with(self, stems: Collection[str]) -> Mapping[str, int]:
        unknown = [stem for stem in stems if stem not in self._rows_with]
        if unknown:
            statistics = self._reader.statistics(unknown, self._where)
            self._rows = statistics.rows
            self._rows_with.update(statistics.rows_with)
        return self._rows_with

    def rare(self, stems: Collection[str]) -> set[str]:
        words = [stem for stem in stems if not stem.startswith("+")]
        counted = self.rows_with(words)
        return {word for word in words if counted[word] <= max(ALWAYS_RARE_ROWS, self._rows * RARE_SHARE)}


def _may_disagree(memory: Memory, other: Memory) -> bool:
    if other.uid == memory.uid or other.fingerprint == memory.fingerprint:
        return False
    is_about_the_same = memory.kind == other.kind or not set(memory.files).isdisjoint(other.files)
    return is_about_the_same and other.kind not in HISTORY


def contradiction(
    left: Sequence[Claim], right: Sequence[Claim], rare: Callable[[Collection[str]], set[str]]
) -> ConflictType | None:
    """How two texts contradict each other, or None. `rare` picks those stems that tell what a text is about.

    What they disagree about holds at least two rare stems, or is all that a claim of each speaks of.
    """
    shared: set[str] = set()
    types: set[ConflictType] = set()
    for a in left:
        for b in right:
            type = _disagreement(a, b)
            if type is not None and (common := rare(a.stems & b.stems)):
                types.add(type)
                shared |= common if a.stems != b.stems else {*common, "+same"}
    if len(shared) < 2:
        return None
    return next(type for type in _GRAVEST_FIRST if type in types)


def _disagreement(a: Claim, b: Claim) -> ConflictType | None:
    is_change = a.is_change or b.is_change
    if a.affirms == b.affirms:
        if a.value == b.value or a.subject != b.subject or a.is_number != b.is_number:
            return None
        return "superseded" if is_change else "contradictory" if a.is_number else "ambiguous"
    small, large = (a, b) if len(a.stems) <= len(b.stems) else (b, a)
    if small.stems == large.stems:
        return "superseded" if is_change else "contradictory"
    if not small.stems <= large.stems or not (small.stems - small.scope).isdisjoint(large.scope):
        return None  # "Never commit secrets", "Encrypt secrets before you commit them": there only a condition
    extra = large.stems - small.stems
    if small.affirms and not extra <= large.scope:
        return None  # "Send e-mails", "Never send e-mails synchronously": denies not this, but a manner of it
    if is_change:
        return "superseded"
    # "Never log tokens", "Log token counts in CI": one word more may make another thing of it, one phrase an exception.
    is_nearly_the_same = small.scope == large.scope and len(extra) == 1 and len(small.stems) > 2
    return "contradictory" if is_nearly_the_same else "ambiguous"
