"""Read the things that a statement names, and its values: numbers with units, days, times, names, homes, languages.

The lowest level of `last_word`; extraction compares statements by it. Rule: a thing is a word that names
something, in any language; which words name nothing is in `words.txt`.
"""

from functools import lru_cache

from msgspec import Struct

from kept import text
from kept.text import compiled
from kept.writing.grammar import spelled, tables

_NAME = r"(?<=[\w,'] )[A-Z][\w-]+"
WORD = r"[^\W_][\w'’./@+-]*"
_NUMBERS = dict(
    pair.split(":")
    for pair in "one:1 two:2 three:3 four:4 five:5 six:6 seven:7 eight:8 nine:9 ten:10 twelve:12 fifteen:15 twenty:20 "
    "thirty:30 forty:40 fifty:50 sixty:60 hundred:100 thousand:1000".split()
)
_QUANTITY = rf"(?i)(?<![\w.:])(\d[\d.,]*(?![\d:])|{'|'.join(_NUMBERS)})[\s-]?([a-z%µ°€$]{{1,12}}|[\u3040-\u9fff])?"
_SLOTS = {
    "day": r"""(?xi) \b (?: (?:mon|tues|wednes|thurs|fri|satur|sun)days?
        | (?:mon|diens|donners|frei|sams|sonn)tags? | mittwochs?
        | lunedì | martedì | mercoledì | giovedì | venerdì | sabato | domenica
        | lundi | mardi | mercredi | jeudi | vendredi | samedi | dimanche
        | lunes | martes | miércoles | jueves | viernes | sábados? | domingos?
        | segundas? | terças? | quartas? | quintas? | sextas? ) \b""",
    "clock": r"\b\d{1,2}:\d\d\b|\b\d{1,2} ?(?:am|pm|uhr|h)\b",
    "home": r"""(?x) (?i: \b (?: live | lives | living | moved | based | wohn\w+ | gezogen | ziehen | habite\w*
        | déménag\w+ | viv[oe]\w* | mor[oa]\w* | mud\w+ ) ) \b [^.,;]{0,30}?
        \b (?:in|to|nach|à|en|a|em|para) [ ] ([A-ZÀ-Þ]\w+)""",
    "tongue": r"""(?xi) \b (?: english | german | french | spanish | portuguese | italian | englisch | deutsch
        | französisch | anglais | allemand | français | inglés | español | inglês | português ) \b""",
}


class Values(Struct, frozen=True):
    """Return the things that a statement names, its values by slot, and the things that another may end."""

    things: frozenset[str]
    slots: dict[str, frozenset[str]]
    names: frozenset[str]
    keys: frozenset[str]  # things, names and figures: another statement may say that they are over

    def may_meet(self, other: "Values", over: frozenset[str]) -> bool:
        """Return False if the two are certainly not about the same thing. `over`: the things that this one ends."""
        is_apart = self.things.isdisjoint(other.things) and over.isdisjoint(other.keys)
        return not is_apart or ("home" in self.slots and "home" in other.slots)


@lru_cache(maxsize=1024)  # each statement is compared with several others
def values_of(content: str) -> Values:
    """Read the things and values of a statement."""
    slots = {name: frozenset(map(str.lower, compiled(words).findall(content))) for name, words in _SLOTS.items()}
    for number, unit in compiled(_QUANTITY).findall(content):
        figure = _NUMBERS.get(number.lower(), number).rstrip(".,").replace(",", "")
        name = f"number {stem_of(unit)}"
        slots[name] = slots.get(name, frozenset()) | {figure}
    things = things_in(content)
    names = frozenset(stem_of(word) for word in compiled(_NAME).findall(content))
    figures = frozenset(figure for found in slots.values() for figure in found)
    return Values(
        things,
        {name: found for name, found in slots.items() if found},
        names,
        things | names | figures,
    )


def is_day(word: str) -> bool:
    """Return True for a day of the week."""
    return compiled(_SLOTS["day"]).fullmatch(word) is not None


@lru_cache(maxsize=2048)  # asked for points, context and comparison of the same statement
def things_in(content: str) -> frozenset[str]:
    """Return the stems of the words that name something, in any language."""
    words = [word.rstrip(".'-/") for word in compiled(WORD).findall(spelled(content))]
    if content.isascii():
        return frozenset([stem_of(word.lower()) for word in words if _names_something(word)]) - {""}
    words = [word for word in words if not _is_cjk(word)]
    named = {stem_of(word.lower()) for word in words if _names_something(word)}
    pairs = compiled(r"[\u30a0-\u30ff]{2,}|[\u3400-\u9fff]{2,}").findall(content)
    return frozenset(named | set(pairs)) - {""}


def _names_something(word: str) -> bool:
    is_long = len(word) > 2 or not word.isalpha() or (len(word) > 1 and word.isupper())
    return is_long and not word.endswith("n't") and word.lower() not in tables()["function"].single


def _is_cjk(word: str) -> bool:
    return compiled(r"[\u3040-\u9fff]").search(word) is not None


@lru_cache(maxsize=4096)
def stem_of(word: str) -> str:
    """Return the stem of a word as things are compared; "" if it has none."""
    return next(iter(text.words(word)), "") if word else ""
