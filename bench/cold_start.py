"""What a start of Kept costs in processor time: `import kept`, its facade, and `kept recall` from a shell.

    python -m bench.cold_start [--rounds 30] [--tiny] [--json]

Each round starts every interpreter once, in turns, and reads its processor time by getrusage. The figure that counts is
the one over bare Python: the facade against `import apsw, msgspec`. Without compiled files the source of Kept itself is
compiled at each start, as on a machine where its folder cannot be written.
"""

import argparse
import compileall
import os
import shutil
import sys
import tempfile
from pathlib import Path

import kept
from bench.measure import Bar, cpu_ms_of, options, p50, p95, report, table

LIMIT = 3.0
RECALL_LIMIT_MS = 100.0
COMMAND = "import sys; sys.argv = ['kept', *{!r}]; from kept.entrypoints.cli import main; main()"
REMEMBER = COMMAND.format(["remember", "Never edit the auth middleware directly", "--project", "cold-start"])
STATEMENTS = {
    "bare Python": "pass",
    "import apsw, msgspec": "import apsw, msgspec",
    "import kept": "import kept",
    "import kept; kept.open": "import kept; kept.open",
    "kept recall": COMMAND.format(["recall", "auth middleware", "--project", "cold-start"]),
}
BARE, LIBRARIES, _, FACADE, RECALL = STATEMENTS


def measure(rounds: int, *, is_compiled: bool) -> dict[str, list[float]]:
    """Milliseconds of each statement, round by round. The first round fills the caches and does not count."""
    times: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(kept.__file__).parent
        shutil.copytree(source, Path(folder) / "kept", ignore=shutil.ignore_patterns("__pycache__"))
        if is_compiled:
            compileall.compile_dir(folder, quiet=1)
        env = os.environ | {"PYTHONPATH": folder, "KEPT_HOME": str(Path(folder) / "home")}
        cpu_ms_of([sys.executable, "-B", "-c", REMEMBER], env)
        for number in range(rounds + 1):
            for name, statement in STATEMENTS.items():
                taken = cpu_ms_of([sys.executable, "-B", "-c", statement], env)
                if number:
                    times[name].append(taken)
    return times


def ratio(times: dict[str, list[float]]) -> float:
    """How many times as much as its libraries the facade costs over bare Python: the middle of all rounds."""
    rounds = zip(times[BARE], times[LIBRARIES], times[FACADE], strict=True)
    return p50([(k - b) / (a - b) for b, a, k in rounds if a > b])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    given = options(parser, tiny={"rounds": 1})
    compiled = measure(given.rounds, is_compiled=True)
    uncompiled = measure(max(1, given.rounds // 5), is_compiled=False)
    lines = [
        [f"{name}{suffix}", p50(values), p95(values), p50(values) - p50(times[BARE])]
        for suffix, times in (("", compiled), (", not compiled", uncompiled))
        for name, values in times.items()
    ]
    figures = {str(name): {"p50": mid, "p95": high, "over_bare": over} for name, mid, high, over in lines}
    bars = [
        Bar("the facade over bare Python, as a multiple of apsw and msgspec", ratio(compiled), LIMIT),
        Bar("kept recall, CPU ms", p50(compiled[RECALL]), RECALL_LIMIT_MS),
    ]
    text = table("CPU ms of a new interpreter", ("", "p50", "p95", "over bare"), lines)
    return report(text, bars, figures, given)


if __name__ == "__main__":
    sys.exit(main())
