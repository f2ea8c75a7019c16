"""Is this value a secret, or only something in a place where a secret could be?

The last word of redaction on a value: how strong is the cue that announces it, how firm is the tie between them, and
how much does the value look like a secret. Pure judgement of one short string; finding it is the finders' business.

Rule: the firmer the tie, the less the value must look like a secret. The cue is the evidence and the look only a
tie-break, so a hash or a UUID counts as opaque here.
"""

import re
from enum import Enum
from typing import NamedTuple

from kept.text import compiled
from kept.writing.secrets import MASK, rules

NOTHING, WORD, MIXED, OPAQUE = range(4)  # how much a value looks like a secret

# Random strings change between lower case, capitals, digits and symbols every one or two characters; names and words
# keep to one for longer. Below this many characters a stretch, on average, nobody made it up to be read.
OPAQUE_STRETCH = 3.2
NAME_STRETCH = 2.5
LOOK = 64  # how much of a value is looked at to judge it

ROW_OF_X = r"(?<![A-Za-z0-9])[xX]{3,64}+(?![A-Za-z0-9])|[xX]{5}|[*]{3}|[.]{5}|[#]{5}"
_NAMESPACES = (
    "var|local|data|module|secrets|vars|steps|env|inputs|params|settings|config|self|this|process|os|import|context"
    "|args|opts|options|request|req|ctx|state|props|app|kwargs"
)
_SCHEMES = "arn|vault|op|ssm|env|file|secretref|sops|keyring|gopass|bw|awskms|gcpkms"
TEMPLATE = (
    r"\$[{(]|\{\{|%\(|\{[A-Za-z_][A-Za-z0-9_.]{0,40}+\}|\\[wdsbWDSB](?![A-Za-z0-9])|\[\^|\(\?|\[[a-z-]{1,40}+="
    r"|^(?:#\{|<|\{[^}]{0,80}+\}$|\[[^\]]{0,80}+\]$|ENC\[|@Microsoft|\$\$?[A-Za-z_][A-Za-z0-9_]*+(?:$|[:./@])"
    r"|%[A-Za-z_][A-Za-z0-9_]*+%$|@[A-Za-z_.]++@$|!(?:vault|Ref|Sub|secret|env|ENV)$"
    rf"|(?:{_SCHEMES}):|(?:{_NAMESPACES})\.[A-Za-z_])"
    r"|(?:^|[^A-Za-z0-9%])%[sdr](?![A-Za-z0-9])"
)


class Cue(NamedTuple):
    """A word that announces a secret, with its identifier."""

    family: str
    start: int  # of the identifier
    end: int
    name: str  # the identifier
    is_weak: bool  # the identifier may name something else
    next_start: int  # of the next cue


class Tie(Enum):
    """How a value is tied to its cue, from the firmest."""

    LITERAL = "NAME=value, --flag value, <password>value<: only a value can be here"
    ASSIGNED = "name = value: a variable can be here as well"
    STATED = "password is value, password: value"
    APART = "password for the staging box is value"
    ARGUMENT = 'setPassword("value")'
    DISTANT = "the password was leaked: value"
    LOOSE = "password value, set the password to value, value as password"


class Value(NamedTuple):
    """The place of a value, and whether quotes or the like delimit it."""

    start: int
    end: int
    quoted: bool


