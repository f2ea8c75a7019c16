"""From what was asked to the words to look for, each with its weight.

First step of the read path. Rule: any string at all is a query. Words that were asked for weigh 1; a word
that an alias, a beginning or a misspelling brings in weighs less, and carries the reason why it is there.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from kept import text
from kept.model import Alias
from kept.ports import Reader, Where
from kept.recall.aliases import expansions
from kept.tables import Profile

ASKED_FOR = "asked for"  # the reason of a word that stands in the query itself
ALIAS_WEIGHT = 0.4
PREFIX_WEIGHT = 0.4
FUZZY_WEIGHT = 0.4
_MOST_PER_WORD = 4  # variants that one misspelt word may bring in
_SHORTEST_GUESS = 4  # letters: below, everything is near to everything
_NEIGHBOURHOOD = 5_000  # words with the same beginning that are compared


class Asked(Struct, frozen=True):
    """What to look for: prepared word → weight, and for words that were not asked for, how they came in."""

    weights: dict[str, float]
    reasons: dict[str, str] = {}

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.weights)

    @property
    def literal(self) -> tuple[str, ...]:
        return tuple(word for word in self.weights if word not in self.reasons)

    def with_words(self, weight: float, reasons: dict[str, str]) -> "Asked":
        """The same, with more words, none of which replaces one that is there."""
        new = {word: reason for word, reason in reasons.items() if word not in self.weights}
        return Asked(self.weights | dict.fromkeys(new, weight), self.reasons | new)


def understand(query: str, profile: Profile, own_aliases: Iterable[Alias]) -> Asked:
    """The words of the query, and their aliases if the profile wants them."""
    asked = Asked(dict.fromkeys(text.query_words(query), 1.0))
    if profile.aliases:
        found = expansions(asked.words, own_aliases)
        asked = asked.with_words(ALIAS_WEIGHT, {word: f"alias of {of}" for word, of in found.items()})
    return asked


def guess(
    asked: Asked,
    unknown: Sequence[str],
    readers: Sequence[Reader],
    where: Where,
    profile: Profile,
    is_late: Callable[[], bool],
) -> Asked:
    """Add what words that nobody has written could have meant: a beginning, or a slip of the keyboard."""
    for word in unknown:
        if is_late():
            break
        if len(word) < _SHORTEST_GUESS:
            continue
        if profile.prefix:
            longer = [w for reader in readers for w in reader.vocabulary(word, where, limit=_MOST_PER_WORD)]
            reasons = dict.fromkeys(longer[:_MOST_PER_WORD], f"begins with {word}")
            asked = asked.with_words(PREFIX_WEIGHT, reasons)
        if profile.fuzzy_share:
            reasons = dict.fromkeys(_near(word, readers, where, profile.fuzzy_share), f"near {word}")
            asked = asked.with_words(FUZZY_WEIGHT, reasons)
    return asked


def _near(word: str, readers: Sequence[Reader], where: Where, share: float) -> list[str]:
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    edits = max(1, round(share * len(word)))
    # FTS5 counts the rows of every word that it lists, so few are asked for: a slip is seldom at the beginning.
    for beginning in (word[:3], word[:2], word[:1]):
        known = [w for reader in readers for w in reader.vocabulary(beginning, where, limit=_NEIGHBOURHOOD)]
        if near := process.extract(word, known, scorer=OSA.distance, score_cutoff=edits, limit=_MOST_PER_WORD):
            return [other for other, _, _ in near]
    return []
