"""Take secrets and personal data out of texts, drafts and messages.

Second step of the write path, and the one choke point under every writer: nothing is stored, indexed, journaled or
logged that has not been through here. Pure: no I/O, no clock.

    fold the text (`secrets`)  →  every finder names spans (`secrets.shapes`, `secrets.cues`)  →  mask them
    →  again, until nothing new is found  →  replace the spans

Each finder runs in linear time; masking makes the result the same for a text that was redacted before.

Rule: a false alarm costs a word; a miss costs a key. When unsure, redact; when a finder fails, redact everything.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kept.errors import InvalidInput
from kept.model import SOURCE_NAMES, Draft, Message, Redaction, Source
from kept.text import digest
from kept.writing.secrets import MASK, FoldedText, Span, cues, disguises, shapes

_MARK = re.compile(r"\[redacted:([^\]]*)(?:\]|$)")  # what stands in the place of a secret
REDACTED_FIELDS = (
    "content",
    "kind",
    "tags",
    "files",
    "topic",
    "key",
    "title",
    "item_type",
    "source",
    "data",
)  # of a draft
SHORTEST_REPEATED = 5  # a shorter one stands by chance in other words
MAX_ROUNDS = 8  # masking one secret can lay bare another; ordinary text needs two rounds, the last of which finds none

Finder = Callable[[str, str], Iterable[Span]]  # (folded text, the same in lower case)

FINDERS: tuple[Finder, ...] = (
    shapes.find_private_blocks,
    shapes.find_key_blocks,
    shapes.find_vendor_tokens,
    shapes.find_shapes,
    shapes.find_headers,
    shapes.find_url_secrets,
    shapes.find_command_secrets,
    shapes.find_seed_phrases,
    cues.find_cued_secrets,
    shapes.find_cards,
    disguises.find_manifest_secrets,
    disguises.find_split_tokens,
    lambda folded, small: disguises.find_encoded(folded, small, _holds_secret),
)


FINDERS_OF_DECODED: tuple[Finder, ...] = (
    shapes.find_key_blocks,
    shapes.find_vendor_tokens,
    shapes.find_shapes,
    shapes.find_headers,
    shapes.find_url_secrets,
    cues.find_cued_secrets,
)


class RedactedSpan(Struct, frozen=True):
    """One thing that was taken out: its kind and its place in the input. Never the thing itself."""

    kind: str
    start: int
    end: int


class Redacted(Struct, frozen=True):
    """The text that is safe to keep, and what was taken out of it, in order."""

    text: str
    found: tuple[RedactedSpan, ...]


def redact(text: str, *, email: bool = True, allow: Collection[str] = ()) -> Redacted:
    """Replace every secret in the text by `[redacted:kind]`, and say what was replaced.

    `email=False` leaves e-mail addresses alone. `allow` holds values that a person declared harmless, as they are
    written or as the hex of their SHA-256; a span is spared only if it is exactly such a value.
    Redacting a redacted text changes nothing. If a rule fails, the whole text is replaced by `[redacted:error]`.
    """
    try:
        spans = _find_secrets(text, email=email, allow=allow)
    except Exception:  # whatever went wrong, the text has not been checked: fail closed
        return Redacted("[redacted:error]", (RedactedSpan("error", 0, len(text)),))
    if not spans:
        return Redacted(text, ())
    return Redacted(_replace(text, spans), tuple(RedactedSpan(kind, start, end) for start, end, kind in spans))


def _replace(text: str, spans: list[Span]) -> str:
    pieces: list[str] = []
    position = 0
    for start, end, kind in spans:
        pieces += (text[position:start], f"[redacted:{kind}]")
        position = end
    return "".join((*pieces, text[position:]))


def _find_secrets(text: str, *, email: bool = True, allow: Collection[str] = ()) -> list[Span]:
    """All secrets of the text as disjoint spans in order.

    Addresses come last, since `me:secret@host` looks like one. Raises RuntimeError if new secrets keep turning up.
    """
    spans: list[Span] = []
    for _ in range(MAX_ROUNDS):
        view = FoldedText(text, [(start, end) for start, end, _ in spans])
        fresh = _find_in(view, FINDERS, text, allow)
        if email and not fresh:
            fresh = _find_in(view, (shapes.find_emails,), text, allow)
        if not fresh:
            return spans
        spans = _merge([*spans, *fresh])
    raise RuntimeError("redaction does not settle")


def _find_in(view: FoldedText, finders: tuple[Finder, ...], text: str, allow: Collection[str]) -> list[Span]:
    folded, small = view.folded, view.small
    spans = []
    for first, last, kind in [span for find in finders for span in find(folded, small)]:
        if folded[first:last].strip(MASK):
            start, end = view.original(first, last)
            if not allow or not _is_allowed(text[start:end], allow):
                spans.append((start, end, kind))
    return spans


def _holds_secret(decoded: str) -> str | None:
    """The kind of the first secret in a text that was decoded out of another."""
    small = decoded.lower()
    if len(small) != len(decoded):
        return None
    return next((kind for find in FINDERS_OF_DECODED for _, _, kind in find(decoded, small)), None)


def _is_allowed(value: str, allow: Collection[str]) -> bool:
    return value in allow or digest(value) in allow


def _merge(spans: list[Span]) -> list[Span]:
    """Join spans that overlap; the longest decides the kind, and among equals the one that was found first."""
    merged: list[Span] = []
    longest = 0
    for start, end, kind in sorted(spans, key=lambda span: span[0]):
        if merged and start < merged[-1][1]:
            first, last, last_kind = merged[-1]
            if end - start > longest:
                last_kind, longest = kind, end - start
            merged[-1] = (first, max(end, last), last_kind)
        else:
            merged.append((start, end, kind))
            longest = end - start
    return merged


class RedactedDraft(Struct, frozen=True):
    """The draft that is safe to keep, and how many secrets of each kind were taken out of it."""

    draft: Draft
    redactions: tuple[Redaction, ...]


def redact_draft(draft: Draft, *, email: bool, allow: Collection[str] = ()) -> RedactedDraft:
    """Take the secrets out of every field; what only the content shows to be one, out of the others as well."""
    allowed = frozenset(allow)
    kinds: list[str] = []
    content = redact(draft.content, email=email, allow=allowed)
    known = [
        (secret, span.kind)
        for span in content.found
        if len(secret := draft.content[span.start : span.end]) >= SHORTEST_REPEATED
    ]

    def noted(redacted: Redacted) -> str:
        if redacted.found:
            kinds.extend([found.kind for found in redacted.found])
        return redacted.text

    def clean(text: str) -> str:
        for secret, kind in known:
            kinds.extend([kind] * text.count(secret))
            text = text.replace(secret, f"[redacted:{kind}]")
        return noted(redact(text, email=email, allow=allowed))

    def clean_name(name: str) -> str:
        try:
            return clean(name) if known else _harmless(name, email, allowed)
        except _Harmful as harmful:
            return noted(harmful.redacted)

    safe = replace(
        draft,
        content=noted(content),
        kind=clean_name(draft.kind),
        item_type=None if draft.item_type is None else clean_name(draft.item_type),
        tags=tuple(map(clean_name, draft.tags)),
        files=tuple(map(clean_name, draft.files)),
        topic=None if draft.topic is None else clean_name(draft.topic),
        key=None if draft.key is None else clean(draft.key),
        title=None if draft.title is None else clean(draft.title),
        source=None if draft.source is None else _clean_source(draft.source, clean_name),
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
    """Whether a text has nothing readable left."""
    return not any(character.isalnum() for character in _MARK.sub("", text))


def check_name(name: str, what: str) -> str:
    """Return a name that is stored as it is. Raises InvalidInput if it holds a secret; `what` says whose name it is."""
    if redact(name).found:
        raise InvalidInput(f"{what} must not contain a secret.", hint="Choose another name.")
    return name


def marks(text: str) -> list[str]:
    """The kinds of what was taken out of a text."""
    return [kind for kind in _MARK.findall(text) if kind]


class _Harmful(Exception):
    """Something was taken out of a name, or it could not be checked."""

    def __init__(self, redacted: Redacted) -> None:
        self.redacted = redacted


@lru_cache(maxsize=1024)  # the same few tags, files, topics and agents come again and again
def _harmless(name: str, email: bool, allow: frozenset[str]) -> str:
    """The name, if it holds no secret. Raises _Harmful otherwise, so the cache remembers no secret and no failure."""
    redacted = redact(name, email=email, allow=allow)
    if redacted.found:
        raise _Harmful(redacted)
    return name


def _clean_source(source: Source, clean_name: Callable[[str], str]) -> Source:
    given = {field: name for field in SOURCE_NAMES if (name := getattr(source, field)) is not None}
    cleaned = {field: clean_name(name) for field, name in given.items()}
    return source if cleaned == given else replace(source, **cleaned)


def _clean_data(data: dict[str, Any], clean: Callable[[str], str]) -> dict[str, Any]:
    """The data, redacted as JSON text so that a key is a cue for its value: {"password": …}."""
    text = msgspec.json.encode(data).decode()
    cleaned = clean(text)
    if cleaned == text:
        return data
    try:
        return msgspec.json.decode(cleaned, type=dict[str, Any])
    except msgspec.MsgspecError:  # a secret that ran over a quote: nothing of it is safe to keep
        return {"redacted": "[redacted:error]"}
