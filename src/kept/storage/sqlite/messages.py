"""Conversations in a SQLite space: messages are rows that are only ever added, with an index of their own.

Mixed into reader.py and transaction.py. A session that has not been touched for long is packed: its messages become one
compressed row and leave the index. Rule: a message that was acknowledged reads the same for ever.
"""

import zlib
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from itertools import groupby
from typing import Any

import apsw
import msgspec

from kept import text
from kept.model import Message, Session
from kept.ports import ALWAYS, Deadline, FoundMessage, Period, Statistics
from kept.storage.messages import blank, free_id
from kept.storage.shared import check_limit
from kept.storage.sqlite import encoding, rows

COLUMNS = ("session", "n", "message_id", "role", "content", "name", "input", "at", "speaker", "words", "n_words")
_SELECT = ", ".join(f"m.{column}" for column in (*COLUMNS, "checksum"))

_encode = msgspec.json.Encoder().encode
_decode_input = msgspec.json.Decoder(dict[str, Any]).decode
_decode_pack = msgspec.json.Decoder(list[Message]).decode


class MessageReader:
    """Reads messages through a connection that is inside a transaction."""

    _connection: apsw.Connection
    space: str
    _fetch: Callable[..., list[Any]]
    _holds_any: Callable[[str, Sequence[str]], bool]
    _interrupted_at: Callable[[Deadline | None], AbstractContextManager[None]]

    def session(self, name: str) -> Session | None:
        sql = f"select {', '.join(rows.columns_of(Session))} from sessions where name = ?"
        found = self._fetch(sql, (name,))
        return rows.to_record(Session, found[0], self.space) if found else None

    def messages(self, session: str, *, after: int = 0, limit: int | None = None) -> list[Message]:
        sql = f"select {_SELECT} from messages m where m.session = ? and m.n > ? order by m.n limit ?"
        found = self._fetch(sql, (session, after, -1 if limit is None else limit))
        if found:
            return [_found(row).message for row in found]
        return [message for message in self._packed(session) if message.n > after][:limit]

    def last_number(self, session: str) -> int:
        ((last,),) = self._fetch("select max(n) from messages where session = ?", (session,))
        return int(last) if last is not None else max((message.n for message in self._packed(session)), default=0)

    def messages_at(self, places: Sequence[tuple[str, int]]) -> list[FoundMessage]:
        sql = f"select {_SELECT} from messages m where m.session = ? and m.n = ?"
        return [_found(row) for place in places for row in self._fetch(sql, place)]

    def search_messages(
        self,
        words: Sequence[str],
        *,
        limit: int,
        session: str | None = None,
        period: Period = ALWAYS,
        deadline: Deadline | None = None,
    ) -> list[FoundMessage]:
        check_limit(limit)
        if not words:
            return []
        # Ranked by number, and only the best are read: sorting whole messages takes longer than ranking them.
        within, values = _within(session, period)
        sql = f"""
            select {_SELECT}
            from (
              select rowid as id, bm25(messages_fts) as relevance
              from messages_fts
              where messages_fts match ? {within}
              order by relevance, id desc
              limit ?
            ) f
            join messages m on m.id = f.id
            order by f.relevance, f.id desc"""
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
        with self._interrupted_at(deadline):
            found = [_found(row) for row in self._fetch(sql, (match, *values, limit))]
        for hit in found:
            if not self._holds_any(hit.words, words):
                at = f"message {hit.message.n} of session {hit.message.session}"
                raise rows.damaged(f"The index of messages, which says that {at} matches,")
        return found

    def message_statistics(self, words: Sequence[str]) -> Statistics:
        counts = self._fetch("select rows, words, tokens from corpus where shelf = 'messages'")
        if not counts:
            raise rows.damaged("The word count of messages")
        n_rows, n_words, n_tokens = counts[0]
        rows_with = {word: self._messages_with(word) for word in dict.fromkeys(words)}
        return Statistics(n_rows, n_words, n_tokens, rows_with)

    def _messages_with(self, word: str) -> int:
        found = self._fetch("select doc from messages_vocabulary where term = ?", (word,))
        return int(found[0][0]) if found else 0

    def _packed(self, session: str) -> list[Message]:
        found = self._fetch("select body from packed_sessions where session = ?", (session,))
        return unpacked(session, found[0][0]) if found else []


