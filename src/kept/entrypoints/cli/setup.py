"""`kept config`, `vectors` and `projects`: settings, finding by meaning, and which directory has which memory."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from kept.entrypoints.cli.derived import options_of
from kept.entrypoints.cli.frame import group
from kept.entrypoints.cli.invocation import Dim, Invocation, Label, Line, Strong
from kept.entrypoints.cli.wording import counted, memories, progress, vector_line
from kept.errors import InvalidInput
from kept.memory.merge import merge
from kept.memory.opening import project_settings_file, settings_in_force
from kept.memory.told import drop_last_told
from kept.memory.verbs.switches import CONFIGURE
from kept.memory.verbs.upkeep import VECTORS_ON
from kept.model import GLOBAL
from kept.projects import config
from kept.projects.registry import Project
from kept.projects.teams import join
from kept.settings import Resolved, fields, flat

ON = "On: recall also compares meanings."
OFF = "Off: recall compares words only."

_project_only = click.option("--project-only", is_flag=True, help="For this project only, instead of all projects.")


@group
def config_command() -> None:
    """Values come from your settings file, then from the project's, then from the environment (KEPT_PROFILE=koshi); a
    later one wins. `kept config show` explains every setting.
    """


def _load(invocation: Invocation) -> Resolved:
    projects = invocation.projects()
    project = projects.find(invocation.project)
    project_file = None if project is None else project_settings_file(projects.home, project)
    return config.load(config.user_settings_file(os.environ), project_file, os.environ)


def _file(invocation: Invocation, *, project_only: bool) -> Path:
    if not project_only:
        return user_file()
    projects = invocation.projects()
    return project_settings_file(projects.home, projects.ensure(invocation.project))


@config_command.command("show")
@click.option("--origin", "with_origin", is_flag=True, help="Show where each value comes from.")
def show_config(invocation: Invocation, *, with_origin: bool) -> None:
    """Show the settings in force."""
    resolved = _load(invocation)
    values = flat(resolved.settings)
    lines: list[Line] = []
    for topic in dict.fromkeys(field.group for field in fields()):
        lines.append(Strong(f"# {topic}"))
        for field in fields():
            if field.group != topic:
                continue
            lines.append((Label("# "), field.help))
            names = [name for name in values if name.partition(".")[0] == field.name]
            for name in names:
                origin = f"  # {resolved.origin[name]}" if with_origin else ""
                lines.append(f"{name} = {_shown(values[name])}{origin}")
        lines.append("")
    document: dict[str, Any] = {"settings": values}
    if with_origin:
        document["origin"] = dict(resolved.origin)
    invocation.answer(document, lines[:-1])


def _shown(value: Any) -> str:
    """A value as `kept config set` would take it."""
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


@config_command.command("set")
@options_of(CONFIGURE)
@_project_only
def set_config(invocation: Invocation, *, setting: str, value: str, project_only: bool) -> None:
    """Change one setting; a row of a table is table.row.

    \b
      kept config set profile koshi
      kept config set shelf_life_days.warning 60 --project-only
    """
    file = _file(invocation, project_only=project_only)
    config.set_value(file, setting, value)
    _answer_now(invocation, setting, f"Written to {file}.")


@config_command.command("unset")
@click.argument("name")
@_project_only
def unset_config(invocation: Invocation, *, name: str, project_only: bool) -> None:
    """Remove one setting from the settings file."""
    file = _file(invocation, project_only=project_only)
    was_there = config.unset_value(file, name)
    _answer_now(invocation, name, f"Removed from {file}." if was_there else f"{name} was not set in {file}.")


def _answer_now(invocation: Invocation, name: str, sentence: str) -> None:
    """Name the value that was written, and which value is in force now: a later layer may override it."""
    resolved = _load(invocation)
    values = {known: value for known, value in flat(resolved.settings).items() if known == name}
    lines: list[Line] = [sentence]
    lines += [f"{known} is {_shown(value)} now ({resolved.origin[known]})." for known, value in values.items()]
    document = {"message": sentence, "settings": values, "origin": {known: resolved.origin[known] for known in values}}
    invocation.answer(document, lines)


@config_command.command("import")
@click.argument("file")
@_project_only
def import_config(invocation: Invocation, *, file: str, project_only: bool) -> None:
    """Import the configuration of Koshi, Brain or Praxis, in YAML or JSON.

    Settings without a counterpart here are listed with the reason, and left out.
    """
    imported = config.import_config(_text_of(Path(file)), _format_of(file))
    target = _file(invocation, project_only=project_only)
    taken = _rows(imported.settings)
    for name, value in taken.items():
        config.set_value(target, name, _shown(value))
    lines: list[Line] = [f"{name} = {_shown(value)}" for name, value in taken.items()]
    lines += [f"Left out: {missed.key}. {missed.reason}" for missed in imported.not_taken]
    lines.append(f"Written to {target}." if taken else "There was nothing to import.")
    document = {"settings": taken, "not_taken": imported.not_taken, "file": str(target) if taken else None}
    invocation.answer(document, lines)


def _rows(settings: Mapping[str, Any]) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for name, value in settings.items():
        rows |= (
            {f"{name}.{row}": entry for row, entry in value.items()} if isinstance(value, Mapping) else {name: value}
        )
    return rows


def _format_of(file: str) -> Literal["yaml", "json"]:
    suffix = Path(file).suffix.lower()
    if suffix in (".yaml", ".yml"):
        return "yaml"
    if suffix == ".json":
        return "json"
    raise InvalidInput(
        f"{file} does not have the name of a YAML or JSON file.", hint="It should end in .yaml, .yml or .json."
    )


def _text_of(file: Path) -> str:
    """The text of a file that a person named."""
    try:
        with file.open("rb") as stream:
            return stream.read(config.MAX_FILE_BYTES + 1).decode("utf-8-sig")
    except FileNotFoundError:
        raise InvalidInput(f"There is no file {file}.", hint="Check the path.") from None
    except IsADirectoryError:
        raise InvalidInput(f"{file} is a directory, not a file.", hint="Name the file inside it.") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not UTF-8 text (byte {error.start + 1}).", hint="Save it as UTF-8.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "a file cannot have that name"
        raise InvalidInput(f"{file} cannot be read: {reason.lower()}.", hint="Check its permissions.") from None


@group
def vectors_command() -> None:
    """Off by default, and switched on for each project. Needs the extra `vector`; the model comes with
    it, and nothing is sent anywhere. `on --model DIR` takes a sentence model of yours instead, and needs the extra
    `onnx`.
    """


@vectors_command.command("on")
@options_of(VECTORS_ON)
def switch_on(invocation: Invocation, *, model: str | None) -> None:
    """Switch it on in this project, and make a vector for every memory.

    It can be interrupted (Ctrl-C) and run again: it then continues. Until a memory has its vector, it is found by words
    only. New memories get theirs automatically. A model that is given once stays, also if it is switched off and on.
    """
    with invocation.open() as memory:
        name = memory.vectors.check(model)
        _set(invocation, {"search_provider": "hybrid"} | ({"vector_model": name} if model and name else {}))
        try:
            with progress(invocation, "Making vectors") as tell:
                memory.vectors.on(model=model, progress=tell)
        except KeyboardInterrupt:
            invocation.tell("", "Interrupted. `kept vectors on` continues where it stopped.")
            raise
        states, limits = memory.vectors.status(), memory.vectors.limits(measured=True)
    _answer_vectors(invocation, states, ON, is_on=True, limits=limits)


@vectors_command.command("off")
def switch_off(invocation: Invocation) -> None:
    """Switch it off in this project, and remove its vectors."""
    with invocation.open() as memory:
        wanted = {"search_provider": "fts5"}
        if memory.settings.profile == "hybrid":
            wanted["profile"] = "kept"
        _set(invocation, wanted)
        memory.vectors.off()
        states = memory.vectors.status()
    _answer_vectors(invocation, states, f"{OFF} The vectors of this project are removed.", is_on=False)


@vectors_command.command("status")
def show_status(invocation: Invocation) -> None:
    """Show whether it is on, and how many memories have a vector."""
    with invocation.open() as memory:
        states = memory.vectors.status()
        is_on = "hybrid" in (memory.settings.search_provider, memory.settings.profile)
        limits = memory.vectors.limits() if is_on else []
    sentence = ON if is_on else f"{OFF} `kept vectors on` switches it on."
    _answer_vectors(invocation, states, sentence, is_on=is_on, limits=limits)


def not_set(invocation: Invocation, names: Sequence[str]) -> list[str]:
    """Return the settings among these that have their defaults because nothing sets them."""
    known = _load(invocation).set_by
    return [name for name in names if name not in known]


def user_file() -> Path:
    """Return the person's file of settings; it need not exist."""
    return config.user_settings_file(os.environ)


