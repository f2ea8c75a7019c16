"""Find the memories that a new one contradicts or replaces.

Two statements are compared clause by clause with the rules of `RULES`, the clearest first. A rule has a name, which the
conflict shows. Rule: precision before recall. A false alarm costs trust; after a miss a reader can still compare the
two. The newer statement is right: it supersedes the older one if its own words say so ("no longer", "instead of", "not
4000") and it comes from somebody who may; else both stay, as an open conflict.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from kept.model import GLOBAL, TRUSTS, Conflict, ConflictType, Memory
from kept.ports import Reader, Where
from kept.tables import HISTORY_KINDS, SETTLED_KINDS
from kept.writing.clauses import Clause, clauses_of, tells_of_change
from kept.writing.duplicates import is_guarded
from kept.writing.values import (
    LINKS,
    changed_value,
    is_general,
    is_use_of,
    is_value_of,
    may_be_replaced,
    other_order,
    other_value,
    other_version,
    reworded_value,
    subject_of,
)

RARE_SHARE = 0.05  # a word in more than one of twenty memories says little about what they are about
ALWAYS_RARE_ROWS = 5  # ... except in a small space, where every word is common

CORRECTION = "correction"  # the tag of a statement that corrects something
Keys = frozenset[str]
NOTHING: Keys = frozenset()


class Disagreement(NamedTuple):
    """By which rule two texts disagree, and how gravely."""

    rule: str
    type: ConflictType


# ---- how two clauses disagree: each rule tells over which words ----


def _names_it(old: Clause, new: Clause) -> Keys:
    """ "Use fetch instead of axios for HTTP calls": the older one says what is named as replaced."""
    if not new.replaced or not old.is_plain or not new.replaced <= old.keys:
        return NOTHING
    rest = old.keys - new.replaced
    if is_value_of(old, new.replaced, new.keys) or (is_general(new) and is_use_of(old, new.replaced)):
        return new.replaced | (rest & new.keys)
    return new.replaced | (rest & new.keys) if 2 * len(rest & new.keys) >= len(rest) else NOTHING


def _ends_it(old: Clause, new: Clause) -> Keys:
    """ "Removed Redux from the web client": the older one is about what has ended."""
    keys, others = new.keys - LINKS, old.keys - LINKS
    if not new.ends or not old.is_plain or not keys <= others:
        return NOTHING
    if new.has_ended and is_general(new) and is_use_of(old, keys):  # "We no longer use Redis"
        return keys
    is_its_value = new.has_ended and is_value_of(old, keys - subject_of(old), keys)
    return keys if len(keys) > 1 and (is_its_value or 2 * len(keys) >= len(others)) else NOTHING


def _denies_it(old: Clause, new: Clause) -> Keys:
    """ "I don't like long answers": the same words, or one more in the affirmation, and one of the two denies them."""
    denied = _denied(old, new)
    extra = (old.keys | new.keys) - denied
    return denied if len(denied) > 1 and (not extra or (len(extra) == 1 and len(denied) > 2)) else NOTHING


def _denied(old: Clause, new: Clause) -> Keys:
    """Return the words that one clause denies, if the other affirms them all."""
    if old.denies == new.denies or old.ends or new.ends:
        return NOTHING
    denying, affirming = (old, new) if old.denies else (new, old)
    return denying.keys if denying.keys <= affirming.keys else NOTHING


class Rule(NamedTuple):
    """How two clauses disagree, and when the newer one says by this that the older is over."""

    name: str
    keys: Callable[[Clause, Clause], Keys]
    says_so: Callable[[Clause, Clause], bool]


RULES: tuple[Rule, ...] = (
    # Two statements of the form "X, not Y" are a dispute; one that says "not Y" to a plain Y corrects it.
    Rule("names what it replaces", _names_it, lambda old, new: not old.replaced),
    Rule("ends it", _ends_it, lambda old, new: new.has_ended),  # "remove it" is a wish, "removed" a fact
    Rule("denies it", _denies_it, lambda old, new: False),
)


class Comparison:
    """Two statements that are compared clause by clause. `rare` picks the words that tell what a text is about.

    `says_so`: the newer one is known to change something, by its words or by its tags.
    """

    def __init__(self, older: str, newer: str, rare: Callable[[Collection[str]], set[str]], says_so: bool) -> None:
        self.older, self.newer, self.rare = older, newer, rare
        self.says_so = says_so or tells_of_change(newer)
        self.pairs = [(old, new) for old in clauses_of(older) for new in clauses_of(newer)]

    def share_rare(self, old: Clause, new: Clause) -> bool:
        return bool(self.rare(old.keys & new.keys))


def _by_rule(of: Comparison) -> Disagreement | None:
    for rule in RULES:
        for old, new in of.pairs:
            if (keys := rule.keys(old, new)) and of.rare(keys):
                return Disagreement(rule.name, _type(of.says_so or rule.says_so(old, new)))
            if (keys := rule.keys(new, old)) and of.rare(keys):  # the older one ended it, and it is back
                return Disagreement(rule.name, _type(of.says_so))
    return None


def _by_value(of: Comparison) -> Disagreement | None:
    enough = 1 if len(of.pairs) == 1 else 2  # a clause of several needs more than one word to be about the same thing
    for old, new in of.pairs:
        if of.rare(other_order(old, new)):
            return Disagreement("other order", _type(of.says_so))
        name = other_value(old, new) if len(old.keys & new.keys) >= enough else None
        if name is None and reworded_value(old, new):
            name = "other value"
        if name is not None and of.share_rare(old, new):
            return Disagreement(name, _type(of.says_so))
    return None


def _by_change(of: Comparison) -> Disagreement | None:
    """Compare with another order of words, if one of the two says that something changed."""
    if of.says_so:
        for old, new in of.pairs:
            if (changed_value(old, new) and of.share_rare(old, new)) or of.rare(other_version(old, new)):
                return Disagreement("says that it changed", "superseded")
    elif tells_of_change(of.older):
        for old, new in of.pairs:
            if changed_value(new, old) and of.share_rare(old, new):
                return Disagreement("says what was before a change", "contradictory")
    return None


def _by_doubt(of: Comparison) -> Disagreement | None:
    for old, new in of.pairs:
        if of.rare(may_be_replaced(old, new)) or len(of.rare(_denied(old, new))) > 1:
            return Disagreement("may deny it", "ambiguous")
    return None


_CLEAREST_FIRST = (_by_rule, _by_value, _by_change, _by_doubt)


def compare(
    older: str, newer: str, rare: Callable[[Collection[str]], set[str]], *, says_so: bool = False
) -> Disagreement | None:
    """Tell how the newer text disagrees with the older one. `rare` picks the words that tell what a text is about.

    `says_so`: it is known to change something, whatever its words are.
    """
    comparison = Comparison(older, newer, rare, says_so)
    return next((found for compared in _CLEAREST_FIRST if (found := compared(comparison))), None)


def _type(says_so: bool) -> ConflictType:
    return "superseded" if says_so else "contradictory"


# ---- memories ----


class Rival(Struct, frozen=True):
    """A live memory that contradicts the new one, how, and by which rule.

    `contradictory`: both cannot hold. `superseded`: the newer of the two says itself that the other is over.
    `ambiguous`: perhaps an exception to a rule, or two names for one thing.
    """

    memory: Memory
    type: ConflictType
    rule: str

    def conflict(self, newer: Memory, older: Memory, at: datetime, *, is_over: bool) -> Conflict:
        """Return the record of the contradiction. `is_over`: it is settled, because the newer one says so and may."""
        return Conflict(
            left=newer.uid,
            right=older.uid,
            type=self.type,
            rule=self.rule,
            detected_at=at,
            resolved_at=at if is_over else None,
        )


def find_rivals(reader: Reader, memory: Memory, alike: Sequence[Memory]) -> list[Rival]:
    """C22: find the memories in `alike` that contradict this one and share its kind or a file.

    A warning is compared with all kinds.
    """
    others = [other for other in alike if _may_disagree(memory, other)]
    if not others or memory.kind in HISTORY_KINDS:
        return []
    rarity = _Rarity(reader, Where(scope=memory.scope))
    rivals = []
    for other in others:
        older, newer = sorted((other, memory), key=lambda one: one.created_at)
        if found := compare(older.content, newer.content, rarity.rare, says_so=CORRECTION in newer.tags):
            rivals.append(Rival(other, found.type, found.rule))
    return rivals


def may_supersede(reader: Reader, newer: Memory, older: Memory) -> bool:
    """Whether the newer memory may archive the older one without asking a person.

    Not what a person pinned or made a guard, nothing in global memory, and nothing of somebody who is trusted more.
    """
    if older.status == "pinned" or older.space == GLOBAL or newer.is_low_trust:
        return False
    if newer.trust != "user" and is_guarded(reader, older):
        return False
    return TRUSTS.index(newer.trust) >= TRUSTS.index(older.trust)


class _Rarity:
    """How many memories contain a stem; each stem is looked up once, and only when it matters."""

    def __init__(self, reader: Reader, where: Where) -> None:
        self._reader = reader
        self._where = where
        self._rows = 0
        self._rows_with: dict[str, int] = {}

    def rare(self, stems: Collection[str]) -> set[str]:
        words = [stem for stem in stems if not stem.startswith("+")]
        if unknown := [word for word in words if word not in self._rows_with]:
            statistics = self._reader.statistics(unknown, self._where)
            self._rows = statistics.rows
            self._rows_with.update(statistics.rows_with)
        return {word for word in words if self._rows_with[word] <= max(ALWAYS_RARE_ROWS, self._rows * RARE_SHARE)}


def _may_disagree(memory: Memory, other: Memory) -> bool:
    if other.uid == memory.uid or other.fingerprint == memory.fingerprint or other.kind in HISTORY_KINDS:
        return False
    if memory.kind == other.kind or {memory.kind, other.kind} <= {*SETTLED_KINDS, "warning"}:
        return True
    return not set(memory.files).isdisjoint(other.files)
