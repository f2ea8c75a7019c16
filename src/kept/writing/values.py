"""Find the one thing that two clauses say differently: another name, number or word for the same thing.

"Attachments are stored in S3" and "We store attachments in R2" share all words but one, and that one stands after "in"
in both: the same thing has another value. `VALUE_RULES` says where a value can stand. Everywhere else a differing word
makes another subject ("We use Redis for the cache").

Rule: exactly one run of words may differ. Two differences are two statements.
"""

from collections.abc import Callable, Collection, Mapping
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from kept.writing.clauses import Clause, Phrase, Word, clauses_of

MAX_VALUE_WORDS = 3
_ACTIVITY = ("ment", "ing", "tion", "sion")


# ---- the one difference ----


class Difference(Struct, frozen=True, kw_only=True):
    """The run of words that differs between two clauses, and where it stands."""

    opener: str  # of the phrase that it is in
    old: tuple[Word, ...]
    new: tuple[Word, ...]
    before: str  # the key before it in its phrase, if any
    after: str  # the key after it in its phrase, if any
    after_name: bool  # it follows a name, as a version does
    at_start: bool  # of the clause
    is_last: bool  # no phrase follows
    shared: frozenset[str]
    openers: frozenset[str]  # of the other phrases of both
    has_activity: bool  # an activity is among the words that are shared: "state management", "linting"


def difference(old: Clause, new: Clause) -> Difference | None:
    """What the two say differently, if it is one run of words in the same place of both."""
    left, right = _run(old, new.keys), _run(new, old.keys)
    if left is None or right is None:
        return None
    (place, start, end), (new_place, new_start, new_end) = left, right
    phrase, other = old.phrases[place], new.phrases[new_place]
    if phrase.opener != other.opener or (start == 0) != (new_start == 0):
        return None
    if phrase.opener not in ("", "use") and not any(each.words for each in old.phrases[:place]):
        return None  # "According to …": the value of nothing
    shared = old.keys & new.keys
    after = phrase.words[end].key if end < len(phrase.words) else ""
    new_after = other.words[new_end].key if new_end < len(other.words) else ""
    if after != new_after and (after or new_after) and phrase.opener != "":
        return None
    return Difference(
        opener=phrase.opener,
        old=phrase.words[start:end],
        new=other.words[new_start:new_end],
        before=phrase.words[start - 1].key if start else "",
        after=after,
        after_name=start > 0 and _names_a_version(phrase.words[start - 1]),
        at_start=place == 0 and start == 0,
        is_last=place == len(old.phrases) - 1,
        shared=shared,
        openers=frozenset(
            each.opener
            for phrases, own in ((old.phrases, place), (new.phrases, new_place))
            for n, each in enumerate(phrases)
            if n != own
        ),
        has_activity=any(w.written.endswith(_ACTIVITY) for each in old.phrases for w in each.words if w.key in shared),
    )


def _run(clause: Clause, others: Collection[str]) -> tuple[int, int, int] | None:
    """Phrase, start and end of the only run of words that are not among the others; None if there are more, or none."""
    found = None
    for place, phrase in enumerate(clause.phrases):
        unknown = [at for at, word in enumerate(phrase.words) if word.key not in others]
        if not unknown:
            continue
        longest = MAX_VALUE_WORDS if phrase.opener else len(unknown)
        if found is not None or unknown[-1] - unknown[0] >= min(longest, MAX_VALUE_WORDS):
            return None
        found = (place, unknown[0], unknown[-1] + 1)
    return found


# ---- where a value can stand ----

