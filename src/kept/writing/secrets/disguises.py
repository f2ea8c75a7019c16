"""Find secrets that are encoded, split over strings or lines, or values of a manifest of secrets.

The other finders read the text as it is. This module restores it first: it decodes runs of base64, hex and percent
signs and searches them again, and joins the pieces of one token. In a Kubernetes `Secret` every value counts, under
any name.

Rule: a span covers everything from the first piece to the last, because each piece alone helps to guess the rest.
"""

import binascii
import re
from collections.abc import Callable, Iterator

from kept.text import compiled
from kept.writing.secrets import Span, rules
from kept.writing.secrets.looks import is_opaque, is_stand_in
from kept.writing.secrets.shapes import find_shapes, vendor_tails, vendor_token

LONGEST_ENCODED = 200_000  # characters; a longer run is an image or an archive
PIECES = 8  # of one token
MANIFEST_LINES = 400
PERCENT_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.~+-"

# ---- encodings ----


def find_encoded(folded: str, small: str, holds_secret: Callable[[str], str | None]) -> Iterator[Span]:
    """Find runs of base64, hex or percent signs that hold a secret once they are decoded."""
    # printable text gives a sign other than a letter or digit only for "?", ">" and "~": both alphabets are alike here
    for run in compiled(r"[A-Za-z0-9+/]{24,}+").finditer(folded):
        decoded = _decoded(run.group())
        kind = holds_secret(decoded) if decoded else None
        if kind:
            yield run.start(), run.end() + len(compiled("={0,2}+").match(folded, run.end()).group()), kind  # type: ignore[union-attr]
    if "%" in folded:
        for start, end in _percent_runs(folded):
            kind = holds_secret(_from_percent(folded[start:end])) if end - start >= 16 else None
            if kind:
                yield start, end, kind


def _decoded(run: str) -> str | None:
    """Return the text in a run of hex or base64, if it may hold one."""
    if len(run) > LONGEST_ENCODED or not compiled("[0-9]").search(run):
        return None
    return _from_hex(run) or _from_base64(run)


def _percent_runs(folded: str) -> Iterator[tuple[int, int]]:
    """Find words with `%xx` in them."""
    done = 0
    for sign in compiled("%[0-9A-Fa-f]{2}").finditer(folded):
        if sign.start() >= done:
            before = folded[max(done, sign.start() - 400) : sign.start()]
            start = sign.start() - len(before) + len(before.rstrip(PERCENT_LETTERS))
            whole = compiled(r"(?:[A-Za-z0-9_.~+-]{1,64}+|%[0-9A-Fa-f]{2}){1,2048}+").match(folded, start)
            done = whole.end() if whole else sign.end()
            yield start, done


def _from_base64(run: str) -> str | None:
    if len(run) % 4 == 1:
        return None
    try:
        return _readable(binascii.a2b_base64(run + "=" * (-len(run) % 4)))
    except binascii.Error:
        return None


def _from_hex(run: str) -> str | None:
    if len(run) % 2 or run.strip("0123456789abcdefABCDEF"):
        return None
    return _readable(bytes.fromhex(run))


def _from_percent(run: str) -> str:
    return compiled("%([0-9A-Fa-f]{2})").sub(lambda sign: chr(int(sign.group(1), 16) & 0x7F), run)


def _readable(raw: bytes) -> str | None:
    """Return the bytes as text, if they are printable ASCII: a hash or a picture is not."""
    if not raw.isascii() or raw.translate(None, b"\t\n\r").translate(None, bytes(range(32, 127))):
        return None
    return raw.decode("ascii")


# ---- pieces of one token ----

JOINT = rf"(?:{rules.QUOTES_JOINED}|{rules.LISTED}|{rules.LINES_JOINED})"
FIRST_PIECE = r"(?<![A-Za-z0-9_.~-])[A-Za-z0-9_.~-]{8,}+(?=[\"'`\r\n]|[ ]{2})"
NEXT_PIECE = rf"{JOINT}([A-Za-z0-9+/=_.~%-]{{1,400}}+)"


