"""Remembering: drafts go the write path, in batches, each with a receipt."""

import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from kept import ids
from kept.errors import InvalidInput
from kept.model import Draft, Name, Receipt, Source, Tier, replace, several
from kept.opened import BATCH, Opened, Receipts
from kept.ports import Storage
from kept.writing import pipeline
from kept.writing.admit import DELIBERATE
from kept.writing.echo import SOURCES, Echoes, echoes_of

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

    def _place(self, storage: Storage, at: datetime) -> pipeline.Place:
        return pipeline.Place(
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
