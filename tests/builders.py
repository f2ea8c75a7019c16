"""Small makers of test data: a clock that moves when told, stamps, memories."""

from datetime import UTC, datetime, timedelta
from typing import Any

from kept import text
from kept.ids import uuid7
from kept.memory import Kept
from kept.memory.context import Context
from kept.model import TRUST_BY_ORIGIN, Memory, Source
from kept.ports import Stamp

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class FakeClock:
    """Time stands still until somebody advances it."""

    def __init__(self, at: datetime = START) -> None:
        self.at = at

    def __call__(self) -> datetime:
        return self.at

    def advance(self, **delta: float) -> datetime:
        self.at += timedelta(**delta)
        return self.at


_serial = 0


def serial() -> int:
    global _serial
    _serial += 1
    return _serial


def stamp(group: str | None = None, *, at: datetime = START, actor: str = "agent", undoes: str | None = None) -> Stamp:
    return Stamp(group=group or f"group-{serial()}", at=at, actor=actor, undoes=undoes)


def memory(content: str, **fields: Any) -> Memory:
    """A memory that no storage has seen yet."""
    at = fields.pop("at", START)
    defaults: dict[str, Any] = {
        "uid": uuid7(at, serial().to_bytes(10, "big")),
        "space": "project/p1",
        "trust": TRUST_BY_ORIGIN[fields.get("source", Source()).origin],
        "fingerprint": text.fingerprint(content),
        "created_at": at,
        "updated_at": at,
    }
    return Memory(content=content, **(defaults | fields))


def context_of(memory: Kept) -> Context:
    """The inner context of an opened memory, for tests that look behind its face or change what it works with."""
    return memory._context
