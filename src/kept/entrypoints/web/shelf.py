"""The memories of a project in the process of the server, to be listed, counted and searched as people do.

Read once, then brought up to date from the journal. A person's search finds every memory that contains the words, also
inside other words; recall decides only which of them an agent would get. Rule: there is a shelf for each
actor, with the memories that it may read.
"""

import re
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

from msgspec import Struct

from kept.entrypoints.web import words
from kept.entrypoints.web.rows import place_of
from kept.memory import Kept
from kept.memory.word_search import parts_of, searched_text
from kept.model import Memory

MOST_SHELVES = 16
MOST_PASTS = 3
MOST_ANSWERS = 32  # of one shelf that are remembered until something changes
USES_S = 60.0  # uses are not in the journal: an order by use is at most this old
FACETS = ("kind", "status", "trust", "agent")
LIVE = "live"

Filters = Mapping[str, str]


class _Entry(Struct, frozen=True):
    memory: Memory
    text: str  # everything that is searched, in lower case
    facets: tuple[str, str, str, str]  # kind, status, trust, agent


class Sought(Struct, frozen=True, kw_only=True):
    """The memories that fit a question and filters, in order, and how many each other choice would show."""

    memories: Sequence[Memory]
    counts: Mapping[str, Counter[str]]


class Shelf:
    """The memories of a project as one actor may see them."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}  # by uid
        self._seen: dict[str, int] = {}  # the last event of each space
        self._answers: OrderedDict[Any, Sought] = OrderedDict()
        self._pasts: OrderedDict[datetime, list[_Entry]] = OrderedDict()
        self._first_written: datetime | None = None
        self._read_at = 0.0
        self._guard = threading.Lock()

    def follow(self, memory: Kept, *, with_uses: bool = False) -> "Shelf":
        """Bring the shelf up to date. `with_uses`: also how often each memory was used."""
        with self._guard:
            if with_uses and time.monotonic() - self._read_at > USES_S:
                self._seen = {}
            for found in memory.look().memories_since(self._seen):
                if found.is_whole:
                    self._entries = {k: v for k, v in self._entries.items() if v.memory.space != found.space}
                    self._read_at = time.monotonic()
                self._entries.update((one.uid, _entry(one)) for one in found.memories)
                for uid in found.gone:
                    self._entries.pop(uid, None)
                self._seen[found.space] = found.last_event
                self._answers.clear()
                self._pasts.clear()
                self._first_written = None
        return self

    def get(self, uid: str) -> Memory | None:
        """Return a memory of any shelf by its uid."""
        found = self._entries.get(uid)
        return None if found is None else found.memory

    def _known_at(self, memory: Kept, at: datetime) -> "list[_Entry]":
        """Return the memories as they were at a moment; of the last few moments, they are remembered."""
        if (known := self._pasts.get(at)) is None:
            now = [one.memory for one in self._entries.values()]
            known = self._pasts[at] = [*map(_entry, memory.look().known_at(at, now))]
            if len(self._pasts) > MOST_PASTS:
                self._pasts.popitem(last=False)
        return known

    def first_written(self) -> datetime | None:
        """Return when the oldest live memory was written; None if there is none."""
        if self._first_written is None:
            self._first_written = min((one.created_at for one in self.live()), default=None)
        return self._first_written

    def live(self) -> list[Memory]:
        """Return the live memories."""
        return [one.memory for one in self._entries.values() if not one.memory.is_archived]

    def seek(self, query: str, filters: Filters, order: str, memory: Kept, then: datetime | None) -> Sought:
        """Return the memories that contain every word of the query, those with whole words first.

        `then`: of those that were known at another moment.
        """
        asked = (query.lower(), tuple(sorted(filters.items())), order, then)
        if (known := self._answers.get(asked)) is None:
            entries = [*self._entries.values()] if then is None else self._known_at(memory, then)
            known = self._answers[asked] = _sought(entries, query, filters, order)
            if len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)
        return known


class Shelves:
    """The shelves of the actors that looked at a project, the last ones."""

    def __init__(self) -> None:
        self._known: OrderedDict[Any, Shelf] = OrderedDict()
        self._guard = threading.Lock()

    def of(self, memory: Kept, *, with_uses: bool = False) -> Shelf:
        """Return the shelf of a memory, as it is now."""
        place = place_of(memory)
        with self._guard:
            shelf = self._known.setdefault(place, Shelf())
            self._known.move_to_end(place)
            if len(self._known) > MOST_SHELVES:
                self._known.popitem(last=False)
        return shelf.follow(memory, with_uses=with_uses)


def _entry(one: Memory) -> _Entry:
    status = "forgotten" if one.is_forgotten else one.status
    return _Entry(one, searched_text(one), (one.kind, status, one.trust, one.source.agent or ""))


def _sought(entries: list[_Entry], query: str, filters: Filters, order: str) -> Sought:
    parts = parts_of(query)
    matched = _matching(entries, parts, _others(filters))
    found, counts = _counted(matched, [filters.get(name, "") for name in FACETS])
    found.sort(key=_order(order), reverse=order != "oldest")
    if parts and not order:
        found.sort(key=_nearness(parts))
    return Sought(memories=[one.memory for one in found], counts=counts)


def _matching(entries: list[_Entry], parts: Sequence[str], others: Sequence[Callable[[Memory], bool]]) -> list[_Entry]:
    if parts:
        entries = [one for one in entries if all(part in one.text for part in parts)]
    return [one for one in entries if all(fits(one.memory) for fits in others)] if others else entries


def _counted(matched: Sequence[_Entry], wanted: Sequence[str]) -> tuple[list[_Entry], dict[str, Counter[str]]]:
    """Return the entries that were chosen, and for each facet the counts of its values under the other filters."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    found = []
    for one in matched:
        failing = [at for at, value in enumerate(wanted) if not _is_chosen(at, value, one.facets[at])]
        if not failing:
            found.append(one)
        for at in failing or range(len(FACETS)):
            if len(failing) < 2:
                counts[FACETS[at]][one.facets[at]] += 1
    return found, counts


def _nearness(parts: Sequence[str]) -> Callable[[_Entry], tuple[bool, int]]:
    """Return the order of matches: all words in a row first, then more whole words."""
    named = "|".join(re.escape(one) for one in sorted(parts, key=len, reverse=True))
    whole, phrase = re.compile(rf"(?<!\w)(?:{named})(?!\w)"), " ".join(parts)
    return lambda one: (phrase not in one.text, -len(set(whole.findall(one.text))))


def _is_chosen(at: int, wanted: str, value: str) -> bool:
    if FACETS[at] == "status" and not wanted:
        return value not in ("archived", "forgotten")
    return not wanted or wanted == value


def _others(filters: Filters) -> list[Callable[[Memory], bool]]:
    """Return the tests of the filters that are not counted."""
    tag, file, session = (filters.get(name, "") for name in ("tag", "file", "session"))
    tests: list[Callable[[Memory], bool]] = []
    if tag:
        tests.append(lambda one: tag in one.tags)
    if file:
        tests.append(lambda one: file in one.files)
    if session:
        tests.append(lambda one: one.source.session == session)
    return tests


def _order(order: str) -> Callable[[_Entry], Any]:
    names = {"used": ("use_count", "created_at"), "rated": ("feedback", "created_at")}.get(order, ("created_at",))
    fields = attrgetter(*names, "id")
    return lambda one: fields(one.memory)


def top_tags(memories: Iterable[Memory], *, limit: int) -> list[tuple[str, int]]:
    """Return the commonest tags of some memories with their counts."""
    return Counter(tag for one in memories for tag in words.tags(one)).most_common(limit)
