"""How fast recall is, and how much of the exact answer it keeps: `python -m bench.recall --rows 10000 100000`.

Everything counts: opening a transaction, the answer, the receipt and the links that are written afterwards. Beside it,
on the same file and query by query in turns, the plain FTS5 query that a program without Kept would write, and the
count of the same match, which is the floor: what SQLite needs to walk the words at all. Rule: processor time of this
thread, best of several rounds for each query, because the machine may be busy with something else.
"""

import argparse
import heapq
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apsw

import kept
from bench import corpora
from bench.measure import Bar, options, p50, p95, report, table
from kept import text
from kept.ports import Found, Reader, Stamp, Statistics
from kept.recall import Request
from kept.recall.query import SearchWords
from kept.recall.score import score_of, word_match
from kept.settings import Settings
from kept.storage.shared import prepare
from kept.storage.sqlite import SqliteStorage
from kept.tables import PROFILES

TOP = 10
# Without a floor, so that the ten best can be compared: the questions are random words, which answer nothing.
WITHOUT_FLOOR = "praxis"
PROFILE = PROFILES[WITHOUT_FLOOR]
# rows → what must hold: milliseconds at the 95th percentile, share of the exact top ten that may be missed
LIMITS_COMMON = {100_000: (12.0, 0.05), 1_000_000: (45.0, 0.10)}
# The deadline of a recall runs on the clock; a busy machine must not make the answers worse while CPU is measured.
UNHURRIED = Settings(recall_deadline_ms=60_000)
LARGE, SMALL = 1_000_000, 10_000

PARTS = ("zipf", "docstrings", "insert", "deadline", "writes")
HEAD = (
    "",
    "recall p50",
    "p95",
    "FTS5 p50",
    "p95",
    "count p50",
    "recall/FTS5",
    "recall/count",
    "answered",
    "of the exact ten",
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--paragraphs", type=int, default=100_000, help="size of the English corpus")
    parser.add_argument("--deadline-rows", type=int, default=100_000)
    parser.add_argument("--write-rows", type=int, default=SMALL)
    parser.add_argument("--write-queries", type=int, default=1_000)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS, help="only some parts, to be quicker")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "kept-bench")
    tiny = {
        "rows": [300],
        "paragraphs": 200,
        "deadline_rows": 300,
        "write_rows": 300,
        "write_queries": 5,
        "queries": 3,
        "rounds": 1,
    }
    given = options(parser, tiny=tiny, arguments=arguments)
    lines: list[list[object]] = []
    found: list[list[object]] = []
    bars: list[Bar] = []
    for n_rows in given.rows if "zipf" in given.only else ():
        for common in (False, True):
            path = corpora.zipf_space(n_rows, given.cache)
            # A query of common words among a million rows takes FTS5 half a second.
            n_queries, rounds = (given.queries, given.rounds) if n_rows <= 100_000 else (30, 3)
            queries = corpora.Zipf(3).questions(n_queries, common=common)
            speed_of(f"{n_rows:,} {'common' if common else 'rare'} words", path, queries, rounds, lines, bars)
    for common in (False, True) if "docstrings" in given.only else ():
        path = corpora.docstring_space(given.paragraphs, given.cache)
        asked = corpora.questions_about(path, given.queries, common=common)
        name = f"docstrings, {'common' if common else 'rare'} words"
        speed_of(name, path, list(asked), given.rounds, lines, bars)
        found.append([name, *found_in_five(path, asked)])
    if "insert" in given.only and (given.tiny or LARGE in given.rows):
        small, large = (given.rows[0], given.rows[0] + 1) if given.tiny else (SMALL, LARGE)
        bars.append(insertion(given.cache, small, large, count=3 * given.queries))
    if "deadline" in given.only:
        bars.append(deadline(corpora.zipf_space(given.deadline_rows, given.cache)))
    if "writes" in given.only:
        path = corpora.zipf_space(given.write_rows, given.cache)
        bars.append(under_writes(path, given.write_queries, is_judged=not given.tiny))
    shown = table("Recall, milliseconds of processor time", HEAD, lines) if lines else ""
    if found:
        shown += "\n\n" + table("Asked for by its own words: share among the first five", ("", "recall", "FTS5"), found)
    return report(shown, bars, {"lines": lines, "found": found}, given)


