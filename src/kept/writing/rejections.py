"""Rejections: a statement that was forgotten, overruled or found wrong does not come back unasked.

Made by `forget`, by the end of a conflict, by a judge and by a review; consulted where a draft is stored
(`pipeline.store`) and where a memory gets another text or is restored. Rule: an automatic draft that says it again is
refused, an agent's becomes a candidate that only a person confirms, and the words of a person lift the rejection. A
confirmed memory that says the same outranks it.

A statement is recognised by its fingerprint or by its skeleton: its words without articles, auxiliaries and plain
prepositions. A paraphrase has the same words, in this order or turned around a comma, or one or two more or fewer in a
long statement. Another word in the place of one may be another value, so it makes another statement.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from kept import text
from kept.model import Memory, RejectedAs, Rejection, replace
from kept.ports import Reader, Transaction
from kept.text import compiled
from kept.writing.clauses import DENIALS
from kept.writing.letters import unmasked
from kept.writing.things import is_day
from kept.writing.values import is_side

MIN_SHARE = 0.9  # of the longer skeleton, that both have
MIN_STEM_CHARS = 5  # a shorter word is compared as it is: "http" is not "https"
MAX_WORDS = 100  # of a skeleton
MIN_SAID_WORDS = 2  # that a statement has at least: "use tabs"
_RUN = r"[^\W_](?:[\w'’./@+#=%:&-]*[\w%+#])?|[<>]=?"
_CLAUSE_ENDS = r"[,;.!?:](?:\s|$)|\s[–—-]\s"
_REASON = r"(?i)\s*\b(?:why|how to apply):"
# How a statement may begin and end without being another one: markup, an announcement, a reason.
_LINK = r"\[([^\]\n]{1,300})\]\([^()\n]{0,300}\)"
_EMPHASIS = r"(?<!\w)_+|_+(?!\w)"
_ANNOUNCED = (
    r"(?i)^\W*(?:please\s+)?(?:note|remember|keep in mind|(?:we|i)(?:'ve| have)? (?:decided|agreed)"
    r"|it (?:was|is) (?:decided|agreed))\s+that\b"
)
_BEHIND = r"(?i)[\s,]+(?:because|due to|so that|as (?:agreed|decided|discussed))\b.*"
_ENDING = r"(?:'s|ies|ing|ed|es|s|e|d|y)$"
# Words of a sentence that a paraphrase may leave out or change. Those that turn a meaning around are not among them.
_WEIGHTLESS = frozenset(
    "a an the this that these those it its it's we we're our you your i i'm my he she they their them us me there has "
    "had have having will would just please also too now currently ok okay so then let's is are am was were be been "
    "being do does did must should shall always actually in at for by with via as every each about per and here".split()
)
_RELATIONS = frozenset(
    "before after over under than from to until only if when then instead rather between above below most least".split()
)
_WAS = {"forgotten": "forgotten", "overruled": "overruled by another statement", "wrong": "rejected as wrong"}


# ---- recognise a statement ----


@lru_cache(maxsize=512)  # a draft is compared with every rejection
def skeleton(content: str) -> tuple[str, ...]:
    """Return the words of a statement that a paraphrase keeps, in order; names as they are written."""
    plain = compiled(_EMPHASIS).sub("", compiled(_LINK).sub(r"\1", unmasked(content)))
    runs = compiled(_RUN).findall(plain.replace("’", "'"))
    words: list[str] = []
    is_owned = False  # "the TTL of the cache" is "the cache TTL"
    for place, run in enumerate(runs):
        word = run.lower()
        if word == "of":
            is_owned = bool(words)
            continue
        if word in _WEIGHTLESS or (word == "on" and place + 1 < len(runs) and is_day(runs[place + 1])):
            continue
        known = text.NUMBER_WORDS.get(word) or (run if place and _is_name(run) else word)
        words.insert(len(words) - is_owned, known)
        is_owned = False
    return tuple(words[:MAX_WORDS])


def says_again(rejected: Sequence[str], said: Sequence[str]) -> bool:
    """Return True if two skeletons are those of one statement."""
    if not rejected or not said:
        return False
    longer, shorter = sorted((rejected, said), key=len, reverse=True)
    if len(shorter) < MIN_SHARE * len(longer):
        return False
    missing, extra = _unmatched(shorter, longer), _unmatched(longer, shorter)
    if missing or any(map(_can_matter, extra)) or len(extra) > (1 - MIN_SHARE) * len(longer):
        return False
    return _is_turned(list(map(_root, shorter)), [_root(word) for word in longer if word not in extra])


def is_said_in(part: str, whole: str) -> bool:
    """Return True if a text, or a clause of it, has every word of the other one. Both are of the same session.

    Another word in the place of one may be another value, and a "not" that only one has turns the meaning around.
    """
    own = _roots(part)
    if len(own) < MIN_SAID_WORDS:
        return False
    clauses = map(_roots, (whole, *compiled(_CLAUSE_ENDS).split(whole)))
    return any(own <= said and own & DENIALS == said & DENIALS for said in clauses)


def claim_of(content: str) -> str:
    """Return a statement without the reason that a note adds to it: "Why: …", "How to apply: …"."""
    return compiled(_REASON).split(content, maxsplit=1)[0].strip() or content


def _roots(content: str) -> frozenset[str]:
    return frozenset(map(_root, skeleton(content)))


def _is_name(word: str) -> bool:
    return word[1:] != word[1:].lower() or word[0].isupper()


@lru_cache(maxsize=4096)
def _root(word: str) -> str:
    """Return a word without its ending and its capitals."""
    lower = word.lower()
    bare = compiled(_ENDING).sub("", lower) if lower.replace("'", "").isalpha() else lower
    return bare if len(bare) >= MIN_STEM_CHARS else lower


def _unmatched(words: Sequence[str], others: Iterable[str]) -> list[str]:
    """Return the words that the others do not have, each as often as it is missing."""
    left = list(map(_root, others))
    missing = []
    for word in words:
        if _root(word) in left:
            left.remove(_root(word))
        else:
            missing.append(word)
    return missing


def _can_matter(word: str) -> bool:
    """Return True for a number, a name, a negation, a day, or a word that turns a meaning around."""
    lower = word.lower()
    is_turning = lower in DENIALS or lower.endswith("n't") or lower in _RELATIONS or is_side(lower) or is_day(lower)
    return is_turning or not lower.isalpha() or _is_name(word)


def _is_turned(words: list[str], others: list[str]) -> bool:
    """Return True if two lists of words are equal, or one begins with the end of the other."""
    twice = others + others
    return any(twice[at : at + len(words)] == words for at in range(len(others)))


# ---- keep and lift ----


class Rejections:
    """The rejections of a space, read when they are first needed."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._all: list[Rejection] | None = None

    def of(self, memory: Memory) -> list[Rejection]:
        """Return the rejections that a statement runs into. Notes of tasks and summaries make no statement."""
        if memory.tier == "task" or memory.kind == "summary":
            return []
        same = [one for one in self._known() if one.scope in ("memory", memory.scope)]
        return [one for one in same if one.fingerprint == memory.fingerprint or _is_said_in(one, memory.content)]

    def are_in(self, content: str) -> bool:
        """Return True if a text, or one of its sentences, makes a rejected statement."""
        return any(one.scope == "memory" and _is_said_in(one, content) for one in self._known())

    def left_of(self, content: str) -> str:
        """Return the sentences of a text that make no rejected statement; "" for a text of one sentence."""
        said = text.sentences(content)
        return " ".join(one for one in said if not self.are_in(one)) if len(said) > 1 else ""

    def _known(self) -> list[Rejection]:
        if self._all is None:
            self._all = self._reader.all(Rejection)
        return self._all

    def lift(self, tx: Transaction, rejections: Iterable[Rejection]) -> None:
        """End rejections: their statements may be said again."""
        for one in rejections:
            tx.remove(one, "lift")
            self._all = [other for other in self._all or () if other.id != one.id]


