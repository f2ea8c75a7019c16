"""The schema in a database, and who may do what in it: made, brought up to date and granted by its owner.

Called by `kept database`; a storage only asks which version is there. Every table gets the same wall: row-level
security, forced also on the owner, lets a transaction see the rows of the space that it has set, and none if it has set
none. Rule: a role can set any space, unless it is tied to projects. Two restrictive policies then leave it no others:
one for the role itself, and one for every session that logged in as it, because SET ROLE would leave the first behind.
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

from kept.errors import Busy, InvalidInput, NotAllowed, SchemaTooNew
from kept.storage.postgres.connection import (
    HALFVEC,
    SCHEMA,
    SEARCH_PATH,
    Connection,
    SpaceView,
    place_of,
    translated,
    translation,
)

LATEST = 1
# People's roles are members of it, and own_space lets members alone see rows. It has no rights on tables: a role could
# give it a view or a function, which autovacuum would run as this role, in a session that no tie holds for.
MEMBERS = "kept_members"
CHANGE_WAIT_S = 30  # for a lock while the schema is changed or a role is let in
LONGEST_NAME = 63  # bytes; PostgreSQL cuts longer names, so that two of them could become one
_LOCK = 0x6B657074  # of whoever changes the schema
_LOGINS = "tied_logins"  # the policy for all sessions of tied roles
_LOGIN_CONDITIONS = "select qual from pg_policies where schemaname = %s and policyname = %s and tablename = 'heads'"
_LOGIN_TIE = r"WHEN E?'((?:[^']|'')*)'::\w+ THEN '\{([\d,]*)\}'::bigint\[\]"  # as PostgreSQL shows the condition
_ROLE = "select 1 from pg_roles where rolname = %s"
_LENT = sql.SQL(
    "case when current_user <> session_user and pg_has_role(session_user, 10::oid, 'member') then '{}'::bigint[] end"
)
_OWN_SPACE = "space = nullif(current_setting('kept.space', true), '')::bigint"


class SchemaStep(Struct, frozen=True):
    """One step of the schema."""

    version: int
    text: str

    @property
    def checksum(self) -> str:
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
        _add_halfvec(connection)
        _forget_values(connection)
        return len(steps)


def grant(url: str, role: str, spaces: Sequence[tuple[int, str]] = ()) -> list[str]:
    """Let a role use the database; it is made, without a password, if there is none. Return what it is tied to.

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
        ties = _ties(connection)
        _check_can_be_walled(connection, role, is_tied=bool(spaces) or role in ties)
        # Without SET, a role cannot become the role of members. Before 16 it can, and the policy for logins holds.
        is_old = connection.info.server_version < 160000
        admit = "grant {} to {}" if is_old else "grant {} to {} with inherit true, set false"
        connection.execute(sql.SQL(admit).format(sql.Identifier(MEMBERS), name))
        # Membership holds in all databases of a server, and so would a role tied in one reach all projects of the next.
        connection.execute(sql.SQL(f"grant usage on schema {SCHEMA} to {{}}").format(name))
        _let_use_tables(connection, [role])
        if spaces:
            ties[role] = ties.get(role, set()) | {number for number, _ in spaces}
            _tie(connection, {role: ties[role]}, ties)
        _check_acts_for_no_other(connection, role, ties)
        _let_vacuum(connection, [role], ties)
        return _names_of(connection, ties.get(role, set()), dict(spaces))


def _check_can_be_walled(connection: Connection, role: str, *, is_tied: bool) -> None:
    """Raise NotAllowed when a role gets around row-level security or, if it is tied, could take its tie away."""
    found = connection.execute(_STRONGER, {"schema": SCHEMA, "role": role, "is_tied": is_tied}).fetchone()
    if found is not None:
        as_whom = f"The role {role}" if found[0] == role else f"The role {role} can act as {found[0]}, which"
        raise NotAllowed(f"{as_whom} {found[1]}, so nothing would wall it off.", hint="Name another role.")


