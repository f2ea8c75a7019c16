"""Conversations in a SQLite space: messages are rows that are only ever added, with an index of their own.

Mixed into reader.py and transaction.py. A session that has not been touched for long is packed: its messages become one
compressed row and leave the index. Rule: a message that was acknowledged reads the same for ever.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from itertools import groupby
from typing import Any

import apsw
import msgspec

from kept import text
from kept.model import Message, Session
from kept.ports import FoundMessage, Statistics
from kept.storage.messages import blank
from kept.storage.shared import check_limit
from kept.storage.sqlite import rows

_COLUMNS = ("session", "n", "message_id", "role", "content", "name", "input", "at", "speaker", "words", "n_words")
_SELECT = ", ".join(f"m.{column}" for column in (*_COLUMNS, "checksum"))

_encode = msgspec.json.Encoder().encode
_decode_input = msgspec.json.Decoder(dict[str, Any]).decode
_decode_pack = msgspec.json.Decoder(list[Message]).decode


class MessageReader:
    """Reads messages through a connection that is inside a transaction."""

    _connection: apsw.Connection
    space: str
    _interrupted_when: Callable[[Callable[[], bool] | None], AbstractContextManager[None]]

    def session(self, name: str) -> Session | None:
        sql = f"select {', '.join(rows.columns_of(Session))} from sessions where name = ?"
        row = self._connection.execute(sql, (name,)).fetchone()
        return None if row is None else rows.to_record(Session, row, self.space)

    def messages(self, session: str, *, after: int = 0, limit: int | None = None) -> list[Message]:
        sql = f"select {_SELECT} from messages m where m.session = ? and m.n > ? order by m.n limit ?"
        found = self._connection.execute(sql, (session, after, -1 if limit is None else limit)).fetchall()
        if found:
            return [_found(row).message for row in found]
        return [message for message in self._packed(session) if message.n > after][:limit]

    def last_number(self, session: str) -> int:
        row: Any = self._connection.execute("select max(n) from messages where session = ?", (session,)).get
        return int(row) if row is not None else max((message.n for message in self._packed(session)), default=0)

    def messages_at(self, places: Sequence[tuple[str, int]]) -> list[FoundMessage]:
        sql = f"select {_SELECT} from messages m where m.session = ? and m.n = ?"
        return [_found(row) for place in places for row in self._connection.execute(sql, place)]

    def search_messages(
        self,
        words: Sequence[str],
        *,
        limit: int,
        session: str | None = None,
        is_late: Callable[[], bool] | None = None,
    ) -> list[FoundMessage]:
        check_limit(limit)
        if not words:
            return []
        sql = f"""
            select {_SELECT}
            from messages_fts f
            join messages m on m.id = f.rowid
            where messages_fts match ? and (?2 is null or m.session = ?2)
            order by bm25(messages_fts), m.id desc
            limit ?3"""
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
        with self._interrupted_when(is_late):
            return [_found(row) for row in self._connection.execute(sql, (match, session, limit)).fetchall()]

    def message_statistics(self, words: Sequence[str]) -> Statistics:
        sql = "select rows, words, tokens from corpus where shelf = 'messages'"
        n_rows, n_words, n_tokens = self._connection.execute(sql).fetchone() or (0, 0, 0)
        rows_with = {word: self._messages_with(word) for word in dict.fromkeys(words)}
        return Statistics(n_rows, n_words, n_tokens, rows_with)

    def _messages_with(self, word: str) -> int:
        row = self._connection.execute("select doc from messages_vocabulary where term = ?", (word,)).fetchone()
        return 0 if row is None else int(str(row[0]))

    def _packed(self, session: str) -> list[Message]:
        row: Any = self._connection.execute("select body from packed_sessions where session = ?", (session,)).get
        return [] if row is None else _decode_pack(zlib.decompress(row))


class MessageWriter(MessageReader):
    """Adds, packs and erases messages inside a transaction."""

    erased: list[str]

    def append(self, messages: Sequence[Message]) -> list[Message]:
        added = []
        for session, group in groupby(messages, key=lambda message: message.session):
            n = self.last_number(session)
            for message in group:
                if self._is_known(message):
                    continue
                n += 1
                added.append(msgspec.structs.replace(message, n=n))
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

    def _insert(self, message: Message) -> None:
        words = text.words(message.content)
        values = (
            message.session,
            message.n,
            message.id,
            message.role,
            message.content,
            message.name,
            None if message.input is None else _encode(message.input).decode(),
            rows.clock(message.at),
            message.speaker,
            " ".join(words),
            text.count_words(message.content),
        )
        marks = ", ".join("?" * (len(_COLUMNS) + 1))
        self._connection.execute(
            f"insert into messages ({', '.join(_COLUMNS)}, checksum) values ({marks})", (*values, rows.checksum(values))
        )


def all_messages(connection: apsw.Connection) -> Iterator[Message]:
    """Every message that is not packed, verified: for doctor."""
    for row in connection.execute(f"select {_SELECT} from messages m order by m.id"):
        yield _found(row).message


def _found(row: Sequence[Any]) -> FoundMessage:
    if rows.checksum(row[:-1]) != row[-1]:
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
