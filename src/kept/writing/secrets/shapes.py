"""Find secrets by their shape or their place, without a cue, and personal data.

Shapes: a vendor's prefix, a PEM header, a form that nothing else has. Places: headers, URLs, command lines and
<private> blocks. Each finder takes the folded text and the same in lower case and yields spans. It looks for a cheap
literal or a long run first and then judges with patterns of bounded length, so the time grows with the text and with
nothing else.

Rule: nothing here guesses by entropy. A value in a place made for a secret is one, unless it is a template, a variable
or a mask; a hash, a UUID or a path anywhere else is left alone.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import chain, pairwise

from kept.text import compiled
from kept.writing.secrets import OTHER, Span, rules
from kept.writing.secrets.looks import WORD, grade, is_code, is_documented, is_listed, is_name, is_opaque, is_stand_in

Tail = tuple[str, str, str]  # prefix, kind, pattern after the prefix

LONGEST_KEY = 20_000  # characters between the two ends of a private key; an RSA key of 16,384 bits has 12,700
RANDOM_STRETCH = 2.0  # characters of one sort in a row, on average; 1.5 in random strings, more than 3 in names
LETTERS_BY_RARITY = "etaoinsrhldcumfpgwybvkxjqz"
NEAR_BEFORE, NEAR_AFTER = 16, 240  # characters around the name of a command, where a quoted value may be
OPEN_END = 256  # how far an open-ended token is matched; more of the same alphabet belongs to it as well
CLASSES = {
    "[W]": "[A-Za-z0-9]",
    "[D]": "[A-Za-z0-9_-]",
    "[U]": "[A-Z0-9]",
    "[L]": "[a-z0-9]",
    "[H]": "[0-9a-f]",
    "[X]": "[0-9A-Fa-f]",
    "[B]": "[A-Za-z0-9+/=_-]",
    "[I]": "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}",
}


# ---- vendor tokens ----


@cache
def vendor_tails() -> dict[str, list[Tail]]:
    """Return the table of vendors by the first two characters of the prefix, longest prefix first."""
    table: dict[str, list[Tail]] = {}
    for line in rules.VENDORS.strip().splitlines():
        kind, prefixes, tail = line.split()
        for name, characters in CLASSES.items():
            tail = tail.replace(name, characters)
        tail = tail.replace(",}", f",{OPEN_END}}}+") if ",}" in tail else tail + "(?![A-Za-z0-9])"
        for prefix in prefixes.split(","):
            table.setdefault(prefix[:2], []).append((prefix, kind, tail))
    for tails in table.values():
        tails.sort(key=lambda tail: -len(tail[0]))
    return table


def find_vendor_tokens(folded: str, small: str) -> Iterator[Span]:
    """Find tokens of the vendors in the table, and of others whose prefix has a `sk`, `pat`, `secret`, ….

    Only runs of at least 16 characters are looked at, and in each run only the places where a token may begin: its
    start and after a separator.
    """
    done = 0
    for run in compiled(r"[A-Za-z0-9_.\-]{16,}+").finditer(folded):
        start, end = run.span()
        if folded[start - 1 : start] == "%":
            start = min(start + 2, end)
        found = vendor_token(folded, start, True)
        if found is None:
            for inner in compiled(r"[_.\-](?=[A-Za-z0-9])").finditer(folded, start, end):
                begin = inner.end()
                if begin >= done and folded[begin : begin + 2] in vendor_tails():
                    found = vendor_token(folded, begin, False)
                    if found:
                        yield found
                        done = found[1]
            found = _unlisted_token(folded, start, end) if done <= start else None
        if found:
            yield found
            done = found[1]


def vendor_token(folded: str, start: int, is_run_start: bool) -> Span | None:
    """Return the token of a vendor that begins here. A short prefix counts only where a run begins."""
    for prefix, kind, tail in vendor_tails().get(folded[start : start + 2], ()):
        if not folded.startswith(prefix, start) or (len(prefix) < 4 and not is_run_start):
            continue
        match = compiled(tail).match(folded, start + len(prefix))
        if match and _is_random(match.group()) and not is_documented(match.group()):
            rest = compiled(r"[A-Za-z0-9+/=_%-]{0,8192}+(?:\.[A-Za-z0-9_-]{8,4096}+){0,4}+").match(folded, match.end())
            end = rest.end() if rest and "}+" in tail else match.end()
            return start, start + len(folded[start:end].rstrip(".-")), kind
    return None


def _is_random(tail: str) -> bool:
    """Match digits or both cases, and more than a handful of different characters; not `xxxx…`, not a name."""
    head = tail[:64]
    return len(set(head)) >= 7 and (head.lower() != head != head.upper() or compiled("[0-9]").search(head) is not None)


def _unlisted_token(folded: str, start: int, end: int) -> Span | None:
    """Return a token in the usual form of a vendor that the table does not list; or Discord's."""
    run = folded[start : min(end, start + 300)].rstrip(".-_")
    if len(run) < 20 or compiled(r"[a-z.]++$").match(run):
        return None
    if run.count(".") == 2 and compiled(r"[MNO][\w-]{22,27}+\.[\w-]{6,7}+\.[\w-]{27,45}+$").match(run):
        return start, start + len(run), "discord"
    return (start, start + len(run), "token") if _says_token(run) or _looks_like_token(run) else None


