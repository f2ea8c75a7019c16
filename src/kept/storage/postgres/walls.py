"""The wall around every table: one policy, and the roles and ties that it asks.

Row-level security, forced also on the owner, shows a transaction the rows of the space that it has set, if its role may
see them. Each database has two roles for that, with its number in their names: one whose members reach every space, and
one whose members reach the spaces of their rows in `ties`. Neither has rights of any kind.
Rule: the session's login and the role that it acts as must both reach the space, so SET ROLE, views and functions of
other roles do not help; a tie stands above everything else that was granted; and a role that nothing shows to be
let in to every project is shut out.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from psycopg import errors, sql

from kept.errors import InvalidInput, NotAllowed
from kept.storage.postgres import citus
from kept.storage.postgres.connection import SCHEMA, Connection

OPEN_TABLES = ("migrations", "ties")  # of no space: one is for all to read, one for the owner alone
MEMBERS_BEFORE = "kept_members"  # of the whole server, until Kept 0.3
_SPACE_SET = "nullif(current_setting('kept.space', true), '')::bigint"
# `ties` is for its owner and the members of that role, also where others have rights on it. NULL for one that is gone.
_OF_THE_OWNER = "pg_has_role(current_user, to_regrole({owner_name}), 'usage')"
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
# TIES, KIND and ROLE: the table, the type of its column, and how a role is read from it (see citus.py).
_IS_TIED = f"""
    create or replace function {SCHEMA}.is_tied(wanted bigint, acting name) returns boolean
    language plpgsql stable security definer parallel safe set search_path = pg_catalog, pg_temp
    as $$
    declare
      login KIND := to_regrole(quote_ident(session_user));
      actor KIND := to_regrole(quote_ident(acting));
    begin
      if pg_has_role(session_user, 10::oid, 'member') then
        return false;
      end if;
      return (
        exists (select from TIES t where t.space = wanted and t.role = login)
        or exists (select from TIES t where t.space = wanted and pg_has_role(session_user, ROLE, 'member'))
      ) and (
        exists (select from TIES t where t.space = wanted and t.role = actor)
        or exists (select from TIES t where t.space = wanted and pg_has_role(acting, ROLE, 'member'))
      );
    end $$"""


class Keepers:
    """The two roles of a database that its policies ask for."""

    def __init__(self, connection: Connection) -> None:
        asked = "select oid::bigint from pg_database where datname = current_database()"
        if citus.is_worker(connection):  # where the database has another number
            asked = _NUMBER_IN_POLICY
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


def wall_off(connection: Connection, *, sharded: bool = False) -> list[str]:
    """Put the wall around every table, and let in again the roles that were let in. Call it after each migration.

    Return the roles that were shut out: they had rights here, and neither a tie nor the role of members.
    In a cluster (`sharded`: it will be one) it is not forced on the owner, as whom Citus copies the rows of shards.
    """
    keepers = Keepers(connection)
    untied = _untied_of_before(connection, keepers)
    of_before = _members_of_before(connection)
    force = "no force" if sharded or citus.copy_of_ties(connection) else "force"
    _make(connection, keepers)
    _take_over_ties(connection)
    make_is_tied(connection)
    _put_policies(connection, keepers, force)
    connection.execute("delete from ties where role::text <> all (%s)", ([*_names_by_text(connection)],))
    return _let_in_again(connection, keepers, untied, of_before)


def _let_in_again(connection: Connection, keepers: Keepers, untied: set[str], of_before: Sequence[str]) -> list[str]:
    """Let in the tied roles and the untied ones, and shut out all others. Return these."""
    ties = ties_of(connection)
    wanted = untied | {*ties}
    _end_shared_rights(connection, keepers, wanted.intersection(of_before))
    found = {*_names(connection, _LET_IN, SCHEMA), *of_before}
    roles, shut_out = sorted(found & wanted), sorted(found - wanted)
    for role in shut_out:
        _shut_out(connection, role, keepers)
    for role in roles:
        keepers.admit(connection, role, is_tied=role in ties)
    _let_use_tables(connection, roles)
    _let_vacuum(connection, roles, ties)
    return shut_out


def _put_policies(connection: Connection, keepers: Keepers, force: str) -> None:
    owners: Any = connection.execute(_OWNERS, (SCHEMA,)).fetchall()
    for table, owner, owner_name in owners:
        values = {"members": f"'{keepers.members}'", "tied": f"'{keepers.tied}'", "owner": owner}
        of_the_owner = _OF_THE_OWNER.format(owner_name=owner_name)
        seen = written = _POLICY.format(**values)
        if table in OPEN_TABLES:
            seen, written = "true" if table == "migrations" else of_the_owner, of_the_owner
        connection.execute(f"alter table {table} enable row level security")
        connection.execute(f"alter table {table} {force} row level security")
        connection.execute(f"drop policy if exists own_space on {table}")
        connection.execute(f"create policy own_space on {table} using ({seen}) with check ({written})")
    for (grantee,) in connection.execute(_GRANTEES_OF_TIES, (SCHEMA,)).fetchall():
        connection.execute(sql.SQL(f"revoke all on ties from {grantee}"))


def make_is_tied(connection: Connection) -> None:
    """Make the function that policies call. In a cluster it reads the copy of the ties of the node that it runs on."""
    copy = citus.copy_of_ties(connection)
    kind, role = ("regrole", "t.role") if copy is None else ("text", "to_regrole(t.role)")
    text = _IS_TIED.replace("TIES", copy or f"{SCHEMA}.ties").replace("KIND", kind).replace("ROLE", role)
    connection.execute(sql.SQL(text))
    connection.execute(f"grant execute on function {SCHEMA}.is_tied(bigint, name) to public")  # not so by every default


def let_in(connection: Connection, role: str, numbers: Iterable[int]) -> set[int]:
    """Let a role use the tables, tied to these spaces and to those of before. Return all of these."""
    if open_tables(connection):  # a copy of another database has the roles of that one
        _check_shuts_out_no_other(wall_off(connection), role)
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


def shut_out(connection: Connection, role: str, numbers: Iterable[int] | None) -> set[int]:
    """Untie a role from these spaces; None: from all, and let it use nothing. Return those that it is still tied to.

    Raises InvalidInput for spaces of a role that is not tied: it reaches all of them, and would go on to.
    """
    tied = ties_of(connection).get(role, set())
    if numbers is not None and not tied:
        raise InvalidInput(
            f"The role {role} is not tied to projects, so none can be taken from it.",
            hint="Leave --for out to take everything from it.",
        )
    left = set() if numbers is None else tied - {*numbers}
    connection.execute(
        "delete from ties where role::text = to_regrole(quote_ident(%s))::text and space <> all (%s)", (role, [*left])
    )
    if not left:
        _shut_out(connection, role, Keepers(connection))
    return left


def ties_of(connection: Connection) -> dict[str, set[int]]:
    """Map each tied role to the numbers of its spaces."""
    names = _names_by_text(connection)
    found = connection.execute("select role::text, array_agg(space) from ties group by role").fetchall()
    return {names[role]: {*numbers} for role, numbers in found if role in names}


def forget_ties(connection: Connection, role: str) -> None:
    """Remove the ties of an earlier role of the same name, where ties are kept by name."""
    connection.execute("delete from ties where role::text = to_regrole(quote_ident(%s))::text", (role,))


def _names_by_text(connection: Connection) -> dict[str, str]:
    """Map each role as PostgreSQL writes it, in quotes where it must be, to its name."""
    return dict(connection.execute("select oid::regrole::text, rolname from pg_roles").fetchall())


def open_tables(connection: Connection) -> list[str]:
    """Return the tables that are not walled off as this program does it."""
    keepers = Keepers(connection)
    asked = {
        "schema": SCHEMA,
        "names": [keepers.members, keepers.tied, "is_tied"],
        "open": [*OPEN_TABLES],
        "keepers": [keepers.members, keepers.tied, MEMBERS_BEFORE],
        "counted": [*_COUNTED],
        "sharded": citus.copy_of_ties(connection) is not None,
        "is_worker": citus.is_worker(connection),  # where the table itself has no rows, and its shards have the setting
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
    distributed = citus.distributed(connection)
    for table, column, kind, collation, place, storage in found:
        if table in distributed:  # see forget_values_of_shards
            continue
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


def forget_values_of_shards(connection: Connection) -> None:
    """Let the workers gather no statistics of columns that were added to sharded tables. Call it outside of a
    transaction, which would hold the shards.
    """
    found: Any = connection.execute(_WITH_VALUES, {"schema": SCHEMA, "counted": [*_COUNTED]}).fetchall()
    for table, column, *_ in found:
        citus.set_statistics(connection, table, column)


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


def _untied_of_before(connection: Connection, keepers: Keepers) -> set[str]:
    """Return the roles that reach every project, as the policies of now say; read it before these are replaced.

    A restored database may have lost its ties, and a role may have rights from other grants, so the rights on
    tables say nothing.
    """
    members, tied = [keepers.members], [keepers.tied]
    if number := _number_in_policy(connection):  # another one in a copy of another database
        members.append(f"kept_members_{number}")
        tied.append(f"kept_tied_{number}")
    found = connection.execute(_UNTIED, {"members": members, "tied": tied}).fetchall()
    untied = {role for (role,) in found}
    if of_before := _members_of_before(connection):
        asked = {"group": MEMBERS_BEFORE, "roles": of_before}
        untied |= {role for (role,) in connection.execute(_UNTIED_BEFORE, asked).fetchall()}
    return untied


def _members_of_before(connection: Connection) -> list[str]:
    """Return the members of the role of the whole server; none after the first migration by this program."""
    if _number_in_policy(connection) is not None or MEMBERS_BEFORE not in _names(connection, _LET_IN, SCHEMA):
        return []
    return _names(connection, _MEMBERS_OF, MEMBERS_BEFORE)


def _number_in_policy(connection: Connection) -> int | None:
    found = connection.execute(_NUMBER_IN_POLICY).fetchone()
    return None if found is None else found[0]


def _end_shared_rights(connection: Connection, keepers: Keepers, roles: Iterable[str]) -> None:
    """Let these use the schema by their own right, and take all rights from the roles of members.

    A role could give such a role a view or a function, which autovacuum would run.
    """
    for role in roles:
        connection.execute(sql.SQL(f"grant usage on schema {SCHEMA} to {{}}").format(sql.Identifier(role)))
    for name in (keepers.members, keepers.tied, MEMBERS_BEFORE):
        if connection.execute("select 1 from pg_roles where rolname = %s", (name,)).fetchone():
            connection.execute(f"revoke all on schema {SCHEMA} from {name}")
            connection.execute(f"revoke all on all tables in schema {SCHEMA} from {name}")


def _shut_out(connection: Connection, role: str, keepers: Keepers) -> None:
    """Take everything from a role that it has here, but for the memory that it was tied."""
    name = sql.Identifier(role)
    connection.execute(sql.SQL(f"revoke all on schema {SCHEMA} from {{}}").format(name))
    connection.execute(sql.SQL(f"revoke all on all tables in schema {SCHEMA} from {{}}").format(name))
    if _is_member(connection, role, keepers.members):
        connection.execute(sql.SQL("revoke {} from {}").format(sql.Identifier(keepers.members), name))


def _check_shuts_out_no_other(shut_out: Iterable[str], role: str) -> None:
    """Raise NotAllowed when letting in one role would take the rights of others."""
    if others := [name for name in shut_out if name != role]:
        raise NotAllowed(
            f"The wall of this database has to be renewed first, and that takes the rights of {', '.join(others)}.",
            hint="Its owner runs `kept store database migrate`, which lists them, and then grants again.",
        )


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
        c.relrowsecurity and (c.relforcerowsecurity or %(sharded)s)
        and not exists (
          select from pg_policy p where p.polrelid = c.oid and p.polpermissive and p.polname <> 'own_space')
        and (
          c.relname = any (%(open)s)
            and exists (
              select
              from pg_policy p
              where p.polrelid = c.oid and p.polname = 'own_space' and p.polcmd = '*'
                and position(quote_literal(quote_ident(pg_get_userbyid(c.relowner)))
                      in pg_get_expr(p.polwithcheck, c.oid)) > 0
                and (c.relname = 'migrations' or pg_get_expr(p.polqual, c.oid) = pg_get_expr(p.polwithcheck, c.oid)))
            and (c.relname = 'migrations'
              or not exists (select from aclexplode(c.relacl) l where l.grantee <> c.relowner))
          or c.relname <> all (%(open)s)
            and exists (
              select
              from pg_policy p
              where p.polrelid = c.oid and p.polname = 'own_space' and p.polcmd = '*'
                and (select bool_and(position(name in pg_get_expr(p.polqual, c.oid)) > 0
                       and position(name in pg_get_expr(p.polwithcheck, c.oid)) > 0)
                     from unnest(%(names)s::text[] || quote_literal(pg_get_userbyid(c.relowner))) name))
            and not exists (
              select from aclexplode(c.relacl) l join pg_roles r on r.oid = l.grantee
              where r.rolname = any (%(keepers)s))
            and not exists (
              select
              from pg_attribute a
              where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
                and a.attname <> all (%(counted)s) and coalesce(a.attstattarget, -1) <> 0 and not %(is_worker)s)))"""
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
    where g.rolname = %s
      and not exists (select from pg_namespace n where n.nspname = 'kept' and n.nspowner = r.oid)"""
_DIRECT_MEMBER = """
    select 1
    from pg_auth_members m
    join pg_roles r on r.oid = m.member
    join pg_roles g on g.oid = m.roleid
    where r.rolname = %s and g.rolname = %s"""
_NUMBER_IN_POLICY = f"""
    select substring(qual from 'kept_members_(\\d+)')::bigint
    from pg_policies
    where schemaname = '{SCHEMA}' and tablename = 'heads' and policyname = 'own_space'"""
_OWNERS = """
    select tablename, quote_literal(tableowner), quote_literal(quote_ident(tableowner))
    from pg_tables
    where schemaname = %s
    order by tablename"""
_GRANTEES_OF_TIES = """
    select distinct case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    cross join aclexplode(c.relacl) a
    where n.nspname = %s and c.relname = 'ties' and a.grantee <> c.relowner"""
_UNTIED = """
    select r.rolname
    from pg_roles r
    join pg_auth_members m on m.member = r.oid
    join pg_roles g on g.oid = m.roleid
    group by r.rolname
    having bool_or(g.rolname = any (%(members)s)) and not bool_or(g.rolname = any (%(tied)s))"""
# Where the role of the whole server served one database alone, its members are those of that one. A policy for a role
# (deptype r) in another database is a tie there.
_UNTIED_BEFORE = """
    select r.rolname
    from pg_roles r
    where r.rolname = any (%(roles)s)
      and not exists (
        select
        from pg_shdepend d
        join pg_roles g on g.oid = d.refobjid and d.refclassid = 'pg_authid'::regclass
        where d.dbid not in (0, (select oid from pg_database where datname = current_database()))
          and (g.rolname = %(group)s or g.oid = r.oid and d.deptype = 'r'))
      and not exists (
        select
        from pg_database b
        join pg_roles g on g.rolname = 'kept_members_' || b.oid
        where b.datname <> current_database())"""
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
