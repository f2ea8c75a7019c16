"""Take secrets and personal data out of a text.

Second step of the write path, and the one choke point under every writer: nothing is stored, indexed, journaled or
logged that has not been through here. Pure: no I/O, no clock, no state.

    fold the text (NFKC, zero-width, colour codes)  →  each finder names spans  →  mask them  →  again, until
    nothing new is found  →  put [redacted:kind] in their place

Rule: a false alarm costs a word; a miss costs a key. When unsure, redact; when a finder fails, redact everything.

Matching always runs on the folded text in which everything already redacted is one mask character. A redacted text
folds to exactly the text on which the last round found nothing, so redacting twice changes nothing.
"""

import hashlib
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache, lru_cache

import msgspec

from kept.writing import secret_cues, secret_shapes

MASK = "\ue000"  # private use: what a secret that was already found looks like to the finders
BLANKS = "\u115f\u1160\u3164\uffa0\u2800"  # letters by category, invisible on the screen
MAX_ROUNDS = 8  # a round can uncover at most what the one before it hid; ordinary text needs two

Span = tuple[int, int, str]  # start, end, kind
Finder = Callable[[str, str], Iterable[Span]]  # (folded text, the same in small letters, same length)


class Found(msgspec.Struct, frozen=True):
    """One thing that was taken out: what it was and where it stood in the input. Never the thing itself."""

    kind: str
    start: int
    end: int


class Redacted(msgspec.Struct, frozen=True):
    """The text that is safe to keep, and what was taken out of it, in order."""

    text: str
    found: tuple[Found, ...]


FINDERS: tuple[Finder, ...] = (
    secret_shapes.find_private_blocks,
    secret_shapes.find_key_blocks,
    secret_shapes.find_vendor_tokens,
    secret_shapes.find_shapes,
    secret_shapes.find_headers,
    secret_shapes.find_url_secrets,
    secret_shapes.find_command_secrets,
    secret_cues.find_cued_secrets,
    secret_shapes.find_cards,
)


def redact(text: str, *, email: bool = True, allow: Collection[str] = ()) -> Redacted:
    """Replace every secret in the text by `[redacted:kind]`, and say what was replaced.

    `email=False` leaves e-mail addresses alone. `allow` holds values that a person declared harmless, as they are
    written or as the hex of their SHA-256; a span is spared only if it is exactly such a value.
    Redacting a redacted text changes nothing. If a rule fails, the whole text is replaced by `[redacted:error]`.
    """
    try:
        spans = _find_all(text, allow, email)
    except Exception:  # whatever went wrong, the text has not been checked: fail closed
        return Redacted("[redacted:error]", (Found("error", 0, len(text)),))
    if not spans:
        return Redacted(text, ())
    return Redacted(_replace(text, spans), tuple(Found(kind, start, end) for start, end, kind in spans))


def _find_all(text: str, allow: Collection[str], email: bool) -> list[Span]:
    """All secrets of the text as disjoint spans in order; addresses last, since `me:secret@host` looks like one.

    Raises RuntimeError if new secrets keep turning up, which no ordinary text makes happen.
    """
    spans: list[Span] = []
    for _ in range(MAX_ROUNDS):
        view = _View(text, spans)
        fresh = _find_in(view, FINDERS, text, allow)
        if email and not fresh:
            fresh = _find_in(view, (secret_shapes.find_emails,), text, allow)
        if not fresh:
            return spans
        spans = _merge([*spans, *fresh])
    raise RuntimeError("redaction does not settle")


def _find_in(view: "_View", finders: tuple[Finder, ...], text: str, allow: Collection[str]) -> list[Span]:
    found = [span for find in finders for span in find(view.folded, view.small)]
    spans = [view.in_original(span) for span in found if not _is_masked(view.folded, span)]
    return [span for span in spans if not _is_allowed(text[span[0] : span[1]], allow)] if allow else spans


def _is_masked(folded: str, span: Span) -> bool:
    start, end, _ = span
    return not folded[start:end].strip(MASK)


def _is_allowed(value: str, allow: Collection[str]) -> bool:
    return value in allow or hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest() in allow