def _is_said_in(rejection: Rejection, content: str) -> bool:
    """Return True if a text, or one of its sentences, makes the rejected statement."""
    return any(says_again(rejection.words, words) for words in _skeletons(content))


@lru_cache(maxsize=64)
def _skeletons(content: str) -> tuple[tuple[str, ...], ...]:
    """Return the skeletons of a text, of its sentences and their parts behind a colon, also without their reasons."""
    parts = [part for said in text.sentences(content) for part in (said, said.partition(": ")[2])]
    return tuple(dict.fromkeys(skeleton(said) for part in (content, *parts) for said in (part, _claim(part))))


def _claim(said: str) -> str:
    """Return a statement without an announcement before it and a reason behind it."""
    return compiled(_BEHIND).sub("", compiled(_ANNOUNCED).sub("", said))


def reject(tx: Transaction, memory: Memory, reason: RejectedAs) -> None:
    """Note that the statement of a memory is rejected."""
    if memory.tier == "task" or memory.kind == "summary":
        return
    known = next((one for one in tx.all(Rejection) if one.memory == memory.uid), None)
    made = Rejection(
        memory=memory.uid,
        fingerprint=memory.fingerprint,
        words=skeleton(memory.content),
        scope=memory.scope,
        reason=reason,
        who=tx.stamp.actor,
        at=tx.stamp.at,
    )
    if known is None:
        tx.add(made, "reject")
    else:
        tx.put(replace(made, id=known.id), "reject")


def was_rejected(rejection: Rejection) -> str:
    """Return a sentence: how a statement was rejected, when, and by whom."""
    who = text.visible(rejection.who, keep_newlines=False)
    return f"It was {_WAS[rejection.reason]} on {rejection.at:%Y-%m-%d} by {who}."
