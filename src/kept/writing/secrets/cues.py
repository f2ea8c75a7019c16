"""Find secrets by their surroundings: a cue word, a tie, and a value.

    the db password is hunter2hunter      DB_PASSWORD=…      "apiKey": "…"      --token …      <password>…</password>

The finder of redaction that reads prose. A cue (`password`, `API_KEY`, `Kennwort`) counts only if its identifier still
names a secret: `DB_PASSWORD`, not `password_policy`. Of two cues side by side the last one counts (`secret key`), so
that a value belongs to the nearest. FORMS lists the ways to tie a value to a cue; the first that leads to a secret
counts. `verdict` decides which values are secrets.

Rule: every pattern is anchored at a cue and of bounded length, so each cue costs about the same, whatever follows it.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain, count, pairwise
from typing import NamedTuple

from kept.text import compiled
from kept.writing.secrets import MASK, Span, fold, rules
from kept.writing.secrets.looks import is_opaque, is_passphrase
from kept.writing.secrets.verdict import CLAUSE_END, Cue, Tie, Value, is_secret

KINDS = {"pass": "password", "key": "api-key"}  # the family of the cue is the kind, but for these
GAP = 160  # how far a value may be from its cue in a sentence
TRIES = 4  # how many links of one sentence are followed
CROWDED = 32  # a long text with more than one cue in that many characters is redacted as a whole
BEFORE_CUES = ("is", "as", "ist", "als", "est", "comme", "es", "como", "come")  # "use value *as* the password"
ROWS = 500  # how many rows of a table are read below its heading
# A command checks one query and ends. Compiling the pattern of all cues takes 4 ms; of those that the query holds, 0.1.
SHORT_TEXT = 200  # characters
FIRST_TEXTS = 8
_texts = count()  # short texts that this process has checked
MORE_PIECES = rf"(?:{rules.QUOTES_JOINED}[^\s\"'`]{{1,200}}+(?=[\"'`])){{1,8}}+"
IDENTIFIER = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
AFTER_CUES = " \t\n\r\"'`*)]<>(,{?"  # characters between a cue and its value, apart from signs that assign
QUOTES = ("'", '"', "`")


def find_cued_secrets(folded: str, small: str) -> Iterator[Span]:
    """Find values after a cue, and cells below one."""
    resume = table_end = 0
    allowance = len(folded) // CROWDED + folded.count(MASK) + 1000
    for cue in find_cues(folded, small):
        allowance -= 1
        if allowance < 0:
            raise ValueError("a text that is made of cue words cannot be checked in linear time")
        if cue.start < resume and cue.end <= resume:
            continue
        kind = KINDS.get(cue.family, cue.family)
        value = _value(folded, small, cue)
        if value:
            end = _end_of_pieces(folded, value)
            yield value.start, end, kind
            for item in _more_items(folded, cue, value):
                yield item.start, item.end, kind
                end = item.end
            resume = end
            allowance += 1
        elif cue.start >= table_end:
            cells, table_end = _column(folded, cue)
            for cell in cells:
                yield cell.start, cell.end, kind


def _value(folded: str, small: str, cue: Cue) -> Value | None:
    """Return the secret that is tied to the cue, if there is one."""
    value = None
    sign = compiled(SIGN).match(small, cue.end)
    if sign:
        if _is_settled(folded, cue, sign):
            return None
        value = _assigned(folded, small, cue, sign)
    elif _may_lead_to_value(folded, cue.end):
        value = _first_form(folded, small, cue)
    if value is None and cue.family != "pass" and small[cue.start - 1 : cue.start] == " ":
        value = _stated_before(folded, small, cue)
    return value


def _is_settled(folded: str, cue: Cue, sign: re.Match[str]) -> bool:
    """Match a value that was found before, and a part of a name: `arn:…:secret:…`."""
    return folded[sign.end() : sign.end() + 1] == MASK or sign.group(2) == ":" == folded[cue.start - 1 : cue.start]


def _may_lead_to_value(folded: str, end: int) -> bool:
    after = folded[end : end + 1]
    return after != "" and (after in AFTER_CUES or after > "\x7f") and folded[end + 1 : end + 2] != MASK


def _first_form(folded: str, small: str, cue: Cue) -> Value | None:
    for read in FORMS:
        value = read(folded, small, cue)
        if value:
            return value
    return None


def _end_of_pieces(folded: str, value: Value) -> int:
    """Return the end of a value that is put together from several string literals: `"…" + "…"`."""
    if not value.quoted or folded[value.end : value.end + 1] not in QUOTES:
        return value.end
    pieces = compiled(MORE_PIECES).match(folded, value.end)
    return pieces.end() if pieces else value.end


def _more_items(folded: str, cue: Cue, value: Value) -> Iterator[Value]:
    """Read the other secrets of a list whose first item is one: `passwords:` with a line `- value` for each."""
    if not compiled(r"\n[ \t]{0,24}+[-*+][ \t]{1,3}+[\"'`]?$").search(folded, max(0, value.start - 32), value.start):
        return
    bullet = compiled(r"[\"'`]?[ \t]{0,8}+\r?\n[ \t]{0,24}+[-*+][ \t]{1,3}+")
    item: Value | None = value
    while item and (before := bullet.match(folded, item.end)):
        item = _read(folded, cue, before.end(), Tie.STATED)
        if item:
            yield item


# ---- cues ----


def find_cues(folded: str, small: str) -> Iterator[Cue]:
    """Find the cues of the folded text, in order."""
    pattern = _pattern_for(small)
    if pattern is None:
        return
    for match, follower in pairwise(chain(pattern.finditer(small), [None])):
        if match is None:
            return
        if follower and _are_adjacent(small, match.end(), follower):
            continue
        cue = _cue(folded, match, follower.start() if follower else len(folded))
        if cue and cue.next_start >= cue.end:
            yield cue


def _pattern_for(small: str) -> re.Pattern[str] | None:
    """Return a pattern that finds the cues of this text, or None if it holds none."""
    if len(small) > SHORT_TEXT or next(_texts) >= FIRST_TEXTS:
        return _cue_words(small.isascii())
    held = tuple(word for word in _words() if word in small)
    return re.compile(_tree(_closed(held))) if held else None


def _are_adjacent(small: str, end: int, follower: re.Match[str]) -> bool:
    """Match `secret key`, but not `password password1`: there the second is the value of the first."""
    return (
        follower.start() - end < 2
        and small[end : follower.start()] in ("", " ", "\n")
        and not small[follower.end() : follower.end() + 1].isalnum()
    )


def _cue(folded: str, match: re.Match[str], next_start: int) -> Cue | None:
    """Return the cue with its identifier, or None if the identifier names something else."""
    start, end = match.span()
    word = match.group()
    family, is_bound = _words()[word]
    before = folded[max(0, start - 48) : start]
    left = before[len(before.rstrip(IDENTIFIER)) :]
    if is_bound and left and _is_inside_word(left, folded[start]):
        return None
    if (left + word).lower() in rules.COMMAND_NAMES or _is_other_token(family, left):
        return None
    suffix = _suffix(folded, end, is_bound)
    if suffix is None:
        return None
    is_weak = suffix.is_weak
    if word in rules.BARE_KEYS:
        owner = re.split(r"[,;:(){}=|]", folded[max(0, start - 32) : start])[-1]  # `sort(field_data, key=…)`
        if _is_other_key(owner):
            return None
        is_weak = is_weak or not _is_key_of_secret(owner)
    name = left + folded[start:end] + suffix.text
    return Cue(family, start - len(left), end + len(suffix.text), name, is_weak, next_start)


def _is_inside_word(left: str, first: str) -> bool:
    """Match letters of another word (`monkey`) or of an id, but not a hump: `apiKey`."""
    is_hump = first.isupper() and left[-1].islower()
    return (left[-1].isalnum() and not is_hump) or (len(left) >= 8 and is_opaque(left))


def _is_other_token(family: str, left: str) -> bool:
    """Match the `csrf` of `csrf_token`, and other words for tokens that open nothing."""
    if family not in ("token", "secret"):
        return False
    return any(hump.lower() in rules.OTHER_TOKENS for hump in _humps(left)[-1:])


def _is_other_key(owner: str) -> bool:
    """Match the words before `primary key`, `sort key` and other keys that open nothing."""
    last = _humps(owner)[-1:]
    return bool(last) and (last[0].lower() in rules.OTHER_KEYS or owner.split()[-1].lower() in rules.OTHER_KEYS)


def _is_key_of_secret(owner: str) -> bool:
    """Match the words before `encryption key`, `api key`."""
    return any(word.lower() in rules.KEY_QUALIFIERS for word in _humps(owner)[-3:])


class Suffix(NamedTuple):
    """The rest of an identifier after its cue; it is weak if it may change the meaning."""

    text: str
    is_weak: bool


NO_SUFFIX = Suffix("", False)


def _suffix(folded: str, end: int, is_bound: bool) -> Suffix | None:
    """Return the rest of the identifier after the cue, or None if the whole names something else."""
    after = folded[end : end + 1]
    if not after.isalnum() and after not in ("_", ".", "-"):
        return NO_SUFFIX
    suffix = compiled(r"(?:[_.\-]?[A-Za-z0-9]{1,30}+){0,5}+").match(folded, end).group()  # type: ignore[union-attr]
    if not suffix:
        return NO_SUFFIX
    return None if _continues_word(folded[end - 1], suffix) else _read_suffix(suffix, is_bound)


def _read_suffix(suffix: str, is_bound: bool) -> Suffix | None:
    """Return the part of the suffix that belongs to the cue: all of it, or up to the first full stop."""
    parts = [part.lower() for part in _humps(suffix)]
    if not rules.BENIGN_SUFFIXES.isdisjoint(parts):
        return None
    if all(part in rules.NEUTRAL_SUFFIXES or part.isdigit() for part in parts):
        return Suffix(suffix, False)
    if "." in suffix:
        return Suffix(suffix[: suffix.index(".")], False)
    return None if "-" in suffix or is_bound else Suffix(suffix, True)


def _continues_word(last: str, suffix: str) -> bool:
    """Match the `board` of `keyboard`, but neither a hump (`keyId`) nor a plural."""
    first = suffix[0]
    if not first.isalpha() or not last.isalpha() or first.islower() != last.islower():
        return False
    return first not in "sS" or suffix[1:2].isalpha()


def _humps(identifier: str) -> list[str]:
    return compiled(r"[A-Z]++(?![a-z])|[A-Z]?[a-z]++|[0-9]++").findall(identifier)


@cache
def _words() -> dict[str, tuple[str, bool]]:
    """Return every cue as it appears in a view, with its family and whether it must start a word or a hump."""
    words = {}
    for family, listed in rules.CUES.items():
        for entry in fold(listed).split():
            for blank in " -._" if "~" in entry else "~":
                words[entry.strip("^$").replace("~", blank)] = (family, entry[0] == "^")
    return words


@cache
def _cue_words(is_ascii: bool) -> re.Pattern[str]:
    """Compile all cues to one pattern, shaped as a tree so that most positions fail at their first or second letter."""
    return re.compile(_tree(_closed([word for word in _words() if word.isascii() or not is_ascii])))


def _closed(words: Iterable[str]) -> dict[str, bool]:
    """Map each word to True if no letter may follow it."""
    closed = {entry.strip("^$") for listed in rules.CUES.values() for entry in fold(listed).split() if entry[-1] == "$"}
    return {word: word in closed or re.sub("[ ._-]", "~", word) in closed for word in words}


def _tree(words: dict[str, bool]) -> str:
    """Build a pattern for these words, longest first; no letter may follow a word that maps to True."""
    branches: dict[str, dict[str, bool]] = {}
    for word, is_closed in words.items():
        if word:
            branches.setdefault(word[0], {})[word[1:]] = is_closed
    sources = [re.escape(first) + _tree(rest) for first, rest in branches.items()]
    if "" in words:
        sources.append("(?![a-z])" if words[""] else "")
    return sources[0] if len(sources) == 1 else f"(?:{'|'.join(sources)})"


# ---- from the cue to the value ----


# A sign that assigns, after closing quotes: `=`, `:`, `->` and the like, perhaps with a type (`: str =`).
SIGN = (
    r"""["'`\])*]{0,4}+([ \t]{0,24}+)"""
    r"""(:[ \t]{0,4}+[a-z_.\[\]<>, |?]{1,40}+=(?!=)|:=|=>|-{1,2}>|\?=|\|\|=|\+=|={1,3}+|!={1,2}+|:{1,2}+|<-|<<<"""
    r"""|\||%3d|%3a|(?<=[ \t])(?:[->~]|\.{2,3}+)(?=[ \t]))(?:\*\*|[\])])?([ \t]{0,40}+)"""
)


