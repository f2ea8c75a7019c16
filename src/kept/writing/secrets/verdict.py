"""Is this value the secret that its cue announces, or only something in a place where a secret could be?

The last word of redaction on a value behind a cue. Finding the value is the business of `cues`, its look of `looks`.

    a stand-in, a number that counts, a path, a call?      no
    a weak cue, or a loose tie?                            only if the value looks like a secret
    a type, a variable, prose, the name of something?      no
    anything else behind an explicit cue                   yes

Rule: the cue is the evidence. Behind a firm tie a value need not look like a secret; it must not look like one of the
things in SPARED.
"""

import re
from enum import Enum
from typing import NamedTuple

from kept.text import compiled
from kept.writing.secrets import looks, rules
from kept.writing.secrets.looks import MIXED, NOTHING, OPAQUE

SHORTEST = 4  # characters of a secret; below, there are more words than secrets
LOOK = 64  # how much of a value is looked at to judge it
NAME_LENGTH = 3  # letters of a word in an identifier, on average; cases mixed at random change sooner
LONG = 16  # letters; a name of mixed case (`PostgreSQL`) is shorter
LINE = 160  # how much of the line before a cue is looked at


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
    TOLD = "the password Mara gave me is value, the password changed from value to value"
    DISTANT = "the key in the notes: value, behind a weak cue"
    LOOSE = "password value, set the password to value, value as password"


LOOSE_TIES = (Tie.ARGUMENT, Tie.LOOSE, Tie.TOLD)
PASSWORDS = ("password", "pass")
GUESSED = ("credentials", "pin")  # families whose values may be a user's name or a mode: the value must look secret


class Value(NamedTuple):
    """The place of a value, and whether quotes or the like delimit it."""

    start: int
    end: int
    quoted: bool


class CuedValue(NamedTuple):
    """A value that may be the secret of its cue, with its surroundings."""

    text: str
    cue: Cue
    value: Value
    tie: Tie
    content: str

    @property
    def is_password(self) -> bool:
        return self.cue.family in PASSWORDS

    @property
    def is_delimited(self) -> bool:
        return self.value.quoted or self.tie is Tie.LITERAL

    @property
    def is_option(self) -> bool:
        """`--password value`, `DB_PASSWORD=value`: no variable and no type can be here."""
        is_header = self.cue.name.lower().startswith(("-", "x-"))
        return is_header or (self.tie is Tie.LITERAL and looks.is_constant(self.cue.name))

    @property
    def link(self) -> str:
        """The text between the cue and the value."""
        return self.text[self.cue.end : min(self.value.start, self.cue.end + LINE)].lower()

    @property
    def is_signed(self) -> bool:
        return self.link.rstrip(" \t\n\"'`*")[-1:] in (":", "=")

    @property
    def is_foreign(self) -> bool:
        """Is the cue a word of another language than English?"""
        return not any(word in self.cue.name.lower() for word in rules.ENGLISH_CUES)

    @property
    def line_before(self) -> str:
        return self.text[max(0, self.cue.start - LINE) : self.cue.start].rpartition("\n")[2]


def is_secret(text: str, cue: Cue, value: Value, tie: Tie) -> bool:
    """Is this value of the text the secret that the cue announces?"""
    content = text[value.start : value.end].strip("\"'`")
    if len(content) < SHORTEST or content.lower() == cue.name.lower():
        return False
    found = CuedValue(text, cue, value, tie, content)
    if " " in content:
        return _is_phrase(found)
    if content.isdigit():
        return _is_secret_number(found)
    if _is_no_value(found):
        return False
    if cue.is_weak or tie is Tie.DISTANT:
        return _is_random(found)
    if _is_guess(found):
        return _looks_secret(found)
    return not any(is_it(found) for is_it in SPARED)


def _is_no_value(found: CuedValue) -> bool:
    """A stand-in, a measure, a path or a call, or the word for a secret itself."""
    content, quoted = found.content[:LOOK], found.value.quoted
    if content.isalpha() and (looks.is_cue(content) or (not quoted and looks.is_plain(content))):
        return True
    return looks.is_stand_in(content) or looks.is_something_else(content, quoted=quoted) or _is_named(found)


def _is_named(found: CuedValue) -> bool:
    """The name of a secret (`app-db-credentials`), the key of a cache (`cache:user:42`), or a design token."""
    content, family = found.content, found.cue.family
    parts = re.split("[:._-]", content)
    if len(parts) == 1:
        return False
    if all(part.isalpha() for part in parts) and parts[-1].lower() in rules.SECRET_NOUNS:
        return len(parts) < 5
    if family in ("key", "token") and compiled(r"[\w*{}<>-]++(?::[\w*{}<>-]++)++$").match(content):
        return all(len(part) < 6 or part.isdigit() or looks.is_spoken(part) for part in parts)
    is_design = family == "token" and compiled(r"-{0,2}+[a-z]++(?:[-._][a-z0-9]{1,12}+)++$").match(content) is not None
    return is_design and not rules.DESIGN_WORDS.isdisjoint(parts)


