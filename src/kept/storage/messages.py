"""Conversations for every engine: reading, ranking, adding, packing and erasing messages.

An engine supplies rows (`MessageRows`). This module decides which messages are added, their numbers and ids, and their
rank, so that all engines agree. A session that has not been used for a long time is packed: its messages become one
compressed row and leave the index.
Rule: a message that was acknowledged reads the same for ever, unless it is erased.
"""

import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from itertools import count, groupby
from typing import TYPE_CHECKING, Protocol

import msgspec

from kept import bm25
from kept.model import ERASED, Message, SessionRecord, replace
from kept.ports import ALWAYS, Deadline, FoundMessage, Period, Prepared, R, Statistics
from kept.storage.shared import check_limit, damaged

# Messages to rank: at least this many, and this many beyond the limit. Engines propose them by nearly the same rule.
FEWEST, SPARE = 100, 10
_LONG_AGO = datetime.min.replace(tzinfo=UTC)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Message]).decode


class MessageRows(Protocol):
    """The messages of one space as an engine keeps them.

    The last five methods are for a turn to write.
    """

    def session(self, name: str) -> SessionRecord | None:
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

    def matching(self, words: Sequence[str], session: str | None, period: Period, most: int) -> list[FoundMessage]:
        """The messages of that session and period that hold one of the words; of more than `most`, about the best."""

    def check_match(self, found: FoundMessage, words: Sequence[str]) -> None:
        """Raise Corrupt when the index proposed a message that holds none of the words."""

    def counts(self) -> tuple[int, int, int]:
        """Messages, words and tokens of all that are not packed."""

    def rows_with(self, words: Sequence[str]) -> dict[str, int]:
        """How many messages hold each word; a word that none holds may be missing."""

    def has(self, session: str, id: str, role: str | None = None, *, upto: int | None = None) -> bool:
        """Whether a message that is not packed has that id, that role and a number of at most `upto`, if given."""

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

    def session(self, name: str) -> SessionRecord | None:
        return self.message_rows.session(name)

    def messages(self, session: str, *, after: int = 0, limit: int | None = None) -> list[Message]:
        fork = self.message_rows.session(session)
        parent = fork and fork.parent and after < fork.shared and self.message_rows.session(fork.parent)
        if not fork or not parent or parent.id > fork.id:  # another one of that name, after a backup was restored
            return self.own_messages(session, after=after, limit=limit)
        most = fork.shared - after if limit is None else min(limit, fork.shared - after)
        before = [replace(one, session=session) for one in self.messages(parent.name, after=after, limit=most)]
        shared = [one for one in before if one.n <= fork.shared]
        return shared + self.own_messages(session, limit=None if limit is None else limit - len(shared))

    def own_messages(self, session: str, *, after: int = 0, limit: int | None = None) -> list[Message]:
        """The messages that are stored for this session: of a fork, those after the ones that it shares."""
        if limit == 0:
            return []
        found = self.message_rows.stored(session, after=after, limit=limit)
        return found or [message for message in self.message_rows.packed(session) if message.n > after][:limit]

    def last_number(self, session: str) -> int:
        last = self.message_rows.last_number(session)
        if not last:
            last = max((message.n for message in self.message_rows.packed(session)), default=0)
        if not last:
            fork = self.message_rows.session(session)
            last = fork.shared if fork is not None else 0
        return last

    def messages_at(self, places: Sequence[tuple[str, int]]) -> list[FoundMessage]:
        return self.message_rows.at(places)

    def search_messages(
        self,
        words: Sequence[str],
        *,
        limit: int,
        session: str | None = None,
        period: Period = ALWAYS,
        statistics: Statistics | None = None,
        deadline: Deadline | None = None,
    ) -> list[FoundMessage]:
        check_limit(limit)
        rows = self.message_rows
        with rows.until(deadline):
            proposed = rows.matching([*dict.fromkeys(words)], session, period, max(FEWEST, limit + SPARE))
            match_of = bm25.match_of(words, statistics or self.message_statistics(words), by_tokens=True)
            ranked = []
            for one in proposed:
                match, message = match_of(Prepared(one.words, "", "", "", "", one.n_words, one.n_words)), one.message
                if not match:
                    rows.check_match(one, words)
                ranked.append((match, message.at or _LONG_AGO, message.session, message.n, one))
            return [one for *_, one in sorted(ranked, reverse=True)[:limit]]

    def message_statistics(self, words: Sequence[str]) -> Statistics:
        distinct = [*dict.fromkeys(words)]
        counted = self.message_rows.rows_with(distinct) if distinct else {}
        return Statistics(*self.message_rows.counts(), dict.fromkeys(distinct, 0) | counted)


