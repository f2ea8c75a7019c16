"""Secrets that their surroundings give away: a cue word, a tie, and a value.

    the db password is hunter2hunter      DB_PASSWORD=…      "apiKey": "…"      --token …      <password>…</password>

The finder of redaction that reads prose. A cue (`password`, `API_KEY`, `Kennwort`) counts only if its identifier still
names a secret: `DB_PASSWORD`, not `password_policy`. Of two cues side by side the last one counts (`secret key`), so
that a value belongs to the nearest. Each cue is followed to the values tied to it; `verdict` says which are secrets.

Rule: every pattern is anchored at a cue and of bounded length, so each cue costs about the same, whatever follows it.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, count, pairwise

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


def find_cued_secrets(folded: str, small: str) -> Iterator[Span]:
    """Values after a cue, and cells below one."""
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
    """The secret that is tied to the cue, if there is one; the firmest tie is tried first."""
    before, after = folded[cue.start - 1 : cue.start], folded[cue.end : cue.end + 1]
    value = None
    link = compiled(SIGN).match(small, cue.end)
    if link:
        if folded[link.end() : link.end() + 1] == MASK or (link.group(2) == ":" == before):
            return None  # found before, or a part of a name: `arn:…:secret:…`
        value = _assigned(folded, small, cue, link)
    elif folded[cue.end + 1 : cue.end + 2] == MASK:
        pass
    elif (after and after in " \t\n\r\"'`*)]<>(,{?") or after > "\x7f":
        value = (
            (_element_text(folded, cue) if after in "\"'>" or before == "<" else None)
            or _named_elsewhere(folded, small, cue)
            or (_argument(folded, cue) if after in "(\"'" else None)
            or _linked(folded, small, cue)
            or _replaced(folded, small, cue)
            or _apart(folded, small, cue)
            or _beside(folded, small, cue)
            or _printed(folded, small, cue)
            or _inserted(folded, small, cue)
        )
    if value is None and cue.family != "pass" and small[cue.start - 1 : cue.start] == " ":
        value = _stated_before(folded, small, cue)
    return value


def _end_of_pieces(folded: str, value: Value) -> int:
    """Where a value ends that is put together from several string literals: `"…" + "…"`."""
    if not value.quoted or folded[value.end : value.end + 1] not in ("'", '"', "`"):
        return value.end
    pieces = compiled(MORE_PIECES).match(folded, value.end)
    return pieces.end() if pieces else value.end


def _more_items(folded: str, cue: Cue, value: Value) -> Iterator[Value]:
    """The other secrets of a list whose first item is one: `passwords:` with a line `- value` for each."""
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
    """The cues of the folded text, in order."""
    if len(small) <= SHORT_TEXT and next(_texts) < FIRST_TEXTS:
        held = tuple(word for word in _words() if word in small)
        if not held:
            return
        pattern = re.compile(_tree(_closed(held)))
    else:
        pattern = _cue_words(small.isascii())
    matches = pattern.finditer(small)
    for match, follower in pairwise(chain(matches, [None])):
        if match is None:
            return
        if follower and _are_adjacent(small, match.end(), follower):
            continue
        cue = _cue(folded, match, follower.start() if follower else len(folded))
        if cue and cue.next_start >= cue.end:
            yield cue


def _are_adjacent(small: str, end: int, follower: re.Match[str]) -> bool:
    """`secret key`, but not `password password1`: there the second is the value of the first."""
    return (
        follower.start() - end < 2
        and small[end : follower.start()] in ("", " ", "\n")
        and not small[follower.end() : follower.end() + 1].isalnum()
    )


def _cue(folded: str, match: re.Match[str], next_start: int) -> Cue | None:
    """The cue with its identifier, or None if the identifier names something else."""
    start, end = match.span()
    family, is_bound = _words()[match.group()]
    before = folded[max(0, start - 48) : start]
    left = before[len(before.rstrip(IDENTIFIER)) :]
    if is_bound and left and left[-1].isalnum() and not (folded[start].isupper() and left[-1].islower()):
        return None
    if is_bound and len(left) >= 8 and is_opaque(left):
        return None  # two letters of an id
    if (left + match.group()).lower() in rules.COMMAND_NAMES:
        return None
    suffix, is_weak = _suffix(folded, end, is_bound)
    if suffix is None:
        return None
    if family in ("token", "secret") and any(hump.lower() in rules.OTHER_TOKENS for hump in _humps(left)[-1:]):
        return None
    if match.group() in rules.BARE_KEYS:
        before_sign = re.split(r"[,;:(){}=|]", folded[max(0, start - 32) : start])[-1]  # `sort(field_data, key=…)`
        near = [word.lower() for word in _humps(before_sign)[-3:]]
        if near and (near[-1] in rules.OTHER_KEYS or before_sign.split()[-1].lower() in rules.OTHER_KEYS):
            return None
        is_weak = is_weak or not any(word in rules.KEY_QUALIFIERS for word in near)
    return Cue(family, start - len(left), end + len(suffix), left + folded[start:end] + suffix, is_weak, next_start)


def _suffix(folded: str, end: int, is_bound: bool) -> tuple[str | None, bool]:
    """The rest of the identifier after the cue, and whether it may change the meaning; None if it does."""
    if not folded[end : end + 1].isalnum() and folded[end : end + 1] not in ("_", ".", "-"):
        return "", False
    suffix = compiled(r"(?:[_.\-]?[A-Za-z0-9]{1,30}+){0,5}+").match(folded, end).group()  # type: ignore[union-attr]
    if not suffix:
        return "", False
    if suffix[0].isalpha() and folded[end - 1].isalpha() and suffix[0].islower() == folded[end - 1].islower():
        is_plural = suffix[0] in "sS" and not suffix[1:2].isalpha()
        if not is_plural:
            return None, False
    parts = [part.lower() for part in _humps(suffix)]
    if any(part in rules.BENIGN_SUFFIXES for part in parts):
        return None, False
    if all(part in rules.NEUTRAL_SUFFIXES or part.isdigit() for part in parts):
        return suffix, False
    if "." in suffix:
        return suffix[: suffix.index(".")], False
    return (None, False) if "-" in suffix or is_bound else (suffix, True)


def _humps(identifier: str) -> list[str]:
    return compiled(r"[A-Z]++(?![a-z])|[A-Z]?[a-z]++|[0-9]++").findall(identifier)


@cache
def _words() -> dict[str, tuple[str, bool]]:
    """Every cue as it appears in a view: its family, and whether it counts only at the start of a word or hump."""
    words = {}
    for family, listed in rules.CUES.items():
        for entry in fold(listed).split():
            for blank in " -._" if "~" in entry else "~":
                words[entry.strip("^$").replace("~", blank)] = (family, entry[0] == "^")
    return words


@cache
def _cue_words(is_ascii: bool) -> re.Pattern[str]:
    """All cues as one pattern, shaped as a tree so that most positions fail at their first or second letter."""
    return re.compile(_tree(_closed([word for word in _words() if word.isascii() or not is_ascii])))


def _closed(words: Iterable[str]) -> dict[str, bool]:
    """The words, each with whether it must not be followed by a letter."""
    closed = {entry.strip("^$") for listed in rules.CUES.values() for entry in fold(listed).split() if entry[-1] == "$"}
    return {word: word in closed or re.sub("[ ._-]", "~", word) in closed for word in words}


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


# ---- from the cue to the value ----


# A sign that assigns, after closing quotes: `=`, `:`, `->` and the like, perhaps with a type (`: str =`).
SIGN = (
    r"""["'`\])*]{0,4}+([ \t]{0,24}+)"""
    r"""(:[ \t]{0,4}+[a-z_.\[\]<>, |?]{1,40}+=(?!=)|:=|=>|-{1,2}>|\?=|\|\|=|\+=|={1,3}+|!={1,2}+|:{1,2}+|<-|<<<"""
    r"""|\||%3d|%3a|(?<=[ \t])(?:[->~]|\.{2,3}+)(?=[ \t]))(?:\*\*|[\])])?([ \t]{0,40}+)"""
)


