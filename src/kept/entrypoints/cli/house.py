"""`kept backup`: keeping the store in good order."""

from pathlib import Path

import click

from kept.entrypoints.cli.frame import Command, pass_invocation
from kept.entrypoints.cli.invocation import Invocation
from kept.entrypoints.cli.wording import counted, size


@click.command("backup", cls=Command)
@click.argument("file")
@click.option("--global", "is_global", is_flag=True, help="Of global memory, instead of the project's.")
@pass_invocation
def backup_command(invocation: Invocation, *, file: str, is_global: bool) -> None:
    """Write a verified copy of the store to a file.

    Others may go on reading and writing meanwhile. FILE must not exist: a backup never overwrites anything.
    `kept restore FILE` puts it back.
    """
    with invocation.open() as memory:
        made = memory.backup(Path(file), tier="global" if is_global else "project")
    counts = f"{counted(made.memories, 'memory', 'memories')}, {counted(made.events, 'event')}, {size(made.bytes)}"
    invocation.answer(made, [f"Backed up to {file}: {counts}. `kept restore {file}` puts it back."])
