"""Write what can be read off the program itself, so that it cannot go stale: pages, the plugin, and its manifests.

`python docs/generate.py` writes them; with `--check` it writes nothing and exits with 1 if one of them is out of date.
"""

import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from kept.distribution import NAME, VERSION
from kept.entrypoints.cli.catalog import COMMANDS
from kept.entrypoints.cli.frame import option_rows, root
from kept.entrypoints.install.agents import MachineFacts, plugin_files
from kept.memory import Kept
from kept.memory.namespaces import Namespace
from kept.memory.sessions import Session
from kept.memory.verbs import TOPICS
from kept.memory.verbs.arguments import Argument, wire_arguments
from kept.memory.verbs.declare import DOORS, WHO, AnyVerb, NotHere, Tool
from kept.projects.config import PREFIX
from kept.settings import fields

NAMESPACES = tuple((kind.__name__.lower().removesuffix("memory"), kind) for kind in Namespace.__subclasses__())
ROOT = Path(__file__).parent.parent
NOTICE = "<!-- Written by docs/generate.py. Change the program, then run `make docs`. -->"


def cli_page() -> str:
    """Every command with its usage, its help and its options."""
    ctx = click.Context(root, info_name="kept")
    _, common = option_rows(root, ctx)
    lines = [
        "# The command line",
        NOTICE,
        "",
        "`kept COMMAND --help` shows the same in the terminal. A REF is the name of a memory: `42`, `g42` for a global "
        "one, or `[id:42]`.",
        "",
        "These options work with every command, before it or after it:",
        "",
        *_options(common),
        "",
        "Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 130 interrupted (Ctrl-C), 141 the reader of the "
        "output has gone. With `--json` there is exactly one JSON document on standard output, also for an error: "
        '`{"error": {"type", "message", "hint"}}`. `KEPT_DEBUG=1` adds the stack trace of an error, `NO_COLOR=1` '
        "switches colours off.",
        "",
        "`kept --version` shows the version. For completion in the shell, put this into its start-up file: "
        '`eval "$(_KEPT_COMPLETE=bash_source kept)"` (bash; `zsh_source` and `fish_source` for the others).',
    ]
    for topic in dict.fromkeys(entry.topic for entry in COMMANDS.values()):
        lines += ["", f"## {topic}"]
        for name in (name for name, entry in COMMANDS.items() if entry.topic == topic):
            command = root.get_command(ctx, name)
            assert command is not None
            for path, one in _with_subcommands(f"kept {name}", command):
                lines += ["", f"### {path}", "", *_command(path, one)]
    return "\n".join(lines) + "\n"


def _with_subcommands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        ctx = click.Context(command, info_name=path)
        for name in command.list_commands(ctx):
            child = command.get_command(ctx, name)
            assert child is not None
            yield f"{path} {name}", child


def _command(path: str, command: click.Command) -> Iterator[str]:
    ctx = click.Context(command, info_name=path)
    pieces = " ".join(piece for piece in command.collect_usage_pieces(ctx) if piece != "[OPTIONS]")
    own, _ = option_rows(command, ctx)
    yield from ("```sh", " ".join(word for word in (path, pieces, "[OPTIONS]" if own else "") if word), "```", "")
    for number, paragraph in enumerate(inspect.cleandoc(command.help or "").split("\n\n")):
        if number:
            yield ""
        if paragraph.startswith("\b"):  # click's mark for lines that must not be filled: examples
            yield from ("```sh", *(line.strip() for line in paragraph.splitlines()[1:]), "```")
        else:
            yield paragraph
    if own:
        yield ""
        yield from _options(own)


def _options(rows: list[tuple[str, str]]) -> Iterator[str]:
    for names, line in rows:
        yield f"- `{names}`: {line}"


