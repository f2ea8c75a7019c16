"""The text that stands in for the old messages of a session in its window.

`sessions` calls it when a window has outgrown its limit. Rule: the text is sized to the messages that it replaces, and
no line of it is only a quotation.
"""

from collections.abc import Sequence

from kept.memory.signals import warn
from kept.memory.window import message_tokens
from kept.model import Message, Trust, replace
from kept.writing.extraction import Summarizer, extract, summarize
from kept.writing.extraction.digest import budget_for, digest
from kept.writing.quotes import Quotes


def stand_in(
    messages: Sequence[Message], summarizer: Summarizer | None, quotes: Quotes, folder: str | None, most_tokens: int
) -> tuple[str, Trust]:
    """Return the text that stands in for these messages in a window, and its trust.

    Ours leaves out lines that are only quoted; a plugged-in summarizer may quote, and its text is labelled.
    """
    if summarizer is not None:
        written = summarizer(messages)
        return written, quotes.trust_of(written, "agent")
    lines = digest(messages, [each.draft for each in extract(messages, folder)], folder)
    said = tuple(line for line in lines.said if quotes.trust_of(line, "agent") == "agent")
    budget = budget_for(sum(map(message_tokens, messages)), most_tokens)
    return replace(lines, said=said).within(budget), "agent"


def with_fallback(summarizer: Summarizer) -> Summarizer:
    """Return a summarizer that writes Kept's own summary when the given one fails.

    A message that makes a session compact must be stored even if the model that summarizes fails.
    """

    def write(messages: Sequence[Message]) -> str:
        try:
            return summarizer(messages)
        except Exception as error:  # of a host's program
            warn("the summarizer failed (%s), so Kept wrote the summary", type(error).__name__)
            return summarize(messages)

    return write
