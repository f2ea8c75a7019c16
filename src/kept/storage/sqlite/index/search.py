"""Searching a SQLite space: FTS5 says which rows hold a word, and the best of them are found in three narrowing steps.

Mixed into reader.py. FTS5's own ranking looks up the length of every row that it finds, one after the other, and knows
nothing of feedback or age. Here it only lists ids, in a tenth of the time: thousands of them are weighed by the words
they hold and by what weights.py knows; the best hundreds are ranked by their tokens; the few that are returned are read
whole. Rule: what the index says of a row is checked against the row itself, which carries a checksum.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from heapq import nlargest
from typing import Any

import apsw

from kept import bm25, text
from kept.model import replace
from kept.ports import BY_MATCH, LIVE, Deadline, Found, Prepared, Ranking, Statistics, Where
from kept.storage.shared import check_limit, indexes, weight
from kept.storage.sqlite import rows
from kept.storage.sqlite.index import weights
from kept.storage.sqlite.rows import clauses

# Below this many rows every document frequency is counted; above, the commonest words are looked up in hot_words.
EXACT_UP_TO_ROWS = 20_000
SHORTLIST_SHARE = 0.01  # of what was found: of these the tokens are read
SHORTLIST = 5  # times as many as are wanted: of so many at least


class Searching:
    """Searches through a connection that is inside a transaction."""

    _connection: apsw.Connection
    _weights: weights.Weights
    space: str
    meta: Callable[[str], str | None]
    _fetch: Callable[..., list[Any]]
    _interrupted_at: Callable[[Deadline | None], AbstractContextManager[None]]

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
        with self._interrupted_at(deadline):
            held = self._listed(list(dict.fromkeys(words)), where, limit if newest else among)
            if newest:
                ids = sorted({id for some in held.values() for id in some}, reverse=True)
                return self._found(dict.fromkeys(ids[:limit], 0.0), words, where)
            statistics = self._statistics(held, where, is_cut=among is not None)
            relevance = ranking.relevance or bm25.scorer(words, statistics, ranking.columns, by_tokens=True)
            gains = _gains(held, statistics)
            if len(gains) > limit:
                self._add_gains(gains, list(held), also, where)
                return by_rank(self._found(self._best(gains, statistics, ranking, relevance, limit), words, where))
            return by_rank(
                Found(one.memory, one.prepared, relevance(one.prepared) * weight(one.memory, ranking))
                for one in self._found(gains, words, where)
            )

    def statistics(self, words: Sequence[str], where: Where = LIVE) -> Statistics:
        distinct = list(dict.fromkeys(words))
        total = Statistics(rows_with=dict.fromkeys(distinct, 0))
        for shelf in indexes(where):
            sql = "select rows, words, tokens from corpus where shelf = ?"
            counts = self._fetch(sql, (shelf,))
            if not counts:
                raise rows.damaged(f"The word count of the shelf {shelf}")
            n_rows, n_words, n_tokens = counts[0]
            total += Statistics(n_rows, n_words, n_tokens, self._rows_with(shelf, distinct, n_rows) if distinct else {})
        return total

    def _statistics(self, held: Mapping[str, list[int]], where: Where, *, is_cut: bool) -> Statistics:
        """The same for words whose rows have been listed: all of them need not be counted again."""
        if is_cut or any(_filter(where, shelf)[0] for shelf in indexes(where)):
            return self.statistics(list(held), where)
        bare = self.statistics((), where)
        return Statistics(bare.rows, bare.words, bare.tokens, {word: len(ids) for word, ids in held.items()})

    def vocabulary(self, beginning: str, where: Where = LIVE, *, limit: int) -> list[str]:
        check_limit(limit)
        found: set[str] = set()
        for shelf in indexes(where):
            sql = f"select term from {shelf}_vocabulary where term >= ? and term < ? limit {limit:d}"
            terms = self._fetch(sql, (beginning, beginning + "\U0010ffff"))
            found.update(str(term) for (term,) in terms)
        return sorted(found)[:limit]

    def _listed(self, words: Sequence[str], where: Where, newest: int | None) -> dict[str, list[int]]:
        """Word → the ids of the rows that hold it; only the newest so many."""
        held: dict[str, list[int]] = {word: [] for word in words}
        for shelf in indexes(where):
            conditions, values = _filter(where, shelf)
            # As one JSON list: five times faster than row by row.
            sql = f"""
                select json_group_array(id)
                from (
                  select f.rowid as id
                  from {shelf}_fts f
                  {"cross join memories m on m.id = f.rowid" if conditions else ""}
                  where {" and ".join([f"{shelf}_fts match ?", *conditions])}
                  {"" if newest is None else f"order by f.rowid desc limit {newest:d}"}
                )"""
            for word in words:
                held[word] += rows.from_json(self._fetch(sql, (self._query(word), *values))[0][0])
        if newest is not None:
            kept = set(sorted({id for ids in held.values() for id in ids}, reverse=True)[:newest])
            return {word: [id for id in ids if id in kept] for word, ids in held.items()}
        return held

    def _add_gains(self, gains: dict[int, float], words: Sequence[str], also: Sequence[str], where: Where) -> None:
        """What further words tell of the rows that were found. FTS5 walks their rows without showing them: cheap."""
        if not also:
            return
        statistics = self.statistics(also, where)
        any_of_them = " OR ".join(f"({self._query(word)})" for word in words)
        for shelf in indexes(where):
            sql = f"select json_group_array(rowid) from {shelf}_fts where {shelf}_fts match ?"
            for word in also:
                gain = bm25.idf(statistics.rows, statistics.rows_with[word])
                for id in rows.from_json(self._fetch(sql, (f"({self._query(word)}) AND ({any_of_them})",))[0][0]):
                    if id in gains:
                        gains[id] += gain

    def _best(
        self,
        gains: Mapping[int, float],
        statistics: Statistics,
        ranking: Ranking,
        relevance: bm25.Scorer,
        limit: int,
    ) -> dict[int, float]:
        """Id → rank of about the best `limit`: first by the words that a row holds, then by its tokens."""
        shortlist = max(SHORTLIST * limit, int(SHORTLIST_SHARE * len(gains)))
        average_words = statistics.words / (statistics.rows or 1)
        weight_of = self._weights.heaviest(self._connection, gains, ranking, average_words, shortlist)
        sql = f"""
            select m.id, {", ".join(f"m.{column}" for column in rows.PREPARED)}
            from json_each(?) short
            cross join memories m on m.id = short.value"""
        tokens = self._fetch(sql, (rows.json_text(list(weight_of)),))
        ranks = [(weight_of[id] * relevance(Prepared(*prepared)), id) for id, *prepared in tokens]
        return {id: rank for rank, id in nlargest(limit, ranks)}

    def _found(self, ranks: Mapping[int, float], words: Sequence[str], where: Where) -> list[Found]:
        """The memories with these ids. Raises Corrupt when a row does not bear out what the index says of it."""
        sql = f"""
            select {rows.MEMORY_SELECT}
            from json_each(?) chosen
            cross join memories m on m.id = chosen.value"""
        found = self._fetch(sql, (rows.json_text(list(ranks)),))
        shelves = indexes(where)
        if len(found) < len(ranks):
            raise rows.damaged(f"The index of the shelf {shelves[0]}, which knows a memory that is not there,")
        hits = []
        for row in found:
            memory, prepared = rows.to_memory(row, self.space), rows.to_prepared(row)
            p = prepared
            held = f"{p.words} {p.tag_words} {p.file_words} {p.source_words} {p.kind_words}"
            if rows.shelf_in(row) not in shelves or not self._holds_any(held, words):
                raise rows.damaged(f"The index of the shelf {shelves[0]}, which says that memory {memory.id} matches,")
            hits.append(Found(memory, prepared, ranks[memory.id]))
        return hits

    def _holds_any(self, tokens_of_row: str, words: Sequence[str]) -> bool:
        """Whether the tokens of a row, which its checksum covers, bear out what the index says of it."""
        held = f" {tokens_of_row} "
        for word in words:
            if word in held and f" {word} " in held:
                return True
        # Not a prepared word, perhaps ("Auth", "a-b"): ask FTS5 how it reads it.
        row_tokens = set(self._tokens(held, apsw.FTS5_TOKENIZE_DOCUMENT))
        return any(row_tokens.issuperset(self._tokens(word, apsw.FTS5_TOKENIZE_QUERY)) for word in words)

    def _query(self, word: str) -> str:
        """What to ask an index for. It holds no positions, so that of a word which FTS5 splits all parts must match."""
        if word.isascii() and word.replace("_", "a").isalnum():
            return f'"{word}"'
        return " AND ".join(f'"{token}"' for token in self._tokens(word, apsw.FTS5_TOKENIZE_QUERY)) or '""'

    def _tokens(self, string: str, reason: int) -> list[str]:
        """How FTS5 reads a text."""
        import shlex

        tokenizer, *arguments = shlex.split(text.FTS_TOKENIZE)
        tokenize = self._connection.fts5_tokenizer(tokenizer, arguments)
        read = tokenize(string.encode(), reason, None, include_offsets=False, include_colocated=False)
        return [str(token) for token in read]

    def _rows_with(self, shelf: str, words: Sequence[str], n_rows: int) -> dict[str, int]:
        found = dict.fromkeys(words, 0)
        counted: list[Any] = []
        if n_rows > EXACT_UP_TO_ROWS:
            sql = """
                select h.word, h.rows_with
                from json_each(?) asked
                cross join hot_words h on h.shelf = ? and h.word = asked.value"""
            counted = self._fetch(sql, (rows.json_text(words), shelf))
            counted_at = int(self.meta(f"hot_words_at_{shelf}") or n_rows)
            found |= {word: round(number * n_rows / counted_at) for word, number in counted}
        rare = [word for word in words if not found[word]]
        sql = f"""
            select v.term, v.doc
            from json_each(?) asked
            cross join {shelf}_vocabulary v on v.term = asked.value"""
        return found | dict(self._fetch(sql, (rows.json_text(rare),)))


def _gains(held: Mapping[str, list[int]], statistics: Statistics) -> dict[int, float]:
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


def by_rank(found: Iterable[Found]) -> list[Found]:
    """Best first; of equals, the newest."""
    return sorted(found, key=lambda hit: (-hit.rank, -hit.memory.id))


def _filter(where: Where, shelf: str) -> tuple[list[str], list[Any]]:
    """What is left to ask of a row in the index of a shelf: it stands on that shelf, and the live one has one scope."""
    conditions, values = clauses(replace(where, shelf="any", scope=None if shelf == "live" else where.scope))
    return [condition for condition in conditions if condition != "true"], values