UUID_AT_END = r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$"


def _says_token(run: str) -> bool:
    """Match a mark and then a random string or a UUID: `acme_sk_live_…`, `bar-pat-…`, `XYPAT_…`."""
    parts = re.split("[_-]", run)
    tail_parts = 5 if compiled(UUID_AT_END).search(run) else 1
    tail, marks = "".join(parts[-tail_parts:]), parts[:-tail_parts]
    if not _is_token_tail(tail) or not 1 <= len(marks) <= 4:
        return False
    is_hex = not tail.lower().strip("0123456789abcdef")
    listed = rules.TOKEN_MARKS_FOR_HEX if is_hex else rules.TOKEN_MARKS
    return any(mark.lower() in listed or mark.endswith(("PAT", "KEY", "TOKEN")) for mark in marks)


def _is_token_tail(tail: str) -> bool:
    return len(tail) >= 16 and tail.isalnum() and len(set(tail)) >= 9 and is_opaque(tail)


def _looks_like_token(run: str) -> bool:
    """Match a short name, a separator, and a long string of small letters, capitals and digits in random order."""
    tail = compiled(r"[A-Za-z]{2,8}+[_-]([A-Za-z0-9_-]{30,}+)$").match(run)
    if not tail or any(part.isalpha() and len(part) > 2 for part in re.split("[_-]", tail.group(1))):
        return False
    chunks = compiled(r"[A-Z]?[a-z]++|[A-Z]++|[0-9]++|[_-]").findall(tail.group(1))
    sorts = [sum(map(test, tail.group(1))) for test in (str.islower, str.isupper, str.isdigit)]
    return min(sorts) >= 3 and len(tail.group(1)) / len(chunks) < RANDOM_STRETCH


def find_shapes(folded: str, small: str) -> Iterator[Span]:
    """Find tokens by their form: webhook addresses, password hashes, raw keys, vendors without a prefix."""
    for sign, literal, kind, source in _signed_shapes():
        if sign in folded and literal in folded:
            for match in compiled(source, re.MULTILINE).finditer(folded):
                secret = match.group(1)
                if folded[match.start(1) - 1 : match.start(1)].isalnum() or is_documented(secret):
                    continue
                if _is_random(secret) or (kind == "password" and not is_stand_in(secret)):
                    yield match.start(1), match.end(1), kind


@cache
def _signed_shapes() -> list[tuple[str, str, str, str]]:
    """Return the table with the rarest character of each literal: most texts lack it, and looking for it is quick."""
    return [(max(literal, key=_rarity), literal, kind, source) for literal, kind, source in rules.SHAPES]


def _rarity(character: str) -> tuple[bool, bool, int]:
    return not character.isalnum(), not character.islower(), LETTERS_BY_RARITY.find(character)


# ---- private keys ----


def find_key_blocks(folded: str, small: str) -> Iterator[Span]:
    """Find PEM, OpenSSH, PGP and PuTTY private keys, also if their end or beginning was cut off."""
    if "private key" in small:
        yield from _pem_blocks(folded)
    if "private-lines" in small:
        for match in compiled(r"Private-Lines: {0,4}+[0-9]{1,4}+").finditer(folded):
            end = _end_of_body(folded, match.end(), len(folded))
            mac = compiled(r"\s{0,8}+Private-MAC: {0,4}+[0-9a-fA-F]{1,128}+").match(folded, end)
            yield match.end(), mac.end() if mac else end, "private-key"


