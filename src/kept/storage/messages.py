"""Conversations for every engine: reading, ranking, adding, packing and erasing messages.

An engine supplies rows (`MessageRows`). This module decides which messages are added, their numbers and ids, and their
rank, so that all engines agree. A session that has not been used for a long time is packed: its messages become one
compressed row and leave the index.
Rule: a message that was acknowledged reads the same for ever, unless it is erased.
"""

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import count, groupby
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from kept import bm25
from kept.model import Message, Session, replace
from kept.ports import ALWAYS, Deadline, FoundMessage, Period, Prepared, Statistics
from kept.storage.ranking import Postings, gains_of
from kept.storage.shared import ERASED, check_limit, damaged

SHORTLIST = 2  # times as many as are wanted: of that many, and of 100 at least, the words are read
_FEWEST = 100

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Message]).decode


class MessageRow(NamedTuple):
    """A message as an engine reads it, with what it is ranked by. Of two that fit equally well the `newer` is first."""

    words: str
    n_words: int
    newer: tuple[Any, str, int]  # when it was said, as the engine compares it; session; number
    row: Any


class MessageRows(Protocol):
    """The messages of one space as an engine keeps them. An id is the number of a row, until something changes.

    The last five methods are for a turn to write.
    """

    def session(self, name: str) -> Session | None:
        """The session of that name, or None."""

    def stored(self, session: str, *, after: int = 0, limit: int | None = None) -> list[Message]:
        """Messages in their order; none of a packed session."""

    def packed(self, session: str) -> list[Message]:
        """The messages of a packed session; none of any other."""

    def last_number(self, session: str) -> int:
        """The number of the newest message that is not packed; 0 when there is none."""

    def at(self, places: Sequence[tuple[str, int]]) -> list[FoundMessage]:
        """The messages at these places, as far as they exist and are not packed."""

    def until(self, deadline: Deadline | None) -> AbstractContextManager[None]:
        """Raise TooLate inside the block, soon after the deadline is over."""

    def postings(self, words: Sequence[str], session: str | None, period: Period) -> Postings:
        """The messages that hold each word, of that session and period."""

    def counts(self) -> tuple[int, int, int]:
        """Messages, words and tokens of all that are not packed."""

    def rows_with(self, words: Sequence[str]) -> dict[str, int]:
        """How many messages hold each word; a word that none holds may be missing."""

    def lengths(self, ids: Sequence[int]) -> Mapping[int, int]:
        """About how many words each of these messages has."""

    def read(self, ids: Sequence[int]) -> Iterable[MessageRow]:
        """The messages with these ids."""

    def found(self, read: MessageRow, words: Sequence[str]) -> FoundMessage:
        """The message that was read. Raises Corrupt when it is damaged, or holds none of the words."""

    def has(self, session: str, id: str, role: str | None = None) -> bool:
        """Whether a message that is not packed has that id, and that role if one is given."""

    def insert(self, message: Message) -> None:
        """Add a row, and index it."""

    def delete(self, session: str, n: int) -> None:
        """Remove a row, and its words from the index."""

    def pack(self, session: str, messages: Sequence[Message]) -> None:
        """Keep all messages of a session packed, and no row of it."""

    def unpack(self, session: str) -> None:
        """Drop the packed messages of a session."""


class MessageReader:
    """Reads conversations, for the reader of any engine."""

    if TYPE_CHECKING:  # an attribute of some readers, a property of others

        @property
        def message_rows(self) -> MessageRows: ...

    def session(self, name: str) -> Session | None:
        return self.message_rows.session(name)

    def messages(self, session: str, *, after: int = 0, limit: int | None = None) -> list[Message]:
        found = self.message_rows.stored(session, after=after, limit=limit)
        return found or [message for message in self.message_rows.packed(session) if message.n > after][:limit]

    def last_number(self, session: str) -> int:
        packed = self.message_rows.packed
        return self.message_rows.last_number(session) or max((message.n for message in packed(session)), default=0)

    def messages_at(self, places: Sequence[tuple[str, int]]) -> list[FoundMessage]:
        return self.message_rows.at(places)

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
        rows = self.message_rows
        with rows.until(deadline):
            held = rows.postings([*dict.fromkeys(words)], session, period)
            if session is None and period == ALWAYS:  # all of them are listed, and need not be counted again
                statistics = Statistics(*rows.counts(), {word: len(ids) for word, ids in held.items()})
            else:
                statistics = self.message_statistics(words)
            shortlist = _shortlist(rows, gains_of(held, statistics), statistics, max(_FEWEST, SHORTLIST * limit))
            match = bm25.match_of(words, statistics, by_tokens=True)
            ranked = [
                (match(Prepared(one.words, "", "", "", "", one.n_words, one.n_words)), one.newer, one)
                for one in rows.read(shortlist)
            ]
            return [rows.found(one, words) for _, _, one in sorted(ranked, reverse=True)[:limit]]

    def message_statistics(self, words: Sequence[str]) -> Statistics:
        distinct = [*dict.fromkeys(words)]
        counted = self.message_rows.rows_with(distinct) if distinct else {}
        return Statistics(*self.message_rows.counts(), dict.fromkeys(distinct, 0) | counted)


