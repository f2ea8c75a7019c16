"""Read a text as claims: what a clause speaks of, and whether it affirms or denies that.

Used to find conflicts. "Use Fastify, not Express" affirms {use, fastify} and denies {use, express}. English; of other
languages every clause is an affirmation, so that nothing is made up. Rule: when a clause may deny only a part ("not
only", "not when it rains"), its denial is not counted.
"""

from functools import lru_cache
from itertools import pairwise

from msgspec import Struct

from kept import text
from kept.model import replace
from kept.writing.patterns import pattern

MAX_CHARS = 1_000  # a statement is short; of a document, only the beginning is read

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
    """What one clause says: it affirms or denies something about its stems.

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


def claims_of(content: str) -> tuple[Claim, ...]:
    """Every clause as a claim; "X, not Y" is two. Questions, reasons and partial denials ("not only") claim nothing."""
    return _claims_of(content[:MAX_CHARS])


@lru_cache(maxsize=1024)  # a new text is compared with several others, and they with the next one
def _claims_of(content: str) -> tuple[Claim, ...]:
    claims: list[Claim] = []
    for clause in pattern(_CLAUSE).split(content.replace("’", "'")):
        if not clause.rstrip().endswith("?"):
            words = pattern(_WORD).findall(pattern(_REASON).split(clause, maxsplit=1)[0])
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
    """What is wanted and what is not, in a clause that sets one against the other; and whether it tells of a change."""
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
    numbers = [at for at, word in enumerate(lower) if pattern(_NUMBER).fullmatch(word)]
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
