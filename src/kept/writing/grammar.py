"""Read a sentence of a user: its openers, what it does (states, asks, orders, reacts), and the words that weigh.

Used by extraction. The words are data: `words.txt`, for English, German, French, Spanish, Portuguese, Italian and
Japanese. Rule: no table names a topic. A sentence in a language that no table knows is a statement.
"""

import re
from functools import cache, lru_cache
from pathlib import Path

from msgspec import Struct

from kept.text import compiled
from kept.writing.speech import masked

MIN_LETTERS = 4  # that must be left behind an opener
MAX_REACTION_WORDS = 2  # beside words that only react: "thanks, perfect work"

MARKS = (
    "rule standing prohibits change warns prefers contrasts names_self undo guess fleeting first_person objects "
    "symptom decides wish reason points_back mends fails"
).split()
_TABLES = Path(__file__).parent / "words.txt"
_WORD = r"[\w'’-]+"
# Openers, the signs behind which each is one, and the mark that it gives to the statement.
_OPENERS = (
    ("connects", r"[\s,.:;!—–-]", ""),
    ("remarks", r"\s?[,.:;!—–-]", ""),
    ("reminds", r"[\s,:]", "recalls"),
    ("warns_of", r"\s?[,.:!—–-]", "warns"),
    ("turns", r"[\s,.:;!—–-]", "change"),
    ("denies", r"[,.:;!—–、-]", "objects"),
)
_GIVES = {name: mark for name, _, mark in _OPENERS if mark}
_BARE_OBJECTION = r"(?i)(?:nope|wrong|actually|falsch|doch)\b"
# Contractions typed without their sign, where no other word is written so: "dont", "thats", but not "its" and "were".
_TYPED = (
    r"(?i)\b(?:(do|does|did|is|are|was|has|have|had|ca|wo|could|should|would)(nt)|(that|what|there|let)(s)|(i|we|you|they)(ve)"
    r"|(you|they)(re))\b"
)
# "Tests in this folder are slow", "Release notes must …": a noun that looks like the verb of an order.
_NOT_AN_ORDER = (
    r"(?i)^\w+ \w+s (?:in|are|is|must|have|with|as) "
    r"|^\w+ \w+s (?!for|to|in|of|and|or|with|the|an?|that|which|so|from|on|at|by|as|then|again|please|now|first|until"
    r"|below|above)\w+ "
    r"|^\w+ (?:is|are|was|were|has|have|must|should|goes|go|come|comes)\b"
)


class Words(Struct, frozen=True):
    """A table of `words.txt`: single words, and phrases as a regular expression."""

    single: frozenset[str]
    phrases: re.Pattern[str] | None

    def are_in(self, words: frozenset[str], text: str) -> bool:
        return not self.single.isdisjoint(words) or (self.phrases is not None and bool(self.phrases.search(text)))


@cache
def tables() -> dict[str, Words]:
    """Return the tables of `words.txt` by name."""
    single: dict[str, list[str]] = {}
    phrases: dict[str, list[str]] = {}
    name = ""
    for line in _TABLES.read_text("utf-8").splitlines():
        if line.startswith("    "):
            _, sign, ways = compiled(r"    (?:(\w\w) )?([~=] )?(.+)").fullmatch(line).groups()  # type: ignore[union-attr]
            if sign:
                phrases[name].append(rf"\b(?:{ways})\b" if sign == "~ " else ways)
            else:
                single[name] += ways.split()
        elif line and not line.startswith("#"):
            name = line.rstrip(":")
            single[name], phrases[name] = [], []
    return {
        name: Words(frozenset(words), re.compile("|".join(phrases[name])) if phrases[name] else None)
        for name, words in single.items()
    }


