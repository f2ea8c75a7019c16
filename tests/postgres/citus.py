"""A Citus cluster under stress: a worker that dies, shards that move, a worker that is added.

    KEPT_TEST_CITUS_URL=postgresql://postgres@coordinator/db python -m tests.postgres.citus [kill] [move] [add]
        [--writers 6] [--seconds 10] [--kills 5] [--moves 4] [--spare postgresql://postgres@worker3/postgres]

The cluster runs on this machine, so that a worker can be killed; `--spare` is a server with the extension that belongs
to no cluster yet. Writers are processes, at every node, each in one of several projects, as in chaos.py; but `move`,
which needs three workers, moves shards between two of them while all write at the third. Each role that writes is
refused any statement that needs more than one shard. Afterwards no acknowledged write may be lost or doubled.
"""

import argparse
import os
import signal
import subprocess
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from kept.storage.postgres import PostgresStorage
from kept.storage.postgres.storage import number_of
from tests.crash.processes import Child
from tests.postgres.chaos import GOES_ON_WITHIN_S, Acknowledged, check, stopped, write_until_told
from tests.postgres.server import as_member, as_owner, at_node, citus_url, drop_database, new_database, nodes

SPACES = tuple(f"project/chaos-{number}" for number in range(4))
RESTART_WAIT_S = 30.0
MOVE_NEEDS = 4  # nodes: the coordinator and three workers
PLACED = """
    select s.shardid, n.nodename, n.nodeport
    from pg_dist_shard s
    join pg_dist_placement p using (shardid)
    join pg_dist_node n using (groupid)
    where s.shardid = get_shard_id_for_distribution_column('kept.heads', %s)"""


class Postmaster:
    """The server of a node, on this machine."""

    def __init__(self, url: str) -> None:
        self._url = url
        with psycopg.connect(url) as root:
            self._data = str(root.execute("select current_setting('data_directory')").fetchone()[0])  # type: ignore[index]
        lines = Path(self._data, "postmaster.pid").read_text().splitlines()
        self._pid = int(lines[0])
        self._command = Path(f"/proc/{self._pid}/cmdline").read_text().split("\0")[:-1]
        told = Path(f"/proc/{self._pid}/environ").read_text().split("\0")[:-1]
        self._environment = dict(line.split("=", 1) for line in told)  # libpq looks for certificates in its HOME
        self._user = Path(f"/proc/{self._pid}").stat().st_uid

    def kill(self) -> None:
        """End it and its backends at once."""
        children = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text().split()
        for process in (self._pid, *map(int, children)):
            os.kill(process, signal.SIGKILL)
        while any(Path(f"/proc/{child}").exists() for child in children):
            time.sleep(0.01)

    def start(self) -> None:
        """Start it again, as it was started, and wait until it answers."""
        user = self._user if os.geteuid() == 0 else None
        no = subprocess.DEVNULL
        subprocess.Popen(self._command, user=user, cwd=self._data, env=self._environment, stdout=no, stderr=no)
        end = time.monotonic() + RESTART_WAIT_S
        while True:
            try:
                psycopg.connect(self._url, connect_timeout=2).close()
                break
            except psycopg.OperationalError:
                assert time.monotonic() < end, f"{self._data} does not start"
                time.sleep(0.05)
        self._pid = int(Path(self._data, "postmaster.pid").read_text().split()[0])


