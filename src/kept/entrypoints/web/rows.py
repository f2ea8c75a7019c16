"""Rows of a list: a memory with its score as geometry, its reasons in words, and the matched words marked."""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

from markupsafe import Markup
from markupsafe import escape as _escape
from msgspec import Struct

from kept.entrypoints.web import words
from kept.entrypoints.web.draw import Axis, Bar, FactorStep, steps, waterfall
from kept.errors import KeptError
from kept.memory import Kept
from kept.model import Hit, Memory
from kept.text import visible

SHOWN_CHARS = 500
_REDACTED = re.compile(r"\[redacted:[\w-]+\]", re.ASCII)


def escape(text: str) -> Markup:
    """The text for a page: no markup, and what would turn it around or act on a terminal is made visible."""
    return _escape(visible(text))


class ShownRow(Struct, frozen=True, kw_only=True):
    """A memory in a list. Without a score it has no bars."""

    memory: Memory | None
    ref: str
    text: str
    shown: Markup | str = ""
    link: str = ""
    score: float = 0.0
    bars: Sequence[Bar] = ()
    end: float = 0.0
    label: str = ""
    steps: Sequence[FactorStep] = ()
    reasons: Mapping[str, str] = {}
    because: str = ""
    is_current: bool = False
    is_given: bool = False  # an agent that asks for the same would get it


def scored(hit: Hit, axis: Axis, *, because: str = "") -> ShownRow:
    """The row of a hit, or of a near miss and why it missed."""
    return _row(hit.memory, hit.memory.ref, hit.why, hit.matched, hit.score, axis, because)


def rows_of(
    lines: Iterable[Mapping[str, Any]], known: Mapping[str, Memory], axis: Axis, query: str
) -> dict[str, ShownRow]:
    """The rows of a receipt, by ref, with the memories as they are today. `query` has the words as they were asked."""
    return {
        line["ref"]: _row(
            known.get(line["ref"]),
            line["ref"],
            line["why"],
            line.get("matched") or {},
            line["score"],
            axis,
            line.get("reason", ""),
            query,
        )
        for line in lines
    }


def plain(memory: Memory | None, ref: str, *, because: str = "") -> ShownRow:
    """A row without a score."""
    return ShownRow(memory=memory, ref=ref, text=_text(memory), shown=escape(_text(memory)), because=because)


def find(memory: Kept, ref: str) -> Memory | None:
    """Return the memory as it is now, or None if the caller cannot see it or it is gone."""
    try:
        return memory.look().find(ref)
    except KeptError:
        return None


def marked(text: str, matched: Iterable[str]) -> Markup:
    """The text with the words that begin like one of these marked; everything else is escaped."""
    shortened = words.cut(text, SHOWN_CHARS)
    stems = sorted({re.escape(word) for word in matched if len(word) > 1}, key=len, reverse=True)
    if not stems:
        return escape(shortened)
    return _wrapped(shortened, re.compile(rf"(?:{'|'.join(stems)})\w*", re.IGNORECASE))


def found_in(text: str, parts: Sequence[str], width: int = SHOWN_CHARS) -> Markup:
    """Show a text around the first of these words or phrases, with all of them marked; parts are lower case."""
    lowered = text.lower()
    places = [place for part in parts if (place := lowered.find(part)) >= 0]
    start = max(0, min(places, default=0) - width // 3) if len(text) > width else 0
    shown = ("…" if start else "") + words.cut(text[start:], width)
    if not parts:
        return escape(shown)
    return _wrapped(shown, _whole_words(tuple(parts)))


@lru_cache(maxsize=16)
def _whole_words(parts: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of words with one of these parts, which is tried only where a word begins."""
    return re.compile("|".join(rf"(?<!\w)\w*{re.escape(one)}\w*" for one in parts), re.IGNORECASE)


def _wrapped(text: str, pattern: re.Pattern[str]) -> Markup:
    parts, at = [], 0
    for match in pattern.finditer(text):
        parts += [escape(text[at : match.start()]), "<mark>", escape(match.group()), "</mark>"]
        at = match.end()
    return Markup("".join([*parts, escape(text[at:])]))  # only the tags are not escaped


def quoted(text: str, passages: Iterable[str]) -> Markup:
    """The text with the passages in it marked, as far as they stand there word for word."""
    found = [re.escape(passage) for passage in sorted(passages, key=len, reverse=True) if passage and passage in text]
    return _wrapped(text, re.compile("|".join(found))) if found else escape(text)


def redacted(shown: Markup) -> Markup:
    """Return the text, escaped, with the marks that replace secrets set apart."""
    # Before Python 3.13 `re` joins the parts of a Markup by its own `join`, which would escape the tags.
    return Markup(_REDACTED.sub(r'<span class="redacted">\g<0></span>', str(shown)))  # words and hyphens only


def differing(text: str, other: str) -> Markup:
    """The text with the words marked that the other one does not have in their place."""
    mine, theirs = text.split(), other.split()
    same = SequenceMatcher(a=[word.lower() for word in theirs], b=[word.lower() for word in mine], autojunk=False)
    parts = []
    for kind, _, _, start, end in same.get_opcodes():
        piece = " ".join(mine[start:end])
        if piece:
            parts.append(escape(piece) if kind == "equal" else Markup("<mark>{}</mark>").format(escape(piece)))
    return Markup(" ").join(parts)


def said_in(memory: Kept, one: Memory) -> dict[str, Any] | None:
    """Show the message in which a memory was said, with the passage marked; None if it is gone."""
    message = memory.look().message_of(one)
    if message is None:
        return None
    shown = quoted(message.content[:2_000], [one.content])
    return {"message": message, "shown": shown, "after": max(0, message.n - 3)}


def _row(
    memory: Memory | None,
    ref: str,
    why: Mapping[str, float],
    matched: Mapping[str, str],
    score: float,
    axis: Axis,
    because: str,
    query: str = "",
) -> ShownRow:
    bars, end = waterfall(why, axis)
    factors = " × ".join(f"{name} {value:.2f}" for name, value in why.items() if abs(value - 1) > 0.005)
    return ShownRow(
        memory=memory,
        ref=ref,
        text=_text(memory),
        shown=marked(_text(memory), (word for word in matched if word not in words.SMALL)),
        score=score,
        bars=bars,
        end=end,
        label=f"Score {score:.1f}: {factors}",
        steps=steps(why, axis),
        reasons={name: words.reason(name, value, memory, matched, query) for name, value in why.items()},
        because=because,
    )


def _text(memory: Memory | None) -> str:
    if memory is None:
        return "This memory is gone."
    return words.cut(memory.content, SHOWN_CHARS)


def place_of(memory: Kept) -> tuple[str, str, str]:
    """Return the project and the actor of an opened memory: each actor may see other memories."""
    actor = memory.look().actor
    return (memory.look().space, actor.name, actor.role)
