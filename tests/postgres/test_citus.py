"""A Citus cluster: KEPT_TEST_CITUS_URL names one. Without it only the errors of a server that is none are tried."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import errors, sql

from kept.errors import InvalidInput, NotAllowed
from kept.storage.postgres import PostgresStorage, schema
from kept.storage.postgres.connection import is_lost, translation
from kept.storage.postgres.storage import number_of
from tests.builders import FakeClock, memory, stamp
from tests.cli.shell import Shell
from tests.crash.processes import ROOT
from tests.postgres.citus import MOVE_NEEDS
from tests.postgres.server import (
    as_member,
    as_owner,
    at_node,
    citus_url,
    drop_database,
    new_database,
    nodes,
    superuser_url,
)
from tests.postgres.test_ties import PROJECTS, changes, fill

Raw = psycopg.Connection[Any]
TIED, STRANGER = "kept_citus_ann", "kept_citus_carol"
REFUSED = (
    "connection to the remote node bob@10.0.0.2:5432 failed with the following error: Connection refused\n\tIs it up?"
)
UNKNOWN = (
    "connection to the remote node bob@10.0.0.2:5432 failed with the following error: fe_sendauth: no password supplied"
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A sharded database with rows of each project in every table, and a role that is tied to the first project."""
    citus_url()
    made = new_database()
    fill(as_owner(made))
    schema.grant(as_owner(made), TIED, [(number_of(PROJECTS[0]), PROJECTS[0])])
    yield made
    drop_database(made)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path, FakeClock())


def at_every_node(url: str, role: str) -> Iterator[tuple[str, Raw]]:
    """Yield each node and a connection to it that passes its settings on to the others."""
    for node in nodes(as_owner(url)):
        place = urlsplit(node)
        there = at_node(as_member(url, urlsplit(url).path[1:], role), str(place.hostname), int(place.port or 5432))
        with psycopg.connect(there, autocommit=True, options="-c citus.propagate_set_commands=local") as raw:
            yield f"{place.hostname}:{place.port}", raw


def seen(raw: Raw, table: str, project: str) -> int:
    """How many rows of a project this session sees in a table; a refusal is none."""
    with raw.transaction(force_rollback=True):
        raw.execute(f"set local kept.space = '{number_of(project)}'")
        try:
            return len(raw.execute(f"select * from kept.{table} where space = {number_of(project)}").fetchall())
        except errors.InsufficientPrivilege:
            return 0


def test_the_rows_of_a_project_are_on_one_node(url: str) -> None:
    with psycopg.connect(as_owner(url)) as root:
        found = root.execute(
            "select table_name::text, citus_table_type, distribution_column from citus_tables"
        ).fetchall()
        beside = root.execute(
            "select count(distinct colocation_id) from citus_tables where distribution_column = 'space'"
        )
        assert beside.fetchone() == (1,)
        names = root.execute("select tablename from pg_tables where schemaname = 'kept'").fetchall()
    copied = {"kept.migrations", "kept.ties"}
    assert {table for table, kind, _ in found if kind == "reference"} == copied
    assert {table for table, _, column in found if column == "space"} == {f"kept.{name}" for (name,) in names} - copied


def test_a_tied_role_reaches_its_project_alone_at_every_node_and_on_every_shard(url: str) -> None:
    with psycopg.connect(as_owner(url)) as root:
        shards: dict[str, list[str]] = {}
        asked = "select nodename || ':' || nodeport, shard_name, table_name::text from citus_shards"
        for place, shard, table in root.execute(asked).fetchall():
            if table not in ("kept.migrations", "kept.ties"):
                shards.setdefault(place, []).append(shard.removeprefix("kept."))
    tables = {shard.rpartition("_")[0] for names in shards.values() for shard in names}
    n_own = dict.fromkeys(shards, 0)
    for place, raw in at_every_node(url, TIED):
        for table in tables:
            assert [seen(raw, table, project) for project in PROJECTS] == [1, 0, 0], (place, table)
            assert [changes(raw, table, project) for project in PROJECTS] == [2, 0, 0], (place, table)
        for shard in shards.get(place, ()):
            own, *others = [seen(raw, shard, project) for project in PROJECTS]
            assert others == [0, 0], (place, shard)
            n_own[place] += own
    assert sum(n_own.values()) == len(tables) == 19  # each table has its row on one shard


def test_the_ties_of_another_server_say_which_role_is_meant(url: str) -> None:
    """Nodes number their roles differently, so a tie is the name of a role."""
    told = {tuple(raw.execute("select role from kept.ties").fetchall()) for _, raw in at_every_node(url, "postgres")}
    assert told == {((TIED,),)}


