"""The first write of a day makes a backup, in the background.

Rule: nobody waits for it but whoever closes a small store. A large one is asked to stop when the process ends;
the next process begins anew, and one that keeps running completes it.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path

import apsw

from kept.errors import Busy, KeptError
from kept.storage.sqlite import backup, reserve
from kept.storage.turns import Turns

SMALL_BYTES = 64 * 1024 * 1024  # copied and checked in about a second: closing waits for that
_ROOM = 3  # how many times its size must be free, so that a backup is not what fills the disk

log = logging.getLogger("kept")


class DailyBackups:
    """Makes the backup of the day for one file and drops the oldest beyond `keep`."""

    def __init__(self, path: Path, keep: int, make: Callable[[Path, Callable[[], bool]], None]) -> None:
        self._path = path
        self._keep = keep
        self._make = make
        self._day: date | None = None
        self._thread: threading.Thread | None = None
        self._is_stopped = threading.Event()

    @property
    def newest(self) -> str | None:
        """The day of the newest backup, such as 2026-03-01."""
        return next((path.stem for path in self._existing()), None)

    def after_write(self, at: datetime, created_at: datetime) -> None:
        """Begin today's backup unless it is there. A store that was made today holds nothing of yesterday yet."""
        if at.date() == self._day:
            return
        self._day = at.date()
        if self._target(at).exists() or created_at.date() >= at.date():
            return
        self._thread = threading.Thread(target=self._run, args=(self._target(at),), daemon=True, name="kept-backup")
        with suppress(RuntimeError):  # no more threads, or the interpreter is shutting down: tomorrow, then
            self._thread.start()

    def close(self) -> None:
        """Wait for a backup of a small store, stop that of a large one."""
        if self._thread is None or not self._thread.is_alive():
            return
        if self._path.stat().st_size > SMALL_BYTES:
            self._is_stopped.set()
        self._thread.join()

    def _run(self, target: Path) -> None:
        try:
            if reserve.free_bytes(self._path) < _ROOM * self._path.stat().st_size:
                log.warning("There is no room for a daily backup of %s.", self._path)
                return
            self._make_alone(target)
            for old in self._existing()[self._keep :]:
                old.unlink(missing_ok=True)
        except backup.Stopped:
            pass
        except (KeptError, OSError, apsw.Error) as error:
            log.warning("The daily backup of %s failed: %s", self._path, error)

    def _make_alone(self, target: Path) -> None:
        """Whoever comes second, in another process, leaves it to the first."""
        alone = Turns(backup.make_folder(self._path) / "daily.lock")
        try:
            alone.take(0)
        except Busy:
            return
        try:
            if not target.exists():
                self._make(target, self._is_stopped.is_set)
        finally:
            alone.end()
            alone.close()

    def _target(self, at: datetime) -> Path:
        return backup.backups_folder(self._path) / f"{at:%Y-%m-%d}.db"

    def _existing(self) -> list[Path]:
        return sorted(backup.backups_folder(self._path).glob("????-??-??.db"), reverse=True)
