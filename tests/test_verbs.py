"""Every verb is declared once: each door has all of its arguments, and a door that lacks it says why.

The tests start from what a door really shows (signatures, `--help`, the listed tools, the OpenAPI document, the help of
slash commands) and compare that with the requests of `kept.memory.verbs`.
"""

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import kept
from kept.entrypoints import slash
from kept.entrypoints.cli.derived import NOT_TYPED
from kept.entrypoints.cli.frame import GLOBAL_OPTIONS, root
from kept.entrypoints.http.keys import Keys
from kept.entrypoints.http.server import ServeOptions, make_app
from kept.entrypoints.mcp import tools as mcp_tools
from kept.memory import namespaces, narratives, sessions, tasks
from kept.memory.verbs import USUAL_TOPICS, all_verbs, not_here
from kept.memory.verbs.arguments import Argument, arguments_of, wire_arguments
from kept.memory.verbs.declare import DOORS, WHO, AnyVerb, NotHere, Tool

VERBS = {verb.name: verb for verb in all_verbs()}
HANDLES = {"session()": sessions.Session, "task()": tasks.Task, "narrative()": narratives.Narrative}
HANDLED = {"session()": {"session"}, "task()": {"task"}, "narrative()": {"id", "of"}}

# A method that takes one thing where the request has a field for each form of it, for doors that only have text.
SEVERAL_FORMS = {
    "erase": {"ref": {"refs", "sessions", "tasks", "aliases", "targets"}},
    "reviews.apply": {"decisions": {"decisions", "given"}},
    "reviews.propose": {"draft": {"content", "kind", "tags", "files", "draft"}},
    "import_transcripts": {"path": {"path", "paths"}},
}


def named(verbs: Iterator[AnyVerb] | None = None) -> list[Any]:
    return [pytest.param(verb, id=verb.name) for verb in (verbs or VERBS.values())]


def test_names_are_unique_and_every_row_is_whole() -> None:
    assert len(VERBS) == len(list(all_verbs()))
    for verb in VERBS.values():
        assert verb.help.endswith("."), verb.name
        assert verb.who in WHO
        assert all(one.help for one in wire_arguments(verb.request)), verb.name
        assert inspect.getdoc(verb.run), verb.name


def test_few_cells_have_no_door_and_each_says_why() -> None:
    """At most 15 % of the table."""
    missing = not_here()
    assert len(missing) <= 0.15 * len(VERBS) * len(DOORS)
    for verb, door, reason in missing:
        assert reason.endswith("."), (verb.name, door)
        assert len(reason.split()) >= 4, (verb.name, door)


# Python


def method_of(verb: AnyVerb) -> Any:
    owner, _, name = verb.python.rpartition(".")
    if owner in HANDLES:
        return getattr(HANDLES[owner], name)
    if owner:
        namespace = getattr(namespaces, inspect.signature(getattr(kept.Kept, owner).fget).return_annotation)
        return getattr(namespace, name)
    return getattr(kept.Kept, name)


@pytest.mark.parametrize("verb", named())
def test_the_method_has_the_arguments_of_the_request(verb: AnyVerb) -> None:
    method = method_of(verb)
    fields = {one.name for one in arguments_of(verb.request)}
    owner = verb.python.rpartition(".")[0]
    fields -= HANDLED.get(owner, set()) if owner in HANDLED else set()
    if isinstance(method, property):
        assert not fields
        return
    parameters = set(inspect.signature(method).parameters) - {"self", "summarizer"}
    for parameter, forms in SEVERAL_FORMS.get(verb.name, {}).items():
        assert parameter in parameters
        parameters = (parameters - {parameter}) | forms
    assert parameters == fields


# The command line

# Options that only a terminal needs, or that stand for several values of an argument.
CLI_EXTRAS = {"--yes", "-y"}


def help_of(path: str) -> str:
    """Return the help page of a command as it is shown."""
    ctx = click.Context(root, info_name="kept")
    found: click.Command | None = root
    for word in path.split():
        assert isinstance(found, click.Group)
        found = found.get_command(ctx, word)
        assert found is not None, path
        ctx = click.Context(found, info_name=word, parent=ctx, terminal_width=500, max_content_width=500)
    return found.get_help(ctx)


def cli_commands() -> list[Any]:
    paths = sorted({verb.cli for verb in VERBS.values() if isinstance(verb.cli, str)})
    return [pytest.param(path, [one for one in VERBS.values() if one.cli == path], id=path) for path in paths]


@pytest.mark.parametrize(("path", "verbs"), cli_commands())
def test_the_command_has_the_arguments_of_its_verbs(path: str, verbs: list[AnyVerb]) -> None:
    page = help_of(path)
    usage = page.partition("\n\n")[0]
    for argument in (
        one for verb in verbs for one in wire_arguments(verb.request) if (verb.name, one.name) not in NOT_TYPED
    ):
        option = f"--{argument.singular.replace('_', '-')}"
        is_shown = re.search(rf"(?<![\w-]){option}(?![\w-])", page) or re.search(
            rf"\b({argument.metavar or argument.name.upper()}|{argument.name.upper()})\b|{'|'.join(argument.choices)}"
            if argument.is_positional and argument.choices
            else rf"\b({argument.metavar or argument.name.upper()}|{argument.name.upper()})\b",
            usage,
        )
        assert is_shown, f"kept {path} lacks {option}"


