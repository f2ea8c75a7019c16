"""What a SQLite file needs rarely: backups, restore, erasing for good, doctor. One door, imported when it is needed.

storage.py, which every process loads, comes here through `rare_verbs`. Rule: nothing that opens, reads or writes a
sound file imports this module or one that it imports.
"""

from datetime import datetime
from pathlib import Path

import apsw

from kept.ports import Scrubbed
from kept.storage.sqlite import backup, erase, restore, schema
from kept.storage.sqlite.health import examine, recovery, repair
from kept.storage.sqlite.schema import AllOrNothing

__all__ = ["backup", "erase", "examine", "recovery", "repair", "restore", "scrub"]


def scrub(connection: apsw.Connection, path: Path, home: Path | None, vfs: str | None, now: datetime) -> Scrubbed:
    """Clean a file and its backups of what was erased. Call it in this process's turn to write.

    `home`: the folder in which backups that a person asked for are cleaned as well.
    """
    uids = schema.pending_scrub(connection)
    with AllOrNothing(connection):
        erase.settle(connection)
    changed = backup.erase_from_backups(connection, path, uids, now)
    written = [copy for copy in erase.backups_written(connection) if home and _is_within(home, copy)]
    cleaned = backup.erase_from_written(written, uids, connection, now)
    left = erase.backups_elsewhere(connection, uids)
    return Scrubbed(
        backups=changed + sum(cleaned.values()),
        elsewhere=tuple(copy for copy in left if Path(copy) not in cleaned),
        is_done=erase.finish(connection, path, vfs),
    )


def _is_within(home: Path, copy: Path) -> bool:
    return copy.is_relative_to(home) and copy.is_file()