# ---- values that must look like a secret ----


def _is_guess(found: CuedValue) -> bool:
    """A loose tie, or a cue with other meanings: `PASS: test_login`, `auth: basic`."""
    is_string = found.value.quoted and found.text[found.value.start - 1] in "\"'" and not found.cue.name.isupper()
    is_ambiguous = found.cue.family == "pass" and not is_string
    return found.tie in LOOSE_TIES or found.cue.family in GUESSED or (is_ambiguous and found.tie is not Tie.LITERAL)


def _is_random(found: CuedValue) -> bool:
    """Behind a weak cue only a long random value counts, and a hash behind `key` or far away is a hash."""
    may_be_hash = found.cue.family != "key" and found.tie is not Tie.DISTANT
    is_long = len(found.content) >= 12 and _grade(found) == OPAQUE
    return is_long and (may_be_hash or not looks.is_hash(found.content)) and not _is_bare_name(found)


def _grade(found: CuedValue) -> int:
    bare = found.content.rstrip("!?")  # "is the secret exposed?" ends a sentence, "hunter2!" a password
    content = bare if bare.isalpha() and not found.is_delimited else found.content
    return looks.grade(content[:LOOK], quoted=found.value.quoted)


def _is_bare_name(found: CuedValue) -> bool:
    return looks.is_name(found.content) and (not found.is_delimited or found.tie is Tie.ARGUMENT)


def _looks_secret(found: CuedValue) -> bool:
    """Judge a value behind a loose tie, or behind a cue that may announce something else."""
    level = _grade(found)
    if level == NOTHING or _is_bare_name(found) or _is_test_result(found):
        return False
    if found.cue.family == "pin":
        is_firm = found.tie not in LOOSE_TIES
        return level >= (MIXED if is_firm else OPAQUE) and len(found.content) >= (6 if is_firm else 8)
    if found.is_password:
        return level == OPAQUE or (_is_mixed_password if level == MIXED else _is_worded_password)(found)
    if level == OPAQUE:
        return len(found.content) >= (12 if found.tie is Tie.LOOSE else 8)
    return _is_mixed_token(found) if level == MIXED else _is_long_jumble(found)


def _is_long_jumble(found: CuedValue) -> bool:
    """Letters of both cases that make no words, told in a sentence."""
    is_jumble = found.content.isalpha() and not looks.is_spoken(found.content)
    return found.tie is Tie.TOLD and len(found.content) >= LONG and is_jumble


def _is_mixed_token(found: CuedValue) -> bool:
    if found.tie is Tie.ARGUMENT or (found.tie is Tie.LOOSE and not found.value.quoted):
        return False
    if found.tie is Tie.ASSIGNED and not found.value.quoted and not found.content[0].isdigit():
        return False  # `auth = lexer2` is code
    return len(found.content) >= 8 and not looks.is_numbered_name(found.content)


def _is_mixed_password(found: CuedValue) -> bool:
    if found.is_delimited:
        return True
    if found.cue.family == "pass" and compiled("[_.]").search(found.content):
        return False  # `pass: test_login_2`
    is_variable = looks.is_numbered_name(found.content) and looks.is_plain(found.content.rstrip("0123456789"))
    return (
        "=" not in found.content
        and not is_variable
        and len(found.content) >= (6 if found.tie in (Tie.LOOSE, Tie.TOLD) else 4)
    )


def _is_worded_password(found: CuedValue) -> bool:
    """`password correct-horse-battery-staple`, `#define WIFI_PASSWORD "swordfish"`, `setPassword("swordfish")`."""
    parts = looks.word_parts(found.content)
    if found.content.isalpha() and not found.value.quoted:
        is_word = looks.is_spoken(found.content) or looks.is_name(found.content) or found.content.isupper()
        return len(found.content) >= 8 and not is_word
    is_phrase = len(parts) > 2 and not _is_compound(parts) and "." not in found.content
    if is_phrase or not found.value.quoted:
        return is_phrase and (len(parts) > 3 or not any(map(looks.is_plain, parts)))
    return looks.is_constant(found.cue.name) and not any(map(looks.is_plain, parts))


