"""Find secrets and personal data: the finders, and the folded view of a text that they search. `redact` runs them.

| module | topic |
|---|---|
| `rules` | the tables: vendors, token shapes, cue words, words that are not secrets |
| `shapes`, `disguises` | finders that need no cue word |
| `cues` | the finder that follows a cue word (`password`, `API_KEY`) to its value |
| `verdict` | the decision: is this value behind a cue a secret? |
| `looks` | tests of a string alone |

A key with a zero-width space in it, in full-width letters, in terminal colours or inside a JSON string is still a key.
So redaction matches on a view of the text: compatibility forms made plain, accents and invisible characters dropped,
one level of escaping undone, and every secret that was already found as a single MASK.

Rule: a view knows where each of its characters came from, and folding looks at nothing but the piece between two masks.
A redacted text therefore has the same view as the text whose spans were masked, which makes redaction idempotent.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from kept.text import compiled

Span = tuple[int, int, str]  # start, end, kind of secret

MASK = "\x00"  # stands for a redacted part; a NUL of the text itself becomes OTHER
OTHER = "\x01"  # a sign that no pattern asks for
BLANKS = "\u115f\u1160\u3164\uffa0\u2800"  # letters by category, invisible on the screen
SIGNS = dict(zip("‘’‚“”„«»→⇒。…", '\'\'\'""""">>..', strict=True))
NOISE_SIGNS = ("[redacted:", "\x1b[", "\\u001b[", "\\u001B[", "\\x1b[", "\\x1B[", "\\033[", "\\e[", "\u241b[")
NOISE = (
    r"\[redacted:[a-z0-9-]{1,40}+\]|\x1b\[[0-9;:?]{0,24}+[A-Za-z]"
    r"|\\(?:u001[bB]|x1[bB]|033|e)\[[0-9;:?]{0,24}+[A-Za-z]|\u241b\[[0-9;:?]{0,24}+[A-Za-z]"
)

# Escapes of JSON, HTML, URLs and shells, by their beginning. Each is replaced by its character and spaces, so that
# no position moves.
ESCAPES = {
    "\\": {'\\\\\\"': '"', "\\\\n": "\n", '\\"': '"', "\\'": "'", "\\n": "\n", "\\r": "\r", "\\t": "\t",
           "\\\r\n": " ", "\\\n": " "},
    "\\u00": {"\\u0022": '"', "\\u0026": "&", "\\u0027": "'", "\\u003c": "<", "\\u003e": ">", "\\u003d": "="},
    "&": {"&quot;": '"', "&#34;": '"', "&#39;": "'", "&apos;": "'", "&lt;": "<", "&gt;": ">", "&amp;": "&"},
    "%": {"%22": '"', "%0A": "\n", "%0a": "\n", "%20": " "},
}  # fmt: skip
# Escapes inside a word, which are one character in the view: a backslash of Markdown or a shell before a sign
# (`ghp\_…`, in JSON `ghp\\_…`), a code point (`\u005f`, `\x5f`), a numbered entity of HTML.
SPELLED = (
    r"\\{1,4}+(?:([-_.=:+/~#$%&@!*^?,])|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))"
    r"|&#(?:([0-9]{1,7}+)|[xX]([0-9a-fA-F]{1,6}+));"
)
ALTERED = (MASK, "\\", "&", "%", "\x1b[", "[redacted:")  # a view of ASCII text without any of these is the text itself


