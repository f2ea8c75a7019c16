"""Reading a SQLite space: rows, pages, searches, the journal. Every query of the storage is in this file.

SQL text is assembled from constants of this file and of rows.py; values are always bound.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import apsw

from kept import bm25
from kept.model import Event, Memory
from kept.ports import LIVE, Found, R, Statistics, TooLate, Where
from kept.storage.shared import check_limit, indexes, tombstone
from kept.storage.sqlite import rows

# Below this many rows every document frequency is counted; above, the commonest words are looked up in hot_words.
EXACT_UP_TO_ROWS = 20_000
PROGRESS_STEPS = 2_000  # virtual machine steps between two looks at the clock: some tens of microseconds


class SqliteReader:
    """One consistent look at the file, through a connection that is inside a transaction."""

    def __init__(self, space: str, connection: apsw.Connection) -> None:
        self.space = space
        self._connection = connection

    def get(self, noun: type[R], id: int) -> R | None:
        sql = f"select {', '.join(rows.columns_of(noun))} from {rows.table_of(noun)} where id = ?"
        row = self._connection.execute(sql, (id,)).fetchone()
        return None if row is None else rows.to_record(noun, row, self.space)

    def all(self, noun: type[R]) -> list[R]:
        sql = f"select {', '.join(rows.columns_of(noun))} from {rows.table_of(noun)} order by id"
        return [rows.to_record(noun, row, self.space) for row in self._connection.execute(sql)]

    def select(
        self, where: Where = LIVE, *, limit: int = 50, after: int | None = None, oldest_first: bool = False
    ) -> list[Memory]:
        check_limit(limit)
        clauses, values = _clauses(where)
        if after is not None:
            clauses.append("m.id > ?" if oldest_first else "m.id < ?")
            values.append(after)
        sql = f"""
            select {rows.MEMORY_SELECT}
            from memories m
            where {" and ".join(clauses)}
            order by m.id {"asc" if oldest_first else "desc"}
            limit ?"""
        found = self._connection.execute(sql, (*values, limit))
        return [rows.to_memory(row, self.space) for row in found]

    def count(self, where: Where = LIVE) -> int:
        clauses, values = _clauses(where)
        sql = f"select count(*) from memories m where {' and '.join(clauses)}"
        return int(self._connection.execute(sql, tuple(values)).get)

    def search(
        self,
        words: Sequence[str],
        where: Where = LIVE,
        *,
        limit: int,
        newest: bool = False,
        is_late: Callable[[], bool] | None = None,
    ) -> list[Found]:
        check_limit(limit)
        if not words:
            return []
        shelves = indexes(where)
        with self._interrupted_when(is_late):
            found = [hit for shelf in shelves for hit in self._search_shelf(shelf, words, where, limit, newest)]
        if newest:
            found.sort(key=lambda hit: -hit.memory.id)
        elif len(shelves) > 1:  # each shelf has its own statistics: only a common measure makes one order of them
            statistics = self.statistics(words, where)
            found.sort(key=lambda hit: (-bm25.score(hit.prepared, words, statistics), -hit.memory.id))
        return found[:limit]

    def statistics(self, words: Sequence[str], where: Where = LIVE) -> Statistics:
        total = Statistics(rows_with=dict.fromkeys(words, 0))
        for shelf in indexes(where):
            sql = "select rows, words, tokens from corpus where shelf = ?"
            n_rows, n_words, n_tokens = self._connection.execute(sql, (shelf,)).fetchone() or (0, 0, 0)
            rows_with = {word: self._rows_with(shelf, word, n_rows) for word in dict.fromkeys(words)}
            total += Statistics(n_rows, n_words, n_tokens, rows_with, self._top_feedback(shelf))
        return total

    def events(
        self,
        *,
        subject: str | None = None,
        group: str | None = None,
        after: int = 0,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> list[Event]:
        clauses, values = ["e.seq > ?"], [after]  # type: tuple[list[str], list[Any]]
        for column, value in (("subject", subject), ('"group"', group)):
            if value is not None:
                clauses.append(f"e.{column} = ?")
                values.append(value)
        sql = f"""
            select {", ".join(f"e.{column}" for column in rows.EVENT_COLUMNS)}, p.salt, p.changed
            from events e
            left join event_payloads p on p.seq = e.seq
            where {" and ".join(clauses)}
            order by e.seq {"desc" if newest_first else "asc"}
            limit ?"""
        values.append(-1 if limit is None else limit)
        return [rows.to_event(row) for row in self._connection.execute(sql, tuple(values))]

    def is_erased(self, fingerprint: str) -> bool:
        key = bytes.fromhex(self.meta("tombstone_key") or "")
        sql = "select 1 from tombstones where mark = ?"
        return self._connection.execute(sql, (tombstone(key, fingerprint),)).fetchone() is not None

    def meta(self, name: str) -> str | None:
        """A fact about the file itself."""
        row = self._connection.execute("select value from meta where name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def vocabulary(self, beginning: str, where: Where = LIVE, *, limit: int) -> list[str]:
        check_limit(limit)
        found: set[str] = set()
        for shelf in indexes(where):
            sql = f"select term from {shelf}_vocabulary where term >= ? and term < ? limit ?"
            rows_found = self._connection.execute(sql, (beginning, beginning + "\U0010ffff", limit))
            found.update(str(term) for (term,) in rows_found)
        return sorted(found)[:limit]

    def links(self, id: int) -> list[tuple[int, float, datetime]]:
        sql = """
            select related_id, strength, at from memory_links where memory_id = ?1
            union all
            select memory_id, strength, at from memory_links where related_id = ?1
            order by strength desc, 1"""
        linked: list[Any] = self._connection.execute(sql, (id,)).fetchall()
        return [(related, strength, datetime.fromisoformat(at)) for related, strength, at in linked]

    def receipt(self, id: int | None = None) -> tuple[int, datetime, dict[str, Any]] | None:
        sql = "select id, at, body from receipts where ?1 is null or id = ?1 order by id desc limit 1"
        row: Any = self._connection.execute(sql, (id,)).fetchone()
        return None if row is None else (row[0], datetime.fromisoformat(row[1]), rows.from_json(row[2]))

    @contextmanager
    def _interrupted_when(self, is_late: Callable[[], bool] | None) -> Iterator[None]:
        if is_late is None:
            yield
            return
        self._connection.set_progress_handler(is_late, PROGRESS_STEPS)
        try:
            yield
        except apsw.InterruptError as error:
            raise TooLate from error
        finally:
            self._connection.set_progress_handler(None)

    def _search_shelf(self, shelf: str, words: Sequence[str], where: Where, limit: int, newest: bool) -> list[Found]:
        clauses, values = _clauses(where)
        sql = f"""
            select {rows.MEMORY_SELECT}
            from {shelf}_fts f
            join memories m on m.id = f.rowid
            where {shelf}_fts match ? and {" and ".join(clauses)}
            order by {"f.rowid desc" if newest else f"bm25({shelf}_fts), m.id desc"}
            limit ?"""
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
        found = self._connection.execute(sql, (match, *values, limit))
        return [Found(rows.to_memory(row, self.space), rows.to_prepared(row)) for row in found]

    def _top_feedback(self, shelf: str) -> int:
        sql = "select max(feedback) from memories where feedback > 0 and shelf = ?"
        return int(self._connection.execute(sql, (shelf,)).get or 0)

    def _rows_with(self, shelf: str, word: str, n_rows: int) -> int:
        if n_rows > EXACT_UP_TO_ROWS:
            sql = "select rows_with from hot_words where shelf = ? and word = ?"
            if row := self._connection.execute(sql, (shelf, word)).fetchone():
                counted_at = int(self.meta(f"hot_words_at_{shelf}") or n_rows)
                return round(int(row[0]) * n_rows / counted_at)
        row = self._connection.execute(f"select doc from {shelf}_vocabulary where term = ?", (word,)).fetchone()
        return 0 if row is None else int(row[0])


def _clauses(where: Where) -> tuple[list[str], list[Any]]:
    """The filter as SQL on `memories m`: never empty, values apart."""
    clauses, values = ["true"], []  # type: tuple[list[str], list[Any]]

    def any_of(column: str, wanted: Sequence[Any]) -> None:
        if wanted:
            clauses.append(f"{column} in ({', '.join('?' * len(wanted))})")
            values.extend(wanted)

    def equals(column: str, wanted: object, operator: str = "=") -> None:
        if wanted is not None:
            clauses.append(f"{column} {operator} ?")
            values.append(wanted)

    if where.shelf == "live":
        any_of("m.shelf", ("live", "library"))
    elif where.shelf != "any":
        equals("m.shelf", where.shelf)
    equals("m.scope", where.scope)
    any_of("m.tier", where.tiers)
    any_of("m.kind", where.kinds)
    any_of("m.status", where.statuses)
    for column, wanted in (("tags", where.tags), ("files", where.files)):
        if wanted:
            marks = ", ".join("?" * len(wanted))
            clauses.append(f"exists (select 1 from json_each(m.{column}) where value in ({marks}))")
            values.extend(wanted)
    equals("m.uid", where.uid)
    equals("m.fingerprint", where.fingerprint)
    equals("m.topic", where.topic)
    equals("m.key", where.key)
    equals("m.session_id", where.session)
    equals("m.task_id", where.task)
    equals("m.narrative_id", where.narrative)
    equals("m.created_at", rows.clock(where.since), ">=")
    equals("m.created_at", rows.clock(where.until), "<")
    return clauses, values
