"""Change one memory: judge, revise, pin, forget, restore.

Each verb finds the memory, changes it in one transaction (`Context.change`, `Context.write`) and signals the change.
Rule: a memory is changed as it is inside the transaction, not as it was when it was found.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kept import worth
from kept.errors import InvalidInput
from kept.memory import guards, trust
from kept.memory.context import Context, Ref, as_it_is, by_uid
from kept.memory.session_summary import leave_out
from kept.memory.standing import held_again
from kept.memory.told import without_last_told
from kept.memory.write import check_not_cited
from kept.model import Memory, RejectedAs, Rejection, replace
from kept.ports import Transaction
from kept.tables import PRESETS
from kept.writing import admit, pipeline
from kept.writing import revise as again
from kept.writing.rejections import Rejections, reject

MAX_FEEDBACK = 100


def reinforce(context: Context, ref: Ref) -> Memory:
    """Raise the feedback and count a use."""
    return _revalue(context, ref, context.settings.reinforce_weight, "reinforce")


def demote(context: Context, ref: Ref) -> Memory:
    """Lower the feedback."""
    return _revalue(context, ref, -context.settings.demote_weight, "demote")


def revise(context: Context, ref: Ref, wanted: Mapping[str, Any], *, session: str | None = None) -> Memory:
    """Correct a memory in place: those of its fields that are wanted otherwise."""
    storage, memory = context.find(ref)
    check_not_cited(memory, "revised")
    rules = context.rules()
    if not wanted:
        raise InvalidInput("There is nothing to revise.", hint="Give a new text, kind, tags, files or importance.")

    def work(tx: Transaction) -> tuple[Memory, int]:
        current = as_it_is(tx, memory)
        guards.check_unguarded(context, tx, current)
        revised = again.revise(current, wanted, rules, tx.stamp.at)
        trusted = pipeline.distrusted(
            held_again(context, revised), trust.of_revised(context, revised, session), tx.stamp.at
        )
        if trusted.fingerprint != current.fingerprint:
            leave_out(tx, current)
            trusted = _allowed(context, tx, trusted)
        return again.put_revised(tx, current, trusted)

    done, archived = context.write(storage, work)
    context.tell_write(storage, -archived)
    return done


def pin(context: Context, ref: Ref) -> Memory:
    """Set the status pinned. A finding of a session that is pinned belongs to the project from then on."""
    storage, memory = context.find_live(ref)
    if memory.status == "pinned":
        return memory
    trust.check_vouched(context, memory, "pin")
    preset = PRESETS[context.settings.preset]

    def change(memory: Memory, at: datetime) -> Memory:
        if memory.tier == "session" and worth.is_automatic(memory):
            memory = replace(memory, data=admit.with_signal(memory.data, "explicit-pin"))
        memory = replace(memory.vouched_for(), status="pinned", updated_at=at)
        return admit.promoted(memory, at) if admit.is_worth_promoting(memory, preset) else memory

    return context.change(storage, memory, "pin", change)


def unpin(context: Context, ref: Ref) -> Memory:
    """End a pin; the memory stays confirmed."""
    storage, memory = context.find_live(ref)
    if memory.status != "pinned":
        raise InvalidInput(f"Memory {memory.ref} is not pinned.")
    return context.change(storage, memory, "unpin", lambda m, at: replace(m, status="confirmed", updated_at=at))


def _allowed(context: Context, tx: Transaction, memory: Memory) -> Memory:
    """Return a memory that is given a text, or comes back: a person lifts its rejections, others have to wait for one.

    An agent may take back its own rejections.
    """
    known = Rejections(tx)
    rejected = known.of(memory)
    if context.is_person or all(one.who == context.signature for one in rejected):
        known.lift(tx, rejected)
        return memory.vouched_for() if context.is_person else memory
    return pipeline.as_rejected(memory)


def forget(context: Context, ref: Ref, *, rejects: RejectedAs | None = "forgotten") -> Memory:
    """Archive a memory as forgotten, hidden from every search and export. It does not come back unasked.

    `rejects` None: it was only not worth keeping, so it may be said again.
    """
    storage, memory = context.find(ref)
    if memory.is_forgotten:
        return memory

    def work(tx: Transaction) -> Memory:
        current = as_it_is(tx, memory)
        guards.check_unguarded(context, tx, current)
        put_away(tx, current, rejects)
        return current

    with without_last_told(context.spaces.home()):
        current = context.write(storage, work, urgent=True)
    context.tell_write(storage, current.is_archived - 1)
    return context.find(ref)[1]


def put_away(tx: Transaction, memory: Memory, rejects: RejectedAs | None, action: str = "forget") -> Memory:
    """Archive a memory as forgotten, and take it out of the summaries of sessions."""
    gone = tx.put(memory.archived("forgotten", tx.stamp.at), action)
    leave_out(tx, memory)
    if rejects is not None:
        reject(tx, memory, rejects)
    return gone


def rejected_since(tx: Transaction, rejection: Rejection) -> Memory | None:
    """Return the live memory that a rejection is about, if it has not changed since: it comes from elsewhere."""
    memory = by_uid(tx, rejection.memory)
    if memory is None or memory.is_archived or memory.fingerprint != rejection.fingerprint:
        return None
    return memory if memory.updated_at <= rejection.at else None


def reject_again(tx: Transaction, rejections: Sequence[Rejection]) -> None:
    """Carry rejections over into a store that does not know them, and put away the memories that they are about."""
    known = {one.memory for one in tx.all(Rejection)}
    for one in rejections:
        if one.memory not in known:
            tx.add(replace(one, id=0), "reject")
        if (memory := rejected_since(tx, one)) is not None:
            put_away(tx, memory, None)


def restore(context: Context, ref: Ref) -> Memory:
    """Bring a memory back with the status it had before it was archived; it may contradict what is kept by now."""
    storage, memory = context.find(ref)
    if not memory.is_archived:
        return memory
    with storage.reading() as reader:
        events = reader.events(subject=memory.uid, newest_first=True)
    steps = [(event.changed or {}).get("status", (None, None)) for event in events]
    status = next((before for before, after in steps if before and after == "archived"), "candidate")

    def work(tx: Transaction) -> tuple[Memory, int]:
        gone, live = as_it_is(tx, memory), {"status": status, "reason": None, "archived_at": None}
        back = _allowed(context, tx, replace(gone, **live, superseded_by=None, updated_at=tx.stamp.at))
        return again.put_again(tx, back, "restore")

    restored, archived = context.write(storage, work)
    context.tell_write(storage, 1 - archived)
    return restored


def _revalue(context: Context, ref: Ref, points: int, action: str) -> Memory:
    storage, memory = context.find_live(ref)
    if points < 0:
        with storage.reading() as reader:
            guards.check_unguarded(context, reader, memory)

    def change(memory: Memory, at: datetime) -> Memory:
        feedback = max(-MAX_FEEDBACK, min(MAX_FEEDBACK, memory.feedback + points))
        if points < 0:
            return replace(memory, feedback=feedback, updated_at=at)
        return replace(
            held_again(context, memory),
            feedback=feedback,
            use_count=memory.use_count + 1,
            last_hit_at=at,
            last_used_at=at,
            verified_at=at,
            updated_at=at,
        )

    return context.change(storage, memory, action, change)
