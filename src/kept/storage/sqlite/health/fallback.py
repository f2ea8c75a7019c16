"""The way back from a damaged file: the newest good backup, what is newer than it, and the mirrors beside the file.

Asked for when a problem cannot be repaired in place. Rule: a backup is named only if it was read and found
whole just now, and the loss is counted as far as the damaged file still tells.
"""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
from msgspec import Struct

from kept.errors import KeptError
from kept.storage.checkup import Finding, counted
from kept.storage.sqlite import acknowledged, backup, encoding, erase
from kept.storage.sqlite.health.check import look

# What the tables of a file count that never goes back: the last event, and the last ids given to memories and messages.
_COUNTERS = """
    select
      (select max(seq) from events),
      (select seq from sqlite_sequence where name = 'memories'),
      (select seq from sqlite_sequence where name = 'messages')"""
_MIRRORS = ("MEMORY.md", "tasks.json", "items.json")
_SESSIONS = "sessions"


class Progress(Struct, frozen=True, order=True):
    """How far a file has come: the numbers of its last event, memory and message."""

    events: int
    memories: int
    messages: int


class FoundBackup(Struct, frozen=True):
    """A backup that can be read, how far it has come, and when its last event happened."""

    path: Path
    progress: Progress
    last_change: datetime | None


def way_back(path: Path) -> list[Finding]:
    """Say which backup to restore, what that loses, and which mirrors may have more."""
    damaged = _opened(path)
    try:
        return [*_backup_to_restore(path, damaged), *_mirrors(path)]
    finally:
        if damaged is not None:
            damaged.close()


def _opened(path: Path) -> apsw.Connection | None:
    try:
        return look(path)
    except apsw.Error:
        return None


def _backup_to_restore(path: Path, damaged: apsw.Connection | None) -> Iterator[Finding]:
    found = next((one for one in _newest_first(path, damaged) if _is_whole(one.path)), None)
    if found is None:
        yield Finding("note", "backups", "There is no good backup to go back to.", "Keep the damaged file.")
        return
    since = "It is empty." if found.last_change is None else f"Its last change is of {_minute(found.last_change)}."
    message = f"The newest good backup is {found.path}. {since} {_loss(path, damaged, found.progress)}"
    yield Finding(
        "note", "backups", message, f"`kept store restore {found.path}` restores it and keeps the damaged file."
    )


def _newest_first(path: Path, damaged: apsw.Connection | None) -> list[FoundBackup]:
    """The readable backups beside the file, and those that a person asked for, by the moment of their last event."""
    places = backup.backups_of(path)
    if damaged is not None:
        with suppress(apsw.Error, KeptError, UnicodeDecodeError):
            places += [place for place in erase.backups_written(damaged) if place.is_file()]
    found = [one for place in places if (one := _described(place)) is not None]
    return sorted(found, key=lambda one: (one.last_change is not None, one.last_change, one.progress), reverse=True)


def _described(place: Path) -> FoundBackup | None:
    try:
        with backup.opened(place, apsw.SQLITE_OPEN_READONLY) as copy:
            at: Any = copy.execute("select at from events order by seq desc limit 1").get
            return FoundBackup(place, _progress(copy), encoding.moment(at))
    except (apsw.Error, UnicodeDecodeError, OSError):
        return None


def _is_whole(place: Path) -> bool:
    try:
        backup.verify(place)
    except (KeptError, OSError):
        return False
    return True


def _progress(connection: apsw.Connection) -> Progress:
    return Progress(*(int(number or 0) for number in connection.execute(_COUNTERS).fetchall()[0]))


def _loss(path: Path, damaged: apsw.Connection | None, kept: Progress) -> str:
    """Count what is newer than the backup, in a sentence."""
    noted = acknowledged.noted(path)
    known = Progress(noted.event, 0, noted.message)
    if damaged is not None:
        with suppress(apsw.Error, UnicodeDecodeError, ValueError):
            found = _progress(damaged)
            known = Progress(max(found.events, known.events), found.memories, max(found.messages, known.messages))
    if known == Progress(0, 0, 0):
        return "How much is newer cannot be told."
    newer = {
        "event": known.events - kept.events,
        "new memory": known.memories - kept.memories,
        "message": known.messages - kept.messages,
    }
    told = [counted(number, noun) for noun, number in newer.items() if number > 0]
    return f"Newer, and lost with a restore: {', '.join(told)}." if told else "Nothing is newer."


def _mirrors(path: Path) -> Iterator[Finding]:
    """Name the files that show what the store held, with the moment of their last change."""
    if path.name != "kept.db":
        return  # a portable file has none
    found = [f"{name} (of {_changed(file)})" for name in _MIRRORS if (file := path.with_name(name)).is_file()]
    if talks := list(path.with_name(_SESSIONS).glob("*.jsonl")):
        found.append(f"{_SESSIONS}/ ({counted(len(talks), 'session')}, the newest of {max(map(_changed, talks))})")
    if found:
        message = f"Beside it: {', '.join(found)}. They may show what is newer than the backup."
        yield Finding("note", "mirrors", message, "Copy them away before you restore: they follow the restored store.")


def _changed(file: Path) -> str:
    return _minute(datetime.fromtimestamp(file.stat().st_mtime, UTC))


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
