"""Secrets that their surroundings give away: a cue word, a tie, and a value.

    the db password is hunter2hunter      DB_PASSWORD=…      "apiKey": "…"      --token …      <password>…</password>

One of redaction's finders, and the one that reads prose. It follows each cue to the values that are tied to it, and
judges each by how strong the cue is, how firm the tie, and how much the value looks like a secret.

Rule: every pattern is anchored at a cue and of bounded length, so each cue costs about the same, whatever follows it.
"""

import re
from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import NamedTuple

from kept.writing.secret_cues import Cue, find_cues
from kept.writing.secret_values import (
    MIXED,
    NOTHING,
    OPAQUE,
    compiled,
    grade,
    is_constant,
    is_hash,
    is_name,
    is_numbered_name,
    is_opaque,
    is_passphrase,
    is_plain,
)
from kept.writing.secret_view import MASK, fold
from kept.writing.secrets_rules import BENIGN_SUFFIXES, GAP_OPENERS, LINKS, LINKS_UNSPACED, VERBS

Span = tuple[int, int, str]

KINDS = {"pass": "password", "key": "api-key"}  # the family of the cue is the kind, but for these
GAP = 160  # how far a value may stand from its cue in a sentence
TRIES = 4  # how many links of one sentence are followed
CROWDED = 24  # characters a cue, on average, below which a long text is not text; it is then redacted as a whole
LOOK = 64  # how much of a value is looked at to judge it
BEFORE_CUES = ("is", "as", "ist", "als", "est", "comme", "es", "como", "come")  # "use value *as* the password"
ROWS = 200  # how many rows of a table are read below its heading


class Tie(Enum):
    """How a value is tied to its cue, from the firmest."""

    LITERAL = "NAME=value, --flag value, <password>value<: only a value can stand here"
    ASSIGNED = "name = value: a variable can stand here as well"
    STATED = "password is value, password: value"
    APART = "password for the staging box is value"
    ARGUMENT = 'setPassword("value")'
    DISTANT = "the password was leaked: value"
    LOOSE = "password value, set the password to value, value as password"


class Value(NamedTuple):
    """Where a value stands, and whether quotes or their like delimit it."""

    start: int
    end: int
    quoted: bool


def find_cued_secrets(text: str, small: str) -> Iterator[Span]:
    """Values behind a cue, cells below one, and word lists behind a cue for seed phrases."""
    yield from _seed_phrases(small)
    resume = table_end = 0
    allowance = len(text) // CROWDED + text.count(MASK) + 1000
    for cue in find_cues(text, small):
        allowance -= 1
        if allowance < 0:
            raise ValueError("a text that is made of cue words cannot be checked in linear time")
        if cue.start < resume and cue.end <= resume:
            continue
        kind = KINDS.get(cue.family, cue.family)
        value = _value(text, small, cue)
        if value:
            yield value.start, value.end, kind
            resume = value.end
            allowance += 1
        elif cue.start >= table_end:
            cells, table_end = _column(text, cue)
            for cell in cells:
                yield cell.start, cell.end, kind


def _value(text: str, small: str, cue: Cue) -> Value | None:
    """The secret that is tied to the cue, if there is one; the firmest tie is tried first."""
    after = text[cue.end : cue.end + 1]
    value = None
    link = _sign().match(small, cue.end)
    if link:
        if text[link.end() : link.end() + 1] == MASK:
            return None
        value = _assigned(text, small, cue, link)
    elif after and after in " \t\n\r\"'`*)]<>(,{?" or after > "\x7f":
        value = (
            (_element_text(text, cue) if after in "\"'>" else None)
            or _named_elsewhere(text, small, cue)
            or (_argument(text, cue) if after in "(\"'" else None)
            or _linked(text, small, cue)
            or _apart(text, small, cue)
            or _beside(text, small, cue)
        )
    if value is None and cue.family != "pass" and small[cue.start - 1 : cue.start] == " ":
        value = _stated_before(text, small, cue)
    return value


# ---- from the cue to the value ----


