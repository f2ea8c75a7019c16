"""Is this value a secret, or does it only stand where one could stand?

Redaction asks this about a value behind a cue ("the password is …", `API_KEY=…`) or in a place made for a secret
(`user:…@host`). Pure judgement of one short string; what stands around it is the finders' business.

Rule: the cue is the evidence and the value only a tie-break, so a hash or a UUID counts as opaque here.
"""

import re
from functools import cache

from kept.writing.secrets_rules import (
    DESCRIPTIVE_ENDINGS,
    FILLER_WORDS,
    PLACEHOLDER_WORDS,
    PLAIN_WORDS,
    SENTENCE_WORDS,
    TERMS,
)

NOTHING, WORD, MIXED, OPAQUE = range(4)  # how much a value looks like a secret

# Random strings change between small letters, capitals and digits every one or two characters; names and words keep to
# one for longer. Measured over identifiers and base62 strings of 12 to 40 characters: 4.6 and 1.5 on average.
CHOPPY = 3.2


@cache
def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source)


def grade(value: str, *, quoted: bool) -> int:
    """How much the value looks like a secret: NOTHING, a plain WORD, MIXED (words with digits or symbols), OPAQUE."""
    if is_stand_in(value) or _is_location(value) or _is_measure(value) or (not quoted and is_code(value)):
        return NOTHING
    if value.isalpha():
        return OPAQUE if _is_garbled(value) else WORD
    if value.isdigit():
        return WORD
    words = [word.lower() for word in re.split(r"[-_.\s/+]", value) if word]
    if all(word in TERMS or word.isalpha() for word in words):
        return NOTHING if any(word in TERMS for word in words) else OPAQUE if _is_garbled(value) else WORD
    if is_opaque(value):
        return OPAQUE
    return MIXED


def is_opaque(value: str) -> bool:
    """No word, name, path, version or measure: letters and digits in an order that nobody would type by heart."""
    if len(value) < 8 or is_stand_in(value) or _is_location(value) or _is_measure(value):
        return False
    if value.isalpha():
        return _is_garbled(value)
    has_letters = any(map(str.isalpha, value))
    has_digits = any(map(str.isdigit, value))
    return has_letters and (has_digits or _is_garbled(value)) and _stretch(value) < CHOPPY


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
    return any(map(str.isdigit, value)) and not _pattern(r"[(){}<>=%]|\d\d:\d\d|://").search(value)


def is_stand_in(value: str) -> bool:
    """A mask, a template, a variable or a word that only says that a secret belongs here."""
    if not value or "\ue000" in value or len(set(value)) < 3 or _pattern(r"%[sdr](?!\w)|\{\w{0,40}\}|<\w").search(value):
        return True
    if _pattern(
        r"\$[A-Za-z_{(]|\$\$?\{|%[A-Za-z_]\w*%$|%[sdr]$|%\(|\{[^}]{0,80}\}$|\{\{|<[^>]{0,120}>?$|\[[^\]]{0,80}\]$|#\{|@[\w.]+@$|@Microsoft|!(?:vault|Ref|Sub|secret|env)|ENC\[|"
        r"(?:arn|vault|op|env|file|ssm|secretref|sops|aws|gcp|azure|keyring|awssm|gopass|bw):[^\s]{0,2}|(?:var|local|data|module|secrets|vars|steps|env|inputs|params|settings|config|self|this|process|os|import)\."
    ).match(value):
        # `$ecret!23` is a password and `$SECRET` is not
        return not (value[0] == "$" and not _pattern(r"\$\w+$|\$+[{(]|\$\w+[:./@]").match(value))
    words = [word.lower() for word in re.split(r"[^A-Za-z]+", value) if word]
    if not words:
        return not any(map(str.isdigit, value))
    if value.strip("xX.*-_•…#?·") == "" or value.endswith("..."):
        return True
    if any(map(str.isdigit, value)) and not value.rstrip("0123456789").isalpha():
        return any(word in PLACEHOLDER_WORDS for word in words if len(word) > 3) and len(words) > 1 and is_wordy(words)
    return any(word in PLACEHOLDER_WORDS for word in words) or (
        all(word in FILLER_WORDS for word in words) and not any(map(str.isdigit, value))
    )