def set_for_user(invocation: Invocation, values: Mapping[str, str]) -> None:
    """Write settings to the person's file, for all projects."""
    file = _file(invocation, project_only=False)
    for name, value in values.items():
        config.set_value(file, name, value)


def _set(invocation: Invocation, values: Mapping[str, str]) -> None:
    file = _file(invocation, project_only=True)
    for name, value in values.items():
        config.set_value(file, name, value)


def _answer_vectors(
    invocation: Invocation,
    states: Mapping[str, Mapping[str, Any]],
    sentence: str,
    *,
    is_on: bool,
    limits: Sequence[str] = (),
) -> None:
    lines: list[Line] = [sentence]
    for space, state in states.items():
        if line := vector_line(state):
            lines.append(f"    {'Global memory' if space == GLOBAL else 'This project'}: {line}.")
    invocation.answer({"on": is_on, "message": sentence, "spaces": states, "limits": limits}, [*lines, *limits])


@group
def projects_command() -> None:
    """A project is a git repository, with all its worktrees, or a plain directory. It is registered with the first
    memory, and is found again when the repository moves.
    """


def _project_document(project: Project) -> dict[str, Any]:
    return {**msgspec.to_builtins(project), "space": project.space}


@projects_command.command("list")
def list_projects(invocation: Invocation) -> None:
    """List all projects of this home; a star marks the current one."""
    projects = invocation.projects()
    found = projects.list_projects()
    current = projects.find(invocation.project)
    width = max((len(project.name) for project in found), default=0)
    lines: list[Line] = [
        (
            "* " if current is not None and project.id == current.id else "  ",
            Strong(f"{project.name:<{width}}"),
            f"  {project.id}  ",
            Dim("  ".join((project.root or "no directory", *project.links))),
            f"  in {_team_line(project)}" if project.team else "",
        )
        for project in found
    ]
    if not found:
        lines.append('There are no projects yet. `kept remember "…"` makes the current directory one.')
    document = {
        "projects": [_project_document(project) for project in found],
        "current": None if current is None else current.id,
    }
    invocation.answer(document, lines)


