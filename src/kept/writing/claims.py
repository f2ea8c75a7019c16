"""Opposites: what one text affirms and another denies.

A text is read as *claims*: what a clause is about, as a set of stems, and whether it affirms or denies that. "Use
Fastify, not Express" affirms {use, fastify} and denies {use, express}. Two claims contradict each other when one
affirms what the other denies, or gives another value to the same thing. English; in other languages every clause
counts as an affirmation, so that no conflict is made up.

Rule: precision before recall. All stems of one claim must be in the other, and a clause that may deny only a part ("not
only", "not when it rains") denies nothing. A false alarm costs trust; after a miss a reader can still compare the two.
"""

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from kept import text
from kept.model import ConflictType, replace
from kept.text import compiled

MAX_CHARS = 1_000  # a statement is short; only the beginning of a document is read

_CLAUSE = r"(?<=[.!?;:])\s|\n|,?\s(?:but|[-–—])\s|\s\("
_REASON = r"[,;]?\s(?:because|since|so that|otherwise|hence|therefore|which|due to)\b"
_WORD = r"\w+(?:['.:/@+#-]+\w+)*[+#%]*|[,=]"

_NEGATORS = frozenset("not never no cannot nobody".split())
_PARTLY = frozenset("only just all every always necessarily merely".split())  # "not only" denies nothing
_REVERSERS = frozenset("stop quit skip forget omit neglect refrain".split())
_POLES = {
    **dict.fromkeys("use prefer choos chose chosen adopt favour favor".split(), ("+use", True)),
    **dict.fromkeys("enabl activ turn".split(), ("+toggle", True)),
    **dict.fromkeys("disabl deactiv off".split(), ("+toggle", False)),
    **dict.fromkeys("allow permit".split(), ("+allow", True)),
    **dict.fromkeys("forbid forbidden deni disallow prohibit ban".split(), ("+allow", False)),
    **dict.fromkeys("keep kept retain".split(), ("+keep", True)),
    **dict.fromkeys("drop discard".split(), ("+keep", False)),
    **{"requir": ("+require", True), "mandatori": ("+require", True), "option": ("+require", False)},
    **{"add": ("+add", True), "remov": ("+add", False), "avoid": ("+use", False)},
    **{"includ": ("+include", True), "exclud": ("+include", False)},
    **{"show": ("+show", True), "shown": ("+show", True), "hide": ("+show", False), "hidden": ("+show", False)},
    **{"accept": ("+accept", True), "reject": ("+accept", False)},
}
_PLACES = frozenset("in on at for inside within under during".split())
_CONDITIONS = frozenset("when while if where".split())
_LIMITS = frozenset("before after until unless except without outside between".split())  # these change what is claimed
_EMPTY = frozenset(
    "a an the this that these those it its we our you your i my he she they their them us me one there here "
    "is are was were be been being am do does did done has have had having must should shall will would can could may "
    "might to of from with by as into onto via through per about than and or also too both either please always "
    "now currently anymore longer all any each every so then very still = ,".split()
)
_CHANGES = frozenset("longer anymore now".split())

_NUMBER = r"v?[0-9][0-9.,_:]*([a-z]{1,3}|%)?"
_GRAVEST_FIRST: tuple[ConflictType, ...] = ("superseded", "contradictory", "ambiguous")

_UNITS = frozenset(
    "s ms ns min h d sec second seconds minute minutes hour hours day days week weeks month months year years "
    "b kb mb gb tb kib mib gib byte bytes % percent px em rem eur usd euro euros dollars km m cm mm hz mhz ghz".split()
)
_SETTINGS = frozenset(
    "port version timeout limit size ttl interval threshold minimum maximum max min default count number concurrency "
    "replicas retries budget quota price rate width height depth length level batch pool capacity has have least most "
    "newer required =".split()
)
# "Step 3" and "step 4" are two steps, not two values of one.
_LABELS = frozenset("number no nr item step case fact issue ticket chapter section part phase example sprint".split())
_ROLES = frozenset("owner maintainer lead captain default primary main name".split())


