"""Arguments and options of commands, derived from the requests of the verbs.

`options_of(VERB)` gives a command every argument of the verb's request, `request_of(VERB, given)` makes the request of
what was typed; the command adds what only a terminal needs, and words. Rule: the request says what an argument is
called, what it means and which values it takes, so that no option is declared twice.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import click
import msgspec
from click.core import ParameterSource
from msgspec import Struct

from kept.entrypoints.cli.completion import COMPLETIONS, Completion
from kept.entrypoints.cli.frame import find_invocation
from kept.errors import InvalidInput
from kept.memory.verbs.arguments import WORDS, Argument, build, wire_arguments
from kept.memory.verbs.declare import A, Q, Verb
from kept.settings import shown

STANDARD_INPUT = "-"
MAX_INPUT_BYTES = 1_000_000  # of a text on standard input; beyond this it is a file, not a statement

# (verb, argument): why no command has it. Read by tests/test_verbs.py.
NOT_TYPED: Mapping[tuple[str, str], str] = {
    ("store.export", "archived"): "`kept export` writes the archive in any case.",
    ("aliases.list", "own"): "It is the default of `kept alias list`; `--all` ends it.",
    ("import_transcripts", "program"): "It is the FORMAT of `kept import`, or recognised.",
}

Function = Callable[..., Any]
Decorator = Callable[[Function], Function]
Callback = Callable[[click.Context, click.Parameter, Any], Any]


def options_of(
    verb: Verb[Q, A],
    *,
    without: Iterable[str] = (),
    also: Mapping[str, str] | None = None,
    completing: Mapping[str, Completion] = COMPLETIONS,
) -> Decorator:
    """Add the arguments of a verb to a command, which gets them by their names.

    `without` names those that the command declares itself, in a form of the terminal. `also` has a second, shorter
    spelling for an option: `also={"budget_tokens": "--budget"}`. `completing` offers values by the name of an argument.
    """
    untyped = (argument for name, argument in NOT_TYPED if name == verb.name)
    return options_from(verb.request, without=(*without, *untyped), also=also, completing=completing)


def options_from(
    request: type[Struct],
    *,
    without: Iterable[str] = (),
    also: Mapping[str, str] | None = None,
    completing: Mapping[str, Completion] = COMPLETIONS,
) -> Decorator:
    """Do the same for any request: filters that only the terminal has are declared as one."""
    left, spellings = set(without), also or {}
    arguments = [one for one in wire_arguments(request) if one.name not in left]

    def add(function: Function) -> Function:
        for argument in reversed(arguments):
            function = _parameter(argument, spellings.get(argument.name, ""), completing.get(argument.name))(function)
        return function

    return add


def request_of(verb: Verb[Q, A], given: Mapping[str, Any]) -> Q:
    """Make the request of a verb out of the options of a command. An empty list counts as left out."""
    return build(verb.request, {name: value for name, value in given.items() if value != ()}, verb=f"kept {verb.cli}")


def global_option(help: str) -> Decorator:
    """Add `--global`, which is `--tier global`; `chosen_tier` takes it together with `--tier`."""
    return click.option("--global", "is_global", is_flag=True, help=help)


def chosen_tier(given: Mapping[str, Any], *, is_global: bool) -> dict[str, Any]:
    """Return the options with the tier that `--global` or `--tier` names. Raises UsageError if they differ."""
    ctx = click.get_current_context()
    if is_global and given["tier"] != "global" and ctx.get_parameter_source("tier") is ParameterSource.COMMANDLINE:
        raise click.UsageError(f"--global and --tier {given['tier']} contradict each other.", ctx=ctx)
    return {**given, "tier": "global"} if is_global else dict(given)


def words_of(verb: Verb[Q, A], asked: Q) -> list[str]:
    """Return the options that make this request again: all that differ from their defaults."""
    words: list[str] = []
    for argument in wire_arguments(verb.request):
        value = getattr(asked, argument.name)
        if value == argument.default:
            continue
        option = f"--{argument.singular.replace('_', '-')}"
        if argument.form == "boolean":
            words.append(option)
        else:
            words += [word for one in (value if argument.is_several else [value]) for word in (option, str(one))]
    return words


def empty_answer(verb: Verb[Q, A], asked: Q, noun: str, nothing: str, *, besides: Iterable[str] = ()) -> str:
    """Return the sentence about an empty list: `nothing` is kept, or no `noun` matches where the request leaves some
    out.

    A switch, and the arguments in `besides`, leave nothing out.
    """
    wide = set(besides)
    narrowing = [
        one.name
        for one in wire_arguments(verb.request)
        if not one.is_required and one.form != "boolean" and getattr(asked, one.name) != one.default
    ]
    if getattr(asked, "limit", None) == 0:
        return f"`--limit 0` shows no {noun}."
    return nothing if wide.issuperset(narrowing) else f"No {noun} matches."


def _parameter(argument: Argument, also: str, complete: Completion | None) -> Decorator:
    return _positional(argument, complete) if argument.is_positional else _option(argument, also, complete)


def _positional(argument: Argument, complete: Completion | None) -> Decorator:
    """Return an argument that is typed without a name. A text is several words, or a dash for standard input."""
    is_several = argument.is_text or argument.is_several
    return click.argument(
        argument.name,
        nargs=-1 if is_several else 1,
        required=argument.is_required and not argument.is_text,  # the sentence about a missing text is ours
        metavar=_positional_metavar(argument),
        callback=_joined(argument) if argument.is_text else None,
        **_values(argument, complete, is_single=not is_several),
    )


def _positional_metavar(argument: Argument) -> str:
    """Return the metavar as a usage line shows it, with the marks that click leaves out where one is given."""
    name = argument.metavar or ("|".join(argument.choices) or argument.name.upper())
    shown = f"{name}..." if argument.is_text or argument.is_several else name
    return shown if argument.is_required else f"[{shown}]"


def _option(argument: Argument, also: str, complete: Completion | None) -> Decorator:
    name = f"--{argument.singular.replace('_', '-')}"
    spellings = [name, also] if also else [name]
    if argument.form == "boolean":
        return _flag(argument, spellings)
    is_multiple = argument.is_several or argument.form == "object"
    about = _values(argument, complete)
    if not argument.choices:
        about["metavar"] = _metavar(argument)
    if argument.default is not None and not is_multiple:
        about |= {"default": str(argument.default), "show_default": bool(argument.default)}
    callback = CALLBACKS.get(argument.form)
    return click.option(
        *spellings,
        argument.name,
        multiple=is_multiple,
        required=argument.is_required,
        callback=callback(argument) if callback else None,
        help=_help(argument, is_multiple=is_multiple),
        **about,
    )


def _metavar(argument: Argument) -> str:
    if argument.form == "object":
        return argument.metavar if "=" in argument.metavar else "NAME=VALUE"
    return argument.metavar or argument.singular.upper()


def _help(argument: Argument, *, is_multiple: bool) -> str:
    more = ["Or all as one object of JSON."] if argument.form == "object" else []
    return " ".join([argument.help, *more, *(["May be repeated."] if is_multiple else [])])


def _flag(argument: Argument, spellings: list[str]) -> Decorator:
    if argument.default:
        switches = [f"{name}/--no-{name[2:]}" for name in spellings]
        return click.option(*switches, argument.name, default=True, help=argument.help)
    return click.option(*spellings, argument.name, is_flag=True, help=argument.help)


def _values(argument: Argument, complete: Completion | None, *, is_single: bool = True) -> dict[str, Any]:
    """Return which values there are, where they are few; else what completes a value."""
    if argument.choices and is_single:
        return {"type": click.Choice(argument.choices)}
    return {"shell_complete": complete}


# Texts and files


def given_text(words: tuple[str, ...]) -> str:
    """Return the text from the arguments, or from standard input when that is a single dash. Raises InvalidInput.

    The newline that ends the last line of the input is the shell's and is left out; everything else is kept.
    """
    if words == (STANDARD_INPUT,):
        return _from_standard_input()
    text = " ".join(words)
    for position, character in enumerate(text):
        if "\udc80" <= character <= "\udcff":  # how Python hands over a byte that is not UTF-8
            raise InvalidInput(
                f"The text is not UTF-8: character {position + 1} is the byte 0x{ord(character) - 0xDC00:02x}.",
                hint="Switch the terminal to UTF-8, or convert the text with iconv.",
            )
    return text


def _from_standard_input() -> str:
    if sys.stdin is None:
        raise InvalidInput("There is no standard input to read from.", hint='Give the text itself: kept remember "…".')
    data = sys.stdin.buffer.read(MAX_INPUT_BYTES + 2)
    if len(data) > MAX_INPUT_BYTES + 1:
        raise InvalidInput(
            f"The text on standard input is longer than {MAX_INPUT_BYTES:,} bytes.",
            hint="Remember one statement at a time; keep whole files as files.",
        )
    try:
        return data.decode("utf-8").removesuffix(os.linesep)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"The text on standard input is not UTF-8: byte {error.start + 1} is 0x{data[error.start]:02x}.",
            hint="Convert it first, for example with iconv.",
        ) from None


def given_file(name: str) -> Path:
    """Return the database file that a person named. Raises InvalidInput for a name that SQLite could not open."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidInput("That file name is not UTF-8; SQLite cannot open it.", hint="Give another name.") from None
    if not name or "\0" in name:
        raise InvalidInput("That is not a file name.", hint="Give a path such as backups/web-app.db.")
    return Path(name)


