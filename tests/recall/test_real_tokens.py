"""A budget holds for real tokenizers as well: over random briefings, never one token too many.

python -m tests.recall.test_real_tokens 10000 7      briefings, seed: the long version
python -m tests.recall.test_real_tokens table        the two tables of tokens.py
"""

import random
import string
import sys
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kept import tokens
from kept.model import Entry
from kept.recall.briefing import STYLES, Material, Order, compose, render_entry
from tests.builders import memory
from tests.golden.bicycle_shop import MEMORIES
from tests.golden.project_memories import PROJECT_MEMORIES

VOCABULARIES = ("cl100k_base", "o200k_base")
TEXTS = [content for _, content in MEMORIES] + [str(one["content"]) for one in PROJECT_MEMORIES]
# One sentence in many scripts: an importer runs on port 8080 and is backed up every night.
SENTENCES = {
    "Hindi": "आयातक सेवा पोर्ट 8080 पर चलती है और हर रात बैकअप लेती है",
    "Thai": "บริการนำเข้าทำงานบนพอร์ต 8080 และสำรองข้อมูลทุกคืน",
    "Chinese": "导入服务运行在8080端口,每晚备份一次。",
    "Korean": "가져오기 서비스는 8080 포트에서 실행되며 매일 밤 백업합니다.",
    "Arabic": "تعمل خدمة الاستيراد على المنفذ 8080 وتأخذ نسخة احتياطية كل ليلة",
    "Russian": "Сервис импорта работает на порту 8080 и каждую ночь делает резервную копию.",
    "Tamil": "இறக்குமதி சேவை 8080 போர்ட்டில் இயங்குகிறது",
    "Vietnamese": "Dịch vụ nhập dữ liệu chạy trên cổng 8080 và sao lưu mỗi đêm.",
    "Greek": "Η υπηρεσία εισαγωγής τρέχει στη θύρα 8080 και κρατά αντίγραφο κάθε βράδυ.",
    "Hebrew": "שירות הייבוא רץ על פורט 8080 ומגבה כל לילה",
    "Japanese": "インポートサービスはポート8080で動作し、毎晩バックアップします。",
    "German": "Der Importdienst läuft auf Port 8080 und wird jede Nacht gesichert.",
}
HEADING_TOKENS = 60  # of a section that has no memory yet, with its agent, and of the line that names missing pins
WORDS = [word for sentence in (*SENTENCES.values(), *TEXTS[:20]) for word in sentence.split()]
SCRIPTS = (
    (0x20, 0x7E),
    (0xA0, 0x2FF),
    (0x370, 0x5FF),
    (0x600, 0x1FFF),
    (0x2000, 0x2BFF),
    (0x3040, 0x9FFF),
    (0xAC00, 0xD7A3),
    (0x1F300, 0x1FAFF),
)


def a_text(chance: random.Random) -> str:
    """Mostly what people write; sometimes keys, heaps of letters or characters of any script."""
    shape = chance.random()
    if shape < 0.4:
        return chance.choice(TEXTS)
    if shape < 0.7:  # several scripts in one text
        return chance.choice((" ", "")).join(chance.choices(WORDS, k=chance.randint(3, 30)))
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
        Entry(memory=memory(a_text(chance), id=number + 1, kind=chance.choice(("fact", "decision"))), reason="fits")
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
    chance = random.Random(seed)
    told = over = 0
    largest = 0.0
    for _ in range(briefings):
        text, budget = a_briefing(chance)
        real = _real(text)
        told += bool(text)
        over += real > budget
        largest = max(largest, real / budget)
    return told, over, largest


def test_real_tokenizers_never_count_more_than_the_budget() -> None:
    told, over, _ = run(300, seed=11)
    assert told > 200
    assert over == 0


@pytest.mark.parametrize("script", SENTENCES)
def test_the_tokens_of_every_script_are_near_the_real_ones(script: str) -> None:
    """At most half as many again or, where words are whole tokens, twice as many; never less."""
    real = _real(SENTENCES[script])
    assert real <= tokens.at_most(SENTENCES[script]) <= (2.2 if script in ("Russian", "Korean") else 1.6) * real + 5
    assert 0.85 * real <= tokens.estimate(SENTENCES[script]) <= 1.5 * real + 2


MIXED = st.lists(st.sampled_from(WORDS), min_size=2, max_size=30).map(" ".join) | st.text(max_size=80)