class Claim(Struct, frozen=True):
    """One clause: it affirms or denies something about its stems.

    A stem that begins with `+` stands for a pair of opposite verbs (`+toggle`: enable, disable). `scope` are the stems
    that say where or when the claim holds; `subject` those that are given the `value`, a number or a name, if any.
    """

    affirms: bool
    stems: frozenset[str]
    scope: frozenset[str] = frozenset()
    is_change: bool = False
    subject: frozenset[str] = frozenset()
    value: str | None = None
    is_number: bool = False


class Opposite(NamedTuple):
    """By which rule two texts contradict each other, and how gravely."""

    rule: str
    type: ConflictType


def claims_of(content: str) -> tuple[Claim, ...]:
    """Every clause as a claim; "X, not Y" is two. Questions, reasons and partial denials ("not only") claim nothing."""
    return _claims_of(content[:MAX_CHARS])


@lru_cache(maxsize=1024)  # a new text is compared with several others, and they with the next one
def _claims_of(content: str) -> tuple[Claim, ...]:
    claims: list[Claim] = []
    for clause in compiled(_CLAUSE).split(content.replace("’", "'")):
        if not clause.rstrip().endswith("?"):
            words = compiled(_WORD).findall(compiled(_REASON).split(clause, maxsplit=1)[0])
            claims += [claim for claim in _claims_of_clause(words) if claim.stems]
    return tuple(claims)


def _claims_of_clause(words: list[str]) -> list[Claim]:
    lower = [word.lower() for word in words]
    parts = _contrasted(lower)
    if parts is None:
        claim = _read(lower)
        return [] if claim is None else [_with_value(claim, words, lower)]
    wanted, unwanted, is_change = parts
    yes, no = _read(wanted), _read(unwanted)
    if yes is None or no is None:
        return []
    if no.stems == no.scope:  # "use tabs in Makefiles, not in YAML": the same thing, elsewhere
        said, denied = yes.stems, (yes.stems - yes.scope) | no.stems
    else:  # "use tabs, not spaces, in Makefiles": another thing, in the same place
        verbs = {stem for stem in yes.stems if stem.startswith("+")}
        said, denied = yes.stems | no.scope, no.stems | yes.scope | verbs
    scope = yes.scope | no.scope
    is_change = is_change or yes.is_change
    return [
        Claim(yes.affirms, said, scope & said, is_change),
        Claim(not yes.affirms, denied, scope & denied, is_change),
    ]


_INSTEAD = frozenset({(",", "not"), (",", "never"), ("and", "not"), ("instead", "of"), ("rather", "than")})
_PREFERENCE = frozenset("prefer prefers preferred choose chose chosen favour favor pick picked".split())
_MOVES = frozenset("switch switched move moved migrate migrated change changed went".split())
_PASSIVE = frozenset("is are was were be been being".split())


def _contrasted(words: list[str]) -> tuple[list[str], list[str], bool] | None:
    """The wanted and the unwanted thing of a clause that contrasts two, and whether it reports a change."""
    for at, (word, following) in enumerate(pairwise([*words, ""])):
        if at and (word, following) in _INSTEAD:
            return words[:at], words[at + 2 :], False
        if word == "over" and not _PREFERENCE.isdisjoint(words[:at]):
            return words[:at], words[at + 1 :], False
        is_move = word == "from" and not _MOVES.isdisjoint(words[:at])
        if is_move or (word == "replaced" and words[at - 1] not in _PASSIVE):
            old_and_new = words[at + 1 :]
            to = next((n for n, end in enumerate(old_and_new) if end in ("to", "with", "by")), None)
            if to is not None:
                return ["use", *old_and_new[to + 1 :]], ["use", *old_and_new[:to]], True
    return None


