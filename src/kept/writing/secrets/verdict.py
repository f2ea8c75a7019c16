"""Decide if a value is the secret that its cue announces.

Redaction asks `is_secret` about every value behind a cue. `cues` finds the value; `looks` describes a string alone.

VERDICTS is the decision: an ordered table, where the first row that applies to the value gives the verdict. A value
that no row applies to is a secret.

    a stand-in, a number that counts, a path, a call?      no
    a weak cue, or a loose tie?                            only if the value looks like a secret
    a type, a variable, prose, the name of something?      no
    anything else behind an explicit cue                   yes

Rule: the cue is the evidence. Behind a firm tie a value need not look like a secret; it must not look like anything
else in the table.
"""

import re
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from kept.text import compiled
from kept.writing.secrets import looks, rules
from kept.writing.secrets.looks import MIXED, NOTHING, OPAQUE, WORD

SHORTEST = 4  # characters of a secret; below, there are more words than secrets
LOOK = 64  # how much of a value is looked at to judge it
NAME_LENGTH = 3  # letters of a word in an identifier, on average; cases mixed at random change sooner
LONG = 16  # letters; a name of mixed case (`PostgreSQL`) is shorter
LINE = 160  # how much of the line before a cue is looked at
SENTENCE_WORDS = 24  # a passphrase has fewer


class Cue(NamedTuple):
    """A word that announces a secret, with its identifier."""

    family: str
    start: int  # of the identifier
    end: int
    name: str  # the identifier
    is_weak: bool  # the identifier may name something else
    next_start: int  # of the next cue


class Tie(Enum):
    """The connection between a value and its cue, from the firmest."""

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
        """Return True for `--password value` and `DB_PASSWORD=value`, where no variable and no type can be."""
        is_header = self.cue.name.lower().startswith(("-", "x-"))
        return is_header or (self.tie is Tie.LITERAL and looks.is_constant(self.cue.name))

    @property
    def link(self) -> str:
        """Return the text between the cue and the value."""
        return self.text[self.cue.end : min(self.value.start, self.cue.end + LINE)].lower()

    @property
    def is_signed(self) -> bool:
        return self.link.rstrip(" \t\n\"'`*")[-1:] in (":", "=")

    @property
    def is_foreign(self) -> bool:
        """Return True if the cue is a word of another language than English."""
        return not any(word in self.cue.name.lower() for word in rules.ENGLISH_CUES)

    @property
    def line_before(self) -> str:
        return self.text[max(0, self.cue.start - LINE) : self.cue.start].rpartition("\n")[2]

    @property
    def ends_clause(self) -> bool:
        """Return True if nothing more is said after the value: "the password is swordfish."."""
        return compiled(CLAUSE_END).match(self.text, self.value.end) is not None


CLAUSE_END = (
    r"[.,;:!]?(?:\s{0,4}+$|[ \t]{0,4}+[\r\n]|[ \t]{1,2}+(?:\(|-|(?:and|for|on|but|btw|now|as|this|from|und|et|y|e)\b)"
    r"|[.,;!][ \t]|[\"')&]|[ \t]{0,2}+(?:[^\x00-\x7f]|[:;]-?[()DP]))"
)

Test = Callable[[CuedValue], bool]


def is_secret(text: str, cue: Cue, value: Value, tie: Tie) -> bool:
    """Return True if this value of the text is the secret that the cue announces: the first row of VERDICTS decides."""
    found = CuedValue(text, cue, value, tie, text[value.start : value.end].strip("\"'`"))
    for _, applies, verdict in VERDICTS:
        if applies(found):
            return verdict(found)
    return True


def _no(found: CuedValue) -> bool:
    return False


def _yes(found: CuedValue) -> bool:
    return True


# ---- things that are never a secret ----


def _is_too_short(found: CuedValue) -> bool:
    return len(found.content) < SHORTEST


def _repeats_cue(found: CuedValue) -> bool:
    return found.content.lower() == found.cue.name.lower()


def _is_word_for_secret(found: CuedValue) -> bool:
    """Match the `Passwort` of `"password": "Passwort"`, and plain words: "the token is required"."""
    content = found.content[:LOOK]
    if not content.isalpha():
        return False
    return looks.is_cue(content) or (not found.value.quoted and looks.is_plain(content))


