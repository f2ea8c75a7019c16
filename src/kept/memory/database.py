"""The operator's side of a database: make it, let roles in, look how it is. For `kept database`.

These functions open no memory. Rule: a project is named as its team names it; its space is worked out here.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kept.projects.registry import team_space
from kept.storage import database
from kept.storage import is_database as is_database

if TYPE_CHECKING:
    from kept.storage.database import DatabaseStatus


def initialise(url: str) -> int:
    """Make the tables, or bring them up to date. Returns how many steps were made. Call it as the owner."""
    return database.initialise(url)


def status(url: str) -> "DatabaseStatus":
    """How the database is, as the role of this URL sees it."""
    return database.status(url)


def grant(url: str, role: str, projects: Sequence[str] = ()) -> list[str]:
    """Let a role in. With `projects` it reaches these, and those granted before, and no others.

    Return the projects that it is tied to; an empty list if it reaches all.
    """
    tied = database.grant(url, role, [team_space(project) for project in projects])
    return [space.removeprefix(team_space("")) for space in tied]
