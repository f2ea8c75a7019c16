"""Describe a string alone: a stand-in, a template, code, a name, a path, a measure, a word, or random characters.

Pure tests of one short string. `verdict` applies them to a value behind a cue, `shapes` and `disguises` to a value in
a place that is made for a secret.

Rule: nothing here knows the cue. A value that could be two things counts as the secret.
"""

import re
from functools import cache
from itertools import pairwise

from kept.text import compiled
from kept.writing.secrets import MASK, fold, rules

NOTHING, WORD, MIXED, OPAQUE = range(4)  # how much a value looks like a secret

# Random strings change between lower case, capitals, digits and symbols every one or two characters; names and words
# keep to one for longer. Below this many characters a stretch, on average, a string is not made to be read.
OPAQUE_STRETCH = 3.2
NAME_STRETCH = 2.5
FORGIVING_LENGTH = 14  # a word this long may have one pair of letters that words seldom have

ROW_OF_X = r"(?<![A-Za-z0-9])[xX]{3,64}+(?![A-Za-z0-9])|[xX]{5}|[*]{3}|[.]{5}|[#]{5}"
DOCUMENTED = r"[A-Za-z0-9/+_-]EXAMPLE(?:KEY|TOKEN|SECRET)?$"  # `AKIAIOSFODNN7EXAMPLE`: vendors' manuals mark theirs
MARKED = rf"{ROW_OF_X}|{DOCUMENTED}"
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
MEASURE = (
    r"[vV]?[0-9]++(?:\.[0-9]++)++(?:[-+.]?(?:alpha|beta|rc|dev|post|a|b)[.-]?[0-9]*+)?$"
    r"|[<>=~^]{1,2}+[0-9]|[0-9]{1,3}(?:[_,.'][0-9]{3})++$"
    r"|[0-9]{4}-[0-9][0-9](?:-[0-9][0-9])?(?:[T ][0-9:.,+Z-]*+)?$|[0-9]{1,2}[:/][0-9][0-9](?:[:/][0-9]{2,4})?$"
    r"|[+-]?[0-9][0-9.,_]*+\s?-?(?:[a-zA-Z]{1,2}|secs?|mins?|hours?|days?|weeks?|months?|years?|bytes?|bits?|chars?"
    r"|characters?|tokens?|%)$"
    r"|[$€£][0-9][0-9.,]*+[kKmM]?$|[A-Z]{2,5}-[0-9]{1,5}$|#[0-9]++$|[0-9]++[-x][0-9]++$|[0-9]{1,3}-[a-z]++$"
    r"|0x[0-9a-fA-F]{1,4}$|(?:RFC|ISO|IEC|ECMA|PEP|CVE|FIPS|NIST)[ -]?[0-9]"
)


# ---- how much it looks like a secret ----


def grade(value: str, *, quoted: bool) -> int:
    """Grade the value as a secret: NOTHING, a plain WORD, MIXED (words with digits or symbols) or OPAQUE."""
    if is_stand_in(value) or is_something_else(value, quoted=quoted) or (not quoted and is_code(value)):
        return NOTHING
    if value.isdigit():
        return WORD
    if all(word.isalpha() for word in word_parts(value)):
        return OPAQUE if _is_garbled(value) else WORD
    return OPAQUE if _is_choppy(value) else MIXED


def is_something_else(value: str, *, quoted: bool) -> bool:
    """Match a measure, a technical term, a path and a call."""
    if is_measure(value):
        return True
    if value.isalnum():
        return not value.isalpha() and value.lower() in rules.TERMS
    may_be_call = not quoted or value.endswith((")", "]"))
    return is_location(value) or (may_be_call and is_call(value)) or _is_made_of_terms(value)


def _is_made_of_terms(value: str) -> bool:
    """Match `sha256-base64` and `utf8-encoded`: technical terms, perhaps among words."""
    words = [word.lower() for word in word_parts(value)]
    return not rules.TERMS.isdisjoint(words) and all(word in rules.TERMS or word.isalpha() for word in words)


def is_opaque(value: str) -> bool:
    """Match letters and digits in a random order: not a word, name, path, version or measure."""
    return _is_choppy(value) and not is_stand_in(value) and not is_location(value) and not is_measure(value)


def _is_choppy(value: str) -> bool:
    if len(value) < 8 or not compiled("[A-Za-z]").search(value):
        return False
    has_digit = compiled("[0-9]").search(value) is not None
    if has_digit and is_numbered_name(value):
        return False
    limit = OPAQUE_STRETCH if len(value) < 20 else 2 * OPAQUE_STRETCH  # hex may have long rows of digits
    return (has_digit and stretch(value) < limit) or _is_garbled(value)