def is_wordy(words: list[str]) -> bool:
    return all(len(word) < 14 for word in words)


def is_code(value: str) -> bool:
    """Code that fetches or makes a value: `os.environ["X"]`, `get_token()`, `self.password`, `.split(`."""
    return bool(
        _pattern(
            r"(?:await |new )?[A-Za-z_$&*!][\w$]*(?:(?:\.|::|->|\?\.|!\.)[A-Za-z_$]\w*)*(?:\(|\[|\{|<)"  # f( x[ T<
            r"|[A-Za-z_$][A-Za-z_$]*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)+[;,)]*$"  # a.b.c
            r"|[\])}.,;:(\[{]"
        ).match(value)
    )


def is_name(value: str) -> bool:
    """The name of a variable, a constant or a type."""
    return bool(
        _pattern(
            r"[A-Z][A-Z_]*_[A-Z_]+$"  # CONSTANT_NAME
            r"|_*[a-z]+(?:_[a-z]+)+$"  # snake_name
            r"|[a-z]+(?:[A-Z][a-z]+)+$|(?:[A-Z][a-z]+){2,}$"  # camelName, TypeName
        ).match(value)
    )


def _is_location(value: str) -> bool:
    """A URL, a path, a file name, an e-mail address or a host."""
    if "://" in value or _pattern(r"[\w.+-]+@[\w-]+\.[\w.]+$").match(value):
        return True
    if _pattern(r"(?:~|\.{1,2})?/[\w.-]+(?:/|$)|[A-Za-z]:[\\/]|\\\\").match(value) or "/" in value:
        parts = [part for part in re.split(r"[\\/]", value) if part]
        return bool(parts) and all(_is_name(part) for part in parts)
    return bool(_pattern(r"[\w-]{1,40}(?:\.[\w-]{1,40}){0,4}\.(?:py|js|ts|tsx|jsx|json|ya?ml|toml|txt|md|env|pem|key|crt|cfg|ini|conf|log|go|rs|java|rb|sh|html|css|xml|sql|csv|lock|local|internal|com|org|net|io|dev)$").match(value))


def _is_name(part: str) -> bool:
    return bool(_pattern(r"[.@~$]?[A-Za-z]+\d{0,4}(?:[-_.]?[A-Za-z]+\d{0,4}|[-_.]\d+)*$|\d+$|[{$*<:%].*").match(part)) and (
        len(part) < 8 or _stretch(part) >= 2.5 or part.isdigit()
    )


def _is_measure(value: str) -> bool:
    """A version, a date, a time, an amount, an address: digits that count something."""
    return bool(
        _pattern(
            r"v?\d+(?:\.\d+){1,4}(?:[-+.]?(?:alpha|beta|rc|dev|post|a|b)[.-]?\d*)?$"
            r"|[<>=~^]"
            r"|\d{4}-\d\d(?:-\d\d)?(?:[T ].*)?$|\d{1,2}[:/]\d\d(?:[:/]\d{2,4})?$"
            r"|[+-]?\d[\d.,_]*\s?-?(?:[a-zA-Z]{1,2}|ms|sec|secs|min|mins|hours?|days?|bytes?|bits?|chars?|characters?|tokens?|kb|mb|gb|tb|th|st|nd|rd|px|%)$"
            r"|[$€£]\d|\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?$"
            r"|[A-Z]{2,5}-\d{1,5}$|#\d+$|\d+[-x]\d+$|\d{1,3}-[a-z]+$|0x[0-9a-fA-F]{1,4}$"
        ).match(value)
    )


def _stretch(value: str) -> float:
    """How long the value stays with one sort of character, on average."""
    return len(value) / max(1, len(_pattern(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]").findall(value)))


def _is_garbled(letters: str) -> bool:
    """Letters only, but not a name: cases mixed at random, or too few vowels to be spoken."""
    if len(letters) >= 8 and letters.lower() != letters != letters.upper() and _stretch(letters) < 2.5:
        return True
    small = letters.lower()
    return len(letters) >= 10 and bool(_pattern(r"[bcdfghjklmnpqrstvwxz]{6}").search(small))
