"""`kept serve` and `kept token`: the memory in a browser and over HTTP, and the keys of a team."""

import os
import signal
import sys
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import click
from msgspec.structs import replace

from kept.distribution import install_line
from kept.entrypoints.cli.frame import command, group
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import counted, local
from kept.entrypoints.http.keys import OWNER, Keys, Token
from kept.entrypoints.http.visits import sign_out, signed_in
from kept.entrypoints.web.demo import fill
from kept.errors import NotAllowed, SettingsError
from kept.memory import database
from kept.memory.opening import open as open_memory
from kept.memory.opening import settings_in_force
from kept.projects.registry import Project

PORT = 7333
PACKAGES = ("fastapi", "starlette", "uvicorn", "jinja2", "pydantic", "cronsim", "prometheus_client")
MOST_EXAMINED = 20  # projects that are looked into before the first page: who has more has something
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@command
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=PORT,
    metavar="PORT",
    help=f"The port to listen on; by default {PORT}.",
)
@click.option("--name", "names", multiple=True, metavar="HOST[:PORT]", help="A name under which a proxy reaches it.")
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="Believe X-Forwarded-For and X-Forwarded-Proto of this proxy (an IP address or a network).",
)
@click.option("--open/--no-open", "opens", default=True, help="Open the page in the browser.")
@click.option(
    "--demo/--no-demo",
    default=None,
    help="Show sample data, in a scratch home that is removed at the end. By default when nothing is kept yet.",
)
@click.option("--shared", is_flag=True, help="Let others on the network reach it, with tokens.")
def serve_command(
    invocation: Invocation,
    *,
    host: str,
    port: int,
    names: tuple[str, ...],
    proxies: tuple[str, ...],
    opens: bool,
    demo: bool | None,
    shared: bool,
) -> None:
    """Listens on this machine only. The address that it opens works once and for two minutes; the key that it prints
    signs you in later, until the server stops. For a team, put a proxy with TLS in front, and give each person a token
    (`kept token create`). Needs the extra `server`.
    """
    _check_host(host, is_shared=shared)
    server = _server()
    # The key of the page is that of the person at this machine, so without --as it opens what they can open.
    role = invocation.role if invocation.is_role_given else "admin"
    options = server.ServeOptions(
        home=invocation.home,
        project=invocation.project,
        role=role,
        host=host,
        port=port,
        names=names,
        proxies=proxies,
    )
    is_bare = demo is None and host in LOOPBACK and role != "skill" and not _has_anything(invocation)
    if is_bare:
        click.echo("Nothing is kept yet, so the page shows sample data. --no-demo leaves it empty.")
    with _sample_home() if demo or is_bare else nullcontext() as samples:
        options = options if samples is None else replace(options, samples=True, **samples)
        server.run(options, say=click.echo, open_browser=webbrowser.open if opens else None)


def _check_host(host: str, *, is_shared: bool) -> None:
    if host not in LOOPBACK and not is_shared:
        raise NotAllowed(
            f"{host} can be reached by others on the network.",
            hint="Say --shared if that is meant: everyone needs a token, and a proxy should add TLS.",
        )


def _server() -> ModuleType:
    """Return the module of the server. Raises SettingsError if one of its packages is missing."""
    try:
        from kept.entrypoints.http import server  # needs optional packages
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in PACKAGES:
            raise
        raise SettingsError(
            f"The server needs the package {missing.name}.", hint=f"Run: {install_line('server')}"
        ) from None
    return server


@contextmanager
def _sample_home() -> Iterator[dict[str, str]]:
    """Make a scratch home with sample data, and remove it at the end."""
    # The server passes the signal on when it has stopped; unheard, it would leave the scratch home behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with TemporaryDirectory(prefix="kept-demo-") as folder:
        scratch = Path(folder)
        yield {"project": str(fill(scratch)), "home": str(scratch / "kept")}


