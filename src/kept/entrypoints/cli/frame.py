"""The frame around every command: global options, shared options, help, and loading a command when it is called.

A command is a function that is marked with `command` (or `GROUP.command("name")` for a subcommand). It gets the
Invocation first, then its options by name. Rule: a global option may stand before the command or after it, and means
the same.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache, wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar, cast

import click
from click.shell_completion import CompletionItem
from msgspec.structs import replace

import kept
from kept import access
from kept.entrypoints.cli.amounts import ago
from kept.entrypoints.cli.catalog import COMMANDS, FIRST_PAGE, CatalogEntry
from kept.entrypoints.cli.invocation import LIKE, Invocation, nearest, run, tied, untied, wants_json
from kept.errors import InvalidInput, NotFound
from kept.memory import Kept
from kept.model import SessionRecord

P = ParamSpec("P")
T = TypeVar("T")
Function = Callable[..., None]

ROLES = ("admin", "project", "skill")
WHOLE = "whole"  # the module of commands that are derived as a whole
EVERYWHERE = "Also --home, --project, --database, --as, --json and --help; `kept --help` explains them."
GLOBAL_OPTIONS = ("home", "project", "database", "as_role", "as_json", "show_help")
# They hand the role on to each call, or show nothing that is stored.
OUTSIDE_THE_HOME = ("mcp", "serve", "protocol", "tour", "help")
WIDE, NARROW = 30, 18  # columns for the names of options
ROOMY = 72  # columns of a terminal that leave enough for the help beside wide names
VERY_LIKE = 0.8  # of 1: a name of another program, with a letter that is wrong
MOST = 10_000  # of what a page may hold
MEANT = 8  # sessions that are listed where a beginning of an id fits several


def find_invocation(ctx: click.Context) -> Invocation:
    """The invocation, with all global options that have been read so far."""
    return cast(Invocation, ctx.find_root().obj)


def with_invocation(function: Function) -> Function:
    """Give a command the invocation as its first argument, once the role may see the home."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> None:
        ctx = click.get_current_context()
        invocation = find_invocation(ctx)
        if ctx.command_path.split()[1] not in OUTSIDE_THE_HOME:
            access.check_home(invocation.actor)
        function(invocation, *args, **kwargs)

    return call


def command(function: Function) -> "Command":
    """Make the function `NAME_command` a command. The catalog has its line of help; the docstring says the rest."""
    return click.command(_name(function), cls=Command)(with_invocation(function))


def group(function: Function) -> "Group":
    """The same for a name that only has commands below it."""
    return Group(_name(function), help=inspect.getdoc(function))


