"""Written forms: whether a memory says the word that was asked for, or another word of the same stem.

Between candidates and score. An index holds stems, and a stem joins more than the forms of one word: `import` and
"important", `customer` and "custom" have one stem each. So a word that is found counts only if the memory has it in a
form of the word asked for: an inflection (plural, tense), or a noun or adjective that is regularly made of it
(validate, validation). A word that is made from parts (`get_user` as getuser) has no other form.
Rule: other words are taken out of the tokens of a memory, so that every later step judges by the same tokens.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import product, takewhile

from msgspec.structs import replace

from kept import text
from kept.model import Memory
from kept.ports import Found, Prepared

EXACTLY = "="  # before a form that counts only as it is: the `log` of "log in" is not "logs"
INFLECTED = "~"  # before a form that counts in its inflections only

Forms = Mapping[str, Sequence[str]]  # prepared word → forms that count; a word without a row counts in any form

# Words that the rules below would take for one another. Each line holds words of different meanings.
_FALSE_FRIENDS = """
    custom customer | product production productive | react reaction | commit commitment | depart department
    project projection projector | object objective objection | format formation | conversion conversation
    except exception | response responsible responsive | access accessible | contain container | suit suite
    past paste | local locale | good goods | major majority | minor minority | author authority authorize
    organ organize | import importance | general generalize | direct director | edit edition | apart apartment
    appoint appointment | execute executive | relative relation | position positive | extension extensive
    mass massive | create creative | ration rational rationale | set setting | moral morale | human humane humanity
    final finale | envelop envelope | breath breathe | emerge emergency | fabric fabricate | universe university
    serial serialize | special specialize | real realize reality | capital capitalize | person personality
    public publicity publication | hard hardly | process procession | transit transition | convent convention
    confer conference | consist consistent | digit digitize | critic critical criticize | short shortage
    arrange arrangement | engage engagement | invest investment | profess profession | success succession
    intern internment | stat state | cloth clothe clothes | port portable | note notable | state statement
    expert expertise | premise premises | mean means | custom customs customize | character characterize
    account accountable accountant | convert convertible | instance instant | illustrate illustrious
"""

# Endings that make a noun of a verb; two nouns of one verb are alike (operation, operator).
_OF_VERBS = (
    ("ation", ("", "e")),
    ("ion", ("", "e")),
    ("ment", ("",)),
    ("er", ("", "e")),
    ("or", ("", "e")),
    ("ance", ("", "e")),
    ("ence", ("", "e")),
    ("able", ("", "e")),
    ("ible", ("", "e")),
)
# Other endings: the longer word is like the shorter one (secure, security).
_OF_WORDS = (
    ("al", ("e",)),
    ("ional", ("ion",)),
    ("ive", ("", "e", "ion")),
    ("ity", ("", "e")),
    ("ibility", ("ible",)),
    ("ability", ("able",)),
    ("ency", ("", "e", "ent")),
    ("ancy", ("ant",)),
    ("ent", ("", "e")),
    ("ly", ("",)),
    ("ically", ("ic",)),
    ("ical", ("ic",)),
    ("atic", ("ate",)),
    ("ate", ("", "e")),
    ("ize", ("",)),
    ("ness", ("",)),
)
_LONG = 6  # letters: in a shorter word one letter makes another word
_LETTERS = text.pattern(r"[^\W\d_]+")
_SHORTEST = 3  # letters of a word that another one is made of
_VOWELS = "aeiouy"
# Endings of stems. A longer stem with one of them is another word of the same root: react, reaction.
_OF_STEMS = frozenset(
    "s e i y al iz is ion at or er ant ent iv abl ibl iti ist ism ic ous ful less ment ship ed ing ate ation".split()
)
# Endings of written words, to guess those that a stem stands for.
_MADE_BY = (
    "", "e", "y", "er", "or", "ar", "ator", "ion", "ation", "ition", "ication", "ization", "isation", "ment", "ance",
    "ence", "ant", "ent", "ency", "able", "ible", "ability", "ity", "al", "ally", "ive", "ly", "ate", "ize", "ise",
    "izer", "ic", "ical", "ous", "ist", "ism", "ness", "ful", "less", "et", "ies", "ied",
)  # fmt: skip
_INFLECTED_BY = ("", "s", "es", "d", "ed", "ing")


@cache
def _friends() -> dict[str, set[int]]:
    """Map each word of the table to the lines that it is on."""
    lines = [line.split() for line in _FALSE_FRIENDS.replace("\n", "|").split("|") if line.strip()]
    found: dict[str, set[int]] = {}
    for number, line in enumerate(lines):
        for word in line:
            found.setdefault(word, set()).add(number)
    return found


@lru_cache(maxsize=8192)
def is_same_word(one: str, other: str) -> bool:
    """Return True if two words of one stem, in lower case, are forms of the same word.

    German words are: their stems are made by other rules.
    """
    if one == other or text.is_german(one) or text.is_german(other):
        return True
    if _are_false_friends(one, other):
        return False
    bases, other_bases = _inflected(one), _inflected(other)
    if not bases.isdisjoint(other_bases) or _is_one_edit_apart(one, other):
        return True
    by_verb, by_word = _made_of(bases, _OF_VERBS), _made_of(bases, _OF_WORDS)
    other_by_verb, other_by_word = _made_of(other_bases, _OF_VERBS), _made_of(other_bases, _OF_WORDS)
    return not (
        by_verb.isdisjoint(other_by_verb)
        and (by_verb | by_word).isdisjoint(other_bases)
        and (other_by_verb | other_by_word).isdisjoint(bases)
    )


def _is_one_edit_apart(one: str, other: str) -> bool:
    """Return True if two longer words differ in one letter: the same stem shows that one is a slip of the other."""
    longest = max(len(one), len(other))
    before = _n_shared(one, other)
    after = _n_shared(one[before:][::-1], other[before:][::-1])
    return longest >= _LONG and longest - before - after <= 1


def _n_shared(one: str, other: str) -> int:
    """Count the letters with which both words begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _are_false_friends(one: str, other: str) -> bool:
    known, known_other = _in_table(one), _in_table(other)
    if known is None or known_other is None or known == known_other:
        return False
    return not _friends()[known].isdisjoint(_friends()[known_other])


