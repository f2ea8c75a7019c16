"""Take secrets and personal data out of a text.

Second step of the write path, and the one choke point under every writer: nothing is stored, indexed, journaled or
logged that has not been through here. Pure: no I/O, no clock, no state.

    view the text (folded, escapes undone)  →  every finder names spans  →  mask them  →  again, until nothing new
    is found  →  put [redacted:kind] in their place

Rule: a false alarm costs a word; a miss costs a key. When unsure, redact; when a finder fails, redact everything.
"""

from collections.abc import Callable, Collection, Iterable

import msgspec

from kept.writing import secret_places, secret_shapes, secret_ties
from kept.writing.secret_view import MASK, View

MAX_ROUNDS = 8  # masking one secret can lay bare another; ordinary text needs two rounds, the last of which finds none

Span = tuple[int, int, str]  # start, end, kind
Finder = Callable[[str, str], Iterable[Span]]  # (folded text, the same in small letters)

FINDERS: tuple[Finder, ...] = (
    secret_places.find_private_blocks,
    secret_shapes.find_key_blocks,
    secret_shapes.find_vendor_tokens,
    secret_shapes.find_shapes,
    secret_places.find_headers,
    secret_places.find_url_secrets,
    secret_places.find_command_secrets,
    secret_places.find_seed_phrases,
    secret_ties.find_cued_secrets,
    secret_places.find_cards,
)


class Found(msgspec.Struct, frozen=True):
    """One thing that was taken out: what it was and where it stood in the input. Never the thing itself."""

    kind: str
    start: int
    end: int


class Redacted(msgspec.Struct, frozen=True):
    """The text that is safe to keep, and what was taken out of it, in order."""

    text: str
    found: tuple[Found, ...]


def redact(text: str, *, email: bool = True, allow: Collection[str] = ()) -> Redacted:
    """Replace every secret in the text by `[redacted:kind]`, and say what was replaced.

    `email=False` leaves e-mail addresses alone. `allow` holds values that a person declared harmless, as they are
    written or as the hex of their SHA-256; a span is spared only if it is exactly such a value.
    Redacting a redacted text changes nothing. If a rule fails, the whole text is replaced by `[redacted:error]`.
    """
    try:
        spans = _find_all(text, email, allow)
    except Exception:  # whatever went wrong, the text has not been checked: fail closed
        return Redacted("[redacted:error]", (Found("error", 0, len(text)),))
    if not spans:
        return Redacted(text, ())
    return Redacted(_replace(text, spans), tuple(Found(kind, start, end) for start, end, kind in spans))


def _find_all(text: str, email: bool, allow: Collection[str]) -> list[Span]:
    """All secrets of the text as disjoint spans in order.

    Addresses come last, since `me:secret@host` looks like one. Raises RuntimeError if new secrets keep turning up.
    """
    spans: list[Span] = []
    for _ in range(MAX_ROUNDS):
        view = View(text, [(start, end) for start, end, _ in spans])
        fresh = _find_in(view, FINDERS, text, allow)
        if email and not fresh:
            fresh = _find_in(view, (secret_places.find_emails,), text, allow)
        if not fresh:
            return spans
        spans = _merge([*spans, *fresh])
    raise RuntimeError("redaction does not settle")


def _find_in(view: View, finders: tuple[Finder, ...], text: str, allow: Collection[str]) -> list[Span]:
    folded, small = view.folded, view.small
    spans = []
    for first, last, kind in [span for find in finders for span in find(folded, small)]:
        if folded[first:last].strip(MASK):
            start, end = view.original(first, last)
            if not allow or not _is_allowed(text[start:end], allow):
                spans.append((start, end, kind))
    return spans


def _is_allowed(value: str, allow: Collection[str]) -> bool:
    import hashlib  # not needed without an allow-list, and slow to load

    return value in allow or hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest() in allow


def _merge(spans: list[Span]) -> list[Span]:
    """Join spans that overlap; the longest names the kind, and of equals the one that was found first."""
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


def _replace(text: str, spans: list[Span]) -> str:
    pieces: list[str] = []
    position = 0
    for start, end, kind in spans:
        pieces += (text[position:start], f"[redacted:{kind}]")
        position = end
    return "".join((*pieces, text[position:]))