def _check_acts_for_no_other(connection: Connection, role: str, ties: Mapping[str, set[int]]) -> None:
    """Raise NotAllowed when a tied role can act as another role that was let in, and this role is one of the two.

    It could give that role a view. PostgreSQL checks the rights of the owner of a view, not those of its reader.
    """
    found = connection.execute(
        _ACTS_FOR, {"schema": SCHEMA, "role": role, "tied": [*ties], "members": MEMBERS}
    ).fetchone()
    if found is not None:
        tied, other = found
        raise NotAllowed(
            f"The role {tied}, which is tied to projects, can act as {other}, which was let in for itself.",
            hint=f'Run `revoke "{other}" from "{tied}"` in PostgreSQL, or name another role.',
        )


@contextmanager
def _changing(url: str) -> Iterator[Connection]:
    """A transaction of the owner, one at a time."""
    place = place_of(url)
    try:
        with psycopg.connect(url) as connection, connection.transaction():
            # Not a schema that others may create in: their functions and operators could stand in for PostgreSQL's.
            connection.execute(f"set local search_path = {SEARCH_PATH}")
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
    with translated(place), psycopg.connect(url) as connection:
        connection.execute(f"set search_path = {SEARCH_PATH}")
        facts: Any = connection.execute(
            "select current_setting('server_version'), current_user, pg_is_in_recovery(), rolsuper or rolbypassrls "
            "from pg_roles where rolname = current_user"
        ).fetchone()
        version = _version(connection)
        asked = {"schema": SCHEMA, "logins": _LOGINS, "members": MEMBERS, "counted": [*_COUNTED]}
        open_tables = connection.execute(_TABLES_WITHOUT_A_WALL, asked).fetchall()
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


_NEAR = """
    select a.atttypid
    from pg_attribute a
    where a.attrelid = to_regclass(%s) and a.attname = 'near' and not a.attisdropped"""
# Columns of numbers and of words of this program, which tell a tied role how much there is and not what. Without
# statistics of them the planner reads whole tables; of other columns it needs none (tests/postgres/test_schema.py).
_COUNTED = ("space", "id", "seq", "shelf", "chunk", "n", "tier", "scope", "status", "trust")
_WITH_VALUES = """
    select c.relname, a.attname, format_type(a.atttypid, a.atttypmod), l.collname, n2.nspname, a.attstorage::text
    from pg_attribute a
    join pg_class c on c.oid = a.attrelid
    join pg_namespace n on n.oid = c.relnamespace
    left join pg_collation l on l.oid = a.attcollation and l.collname <> 'default'
    left join pg_namespace n2 on n2.oid = l.collnamespace
    where n.nspname = %(schema)s and c.relkind in ('r', 'p') and c.relname <> 'migrations'
      and a.attnum > 0 and not a.attisdropped
      and a.attname <> all (%(counted)s) and coalesce(a.attstattarget, -1) <> 0
    order by c.relname, a.attnum"""