# What YAML may have before a value: a type, or an anchor (but not a reference of Rust).
YAML_TAG = r"(?:!!\w{1,40}+|!unsafe|&(?!(?:mut|dyn|impl|str|self)\b)[\w-]{1,40}+)[ \t]{1,8}+(?![ \t=])"
COMPARISONS = ("==", "===", "!=", "!==", "::")


def _assigned(folded: str, small: str, cue: Cue, link: re.Match[str]) -> Value | None:
    """`name = value`, `"name": value`, `name: type = value`, and the value on the next line."""
    sign = link.group(2)
    tag = compiled(YAML_TAG).match(folded, link.end())
    position = tag.end() if tag else link.end()
    nested = compiled(r"\{\s{0,40}+[\"']?\s{0,4}+(?:value|key|secret|token|data|string)[\"']?\s{0,8}+[:=]\s{0,8}+")
    inner = nested.match(small, position)
    if inner:  # "token": {"value": …
        return _read(folded, cue, inner.end(), Tie.LITERAL)
    line_ends = compiled(r"(?:[|>][-+]?)?[ \t]{0,8}+(?:\r?\n[ \t>#*+-]{0,24}+){1,3}+(?:```\w{0,12}+\n)?[ \t]{0,16}+")
    below = line_ends.match(folded, position)
    if below:
        value = _read(folded, cue, below.end(), Tie.STATED)
        is_alone = value and compiled(r"[ \t\"'`.,;*)]{0,8}+(?:[\r\n]|$)").match(folded, value.end)
        return _named_elsewhere(folded, small, cue) or (value if is_alone else None)
    if sign in ("|", "~") or sign.startswith(".."):
        return _read(folded, cue, position, Tie.LOOSE)
    if sign in COMPARISONS and cue.family != "password":
        return _read(folded, cue, position, Tie.LOOSE)  # `if token == "else"`
    if sign.endswith("->") and ")" in link.group():
        return None  # the type that a function returns
    if "=" in sign or sign in ("<-", "<<<", "%3d"):
        is_spaced = link.group(1) or link.group(3)
        return _read(folded, cue, position, Tie.ASSIGNED if is_spaced else Tie.LITERAL)
    value = _read(folded, cue, position, Tie.STATED)
    if value is None and link.group(3):  # "password: it is still …"
        value = _linked(folded, small, cue._replace(end=position - 1))
    return value


