"""The schema in a database, and who may do what in it: made, brought up to date and granted by its owner.

Called by `kept database`; a storage only asks which version is there. Every table gets the same wall: row-level
security, forced also on the owner, lets a transaction see the rows of the space that it has set, and none if it has set
none. Rule: whoever holds the password of a role can set any space, unless that role is tied to its projects: then a
second wall, a restrictive policy of its own, leaves it no others.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from typing import Any

import psycopg
from msgspec import Struct
from psycopg import errors, sql

from kept.errors import InvalidInput, NotAllowed, SchemaTooNew
from kept.storage.postgres.connection import SCHEMA, Connection, SpaceView, place_of, translated, translation

LATEST = 1
MEMBERS = "kept_members"  # the role that may read and write rows, and owns nothing; people's roles are members of it
_LOCK = 0x6B657074  # of whoever changes the schema
_OWN_SPACE = "space = nullif(current_setting('kept.space', true), '')::bigint"


class SchemaStep(Struct, frozen=True):
    """One step of the schema."""

    version: int
    text: str

    @property
    def checksum(self) -> str:
        import hashlib

        return hashlib.blake2b(self.text.encode(), digest_size=16).hexdigest()


class DatabaseStatus(Struct, frozen=True):
    """How a database is, as its role sees it."""

    place: str
    server: str
    role: str
    schema: int  # 0: there is none yet
    latest: int
    is_standby: bool
    is_walled: bool  # every table has forced row-level security, and this role cannot get around it
    spaces: int | None  # None: this role may not see them all


def migrations() -> list[SchemaStep]:
    """All steps this program knows, in order."""
    folder = resources.files("kept.storage.postgres") / "migrations"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [SchemaStep(int(name[:4]), (folder / name).read_text("utf-8")) for name in names]


def initialise(url: str) -> int:
    """Make the schema, or bring it up to date, and make the role of members. Returns how many steps were made.

    Call it as the owner of the database; that role may be another one than those that use it.
    """
    with _changing(url) as connection:
        connection.execute(f"create schema if not exists {SCHEMA}; set local search_path = {SCHEMA}")
        version = _version(connection)
        check_version(version, place_of(url))
        steps = [step for step in migrations() if step.version > version]
        for step in steps:
            connection.execute(sql.SQL(step.text))
            connection.execute(
                "insert into migrations (space, version, checksum, applied_at) values (0, %s, %s, now())",
                (step.version, step.checksum),
            )
        _wall_off(connection)
        for (place,) in connection.execute(_HALFVEC).fetchall():
            connection.execute(f"alter table vectors add column if not exists near {place}.halfvec")
        return len(steps)


def grant(url: str, role: str, spaces: Sequence[tuple[int, str]] = ()) -> None:
    """Let a role use the database; it is made, without a password, if there is none.

    `spaces`, numbers and names: tie the role to these and to those it was tied to before. A role that is tied to none
    can reach all. Call it as the owner of the database.
    """
    with _changing(url) as connection:
        name = sql.Identifier(role)
        asked = "select rolsuper or rolbypassrls from pg_roles where rolname = %s"
        found = connection.execute(asked, (role,)).fetchone()
        if found is None:
            connection.execute(sql.SQL("create role {} login").format(name))
        elif found[0]:
            raise NotAllowed(
                f"The role {role} bypasses row-level security, so nothing would wall it off.", hint="Name another role."
            )
        connection.execute(sql.SQL("grant {} to {}").format(sql.Identifier(MEMBERS), name))
        if spaces:
            _tie(connection, role, [number for number, _ in spaces])


@contextmanager
def _changing(url: str) -> Iterator[Connection]:
    """A transaction of the owner, one at a time."""
    place = place_of(url)
    try:
        with psycopg.connect(url) as connection, connection.transaction():
            connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
            yield connection
    except errors.InsufficientPrivilege as error:
        why = f"The role of this connection may not make tables and roles in {place}."
        hint = "Connect as the owner of the database. To make roles it needs CREATEROLE."
        raise NotAllowed(why, hint=hint) from error
    except psycopg.Error as error:
        raise translation(error, place) from error


def status(url: str) -> DatabaseStatus:
    """How the database is. Changes nothing."""
    place = place_of(url)
    with translated(place), psycopg.connect(url) as connection:
        connection.execute(f"set search_path = {SCHEMA}")
        facts: Any = connection.execute(
            "select current_setting('server_version'), current_user, pg_is_in_recovery(), rolsuper or rolbypassrls "
            "from pg_roles where rolname = current_user"
        ).fetchone()
        version = _version(connection)
        open_tables = connection.execute(_TABLES_WITHOUT_A_WALL, (SCHEMA,)).fetchall()
        bypasses = bool(facts[3])
        spaces: Any = connection.execute("select count(*) from heads").fetchone() if bypasses and version else None
        is_walled = bool(version) and not open_tables and not bypasses
        return DatabaseStatus(
            place, facts[0], facts[1], version, LATEST, facts[2], is_walled, spaces[0] if spaces else None
        )


def check_role(view: SpaceView) -> None:
    """Raise NotAllowed when the role of a connection gets around row-level security."""
    sql = "select %(space)s, rolsuper or rolbypassrls from pg_roles where rolname = current_user"
    if view.fetch(sql)[0][1]:
        raise NotAllowed(
            "This role bypasses row-level security, so it would see every project.",
            hint="Connect as another role: `kept database grant ROLE URL` makes one.",
        )


def check_version(version: int, place: str) -> None:
    """Raise unless this program knows the schema."""
    if version > LATEST:
        raise SchemaTooNew(
            f"{place} was written by a newer kept (schema {version}, this program knows {LATEST}).",
            hint="Upgrade kept.",
        )
    if 0 < version < LATEST:
        raise InvalidInput(
            f"{place} has schema {version}; this program needs {LATEST}.",
            hint="Its owner runs `kept database migrate`.",
        )


# The schema of pgvector, if it is there. Its halfvec has numbers of two bytes, as our vectors do.
_HALFVEC = "select t.typnamespace::regnamespace::text from pg_type t where t.typname = 'halfvec'"
_TABLES_WITHOUT_A_WALL = """
    select c.relname
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = %s and c.relkind in ('r', 'p') and not (c.relrowsecurity and c.relforcerowsecurity)"""


def _version(connection: Connection) -> int:
    """The version of the schema; 0 when there is none."""
    found: Any = connection.execute("select to_regclass('migrations')").fetchone()
    if found[0] is None:
        return 0
    found = connection.execute("select max(version) from migrations where space = 0").fetchone()
    return int(found[0] or 0)


def _tables(connection: Connection) -> list[str]:
    found: Any = connection.execute("select tablename from pg_tables where schemaname = %s", (SCHEMA,)).fetchall()
    return sorted(name for (name,) in found)


def _wall_off(connection: Connection) -> None:
    """Put the wall around every table, and let members in."""
    found = connection.execute("select 1 from pg_roles where rolname = %s", (MEMBERS,)).fetchone()
    if found is None:
        try:
            with connection.transaction():
                connection.execute(f"create role {MEMBERS} nologin")
        except errors.DuplicateObject:
            pass  # another database of this server has just made it
    connection.execute(f"grant usage on schema {SCHEMA} to {MEMBERS}")
    for table in _tables(connection):
        condition = "true" if table == "migrations" else _OWN_SPACE
        allowed = "select" if table == "migrations" else "select, insert, update, delete"
        if connection.info.server_version >= 170000 and table != "migrations":
            allowed += ", maintain"  # to vacuum after an erasure
        connection.execute(f"alter table {table} enable row level security")
        connection.execute(f"alter table {table} force row level security")
        connection.execute(f"drop policy if exists own_space on {table}")
        connection.execute(f"create policy own_space on {table} using ({condition}) with check ({condition})")
        connection.execute(f"grant {allowed} on {table} to {MEMBERS}")


def _tie(connection: Connection, role: str, numbers: Sequence[int]) -> None:
    """Leave a role no other spaces than these and those it was tied to before."""
    policy, name = sql.Identifier(f"tied_{role}"), sql.Identifier(role)
    before: Any = connection.execute(
        "select substring(qual from '{(.*)}') from pg_policies where schemaname = %s and policyname = %s limit 1",
        (SCHEMA, f"tied_{role}"),
    ).fetchone()
    known = {int(number) for number in before[0].split(",")} if before and before[0] else set()
    allowed = ",".join(str(number) for number in sorted(known | set(numbers)))
    for table in _tables(connection):
        if table != "migrations":
            where = sql.Identifier(SCHEMA, table)
            condition = sql.SQL("(space = any ({}::bigint[]))").format(sql.Literal(f"{{{allowed}}}"))
            connection.execute(sql.SQL("drop policy if exists {} on {}").format(policy, where))
            connection.execute(
                sql.SQL("create policy {} on {} as restrictive to {} using {} with check {}").format(
                    policy, where, name, condition, condition
                )
            )
