"""Check the form of a draft: types, sizes, and what JSON and UTF-8 can carry.

The write path begins here, before any rule of worth. Rule: what cannot be stored exactly is an error and changes
nothing; what could be stored but should not be is refused later, with a reason, in the receipt.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from math import isfinite
from typing import Any, get_args

import msgspec
from msgspec.structs import replace

from kept.errors import InvalidInput
from kept.model import KINDS, SOURCE_NAMES, TRUSTS, Draft, Origin, Scope, Source, Tier, canonical_kind, several

TIERS: tuple[Tier, ...] = get_args(Tier)
SCOPES: tuple[Scope, ...] = get_args(Scope)
ORIGINS: tuple[Origin, ...] = get_args(Origin)
MAX_TEXT_BYTES = 1_000_000  # beyond this it is a file, not a thought; and it must not reach the rules
MAX_TAGS = 50
MAX_FILES = 200
MAX_NAME_CHARS = 500
MAX_DATA_BYTES = 64 * 1024  # of a memory, as JSON
FIRST_YEAR, LAST_YEAR = 1970, 9999
MAX_DEPTH = 100  # of lists and dictionaries in each other; Python itself ends at a thousand
DRAFT_NAMES = ("topic", "key", "title", "item_type")


def check(draft: Draft) -> Draft:
    """Return the draft with kind, tags and files in their usual form. Raises InvalidInput for what cannot be stored."""
    check_text(draft.content, "The text", MAX_TEXT_BYTES)
    if not draft.content.strip():
        raise InvalidInput("There is nothing to remember: the text is empty.", hint="Give one statement worth keeping.")
    kind = _clean_kind(draft.kind)
    _check_names(draft, DRAFT_NAMES, "")
    _check_choice(draft.tier, "tier", TIERS)
    _check_choice(draft.scope, "scope", SCOPES)
    if draft.importance is not None:
        _check_share(draft.importance, "importance")
    _check_share(draft.confidence, "confidence")
    if draft.trust is not None:
        _check_choice(draft.trust, "trust", TRUSTS)
    if draft.source is not None:
        _check_source(draft.source)
    if draft.scope == "items" and not _is_extracted(draft.source):
        raise InvalidInput("Only an extraction stores items.", hint="`kept extract` reads them from files.")
    if draft.data is not None:
        check_json(draft.data, "data", MAX_DATA_BYTES)
    if draft.created_at is not None:
        check_moment(draft.created_at, "created_at")
    files = _clean_names(several(draft.files), "file", MAX_FILES)
    return replace(draft, kind=kind, tags=clean_tags(draft.tags), files=files)


def _clean_kind(given: str) -> str:
    check_text(given, "kind", MAX_NAME_CHARS)
    kind = canonical_kind(given)
    if not kind or not kind.replace("_", "").isalnum():
        raise InvalidInput(f"{given!r} is not a valid kind.", hint=f"Use one word, for example: {', '.join(KINDS)}.")
    return kind


def clean_tags(tags: Iterable[str] | None) -> tuple[str, ...]:
    """Tags without spaces around them, without repeats; "a, b" is two."""
    return _clean_names([part for tag in several(tags) for part in tag.split(",")], "tag", MAX_TAGS)


def check_text(text: str, name: str, limit: int) -> None:
    """Raise InvalidInput for anything but a string that every storage, terminal and file can carry unchanged."""
    if not isinstance(text, str):
        raise InvalidInput(f"{name} must be a string, not {type(text).__name__}.")
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


def check_moment(at: datetime, name: str) -> None:
    """Raise InvalidInput for a time that has no time zone, or that may be out of reach in UTC."""
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise InvalidInput(f"{name} has no time zone.", hint="Use datetime(…, tzinfo=UTC).")
    if not FIRST_YEAR <= at.year < LAST_YEAR:
        raise InvalidInput(f"{name} is in the year {at.year}.", hint="Check the timestamp.")


def _check_names(of: Draft | Source, names: Sequence[str], whose: str) -> None:
    for name in names:
        value = getattr(of, name)
        if value is not None:
            check_text(value, f"{name}{whose}", MAX_NAME_CHARS)


def _check_choice(value: str, name: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise InvalidInput(f"Unknown {name} {value!r}.", hint=f"Choose one of {', '.join(choices)}.")


def _check_share(number: float, name: str) -> None:
    if isinstance(number, bool) or not isinstance(number, float | int):
        raise InvalidInput(f"{name} must be a number, not {type(number).__name__}.")
    if not 0 <= number <= 1:
        raise InvalidInput(f"{name} must be between 0 and 1, got {number!r}.")


def _is_extracted(source: Source | None) -> bool:
    return source is not None and bool(source.file) and source.origin in ("extraction", "import")


def _check_source(source: Source) -> None:
    if not isinstance(source, Source):
        raise InvalidInput(f"source must be a kept.Source, not {type(source).__name__}.")
    _check_choice(source.origin, "origin", ORIGINS)
    _check_names(source, SOURCE_NAMES, " of the source")
    if source.line is not None and not isinstance(source.line, int):
        raise InvalidInput(f"line of the source must be a number, not {type(source.line).__name__}.")


def check_json(data: dict[str, Any], name: str, limit: int) -> None:
    """Raise InvalidInput unless this is a dictionary that JSON can hold unchanged, in at most `limit` bytes."""
    if not isinstance(data, dict):
        raise InvalidInput(f"{name} must be a dictionary, not {type(data).__name__}.")
    try:
        is_json = _is_json(data, MAX_DEPTH)
        size = len(msgspec.json.encode(data)) if is_json else 0
    except (RecursionError, UnicodeEncodeError, TypeError):  # half of a surrogate pair
        is_json = False
    if not is_json:
        raise InvalidInput(
            f"{name} cannot be stored as JSON unchanged.",
            hint="Use strings, finite numbers, true, false and None, in lists and in dictionaries with string keys, "
            f"at most {MAX_DEPTH} deep.",
        )
    if size > limit:
        raise InvalidInput(
            f"{name} is {size:,} bytes long as JSON; the limit is {limit:,}.",
            hint="Keep whole files as files, and name them.",
        )


def _is_json(value: Any, depth: int) -> bool:
    if isinstance(value, dict | list | tuple):
        if not depth or (isinstance(value, dict) and not all(isinstance(key, str) for key in value)):
            return False
        inner = value.values() if isinstance(value, dict) else value
        return all(_is_json(one, depth - 1) for one in inner)
    return value is None or (isfinite(value) if isinstance(value, float) else isinstance(value, str | int))


def _clean_names(names: Iterable[str], what: str, limit: int) -> tuple[str, ...]:
    cleaned = tuple(dict.fromkeys([stripped for name in names if (stripped := name.strip())]))
    if len(cleaned) > limit:
        raise InvalidInput(f"A memory can have at most {limit} {what}s, got {len(cleaned)}.")
    for name in cleaned:
        check_text(name, f"A {what}", MAX_NAME_CHARS)
    return cleaned
