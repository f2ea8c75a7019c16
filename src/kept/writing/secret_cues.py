"""Secrets that their surroundings give away: a cue word, a tie, and a value.

    the db password is hunter2hunter      DB_PASSWORD=…      "apiKey": "…"      --token …      <password>…</password>

One of redaction's finders, and the one that reads prose. A cue inside an identifier counts only if the identifier still
names the secret (`DB_PASSWORD`, not `password_policy`); the value is then judged by how strong the cue is and how
firmly it is tied to the value.

Rule: every pattern is anchored at a cue and of bounded length, so each cue costs about the same, whatever follows it.
"""

import re
from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import NamedTuple

from kept.writing.secret_values import MIXED, NOTHING, OPAQUE, compiled, grade, is_constant, is_name, is_opaque, is_passphrase, is_plain
from kept.writing.secret_view import fold
from kept.writing.secrets_rules import (
    BARE_KEYS,
    BENIGN_SUFFIXES,
    CUES,
    GAP_OPENERS,
    KEY_QUALIFIERS,
    LINKS,
    LINKS_UNSPACED,
    NEUTRAL_SUFFIXES,
    OTHER_KEYS,
    VERBS,
)

Span = tuple[int, int, str]

IDENTIFIER = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
KINDS = {"pass": "password", "key": "api-key"}  # the family is the kind, but for these
ROWS = 200  # how many rows of a table are read below its heading
GAP = 160  # how far the value may stand from its cue in a sentence


class Tie(Enum):
    """How a value is tied to its cue, from the firmest."""

    LITERAL = "NAME=value, --flag value, <password>value<: only a value can stand here"
    ASSIGNED = "name = value: a variable can stand here as well"
    STATED = "password is value, password: value"
    APART = "password for the staging box is value"
    ARGUMENT = 'setPassword("value")'
    DISTANT = "the password was leaked: value"
    LOOSE = "password value, set the password to value, value as password"


class Cue(NamedTuple):
    """A word that announces a secret, with the identifier it stands in."""

    family: str
    start: int  # of the identifier
    end: int
    name: str  # the identifier
    is_weak: bool  # the identifier may name something else


class Value(NamedTuple):
    """Where a value stands, and whether quotes or their like delimit it."""

    start: int
    end: int
    quoted: bool


def find_cued_secrets(text: str, small: str) -> Iterator[Span]:
    """Values behind a cue, and word lists behind a cue for seed phrases."""
    yield from _seed_phrases(text, small)
    resume = table_end = 0
    words = _cue_words(small.isascii())
    for match in words.finditer(small):
        if match.start() < resume:
            continue
        cue = _cue(text, match)
        if cue and not words.search(small, match.end(), cue.end):  # of `auth.token`, the last word counts
            resume = cue.end
            value = next(_values(text, small, cue), None)
            if value:
                yield value.start, value.end, KINDS.get(cue.family, cue.family)
                resume = max(resume, value.end)
            elif cue.start >= table_end:
                for cell in _column(text, cue):
                    yield cell.start, cell.end, KINDS.get(cue.family, cue.family)
                    table_end = cell.end


# ---- the cue ----


class _Word(NamedTuple):
    family: str
    is_bound: bool  # counts only at the start of a word or hump


@cache
def _words() -> dict[str, _Word]:
    """Every cue as it appears in a view."""
    words = {}
    for family, listed in CUES.items():
        for entry in fold(listed).split():
            for blank in " -._" if "~" in entry else "~":
                words[entry.strip("^$").replace("~", blank)] = _Word(family, entry[0] == "^")
    return words


@cache
def _cue_words(is_ascii: bool) -> re.Pattern[str]:
    """All cues as one pattern, shaped as a tree so that most positions fail at their first or second letter."""
    closed = {entry.strip("^$") for listed in CUES.values() for entry in fold(listed).split() if entry[-1] == "$"}
    words = [word for word in _words() if word.isascii() or not is_ascii]
    return re.compile(_tree({word: re.sub("[ ._-]", "~", word) in closed or word in closed for word in words}))