def acting_group(function: Function) -> "Group":
    """The same for a command that has commands below it, and that runs where none of them is named."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> None:
        if click.get_current_context().invoked_subcommand is None:
            with_invocation(function)(*args, **kwargs)

    return click.command(_name(function), cls=Group)(run)


def _name(function: Function) -> str:
    return function.__name__.removesuffix("_command").removesuffix("_group")


def yes_option(function: Callable[P, T]) -> Callable[P, T]:
    """`--yes`, for commands that may have to ask."""
    return click.option("--yes", "-y", is_flag=True, help="Answer yes to every question.")(function)


def session_named(invocation: Invocation, memory: Kept, typed: str, *, must_exist: bool = True) -> str:
    """Return the id of the session that was typed: all of it, or a beginning that only one has.

    Raises NotFound, unless `must_exist` is False: then the typed name may be a session that is yet to come.
    """
    sessions = {session.name: session for session in memory.sessions()}
    meant = [typed] if typed in sessions else [name for name in sessions if typed and name.startswith(typed)]
    if len(meant) > 1:
        raise _ambiguous(typed, [sessions[name] for name in meant], invocation.clock())
    if not meant and must_exist:
        raise NotFound(f"There is no session {typed[:60]!r}.", hint="`kept session list` shows them.")
    return meant[0] if meant else typed


def _ambiguous(typed: str, meant: Sequence[SessionRecord], now: datetime) -> InvalidInput:
    choices = [f"{one.name} ({one.agent or 'session'}, {ago(one.started_at, now)})" for one in meant[: -MEANT - 1 : -1]]
    more = f", and {len(meant) - MEANT} more" if len(meant) > MEANT else ""
    return InvalidInput(
        f"{len(meant)} sessions begin with {typed!r}: {', '.join(choices)}{more}.", hint="Type more of the id."
    )


def message_named(invocation: Invocation, memory: Kept, typed: str) -> str:
    """The ref of the message that somebody means, `ID#12`, where a beginning of the id is enough."""
    session, hash_sign, number = typed.rpartition("#")
    return f"{session_named(invocation, memory, session, must_exist=False)}{hash_sign}{number}"


def limit_option(default: int, what: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """`--limit`: a whole number, large enough for anybody and small enough for every storage."""

    def check(ctx: click.Context, param: click.Parameter, value: str) -> int:
        if not (value.isascii() and value.isdigit() and 1 <= int(value[:9]) <= MOST):
            raise click.BadParameter(f"{value[:60]!r} is not a whole number from 1 to {MOST}.", ctx, param)
        return int(value)

    return click.option(
        "--limit", default=str(default), show_default=True, metavar="NUMBER", callback=check, help=f"How many {what}."
    )


@cache
def _global_options() -> tuple[click.Parameter, ...]:
    """Options that may stand before or after the command; the last one counts. Made once, for all commands."""

    def note(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value is not None and not ctx.resilient_parsing:
            ctx.find_root().obj = find_invocation(ctx).with_option(str(param.name), value)

    def option(*names: str, **about: Any) -> click.Option:
        return click.Option(names, expose_value=False, **about)

    return (
        option("--home", metavar="DIR", callback=note, help="Where Kept stores its files, instead of the usual place."),
        option(
            "--project",
            metavar="PATH_OR_NAME",
            callback=note,
            help="The project; by default that of the current directory.",
        ),
        option(
            "--database",
            metavar="URL",
            callback=note,
            help="The PostgreSQL database that holds the project, instead of $KEPT_DATABASE_URL.",
        ),
        option(
            "--as", "as_role", type=click.Choice(ROLES), callback=note, help="The role to act in; by default project."
        ),
        # `wants_json` reads it before anything is parsed, so that errors of parsing are answered in JSON as well.
        option("--json", "as_json", is_flag=True, help="Answer with one JSON document, also for errors."),
        option("--help", "-h", "show_help", is_flag=True, is_eager=True, callback=_help, help="Show this page."),
    )


def _help(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        show_help(ctx)


def show_help(ctx: click.Context) -> None:
    """Answer with the help of this command, and stop."""
    page = ctx.get_help()
    find_invocation(ctx).answer({"help": page}, page.split("\n"), as_is=True)  # wrapped already, but for examples
    ctx.exit()


def _version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        find_invocation(ctx).answer({"version": kept.__version__}, [f"kept {kept.__version__}"])
        ctx.exit()


class HelpFormatter(click.HelpFormatter):
    """A page of help that breaks no line within text between backticks, which is a command to copy."""

    def write_text(self, text: str) -> None:
        super().write_text(tied(text, self.width - self.current_indent))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = WIDE, col_spacing: int = 2) -> None:
        room = self.width - self.current_indent - col_max - col_spacing
        super().write_dl([(name, tied(help, room)) for name, help in rows], col_max, col_spacing)

    def getvalue(self) -> str:
        return untied(super().getvalue())


class Command(click.Command):
    """A command with the global options, which its help only names."""

    def get_help(self, ctx: click.Context) -> str:
        """Return the page of help of this command, for the width of the terminal."""
        formatter = HelpFormatter(width=ctx.terminal_width, max_width=ctx.max_content_width)
        self.format_help(ctx, formatter)
        return formatter.getvalue().rstrip("\n")

    def __init__(self, *args: Any, **attributes: Any) -> None:
        attributes["params"] = [*(attributes.get("params") or ()), *_global_options()]
        attributes["add_help_option"] = False
        super().__init__(*args, **attributes)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own, common = option_rows(self, ctx)
        with_common = ctx.parent is None  # on the first page; elsewhere they would be half of the page
        for heading, rows in (("Options", own), ("Options of every command", common if with_common else [])):
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows, col_max=WIDE if formatter.width >= ROOMY else NARROW)
        if not with_common:
            formatter.write_paragraph()
            formatter.write_text(EVERYWHERE)


def option_rows(command: click.Command, ctx: click.Context) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The options of a command with their help: its own, and the global ones."""
    own: list[tuple[str, str]] = []
    common: list[tuple[str, str]] = []
    for param in command.get_params(ctx):
        row = param.get_help_record(ctx) if isinstance(param, click.Option) else None
        if row is not None:
            (common if param.name in GLOBAL_OPTIONS else own).append(row)
    return own, common


def _help_without_command(**_options: Any) -> None:
    ctx = click.get_current_context()
    if ctx.invoked_subcommand is None:
        show_help(ctx)


def _module(name: str) -> Any:
    """Import the module of a command when the command is called or shown."""
    return import_module(f"{__package__}.{name}")


def _first_sentence(help: str) -> str:
    words = " ".join(help.split("\n\n", 1)[0].split())
    return words.split(". ", 1)[0].rstrip(".") + "."