def _is_stand_in(found: CuedValue) -> bool:
    return looks.is_stand_in(found.content[:LOOK])


def _is_something_else(found: CuedValue) -> bool:
    return looks.is_something_else(found.content[:LOOK], quoted=found.value.quoted)


def _is_reference(found: CuedValue) -> bool:
    """Match the name of a secret (`app-db-credentials`), the key of a cache (`cache:user:42`), and a design token."""
    parts = re.split("[:._-]", found.content)
    if len(parts) == 1:
        return False
    if parts[-1].lower() in rules.SECRET_NOUNS and all(part.isalpha() for part in parts):
        return len(parts) < 5
    if _is_cache_key(found):
        return all(len(part) < 6 or part.isdigit() or looks.is_spoken(part) for part in parts)
    return _is_design_token(found, parts)


def _is_cache_key(found: CuedValue) -> bool:
    is_key = found.cue.family in ("key", "token")
    return is_key and compiled(r"[\w*{}<>-]++(?::[\w*{}<>-]++)++$").match(found.content) is not None


def _is_design_token(found: CuedValue, parts: list[str]) -> bool:
    """Match `color-primary-500` and `--font.size.lg`."""
    if found.cue.family != "token" or rules.DESIGN_WORDS.isdisjoint(parts):
        return False
    return compiled(r"-{0,2}+[a-z]++(?:[-._][a-z0-9]{1,12}+)++$").match(found.content) is not None


# ---- values that must look like a secret ----


def _is_doubtful(found: CuedValue) -> bool:
    return found.cue.is_weak or found.tie is Tie.DISTANT


def _is_long_and_random(found: CuedValue) -> bool:
    """Match a long random value. A hash behind `key`, or far from its cue, is only a hash."""
    if len(found.content) < 12 or _grade(found) != OPAQUE or _is_bare_name(found):
        return False
    may_be_hash = found.cue.family != "key" and found.tie is not Tie.DISTANT
    return may_be_hash or not looks.is_hash(found.content)


def _is_guess(found: CuedValue) -> bool:
    """Match a loose tie, and a cue with other meanings: `PASS: test_login`, `auth: basic`."""
    return found.tie in LOOSE_TIES or found.cue.family in GUESSED or _is_ambiguous_pass(found)


def _is_ambiguous_pass(found: CuedValue) -> bool:
    """Match the cue `pass` in any form but `pass=value` and `pass: "value"`."""
    if found.cue.family != "pass" or found.tie is Tie.LITERAL:
        return False
    is_string = found.value.quoted and found.text[found.value.start - 1] in "\"'"
    return not is_string or found.cue.name.isupper()


def _grade(found: CuedValue) -> int:
    bare = found.content.rstrip("!?")  # "is the secret exposed?" ends a sentence, "hunter2!" a password
    content = bare if bare.isalpha() and not found.is_delimited else found.content
    return looks.grade(content[:LOOK], quoted=found.value.quoted)


def _is_bare_name(found: CuedValue) -> bool:
    return looks.is_name(found.content) and (not found.is_delimited or found.tie is Tie.ARGUMENT)


def _looks_secret(found: CuedValue) -> bool:
    """Judge a value behind a loose tie, or behind a cue that may announce something else, by its look."""
    level = _grade(found)
    if level == NOTHING or _is_bare_name(found) or _is_test_result(found):
        return False
    if found.cue.family == "pin":
        return _is_pin(found, level)
    return (PASSWORD_BY_LOOK if found.is_password else TOKEN_BY_LOOK)[level](found)


def _is_test_result(found: CuedValue) -> bool:
    """Match `PASS: tests/test_login.py::test_2` and `PASS: test_login_2`."""
    if found.cue.family != "pass" or found.tie is Tie.LITERAL or not found.cue.name.isupper():
        return False
    return not found.value.quoted or compiled(r"[/\\]|::").search(found.content) is not None


