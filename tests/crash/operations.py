"""Every operation of a storage, ready to be tried on a prepared file, with the same result each time."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from kept.model import Alias, Conflict, Memory, Message, replace
from kept.ports import Where
from kept.storage.sqlite import SqliteStorage
from kept.storage.sqlite.backup import verify
from tests.builders import START, memory, stamp
from tests.crash.checks import SPACE, looking_at, snapshot


class Bench:
    """A file, and the storage that has it open."""

    def __init__(self, path: Path, vfs: str) -> None:
        self.path = path
        self._vfs = vfs
        self._storage: SqliteStorage | None = None

    @property
    def storage(self) -> SqliteStorage:
        if self._storage is None:
            self._storage = SqliteStorage(
                self.path,
                SPACE,
                vfs=self._vfs,
                write_wait_s=1,
                salt=lambda n_bytes: "00" * n_bytes,
                now=lambda: START,
            )
        return self._storage

    def close(self) -> None:
        storage, self._storage = self.storage, None
        storage.close()

    def one(self, uid: str) -> Memory:
        with self.storage.reading() as reader:
            return reader.select(Where(uid=uid, shelf="any", scope=None))[0]


def add(bench: Bench) -> None:
    with bench.storage.writing(stamp("add")) as tx:
        tx.add(memory("the new one, about failing disks", uid="new"), "remember")


def add_many(bench: Bench) -> None:
    with bench.storage.writing(stamp("many")) as tx:
        first = tx.add(memory("first of two that belong together", uid="new-1"), "remember")
        second = tx.add(memory("second of two that belong together", uid="new-2"), "remember")
        tx.put(replace(first, status="archived", reason="superseded", archived_at=START), "archive")
        tx.add(Conflict(left=first.uid, right=second.uid, type="superseded", detected_at=START), "conflict")


def put(bench: Bench) -> None:
    with bench.storage.writing(stamp("put")) as tx:
        tx.put(replace(bench.one("old-1"), content="it was revised", feedback=3), "revise")


def remove(bench: Bench) -> None:
    with bench.storage.writing(stamp("remove")) as tx:
        tx.remove(tx.all(Alias)[0], "alias")


def say(bench: Bench) -> None:
    with bench.storage.writing(stamp("say")) as tx:
        said = Message(id="said", role="user", session="talk", content="what somebody said about failing disks")
        tx.append([said, replace(said, role="assistant", content="and what was answered")])


def erase(bench: Bench) -> None:
    with bench.storage.writing(stamp("erase"), urgent=True) as tx:
        tx.erase(tx.select(Where(uid="old-2"))[0])


def scrub(bench: Bench) -> None:
    bench.storage.scrub()


def note_use(bench: Bench) -> None:
    with bench.storage.bookkeeping() as notes:
        assert notes is not None
        notes.count_uses([1, 3], START)
        notes.link([1, 3, 4], START)


def read(bench: Bench) -> None:
    with bench.storage.reading() as reader:
        assert reader.count() > 0


def back_up(bench: Bench) -> None:
    target = bench.path.with_name("copy.db")
    try:
        bench.storage.back_up(target)
    finally:
        assert not list(target.parent.glob("*.part"))
        if target.exists():
            verify(target)


def back_up_and_add(bench: Bench) -> None:
    back_up(bench)
    add(bench)


def restore(bench: Bench) -> None:
    for replaced in bench.path.parent.glob("kept.db.backups/replaced-*"):
        replaced.unlink()  # of the try before: the clock stands still, and so does the name
    bench.storage.restore_from(bench.path.with_name("copy.db"), overwrite_newer=True)


def open_again(bench: Bench) -> None:
    """Opens the file: makes a new one, or recovers a WAL and finishes an erasure."""
    assert bench.storage


def close(bench: Bench) -> None:
    bench.close()


class Operation(Struct):
    """Something to try, on a file that was prepared for it."""

    act: Callable[[Bench], None]
    template: Literal["none", "closed", "hot"] = "closed"  # hot: with a WAL, as after a kill, and a pending erasure
    prepare: Callable[[Bench], object] = read
    is_one_transaction: bool = True
    may_be_dropped: bool = False  # when the disk is full

    @property
    def is_open(self) -> bool:
        """Whether the file is open before and, unless it is being closed, after the operation."""
        return self.act is not open_again


OPERATIONS: dict[str, Operation] = {
    "add": Operation(add),
    "add many": Operation(add_many),
    "put": Operation(put),
    "remove": Operation(remove),
    "say": Operation(say),
    "erase": Operation(erase),
    "read": Operation(read),
    "note use": Operation(note_use, is_one_transaction=False, may_be_dropped=True),
    "scrub": Operation(scrub, prepare=erase, is_one_transaction=False),
    "back up": Operation(back_up, prepare=add, is_one_transaction=False),
    "restore": Operation(restore, prepare=back_up_and_add),
    "close": Operation(close, prepare=add, is_one_transaction=False),
    "make": Operation(open_again, "none", prepare=lambda bench: None, is_one_transaction=False),
    "open": Operation(open_again, "hot", prepare=lambda bench: None, is_one_transaction=False),
}


def make_templates(folder: Path) -> None:
    """The files from which the trials start, in `folder`/none, /closed and /hot."""
    (folder / "none").mkdir()
    (folder / "closed").mkdir()
    storage = SqliteStorage(folder / "closed" / "kept.db", SPACE)
    with storage.writing(stamp("start")) as tx:
        for number in range(1, 6):
            content = f"memory {number} of those that were there before, about auth and retries " * number
            tx.add(memory(content, uid=f"old-{number}"), "remember")
        tx.add(Alias(word="auth", expands_to=("login",)), "alias")
        tx.add(Conflict(left="old-1", right="old-2", type="ambiguous", detected_at=START), "conflict")
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.link([1, 2, 3], START)
    storage.close()
    copy_files(folder / "closed", folder / "open")
    storage = SqliteStorage(folder / "open" / "kept.db", SPACE)
    with storage.writing(stamp("late")) as tx:
        tx.add(memory("one that is in the WAL only", uid="late"), "remember")
        tx.erase(tx.select(Where(uid="old-3"))[0])
    copy_files(folder / "open", folder / "hot")
    storage.close()


def copy_files(source: Path, target: Path) -> None:
    """What a kill would leave of a store at this moment: database, WAL, rollback journal, record of a sweep."""
    target.mkdir()
    for suffix in ("", "-wal", "-journal", "-sweep"):
        if (part := source / f"kept.db{suffix}").exists():
            shutil.copy(part, target)


def state_of(path: Path) -> str:
    with looking_at(path) as connection:
        return snapshot(connection)