class Group(Command, click.Group):
    """A command that has commands of its own. Without one of them it shows its help."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        attributes |= {"invoke_without_command": True, "no_args_is_help": False}
        attributes["callback"] = attributes.get("callback") or _help_without_command
        super().__init__(*args, **attributes)

    def command(self, name: str) -> Callable[[Function], Command]:  # type: ignore[override]
        """Make a function a command of this group; its docstring is the help."""

        def add(function: Function) -> Command:
            made = click.command(name, cls=Command)(with_invocation(function))
            self.add_command(made)
            return made

        return add

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all commands in alphabetical order: those written by hand and those derived from verbs."""
        return sorted({*super().list_commands(ctx), *self._derived()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command of this group; a verb that names one gives it where no module has it."""
        return super().get_command(ctx, cmd_name) or self._derived().get(cmd_name)

    def _derived(self) -> "dict[str, Command]":
        """Return the derived commands by their names. Like the modules of the catalog, theirs is loaded when needed."""
        found: dict[str, Command] = _module(WHOLE).commands_below(self.name or "")
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with the whole first sentence of their help; click would cut it off."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, _first_sentence(one.help or "")) for name, one in found if one is not None]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        Command.format_options(self, ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        command = self.get_command(ctx, name)
        if command is None and not ctx.resilient_parsing:
            guess = self.guess(ctx, name.lower())
            sentence = f" Did you mean {guess}?" if guess else ""
            raise click.UsageError(f"There is no command {name[:60]!r}.{sentence}", ctx=ctx)
        return (name if command else None), command, args[1:]

    def guess(self, ctx: click.Context, name: str) -> str | None:
        """The command that was probably meant by this name."""
        return nearest(name, self.list_commands(ctx))


# Names that other programs have for our commands.
CALLED_ELSEWHERE = {
    **dict.fromkeys(("add", "create", "save", "note"), "remember"),
    **dict.fromkeys(("search", "query", "ask", "get", "grep"), "find"),
    **dict.fromkeys(("update", "change", "revise"), "edit"),
    **dict.fromkeys(("reinforce", "demote", "upvote", "downvote"), "rate"),
    **dict.fromkeys(("off", "stop", "disable"), "pause"),
    **dict.fromkeys(("on", "enable"), "resume"),
    **{name: f"review {name}" for name in ("conflicts", "resolve")},
    "paused": "status",
    **{name: f"secrets {name}" for name in ("scan", "allow")},
    **{name: f"store {name}" for name in ("backup", "merge", "move", "database")},
    **dict.fromkeys(("delete", "remove", "rm", "del"), "forget, or erase for good"),
    **dict.fromkeys(("ls", "all", "tags"), "list"),
    **dict.fromkeys(("settings", "configure"), "config"),
    "archive": "forget",
    "version": "kept --version",
    "check": "doctor",
    "dump": "export",
}


class Root(Group):
    """`kept` itself: its commands are listed in the catalog, and imported when they are called."""

    def __init__(self, *args: Any, catalog: Mapping[str, CatalogEntry], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self._catalog = catalog

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._catalog)

    def guess(self, ctx: click.Context, name: str) -> str | None:
        """Return the command that was probably meant. Of the names of other programs, only one that is spelled so."""
        near = nearest(name, self.list_commands(ctx), cutoff=LIKE)
        meant = name if name in CALLED_ELSEWHERE else near or nearest(name, [*CALLED_ELSEWHERE], cutoff=VERY_LIKE)
        return None if meant is None else CALLED_ELSEWHERE.get(meant, meant)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._catalog.get(cmd_name)
        if entry is None:
            return None
        module = _module(entry.module)
        found: click.Command | None = (
            module.command_at(cmd_name) if entry.module == WHOLE else getattr(module, f"{cmd_name}_command", None)
        )
        if found is None:
            raise LookupError(f"The catalog lists {cmd_name}, but {entry.module}.py has no {cmd_name}_command.")
        if not (found.help or "").startswith(entry.line):
            found.help = f"{entry.line}\n\n{inspect.cleandoc(found.help or '')}".rstrip()
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self._write_sections(formatter, FIRST_PAGE)
        formatter.write_paragraph()
        formatter.write_text(
            f"`kept help --all` lists all {len(self._catalog)} commands, `kept help COMMAND` explains one."
        )

    def every_command(self, ctx: click.Context) -> str:
        """Return all commands under their topics, as a page of help."""
        formatter = ctx.make_formatter()
        topics: dict[str, list[str]] = {}
        for name, entry in self._catalog.items():
            topics.setdefault(entry.topic, []).append(name)
        self._write_sections(formatter, topics)
        return formatter.getvalue().strip("\n")

    def _write_sections(self, formatter: click.HelpFormatter, sections: Mapping[str, Sequence[str]]) -> None:
        for heading, names in sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name, self._catalog[name].line) for name in names])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        fitting = [
            CompletionItem(name, help=entry.line)
            for name, entry in self._catalog.items()
            if name.startswith(incomplete)
        ]
        return fitting + click.Command.shell_complete(self, ctx, incomplete)

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> int:
        """Run one command and end the process with its exit code, or return it where `standalone_mode` is off."""
        self._main_shell_completion(extra, "kept", complete_var)
        arguments = list(sys.argv[1:] if args is None else args)
        invocation = replace(extra.pop("obj", None) or Invocation(), as_json=wants_json(arguments))
        code = run(self, arguments, invocation)
        if standalone_mode:
            sys.exit(code)
        return code


root = Root(
    "kept",
    catalog=COMMANDS,
    help="Kept: a memory for AI agents that lasts. Local, explained, undoable.",
    epilog='Begin with: kept tour, or kept remember "Never edit the auth middleware directly" --kind warning',
    params=[
        click.Option(
            ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version."
        )
    ],
)
