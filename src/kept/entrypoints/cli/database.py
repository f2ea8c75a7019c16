"""`kept store database`: a PostgreSQL database for a team."""

import os

import click
import msgspec

from kept.entrypoints.cli.frame import group
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import counted, field_lines
from kept.memory import database


def _url(invocation: Invocation, given: str | None) -> str:
    url = given or invocation.database or os.environ.get("KEPT_DATABASE_URL") or ""
    if not database.is_database(url):
        raise click.UsageError("Name the database: a URL such as postgresql://owner@host/kept.")
    return url


@group
def database_group() -> None:
    """Set up a PostgreSQL database for a team: init, migrate, status, grant.

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
        lines.append(Dim("Next: kept store database grant ROLE"))
    answer = {"place": found.place, "steps": made.steps, "schema": found.schema, "shut_out": made.shut_out}
    invocation.answer(answer, lines)


@database_group.command("status")
@click.argument("url", required=False)
def database_status(invocation: Invocation, *, url: str | None) -> None:
    """Show server, schema, role, and whether projects are walled off from each other."""
    found = database.status(_url(invocation, url))
    open_to = "this role sees every project, or the tables need `kept store database migrate`"
    rows = {
        "place": found.place,
        "server": f"PostgreSQL {found.server}{', a standby' if found.is_standby else ''}",
        "schema": f"{found.schema or 'none'} (this program knows {found.latest})",
        "role": found.role,
        "walled off": "yes" if found.is_walled else f"no: {open_to if found.schema else 'there are no tables yet'}",
    }
    if found.makers:
        rows["can let themselves in"] = f"{', '.join(found.makers)}: they have CREATEROLE (before PostgreSQL 16)"
    if found.spaces is not None:
        rows["projects"] = str(found.spaces)
    if found.crossings is not None:
        rows["tied roles"] = "; ".join(found.crossings) or "reach their projects only, as tried for each of them"
    invocation.answer(msgspec.to_builtins(found), field_lines(rows))


@database_group.command("grant")
@click.argument("name", metavar="ROLE")
@click.argument("url", required=False)
@click.option("--for", "projects", multiple=True, metavar="PROJECT", help="Only this project. May be repeated.")
def grant_role(invocation: Invocation, *, name: str, url: str | None, projects: tuple[str, ...]) -> None:
    """Let a role of the database use Kept; it is made if there is none. Set its password in PostgreSQL.

    With --for, it reaches these projects, and those granted before, and no others: PostgreSQL sees to that. Without,
    a role that is not tied can reach every project, and a tied one stays tied.
    """
    tied = database.grant(_url(invocation, url), name, projects)
    lines: list[Line] = [(Strong(name), f" may use Kept: {', '.join(tied) or 'every project'}.")]
    if tied and not projects:
        lines.append(Dim("It was tied to these before, and stays tied. To reach all projects, use another role."))
    if any(project.startswith("number ") for project in tied):
        lines.append(Dim("A project that has no memories yet is shown by its number."))
    invocation.answer({"role": name, "projects": tied}, lines)
