"""Read the sentences of a message, and make statements of them that can be understood alone.

Used by extraction. Only a speaker's own words are read (`writing.quotes`); code and tables are dropped. Linear in the
text. Rule: the words stay the speaker's. Openings ("No,
actually,") go, the first person becomes "the user" where that is easy, and "it" is explained by joining the sentence
before. A sentence that still points nowhere is dropped.
"""

from collections.abc import Iterator

from msgspec import Struct

from kept import text
from kept.text import compiled
from kept.writing.extraction.rules import phrases, rule_for
from kept.writing.quotes import split

MAX_CHARS = 20_000  # a longer message is a file
MIN_SENTENCE_CHARS = 8
MAX_SENTENCE_CHARS = 450
MAX_LABEL_CHARS = 60  # of a line that introduces a list, such as "Decisions:"
WRAPPED_CHARS = 60  # a line that is shorter than this was ended, not broken

_FENCE = r"\s{0,3}(?:```|~~~)"
_HEADING = r"(#{1,6}) +([^#\n]{1,200})"
_MARKER = r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?"
_NOT_PROSE = r"\s*(?:>|\||#{1,6}\s|[-=*_]{3,}\s*$|\$ |@@|[+-]{3} |\{|\}|//|/\*|<)"
_LINK = r"!?\[([^\[\]\n]{1,200})\]\([^()\s]{1,500}\)"
_EMPHASIS = r"\*\*|__(?=\S)|(?<=\S)__|`+|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)"
_END = r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[^\W_])|(?<=[。！？])"
_ABBREVIATION = r"(?i)(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|resp|incl|z\.B|bzw|ca)|\b[A-Z])\.$"
_NOT_LETTERS = r"[\W\d_](?<! )"
_CODE_CHARS = frozenset("{}[]<>=;|\\$~^")


class _Paragraph(Struct, frozen=True):
    text: str
    headings: tuple[str, ...]
    topic: str


class Sentence(Struct, frozen=True):
    """One sentence, the one before it (which may say what "it" is), and the headings above it.

    `topic` is the nearest heading below one that says what kind of thing this is ("Findings", then "How X works").
    """

    text: str
    before: str = ""
    headings: tuple[str, ...] = ()
    topic: str = ""


def sentences(text: str, *, may_be_pasted: bool = False) -> list[Sentence]:
    """The sentences of a message in order. `may_be_pasted`: of a very long text, only both ends are the speaker's."""
    found: list[Sentence] = []
    before = ""
    for paragraph in _paragraphs(split(text[:MAX_CHARS], is_long_pasted=may_be_pasted).own):
        for sentence in _split(paragraph.text):
            if _is_prose(sentence):
                found.append(Sentence(sentence, before, paragraph.headings, paragraph.topic))
            before = sentence
    return found


def _paragraphs(text: str) -> Iterator[_Paragraph]:
    """Lines that belong together, without Markdown.

    A long line without a full stop runs on; any other line is a separate thought, marked by a newline.
    """
    titles = [""] * 6  # of the headings, by their level
    label = ""  # a line that introduces a list, such as "Decisions:"
    paragraph = previous = ""
    is_code = False
    for line in [*text.splitlines(), ""]:
        is_fence, is_item = bool(compiled(_FENCE).match(line)), bool(compiled(_MARKER).match(line))
        is_code ^= is_fence
        is_quiet = is_code or is_fence or not line.strip() or (line.startswith("    ") and not is_item)
        is_prose = not is_quiet and not compiled(_NOT_PROSE).match(line)
        heading = None if is_quiet else compiled(_HEADING).match(line)
        if paragraph and (is_item or not is_prose):
            above = [title for title in titles if title]
            topic = above[-1] if len(above) > 1 else label if above else ""
            yield _Paragraph(paragraph, (*above, label) if label else tuple(above), topic)
            if not compiled(_MARKER).match(previous):
                label = paragraph[:-1] if paragraph.endswith(":") and len(paragraph) <= MAX_LABEL_CHARS else ""
            paragraph = ""
        if heading:
            level = len(heading[1])
            titles = [*titles[: level - 1], _plain(heading[2]).rstrip(":"), *[""] * (6 - level)]
            label = ""
        elif is_prose:
            runs_on = len(previous) >= WRAPPED_CHARS and previous[-1] not in ".!?:;"
            paragraph += ("" if not paragraph else " " if runs_on else "\n") + _plain(line)
            previous = line.rstrip()


def _plain(line: str) -> str:
    line = compiled(_MARKER).sub("", line, count=1)
    return " ".join(compiled(_EMPHASIS).sub("", compiled(_LINK).sub(r"\1", line)).split())


def _split(paragraph: str) -> list[str]:
    pieces: list[str] = []
    for piece in (piece for line in paragraph.split("\n") for piece in compiled(_END).split(line)):
        if pieces and compiled(_ABBREVIATION).search(pieces[-1][-8:]):
            pieces[-1] += f" {piece}"
        elif piece.strip():
            pieces.append(piece.strip())
    return pieces


def _is_prose(sentence: str) -> bool:
    """Whether it is of sensible length, made of words, and not a line of a program, a log or a table."""
    if not MIN_SENTENCE_CHARS <= len(sentence) <= MAX_SENTENCE_CHARS:
        return False
    odd = compiled(_NOT_LETTERS).findall(sentence)
    return len(odd) <= 0.4 * (len(sentence) - sentence.count(" ")) and sum(map(_CODE_CHARS.__contains__, odd)) <= 4


MIN_MEANINGFUL_WORDS = 2
MIN_CONTINUATION_CHARS = 25

