"""The frame around every command: the options that all take, lazy loading, and the one place that catches errors.

Rule: whatever happens ends as a sentence with the next step on standard error, or as one JSON document on standard
output, and as an exit code: 0 done, 1 refused or failed, 2 used wrongly, 130 interrupted, 141 the reader has gone.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from kept.entrypoints.cli.catalog import COMMANDS, Entry
from kept.entrypoints.cli.invocation import Invocation
from kept.errors import KeptError

P = ParamSpec("P")
T = TypeVar("T")

ROLES = ("admin", "project", "skill")
GLOBAL_OPTIONS = ("home", "project", "role", "as_json", "show_help")
MOST = 10_000  # of what a page may hold
FAILED, WRONG_USAGE, INTERRUPTED, READER_GONE = 1, 2, 130, 141


def pass_invocation(function: Callable[..., T]) -> Callable[..., T]:
    """Give the command its Invocation as the first argument."""

    @wraps(function)
    def with_invocation(*args: Any, **kwargs: Any) -> T:
        return function(find_invocation(click.get_current_context()), *args, **kwargs)

    return with_invocation


def yes_option(function: Callable[P, T]) -> Callable[P, T]:
    """`--yes`, for commands that may have to ask."""
    return click.option("--yes", "-y", is_flag=True, help="Agree to whatever would be asked.")(function)


def limit_option(default: int, what: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """`--limit`: a whole number, large enough for anybody and small enough for every storage."""

    def check(ctx: click.Context, param: click.Parameter, value: str) -> int:
        if not (value.isascii() and value.isdigit() and 1 <= int(value[:9]) <= MOST):
            raise click.BadParameter(f"{value[:60]!r} is not a whole number from 1 to {MOST}.", ctx, param)
        return int(value)

    return click.option(
        "--limit", default=str(default), show_default=True, metavar="NUMBER", callback=check, help=f"How many {what}."
    )


def _global_options() -> list[click.Parameter]:
    """Options that may stand before or after the command; the one that stands last counts."""

    def note(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value is not None and not ctx.resilient_parsing:
            ctx.find_root().obj = replace(find_invocation(ctx), **{str(param.name): value})

    def option(*names: str, **about: Any) -> click.Option:
        return click.Option(names, expose_value=False, **about)

    return [
        option("--home", metavar="DIR", callback=note, help="Where Kept keeps its files, instead of the usual place."),
        option(
            "--project",
            metavar="PATH_OR_NAME",
            callback=note,
            help="The project that is meant, instead of the current directory's.",
        ),
        option("--as", "role", type=click.Choice(ROLES), callback=note, help="Act in this role, instead of project."),
        # What it does is read from the arguments before anything is parsed: errors of parsing are answered in JSON too.
        option("--json", "as_json", is_flag=True, help="Answer with one JSON document, errors too."),
        option("--help", "-h", "show_help", is_flag=True, is_eager=True, callback=_help, help="Show this page."),
    ]


def find_invocation(ctx: click.Context) -> Invocation:
    """The invocation, with all the global options that were read so far."""
    return cast(Invocation, ctx.find_root().obj)


def _help(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        show_help(ctx)


def show_help(ctx: click.Context) -> None:
    """Answer with the page of help of this command, and stop."""
    page = ctx.get_help()
    find_invocation(ctx).answer({"help": page}, page.split("\n"))
    ctx.exit()


def _version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib import metadata

        try:
            version = metadata.version("kept")
        except metadata.PackageNotFoundError:  # run from a checkout
            version = "(not installed)"
        find_invocation(ctx).answer({"version": version}, [f"kept {version}"])
        ctx.exit()


class Command(click.Command):
    """A command with the global options, which its help shows apart."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        attributes["params"] = [*(attributes.get("params") or ()), *_global_options()]
        attributes["add_help_option"] = False
        super().__init__(*args, **attributes)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own, common = option_rows(self, ctx)
        for heading, rows in (("Options", own), ("Options of every command", common)):
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def option_rows(command: click.Command, ctx: click.Context) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The options of a command with their help: its own, and the global ones."""
    own: list[tuple[str, str]] = []
    common: list[tuple[str, str]] = []
    for param in command.get_params(ctx):
        row = param.get_help_record(ctx) if isinstance(param, click.Option) else None
        if row is not None:
            (common if param.name in GLOBAL_OPTIONS else own).append(row)
    return own, common


class Group(Command, click.Group):
    """A command that has commands. Without one of them it shows its help."""

    command_class = Command

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, invoke_without_command=True, no_args_is_help=False, **attributes)

    def invoke(self, ctx: click.Context) -> Any:
        if not (ctx._protected_args or ctx.args):
            show_help(ctx)
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        Command.format_options(self, ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        command = self.get_command(ctx, name)
        if command is None and not ctx.resilient_parsing:
            from difflib import get_close_matches

            nearest = get_close_matches(name.lower(), self.list_commands(ctx), n=1)
            guess = f" Did you mean {nearest[0]}?" if nearest else ""
            raise click.UsageError(f"There is no command {name[:60]!r}.{guess}", ctx=ctx)
        return (name if command else None), command, args[1:]


class Root(Group):
    """`kept` itself: its commands are in the catalog, and are imported when they are called."""

    def __init__(self, *args: Any, catalog: Mapping[str, Entry], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self._catalog = catalog

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._catalog)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._catalog.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.target.partition(":")
        return cast(click.Command, getattr(import_module(f"{__package__}.{module}"), f"{attribute}_command"))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for topic in dict.fromkeys(entry.topic for entry in self._catalog.values()):
            with formatter.section(topic):
                formatter.write_dl(
                    [(name, entry.line) for name, entry in self._catalog.items() if entry.topic == topic]
                )

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
        invocation = replace(extra.pop("obj", None) or Invocation(), as_json=_wants_json(arguments))
        code = _run(self, arguments, invocation)
        if standalone_mode:
            sys.exit(code)
        return code


def _wants_json(arguments: Sequence[str]) -> bool:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return "--json" in arguments[:end]


def _run(command: Root, arguments: list[str], invocation: Invocation) -> int:
    """The exit code. Nothing that was raised gets past here."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # a terminal that knows few characters gets escapes, not an error
                stream.reconfigure(errors="backslashreplace")
        with _notices_told(invocation):
            code = _invoke(command, arguments, invocation)
        invocation.flush()
        return code
    except BrokenPipeError:
        _silence_output()
        return READER_GONE
    except (KeyboardInterrupt, click.Abort):
        with suppress(OSError):
            invocation.tell("")  # ends the line on which the terminal has printed ^C
        return INTERRUPTED
    except Exception as error:  # the boundary: told to the person, and turned into an exit code
        return _report(error, invocation)


