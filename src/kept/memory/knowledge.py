"""Typed knowledge (`memory.knowledge`) and promotion, the only way from one tier into another.

Decisions, conventions and failures belong to the project; preferences and patterns to the global space. All of them go
down the one write path. Rule: a memory is promoted only on request, and into global memory only by a person.
"""

from collections.abc import Sequence
from typing import get_args

from kept import access, text
from kept.errors import InvalidInput
from kept.memory import write
from kept.memory.context import BATCH, Context, Memories, Ref, as_it_is
from kept.memory.write import grown_by
from kept.model import GLOBAL, PROPOSED, Draft, Memory, Receipt, Source, Status, Tier, Trust, replace, several
from kept.ports import Stamp, Storage, Transaction, Where
from kept.writing import pipeline
from kept.writing.check import clean_tags
from kept.writing.extraction.failures import MAX_MESSAGE_CHARS, error_message
from kept.writing.extraction.failures import signature_of as signature_of
from kept.writing.redact import redact

MOST = 100
FROM_UID = "promoted_from"  # in the data of a promoted memory: the uid of what it was
LOWEST_FIRST: tuple[Tier, ...] = get_args(Tier)
PROMOTED_TO: tuple[Tier, ...] = ("project", "global")


def add_decision(context: Context, decision: str, tags: Sequence[str] = ()) -> Receipt:
    """Keep a decision of this project."""
    return _keep(context, Draft(content=decision, kind="decision", tags=several(tags)))


def add_convention(context: Context, convention: str, scope: str) -> Receipt:
    """Keep how things are done in this project; `scope` says where it holds: python, tests, commits …"""
    return _keep(context, Draft(content=convention, kind="convention", tags=(scope,)))


def add_failure(
    context: Context, failure: str, lesson: str, *, tags: Sequence[str] = (), files: Sequence[str] = ()
) -> Receipt:
    """Keep an error and its lesson.

    `failure` is the message of an error, or an output that contains it. Numbers, paths and times, which change
    from run to run, are no part of the signature by which `failures` finds it again.
    """
    message = _message_of(context, failure)
    content = f"{message}: {lesson}" if lesson.strip() else lesson
    data = {"signature": signature_of(message), "lesson": lesson}
    # A tool wrote the message; a person who passes it on has read it.
    trust: Trust | None = None if context.is_person else "tool"
    draft = Draft(content=content, kind="error", tags=several(tags), files=several(files), data=data, trust=trust)
    return _keep(context, draft)


def decisions(context: Context, tags: Sequence[str] = (), *, limit: int = MOST) -> Memories:
    """The decisions of this project, newest first; with `tags`, only those that have one of them."""
    return _known(context, Where(kinds=("decision",), tags=clean_tags(several(tags)), tiers=("project",)), limit)


def failures(context: Context, like: str = "", *, limit: int = MOST) -> Memories:
    """The errors of this project, newest first; with `like`, only the same error as in that output."""
    errors = Where(kinds=("error",), tiers=("session", "project"))
    if not like.strip():
        return _known(context, errors, limit)
    wanted = signature_of(_message_of(context, like))
    return [one for one in _known(context, errors, None) if (one.data or {}).get("signature") == wanted][:limit]


def add_preference(context: Context, preference: str, category: str) -> Receipt:
    """Keep what the person wants in all projects. They are asked first; `category` is style, tools, tone …"""
    return _keep(context, Draft(content=preference, kind="preference", tags=(category,), tier="global"))


def add_pattern(context: Context, pattern: str, domain: str) -> Receipt:
    """Keep what has worked and will work in other projects. They are asked only if it may be a tool's text."""
    return _keep(context, Draft(content=pattern, kind="pattern", tags=(domain,), tier="global"))


def preferences(context: Context, category: str | None = None, *, limit: int = MOST) -> Memories:
    """The preferences of the person, newest first; of one category, or of all."""
    tags = () if category is None else clean_tags((category,))
    return _known(context, Where(kinds=("preference",), tags=tags), limit, is_global=True)


def clear_all(context: Context) -> int:
    """Forget all of global memory, once a person has said yes. Returns how many memories. Can be undone."""
    access.check_write(context.actor_here(), GLOBAL)
    context.agree("DANGER: Forget ALL of global memory, for every project?", to="forget ALL of global memory")
    storage = context.spaces.shared()
    if storage is None:
        return 0
    stamp, gone = context.stamp(shared=True), 0
    for shelf in write.SHELVES:
        while batch := _forget_some(storage, Where(shelf=shelf, scope=None), stamp):
            gone += batch
    context.tell_write(storage, -gone)
    return gone


def _keep(context: Context, draft: Draft) -> Receipt:
    return write.remember(context, draft)


def _known(context: Context, where: Where, limit: int | None, *, is_global: bool = False) -> Memories:
    """Memories of the project, or of global memory, newest first. Without a limit, all of them."""
    storage = context.readable_tier("global" if is_global else "project")
    if storage is None:
        return []
    with storage.reading() as reader:
        found = reader.select(where, limit=reader.count(where) if limit is None else limit)
    context.tell_read(found)
    return found


def _message_of(context: Context, failure: str) -> str:
    """The error in a text, in a line; secrets go first, because what is cut in two is no longer recognised."""
    rules = context.rules()
    safe = redact(failure, email=rules.redact_email, allow=rules.allow).text
    message = error_message(safe) or next((line.strip() for line in safe.splitlines() if line.strip()), "")
    if not message:
        raise InvalidInput("The failure is empty.", hint="Give the message of the error.")
    return message[:MAX_MESSAGE_CHARS]


def promote(context: Context, ref: Ref, to: Tier) -> Receipt:
    """Move a memory to a tier that lives longer; the old ref then names the new one."""
    storage, memory = context.find_live(ref)
    _check_promotion(memory, to)
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
    """The memory as its promoter puts it forward: the tags of a note speak of its task, which it leaves."""
    of_task = ("task", (memory.data or {}).get("stage")) if memory.tier == "task" else ()
    left_behind = (*of_task, PROPOSED)
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
    """The promoted memory with what its origin had earned, and with who had said it: trust does not grow by moving."""
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
    """Archive what was promoted; its ref answers with its heir from now on."""
    current = as_it_is(tx, memory)
    if current.is_archived or current.fingerprint != memory.fingerprint:
        raise InvalidInput(
            f"Memory {memory.ref} has been changed in the meantime.", hint="Check it, then promote it again."
        )
    return tx.put(current.archived("superseded", tx.stamp.at, superseded_by=heir), "promote")


def _uid(receipt: Receipt) -> str | None:
    return None if receipt.memory is None else receipt.memory.uid


def _forget_some(storage: Storage, where: Where, stamp: Stamp) -> int:
    """Forget a batch of what is meant; how many there were."""
    with storage.writing(stamp, urgent=True) as tx:
        batch = tx.select(where, limit=BATCH)
        for memory in batch:
            tx.put(memory.archived("forgotten", stamp.at), "forget")
    return len(batch)
