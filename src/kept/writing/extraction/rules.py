"""Match the ways to speak of `cues.txt`: the features of an agent's sentence, by the name of a rule.

Used by extraction. The rules are data; `cues.txt` explains its format.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct

# These rules together are the rule `passing`, which is asked of every sentence of an agent.
PASSING = ("plan", "process", "guess")
_WELL_END = r"[,.:!—–-]* )*"  # of <well>: words that may stand before a way to say something
_CUES = Path(__file__).parent / "cues.txt"


class SentenceRule(Struct, frozen=True):
    """A way to speak, by name."""

    name: str
    ways: re.Pattern[str]

    def fits(self, lowered: str) -> bool:
        return self.ways.search(lowered) is not None


@cache
def rules() -> dict[str, SentenceRule]:
    """Return all rules by name."""
    ways = dict(_sections(_CUES.read_text("utf-8")))
    ways["passing"] = [way for name in PASSING for way in ways[name]]
    return {name: SentenceRule(name, phrases("\n".join(lines))) for name, lines in ways.items()}


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Read the rules of a file: name, and ways to say it with their shorthands written out."""
    shorthands: dict[str, str] = {}
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith("<"):
            short, _, meaning = line.partition(" = ")
            shorthands[short] = meaning
        elif line.startswith("    "):
            lines.append(_written_out(line[4:], shorthands))
        elif line.strip() and not line.startswith("#"):
            lines = []
            yield line.partition(":")[0], lines


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
