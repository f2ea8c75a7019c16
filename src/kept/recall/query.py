"""From what was asked to the words to look for, each with its weight.

First step of the read path. Rule: any string at all is a query. Words that were asked for weigh 1; a word
that an alias, a beginning or a misspelling brings in weighs less, and carries the reason why it is there.

Other words for the same thing, which people use without thinking.

Some come with Kept (below), some a person adds (`kept alias add`). Rule: an alias only ever adds words, they
weigh less than what was asked for, and a hit says by which alias it came.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from msgspec import Struct

from kept import text
from kept.model import Alias
from kept.ports import Deadline, Reader, Where
from kept.tables import Profile

# Each line is a group of words that stand for each other.
_GROUPS = (
    "auth authentication authorization login signin oauth",
    "db database sql",
    "api endpoint rest route",
    "config configuration settings",
    "env environment",
    "repo repository",
    "deps dependencies packages",
    "docs documentation readme",
    "ci pipeline build",
    "deploy deployment release rollout",
    "k8s kubernetes",
    "infra infrastructure",
    "perf performance speed latency",
    "ui frontend interface",
    "backend server",
    "err error exception failure",
    "test tests testing spec",
    "js javascript",
    "ts typescript",
    "py python",
    "pg postgres postgresql",
    "msg message",
    "fn function",
    "dir directory folder",
    "pkg package",
    "perms permissions access",
    "creds credentials",
    "admin administrator",
    "async asynchronous",
    "sync synchronous",
)


def default_aliases() -> dict[str, tuple[str, ...]]:
    """Word → the others of its group."""
    table: dict[str, tuple[str, ...]] = {}
    for line in _GROUPS:
        group = line.split()
        for word in group:
            table[word] = tuple(other for other in group if other != word)
    return table


def expansions(words: Iterable[str], own: Iterable[Alias], *, with_defaults: bool = True) -> dict[str, str]:
    """Prepared word to look for as well → the word of the query that brought it in. What was asked for is not in it."""
    asked = list(words)
    tables = [_prepared((alias.word, alias.expands_to) for alias in own)]
    if with_defaults:
        tables.append(_prepared_defaults())
    found: dict[str, str] = {}
    for word in asked:
        for table in tables:
            for other in table.get(word, ()):
                if other not in asked:
                    found.setdefault(other, word)
    return found


def as_mapping(own: Iterable[Alias]) -> Mapping[str, tuple[str, ...]]:
    """What is in force: the defaults, with a person's own lines in front."""
    return default_aliases() | {alias.word: alias.expands_to for alias in own}


def _prepared(groups: Iterable[tuple[str, Iterable[str]]]) -> dict[str, tuple[str, ...]]:
    """The same table in the words that an index holds."""
    table: dict[str, tuple[str, ...]] = {}
    for word, others in groups:
        tokens = [token for other in others for token in text.words(other)]
        for key in text.words(word):
            table[key] = tuple(dict.fromkeys((*table.get(key, ()), *tokens)))
    return table


@cache
def _prepared_defaults() -> dict[str, tuple[str, ...]]:
    return _prepared(default_aliases().items())


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
    deadline: Deadline,
) -> Asked:
    """Add what words that nobody has written could have meant: a beginning, or a slip of the keyboard."""
    for word in unknown:
        if deadline.is_over():
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
