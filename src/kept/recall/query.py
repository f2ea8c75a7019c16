"""From a query to the words to look for, each with its weight.

First step of the read path. Words of the query weigh 1. Words that an alias brings in (`aliases.py`), or that an
unknown word could have meant (a beginning, a misspelling), weigh less, and a hit says how each came in. Rule: any
string at all is a query.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kept import text
from kept.model import Alias
from kept.ports import Deadline, Where
from kept.recall import Circumstances, Request, profile_of, where_of
from kept.recall.aliases import expansions, searched
from kept.recall.stems import COMMON, WORTHLESS

ASKED_FOR = "asked for"  # the reason of a word that is in the query itself
ALIAS_OF = "alias of"
ALIAS_WEIGHT = 0.5
PREFIX_WEIGHT = 0.4
FUZZY_WEIGHT = 0.4
_MOST_PER_WORD = 4  # variants that one unknown word may bring in
_SHORTEST_GUESS = 4  # letters: a shorter word is near to everything
MOST_READ = 256  # words of a prompt
_NEIGHBOURHOOD = 5_000  # words with the same beginning that are compared


class SearchWords(Struct, frozen=True):
    """The words to look for: prepared word → weight; and for those that are not in the query, how they came in."""

    weights: dict[str, float]
    reasons: dict[str, str] = {}
    stand_ins: dict[
        str, tuple[str, ...]
    ] = {}  # word of the query → the words, or words said together, brought in for it

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(self.weights)

    @property
    def literal(self) -> tuple[str, ...]:
        """Those that are in the query itself."""
        return tuple(word for word in self.weights if word not in self.reasons)

    def is_alias(self, word: str) -> bool:
        """Whether aliases stand for this word of the query; else they are what it could have meant."""
        others = (token for phrase in self.stand_ins.get(word, ()) for token in phrase.split())
        return any(self.reasons.get(other) == f"{ALIAS_OF} {word}" for other in others)

    def reason(self, word: str) -> str:
        """How a word came in."""
        return self.reasons.get(word, ASKED_FOR)

    def with_words(self, weight: float, how: str, brought: Mapping[str, Sequence[str]]) -> "SearchWords":
        """The same with more words (word of the query → others), none of which replaces one that is there."""
        weights, reasons, stand_ins = dict(self.weights), dict(self.reasons), dict(self.stand_ins)
        for word, others in brought.items():
            if not others:
                continue
            stand_ins[word] = tuple(dict.fromkeys((*stand_ins.get(word, ()), *others)))
            for other in (token for phrase in others for token in searched(phrase)):
                if other not in weights and other not in WORTHLESS:
                    weights[other], reasons[other] = weight, f"{how} {word}"
        return SearchWords(weights, reasons, stand_ins)


def search_words(request: Request, circumstances: Circumstances) -> SearchWords:
    """The words of the query, and their aliases if the profile wants them."""
    profile = profile_of(request, circumstances.settings)
    asked = _asked(request.query)
    words = SearchWords({word: profile.filler_weight if word in WORTHLESS else 1.0 for word in asked})
    if profile.aliases:
        own = [alias for reader in circumstances.readers for alias in reader.all(Alias)]
        words = words.with_words(ALIAS_WEIGHT, ALIAS_OF, expansions(words.all, own))
    return words


def _asked(query: str) -> list[str]:
    """The words of the query; of a long prompt, those that tell the most."""
    words = text.query_words(query, MOST_READ)
    if len(words) <= text.MAX_QUERY_WORDS:
        return words
    telling = sorted(words, key=lambda word: (word in WORTHLESS, word in COMMON))[: text.MAX_QUERY_WORDS]
    return [word for word in words if word in telling]


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
            words = words.with_words(PREFIX_WEIGHT, "begins with", {word: longer})
        if profile.fuzzy_share:
            near = _near(word, circumstances, where, profile.fuzzy_share)
            words = words.with_words(FUZZY_WEIGHT, "near", {word: near})
    return words


def _near(word: str, circumstances: Circumstances, where: Where, share: float) -> list[str]:
    from rapidfuzz import distance, process  # takes 10 ms to import, and most queries have no unknown word

    edits = max(1, round(share * len(word)))
    # FTS5 counts the rows of every word that it lists, so ask for few first: a slip is seldom at the beginning.
    for beginning in (word[:3], word[:2], word[:1]):
        known = _vocabulary(beginning, circumstances, where, limit=_NEIGHBOURHOOD)
        if near := process.extract(word, known, scorer=distance.OSA.distance, score_cutoff=edits, limit=_MOST_PER_WORD):
            return [other for other, _, _ in near]
    return []


def _vocabulary(beginning: str, circumstances: Circumstances, where: Where, *, limit: int) -> list[str]:
    return [word for reader in circumstances.readers for word in reader.vocabulary(beginning, where, limit=limit)]