def _in_table(word: str) -> str | None:
    """Return the word of the table that a word is the likeliest a form of: "suites" of suite, "pasted" of paste."""
    of_number = [*_of_number(word)]
    of_tense = (base for each in of_number for base in _of_tense(each))
    return next((base for base in (*of_number, *of_tense) if base in _friends()), None)


def _inflected(word: str) -> set[str]:
    """Return the word and those that it may be an inflection of."""
    found = {*_of_number(word)}
    found |= {base for each in found for base in _of_tense(each)}
    # The plural of many German words: Paket, Pakete.
    return found | {each[:-1] for each in found if each.endswith("e") and len(each) > _SHORTEST}


def _of_number(word: str) -> Iterator[str]:
    """Yield the word and those that it may be the plural of, the likeliest first."""
    yield word
    if word.endswith("ies"):
        yield f"{word[:-3]}y"
    if word.endswith("s") and not word.endswith("ss"):
        yield word[:-1]
    if word.endswith("es"):
        yield word[:-2]


def _of_tense(word: str) -> Iterator[str]:
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(bare := word.removesuffix(ending)) >= 2:
            yield f"{bare}e"
            yield bare
            if bare[-1] == bare[-2] and bare[-1] not in _VOWELS:
                yield bare[:-1]
            if ending == "ed" and bare[-1] == "i":
                yield f"{bare[:-1]}y"


def _made_of(bases: Iterable[str], endings: Iterable[tuple[str, Sequence[str]]]) -> set[str]:
    """Return the words that one of the bases may be made of by one of the endings."""
    return {
        bare + restored
        for base in bases
        for ending, before in endings
        # Nothing is made by a second e: an engineer is not made of an engine.
        if base.endswith(ending) and len(bare := base[: -len(ending)]) >= _SHORTEST and bare[-1] != "e"
        for restored in before
    }


def is_beginning(stem: str, longer: str) -> bool:
    """Return True if a stem may be the beginning of a longer one: of another word, not of one that is made of it."""
    return longer[len(stem) :] not in _OF_STEMS


def is_in_form(written: str, wanted: Sequence[str]) -> bool:
    """Return True if a written word is a form of one of the wanted words."""
    return any(_counts(form, written) for form in wanted)


def _counts(wanted: str, written: str) -> bool:
    mark, word = wanted[:1], wanted[1:]
    if mark == EXACTLY:
        return word == written
    if mark == INFLECTED:
        return not _inflected(word).isdisjoint(_inflected(written))
    return is_same_word(wanted, written)


def reduce_to(forms: Forms) -> Callable[[Found], Found]:
    """Return a function that takes from a find the words that are not there in one of these forms."""

    def reduced(found: Found) -> Found:
        said = f" {found.prepared.words} {found.prepared.tag_words} {found.prepared.file_words} "
        held = [word for word in forms if word in said and f" {word} " in said]
        if not held:
            return found
        unlike = _unlike({word: forms[word] for word in held}, found.memory)
        return replace(found, prepared=_without(found.prepared, unlike), match=None) if unlike else found

    return reduced


def _unlike(forms: Forms, memory: Memory) -> set[str]:
    """Return the words that a memory holds in other forms only."""
    said = " ".join(filter(None, (memory.title, memory.content, *memory.tags, *memory.files)))
    # Mostly a form of the word stands there alone, which is seen without reading identifiers.
    alone = {*_LETTERS.findall(said.lower())}
    missed = {word: wanted for word, wanted in forms.items() if not _is_among(alone, word, wanted)}
    if not missed:
        return set()
    written = text.written_forms(said)
    return {word for word, wanted in missed.items() if word in written and not _is_among(written[word], word, wanted)}


def _is_among(written: set[str], stem: str, wanted: Sequence[str]) -> bool:
    """Return True if one of the written words is a form of a wanted word of this stem."""
    if not written.isdisjoint(wanted):
        return True
    return any(is_in_form(word, wanted) for word in written if word.startswith(stem[:2]))


def _without(prepared: Prepared, words: set[str]) -> Prepared:
    def left(column: str) -> str:
        return " ".join(token for token in column.split() if token not in words)

    return replace(
        prepared,
        words=left(prepared.words),
        tag_words=left(prepared.tag_words),
        file_words=left(prepared.file_words),
    )


def spellings(stem: str, written: str, edits: int) -> Iterator[str]:
    """Yield the words of this stem that may be that many edits from a written word."""
    for root, made, inflected in product(_roots(stem), _MADE_BY, _INFLECTED_BY):
        word = f"{root}{made}{inflected}"
        if abs(len(word) - len(written)) <= edits and text.phrase(word) == stem:
            yield word


def _roots(stem: str) -> Iterator[str]:
    yield stem
    if stem.endswith("i"):
        yield f"{stem[:-1]}y"  # queri, query
    if len(stem) > 2 and stem[-1] not in _VOWELS and stem[-2] in _VOWELS:
        yield stem + stem[-1]  # run, running
