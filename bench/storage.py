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

import apsw

from bench.corpora import SPACE, START, Zipf
from bench.measure import Bar, Timing, interleaved, p50, p95, report, table
from kept import journal, text
from kept.model import Memory, replace
from kept.ports import Stamp
from kept.storage.shared import prepare
from kept.storage.sqlite import SqliteStorage, rows, schema
from kept.storage.sqlite.connection import connect
from kept.storage.sqlite.index import handles, weights

WRITES_A_SECOND = 100
WINDOW_S = 1.0  # of reading, alone and disturbed in turns
WARM_UP = 50
RAW, KEPT = "raw apsw", "kept"
ALONE, BESIDE = "alone", "while another process writes"


def stamp(number: int) -> Stamp:
    return Stamp(group=f"g{number}", at=START, actor="bench")


class RawWriter:
    """What the storage writes, by hand: five inserts in a transaction, on a connection of its own.

    Every value is known in advance; or, to show what they cost, worked out inside the transaction.
    """

    def __init__(self, path: Path, memories: list[Memory], *, is_prepared: bool) -> None:
        self.connection = connect(path)
        schema.migrate(self.connection, path, schema.migrations(), START)
        self._memories = memories
        self._prev = journal.FIRST_PREV
        self._scratch = apsw.Connection(":memory:")
        for name in ("weights", "handles"):
            sql = "select sql from sqlite_schema where name = ?"
            self._scratch.execute(str(self.connection.execute(sql, (name,)).get))
        self._known = [self._values(number) for number in range(len(memories))] if is_prepared else None
        self._insert_event = f"insert into events values ({', '.join('?' * len(rows.EVENT_COLUMNS))})"
        self._insert_payload = "insert into event_payloads values (?, ?, ?)"
        n_columns = int(self.connection.execute("select count(*) from pragma_table_info('weights')").get)
        self._insert_weights = f"insert or replace into weights values ({', '.join('?' * n_columns)})"

    def __call__(self, number: int) -> None:
        execute = self.connection.execute
        execute("begin immediate")
        row, event, payload, chunk, listed = self._known[number] if self._known else self._values(number)
        execute(rows.insert_sql(Memory), row)
        execute(self._insert_event, event)
        execute(self._insert_payload, payload)
        execute(self._insert_weights, chunk)
        self.connection.executemany("insert into handles values (?, ?)", listed)
        execute("commit")

    def _values(self, number: int) -> tuple[Any, ...]:
        seq = number + 1
        added = replace(self._memories[number], id=seq)
        payload = journal.payload(journal.diff(None, added))
        salt = "5a" * journal.SALT_BYTES
        event = journal.seal_payload(
            stamp(seq), seq=seq, action="remember", subject=added.uid, payload=payload, prev=self._prev, salt=salt
        )
        self._prev = event.hash
        head = (event.seq, event.group, rows.clock(event.at), event.actor, event.action, event.subject)
        tail = (event.undoes, event.digest, event.prev, event.hash)
        prepared = prepare(added)
        weights.note(self._scratch, [added], {})
        handles.note(self._scratch, [added])
        chunk = self._scratch.execute("select * from weights order by chunk desc limit 1").fetchall()[0]
        listed = self._scratch.execute("select * from handles where id = ?", (added.id,)).fetchall()
        row = rows.to_values(added, prepared)
        return row, (*head, *tail), (event.seq, event.salt, payload.decode()), chunk, listed


def writes(folder: Path, rounds: int) -> dict[str, Timing]:
    """Both sides into files of their own, which grow alike."""
    memories = list(Zipf(1).memories(rounds + WARM_UP))
    raw = RawWriter(folder / "raw.db", memories, is_prepared=True)
    computing = RawWriter(folder / "computing.db", memories, is_prepared=False)
    storage = SqliteStorage(folder / "kept.db", SPACE)

    def read_words(number: int) -> None:
        text.handles_of(memories[number].content)  # as the write path has done when it comes to the storage

    def through_kept(number: int) -> None:
        with storage.writing(stamp(number)) as tx:
            tx.add(memories[number], "remember")

    sides: dict[str, Callable[[int], object]] = {RAW: raw, "raw apsw, values worked out": computing, KEPT: through_kept}
    timings = interleaved(sides, rounds, warm_up=WARM_UP, before=read_words)
    storage.close()
    raw.connection.close()
    computing.connection.close()
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
    timings = {ALONE: Timing([], []), BESIDE: Timing([], [])}
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
                if name == BESIDE:
                    writer.stdin.write("go\n")
                    writer.stdin.flush()
                    writer.stdout.readline()  # it has begun
                _window(storage, asked, n_memories, timing)
                if name == BESIDE:
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
        Bar("an acknowledged write, as a multiple of raw apsw (p50)", _ratio(written[KEPT], written[RAW], p50), 1.5),
        Bar("a reader's p95 beside a writer, as a multiple of alone", _ratio(read[BESIDE], read[ALONE], p95), 2.0),
    ]
    head = ("ms", "p50", "p95", "CPU p50", "CPU p95")
    lines = [[name, *values.values()] for name, values in figures.items()]
    return report(table("One write; one get and search", head, lines), bars, figures, as_json=options.json)


def _figures(timing: Timing) -> dict[str, float]:
    wall, cpu = timing.wall_ms, timing.cpu_ms
    return {"p50": p50(wall), "p95": p95(wall), "cpu_p50": p50(cpu), "cpu_p95": p95(cpu)}


def _ratio(one: Timing, other: Timing, of: Callable[[list[float]], float]) -> float:
    return of(one.wall_ms) / of(other.wall_ms)


if __name__ == "__main__":
    sys.exit(main())