def _invoke(command: Root, arguments: list[str], invocation: Invocation) -> int:
    try:
        with command.make_context("kept", arguments, obj=invocation) as ctx:
            command.invoke(ctx)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    return 0


def _report(error: Exception, invocation: Invocation) -> int:
    """Say what went wrong and what to do, and give the exit code."""
    kind, message, hint, code = type(error).__name__, "", "", FAILED
    if isinstance(error, KeptError):
        message, hint = error.message, error.hint
    elif isinstance(error, click.ClickException):
        kind, message, code = "UsageError", error.format_message(), error.exit_code
        hint = _usage_hint(error)
    elif isinstance(error, OSError):
        place = f" ({error.filename})" if error.filename is not None else ""
        message = f"The operating system says: {(error.strerror or kind).lower()}{place}."
        hint = "Check the file, its permissions, and the space on the disk."
    else:
        message = f"Kept has a fault here and stopped ({kind}). What was kept before is safe."
        hint = (
            "Run the command again with KEPT_DEBUG=1 and report what it shows; look through it for private text first."
        )
    if os.environ.get("KEPT_DEBUG"):
        import traceback

        invocation.tell(*"".join(traceback.format_exception(error)).splitlines())
    try:
        if invocation.as_json:
            invocation.answer({"error": {"type": kind, "message": message, "hint": hint}}, ())
        else:
            invocation.tell(f"{message} {hint}".rstrip())
        invocation.flush()
    except OSError:  # a full disk or a closed pipe behind the output: nobody is left to be told
        _silence_output()
    return code


def _usage_hint(error: click.ClickException) -> str:
    path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "kept"
    hint = f"`{path} --help` shows how it is used."
    if isinstance(error, click.NoSuchOption) and path.endswith(("remember", "revise")):
        hint = f'If it is part of the text, put the text after a double dash: {path} -- "…". {hint}'
    return hint


@contextmanager
def _notices_told(invocation: Invocation) -> Iterator[None]:
    """Show what the library logs as a warning: a sentence each, for a person to read."""

    class Notices(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            invocation.tell(f"Note: {record.getMessage()}")

    log, handler = logging.getLogger("kept"), Notices(logging.WARNING)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _silence_output() -> None:
    """Nobody reads on: let the interpreter flush its last words into nothing."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())


root = Root(
    "kept",
    catalog=COMMANDS,
    help="Kept: a memory for AI agents that lasts. Local, explained, undoable.",
    epilog='Begin with: kept tour, or kept remember "Never edit the auth middleware directly" --kind warning',
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_version,
            help="Show which Kept this is.",
        )
    ],
)
