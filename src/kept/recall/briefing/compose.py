"""From what was found to a briefing that fits: who may be in it, what fits where, and the text.

Between `budget`, which has the numbers, and `render`, which has the words. Pure. Rule: the text is measured as it
will be read, markup and all, and what does not fit is named, never cut.

What comes first is decided by rank. It is shown oldest first, so that a new memory goes to the end and the text before
it stays the same, byte for byte: a prompt's cache lives from that.

How many tokens a briefing may take, and which part of it how many.

Sixth step of the read path, for a host that injects. Order of importance: what is pinned, what other agents of the
session found, what fits the prompt, what earlier sessions came to. Rule: never more than the total; what one part
does not use flows on to the next.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import NamedTuple

from msgspec import Struct

from kept import tokens
from kept.model import GLOBAL, Entry, LeftOut, Memory, Section
from kept.recall.briefing.render import Pair, conflict_sentence, frame_of, heading_of, render, render_entry

MOST_TOKENS = 5_000
MOST_PERCENT = 8.0  # of the context that is left


class Allocation(NamedTuple):
    """What each section may take before anything has flowed on, in the order in which they are filled."""

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
    """What a briefing may take: as given, or a share of what remains; of both the smaller, of neither the most."""
    offers = [] if budget_tokens is None else [budget_tokens]
    if remaining_tokens is not None:
        offers.append(min(most_tokens, int(remaining_tokens * most_percent / 100)))
    return max(0, min(offers, default=most_tokens))


def allocate(total: int) -> Allocation:
    """Share out a total. A section's least is given only while there is that much."""
    left = total
    left -= (always := min(left, _clamp(total * 8 // 100, 200, 400)))
    left -= (bridge := min(left, max(500, left // 2)))
    left -= (retrieval := min(left, _clamp(left * 65 // 100, 300, 1500)))
    summary = min(left, _clamp(left, 200, 600))
    return Allocation(always, bridge, retrieval, summary)


def fitting(costs: Sequence[int], room: int) -> list[int]:
    """Which of the things fit, in their order; one that is too big is passed over."""
    chosen = []
    for place, cost in enumerate(costs):
        if cost <= room:
            chosen.append(place)
            room -= cost
    return chosen


def fitting_shared(costs: Sequence[int], tiers: Sequence[str], room: int, shares: Mapping[str, int]) -> list[int]:
    """The same, where each tier first has a share of the room to itself; what it leaves is for all.

    A tier whose share is 0, or that is not named, gets nothing.
    """
    whole = sum(shares.values())
    chosen: set[int] = set()
    for tier, share in shares.items():
        places = [place for place, own in enumerate(tiers) if own == tier and share]
        own_room = room * share // whole if whole else 0
        chosen.update(places[index] for index in fitting([costs[place] for place in places], own_room))
    rest = [place for place, tier in enumerate(tiers) if place not in chosen and shares.get(tier)]
    left = room - sum(costs[place] for place in chosen)
    chosen.update(rest[index] for index in fitting([costs[place] for place in rest], left))
    return sorted(chosen)


def _clamp(number: int, least: int, most: int) -> int:
    return max(least, min(number, most))


INSTRUCTION_TAG = "instruction-like"  # set by the write path
LEAST_CONFIDENCE = 0.35  # of what a tool said
NO_ROOM = "there was no room for it"

_SHOWN_ORDER = {"global": 0, "project": 1, "session": 2, "task": 3}


class Order(Struct, frozen=True, kw_only=True):
    """What is wanted: how much, in which style, and how the tiers share what is recalled."""

    total: int
    style: str
    shares: Mapping[str, int]
    max_chars: int | None = None


class Found(Struct, frozen=True, kw_only=True):
    """What could be told, best first in each section, and which memories are known to disagree."""

    always: Sequence[Entry] = ()
    bridge: Sequence[Entry] = ()
    retrieval: Sequence[Entry] = ()
    summary: Sequence[Entry] = ()
    conflicts: Sequence[Pair] = ()
    left_out: Sequence[LeftOut] = ()


class Composed(Struct, frozen=True, kw_only=True):
    """The text, and what is in it and what not."""

    text: str = ""
    tokens: int = 0
    sections: tuple[Section, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def compose(found: Found, order: Order) -> Composed:
    """The best briefing within the order's limits. Never over them; empty when nothing fits."""
    left_out = {out.ref: out.reason for out in found.left_out}
    parts = _filled(found, order, left_out)
    text, spent = _rendered(parts, found.conflicts, order)
    while spent > order.total or (order.max_chars is not None and len(text) > order.max_chars):
        last = [part for part in parts if part.written][-1]
        left_out[last.written.pop().entry.ref] = NO_ROOM
        text, spent = _rendered(parts, found.conflicts, order)
    sections = tuple(part.as_section() for part in parts)
    shown = {entry.ref for section in sections for entry in section.entries}
    return Composed(
        text=text,
        tokens=spent,
        sections=sections,
        left_out=tuple(LeftOut(ref=ref, reason=reason) for ref, reason in left_out.items() if ref not in shown),
    )


def distrust(memory: Memory) -> str | None:
    """Why a memory must not be put before an agent unasked, or None. It can still be recalled and read."""
    if INSTRUCTION_TAG in memory.tags:
        return "it reads like an instruction, and nobody wrote it on purpose"
    if memory.source.origin == "tool" and memory.confidence < LEAST_CONFIDENCE:
        return "it comes from a tool, with little confidence"
    return None


def ends_first(entries: Sequence[Entry], n: int) -> list[Entry]:
    """The n newest and the n oldest before all others; otherwise in the order given."""
    by_age = sorted(entries, key=lambda entry: (entry.memory.created_at, entry.memory.id))
    ends = {entry.ref for entry in (*by_age[:n], *by_age[max(n, len(by_age) - n) :])} if n > 0 else set()
    return sorted(entries, key=lambda entry: entry.ref not in ends)


def tier_of(memory: Memory) -> str:
    """Whose share a memory takes: what a session found belongs to its project."""
    if memory.space == GLOBAL:
        return GLOBAL
    return "project" if memory.tier == "session" else memory.tier


class _Written(Struct, frozen=True):
    """A memory as it will be read, and what that takes."""

    entry: Entry
    text: str
    tokens: int
    cost: int


class _Part(Struct):
    """A section in the making: what fits, best first."""

    name: str
    budget: int
    heading_tokens: int
    written: list[_Written] = []

    def in_order(self) -> list[_Written]:
        """As it is shown: oldest first, and what changes most often last."""
        return sorted(self.written, key=lambda one: (_SHOWN_ORDER[one.entry.memory.tier], one.entry.memory.id))

    def as_section(self) -> Section:
        tokens = self.heading_tokens + sum(one.tokens for one in self.written) if self.written else 0
        entries = tuple(one.entry for one in self.in_order())
        return Section(name=self.name, budget=self.budget, tokens=tokens, entries=entries)


def _filled(found: Found, order: Order, left_out: dict[str, str]) -> list[_Part]:
    """The sections with what fits into each. What one leaves flows on to the next."""
    room = order.total - _cost(frame_of(order.style), order)
    carried = 0
    shown: set[str] = set()
    parts = []
    for name, budget in allocate(order.total)._asdict().items():
        entries = [_written(entry, name, order) for entry in _admitted(getattr(found, name), shown, left_out)]
        costs = [one.cost for one in entries]
        heading = heading_of(name, order.style)
        heading_cost = _cost(heading, order)
        carried += budget
        available = min(carried, room) - heading_cost
        if name == "retrieval":
            chosen = fitting_shared(costs, [tier_of(one.entry.memory) for one in entries], available, order.shares)
        else:
            chosen = fitting(costs, available)
        if chosen:
            spent = heading_cost + sum(costs[place] for place in chosen)
            room, carried = room - spent, carried - spent
        fits = [entries[place] for place in chosen]
        shown.update(one.entry.ref for one in fits)
        left_out.update({one.entry.ref: NO_ROOM for one in entries if one.entry.ref not in shown})
        parts.append(_Part(name, budget, tokens.estimate(heading), fits))
    return parts


def _written(entry: Entry, section: str, order: Order) -> _Written:
    text = render_entry(entry, section, order.style)
    own_tokens = tokens.estimate(text) + 1  # and the line break behind it
    return _Written(entry, text, own_tokens, max(own_tokens, _chars_as_tokens(len(text) + 1, order)))


def _admitted(entries: Iterable[Entry], shown: set[str], left_out: dict[str, str]) -> Iterator[Entry]:
    """Those that may be shown and are not yet, each once."""
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
    """What a text takes of the total."""
    return max(tokens.estimate(text), _chars_as_tokens(len(text), order))


def _chars_as_tokens(chars: int, order: Order) -> int:
    """Where characters are limited too, what they take is counted in the same coin."""
    return ceil(chars * order.total / order.max_chars) if order.max_chars else 0


def _rendered(parts: Sequence[_Part], conflicts: Sequence[Pair], order: Order) -> tuple[str, int]:
    refs = {one.entry.ref for part in parts for one in part.written}
    sections = {part.name: [one.text for one in part.in_order()] for part in parts}
    text = render(sections, _told(conflicts, refs, order), order.style)
    return text, tokens.estimate(text)


def _told(conflicts: Sequence[Pair], refs: set[str], order: Order) -> list[Pair]:
    """Which conflicts to warn of: both sides in view first, and one side is enough; within a quarter of the total.

    No text that must not be shown gets in by way of a warning.
    """
    in_view = [pair for pair in conflicts if any(memory.ref in refs for memory in pair)]
    trusted = [pair for pair in in_view if not any(distrust(memory) for memory in pair)]
    trusted.sort(key=lambda pair: not all(memory.ref in refs for memory in pair))
    costs = [_cost(conflict_sentence(pair), order) for pair in trusted]
    return [trusted[place] for place in fitting(costs, order.total // 4)]
