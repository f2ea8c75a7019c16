"""Reviews (`memory.reviews`): stale, duplicate and conflicting memories, and decisions about them.

`upkeep.review` decides what to point at, and why. Rule: listing changes nothing; all decisions of one call are one
group in the journal, and `undo` takes them back together.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from msgspec import Struct

from kept import access, ids, text
from kept.errors import InvalidInput, NotFound
from kept.freshness import Look, Standing, with_code
from kept.memory import change, guards, manage, promotion, trust, write
from kept.memory.context import Context, Memories, by_uid, global_first
from kept.memory.following import find_changes
from kept.memory.receipts import holds_receipts
from kept.memory.session_summary import leave_out
from kept.memory.standing import CodeView, held_again
from kept.model import (
    GLOBAL,
    PROPOSAL,
    PROPOSED,
    Alias,
    CallGuard,
    Conflict,
    Draft,
    Memory,
    Receipt,
    SessionRecord,
    replace,
    several,
)
from kept.ports import Stamp, Storage, Transaction, Where
from kept.recall.vocabulary import is_expanded
from kept.storage.shared import every
from kept.upkeep import review as judging
from kept.upkeep.review import ACTIONS, TALK_DAYS, Talk
from kept.upkeep.review import REASONS as REASONS
from kept.upkeep.review import Decision as Decision
from kept.upkeep.review import ReviewFinding as ReviewFinding
from kept.upkeep.review import ReviewReason as ReviewReason
from kept.upkeep.synonyms import MOST_PROPOSED, AliasProposal, alias_proposals
from kept.writing.duplicates import supersede
from kept.writing.rejections import reject

MOST_RECEIPTS = 500  # that are asked how often a memory was told
MOST_MESSAGES = 2_000  # of recent talk: what a month of work says, without reading a year of it
LONG_TERM = Where(tiers=("project", "global"))  # the notes of sessions and tasks expire anyway


class Review(Struct, frozen=True, kw_only=True):
    """The memories to decide about, most pressing first; counts per reason, and how much was examined.

    `aliases` are words that the store uses for the same thing; `memory.aliases.add` accepts one.
    """

    findings: tuple[ReviewFinding, ...] = ()
    counts: dict[ReviewReason, int] = {}
    memories: int = 0
    messages: int = 0
    aliases: tuple[AliasProposal, ...] = ()

    def __iter__(self) -> Iterator[ReviewFinding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)


def list_reviews(context: Context, *, limit: int = 20, reasons: Sequence[ReviewReason] = ()) -> Review:
    """List stale, unused, duplicate, contradicted and irrelevant memories, each with a reason and a proposal.

    Only memories that this actor may change. `reasons` filters the list; `counts` covers all. Changes nothing.
    """
    _check_asked(limit, reasons)
    now, actor = context.now(), context.actor_here()
    told = _told(context.readable())
    found: list[ReviewFinding] = []
    examined = 0
    talk, aliases, look = Talk(), list[AliasProposal](), _look(context)
    for storage in context.readable():
        talk = talk if talk.messages else _recent_talk(storage, now)
        if access.may_write(actor, storage.space):
            with storage.reading() as reader:
                memories = [*every(reader, LONG_TERM)]
                conflicts = reader.all(Conflict)
                own = reader.all(Alias)
                guards = {one.memory for one in reader.all(CallGuard) if one.mode == "stop"}
            rules = judging.ReviewRules(shelf_life_days=context.settings.shelf_life_days, guards=guards, told=told)
            rivals = _global_rivals(context, storage, conflicts)
            aliases += alias_proposals(memories, partial(_is_expanded, own))
            examined += len(memories)
            found += judging.review(memories, conflicts, talk, now, rules, look, rivals=rivals)
    context.tell_read([finding.memory for finding in found])
    wanted = found if not reasons else [one for one in found if not set(reasons).isdisjoint(one.reasons)]
    return Review(
        findings=tuple(wanted[:limit]),
        counts={reason: sum(reason in one.reasons for one in found) for reason in REASONS},
        memories=examined,
        messages=talk.messages,
        aliases=() if reasons else tuple(aliases[:MOST_PROPOSED]),
    )


def _told(storages: Sequence[Storage]) -> dict[str, judging.Telling]:
    """Count how often agents were told each memory without asking, by uid, by the last receipts."""
    found: dict[str, judging.Telling] = {}
    for storage in filter(holds_receipts, storages):
        with storage.reading() as reader:
            notes = reader.receipts_of(None, limit=MOST_RECEIPTS)
        for _, at, body in notes:  # newest first
            entries = (entry for part in body.get("sections", ()) for entry in part.get("entries", ()))
            for uid in {str(entry.get("uid")) for entry in entries} if body.get("moment") else ():
                known = found.get(uid)
                found[uid] = judging.Telling(known.times + 1, known.last) if known else judging.Telling(1, at)
    return found


def _check_asked(limit: int, reasons: Sequence[ReviewReason]) -> None:
    if limit < 0:
        raise InvalidInput(f"limit must be 0 or more, got {limit}.")
    if unknown := [reason for reason in reasons if reason not in REASONS]:
        raise InvalidInput(f"Unknown reason {unknown[0]!r}.", hint=f"Choose from {', '.join(REASONS)}.")


def _global_rivals(context: Context, storage: Storage, conflicts: Sequence[Conflict]) -> Memories:
    """Return the live global memories that memories of the project contradict."""
    shared = context.readable_tier("global") if storage.space != GLOBAL else None
    if shared is None:
        return []
    unsettled = [conflict for conflict in conflicts if conflict.resolved_at is None]
    with shared.reading() as reader:
        found = (by_uid(reader, uid) for one in unsettled for uid in (one.left, one.right))
        return [one for one in found if one is not None and not one.is_archived]


def _look(context: Context) -> Look:
    """Return how memories stand to the work tree, once git was asked where their code is now."""
    found = find_changes(context)
    if found is None:
        return CodeView(context)
    look = CodeView(context, found.here)

    def standing(memory: Memory) -> Standing:
        code = found.codes.get(memory.uid)
        return look(memory if code is None else replace(memory, data=with_code(memory.data, code)))

    return standing


def propose(context: Context, draft: Draft) -> Receipt:
    """Store a draft for global memory in the project instead, and ask about it in the next review.

    For agents whose host cannot ask a person now.
    """
    tags = (*several(draft.tags), PROPOSED)
    return write.remember(context, replace(draft, tier="project", tags=tags, pin=False))


def apply_decisions(context: Context, decisions: Iterable[Decision | str]) -> Memories:
    """Carry out all decisions, or none. Returns the changed memories, in order.

    A decision is a `Decision`, or its text: `keep:3` (it stays, and counts as verified now; so does what it
    contradicts or nearly repeats), `archive:5`, `wrong:6` (archived as wrong or outdated, and not stored again
    unasked), `forget:7`, `supersede:9=3` (3 holds and takes over the tags and files of 9, and 9 is archived), or
    `promote:4`, which moves it into global memory. A promotion is a separate group, and comes first. A global memory
    is superseded by one of the project in this project alone: other projects keep it.
    """
    found = [_found(context, one) for one in ([decisions] if isinstance(decisions, str) else decisions)]
    _check_together([(one.memory, one.by) for one in found])
    for one in found:
        _check_successor(context, one)
    changed = {one.memory.uid: _promote(context, one.memory) for one in found if one.is_promotion}
    across = [one for one in found if one.is_across]
    with context.together() if across else nullcontext():
        changed |= _carry_out_here(context, [one for one in found if not one.is_promotion and not one.is_across])
        changed |= {one.memory.uid: _resolve_across(context, one) for one in across}
    return [changed[one.memory.uid] for one in found]


def _carry_out_here(context: Context, found: "Sequence[_Found]") -> dict[str, Memory]:
    """Carry out the decisions about memories of one space each, as one group. Returns the changed memories by uid."""
    storages = {one.storage.space: one.storage for one in found}
    stamp = context.stamp(shared=GLOBAL in storages)
    changed: dict[str, Memory] = {}
    for storage in global_first(storages.values()):
        changed |= _carry_out_in(context, storage, [one for one in found if one.storage is storage], stamp)
    return changed


def _resolve_across(context: Context, found: "_Found") -> Memory:
    """Settle a contradiction between the project and global memory. Returns the memory that gives way."""
    assert found.by is not None
    manage.resolve(context, _conflict_of(context, found).ref, found.by.ref)
    return context.find(found.memory.uid)[1]


def _conflict_of(context: Context, found: "_Found") -> Conflict:
    """Return the open contradiction between two memories of different spaces. Raises InvalidInput."""
    sides = {found.memory.uid, *([found.by.uid] if found.by else [])}
    for conflict in manage.conflicts(context, resolved=False):
        if {conflict.left, conflict.right} == sides:
            return conflict
    raise InvalidInput(
        f"Memories {found.memory.ref} and {found.by.ref if found.by else ''} are in different spaces, and do not "
        "contradict each other."
    )


def _carry_out_in(context: Context, storage: Storage, found: "Sequence[_Found]", stamp: Stamp) -> dict[str, Memory]:
    """Carry out the decisions of one space in one transaction. Returns the changed memories by uid."""
    own = [(one.decision, one.memory, one.by) for one in found]
    urgent = any(one.decision.action == "forget" for one in found)
    changed = context.write(storage, partial(_carry_out_all, context, own), stamp=stamp, urgent=urgent)
    context.tell_write(storage, -sum(changed[one.memory.uid].is_archived for one in found))
    return changed


class _Found(NamedTuple):
    """A decision with the memory it is about, and the one that takes its place, if there is one."""

    decision: Decision
    storage: Storage
    memory: Memory
    by: Memory | None
    is_across: bool  # the other one is in another space

    @property
    def is_promotion(self) -> bool:
        return self.decision.action == "promote"


def _found(context: Context, given: Decision | str) -> _Found:
    decision = parse_decision(given) if isinstance(given, str) else _checked(given)
    storage, memory = context.find_live(decision.ref)
    if not decision.by:
        return _Found(decision, storage, memory, None, is_across=False)
    owner, by = context.find_live(decision.by)
    return _Found(decision, storage, memory, by, is_across=owner is not storage)


def _check_successor(context: Context, found: _Found) -> None:
    """Raise unless the memory that takes the place of another one may do so."""
    if found.by is None:
        return
    write.check_not_cited(found.by, "given the tags and files of another memory")
    if found.is_across:
        _conflict_of(context, found)
    if not found.memory.is_low_trust:
        trust.check_vouched(context, found.by, "review")


def _promote(context: Context, memory: Memory) -> Memory:
    receipt = promotion.promote(context, memory.ref, "global")
    if receipt.memory is None:
        raise InvalidInput(f"Memory {memory.ref} was not promoted: {receipt.message}")
    return receipt.memory


def _is_expanded(own: Sequence[Alias], word: str, other: str) -> bool:
    return is_expanded(word, other, own)


def parse_decision(decision: str) -> Decision:
    """Read `keep:3`, `archive:5`, `wrong:6`, `forget:7`, `promote:4` or `supersede:9=3`. Raises InvalidInput."""
    action, _, refs = decision.strip().partition(":")
    ref, _, by = refs.partition("=")
    return _checked(Decision(action=action.strip().lower(), ref=ref.strip(), by=by.strip() or None))  # type: ignore[arg-type]


def _checked(decision: Decision) -> Decision:
    is_sound = decision.action in ACTIONS and bool(decision.by) == (decision.action == "supersede")
    if not is_sound or not decision.ref or decision.ref == decision.by:
        raise InvalidInput(
            f"{str(decision)[:60]!r} is not a decision.",
            hint="Write keep:3, archive:3, wrong:3, forget:3, promote:3, or supersede:9=3 (3 holds, 9 goes).",
        )
    for ref in (decision.ref, decision.by):
        if ref is not None:
            ids.parse_ref(ref)
    return decision


def _check_together(pairs: Sequence[tuple[Memory, Memory | None]]) -> None:
    """Raise InvalidInput where two decisions are about one memory, or one would be superseded by a gone one."""
    subjects = Counter(memory.uid for memory, _ in pairs)
    for memory, by in pairs:
        if subjects[memory.uid] > 1:
            raise InvalidInput(f"There are two decisions about memory {memory.ref}.", hint="Give only one.")
        if by is not None and by.uid in subjects:
            raise InvalidInput(
                f"Memory {memory.ref} cannot be superseded by {by.ref}: there is also a decision about {by.ref}.",
                hint="Apply the two decisions one after the other.",
            )


def _carry_out_all(
    context: Context, decided: Sequence[tuple[Decision, Memory, Memory | None]], tx: Transaction
) -> dict[str, Memory]:
    """Uid → the memory after the decision about it."""
    for one, memory, _ in decided:
        if one.action != "keep":
            guards.check_unguarded(context, tx, memory)
    known = [*every(tx, LONG_TERM)] if any(one.action == "keep" for one, _, _ in decided) else []
    return {
        memory.uid: _keep(context, tx, _still_live(tx, memory), known)
        if one.action == "keep"
        else _carry_out(tx, one, memory, by)
        for one, memory, by in decided
    }


def _keep(context: Context, tx: Transaction, memory: Memory, known: Memories) -> Memory:
    """A person who keeps a memory vouches for it. What it contradicts or nearly repeats stays as well."""
    at = tx.stamp.at
    if memory.is_rejected:
        trust.check_vouched(context, memory, "review")
    for conflict in tx.all(Conflict):
        if conflict.resolved_at is None and memory.uid in (conflict.left, conflict.right):
            for one in known:
                if one.uid in (conflict.left, conflict.right):
                    trust.check_vouched(context, one, "review")
            tx.put(replace(conflict, resolved_at=at), "resolve")
    held = held_again(context, memory)
    kept = judging.kept_beside(held.vouched_for() if context.is_person else held, known)
    status = "confirmed" if kept.status == "candidate" else kept.status
    tags = tuple(tag for tag in kept.tags if tag not in (PROPOSED, PROPOSAL))
    return tx.put(replace(kept, status=status, tags=tags, verified_at=at, updated_at=at), "verify")


def _carry_out(tx: Transaction, decision: Decision, memory: Memory, by: Memory | None) -> Memory:
    """Carry out a decision on the memory as it is now."""
    at = tx.stamp.at
    current = _still_live(tx, memory)
    if by is not None:
        holds = _consolidated(_still_live(tx, by), current, at)
        superseded = supersede(tx, current, tx.put(holds, "verify"), at)
        for conflict in tx.all(Conflict):
            if conflict.resolved_at is None and {conflict.left, conflict.right} == {memory.uid, by.uid}:
                tx.put(replace(conflict, resolved_at=at), "resolve")
                reject(tx, current, "overruled")
        return superseded
    if decision.action == "forget":
        return change.put_away(tx, current, "forgotten")
    if decision.action == "wrong":
        leave_out(tx, current)
        reject(tx, current, "wrong")
        return tx.put(current.archived("rejected", at), "reject")
    return tx.put(current.archived("expired", at), decision.action)


def _consolidated(holds: Memory, gone: Memory, at: datetime) -> Memory:
    """The memory that stays, with the tags and files of the other, unless those are only a tool's."""
    if gone.is_low_trust and not holds.is_low_trust:
        return replace(holds, verified_at=at, updated_at=at)
    return replace(
        holds,
        tags=tuple(dict.fromkeys((*holds.tags, *gone.tags))),
        files=tuple(dict.fromkeys((*holds.files, *gone.files))),
        verified_at=at,
        updated_at=at,
    )


def _still_live(tx: Transaction, memory: Memory) -> Memory:
    current = tx.get(Memory, memory.id)
    if current is None or current.is_archived:
        raise NotFound(
            f"Memory {memory.ref} was archived or erased in the meantime.", hint="Nothing was changed. Review again."
        )
    return current


def _recent_talk(storage: Storage, now: datetime) -> Talk:
    """The words of the newest messages of people and agents."""
    since = now - timedelta(days=TALK_DAYS)
    words: set[str] = set()
    messages = 0
    with storage.reading() as reader:
        for session in reversed(reader.all(SessionRecord)):
            if session.packed_at is not None or messages >= MOST_MESSAGES:
                continue
            last = reader.last_number(session.name)
            for message in reader.messages(session.name, after=max(0, last - (MOST_MESSAGES - messages))):
                if message.role in ("user", "assistant") and message.at is not None and message.at >= since:
                    words.update(text.words(message.content))
                    messages += 1
    return Talk(frozenset(words), messages)
