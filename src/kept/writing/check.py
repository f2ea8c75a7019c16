"""Is this a draft at all? Form, before any rule of worth.

First step of the write path. Rule: what cannot be stored exactly is an error and changes nothing;
what could be stored but should not be is refused later, with a reason, in the receipt.
"""

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any

import msgspec
from msgspec.structs import replace

from kept.errors import InvalidInput
from kept.model import KINDS, Draft, Memory, Origin, Scope, Source, Tier, canonical_kind, several

TIERS: tuple[Tier, ...] = ("task", "session", "project", "global")
SCOPES: tuple[Scope, ...] = ("memory", "items", "sources")
ORIGINS: tuple[Origin, ...] = (
    "user",
    "agent",
    "conversation",
    "tool",
    "import",
    "migration",
    "extraction",
    "narrative",
)
MAX_TEXT_BYTES = 1_000_000  # beyond this it is a file, not a thought; and it must not reach the rules
MAX_TAGS = 50
MAX_FILES = 200
MAX_NAME_CHARS = 500
DRAFT_NAMES = ("topic", "key", "title", "item_type")
SOURCE_NAMES = ("agent", "session", "task", "narrative", "file")


def check(draft: Draft) -> Draft:
    """The draft with kind, tags and files in their usual form. Raises InvalidInput for what cannot be stored."""
    check_text(draft.content, "The text", MAX_TEXT_BYTES)
    if not draft.content.strip():
        raise InvalidInput("There is nothing to remember: the text is empty.", hint="Give one statement worth keeping.")
    check_text(draft.kind, "The kind", MAX_NAME_CHARS)
    kind = canonical_kind(draft.kind)
    if not kind or not kind.replace("_", "").isalnum():
        raise InvalidInput(f"{draft.kind!r} is not a kind.", hint=f"Use one word, for example: {', '.join(KINDS)}.")
    _check_names(draft, DRAFT_NAMES, "")
    if draft.tier not in TIERS:
        raise InvalidInput(f"{draft.tier!r} is not a tier.", hint=f"Choose one of {', '.join(TIERS)}.")
    if draft.scope not in SCOPES:
        raise InvalidInput(f"{draft.scope!r} is not a scope.", hint=f"Choose one of {', '.join(SCOPES)}.")
    if draft.importance is not None:
        _check_share(draft.importance, "importance")
    _check_share(draft.confidence, "confidence")
    if draft.source is not None:
        _check_source(draft.source)
    if draft.data is not None:
        _check_data(draft.data)
    return replace(
        draft, kind=kind, tags=clean_tags(draft.tags), files=_clean_names(several(draft.files), "file", MAX_FILES)
    )


def clean_tags(tags: Iterable[str] | None) -> tuple[str, ...]:
    """Tags without spaces around them, without repeats; "a, b" is two."""
    return _clean_names([part for tag in several(tags) for part in tag.split(",")], "tag", MAX_TAGS)


def check_text(text: str, name: str, limit: int) -> None:
    """Raise InvalidInput for what is no text, or one that no storage, terminal or file could carry unchanged."""
    if not isinstance(text, str):
        raise InvalidInput(f"{name} is of type {type(text).__name__}, and not a text.")
    if "\0" in text:
        raise InvalidInput(f"{name} contains a NUL character.", hint="Remove it; it cannot be stored as text.")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{name} contains half of a surrogate pair at position {error.start}, which is not a character.",
            hint="Decode the text properly first, for example with errors='replace'.",
        ) from error
    if size > limit:
        raise InvalidInput(
            f"{name} is {size:,} bytes long; the limit is {limit:,}.",
            hint="Remember one statement at a time; keep whole files as files.",
        )


def _check_names(of: Draft | Source, names: Sequence[str], whose: str) -> None:
    for name in names:
        value = getattr(of, name)
        if value is not None:
            check_text(value, f"The {name}{whose}", MAX_NAME_CHARS)


def _check_share(number: float, name: str) -> None:
    if isinstance(number, bool) or not isinstance(number, float | int):
        raise InvalidInput(f"The {name} is of type {type(number).__name__}, and not a number.")
    if not 0 <= number <= 1:
        raise InvalidInput(f"The {name} {number!r} is not between 0 and 1.")


def _check_source(source: Source) -> None:
    if not isinstance(source, Source):
        raise InvalidInput(f"The source is of type {type(source).__name__}, and not a Source.")
    if source.origin not in ORIGINS:
        raise InvalidInput(f"{source.origin!r} is not an origin.", hint=f"Choose one of {', '.join(ORIGINS)}.")
    _check_names(source, SOURCE_NAMES, " of the source")
    if source.line is not None and not isinstance(source.line, int):
        raise InvalidInput(f"The line of the source is of type {type(source.line).__name__}, and not a number.")


def _check_data(data: dict[str, Any]) -> None:
    if not isinstance(data, dict):
        raise InvalidInput(f"The data are of type {type(data).__name__}, and not a dictionary.")
    try:
        is_json = _is_json(data)
        msgspec.json.encode(data)
    except (RecursionError, UnicodeEncodeError, TypeError):  # too deep, half of a surrogate pair
        is_json = False
    if not is_json:
        raise InvalidInput(
            "The data hold what JSON cannot carry unchanged.",
            hint="Use text, finite numbers, true, false and None, in lists and in dictionaries whose keys are text.",
        )


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) for key in value) and all(map(_is_json, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_json, value))
    return value is None or (isfinite(value) if isinstance(value, float) else isinstance(value, str | int))


def _clean_names(names: Iterable[str], what: str, limit: int) -> tuple[str, ...]:
    cleaned = tuple(dict.fromkeys([stripped for name in names if (stripped := name.strip())]))
    if len(cleaned) > limit:
        raise InvalidInput(f"{len(cleaned)} {what}s are too many for one memory; the limit is {limit}.")
    for name in cleaned:
        check_text(name, f"A {what}", MAX_NAME_CHARS)
    return cleaned


def is_deliberate(memory: Memory) -> bool:
    """Whether a person or an agent remembered it on purpose (and not a rule, a tool or an import)."""
    return memory.source.origin in ("user", "agent")
