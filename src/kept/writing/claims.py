"""Opposites: what one text affirms and another denies.

A text is read as *claims*: the stems that a clause is about, and whether it affirms or denies them. "Use Fastify, not
Express" affirms {use, fastify} and denies {use, express}. Two claims contradict each other when one affirms what the
other denies. The words and their roles are those of `clauses`; this module adds the verbs that are opposites. English;
in other languages every clause counts as an affirmation, so that no conflict is made up.

Rule: precision before recall. All stems of one claim must be in the other, and a clause that may deny only a part ("not
only", "not when it rains") denies nothing. A false alarm costs trust; after a miss a reader can still compare the two.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from kept.model import ConflictType
from kept.writing.clauses import (
    LIMITS,
    MAX_CHARS,
    NEGATORS,
    PLACES,
    SCOPES,
    SILENT,
    Contrast,
    contrast_of,
    denies_a_part,
    key_of,
    parts_of,
    words_of,
)


class Pole(NamedTuple):
    """One of two opposite verbs: the stem for both, and whether this one affirms it. `stem` is empty in "stop"."""

    stem: str
    affirms: bool


_OPPOSITES = (
    # stem, verbs that affirm it, verbs that deny it
    ("+use", "use prefer choos chose chosen adopt favour favor", "avoid"),
    ("+toggle", "enabl activ turn", "disabl deactiv off"),
    ("+allow", "allow permit", "forbid forbidden deni disallow prohibit ban"),
    ("+keep", "keep kept retain", "drop discard"),
    ("+require", "requir mandatori", "option"),
    ("+add", "add", "remov"),
    ("+include", "includ", "exclud"),
    ("+show", "show shown", "hide hidden"),
    ("+accept", "accept", "reject"),
    ("", "", "stop quit skip forget omit neglect refrain"),
)
_POLES: Mapping[str, Pole] = {
    verb: Pole(stem, affirms)
    for stem, affirming, denying in _OPPOSITES
    for verbs, affirms in ((affirming, True), (denying, False))
    for verb in verbs.split()
}
_SPEAKERS = frozenset("we you i".split())  # after "in CI" they begin the statement itself
_CHANGES = frozenset("longer anymore now".split())
_GRAVEST_FIRST: tuple[ConflictType, ...] = ("superseded", "contradictory", "ambiguous")


class Claim(Struct, frozen=True):
    """One clause: it affirms or denies something about its stems.

    A stem that begins with `+` stands for a pair of opposite verbs (`+toggle`: enable, disable). `scope` are the stems
    that say where or when the claim holds.
    """

    affirms: bool
    stems: frozenset[str]
    scope: frozenset[str] = frozenset()
    is_change: bool = False


# ---- read ----


def claims_of(content: str) -> tuple[Claim, ...]:
    """Read every clause as a claim; "X, not Y" is two. Questions and partial denials ("not only") claim nothing."""
    return _claims_of(content[:MAX_CHARS])


@lru_cache(maxsize=1024)  # a new text is compared with several others, and they with the next one
def _claims_of(content: str) -> tuple[Claim, ...]:
    return tuple(claim for part in parts_of(content) for claim in _claims_in(part) if claim.stems)


def _claims_in(part: str) -> Sequence[Claim]:
    if contrast := contrast_of(part):
        return _contrasted(contrast)
    claim = _read(part)
    return () if claim is None else (claim,)


def _contrasted(contrast: Contrast) -> Sequence[Claim]:
    """Two claims: what is wanted, and what is not."""
    wanted, unwanted = contrast.wanted, contrast.unwanted
    if contrast.is_change:
        wanted += contrast.rest
    else:
        unwanted += contrast.rest
    yes, no = _read(wanted), _read(unwanted)
    if yes is None or no is None:
        return ()
    if no.stems == no.scope:  # "use tabs in Makefiles, not in YAML": the same thing, elsewhere
        said, denied = yes.stems, (yes.stems - yes.scope) | no.stems
    else:  # "use tabs, not spaces, in Makefiles": another thing, in the same place
        said = yes.stems | no.scope | ({"+use"} if contrast.is_use else set())
        denied = no.stems | yes.scope | {stem for stem in said if stem.startswith("+")}
    scope, is_change = yes.scope | no.scope, contrast.is_change or yes.is_change
    return (
        Claim(yes.affirms, said, scope & said, is_change),
        Claim(not yes.affirms, denied, scope & denied, is_change),
    )


def _read(part: str) -> Claim | None:
    """Read one claim; None if the words deny only a part of it."""
    if denies_a_part(part):
        return None
    affirms = True
    stems: set[str] = set()
    scope: set[str] = set()
    is_change = False
    for piece in part.lower().split(", "):
        words = words_of(piece)
        if words == ["no"]:  # "No, …" denies something that another person said
            continue
        is_change = is_change or not _CHANGES.isdisjoint(words)
        for word, following, is_scope in _placed(words):
            stem, denies = _sense(word, following, is_scope=is_scope)
            affirms = affirms != denies
            (scope if is_scope else stems).add(stem)
    scope.discard("")
    stems.discard("")
    return Claim(affirms, frozenset(stems | scope), frozenset(scope), is_change)


def _placed(words: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """Yield each word that says something, the next one, and whether it stands in a phrase of place or condition."""
    opener = ""
    for word, following in pairwise([*words, ""]):
        if word in SCOPES:
            opener = word
        elif word in _SPEAKERS and opener in PLACES:
            opener = ""
        if word not in SILENT:
            yield word, following, opener != ""


def _sense(word: str, following: str, *, is_scope: bool) -> tuple[str, bool]:
    """Return the stem that a word adds to a claim, if any, and whether it denies the claim."""
    if word in LIMITS:
        return word, False
    if word in NEGATORS or word.endswith("n't"):
        is_condition = is_scope and word != "never"  # "when the call is not idempotent"
        return ("+not", False) if is_condition else ("", True)
    key = key_of(word)
    if len(key) == 1 and not word.isascii():  # the first sign of a run of Chinese: too little to be about the same
        key = word
    pole = _pole_of(key, following)
    return (key, False) if pole is None else (pole.stem, not pole.affirms)


def _pole_of(key: str, following: str) -> Pole | None:
    if key == "avoid" and following.endswith("ing"):  # "avoid using": the next verb says what
        return Pole("", affirms=False)
    return _POLES.get(key)


# ---- compare ----


def contradiction(
    left: Sequence[Claim], right: Sequence[Claim], rare: Callable[[Collection[str]], set[str]]
) -> ConflictType | None:
    """How gravely two texts contradict each other, or None. `rare` picks the stems that tell what a text is about.

    They must disagree about at least two rare stems, or about all the stems of a claim of each.
    """
    shared: set[str] = set()
    types: set[ConflictType] = set()
    for a in left:
        for b in right:
            type = _disagreement(a, b)
            if type is not None and (common := rare(a.stems & b.stems)):
                types.add(type)
                shared |= common if a.stems != b.stems else {*common, "+same"}
    return next(type for type in _GRAVEST_FIRST if type in types) if len(shared) > 1 else None


def _disagreement(a: Claim, b: Claim) -> ConflictType | None:
    if a.affirms == b.affirms:
        return None
    small, large = (a, b) if len(a.stems) <= len(b.stems) else (b, a)
    if not _is_about_the_same(small, large):
        return None
    if a.is_change or b.is_change:
        return "superseded"
    # "Never log tokens", "Log token counts in CI": one word more may make another thing of it, one phrase an exception.
    extra = large.stems - small.stems
    is_nearly_the_same = small.scope == large.scope and len(extra) == 1 and len(small.stems) > 2
    return "contradictory" if not extra or is_nearly_the_same else "ambiguous"


def _is_about_the_same(small: Claim, large: Claim) -> bool:
    if small.stems == large.stems:
        return True
    if not small.stems <= large.stems or not (small.stems - small.scope).isdisjoint(large.scope):
        return False  # "Never commit secrets", "Encrypt secrets before you commit them": there only a condition
    # "Send e-mails", "Never send e-mails synchronously": denies not this, but a manner of it
    return not small.affirms or large.stems - small.stems <= large.scope
