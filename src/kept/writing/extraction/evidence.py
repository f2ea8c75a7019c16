"""Judge by evidence how much a sentence of an agent is worth in a later session.

Used by extraction. An agent writes a hundred sentences for each that is needed again. The features of a good one are in
its words: it names code, and gives a reason, a limit, a place or a choice. Each feature has the same points: weights
chosen on some projects did no better on others. Rule: plans, guesses and reports of process are never kept, and a
finding that speaks of the agent or the user is never told before it is judged.
"""

from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from kept.text import compiled
from kept.writing.extraction.passages import Passage
from kept.writing.extraction.rules import lowered, rules
from kept.writing.extraction.statements import finished, own_words, without_praise

MIN_CHARS = 40
MAX_CHARS = 450  # a passage that is longer holds more than one thought
MOST_OF_A_PASSAGE = 0.6  # if the sentences worth keeping are less of it, all of it is needed to understand them
EVIDENT = 6  # that many can be told without a judge
FEATURE_POINTS = 2  # of each feature: no one of them says more than another
# The first and the second name from code: words that a search finds again. The others are rules of `cues.txt`.
_BY_NAMES = ("names_code", "names_much_code")
_CUES = ("finding", "place", "choice", "working_command")
_WORDS_AND_CODE = r"`[^`\n]{2,120}`|[^\s`]+"
_NAME = (
    r"(?:~|\.{1,2}|\w+)?/[\w.@+#-]{1,60}(?:/[\w.@+#-]{0,60})+(?::[\d-]+)?"  # a path: two slashes,
    r"|(?:~|\.{1,2})/[\w.@+#-]{1,60}|[\w.@+-]{2,60}/"  # or clearly one
    r"|[\w@+-]{1,60}/[\w@+-]{1,60}\.[a-z]{1,5}(?::[\d-]+)?"
    r"|--?[a-z][\w-]{1,40}(?:=\S+)?"  # an option
    r"|[\w-]{2,60}(?:\.[\w-]{1,60})*\.[a-z]{1,5}(?::[\d-]+)?|\.[a-z]\w[\w.-]{1,40}"  # a file
    r"|\w*[a-z][A-Z]\w{0,60}"  # camelCase, PascalCase
    r"|\w*[^\W\d]_\w{1,60}(?:=\S+)?|[\w.]{2,60}\(\)|[A-Z]{2,20}-?\d{1,6}"
    r"|\w{2,40}::\w{2,40}|v?\d{1,4}\.\d{1,4}(?:\.\d{1,6})?|#\d{1,6}"
)
_INTRODUCES = r"(?i)\b(?:either|following|these?|this|that|are|is|to|because|follows|below|options|things):$"
_PERSONS = r"\b(?:i|we|you|me|us|my|our|your|yours)\b(?![./])"
_AROUND = ",:;!?()[]{}\"'“”‘’*"


class JudgedPassage(Struct, frozen=True):
    """A passage, the part of it to keep, its points, and the features that gave them."""

    content: str
    points: int
    features: tuple[str, ...]
    passage: Passage

    def has(self, name: str) -> bool:
        return name in self.features

    @property
    def is_evident(self) -> bool:
        """Return True if it can be told without a judge: it names code, and a cue says it is no mere event."""
        return self.points >= EVIDENT and self.has("names_code") and any(map(self.has, _CUES))


@lru_cache(maxsize=512)  # asked for points, tags and comparison of the same statement
def names_in(text: str) -> tuple[str, ...]:
    """Return the names from code in a text, each once, without marks."""
    found: dict[str, None] = {}
    is_name = compiled(_NAME).fullmatch
    for word in compiled(_WORDS_AND_CODE).findall(text):
        if word[0] == "`":
            found[word.strip("`")] = None
        elif not word.isalpha() or not word[1:].islower():
            name = word.strip(_AROUND).rstrip(".") if not word.endswith("()") else word
            if len(name) > 1 and is_name(name):
                found[name] = None
    return tuple(found)


