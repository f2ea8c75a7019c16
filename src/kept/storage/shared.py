"""What every storage needs and none should write again: filters in Python, tombstones, guards."""

import hashlib
import zlib

from kept import worth
from kept.errors import InvalidInput
from kept.model import Memory
from kept.ports import Ranking, Shelf, Where
from kept.tables import by_kind

WRITE_WAIT_S = 30.0  # the promise: no write is refused within this time because somebody else writes

ERASED = "[erased]"  # what stands in the place of an erased message
RECEIPTS_KEPT = 500  # of recalls; enough to ask "why?" about the last days
MOST = 2**31  # of anything that is asked for at once


def shelf_of(memory: Memory) -> Shelf:
    """Where a memory stands: live, archive or forgotten."""
    if memory.status != "archived":
        return "live"
    return "forgotten" if memory.reason == "forgotten" else "archive"


def matches(memory: Memory, where: Where) -> bool:
    """Whether the memory is one of those that `where` means."""
    return (
        where.shelf in ("any", shelf_of(memory))
        and where.scope in (None, memory.scope)
        and (not where.tiers or memory.tier in where.tiers)
        and (not where.kinds or memory.kind in where.kinds)
        and (not where.statuses or memory.status in where.statuses)
        and (not where.tags or not set(where.tags).isdisjoint(memory.tags))
        and (not where.files or not set(where.files).isdisjoint(memory.files))
        and where.uid in (None, memory.uid)
        and (not where.fingerprints or memory.fingerprint in where.fingerprints)
        and where.topic in (None, memory.topic)
        and where.key in (None, memory.key)
        and where.session in (None, memory.source.session)
        and where.task in (None, memory.source.task)
        and where.narrative in (None, memory.source.narrative)
        and (where.since is None or memory.created_at >= where.since)
        and (where.until is None or memory.created_at < where.until)
    )


def indexes(where: Where) -> tuple[str, ...]:
    """Which indexes hold what `where` means. What was forgotten is in none."""
    live = {"memory": ("live",), "items": ("library",), "sources": ("library",), None: ("live", "library")}[where.scope]
    return {"live": live, "archive": ("archive",), "any": (*live, "archive"), "forgotten": ()}[where.shelf]


def index_of(memory: Memory) -> str | None:
    """The index a memory is in, or None once it was forgotten."""
    shelf = shelf_of(memory)
    if shelf == "live":
        return "live" if memory.scope == "memory" else "library"
    return "archive" if shelf == "archive" else None


def weight(memory: Memory, ranking: Ranking) -> float:
    """What the memory brings along to every query, by the factors of the ranking."""
    product = 1.0
    for name in ranking.factors:
        if name == "kind":
            product *= by_kind(ranking.kind_weights, memory.kind)
        elif ranking.now is not None:
            product *= worth.FACTORS[name](memory, ranking.now)
    return product


def tombstone(key: bytes, fingerprint: str) -> str:
    """What is left of an erased memory: a keyed hash, which says "this one" to nobody who lacks the key.

    It ends with a checksum of itself: a mark that changed on the disk would say nothing, and nobody would know.
    """
    mark = hashlib.blake2b(fingerprint.encode(), key=key, digest_size=16).hexdigest()
    return f"{mark}{zlib.crc32(mark.encode()):08x}"


def is_tombstone(mark: str) -> bool:
    """Whether the mark is still as `tombstone` made it."""
    return len(mark) == 40 and mark[32:] == f"{zlib.crc32(mark[:32].encode()):08x}"


def check_limit(limit: int) -> None:
    """Raise InvalidInput for a limit that no answer can have."""
    if type(limit) is not int or not 0 <= limit < MOST:
        raise InvalidInput(f"A limit of {limit!r} makes no sense.", hint="Give a whole number, 0 or more.")