@cache
def _opener() -> re.Pattern[str]:
    """Return the pattern of one opener; its last group is the name of its table."""
    ways = []
    for name, end, _ in _OPENERS:
        table = tables()[name]
        phrases = [table.phrases.pattern] if table.phrases else []
        ways.append(rf"(?P<{name}>{'|'.join([*phrases, *map(re.escape, sorted(table.single))])})(?={end})")
    return re.compile(rf"(?i)\W*(?:{'|'.join(ways)})[\s,.:;!—–、-]*")


class Reading(Struct, frozen=True):
    """A sentence without its openers, and what it does."""

    text: str
    act: str = "states"  # or asks, orders, reacts
    marks: frozenset[str] = frozenset()

    def has(self, *names: str) -> bool:
        """Return True if the sentence has one of these marks."""
        return not self.marks.isdisjoint(names)


def spelled(sentence: str) -> str:
    """Return a sentence with the signs of contractions: "dont" as "don't". Only for reading: a text keeps its words."""
    return compiled(_TYPED).sub(_contracted, sentence.replace("’", "'"))


def _contracted(typed: re.Match[str]) -> str:
    word, end = filter(None, typed.groups())
    return f"{word}n't" if end.lower() == "nt" else f"{word}'{end}"


def without_openers(sentence: str) -> tuple[str, set[str]]:
    """Remove the openers of a sentence, unless nothing else is left. Return the rest and the marks they give it."""
    rest, marks = sentence.strip(), set[str]()
    while found := _opener().match(rest):
        left = rest[found.end() :]
        if sum(map(str.isalnum, left)) < MIN_LETTERS:
            break
        marks |= _marks_of(found)
        rest = left
    return rest, marks


def _marks_of(opener: re.Match[str]) -> set[str]:
    return {_GIVES[opener.lastgroup]} if opener.lastgroup in _GIVES else set()


@lru_cache(maxsize=2048)  # a sentence is read when it is found, compared and judged
def read(sentence: str) -> Reading:
    """Read one sentence."""
    sentence = sentence.replace("’", "'")
    rest, marks = without_openers(sentence)
    own = spelled(masked(rest)).lower()
    words = compiled(_WORD).findall(own)
    known = tables()
    marks |= {name for name in MARKS if known[name].are_in(frozenset(words), own)}
    marks |= {"symptom"} if "fails" in marks else set()
    if compiled(_BARE_OBJECTION).match(sentence):
        marks.add("objects")
    alone = _opener().fullmatch(f"{rest} ")
    if alone is not None:
        return Reading(rest, "reacts", frozenset(marks | _marks_of(alone)))
    act = _act(rest, own, words, marks)
    if (
        act == "orders"
        and "now" in (words[0], words[-1])
        and not known["change"].are_in(frozenset(words) - {"now"}, own)
    ):
        marks.discard("change")  # "now" is the next step
    return Reading(rest, act, frozenset(marks))


def _act(rest: str, own: str, words: list[str], marks: set[str]) -> str:
    known = tables()
    if _only_reacts(rest, own, words, marks) or ("undo" in marks and len(words) <= MAX_REACTION_WORDS):
        return "reacts"
    if known["asks"].are_in(frozenset(), own):
        return "asks"
    spoken = (word.strip(",.;!") for word in own.split())
    verb = next((word for word in spoken if word not in known["courtesy"].single), "")
    is_order = verb in known["verbs"].single and not compiled(_NOT_AN_ORDER).match(own)
    return "orders" if is_order or known["orders"].are_in(frozenset(), own) else "states"


def _only_reacts(rest: str, own: str, words: list[str], marks: set[str]) -> bool:
    """Match thanks, greetings and agreement, with a word or two beside them."""
    has_name = compiled(r"(?<=\w )[A-Z][a-z]").search(rest) is not None
    if has_name or marks & {"rule", "change", "recalls", "warns", "standing"} or any(map(str.isdigit, own)):
        return False
    reacting = tables()["reacts"].single
    return len([word for word in words if word not in reacting]) < min(MAX_REACTION_WORDS + 1, len(words))
