"""Behind a real pgbouncer in transaction mode: the same promises, and nothing of one transaction is left for the next.

Skipped where pgbouncer is not installed.
"""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

import kept
from kept.storage.postgres import PostgresStorage
from tests.builders import FakeClock
from tests.contract.promises import PROMISES, Bench
from tests.postgres.server import MEMBER, UNPRIVILEGED, emptied, shared_database

PROGRAM = shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
BACKENDS = 4  # fewer than the connections that the tests open
SETTINGS = """
[databases]
{database} = host={host} dbname={database}
[pgbouncer]
pool_mode = transaction
default_pool_size = {backends}
listen_addr =
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users
logfile = {folder}/log
ignore_startup_parameters = extra_float_digits
"""


@pytest.fixture(scope="module")
def pooled() -> Iterator[str]:
    """The URL of the shared database through pgbouncer."""
    if PROGRAM is None:
        pytest.skip("pgbouncer is not installed: nothing behind a pooler was tested. `apt-get install pgbouncer`.")
    direct = psycopg.conninfo.conninfo_to_dict(shared_database())
    user = UNPRIVILEGED if Path("/proc/self").owner() == "root" else None  # it does not start as root
    folder = Path(tempfile.mkdtemp(prefix="kept-pgbouncer-"))
    if user:
        shutil.chown(folder, user)
    settings = folder / "pgbouncer.ini"
    told = {"database": direct["dbname"], "host": direct["host"], "folder": folder, "backends": BACKENDS}
    settings.write_text(SETTINGS.format(**told))
    (folder / "users").write_text(f'"{MEMBER}" ""\n')
    process = subprocess.Popen([PROGRAM, str(settings)], user=user, cwd=folder, stderr=subprocess.DEVNULL)
    url = f"postgresql://{MEMBER}@/{direct['dbname']}?host={folder}&port=6432"
    try:
        _wait(url)
        yield url
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(folder)


def _wait(url: str) -> None:
    end = time.monotonic() + 20
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


class PooledBench:
    """How a promise gets at the storage."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._opened: list[PostgresStorage] = []

    def open(self, space: str = "project/p1", *, write_wait_s: float = 30.0) -> PostgresStorage:
        self._opened.append(PostgresStorage(self._url, space, write_wait_s=write_wait_s))
        return self._opened[-1]

    def reopen(self, storage: PostgresStorage) -> PostgresStorage:
        storage.close()
        return self.open(storage.space)

    def close(self) -> None:
        for storage in self._opened:
            storage.close()


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__.removeprefix("promise_"))
def test_a_storage_behind_pgbouncer_keeps_every_promise(pooled: str, promise: Callable[[Bench], None]) -> None:
    emptied(shared_database())
    bench = PooledBench(pooled)
    try:
        promise(bench)  # type: ignore[arg-type]
    finally:
        bench.close()


def test_a_walk_of_two_projects_on_the_same_backends(pooled: str, tmp_path: Path) -> None:
    emptied(shared_database())
    clock = FakeClock()
    with (
        kept.open(pooled, project="web-app", home=tmp_path / "ann", clock=clock) as ann,
        kept.open(pooled, project="billing", home=tmp_path / "bob", clock=clock) as bob,
    ):
        for number in range(12):  # more often than the driver waits until it prepares a statement
            ann.remember(f"The web app reads port {number} from its settings")
            bob.remember_many([f"Invoice run {number} starts at {hour} o'clock" for hour in range(3)])
            assert ann.recall(f"port {number} settings").hits
            assert not ann.recall("invoice run")
            assert bob.recall("invoice run").hits
        ann.forget(ann.recall("port 3 settings").hits[0].ref)
        ann.undo()
        assert len(ann.list(limit=100)) == 12
        assert len(bob.list(limit=100)) == 36


def test_nothing_is_set_on_a_backend_when_its_transaction_is_over(pooled: str) -> None:
    storage = PostgresStorage(pooled, "project/p1")
    with storage.reading() as reader:
        reader.count()
    storage.scrub()  # as after an erasure
    with psycopg.connect(pooled, autocommit=True, prepare_threshold=None) as connection:
        limits = {connection.execute("show statement_timeout").fetchone() for _ in range(8)}
        assert limits == {("0",)}
        left = [connection.execute("select current_setting('kept.space', true)").fetchone() for _ in range(8)]
        assert {row[0] for row in left if row is not None} <= {None, ""}
        assert connection.execute("select count(*) from kept.heads").fetchone() == (0,)
    storage.close()


def test_no_statement_is_prepared_behind_a_pooler(pooled: str) -> None:
    """The next transaction may be on a backend that has not prepared it, or has prepared another of that name."""
    storage = PostgresStorage(pooled, "project/p1")
    for _ in range(8):
        with storage.reading() as reader:
            assert reader.view.fetch("select count(*), %(space)s from pg_prepared_statements")[0][0] == 0
    storage.close()
