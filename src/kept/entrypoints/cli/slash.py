"""`kept slash`: slash commands, as typed into a chat."""

from collections.abc import Iterator, Mapping, Sequence

import click
import msgspec

from kept.entrypoints import slash
from kept.entrypoints.cli.frame import command, yes_option
from kept.entrypoints.cli.invocation import FAILED, Dim, Invocation, Label, Line
from kept.entrypoints.cli.wording import memory_lines
from kept.model import Memory

NONE_OF_THEM = "none"


@command
@click.argument("line", nargs=-1)
@yes_option
def slash_command(invocation: Invocation, *, line: tuple[str, ...], yes: bool) -> None:
    """Without a LINE, all of them are listed. With key words, a command acts on the one memory that has all the words;
    if several do, they are listed, or you are asked.

    \b
    kept slash /remember Never edit the auth middleware directly
    kept slash /pin auth middleware
    kept slash /memory search auth
    """

    def choose(question: str, memories: Sequence[Memory]) -> str | None:
        for memory in memories:
            invocation.tell(*memory_lines(memory, invocation.clock()))
        refs = {f"id:{memory.ref}": memory.ref for memory in memories}
        picked = invocation.pick(question, [NONE_OF_THEM, *refs])
        declined.append(picked == NONE_OF_THEM)
        return refs.get(picked)

    declined: list[bool] = []

    with invocation.open(yes=yes) as memory:
        answer = slash.run(memory, " ".join(line) or "/memory", choose=choose if invocation.can_pick() else None)
    lines: list[Line] = [*_listed(answer.data.get("commands", ()), invocation.width())] or [*answer.text.split("\n")]
    if answer.done and answer.command in ("/forget", "/pin"):
        lines.append(Dim("`kept undo` undoes it."))
    invocation.answer(msgspec.to_builtins(answer), lines)
    if not answer.done and not any(declined) and answer.command in ("/forget", "/pin"):  # several matches, or none
        raise click.exceptions.Exit(FAILED)


def _listed(commands: Sequence[Mapping[str, str]], width: int) -> Iterator[Line]:
    """Yield each command with its help beside it, or below it where a terminal has no room; nothing without one."""
    if not width or not commands:
        return
    indent = min(max(len(one["usage"]) for one in commands), width // 3) + 2
    for one in commands:
        usage = one["usage"]
        if len(usage) + 2 > indent:
            yield Label(usage)
            usage = ""
        yield Label(f"{usage:<{indent}}"), one["line"]
