"""Make a statement of a sentence: one that can be understood alone, long after the conversation.

Used by extraction. Rule: the words stay the speaker's. Openings ("No, actually,") go, the first person becomes "the
user" where that is easy, and "it" is explained by joining the sentence before. What still points nowhere is dropped.
"""

from kept import text
from kept.writing.cues import cue_of
from kept.writing.patterns import pattern, phrases
from kept.writing.prose import Sentence

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
    points = not names_something and not _POINTERS.isdisjoint(pattern(_WORDS).findall(lowered))
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
    if not by_user or phrases(_REQUESTS).match(lowered) or cue_of(following.text, "user") is not None:
        return False
    return not _things(sentence.text).isdisjoint(_things(following.text))


def _things(sentence: str) -> set[str]:
    """The stems of the words that name something."""
    return {stem for word in _meaning(sentence.lower()) if len(word) > 3 for stem in text.words(word)[:1]}


def _meaning(lowered: str) -> list[str]:
    return [word for word in pattern(_WORDS).findall(lowered) if word not in _EMPTY]


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
    """With a capital at its beginning, unless that is a name of code, and a full stop at its end."""
    first = sentence.split(" ", 1)[0].rstrip(",:;")
    if first.replace("'", "").isalpha() and first.islower():
        sentence = sentence[:1].upper() + sentence[1:]
    sentence = sentence.rstrip(" ,;:-—–")
    return sentence if sentence.endswith((".", "!", "?", "。", "！", "？", '"')) else f"{sentence}."