def settings_page() -> str:
    """Every setting with its default, what it may be, and what it is for."""
    lines = [
        "# Settings",
        NOTICE,
        "",
        "`kept config show --origin` shows every value and where it comes from; `kept config set NAME VALUE` changes "
        "one for you, and with `--project-only` for one project. The environment wins over both files: "
        f"`{PREFIX}PROFILE=koshi`, and `{PREFIX}SHELF_LIFE_DAYS__WARNING=60` for a row of a table. Nothing inside a "
        "repository is ever read.",
    ]
    for group in dict.fromkeys(field.group for field in fields()):
        lines += ["", f"## {group.capitalize()}", "", "| Setting | Default | May be | |", "|---|---|---|---|"]
        lines += [
            f"| `{field.name}` | {_default(field.default)} | {field.allowed} | {field.help} |"
            for field in fields()
            if field.group == group
        ]
    return "\n".join(lines) + "\n"


def _default(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{row} {_default(entry)}" for row, entry in value.items())
    if value is None:
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def reference_page() -> str:
    """Every verb with its arguments, and its name at each door."""
    lines = [
        "# Reference",
        NOTICE,
        "",
        "A verb is declared once and has the same arguments at every door: as a method in Python, a command, a tool "
        "for agents (MCP), a route below `/api/v1/projects/PROJECT` (HTTP) and a slash command. Six tools are "
        "listed by default, with the arguments in **bold**; `kept mcp --all-tools` lists all. On the command line, "
        "in an address and in a chat, a list takes one value at a time (`--kind decision --kind error`). A REF is "
        "`42`, `g42` for global memory, or `[id:42]`.",
        "",
        f"Who may call a verb: {'; '.join(f'{role}: {about}' for role, about in WHO.items())}. A skill may call none.",
    ]
    for topic in TOPICS:
        module = import_module(f"kept.memory.verbs.{topic}")
        lines += ["", f"## {(inspect.getdoc(module) or topic).splitlines()[0].rstrip('.')}"]
        lines += ["", "| Python | Command | Tool | HTTP | Chat |", "|---|---|---|---|---|"]
        lines += [f"| {' | '.join(_cell(verb.at(door)) for door in DOORS)} |" for verb in module.VERBS]
        for verb in module.VERBS:
            lines += ["", *_verb(verb)]
    return "\n".join([*lines, "", *_python_only()]) + "\n"


def _python_only() -> Iterator[str]:
    """Yield the methods of an opened memory, and of its namespaces, that no verb derives."""
    verbs = {verb.python for topic in TOPICS for verb in import_module(f"kept.memory.verbs.{topic}").VERBS}
    yield "## In Python only"
    yield ""
    yield "Methods of a memory and of a session have a twin for `async` programs, with an `a` before the name."
    yield "`pin`, `unpin`, `reinforce`, `demote`, `forget`, `restore` and `erase` also take a list of refs, and then"
    yield "return a list. A memory or a hit may stand for its ref. `len(memory)`, `ref in memory` and iteration"
    yield "are those of a collection of all live memories. `remember` and `recall` take one argument without its name,"
    yield "`list` takes none."
    yield "Without a command, a tool or a route:"
    yield ""
    yield "| Name | |"
    yield "|---|---|"
    for prefix, holder in (("", Kept), ("session().", Session), *((f"{name}.", kind) for name, kind in NAMESPACES)):
        for name, method in vars(holder).items():
            is_twin = inspect.iscoroutinefunction(method)
            if not name.startswith("_") and inspect.isfunction(method) and not is_twin and prefix + name not in verbs:
                about = (inspect.getdoc(method) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
                yield f"| `memory.{prefix}{name}` | {about} |"


def _cell(found: str | Tool | NotHere) -> str:
    if isinstance(found, NotHere):
        return "–"
    return f"`{found.name if isinstance(found, Tool) else found}`"


def _verb(verb: AnyVerb) -> Iterator[str]:
    yield f"### {verb.name}"
    yield ""
    noun = "" if verb.returns.noun is None else f"`{verb.returns.noun.__name__}`: "
    yield f"{verb.help} {verb.details}".rstrip()
    yield f"It {verb.effect}. For: {verb.who}. Returns {noun}{verb.returns.about}"
    arguments = wire_arguments(verb.request)
    if arguments:
        yield from ("", "| Argument | Type | Default | |", "|---|---|---|---|")
    usual = verb.mcp.usual if isinstance(verb.mcp, Tool) else ()
    for one in arguments:
        name = f"**`{one.name}`**" if one.name in usual else f"`{one.name}`"
        yield f"| {name} | {_form(one)} | {'required' if one.is_required else _shown_default(one)} | {one.help} |"
    missing = [(door, found.reason) for door in DOORS if isinstance(found := verb.at(door), NotHere)]
    if missing:
        yield ""
    for door, reason in missing:
        yield f"Not at {DOOR_NAMES[door]}: {reason}"


DOOR_NAMES = {"python": "Python", "cli": "the command line", "mcp": "MCP", "http": "HTTP", "slash": "a chat"}


def _form(argument: Argument) -> str:
    if argument.choices:
        return " / ".join(argument.choices)
    limits = ""
    if argument.least is not None or argument.most is not None:
        limits = f", {argument.least or 0:,}" + (" or more" if argument.most is None else f" to {argument.most:,}")
    return f"{'list' if argument.is_several else argument.form}{limits}"


def _shown_default(argument: Argument) -> str:
    return "" if argument.default in (None, (), "", {}) else f"`{str(argument.default).lower()}`"


def plugin() -> dict[str, str]:
    """Return the plugin for Claude Code that is installed from this repository, and the marketplace that names it.

    It is the one that `kept install` writes, with the programs found on the PATH instead of at absolute paths.
    """
    here = Path()
    facts = MachineFacts(
        user_home=here, project=here, plugin=here, environ={}, platform="linux", kept="kept", hook="kept-hook",
        version=VERSION,
    )  # fmt: skip
    files = plugin_files(facts)
    market = json.loads(files.pop(".claude-plugin/marketplace.json"))
    market["plugins"][0]["source"] = "./plugin"
    return {f"plugin/{path}": text for path, text in files.items()} | {".claude-plugin/marketplace.json": _json(market)}


def server_manifest() -> str:
    """Return the entry for the registry of MCP servers. Its name is repeated in README.md, which proves the owner."""
    return _json(
        {
            "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
            "name": SERVER,
            "title": "Kept",
            "description": "A memory for AI agents that lasts: local, explained, undoable, and never lost.",
            "version": VERSION,
            "packages": [
                {
                    "registryType": "pypi",
                    "identifier": NAME,
                    "version": VERSION,
                    "runtimeHint": "uvx",
                    "runtimeArguments": [
                        {"type": "named", "name": "--from", "value": f"{NAME}[agents]=={VERSION}"},
                        {"type": "positional", "value": "kept"},
                    ],
                    "packageArguments": [{"type": "positional", "value": "mcp"}],
                    "transport": {"type": "stdio"},
                }
            ],
        }
    )


def _json(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


SERVER = "io.github.kept-memory/kept"


def generated() -> dict[str, str]:
    """Return every generated file: its place in the repository, and its text."""
    pages = {"docs/cli.md": cli_page, "docs/settings.md": settings_page, "docs/reference.md": reference_page}
    return {name: page() for name, page in pages.items()} | plugin() | {"server.json": server_manifest()}


def stale_files() -> list[str]:
    """Return the files that are missing or no longer match the program."""
    return [name for name, text in generated().items() if not _is_same(ROOT / name, text)]


def _is_same(path: Path, text: str) -> bool:
    return path.exists() and path.read_text("utf-8") == text


def main(arguments: list[str]) -> int:
    if "--check" in arguments:
        for name in (stale := stale_files()):
            print(f"{name} is out of date. Run `python docs/generate.py`.", file=sys.stderr)
        return 1 if stale else 0
    for name, text in generated().items():
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
