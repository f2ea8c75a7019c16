"""A role that is tied to projects reaches these alone by raw SQL, on each PostgreSQL that is installed.

The attacker holds the password of a tied role and no other. Every attempt is one way to leave the tie, tried for every
table and every project.
"""

import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from psycopg import errors, sql

from kept.errors import Busy, InvalidInput, NotAllowed
from kept.storage.postgres import PostgresStorage, citus, schema, walls
from kept.storage.postgres.reader import pgvector
from kept.storage.postgres.storage import number_of
from kept.storage.postgres.walls import Keepers
from tests.builders import memory, stamp
from tests.postgres.server import Server, as_member, initialised, is_cluster, superuser_url, superuser_url_of

Raw = psycopg.Connection[Any]
PROJECTS = tuple(f"project/{name}" for name in ("web-app", "billing", "payroll"))
INSTALLED = Path("/usr/lib/postgresql")  # where Debian puts each major version
TABLES = (
    "select tablename from pg_tables where schemaname = 'kept' and tablename not in ('migrations', 'ties') order by 1"
)
COLUMNS = """
    select column_name, data_type
    from information_schema.columns
    where table_schema = 'kept' and table_name = %s and is_nullable = 'NO'"""
VALUES = {
    "bigint": "1",
    "integer": "1",
    "smallint": "1",
    "double precision": "1",
    "text": "'x'",
    "bytea": "'x'",
    "boolean": "true",
    "ARRAY": "'{}'",
    "timestamp with time zone": "now()",
}


