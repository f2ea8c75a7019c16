"""Briefings: what an agent should know before it starts, as one text that fits a budget and a style.

Last steps of the read path, for a host that injects memories. Three files:

    material.py    collect: what could be told in this situation, best first in each section, and why   `collect`
    __init__.py    budget and compose: how many tokens each section may take, and what fits             `compose`
    render.py      format: the text in XML, Markdown, plain text or JSON, which no content can break out of

Sections are filled in this order: pinned memories (`always`), what other agents found since the session began
(`bridge`), what fits the prompt, the files and the task at hand, and the rules that hold then (`retrieval`), the last
session (`summary`); open tasks follow. Errors stand under a heading of their own in any section. Room that a
section does not use flows on to the next, and room that is left in the end flows back: to memories for which their own
section had none, and to pins beyond the fifth. Rank decides which memories of a section get in, but they are shown
oldest first: a new one goes to the end, the text before it stays the same byte for byte, and a prompt cache stays
valid. The few lines of hooks are shown best first. Pure, apart from the readers of `collect`. Rules: the text is
measured as it will be read, markup included; never more than the total; memories that do not fit are named in
`left_out`; and the tokens of the sections add up to those of the text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import ceil
from typing import NamedTuple

from msgspec import Struct

from kept import tokens
from kept.model import Briefing, Entry, Memory, Omission, Section, TaskRecord, replace
from kept.recall.briefing.material import FULL_PINS, Material, brief, collect, question_of, with_its_source
from kept.recall.briefing.render import (
    STYLES,
    Pair,
    conflict_sentence,
    frame_of,
    heading_of,
    render_briefing,
    render_entry,
    render_left_out,
    render_task,
)
from kept.recall.briefing.situation import Situation, tier_of

__all__ = [
    "FRAME",
    "NO_ROOM",
    "STYLES",
    "Material",
    "Order",
    "Pair",
    "Situation",
    "allocate",
    "collect",
    "compose",
    "conflict_sentence",
    "distrust",
    "fitting",
    "fitting_shared",
    "question_of",
    "render_entry",
    "total_tokens",
    "with_its_source",
]

MOST_TOKENS = 5_000
MOST_PERCENT = 8.0  # of the context that is left


class Allocation(NamedTuple):
    """The tokens of each section before anything flows on, in the order in which they are filled."""

    always: int
    bridge: int
    retrieval: int
    summary: int


def total_tokens(
    budget_tokens: int | None,
    remaining_tokens: int | None,
    *,
    most_tokens: int = MOST_TOKENS,
    most_percent: float = MOST_PERCENT,
) -> int:
    """The tokens of a briefing: as given, or a share of what remains; the smaller of both, or else `most_tokens`."""
    offers = [] if budget_tokens is None else [budget_tokens]
    if remaining_tokens is not None:
        offers.append(min(most_tokens, int(remaining_tokens * most_percent / 100)))
    return max(0, min(offers, default=most_tokens))


def allocate(total: int) -> Allocation:
    """Share out a total. A section gets its minimum only while there is that much left."""
    left = total
    left -= (always := min(left, _clamp(total * 8 // 100, 200, 400)))
    left -= (bridge := min(left, max(500, left // 2)))
    left -= (retrieval := min(left, _clamp(left * 65 // 100, 300, 1500)))
    summary = min(left, _clamp(left, 200, 600))
    return Allocation(always, bridge, retrieval, summary)


def fitting(costs: Sequence[int], room: int) -> list[int]:
    """The places of those that fit, in their order; one that is too big is skipped."""
    chosen = []
    for place, cost in enumerate(costs):
        if cost <= room:
            chosen.append(place)
            room -= cost
    return chosen


def fitting_shared(costs: Sequence[int], tiers: Sequence[str], room: int, shares: Mapping[str, int]) -> list[int]:
    """The same, where each tier first has a share of the room to itself; what it leaves is for all.

    A tier without a share gets nothing.
    """
    whole = sum(shares.values())
    chosen: set[int] = set()
    for tier, share in shares.items():
        if share:
            places = [place for place, own in enumerate(tiers) if own == tier]
            chosen.update(_fitting_places(places, costs, room * share // whole))
    rest = [place for place, tier in enumerate(tiers) if place not in chosen and shares.get(tier)]
    chosen.update(_fitting_places(rest, costs, room - sum(costs[place] for place in chosen)))
    return sorted(chosen)


def _fitting_places(places: Sequence[int], costs: Sequence[int], room: int) -> list[int]:
    return [places[index] for index in fitting([costs[place] for place in places], room)]


def _clamp(number: int, least: int, most: int) -> int:
    return max(least, min(number, most))


INSTRUCTION_TAG = "instruction-like"  # set by the write path
LEAST_CONFIDENCE = 0.35  # of what a tool or a stranger said
ERRORS = "errors"  # a heading within the section that they fit
ERRORS_KIND = "error"
FRAME = "frame"  # headings, the note, warnings of conflicts, and the mark of a delivery
NO_ROOM = "there was no room for it"
CLEARLY_LESS = 1.5  # times what all parts take: then the whole, which only adds line breaks, need not be measured

_SHOWN_ORDER = {"global": 0, "project": 1, "session": 2, "task": 3}


class Order(Struct, frozen=True, kw_only=True):
    """How long a briefing may be, in which style, and how the tiers share the section `retrieval`."""

    total: int
    style: str
    shares: Mapping[str, int]
    max_chars: int | None = None
    is_best_first: bool = False

    def is_exceeded_by(self, text: str, spent: int) -> bool:
        """Return True if a text of that many tokens is too long."""
        return spent > self.total or (self.max_chars is not None and len(text) > self.max_chars)


def compose(material: Material, order: Order) -> Briefing:
    """The best briefing within the order's limits. Never over them; empty when nothing fits."""
    left_out = {out.ref: out.reason for out in material.left_out}
    parts = _filled(material, order, left_out)
    draft = _Draft(parts, list(material.tasks), material.conflicts, _pins_in(material), order)
    draft.shrink(left_out)
    draft.grow(left_out)
    text, total = draft.text, tokens.estimate(draft.text)
    sections = draft.sections(total)
    shown = {entry.ref for section in sections for entry in section.entries}
    return Briefing(
        text=text,
        style=order.style,
        budget=order.total,
        tokens=total,
        sections=sections,
        left_out=tuple(Omission(ref=ref, reason=reason) for ref, reason in left_out.items() if ref not in shown),
    )


