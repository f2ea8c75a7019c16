"""Activity of a project by hour and actor: counted from the journal once, and then only new events."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta

from kept.memory import Kept
from kept.memory.look import EventCounts, SessionOverview
from kept.model import REDACT, SessionRecord

MOST_OVERVIEWS = 5_000
ERASING = frozenset(("erase", REDACT))

Counts = Counter[tuple[datetime, str, str]]  # hour, actor, action → how often


class Counted:
    """A journal up to an event, counted by hour, by day and by actor, by the clock on the wall here."""

    def __init__(self) -> None:
        self.last_event = 0
        self.by_hour: Counts = Counter()
        self.by_day: Counter[tuple[date, str]] = Counter()
        self.by_actor: Counter[str] = Counter()

    def add(self, new: EventCounts) -> None:
        self.last_event = new.last_event
        for hour, actor, action, number in new.by_hour:
            here = hour.astimezone()
            self.by_hour[here, actor, action] += number
            self.by_day[here.date(), action] += number
            self.by_actor[actor] += number

    def days_of(self, actions: frozenset[str]) -> Counter[date]:
        """Return how often these actions happened on each day."""
        found: Counter[date] = Counter()
        for (day, action), number in self.by_day.items():
            if action in actions:
                found[day] += number
        return found


class Activity:
    """The counted journals of the projects that were looked at."""

    def __init__(self) -> None:
        self._known: dict[str, Counted] = {}
        self._guard = threading.Lock()

    def counted(self, memory: Kept) -> Counted:
        """Return the counted journal of the project, as it is now."""
        look = memory.look()
        with self._guard:
            known = self._known.get(look.space) or Counted()
            new = look.event_counts(after=known.last_event)
            if new.last_event < known.last_event:  # an older state was restored
                known, new = Counted(), look.event_counts()
            known.add(new)
            if look.space:
                self._known[look.space] = known
            return known

    def of(self, memory: Kept) -> Counts:
        """Count everything in the journal of the project by hour, actor and action."""
        return self.counted(memory).by_hour

    def events_before(self, memory: Kept, at: datetime) -> int:
        """Count the events before an hour. Events stand in their order and have no gaps, so it is a number of one."""
        return sum(number for (hour, _, _), number in self.of(memory).items() if hour < at)

    def newest_of(self, memory: Kept, takes: Callable[[str, str], bool], end: int) -> int:
        """Return the last event up to `end` of an hour with a change, by actor and action, that is taken; or 0."""
        counts = self.of(memory)
        by_hour: Counter[datetime] = Counter()
        for (hour, _, _), number in counts.items():
            by_hour[hour] += number
        wanted = {(actor, action) for actor, action in {one[1:] for one in counts} if takes(actor, action)}
        taken = {one[0] for one in counts if one[1:] in wanted}
        last = found = 0
        for hour in sorted(by_hour):
            first, last = last + 1, last + by_hour[hour]
            if hour in taken and first <= end:
                found = min(end, last)
        return found

    def actors(self, memory: Kept) -> list[str]:
        """Everybody who ever changed something, the busiest first."""
        return [actor for actor, _ in self.counted(memory).by_actor.most_common(50)]


class Overviews:
    """Overviews of sessions. That of a finished one is read once: it changes only when the session goes on, and when
    something is erased.
    """

    def __init__(self, activity: Activity) -> None:
        self._activity = activity
        self._erasures: dict[str, int] = {}  # how many there were in each space when its overviews were read
        self._known: OrderedDict[tuple[str, str, datetime | None], SessionOverview] = OrderedDict()

    def of(self, memory: Kept, sessions: Sequence[SessionRecord]) -> "list[SessionOverview]":
        """Return an overview of each of these sessions."""
        space = memory.look().project().space
        self._drop_erased(memory, space)
        unknown = [one for one in sessions if (space, one.name, one.finished_at) not in self._known]
        read = {one.session.name: one for one in memory.look().overviews(unknown)} if unknown else {}
        known = {one.name: self._known.get((space, one.name, one.finished_at)) for one in sessions} | read
        self._keep(space, read.values())
        return [one for one in known.values() if one is not None]

    def _drop_erased(self, memory: Kept, space: str) -> None:
        """Drop the overviews of a space after an erasure: the first words of a conversation may be gone."""
        erasures = self._activity.counted(memory).days_of(ERASING).total()
        if self._erasures.get(space) != erasures:
            self._erasures[space] = erasures
            for one in [*self._known]:
                if one[0] == space:
                    self._known.pop(one, None)

    def _keep(self, space: str, read: Iterable[SessionOverview]) -> None:
        for one in read:
            if one.session.finished_at is not None:
                self._known[space, one.session.name, one.session.finished_at] = one
        while len(self._known) > MOST_OVERVIEWS:
            self._known.popitem(last=False)


def within(days: dict[date, dict[str, int]], beginning: str, *, last: int, now: datetime) -> Counter[str]:
    """The sums of the last days, of the names that begin like this, by what follows."""
    since = now.astimezone(UTC).date() - timedelta(days=last)
    found: Counter[str] = Counter()
    for day, numbers in days.items():
        for name, number in numbers.items():
            if day > since and name.startswith(beginning):
                found[name.removeprefix(beginning)] += number
    return found
