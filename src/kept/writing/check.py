"""Is this a draft at all? Form, before any rule of worth.

First step of the write path. Rule: what cannot be stored exactly is an error and changes nothing;
what could be stored but should not be is refused later, with a reason, in the receipt.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from kept.errors import InvalidInput
from kept.model import KINDS, Draft, Memory, Origin, Source, Tier, canonical_kind

TIERS: tuple[Tier, ...] = ("task", "session", "project", "global")
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


def check(draft: Draft) -> Draft:
    """The draft with kind, tags and files in their usual form. Raises InvalidInput for what cannot be stored."""
    if not isinstance(draft.content, str):
        raise InvalidInput(f"The text is of type {type(draft.content).__name__}, and not a text.")
    if not draft.content.strip():
        raise InvalidInput("There is nothing to remember: the text is empty.", hint="Give one statement worth keeping.")
    check_text(draft.content, "The text", MAX_TEXT_BYTES)
    kind = canonical_kind(draft.kind)
    if not kind or not kind.replace("_", "").isalnum():
        raise InvalidInput(f"{draft.kind!r} is not a kind.", hint=f"Use one word, for example: {', '.join(KINDS)}.")
    for name, value in (("kind", kind), ("topic", draft.topic), ("key", draft.key), ("title", draft.title)):
        if value is not None:
            check_text(value, f"The {name}", MAX_NAME_CHARS)
    if draft.tier not in TIERS:
        raise InvalidInput(f"{draft.tier!r} is not a tier.", hint=f"Choose one of {', '.join(TIERS)}.")
    for name, number in (("importance", draft.importance), ("confidence", draft.confidence)):
        if number is not None and not 0 <= number <= 1:
            raise InvalidInput(f"The {name} {number!r} is not between 0 and 1.")
    if draft.source is not None:
        _check_source(draft.source)
    return replace(draft, kind=kind, tags=clean_tags(draft.tags), files=_clean_names(draft.files, "file", MAX_FILES))


def clean_tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Tags without spaces around them, without repeats; "a, b" is two."""
    return _clean_names([part for tag in tags for part in str(tag).split(",")], "tag", MAX_TAGS)


def check_text(text: str, name: str, limit: int) -> None:
    """Raise InvalidInput for text that no storage, terminal or file could carry unchanged."""
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


def _check_source(source: Source) -> None:
    if source.origin not in ORIGINS:
        raise InvalidInput(f"{source.origin!r} is not an origin.", hint=f"Choose one of {', '.join(ORIGINS)}.")
    for name in ("agent", "session", "task", "narrative", "file"):
        value = getattr(source, name)
        if value is not None:
            check_text(value, f"The {name} of the source", MAX_NAME_CHARS)


def _clean_names(names: Sequence[str], what: str, limit: int) -> tuple[str, ...]:
    cleaned = tuple(dict.fromkeys([stripped for name in names if (stripped := str(name).strip())]))
    if len(cleaned) > limit:
        raise InvalidInput(f"{len(cleaned)} {what}s are too many for one memory; the limit is {limit}.")
    for name in cleaned:
        check_text(name, f"A {what}", MAX_NAME_CHARS)
    return cleaned


def is_deliberate(memory: Memory) -> bool:
    """Whether a person or an agent remembered it on purpose (and not a rule, a tool or an import)."""
    return memory.source.origin in ("user", "agent")
