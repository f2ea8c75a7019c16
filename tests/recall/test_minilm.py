"""The sentence model that comes with the extra: its tokens, its vectors, and the file of its weights."""

import os
from pathlib import Path

import numpy as np
import pytest

import kept
from kept.distribution import install_line
from kept.recall import minilm
from kept.recall.minilm import MOST_TOKENS, MiniLM, word_pieces
from tests.golden.plain_questions import TOPICS, Topic

VOCABULARY = MiniLM().vocabulary

TEXTS = (
    "The car is in the garage",
    "The automobile stands in the garage",
    "Use pnpm and not npm for the web client",
    "The worker retries a failed job three times, and then it writes to the dead letter queue",
)


def cosines(rows: "np.ndarray") -> "np.ndarray":
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return units @ units.T


def test_words_are_split_as_the_model_has_learned_them() -> None:
    """The numbers are those of the tokenizer that is published with the model."""
    pieces = word_pieces(VOCABULARY)
    assert pieces.ids("Hello, world!") == [101, 7592, 1010, 2088, 999, 102]
    assert pieces.ids("embeddings") == [101, 7861, 8270, 4667, 2015, 102]
    assert pieces.ids("metrics.log") == [101, 12046, 2015, 1012, 8833, 102]
    assert pieces.ids("Café") == pieces.ids("cafe")
    assert pieces.ids("東京") == [101, 1879, 1755, 102], "each character is a word"
    assert pieces.ids("x" * 101) == [101, 100, 102], "an unknown word"
    assert pieces.ids("") == [101, 102]


def test_a_long_text_is_cut() -> None:
    ids = word_pieces(VOCABULARY).ids("deploy " * 500)
    assert len(ids) == MOST_TOKENS
    assert (ids[0], ids[-1]) == (101, 102)


def test_the_same_in_other_words_is_near_and_something_else_is_not() -> None:
    near = cosines(MiniLM().embed(TEXTS))
    assert near[0, 1] == pytest.approx(0.84, abs=0.01), "as the published model has it"
    assert near[0, 2] < MiniLM.unrelated
    assert near[0, 3] < MiniLM.unrelated


def test_a_text_has_the_same_vector_alone_and_among_others(monkeypatch: pytest.MonkeyPatch) -> None:
    model = MiniLM()
    together = model.embed([*TEXTS, ""])
    monkeypatch.setattr(minilm, "_MOST_ROWS", 20)
    assert np.allclose(model.embed([*TEXTS, ""]), together, atol=1e-4)
    for text, row in zip(TEXTS, together, strict=False):
        assert np.allclose(model.embed([text])[0], row, atol=1e-4)
    assert not together[-1].any(), "no words, no direction"
    assert model.embed([]).shape == (0, 384)


def test_weights_that_are_not_the_known_ones_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = MiniLM()
    damaged = bytearray(model._file.read_bytes())
    damaged[1_000_000] ^= 1
    (tmp_path / "model.onnx").write_bytes(damaged)
    monkeypatch.setattr(model, "_file", tmp_path / "model.onnx")
    with pytest.raises(kept.SettingsError, match="is damaged") as raised:
        model.check()
    assert raised.value.hint == f"Install it again: {install_line('vector')}"


def test_a_store_of_a_model_that_is_gone_says_what_to_do(tmp_path: Path) -> None:
    """Vectors of wordllama are made again; a setting that names it has an error with the line to type."""
    file = tmp_path / "memory.db"
    with kept.open(file, settings={"search_provider": "hybrid", "vector_model": "wordllama"}) as memory:
        memory.remember(TEXTS[1])
        recalled = memory.recall("garage")
        assert len(recalled.hits) == 1, "by its words"
        assert "Run `kept vectors on --model all-MiniLM-L6-v2`" in (recalled.degraded or "")
        with pytest.raises(kept.SettingsError, match="Unknown vector model 'wordllama'"):
            memory.vectors.check()
        memory.vectors.on(model="all-MiniLM-L6-v2")
        assert [state["model"] for state in memory.vectors.status().values()] == [MiniLM.model]


def test_new_memories_get_their_vectors_where_nobody_waits(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    with kept.open(file) as memory:
        memory.remember(TEXTS[0])
        memory.vectors.keep_up()
        assert [state["model"] for state in memory.vectors.status().values()] == [None], "vectors are off"
    with kept.open(file, settings={"search_provider": "hybrid"}) as memory:
        memory.vectors.keep_up()
        assert [state["done"] for state in memory.vectors.status().values()] == [1]


@pytest.mark.parametrize("topic", TOPICS if os.environ.get("KEPT_TEST_LONG") else ["home"])
def test_plain_questions_are_answered_in_other_words_and_others_are_not(topic: str) -> None:
    """Words alone answer 4 of these 11 at home, and 24 of the 55 of all topics; vectors 46."""
    least = {"people": 7, "projects": 11, "ops": 9, "home": 11, "food": 8}[topic]
    facts, answerable, unanswerable = (getattr(TOPICS[topic], name) for name in Topic.__struct_fields__)
    with kept.open(":memory:", settings={"search_provider": "hybrid", "recall_deadline_ms": 60_000}) as memory:
        memory.remember_many(facts)
        memory.vectors.on()
        right = [
            query for query, place in answerable if [hit.content for hit in memory.recall(query)][:1] == [facts[place]]
        ]
        assert len(right) >= least
        assert [query for query in unanswerable if memory.recall(query).hits] == []
