"""Ranking over postings: how every engine searches memories, and finds those that are alike.

An engine only answers which rows hold a word (`Index`); the rest is arithmetic and the same everywhere. A search
narrows in three steps: thousands of ids are weighed by the words they hold and by weights.py, the best hundreds are
ranked by their tokens, and the few that are returned are read whole. Common words are counted on a sample, and texts
that may be about the same thing meet by a few of their words, their handles.
Rule: an index proposes. The engine checks each proposed row against the row itself.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from heapq import nlargest
from typing import TYPE_CHECKING, Any, Protocol

from kept import bm25, text
from kept.model import Memory, Scope
from kept.ports import ANYWHERE, BY_MATCH, COMMON_HANDLE, LIVE, Deadline, Found, Prepared, Ranking, Statistics, Where
from kept.storage.shared import check_limit, index_of, indexes, text_of, weight
from kept.storage.weights import ChunkRows, Weights

# Below this many rows every document frequency is counted; above, the commonest words are looked up as hot words.
EXACT_UP_TO_ROWS = 20_000
SAMPLE = 8_192  # rows: the count of a word that 2 % of them hold is right within 8 %, its weight within 2 %
LOOK_EVERY = 64  # events: a writer need not notice at once that a shelf has outgrown its hot words
_HOT_SHARE = 0.02
_GROWTH = 1.5  # count again when a shelf has grown by half
SHORTLIST_SHARE = 0.01  # of the matches: of these the tokens are read
SHORTLIST = 5  # times as many as are wanted: of that many at least

Postings = dict[str, list[int]]  # word → ids of the rows that hold it


class Index(Protocol):
    """What an engine knows of its memories by their words. A shelf is one of `shared.indexes`."""

    @property
    def narrowing(self) -> "Narrowing | None":
        """How to choose among thousands of matches; None: the space is small, and every match is ranked."""

    def until(self, deadline: Deadline | None) -> AbstractContextManager[None]:
        """Raise TooLate inside the block, soon after the deadline is over."""

    def postings(
        self, words: Sequence[str], where: Where, *, newest: int | None = None, beside: Sequence[str] = ()
    ) -> Postings:
        """The rows that hold each word; with `newest`, of all that are found only that many.

        `beside`: only rows that also hold one of these words.
        """

    def counts(self, shelf: str) -> tuple[int, int, int]:
        """Rows, words and tokens of a shelf."""

    def rows_with(self, shelf: str, words: Sequence[str]) -> dict[str, int]:
        """How many rows hold each word, counted; a word that none holds may be missing."""

    def memories(
        self, ids: Sequence[int], words: Sequence[str] = (), where: Where = ANYWHERE
    ) -> Sequence[tuple[Any, Prepared]]:
        """The memories with these ids, in that order, as far as they exist: whole, or as `Found.traits`.

        With `words`, raises Corrupt when one is missing, holds none of them, or stands on another shelf.
        """

    def terms(self, shelf: str, beginning: str, limit: int) -> list[str]:
        """The first words of the shelf, in order, that begin so."""

    def listed(self, handles: Sequence[int], newest: int) -> dict[int, list[int]]:
        """The newest memories under each handle, newest first; a handle that none has may be missing."""


class Narrowing(ChunkRows, Protocol):
    """What an engine for large spaces knows beside its postings."""

    weights: Weights

    def hot_words(self, shelf: str, words: Sequence[str]) -> tuple[int, dict[str, int]]:
        """How many rows the shelf had when its common words were counted (0: never), and the counts of these."""

    def tokens(self, ids: Sequence[int]) -> Iterable[tuple[int, Prepared]]:
        """The tokens of these rows."""


class IndexReader:
    """Searches for the reader of any engine, through what its `index` answers."""

    if TYPE_CHECKING:  # an attribute of some readers, a property of others

        @property
        def index(self) -> Index: ...

    def search(
        self,
        words: Sequence[str],
        where: Where = LIVE,
        *,
        limit: int,
        ranking: Ranking = BY_MATCH,
        also: Sequence[str] = (),
        among: int | None = None,
        newest: bool = False,
        deadline: Deadline | None = None,
    ) -> list[Found]:
        check_limit(limit)
        index = self.index
        with index.until(deadline):
            held = index.postings([*dict.fromkeys(words)], where, newest=limit if newest else among)
            if newest:
                latest = sorted({id for ids in held.values() for id in ids}, reverse=True)[:limit]
                return [Found(*row) for row in index.memories(latest, words, where)]
            statistics = self._statistics(held, where, is_cut=among is not None)
            match = ranking.match or bm25.match_of(words, statistics, ranking.columns, by_tokens=True)
            gains = gains_of(held, statistics)
            if index.narrowing is None or len(gains) <= limit:
                matches = index.memories([*gains], words, where)
                own = [match(tokens) for _, tokens in matches]
                ranked = zip(matches, own, strict=True)
                found = [Found(one, tokens, fit * weight(one, ranking), fit) for (one, tokens), fit in ranked]
            else:
                self._add_gains(gains, [*held], also, where)
                ranks = _best(index.narrowing, gains, statistics, ranking, match, limit)
                matches = index.memories([*ranks], words, where)
                found = [Found(one, tokens, *ranks[one.id]) for one, tokens in matches]
        return sorted(found, key=lambda hit: (-hit.rank, -hit.traits.id))[:limit]

    def statistics(self, words: Sequence[str], where: Where = LIVE) -> Statistics:
        distinct = list(dict.fromkeys(words))
        total = Statistics(rows_with=dict.fromkeys(distinct, 0))
        for shelf in indexes(where):
            n_rows, n_words, n_tokens = self.index.counts(shelf)
            counted = rows_with(self.index, shelf, distinct, n_rows) if distinct else {}
            total += Statistics(n_rows, n_words, n_tokens, counted)
        return total

    def alike(self, texts: Sequence[Sequence[str]], scope: Scope, *, limit: int) -> list[list[Memory]]:
        check_limit(limit)
        wanted = [sorted(_numbers(text.handles(words), scope)) for words in texts]
        listed = self.index.listed(sorted({handle for handles in wanted for handle in handles}), COMMON_HANDLE)
        found = [_most_shared([listed[one] for one in handles if one in listed], len(handles)) for handles in wanted]
        read = self.index.memories(sorted({id for ids in found for id in ids[:limit]}))
        by_id = {one.id: Found(one, tokens).memory for one, tokens in read}
        return [[by_id[id] for id in ids[:limit] if id in by_id] for ids in found]

    def prepared(self, ids: Sequence[int]) -> dict[int, Prepared]:
        if (narrowing := self.index.narrowing) is not None:
            return dict(narrowing.tokens(ids))
        return {one.id: tokens for one, tokens in self.index.memories(ids)}

    def vocabulary(self, beginning: str, where: Where = LIVE, *, limit: int) -> list[str]:
        check_limit(limit)
        return sorted({term for shelf in indexes(where) for term in self.index.terms(shelf, beginning, limit)})[:limit]

    def _statistics(self, held: Postings, where: Where, *, is_cut: bool) -> Statistics:
        """The same for words whose rows have been listed: if all of them were, they need not be counted again."""
        is_filtered = where != Where(shelf=where.shelf, scope=where.scope)
        if is_cut or is_filtered or (where.scope is not None and indexes(where) != ("live",)):
            return self.statistics(list(held), where)
        bare = self.statistics((), where)
        return Statistics(bare.rows, bare.words, bare.tokens, {word: len(ids) for word, ids in held.items()})

    def _add_gains(self, gains: dict[int, float], words: Sequence[str], also: Sequence[str], where: Where) -> None:
        """Add what further words tell of the rows that were found. Engines walk their rows without showing them."""
        if not also:
            return
        statistics = self.statistics(also, where)
        held = self.index.postings(also, Where(shelf=where.shelf, scope=where.scope), beside=words)
        for word, ids in held.items():
            gain = bm25.idf(statistics.rows, statistics.rows_with[word])
            for id in ids:
                if id in gains:
                    gains[id] += gain


def gains_of(held: Mapping[str, Sequence[int]], statistics: Statistics) -> dict[int, float]:
    """Id → how much the words that it holds tell, all together."""
    gains: dict[int, float] = {}
    for word, ids in sorted(held.items(), key=lambda of_word: -len(of_word[1])):
        gain = bm25.idf(statistics.rows, statistics.rows_with[word])
        if not gains:  # the longest list, at once
            gains = dict.fromkeys(ids, gain)
            continue
        for id in ids:
            gains[id] = gains.get(id, 0.0) + gain
    return gains


def _best(
    narrowing: Narrowing,
    gains: Mapping[int, float],
    statistics: Statistics,
    ranking: Ranking,
    match: bm25.Match,
    limit: int,
) -> dict[int, tuple[float, float]]:
    """Id → rank and match of about the best `limit`: first by the words that a row holds, then by its tokens."""
    shortlist = max(SHORTLIST * limit, int(SHORTLIST_SHARE * len(gains)))
    average_words = statistics.words / (statistics.rows or 1)
    weight_of = narrowing.weights.heaviest(narrowing, gains, ranking, average_words, shortlist)
    matches = [(id, match(tokens)) for id, tokens in narrowing.tokens([*weight_of])]
    ranks = [(weight_of[id] * own, id, own) for id, own in matches]
    return {id: (rank, own) for rank, id, own in nlargest(limit, ranks)}


def rows_with(index: Index, shelf: str, words: Sequence[str], n_rows: int) -> dict[str, int]:
    """How many of the rows of a shelf hold each word: estimated for the common words of large ones, else counted."""
    found = dict.fromkeys(words, 0)
    if index.narrowing is not None and n_rows > EXACT_UP_TO_ROWS:
        counted_at, counted = index.narrowing.hot_words(shelf, words)
        found |= {word: round(number * n_rows / (counted_at or n_rows)) for word, number in counted.items()}
    return found | index.rows_with(shelf, [word for word in words if not found[word]])


# Hot words. An index counts the rows of a word by walking them: 11 ms for one common word among a million rows. So the
# words that more than 2 % of the rows hold are counted in advance, on a sample of one size, so that no write waits for
# long (0.1 s, once in a while), and scaled by how much the shelf has grown since.


def has_outgrown(n_rows: int, counted_at: int | None) -> bool:
    """Whether the hot words of a shelf with that many rows are to be counted, again or for the first time."""
    return n_rows > EXACT_UP_TO_ROWS and (counted_at is None or n_rows >= counted_at * _GROWTH)


def hot_words_of(sample: Iterable[Sequence[object]], n_rows: int) -> dict[str, int]:
    """Common word → how many of all rows hold it, by a sample of rows, each given as its columns of tokens."""
    held: Counter[str] = Counter()
    sampled = 0
    for columns in sample:
        sampled += 1
        held.update({word for column in columns for word in str(column).split()})
    return {word: max(1, round(n * n_rows / sampled)) for word, n in held.items() if n > _HOT_SHARE * sampled}


# Handles. A search by words costs 20 µs a word, which is more than all the rest of remembering. So each live memory is
# also listed under a few of its words (text.handles), as numbers, and a batch of new texts is looked up at once. A
# number leads to candidates only; their texts decide. So two words with one number cost time and change nothing.


def handles_of(memory: Memory) -> set[int]:
    """The numbers under which a memory is listed: none, once it is archived or forgotten."""
    if index_of(memory) not in ("live", "library"):
        return set()
    return _numbers(text.handles_of(text_of(memory)), memory.scope)


def handles_of_words(words: Sequence[str], scope: Scope) -> set[int]:
    """The numbers under which a live memory with these words is listed."""
    return _numbers(text.handles(words), scope)


def _numbers(handles: Iterable[str], scope: Scope) -> set[int]:
    start = zlib.crc32(scope.encode())
    return {zlib.crc32(handle.encode(), start) for handle in handles}


def _most_shared(lists: Sequence[Sequence[int]], n_handles: int) -> list[int]:
    """The ids that are on enough of these lists, those on most first; of equals the newest."""
    together = [id for ids in lists for id in ids]
    if n_handles > 1 and len(set(together)) == len(together):
        return []  # as for most texts: nothing shares two
    enough = text.enough_handles(n_handles)
    return [-id for _, id in sorted((-times, -id) for id, times in Counter(together).items() if times >= enough)]
