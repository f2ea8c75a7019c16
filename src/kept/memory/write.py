"""Remembering: drafts go the write path, in batches, each with a receipt.

Changing what is there: feedback, revisions, pins, and the three ways of letting go.

Narratives: the running story that a memory was written in, to be walked both ways.

Facade layer. A memory knows its narrative (`memory.source.narrative`), a narrative its memories. Rule: a narrative is
a name on memories and nothing else; it begins with the first memory that carries it.
"""

import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from kept import ids
from kept.errors import Busy, InvalidInput
from kept.memory.context import BATCH, Memories, Opened, Receipts, Ref
from kept.model import Draft, Event, Memory, Name, Receipt, Source, Tier, replace, several
from kept.ports import Scrubbed, Shelf, Storage, Where
from kept.projects.mirrors import check_session_name
from kept.writing import pipeline
from kept.writing.admit import DELIBERATE, SOURCES, Echoes, echoes_of

Batch = list[pipeline.Ready | Receipt]

MAX_SOURCE_BYTES = 256 * 1024  # of a README: beyond that nobody reads it either


class Remembering(Opened):
    """What puts new memories in."""

    def remember(
        self,
        content: str,
        *,
        kind: str = "fact",
        tags: Sequence[str] = (),
        files: Sequence[Name] = (),
        importance: float | None = None,
        pin: bool = False,
        tier: Tier = "project",
        topic: str | None = None,
        source: Source | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Keep one statement. The receipt says whether it was stored, strengthened one, or was refused, and why."""
        draft = Draft(
            content=content,
            kind=kind,
            tags=several(tags),
            files=several(files),
            importance=importance,
            pin=pin,
            tier=tier,
            topic=topic,
            source=source,
            key=key,
        )
        return self.remember_many([draft])[0]

    def remember_many(self, drafts: Iterable[Draft | str]) -> list[Receipt]:
        """Keep many statements the same way, in batches; one receipt each, in order. A string is a fact."""
        drafts = _as_drafts(drafts)
        rules = self._rules()
        if any(isinstance(draft.source, Source) and draft.source.origin not in DELIBERATE for draft in drafts):
            rules = replace(rules, echoes=self._echoes())
        prepared = [pipeline.prepare(draft, rules) for draft in drafts]
        receipts: list[Receipt] = []
        for batch in _batches(prepared):
            receipts += self._store(batch)
        self._count_reasons(receipts)
        return receipts

    def _echoes(self) -> Echoes:
        """What the files say that the project keeps for its agents and readers."""
        folder = self._spaces.folder()
        if folder is None:
            return Echoes()
        texts = []
        for name in SOURCES:
            # No such file, or one we may not read: then nothing can echo it.
            with suppress(OSError), (folder / name).open("rb") as file:
                texts.append(file.read(MAX_SOURCE_BYTES).decode("utf-8", "replace"))
        return echoes_of(texts)

    def _store(self, batch: Batch) -> Receipts:
        """One transaction for drafts that go to the same space; refusals pass through in their places."""
        first = next((ready.draft for ready in batch if isinstance(ready, pipeline.Ready)), None)
        if first is None:
            return [refusal for refusal in batch if isinstance(refusal, Receipt)]
        storage = self._writable(first)
        with storage.writing(self._stamp()) as tx:
            receipts = pipeline.store(tx, batch, self._place(storage, tx.stamp.at))
        self._tell_write(storage, sum(map(grown_by, receipts)))
        return receipts

    def _place(self, storage: Storage, at: datetime) -> pipeline.Destination:
        return pipeline.Destination(
            space=storage.space,
            at=at,
            new_uid=lambda: ids.uuid7(at, secrets.token_bytes(ids.UID_ENTROPY_BYTES)),
        )

    def _count_reasons(self, receipts: Sequence[Receipt]) -> None:
        """Count what was refused, and why, so that a person sees how much junk was kept out."""
        reasons = Counter(receipt.reason for receipt in receipts if receipt.outcome == "refused" and receipt.reason)
        storage = self._spaces.project()
        if reasons and storage is not None:
            with storage.bookkeeping() as notes:
                if notes is not None:
                    notes.count({f"refused:{reason}": number for reason, number in reasons.items()})


def _as_drafts(drafts: Iterable[Draft | str]) -> list[Draft]:
    """Raises InvalidInput for what is neither a draft nor a text."""
    if isinstance(drafts, str | Draft | Mapping) or not isinstance(drafts, Iterable):
        raise InvalidInput("That is one statement, not many.", hint="Give a list, or call remember().")
    made = [Draft(content=draft) if isinstance(draft, str) else draft for draft in drafts]
    for number, draft in enumerate(made, 1):
        if not isinstance(draft, Draft):
            raise InvalidInput(
                f"Statement {number} is neither a Draft nor a text, but of type {type(draft).__name__}.",
                hint='Give strings, or kept.Draft(content="…", kind="decision").',
            )
    return made


def grown_by(receipt: Receipt) -> int:
    """By how many live memories a write made a space grow."""
    is_new = receipt.outcome in ("stored", "candidate") and receipt.reason != "already_stored"
    return is_new - len(receipt.superseded)


def _batches(prepared: Iterable[pipeline.Ready | Receipt]) -> Iterator[Batch]:
    """Drafts in order, in runs that go to the same space and are not too long for one transaction."""
    batch: Batch = []
    is_global: bool | None = None
    for ready in prepared:
        wants_global = ready.draft.tier == "global" if isinstance(ready, pipeline.Ready) else is_global
        if batch and (len(batch) == BATCH or (is_global is not None and wants_global != is_global)):
            yield batch
            batch = []
        batch.append(ready)
        is_global = wants_global
    if batch:
        yield batch


MAX_FEEDBACK = 100


class Changing(Opened):
    """What changes one memory."""

    def reinforce(self, ref: Ref) -> Memory:
        """This one helped: feedback +3, and its recency starts anew."""
        return self._revalue(ref, self._settings.reinforce_weight, "reinforce")

    def demote(self, ref: Ref) -> Memory:
        """This one was wrong, stale or beside the point: feedback −1."""
        return self._revalue(ref, -self._settings.demote_weight, "demote")

    def revise(self, ref: Ref, content: str, tags: Sequence[str] | None = None) -> Memory:
        """Correct a memory in place. It keeps its id and its feedback and counts as verified now."""
        storage, memory = self._find(ref)
        rules = self._rules()
        return self._put(storage, memory, "revise", lambda m, at: pipeline.revise(m, content, tags, rules, at))

    def pin(self, ref: Ref) -> Memory:
        """Always bring this one along."""
        storage, memory = self._find_live(ref)
        return self._put(storage, memory, "pin", lambda m, at: replace(m, status="pinned", updated_at=at))

    def unpin(self, ref: Ref) -> Memory:
        """No longer bring it along by itself; it stays confirmed."""
        storage, memory = self._find_live(ref)
        if memory.status != "pinned":
            raise InvalidInput(f"Memory {memory.ref} is not pinned.")
        return self._put(storage, memory, "unpin", lambda m, at: replace(m, status="confirmed", updated_at=at))

    def forget(self, ref: Ref) -> Memory:
        """Hide a memory from every search, scope and export. `restore` or `undo` brings it back."""
        storage, memory = self._find(ref)
        if memory.is_forgotten:
            return memory

        def change(memory: Memory, at: datetime) -> Memory:
            return replace(memory, status="archived", reason="forgotten", archived_at=at, updated_at=at)

        return self._put(storage, memory, "forget", change, urgent=True)

    def restore(self, ref: Ref) -> Memory:
        """Bring a memory back from the archive, or one that was forgotten, with the status it had."""
        storage, memory = self._find(ref)
        if not memory.is_archived:
            return memory
        with storage.reading() as reader:
            events = reader.events(subject=memory.uid, newest_first=True)
        status = next((status for event in events if (status := _status_before_archiving(event))), "candidate")

        def change(memory: Memory, at: datetime) -> Memory:
            return replace(memory, status=status, reason=None, archived_at=None, superseded_by=None, updated_at=at)

        return self._put(storage, memory, "restore", change)

    def erase(self, ref: Ref) -> Receipt:
        """Remove a memory for good: no byte of it stays in the home. This cannot be undone."""
        return self.erase_many([ref])[0]

    def erase_many(self, refs: Iterable[Ref]) -> Receipts:
        """Remove memories for good, as one call and with one cleaning of the files; a receipt each, in order."""
        if isinstance(refs, str | bytes):
            raise InvalidInput("That is one ref, not many.", hint="Give a list, or call erase().")
        found = [self._find(ref) for ref in refs]
        for storage, memory in found:
            self._check_change(storage.space, memory.kind, f"Erase global memory {memory.ref} for good?")
        stamp = self._stamp()
        scrubbed: dict[str, Scrubbed] = {}
        for storage in {storage.space: storage for storage, _ in found}.values():
            memories = list({memory.uid: memory for owner, memory in found if owner is storage}.values())
            for start in range(0, len(memories), BATCH):
                with storage.writing(stamp, urgent=True) as tx:
                    for memory in memories[start : start + BATCH]:
                        tx.erase(memory)
            try:
                scrubbed[storage.space] = storage.scrub()
            except Busy:  # they are erased; only the cleaning has to wait
                scrubbed[storage.space] = Scrubbed(is_done=False)
            self._tell_write(storage, -sum(not memory.is_archived for memory in memories))
        return [_erased(memory, scrubbed[storage.space]) for storage, memory in found]

    def _revalue(self, ref: Ref, points: int, action: str) -> Memory:
        storage, memory = self._find_live(ref)

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

        return self._put(storage, memory, action, change)


def _erased(memory: Memory, scrubbed: Scrubbed) -> Receipt:
    """What is left of an erased memory, and where a person has to look."""
    sentences = [f"Memory {memory.ref} is gone for good."]
    if not scrubbed.is_done:
        sentences = [
            f"Memory {memory.ref} is erased; another program still reads old pages of the file, or the disk is full.",
            "What is left of it is cleared as soon as that is over, at the next opening.",
        ]
    if scrubbed.backups:
        sentences.append(f"It was taken out of {scrubbed.backups} backup{'s' if scrubbed.backups > 1 else ''}, too.")
    if scrubbed.elsewhere:
        sentences.append(f"Backups that Kept cannot reach may still hold it: {', '.join(scrubbed.elsewhere)}.")
    return Receipt(
        outcome="stored",
        ref=memory.ref,
        reason="erased" if scrubbed.is_done else "pending",
        message=" ".join(sentences),
    )


def _status_before_archiving(event: Event) -> str | None:
    before, after = (event.changed or {}).get("status", (None, None))
    return before if after == "archived" else None


MOST = 10_000
SHELVES: tuple[Shelf, ...] = ("live", "archive")


class Narrative:
    """One story. What is remembered through it belongs to it."""

    def __init__(self, memory: "Narratives", id: str) -> None:
        self.id = id
        self._memory = memory

    def remember(self, content: str, **about: Any) -> Receipt:
        """As `memory.remember`, as part of this story."""
        given = about.pop("source", None) or Source(origin=self._memory._origin, agent=self._memory._actor.name)
        source = Source(
            origin=given.origin, agent=given.agent, session=given.session, task=given.task, narrative=self.id
        )
        return self._memory.remember(content, source=source, **about)

    def memories(self) -> Memories:
        """What was written in this story, in its order; what was archived since then, too."""
        found: Memories = []
        for storage in self._memory._readable():
            with storage.reading() as reader:
                for shelf in SHELVES:
                    found += reader.select(Where(shelf=shelf, scope=None, narrative=self.id), limit=MOST)
        return sorted(found, key=lambda memory: (memory.created_at, memory.id))


class Narratives(Remembering):
    """What tells stories apart."""

    def narrative(self, id: str) -> Narrative:
        """The story of that id, to add to and to walk."""
        return Narrative(self, check_session_name(id))

    def narrative_of(self, ref: Ref) -> Narrative | None:
        """The story that a memory was written in, if it was in one."""
        _, memory = self._find(ref)
        return None if memory.source.narrative is None else Narrative(self, memory.source.narrative)
