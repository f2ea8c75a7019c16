"""Turn the messages of a user into statements: one thought each, with what is needed to understand it.

Used by extraction. A message is read sentence by sentence (`grammar.read`). A sentence that continues the one before is
joined to it; an answer gets its question and the text of its option; a sentence that points back gets its context.
Rule: everything a user states is returned, with points; `conversation` chooses.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from kept.model import Message
from kept.text import compiled
from kept.writing.extraction.choices import choice_of, options_in, without_options
from kept.writing.extraction.evidence import names_in
from kept.writing.extraction.passages import Passage
from kept.writing.extraction.statements import finished, is_only_emphasis
from kept.writing.grammar import Reading, read
from kept.writing.speech import ELISION, elided
from kept.writing.things import things_in

MAX_CHARS = 500
MAX_CONTEXT_CHARS = 240
SHORT_WORDS = 6  # an answer of so few words needs its question
MIN_THINGS = 2
MIN_REST_CHARS = 3  # of an answer behind its choice

# Two thoughts in one sentence: each has a subject of its own.
_TWO_THOUGHTS = (
    r"; |,? (?=(?:so |and )?(?:can|could|would|will) you\b[^?]*\?$)|, (?:and|und|et|y|e) "
    r"(?=(?:we|i|my|our|wir|ich|mein\w*|unser\w*|nous|je|mon|ma|mi|mis|minha|meu|o meu|a minha)\b)"
)

_PRONOUN = r"(?i)\b(?:it|them|that|this)\b"
_PRONOUN_OBJECT = r"(?i)\b(?:do|use|like|want|take|keep) (?:that|it|this|them)\b"

RULE_LIKE = frozenset({"rule", "standing", "prohibits", "contrasts", "reason", "change"})
POINTS = {
    "states": 6,
    "orders": 2,
    "standing": 3,
    "recalls": 4,
    "warns": 3,
    "rule": 2,
    "prohibits": 2,
    "decides": 2,
    "change": 2,
    "objects": 1,
    "contrasts": 2,
    "names_self": 3,
    "reason": 2,
    "answer": 2,
    "personal": 2,
    "guess": -3,
    "fleeting": -3,
    "symptom": -3,
    "wish": -2,
    "undo": -1,
}
NAMES_POINTS = 1
_SAYS_ENOUGH = {"contrasts", "prohibits", "rule", "decides", "change", "names_self"}
SHORT_POINTS = -3  # fewer than MIN_THINGS things, and no answer


Thought = tuple[str, set[str]]  # its text and its marks


class Statement(Struct, frozen=True):
    """A statement of the user: its text, the sentence that it is made of, its marks and its points."""

    content: str
    said: str  # without its context
    message: Message
    marks: frozenset[str]
    points: int
    needs_context: bool = False  # the context is another speaker's
    not_chosen: tuple[str, ...] = ()  # the options that were offered beside the one that it chooses

    def has(self, *names: str) -> bool:
        return not self.marks.isdisjoint(names)


class Before(Struct):
    """What was said before a message of the user: by the agent, and the user's last question."""

    agent: str = ""  # the last sentence
    asked: str = ""  # the whole text in which options may stand
    question: str = ""  # the agent's
    own_question: str = ""


def statements_in(
    message: Message, read_passages: Sequence[Passage], heard: Before, *, is_chat: bool
) -> Iterator[Statement]:
    """Return the statements of a message."""
    last = ""
    is_first = True
    first = read(read_passages[0].sentences[0])
    if first.act == "reacts" and (reply := _reply(first.text, heard)) and reply.sort == "option":
        marks = {"states", "answer", "option", *first.marks}  # "the latter please"
        points = _points(reply.text, marks)
        yield Statement(reply.text, first.text, message, frozenset(marks), points, not_chosen=reply.others)
    for passage in read_passages:
        for text, marks in _with_tasks(_thoughts(passage, is_chat=is_chat)):
            reply = _reply(text, heard) if is_first else None
            is_first = False
            content, needs = (reply.text, False) if reply else _understandable(text, marks, last, heard)
            marks |= _marks_of(reply, marks, is_chat=is_chat)
            if content := _kept_of(content, marks):
                weighed = content if "?" in content else text  # a question gives a short answer its weight
                others = reply.others if reply else ()
                yield Statement(content, text, message, frozenset(marks), _points(weighed, marks), needs, others)
            last = text


