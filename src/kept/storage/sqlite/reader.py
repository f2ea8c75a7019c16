"""Reading a SQLite space: rows, pages, searches, the journal. Every query of the storage is in this file.

SQL text is assembled from constants of this file and of rows.py; values are always bound.
"""

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import apsw

from kept import bm25, text
from kept.model import Event, Memory
from kept.ports import LIVE, Found, Prepared, R, Statistics, TooLate, Where
from kept.storage.shared import check_limit, indexes, tombstone
from kept.storage.sqlite import rows
from kept.storage.sqlite.messages import MessageReader

# Below this many rows every document frequency is counted; above, the commonest words are looked up in hot_words.
EXACT_UP_TO_ROWS = 20_000
COUNTER = "count:"  # how the names of counters begin among the facts about the file
PROGRESS_STEPS = 2_000  # virtual machine steps between two looks at the clock: some tens of microseconds

_STATUSES = {name: f"'{name}'" for name in ("candidate", "confirmed", "pinned", "archived")}


class SqliteReader(MessageReader):
    """One consistent look at the file, through a connection that is inside a transaction."""

    def __init__(self, space: str, connection: apsw.Connection) -> None:
        self.space = space
        self._connection = connection

    def get(self, noun: type[R], id: int) -> R | None:
        sql = f"select {', '.join(rows.columns_of(noun))} from {rows.table_of(noun)} where id = ?"
        found = self._fetch(sql, (id,))
        return rows.to_record(noun, found[0], self.space) if found else None

    def all(self, noun: type[R]) -> list[R]:
        sql = f"select {', '.join(rows.columns_of(noun))} from {rows.table_of(noun)} order by id"
        return [rows.to_record(noun, row, self.space) for row in self._fetch(sql)]

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
        return [rows.to_memory(row, self.space) for row in self._fetch(sql, (*values, limit))]

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
            sql = f"select rows, words, tokens from corpus where shelf = ? and {rows.CORPUS_IS_SEALED}"
            counts = self._fetch(sql, (shelf,))
            if not counts:
                raise rows.damaged(f"The word count of the shelf {shelf}")
            n_rows, n_words, n_tokens = counts[0]
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
        return [rows.to_event(row) for row in self._fetch(sql, tuple(values))]

    def is_erased(self, fingerprint: str) -> bool:
        key = bytes.fromhex(self.meta("tombstone_key") or "")
        sql = "select 1 from tombstones where mark = ?"
        return self._connection.execute(sql, (tombstone(key, fingerprint),)).fetchone() is not None

    def meta(self, name: str) -> str | None:
        """A fact about the file itself."""
        found = self._fetch("select value from meta where name = ?", (name,))
        return str(found[0][0]) if found else None

    def vocabulary(self, beginning: str, where: Where = LIVE, *, limit: int) -> list[str]:
        check_limit(limit)
        found: set[str] = set()
        for shelf in indexes(where):
            sql = f"select term from {shelf}_vocabulary where term >= ? and term < ? limit ?"
            terms = self._fetch(sql, (beginning, beginning + "\U0010ffff", limit))
            found.update(str(term) for (term,) in terms)
        return sorted(found)[:limit]

    def counters(self) -> dict[str, int]:
        sql = "select name, value from meta where substr(name, 1, ?) = ?"
        found = self._connection.execute(sql, (len(COUNTER), COUNTER))
        return {str(name)[len(COUNTER) :]: int(str(value)) for name, value in found}

    def links(self, id: int) -> list[tuple[int, float, datetime]]:
        sql = f"""
            select related_id, strength, at, {rows.LINK_IS_SEALED} from memory_links where memory_id = ?1
            union all
            select memory_id, strength, at, {rows.LINK_IS_SEALED} from memory_links where related_id = ?1
            order by strength desc, 1"""
        linked = self._fetch(sql, (id,))
        if not all(is_sealed for *_, is_sealed in linked):
            raise rows.damaged(f"A link of memory {id}")
        return [(related, strength, datetime.fromisoformat(at)) for related, strength, at, _ in linked]

    def receipt(self, id: int | None = None) -> tuple[int, datetime, dict[str, Any]] | None:
        sql = "select id, at, body, checksum from receipts where ?1 is null or id = ?1 order by id desc limit 1"
        for number, at, body, checksum in self._fetch(sql, (id,)):
            if rows.checksum((at, body)) != checksum:
                raise rows.damaged(f"Receipt {number}")
            return number, datetime.fromisoformat(at), rows.from_json(body)
        return None

    def _fetch(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """All rows of a query."""
        try:
            return self._connection.execute(sql, values).fetchall()
        except UnicodeDecodeError as error:
            raise rows.damaged("A text of this file") from error

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
        found = []
        for row in self._fetch(sql, (match, *values, limit)):
            hit = Found(rows.to_memory(row, self.space), rows.to_prepared(row))
            if not self._holds_any(hit.prepared, words):
                raise rows.damaged(f"The index of the shelf {shelf}, which says that memory {hit.memory.id} matches,")
            found.append(hit)
        return found

    def _holds_any(self, prepared: Prepared, words: Sequence[str]) -> bool:
        """Whether the tokens of a row, which its checksum covers, bear out what the index says of it."""
        p = prepared
        held = f" {p.words} {p.tag_words} {p.file_words} {p.source_words} {p.kind_words} "
        if any(f" {word} " in held for word in words):
            return True
        # Not a prepared word, perhaps ("Auth", "a-b"): ask FTS5 how it reads it.
        tokenizer, *arguments = shlex.split(text.FTS_TOKENIZE)
        tokenize = self._connection.fts5_tokenizer(tokenizer, arguments)

        def tokens(string: str, reason: int) -> set[Any]:
            return set(tokenize(string.encode(), reason, None, include_offsets=False, include_colocated=False))

        row_tokens = tokens(held, apsw.FTS5_TOKENIZE_DOCUMENT)
        return any(tokens(word, apsw.FTS5_TOKENIZE_QUERY) <= row_tokens for word in words)

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
    if where.statuses:
        # As text, not as bound values: only so can SQLite see that the index of pinned memories answers it.
        wanted_statuses = [_STATUSES[status] for status in where.statuses]
        clauses.append(f"({' or '.join(f'm.status = {status}' for status in wanted_statuses)})")
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
