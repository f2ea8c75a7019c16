"""Kept beside its peers. Needs Linux, and for the first run a network or a package cache.

    python -m bench.peers [--rows 10000] [--ours] [--prepare] [--cache DIR] [--tiny] [--json]

Ten thousand paragraphs of English are stored, and some are asked for by five of their words. Every question goes to
all peers, one after the other, before the next one is asked. A peer is a process of its own; the processor time of
all its threads is counted. Rule: nobody is tuned, Kept included. A peer that needs an embedder and brings none that
works offline gets the same one as the others, the quickest there is: see adapters/orders.py.
"""

import argparse
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench import corpora
from bench.measure import Bar, options, p50, p95, report, table
from bench.peers.environments import MEM0, OURS, PEERS, PLAIN, Peer, Unavailable, command, left_out, packages, versions
from bench.peers.running import Running

WARM_UP = 10
ADDED = 30
COLD_STARTS = 3
HEAD = (
    "",
    "query p50",
    "p95",
    "on the clock",
    "hit@5",
    "add",
    "on the clock",
    "MB memory",
    "MB disk",
    "cold start",
    "on the clock",
    "packages",
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "kept-bench")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--ours", action="store_true", help="leave out the peers that have to be installed")
    parser.add_argument("--prepare", action="store_true", help="only install and fill, so that a measurement is short")
    given = options(parser, tiny={"rows": 50, "questions": 3, "ours": True}, arguments=arguments)
    chosen = [peer for peer in PEERS if peer.is_here or not given.ours]
    rows = told(given.rows + ADDED, given.cache)
    stored, added = rows[: given.rows], rows[given.rows :]
    skipped = left_out(only_ours=given.ours)
    for peer in chosen:
        try:
            fill(peer, stored, given.cache)
        except Unavailable as reason:
            skipped[peer.name] = str(reason)
    if given.prepare:
        print(f"ready, without {skipped}" if skipped else "ready")
        return 0
    able = [peer for peer in chosen if peer.name not in skipped]
    figures = measure(able, questions(stored, given.questions), added, given.cache, given.rows)
    lines = [[*line_of(peer, figures[peer.name], given.cache)] for peer in able]
    lines += [[f"{name}: skipped: {reason}", *[""] * (len(HEAD) - 1)] for name, reason in skipped.items()]
    shown = table(f"{given.rows:,} memories; milliseconds of processor time unless on the clock", HEAD, lines)
    return report(shown, bars_of(figures), {"figures": figures, "skipped": skipped}, given)


def told(count: int, cache: Path) -> list[tuple[str, str]]:
    """Name and text of that many paragraphs."""
    return [(f"n{memory.id}", memory.content) for memory in corpora.stored(corpora.docstring_space(count, cache))]


def questions(rows: list[tuple[str, str]], count: int) -> dict[str, str]:
    """Question → the name of its answer: five words of a paragraph, as an agent would pick key words."""
    chance = random.Random(17)
    asked: dict[str, str] = {}
    for name, text in chance.sample(rows, len(rows)):
        words = list(dict.fromkeys(word.lower() for word in re.findall(r"\b[A-Za-z]{4,}\b", text)))
        if len(words) >= 10 and len(asked) < count:
            asked[" ".join(words[place] for place in sorted(chance.sample(range(len(words)), 5)))] = name
    return asked


def store_of(peer: Peer, rows: int, cache: Path) -> Path:
    return cache / "stores" / f"{peer.adapter.partition('.')[0]}-{rows}"


def fill(peer: Peer, rows: list[tuple[str, str]], cache: Path) -> None:
    """Store the texts once, and keep the store for the next run. Raises Unavailable."""
    command(peer, cache)
    folder = store_of(peer, len(rows), cache)
    done = folder.with_suffix(".done")
    if done.exists() and not peer.is_here:  # our own files may have changed their form since
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    print(f"filling {peer.name}", file=sys.stderr)
    with Running(peer, cache, folder) as running:
        running.do("load", rows)
    done.touch()


def measure(
    peers: list[Peer], asked: dict[str, str], added: list[tuple[str, str]], cache: Path, rows: int
) -> dict[str, dict[str, Any]]:
    """All figures of all peers, measured on copies of their stores."""
    figures: dict[str, dict[str, Any]] = {peer.name: {"query": [], "hits": 0, "add": []} for peer in peers}
    first, *rest = list(asked)
    with tempfile.TemporaryDirectory(dir=cache) as scratch, ExitStack() as stack:
        folders = {peer.name: Path(scratch) / peer.adapter.partition(".")[0] for peer in peers}
        for peer in peers:
            folder = folders[peer.name]
            shutil.copytree(store_of(peer, rows, cache), folder)
            figures[peer.name]["disk_mb"] = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6
            figures[peer.name]["cold"] = min(cold_start(peer, cache, folder, first) for _ in range(COLD_STARTS))
        running = {peer.name: stack.enter_context(Running(peer, cache, folders[peer.name])) for peer in peers}
        warm_up = rest[:WARM_UP]
        for number, question in enumerate([*warm_up, *asked]):
            for name, peer_running in in_turns(running, number):
                answer = peer_running.do("query", question)
                if number >= len(warm_up):
                    figures[name]["query"].append((answer["cpu_ms"], answer["wall_ms"]))
                    figures[name]["hits"] += asked[question] in answer["answer"]
        for number, row in enumerate(added):
            for name, peer_running in in_turns(running, number):
                answer = peer_running.do("add", *row)
                figures[name]["add"].append((answer["cpu_ms"], answer["wall_ms"]))
        for name, peer_running in running.items():
            figures[name]["memory_mb"] = peer_running.memory_mb()
            figures[name]["hit_at_5"] = figures[name]["hits"] / len(asked)
    return figures


def in_turns(running: dict[str, Running], number: int) -> list[tuple[str, Running]]:
    return list(running.items())[:: 1 if number % 2 else -1]


def cold_start(peer: Peer, cache: Path, folder: Path, question: str) -> tuple[float, float]:
    """Return the time from nothing to the first answer, of the processor and on the clock."""
    with Running(peer, cache, folder) as running:
        answer = running.do("query", question)
        return answer["all_cpu_ms"], running.opened_ms + answer["wall_ms"]


def line_of(peer: Peer, figures: dict[str, Any], cache: Path) -> list[object]:
    (query_cpu, query_wall), (add_cpu, add_wall) = (zip(*figures[what], strict=True) for what in ("query", "add"))
    return [
        f"{peer.name} {versions(peer, cache)}".strip(),
        p50(query_cpu),
        p95(query_cpu),
        p50(query_wall),
        f"{figures['hit_at_5']:.3f}",
        p50(add_cpu),
        p50(add_wall),
        figures["memory_mb"],
        figures["disk_mb"],
        *figures["cold"],
        packages(peer, cache),
    ]


def bars_of(figures: dict[str, dict[str, Any]]) -> list[Bar]:
    def query_ms(peer: Peer) -> float:
        return p50([cpu for cpu, _ in figures[peer.name]["query"]])

    bars = [
        Bar("a query, times plain FTS5", query_ms(OURS) / query_ms(PLAIN), 1.0),
        Bar("questions whose answer is not among the first five", 1 - figures[OURS.name]["hit_at_5"], 0.0),
    ]
    if MEM0.name in figures:
        bars.append(Bar("a query, as a share of mem0's", query_ms(OURS) / query_ms(MEM0), 1 / 20))
    return bars


if __name__ == "__main__":
    sys.exit(main())
