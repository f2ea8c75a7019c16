"""The write path: check → redact → admit → duplicates → store, each write with a receipt.

Every writer goes this one way. The storage appends the journal's event in the same stroke as the row.
Rule: a draft becomes a memory, strengthens one, or is refused with a reason that a person can read.
"""

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from kept import text
from kept.model import Draft, Memory, Receipt, Source
from kept.ports import Transaction, Where
from kept.settings import IMPORTANCE_BY_KIND, by_kind
from kept.writing.check import check
from kept.writing.duplicates import find_twin, strengthen

MAX_CHARS = 500
MAX_SUMMARY_CHARS = 4_000
MAX_TRANSIENT_BYTES = 64 * 1024


class Circumstances(Struct, frozen=True, kw_only=True):
    """What a write needs to know of the world: where, when, who, and where names come from."""

    space: str
    at: datetime
    source: Source
    new_uid: Callable[[], str]


def write(tx: Transaction, draft: Draft, circumstances: Circumstances) -> Receipt:
    """Take one draft all the way. Raises InvalidInput for what cannot be stored at all."""
    draft = check(draft)
    if sentence := too_long(draft):
        return Receipt(outcome="refused", reason="too_long", message=sentence)
    if draft.key is not None and (known := tx.select(Where(key=draft.key, shelf="any", scope=None), limit=1)):
        return _receipt("stored", known[0], reason="already_stored")
    memory = to_memory(draft, circumstances)
    if twin := find_twin(tx, memory):
        return _receipt("strengthened", strengthen(tx, twin, memory, circumstances.at))
    return _receipt("stored", tx.add(memory, "remember"))


def to_memory(draft: Draft, circumstances: Circumstances) -> Memory:
    """The memory that a checked draft would become."""
    importance = draft.importance if draft.importance is not None else by_kind(IMPORTANCE_BY_KIND, draft.kind)
    return Memory(
        uid=circumstances.new_uid(),
        space=circumstances.space,
        content=draft.content,
        fingerprint=text.fingerprint(draft.content),
        kind=draft.kind,
        tier=draft.tier,
        scope=draft.scope,
        status="pinned" if draft.pin else "confirmed",
        importance=importance,
        confidence=draft.confidence,
        tags=draft.tags,
        files=draft.files,
        topic=draft.topic,
        key=draft.key,
        item_type=draft.item_type,
        title=draft.title,
        source=draft.source or circumstances.source,
        data=draft.data,
        created_at=circumstances.at,
        updated_at=circumstances.at,
    )


def too_long(draft: Draft) -> str | None:
    """Why the text is too long for its tier, with advice, or None."""
    if draft.tier in ("session", "task"):
        size, limit, unit = len(draft.content.encode()), MAX_TRANSIENT_BYTES, "bytes"
    else:
        size, limit, unit = (
            len(draft.content),
            MAX_SUMMARY_CHARS if draft.kind == "summary" else MAX_CHARS,
            "characters",
        )
    if size <= limit:
        return None
    return (
        f"{size:,} {unit} are too long for a {draft.kind} of tier {draft.tier}; the limit is {limit:,}. "
        "Say one thing in a sentence or two, or split it."
    )


def _receipt(outcome: str, memory: Memory, reason: str | None = None) -> Receipt:
    return Receipt(outcome=outcome, ref=memory.ref, memory=memory, reason=reason)  # type: ignore[arg-type]
