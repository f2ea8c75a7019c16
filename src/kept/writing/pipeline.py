"""The write path: check → redact → admit → conflicts → duplicates → store. The storage journals each change.

Every writer takes this path, in two halves: `prepare` needs no storage and runs before the transaction, for which
writers wait in turn; `store` runs in it. Findings of a conversation come from `extraction` as drafts and take the same
path. A draft can be related to four sorts of memories:

    twin         says the same but for case and spacing: it is strengthened, and nothing is stored
    rivals       contradict it: stored as open conflicts, or archived where the newer one says that the older is over
    superseded   has the same topic: it is archived, and the new memory takes its place
    near         shares most of the letters: named in the receipt; an unasked draft that adds nothing is refused

`alike` are the memories that share a few words with it, among which rivals and near ones are looked for, in this order:
a reversal resembles what it takes back. Rule: a draft becomes a memory, strengthens one, or is refused with a reason
that people can read and count; a newer statement about the same thing never vanishes.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from kept import text
from kept.model import (
    KEY_TAKEN,
    LOW_TRUST,
    NOTE_OF,
    REJECTED,
    TRUST_BY_ORIGIN,
    Conflict,
    Draft,
    Memory,
    Outcome,
    Receipt,
    Redaction,
    Rejection,
    Source,
    Status,
    Trust,
    least,
)
from kept.ports import ANYTHING, ANYWHERE, Transaction, Where
from kept.proposals import STANDING_ORDER
from kept.tables import IMPORTANCE_BY_KIND, Preset, by_kind
from kept.worth import AUTOMATIC
from kept.writing.admit import (
    DELIBERATE,
    INSTRUCTION_TAG,
    REASONS,
    Echoes,
    admit,
    is_instruction_like,
    is_worth_promoting,
    promoted,
    signals_of,
    with_signal,
)
from kept.writing.check import check
from kept.writing.conflicts import Rival, find_rivals, may_supersede
from kept.writing.duplicates import (
    Known,
    attest,
    find_near,
    find_superseded,
    says_the_same,
    strengthen,
    supersede,
)
from kept.writing.likeness import near_kind
from kept.writing.passages import Buried
from kept.writing.redact import RedactedDraft, redact_draft
from kept.writing.rejections import Rejections, was_rejected

UNTRUSTED_CONFIDENCE = 0.3
Said = TypeVar("Said", Draft, Memory)


class WriteRules(Struct, frozen=True, kw_only=True):
    """The rules for the drafts of one call."""

    preset: Preset
    source: Source  # of a draft that names none
    redact_email: bool = True
    allow: Collection[str] = ()  # values that look like secrets and that a person declared harmless
    echoes: Echoes = Echoes()  # statements of the project's own files, which are not stored again
    is_paused: bool = False
    is_capture_off: bool = False  # by the setting auto_memory
    paused_sessions: Collection[str | None] = ()

    def redacted(self, draft: Draft) -> RedactedDraft:
        """Return the draft without its secrets, as it would be stored."""
        return redact_draft(draft, email=self.redact_email, allow=self.allow)


class Ready(Struct, frozen=True, kw_only=True, gc=False):
    """A draft that was checked, redacted and admitted, and can be stored."""

    draft: Draft  # with a source and an importance
    status: Status  # of the memory that it becomes
    preset: Preset
    redactions: tuple[Redaction, ...] = ()
    uid: str | None = None  # it had one elsewhere, which is taken if it is free

    @property
    def source(self) -> Source:
        assert self.draft.source is not None
        return self.draft.source

    @property
    def is_note(self) -> bool:
        """Return True for a note of an agent's own memory: it was said on purpose, but is only read here."""
        return NOTE_OF in (self.draft.data or {})

    @property
    def is_said_now(self) -> bool:
        """Return True if it is said on purpose, and here."""
        return self.source.origin in DELIBERATE and not self.is_note

    @property
    def is_unasked(self) -> bool:
        """Whether it was neither said on purpose nor imported: it comes from a conversation, a tool or a rule."""
        return self.source.origin in AUTOMATIC


class Destination(Struct, frozen=True, kw_only=True):
    """Where and when a draft becomes a memory, and where its uid comes from."""

    space: str
    at: datetime
    new_uid: Callable[[], str]


# ---- before the transaction ----


