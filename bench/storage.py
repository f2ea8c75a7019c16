"""How much the SQLite storage costs on top of SQLite, and how much a writer disturbs a reader.

    python -m bench.storage [--rounds 1000] [--folder DIR] [--json]

Writing: one acknowledged `tx.add` with its event, against a raw apsw transaction that writes the same rows through
the same triggers and pragmas, with every value bound from memory. The words of a memory have been read once before
it is added, as the search for near duplicates does on the write path. Reading: a get and a search, alone and
while another process writes 100 memories a second.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.corpora import SPACE, START, Zipf
from bench.measure import Bar, Timing, interleaved, p50, p95, report, table
from kept import journal, text
from kept.model import Memory, replace
from kept.ports import Stamp
from kept.storage.sqlite import SqliteStorage, rows, schema
from kept.storage.sqlite.connection import connect

WRITES_A_SECOND = 100
WINDOW_S = 1.0  # of reading, alone and disturbed in turns
WARM_UP = 50


def stamp(number: int) -> Stamp:
    return Stamp(group=f"g{number}", at=START, actor="bench")


class RawWriter:
    """What the storage writes, by hand: three inserts in a transaction, every value known in advance."""

    def __init__(self, path: Path, memories: list[Memory]) -> None:
        self.connection = connect(path)
        schema.migrate(self.connection, path, schema.migrations(), START)
        self.values = []
        prev = journal.FIRST_PREV
        for seq, memory in enumerate(memories, start=1):
            added = replace(memory, id=seq)
            row = rows.to_row(added)
            changed = journal.diff(None, added)
            event = journal.seal(
                stamp(seq), seq=seq, action="remember", subject=added.uid, changed=changed, prev=prev, salt="5a" * 16
            )
            prev = event.hash
            head = (event.seq, event.group, rows.clock(event.at), event.actor, event.action, event.subject)
            tail = (event.undoes, event.digest, event.prev, event.hash)
            payload = (event.seq, event.salt, journal.payload(changed).decode())
            self.values.append((tuple(row.values()), (*head, *tail), payload))
        marks = ", ".join("?" * len(row))
        self.insert_memory = f"insert into memories ({', '.join(row)}) values ({marks})"
        self.insert_event = (
            f"insert into events ({', '.join(rows.EVENT_COLUMNS)}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
        self.insert_payload = "insert into event_payloads (seq, salt, changed) values (?, ?, ?)"

    def __call__(self, number: int) -> None:
        row, event, payload = self.values[number]
        execute = self.connection.execute
        execute("begin immediate")
        execute(self.insert_memory, row)
        execute(self.insert_event, event)
        execute(self.insert_payload, payload)
        execute("commit")


def writes(folder: Path, rounds: int) -> dict[str, Timing]:
    """Both sides into files of their own, which grow alike."""
    memories = list(Zipf(1).memories(rounds + WARM_UP))
    raw = RawWriter(folder / "raw.db", memories)
    storage = SqliteStorage(folder / "kept.db", SPACE)

    def read_words(number: int) -> None:
        text.words(memories[number].content)

    def through_kept(number: int) -> None:
        with storage.writing(stamp(number)) as tx:
            tx.add(memories[number], "remember")

    sides: dict[str, Callable[[int], object]] = {"raw apsw": raw, "kept": through_kept}
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


def reads(folder: Path, windows: int, n_memories: int) -> dict[str, Timing]:
    """Latencies of a get and a search in turns: a window alone, a window while the other process writes."""
    path = folder / "read.db"
    fill(path, n_memories)
    storage = SqliteStorage(path)
    asked = Zipf(3).questions(500, common=True)
    timings = {"alone": Timing([], []), "while another process writes": Timing([], [])}
    writer = subprocess.Popen(
        [sys.executable, "-m", "bench.storage", "--write-into", str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdin is not None
    assert writer.stdout is not None
    try:
        _window(storage, asked, n_memories, Timing([], []))
        for _ in range(windows):
            for name, timing in timings.items():
                if name != "alone":
                    writer.stdin.write("go\n")
                    writer.stdin.flush()
                    writer.stdout.readline()  # it has begun
                _window(storage, asked, n_memories, timing)
                if name != "alone":
                    writer.stdout.readline()  # it has ended
    finally:
        writer.stdin.close()
        writer.wait()
        storage.close()
    return timings


def _window(storage: SqliteStorage, asked: list[str], n_memories: int, timing: Timing) -> None:
    end = time.perf_counter() + WINDOW_S
    while time.perf_counter() < end:
        id = random.randint(1, n_memories)
        words = text.query_words(random.choice(asked))
        wall, cpu = time.perf_counter(), time.thread_time()
        with storage.reading() as reader:
            reader.get(Memory, id)
            reader.search(words, limit=20)
        timing.cpu_ms.append((time.thread_time() - cpu) * 1000)
        timing.wall_ms.append((time.perf_counter() - wall) * 1000)


def write_when_told(path: Path) -> None:
    """The other process: for each line it reads, a window of writes at an even pace."""
    storage = SqliteStorage(path)
    memories = Zipf(4).memories(1_000_000)
    for _ in sys.stdin:
        print("begun", flush=True)
        start = time.perf_counter()
        for turn in range(int(WRITES_A_SECOND * WINDOW_S)):
            time.sleep(max(0.0, start + turn / WRITES_A_SECOND - time.perf_counter()))
            with storage.writing(stamp(turn)) as tx:
                tx.add(next(memories), "remember")
        print("ended", flush=True)
    storage.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1_000, help="writes of each side")
    parser.add_argument("--windows", type=int, default=10, help="seconds of reading, alone and disturbed")
    parser.add_argument("--memories", type=int, default=5_000, help="size of the store that is read")
    parser.add_argument("--folder", type=Path, help="where the files go; by default a temporary folder")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write-into", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write_into:
        write_when_told(options.write_into)
        return 0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        written = writes(Path(folder), options.rounds)
        read = reads(Path(folder), options.windows, options.memories)
    figures = {name: _figures(timing) for name, timing in (written | read).items()}
    bars = [
        Bar("an acknowledged write, as a multiple of raw apsw (p50)", _ratio(written, p50), 1.5),
        Bar("a reader's p95 beside a writer, as a multiple of alone", _ratio(read, p95), 2.0),
    ]
    head = ("ms", "p50", "p95", "CPU p50", "CPU p95")
    lines = [[name, *values.values()] for name, values in figures.items()]
    return report(table("One write; one get and search", head, lines), bars, figures, as_json=options.json)


def _figures(timing: Timing) -> dict[str, float]:
    wall, cpu = timing.wall_ms, timing.cpu_ms
    return {"p50": p50(wall), "p95": p95(wall), "cpu_p50": p50(cpu), "cpu_p95": p95(cpu)}


def _ratio(timings: dict[str, Timing], of: Any) -> float:
    first, second = timings.values()
    return float(of(second.wall_ms) / of(first.wall_ms))


if __name__ == "__main__":
    sys.exit(main())
