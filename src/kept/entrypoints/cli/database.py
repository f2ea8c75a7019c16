"""`kept database` and `kept move`: a PostgreSQL database for a team, and projects on their way in and out of it."""

import os
from typing import Any

import click
import msgspec

from kept.entrypoints.cli.derived import options_of, request_of
from kept.entrypoints.cli.frame import command, group
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import counted, field_lines, memories
from kept.memory import database
from kept.memory.verbs.exchange import MOVE


def _url(invocation: Invocation, given: str | None) -> str:
    url = given or invocation.database or os.environ.get("KEPT_DATABASE_URL") or ""
    if not database.is_database(url):
        raise click.UsageError("Name the database: a URL such as postgresql://owner@host/kept.")
    return url


@group
def database_command() -> None:
    """For the operator of a PostgreSQL database that holds the projects of a team. URL is that of its owner; without
    it, --database and $KEPT_DATABASE_URL count. Needs the extra `postgres`.
    """


@database_command.command("init")
@click.argument("url", required=False)
def init_database(invocation: Invocation, *, url: str | None) -> None:
    """Make the tables of Kept, and the role of those who may use them."""
    _bring_up_to_date(invocation, _url(invocation, url))


@database_command.command("migrate")
@click.argument("url", required=False)
def migrate_database(invocation: Invocation, *, url: str | None) -> None:
    """Bring the tables up to date after an upgrade of Kept."""
    _bring_up_to_date(invocation, _url(invocation, url))


def _bring_up_to_date(invocation: Invocation, url: str) -> None:
    steps = database.initialise(url)
    found = database.status(url)
    done = f"made in {counted(steps, 'step')}" if steps else "was up to date"
    lines = [f"{found.place}: the schema {done}. It is version {found.schema}.", Dim("Next: kept database grant ROLE")]
    invocation.answer({"place": found.place, "steps": steps, "schema": found.schema}, lines)


@database_command.command("status")
@click.argument("url", required=False)
def database_status(invocation: Invocation, *, url: str | None) -> None:
    """Show server, schema, role, and whether projects are walled off from each other."""
    found = database.status(_url(invocation, url))
    open_to = "this role sees every project, or the tables need `kept database migrate`"
    rows = {
        "place": found.place,
        "server": f"PostgreSQL {found.server}{', a standby' if found.is_standby else ''}",
        "schema": f"{found.schema or 'none'} (this program knows {found.latest})",
        "role": found.role,
        "walled off": "yes" if found.is_walled else f"no: {open_to if found.schema else 'there are no tables yet'}",
    }
    if found.spaces is not None:
        rows["projects"] = str(found.spaces)
    if found.crossings is not None:
        rows["tied roles"] = "; ".join(found.crossings) or "reach their projects only, as tried for each of them"
    invocation.answer(msgspec.to_builtins(found), field_lines(rows))


@database_command.command("grant")
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


@command
@options_of(MOVE)
def move_command(invocation: Invocation, **given: Any) -> None:
    """Carries everything of the project over, with its history, and compares both sides. What was there is left as it
    was. A move that was cut off goes on where it stopped. Global memory stays in your home.
    """
    asked = request_of(MOVE, given)
    with invocation.open(auto_upkeep=False) as memory:
        moved = memory.perform(MOVE, asked)
    counts = (memories(moved.memories), counted(moved.events, "event"), counted(moved.messages, "message"))
    lines: list[Line] = [f"{', '.join(counts)}: all there, the same as here (digest {moved.digest[:8]})."]
    if database.is_database(asked.to):
        lines.append(
            Dim("Use it from now on: `kept projects link NAME --database URL` in each clone, or set KEPT_DATABASE_URL.")
        )
    invocation.answer(moved, lines)
