"""Tie a directory to a project that a team keeps in a database.

The registry of each home notes the URL of the database and the name of the project there; whatever opens the directory
finds them. Rule: a password is never written down. PostgreSQL's client finds it in ~/.pgpass, PGPASSWORD or a service.
"""

from os import PathLike
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from kept.errors import InvalidInput, NotFound
from kept.projects import Projects
from kept.projects.registry import Project, older_team_space, team_space
from kept.settings import Settings
from kept.storage import is_database, open_database

SECRETS = ("password", "sslpassword", "oauth_client_secret")
EXAMPLE = "Give one such as postgresql://ann@db.example.com/kept."


def join(
    projects: Projects, name: str, path: str | PathLike[str], url: str, *, settings: Settings, is_new: bool = False
) -> Project:
    """Let the directory belong to this project of the database, once that has answered. `is_new`: make it, if need be.

    Raises InvalidInput for a URL with a password, NotFound for a project that is not there, StorageError or NotAllowed
    when the database cannot be used.
    """
    check_url(url)
    projects.check_join(name, path, url)  # first: a project that was begun in the database cannot be taken back
    try:
        open_database(url, team_space(name), write_wait_s=settings.write_wait_s, must_exist=not is_new).close()
    except NotFound as error:
        older = older_team_space(name).removeprefix(team_space(""))
        is_like = older != name and exists(url, older, settings=settings)
        if not (is_like and _is_known(projects, name)):
            meant = f" Did you mean {older!r}?" if is_like else ""
            raise NotFound(
                f"There is no project {name!r} in this database.{meant}",
                hint="Ask a teammate for its name, which is exact; or add --new to begin it there.",
            ) from error
    return projects.join(name, path, url)


def _is_known(projects: Projects, name: str) -> bool:
    """Return True if the home has a project of exactly this name: Kept 0.2 stored it under the folded one."""
    return any(project.name == name for project in projects.list_projects())


def exists(url: str, name: str, *, settings: Settings) -> bool:
    """Return True if the database has a project of exactly this name that this role may open."""
    try:
        open_database(url, team_space(name), write_wait_s=settings.write_wait_s, must_exist=True).close()
    except NotFound:
        return False
    return True


def without_password(url: str) -> str:
    """Return the URL without anything secret in it."""
    parts = urlsplit(url)
    user, _, place = parts.netloc.rpartition("@")
    name = f"{user.partition(':')[0]}@" if user else ""
    query = urlencode([(key, value) for key, value in parse_qsl(parts.query) if key not in SECRETS], safe="/")
    return urlunsplit((parts.scheme, f"{name}{place}", parts.path, query, ""))


def as_role_of(known: str, url: str) -> str:
    """Return the second URL for the role that the first one names, if it names one."""
    role, there = urlsplit(known).username, urlsplit(url)
    place = there.netloc.rpartition("@")[2]
    return urlunsplit(there._replace(netloc=f"{role}@{place}")) if role else url


def check_url(url: str) -> None:
    """Raise InvalidInput for a URL that is none of a PostgreSQL database, or that holds a password."""
    if not is_database(url):
        raise InvalidInput("--database needs the URL of a PostgreSQL database.", hint=EXAMPLE)
    refuse_password(url)


def refuse_password(url: str) -> None:
    """Raise InvalidInput for a URL of a database with a password in it."""
    try:
        parts = urlsplit(url)
        given = [parts.password, *(value for key, value in parse_qsl(parts.query) if key in SECRETS)]
    except ValueError as error:
        raise InvalidInput("This is not the URL of a PostgreSQL database.", hint=EXAMPLE) from error
    if any(given):
        raise InvalidInput(
            "The URL holds a password, which others could read in the list of processes, in the history of the shell "
            "or in the home. Nothing was changed.",
            hint="Leave it out. ~/.pgpass (mode 600) can hold it: host:port:database:role:password. So can PGPASSWORD.",
        )
