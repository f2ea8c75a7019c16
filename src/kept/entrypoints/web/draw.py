"""Scores, budgets, days and times as geometry: numbers in, percentages out. Pure.

A score is a product, so its axis is logarithmic: equal lengths are equal factors. All rows of a list share one axis.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from math import ceil, floor, log2

from msgspec import Struct

LEAST = 0.05  # below this a factor is drawn as if it were this
LEAST_SHOWN = 0.4  # scores below this end at the left edge: how bad a miss is does not matter
MOST_TICKS = 7
LABEL_WIDTH = 14.0  # percent: four digits where the axis is 12rem wide, with a gap


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
    """Where a product is drawn. `ticks` are powers of two on it; `floor` is the score below which nothing is given."""

    low: float
    high: float
    floor: float = 0.0

    def x(self, value: float) -> float:
        """The place of a product, in percent."""
        place = (log2(max(value, LEAST)) - self.low) / (self.high - self.low) * 100
        return round(min(100.0, max(0.0, place)), 2)

    @property
    def ticks(self) -> list[tuple[str, float]]:
        powers = range(ceil(self.low), floor(self.high) + 1)
        step = max(1, ceil(len(powers) / MOST_TICKS))
        return [(f"{2.0**power:g}", self.x(2.0**power)) for power in powers[::step]]

    @property
    def labels(self) -> list[tuple[str, float]]:
        """Return the ticks whose numbers have room beside that of the floor."""
        floor = self.floor_x
        return [(label, x) for label, x in self.ticks if floor is None or abs(x - floor) >= LABEL_WIDTH]

    @property
    def floor_x(self) -> float | None:
        return self.x(self.floor) if self.floor else None


def axis_of(scores: Iterable[Mapping[str, float]], *, floor: float = 0.0) -> Axis:
    """An axis on which all these products fit, with the running products on the way."""
    values = [1.0]
    for factors in scores:
        running = 1.0
        for factor in _ordered(factors).values():
            running *= max(factor, LEAST)
            values.append(running)
    return Axis(log2(max(LEAST_SHOWN, min(values))) - 0.4, log2(max(values)) + 0.4, floor)


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


class Cell(Struct, frozen=True):
    """A day of a calendar. `level` says how strongly it is coloured, from 0 to 4."""

    day: date
    count: int
    level: int
    x: int
    y: int


class Calendar(Struct, frozen=True):
    """Days as a grid: a column a week, a row a weekday. `months` are labels and where they stand.

    Days on which nothing happened are one path: a year has hundreds of them.
    """

    cells: list[Cell]
    months: list[tuple[str, int]]
    width: int
    empty: str


CELL, LEFT, TOP, SIDE = 13, 30, 18, 11


def calendar(counts: Mapping[date, int], first: date, last: date) -> Calendar:
    """The days from the Monday of `first` to `last`, coloured by their share of the busiest day."""
    begin = first - timedelta(days=first.weekday())
    most = max((counts.get(begin + timedelta(days=n), 0) for n in range((last - begin).days + 1)), default=0)
    cells: list[Cell] = []
    months: list[tuple[str, int]] = []
    for number in range((last - begin).days + 1):
        day = begin + timedelta(days=number)
        count = counts.get(day, 0)
        x, y = LEFT + number // 7 * CELL, TOP + day.weekday() * CELL
        cells.append(Cell(day, count, 0 if not count else min(4, 1 + (count * 4 - 1) // max(1, most)), x, y))
        if day.day == 1 and (not months or x - months[-1][1] > 2 * CELL):
            months.append((f"{day:%b}", x))
    return _drawn(cells, months, LEFT + ((last - begin).days // 7 + 1) * CELL)


def _drawn(cells: Sequence[Cell], months: list[tuple[str, int]], width: int) -> Calendar:
    """Return the calendar of these days; the last one is today."""
    empty = "".join(f"M{cell.x} {cell.y}h{SIDE}v{SIDE}h-{SIDE}z" for cell in cells if not cell.count)
    return Calendar([cell for cell in cells if cell.count or cell is cells[-1]], months, width, empty)


def line(values: Sequence[float], *, low: float, high: float, width: float = 600, height: float = 100) -> str:
    """The points of a line through the values, on a logarithmic axis from `low` to `high`."""
    span = max(1e-9, log2(high) - log2(low))
    places = [
        (
            number * width / max(1, len(values) - 1),
            height - (log2(min(high, max(low, value))) - log2(low)) / span * height,
        )
        for number, value in enumerate(values)
    ]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