# YAML before a value: a type, or an anchor (but not a reference of Rust).
YAML_TAG = r"(?:!!\w{1,40}+|!unsafe|&(?!(?:mut|dyn|impl|str|self)\b)[\w-]{1,40}+)[ \t]{1,8}+(?![ \t=])"
NESTED = (  # "token": {"value": …
    r"\{\s{0,40}+[\"']?\s{0,4}+(?:value|key|secret|token|data|string)[\"']?\s{0,8}+[:=]\s{0,8}+"
)
LINE_END = r"(?:[|>][-+]?)?[ \t]{0,8}+(?:\r?\n[ \t>#*+-]{0,24}+){1,3}+(?:```\w{0,12}+\n)?[ \t]{0,16}+"
COMPARISONS = ("==", "===", "!=", "!==", "::")
LOOSE_SIGNS = ("|", "~", "..", "...")
ASSIGNING_SIGNS = ("<-", "<<<", "%3d")  # and every sign with a `=` in it


def _assigned(folded: str, small: str, cue: Cue, sign: re.Match[str]) -> Value | None:
    """Read `name = value`, `"name": value`, `name: type = value`, and a value on the next line."""
    tag = compiled(YAML_TAG).match(folded, sign.end())
    position = tag.end() if tag else sign.end()
    inner = compiled(NESTED).match(small, position)
    if inner:
        return _read(folded, cue, inner.end(), Tie.LITERAL)
    below = compiled(LINE_END).match(folded, position)
    if below:
        return _named_elsewhere(folded, small, cue) or _alone_on_line(folded, cue, below.end())
    tie = _tie_of_sign(cue, sign)
    if tie is None:
        return None
    value = _read(folded, cue, position, tie)
    if value is None and tie is Tie.STATED and sign.group(3):  # "password: it is still …"
        value = _linked(folded, small, cue._replace(end=position - 1))
    return value


