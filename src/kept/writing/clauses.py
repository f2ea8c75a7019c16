"""Read a statement as clauses, and a clause as phrases: an opener ("in", "with", "is", "use") and the words after it.

This is the grammar of all comparisons: `values` and `conflicts` compare clauses. Every table of words for reading is
here.

A clause also knows how it speaks: whether it denies ("don't", "never"), whether it says that something has ended ("no
longer", "removed", "gone"), and what it names as replaced ("not 4000", "instead of axios", "from S3 to R2"), which is
then left out of its phrases. English; other languages have few of these words, so that nothing is made up.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from kept import text
from kept.text import compiled
from kept.writing.grammar import spelled

MAX_CHARS = 1_000  # a statement is short; only the beginning of a document is read
MAX_CLAUSES = 6
MAX_WORDS = 24  # a longer clause is a story

_CLAUSE = r"(?<=[.!?;])\s|\n|,?\s(?:but|[-–—])\s|\s\(|,\s(?!not\b|never\b)"
_WORD = r"[/@.~]?\w+(?:['.:/@+#=-]+\w+)*[+#%]*|="
_LABEL_WORDS = 3
_INTERJECTION = (
    r"(?i)\W*(?:on second thought|i thought .* again|the plan changed|i changed my mind|you're right|new rule"
    r"|correction|update|note|edit|decision|convention|preference|reminder)s?\W*"
)
_NUMBER = r"v?[0-9][0-9.,_:]*(?:[a-z]{1,3}|%)?"

# What may follow a statement without changing it, and how it may begin.
_TAIL = r"""(?xi) [\s,] (?: because | since\ \S | so\ that | otherwise | hence | therefore | which | due\ to
    | as\ of\b | from\ now\ on | these\ days | after\ all | going\ forward | at\ the\ moment | for\ now
    | in\ this\ (?:project|repo|repository|codebase)\b | here\W*$
    | instead\W*$ | please\W*$ ) .*"""
_PREAMBLE = r"(?i)^(?:the plan is to|(?:we |i )?(?:decided|agreed|planned|want(?:ed)?(?: you)?) to)\b"
_ROUGHLY = r"(?i)\b(?:at most|up to|about|roughly|exactly) (?=\d|[a-z]+ \w+s\b)"
_HAS_NUMBER = r"(?i)\b(?:has|have|had) (?=\d)"  # read as "is": "A workspace can have 10 members"
_TO_USE = r"""(?xi) \b (?: decided\ (?:to\ (?:use|go\ with|stay\ with)|on|for) | settled\ (?:on|for) | opted\ for
    | go(?:ing)?\ with | went\ with | switched\ to | stick(?:ing)?\ with | rather\ have ) \b"""

NEGATORS = frozenset("not never no cannot nobody".split())
DENIALS = NEGATORS | frozenset("without nothing neither nor stop avoid except unless".split())
# Verbs that affirm something, and those that deny the same; a clause has one key for both.
_OPPOSITES = (
    (
        "allow allows allowed permit permits",
        "forbid forbids forbidden deny denies disallow prohibit prohibits ban bans",
    ),
    ("enable enables enabled activate", "disable disables disabled deactivate"),
    ("include includes", "exclude excludes"),
    ("accept accepts", "reject rejects"),
    ("show shows shown", "hide hides hidden"),
)
_POLES = {verb: f"+{pair[0].split()[0]}" for pair in _OPPOSITES for verbs in pair for verb in verbs.split()}
_REFUSALS = "|".join(verb for _, denying in _OPPOSITES for verb in denying.split())
_NEGATED = f"(?:{'|'.join(sorted(NEGATORS))}|without|forget|skip|avoid|{_REFUSALS})"
_DENIED = rf"(?i)\b{_NEGATED}\b|n't\b"
_PARTLY = r"(?i)(?:\bnot|\bnever|n't) (?:only|just|all|every|always|necessarily|merely)\b"  # denies only a part

# A word of every pattern below.
_ANY_TURN = rf"""(?xi) \b (?: {_NEGATED} | instead | rather | place | from | over
    | than | replac\w+ | longer | any\ ?more | need | remov\w+ | drop\w* | gone | stop\w* | quit | retired?
    | rid | off | down | out | discontinued | abandoned | decommissioned ) \b | n't\b"""