def _marks_of(reply: "AnswerText | None", marks: set[str], *, is_chat: bool) -> set[str]:
    """Return the marks that a thought gets from the talk around it."""
    found = {"answer", reply.sort} if reply else set[str]()
    return found | {"personal"} if is_chat and _is_about_self(marks) else found


def _with_tasks(thoughts: Iterable[Thought]) -> list[Thought]:
    """Return the thoughts of a passage, those with the mark `task` that only explain what is asked behind them."""
    found = list(thoughts)
    for (_, marks), (_, following) in pairwise(found):
        if "orders" in following and _is_task(following):
            marks.add("task")
    return found


def _is_task(marks: AbstractSet[str]) -> bool:
    """Return True for the marks of an order that is over when it is carried out."""
    return marks.isdisjoint(RULE_LIKE)


def _kept_of(content: str, marks: set[str]) -> str:
    """Return the user's own words of a thought; nothing of a question or of a text that is too long."""
    if "asks" in marks or not _is_own(content, marks):
        return ""
    own = content.replace(ELISION, "").strip()
    return own if len(own) <= MAX_CHARS else ""


def _is_own(content: str, marks: set[str]) -> bool:
    """Return False for a sentence that hands over the words of others, or only asks something about a quotation."""
    if content.rstrip(f". {ELISION}").endswith(":"):
        return False
    return elided(content) == content or not marks.isdisjoint(_SAYS_ENOUGH | {"recalls", "warns", "standing"})


def _is_about_self(marks: set[str]) -> bool:
    return "names_self" in marks or ("first_person" in marks and not marks & {"wish", "orders"})


def _own_sentences(passage: Passage) -> Iterator[str]:
    """Return the sentences of a passage, without those that introduce the words of others."""
    parts = (part for whole in passage.sentences for part in compiled(_TWO_THOUGHTS).split(whole))
    return (part for part in parts if not part.rstrip(f" {ELISION}").endswith((":", "：")))


def _thoughts(passage: Passage, *, is_chat: bool) -> Iterator[Thought]:
    """Return the thoughts of a passage, each with its marks: sentences, split or joined."""
    above = read(passage.subject).marks & {"decides", "warns"} if passage.subject else frozenset()  # "Decisions"
    text, marks, carried = "", set[str](), frozenset[str]()  # carried: "That's wrong." before what is right
    for sentence in _own_sentences(passage):
        found = read(sentence)
        if text and is_only_emphasis(sentence):
            marks.add("recalls")
            continue
        if text and _continues(found, text, marks, is_chat=is_chat):
            text = f"{finished(text)} {finished(found.text)}"
            marks |= found.marks - {"points_back", "fleeting", "symptom"}
            marks |= {"task"} if found.act == "orders" and _is_task(found.marks) else set()
            continue
        if text:
            yield finished(text), marks
        text, marks = "", set()
        if found.act in ("states", "orders"):
            text, marks = found.text, {found.act, *found.marks, *carried, *above}
        carried = found.marks & {"objects", "undo"} if found.act == "reacts" else frozenset()
        if found.act == "asks":
            yield sentence, {"asks"}
    if text:
        yield finished(text), marks