def _tie_of_sign(cue: Cue, match: re.Match[str]) -> Tie | None:
    """Return the tie that a sign makes, or None before the type that a function returns."""
    sign = match.group(2)
    if sign in LOOSE_SIGNS:
        return Tie.LOOSE
    if sign in COMPARISONS and cue.family != "password":
        return Tie.LOOSE  # `if token == "else"`
    if sign.endswith("->") and ")" in match.group():
        return None
    if "=" in sign or sign in ASSIGNING_SIGNS:
        return Tie.ASSIGNED if match.group(1) or match.group(3) else Tie.LITERAL
    return Tie.STATED


def _alone_on_line(folded: str, cue: Cue, position: int) -> Value | None:
    value = _read(folded, cue, position, Tie.STATED)
    is_alone = value and compiled(r"[ \t\"'`.,;*)]{0,8}+(?:[\r\n]|$)").match(folded, value.end)
    return value if is_alone else None


def _named_elsewhere(folded: str, small: str, cue: Cue) -> Value | None:
    """Read `name: NAME` with `value: …` nearby, `<key>NAME</key><string>…`, `variable "NAME" { default = …`."""
    link = compiled(
        r"""["'`]?(?:[ \t]{0,8}+,?[ \t\r\n]{0,60}+["']?[ \t]{0,2}+(?:\w{1,12}:)?"""
        r"""(?:value|val|default|content|defaultvalue|secretstring)["']?"""
        r"""[ \t]{0,8}+(?::[ \t]{0,8}+|=[ \t]{0,8}+(?=["']))"""
        r"""|[ \t]{1,4}+(?:--(?:value|secret-string|secret|data|body)[ =]|-b[ ]?)"""
        r"""|\s{0,4}+\{[^{}]{0,200}?\bdefault\s{0,16}+=\s{0,4}+(?=["'])"""
        r"""|</[a-z]{1,20}+>\s{0,60}+<[a-z]{1,20}+>)"""
    ).match(small, cue.end)
    return _read(folded, cue, link.end(), Tie.LITERAL) if link else None


