"""Any answer of a verb as lines for a person or a model, at doors that have no other words for it."""

from collections.abc import Iterator
from typing import Any

import msgspec

from kept.entrypoints.wording import receipt_lines
from kept.memory.brief import memory_line
from kept.memory.judge_lists import JudgeList
from kept.model import Briefing, CallGuard, Memory, Message, Receipt, TaskRecord
from kept.proposals import Proposal
from kept.text import visible

DONE = "Done."
NOTHING = "There is none."
NO_LIST = "No session waits for a judge."
HOW_TO_JUDGE = "`kept judge` decides which of them are kept."
GUARDS = {
    "stop": "Guarded: a tool call that it concerns is refused once, with it as the reason; the same call then passes.",
    "tell": "No guard: a tool call that it concerns is told the memory.",
}


def answer_lines(answer: Any) -> list[str]:
    """Return the lines of an answer; stored text cannot pass for a line of ours."""
    if answer is None:
        return [DONE]
    if isinstance(answer, bool):
        return ["Yes." if answer else "No."]
    if isinstance(answer, int | str):
        return [visible(str(answer), keep_newlines=False)]
    if isinstance(answer, Briefing):
        return [answer.text]
    if isinstance(answer, JudgeList):
        return [*map(_proposal_line, answer.statements), HOW_TO_JUDGE] if answer.statements else [NO_LIST]
    found = [_line(one) for one in _members(answer)]
    return found or [NOTHING]


def _proposal_line(one: Proposal) -> str:
    return visible(f"{one.n}. {one.who}: {one.text}", keep_newlines=False)


def _members(answer: Any) -> Iterator[Any]:
    if isinstance(answer, dict):
        yield from ({name: value} for name, value in answer.items())
    elif isinstance(answer, Receipt | Memory | TaskRecord | msgspec.Struct):
        yield answer
    else:
        yield from answer


def _line(one: Any) -> str:
    if isinstance(one, Memory):
        return memory_line(one)
    if isinstance(one, Receipt):
        return "\n".join(receipt_lines(one))
    if isinstance(one, CallGuard):
        return GUARDS[one.mode]
    if isinstance(one, TaskRecord):
        return visible(f"{one.name} ({one.state}): {one.description}", keep_newlines=False)
    if isinstance(one, Message):
        where = f"{one.session}#{one.n}" if one.session else one.id
        return visible(f"{where} {one.role}: {' '.join(one.content.split())}", keep_newlines=False)
    if isinstance(one, str):
        return visible(one, keep_newlines=False)
    return visible(msgspec.json.encode(one, enc_hook=str).decode(), keep_newlines=False)
