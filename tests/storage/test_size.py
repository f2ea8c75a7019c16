"""How much room a store takes on disk."""

import random
from pathlib import Path

import kept
from kept import Draft
from tests.builders import FakeClock

MEMORIES, CHARACTERS = 2_000, 290
MOST = 5.0  # times the text, for everything: rows, index, journal, checksums


def test_a_store_takes_at_most_five_times_its_text(tmp_path: Path) -> None:
    path, chance = tmp_path / "kept.db", random.Random(3)
    syllables = "ba de fi go lu ma ne pi ro su ta ve wi xo zu".split()
    vocabulary = ["".join(chance.choices(syllables, k=chance.randint(1, 4))) for _ in range(5_000)]

    def text() -> str:
        said = " ".join(vocabulary[min(int(chance.paretovariate(0.6)), 4_999)] for _ in range(90))
        return said[:CHARACTERS].capitalize()

    with kept.open(path, clock=FakeClock()) as memory:
        for _ in range(MEMORIES // 100):
            memory.remember_many([Draft(content=text(), kind="decision", tags=("auth",)) for _ in range(100)])
        written = [one.content for one in memory.list(limit=MEMORIES)]
    assert len(written) > MEMORIES * 0.99
    assert path.stat().st_size <= MOST * sum(len(content) for content in written)
