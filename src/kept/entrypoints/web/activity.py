"""Activity of a project by hour and actor: counted from the journal once, and then only new events."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta

from kept.memory import Kept
from kept.memory.look import SessionOverview
from kept.model import Session

MOST_OVERVIEWS = 5_000

Counts = Counter[tuple[datetime, str, str]]  # hour, actor, action → how often


class Activity:
    """The counted journals of the projects that were looked at."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, Counts]] = {}
        self._guard = threading.Lock()

    def of(self, memory: Kept) -> Counts:
        """Count everything in the journal of the project by hour, actor and action."""
        look = memory.look()
        space = look.project().space
        if not space:
            return Counter()
        with self._guard:
            seen, counts = self._known.get(space, (0, Counter()))
            new = look.event_counts(after=seen)
            if new.last_event < seen:  # an older state was restored
                counts, new = Counter(), look.event_counts()
            for hour, actor, action, number in new.by_hour:
                counts[hour, actor, action] += number
            self._known[space] = (new.last_event, counts)
            return counts

    def events_before(self, memory: Kept, at: datetime) -> int:
        """Count the events before an hour. Events stand in their order and have no gaps, so it is a number of one."""
        return sum(number for (hour, _, _), number in self.of(memory).items() if hour < at)

    def actors(self, memory: Kept) -> list[str]:
        """Everybody who ever changed something, the busiest first."""
        found: Counter[str] = Counter()
        for (_, actor, _), number in self.of(memory).items():
            found[actor] += number
        return [actor for actor, _ in found.most_common(50)]


class Overviews:
    """Overviews of sessions. That of a finished one is read once: it changes only when the session goes on."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str, datetime | None], SessionOverview] = OrderedDict()

    def of(self, memory: Kept, sessions: Sequence[Session]) -> "list[SessionOverview]":
        """Return an overview of each of these sessions."""
        space = memory.look().project().space
        unknown = [one for one in sessions if (space, one.name, one.finished_at) not in self._known]
        read = {one.session.name: one for one in memory.look().overviews(unknown)} if unknown else {}
        known = {one.name: self._known.get((space, one.name, one.finished_at)) for one in sessions} | read
        self._keep(space, read.values())
        return [one for one in known.values() if one is not None]

    def _keep(self, space: str, read: Iterable[SessionOverview]) -> None:
        for one in read:
            if one.session.finished_at is not None:
                self._known[space, one.session.name, one.session.finished_at] = one
        while len(self._known) > MOST_OVERVIEWS:
            self._known.popitem(last=False)


def by_local_day(counts: Counts, actions: frozenset[str]) -> Counter[date]:
    """How often these actions happened on each day, by the clock on the wall here."""
    found: Counter[date] = Counter()
    for (hour, _, action), number in counts.items():
        if action in actions:
            found[hour.astimezone().date()] += number
    return found


def within(days: dict[date, dict[str, int]], beginning: str, *, last: int, now: datetime) -> Counter[str]:
    """The sums of the last days, of the names that begin like this, by what follows."""
    since = now.astimezone(UTC).date() - timedelta(days=last)
    found: Counter[str] = Counter()
    for day, numbers in days.items():
        for name, number in numbers.items():
            if day > since and name.startswith(beginning):
                found[name.removeprefix(beginning)] += number
    return found
