"""Secrets that their surroundings give away: a cue word, a link, and a value.

    the db password is hunter2hunter      DB_PASSWORD=…      "apiKey": "…"      --token …      <password>…</password>

One of redaction's finders, and the one that reads prose. A cue inside an identifier counts only if the identifier still
names the secret (`DB_PASSWORD`, not `password_policy`); the value is then judged by how strong the cue is and how
firmly it is tied to the value.

Rule: every pattern is anchored at a cue and of bounded length, so each cue costs the same, whatever follows it.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from kept.writing.secret_values import MIXED, NOTHING, OPAQUE, WORD, grade, is_name, is_opaque, is_passphrase, is_plain
from kept.writing.secrets_rules import (
    BENIGN_SUFFIXES,
    CUES,
    GAP_OPENERS,
    KEY_QUALIFIERS,
    LINKS,
    LINKS_UNSPACED,
    NEUTRAL_SUFFIXES,
    VERBS,
)

Span = tuple[int, int, str]

IDENTIFIER = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
KINDS = {"password": "password", "pass": "password", "secret": "secret", "token": "token", "key": "api-key", "credentials": "credentials", "pin": "pin"}  # fmt: skip


class Cue(NamedTuple):
    """A word that announces a secret, with the identifier it stands in."""

    family: str
    start: int  # of the identifier
    end: int
    name: str  # the identifier
    is_weak: bool  # something follows the cue in the identifier that may make it something else


class Value(NamedTuple):
    start: int
    end: int
    quoted: bool


@cache
def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source)


@cache
def _cue_words() -> re.Pattern[str]:
    families = []
    for family, words in CUES.items():
        alternatives = sorted(words.split(), key=len, reverse=True)
        sources = [word.replace("~", "[ _.-]").replace("^", "").replace("$", "(?![a-z])") for word in alternatives]
        families.append(f"(?P<{family}>{'|'.join(sources)})")
    return re.compile("|".join(families))


@cache
def _bound_words() -> re.Pattern[str]:
    """The cues that count only at the start of a word or hump."""
    words = [word[1:].replace("$", "").replace("~", "[ _.-]") for words in CUES.values() for word in words.split() if word[0] == "^"]
    return re.compile("|".join(words))


def find_cued_secrets(text: str, small: str) -> Iterator[Span]:
    """Values behind a cue, and phrases behind a cue for phrases."""
    yield from _seed_phrases(text, small)
    resume = 0
    for match in _cue_words().finditer(small):
        if match.start() < resume:
            continue
        cue = _cue(text, match)
        if cue is None:
            continue
        for value in _values(text, small, cue):
            yield value.start, value.end, KINDS[cue.family]
            resume = value.end
            break
        else:
            resume = cue.end if cue.end > match.end() else 0


def _cue(text: str, match: re.Match[str]) -> Cue | None:
    """The cue with its identifier, or None if the identifier names something else."""
    start, end = match.span()
    before = text[max(0, start - 48) : start]
    left = before[len(before.rstrip(IDENTIFIER)) :]
    if left and left[-1].isalpha() and _bound_words().fullmatch(match.group()):
        if not (text[start].isupper() and left[-1].islower()) and not _is_escape(text, start):
            return None
    suffix = _pattern(r"(?:[_.\-]?[A-Za-z0-9]{1,30}){0,5}").match(text, end).group()  # type: ignore[union-attr]
    is_weak = False
    if suffix:
        if suffix[0].islower() and text[end - 1].islower() or suffix[0].isupper() and text[end - 1].isupper():
            plural = suffix[1:2]
            if suffix[0] not in "sS" or plural.isalpha() and plural.islower() == suffix[0].islower():
                return None
        parts = [part.lower() for part in _pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+").findall(suffix)]
        if any(part in BENIGN_SUFFIXES for part in parts):
            return None
        if "." in suffix and not all(part in NEUTRAL_SUFFIXES for part in parts):
            suffix = suffix[: suffix.index(".")]
        elif any(part not in NEUTRAL_SUFFIXES and not part.isdigit() for part in parts):
            if "-" in suffix and "_" not in suffix:
                return None
            is_weak = True
    family = match.lastgroup or ""
    name = left + match.group() + suffix
    if family == "key" and match.group() in ("key", "schlussel", "cle", "chave", "chiave", "klucz"):
        words = re.split(r"[^a-z0-9]+", _pattern(r"(?<=[a-z])(?=[A-Z])").sub(" ", text[max(0, start - 24) : start]).lower())
        near = [word for word in words if word][-3:]
        if near and near[-1] in ("public", "primary", "foreign", "cache", "partition", "sort", "unique", "sorting", "group", "row", "object", "dict", "map", "the", "a", "this", "each", "no", "any", "which"):
            return None
        is_weak = is_weak or not any(word in KEY_QUALIFIERS for word in near)
    return Cue(family, start - len(left), end + len(suffix), name, is_weak)


def _is_escape(text: str, start: int) -> bool:
    return text[start - 2 : start - 1] == "\\" and text[start - 1] in "nrt"


# ---- from the cue to the value ----


def _values(text: str, small: str, cue: Cue) -> Iterator[Value]:
    """Values tied to the cue that are secrets, the most firmly tied first."""
    after = text[cue.end : cue.end + 1]
    if after == ">":
        yield from _element_text(text, cue)
    yield from _assigned(text, small, cue)
    if after in (" ", "\t", "\n", "\r", "'", "’", "`", '"', "*", ",", ")", "\\", "]", "/", "", "<", ">") or after > "\x7f":
        yield from _named_elsewhere(text, small, cue)
        if cue.family != "pass":
            yield from _linked(text, small, cue)
        yield from _beside(text, small, cue)
    if after == "(" or after in "\"'" and after:
        yield from _argument(text, cue)
    if after == "%":  # token%3Dvalue
        yield from _read(text, cue, cue.end + 3, "assigned") if small.startswith(("%3d", "%3a"), cue.end) else ()
    yield from _stated_before(text, small, cue)


def _assigned(text: str, small: str, cue: Cue) -> Iterator[Value]:
    """`name = value`, `"name": value`, `name: type = value`, and the value on the next line."""
    link = _pattern(
        r"""(?:\\{0,3}["'`”’»\])*]{0,4})([ \t]{0,24})(?::[ \t]{0,2}[a-z_][\w.\[\]<>, |]{0,40}?[ \t]{0,2}(?==))?"""
        r"""(:=|=>|-{1,2}>|→|⇒|\?=|\|\|=|\+=|={1,3}|!={1,2}|::?|<-|\|)(?:\*\*|[\])])?([ \t]{0,40})"""
    ).match(small, cue.end)
    if not link:
        return
    position = link.end()
    op = link.group(2)
    if text[position : position + 1] in ("\n", "\r", "|", ">", "\\", ""):
        below = _pattern(r"(?:[|>][-+]?)?[ \t]{0,8}(?:(?:\r?\n|\\r?\\?n)[ \t>#*+-]{0,16}){1,3}(?:```\w{0,12}(?:\n|\\n))?[ \t]{0,12}").match(text, position)
        if below and below.end() > position:
            yield from _read(text, cue, below.end(), "below")
            return
    spaced = bool(link.group(1)) or bool(link.group(3))
    if op == "|":
        tie = "cell"
    elif "=" in op or op == "<-":
        tie = "assigned" if spaced else "tight"
    else:
        tie = "stated"
    yield from _read(text, cue, position, tie)
    if op == ":" and small[position : position + 1].isalpha():  # "password: it is still …"
        yield from _linked(text, small, cue._replace(end=position - 1))


def _linked(text: str, small: str, cue: Cue) -> Iterator[Value]:
    """`password is value`, also with a phrase between: `password for the staging box is value`."""
    run = _links().match(small, cue.end)
    if run:
        firm = not run.group(1) or any(word in VERBS for word in run.group(1).split())
        yield from _read(text, cue, run.end(), "stated" if firm else "loose")
    opener = _pattern(r"[\"'`*)]{0,3}[ \t]{1,3}(\(|\[|[^\W\d_]{1,10})").match(small, cue.end)
    if opener and (opener.group(1) in GAP_OPENERS or opener.group(1) in "(["):
        gap = _gap().match(small, opener.start(1))
        if gap:
            yield from _read(text, cue, gap.end(), "gap")


@cache
def _links() -> re.Pattern[str]:
    words = "|".join(sorted(map(re.escape, LINKS), key=len, reverse=True))
    unspaced = "|".join(sorted(LINKS_UNSPACED, key=len, reverse=True))
    return re.compile(
        rf"[\"'`*)]{{0,3}}(?:['’]s(?=\s)|{unspaced}|((?:[ \t\r\n]{{1,3}}(?:{words})(?![\w'])){{1,6}}+))[ \t]{{0,3}}[:=]?[ \t\n]{{0,3}}"
    )


@cache
def _gap() -> re.Pattern[str]:
    """Up to eight words, then a link that is a verb or a colon."""
    words = "|".join(sorted(map(re.escape, LINKS), key=len, reverse=True))
    return re.compile(
        rf"(?:[\w@.'’/&+#()\[\],-]{{1,32}}[ \t]{{1,2}}){{1,8}}?(?:(?:[\w@.'’/&+#()\[\]-]{{1,32}}[ \t]{{0,1}}(?::|=|->|=>|→)[ \t\n]{{1,2}})"
        rf"|(?:{'|'.join(VERBS)})(?:[ \t]{{1,2}}(?:{words})(?![\w'])){{0,4}}+:?[ \t]{{1,2}})"
    )


def _beside(text: str, small: str, cue: Cue) -> Iterator[Value]:
    """`password value`, `--password value`, `ENV NAME value`, `PASSWORD 'value'`."""
    gap = _pattern(r"(?:[\"'`*]{1,2},?)?[ \t]{1,8}").match(text, cue.end)
    if not gap:
        return
    is_flag = cue.name.startswith("-") and text[cue.start - 1 : cue.start] in ("", " ", "\t", "\n", '"', "'", "[", "`")
    before = small[max(0, cue.start - 40) : cue.start]
    if is_flag or _pattern(r"(?:\b(?:env|arg|setx|set -\w{1,3}|set_secret|secret set|config set|configure set|export)|login \S{1,64})[ \t]{1,4}$").search(before):
        yield from _read(text, cue, gap.end(), "flag")
    else:
        yield from _read(text, cue, gap.end(), "beside")


def _element_text(text: str, cue: Cue) -> Iterator[Value]:
    match = _pattern(r">([^<>\n]{3,512})</").match(text, cue.end)
    if match:
        value = Value(match.start(1), match.end(1), True)
        if _is_secret(text, cue, value, "tight"):
            yield value


def _named_elsewhere(text: str, small: str, cue: Cue) -> Iterator[Value]:
    """`name: NAME` with `value: …` beside or below it, `<key>NAME</key><string>…`, `variable "NAME" { default = …`."""
    link = _pattern(
        r"""\\{0,3}["'`]?(?:[ \t]{0,8},?[ \t\r\n]{0,40}\\{0,3}["']?(?:value|val|default|content|string_?data|defaultvalue|secretstring)\\{0,3}["']?[ \t]{0,4}[:=][ \t]{0,4}"""
        r"""|\s{0,4}\{[^{}]{0,200}?\bdefault\s{0,12}=\s{0,4}"""
        r"""|</[a-z]{1,20}>\s{0,40}<[a-z]{1,20}>)"""
    ).match(small, cue.end)
    if link and (link.group().endswith((":", ": ", ">")) or _quoted(text, link.end())):
        yield from _read(text, cue, link.end(), "tight")


def _argument(text: str, cue: Cue) -> Iterator[Value]:
    """`setPassword("value")`, `getenv("API_KEY", "value")`, `auth=("me", "value")`."""
    link = _pattern(r"""\\{0,3}["']?\s{0,2}(?:\(\s{0,4}(?:[\w.]{1,40}[(,]\s{0,2}){0,2}|,\s{0,4})(?=[bruf]{0,2}\\{0,3}["'])""").match(text, cue.end)
    if link:
        yield from _read(text, cue, link.end(), "argument")


def _stated_before(text: str, small: str, cue: Cue) -> Iterator[Value]:
    """`use value as the password`, `value is my token`."""
    before = small[max(0, cue.start - 140) : cue.start]
    if not before.endswith(" "):
        return
    link = _pattern(r"([^\s\"'`]{6,120})[\"'`*]{0,2},?[ \t]{1,2}(?:is|as|for|ist|als|est|comme|es|como|e|come)[ \t]{1,2}(?:(?:the|my|our|your|a|an|his|her|their|das|dein|unser|mein|le|la|mon|notre|el|mi|o|a|il|new|current)[ \t]{1,2}){0,2}(?:[\w.-]{1,24}[ \t]{1,2}){0,2}$").search(before)
    if link:
        start = max(0, cue.start - 140) + link.start(1)
        end = start + len(link.group(1).rstrip(".,;:)"))
        value = Value(start, end, False)
        if _is_secret(text, cue, value, "beside"):
            yield value


# ---- the value ----


def _read(text: str, cue: Cue, position: int, tie: str) -> Iterator[Value]:
    """The value that begins here, if it is a secret."""
    value = _quoted(text, position) or _unquoted(text, position, tie)
    if value is None:
        return
    scheme = _pattern(r"(?i)(?:bearer|basic|token|apikey|bot|ssws)[ \t]{1,3}").match(text, value.start, max(value.end, value.start + 12))
    if scheme and tie != "beside":
        inner = Value(scheme.end(), value.end, True) if value.quoted else _unquoted(text, scheme.end(), tie)
        if inner and inner.end > inner.start and is_opaque(text[inner.start : inner.end]):
            yield inner
            return
    if cue.family == "credentials":
        second = _second_of_pair(text, value)
        if second:
            cue, value = cue._replace(family="password"), second
    if value and _is_secret(text, cue, value, tie):
        yield value
    elif value and not value.quoted and cue.family in ("password", "pass") and tie in ("stated", "below"):
        phrase = _pattern(r"[a-z]{3,12}(?: [a-z]{3,12}){3,7}(?=[.,;:)]?(?:\s|$))").match(text, value.start)
        if phrase and is_passphrase(phrase.group()):
            yield Value(phrase.start(), phrase.end(), True)


def _quoted(text: str, position: int) -> Value | None:
    opening = _pattern(r"""(?:(?:[A-Za-z_][\w.:]{0,40})?\(\s{0,2}|\[\s{0,2}){0,2}(?:[bBrRuUfFlL]{1,2}|@|\$)?(\\{0,3}\"{3}|\\{0,3}'{3}|\\{0,3}["'`]|[“‘«„]|\*\*)""").match(text, position)
    if not opening:
        return None
    mark = opening.group(1)
    close = {"“": "”", "‘": "’", "«": "»", "„": "“"}.get(mark, mark)
    start = opening.end()
    line = text.find("\n", start, start + 2048) if len(mark.lstrip("\\")) < 3 else -1
    limit = line if line >= 0 else start + 2048
    end = text.find(close, start, limit)
    while end > 0 and text[end - 1] == "\\" and text[end - 2] != "\\" and "\\" not in mark:
        end = text.find(close, end + 1, limit)
    if end < 0:
        return None if opening.start(1) > position else _unquoted(text, start, "stated")
    while start < end and text[start] in " \t":
        start += 1
    return Value(start, end, True) if end > start else None


def _unquoted(text: str, position: int, tie: str) -> Value | None:
    stop = r"[^\s\"\ue000]{1,512}" if tie in ("tight", "flag") else r"[^\s\"'`<>|\ue000]{1,512}"
    match = _pattern(stop).match(text, position)
    if not match:
        return None
    value = match.group()
    cut = _pattern(r"\\+[nrt\"']|[;&,](?=[\w. -]{1,40}[=:])|,$|'|</|\\$").search(value, 1)
    if cut:
        value = value[: cut.start()]
    value = value.rstrip(".,;:)]}*`") if tie not in ("tight", "flag") else value.rstrip(",;`")
    if "(" not in value:
        value = value.partition(")")[0] if tie in ("tight", "assigned") else value
    if value.startswith("(") and tie != "tight":
        position += 1
        value = value[1:]
    return Value(position, position + len(value), False) if value else None


def _second_of_pair(text: str, value: Value) -> Value | None:
    """Of `me / value`, `me:value` and `("me", "value")`, the value."""
    pair = _pattern(
        r"""[\w.@+-]{1,64}["'`]?(?:[ \t]{1,2}(?:/|\||and|und|et)[ \t]{1,2}|:[ \t]?|/|,[ \t]{0,2})["'`]?(?=([^\s"'`]{3,128}))"""
    ).match(text, value.start)
    if not pair:
        return None
    secret = pair.group(1).rstrip(".,;)")
    return Value(pair.end(), pair.end() + len(secret), True)


def _is_secret(text: str, cue: Cue, value: Value, tie: str) -> bool:
    """The judgement: how strong is the cue, how firm the tie, how opaque the value."""
    content = text[value.start : value.end]
    if " " in content.strip():
        return cue.family in ("password", "pass", "secret") and value.quoted and not cue.is_weak and tie != "cell" and is_passphrase(content)
    literal = value.quoted or tie in ("tight", "flag")
    level = grade(content, quoted=value.quoted)
    if level == NOTHING or len(content) < 4 or content.lower() == cue.name.lower() or not literal and is_name(content):
        return False
    if content.isdigit():
        return _is_secret_number(content, cue, literal, tie)
    if cue.is_weak:
        return level == OPAQUE and len(content) >= 16 and not (cue.family == "key" and _is_hash(content))
    if cue.family in ("password", "pass"):
        return _is_password(text, cue, value, level, tie)
    if cue.family == "pin":
        return level >= MIXED and len(content) >= 6 and tie not in ("beside", "loose")
    if cue.family == "credentials" and tie in ("beside", "cell", "loose"):
        return level == OPAQUE and len(content) >= 12
    if level == OPAQUE:
        return len(content) >= (12 if tie in ("beside", "loose") else 8)
    return level == MIXED and len(content) >= 8 and (literal or tie == "stated") and not _is_numbered_name(content)


def _is_password(text: str, cue: Cue, value: Value, level: int, tie: str) -> bool:
    """Passwords may be words; a word counts only where nothing but a value can stand."""
    content = text[value.start : value.end]
    if level >= MIXED:
        if tie in ("beside", "loose") or cue.family == "pass" and not value.quoted and tie in ("stated", "cell"):
            return len(content) >= 6 and "/" not in content and "=" not in content and (level == OPAQUE or cue.family != "pass" or not _is_numbered_name(content))
        return value.quoted or not (tie == "assigned" and _is_numbered_name(content) and is_plain(content.rstrip("0123456789")))
    parts = [part for part in re.split(r"[-_.]", content) if part]
    if cue.family == "pass" and not value.quoted and tie != "tight" or any(map(is_plain, parts)):
        return False
    if value.quoted:
        return tie not in ("argument", "beside", "cell")
    if tie in ("tight", "flag"):
        return len(parts) == 1 and not _pattern(r"[ \t]{0,2}[,)]").match(text, value.end)
    # "the password is swordfish": unquoted, only where the clause ends with it
    ends = _pattern(r"[.,;:!]?(?:\s{0,4}$|[ \t]{0,4}[\r\n]|[ \t]{1,2}(?:\(|and\b|for\b|on\b|but\b|und\b|et\b|y\b|e\b|btw\b|-)|[.,;!][ \t]|[\"')])")
    return tie in ("stated", "below") and len(parts) in (1, 4, 5) and content[1:].islower() and ends.match(text, value.end) is not None


def _is_secret_number(digits: str, cue: Cue, literal: bool, tie: str) -> bool:
    if cue.family == "pin":
        return 4 <= len(digits) <= 8 and tie not in ("beside", "loose")
    if cue.family in ("password", "pass"):
        return len(digits) >= (4 if literal else 6) and tie not in ("beside", "loose", "cell", "argument")
    return len(digits) >= 16 and literal


def _is_numbered_name(content: str) -> bool:
    """`user_token_2`, `token1`, `v2key`: words with a small number, as in names of variables."""
    return bool(_pattern(r"[A-Za-z]+\d{0,2}(?:[_.-][A-Za-z]*\d{0,2})*$").match(content))


def _is_hash(content: str) -> bool:
    return bool(_pattern(r"[0-9a-fA-F-]{32,128}$").match(content))


def _seed_phrases(text: str, small: str) -> Iterator[Span]:
    """Twelve or more small words behind `seed phrase`, `mnemonic` or `recovery phrase`."""
    if "phrase" not in small and "mnemonic" not in small and "seed" not in small:
        return
    cue = _pattern(r"(?:seed|recovery|backup|secret|wallet)[ _-]?(?:phrase|words?)|mnemonic(?:[ _-]phrase)?|\bseed\b|wiederherstellungsphrase")
    words = _pattern(r"[^\n]{0,40}?[:=\"'`\n][\s\"'`:=]{0,6}((?:(?:\d{1,2}[.)] ?)?[a-z]{3,8}[ ,\n]{1,2}){11,23}[a-z]{3,8})(?![a-z])|[ ]is[ ]((?:[a-z]{3,8} ){11,23}[a-z]{3,8})(?![a-z])")
    for match in cue.finditer(small):
        phrase = words.match(small, match.end())
        if phrase:
            group = 1 if phrase.group(1) else 2
            if not {"the", "and", "for", "are", "from", "your"} & set(re.split(r"[^a-z]+", phrase.group(group))):
                yield phrase.start(group), phrase.end(group), "seed-phrase"
