"""How much happened when, and through whom: counted from the journal, once, and then only what is new."""

import threading
from collections import Counter
from datetime import UTC, date, datetime, timedelta

from kept.memory import Kept
from kept.storage.shared import by_day

Counts = Counter[tuple[datetime, str, str]]  # hour, actor, action → how often


class Activity:
    """The counted journals of the projects that were looked at."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, Counts]] = {}
        self._guard = threading.Lock()

    def of(self, memory: Kept) -> Counts:
        """Everything that the journal of the project has, counted by hour, actor and action."""
        storage = memory.context.spaces.project()
        if storage is None:
            return Counter()
        with self._guard:
            seen, counts = self._known.get(storage.space, (0, Counter()))
            with storage.reading() as reader:
                newest = reader.events(newest_first=True, limit=1)
                last = newest[0].seq if newest else 0
                if last < seen:  # an older state was restored
                    seen, counts = 0, Counter()
                for hour, actor, action, number in reader.activity(after=seen) if last > seen else ():
                    counts[hour, actor, action] += number
            self._known[storage.space] = (last, counts)
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


def noted_days(memory: Kept) -> dict[date, dict[str, int]]:
    """What was counted for each day beside the journal: recalled, refused and redacted."""
    storage = memory.context.spaces.project()
    if storage is None:
        return {}
    with storage.reading() as reader:
        counted = by_day(reader.counters())
    return {date.fromisoformat(day): numbers for day, numbers in counted.items()}


def within(days: dict[date, dict[str, int]], beginning: str, *, last: int, now: datetime) -> Counter[str]:
    """The sums of the last days, of the names that begin like this, by what follows."""
    since = now.astimezone(UTC).date() - timedelta(days=last)
    found: Counter[str] = Counter()
    for day, numbers in days.items():
        for name, number in numbers.items():
            if day > since and name.startswith(beginning):
                found[name.removeprefix(beginning)] += number
    return found
