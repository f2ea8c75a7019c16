"""What remembering costs at the facade: one at a time, and in bulk, into a space of ten thousand.

    python -m bench.remember [--rows N] [--tiny] [--json]

Thread CPU time. The commit alone (an empty change through the same storage) is measured in the same run and taken off.
"""

import argparse
import random
import sys
import tempfile
import time
from functools import cache
from itertools import accumulate
from pathlib import Path

import kept
from bench.measure import Bar, interleaved, options, p50, p95, report, table

WARM_UP = 5
VOWELS, CONSONANTS = "aeiou", "bcdfghklmnprstvz"


def texts(count: int, seed: int) -> list[str]:
    """Statements of about 300 characters out of 50,000 words, common ones more often."""
    rng = random.Random(seed)
    words, weights = _language()
    return [" ".join(rng.choices(words, cum_weights=weights, k=45))[:300] for _ in range(count)]


def questions(count: int, seed: int, *, common: bool) -> list[str]:
    """Three to eight words: as people talk, or only rare ones."""
    rng = random.Random(seed)
    words, weights = _language()
    if common:
        return [" ".join(rng.choices(words, cum_weights=weights, k=rng.randint(3, 8))) for _ in range(count)]
    return [" ".join(rng.sample(words[2_000:30_000], rng.randint(3, 8))) for _ in range(count)]


@cache
def _language() -> tuple[list[str], list[float]]:
    words = [_word(number) for number in range(50_000)]
    return words, list(accumulate(1 / (rank + 10) for rank in range(len(words))))


def _word(number: int) -> str:
    letters = ""
    number += 17
    while number:
        number, consonant = divmod(number, len(CONSONANTS))
        number, vowel = divmod(number, len(VOWELS))
        letters += CONSONANTS[consonant] + VOWELS[vowel]
    return letters


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=200)
    given = options(parser, tiny={"rows": 50, "rounds": 3})
    drafts = [kept.Draft(content=text) for text in texts(given.rows, 1)]
    more = texts(given.rounds + WARM_UP, 2)
    with tempfile.TemporaryDirectory() as folder, kept.open(Path(folder) / "m.db", settings=kept.Settings()) as memory:
        started = time.thread_time()
        memory.remember_many(drafts)
        rate = given.rows / (time.thread_time() - started)
        timings = interleaved(
            {
                "remember": lambda number: memory.remember(more[number]),
                # The smallest change with its event: what a commit costs.
                "a commit alone": lambda number: memory.demote(1),
            },
            given.rounds,
            warm_up=WARM_UP,
        )
    whole, commit = (timing.cpu_ms for timing in timings.values())
    lines = [(name, p50(timing.cpu_ms), p95(timing.cpu_ms)) for name, timing in timings.items()]
    text = table(f"Remembering 300 characters into {given.rows:,} memories (ms of CPU)", ("", "p50", "p95"), lines)
    bars = [
        Bar("remember on top of the commit, p95, ms of CPU", p95(whole) - p50(commit), 3.0),
        Bar("remember_many, ms of CPU for each memory", 1000 / rate, 0.2),
    ]
    text += f"\nremember_many: {rate:,.0f} a second of CPU"
    figures = {str(name): {"p50": middle, "p95": high} for name, middle, high in lines}
    return report(text, bars, {**figures, "remember_many_per_cpu_s": rate}, given)


if __name__ == "__main__":
    sys.exit(main())