def _named_elsewhere(folded: str, small: str, cue: Cue) -> Value | None:
    """`name: NAME` with `value: …` beside or below it, `<key>NAME</key><string>…`, `variable "NAME" { default = …`."""
    link = compiled(
        r"""["'`]?(?:[ \t]{0,8}+,?[ \t\r\n]{0,60}+["']?[ \t]{0,2}+(?:\w{1,12}:)?"""
        r"""(?:value|val|default|content|defaultvalue|secretstring)["']?"""
        r"""[ \t]{0,8}+(?::[ \t]{0,8}+|=[ \t]{0,8}+(?=["']))"""
        r"""|[ \t]{1,4}+(?:--(?:value|secret-string|secret|data|body)[ =]|-b[ ]?)"""
        r"""|\s{0,4}+\{[^{}]{0,200}?\bdefault\s{0,16}+=\s{0,4}+(?=["'])"""
        r"""|</[a-z]{1,20}+>\s{0,60}+<[a-z]{1,20}+>)"""
    ).match(small, cue.end)
    return _read(folded, cue, link.end(), Tie.LITERAL) if link else None


def _element_text(folded: str, cue: Cue) -> Value | None:
    """`<password>value</password>`, `<entry key="db.password">value</entry>`, also with the value alone on its line."""
    is_tag = folded[cue.start - 1 : cue.start] in ("<", ":")
    attributes = compiled(r"(?:[ \t][^<>\n]{0,80}+)?").match(folded, cue.end)
    match = compiled(
        r"[\"']?>\s{0,60}+(?:<(?:value|string|val)>\s{0,60}+)?(?:<!\[CDATA\[\s{0,60}+)?([^<>\n]{3,512}+)\s{0,60}+>?\s{0,60}+<"
    ).match(folded, attributes.end() if is_tag and attributes else cue.end)
    content = match.group(1).rstrip().removesuffix("]]").rstrip() if match else ""
    value = Value(match.start(1), match.start(1) + len(content), True) if match and content else None
    return value if value and is_secret(folded, cue, value, Tie.LITERAL) else None


def _argument(folded: str, cue: Cue) -> Value | None:
    """`setPassword("value")`, `getenv("API_KEY", "value")`."""
    link = compiled(r"""["']?[ \t]{0,4}+(?:\(|,)[ \t]{0,24}+(?=[bruf]{0,2}+["'])""").match(folded, cue.end)
    return _read(folded, cue, link.end(), Tie.ARGUMENT) if link else None


PLACE = r"\b(?:is|are|was|were)\s(?:\w{1,12}+\s)?(?:on|with|into)\b"


