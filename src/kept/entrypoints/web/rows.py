"""Rows of a list: a memory with its score as geometry, its reasons in words, and the matched words marked."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from markupsafe import Markup, escape
from msgspec import Struct
from msgspec.structs import replace

from kept.entrypoints.web import words
from kept.entrypoints.web.draw import Axis, Bar, FactorStep, axis_of, steps, waterfall
from kept.errors import KeptError
from kept.memory import Kept
from kept.model import Hit, Memory

SHOWN_CHARS = 280


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
    why_missed: str = ""
    is_current: bool = False


def scored(hits: Iterable[Hit], axis: Axis, now: datetime, **about: Any) -> list[ShownRow]:
    """The rows of a recall, on one axis."""
    return [_row(hit.memory, hit.memory.ref, hit.why, hit.matched, hit.score, axis, now, **about) for hit in hits]


def noted(lines: Iterable[Mapping[str, Any]], memory: Kept, axis: Axis, now: datetime) -> dict[str, ShownRow]:
    """The rows of a receipt, by ref, with the memories as they are today."""
    rows = {}
    for line in lines:
        found = find(memory, line["ref"])
        row = _row(found, line["ref"], line["why"], line.get("matched") or {}, line["score"], axis, now)
        rows[line["ref"]] = _because(row, line.get("reason", ""))
    return rows


def plain(memory: Memory | None, ref: str, *, because: str = "") -> ShownRow:
    """A row without a score."""
    return ShownRow(memory=memory, ref=ref, text=_text(memory), shown=_text(memory), because=because)


def axis_for(*groups: Iterable[Mapping[str, float]]) -> Axis:
    """One axis for all these scores."""
    return axis_of(why for group in groups for why in group)


def find(memory: Kept, ref: str) -> Memory | None:
    """The memory as it is today, or None if it is gone for whoever asks."""
    try:
        found = memory.context.find(ref)[1]
    except KeptError:
        return None
    return None if found.is_forgotten else found


def marked(text: str, matched: Iterable[str]) -> Markup:
    """The text with the words of the question marked; everything else is escaped."""
    shortened = text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
    stems = sorted({re.escape(word) for word in matched if len(word) > 1}, key=len, reverse=True)
    if not stems:
        return escape(shortened)
    found = re.compile("|".join(stems), re.IGNORECASE)
    parts, at = [], 0
    for match in found.finditer(shortened):
        parts += [escape(shortened[at : match.start()]), Markup("<mark>{}</mark>").format(match.group())]
        at = match.end()
    return Markup("").join([*parts, escape(shortened[at:])])


def _row(
    memory: Memory | None,
    ref: str,
    why: Mapping[str, float],
    matched: Mapping[str, str],
    score: float,
    axis: Axis,
    now: datetime,
    **about: Any,
) -> ShownRow:
    bars, end = waterfall(why, axis)
    factors = " × ".join(f"{name} {value:.2f}" for name, value in why.items() if abs(value - 1) > 0.005)
    reasons = {} if memory is None else {name: words.reason(name, memory, matched, now) for name in why}
    return ShownRow(
        memory=memory,
        ref=ref,
        text=_text(memory),
        shown=marked(_text(memory), matched),
        score=score,
        bars=bars,
        end=end,
        label=f"Score {score:.1f}: {factors}",
        steps=steps(why, axis),
        reasons=reasons,
        **about,
    )


def _because(row: ShownRow, because: str) -> ShownRow:
    return replace(row, because=because)


def _text(memory: Memory | None) -> str:
    if memory is None:
        return "This memory is gone."
    return memory.content if len(memory.content) <= SHOWN_CHARS else memory.content[: SHOWN_CHARS - 1] + "…"
