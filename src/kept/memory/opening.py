"""`kept.open`: from the caller's arguments to an opened memory.

The one place where a location, a project, a home and the settings meet; the clock and the
environment come in here and are passed on as arguments.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from msgspec.structs import replace

from kept.errors import InvalidInput, SettingsError, StorageError, clean_messages_with, expect
from kept.memory import Kept
from kept.memory.context import Confirm, Context, Judge
from kept.memory.signals import without_secrets
from kept.model import Actor, Origin, Role
from kept.ports import Clock, Embedder
from kept.projects import ExactName, config
from kept.projects import Projects as Projects
from kept.projects import typed as typed
from kept.projects.home import Home, account_name, default_home, expanded
from kept.projects.registry import Project as Project
from kept.projects.spaces import HomeSpaces, OneSpace, ProjectOnly, Spaces, UserSpaces, digest_of
from kept.settings import Resolved, Settings, flat
from kept.storage import is_database, open_space

if TYPE_CHECKING:
    from kept.recall import Reranker
    from kept.writing.extraction import Summarizer


def utc_now() -> datetime:
    return datetime.now(UTC)


def open(
    location: str | os.PathLike[str] | None = None,
    *,
    project: str | os.PathLike[str] | None = None,
    user: str | None = None,
    home: str | os.PathLike[str] | None = None,
    exact: bool = False,
    actor: Actor | None = None,
    confirm: Confirm | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    clock: Clock | None = None,
    origin: Origin = "agent",
    reranker: "Reranker | None" = None,
    embedder: Embedder | None = None,
    judge: Judge | None = None,
    summarizer: "Summarizer | None" = None,
    person: str | None = None,
    hosted: bool = False,
    without_global: bool = False,
) -> Kept:
    """Open a memory: a project of the home (by default the current directory's), one file, or `:memory:`.

    `location` is a file (`.json` for a JSON store, anything else is SQLite), `:memory:`, the postgresql:// URL of a
    database that holds the project, or None for the home, unless `$KEPT_DATABASE_URL` or `kept projects link` names a
    database. `project` is a directory or a name; with `exact` always a name, compared as it is. `user` is the name or
    id of a user of your program, any string, compared as it is: each user has a memory apart from all projects and
    other users, without global memory. `confirm(question) -> bool` is asked before global memory changes.
    `clock` returns an aware datetime. `origin` is who speaks when a draft does not say. `reranker(query, hits)` may
    give each hit one more factor; `embedder` makes the vectors of profile hybrid. `judge(list)` settles the findings of
    each session as it ends: it returns `keep`, `drop`, `rewrite` and `add`. `summarizer(messages)` writes the summaries
    of sessions when they are flushed, compacted and finished.

    For programs that serve others: `person` is the name of the person for whom the actor acts; a database notes both
    names, any other store notes the person's. `hosted`: an agent acts in a program of its own, and what tools said to
    it is known only later. `without_global` hides the global memory of the home.
    """
    clean_messages_with(without_secrets)
    _check_given(locals())
    now = clock or utc_now
    target = _exactly(project) if exact else project
    if user is not None:
        spaces, chosen = _of_user(location, user, target, home, settings, now)
    elif location is None or is_database(location):
        url = None if location is None else os.fspath(location)
        spaces, chosen = _in_home(url, target, home, settings, now, without_global=without_global)
    elif project is not None or home is not None:
        raise InvalidInput(
            "location cannot be combined with project or home.", hint="Give `location`, or `project` and `home`."
        )
    else:
        resolved = _resolved(settings)
        spaces = OneSpace(open_space(location, write_wait_s=resolved.settings.write_wait_s, now=now))
        chosen = _with_vectors(resolved, spaces)
    acting = _acting(actor or Actor(), spaces, is_bound=without_global)
    acting, person = _signed(acting, person, spaces, chosen)
    context = Context(
        spaces=spaces,
        actor=acting,
        person=person,
        settings=chosen,
        clock=now,
        confirm=confirm,
        origin=origin,
        is_hosted=hosted,
        reranker=reranker,
        embedder=embedder,
        judge=judge,
        summarizer=summarizer,
    )
    if chosen.auto_upkeep:
        from kept.memory import upkeep  # hooks open a memory without it

        context.tend = upkeep.after_recall
        upkeep.after_opening(context)
    return Kept(context)


_DEFAULTS: dict[str, Any] = open.__kwdefaults__ or {}


def _in_home(
    database: str | None,
    project: str | os.PathLike[str] | None,
    home: str | os.PathLike[str] | None,
    settings: Settings | Mapping[str, Any] | None,
    now: Clock,
    *,
    without_global: bool,
) -> tuple[Spaces, Settings]:
    """Find a project of the home, and the settings that are in force there.

    Its memories are in the given database; else in that of its team, which its clone names; else in that of the
    environment; else in the home.
    """
    projects = open_projects(home, clock=now)
    found = projects.find(project)
    team = found.team.database if found is not None and found.team is not None else None
    database = database or team or os.environ.get("KEPT_DATABASE_URL") or None
    chosen = settings_in_force(settings, None if found is None else project_settings_file(projects.home, found))
    reached = ProjectOnly if without_global else HomeSpaces
    return reached(projects.home, projects, project, chosen, now, database), chosen


def _is_embedder(given: object) -> bool:
    return isinstance(getattr(given, "model", None), str) and callable(getattr(given, "embed", None))


def _is_path(given: object) -> bool:
    return isinstance(given, str | os.PathLike)


_ARGUMENTS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "location": (_is_path, 'a file, ":memory:" or a postgresql:// URL'),
    "project": (_is_path, "a directory or a name"),
    "home": (_is_path, "a directory"),
    "actor": (lambda given: isinstance(given, Actor), 'a kept.Actor, such as kept.Actor(name="anna")'),
    "settings": (
        lambda given: isinstance(given, Settings | Mapping),
        'a dictionary, such as {"preset": "manual"}, or kept.Settings',
    ),
    "confirm": (callable, "a function that takes a question and returns True or False"),
    "clock": (callable, "a function that returns a datetime with a time zone"),
    "reranker": (callable, "a function that takes a query and hits"),
    "embedder": (_is_embedder, "an object with a name `model` and a method `embed`"),
    "judge": (callable, "a function that takes a list of findings"),
    "summarizer": (callable, "a function that takes messages and returns a text"),
    "person": (lambda given: isinstance(given, str), "a string"),
}


def check_shared(location: str | os.PathLike[str] | None, given: Mapping[str, Any]) -> None:
    """Raise an error for arguments of `open`, shared by many users, with which no user's memory could be opened."""
    if unknown := sorted(given.keys() - (_DEFAULTS.keys() - {"user"})):
        raise TypeError(f"kept.Pool() got an unexpected keyword argument {unknown[0]!r}")
    _check_given({**_DEFAULTS, "location": location, **given})
    _check_place_of_user(location, given.get("project"))
    settings_in_force(given.get("settings"))


def _check_given(given: Mapping[str, Any]) -> None:
    """Raise InvalidInput for an argument of `open` of another type, or with an unknown origin."""
    for name, (is_right, wanted) in _ARGUMENTS.items():
        expect(given[name] is None or is_right(given[name]), name, wanted, given[name])
    if given["origin"] not in get_args(Origin):
        raise InvalidInput(
            f"Unknown origin {str(given['origin'])[:40]!r}.", hint=f"Choose one of {', '.join(get_args(Origin))}."
        )


def _signed(actor: Actor, person: str | None, spaces: Spaces, chosen: Settings) -> tuple[Actor, str | None]:
    """Return the actor and the person for whom it acts: a database notes both names, any other store the person's."""
    if spaces.is_in_database():
        return actor, without_secrets(person or chosen.user_name or account_name(os.environ))
    return (actor, None) if person is None else (replace(actor, name=without_secrets(person)), None)


def _of_user(
    location: str | os.PathLike[str] | None,
    user: str,
    project: str | os.PathLike[str] | None,
    home: str | os.PathLike[str] | None,
    settings: Settings | Mapping[str, Any] | None,
    now: Clock,
) -> tuple[Spaces, Settings]:
    """Return the space of a user, and the settings in force. No project is looked up, nor the current directory."""
    _check_place_of_user(location, project)
    database = os.fspath(location) if location is not None else os.environ.get("KEPT_DATABASE_URL") or None
    root = open_projects(home, clock=now).home
    own_file = None if database is not None else root.files_in(root.user_dir(digest_of(user))).settings
    resolved = _resolved(settings, own_file)
    spaces = UserSpaces(root, user, resolved.settings, now, database)
    return spaces, resolved.settings if database is None else _with_vectors(resolved, spaces)


def _check_place_of_user(location: str | os.PathLike[str] | None, project: object) -> None:
    if project is not None or not (location is None or is_database(location)):
        raise InvalidInput(
            "user cannot be combined with project or a file.", hint="A user's memory is in the home, or in a database."
        )


def _with_vectors(resolved: Resolved, spaces: Spaces) -> Settings:
    """Return the settings of a store without a settings file: where its vectors are on, recall compares them."""
    chosen = resolved.settings
    if "search_provider" in resolved.set_by:
        return chosen
    with suppress(StorageError):  # the first verb says so
        if (storage := spaces.project()) is not None:
            with storage.reading() as reader:
                model = reader.vector_state().model
            return chosen if model is None else replace(chosen, search_provider="hybrid")
    return chosen


def _exactly(project: str | os.PathLike[str] | None) -> ExactName:
    """Return a name that is neither a path nor an id. Raises InvalidInput for anything but a string."""
    if not isinstance(project, str):
        raise InvalidInput(
            f"With exact=True, project must be a string, not {type(project).__name__}.", hint="Give the project's name."
        )
    return ExactName(project)


def _acting(actor: Actor, spaces: Spaces, *, is_bound: bool) -> Actor:
    """Return the actor with a name that may be stored. `is_bound`: tied to the opened project, wherever that moves."""
    acting = replace(actor, name=without_secrets(actor.name))
    if is_bound and acting.role == "project" and acting.project is None:
        return replace(acting, project=spaces.ensure_project().space)
    return acting


def role_in(environ: Mapping[str, str], default: Role = "project") -> Role:
    """Return the role that KEPT_ROLE names, for every program that Kept starts. Raises SettingsError for another."""
    named, roles = environ.get("KEPT_ROLE") or default, get_args(Role)
    if named not in roles:
        raise SettingsError(
            f"KEPT_ROLE must be one of {', '.join(roles)}, not {named[:40]!r}.", hint="Change or unset it."
        )
    return cast(Role, named)


def open_projects(
    home: str | os.PathLike[str] | None = None, *, clock: Clock | None = None, may_begin: bool = False
) -> Projects:
    """The registry of projects in a home: the one given, else `$KEPT_HOME`, else the platform's place for it.

    A repository that was in a home before finds an error, not an empty memory, where the home is missing now: its disk
    may not be mounted. `may_begin`: a person wants to begin a new one there.
    """
    environ = os.environ
    if home is None:
        root = default_home(environ)
    elif isinstance(home, str):
        if not home:
            raise InvalidInput("home must not be an empty path.", hint="Give a directory, or leave it out.")
        root = expanded(home, environ)
    else:
        root = Path(home)
    return Projects(Home(root), environ=environ, now=clock or utc_now, may_begin=may_begin)


def project_settings_file(home: Home, project: Project) -> Path:
    """Where the settings of one project are."""
    return home.files(project.folder).settings


def settings_in_force(given: Settings | Mapping[str, Any] | None = None, project_file: Path | None = None) -> Settings:
    """The settings given, or those of the user's file, the project's file and the environment, with these on top."""
    return _resolved(given, project_file).settings


def _resolved(given: Settings | Mapping[str, Any] | None, project_file: Path | None = None) -> Resolved:
    if isinstance(given, Settings):
        return Resolved(settings=given, set_by=dict.fromkeys(flat(given), "argument"))
    user_file = config.user_settings_file(os.environ)
    return config.load(user_file, project_file, os.environ, given or {})