def is_secret(text: str, cue: Cue, value: Value, tie: Tie) -> bool:
    """Is this value of the text the secret that the cue announces?"""
    content = text[value.start : value.end]
    if len(content) < 4 or (not value.quoted and content.isalpha() and is_plain(content)):
        return False
    if " " in content:
        return cue.family in ("password", "secret") and value.quoted and not cue.is_weak and is_passphrase(content)
    literal = value.quoted or tie is Tie.LITERAL
    bare = content.rstrip("!?")  # "is the secret exposed?" ends a sentence, "hunter2!" a password
    level = grade((bare if bare.isalpha() and not literal else content)[:LOOK], quoted=value.quoted)
    if level == NOTHING or content.lower() == cue.name.lower():
        return False
    if is_name(content) and (not literal or tie is Tie.ARGUMENT):
        return False
    if content.isdigit():
        return _is_secret_number(content, cue, literal, tie)
    if cue.family == "pin":
        return level >= MIXED and len(content) >= 6 and tie in (Tie.LITERAL, Tie.ASSIGNED, Tie.STATED)
    if cue.is_weak or tie is Tie.DISTANT:
        may_be_hash = cue.family != "key" and tie is not Tie.DISTANT
        return level == OPAQUE and len(content) >= 12 and (may_be_hash or not is_hash(content))
    if cue.family == "pass" and cue.name.isupper() and tie is not Tie.LITERAL and compiled(r"[/\\]|::").search(content):
        return False  # `PASS: tests/test_login.py::test_2` is the result of a test
    if cue.family in ("password", "pass"):
        judge = _is_mixed_password if level == MIXED else _is_word_password
        return level == OPAQUE or judge(text, cue, value, tie)
    if level == OPAQUE:
        return len(content) >= (12 if tie is Tie.LOOSE else 8)
    if tie is Tie.ARGUMENT or (tie is Tie.LOOSE and not value.quoted):
        return False
    if tie is Tie.ASSIGNED and not value.quoted and not content[0].isdigit():
        return False  # `token = lexer2` is code
    return level == MIXED and len(content) >= 8 and not is_numbered_name(content)


def _is_mixed_password(text: str, cue: Cue, value: Value, tie: Tie) -> bool:
    content = text[value.start : value.end]
    if value.quoted or tie is Tie.LITERAL or (cue.family != "pass" and tie not in (Tie.ASSIGNED, Tie.LOOSE)):
        return True
    if "=" in content or (cue.family == "pass" and (cue.name.isupper() or compiled("[_.]").search(content))):
        return False  # `PASS: test_login_2` is the result of a test
    is_variable = is_numbered_name(content) and is_plain(content.rstrip("0123456789"))
    return not is_variable and len(content) >= (6 if tie is Tie.LOOSE else 4)


def _is_word_password(text: str, cue: Cue, value: Value, tie: Tie) -> bool:
    """A password may be a word, but a word counts only where nothing but a value can be."""
    content = text[value.start : value.end]
    parts = [part for part in re.split(r"[-_.]", content) if part]
    if tie is Tie.LOOSE and value.quoted and is_constant(cue.name):
        return not any(map(is_plain, parts))  # `#define WIFI_PASSWORD "swordfish"`
    if tie is Tie.LOOSE or (cue.family == "pass" and tie is not Tie.LITERAL):
        return False
    if sum(map(is_plain, parts)) > len(parts) // 4:
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
        r"|[.,;!][ \t]|[\"')]|[ \t]{0,2}+(?:[^\x00-\x7f]|[:;]-?[()DP]))"
    )
    is_one_word = len(parts) in (1, 4, 5) and len(content) > 4 and content[1:].islower()
    return is_one_word and ends.match(text, value.end) is not None


def _is_secret_number(digits: str, cue: Cue, literal: bool, tie: Tie) -> bool:
    if cue.family == "pin":
        return 4 <= len(digits) <= 8 and tie is not Tie.LOOSE
    if cue.family in ("password", "pass"):
        if tie in (Tie.LOOSE, Tie.ARGUMENT) and not is_constant(cue.name):
            return len(digits) >= 8
        return len(digits) >= (4 if literal else 6)
    return len(digits) >= 16 and literal


# ---- the look of a value ----


def grade(value: str, *, quoted: bool) -> int:
    """How much the value looks like a secret: NOTHING, a plain WORD, MIXED (words with digits or symbols), OPAQUE."""
    if is_stand_in(value) or _is_measure(value):
        return NOTHING
    if value.isdigit():
        return WORD
    if value.isalnum():
        if value.isalpha():
            return OPAQUE if _is_garbled(value) else WORD
        return NOTHING if value.lower() in rules.TERMS else OPAQUE if _is_choppy(value) else MIXED
    if _is_location(value) or ((not quoted or value.endswith((")", "]"))) and is_code(value)):
        return NOTHING
    words = [word.lower() for word in re.split(r"[-_.\s/+]", value) if word]
    if all(word in rules.TERMS or word.isalpha() for word in words):
        if any(word in rules.TERMS for word in words):
            return NOTHING
        return OPAQUE if _is_garbled(value) else WORD
    return OPAQUE if _is_choppy(value) else MIXED


