"""Tie a directory to a project that a team keeps in a database.

The registry of each home notes the URL of the database and the name of the project there; whatever opens the directory
finds them. Rule: a password is never written down. PostgreSQL's client finds it in ~/.pgpass, PGPASSWORD or a service.
"""

from contextlib import closing, suppress
from os import PathLike
from urllib.parse import parse_qsl, urlsplit

from kept.errors import InvalidInput, NotFound
from kept.projects import Projects
from kept.projects.registry import Project, team_space
from kept.settings import Settings
from kept.storage import is_database, open_database

SECRETS = ("password", "sslpassword", "oauth_client_secret")
EXAMPLE = "Give one such as postgresql://ann@db.example.com/kept."


def join(projects: Projects, name: str, path: str | PathLike[str], url: str, *, settings: Settings) -> Project:
    """Let the directory belong to this project of the database, once that has answered.

    Raises InvalidInput for a URL with a password, StorageError or NotAllowed when the database cannot be used.
    """
    _check(url)
    with suppress(NotFound):  # nobody has written to the project yet
        space = team_space(name)
        with closing(open_database(url, space, write_wait_s=settings.write_wait_s, must_exist=True)):
            pass
    return projects.join(name, path, url)


def _check(url: str) -> None:
    try:
        parts = urlsplit(url)
        given = [parts.password, *(value for key, value in parse_qsl(parts.query) if key in SECRETS)]
    except ValueError as error:
        raise InvalidInput("This is not the URL of a PostgreSQL database.", hint=EXAMPLE) from error
    if not is_database(url):
        raise InvalidInput("--database needs the URL of a PostgreSQL database.", hint=EXAMPLE)
    if any(given):
        raise InvalidInput(
            "The URL holds a password, which would be written down in the home. Nothing was changed.",
            hint="Leave it out. ~/.pgpass (mode 600) can hold it: host:port:database:role:password. So can PGPASSWORD.",
        )