def prepare(draft: Draft, rules: WriteRules) -> Ready | Receipt:
    """Check, redact and judge a draft. A receipt is a refusal; what no storage could hold raises InvalidInput."""
    draft = check(draft if draft.source is not None else replace(draft, source=rules.source))
    safe = rules.redacted(draft)
    draft = _completed(safe.draft)
    is_redacted = bool(safe.redactions)
    is_paused = _is_paused(draft, rules)
    is_closed = is_paused or rules.is_capture_off
    verdict = admit(draft, rules.preset, rules.echoes, is_redacted=is_redacted, is_paused=is_closed)
    if verdict.refusal == "paused" and not is_paused:
        return _refused("auto_off", REASONS["auto_off"], safe.redactions)
    if verdict.status is None:
        return _refused(verdict.refusal, verdict.message, safe.redactions)
    if draft.pin and draft.trust == "user" and verdict.status == "candidate":
        draft = replace(draft, data=with_signal(draft.data, "explicit-pin"))
    return Ready(draft=_with_caution(draft), status=verdict.status, preset=rules.preset, redactions=safe.redactions)


def _is_paused(draft: Draft, rules: WriteRules) -> bool:
    """Return True if the project, or the session that a draft comes from, is paused."""
    return rules.is_paused or (draft.source is not None and draft.source.session in rules.paused_sessions)


def take(draft: Draft, rules: WriteRules) -> Ready:
    """Check and redact a draft, and judge nothing: for what a program keeps under a key of its own."""
    draft = check(draft if draft.source is not None else replace(draft, source=rules.source))
    safe = rules.redacted(draft)
    return Ready(draft=_completed(safe.draft), status="confirmed", preset=rules.preset, redactions=safe.redactions)


def _completed(draft: Draft) -> Draft:
    """The draft with an importance and a trust: by its kind and its source, where it does not name them."""
    importance = by_kind(IMPORTANCE_BY_KIND, draft.kind) if draft.importance is None else draft.importance
    return replace(draft, importance=importance, trust=_trust_of(draft))


def _trust_of(draft: Draft) -> Trust:
    """As its source says, or less. Only a draft from a conversation knows better: it names its speaker's."""
    origin = (draft.source or Source()).origin
    if draft.trust is None:
        return TRUST_BY_ORIGIN[origin]
    return draft.trust if origin == "conversation" else least(draft.trust, TRUST_BY_ORIGIN[origin])


def _with_caution(draft: Said) -> Said:
    """Marked and believed less, if a tool or a website gives orders in it."""
    is_deliberate = draft.source is None or draft.source.origin in DELIBERATE
    if (is_deliberate and draft.trust not in LOW_TRUST) or not is_instruction_like(draft.content):
        return draft
    tags = tuple(dict.fromkeys((*draft.tags, INSTRUCTION_TAG)))
    return replace(draft, tags=tags, confidence=min(draft.confidence, UNTRUSTED_CONFIDENCE))


def distrusted(memory: Memory, trust: Trust, at: datetime) -> Memory:
    """The memory with that trust, if it had more. One of low trust is a candidate, and marked if it gives orders."""
    if least(memory.trust, trust) == memory.trust:
        return memory
    return _with_caution(replace(memory, trust=trust, updated_at=at))


# ---- in the transaction ----


def store(tx: Transaction, batch: Sequence[Ready | Receipt], to: Destination) -> list[Receipt]:
    """Make a memory of each draft, or strengthen the one that says the same; refusals keep their places."""
    memories = [to_memory(ready, to) for ready in _with_free_uids(tx, batch)]
    known, rejections = Known(tx, memories), Rejections(tx)
    new = iter(memories)
    return [
        _store_one(tx, ready, next(new), known, rejections, to.at) if isinstance(ready, Ready) else ready
        for ready in batch
    ]


def _with_free_uids(tx: Transaction, batch: Sequence[Ready | Receipt]) -> Iterator[Ready]:
    """Yield the drafts that are to be stored; a uid that another memory has is not given again."""
    taken: set[str] = set()
    for ready in (one for one in batch if isinstance(one, Ready)):
        is_taken = ready.uid in taken or (ready.uid and tx.select(replace(ANYWHERE, uid=ready.uid), limit=1))
        taken |= {ready.uid} if ready.uid else set()
        yield replace(ready, uid=None) if is_taken else ready


