"""What a project knows and what its owner prefers; and promotion, the only way from one tier into another.

Facade layer. Decisions, conventions and failures belong to the project; preferences and patterns to the global space.
Each helper is a `remember` with kind and tags set, so all of them go the one write path. Rule: nothing is promoted but
by somebody's word, and into global memory only by a person's.
"""

from collections.abc import Sequence
from typing import get_args

from kept import access, text
from kept.errors import InvalidInput, NotFound
from kept.memory.context import BATCH, Memories, Ref
from kept.memory.write import Remembering, grown_by
from kept.model import GLOBAL, Draft, Memory, Receipt, Source, Status, Tier, replace, several
from kept.ports import Shelf, Stamp, Storage, Transaction, Where
from kept.writing import pipeline
from kept.writing.check import clean_tags
from kept.writing.extraction.failures import MAX_MESSAGE_CHARS, error_message, signature_of
from kept.writing.redact import redact

MOST = 100
FROM_UID = "promoted_from"  # in the data of a promoted memory: the uid of what it was
LOWEST_FIRST: tuple[Tier, ...] = get_args(Tier)
PROMOTED_TO: tuple[Tier, ...] = ("project", "global")
CLEARED_SHELVES: tuple[Shelf, ...] = ("live", "archive")


class Knowledge(Remembering):
    """What is worth knowing beyond the task at hand."""

    # Of the project

    def add_decision(self, decision: str, tags: Sequence[str] = ()) -> Receipt:
        """Keep what was decided in this project."""
        return self.remember(decision, kind="decision", tags=tags)

    def add_convention(self, convention: str, scope: str) -> Receipt:
        """Keep how things are done in this project; `scope` says where it holds: python, tests, commits …"""
        return self.remember(convention, kind="convention", tags=(scope,))

    def add_failure(self, failure: str, lesson: str, *, tags: Sequence[str] = (), files: Sequence[str] = ()) -> Receipt:
        """Keep what went wrong, and what was learned from it.

        `failure` is the message of an error, or the whole output that has it somewhere. What changes from run to run
        (numbers, paths, times) is no part of its signature, by which `failures` finds it again.
        """
        message = self._message_of(failure)
        draft = Draft(
            content=f"{message}: {lesson}" if lesson.strip() else lesson,
            kind="error",
            tags=several(tags),
            files=several(files),
            data={"signature": signature_of(message), "lesson": lesson},
        )
        return self.remember_many([draft])[0]

    def decisions(self, tags: Sequence[str] = (), *, limit: int = MOST) -> Memories:
        """What was decided in this project, newest first; with `tags`, only what has one of them."""
        return self._known(Where(kinds=("decision",), tags=clean_tags(several(tags)), tiers=("project",)), limit)

    def failures(self, like: str = "", *, limit: int = MOST) -> Memories:
        """What went wrong in this project before, newest first; with `like`, only the same error as in that output."""
        errors = Where(kinds=("error",), tiers=("session", "project"))
        if not like.strip():
            return self._known(errors, limit)
        wanted = signature_of(self._message_of(like))
        same = (one for one in self._known(errors, None) if (one.data or {}).get("signature") == wanted)
        return list(same)[:limit]

    # Of the person, for all projects

    def add_preference(self, preference: str, category: str) -> Receipt:
        """Keep what the person wants, in all projects. They are asked first; `category` is style, tools, tone …"""
        return self.remember(preference, kind="preference", tags=(category,), tier="global")

    def add_pattern(self, pattern: str, domain: str) -> Receipt:
        """Keep what has worked and will work elsewhere, for all projects. Nobody is asked."""
        return self.remember(pattern, kind="pattern", tags=(domain,), tier="global")

    def preferences(self, category: str | None = None, *, limit: int = MOST) -> Memories:
        """What the person wants, newest first; of one category, or of all."""
        tags = () if category is None else clean_tags((category,))
        return self._known(Where(kinds=("preference",), tags=tags), limit, is_global=True)

    def clear_all(self) -> int:
        """Forget all of global memory, once a person has said yes; how many memories that were. Can be undone."""
        access.check_write(self._as_actor(), GLOBAL, consent=True)
        self._agree("DANGER: Forget ALL of global memory, for every project?")
        storage = self._spaces.shared()
        if storage is None:
            return 0
        stamp, gone = self._stamp(), 0
        for shelf in CLEARED_SHELVES:
            while batch := _forget_some(storage, Where(shelf=shelf, scope=None), stamp):
                gone += batch
        self._tell_write(storage, -gone)
        return gone

    # From one tier to another

    def promote(self, ref: Ref, to: Tier = "project") -> Receipt:
        """Move a memory to a tier that lives longer: out of its task or session, or into global memory.

        It is kept there with where it came from, and the old ref answers with the new one. What is too long for the
        tier is refused: revise it first. A candidate stays one, unless it is a person who promotes it.
        """
        storage, memory = self._find_live(ref)
        _check_promotion(memory, to)
        deliberate = Source(origin="user" if self._origin == "user" else "agent", agent=self._actor.name)
        ready = pipeline.prepare(_as_draft(memory, to), replace(self._rules(), source=deliberate))
        if isinstance(ready, Receipt):
            return ready
        ready = replace(ready, status=self._status_once_promoted(memory, to))
        if to == GLOBAL:
            self._check_change(GLOBAL, "", f"Promote memory {memory.ref} into global memory, for all projects?")
        self._check_change(storage.space, memory.kind, "")
        return self._copy_to_global(storage, memory, ready) if to == GLOBAL else self._move(storage, memory, ready)

    def _move(self, storage: Storage, memory: Memory, ready: pipeline.Ready) -> Receipt:
        """Within a space: one transaction."""
        stamp = self._stamp()
        place = self._place(storage, stamp.at)
        uid = place.new_uid()
        with storage.writing(stamp) as tx:
            left = _leave(tx, memory, uid)  # before the other comes, or it would be its own twin
            receipt = _arrive(tx, memory, ready, replace(place, new_uid=lambda: uid))
            if _uid(receipt) != uid:
                tx.put(replace(left, superseded_by=_uid(receipt)), "promote")
        self._tell_write(storage, grown_by(receipt) - 1)
        return receipt

    def _copy_to_global(self, storage: Storage, memory: Memory, ready: pipeline.Ready) -> Receipt:
        """Between spaces: the target first. A promotion that is cut short in between is made whole by the next."""
        target, stamp = self._spaces.ensure_shared(), self._stamp()
        with target.writing(stamp) as tx:
            receipt = _arrived_before(tx, memory, ready)
            if receipt is None:
                receipt = _arrive(tx, memory, ready, self._place(target, stamp.at))
        with storage.writing(stamp) as tx:
            _leave(tx, memory, _uid(receipt))
        self._tell_write(target, grown_by(receipt))
        self._tell_write(storage, -1)
        return receipt

    def _status_once_promoted(self, memory: Memory, to: Tier) -> Status:
        is_vouched_for = memory.status != "candidate" or self._origin == "user" or to == GLOBAL
        return "candidate" if not is_vouched_for else "pinned" if memory.status == "pinned" else "confirmed"

    def _known(self, where: Where, limit: int | None, *, is_global: bool = False) -> Memories:
        """Memories of the project, or of global memory, newest first; all of them when there is no limit."""
        found: Memories = []
        for storage in self._readable():
            if (storage.space == GLOBAL) == is_global:
                with storage.reading() as reader:
                    found = reader.select(where, limit=reader.count(where) if limit is None else limit)
        self._tell_read(found)
        return found

    def _message_of(self, failure: str) -> str:
        """The error in a text, in a line; secrets go first, because what is cut in two is no longer recognised."""
        rules = self._rules()
        safe = redact(failure, email=rules.redact_email, allow=rules.allow).text
        message = error_message(safe) or next((line.strip() for line in safe.splitlines() if line.strip()), "")
        if not message:
            raise InvalidInput("There is no failure: the text is empty.", hint="Give the message of the error.")
        return message[:MAX_MESSAGE_CHARS]


