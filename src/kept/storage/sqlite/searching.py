"""Searching a SQLite space: FTS5 finds and orders the candidates, in one query a shelf.

Mixed into reader.py. What makes a search cheap is what it does not read: ids and ranks come from the index of words and
from `memories_weighed`, and only the rows that are returned are read whole. Rule: what the index says of a row is
checked against the row itself, which carries a checksum.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import apsw

from kept import bm25, text, worth
from kept.model import replace
from kept.ports import BY_MATCH, LIVE, Found, Ranking, Statistics, Where
from kept.settings import OTHER
from kept.storage.shared import check_limit, indexes, weight
from kept.storage.sqlite import rows
from kept.storage.sqlite.filters import clauses

# Below this many rows every document frequency is counted; above, the commonest words are looked up in hot_words.
EXACT_UP_TO_ROWS = 20_000

# worth.FACTORS in SQL, on the columns of the index memories_weighed and none beside. The ? is now, in seconds.
_FACTORS: Mapping[str, str] = {
    "feedback": f"exp({worth.FEEDBACK_STEEPNESS} * m.feedback)",
    "recency": f"""1.0 / (1.0 + {worth.RECENCY_PER_DAY / 86_400} *
        max(0.0, ? - unixepoch(coalesce(m.last_hit_at, m.created_at))))""",
    "use": f"min({worth.MOST_USE}, 1.0 + {worth.USE_STEEPNESS} * ln(1.0 + m.use_count))",
    "status": " ".join(
        ["case m.status", *(f"when '{name}' then {value}" for name, value in worth.STATUS_FACTOR.items()), "end"]
    ),
    "importance": "0.5 + 0.5 * m.importance",
}


class Searching:
    """Searches through a connection that is inside a transaction."""

    _connection: apsw.Connection
    space: str
    meta: Callable[[str], str | None]
    _fetch: Callable[..., list[Any]]
    _interrupted_when: Callable[[Callable[[], bool] | None], AbstractContextManager[None]]

    def search(
        self,
        words: Sequence[str],
        where: Where = LIVE,
        *,
        limit: int,
        ranking: Ranking = BY_MATCH,
        among: int | None = None,
        newest: bool = False,
        is_late: Callable[[], bool] | None = None,
    ) -> list[Found]:
        check_limit(limit)
        if not words:
            return []
        shelves = indexes(where)
        found: list[Found] = []
        with self._interrupted_when(is_late):
            for shelf in shelves:
                sql, values = _query(shelf, words, where, limit, None if newest else ranking, among)
                found += [self._found(shelf, rank, row, words) for rank, *row in self._fetch(sql, values)]
        if newest:
            found.sort(key=lambda hit: -hit.memory.id)
        else:
            if len(shelves) > 1:  # each index has its own statistics: only a common measure makes one order of them
                relevance = bm25.scorer(words, self.statistics(words, where), ranking.columns, by_tokens=True)
                found = [
                    Found(hit.memory, hit.prepared, relevance(hit.prepared) * weight(hit.memory, ranking))
                    for hit in found
                ]
            found.sort(key=lambda hit: (-hit.rank, -hit.memory.id))
        return found[:limit]

    def statistics(self, words: Sequence[str], where: Where = LIVE) -> Statistics:
        distinct = list(dict.fromkeys(words))
        total = Statistics(rows_with=dict.fromkeys(distinct, 0))
        for shelf in indexes(where):
            sql = f"select rows, words, tokens from corpus where shelf = ? and {rows.CORPUS_IS_SEALED}"
            counts = self._fetch(sql, (shelf,))
            if not counts:
                raise rows.damaged(f"The word count of the shelf {shelf}")
            n_rows, n_words, n_tokens = counts[0]
            total += Statistics(n_rows, n_words, n_tokens, self._rows_with(shelf, distinct, n_rows))
        return total

    def vocabulary(self, beginning: str, where: Where = LIVE, *, limit: int) -> list[str]:
        check_limit(limit)
        found: set[str] = set()
        for shelf in indexes(where):
            sql = f"select term from {shelf}_vocabulary where term >= ? and term < ? limit {limit:d}"
            terms = self._fetch(sql, (beginning, beginning + "\U0010ffff"))
            found.update(str(term) for (term,) in terms)
        return sorted(found)[:limit]

    def _found(self, shelf: str, rank: float, row: Sequence[Any], words: Sequence[str]) -> Found:
        memory, prepared = rows.to_memory(row, self.space), rows.to_prepared(row)
        p = prepared
        held = f"{p.words} {p.tag_words} {p.file_words} {p.source_words} {p.kind_words}"
        if rows.shelf_in(row) != shelf or not self._holds_any(held, words):
            raise rows.damaged(f"The index of the shelf {shelf}, which says that memory {memory.id} matches,")
        return Found(memory, prepared, rank)

    def _holds_any(self, tokens_of_row: str, words: Sequence[str]) -> bool:
        """Whether the tokens of a row, which its checksum covers, bear out what the index says of it."""
        held = f" {tokens_of_row} "
        for word in words:
            if word in held and f" {word} " in held:
                return True
        # Not a prepared word, perhaps ("Auth", "a-b"): ask FTS5 how it reads it.
        tokenizer, *arguments = shlex.split(text.FTS_TOKENIZE)
        tokenize = self._connection.fts5_tokenizer(tokenizer, arguments)

        def tokens(string: str, reason: int) -> set[Any]:
            return set(tokenize(string.encode(), reason, None, include_offsets=False, include_colocated=False))

        row_tokens = tokens(held, apsw.FTS5_TOKENIZE_DOCUMENT)
        return any(tokens(word, apsw.FTS5_TOKENIZE_QUERY) <= row_tokens for word in words)

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


def _query(
    shelf: str, words: Sequence[str], where: Where, limit: int, ranking: Ranking | None, among: int | None
) -> tuple[str, tuple[Any, ...]]:
    """The rows of a shelf that hold one of the words, each behind its rank; without a ranking, the newest ones."""
    # A memory in the index of a shelf stands on that shelf, and the live one has only one scope.
    conditions, filter_values = clauses(replace(where, shelf="any", scope=None if shelf == "live" else where.scope))
    is_filtered = set(conditions) != {"true"}
    match, match_values = ("0.0", []) if ranking is None else _relevance(shelf, ranking)
    weight, weight_values = ("1.0", []) if ranking is None else _weight(ranking)
    is_weighed = ranking is not None and bool(ranking.factors)
    newest = limit if ranking is None else among
    sql = f"""
        select best.rank, {rows.MEMORY_SELECT}
        from (
          select held.id, held.match * {weight} as rank
          from (
            select f.rowid as id, {match} as match
            from {shelf}_fts f
            {"cross join memories m on m.id = f.rowid" if is_filtered else ""}
            where {shelf}_fts match ? and {" and ".join(conditions)}
            {"" if newest is None else f"order by f.rowid desc limit {newest:d}"}
          ) held
          {"cross join memories m indexed by memories_weighed on m.id = held.id" if is_weighed else ""}
          {"" if ranking is None else "order by rank desc, held.id desc"}
          limit {limit:d}
        ) best
        cross join memories m on m.id = best.id"""
    expression = " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
    return sql, (*weight_values, *match_values, expression, *filter_values)


def _relevance(shelf: str, ranking: Ranking) -> tuple[str, list[Any]]:
    """BM25 in SQL, and its values. FTS5's own is negative: the lower, the better."""
    return f"-bm25({shelf}_fts, ?, ?, ?, ?, ?)", [*ranking.columns]


def _weight(ranking: Ranking) -> tuple[str, list[Any]]:
    """The factors in SQL, and their values."""
    product, values = ["1.0"], []  # type: tuple[list[str], list[Any]]
    for name in ranking.factors:
        if name == "kind":
            weights = {kind: weight for kind, weight in ranking.kind_weights.items() if kind != OTHER}
            product.append(f"case m.kind {'when ? then ? ' * len(weights)}else ? end")
            values += [value for row in weights.items() for value in row]
            values.append(ranking.kind_weights[OTHER])
        else:
            product.append(_FACTORS[name])
            if name == "recency" and ranking.now is not None:
                values.append(ranking.now.timestamp())
    return " * ".join(f"({factor})" for factor in product), values