@cache
def _sign() -> re.Pattern[str]:
    """What assigns: `=`, `:`, `->` and their like, after closing quotes and brackets; with a type between, if need be."""
    return re.compile(
        r"""["'`\])*]{0,4}+([ \t]{0,24}+)(:[ \t]{0,4}+[a-z_.\[\]<>, |?]{1,40}+=(?!=)|:=|=>|-{1,2}>|\?=|\|\|=|\+=|={1,3}+|!={1,2}+"""
        r"""|:{1,2}+|<-|<<<|\||%3d|%3a|(?<=[ \t])(?:[->~]|\.{2,3}+)(?=[ \t]))(?:\*\*|[\])])?([ \t]{0,40}+)"""
    )


def _assigned(text: str, small: str, cue: Cue, link: re.Match[str]) -> Value | None:
    """`name = value`, `"name": value`, `name: type = value`, and the value on the next line."""
    position, sign = link.end(), link.group(2)
    below = compiled(
        r"(?:[|>][-+]?)?[ \t]{0,8}+(?:\r?\n[ \t>#*+-]{0,24}+){1,3}+(?:```\w{0,12}+\n)?[ \t]{0,16}+"
    ).match(text, position)
    if below:
        return _named_elsewhere(text, small, cue) or _read(text, cue, below.end(), Tie.STATED)
    if sign in ("|", "-", ">", "~") or sign.startswith(".."):
        return _read(text, cue, position, Tie.LOOSE)
    if "=" in sign or sign in ("<-", "<<<", "%3d"):
        is_spaced = link.group(1) or link.group(3)
        return _read(text, cue, position, Tie.ASSIGNED if is_spaced else Tie.LITERAL)
    value = _read(text, cue, position, Tie.STATED)
    if value is None and link.group(3):  # "password: it is still …"
        value = _linked(text, small, cue._replace(end=position - 1))
    return value


def _named_elsewhere(text: str, small: str, cue: Cue) -> Value | None:
    """`name: NAME` with `value: …` beside or below it, `<key>NAME</key><string>…`, `variable "NAME" { default = …`."""
    link = compiled(
        r"""["'`]?(?:[ \t]{0,8}+,?[ \t\r\n]{0,60}+["']?[ \t]{0,2}+(?:value|val|default|content|defaultvalue|secretstring)["']?"""
        r"""[ \t]{0,8}+(?::[ \t]{0,8}+|=[ \t]{0,8}+(?=["']))"""
        r"""|[ \t]{1,4}+(?:--(?:value|secret-string|secret|data|body)[ =]|-b[ ]?)"""
        r"""|\s{0,4}+\{[^{}]{0,200}?\bdefault\s{0,16}+=\s{0,4}+(?=["'])"""
        r"""|</[a-z]{1,20}+>\s{0,60}+<[a-z]{1,20}+>)"""
    ).match(small, cue.end)
    return _read(text, cue, link.end(), Tie.LITERAL) if link else None


def _element_text(text: str, cue: Cue) -> Value | None:
    """`<password>value</password>`, `<entry key="db.password">value</entry>`."""
    match = compiled(r"[\"']?>\s{0,40}+([^<>\n]{3,512}+)<").match(text, cue.end)
    value = Value(match.start(1), match.end(1), True) if match else None
    return value if value and _is_secret(text, cue, value, Tie.LITERAL) else None


def _argument(text: str, cue: Cue) -> Value | None:
    """`setPassword("value")`, `getenv("API_KEY", "value")`."""
    link = compiled(r"""["']?[ \t]{0,4}+(?:\(|,)[ \t]{0,24}+(?=[bruf]{0,2}+["'])""").match(text, cue.end)
    return _read(text, cue, link.end(), Tie.ARGUMENT) if link else None