def test_every_argument_that_no_command_has_says_why() -> None:
    for (name, argument), reason in NOT_TYPED.items():
        assert argument in {one.name for one in wire_arguments(VERBS[name].request)}
        assert reason.endswith("."), (name, argument)
        assert len(reason.split()) >= 4, (name, argument)


@pytest.mark.parametrize(
    ("path", "spellings"),
    [
        ("briefing", "--budget-tokens, --budget TOKENS"),
        ("briefing", "--remaining-tokens, --remaining TOKENS"),
        ("share", "--budget-tokens, --budget TOKENS"),
        ("share", "--project-context, --context TEXT"),
        ("review conflicts", "--resolved, --all"),
        ("review", "--decision, --apply DECISION"),
        ("task list", "--archived, --all"),
    ],
)
def test_an_option_may_have_a_shorter_spelling_as_well(path: str, spellings: str) -> None:
    assert spellings in help_of(path)


# MCP


def test_the_tools_have_the_arguments_of_their_verbs() -> None:
    listed = mcp_tools.tools(all_tools=True)
    expected: dict[str, set[str]] = {}
    for verb in VERBS.values():
        if isinstance(verb.mcp, Tool):
            hidden = set(mcp_tools.ADDED.get(verb.name, ((),))[0])
            names = {one.name for one in wire_arguments(verb.request)} - hidden
            shown = {verb.mcp.renamed.get(name) or mcp_tools.RENAMED.get(name, name) for name in names}
            expected.setdefault(verb.mcp.name, set()).update(shown)
    shown_by = {name: set(tool.schema["properties"]) for name, tool in listed.items()}
    assert {name: shown_by[name] for name in expected} == expected
    assert set(listed) - set(expected) == {"search", "fetch"}


def test_the_usual_arguments_of_a_tool_are_arguments_of_its_verb() -> None:
    for verb in VERBS.values():
        if isinstance(verb.mcp, Tool):
            assert set(verb.mcp.usual) <= {one.name for one in wire_arguments(verb.request)}, verb.name


# HTTP


@pytest.fixture(scope="module")
def openapi(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("home")
    guard: Any = make_app(ServeOptions(home=str(home)), Keys(Path(home), "a-key-for-tests"))
    document: dict[str, Any] = guard._app.openapi()
    return document


@pytest.mark.parametrize("verb", [one for one in named() if isinstance(one.values[0].http, str)])
def test_the_route_has_the_arguments_of_the_request(verb: AnyVerb, openapi: dict[str, Any]) -> None:
    method, path = str(verb.http).split()
    operation = openapi["paths"][f"/api/v1/projects/{{project}}{path}"][method.lower()]
    shown = {one["name"] for one in operation.get("parameters", ()) if one["in"] != "header"} - {"project"}
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    is_query = method in ("GET", "DELETE")
    expected = {_http_name(one, path, is_query=is_query) for one in wire_arguments(verb.request)}
    assert shown | set(body.get("properties", ())) == expected


def _http_name(argument: Argument, path: str, *, is_query: bool) -> str:
    if f"{{{argument.name}}}" in path or not is_query:
        return argument.name
    return argument.singular


# Slash commands


@pytest.mark.parametrize("verb", [one for one in named() if isinstance(one.values[0].slash, str)])
def test_the_slash_command_takes_the_arguments_of_the_request(verb: AnyVerb) -> None:
    assert str(verb.slash) in slash.known_commands()
    arguments = wire_arguments(verb.request)
    for argument in arguments:
        if not argument.is_positional:
            value = "" if argument.form == "boolean" else argument.choices[0] if argument.choices else "1"
            typed = f"--{argument.singular.replace('_', '-')} {value}"
            assert argument.name in slash.values_of(arguments, typed), typed


def test_an_option_that_a_slash_command_does_not_have_is_refused_by_name() -> None:
    with kept.open(":memory:") as memory, pytest.raises(kept.InvalidInput, match="no option --colour"):
        slash.run(memory, "/memory why --colour red")


def test_every_verb_that_is_not_here_has_no_name_there() -> None:
    for verb in VERBS.values():
        for door in DOORS:
            found = verb.at(door)
            assert isinstance(found, NotHere) or found, (verb.name, door)
    assert GLOBAL_OPTIONS


def test_the_usual_tools_are_all_in_the_topics_with_which_a_server_starts() -> None:
    """A client waits for the start of its server, so that imports nothing for tools that it does not show."""
    usual = {verb.name for verb in all_verbs() if isinstance(verb.mcp, Tool) and verb.mcp.usual}
    found = {verb.name for verb in all_verbs(USUAL_TOPICS) if isinstance(verb.mcp, Tool) and verb.mcp.usual}
    assert found == usual
    code = (
        "import sys; from kept.entrypoints.mcp.server import ServerOptions, build; build(ServerOptions());"
        "print(*sorted(name for name in sys.modules if name.startswith('kept.')))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    cold = {"kept.writing.extraction", "kept.memory.erase", "kept.memory.library", "kept.memory.sessions"}
    assert cold.isdisjoint(loaded)
    assert len(loaded) <= 125


@pytest.mark.parametrize("name", ["remember", "recall", "list"])
def test_data_goes_through_every_door_that_is_derived(name: str) -> None:
    [data] = [one for one in wire_arguments(VERBS[name].request) if one.name == "data"]
    assert data.form == "object"
    assert data.metavar == "NAME=VALUE"
    assert "--data NAME=VALUE" in help_of(str(VERBS[name].cli))
