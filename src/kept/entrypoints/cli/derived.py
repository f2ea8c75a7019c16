"""Commands derived from the verbs: their arguments and options, and commands that need no words of their own.

`options_of(VERB)` gives a hand-written command every argument of the verb's request, so that no option is declared
twice; the command adds what only a terminal needs. A verb whose row names a command that no module has is derived
whole. Rule: the request says what an argument is called, what it means and which values it takes.
"""

import sys
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import click
import msgspec

from kept.entrypoints.cli.completion import complete_kind, complete_ref, complete_session, complete_tag
from kept.entrypoints.cli.frame import Command, Group, find_invocation, with_invocation, yes_option
from kept.entrypoints.cli.invocation import Invocation
from kept.entrypoints.wording import answer_lines
from kept.errors import InvalidInput
from kept.memory.verbs import all_verbs
from kept.memory.verbs.arguments import Argument, build, wire_arguments
from kept.memory.verbs.declare import AnyVerb

STANDARD_INPUT = "-"
COMPLETIONS = {
    "kind": complete_kind,
    "kinds": complete_kind,
    "tags": complete_tag,
    "ref": complete_ref,
    "session": complete_session,
}
Function = Callable[..., Any]


def options_of(verb: AnyVerb, *, without: Iterable[str] = ()) -> Callable[[Function], Function]:
    """Add the arguments of a verb to a command, which gets them by their names; `without` names those it has itself."""
    left = set(without)
    arguments = [one for one in wire_arguments(verb.request) if one.name not in left]

    def add(function: Function) -> Function:
        for argument in reversed(arguments):
            function = _parameter(argument)(function)
        return function

    return add


def request_of(verb: AnyVerb, given: dict[str, Any]) -> Any:
    """Make the request of a verb out of the options of a command. An empty list counts as left out."""
    return build(verb.request, {name: value for name, value in given.items() if value != ()}, verb=f"kept {verb.cli}")


def command_of(verb: AnyVerb, name: str) -> Command:
    """Derive a whole command from a verb."""

    @yes_option
    @options_of(verb)
    def run(invocation: Invocation, *, yes: bool, **given: Any) -> None:
        asked = request_of(verb, given)
        with invocation.open(yes=yes) as memory:
            answer = memory.perform(verb, asked)
        many = verb.returns.many
        plain = msgspec.to_builtins(answer, enc_hook=str)
        document = {many: plain} if many else plain if isinstance(plain, dict) else {"answer": plain}
        invocation.answer(document, answer_lines(answer))

    run.__doc__ = "\n\n".join(filter(None, (verb.help, verb.details)))
    return click.command(name, cls=Command)(with_invocation(run))


def commands_below(group: str) -> dict[str, Command]:
    """Return the derived commands of a group by their names."""
    paths = {str(verb.cli).removeprefix(f"{group} "): verb for verb in all_verbs() if _is_below(verb.cli, group)}
    return {name: command_of(verb, name) for name, verb in paths.items()}


def _is_below(path: object, group: str) -> bool:
    return isinstance(path, str) and path.startswith(f"{group} ")


def command_at(name: str) -> click.Command:
    """Return the derived command of that name, or the group of those below it."""
    verb = next((one for one in all_verbs() if one.cli == name), None)
    return Group(name) if verb is None else command_of(verb, name)


def _parameter(argument: Argument) -> Callable[[Function], Function]:
    return _positional(argument) if argument.is_positional else _option(argument)


def _positional(argument: Argument) -> Callable[[Function], Function]:
    """Return an argument that is typed without a name. A text is several words, or a dash for standard input."""
    is_several = argument.is_text or argument.is_several
    return click.argument(
        argument.name,
        nargs=-1 if is_several else 1,
        required=argument.is_required,
        metavar=argument.metavar or None,
        callback=_joined if argument.is_text else None,
        shell_complete=COMPLETIONS.get(argument.name),
        type=click.Choice(argument.choices) if argument.choices and not is_several else None,
    )


def _option(argument: Argument) -> Callable[[Function], Function]:
    name = f"--{argument.singular.replace('_', '-')}"
    more = " May be repeated." if argument.is_several else ""
    about: dict[str, Any] = {"help": f"{argument.help}{more}", "shell_complete": COMPLETIONS.get(argument.name)}
    if argument.form == "boolean" and argument.default:
        return click.option(f"{name}/--no-{name[2:]}", argument.name, default=True, **about)
    if argument.form == "boolean":
        return click.option(name, argument.name, is_flag=True, **about)
    if argument.choices:
        about["type"] = click.Choice(argument.choices)
    else:
        about["metavar"] = argument.metavar or argument.name.upper()
    if argument.form == "moment":
        about["callback"] = _moment_of(is_end=argument.name == "until")
    elif argument.form == "object":
        about |= {"callback": _mapping, "multiple": True}
    elif argument.form in ("integer", "number"):
        about["callback"] = _fitted(argument)
    if argument.is_several:
        about["multiple"] = True
    elif argument.default is not None:
        about |= {"default": str(argument.default), "show_default": bool(argument.default)}
    return click.option(name, argument.name, **about)


# Callbacks: from text to values


def _joined(_ctx: click.Context, _param: click.Parameter, words: tuple[str, ...]) -> str | None:
    """Return the words as one text; a single dash reads it from standard input."""
    if words == (STANDARD_INPUT,):
        return text_from_input()
    return " ".join(words) if words else None


def text_from_input() -> str:
    """Return the text on standard input. Raises InvalidInput unless it is UTF-8."""
    data = sys.stdin.buffer.read()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"The text on standard input is not UTF-8: byte {error.start + 1} is 0x{data[error.start]:02x}.",
            hint="Convert it first, for example with iconv.",
        ) from None


def _fitted(argument: Argument) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    def fit(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
        if value is None:
            return None
        try:
            fitted = argument.fitted(value, argument.name)
        except InvalidInput as error:
            raise click.BadParameter(error.message, ctx, param) from None
        if isinstance(fitted, str):
            raise click.BadParameter(argument.says(fitted), ctx, param)
        return fitted

    return fit


def _mapping(ctx: click.Context, param: click.Parameter, pairs: tuple[str, ...]) -> dict[str, Any] | None:
    """Return `name=value` pairs as a dictionary; a value that is JSON as such."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"{pair[:60]!r} is not NAME=VALUE.", ctx, param)
        try:
            found[name] = msgspec.json.decode(value)
        except msgspec.DecodeError:
            found[name] = value
    return found or None


def _moment_of(*, is_end: bool) -> Callable[[click.Context, click.Parameter, str | None], datetime | None]:
    """Parse 2026-03-01 or 2026-03-01T14:30. `is_end`: a day means until that day is over."""

    def parse(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
        if value is None:
            return None
        zone = find_invocation(ctx).zone
        try:
            at = _moment(value.strip(), is_end=is_end)
            if at.tzinfo is None:
                at = at.replace(tzinfo=zone) if zone else at.astimezone()
            at.astimezone(UTC)  # the first and the last day of the calendar do not exist everywhere
        except (ValueError, OverflowError) as error:
            advice = "Write a day, 2026-03-01, or a moment, 2026-03-01T14:30."
            raise click.BadParameter(f"{value[:60]!r} is not a date. {advice}", ctx, param) from error
        return at

    return parse


def _moment(value: str, *, is_end: bool) -> datetime:
    try:
        day = date.fromisoformat(value)
    except ValueError:
        return datetime.fromisoformat(value)
    return datetime.combine(day, time.min) + timedelta(days=is_end)
