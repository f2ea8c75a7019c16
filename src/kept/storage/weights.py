"""Weights of memories: five bytes each, independent of the query.

A search that finds thousands of rows weighs them by length, feedback, age and the like before it reads any. Looking
that up row by row would take a microsecond each. Here it lies in blobs, a thousand memories to a row, read at once:
ranking.py asks for the heaviest, and engines store the rows. A ranking with other factors or kind weights than those
that are packed reads them from the rows of all matches (`Traits`), half a microsecond each. A factor that is missing
in OTHERS never lifts a memory above the cut. Rule: these numbers choose candidates and nothing else. They are rounded,
and a missing one counts as average; the exact score comes from the memory itself.
"""

import math
import sys
import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from heapq import nlargest
from typing import NamedTuple, Protocol

from kept import bm25, text, worth
from kept.model import Memory, Status, replace
from kept.ports import Ranking
from kept.storage.shared import damaged
from kept.tables import KIND_WEIGHTS, by_kind

CHUNK = 1_000  # memories a row: five kilobytes, which each write rewrites, and a thousand rows for a million
_MIDDLE = 128  # of a byte: no feedback, or a weight of 1; a byte of 0 says that nothing is known
_STEPS = 16  # of the weight, for each time it doubles: 4 % each
_LAST_DAY = 0xFFFF
_OLDEST = 4_000  # days: what is older counts as old as that
_EVEN = (1.0,) * 256
# Of a promise, which is their sum, and must fit a byte: what is beyond (a feedback of 14) counts as the last step.
_LENGTH_STEPS, _FEEDBACK_STEPS, _OTHER_STEPS = 80, 126, 48
_NOTHING = (0, bytes(CHUNK), bytes(CHUNK), bytes(CHUNK), bytes(2 * CHUNK))  # is known of a chunk that is not there

ChunkRow = tuple[int, bytes, bytes, bytes, bytes]  # its stamp; by id: lengths, feedbacks, other factors, days
Chunks = dict[int, list[bytearray]]  # those that a writer knows, to change them


class Traits(NamedTuple):
    """The fields of a memory behind its other factors."""

    kind: str
    importance: float
    use_count: int
    status: Status


# The factors that are neither feedback nor recency. A new one is read from the rows; to pack it as well, name it in
# PACKED, and add a migration that makes the weights again.
OTHERS: Mapping[str, Callable[[Traits, Mapping[str, float]], float]] = {
    "kind": lambda traits, kind_weights: by_kind(kind_weights, traits.kind),
    "importance": lambda traits, kind_weights: worth.importance_factor(traits.importance),
    "use": lambda traits, kind_weights: worth.use_factor(traits.use_count),
    "status": lambda traits, kind_weights: worth.STATUS_FACTOR[traits.status],
}
PACKED = frozenset({"kind", "importance", "use", "status"})  # in one byte, by tables.KIND_WEIGHTS
# The factors that are made of the points of feedback.
BY_FEEDBACK: Mapping[str, Callable[[int], float]] = {
    "feedback": worth.feedback_factor,
    "favour": worth.favour_factor,
}
# The factors that are made of the recency.
BY_DAY: Mapping[str, Callable[[float], float]] = {
    "recency": lambda recency: recency,
    "freshness": worth.freshness_of,
}
KNOWN = frozenset({*BY_FEEDBACK, *BY_DAY, *OTHERS})


class ChunkRows(Protocol):
    """The rows in which an engine keeps the numbers, one for each chunk; and the memories they are about."""

    def last_id(self) -> int:
        """The largest id of a memory; 0 when there is none."""

    def stamps(self) -> list[tuple[int, int]]:
        """Each chunk that is stored, with its stamp."""

    def chunks(self, numbers: Sequence[int]) -> dict[int, ChunkRow]:
        """The rows of these chunks."""

    def traits(self, ids: Sequence[int]) -> Iterable[tuple[int, Traits]]:
        """The traits of these memories, as far as they exist."""


class Numbers(NamedTuple):
    """By id: how many words the text has, feedback, all other factors in one, and the day of the last hit."""

    lengths: bytes
    feedbacks: bytes
    others: bytes
    days: Sequence[int]
    chunks: Sequence[tuple[bytes, bytes, bytes]] = ()  # the first three once more, as they lie in the file


