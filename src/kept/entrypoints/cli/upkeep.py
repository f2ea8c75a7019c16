"""`kept upkeep`: what time does, now."""

import click

from kept.entrypoints.cli.frame import Command, pass_invocation
from kept.entrypoints.cli.invocation import Invocation, Line, Strong

_WORDS = {
    "confirm": ("is confirmed", "would be confirmed"),
    "penalise": ("counts for less", "would count for less"),
    "expire": ("is archived", "would be archived"),
    "evict": ("is archived", "would be archived"),
    "pack": ("is packed", "would be packed"),
}


@click.command("upkeep", cls=Command)
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@pass_invocation
def upkeep_command(invocation: Invocation, *, dry_run: bool) -> None:
    """End quarantines and shelf lives, and make room where a limit is exceeded.

    Everything leaves through the archive: `kept restore` brings it back. Sessions in which nothing was said for long
    are packed.
    """
    with invocation.open(auto_upkeep=False) as memory:
        done = memory.upkeep(dry_run=dry_run)
    lines: list[Line] = [
        (
            Strong(one.ref if one.action == "pack" else f"[id:{one.ref}]"),
            f" {_WORDS[one.action][dry_run]}: {one.reason}.",
        )
        for one in done.done
    ]
    if done.skipped:
        lines.append("Another process is at it already.")
    elif not lines:
        lines.append("There was nothing to do.")
    packed = [one.ref for one in done.done if one.action == "pack"]
    invocation.answer({"done": done.done, "dry_run": dry_run, "skipped": done.skipped, "packed": packed}, lines)