def _is_garbled(value: str) -> bool:
    """Match letters that are no name: cases mixed at random, or too few vowels to be spoken."""
    letters = re.sub("[^A-Za-z]", "", value)
    if letters.lower() != letters != letters.upper() and stretch(letters) < (2.2 if len(letters) < 16 else 2.8):
        return len(letters) >= 8
    return (
        len(letters) >= 10
        and compiled(r"[bcdfghjklmnpqrstvwxz]{6}|[BCDFGHJKLMNPQRSTVWXZ]{8}").search(value) is not None
    )


def stretch(value: str) -> float:
    """Return the average length of a run of one sort of character."""
    return len(value) / max(1, len(compiled(r"[A-Z]?[a-z]++|[A-Z]++|[0-9]++|[^A-Za-z0-9]").findall(value)))


# ---- stand-ins and code ----


def is_stand_in(value: str) -> bool:
    """Match a mask, a template, a variable, and a word that only marks the place of a secret."""
    if value.isalnum() and not value.isalpha():
        return len(set(value[:64])) < 3 or compiled(MARKED).search(value) is not None
    return _is_masked(value) or is_documented(value) or _is_template(value) or _is_placeholder(value)


def is_documented(value: str) -> bool:
    """Match a key of a vendor's manual, marked as one at its end: `AKIAIOSFODNN7EXAMPLE`."""
    return compiled(DOCUMENTED).search(value) is not None


def _is_masked(value: str) -> bool:
    is_pattern = value[0] == "^" and value[-1] == "$"
    is_mask = is_pattern or len(set(value[:64])) < 3 or MASK in value or value.endswith(("...", "…"))
    return is_mask or compiled(ROW_OF_X).search(value) is not None


def _is_template(value: str) -> bool:
    """Match `${NAME}`, `{{ name }}`, `%(name)s`, `secrets.NAME` and `vault:path`."""
    has_sign = compiled(r"[^A-Za-z0-9+/=_-]").search(value) is not None
    return has_sign and compiled(TEMPLATE).search(value) is not None


def _is_placeholder(value: str) -> bool:
    """Match words that mark the place of a secret, and a value of signs alone."""
    parts = [part.lower() for part in compiled("[A-Za-z0-9]++").findall(value)]
    if not all(part.isalpha() or part.isdigit() for part in parts):
        return False
    words = [part for part in parts if part.isalpha()]
    return _are_placeholders(words, len(parts)) if words else not any(map(str.isalnum, value))


def _are_placeholders(words: list[str], count: int) -> bool:
    """Match `your-key` and `insert-token-here`. A passphrase may hold `hidden` or `bar`, but not mostly such words."""
    if not rules.PLACEHOLDER_WORDS.isdisjoint(words):
        return True
    fillers = sum(word in rules.FILLER_WORDS for word in words)
    if fillers == len(words) == count:
        return True
    vague = sum(word in rules.VAGUE_PLACEHOLDERS for word in words)
    return vague > 0 and 2 * (vague + fillers) >= len(words)


def is_code(value: str) -> bool:
    """Match code that fetches or makes a value: `os.environ["X"]`, `get_token()`, `self.password`, `.split(`."""
    return is_call(value) or is_chain(value)


# PowerShell calls without brackets.
CMDLET = r"(?:ConvertTo|ConvertFrom|Get|Read|New|Import|Unprotect|Select)-[A-Z][A-Za-z]++$"


def is_call(value: str) -> bool:
    """Match a call, an index, a reference, and a piece of code that begins or ends in the middle."""
    if value[0] in ")]}.,;:([{" or compiled(r"[A-Za-z0-9_]\(|=\{|^\w*+[\])][.\[(]").search(value):
        return True
    if compiled(CMDLET).match(value):
        return True
    chain = compiled(CHAIN).match(value)
    if not chain:
        return False
    rest = value[chain.end() :]
    return rest.startswith(("(", "[", "{", "<")) or (value[0] in "&*" and not rest)


CHAIN = r"[&*!]?[A-Za-z_$][\w$]*+(?:(?:\.|::|->|\?\.|!\.)[A-Za-z_$][\w$]*+)*+"


def is_chain(value: str) -> bool:
    """Match an attribute of a variable: `user.password`, `Token::Ident`."""
    chain = compiled(CHAIN).match(value)
    if not chain or value[chain.end() :].strip(";,)"):
        return False
    links = re.split(r"\.|::|->", chain.group())
    return len(links) > 1 and all(stretch(link) >= NAME_STRETCH for link in links)


# ---- names, hashes, places, measures ----


def is_constant(name: str) -> bool:
    """Match the name of an environment variable or a constant: `DB_PASSWORD`."""
    return name.isupper() and "_" in name


