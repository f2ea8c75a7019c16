"""The floor: how likely a memory answers the query, and when nothing does.

Between score and select. A score orders memories; it cannot tell that the best of them is about something else. Either
of two reasons can, and with vectors likeness adds to the first, the more the fewer telling words the query has:

    coverage   of what the words of the query are worth, the share that the memory covers; and the surprise: how
               unlikely it is that some memory holds the same words by chance. They decide key words and questions: one
               telling word that is the whole query is enough.
    fit        BM25 of the telling words, less what it takes to be found by chance in a store of that size. It decides
               prompts: it grows with the telling words that are shared, however long the prompt is.

A word is worth the more the rarer it is. Words that hold a sentence together are worth nothing, nor are words that
many of the store's own memories hold, such as the name of the project. In a small store no word is common yet, so every
store is judged as if it held a hundred ordinary memories more. Nor is a name common there because two of five memories
say it: what is rare in the world is taken so until the store is large.

A memory about a file that the query names, or that is at hand, needs no other reason (`AT_HAND`). Coverage also orders
the memories that are considered (`score.py`). Rule: nothing is shown where the best confidence is below the floor.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from heapq import nlargest
from math import exp, lgamma, log

from msgspec import Struct
from msgspec.structs import replace

from kept import bm25, text
from kept.ports import Prepared, Statistics
from kept.recall.query import SearchWords, default_expansions
from kept.recall.stems import COMMON, ORDERS, WORTHLESS

ORDINARY = 100  # memories that every store is judged to hold beside its own
_IN_ORDINARY = 0.002  # the share of them that hold a word at least
_IN_ORDINARY_COMMON = 0.2
HELD_BY_MANY = 0.3  # of the store's own memories: such a word tells nothing, unless the query has no other
MANY_ROWS = 20  # a smaller store has no such word
MOST_COVERED = 8  # words: no memory is about all that a long prompt says
STANDS_FOR = 0.9  # of a word's worth, if the memory holds another word for it
OF_AN_ORDER = 0.5  # of its worth, if it is the verb of an order
GUESSED = 0.5  # the same, if that is only what the word could have meant
SAID = (2.0, 1.5, 1.2, 0.0, 0.0)  # weights of `bm25.COLUMNS`: neither source nor kind says anything
LEAST_SHARED = 2  # words: one name alone, however many parts it has, is no fit
TERSE = 2.0  # times as much, at most: a vector of a few words is about one thing
AT_HAND = 0.9  # the confidence of a memory about a file that is named or at hand
# Of coverage, surprise and likeness, and a constant. Learned on 2026-11-17 by `python -m bench.floor --learn
# --longmemeval DIR`, from the questions of tests/golden (without the greenhouse and the ferries) and LongMemEval (MIT).
WEIGHTS = (8.51, 0.23, 13.24, -2.91)
# Of the fit, and a constant. Learned on 2026-11-18 by `python -m bench.floor --learn --prompts DIR`, from prompts of
# coding agents: 39 of 40 that no memory concerns stay below the floor.
FIT_WEIGHTS = (0.3, -3.24)


class Evidence(Struct, frozen=True, gc=False):
    """What speaks for it that a memory answers a query. The first three are shares of what the query is worth."""

    exact: float  # words that the memory holds
    stood_for: float  # words for which it holds another one
    guessed: float  # words that could have meant one that it holds
    surprise: float
    likeness: float = 0.0
    fit: float = 0.0
    is_at_hand: bool = False  # it is about a file that the query names, or that is at hand

    @property
    def coverage(self) -> float:
        """The share of the query's worth that the memory covers, from 0 to 1."""
        return min(1.0, self.exact + STANDS_FOR * self.stood_for + GUESSED * self.guessed)

    @property
    def confidence(self) -> float:
        """How likely the memory answers, from 0 to 1."""
        lifted = AT_HAND if self.is_at_hand else 0.0
        if not self.exact and not self.stood_for and not self.guessed and not self.likeness:
            return lifted
        return max(lifted, 1 / (1 + exp(-strength(self.features))))

    @property
    def features(self) -> tuple[float, ...]:
        """Return the factors of WEIGHTS, then those of FIT_WEIGHTS, each with the 1 of the constant at the end."""
        return self.coverage, self.surprise, self.likeness, 1.0, self.fit, 1.0