class Storm:
    """Writers at every node of a new database, or at one; `url` is that of the role that writes, at the coordinator."""

    def __init__(self, writers: int, at_last: bool = False) -> None:
        self.url = new_database()
        self.owner = as_owner(self.url)
        for space in SPACES:
            PostgresStorage(self.url, space).close()
        at = [at_node(self.url, str(urlsplit(node).hostname), int(urlsplit(node).port or 0)) for node in self.nodes]
        at = at[-1:] if at_last else at
        # Writers of one project are at different nodes.
        self._children = [
            Child(write_until_told, at[number // len(SPACES) % len(at)], number, SPACES[number % len(SPACES)])
            for number in range(writers)
        ]
        for child in self._children:
            assert child.pipe.recv() == "ready"

    @property
    def nodes(self) -> list[str]:
        return nodes(self.owner)

    def end(self) -> tuple[Acknowledged, int]:
        """Return the acknowledged writes, and how many of them are lost."""
        done, _ = stopped(self._children)
        lost = 0
        for place, space in enumerate(SPACES):
            own = [one for one in done if int(one[0].partition("-")[0]) % len(SPACES) == place]
            lost += check(self.url, own, space)
        drop_database(self.url)
        return done, lost


def longest_gap_s(done: Acknowledged) -> float:
    """The longest time between two acknowledged writes of the same writer."""
    by_writer: dict[str, list[float]] = {}
    for key, at in done:
        by_writer.setdefault(key.partition("-")[0], []).append(at)
    return max(after - before for times in by_writer.values() for before, after in pairwise(times))


def killed_worker(writers: int, seconds: float, kills: int) -> str:
    storm = Storm(writers)
    workers = [Postmaster(url) for url in storm.nodes[1:]]
    down_s = 0.0
    for number in range(kills):
        time.sleep(seconds / kills)
        worker, killed = workers[number % len(workers)], time.monotonic()
        worker.kill()
        worker.start()
        down_s = max(down_s, time.monotonic() - killed)
    time.sleep(GOES_ON_WITHIN_S)
    done, lost = storm.end()
    figures = (
        f"a worker killed {kills} times, gone for {down_s:.2f} s at most: {len(done)} writes, {lost} lost, 0 doubled, "
        f"longest time between two writes {longest_gap_s(done):.2f} s"
    )
    assert lost == 0, figures
    assert longest_gap_s(done) <= down_s + GOES_ON_WITHIN_S, figures
    return figures


def moved_shards(writers: int, seconds: float, moves: int) -> str:
    """A writer at a node that a shard neither leaves nor reaches is the last one to be told that it has moved."""
    storm = Storm(writers, at_last=True)
    places = [(urlsplit(url).hostname, urlsplit(url).port) for url in storm.nodes]
    assert len(places) >= MOVE_NEEDS, "move needs a cluster of three workers"
    _, first, second, *_ = places
    took = []
    with psycopg.connect(storm.owner, autocommit=True) as root:
        for _ in range(moves):
            for shard, *source in {root.execute(PLACED, (number_of(space),)).fetchone() for space in SPACES}:  # type: ignore[misc]
                target = second if tuple(source) == first else first
                started = time.monotonic()
                move = "select citus_move_shard_placement(%s, %s, %s, %s, %s, 'force_logical')"
                root.execute(move, (shard, *source, *target))
                took.append(time.monotonic() - started)
            time.sleep(seconds / moves)
    done, lost = storm.end()
    figures = (
        f"{len(took)} moves of shards, {max(took):.1f} s at most: {len(done)} writes at a node between, {lost} lost, "
        f"0 doubled, longest time between two writes {longest_gap_s(done):.2f} s"
    )
    assert lost == 0, figures
    return figures


def added_worker(writers: int, seconds: float, spare: str) -> str:
    storm = Storm(writers)
    name = urlsplit(storm.url).path[1:]
    with psycopg.connect(spare, autocommit=True) as root:
        root.execute(f"create database {name}")  # type: ignore[arg-type]
    there = urlsplit(spare)
    with psycopg.connect(as_member(spare, name, str(there.username)), autocommit=True) as root:
        root.execute("create extension citus")
    time.sleep(seconds / 2)
    with psycopg.connect(storm.owner, autocommit=True) as root:
        started = time.monotonic()
        root.execute("select citus_add_node(%s, %s)", (there.hostname, there.port))
        root.execute("select rebalance_table_shards(shard_transfer_mode => 'force_logical')")
        took_s = time.monotonic() - started
        moved = root.execute(
            "select count(*) from pg_dist_placement p join pg_dist_node n using (groupid) where n.nodeport = %s",
            (there.port,),
        ).fetchone()[0]  # type: ignore[index]
    time.sleep(seconds / 2)
    done, lost = storm.end()
    with psycopg.connect(spare, autocommit=True) as root:
        root.execute(f"drop database {name} with (force)")  # type: ignore[arg-type]
    figures = (
        f"a worker added, and {moved} of its placements made, in {took_s:.1f} s: {len(done)} writes, {lost} lost, "
        f"0 doubled, longest time between two writes {longest_gap_s(done):.2f} s"
    )
    assert lost == 0, figures
    assert moved > 0, figures
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="*", metavar="kill | move | add")
    parser.add_argument("--writers", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--moves", type=int, default=4, help="How often each shard is moved.")
    parser.add_argument("--spare", help="The URL of a superuser of a server that is to be added.")
    given = parser.parse_args()
    citus_url()
    scenes: dict[str, Callable[[], str]] = {
        "kill": lambda: killed_worker(given.writers, given.seconds, given.kills),
        "move": lambda: moved_shards(given.writers, given.seconds, given.moves),
    }
    if given.spare:
        scenes["add"] = lambda: added_worker(given.writers, given.seconds, given.spare)
    for name in given.scenes or scenes:
        print(scenes[name](), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
