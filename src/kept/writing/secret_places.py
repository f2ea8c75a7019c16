"""Secrets that the place gives away: headers, URLs, command lines, <private> blocks; and personal data.

Finders of redaction that need no cue word. Each takes the folded text and the same in small letters and yields
(start, end, kind). Patterns are anchored at a literal and bounded, so that the time grows with the text alone.

Rule: what stands in a place made for a secret is one, unless it is a template, a variable or a mask.
"""

import re
from collections.abc import Iterator
from functools import cache

from kept.writing.secret_values import WORD, compiled, grade, is_code, is_name, is_opaque, is_stand_in
from kept.writing.secrets_rules import COMMANDS

Span = tuple[int, int, str]

LETTERS_AND_DIGITS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
ASSET_ENDINGS = ("png", "jpg", "jpeg", "gif", "svg", "webp", "js", "css", "ico")  # icon@2x.png


def find_private_blocks(text: str, small: str) -> Iterator[Span]:
    """Everything from <private> to its </private>, nested ones included; to the end of the text if none closes it."""
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
        yield start, len(text), "private"


def find_headers(text: str, small: str) -> Iterator[Span]:
    """What Authorization, Bearer, Basic, Cookie and Set-Cookie carry."""
    if "authorization" in small:
        header = compiled(
            r"authorization[\"'\]]{0,3}+\s{0,6}+([:=,])\s{0,6}+(?:[bf](?=[\"']))?[\"']{0,2}+\s{0,4}+"
            r"(?:(?:bearer|basic|token|apikey|api-key|key|ssws|digest|negotiate|oauth|splunk|bot|jwt|geniekey|aws4-hmac-sha256)(?::\s?|\s{1,4}+))?"
            r"([^\s\"'`<>,;)]{6,4096}+)"
        )
        for match in header.finditer(small):
            value = text[match.start(2) : match.end(2)]
            if is_stand_in(value) or is_code(value) or is_name(value) or (value.isalpha() and value.islower()):
                continue
            if match.group(1) == "," and not is_opaque(value):
                continue  # a list of names
            end = match.end(2)
            if "credential=" in value.lower():  # AWS: the signature is the last of three parts
                end = compiled(r"[^\"'\n]{0,600}+").match(text, end).end()  # type: ignore[union-attr]
            yield match.start(2), end, "authorization"
    if "bearer" in small or "basic" in small:
        scheme = compiled(r"(?:bearer|basic)(?:[ \t]|\+){1,3}+[\"']?([^\s\"'`<>,;)]{8,4096}+)")
        for match in scheme.finditer(small):
            value = text[match.start(1) : match.end(1)]
            if is_opaque(value) and not is_code(value):
                yield match.start(1), match.end(1), "authorization"
    if "cookie" in small:
        yield from _cookies(text, small)


def _cookies(text: str, small: str) -> Iterator[Span]:
    answer = compiled(r"set-cookie[\"']?\s{0,4}+[:,=]\s{0,4}+[\"']?[\w.-]{1,80}+=([^\s;\"',]{4,4096}+)")
    for match in answer.finditer(small):
        if not is_stand_in(text[match.start(1) : match.end(1)]):
            yield match.start(1), match.end(1), "cookie"
    request = compiled(
        r"cookies?[\"']?(?:\s{0,4}+(?::\s{0,4}+[\"']?|=\s{0,4}+[\"'])|[ =][\"']?)"
        r"([\w.-]{1,80}+=[^\s\"',;]{6,4096}+(?:;\s{0,4}+[\w.-]{1,80}+=[^\s\"',;]{0,4096}+){0,60}+)"
    )
    for match in request.finditer(small):
        if compiled(r"(?<!--)(?<=[\w-])").match(small, match.start()):
            continue  # set-cookie, or the end of another word
        values = [pair.partition("=")[2].strip() for pair in text[match.start(1) : match.end(1)].split(";")]
        if not all(is_stand_in(value) or is_code(value) for value in values if value):
            yield match.start(1), match.end(1), "cookie"


def find_url_secrets(text: str, small: str) -> Iterator[Span]:
    """The password in scheme://user:password@host, a lone token before the @, and signed query parameters."""
    position = small.find("://")
    while position >= 0:
        yield from _user_info(text, position + 3)
        position = small.find("://", position + 3)
    if "@tcp(" in small or "@unix(" in small:
        for match in compiled(r"(?<![\w:])[\w.-]{1,64}+:([^\s\"'@/]{1,128}+)@(?:tcp|unix)\(").finditer(text):
            if not is_stand_in(match.group(1)):
                yield match.start(1), match.end(1), "password"
    if "=" in small and ("sig" in small or "key=" in small or "x-amz-" in small):
        query = compiled(
            r"[?&;](?:x-amz-(?:signature|security-token|credential)|x-goog-signature|signature|sig|key)="
            r"([\w%+/=.~-]{16,2048}+)"
        )
        for match in query.finditer(small):
            if is_opaque(text[match.start(1) : match.end(1)]):
                yield match.start(1), match.end(1), "signature"


def _user_info(text: str, start: int) -> Iterator[Span]:
    chunk = compiled(r"[^\s\"'`<>\x00]{1,600}+").match(text, start)
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