def speed_of(
    name: str, path: Path, queries: list[str], rounds: int, lines: list[list[object]], bars: list[Bar]
) -> None:
    agreement = agreement_of(path, queries)
    with opened(path) as memory:
        answered = sum(bool(memory.recall(query).hits) for query in queries) / len(queries)
        plain = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        times = best_of(
            {
                "recall": memory.recall,
                "fts5": lambda query: plain_query(plain, query),
                "count": lambda query: count_of_match(plain, query),
            },
            queries,
            rounds,
        )
        plain.close()
    ours, theirs, floor = times["recall"], times["fts5"], times["count"]
    to_theirs, to_floor = p50(ours) / p50(theirs), p50(ours) / p50(floor)
    lines.append(
        [name, p50(ours), p95(ours), p50(theirs), p95(theirs), p50(floor), to_theirs, to_floor, answered, agreement]
    )
    n_rows = int(name.split()[0].replace(",", "")) if name[0].isdigit() else 0
    if "rare" in name and n_rows == 10_000:
        bars.append(Bar(f"{name}: p95 in ms", p95(ours), 3.0))
        bars.append(Bar(f"{name}: times a plain FTS5 query", p95(ours) / p95(theirs), 6.0))
        bars.append(Bar(f"{name}: missed of the exact top ten", 1 - agreement, 0.0))
    elif "common" in name and n_rows in LIMITS_COMMON:
        most_ms, most_missed = LIMITS_COMMON[n_rows]
        bars.append(Bar(f"{name}: p95 in ms", p95(ours), most_ms))
        bars.append(Bar(f"{name}: missed of the exact top ten", 1 - agreement, most_missed))
        if n_rows == 1_000_000:
            bars.append(Bar(f"{name}: share of what exact FTS5 takes", p95(ours) / p95(theirs), 1 / 15))


def opened(path: Path, settings: Settings = UNHURRIED) -> kept.Kept:
    """The memory to ask."""
    return kept.open(path, clock=lambda: corpora.NOW, settings=settings)


def best_of(sides: dict[str, Callable[[str], Any]], queries: list[str], rounds: int) -> dict[str, list[float]]:
    """For each side the milliseconds of each query, the best of all rounds; the sides take turns query by query."""
    best = {name: [float("inf")] * len(queries) for name in sides}
    for number in range(rounds):
        for place, query in enumerate(queries):
            for name, side in list(sides.items())[:: 1 if number % 2 else -1]:
                started = time.thread_time()
                side(query)
                best[name][place] = min(best[name][place], (time.thread_time() - started) * 1000)
    return best


def plain_query(connection: apsw.Connection, query: str) -> list[Any]:
    """Return the ids of the best fifty that have any of the words: the query that one would write by hand."""
    sql = "select rowid from live_fts where live_fts match ? order by bm25(live_fts) limit 50"
    return connection.execute(sql, (match_of(query),)).fetchall()


def count_of_match(connection: apsw.Connection, query: str) -> Any:
    return connection.execute("select count(*) from live_fts where live_fts match ?", (match_of(query),)).get


def match_of(query: str) -> str:
    return " OR ".join(f'"{word}"' for word in text.query_words(query))


