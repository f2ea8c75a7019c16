"""What remembering costs at the facade: one at a time, and in bulk, into a space of ten thousand.

    python -m bench.remember [--rows N] [--json]

Thread CPU time. The commit alone (an empty change through the same storage) is measured in the same run and taken off.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

import kept
from bench.measure import p50, p95, table
from kept.model import Draft

VOWELS, CONSONANTS = "aeiou", "bcdfghklmnprstvz"


def texts(count: int, seed: int) -> list[str]:
    """Statements of about 300 characters out of 50,000 words, common ones more often."""
    rng = random.Random(seed)
    words = [_word(number) for number in range(50_000)]
    weights = [1 / (rank + 10) for rank in range(len(words))]
    return [" ".join(rng.choices(words, weights=weights, k=45))[:300] for _ in range(count)]


def _word(number: int) -> str:
    letters = ""
    number += 17
    while number:
        number, consonant = divmod(number, len(CONSONANTS))
        number, vowel = divmod(number, len(VOWELS))
        letters += CONSONANTS[consonant] + VOWELS[vowel]
    return letters


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, kept.open(Path(folder) / "m.db", settings=kept.Settings()) as memory:
        drafts = [Draft(content=text) for text in texts(options.rows, 1)]
        started = time.thread_time()
        memory.remember_many(drafts)
        rate = options.rows / (time.thread_time() - started)
        whole, commit = [], []
        for text in texts(200, 2):
            started = time.thread_time()
            memory.remember(text)
            whole.append((time.thread_time() - started) * 1000)
            started = time.thread_time()
            memory.demote(1)  # the smallest change with its event: the price of a commit
            commit.append((time.thread_time() - started) * 1000)
    print(
        table(
            f"Remembering 300 characters into {options.rows:,} memories (ms of CPU)",
            ("", "p50", "p95"),
            [
                ("remember", f"{p50(whole):.2f}", f"{p95(whole):.2f}"),
                ("a commit alone", f"{p50(commit):.2f}", f"{p95(commit):.2f}"),
            ],
        )
    )
    print(f"on top of the commit, p95: {p95(whole) - p50(commit):.2f} ms (bar: 3)")
    print(f"remember_many: {rate:,.0f} a second of CPU (bar: 5,000)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
