"""Decide if a later statement of a user ends an earlier one: the last word counts.

Used by extraction within a session and by `memory.findings` across sessions. Compared are the things two statements
name, their values (`things`), the things that the later one ends (`over`), and opposites (`opposites`). Rule: the
later statement must be about the same thing; if that is not sure, the answer is `DOUBT`, and both stay proposals.
"""

from collections.abc import Collection
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from kept import text
from kept.text import compiled
from kept.writing.conflicts import compare
from kept.writing.grammar import Reading, read, spelled
from kept.writing.opposites import is_switched, is_turned
from kept.writing.over import disproves, is_affirmed, over_in
from kept.writing.things import WORD, Values, stem_of, things_in, values_of

NO, DOUBT, YES = range(3)
SHORT = 120  # characters: a longer text is compared only with one that says that something changed
_SIGNALS = frozenset({"change", "objects", "undo"})  # marks that say that something is different now
MIN_SHARE = 0.34  # of the things in the shorter statement: fewer in common are another subject
ENOUGH_SHARED = 3  # things that long statements have in common, beside all others
_PURPOSE = r"\b(?:for|für|pour|para) (?:the |our |all |die |den |das |les? |la |los? |las? |os? |as? )?([^\W\d]\w{2,})"
_WHEN = "next coming week month year nächste woche semaine prochaine semana próxima settimana prossima"


class _Pair(Struct, frozen=True):
    """Two statements that are compared, and how many things they share."""

    later: str
    earlier: str
    said: Reading
    new: Values
    old: Values
    is_next: bool
    says_it_itself: bool  # that something changed, not only in its opener

    @property
    def is_same_subject(self) -> bool:
        """Return False if an opener alone speaks of a change ("Actually, …"), and the two begin with other things."""
        return self.says_it_itself or self.is_next or not _begin_with_others(self)

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


def overrules(later: str, earlier: str, *, is_next: bool = False, marks: Collection[str] = ()) -> int:
    """Return YES if the later statement ends the earlier one, DOUBT if it may.

    `is_next`: it follows directly. `marks`: those of its opener, which its text no longer has ("No wait, …").
    """
    read_later = read(later)
    said = replace(read_later, marks=read_later.marks | (_SIGNALS & set(marks)))
    # Two that speak of a change alike ("X is off", "Y is off") are two statements, unless they are about one thing.
    says_it_itself = read_later.has("change", "objects") and not read(earlier).has("change", "objects")
    pair = _Pair(later, earlier, said, values_of(later), values_of(earlier), is_next, says_it_itself)
    if is_next and said.has("undo"):
        return YES
    over = over_in(later)
    if _is_elsewhere(pair, over) or _is_repeated(pair):  # the cheaper question first
        return NO
    if _goes_back(pair):
        return YES
    if over & pair.old.keys and is_affirmed(over, earlier):
        return YES if _is_same_use(later, earlier) else DOUBT
    if said.act == "orders" and said.has("mends"):
        return NO  # "Fix the 401 of the login" sets no value
    return YES if _is_contrary(later, earlier) else _by_value(pair) or _by_change(pair)


def _is_repeated(pair: _Pair) -> bool:
    """Match a repetition, which ends nothing: also not "MySQL is gone"."""
    return _words_of(pair.later) == _words_of(pair.earlier)


@lru_cache(maxsize=1024)  # each statement is compared with several others
def _words_of(said: str) -> tuple[str, ...]:
    return text.statement(said)


def _is_elsewhere(pair: _Pair, over: frozenset[str]) -> bool:
    """Match two statements that are certainly not about the same thing."""
    return not pair.is_next and not pair.new.may_meet(pair.old, over)


def _goes_back(pair: _Pair) -> bool:
    """Match an objection that names the thing again that the statement before it called replaced."""
    return pair.is_next and pair.said.has("objects") and not pair.new.things.isdisjoint(over_in(pair.earlier))


