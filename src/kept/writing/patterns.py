"""Regular expressions that are compiled when they are first needed.

Extraction knows hundreds of phrases; a program that only recalls never looks at them. So they are kept as text, and
importing the modules that hold them costs nothing.
"""

import re
from functools import cache

# What a list of phrases says in short.
_SHORTHANDS = {
    "<well>": r"((no|nope|yes|wrong|ok|okay|well|so|and|but|hey|actually|now|next|then|good|great|please)[,.:!—–-]* )*",
    "<no>": r"(no|nope|wrong|actually|not quite)[,.:!]( actually,?)?",
    "<do not>": r"(never|don'?t|do not)( ever)?",
    "<we will>": r"we('ll| will| won'?t| are going to)( not| only| never| always)?",
    "<i have>": r"(i('ve| have)? )?(also |just )?",
    # Not what one has seen or felt ("never been there"), and no cheering up ("don't give up").
    "<an act>": (
        r"(?!mind|worry|bother|forget|hesitate|know|think|feel|give up|be (afraid|scared|shy)|let (it|any|the)|quit)"
        r"(?!ever quit|miss\b|get\b|lose|limit yourself|happy|good|great|nice|ready|here|there|now|been|seen|saw|had)"
        r"(?!the\b|an?\b|my\b|it\b|at\b|up\b|heard|knew|done|was|were|got|\w+ed\b)\w"
    ),
    "<a thing>": r"(?!it\b|this\b|that\b|them\b)\w",
}


@cache
def pattern(text: str) -> re.Pattern[str]:
    """The expression, compiled."""
    return re.compile(text)


@cache
def phrases(lines: str) -> re.Pattern[str]:
    """Any of the lines, each of which is an expression over lower case that begins at a word, or at `^`."""
    for name, meaning in _SHORTHANDS.items():
        lines = lines.replace(name, meaning)
    ways = [line.strip() for line in lines.split("\n") if line.strip()]
    return re.compile("|".join(way if way.startswith("^") else rf"\b{way}" for way in ways))