def _has_anything(invocation: Invocation) -> bool:
    """Whether anything ever happened in this home, or in the database that it uses."""
    projects = invocation.projects()
    projects.find(invocation.project)  # raises StorageError where the home is away: that is not an empty one
    if os.environ.get("KEPT_DATABASE_URL") or projects.home.global_dir.exists():
        return True
    known = projects.list_projects()
    if len(known) > MOST_EXAMINED:
        return True
    for project in known:
        with open_memory(project=project.space, home=projects.home.root, settings={"auto_upkeep": False}) as memory:
            if memory.history(limit=1):
                return True
    return False


def _opens(token: Token, known: Mapping[str, Project]) -> str:
    if token.lost:
        return f"nothing: no single project is named {', '.join(token.lost)}; revoke it and create it again"
    names = dict(zip(token.projects, token.names, strict=False))
    closed = {id: f"{names.get(id, id)} (linked elsewhere since; create the token again)" for id in known}
    opened = _opened(token, known)
    shown = [opened.get(id) or closed.get(id) or f"{id} (gone)" for id in token.projects]
    return ", ".join(shown) or "every project"


def _opened(token: Token, known: Mapping[str, Project]) -> dict[str, str]:
    """The names of the projects that a token opens today, by id."""
    return {} if token.lost else {id: one.name for id, one in known.items() if token.key().opens(one)}


def _keys(invocation: Invocation) -> Keys:
    return Keys(invocation.projects().home.root)


@group
def token_command() -> None:
    """A token lets one person, or a program of theirs, use `kept serve`. It is shown once; only its hash is stored."""


@token_command.command("create")
@click.argument("name")
@click.option("--admin", is_flag=True, help="May also change global memory and read every project.")
@click.option("--for", "projects", multiple=True, metavar="PROJECT", help="Only this project. May be repeated.")
def create_token(invocation: Invocation, *, name: str, admin: bool, projects: tuple[str, ...]) -> None:
    """Make a token for somebody, and show it.

    With --for, of a project of this home, or of the database that $KEPT_DATABASE_URL or --database names.
    """
    home, settings = invocation.projects(), settings_in_force(invocation.settings)
    url = invocation.database or os.environ.get("KEPT_DATABASE_URL") or ""
    known = [database.registered(home, project, url, settings=settings) for project in projects]
    ids = [project.id for project in known]
    secret = _keys(invocation).create(name, role="admin" if admin else "project", projects=ids)
    document = {"name": name, "token": secret, "projects": [project.name for project in known]}
    invocation.answer(document, [(Strong(secret),), Dim("Shown only once. Give it to no one else.")])


@token_command.command("list")
def list_tokens(invocation: Invocation) -> None:
    """List the tokens: whose, since when, for what."""
    tokens = _keys(invocation).tokens()
    known = {project.id: project for project in invocation.projects().list_projects()}
    shown = [
        {
            "name": token.name,
            "role": token.role,
            "projects": [_opened(token, known).get(id, id) for id in token.projects],
            "lost": token.lost,
            "created_at": token.created_at,
        }
        for token in tokens
    ]
    lines: list[Line] = [
        (
            Strong(f"{token.name:<20}"),
            f" {token.role:<8} {_opens(token, known)}",
            Dim(f"  since {local(token.created_at, invocation.zone)}"),
        )
        for token in tokens
    ]
    browsers = signed_in(invocation.projects().home.root)
    lines = lines or ["There are no tokens. `kept token create NAME` makes one."]
    if browsers:
        lines.append(
            Dim(f"{counted(browsers, 'browser')} signed in as you. `kept token revoke {OWNER}` signs them out.")
        )
    invocation.answer({"tokens": shown, "browsers": browsers}, lines)


@token_command.command("revoke")
@click.argument("name")
def revoke_token(invocation: Invocation, *, name: str) -> None:
    """End a token at once. The NAME `user` signs out the browsers that are signed in as you."""
    if name == OWNER:
        ended = sign_out(invocation.projects().home.root)
        invocation.answer({"revoked": name, "browsers": ended}, [f"Signed out: {counted(ended, 'browser')}."])
        return
    _keys(invocation).revoke(name)
    invocation.answer({"revoked": name}, [f"{name}'s token is revoked."])