_UNITS = frozenset(
    "s ms ns min h d sec second minut hour day week month year b kb mb gb tb kib mib gib byte percent px pixel em rem "
    "eur usd euro dollar km m cm mm hz mhz ghz time row line charact request connect seat thread worker".split()
)
_SETTINGS = frozenset(
    "port version timeout limit size ttl interv threshold minimum maximum max min default count number concurr "
    "replica retri budget quota price rate width height depth length level batch pool capac least most newer requir "
    "run build target pin instal use".split()
)
# "Step 3" and "step 4" are two steps, not two values of one.
_LABELS = frozenset(
    "number no nr item step case fact issu ticket chapter section part phase exampl sprint build releas line page row "
    "pr commit test task bug custom user note memori statement".split()
)
_ROLES = frozenset(
    "owner maintain lead captain default primari main name host branch format style languag region manag".split()
)
_OWNING = frozenset("own maintain approv review lead manag sign handl coordin releas respons look care".split())
_ASKING = frozenset("ask contact ping tell call".split())
_TEAM = frozenset("team squad group guild".split())
_ORDINALS = frozenset(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth fifteenth twentieth last".split()
)
_PERIODS = frozenset("week month quarter year".split())
_FREQUENCY = frozenset("hourly daily nightly weekly monthly yearly annually quarterly fortnightly biweekly".split())
# Where or when something holds: another one of these is another case, not another value.
_CIRCUMSTANCES = frozenset(
    "product prod stage staging develop dev ci test local docker window linux mac maco io android browser safari "
    "firefox chrome startup runtim build parallel memori detail general practic place turn case addit".split()
)
_ALTERNATIVES = (
    "tab space",
    "singl doubl",
    "light dark",
    "short long",
    "big small",
    "plural singular",
    "top bottom",
    "left right",
    "first last",
    "enabl disabl",
    "sync async",
    "true fals",
    "on off",
)
_SIDES: Mapping[str, str] = {word: pair for pair in _ALTERNATIVES for word in pair.split()}


def _are_numbers(found: Difference) -> bool:
    return all(
        any(word.is_number for word in words) and all(word.is_number or word.key in _UNITS for word in words)
        for words in (found.old, found.new)
    )


def _are_names(found: Difference) -> bool:
    return all(any(word.is_name for word in words) for words in (found.old, found.new))


def _are_words(found: Difference) -> bool:
    return not any(word.is_name for word in (*found.old, *found.new))


def _are_ordinals(found: Difference) -> bool:
    return all(word.written.lower() in _ORDINALS for word in (*found.old, *found.new))


def _is_measure(found: Difference) -> bool:
    """A number that is set: with a unit, of a setting, or at the end; not the number of a thing."""
    if found.before in _LABELS or (found.opener == "" and not found.before):
        return False
    has_unit = found.after in _UNITS or any(word.key in _UNITS for word in (*found.old, *found.new))
    has_suffix = all(not word.key[-1].isdigit() for word in (found.old[-1], found.new[-1]))
    is_set = not _SETTINGS.isdisjoint(found.shared) or (found.is_last and found.opener != "")
    return has_unit or has_suffix or is_set or found.after_name


def _is_no_circumstance(found: Difference) -> bool:
    words = {word.key for word in (*found.old, *found.new)}
    is_said_of_it = "be" in found.openers and _are_words(found)
    return words.isdisjoint(_CIRCUMSTANCES) and (is_said_of_it or _are_names(found))


def _is_state(found: Difference) -> bool:
    has_role = not _ROLES.isdisjoint(found.shared)
    return (_are_names(found) or has_role) and not any(
        word.written.endswith(("ed", "ing")) for word in (*found.old, *found.new)
    )


def _has_one_purpose(found: Difference) -> bool:
    """What it is used for is said, or is the subject itself ("State management uses …")."""
    return bool({"for", "to"} & found.openers or found.after or (found.is_last and found.has_activity))


class ValueRule(NamedTuple):
    """A place where a value can stand: after one of these openers, if all conditions hold."""

    name: str
    openers: frozenset[str] | None  # None: after any
    conditions: tuple[Callable[[Difference], bool], ...] = ()


def _owner(found: Difference) -> bool:
    is_someone = found.after in _OWNING or (found.after in _TEAM and not _OWNING.isdisjoint(found.shared))
    return found.at_start and is_someone and len(found.shared) > 1


