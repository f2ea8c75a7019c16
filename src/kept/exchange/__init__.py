"""Memories and conversations in the formats of files: what other programs read, and what they wrote."""

from typing import Any

import msgspec

from kept.model import Memory

FORMAT = "kept/1"


def to_document(memory: Memory) -> dict[str, Any]:
    """A memory with all its fields, its ref and the name of the format: one line of an export."""
    return {"format": FORMAT, "ref": memory.ref, **msgspec.to_builtins(memory)}