@pytest.fixture(scope="module", params=["suite", "installed"])
def root(request: pytest.FixtureRequest) -> str:
    """The URL of the superuser: of the server of the suite, and of the oldest PostgreSQL of this machine."""
    if request.param == "suite" and is_cluster(superuser_url()):
        pytest.skip("Citus copies no databases: test_citus.py tries ties on a cluster.")
    if request.param == "suite":
        return superuser_url()
    found = sorted(INSTALLED.glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if not found:
        pytest.skip(f"No PostgreSQL in {INSTALLED}: ties were tried on the server of the suite only.")
    return superuser_url_of(found[0].parent)


@pytest.fixture(scope="module")
def template(root: str) -> Iterator[str]:
    """The name of a database with Kept's schema, and rows of each project in every table."""
    name = "kept_ties_template"
    initialised(root, name)
    fill(as_member(root, name, "postgres"))
    yield name
    with psycopg.connect(root, autocommit=True) as connection:
        connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
def owner(root: str, template: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of the owner of a copy of that database."""
    name = f"kept_ties_{zlib.crc32(request.node.name.encode())}"
    with psycopg.connect(root, autocommit=True) as connection:
        make = sql.SQL("create database {} template {}")
        connection.execute(make.format(sql.Identifier(name), sql.Identifier(template)))
    yield as_member(root, name, "postgres")
    with psycopg.connect(root, autocommit=True) as connection:
        connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))
        for (role,) in connection.execute("select rolname from pg_roles where rolname like 'tied %'").fetchall():
            connection.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))


@pytest.fixture
def lone(root: str) -> Iterator[str]:
    """The URL of the superuser of a server of its own, of the same version, where no other database is of Kept."""
    server = Server(binaries=None if root == superuser_url() else INSTALLED / str(version_of(root)) / "bin")
    server.create()
    server.start()
    yield server.url
    server.stop()


def version_of(root: str) -> int:
    with psycopg.connect(root) as connection:
        return connection.info.server_version // 10_000


def as_before(root: str, name: str) -> str:
    """The URL of the owner of a new database, as Kept 0.2 made it."""
    initialised(root, name)
    owner = as_member(root, name, "postgres")
    fill(owner)
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("drop owned by kept_test_member")
        make_as_before(connection)
        for keeper in (Keepers(connection).members, Keepers(connection).tied):
            connection.execute(f"drop owned by {keeper}")
            connection.execute(f"drop role {keeper}")
    return owner


def reached(owner: str, role: str) -> list[int]:
    with connected(owner, role) as raw:
        return [rows(raw, "memories", project) for project in PROJECTS]


def fill(owner: str) -> None:
    """Put one row of each project into every table that has none."""
    with psycopg.connect(owner, autocommit=True) as connection:
        for (table,) in connection.execute(TABLES).fetchall():
            columns = connection.execute(COLUMNS, (table,)).fetchall()
            names = ", ".join(f'"{name}"' for name, _ in columns)
            for project in PROJECTS:
                own = {"space": str(number_of(project)), "name": f"'{project}'", "last_ids": "'{}'"}
                values = ", ".join(own.get(name, VALUES[kind]) for name, kind in columns)
                connection.execute(f"insert into kept.{table} ({names}) values ({values}) on conflict do nothing")


def connected(owner: str, role: str, **options: str) -> Raw:
    database = psycopg.conninfo.conninfo_to_dict(owner)["dbname"]
    url = as_member(owner, str(database), "role").replace("role@", "@")
    return psycopg.connect(url, user=role, autocommit=True, **options)


def grant(owner: str, role: str, projects: Sequence[str]) -> None:
    schema.grant(owner, role, [(number_of(project), project) for project in projects])


def grant_carelessly(owner: str, role: str, projects: Sequence[str]) -> None:
    """The same where an operator has then let it become the role of members, so that the policy stands alone."""
    grant(owner, role, projects)
    with psycopg.connect(owner, autocommit=True) as connection:
        how = "with inherit true, set true" if connection.info.server_version >= 160000 else ""
        members = Keepers(connection).members
        connection.execute(f'grant {members} to "{role}" {how}')
        give_rights_to(connection, members)


def give_rights_to(connection: Raw, role: str) -> None:
    """Give a role the rights that `kept_members` had until Kept 0.3."""
    connection.execute(f"grant usage on schema kept to {role}")
    connection.execute(f"grant select, insert, update, delete on all tables in schema kept to {role}")


def make_as_before(connection: Raw) -> None:
    """Leave the database as Kept 0.2 made it: one role of members for the whole server, ties as policies."""
    with suppress(errors.DuplicateObject):
        connection.execute("create role kept_members nologin")
    unpack_postings(connection)
    own_space = """
        space = nullif(current_setting('kept.space', true), '')::bigint
        and (select pg_has_role('kept_members', 'member') or current_user = 'postgres')"""
    for table in (*tables(connection), "ties", "migrations"):
        connection.execute(f"drop policy if exists own_space on kept.{table}")
        if table not in ("ties", "migrations"):
            connection.execute(f"create policy own_space on kept.{table} using ({own_space}) with check ({own_space})")
    connection.execute("create policy own_space on kept.migrations using (true)")
    connection.execute("drop table if exists kept.ties")
    connection.execute("drop function if exists kept.is_tied")
    connection.execute("delete from kept.migrations where version > 1")
    give_rights_to(connection, "kept_members")


def unpack_postings(connection: Raw) -> None:
    """Leave the postings as they were before migration 3: a row for each word and memory."""
    connection.execute("alter table kept.postings no force row level security")
    connection.execute("create table kept.before as select * from kept.postings")
    connection.execute("drop table kept.postings")
    connection.execute("alter table kept.heads drop column packed")
    connection.execute(
        """
        create table kept.postings (
          space bigint not null,
          shelf smallint not null,
          word text collate "C" not null,
          id bigint not null,
          primary key (space, shelf, word, id)
        )"""
    )
    connection.execute(
        """
        insert into kept.postings (space, shelf, word, id)
        select space, shelf, word, block * 256 + get_byte(places, place)
        from kept.before, generate_series(0, length(places) - 1) place"""
    )
    connection.execute("drop table kept.before")
    connection.execute("alter table kept.postings enable row level security, force row level security")


def members_of(owner: str) -> str:
    with psycopg.connect(owner) as connection:
        return Keepers(connection).members


def tables(connection: Raw) -> list[str]:
    return [name for (name,) in connection.execute(TABLES).fetchall()]


def rows(connection: Raw, table: str, project: str) -> int:
    """How many rows of the project this session sees in the table. A refusal is none."""
    try:
        connection.execute(f"set kept.space = '{number_of(project)}'")
        found = connection.execute(f"select * from kept.{table} where space = {number_of(project)}").fetchall()
    except (errors.InsufficientPrivilege, errors.UndefinedTable):
        return 0
    return len(found)


def changes(connection: Raw, table: str, project: str) -> int:
    """How many rows of the project this session can change and delete. Nothing stays changed."""
    n_changed = 0
    for statement in (f"update kept.{table} set space = space", f"delete from kept.{table}"):
        with suppress(errors.InsufficientPrivilege, errors.UndefinedTable), connection.transaction(force_rollback=True):
            connection.execute(f"set local kept.space = '{number_of(project)}'")
            n_changed += connection.execute(f"{statement} where space = {number_of(project)}").rowcount
    return n_changed


def after(*statements: str) -> Callable[[Raw], None]:
    """Run these first; a statement that is refused is part of the attempt."""

    def attempt(raw: Raw) -> None:
        keepers = Keepers(raw)
        for statement in statements:
            with suppress(psycopg.Error):
                raw.execute(statement.replace("MEMBERS", keepers.members).replace("TIED", keepers.tied))

    return attempt


ATTEMPTS = {
    "nothing": after(),
    "set role": after("set role MEMBERS"),
    "set role of the owner": after("set role postgres", "set role pg_database_owner", "set role pg_read_all_data"),
    "set role by a function": after("select set_config('role', 'MEMBERS', false)"),
    "set role of the tied": after("set role TIED"),
    "reset role": after("set role MEMBERS", "reset role", "set role none"),
    "session authorization": after("set session authorization postgres", "set session authorization MEMBERS"),
    "row security off": after("set row_security = off"),
    "both": after("set role MEMBERS", "set row_security = off"),
    "another search path": after("set search_path = pg_temp, kept", "set role MEMBERS"),
    "settings of the login": after("alter role current_user set role = 'MEMBERS'"),
    "drop owned": after("drop owned by current_user", "drop owned by MEMBERS", "set role MEMBERS"),
    "reassign owned": after("reassign owned by MEMBERS to current_user", "grant MEMBERS to current_user"),
    "an operator": after(
        "create function pg_temp.yes(bigint, bigint) returns boolean language sql as 'select true'",
        "create operator pg_temp.= (leftarg = bigint, rightarg = bigint, procedure = pg_temp.yes)",
        "create function pg_temp.\"session_user\"() returns name language sql as 'select ''postgres''::name'",
        "set search_path = pg_temp, pg_catalog, kept",
    ),
}


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_a_tied_role_reaches_its_projects_alone_whatever_it_sets(attempt: Callable[[Raw], None], owner: str) -> None:
    grant_carelessly(owner, "tied one", PROJECTS[:1])
    for options in (
        {},
        {"options": f"-c role={members_of(owner)}"},
        {},
    ):  # the last: with what the first two left behind
        with suppress(psycopg.OperationalError), connected(owner, "tied one", **options) as raw:
            attempt(raw)
            assert len(tables(raw)) == 19
            for table in tables(raw):
                for project in PROJECTS[1:]:
                    assert rows(raw, table, project) == 0, (table, project)
                    assert changes(raw, table, project) == 0, (table, project)
    if attempt is ATTEMPTS["drop owned"]:  # by which a role gives its rights away
        grant(owner, "tied one", PROJECTS[:1])
    with connected(owner, "tied one", options="-c role=none") as raw:
        for table in tables(raw):
            assert rows(raw, table, PROJECTS[0]) == 1, table
            assert changes(raw, table, PROJECTS[0]) == 2, table


@pytest.mark.parametrize("role", ["tied one", "tied o'ne", 'tied "two" \\ ü'])
def test_a_role_that_drops_its_own_policies_stays_tied_after_a_migration(role: str, owner: str) -> None:
    grant(owner, role, PROJECTS[:1])
    with connected(owner, role) as raw:
        raw.execute("drop owned by current_user")
    schema.initialise(owner)
    with connected(owner, role) as raw:
        assert [rows(raw, "memories", project) for project in PROJECTS] == [1, 0, 0]


def test_a_tied_role_cannot_become_the_role_of_members(owner: str) -> None:
    grant(owner, "tied one", PROJECTS[:1])
    with connected(owner, "tied one") as raw:
        with pytest.raises(errors.InsufficientPrivilege):
            raw.execute(f"set role {Keepers(raw).members}")
        with suppress(errors.InsufficientPrivilege):  # before 16 it can become the role of the tied, which sees nothing
            raw.execute(f"set role {Keepers(raw).tied}")
            assert [rows(raw, "memories", project) for project in PROJECTS] == [0, 0, 0]


def with_a_cursor(raw: Raw) -> list[Any]:
    raw.execute(f"set role {Keepers(raw).members}")
    raw.execute("declare c cursor for select content from kept.memories")
    raw.execute("reset role")
    return raw.execute("fetch all from c").fetchall()


def with_a_cursor_that_is_kept(raw: Raw) -> list[Any]:
    raw.execute(f"set role {Keepers(raw).members}")
    raw.execute("declare c cursor with hold for select content from kept.memories")
    raw.execute("commit")
    raw.execute("reset role")
    return raw.execute("fetch all from c").fetchall()


def with_a_prepared_statement(raw: Raw) -> list[Any]:
    raw.execute(f"set role {Keepers(raw).members}")
    raw.execute("prepare p as select content from kept.memories")
    raw.execute("execute p")
    raw.execute("reset role")
    return raw.execute("execute p").fetchall()


def with_a_function_of_the_members(raw: Raw) -> list[Any]:
    raw.execute(f"set role {Keepers(raw).members}")
    body = "select content from kept.memories"
    raw.execute(f"create function pg_temp.f() returns setof text language sql security definer as '{body}'")
    raw.execute("reset role")
    return raw.execute("select pg_temp.f()").fetchall()


def with_a_view_of_the_members(raw: Raw) -> list[Any]:
    raw.execute(f"set role {Keepers(raw).members}")
    raw.execute("create temp view v as select content from kept.memories")
    raw.execute("grant select on v to public")
    raw.execute("reset role")
    return raw.execute("select * from v").fetchall()


def with_a_space_set_within_the_statement(raw: Raw) -> list[Any]:
    raw.execute(f"set kept.space = '{number_of(PROJECTS[0])}'")
    other = f"set_config('kept.space', '{number_of(PROJECTS[1])}', false)"
    return raw.execute(
        f"select m.content from (select {other} union all select {other} offset 0) s(x), "
        f"lateral (select content, space from kept.memories where x is not null) m "
        f"where space = {number_of(PROJECTS[1])}"
    ).fetchall()


def with_a_function_that_tells(raw: Raw) -> list[Any]:
    """It is cheap, so that the planner would call it before the policies, were it allowed to."""
    body = "begin raise notice '%', $1; return true; end"
    create = f"create function pg_temp.tell(text) returns boolean language plpgsql cost 0.0000001 as $f${body}$f$"
    raw.execute(create)
    heard: list[Any] = []
    raw.add_notice_handler(lambda notice: heard.append(notice.message_primary))
    raw.execute("select 1 from kept.memories where pg_temp.tell(content)")
    return heard


def with_a_copy(raw: Raw) -> list[Any]:
    with raw.cursor().copy("copy kept.memories to stdout") as copy:
        return [*copy]


def with_the_table_as_xml(raw: Raw) -> list[Any]:
    found: Any = raw.execute("select table_to_xml('kept.memories', true, true, '')").fetchone()
    return [found[0]] if "<content>" in found[0] else []


def with_statistics(raw: Raw) -> list[Any]:
    return raw.execute("select most_common_vals, histogram_bounds from pg_stats where schemaname = 'kept'").fetchall()


def with_statistics_of_the_members(raw: Raw) -> list[Any]:
    raw.execute(f"set role {Keepers(raw).members}")
    return with_statistics(raw)


TRICKS = [
    with_a_cursor,
    with_a_cursor_that_is_kept,
    with_a_prepared_statement,
    with_a_function_of_the_members,
    with_a_view_of_the_members,
    with_a_space_set_within_the_statement,
    with_a_function_that_tells,
    with_a_copy,
    with_the_table_as_xml,
    with_statistics,
    with_statistics_of_the_members,
]


@pytest.mark.parametrize("trick", TRICKS, ids=lambda trick: trick.__name__)
def test_a_tied_role_is_told_nothing_of_other_projects(trick: Callable[[Raw], list[Any]], owner: str) -> None:
    grant_carelessly(owner, "tied one", PROJECTS[:1])
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("analyze")
    with connected(owner, "tied one") as raw:
        raw.execute("begin")
        raw.execute(f"set kept.space = '{number_of(PROJECTS[1])}'")
        found: list[Any] = []
        with suppress(errors.InsufficientPrivilege, errors.FeatureNotSupported):
            found = trick(raw)
        assert found == []


def test_whether_another_project_exists_is_not_told_by_an_insertion(owner: str) -> None:
    grant(owner, "tied one", PROJECTS[:1])
    with connected(owner, "tied one") as raw:
        for project in (*PROJECTS[1:], "project/no-such-one"):
            raw.execute(f"set kept.space = '{number_of(project)}'")
            with pytest.raises(errors.InsufficientPrivilege):
                raw.execute(
                    "insert into kept.counters (space, name, number) values (%s, 'x', 1)", (number_of(project),)
                )


def test_a_tied_role_can_neither_rewrite_nor_rebuild_tables(owner: str) -> None:
    grant(owner, "tied one", ())
    grant(owner, "tied one", PROJECTS[:1])
    with connected(owner, "tied one") as raw:
        for statement in (
            "reindex table kept.memories",
            "cluster kept.memories using memories_pkey",
            "truncate kept.memories",
            "create table kept.mine (x int)",
            "create index on kept.memories (content)",
            "create policy mine on kept.memories using (true)",
            "create table pg_temp.mine (space bigint, id bigint, foreign key (space, id) references kept.memories)",
        ):
            with pytest.raises((errors.InsufficientPrivilege, errors.InvalidTableDefinition)):
                raw.execute(statement)
        warnings: list[Any] = []
        raw.add_notice_handler(lambda notice: warnings.append(notice.message_primary))
        for statement in ("vacuum full kept.memories", "vacuum kept.memories", "analyze kept.memories"):
            raw.execute(statement)
        assert len(warnings) == 3, warnings  # only a warning: "permission denied", or who could do it


@pytest.mark.parametrize("seed", range(2))
def test_two_owners_on_one_server_let_nobody_into_the_database_of_the_other(seed: int, root: str) -> None:
    """Random grants, tied and untied, in two databases; each role then tries both by raw SQL."""
    names = [f"kept_ties_{which}" for which in ("first", "second")]
    roles = [f"tied {letter}" for letter in "abcde"]
    try:
        grant_at_random(random.Random(seed), root, names, roles)
    finally:
        with psycopg.connect(root, autocommit=True) as connection:
            for name in names:
                connection.execute(f"drop database if exists {name} with (force)")
            for role in (*roles, *(f"{name}_owner" for name in names)):
                connection.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(role)))
                connection.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))


def grant_at_random(walk: random.Random, root: str, names: list[str], roles: list[str]) -> None:
    owners = {}
    with psycopg.connect(root, autocommit=True) as connection:
        for name in names:
            connection.execute(f"create role {name}_owner login createrole")
            connection.execute(f"create database {name} owner {name}_owner")
            owners[name] = as_member(root, name, f"{name}_owner")
    for name in names:
        schema.initialise(owners[name])
        fill(as_member(root, name, "postgres"))
    with psycopg.connect(root, autocommit=True) as connection:
        for role in roles:  # else it would be the role of the owner who granted it first
            connection.execute(sql.SQL("create role {} login").format(sql.Identifier(role)))
            for name in names:
                how = "with admin option" if connection.info.server_version >= 160000 else ""
                connection.execute(sql.SQL(f"grant {{}} to {name}_owner {how}").format(sql.Identifier(role)))
    reach: dict[tuple[str, str], set[str]] = {(name, role): set() for name in names for role in roles}
    tied: set[tuple[str, str]] = set()
    for _ in range(14):
        name, role = walk.choice(names), walk.choice(roles)
        move = walk.choice(["tie", "tie", "let in", "migrate"])
        if move == "migrate":
            schema.initialise(owners[name])
            continue
        projects = walk.sample(PROJECTS, walk.choice([1, 2])) if move == "tie" else []
        grant(owners[name], role, projects)
        if projects and (name, role) not in tied:
            reach[name, role] = set()
            tied.add((name, role))
        reach[name, role] |= {*projects} if (name, role) in tied else {*PROJECTS}
    for (name, role), projects in reach.items():
        attempts = [after(), after("set role MEMBERS"), after("set role TIED"), after(f"set role {name}_owner")]
        for attempt in attempts:
            with connected(owners[name], role) as raw:
                attempt(raw)
                found = {project for table in tables(raw) for project in PROJECTS if rows(raw, table, project)}
                found |= {project for project in PROJECTS if changes(raw, "memories", project)}
                assert found <= projects, (name, role)
                assert attempt is not attempts[0] or found == projects, (name, role)
    assert schema.status(as_member(root, names[0], "postgres")).crossings == []
    for name in names:
        refused = [role for role in roles if not reach[name, role]]
        for role in refused:
            url = as_member(root, name, quote(role))
            with pytest.raises(NotAllowed, match=name):
                PostgresStorage(url, PROJECTS[0])


def test_status_names_the_tables_that_a_tied_role_can_read(owner: str) -> None:
    grant(owner, "tied one", PROJECTS[:1])
    tied = as_member(owner, str(psycopg.conninfo.conninfo_to_dict(owner)["dbname"]), "tied%20one")
    assert schema.status(owner).crossings == []
    assert schema.status(tied).is_walled
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("create policy careless on kept.memories using (true)")
    assert [line.split(" of ")[0] for line in schema.status(owner).crossings or ()] == ["tied one reads memories"] * 2
    assert not schema.status(tied).is_walled


def test_a_copy_of_a_database_gets_its_own_roles_when_it_is_migrated(owner: str, root: str) -> None:
    grant(owner, "tied one", PROJECTS[:1])
    grant(owner, "tied not", ())
    name = str(psycopg.conninfo.conninfo_to_dict(owner)["dbname"])
    with psycopg.connect(root, autocommit=True) as connection:
        connection.execute(f"create database kept_ties_copy template {name}")
    copy = as_member(root, "kept_ties_copy", "postgres")
    try:
        for is_migrated in (False, True):
            with connected(copy, "tied one") as raw, connected(copy, "tied not") as free:
                assert [rows(raw, "memories", project) for project in PROJECTS] == [1, 0, 0]
                assert [rows(free, "memories", project) for project in PROJECTS] == [1, 1, 1]
            assert schema.status(as_member(root, "kept_ties_copy", "tied%20one")).is_walled == is_migrated
            schema.initialise(copy)
        assert members_of(copy) != members_of(owner)
    finally:
        with psycopg.connect(root, autocommit=True) as connection:
            connection.execute("drop database kept_ties_copy with (force)")


def test_an_owner_who_is_no_superuser_ties_and_migrates(root: str) -> None:
    """As the page about PostgreSQL sets it up. The role of members was made by that owner."""
    with psycopg.connect(root, autocommit=True) as connection:
        connection.execute("drop database if exists kept_ties_owned with (force)")
        connection.execute("drop role if exists kept_ties_owner")
        connection.execute("create role kept_ties_owner login createrole")
        connection.execute("create database kept_ties_owned owner kept_ties_owner")
    owner = as_member(root, "kept_ties_owned", "kept_ties_owner")
    for _ in range(2):
        schema.initialise(owner)
        grant(owner, "tied one", PROJECTS[:1])
        grant(owner, "tied not", ())
    fill(as_member(root, "kept_ties_owned", "postgres"))
    with connected(owner, "tied one") as raw, connected(owner, "tied not") as free:
        assert [rows(raw, "memories", project) for project in PROJECTS] == [1, 0, 0]
        assert [rows(free, "memories", project) for project in PROJECTS] == [1, 1, 1]
    with psycopg.connect(root, autocommit=True) as connection:
        connection.execute("drop database kept_ties_owned with (force)")
        connection.execute('drop role "tied one"')
        connection.execute('drop role "tied not"')
        connection.execute("drop owned by kept_ties_owner cascade")
        connection.execute("drop role kept_ties_owner")


def test_status_names_roles_that_could_let_themselves_in(owner: str) -> None:
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute('create role "tied maker" login createrole')
        is_old = connection.info.server_version < 160000
    assert ("tied maker" in schema.status(owner).makers) is is_old


def test_roles_that_could_remove_a_tie_are_refused(owner: str) -> None:
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute('create role "tied maker" login createrole')
        connection.execute('create role "tied copy" login replication')
        connection.execute('create role "tied root" login')
        connection.execute('grant postgres to "tied root"')
    for role in ("tied maker", "tied copy", "tied root", "postgres"):
        with pytest.raises(NotAllowed, match=role):
            grant(owner, role, PROJECTS[:1])
    with pytest.raises(InvalidInput, match="63"):
        grant(owner, "tied " + "x" * 60, PROJECTS[:1])


def test_roles_that_postgres_itself_defines_make_a_tie_impossible(owner: str) -> None:
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute('create role "tied group" nologin')
        asked = "select rolname from pg_roles where starts_with(rolname, 'pg_') and rolname <> 'pg_database_owner'"
        predefined = [name for (name,) in connection.execute(asked).fetchall()]
        assert "pg_execute_server_program" in predefined
        for name in predefined:
            for member in (f"tied {name}", f"tied by group {name}"):
                connection.execute(sql.SQL("create role {} login").format(sql.Identifier(member)))
            connection.execute(sql.SQL("grant {} to {}").format(sql.Identifier(name), sql.Identifier(f"tied {name}")))
            group, member = sql.Identifier(f"tied {name}"), sql.Identifier(f"tied by group {name}")
            connection.execute(sql.SQL("grant {} to {}").format(group, member))
    for name in predefined:
        for member in (f"tied {name}", f"tied by group {name}"):
            with pytest.raises(NotAllowed, match=name):
                grant(owner, member, PROJECTS[:1])
    grant(owner, "tied pg_monitor", ())  # every project: nothing is promised
    grant(owner, "tied one", PROJECTS[:1])
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute('grant pg_read_server_files to "tied one"')
    with pytest.raises(NotAllowed, match="pg_read_server_files"):
        grant(owner, "tied one", ())


def test_a_tied_role_and_a_role_that_it_can_act_as_are_not_both_let_in(owner: str) -> None:
    with psycopg.connect(owner, autocommit=True) as connection:
        for name in ("tied staff", "tied team", "tied one", "tied two"):
            connection.execute(sql.SQL("create role {} login").format(sql.Identifier(name)))
        connection.execute('grant "tied staff" to "tied team"')
        connection.execute('grant "tied team" to "tied one"')
        connection.execute('grant "tied team" to "tied two"')
    grant(owner, "tied staff", ())
    for _ in range(2):
        with pytest.raises(NotAllowed, match=r"tied one.*tied staff"):
            grant(owner, "tied one", PROJECTS[:1])
    with connected(owner, "tied one") as raw:
        assert raw.execute("select 1 from pg_policies where policyname like 'tied%'").fetchall() == []
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute('revoke "tied staff" from "tied team"')
    grant(owner, "tied one", PROJECTS[:1])
    grant(owner, "tied two", ())
    with pytest.raises(NotAllowed, match=r"tied one.*tied team"):
        grant(owner, "tied team", ())
    with pytest.raises(NotAllowed, match=r"tied one.*tied team"):
        grant(owner, "tied team", PROJECTS[:1])
    grant(owner, "tied two", ())  # others are not in the way


PLANT_PLACES = ("pg_temp", "public", '"tied one"')
PLANTED_TYPES = {
    "domain": "create domain {place}.halfvec as text default 'x' check ({place}.note(value))",
    "range": "create type {place}.halfvec as range (subtype = text)",
    "composite": "create type {place}.halfvec as (x text)",
    "table": "create table {place}.halfvec (x text)",
    "enum": "create type {place}.halfvec as enum ('x')",
}
# The names of PostgreSQL that the owner's statements use, for a search path that finds others first.
PLANTED_NAMES = """
    create function {place}.starts_with(name, text) returns boolean language sql as 'select {place}.note($1::text)';
    create function {place}.current_setting(text, boolean) returns text language sql
      as 'select case when {place}.note($1) then ''1'' end';
    create function {place}.pg_has_role(oid, oid, text) returns boolean language sql as 'select {place}.note($3)';
    create function {place}.same(name, text) returns boolean language sql as 'select {place}.note($2)';
    create operator {place}.= (leftarg = name, rightarg = text, procedure = {place}.same);
    create table {place}.pg_roles (rolname text);
    create table {place}.heads (space bigint, name text);
    create table {place}.vectors (space bigint)"""
NOTE = """
    create function {place}.note(value text) returns boolean language plpgsql as $f$
    begin
      if current_user <> 'tied one' or session_user <> 'tied one' then
        insert into public.noted values (current_user, session_user);
        execute 'alter role "tied one" superuser';
      end if;
      return true;
    end $f$"""


def plant(raw: Raw, place: str, *statements: str) -> None:
    own = number_of(PROJECTS[0])
    raw.execute(f"set kept.space = '{own}'")
    for statement in (NOTE, *statements):
        raw.execute(statement.replace("{place}", place))


@pytest.mark.parametrize("place", PLANT_PLACES)
@pytest.mark.parametrize("kind", PLANTED_TYPES)
def test_a_planted_type_is_not_taken_for_that_of_pgvector(kind: str, place: str, owner: str) -> None:
    grant(owner, "tied one", PROJECTS[:1])
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("create table public.noted (who text, session text); grant all on public.noted to public")
        connection.execute("grant create on schema public to public")
        connection.execute('create schema "tied one" authorization "tied one"')
        database = connection.info.dbname
    careless = f"{owner}&options={quote(f'-csearch_path={place},public'.replace(' ', chr(92) + ' '))}"
    with connected(owner, "tied one") as raw:
        plant(raw, place, PLANTED_TYPES[kind], PLANTED_NAMES)
        for _ in range(2):
            schema.initialise(careless)
            grant(careless, "tied one", PROJECTS[:1])
            schema.status(careless)
            check_nothing_was_planted(owner)
            if place != "pg_temp":  # as Kept did until 0.3
                with psycopg.connect(owner, autocommit=True) as connection:
                    connection.execute("delete from kept.vectors")
                    connection.execute(f"alter table kept.vectors add column near {place}.halfvec")
                storage = PostgresStorage(as_member(owner, database), PROJECTS[0])
                with storage.reading() as reader:
                    assert pgvector(reader.view) is None
                storage.close()


def check_nothing_was_planted(owner: str) -> None:
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("set search_path = pg_catalog, pg_temp")
        assert connection.execute("select * from public.noted").fetchall() == []
        asked = "select rolname from pg_roles where rolsuper and starts_with(rolname, 'tied')"
        assert connection.execute(asked).fetchall() == []
        near = "select 1 from information_schema.columns where table_schema = 'kept' and column_name = 'near'"
        assert connection.execute(near).fetchall() == []


@pytest.mark.parametrize("whose", ["MEMBERS", "tied staff"])
@pytest.mark.parametrize("is_careless", [False, True])
def test_a_function_that_autovacuum_runs_reads_no_other_project(whose: str, is_careless: bool, owner: str) -> None:
    """A session of a superuser that analyses a table of the tied role, as autovacuum does."""
    whose = whose.replace("MEMBERS", members_of(owner))
    grant(owner, "tied staff", ())
    grant_carelessly(owner, "tied one", PROJECTS[:1])
    other = number_of(PROJECTS[1])
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("grant create on schema public to public")
        connection.execute('grant "tied staff" to "tied one"')  # PostgreSQL lets an operator do this after the tie
        if not is_careless:
            schema.initialise(owner)
    with connected(owner, "tied one") as raw:
        for statement in (
            "create table public.loot (n bigint)",
            "grant all on public.loot to public",
            "create table public.bait (i int)",
            "create view public.peek as select * from kept.memories",
            f'alter view public.peek owner to "{whose}"',
            "create function public.draw(i int) returns int language sql immutable as 'select i'",
            "create index on public.bait (public.draw(i))",
            "insert into public.bait select generate_series(1, 10)",
            f"""create function public.take(source text) returns void language plpgsql security definer as $f$
              declare n bigint;
              begin
                perform set_config('kept.space', '{other}', true);
                execute 'select count(*) from ' || source into n;
                insert into public.loot values (n);
              exception when others then insert into public.loot values (0);
              end $f$""",
            f'alter function public.take(text) owner to "{whose}"',
            """create or replace function public.draw(i int) returns int language plpgsql immutable as $f$
              begin
                if session_user <> 'tied one' then
                  perform public.take('public.peek'); perform public.take('kept.memories');
                end if;
                return i;
              end $f$""",
        ):
            with suppress(errors.InsufficientPrivilege):  # after a migration it can give nothing to the role of members
                raw.execute(statement)
        with psycopg.connect(owner, autocommit=True) as connection:
            connection.execute("analyze public.bait")
        assert set(raw.execute("select n from public.loot").fetchall()) == {(0,)}


NAMED = """
    select c.table_name, c.column_name
    from information_schema.columns c
    where c.table_schema = 'kept' and c.table_name <> 'migrations' and c.data_type in ('text', 'bytea')
      and c.column_name not in ('tier', 'scope', 'status', 'trust')"""


def fill_much(owner: str, project: str, text: str) -> None:
    """Put 400 rows of the project into every table but heads, with this in each text and at its beginning in keys."""
    with psycopg.connect(owner, autocommit=True) as connection:
        for table in tables(connection):
            columns = connection.execute(COLUMNS, (table,)).fetchall()
            values = VALUES | {"bigint": "g", "integer": "g", "text": f"'{text}'", "bytea": f"'{text}'"}
            own = {"space": str(number_of(project)), "shelf": "0"}
            own |= dict.fromkeys(("uid", "mark", "name", "session", "message_id"), f"'{text}' || g")
            chosen = ", ".join(own.get(name, values[kind]) for name, kind in columns)
            names = ", ".join(f'"{name}"' for name, _ in columns)
            count = 400 if table != "heads" else 1
            connection.execute(
                f"insert into kept.{table} ({names}) select {chosen} from generate_series(2, {count + 1}) g "
                "on conflict do nothing"
            )


def expected_rows(raw: Raw, table: str, column: str, text: str) -> list[int]:
    """How many rows the planner expects with this text, and with texts that begin with it."""
    found = []
    for condition in (f"= '{text}'", f"between '{text}' and '{text}zzz'", f"in ('{text}', '{text}1')"):
        plan: Any = raw.execute(
            f'explain (format json) select 1 from kept.{table} where "{column}" {condition}'
        ).fetchone()
        found.append(plan[0][0]["Plan"]["Plan Rows"])
    return found


def test_the_planner_tells_a_tied_role_nothing_about_texts_of_other_projects(owner: str) -> None:
    fill_much(owner, PROJECTS[0], "mine")
    fill_much(owner, PROJECTS[1], "severance")
    grant(owner, "tied one", PROJECTS[:1])
    status = as_member(owner, str(psycopg.conninfo.conninfo_to_dict(owner)["dbname"]), "tied%20one")
    for state in ("new", "as before", "migrated"):
        with psycopg.connect(owner, autocommit=True) as connection:
            if state == "as before":
                for table, column in connection.execute(NAMED).fetchall():
                    connection.execute(f'alter table kept.{table} alter column "{column}" set statistics -1')
                storages = "select attrelid::regclass::text, attname, attstorage, attcollation from pg_attribute"
                storages += " where attrelid::regclass::text like 'kept.%' and attnum > 0 order by 1, 2"
                before = connection.execute(storages).fetchall()
            if state == "migrated":
                schema.initialise(owner)
                assert connection.execute(storages).fetchall() == before
            columns = connection.execute(NAMED).fetchall()
            connection.execute("analyze")
        assert schema.status(status).is_walled == (state != "as before")
        with connected(owner, "tied one") as raw:
            raw.execute(f"set kept.space = '{number_of(PROJECTS[0])}'")
            told = [
                (table, column)
                for table, column in columns
                if expected_rows(raw, table, column, "severance") != expected_rows(raw, table, column, "nonsense!")
            ]
        assert bool(told) == (state == "as before"), (state, told)
    assert len(columns) > 60


def test_a_session_that_holds_a_lock_makes_the_owner_wait_for_a_while_only(
    owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "CHANGE_WAIT_S", 1)
    grant(owner, "tied one", PROJECTS[:1])
    with connected(owner, "tied one") as raw:
        raw.execute("begin")
        for statement in (f"select pg_advisory_xact_lock({schema._LOCK})", "lock table kept.memories"):
            raw.execute(statement)
            with pytest.raises(Busy, match="more than 1 s"):
                schema.initialise(owner)
            raw.execute("rollback")
            raw.execute("begin")


def test_a_renamed_role_stays_tied_and_migrating_renews_its_tie(owner: str) -> None:
    grant(owner, "tied one", PROJECTS[:1])
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute('alter role "tied one" rename to "tied two"')
    with connected(owner, "tied two") as raw:
        assert [rows(raw, "memories", project) for project in PROJECTS] == [1, 0, 0]
    schema.initialise(owner)
    grant(owner, "tied two", PROJECTS[1:2])
    with connected(owner, "tied two") as raw:
        assert [rows(raw, "memories", project) for project in PROJECTS] == [1, 1, 0]


def test_a_login_that_becomes_a_tied_role_is_tied(owner: str) -> None:
    """As a server that logs in once for all its tenants."""
    grant(owner, "tied one", PROJECTS[:1])
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute('create role "tied app" login noinherit')
        connection.execute('grant "tied one" to "tied app"')
    with connected(owner, "tied app") as raw:
        raw.execute('set role "tied one"')
        assert [rows(raw, "memories", project) for project in PROJECTS] == [1, 0, 0]


def test_a_person_in_a_tied_group_is_tied(owner: str) -> None:
    grant(owner, "tied group", PROJECTS[:1])
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute('create role "tied ann" login')
        connection.execute('grant "tied group" to "tied ann"')
    for attempt in (after(), after('set role "tied group"'), after("set role MEMBERS")):
        with connected(owner, "tied ann") as raw:
            attempt(raw)
            for table in tables(raw):
                for project in PROJECTS[1:]:
                    assert rows(raw, table, project) == 0, (table, project)
                    assert changes(raw, table, project) == 0, (table, project)
    with connected(owner, "tied ann") as raw:
        assert rows(raw, "memories", PROJECTS[0]) == 1


TIE_OF_BEFORE = """
    create policy {policy} on kept.{table} as restrictive to {role}
    using (space = any ({numbers}::bigint[])) with check (space = any ({numbers}::bigint[]))"""


def tie_as_before(owner: str, role: str, project: str) -> None:
    """Leave the database as Kept 0.1 left it after `grant ROLE --for PROJECT`, where it may be on 17 or newer."""
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(sql.SQL("create role {} login").format(sql.Identifier(role)))
        make_as_before(connection)
        connection.execute(sql.SQL("grant kept_members to {}").format(sql.Identifier(role)))
        for table in tables(connection):
            if connection.info.server_version >= 170000:
                connection.execute(f"grant maintain on kept.{table} to kept_members")
            connection.execute(
                sql.SQL(TIE_OF_BEFORE).format(
                    policy=sql.Identifier(f"tied_{role}"),
                    table=sql.Identifier(table),
                    role=sql.Identifier(role),
                    numbers=sql.Literal(f"{{{number_of(project)}}}"),
                )
            )


def test_ties_of_before_are_safe_after_migrating(owner: str) -> None:
    tie_as_before(owner, "tied before", PROJECTS[0])
    with connected(owner, "tied before") as raw:
        raw.execute("set role kept_members")
        assert rows(raw, "memories", PROJECTS[1]) == 1, "the hole is there"
    status = as_member(owner, str(psycopg.conninfo.conninfo_to_dict(owner)["dbname"]), "tied%20before")
    assert not schema.status(status).is_walled
    assert schema.initialise(owner).steps == 2  # ties, and packed postings
    assert schema.status(status).is_walled
    with connected(owner, "tied before") as raw:
        for table in tables(raw):
            raw.execute("reset role")
            assert [rows(raw, table, project) for project in PROJECTS] == [1, 0, 0], table
            raw.execute("set role kept_members")
            assert [rows(raw, table, project) for project in PROJECTS] == [0, 0, 0], table
        raw.execute("reset role")
        warnings: list[Any] = []
        raw.add_notice_handler(warnings.append)
        raw.execute("vacuum kept.memories")
        assert warnings
    with psycopg.connect(owner) as connection:
        asked = "select count(*) from pg_policies where schemaname = 'kept' and policyname = 'tied_tied before'"
        assert connection.execute(asked).fetchone() == (0,)


def test_migrating_keeps_policies_of_others_and_the_tie_of_a_role_with_an_awkward_name(owner: str) -> None:
    """Before, a policy was named after its role."""
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("create policy audit on kept.heads as restrictive using (space <> 0)")
        connection.execute("drop role if exists logins")
    tie_as_before(owner, "logins", PROJECTS[0])
    schema.initialise(owner)
    grant(owner, "tied one", PROJECTS[1:2])
    with connected(owner, "logins") as raw, connected(owner, "tied one") as other:
        assert [rows(raw, "memories", project) for project in PROJECTS] == [1, 0, 0]
        assert [rows(other, "memories", project) for project in PROJECTS] == [0, 1, 0]
    with psycopg.connect(owner, autocommit=True) as connection:
        assert connection.execute("select 1 from pg_policies where policyname = 'audit'").fetchone()
        connection.execute("drop owned by logins; drop role logins")


def grant_as_before(owner: str, *roles: str) -> None:
    with psycopg.connect(owner, autocommit=True) as connection:
        for role in roles:
            with suppress(errors.DuplicateObject):
                connection.execute(sql.SQL("create role {} login").format(sql.Identifier(role)))
            connection.execute(sql.SQL("grant kept_members to {}").format(sql.Identifier(role)))


def tie_again_as_before(owner: str, role: str, project: str) -> None:
    """Tie a role that Kept 0.2 let in."""
    with psycopg.connect(owner, autocommit=True) as connection:
        for table in tables(connection):
            connection.execute(
                sql.SQL(TIE_OF_BEFORE).format(
                    policy=sql.Identifier(f"tied_{role}"),
                    table=sql.Identifier(table),
                    role=sql.Identifier(role),
                    numbers=sql.Literal(f"{{{number_of(project)}}}"),
                )
            )


def test_an_untied_role_that_was_granted_before_keeps_its_access(lone: str) -> None:
    owner = as_before(lone, "kept_only")
    grant_as_before(owner, "tied not")
    assert schema.initialise(owner).shut_out == []
    assert reached(owner, "tied not") == [1, 1, 1]


def test_a_role_of_another_database_of_before_is_not_let_in(lone: str) -> None:
    """The role of the whole server does not say in which database a member was let in."""
    first, second = as_before(lone, "kept_first"), as_before(lone, "kept_second")
    grant_as_before(first, "tied ann", "tied robot")
    tie_again_as_before(second, "tied robot", PROJECTS[1])
    assert schema.initialise(first).shut_out == ["tied ann", "tied robot"]
    assert schema.initialise(second).shut_out == ["tied ann"]
    assert reached(first, "tied ann") == reached(second, "tied ann") == reached(first, "tied robot") == [0, 0, 0]
    assert reached(second, "tied robot") == [0, 1, 0]
    for owner in (first, second):
        assert schema.initialise(owner).shut_out == []
    grant(first, "tied ann", ())
    grant(first, "tied robot", PROJECTS[:1])
    schema.initialise(first)
    assert (reached(first, "tied ann"), reached(first, "tied robot")) == ([1, 1, 1], [1, 0, 0])


def test_a_role_that_is_tied_in_another_database_of_before_is_not_let_in_to_every_project(lone: str) -> None:
    first, second = as_before(lone, "kept_first"), as_before(lone, "kept_second")
    grant_as_before(first, "tied ann", "tied robot")
    tie_again_as_before(second, "tied robot", PROJECTS[1])
    with psycopg.connect(second, autocommit=True) as connection:
        connection.execute("drop owned by kept_members")
    assert schema.initialise(first).shut_out == ["tied robot"]
    assert (reached(first, "tied ann"), reached(first, "tied robot")) == ([1, 1, 1], [0, 0, 0])


@pytest.mark.parametrize("is_a_copy", [False, True])
def test_a_tied_role_whose_tie_was_lost_is_shut_out_by_a_migration(is_a_copy: bool, owner: str, root: str) -> None:
    """As after a dump was restored on a server that did not have all roles: the table `ties` is empty then."""
    grant(owner, "tied one", PROJECTS[:1])
    grant(owner, "tied not", ())
    grant(owner, "tied other", ())
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("delete from kept.ties")
        connection.execute(f'revoke {Keepers(connection).members} from "tied other"')
    name = str(psycopg.conninfo.conninfo_to_dict(owner)["dbname"])
    place = as_member(root, "kept_ties_lost", "postgres") if is_a_copy else owner
    with psycopg.connect(root, autocommit=True) as connection:
        if is_a_copy:
            connection.execute(f"create database kept_ties_lost template {name}")
    try:
        if is_a_copy:
            with pytest.raises(NotAllowed, match="tied one, tied other"):
                grant(place, "tied not", ())
        assert schema.initialise(place).shut_out == ["tied one", "tied other"]
        assert schema.initialise(place).shut_out == []
        assert (reached(place, "tied one"), reached(place, "tied other")) == ([0, 0, 0], [0, 0, 0])
        assert reached(place, "tied not") == [1, 1, 1]
        grant(place, "tied one", PROJECTS[:1])
        assert reached(place, "tied one") == [1, 0, 0]
    finally:
        with psycopg.connect(root, autocommit=True) as connection:
            connection.execute("drop database if exists kept_ties_lost with (force)")


def test_rights_from_other_grants_let_no_role_in(owner: str) -> None:
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute('create role "tied not" login')
        give_rights_to(connection, '"tied not"')
    assert schema.initialise(owner).shut_out == ["tied not"]
    with connected(owner, "tied not") as raw, pytest.raises(errors.InsufficientPrivilege):
        raw.execute("select 1 from kept.memories")


def test_a_role_that_is_renamed_where_ties_are_kept_by_name_is_shut_out(
    owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a cluster of Citus, whose nodes give a role different numbers."""
    grant(owner, "tied one", PROJECTS[:1])
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("alter table kept.ties no force row level security")
        connection.execute("alter table kept.ties alter column role type text")
    monkeypatch.setattr(citus, "copy_of_ties", lambda connection: "kept.ties")
    monkeypatch.setattr(citus, "distribute", lambda connection: None)
    monkeypatch.setattr(walls, "forget_values_of_shards", lambda connection: None)
    assert schema.initialise(owner).shut_out == []
    assert reached(owner, "tied one") == [1, 0, 0]
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute('alter role "tied one" rename to "tied two"')
    assert reached(owner, "tied two") == [0, 0, 0]
    assert schema.initialise(owner).shut_out == ["tied two"]
    assert reached(owner, "tied two") == [0, 0, 0]


def test_the_ties_are_for_the_owner_alone(owner: str) -> None:
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute('create role "tied one" login')
        connection.execute('create role "tied dba" login')
        connection.execute('grant postgres to "tied dba"')
    grant(owner, "tied one", PROJECTS[:1])
    status = as_member(owner, str(psycopg.conninfo.conninfo_to_dict(owner)["dbname"]), "tied%20one")
    try:
        assert schema.status(status).is_walled
        with psycopg.connect(owner, autocommit=True) as connection:
            connection.execute('grant all on all tables in schema kept to "tied one"')
            connection.execute("grant select on kept.ties to public")
        assert not schema.status(status).is_walled
        with connected(owner, "tied one") as raw:
            assert raw.execute("select * from kept.ties").fetchall() == []
            for statement in (
                f"insert into kept.ties values ({number_of(PROJECTS[1])}, '\"tied one\"')",
                "insert into kept.migrations (space, version, checksum, applied_at) values (0, 99, 'x', now())",
            ):
                with pytest.raises(errors.InsufficientPrivilege):
                    raw.execute(statement)
        schema.initialise(owner)
        assert schema.status(status).is_walled
        with connected(owner, "tied one") as raw, pytest.raises(errors.InsufficientPrivilege):
            raw.execute("select * from kept.ties")
        for table in ("ties", "migrations"):
            with psycopg.connect(owner, autocommit=True) as connection:
                connection.execute(f"drop policy own_space on kept.{table}")
                connection.execute(f"create policy own_space on kept.{table} using (true) with check (true)")
            assert not schema.status(status).is_walled
            schema.initialise(owner)
            assert schema.status(status).is_walled
    finally:
        with psycopg.connect(owner, autocommit=True) as connection:
            connection.execute('revoke postgres from "tied dba"')


def test_rights_by_default_do_not_reach_ties_and_functions_need_none(owner: str) -> None:
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("drop schema kept cascade")
        connection.execute('create role "tied one" login')
        connection.execute('alter default privileges grant select, insert, update, delete on tables to "tied one"')
        connection.execute("alter default privileges revoke execute on functions from public")
    schema.initialise(owner)
    grant(owner, "tied one", PROJECTS[:1])
    fill(owner)
    with connected(owner, "tied one") as raw:
        with pytest.raises(errors.InsufficientPrivilege):
            raw.execute("select * from kept.ties")
        assert [rows(raw, "memories", project) for project in PROJECTS] == [1, 0, 0]


def test_a_renamed_owner_grants_after_the_wall_names_it(root: str) -> None:
    with psycopg.connect(root, autocommit=True) as connection:
        connection.execute("drop database if exists kept_ties_renamed with (force)")
        connection.execute("create role kept_ties_old login createrole")
        connection.execute("create database kept_ties_renamed owner kept_ties_old")
    old = as_member(root, "kept_ties_renamed", "kept_ties_old")
    new = as_member(root, "kept_ties_renamed", "kept_ties_new")
    try:
        schema.initialise(old)
        fill(as_member(root, "kept_ties_renamed", "postgres"))
        grant(old, "tied one", PROJECTS[:1])
        with psycopg.connect(root, autocommit=True) as connection:
            connection.execute("alter role kept_ties_old rename to kept_ties_new")
        grant(new, "tied one", ())
        assert reached(new, "tied one") == [1, 0, 0]
        assert schema.initialise(new) == schema.SchemaChanges(0, [])
    finally:
        with psycopg.connect(root, autocommit=True) as connection:
            connection.execute("drop database kept_ties_renamed with (force)")
            for name in ("tied one", "kept_ties_old", "kept_ties_new"):
                connection.execute(sql.SQL("drop role if exists {}").format(sql.Identifier(name)))


def names_of(walk: random.Random) -> list[str]:
    """Names of roles of which several share their first 58, 60 and 62 characters."""
    stem = "tied " + "".join(walk.choice("abcä 'Ü\"") for _ in range(40))
    names = {"tied a", 'tied "q"'}
    for shared in (53, 58, 60, 62):
        start = stem.ljust(shared, "x").encode()[:shared].decode(errors="ignore")
        names |= {start + end for end in "12"}
    return sorted(names)


@pytest.mark.parametrize("seed", range(3))
def test_after_any_sequence_of_grants_and_migrations_each_role_reaches_exactly_its_projects(
    seed: int, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = random.Random(seed)
    steps = schema.migrations()
    monkeypatch.setattr(schema, "migrations", lambda: steps)
    names = names_of(walk)
    ties: dict[str, set[str]] = {}
    members: set[str] = set()
    for _ in range(12):
        role = walk.choice(names)
        moves = [
            "tie",
            "tie",
            "tie",
            "let in",
            "revoke",
            "add a table",
            "migrate",
            "plant",
            "rights of before",
            "group",
        ]
        move = walk.choice(moves)
        if move == "tie":
            projects = walk.sample(PROJECTS, walk.choice([1, 1, 2]))
            grant(owner, role, projects)
            ties.setdefault(role, set()).update(projects)
            members.add(role)
        elif move == "let in":
            grant(owner, role, ())
            members.add(role)
        elif move == "revoke" and role in members:
            with psycopg.connect(owner, autocommit=True) as connection:
                connection.execute(sql.SQL("drop owned by {}").format(sql.Identifier(role)))
            members.discard(role)
        elif move == "add a table":
            number = steps[-1].version + 1
            table = f"create table extra_{number} (space bigint not null, id bigint not null, primary key (space, id))"
            steps.append(schema.SchemaStep(number, table))
            monkeypatch.setattr(schema, "LATEST", number)
            assert schema.initialise(owner).steps == 1
            fill(owner)
        elif move == "migrate":
            assert schema.initialise(owner).steps == 0
        elif move == "plant" and role in members:
            with connected(owner, role) as raw:
                raw.execute("create domain pg_temp.halfvec as text check (current_user = session_user)")
                assert schema.initialise(owner).steps == 0
        elif move == "rights of before":
            with psycopg.connect(owner, autocommit=True) as connection:
                give_rights_to(connection, Keepers(connection).members)
            assert schema.initialise(owner).steps == 0
        elif move == "group" and role in ties:
            with psycopg.connect(owner, autocommit=True) as connection:
                group = sql.Identifier("tied group of all")
                with suppress(errors.DuplicateObject):
                    connection.execute(sql.SQL("create role {}").format(group))
                connection.execute(sql.SQL("grant {} to {}").format(group, sql.Identifier(role)))
            with pytest.raises(NotAllowed, match="tied group of all"):
                grant(owner, "tied group of all", ())
        with psycopg.connect(owner) as connection:
            near = "select 1 from pg_attribute where attrelid = 'kept.vectors'::regclass and attname = 'near'"
            assert connection.execute(near).fetchall() == []
        check(owner, {name: ties.get(name, set(PROJECTS)) if name in members else set() for name in members | {*ties}})


def check(owner: str, reach: dict[str, set[str]]) -> None:
    for role, projects in reach.items():
        with connected(owner, role) as raw:
            for table in tables(raw):
                found = {project for project in PROJECTS if rows(raw, table, project)}
                assert found == projects, (role, table)
            with suppress(errors.InsufficientPrivilege):
                raw.execute(f"set role {Keepers(raw).members}")
                assert not {project for project in PROJECTS if rows(raw, "memories", project)} - projects
            raw.execute("reset role")
            for table in (tables(raw)[0], tables(raw)[-1], "memories"):
                found = {project for project in PROJECTS if changes(raw, table, project)}
                assert found == projects, (role, table)


def test_a_tied_role_works_with_kept(owner: str) -> None:
    grant(owner, "tied one", ["project/new"])
    url = as_member(owner, str(psycopg.conninfo.conninfo_to_dict(owner)["dbname"]), "tied%20one")
    storage = PostgresStorage(url, "project/new")
    with storage.writing(stamp()) as tx:
        tx.erase(tx.add(memory("ours", space=storage.space), "x"))
    storage.scrub()
    storage.close()
    with pytest.raises(NotAllowed):
        PostgresStorage(url, "project/other")
