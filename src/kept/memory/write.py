"""Remember, change, forget and erase memories.

New statements go down the write path (`writing.pipeline`) in batches, each with a receipt; the other verbs change one
memory through `Context.change`. Rule: one call is one group of the journal, however many batches and spaces it takes.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from typing import Any

from kept import ids, worth
from kept.errors import InvalidInput
from kept.memory import counts, trust
from kept.memory.context import BATCH, Context, Receipts, Ref, as_it_is
from kept.model import GLOBAL, Draft, Memory, Receipt, Source, replace, several
from kept.ports import Shelf, Stamp, Storage, Transaction
from kept.projects.files import read_regular
from kept.tables import PRESETS
from kept.writing import admit, pipeline
from kept.writing.admit import DELIBERATE, SOURCES, Echoes, echoes_of

MAX_SOURCE_BYTES = 256 * 1024  # of a README: beyond that nobody reads it either
MAX_FEEDBACK = 100
SHELVES: tuple[Shelf, ...] = ("live", "archive")  # all but the forgotten


def remember(context: Context, draft: Draft) -> Receipt:
    """Keep one statement; tags and files may still be as the caller gave them."""
    return remember_many(context, [replace(draft, tags=several(draft.tags), files=several(draft.files))])[0]


def remember_many(context: Context, drafts: Iterable[Draft | str], *, stamp: Stamp | None = None) -> list[Receipt]:
    """Keep many statements the same way, in batches; one receipt each, in order. A string is a fact.

    `stamp`: several calls with one stamp are one group of the journal.
    """
    given = _as_drafts(drafts)
    storage = context.spaces.project()
    with nullcontext() if storage is None else storage.reading() as reader:
        rules = context.rules(reader)
        heard = [*trust.as_heard(context, given, reader)]
    if any(isinstance(draft.source, Source) and draft.source.origin not in DELIBERATE for draft in heard):
        rules = replace(rules, echoes=echoes(context))
    prepared = [pipeline.prepare(draft, rules) for draft in heard]
    receipts = _store(context, prepared, stamp)
    counts.count_reasons(context, receipts)
    return receipts


def echoes(context: Context) -> Echoes:
    """The statements of the files that the project keeps for agents and readers; they need not be kept again."""
    folder = context.spaces.folder()
    if folder is None:
        return Echoes()
    return echoes_of(read_regular(folder / name, MAX_SOURCE_BYTES).decode("utf-8", "replace") for name in SOURCES)


def _store(context: Context, prepared: Sequence[pipeline.Ready | Receipt], stamp: Stamp | None) -> Receipts:
    """Store the drafts as one group of the journal; refusals pass through in their places.

    Global drafts come first, in one transaction: a person agrees to all of them, or nothing is stored at all.
    """
    receipts = {place: one for place, one in enumerate(prepared) if isinstance(one, Receipt)}
    ready = [(place, one) for place, one in enumerate(prepared) if isinstance(one, pipeline.Ready)]
    shared = [(place, one) for place, one in ready if one.draft.tier == GLOBAL]
    own = [(place, one) for place, one in ready if one.draft.tier != GLOBAL]
    project = context.owned() if own else None
    stamp = stamp or context.stamp(shared=bool(shared))
    batches = [(context.ensure_shared(), shared)] if shared else []
    batches += [(project, own[start : start + BATCH]) for start in range(0, len(own), BATCH)] if project else []
    for storage, batch in batches:
        done = _store_batch(context, storage, [one for _, one in batch], stamp)
        receipts |= {place: receipt for (place, _), receipt in zip(batch, done, strict=True)}
    return [receipts[place] for place in range(len(prepared))]


def _store_batch(context: Context, storage: Storage, batch: Sequence[pipeline.Ready], stamp: Stamp) -> Receipts:
    receipts = context.write(storage, lambda tx: pipeline.store(tx, batch, place(storage, stamp.at)), stamp=stamp)
    context.tell_write(storage, sum(map(grown_by, receipts)))
    return receipts


def place(storage: Storage, at: datetime) -> pipeline.Destination:
    """Where and when a draft is stored, and how it gets its uid."""
    return pipeline.Destination(
        space=storage.space,
        at=at,
        new_uid=lambda: ids.uuid7(at, os.urandom(ids.UID_ENTROPY_BYTES)),
    )


def _as_drafts(drafts: Iterable[Draft | str]) -> list[Draft]:
    """The drafts; a string is a fact. Raises InvalidInput for anything else."""
    if isinstance(drafts, str | Draft | Mapping) or not isinstance(drafts, Iterable):
        raise InvalidInput("Expected a list of drafts, got one.", hint="Give a list, or call remember().")
    made = [Draft(content=draft) if isinstance(draft, str) else draft for draft in drafts]
    for number, draft in enumerate(made, 1):
        if not isinstance(draft, Draft):
            raise InvalidInput(
                f"Draft {number} must be a kept.Draft or a string, not {type(draft).__name__}.",
                hint='Give strings, or kept.Draft(content="…", kind="decision").',
            )
    return made


def grown_by(receipt: Receipt) -> int:
    """By how many live memories a write made a space grow."""
    is_new = receipt.outcome in ("stored", "candidate") and receipt.reason != "already_stored"
    return is_new - len(receipt.superseded)


def reinforce(context: Context, ref: Ref) -> Memory:
    """Raise the feedback and count a use."""
    return _revalue(context, ref, context.settings.reinforce_weight, "reinforce")


def demote(context: Context, ref: Ref) -> Memory:
    """Lower the feedback."""
    return _revalue(context, ref, -context.settings.demote_weight, "demote")


def revise(context: Context, ref: Ref, wanted: Mapping[str, Any], *, session: str | None = None) -> Memory:
    """Correct a memory in place: those of its fields that are wanted otherwise."""
    from kept.writing import revise as again

    storage, memory = context.find(ref)
    check_not_cited(memory, "revised")
    rules = context.rules()
    if not wanted:
        raise InvalidInput("There is nothing to revise.", hint="Give a new text, kind, tags, files or importance.")

    def work(tx: Transaction) -> tuple[Memory, int]:
        current = as_it_is(tx, memory)
        revised = again.revise(current, wanted, rules, tx.stamp.at)
        trusted = pipeline.distrusted(revised, trust.of_revised(context, revised, session), tx.stamp.at)
        return again.put_revised(tx, current, trusted)

    done, archived = context.write(storage, work)
    context.tell_write(storage, -archived)
    return done


def check_not_cited(memory: Memory, done: str) -> None:
    """Raise InvalidInput for an item of a file: it cites a line, so only extraction writes it."""
    if memory.is_cited:
        place = f"{memory.source.file}:{memory.source.line}" if memory.source.line else f"{memory.source.file}"
        raise InvalidInput(
            f"Memory {memory.ref} cannot be {done}: it was extracted from {place} and says what stands there.",
            hint="Edit the file and run `kept extract`. `kept remember` keeps words of your own.",
        )


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


def forget(context: Context, ref: Ref) -> Memory:
    """Archive a memory as forgotten, hidden from every search and export."""
    storage, memory = context.find(ref)
    if memory.is_forgotten:
        return memory

    def work(tx: Transaction) -> Memory:
        from kept.memory.findings import leave_out

        current = as_it_is(tx, memory)
        tx.put(current.archived("forgotten", tx.stamp.at), "forget")
        leave_out(tx, current)
        return current

    current = context.write(storage, work, urgent=True)
    context.tell_write(storage, current.is_archived - 1)
    return context.find(ref)[1]


def restore(context: Context, ref: Ref) -> Memory:
    """Bring a memory back with the status it had before it was archived; it may contradict what is kept by now."""
    from kept.writing.revise import put_again

    storage, memory = context.find(ref)
    if not memory.is_archived:
        return memory
    with storage.reading() as reader:
        events = reader.events(subject=memory.uid, newest_first=True)
    steps = [(event.changed or {}).get("status", (None, None)) for event in events]
    status = next((before for before, after in steps if before and after == "archived"), "candidate")

    def work(tx: Transaction) -> tuple[Memory, int]:
        gone, live = as_it_is(tx, memory), {"status": status, "reason": None, "archived_at": None}
        return put_again(tx, replace(gone, **live, superseded_by=None, updated_at=tx.stamp.at), "restore")

    restored, archived = context.write(storage, work)
    context.tell_write(storage, 1 - archived)
    return restored


def _revalue(context: Context, ref: Ref, points: int, action: str) -> Memory:
    storage, memory = context.find_live(ref)

    def change(memory: Memory, at: datetime) -> Memory:
        feedback = max(-MAX_FEEDBACK, min(MAX_FEEDBACK, memory.feedback + points))
        if points < 0:
            return replace(memory, feedback=feedback, updated_at=at)
        return replace(
            memory,
            feedback=feedback,
            use_count=memory.use_count + 1,
            last_hit_at=at,
            last_used_at=at,
            verified_at=at,
            updated_at=at,
        )

    return context.change(storage, memory, action, change)
