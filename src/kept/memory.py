"""Kept: the facade. Who may, in which order, one transaction each.

Every public verb is a short method here: it finds the storage, asks access.py, lets the steps do
the work, and emits the signal. Rule: one call is one group of events, undone as a whole.
"""

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from kept import access, ids, journal, recalling
from kept.disk import shown
from kept.errors import Busy, Corrupt, InvalidInput, NotAllowed, NotFound
from kept.model import (
    GLOBAL,
    Actor,
    Alias,
    Conflict,
    Draft,
    Event,
    Memory,
    Origin,
    Recalled,
    Receipt,
    Record,
    Source,
    Tier,
    replace,
)
from kept.ports import ANYWHERE, BackedUp, Clock, Reader, Restored, Scrubbed, Shelf, Stamp, Storage, Where
from kept.recall.latency import Latencies
from kept.recall.rerank import Reranker
from kept.recalling import Explained, Question, RecallScope
from kept.settings import PRESETS, Settings
from kept.signals import Signals, Subscriber
from kept.spaces import Spaces, is_of_global
from kept.writing import pipeline

Ref = int | str
# Named here, because inside the class `list` is one of our verbs.
Memories = list[Memory]
Events = list[Event]
Storages = list[Storage]
Receipts = list[Receipt]
Batch = list[pipeline.Ready | Receipt]
Confirm = Callable[[str], bool]
ListStatus = Literal["candidate", "confirmed", "pinned", "archived", "forgotten"]

BATCH = 500  # drafts a transaction in remember_many: long enough to be fast, short enough to let others have a turn
MAX_FEEDBACK = 100
FEEDBACK = ("reinforce", "demote")