# How a clause names what it replaces: the group `old`.
_UPTO = r"(?=\s(?:for|in|on|when|at|to)\s|[,;]|\W*$)"
_MOVED = "mov|migrat|switch|chang|port|convert|went"
_REPLACED = (
    rf"(?i)(?:,|\band) (?:not|never) (?P<old>\S.*?){_UPTO}",
    rf"(?i)\b(?:instead of|rather than|in place of) (?P<old>\S.*?){_UPTO}",
    r"(?i)(?<=\brather )(?P<new>.*) than (?P<old>\S.*)$",
    rf"(?i)\b(?:{_MOVED})\w* (?P<what>.*?)\bfrom (?P<old>\S.*?) to (?P<new>\S.*?){_UPTO}",
    rf"(?i)\breplac(?:e|es|ed|ing) (?P<old>\S.*?) (?:with|by) (?P<new>\S.*?){_UPTO}",
    rf"(?i)\b(?:prefer(?:s|red)?|chose|choose|chosen|picked|favou?rs?) (?P<new>.*?) over (?P<old>\S.*?){_UPTO}",
)
_CONTRAST_SIGNS = ("not ", "never ", "instead of ", "rather ", "in place of ", "from ", "replac", " over ")
_ENDED = r"""(?xi) \b (?: no\ longer | any\ ?more | (?:not|don't|doesn't|didn't)\ (?:need|have\ to)
    | no\ need\ (?:for|to) | removed | dropped | gone | stopped | retired | got\ rid\ of | discontinued | abandoned
    | decommissioned | (?:taken|switched|turned)\ off | (?:taken|shut)\ down | (?:taken|phased)\ out ) \b"""
_TO_END = r"(?i)\b(?:remove|removing|drop|stop|quit|retire|forget|get rid of)\b"
_KEPT_GOING = r"(?i)\b(?:not|never|don't|doesn't|didn't|cannot|can't) (?:remove|drop|stop|quit|retire|forget)"

# A statement that says itself that it changes something.
_SAYS_SO = r"""(?xi) \b (?: now | no\ longer | any\ ?more | from\ now\ on | these\ days | after\ all | instead
    | any\ longer | actually | correction | second\ thought | going\ forward | new\ rule | changed | as\ of | since
    | moved | switched | migrated | renamed | replaced | upgraded | downgraded | stopped | dropped | got\ rid\ of
    | scratch ) \b | ^(?:no|sorry),"""

_BE = frozenset("is are am was were be been being =".split())
_USE = frozenset("use uses using prefer prefers like likes choose chose adopt adopted follow follows".split())
_OPENERS = frozenset(
    "in on at for within under during before after until unless except without between when while if where into onto "
    "to from with by via through as about per against every each and or than over".split()
)
# Words that carry no meaning of their own, and words that carry none in a comparison of values.
_LIGHT = frozenset(
    "a an the this that these those it its it's we we'll we're our you your i i'd i'll i'm my he she they their them "
    "us me there has had have having will would just please also too now currently ok okay so then of let's".split()
)
_FILLERS = (_LIGHT | NEGATORS) | frozenset(
    "do does did done must should shall can could may might always actually sorry correction yes still already very "
    "really called named only all both either longer anymore any more need needs needed here".split()
)
_OPENER_OF = {
    **{word: word for word in _OPENERS},
    **dict.fromkeys(_USE, "use"),
    **dict.fromkeys(_BE, "be"),
}
_ENDING = frozenset(
    "remove removed removing drop drops dropped gone stop stops stopped quit retire retired forget avoid".split()
)
# Participles that no stemmer leads back to their verb.
_IRREGULAR = dict(
    pair.split(":")
    for pair in "built:build written:write kept:keep sent:send held:hold made:make run:run ran:run sold:sell "
    "bought:buy chosen:choose drawn:draw shown:show taken:take given:give led:lead read:read set:set put:put".split()
)


