"""Redact a whole draft: every field that a person, an agent or a tool filled in.

The rules are in `redact.py`. Rule: one call covers everything that reaches a storage, so no writer can forget a field.
"""

from collections import Counter
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kept.model import Draft, Message, Redaction, Source
from kept.writing.redact import Redacted, redact


class RedactedDraft(Struct, frozen=True):
    """The draft that is safe to keep, and how many secrets of each kind were taken out of it."""

    draft: Draft
    redactions: tuple[Redaction, ...]


def redact_draft(draft: Draft, *, email: bool, allow: Collection[str] = ()) -> RedactedDraft:
    """Take the secrets out of every field."""
    allowed = frozenset(allow)
    kinds: list[str] = []

    def noted(redacted: Redacted) -> str:
        if redacted.found:
            kinds.extend([found.kind for found in redacted.found])
        return redacted.text

    def clean(text: str) -> str:
        return noted(redact(text, email=email, allow=allowed))

    def clean_name(name: str) -> str:
        return noted(_redacted_name(name, email, allowed))

    source = draft.source
    if source is not None:
        source, of_source = _clean_source(source, email, allowed)
        kinds.extend(of_source)
    safe = replace(
        draft,
        content=clean(draft.content),
        tags=tuple(map(clean_name, draft.tags)),
        files=tuple(map(clean_name, draft.files)),
        topic=None if draft.topic is None else clean_name(draft.topic),
        key=None if draft.key is None else clean(draft.key),
        title=None if draft.title is None else clean(draft.title),
        source=source,
        data=None if draft.data is None else _clean_data(draft.data, clean),
    )
    return RedactedDraft(safe, _counted(kinds) if kinds else ())


def _counted(kinds: list[str]) -> tuple[Redaction, ...]:
    return tuple(Redaction(kind=kind, count=count) for kind, count in sorted(Counter(kinds).items()))


def redact_message(message: Message, *, email: bool, allow: Collection[str] = ()) -> Message:
    """Take the secrets out of everything that was said or called."""

    def clean(text: str) -> str:
        return redact(text, email=email, allow=allow).text

    return replace(
        message,
        id=clean(message.id),
        content=clean(message.content),
        name=None if message.name is None else clean(message.name),
        speaker=None if message.speaker is None else clean(message.speaker),
        input=None if message.input is None else _clean_data(message.input, clean),
    )


def is_only_redacted(text: str) -> bool:
    """Whether nothing that could be read is left of a text."""
    rest = text
    while "[redacted:" in rest:
        before, _, after = rest.partition("[redacted:")
        rest = before + after.partition("]")[2]
    return not any(character.isalnum() for character in rest)


@lru_cache(maxsize=1024)  # a few tags, files and topics are named again and again
def _redacted_name(name: str, email: bool, allow: frozenset[str]) -> Redacted:
    return redact(name, email=email, allow=allow)


@lru_cache(maxsize=64)  # a few agents write most drafts
def _clean_source(source: Source, email: bool, allow: frozenset[str]) -> tuple[Source, tuple[str, ...]]:
    """A source without secrets, and the kinds of those that were in it."""
    kinds: list[str] = []
    cleaned: dict[str, str] = {}
    for name in ("agent", "session", "task", "narrative", "file"):
        if (value := getattr(source, name)) is not None:
            redacted = redact(value, email=email, allow=allow)
            kinds += [found.kind for found in redacted.found]
            cleaned[name] = redacted.text
    return replace(source, **cleaned), tuple(kinds)


def _clean_data(data: dict[str, Any], clean: Callable[[str], str]) -> dict[str, Any]:
    """The data as JSON text and back, so that a key can tell on its value: {"password": …}."""
    text = msgspec.json.encode(data).decode()
    cleaned = clean(text)
    if cleaned == text:
        return data
    try:
        return msgspec.json.decode(cleaned, type=dict[str, Any])
    except msgspec.MsgspecError:  # a secret that ran over a quote: nothing of it is safe to keep
        return {"redacted": "[redacted:error]"}