def agreement_of(path: Path, queries: list[str]) -> float:
    """Share of the exact top ten that recall returns, over the queries with a word that few memories hold.

    Asked in the profile `praxis`, which has no floor: the search for candidates is that of the other profiles.

    Nothing may be noted in the meantime: a use lifts a memory above the score that was computed before. Recall notes
    nothing while somebody else writes, so a transaction is held open that changes nothing.
    """
    exact = exact_top(path, queries)
    shares = []
    writer = SqliteStorage(path)
    with opened(path) as memory, writer.writing(Stamp(group="hold", at=corpora.NOW, actor="bench")):
        for query, best in exact.items():
            recalled = memory.recall(query, limit=TOP, profile=WITHOUT_FLOOR)
            assert recalled.receipt is None, "a recall was noted"
            if len(recalled.words) == len(text.query_words(query)):  # otherwise unknown words were guessed at
                shares.append(len({hit.memory.id for hit in recalled.hits} & best) / len(best))
    writer.close()
    return sum(shares) / len(shares) if shares else 1.0


def found_in_five(path: Path, asked: dict[str, str]) -> tuple[float, float]:
    """Share of the questions whose memory is among the first five: of recall, and of FTS5, which knows no age."""
    plain = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    uids: dict[Any, str] = {memory.id: memory.uid for memory in corpora.stored(path)}
    theirs = sum(uid in [uids[id] for (id,) in plain_query(plain, query)[:5]] for query, uid in asked.items())
    plain.close()
    with opened(path) as memory:
        ours = sum(uid in [hit.memory.uid for hit in memory.recall(query).hits] for query, uid in asked.items())
    return ours / len(asked), theirs / len(asked)


def exact_top(path: Path, queries: list[str]) -> dict[str, set[int]]:
    """Query → the ids of the best ten by the full score of every memory, without those that recall would drop."""
    storage = SqliteStorage(path)
    with storage.reading() as reader:
        scorers = {}
        for query in queries:
            words = text.query_words(query)
            statistics = exact_statistics(reader, words, path)
            if any(0 < rows_with <= 0.05 * statistics.rows for rows_with in statistics.rows_with.values()):
                match = word_match(SearchWords(dict.fromkeys(words, 1.0)), statistics, PROFILE)
                scorers[query] = (
                    set(words),
                    score_of(match, Request(query=query, profile=WITHOUT_FLOOR), Settings(), corpora.NOW),
                )
        best: dict[str, list[tuple[float, int]]] = {query: [] for query in scorers}
        for memory in corpora.stored(path):
            found = Found(memory, prepare(memory))
            held = set(found.prepared.words.split())
            for query, (wanted, score) in scorers.items():
                if not held.isdisjoint(wanted):
                    heapq.heappush(best[query], (score(found).score, found.memory.id))
                    if len(best[query]) > TOP:
                        heapq.heappop(best[query])
    storage.close()
    least = {query: PROFILE.threshold_share * max(top)[0] for query, top in best.items() if top}
    return {query: {id for score, id in best[query] if score >= least[query]} for query in least}


def exact_statistics(reader: Reader, words: list[str], path: Path) -> Statistics:
    """Counted, where recall in a large store would estimate."""
    estimate = reader.statistics(words)
    plain = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    sql = "select count(*) from live_fts where live_fts match ?"
    counted: dict[str, Any] = {word: plain.execute(sql, (f'"{word}"',)).get for word in words}
    plain.close()
    return Statistics(estimate.rows, estimate.words, estimate.tokens, counted)


def insertion(cache: Path, small: int, large: int, count: int) -> Bar:
    """The cost of one more memory in a large store, as a multiple of its cost in a small one."""
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        storages = {}
        for n_rows in (small, large):
            copy = Path(folder) / f"{n_rows}.db"
            shutil.copyfile(corpora.zipf_space(n_rows, cache), copy)
            storages[n_rows] = SqliteStorage(copy)
        times: dict[int, list[float]] = {n_rows: [] for n_rows in storages}
        for number, memory in enumerate(corpora.Zipf(99).memories(count)):
            for n_rows, storage in storages.items():
                started = time.thread_time()
                with storage.writing(Stamp(group=f"insert-{number}", at=corpora.NOW, actor="bench")) as tx:
                    tx.add(memory, "remember")
                times[n_rows].append((time.thread_time() - started) * 1000)
        for storage in storages.values():
            storage.close()
    few_ms, many_ms = (sum(values) / len(values) for values in times.values())
    print(f"insert: {few_ms:.2f} ms into {small:,}, {many_ms:.2f} ms into {large:,}", file=sys.stderr)
    return Bar(f"an insert into {large:,}, times one into {small:,}", many_ms / few_ms, 2.0)