def _check_promotion(memory: Memory, to: Tier) -> None:
    if to not in PROMOTED_TO:
        raise InvalidInput(f"Nothing is promoted to {to!r}.", hint=f"Choose {' or '.join(PROMOTED_TO)}.")
    if LOWEST_FIRST.index(to) <= LOWEST_FIRST.index(memory.tier):
        raise InvalidInput(
            f"Memory {memory.ref} is of tier {memory.tier} already.",
            hint="Promotion leads from task and session to project, and from there to global.",
        )
    if memory.scope != "memory":
        raise InvalidInput(
            f"Memory {memory.ref} was extracted from a file, which it goes with.", hint="`kept remember` keeps it."
        )


def _as_draft(memory: Memory, to: Tier) -> Draft:
    """The memory as its promoter puts it forward: the tags of a note speak of its task, which it leaves."""
    of_task = ("task", (memory.data or {}).get("stage")) if memory.tier == "task" else ()
    return memory.as_draft(
        tags=tuple(tag for tag in memory.tags if tag not in of_task),
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
    current = tx.get(Memory, memory.id)
    if current is None:
        raise NotFound(f"Memory {memory.ref} was erased meanwhile.")
    if current.is_archived or current.fingerprint != memory.fingerprint:
        raise InvalidInput(f"Memory {memory.ref} was changed meanwhile.", hint="Look at it, and promote it again.")
    at = tx.stamp.at
    return tx.put(
        replace(current, status="archived", reason="superseded", superseded_by=heir, archived_at=at, updated_at=at),
        "promote",
    )


def _uid(receipt: Receipt) -> str | None:
    return None if receipt.memory is None else receipt.memory.uid


def _forget_some(storage: Storage, where: Where, stamp: Stamp) -> int:
    """Forget a batch of what is meant; how many there were."""
    with storage.writing(stamp, urgent=True) as tx:
        batch = tx.select(where, limit=BATCH)
        for memory in batch:
            at = stamp.at
            tx.put(replace(memory, status="archived", reason="forgotten", archived_at=at, updated_at=at), "forget")
    return len(batch)
