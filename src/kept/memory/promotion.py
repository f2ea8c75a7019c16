"""Promotion: the only way of a memory from one tier into another.

Rule: a memory is promoted only on request, and into global memory only by a person.
"""

from typing import get_args

from kept import access, text
from kept.errors import InvalidInput
from kept.memory import guards, write
from kept.memory.context import BATCH, Context, Ref, as_it_is
from kept.memory.write import grown_by
from kept.model import GLOBAL, PROPOSAL, PROPOSED, Draft, Memory, Receipt, Source, Status, Tier, replace
from kept.ports import Storage, Transaction, Where
from kept.writing import pipeline

FROM_UID = "promoted_from"  # in the data of a promoted memory: the uid that it had before
LOWEST_FIRST: tuple[Tier, ...] = get_args(Tier)
PROMOTED_TO: tuple[Tier, ...] = ("project", "global")


def promote(context: Context, ref: Ref, to: Tier) -> Receipt:
    """Move a memory to a tier that lives longer; the old ref then names the new one."""
    storage, memory = context.find_live(ref)
    _check_promotion(memory, to)
    with storage.reading() as reader:
        guards.check_unguarded(context, reader, memory)
    deliberate = Source(origin="user" if context.origin == "user" else "agent", agent=context.author)
    vouched = memory.vouched_for() if context.is_person else memory
    ready = pipeline.prepare(_as_draft(vouched, to), replace(context.rules(), source=deliberate))
    if isinstance(ready, Receipt):
        return ready
    ready = replace(ready, status=_status_once_promoted(context, memory, to))
    return _copy_to_global(context, storage, memory, ready) if to == GLOBAL else _move(context, storage, memory, ready)


def _move(context: Context, storage: Storage, memory: Memory, ready: pipeline.Ready) -> Receipt:
    """Within a space: one transaction."""
    stamp = context.stamp()
    place = write.place(storage, stamp.at)
    uid = place.new_uid()

    def work(tx: Transaction) -> Receipt:
        left = _leave(tx, memory, uid)  # before the other comes, or it would be its own twin
        receipt = _arrive(tx, memory, ready, replace(place, new_uid=lambda: uid))
        if _uid(receipt) != uid:
            tx.put(replace(left, superseded_by=_uid(receipt)), "promote")
        return receipt

    receipt = context.write(storage, work, stamp=stamp)
    context.tell_write(storage, grown_by(receipt) - 1)
    return receipt


def _copy_to_global(context: Context, storage: Storage, memory: Memory, ready: pipeline.Ready) -> Receipt:
    """Between spaces: the target first. A promotion that is cut short in between is made whole by the next."""
    access.check_own(context.actor_here(), storage.space)
    target, stamp = context.ensure_shared(), context.stamp(shared=True)
    place = write.place(target, stamp.at)
    receipt = context.write(
        target, lambda tx: _arrived_before(tx, memory, ready) or _arrive(tx, memory, ready, place), stamp=stamp
    )
    context.write(storage, lambda tx: _leave(tx, memory, _uid(receipt)), stamp=stamp)
    context.tell_write(target, grown_by(receipt))
    context.tell_write(storage, -1)
    return receipt


def _status_once_promoted(context: Context, memory: Memory, to: Tier) -> Status:
    is_vouched_for = memory.status != "candidate" or context.origin == "user" or to == GLOBAL
    return "candidate" if not is_vouched_for else "pinned" if memory.status == "pinned" else "confirmed"


def _check_promotion(memory: Memory, to: Tier) -> None:
    if to not in PROMOTED_TO:
        raise InvalidInput(f"A memory cannot be promoted to {to!r}.", hint=f"Choose {' or '.join(PROMOTED_TO)}.")
    if LOWEST_FIRST.index(to) <= LOWEST_FIRST.index(memory.tier):
        raise InvalidInput(
            f"Memory {memory.ref} is already in tier {memory.tier}.",
            hint="A memory is promoted from task or session to project, and from there to global.",
        )
    write.check_not_cited(memory, "promoted")
    if memory.scope != "memory":
        raise InvalidInput(
            f"Memory {memory.ref} belongs to the file it was extracted from.", hint="Use `kept remember` to keep it."
        )


def _as_draft(memory: Memory, to: Tier) -> Draft:
    """Draft the memory as its promoter puts it forward, without the tags of the task that a note leaves."""
    of_task = ("task", (memory.data or {}).get("stage")) if memory.tier == "task" else ()
    left_behind = (*of_task, PROPOSED, PROPOSAL)
    return memory.as_draft(
        tags=tuple(tag for tag in memory.tags if tag not in left_behind),
        tier=to,
        data={**(memory.data or {}), FROM_UID: memory.uid},
        # It is said again, by the promoter: none of these comes along.
        **{"pin": False, "key": None, "source": None, "scope": "memory", "item_type": None},
    )


def _arrived_before(tx: Transaction, memory: Memory, ready: pipeline.Ready) -> Receipt | None:
    """The receipt for a promotion that was cut short after its first half; None: there was none."""
    for known in tx.select(Where(fingerprints=(text.fingerprint(ready.draft.content),)), limit=BATCH):
        if (known.data or {}).get(FROM_UID) == memory.uid:
            return Receipt(outcome="stored", ref=known.ref, memory=known, reason="already_stored")
    return None


def _arrive(tx: Transaction, memory: Memory, ready: pipeline.Ready, place: pipeline.Destination) -> Receipt:
    """Store the memory where it is promoted to, by the write path; a new one with its past."""
    [receipt] = pipeline.store(tx, [ready], place)
    if receipt.memory is None or receipt.outcome == "strengthened":
        return receipt
    return replace(receipt, memory=tx.put(_with_its_past(receipt.memory, memory), "promote"))


def _with_its_past(promoted: Memory, memory: Memory) -> Memory:
    """Return the promoted memory with the source, feedback and uses of its origin: trust does not grow by moving."""
    return replace(
        promoted,
        source=memory.source,
        feedback=memory.feedback,
        use_count=memory.use_count,
        last_hit_at=memory.last_hit_at,
        last_used_at=memory.last_used_at,
        verified_at=memory.verified_at,
    )


def _leave(tx: Transaction, memory: Memory, heir: str | None) -> Memory:
    """Archive the promoted memory; its ref answers with its heir from now on."""
    current = as_it_is(tx, memory)
    if current.is_archived or current.fingerprint != memory.fingerprint:
        raise InvalidInput(
            f"Memory {memory.ref} has been changed in the meantime.", hint="Check it, then promote it again."
        )
    return tx.put(current.archived("superseded", tx.stamp.at, superseded_by=heir), "promote")


def _uid(receipt: Receipt) -> str | None:
    return None if receipt.memory is None else receipt.memory.uid