class FoldedText:
    """A folded text, the same in lower case, and the map from its positions to the original."""

    def __init__(self, text: str, masked: Sequence[tuple[int, int]] = ()) -> None:
        self._text = text
        self._marks: list[tuple[int, int, int, bool]] = []  # folded start, original start and end, one to one
        self.folded = text
        if masked or not _is_plain(text):
            self.folded = self._fold(masked)
        else:
            self._marks.append((0, 0, len(text), True))
        self.small = self.folded.lower()
        if len(self.small) != len(self.folded):  # no folded character is known to do this; every finder relies on it
            raise ValueError("lower case changes the length")

    def _fold(self, masked: Iterable[tuple[int, int]]) -> str:
        pieces: list[str] = []
        length = 0
        for start, end, piece, one_to_one in _pieces(self._text, masked):
            self._marks.append((length, start, end, one_to_one))
            pieces.append(piece)
            length += len(piece)
        return "".join(pieces)

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original for a span of the folded text."""
        folded, first, _, one_to_one = self._mark_at(start)
        first += start - folded if one_to_one else 0
        folded, begin, last, one_to_one = self._mark_at(end - 1)
        if one_to_one:
            last = begin + end - folded
            last += _rest_of_escape(self._text, last - 1)
        return first, last

    def _mark_at(self, position: int) -> tuple[int, int, int, bool]:
        return self._marks[bisect_right(self._marks, position, key=lambda mark: mark[0]) - 1]


def _rest_of_escape(text: str, position: int) -> int:
    """Count the characters after the first of an escape that begins here; 0 if none does."""
    if text[position] not in ESCAPES:
        return 0
    known = (escape for escapes in ESCAPES.values() for escape in escapes)
    return max((len(escape) - 1 for escape in known if text.startswith(escape, position)), default=0)


def fold(text: str) -> str:
    """Fold a text as a view does: for words that are looked for in views."""
    return compiled(r"[^\x00-\x7f]++").sub(lambda run: "".join(map(_fold_character, run.group())), text)


def _is_plain(text: str) -> bool:
    """Return True if folding does not change the text."""
    return text.isascii() and not any(map(text.__contains__, ALTERED))


def _pieces(text: str, masked: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, str, bool]]:
    """Fold the text in pieces: start and end in the original, the folded text, and whether the map is one to one."""
    is_plain = text.isascii() and MASK not in text and not any(sign in text for sign in ESCAPES)
    position = 0
    for start, end, replacement in (*_edits(text, masked), (len(text), len(text), "")):
        if not is_plain:
            yield from _folded_piece(text[position:start], position)
        elif position < start:
            yield position, start, text[position:start], True
        if replacement:
            yield start, end, replacement, False
        position = end


def _edits(text: str, masked: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, str]]:
    """Find the parts that are not text: spans already found, redactions of an earlier run, terminal colour codes."""
    noise = compiled(NOISE) if any(sign in text for sign in NOISE_SIGNS) else None
    position = 0
    for start, end in (*masked, (len(text), len(text))):
        if noise:
            for match in noise.finditer(text, position, start):
                yield match.start(), match.end(), MASK if text[match.start()] == "[" else ""
        if start < end:
            yield start, end, MASK
        position = end


def _folded_piece(piece: str, start: int) -> Iterator[tuple[int, int, str, bool]]:
    piece = piece.replace(MASK, OTHER)
    for sign, escapes in ESCAPES.items():
        if sign in piece:
            for escape, plain in escapes.items():
                piece = piece.replace(escape, plain.ljust(len(escape)))
    position = 0
    if "\\" in piece or "&#" in piece:
        for match in compiled(SPELLED).finditer(piece):
            character = _spelled(match)
            if character is not None:
                yield from _folded_run(piece[position : match.start()], start + position)
                if character:
                    yield start + match.start(), start + match.end(), character, False
                position = match.end()
    yield from _folded_run(piece[position:], start + position)


def _spelled(escape: re.Match[str]) -> str | None:
    """Return the folded character that an escape stands for, or None for a control character or no character at all."""
    sign, code, byte, decimal, hexadecimal = escape.groups()
    if sign:
        return str(sign)
    number = int(decimal) if decimal else int(code or byte or hexadecimal, 16)
    is_text = number in (9, 10, 13) or (0x20 <= number < 0x110000 and number != 0x7F)
    return _fold_character(chr(number)) if is_text else None


def _folded_run(run: str, start: int) -> Iterator[tuple[int, int, str, bool]]:
    if run.isascii():
        if run:
            yield start, start + len(run), run, True
    elif all(len(_fold_character(character)) == 1 for character in set(run)):
        yield start, start + len(run), fold(run), True
    else:
        for position, character in enumerate(run, start):
            folded = _fold_character(character)
            if folded:
                yield position, position + 1, folded, len(folded) == 1


@lru_cache(maxsize=8192)
def _fold_character(character: str) -> str:
    """Apply NFKC and more: no accents, nothing invisible, plain quotes and dashes. Other signs become OTHER.

    Signs stay one character, so that a text of Latin letters folds to ASCII, which is the quickest to search.
    """
    if character < "\x80" or "\uac00" <= character <= "\ud7a3":  # Hangul stays in syllables
        return character
    if character in BLANKS:
        return ""
    if character in SIGNS:
        return SIGNS[character]
    folded = ""
    for part in unicodedata.normalize("NFKD", character):
        category = unicodedata.category(part)
        if part < "\x80" or category[0] in "LN":
            folded += part
        elif category == "Pd":
            folded += "-"
        elif category not in ("Mn", "Cf"):
            folded += OTHER
    return folded
