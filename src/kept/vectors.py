"""Vectors: what a text means, as a direction.

Noun layer, pure. A vector is kept as bytes: numbers of two bytes each, of length 1 all together, so that the cosine of
two of them is a sum of products. Its signs, a bit for each number, are a sketch of it: how many bits of two sketches
differ says about how far apart the two are, sixteen times faster. Rule: every storage and every score gets its numbers
from here, hence the same ones. numpy is imported when it is needed: without vectors nobody waits for it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kept.errors import InvalidInput, SettingsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Vector = bytes

INSTALL = "Install it: pip install 'kept[vector]'"
_NUMBER = "<f2"
_NO_ROWS = "An embedding is a row of finite numbers, of the same length for every text."
_DECIMALS = 6  # of a cosine: what two bytes a number can tell, and the same on every machine


def pack(rows: Any) -> list[Vector]:
    """Vectors out of rows of numbers, as an embedder gives them. A row of zeros, which has no direction, stays so."""
    np = _numpy()
    try:
        numbers: NDArray[Any] = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(_NO_ROWS) from None
    if numbers.ndim != 2 or not numbers.shape[1] or not np.isfinite(numbers).all():
        raise InvalidInput(_NO_ROWS)
    lengths = np.linalg.norm(numbers, axis=1, keepdims=True)
    units = numbers / np.where(lengths > 0, lengths, 1.0)
    return [row.tobytes() for row in units.astype(_NUMBER)]


def cosines(vector: Vector, others: Sequence[Vector]) -> list[float]:
    """How much each of the others points the same way: 1 the same, 0 nothing in common."""
    if not others:
        return []
    own, rest = _numbers(vector), _numbers(b"".join(others)).reshape(len(others), -1)
    # Row by row and not as a product of matrices, whose last digits depend on how many rows there are.
    return [round(float(value), _DECIMALS) for value in (rest * own).sum(axis=1)]


def signs(vector: Vector) -> bytes:
    """The sketch of a vector: one bit for each number, set where it is above 0."""
    packed: bytes = _numpy().packbits(_numbers(vector) > 0).tobytes()
    return packed


def nearest(sketch: bytes, sketches: bytes, limit: int) -> list[int]:
    """Places of the sketches most alike, out of many one after the other; of equals the first, and no empty one."""
    np = _numpy()
    width = len(sketch)
    word = np.uint64 if width % 8 == 0 else np.uint8
    table = np.frombuffer(sketches, dtype=word).reshape(-1, width // word().itemsize)
    differing = np.bitwise_count(table ^ np.frombuffer(sketch, dtype=word)).sum(axis=1, dtype=np.int32)
    filled = np.flatnonzero(table.any(axis=1))
    if 0 < limit < len(filled):
        cut = np.partition(differing[filled], limit - 1)[limit - 1]
        filled = filled[differing[filled] <= cut]
    order = np.argsort(differing[filled], kind="stable")[:limit]
    return [int(place) for place in filled[order]]


def _numbers(vector: Vector) -> "NDArray[Any]":
    np = _numpy()
    numbers: NDArray[Any] = np.frombuffer(vector, dtype=_NUMBER).astype(np.float64)
    return numbers


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise SettingsError("Vectors need numpy.", hint=INSTALL) from None
    return numpy
