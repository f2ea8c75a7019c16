"""Ids, uids and refs: how a memory is named.

A memory has an id (an integer per space, never reused, because agents read and type it), a uid (a UUIDv7 that survives
export, import and merge) and a ref (`42`, or `g42` in the global space). Every argument that takes a ref also takes an
int, `[id:42]`, a uid, and the id of an item in items.json (`item_4f0a…`). The name of a group of events in the global
journal says from which project it was made, and how far the journal of that project had come.
"""

import re
from _blake2 import blake2b  # as hashlib does, which also loads OpenSSL: 4 ms
from datetime import datetime

from msgspec import Struct

from kept.errors import InvalidInput
from kept.text import pattern

UID_ENTROPY_BYTES = 10
_MARK_DIGITS = 8
_SEQ_DIGITS = 12
MAX_ID = 2**63 - 1  # what SQLite and PostgreSQL can hold

_REF = pattern(r"(?:\[id:\s*(g?)(\d{1,19})\]|(g?)(\d{1,19}))", re.ASCII | re.IGNORECASE)
_UID = pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)
_ITEM = pattern(r"item_[\w.-]{1,200}", re.ASCII)
_CONFLICT = pattern(r"c(\d{1,19})", re.ASCII | re.IGNORECASE)


class Ref(Struct, frozen=True):
    """A parsed ref: a uid, the name of an item, or an id and whether it is meant in the global space."""

    uid: str | None = None
    id: int = 0
    is_global: bool = False
    item: str | None = None

    def __str__(self) -> str:
        return self.uid or self.item or (f"g{self.id}" if self.is_global else str(self.id))


def parse_ref(ref: int | str) -> Ref:
    """Read 42, "42", "g42", "[id:42]", a uid or "item_4f0a…". Raises InvalidInput for anything else."""
    if isinstance(ref, int) and not isinstance(ref, bool):
        if 0 < ref <= MAX_ID:
            return Ref(id=ref)
    elif isinstance(ref, str) and (parsed := _parsed(ref.strip())):
        return parsed
    hint = "A ref looks like 42, g42 (global) or [id:42]. `kept list` shows refs."
    if isinstance(ref, str) and "#" in ref:
        hint = "It names a message: `kept show` shows it, and `kept erase` removes it."
    raise InvalidInput(f"{_short(ref)} is not a memory ref.", hint=hint)


def _parsed(text: str) -> Ref | None:
    if _UID.fullmatch(text.lower()):
        return Ref(uid=text.lower())
    if _ITEM.fullmatch(text):
        return Ref(item=text)
    if (match := _REF.fullmatch(text)) and 0 < (number := int(match[2] or match[4])) <= MAX_ID:
        return Ref(id=number, is_global=bool(match[1] or match[3]))
    return None


def is_ref(text: str) -> bool:
    """Whether `parse_ref` can read it."""
    try:
        parse_ref(text)
    except InvalidInput:
        return False
    return True


def parse_conflict_ref(ref: int | str) -> int:
    """Read 7, "7" or "c7". Raises InvalidInput for anything else."""
    text = str(ref).strip()
    match = _CONFLICT.fullmatch(text if text[:1] in "cC" else f"c{text}")
    if not match or not 0 < int(match[1]) <= MAX_ID:
        raise InvalidInput(
            f"{_short(ref)} is not a conflict ref.", hint="It looks like c7. `kept review conflicts` shows them."
        )
    return int(match[1])


def parse_event_ref(event: int | str) -> Ref:
    """Read 12, "12" or "g12": the number of an event in the project's journal, or in the global one."""
    try:
        wanted = parse_ref(event)
    except InvalidInput:
        wanted = Ref()
    if not wanted.id:
        raise InvalidInput(
            f"{_short(event)} is not an event.", hint="It looks like 12, or g12 (global). `kept history` shows them."
        )
    return wanted


def uuid7(at: datetime, entropy: bytes) -> str:
    """A UUIDv7 for that moment: sorts by time, unique by `entropy` (ten random bytes)."""
    milliseconds = int(at.timestamp() * 1000) & (2**48 - 1)
    number = int.from_bytes(entropy[:UID_ENTROPY_BYTES], "big")
    value = milliseconds << 80 | 0x7 << 76 | (number >> 62 & 0xFFF) << 64 | 0b10 << 62 | number & (2**62 - 1)
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def shared_group(group: str, project: str, seq: int) -> str:
    """Name a group that changes global memory: from which project, and how far the journal there had come."""
    return f"{group}{_mark(project)}{seq:0{_SEQ_DIGITS}x}"


def position_of(group: str, project: str) -> int | None:
    """Return how far the project's journal had come when this group changed global memory; None: made elsewhere."""
    mark, seq = group[-_SEQ_DIGITS - _MARK_DIGITS : -_SEQ_DIGITS], group[-_SEQ_DIGITS:]
    return int(seq, 16) if len(group) > _SEQ_DIGITS + _MARK_DIGITS and mark == _mark(project) else None


def _mark(space: str) -> str:
    return blake2b(space.encode(), digest_size=_MARK_DIGITS // 2).hexdigest()
