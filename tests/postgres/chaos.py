"""PostgreSQL under stress: many writers, a server that dies, a standby that lags (B14, B21).

    python -m tests.postgres.chaos [writers] [kills] [standby] [--writers 16] [--seconds 60] [--kills 20]

Writers are processes of their own. Each write has a key, is tried again blindly until it is acknowledged, and every
fifth is sent twice although it was acknowledged. Afterwards the chain must be unbroken, every acknowledged write there,
and none of them twice.
"""

import argparse
import os
import signal
import time
from multiprocessing.connection import Connection

import psycopg

from kept import journal
from kept.errors import StorageError
from kept.ports import ANYWHERE, Stamp, Where
from kept.storage.postgres import PostgresStorage
from tests.builders import START, memory
from tests.crash.processes import Child
from tests.postgres.server import Server, as_member, initialised

SPACE = "project/chaos"
DURABLE = ("max_connections=60", "autovacuum=off")
LONGEST_WAIT_S = 1.0
GOES_ON_WITHIN_S = 5.0
AGAIN = 5  # every fifth write is sent once more

Acknowledged = list[tuple[str, float]]  # key, and when


def write_until_told(pipe: Connection, url: str, number: int, space: str = SPACE) -> None:
    """Write as fast as the server allows; then send what was acknowledged, and the longest wait for a turn."""
    done: Acknowledged = []
    longest_s = 0.0
    storage = None
    pipe.send("ready")
    while not pipe.poll():
        key = f"{number}-{len(done)}"
        try:
            storage = storage or PostgresStorage(url, space)
            for _ in range(2 if len(done) % AGAIN == 0 else 1):
                longest_s = max(longest_s, write(storage, key))
        except StorageError:
            time.sleep(0.02)
            continue
        done.append((key, time.monotonic()))
    pipe.send((done, longest_s))
    if storage is not None:
        storage.close()


def write(storage: PostgresStorage, key: str) -> float:
    """Store one memory, unless its key is known; the seconds that passed until it was our turn."""
    asked = time.monotonic()
    with storage.writing(Stamp(group=os.urandom(8).hex(), at=START, actor="chaos")) as tx:
        waited_s = time.monotonic() - asked
        if not tx.select(Where(key=key)):
            tx.add(memory(f"note {key} of the storm", space=storage.space, key=key, uid=f"uid {key}"), "remember")
    return waited_s


def check(url: str, done: Acknowledged, space: str = SPACE) -> int:
    """How many acknowledged writes are not there. None may be there twice, and the chain must be unbroken."""
    storage = PostgresStorage(url, space)
    with storage.reading() as reader:
        found = [one.key for one in reader.select(ANYWHERE, limit=10**7)]
        assert len(found) == len(set(found)), "a write was stored twice"
        assert journal.broken_links(reader.events()) == []
        assert reader.statistics(["storm"]).rows_with == {"storm": len(found)}
    storage.close()
    return len({key for key, _ in done} - set(found))


def started(url: str, writers: int) -> list[Child]:
    children = [Child(write_until_told, url, number) for number in range(writers)]
    for child in children:
        assert child.pipe.recv() == "ready"
    return children


def stopped(children: list[Child]) -> tuple[Acknowledged, float]:
    for child in children:
        child.pipe.send("stop")
    told = [child.pipe.recv() for child in children]
    assert [child.wait() for child in children] == [0] * len(children)
    return [one for done, _ in told for one in done], max(longest_s for _, longest_s in told)


def new_server(*settings: str) -> tuple[Server, str]:
    server = Server((*DURABLE, *settings))
    server.create()
    server.start()
    return server, initialised(server.url)


