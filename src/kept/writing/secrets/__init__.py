"""Find secrets and personal data in a text. Call `find_secrets`.

    view the text (folded, escapes undone)  →  every finder names spans  →  mask them  →  again, until nothing new
    is found

`rules` holds the tables, `view` folds the text, `shapes` and `cues` find, `verdict` judges what a cue announces.
Rule: each finder runs in linear time; masking makes the result the same for a text that was redacted before.
"""

from collections.abc import Callable, Collection, Iterable

from kept.writing.secrets import cues, shapes
from kept.writing.secrets.view import MASK, FoldedText, Span

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
)


def find_secrets(text: str, *, email: bool = True, allow: Collection[str] = ()) -> list[Span]:
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


def _is_allowed(value: str, allow: Collection[str]) -> bool:
    import hashlib  # slow to load, and needed only with an allow-list

    return value in allow or hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest() in allow


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
