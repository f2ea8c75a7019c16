"""The schema in a database: made, brought up to date and granted by its owner.

Called by `kept store database`; a storage only asks which version is there. walls.py puts the same wall around every
table.
Rule: a role can set any space, unless it is tied to projects.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from typing import Any

import psycopg
from msgspec import Struct
from psycopg import errors, sql

from kept.errors import Busy, InvalidInput, NotAllowed, NotFound, SchemaTooNew
from kept.storage.postgres import citus, walls
from kept.storage.postgres.connection import (
    HALFVEC,
    SCHEMA,
    SETTINGS,
    Connection,
    connected,
    place_of,
    translated,
    translation,
)

LATEST = 3
CHANGE_WAIT_S = 30  # for a lock while the schema is changed or a role is let in
LONGEST_NAME = 63  # bytes; PostgreSQL cuts longer names, so that two of them could become one
_LOCK = 0x6B657074  # of whoever changes the schema


class SchemaStep(Struct, frozen=True):
    """One step of the schema."""

    version: int
    text: str

    @property
    def statements(self) -> list[str]:
        """Return each statement on its own, as a sharded database needs it. No semicolon stands inside of one."""
        return [statement for statement in re.sub(r"--[^\n]*", "", self.text).split(";") if statement.strip()]

    @property
    def checksum(self) -> str:
        return hashlib.blake2b(self.text.encode(), digest_size=16).hexdigest()


class SchemaChanges(Struct, frozen=True):
    """Changes by a migration."""

    steps: int
    shut_out: list[str]  # roles that had rights and may not be let in to every project


class DatabaseStatus(Struct, frozen=True):
    """How a database is, as its role sees it."""

    place: str
    server: str
    role: str
    schema: int  # 0: there is none yet
    latest: int
    is_standby: bool
    is_walled: bool  # every table has the wall of this program
    sees_all: bool  # this role gets around it, as a superuser does
    spaces: int | None  # None: this role may not see them all
    makers: list[str] = []  # roles that could let themselves in, as CREATEROLE can before PostgreSQL 16
    crossings: list[str] | None = None  # tables of other projects that tied roles could read; None: not tried


def migrations() -> list[SchemaStep]:
    """All steps this program knows, in order."""
    folder = resources.files("kept.storage.postgres") / "migrations"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [SchemaStep(int(name[:4]), (folder / name).read_text("utf-8")) for name in names]


def initialise(url: str, *, sharded: bool = False) -> SchemaChanges:
    """Make the schema, or bring it up to date, and wall it off. Return how many steps were made, and who was shut out.

    Call it as the owner of the database; that role may be another one than those that use it. `sharded`: spread the
    tables over the workers of a Citus cluster; a database that is sharded stays so.
    """
    with _changing(url) as connection:
        if sharded:
            citus.check_can_distribute(connection, place_of(url))
        connection.execute(f"create schema if not exists {SCHEMA}")
        version = _version(connection)
        _check_known(version, place_of(url))
        steps = [step for step in migrations() if step.version > version]
        for step in steps:
            _take(connection, step)
        shut_out = walls.wall_off(connection, sharded=sharded)
        _add_halfvec(connection)
        walls.forget_values(connection)
        sharded = sharded or citus.copy_of_ties(connection) is not None
        if sharded:
            citus.distribute(connection)
            walls.make_is_tied(connection)
    if sharded:
        with translated(place_of(url)), connected(url, autocommit=True) as connection:
            walls.forget_values_of_shards(connection)
    return SchemaChanges(len(steps), shut_out)


def grant(url: str, role: str, spaces: Sequence[tuple[int, str]] = ()) -> list[str]:
    """Let a role use the database; it is made, without a password, if there is none. Return what it is tied to.

    `spaces`, numbers and names: tie the role to these and to those it was tied to before. A role that is tied to none
    can reach all. Call it as the owner of the database.
    """
    if not role.strip() or role.startswith("pg_"):
        raise InvalidInput(
            f"{role!r} cannot be the name of a role that uses Kept.", hint="PostgreSQL keeps pg_… for itself."
        )
    if len(role.encode()) > LONGEST_NAME:
        raise InvalidInput(
            f"The role name {role} has {len(role.encode())} bytes; PostgreSQL knows {LONGEST_NAME}.",
            hint="Choose a shorter name.",
        )
    with _changing(url) as connection:
        check_version(_version(connection), place_of(url))
        if connection.execute("select 1 from pg_roles where rolname = %s", (role,)).fetchone() is None:
            connection.execute(sql.SQL("create role {} login").format(sql.Identifier(role)))
            walls.forget_ties(connection, role)
        citus.share_role(connection, role)
        tied = walls.let_in(connection, role, [number for number, _ in spaces])
        return _names_of(connection, tied, dict(spaces))


def revoke(url: str, role: str, spaces: Sequence[tuple[int, str]] = ()) -> list[str]:
    """Take projects from a role that is tied to them; without `spaces`, everything. Return those that are left.

    A role that is tied to nothing any more may not use the database. Call it as the owner of the database.
    """
    with _changing(url) as connection:
        check_version(_version(connection), place_of(url))
        if connection.execute("select 1 from pg_roles where rolname = %s", (role,)).fetchone() is None:
            raise NotFound(f"There is no role {role!r} on this server.", hint="Names of roles are exact.")
        left = walls.shut_out(connection, role, None if not spaces else [number for number, _ in spaces])
        return _names_of(connection, left, dict(spaces))


def known_spaces(url: str, asked: Sequence[tuple[int, str]]) -> list[str]:
    """Return the names of spaces: those of these numbers that are there, and all that roles are tied to.

    Row-level security shows the owner one space at a time, so other ones are not listed.
    """
    with translated(place_of(url)), connected(url) as connection:
        for name, value in SETTINGS.items():
            connection.execute(f"set {name} = {value}")
        check_version(_version(connection), place_of(url))
        tied = {number for numbers in walls.ties_of(connection).values() for number in numbers}
        found = _found_names(connection, tied | {number for number, _ in asked})
        connection.rollback()
        return sorted(found.values())


def _take(connection: Connection, step: SchemaStep) -> None:
    for statement in step.statements:
        connection.execute(sql.SQL(statement))
    # The policy may name the owner of before; walls.py forces it again.
    connection.execute("alter table migrations no force row level security")
    connection.execute(
        "insert into migrations (space, version, checksum, applied_at) values (0, %s, %s, now())",
        (step.version, step.checksum),
    )


@contextmanager
def _changing(url: str) -> Iterator[Connection]:
    """A transaction of the owner, one at a time."""
    place = place_of(url)
    try:
        with connected(url) as connection, connection.transaction():
            # Not a schema that others may create in: their functions and operators could stand in for PostgreSQL's.
            for name, value in SETTINGS.items():
                connection.execute(f"set local {name} = {value}")
            citus.check_is_coordinator(connection, place)
            connection.execute(f"set local lock_timeout = '{CHANGE_WAIT_S}s'")
            connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
            yield connection
    except errors.LockNotAvailable as error:
        why = f"Another session has locked the schema or a table of Kept in {place} for more than {CHANGE_WAIT_S} s."
        hint = "Nothing was changed. Try again; the view pg_locks shows which session it is."
        raise Busy(why, hint=hint) from error
    except errors.InsufficientPrivilege as error:
        why = f"The role of this connection may not make tables and roles in {place}."
        hint = "Connect as the owner of the database. To make roles it needs CREATEROLE."
        raise NotAllowed(why, hint=hint) from error
    except psycopg.Error as error:
        raise translation(error, place) from error


def status(url: str) -> DatabaseStatus:
    """How the database is. Changes nothing."""
    place = place_of(url)
    with translated(place), connected(url) as connection:
        for name, value in SETTINGS.items():
            connection.execute(f"set {name} = {value}")
        facts: Any = connection.execute(
            "select current_setting('server_version'), current_user, pg_is_in_recovery(), rolsuper or rolbypassrls, "
            "rolsuper from pg_roles where rolname = current_user"
        ).fetchone()
        server, role, is_standby, bypasses, is_superuser = facts
        version = _version(connection)
        is_walled = bool(version) and not walls.open_tables(connection)
        n_spaces = _counted(connection) if bypasses and version else None
        tries = is_superuser and version == LATEST and not is_standby
        crossings = walls.crossings(connection) if tries else None
        makers = [name for (name,) in connection.execute(_MAKERS).fetchall()]
        connection.rollback()
        return DatabaseStatus(
            place=place,
            server=server,
            role=role,
            schema=version,
            latest=LATEST,
            is_standby=is_standby,
            is_walled=is_walled,
            sees_all=bypasses,
            spaces=n_spaces,
            makers=makers,
            crossings=crossings,
        )


def _counted(connection: Connection) -> int:
    """Return the number of spaces."""
    found: Any = connection.execute("select count(*) from heads").fetchone()
    return int(found[0])


IS_SHARDED = 3  # its place in the row of ROLE_ASKED
ROLE_ASKED = f"""
    select
      rolsuper or rolbypassrls,
      has_schema_privilege(n.oid, 'usage') and (n.nspowner = pg_roles.oid or coalesce((
        select bool_or(pg_has_role(current_user, k.oid, 'member'))
        from pg_database d
        join pg_roles k on k.rolname in ('kept_members_' || d.oid, 'kept_tied_' || d.oid)
        where d.datname = current_database()
          -- a worker of Citus has another number for the database than the roles are named by
          and not exists (select from pg_extension where extname = 'citus')), true)),
      rolname,
      exists (select from pg_extension where extname = 'citus'),
      pg_backend_pid()
    from pg_roles left join pg_namespace n on n.nspname = '{SCHEMA}'
    where rolname = current_user"""


def check_role(found: Sequence[Any], place: str) -> None:
    """Raise NotAllowed when the role of a connection gets around row-level security, or was not let in.

    `found` is the row of ROLE_ASKED.
    """
    bypasses, is_let_in, role, *_ = found
    if bypasses:
        raise NotAllowed(
            "This role bypasses row-level security, so it would see every project.",
            hint="Connect as another role: `kept store database grant ROLE URL` makes one.",
        )
    if is_let_in is False:  # None: there is no schema yet
        raise NotAllowed(
            f"The role {role} may not use {place}.", hint=f"Its owner can run `kept store database grant {role} URL`."
        )


def check_version(version: int, place: str) -> None:
    """Raise unless this program knows the schema and needs no newer one."""
    _check_known(version, place)
    if 0 < version < LATEST:
        raise InvalidInput(
            f"{place} has schema {version}; this program needs {LATEST}.",
            hint="Its owner runs `kept store database migrate`.",
        )


def _check_known(version: int, place: str) -> None:
    if version > LATEST:
        raise SchemaTooNew(
            f"{place} was written by a newer kept (schema {version}, this program knows {LATEST}).",
            hint="Upgrade kept.",
        )


_MAKERS = f"""
    select rolname
    from pg_roles
    where rolcreaterole and not rolsuper and current_setting('server_version_num')::int < 160000
      and oid not in (select nspowner from pg_namespace where nspname = '{SCHEMA}')
    order by rolname"""
_NEAR = """
    select a.atttypid
    from pg_attribute a
    where a.attrelid = to_regclass(%s) and a.attname = 'near' and not a.attisdropped"""


def _version(connection: Connection) -> int:
    """The version of the schema; 0 when there is none."""
    found: Any = connection.execute(f"select to_regclass('{SCHEMA}.migrations')").fetchone()
    if found[0] is None:
        return 0
    found = connection.execute("select max(version) from migrations where space = 0").fetchone()
    return int(found[0] or 0)


def _add_halfvec(connection: Connection) -> None:
    """Keep vectors for pgvector as well, where it is installed. A column of a type that only has its name goes."""
    known: dict[int, str] = dict(connection.execute(HALFVEC).fetchall())
    for (kind,) in connection.execute(_NEAR, (f"{SCHEMA}.vectors",)).fetchall():
        if kind not in known:
            connection.execute("alter table vectors drop column near cascade")
    for place in known.values():
        connection.execute(f"alter table vectors add column if not exists near {place}.halfvec")


def _names_of(connection: Connection, numbers: Iterable[int], known: Mapping[int, str]) -> list[str]:
    """The names of spaces; the number of a space that has no rows yet and was not named."""
    numbers = [*numbers]
    found = _found_names(connection, numbers)
    return sorted(known.get(number) or found.get(number, f"number {number:d}") for number in numbers)


def _found_names(connection: Connection, numbers: Iterable[int]) -> dict[int, str]:
    """Map each of these numbers that has a space to its name."""
    names = {}
    for number in numbers:
        connection.execute(f"set local kept.space = '{number:d}'")
        found = connection.execute("select name from heads where space = %(space)s", {"space": number}).fetchone()
        if found:
            names[number] = found[0]
    return names
