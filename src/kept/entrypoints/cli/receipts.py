"""Words about a draft that was stored, and checks of names that a person may have mistyped before it is."""

import click
import msgspec

from kept.entrypoints.cli.invocation import FAILED, Invocation, Line
from kept.entrypoints.cli.wording import as_document, bracketed, name_of
from kept.entrypoints.wording import contradictions, receipt_details, receipt_lines, receipt_sentence, refs
from kept.errors import NotFound
from kept.memory import Kept
from kept.model import KINDS, Memory, Receipt, canonical_kind

BOTH_SIDES = "`kept conflicts` shows both sides."


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
    """Report the outcome of a draft; `first` is the sentence for one that was stored. A refusal ends the command."""
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


def disagreements(memory: Kept, changed: Memory) -> list[Line]:
    """The contradictions that were found when a memory was revised or restored, just now."""
    found = [
        conflict
        for conflict in memory.conflicts(resolved=True)
        if changed.uid in (conflict.left, conflict.right) and conflict.detected_at == changed.updated_at
    ]
    name = bracketed(changed.ref)
    over = [memory.get(one.right, forgotten=True).ref for one in found if one.resolved_at is not None]
    lines: list[Line] = [f"{name} replaces {refs(over)}."] if over else []
    unsettled = [one.ref for one in found if one.resolved_at is None]
    return [*lines, *contradictions(unsettled, name, advice=BOTH_SIDES)]