class MessageWriter(MessageReader):
    """Adds, packs and erases messages inside a transaction."""

    erased: list[str]
    last_message = 0  # the number that the file gave to the last one that was added

    def append(self, messages: Sequence[Message]) -> list[Message]:
        added = []
        given = {message.id for message in messages}
        for session, group in groupby(messages, key=lambda message: message.session):
            new = list(group)
            if packed := {(message.id, message.role) for message in self._packed(session)}:
                new = [message for message in new if (message.id, message.role) not in packed]
                if new:
                    self.unpack(session)
            n = self.last_number(session)
            for message in new:
                if message.id and self._is_known(message):
                    continue
                n += 1
                id = message.id or self._free_id(session, n, given)
                added.append(msgspec.structs.replace(message, n=n, id=id))
                self._insert(added[-1])
        return added

    def pack(self, session: str) -> int:
        packed = self.messages(session)
        if packed:
            body = zlib.compress(_encode(packed), 9)
            self._connection.execute("delete from packed_sessions where session = ?", (session,))
            self._connection.execute("insert into packed_sessions (session, body) values (?, ?)", (session, body))
            self._connection.execute("delete from messages where session = ?", (session,))
        return len(packed)

    def unpack(self, session: str) -> int:
        packed = self._packed(session)
        for message in packed:
            self._insert(message)
        self._connection.execute("delete from packed_sessions where session = ?", (session,))
        return len(packed)

    def erase_messages(self, session: str, ids: Sequence[str] | None = None) -> int:
        was_packed = self.unpack(session)
        gone = 0
        for message in self.messages(session):
            if ids is None or message.id in ids:
                sql = "delete from messages where session = ? and n = ?"
                self._connection.execute(sql, (session, message.n))
                if ids is not None:
                    self._insert(blank(message))
                gone += 1
        if gone:
            self.erased.append(f"session:{session}")
        if was_packed:
            self.pack(session)
        return gone

    def _is_known(self, message: Message) -> bool:
        sql = "select 1 from messages where session = ? and message_id = ? and role = ?"
        return self._connection.execute(sql, (message.session, message.id, message.role)).fetchone() is not None

    def _free_id(self, session: str, n: int, given: Collection[str]) -> str:
        sql = "select 1 from messages where session = ? and message_id = ?"
        ask = self._connection.execute
        return free_id(n, lambda id: id in given or ask(sql, (session, id)).fetchone() is not None)

    def _insert(self, message: Message) -> None:
        words, n_words = text.words_and_length(message.content)
        values = (
            message.session,
            message.n,
            message.id,
            message.role,
            message.content,
            message.name,
            None if message.input is None else _encode(message.input).decode(),
            encoding.clock(message.at),
            message.speaker,
            " ".join(words),
            n_words,
        )
        marks = ", ".join("?" * (len(COLUMNS) + 1))
        self._connection.execute(
            f"insert into messages ({', '.join(COLUMNS)}, checksum) values ({marks})", (*values, rows.checksum(values))
        )
        self.last_message = self._connection.last_insert_rowid()


def unpacked(session: str, body: bytes) -> list[Message]:
    """The messages of a packed session. Raises Corrupt when the body is not what was packed, which zlib checks."""
    try:
        return _decode_pack(zlib.decompress(body))
    except (TypeError, zlib.error, msgspec.MsgspecError) as error:
        raise rows.damaged(f"The packed session {session}") from error


def is_as_written(row: Sequence[Any]) -> bool:
    """Whether a row of messages, without its id, fits its checksum."""
    return bool(rows.checksum(row[:-1]) == row[-1])


def _within(session: str | None, period: Period) -> tuple[str, list[str]]:
    """What is asked of a message beside its words, and the values: looked up for each that has a word, and no other."""
    asked = {"session = ?": session, "at >= ?": encoding.clock(period.since), "at < ?": encoding.clock(period.until)}
    given = {condition: value for condition, value in asked.items() if value is not None}
    if not given:
        return "", []
    conditions = " and ".join(["id = messages_fts.rowid", *given])
    return f"and exists (select 1 from messages where {conditions})", list(given.values())


def _found(row: Sequence[Any]) -> FoundMessage:
    if not is_as_written(row):
        raise rows.damaged(f"message {row[1]} of session {row[0]}")
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
