"""The notes of recall in a SQLite space: uses, links, receipts, counters, vectors. No journal, and not synced.

Apart from writer.py, so that a program that only asks need not load that. Rule: nothing here begins or ends a
transaction; storage.py does, in this process's turn.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import apsw

from kept.model import Memory
from kept.storage.shared import DELIVERIES_KEPT_DAYS, RECEIPTS_KEPT
from kept.storage.sqlite import index, rows, vectors
from kept.storage.sqlite.connection import is_damage
from kept.storage.sqlite.encoding import clock
from kept.storage.sqlite.reader import COUNTER

TIDY_EVERY = 32  # receipts
MERGED_PAGES = 64  # of an index at a time: some milliseconds


class SqliteBookkeeping:
    """A turn to take notes."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self.has_changed_memories = False

    def count_uses(self, ids: Sequence[int], at: datetime) -> None:
        if not ids:
            return
        self.has_changed_memories = True
        uses = Counter(ids)
        sql = f"select {rows.MEMORY_SELECT} from json_each(?) used cross join memories m on m.id = used.value"
        found: Any = self._connection.execute(sql, (rows.json_text(list(uses)),)).fetchall()
        self._connection.executemany(
            "update memories set use_count = ?, last_used_at = ?, checksum = ? where id = ?",
            [(*rows.after_use(row, uses[row[0]], at), row[0]) for row in found],
        )

    def link(self, ids: Sequence[int], at: datetime) -> None:
        if len(ids) < 2:
            return
        self._connection.execute(
            """
            insert into memory_links (memory_id, related_id, strength, at)
            select a.value, b.value, 1.0, ?2
            from json_each(?1) a
            join json_each(?1) b on a.value < b.value
            where a.value in (select id from memories) and b.value in (select id from memories)
            on conflict do update set strength = strength + 1.0, at = excluded.at""",
            (rows.json_text(sorted(set(ids))), clock(at)),
        )

    def count(self, counters: Mapping[str, int]) -> None:
        for counter, number in counters.items():
            name = COUNTER + counter
            stored: Any = self._connection.execute("select value from meta where name = ?", (name,)).get
            before = 0 if stored is None else rows.number_of(name, stored)
            self._connection.execute(
                "insert into meta (name, value) values (?, ?) on conflict do update set value = excluded.value",
                (name, rows.sealed_number(name, before + number)),
            )

    def choose_model(self, model: str | None) -> None:
        vectors.choose_model(self._connection, model)

    def save_vectors(self, model: str, vectors_made: Sequence[tuple[Memory, bytes]]) -> None:
        vectors.save(self._connection, model, vectors_made)

    def save_receipt(
        self, body: dict[str, Any], uids: Sequence[str], at: datetime, *, session: str | None = None
    ) -> int:
        values = (clock(at), rows.json_text(body), rows.json_text(list(dict.fromkeys(uids))), session)
        self._connection.execute(
            "insert into receipts (at, body, uids, session, checksum) values (?, ?, ?, ?, ?)",
            (*values, rows.checksum(values)),
        )
        number = self._connection.last_insert_rowid()
        if number % TIDY_EVERY == 0:
            self._tidy(number, at)
        return number

    def _tidy(self, last: int, at: datetime) -> None:
        """Drop old receipts, and join pieces of the indexes that recalls have to look through."""
        old = last - RECEIPTS_KEPT + TIDY_EVERY  # so that there are never more
        oldest = clock(at - timedelta(days=DELIVERIES_KEPT_DAYS))
        self._connection.execute("delete from receipts where id <= ? and (session is null or at < ?)", (old, oldest))
        try:
            index.merge(self._connection, MERGED_PAGES)
        except apsw.Error as error:
            if not is_damage(error):  # a search that meets it tells, and so does doctor
                raise

    def drop_receipts(self, uids: Sequence[str]) -> int:
        dropped = 0
        for uid in uids:
            self._connection.execute("delete from receipts where instr(uids, ?)", (uid,))
            dropped += self._connection.changes()
        return dropped
