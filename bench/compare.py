"""Two versions of Kept in one run: how much slower or faster the new one is.

    python -m bench.compare OLD_SRC NEW_SRC [--rows 10000] [--rounds 3] [--calls 200] [--tiny] [--json]

OLD_SRC and NEW_SRC are folders that hold the package `kept`, such as `src` of two checkouts. Each version runs in a
process of its own, on a store that it has written itself. The two take turns call by call, every other time in the
opposite order, so that a busy moment of the machine hits both; each round starts new processes on a fresh copy. Only
public names are used, which both versions must have. Measured is processor time of the thread; the figure that counts
is new divided by old.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import kept
from bench.measure import Bar, options, p50, p95, report, table
from bench.remember import questions, texts

MOST = 1.05
WARM_UP = 10
SIDES = ("old", "new")
WORK = ("recall, rare words", "recall, common words", "remember", "briefing", "append")
BENCH_FOLDER = Path(__file__).parent.parent


def fill(path: Path, rows: int) -> None:
    """In a process of the measured version: write the store."""
    with kept.open(path, settings=kept.Settings()) as memory:
        memory.remember_many([kept.Draft(content=text) for text in texts(rows, 1)])


def serve(path: Path, calls: int, seed: int) -> None:
    """In a process of the measured version: do what each line says, and answer with its milliseconds."""
    new = texts(calls + WARM_UP, 1_000 + seed)
    rare = questions(calls + WARM_UP, 2_000 + seed, common=False)
    common = questions(calls + WARM_UP, 3_000 + seed, common=True)
    with kept.open(path, settings=kept.Settings(auto_upkeep=False)) as memory:
        session = memory.session(f"s{seed}")
        work: tuple[Callable[[int], object], ...] = (
            lambda n: memory.recall(rare[n]),
            lambda n: memory.recall(common[n]),
            lambda n: memory.remember(new[n]),
            lambda n: memory.briefing(rare[n]),
            lambda n: session.append("user", new[n]),
        )
        for line in sys.stdin:
            which, number = map(int, line.split())
            started = time.thread_time()
            work[which](number)
            print((time.thread_time() - started) * 1000, flush=True)


class Side:
    """A process of one version."""

    def __init__(self, source: Path, *arguments: object) -> None:
        env = os.environ | {"PYTHONPATH": os.pathsep.join((str(source.resolve()), str(BENCH_FOLDER)))}
        command = [sys.executable, "-m", "bench.compare", *map(str, arguments)]
        self._process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> "Side":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        if self._process.returncode:
            raise RuntimeError(f"A measured version ended with exit code {self._process.returncode}.")

    def ms(self, which: int, number: int) -> float:
        given, answers = self._process.stdin, self._process.stdout
        assert given is not None
        assert answers is not None
        print(which, number, file=given, flush=True)
        return float(answers.readline())


def compare(sources: dict[str, Path], given: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """Side → work → milliseconds."""
    times: dict[str, dict[str, list[float]]] = {side: {name: [] for name in WORK} for side in SIDES}
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for side, source in sources.items():
            with Side(source, "--fill", Path(folder) / f"{side}.db", "--rows", given.rows):
                pass
        for seed in range(given.rounds):
            copies = Path(folder) / "copies"
            copies.mkdir()
            with ExitStack() as stack:
                running = {}
                for side, source in sources.items():
                    copy = shutil.copy(Path(folder) / f"{side}.db", copies)
                    running[side] = stack.enter_context(
                        Side(source, "--serve", copy, "--calls", given.calls, "--seed", seed)
                    )
                for which, name in enumerate(WORK):
                    for number in range(WARM_UP + given.calls):
                        for side in SIDES if number % 2 else SIDES[::-1]:
                            taken = running[side].ms(which, number)
                            if number >= WARM_UP:
                                times[side][name].append(taken)
            shutil.rmtree(copies)
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path, nargs="?", metavar="OLD_SRC")
    parser.add_argument("new", type=Path, nargs="?", metavar="NEW_SRC")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3, help="how often each version is started")
    parser.add_argument("--calls", type=int, default=200, help="of each kind, in each round")
    parser.add_argument("--folder", type=Path, help="where the stores go; by default a temporary folder")
    parser.add_argument("--fill", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    given = options(parser, tiny={"rows": 50, "rounds": 1, "calls": 2})
    if given.fill:
        fill(given.fill, given.rows)
        return 0
    if given.serve:
        serve(given.serve, given.calls, given.seed)
        return 0
    if not (given.old and given.new):
        parser.error("OLD_SRC and NEW_SRC are missing: two folders that hold the package `kept`.")
    for source in (given.old, given.new):
        if not (source / "kept" / "__init__.py").is_file():
            parser.error(f"{source} holds no package `kept`.")
    times = compare({"old": given.old, "new": given.new}, given)
    lines: list[list[object]] = []
    bars = []
    for name in WORK:
        old, new = times["old"][name], times["new"][name]
        ratios = p50(new) / p50(old), p95(new) / p95(old)
        lines.append([name, p50(old), p50(new), ratios[0], p95(old), p95(new), ratios[1]])
        bars.append(Bar(f"{name}: p50 new / old", ratios[0], MOST))
    head = ("ms of processor time", "old p50", "new p50", "new / old", "old p95", "new p95", "new / old")
    shown = table(f"{given.rows:,} memories, {given.rounds} rounds of {given.calls} calls", head, lines)
    names = ("old_p50", "new_p50", "p50_ratio", "old_p95", "new_p95", "p95_ratio")
    figures = {str(line[0]): dict(zip(names, line[1:], strict=True)) for line in lines}
    return report(shown, bars, figures, given)


if __name__ == "__main__":
    sys.exit(main())