def _stored_before(ready: Ready, memory: Memory, stored: Memory) -> Receipt:
    """Return the receipt of a draft whose key is there: stored before, or refused if that memory has another text."""
    if memory.fingerprint == stored.fingerprint:
        return _receipt("stored", stored, ready, reason="already_stored", message="It was stored before.")
    why = f"Nothing was stored: its key is that of memory {stored.ref}, which has another text. Revise that one."
    return _receipt("refused", stored, ready, reason=KEY_TAKEN, message=why)


def _store_one(
    tx: Transaction, ready: Ready, memory: Memory, known: Known, rejections: Rejections, at: datetime
) -> Receipt:
    if memory.key is not None and (stored := tx.select(Where(key=memory.key, shelf="any", scope=None), limit=1)):
        return _stored_before(ready, memory, stored[0])
    if not ready.is_said_now and _tells_erased(tx, memory):
        return _refused("erased", REASONS["erased"], ready.redactions)
    alike = known.alike(memory)
    memory = known.as_heard(memory, alike)
    rejected = rejections.of(memory)
    if rejected and _is_confirmed(memory, known, alike):
        rejected = []
    elif rejected and _is_persons_word(memory, rejected):
        rejections.lift(tx, rejected)
        rejected = []
    if not rejected:
        return _kept(tx, ready, memory, alike, known, at)
    if not ready.is_said_now:
        return _stored_rest(tx, ready, memory, known, rejections, at) or _refused(
            "rejected", was_rejected(rejected[0]), ready.redactions
        )
    receipt = _kept(tx, ready, as_rejected(memory), (), known, at)
    note = f"{was_rejected(rejected[0])} It is a candidate now, and told to nobody until a person confirms it."
    return replace(receipt, reason="rejected", message=note)


def _stored_rest(
    tx: Transaction, ready: Ready, memory: Memory, known: Known, rejections: Rejections, at: datetime
) -> Receipt | None:
    """Store the other sentences of a paragraph in a file, if one of them was rejected; None if none is left."""
    rest = rejections.left_of(memory.content) if ready.source.origin in ("import", "migration") else ""
    if ready.is_note or not rest:
        return None
    left = replace(memory, content=rest, fingerprint=text.fingerprint(rest))
    return _kept(tx, ready, left, known.alike(left), known, at)


def _is_confirmed(memory: Memory, known: Known, alike: Sequence[Memory]) -> bool:
    """Return True if a live memory that is no candidate makes this statement: that outranks a rejection."""
    twin = known.twin(memory)
    said = [one for one in alike if one.status != "candidate" and says_the_same(memory, one)]
    return bool(said) or (twin is not None and twin.status != "candidate")


def _is_persons_word(memory: Memory, rejected: Sequence[Rejection]) -> bool:
    """Return True if a person says it on purpose, after it was rejected.

    In a conversation that is a standing order; a sentence in passing is a finding like any other.
    """
    if memory.trust != "user" or memory.created_at < max(one.at for one in rejected):
        return False
    return memory.source.origin == "user" or (memory.data or {}).get("sort") == STANDING_ORDER


def as_rejected(memory: Memory) -> Memory:
    """Return the memory as a candidate that is told to nobody, until a person confirms it."""
    return replace(memory, status="candidate", tags=tuple(dict.fromkeys((*memory.tags, REJECTED))))


def _kept(
    tx: Transaction, ready: Ready, memory: Memory, alike: Sequence[Memory], known: Known, at: datetime
) -> Receipt:
    """Strengthen the memory that says the same, or store a new one."""
    if twin := known.twin(memory):
        twin = twin.vouched_for() if memory.source.origin == "user" and memory.trust == "user" else twin
        return _receipt("strengthened", known.note(_corroborated(tx, strengthen(tx, twin, memory, at), ready)), ready)
    related = Related((), (), ()) if memory.is_rejected else _related(tx, memory, alike)
    if (ready.is_unasked or ready.is_note) and (same := _said_already(memory, related)):
        known.note(_corroborated(tx, attest(tx, same, memory), ready))
        refused = _refused("echo", f"Memory {same.ref} says the same.", ready.redactions)
        return replace(refused, repeats=same.uid)
    return _add(tx, ready, memory, related, known, at)