def _continues(found: Reading, before: str, marks: set[str], *, is_chat: bool) -> bool:
    """Match a sentence that goes on about the one before. In a chat people change the subject with each sentence."""
    if found.act not in ("states", "orders") or len(before) + len(found.text) > MAX_CONTEXT_CHARS:
        return False
    if found.has("points_back"):
        return True
    if is_chat and found.has("objects"):
        return False  # "Two of them. No, sorry, only one."
    if _lasts_otherwise(found, marks) or _begins_rule(found, marks):
        return False
    if found.act == "orders" and "objects" in marks:
        return True  # "No wait, that is too much. Let's do …"
    things = things_in(found.text)
    if not things.isdisjoint(things_in(before)):
        return True
    if found.act == "orders" and _is_task(found.marks):
        return compiled(_PRONOUN).search(found.text) is not None  # else it is a task beside a statement
    return not is_chat or len(things) < MIN_THINGS


def _lasts_otherwise(found: Reading, marks: set[str]) -> bool:
    """Match a problem beside a statement, and the reverse: a problem ends when it is mended."""
    if found.has("symptom", "fleeting") and not found.has("rule", "change"):
        return True
    return "symptom" in marks and found.act == "states" and not found.has("symptom")


def _begins_rule(found: Reading, marks: set[str]) -> bool:
    """Match a rule behind a plain order, and everything behind a sentence that already has its context."""
    is_plain_order = "orders" in marks and not marks & {"rule", "reason", "contrasts"}
    return "points_back" in marks or (is_plain_order and found.has("rule", "standing"))


class AnswerText(NamedTuple):
    """An answer with its question; its sort is `option` if it chooses one that was offered."""

    text: str
    sort: str
    others: tuple[str, ...] = ()  # the options that it does not choose


def _reply(text: str, heard: Before) -> AnswerText | None:
    """Return an answer with its question and the text of its option; None if the text answers nothing."""
    question = without_options(heard.question or heard.own_question)[-MAX_CONTEXT_CHARS:]
    is_short = len(text.split(".")[0].split(",")[0].split()) <= SHORT_WORDS
    if is_short and (choice := choice_of(text, options_in(heard.asked))):
        parts = (question, finished(choice.option), finished(choice.rest) if len(choice.rest) > MIN_REST_CHARS else "")
        return AnswerText(" ".join(filter(None, parts)), "option" if choice.is_sure else "fragment", choice.others)
    is_fragment = len(text.split()) <= SHORT_WORDS and bool(things_in(text))
    if heard.question and is_fragment and not read(text).has("first_person"):
        return AnswerText(f"{question} {text}", "fragment")
    return None


def _understandable(text: str, marks: set[str], last: str, heard: Before) -> tuple[str, bool]:
    """Return the text with what it points to, and whether that is another speaker's."""
    if _stands_alone(text, marks):
        return text, False
    if last and not last.endswith("?"):
        return f"{finished(last)} {text}", False
    if "points_back" not in marks and len(things_in(text)) and not heard.agent:
        return text, False
    around = _context_in(heard)
    return (f"{around[-MAX_CONTEXT_CHARS:]} {text}", True) if around else (text, "points_back" in marks)


def _stands_alone(text: str, marks: set[str]) -> bool:
    """Match a sentence that names enough to be understood without its context."""
    is_clear = len(things_in(text)) >= MIN_THINGS or not marks.isdisjoint(_SAYS_ENOUGH)
    pronoun = compiled(_PRONOUN_OBJECT).search(text)
    is_named = pronoun is None or len(things_in(text[: pronoun.start()])) >= MIN_THINGS  # "We have a clock, use that"
    return is_clear and "points_back" not in marks and is_named


def _context_in(heard: Before) -> str:
    """Return the sentence that a message answers: the agent's, or the user's own question if that is vague."""
    is_vague = not heard.agent or read(heard.agent).has("points_back")
    return heard.question or (heard.own_question if is_vague else "") or heard.agent


def _points(text: str, marks: set[str]) -> int:
    points = sum(POINTS.get(name, 0) for name in marks if name != "symptom" or "states" in marks)
    points += NAMES_POINTS if names_in(text) else 0
    is_short = len(things_in(text)) < (MIN_THINGS if marks.isdisjoint(_SAYS_ENOUGH) else 1)
    return points + (SHORT_POINTS if is_short and "answer" not in marks else 0)
