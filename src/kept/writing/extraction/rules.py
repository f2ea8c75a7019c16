"""Match the ways to speak of `cues.txt`: the features of an agent's sentence, by the name of a rule.

Used by extraction. The rules are data; `cues.txt` explains its format.
"""

import re
from functools import cache
from pathlib import Path

from msgspec import Struct

# These rules together are the rule `passing`, which is asked of every sentence of an agent.
PASSING = ("plan", "process", "guess")
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
    sections = _sections(_CUES.read_text("utf-8"))
    sections["passing"] = "\n".join(sections[name] for name in PASSING)
    return {name: SentenceRule(name, phrases(lines)) for name, lines in sections.items()}


def _sections(text: str) -> dict[str, str]:
    parts = re.split(r"(?m)^(\w+):\n", text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@cache
def phrases(lines: str) -> re.Pattern[str]:
    """Compile a pattern for any of the lines; each is an expression over lower case, from a word or from `^`."""
    ways = [line.lstrip(" ") for line in lines.split("\n") if line.strip()]
    first = "|".join(way[1:] for way in ways if way.startswith("^"))
    others = "|".join(way for way in ways if not way.startswith("^"))
    # Grouped, so that the edge of a word is looked for once at each character, and not once for each way.
    return re.compile("|".join([rf"^(?:{first})"] * bool(first) + [rf"\b(?:{others})"] * bool(others)))


def lowered(sentence: str) -> str:
    """Convert the sentence to the form that the lines of a rule expect."""
    return sentence.lower().replace("’", "'").replace("‘", "'")
