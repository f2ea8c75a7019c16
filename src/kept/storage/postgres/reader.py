"""Reading a space in PostgreSQL: rows, pages, the journal, recall's notes, vectors.

Searches and conversations are in index.py and messages.py. SQL text is assembled from constants of this file and of
rows.py; values are always bound.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from kept import vectors
from kept.model import Event, Memory
from kept.ports import LIVE, EventHead, Found, Foundation, R, SavedNote, VectorState, Where
from kept.storage.messages import MessageReader
from kept.storage.postgres import rows
from kept.storage.postgres.connection import HALFVEC, SCHEMA, Array, SpaceView, plain
from kept.storage.postgres.index import PostgresIndex
from kept.storage.postgres.messages import PostgresMessages
from kept.storage.ranking import IndexReader
from kept.storage.shared import MOST, check_limit, tombstone
from kept.storage.weights import Weights

SHORTLIST = 4  # times as many as are wanted: of these pgvector's choice is compared exactly
_FITS = "v.model = h.vector_model and v.fingerprint = m.fingerprint"
_WITH_VECTORS = f"""
    from heads h
    join memories m on m.space = h.space
    join vectors v on v.space = m.space and v.id = m.id and {_FITS}
    where h.space = %(space)s"""


def pgvector(view: SpaceView) -> str | None:
    """The schema of pgvector's types and operators; None where vectors are not kept for it as well."""
    sql = f"""
        select t.place, %(space)s
        from ({HALFVEC}) t
        join pg_attribute a on a.atttypid = t.oid
        where a.attrelid = to_regclass('{SCHEMA}.vectors') and a.attname = 'near' and not a.attisdropped"""
    found = view.once(sql)
    return found[0][0] if found else None


# Not an outer join: under row-level security Citus has none of these before PostgreSQL 17.
_PAYLOAD = "(select p.{} from event_payloads p where p.space = %(space)s and p.seq = e.seq)"


