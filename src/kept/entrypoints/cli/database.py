"""`kept store database`: a PostgreSQL database for a team."""

import os
import shlex
from collections.abc import Sequence

import click
import msgspec

from kept.entrypoints.cli.frame import group, yes_option
from kept.entrypoints.cli.invocation import FAILED, Dim, Invocation, Line, Strong, nearest
from kept.entrypoints.cli.wording import counted, field_lines
from kept.memory import database


def _url(invocation: Invocation, given: str | None) -> str:
    url = given or invocation.database or os.environ.get("KEPT_DATABASE_URL") or ""
    if not database.is_database(url):
        raise click.UsageError("Name the database: a URL such as postgresql://owner@host/kept.")
    if given:
        database.refuse_password(given)
    return url


@group
def database_group() -> None:
    """Set up a PostgreSQL database for a team: init, migrate, status, grant, revoke.

    For the operator of a PostgreSQL database that holds the projects of a team. URL is that of its owner; without
    it, --database and $KEPT_DATABASE_URL count. Needs the extra `postgres`.
    """


@database_group.command("init")
@click.argument("url", required=False)
@click.option("--citus", "sharded", is_flag=True, help="Spread the tables over the workers of a Citus cluster.")
def init_database(invocation: Invocation, *, url: str | None, sharded: bool) -> None:
    """Make the tables of Kept, and the role of those who may use them."""
    _bring_up_to_date(invocation, _url(invocation, url), sharded=sharded)


@database_group.command("migrate")
@click.argument("url", required=False)
def migrate_database(invocation: Invocation, *, url: str | None) -> None:
    """Bring the tables up to date after an upgrade of Kept."""
    _bring_up_to_date(invocation, _url(invocation, url))


def _bring_up_to_date(invocation: Invocation, url: str, *, sharded: bool = False) -> None:
    made = database.initialise(url, sharded=sharded)
    found = database.status(url)
    done = f"made in {counted(made.steps, 'step')}" if made.steps else "was up to date"
    lines: list[Line] = [f"{found.place}: the schema {done}. It is version {found.schema}."]
    if made.shut_out:
        lines += [
            f"These roles can no longer use it: {', '.join(made.shut_out)}.",
            "They had rights, but no tie, and nothing shows that they may reach every project.",
            "Let each in again: `kept store database grant ROLE --for PROJECT`, or without --for to every project.",
        ]
    else:
        lines.append(Dim(f"Next: kept store database grant ROLE {shlex.quote(database.without_password(url))}"))
    answer = {"place": found.place, "steps": made.steps, "schema": found.schema, "shut_out": made.shut_out}
    invocation.answer(answer, lines)


@database_group.command("status")
@click.argument("url", required=False)
def database_status(invocation: Invocation, *, url: str | None) -> None:
    """Show server, schema, role, and whether projects are walled off from each other.

    The exit code is 1 if they are not, or if a tied role reads a project that it is not tied to.
    """
    found = database.status(_url(invocation, url))
    invocation.answer(msgspec.to_builtins(found), field_lines(_status_rows(found)))
    if not found.is_walled or found.crossings:
        click.get_current_context().exit(FAILED)


def _status_rows(found: "database.DatabaseStatus") -> dict[str, str]:
    open_to = "the tables need `kept store database migrate`"
    rows = {
        "place": found.place,
        "server": f"PostgreSQL {found.server}{', a standby' if found.is_standby else ''}",
        "schema": f"{found.schema or 'none'} (this program knows {found.latest})",
        "role": f"{found.role}{', which sees every project, walled off or not' if found.sees_all else ''}",
        "walled off": "yes" if found.is_walled else f"no: {open_to if found.schema else 'there are no tables yet'}",
    }
    if found.makers:
        rows["can let themselves in"] = f"{', '.join(found.makers)}: they have CREATEROLE (before PostgreSQL 16)"
    if found.spaces is not None:
        rows["projects"] = str(found.spaces)
    if found.crossings is not None:
        rows["tied roles"] = "; ".join(found.crossings) or "reach their projects only, as tried for each of them"
    return rows


@database_group.command("grant")
@click.argument("name", metavar="ROLE")
@click.argument("url", required=False)
@click.option("--for", "projects", multiple=True, metavar="PROJECT", help="Only this project. May be repeated.")
@yes_option
def grant_role(invocation: Invocation, *, name: str, url: str | None, projects: tuple[str, ...], yes: bool) -> None:
    """Let a role of the database use Kept; it is made if there is none. Set its password in PostgreSQL.

    With --for, it reaches these projects, and those granted before, and no others: PostgreSQL sees to that. Without,
    a role that is not tied can reach every project, and a tied one stays tied. You are asked about a project that is
    not there yet: --yes ties the role to it beforehand.
    """
    url = _url(invocation, url)
    _check_projects(invocation, url, projects, yes=yes)
    tied = database.grant(url, name, projects)
    lines: list[Line] = [(Strong(name), f" may use Kept: {', '.join(tied) or 'every project'}.")]
    if tied and not projects:
        lines.append(Dim("It was tied to these before, and stays tied. To reach all projects, use another role."))
    if any(project.startswith("number ") for project in tied):
        lines.append(Dim("A project that has no memories yet is shown by its number."))
    invocation.answer({"role": name, "projects": tied}, lines)


def _check_projects(invocation: Invocation, url: str, projects: Sequence[str], *, yes: bool) -> None:
    """Ask before a role is tied to a project that is not there: its name may be misspelt."""
    known = [] if yes or not projects else database.known_projects(url, projects)
    for project in projects if not yes else ():
        if project not in known:
            meant = nearest(project, known)
            near = f" Did you mean {meant}?" if meant else ""
            invocation.agree(f"There is no project {project!r} in this database yet.{near} Tie the role to it anyway?")


@database_group.command("revoke")
@click.argument("name", metavar="ROLE")
@click.argument("url", required=False)
@click.option("--for", "projects", multiple=True, metavar="PROJECT", help="Only this project. May be repeated.")
def revoke_role(invocation: Invocation, *, name: str, url: str | None, projects: tuple[str, ...]) -> None:
    """Take Kept from a role of the database. The role itself stays; PostgreSQL's `drop role` removes it.

    With --for, it is no longer tied to these projects; tied to none, it may use nothing. It needs no superuser.
    """
    left = database.revoke(_url(invocation, url), name, projects)
    may = f" may still use Kept: {', '.join(left)}." if left else " may no longer use Kept in this database."
    invocation.answer({"role": name, "projects": left}, [(Strong(name), may)])
