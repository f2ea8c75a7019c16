"""Vectors in a SQLite space: kept beside the memories, found in two narrowing steps.

The signs of all vectors, a bit a number, lie in blobs of a few hundred memories each and are compared first; of the
most alike the vectors themselves are read and compared exactly. Triggers note which memories wait for a vector.
Rule: a vector counts only for the model and the text that it was made of, whatever else is written about it; signs
choose candidates and nothing more, and all of it can be made again.
"""

from collections.abc import Sequence
from typing import Any

import apsw

from kept import vectors
from kept.model import Memory
from kept.ports import LIVE, Found, VectorState, Where
from kept.storage.shared import check_limit, indexes
from kept.storage.sqlite import rows
from kept.storage.sqlite.connection import View
from kept.storage.sqlite.encoding import hex_blob
from kept.storage.sqlite.rows import clauses

CHUNK = 250  # memories a row: 8 KB with 256 numbers each
SHORTLIST = 4  # times as many as are wanted: of these the vectors are read

_MODEL = "(select value from meta where name = 'vector_model')"
_FITS = f"v.model = {_MODEL} and v.fingerprint = m.fingerprint"


class VectorReading:
    """Reads vectors, for the reader of a file."""

    view: View

    def vector_state(self) -> VectorState:
        model = self.view.meta("vector_model")
        if model is None:
            return VectorState()
        sql = """
            select
              (select sum(rows) from corpus where shelf <> 'messages'),
              (select count(*) from vectorless)"""
        memories, pending = self.view.fetch(sql)[0]
        return VectorState(model, memories - pending, pending)

    def vectorless(self, *, limit: int) -> list[Memory]:
        check_limit(limit)
        sql = f"""
            select {rows.MEMORY_SELECT}
            from vectorless w
            cross join memories m on m.id = w.id
            order by w.id
            limit {limit:d}"""
        return [rows.to_memory(row, self.view.space) for row in self.view.fetch(sql)]

    def vectors(self, ids: Sequence[int]) -> dict[int, bytes]:
        sql = f"""
            select v.id, v.model, v.fingerprint, v.vector
            from json_each(?) asked
            cross join vectors v on v.id = asked.value
            cross join memories m on m.id = v.id
            where {_FITS}"""
        return {row[0]: bytes(row[3]) for row in self.view.fetch(sql, (rows.json_text(list(ids)),))}

    def nearest(self, vector: bytes, where: Where = LIVE, *, limit: int) -> list[Found]:
        check_limit(limit)
        if not indexes(where):
            return []
        sketch = vectors.signs(vector)
        chunks = self.view.fetch("select chunk, signs from vector_signs order by chunk")
        sketches = b"".join(_checked_chunk(signs, len(sketch)) for _, signs in chunks)
        # Filters may leave few of the most alike. Then all of them are asked.
        for many in (SHORTLIST * limit, len(chunks) * CHUNK):
            places = vectors.nearest(sketch, sketches, many)
            ids = [chunks[place // CHUNK][0] * CHUNK + place % CHUNK for place in places]
            fitting = self._fitting(ids, where)
            if len(fitting) >= limit or len(places) < many:
                break
        cosines = dict(zip(fitting, vectors.cosines(vector, list(fitting.values())), strict=True))
        best = sorted(cosines, key=lambda id: (-cosines[id], -id))[:limit]
        return [
            Found(rows.to_memory(row, self.view.space), rows.to_prepared(row), cosines[row[0]])
            for row in self.view.memory_rows(best)
        ]

    def _fitting(self, ids: Sequence[int], where: Where) -> dict[int, bytes]:
        """Id → vector of those that `where` means, and whose vector is that of their present text."""
        conditions, values = clauses(where)
        sql = f"""
            select v.id, v.model, v.fingerprint, v.vector
            from json_each(?) alike
            cross join memories m on m.id = alike.value
            cross join vectors v on v.id = m.id
            where {" and ".join([*conditions, "m.shelf <> 'forgotten'", _FITS])}"""
        return {row[0]: bytes(row[3]) for row in self.view.fetch(sql, (rows.json_text(ids), *values))}


def choose_model(connection: apsw.Connection, model: str | None) -> None:
    """Let every memory wait for a vector of that model; with None, leave no vector. Call it inside a transaction."""
    connection.execute("delete from vector_signs")
    connection.execute("delete from vectorless")
    connection.execute("delete from meta where name = 'vector_model'")
    if model is None:
        connection.execute("delete from vectors")
    else:
        connection.execute("insert into meta (name, value) values ('vector_model', ?)", (model,))
        connection.execute("insert into vectorless (id) select id from memories")


def make_again(connection: apsw.Connection) -> None:
    """Drop every vector, and let every memory wait for one if a model is chosen. Call it inside a transaction."""
    model: Any = connection.execute(f"select {_MODEL}").get
    connection.execute("delete from vectors")
    choose_model(connection, model)


def save(connection: apsw.Connection, model: str, made: Sequence[tuple[Memory, bytes]]) -> None:
    """Keep vectors, each if its memory still has that text. Call it inside a transaction."""
    if connection.execute(f"select {_MODEL}").get != model:
        return
    sketches: dict[int, bytes] = {}
    sql = "select 1 from memories where id = ? and fingerprint = ?"
    for memory, vector in made:
        fingerprint = hex_blob(memory.fingerprint)
        if connection.execute(sql, (memory.id, fingerprint)).fetchone():
            values = (memory.id, model, fingerprint, vector)
            connection.execute(
                "insert or replace into vectors (id, model, fingerprint, vector) values (?, ?, ?, ?)",
                values,
            )
            connection.execute("delete from vectorless where id = ?", (memory.id,))
            sketches[memory.id] = vectors.signs(vector)
    _sketch(connection, sketches)


def drop(connection: apsw.Connection, id: int) -> None:
    """Leave nothing of a memory's vector; its row goes with the memory. Call it inside a transaction."""
    row: Any = connection.execute("select signs from vector_signs where chunk = ?", (id // CHUNK,)).fetchone()
    if row is not None:
        _sketch(connection, {id: bytes(len(row[0]) // CHUNK)})


def wrong(connection: apsw.Connection) -> list[int]:
    """For doctor: memories whose vector is damaged, sketched wrong, or out of date without waiting for a new one."""
    listed: Any = connection.execute("select chunk, signs from vector_signs").fetchall()
    chunks: dict[int, bytes] = dict(listed)
    found: list[int] = []
    sql = f"""
        select v.id, v.model, v.fingerprint, v.vector,
          v.model is {_MODEL},
          coalesce({_FITS}, false) or exists (select 1 from vectorless w where w.id = v.id)
        from vectors v
        left join memories m on m.id = v.id"""
    told: Any = connection.execute(sql).fetchall()
    for *row, is_chosen, is_cared_for in told:
        id, _, _, vector = row
        signs = chunks.get(id // CHUNK, b"")
        width, place = len(signs) // CHUNK, id % CHUNK
        if not is_cared_for or (is_chosen and signs[place * width : (place + 1) * width] != vectors.signs(vector)):
            found.append(id)
    sql = f"""
        select m.id
        from memories m
        left join vectors v on v.id = m.id
        where {_MODEL} is not null
          and v.id is null
          and not exists (select 1 from vectorless w where w.id = m.id)"""
    lost: Any = connection.execute(sql).fetchall()
    return sorted({*found, *(id for (id,) in lost)})


def rebuild(connection: apsw.Connection) -> None:
    """Let go of damaged and outdated vectors, sketch the others again. Call it inside a transaction."""
    model: Any = connection.execute(f"select {_MODEL}").get
    saved: Any = connection.execute("select id, model, fingerprint, vector from vectors").fetchall()
    kept = []
    for row in saved:
        sql = f"select {rows.MEMORY_SELECT} from memories m where id = ? and fingerprint = ?"
        memory: Any = connection.execute(sql, (row[0], row[2])).fetchone()
        if memory and row[1] == model:
            kept.append((rows.to_memory(memory, ""), row[3]))
    choose_model(connection, None)
    if model is not None:
        choose_model(connection, str(model))
        save(connection, str(model), kept)


def _sketch(connection: apsw.Connection, sketches: dict[int, bytes]) -> None:
    """Write the signs of these memories into their chunks."""
    for chunk in sorted({id // CHUNK for id in sketches}):
        own = {id % CHUNK: signs for id, signs in sketches.items() if id // CHUNK == chunk}
        width = len(next(iter(own.values())))
        row: Any = connection.execute("select signs from vector_signs where chunk = ?", (chunk,)).fetchone()
        signs = bytearray(row[0]) if row is not None else bytearray(CHUNK * width)
        _checked_chunk(bytes(signs), width)
        for place, sketch in own.items():
            signs[place * width : (place + 1) * width] = sketch
        sql = "insert or replace into vector_signs (chunk, signs) values (?, ?)"
        connection.execute(sql, (chunk, bytes(signs)))


def _checked_chunk(signs: bytes, width: int) -> bytes:
    if len(signs) != CHUNK * width:
        raise rows.damaged("The vector index")
    return signs
