"""Words about a draft that was stored, and checks of names that a person may have mistyped before it is."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import click
import msgspec

from kept.entrypoints.cli.invocation import FAILED, Clash, Invocation, Line
from kept.entrypoints.cli.wording import as_document, bracketed, name_of
from kept.entrypoints.wording import contradictions, receipt_details, receipt_lines, receipt_sentence, refs
from kept.errors import NotFound
from kept.memory import Kept
from kept.model import KINDS, Conflict, Memory, Receipt, canonical_kind

BOTH_SIDES = "`kept review conflicts` shows both sides."


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


def answer_receipt(
    invocation: Invocation, receipt: Receipt, first: Line | None = None, *, sides: Mapping[str, str] | None = None
) -> None:
    """Report the outcome of a draft; `first` is the sentence for one that was stored. A refusal ends the command.

    `sides`: the ref of the other memory of each conflict.
    """
    document = msgspec.to_builtins(receipt)
    if receipt.memory is not None:
        document["memory"] = as_document(receipt.memory)
    if receipt.outcome != "refused":
        details = map(_coloured, receipt_details(receipt, of_conflicts=BOTH_SIDES, sides=sides))
        invocation.answer(document, [first or _outcome(receipt), *details])
        return
    if invocation.as_json:
        invocation.answer(document, ())
    else:
        invocation.tell(*receipt_lines(receipt))
    click.get_current_context().exit(FAILED)


def other_sides(memory: Kept, of: Memory | None, conflicts: Sequence[Conflict]) -> dict[str, str]:
    """Return the ref of the other memory of each conflict, by the ref of the conflict; none of one that is erased."""
    found: dict[str, str] = {}
    for one in conflicts if of is not None else ():
        with suppress(NotFound):
            other = one.right if of is not None and one.left == of.uid else one.left
            found[one.ref] = memory.get(other, forgotten=True).ref
    return found


def _coloured(line: str) -> Line:
    """Return a sentence about a contradiction in its colour."""
    return Clash(line) if "contradicts" in line else line


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
    unsettled = [one for one in found if one.resolved_at is None]
    sides = other_sides(memory, changed, unsettled)
    told = contradictions([one.ref for one in unsettled], name, advice=BOTH_SIDES, sides=sides)
    return [*lines, *map(Clash, told)]