def is_opaque(value: str) -> bool:
    """Not a word, name, path, version or measure: letters and digits in an order that nobody could memorise."""
    return _is_choppy(value) and not is_stand_in(value) and not _is_location(value) and not _is_measure(value)


def _is_choppy(value: str) -> bool:
    if len(value) < 8 or not compiled("[A-Za-z]").search(value):
        return False
    has_digit = compiled("[0-9]").search(value) is not None
    if has_digit and is_numbered_name(value):
        return False
    limit = OPAQUE_STRETCH if len(value) < 20 else 2 * OPAQUE_STRETCH  # hex may have long rows of digits
    return (has_digit and _stretch(value) < limit) or _is_garbled(value)


def is_plain(word: str) -> bool:
    """An ordinary word of prose or code that says something about a secret rather than being one."""
    small = word.lower()
    is_listed = small in rules.PLAIN_WORDS or small in rules.FILLER_WORDS or small in rules.TERMS
    return is_listed or small.endswith(rules.DESCRIPTIVE_ENDINGS)


def is_passphrase(value: str) -> bool:
    """Several words that make no sentence: `correct horse battery staple`, `my dog Rex 2024!`."""
    words = value.split()
    if not 2 <= len(words) <= 24 or any(len(word) > 24 for word in words):
        return False
    if any(word.strip(".,!?:;'").lower() in rules.SENTENCE_WORDS for word in words):
        return False
    if all(word.isalpha() for word in words):
        return len(words) >= 3 and sum(map(is_plain, words)) <= len(words) // 4
    has_digit = compiled("[0-9]").search(value) is not None
    return has_digit and not compiled(r"[(){}<>=%]|[0-9][0-9]:[0-9][0-9]|://").search(value)


def is_stand_in(value: str) -> bool:
    """A mask, a template, a variable or a word that only says that a secret belongs here."""
    if value.isalnum() and not value.isalpha():
        return len(set(value[:64])) < 3 or compiled(ROW_OF_X).search(value) is not None
    if len(set(value[:64])) < 3 or MASK in value or value.endswith(("...", "…")) or compiled(ROW_OF_X).search(value):
        return True
    if compiled(r"[^A-Za-z0-9+/=_-]").search(value) and compiled(TEMPLATE).search(value):
        return True
    parts = [part.lower() for part in compiled("[A-Za-z0-9]++").findall(value)]
    if not all(part.isalpha() or part.isdigit() for part in parts):
        return False
    words = [part for part in parts if part.isalpha()]
    if not words:
        return not parts
    if any(word in rules.PLACEHOLDER_WORDS for word in words):
        return True
    return len(words) == len(parts) and all(word in rules.FILLER_WORDS for word in words)


def is_code(value: str) -> bool:
    """Code that fetches or makes a value: `os.environ["X"]`, `get_token()`, `self.password`, `.split(`."""
    if value[0] in ")]}.,;:([{" or compiled(r"[A-Za-z0-9_]\(|=\{").search(value):
        return True
    chain = compiled(r"[&*!]?[A-Za-z_$][\w$]*+(?:(?:\.|::|->|\?\.|!\.)[A-Za-z_$][\w$]*+)*+").match(value)
    if not chain:
        return False
    rest = value[chain.end() :]
    if rest.startswith(("(", "[", "{", "<")) or (value[0] in "&*" and not rest):
        return True
    links = re.split(r"\.|::|->", chain.group())
    return rest.strip(";,)") == "" and len(links) > 1 and all(_stretch(link) >= NAME_STRETCH for link in links)