def _pins_in(material: Material) -> list[str]:
    return [entry.ref for entry in material.always if not distrust(entry.memory)]


def distrust(memory: Memory) -> str | None:
    """Why a memory must not be put before an agent unasked, or None. It can still be recalled and read."""
    if INSTRUCTION_TAG in memory.tags:
        return "it reads like an instruction, and nobody wrote it on purpose"
    if memory.is_low_trust and memory.confidence < LEAST_CONFIDENCE:
        return "it comes from a tool and has low confidence"
    return None


class _Written(Struct, frozen=True):
    """A memory as it will be read, and what it takes."""

    entry: Entry
    text: str
    tokens: int
    cost: int


class _Part(Struct):
    """A section while it is being filled, best first, and the memories that wait for room."""

    name: str
    budget: int
    heading_tokens: int
    written: list[_Written] = []
    waiting: list[_Written] = []

    def in_order(self, order: Order) -> list[_Written]:
        """As it is shown: oldest first, and the tiers that change most often last; or best first."""
        if order.is_best_first:
            return self.written
        return sorted(self.written, key=_shown_at)

    @property
    def tokens(self) -> int:
        return self.heading_tokens + sum(one.tokens for one in self.written) if self.written else 0

    def as_section(self, order: Order) -> Section:
        in_order = self.in_order(order)
        heading = _heading_estimate(heading_of(self.name, order.style)) if in_order else 0
        spent = heading + tokens.estimate("\n".join(one.text for one in in_order))
        return Section(name=self.name, budget=self.budget, tokens=spent, entries=tuple(one.entry for one in in_order))


def _shown_at(one: _Written) -> tuple[bool, int, int]:
    return bool(one.entry.branch), _SHOWN_ORDER[one.entry.memory.tier], one.entry.memory.id


