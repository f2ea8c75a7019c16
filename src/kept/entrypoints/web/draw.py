"""Scores and budgets as geometry: numbers in, percentages out. Pure.

A score is a product, so its axis is logarithmic: equal lengths are equal factors. All rows of a list share one axis.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import log2

from msgspec import Struct

LEAST = 0.05  # below this a factor is drawn as if it were this


class Bar(Struct, frozen=True):
    """A part of a waterfall, in percent of the axis. `kind` is match, up or down."""

    kind: str
    x: float
    width: float


class FactorStep(Struct, frozen=True):
    """One factor in full: its value, the product so far, and where it is drawn."""

    name: str
    value: float
    running: float
    bar: Bar | None
    start: float
    end: float


class Axis(Struct, frozen=True):
    """Where a product is drawn. `ticks` are the powers of two on it."""

    low: float
    high: float

    def x(self, value: float) -> float:
        """The place of a product, in percent."""
        place = (log2(max(value, LEAST)) - self.low) / (self.high - self.low) * 100
        return round(min(100.0, max(0.0, place)), 2)

    @property
    def ticks(self) -> list[int]:
        return [2**power for power in range(max(0, int(self.low)), int(self.high) + 1)]


def axis_of(scores: Iterable[Mapping[str, float]]) -> Axis:
    """An axis on which all these products fit, with the running products on the way."""
    values = [1.0]
    for factors in scores:
        running = 1.0
        for factor in _ordered(factors).values():
            running *= max(factor, LEAST)
            values.append(running)
    return Axis(log2(max(LEAST, min(values))) - 0.4, log2(max(values)) + 0.4)


def waterfall(factors: Mapping[str, float], axis: Axis) -> tuple[list[Bar], float]:
    """The short form: the match, then what raised it, then what was lost; and the place of the score."""
    ordered = _ordered(factors)
    at, bars = 1.0, []
    for name, factor in ordered.items():
        if name == "match" or factor > 1.0:
            after = at * factor
            low, high = sorted((axis.x(at), axis.x(after)))
            bars.append(Bar("match" if name == "match" else "up", low, round(high - low, 2)))
            at = after
    score = at
    for name, factor in ordered.items():
        if name != "match" and factor < 1.0:
            score *= max(factor, LEAST)
    if score < at:
        bars.append(Bar("down", axis.x(score), round(axis.x(at) - axis.x(score), 2)))
    return bars, axis.x(score)


def steps(factors: Mapping[str, float], axis: Axis) -> list[FactorStep]:
    """The long form: every factor in order, with the product so far."""
    running, found = 1.0, []
    for name, factor in _ordered(factors).items():
        before, running = running, running * max(factor, LEAST)
        start, end = axis.x(before), axis.x(running)
        bar = None
        if start != end:
            kind = "match" if name == "match" else "up" if end > start else "down"
            bar = Bar(kind, min(start, end), round(abs(end - start), 2))
        found.append(FactorStep(name, factor, running, bar, start, end))
    return found


def _ordered(factors: Mapping[str, float]) -> dict[str, float]:
    first = {"match": factors["match"]} if "match" in factors else {}
    return first | {name: value for name, value in factors.items() if name != "match"}


def shares(parts: Sequence[tuple[str, int]], whole: int) -> list[tuple[str, int, float, float]]:
    """Parts of a whole beside each other: name, amount, where it begins and how wide it is, in percent."""
    found, at = [], 0.0
    for name, amount in parts:
        width = round(100 * amount / max(1, whole), 2)
        found.append((name, amount, round(at, 2), width))
        at += width
    return found


def heat(counts: Mapping[str, int]) -> dict[str, int]:
    """How strongly each day is coloured, from 0 to 4, by its share of the busiest day."""
    most = max(counts.values(), default=0)
    return {day: 0 if not count else min(4, 1 + (count * 4 - 1) // max(1, most)) for day, count in counts.items()}