@settings(deadline=None, max_examples=150)
@given(
    contents=st.lists(MIXED.filter(str.strip), max_size=24),
    pins=st.integers(0, 9),
    others=st.integers(0, 6),
    total=st.integers(0, 1_500),
    style=st.sampled_from(sorted(STYLES)),
    max_chars=st.none() | st.integers(200, 4_000),
)
def test_every_budget_holds_is_filled_and_adds_up(
    contents: list[str], pins: int, others: int, total: int, style: str, max_chars: int | None
) -> None:
    entries = [Entry(memory=memory(one, id=number + 1), reason="") for number, one in enumerate(contents)]
    found = Material(always=entries[:pins], bridge=entries[pins : pins + others], retrieval=entries[pins + others :])
    order = Order(total=total, style=style, shares={"task": 40, "project": 40, "global": 20}, max_chars=max_chars)
    briefing = compose(found, order)
    assert _real(briefing.text) <= total
    assert len(briefing.text) <= (max_chars or len(briefing.text))
    assert sum(section.tokens for section in briefing.sections) == briefing.tokens <= total
    assert all(section.tokens >= 0 for section in briefing.sections)
    shown = {entry.ref for section in briefing.sections for entry in section.entries}
    assert shown | {one.ref for one in briefing.left_out} == {entry.ref for entry in entries}
    if briefing.text and max_chars is None:
        room = total - tokens.at_most(briefing.text)
        waiting = [entry for entry in entries if entry.ref not in shown]
        costs = [tokens.at_most(render_entry(entry, "retrieval", style)) for entry in waiting]
        assert not [cost for cost in costs if cost + HEADING_TOKENS <= room], "what fits is told"


@pytest.mark.parametrize("script", SENTENCES)
def test_a_memory_in_any_script_is_told_within_300_tokens(script: str) -> None:
    told = Material(retrieval=[Entry(memory=memory(SENTENCES[script], id=1), reason="fits")])
    text = str(compose(told, Order(total=300, style="xml", shares={"task": 40, "project": 40, "global": 20})))
    assert SENTENCES[script] in text
    assert _real(text) <= 300


@cache
def _encodings() -> list[Any]:
    return [pytest.importorskip("bpe_openai").get_encoding(name) for name in VOCABULARIES]


def _real(text: str) -> int:
    return max(len(encoding.encode_ordinary(text)) for encoding in _encodings())


def test_no_character_takes_more_tokens_than_it_is_counted_for() -> None:
    pytest.importorskip("bpe_openai")
    characters = [chr(code) for code in (*range(0x80, 0xD800, 7), *range(0xE000, 0x30000, 41))]
    assert [one for one in characters if _real(one) > tokens.at_most(one)] == []


@pytest.mark.parametrize("text", ["", "x", *TEXTS[:40]])
def test_the_upper_bound_is_above_the_estimate(text: str) -> None:
    assert tokens.at_most(text) >= tokens.estimate(text)
    assert tokens.at_most(text) <= 2 * tokens.estimate(text) + 2


def tables() -> str:
    """Return the two tables of tokens.py: distances between characters of one token, and blocks with one of three."""
    counts = {code: _real(chr(code)) for code in range(0x80, 0x10000) if not 0xD800 <= code < 0xE000}
    single = [0x80, *(code for code, count in counts.items() if count == 1)]
    dear = sorted({code // 64 for code, count in counts.items() if count == 3})
    return " ".join(_base36(code - before) for before, code in pairwise(single)) + "\n" + " ".join(map(hex, dear))


def _base36(number: int) -> str:
    digit = (string.digits + string.ascii_lowercase)[number % 36]
    return (_base36(number // 36) if number >= 36 else "") + digit


def test_the_tables_are_those_of_the_vocabularies() -> None:
    pytest.importorskip("bpe_openai")
    single, dear = tables().split("\n")
    assert tokens._OF_ONE_TOKEN.split() == single.split()
    listed = set(tokens._counts_of_characters()._threes)  # type: ignore[attr-defined]
    assert {int(block, 16) for block in dear.split()} <= listed


if __name__ == "__main__":
    if sys.argv[1] == "table":
        sys.exit(tables())
    print("with text, over, largest share:", run(int(sys.argv[1]), int(sys.argv[2])))