def _tree(words: dict[str, bool]) -> str:
    """A pattern for these words, longest first; a word that is marked must not be followed by a letter."""
    branches: dict[str, dict[str, bool]] = {}
    for word, is_closed in words.items():
        if word:
            branches.setdefault(word[0], {})[word[1:]] = is_closed
    sources = [re.escape(first) + _tree(rest) for first, rest in branches.items()]
    if "" in words:
        sources.append("(?![a-z])" if words[""] else "")
    return sources[0] if len(sources) == 1 else f"(?:{'|'.join(sources)})"


def _cue(text: str, match: re.Match[str]) -> Cue | None:
    """The cue with its identifier, or None if the identifier names something else."""
    start, end = match.span()
    before = text[max(0, start - 48) : start]
    left = before[len(before.rstrip(IDENTIFIER)) :]
    family, is_bound = _words()[match.group()]
    if is_bound and left and left[-1].isalnum() and not (text[start].isupper() and left[-1].islower()):
        return None
    suffix = compiled(r"(?:[_.\-]?[A-Za-z0-9]{1,30}+){0,5}+").match(text, end).group()  # type: ignore[union-attr]
    is_weak = False
    if suffix:
        if suffix[0].isalpha() and text[end - 1].isalpha() and suffix[0].islower() == text[end - 1].islower():
            is_plural = suffix[0] in "sS" and not suffix[1:2].isalpha()
            if not is_plural:
                return None
        parts = [part.lower() for part in compiled(r"[A-Z]++(?![a-z])|[A-Z]?[a-z]++|[0-9]++").findall(suffix)]
        if any(part in BENIGN_SUFFIXES for part in parts):
            return None
        if "." in suffix and not all(part in NEUTRAL_SUFFIXES for part in parts):
            suffix = suffix[: suffix.index(".")]
        elif not all(part in NEUTRAL_SUFFIXES or part.isdigit() for part in parts):
            if "-" in suffix or is_bound:
                return None
            is_weak = True
    if family == "key" and match.group() in BARE_KEYS:
        words = compiled(r"[A-Z]++(?![a-z])|[A-Z]?[a-z]++|[0-9]++").findall(text[max(0, start - 32) : start])
        near = [word.lower() for word in words[-3:]]
        if near and near[-1] in OTHER_KEYS:
            return None
        is_weak = is_weak or not any(word in KEY_QUALIFIERS for word in near)
    return Cue(family, start - len(left), end + len(suffix), left + text[start:end] + suffix, is_weak)


# ---- from the cue to the value ----


def _values(text: str, small: str, cue: Cue) -> Iterator[Value]:
    """Values tied to the cue that are secrets, the most firmly tied first."""
    after = text[cue.end : cue.end + 1]
    if after in (">", '"', "'"):
        yield from _element_text(text, cue)
    yield from _assigned(text, small, cue)
    yield from _named_elsewhere(text, small, cue)
    if after in ("(", '"', "'"):
        yield from _argument(text, cue)
    yield from _linked(text, small, cue)
    if cue.family != "pass":
        yield from _stated_before(text, small, cue)
    yield from _beside(text, small, cue)


