"""Remember statements.

New statements go down the write path (`writing.pipeline`) in batches, each with a receipt; `change` has the verbs for
one memory. Rule: one call is one group of the journal, however many batches and spaces it takes.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from functools import partial

from kept import ids
from kept.errors import InvalidInput
from kept.exchange import agents_md
from kept.memory import counts, trust
from kept.memory.context import BATCH, Context, Receipts, Ref, settle
from kept.memory.standing import anchored
from kept.model import ALSO, CHECK, GLOBAL, Conflict, Draft, Memory, Receipt, Source, replace, several
from kept.ports import Shelf, Stamp, Storage, Transaction
from kept.projects.files import read_regular
from kept.writing import pipeline
from kept.writing.admit import DELIBERATE, SOURCES, Echoes, echoes_of
from kept.writing.conflicts import Rival, find_rivals
from kept.writing.duplicates import Known, is_guarded, supersede

MAX_SOURCE_BYTES = 256 * 1024  # of a README: people read no further either
Placed = tuple[int, pipeline.Ready]
SHELVES: tuple[Shelf, ...] = ("live", "archive")  # all but the forgotten


def remember(
    context: Context,
    draft: Draft,
    *,
    also: str | Sequence[str] = (),
    replaces: Sequence[Ref] = (),
    check: str | None = None,
) -> Receipt:
    """Keep one statement; tags, files and `also` may still be as the caller gave them.

    `also` are other words to find it by, `replaces` the memories that it ends, `check` a way to see if it still holds.
    """
    data = {ALSO: list(several(also)), CHECK: check}
    more = {name: value for name, value in data.items() if value}
    draft = replace(
        draft,
        tags=several(draft.tags),
        files=several(draft.files),
        data={**(draft.data or {}), **more} if more else draft.data,
    )
    if not replaces:
        return remember_many(context, [draft])[0]
    with context.together():
        replaced = [context.find(ref)[1] for ref in replaces]  # before anything is stored
        receipt = remember_many(context, [draft])[0]
        return receipt if receipt.memory is None else _ended(context, receipt, receipt.memory, replaced)


def _ended(context: Context, receipt: Receipt, by: Memory, replaced: Sequence[Memory]) -> Receipt:
    """Archive the replaced memories. Returns the receipt with their refs, which are no longer near or contradicted."""
    ended = [one for one in replaced if end(context, one.ref, by)]
    uids, refs = {one.uid for one in ended}, dict.fromkeys((*receipt.superseded, *(one.ref for one in ended)))
    return replace(
        receipt,
        superseded=tuple(refs),
        near=tuple(ref for ref in receipt.near if ref not in refs),
        conflicts=tuple(one for one in receipt.conflicts if uids.isdisjoint((one.left, one.right))),
    )


def remember_many(
    context: Context,
    drafts: Iterable[Draft | str],
    *,
    stamp: Stamp | None = None,
    uids: Sequence[str | None] = (),
) -> list[Receipt]:
    """Keep many statements the same way, in batches; one receipt each, in order. A string is a fact.

    `stamp`: several calls with one stamp are one group of the journal. `uids`: those that imported drafts had before.
    """
    given = as_drafts(drafts)
    storages = [] if len(given) > BATCH or context.held is not None else [context.spaces.project()]
    work = partial(_remember, context, given, stamp, uids)
    return context.in_rounds([one for one in storages if one is not None], work)


def _remember(context: Context, given: list[Draft], stamp: Stamp | None, uids: Sequence[str | None]) -> Receipts:
    storage = context.spaces.project()
    with nullcontext() if storage is None else storage.reading() as reader:
        rules = context.rules(reader)
        heard = [*trust.as_heard(context, given, reader)]
    if any(isinstance(draft.source, Source) and draft.source.origin not in DELIBERATE for draft in heard):
        rules = replace(rules, echoes=echoes(context))
    prepared = [_with_code(context, pipeline.prepare(draft, rules)) for draft in heard]
    for number, (one, uid) in enumerate(zip(prepared, uids, strict=False)):
        prepared[number] = replace(one, uid=uid) if uid and isinstance(one, pipeline.Ready) else one
    receipts = _store(context, prepared, stamp)
    counts.count_reasons(context, receipts)
    return receipts


def _with_code(context: Context, one: pipeline.Ready | Receipt) -> pipeline.Ready | Receipt:
    """Add the branch, the commit and the anchors of its code to a draft that was checked: hashes are no secrets."""
    return replace(one, draft=anchored(context, one.draft)) if isinstance(one, pipeline.Ready) else one


def echoes(context: Context) -> Echoes:
    """The statements of the files that the project keeps for agents and readers; they need not be kept again."""
    folder = context.spaces.folder()
    if folder is None:
        return Echoes()
    texts = (read_regular(folder / name, MAX_SOURCE_BYTES).decode("utf-8", "replace") for name in SOURCES)
    return echoes_of(map(agents_md.plain, texts))


def _store(context: Context, prepared: Sequence[pipeline.Ready | Receipt], stamp: Stamp | None) -> Receipts:
    """Store the drafts as one group of the journal; refusals pass through in their places.

    Global drafts come first, in one transaction: a person agrees to all of them, or nothing is stored at all.
    """
    receipts: dict[int, Receipt] = {}
    shared, own = _by_space(prepared)
    if shared and (opened := context.spaces.project()) is not None:
        settle([opened])  # a person is asked once
    project = context.owned() if own else None
    stamp = stamp or context.stamp(shared=bool(shared))
    batches = [(context.ensure_shared(), shared)] if shared else []
    batches += [] if project is None else [(project, batch) for batch in _batches(own)]
    for storage, batch in batches:
        receipts |= _store_batch(context, storage, batch, stamp)
    return [one if isinstance(one, Receipt) else receipts[place] for place, one in enumerate(prepared)]


def _batches(drafts: list[Placed]) -> Iterator[list[Placed]]:
    for start in range(0, len(drafts), BATCH):
        yield drafts[start : start + BATCH]


def _by_space(prepared: Sequence[pipeline.Ready | Receipt]) -> tuple[list[Placed], list[Placed]]:
    """Return the drafts of global memory and those of the project, each with its place in the order of the call."""
    shared: list[Placed] = []
    own: list[Placed] = []
    for place, one in enumerate(prepared):
        if isinstance(one, pipeline.Ready):
            (shared if one.draft.tier == GLOBAL else own).append((place, one))
    return shared, own


def _store_batch(context: Context, storage: Storage, batch: Sequence[Placed], stamp: Stamp) -> dict[int, Receipt]:
    """Store a batch in one transaction. Returns the receipts by their places."""
    ready = [one for _, one in batch]
    receipts = context.write(storage, lambda tx: pipeline.store(tx, ready, place(storage, stamp.at)), stamp=stamp)
    context.tell_write(storage, sum(map(grown_by, receipts)))
    receipts = _compared_across(context, storage, receipts, stamp)
    return {number: receipt for (number, _), receipt in zip(batch, receipts, strict=True)}


def _compared_across(context: Context, storage: Storage, receipts: Receipts, stamp: Stamp) -> Receipts:
    """Note in the project where its memory and global memory contradict each other. Both stay, for other projects."""
    project, shared = context.spaces.project(), context.spaces.shared()
    new = [one.memory for one in receipts if one.memory is not None and _is_comparable(one)]
    if project is None or shared is None or not new:
        return receipts
    with (project if storage.space == GLOBAL else shared).reading() as reader:
        known = Known(reader, new)
        rivals = [(one, rival) for one in new for rival in find_rivals(reader, one, known.alike(one))]
    if not rivals:
        return receipts
    noted = _note_rivals(project, rivals, stamp)
    return [_with_conflicts(one, noted) for one in receipts]


def _note_rivals(project: Storage, rivals: Sequence[tuple[Memory, Rival]], stamp: Stamp) -> dict[str, list[Conflict]]:
    """Store a conflict for each new memory and its rival; map the uids of the new ones to theirs."""
    noted: dict[str, list[Conflict]] = {}
    with project.writing(stamp) as tx:
        for one, rival in rivals:
            older, newer = sorted((one, rival.memory), key=lambda side: side.created_at)
            found = tx.add(rival.conflict(newer, older, stamp.at, is_over=False), "conflict")
            noted.setdefault(one.uid, []).append(found)
    return noted


def _is_comparable(receipt: Receipt) -> bool:
    """Return True for a new memory of the project or of global memory that was not rejected before."""
    memory = receipt.memory
    is_new = memory is not None and receipt.outcome in ("stored", "candidate")
    return is_new and memory is not None and memory.tier in ("project", "global") and not memory.is_rejected


def _with_conflicts(receipt: Receipt, noted: Mapping[str, Sequence[Conflict]]) -> Receipt:
    found = () if receipt.memory is None else noted.get(receipt.memory.uid, ())
    return replace(receipt, conflicts=(*receipt.conflicts, *found)) if found else receipt


def place(storage: Storage, at: datetime) -> pipeline.Destination:
    """Where and when a draft is stored, and how it gets its uid."""
    return pipeline.Destination(
        space=storage.space,
        at=at,
        new_uid=lambda: ids.uuid7(at, os.urandom(ids.UID_ENTROPY_BYTES)),
    )


def as_drafts(drafts: Iterable[Draft | str]) -> list[Draft]:
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


def check_not_cited(memory: Memory, done: str) -> None:
    """Raise InvalidInput for an item of a file: it cites a line, so only extraction writes it."""
    if memory.is_cited:
        place = f"{memory.source.file}:{memory.source.line}" if memory.source.line else f"{memory.source.file}"
        raise InvalidInput(
            f"Memory {memory.ref} cannot be {done}: it was extracted from {place} and says what stands there.",
            hint="Edit the file and run `kept extract`. `kept remember` keeps words of your own.",
        )


def end(context: Context, ref: Ref, by: Memory) -> bool:
    """Archive a memory in favour of another one, and settle their contradiction. Returns False if it stays.

    A candidate ends nothing: it is not confirmed. Nor does an agent end a memory that a person has made a guard.
    """
    storage, memory = context.find(ref)
    if memory.is_archived or memory.uid == by.uid or by.status == "candidate":
        return False
    with storage.reading() as reader:
        if not context.is_person and is_guarded(reader, memory):
            return False

    def work(tx: Transaction) -> Memory:
        for one in tx.all(Conflict):
            if one.resolved_at is None and {one.left, one.right} == {memory.uid, by.uid}:
                tx.put(replace(one, resolved_at=tx.stamp.at), "resolve")
        return supersede(tx, memory, by, tx.stamp.at)

    context.write(storage, work)
    context.tell_write(storage, -1)
    return True
