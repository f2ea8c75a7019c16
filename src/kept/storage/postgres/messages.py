"""Conversations in PostgreSQL, as SQL. storage/messages.py decides what is added, packed and erased, and ranks."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from kept import bm25, text
from kept.model import Message, SessionRecord
from kept.ports import Deadline, FoundMessage, Period, Prepared, Statistics
from kept.storage.messages import from_pack, to_pack
from kept.storage.postgres import rows
from kept.storage.postgres.connection import SpaceView, insert
from kept.storage.postgres.index import IndexChanges, PostgresIndex
from kept.storage.ranking import gains_of, rows_with
from kept.storage.shared import MOST, damaged

POSTINGS_AT_MOST = 20_000  # that a search reads, those of the rarest words, and all of the rarest one
SHORTLIST = 5  # times as many as are wanted: of these the words are read
SHELF = "messages"
NextId = Callable[[str], int]


class PostgresMessages:
    """The messages as one transaction sees them; in a turn to write, also to change them."""

    def __init__(self, view: SpaceView, changes: IndexChanges | None = None, next_id: NextId = lambda noun: 0) -> None:
        self._view = view
        self._changes = IndexChanges() if changes is None else changes
        self._next_id = next_id
        self.waiting: list[tuple[Any, ...]] = []  # new rows, until the next read or the end

    def session(self, name: str) -> SessionRecord | None:
        sql = "select body from records where space = %(space)s and noun = %(noun)s and name = %(name)s"
        found = self._view.fetch(sql, noun=SessionRecord.noun, name=f"{SessionRecord.noun}:{name}")
        return rows.to_record(SessionRecord, found[0][0]) if found else None

    def stored(self, session: str, *, after: int = 0, limit: int | None = None) -> list[Message]:
        sql = f"""
            select {rows.MESSAGE_SELECT}
            from messages m
            where m.space = %(space)s and m.session = %(session)s and m.n > %(after)s
            order by m.n
            limit %(limit)s"""
        found = self._view.fetch(sql, session=session, after=after, limit=MOST if limit is None else limit)
        return [rows.to_message(row).message for row in found]

    def packed(self, session: str) -> list[Message]:
        sql = "select body from packed_sessions where space = %(space)s and session = %(session)s"
        found = self._view.fetch(sql, session=session)
        return from_pack(session, found[0][0]) if found else []

    def last_number(self, session: str) -> int:
        sql = "select max(n) from messages where space = %(space)s and session = %(session)s"
        return int(self._view.fetch(sql, session=session)[0][0] or 0)

    def at(self, places: Sequence[tuple[str, int]]) -> list[FoundMessage]:
        sql = f"""
            select {rows.MESSAGE_SELECT}
            from unnest(%(sessions)s::text[], %(numbers)s::bigint[]) with ordinality place (session, n, rank)
            join messages m on m.space = %(space)s and m.session = place.session and m.n = place.n
            order by place.rank"""
        sessions, numbers = [session for session, _ in places], [n for _, n in places]
        return [rows.to_message(row) for row in self._view.fetch(sql, sessions=sessions, numbers=numbers)]

    def until(self, deadline: Deadline | None) -> AbstractContextManager[None]:
        return self._view.until(deadline)

    def matching(self, words: Sequence[str], session: str | None, period: Period, most: int) -> list[FoundMessage]:
        if not words:
            return []
        statistics = Statistics(*self.counts(), self.rows_with(words))
        held = self._postings(_affordable(words, statistics), session, period)
        gains = gains_of(held, statistics)
        # Rows with the most telling words; of equals the newest. Then by all words, without reading the messages.
        likely = sorted(gains, key=lambda id: (-gains[id], -id))[: SHORTLIST * most]
        match = bm25.match_of(words, statistics, by_tokens=True)
        ranked = [
            (match(Prepared(held_words, "", "", "", "", n_words, n_words)), id)
            for id, held_words, n_words in self._with("m.id, m.words, m.n_words", likely)
        ]
        best = [id for _, id in sorted(ranked, reverse=True)[:most]]
        return [rows.to_message(row) for row in self._with(rows.MESSAGE_SELECT, best)]

    def _with(self, columns: str, ids: Sequence[int]) -> list[tuple[Any, ...]]:
        sql = f"select {columns} from messages m where m.space = %(space)s and m.id = any(%(ids)s)"
        return self._view.fetch(sql, ids=ids)

    def _postings(self, words: Sequence[str], session: str | None, period: Period) -> dict[str, list[int]]:
        values: dict[str, Any] = {"session": session, "since": period.since, "until": period.until}
        asked = {"session": "m.session = %(session)s", "since": "m.at >= %(since)s", "until": "m.at < %(until)s"}
        given = [condition for name, condition in asked.items() if values[name] is not None]
        index = PostgresIndex(self._view)
        if not given:
            return index.packed(SHELF, words)
        return index.packed_of("messages", SHELF, words, " and ".join(given), **values)

    def check_match(self, found: FoundMessage, words: Sequence[str]) -> None:
        at = f"message {found.message.n} of session {found.message.session}"
        raise damaged(f"The search index of messages (it wrongly lists {at})")

    def counts(self) -> tuple[int, int, int]:
        return self._view.counts(rows.SHELVES[SHELF])

    def rows_with(self, words: Sequence[str]) -> dict[str, int]:
        return rows_with(PostgresIndex(self._view), SHELF, words, self.counts()[0])

    def has(self, session: str, id: str, role: str | None = None, *, upto: int | None = None) -> bool:
        sql = f"""
            select 1
            from messages
            where space = %(space)s and session = %(session)s and message_id = %(id)s
              {"" if role is None else "and role = %(role)s"}
              {"" if upto is None else "and n <= %(upto)s"}
            limit 1"""
        return bool(self._view.fetch(sql, session=session, id=id, role=role, upto=upto))

    def insert(self, message: Message) -> None:
        words, n_words = text.words_and_length(message.content)
        id = self._next_id(SHELF)
        self.waiting.append((id, *rows.message_values(message, " ".join(words), n_words)))
        self._changes.add_message(id, words, n_words)

    def write(self) -> None:
        """Write the rows that wait."""
        waiting, self.waiting = self.waiting, []
        insert(self._view, "messages", ("id", *rows.MESSAGE_COLUMNS), waiting)

    def delete(self, session: str, n: int) -> None:
        sql = "delete from messages where space = %(space)s and session = %(session)s and n = %(n)s"
        self._delete(f"{sql} returning id, words, n_words", session=session, n=n)

    def pack(self, session: str, messages: Sequence[Message]) -> None:
        self.unpack(session)
        insert(self._view, "packed_sessions", ("session", "body"), [(session, to_pack(messages))])
        sql = "delete from messages where space = %(space)s and session = %(session)s"
        self._delete(f"{sql} returning id, words, n_words", session=session)

    def unpack(self, session: str) -> None:
        self._view.run("delete from packed_sessions where space = %(space)s and session = %(session)s", session=session)

    def _delete(self, sql: str, **values: Any) -> None:
        for id, words, n_words in self._view.fetch(sql, **values):
            self._changes.drop_message(self._view, id, words.split(), n_words)


def _affordable(words: Sequence[str], statistics: Statistics) -> list[str]:
    """The rarest words whose postings can be read in time; the rarest one in any case."""
    chosen: list[str] = []
    total = 0
    for word in sorted(words, key=lambda word: statistics.rows_with.get(word, 0)):
        total += statistics.rows_with.get(word, 0)
        if chosen and total > POSTINGS_AT_MOST:
            break
        chosen.append(word)
    return chosen