def _assigned(text: str, small: str, cue: Cue) -> Iterator[Value]:
    """`name = value`, `"name": value`, `name: type = value`, and the value on the next line."""
    link = compiled(
        r"""["'`\])*]{0,4}+([ \t]{0,24}+)"""
        r"""(:[ \t]{0,4}+[a-z_.\[\]<>, |?]{1,40}+=(?!=)|:=|=>|-{1,2}>|\?=|\|\|=|\+=|={1,3}+|!={1,2}+|:{1,2}+|<-|<<<|\||%3d|%3a|(?<=[ \t])(?:[->~]|\.{2,3}+)(?=[ \t]))"""
        r"""(?:\*\*|[\])])?([ \t]{0,40}+)"""
    ).match(small, cue.end)
    if not link:
        return
    position, sign = link.end(), link.group(2)
    below = compiled(r"(?:[|>][-+]?)?[ \t]{0,8}+(?:\r?\n[ \t>#*+-]{0,24}+){1,3}+(?:```\w{0,12}+\n)?[ \t]{0,16}+").match(text, position)
    if below:
        yield from _read(text, cue, below.end(), Tie.STATED)
    elif sign in ("|", "-", ">", "~") or sign.startswith(".."):
        yield from _read(text, cue, position, Tie.LOOSE)
    elif "=" in sign or sign in ("<-", "%3d"):
        spaced = link.group(1) or link.group(3)
        yield from _read(text, cue, position, Tie.ASSIGNED if spaced else Tie.LITERAL)
    else:
        yield from _read(text, cue, position, Tie.STATED)
        yield from _linked(text, small, cue._replace(end=position - 1))  # "password: it is still …"


def _named_elsewhere(text: str, small: str, cue: Cue) -> Iterator[Value]:
    """`name: NAME` with `value: …` beside or below it, `<key>NAME</key><string>…`, `variable "NAME" { default = …`."""
    link = compiled(
        r"""["'`]?(?:[ \t]{0,8}+,?[ \t\r\n]{0,60}+["']?[ \t]{0,2}+(?:value|val|default|content|defaultvalue|secretstring)["']?[ \t]{0,8}+(?::[ \t]{0,8}+|=[ \t]{0,8}+(?=["']))"""
        r"""|[ \t]{1,4}+(?:--(?:value|secret-string|secret|data|body)[ =]|-b[ ]?)"""
        r"""|\s{0,4}+\{[^{}]{0,200}?\bdefault\s{0,16}+=\s{0,4}+(?=["'])"""
        r"""|</[a-z]{1,20}+>\s{0,60}+<[a-z]{1,20}+>)"""
    ).match(small, cue.end)
    if link:
        yield from _read(text, cue, link.end(), Tie.LITERAL)


def _element_text(text: str, cue: Cue) -> Iterator[Value]:
    match = compiled(r"[\"']?>\s{0,40}+([^<>\n]{3,512}+)<").match(text, cue.end)
    if match:
        value = Value(match.start(1), match.end(1), True)
        if _is_secret(text, cue, value, Tie.LITERAL):
            yield value


def _argument(text: str, cue: Cue) -> Iterator[Value]:
    """`setPassword("value")`, `getenv("API_KEY", "value")`."""
    link = compiled(r"""["']?[ \t]{0,4}+(?:\(|,)[ \t]{0,24}+(?=[bruf]{0,2}+["'])""").match(text, cue.end)
    if link:
        yield from _read(text, cue, link.end(), Tie.ARGUMENT)


def _linked(text: str, small: str, cue: Cue) -> Iterator[Value]:
    """`password is value`, also with a phrase between: `password for the staging box is value`."""
    run = _links().match(small, cue.end)
    if run:
        words = (run.group(1) or "is").split()
        is_firm = not run.group(1) or any(word in VERBS and word != "to" for word in words) or "to" in words and _is_being_set(small, cue)
        if is_firm or cue.family != "pass":
            yield from _read(text, cue, run.end(), Tie.STATED if is_firm else Tie.LOOSE)
    opener = compiled(r"[\"'`*)]{0,3}+,?[ \t]{1,3}+([(\[]|[^\W\d_]{1,20}+)").match(small, cue.end)
    if not opener or opener.group(1) in BENIGN_SUFFIXES - GAP_OPENERS - LINKS:
        return  # "password policy is …", or nothing of a sentence
    is_near = opener.group(1) in GAP_OPENERS or opener.group(1) in ("(", "[")
    line_end = small.find("\n", cue.end, cue.end + GAP)
    for link in _late_links().finditer(small, opener.end(), line_end + 3 if line_end >= 0 else cue.end + GAP):
        if link.group(1):
            return  # the sentence ends
        if is_near or link.start() - cue.end < GAP // 3:
            yield from _read(text, cue, link.end(), Tie.APART if is_near else Tie.DISTANT)


