"""Write the pages on the command line and the settings from the program itself, so that they cannot go stale.

`python docs/generate.py` writes them; with `--check` it writes nothing and exits with 1 if one of them is out of date.
"""

import inspect
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from kept.entrypoints.cli.catalog import COMMANDS
from kept.entrypoints.cli.frame import option_rows, root
from kept.memory.verbs import TOPICS
from kept.memory.verbs.arguments import Argument, wire_arguments
from kept.memory.verbs.declare import DOORS, WHO, AnyVerb, NotHere, Tool
from kept.projects.config import PREFIX
from kept.settings import fields

DOCS = Path(__file__).parent
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
    return "\n".join(lines) + "\n"


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


PAGES = {"cli.md": cli_page, "settings.md": settings_page, "reference.md": reference_page}


def stale_pages() -> list[str]:
    """The pages that are missing or no longer match the program."""
    return [
        name for name, page in PAGES.items() if not (DOCS / name).exists() or (DOCS / name).read_text("utf-8") != page()
    ]


def main(arguments: list[str]) -> int:
    if "--check" in arguments:
        for name in (stale := stale_pages()):
            print(f"docs/{name} is out of date. Run `python docs/generate.py`.", file=sys.stderr)
        return 1 if stale else 0
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