def _is_pin(found: CuedValue, level: int) -> bool:
    least, shortest = (OPAQUE, 8) if found.tie in LOOSE_TIES else (MIXED, 6)
    return level >= least and len(found.content) >= shortest


def _is_opaque_token(found: CuedValue) -> bool:
    return len(found.content) >= (12 if found.tie is Tie.LOOSE else 8)


def _is_long_jumble(found: CuedValue) -> bool:
    """Match many letters that make no word, told in a sentence."""
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
    if "=" in found.content or len(found.content) < (6 if found.tie in (Tie.LOOSE, Tie.TOLD) else 4):
        return False
    is_variable = looks.is_numbered_name(found.content) and looks.is_plain(found.content.rstrip("0123456789"))
    return not is_variable


def _is_worded_password(found: CuedValue) -> bool:
    """Match `password correct-horse-battery-staple` and `#define WIFI_PASSWORD "swordfish"`."""
    if found.content.isalpha() and not found.value.quoted:
        return len(found.content) >= 8 and not _is_word_or_name(found.content)
    parts = looks.word_parts(found.content)
    if len(parts) > 2 and not _is_compound(parts) and "." not in found.content:
        return len(parts) > 3 or not any(map(looks.is_plain, parts))
    return found.value.quoted and looks.is_constant(found.cue.name) and not any(map(looks.is_plain, parts))


def _is_word_or_name(letters: str) -> bool:
    return looks.is_spoken(letters) or looks.is_name(letters) or letters.isupper()


# The last test of a value that must look like a secret, by its grade.
PASSWORD_BY_LOOK: dict[int, Test] = {OPAQUE: _yes, MIXED: _is_mixed_password, WORD: _is_worded_password}
TOKEN_BY_LOOK: dict[int, Test] = {OPAQUE: _is_opaque_token, MIXED: _is_mixed_token, WORD: _is_long_jumble}


# ---- numbers ----


def _is_number(found: CuedValue) -> bool:
    return found.content.isdigit()


def _is_secret_number(found: CuedValue) -> bool:
    digits = len(found.content)
    if len(set(found.content)) < 3:
        return False
    if found.cue.family == "pin":
        return digits <= 8 and found.tie is not Tie.LOOSE
    if found.is_password:
        return digits >= _fewest_digits(found)
    return digits >= 16 and found.is_delimited and not found.cue.is_weak


def _fewest_digits(found: CuedValue) -> int:
    """Return the length from which a number is a password."""
    if found.tie in LOOSE_TIES and not looks.is_constant(found.cue.name):
        return 8
    if found.is_delimited:
        return 4
    is_told = found.tie is Tie.STATED and not found.cue.name.endswith("s") and found.ends_clause
    return 4 if is_told else 6


# ---- phrases: quoted, with blanks ----


def _has_blanks(found: CuedValue) -> bool:
    return " " in found.content


def _is_passphrase(found: CuedValue) -> bool:
    """Match a passphrase, not a sentence about one. Behind a cue that is no password it must belong to an option."""
    if not found.value.quoted or _is_doubtful(found):
        return False
    if found.cue.family not in ("password", "secret") and not found.is_option:
        return False
    if _is_stand_in(found):
        return False
    if found.tie in LOOSE_TIES or (not found.is_option and not found.is_password):
        return looks.is_passphrase(found.content)
    return not _is_sentence(found)


def _is_sentence(found: CuedValue) -> bool:
    words = [word.strip(".,!?:;'\"()").lower() for word in found.content.split()]
    if len(words) > SENTENCE_WORDS or _are_about_secrets(words) or all(map(_is_filler, words)):
        return True
    if found.is_option:
        return False
    functions = sum(word in rules.FUNCTION_WORDS for word in words)
    is_code = compiled(r"[(){}<>=%]|[0-9][0-9]:[0-9][0-9]|://").search(found.content)
    return 3 * functions >= 2 * len(words) or is_code is not None


def _are_about_secrets(words: list[str]) -> bool:
    return not rules.ABOUT_WORDS.isdisjoint(words) or any(map(looks.is_cue, words))


def _is_filler(word: str) -> bool:
    return word in rules.FUNCTION_WORDS or (len(word) > 3 and looks.is_plain(word))


