"""Conversations in a SQLite space, as SQL: rows that are only ever added, with an index of their own.

storage/messages.py decides what is added, packed and erased, and ranks. Rule: a row carries a checksum of its values,
and no message leaves this file unless it still matches.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from kept import text
from kept.model import Message, Session
from kept.ports import ALWAYS, Deadline, FoundMessage, Period
from kept.storage.messages import MessageRow, from_pack, to_pack
from kept.storage.ranking import Postings
from kept.storage.shared import damaged
from kept.storage.sqlite import encoding, index, rows
from kept.storage.sqlite.connection import View

COLUMNS = ("session", "n", "message_id", "role", "content", "name", "input", "at", "speaker", "words", "n_words")
_AT, _WORDS, _N_WORDS = (COLUMNS.index(column) for column in ("at", "words", "n_words"))
_SELECT = ", ".join(f"m.{column}" for column in (*COLUMNS, "checksum"))
_INSERT = f"insert into messages ({', '.join(COLUMNS)}, checksum) values ({', '.join('?' * (len(COLUMNS) + 1))})"

_decode_input = msgspec.json.Decoder(dict[str, Any]).decode


class SqliteMessages:
    """The messages as one view of the file sees them; in a turn to write, also to change them."""

    last_id = 0  # the number that the file gave to the last message that was added

    def __init__(self, view: View) -> None:
        self._view = view

    def session(self, name: str) -> Session | None:
        sql = f"{rows.select_sql(Session)} where name = ?"
        found = self._view.fetch(sql, (name,))
        return rows.to_record(Session, found[0], self._view.space) if found else None

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

    def postings(self, words: Sequence[str], session: str | None, period: Period) -> Postings:
        sql = "select json_group_array(rowid) from messages_fts where messages_fts match ?"
        held = {word: rows.from_json(self._view.fetch(sql, (f'"{word}"',))[0][0]) for word in words}
        if session is None and period == ALWAYS:
            return held
        fitting = self._fitting({id for ids in held.values() for id in ids}, session, period)
        return {word: [id for id in ids if id in fitting] for word, ids in held.items()}

    def _fitting(self, ids: Iterable[int], session: str | None, period: Period) -> set[int]:
        asked = {
            "m.session = ?": session,
            "m.at >= ?": encoding.clock(period.since),
            "m.at < ?": encoding.clock(period.until),
        }
        given = {condition: value for condition, value in asked.items() if value is not None}
        sql = f"""
            select json_group_array(m.id)
            from json_each(?) found
            cross join messages m on m.id = found.value
            where {" and ".join(given)}"""
        return set(rows.from_json(self._view.fetch(sql, (rows.json_text([*ids]), *given.values()))[0][0]))

    def counts(self) -> tuple[int, int, int]:
        return index.counts(self._view, "messages")

    def rows_with(self, words: Sequence[str]) -> dict[str, int]:
        return index.rows_with(self._view, "messages", words)

    def lengths(self, ids: Sequence[int]) -> dict[int, int]:
        # FTS5 keeps them in a small table; in a message they stand behind its text.
        sql = """
            select json_group_array(d.id), json_group_array(hex(d.sz))
            from json_each(?) found
            cross join messages_fts_docsize d on d.id = found.value"""
        ((found, sizes),) = self._view.fetch(sql, (rows.json_text(ids),))
        lengths = map(_varint, rows.from_json(sizes))
        return dict.fromkeys(ids, 0) | dict(zip(rows.from_json(found), lengths, strict=True))

    def read(self, ids: Sequence[int]) -> list[MessageRow]:
        sql = f"select {_SELECT} from json_each(?) short cross join messages m on m.id = short.value"
        found = self._view.fetch(sql, (rows.json_text(ids),))
        return [MessageRow(row[_WORDS], row[_N_WORDS], (row[_AT] or "", row[0], row[1]), row) for row in found]

    def found(self, read: MessageRow, words: Sequence[str]) -> FoundMessage:
        hit = _found(read.row)
        if not index.holds_any(self._view, hit.words, words):
            at = f"message {hit.message.n} of session {hit.message.session}"
            raise damaged(f"The search index of messages (it wrongly lists {at})")
        return hit

    def has(self, session: str, id: str, role: str | None = None) -> bool:
        sql = "select 1 from messages where session = ? and message_id = ? and (?3 is null or role = ?3)"
        return self._view.connection.execute(sql, (session, id, role)).fetchone() is not None

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


@lru_cache(maxsize=4_096)
def _varint(size: str) -> int:
    """The first number of those that SQLite packs into bytes: seven bits each, the last without the eighth."""
    number = 0
    for byte in bytes.fromhex(size):
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return number


def _found(row: Sequence[Any]) -> FoundMessage:
    if not is_as_written(row):
        raise damaged(f"message {row[1]} of session {row[0]}")
    session, n, message_id, role, content, name, input, at, speaker, words, n_words, _ = row
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
    )
    return FoundMessage(message, words, n_words)
