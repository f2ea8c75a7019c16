"""Memories as JSON lines, each with all its fields. Rule: lossless, but forgotten memories are left out."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from kept.model import Memory

FORMAT = "kept/1"


def to_lines(memories: Iterable[Memory]) -> Iterator[bytes]:
    """One line for each memory, with its ref and the name of the format."""
    for memory in memories:
        if not memory.is_forgotten:
            yield msgspec.json.encode(to_document(memory))


def to_document(memory: Memory) -> dict[str, Any]:
    """A memory with all its fields."""
    return {"format": FORMAT, "ref": memory.ref, **msgspec.to_builtins(memory)}
