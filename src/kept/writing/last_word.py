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
    zip(
        "one two three four five six seven eight nine ten twelve fifteen twenty thirty forty fifty sixty hundred "
        "thousand".split(),
        (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 40, 50, 60, 100, 1000),
        strict=True,
    )
)
_QUANTITY = rf"(?i)(?<![\w.:])(\d[\d.,]*(?!:)|{'|'.join(_NUMBERS)})[\s-]?([a-z%µ°€$]{{1,12}}|[\u3040-\u9fff])?"
_SLOTS = {
    "day": r"(?i)\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:mon|diens|donners|frei|sams|sonn)tags?"
    r"|mittwochs?|lundi|mardi"
    r"|mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes|miércoles|jueves|viernes|sábados?|domingos?|segundas?"
    r"|terças?|quartas?"
    r"|quintas?|sextas?)\b",
    "clock": r"\b\d{1,2}:\d\d\b|\b\d{1,2} ?(?:am|pm|uhr|h)\b",
    "home": r"(?i:\b(?:live|lives|living|moved|based|wohn\w+|gezogen|ziehen|habite\w*|déménag\w+|viv[oe]\w*"
    r"|mor[oa]\w*|mud\w+))\b[^.,;]{0,30}?"
    r"\b(?:in|to|nach|à|en|a|em|para) ([A-ZÀ-Þ]\w+)",
    "tongue": r"(?i)\b(?:english|german|french|spanish|portuguese|italian|englisch|deutsch|französisch|anglais"
    r"|allemand|français|inglés"
    r"|español|inglês|português)\b",
}
# Words behind or before which a statement names what is over.
_OVER = (
    r"(?i)\b(?:no longer|not|isn't|aren't|don't use|drop(?:ped)?|forget|scrap|instead of|rather than|without|from"
    r"|remove[d]?|stop(?:ped)?"
    r"|over|kein\w*|nicht(?: mehr)?|statt|pas|plus|au lieu de|no|ya no|en vez de|não|já não|em vez de|ne sont plus"
    r"|n'est plus|nor)\s"
    r"(?:(?:use|using|the|a|an|to|in|on|at|with|den|die|das|le|la|les|el|los|o|os|é|es|est|ist|mehr|von|bei|na"
    r"|no)\s){0,2}"
    r"([^\s,;.!?]+(?:\.\w+)?)"
)
_ENDED = (
    r"(?i)([^\s,;.!?]+) (?:(?:is|are|was|has|ist|sind|est|es|está|é)\s)?(?:gone|out|off(?: the table)?|history|dead"
    r"|dropped|left(?: the| us)?"
    r"|any ?more|on leave|weg|raus|nicht mehr|ya no|já não|não vale mais)\b"
)


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
        figure = str(_NUMBERS.get(number.lower(), number)).rstrip(".,").replace(",", "")
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


def overrules(later: str, earlier: str, *, is_next: bool = False) -> int:
    """Return YES if the later statement ends the earlier one, DOUBT if it may. `is_next`: it follows directly."""
    said = read(later)
    if said.has("undo") and is_next:
        return YES
    new, old, over = values_of(later), values_of(earlier), over_in(later)
    shared = len([thing for thing in new.things & old.things if not thing.isdigit()])
    fewest = min(len(new.things), len(old.things))
    if not is_next and not new.may_meet(old, over):
        return NO
    if over & old.keys and _is_affirmed(over, earlier):
        return YES if _has_same_purpose(later, earlier) else DOUBT
    says_so = said.has("change", "objects")
    if _has_other_value(new, old) and (shared or "home" in new.slots or (is_next and says_so)):
        return YES if says_so or "home" in new.slots or shared >= MIN_SHARE * fewest else DOUBT
    return _by_change(later, earlier, said, shared, fewest)


def _by_change(later: str, earlier: str, said: Reading, shared: int, fewest: int) -> int:
    """Compare two statements about the same thing without values: by the words that say that something changed."""
    if not shared:
        return NO
    says_so = said.has("change", "objects")
    found = (
        compare(earlier, later, set, says_so=says_so) if says_so or said.has("rule") or len(earlier) < SHORT else None
    )
    if found is not None and found.type != "ambiguous":
        return YES
    if not says_so or shared < MIN_SHARE * fewest:
        return DOUBT if found is not None else NO
    return YES if shared > 1 else DOUBT


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