def find_split_tokens(folded: str, small: str) -> Iterator[Span]:
    """Find tokens of vendors in several strings or on several lines: `"ghp_…" + "…"`."""
    if "  " not in folded and not any(sign in folded for sign in "\"'`\r\n"):  # one line, in one piece
        return
    for first in compiled(FIRST_PIECE).finditer(folded):
        piece = first.group()
        is_string = folded[first.end()] in "\"'`" and compiled("[0-9]").search(piece)
        if is_string or any(piece.startswith(prefix) for prefix, _, _ in vendor_tails().get(piece[:2], ())):
            found = _joined_token(folded, first)
            if found:
                yield found


def _joined_token(folded: str, first: re.Match[str]) -> Span | None:
    """Return the token that begins with this piece and goes on in the next ones, if they belong to it."""
    joined, end, last = first.group(), first.end(), 0
    kind: str | None = None
    for number in range(PIECES):
        match = compiled(NEXT_PIECE).match(folded, end)
        if not match:
            break
        kind = kind if number else _kind_of(joined)
        is_listed = "," in folded[end : match.start(1)]  # two whole tokens in a list are two tokens
        piece, end = match.group(1), match.end()
        if kind and (is_listed or not is_opaque(piece)):
            break
        joined += piece
        found = _kind_of(joined)
        if found:
            kind, last = found, end
    return (first.start(), last, kind) if kind and last else None


def _kind_of(joined: str) -> str | None:
    """Return the kind of the token that fills this text."""
    spans = (vendor_token(joined, 0, True), *find_shapes(joined, joined.lower()))
    length = len(joined.rstrip(".-="))
    return next((span[2] for span in spans if span and span[0] == 0 and span[1] >= length), None)


# ---- manifests ----


def find_manifest_secrets(folded: str, small: str) -> Iterator[Span]:
    """Find the values below `stringData`, and below `data` in a document of `kind: Secret`, in YAML and JSON."""
    if "stringdata" in small:
        for heading in compiled(r"[\"']?stringdata[\"']?[ \t]{0,4}+:").finditer(small):
            yield from _values_below(folded, heading.start(), heading.end())
    if "kind" in small and "data" in small and "secret" in small:
        for first, last in _secret_documents(folded, small):
            for heading in compiled(r"(?<![\w-])[\"']?data[\"']?[ \t]{0,4}+:").finditer(small, first, last):
                yield from _values_below(folded, heading.start(), heading.end())


def _secret_documents(folded: str, small: str) -> Iterator[tuple[int, int]]:
    """Find the documents of `kind: Secret`; `---` parts documents."""
    last = 0
    kinds = compiled(r"[\"']?kind[\"']?[ \t]{0,4}+:[ \t]{0,4}+[\"']?secret[\"']?\s{0,4}+(?=[,}\w\"']|$)")
    for kind in kinds.finditer(small):
        if kind.start() >= last:
            first = folded.rfind("\n---", last, kind.start()) + 1
            end = folded.find("\n---", kind.end())
            last = end if end >= 0 else len(folded)
            yield first, last


MAPPING_LINE = r"\r?\n([ \t]{0,200}+)(?:([\w./-]{1,80}+[ \t]{0,4}+:)(?:[ \t]{1,8}+|(?=\r?\n|$)))?[\"']?([^\n]{0,8000}+)"


def _values_below(folded: str, start: int, end: int) -> Iterator[Span]:
    """Find the values of a mapping whose heading is from `start` to `end`."""
    block = compiled(r"\s{0,40}+\{([^{}]{1,20000}+)").match(folded, end)
    if block:
        yield from _values_in_braces(folded, *block.span(1))
    else:
        margin = start - folded.rfind("\n", 0, start) - 1
        yield from _values_on_lines(folded, end, margin)


def _values_in_braces(folded: str, start: int, end: int) -> Iterator[Span]:
    for value in compiled(r":\s{0,8}+[\"']([^\"'\n]{3,8000}+)[\"']").finditer(folded, start, end):
        if not is_stand_in(value.group(1)):
            yield value.start(1), value.end(1), "secret"


def _values_on_lines(folded: str, end: int, margin: int) -> Iterator[Span]:
    """Find the values of a YAML mapping: all lines that are indented more than the margin."""
    for _ in range(MANIFEST_LINES):
        match = compiled(MAPPING_LINE).match(folded, end)
        if not match or (len(match.group(1)) <= margin and match.group(2, 3) != (None, "")):
            return
        content = match.group(3).rstrip(" \t\r\"'")
        if len(content) > 2 and not is_stand_in(content) and content.strip("|>-+"):
            yield match.start(3), match.start(3) + len(content), "secret"
        end = match.end()