def is_name(value: str) -> bool:
    """Match the name of a variable, a constant or a type; only constants may have digits here."""
    shape = compiled(
        r"_*+[A-Z][A-Z0-9]*+(?:_[A-Z0-9]++)++$|_*+[a-z]++(?:_[a-z]++)++$|[a-z]++(?:[A-Z][a-z]++)++$|[A-Z][a-z]++(?:[A-Z][a-z]++)++$"
    )
    return shape.match(value) is not None and stretch(value) >= NAME_STRETCH - 0.5


def is_numbered_name(value: str) -> bool:
    """Match words with a small number, as in names of variables: `user_token_2`, `token1`."""
    return compiled(r"_{0,2}+[A-Za-z]++[0-9]{0,2}+(?:[_.-][A-Za-z]*+[0-9]{0,2}+)*+$").match(value) is not None


def is_hash(value: str) -> bool:
    return compiled(r"[0-9a-fA-F-]{32,128}+$").match(value) is not None


def is_location(value: str) -> bool:
    """Match a URL, a path, a file name, an e-mail address and a host."""
    if not compiled(r"[/\\.@]").search(value):
        return False
    if "://" in value or compiled(r"[\w.+-]++@[\w-]++\.[\w.]++$").match(value):
        return True
    if "/" in value or "\\" in value:
        return _is_path(value)
    name = compiled(r"[\w-]{1,60}+(?:\.[\w-]{1,60}+){1,6}+$").match(value)
    return name is not None and value.rpartition(".")[2] in rules.NAME_ENDINGS


def _is_path(value: str) -> bool:
    parts = [part for part in re.split(r"[\\/]", value) if part]
    if any(compiled(r"[^\w.@~+:$*-]").search(part) for part in parts):
        return False
    words = [part for part in parts if len(part) >= 6 and not part.replace("-", "").isdigit()]  # the rest: ids, dates
    is_readable = all(stretch(word) >= NAME_STRETCH + (len(word) > 16) for word in words)
    return is_readable and stretch("".join(parts)) >= NAME_STRETCH


def is_measure(value: str) -> bool:
    """Match digits that count something: a version, a date, a time, an amount, an address."""
    if value[0].islower() and value[0] != "v":
        return False
    return compiled(MEASURE).match(value) is not None


# ---- words ----


def word_parts(value: str) -> list[str]:
    """Return the words of `read-only`, `nav.home` and `and/or`."""
    return [word for word in re.split(r"[-_.\s/+]", value) if word]


def humps(name: str) -> list[str]:
    """Return the words of an identifier in small letters: of `dbPassword`, `DB_PASSWORD` and `db-password`."""
    return [hump.lower() for hump in compiled(r"[A-Z]{1,40}(?![a-z])|[A-Z]?[a-z]++|[0-9]++").findall(name)]


def is_listed(word: str) -> bool:
    """Match a listed word of prose or code about secrets."""
    small = word.lower()
    return small in rules.PLAIN_WORDS or small in rules.FILLER_WORDS or small in rules.TERMS


def is_plain(word: str) -> bool:
    """Match an ordinary word of prose or code that describes a secret rather than being one."""
    return is_listed(word) or (word.lower().endswith(rules.DESCRIPTIVE_ENDINGS) and is_spoken(word))


def is_cue(word: str) -> bool:
    """Match a word that announces a secret, in any language: `"password": "Passwort"` is a translation."""
    return word.lower() in _cues()


@cache
def _cues() -> frozenset[str]:
    return frozenset(
        entry.strip("^$").replace("~", " ") for words in rules.CUES.values() for entry in fold(words).split()
    )


def is_spoken(word: str) -> bool:
    """Match letters that could be a word of a language. Random letters have pairs that words seldom have."""
    small = word.lower()
    if not small.isascii():
        return True
    if not small.isalpha() or not (word.islower() or word[1:].islower() or word.isupper()):
        return False
    seldom = sum(second not in rules.FOLLOWERS[first] for first, second in pairwise(small))
    return seldom <= (len(small) >= FORGIVING_LENGTH) and not compiled("[bcdfghjklmnpqrstvwxz]{6}").search(small)


def is_passphrase(value: str) -> bool:
    """Match several words that make no sentence: `correct horse battery staple`, `my dog Rex 2024!`."""
    words = value.split()
    if not 2 <= len(words) <= 24 or any(len(word) > 24 for word in words):
        return False
    if any(word.strip(".,!?:;'").lower() in rules.FUNCTION_WORDS | rules.ABOUT_WORDS for word in words):
        return False
    if all(word.isalpha() for word in words):
        return len(words) >= 3 and sum(map(is_plain, words)) <= len(words) // 4
    has_digit = compiled("[0-9]").search(value) is not None
    return has_digit and not compiled(r"[(){}<>=%]|[0-9][0-9]:[0-9][0-9]|://").search(value)
