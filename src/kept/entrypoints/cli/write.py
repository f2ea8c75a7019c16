"""`kept remember`, and the words about a stored draft. `kept undo` undoes it."""

from typing import Any

import click
import msgspec
from msgspec.structs import replace

from kept.entrypoints.cli.derived import chosen_tier, global_option, options_of, request_of
from kept.entrypoints.cli.frame import command, yes_option
from kept.entrypoints.cli.invocation import FAILED, Invocation, Line
from kept.entrypoints.cli.wording import as_document, name_of
from kept.entrypoints.wording import receipt_details, receipt_lines, receipt_sentence
from kept.errors import NotFound
from kept.memory import Kept
from kept.memory.verbs.remember import REMEMBER, Remember
from kept.model import KINDS, Receipt, canonical_kind

BOTH_SIDES = "`kept conflicts` shows both sides."


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
    answer_receipt(invocation, receipt)


def _remember_for_task(memory: Kept, task: str, asked: Remember) -> Receipt:
    source = memory.context.source()
    about = {name: getattr(asked, name) for name in asked.__struct_fields__ if name not in ("content", "session")}
    about["source"] = replace(source, session=asked.session or source.session)
    return memory.task(known_task(memory, task)).remember(asked.content, **about)


def check_kind(invocation: Invocation, memory: Kept, kind: str, *, yes: bool) -> None:
    """Ask about a kind that is nearly one of Kept's. Any other word is a kind of its own, as is one that is in use."""
    word = canonical_kind(kind)
    if word not in KINDS and not memory.list(kinds=[word], limit=1):
        invocation.check_name(word, KINDS, "kind", yes=yes)


def known_task(memory: Kept, id: str) -> str:
    """Return the id if there is such a task: a typing error must not begin one. Raises NotFound."""
    if id not in {task.name for task in memory.tasks(archived=True)}:
        raise NotFound(f"There is no task {id[:60]!r}.", hint="`kept task list` shows them.")
    return id


def answer_receipt(invocation: Invocation, receipt: Receipt, first: Line | None = None) -> None:
    """Say what became of a draft, with `first` as the sentence for one that was stored; a refusal ends the command."""
    document = msgspec.to_builtins(receipt)
    if receipt.memory is not None:
        document["memory"] = as_document(receipt.memory)
    if receipt.outcome != "refused":
        invocation.answer(document, [first or _outcome(receipt), *receipt_details(receipt, of_conflicts=BOTH_SIDES)])
        return
    if invocation.as_json:
        invocation.answer(document, ())
    else:
        invocation.tell(*receipt_lines(receipt))
    click.get_current_context().exit(FAILED)


def _outcome(receipt: Receipt) -> Line:
    assert receipt.memory is not None
    before, after = receipt_sentence(receipt)
    return before, name_of(receipt.memory), after