class PostgresReader(IndexReader, MessageReader):
    """One consistent look at a space."""

    index: PostgresIndex
    message_rows: PostgresMessages

    def __init__(self, view: SpaceView, weights: Weights) -> None:
        self.space = view.space
        self.view = view
        self.index = PostgresIndex(view, weights)
        self.message_rows = PostgresMessages(view)

    def get(self, noun: type[R], id: int) -> R | None:
        if noun is Memory:
            found = self.index.memories([id])
            return found[0][0] if found else None  # type: ignore[return-value]
        sql = "select body from records where space = %(space)s and noun = %(noun)s and id = %(id)s"
        bodies = self.view.fetch(sql, noun=noun.noun, id=id)
        return rows.to_record(noun, bodies[0][0]) if bodies else None

    def all(self, noun: type[R]) -> list[R]:
        sql = "select body from records where space = %(space)s and noun = %(noun)s order by id"
        return [rows.to_record(noun, body) for (body,) in self.view.once(sql, noun=noun.noun)]

    def select(
        self, where: Where = LIVE, *, limit: int = 50, after: int | None = None, oldest_first: bool = False
    ) -> list[Memory]:
        check_limit(limit)
        condition, values = rows.conditions(where)
        sql = f"""
            select {rows.MEMORY_SELECT}
            from memories m
            where m.space = %(space)s and {condition}
              {"" if after is None else f"and m.id {'>' if oldest_first else '<'} %(after)s"}
            order by m.id {"asc" if oldest_first else "desc"}
            limit %(limit)s"""
        found = self.view.fetch(sql, **values, after=after, limit=limit)
        return [rows.to_memory(row, self.space) for row in found]

    def count(self, where: Where = LIVE) -> int:
        condition, values = rows.conditions(where)
        sql = f"select count(*) from memories m where m.space = %(space)s and {condition}"
        return int(self.view.fetch(sql, **values)[0][0])

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
        sql = f"""
            select {rows.EVENT_SELECT}, {_PAYLOAD.format("salt")}, {_PAYLOAD.format("changed")}
            from events e
            where e.space = %(space)s and e.seq > %(after)s
              {"" if subject is None else "and e.subject = %(subject)s"}
              {"" if group is None else 'and e."group" = %(group)s'}
              {"" if later_than is None else "and e.at > %(later_than)s"}
            order by e.seq {"desc" if newest_first else "asc"}
            limit %(limit)s"""
        most = MOST if limit is None else limit
        values: dict[str, Any] = {
            "subject": subject,
            "group": group,
            "after": after,
            "later_than": later_than,
            "limit": most,
        }
        return [rows.to_event(row) for row in self.view.fetch(sql, **values)]

    def event_heads(
        self, *, after: int = 0, later_than: datetime | None = None, limit: int | None = None
    ) -> list[EventHead]:
        sql = f"""
            select seq, "group", at, actor, action, subject
            from events
            where space = %(space)s and seq > %(after)s {"" if later_than is None else "and at > %(later_than)s"}
            order by seq
            limit %(limit)s"""
        found = self.view.fetch(sql, after=after, later_than=later_than, limit=MOST if limit is None else limit)
        return [
            EventHead(seq, plain(group), rows.moment(at), plain(actor), plain(action), plain(subject))
            for seq, group, at, actor, action, subject in found
        ]

    def activity(self, *, after: int = 0) -> list[tuple[datetime, str, str, int]]:
        sql = """
            select date_trunc('hour', at, 'UTC') as hour, actor, action, count(*)
            from events
            where space = %(space)s and seq > %(after)s
            group by hour, actor, action"""
        found = self.view.fetch(sql, after=after)
        return sorted((rows.moment(hour), plain(actor), plain(action), number) for hour, actor, action, number in found)

    def foundation(self) -> Foundation:
        key, last_ids = self.view.fetch("select tombstone_key, last_ids from heads where space = %(space)s")[0]
        packed = self._texts("select session from packed_sessions where space = %(space)s order by session")
        spoken = self._texts("select distinct session from messages where space = %(space)s order by session")
        ids = {noun: last for noun, last in rows.decode_json(last_ids).items() if noun != "messages"}
        marks = self._texts("select mark from tombstones where space = %(space)s order by mark")
        sessions = tuple(sorted({*spoken, *packed}))
        return Foundation(key=bytes(key), tombstones=marks, last_ids=ids, sessions=sessions, packed=packed)

    def _texts(self, sql: str) -> tuple[str, ...]:
        return tuple(plain(text) for (text,) in self.view.fetch(sql))

    def is_erased(self, fingerprint: str) -> bool:
        key = self.view.fetch("select tombstone_key from heads where space = %(space)s")
        sql = "select 1 from tombstones where space = %(space)s and mark = %(mark)s"
        return bool(key and self.view.fetch(sql, mark=tombstone(key[0][0], fingerprint)))

    def erased_among(self, names: Collection[str]) -> set[str]:
        key = self.view.fetch("select tombstone_key from heads where space = %(space)s") if names else []
        marks = {tombstone(key[0][0], name): name for name in names} if key else {}
        sql = "select mark from tombstones where space = %(space)s and mark = any(%(marks)s)"
        return {marks[plain(mark)] for (mark,) in self.view.fetch(sql, marks=list(marks))} if marks else set()

    def counters(self) -> dict[str, int]:
        sql = "select name, number from counters where space = %(space)s"
        return {plain(name): number for name, number in self.view.fetch(sql)}

    def file_notes(self, beginning: str = "") -> dict[str, str]:
        sql = """
            select name, note
            from file_notes
            where space = %(space)s and starts_with(name, %(first)s)
            order by name"""
        return {plain(name): plain(note) for name, note in self.view.fetch(sql, first=beginning)}

    def links(self, id: int) -> list[tuple[int, float, datetime]]:
        sql = """
            select case memory_id when %(id)s then related_id else memory_id end as other, strength, at
            from memory_links
            where space = %(space)s and (memory_id = %(id)s or related_id = %(id)s)
            order by strength desc, other"""
        return [(other, strength, rows.moment(at)) for other, strength, at in self.view.fetch(sql, id=id)]

    def receipt(self, id: int | None = None) -> SavedNote | None:
        return next(iter(self._receipts("" if id is None else "and id = %(id)s", id=id, limit=1)), None)

    def receipts_of(self, session: str | None, *, limit: int) -> list[SavedNote]:
        return self._receipts("" if session is None else "and session = %(session)s", session=session, limit=limit)

    def sessions_told(self, *, limit: int) -> list[str]:
        sql = """
            select session
            from receipts
            where space = %(space)s and session is not null
            group by session
            order by max(id) desc
            limit %(limit)s"""
        return [plain(session) for (session,) in self.view.fetch(sql, limit=limit)]

    def _receipts(self, condition: str, **values: Any) -> list[SavedNote]:
        sql = f"""
            select id, at, body
            from receipts
            where space = %(space)s {condition}
            order by id desc
            limit %(limit)s"""
        found = self.view.fetch(sql, **values)
        return [(number, rows.moment(at), rows.decode_json(plain(body))) for number, at, body in found]

    def vector_state(self) -> VectorState:
        sql = """
            select h.vector_model,
              (select sum(c.rows) from corpus c where c.space = %(space)s and c.shelf < 4),
              (select count(*) from vectorless w where w.space = %(space)s)
            from heads h
            where h.space = %(space)s"""
        found = self.view.fetch(sql)
        if not found or found[0][0] is None:
            return VectorState()
        model, memories, pending = found[0]
        return VectorState(model, int(memories or 0) - pending, pending)

    def vectorless(self, *, limit: int) -> list[Memory]:
        check_limit(limit)
        sql = f"""
            select {rows.MEMORY_SELECT}
            from vectorless w
            join memories m on m.space = w.space and m.id = w.id
            where w.space = %(space)s
            order by m.id
            limit %(limit)s"""
        return [rows.to_memory(row, self.space) for row in self.view.fetch(sql, limit=limit)]

    def vectors(self, ids: Sequence[int]) -> dict[int, bytes]:
        sql = f"select v.id, v.vector {_WITH_VECTORS} and m.id = any(%(ids)s)"
        return {id: bytes(vector) for id, vector in self.view.fetch(sql, ids=ids)}

    def nearest(self, vector: bytes, where: Where = LIVE, *, limit: int) -> list[Found]:
        check_limit(limit)
        condition, values = rows.conditions(where)
        sql = f"select v.id, v.vector {_WITH_VECTORS} and m.shelf <> 3 and {condition}"
        if (place := pgvector(self.view)) is not None:
            # It proposes; those that it does not know are all looked at. What is nearest is computed below, as ever.
            order = f"v.near operator({place}.<=>) %(vector)s::{place}.halfvec"
            sql = f"({sql} and v.near is null) union all ({sql} and v.near is not null order by {order} limit %(many)s)"
            values |= {"vector": Array(vectors.numbers(vector)), "many": SHORTLIST * limit}
        fitting = self.view.fetch(sql, **values)
        cosines = vectors.cosines(vector, [bytes(other) for _, other in fitting])
        ranks = {id: cosine for (id, _), cosine in zip(fitting, cosines, strict=True)}
        best = sorted(ranks, key=lambda id: (-ranks[id], -id))[:limit]
        return [Found(memory, prepared, ranks[memory.id]) for memory, prepared in self.index.memories(best)]