class Word(NamedTuple):
    """A word as it is compared, and as it was written."""

    key: str
    written: str
    is_first: bool = False

    @property
    def is_number(self) -> bool:
        return compiled(_NUMBER).fullmatch(self.key) is not None

    @property
    def is_name(self) -> bool:
        """Whether it looks like a name: a capital inside a sentence, a digit, or a sign as in a path."""
        body = self.written[1:] if self.is_first else self.written
        return not self.written.isalpha() or body != body.lower()


class Phrase(NamedTuple):
    """An opener, empty at the beginning of a clause, and the words up to the next one."""

    opener: str
    words: tuple[Word, ...]


class Clause(Struct, frozen=True, kw_only=True):
    """What a clause says, and how."""

    phrases: tuple[Phrase, ...]
    keys: frozenset[str]  # of all its words
    denies: bool = False
    ends: bool = False  # something is to end
    has_ended: bool = False  # and has
    replaced: frozenset[str] = frozenset()

    @property
    def is_plain(self) -> bool:
        """It neither denies nor ends something."""
        return not self.denies and not self.ends


def keys_of(content: str) -> frozenset[str]:
    """All words of a text that mean something, as they are compared."""
    words = compiled(_WORD).findall(content[:MAX_CHARS].replace("’", "'").lower())
    return frozenset(key_of(word) for word in words if word not in _LIGHT and word not in _BE)


def tells_of_change(content: str) -> bool:
    """Whether a statement says itself that it changes something: "now", "no longer", "moved to"."""
    return compiled(_SAYS_SO).search(content) is not None


def handles_of(content: str) -> Sequence[str]:
    """The handles of a statement by which what it replaces is found: those that tell something, at least two.

    One that replaces nothing has no more than its own. "From" and "for" are handles of short texts.
    """
    own = text.handles_of(content)
    if not compiled(_ANY_TURN).search(content[:MAX_CHARS]):  # as for most
        return own
    if not any(clause.replaced or clause.has_ended for clause in clauses_of(content)):
        return own
    found = [word for word in own if word not in _FILLERS and word not in _OPENERS and word not in _BE]
    return found if len(found) > 1 else own


def clauses_of(content: str) -> tuple[Clause, ...]:
    """The clauses of a statement, without questions."""
    return _clauses_of(content[:MAX_CHARS])


@lru_cache(maxsize=1024)  # a new text is compared with several others, and they with the next one
def _clauses_of(content: str) -> tuple[Clause, ...]:
    clauses = [_read(part.strip()) for part in _split(content)]
    return tuple([clause for clause in clauses if clause is not None][:MAX_CLAUSES])


def _split(content: str) -> list[str]:
    parts = compiled(_CLAUSE).split(spelled(content))[: 2 * MAX_CLAUSES]
    parts = [piece for part in parts for piece in _at_colon(part)]
    return [part for part in parts if not part.rstrip().endswith("?") and not compiled(_INTERJECTION).fullmatch(part)]


def _at_colon(part: str) -> list[str]:
    """Split at a colon, but keep a label: "Linux: fans are on M7" and "GRBL: fans are on M8" are about two things."""
    head, colon, tail = part.partition(": ")
    if not colon or (len(head.split()) <= _LABEL_WORDS and not compiled(_INTERJECTION).fullmatch(head)):
        return [part]
    return [head, *_at_colon(tail)]


def _read(part: str) -> Clause | None:
    if part.count(" ") > MAX_WORDS:
        return None
    part = compiled(_ROUGHLY).sub("", compiled(_TAIL).sub("", part))
    if " ha" in part:  # as in few
        part = compiled(_HAS_NUMBER).sub("= ", part)
    # Most clauses have none of these words, and need not be searched for each.
    turn = _turn_of(part) if compiled(_ANY_TURN).search(part) else _Turn(part)
    if turn is None:
        return None
    phrases = _phrases(compiled(_TO_USE).sub("use", compiled(_PREAMBLE).sub("", turn.rest)))
    keys = _keys_in(phrases)
    if not keys:
        return None
    replaced = _keys_in(_phrases(turn.replaced)) if turn.replaced else frozenset()
    return Clause(
        phrases=phrases, keys=keys, denies=turn.denies, ends=turn.ends, has_ended=turn.has_ended, replaced=replaced
    )


