"""Scan for secrets in what is not a memory: messages, summaries of sessions, tasks and aliases.

Part of `memory.store.scan`, as a check on what older rules let through. Rule: nothing here repeats a secret; a record
is named by its ref, and its earlier text is erased from its history.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from kept.memory.context import Context
from kept.model import GLOBAL, REDACT, Alias, Message, Record, Redaction, SessionRecord, TaskRecord, replace
from kept.ports import Storage, Transaction
from kept.projects.files import rewrite_mirror
from kept.writing.redact import Redacted, redact, redact_message


class LeakyRecord(Struct, frozen=True):
    """The ref of what held secrets, their kinds and counts, and whether they are gone."""

    ref: str
    found: tuple[Redaction, ...]
    is_fixed: bool


def scan_records(context: Context, storage: Storage, *, fix: bool) -> Iterator[LeakyRecord]:
    """Everything in the space, except memories, that holds secrets; `fix` takes them out."""
    with storage.reading() as reader:
        sessions = reader.all(SessionRecord)
        records: list[Record] = [*sessions, *reader.all(TaskRecord), *reader.all(Alias)]
    for record in records:
        clean, kinds = _clean_record(context, record)
        if clean != record:
            is_named = bool(_redacted(context, str(getattr(record, record.named_by))).found)
            if fix:
                _replace(context, storage, record, None if is_named else clean)
            yield LeakyRecord(f"{record.noun} {record.id}", _counted(kinds), fix and not is_named)
    for session in sessions:
        yield from _scan_messages(context, storage, session.name, fix=fix)


def _scan_messages(context: Context, storage: Storage, session: str, *, fix: bool) -> Iterator[LeakyRecord]:
    rules = context.rules()
    with storage.reading() as reader:
        said = reader.messages(session)
    changed: list[Message] = []
    for message in said:
        clean = redact_message(message, email=rules.redact_email, allow=rules.allow)
        if clean != message:
            changed.append(replace(clean, id=message.id))
            yield LeakyRecord(f"{session}#{message.n}", _counted(_kinds(context, message)), fix)
    if fix and changed:
        context.write(storage, lambda tx: tx.rewrite(changed), urgent=True)
        folder = context.spaces.sessions_folder() if storage.space != GLOBAL else None
        if folder is not None and folder.exists():
            with storage.reading() as reader:
                rewrite_mirror(folder, reader, session)


def _clean_record(context: Context, record: Record) -> tuple[Record, list[str]]:
    """The record without secrets, and the kinds of those that it held."""
    kinds: list[str] = []

    def clean(text: str) -> str:
        redacted = _redacted(context, text)
        kinds.extend(one.kind for one in redacted.found)
        return redacted.text

    if isinstance(record, SessionRecord):
        return replace(record, summary=clean(record.summary)), kinds
    if isinstance(record, TaskRecord):
        return replace(
            record,
            name=clean(record.name),
            description=clean(record.description),
            milestone=None if record.milestone is None else clean(record.milestone),
            acceptance_criteria=tuple(map(clean, record.acceptance_criteria)),
        ), kinds
    assert isinstance(record, Alias)
    return replace(record, word=clean(record.word), expands_to=tuple(map(clean, record.expands_to))), kinds


def _replace(context: Context, storage: Storage, record: Record, clean: Record | None) -> None:
    def work(tx: Transaction) -> None:
        tx.erase(record)
        if clean is not None:
            tx.add(clean, REDACT)

    context.write(storage, work, urgent=True)


def _kinds(context: Context, message: Message) -> list[str]:
    texts = [message.content, message.name or "", message.speaker or "", msgspec.json.encode(message.input).decode()]
    return [one.kind for text in texts for one in _redacted(context, text).found]


def _redacted(context: Context, text: str) -> Redacted:
    rules = context.rules()
    return redact(text, email=rules.redact_email, allow=rules.allow)


def _counted(kinds: Iterable[str]) -> tuple[Redaction, ...]:
    return tuple(Redaction(kind=kind, count=count) for kind, count in sorted(Counter(kinds).items()))