def is_constant(name: str) -> bool:
    """The name of an environment variable or a constant: `DB_PASSWORD`."""
    return name.isupper() and "_" in name


def is_name(value: str) -> bool:
    """The name of a variable, a constant or a type; only constants may have digits here."""
    shape = compiled(
        r"_*+[A-Z][A-Z0-9]*+(?:_[A-Z0-9]++)++$|_*+[a-z]++(?:_[a-z]++)++$|[a-z]++(?:[A-Z][a-z]++)++$|[A-Z][a-z]++(?:[A-Z][a-z]++)++$"
    )
    return shape.match(value) is not None and _stretch(value) >= NAME_STRETCH - 0.5


def is_numbered_name(value: str) -> bool:
    """`user_token_2`, `token1`: words with a small number, as in names of variables."""
    return compiled(r"_{0,2}+[A-Za-z]++[0-9]{0,2}+(?:[_.-][A-Za-z]*+[0-9]{0,2}+)*+$").match(value) is not None


def is_hash(value: str) -> bool:
    return compiled(r"[0-9a-fA-F-]{32,128}+$").match(value) is not None


def _is_location(value: str) -> bool:
    """A URL, a path, a file name, an e-mail address or a host."""
    if not compiled(r"[/\\.@]").search(value):
        return False
    if "://" in value or compiled(r"[\w.+-]++@[\w-]++\.[\w.]++$").match(value):
        return True
    if "/" in value or "\\" in value:
        parts = [part for part in re.split(r"[\\/]", value) if part]
        if any(compiled(r"[^\w.@~+:$*-]").search(part) for part in parts):
            return False
        return _stretch("".join(parts)) >= NAME_STRETCH and all(
            len(part) < 6 or part.isdigit() or _stretch(part) >= NAME_STRETCH + (len(part) > 16) for part in parts
        )
    name = compiled(r"[\w-]{1,60}+(?:\.[\w-]{1,60}+){1,6}+$").match(value)
    return name is not None and value.rpartition(".")[2] in rules.NAME_ENDINGS


def _is_measure(value: str) -> bool:
    """A version, a date, a time, an amount, an address: digits that count something."""
    if value[0].islower() and value[0] != "v":
        return False
    return bool(
        compiled(
            r"[vV]?[0-9]++(?:\.[0-9]++)++(?:[-+.]?(?:alpha|beta|rc|dev|post|a|b)[.-]?[0-9]*+)?$"
            r"|[<>=~^]"
            r"|[0-9]{4}-[0-9][0-9](?:-[0-9][0-9])?(?:[T ][0-9:.,+Z-]*+)?$|[0-9]{1,2}[:/][0-9][0-9](?:[:/][0-9]{2,4})?$"
            r"|[+-]?[0-9][0-9.,_]*+\s?-?(?:[a-zA-Z]{1,2}|secs?|mins?|hours?|days?|weeks?|months?|years?|bytes?|bits?|chars?"
            r"|characters?|tokens?|%)$"
            r"|[$€£][0-9]|[A-Z]{2,5}-[0-9]{1,5}$|#[0-9]++$|[0-9]++[-x][0-9]++$|[0-9]{1,3}-[a-z]++$|0x[0-9a-fA-F]{1,4}$"
        ).match(value)
    )


def _stretch(value: str) -> float:
    """How long the value stays with one sort of character, on average."""
    return len(value) / max(1, len(compiled(r"[A-Z]?[a-z]++|[A-Z]++|[0-9]++|[^A-Za-z0-9]").findall(value)))


def _is_garbled(value: str) -> bool:
    """Letters, but not a name: cases mixed at random, or too few vowels to be spoken."""
    letters = re.sub("[^A-Za-z]", "", value)
    if letters.lower() != letters != letters.upper() and _stretch(letters) < (2.2 if len(letters) < 16 else 2.8):
        return len(letters) >= 8
    return (
        len(letters) >= 10
        and compiled(r"[bcdfghjklmnpqrstvwxz]{6}|[BCDFGHJKLMNPQRSTVWXZ]{8}").search(value) is not None
    )
