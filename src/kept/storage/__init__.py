"""The door to every storage: a space is opened by its location and its name, and the engine is chosen here.

Everybody above comes in through these functions or holds a `kept.ports.Storage`; nobody else imports an engine.
Rule: an engine is imported when it is needed and not before, because SQLite and its checks are half of all modules.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from kept.errors import InvalidInput, NotAllowed
from kept.ports import FileStorage, Restored, Scrubbed, Storage
from kept.storage.shared import WRITE_WAIT_S

if TYPE_CHECKING:
    from kept.storage.sqlite.health import Finding as Finding

IN_MEMORY = ":memory:"
PORTABLE_SPACE = "project/portable"  # of a store in memory and of a JSON file that belong to no project


def utc_now() -> datetime:
    return datetime.now(UTC)


def open_space(
    location: str | PathLike[str],
    space: str | None = None,
    *,
    write_wait_s: float = WRITE_WAIT_S,
    now: Callable[[], datetime] = utc_now,
    daily_backups: int = 0,
) -> Storage:
    """The storage of a space at a location: `:memory:`, a file ending in `.json`, or any other file for SQLite.

    `space` None: whichever space the file holds, or a new one. `daily_backups`: how many to keep of those that the
    first write of a day makes, where the engine makes any.
    """
    place = fspath(location)
    if place == IN_MEMORY:
        from kept.storage.inmemory import InMemoryStorage

        return InMemoryStorage(space or PORTABLE_SPACE, write_wait_s=write_wait_s)
    if place.startswith(("postgresql://", "postgres://")):
        raise InvalidInput("PostgreSQL is not supported yet.", hint="Use a file, or the home.")
    if not place or "\0" in place:
        raise InvalidInput(f"{place!r} is not a file name.", hint="Give a path such as memory.db.")
    path = Path(place)
    if _is_json(path):
        from kept.storage.jsonfile import JsonFileStorage

        return JsonFileStorage(path, space or PORTABLE_SPACE, write_wait_s=write_wait_s)
    from kept.storage.sqlite import SqliteStorage

    return SqliteStorage(path, space, write_wait_s=write_wait_s, now=now, daily_backups=daily_backups)


def as_file(storage: Storage) -> FileStorage:
    """The same storage, as one that can be backed up and restored. Raises NotAllowed when it has no file."""
    if isinstance(storage, FileStorage):
        return storage
    raise NotAllowed(
        f"{storage.space} is not stored in a file, so it has no backups.",
        hint="Open a file instead, or export the memories.",
    )


def scrub(storage: Storage) -> Scrubbed:
    """Finish what `erase` began, where the storage has files that may still hold it."""
    return storage.scrub() if isinstance(storage, FileStorage) else Scrubbed()


def space_of(backup: Path) -> str:
    """Which space a file is a backup of. Raises NotFound, Corrupt or SchemaTooNew when it cannot be restored."""
    if _is_json(backup):
        return PORTABLE_SPACE  # only portable files are kept as JSON
    from kept.storage.sqlite import restore

    return restore.space_of(backup)


def replace_damaged(path: Path, source: Path, *, space: str, wait_s: float, now: datetime) -> Restored:
    """Put a backup in the place of a file that can no longer be opened. The damaged file is kept beside it."""
    from kept.storage.sqlite import restore

    return restore.replace_damaged(path, source, space=space, wait_s=wait_s, now=now)


def examine(path: Path, *, now: datetime, deep: bool = False) -> "list[Finding]":
    """What is wrong with a file, and what is in order. Changes nothing.

    `deep`: compare every memory, not only a sample, with its words and its whole history.
    """
    from kept.storage.sqlite import health

    return health.examine(path, now=now, deep=deep)


def repair(path: Path, *, now: datetime) -> "list[Finding]":
    """Repair what can be repaired, keep the damaged file beside it, and say what was lost."""
    from kept.storage.sqlite import health

    return health.repair(path, now=now)


def _is_json(path: Path) -> bool:
    return path.suffix == ".json"
