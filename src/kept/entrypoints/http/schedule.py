"""Upkeep by the clock while the server runs (A14): setting `prune_schedule`, a line of cron.

Several servers, and commands beside them, may want to do it at once: the lease of upkeep lets one at a time. Rule: a
project whose upkeep fails is logged by its name and tried again at the next time; the server goes on.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

from cronsim import CronSim

from kept.entrypoints.http.doors import Doors
from kept.entrypoints.http.keys import Key
from kept.errors import KeptError
from kept.settings import Settings

log = logging.getLogger("kept.http")
LONGEST_SLEEP_S = 60.0  # clocks are set, machines sleep: look again now and then


class Schedule:
    """When the next upkeep is due, and doing it."""

    def __init__(self, doors: Doors, settings: Settings, now: Callable[[], datetime]) -> None:
        self._doors = doors
        self._line = settings.prune_schedule
        self._now = now
        self.next_at = self._following()
        self.last_at: datetime | None = None

    async def run(self) -> None:
        """Wait and work until the task is cancelled."""
        while True:
            left = (self.next_at - self._now()).total_seconds()
            if left <= 0:
                await asyncio.to_thread(self.do_it)
            else:
                await asyncio.sleep(min(left, LONGEST_SLEEP_S))

    def do_it(self) -> list[str]:
        """Do the upkeep of every project now. Returns the names of those that were kept up."""
        self.last_at, self.next_at = self._now(), self._following()
        owner, done = Key(name="upkeep"), []
        for project in self._doors.projects(owner):
            try:
                self._doors.memory(project.id, owner).upkeep()
                done.append(project.name)
            except KeptError as error:
                log.warning("The upkeep of %s failed: %s", project.id, type(error).__name__)
        return done

    def _following(self) -> datetime:
        following: datetime = next(CronSim(self._line, self._now()))
        return following
