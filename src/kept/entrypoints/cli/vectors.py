"""`kept vectors`: finding by meaning as well as by words, switched on and off."""

from collections.abc import Mapping
from typing import Any

import click

from kept import configuration
from kept.entrypoints.cli.frame import Group, pass_invocation
from kept.entrypoints.cli.invocation import Invocation, Line
from kept.entrypoints.cli.progress import progress
from kept.entrypoints.cli.wording import counted
from kept.model import GLOBAL
from kept.opening import project_settings_file
from kept.settings import Settings

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
        memory.check_vectors()
        _set(invocation, {"search_provider": "hybrid"})
        try:
            with progress(invocation, "Making vectors") as tell:
                memory.make_vectors(progress=tell)
        except KeyboardInterrupt:
            invocation.tell("", "Interrupted. What is done stays done; `kept vectors on` goes on from there.")
            raise
        states = memory.vectors()
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
        memory.drop_vectors()
        states = memory.vectors()
    _answer(invocation, states, f"{OFF} The vectors of this project are removed.", is_on=False)


@vectors_command.command("status")
@pass_invocation
def show_status(invocation: Invocation) -> None:
    """Show whether it is on, and how many memories have their vector."""
    with invocation.open() as memory:
        states, is_on = memory.vectors(), _is_on(memory.settings)
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
        configuration.set_value(file, name, value)


def _answer(invocation: Invocation, states: Mapping[str, Mapping[str, Any]], sentence: str, *, is_on: bool) -> None:
    lines: list[Line] = [sentence]
    for space, state in states.items():
        if line := vector_line(state):
            lines.append(f"    {'Global memory' if space == GLOBAL else 'This project'}: {line}.")
    invocation.answer({"on": is_on, "message": sentence, "spaces": states}, lines)