def _linked(folded: str, small: str, cue: Cue) -> Value | None:
    """`password is value`, `password should now be set to value`."""
    run = _links().match(small, cue.end)
    if not run:
        return None
    words = (run.group(1) or "is").split()
    is_set = "to" in words and _is_being_set(small, cue)
    is_firm = is_set or any(word in rules.VERBS and word != "to" for word in words)
    if compiled(PLACE).search(run.group()):
        is_firm = False  # "is on the whiteboard"
    if cue.family == "pass" and not is_firm:
        return None  # "pass it to the parser"
    return _read(folded, cue, run.end(), Tie.STATED if is_firm else Tie.LOOSE)


def _apart(folded: str, small: str, cue: Cue) -> Value | None:
    """`password for the staging box is value`, `the password was leaked: value`."""
    opener = compiled(r"[\"'`*)]{0,3}+,?[ \t]{1,3}+([(\[]|[^\W\d_]{1,20}+)").match(small, cue.end)
    if not opener:
        return None
    word = opener.group(1)
    if word in rules.BENIGN_SUFFIXES and word not in rules.GAP_OPENERS | rules.LINKS:
        return None  # "password policy is …"
    is_near = word in rules.GAP_OPENERS or word in ("(", "[")
    if is_near or cue.is_weak:
        tie, reach = (Tie.APART, GAP) if is_near else (Tie.DISTANT, GAP // 3)
    elif cue.family == "pass":
        return None  # "pass the flag, because the checks are broken on Tuesdays"
    else:
        tie, reach = Tie.TOLD, GAP // 2  # "the password Mara gave me is value"
    line_end = small.find("\n", cue.end, cue.end + GAP)
    limit = min(line_end + 3 if line_end >= 0 else cue.end + GAP, cue.end + reach)
    if tie is Tie.DISTANT and not compiled("[0-9]").search(small, cue.end, limit + GAP):
        return None
    for tries, link in enumerate(_late_links().finditer(small, opener.end(), limit)):
        if link.group(1) or tries == TRIES or (link.start() > cue.next_start and tries):
            return None  # the sentence ends, or the value belongs to the next cue
        if tie is Tie.TOLD and link.start() > cue.next_start:
            return None  # "the login is password = value"
        value = _told(folded, small, cue, link) if tie is Tie.TOLD else _read(folded, cue, link.end(), tie)
        if value:
            return value
    return None


def _told(folded: str, small: str, cue: Cue, link: re.Match[str]) -> Value | None:
    """The value after a late link if it ends the clause and no other noun takes it: "…, its version is 1a2b3c4d"."""
    if not rules.ATTRIBUTES.isdisjoint(small[max(cue.end, link.start() - 24) : link.start()].split()[-1:]):
        return None
    value = _read(folded, cue, link.end(), Tie.TOLD)
    is_last = value and (value.quoted or compiled(CLAUSE_END).match(folded, value.end))
    return value if is_last else None


def _replaced(folded: str, small: str, cue: Cue) -> Value | None:
    """`the password changed from value to value`: the first, and once that is masked, the second."""
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
    """A run of small words that links the cue to what follows it, in group 1; or `'s`, or a question mark."""
    word = rf"[ \t\r\n]{{1,3}}+(?:{_alternatives(rules.LINKS)})(?=[\s:=])"
    return re.compile(
        rf"(?:'s(?=\s)(?:{word}){{0,4}}+|[\"'`*)]{{0,3}}+(?:{_alternatives(rules.LINKS_UNSPACED)}"
        rf"|\?[ \t\n]{{1,3}}+(?:it'?s |it is )?|((?:{word}){{1,6}}+)))"
        r"[ \t]{0,3}+[:=]?[ \t\n]{0,3}+"
    )


@cache
def _late_links() -> re.Pattern[str]:
    """A verb and its small words, or a colon; or the end of the sentence, in group 1."""
    return re.compile(
        rf"([.?!;][ \t])|(?<![\w.])(?:{_alternatives(rules.VERBS)})"
        rf"(?:[ \t]{{1,2}}+(?:{_alternatives(rules.LINKS)})(?=[\s:])){{0,4}}+:?[ \t]{{1,2}}+"
        r"|(?:(?::|=|->|=>|>)[ \t\n]{1,3}+|[ \t]-{1,2}[ \t]{1,3}+)"
    )


BEFORE_FLAGS = ("", " ", "\t", "\n", '"', "'", "[", "`")


def _beside(folded: str, small: str, cue: Cue) -> Value | None:
    """`password value`, `--password value`, `ENV NAME value`, `PASSWORD 'value'`."""
    gap = compiled(r"(?:[\"'`*]{1,2}+,?)?[ \t]{1,8}+\(?(?!\x00)").match(folded, cue.end)
    if not gap:
        return _read(folded, cue, cue.end + 2, Tie.DISTANT) if folded.startswith(", ", cue.end) else None
    if gap.group().startswith(("`", "*")):  # "`--token` skips the prompt" speaks about the option
        return _read(folded, cue, gap.end(), Tie.LOOSE) if cue.family != "pass" else None
    is_flag = cue.name.startswith("-") and folded[cue.start - 1 : cue.start] in BEFORE_FLAGS
    if is_flag and "," in gap.group() and folded[gap.end() : gap.end() + 1] not in ("'", '"'):
        return None  # `add_argument("--token", help=…)`
    if is_flag or _is_setter(small, cue):
        return _read(folded, cue, gap.end(), Tie.LITERAL)
    if not cue.name.isascii():  # Russian has no "is", and the alphabet changes at the value
        if folded[gap.end() : gap.end() + 1].isascii():
            return _read(folded, cue, gap.end(), Tie.STATED)
        words = compiled(r"(?:[^\x00-\x7f\s]{1,20}+[ \t]{1,2}+){1,4}+(?=[!-~])").match(folded, gap.end())
        return _read(folded, cue, words.end(), Tie.TOLD) if words else None
    if cue.family == "password" and folded[gap.end() : gap.end() + 1] in ("'", '"', "`") and not gap.group().strip():
        return _read(folded, cue, gap.end(), Tie.STATED)  # `ALTER USER me PASSWORD '…'`
    return _read(folded, cue, gap.end(), Tie.LOOSE) if cue.family != "pass" else None


def _is_setter(small: str, cue: Cue) -> bool:
    """Does a command or a user name before the cue say that a value must follow? `ENV`, `setx`, `login me`."""
    words = ["", "", *small[max(0, cue.start - 80) : cue.start].split()[-3:]]
    if words[-1] in ("and", "with"):
        words.pop()
    first, second = words[-2:]
    if first in ("login", "user", "username"):
        return second not in ("and", "or", "with") and second[-1].isalnum()
    return second in ("env", "arg", "setx", "set", "setenv", "export") or (first == "set" and second.startswith("-"))


def _printed(folded: str, small: str, cue: Cue) -> Value | None:
    """The output of a command on the next line: `$ echo $API_TOKEN`, `>>> token`."""
    next_line = compiled(r"[\"'})]{0,3}+[ \t]{0,4}+\n[ \t]{0,8}+").match(folded, cue.end)
    if not next_line:
        return None
    line = small[max(0, cue.start - 80) : cue.start].rpartition("\n")[2].lstrip()
    if not line.startswith(("$ ", "% ", "# ", "> ", ">>> ", "echo ", "printenv ")):
        return None
    return _read(folded, cue, next_line.end(), Tie.LOOSE)


def _inserted(folded: str, small: str, cue: Cue) -> Value | None:
    """`insert into users (name, password) values ('me', 'value')`."""
    values = compiled(r"[\w\s,`\"]{0,400}+\)\s{1,8}+values\s{0,8}+\(\s{0,8}+").match(small, cue.end)
    if not values:
        return None
    cell = compiled(r"(?:'[^'\n]{0,512}+'|[^',()\n]{1,128}+)[ \t]{0,4}+,\s{0,8}+")
    position = values.end()
    for _ in range(small[max(0, cue.start - 400) : cue.start].rpartition("(")[2].count(",")):
        before = cell.match(folded, position)
        position = before.end() if before else len(folded)
    return _read(folded, cue, position, Tie.LITERAL)


def _stated_before(folded: str, small: str, cue: Cue) -> Value | None:
    """`use value as the password`, `value is my token`."""
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


def _column(folded: str, cue: Cue) -> tuple[list[Value], int]:
    """The secrets below a heading, `user,password` or `| user | password |`, and where the table ends."""
    secrets: list[Value] = []
    start = folded.rfind("\n", max(0, cue.start - 400), cue.start) + 1
    end = folded.find("\n", cue.end, cue.end + 400)
    if end < 0 or not compiled(r"[ \"'*`\r]{0,8}+[|\t;,\n]").match(folded, cue.end):
        return secrets, 0
    heading = folded[start:end]
    sign = next((sign for sign in "|\t;," if sign in heading), "\n")
    place = heading.count(sign, 0, cue.start - start)
    names = [name.strip(" \r\"'*`") for name in heading.split(sign)]
    is_heading = names[place].lower().endswith(cue.name.lower()) and names[place].count(" ") < 3  # `Secret access key`
    if sign == "\n" or not is_heading or sum(map(bool, names)) < 2:
        return secrets, 0
    for row in _rows(folded, end + 1):
        cells = row.split(sign)
        if len(cells) != heading.count(sign) + 1:
            break
        content = cells[place].strip(" \r\"'`")
        start = end + 1 + sum(map(len, cells[:place])) + place + cells[place].index(content)
        secret = Value(start, start + len(content), False)
        if content and is_secret(folded, cue, secret, Tie.LOOSE):
            secrets.append(secret)
        end += len(row) + 1
    return secrets, end


def _rows(folded: str, start: int) -> Iterator[str]:
    for _ in range(ROWS):
        end = folded.find("\n", start, start + 2000)
        yield folded[start : end if end >= 0 else start + 2000]
        if end < 0:
            return
        start = end + 1


# ---- the value ----


def _read(folded: str, cue: Cue, position: int, tie: Tie) -> Value | None:
    """The value that begins here, if it is a secret."""
    value = _quoted(folded, position) or _unquoted(folded, position, tie)
    if value is None:
        return None
    if value.quoted and _is_argument(folded, position, value):
        tie = Tie.ARGUMENT
    scheme = compiled(r"(?i:bearer|basic|token|apikey|bot|ssws)[ \t]{1,3}+").match(folded, value.start)
    if scheme and tie is not Tie.LOOSE:
        inner = (
            Value(scheme.end(), value.end, True) if value.end > scheme.end() else _unquoted(folded, scheme.end(), tie)
        )
        if inner and is_opaque(folded[inner.start : inner.end]) and " " not in folded[inner.start : inner.end]:
            return inner
    if cue.family == "credentials" or (cue.family == "pass" and folded[cue.start - 1 : cue.start] == "/"):
        second = _second_of_pair(folded, value)
        is_label = folded[value.start : value.end].lower() in rules.BENIGN_SUFFIXES  # "Credential helper: osxkeychain"
        if second and not is_label and folded[second.end : second.end + 2] not in ('":', "':"):
            cue, value = cue._replace(family="password"), second
    if is_secret(folded, cue, value, tie):
        return value
    if not value.quoted and cue.family == "password" and tie in (Tie.STATED, Tie.APART, Tie.ASSIGNED, Tie.LITERAL):
        phrase = compiled(r"[a-z]{3,12}+(?: [a-z]{3,12}+){3,7}+(?=[.,;:)]?(?:\s|$))").match(folded, value.start)
        if phrase and is_passphrase(phrase.group()):
            return Value(phrase.start(), phrase.end(), True)
    return None


def _is_argument(folded: str, position: int, value: Value) -> bool:
    """Is the string one of a list, or what a call is given that makes no value of it? `("a", "b")`, `push("a")`."""
    opening = compiled(r"([A-Za-z_][\w.:]{0,40}+)?[(\[]").match(folded, position)
    if not opening:
        return False
    if not opening.group(1):
        return compiled(r"[\"'`][ \t]{0,4}+,").match(folded, value.end) is not None
    return re.split("[.:]", opening.group(1).lower())[-1] not in rules.MAKERS


def _quoted(folded: str, position: int) -> Value | None:
    """A string literal, with or without a call around it: `"…"`, `b'…'`, `String::from("…")`, `**…**`."""
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
    """The word that begins here, without the punctuation around it."""
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
    """Of `me / value`, `me:value` and `"me", "value"`, the value."""
    pair = compiled(
        r"""[\w.@+-]{1,64}+["'`]?(?:[ \t]{1,2}+(?:/|\||and|und|et)[ \t]{1,2}+|:[ \t]?|/|,[ \t]{0,2}+(?=["']))"""
        r"""["'`]?(?=([^\s"'`]{3,128}+))"""
    ).match(folded, value.start)
    if not pair:
        return None
    secret = pair.group(1).rstrip(".,;)")
    return Value(pair.end(), pair.end() + len(secret), pair.group()[-1] in "\"'`") if secret else None
