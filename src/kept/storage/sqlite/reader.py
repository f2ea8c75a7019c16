"""Reading a SQLite space: rows, pages, the journal, recall's notes.

Searches, conversations and vectors are in index.py, messages.py and vectors.py. SQL text is assembled from constants
of this file and of rows.py; values are always bound, but for limits, which are numbers: SQLite plans a query again
whenever a bound limit changes.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any

import msgspec

from kept.model import NOUNS, Event, Memory
from kept.ports import LIVE, EventHead, Foundation, R, SavedNote, Where
from kept.storage.messages import MessageReader
from kept.storage.ranking import IndexReader
from kept.storage.shared import check_limit, tombstone
from kept.storage.sqlite import rows
from kept.storage.sqlite.connection import View
from kept.storage.sqlite.encoding import hex_blob, hex_text, microseconds, moment, uid_blob, uid_text
from kept.storage.sqlite.index import SqliteIndex, counts
from kept.storage.sqlite.messages import SqliteMessages
from kept.storage.sqlite.vectors import VectorReading
from kept.storage.weights import Weights

_SESSIONS = "select session from messages union select session from packed_sessions order by session"
COUNTER = "count:"  # how the names of counters begin among the facts about the file


class SqliteReader(IndexReader, MessageReader, VectorReading):
    """One consistent look at the file."""

    index: SqliteIndex
    message_rows: SqliteMessages

    def __init__(self, view: View, weights: Weights | None = None) -> None:
        self.space = view.space
        self.view = view
        self.index = SqliteIndex(view, weights)
        self.message_rows = SqliteMessages(view)

    def last_number(self, session: str) -> int:
        # All in one question: every memory that an agent stores in a session asks whether that went on.
        sql = """
            select (select max(n) from messages where session = ?1),
                   exists (select 1 from packed_sessions where session = ?1)
                   or exists (select 1 from sessions where name = ?1 and shared)"""
        last, has_more = self.view.fetch(sql, (session,))[0]
        return super().last_number(session) if has_more and not last else last or 0

    def get(self, noun: type[R], id: int) -> R | None:
        found = self.view.fetch(f"{rows.select_sql(noun)} where id = ?", (id,))
        return rows.to_record(noun, found[0], self.space) if found else None

    def all(self, noun: type[R]) -> list[R]:
        def read() -> list[R]:
            found = self.view.fetch(f"{rows.select_sql(noun)} order by id")
            return [rows.to_record(noun, row, self.space) for row in found]

        return [*self.view.once(noun, read)]

    def select(
        self, where: Where = LIVE, *, limit: int = 50, after: int | None = None, oldest_first: bool = False
    ) -> list[Memory]:
        check_limit(limit)
        page = (where, limit, after, oldest_first)
        if where.statuses == ("pinned",):  # as every answer asks
            return [*self.view.once(page, lambda: self._select(*page))]
        return self._select(*page)

    def _select(self, where: Where, limit: int, after: int | None, oldest_first: bool) -> list[Memory]:
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
        return [rows.to_memory(row, self.space) for row in self.view.fetch(sql, tuple(values))]

    def count(self, where: Where = LIVE) -> int:
        if where == LIVE:
            return counts(self.view, "live")[0]  # kept up to date with each change: a count reads every row
        clauses, values = rows.clauses(where)
        sql = f"select count(*) from memories m where {' and '.join(clauses)}"
        return int(self.view.connection.execute(sql, tuple(values)).get)

    def events(
        self,
        *,
        subject: str | None = None,
        group: str | None = None,
        after: int = 0,
        later_than: datetime | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> list[Event]:
        clauses, values = ["e.seq > ?"], [after]  # type: tuple[list[str], list[Any]]
        for column, value in (("subject", subject and uid_blob(subject)), ('"group"', hex_blob(group))):
            if value is not None:
                clauses.append(f"e.{column} = ?")
                values.append(value)
        if later_than is not None:
            clauses.append("e.at > ?")
            values.append(microseconds(later_than))
        sql = f"""
            select {", ".join(f"e.{column}" for column in rows.EVENT_COLUMNS)}, p.salt, p.changed
            from events e
            left join event_payloads p on p.seq = e.seq
            where {" and ".join(clauses)}
            order by e.seq {"desc" if newest_first else "asc"}
            limit ?"""
        values.append(-1 if limit is None else limit)
        return [rows.to_event(row) for row in self.view.fetch(sql, tuple(values))]

    def event_heads(
        self, *, after: int = 0, later_than: datetime | None = None, limit: int | None = None
    ) -> list[EventHead]:
        sql = """
            select seq, "group", at, actor, action, subject
            from events
            where seq > ?1 and (?2 is null or at > ?2)
            order by seq
            limit ?3"""
        since = None if later_than is None else microseconds(later_than)
        found = self.view.fetch(sql, (after, since, -1 if limit is None else limit))
        return [
            EventHead(seq, hex_text(group) or "", moment(at), actor, action, uid_text(subject))
            for seq, group, at, actor, action, subject in found
        ]

    def activity(self, *, after: int = 0) -> list[tuple[datetime, str, str, int]]:
        sql = """
            select at / 3600000000, actor, action, count(*)
            from events
            where seq > ?
            group by 1, 2, 3
            order by 1, 2, 3"""
        found = self.view.fetch(sql, (after,))
        return [(moment(hour * 3_600_000_000), actor, action, number) for hour, actor, action, number in found]

    def foundation(self) -> Foundation:
        nouns = {rows.table_of(noun): noun.noun for noun in NOUNS} | {"receipts": "receipt"}
        last_ids: list[Any] = self.view.fetch("select name, seq from sqlite_sequence")
        return Foundation(
            key=bytes.fromhex(self.view.meta("tombstone_key") or ""),
            tombstones=tuple(mark for (mark,) in self.view.fetch("select mark from tombstones order by mark")),
            last_ids={nouns[table]: last for table, last in last_ids if table in nouns},
            sessions=tuple(name for (name,) in self.view.fetch(_SESSIONS)),
            packed=tuple(name for (name,) in self.view.fetch("select session from packed_sessions order by session")),
        )

    def is_erased(self, fingerprint: str) -> bool:
        key = bytes.fromhex(self.view.meta("tombstone_key") or "")
        sql = "select 1 from tombstones where mark = ?"
        return self.view.connection.execute(sql, (tombstone(key, fingerprint),)).fetchone() is not None

    def erased_among(self, names: Collection[str]) -> set[str]:
        if not names:
            return set()
        key = bytes.fromhex(self.view.meta("tombstone_key") or "")
        marks = {tombstone(key, name): name for name in names}
        sql = "select mark from tombstones where mark in (select value from json_each(?))"
        return {marks[str(mark)] for (mark,) in self.view.fetch(sql, (msgspec.json.encode(list(marks)).decode(),))}

    def counters(self) -> dict[str, int]:
        sql = "select name, value from meta where substr(name, 1, ?) = ?"
        found = self.view.fetch(sql, (len(COUNTER), COUNTER))
        return {str(name)[len(COUNTER) :]: rows.number_of(name, value) for name, value in found}

    def file_notes(self, beginning: str = "") -> dict[str, str]:
        sql = """
            select name, note, checksum
            from file_notes
            where name >= ?1 and name < ?1 || char(1114111)
            order by name"""
        found = {}
        for name, note, checksum in self.view.fetch(sql, (beginning,)):
            if rows.checksum((name, note)) != checksum:
                raise rows.damaged("A note about a file")
            found[str(name)] = str(note)
        return found

    def links(self, id: int) -> list[tuple[int, float, datetime]]:
        sql = """
            select related_id, strength, at from memory_links where memory_id = ?1
            union all
            select memory_id, strength, at from memory_links where related_id = ?1
            order by strength desc, 1"""
        return [
            (related, strength, datetime.fromisoformat(at)) for related, strength, at in self.view.fetch(sql, (id,))
        ]

    def receipt(self, id: int | None = None) -> SavedNote | None:
        return next(iter(self._receipts("?1 is null or id = ?1", (id, 1))), None)

    def receipts_of(self, session: str | None, *, limit: int) -> list[SavedNote]:
        return self._receipts("?1 is null" if session is None else "session = ?1", (session, limit))

    def sessions_told(self, *, limit: int) -> list[str]:
        sql = """
            select session
            from receipts
            where session is not null
            group by session
            order by max(id) desc
            limit ?"""
        return [str(session) for (session,) in self.view.fetch(sql, (limit,))]

    def _receipts(self, condition: str, values: tuple[Any, int]) -> list[SavedNote]:
        sql = f"select id, at, body, uids, session, checksum from receipts where {condition} order by id desc limit ?2"
        found: list[SavedNote] = []
        for number, *columns, checksum in self.view.fetch(sql, values):
            if rows.checksum(columns) != checksum:
                raise rows.damaged(f"Receipt {number}")
            found.append((number, datetime.fromisoformat(columns[0]), rows.from_json(columns[1])))
        return found