def _element_text(folded: str, small: str, cue: Cue) -> Value | None:
    """Read `<password>value</password>`, `<entry key="db.password">value</entry>`, also with the value on its line."""
    before = folded[cue.start - 1 : cue.start]
    if folded[cue.end] not in "\"'>" and before != "<":
        return None
    attributes = compiled(r"(?:[ \t][^<>\n]{0,80}+)?").match(folded, cue.end)
    match = compiled(
        r"[\"']?>\s{0,60}+(?:<(?:value|string|val)>\s{0,60}+)?(?:<!\[CDATA\[\s{0,60}+)?([^<>\n]{3,512}+)\s{0,60}+>?\s{0,60}+<"
    ).match(folded, attributes.end() if before in ("<", ":") and attributes else cue.end)
    content = match.group(1).rstrip().removesuffix("]]").rstrip() if match else ""
    value = Value(match.start(1), match.start(1) + len(content), True) if match and content else None
    return value if value and is_secret(folded, cue, value, Tie.LITERAL) else None


def _argument(folded: str, small: str, cue: Cue) -> Value | None:
    """Read `setPassword("value")` and `getenv("API_KEY", "value")`."""
    if folded[cue.end] not in "(\"'":
        return None
    link = compiled(r"""["']?[ \t]{0,4}+(?:\(|,)[ \t]{0,24}+(?=[bruf]{0,2}+["'])""").match(folded, cue.end)
    return _read(folded, cue, link.end(), Tie.ARGUMENT) if link else None


PLACE = r"\b(?:is|are|was|were)\s(?:\w{1,12}+\s)?(?:on|with|into)\b"


def _linked(folded: str, small: str, cue: Cue) -> Value | None:
    """Read `password is value` and `password should now be set to value`."""
    run = _links().match(small, cue.end)
    if not run:
        return None
    is_firm = _is_firm_link(small, cue, run)
    if cue.family == "pass" and not is_firm:
        return None  # "pass it to the parser"
    return _read(folded, cue, run.end(), Tie.STATED if is_firm else Tie.LOOSE)


def _is_firm_link(small: str, cue: Cue, run: re.Match[str]) -> bool:
    """Match a run of small words that can only lead to the value."""
    if compiled(PLACE).search(run.group()):
        return False  # "is on the whiteboard"
    words = (run.group(1) or "is").split()
    is_set = "to" in words and _is_being_set(small, cue)
    return is_set or any(word in rules.VERBS and word != "to" for word in words)


