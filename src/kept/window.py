"""The window: what of a conversation stands in the context of a model now, and how much room it takes.

Noun layer; `sessions.py` shows it. Rule: a window is computed from the transcript and never written back, so that
compaction leaves everything as it was said.
"""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from kept import tokens
from kept.model import Message, replace

PRUNED = "[tool result left out of the window; the transcript has it]"


class Window(Struct, frozen=True, kw_only=True):
    """What stands in the context: messages, and their size in tokens."""

    messages: tuple[Message, ...]
    tokens: int


def window(messages: Sequence[Message], keep_tool_results: int) -> Window:
    """The newest summary and what follows what it stands for; of the tool results, the newest few in full."""
    summary = next((message for message in reversed(messages) if message.role == "summary"), None)
    upto = stands_for(summary) if summary is not None else 0
    said = [message for message in messages if message.n > upto and message.role != "summary"]
    results = [message.n for message in said if message.role == "tool_result"]
    full = set(results[-keep_tool_results:]) if keep_tool_results else set()
    shown = [
        replace(message, content=PRUNED) if message.role == "tool_result" and message.n not in full else message
        for message in said
    ]
    shown = [summary, *shown] if summary is not None else shown
    return Window(messages=tuple(shown), tokens=sum(map(message_tokens, shown)))


def stands_for(summary: Message) -> int:
    """The number of the last message whose place a summary takes."""
    return int((summary.input or {}).get("upto", 0))


def message_tokens(message: Message) -> int:
    """What a message takes of the window."""
    spoken = tokens.estimate(message.content)
    return spoken if message.input is None else spoken + tokens.estimate(msgspec.json.encode(message.input).decode())
