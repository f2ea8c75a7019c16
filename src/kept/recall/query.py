"""From a query to the words to look for, each with its weight.

First step of the read path. Words of the query weigh 1. Words that an alias brings in, or that an unknown word could
have meant (a beginning, a misspelling), weigh less, and a hit says how each came in. Each word comes with the forms in
which it counts (`forms.py`).
Aliases are words that people say for the same thing. Kept brings the groups of `vocabulary.py`, listed by stem in
`stems.py`; a person adds lines or takes a word out (`kept alias`), and such a line stands in place of the default for
its word. Words that are said together (`sign in`) are found together. Rule: any string at all is a query.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from kept import text
from kept.model import Alias
from kept.ports import Deadline, Where
from kept.recall import Circumstances, Request, profile_of, where_of
from kept.recall.forms import EXACTLY, INFLECTED, Forms, is_beginning, is_same_word, spellings
from kept.recall.stems import ALIASES, COMMON, EVERYDAY, WORTHLESS
from kept.tables import Profile

ASKED_FOR = "asked for"  # the reason of a word that is in the query itself
ALIAS_OF = "alias of"
ALIAS_WEIGHT = 0.5
PREFIX_WEIGHT = 0.4
FUZZY_WEIGHT = 0.4
_MOST_PER_WORD = 4  # variants that one unknown word may bring in
_SHORTEST_GUESS = 4  # letters: a shorter word is near to everything
MOST_READ = 256  # words of a prompt
_ALSO_LONGER = 12  # that may be made of the same word
_NEIGHBOURHOOD = 5_000  # words with the same beginning that are compared

Line = tuple[Sequence[str], Sequence[str]]  # words, or words said together, and others to search for; as written


class SearchWords(Struct, frozen=True):
    """The words to look for: prepared word → weight; and for those that are not in the query, how they came in."""

    weights: dict[str, float]
    reasons: dict[str, str] = {}
    # word of the query → the words, or words said together, brought in for it
    stand_ins: dict[str, tuple[str, ...]] = {}
    forms: dict[str, tuple[str, ...]] = {}  # prepared word → its forms that count; others count in any form

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(self.weights)

    @property
    def literal(self) -> tuple[str, ...]:
        """Those that are in the query itself."""
        return tuple(word for word in self.weights if word not in self.reasons)

    def is_alias(self, word: str) -> bool:
        """Whether aliases stand for this word of the query; else they are what it could have meant."""
        others = (token for phrase in self.stand_ins.get(word, ()) for token in phrase.split())
        return any(self.reasons.get(other) == f"{ALIAS_OF} {word}" for other in others)

    def reason(self, word: str) -> str:
        """How a word came in."""
        return self.reasons.get(word, ASKED_FOR)

    def with_words(self, weight: float, how: str, brought: Mapping[str, Sequence[str]]) -> "SearchWords":
        """The same with more words (word of the query → others), none of which replaces one that is there."""
        weights, reasons, stand_ins = dict(self.weights), dict(self.reasons), dict(self.stand_ins)
        for word, others in brought.items():
            if not others:
                continue
            stand_ins[word] = tuple(dict.fromkeys((*stand_ins.get(word, ()), *others)))
            for other in (token for phrase in others for token in searched(phrase)):
                if other not in weights and other not in WORTHLESS:
                    weights[other], reasons[other] = weight, f"{how} {word}"
        return SearchWords(weights, reasons, stand_ins, self.forms)

    def with_forms(self, forms: Forms) -> "SearchWords":
        """Let these words count in these forms as well."""
        more = {word: (*self.forms.get(word, ()), *own) for word, own in forms.items() if word in self.reasons}
        return replace(self, forms=self.forms | more)

    def with_aliases(self, written: Mapping[str, Sequence[str]]) -> "SearchWords":
        """Add aliases (word of the query → others as people write them), which count in their forms."""
        words = self.with_words(ALIAS_WEIGHT, ALIAS_OF, {key: _stems(key, others) for key, others in written.items()})
        if not self.forms:
            return words
        forms = dict(self.forms)
        for key, others in written.items():
            for word, form in (counting for other in others for counting in _counting_forms(other)):
                # A word of the query counts in its own forms, also where an alias of another one has its stem.
                if word == key or word in words.reasons:
                    forms[word] = (*forms.get(word, ()), form)
        return replace(words, forms=forms)


def search_words(request: Request, circumstances: Circumstances) -> SearchWords:
    """The words of the query, and their aliases if the profile wants them."""
    profile = profile_of(request, circumstances.settings)
    asked = _asked(request.query)
    words = SearchWords({word: profile.filler_weight if word in WORTHLESS else 1.0 for word in asked})
    if profile.by_form:
        written = forms_in(request.query)
        words = replace(words, forms={word: written[word] for word in words.all if word in written})
    if profile.aliases:
        own = [alias for reader in circumstances.readers for alias in reader.all(Alias)]
        words = words.with_aliases(written_expansions(words.all, own, words.forms))
    return words


def _asked(query: str) -> list[str]:
    """The words of the query; of a long prompt, those that tell the most."""
    words = text.query_words(query, MOST_READ)
    if len(words) <= text.MAX_QUERY_WORDS:
        return words
    telling = sorted(words, key=lambda word: (word in WORTHLESS, word in COMMON))[: text.MAX_QUERY_WORDS]
    return [word for word in words if word in telling]


def guess(
    words: SearchWords, unknown: Sequence[str], request: Request, circumstances: Circumstances, deadline: Deadline
) -> SearchWords:
    """Add the words that each unknown one could have meant: it is their beginning, or a slip of the keyboard."""
    profile, where = profile_of(request, circumstances.settings), where_of(request)
    for word in unknown:
        if deadline.is_over():
            break
        if len(word) < _SHORTEST_GUESS or (profile.by_form and _is_complete(word)):
            continue
        if profile.prefix:
            longer = _longer(word, circumstances, where, profile)
            words = words.with_words(PREFIX_WEIGHT, "begins with", {word: longer})
        if profile.fuzzy_share:
            for written in words.forms.get(word, (word,)):
                near = _near(written, circumstances, where, profile)
                words = words.with_words(FUZZY_WEIGHT, "near", {word: [*near]}).with_forms(near)
    return words


def _is_complete(word: str) -> bool:
    """Return True for a word of the vocabulary or of every day: it is no beginning and no slip."""
    return word in EVERYDAY or word in WORTHLESS or bool(default_expansions(word))


def _near(written: str, circumstances: Circumstances, where: Where, profile: Profile) -> dict[str, list[str]]:
    """Return the words of the index that are near to a word as it is written, each with the forms that are.

    An index holds stems, so each is compared in all forms that it may stand for: "deploymnet" is near to "deployment",
    and not to its stem.
    """
    from rapidfuzz import distance, process  # takes 10 ms to import, and most queries have no unknown word

    edits = max(1, round(profile.fuzzy_share * len(written)))
    apart = distance.OSA.distance
    # FTS5 counts the rows of every word that it lists, so ask for few first: a slip is seldom at the beginning.
    for beginning in (written[:3], written[:2], written[:1]):
        known = _vocabulary(beginning, circumstances, where, limit=_NEIGHBOURHOOD)
        forms = {word: word for word in known}
        if profile.by_form:
            begun = [word for word in known if apart(word, written[: len(word)], score_cutoff=edits + 1) <= edits + 1]
            forms = {form: word for word in begun for form in spellings(word, written, edits)}
        near = process.extract(written, [*forms], scorer=apart, score_cutoff=edits, limit=_MOST_PER_WORD)
        if near:
            return _by_word({form: forms[form] for form, _, _ in near})
    return {}


def _by_word(near: Mapping[str, str]) -> dict[str, list[str]]:
    """Map the words of near forms to those forms, with the mark that says how each counts."""
    found: dict[str, list[str]] = {}
    for form, word in near.items():
        # A stem is not always a word that people write.
        found.setdefault(word, []).append(f"{EXACTLY if form == word else INFLECTED}{form}")
    return found


def _longer(word: str, circumstances: Circumstances, where: Where, profile: Profile) -> list[str]:
    """Return the words of the index that begin with this one."""
    found = _vocabulary(word, circumstances, where, limit=_MOST_PER_WORD + _ALSO_LONGER)
    return [other for other in found if not profile.by_form or is_beginning(word, other)][:_MOST_PER_WORD]


def _vocabulary(beginning: str, circumstances: Circumstances, where: Where, *, limit: int) -> list[str]:
    return [word for reader in circumstances.readers for word in reader.vocabulary(beginning, where, limit=limit)]


# ---- aliases ----


def expansions(words: Sequence[str], own: Sequence[Alias]) -> dict[str, tuple[str, ...]]:
    """Map a word of the query, or two that follow each other, to the prepared words to look for as well."""
    return {key: _stems(key, others) for key, others in written_expansions(words, own, {}).items()}


def _stems(key: str, others: Sequence[str]) -> tuple[str, ...]:
    """Return the others as an index holds them, each once, without those that have the stem of the key."""
    stems = dict.fromkeys(" ".join(stem for stem, _ in _parts(other)) for other in others)
    return tuple(stem for stem in stems if stem != key)


def written_expansions(words: Sequence[str], own: Sequence[Alias], forms: Forms) -> dict[str, tuple[str, ...]]:
    """Map the same to the words as people write them; only of those that the query has in a form of theirs.

    They may hold other words of the same stem: `register`, "registration".
    """
    own_table: dict[str, list[Line]] = {}
    for alias in own:
        own_table.setdefault(text.phrase(alias.word), []).append(((alias.word,), alias.expands_to))
    found: dict[str, tuple[str, ...]] = {}
    for place, word in enumerate(words):
        for key in (word, *(f"{word} {after}" for after in words[place + 1 : place + 2])):
            others = _asked_others(own_table.get(key, ()), forms)
            if others is None:
                others = _asked_others(default_lines(key), forms)
            if others:
                found[key] = others
    return found


def _asked_others(lines: Sequence[Line], forms: Forms) -> tuple[str, ...] | None:
    """Return the other words of those lines that the query asks for, each once; None if it asks for no line."""
    asked = [others for words, others in lines if any(is_asked(word, forms) for word in words)]
    return tuple(dict.fromkeys(other for others in asked for other in others)) if asked else None


def is_asked(word: str, forms: Forms) -> bool:
    """Return True if the query has a word, or words said together, in forms of their own."""
    return all(_are_same(own, forms.get(stem, ())) for stem, own in _parts(word))


def _are_same(forms: Sequence[str], others: Sequence[str]) -> bool:
    return not forms or not others or any(is_same_word(one, other) for one in forms for other in others)


def forms_in(written: str) -> dict[str, tuple[str, ...]]:
    """Map the prepared words of a text to their forms in it."""
    return {word: tuple(sorted(forms)) for word, forms in text.written_forms(written.replace("_", " ")).items()}


@lru_cache(maxsize=4096)
def _parts(phrase: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return each word of a phrase as an index holds it, and as `forms.py` compares it.

    A name that is joined from parts, such as k8s, has no form to compare.
    """
    if phrase.isalpha() and phrase.isascii():
        return ((text.phrase(phrase), (phrase.lower(),)),)
    found = []
    for word in phrase.replace("_", " ").lower().split():
        stem = text.phrase(word)
        is_plain = word.isascii() and word.isalpha()
        found.append((stem, (word,) if is_plain else tuple(text.written_forms(word).get(stem, ()))))
    return tuple(found)


@lru_cache(maxsize=4096)
def _counting_forms(phrase: str) -> tuple[tuple[str, str], ...]:
    """Return each prepared word of a phrase with each of its forms that count.

    Of words that are said together only the last may be inflected: "logs in" is not "log in".
    """
    parts = _parts(phrase)
    exact = [(stem, f"{EXACTLY}{form}") for stem, forms in parts[:-1] for form in forms]
    return (*exact, *((stem, form) for stem, forms in parts[-1:] for form in forms))


def searched(phrase: str) -> list[str]:
    """Return the prepared words that find a phrase, without common ones: "test" alone is no "test environment"."""
    words = phrase.split()
    return [word for word in words if word not in COMMON] or words


def default_expansions(key: str) -> tuple[str, ...]:
    """Return the words that Kept itself brings in for a prepared word, as people write them."""
    return tuple(other for _, others in default_lines(key) for other in others)


def default_lines(key: str) -> list[Line]:
    """Read an entry of the table: "others", or "words > others; words > others" where a stem is not its own word."""
    entry = ALIASES.get(key)
    lines = (line.rpartition(" > ") for line in entry.split("; ")) if entry else ()
    return [((words or key).split(", "), others.split(", ")) for words, _, others in lines]