def _apart(folded: str, small: str, cue: Cue) -> Value | None:
    """Read `password for the staging box is value` and `the password was leaked: value`."""
    opener = compiled(r"[\"'`*)]{0,3}+,?[ \t]{1,3}+([(\[]|[^\W\d_]{1,20}+)").match(small, cue.end)
    if not opener:
        return None
    reach = _reach(cue, opener.group(1))
    if reach is None:
        return None
    limit = min(_end_of_line(small, cue.end), cue.end + reach.chars)
    if reach.tie is Tie.DISTANT and not compiled("[0-9]").search(small, cue.end, limit + GAP):
        return None
    for tries, link in enumerate(_late_links().finditer(small, opener.end(), limit)):
        if link.group(1) or tries == TRIES or _is_of_next_cue(cue, link, reach.tie, tries):
            return None
        value = _value_after(folded, small, cue, link, reach.tie)
        if value:
            return value
    return None


def _end_of_line(small: str, start: int) -> int:
    """Return where the text of a sentence may go on at most: a little beyond its line."""
    line_end = small.find("\n", start, start + GAP)
    return line_end + 3 if line_end >= 0 else start + GAP


class Reach(NamedTuple):
    """The tie of a value that does not follow its cue at once, and how far from the cue it may be."""

    tie: Tie
    chars: int


