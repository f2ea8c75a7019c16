"""Decide if a user's sentence is worth keeping, by the rules of the cue files. The decision is `rule_for`.

Used by extraction. The rules are data, in `cues/`: one file for each language, each with lines for the same rules
(decision, correction, reason, plan, guess, …). `en.txt` explains the format and gives a rule its kind and rank. Rule: a
name, a kind and its marks stand once, in English; another language only adds ways to say it.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct

from kept.text import compiled
from kept.writing.speech import elided, masked

LANGUAGES = ("en", "de", "fr", "es")
# These rules together are the rule `passing`, which is asked of every sentence of an agent.
PASSING = ("plan", "process", "offer", "praise", "guess", "results", "bookkeeping", "log_line")
_WELL_END = r"[,.:!—–-]* )*"  # of <well>: words that may stand before a way to say something
_FOLDER = Path(__file__).parent / "cues"


class SentenceRule(Struct, frozen=True):
    """A way to speak, by name; with a kind if it makes a sentence worth keeping when a user says it."""

    name: str
    ways: re.Pattern[str]
    kind: str = ""
    tag: str | None = None

    def fits(self, lowered: str) -> bool:
        return self.ways.search(lowered) is not None


@cache
def rules() -> dict[str, SentenceRule]:
    """Return all rules by name, in the order of their rank."""
    heads: dict[str, str] = {}
    ways: dict[str, list[str]] = {}
    for language in LANGUAGES:
        for name, head, lines in _sections((_FOLDER / f"{language}.txt").read_text("utf-8")):
            heads.setdefault(name, head)
            ways.setdefault(name, []).extend(lines)
    ways["passing"] = [way for name in PASSING for way in ways[name]]
    return {name: _rule(name, heads.get(name, ""), ways[name]) for name in ways}


def _rule(name: str, head: str, ways: list[str]) -> SentenceRule:
    kind, *marks = head.split() or [""]
    tag = "correction" if "correction" in marks else None
    return SentenceRule(name, phrases("\n".join(ways)), kind, tag)


def _sections(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """Read the rules of a file: name, kind and marks, ways to say it with their shorthands written out."""
    shorthands: dict[str, str] = {}
    name = head = ""
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith(("#", "<")) or not line.strip():
            short, is_one, meaning = line.partition(" = ")
            if is_one and short.startswith("<"):
                shorthands[short] = _written_out(meaning, shorthands)
        elif not line.startswith(" "):
            if name:
                yield name, head, lines
            name, _, head = line.partition(":")
            lines = []
        else:
            lines.append(_written_out(line[4:], shorthands))
    if name:
        yield name, head, lines


def _written_out(way: str, shorthands: dict[str, str]) -> str:
    for short, meaning in shorthands.items():
        way = way.replace(short, meaning)
    return way


@cache
def phrases(lines: str) -> re.Pattern[str]:
    """Compile a pattern for any of the lines; each is an expression over lower case, from a word or from `^`."""
    ways = [line.lstrip(" ") for line in lines.split("\n") if line.strip()]
    openings: dict[str, list[str]] = {}
    for way in (way[1:] for way in ways if way.startswith("^")):
        opening = _opening_of(way)
        openings.setdefault(opening, []).append(way[len(opening) :])
    # A common opening of many ways is read once.
    first = "|".join(rf"{opening}(?:{'|'.join(following)})" for opening, following in openings.items())
    others = "|".join(way for way in ways if not way.startswith("^"))
    # Grouped, so that the edge of a word is looked for once at each character, and not once for each way.
    return re.compile("|".join([rf"^(?:{first})"] * bool(first) + [rf"\b(?:{others})"] * bool(others)))


def _opening_of(way: str) -> str:
    """Return the words that may stand before a way to say something (<well>), if it begins with them."""
    return way[: way.find(_WELL_END) + len(_WELL_END)] if way.startswith("((") and _WELL_END in way else ""


def lowered(sentence: str) -> str:
    """Convert the sentence to the form that the lines of a rule expect."""
    return sentence.lower().replace("’", "'").replace("‘", "'")


USER_RULES = tuple(
    "remember corrected_fact warning correction reproach decision preference wish request setting "
    "changed told stated".split()
)
NOTHING_TO_KEEP = ("quotation", "plan")


def rule_for(sentence: str) -> SentenceRule | None:
    """Return the rule that makes a user's sentence worth keeping; None for questions, plans, guesses and the rest.

    The first of USER_RULES that fits counts, unless a row of EXCEPTIONS applies. Quoted text is no reason to keep it.
    """
    sentence = masked(sentence)
    said = lowered(sentence).rstrip(".! ")
    known = rules()
    if said.endswith(":"):
        return None
    if said.endswith("?"):
        return known["request"] if known["request"].fits(said) else None  # any other question states nothing
    if any(known[name].fits(said) for name in NOTHING_TO_KEEP):
        return None
    rule = _first_rule(sentence, said)
    return None if rule is None or _is_exception(rule, said) else rule


def _first_rule(sentence: str, said: str) -> SentenceRule | None:
    known = rules()
    rule = next((known[name] for name in USER_RULES if known[name].fits(said)), None)
    return known["stated"] if rule is None and compiled(_GIVES_VALUE).match(sentence) else rule


def _is_exception(rule: SentenceRule, said: str) -> bool:
    return any(concerns(rule) and rules()[name].fits(said) for name, concerns in EXCEPTIONS)


# Words that make a sentence worthless in spite of a rule: their name in the cue files, and the rules that they concern.
_SURE = ("remember", "corrected_fact", "correction", "reproach", "decision")  # a "probably" in it is only politeness
EXCEPTIONS: tuple[tuple[str, Callable[[SentenceRule], bool]], ...] = (
    ("guess", lambda rule: rule.name not in _SURE),
    ("fleeting", lambda rule: rule.kind in ("preference", "warning")),
    ("symptom", lambda rule: rule.name in ("changed", "stated")),
    ("away", lambda rule: rule.kind == "fact"),
)


def may_change(sentence: str) -> bool:
    """Match a sentence without a cue that may change a known fact: no question, no plan, no guess."""
    if elided(sentence) != sentence:  # then it may only ask about its quotation
        return False
    said = lowered(sentence).rstrip(".! ")
    known = rules()
    return not said.endswith(("?", ":")) and not any(known[name].fits(said) for name in (*NOTHING_TO_KEEP, "guess"))


# "The default locale is en-US": a short value that is no plain word.
_GIVES_VALUE = (
    r"(?:[Tt]he|[Oo]ur|[Mm]y)(?: [\w./'-]+){1,6}? (?:is|are)(?: now| still| called)? (?=\S{0,40}[A-Z0-9/_`])"
    r"[^\s,]+(?: [^\s,]+){0,3}$"
)
