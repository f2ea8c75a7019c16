"""Searching packed sessions, which are compressed and in no index.

`WithPacked` stands in for the reader of a space when a question asks for them: it unpacks and reads them all, about a
second for 20,000 messages. Rule: the answer is the same as if no session had been packed.
"""

from collections.abc import Iterator, Sequence
from heapq import nlargest

from kept import bm25, text
from kept.model import Message, SessionRecord
from kept.ports import ALWAYS, Deadline, FoundMessage, Period, Prepared, Reader, Statistics


def prepared(found: FoundMessage) -> Prepared:
    """A message as BM25 takes it."""
    return Prepared(found.words, "", "", "", "", found.n_words, found.n_words)


class WithPacked:
    """The messages of a space, packed or not, searched as a `Reader` searches those that are not packed."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._packed = [session.name for session in reader.all(SessionRecord) if session.packed_at is not None]
        self._counted: dict[tuple[str, ...], Statistics] = {}

    def messages_at(self, places: Sequence[tuple[str, int]]) -> list[FoundMessage]:
        unpacked = [place for place in places if place[0] not in self._packed]
        numbers = {(session, n) for session, n in places if session in self._packed}
        found = self._reader.messages_at(unpacked)
        for name in {session for session, _ in numbers}:
            said = self._reader.messages(name)
            found += [_found(message) for message in said if (name, message.n) in numbers]
        return found

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
        """As in any storage, but without a time limit: the caller asked for more than the quick answer."""
        match = bm25.match_of(words, statistics or self.message_statistics(words))
        found = self._reader.search_messages(words, limit=limit, session=session, period=period)
        old = (one for one in self._old(session) if period.holds(one.message.at))
        scored = [(match(prepared(one)), one) for one in (*found, *old)]
        best = nlargest(limit, (entry for entry in scored if entry[0]), key=lambda entry: entry[0])
        return [one for _, one in best]

    def message_statistics(self, words: Sequence[str]) -> Statistics:
        asked = tuple(words)
        if asked not in self._counted:
            rows = n_words = 0
            rows_with = dict.fromkeys(words, 0)
            for one in self._old():
                rows, n_words = rows + 1, n_words + one.n_words
                for word in rows_with.keys() & set(one.words.split()):
                    rows_with[word] += 1
            old = Statistics(rows, n_words, n_words, rows_with)
            self._counted[asked] = self._reader.message_statistics(words) + old
        return self._counted[asked]

    def _old(self, session: str | None = None) -> Iterator[FoundMessage]:
        for name in self._packed:
            if session in (None, name):
                yield from map(_found, self._reader.messages(name))


def _found(message: Message) -> FoundMessage:
    words, n_words = text.words_and_length(message.content)
    return FoundMessage(message, " ".join(words), n_words)