class MessageWriter(MessageReader):
    """Adds, packs and erases messages, for the transaction of any engine."""

    if TYPE_CHECKING:  # of the engine's transaction

        def all(self, noun: type[R]) -> list[R]: ...
        def put(self, record: R, action: str) -> R: ...
        def note_erased(self, session: str) -> None:
            """Something of this session was erased."""

    def append(self, messages: Sequence[Message]) -> list[Message]:
        added = []
        rows = self.message_rows
        given = {message.id for message in messages}
        for session, group in groupby(messages, key=lambda message: message.session):
            new = self._new_ones(session, group)
            n = self.last_number(session)
            for message in new:
                if message.id and rows.has(session, message.id, message.role):
                    continue
                n += 1
                id = message.id or _free_id(n, lambda id, session=session: id in given or rows.has(session, id))  # type: ignore[misc]
                added.append(replace(message, n=n, id=id))
                rows.insert(added[-1])
        return added

    def _new_ones(self, session: str, messages: Iterable[Message]) -> list[Message]:
        """The messages that are neither shared with a parent nor packed. A session that grows is unpacked first."""
        fork = self.message_rows.session(session)
        new = [message for message in messages if not (message.id and self._is_shared(fork, message))]
        if packed := {(message.id, message.role) for message in self.message_rows.packed(session)}:
            new = [message for message in new if (message.id, message.role) not in packed]
            if new:
                self.unpack(session)
        return new

    def _is_shared(self, fork: SessionRecord | None, message: Message) -> bool:
        """Whether the message is one of those with which a fork began."""
        while fork is not None and fork.parent is not None and fork.shared:
            parent, upto = fork.parent, fork.shared
            if self.message_rows.has(parent, message.id, message.role, upto=upto) or any(
                (one.id, one.role) == (message.id, message.role) and one.n <= upto
                for one in self.message_rows.packed(parent)
            ):
                return True
            fork = self.message_rows.session(parent)
            fork = fork and replace(fork, shared=min(fork.shared, upto))
        return False

    def pack(self, session: str) -> int:
        said = self.own_messages(session)
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
        if ids is None:
            self.release_forks(session)
        was_packed = self.unpack(session)
        own = self.own_messages(session)
        elsewhere = 0 if ids is None else self._erase_in_parent(session, ids)
        gone = [message for message in own if ids is None or message.id in ids]
        for message in gone:
            self.message_rows.delete(session, message.n)
            if ids is not None:
                self.message_rows.insert(_blank(message))
        if gone:
            self.note_erased(session)
        if was_packed:
            self.pack(session)
        return len(gone) + elsewhere

    def _erase_in_parent(self, session: str, ids: Sequence[str]) -> int:
        """Erase those of the messages that a fork shares with its parent, there. Returns how many."""
        fork = self.message_rows.session(session)
        if fork is None or fork.parent is None or not fork.shared:
            return 0
        first = {message.id for message in self.messages(session, limit=fork.shared)}
        return self.erase_messages(fork.parent, [id for id in ids if id in first])

    def release_forks(self, session: str) -> None:
        """Let no fork begin with what a session says, which goes: a later one of its name is another one.

        They get blanks of their own, after what the session itself has from its parent.
        """
        gone = self.message_rows.session(session)
        parent, before = (None, 0) if gone is None else (gone.parent, gone.shared)
        for fork in self.all(SessionRecord):
            if fork.parent == session:
                was_packed = self.unpack(fork.name)
                for message in self.messages(fork.name, after=before):
                    if message.n <= fork.shared:
                        self.message_rows.insert(_blank(message))
                self.put(replace(fork, parent=parent, shared=min(fork.shared, before)), "session")
                if was_packed:
                    self.pack(fork.name)

    def rewrite(self, messages: Sequence[Message]) -> int:
        done = 0
        for session, group in groupby(messages, key=lambda message: message.session):
            was_packed = self.unpack(session)
            there = {message.n for message in self.message_rows.stored(session)}
            new = [message for message in group if message.n in there]
            for message in new:
                self.message_rows.delete(session, message.n)
                self.message_rows.insert(message)
            if new:
                self.note_erased(session)
            if was_packed:
                self.pack(session)
            done += len(new)
        return done


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
    fields = {name: getattr(message, name) for name in ("id", "role", "session", "n", "at", "trust")}
    return Message(**fields, content=ERASED)