@projects_command.command("link")
@click.argument("name")
@click.argument("path", default=".")
@click.option(
    "--new",
    "is_new",
    is_flag=True,
    help="Make the project NAME, in a new home if the old one is gone.",
)
def link_project(invocation: Invocation, *, name: str, path: str, is_new: bool) -> None:
    """Add the directory PATH (or the current one) to the project NAME.

    With --database URL, to the project NAME that a team shares in this PostgreSQL database: every command, hook and MCP
    server in PATH uses it from then on. The URL must not hold a password. Global memory and files stay in this home.
    """
    if invocation.database is None:
        project = (
            invocation.projects(may_begin=True).add(name, path) if is_new else invocation.projects().link(name, path)
        )
        sentence = f"{path} belongs to project {project.name} ({project.id})."
    else:
        settings = settings_in_force(invocation.settings)
        project = join(invocation.projects(), name, path, invocation.database, settings=settings, is_new=is_new)
        sentence = f"{path} belongs to project {project.name} ({project.id}), in the database {_team_line(project)}."
    invocation.answer(_project_document(project), [sentence])


def _team_line(project: Project) -> str:
    """Where a team keeps the project."""
    assert project.team is not None
    named = "" if project.team.name == project.name else f" as {project.team.name}"
    return f"{project.team.database}{named}"


@projects_command.command("unlink")
@click.argument("name", required=False)
def unlink_project(invocation: Invocation, *, name: str | None) -> None:
    """Keep the memories of a project (by default of this one) in this home again.

    What is in the team's database stays there, and what was in this home before is found again.
    """
    projects = invocation.projects()
    here = projects.find(invocation.project) if name is None else projects.get(name)
    if here is None:
        raise InvalidInput("This directory belongs to no project yet.", hint="`kept projects list` shows all of them.")
    project = projects.leave(here.id)
    drop_last_told(projects.home.root)
    invocation.answer(
        _project_document(project), [f"Project {project.name} ({project.id}) is kept in this home again."]
    )


@projects_command.command("rename")
@click.argument("name")
@click.argument("new_name")
def rename_project(invocation: Invocation, *, name: str, new_name: str) -> None:
    """Rename the project with this name or id."""
    project = invocation.projects().rename(name, new_name)
    invocation.answer(_project_document(project), [f"Project {project.id} is called {project.name} now."])


@projects_command.command("merge")
@click.argument("source")
@click.argument("into")
def merge_projects(invocation: Invocation, *, source: str, into: str) -> None:
    """Move all memories and sessions of project SOURCE into project INTO.

    From then on the name, the id and the directories of SOURCE lead to INTO. It changes two projects, so it needs
    --as admin. If it is interrupted, run it again: it continues where it stopped.
    """
    merged = merge(
        invocation.projects(),
        source,
        into,
        actor=invocation.actor,
        settings=settings_in_force(invocation.settings),
        clock=invocation.clock,
    )
    lines: list[Line] = [
        f"Moved {memories(merged.moved)} from {source} into {merged.into.name}; "
        f"{counted(merged.duplicates, 'was', 'were')} already there."
    ]
    if merged.sessions:
        lines.append(f"Also moved {counted(merged.sessions, 'session')}.")
    if merged.erased:
        lines.append(f"Not moved, because erased there: {memories(merged.erased)}.")
    invocation.answer(merged, lines)