KEY_MARKER = r"-{4,5}+ ?(BEGIN|END) [A-Z0-9 ]{0,24}?PRIVATE KEY(?: BLOCK)? ?-{4,5}+"
KEY_MATERIAL = r"[A-Za-z0-9+/=]{16}"


def _pem_blocks(folded: str) -> Iterator[Span]:
    """Find keys from BEGIN to END, or as far as there is key material; a header alone is not a key."""
    for marker, after in pairwise([*compiled(KEY_MARKER).finditer(folded), None]):
        if marker is None:
            return
        start, end = _pem_block(folded, marker, after)
        if start < end:
            yield start, end, "private-key"


def _pem_block(folded: str, marker: re.Match[str], after: re.Match[str] | None) -> tuple[int, int]:
    """Return the span of the key at this marker; it is empty if the marker is only mentioned."""
    has_material = compiled(KEY_MATERIAL).search
    if marker.group(1) == "END":
        start = _start_of_body(folded, marker.start())
        return start, marker.end() if has_material(folded, start, marker.start()) else start
    limit = after.start() if after else len(folded)
    if after and after.group(1) == "END" and limit - marker.end() < LONGEST_KEY:
        return marker.start(), after.end() if has_material(folded, marker.end(), limit) else marker.start()
    end = _end_of_body(folded, marker.end(), limit)
    return marker.start(), end if end > marker.end() else marker.start()


def _end_of_body(folded: str, start: int, limit: int) -> int:
    """Return the end of key material without END: the first line that is not base64 or a header of the key."""
    lines = compiled(  # each may have a margin: a quote or comment sign, a line number
        r"(?:[\s>|#*\"',+]{0,24}+(?:[0-9]{1,5}+[\t:> ]{1,4}+)?+"
        r"(?:[A-Za-z0-9+/=]{16,20000}+|(?:Proc-Type|DEK-Info|Version|Comment|Hash): [^\n]{0,200}+))*+"
    )
    end = lines.match(folded, start, limit).end()  # type: ignore[union-attr]
    last = compiled(
        r"[\s>|#*\"',+]{0,24}+(?:[0-9]{1,5}+[\t:> ]{1,4}+)?+[A-Za-z0-9+/]{1,80}+={0,2}+(?=[ \t]{0,8}+(?:[\r\n\"']|$))"
    ).match(folded, end, limit)
    return last.end() if last and end > start else end


def _start_of_body(folded: str, end: int) -> int:
    """Return the start of the lines of base64 that end here; only the last of them may be short."""
    start = end
    least = 1
    for line in reversed(folded[max(0, end - LONGEST_KEY) : end].split("\n")):
        material = compiled(r"[\s>|#*\"',+]{0,24}+([A-Za-z0-9+/=]{0,200}+)[\s\"',]{0,8}+$").match(line)
        if not material or 0 < len(material.group(1)) < least:
            break
        start -= len(line) + 1
        least = 32 if material.group(1) else least
    return max(0, start + 1)


# ---- places: private blocks, headers, URLs, command lines ----


def find_private_blocks(folded: str, small: str) -> Iterator[Span]:
    """Find everything from <private> to its </private>, or to the end of the text if none closes it."""
    if "private" not in small:
        return
    depth = start = 0
    for tag in compiled(
        r"(?:(?<!\w)<|<(?=\s{0,8}+/))\s{0,8}+(/?)\s{0,8}+private(?:\s[^<>]{0,80}+)?\s{0,8}+/?>"
    ).finditer(small):
        if not tag.group(1):
            start = tag.start() if depth == 0 else start
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                yield start, tag.end(), "private"
    if depth:
        yield start, len(folded), "private"


AUTHORIZATION = (
    r"authorization[\"'\]]{0,3}+\s{0,6}+([:=,])\s{0,6}+(?:[bf](?=[\"']))?[\"']{0,2}+\s{0,4}+"
    r"(?:(?:bearer|basic|token|apikey|api-key|key|ssws|digest|negotiate|oauth|splunk|bot|jwt|geniekey|aws4-hmac-sha256)(?::\s?|\s{1,4}+))?"
    r"([^\s\"'`<>,;)]{6,4096}+)"
)
SCHEME = r"(?:bearer|basic)(?:[ \t]|\+){1,3}+[\"']?([^\s\"'`<>,;)]{8,4096}+)"


