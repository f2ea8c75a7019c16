"""How much happened when, and through whom: counted from the journal, once, and then only what is new."""

import threading
from collections import Counter
from datetime import UTC, date, datetime, timedelta

from kept.memory import Kept

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

    def actors(self, memory: Kept) -> list[str]:
        """Everybody who ever changed something, the busiest first."""
        found: Counter[str] = Counter()
        for (_, actor, _), number in self.of(memory).items():
            found[actor] += number
        return [actor for actor, _ in found.most_common(50)]


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
