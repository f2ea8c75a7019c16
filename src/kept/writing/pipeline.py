"""The write path: check → redact → admit → duplicates → conflicts → store → journal.

Every writer goes this one way, in two halves: `prepare` needs no storage and runs before the turn to write, `store`
runs in it. Rule: a draft becomes a memory, strengthens one, or is refused with a reason that people can read and count.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from kept import text
from kept.errors import InvalidInput
from kept.model import Conflict, Draft, Memory, Outcome, Receipt, Redaction, Source, Status, several
from kept.ports import Transaction, Where
from kept.tables import IMPORTANCE_BY_KIND, Preset, by_kind
from kept.writing.admit import BROUGHT_IN, DELIBERATE, INSTRUCTION_TAG, REASONS, Echoes, admit, is_instruction_like
from kept.writing.check import check
from kept.writing.conflicts import find_rivals
from kept.writing.duplicates import Known, find_near, find_superseded, strengthen, supersede
from kept.writing.redact import is_only_redacted, redact_draft

MAX_CHARS = 500
MAX_SUMMARY_CHARS = 4_000
MAX_TRANSIENT_BYTES = 64 * 1024
UNTRUSTED_CONFIDENCE = 0.3


class WriteRules(Struct, frozen=True, kw_only=True):
    """What holds for the drafts of one call."""

    preset: Preset
    source: Source  # of a draft that names none
    redact_email: bool = True
    allow: Collection[str] = ()
    echoes: Echoes = Echoes()
    is_paused: bool = False


class Ready(Struct, frozen=True, kw_only=True, gc=False):
    """A draft that may be stored, with its source and importance; as what, and what was taken out of it."""

    draft: Draft
    status: Status
    redactions: tuple[Redaction, ...] = ()

    @property
    def source(self) -> Source:
        assert self.draft.source is not None
        return self.draft.source

    @property
    def importance(self) -> float:
        assert self.draft.importance is not None
        return self.draft.importance

    @property
    def is_deliberate(self) -> bool:
        return self.source.origin in DELIBERATE


class Destination(Struct, frozen=True, kw_only=True):
    """Where and when a draft becomes a memory, and where its uid comes from."""

    space: str
    at: datetime
    new_uid: Callable[[], str]


def prepare(draft: Draft, rules: WriteRules) -> Ready | Receipt:
    """Check, redact and judge a draft. A receipt is a refusal; what no storage could hold raises InvalidInput."""
    source = rules.source if draft.source is None else draft.source
    draft = check(replace(draft, source=source))
    safe = redact_draft(draft, email=rules.redact_email, allow=rules.allow)
    draft = safe.draft
    if draft.importance is None:
        draft = replace(draft, importance=by_kind(IMPORTANCE_BY_KIND, draft.kind))
    if sentence := too_long(draft):
        return refused("too_long", sentence, safe.redactions)
    if safe.redactions and is_only_redacted(draft.content):
        return refused("only_a_secret", redactions=safe.redactions)
    is_automatic = source.origin not in (*DELIBERATE, *BROUGHT_IN) and draft.tier != "task"
    if rules.is_paused and is_automatic:
        return refused("paused", redactions=safe.redactions)
    verdict = admit(draft, source.origin, rules.preset)
    if verdict.status is None:
        return refused(verdict.refusal or "", redactions=safe.redactions)
    if is_automatic and rules.echoes.repeats(draft.content):
        return refused("echo", redactions=safe.redactions)
    if source.origin not in DELIBERATE and is_instruction_like(draft.content):
        draft = replace(
            draft, tags=(*draft.tags, INSTRUCTION_TAG), confidence=min(draft.confidence, UNTRUSTED_CONFIDENCE)
        )
    return Ready(draft=draft, status=verdict.status, redactions=safe.redactions)


def store(tx: Transaction, batch: Sequence[Ready | Receipt], to: Destination) -> list[Receipt]:
    """Make a memory of each draft, or strengthen the one that says the same; refusals keep their places.

    The storage journals each change.
    """
    memories = [to_memory(ready, to) for ready in batch if isinstance(ready, Ready)]
    known = Known(tx, memories)
    new = iter(memories)
    return [_store(tx, ready, next(new), known, to) if isinstance(ready, Ready) else ready for ready in batch]


def _store(tx: Transaction, ready: Ready, memory: Memory, known: Known, to: Destination) -> Receipt:
    draft = ready.draft
    if draft.key is not None and (stored := tx.select(Where(key=draft.key, shelf="any", scope=None), limit=1)):
        return _receipt("stored", stored[0], ready, reason="already_stored", message="It was stored before.")
    if ready.source.origin in BROUGHT_IN and tx.is_erased(memory.fingerprint):
        return refused("erased", redactions=ready.redactions)
    if twin := known.twin(memory):
        return _receipt("strengthened", known.note(strengthen(tx, twin, memory, to.at)), ready)
    superseded = find_superseded(tx, memory)
    alike = [other for other in known.alike(memory) if other not in superseded]
    near = find_near(memory, alike)
    is_automatic = not ready.is_deliberate and ready.source.origin not in BROUGHT_IN
    if near and is_automatic and draft.kind != "summary":  # two summaries of one story are alike, and both are meant
        return refused("echo", f"Memory {near[0].ref} says nearly the same.", ready.redactions)
    added = known.note(tx.add(memory, "remember"))
    for old in superseded:
        known.note(supersede(tx, old, added, to.at))
    conflicts = [
        tx.add(Conflict(left=rival.memory.uid, right=added.uid, type=rival.type, detected_at=to.at), "conflict")
        for rival in find_rivals(tx, added, alike)
    ]
    return _receipt(
        "candidate" if added.status == "candidate" else "stored",
        added,
        ready,
        conflicts=tuple(conflicts),
        near=tuple(other.ref for other in near),
        superseded=tuple(old.ref for old in superseded),
    )


def revise(memory: Memory, content: str, tags: Sequence[str] | None, rules: WriteRules, at: datetime) -> Memory:
    """The memory with another text, and other tags if any are given; it counts as verified now.

    Raises InvalidInput for what cannot stand in a memory.
    """
    draft = check(
        Draft(content=content, kind=memory.kind, tier=memory.tier, tags=memory.tags if tags is None else several(tags))
    )
    draft = redact_draft(draft, email=rules.redact_email, allow=rules.allow).draft
    if sentence := too_long(draft):
        raise InvalidInput(sentence)
    return replace(
        memory,
        content=draft.content,
        fingerprint=text.fingerprint(draft.content),
        tags=draft.tags,
        updated_at=at,
        last_hit_at=at,
        verified_at=at,
    )


def to_memory(ready: Ready, to: Destination) -> Memory:
    """The memory that a draft becomes."""
    fields = asdict(ready.draft)
    del fields["pin"]  # the status says it
    return Memory(
        **fields,
        uid=to.new_uid(),
        space=to.space,
        fingerprint=text.fingerprint(ready.draft.content),
        status=ready.status,
        created_at=to.at,
        updated_at=to.at,
    )


def too_long(draft: Draft) -> str | None:
    """Why the text is too long for its tier, with advice, or None."""
    size, limit, unit = len(draft.content), MAX_CHARS, "characters"
    if draft.tier in ("session", "task"):
        size, limit, unit = len(draft.content.encode()), MAX_TRANSIENT_BYTES, "bytes"
    elif draft.kind == "summary":
        limit = MAX_SUMMARY_CHARS
    if size <= limit:
        return None
    return (
        f"{size:,} {unit} are too long for a {draft.kind} of tier {draft.tier}; the limit is {limit:,}. "
        "Say one thing in a sentence or two, or split it."
    )


def refused(reason: str, sentence: str = "", redactions: tuple[Redaction, ...] = ()) -> Receipt:
    """The receipt of a draft that did not get in."""
    return Receipt(outcome="refused", reason=reason, message=sentence or REASONS[reason], redactions=redactions)


def _receipt(outcome: Outcome, memory: Memory, ready: Ready, **more: Any) -> Receipt:
    return Receipt(outcome=outcome, ref=memory.ref, memory=memory, redactions=ready.redactions, **more)