def _is_test_result(found: CuedValue) -> bool:
    """`PASS: tests/test_login.py::test_2`, `PASS: test_login_2`."""
    if found.cue.family != "pass" or found.tie is Tie.LITERAL or not found.cue.name.isupper():
        return False
    return not found.value.quoted or compiled(r"[/\\]|::").search(found.content) is not None


def _is_secret_number(found: CuedValue) -> bool:
    digits, tie = len(found.content), found.tie
    if len(set(found.content)) < 3:
        return False
    if found.cue.family == "pin":
        return 4 <= digits <= 8 and tie is not Tie.LOOSE
    if not found.is_password:
        return digits >= 16 and found.is_delimited and not found.cue.is_weak
    if tie in LOOSE_TIES and not looks.is_constant(found.cue.name):
        return digits >= 8
    is_told = tie is Tie.STATED and compiled(CLAUSE_END).match(found.text, found.value.end) is not None
    return digits >= (4 if found.is_delimited or (is_told and not found.cue.name.endswith("s")) else 6)


# ---- phrases: quoted, with blanks ----


def _is_phrase(found: CuedValue) -> bool:
    """A passphrase, and not a sentence about one. Only an option or a constant gives its phrase to every family."""
    if not found.value.quoted or found.cue.is_weak or found.tie is Tie.DISTANT:
        return False
    if found.cue.family not in ("password", "secret") and not found.is_option:
        return False
    if looks.is_stand_in(found.content[:LOOK]):
        return False
    if found.tie in LOOSE_TIES or (not found.is_option and not found.is_password):
        return looks.is_passphrase(found.content)
    return not _is_sentence(found)


def _is_sentence(found: CuedValue) -> bool:
    words = [word.strip(".,!?:;'\"()").lower() for word in found.content.split()]
    if len(words) > 24 or not rules.ABOUT_WORDS.isdisjoint(words) or any(map(looks.is_cue, words)):
        return True
    if all(word in rules.FUNCTION_WORDS or (len(word) > 3 and looks.is_plain(word)) for word in words):
        return True
    functions = sum(word in rules.FUNCTION_WORDS for word in words)
    is_code = compiled(r"[(){}<>=%]|[0-9][0-9]:[0-9][0-9]|://").search(found.content)
    return not found.is_option and (3 * functions >= 2 * len(words) or is_code is not None)


# ---- what is spared behind an explicit cue and a firm tie ----


def _is_type(found: CuedValue) -> bool:
    """`password: SecretStr`, `token: AccessToken`, `key: rsa.RSAPrivateKey`."""
    if found.value.quoted or found.is_option or not compiled(r"[A-Za-z_][\w.]*+$").match(found.content):
        return False
    module, _, name = found.content.rpartition(".")
    words = looks.humps(name)
    return bool(words) and words[-1] in rules.TYPE_WORDS and (name.isalpha() or module != "")


VARIABLE = r"[&*!$]?[A-Za-z_][\w$]*+(?:(?:\.|::|->|\?\.)[A-Za-z_][\w$]*+)*+[;,)]*+$"


def _is_variable(found: CuedValue) -> bool:
    """`token = lexeme`, `login(password=candidate)`, `secret: clientSecret`, `the token is in API_TOKEN`."""
    content = found.content
    if found.value.quoted or not compiled(VARIABLE).match(content):
        return False
    names = looks.humps(content)
    if not names or not _are_names(names, found):
        return False
    if looks.is_constant(content) or any(_names_secret(name) for name in (names[0], names[-1])):
        return len(names) > 1
    if found.is_option:
        return False
    is_attribute = "." in content and (len(names) == 2 or compiled("[A-Z_]").search(content) is not None)
    return is_attribute or compiled("[a-z]++_[a-z]++$").match(content) is not None or _is_in_code(found)


def _names_secret(name: str) -> bool:
    """`clientSecret`, `db_password`: the first or last word of a variable for a secret."""
    return len(name) > 2 and (name in rules.FILLER_WORDS or looks.is_cue(name))


def _are_names(names: list[str], found: CuedValue) -> bool:
    """Words of an identifier, the last perhaps with a number; `hunter2` behind a password is no variable."""
    if names[-1].isdigit():
        if len(names[-1]) > 2 or (found.is_password and not looks.is_plain("".join(names[:-1]))):
            return False
        names = names[:-1]
    if not names or not all(name.isalpha() for name in names):
        return False
    is_readable = sum(map(len, names)) >= NAME_LENGTH * len(names)
    return all(map(looks.is_listed, names)) or (is_readable and all(len(n) < 4 or looks.is_spoken(n) for n in names))


