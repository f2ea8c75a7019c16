"""Find the one thing that two clauses say differently: another name, number or word for the same thing.

"Attachments are stored in S3" and "We store attachments in R2" share all words but one, and that one stands after "in"
in both: the same thing has another value. `VALUE_RULES` says where a value can stand. Everywhere else a differing word
makes another subject ("We use Redis for the cache").

Rule: exactly one run of words may differ. Two differences are two statements.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from kept.writing.clauses import Clause, Phrase, Word

MAX_VALUE_WORDS = 3
_ACTIVITY = ("ment", "ing", "tion", "sion")


# ---- the one difference ----


class Run(NamedTuple):
    """Words of one phrase: the first to the last that another clause does not have."""

    phrases: Sequence[Phrase]  # of its clause
    place: int  # of its phrase
    start: int
    end: int
    unknown: int  # words of the run that the other clause does not have

    @property
    def phrase(self) -> Phrase:
        return self.phrases[self.place]

    @property
    def opener(self) -> str:
        return self.phrase.opener

    @property
    def words(self) -> tuple[Word, ...]:
        return self.phrase.words[self.start : self.end]

    @property
    def before(self) -> Word | None:
        """The word before it in its phrase."""
        return self.phrase.words[self.start - 1] if self.start else None

    @property
    def after(self) -> str:
        """The key after it in its phrase, or nothing."""
        return self.phrase.words[self.end].key if self.end < len(self.phrase.words) else ""

    @property
    def is_short(self) -> bool:
        return self.end - self.start <= MAX_VALUE_WORDS

    @property
    def is_whole(self) -> bool:
        """Every word of it is unknown to the other clause."""
        return self.unknown == self.end - self.start

    @property
    def is_at_start(self) -> bool:
        """It begins the clause."""
        return self.place == self.start == 0

    @property
    def has_subject(self) -> bool:
        """Something stands before its opener. In "According to …" it is the value of nothing."""
        return self.opener in ("", "use") or any(each.words for each in self.phrases[: self.place])


class Difference(NamedTuple):
    """The run of words that differs between two clauses, and where it stands."""

    old: Run
    new: Run
    shared: frozenset[str]

    @property
    def opener(self) -> str:
        """The opener of the phrase that it is in, the same in both."""
        return self.old.opener

    @property
    def words(self) -> tuple[Word, ...]:
        return (*self.old.words, *self.new.words)

    @property
    def before(self) -> str:
        """The key before it in its phrase, or nothing."""
        return self.old.before.key if self.old.before is not None else ""

    @property
    def follows_name(self) -> bool:
        """It stands after a name, as a version does."""
        return self.old.before is not None and _names_a_version(self.old.before)

    @property
    def is_last(self) -> bool:
        """No phrase follows."""
        return self.old.place == len(self.old.phrases) - 1

    @property
    def other_openers(self) -> frozenset[str]:
        """The openers of the other phrases of both."""
        return frozenset(
            each.opener for run in (self.old, self.new) for n, each in enumerate(run.phrases) if n != run.place
        )

    @property
    def has_activity(self) -> bool:
        """An activity is among the words that are shared: "state management", "linting"."""
        words = (word for each in self.old.phrases for word in each.words if word.key in self.shared)
        return any(word.written.endswith(_ACTIVITY) for word in words)


def difference(old: Clause, new: Clause) -> Difference | None:
    """Find the words that two clauses say differently, if they are one run in the same place of both."""
    left, right = _differing_run(old, new.keys), _differing_run(new, old.keys)
    if left is None or right is None or not left.has_subject:
        return None
    is_same_place = left.opener == right.opener and (left.start == 0) == (right.start == 0)
    goes_on_alike = left.opener == "" or left.after == right.after
    return Difference(left, right, old.keys & new.keys) if is_same_place and goes_on_alike else None


def _differing_run(clause: Clause, others: Collection[str]) -> Run | None:
    """Return the only run of words that are not among the others, if it is short; known words may stand within it."""
    run = _only_run(clause.phrases, others)
    return run if run is not None and run.is_short and (run.opener or run.is_whole) else None


def _only_run(phrases: Sequence[Phrase], others: Collection[str]) -> Run | None:
    """Return the words that are not among the others, and all between them; None if two phrases have some, or none."""
    found = None
    for place, phrase in enumerate(phrases):
        unknown = [at for at, word in enumerate(phrase.words) if word.key not in others]
        if unknown and found is not None:
            return None
        if unknown:
            found = Run(phrases, place, unknown[0], unknown[-1] + 1, len(unknown))
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


def is_side(word: str) -> bool:
    """Return True for one of two alternatives: "on" and "off", "tabs" and "spaces"."""
    return word.rstrip("s") in _SIDES or word in _SIDES


def _are_numbers(found: Difference) -> bool:
    return all(
        any(word.is_number for word in run.words) and all(word.is_number or word.key in _UNITS for word in run.words)
        for run in (found.old, found.new)
    )


def _are_names(found: Difference) -> bool:
    return all(any(word.is_name for word in run.words) for run in (found.old, found.new))


def _are_words(found: Difference) -> bool:
    return not any(word.is_name for word in found.words)


def _are_ordinals(found: Difference) -> bool:
    return all(word.written.lower() in _ORDINALS for word in found.words)


def _is_measure(found: Difference) -> bool:
    """Return True for a number that is set: with a unit, of a setting, or at the end; not for the number of a thing."""
    if found.before in _LABELS or (found.opener == "" and not found.before):
        return False
    is_set = not _SETTINGS.isdisjoint(found.shared) or (found.is_last and found.opener != "")
    return is_set or found.follows_name or _has_unit(found)


def _has_unit(found: Difference) -> bool:
    """Return True if a unit stands after the numbers, is one of the words, or ends each number ("20ms")."""
    has_suffix = all(not run.words[-1].key[-1].isdigit() for run in (found.old, found.new))
    return has_suffix or found.old.after in _UNITS or any(word.key in _UNITS for word in found.words)


def _is_circumstance(words: Iterable[Word]) -> bool:
    return not _CIRCUMSTANCES.isdisjoint(word.key for word in words)


def _is_no_circumstance(found: Difference) -> bool:
    """Return True for another place of the same thing; "stored in local time" and "stored in UTC" name a value."""
    is_said_of_it = "be" in found.other_openers and not _are_names(found)
    is_bare = any(len(run.words) == 1 and _is_circumstance(run.words) for run in (found.old, found.new))
    return not is_bare and (is_said_of_it or (_are_names(found) and not _is_circumstance(found.words)))


def _is_state(found: Difference) -> bool:
    has_role = not _ROLES.isdisjoint(found.shared)
    is_done = any(word.written.endswith(("ed", "ing")) for word in found.words)
    return (has_role or _are_names(found)) and not is_done


def _has_one_purpose(found: Difference) -> bool:
    """Return True if the purpose is said, or is the subject itself ("State management uses …")."""
    is_said = bool({"for", "to"} & found.other_openers or found.old.after)
    return is_said or (found.is_last and found.has_activity)


class ValueRule(NamedTuple):
    """A place where a value can stand: after one of these openers, if all conditions hold."""

    name: str
    openers: frozenset[str] | None  # None: after any
    conditions: tuple[Callable[[Difference], bool], ...] = ()

    def fits(self, found: Difference) -> bool:
        return (self.openers is None or found.opener in self.openers) and all(fits(found) for fits in self.conditions)


def _owner(found: Difference) -> bool:
    after = found.old.after
    is_someone = after in _OWNING or (after in _TEAM and not _OWNING.isdisjoint(found.shared))
    return found.old.is_at_start and is_someone and len(found.shared) > 1


def _are_frequencies(found: Difference) -> bool:
    return {word.written.lower() for word in found.words} <= _FREQUENCY


def _are_alternatives(found: Difference) -> bool:
    return _SIDES.get(found.old.words[0].key, 0) == _SIDES.get(found.new.words[0].key, 1)


VALUE_RULES: tuple[ValueRule, ...] = (
    ValueRule("other number", None, (_are_numbers, _is_measure)),
    ValueRule("other owner", frozenset({""}), (_owner,)),
    ValueRule("other contact", frozenset({""}), (lambda found: found.before in _ASKING, _are_names)),
    ValueRule("other frequency", None, (_are_frequencies,)),
    ValueRule("other day", frozenset({"on"}), (_are_ordinals, lambda found: not _PERIODS.isdisjoint(found.shared))),
    ValueRule("other means", frozenset("with by via through as every each".split())),
    ValueRule("other place", frozenset("in on at into onto from under against".split()), (_is_no_circumstance,)),
    ValueRule("other aim", frozenset({"to"}), (_are_names,)),
    ValueRule("other state", frozenset({"be"}), (_is_state,)),
    ValueRule("other choice", frozenset({"use"}), (_has_one_purpose,)),
    ValueRule("other side", None, (_are_alternatives,)),
)


def other_value(old: Clause, new: Clause) -> str | None:
    """Name the rule by which the new clause gives another value to the subject of the old one."""
    if not old.is_plain or not new.is_plain or 3 * len(old.keys & new.keys) < len(old.keys):
        return None
    found = difference(old, new)
    if found is None or not found.shared:
        return None
    return next((rule.name for rule in VALUE_RULES if rule.fits(found)), None)


_ORDERS = frozenset({"before", "after"})


def other_order(old: Clause, new: Clause) -> frozenset[str]:
    """Return the words that two clauses put in another order: "lint before the tests", "the tests before lint"."""
    left, right = _order_in(old), _order_in(new)
    if left is None or right is None or old.keys != new.keys or not old.is_plain or not new.is_plain:
        return frozenset()
    is_turned = left.first >= right.second and right.first >= left.second
    is_opposite = is_turned if left.word == right.word else left.second == right.second
    return old.keys if is_opposite else frozenset()


class _Order(NamedTuple):
    word: str
    first: frozenset[str]
    second: frozenset[str]


def _order_in(clause: Clause) -> _Order | None:
    """Return the order that a clause gives to two things, if it gives one."""
    places = [place for place, each in enumerate(clause.phrases) if each.opener in _ORDERS and each.words]
    if len(places) != 1:
        return None
    [at] = places
    first = frozenset(word.key for each in clause.phrases[:at] for word in each.words)
    second = frozenset(word.key for each in clause.phrases[at:] for word in each.words)
    return _Order(clause.phrases[at].opener, first, second)


# ---- what has changed, by its own words ----

# Verbs that only link a thing with its value: "runs on", "is called", "moved to".
LINKS = frozenset(
    "run live sit host store call name written write happen move renam switch migrat go come appli locat base stay "
    "keep upgrad downgrad bump publish collect send find listen version".split()
)
_LINKED = frozenset("be use in on at to with by via through as into from under".split())


class Rewording(NamedTuple):
    """Two clauses that share words in any order, and the run of each that the other does not have."""

    old: Run
    new: Run
    shared: frozenset[str]

    @property
    def words(self) -> tuple[Word, ...]:
        return (*self.old.words, *self.new.words)

    @property
    def is_about_an_owner(self) -> bool:
        return not _OWNING.isdisjoint(self.shared)


def _rewording(old: Clause, new: Clause) -> Rewording | None:
    shared = old.keys & new.keys
    differing = (old.keys ^ new.keys) - LINKS
    if len(differing) > 2 * MAX_VALUE_WORDS or not shared or not old.is_plain or not new.is_plain:
        return None
    left, right = _linked_run(old, shared), _linked_run(new, shared)
    return None if left is None or right is None else Rewording(left, right, shared - LINKS)


def changed_value(old: Clause, new: Clause) -> bool:
    """Return True if a new clause that says that something changed gives another value to the subject of the old one.

    The words may stand in another order and after another verb that only links them: "The branch is called feat/a", "I
    renamed the branch to feat/b". All but one run of words must be the same.
    """
    found = _rewording(old, new)
    if found is None or not found.shared:
        return False
    if len(found.shared) < len((old.keys | new.keys) - found.shared - LINKS) - 1:
        return False
    left, right = found.old, found.new
    if left.opener == "":  # "Marta approves the releases", "Releases are approved by Jonas"
        return right.opener == "by" and found.is_about_an_owner
    if right.opener == "" or _is_circumstance(found.words):
        return False
    # "stored in local time", "stored in UTC": after the same preposition another sort of value is still a value.
    return _sort(left) == _sort(right) or (left.opener == right.opener and left.opener not in ("be", "use"))


def _sort(run: Run) -> tuple[bool, bool]:
    """Tell whether a value has a number, and whether it is a name, a path or an address."""
    has_number = any(word.is_number and "/" not in word.written for word in run.words)
    return has_number, any(word.is_name for word in run.words)


def reworded_value(old: Clause, new: Clause) -> bool:
    """Return True if two clauses say the same with other words around it, and give it another name or number.

    "The print server is looked after by Ingrid", "Yusuf looks after the print server". Stricter than `changed_value`,
    since neither says that something changed: nothing else may differ, and both values are of one sort.
    """
    found = _rewording(old, new)
    return found is not None and (_are_means(found) or _are_values(found, old, new))


def _are_values(found: Rewording, old: Clause, new: Clause) -> bool:
    """Return True for two names or numbers that can stand for each other."""
    if not _can_be_value(found.old) or not _can_be_value(found.new):
        return False
    if _sort(found.old)[0] != _sort(found.new)[0] or _is_circumstance(found.words):
        return False
    openers = {found.old.opener, found.new.opener}
    if "" in openers:
        return len(found.shared) > 1 and openers == {"", "by"} and found.is_about_an_owner
    return len(found.shared) > 1 or bool(other_version(old, new))


def _are_means(found: Rewording) -> bool:
    """Return True for two means of one activity: "Install packages with npm", "Use pnpm for installing packages"."""
    openers = (found.old.opener, found.new.opener)
    is_named = all(len(run.words) == 1 for run in (found.old, found.new)) and len(found.shared) > 1
    return is_named and set(openers) == {"use", "with"} and not _is_circumstance(found.words)


def _can_be_value(run: Run) -> bool:
    return run.opener == "" or any(word.is_name or word.is_number for word in run.words)


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


def _linked_run(clause: Clause, others: Collection[str]) -> Run | None:
    """Return the only run of words that are not among the others, if it stands where a value can."""
    phrases = [
        Phrase(each.opener, tuple(word for word in each.words if word.key not in LINKS)) for each in clause.phrases
    ]
    run = _only_run(phrases, others)
    if run is None or not run.is_short or not run.is_whole:
        return None
    return run if run.opener in _LINKED or (run.opener == "" and run.is_at_start) else None