def judge(passage: Passage) -> JudgedPassage | None:
    """Give a passage of an agent its points; None if nothing of it could be kept."""
    told = _without_process(passage.sentences)
    content = " ".join(told)
    if not MIN_CHARS <= len(content) <= MAX_CHARS or content.endswith("?"):
        return None
    features = _features(content)
    if content.endswith(":") and ("finding" not in features or compiled(_INTRODUCES).search(content)):
        return None
    return JudgedPassage(content, FEATURE_POINTS * len(features), tuple(features), passage)


def _without_process(sentences: Sequence[str]) -> list[str]:
    passing = rules()["passing"]
    told = (without_praise(each) for each in sentences if not each.endswith("?"))
    return [each for each in told if not passing.fits(lowered(each))]


def _features(content: str) -> list[str]:
    """Return the names of the features that a text has."""
    known = rules()
    said = lowered(content)
    names = names_in(content)
    features = [name for name in ("reason", "limit") if known[name].fits(said)]
    if not names and not features:
        return []  # nothing to look up and no reason: never enough points
    features += [name for name in _CUES if known[name].fits(said)]
    return [*features, *_BY_NAMES[: len(names)]]


def of_one_list(judged: JudgedPassage, of_message: Sequence[JudgedPassage]) -> list[JudgedPassage]:
    """Return a passage and, if it is an item, the nearest items of its list that fit: together they are a thought."""
    chosen, subject = [judged], judged.passage.subject
    if not judged.passage.is_item or not subject:
        return chosen
    place = of_message.index(judged)
    size = len(subject) + len(judged.content)
    for at in sorted(range(len(of_message)), key=lambda at: abs(at - place)):
        each = of_message[at]
        is_item = each.passage.is_item and each.passage.subject == subject and each is not judged
        if is_item and size + len(each.content) < MAX_CHARS:
            chosen.append(each)
            size += len(each.content) + 1
    return sorted(chosen, key=of_message.index)


def worded(items: Sequence[JudgedPassage]) -> str:
    """Return the text of a passage, or of the items of one list, with the heading that names its subject."""
    parts = [_own_part(each) for each in items]
    content = " ".join(map(finished, parts)) if len(parts) > 1 else parts[0]
    head = items[0].passage.subject
    if not head or head.lower() in content.lower() or len(head) + len(content) > MAX_CHARS:
        return content
    return f"{head}: {content[:1].lower() if content[1:2].islower() else content[:1]}{content[1:]}"


def _own_part(judged: JudgedPassage) -> str:
    """Return the passage, or its best part if it is long."""
    text, part = judged.passage.text, judged.content
    is_whole = len(part) < MOST_OF_A_PASSAGE * len(text) <= MOST_OF_A_PASSAGE * MAX_CHARS
    return own_words(text if is_whole else part)


# The kind of a passage, by the first feature that it has.
_KINDS = (("choice", "decision"), ("place", "architecture"), ("working_command", "convention"))


def kind_of(judged: JudgedPassage) -> tuple[str, tuple[str, ...]]:
    """Return the kind of a passage, and the tag of an open end."""
    if rules()["open_end"].fits(lowered(judged.content)):
        return "progress", ("open",)
    return next((kind for name, kind in _KINDS if judged.has(name) and not judged.has("finding")), "discovery"), ()


def is_impersonal(content: str) -> bool:
    """Return False for talk between agent and user, a guess or an offer: a fact speaks of neither."""
    said = lowered(content)
    return not compiled(_PERSONS).search(said) and not any(rules()[name].fits(said) for name in ("guess", "offer"))


def explains(sentence: str) -> bool:
    """Match a sentence of an agent that gives the cause of a failure, not one about its plans or results."""
    known, said = rules(), lowered(sentence)
    if said.endswith(("?", ":")) or known["passing"].fits(said):
        return False
    return any(known[name].fits(said) for name in ("reason", "finding", "limit"))