VALUE_RULES: tuple[ValueRule, ...] = (
    ValueRule("other number", None, (_are_numbers, _is_measure)),
    ValueRule("other owner", frozenset({""}), (_owner,)),
    ValueRule("other contact", frozenset({""}), (lambda found: found.before in _ASKING, _are_names)),
    ValueRule("other frequency", None, (lambda d: {w.written.lower() for w in (*d.old, *d.new)} <= _FREQUENCY,)),
    ValueRule("other day", frozenset({"on"}), (_are_ordinals, lambda found: not _PERIODS.isdisjoint(found.shared))),
    ValueRule("other means", frozenset("with by via through as every each".split())),
    ValueRule("other place", frozenset("in on at into onto from under against".split()), (_is_no_circumstance,)),
    ValueRule("other aim", frozenset({"to"}), (_are_names,)),
    ValueRule("other state", frozenset({"be"}), (_is_state,)),
    ValueRule("other choice", frozenset({"use"}), (_has_one_purpose,)),
    ValueRule("other side", None, (lambda d: _SIDES.get(d.old[0].key, 0) == _SIDES.get(d.new[0].key, 1),)),
)


def other_value(old: Clause, new: Clause) -> str | None:
    """The name of the rule by which the new clause gives another value to what the old one is about."""
    if old.denies or new.denies or old.ends or new.ends or 3 * len(old.keys & new.keys) < len(old.keys):
        return None
    found = difference(old, new)
    if found is None or not found.shared:
        return None
    for rule in VALUE_RULES:
        if (rule.openers is None or found.opener in rule.openers) and all(fits(found) for fits in rule.conditions):
            return rule.name
    return None


# ---- what has changed, by its own words ----

# Verbs that only link a thing with its value: "runs on", "is called", "moved to".
LINKS = frozenset(
    "run live sit host store call name written write happen move renam switch migrat go come appli locat base stay "
    "keep upgrad downgrad bump publish collect send find listen version".split()
)
_LINKED = frozenset("be use in on at to with by via through as into from under".split())


def changed_value(old: Clause, new: Clause) -> bool:
    """Whether a new clause that says that something changed gives another value to what the old one is about.

    The words may stand in another order and after another verb that only links them: "The branch is called feat/a", "I
    renamed the branch to feat/b". All but one run of words must be the same.
    """
    if old.denies or new.denies or old.ends or new.ends:
        return False
    left, right = _linked_run(old, new.keys), _linked_run(new, old.keys)
    shared = (old.keys & new.keys) - LINKS
    if left is None or right is None or not shared or len(shared) < len((old.keys | new.keys) - shared - LINKS) - 1:
        return False
    if left.opener == "":  # "Marta approves the releases", "Releases are approved by Jonas"
        return right.opener == "by" and not _OWNING.isdisjoint(shared)
    words = (*left.words, *right.words)
    if not _CIRCUMSTANCES.isdisjoint(word.key for word in words) or right.opener == "":
        return False
    # "stored in local time", "stored in UTC": after the same preposition another sort of value is still a value.
    return _sort(left) == _sort(right) or (left.opener == right.opener and left.opener not in ("be", "use"))


def _sort(run: Phrase) -> tuple[bool, bool]:
    """Whether a value has a number, and whether it is a name, a path or an address."""
    has_number = any(word.is_number and "/" not in word.written for word in run.words)
    return has_number, any(word.is_name for word in run.words)


def reworded_value(old: Clause, new: Clause) -> bool:
    """Whether two clauses say the same with other words around it, and give it another name or number.

    "The print server is looked after by Ingrid", "Yusuf looks after the print server". Stricter than `changed_value`,
    since neither says that something changed: nothing else may differ, and both values are of one sort.
    """
    if old.denies or new.denies or old.ends or new.ends:
        return False
    left, right = _linked_run(old, new.keys), _linked_run(new, old.keys)
    shared = (old.keys & new.keys) - LINKS
    if left is None or right is None:
        return False
    words = (*left.words, *right.words)
    is_value = all(any(w.is_name or w.is_number for w in run.words) or run.opener == "" for run in (left, right))
    if _sort(left)[0] != _sort(right)[0] or not is_value or not _CIRCUMSTANCES.isdisjoint(word.key for word in words):
        return False
    if "" in (left.opener, right.opener):
        return len(shared) > 1 and {left.opener, right.opener} == {"", "by"} and not _OWNING.isdisjoint(shared)
    is_version = bool(other_version(old, new))
    return len(shared) > 1 or is_version