def _merge(spans: list[Span]) -> list[Span]:
    """Join spans that overlap; the longest names the kind, and of equals the one that was found first."""
    merged: list[Span] = []
    longest = 0
    for start, end, kind in sorted(spans, key=lambda span: span[0]):
        if merged and start < merged[-1][1]:
            last_start, last_end, last_kind = merged[-1]
            if end - start > longest:
                last_kind, longest = kind, end - start
            merged[-1] = (last_start, max(end, last_end), last_kind)
        else:
            merged.append((start, end, kind))
            longest = end - start
    return merged


def _replace(text: str, spans: list[Span]) -> str:
    pieces = []
    position = 0
    for start, end, kind in spans:
        pieces += (text[position:start], f"[redacted:{kind}]")
        position = end
    return "".join((*pieces, text[position:]))


class _View:
    """A text as the finders see it: folded, with each masked span as one MASK, and the way back to the original."""

    def __init__(self, text: str, masked: list[Span]) -> None:
        self._marks: list[tuple[int, int, int, bool]] = []  # folded start, original start, original end, one to one
        pieces: list[str] = []
        length = 0
        for start, end, piece, one_to_one in _pieces(text, masked):
            self._marks.append((length, start, end, one_to_one))
            pieces.append(piece)
            length += len(piece)
        self.folded = "".join(pieces)
        self.small = self.folded.lower()
        if len(self.small) != length:  # no folded character is known to do this; the finders rely on it
            raise ValueError("lower case changes the length")

    def in_original(self, span: Span) -> Span:
        """The span of the original that a span of the folded text came from."""
        first_folded, first_start, _, straight = self._mark_at(span[0])
        start = first_start + (span[0] - first_folded if straight else 0)
        last_folded, last_start, last_end, straight = self._mark_at(span[1] - 1)
        return start, (last_start + span[1] - last_folded if straight else last_end), span[2]

    def _mark_at(self, position: int) -> tuple[int, int, int, bool]:
        return self._marks[bisect_right(self._marks, position, key=lambda mark: mark[0]) - 1]


def _pieces(text: str, masked: list[Span]) -> Iterator[tuple[int, int, str, bool]]:
    """The folded text in pieces: where each came from, what it became, and whether character by character."""
    position = 0
    for start, end, replacement in _edits(text, masked):
        yield from _fold(text, position, start)
        if replacement:
            yield start, end, replacement, False
        position = end
    yield from _fold(text, position, len(text))


def _edits(text: str, masked: list[Span]) -> Iterator[tuple[int, int, str]]:
    """What is not text: spans already found, redactions of an earlier run, terminal colour codes."""
    noise = _noise() if "[" in text else None
    position = 0
    for start, end, _ in (*masked, (len(text), len(text), "")):
        if noise:
            for match in noise.finditer(text, position, start):
                yield match.start(), match.end(), MASK if match.group(1) else ""
        if start < end:
            yield start, end, MASK
        position = end


def _fold(text: str, start: int, end: int) -> Iterator[tuple[int, int, str, bool]]:
    piece = text[start:end]
    if piece.isascii():
        if piece:
            yield start, end, piece, True
        return
    if all(len(_fold_character(character)) == 1 for character in set(piece)):
        yield start, end, "".join(map(_fold_character, piece)), True
        return
    for position, character in enumerate(piece, start):
        folded = _fold_character(character)
        if folded:
            yield position, position + 1, folded, len(folded) == 1


@cache
def _noise() -> re.Pattern[str]:
    return re.compile(
        r"(\[redacted:[a-z0-9-]{1,40}\])"
        r"|(?:\x1b|\\u001[bB]|\\x1[bB]|\\033|\\e|\u241b)\[[0-9;:?]{0,24}[A-Za-z]"
    )


@lru_cache(maxsize=8192)
def _fold_character(character: str) -> str:
    """NFKC for matching: compatibility forms become plain, accents and invisible characters go."""
    if character == MASK:
        return "\ue001"
    if character in BLANKS:
        return ""
    if character < "\x80" or "\uac00" <= character <= "\ud7a3":  # Hangul stays in syllables
        return character
    decomposed = unicodedata.normalize("NFKD", character)
    return "".join(part for part in decomposed if unicodedata.category(part) not in ("Mn", "Cf"))
