"""Find the words that announce a secret: `password`, `API_KEY`, `Kennwort`, `--token`.

A cue may stand alone or inside an identifier, but it counts only if the identifier still names the secret
(`DB_PASSWORD`, not `password_policy`). What a cue announces is looked for by `secret_ties`.

Rule: of two cues in one identifier or side by side, the last one counts (`auth.token`, `secret key`), so that a value
belongs to the nearest cue.

Is this value a secret, or does it only stand where one could stand?

Redaction asks this about a value behind a cue ("the password is …", `API_KEY=…`) or in a place made for a secret
(`user:…@host`). Pure judgement of one short string; what stands around it is the finders' business.

Rule: the cue is the evidence and the look of the value only a tie-break, so a hash or a UUID counts as opaque here.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import chain, pairwise
from typing import NamedTuple

from kept.writing.secrets.rules import (
    BARE_KEYS,
    BENIGN_SUFFIXES,
    CUES,
    DESCRIPTIVE_ENDINGS,
    FILLER_WORDS,
    KEY_QUALIFIERS,
    NAME_ENDINGS,
    NEUTRAL_SUFFIXES,
    OTHER_KEYS,
    OTHER_TOKENS,
    PLACEHOLDER_WORDS,
    PLAIN_WORDS,
    SENTENCE_WORDS,
    TERMS,
)
from kept.writing.secrets.view import MASK, fold

NOTHING, WORD, MIXED, OPAQUE = range(4)  # how much a value looks like a secret

# Random strings change between small letters, capitals, digits and symbols every one or two characters; names and words
# keep to one for longer. Below this many characters a stretch, on average, nobody made it up to be read.
OPAQUE_STRETCH = 3.2
NAME_STRETCH = 2.5
SHORT_TEXT = 200  # characters: a query. Trying each word takes 0.1 ms, compiling a pattern of all of them 4


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


IDENTIFIER = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"


class Cue(NamedTuple):
    """A word that announces a secret, with the identifier it stands in."""

    family: str
    start: int  # of the identifier
    end: int
    name: str  # the identifier
    is_weak: bool  # the identifier may name something else
    next_start: int  # of the next cue


class _Word(NamedTuple):
    family: str
    is_bound: bool  # counts only at the start of a word or hump


def find_cues(text: str, small: str) -> Iterator[Cue]:
    """The cues of the folded text, in order."""
    is_compiled = _cue_words.cache_info().currsize > 0
    if not is_compiled and len(small) <= SHORT_TEXT and not any(word in small for word in _words()):
        return
    matches = _cue_words(small.isascii()).finditer(small)
    for match, follower in pairwise(chain(matches, [None])):
        if match is None:
            return
        if follower and _are_adjacent(small, match.end(), follower):
            continue
        cue = _cue(text, match, follower.start() if follower else len(text))
        if cue and cue.next_start >= cue.end:
            yield cue


def _are_adjacent(small: str, end: int, follower: re.Match[str]) -> bool:
    """`secret key`, but not `password password1`: there the second is the value of the first."""
    return (
        follower.start() - end < 2
        and small[end : follower.start()] in ("", " ", "\n")
        and not small[follower.end() : follower.end() + 1].isalnum()
    )


def _cue(text: str, match: re.Match[str], next_start: int) -> Cue | None:
    """The cue with its identifier, or None if the identifier names something else."""
    start, end = match.span()
    family, is_bound = _words()[match.group()]
    before = text[max(0, start - 48) : start]
    left = before[len(before.rstrip(IDENTIFIER)) :]
    if is_bound and left and left[-1].isalnum() and not (text[start].isupper() and left[-1].islower()):
        return None
    if is_bound and len(left) >= 8 and is_opaque(left):
        return None  # two letters of an id
    suffix, is_weak = _suffix(text, end, is_bound)
    if suffix is None:
        return None
    if family == "token" and any(hump.lower() in OTHER_TOKENS for hump in _humps(left)[-1:]):
        return None
    if match.group() in BARE_KEYS:
        near = [word.lower() for word in _humps(text[max(0, start - 32) : start])[-3:]]
        if near and near[-1] in OTHER_KEYS:
            return None
        is_weak = is_weak or not any(word in KEY_QUALIFIERS for word in near)
    return Cue(family, start - len(left), end + len(suffix), left + text[start:end] + suffix, is_weak, next_start)


def _suffix(text: str, end: int, is_bound: bool) -> tuple[str | None, bool]:
    """What follows the cue in its identifier, and whether that may change its meaning; None if it does."""
    if not text[end : end + 1].isalnum() and text[end : end + 1] not in ("_", ".", "-"):
        return "", False
    suffix = compiled(r"(?:[_.\-]?[A-Za-z0-9]{1,30}+){0,5}+").match(text, end).group()  # type: ignore[union-attr]
    if not suffix:
        return "", False
    if suffix[0].isalpha() and text[end - 1].isalpha() and suffix[0].islower() == text[end - 1].islower():
        is_plural = suffix[0] in "sS" and not suffix[1:2].isalpha()
        if not is_plural:
            return None, False
    parts = [part.lower() for part in _humps(suffix)]
    if any(part in BENIGN_SUFFIXES for part in parts):
        return None, False
    if all(part in NEUTRAL_SUFFIXES or part.isdigit() for part in parts):
        return suffix, False
    if "." in suffix:
        return suffix[: suffix.index(".")], False
    return (None, False) if "-" in suffix or is_bound else (suffix, True)


def _humps(identifier: str) -> list[str]:
    return compiled(r"[A-Z]++(?![a-z])|[A-Z]?[a-z]++|[0-9]++").findall(identifier)


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
    return re.compile(_tree({word: word in closed or re.sub("[ ._-]", "~", word) in closed for word in words}))


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