class Related(NamedTuple):
    """The memories that a new one is related to, as the head of this module names them."""

    superseded: Sequence[Memory]
    rivals: Sequence[Rival]
    near: Sequence[Memory]


def _related(tx: Transaction, memory: Memory, alike: Sequence[Memory]) -> Related:
    superseded = find_superseded(tx, memory)
    others = [other for other in alike if other not in superseded]
    # A tool that was first silences nobody.
    heard = [other for other in others if memory.is_low_trust or not other.is_low_trust]
    return Related(superseded, find_rivals(tx, memory, others), find_near(memory, heard))


def _said_already(memory: Memory, related: Related) -> Memory | None:
    """Return the memory that makes the same statement. Two summaries of one story are alike on purpose."""
    if related.rivals or memory.kind == "summary":
        return None
    return next((other for other in related.near if says_the_same(memory, other)), None)


def _add(tx: Transaction, ready: Ready, memory: Memory, related: Related, known: Known, at: datetime) -> Receipt:
    """Store a new memory, note its conflicts, and archive those that it replaces."""
    added = known.note(tx.add(memory, "remember"))
    conflicts = [_settle(tx, added, rival, known, at) for rival in related.rivals]
    added = known.now(added)
    beaten = [rival.memory for rival in related.rivals if known.now(rival.memory).superseded_by == added.uid]
    superseded = [*related.superseded, *beaten]
    for old in superseded:
        if not known.now(old).is_archived:
            known.note(supersede(tx, old, added, at))
    return _receipt(
        "candidate" if memory.status == "candidate" else "stored",
        added,
        ready,
        conflicts=tuple(conflict for conflict in conflicts if conflict.resolved_at is None),
        near=tuple(other.ref for other in related.near),
        superseded=tuple(old.ref for old in superseded),
        message=_note_on_kind(tx, added),
    )


def _tells_erased(tx: Transaction, memory: Memory) -> bool:
    """Return True if the text was erased here, or has a passage that was, in any wrapping."""
    if tx.is_erased(memory.fingerprint):
        return True
    return tx.is_erased(ANYTHING) and bool(Buried(tx.erased_among).spans(memory.content))


def _note_on_kind(tx: Transaction, memory: Memory) -> str:
    """A note about the first memory of a kind that may be mistyped. Kinds are an open vocabulary: it is stored."""
    meant = near_kind(memory.kind)
    if meant is None or tx.count(Where(kinds=(memory.kind,), scope=None)) > 1:
        return ""
    return f"Stored with the kind {memory.kind!r}, which is new here. Did you mean {meant!r}?"


def _corroborated(tx: Transaction, memory: Memory, ready: Ready) -> Memory:
    """The memory; a finding that another session has said before is promoted here, since its own may be long over."""
    if "multi-session" not in signals_of(memory) or not is_worth_promoting(memory, ready.preset):
        return memory
    return tx.put(promoted(memory, tx.stamp.at, session=ready.source.session), "promote")


def _settle(tx: Transaction, added: Memory, rival: Rival, known: Known, at: datetime) -> Conflict:
    """Record that two memories disagree. The older one is archived if the newer says so and may; else both stay."""
    older, newer = sorted((rival.memory, added), key=lambda one: one.created_at)
    is_over = rival.type == "superseded" and may_supersede(tx, newer, older)
    if is_over:
        known.note(supersede(tx, known.now(older), newer, at))
    return tx.add(rival.conflict(newer, older, at, is_over=is_over), "conflict")


def to_memory(ready: Ready, to: Destination) -> Memory:
    """The memory that a draft becomes."""
    fields = asdict(ready.draft)
    del fields["pin"]  # the status says it
    said_at = fields.pop("created_at")
    return Memory(
        **fields,
        uid=ready.uid or to.new_uid(),
        space=to.space,
        fingerprint=text.fingerprint(ready.draft.content),
        status=ready.status,
        created_at=to.at if said_at is None else min(said_at, to.at),
        updated_at=to.at,
    )


def _refused(reason: str, message: str, redactions: tuple[Redaction, ...]) -> Receipt:
    return Receipt(outcome="refused", reason=reason, message=message, redactions=redactions)


def _receipt(outcome: Outcome, memory: Memory, ready: Ready, **more: Any) -> Receipt:
    return Receipt(outcome=outcome, ref=memory.ref, memory=memory, redactions=ready.redactions, **more)
