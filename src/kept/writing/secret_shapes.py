"""Secrets that give themselves away: by a vendor's prefix, by their structure, or by the place they stand in.

The finders of redaction that need no cue word. Each takes the folded text and the same in small letters, and yields
(start, end, kind). They look for a cheap literal first and judge around it with patterns of bounded length, so that
the time grows with the text and with nothing else.

Rule: nothing here guesses by entropy. A hash, a UUID or a path without a cue is none of our business.
"""

import re
from collections.abc import Iterator
from functools import cache

from kept.writing.secret_values import is_code, is_opaque, is_stand_in
from kept.writing.secrets_rules import COMMANDS, SHAPES, TOKEN_MARKS, TOKEN_MARKS_FOR_HEX, VENDORS

Span = tuple[int, int, str]

LONGEST_TOKEN = 4096
SHORTEST_TOKEN = 16  # no vendor token has a part that is shorter than this in one run
CLASSES = {
    "[W]": "[A-Za-z0-9]",
    "[D]": "[A-Za-z0-9_-]",
    "[D.]": "[A-Za-z0-9_.-]",
    "[D=]": "[A-Za-z0-9_=-]",
    "[D.=]": "[A-Za-z0-9_.=-]",
    "[U]": "[A-Z0-9]",
    "[L]": "[a-z0-9]",
    "[H]": "[0-9a-f]",
    "[X]": "[0-9A-Fa-f]",
    "[B]": "[A-Za-z0-9+/=_-]",
    "[I]": "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}",
}


@cache
def _pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(source, flags)


# ---- <private> ----


def find_private_blocks(text: str, small: str) -> Iterator[Span]:
    """Everything from <private> to its </private>, nested ones included; to the end of the text if none closes it."""
    if "private" not in small:
        return
    tags = _pattern(r"(?:<|&lt;|\\u003c)\s{0,3}(/?)\s{0,3}private\b[^<>&\\]{0,80}(?:>|&gt;|\\u003e)")
    depth = start = 0
    for tag in tags.finditer(small):
        if not tag.group(1):
            start = tag.start() if depth == 0 else start
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                yield start, tag.end(), "private"
    if depth:
        yield start, len(text), "private"


# ---- private keys ----


def find_key_blocks(text: str, small: str) -> Iterator[Span]:
    """PEM, OpenSSH, PGP and PuTTY private keys; also those whose end or beginning was cut off."""
    if "private key" in small:
        yield from _pem_blocks(text)
    if "private-lines" in small:
        lines = _pattern(r"Private-Lines: {0,4}\d{1,4}((?:\s|\\[nr]|[A-Za-z0-9+/=]){1,9000}+)(Private-MAC: {0,4}[0-9a-fA-F]{1,80})?")
        for match in lines.finditer(text):
            yield match.start(1), match.end(), "private-key"


