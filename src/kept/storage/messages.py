"""Conversations in plain dictionaries, for the in-memory storage and the JSON file."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING

import msgspec

from kept import bm25, text
from kept.model import Message, Session
from kept.ports import ALWAYS, Deadline, FoundMessage, Period, Prepared, Statistics, TooLate
from kept.storage.shared import ERASED, check_limit

if TYPE_CHECKING:
    from kept.storage.inmemory import State


class MessageReader:
    """Reads the messages of one state."""

    _state: "State"

    def session(self, name: str) -> Session | None:
        return next((session for session in self._state.sessions.values() if session.name == name), None)

    def messages(self, session: str, *, after: int = 0, limit: int | None = None) -> list[Message]:
        return [message for message in self._state.messages.get(session, ()) if message.n > after][:limit]

    def last_number(self, session: str) -> int:
        return max((message.n for message in self._state.messages.get(session, ())), default=0)

    def messages_at(self, places: Sequence[tuple[str, int]]) -> list[FoundMessage]:
        wanted = set(places)
        return [found for found in self._open_messages() if (found.message.session, found.message.n) in wanted]

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
        statistics = self.message_statistics(words)
        scored: list[tuple[float, int, FoundMessage]] = []
        for order, found in enumerate(self._open_messages()):
            if deadline is not None and deadline.is_over():
                raise TooLate
            if session in (None, found.message.session) and period.holds(found.message.at):
                relevance = bm25.score(_prepared(found), words, statistics)
                if relevance:
                    scored.append((-relevance, -order, found))
        scored.sort(key=lambda entry: entry[:2])
        return [found for _, _, found in scored[:limit]]

    def message_statistics(self, words: Sequence[str]) -> Statistics:
        rows = n_words = 0
        rows_with = dict.fromkeys(words, 0)
        for found in self._open_messages():
            tokens = found.words.split()
            rows, n_words = rows + 1, n_words + found.n_words
            held = set(tokens)
            for word in rows_with:
                rows_with[word] += word in held
        return Statistics(rows, n_words, n_words, rows_with)

    def _open_messages(self) -> list[FoundMessage]:
        return [
            FoundMessage(message, " ".join(text.words(message.content)), text.count_words(message.content))
            for session, messages in self._state.messages.items()
            if session not in self._state.packed
            for message in messages
        ]


class MessageWriter(MessageReader):
    """Changes the messages of a state that nobody else has seen yet."""

    def append(self, messages: Sequence[Message]) -> list[Message]:
        added = []
        given = {message.id for message in messages}
        for message in messages:
            before = self._state.messages.get(message.session, ())
            if message.id and any(known.id == message.id and known.role == message.role for known in before):
                continue
            self._state.packed.discard(message.session)
            n = self.last_number(message.session) + 1
            id = message.id or free_id(n, given.union(known.id for known in before).__contains__)
            added.append(msgspec.structs.replace(message, n=n, id=id))
            self._state.messages[message.session] = (*before, added[-1])
        return added

    def pack(self, session: str) -> int:
        if session in self._state.messages:
            self._state.packed.add(session)
        return len(self._state.messages.get(session, ()))

    def unpack(self, session: str) -> int:
        self._state.packed.discard(session)
        return len(self._state.messages.get(session, ()))

    def erase_messages(self, session: str, ids: Sequence[str] | None = None) -> int:
        before = self._state.messages.get(session, ())
        gone = [message for message in before if ids is None or message.id in ids]
        if ids is None:
            self._state.messages.pop(session, None)
            self._state.packed.discard(session)
        elif gone:
            self._state.messages[session] = tuple(blank(message) if message in gone else message for message in before)
        self.has_erased = True
        return len(gone)


def free_id(n: int, is_taken: Callable[[str], bool]) -> str:
    """An id for message `n`, which came without one: by its number, or by the next one that is free."""
    return next(id for number in count(n) if not is_taken(id := f"msg_{number:03d}"))


def blank(message: Message) -> Message:
    """What is left of an erased message: its place."""
    return Message(
        id=message.id, role=message.role, session=message.session, n=message.n, content=ERASED, at=message.at
    )


def _prepared(found: FoundMessage) -> Prepared:
    return Prepared(found.words, "", "", "", "", found.n_words, len(found.words.split()))
