"""Serve the operator of a database, for `kept store database`: make it, let roles in, report its state.

These functions open no memory. Rule: a project is named as its team names it; its space is worked out here.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kept.errors import MovedAway, NotFound
from kept.projects import Projects
from kept.projects.registry import Project, older_team_space, team_space
from kept.projects.teams import as_role_of, exists, join
from kept.projects.teams import refuse_password as refuse_password
from kept.projects.teams import without_password as without_password
from kept.settings import Settings
from kept.storage import database
from kept.storage import is_database as is_database

if TYPE_CHECKING:
    from kept.storage.database import DatabaseStatus as DatabaseStatus
    from kept.storage.database import SchemaChanges


def url_for(project: Project, moved: MovedAway) -> str:
    """Return the URL of a project that was moved to a database, for the role that this home uses.

    "" if it is another project that was moved, or one that is in a file now.
    """
    if not is_database(moved.to) or moved.space != (project.space if project.team is None else project.team.space):
        return ""
    if project.team is None:
        return moved.to
    url = as_role_of(project.team.database, moved.to)
    return "" if url == project.team.database else url  # it was followed before, and this command names the old place


def name_of(project: Project) -> str:
    """Return the name of a project in a database."""
    return project.name if project.team is None else project.team.name


def follow(projects: Projects, project: Project, url: str, *, settings: Settings) -> Project:
    """Use a project in the database that it was moved to."""
    return join(projects, name_of(project), project.root or ".", url, settings=settings)


def registered(projects: Projects, name: str, url: str, *, settings: Settings) -> Project:
    """Return the project of this name or id in the home; one that only the database knows is registered first.

    Raises NotFound where neither knows it.
    """
    try:
        return projects.get(name)
    except NotFound:
        if not is_database(url) or not exists(url, name, settings=settings):
            raise
    return projects.add(name)


def names_like(url: str, name: str, names: Sequence[str], *, settings: Settings) -> list[str]:
    """Return the names with which a name of a project in a database may be confused: those of the home, and its own.

    A database lists its projects to no role that is bound to row-level security, so others are not known.
    """
    if exists(url, name, settings=settings):
        return [*names, name]
    older = older_team_space(name).removeprefix(team_space(""))
    return [*names, *([older] if older != name and exists(url, older, settings=settings) else [])]


def initialise(url: str, *, sharded: bool = False) -> "SchemaChanges":
    """Make the tables, or bring them up to date. Return how many steps were made, and who was shut out.

    Call it as the owner. `sharded`: spread them over the workers of a Citus cluster.
    """
    return database.initialise(url, sharded=sharded)


def status(url: str) -> "DatabaseStatus":
    """How the database is, as the role of this URL sees it."""
    return database.status(url)


def grant(url: str, role: str, projects: Sequence[str] = ()) -> list[str]:
    """Let a role in. With `projects` it reaches these, and those granted before, and no others.

    Return the projects that it is tied to; an empty list if it reaches all.
    """
    tied = database.grant(url, role, [team_space(project) for project in projects])
    return [space.removeprefix(team_space("")) for space in tied]


def revoke(url: str, role: str, projects: Sequence[str] = ()) -> list[str]:
    """Take these projects from a tied role; without any, everything. Return those that it is still tied to."""
    left = database.revoke(url, role, [team_space(project) for project in projects])
    return [space.removeprefix(team_space("")) for space in left]


def known_projects(url: str, asked: Sequence[str]) -> list[str]:
    """Return the names that the owner can know: of these the ones that are there, and all that roles are tied to.

    Of a name with capitals also the one that has none is tried.
    """
    spaces = [space for name in asked for space in (team_space(name), older_team_space(name))]
    return [space.removeprefix(team_space("")) for space in database.known_spaces(url, spaces)]
