"""`kept upkeep`: what time does, now."""

import click

from kept.entrypoints.cli.frame import Command, pass_invocation
from kept.entrypoints.cli.invocation import Invocation, Line, Strong
from kept.entrypoints.cli.wording import counted

_WORDS = {
    "confirm": ("is confirmed", "would be confirmed"),
    "penalise": ("counts for less", "would count for less"),
    "expire": ("is archived", "would be archived"),
    "evict": ("is archived", "would be archived"),
}


@click.command("upkeep", cls=Command)
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@pass_invocation
def upkeep_command(invocation: Invocation, *, dry_run: bool) -> None:
    """End quarantines and shelf lives, and make room where a limit is exceeded.

    Everything leaves through the archive: `kept restore` brings it back. Sessions in which nothing was said for long
    are packed.
    """
    with invocation.open() as memory:
        done = memory.upkeep(dry_run=dry_run)
        packed = [] if dry_run else memory.pack_sessions()
    lines: list[Line] = [
        (Strong(f"[id:{one.ref}]"), f" {_WORDS[one.action][dry_run]}: {one.reason}.") for one in done.done
    ]
    if packed:
        lines.append(f"{counted(len(packed), 'old session')} packed.")
    if done.skipped:
        lines.append("Another process is at it already.")
    elif not lines:
        lines.append("There was nothing to do.")
    invocation.answer({"done": done.done, "dry_run": dry_run, "skipped": done.skipped, "packed": packed}, lines)
