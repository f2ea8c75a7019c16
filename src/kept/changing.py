"""Changing what is there: feedback, revisions, pins, and the three ways of letting go."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from kept.errors import Busy, InvalidInput
from kept.model import Event, Memory, Receipt, replace
from kept.opened import BATCH, Opened, Receipts, Ref
from kept.ports import Scrubbed
from kept.writing import pipeline

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