class _Draft:
    """A briefing while memories are added and dropped: the text as it would be read, and its tokens."""

    def __init__(
        self,
        parts: Sequence[_Part],
        tasks: list[TaskRecord],
        conflicts: Sequence[Pair],
        pins: Sequence[str],
        order: Order,
    ) -> None:
        self._parts, self._tasks, self._conflicts, self._pins, self._order = parts, tasks, conflicts, pins, order
        self._render()

    def _render(self) -> None:
        self.text, self.spent = _rendered(self._parts, self._tasks, self._conflicts, self._pins, self._order)

    @property
    def is_too_long(self) -> bool:
        return self._order.is_exceeded_by(self.text, self.spent)

    def shrink(self, left_out: dict[str, str]) -> None:
        """Drop the last task, or else the last memory, until the text is short enough."""
        while self.is_too_long:
            if self._tasks:
                left_out[self._tasks.pop().name] = NO_ROOM
            else:
                last = [part for part in self._parts if part.written][-1]
                left_out[last.written.pop().entry.ref] = NO_ROOM
            self._render()

    def grow(self, left_out: dict[str, str]) -> None:
        """Give the room that is left to memories that waited for it; pins beyond the fifth come last."""
        if not self.text or not any(part.waiting for part in self._parts):
            return
        added = self._add_waiting()
        self._render()
        while self.is_too_long and added:  # a warning of a conflict came along
            left_out[added.pop().written.pop().entry.ref] = NO_ROOM
            self._render()

    def _add_waiting(self) -> list[_Part]:
        """Add the waiting memories that fit, and return the part of each."""
        room = self._order.total - max(tokens.at_most(self.text), _chars_as_tokens(len(self.text), self._order))
        added: list[_Part] = []
        for part in sorted(self._parts, key=lambda part: part.name == "always"):
            for one in part.waiting if part.name != "retrieval" else self._with_share(part.waiting):
                cost = one.cost + (0 if part.written else _heading_cost(part.name, [one], self._order))
                if cost <= room:
                    part.written.append(one)
                    added.append(part)
                    room -= cost
        return added

    def _with_share(self, waiting: Sequence[_Written]) -> list[_Written]:
        return [one for one in waiting if self._order.shares.get(tier_of(one.entry.memory))]

    def sections(self, total: int) -> tuple[Section, ...]:
        """Return the sections with their tokens. With the frame (headings, note, warnings) they add up to the total."""
        found = [part.as_section(self._order) for part in self._parts]
        if self._tasks:
            lines = "\n".join(render_task(task, self._order.style) for task in self._tasks)
            found.append(Section(name="tasks", budget=0, tokens=tokens.estimate(lines)))
        if self.text:
            found.append(Section(name=FRAME, budget=0, tokens=total - sum(section.tokens for section in found)))
        return tuple(found)


