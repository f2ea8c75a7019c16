"""Commands that are derived from a verb as a whole, because its arguments and its answer need no other words.

A verb whose row names a command that no module has gets it from here; the catalog names this module for such commands
at the top. Loads every verb: only for help pages and for these commands.
"""

from functools import cache
from typing import Any

import click
import msgspec

from kept.entrypoints.answers import answer_lines
from kept.entrypoints.cli.derived import options_of, request_of
from kept.entrypoints.cli.frame import Command, Group, with_invocation, yes_option
from kept.entrypoints.cli.invocation import Invocation
from kept.memory.verbs import all_verbs
from kept.memory.verbs.declare import AnyVerb


def command_of(verb: AnyVerb, name: str) -> Command:
    """Derive a command from a verb."""

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


@cache
def commands_below(group: str) -> dict[str, Command]:
    """Return the derived commands of a group by their names."""
    paths = {str(verb.cli).removeprefix(f"{group} "): verb for verb in all_verbs() if _is_below(verb.cli, group)}
    return {name: command_of(verb, name) for name, verb in paths.items()}


def _is_below(path: object, group: str) -> bool:
    return isinstance(path, str) and path.startswith(f"{group} ")


@cache
def command_at(name: str) -> click.Command:
    """Return the derived command of that name, or the group of those below it."""
    verb = next((one for one in all_verbs() if one.cli == name), None)
    return Group(name) if verb is None else command_of(verb, name)
