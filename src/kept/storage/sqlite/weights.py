"""What every memory brings along to every query, in four bytes each.

A search that finds thousands of rows weighs them by feedback, age and the like before it reads any. Looking that up
row by row would take a microsecond each; here it lies in blobs, a thousand memories to a row, and is read at once.
Rule: these numbers choose candidates and nothing else. They are rounded, and one that is missing counts as average; the
exact score comes from the memory itself.
"""

import math
import sys
from array import array
from datetime import datetime
from typing import Any

import apsw

from kept import worth
from kept.model import Memory
from kept.ports import Ranking
from kept.settings import KIND_WEIGHTS, by_kind
from kept.storage.sqlite import rows

CHUNK = 1_000  # memories a row: what fits into one page of the file
_BYTES = 4  # of a memory: one for feedback, one for all the other factors but age, two for the day of its last hit
_MIDDLE = 128  # of a byte: no feedback, a weight of 1; a byte of 0 says that nothing is known
_STEPS = 16  # of the weight, for each time it doubles: 4 % each
_LAST_DAY = 0xFFFF


def note(connection: apsw.Connection, memory: Memory) -> None:
    """Keep the numbers of a memory as it is now. Call it inside a transaction."""
    rest = by_kind(KIND_WEIGHTS, memory.kind) * worth.importance_factor(memory.importance)
    rest *= worth.use_factor(memory.use_count) * worth.STATUS_FACTOR[memory.status]
    feedback = _byte(memory.feedback)
    others = _byte(round(_STEPS * math.log2(rest)) if rest > 0 else -_MIDDLE)
    _write(connection, memory.id, feedback << 24 | others << 16 | _day(memory.last_hit_at or memory.created_at))


def drop(connection: apsw.Connection, id: int) -> None:
    """Keep nothing of a memory. Call it inside a transaction."""
    _write(connection, id, 0)


def weighed(connection: apsw.Connection, gains: dict[int, float], ranking: Ranking) -> list[tuple[float, int]]:
    """(gain × weight, id) for each id, by the factors of the ranking, as of its moment."""
    packed = _read(connection, up_to=max(gains, default=0))
    by_feedback = [1.0] * 256
    if "feedback" in ranking.factors:
        by_feedback[1:] = [worth.feedback_factor(byte - _MIDDLE) for byte in range(1, 256)]
    by_others = [1.0] * 256
    if not {"importance", "use", "status", "kind"}.isdisjoint(ranking.factors):
        by_others[1:] = [2.0 ** ((byte - _MIDDLE) / _STEPS) for byte in range(1, 256)]
    today, fading = 0, 0.0
    if ranking.now is not None and "recency" in ranking.factors:
        today, fading = _day(ranking.now), worth.RECENCY_PER_DAY
    return [
        (gain * by_feedback[bits >> 24] * by_others[bits >> 16 & 255] / (1 + fading * abs(today - (bits & 0xFFFF))), id)
        for id, gain in gains.items()
        for bits in (packed[id],)
    ]


def rebuild(connection: apsw.Connection) -> None:
    """Keep the numbers of all memories anew. Call it inside a transaction."""
    connection.execute("delete from weights")
    for row in connection.execute(f"select {rows.MEMORY_SELECT} from memories m").fetchall():
        note(connection, rows.to_memory(row, ""))


def _read(connection: apsw.Connection, *, up_to: int) -> "array[int]":
    chunks: dict[Any, Any] = dict(connection.execute("select chunk, weights from weights"))
    nothing = bytes(_BYTES * CHUNK)
    packed = array("I", b"".join(chunks.get(chunk, nothing) for chunk in range(up_to // CHUNK + 1)))
    if sys.byteorder == "big":
        packed.byteswap()
    return packed


def _write(connection: apsw.Connection, id: int, bits: int) -> None:
    chunk, place = divmod(id, CHUNK)
    row: Any = connection.execute("select weights from weights where chunk = ?", (chunk,)).fetchone()
    weights = bytearray(row[0] if row else _BYTES * CHUNK)
    weights[_BYTES * place : _BYTES * (place + 1)] = bits.to_bytes(_BYTES, "little")
    connection.execute("insert or replace into weights (chunk, weights) values (?, ?)", (chunk, bytes(weights)))


def _byte(steps: int) -> int:
    return min(255, max(1, steps + _MIDDLE))


def _day(at: datetime) -> int:
    return min(_LAST_DAY, max(0, int(at.timestamp()) // 86_400))