def _is_being_set(small: str, cue: Cue) -> bool:
    before = small[max(0, cue.start - 48) : cue.start]
    return compiled(r"(?<![a-z])(?:set|sets|setting|reset|change|changed|changing|update|updated|rotate|rotated)(?![a-z])").search(before) is not None


@cache
def _links() -> re.Pattern[str]:
    words = "|".join(sorted(map(re.escape, map(fold, LINKS)), key=len, reverse=True))
    unspaced = "|".join(sorted(map(fold, LINKS_UNSPACED), key=len, reverse=True))
    return re.compile(
        rf"(?:'s(?=\s)|[\"'`*)]{{0,3}}+(?:{unspaced}|\?[ \t\n]{{1,3}}+(?:it'?s |it is )?|((?:[ \t\r\n]{{1,3}}+(?:{words})(?=[\s:=])){{1,6}}+)))[ \t]{{0,3}}+[:=]?[ \t\n]{{0,3}}+"
    )


@cache
def _late_links() -> re.Pattern[str]:
    """A verb and its small words, or a colon; or the end of the sentence, in group 1."""
    verbs = "|".join(sorted(map(re.escape, map(fold, VERBS)), key=len, reverse=True))
    words = "|".join(sorted(map(re.escape, map(fold, LINKS)), key=len, reverse=True))
    return re.compile(
        rf"([.?!;][ \t])|(?<![\w.])(?:{verbs})(?:[ \t]{{1,2}}+(?:{words})(?=[\s:])){{0,4}}+:?[ \t]{{1,2}}+|(?::|=|->|=>|>)[ \t\n]{{1,3}}+"
    )


def _beside(text: str, small: str, cue: Cue) -> Iterator[Value]:
    """`password value`, `--password value`, `ENV NAME value`, `PASSWORD 'value'`."""
    gap = compiled(r"(?:[\"'`*]{1,2}+,?)?[ \t]{1,8}+\(?").match(text, cue.end)
    if not gap:
        return
    is_flag = cue.name.startswith("-") and text[cue.start - 1 : cue.start] in ("", " ", "\t", "\n", '"', "'", "[", "`")
    before = small[max(0, cue.start - 80) : cue.start]
    sets = compiled(r"(?:(?<![\w.])(?:env|arg|setx|set|setenv|export)(?:[ \t]-\w{1,3}+)?|login[ \t]\S{1,64}+|(?<!\w)user(?:name)? (?!and\b|or\b)\S{1,64}+,?)\s{1,16}+(?:and[ \t]|with[ \t])?$")
    is_set = sets.search(before) is not None
    if cue.family != "pass" or is_flag or is_set:
        yield from _read(text, cue, gap.end(), Tie.LITERAL if is_flag or is_set else Tie.LOOSE)


def _stated_before(text: str, small: str, cue: Cue) -> Iterator[Value]:
    """`use value as the password`, `value is my token`."""
    before = small[max(0, cue.start - GAP) : cue.start]
    link = compiled(r"[ \t](?:is|as|ist|als|est|comme|es|como|come)[ \t](?=((?:[\w.'-]{1,24}+[ \t]{1,2}+){0,4}+)$)").search(before)
    if not link:
        return
    words = before[: link.start()].split()
    if words:
        word = words[-1].strip("\"'`*,()")
        start = max(0, cue.start - GAP) + before.rindex(word, 0, link.start())
        value = Value(start, start + len(word), False)
        is_used = len(words) > 1 and words[-2] in ("use", "used", "try", "type", "enter", "with")
        if len(word) >= 6 and _is_secret(text, cue, value, Tie.STATED if is_used else Tie.LOOSE):
            yield value