def test_clients_of_all_nodes_write_one_project(url: str) -> None:
    role = str(urlsplit(url).username)
    stores = [
        PostgresStorage(at_node(url, *place.rsplit(":", 1)), "project/notes")
        for place, _ in at_every_node(url, role)  # type: ignore[arg-type]
    ]
    for number, storage in enumerate(stores):
        with storage.writing(stamp()) as tx:
            tx.add(memory(f"note {number}", space="project/notes", uid=f"uid {number}"), "remember")
    first, *rest = stores
    with first.lease("upkeep") as is_held:
        assert is_held
        for other in rest:
            with other.lease("upkeep") as is_held_twice:
                assert not is_held_twice
    for storage in stores:
        with storage.reading() as reader:
            assert {f"note {number}" for number in range(len(stores))} <= {one.content for one in reader.select()}
        storage.close()


def test_tables_and_roles_are_changed_on_the_coordinator(url: str) -> None:
    worker = nodes(as_owner(url))[-1]
    for change in (schema.initialise, lambda there: schema.grant(there, TIED)):
        with pytest.raises(InvalidInput, match="coordinator") as refused:
            change(worker)
        assert str(urlsplit(citus_url()).port) in str(refused.value.hint)


def test_a_role_that_the_workers_do_not_have_is_refused_or_made_there(url: str) -> None:
    owner = "kept_citus_owner"
    with psycopg.connect(as_member(citus_url(), "postgres", "postgres"), autocommit=True) as outside:
        outside.execute(f"create role {STRANGER} login")
    with psycopg.connect(as_owner(url), autocommit=True) as root:
        root.execute(f"create role {owner} login createrole bypassrls")
        root.execute(f"grant {root.info.user} to {owner}")  # who owns the tables
    with pytest.raises(NotAllowed, match=f"Citus does not know the role {STRANGER}") as refused:
        schema.grant(as_member(url, urlsplit(url).path[1:], owner), STRANGER)
    assert "as a superuser" in str(refused.value.hint)
    schema.grant(as_owner(url), STRANGER)
    assert [seen(raw, "memories", PROJECTS[1]) for _, raw in at_every_node(url, STRANGER)] == [1] * len(
        nodes(as_owner(url))
    )
    with psycopg.connect(as_owner(url), autocommit=True) as root:
        for role in (STRANGER, owner):
            root.execute(f"drop owned by {role}")
            root.execute(f"drop role {role}")


@pytest.mark.parametrize(
    "scene",
    [("kill", "--kills", "1", "--seconds", "1"), ("move", "--moves", "2", "--seconds", "1")],
    ids=lambda scene: scene[0],
)
def test_scene(scene: tuple[str, ...]) -> None:
    """No acknowledged write is lost or doubled, and no statement needs two shards."""
    if len(nodes(citus_url())) < MOVE_NEEDS and scene[0] == "move":
        pytest.skip("Shards are moved between two workers while others write at a third, which this cluster lacks.")
    done = subprocess.run(
        [sys.executable, "-m", "tests.postgres.citus", *scene, "--writers", "4"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "0 lost" in done.stdout


def test_a_database_without_the_extension_is_not_sharded_and_the_superuser_is_told_what_to_do(shell: Shell) -> None:
    name = "kept_test_not_citus"
    with psycopg.connect(superuser_url(), autocommit=True) as root:
        root.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    owner = as_owner(as_member(superuser_url(), name))
    told = shell.fails("store", "database", "init", "--citus", owner)
    assert "create extension citus" in told
    assert "shared_preload_libraries" in told
    with psycopg.connect(owner) as root:
        assert root.execute("select to_regnamespace('kept')").fetchone() == (None,)
    drop_database(owner)


def test_a_lost_node_is_waited_for_and_named() -> None:
    error = errors.ConnectionFailure(REFUSED)
    assert is_lost(error)
    told = translation(error, "postgresql://db/kept")
    assert "10.0.0.2:5432 of postgresql://db/kept" in told.message
    assert "Nothing was changed" in told.message


def test_nodes_without_passwords_for_each_other_are_not_waited_for_and_the_error_says_where_these_belong() -> None:
    error = errors.ConnectionFailure(UNKNOWN)
    assert not is_lost(error)
    told = translation(error, "postgresql://db/kept")
    assert "The node 10.0.0.2:5432 of postgresql://db/kept refused bob" in told.message
    assert "pg_dist_authinfo" in str(told.hint)
    assert ".pgpass" in str(told.hint)


def test_a_node_without_copies_of_the_tables_that_every_node_has_is_told_from_a_database_without_tables() -> None:
    for missing, hint in [("kept.ties_102039", "replicate_reference_tables"), ("kept.heads", "store database init")]:
        told = translation(errors.UndefinedTable(f'relation "{missing}" does not exist'), "postgresql://db/kept")
        assert hint in str(told.hint)
