"""The catalog lists every command. Whoever adds one starts there, and these tests say what is missing."""

import ast
import re
from pathlib import Path

import click
import pytest

from kept.entrypoints.cli import catalog, sessions
from kept.entrypoints.cli.frame import Command, root
from kept.entrypoints.cli.invocation import Invocation
from kept.entrypoints.cli.tour import WALK
from kept.exchange.transcripts import PARSERS
from kept.memory.verbs import all_verbs
from kept.memory.verbs.arguments import wire_arguments
from kept.memory.verbs.brief import Brief
from kept.recall.briefing import STYLES

FOLDER = Path(catalog.__file__).parent
MODULES = sorted({entry.module for entry in catalog.COMMANDS.values()})
NOUNS = ("access", "distribution", "errors", "ids", "journal", "model", "ports", "settings", "tables", "text")
# A command translates: it may know the facade, the projects and the nouns, and no step behind them.
MAY_IMPORT = (
    "kept.entrypoints",
    "kept.memory",
    "kept.projects",
    *(f"kept.{noun}" for noun in NOUNS),
)
NOT_IN_THE_TOUR = {
    "team",
    "mcp",
    "protocol",
    "install",
    "uninstall",
    "tour",
    "config",
    "judge",
    "edit",
    "unpin",
    "show",
    "projects",
    "guard",
    "files",
    "narrative",
    "extract",
    "items",
    "serve",
    "token",
    "replay",
    "failure",
    "restore",
    "help",
    "propose",
    "clear-global",
}


@pytest.mark.parametrize("name", catalog.COMMANDS)
def test_every_command_of_the_catalog_has_a_function_and_its_line_of_help(name: str) -> None:
    entry = catalog.COMMANDS[name]
    command = root.get_command(click.Context(root), name)
    assert isinstance(command, Command), f"mark {name}_command in {entry.module}.py with @command"
    assert command.name == name
    assert (command.help or "").split("\n")[0] == entry.line
    assert root.get_command(click.Context(root), name) is command, "asking twice changes nothing"
    assert (command.help or "").count(entry.line) == 1


@pytest.mark.parametrize("module", MODULES)
def test_every_command_function_is_in_the_catalog(module: str) -> None:
    tree = ast.parse((FOLDER / f"{module}.py").read_text("utf-8"))
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    found = {name.removesuffix("_command") for name in names if name.endswith("_command")}
    listed = {name for name, entry in catalog.COMMANDS.items() if entry.module == module}
    assert found <= listed, "add a line for it to catalog.py"


@pytest.mark.parametrize("module", MODULES)
def test_a_command_knows_the_facade_and_no_step_behind_it(module: str) -> None:
    tree = ast.parse((FOLDER / f"{module}.py").read_text("utf-8"))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    ours = {name for name in imported if name.startswith("kept.")}
    assert {name for name in ours if not name.startswith(MAY_IMPORT)} == set()


def test_a_line_that_lists_the_commands_of_a_group_lists_them_all() -> None:
    ctx = click.Context(root, obj=Invocation())
    for name, entry in catalog.COMMANDS.items():
        command = root.get_command(ctx, name)
        if isinstance(command, click.Group) and ": " in entry.line:
            listed = re.findall(r"[\w-]+", entry.line.partition(": ")[2])
            named = command.list_commands(ctx)
            assert sorted(listed) == named or set(listed).isdisjoint(named), name


def test_the_tour_shows_every_command_but_a_few() -> None:
    shown = {step.command.split()[0] for step in WALK}
    assert set(catalog.COMMANDS) - shown <= NOT_IN_THE_TOUR, "add a step to tour.WALK, or the name to NOT_IN_THE_TOUR"


def test_choices_and_defaults_are_those_of_the_library() -> None:
    styles = next(one.choices for one in wire_arguments(Brief) if one.name == "style")
    assert sorted(STYLES) == sorted(styles)
    assert tuple(PARSERS) == sessions.PROGRAMS


# Commands that say more than the one verb of their name, or take several memories where a verb takes one.
OTHER_WORDS = {
    "edit",
    "why",
    "rate",
    "judge",
    "pin",
    "unpin",
    "forget",
    "restore",
    "erase",
    "review",
    "pause",
    "items",
    "import",
}


def test_a_command_has_the_line_of_a_verb_that_it_calls() -> None:
    """The catalog repeats it, because `kept --help` imports no verb."""
    rows = [(verb.cli, verb.help) for verb in all_verbs() if isinstance(verb.cli, str)]
    called = {name for name, _ in rows if name in catalog.COMMANDS}
    assert {name for name in called if (name, catalog.COMMANDS[name].line) not in rows} == OTHER_WORDS
