"""Everything fails once: each statement, each write, each sync of each operation (B21, C30).

    python -m tests.crash.faults [--stride 1]

For every operation and every k, the k-th SQL statement fails, or is interrupted by Ctrl-C; the k-th write to the disk
fails, or finds the disk full and from then on it stays full; the k-th sync or truncation fails. Afterwards: if the call
returned, its change is there; if it raised, nothing of it is. The error is one of Kept's, the turn is free, the
same storage object goes on working, and the file is whole, also for somebody who opens it after a kill at that moment.

Two answers that look alike are told apart. A sync that fails leaves a complete transaction in the WAL: it is not there for
anybody now, but whoever opens the file after a crash may find it, whole (`there after a crash`). And what an operation
does in several transactions (making a file, noting use, scrubbing, backing up) may stop between two of them.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import apsw
from msgspec import Struct

from kept.errors import Busy, KeptError
from kept.model import Alias, Conflict, Memory, replace
from kept.ports import Where
from kept.storage.sqlite import SqliteStorage
from kept.storage.sqlite.backup import verify
from kept.storage.turns import Turns
from tests.builders import START, memory, stamp
from tests.crash.checks import SPACE, faults_of, looking_at, snapshot
from tests.crash.simulated_disk import Happened, Refusal, TappedDisk, on_connect

Outcome = str
_CREATED = datetime(2026, 3, 1, tzinfo=UTC)


# Operations -----------------------------------------------------------------------------------------


def _one(storage: SqliteStorage, uid: str) -> Memory:
    with storage.reading() as reader:
        return reader.select(Where(uid=uid, shelf="any", scope=None))[0]


def add(storage: SqliteStorage) -> None:
    with storage.writing(stamp("add")) as tx:
        tx.add(memory("the new one, about failing disks", uid="new"), "remember")


def add_many(storage: SqliteStorage) -> None:
    with storage.writing(stamp("many")) as tx:
        first = tx.add(memory("first of two that belong together", uid="new-1"), "remember")
        second = tx.add(memory("second of two that belong together", uid="new-2"), "remember")
        tx.put(replace(first, status="archived", reason="superseded", archived_at=START), "archive")
        tx.add(Conflict(left=first.uid, right=second.uid, type="superseded", detected_at=START), "conflict")


def put(storage: SqliteStorage) -> None:
    with storage.writing(stamp("put")) as tx:
        tx.put(replace(_one(storage, "old-1"), content="it was revised", feedback=3), "revise")


def remove(storage: SqliteStorage) -> None:
    with storage.writing(stamp("remove")) as tx:
        tx.remove(tx.all(Alias)[0], "alias")


def erase(storage: SqliteStorage) -> None:
    with storage.writing(stamp("erase"), urgent=True) as tx:
        tx.erase(_one(storage, "old-2"))


def scrub(storage: SqliteStorage) -> None:
    storage.scrub()


def note_use(storage: SqliteStorage) -> None:
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.count_uses([1, 2], START)
        notes.link([1, 2, 3], START)


def back_up(storage: SqliteStorage) -> None:
    storage.back_up(storage.path.with_name("copy.db"))


def reopen(storage: SqliteStorage) -> None:
    storage.close()
    storage.__init__(storage.path, SPACE, **_options(storage._vfs))  # type: ignore[misc]  # stays the same object


OPERATIONS: dict[str, Callable[[SqliteStorage], None]] = {
    operation.__name__: operation for operation in (add, add_many, put, remove, erase, scrub, note_use, back_up, reopen)
}
# What these do is more than one transaction, or none: they may raise although part of their work is there for good.
_IN_STEPS = {"scrub", "note_use", "back_up", "reopen"}