def strength(
    features: Sequence[float], weights: Sequence[float] = WEIGHTS, fit_weights: Sequence[float] = FIT_WEIGHTS
) -> float:
    """Return the better one of the two reasons for a memory as a number; 0 where it is as likely as not."""
    own = sum(weight * feature for weight, feature in zip(weights, features[:4], strict=True))
    return max(own, sum(weight * feature for weight, feature in zip(fit_weights, features[4:], strict=True)))


class Instead(Struct, frozen=True, gc=False):
    """Words of the query, and others that stand for them or that they could have meant, with what one is worth."""

    words: tuple[str, ...]  # one, or several that are said together
    others: tuple[str, ...]
    is_alias: bool
    worth: float

    def replaced_in(self, tokens: str, found: Container[str]) -> list[str]:
        """Return the words that are not found, if one of the others is among the tokens, each between blanks."""
        missing = [word for word in self.words if word not in found]
        return missing if missing and any(f" {other} " in tokens for other in self.others) else []


class Floor(Struct, frozen=True):
    """What the words of a query are worth in this store."""

    asked: dict[str, float]  # word → its worth
    instead: tuple[Instead, ...]  # words that are said together first
    whole: float  # what there is to cover
    match: bm25.Match  # of the telling words, in the store with ordinary memories beside it
    by_chance: float  # what it takes to be found in a store of this size
    part_of: dict[str, str] = {}  # part of an identifier → the identifier

    def evidence(
        self, held: Container[str], prepared: Prepared, likeness: float = 0.0, *, is_at_hand: bool = False
    ) -> Evidence:
        """What speaks for a memory that holds these words of the query; `likeness`: of its vector to the query's."""
        covered = self.covered(held, tokens_of(prepared))
        shared = {self.part_of.get(word, word) for word in self.asked if word in held}
        fit = self.match(prepared) - self.by_chance if len(shared) >= LEAST_SHARED else 0.0
        return replace(covered, likeness=likeness * self.terseness, fit=fit, is_at_hand=is_at_hand)

    @property
    def terseness(self) -> float:
        """Return how much more a likeness says of this query than of a prompt that speaks of many things."""
        return min(TERSE, max(1.0, MOST_COVERED / (len(self.asked) or 1)))

    def covered(self, held: Container[str], tokens: str) -> Evidence:
        """Return the same as far as it covers the query.

        `tokens` are those of the text of the memory (`tokens_of`), for words that stand for one of the query. Its kind
        and source count only where they are asked for by name.
        """
        found = {word for word in self.asked if word in held}
        exact = worth = sum(own for word, own in self.asked.items() if word in found)
        stood_for = guessed = 0.0
        for instead in self.instead:
            replaced = instead.replaced_in(tokens, found)
            if not replaced:
                continue
            own = sum(self.asked[word] for word in replaced)
            if instead.is_alias:
                stood_for += own
            else:
                guessed += own
            worth += min(own, instead.worth)
            found.update(replaced)
        whole = self.whole or 1.0
        surprise = worth - self.by_chance - _ways(len(self.asked), len(found)) if found else 0.0
        return Evidence(exact / whole, stood_for / whole, guessed / whole, surprise)


def tokens_of(prepared: Prepared) -> str:
    """Join the tokens of the text, tags and files of a memory, each between blanks."""
    return f" {prepared.words} {prepared.tag_words} {prepared.file_words} "


def floor_of(query: str, words: SearchWords, statistics: Statistics) -> Floor:
    """Return the floor for a query, by the worth of its words in these spaces."""
    asked = _worths(query, words, statistics)
    whole = sum(nlargest(MOST_COVERED, asked.values()))
    telling = {word: own for word, own in words.weights.items() if word in asked or word in words.reasons}
    match = bm25.match_of(telling, _with_ordinary(telling, statistics), SAID)
    part_of = {part: parts[0] for parts in _identifiers(query) for part in parts}
    instead = tuple(_stand_ins(asked, words, statistics))
    return Floor(asked, instead, whole, match, log(statistics.rows + ORDINARY), part_of)


