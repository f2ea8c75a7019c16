"""How much the SQLite storage costs on top of SQLite, and how much a writer disturbs a reader.

    python -m bench.storage [--rounds 1000] [--folder DIR] [--tiny] [--json]

Writing: one acknowledged `tx.add` with its event, against the same SQL in a bare apsw transaction. The statements and
their values are recorded from the storage itself, so they write the same rows through the same triggers and pragmas,
with nothing left to work out. The words of a memory have been read once before it is added, as the search for near
duplicates does on the write path. Reading: a get and a search, alone and while another process writes 100 memories a
second.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from bench.corpora import SPACE, START, Zipf
from bench.measure import Bar, Timing, interleaved, options, p50, p95, report, table
from kept import text
from kept.model import Memory
from kept.ports import Stamp
from kept.storage.sqlite import SqliteStorage

WRITES_A_SECOND = 100
WARM_UP = 50
RAW, KEPT = "raw apsw", "kept"
ALONE, BESIDE = "alone", "while another process writes"
CHANGES = ("insert", "update", "delete", "replace")

Statement = tuple[str, Any]


def stamp(number: int) -> Stamp:
    return Stamp(group=f"g{number}", at=START, actor="bench")


@contextmanager
def recorded(into: list[Statement], opened: list[apsw.Connection]) -> Iterator[None]:
    """Note every statement of all connections that are opened in the meantime, and the connections."""

    def trace(cursor: apsw.Cursor, sql: str, bindings: Any) -> bool:
        into.append((sql, bindings))
        return True

    def hook(connection: apsw.Connection) -> None:
        opened.append(connection)
        connection.exec_trace = trace

    apsw.connection_hooks.append(hook)
    try:
        yield
    finally:
        apsw.connection_hooks.remove(hook)


class RawWriter:
    """Writes what the storage wrote, by hand: the same statements in a transaction, on a connection of its own."""

    def __init__(self, folder: Path, memories: list[Memory]) -> None:
        path = folder / "raw.db"
        SqliteStorage(path, SPACE).close()
        self._writes = []
        said: list[Statement] = []
        connections: list[apsw.Connection] = []
        with recorded(said, connections):
            storage = SqliteStorage(folder / "recorded.db", SPACE)
            for number, memory in enumerate(memories):
                said_before = len(said)
                with storage.writing(stamp(number)) as tx:
                    tx.add(memory, "remember")
                self._writes.append([(sql, values) for sql, values in said[said_before:] if _is_change(sql)])
            vfs = connections[0].open_vfs
            storage.close()
        self.connection = apsw.Connection(str(path), vfs=vfs)
        for sql in dict.fromkeys(sql for sql, _ in said if sql.startswith("pragma") and "=" in sql):
            self.connection.execute(sql).fetchall()

    def __call__(self, number: int) -> None:
        execute = self.connection.execute
        execute("begin immediate")
        for sql, values in self._writes[number]:
            execute(sql, values)
        execute("commit")


def _is_change(sql: str) -> bool:
    return sql.lstrip().lower().startswith(CHANGES)


def writes(folder: Path, rounds: int) -> dict[str, Timing]:
    """Both sides into files of their own, which grow alike."""
    memories = list(Zipf(1).memories(rounds + WARM_UP))
    raw = RawWriter(folder, memories)
    storage = SqliteStorage(folder / "kept.db", SPACE)

    def read_words(number: int) -> None:
        text.handles_of(memories[number].content)  # as the write path has done when it comes to the storage

    def through_kept(number: int) -> None:
        with storage.writing(stamp(number)) as tx:
            tx.add(memories[number], "remember")

    sides: dict[str, Callable[[int], object]] = {RAW: raw, KEPT: through_kept}
    timings = interleaved(sides, rounds, warm_up=WARM_UP, before=read_words)
    storage.close()
    raw.connection.close()
    return timings


def fill(path: Path, n_memories: int) -> None:
    storage = SqliteStorage(path, SPACE)
    with storage.writing(stamp(0)) as tx:
        for memory in Zipf(2).memories(n_memories):
            tx.add(memory, "remember")
    storage.close()


def reads(folder: Path, windows: int, window_s: float, n_memories: int) -> dict[str, Timing]:
    """Latencies of a get and a search in turns: a window alone, a window while the other process writes."""
    path = folder / "read.db"
    fill(path, n_memories)
    storage = SqliteStorage(path)
    asked = Zipf(3).questions(500, common=True)
    timings = {ALONE: Timing([], []), BESIDE: Timing([], [])}
    writer = subprocess.Popen(
        [sys.executable, "-m", "bench.storage", "--write-into", str(path), "--window-s", str(window_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdin is not None
    assert writer.stdout is not None
    try:
        _window(storage, asked, n_memories, window_s, Timing([], []))
        for _ in range(windows):
            for name, timing in timings.items():
                if name == BESIDE:
                    writer.stdin.write("go\n")
                    writer.stdin.flush()
                    writer.stdout.readline()  # it has begun
                _window(storage, asked, n_memories, window_s, timing)
                if name == BESIDE:
                    writer.stdout.readline()  # it has ended
    finally:
        writer.stdin.close()
        writer.wait()
        storage.close()
    return timings


def _window(storage: SqliteStorage, asked: list[str], n_memories: int, window_s: float, timing: Timing) -> None:
    end = time.perf_counter() + window_s
    while time.perf_counter() < end:
        id = random.randint(1, n_memories)
        words = text.query_words(random.choice(asked))
        wall, cpu = time.perf_counter(), time.thread_time()
        with storage.reading() as reader:
            reader.get(Memory, id)
            reader.search(words, limit=20)
        timing.cpu_ms.append((time.thread_time() - cpu) * 1000)
        timing.wall_ms.append((time.perf_counter() - wall) * 1000)


def write_when_told(path: Path, window_s: float) -> None:
    """The other process: for each line it reads, a window of writes at an even pace."""
    storage = SqliteStorage(path)
    memories = Zipf(4).memories(1_000_000)
    for _ in sys.stdin:
        print("begun", flush=True)
        start = time.perf_counter()
        for turn in range(int(WRITES_A_SECOND * window_s)):
            time.sleep(max(0.0, start + turn / WRITES_A_SECOND - time.perf_counter()))
            with storage.writing(stamp(turn)) as tx:
                tx.add(next(memories), "remember")
        print("ended", flush=True)
    storage.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1_000, help="writes of each side")
    parser.add_argument("--windows", type=int, default=10, help="windows of reading, alone and disturbed")
    parser.add_argument("--window-s", type=float, default=1.0)
    parser.add_argument("--memories", type=int, default=5_000, help="size of the store that is read")
    parser.add_argument("--folder", type=Path, help="where the files go; by default a temporary folder")
    parser.add_argument("--write-into", type=Path, help=argparse.SUPPRESS)
    given = options(parser, tiny={"rounds": 3, "windows": 1, "window_s": 0.1, "memories": 100})
    if given.write_into:
        write_when_told(given.write_into, given.window_s)
        return 0
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        written = writes(Path(folder), given.rounds)
        read = reads(Path(folder), given.windows, given.window_s, given.memories)
    figures = {name: _figures(timing) for name, timing in (written | read).items()}
    bars = [
        Bar("an acknowledged write, as a multiple of raw apsw (p50)", _ratio(written[KEPT], written[RAW], p50), 1.5),
        Bar("a reader's p95 beside a writer, as a multiple of alone", _ratio(read[BESIDE], read[ALONE], p95), 2.0),
    ]
    head = ("ms", "p50", "p95", "CPU p50", "CPU p95")
    lines = [[name, *values.values()] for name, values in figures.items()]
    return report(table("One write; one get and search", head, lines), bars, figures, given)


def _figures(timing: Timing) -> dict[str, float]:
    wall, cpu = timing.wall_ms, timing.cpu_ms
    return {"p50": p50(wall), "p95": p95(wall), "cpu_p50": p50(cpu), "cpu_p95": p95(cpu)}


def _ratio(one: Timing, other: Timing, of: Callable[[list[float]], float]) -> float:
    return of(one.wall_ms) / of(other.wall_ms)


if __name__ == "__main__":
    sys.exit(main())