def find_headers(folded: str, small: str) -> Iterator[Span]:
    """Find the values of Authorization, Bearer, Basic, Cookie and Set-Cookie."""
    if "authorization" in small:
        yield from _authorizations(folded, small)
    if "bearer" in small or "basic" in small:
        for match in compiled(SCHEME).finditer(small):
            value = folded[match.start(1) : match.end(1)]
            if is_opaque(value) and not is_code(value):
                yield match.start(1), match.end(1), "authorization"
    if "cookie" in small:
        yield from _set_cookies(folded, small)
        yield from _sent_cookies(folded, small)


def _authorizations(folded: str, small: str) -> Iterator[Span]:
    for match in compiled(AUTHORIZATION).finditer(small):
        value = folded[match.start(2) : match.end(2)]
        if _is_authorization(value, in_list=match.group(1) == ","):
            end = match.end(2)
            if "credential=" in value.lower():  # AWS: the signature is the last of three parts
                end = compiled(r"[^\"'\n]{0,600}+").match(folded, end).end()  # type: ignore[union-attr]
            yield match.start(2), end, "authorization"


def _is_authorization(value: str, *, in_list: bool) -> bool:
    """Match a credential; after a comma, where names may be listed, it must be random."""
    if is_stand_in(value) or is_code(value) or is_name(value) or (value.isalpha() and value.islower()):
        return False
    return not in_list or is_opaque(value)


SET_COOKIE = r"set-cookie[\"']?\s{0,4}+[:,=]\s{0,4}+[\"']?([\w.-]{1,80}+)=([^\s;\"',]{4,4096}+)"
SENT_COOKIES = (
    r"cookies?[\"']?(?:\s{0,4}+(?::\s{0,4}+[\"']?|=\s{0,4}+[\"'])|[ =][\"']?)"
    r"([\w.-]{1,80}+=[^\s\"',;]{6,4096}+(?:;\s{0,4}+[\w.-]{1,80}+=[^\s\"',;]{0,4096}+){0,60}+)"
)


def _set_cookies(folded: str, small: str) -> Iterator[Span]:
    for match in compiled(SET_COOKIE).finditer(small):
        value = folded[match.start(2) : match.end(2)]
        opens_session = any(part in match.group(1) for part in rules.SESSION_COOKIES)
        if not is_stand_in(value) and (opens_session or grade(value, quoted=False) > WORD):
            yield match.start(2), match.end(2), "cookie"


def _sent_cookies(folded: str, small: str) -> Iterator[Span]:
    for match in compiled(SENT_COOKIES).finditer(small):
        if compiled(r"(?<!--)(?<=[\w-])").match(small, match.start()):
            continue  # set-cookie, or the end of another word
        if any(map(_is_real_cookie, folded[match.start(1) : match.end(1)].split(";"))):
            yield match.start(1), match.end(1), "cookie"


def _is_real_cookie(pair: str) -> bool:
    """Match `name=value`, unless the name is an attribute or the value is missing, a stand-in or code."""
    name, _, value = pair.partition("=")
    value = value.strip()
    if not value or name.strip().lower() in rules.COOKIE_ATTRIBUTES:
        return False
    return not is_stand_in(value) and not is_code(value)


SOCKET_PASSWORD = r"(?<![\w:])[\w.-]{1,64}+:([^\s\"'@/]{1,128}+)@(?:tcp|unix)\("
SIGNED_QUERY = (
    r"[?&;](?:x-amz-(?:signature|security-token|credential)|x-goog-signature|signature|sig|key)="
    r"([\w%+/=.~-]{16,2048}+)"
)


def find_url_secrets(folded: str, small: str) -> Iterator[Span]:
    """Find the password in scheme://user:password@host, a lone token before the @, and signed query parameters."""
    position = small.find("://")
    while position >= 0:
        yield from _user_info(folded, position + 3)
        position = small.find("://", position + 3)
    if "@tcp(" in small or "@unix(" in small:
        for match in compiled(SOCKET_PASSWORD).finditer(folded):
            if not is_stand_in(match.group(1)):
                yield match.start(1), match.end(1), "password"
    if "=" in small and any(map(small.__contains__, ("sig", "key=", "x-amz-"))):
        for match in compiled(SIGNED_QUERY).finditer(small):
            if is_opaque(folded[match.start(1) : match.end(1)]):
                yield match.start(1), match.end(1), "signature"


