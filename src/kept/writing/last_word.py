"""Decide if a later statement of a user ends an earlier one: the last word counts.

Used by extraction within a session and by `memory.findings` across sessions. Compared are the things two statements
name, their values (numbers with units, days, names), and what the later one says is over. Rule: the later statement
must be about the same thing; if that is not sure, the answer is `DOUBT`, and both stay proposals.
"""

from functools import lru_cache

from msgspec import Struct

from kept import text
from kept.text import compiled
from kept.writing.conflicts import compare
from kept.writing.grammar import Reading, read, tables

NO, DOUBT, YES = range(3)
SHORT = 120  # characters: a longer text is compared only with one that says that something changed
MIN_SHARE = 0.34  # of the things in the shorter statement: fewer in common are another subject

_PURPOSE = r"\b(?:for|für|pour|para) (?:the |our |all |die |den |das |les? |la |los? |las? |os? |as? )?(\w{3,})"
_NAME = r"(?<=[\w,'] )[A-Z][\w-]+"
_WORD = r"[^\W_][\w'’./@+-]*"
_NUMBERS = dict(
    pair.split(":")
    for pair in "one:1 two:2 three:3 four:4 five:5 six:6 seven:7 eight:8 nine:9 ten:10 twelve:12 fifteen:15 twenty:20 "
    "thirty:30 forty:40 fifty:50 sixty:60 hundred:100 thousand:1000".split()
)
_QUANTITY = rf"(?i)(?<![\w.:])(\d[\d.,]*(?!:)|{'|'.join(_NUMBERS)})[\s-]?([a-z%µ°€$]{{1,12}}|[\u3040-\u9fff])?"
_SLOTS = {
    "day": r"""(?xi) \b (?: (?:mon|tues|wednes|thurs|fri|satur|sun)days?
        | (?:mon|diens|donners|frei|sams|sonn)tags? | mittwochs?
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
# Words behind or before which a statement names what is over.
_OVER = r"""(?xi) \b
    (?: no\ longer | not | isn't | aren't | don't\ use | drop(?:ped)? | forget | scrap | instead\ of | rather\ than
    | without | from | removed? | stop(?:ped)? | over | nor | kein\w* | nicht(?:\ mehr)? | statt | pas | plus
    | au\ lieu\ de | ne\ sont\ plus | n'est\ plus | no | ya\ no | en\ vez\ de | não | já\ não | em\ vez\ de )\s
    (?: (?: use|using|the|a|an|to|in|on|at|with|den|die|das|ist|mehr|von|bei|le|la|les|est|el|los|es|o|os|é|na
        |no )\s ){0,2}
    ( [^\s,;.!?]+ (?:\.\w+)? )"""
_ENDED = r"""(?xi) ([^\s,;.!?]+)\ (?: (?: is|are|was|has|ist|sind|est|es|está|é )\s )?
    (?: gone | out | off(?:\ the\ table)? | history | dead | dropped | left(?:\ the|\ us)? | any\ ?more | on\ leave
    | weg | raus | nicht\ mehr | ya\ no | já\ não | não\ vale\ mais ) \b"""


class Values(Struct, frozen=True):
    """The things that a statement names, its values by slot, and what it says is over."""

    things: frozenset[str]
    slots: dict[str, frozenset[str]]
    names: frozenset[str]
    keys: frozenset[str]  # things, names and figures: what another statement may say is over

    def may_meet(self, other: "Values", over: frozenset[str]) -> bool:
        """Return False if the two are certainly not about the same thing. `over`: what this one says is over."""
        is_apart = self.things.isdisjoint(other.things) and over.isdisjoint(other.keys)
        return not is_apart or ("home" in self.slots and "home" in other.slots)


@lru_cache(maxsize=1024)  # each statement is compared with several others
def values_of(content: str) -> Values:
    """Read the things and values of a statement."""
    slots = {name: frozenset(map(str.lower, compiled(words).findall(content))) for name, words in _SLOTS.items()}
    for number, unit in compiled(_QUANTITY).findall(content):
        figure = _NUMBERS.get(number.lower(), number).rstrip(".,").replace(",", "")
        name = f"number {_stem(unit)}"
        slots[name] = slots.get(name, frozenset()) | {figure}
    things = things_in(content)
    names = frozenset(_stem(word) for word in compiled(_NAME).findall(content))
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


@lru_cache(maxsize=256)
def over_in(content: str) -> frozenset[str]:
    """Return the things that a statement says are over."""
    words = [*compiled(_OVER).findall(content), *compiled(_ENDED).findall(content)]
    return frozenset(
        stem for word in words if (stem := _stem(word)) and word.lower() not in tables()["function"].single
    )


@lru_cache(maxsize=2048)  # asked for points, context and comparison of the same statement
def things_in(content: str) -> frozenset[str]:
    """Return the stems of the words that name something, in any language."""
    words = [word.rstrip(".'-/") for word in compiled(_WORD).findall(content.replace("’", "'"))]
    if content.isascii():
        return frozenset([_stem(word.lower()) for word in words if _names_something(word)]) - {""}
    words = [word for word in words if not _is_cjk(word)]
    named = {_stem(word.lower()) for word in words if _names_something(word)}
    pairs = compiled(r"[\u30a0-\u30ff]{2,}|[\u3400-\u9fff]{2,}").findall(content)
    return frozenset(named | set(pairs)) - {""}


def _names_something(word: str) -> bool:
    is_long = len(word) > 2 or not word.isalpha() or (len(word) > 1 and word.isupper())
    return is_long and word.lower() not in tables()["function"].single


def _is_cjk(word: str) -> bool:
    return compiled(r"[\u3040-\u9fff]").search(word) is not None


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    return next(iter(text.words(word)), "") if word else ""


class _Pair(Struct, frozen=True):
    """Two statements that are compared, and how many things they share."""

    later: str
    earlier: str
    said: Reading
    new: Values
    old: Values
    is_next: bool

    @property
    def says_so(self) -> bool:
        return self.said.has("change", "objects")

    @property
    def shared(self) -> int:
        return sum(not thing.isdigit() for thing in self.new.things & self.old.things)

    @property
    def share(self) -> float:
        """Return the part of the things in the shorter statement that both name."""
        return self.shared / max(1, min(len(self.new.things), len(self.old.things)))


def overrules(later: str, earlier: str, *, is_next: bool = False) -> int:
    """Return YES if the later statement ends the earlier one, DOUBT if it may. `is_next`: it follows directly."""
    pair = _Pair(later, earlier, read(later), values_of(later), values_of(earlier), is_next)
    if is_next and pair.said.has("undo"):
        return YES
    over = over_in(later)
    if not is_next and not pair.new.may_meet(pair.old, over):
        return NO
    if over & pair.old.keys and _is_affirmed(over, earlier):
        return YES if _has_same_purpose(later, earlier) else DOUBT
    return _by_value(pair) or _by_change(pair)


def _by_value(pair: _Pair) -> int:
    """Compare two statements that fill the same slot with other values."""
    if not _has_other_value(pair.new, pair.old):
        return NO
    if "home" in pair.new.slots or (pair.says_so and (pair.shared or pair.is_next)):
        return YES
    if not pair.shared:
        return NO
    return YES if pair.share >= MIN_SHARE else DOUBT


def _by_change(pair: _Pair) -> int:
    """Compare two statements about the same thing without values: by the words that say that something changed."""
    if not pair.shared:
        return NO
    says_so = pair.says_so
    is_compared = says_so or pair.said.has("rule") or len(pair.earlier) < SHORT
    found = compare(pair.earlier, pair.later, set, says_so=says_so) if is_compared else None
    if found is not None and found.type != "ambiguous":
        return YES
    if not says_so or pair.share < MIN_SHARE:
        return DOUBT if found is not None else NO
    return YES if pair.shared > 1 else DOUBT


def _has_other_value(new: Values, old: Values) -> bool:
    """Return True if both fill a slot, with nothing in common."""
    return any(new.slots[name].isdisjoint(old.slots[name]) for name in new.slots.keys() & old.slots.keys())


def _has_same_purpose(later: str, earlier: str) -> bool:
    """Return False if the two name different purposes: "for the queue", "for the cache"."""
    purposes = [frozenset(map(_stem, compiled(_PURPOSE).findall(said.lower()))) for said in (later, earlier)]
    return not all(purposes) or not purposes[0].isdisjoint(purposes[1])


def _is_affirmed(over: frozenset[str], earlier: str) -> bool:
    """Return True if the earlier statement does not say itself that these things are over."""
    return not over & over_in(earlier)