def _read(words: list[str]) -> Claim | None:
    """One claim; None if the words deny only a part of it."""
    affirms, is_change = True, False
    opener = ""  # of the phrase of place, time or condition that we are in
    stems: set[str] = set()
    scope: set[str] = set()
    for word, following in pairwise([*words, ""]):
        is_change = is_change or word in _CHANGES
        if word in _NEGATORS or word.endswith("n't"):
            if following in _PARTLY:
                return None
            if opener and word != "never":  # "when the call is not idempotent"
                scope.add("+not")
            else:
                affirms = not affirms
        elif word in _PLACES or word in _CONDITIONS or word in _LIMITS:
            opener = word
            scope |= {word} & _LIMITS
        elif word == "," or (word in ("we", "you", "i") and opener in _PLACES):
            opener = ""
        elif word not in _EMPTY and (stem := _stem(word)):
            pole, is_positive = _POLES.get(stem, ("", True))
            if stem in _REVERSERS or (stem == "avoid" and following.endswith("ing")):
                affirms = not affirms
            elif pole:
                stems.add(pole)
                affirms = affirms == is_positive
            else:
                (scope if opener else stems).add(stem)
    return Claim(affirms, frozenset(stems | scope), frozenset(scope), is_change)


def _stem(word: str) -> str:
    tokens = text.words(word)
    if not tokens:
        return ""
    return tokens[0] if word.isascii() or len(tokens[0]) > 1 else word


def _with_value(claim: Claim, words: list[str], lower: list[str]) -> Claim:
    """The claim with the one number that it sets, or with the name in "the owner of the module is Ingrid"."""
    numbers = [at for at, word in enumerate(lower) if compiled(_NUMBER).fullmatch(word)]
    if len(numbers) == 1 and lower[numbers[0] - 1] not in _LABELS:
        at = numbers[0]
        unit = lower[at + 1] if at + 1 < len(lower) and lower[at + 1] in _UNITS else ""
        if unit or lower[at][-1] in "smhdb%" or not _SETTINGS.isdisjoint(lower):
            subject = claim.stems - {_stem(lower[at]), _stem(unit)}
            return replace(claim, subject=subject, value=f"{lower[at]} {unit}", is_number=True)
    if not numbers and len(words) > 4 and lower[0] in ("the", "our") and lower[-2] in ("is", "are", "="):
        name = words[-1]
        if name != lower[-1] or not name.isalpha() or not _ROLES.isdisjoint(lower):
            return replace(claim, subject=claim.stems - {_stem(lower[-1])}, value=name)
    return claim


def contradiction(
    left: Sequence[Claim], right: Sequence[Claim], rare: Callable[[Collection[str]], set[str]]
) -> "Opposite | None":
    """How two texts contradict each other, or None. `rare` picks the stems that tell what a text is about.

    They must disagree about at least two rare stems, or about all the stems of a claim of each.
    """
    shared: set[str] = set()
    types: set[ConflictType] = set()
    denies = False
    for a in left:
        for b in right:
            type = _disagreement(a, b)
            if type is not None and (common := rare(a.stems & b.stems)):
                types.add(type)
                denies = denies or a.affirms != b.affirms
                shared |= common if a.stems != b.stems else {*common, "+same"}
    if len(shared) < 2:
        return None
    return Opposite("affirms and denies" if denies else "other value", next(t for t in _GRAVEST_FIRST if t in types))


def _disagreement(a: Claim, b: Claim) -> ConflictType | None:
    is_change = a.is_change or b.is_change
    if a.affirms == b.affirms:
        if a.value == b.value or a.subject != b.subject or a.is_number != b.is_number:
            return None
        return "superseded" if is_change else "contradictory" if a.is_number else "ambiguous"
    small, large = (a, b) if len(a.stems) <= len(b.stems) else (b, a)
    if small.stems == large.stems:
        return "superseded" if is_change else "contradictory"
    if not small.stems <= large.stems or not (small.stems - small.scope).isdisjoint(large.scope):
        return None  # "Never commit secrets", "Encrypt secrets before you commit them": there only a condition
    extra = large.stems - small.stems
    if small.affirms and not extra <= large.scope:
        return None  # "Send e-mails", "Never send e-mails synchronously": denies not this, but a manner of it
    if is_change:
        return "superseded"
    # "Never log tokens", "Log token counts in CI": one word more may make another thing of it, one phrase an exception.
    is_nearly_the_same = small.scope == large.scope and len(extra) == 1 and len(small.stems) > 2
    return "contradictory" if is_nearly_the_same else "ambiguous"