def _user_info(folded: str, start: int) -> Iterator[Span]:
    chunk = compiled(r"[^\s\"'`<>\x00]{1,600}+").match(folded, start)
    if not chunk or "@" not in chunk.group():
        return
    rest = chunk.group()
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    at = authority.rfind("@")
    if at < 0:  # a password with / ? or # in it that was not encoded; a port is not a password
        odd = compiled(
            r"[^/?#:@]{0,64}+:(?![0-9]{1,5}/)([^@]{3,128}+)@[\w.-]{2,255}+(?::[0-9]{2,5}+)?(?:[/?,]|$)"
        ).match(rest)
        if not odd:
            return
        at = odd.end(1)
    user, colon, password = rest[:at].partition(":")
    if colon and password and not is_stand_in(password):
        yield start + len(user) + 1, start + at, "password"
    if len(user) >= 16 and is_opaque(user):
        yield start, start + len(user), "token"


def find_command_secrets(folded: str, small: str) -> Iterator[Span]:
    """Find secrets that a command takes by position or by a short flag: `curl -u me:…`, `mysql -p…`, `sshpass -p …`."""
    for sign, commands in _signed_commands():
        if sign in folded:
            for word, source in commands:
                if word in small:
                    yield from _taken_by(word, source, folded, small)


@cache
def _signed_commands() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the table with one row for each word."""
    return [
        (sign, [(word, source) for words, source in commands for word in words.split()])
        for sign, commands in rules.COMMANDS.items()
    ]


def _taken_by(word: str, source: str, folded: str, small: str) -> Iterator[Span]:
    """Find the secrets of a command at each of its calls. Case counts only after its word."""
    position = small.find(word)
    while position >= 0:
        name_end = position + len(word)
        match = compiled(source, re.MULTILINE).match(folded, name_end)
        if match and _is_taken(folded[position:name_end], match.group(1)):
            yield match.start(1), match.end(1), "password"
        yield from _taken_in_quotes(source, folded, name_end)
        position = small.find(word, match.end() if match else name_end)


def _taken_in_quotes(source: str, folded: str, name_end: int) -> Iterator[Span]:
    """Find a value with blanks in it: `curl -u "me:a b c"`, `sshpass -p 'a b c'`."""
    start, end = max(0, name_end - NEAR_BEFORE), name_end + NEAR_AFTER
    after = folded[name_end:end].partition("\n")[0]
    if "'" not in after and '"' not in after:
        return
    joined = compiled(r"\"[^\"]{1,128}+\"|'[^']{1,128}+'").sub(lambda text: text.group().replace(" ", OTHER), after)
    if joined != after:
        match = compiled(source, re.MULTILINE).match(folded[start:name_end] + joined, name_end - start)
        if match and OTHER in match.group(1) and not is_stand_in(match.group(1).replace(OTHER, " ")):
            yield start + match.start(1), start + match.end(1), "password"


def _is_taken(name: str, value: str) -> bool:
    """Match a secret. `MySQL` in mixed case is a name, not a command, unless the value looks like a secret."""
    if is_stand_in(value) or (value.islower() and is_listed(value)):  # "htpasswd -b needs a file first"
        return False
    return name.islower() or name.isupper() or grade(value, quoted=False) > WORD


# ---- personal data ----

LETTERS_AND_DIGITS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
ASSET_ENDINGS = ("png", "jpg", "jpeg", "gif", "svg", "webp", "js", "css", "ico")  # icon@2x.png


def find_emails(folded: str, small: str) -> Iterator[Span]:
    """Find e-mail addresses, but not `git@host` (a remote) and `icon@2x.png` (a file)."""
    position = folded.find("@")
    while position >= 0:
        before = folded[max(0, position - 64) : position]
        name = before[len(before.rstrip(LETTERS_AND_DIGITS + "._%+-'")) :].lstrip(".%+-'")
        domain = compiled(r"[A-Za-z0-9-]{1,63}+(?:\.[A-Za-z0-9-]{1,63}+){1,8}+").match(folded, position + 1)
        if name and name != "git" and domain:
            ending = domain.group().rpartition(".")[2].lower()
            if len(ending) > 1 and ending.isalpha() and ending not in ASSET_ENDINGS:
                yield position - len(name), domain.end(), "email"
        position = folded.find("@", position + 1)


def find_cards(folded: str, small: str) -> Iterator[Span]:
    """Find payment card numbers by an issuer's range, the length, and the Luhn check digit."""
    if not any(map(folded.__contains__, "23456")):
        return
    number = compiled(
        r"[2-6][0-9]{3}(?:[0-9]{9,15}+|[ -][0-9]{4}[ -][0-9]{4}[ -][0-9]{1,4}+(?:[ -][0-9]{1,3}+)?"
        r"|[ -][0-9]{6}[ -][0-9]{4,5}+)(?![\w-]|\.[0-9])"
    )
    for match in number.finditer(folded):
        if compiled(r"(?<=[\w.,+-])").match(folded, match.start()):
            continue
        digits = re.sub("[ -]", "", match.group())
        if _is_issued(digits) and _luhn(digits):
            yield match.start(), match.end(), "card"


