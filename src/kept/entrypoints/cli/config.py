"""`kept config`: settings, where they come from, and how to change them.

`kept vectors`: finding by meaning as well as by words, switched on and off.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import click

from kept.entrypoints.cli.frame import Group, pass_invocation
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import counted, progress
from kept.errors import InvalidInput
from kept.memory.opening import project_settings_file
from kept.model import GLOBAL
from kept.projects import config
from kept.settings import Resolved, Settings, fields, flat

_project_only = click.option(
    "--project-only", is_flag=True, help="For this project alone, instead of for all of yours."
)


@click.command("config", cls=Group)
def config_command() -> None:
    """Show and change settings.

    Values come from your settings file, then from the project's, then from the environment (KEPT_PROFILE=koshi); the
    later one wins. docs/settings.md explains every setting.
    """


def _load(invocation: Invocation) -> Resolved:
    projects = invocation.projects()
    project = projects.find(invocation.project)
    project_file = None if project is None else project_settings_file(projects.home, project)
    return config.load(config.user_settings_file(os.environ), project_file, os.environ)


def _file(invocation: Invocation, *, project_only: bool) -> Path:
    if not project_only:
        return config.user_settings_file(os.environ)
    projects = invocation.projects()
    return project_settings_file(projects.home, projects.ensure(invocation.project))


@config_command.command("show")
@click.option("--origin", "with_origin", is_flag=True, help="Say where each value comes from.")
@pass_invocation
def show_config(invocation: Invocation, *, with_origin: bool) -> None:
    """Show the settings in force."""
    resolved = _load(invocation)
    values = flat(resolved.settings)
    lines: list[Line] = []
    for group in dict.fromkeys(field.group for field in fields()):
        lines.append(Strong(group))
        for field in fields():
            if field.group != group:
                continue
            lines.append(Dim(f"  # {field.help}"))
            names = [name for name in values if name.partition(".")[0] == field.name]
            for name in names:
                origin = f"  ({resolved.origin[name]})" if with_origin else ""
                lines.append((f"  {name} = {_shown(values[name])}", Dim(origin)))
    document: dict[str, Any] = {"settings": values}
    if with_origin:
        document["origin"] = dict(resolved.origin)
    invocation.answer(document, lines)


def _shown(value: Any) -> str:
    """A value as `kept config set` would take it."""
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


@config_command.command("set")
@click.argument("name")
@click.argument("value")
@_project_only
@pass_invocation
def set_config(invocation: Invocation, *, name: str, value: str, project_only: bool) -> None:
    """Change one setting; a row of a table is table.row.

    \b
      kept config set profile koshi
      kept config set shelf_life_days.warning 60 --project-only
    """
    file = _file(invocation, project_only=project_only)
    config.set_value(file, name, value)
    _answer_now(invocation, name, f"Written to {file}.")


@config_command.command("unset")
@click.argument("name")
@_project_only
@pass_invocation
def unset_config(invocation: Invocation, *, name: str, project_only: bool) -> None:
    """Take one setting out of the settings file again."""
    file = _file(invocation, project_only=project_only)
    was_there = config.unset_value(file, name)
    _answer_now(invocation, name, f"Taken out of {file}." if was_there else f"{name} was not set in {file}.")


def _answer_now(invocation: Invocation, name: str, sentence: str) -> None:
    """Say what was written, and what holds now: a later layer may say something else."""
    resolved = _load(invocation)
    values = {known: value for known, value in flat(resolved.settings).items() if known == name}
    lines: list[Line] = [sentence]
    lines += [f"{known} is {_shown(value)} now ({resolved.origin[known]})." for known, value in values.items()]
    document = {"message": sentence, "settings": values, "origin": {known: resolved.origin[known] for known in values}}
    invocation.answer(document, lines)


@config_command.command("import")
@click.argument("file")
@_project_only
@pass_invocation
def import_config(invocation: Invocation, *, file: str, project_only: bool) -> None:
    """Take over the configuration of Koshi, Brain or Praxis, in YAML or JSON.

    What has no counterpart here is listed with the reason, and left out.
    """
    imported = config.import_config(_text_of(Path(file)), _format_of(file))
    target = _file(invocation, project_only=project_only)
    taken = _rows(imported.settings)
    for name, value in taken.items():
        config.set_value(target, name, _shown(value))
    lines: list[Line] = [f"{name} = {_shown(value)}" for name, value in taken.items()]
    lines += [f"Not taken: {missed.key}. {missed.reason}" for missed in imported.not_taken]
    lines.append(f"Written to {target}." if taken else "There was nothing to take over.")
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
    raise InvalidInput(f"{file} is neither YAML nor JSON by its name.", hint="It should end in .yaml, .yml or .json.")


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
        reason = getattr(error, "strerror", None) or "no file can have that name"
        raise InvalidInput(f"{file} cannot be read: {reason.lower()}.", hint="Check its permissions.") from None


ON = "On: recall looks for the meaning of a query, too."
OFF = "Off: recall looks for words alone."


@click.command("vectors", cls=Group)
def vectors_command() -> None:
    """Find memories by their meaning, too: "car" finds the automobile.

    Off unless switched on, for each project by itself. Needs the extra `vector` (pip install 'kept[vector]'); the model
    comes with it, and nothing is sent anywhere.
    """


@vectors_command.command("on")
@pass_invocation
def switch_on(invocation: Invocation) -> None:
    """Switch it on in this project, and give every memory its vector.

    It can be interrupted (Ctrl-C) and run again: then it goes on from there. Memories without a vector are found by
    their words meanwhile. New ones get theirs by themselves.
    """
    with invocation.open() as memory:
        memory.vectors.check()
        _set(invocation, {"search_provider": "hybrid"})
        try:
            with progress(invocation, "Making vectors") as tell:
                memory.vectors.on(progress=tell)
        except KeyboardInterrupt:
            invocation.tell("", "Interrupted. What is done stays done; `kept vectors on` goes on from there.")
            raise
        states = memory.vectors.status()
    _answer(invocation, states, ON, is_on=True)


@vectors_command.command("off")
@pass_invocation
def switch_off(invocation: Invocation) -> None:
    """Switch it off in this project, and remove its vectors."""
    with invocation.open() as memory:
        wanted = {"search_provider": "fts5"}
        if memory.settings.profile == "hybrid":
            wanted["profile"] = "kept"
        _set(invocation, wanted)
        memory.vectors.off()
        states = memory.vectors.status()
    _answer(invocation, states, f"{OFF} The vectors of this project are removed.", is_on=False)


@vectors_command.command("status")
@pass_invocation
def show_status(invocation: Invocation) -> None:
    """Show whether it is on, and how many memories have their vector."""
    with invocation.open() as memory:
        states, is_on = memory.vectors.status(), _is_on(memory.settings)
    _answer(invocation, states, ON if is_on else f"{OFF} `kept vectors on` changes that.", is_on=is_on)


def vector_line(state: Mapping[str, Any]) -> str:
    """How far the vectors of a space are, in words; '' when it keeps none."""
    if state["model"] is None:
        return ""
    have = f"{counted(state['done'], 'vector')} of the model {state['model']}"
    return f"{have}; {counted(state['pending'], 'memory waits', 'memories wait')} for one" if state["pending"] else have


def _is_on(settings: Settings) -> bool:
    return "hybrid" in (settings.search_provider, settings.profile)


def _set(invocation: Invocation, values: Mapping[str, str]) -> None:
    projects = invocation.projects()
    file = project_settings_file(projects.home, projects.ensure(invocation.project))
    for name, value in values.items():
        config.set_value(file, name, value)


def _answer(invocation: Invocation, states: Mapping[str, Mapping[str, Any]], sentence: str, *, is_on: bool) -> None:
    lines: list[Line] = [sentence]
    for space, state in states.items():
        if line := vector_line(state):
            lines.append(f"    {'Global memory' if space == GLOBAL else 'This project'}: {line}.")
    invocation.answer({"on": is_on, "message": sentence, "spaces": states}, lines)
