"""The schema in a database, and who may do what in it: made, brought up to date and granted by its owner.

Called by `kept database`; a storage only asks which version is there. Every table gets the same wall: row-level
security, forced also on the owner, lets a transaction see the rows of the space that it has set, and none if it has set
none. Rule: a role can set any space, unless it is tied to projects. Two restrictive policies then leave it no others:
one for the role itself, and one for every session that logged in as it, because SET ROLE would leave the first behind.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
LONGEST_NAME = 63  # bytes; PostgreSQL cuts longer names, so that two of them could become one
_LOCK = 0x6B657074  # of whoever changes the schema
_LOGINS = "tied_logins"  # the policy for all sessions of tied roles
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
        connection.execute(f"create schema if not exists {SCHEMA}")
        version = _version(connection)
        _check_known(version, place_of(url))
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
    if len(role.encode()) > LONGEST_NAME:
        raise InvalidInput(
            f"The role name {role} has {len(role.encode())} bytes; PostgreSQL knows {LONGEST_NAME}.",
            hint="Choose a shorter name.",
        )
    with _changing(url) as connection:
        name = sql.Identifier(role)
        if connection.execute("select 1 from pg_roles where rolname = %s", (role,)).fetchone() is None:
            connection.execute(sql.SQL("create role {} login").format(name))
        _check_can_be_walled(connection, role, is_tied=bool(spaces))
        # Without SET, a role cannot become the role of members. Before 16 it can, and the policy for logins holds.
        is_old = connection.info.server_version < 160000
        admit = "grant {} to {}" if is_old else "grant {} to {} with inherit true, set false"
        connection.execute(sql.SQL(admit).format(sql.Identifier(MEMBERS), name))
        # Membership holds in all databases of a server, and so would a role tied in one reach all projects of the next.
        connection.execute(sql.SQL(f"grant usage on schema {SCHEMA} to {{}}").format(name))
        ties = _ties(connection)
        if spaces:
            ties[role] = ties.get(role, set()) | {number for number, _ in spaces}
            _tie(connection, {role: ties[role]}, ties)
        _let_vacuum(connection, [role], ties)


def _check_can_be_walled(connection: Connection, role: str, *, is_tied: bool) -> None:
    """Raise NotAllowed when a role gets around row-level security or, if it is tied, could take its tie away."""
    found = connection.execute(_STRONGER, {"schema": SCHEMA, "role": role, "is_tied": is_tied}).fetchone()
    if found is not None:
        as_whom = f"The role {role}" if found[0] == role else f"The role {role} can act as {found[0]}, which"
        does = "owns the tables, makes roles or replicates" if found[1] else "bypasses row-level security"
        raise NotAllowed(f"{as_whom} {does}, so nothing would wall it off.", hint="Name another role.")


@contextmanager
def _changing(url: str) -> Iterator[Connection]:
    """A transaction of the owner, one at a time."""
    place = place_of(url)
    try:
        with psycopg.connect(url) as connection, connection.transaction():
            # Not a schema that others may create in: their functions and operators could stand in for PostgreSQL's.
            connection.execute(f"set local search_path = {SCHEMA}")
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
        open_tables = connection.execute(_TABLES_WITHOUT_A_WALL, {"schema": SCHEMA, "logins": _LOGINS}).fetchall()
        bypasses = bool(facts[3])
        spaces: Any = connection.execute("select count(*) from heads").fetchone() if bypasses and version else None
        is_walled = bool(version) and not open_tables and not bypasses
        return DatabaseStatus(
            place, facts[0], facts[1], version, LATEST, facts[2], is_walled, spaces[0] if spaces else None
        )


def check_role(view: SpaceView, place: str) -> None:
    """Raise NotAllowed when the role of a connection gets around row-level security, or was not let in."""
    asked = """
        select %(space)s, rolsuper or rolbypassrls, has_schema_privilege(n.oid, 'usage'), rolname
        from pg_roles left join pg_namespace n on n.nspname = %(schema)s
        where rolname = current_user"""
    _, bypasses, is_let_in, role = view.fetch(asked, schema=SCHEMA)[0]
    if bypasses:
        raise NotAllowed(
            "This role bypasses row-level security, so it would see every project.",
            hint="Connect as another role: `kept database grant ROLE URL` makes one.",
        )
    if is_let_in is False:  # None: there is no schema yet
        raise NotAllowed(
            f"The role {role} may not use {place}.", hint=f"Its owner can run `kept database grant {role} URL`."
        )


def check_version(version: int, place: str) -> None:
    """Raise unless this program knows the schema and needs no newer one."""
    _check_known(version, place)
    if 0 < version < LATEST:
        raise InvalidInput(
            f"{place} has schema {version}; this program needs {LATEST}.",
            hint="Its owner runs `kept database migrate`.",
        )


def _check_known(version: int, place: str) -> None:
    if version > LATEST:
        raise SchemaTooNew(
            f"{place} was written by a newer kept (schema {version}, this program knows {LATEST}).",
            hint="Upgrade kept.",
        )


# The schema of pgvector, if it is there. Its halfvec has numbers of two bytes, as our vectors do.
_HALFVEC = "select t.typnamespace::regnamespace::text from pg_type t where t.typname = 'halfvec'"
# Without forced row-level security, or, where roles are tied, without the policy for their logins.
_TABLES_WITHOUT_A_WALL = """
    select c.relname
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = %(schema)s and c.relkind in ('r', 'p')
      and not (
        c.relrowsecurity and c.relforcerowsecurity
        and (
          c.relname = 'migrations'
          or not exists (select from pg_policies where schemaname = %(schema)s and starts_with(policyname, 'tied_'))
          or exists (select from pg_policy where polrelid = c.oid and polname = %(logins)s)))"""
# The roles that no policy holds, among those that a role is or can become; the first are the worst.
_STRONGER = """
    select s.rolname, not (s.rolsuper or s.rolbypassrls)
    from pg_roles r
    join pg_roles s on pg_has_role(r.oid, s.oid, 'member')
    where r.rolname = %(role)s
      and case
        when s.rolsuper or s.rolbypassrls then s.oid = r.oid or %(is_tied)s
        when s.rolcreaterole or s.rolreplication then %(is_tied)s
        else %(is_tied)s and s.oid = (select nspowner from pg_namespace where nspname = %(schema)s)
      end
    order by s.oid <> r.oid, 2
    limit 1"""
_LET_IN = """
    select r.rolname
    from pg_namespace n
    cross join aclexplode(n.nspacl) a
    join pg_roles r on r.oid = a.grantee
    where n.nspname = %s and a.privilege_type = 'USAGE' and a.grantee <> n.nspowner"""
_MEMBERS_OF = """
    select r.rolname
    from pg_auth_members m
    join pg_roles r on r.oid = m.member
    join pg_roles g on g.oid = m.roleid
    where g.rolname = %s"""
_TIE_POLICIES = """
    select policyname, roles[1]
    from pg_policies
    where schemaname = %s and tablename = %s and starts_with(policyname, 'tied_')"""
_TIES = """
    select roles[1], substring(qual from '{(.*)}')
    from pg_policies
    where schemaname = %s and tablename = 'heads' and starts_with(policyname, 'tied_') and 'public' <> all (roles)"""


def _version(connection: Connection) -> int:
    """The version of the schema; 0 when there is none."""
    found: Any = connection.execute(f"select to_regclass('{SCHEMA}.migrations')").fetchone()
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
    _let_in_one_by_one(connection)
    for table in _tables(connection):
        condition = "true" if table == "migrations" else _OWN_SPACE
        allowed = "select" if table == "migrations" else "select, insert, update, delete"
        connection.execute(f"alter table {table} enable row level security")
        connection.execute(f"alter table {table} force row level security")
        connection.execute(f"drop policy if exists own_space on {table}")
        connection.execute(f"create policy own_space on {table} using ({condition}) with check ({condition})")
        connection.execute(f"grant {allowed} on {table} to {MEMBERS}")
    ties = _ties(connection)
    _tie(connection, ties, ties)
    _let_vacuum(connection, _names(connection, _LET_IN, SCHEMA), ties)


def _names(connection: Connection, asked: str, name: str) -> list[str]:
    return sorted({found for (found,) in connection.execute(asked, (name,)).fetchall()})


def _let_in_one_by_one(connection: Connection) -> None:
    """Let members of before use the schema by their own right, where it was a right of all members of the server."""
    if MEMBERS in _names(connection, _LET_IN, SCHEMA):
        for role in _names(connection, _MEMBERS_OF, MEMBERS):
            connection.execute(sql.SQL(f"grant usage on schema {SCHEMA} to {{}}").format(sql.Identifier(role)))
        connection.execute(f"revoke usage on schema {SCHEMA} from {MEMBERS}")


def _let_vacuum(connection: Connection, roles: Iterable[str], ties: Mapping[str, set[int]]) -> None:
    """Let roles vacuum after an erasure. Not those that are tied: with MAINTAIN one can rewrite everyone's tables."""
    if connection.info.server_version < 170000:
        return
    for table in _tables(connection):
        connection.execute(f"revoke maintain on {SCHEMA}.{table} from {MEMBERS}")
        for role in roles if table != "migrations" else ():
            change = "revoke maintain on {} from {}" if role in ties else "grant maintain on {} to {}"
            connection.execute(sql.SQL(change).format(sql.Identifier(SCHEMA, table), sql.Identifier(role)))


