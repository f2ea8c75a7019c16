"""What all benchmarks share: options, clocks, percentiles, interleaving, tables.

Rule: compare figures only within one run. The sides run in turns, round by round, so that a busy moment of the machine
hits all of them.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, to_builtins


class Timing(Struct, frozen=True):
    """The durations of one thing, in milliseconds: on the clock, and of this thread's processor time."""

    wall_ms: list[float]
    cpu_ms: list[float]


class Bar(Struct, frozen=True):
    """A figure and the limit that it must not exceed."""

    name: str
    value: float
    limit: float

    @property
    def holds(self) -> bool:
        return self.value <= self.limit


def options(
    parser: argparse.ArgumentParser, *, tiny: Mapping[str, Any], arguments: Sequence[str] | None = None
) -> argparse.Namespace:
    """Parse the command line with `--json` and `--tiny`, which sets the options named in `tiny`."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--tiny", action="store_true", help="only try whether it runs; the figures mean nothing")
    given = parser.parse_args(arguments)
    if given.tiny:
        vars(given).update(tiny)
    return given


def interleaved(
    sides: Mapping[str, Callable[[int], object]],
    rounds: int,
    *,
    warm_up: int = 20,
    before: Callable[[int], object] = lambda number: None,
) -> dict[str, Timing]:
    """Time each side once a round, in turns; every other round in the opposite order. The first rounds don't count.

    `before` is called first in every round, and not timed.
    """
    timings = {name: Timing([], []) for name in sides}
    names = list(sides)
    for number in range(warm_up + rounds):
        before(number)
        for name in names if number % 2 else reversed(names):
            wall, cpu = time.perf_counter(), time.thread_time()
            sides[name](number)
            cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
            if number >= warm_up:
                timings[name].wall_ms.append(wall * 1000)
                timings[name].cpu_ms.append(cpu * 1000)
    return timings


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of all values do not exceed."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(len(ranked) * share))]


def p50(values: Sequence[float]) -> float:
    return percentile(values, 0.50)


def p95(values: Sequence[float]) -> float:
    return percentile(values, 0.95)


def cpu_ms_of(command: Sequence[str], env: Mapping[str, str]) -> float:
    """Processor time of a subprocess, user and system, by getrusage: the ticks of `times` are too coarse."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, env=dict(env), stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1000


def table(title: str, head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Text in columns; numbers with three digits that count."""
    cells = [list(head), *([_cell(value) for value in line] for line in lines)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    text = [title]
    for row in cells:
        numbers = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        text.append("  " + "  ".join([row[0].ljust(widths[0]), *numbers]))
    return "\n".join(text)


def report(text: str, bars: Sequence[Bar], figures: Mapping[str, Any], given: argparse.Namespace) -> int:
    """Print the outcome. The exit code is 1 if a bar fails, except at the tiny size, where no bar is judged."""
    if given.json:
        print(json.dumps({**figures, "bars": [{**to_builtins(bar), "holds": bar.holds} for bar in bars]}, indent=2))
    else:
        print(text)
        if given.tiny:
            print("Tiny: it runs. The figures mean nothing, and no bar is judged.")
        for bar in () if given.tiny else bars:
            verdict = "holds" if bar.holds else "FAILS"
            print(f"{verdict}: {bar.name} {bar.value:.2f} (at most {bar.limit:g})")
    sys.stdout.flush()
    return 0 if given.tiny or all(bar.holds for bar in bars) else 1


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return str(value)
