"""Facts in a turn of a conversation that rules cannot extract: an objection, a long hunt for a bug.

Only the agent that was there can phrase them, so the hook may ask it (`entrypoints/hook/nudge.py`). Rule: no reason to
ask is an empty text.
"""

from collections.abc import Iterable, Sequence

from kept.exchange.transcripts import PARSERS
from kept.model import CONTEXT, Message
from kept.writing.extraction import extract
from kept.writing.extraction.passages import passages
from kept.writing.grammar import read as read_sentence

MANY_FAILURES = 3  # of commands in one turn: fewer are the usual way of working
STORE_TOOL = "memory_store"
OBJECTION = "The user objected to something in this turn"
_SAYS_WHAT = frozenset({"rule", "contrasts", "prohibits", "decides", "standing", "change"})
HUNT = "In this turn it took several attempts until a problem was solved"


def reason_to_ask(program: str, lines: Iterable[bytes]) -> str:
    """Return the reason to ask the agent after the last turn of a transcript, given its last lines; else ""."""
    return worth_asking(last_turn(PARSERS[program](lines, 0).messages))


def last_turn(messages: Sequence[Message]) -> list[Message]:
    """Return the user's last message and all that follow it."""
    asked = [number for number, one in enumerate(messages) if one.role == "user" and one.trust == "user"]
    return list(messages[asked[-1] :]) if asked else []


def worth_asking(turn: Sequence[Message]) -> str:
    """Return the reason to ask: the turn has a fact that only its agent can phrase, and none was stored; else ""."""
    if not turn or _has_stored(turn):
        return ""
    found = extract(turn)
    told = [one for one in found if not _SAYS_WHAT.isdisjoint((one.draft.data or {})["rules"])]
    if _is_objection(turn[0].content) and not any(one.message_id == turn[0].id for one in told):
        return OBJECTION
    if _is_hunt(turn) and not any(one.draft.kind == "error" for one in found):
        return HUNT
    return ""


def _has_stored(turn: Sequence[Message]) -> bool:
    """Return True if the agent has stored a memory itself."""
    return any(STORE_TOOL in f"{one.name} {one.input}" for one in turn if one.role == "tool_call")


def _is_objection(said: str) -> bool:
    """Return True if the first sentence objects to something."""
    read = passages(said, is_long_pasted=True)
    return bool(read and read[0].sentences) and read_sentence(read[0].sentences[0]).has("objects")


def _is_hunt(turn: Sequence[Message]) -> bool:
    """Return True if many commands failed, and the last one did not."""
    results = [one for one in turn if one.role == "tool_result" and one.name != CONTEXT]
    return sum(one.is_error for one in results) >= MANY_FAILURES and not results[-1].is_error
