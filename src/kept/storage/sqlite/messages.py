"""Conversations in a SQLite space, as SQL: rows that are only ever added, with an index of their own.

storage/messages.py decides what is added, packed and erased, and ranks. Rule: a row carries a checksum of its values,
and no message leaves this file unless it still matches.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

import msgspec

from kept import text
from kept.model import Message, SessionRecord
from kept.ports import Deadline, FoundMessage, Period
from kept.storage.messages import from_pack, to_pack
from kept.storage.shared import damaged
from kept.storage.sqlite import encoding, index, rows
from kept.storage.sqlite.connection import View

COLUMNS = tuple("session n message_id role content name input at speaker is_error trust words n_words".split())
_SELECT = ", ".join(f"m.{column}" for column in (*COLUMNS, "checksum"))
_INSERT = f"insert into messages ({', '.join(COLUMNS)}, checksum) values ({', '.join('?' * (len(COLUMNS) + 1))})"

_decode_input = msgspec.json.Decoder(dict[str, Any]).decode


class SqliteMessages:
    """The messages as one view of the file sees them; in a turn to write, also to change them."""

    last_id = 0  # the number that the file gave to the last message that was added

    def __init__(self, view: View) -> None:
        self._view = view

    def session(self, name: str) -> SessionRecord | None:
        sql = f"{rows.select_sql(SessionRecord)} where name = ?"
        found = self._view.fetch(sql, (name,))
        return rows.to_record(SessionRecord, found[0], self._view.space) if found else None

    def stored(self, session: str, *, after: int = 0, limit: int | None = None) -> list[Message]:
        sql = f"select {_SELECT} from messages m where m.session = ? and m.n > ? order by m.n limit ?"
        return [_found(row).message for row in self._view.fetch(sql, (session, after, -1 if limit is None else limit))]

    def packed(self, session: str) -> list[Message]:
        found = self._view.fetch("select body from packed_sessions where session = ?", (session,))
        return from_pack(session, found[0][0]) if found else []

    def last_number(self, session: str) -> int:
        return int(self._view.fetch("select max(n) from messages where session = ?", (session,))[0][0] or 0)

    def at(self, places: Sequence[tuple[str, int]]) -> list[FoundMessage]:
        sql = f"""
            select {_SELECT}
            from json_each(?) place
            cross join messages m on m.session = place.value ->> 0 and m.n = place.value ->> 1"""
        return [_found(row) for row in self._view.fetch(sql, (rows.json_text(places),))]

    def until(self, deadline: Deadline | None) -> AbstractContextManager[None]:
        return self._view.until(deadline)

    def matching(self, words: Sequence[str], session: str | None, period: Period, most: int) -> list[FoundMessage]:
        if not words:
            return []
        # Ranked by number, and only the best are read: sorting whole messages takes longer than ranking them.
        within, values = _within(session, period)
        sql = f"""
            select {_SELECT}
            from (
              select rowid as id
              from messages_fts
              where messages_fts match ? {within}
              order by bm25(messages_fts), id desc
              limit ?
            ) best
            cross join messages m on m.id = best.id"""
        match = " OR ".join(f'"{word}"' for word in words)
        return [_found(row) for row in self._view.fetch(sql, (match, *values, most))]

    def check_match(self, found: FoundMessage, words: Sequence[str]) -> None:
        if not index.holds_any(self._view, found.words, words):
            at = f"message {found.message.n} of session {found.message.session}"
            raise damaged(f"The search index of messages (it wrongly lists {at})")

    def counts(self) -> tuple[int, int, int]:
        return index.counts(self._view, "messages")

    def rows_with(self, words: Sequence[str]) -> dict[str, int]:
        return index.rows_with(self._view, "messages", words)

    def has(self, session: str, id: str, role: str | None = None, *, upto: int | None = None) -> bool:
        sql = """
            select 1
            from messages
            where session = ? and message_id = ? and (?3 is null or role = ?3) and (?4 is null or n <= ?4)"""
        return self._view.connection.execute(sql, (session, id, role, upto)).fetchone() is not None

    def insert(self, message: Message) -> None:
        words, n_words = text.words_and_length(message.content)
        values = (
            message.session,
            message.n,
            message.id,
            message.role,
            message.content,
            message.name,
            None if message.input is None else rows.json_text(message.input),
            encoding.clock(message.at),
            message.speaker,
            int(message.is_error),
            message.trust,
            " ".join(words),
            n_words,
        )
        connection = self._view.connection
        connection.execute(_INSERT, (*values, rows.checksum(values)))
        self.last_id = connection.last_insert_rowid()

    def delete(self, session: str, n: int) -> None:
        self._view.connection.execute("delete from messages where session = ? and n = ?", (session, n))

    def pack(self, session: str, messages: Sequence[Message]) -> None:
        self.unpack(session)
        sql = "insert into packed_sessions (session, body) values (?, ?)"
        self._view.connection.execute(sql, (session, to_pack(messages)))
        self._view.connection.execute("delete from messages where session = ?", (session,))

    def unpack(self, session: str) -> None:
        self._view.connection.execute("delete from packed_sessions where session = ?", (session,))


def is_as_written(row: Sequence[Any]) -> bool:
    """Whether a row of messages, without its id, fits its checksum."""
    return bool(rows.checksum(row[:-1]) == row[-1])


def _within(session: str | None, period: Period) -> tuple[str, list[Any]]:
    """What is asked of a message beside its words, and the values: looked up for each that has a word, and no other."""
    asked = {
        "session = ?": session,
        "at >= ?": encoding.clock(period.since),
        "at < ?": encoding.clock(period.until),
    }
    given = {condition: value for condition, value in asked.items() if value is not None}
    if not given:
        return "", []
    conditions = " and ".join(["id = messages_fts.rowid", *given])
    return f"and exists (select 1 from messages where {conditions})", [*given.values()]


def _found(row: Sequence[Any]) -> FoundMessage:
    if not is_as_written(row):
        raise damaged(f"message {row[1]} of session {row[0]}")
    session, n, message_id, role, content, name, input, at, speaker, is_error, trust, words, n_words, _ = row
    message = Message(
        id=message_id,
        role=role,
        session=session,
        n=n,
        content=content,
        name=name,
        input=None if input is None else _decode_input(input),
        at=None if at is None else datetime.fromisoformat(at),
        speaker=speaker,
        is_error=bool(is_error),
        trust=trust,
    )
    return FoundMessage(message, words, n_words)