# ---- types and variables ----


def _is_type(found: CuedValue) -> bool:
    """Match `password: SecretStr`, `token: AccessToken` and `key: rsa.RSAPrivateKey`."""
    if found.value.quoted or found.is_option or not compiled(r"[A-Za-z_][\w.]*+$").match(found.content):
        return False
    module, _, name = found.content.rpartition(".")
    words = looks.humps(name)
    return bool(words) and words[-1] in rules.TYPE_WORDS and (name.isalpha() or module != "")


VARIABLE = r"[&*!$]?[A-Za-z_][\w$]*+(?:(?:\.|::|->|\?\.)[A-Za-z_][\w$]*+)*+[;,)]*+$"


def _is_variable(found: CuedValue) -> bool:
    """Match `token = lexeme`, `login(password=candidate)`, `secret: clientSecret` and "the token is in API_TOKEN"."""
    if found.value.quoted or not compiled(VARIABLE).match(found.content):
        return False
    names = looks.humps(found.content)
    if not names or not _are_names(names, found):
        return False
    if looks.is_constant(found.content) or _names_secret(names[0]) or _names_secret(names[-1]):
        return len(names) > 1
    return not found.is_option and (_is_written_as_variable(found.content, names) or _is_in_code(found))


def _names_secret(name: str) -> bool:
    """Match the first or last word of a variable for a secret: `clientSecret`, `db_password`."""
    return len(name) > 2 and (name in rules.FILLER_WORDS or looks.is_cue(name))


def _are_names(names: list[str], found: CuedValue) -> bool:
    """Match words of an identifier, perhaps with a number at the end; `hunter2` behind a password is no variable."""
    if names[-1].isdigit():
        if len(names[-1]) > 2 or (found.is_password and not looks.is_plain("".join(names[:-1]))):
            return False
        names = names[:-1]
    if not names or not all(map(str.isalpha, names)):
        return False
    return all(map(looks.is_listed, names)) or _are_readable(names)


def _are_readable(names: list[str]) -> bool:
    is_long_enough = sum(map(len, names)) >= NAME_LENGTH * len(names)
    return is_long_enough and all(len(name) < 4 or looks.is_spoken(name) for name in names)


def _is_written_as_variable(content: str, names: list[str]) -> bool:
    """Match `user.password`, `config.dbPassword` and `next_lexeme`."""
    is_attribute = "." in content and (len(names) == 2 or compiled("[A-Z_]").search(content) is not None)
    return is_attribute or compiled("[a-z]++_[a-z]++$").match(content) is not None


OPEN_CALL = r"(?:[\[{]|(?<=\w)\()[^()\[\]{}]*+$"


def _is_in_code(found: CuedValue) -> bool:
    """Match a value where code has a variable: an argument, an item between braces, the right side of `x = y`."""
    if _is_in_expression(found):
        return True
    if found.tie is Tie.LITERAL:
        return compiled(r"[ \t]{0,2}+[,)]").match(found.text, found.value.end) is not None
    before = (found.line_before.split() or [""])[-1].lower()
    if before in rules.DECLARATORS:
        return True
    if found.tie is not Tie.ASSIGNED or _is_prose_before(before):
        return False
    return not found.is_foreign and (before != "" or not _is_setting(found))


def _is_in_expression(found: CuedValue) -> bool:
    """Match `login(user, password=candidate` and `token == lexeme`."""
    return compiled(OPEN_CALL).search(found.line_before) is not None or "==" in found.link or "!=" in found.link


def _is_prose_before(word: str) -> bool:
    """Match the `shared` of "shared secret = SilverFox"."""
    return word.strip("-*#>").isalpha() and word not in rules.MORE_DECLARATORS


def _is_setting(found: CuedValue) -> bool:
    """Match `password = swordfish` alone on its line, as in an ini file."""
    is_alone = compiled(r"[ \t]{0,8}+(?:$|[\r\n])").match(found.text, found.value.end) is not None
    is_word = found.is_password and found.content.isalpha() and found.content[1:].islower()
    return is_alone and (is_word or found.content[0].isupper() or looks.is_constant(found.cue.name))


