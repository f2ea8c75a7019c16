"""Sentences that several doors say: about a receipt, about a memory, about any answer.

The command line adds colours and the server for agents adds advice; the sentence is the same everywhere.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from kept.memory.brief import memory_line
from kept.model import Briefing, Memory, Receipt, Task
from kept.text import visible

DONE = "Done."
NOTHING = "There is none."


def refs(named: Iterable[str]) -> str:
    """Return refs as they stand in a sentence; conflicts without brackets."""
    return ", ".join(ref if ref.startswith("c") else f"[id:{ref}]" for ref in named)


def receipt_sentence(receipt: Receipt) -> tuple[str, str]:
    """Return the first sentence about a stored draft: the words before and after the ref."""
    memory = receipt.memory
    kind = "" if memory is None else f"{memory.kind}{', pinned' if memory.status == 'pinned' else ''}"
    if receipt.reason == "already_stored":
        return "Already kept under that key: ", "."
    if receipt.outcome == "strengthened":
        return "Already kept: ", "" if memory is None else f" is more important now ({memory.importance:.2g})."
    if receipt.outcome == "candidate":
        return "Kept as a candidate until it is used or confirmed: ", f" ({kind})."
    return "Kept: ", f" ({kind})."


def receipt_details(receipt: Receipt, *, of_near: str = "", of_conflicts: str = "") -> list[str]:
    """Return the other sentences about a stored draft; `of_near` and `of_conflicts` are a door's advice."""
    lines = []
    if receipt.redactions:
        found = ", ".join(f"{redaction.count} × {redaction.kind}" for redaction in receipt.redactions)
        lines.append(f"Redacted before it was stored: {found}.")
    if receipt.superseded:
        lines.append(f"It replaces {refs(receipt.superseded)}.")
    if receipt.near:
        lines.append(f"Nearly the same as {refs(receipt.near)}. {of_near}".rstrip())
    return lines + contradictions([conflict.ref for conflict in receipt.conflicts], advice=of_conflicts)


def contradictions(conflicts: Sequence[str], subject: str = "It", *, advice: str = "") -> list[str]:
    """Return the sentence about conflicts that a memory raised, if there are any."""
    if not conflicts:
        return []
    return [f"{subject} contradicts a memory that is already kept: {refs(conflicts)}. {advice}".rstrip()]


def receipt_lines(receipt: Receipt, **advice: str) -> list[str]:
    """Return all sentences about a draft, stored or refused."""
    if receipt.outcome == "refused":
        return [f"Not kept: {receipt.message}"]
    before, after = receipt_sentence(receipt)
    return [f"{before}[id:{receipt.ref}]{after}", *receipt_details(receipt, **advice)]


def answer_lines(answer: Any) -> list[str]:
    """Return any answer of a verb as lines for a person or a model; stored text cannot pass for a line of ours."""
    if answer is None:
        return [DONE]
    if isinstance(answer, bool):
        return ["Yes." if answer else "No."]
    if isinstance(answer, int | str):
        return [visible(str(answer), keep_newlines=False)]
    if isinstance(answer, Briefing):
        return [answer.text]
    found = [_line(one) for one in _members(answer)]
    return found or [NOTHING]


def _members(answer: Any) -> Iterator[Any]:
    if isinstance(answer, dict):
        yield from ({name: value} for name, value in answer.items())
    elif isinstance(answer, Receipt | Memory | Task | msgspec.Struct):
        yield answer
    else:
        yield from answer


def _line(one: Any) -> str:
    if isinstance(one, Memory):
        return memory_line(one)
    if isinstance(one, Receipt):
        return "\n".join(receipt_lines(one))
    if isinstance(one, Task):
        return visible(f"{one.name} ({one.state}): {one.description}", keep_newlines=False)
    if isinstance(one, str):
        return visible(one, keep_newlines=False)
    return visible(msgspec.json.encode(one, enc_hook=str).decode(), keep_newlines=False)
