"""The wall around every table: one policy, and the roles and ties that it asks.

Row-level security, forced also on the owner, shows a transaction the rows of the space that it has set, if its role may
see them. Each database has two roles for that, with its number in their names: one whose members reach every space, and
one whose members reach the spaces of their rows in `ties`. Neither has rights of any kind.
Rule: the session's login and the role that it acts as must both reach the space, so SET ROLE, views and functions of
other roles do not help; and a tie stands above everything else that was granted.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from psycopg import errors, sql

from kept.errors import InvalidInput, NotAllowed
from kept.storage.postgres.connection import SCHEMA, Connection

OPEN_TABLES = ("migrations", "ties")  # of no space: one is for all to read, one for the owner alone
MEMBERS_BEFORE = "kept_members"  # of the whole server, until Kept 0.3
_SPACE_SET = "nullif(current_setting('kept.space', true), '')::bigint"
# A superuser is a member of every role, so it is not of the first kind. PostgreSQL's autovacuum runs functions of any
# role in the session of a superuser (10 is the one that every server begins with; all others are members of it).
_POLICY = f"""
    space = {_SPACE_SET}
    and (
      pg_has_role(session_user, {{members}}, 'member') and pg_has_role(current_user, {{members}}, 'member')
        and not pg_has_role(session_user, {{tied}}, 'member') and not pg_has_role(current_user, {{tied}}, 'member')
      or session_user = {{owner}} and current_user = {{owner}}
      or {SCHEMA}.is_tied({_SPACE_SET}, current_user)
    )"""
# No subquery stands in the policy, because a sharded database allows none there. `exists` by the role itself first:
# it is one descent of the tree, and the second, for members of tied groups, looks at all ties of the space.
_IS_TIED = f"""
    create or replace function {SCHEMA}.is_tied(wanted bigint, acting name) returns boolean
    language plpgsql stable security definer parallel safe set search_path = pg_catalog, pg_temp
    as $$
    declare
      login regrole := to_regrole(quote_ident(session_user));
      actor regrole := to_regrole(quote_ident(acting));
    begin
      if pg_has_role(session_user, 10::oid, 'member') then
        return false;
      end if;
      return (
        exists (select from {SCHEMA}.ties t where t.space = wanted and t.role = login)
        or exists (select from {SCHEMA}.ties t where t.space = wanted and pg_has_role(login, t.role, 'member'))
      ) and (
        exists (select from {SCHEMA}.ties t where t.space = wanted and t.role = actor)
        or exists (select from {SCHEMA}.ties t where t.space = wanted and pg_has_role(actor, t.role, 'member'))
      );
    end $$"""


class Keepers:
    """The two roles of a database that its policies ask for."""

    def __init__(self, connection: Connection) -> None:
        asked = "select oid::bigint from pg_database where datname = current_database()"
        found: Any = connection.execute(asked).fetchone()
        self.members = f"kept_members_{found[0]}"
        self.tied = f"kept_tied_{found[0]}"

    def admit(self, connection: Connection, role: str, *, is_tied: bool) -> None:
        """Make a role a member of one of the two, and of that one alone."""
        wanted, other = (self.tied, self.members) if is_tied else (self.members, self.tied)
        # Without SET a role cannot become the other. Before 16 it can, which lets it see nothing more.
        how = "" if connection.info.server_version < 160000 else " with inherit false, set false"
        grant = sql.SQL("grant {} to {}" + how).format(sql.Identifier(wanted), sql.Identifier(role))
        connection.execute(grant)
        if _is_member(connection, role, other):
            connection.execute(sql.SQL("revoke {} from {}").format(sql.Identifier(other), sql.Identifier(role)))


def wall_off(connection: Connection) -> None:
    """Put the wall around every table, and let in again the roles that were let in. Call it after each migration."""
    keepers = Keepers(connection)
    _make(connection, keepers)
    _let_in_one_by_one(connection, keepers)
    _take_over_ties(connection)
    connection.execute(sql.SQL(_IS_TIED))
    owners: Any = connection.execute(_OWNERS, (SCHEMA,)).fetchall()
    for table, owner in owners:
        values = {"members": f"'{keepers.members}'", "tied": f"'{keepers.tied}'", "owner": owner}
        condition = "true" if table in OPEN_TABLES else _POLICY.format(**values)
        connection.execute(f"alter table {table} enable row level security")
        connection.execute(f"alter table {table} force row level security")
        connection.execute(f"drop policy if exists own_space on {table}")
        connection.execute(f"create policy own_space on {table} using ({condition}) with check ({condition})")
    connection.execute("delete from ties where not exists (select from pg_roles r where r.oid = ties.role)")
    ties = ties_of(connection)
    roles = _names(connection, _LET_IN, SCHEMA)
    for role in roles:
        keepers.admit(connection, role, is_tied=role in ties)
    _let_use_tables(connection, roles)
    _let_vacuum(connection, roles, ties)


def let_in(connection: Connection, role: str, numbers: Iterable[int]) -> set[int]:
    """Let a role use the tables, tied to these spaces and to those of before. Return all of these."""
    if open_tables(connection):  # a copy of another database has the roles of that one
        wall_off(connection)
    keepers = Keepers(connection)
    ties = ties_of(connection)
    wanted = ties.get(role, set()) | {*numbers}
    _check_can_be_walled(connection, role, is_tied=bool(wanted))
    connection.execute(sql.SQL(f"grant usage on schema {SCHEMA} to {{}}").format(sql.Identifier(role)))
    _let_use_tables(connection, [role])
    _tie(connection, role, wanted)
    keepers.admit(connection, role, is_tied=bool(wanted))
    ties = ties | {role: wanted} if wanted else ties
    _check_acts_for_no_other(connection, role, ties)
    _let_vacuum(connection, [role], ties)
    return wanted


def ties_of(connection: Connection) -> dict[str, set[int]]:
    """Map each tied role to the numbers of its spaces."""
    found = connection.execute(
        "select r.rolname, array_agg(t.space) from ties t join pg_roles r on r.oid = t.role group by r.rolname"
    ).fetchall()
    return {role: {*numbers} for role, numbers in found}


def open_tables(connection: Connection) -> list[str]:
    """Return the tables that are not walled off as this program does it."""
    keepers = Keepers(connection)
    asked = {
        "schema": SCHEMA,
        "names": [keepers.members, keepers.tied, "is_tied"],
        "open": [*OPEN_TABLES],
        "keepers": [keepers.members, keepers.tied, MEMBERS_BEFORE],
        "counted": [*_COUNTED],
    }
    return [table for (table,) in connection.execute(_WITHOUT_A_WALL, asked).fetchall()]


def crossings(connection: Connection, most: int = 5) -> list[str]:
    """Log in as each tied role, and read every table of projects that it is not tied to. Only a superuser can.

    Return each table that could be read; at most `most` projects are tried for each role.
    """
    spaces: dict[int, str] = dict(connection.execute("select space, name from heads order by space").fetchall())
    found = []
    for role, tied in sorted(ties_of(connection).items()):
        connection.execute(sql.SQL("set session authorization {}").format(sql.Identifier(role)))
        for space in [number for number in spaces if number not in tied][:most]:
            found += [f"{role} reads {table} of {spaces[space]}" for table in _readable(connection, space)]
        connection.execute("reset session authorization")
    return found


def forget_values(connection: Connection) -> None:
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


def _readable(connection: Connection, space: int) -> list[str]:
    """Return the tables that show this session a row of the space."""
    found = []
    for table in _tables(connection):
        if table not in OPEN_TABLES:
            connection.execute(f"set local kept.space = '{space:d}'")
            asked = sql.SQL("select 1 from {} where space = %(space)s limit 1").format(sql.Identifier(SCHEMA, table))
            try:
                with connection.transaction():
                    found += [table] if connection.execute(asked, {"space": space}).fetchall() else []
            except errors.InsufficientPrivilege:
                continue
    return found


def _make(connection: Connection, keepers: Keepers) -> None:
    for name in (keepers.members, keepers.tied):
        if connection.execute("select 1 from pg_roles where rolname = %s", (name,)).fetchone() is None:
            connection.execute(sql.SQL("create role {} nologin").format(sql.Identifier(name)))


def _tie(connection: Connection, role: str, numbers: Iterable[int]) -> None:
    for number in sorted(numbers):
        connection.execute(
            "insert into ties (space, role) values (%s, to_regrole(quote_ident(%s))) on conflict do nothing",
            (number, role),
        )


def _is_member(connection: Connection, role: str, of: str) -> bool:
    return connection.execute(_DIRECT_MEMBER, (role, of)).fetchone() is not None


def _tables(connection: Connection) -> list[str]:
    found: Any = connection.execute("select tablename from pg_tables where schemaname = %s", (SCHEMA,)).fetchall()
    return sorted(name for (name,) in found)


def _names(connection: Connection, asked: str, name: str) -> list[str]:
    return sorted({found for (found,) in connection.execute(asked, (name,)).fetchall()})


def _let_in_one_by_one(connection: Connection, keepers: Keepers) -> None:
    """Let members of before use the schema by their own right, and take all rights from the roles of members.

    A role could give such a role a view or a function, which autovacuum would run.
    """
    if MEMBERS_BEFORE in _names(connection, _LET_IN, SCHEMA):
        for role in _names(connection, _MEMBERS_OF, MEMBERS_BEFORE):
            connection.execute(sql.SQL(f"grant usage on schema {SCHEMA} to {{}}").format(sql.Identifier(role)))
    for name in (keepers.members, keepers.tied, MEMBERS_BEFORE):
        if connection.execute("select 1 from pg_roles where rolname = %s", (name,)).fetchone():
            connection.execute(f"revoke all on schema {SCHEMA} from {name}")
            connection.execute(f"revoke all on all tables in schema {SCHEMA} from {name}")


def _take_over_ties(connection: Connection) -> None:
    """Turn the ties of before, which were restrictive policies on every table, into rows."""
    ties: dict[str, set[int]] = {}
    for role, numbers in connection.execute(_TIES_BEFORE, (SCHEMA,)).fetchall():
        ties.setdefault(role, set()).update(int(number) for number in numbers.split(",") if number)
    # A role could drop its own policies (DROP OWNED), but not the one for all logins: that one still has its tie.
    for (condition,) in connection.execute(_LOGINS_BEFORE, (SCHEMA,)).fetchall():
        for quoted, numbers in re.findall(_LOGIN_TIE, condition):
            role = quoted.replace("''", "'").replace("\\\\", "\\")
            ties.setdefault(role, {int(number) for number in numbers.split(",") if number})
    known = {name for (name,) in connection.execute("select rolname from pg_roles").fetchall()}
    for role, spaces in ties.items():
        if role in known:
            _tie(connection, role, spaces)
    for table, policy in connection.execute(_POLICIES_BEFORE, (SCHEMA,)).fetchall():
        drop = sql.SQL("drop policy {} on {}")
        connection.execute(drop.format(sql.Identifier(policy), sql.Identifier(SCHEMA, table)))


def _let_use_tables(connection: Connection, roles: Iterable[str]) -> None:
    """Give roles the rights on the tables. The policy then chooses the rows."""
    for table in _tables(connection):
        allowed = "select" if table == "migrations" else "select, insert, update, delete"
        for role in roles if table != "ties" else ():
            where = sql.Identifier(SCHEMA, table)
            connection.execute(sql.SQL(f"grant {allowed} on {{}} to {{}}").format(where, sql.Identifier(role)))


def _let_vacuum(connection: Connection, roles: Iterable[str], ties: Mapping[str, set[int]]) -> None:
    """Let roles vacuum after an erasure. Not those that are tied: with MAINTAIN one can rewrite everyone's tables."""
    if connection.info.server_version < 170000:
        return
    for table in _tables(connection):
        for role in roles if table not in OPEN_TABLES else ():
            change = "revoke maintain on {} from {}" if role in ties else "grant maintain on {} to {}"
            connection.execute(sql.SQL(change).format(sql.Identifier(SCHEMA, table), sql.Identifier(role)))


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
    found = connection.execute(_ACTS_FOR, {"schema": SCHEMA, "role": role, "tied": [*ties]}).fetchone()
    if found is not None:
        tied, other = found
        raise NotAllowed(
            f"The role {tied}, which is tied to projects, can act as {other}, which was let in for itself.",
            hint=f'Run `revoke "{other}" from "{tied}"` in PostgreSQL, or name another role.',
        )


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
# Without forced row-level security, with a policy that is not the one of this database or shows more than that one
# does, with rights of a role of members, or with statistics of words.
_WITHOUT_A_WALL = """
    select c.relname
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = %(schema)s and c.relkind in ('r', 'p')
      and not (
        c.relrowsecurity and c.relforcerowsecurity
        and not exists (
          select from pg_policy p where p.polrelid = c.oid and p.polpermissive and p.polname <> 'own_space')
        and (
          c.relname = any (%(open)s)
          or exists (
              select
              from pg_policy p
              where p.polrelid = c.oid and p.polname = 'own_space' and p.polcmd = '*'
                and (select bool_and(position(name in pg_get_expr(p.polqual, c.oid)) > 0
                       and position(name in pg_get_expr(p.polwithcheck, c.oid)) > 0)
                     from unnest(%(names)s::text[]) name))
            and not exists (
              select from aclexplode(c.relacl) l join pg_roles r on r.oid = l.grantee
              where r.rolname = any (%(keepers)s))
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
    where t.rolname = any (%(tied)s) and %(role)s in (t.rolname, s.rolname)
      and exists (select from aclexplode(n.nspacl) a where a.grantee = s.oid and a.privilege_type = 'USAGE')
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
_DIRECT_MEMBER = """
    select 1
    from pg_auth_members m
    join pg_roles r on r.oid = m.member
    join pg_roles g on g.oid = m.roleid
    where r.rolname = %s and g.rolname = %s"""
_OWNERS = "select tablename, quote_literal(tableowner) from pg_tables where schemaname = %s order by tablename"
_TIES_BEFORE = """
    select roles[1], substring(qual from '{(.*)}')
    from pg_policies
    where schemaname = %s and tablename = 'heads' and starts_with(policyname, 'tied_') and 'public' <> all (roles)"""
_LOGINS_BEFORE = """
    select qual
    from pg_policies
    where schemaname = %s and policyname = 'tied_logins' and tablename = 'heads' and 'public' = any (roles)"""
_LOGIN_TIE = r"WHEN E?'((?:[^']|'')*)'::\w+ THEN '\{([\d,]*)\}'::bigint\[\]"  # as PostgreSQL shows the condition
_POLICIES_BEFORE = """
    select tablename, policyname
    from pg_policies
    where schemaname = %s and permissive = 'RESTRICTIVE' and starts_with(policyname, 'tied_')"""
