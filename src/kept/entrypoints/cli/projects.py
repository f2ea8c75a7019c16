"""`kept projects`: which memory belongs to which directory."""

from typing import Any

import click
import msgspec

from kept.entrypoints.cli.frame import Group, pass_invocation
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import counted
from kept.projects.registry import Project


@click.command("projects", cls=Group)
def projects_command() -> None:
    """List, link, rename and merge projects.

    A project is a git repository, with all its worktrees, or a plain directory. It is registered with the first thing
    that is remembered in it, and is found again when the repository moves.
    """


def _document(project: Project) -> dict[str, Any]:
    return {**msgspec.to_builtins(project), "space": project.space}


@projects_command.command("list")
@pass_invocation
def list_projects(invocation: Invocation) -> None:
    """Show all projects of this home; a star marks the one you are in."""
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
        )
        for project in found
    ]
    if not found:
        lines.append('There are no projects yet. `kept remember "…"` in a directory makes it one.')
    document = {
        "projects": [_document(project) for project in found],
        "current": None if current is None else current.id,
    }
    invocation.answer(document, lines)


@projects_command.command("link")
@click.argument("name")
@click.argument("path", default=".")
@pass_invocation
def link_project(invocation: Invocation, *, name: str, path: str) -> None:
    """Let the directory PATH (or the current one) belong to the project NAME too."""
    project = invocation.projects().link(name, path)
    invocation.answer(_document(project), [f"{path} belongs to project {project.name} ({project.id})."])


@projects_command.command("rename")
@click.argument("name")
@click.argument("new_name")
@pass_invocation
def rename_project(invocation: Invocation, *, name: str, new_name: str) -> None:
    """Give the project NAME, or with that id, another name."""
    project = invocation.projects().rename(name, new_name)
    invocation.answer(_document(project), [f"Project {project.id} is called {project.name} now."])


@projects_command.command("merge")
@click.argument("source")
@click.argument("into")
@pass_invocation
def merge_projects(invocation: Invocation, *, source: str, into: str) -> None:
    """Move all memories and sessions of project SOURCE into project INTO.

    From then on INTO answers for SOURCE: for its name, its id and its directories. It changes two projects, so it has
    to be done --as admin. If it is interrupted, run it again: it goes on where it was.
    """
    from kept.projects.merge import merge

    merged = merge(
        invocation.projects(),
        source,
        into,
        actor=invocation.actor,
        settings=invocation.settings_in_force(),
        clock=invocation.clock,
    )
    lines: list[Line] = [
        f"Moved {counted(merged.moved, 'memory', 'memories')} from {source} into {merged.into.name}; "
        f"{counted(merged.duplicates, 'was', 'were')} there already."
    ]
    if merged.sessions:
        lines.append(f"Moved {counted(merged.sessions, 'session')}, too.")
    if merged.erased:
        lines.append(f"Left behind, because erased there: {counted(merged.erased, 'memory', 'memories')}.")
    invocation.answer(merged, lines)