def _is_in_code(found: CuedValue) -> bool:
    """Is the value where code has a variable: an argument, an item between braces, the right side of `x = y`?"""
    if compiled(OPEN_CALL).search(found.line_before) or "==" in found.link or "!=" in found.link:
        return True
    if found.tie is Tie.LITERAL:
        return compiled(r"[ \t]{0,2}+[,)]").match(found.text, found.value.end) is not None
    before = (found.line_before.split() or [""])[-1].lower()
    if before in rules.DECLARATORS:
        return True
    if found.tie is not Tie.ASSIGNED or (before.strip("-*#>").isalpha() and before not in rules.MORE_DECLARATORS):
        return False  # prose: "shared secret = SilverFox"
    return not found.is_foreign and (before != "" or not _is_setting(found))


OPEN_CALL = r"(?:[\[{]|(?<=\w)\()[^()\[\]{}]*+$"


def _is_setting(found: CuedValue) -> bool:
    """`password = swordfish` alone on its line: an ini file."""
    is_alone = compiled(r"[ \t]{0,8}+(?:$|[\r\n])").match(found.text, found.value.end) is not None
    is_word = found.is_password and found.content.isalpha() and found.content[1:].islower()
    return is_alone and (is_word or found.content[0].isupper() or looks.is_constant(found.cue.name))


def _is_prose(found: CuedValue) -> bool:
    """A word that says something about the secret: `required`, `case-sensitive`, `end-to-end`."""
    parts = looks.word_parts(found.content.strip("()?" if found.is_signed else "()?!"))
    if not parts or not all(part.isalpha() for part in parts):
        return False
    if found.is_delimited:
        return all(map(looks.is_listed, parts)) or (len(parts) == 1 and _is_in_manual(found, parts[0]))
    if len(parts) == 1:
        return _is_prose_word(found, parts[0])
    return _is_compound(parts) and (not compiled("[_.]").search(found.content) or all(map(looks.is_listed, parts)))


def _is_in_manual(found: CuedValue, word: str) -> bool:
    """`--token overrides the file`: an option that is spoken about."""
    if looks.is_plain(word):
        return True
    after = compiled(r"[ \t]([a-z]{1,8}+)[ \t]").match(found.text, found.value.end)
    is_object = after is not None and after.group(1) in rules.FUNCTION_WORDS | rules.DETERMINERS
    return is_object and not found.value.quoted and found.cue.name.startswith("-") and looks.is_spoken(word)


def _is_compound(parts: list[str]) -> bool:
    """`read-only`, `short-lived`, `out-of-band`; a passphrase has few words that say something."""
    listed = sum(map(looks.is_listed, parts))
    functions = sum(part.lower() in rules.FUNCTION_WORDS for part in parts)
    if len(parts) == 2:
        return listed > 0 or looks.is_plain(parts[1])
    if len(parts) == 3:
        return listed > 1 or parts[1].lower() in rules.FUNCTION_WORDS
    return listed == len(parts) or 2 * functions >= len(parts)


def _is_prose_word(found: CuedValue, word: str) -> bool:
    """One word, not delimited. Letters that make no word are a secret; so is the word that ends "the password is"."""
    if looks.is_plain(word) or _is_foreign_state(found, word) or not word.isascii():
        return True
    if not looks.is_spoken(word):
        return len(word) < 6 and not found.is_password  # an acronym
    is_told = found.cue.family == "secret" and found.is_signed and found.tie is not Tie.APART
    if not found.is_password and not is_told:
        return True
    return len(word) + found.is_signed <= SHORTEST or compiled(CLAUSE_END).match(found.text, found.value.end) is None


CLAUSE_END = (
    r"[.,;:!]?(?:\s{0,4}+$|[ \t]{0,4}+[\r\n]|[ \t]{1,2}+(?:\(|-|(?:and|for|on|but|btw|now|as|this|from|und|et|y|e)\b)"
    r"|[.,;!][ \t]|[\"')&]|[ \t]{0,2}+(?:[^\x00-\x7f]|[:;]-?[()DP]))"
)


def _is_foreign_state(found: CuedValue, word: str) -> bool:
    """`das Passwort ist abgelaufen`, `la password è scaduta`."""
    is_foreign = found.is_foreign or not rules.FOREIGN_LINKS.isdisjoint(found.link.split())
    return is_foreign and word.lower().endswith(rules.FOREIGN_ENDINGS) and looks.is_spoken(word)


def _is_metavariable(found: CuedValue) -> bool:
    """`--token TEXT`: the name that a manual gives to the value of an option."""
    is_bare = found.is_option and not found.value.quoted and len(found.content) < 9
    return is_bare and found.content.isupper() and looks.is_spoken(found.content)


SPARED = (_is_type, _is_variable, _is_prose, _is_metavariable)
