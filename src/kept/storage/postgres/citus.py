"""A database that Citus spreads over several servers: all rows of a project are on one of them, its worker.

Called by schema.py and walls.py for the owner, who is connected to the coordinator. Every table is distributed by its
space, beside the others; `migrations` and `ties` are copied to every node. Everything else works as on one server.
Rule: nodes agree about the names of roles and not about their numbers, so `ties` holds names here.
"""

from typing import Any

from psycopg import sql

from kept.errors import InvalidInput, NotAllowed
from kept.storage.postgres.connection import NODE_PASSWORDS, SCHEMA, Connection

COPIED = ("migrations", "ties")  # to every node; all other tables are distributed
FIRST = "heads"  # the table that all others stand beside
_PAGE = "docs/operating.md, Sharding with Citus, has all steps"


def is_there(connection: Connection) -> bool:
    """Return True if the database has the extension."""
    return connection.execute("select 1 from pg_extension where extname = 'citus'").fetchone() is not None


def is_worker(connection: Connection) -> bool:
    """Return True on a node that is not the coordinator."""
    if not is_there(connection):
        return False
    return connection.execute("select 1 from pg_dist_local_group where groupid <> 0").fetchone() is not None


def copy_of_ties(connection: Connection) -> str | None:
    """Return the name that the table of ties has on each node; None where there is one server.

    A policy runs in a statement on one worker, which may read tables of that node and none of the whole cluster.
    """
    if not is_there(connection):
        return None
    asked = "select shardid from pg_dist_shard where logicalrelid = to_regclass(%s)"
    found = connection.execute(asked, (f"{SCHEMA}.ties",)).fetchone()
    return f"{SCHEMA}.ties_{found[0]:d}" if found else None


def check_is_coordinator(connection: Connection, place: str) -> None:
    """Raise InvalidInput on a worker: tables and roles are made on the coordinator."""
    if is_worker(connection):
        found = connection.execute("select nodename, nodeport from pg_dist_node where groupid = 0").fetchone()
        where = f" {found[0]}, port {found[1]:d}" if found else ""
        raise InvalidInput(
            f"{place} is a worker of a Citus cluster. Tables and roles are changed on the coordinator.",
            hint=f"Name the coordinator{where} in the URL.",
        )


def check_can_distribute(connection: Connection, place: str) -> None:
    """Raise an error with the steps that a superuser has to take first."""
    if not is_there(connection):
        raise InvalidInput(
            f"{place} does not have the extension citus.",
            hint="On every node a superuser adds citus to shared_preload_libraries, restarts PostgreSQL and runs "
            f"`create extension citus` in this database. {_PAGE}.",
        )
    if not connection.execute("select 1 from pg_dist_node where isactive and shouldhaveshards").fetchone():
        raise InvalidInput(
            f"The coordinator {place} knows no worker.",
            hint=f"A superuser runs `select citus_add_node('HOST', 5432)` here for each worker. {_PAGE}.",
        )
    check_nodes_answer(connection)
    asked = "select rolname from pg_roles where rolname = current_user and not (rolsuper or rolbypassrls)"
    if found := connection.execute(asked).fetchone():
        raise NotAllowed(
            f"The owner {found[0]} needs BYPASSRLS. Citus copies the rows of shards as the owner when it moves them, "
            "so the wall between projects does not hold for it, and Kept refuses to open projects as such a role.",
            hint=f'A superuser runs `alter role "{found[0]}" bypassrls` on the coordinator.',
        )


def check_nodes_answer(connection: Connection) -> None:
    """Raise NotAllowed unless this role can log in at all workers."""
    asked = "select nodename, nodeport, result from run_command_on_workers('select 1') where not success"
    for host, port, why in connection.execute(asked).fetchall():
        raise NotAllowed(f"The coordinator cannot log in at the worker {host}:{port}: {why}", hint=NODE_PASSWORDS)


def share_role(connection: Connection, role: str) -> None:
    """Let Citus make a role, its password and its memberships on every node, if it does not do that yet.

    Raises NotAllowed where only a superuser can.
    """
    asked = """
        select r.rolsuper
        from pg_roles r
        where r.rolname = current_user
          and not exists (
            select
            from pg_dist_object
            where classid = 'pg_authid'::regclass and objid = to_regrole(quote_ident(%s)))"""
    found = connection.execute(asked, (role,)).fetchone() if copy_of_ties(connection) else None
    if found is None:
        return
    if not found[0]:
        raise NotAllowed(
            f"Citus does not know the role {role}: it was made in another database of this server, or before Citus was "
            "there, so its rights would not reach the workers.",
            hint="Run the same command once as a superuser, who can read its password, or name another role.",
        )
    connection.execute("create table new_role (x integer)")  # Citus makes the owner of a table where it puts that
    connection.execute(sql.SQL("alter table new_role owner to {}").format(sql.Identifier(role)))
    connection.execute("select create_distributed_table('new_role', 'x', shard_count => 1)")
    connection.execute("drop table new_role")


def distributed(connection: Connection) -> set[str]:
    """Return the tables that are on the workers, by their names in the schema."""
    if not is_there(connection):
        return set()
    asked = """
        select c.relname
        from pg_dist_partition p
        join pg_class c on c.oid = p.logicalrelid
        where c.relnamespace = to_regnamespace(%s)"""
    return {name for (name,) in connection.execute(asked, (SCHEMA,)).fetchall()}


def set_statistics(connection: Connection, table: str, column: str) -> None:
    """Let no server gather statistics of a column: first of its shards, which Citus does not do for the whole table."""
    change = sql.SQL("alter table {} alter column {} set statistics 0")
    on_shards = sql.SQL("alter table %s alter column {} set statistics 0").format(sql.Identifier(column))
    asked = "select result from run_command_on_shards(%s, %s) where not success"
    values = (f"{SCHEMA}.{table}", on_shards.as_string(connection))
    for (why,) in connection.execute(asked, values).fetchall():
        raise NotAllowed(
            f"The statistics of {SCHEMA}.{table}.{column} could not be switched off: {why}", hint="Try again."
        )
    with connection.transaction():
        connection.execute("set local citus.enable_ddl_propagation = off")
        connection.execute(change.format(sql.Identifier(SCHEMA, table), sql.Identifier(column)))


def distribute(connection: Connection) -> None:
    """Put every table that is not yet on the workers there, with the number of shards that the database says."""
    done = distributed(connection)
    found: Any = connection.execute("select tablename from pg_tables where schemaname = %s", (SCHEMA,)).fetchall()
    for table in sorted({table for (table,) in found} - done, key=lambda name: (name != FIRST, name)):
        where = f"{SCHEMA}.{table}"
        if table in COPIED:
            if table == "ties":
                connection.execute("alter table ties alter column role type text")
            connection.execute("select create_reference_table(%s)", (where,))
        elif table == FIRST:
            connection.execute("select create_distributed_table(%s, 'space')", (where,))
        else:
            beside = "select create_distributed_table(%s, 'space', colocate_with => %s)"
            connection.execute(beside, (where, f"{SCHEMA}.{FIRST}"))