def deadline(path: Path) -> Bar:
    """The longest recall, for texts that are made to be slow, in every profile, with and without a filter.

    The deadline is in force here, on the clock: measure it on an idle machine.
    """
    words = [corpora.word(rank) for rank in range(5_000)]
    chance = random.Random(4)
    texts = {
        "the commonest words": " ".join(words[:32]),
        "ten thousand words": " ".join(words * 2),
        "words that nobody wrote": " ".join(f"{word[:-1]}xx" for word in words[100:132]),
        "one letter each": " ".join("abcdefghijklmnopqrstuvwxyz"),
        "one common word": words[0],
        "any characters": "".join(chr(chance.randrange(1, 0xD800)) for _ in range(5_000)),
        "words of all ranks": " ".join(chance.sample(words, 32)),
    }
    longest: dict[str, float] = {}
    with opened(path, Settings()) as memory:
        for name, query in texts.items():
            for profile in ("kept", "koshi", "praxis"):
                for tags in ((), ("auth",)):
                    started = time.thread_time()
                    memory.recall(query, profile=profile, tags=tags)
                    longest[name] = max((time.thread_time() - started) * 1000, longest.get(name, 0.0))
    print("slowest texts, ms: " + ", ".join(f"{name} {ms:.0f}" for name, ms in longest.items()), file=sys.stderr)
    return Bar("the slowest text, in ms", max(longest.values()), 300.0)


def under_writes(path: Path, count: int, *, is_judged: bool) -> Bar:
    """p95 of recall while another process writes a hundred memories a second, as a multiple of p95 without.

    On the clock: who waits for a writer spends no processor time. Both sides are warm, and the quicker of the two runs
    alone is the measure. The share of recalls that left no receipt, because somebody wrote, is printed: they are
    cheaper.
    """
    queries = corpora.Zipf(5).questions(count, common=False)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        shutil.copyfile(path, copy)
        with opened(copy) as memory:
            on_the_clock(memory, queries)
            before, _ = on_the_clock(memory, queries)
            command = [sys.executable, "-m", "bench.recall_writer", str(copy)]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
                try:
                    assert writer.stdout is not None
                    writer.stdout.readline()
                    n_rows, started = memory.status()["spaces"][0]["memories"]["live"], time.perf_counter()
                    beside, unnoted = on_the_clock(memory, queries)
                    written = memory.status()["spaces"][0]["memories"]["live"] - n_rows
                    per_second = written / (time.perf_counter() - started)
                finally:
                    writer.terminate()  # leaving the block waits for its end
            after, _ = on_the_clock(memory, queries)
    print(f"{per_second:.0f} writes a second; {unnoted:.0%} of the recalls were not noted", file=sys.stderr)
    if is_judged and per_second < 80:
        raise RuntimeError(f"The writer made {per_second:.0f} writes a second, so nothing was measured.")
    name = "recall beside 100 writes a second, times recall alone (p95, on the clock)"
    return Bar(name, p95(beside) / min(p95(before), p95(after)), 2.0)


def on_the_clock(memory: kept.Kept, queries: list[str]) -> tuple[list[float], float]:
    """Milliseconds of each recall, and the share of recalls that left no receipt."""
    times, unnoted = [], 0
    for query in queries:
        started = time.perf_counter()
        unnoted += memory.recall(query).receipt is None
        times.append((time.perf_counter() - started) * 1000)
    return times, unnoted / len(queries)


if __name__ == "__main__":
    sys.exit(main())
