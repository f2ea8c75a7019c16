"""`kept export`: everything out, one JSON line a memory."""

import click

from kept.entrypoints.cli.frame import Command, pass_invocation
from kept.entrypoints.cli.invocation import Invocation, Line
from kept.exchange.jsonl import to_document, to_lines


@click.command("export", cls=Command)
@click.option("--archived", is_flag=True, help="Also what has left for the archive.")
@pass_invocation
def export_command(invocation: Invocation, *, archived: bool) -> None:
    """Print every memory as a line of JSON.

    Lossless: all that is known of each. What was forgotten is not among them.
    """
    with invocation.open() as memory:
        found = list(memory.export(archived=archived))
    lines: list[Line] = [line.decode() for line in to_lines(found)]
    invocation.answer({"memories": [to_document(one) for one in found]}, lines)
