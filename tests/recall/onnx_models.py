"""Tiny sentence models in ONNX form, which the real onnxruntime runs: a vector for each word, the same for synonyms.

The file is written byte by byte (ONNX is a protobuf), because the package that makes such files is large. `make_model`
writes a folder as users have it. Inputs, outputs and types can be chosen, also those that no sentence model has.
"""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from random import Random
from struct import pack

import pytest

from kept.recall.models import UNRELATED

CONCEPTS = ("car automobile vehicle", "dog hound puppy", "bill invoice receipt", "garage", "manager", "home", "port")
UNKNOWN, DIMENSIONS, FAINT = "[UNK]", 320, 0.05
TYPES = {"float": 1, "int32": 6, "int64": 7}
INPUTS = {"input_ids": "int64", "attention_mask": "int64"}
TOKENS, SENTENCE = {"last_hidden_state": 3}, {"sentence_embedding": 2}  # outputs and their dimensions

needs_onnx = pytest.mark.skipif(
    not (find_spec("onnxruntime") and find_spec("tokenizers")),
    reason="needs the extra onnx",
)


def make_model(
    folder: Path,
    *,
    inputs: Mapping[str, str] = INPUTS,
    outputs: Mapping[str, int] = TOKENS,
    under: str = ".",
    seed: int = 0,
) -> Path:
    """Write model.onnx, in the folder `under`, and tokenizer.json. Another seed: another model."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    known = [*CONCEPTS, *sorted({word.lower() for sentence in UNRELATED for word in sentence.split() if len(word) > 3})]
    words = {word: row for row, concept in enumerate(known, 1) for word in concept.split()}
    vocabulary = {UNKNOWN: 0} | {word: number for number, word in enumerate(words, 1)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_padding(length=64)  # as models come; it must not count
    (folder / under).mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    rng = Random(seed)
    directions = [[rng.choice((-1.0, 1.0)) for _ in range(DIMENSIONS)] for _ in range(len(known) + 1)]
    rows = [directions[row] for row in (0, *words.values())]
    rows[0] = [FAINT * number for number in rows[0]]
    (folder / under / "model.onnx").write_bytes(_model(rows, inputs, outputs))
    return folder


def _model(rows: Sequence[Sequence[float]], inputs: Mapping[str, str], outputs: Mapping[str, int]) -> bytes:
    """Looks up a row for each token; an output with two dimensions is their mean, one with one the number of texts."""
    data = pack(f"<{len(rows) * DIMENSIONS}f", *(number for row in rows for number in row))
    table = _number(1, len(rows)) + _number(1, DIMENSIONS) + _number(2, 1) + _text(8, "table") + _bytes(9, data)
    axes = _number(1, 1) + _number(2, 7) + _text(8, "axes") + _bytes(9, pack("<q", 1))
    first = next(iter(inputs))
    nodes = [_node("Gather", ("table", first), "looked_up")]
    for name, dimensions in outputs.items():
        mean = _node("ReduceMean", ("looked_up", "axes"), name, keepdims=0)
        nodes.append(mean if dimensions == 2 else _node("Identity", ("looked_up",), name))
    graph = b"".join(_bytes(1, node) for node in nodes) + _text(2, "tiny") + _bytes(5, table) + _bytes(5, axes)
    graph += b"".join(_bytes(11, _value(name, type, 2)) for name, type in inputs.items())
    graph += b"".join(_bytes(12, _value(name, "float", dimensions)) for name, dimensions in outputs.items())
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _number(2, 18))


def _node(kind: str, takes: Sequence[str], gives: str, **attributes: int) -> bytes:
    given = b"".join(_text(1, name) for name in takes) + _text(2, gives) + _text(4, kind)
    for name, value in attributes.items():
        given += _bytes(5, _text(1, name) + _number(3, value) + _number(20, 2))
    return given


def _value(name: str, type: str, dimensions: int) -> bytes:
    shape = b"".join(_bytes(1, _text(2, f"{name}{at}")) for at in range(dimensions))
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, TYPES[type]) + _bytes(2, shape)))


# Protobuf


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])
