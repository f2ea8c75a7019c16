"""Check and redact records from elsewhere before they are joined with a store, and leave out erased texts.

Used by `joiner` and `imports`. Rule: a record that no store can hold is an InvalidInput. Secrets are redacted in every
text, and a history that has a secret, or that no journal could hold, is left out as a whole.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from types import ModuleType
from typing import Any

import msgspec

from kept import text
from kept.errors import InvalidInput
from kept.exchange import joining
from kept.model import Alias, Allowance, Event, Memory, Message, Record, SessionRecord, TaskRecord, replace
from kept.ports import ANYTHING, Reader
from kept.writing.check import check, check_moment, check_text
from kept.writing.pipeline import WriteRules
from kept.writing.redact import redact, redact_draft, redact_message

MIN_SECRET_CHARS = 8
MAX_MESSAGE_CHARS = 10_000_000
_OF_DRAFT = ("content", "kind", "tags", "files", "topic", "title", "key", "data", "source")
_MOMENTS = ("updated_at", "last_hit_at", "last_used_at", "verified_at", "archived_at")
_TEXTS = ("content", "title", "topic", "description")


class Cleaner:
    """Cleans records by the rules for writes. Without rules they pass unchanged: they were cleaned when written."""

    def __init__(self, rules: WriteRules | None) -> None:
        self._rules = rules
        self._allow = [] if rules is None else [*rules.allow]

    def allow(self, digest: str) -> None:
        """Let a value pass from now on that a person declared harmless."""
        self._allow.append(digest)

    def clean(self, record: Record | None, history: Iterable[Event]) -> tuple[Any, list[Event]]:
        """The record without secrets, and the events that another store can use. Raises InvalidInput."""
        events = joining.carried(history)
        if self._rules is None or record is None:
            return record, self._usable(events, record)
        clean = self._memory(record) if isinstance(record, Memory) else self._small(record)
        return clean, self._usable(events, record) if clean == record else []

    def message(self, message: Message) -> Message:
        """The message without secrets. Raises InvalidInput for one that no store can hold."""
        if self._rules is None:
            return message
        check_text(message.content, "The message", MAX_MESSAGE_CHARS)
        if message.at is not None:
            check_moment(message.at, "The time of the message")
        return redact_message(message, email=self._rules.redact_email, allow=self._allow)

    def _memory(self, memory: Memory) -> Memory:
        assert self._rules is not None
        draft = check(memory.as_draft())
        safe = redact_draft(draft, email=self._rules.redact_email, allow=self._allow).draft
        for name in _MOMENTS:
            if (at := getattr(memory, name)) is not None:
                check_moment(at, name)
        fields = {name: getattr(safe, name) for name in _OF_DRAFT}
        return replace(memory, **fields, fingerprint=text.fingerprint(safe.content))

    def _small(self, record: Record) -> Record:
        if isinstance(record, Allowance):
            return record
        for value in msgspec.structs.astuple(record):
            if isinstance(value, datetime):
                check_moment(value, "A time")
        clean = msgspec.convert(self._walked(msgspec.to_builtins(record)), type(record))
        if isinstance(record, TaskRecord | Alias | SessionRecord) and clean.subject != record.subject:
            raise InvalidInput("The name of a record must not contain a secret.")
        return clean

    def _usable(self, events: list[Event], record: Record | None) -> list[Event]:
        """The events with safe actors; none if one of them has a secret or cannot be in a journal."""
        if self._rules is None:
            return events
        events = [replace(event, actor=self._redacted(event.actor)[:200]) for event in events]
        known = {value for value in msgspec.structs.astuple(record) if isinstance(value, str)} if record else set()
        has_secret = any(self._redacted(said) != said for said in _texts_of(events) - known)
        return events if not has_secret and all(map(_is_sound, events)) else []

    def _walked(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._redacted(value)
        if isinstance(value, list):
            return [self._walked(one) for one in value]
        if isinstance(value, dict):
            return {name: self._walked(one) for name, one in value.items()}
        return value

    def _redacted(self, said: str) -> str:
        if self._rules is None or len(said) < MIN_SECRET_CHARS:
            return said
        return redact(said, email=self._rules.redact_email, allow=self._allow).text


def memory_without_erased(reader: Reader, memory: Memory, history: list[Event]) -> tuple[Memory, list[Event]]:
    """The memory without passages that were erased here; a history that has one is left out."""
    erase = _erase_if_needed(reader)
    if erase is None:
        return memory, history
    clean: Memory = erase.memory_without_erased(reader, memory)
    if clean != memory:
        return replace(clean, fingerprint=text.fingerprint(clean.content)), []
    return memory, [] if erase.tells_erased(reader, _texts_of(history)) else history


def messages_without_erased(reader: Reader, session: str, messages: Sequence[Message]) -> list[Message]:
    """The messages without those that were erased here, and without passages that were."""
    erase = _erase_if_needed(reader)
    if erase is None:
        return list(messages)
    clean: list[Message] = erase.without_erased(reader, session, messages)
    return clean


def _erase_if_needed(reader: Reader) -> ModuleType | None:
    """Return the module that finds erased passages; None if nothing was ever erased here."""
    if not reader.is_erased(ANYTHING):
        return None
    from kept.memory import erase  # stands above sessions, and few stores have ever erased anything

    return erase


def _texts_of(events: Iterable[Event]) -> set[str]:
    """The texts that these events wrote."""
    changes = ((name, after) for event in events for name, (_, after) in (event.changed or {}).items())
    return {after for name, after in changes if name in _TEXTS and isinstance(after, str)}


def check_uid(uid: str) -> str:
    """The uid, if it is a name that a journal can hold. Raises InvalidInput."""
    check_text(uid, "The uid", 100)
    if not uid or ":" in uid or (uid[0] == "c" and uid[1:].isdigit()):
        raise InvalidInput(f"{uid[:40]!r} cannot be the uid of a memory.")
    return uid


def _is_sound(event: Event) -> bool:
    """Whether a journal can hold the event."""
    try:
        check_moment(event.at, "at")
        for name in (event.group, event.action, event.undoes or ""):
            check_text(name, "The name", 200)
    except InvalidInput:
        return False
    return bool(event.group and event.action)
