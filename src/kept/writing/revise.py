"""Revise and restore memories: what is said again may contradict what was kept in the meantime.

Beside the write path, for memories that exist already. Rule: only the other side of a contradiction is archived; a
person who brings a memory back finds it there.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from kept import text
from kept.errors import InvalidInput
from kept.model import TRUST_BY_ORIGIN, Conflict, Draft, Memory, least, several
from kept.ports import ANYWHERE, Transaction
from kept.writing.admit import too_long
from kept.writing.check import check
from kept.writing.conflicts import Rival, find_rivals, may_supersede
from kept.writing.duplicates import Known, supersede
from kept.writing.pipeline import WriteRules
from kept.writing.redact import redact_draft


def revise(memory: Memory, wanted: Mapping[str, Any], rules: WriteRules, at: datetime) -> Memory:
    """The memory with other fields (content, kind, tags, files, importance); it counts as verified now.

    A new text has the trust of its writer: a person's may be more than it was, an agent's never. An agent that changes
    only tags or other fields leaves the trust as it is.
    Raises InvalidInput for a text that is too long or cannot be stored.
    """
    fields = {name: getattr(memory, name) for name in ("content", "kind", "tags", "files", "importance")}
    fields |= dict(wanted)
    fields |= {"tags": several(fields["tags"]), "files": several(fields["files"])}
    draft = check(Draft(tier=memory.tier, **fields))
    draft = redact_draft(draft, email=rules.redact_email, allow=rules.allow).draft
    if sentence := too_long(draft):
        raise InvalidInput(sentence)
    changed = {name: getattr(draft, name) for name in fields}
    revised = replace(memory, **changed, fingerprint=text.fingerprint(draft.content))
    by = TRUST_BY_ORIGIN[rules.source.origin]
    trust = by if by == "user" else memory.trust if draft.content == memory.content else least(memory.trust, by)
    status = "confirmed" if by == "user" and memory.status == "candidate" else memory.status  # they vouch for it
    return replace(revised, trust=trust, status=status, updated_at=at, last_hit_at=at, verified_at=at)


def put_revised(tx: Transaction, before: Memory, revised: Memory) -> tuple[Memory, int]:
    """As `put_again`, and settle the contradictions that it has no longer."""
    if before.content == revised.content:
        return tx.put(revised, "revise"), 0
    were = [(conflict, other) for conflict, other in _open_conflicts(tx, before) if find_rivals(tx, before, [other])]
    stored, archived = (tx.put(revised, "revise"), 0) if revised.is_archived else put_again(tx, revised, "revise")
    for conflict, other in were:
        if not find_rivals(tx, stored, [other]):
            tx.put(replace(conflict, resolved_at=tx.stamp.at), "resolve")
    return stored, archived


def _open_conflicts(tx: Transaction, memory: Memory) -> Iterator[tuple[Conflict, Memory]]:
    """Yield the open conflicts of a memory, with the other side of each."""
    for conflict in tx.all(Conflict):
        sides = {conflict.left, conflict.right}
        if conflict.resolved_at is None and memory.uid in sides:
            for uid in sides - {memory.uid}:
                yield from ((conflict, other) for other in tx.select(replace(ANYWHERE, uid=uid), limit=1))


def put_again(tx: Transaction, memory: Memory, action: str) -> tuple[Memory, int]:
    """Store a memory that was revised or restored, and note the live ones that it contradicts, as a write does.

    Returns it, and how many others it says are over: they are archived.
    """
    alike = [other for other in Known(tx, [memory]).alike(memory) if other.uid != memory.uid]
    stored = tx.put(memory, action)
    rivals = find_rivals(tx, stored, alike)
    noted = {frozenset((one.left, one.right)): one for one in (tx.all(Conflict) if rivals else ())}
    archived = 0
    for rival in rivals:
        known = noted.get(frozenset((stored.uid, rival.memory.uid)))
        if known is None or known.resolved_at is not None:
            archived += _note_conflict(tx, stored, rival, known)
    return stored, archived


def _note_conflict(tx: Transaction, stored: Memory, rival: Rival, known: Conflict | None) -> bool:
    """Note a contradiction, in the place of the settled one if there is one. Return True if the other is archived."""
    other, at = rival.memory, tx.stamp.at
    is_newer = stored.created_at > other.created_at
    is_over = rival.type == "superseded" and is_newer and may_supersede(tx, stored, other)
    if is_over:
        supersede(tx, other, stored, at)
    newer, older = (stored, other) if is_newer else (other, stored)
    found = rival.conflict(newer, older, at, is_over=is_over)
    if known is None:
        tx.add(found, "conflict")
    else:
        tx.put(replace(found, id=known.id), "conflict")
    return is_over