def _shortlist(rows: MessageRows, gains: Mapping[int, float], statistics: Statistics, most: int) -> list[int]:
    """Of many matches those that promise most: by the words they hold, as if each stood there once, and by length."""
    if len(gains) <= most:
        return [*gains]
    norm, a_word = 1 + bm25.K1 * (1 - bm25.B), bm25.K1 * bm25.B * statistics.rows / (statistics.words or 1)
    lengths = rows.lengths([*gains])
    promises = [gain / (norm + a_word * lengths[id]) for id, gain in gains.items()]
    return [id for _, id in sorted(zip(promises, gains, strict=True), reverse=True)[:most]]


class MessageWriter(MessageReader):
    """Adds, packs and erases messages, for the transaction of any engine."""

    def note_erased(self, session: str) -> None:
        """Remember that something of a session was erased."""
        raise NotImplementedError

    def append(self, messages: Sequence[Message]) -> list[Message]:
        added = []
        rows = self.message_rows
        given = {message.id for message in messages}
        for session, group in groupby(messages, key=lambda message: message.session):
            new = list(group)
            if packed := {(message.id, message.role) for message in rows.packed(session)}:
                new = [message for message in new if (message.id, message.role) not in packed]
                if new:
                    self.unpack(session)
            n = self.last_number(session)
            for message in new:
                if message.id and rows.has(session, message.id, message.role):
                    continue
                n += 1
                id = message.id or _free_id(n, lambda id, session=session: id in given or rows.has(session, id))  # type: ignore[misc]
                added.append(replace(message, n=n, id=id))
                rows.insert(added[-1])
        return added

    def pack(self, session: str) -> int:
        said = self.messages(session)
        if said:
            self.message_rows.pack(session, said)
        return len(said)

    def unpack(self, session: str) -> int:
        packed = self.message_rows.packed(session)
        self.message_rows.unpack(session)
        for message in packed:
            self.message_rows.insert(message)
        return len(packed)

    def erase_messages(self, session: str, ids: Sequence[str] | None = None) -> int:
        was_packed = self.unpack(session)
        gone = [message for message in self.messages(session) if ids is None or message.id in ids]
        for message in gone:
            self.message_rows.delete(session, message.n)
            if ids is not None:
                self.message_rows.insert(_blank(message))
        if gone:
            self.note_erased(session)
        if was_packed:
            self.pack(session)
        return len(gone)


def to_pack(messages: Sequence[Message]) -> bytes:
    """The messages of a session as one compressed row."""
    return zlib.compress(_encode(messages), 9)


def from_pack(session: str, body: bytes) -> list[Message]:
    """The messages of a packed session. Raises Corrupt when the body is not what was packed, which zlib checks."""
    try:
        return _decode(zlib.decompress(body))
    except (TypeError, zlib.error, msgspec.MsgspecError) as error:
        raise damaged(f"The packed session {session}") from error


def _free_id(n: int, is_taken: Callable[[str], bool]) -> str:
    """An id for message `n`, which came without one: by its number, or by the next one that is free."""
    return next(id for number in count(n) if not is_taken(id := f"msg_{number:03d}"))


def _blank(message: Message) -> Message:
    """What is left of an erased message: its place."""
    return Message(
        id=message.id, role=message.role, session=message.session, n=message.n, content=ERASED, at=message.at
    )