# ---- prose ----


def _is_prose(found: CuedValue) -> bool:
    """Match a word that describes the secret: `required`, `case-sensitive`, `end-to-end`."""
    parts = looks.word_parts(found.content.strip("()?" if found.is_signed else "()?!"))
    if not parts or not all(map(str.isalpha, parts)):
        return False
    if found.is_delimited:
        return all(map(looks.is_listed, parts)) or (len(parts) == 1 and _is_in_manual(found, parts[0]))
    if len(parts) == 1:
        return _is_prose_word(found, parts[0])
    return _is_compound(parts) and (not compiled("[_.]").search(found.content) or all(map(looks.is_listed, parts)))


def _is_in_manual(found: CuedValue, word: str) -> bool:
    """Match the `overrides` of "`--token` overrides the file", a sentence about an option."""
    if looks.is_plain(word):
        return True
    if found.value.quoted or not found.cue.name.startswith("-"):
        return False
    after = compiled(r"[ \t]([a-z]{1,8}+)[ \t]").match(found.text, found.value.end)
    return after is not None and _begins_object(after.group(1)) and looks.is_spoken(word)


def _begins_object(word: str) -> bool:
    return word in rules.FUNCTION_WORDS or word in rules.DETERMINERS


def _is_compound(parts: list[str]) -> bool:
    """Match `read-only`, `short-lived` and `out-of-band`; a passphrase has few listed words."""
    listed = sum(map(looks.is_listed, parts))
    if len(parts) == 2:
        return listed > 0 or looks.is_plain(parts[1])
    if len(parts) == 3:
        return listed > 1 or parts[1].lower() in rules.FUNCTION_WORDS
    functions = sum(part.lower() in rules.FUNCTION_WORDS for part in parts)
    return listed == len(parts) or 2 * functions >= len(parts)


def _is_prose_word(found: CuedValue, word: str) -> bool:
    """Match one bare word of prose. Letters that make no word are a secret; so is a word after "the password is"."""
    if looks.is_plain(word) or _is_foreign_state(found, word) or not word.isascii():
        return True
    if not looks.is_spoken(word):
        return len(word) < 6 and not found.is_password  # an acronym
    if not found.is_password and not _is_told_secret(found):
        return True
    return len(word) + found.is_signed <= SHORTEST or not found.ends_clause


def _is_told_secret(found: CuedValue) -> bool:
    return found.cue.family == "secret" and found.is_signed and found.tie is not Tie.APART


def _is_foreign_state(found: CuedValue, word: str) -> bool:
    """Match "das Passwort ist abgelaufen" and "la password è scaduta"."""
    is_foreign = found.is_foreign or not rules.FOREIGN_LINKS.isdisjoint(found.link.split())
    return is_foreign and word.lower().endswith(rules.FOREIGN_ENDINGS) and looks.is_spoken(word)


def _is_metavariable(found: CuedValue) -> bool:
    """Match the `TEXT` of `--token TEXT`: a manual names the value of an option so."""
    is_bare = found.is_option and not found.value.quoted and len(found.content) < 9
    return is_bare and found.content.isupper() and looks.is_spoken(found.content)


# The decision. The first row whose test holds gives the verdict; the rows below it are not asked.
VERDICTS: tuple[tuple[str, Test, Test], ...] = (
    ("shorter than any secret", _is_too_short, _no),
    ("the cue once more", _repeats_cue, _no),
    ("several words", _has_blanks, _is_passphrase),
    ("only digits", _is_number, _is_secret_number),
    ("a word for a secret", _is_word_for_secret, _no),
    ("a stand-in", _is_stand_in, _no),
    ("a measure, a term, a path or a call", _is_something_else, _no),
    ("the name of a secret, a cache key, a design token", _is_reference, _no),
    ("a weak cue, or far away", _is_doubtful, _is_long_and_random),
    ("a loose tie, or an ambiguous cue", _is_guess, _looks_secret),
    ("a type", _is_type, _no),
    ("a variable", _is_variable, _no),
    ("prose", _is_prose, _no),
    ("the name of an option's value", _is_metavariable, _no),
)
