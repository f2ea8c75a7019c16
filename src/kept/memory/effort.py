"""How much work a conversation has seen: enough of it to ask its agent which findings hold.

For the setting `judge = "stop"`, which asks while the context of the work is still there (`entrypoints/hook/stop.py`).
"""

from collections.abc import Iterable, Sequence

from kept.exchange.transcripts import PARSERS
from kept.model import CONTEXT, Message
from kept.writing.extraction.passages import passages
from kept.writing.grammar import read as read_sentence

MANY_CALLS = 15  # of tools: fewer are a question and its answer
MANY_FAILURES = 3  # of commands in a row of work that ended well: fewer are the usual way of working


def has_worked(program: str, lines: Iterable[bytes]) -> bool:
    """Return True if the last lines of a transcript show enough work to ask about."""
    return is_work(PARSERS[program](lines, 0).messages)


def is_work(messages: Sequence[Message]) -> bool:
    """Return True for many tool calls, for an objection of the user, and for failures that ended well."""
    calls = sum(one.role == "tool_call" for one in messages)
    return calls >= MANY_CALLS or _is_hunt(messages) or any(map(_is_objection, messages))


def _is_objection(message: Message) -> bool:
    """Return True if the first sentence of the user objects to something."""
    if message.role != "user" or message.trust != "user":
        return False
    read = passages(message.content, is_long_pasted=True)
    return bool(read and read[0].sentences) and read_sentence(read[0].sentences[0]).has("objects")


def _is_hunt(messages: Sequence[Message]) -> bool:
    """Return True if many commands failed, and the last one did not."""
    results = [one for one in messages if one.role == "tool_result" and one.name != CONTEXT]
    return sum(one.is_error for one in results) >= MANY_FAILURES and not results[-1].is_error
