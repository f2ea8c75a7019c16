"""Open a space by its location and name. The engine is chosen here.

Code above this layer calls these functions or holds a `kept.ports.Storage`; it never imports an engine.
Rule: an engine is imported when it is needed and not before, because SQLite and its checks are half of all modules.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from os import PathLike, fspath
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from kept.errors import InvalidInput, NotAllowed, NotFound
from kept.ports import FileStorage, RestoreReport, Scrubbed, Scrubbing, Storage
from kept.storage.shared import WRITE_WAIT_S, Contents

if TYPE_CHECKING:
    from kept.storage.checkup import Finding as Finding

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
    home: Path | None = None,
    page_bytes: int | None = None,
) -> Storage:
    """Open a space at a location: `:memory:`, a postgresql:// URL, a file ending in `.json`, or a file for SQLite.

    `space` None: whichever space the file holds, or a new one. `daily_backups`: how many daily backups to keep. The
    first write of a day makes one, if the engine supports it. `home`: where an erasure also cleans the backups that a
    person asked for. `page_bytes`: of a new SQLite file; small pages make a small file.
    """
    place = fspath(location)
    if place == IN_MEMORY:
        return _portable(None, space, write_wait_s)
    if is_database(place):
        return open_database(place, space or PORTABLE_SPACE, write_wait_s=write_wait_s, now=now)
    if not place or "\0" in place or place != place.encode("utf-8", "replace").decode():
        raise InvalidInput(f"{place!r} is not a file name.", hint="Give a path such as memory.db.")
    path = Path(place)
    if _is_json(path):
        return _portable(path, space, write_wait_s)
    options = {"write_wait_s": write_wait_s, "now": now, "daily_backups": daily_backups, "home": home}
    opened: Storage = _sqlite().SqliteStorage(path, space, page_bytes=page_bytes, **options)
    return opened


def is_database(location: str | PathLike[str]) -> bool:
    """Whether the location is the URL of a database server, and not a file."""
    return fspath(location).startswith(("postgresql://", "postgres://"))


def open_database(
    url: str,
    space: str,
    *,
    write_wait_s: float,
    now: Callable[[], datetime] = utc_now,
    must_exist: bool = False,
    is_known: bool = False,
) -> Storage:
    """Open a space in a PostgreSQL database. `must_exist`: raise NotFound instead of creating it.

    `is_known`: it was there before; the first question finds out whether it still is, and this role may be there.
    """
    options = {"write_wait_s": write_wait_s, "now": now, "must_exist": must_exist, "is_known": is_known}
    opened: Storage = postgres_engine().PostgresStorage(url, space, **options)
    return opened


def postgres_engine() -> ModuleType:
    """The engine for PostgreSQL. Raises StorageError, which says what to install, if its driver is not there."""
    import kept.storage.postgres as engine  # needs psycopg, which is optional

    return engine


def open_existing(
    path: Path,
    space: str,
    *,
    write_wait_s: float,
    now: Callable[[], datetime],
    daily_backups: int,
    home: Path | None = None,
) -> Storage | None:
    """The store in a file of the home; None if there is none yet, or one whose creation was cut off (a full disk).

    Raises Corrupt for a file that was a store and is empty now.
    """
    if not path.exists():
        return None
    options = {"write_wait_s": write_wait_s, "now": now, "daily_backups": daily_backups, "home": home}
    try:
        opened: Storage = _sqlite().SqliteStorage(path, space, must_exist=True, **options)
    except NotFound:
        return None
    return opened


def open_contents(space: str, contents: Contents) -> Storage:
    """Return a storage in memory that holds this, with every text prepared for a search."""
    held: Storage = _small_engines()[0].holding(space, contents)
    return held


def as_file(storage: Storage) -> FileStorage:
    """Return the storage typed as one that can be backed up and restored. Raises NotAllowed when it has no file."""
    if isinstance(storage, FileStorage):
        return storage
    raise NotAllowed(
        f"{storage.space} is not stored in a file, so it has no backups.",
        hint="Open a file instead, or export the memories.",
    )


def scrub(storage: Storage) -> Scrubbed:
    """Finish an erasure, if the storage may still hold the erased text somewhere."""
    return storage.scrub() if isinstance(storage, Scrubbing) else Scrubbed()


def space_of(backup: Path) -> str:
    """Return the space that a backup holds. Raises NotFound, Corrupt or SchemaTooNew when it cannot be restored."""
    if _is_json(backup):
        return PORTABLE_SPACE  # only portable files are kept as JSON
    space: str = _sqlite().rare_verbs().restore.space_of(backup)
    return space


def replace_damaged(path: Path, source: Path, *, space: str, wait_s: float, now: datetime) -> RestoreReport:
    """Put a backup in the place of a file that can no longer be opened. The damaged file is kept beside it."""
    rare = _sqlite().rare_verbs()
    restored: RestoreReport = rare.restore.replace_damaged(path, source, space=space, wait_s=wait_s, now=now)
    return restored


def examine(path: Path, *, now: datetime, deep: bool = False) -> "list[Finding]":
    """Check a file and report what is wrong, what is in order, and the way back from damage. Changes nothing.

    `deep`: compare every memory, not only a sample, with its words and its whole history.
    """
    if _is_json(path):
        of_json: list[Finding] = _small_engines()[1].examine(path)
        return of_json
    findings: list[Finding] = _sqlite().rare_verbs().examine(path, now=now, deep=deep)
    return findings


def repair(path: Path, *, now: datetime) -> "list[Finding]":
    """Repair a file in place as far as possible, and report the repairs, the losses and the need for a backup.

    A JSON file is written whole with its next change, so it needs no repair.
    """
    if _is_json(path):
        return []
    findings: list[Finding] = _sqlite().rare_verbs().repair(path, now=now)
    return findings


def _portable(path: Path | None, space: str | None, write_wait_s: float) -> Storage:
    """Open a space in a JSON file; without a path in memory alone."""
    inmemory, jsonfile = _small_engines()
    opened: Storage
    if path is None:
        opened = inmemory.InMemoryStorage(space or PORTABLE_SPACE, write_wait_s=write_wait_s)
    else:
        opened = jsonfile.JsonFileStorage(path, space or PORTABLE_SPACE, write_wait_s=write_wait_s)
    return opened


def _small_engines() -> tuple[ModuleType, ModuleType]:
    from kept.storage import inmemory, jsonfile  # two engines, which no other one needs

    return inmemory, jsonfile


def _sqlite() -> ModuleType:
    from kept.storage import sqlite  # half of all modules, which no other engine needs

    return sqlite


def _is_json(path: Path) -> bool:
    return path.suffix == ".json"
