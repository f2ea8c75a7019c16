"""What every memory brings along to every query, in four bytes each.

A search that finds thousands of rows weighs them by feedback, age and the like before it reads any. Looking that up
row by row would take a microsecond each; here it lies in blobs, a thousand memories to a row, and is read at once.
Rule: these numbers choose candidates and nothing else. They are rounded, and one that is missing counts as average; the
exact score comes from the memory itself.
"""

import math
import sys
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from heapq import nlargest
from typing import Any

import apsw

from kept import worth
from kept.model import Memory
from kept.ports import Ranking
from kept.settings import KIND_WEIGHTS, by_kind
from kept.storage.sqlite import rows

CHUNK = 1_000  # memories a row: what fits into one page of the file
_MIDDLE = 128  # of a byte: no feedback, or a weight of 1; a byte of 0 says that nothing is known
_STEPS = 16  # of the weight, for each time it doubles: 4 % each
_LAST_DAY = 0xFFFF
_OLDEST = 4_000  # days: what is older counts as old as that
_EVEN = (1.0,) * 256


def note(connection: apsw.Connection, memories: Iterable[Memory]) -> None:
    """Keep the numbers of memories as they are now. Call it inside a transaction."""
    _write(connection, ((memory.id, *_numbers_of(memory)) for memory in memories))


def drop(connection: apsw.Connection, id: int) -> None:
    """Keep nothing of a memory. Call it inside a transaction."""
    _write(connection, [(id, 0, 0, 0)])


def _numbers_of(memory: Memory) -> tuple[int, int, int]:
    rest = by_kind(KIND_WEIGHTS, memory.kind) * worth.importance_factor(memory.importance)
    rest *= worth.use_factor(memory.use_count) * worth.STATUS_FACTOR[memory.status]
    steps = round(_STEPS * math.log2(rest)) if rest > 0 else -_MIDDLE
    return _byte(memory.feedback), _byte(steps), _day(memory.last_hit_at or memory.created_at)


def heaviest(connection: apsw.Connection, gains: Mapping[int, float], ranking: Ranking, limit: int) -> dict[int, float]:
    """Of these ids the ones with the highest gain × weight, and their weights, by the factors of the ranking."""
    feedbacks, others, days = _read(connection, up_to=max(gains, default=0))
    by_feedback = _feedback_table() if "feedback" in ranking.factors else _EVEN
    is_plain = {"importance", "use", "status", "kind"}.isdisjoint(ranking.factors)
    by_others = _EVEN if is_plain else _others_table()
    by_day = _recency_table(ranking)
    values = [
        gain * by_feedback[feedbacks[id]] * by_others[others[id]] * by_day[days[id]] for id, gain in gains.items()
    ]
    cut = min(nlargest(limit, values), default=0.0)
    best = nlargest(limit, ((value, id) for id, value in zip(gains, values, strict=True) if value >= cut))
    return {id: value / gains[id] for value, id in best}


def rebuild(connection: apsw.Connection) -> None:
    """Keep the numbers of all memories anew. Call it inside a transaction."""
    connection.execute("delete from weights")
    found: Any = connection.execute(f"select {rows.MEMORY_SELECT} from memories m").fetchall()
    note(connection, (rows.to_memory(row, "") for row in found))


def wrong(connection: apsw.Connection) -> list[int]:
    """The memories whose numbers are not theirs, for doctor. Usage is not looked at: it is counted without us."""
    last: Any = connection.execute("select max(id) from memories").get
    feedbacks, _, days = _read(connection, up_to=last or 0)
    sql = "select id, feedback, coalesce(last_hit_at, created_at) from memories"
    found: Any = connection.execute(sql).fetchall()
    return [
        id
        for id, feedback, at in found
        if (feedbacks[id], days[id]) != (_byte(feedback), _day(datetime.fromisoformat(at)))
    ]


def _read(connection: apsw.Connection, *, up_to: int) -> tuple[bytes, bytes, Sequence[int]]:
    """Feedback, the other factors, and the day of the last hit, each by id."""
    nothing = (bytes(CHUNK), bytes(CHUNK), bytes(2 * CHUNK))
    found: Any = connection.execute("select chunk, feedbacks, others, days from weights").fetchall()
    last: Any = connection.execute("select max(id) from memories").get
    if up_to > (last or 0):  # an id of billions would ask for as many chunks
        raise rows.damaged("An index that names a memory which was never there")
    chunks = {chunk: _checked(blobs) for chunk, *blobs in found}
    parts = zip(*(chunks.get(chunk, nothing) for chunk in range(up_to // CHUNK + 1)), strict=True)
    feedbacks, others, days = (b"".join(part) for part in parts)
    return feedbacks, others, _little_endian(array("H", days))


def _write(connection: apsw.Connection, numbers: Iterable[tuple[int, int, int, int]]) -> None:
    by_chunk = defaultdict(list)
    for id, *bytes_and_day in numbers:
        by_chunk[id // CHUNK].append((id % CHUNK, *bytes_and_day))
    for chunk, changes in by_chunk.items():
        sql = "select feedbacks, others, days from weights where chunk = ?"
        row: Any = connection.execute(sql, (chunk,)).fetchone() or (CHUNK, CHUNK, 2 * CHUNK)
        blobs = _checked([bytearray(blob) for blob in row])
        for place, feedback, others, day in changes:
            blobs[0][place], blobs[1][place] = feedback, others
            blobs[2][2 * place : 2 * place + 2] = day.to_bytes(2, "little")
        connection.execute(
            "insert or replace into weights (chunk, feedbacks, others, days) values (?, ?, ?, ?)",
            (chunk, *map(bytes, blobs)),
        )


def _checked(blobs: list[Any]) -> list[Any]:
    if [len(blob) for blob in blobs] != [CHUNK, CHUNK, 2 * CHUNK]:
        raise rows.damaged("What memories are weighed by")
    return blobs


@cache
def _feedback_table() -> tuple[float, ...]:
    return (1.0, *(worth.feedback_factor(byte - _MIDDLE) for byte in range(1, 256)))


@cache
def _others_table() -> tuple[float, ...]:
    return (1.0, *(2.0 ** ((byte - _MIDDLE) / _STEPS) for byte in range(1, 256)))


def _recency_table(ranking: Ranking) -> Sequence[float]:
    """Day → factor."""
    if ranking.now is None or "recency" not in ranking.factors:
        return _no_recency()
    return _recency(_day(ranking.now))


@cache
def _no_recency() -> tuple[float, ...]:
    return (1.0,) * (_LAST_DAY + 1)


@cache
def _recency(today: int) -> tuple[float, ...]:
    past = [1 / (1 + worth.RECENCY_PER_DAY * age) for age in range(min(today, _OLDEST), 0, -1)]
    return (*past[:1] * (today - len(past)), *past, *[1.0] * (_LAST_DAY + 1 - today))


def _little_endian(numbers: "array[int]") -> "array[int]":
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _byte(steps: int) -> int:
    return min(255, max(1, steps + _MIDDLE))


def _day(at: datetime) -> int:
    return min(_LAST_DAY, max(0, int(at.timestamp()) // 86_400))