_STORAGE = {"p": "plain", "e": "external", "m": "main", "x": "extended"}
# Without forced row-level security, or, where roles are tied, without the policy for their logins, with rights of the
# role of members, or with statistics of words.
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
          or exists (select from pg_policy where polrelid = c.oid and polname = %(logins)s)
            and not exists (
              select from aclexplode(c.relacl) l join pg_roles r on r.oid = l.grantee where r.rolname = %(members)s)
            and not exists (
              select
              from pg_attribute a
              where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
                and a.attname <> all (%(counted)s) and coalesce(a.attstattarget, -1) <> 0)))"""
# The roles that no policy holds, among those that a role is or can become; the first are the worst. PostgreSQL's own
# roles, such as pg_execute_server_program, are all refused for a tie: each reaches past the tables of a database.
_STRONGER = """
    select s.rolname,
      case
        when s.rolsuper or s.rolbypassrls then 'bypasses row-level security'
        when starts_with(s.rolname, 'pg_') then 'reaches further than its own rows'
        else 'owns the tables, makes roles or replicates'
      end
    from pg_roles r
    join pg_roles s on pg_has_role(r.oid, s.oid, 'member')
    where r.rolname = %(role)s
      and case
        when s.rolsuper or s.rolbypassrls then s.oid = r.oid or %(is_tied)s
        when s.rolcreaterole or s.rolreplication or starts_with(s.rolname, 'pg_') then %(is_tied)s
        else %(is_tied)s and s.oid = (select nspowner from pg_namespace where nspname = %(schema)s)
      end
    order by s.oid <> r.oid, not (s.rolsuper or s.rolbypassrls)
    limit 1"""
_ACTS_FOR = """
    select t.rolname, s.rolname
    from pg_roles t
    join pg_roles s on s.oid <> t.oid and pg_has_role(t.oid, s.oid, 'member')
    join pg_namespace n on n.nspname = %(schema)s
    where t.rolname = any (%(tied)s) and %(role)s in (t.rolname, s.rolname) and s.rolname <> %(members)s
      and exists (select from aclexplode(n.nspacl) a where a.grantee = s.oid and a.privilege_type = 'USAGE')
    limit 1"""
_LET_IN = """
    select r.rolname
    from pg_namespace n
    cross join aclexplode(n.nspacl) a
    join pg_roles r on r.oid = a.grantee
    where n.nspname = %s and a.privilege_type = 'USAGE' and a.grantee <> n.nspowner"""
_USERS = f"""
    select r.rolname
    from pg_auth_members m
    join pg_roles r on r.oid = m.member
    join pg_roles g on g.oid = m.roleid
    where g.rolname = %s and not r.rolsuper and has_schema_privilege(r.oid, '{SCHEMA}', 'usage')"""
_MEMBERS_OF = """
    select r.rolname
    from pg_auth_members m
    join pg_roles r on r.oid = m.member
    join pg_roles g on g.oid = m.roleid
    where g.rolname = %s"""
_OWNERS = "select tablename, quote_literal(tableowner) from pg_tables where schemaname = %s order by tablename"
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
    owners: Any = connection.execute(_OWNERS, (SCHEMA,)).fetchall()
    for table, owner in owners:
        # Not a policy `to kept_members`: any member could take that role out of it with DROP OWNED.
        of_member = f"(select pg_has_role('{MEMBERS}', 'member') or current_user = {owner})"
        condition = "true" if table == "migrations" else f"{_OWN_SPACE} and {of_member}"
        connection.execute(f"alter table {table} enable row level security")
        connection.execute(f"alter table {table} force row level security")
        connection.execute(f"drop policy if exists own_space on {table}")
        connection.execute(f"create policy own_space on {table} using ({condition}) with check ({condition})")
        connection.execute(f"revoke all on {table} from {MEMBERS}")
    _let_use_tables(connection, _names(connection, _USERS, MEMBERS))
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


def _let_use_tables(connection: Connection, roles: Iterable[str]) -> None:
    """Give roles the rights on the tables. Policies then choose the rows, for members alone."""
    for table in _tables(connection):
        allowed = "select" if table == "migrations" else "select, insert, update, delete"
        for role in roles:
            where = sql.Identifier(SCHEMA, table)
            connection.execute(sql.SQL(f"grant {allowed} on {{}} to {{}}").format(where, sql.Identifier(role)))


def _add_halfvec(connection: Connection) -> None:
    """Keep vectors for pgvector as well, where it is installed. A column of a type that only has its name goes."""
    known: dict[int, str] = dict(connection.execute(HALFVEC).fetchall())
    for (kind,) in connection.execute(_NEAR, (f"{SCHEMA}.vectors",)).fetchall():
        if kind not in known:
            connection.execute("alter table vectors drop column near cascade")
    for place in known.values():
        connection.execute(f"alter table vectors add column if not exists near {place}.halfvec")


def _forget_values(connection: Connection) -> None:
    """Let PostgreSQL gather no statistics of texts, and remove those that it has.

    They are of the rows of all projects, and EXPLAIN tells every role how many rows the planner expects for a word.
    """
    found: Any = connection.execute(_WITH_VALUES, {"schema": SCHEMA, "counted": [*_COUNTED]}).fetchall()
    for table, column, kind, collation, place, storage in found:
        where, name = sql.Identifier(SCHEMA, table), sql.Identifier(column)
        connection.execute(sql.SQL("alter table {} alter column {} set statistics 0").format(where, name))
        if connection.info.server_version >= 180000:
            clear = "select pg_clear_attribute_stats(%s, %s, %s, false)"
            connection.execute(clear, (SCHEMA, table, column))
            continue
        # Before 18, to set the type that a column has is the way to this that needs no superuser. No row is rewritten.
        same = sql.SQL("alter table {} alter column {} type {} {}, alter column {} set storage {}").format(
            where,
            name,
            sql.SQL(kind),
            sql.SQL("collate {}").format(sql.Identifier(place, collation)) if collation else sql.SQL(""),
            name,
            sql.SQL(_STORAGE[storage]),
        )
        try:
            with connection.transaction():
                connection.execute(same)
        except errors.FeatureNotSupported as error:
            raise InvalidInput(
                f"A view or rule uses {SCHEMA}.{table}.{column}, so the statistics of that column cannot be removed. "
                f"With them, tied roles could find out words of other projects.",
                hint="Drop the view, run this again, and then create the view again.",
            ) from error


def _names_of(connection: Connection, numbers: Iterable[int], known: Mapping[int, str]) -> list[str]:
    """The names of spaces; the number of a space that has no rows yet and was not named."""
    names = []
    for number in numbers:
        connection.execute(f"set local kept.space = '{number:d}'")
        found = connection.execute("select name from heads where space = %(space)s", {"space": number}).fetchone()
        names.append(known.get(number) or (found[0] if found else f"number {number:d}"))
    return sorted(names)


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
    # A role can drop its own policies (DROP OWNED), but not the one for all logins: that one still has its tie.
    for condition in connection.execute(_LOGIN_CONDITIONS, (SCHEMA, _LOGINS)).fetchall():
        for role, numbers in re.findall(_LOGIN_TIE, condition[0]):
            name = role.replace("''", "'").replace("\\\\", "\\")
            if name not in ties and connection.execute(_ROLE, (name,)).fetchone() is not None:
                ties[name] = {int(number) for number in numbers.split(",") if number}
    return ties


def _tie(connection: Connection, changed: Mapping[str, set[int]], ties: Mapping[str, set[int]]) -> None:
    """Make the policies of the changed ties on every table, and those for the logins of all ties.

    The policy for logins asks for the session's user, which no role can change, and reads the list once a statement.
    It also shows no rows to a session of a superuser that acts as another role: autovacuum runs functions of tied
    roles in such a session. (10 is the superuser that every server begins with; each superuser is a member of it.)
    """
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
            mine = sql.SQL("(select case session_user {} else {} end)").format(sql.SQL(" ").join(logins), _LENT)
            condition = sql.SQL("(space = any ({}::bigint[])) is not false").format(mine)  # null: of no tied role
            _restrict(connection, table, _LOGINS, sql.SQL("public"), condition)


def _numbers(numbers: Iterable[int]) -> sql.Literal:
    return sql.Literal(f"{{{','.join(map(str, sorted(numbers)))}}}")


def _restrict(connection: Connection, table: str, policy: str, role: sql.Composable, condition: sql.Composable) -> None:
    create = sql.SQL("create policy {} on {} as restrictive to {} using ({}) with check ({})")
    name, where = sql.Identifier(policy), sql.Identifier(SCHEMA, table)
    connection.execute(create.format(name, where, role, condition, condition))