def _is_same_use(later: str, earlier: str) -> bool:
    """Return False if the two speak of one thing for other purposes, or of other kinds of it."""
    return _has_same_purpose(later, earlier) and not _are_of_other_kinds(later, earlier)


def _is_contrary(later: str, earlier: str) -> bool:
    """Match a statement that disproves the earlier one, turns it round or switches it."""
    return disproves(later, earlier) or is_turned(later, earlier) or is_switched(later, earlier)


def _by_value(pair: _Pair) -> int:
    """Compare two statements that fill the same slot with other values."""
    if not _has_other_value(pair.new, pair.old):
        return NO
    if "home" in pair.new.slots:
        return YES
    if pair.says_so and _is_elliptic(pair):
        return YES
    if pair.says_so and (pair.shared or pair.is_next):
        return YES if pair.is_same_subject else DOUBT
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
    is_enough = pair.shared >= ENOUGH_SHARED
    if not says_so or (pair.share < MIN_SHARE and not is_enough):
        return DOUBT if found is not None else NO
    return YES if pair.shared > 1 and (is_enough or pair.is_same_subject) else DOUBT


def _has_other_value(new: Values, old: Values) -> bool:
    """Return True if both fill a slot, with nothing in common."""
    return any(new.slots[name].isdisjoint(old.slots[name]) for name in new.slots.keys() & old.slots.keys())


def _has_same_value(new: Values, old: Values) -> bool:
    """Return True if both give the same time of day: a weekly date that moved to another day."""
    return "clock" in new.slots and new.slots["clock"] == old.slots.get("clock")


def _is_elliptic(pair: _Pair) -> bool:
    """Match a sentence that moves a known date and names nothing else."""
    return _has_same_value(pair.new, pair.old) and _names_no_subject(pair.later)


def _begin_with_others(pair: _Pair) -> bool:
    """Return True if each statement begins with a thing that the other does not name: two subjects."""
    new, old = _first_thing(pair.later), _first_thing(pair.earlier)
    return bool(new and old) and new not in pair.old.keys and old not in pair.new.keys


def _first_thing(content: str) -> str:
    """Return the stem of the first word that names something; "" if that is a value."""
    words = compiled(WORD).findall(spelled(content))
    first = next((word for word in words if things_in(word)), "")
    is_value = any(figure in first.lower() for found in values_of(content).slots.values() for figure in found)
    return "" if is_value else stem_of(first)


def _are_of_other_kinds(later: str, earlier: str) -> bool:
    """Return True if both name a thing, each with another word before it: "staging database", "production database"."""
    new, old = _qualified(later), _qualified(earlier)
    return any(new[one].isdisjoint(old[one] | things_in(earlier)) for one in new.keys() & old.keys())


def _qualified(content: str) -> dict[str, frozenset[str]]:
    """Map the things of a statement to the things that stand directly before them."""
    found: dict[str, frozenset[str]] = {}
    for word, following in compiled(rf"(?=\b({WORD})(?<![.,]) ({WORD}))").findall(spelled(content)):
        if not word[0].isdigit() and (kinds := things_in(word)) and (things := things_in(following)):
            found |= {thing: found.get(thing, frozenset()) | kinds for thing in things}
    return found


def _names_no_subject(content: str) -> bool:
    """Return True if a sentence gives only values of a known thing: "Tuesdays at 19:30 from next week on."."""
    for sentence in text.sentences(content):
        figures = [figure for found in values_of(sentence).slots.values() for figure in found]
        if figures and things_in(sentence) <= things_in(" ".join([*figures, _WHEN])):
            return True
    return False


def _has_same_purpose(later: str, earlier: str) -> bool:
    """Return False if the two name different purposes: "for the queue", "for the cache"."""
    purposes = [frozenset(map(stem_of, compiled(_PURPOSE).findall(said.lower()))) for said in (later, earlier)]
    return not all(purposes) or not purposes[0].isdisjoint(purposes[1])
