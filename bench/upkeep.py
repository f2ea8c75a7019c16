"""The cost of upkeep in a large store, and how much it disturbs recall.

    python -m bench.upkeep [--rows 100000] [--cache DIR] [--tiny] [--json]

Of the memories one in twenty is at the end of its shelf life, one in forty is a candidate whose quarantine is over, and
one in fifty has to make room: what a busy store brings together in some weeks. Upkeep runs in a process of its own, on
a small store and on one ten times as large: its processor time, and by how much its memory grows. Then what an opening
costs with and without automatic upkeep. At last this process recalls from the large store, alone, and while the other
one does its upkeep once more.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

import kept
from bench.corpora import NOW, Zipf, built
from bench.measure import Bar, Timing, interleaved, options, p50, p95, report, table
from kept.model import Memory, Source, replace

MOST_CPU_S = 10.0
MOST_GROWTH_MB = 16.0  # of the large store's peak over the small one's: a report of all that was done, and caches
WITH_A_LOOK, WITH_A_SLICE = "opening, upkeep not due", "opening, upkeep under way"


def memories(rows: int) -> Iterator[Memory]:
    """As described above; the rest was said on purpose."""
    extracted = Source(origin="extraction")
    for number, memory in enumerate(Zipf(7).memories(rows)):
        if number % 20 == 0:
            yield replace(memory, kind="progress", source=extracted)
        elif number % 40 == 1:
            uses = number // 40 % 2
            yield replace(memory, kind="preference", source=extracted, status="candidate", use_count=uses)
        else:
            yield memory


def build(rows: int, cache: Path) -> Path:
    """The file of such a store."""
    return built(f"upkeep-{rows}", cache, lambda: memories(rows))


def opened(path: Path, rows: int) -> kept.Kept:
    settings = kept.Settings(max_memories=rows * 94 // 100, auto_upkeep=False)
    return kept.open(path, settings=settings, clock=lambda: NOW)


def run(path: Path, rows: int) -> None:
    """The other process: do the upkeep, and say what it took."""
    with opened(path, rows) as memory:
        memory.recall("anything")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        cpu, wall = time.process_time(), time.perf_counter()
        done = memory.upkeep()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    counts = {action: done.count(action) for action in ("expire", "confirm", "penalise", "evict")}
    print(json.dumps({"cpu_s": cpu, "wall_s": wall, "grown_mb": grown / 1024, **counts}))


def begin(path: Path, rows: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "bench.upkeep", "--run", str(path), "--rows", str(rows)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def outcome(process: "subprocess.Popen[str]") -> dict[str, float]:
    told, _ = process.communicate()
    figures: dict[str, float] = json.loads(told)
    return figures


def recalls(memory: kept.Kept, asked: Iterator[str]) -> Iterator[tuple[float, float]]:
    for question in asked:
        wall, cpu = time.perf_counter(), time.thread_time()
        memory.recall(question)
        yield (time.perf_counter() - wall) * 1000, (time.thread_time() - cpu) * 1000


def beside(path: Path, rows: int, alone_s: float) -> tuple[dict[str, Timing], dict[str, float]]:
    """Recalls alone, then until the upkeep that another process does is over."""
    timings = {"alone": Timing([], []), "beside upkeep": Timing([], [])}
    asked = iter(Zipf(3).questions(50_000, common=True))
    with opened(path, rows) as memory:
        for _ in islice(recalls(memory, asked), 50):
            pass
        end = time.perf_counter() + alone_s
        for wall, cpu in recalls(memory, asked):
            timings["alone"].wall_ms.append(wall)
            timings["alone"].cpu_ms.append(cpu)
            if time.perf_counter() > end:
                break
        process = begin(path, rows)
        for wall, cpu in recalls(memory, asked):
            timings["beside upkeep"].wall_ms.append(wall)
            timings["beside upkeep"].cpu_ms.append(cpu)
            if process.poll() is not None:
                break
        return timings, outcome(process)


def openings(path: Path, count: int) -> dict[str, Timing]:
    """Opening and closing the store: without upkeep, with a look whether it is due, and with a slice of a round."""

    def open_at(at: datetime, settings: kept.Settings) -> None:
        kept.open(path, settings=settings, clock=lambda: at).close()

    on, off = kept.Settings(), kept.Settings(auto_upkeep=False)
    soon, later = NOW + timedelta(minutes=10), NOW + timedelta(hours=2)
    quiet = interleaved({"opening": lambda n: open_at(soon, off), WITH_A_LOOK: lambda n: open_at(soon, on)}, count)
    return quiet | interleaved({WITH_A_SLICE: lambda n: open_at(later, on)}, max(1, count // 2), warm_up=0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "kept-bench")
    parser.add_argument("--openings", type=int, default=200)
    parser.add_argument("--alone-s", type=float, default=5.0, help="seconds of recalls without upkeep")
    parser.add_argument("--build-only", action="store_true", help="make the stores, and measure nothing")
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    given = options(parser, tiny={"rows": 400, "openings": 2, "alone_s": 0.1})
    if given.run:
        run(given.run, given.rows)
        return 0
    stores = {rows: build(rows, given.cache) for rows in (given.rows // 10, given.rows)}
    if given.build_only:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        small = outcome(begin(Path(shutil.copy(stores[given.rows // 10], folder)), given.rows // 10))
        large_store = Path(shutil.copy(stores[given.rows], folder))
        large = outcome(begin(large_store, given.rows))
        opening = openings(large_store, given.openings)
        timings, _ = beside(Path(shutil.copy(stores[given.rows], Path(folder, "again.db"))), given.rows, given.alone_s)
    rise = p95(timings["beside upkeep"].wall_ms) / p95(timings["alone"].wall_ms)
    bars = [
        Bar(f"upkeep of {given.rows:,} memories, seconds of CPU", large["cpu_s"], MOST_CPU_S),
        Bar("its memory, MB above that of a tenth of them", large["grown_mb"] - small["grown_mb"], MOST_GROWTH_MB),
        Bar("p95 of a recall during upkeep, as a multiple of alone", rise, 2.0),
        Bar(
            "an opening, as a multiple of one without upkeep",
            _p50(opening, WITH_A_LOOK) / _p50(opening, "opening"),
            1.5,
        ),
        Bar("ms that upkeep under way adds to an opening", _p50(opening, WITH_A_SLICE) - _p50(opening, "opening"), 20),
    ]
    head = ("", "CPU s", "wall s", "grown MB", "expire", "confirm", "penalise", "evict")
    lines: list[list[object]] = [
        [f"{rows:,} memories", *figures.values()] for rows, figures in ((given.rows // 10, small), (given.rows, large))
    ]
    times = [
        [name, p50(timing.wall_ms), p95(timing.wall_ms), p95(timing.cpu_ms)]
        for name, timing in (timings | opening).items()
    ]
    text = table("Upkeep", head, lines) + "\n" + table("Recalls and openings", ("ms", "p50", "p95", "CPU p95"), times)
    figures = {"small": small, "large": large, "times": {str(line[0]): line[1:] for line in times}}
    return report(text, bars, figures, given)


def _p50(timings: dict[str, Timing], name: str) -> float:
    return p50(timings[name].wall_ms)


if __name__ == "__main__":
    sys.exit(main())