def _filled(material: Material, order: Order, left_out: dict[str, str]) -> list[_Part]:
    """Fill the sections with what fits into each. Room that one leaves flows on to the next."""
    room = order.total - _markup_cost(frame_of(order.style), order)
    carried = 0
    shown: set[str] = set()
    parts = []
    for name, budget in allocate(order.total)._asdict().items():
        entries = [_written(entry, name, order) for entry in _admitted(getattr(material, name), shown, left_out)]
        carried += budget
        # Five pins are shown if they can be: they may borrow from the sections after them, or be cut.
        available = min(max(carried, order.total // 2) if name == "always" else carried, room)
        fits = _first_fitting(name, entries, available, order)
        if fits:
            spent = _heading_cost(name, fits, order) + sum(one.cost for one in fits)
            room, carried = room - spent, carried - spent
        shown.update(one.entry.ref for one in fits)
        waiting = [one for one in entries if one.entry.ref not in shown]
        left_out.update({one.entry.ref: NO_ROOM for one in waiting})
        parts.append(_Part(name, budget, _markup_tokens(heading_of(name, order.style)), fits, waiting))
    return parts


def _first_fitting(name: str, entries: Sequence[_Written], available: int, order: Order) -> list[_Written]:
    """Return the memories of a section that fit at first: of pins five, all cut if they do not fit whole."""
    first = entries[:FULL_PINS] if name == "always" else entries
    available -= _heading_cost(name, first, order)
    if name == "always" and sum(one.cost for one in first) > available:
        first = [_written(replace(one.entry, memory=brief(one.entry.memory)), name, order) for one in first]
    return _fitting_entries(name, first, available, order)


def _heading_cost(name: str, entries: Sequence[_Written], order: Order) -> int:
    """Return the cost of the heading of a section, and of the one over its errors."""
    cost = _markup_cost(heading_of(name, order.style), order)
    if any(_is_error(one.entry) for one in entries):
        cost += _markup_cost(heading_of(ERRORS, order.style), order)
    return cost


def _fitting_entries(name: str, entries: Sequence[_Written], room: int, order: Order) -> list[_Written]:
    costs = [one.cost for one in entries]
    if name == "retrieval":
        chosen = fitting_shared(costs, [tier_of(one.entry.memory) for one in entries], room, order.shares)
    else:
        chosen = fitting(costs, room)
    return [entries[place] for place in chosen]


def _written(entry: Entry, section: str, order: Order) -> _Written:
    text = render_entry(entry, section, order.style)
    own_tokens = tokens.at_most(text) + 1  # and the line break behind it
    return _Written(entry, text, own_tokens, max(own_tokens, _chars_as_tokens(len(text) + 1, order)))


def _is_error(entry: Entry) -> bool:
    """Whether it is quoted under a heading of its own: a message of a program is no statement about the project."""
    return entry.memory.kind == ERRORS_KIND and entry.memory.status != "pinned"


def _admitted(entries: Iterable[Entry], shown: set[str], left_out: dict[str, str]) -> Iterator[Entry]:
    """Those that may be shown and are not shown yet, each once."""
    seen = set(shown)
    for entry in entries:
        if entry.ref in seen:
            continue
        seen.add(entry.ref)
        if reason := distrust(entry.memory):
            left_out[entry.ref] = reason
        else:
            yield entry


def _cost(text: str, order: Order) -> int:
    """The part of the total that a text takes."""
    return max(tokens.at_most(text), _chars_as_tokens(len(text), order))


def _markup_cost(markup: str, order: Order) -> int:
    """The same for headings and frames, of which there are few."""
    return max(_markup_tokens(markup), _chars_as_tokens(len(markup), order))


_markup_tokens = lru_cache(maxsize=64)(tokens.at_most)
_heading_estimate = lru_cache(maxsize=64)(tokens.estimate)


def _chars_as_tokens(chars: int, order: Order) -> int:
    """Where characters are limited as well, they are counted in the same coin."""
    return ceil(chars * order.total / order.max_chars) if order.max_chars else 0


def _rendered(
    parts: Sequence[_Part], tasks: Sequence[TaskRecord], conflicts: Sequence[Pair], pins: Sequence[str], order: Order
) -> tuple[str, int]:
    refs = {one.entry.ref for part in parts for one in part.written}
    sections = _lines_by_section(parts, order)
    if refs and (missing := [ref for ref in pins if ref not in refs]):
        sections["left_out"] = [render_left_out(missing, order.style)]
    sections["tasks"] = [render_task(task, order.style) for task in tasks]
    told = _told(conflicts, refs, order)
    text = render_briefing(sections, told, order.style)
    together = _markup_tokens(frame_of(order.style)) + sum(part.tokens for part in parts)
    has_only_parts = not (tasks or told or sections["left_out"])
    return text, together if has_only_parts and together * CLEARLY_LESS <= order.total else tokens.at_most(text)


def _lines_by_section(parts: Sequence[_Part], order: Order) -> dict[str, list[str]]:
    """Return the rendered memories of each section in the order of the text, errors apart."""
    names = ("always", "left_out", "bridge", "retrieval", ERRORS, "summary")
    sections: dict[str, list[str]] = {name: [] for name in names}
    for part in parts:
        for one in part.in_order(order):
            sections[ERRORS if _is_error(one.entry) else part.name].append(one.text)
    return sections


def _told(conflicts: Sequence[Pair], refs: set[str], order: Order) -> list[Pair]:
    """The conflicts to warn of, within a quarter of the total: those with both sides in view first, then with one.

    A text that must not be shown does not get in by way of a warning, and no tool casts doubt on a memory.
    """
    in_view = [pair for pair in conflicts if any(memory.ref in refs for memory in pair)]
    trusted = [pair for pair in in_view if not any(map(_is_doubtful, pair))]
    trusted.sort(key=lambda pair: not all(memory.ref in refs for memory in pair))
    costs = [_cost(conflict_sentence(pair), order) for pair in trusted]
    return [trusted[place] for place in fitting(costs, order.total // 4)]


def _is_doubtful(memory: Memory) -> bool:
    return memory.is_low_trust or distrust(memory) is not None