def _stand_ins(asked: Container[str], words: SearchWords, statistics: Statistics) -> list[Instead]:
    """Return the words that can stand for others of the query; words that are said together come first."""
    found = []
    for key, brought in words.stand_ins.items():
        # Two words for one thing ("concise, short") are one wish; a kind and a thing of it ("push notification") two.
        others = tuple(other for other in brought if other not in asked or key in words.stand_ins.get(other, ()))
        if own := tuple(word for word in key.split() if word in asked):
            found.append(Instead(own, others, words.is_alias(key), rarity(others, statistics)))
    return sorted(found, key=lambda one: -len(one.words))


def _with_ordinary(words: Iterable[str], statistics: Statistics) -> Statistics:
    """Count these words as if the store held ordinary memories of average length as well."""
    in_ordinary = round(ORDINARY * _IN_ORDINARY_COMMON)
    rows_with = {word: statistics.rows_with.get(word, 0) + in_ordinary * (word in COMMON) for word in words}
    length = statistics.words / (statistics.rows or 1)
    return Statistics(statistics.rows + ORDINARY, round(statistics.words + ORDINARY * length), 0, rows_with)


def _worths(query: str, words: SearchWords, statistics: Statistics) -> dict[str, float]:
    """The words of the query that tell something, with what each is worth. An identifier and its parts are one word.

    The verb of an order ("add …", "fix …") tells what to do, and little of what is asked about.
    """
    tell = [word for word in words.literal if word not in WORTHLESS]
    alone = {word: rarity((word,), statistics) for word in _held_by_few(tell, statistics) or tell}
    if (first := next(iter(alone), "")) in ORDERS:
        alone[first] *= OF_AN_ORDER
    for parts in _identifiers(query):
        alone |= _shared_worths([token for token in parts if token in alone], alone)
    return alone


def _identifiers(query: str) -> list[tuple[str, ...]]:
    """Return the identifiers of a query, each once, as its tokens."""
    runs = [run for run in dict.fromkeys(query.split()) if run.isascii() and not (run.isalpha() and run[1:].islower())]
    return [parts for parts in dict.fromkeys(tuple(text.query_words(run)) for run in runs) if len(parts) > 1]


def _shared_worths(parts: Sequence[str], alone: Mapping[str, float]) -> dict[str, float]:
    """Share out the worth of the best part among all parts of an identifier."""
    together = sum(alone[part] for part in parts)
    if len(parts) < 2 or not together:  # a part that a thousand identifiers have is worth less than a float can hold
        return {}
    most = max(alone[part] for part in parts)
    return {part: alone[part] * most / together for part in parts}


def _held_by_few(words: Sequence[str], statistics: Statistics) -> list[str]:
    """Leave out the words that many memories of this store hold."""
    most = HELD_BY_MANY * statistics.rows if statistics.rows >= MANY_ROWS else statistics.rows
    return [word for word in words if statistics.rows_with.get(word, 0) <= most]


def rarity(family: tuple[str, ...], statistics: Statistics) -> float:
    """Return how much it is worth that a memory holds one of these words: the rarer they are, the more."""
    rows = statistics.rows + ORDINARY
    share = sum(_IN_ORDINARY_COMMON if word in COMMON else _IN_ORDINARY for word in family)
    # A word that nobody has used yet is as rare as one that was used once.
    held: float = max(1, sum(statistics.rows_with.get(word, 0) for word in family))
    if len(family) == 1 and _is_name(family[0]):
        held = 1 + (held - 1) * statistics.rows / rows  # counted as far as the store is large enough to tell
    return max(0.0, log(rows / min(rows, held + ORDINARY * share)))


def _is_name(word: str) -> bool:
    """Whether the word is in neither table, of what is said everywhere and of what software work is about."""
    return word not in COMMON and not default_expansions(word)


def _ways(n: int, k: int) -> float:
    """The logarithm of how many ways there are to choose k of n."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
