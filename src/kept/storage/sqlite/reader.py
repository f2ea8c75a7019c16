"""Reading a SQLite space: rows, pages, the journal, recall's notes. Searches are in searching.py.

SQL text is assembled from constants of this file, of rows.py and filters.py; values are always bound, but for limits,
which are numbers: SQLite plans a query anew whenever a bound limit changes.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import apsw

from kept.model import Event, Memory, Scope
from kept.ports import LIVE, Deadline, R, TooLate, Where
from kept.storage.shared import block, check_limit, tombstone
from kept.storage.sqlite import rows
from kept.storage.sqlite.encoding import hex_blob, uid_blob
from kept.storage.sqlite.index import handles
from kept.storage.sqlite.index.search import Searching
from kept.storage.sqlite.index.weights import Weights
from kept.storage.sqlite.messages import MessageReader
from kept.storage.sqlite.vectors import VectorReading

COUNTER = "count:"  # how the names of counters begin among the facts about the file
PROGRESS_STEPS = 2_000  # virtual machine steps between two looks at the clock: some tens of microseconds


class SqliteReader(Searching, VectorReading, MessageReader):
    """One consistent look at the file, through a connection that is inside a transaction."""

    def __init__(self, space: str, connection: apsw.Connection, weights: Weights | None = None) -> None:
        self.space = space
        self._connection = connection
        self._weights = weights or Weights()

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
        clauses, values = rows.clauses(where)
        if after is not None:
            clauses.append("m.id > ?" if oldest_first else "m.id < ?")
            values.append(after)
        sql = f"""
            select {rows.MEMORY_SELECT}
            from memories m
            where {" and ".join(clauses)}
            order by m.id {"asc" if oldest_first else "desc"}
            limit {limit:d}"""
        return [rows.to_memory(row, self.space) for row in self._fetch(sql, tuple(values))]

    def alike(self, texts: Sequence[Sequence[str]], scope: Scope, *, limit: int) -> list[list[Memory]]:
        check_limit(limit)
        found = handles.alike(self._connection, texts, scope, limit)
        wanted = rows.json_text(sorted({id for ids in found for id in ids}))
        sql = f"select {rows.MEMORY_SELECT} from json_each(?) wanted join memories m on m.id = wanted.value"
        memories = {row[0]: rows.to_memory(row, self.space) for row in self._fetch(sql, (wanted,))}
        return [[memories[id] for id in ids if id in memories] for ids in found]

    def count(self, where: Where = LIVE) -> int:
        clauses, values = rows.clauses(where)
        sql = f"select count(*) from memories m where {' and '.join(clauses)}"
        return int(self._connection.execute(sql, tuple(values)).get)

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
        for column, value in (("subject", subject and uid_blob(subject)), ('"group"', hex_blob(group))):
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

    def counters(self) -> dict[str, int]:
        sql = "select name, value from meta where substr(name, 1, ?) = ?"
        found = self._fetch(sql, (len(COUNTER), COUNTER))
        return {str(name)[len(COUNTER) :]: int(value) for name, value in found}

    def links(self, id: int) -> list[tuple[int, float, datetime]]:
        sql = """
            select related_id, strength, at from memory_links where memory_id = ?1
            union all
            select memory_id, strength, at from memory_links where related_id = ?1
            order by strength desc, 1"""
        return [(related, strength, datetime.fromisoformat(at)) for related, strength, at in self._fetch(sql, (id,))]

    def receipt(self, id: int | None = None) -> tuple[int, datetime, dict[str, Any]] | None:
        sql = "select id, at, body, uids, checksum from receipts where ?1 is null or id = ?1 order by id desc limit 1"
        for number, at, body, uids, checksum in self._fetch(sql, (id,)):
            if rows.checksum((at, body, uids)) != checksum:
                raise rows.damaged(f"Receipt {number}")
            return number, datetime.fromisoformat(at), rows.from_json(body)
        return None

    def _fetch(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """All rows of a query."""
        try:
            return self._connection.execute(sql, values).fetchall()
        except UnicodeDecodeError as error:
            raise rows.damaged("A text of this file") from error

    @block
    def _interrupted_at(self, deadline: Deadline | None) -> Iterator[None]:
        if deadline is None:
            yield
            return
        self._connection.set_progress_handler(deadline.is_over, PROGRESS_STEPS)
        try:
            yield
        except apsw.InterruptError as error:
            raise TooLate from error
        finally:
            self._connection.set_progress_handler(None)
