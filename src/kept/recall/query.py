"""From a query to the words to look for, each with its weight.

First step of the read path. Words of the query weigh 1. Words that an alias brings in, or that an unknown word could
have meant (a beginning, a misspelling), weigh less, and a hit says how each came in. Aliases come with Kept (below) or
from a person (`kept alias add`); they only ever add words. Rule: any string at all is a query.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from msgspec import Struct

from kept import text
from kept.model import Alias
from kept.ports import Deadline, Where
from kept.recall import Circumstances, Request, profile_of, where_of

ASKED_FOR = "asked for"  # the reason of a word that is in the query itself
ALIAS_WEIGHT = 0.4
PREFIX_WEIGHT = 0.4
FUZZY_WEIGHT = 0.4
_MOST_PER_WORD = 4  # variants that one unknown word may bring in
_SHORTEST_GUESS = 4  # letters: a shorter word is near to everything
_NEIGHBOURHOOD = 5_000  # words with the same beginning that are compared

# The default aliases: groups of words that stand for each other.
_GROUPS = """
    auth authentication authorization login signin oauth | perms permissions access | creds credentials
    admin administrator | db database sql | pg postgres postgresql | api endpoint rest route | backend server
    ui frontend interface | config configuration settings | env environment | repo repository
    deps dependencies packages | pkg package | docs documentation readme | ci pipeline build
    deploy deployment release rollout | k8s kubernetes | infra infrastructure | perf performance speed latency
    err error exception failure | test tests testing spec | js javascript | ts typescript | py python | msg message
    fn function | dir directory folder | async asynchronous | sync synchronous"""


class SearchWords(Struct, frozen=True):
    """The words to look for: prepared word → weight; and for those that are not in the query, how they came in."""

    weights: dict[str, float]
    reasons: dict[str, str] = {}

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(self.weights)

    @property
    def literal(self) -> tuple[str, ...]:
        """Those that are in the query itself."""
        return tuple(word for word in self.weights if word not in self.reasons)

    def reason(self, word: str) -> str:
        """How a word came in."""
        return self.reasons.get(word, ASKED_FOR)

    def with_words(self, weight: float, reasons: Mapping[str, str]) -> "SearchWords":
        """The same with more words, none of which replaces one that is there."""
        new = {word: reason for word, reason in reasons.items() if word not in self.weights}
        return SearchWords(self.weights | dict.fromkeys(new, weight), self.reasons | new)


def search_words(request: Request, circumstances: Circumstances) -> SearchWords:
    """The words of the query, and their aliases if the profile wants them."""
    words = SearchWords(dict.fromkeys(text.query_words(request.query), 1.0))
    if profile_of(request, circumstances.settings).aliases:
        own = [alias for reader in circumstances.readers for alias in reader.all(Alias)]
        words = words.with_words(ALIAS_WEIGHT, _expansions(words.all, own))
    return words


def guess(
    words: SearchWords, unknown: Sequence[str], request: Request, circumstances: Circumstances, deadline: Deadline
) -> SearchWords:
    """Add the words that each unknown one could have meant: it is their beginning, or a slip of the keyboard."""
    profile, where = profile_of(request, circumstances.settings), where_of(request)
    for word in unknown:
        if deadline.is_over():
            break
        if len(word) < _SHORTEST_GUESS:
            continue
        if profile.prefix:
            longer = _vocabulary(word, circumstances, where, limit=_MOST_PER_WORD)[:_MOST_PER_WORD]
            words = words.with_words(PREFIX_WEIGHT, dict.fromkeys(longer, f"begins with {word}"))
        if profile.fuzzy_share:
            near = _near(word, circumstances, where, profile.fuzzy_share)
            words = words.with_words(FUZZY_WEIGHT, dict.fromkeys(near, f"near {word}"))
    return words


def _near(word: str, circumstances: Circumstances, where: Where, share: float) -> list[str]:
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    edits = max(1, round(share * len(word)))
    # FTS5 counts the rows of every word that it lists, so ask for few first: a slip is seldom at the beginning.
    for beginning in (word[:3], word[:2], word[:1]):
        known = _vocabulary(beginning, circumstances, where, limit=_NEIGHBOURHOOD)
        if near := process.extract(word, known, scorer=OSA.distance, score_cutoff=edits, limit=_MOST_PER_WORD):
            return [other for other, _, _ in near]
    return []


def _vocabulary(beginning: str, circumstances: Circumstances, where: Where, *, limit: int) -> list[str]:
    return [word for reader in circumstances.readers for word in reader.vocabulary(beginning, where, limit=limit)]


def as_mapping(own: Iterable[Alias]) -> dict[str, tuple[str, ...]]:
    """The aliases in force: the defaults, with a person's own lines in front."""
    return _default_aliases() | {alias.word: alias.expands_to for alias in own}


def _expansions(words: Sequence[str], own: Iterable[Alias]) -> dict[str, str]:
    """Prepared word to look for as well → the reason."""
    tables = (_prepared((alias.word, alias.expands_to) for alias in own), _prepared_defaults())
    found: dict[str, str] = {}
    for word in words:
        for table in tables:
            for other in table.get(word, ()):
                found.setdefault(other, f"alias of {word}")
    return found


def _default_aliases() -> dict[str, tuple[str, ...]]:
    """Word → the others of its group."""
    groups = [group.split() for group in _GROUPS.replace("\n", "|").split("|")]
    return {word: tuple(other for other in group if other != word) for group in groups for word in group}


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
    return _prepared(_default_aliases().items())
