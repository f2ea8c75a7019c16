"""Vectors: the meaning of a text as a direction, packed into bytes, and how near two of them are.

Noun layer, pure. A vector has length 1 and two bytes per number, so the cosine of two is a sum of products. Its sketch
is the sign of each number, one bit each; comparing sketches is sixteen times faster and nearly as good. numpy is
imported only when it is needed. Rule: every storage and every score computes with these functions, so all get the same
numbers.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kept.errors import InvalidInput, not_installed

if TYPE_CHECKING:
    from numpy.typing import NDArray

Vector = bytes

_NUMBER = "<f2"
_NO_ROWS = "An embedder must return one row of finite numbers for each text, all of the same length."
_DECIMALS = 6  # of a cosine: as exact as two bytes per number are, and the same on every machine


def pack(rows: Any) -> list[Vector]:
    """Vectors from the rows of numbers that an embedder returns. A row of zeros has no direction and stays so."""
    np = numpy_or_error()
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
    """How much each of the others points the same way: 1 for the same direction, 0 for nothing in common."""
    if not others:
        return []
    own, rest = _numbers(vector), _numbers(b"".join(others)).reshape(len(others), -1)
    # Row by row and not as a product of matrices, whose last digits depend on how many rows there are.
    return [round(float(value), _DECIMALS) for value in (rest * own).sum(axis=1)]


def numbers(vector: Vector) -> list[float]:
    """The numbers of a vector."""
    found: list[float] = _numbers(vector).tolist()
    return found


def signs(vector: Vector) -> bytes:
    """The sketch of a vector: one bit for each number, set where it is above 0."""
    packed: bytes = numpy_or_error().packbits(_numbers(vector) > 0).tobytes()
    return packed


def nearest(sketch: bytes, sketches: bytes, limit: int) -> list[int]:
    """The places of the nearest sketches in a row of them; of equals the first one, and never an empty one."""
    np = numpy_or_error()
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
    np = numpy_or_error()
    numbers: NDArray[Any] = np.frombuffer(vector, dtype=_NUMBER).astype(np.float64)
    return numbers


def numpy_or_error() -> Any:
    """Return the package numpy. Raises SettingsError if it is not installed."""
    try:
        import numpy  # an optional package (extras `vector` and `onnx`), which takes 60 ms to import
    except ImportError:
        raise not_installed("Vectors need numpy.", "vector") from None
    return numpy
