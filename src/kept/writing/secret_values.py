"""Is this value a secret, or does it only stand where one could stand?

Redaction asks this about a value behind a cue ("the password is …", `API_KEY=…`) or in a place made for a secret
(`user:…@host`). Pure judgement of one short string; what stands around it is the finders' business.

Rule: the cue is the evidence and the look of the value only a tie-break, so a hash or a UUID counts as opaque here.
"""

import re
from functools import cache

from kept.writing.secret_view import MASK
from kept.writing.secrets_rules import (
    DESCRIPTIVE_ENDINGS,
    FILLER_WORDS,
    NAME_ENDINGS,
    PLACEHOLDER_WORDS,
    PLAIN_WORDS,
    SENTENCE_WORDS,
    TERMS,
)

NOTHING, WORD, MIXED, OPAQUE = range(4)  # how much a value looks like a secret

# Random strings change between small letters, capitals, digits and symbols every one or two characters; names and words
# keep to one for longer. Below this many characters a stretch, on average, nobody made it up to be read.
OPAQUE_STRETCH = 3.2
NAME_STRETCH = 2.5


@cache
def compiled(source: str, flags: int = 0) -> re.Pattern[str]:
    """The pattern, compiled when it is first needed. Sources are bounded; a test walks all of them."""
    return re.compile(source, flags)


def grade(value: str, *, quoted: bool) -> int:
    """How much the value looks like a secret: NOTHING, a plain WORD, MIXED (words with digits or symbols), OPAQUE."""
    if is_stand_in(value) or _is_measure(value):
        return NOTHING
    if value.isdigit():
        return WORD
    if value.isalnum():
        if value.isalpha():
            return OPAQUE if _is_garbled(value) else WORD
        return NOTHING if value.lower() in TERMS else OPAQUE if _is_choppy(value) else MIXED
    if _is_location(value) or ((not quoted or value.endswith((")", "]"))) and is_code(value)):
        return NOTHING
    words = [word.lower() for word in re.split(r"[-_.\s/+]", value) if word]
    if all(word in TERMS or word.isalpha() for word in words):
        if any(word in TERMS for word in words):
            return NOTHING
        return OPAQUE if _is_garbled(value) else WORD
    return OPAQUE if _is_choppy(value) else MIXED


def is_opaque(value: str) -> bool:
    """No word, name, path, version or measure: letters and digits in an order that nobody would type by heart."""
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
    return small in PLAIN_WORDS or small in FILLER_WORDS or small in TERMS or small.endswith(DESCRIPTIVE_ENDINGS)


def is_passphrase(value: str) -> bool:
    """Several words that make no sentence: `correct horse battery staple`, `my dog Rex 2024!`."""
    words = value.split()
    if not 2 <= len(words) <= 24 or any(len(word) > 24 for word in words):
        return False
    if any(word.strip(".,!?:;'").lower() in SENTENCE_WORDS for word in words):
        return False
    if all(word.isalpha() for word in words):
        return len(words) >= 3 and sum(map(is_plain, words)) <= len(words) // 4
    has_digit = compiled("[0-9]").search(value) is not None
    return has_digit and not compiled(r"[(){}<>=%]|[0-9][0-9]:[0-9][0-9]|://").search(value)


def is_stand_in(value: str) -> bool:
    """A mask, a template, a variable or a word that only says that a secret belongs here."""
    if value.isalnum() and not value.isalpha():
        return len(set(value[:64])) < 3 or _row_of_x().search(value) is not None
    if len(set(value[:64])) < 3 or MASK in value or value.endswith(("...", "…")) or _row_of_x().search(value):
        return True
    if compiled(r"[^A-Za-z0-9+/=_-]").search(value) and _template().search(value):
        return True
    parts = [part.lower() for part in compiled("[A-Za-z0-9]++").findall(value)]
    if not all(part.isalpha() or part.isdigit() for part in parts):
        return False
    words = [part for part in parts if part.isalpha()]
    if not words:
        return not parts
    if any(word in PLACEHOLDER_WORDS for word in words):
        return True
    return len(words) == len(parts) and all(word in FILLER_WORDS for word in words)


@cache
def _row_of_x() -> re.Pattern[str]:
    return re.compile(r"(?<![A-Za-z0-9])[xX]{3,64}+(?![A-Za-z0-9])|[xX]{5}|[*]{3}|[.]{5}|[#]{5}")


@cache
def _template() -> re.Pattern[str]:
    namespaces = (
        "var|local|data|module|secrets|vars|steps|env|inputs|params|settings|config|self|this|process|os|import|context"
        "|args|opts|options|request|req|ctx|state|props|app|kwargs"
    )
    schemes = "arn|vault|op|ssm|env|file|secretref|sops|keyring|gopass|bw|awskms|gcpkms"
    return re.compile(
        r"\$[{(]|\{\{|%\(|\{[A-Za-z_][A-Za-z0-9_.]{0,40}+\}|\\[wdsbWDSB](?![A-Za-z0-9])|\[\^|\(\?|\[[a-z-]{1,40}+="
        r"|^(?:#\{|<|\{[^}]{0,80}+\}$|\[[^\]]{0,80}+\]$|ENC\[|@Microsoft|\$\$?[A-Za-z_][A-Za-z0-9_]*+(?:$|[:./@])"
        rf"|%[A-Za-z_][A-Za-z0-9_]*+%$|@[A-Za-z_.]++@$|!(?:vault|Ref|Sub|secret|env|ENV)$|(?:{schemes}):|(?:{namespaces})\.[A-Za-z_])"
        r"|(?:^|[^A-Za-z0-9%])%[sdr](?![A-Za-z0-9])"
    )


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
    return name is not None and value.rpartition(".")[2] in NAME_ENDINGS


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
