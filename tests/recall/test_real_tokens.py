"""A budget holds for real tokenizers as well: over random briefings, never one token too many.

python -m tests.recall.test_real_tokens 10000 7      briefings, seed: the long version
"""

import random
import string
import sys

import pytest

from kept import tokens
from kept.model import Entry
from kept.recall.briefing import STYLES, Material, Order, compose
from tests.builders import memory
from tests.golden.bicycle_shop import MEMORIES
from tests.golden.project_memories import PROJECT_MEMORIES

VOCABULARIES = ("cl100k_base", "o200k_base")
TEXTS = [content for _, content in MEMORIES] + [str(one["content"]) for one in PROJECT_MEMORIES]
SCRIPTS = (
    (0x20, 0x7E),
    (0xA0, 0x2FF),
    (0x370, 0x5FF),
    (0x600, 0x1FFF),
    (0x2000, 0x2BFF),
    (0x3040, 0x9FFF),
    (0x1F300, 0x1FAFF),
)


def a_text(chance: random.Random) -> str:
    """Mostly what people write; sometimes keys, heaps of letters or characters of any script."""
    shape = chance.random()
    if shape < 0.7:
        return chance.choice(TEXTS)
    if shape < 0.8:
        return "".join(chance.choices(string.ascii_letters + string.digits + "+/", k=chance.randint(10, 120)))
    if shape < 0.9:
        words = ("".join(chance.choices(string.ascii_lowercase, k=chance.randint(2, 12))) for _ in range(12))
        return " ".join(words)
    if shape < 0.95:
        return "".join(chance.choices(string.punctuation + "  ", k=chance.randint(5, 80)))
    first, last = chance.choice(SCRIPTS)
    return "".join(chr(chance.randint(first, last)) for _ in range(chance.randint(5, 80)))


def a_briefing(chance: random.Random) -> tuple[str, int]:
    """The text of a random briefing, and its budget."""
    entries = [
        Entry(memory=memory(a_text(chance), id=number + 1, kind=chance.choice(("fact", "decision"))), why="fits")
        for number in range(chance.randint(1, 14))
    ]
    order = Order(
        total=chance.randint(60, 900),
        style=chance.choice(tuple(STYLES)),
        shares={"task": 40, "project": 40, "global": 20},
    )
    cut = chance.randint(0, len(entries))
    return str(compose(Material(always=entries[:cut], retrieval=entries[cut:]), order)), order.total


def run(briefings: int, seed: int) -> tuple[int, int, float]:
    """How many briefings had a text, how many exceeded their budget, and the largest share of a budget."""
    encodings = [pytest.importorskip("bpe_openai").get_encoding(name) for name in VOCABULARIES]
    chance = random.Random(seed)
    told = over = 0
    largest = 0.0
    for _ in range(briefings):
        text, budget = a_briefing(chance)
        real = max(len(encoding.encode_ordinary(text)) for encoding in encodings)
        told += bool(text)
        over += real > budget
        largest = max(largest, real / budget)
    return told, over, largest


def test_real_tokenizers_never_count_more_than_the_budget() -> None:
    told, over, _ = run(300, seed=11)
    assert told > 200
    assert over == 0


@pytest.mark.parametrize("text", ["", "x", *TEXTS[:40]])
def test_the_upper_bound_is_above_the_estimate(text: str) -> None:
    assert tokens.at_most(text) >= tokens.estimate(text)
    assert tokens.at_most(text) <= 2 * tokens.estimate(text) + 2


if __name__ == "__main__":
    print("with text, over, largest share:", run(int(sys.argv[1]), int(sys.argv[2])))
