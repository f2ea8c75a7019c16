"""`kept remember`. `kept undo` undoes it."""

from typing import Any

import click
from msgspec.structs import replace

from kept.entrypoints.cli.derived import chosen_tier, global_option, options_of, request_of
from kept.entrypoints.cli.frame import command, yes_option
from kept.entrypoints.cli.invocation import Invocation
from kept.entrypoints.cli.receipts import answer_receipt, check_kind, known_task, other_sides
from kept.memory import Kept
from kept.memory.verbs.remember import REMEMBER, Remember
from kept.model import Receipt


@command
@options_of(REMEMBER)
@global_option("For all projects; the same as --tier global.")
@click.option("--task", metavar="TASK", help="The task it belongs to; `kept task show TASK` lists it.")
@yes_option
def remember_command(invocation: Invocation, *, is_global: bool, task: str | None, yes: bool, **given: Any) -> None:
    """TEXT has at most 500 characters (a summary: 4,000). It may be several words; a single dash reads it from standard
    input. A text that is stored already, apart from case and spacing, is not stored twice: the memory becomes more
    important instead.

    \b
      kept remember "Never edit the auth middleware directly" --kind warning --tag auth
      git log -1 --format=%s | kept remember - --kind progress
    """
    asked = request_of(REMEMBER, chosen_tier(given, is_global=is_global))
    asked = replace(asked, session=asked.session or invocation.session)
    with invocation.open(yes=yes) as memory:
        check_kind(invocation, memory, asked.kind, yes=yes)
        receipt = memory.perform(REMEMBER, asked) if task is None else _remember_for_task(memory, task, asked)
        sides = other_sides(memory, receipt.memory, receipt.conflicts)
    answer_receipt(invocation, receipt, sides=sides)


def _remember_for_task(memory: Kept, task: str, asked: Remember) -> Receipt:
    about = {name: getattr(asked, name) for name in asked.__struct_fields__ if name not in ("content", "session")}
    return memory.task(known_task(memory, task)).remember(asked.content, session=asked.session, **about)
