"""Is the value that a cue announces a secret?

The last word of redaction on values behind a cue: how strong is the cue, how firm the tie between them, and how much
does the value look like a secret.

Rule: the firmer the tie, the less the value must look like one. Where only a value can stand, any word may be one.
"""

import re
from enum import Enum
from typing import NamedTuple

from kept.writing.secrets.cues import (
    MIXED,
    NOTHING,
    OPAQUE,
    Cue,
    compiled,
    grade,
    is_constant,
    is_hash,
    is_name,
    is_numbered_name,
    is_passphrase,
    is_plain,
)

LOOK = 64  # how much of a value is looked at to judge it


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
    """A password may be a word, but a word counts only where nothing but a value can stand."""
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