def _column(text: str, cue: Cue) -> Iterator[Value]:
    """The cells below a heading: `user,password` and `| user | password |`."""
    if not compiled(r"[ \"'*`]{0,8}+[|\t;,\n]").match(text, cue.end):
        return
    start = text.rfind("\n", max(0, cue.start - 400), cue.start) + 1
    end = text.find("\n", cue.end, cue.end + 400)
    heading = text[start:end] if end >= 0 else ""
    sign = next((sign for sign in "|\t;," if sign in heading), None)
    if sign is None:
        return
    place = heading.count(sign, 0, cue.start - start)
    if heading.split(sign)[place].strip(" \"'*`") != cue.name:
        return
    for _ in range(ROWS):
        start, end = end + 1, text.find("\n", end + 1, end + 2000)
        row = text[start : end if end >= 0 else start + 2000]
        cells = row.split(sign)
        if len(cells) != heading.count(sign) + 1:
            return
        start += sum(map(len, cells[:place])) + place
        content = cells[place].strip(" \"'`")
        start += cells[place].index(content)
        cell = Value(start, start + len(content), True)
        if content and _is_secret(text, cue, cell, Tie.LOOSE):
            yield cell
        if end < 0:
            return


# ---- the value ----


def _read(text: str, cue: Cue, position: int, tie: Tie) -> Iterator[Value]:
    """The value that begins here, if it is a secret."""
    value = _quoted(text, position) or _unquoted(text, position, tie)
    if value is None:
        return
    scheme = compiled(r"(?i:bearer|basic|token|apikey|bot|ssws)[ \t]{1,3}+").match(text, value.start)
    if scheme and tie is not Tie.LOOSE:
        inner = Value(scheme.end(), value.end, True) if value.end > scheme.end() else _unquoted(text, scheme.end(), tie)
        if inner and is_opaque(text[inner.start : inner.end]):
            yield inner
            return
    if cue.family == "credentials":
        second = _second_of_pair(text, value)
        if second:
            cue, value = cue._replace(family="password"), second
    if _is_secret(text, cue, value, tie):
        yield value
    elif not value.quoted and cue.family == "password" and tie in (Tie.STATED, Tie.APART, Tie.ASSIGNED, Tie.LITERAL):
        phrase = compiled(r"[a-z]{3,12}+(?: [a-z]{3,12}+){3,7}+(?=[.,;:)]?(?:\s|$))").match(text, value.start)
        if phrase and is_passphrase(phrase.group()):
            yield Value(phrase.start(), phrase.end(), True)


def _quoted(text: str, position: int) -> Value | None:
    """A string literal, with or without a call around it: `"…"`, `b'…'`, `String::from("…")`, `**…**`."""
    opening = compiled(
        r"""(?:(?:[A-Za-z_][\w.:]{0,40}+)?\([ \t]{0,4}+|\[[ \t]{0,4}+){0,2}+(?:[bBrRuUfFlL]{1,2}|@|\$)?("{3}|'{3}|["'`]|\*\*)"""
    ).match(text, position)
    if not opening:
        return None
    mark = opening.group(1)
    start = opening.end()
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
    match = compiled(r"[^\s\"\x00\u2e80-\uabff]{1,512}+" if literal else r"[^\s\"'`<>|\x00\u2e80-\uabff]{1,512}+").match(text, position)
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
    if " " in content:
        return cue.family in ("password", "secret") and value.quoted and not cue.is_weak and is_passphrase(content)
    literal = value.quoted or tie is Tie.LITERAL
    bare = content.rstrip("!?")  # "is the secret exposed?" ends a sentence, "hunter2!" a password
    level = grade(bare if bare.isalpha() and not literal else content, quoted=value.quoted)
    if level == NOTHING or len(content) < 4 or content.lower() == cue.name.lower() or not literal and is_name(content):
        return False
    if content.isdigit():
        return _is_secret_number(content, cue, literal, tie)
    if cue.is_weak or tie is Tie.DISTANT:
        return level == OPAQUE and len(content) >= 12 and not (cue.family == "key" or tie is Tie.DISTANT) or (
            level == OPAQUE and len(content) >= 12 and not _is_hash(content)
        )
    if cue.family in ("password", "pass"):
        return _is_mixed_password(content, cue, level, value, tie) if level >= MIXED else _is_word_password(text, cue, value, tie)
    if cue.family == "pin":
        return level >= MIXED and len(content) >= 6 and tie is not Tie.LOOSE
    if level == OPAQUE:
        return len(content) >= (12 if tie is Tie.LOOSE else 8)
    if tie is Tie.LOOSE and not value.quoted:
        return False
    if tie is Tie.ASSIGNED and not value.quoted and not content[0].isdigit():
        return False  # `token = lexer2` is code
    return level == MIXED and len(content) >= 8 and not _is_numbered_name(content)


