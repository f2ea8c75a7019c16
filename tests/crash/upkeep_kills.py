"""Upkeep, killed at every statement and run again, ends as one that nobody disturbed (C2, C19, C28, C29).

    python -m tests.crash.upkeep_kills [--stride 1]

The store has everything that upkeep does something about: candidates used and unused, shelf lives that are over, more
memories than there is room for, old sessions. Pages are small, so that one run takes many transactions, makes room in
several steps and builds its index anew at the end. A process of its own begins that run and ends, as by kill -9,
just before its k-th SQL statement; the next one runs to its end. Afterwards the rows, the sessions, their files and the
journal (who did what to which memory, and each thing once) are those of a run that nobody disturbed.
"""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import apsw

import kept
from kept.memory import context, upkeep
from kept.model import SessionRecord, Source, replace
from kept.ports import ANYWHERE
from kept.storage.sqlite import SqliteStorage
from tests.builders import START, FakeClock, context_of, stamp
from tests.builders import memory as a_memory
from tests.crash.checks import faults_of_file, faults_of_records
from tests.crash.scratch import scratch_folder
from tests.crash.simulated_disk import on_connect

KILLED = 9
SETTINGS = kept.Settings(auto_upkeep=False, max_memories=24, session_retention_days=30)


def build(home: Path) -> None:
    """A store that nobody has looked at for a month and a half."""
    clock = FakeClock()
    with _opened(home, clock) as memory:
        storage = context_of(memory).spaces.ensure_project()
        extracted = Source(origin="extraction", session="old-1")
        with storage.writing(stamp()) as tx:
            for n, kind in enumerate(("progress", "discovery", "decision", "preference") * 5):
                content = f"Step {n} of the harbor migration moved berth {n * 7} to pier {n * 3}"
                candidate = a_memory(content, space=storage.space, kind=kind, source=extracted, status="candidate")
                tx.add(candidate, "remember")
            for n in range(24):
                content = f"Rule {n}: the gate number {n * 11} opens at {n} in the morning"
                tx.add(a_memory(content, space=storage.space, importance=n / 40), "remember")
        memory.pin(25)
        for name in ("old-1", "old-2"):
            session = memory.session(name)
            session.append("user", f"A long story in {name} about the lighthouse")
            session.finish()  # what finishing does under kills is shown by session_kills
        clock.advance(days=3)
        for ref in (2, 3, 7, 11, 30):
            memory.reinforce(ref)


def now() -> FakeClock:
    clock = FakeClock(START)
    clock.advance(days=45)
    return clock


@contextmanager
def small_pages() -> Iterator[None]:
    """Inside the block many transactions are needed, and what leaves is soon enough to build an index anew."""
    with (
        mock.patch.object(upkeep, "BATCH", 5),
        mock.patch.object(context, "BATCH", 5),
        mock.patch.object(upkeep, "MANY", 4),
    ):
        yield


def _opened(home: Path, clock: FakeClock) -> kept.Kept:
    return kept.open(home=home, project="p", clock=clock, settings=SETTINGS)


def run(home: Path) -> kept.Kept:
    with small_pages(), _opened(home, now()) as memory:
        memory.upkeep()
    return memory


def killed_at(home: Path, k: int) -> bool:
    """Run upkeep in a process that ends before its k-th statement; False when it was over by then."""
    child = os.fork()
    if child == 0:
        left = k

        def before(cursor: apsw.Cursor, sql: str, bindings: Any) -> bool:
            nonlocal left
            left -= 1
            if left == 0:
                os._exit(KILLED)
            return True

        def watch(connection: apsw.Connection) -> None:
            connection.exec_trace = before

        try:
            with on_connect(watch):
                run(home)
            os._exit(0)
        finally:  # whatever happens, this process must not go on as a second test run
            os._exit(1)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, KILLED):
        raise AssertionError(f"the process failed by itself (exit code {code}) before statement {k}")
    return code == KILLED


def state_of(home: Path) -> dict[str, Any]:
    """Everything that upkeep may change, without what differs from run to run (groups, salts, numbers of events)."""
    (path,) = home.glob("projects/*/kept.db")
    storage = SqliteStorage(path)
    try:
        with storage.reading() as reader:
            memories = reader.select(ANYWHERE, limit=1_000)
            sessions = reader.all(SessionRecord)
            events = [(event.actor, event.action, event.subject, event.changed) for event in reader.events()]
            return {
                "memories": [replace(memory, space="") for memory in memories],
                "sessions": sessions,
                "said": {session.name: reader.messages(session.name) for session in sessions},
                "events": sorted(map(repr, events)),
                "files": sorted(file.name for file in path.parent.glob("sessions/*.jsonl")),
                "left behind": reader.view.meta("words_left_behind"),
            }
    finally:
        storage.close()


def faults_of(home: Path) -> list[str]:
    (path,) = home.glob("projects/*/kept.db")
    storage = SqliteStorage(path)
    try:
        with storage._pool.borrow() as connection:
            return [*faults_of_file(connection), *faults_of_records(storage)]
    finally:
        storage.close()


def kills(folder: Path, *, stride: int) -> tuple[int, list[str]]:
    """How many runs were killed, and what was wrong afterwards."""
    template, home = folder / "template", folder / "home"
    build(template)
    shutil.copytree(template, folder / "clean")
    run(folder / "clean")
    expected, problems = state_of(folder / "clean"), []
    assert expected["left behind"] is None
    for number, k in enumerate(range(1, 1_000_000, stride)):
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(template, home)
        if not killed_at(home, k):
            return number, problems
        if faults := faults_of(home):
            problems.append(f"killed before statement {k}: {faults[0]}")
        run(home)
        found = state_of(home)
        # Marked words may stay behind when all was done but the last step; an erasure sees to them.
        wrong = [part for part in expected if part != "left behind" and found[part] != expected[part]]
        problems += [f"killed before statement {k}: other {part} than after one run" for part in wrong]
        problems += [f"killed before statement {k}, in the end: {fault}" for fault in faults_of(home)]
    raise AssertionError("upkeep does not end")


def actions_of(home: Path) -> set[str]:
    """What upkeep has done there."""
    (path,) = home.glob("projects/*/kept.db")
    storage = SqliteStorage(path)
    try:
        with storage.reading() as reader:
            return {event.action for event in reader.events() if event.actor == "upkeep"}
    finally:
        storage.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stride", type=int, default=1, help="kill only before every so manyth statement")
    options = parser.parse_args()
    started = time.monotonic()
    with scratch_folder() as folder:
        killed, problems = kills(folder, stride=options.stride)
    print(f"{killed} runs of upkeep were killed, {len(problems)} problems, {time.monotonic() - started:.0f} s")
    print("\n".join(problems[:20]))
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
