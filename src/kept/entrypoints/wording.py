"""Sentences about a receipt, the same at every door.

The command line adds colours and the server for agents adds advice.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from kept.memory.judge_lists import Judgement
from kept.model import REJECTED, Receipt

ERASURES = ("erased", "pending")  # the reasons of receipts of an erasure


def refs(named: Iterable[str]) -> str:
    """Return refs as they stand in a sentence; conflicts without brackets."""
    return ", ".join(ref if ref.startswith("c") else f"[id:{ref}]" for ref in named)


def receipt_sentence(receipt: Receipt) -> tuple[str, str]:
    """Return the first sentence about a stored draft: the words before and after the ref."""
    memory = receipt.memory
    kind = "" if memory is None else f"{memory.kind}{', pinned' if memory.status == 'pinned' else ''}"
    if receipt.reason == "already_stored":
        return "Already kept under that key: ", "."
    if receipt.reason == REJECTED:
        return "Kept as a candidate: ", f" ({kind})."
    if receipt.outcome == "strengthened":
        return "Already kept: ", "" if memory is None else f" is more important now ({memory.importance:.2g})."
    if receipt.outcome == "candidate":
        return "Kept as a candidate until it is used or confirmed: ", f" ({kind})."
    return "Kept: ", f" ({kind})."


def receipt_details(
    receipt: Receipt, *, of_near: str = "", of_conflicts: str = "", sides: Mapping[str, str] | None = None
) -> list[str]:
    """Return the other sentences about a stored draft; `of_near` and `of_conflicts` are a door's advice.

    `sides`: the ref of the other memory of each conflict, where a door has looked it up.
    """
    lines = [receipt.message] if receipt.reason == REJECTED else []
    if receipt.redactions:
        found = ", ".join(f"{redaction.count} × {redaction.kind}" for redaction in receipt.redactions)
        lines.append(f"Redacted before it was stored: {found}.")
    if receipt.superseded:
        lines.append(f"It replaces {refs(receipt.superseded)}.")
    if receipt.near:
        lines.append(f"Nearly the same as {refs(receipt.near)}. {of_near}".rstrip())
    return lines + contradictions(
        [conflict.ref for conflict in receipt.conflicts], advice=of_conflicts, sides=sides or {}
    )


def contradictions(
    conflicts: Sequence[str], subject: str = "It", *, advice: str = "", sides: Mapping[str, str] = MappingProxyType({})
) -> list[str]:
    """Return the sentence about conflicts that a memory raised, if there are any. `sides`: as in `receipt_details`."""
    if not conflicts:
        return []
    if all(conflict in sides for conflict in conflicts):
        named = ", ".join(f"{refs([sides[conflict]])} (conflict {conflict})" for conflict in conflicts)
        return [f"{subject} contradicts {named}. {advice}".rstrip()]
    return [f"{subject} contradicts a memory that is already kept: {refs(conflicts)}. {advice}".rstrip()]


def receipt_lines(receipt: Receipt, *, of_near: str = "", of_conflicts: str = "") -> list[str]:
    """Return all sentences about a draft, stored or refused."""
    if receipt.outcome == "refused":
        return [f"Not kept: {receipt.message}"]
    if receipt.reason in ERASURES:
        return [receipt.message]
    before, after = receipt_sentence(receipt)
    return [f"{before}[id:{receipt.ref}]{after}", *receipt_details(receipt, of_near=of_near, of_conflicts=of_conflicts)]


def settled_sentence(settled: Judgement) -> str:
    """How a list of findings was settled."""
    parts = {name: len(getattr(settled, name)) for name in ("kept", "rewritten", "dropped", "replaced", "added")}
    parts["left as proposals"] = settled.left
    said = ", ".join(f"{number} {name}" for name, number in parts.items() if number) or "Nothing"
    return " ".join([f"{said}.", *(f"Not added: {reason}" for reason in settled.refused)])
