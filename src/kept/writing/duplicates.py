"""The same statement again: strengthen what is there instead of storing it twice.

Rule: only what is the same but for case and spacing is the same. Anything less alike is never
merged silently.
"""

from datetime import datetime

from msgspec.structs import replace

from kept.model import Memory
from kept.ports import Reader, Transaction, Where

STRENGTHEN_BY = 0.1


def find_twin(reader: Reader, draft: Memory) -> Memory | None:
    """The live memory that says the same, if there is one."""
    twins = reader.select(Where(fingerprint=draft.fingerprint, scope=draft.scope), limit=1, oldest_first=True)
    return twins[0] if twins else None


def strengthen(tx: Transaction, twin: Memory, again: Memory, at: datetime) -> Memory:
    """Raise importance by 0.1 (at most 1.0) and count one more use.

    Said on purpose, it confirms a candidate; said with a pin, it pins; new tags and files are added.
    """
    status = twin.status
    if status == "candidate" and again.status != "candidate":
        status = again.status
    elif again.status == "pinned":
        status = "pinned"
    return tx.put(
        replace(
            twin,
            importance=min(1.0, round(twin.importance + STRENGTHEN_BY, 9)),
            use_count=twin.use_count + 1,
            status=status,
            tags=tuple(dict.fromkeys((*twin.tags, *again.tags))),
            files=tuple(dict.fromkeys((*twin.files, *again.files))),
            last_used_at=at,
            updated_at=at,
        ),
        "strengthen",
    )
