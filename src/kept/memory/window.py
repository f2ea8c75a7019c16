"""The window of a session: the messages that belong into the context of a model.

`sessions` stores the messages, `turns` adds memories to the window. Rule: the window is computed and never stored;
looking at it changes nothing.
"""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from kept import tokens
from kept.model import CONTEXT, Message, replace

PRUNED = "[tool result left out of the window; the transcript has it]"
UPTO = "upto"  # in the input of a summary that Kept wrote: the number of the last message that it replaces


class Window(Struct, frozen=True, kw_only=True):
    """The messages to send to a model, and their size in tokens."""

    messages: tuple[Message, ...]
    tokens: int


def window(messages: Sequence[Message], keep_tool_results: int) -> Window:
    """The newest summary and the messages after those it replaces; only the newest tool results in full."""
    summary = next((message for message in reversed(messages) if message.role == "summary"), None)
    upto = stands_for(summary) if summary is not None else 0
    said = [message for message in messages if message.n > upto and message.role != "summary"]
    shown = _pruned(_without_orphans(messages, said), keep_tool_results)
    shown = [summary, *shown] if summary is not None else shown
    return Window(messages=tuple(shown), tokens=sum(map(message_tokens, shown)))


def replaceable(messages: Sequence[Message], keep: int) -> list[Message]:
    """Return the messages that a new summary may replace; none if the newest summary replaces them all."""
    said = [message for message in messages if message.role != "summary"]
    old = said[: cut_at(said, keep)]
    upto = max((stands_for(message) for message in messages if message.role == "summary"), default=0)
    return old if old and old[-1].n > upto else []


def cut_at(said: Sequence[Message], keep: int) -> int:
    """Return how many messages a summary may replace, so that `keep` are left and each result has its call."""
    calls = {message.id: at for at, message in enumerate(said) if message.role == "tool_call"}
    before = 0  # the newest call
    called_at = []
    for at, message in enumerate(said):
        before = at if message.role == "tool_call" else before
        is_answer = message.role == "tool_result" and message.name != CONTEXT
        called_at.append(min(at, calls.get(message.id, before)) if is_answer else at)
    cut = end = max(0, len(said) - keep)
    for at in range(len(said) - 1, -1, -1):
        if at < cut:
            break
        cut = min(cut, called_at[at])
    return cut or end


def _without_orphans(messages: Sequence[Message], said: Sequence[Message]) -> list[Message]:
    """Return the messages without results of tools whose calls are not among them: models' APIs refuse such."""
    calls = {message.id for message in messages if message.role == "tool_call"}
    here = {message.id for message in said if message.role == "tool_call"}
    return [one for one in said if one.role != "tool_result" or one.id in here or one.id not in calls]


def _pruned(messages: Sequence[Message], keep_tool_results: int) -> list[Message]:
    """Return the messages with only that many of the newest tool results in full."""
    results = [message.n for message in messages if message.role == "tool_result"]
    old = set(results[:-keep_tool_results] if keep_tool_results else results)
    return [replace(message, content=PRUNED) if message.n in old else message for message in messages]


def stands_for(summary: Message) -> int:
    """The number of the last message that a summary replaces. One that another program wrote replaces all before it."""
    return int((summary.input or {}).get(UPTO, summary.n - 1))


def is_own_summary(message: Message) -> bool:
    """Whether Kept wrote the message when it compacted the session; it says nothing that was not said before."""
    return message.role == "summary" and UPTO in (message.input or {})


def message_tokens(message: Message) -> int:
    """The tokens of a message."""
    spoken = tokens.estimate(message.content)
    return spoken if message.input is None else spoken + tokens.estimate(msgspec.json.encode(message.input).decode())
