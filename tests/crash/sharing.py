"""Scenes of sharing one file: each is a promise about writers that are in each other's way (B21).

A writer that is stopped or killed inside its transaction, forks, a deleted lock file, a waiter that gave up, a file
that many make at once. `python -m tests.crash.storm --only SCENE` plays one.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from kept.errors import Busy, StorageError
from kept.model import Memory
from kept.ports import ANYWHERE
from kept.storage.lock import Turns
from kept.storage.sqlite import SqliteStorage
from tests.builders import memory, stamp
from tests.crash.checks import SPACE, faults_of
from tests.crash.processes import Child, any_runs

_PATIENCE_S = 1.0  # how long writers wait for a turn in the scenes where somebody will not let them have one
_SLOW_MACHINE_S = 10.0


def add(storage: SqliteStorage, name: str) -> Memory:
    with storage.writing(stamp(f"group of {name}")) as tx:
        return tx.add(memory(f"{name} says that writers take turns", uid=f"uid of {name}"), "remember")


def names_in(path: Path) -> list[str]:
    """Who has written, in order."""
    with opened(path) as storage, storage.reading() as reader:
        return [found.content.split()[0] for found in reader.select(ANYWHERE, limit=10**6, oldest_first=True)]


@contextmanager
def opened(path: Path, *, write_wait_s: float = 30.0) -> Iterator[SqliteStorage]:
    storage = SqliteStorage(path, SPACE, write_wait_s=write_wait_s)
    try:
        yield storage
    finally:
        storage.close()


def _hold_the_turn(pipe: Connection, path: Path) -> None:
    """Begin to write, say so, and go on when told."""
    with opened(path) as storage:
        with storage.writing(stamp()) as tx:
            tx.add(memory("holder holds its turn"), "remember")
            pipe.send("inside")
            pipe.recv()
        pipe.send("done")


def _refused_for(path: Path, holder: int) -> None:
    """A write is refused after the time that was agreed, naming the process that is in the way."""
    with opened(path, write_wait_s=_PATIENCE_S) as storage:
        started = time.monotonic()
        with pytest.raises(Busy, match=f"process {holder}"):
            add(storage, "impatient")
        took_s = time.monotonic() - started
        assert _PATIENCE_S <= took_s < _PATIENCE_S + _SLOW_MACHINE_S, f"{took_s:.1f} s"


def a_stopped_writer_stops_nobody_for_ever(folder: Path) -> None:
    """SIGSTOP inside a transaction: others get Busy with its pid in time, readers notice nothing, SIGCONT heals it."""
    path = folder / "stopped.db"
    with opened(path) as before:
        add(before, "before")
    holder = Child(_hold_the_turn, path)
    assert holder.pipe.recv() == "inside"
    holder.stop()
    refused = [Child(lambda pipe: _refused_for(path, holder.pid)) for _ in range(3)]
    looks = 0
    with opened(path) as reader:
        while any_runs(refused):
            with reader.reading() as tx:
                assert tx.count() == 1
            with reader.bookkeeping() as notes:
                assert notes is None  # skipped, not waited for
            looks += 1
    assert looks > 1
    assert [child.wait() for child in refused] == [0, 0, 0]
    holder.signal(signal.SIGCONT)
    holder.pipe.send("go on")
    assert holder.pipe.recv() == "done"
    assert holder.wait() == 0
    with opened(path) as after:
        add(after, "after")
    assert names_in(path) == ["before", "holder", "after"]
    assert faults_of(path) == []


def a_stopped_waiter_stops_nobody_for_long(folder: Path) -> None:
    """SIGSTOP while waiting, as the first in line: the others go past it; later it has its turn like everybody."""
    path = folder / "stopped-in-line.db"
    with opened(path) as storage:
        holder = Child(_hold_the_turn, path)
        assert holder.pipe.recv() == "inside"

        def wait_in_line(pipe: Connection) -> None:
            with opened(path) as own:
                pipe.send("waiting")
                add(own, "stopped")

        waiter = Child(wait_in_line)
        assert waiter.pipe.recv() == "waiting"
        while not _is_waiting(waiter.pid):
            time.sleep(0.001)
        waiter.stop()
        holder.pipe.send("go on")
        assert holder.wait() == 0
        started = time.monotonic()
        add(storage, "other")
        assert time.monotonic() - started < _SLOW_MACHINE_S
    waiter.signal(signal.SIGCONT)
    assert waiter.wait() == 0
    assert sorted(names_in(path)) == ["holder", "other", "stopped"]


def _is_waiting(pid: int) -> bool:
    """Whether a process has a thread of its own that waits for its turn."""
    tasks = Path(f"/proc/{pid}/task")
    return not tasks.is_dir() or len(list(tasks.iterdir())) > 1


def a_killed_writer_frees_its_turn(folder: Path) -> None:
    """kill -9 inside a transaction: the next writer waits for nothing, even if a child of the dead one lives on."""
    path = folder / "killed.db"

    def hold_with_a_child(pipe: Connection) -> None:
        with opened(path) as storage:
            add(storage, "before")
            heir = Child(lambda own: pipe.recv())
            with storage.writing(stamp()) as tx:
                tx.add(memory("holder never finishes"), "remember")
                pipe.send(heir.pid)
                heir.wait()

    holder = Child(hold_with_a_child)
    heir = holder.pipe.recv()
    holder.signal(signal.SIGKILL)
    holder.wait()
    try:
        with opened(path, write_wait_s=_PATIENCE_S) as storage:
            add(storage, "after")
    finally:
        os.kill(heir, signal.SIGKILL)
    assert names_in(path) == ["before", "after"]
    assert faults_of(path) == []


def whoever_gave_up_does_not_hold_the_turn_later(folder: Path) -> None:
    """A waiter that was given up gets the lock at last, and lets it go; and there is one such thread, not one a try."""
    path = folder / "abandoned.db"
    with opened(path, write_wait_s=0.05) as storage:
        holder = Child(_hold_the_turn, path)
        assert holder.pipe.recv() == "inside"
        for _ in range(5):
            with pytest.raises(Busy):
                add(storage, "impatient")
        assert sum(thread.name == "kept-turn" for thread in threading.enumerate()) == 1
        holder.pipe.send("go on")
        assert holder.wait() == 0
        with opened(path, write_wait_s=5) as other:
            add(other, "other")
    with opened(path) as again:
        add(again, "again")
    assert names_in(path) == ["holder", "other", "again"]


def an_interrupted_waiter_does_not_hold_the_turn_later(folder: Path) -> None:
    """Ctrl-C while waiting for a turn: the turn is not taken behind one's back."""
    path = folder / "interrupted.db"

    def interrupt_once(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    def wait_and_be_interrupted(pipe: Connection) -> None:
        with opened(path) as storage:
            try:
                signal.signal(signal.SIGINT, interrupt_once)
                pipe.send("waiting")
                add(storage, "interrupted")
            except KeyboardInterrupt:
                pipe.send("interrupted")
            pipe.recv()  # lives on, and must not be in anybody's way

    with opened(path):
        holder = Child(_hold_the_turn, path)
        assert holder.pipe.recv() == "inside"
        waiter = Child(wait_and_be_interrupted)
        assert waiter.pipe.recv() == "waiting"
        while not waiter.pipe.poll(0.05):
            waiter.signal(signal.SIGINT)
        assert waiter.pipe.recv() == "interrupted"
        holder.pipe.send("go on")
        assert holder.wait() == 0
    with opened(path, write_wait_s=_PATIENCE_S) as storage:
        add(storage, "after")
    waiter.pipe.send("end")
    assert waiter.wait() == 0
    assert names_in(path) == ["holder", "after"]


def parent_and_child_write_after_a_fork(folder: Path) -> None:
    """A fork while the store is open: both write, each closes when it likes, nothing is lost."""
    path = folder / "forked.db"
    storage = SqliteStorage(path, SPACE)
    add(storage, "before")

    def write_on(pipe: Connection) -> None:
        add(storage, "child-1")
        pipe.send("has written")
        pipe.recv()
        add(storage, "child-2")  # the parent has closed the file by now: its WAL must not be gone
        add(storage, "child-3")
        storage.close()

    child = Child(write_on)
    assert child.pipe.recv() == "has written"
    add(storage, "parent-1")
    storage.close()
    child.pipe.send("closed")
    assert child.wait() == 0
    assert names_in(path) == ["before", "child-1", "parent-1", "child-2", "child-3"]
    assert faults_of(path) == []


def a_fork_inside_a_transaction_is_the_parents_alone(folder: Path) -> None:
    """Forked in the middle of a write: the child can neither finish it nor end the turn, nor use the file at all."""
    path = folder / "inside.db"
    storage = SqliteStorage(path, SPACE)

    def try_to_write(pipe: Connection) -> None:
        with pytest.raises(StorageError, match="forked"):
            add(storage, "child")
        with pytest.raises(StorageError, match="forked"):
            SqliteStorage(path, SPACE)

    for name in ("first", "second"):
        child = -1
        try:
            with storage.writing(stamp()) as tx:
                tx.add(memory(f"{name} time the parent writes alone"), "remember")
                assert Child(try_to_write).wait() == 0
                child = os.fork()
                if child == 0 and name == "first":
                    raise SystemExit  # leaves the block by an error, and the second time as if all were done
                if child:
                    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
                    assert Turns(path.with_name(path.name + ".lock")).is_taken()
        except (SystemExit, StorageError):
            if child:
                raise
            os._exit(0)
        finally:
            if child == 0:
                os._exit(1)
    storage.close()
    assert names_in(path) == ["first", "second"]
    assert faults_of(path) == []


def a_deleted_lock_file_harms_nobody(folder: Path) -> None:
    """The lock file vanishes while one writes and others wait: they may meet in SQLite, but nothing is lost."""
    path = folder / "unlocked.db"
    with opened(path):
        pass
    lock = path.with_name(path.name + ".lock")

    def write_many(pipe: Connection, name: str) -> None:
        with opened(path) as storage:
            for number in range(40):
                add(storage, f"{name}-{number}")

    writers = [Child(write_many, name) for name in "abcd"]
    while any_runs(writers):
        lock.unlink(missing_ok=True)
        time.sleep(0.002)
    assert [writer.wait() for writer in writers] == [0, 0, 0, 0]
    assert sorted(names_in(path)) == sorted(f"{name}-{number}" for name in "abcd" for number in range(40))
    assert faults_of(path) == []


def threads_and_processes_take_turns(folder: Path) -> None:
    """Two processes with two threads each write through one storage object a process."""
    path = folder / "threads.db"
    with opened(path):
        pass

    def write_in_threads(pipe: Connection, name: str) -> None:
        def write_many(thread: str) -> None:
            for number in range(25):
                add(storage, f"{name}-{thread}-{number}")

        with opened(path) as storage:
            threads = [threading.Thread(target=write_many, args=(thread,)) for thread in "xy"]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    writers = [Child(write_in_threads, name) for name in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert len(set(names_in(path))) == 100
    assert faults_of(path) == []


def closing_leaves_a_thread_its_turn(folder: Path) -> None:
    """Closing while a thread writes: it finishes, in its turn, and only then is the lock let go."""
    path = folder / "closing.db"
    storage = SqliteStorage(path, SPACE)
    is_inside, may_go_on = threading.Event(), threading.Event()

    def write_slowly() -> None:
        with storage.writing(stamp()) as tx:
            tx.add(memory("slow writer finishes"), "remember")
            is_inside.set()
            may_go_on.wait()

    thread = threading.Thread(target=write_slowly)
    thread.start()
    is_inside.wait()
    storage.close()
    _refused_for(path, os.getpid())
    may_go_on.set()
    thread.join()
    with opened(path, write_wait_s=_PATIENCE_S) as after:
        add(after, "after")
    assert names_in(path) == ["slow", "after"]


def many_make_the_file_at_once(folder: Path) -> None:
    """Twelve processes open a file that is not there, at the same moment: one store, and nobody is refused."""
    for attempt in range(3):
        path = folder / f"made-{attempt}.db"

        def make_and_write(pipe: Connection, name: str, path: Path = path) -> None:
            pipe.recv()
            with opened(path) as storage:
                add(storage, name)

        makers = [Child(make_and_write, f"maker-{number}") for number in range(12)]
        for maker in makers:
            maker.pipe.send("go")
        assert [maker.wait() for maker in makers] == [0] * 12
        assert len(names_in(path)) == 12
        assert faults_of(path) == []
        assert not path.with_name(path.name + ".backups").exists()  # a new file needs no backup of its past


SCENES: dict[str, Callable[[Path], None]] = {
    scene.__name__: scene
    for scene in (
        a_stopped_writer_stops_nobody_for_ever,
        a_stopped_waiter_stops_nobody_for_long,
        a_killed_writer_frees_its_turn,
        whoever_gave_up_does_not_hold_the_turn_later,
        an_interrupted_waiter_does_not_hold_the_turn_later,
        parent_and_child_write_after_a_fork,
        a_fork_inside_a_transaction_is_the_parents_alone,
        a_deleted_lock_file_harms_nobody,
        threads_and_processes_take_turns,
        closing_leaves_a_thread_its_turn,
        many_make_the_file_at_once,
    )
}