class _Turn(NamedTuple):
    """How a clause denies, ends or replaces something, and the rest of it."""

    rest: str
    replaced: str = ""
    denies: bool = False
    ends: bool = False
    has_ended: bool = False


def _turn_of(part: str) -> _Turn | None:
    """Find how a clause denies, ends or replaces something; None if it denies only a part."""
    part, replaced = _contrast_in(part) or (part, "")
    if compiled(_PARTLY).search(part):
        return None
    keeps_going = compiled(_KEPT_GOING).search(part) is not None
    if not keeps_going and compiled(_ENDED).search(part):
        return _Turn(compiled(_ENDED).sub(" ", part), replaced, ends=True, has_ended=True)
    if not keeps_going and compiled(_TO_END).search(part):
        return _Turn(part, replaced, ends=True)
    return _Turn(part, replaced, denies=len(compiled(_DENIED).findall(part)) % 2 == 1)  # "never without" affirms


def _contrast_in(part: str) -> tuple[str, str] | None:
    """Return a part of a statement without the thing that it names as replaced or not meant, and that thing.

    None if it names none, or only another place for the same thing: "use tabs here, not in YAML".
    """
    lower = part.lower()
    if not any(sign in lower for sign in _CONTRAST_SIGNS):  # as in most
        return None
    for pattern in _REPLACED:
        if found := compiled(pattern).search(part):
            groups = found.groupdict()
            moved = groups.get("what")
            new = " ".join(filter(None, (moved, None if moved is None else "to", groups.get("new"))))
            is_elsewhere = groups["old"].split(" ")[0].lower() in _OPENERS
            return None if is_elsewhere else (f"{part[: found.start()]} {new} {part[found.end() :]}", groups["old"])
    return None


def _phrases(part: str) -> tuple[Phrase, ...]:
    phrases: list[tuple[str, list[Word]]] = [("", [])]
    for at, written in enumerate(compiled(_WORD).findall(part)):
        lower = written.lower()
        if written.isupper() and len(written) > 1:  # "the US", "IT"
            phrases[-1][1].append(Word(lower, written))
        elif opener := _OPENER_OF.get(lower):
            phrases.append((opener, []))
        elif pole := _POLES.get(lower):
            phrases[-1][1].append(Word(pole, written))
        elif _carries_meaning(lower) and (key := key_of(lower)):
            phrases[-1][1].append(Word(key, written, is_first=at == 0))
    return tuple(Phrase(opener, tuple(words)) for opener, words in _with_states(phrases))


def _with_states(phrases: list[tuple[str, list[Word]]]) -> list[tuple[str, list[Word]]]:
    """Read an "on" before which something is, and after which nothing stands, as its state: "telemetry is on"."""
    found: list[tuple[str, list[Word]]] = []
    for opener, words in phrases:
        if opener == "on" and not words and found and found[-1][0] == "be":
            found[-1][1].append(Word("on", "on"))
        else:
            found.append((opener, words))
    return found


def _carries_meaning(word: str) -> bool:
    return word not in _FILLERS and word not in _ENDING and not word.endswith("n't")


def _keys_in(phrases: Iterable[Phrase]) -> frozenset[str]:
    return frozenset([word.key for _, words in phrases for word in words])


def key_of(word: str) -> str:
    """Return a word in small letters as it is compared: its stem, the digits of a number word, or nothing."""
    if number := text.NUMBER_WORDS.get(word):
        return number
    if compiled(_NUMBER).fullmatch(word):
        return word.rstrip(".,:_")
    tokens = text.words(_IRREGULAR.get(word, word))
    return tokens[0] if tokens else ""