class Kept:
    """A memory that was opened for one project, on behalf of one actor. Made by `kept.open`."""

    def __init__(
        self,
        spaces: Spaces,
        *,
        actor: Actor,
        settings: Settings,
        clock: Clock,
        confirm: Confirm | None = None,
        origin: Origin = "agent",
        timer: Callable[[], float] = time.perf_counter,
        reranker: Reranker | None = None,
    ) -> None:
        self._spaces = spaces
        self._actor = actor
        self._settings = settings
        self._clock = clock
        self._confirm = confirm
        self._origin = origin
        self._signals = Signals()
        self._timer = timer
        self._reranker = reranker
        self._latencies = Latencies()

    def __enter__(self) -> "Kept":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._settings

    # Writing

    def remember(
        self,
        content: str,
        *,
        kind: str = "fact",
        tags: Sequence[str] = (),
        files: Sequence[str] = (),
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
            tags=tuple(tags),
            files=tuple(files),
            importance=importance,
            pin=pin,
            tier=tier,
            topic=topic,
            source=source,
            key=key,
        )
        return self.remember_many([draft])[0]

    def remember_many(self, drafts: Iterable[Draft]) -> list[Receipt]:
        """Keep many statements the same way, in batches; one receipt each, in order."""
        rules = self._rules()
        prepared = [pipeline.prepare(draft, rules) for draft in drafts]
        receipts: list[Receipt] = []
        for batch in _batches(prepared):
            receipts += self._store(batch)
        self._count_reasons(receipts)
        return receipts

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
            self._tell_write(storage, -len(memories))
        return [_erased(memory, scrubbed[storage.space]) for storage, memory in found]

    def undo(self, event: Ref | None = None) -> Events:
        """Take back one call: the newest of this actor's that still stands, or the one that `event` belongs to.

        An event is its number in the project's journal, or `g12` in the global one. Returns the events that did it.
        Undoing an undo redoes. Raises NotAllowed when a later change is in the way (it names the events) or when
        what was changed has been erased.
        """
        storages = self._readable()
        group = self._newest_group(storages) if event is None else self._group_of(storages, event)
        stamp = self._stamp(undoes=group)
        done: Events = []
        for storage in storages:
            with storage.reading() as reader:
                is_touched = bool(reader.events(group=group, limit=1))
            if is_touched:
                self._check_change(storage.space, "", "Undo a change to global memory?")
                done += self._undo_in(storage, group, stamp)
        return done

    # Reading

    def recall(
        self,
        query: str,
        *,
        limit: int = 5,
        profile: str | None = None,
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        files: Sequence[str] = (),
        since: datetime | None = None,
        until: datetime | None = None,
        scope: RecallScope = "memory",
        follow: bool = False,
    ) -> Recalled:
        """The memories that fit a few key words best, with scores and reasons. No query raises for what it says.

        `files` are the files at hand: memories about them rank higher. `follow` also brings what was recalled
        together with the hits before. `scope` "archive" searches what has left.
        """
        question = Question(
            query=query,
            limit=limit,
            profile=profile,
            kinds=tuple(kinds),
            tags=tuple(tags),
            files=tuple(files),
            since=since,
            until=until,
            scope=scope,
            follow=follow,
        )
        storages, now = self._readable(), self._now()
        recalled = recalling.note(question, self._answer(question, storages, now), storages, now)
        self._signals.emit("memory:search", query=query, results=len(recalled.hits))
        return recalled

    def why(self, receipt: Ref | None = None) -> Explained:
        """What a recall returned, what just missed, and the numbers behind it: the last one, or the receipt's."""
        return recalling.explain(receipt, self._readable())

    def replay(self, receipt: Ref | None = None) -> Recalled:
        """Ask a receipt's question again, as of its moment, noting nothing. The same store gives the same answer."""
        explained = self.why(receipt)
        return self._answer(explained.question, self._readable(), explained.at)

    def get(self, ref: Ref) -> Memory:
        """The memory that answers to the ref, archived or not. Raises NotFound."""
        storage, memory = self._find(ref)
        self._signals.emit("memory:read", type="memory", path=storage.space, size=len(memory.content))
        return memory

    def list(
        self,
        *,
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        status: ListStatus | None = None,
        limit: int = 50,
        after: Ref | None = None,
    ) -> Memories:
        """Memories, newest first: the project's, then global ones. `after` is the last ref of the page before.

        `status` None means live; "archived" and "forgotten" show what has left.
        """
        if limit < 0:
            raise InvalidInput(f"A limit of {limit} makes no sense.", hint="Give 0 or more.")
        shelf: Shelf = "live"
        if status in ("archived", "forgotten"):
            shelf = "archive" if status == "archived" else "forgotten"
        elif status is not None and status not in ("candidate", "confirmed", "pinned"):
            raise InvalidInput(
                f"{status!r} is not a status.", hint="Choose candidate, confirmed, pinned, archived or forgotten."
            )
        where = Where(
            shelf=shelf,
            kinds=tuple(kinds),
            tags=tuple(tags),
            statuses=(status,) if status in ("candidate", "confirmed", "pinned") else (),
        )
        position = None if after is None else self._position(after)
        found: Memories = []
        for storage in self._readable():
            is_global = storage.space == GLOBAL
            if position is not None and position.is_global and not is_global:
                continue
            page_after = position.id if position is not None and position.is_global == is_global else None
            with storage.reading() as reader:
                found += reader.select(where, limit=limit - len(found), after=page_after)
        self._signals.emit("memory:read", type="memory", path="list", size=len(found))
        return found

    def history(self, ref: Ref | None = None, *, limit: int = 50, tier: Tier = "project") -> Events:
        """What happened to a memory, oldest first; without a ref, the newest events of the project (or of global)."""
        if ref is None:
            for storage in self._readable():
                if (storage.space == GLOBAL) == (tier == "global"):
                    with storage.reading() as reader:
                        return reader.events(newest_first=True, limit=limit)[::-1]
            return []
        storage, memory = self._find(ref)
        with storage.reading() as reader:
            return reader.events(subject=memory.uid)

    def status(self) -> dict[str, Any]:
        """Numbers about what is kept: a dictionary for each readable space."""
        spaces = []
        for storage in self._readable():
            with storage.reading() as reader:
                counts = {
                    "live": reader.count(),
                    "pinned": reader.count(Where(statuses=("pinned",))),
                    "candidates": reader.count(Where(statuses=("candidate",))),
                    "archived": reader.count(Where(shelf="archive", scope=None)),
                    "forgotten": reader.count(Where(shelf="forgotten", scope=None)),
                }
                newest = reader.events(newest_first=True, limit=1)
                counters = reader.counters()
            spaces.append(
                {
                    "space": storage.space,
                    "memories": counts,
                    "refused": {
                        name.removeprefix("refused:"): number
                        for name, number in sorted(counters.items())
                        if name.startswith("refused:")
                    },
                    "events": newest[0].seq if newest else 0,
                    "last_change": newest[0].at if newest else None,
                    **storage.describe(),
                }
            )
        return {"actor": self._as_actor(), "spaces": spaces}

    # Backups

    def backup(self, target: Path, *, tier: Tier = "project") -> BackedUp:
        """Write a verified copy of the project's store (or of the global one) to a new file, while others go on."""
        storage = next((one for one in self._readable() if (one.space == GLOBAL) == (tier == "global")), None)
        if storage is None:
            raise NotFound("Nothing is kept here yet, so there is nothing to back up.")
        return storage.back_up(target)

    def restore_backup(self, source: Path, *, overwrite_newer: bool = False) -> Restored:
        """Let the store hold what the backup holds. Asks first when that would lose changes, or is another project's.

        The backup says whether it is of global memory; otherwise it is put in the place of the opened project. What
        the store held before is kept beside it, and what was erased since the backup was made stays erased.
        """
        is_global = is_of_global(source)
        if is_global:
            self._check_change(GLOBAL, "", f"Put global memory back as it is in {shown(source)}?")
        try:
            storage = self._spaces.ensure_shared() if is_global else self._spaces.ensure_project()
        except Corrupt as damage:
            self._agree(f"{damage.message} Put {shown(source)} in its place, and keep the damaged file beside it?")
            return self._spaces.replace_damaged(source, shared=is_global)
        if not is_global:
            access.check_write(self._as_actor(), storage.space)
        try:
            restored = storage.restore_from(source, overwrite_newer=overwrite_newer)
        except NotAllowed as refusal:
            self._agree(f"{refusal.message} Restore it all the same?")
            restored = storage.restore_from(source, overwrite_newer=True)
        self._tell_write(storage, 0)
        return restored

    # Everything else

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Have `subscriber(signal)` called for every signal. Returns what ends that."""
        return self._signals.subscribe(subscriber)

    def close(self) -> None:
        """Close the files. Closing twice is allowed."""
        self._spaces.close()

    # How it is done

    def _rules(self) -> pipeline.Rules:
        return pipeline.Rules(
            preset=PRESETS[self._settings.preset],
            source=Source(origin=self._origin, agent=self._actor.name),
            redact_email=self._settings.redact_email,
        )

    def _store(self, batch: Batch) -> Receipts:
        """One transaction for drafts that go to the same space; refusals pass through in their places."""
        first = next((ready.draft for ready in batch if isinstance(ready, pipeline.Ready)), None)
        if first is None:
            return [refusal for refusal in batch if isinstance(refusal, Receipt)]
        storage = self._writable(first)
        with storage.writing(self._stamp()) as tx:
            at = tx.stamp.at
            place = pipeline.Place(
                space=storage.space,
                at=at,
                new_uid=lambda: ids.uuid7(at, secrets.token_bytes(ids.UID_ENTROPY_BYTES)),
            )
            receipts = [
                pipeline.store(tx, ready, place) if isinstance(ready, pipeline.Ready) else ready for ready in batch
            ]
        self._tell_write(storage, sum(receipt.outcome in ("stored", "candidate") for receipt in receipts))
        return receipts

    def _count_reasons(self, receipts: Sequence[Receipt]) -> None:
        """Count what was refused, and why, so that a person sees how much junk was kept out."""
        reasons = Counter(receipt.reason for receipt in receipts if receipt.outcome == "refused" and receipt.reason)
        storage = self._spaces.project()
        if reasons and storage is not None:
            with storage.bookkeeping() as notes:
                if notes is not None:
                    notes.count({f"refused:{reason}": number for reason, number in reasons.items()})

    def _answer(self, question: Question, storages: Storages, now: datetime) -> Recalled:
        return recalling.answer(
            question,
            storages,
            settings=self._settings,
            now=now,
            timer=self._timer,
            latencies=self._latencies,
            reranker=self._reranker,
        )

    def _as_actor(self) -> Actor:
        """The actor, with the opened project as its own when it came without one."""
        if self._actor.role == "project" and self._actor.project is None:
            project = self._spaces.project()
            return replace(self._actor, project=project.space if project else None)
        return self._actor

    def _readable(self) -> Storages:
        """The storages there are, the project's first. Raises NotAllowed when the actor may read none at all."""
        found = [storage for storage in (self._spaces.project(), self._spaces.shared()) if storage is not None]
        actor = self._as_actor()
        for storage in found:
            access.check_read(actor, storage.space)
        if actor.role == "skill":
            access.check_read(actor, GLOBAL)
        return found

    def _writable(self, draft: Draft) -> Storage:
        """The storage a draft goes to. Global preferences are asked about first."""
        if self._actor.role == "skill":
            access.check_write(self._actor, GLOBAL)
        if draft.tier != "global":
            storage = self._spaces.ensure_project()
            access.check_write(self._as_actor(), storage.space)
            return storage
        self._check_change(GLOBAL, draft.kind, f"Remember this {draft.kind} in global memory, for all projects?")
        return self._spaces.ensure_shared()

    def _check_change(self, space: str, kind: str, question: str) -> None:
        """Raise NotAllowed unless the actor may change this; into global only patterns go without a person's yes."""
        consent = False
        if space == GLOBAL and self._actor.role == "project":
            consent = kind == "pattern" or (self._confirm is not None and self._confirm(question))
        access.check_write(self._as_actor(), space, consent=consent)

    def _agree(self, question: str) -> None:
        """Raise NotAllowed unless a person says yes."""
        if self._confirm is None or not self._confirm(question):
            raise NotAllowed(f"This needs a yes: {question}", hint="Give `confirm=` to kept.open, or `--yes`.")

    def _find(self, ref: Ref) -> tuple[Storage, Memory]:
        """The memory and its storage, behind the one check."""
        wanted = ids.parse_ref(ref)
        for storage in self._readable():
            if wanted.uid is None and (storage.space == GLOBAL) != wanted.is_global:
                continue
            with storage.reading() as reader:
                if wanted.uid is None:
                    memory = reader.get(Memory, wanted.id)
                else:
                    memory = next(iter(reader.select(replace(ANYWHERE, uid=wanted.uid), limit=1)), None)
            if memory is not None:
                return storage, memory
        raise NotFound(f"There is no memory {wanted}.", hint="`kept list` shows what there is.")

    def _position(self, after: Ref) -> ids.Ref:
        """The id where a page ended, also of a memory that is no longer there."""
        position = ids.parse_ref(after)
        return position if position.uid is None else ids.parse_ref(self._find(after)[1].ref)

    def _find_live(self, ref: Ref) -> tuple[Storage, Memory]:
        storage, memory = self._find(ref)
        if memory.is_archived:
            raise InvalidInput(
                f"Memory {memory.ref} is archived ({memory.reason}).",
                hint=f"`kept restore {memory.ref}` brings it back.",
            )
        return storage, memory

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

    def _put(
        self,
        storage: Storage,
        memory: Memory,
        action: str,
        change: Callable[[Memory, datetime], Memory],
        *,
        urgent: bool = False,
    ) -> Memory:
        """Change one memory as it is now, inside the transaction, not as it was when we looked."""
        if action in FEEDBACK:  # says something about a memory, changes nothing of what it says: nobody is asked
            access.check_write(self._as_actor(), storage.space, consent=True)
        else:
            self._check_change(storage.space, memory.kind, f"{action.capitalize()} global memory {memory.ref}?")
        with storage.writing(self._stamp(), urgent=urgent) as tx:
            current = tx.get(Memory, memory.id)
            if current is None:
                raise NotFound(f"Memory {memory.ref} was erased meanwhile.")
            changed = tx.put(change(current, tx.stamp.at), action)
        self._tell_write(storage, 0)
        return changed

    def _stamp(self, undoes: str | None = None) -> Stamp:
        return Stamp(group=secrets.token_hex(8), at=self._now(), actor=self._actor_name(), undoes=undoes)

    def _actor_name(self) -> str:
        return self._actor.name

    def _now(self) -> datetime:
        at = self._clock()
        if at.tzinfo is None:
            raise InvalidInput("The clock returned a time without a time zone.", hint="Use datetime.now(UTC).")
        return at.astimezone(UTC)

    def _newest_group(self, storages: Storages) -> str:
        newest: list[tuple[datetime, str]] = []
        for storage in storages:
            with storage.reading() as reader:
                group = journal.newest_undoable(reader.events(newest_first=True), self._actor_name())
                if group is not None:
                    newest.append((reader.events(group=group, limit=1)[0].at, group))
        if not newest:
            raise NotFound(
                "There is nothing to undo.", hint="`kept undo EVENT` takes back one that `kept history` shows."
            )
        return max(newest)[1]

    def _group_of(self, storages: Storages, event: Ref) -> str:
        wanted = ids.parse_event_ref(event)
        for storage in storages:
            if (storage.space == GLOBAL) == wanted.is_global:
                with storage.reading() as reader:
                    found = reader.events(after=wanted.id - 1, limit=1)
                if found and found[0].seq == wanted.id:
                    return found[0].group
        raise NotFound(f"There is no event {wanted}.", hint="`kept history` shows them.")

    def _undo_in(self, storage: Storage, group: str, stamp: Stamp) -> Events:
        with storage.writing(stamp) as tx:
            events = tx.events(group=group)
            steps = journal.plan_undo(
                events,
                current=lambda event: _current(tx, event),
                later=lambda event: tx.events(subject=event.subject, after=event.seq),
                at=stamp.at,
            )
            for step in steps:
                if step.is_new and step.record is not None:
                    tx.add(step.record, "undo")
                elif step.record is not None:
                    tx.put(step.record, "undo")
                elif (record := tx.get(step.noun, step.id)) is not None:
                    tx.remove(record, "undo")
            return tx.events(group=stamp.group)

    def _tell_write(self, storage: Storage, delta: int) -> None:
        self._signals.emit("memory:write", type="memory", path=storage.space, delta=delta)


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


def _current(reader: Reader, event: Event) -> Record | None:
    """The record that an event is about, as it is now."""
    noun = journal.noun_of(event)
    if noun is Alias:
        return next((alias for alias in reader.all(Alias) if alias.subject == event.subject), None)
    if noun is Conflict:
        return reader.get(Conflict, ids.parse_conflict_ref(event.subject))
    return next(iter(reader.select(replace(ANYWHERE, uid=event.subject), limit=1)), None)