class Weights:
    """The numbers of one file, of which only what has changed is read again.

    Each chunk has a stamp that is made of its numbers: equal stamps are equal numbers, whoever has written them. What
    is held is replaced and never changed, so that threads may share it.
    """

    def __init__(self) -> None:
        self._chunks: dict[int, ChunkRow] = {}
        self._joined: tuple[list[tuple[int, int]], int, Numbers] = ([], 0, Numbers(b"", b"", b"", ()))
        self._promised: tuple[Numbers | None, tuple[int, tuple[str, ...], bool] | None, bytes] = (None, None, b"")

    @property
    def newest(self) -> int:
        """Return the number of the last chunk that was read; 0 if none was."""
        return max(self._chunks, default=0)

    def read(self, rows: ChunkRows, *, up_to: int) -> Numbers:
        """The numbers of all memories up to an id, as the transaction of the rows sees them."""
        stamps = rows.stamps()
        known_stamps, reach, numbers = self._joined
        if stamps == known_stamps and up_to < reach:
            return numbers
        last = rows.last_id()
        if up_to > last:  # an id of billions would ask for as many chunks
            raise damaged(f"The search index (it lists memory {up_to}, but the last one is {last})")
        known = self._chunks
        changed = [chunk for chunk, stamp in stamps if chunk not in known or known[chunk][0] != stamp]
        known = known | {chunk: _checked(row) for chunk, row in rows.chunks(changed).items()}
        there = {chunk for chunk, _ in stamps}
        wanted = range(last // CHUNK + 1)
        joined = _numbers_in([known[chunk] if chunk in there else _NOTHING for chunk in wanted])
        self._chunks, self._joined = known, (stamps, len(wanted) * CHUNK, joined)
        return joined

    def heaviest(
        self,
        rows: ChunkRows,
        gains: Mapping[int, float],
        ranking: Ranking,
        average_words: float,
        limit: int,
    ) -> dict[int, float]:
        """Of these ids those that promise most by gain, length and weight; and their weights, by the ranking."""
        if not limit:
            return {}
        if not (_is_plain(ranking) or _is_packed(ranking)):
            return self._heaviest_by_traits(rows, gains, ranking, average_words, limit)
        numbers = self.read(rows, up_to=max(gains, default=0))
        by_day = _recency_table(ranking)
        if len(gains) > limit:
            promises = self._promises(numbers, ranking, max(1, round(average_words)))
            best = _most_promising(gains, promises, numbers.days, by_day, ranking, limit)
        else:
            best = [*gains]
            by_day.update(_recency_of({numbers.days[id] for id in best} - by_day.keys(), ranking))
        weight = _weigher(numbers, ranking)
        return {id: weight(id) for id in best}

    def _heaviest_by_traits(
        self, rows: ChunkRows, gains: Mapping[int, float], ranking: Ranking, average_words: float, limit: int
    ) -> dict[int, float]:
        """Do the same for a ranking whose factors are not packed: read them from the rows."""
        factor_of = _others_of(rows.traits([*gains]), ranking)
        gains = {id: gain * factor_of.get(id, 1.0) for id, gain in gains.items()}
        plain = replace(ranking, factors=tuple(name for name in ranking.factors if name not in OTHERS))
        heaviest = self.heaviest(rows, gains, plain, average_words, limit)
        return {id: weight * factor_of.get(id, 1.0) for id, weight in heaviest.items()}

    def _promises(self, numbers: Numbers, ranking: Ranking, average_words: int) -> bytes:
        """By id: length, feedback and other factors, as far as the ranking has them, as steps of one scale."""
        of_what = (average_words, _of_feedback(ranking), not _is_plain(ranking))
        known, of_known, promises = self._promised
        if known is not numbers or of_known != of_what:
            promises = b"".join(_promises_of(chunk, *of_what) for chunk in numbers.chunks)
            self._promised = (numbers, of_what, promises)
        return promises


def noted(
    memories: Iterable[Memory], known: Chunks, read: Callable[[int], ChunkRow | None]
) -> Iterable[tuple[int, ChunkRow]]:
    """The chunks, as rows to store, that hold the numbers of these memories as they are now.

    `known`: the last chunk that was written, if nobody else has written since; afterwards, the one made here.
    """
    return _changed([(memory.id, *_numbers_of(memory)) for memory in memories], known, read)


def dropped(id: int, read: Callable[[int], ChunkRow | None]) -> Iterable[tuple[int, ChunkRow]]:
    """The chunk, as a row to store, that holds nothing of a memory any more."""
    return _changed([(id, 0, 0, 0, 0)], {}, read)


def _changed(
    numbers: Iterable[tuple[int, int, int, int, int]], known: Chunks, read: Callable[[int], ChunkRow | None]
) -> Iterable[tuple[int, ChunkRow]]:
    changed: Chunks = {}
    for id, length, feedback, other, day in numbers:
        chunk, place = divmod(id, CHUNK)
        if chunk not in changed:
            changed[chunk] = known.pop(chunk) if chunk in known else _to_change(read(chunk))
        lengths, feedbacks, others, days = changed[chunk]
        lengths[place], feedbacks[place], others[place] = length, feedback, other
        days[2 * place : 2 * place + 2] = day.to_bytes(2, "little")
    known.clear()
    known.update([*changed.items()][-1:])
    return [(chunk, (_stamp(blobs), *blobs)) for chunk, blobs in changed.items()]  # type: ignore[misc]


def _to_change(row: ChunkRow | None) -> list[bytearray]:
    return [bytearray(blob) for blob in _checked(row or _NOTHING)[1:]]


def _numbers_of(memory: Memory) -> tuple[int, int, int, int]:
    length = min(255, 1 + round(_STEPS * math.log2(1 + text.words_and_length(memory.content)[1])))
    other = _packed(Traits(memory.kind, memory.importance, memory.use_count, memory.status))
    return length, _byte(memory.feedback), other, _day(memory.last_hit_at or memory.created_at)


@lru_cache(maxsize=1024)  # most new memories are alike in this
def _packed(traits: Traits) -> int:
    product = math.prod(factor(traits, KIND_WEIGHTS) for name, factor in OTHERS.items() if name in PACKED)
    return _byte(round(_STEPS * math.log2(product)) if product > 0 else -_MIDDLE)


def _others_of(traits: Iterable[tuple[int, Traits]], ranking: Ranking) -> dict[int, float]:
    """Id → the product of the other factors that the ranking names."""
    factors = [OTHERS[name] for name in ranking.factors if name in OTHERS]

    @cache  # most memories are alike in this
    def product(traits: Traits) -> float:
        return math.prod(factor(traits, ranking.kind_weights) for factor in factors)

    return {id: product(own) for id, own in traits}


def wrong(rows: ChunkRows, kept: Iterable[tuple[int, int, datetime]]) -> list[int]:
    """Of all memories, given as id, feedback and last hit, those whose numbers are not theirs, for doctor.

    Usage is not looked at: it is counted without a change of the numbers.
    """
    numbers = Weights().read(rows, up_to=rows.last_id())
    chunks = rows.chunks([chunk for chunk, _ in rows.stamps()])
    changed = {chunk for chunk, (stamp, *blobs) in chunks.items() if _stamp(blobs) != stamp}
    return [
        id
        for id, feedback, at in kept
        if id // CHUNK in changed or (numbers.feedbacks[id], numbers.days[id]) != (_byte(feedback), _day(at))
    ]


def _stamp(blobs: Iterable[bytes | bytearray]) -> int:
    return zlib.crc32(b"".join(blobs))


def _numbers_in(chunks: Sequence[ChunkRow]) -> Numbers:
    """Join chunks, which are in order."""
    _, lengths, feedbacks, others, days = zip(*chunks, strict=True)
    by_day = _little_endian(array("H", b"".join(days)))
    in_chunks = [*zip(lengths, feedbacks, others, strict=True)]
    return Numbers(b"".join(lengths), b"".join(feedbacks), b"".join(others), by_day, in_chunks)


def _checked(row: ChunkRow) -> ChunkRow:
    if [len(blob) for blob in row[1:]] != [CHUNK, CHUNK, CHUNK, 2 * CHUNK]:
        raise damaged("The ranking data")
    return row


def _most_promising(
    gains: Mapping[int, float],
    promises: bytes,
    days: Sequence[int],
    by_day: dict[int, float],
    ranking: Ranking,
    limit: int,
) -> list[int]:
    by_promise = _factors()
    while True:
        try:
            values = [gain * by_promise[promises[id]] * by_day[days[id]] for id, gain in gains.items()]
            break
        except KeyError:  # days that no search has met yet
            by_day.update(_recency_of({days[id] for id in gains}, ranking))
    cut = _last_of_the_largest(limit, values)
    best = sorted(((value, id) for id, value in zip(gains, values, strict=True) if value >= cut), reverse=True)
    return [id for _, id in best[:limit]]


def _last_of_the_largest(limit: int, values: list[float]) -> float:
    """The smallest of the `limit` largest. Sorting all is quicker than picking them, unless they are few of many."""
    if len(values) <= limit:
        return min(values, default=0.0)
    return sorted(values)[-limit] if len(values) < 20 * limit else nlargest(limit, values)[-1]


def _weigher(numbers: Numbers, ranking: Ranking) -> Callable[[int], float]:
    """Id → its weight by all factors of the ranking."""
    by_feedback = _feedback_table(_of_feedback(ranking))
    by_others = _EVEN if _is_plain(ranking) else _others_table()
    by_day = _recency_table(ranking)
    return lambda id: by_feedback[numbers.feedbacks[id]] * by_others[numbers.others[id]] * by_day[numbers.days[id]]


def _of_feedback(ranking: Ranking) -> tuple[str, ...]:
    """Return the factors of the ranking that feedback makes."""
    return tuple(name for name in ranking.factors if name in BY_FEEDBACK)


def _is_plain(ranking: Ranking) -> bool:
    """Whether none of the other factors counts."""
    return OTHERS.keys().isdisjoint(ranking.factors)


def _is_packed(ranking: Ranking) -> bool:
    """Whether the other factors that count are the packed ones, all of them, with the kinds weighed alike."""
    return OTHERS.keys() & set(ranking.factors) == PACKED and ranking.kind_weights == KIND_WEIGHTS


@lru_cache(maxsize=4_096)
def _promises_of(
    chunk: tuple[bytes, bytes, bytes], average_words: int, of_feedback: tuple[str, ...], with_others: bool
) -> bytes:
    lengths, feedbacks, others = chunk
    steps = [lengths.translate(_length_steps(average_words))]
    if of_feedback:
        steps.append(feedbacks.translate(_in_steps(_feedback_table(of_feedback), _FEEDBACK_STEPS)))
    if with_others:
        steps.append(others.translate(_in_steps(_others_table(), _OTHER_STEPS)))
    # A thousand bytes are added at once, as one large number: no sum outgrows its byte.
    return sum(int.from_bytes(some, "little") for some in steps).to_bytes(len(lengths), "little")


@cache
def _length_steps(average_words: int) -> bytes:
    """Length → what BM25 makes of a word that stands there once, in steps."""
    counts = [average_words, *(2.0 ** ((byte - 1) / _STEPS) - 1 for byte in range(1, 256))]
    factors = [1 / (1 + bm25.K1 * (1 - bm25.B + bm25.B * count / average_words)) for count in counts]
    return bytes(max(0, round(_LENGTH_STEPS + _STEPS * math.log2(factor))) for factor in factors)


@cache
def _in_steps(factors: tuple[float, ...], most: int) -> bytes:
    """The same factors on the scale of promises, where a factor of 1 is in the middle of `most` steps."""
    return bytes(min(most, max(0, most // 2 + round(_STEPS * math.log2(factor)))) for factor in factors)


@cache
def _factors() -> tuple[float, ...]:
    """The scale of promises: step → factor."""
    return tuple(2.0 ** (step / _STEPS) for step in range(256))


@cache
def _feedback_table(names: tuple[str, ...]) -> tuple[float, ...]:
    points = range(1 - _MIDDLE, 256 - _MIDDLE)
    return (1.0, *(math.prod(BY_FEEDBACK[name](each) for name in names) for each in points))


@cache
def _others_table() -> tuple[float, ...]:
    return (1.0, *(2.0 ** ((byte - _MIDDLE) / _STEPS) for byte in range(1, 256)))


def _recency_table(ranking: Ranking) -> dict[int, float]:
    """Day → factor, of the days that were asked for. A plain dictionary: thousands are looked up in each search."""
    return _factor_by_day(_today(ranking), _of_day(ranking))


@lru_cache(maxsize=8)
def _factor_by_day(today: int | None, names: tuple[str, ...]) -> dict[int, float]:
    return {}


def _recency_of(days: Iterable[int], ranking: Ranking) -> dict[int, float]:
    today = _today(ranking)
    if today is None:
        return dict.fromkeys(days, 1.0)
    ages = {day: min(today - day, _OLDEST) for day in days}
    recency = {day: 1 / (1 + worth.RECENCY_PER_DAY * max(0, age)) for day, age in ages.items()}
    makers = [BY_DAY[name] for name in _of_day(ranking)]
    return {day: math.prod(make(value) for make in makers) for day, value in recency.items()}


def _of_day(ranking: Ranking) -> tuple[str, ...]:
    """Return the factors of the ranking that the age makes."""
    return tuple(name for name in ranking.factors if name in BY_DAY)


def _today(ranking: Ranking) -> int | None:
    """None: age does not count."""
    return _day(ranking.now) if ranking.now is not None and _of_day(ranking) else None


def _little_endian(numbers: "array[int]") -> "array[int]":
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _byte(steps: int) -> int:
    return min(255, max(1, steps + _MIDDLE))


def _day(at: datetime) -> int:
    return min(_LAST_DAY, max(0, int(at.timestamp()) // 86_400))
