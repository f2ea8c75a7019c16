"""How much longer a briefing takes than a plain recall of the same prompt.

    python -m bench.briefing [--rows 10000] [--rounds 200] [--cache DIR] [--tiny] [--json]

Both go through the facade, in turns, on one store: recall with its five hits, the briefing with all its sections (five
pinned memories, findings of another agent, summaries, files at hand), rendered and noted. Processor time of this thread
decides, because the machine may be busy with something else.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import kept
from bench import corpora
from bench.measure import Bar, Timing, interleaved, options, p50, p95, report, table
from kept.model import Draft, Source

FILE = "src/part7/module3.py"
SESSION = "bench"
WARM_UP = 20


def furnish(memory: kept.Kept) -> None:
    """Add what a briefing shows besides hits: pins, findings of another agent, summaries."""
    language = corpora.Zipf(23)
    for _ in range(5):
        memory.pin(memory.remember(language.say(30)).ref or "")
    reviewer = Source(origin="agent", agent="reviewer", session=SESSION)
    memory.remember_many([Draft(content=language.say(40), tier="session", source=reviewer) for _ in range(30)])
    memory.remember_many(
        [
            Draft(content=language.say(120), kind="summary", tier="session", source=Source(session=f"s{number}"))
            for number in range(20)
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "kept-bench")
    given = options(parser, tiny={"rows": 200, "rounds": 3})
    lines: list[list[object]] = []
    bars: list[Bar] = []
    with tempfile.TemporaryDirectory() as folder:
        place = shutil.copy(corpora.zipf_space(given.rows, given.cache), folder)
        with kept.open(place, settings=kept.Settings(), clock=lambda: corpora.NOW) as memory:
            furnish(memory)
            for kind in ("rare", "common"):
                prompts = corpora.Zipf(3).questions(given.rounds + WARM_UP, common=kind == "common")
                timings = timed(memory, prompts, given.rounds)
                for name, timing in timings.items():
                    figures = [p50(timing.cpu_ms), p95(timing.cpu_ms), p95(timing.wall_ms)]
                    lines.append([f"{kind} words, {name}", *figures])
                    if name != "recall":
                        in_recalls = p95(timing.cpu_ms) / p95(timings["recall"].cpu_ms)
                        bars.append(Bar(f"{kind} words: p95 of a {name}, in recalls", in_recalls, 3.0))
    head = ("ms", "CPU p50", "CPU p95", "wall p95")
    by_name = {str(line[0]): dict(zip(head[1:], line[1:], strict=True)) for line in lines}
    return report(table(f"A briefing over {given.rows:,} memories", head, lines), bars, by_name, given)


def timed(memory: kept.Kept, prompts: list[str], rounds: int) -> dict[str, Timing]:
    def brief(prompt: str) -> None:
        briefing = memory.briefing(prompt, session=SESSION, files=[FILE])
        assert briefing.text, briefing.error

    sides: dict[str, Callable[[int], object]] = {
        "recall": lambda number: memory.recall(prompts[number], files=[FILE]),
        "briefing": lambda number: brief(prompts[number]),
        "briefing without a prompt": lambda number: brief(""),
    }
    return interleaved(sides, rounds, warm_up=WARM_UP)


if __name__ == "__main__":
    sys.exit(main())