def find_command_secrets(text: str, small: str) -> Iterator[Span]:
    """Secrets that a command takes by position or by a short flag: `curl -u me:…`, `mysql -p…`, `sshpass -p …`."""
    for sign, commands in _signed_commands():
        if sign in text:
            for word, source in commands:
                if word in small:
                    yield from _taken_by(word, source, text, small)


@cache
def _signed_commands() -> list[tuple[str, list[tuple[str, str]]]]:
    """The table, with each word by itself."""
    return [
        (sign, [(word, source) for words, source in commands for word in words.split()])
        for sign, commands in COMMANDS.items()
    ]


def _taken_by(word: str, source: str, text: str, small: str) -> Iterator[Span]:
    """What a command takes, wherever it is called. The word is found in any case, and the pattern begins behind it."""
    position = small.find(word)
    while position >= 0:
        name_end = position + len(word)
        match = compiled(source, re.MULTILINE).match(text, name_end)
        if match and _is_taken(text[position:name_end], match.group(1)):
            yield match.start(1), match.end(1), "password"
        position = small.find(word, match.end() if match else name_end)


def _is_taken(name: str, value: str) -> bool:
    """Whether that is a secret. In mixed case, `MySQL` is a name and no command, unless the value looks like one."""
    return not is_stand_in(value) and (name.islower() or name.isupper() or grade(value, quoted=False) > WORD)


# ---- personal data ----


def find_emails(text: str, small: str) -> Iterator[Span]:
    """E-mail addresses. `git@host` (a remote) and `icon@2x.png` (a file) are none."""
    position = text.find("@")
    while position >= 0:
        before = text[max(0, position - 64) : position]
        name = before[len(before.rstrip(LETTERS_AND_DIGITS + "._%+-'")) :].lstrip(".%+-'")
        domain = compiled(r"[A-Za-z0-9-]{1,63}+(?:\.[A-Za-z0-9-]{1,63}+){1,8}+").match(text, position + 1)
        if name and name != "git" and domain:
            ending = domain.group().rpartition(".")[2].lower()
            if len(ending) > 1 and ending.isalpha() and ending not in ASSET_ENDINGS:
                yield position - len(name), domain.end(), "email"
        position = text.find("@", position + 1)


def find_cards(text: str, small: str) -> Iterator[Span]:
    """Payment card numbers: an issuer's range, its length, and the Luhn check digit."""
    if not any(map(text.__contains__, "23456")):
        return
    number = compiled(
        r"[2-6][0-9]{3}(?:[0-9]{9,15}+|[ -][0-9]{4}[ -][0-9]{4}[ -][0-9]{1,4}+(?:[ -][0-9]{1,3}+)?"
        r"|[ -][0-9]{6}[ -][0-9]{4,5}+)(?![\w-]|\.[0-9])"
    )
    for match in number.finditer(text):
        if compiled(r"(?<=[\w.,+-])").match(text, match.start()):
            continue
        digits = re.sub("[ -]", "", match.group())
        if _is_issued(digits) and _luhn(digits):
            yield match.start(), match.end(), "card"


def _is_issued(digits: str) -> bool:
    """Does a card of this length begin with these digits? Visa, Mastercard, Amex, Diners, JCB, Discover, UnionPay."""
    two, three, four = int(digits[:2]), int(digits[:3]), int(digits[:4])
    if len(digits) == 14:
        return two in (36, 38) or 300 <= three <= 305
    if len(digits) == 15:
        return two in (34, 37)
    if len(digits) == 16:
        return (
            digits[0] == "4"
            or 51 <= two <= 55
            or 2221 <= four <= 2720
            or 3528 <= four <= 3589
            or two in (62, 65)
            or four == 6011
            or 644 <= three <= 649
        )
    return len(digits) == 19 and two in (62, 65)


def _luhn(digits: str) -> bool:
    doubled = [int(digit) * (2 if place % 2 else 1) for place, digit in enumerate(reversed(digits))]
    return len(set(digits)) > 1 and sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def find_seed_phrases(text: str, small: str) -> Iterator[Span]:
    """Twelve or more small words behind `seed phrase`, `mnemonic` or `recovery phrase`."""
    if "phrase" not in small and "mnemonic" not in small and "seed" not in small:
        return
    cue = compiled(
        r"(?:seed|recovery|backup|secret|wallet)[ _-]?(?:phrase|words?)|mnemonic(?:[ _-]phrase)?|\bseed\b"
        r"|wiederherstellungsphrase"
    )
    words = compiled(
        r"[^\n]{0,40}?(?:[:=\"'`\n]| is )[\s\"'`:=]{0,6}+"
        r"((?:(?:[0-9]{1,2}[.)] ?)?[a-z]{3,8}+[ ,\n]{1,2}+){11,23}+[a-z]{3,8}+)"
    )
    for match in cue.finditer(small):
        phrase = words.match(small, match.end())
        if phrase and not {"the", "and", "for", "are", "from", "your"} & set(re.split(r"[^a-z]+", phrase.group(1))):
            yield phrase.start(1), phrase.end(1), "seed-phrase"