def _is_issued(digits: str) -> bool:
    """Return True if cards of this length begin with these digits."""
    ranges = rules.CARDS.get(len(digits), ())
    return any(low <= digits[: len(low)] <= high for low, high in ranges)


def _luhn(digits: str) -> bool:
    doubled = [int(digit) * (2 if place % 2 else 1) for place, digit in enumerate(reversed(digits))]
    return len(set(digits)) > 1 and sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


WORDS_ALONE = r"[ \t]{0,16}+((?:[a-z]{3,8}+ ){11,23}+[a-z]{3,8}+)[ \t]{0,4}+\r?$"
WORDS_BELOW = rf"\n{WORDS_ALONE}"


SEED_WORDS = (
    r"[^\n]{0,40}?(?:[:=\"'`\n\[]| are | is )[\s\"'`:=\[(]{0,8}+"
    r"((?:[\"']?(?:[0-9]{1,2}[.):]? ?|[*-] )?[\"']?[a-z]{3,8}+[\"']?[ ,;\r\n\t]{1,4}+){11,23}+"
    r"[\"']?(?:[0-9]{1,2}[.):]? ?|[*-] )?[\"']?[a-z]{3,8}+)"
)


def find_seed_phrases(folded: str, small: str) -> Iterator[Span]:
    """Find twelve or more short words after `seed phrase`, `mnemonic` or the like, or alone on a line."""
    if any(sign in small for sign in rules.SEED_SIGNS):
        for match in _seed_cues().finditer(small):
            phrase = compiled(SEED_WORDS).match(small, match.end())
            if phrase and not _is_sentence(phrase.group(1)):
                yield phrase.start(1), phrase.end(1), "seed-phrase"
    first = compiled(WORDS_ALONE, re.MULTILINE).match(folded)
    below = compiled(WORDS_BELOW, re.MULTILINE).finditer(folded) if "\n" in folded else ()
    for line in chain([first] if first else [], below):
        if _is_seed_line(folded, line):
            yield line.start(1), line.end(1), "seed-phrase"


def _is_seed_line(folded: str, line: re.Match[str]) -> bool:
    """Match 12, 15, 18, 21 or 24 words that make no sentence and stand in no list."""
    count = line.group(1).count(" ") + 1
    return count % 3 == 0 and not _is_sentence(line.group(1)) and not _is_in_list(folded, *line.span(1))


@cache
def _seed_cues() -> re.Pattern[str]:
    return re.compile(rules.SEED_CUES)


def _is_sentence(words: str) -> bool:
    return not rules.SEED_STRANGERS.isdisjoint(re.split(r"[^a-z]+", words.lower()))


def _is_in_list(folded: str, start: int, end: int) -> bool:
    """Match a line beside another line of bare words: a list of key words in a source file."""
    bare = compiled(r"[ \t]{0,40}+[a-z0-9_-]++(?: [a-z0-9_-]++){3,60}+[ \t\r]{0,4}+$")
    before = folded[max(0, start - 400) : start].rpartition("\n")[0].rpartition("\n")[2]
    after = folded[end : end + 400].partition("\n")[2].partition("\n")[0]
    return bare.match(before) is not None or bare.match(after) is not None