def _linked(text: str, small: str, cue: Cue) -> Value | None:
    """`password is value`, `password should now be set to value`."""
    run = _links().match(small, cue.end)
    if not run:
        return None
    words = (run.group(1) or "is").split()
    is_firm = any(word in VERBS and word != "to" for word in words) or "to" in words and _is_being_set(small, cue)
    if cue.family == "pass" and not is_firm:
        return None  # "pass it to the parser"
    return _read(text, cue, run.end(), Tie.STATED if is_firm else Tie.LOOSE)


def _apart(text: str, small: str, cue: Cue) -> Value | None:
    """`password for the staging box is value`, `the password was leaked: value`."""
    opener = compiled(r"[\"'`*)]{0,3}+,?[ \t]{1,3}+([(\[]|[^\W\d_]{1,20}+)").match(small, cue.end)
    if not opener or opener.group(1) in BENIGN_SUFFIXES and opener.group(1) not in GAP_OPENERS | LINKS:
        return None  # "password policy is …", or nothing of a sentence
    is_near = opener.group(1) in GAP_OPENERS or opener.group(1) in ("(", "[")
    line_end = small.find("\n", cue.end, cue.end + GAP)
    limit = min(line_end + 3 if line_end >= 0 else cue.end + GAP, cue.end + (GAP if is_near else GAP // 3))
    if not is_near and not compiled("[0-9]").search(small, cue.end, limit + GAP):
        return None
    for tries, link in enumerate(_late_links().finditer(small, opener.end(), limit)):
        if link.group(1) or tries == TRIES or link.start() > cue.next_start and tries:
            return None  # the sentence ends, or the value belongs to the next cue
        value = _read(text, cue, link.end(), Tie.APART if is_near else Tie.DISTANT)
        if value:
            return value
    return None


def _is_being_set(small: str, cue: Cue) -> bool:
    before = small[max(0, cue.start - 48) : cue.start]
    return compiled(r"(?<![a-z])(?:set|sets|setting|reset|chang(?:e|ed|ing)|updated?|rotated?)(?![a-z])").search(before) is not None


@cache
def _alternatives(words: frozenset[str]) -> str:
    return "|".join(sorted(map(re.escape, map(fold, words)), key=len, reverse=True))


@cache
def _links() -> re.Pattern[str]:
    """A run of small words that links the cue to what follows it; or `'s`, or a question mark."""
    return re.compile(
        rf"(?:'s(?=\s)|[\"'`*)]{{0,3}}+(?:{_alternatives(LINKS_UNSPACED)}|\?[ \t\n]{{1,3}}+(?:it'?s |it is )?"
        rf"|((?:[ \t\r\n]{{1,3}}+(?:{_alternatives(LINKS)})(?=[\s:=])){{1,6}}+)))[ \t]{{0,3}}+[:=]?[ \t\n]{{0,3}}+"
    )


@cache
def _late_links() -> re.Pattern[str]:
    """A verb and its small words, or a colon; or the end of the sentence, in group 1."""
    return re.compile(
        rf"([.?!;][ \t])|(?<![\w.])(?:{_alternatives(VERBS)})(?:[ \t]{{1,2}}+(?:{_alternatives(LINKS)})(?=[\s:])){{0,4}}+:?[ \t]{{1,2}}+"
        r"|(?::|=|->|=>|>)[ \t\n]{1,3}+"
    )


def _beside(text: str, small: str, cue: Cue) -> Value | None:
    """`password value`, `--password value`, `ENV NAME value`, `PASSWORD 'value'`."""
    gap = compiled(r"(?:[\"'`*]{1,2}+,?)?[ \t]{1,8}+\(?").match(text, cue.end)
    if not gap:
        return None
    is_flag = cue.name.startswith("-") and text[cue.start - 1 : cue.start] in ("", " ", "\t", "\n", '"', "'", "[", "`")
    if is_flag or _is_setter(small, cue):
        return _read(text, cue, gap.end(), Tie.LITERAL)
    return _read(text, cue, gap.end(), Tie.LOOSE) if cue.family != "pass" else None


def _is_setter(small: str, cue: Cue) -> bool:
    """Does a command or a user name stand before the cue, so that a value must follow? `ENV`, `setx`, `login me`."""
    words = small[max(0, cue.start - 80) : cue.start].split()[-4:]
    if words and words[-1] in ("and", "with"):
        words.pop()
    return bool(words) and (
        words[-1] in ("env", "arg", "setx", "set", "setenv", "export")
        or len(words) > 1
        and (words[-2] in ("login", "user", "username") and words[-1] not in ("and", "or", "with") or words[-2] == "set" and words[-1][0] == "-")
    )


def _stated_before(text: str, small: str, cue: Cue) -> Value | None:
    """`use value as the password`, `value is my token`."""
    before = small[max(0, cue.start - GAP) : cue.start]
    words = before.split()[-8:]
    place = next((place for place in range(len(words) - 1, max(0, len(words) - 6), -1) if words[place] in BEFORE_CUES), 0)
    word = words[place - 1].strip("\"'`*,()") if place else ""
    if len(word) < 6:
        return None
    start = max(0, cue.start - GAP) + before.rindex(word, 0, before.rindex(f" {words[place]} "))
    value = Value(start, start + len(word), False)
    is_used = place > 1 and words[place - 2] in ("use", "used", "try", "type", "enter", "with")
    return value if _is_secret(text, cue, value, Tie.STATED if is_used else Tie.LOOSE) else None


def _column(text: str, cue: Cue) -> tuple[list[Value], int]:
    """The cells below a heading, `user,password` or `| user | password |`, and where the table ends."""
    cells: list[Value] = []
    if not compiled(r"[ \"'*`]{0,8}+[|\t;,\n]").match(text, cue.end):
        return cells, 0
    start = text.rfind("\n", max(0, cue.start - 400), cue.start) + 1
    end = text.find("\n", cue.end, cue.end + 400)
    heading = text[start:end] if end >= 0 else ""
    sign = next((sign for sign in "|\t;," if sign in heading), None)
    if sign is None or heading.split(sign)[(place := heading.count(sign, 0, cue.start - start))].strip(" \"'*`") != cue.name:
        return cells, 0
    for _ in range(ROWS):
        start, end = end + 1, text.find("\n", end + 1, end + 2000)
        row = text[start : end if end >= 0 else start + 2000].split(sign)
        if end < 0 and start >= len(text) or len(row) != heading.count(sign) + 1:
            break
        content = row[place].strip(" \"'`")
        start += sum(map(len, row[:place])) + place + row[place].index(content)
        cell = Value(start, start + len(content), True)
        if content and _is_secret(text, cue, cell, Tie.LOOSE):
            cells.append(cell)
        if end < 0:
            break
    return cells, start


# ---- the value ----


def _read(text: str, cue: Cue, position: int, tie: Tie) -> Value | None:
    """The value that begins here, if it is a secret."""
    value = _quoted(text, position) or _unquoted(text, position, tie)
    if value is None:
        return None
    scheme = compiled(r"(?i:bearer|basic|token|apikey|bot|ssws)[ \t]{1,3}+").match(text, value.start)
    if scheme and tie is not Tie.LOOSE:
        inner = Value(scheme.end(), value.end, True) if value.end > scheme.end() else _unquoted(text, scheme.end(), tie)
        if inner and is_opaque(text[inner.start : inner.end]):
            return inner
    if cue.family == "credentials":
        second = _second_of_pair(text, value)
        if second:
            cue, value = cue._replace(family="password"), second
    if _is_secret(text, cue, value, tie):
        return value
    if not value.quoted and cue.family == "password" and tie in (Tie.STATED, Tie.APART, Tie.ASSIGNED, Tie.LITERAL):
        phrase = compiled(r"[a-z]{3,12}+(?: [a-z]{3,12}+){3,7}+(?=[.,;:)]?(?:\s|$))").match(text, value.start)
        if phrase and is_passphrase(phrase.group()):
            return Value(phrase.start(), phrase.end(), True)
    return None


def _quoted(text: str, position: int) -> Value | None:
    """A string literal, with or without a call around it: `"…"`, `b'…'`, `String::from("…")`, `**…**`."""
    opening = compiled(
        r"""(?:(?:[A-Za-z_][\w.:]{0,40}+)?\([ \t]{0,4}+|\[[ \t]{0,4}+){0,2}+(?:[bBrRuUfFlL]{1,2}|@|\$)?("{3}|'{3}|["'`]|\*\*)"""
    ).match(text, position)
    if not opening:
        return None
    mark, start = opening.group(1), opening.end()
    line_end = text.find("\n", start, start + 2048) if len(mark) < 3 else -1
    end = text.find(mark, start, line_end if line_end >= 0 else start + 2048)
    if end < 0:
        return _unquoted(text, start, Tie.STATED) if opening.start(1) == position else None
    content = text[start:end]
    start += len(content) - len(content.lstrip())
    end -= len(content) - len(content.rstrip())
    return Value(start, end, True) if end > start else None


def _unquoted(text: str, position: int, tie: Tie) -> Value | None:
    """What reaches to the next blank, less the punctuation around it."""
    literal = tie is Tie.LITERAL
    stop = r"[^\s\"\x00\u2e80-\uabff]{1,512}+" if literal else r"[^\s\"'`<>|\x00\u2e80-\uabff]{1,512}+"
    match = compiled(stop).match(text, position)
    if not match:
        return None
    value = match.group()
    cut = compiled(r"[;&,](?=[\w. -]{1,40}+[=:])|'|</").search(value, 1)
    value = value[: cut.start()] if cut else value
    if "(" not in value and tie in (Tie.LITERAL, Tie.ASSIGNED):
        value = value.partition(")")[0]
    opened = value.lstrip("(")
    position += len(value) - len(opened)
    value = opened.rstrip(",;`" if literal else ".,;:)]}*`")
    return Value(position, position + len(value), False) if value else None


def _second_of_pair(text: str, value: Value) -> Value | None:
    """Of `me / value`, `me:value` and `"me", "value"`, the value."""
    pair = compiled(
        r"""[\w.@+-]{1,64}+["'`]?(?:[ \t]{1,2}+(?:/|\||and|und|et)[ \t]{1,2}+|:[ \t]?|/|,[ \t]{0,2}+(?=["']))["'`]?(?=([^\s"'`]{3,128}+))"""
    ).match(text, value.start)
    if not pair:
        return None
    secret = pair.group(1).rstrip(".,;)")
    return Value(pair.end(), pair.end() + len(secret), pair.group()[-1] in "\"'`") if secret else None


# ---- the judgement: how strong is the cue, how firm the tie, how opaque the value ----


def _is_secret(text: str, cue: Cue, value: Value, tie: Tie) -> bool:
    content = text[value.start : value.end]
    if len(content) < 4 or not value.quoted and content.isalpha() and is_plain(content):
        return False
    if " " in content:
        return cue.family in ("password", "secret") and value.quoted and not cue.is_weak and is_passphrase(content)
    literal = value.quoted or tie is Tie.LITERAL
    bare = content.rstrip("!?")  # "is the secret exposed?" ends a sentence, "hunter2!" a password
    level = grade((bare if bare.isalpha() and not literal else content)[:LOOK], quoted=value.quoted)
    if level == NOTHING or content.lower() == cue.name.lower() or not literal and is_name(content):
        return False
    if content.isdigit():
        return _is_secret_number(content, cue, literal, tie)
    if cue.is_weak or tie is Tie.DISTANT:
        may_be_hash = cue.family != "key" and tie is not Tie.DISTANT
        return level == OPAQUE and len(content) >= 12 and (may_be_hash or not is_hash(content))
    if cue.family in ("password", "pass"):
        judge = _is_mixed_password if level >= MIXED else _is_word_password
        return judge(text, cue, value, tie) if level < OPAQUE else True
    if cue.family == "pin":
        return level >= MIXED and len(content) >= 6 and tie is not Tie.LOOSE
    if level == OPAQUE:
        return len(content) >= (12 if tie is Tie.LOOSE else 8)
    if tie is Tie.LOOSE and not value.quoted or tie is Tie.ASSIGNED and not value.quoted and not content[0].isdigit():
        return False  # `token = lexer2` is code
    return level == MIXED and len(content) >= 8 and not is_numbered_name(content)


def _is_mixed_password(text: str, cue: Cue, value: Value, tie: Tie) -> bool:
    content = text[value.start : value.end]
    if value.quoted or tie is Tie.LITERAL or cue.family != "pass" and tie not in (Tie.ASSIGNED, Tie.LOOSE):
        return True
    if "=" in content or cue.family == "pass" and (cue.name.isupper() or compiled("[_.]").search(content)):
        return False  # `PASS: test_login_2` is the result of a test
    is_variable = is_numbered_name(content) and is_plain(content.rstrip("0123456789"))
    return not is_variable and len(content) >= (6 if tie is Tie.LOOSE else 4)


def _is_word_password(text: str, cue: Cue, value: Value, tie: Tie) -> bool:
    """A password may be a word, but a word counts only where nothing but a value can stand."""
    content = text[value.start : value.end]
    parts = [part for part in re.split(r"[-_.]", content) if part]
    if sum(map(is_plain, parts)) > len(parts) // 4 or tie is Tie.LOOSE or cue.family == "pass" and tie is not Tie.LITERAL:
        return False
    if value.quoted:
        return tie is not Tie.ARGUMENT or len(parts) > 3 or is_constant(cue.name)
    if tie is Tie.LITERAL:
        return len(parts) in (1, 4, 5) and not compiled(r"[ \t]{0,2}+[,)]").match(text, value.end)
    if tie is Tie.ASSIGNED:  # an ini file, not code: nothing else on the line
        line = text[max(0, cue.start - 80) : cue.start].rpartition("\n")[2]
        if line.strip() or not compiled(r"[ \t]{0,8}+(?:$|[\r\n])").match(text, value.end):
            return False
    # "the password is swordfish": only where the clause ends with it
    ends = compiled(
        r"[.,;:!]?(?:\s{0,4}+$|[ \t]{0,4}+[\r\n]|[ \t]{1,2}+(?:\(|-|(?:and|for|on|but|btw|now|as|this|und|et|y|e)\b)"
        r"|[.,;!][ \t]|[\"')]|[ \t]{0,2}+[^\x00-\x7f])"
    )
    return len(parts) in (1, 4, 5) and len(content) > 4 and content[1:].islower() and ends.match(text, value.end) is not None


def _is_secret_number(digits: str, cue: Cue, literal: bool, tie: Tie) -> bool:
    if cue.family == "pin":
        return 4 <= len(digits) <= 8 and tie is not Tie.LOOSE
    if cue.family in ("password", "pass"):
        return len(digits) >= (4 if literal else 6) and (tie not in (Tie.LOOSE, Tie.ARGUMENT) or is_constant(cue.name))
    return len(digits) >= 16 and literal


def _seed_phrases(small: str) -> Iterator[Span]:
    """Twelve or more small words behind `seed phrase`, `mnemonic` or `recovery phrase`."""
    if "phrase" not in small and "mnemonic" not in small and "seed" not in small:
        return
    cue = compiled(
        r"(?:seed|recovery|backup|secret|wallet)[ _-]?(?:phrase|words?)|mnemonic(?:[ _-]phrase)?|\bseed\b|wiederherstellungsphrase"
    )
    words = compiled(
        r"[^\n]{0,40}?(?:[:=\"'`\n]| is )[\s\"'`:=]{0,6}+((?:(?:[0-9]{1,2}[.)] ?)?[a-z]{3,8}+[ ,\n]{1,2}+){11,23}+[a-z]{3,8}+)"
    )
    for match in cue.finditer(small):
        phrase = words.match(small, match.end())
        if phrase and not {"the", "and", "for", "are", "from", "your"} & set(re.split(r"[^a-z]+", phrase.group(1))):
            yield phrase.start(1), phrase.end(1), "seed-phrase"