def _ties(connection: Connection) -> dict[str, set[int]]:
    """Map each tied role to the numbers of its spaces."""
    ties: dict[str, set[int]] = {}
    for role, numbers in connection.execute(_TIES, (SCHEMA,)).fetchall():
        ties.setdefault(role, set()).update(int(number) for number in numbers.split(",") if number)
    return ties


def _tie(connection: Connection, changed: Mapping[str, set[int]], ties: Mapping[str, set[int]]) -> None:
    """Make the policies of the changed ties on every table, and those for the logins of all ties.

    The policy for logins asks for the session's user, which no role can change, and reads the list once a statement.
    """
    import hashlib

    logins = [
        sql.SQL("when {} then {}::bigint[]").format(sql.Literal(role), _numbers(numbers))
        for role, numbers in sorted(ties.items())
    ]
    for table in _tables(connection):
        if table == "migrations":
            continue
        for policy, role in connection.execute(_TIE_POLICIES, (SCHEMA, table)).fetchall():
            if role in changed or role == "public":
                name, where = sql.Identifier(policy), sql.Identifier(SCHEMA, table)
                connection.execute(sql.SQL("drop policy {} on {}").format(name, where))
        for role, numbers in changed.items():
            policy = f"tied_{hashlib.blake2b(role.encode(), digest_size=16).hexdigest()}"  # any two names differ in it
            condition = sql.SQL("space = any ({}::bigint[])").format(_numbers(numbers))
            _restrict(connection, table, policy, sql.Identifier(role), condition)
        if logins:
            mine = sql.SQL("(select case session_user {} end)").format(sql.SQL(" ").join(logins))
            condition = sql.SQL("(space = any ({}::bigint[])) is not false").format(mine)  # null: of no tied role
            _restrict(connection, table, _LOGINS, sql.SQL("public"), condition)


def _numbers(numbers: Iterable[int]) -> sql.Literal:
    return sql.Literal(f"{{{','.join(map(str, sorted(numbers)))}}}")


def _restrict(connection: Connection, table: str, policy: str, role: sql.Composable, condition: sql.Composable) -> None:
    create = sql.SQL("create policy {} on {} as restrictive to {} using ({}) with check ({})")
    name, where = sql.Identifier(policy), sql.Identifier(SCHEMA, table)
    connection.execute(create.format(name, where, role, condition, condition))