def many_writers(writers: int, seconds: float, longest_allowed_s: float = LONGEST_WAIT_S) -> str:
    server, url = new_server()
    try:
        PostgresStorage(url, SPACE).close()
        children = started(url, writers)
        time.sleep(seconds)
        done, longest_s = stopped(children)
        lost = check(url, done)
    finally:
        server.stop()
    figures = (
        f"{writers} writers, {seconds:g} s: {len(done)} writes, {lost} lost, 0 doubled, longest wait {longest_s:.2f} s"
    )
    assert lost == 0, figures
    assert longest_s <= longest_allowed_s, figures
    return figures


def killed_server(kills: int, writers: int = 4, between_s: float = 1.0) -> str:
    server, url = new_server()
    slowest_s = 0.0
    try:
        PostgresStorage(url, SPACE).close()
        children = started(url, writers)
        ups: list[float] = []
        for _ in range(kills):
            time.sleep(between_s)
            server.kill()
            server.start()
            ups.append(time.monotonic())
        time.sleep(GOES_ON_WITHIN_S)
        done, _ = stopped(children)
        lost = check(url, done)
    finally:
        server.stop()
    for up in ups:
        slowest_s = max(slowest_s, min(at for _, at in done if at > up) - up)
    figures = f"killed {kills} times: {len(done)} writes, {lost} lost, goes on after {slowest_s:.2f} s at most"
    assert lost == 0, figures
    assert slowest_s <= GOES_ON_WITHIN_S, figures
    return figures


def promoted_standby(commit: str, writers: int = 4, seconds: float = 3.0) -> tuple[int, int]:
    """How many writes were acknowledged, and how many of them the standby lacks that was promoted while it lagged."""
    server, url = new_server("wal_level=replica", "max_wal_senders=4", "hot_standby=on")
    standby = Server((*DURABLE, "hot_standby=on"))
    try:
        PostgresStorage(url, SPACE).close()
        server.run("pg_basebackup", "-h", server.folder, "-U", "postgres", "-D", standby.data, "-R", "-c", "fast", "-N")
        standby.start()
        with psycopg.connect(server.url, autocommit=True) as root:
            if commit != "local":
                root.execute("alter system set synchronous_standby_names = '*'")
            root.execute(f"alter system set synchronous_commit = {commit}")
            root.execute("select pg_reload_conf()")
        children = started(f"{url},{standby.folder}&target_session_attrs=read-write", writers)
        time.sleep(seconds)
        with psycopg.connect(standby.url) as root:
            sql = "select pid from pg_stat_activity where backend_type = 'walreceiver'"
            receiver: int = root.execute(sql).fetchone()[0]  # type: ignore[index]
        os.kill(receiver, signal.SIGSTOP)
        time.sleep(seconds)
        server.kill()
        standby.kill()  # what its receiver has not written yet is gone
        standby.start()
        with psycopg.connect(standby.url, autocommit=True) as root:
            root.execute("select pg_promote()")
        at = time.monotonic()
        time.sleep(GOES_ON_WITHIN_S)
        done, _ = stopped(children)
        assert max(when for _, when in done) > at, "no client found the standby"
        lost = check(as_member(standby.url, "chaos"), done)
        return len(done), lost
    finally:
        server.stop()
        standby.stop()


def standbys(seconds: float = 3.0) -> str:
    confirmed, lost = promoted_standby("remote_apply", seconds=seconds)
    local, lost_locally = promoted_standby("local", seconds=seconds)
    figures = (
        f"a stalled standby was promoted: {lost} of {confirmed} lost with remote_apply, "
        f"{lost_locally} of {local} with local"
    )
    assert lost == 0, figures
    assert lost_locally > 0, f"{figures}: the test proves nothing"
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="*", metavar="writers | kills | standby")
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--longest-wait-s", type=float, default=LONGEST_WAIT_S)
    given = parser.parse_args()
    scenes = {
        "writers": lambda: many_writers(given.writers, given.seconds, given.longest_wait_s),
        "kills": lambda: killed_server(given.kills),
        "standby": lambda: standbys(min(given.seconds, 3.0)),
    }
    for name in given.scenes or scenes:
        print(scenes[name](), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
