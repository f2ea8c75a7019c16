"""Find the option that a short answer chooses: "B", "the second one", "the latter", "like the shops".

Used by extraction. Rule: an answer is kept with the text of its option and the question, or not at all.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from kept.text import compiled, sentences
from kept.writing.things import things_in

MAX_ASKED_CHARS = 600  # options stand at the end
MAX_OPTION_CHARS = 200
MAX_ANSWER_WORDS = 6  # a longer answer says itself what it means
_MARKED = r"(?i)(?:^|(?<=[\s:;,*]))[\(\[]?([a-e]|[1-9])[.):\]]\**\s+"
_ORDINALS = (
    r"first|former|1st|erste\w*|premi\w+|primer[oa]?|primeir[oa]",
    r"second|2nd|zweite\w*|deuxième|second[e]?|segund[oa]",
    r"third|3rd|dritte\w*|troisième|tercer[oa]?|terceir[oa]",
)
_LAST = r"latter|last|letzte\w*|dernier\w*|últim[oa]"
# Words behind the sign of an option: "3 sounds good", but not "3 attempts" and "a second one".
_AGREES = (
    r"sounds|looks|is|it|please|then|but|because|works|would|will|bitte|ist|klingt|aber|weil|s'il|mais|parece|suena|pero|mas"
    r"|por|va|però"
)
_CHOICE = (
    r"(?i)^(?:(?:ok|yes|fine|then|let's (?:take|do|go with)|i(?:'d| would)? (?:take|prefer|say)|option|variant|number"
    r"|take|go with|lieber|bitte)[,:]? )*"
    r"(?:the |die |den |das |le |la |el |o |a )?"
    r"(?:(?P<sign>[a-e]|[1-9])(?=$|[.,:;!)]|\s+(?:{agrees})\b)|(?P<word>{ordinals}|{last})(?: one| option)?\b)"
).format(ordinals="|".join(_ORDINALS), last=_LAST, agrees=_AGREES)
_EITHER = (
    r"(?i)(?:\beither\b|\bentweder\b)?\s*(?<!\w)(?P<left>[^\s,.:;?][^,.:;?]{2,60}?)(?:,[^?]{0,60}?)?,? (?:or|oder|ou) "
    r"(?P<right>[^,.;?]{3,90})"
)


def options_in(asked: str) -> list[str]:
    """Return the options that a text offers: marked by letters or numbers, or joined by "or"."""
    asked = asked[-MAX_ASKED_CHARS:]
    marks = _marks_in(asked)
    if len(marks) > 1:
        ends = [mark.start() for mark in marks[1:]] + [len(asked)]
        found = [asked[mark.end() : end] for mark, end in zip(marks, ends, strict=True)]
        return [_first_thought(option) for option in found]
    if not any(word in asked for word in (" or ", " oder ", " ou ")):
        return []
    either = compiled(_EITHER).search(asked)
    return [either["left"].strip(), either["right"].strip()] if either else []


def without_options(question: str) -> str:
    """Return a question without the marked options behind it: "How long: a) a day, b) a week?"."""
    marks = _marks_in(question)
    return f"{question[: marks[0].start()].rstrip(' ,:;(')}?" if len(marks) > 1 else question


def _marks_in(text: str) -> list[re.Match[str]]:
    """Return the last run of signs that count from the first one on: "1. … 2. …", but not "chapter 3. And …"."""
    run = list[re.Match[str]]()
    for mark in compiled(_MARKED).finditer(text):
        number = _number_of(mark[1], None, 0)
        run = [*run, mark] if run and number == len(run) else [mark] if number == 0 else run
    return run


class Choice(NamedTuple):
    """The option that an answer chooses, the rest of the answer, and whether it names nothing but that option."""

    option: str
    rest: str
    is_sure: bool = True
    others: tuple[str, ...] = ()  # the options that it does not choose


def choice_of(answer: str, options: Sequence[str]) -> Choice | None:
    """Return the choice that an answer makes; None if it chooses none of the options."""
    if len(options) < 2:
        return None
    choice = compiled(_CHOICE).match(answer)
    if choice is None:
        return _named_option(answer, options)
    number = _number_of(choice["sign"], choice["word"], len(options))
    if number >= len(options):
        return None
    return Choice(options[number], answer[choice.end() :].lstrip(" ,.:;!—–-"), others=_others(options, number))


def _others(options: Sequence[str], number: int) -> tuple[str, ...]:
    return tuple(option for place, option in enumerate(options) if place != number)


def _number_of(sign: str | None, word: str | None, count: int) -> int:
    if sign:
        return int(sign) - 1 if sign.isdigit() else ord(sign.lower()) - ord("a")
    if compiled(rf"(?i)(?:{_LAST})").fullmatch(word or ""):
        return count - 1
    return next(
        (at for at, words in enumerate(_ORDINALS) if compiled(rf"(?i)(?:{words})").fullmatch(word or "")), count
    )


def _named_option(answer: str, options: Sequence[str]) -> Choice | None:
    """Return the one option that shares a word with a short answer."""
    head, _, rest = answer.partition(next(iter(compiled(r"[.,;!](?= )").findall(answer)), ","))
    if len(head.split()) > MAX_ANSWER_WORDS:
        return None
    named = things_in(head)
    sharing = [option for option in options if named & things_in(option)]
    if len(sharing) != 1:
        return None
    others = _others(options, options.index(sharing[0]))
    return Choice(sharing[0], rest.strip(), named <= things_in(sharing[0]), others)


def _first_thought(option: str) -> str:
    """Return an option without the sentences behind it."""
    return (sentences(option) or [""])[0].strip(" ,;.")[:MAX_OPTION_CHARS]