_OPENINGS = r"""
    ^(ok|okay|hm+|so|well|also|and|but|btw|by the way|actually|please|hey|note that|please note that)\b[\s,.:;!—–-]+
    ^(no|nope|yes|yeah|yep|right|sure|great|perfect|good|nice|cool|fine|thanks|thank you|wait|sorry)[,.:;!—–-]+\s+
    ^(agreed|alright|all right|important|note|one (last |more )?thing( first)?)[,.:;!—–-]+\s+
    ^that'?s (wrong|incorrect|not (right|true|correct))[,.:;!—–-]+\s+
    ^(as )?i (said|told you)( that| to)?[,:]?\s+
    ^(remember|keep in mind|bear in mind)( that|:)\s+
    ^(for the record|for future reference|fyi)[,:]?\s+
    ^(it )?turns out( that)?,?\s+
    ^speaking of which,?\s+
    ^the (problem|issue|cause) is clear( now)? ?[—–:-]\s+
    ^i('ve| have)? (just )?(found|discovered|noticed|learned|reali[sz]ed)( out)? that\s+
    """
_DONE = r"""
    ^i('ve| have)? (also |just )?(?=([a-z]+ed|built|rewrote|split)\b)
    """
_WISHES = {
    r"^i('d| would) rather\b": "The user would rather",
    r"^i (really |strongly |also |usually |generally )?prefer\b": "The user prefers",
    r"^i (really )?like\b": "The user likes",
    r"^i (really )?hate\b": "The user hates",
    r"^i (really )?dislike\b": "The user dislikes",
    r"^i (really )?(don'?t|do not) like\b": "The user doesn't like",
    r"^i (really )?(don'?t|do not) want\b": "The user doesn't want",
}
_POINTS_BACK = r"""
    ^(it|they|he|she|them|both)\b(?! turns out)
    ^(this|that|these|those)('s\b|[,.:;!])
    ^(this|that|these|those) (is|was|are|were|has|had|does|did|should|must|will|would|can|could|also|only)\b
    ^(this|that|these|those) (needs?|means?|causes?|breaks?|works?|fails?|happens?|makes?|lets?|way)\b
    """
_REQUESTS = r"""
    ^(please|can|could|would|let|now|ok|okay|next|then|also|and|i|thanks|run|fix|add|check|make|look|start|show|go|do|try)\b
    ^(write|create|update|change|use|put|open|read|find|see|give|tell|explain|continue|commit|push|delete|move|test)\b
    """
_POINTERS = frozenset("it that this them those these so one".split())
_WORDS = r"[^\W_][\w'./@-]*"
_EMPTY = _POINTERS | frozenset(
    "a an the i you we he she they me us my your our his her is are was were be been do does did don't dont doesn't "
    "not no never always to of in on at for with from by as and or but if then than please just also let's lets use "
    "keep make get go going will would can could should must have has had said stop again now there here too".split()
)


def statement(sentence: Sentence, question: str = "", *, by_user: bool = False) -> str:
    """The sentence as a statement that can be understood alone; empty if it cannot.

    `question` is what the speaker may be answering: "let's not do that" is kept only together with it.
    """
    words = own_words(sentence.text, by_user=by_user)
    lowered = words.lower()
    meaning = _meaning(lowered)
    names_something = any(mark in word for word in meaning for mark in "./_")
    points = not names_something and not _POINTERS.isdisjoint(compiled(_WORDS).findall(lowered))
    is_vague = points and len(meaning) <= MIN_MEANINGFUL_WORDS + 1
    if not is_vague and not points_back(words):
        return finished(words) if len(meaning) >= MIN_MEANINGFUL_WORDS else ""
    before = sentence.before if sentence.before and not sentence.before.endswith("?") else question
    return f"{finished(own_words(before, by_user=by_user))} {finished(words)}" if before else ""


def points_back(sentence: str) -> bool:
    """Whether the sentence begins with a word for something that was named before: "it", "this means"."""
    return phrases(_POINTS_BACK).match(sentence.lower()) is not None


def continues(sentence: Sentence, following: Sentence, *, by_user: bool = False) -> bool:
    """Whether the next sentence goes on about the same: as "it", or, in a user's words, about the same thing."""
    lowered = following.text.lower()
    if following.before != sentence.text or lowered.endswith("?") or len(lowered) < MIN_CONTINUATION_CHARS:
        return False
    if points_back(lowered):
        return True
    if not by_user or phrases(_REQUESTS).match(lowered) or rule_for(following.text, "user") is not None:
        return False
    return not _things(sentence.text).isdisjoint(_things(following.text))


def _things(sentence: str) -> set[str]:
    """The stems of the words that name something."""
    return {stem for word in _meaning(sentence.lower()) if len(word) > 3 for stem in text.words(word)[:1]}


def _meaning(lowered: str) -> list[str]:
    return [word for word in compiled(_WORDS).findall(lowered) if word not in _EMPTY]


def own_words(sentence: str, *, by_user: bool = False) -> str:
    """The sentence without its opening words, and without the first person where that is easy."""
    words = sentence.replace("’", "'")
    while opening := phrases(_OPENINGS).match(words.lower()):
        words = words[opening.end() :]
    if not by_user:
        done = phrases(_DONE).match(words.lower())
        return words[done.end() :] if done else words
    for wish, told in _WISHES.items():
        if match := phrases(wish).match(words.lower()):
            return told + words[match.end() :]
    return words


def finished(sentence: str) -> str:
    """The sentence with a full stop and, unless it begins with a name from code, a capital."""
    first = sentence.split(" ", 1)[0].rstrip(",:;")
    if first.replace("'", "").isalpha() and first.islower():
        sentence = sentence[:1].upper() + sentence[1:]
    sentence = sentence.rstrip(" ,;:-—–")
    return sentence if sentence.endswith((".", "!", "?", "。", "！", "？", '"')) else f"{sentence}."