def _pem_blocks(text: str) -> Iterator[Span]:
    marker = _pattern(r"-{4,5} ?(BEGIN|END) [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
    body = _pattern(r"(?:\s|\\[nrt]|[A-Za-z0-9+/=\\\"'>|,:#*-]|(?:Proc-Type|DEK-Info|Version|Comment|Hash)[^\n]{0,200}){0,20000}+")
    begin = None
    done = 0
    for match in marker.finditer(text):
        if match.group(1) == "BEGIN":
            if begin is not None:
                yield begin.start(), _end_of_body(text, begin.end(), match.start()), "private-key"
            begin = match
        elif begin is not None:
            yield begin.start(), match.end(), "private-key"
            begin, done = None, match.end()
        else:  # the beginning is missing: take the base64 lines before the end
            head = text[max(done, match.start() - 8000) : match.start()]
            kept = head.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\\ \t\r\n")
            line = head.find("\n", len(kept)) + 1 if kept else 0
            yield match.start() - len(head) + max(line, len(kept)), match.end(), "private-key"
            done = match.end()
    if begin is not None:
        end = body.match(text, begin.end())
        yield begin.start(), _end_of_body(text, begin.end(), end.end() if end else len(text)), "private-key"


def _end_of_body(text: str, start: int, limit: int) -> int:
    """Where the lines that look like key material end; the first line that does not is where prose begins again."""
    material = _pattern(r"(?:\s|\\[nrt]|[0-9>|#*\"' \t-]{0,12}(?:[A-Za-z0-9+/=]{16,100}|[A-Za-z0-9+/]{0,80}={1,2}|[A-Z][A-Za-z-]{3,12}: [^\n]{1,80})[\"',\\+ \t]{0,6}(?=\s|\\[nrt]|$)){0,400}+")
    match = material.match(text, start, limit)
    end = match.end() if match else start
    last = _pattern(r"[A-Za-z0-9+/=]{1,100}(?=\s|\\[nrt]|[\"']|$)").match(text, end, limit)
    if last and (end > start + 40 or last.end() - last.start() >= 16):
        end = last.end()
    return end


# ---- vendor tokens ----


@cache
def _vendors() -> dict[str, list[tuple[str, str, str]]]:
    """The table by the first two characters of the prefix, longest prefix first: (prefix, kind, pattern of the rest)."""
    table: dict[str, list[tuple[str, str, str]]] = {}
    for line in VENDORS.strip().splitlines():
        kind, prefixes, tail = line.split()
        for name, characters in CLASSES.items():
            tail = tail.replace(name, characters)
        closed = tail if ",}" in tail else tail + "(?![A-Za-z0-9])"
        for prefix in prefixes.split(","):
            table.setdefault(prefix[:2], []).append((prefix, kind, closed.replace(",}", f",{LONGEST_TOKEN}}}+")))
    for shapes in table.values():
        shapes.sort(key=lambda shape: -len(shape[0]))
    return {key if len(key) > 1 else key + digit: shapes for key, shapes in table.items() for digit in "0123456789"[: 10 if len(key) == 1 else 1]}


def find_vendor_tokens(text: str, small: str) -> Iterator[Span]:
    """Tokens of the vendors in the table, and tokens of others whose own prefix says `sk`, `pat`, `secret`, ….

    Only runs of at least 16 characters are looked at, and in each run only the places where a token may begin: its
    start, after an escape (`\\n`, `%3D`) that precedes it, and after a separator.
    """
    table = _vendors()
    done = 0
    for run in _pattern(r"[A-Za-z0-9_.\-]{16,}").finditer(text):
        for start in _token_starts(text, run.start(), run.end()):
            if start < done:
                continue
            found = _vendor_token(text, start, table, start == run.start())
            if found:
                yield found
                done = found[1]
        if done <= run.start() and run.end() - run.start() < 300:
            found = _marked_token(text, run.start(), run.end())
            if found:
                yield found


def _token_starts(text: str, start: int, end: int) -> Iterator[int]:
    yield start
    before = text[max(0, start - 6) : start]
    if before.endswith("\\"):
        yield start + 1
        if text[start] in "ux":
            yield start + (5 if text[start] == "u" else 3)
    elif before.endswith("%"):
        yield start + 2
    if end - start < LONGEST_TOKEN:
        for match in _pattern(r"(?<=[_.\-])[A-Za-z0-9]").finditer(text, start + 1, end - 12):
            yield match.start()


def _vendor_token(text: str, start: int, table: dict[str, list[tuple[str, str, str]]], is_run_start: bool) -> Span | None:
    for prefix, kind, tail in table.get(text[start : start + 2], ()):
        if not text.startswith(prefix, start) or (len(prefix) < 4 and not is_run_start):
            continue
        match = _pattern(tail).match(text, start + len(prefix))
        if match and _is_random(match.group()):
            end = match.end()
            while text[end - 1] in ".-":
                end -= 1
            return start, end, kind
    return None


def _is_random(tail: str) -> bool:
    """Not `xxxx…` and not a name: digits, or both cases, and more than a handful of different characters."""
    return len(set(tail)) >= 7 and (any(map(str.isdigit, tail)) or (tail.lower() != tail != tail.upper()))


def _marked_token(text: str, start: int, end: int) -> Span | None:
    run = text[start:end].rstrip(".-_")
    match = _pattern(r"(?:[A-Za-z0-9]{1,14}[_-]){1,4}([A-Za-z0-9]{16,})").fullmatch(run)
    if not match:
        return None
    tail = match.group(1)
    head = [part.lower() for part in re.split("[_-]", run[: match.start(1) - 1])]
    digits = sum(map(str.isdigit, tail))
    if digits < 3 or digits == len(tail) or len(set(tail)) < 9:
        return None
    is_hex = not tail.strip("0123456789abcdef") or not tail.strip("0123456789ABCDEF")
    if any(part in (TOKEN_MARKS_FOR_HEX if is_hex else TOKEN_MARKS) for part in head) and is_opaque(tail):
        return start, start + len(run), "token"
    has_both_cases = tail.lower() != tail != tail.upper()
    if len(tail) >= 30 and has_both_cases and len(head) == 1 and run[match.start(1) - 1] == "_" and head[0].isalpha():
        return (start, start + len(run), "token") if head[0] == run[: len(head[0])] else None
    return None


def find_shapes(text: str, small: str) -> Iterator[Span]:
    """Tokens that are known by their form: webhook addresses, password hashes, raw keys, and vendors without a prefix."""
    for literal, kind, source in SHAPES:
        if literal in text:
            for match in _pattern(source).finditer(text):
                if _is_random(match.group(1)):
                    yield match.start(1), match.end(1), kind
    if ":" in text:  # .pgpass: host:port:database:user:password
        for match in _pattern(r"^[\w.*-]{1,255}:(?:\d{4,5}|\*):[\w.*-]{1,64}:[\w.*@-]{1,64}:(\S{3,128})[ \t]{0,8}$", re.M).finditer(text):
            if not is_stand_in(match.group(1)):
                yield match.start(1), match.end(1), "password"


# ---- headers, URLs, command lines ----


def find_headers(text: str, small: str) -> Iterator[Span]:
    """What Authorization, Bearer, Basic, Cookie and Set-Cookie carry."""
    if "authorization" in small or "bearer" in small or "basic " in small:
        scheme = _pattern(
            r"(?:authorization[\"'\\\]]{0,4}\s{0,4}[:=,]\s{0,4}[bf]?[\"'\\]{0,4}\s{0,2}(?:(?:bearer|basic|token|apikey|api-key|key|ssws|digest|negotiate|oauth|aws4-hmac-sha256|splunk|bot|jwt|genie[kK]ey)(?::\s?|\s{1,3}))?"
            r"|\b(?:bearer|basic)(?:[ \t]|%20|\+){1,3})[\"']?([^\s\"'`<>,;)\\]{6,4096})"
        )
        for match in scheme.finditer(small):
            value = text[match.start(1) : match.end(1)]
            if is_stand_in(value) or (value.isalpha() and value.islower()):
                continue
            if small.startswith("authorization", match.start()) or is_opaque(value):
                end = match.end(1)
                if "credential=" in small[match.start(1) : end]:  # AWS: the signature is the last of three parts
                    end = _pattern(r"[^\"'\n]{1,600}").match(text, end).end()  # type: ignore[union-attr]
                yield match.start(1), end, "authorization"
    if "cookie" in small:
        for match in _pattern(r"\bset-cookie[\"']?\s{0,3}[:,=]\s{0,3}[\"']?[\w.-]{1,80}=([^\s;\"',\\\ue000]{4,4096})").finditer(small):
            if not is_stand_in(text[match.start(1) : match.end(1)]):
                yield match.start(1), match.end(1), "cookie"
        for match in _pattern(r"(?<![\w-])(?:cookies?|--cookie)[\"']?\s{0,3}[:=, ]\s{0,3}[\"']?([\w.-]{1,80}=[^\s\"',;]{6,4096}(?:;\s?[\w.-]{1,80}=[^\s\"',;]{0,4096}){0,60})").finditer(small):
            value = text[match.start(1) : match.end(1)]
            if any(not is_stand_in(pair.partition("=")[2]) for pair in value.split(";")) and "path=/" not in value.lower():
                yield match.start(1), match.end(1), "cookie"


def find_url_secrets(text: str, small: str) -> Iterator[Span]:
    """The password in scheme://user:password@host, a lone token before the @, and signed query parameters."""
    position = small.find("://")
    while position >= 0:
        yield from _user_info(text, position + 3)
        position = small.find("://", position + 3)
    if "@tcp(" in small or "@unix(" in small:
        for match in _pattern(r"(?<![\w:])[\w.-]{1,64}:([^\s\"'@/]{1,128})@(?:tcp|unix)\(").finditer(text):
            if not is_stand_in(match.group(1)):
                yield match.start(1), match.end(1), "password"
    if "sig" in small or "key=" in small or "x-amz-" in small:
        query = _pattern(r"[?&;](?:x-amz-signature|x-amz-security-token|x-amz-credential|x-goog-signature|signature|sig|key|skoid)=([\w%+/=.~-]{16,2048})")
        for match in query.finditer(small):
            if is_opaque(text[match.start(1) : match.end(1)]):
                yield match.start(1), match.end(1), "signature"


def _user_info(text: str, start: int) -> Iterator[Span]:
    chunk = _pattern(r"[^\s\"'`<>\\\ue000]{1,600}").match(text, start)
    if not chunk or "@" not in chunk.group():
        return
    rest = chunk.group()
    authority = _pattern(r"[^/?#]{0,600}").match(rest).group()  # type: ignore[union-attr]
    at = authority.rfind("@")
    if at < 0:  # a password with / ? or # in it that was not encoded; a port is not a password
        odd = _pattern(r"[^/?#:@]{1,64}:(?!\d{1,5}/)([^@]{3,128})@[\w.-]{2,255}(?::\d{2,5})?(?:[/?,]|$)").match(rest)
        if not odd:
            return
        at = odd.end(1)
    user, colon, password = rest[:at].partition(":")
    if colon and password:
        if not is_stand_in(password):
            yield start + len(user) + 1, start + at, "password"
        if is_opaque(user) and len(user) >= 20:
            yield start, start + len(user), "token"
    elif len(user) >= 16 and is_opaque(user):
        yield start, start + at, "token"


def find_command_secrets(text: str, small: str) -> Iterator[Span]:
    """Secrets that a command takes by position or by a short flag: `curl -u me:…`, `mysql -p…`, `sshpass -p …`."""
    for literal, source in COMMANDS:
        if literal in small:
            for match in _pattern(source, re.M).finditer(text):
                if not is_stand_in(match.group("v")):
                    yield match.start("v"), match.end("v"), "password"


# ---- personal data ----


def find_emails(text: str, small: str) -> Iterator[Span]:
    """E-mail addresses. `git@host` (a remote) and `icon@2x.png` (a file) are none."""
    domain = _pattern(r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}+([A-Za-z]{2,24})(?![\w-])")
    position = text.find("@")
    while position >= 0:
        before = text[max(0, position - 64) : position]
        name = before[len(before.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%+-'")) :].lstrip(".%+-'_")
        match = _domain(text, position + 1) if name and name != "git" else None
        if match:
            start = position - len(name)
            if text[start - 1 : start] == "\\" and name[0] in "nrt" and len(name) > 1:
                start += 1
            yield start, match, "email"
        position = text.find("@", position + 1)
    del domain


def _domain(text: str, start: int) -> int | None:
    match = _pattern(r"[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}").match(text, start)
    if not match:
        return None
    labels = match.group().split(".")
    ending = labels[-1].lower().rstrip("-")
    if not ending.isalpha() or len(ending) < 2 or ending in ("png", "jpg", "jpeg", "gif", "svg", "webp", "js", "css", "ico"):
        return None
    return match.end()


def find_cards(text: str, small: str) -> Iterator[Span]:
    """Payment card numbers: an issuer's range, its length, and the Luhn check digit."""
    for match in _pattern(r"(?<![\w.,+-])[2-6]\d{3}(?:\d{9,15}|[ -]\d{4}[ -]\d{4}[ -]\d{1,4}(?:[ -]\d{1,3})?|[ -]\d{6}[ -]\d{4,5})(?![\w-]|\.\d)").finditer(text):
        digits = match.group().replace(" ", "").replace("-", "")
        if _is_card(digits):
            yield match.start(), match.end(), "card"


def _is_card(digits: str) -> bool:
    lengths = {"4": (16, 19), "5": (16,), "2": (16,), "6": (16, 19), "3": (14, 15, 16)}[digits[0]]
    issued = (
        digits[0] == "4"
        or "51" <= digits[:2] <= "55"
        or "2221" <= digits[:4] <= "2720"
        or digits[:2] in ("34", "37", "36", "38", "62", "65", "50", "56", "57", "58")
        or "300" <= digits[:3] <= "305"
        or "3528" <= digits[:4] <= "3589"
        or digits[:4] == "6011"
        or "644" <= digits[:3] <= "649"
    )
    if len(digits) not in lengths or not issued or len(set(digits)) < 2:
        return False
    doubled = [int(digit) * (2 if place % 2 else 1) for place, digit in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0