def _is_mixed_password(content: str, cue: Cue, level: int, value: Value, tie: Tie) -> bool:
    if level == OPAQUE or value.quoted or tie is Tie.LITERAL:
        return True
    if cue.family == "pass" or tie in (Tie.ASSIGNED, Tie.LOOSE):
        if "=" in content or cue.family == "pass" and (cue.name.isupper() or compiled("[_.]").search(content)):
            return False  # `PASS: test_login_2` is the result of a test
        is_variable = _is_numbered_name(content) and is_plain(content.rstrip("0123456789"))
        return not is_variable and len(content) >= (6 if tie is Tie.LOOSE else 4)
    return True


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
    if tie is Tie.ASSIGNED:  # an ini file, not code: nothing else on the line, and no name of a variable
        line = text.rfind("\n", 0, cue.start) + 1
        if text[line : cue.start].strip() or not compiled(r"[ \t]{0,8}+(?:$|[\r\n])").match(text, value.end):
            return False
    # "the password is swordfish": only where the clause ends with it
    ends = compiled(
        r"[.,;:!]?(?:\s{0,4}+$|[ \t]{0,4}+[\r\n]|[ \t]{1,2}+(?:\(|-|(?:and|for|on|but|btw|now|as|this|und|et|y|e)\b)|[.,;!][ \t]|[\"')]|[ \t]{0,2}+[^\x00-\x7f])"
    )
    return len(parts) in (1, 4, 5) and len(content) > 4 and content[1:].islower() and ends.match(text, value.end) is not None


def _is_secret_number(digits: str, cue: Cue, literal: bool, tie: Tie) -> bool:
    if cue.family == "pin":
        return 4 <= len(digits) <= 8 and tie is not Tie.LOOSE
    if cue.family in ("password", "pass"):
        return len(digits) >= (4 if literal else 6) and (tie not in (Tie.LOOSE, Tie.ARGUMENT) or is_constant(cue.name))
    return len(digits) >= 16 and literal


def _is_numbered_name(content: str) -> bool:
    """`user_token_2`, `token1`, `v2key`: words with a small number, as in names of variables."""
    return compiled(r"[A-Za-z]++[0-9]{0,2}+(?:[_.-][A-Za-z]*+[0-9]{0,2}+)*+$").match(content) is not None


def _is_hash(content: str) -> bool:
    return compiled(r"[0-9a-fA-F-]{32,128}+$").match(content) is not None


def _seed_phrases(text: str, small: str) -> Iterator[Span]:
    """Twelve or more small words behind `seed phrase`, `mnemonic` or `recovery phrase`."""
    if "phrase" not in small and "mnemonic" not in small and "seed" not in small:
        return
    cue = compiled(r"(?:seed|recovery|backup|secret|wallet)[ _-]?(?:phrase|words?)|mnemonic(?:[ _-]phrase)?|\bseed\b|wiederherstellungsphrase")
    words = compiled(r"[^\n]{0,40}?(?:[:=\"'`\n]| is )[\s\"'`:=]{0,6}+((?:(?:[0-9]{1,2}[.)] ?)?[a-z]{3,8}+[ ,\n]{1,2}+){11,23}+[a-z]{3,8}+)")
    for match in cue.finditer(small):
        phrase = words.match(small, match.end())
        if phrase and not {"the", "and", "for", "are", "from", "your"} & set(re.split(r"[^a-z]+", phrase.group(1))):
            yield phrase.start(1), phrase.end(1), "seed-phrase"