def may_change(newer: str, older: str) -> bool:
    """Whether a statement may change an older one, though no rule says so: it speaks of that, and gives a new value.

    It has half of the words, at least two, and a number or a name that is not in the older one.
    """
    words = [word for clause in clauses_of(newer) for phrase in clause.phrases for word in phrase.words]
    known = frozenset[str]().union(*(clause.keys for clause in clauses_of(older))) - LINKS
    shared = known & {word.key for word in words}
    is_about_it = len(shared) >= 2 and 2 * len(shared) >= len(known)
    return is_about_it and any(word.key not in known and (word.is_number or word.is_name) for word in words)


def is_value_of(clause: Clause, value: Collection[str], said: Collection[str]) -> bool:
    """Whether a clause gives this value to what is spoken of: "Staging is deployed from … to Heroku".

    All words of its subject are said, and the value is all that stands after one of its openers.
    """
    about, others = subject_of(clause), clause.phrases[1:]
    is_about_it = bool(about) and about <= set(said) - set(value)
    return is_about_it and any(each.opener in _LINKED and {w.key for w in each.words} == set(value) for each in others)


def is_use_of(clause: Clause, value: Collection[str]) -> bool:
    """Whether a clause says that this is used, whoever uses it and wherever: "The loaders use polars"."""
    return any(each.opener == "use" and {word.key for word in each.words} == set(value) for each in clause.phrases)


def is_general(clause: Clause) -> bool:
    """Whether nothing narrows what a clause says: it has no subject but "we", and names no place or purpose."""
    return not subject_of(clause) and all(each.opener in ("to", "use") for each in clause.phrases[1:] if each.words)


def subject_of(clause: Clause) -> frozenset[str]:
    """What the clause begins with, without verbs that only link it with its value."""
    return frozenset(word.key for word in clause.phrases[0].words) - LINKS


def may_be_replaced(old: Clause, new: Clause) -> frozenset[str]:
    """What the new clause names as replaced, if the old one says no more than that it is used, perhaps with what."""
    used, *others = [phrase for phrase in old.phrases if phrase.words]
    is_use = used.opener == "use" and {word.key for word in used.words} == new.replaced
    return new.replaced if is_use and not old.denies and all(each.opener == "with" for each in others) else frozenset()


def other_version(old: Clause, new: Clause) -> frozenset[str]:
    """The name for which the two have different numbers: "Our CI uses Node 20", "We're on Node 22 now"."""
    versions, others = _versions(old), _versions(new)
    return frozenset(name for name in versions.keys() & others.keys() if versions[name] != others[name])


def _versions(clause: Clause) -> dict[str, str]:
    """Name → the number that stands right after it, or after "… version is"."""
    words = [word for phrase in clause.phrases for word in phrase.words if word.key != "version"]
    return {name.key: number.key for name, number in pairwise(words) if number.is_number and _names_a_version(name)}


def _names_a_version(name: Word) -> bool:
    """Whether it is written with a capital, and a number after it is not just its own: "Step 3"."""
    return name.is_name and name.written.isalpha() and name.key not in _LABELS


def _linked_run(clause: Clause, others: Collection[str]) -> Phrase | None:
    """The only run of words that are not among the others, if it stands where a value can, with its opener."""
    found = None
    for place, phrase in enumerate(clause.phrases):
        words = [word for word in phrase.words if word.key not in LINKS]
        unknown = [at for at, word in enumerate(words) if word.key not in others]
        if not unknown:
            continue
        is_one_run = unknown[-1] - unknown[0] == len(unknown) - 1 < MAX_VALUE_WORDS
        is_first = phrase.opener == "" and place == unknown[0] == 0
        if found is not None or not is_one_run or (phrase.opener not in _LINKED and not is_first):
            return None
        found = Phrase(phrase.opener, tuple(words[unknown[0] : unknown[-1] + 1]))
    return found