# Callbacks: from text to values


def _joined(argument: Argument) -> Callback:
    def join(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> str | None:
        if words:
            return given_text(words)
        if argument.is_required and argument.noun and not ctx.resilient_parsing:
            is_word = argument.noun.startswith("word")
            raise click.UsageError(f"{'Give at least one' if is_word else 'There is no'} {argument.noun}.", ctx)
        if argument.is_required and not ctx.resilient_parsing:
            raise click.MissingParameter(ctx=ctx, param=param)
        return None

    return join


def _fitted(argument: Argument) -> Callback:
    def fit(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
        if value is None:
            return None
        try:
            fitted = argument.fitted(value, argument.name)
        except InvalidInput as error:
            raise click.BadParameter(error.message, ctx, param) from None
        if isinstance(fitted, str):
            raise click.BadParameter(
                f"{argument.name} must be {WORDS[argument.form]}, got {shown(fitted)}.", ctx, param
            )
        return fitted

    return fit


def _mapping(_argument: Argument) -> Callback:
    """Return `name=value` pairs as a dictionary, a value that is JSON as such; or an object of JSON."""

    def parse(ctx: click.Context, param: click.Parameter, pairs: tuple[str, ...]) -> dict[str, Any] | None:
        found: dict[str, Any] = {}
        for pair in pairs:
            if pair.lstrip().startswith("{"):
                found |= _object(pair, ctx, param)
                continue
            name, equals, value = pair.partition("=")
            if not equals:
                raise click.BadParameter(f"{pair[:60]!r} is not NAME=VALUE.", ctx, param)
            try:
                found[name] = msgspec.json.decode(value)
            except msgspec.DecodeError:
                found[name] = value
        return found or None

    return parse


def _object(given: str, ctx: click.Context, param: click.Parameter) -> dict[str, Any]:
    try:
        return msgspec.json.decode(given, type=dict[str, Any])
    except msgspec.MsgspecError:
        raise click.BadParameter(f"{given[:60]!r} is not an object of JSON.", ctx, param) from None


def _moment_of(argument: Argument) -> Callback:
    """Parse 2026-03-01 or 2026-03-01T14:30. `--until` and `--as-of` a day mean its end."""
    is_end = argument.name in ("until", "as_of")

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


CALLBACKS: Mapping[str, Callable[[Argument], Callback]] = {
    "integer": _fitted,
    "number": _fitted,
    "moment": _moment_of,
    "object": _mapping,
}