def _reach(cue: Cue, word: str) -> Reach | None:
    """Return how far to look for the value if this word follows the cue, or None if the word excludes a value."""
    if word in rules.BENIGN_SUFFIXES and word not in rules.GAP_OPENERS and word not in rules.LINKS:
        return None  # "password policy is …"
    if word in rules.GAP_OPENERS or word in ("(", "["):
        return Reach(Tie.APART, GAP)
    if cue.is_weak:
        return Reach(Tie.DISTANT, GAP // 3)
    if cue.family == "pass":
        return None  # "pass the flag, because the checks are broken on Tuesdays"
    return Reach(Tie.TOLD, GAP // 2)  # "the password Mara gave me is value"


def _is_of_next_cue(cue: Cue, link: re.Match[str], tie: Tie, tries: int) -> bool:
    """Match a link behind the next cue, to which its value belongs: "the login is password = value"."""
    return link.start() > cue.next_start and (tries > 0 or tie is Tie.TOLD)


def _value_after(folded: str, small: str, cue: Cue, link: re.Match[str], tie: Tie) -> Value | None:
    if tie is Tie.TOLD:
        return _told(folded, small, cue, link)
    return _read(folded, cue, link.end(), tie)


def _told(folded: str, small: str, cue: Cue, link: re.Match[str]) -> Value | None:
    """Read a value that ends its clause and belongs to no other noun: not "…, its version is 1a2b3c4d"."""
    if not rules.ATTRIBUTES.isdisjoint(small[max(cue.end, link.start() - 24) : link.start()].split()[-1:]):
        return None
    value = _read(folded, cue, link.end(), Tie.TOLD)
    is_last = value and (value.quoted or compiled(CLAUSE_END).match(folded, value.end))
    return value if is_last else None


def _replaced(folded: str, small: str, cue: Cue) -> Value | None:
    """Read `the password changed from value to value`: the first, and once that is masked, the second."""
    if small.find("from ", cue.end, cue.end + 64) < 0 and small.find(" vo", cue.end, cue.end + 64) < 0:
        return None
    link = compiled(r"([^.;!?\n]{0,60}?)[ \t](?:from|von|vom)[ \t]{1,3}+").match(small, cue.end)
    if not link or not (_is_changed(link.group(1)) or _is_changed(small[max(0, cue.start - 48) : cue.start])):
        return None
    second = compiled(r"[\"'`]?\x00[\"'`]?[ \t]{1,3}+(?:to|into|auf|zu|nach)[ \t]{1,3}+").match(folded, link.end())
    if second:
        return _read(folded, cue, second.end(), Tie.STATED)
    value = _read(folded, cue, link.end(), Tie.TOLD)
    is_first = value and compiled(r"[\"'`]?[ \t]{1,3}+(?:to|into|auf|zu|nach)[ \t]").match(folded, value.end)
    return value if is_first else None


def _is_changed(words: str) -> bool:
    return any(word.startswith(rules.CHANGES) for word in words.split())


def _is_being_set(small: str, cue: Cue) -> bool:
    words = small[max(0, cue.start - 48) : cue.start].split()
    return any(word.startswith(("set", "reset", "chang", "updat", "rotat")) for word in words)


@cache
def _alternatives(words: frozenset[str]) -> str:
    return "|".join(sorted(map(re.escape, map(fold, words)), key=len, reverse=True))


@cache
def _links() -> re.Pattern[str]:
    """Compile a run of small words that link a cue to its value, in group 1; or `'s`, or a question mark."""
    word = rf"[ \t\r\n]{{1,3}}+(?:{_alternatives(rules.LINKS)})(?=[\s:=])"
    return re.compile(
        rf"(?:'s(?=\s)(?:{word}){{0,4}}+|[\"'`*)]{{0,3}}+(?:{_alternatives(rules.LINKS_UNSPACED)}"
        rf"|\?[ \t\n]{{1,3}}+(?:it'?s |it is )?|((?:{word}){{1,6}}+)))"
        r"[ \t]{0,3}+[:=]?[ \t\n]{0,3}+"
    )


@cache
def _late_links() -> re.Pattern[str]:
    """Compile a verb and its small words, or a colon; or the end of the sentence, in group 1."""
    return re.compile(
        rf"([.?!;][ \t])|(?<![\w.])(?:{_alternatives(rules.VERBS)})"
        rf"(?:[ \t]{{1,2}}+(?:{_alternatives(rules.LINKS)})(?=[\s:])){{0,4}}+:?[ \t]{{1,2}}+"
        r"|(?:(?::|=|->|=>|>)[ \t\n]{1,3}+|[ \t]-{1,2}[ \t]{1,3}+)"
    )


BEFORE_FLAGS = ("", " ", "\t", "\n", '"', "'", "[", "`")


def _beside(folded: str, small: str, cue: Cue) -> Value | None:
    """Read `password value`, `--password value`, `ENV NAME value` and `PASSWORD 'value'`."""
    gap = compiled(r"(?:[\"'`*]{1,2}+,?)?[ \t]{1,8}+\(?(?!\x00)").match(folded, cue.end)
    if not gap:
        return _read(folded, cue, cue.end + 2, Tie.DISTANT) if folded.startswith(", ", cue.end) else None
    if gap.group().startswith(("`", "*")):  # "`--token` skips the prompt" speaks about the option
        return _loosely_beside(folded, cue, gap)
    if _is_flag(folded, cue):
        return _after_flag(folded, cue, gap)
    if _is_setter(small, cue):
        return _read(folded, cue, gap.end(), Tie.LITERAL)
    if not cue.name.isascii():
        return _after_foreign_cue(folded, cue, gap)
    if cue.family == "password" and folded[gap.end() : gap.end() + 1] in QUOTES and not gap.group().strip():
        return _read(folded, cue, gap.end(), Tie.STATED)  # `ALTER USER me PASSWORD '…'`
    return _loosely_beside(folded, cue, gap)


def _loosely_beside(folded: str, cue: Cue, gap: re.Match[str]) -> Value | None:
    return _read(folded, cue, gap.end(), Tie.LOOSE) if cue.family != "pass" else None


def _is_flag(folded: str, cue: Cue) -> bool:
    return cue.name.startswith("-") and folded[cue.start - 1 : cue.start] in BEFORE_FLAGS


def _after_flag(folded: str, cue: Cue, gap: re.Match[str]) -> Value | None:
    if "," in gap.group() and folded[gap.end() : gap.end() + 1] not in ("'", '"'):
        return None  # `add_argument("--token", help=…)`
    return _read(folded, cue, gap.end(), Tie.LITERAL)


def _after_foreign_cue(folded: str, cue: Cue, gap: re.Match[str]) -> Value | None:
    """Read the value where the alphabet changes: Russian has no "is"."""
    if folded[gap.end() : gap.end() + 1].isascii():
        return _read(folded, cue, gap.end(), Tie.STATED)
    words = compiled(r"(?:[^\x00-\x7f\s]{1,20}+[ \t]{1,2}+){1,4}+(?=[!-~])").match(folded, gap.end())
    return _read(folded, cue, words.end(), Tie.TOLD) if words else None


def _is_setter(small: str, cue: Cue) -> bool:
    """Match a command or a user name before the cue that needs a value after it: `ENV`, `setx`, `login me`."""
    words = ["", "", *small[max(0, cue.start - 80) : cue.start].split()[-3:]]
    if words[-1] in ("and", "with"):
        words.pop()
    first, second = words[-2:]
    if first in ("login", "user", "username"):
        return second not in ("and", "or", "with") and second[-1].isalnum()
    return second in ("env", "arg", "setx", "set", "setenv", "export") or (first == "set" and second.startswith("-"))


def _printed(folded: str, small: str, cue: Cue) -> Value | None:
    """Read the output of a command on the next line: `$ echo $API_TOKEN`, `>>> token`."""
    next_line = compiled(r"[\"'})]{0,3}+[ \t]{0,4}+\n[ \t]{0,8}+").match(folded, cue.end)
    if not next_line:
        return None
    line = small[max(0, cue.start - 80) : cue.start].rpartition("\n")[2].lstrip()
    if not line.startswith(("$ ", "% ", "# ", "> ", ">>> ", "echo ", "printenv ")):
        return None
    return _read(folded, cue, next_line.end(), Tie.LOOSE)


def _inserted(folded: str, small: str, cue: Cue) -> Value | None:
    """Read `insert into users (name, password) values ('me', 'value')`."""
    values = compiled(r"[\w\s,`\"]{0,400}+\)\s{1,8}+values\s{0,8}+\(\s{0,8}+").match(small, cue.end)
    if not values:
        return None
    cell = compiled(r"(?:'[^'\n]{0,512}+'|[^',()\n]{1,128}+)[ \t]{0,4}+,\s{0,8}+")
    position = values.end()
    for _ in range(small[max(0, cue.start - 400) : cue.start].rpartition("(")[2].count(",")):
        before = cell.match(folded, position)
        position = before.end() if before else len(folded)
    return _read(folded, cue, position, Tie.LITERAL)


Reader = Callable[[str, str, Cue], Value | None]  # (folded text, the same in lower case, cue)

# The forms that tie a value to a cue, the firmest first. The first that leads to a secret counts.
FORMS: tuple[Reader, ...] = (
    _element_text,
    _named_elsewhere,
    _argument,
    _linked,
    _replaced,
    _apart,
    _beside,
    _printed,
    _inserted,
)


def _stated_before(folded: str, small: str, cue: Cue) -> Value | None:
    """Read `use value as the password` and `value is my token`."""
    floor = max(0, cue.start - GAP)
    words = small[floor : cue.start].split()[-8:]
    places = range(len(words) - 1, max(0, len(words) - 6), -1)
    place = next((place for place in places if words[place] in BEFORE_CUES), 0)
    bare = words[place - 1].strip("\"'`*,()") if place else ""
    if len(bare) < 6:
        return None
    last_words = list(compiled(r"\S++").finditer(small, floor, cue.start))[-len(words) :]
    start = last_words[place - 1].start() + words[place - 1].index(bare)
    value = Value(start, start + len(bare), False)
    is_used = place > 1 and words[place - 2] in ("use", "used", "try", "type", "enter", "with")
    return value if is_secret(folded, cue, value, Tie.STATED if is_used else Tie.LOOSE) else None


class Heading(NamedTuple):
    """A heading of a table: `user,password` or `| user | password |`."""

    end: int
    sign: str  # between two cells
    place: int  # of the column of secrets
    signs: int  # in a row


def _column(folded: str, cue: Cue) -> tuple[list[Value], int]:
    """Return the secrets below a heading, and where the table ends."""
    secrets: list[Value] = []
    heading = _heading(folded, cue)
    if heading is None:
        return secrets, 0
    end = heading.end
    for row in _rows(folded, end + 1):
        if row.count(heading.sign) != heading.signs:
            break
        secret = _cell(row, heading, end + 1)
        if secret.start < secret.end and is_secret(folded, cue, secret, Tie.LOOSE):
            secrets.append(secret)
        end += len(row) + 1
    return secrets, end


def _heading(folded: str, cue: Cue) -> Heading | None:
    """Return the heading that this cue is a cell of, if its line is one."""
    start = folded.rfind("\n", max(0, cue.start - 400), cue.start) + 1
    end = folded.find("\n", cue.end, cue.end + 400)
    if end < 0 or not compiled(r"[ \"'*`\r]{0,8}+[|\t;,\n]").match(folded, cue.end):
        return None
    line = folded[start:end]
    sign = next((sign for sign in "|\t;," if sign in line), None)
    if sign is None:
        return None
    place = line.count(sign, 0, cue.start - start)
    names = [name.strip(" \r\"'*`") for name in line.split(sign)]
    is_cell = names[place].lower().endswith(cue.name.lower()) and names[place].count(" ") < 3  # `Secret access key`
    return Heading(end, sign, place, line.count(sign)) if is_cell and sum(map(bool, names)) > 1 else None


def _cell(row: str, heading: Heading, start: int) -> Value:
    """Return the cell of the row below the heading, without blanks and quotes; `start` is where the row begins."""
    cells = row.split(heading.sign)
    cell = cells[heading.place]
    content = cell.strip(" \r\"'`")
    start += sum(map(len, cells[: heading.place])) + heading.place + cell.index(content)
    return Value(start, start + len(content), False)


def _rows(folded: str, start: int) -> Iterator[str]:
    for _ in range(ROWS):
        end = folded.find("\n", start, start + 2000)
        yield folded[start : end if end >= 0 else start + 2000]
        if end < 0:
            return
        start = end + 1


# ---- the value ----


TIES_OF_PHRASES = (Tie.STATED, Tie.APART, Tie.ASSIGNED, Tie.LITERAL)


def _read(folded: str, cue: Cue, position: int, tie: Tie) -> Value | None:
    """Return the value that begins here, if it is a secret."""
    value = _quoted(folded, position) or _unquoted(folded, position, tie)
    if value is None:
        return None
    if value.quoted and _is_argument(folded, position, value):
        tie = Tie.ARGUMENT
    inner = _after_scheme(folded, value, tie)
    if inner:
        return inner
    second = _password_of_pair(folded, value) if _announces_pair(folded, cue) else None
    if second:
        cue, value = cue._replace(family="password"), second
    return value if is_secret(folded, cue, value, tie) else _bare_passphrase(folded, cue, value, tie)


def _after_scheme(folded: str, value: Value, tie: Tie) -> Value | None:
    """Return the token of `Bearer token`, if it looks like one."""
    if tie is Tie.LOOSE:
        return None
    scheme = compiled(r"(?i:bearer|basic|token|apikey|bot|ssws)[ \t]{1,3}+").match(folded, value.start)
    if not scheme:
        return None
    is_inside = value.end > scheme.end()
    token = Value(scheme.end(), value.end, True) if is_inside else _unquoted(folded, scheme.end(), tie)
    content = folded[token.start : token.end] if token else ""
    return token if content and is_opaque(content) and " " not in content else None


def _announces_pair(folded: str, cue: Cue) -> bool:
    """Match cues for a name and a password: `credentials`, `user/pass`."""
    return cue.family == "credentials" or (cue.family == "pass" and folded[cue.start - 1 : cue.start] == "/")


def _password_of_pair(folded: str, value: Value) -> Value | None:
    """Return the second of `me / value`, unless the first is a label ("Credential helper: osxkeychain")."""
    if folded[value.start : value.end].lower() in rules.BENIGN_SUFFIXES:
        return None
    second = _second_of_pair(folded, value)
    return second if second and folded[second.end : second.end + 2] not in ('":', "':") else None


def _bare_passphrase(folded: str, cue: Cue, value: Value, tie: Tie) -> Value | None:
    """Return four or more words without quotes that make no sentence."""
    if value.quoted or cue.family != "password" or tie not in TIES_OF_PHRASES:
        return None
    phrase = compiled(r"[a-z]{3,12}+(?: [a-z]{3,12}+){3,7}+(?=[.,;:)]?(?:\s|$))").match(folded, value.start)
    return Value(phrase.start(), phrase.end(), True) if phrase and is_passphrase(phrase.group()) else None


def _is_argument(folded: str, position: int, value: Value) -> bool:
    """Match a string in a list, and the argument of a call that makes no value of it: `("a", "b")`, `push("a")`."""
    opening = compiled(r"([A-Za-z_][\w.:]{0,40}+)?[(\[]").match(folded, position)
    if not opening:
        return False
    if not opening.group(1):
        return compiled(r"[\"'`][ \t]{0,4}+,").match(folded, value.end) is not None
    return re.split("[.:]", opening.group(1).lower())[-1] not in rules.MAKERS


def _quoted(folded: str, position: int) -> Value | None:
    """Return a string literal, with or without a call around it: `"…"`, `b'…'`, `String::from("…")`, `**…**`."""
    opening = compiled(
        r"""(?:(?:[A-Za-z_][\w.:]{0,40}+)?\([ \t]{0,4}+|\[[ \t]{0,4}+){0,2}+"""
        r"""(?:[bBrRuUfFlL]{1,2}|@|\$)?("{3}|'{3}|["'`]|\*\*)"""
    ).match(folded, position)
    if not opening:
        return None
    mark, start = opening.group(1), opening.end()
    line_end = folded.find("\n", start, start + 2048) if len(mark) < 3 else -1
    end = folded.find(mark, start, line_end if line_end >= 0 else start + 2048)
    if end < 0:
        return _unquoted(folded, start, Tie.STATED) if opening.start(1) == position else None
    content = folded[start:end]
    start += len(content) - len(content.lstrip())
    end -= len(content) - len(content.rstrip())
    return Value(start, end, True) if end > start else None


def _unquoted(folded: str, position: int, tie: Tie) -> Value | None:
    """Return the word that begins here, without the punctuation around it."""
    literal = tie is Tie.LITERAL
    in_file, in_prose = compiled(r"[^\s\"\x00]{1,512}+"), compiled(r"[^\s\"'`<>|\x00]{1,512}+")
    match = (in_file if literal else in_prose).match(folded, position)
    if not match:
        return None
    value = match.group()
    if not value.isascii():  # Chinese, Japanese and Korean leave no blank after it
        value = re.split("[\u2e80-\uabff\uac00-\ud7a3]", value, maxsplit=1)[0]
    cut = compiled(r"[;&,](?=[\w. -]{1,40}+[=:])|'|</").search(value, 1)
    value = value[: cut.start()] if cut else value
    if "(" not in value and tie in (Tie.LITERAL, Tie.ASSIGNED):
        value = value.partition(")")[0]
    opened = value.lstrip("(")
    position += len(value) - len(opened)
    value = opened.rstrip(",;`" if literal else ".,;:)]}*`")
    return Value(position, position + len(value), False) if value else None


def _second_of_pair(folded: str, value: Value) -> Value | None:
    """Return the value of `me / value`, `me:value` and `"me", "value"`."""
    pair = compiled(
        r"""[\w.@+-]{1,64}+["'`]?(?:[ \t]{1,2}+(?:/|\||and|und|et)[ \t]{1,2}+|:[ \t]?|/|,[ \t]{0,2}+(?=["']))"""
        r"""["'`]?(?=([^\s"'`]{3,128}+))"""
    ).match(folded, value.start)
    if not pair:
        return None
    secret = pair.group(1).rstrip(".,;)")
    return Value(pair.end(), pair.end() + len(secret), pair.group()[-1] in "\"'`") if secret else None
